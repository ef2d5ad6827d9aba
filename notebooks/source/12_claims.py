# /// ideas
# [zero_score]
# says = "a score of 0 is a score like any other: the stranger gets a weight"
# motive = "Would you notice"
# shown = "softmax(-1))"
# action = 'predict("strangers_weight")'
#
# [letter]
# says = "a sentence can be coded to the letter: a program adds nothing that is meant"
# motive = "A program is not kind"
# shown = "weights_from_values"
# action = "to_the_letter"
#
# [silence]
# says = "it runs is no proof: where all axes are equal, wrong products fit"
# motive = "Does anything complain"
# shown = 'examples["square"]'
# action = 'predict("square_errors")'
#
# [irregular]
# says = "give every axis a length of its own"
# motive = "since every axis has the length 4"
# shown = '"irregular"'
# action = 'predict("billion_fails")'
#
# [extremes]
# says = "try the extremes: huge scores, and a query that may look at nothing"
# motive = "where it might break"
# shown = '"nobody"'
# action = 'predict("billion_fails")'
#
# [invariance]
# says = "without a right answer: change what must not matter, and look whether anything moves"
# motive = "nothing to compare with"
# shown = "moved_by("
# action = "moved_by_hidden"
#
# [refute]
# says = "say what would refute a sentence, before you look"
# motive = "How does a sentence become"
# shown = "Say what would refute it"
# action = 'predict("what_refutes")'
#
# [number]
# says = "a claim becomes a function that gives a number, and one changed thing gives its condition"
# motive = "a function whose number can say yes or no"
# shown = "share(x, one, one)"
# action = "share_on_itself"
#
# [kind]
# says = "read kindly first: of 95 rows 75 hold, 16 with a condition, two are false"
# motive = "What did the five texts get right"
# shown = "LedgerExplorer"
# action = 'predict("verdict_of_zero")'
#
# [condition]
# says = "a verdict is read with its reason: hidden values must be finite, for 0 times inf is nan"
# motive = "It holds, so it always works"
# shown = "torch.inf"
# action = 'predict("infinite_value")'
#
# [polarity]
# says = "which way round is a mask meant? change the padding, and look"
# motive = "True has two meanings"
# shown = "key_padding_mask"
# action = "Say first"
# ///

# %% [markdown]
r"""
{title}

Five texts stand behind this course. One of them, notes on a lecture, says of a graph's nodes that no edge joins:

> 既然没有关系，我们就不需要再去计算它们的 attention score，直接设为 0 即可。
>
> Since they are not related, we need not compute their attention score any more; set it to 0 directly, and that is all.

You code it. Would you notice what you have done?

**Afterwards you can** code a sentence to the letter and see what it does; test a function without knowing its right answer; turn a claim into a number.

{about}

<details><summary>中文摘要 · Chinese</summary>
五篇中文文章里的论断,逐一查证,写成九十五行。这一课先把其中几句话逐字写成代码:程序不报错,结果却可能悄悄错了。然后学习不知道正确答案时怎样检验一个函数,怎样把下一篇文章里的一句话变成一个数。
</details>
"""

# %% tags=["imports"]
import torch
import torch.nn.functional as F
from torch import nn

from lesson_lib.attention import attend
from lesson_lib.chapters.c12_claims import literal
from lesson_lib.chapters.c12_claims.ledger_explorer import LedgerExplorer
from lesson_lib.claims import page, sources
from lesson_lib.course import *
from lesson_lib.masks import causal, padding

_ = torch.manual_seed(0)
warm_up()

# %%
predict("strangers_weight")

# %%
show(weights=torch.tensor([1.0, 1.0, 0.0]).softmax(-1))

# %% [markdown]
r"""
By hand: $e^0 / (e^1 + e^1 + e^0) = 1 / (2 \cdot 2.718 + 1) = «0.155»$, where nothing should go.

Is the sentence wrong? A kind reader knows what is meant: the score is not computed at all, and so 0 stands in the table of *weights*. That is right. A program is not kind. It does what the sentence says.

## 1 · To the letter
"""

# %% [markdown] tags=["exercise:to_the_letter"]
# Be the program, for a query (n, d), a key (m, d), a value (m, d_v) and a mask (n, m). Scores over the root of d; where `mask` is False, 0; softmax; mix.

# %% [markdown]
r"""
Here are three more sentences as functions. The first codes a slip: "q and v go through attention", where k is meant. The second says that where the mask is 0, "the scores are set to $-10^9$". The third is a line of code, in which softmax is `exp(x) / sum`. (`scaled_dot` gives the scores.)
"""

# %%
show_source(literal.weights_from_values, literal.minus_a_billion, literal.exp_over_sum)

# %% [markdown]
r"""
All four get four tokens of width 4 under a causal mask. Does anything complain?
"""

# %%
predict("square_errors")


# %%
def beside_attend(function, query, key, value, mask):
    right = attend(query, key, value, mask=mask).output
    try:
        made = function(query, key, value, mask)
    except (RuntimeError, ValueError):
        return "error"
    if made.isnan().any():
        return "nan"
    off = (made - right).abs().max().item()
    return "right" if off < 1e-4 else f"off by {off:.2f}"


four = {
    "scores of 0": yours("to_the_letter"),
    "weights from values": literal.weights_from_values,
    "minus a billion": literal.minus_a_billion,
    "exp over sum": literal.exp_over_sum,
}
examples = {"square": (*torch.randn(3, 4, 4), causal(4))}
for name, function in four.items():
    print(f"{name:20}", beside_attend(function, *examples["square"]))

# %% [markdown]
r"""
**"It runs, so it is right."** All four run. The first two are wrong, by up to «1.32» and «0.82», and nothing has said so. Values can stand in for keys here, since every axis has the length 4. The other two are right. Let us look where it might break:

- *irregular*: five queries, six keys, values of width 3, and the last key hidden from all. No two axes are equal.
- *long*: the same with queries 200 times as long, so that scores are huge.
- *nobody*: irregular again, and the first query may look at nothing.
"""

# %%
predict("billion_fails")

# %%
q, k, v = torch.randn(5, 4), torch.randn(6, 4), torch.randn(6, 3)
not_last = (torch.arange(6) < 5).expand(5, 6)
nobody = not_last.clone()
nobody[0] = False
examples["irregular"] = q, k, v, not_last
examples["long"] = 200 * q, k, v, not_last
examples["nobody"] = q, k, v, nobody

print(f"{'':20}", *(f"{name:12}" for name in examples))
for name, function in four.items():
    found = [beside_attend(function, *example) for example in examples.values()]
    print(f"{name:20}", *(f"{what:12}" for what in found))

# %% [markdown]
r"""
Read by rows. *Scores of 0* is wrong everywhere, and never complains. *Weights from values* raises an error as soon as values have another width than keys. *Minus a billion* is right until a query may look at nothing. Then all its scores are $-10^9$, softmax sees equal numbers, and hidden keys share the weight; `attend` gives 0 there. (*Scores of 0* gives that query the same mean of all six values, so «0.34» stands twice.) *Exp over sum* gives nan twice: exp overflows for huge scores, and a sum over nothing makes 0/0.

**Give every axis a length of its own, and try the extremes.**

## 2 · Without knowing the answer

*Scores of 0* was seen only beside `attend`. What if there is nothing to compare with? Then ask what must be true of **any** attention. For example: if a key that nobody may see is changed, no output may move.
"""

# %% [markdown] tags=["exercise:moved_by_hidden"]
# Write this test for any function `attention(query, key, value, mask)` whose last key is hidden from all: add 3 to the last key and to the last value, and return the largest change of the outputs.

# %%
moved_by = yours("moved_by_hidden")  # weights from values would stop with an error
for name in ("scores of 0", "minus a billion", "exp over sum"):
    moved = [moved_by(four[name], *examples[e]).item() for e in ("irregular", "nobody")]
    print(f"{name:20}", *(f"{far:.2f}" for far in moved))

# %% [markdown]
r"""
On *irregular*, the left column, the first is caught: its outputs depend on a hidden key. No right answer was needed. The other two pass. On *nobody*, the right column, they are caught, too. Of the value, which rose by 3, *minus a billion* hears a sixth, since six keys share the weight: «0.50». *Exp over sum* gives nan. (Beware: `nan > 0.01` is False in Python, so ask whether `moved < 0.01`.) A test can show a fault, and never that there is none.

## 3 · Your next text

How does a sentence become something that can be tested? Five steps, for the sentence *"a token attends most to itself"*:

1. **Cut**: one sentence, one claim. This is one.
2. **Say what would refute it**, before you look.
"""

# %%
predict("what_refutes")

# %% [markdown]
r"""
So we need a function whose number can say yes or no.
"""

# %% [markdown] tags=["exercise:share_on_itself"]
# Return the share of tokens whose largest weight is on themselves. `attend(...).weights` is the table (n, n).

# %% [markdown]
r"""
3. **Take the smallest case** in which it could fail, then a large one. The smallest has two tokens, and the second is longer.
4. **Change one thing** until true becomes false. We change the matrices that make queries and keys: first none, then random ones.
"""

# %%
share, one = yours("share_on_itself"), torch.eye(64)
two = torch.zeros(2, 64)
two[0, 0], two[1, 0] = 1, 3
print(f"two tokens, one longer {share(two, one, one):.3f}")
x = torch.randn(200, 64)
print(f"200 tokens, no matrix  {share(x, one, one):.3f}")
w_query, w_key = torch.randn(2, 64, 64) / 8
print(f"with random matrices   {share(x, w_query, w_key):.3f}")

# %% [markdown]
r"""
The two tokens refute it: the first has a product of 1 with itself and of 3 with the second. Of the 200 it is true, because they are all about 8 long: a product with itself is about 64, and one with another token varies around 0 by about 8. With random matrices each token is as likely as any other to be the largest, so we expect one of 200, and find two.

5. **Write down** the number, the condition and what you did not test. The condition: queries and keys are the tokens themselves, of like length. Not tested: trained matrices.

## 4 · The ledger

What did the five texts get right? Every claim of theirs is a row of a ledger: the text's words, a verdict, its reason, and the cell that decided it. There are four verdicts. A row *holds* as it stands, between sensible people. It holds *with a condition* where ordinary use can break it, and the text does not say when. It is *corrected* where no reading saves it, a slip of the pen included. It is *unsaid* where code or a picture claims nothing. Which verdict did the sentence about strangers get?
"""

# %%
predict("verdict_of_zero")

# %%
# page: the rows that fit a search; sources: the five texts
LedgerExplorer(page, verdicts=list(page().counts()), sources=sources())

# %% tags=["proof"]
assert list(page().counts().values()) == [75, 16, 2, 2]

# %% [markdown]
r"""
Of 95 rows 75 hold, 16 hold with a condition, two are corrected and two unsaid. Choose *corrected*: one is the slip of v for k, the other a link that opens another paper than it names.

Our first ledger had 22 corrected rows. One text says: "fully parallel, the longest sequence is 1 (any output refers to the information of the whole sequence)". False, we wrote, since sequences are longer than 1. Then a reader of Chinese asked whether the text says that. Its bracket tells what is 1: the way from any token to any output. The row holds. Most of the 22 were misread so: we had read as a program does.

**"It holds, so it always works."** One row says what *masked* means: attention looks only at what has been produced. It holds.
"""

# %%
predict("infinite_value")

# %%
values = torch.ones(3, 2)
values[2] = torch.inf
made = attend(torch.zeros(3, 2), torch.zeros(3, 2), values, mask=causal(3)).output
show(outputs=made)

# %% [markdown]
r"""
The first two tokens may not look at the third, yet they get $0 \cdot \infty$, which is nan. (The third may look, and gets $\infty$.) The row still holds, for the text may take it for granted that values are finite. Its reason adds that in a bracket. Read a verdict with its reason. All rows stand on a [page of their own](sources_claims.ipynb).

## In real work

In torch True has two meanings. The documentation says for `scaled_dot_product_attention` that True "should take part in attention", and for `key_padding_mask` of `nn.MultiheadAttention` that keys with True are ignored. Two texts have 7 and 5 tokens. The padding of the second is changed. Say first which lines end in 0.
"""

# %%
x = torch.randn(2, 7, 8)
far = x.clone()
far[1, 5:] += 100  # padding of the second text
real = padding(torch.tensor([7, 5]), 7)[:, 0]  # (2, 7), True = real
layer = nn.MultiheadAttention(8, 1, batch_first=True)


def by_function(x, mask):
    return F.scaled_dot_product_attention(x, x, x, attn_mask=mask[:, None])


def by_layer(x, mask):
    return layer(x, x, x, key_padding_mask=mask)[0]


print(f"{'moved by':25} 7 tokens  5 tokens")
for name, look in {"function": by_function, "layer": by_layer}.items():
    for what, mask in {"True = real": real, "True = padding": ~real}.items():
        gap = (look(far, mask) - look(x, mask)).abs()
        print(f"{name:9} {what:15} {gap[0].max():8.1f} {gap[1, :5].max():9.1f}")

# %% [markdown]
r"""
The last column is the text with padding. The function wants True for real tokens, the layer True for padding. Turned round, its five tokens look at nothing but padding, to which 100 was added (the layer's matrices make another number of it). In the full text all keys are hidden then: the function gives 0, and the layer nan.

## To carry away

Your test needs nothing but torch. (Here stands ours until yours has passed.) It takes any attention of one head, for example the one of `notebooks/carry/attention.py`:
"""

# %%
show_source(moved_by)

# %%
from carry import attention as carried


def by_carried(query, key, value, mask):
    return carried.attend(query, key, value, mask=mask)[0]


print(f"moved by {moved_by(by_carried, *examples['nobody']).item():.2f}")

# %% [markdown]
r"""
0.00: even the query that may look at nothing did not move.

## The sentence once more

"Set it to 0 directly" is right for a kind reader. As code it gave a stranger «0.155», and your test catches it, without knowing what is right.

**To remember.** Say what you would see if a sentence were false; then look.

- A program reads to the letter, and many faults run in silence.
- Test with unequal axes, with huge scores, and with a query that may look at nothing.
- Without a right answer: change what must not matter.
- Read kindly, and read the condition.

**Sources.** The five texts, who wrote them, [sources](sources.ipynb), and [all rows](sources_claims.ipynb). How the ledger was made, and a suite of fifteen such tests: [evidence](evidence/12_claims_evidence.ipynb).

**Next**: [13a](13a_today.ipynb), what today's models change; or the page [sources](sources.ipynb).
"""
