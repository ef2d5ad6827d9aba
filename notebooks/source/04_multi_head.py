# /// ideas
# [one_head]
# says = "one head gives one weight p and one mixture; linear read-outs that see it alone get at most three of the four sentences right"
# motive = "All four pairs of answers occur"
# shown = "Two cuts make three pieces"
# action = 'predict("four_pairs")'
#
# [two_heads]
# says = "two heads give two weights: a point in a square, where two cuts make four pieces"
# motive = "Let the last word ask twice"
# shown = "figures.square(corners)"
# action = "Move a dot"
#
# [multi_head]
# says = "multi-head attention: h heads of width d = d_model / h, each with its own three matrices, side by side; W_o mixes what they write; scores are divided by the root of d; as many learned numbers as one wide head, a narrower width and a table for each"
# motive = "Each head $i$ has its own three matrices"
# shown = "\\text{head}_i = \\operatorname{attend}"
# action = "class MultiHead(nn.Module)"
#
# [split]
# says = "to split the heads, split the width, then swap tokens and heads; on the way back swap, then join; a view straight to (h, n, d) mixes tokens without an error, and after a swap `view` fails and `flatten` copies"
# motive = "Is it what we want?"
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
# motive = "four sentences can mislead"
# shown = "that it means"
# action = "check(looks_at)"
#
# [move]
# says = "to test a head, move its weights by hand: the answer follows; the control is the same move in another head"
# motive = "goes along with an answer need not be its cause"
# shown = "weights exchanged in"
# action = 'predict("by_hand")'
#
# [true_hides]
# says = "in torch's nn.MultiheadAttention a mask says True = hide; `~` turns ours into it"
# motive = "our layer should agree"
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
Two cuts make three pieces, and within a piece both answers stay the same. But there are four pairs of answers, so one pair has no piece: here *street, animal*. **Of our four sentences, one head gets at most three right, whatever it has learned.**

**"A wider head could do it."** No. However many numbers a value has, $p$ is one number, and $z$ stays on one line.

The [proof](evidence/04_multi_head_evidence.ipynb) has four conditions. The two nouns are the only keys: a third would make a triangle of the line. The read-outs are linear: a curved one may change its answer more than once. They see nothing but $z$, not even the last word. And a value does not tell where its noun stands, else each order would have its own line. Real models break these conditions; but there, too, a head gives one mixture for each query.

## 2 · Two heads

Let the last word ask twice, with two heads. Head 0 gives *animal* the weight $p_0$, and head 1 gives it the weight $p_1$. Two numbers are a point in a square. Let the read-out for *who acted* see head 0 only, and the one for *what is it* head 1 only. Then the first cut is vertical, the second horizontal:
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
Two cuts of a square make four pieces, one for each pair of answers. Each dot is a sentence. If head 0 looks at the noun that acted, and head 1 at the noun that *it* means, each sentence lies in the piece of its own answers. Move a dot (change its numbers), and see which answer becomes wrong.

Each head $i$ has its own three matrices. The outputs of all heads are put side by side, and a learned matrix $W_o$ mixes them:

$$\text{head}_i = \operatorname{attend}(x W_q^i,\; x W_k^i,\; x W_v^i) \qquad \text{output} = [\text{head}_0, \text{head}_1, \dots]\; W_o$$

This is **multi-head attention**.

A read-out behind $W_o$ can still use one head and ignore the others.

The $h$ heads share the width of the tokens, $d_{\text{model}}$: each has the width $d = d_{\text{model}} / h$, and its scores are divided by $\sqrt{d}$. So two heads have as many learned numbers as one wide head; each of them is narrower, with a table of weights of its own.
"""

# %% [markdown]
r"""
In code, all $W_q^i$ stand side by side in one matrix. So one product $x W_q$, of shape $(n, h \cdot d)$, holds the queries of all heads: first the $d$ columns of head 0, then those of head 1. `attend` works on the last two axes, so one call computes all heads, if they are an axis in front of the tokens: $(h, n, d)$. `view` gives the same numbers this shape in one step. Is it what we want?
"""

# %%
predict("view_alone")

# %%
x = 10.0 * torch.arange(3)[:, None] + torch.arange(8)  # 10 * token + column
figures.as_heads(x, x.view(2, 3, 4))

# %% [markdown]
r"""
Each colour is a token. Head 0 should hold columns 0 to 3 of all three tokens. It holds the two halves of token 0, and half of token 1. No error was raised. So first split the width alone, which gives $(n, h, d)$. Which step is left? (`x.unflatten(-1, (h, -1))` splits an axis, `x.transpose(i, j)` swaps two.)
"""

# %% [markdown] tags=["exercise:heads_apart"]
# Write the split and the step that is left, from $(\ldots, n, h \cdot d)$ to $(\ldots, h, n, d)$.

# %%
split = yours("heads_apart")
heads = split(x, 2)
figures.as_heads(x, heads)

# %% [markdown]
r"""
Now each head holds its own columns of every token.

On the way back, swap first, then join the last two axes.

Here is the whole layer (`nn.Linear` without bias multiplies by a learned matrix). It takes three inputs, since who asks, who is asked and what is mixed may differ; in self-attention all three are $x$:
"""

# %%
def merge(heads):  # from (..., h, n, d) to (..., n, h * d)
    # a swap only changes the order of reading: the columns of a token lie apart in memory now,
    # so view would raise an error; flatten copies them side by side
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
        # A mask (b, n, n) needs an axis for the heads: mask[:, None].
        # Without it b = h raises no error, and head i gets mask i.
        heads, weights = attend(q, k, v, mask=mask)
        if change is not None:  # in section 4 we change the weights by hand
            heads = change(weights) @ v
        return self.w_output(merge(heads)), weights


# %% [markdown]
r"""
## 3 · Train one head, and two

Our language has 24 nouns of four kinds: animals, places such as *street*, foods, and containers. Three last words fit each kind: an animal can be *tired*, *hungry* or *afraid*. All sentences have the form of ours, with two nouns of different kinds, at positions 1 and 6.

For the test we **hold out** pairs of words. For each noun we leave out one of its three last words: in training, *animal* never stands with *tired*, nor *street* with *wide*. So training shows none of our four sentences, but each of their words in others.
"""

# %%
# words (1728, 12), and the two right nouns of each sentence (1728, 2)
known = language.sentences(held_out=False, patterns="ours")  # the form of our four
held_out = language.sentences(held_out=True, patterns="ours")  # (864, 12), (864, 2)

# %% [markdown]
r"""
Each word is a number; the nouns are 0 to 23. `nn.Embedding` is a table with a learned row for each number. The model is one layer:
"""

# %%
class TwoQuestions(nn.Module):
    def __init__(self, n_heads):
        super().__init__()
        self.word = nn.Embedding(len(language.WORDS), 32)
        self.position = nn.Parameter(torch.randn(2, 32))  # a row for the first noun, one for the second
        self.attention = MultiHead(32, n_heads)
        self.read_out = nn.Linear(32, 2 * 24)  # two questions, 24 nouns

    def forward(self, words, **change):
        x = self.word(words)  # (b, 12, 32)
        last, nouns = x[:, -1:], x[:, [1, 6]]  # (b, 1, 32), (b, 2, 32)
        output, weights = self.attention(last, nouns + self.position, nouns, **change)
        # unflatten cuts the last axis, 48, into 2 questions and 24 nouns
        return self.read_out(output[:, 0]).unflatten(-1, (2, 24)), weights


# %% [markdown]
r"""
The conditions of the proof hold: two keys, a linear read-out that sees $z$ alone, and positions in the keys only. A score with such a key has a part for the noun and a part for its position, so a head can learn to prefer the first noun, whichever it is. For each question every noun gets a logit, and the largest is the answer. The difference of two logits is a straight line in $p$, so between two nouns one cut decides.
"""

# %%
def trained(n_heads, seed):
    torch.manual_seed(seed)
    model = TwoQuestions(n_heads)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    words, answers = known
    for _ in range(800):
        batch = torch.randint(len(words), (64,))
        logits, _ = model(words[batch])  # (64, 2, 24)
        loss = F.cross_entropy(logits.flatten(0, 1), answers[batch].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


models = {
    "one head": [trained(1, seed) for seed in range(3)],
    "two heads": [trained(2, seed) for seed in range(3)],
}

# %%
predict("unseen_pair")

# %% tags=["nbval-ignore-output"]
def both_right(said, answers):
    return (said == answers).all(-1).float().mean().item()


def of_seeds(name, words, answers):
    said = [model(words)[0].argmax(-1) for model in models.get(name, [])]
    return [both_right(one, answers) for one in said or [answers[:, :1]]]


print("both answers right   trained          held out")
shares = {}
for name in ("first noun twice", *models):
    shares[name] = of_seeds(name, *known), of_seeds(name, *held_out)
    one, other = (" ".join(f"{s:.2f}" for s in each) for each in shares[name])
    print(f"{name:21}{one:17}{other}")

# %% tags=["proof"]
for name, each in shares.items():
    low, high = {"one head": (0.5, 0.7), "two heads": (0.85, 1.01), "first noun twice": (0.49, 0.51)}[name]
    assert all(low < share < high for some in each for share in some)

# %% [markdown]
r"""
Naming the first noun twice is right in half of the sentences. At all three seeds, one head is right in six of ten. The proof allows three of four; we do not know why training stays below. Two heads are right nearly always, even for pairs that never met.

## 4 · Which head looks at what *it* means?

Our four sentences again, with the weights of the model of seed 0:
"""

# %% tags=["trained"]
opening = language.read(*lines)
two = models["two heads"][0]
weights = two(opening)[1][:, :, 0].detach()  # (4, 2 heads, 2 nouns)
is_animal = opening[:, [1, 6]] == opening[0, 1]  # (4, 2)
p = (weights * is_animal[:, None]).sum(-1)  # (4, 2): weight on animal
figures.square(dict(zip(corners, p.tolist(), strict=True)), cuts=False)

# %% tags=["proof"]
looks = p.round().int().tolist()
assert sorted(map(tuple, looks)) == [(0, 0), (0, 1), (1, 0), (1, 1)]
assert (p - p.round()).abs().max() < 0.3

# %% [markdown]
r"""
Training found the four corners, although nothing in the loss asks for them. But four sentences can mislead, so measure the heads on all that were held out.
"""

# %% [markdown] tags=["exercise:looks_at"]
# How much weight does each head put on a word, in the mean over all sentences? `weights` is $(b, h, m)$; `target` is $(b, m)$, True at that word; return $(h,)$.

# %% tags=["nbval-ignore-output"]
words, answers = held_out
weights = two(words)[1][:, :, 0].detach()  # (864, 2, 2)
acted, it_means = (words[:, [1, 6]] == answers[:, i, None] for i in (0, 1))  # each True at one noun
on_first, on_it = (yours("looks_at")(weights, target) for target in (acted, it_means))
head = on_it.argmax().item()
print("mean weight on the noun   head 0   head 1")
print(f"that acted                {on_first[0]:.2f}     {on_first[1]:.2f}")
print(f"that it means             {on_it[0]:.2f}     {on_it[1]:.2f}")

# %% tags=["proof"]
assert on_it[head] > 0.9 and abs(on_it[1 - head] - 0.5) < 0.05 and on_first[1 - head] > 0.9

# %% [markdown]
r"""
One head puts more than 0.9 of its weight on the noun that *it* means, and the other on the noun that acted. The means of about 0.5 are no doubt of a head: in half of the sentences *it* means the noun that acted.

But a weight that goes along with an answer need not be its cause. So exchange the two weights by hand, and nothing else.
"""

# %%
predict("by_hand")

# %% tags=["nbval-ignore-output"]
other_noun = words[:, [1, 6]].sum(-1, keepdim=True) - answers  # both nouns' numbers, less the answer's


def changed(number):
    """For each question, how often the answer becomes the other noun."""

    def exchange(weights):  # (b, h, 1, 2): in one head, the weights of the two nouns
        moved = weights.clone()
        moved[:, number] = weights[:, number].flip(-1)
        return moved

    logits, _ = two(words, change=exchange)
    return (logits.argmax(-1) == other_noun).float().mean(0).tolist()


print("weights exchanged in       who acted changes   what is it changes")
table = {"the head for what it means": changed(head), "the other head": changed(1 - head)}
for name, (acted, it) in table.items():
    print(f"{name:27}{acted:.2f}                {it:.2f}")

# %% tags=["proof"]
(same_acted, moved_it), (moved_acted, same_it) = table.values()
assert min(moved_it, moved_acted) > 0.9 and max(same_acted, same_it) < 0.1

# %% [markdown]
r"""
The answer follows the weight: in the head that looks at what *it* means, the exchange changes *what is it* nearly always, and *who acted* hardly ever. The second line is the **control**: in the other head it is the other way round. So each head causes one answer.

## In real work

torch's layer is `nn.MultiheadAttention`. With its matrices our layer should agree. Ours gets the causal mask of part 03; torch's gets it, too, and then `~causal(7)`, its opposite.
"""

# %%
torch.manual_seed(0)
theirs = nn.MultiheadAttention(24, 3, bias=False, batch_first=True)  # else the first axis is the tokens
ours = MultiHead(24, 3)
matrices = [*theirs.in_proj_weight.chunk(3), theirs.out_proj.weight]  # torch keeps three in one
ours.load_state_dict(dict(zip(ours.state_dict(), matrices, strict=True)))
batch = torch.randn(2, 7, 24)
expected, _ = ours(batch, batch, batch, mask=causal(7))
for name, mask in {"causal(7)": causal(7), "~causal(7)": ~causal(7)}.items():
    output, _ = theirs(batch, batch, batch, attn_mask=mask)  # _: weights, by default the mean over heads
    differ = (output - expected).abs().amax((0, 2))  # for each word, the largest difference
    print(f"{name:11}", *(f"{number:.2f}" for number in differ.tolist()))

# %% [markdown]
r"""
**"True means: may look."** In torch's function it does; in this layer **True hides**. So with `causal(7)` each word sees only later words, and the last one sees none: its output is nan. The other six look healthy, and differ by more than 0.6. With `~causal(7)` both layers agree.

## To carry away

In `carry/attention.py`, your two steps and the way back are functions:
"""

# %%
from carry import attention as carried

show_source(carried.split, carried.merge)

# %% [markdown]
r"""
`MultiHeadAttention` stands below them: our layer, with options that are off until a later part.

How can attention know what *it* means? The last word asks, and one head looks at the noun that this word fits. Now choose your own last word, for the file's layer with our matrices. (*bridge* never met *steep* in training.)
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

- Linear read-outs are cuts. Two cuts make three pieces on a line, and there are four pairs.
- Split the width, then swap the axes; back: swap, then join.
- To test a head, move its weights, with a control.
- In torch's layer, True hides.

**Sources.** Vaswani et al. 2017 (arXiv:1706.03762), section 3.2.2; the sentence is Uszkoreit's (2017), after Winograd (1972). [Evidence](evidence/04_multi_head_evidence.ipynb).

**Next**: [05a · Order](05a_order.ipynb): how does a head know which noun came first?
"""
