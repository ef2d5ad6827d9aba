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
五篇中文文章里的论断,逐一查证,写成九十五行。这一课先把其中几句话逐字写成代码:程序不报错,结果却可能悄悄错了。
然后学习不知道正确答案时怎样检验一个函数,怎样把下一篇文章里的一句话变成一个数。
</details>
"""

# %%
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.chapters.c12_claims import ledger_figures, literal
from lesson_lib.chapters.c12_claims.ledger_explorer import LedgerExplorer
from lesson_lib.checks import (
    check,
    hint,
    predict,
    properties,
    solution,
    warm_up,
    yours,
)
from lesson_lib.claims import page, sources
from lesson_lib.masks import causal, padding
from lesson_lib.show import show, show_source

_ = torch.manual_seed(0)
warm_up()

# %%
predict("strangers_weight")

# %%
show(weights=torch.tensor([1.0, 1.0, 0.0]).softmax(-1))

# %% [markdown]
r"""
By hand: $e^0 / (e^1 + e^1 + e^0) = 1 / (2 \cdot 2.718 + 1) = «0.155»$, where nothing should go.

Is the sentence wrong? A kind reader knows what is meant: not computed at all, so that 0 stands in the table of *weights*. That is right. A program is not kind.

## 1 · To the letter
"""

# %% [markdown] tags=["exercise:to_the_letter"]
# Be the program. Scores over the root of d; where `mask` is False, 0; softmax; mix.

# %% [markdown]
r"""
Three more: "q and v go through attention" (it should say k); "where the mask is 0, the scores are set to $-10^9$, to hide those places"; and a line of code, where softmax is `exp(x) / sum`.
"""

# %%
show_source(literal.weights_from_values)

# %%
show_source(literal.minus_a_billion)

# %%
show_source(literal.exp_over_sum)

# %%
predict("square_errors")

# %%
four = {
    "scores of 0": yours("to_the_letter"),
    "weights from values": literal.weights_from_values,
    "minus a billion": literal.minus_a_billion,
    "exp over sum": literal.exp_over_sum,
}
examples = literal.examples()
for name, function in four.items():
    print(f"{name:20}", literal.outcome(function, examples["square"]))

# %% [markdown]
r"""
**"It runs, so it is right."** All four run. The numbers are the largest difference from `attend`'s outputs: two are wrong in silence, and no shape objects, since every axis has the length 4.

Harder examples. **Irregular**: five queries, six keys, values of width 3, the last key hidden. **Long**: irregular, with queries times 200. **Nobody**: irregular, and the first query may look at nobody:
"""

# %%
print(f"{'':20}", *(f"{name:12}" for name in examples))
for name, function in four.items():
    seen = [literal.outcome(function, e) for e in examples.values()]
    print(f"{name:20}", *(f"{what:12}" for what in seen))

# %% [markdown]
r"""
By rows. *Scores of 0* is wrong everywhere. *Weights from values* is an error once values have another width than keys. *Minus a billion* lets hidden keys share the weight where nobody may be seen; `attend` gives 0 there, its convention. *Exp over sum* gives nan twice: exp overflows, and nobody to see is 0/0.

**Give every axis a length of its own, and try the extremes.** Now one of four raises an error, and one gives nan.

## 2 · Without knowing the answer

The other two are seen only beside `attend`. What if there is nothing to compare with? Ask what must be true of **any** attention. Say: change what is hidden, and nothing may move.
"""


# %%
def hears_hidden(attention, query, key, value, mask):
    """How far outputs move if the last key and value, hidden from all, change."""
    other_key, other_value = key.clone(), value.clone()
    other_key[-1] += 3
    other_value[-1] += 3
    after = attention(query, other_key, other_value, mask)
    return (attention(query, key, value, mask) - after).abs().max().item()


def by_attend(query, key, value, mask=None):
    return attend(query, key, value, mask=mask)


irregular = examples["irregular"]
for name in ("scores of 0", "minus a billion", "exp over sum"):
    print(f"{name:20} {hears_hidden(four[name], *irregular):.2f}")
assert hears_hidden(lambda *given: by_attend(*given).output, *irregular) == 0

# %% [markdown]
r"""
The first is caught: it hears what is hidden. No right answer was needed. (The last two need other tests.) `properties`, from this course's checks, asks fifteen such questions of any function: do weights sum to 1, does the order of the keys matter, are scores of $-10^{30}$ survived ...
"""

# %%
for name, function in four.items():
    found = properties(literal.maskless(function))  # may be called without
    print(f"{name:20} {found.diagnosis.split(':')[0]}")
    assert not found.passed
assert properties(by_attend).passed

# %% [markdown]
r"""
All four are found; `attend` passes. (The second never reads its keys, and is told so.)

## 3 · The ledger

Every claim of the five texts is a row of a ledger, with the text's own words, a verdict, and the cell that decided it.
"""

# %%
predict("how_many_hold")

# %%
assert list(page().counts().values()) == [75, 16, 2, 2]
LedgerExplorer(page, verdicts=list(page().counts()), sources=sources())

# %% [markdown]
r"""
| | verdict | rows | |
|---|---|---|---|
| ✓ | holds | «75» | as it stands, or in words that mean the same |
| ◐ | with a condition | «16» | true in part, or under a condition that the text does not name |
| ✗ | corrected | «2» | false even if read kindly |
| – | unsaid | «2» | code or a figure, which claims nothing |

Choose *corrected*: two slips, "q and v", and a link to another paper than its title names. Our first ledger had 22 such rows. Then readers of Chinese asked of each: *does the text say that?* Mostly we had read as a program does.

And what decided a row?
"""

# %%
ledger_figures.decided_by()

# %% [markdown]
r"""
Most rows were decided by computing. **A toy** is a small trained model of ours: it shows that something can happen, never that it must.

**"It holds, so it always works."** One row says what *masked* means: looking only at what has been produced. It holds.
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
$0 \cdot \infty$. In the row's reason stands a bracket: hidden values must be finite. Read the reason. All rows, with links to their cells, stand on the page [sources](sources.ipynb).

## 4 · Your next text

1. **Cut**: one sentence, one claim.
2. **Say what would refute it**, before you look.
3. Take the smallest case in which it could fail; then an irregular one.
4. Change one thing until true becomes false: that is the condition.
5. Write down the number, and what you did not test.

Try it: *"a token attends most to itself."* What would refute it?
"""

# %% [markdown] tags=["exercise:share_on_itself"]
# Return the share of tokens whose largest weight is on themselves.

# %%
x, one = torch.randn(200, 64), torch.eye(64)
w_query, w_key = torch.randn(2, 64, 64) / 8
share = yours("share_on_itself")
print(f"without projections {share(x, one, one):.3f}")
print(f"with random ones    {share(x, w_query, w_key):.3f}")

# %% [markdown]
r"""
So: with a condition. It is true where queries and keys are the tokens themselves, of like length: $x \cdot x$ is about 64 here, the largest of 199 others about 22. Random matrices leave chance, one token of 200: here none.

## In real work

torch's documentation says of a boolean mask, in `scaled_dot_product_attention`: True "should take part in attention"; in `nn.MultiheadAttention`: True is "not allowed to attend". Two texts of 7 and 5 tokens, and both readings:
"""

# %%
q, k, v = torch.randn(3, 2, 1, 7, 8)  # (b, heads, n, d)
real = padding(torch.tensor([7, 5]), 7)[:, None]  # (2, 1, 1, 7), True = real
for name, mask in {"True takes part": real, "True is hidden": ~real}.items():
    far = v.clone()
    far[1, :, 5:] += 100  # padding of the second text
    pair = [F.scaled_dot_product_attention(q, k, x, attn_mask=mask) for x in (v, far)]
    print(f"{name}: moved by {(pair[0][1] - pair[1][1]).abs().max():.1f}")
assert_close(pair[0][1], attend(q, k, v, mask=~real).output[1])

# %% [markdown]
r"""
One line tells which is meant: change the padding, and look whether anything moves. (Turned round, the second text sees nothing but padding, to which 100 was added.) Test so whatever you build or download.

## The sentence once more

"Set it to 0 directly": right for a kind reader; as code it gave a stranger «0.155». The ledger says *with a condition*: that 0 is meant in the table of weights.

**To remember.** Say what you would see if a sentence were false; then look.

- A program reads to the letter. Most faults run, and keep their shapes.
- Every axis another length; a row with nothing to see; huge scores.
- Without a right answer: change what must not matter.
- Of 95 rows two are false, «16» true in part or under a condition.

**Sources.** The five texts, who wrote them, all rows and errata: [sources](sources.ipynb). How the ledger was made: [evidence](evidence/12_claims_evidence.ipynb).

**Next**: [13a](13a_today.ipynb), what today's models change; or the page [sources](sources.ipynb).
"""
