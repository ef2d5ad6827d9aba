# /// ideas
# [one_head]
# says = "one head gives one weight p and one mixture; linear read-outs that see it alone get at most three of the four sentences right"
# motive = "so all four pairs occur"
# shown = "Two cuts make three pieces"
# action = 'predict("four_pairs")'
#
# [two_heads]
# says = "two heads give two weights: a point in a square, where two cuts make four pieces"
# motive = "Now let the last word ask twice"
# shown = "figures.square(corners)"
# action = "Change a point"
#
# [multi_head]
# says = "multi-head attention: heads of width d = d_model / h, each with its own three matrices, side by side, mixed by W_o; scores are divided by the root of d"
# motive = "How do we compute several heads"
# shown = "\\text{head}_i = \\operatorname{attend}"
# action = "class MultiHead(nn.Module)"
#
# [split]
# says = "to split the heads, cut the width, then swap tokens and heads; a view straight to (h, n, d) mixes tokens, without an error"
# motive = "`view` gives that shape at once"
# shown = "x.view(2, 3, 4)"
# action = "check(heads_apart)"
#
# [merge]
# says = "to merge them, swap back, then join; a swap changes strides only, so `view` may refuse where `reshape` copies"
# motive = "On the way back"
# shown = "strides after the swap"
# action = 'yours("heads_apart")'
#
# [sum]
# says = "the output is the sum of what the heads write through their rows of W_o"
# motive = "What does $W_o$ do with the heads?"
# shown = "head 0 writes"
# action = "the first two numbers add up to the third"
#
# [cost]
# says = "at equal width more heads have as many learned numbers, and more tables of weights"
# motive = "What do more heads cost?"
# shown = "1,048,576"
# action = 'predict("more_heads")'
#
# [held_out]
# says = "held-out pairs: both words are trained, but never together; two heads get nearly all of these right, one head at most three of four"
# motive = "never meets one of the three last words"
# shown = "held out:"
# action = 'predict("unseen_pair")'
#
# [find]
# says = "to find what a head does, measure over many sentences how much weight it puts on the word in question"
# motive = "Four sentences can mislead"
# shown = "because *it* is the first noun in half of the sentences"
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
# motive = "Does a mask mean the same there?"
# shown = "~causal(7)"
# action = 'predict("torch_says")'
# ///

# %% [markdown]
r"""
{title}

*The animal did not cross the street because it was too tired.* What was too tired, the animal or the street? Now end the sentence with *wide*: one word has changed, and *it* means the other noun. How can attention know?

**Afterwards you can** say how much one head can tell, and prove it; write multi-head attention; find the head that looks at what *it* means, and test it by hand.

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

from carry import attention as carried
from lesson_lib.attention import attend
from lesson_lib.chapters.c04_multi_head import figures
from lesson_lib.chapters.c04_multi_head import pronouns as language
from lesson_lib.course import *
from lesson_lib.masks import causal

_ = torch.manual_seed(0)
warm_up()

# %% [markdown]
r"""
We ask two questions. *Who acted?* That is the first noun of the sentence. *What is it?* That is the noun which the last word fits: an animal can be tired, a street can be wide. In our small language a street may cross an animal, too. So two orders and two last words make four sentences:
"""

# %%
lines = [
    f"the {first} did not cross the {second} because it was too {last}"
    for first, second in (("animal", "street"), ("street", "animal"))
    for last in ("tired", "wide")
]
print("first     second    last      who acted   what is it")
for line in lines:
    first, second, last = (line.split()[i] for i in (1, 6, 11))
    it = "animal" if last == "tired" else "street"
    print(f"{first:10}{second:10}{last:10}{first:12}{it}")

# %% [markdown]
r"""
The last two columns hold another pair of answers in every line, so all four pairs occur.

## 1 · One head, two questions

A **head** is attention with one table of weights. Let the last word be its query, and let the two nouns be its only keys. The head gives *animal* the weight $p$ and *street* the rest. Its output is a mixture of their values:

$$z = p\, v_{\text{animal}} + (1-p)\, v_{\text{street}}$$

Each sentence may have its own $p$. But the value of a noun is the same wherever the noun stands.

A **read-out** turns the mixture into an answer; each question has its own. Ours are **linear**: a read-out has a row of learned numbers $a$ and a learned number $b$, and answers *animal* where $a \cdot z + b$ is positive, *street* where it is negative.
"""

# %%
predict("four_pairs")

# %% [markdown]
r"""
Put the mixture into the read-out:

$$a \cdot z + b = p\,(a \cdot v_{\text{animal}} - a \cdot v_{\text{street}}) + (a \cdot v_{\text{street}} + b)$$

This is a straight line in $p$, so its sign changes at most once. Therefore a read-out is a **cut**: on one side of it the answer is *animal*, on the other side *street*. Here are two cuts. Change their positions, and run the cell again:
"""

# %%
figures.pieces(acted=0.3, it=0.6)

# %% [markdown]
r"""
Two cuts make three pieces, and in each piece both answers stay the same. But there are four pairs of answers, so one pair has no piece. Here it is *street, animal*; with other cuts it is another pair. **Of our four sentences, one head gets at most three right, whatever it has learned.**

**"A wider head could do it."** No. However many numbers the values have, $p$ is one number, and $z$ stays on one line.

The proof has three conditions. First, the read-outs are linear. Second, they see nothing but $z$, in which only the two nouns are mixed. Third, the values do not tell where a noun stands. Without them, one head can do more ([evidence](evidence/04_multi_head_evidence.ipynb)).

## 2 · Two heads

Now let the last word ask twice, with two heads. Head 0 gives *animal* the weight $p_0$, head 1 gives it the weight $p_1$. Two numbers are a point in a square. Let the read-out for *who acted* see head 0 only, and the one for *what is it* head 1 only. Then the first cut is vertical, and the second is horizontal:
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
Two cuts of a square make four pieces, one for each pair of answers. Each dot is a sentence, named by its two nouns and its last word. In this choice of weights, head 0 looks at the noun that acted, and head 1 at the noun that *it* means; so each sentence lies in the piece of its own answers. Change a point, and see which answer becomes wrong. In section 4 we shall see which weights training finds.

How do we compute several heads? Each head $i$ has its own three matrices. The outputs of all heads are put side by side, and one more learned matrix, $W_o$, mixes them:

$$\text{head}_i = \operatorname{attend}(x W_q^i,\; x W_k^i,\; x W_v^i) \qquad \text{output} = [\text{head}_0, \text{head}_1, \dots]\; W_o$$

This is **multi-head attention**. The $h$ heads share the width of the tokens, which is called $d_{\text{model}}$: each head has the width $d = d_{\text{model}} / h$. So $W_q^i$ has the shape $(d_{\text{model}}, d)$, and the scores are divided by $\sqrt{d}$, the root of the head's own width.

The matrices $W_q^0, W_q^1, \dots$ are kept side by side, as one matrix $W_q$. So one product $x W_q$ gives the queries of all heads, in $h \cdot d$ columns: the first $d$ columns belong to head 0, the next $d$ to head 1. Keys and values are made in the same way.

`attend` works on the last two axes and takes all axes before them as a batch. So it computes all heads at once, if the heads are an axis before the tokens: $(h, n, d)$. We have $(n, h \cdot d)$. `view` gives that shape at once: it takes the numbers in their order, and moves none.
"""

# %%
predict("view_alone")

# %%
x = 10.0 * torch.arange(3)[:, None] + torch.arange(8)  # 10 * token + column
figures.as_heads(x, x.view(2, 3, 4))

# %% [markdown]
r"""
Each colour is a token. Head 0 should hold columns 0 to 3 of all three tokens. In fact it holds the two halves of token 0, and half of token 1. There was no error, and the shape is right. So take two steps: first cut the width, which gives $(n, h, d)$; then swap the axes of tokens and heads.
"""

# %% [markdown] tags=["exercise:heads_apart"]
# Write both steps: from $(\ldots, n, h \cdot d)$ to $(\ldots, h, n, d)$.

# %%
split = yours("heads_apart")
heads = split(x, 2)
figures.as_heads(x, heads)

# %% [markdown]
r"""
Now each head holds its own four columns of every token. (`yours` gives your function, or the course's until yours has passed its check.)

On the way back, the outputs of the heads must lie side by side again: swap first, then join the last two axes. This time `view` cannot do it:
"""

# %%
mixed = attend(heads, heads, heads).output  # (2, 3, 4), a new tensor
swapped = mixed.transpose(-2, -3)  # (3, 2, 4)
print("strides before the swap", mixed.stride())
print("strides after the swap ", swapped.stride())
try:
    swapped.view(3, 8)
except RuntimeError:
    print("view:    an error")
print("reshape:", tuple(swapped.reshape(3, 8).shape))

# %% [markdown]
r"""
Why? The numbers of a tensor lie in memory in one row. A **stride** says how far one step along an axis goes in this row. `transpose` moves no number: it only swaps two strides, here 12 and 4. `view` moves no number, either, so it needs one stride for the joined axis. There is none: after the swap, the next number of a head lies 1 further, but the next head begins 12 further, and not 4. So `view` raises an error. `reshape` copies the numbers into a new row.

Here is the whole layer. `nn.Linear` holds a learned matrix and multiplies by it; `flatten(-2)` joins the last two axes, and copies like `reshape`.
"""

# %%
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


def merge(heads):  # from (..., h, n, d) to (..., n, h * d)
    return heads.transpose(-2, -3).flatten(-2)


# %% [markdown]
r"""
What does $W_o$ do with the heads? Its first $d$ rows meet head 0, the next $d$ rows meet head 1. So the product is a sum, with one term for each head:

$$[\text{head}_0, \text{head}_1]\; W_o = \text{head}_0 W_o^0 + \text{head}_1 W_o^1$$

To see it, we set one head's output to 0 and look at what the other one writes for token 0:
"""

# %%
layer = MultiHead(d_model=8, n_heads=2)
for name, loud in {"head 0 writes": (1, 0), "head 1 writes": (0, 1), "both": (1, 1)}.items():
    row = layer.w_output(merge(mixed * torch.tensor(loud)[:, None, None]))[0]
    print(f"{name:14}", *(f"{number:6.2f}" for number in row.tolist()))

# %% [markdown]
r"""
In each column the first two numbers add up to the third. So the output is the sum of what the heads write, and every head writes into all eight columns.

What do more heads cost?
"""

# %%
predict("more_heads")

# %%
words = torch.randn(1, 100, 512)
for n_heads in (1, 8):
    wide = MultiHead(512, n_heads)
    learned = sum(p.numel() for p in wide.parameters())
    weights = wide(words, words, words)[1].numel()
    print(f"{n_heads} x {512 // n_heads:<4}{learned:,} learned numbers, {weights:,} weights")

# %% [markdown]
r"""
Both layers have $4 \cdot 512^2 = 1{,}048{,}576$ learned numbers. For 100 words, a table of weights has $100 \cdot 100$ entries, and eight heads have eight such tables. So **"Eight heads cost eight times as much"** is true of the weights only.

## 3 · Train one head, and two

Our language has 24 nouns of four kinds, and each kind has three last words that fit it:
"""

# %%
for kind, (nouns, last) in language.KINDS.items():
    print(f"{kind:12}{nouns:38}{last}")

# %% [markdown]
r"""
Every sentence has two nouns of different kinds, and one of four patterns. What do we keep for the test? Not words: a word that training never shows keeps its random numbers, and nobody could know what fits it. We **hold out** pairs. Each noun never meets one of the three last words of its kind in training: *animal* never meets *tired*, and *street* never meets *wide*. So none of our four sentences is trained, but every word of them is, in other sentences.
"""

# %%
known = language.sentences(held_out=False)
held_out = language.sentences(held_out=True)
for name, (words, answers) in {"trained": known, "held out": held_out}.items():
    print(f"{name + ':':10}{len(words):,} sentences, such as: {language.text(words[0])}")

# %% [markdown]
r"""
`words` holds a number for each of the twelve words, `answers` the numbers of the two nouns that are right. `nn.Embedding` is a table with a learned row for each number. The model is one layer:
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
        return self.read_out(output[:, 0]).unflatten(-1, (2, 24)), weights


# %% [markdown]
r"""
The three conditions of the proof hold here. The keys tell the position, so that a head can find the first noun. For each question, the read-out gives 24 scores, and the largest one is the answer. Both models start from the same numbers, and see the same sentences in 800 steps:
"""

# %%
def train(n_heads):
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


one, two = train(1), train(2)

# %%
predict("unseen_pair")

# %% tags=["nbval-ignore-output"]
def right(said, answers):
    return (said == answers).all(-1).float().mean().item()


print("both answers right   trained   held out")
shares = {}
for name, model in {"one head": one, "two heads": two}.items():
    shares[name] = [right(model(words)[0].argmax(-1), answers) for words, answers in (known, held_out)]
shares["first noun twice"] = [right(answers[:, :1], answers) for _, answers in (known, held_out)]
for name, both in shares.items():
    print(f"{name:21}{both[0]:.2f}      {both[1]:.2f}")

# %% tags=["proof"]
assert max(shares["one head"]) < 0.75 and shares["first noun twice"] == [0.5, 0.5]
assert min(shares["two heads"]) > 0.93

# %% [markdown]
r"""
Naming the first noun twice is right in half of the sentences. One head does better, but it stays below 0.75, as the proof demands. Why does the proof hold for 24 scores? To be right, the score of the right noun must be larger than that of the other noun. Their difference is again $a \cdot z + b$, so it is one cut. And all sentences come in fours like ours.

Two heads are right nearly always, even for pairs that never met.

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
Training found the four corners. One head looks at the noun that acted, the other at the noun that *it* means: when *tired* becomes *wide*, its weight goes from *animal* to *street*. Nothing in the loss asks for this division; with another seed it may come out less clean.

Four sentences can mislead. So measure it on all held-out sentences.
"""

# %% [markdown] tags=["exercise:looks_at"]
# How much weight does each head put on the keys that you look for?

# %% tags=["nbval-ignore-output"]
words, answers = held_out
weights = two(words)[1].detach()
it_means = words[:, :-1] == answers[:, 1:]  # True at the noun that *it* means
on_it = yours("looks_at")(weights, it_means)
head = on_it.argmax().item()
print(f"weight on what it means: head 0 {on_it[0]:.2f}, head 1 {on_it[1]:.2f}")

# %% tags=["proof"]
assert on_it[head] > 0.85 and abs(on_it[1 - head] - 0.5) < 0.05

# %% [markdown]
r"""
One head puts more than 0.85 of its weight there. The other has about 0.5: it looks at the first noun, and gets a half because *it* is the first noun in half of the sentences. `head` is now the number of the head that looks at what *it* means.

Does the answer come from this head? A weight that goes along with an answer need not be its cause. So change the weights by hand, and leave everything else as it is.
"""

# %%
predict("by_hand")

# %% [markdown] tags=["exercise:swap_weights"]
# Exchange two weights of one head. The numbers `head`, `one` and `other` are counted from 0.

# %% [markdown]
r"""
The first 864 held-out sentences have our pattern, with the nouns at positions 1 and 6. The layer calls `change` with its weights and goes on with what `change` returns:
"""

# %% tags=["nbval-ignore-output"]
swap = yours("swap_weights")
words, answers = held_out[0][:864], held_out[1][:864]
other_noun = words[:, [1, 6]].sum(-1, keepdim=True) - answers  # of two numbers, the one that is no answer


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
The answer follows the weight. After the exchange in the head that looks at what *it* means, *what is it* changes in more than nine of ten sentences, and *who acted* hardly ever. The second line is the **control**, the same exchange in the other head: there *who acted* changes, and *what is it* hardly ever does. So each answer is caused by the weights of its own head.

## In real work

torch has this layer as `nn.MultiheadAttention`. Does a mask mean the same there? Give it the causal mask of part 03:
"""

# %%
predict("torch_says")

# %% [markdown]
r"""
We put torch's matrices into our layer (`in_proj_weight` holds the first three, one below the other). So both layers should agree. For each of seven words we print how far they differ:
"""

# %%
theirs, ours = nn.MultiheadAttention(24, 3, bias=False, batch_first=True), MultiHead(24, 3)
matrices = [*theirs.in_proj_weight.chunk(3), theirs.out_proj.weight]
ours.load_state_dict(dict(zip(ours.state_dict(), matrices, strict=True)))
batch = torch.randn(2, 7, 24)
expected, _ = ours(batch, batch, batch, mask=causal(7))
for name, mask in {"causal(7)": causal(7), "~causal(7)": ~causal(7)}.items():
    output, _ = theirs(batch, batch, batch, attn_mask=mask)
    differ = (output - expected).abs().amax((0, 2))  # (7,)
    print(f"{name:11}", *(f"{number:.2f}" for number in differ.tolist()))

# %% [markdown]
r"""
In `nn.MultiheadAttention`, **True hides**. With `causal(7)` each word sees only later words. The last word has none, so all its scores are $-\infty$, and its output is nan. The other outputs are wrong and look healthy. `~` turns every True into False, and every False into True; then both layers agree.

## To carry away

The file `carry/attention.py` begins with `attend` of part 03. Its layer has the same steps as ours:
"""

# %%
show_source(carried.MultiHeadAttention)

# %% [markdown]
r"""
Its other arguments belong to later parts: heads that share keys, numbers added to the scores, dropout, and torch's fast function in place of the table of weights. The names of the matrices are ours, so it can take over what was trained here.

We asked how attention can know what *it* means. The last word asks, and one head looks at the noun that it fits. Now put in your own words, from the list in section 3: two nouns of different kinds, and a last word that fits one of them.
"""

# %%
first, second, last = "horse", "bridge", "steep"  # your words

sentence = f"the {first} did not cross the {second} because it was too {last}"
again = TwoQuestions(2)
again.attention = carried.MultiHeadAttention(32, 2)
again.load_state_dict(two.state_dict())
said = [language.NOUNS[i] for i in again(language.read(sentence))[0][0].argmax(-1)]
it = first if language.KIND[last] == language.KIND[first] else second
for question, named, answer in zip(("who acted", "what is it"), said, (first, it), strict=True):
    print(f"{question:12}{named:8}{'right' if named == answer else f'wrong: it is {answer}'}")

# %% [markdown]
r"""
**To remember.** One head gives one mixture; what is to be told apart needs several.

- Two cuts, three pieces, four pairs; two weights are a point in a square.
- Project, split, attend, merge, project; cut before you swap, swap before you join.
- The output is a sum of what the heads write; more heads cost only tables of weights.
- To test a head, move its weights, with a control.
- In `nn.MultiheadAttention` True hides.

**Sources.** Vaswani et al. 2017 (arXiv:1706.03762), section 3.2.2; the sentence is Uszkoreit's (2017), after Winograd (1972). [Evidence](evidence/04_multi_head_evidence.ipynb).

**Next**: [05a · Order](05a_order.ipynb): how does a head know which noun came first?
"""
