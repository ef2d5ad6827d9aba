# /// ideas
# [one_head]
# says = "one head gives one weight p and one mixture; linear read-outs that see it alone get at most three of the four sentences right"
# motive = "All four pairs of answers occur"
# shown = "Two cuts make three pieces"
# action = 'predict("four_pairs")'
#
# [two_heads]
# says = "two heads give two weights: a point in a square, where two cuts make four pieces"
# motive = "Now let the last word ask twice"
# shown = "figures.square(corners)"
# action = "Move a dot"
#
# [multi_head]
# says = "multi-head attention: h heads of width d = d_model / h, each with its own three matrices, side by side; W_o adds up what they write; scores are divided by the root of d; more heads cost only more tables of weights"
# motive = "How do we compute several heads"
# shown = "\\text{head}_i = \\operatorname{attend}"
# action = "class MultiHead(nn.Module)"
#
# [split]
# says = "to split the heads, cut the width, then swap tokens and heads; on the way back swap, then join; a view straight to (h, n, d) mixes tokens without an error, and after a swap `view` fails and `reshape` copies"
# motive = "`view` gives the other shape at once"
# shown = "x.view(2, 3, 4)"
# action = "check(heads_apart)"
#
# [held_out]
# says = "held-out pairs: both words are trained, but never together; two heads get nearly all of these right, one head at most three of four"
# motive = "For the test we **hold out** pairs"
# shown = "two heads            1.00"
# action = 'predict("unseen_pair")'
#
# [find]
# says = "to find what a head does, measure over many sentences how much weight it puts on the word in question"
# motive = "Four sentences can mislead"
# shown = "*it* means the first noun in half of the sentences"
# action = "check(looks_at)"
#
# [move]
# says = "to test a head, move its weights by hand: the answer follows; the control is the same move in another head"
# motive = "goes along with an answer need not be its cause"
# shown = "weights exchanged in"
# action = "check(swap_weights)"
#
# [true_hides]
# says = "in torch's nn.MultiheadAttention a mask says True = hide; `~` turns ours into it"
# motive = "both should agree"
# shown = "~causal(7)"
# action = "With `~causal(7)` both layers agree"
# ///

# %% [markdown]
r"""
{title}

*The animal did not cross the street because it was too tired.* What was too tired? Now end the sentence with *wide*: one word has changed, and *it* means the other noun. How can attention know?

**Afterwards you can** prove how much one head can tell; write multi-head attention; find the head that looks at what *it* means, and test it.

{about}

<details><summary>中文摘要 · Chinese</summary>
“动物没有过马路,因为它太累了”:换掉最后一个词,it 就指另一个名词。一个头只给出一个加权平均,它能同时回答“谁在做”和“it 指什么”吗?本章先证明一个头的极限,再写出多头注意力:怎样拆分、怎样合并、代价多大;然后训练两个模型,用没有一起出现过的词来检验,找到负责 it 的头,并动手移动它的权重。最后看 torch 的多头层怎样理解掩码。
</details>

{sources}
"""

# %% tags=["imports"]
import torch
import torch.nn.functional as F
from torch import nn

from lesson_lib.attention import attend
from lesson_lib.chapters.c04_multi_head import figures
from lesson_lib.chapters.c04_multi_head import pronouns as language
from lesson_lib.course import *
from lesson_lib.masks import causal

_ = torch.manual_seed(0)
warm_up()

# %% [markdown]
r"""
We ask two questions. *Who acted?* That is the first noun. *What is it?* That is the noun which the last word fits: an animal can be tired, a street can be wide. Let a street cross an animal, too. Then two orders and two last words make four sentences:
"""

# %%
lines = [
    f"the {noun} did not cross the {other} because it was too {last}"
    for noun, other in (("animal", "street"), ("street", "animal"))
    for last in ("tired", "wide")
]
print("first     second    last      who acted   what is it")
for line in lines:
    noun, other, last = (line.split()[i] for i in (1, 6, 11))
    it = "animal" if last == "tired" else "street"
    print(f"{noun:10}{other:10}{last:10}{noun:12}{it}")

# %% [markdown]
r"""
All four pairs of answers occur.

## 1 · One head, two questions

A **head** is attention with one table of weights. Let the last word be its query, and let the two nouns be its only keys. The head gives *animal* the weight $p$ and *street* the rest. Its output is a mixture of their values:

$$z = p\, v_{\text{animal}} + (1-p)\, v_{\text{street}}$$

Each sentence may have its own $p$. But the value of a noun is the same wherever the noun stands.

Each question has a **read-out**, which turns the mixture into an answer. A **linear** read-out has a row of learned numbers $a$ and a learned number $b$. It answers *animal* where $a \cdot z + b$ is positive, else *street*.
"""

# %%
predict("four_pairs")

# %% [markdown]
r"""
Put the mixture into a read-out:

$$a \cdot z + b = p\,(a \cdot v_{\text{animal}} - a \cdot v_{\text{street}}) + (a \cdot v_{\text{street}} + b)$$

This is a straight line in $p$, so its sign changes at most once. Therefore a read-out is a **cut**: it answers *animal* on one side, *street* on the other. Here are two cuts. Move them, and run the cell again:
"""

# %%
figures.pieces(acted=0.3, it=0.6)

# %% [markdown]
r"""
Two cuts make three pieces, and within a piece both answers stay the same. But there are four pairs of answers, so one pair has no piece: here *street, animal*, with other cuts another pair. **Of our four sentences, one head gets at most three right, whatever it has learned.**

**"A wider head could do it."** No. However many numbers a value has, $p$ is one number, and $z$ stays on one line.

The proof has three conditions ([evidence](evidence/04_multi_head_evidence.ipynb)). First, the read-outs are linear. Second, they see nothing but $z$, in which only the two nouns are mixed. Third, a value does not tell where its noun stands.

## 2 · Two heads

Now let the last word ask twice, with two heads. Head 0 gives *animal* the weight $p_0$, and head 1 gives it the weight $p_1$. Two numbers are a point in a square. Let the read-out for *who acted* see head 0 only, and the one for *what is it* head 1 only. Then the first cut depends on $p_0$ alone and is vertical; the second is horizontal:
"""

# %%
corners = {
    "animal, street, tired": (1, 1),  # p of head 0, p of head 1
    "animal, street, wide": (1, 0),
    "street, animal, tired": (0, 1),
    "street, animal, wide": (0, 0),
}
figures.square(corners)

# %% [markdown]
r"""
Two cuts of a square make four pieces, one for each pair of answers. Each dot is a sentence. We let head 0 look at the noun that acted, and head 1 at the noun that *it* means. So each sentence lies in the piece of its own answers. Move a dot, and see which answer becomes wrong.

How do we compute several heads? Each head $i$ has its own three matrices. The outputs of all heads are put side by side, and a learned matrix $W_o$ mixes them:

$$\text{head}_i = \operatorname{attend}(x W_q^i,\; x W_k^i,\; x W_v^i) \qquad \text{output} = [\text{head}_0, \text{head}_1, \dots]\; W_o$$

This is **multi-head attention**. In the product, each head has rows of $W_o$ of its own, so the output is a sum of what the heads write.

The $h$ heads share the width of the tokens, $d_{\text{model}}$: each has the width $d = d_{\text{model}} / h$. So $W_q^i$ has the shape $(d_{\text{model}}, d)$, and scores are divided by $\sqrt{d}$.

All $W_q^i$ stand side by side in one matrix $W_q$, which is as large as that of one wide head. So more heads cost only more tables of weights. And one product $x W_q$ gives the queries of all heads: the first $d$ columns belong to head 0, the next $d$ to head 1. Keys and values are made likewise.

`attend` takes all axes but the last two as a batch. So one call computes all heads, if the heads are an axis before the tokens: $(h, n, d)$. But $x W_q$ is $(n, h \cdot d)$. `view` gives the other shape at once: it takes the numbers in their order, and moves none.
"""

# %%
predict("view_alone")

# %%
x = 10.0 * torch.arange(3)[:, None] + torch.arange(8)  # 10 * token + column
figures.as_heads(x, x.view(2, 3, 4))

# %% [markdown]
r"""
Each colour is a token. Head 0 should hold columns 0 to 3 of all three tokens. It holds the two halves of token 0, and half of token 1. No error was raised. So take two steps: first cut the width, which gives $(n, h, d)$; then swap the axes of tokens and heads.
"""

# %% [markdown] tags=["exercise:heads_apart"]
# Write both steps: from $(\ldots, n, h \cdot d)$ to $(\ldots, h, n, d)$.

# %%
split = yours("heads_apart")
heads = split(x, 2)
figures.as_heads(x, heads)

# %% [markdown]
r"""
Now each head holds its own columns of every token.

On the way back, swap first, then join the last two axes. `view` may raise an error here: it joins two axes only where their numbers follow each other at equal steps in memory, and the outputs of `attend` lie there head after head. `reshape` and `flatten` copy them together.

Here is the whole layer (`nn.Linear` multiplies by a learned matrix):
"""

# %%
def merge(heads):  # from (..., h, n, d) to (..., n, h * d)
    return heads.transpose(-2, -3).flatten(-2)


class MultiHead(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.w_query = nn.Linear(d_model, d_model, bias=False)
        self.w_key = nn.Linear(d_model, d_model, bias=False)
        self.w_value = nn.Linear(d_model, d_model, bias=False)
        self.w_output = nn.Linear(d_model, d_model, bias=False)

    def forward(self, query, key, value, mask=None, change=None):
        q = split(self.w_query(query), self.n_heads)
        k = split(self.w_key(key), self.n_heads)
        v = split(self.w_value(value), self.n_heads)
        heads, weights = attend(q, k, v, mask=mask)
        if change is not None:  # in section 4 we change the weights by hand
            heads = change(weights) @ v
        return self.w_output(merge(heads)), weights


# %% [markdown]
r"""
## 3 · Train one head, and two

Our language has 24 nouns of four kinds: animals, places such as *street*, foods, and containers. Three last words fit each kind: an animal can be *tired*, *hungry* or *afraid*, a place *wide*, *long* or *steep*. A sentence has two nouns of different kinds.

For the test we **hold out** pairs of words. For each noun we leave out one of its three last words: in training, *animal* never stands with *tired*, nor *street* with *wide*. So training shows none of our four sentences, but it shows each of their words in other sentences. (A word that training never shows would keep its random numbers.)
"""

# %%
known = language.sentences(held_out=False)  # words (6912, 12), and their two right nouns (6912, 2)
held_out = language.sentences(held_out=True)  # (3456, 12), (3456, 2)

# %% [markdown]
r"""
Each word is a number, and `nn.Embedding` is a table with a learned row for each number. The model is one layer:
"""

# %%
class TwoQuestions(nn.Module):
    def __init__(self, n_heads):
        super().__init__()
        self.word = nn.Embedding(len(language.WORDS), 32)
        self.position = nn.Embedding(11, 32)
        self.attention = MultiHead(32, n_heads)
        self.read_out = nn.Linear(32, 2 * 24)  # two questions, 24 nouns

    def forward(self, words, **change):
        x = self.word(words)  # (b, 12, 32)
        last, before = x[:, -1:], x[:, :-1]
        keys = before + self.position.weight  # keys tell the position, values do not
        nouns = language.is_noun(words[:, None, None, :-1])  # a mask: nouns only
        output, weights = self.attention(last, keys, before, mask=nouns, **change)
        # unflatten cuts the last axis, 48, into 2 questions and 24 nouns
        return self.read_out(output[:, 0]).unflatten(-1, (2, 24)), weights


# %% [markdown]
r"""
The conditions of the proof hold: the read-out is linear, the mask leaves only nouns, and the positions go into the keys alone. By the positions a head can find the first noun. The read-out gives 24 scores for each question, and the largest is the answer. Which of two nouns gets the larger score is decided by one cut, as before.
"""

# %%
def trained(n_heads):
    torch.manual_seed(8)
    model = TwoQuestions(n_heads)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    words, answers = known
    for _ in range(800):
        batch = torch.randint(len(words), (64,))
        scores, _ = model(words[batch])  # (64, 2, 24)
        loss = F.cross_entropy(scores.flatten(0, 1), answers[batch].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


one, two = trained(1), trained(2)

# %%
predict("unseen_pair")

# %% tags=["nbval-ignore-output"]
def both_right(said, answers):
    return (said == answers).all(-1).float().mean().item()


print("both answers right   trained   held out")
shares = {}
for name, model in {"one head": one, "two heads": two}.items():
    shares[name] = [both_right(model(words)[0].argmax(-1), answers) for words, answers in (known, held_out)]
shares["first noun twice"] = [both_right(answers[:, :1], answers) for _, answers in (known, held_out)]
for name, both in shares.items():
    print(f"{name:21}{both[0]:.2f}      {both[1]:.2f}")

# %% tags=["proof"]
assert all(0.55 < s < 0.65 for s in shares["one head"]) and shares["first noun twice"] == [0.5, 0.5]
assert min(shares["two heads"]) > 0.93

# %% [markdown]
r"""
Naming the first noun twice is right in half of the sentences. One head is right in about six of ten. The proof allows three of four, since all sentences come in fours like ours. Two heads are right nearly always, even for pairs that never met.

## 4 · Which head looks at what *it* means?

Here are our four sentences again, with the weights that training found:
"""

# %% tags=["trained"]
opening = language.read(*lines)
weights = two(opening)[1].detach()  # (4, 2, 1, 11): sentences, heads, one query, keys
is_animal = opening[:, :-1] == opening[0, 1]  # (4, 11)
p = (weights[:, :, 0] * is_animal[:, None]).sum(-1)  # (4, 2): each head's weight on animal
figures.square(dict(zip(corners, p.tolist(), strict=True)), cuts=False)

# %% tags=["proof"]
looks = p.round().int().tolist()
assert sorted(map(tuple, looks)) == [(0, 0), (0, 1), (1, 0), (1, 1)]
assert (p - p.round()).abs().max() < 0.3

# %% [markdown]
r"""
Training found the four corners: one head looks at the noun that acted, the other at the noun that *it* means. Nothing in the loss asks for this division. Four sentences can mislead, so measure the heads on all that were held out.
"""

# %% [markdown] tags=["exercise:looks_at"]
# How much weight does each head put on the word that you look for?

# %% tags=["nbval-ignore-output"]
words, answers = held_out
weights = two(words)[1][:, :, 0].detach()  # (3456, 2, 11)
it_means = words[:, :-1] == answers[:, 1:]  # True at the noun that *it* means
on_it = yours("looks_at")(weights, it_means)
head = on_it.argmax().item()
print(f"weight on what it means: head 0 {on_it[0]:.2f}, head 1 {on_it[1]:.2f}")

# %% tags=["proof"]
assert on_it[head] > 0.9 and abs(on_it[1 - head] - 0.5) < 0.05

# %% [markdown]
r"""
One head puts more than 0.9 of its weight on the noun that *it* means. The other head looks at the first noun and gets about 0.5, since *it* means the first noun in half of the sentences.

But a weight that goes along with an answer need not be its cause. So change the weights by hand, and nothing else.
"""

# %%
predict("by_hand")

# %% [markdown] tags=["exercise:swap_weights"]
# Exchange two weights of one head, and leave the others as they are.

# %% tags=["nbval-ignore-output"]
swap = yours("swap_weights")
words, answers = held_out[0][:864], held_out[1][:864]  # of four patterns the first, ours: nouns at 1 and 6
other_noun = words[:, [1, 6]].sum(-1, keepdim=True) - answers  # both numbers added, less the answer's


def changed(number):
    """For each question, how often the answer becomes the other noun."""
    scores, _ = two(words, change=lambda weights: swap(weights, number, 1, 6))
    return (scores.argmax(-1) == other_noun).float().mean(0).tolist()


print("weights exchanged in       who acted changes   what is it changes")
table = {"the head that looks at it": changed(head), "the other head": changed(1 - head)}
for name, (acted, it) in table.items():
    print(f"{name:27}{acted:.2f}                {it:.2f}")

# %% tags=["proof"]
(same_acted, moved_it), (moved_acted, same_it) = table.values()
assert min(moved_it, moved_acted) > 0.9 and max(same_acted, same_it) < 0.1

# %% [markdown]
r"""
The answer follows the weight. In the head that looks at what *it* means, the exchange changes *what is it* nearly always, and *who acted* hardly ever. The second line is the **control**, the same exchange in the other head: it changes *who acted*. So each answer is caused by the weights of its own head.

## In real work

torch's layer is `nn.MultiheadAttention`. With its matrices in our layer, both should agree. We give both the causal mask of part 03, then turn torch's around: `~` makes True False, and False True.
"""

# %%
torch.manual_seed(0)
theirs, ours = nn.MultiheadAttention(24, 3, bias=False, batch_first=True), MultiHead(24, 3)
matrices = [*theirs.in_proj_weight.chunk(3), theirs.out_proj.weight]  # torch keeps three in one
ours.load_state_dict(dict(zip(ours.state_dict(), matrices, strict=True)))
batch = torch.randn(2, 7, 24)
expected, _ = ours(batch, batch, batch, mask=causal(7))
for name, mask in {"causal(7)": causal(7), "~causal(7)": ~causal(7)}.items():
    output, _ = theirs(batch, batch, batch, attn_mask=mask)
    differ = (output - expected).abs().amax((0, 2))  # for each word, the largest difference
    print(f"{name:11}", *(f"{number:.2f}" for number in differ.tolist()))

# %% [markdown]
r"""
**"True means: may look."** Here **True hides**. So with `causal(7)` each word sees only later words, and the last one sees none: all its scores are $-\infty$, and its output is nan. The other six differ by more than 0.6, although they look healthy. With `~causal(7)` both layers agree.

## To carry away

In the file of 02a, `notebooks/carry/attention.py`, this layer stands below `attend`:
"""

# %%
from carry import attention as carried

show_source(carried.MultiHeadAttention)

# %% [markdown]
r"""
Its steps are ours; the other arguments belong to later parts.

How can attention know what *it* means? The last word asks, and one head looks at the noun that this word fits. Now choose your own last word. The file's layer gets the matrices that we trained:
"""

# %%
last = "steep"  # or tired, hungry, afraid, wide, long

sentence = f"the horse did not cross the bridge because it was too {last}"
again = TwoQuestions(2)
again.attention = carried.MultiHeadAttention(32, 2)
again.load_state_dict(two.state_dict())
said = [language.NOUNS[i] for i in again(language.read(sentence))[0][0].argmax(-1)]
it = "bridge" if last in ("wide", "long", "steep") else "horse"
for question, named, answer in zip(("who acted", "what is it"), said, ("horse", it), strict=True):
    print(f"{question:12}{named:8}{'right' if named == answer else f'wrong: it is {answer}'}")

# %% [markdown]
r"""
**To remember.** One head gives one mixture, two heads give two.

- Two cuts make three pieces; there are four pairs.
- Cut before you swap, swap before you join.
- The output is a sum over heads; more heads cost only tables of weights.
- To test a head, move its weights, with a control.

**Sources.** Vaswani et al. 2017 (arXiv:1706.03762), section 3.2.2; the sentence is Uszkoreit's (2017), after Winograd (1972). [Evidence](evidence/04_multi_head_evidence.ipynb).

**Next**: [05a · Order](05a_order.ipynb): how does a head know which noun came first?
"""
