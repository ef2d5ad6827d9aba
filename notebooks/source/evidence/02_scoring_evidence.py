# %% [markdown]
r"""
# 02 · Scoring: evidence

What parts [02a](../02a_soft_look_up.ipynb) and [02b](../02b_which_score.ipynb) say in a sentence, with protocol, seeds and numbers; where the idea comes from; and what the
course's sources claim of scores and of the worked example, each with its own sentence. S0 is an overview, S1 notes on position and cost, S2 a text on the Transformer with
code, S3 lecture notes, S4 a worked example with code. ✓ holds, ◐ holds with a condition, ✗ is corrected, – claims nothing. Each finding is computed in its cell or above it; were
it not true, the cell would end in an error.

<details><summary>中文摘要 · Chinese</summary>
本页给出第 2 章各个结论的依据:训练方案、三个随机种子、六个学习率、用时与内存;核回归是注意力的前身;以及各篇原文关于打分函数和七步例子的原句与判定。
</details>
"""

# %%
import math
import warnings

import torch
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.chapters.c02_scoring import figures
from lesson_lib.chapters.c02_scoring.experiments import look_up
from lesson_lib.claims import claim, verdict
from lesson_lib.device import on
from lesson_lib.experiments import devices, results
from lesson_lib.measure import cpu_seconds, peak_mib
from lesson_lib.scores import Additive, Bilinear, dot, scaled_dot
from lesson_lib.show import show, show_source
from lesson_lib.trace import EXAMPLE, example, in_pure_python, seven_steps

_ = torch.manual_seed(0)

# %% [markdown]
r"""
## 1 · The worked example, number by number

S0 and S4 compute the same three tokens (after Karim 2019). Every tensor that they print is compared.
"""

# %%
steps = seven_steps(**example())
printed_weights = torch.tensor(
    [
        [6.3379e-02, 4.6831e-01, 4.6831e-01],
        [6.0337e-06, 9.8201e-01, 1.7986e-02],
        [2.9539e-04, 8.8054e-01, 1.1917e-01],
    ]
)

# %% tags=["claim:steps-1"]
claim(
    "steps-1",
    {
        "keys": steps.keys.tolist() == [[0, 1, 1], [4, 4, 0], [2, 3, 1]],
        "queries": steps.queries.tolist() == [[1, 0, 2], [2, 2, 2], [2, 1, 3]],
        "values": steps.values.tolist() == [[1, 2, 3], [2, 8, 0], [2, 6, 3]],
        "scores": steps.scores.tolist() == [[2, 4, 4], [4, 16, 12], [4, 12, 10]],
        "all nine weights, to five digits": torch.allclose(
            steps.weights, printed_weights, rtol=1e-4
        ),
    },
)

# %% [markdown]
r"""
### Step 6 in one line, explained

The texts weigh all values for all queries at once: `values[:, None] * attn.T[:, :, None]`. `None` puts in an axis of length 1. Values $(3, 3)$ become $(3, 1, 3)$: key, any query, number.
The transposed weights $(3, 3)$ become $(3, 3, 1)$: key, query, any number. The product is $(3, 3, 3)$, **key first**; ours keeps the query first. Swap the first two axes, and the
two tables are equal.
"""

# %%
by_hand = torch.tensor([[0.0, 0.5, 0.5], [0.0, 1.0, 0.0], [0.0, 0.9, 0.1]])
theirs = steps.values[:, None] * by_hand.T[:, :, None]
ours = seven_steps(**example(), weights=by_hand).weighted_values
assert_close(theirs.transpose(0, 1), ours)
show(theirs_of_key_1=theirs[1], ours_of_query_0=ours[0])

# %% [markdown]
r"""
Their second block holds what all three queries take of key 1; our first block what query 0 takes of all three keys. Both sum to the same outputs: theirs over the first axis, ours over the
second. The weights here are those "approximated for readability". Are they rounded?
"""

# %%
rounded = (10 * steps.weights).round() / 10
printed_step_6 = torch.tensor(
    [
        [[0.0, 0, 0], [0, 0, 0], [0, 0, 0]],
        [[1, 4, 0], [2, 8, 0], [1.8, 7.2, 0]],
        [[1, 3, 1.5], [0, 0, 0], [0.2, 0.6, 0.3]],
    ]
)
show(rounded=rounded, sums=rounded.sum(-1), outputs_by_hand=theirs.sum(0))

# %% tags=["claim:steps-2"]
claim(
    "steps-2",
    {
        "the hand-made weights give step 6 as printed": torch.allclose(
            theirs, printed_step_6
        ),
        "and the outputs as printed": torch.allclose(
            theirs.sum(0), torch.tensor([[2.0, 7, 1.5], [2, 8, 0], [2, 7.8, 0.3]])
        ),
        "rows 2 and 3 are roundings": torch.allclose(rounded[1:], by_hand[1:]),
        "row 1 is none; rounded, it would sum to 1.1": abs(
            rounded[0].sum().item() - 1.1
        )
        < 1e-6,
    },
)

# %% [markdown]
r"""
S4 leaves outputs 2 and 3 to the reader. By hand: query 2 is $[2, 2, 2]$, its scores are 4, 16, 12, its weights 0.000006, 0.982, 0.018, so output 2 is nearly value 2,
$[2, 8, 0]$, pulled a little towards $[2, 6, 3]$: $[2.00, 7.96, 0.05]$. Exactly, in pure Python, as S4 does it (with the maximum subtracted):
"""

# %%
printed = [
    [1.9366210616669624, 6.683105308334811, 1.5950684074995565],
    [1.9999939663351456, 7.9639915951322156, 0.0539764053125496],
    [1.9997046127769653, 7.759892254657784, 0.3583892946751152],
]
plain = in_pure_python(**EXAMPLE)
difference = max(
    abs(a - b)
    for row, other in zip(plain, printed, strict=True)
    for a, b in zip(row, other, strict=True)
)
in_torch = seven_steps(**example(torch.float64)).outputs
gap = (in_torch - torch.tensor(printed, dtype=torch.float64)).abs().max()
show_source(in_pure_python)

# %% tags=["claim:steps-3"]
claim(
    "steps-3",
    {
        "all nine numbers agree to 1e-12": difference < 1e-12,
        "so do torch's in float64": gap < 1e-12,
    },
)

# %% [markdown]
r"""
`exp(x) / sum(exp(x))` is the definition, and on a machine it fails. In Python, `math.exp(709.79)` raises an error; two scores of 709.5 do not even raise one: each power fits into a float, their sum is
infinity, and a finite number divided by infinity is 0. In torch it is worse, since infinity divided by infinity is nan:
"""


# %%
def by_definition(scores):
    return scores.exp() / scores.exp().sum()


powers = [math.exp(709.5), math.exp(709.5)]
in_python = [power / sum(powers) for power in powers]
# the first score at which exp is infinite, or so large that the sum is
too_large = {torch.float32: 88.73, torch.float16: 11.09}
over = [torch.tensor([s, 0.0], dtype=t) for t, s in too_large.items()]
under = [torch.tensor([s - 0.02, 0.0], dtype=t) for t, s in too_large.items()]
small = torch.tensor([1.0, 2.0, 3.0])

# %% tags=["claim:steps-4"]
findings = {
    "equal for small scores": torch.allclose(by_definition(small), small.softmax(-1)),
    "709.5 twice gets the weights 0 and 0 in Python": in_python == [0.0, 0.0],
    "nan in float32 from 88.73, in float16 from 11.09": all(
        by_definition(x).isnan().any() for x in over
    ),
    "no nan just below": all(by_definition(x).isfinite().all() for x in under),
    "none with the maximum subtracted": all(
        x.softmax(-1).isfinite().all() for x in over
    ),
}
claim("steps-4", findings)

# %% tags=["claim:steps-5"]
shape = attend(torch.randn(7, 3), torch.randn(7, 3), torch.randn(7, 11)).output.shape
claim(
    "steps-5",
    {"7 tokens and values of width 11 give outputs (7, 11)": shape == (7, 11)},
)

# %% [markdown]
r"""
torch's layer, `nn.MultiheadAttention`, projects, scales, attends, and projects once more with a matrix $W_o$. To get the worked example out of it, undo four things: the scale (multiply
`w_query` by $\sqrt4$, since the layer's width is 4); the width (pad the matrices from 4 × 3 to 4 × 4); the biases (leave them out); $W_o$ (make it the identity). The layer stores its matrices transposed.
"""

# %%
layer = torch.nn.MultiheadAttention(4, 1, bias=False)
square = {
    name: torch.nn.functional.pad(matrix, (0, 1)).T
    for name, matrix in example().items()
    if name != "x"
}
with torch.no_grad():
    stacked = [2 * square["w_query"], square["w_key"], square["w_value"]]
    layer.in_proj_weight.copy_(torch.cat(stacked))
    layer.out_proj.weight.copy_(torch.eye(4))
    # query, key, value: in this order
    from_layer, _ = layer(steps.inputs, steps.inputs, steps.inputs)
biased = dict(torch.nn.MultiheadAttention(4, 1).named_parameters())

# %% tags=["claim:steps-6"]
claim(
    "steps-6",
    {
        "with all four undone, torch's layer gives the example's outputs": torch.allclose(
            from_layer[:, :3], steps.outputs, atol=1e-5
        ),
        "it has a last matrix, W_o": "out_proj.weight" in biased,
        "a bias on queries, keys and values": biased["in_proj_bias"].shape == (12,),
        "and one on the last map": biased["out_proj.bias"].shape == (4,),
    },
)

# %% tags=["claim:steps-7"]
scaled = attend(steps.queries, steps.keys, steps.values).output
claim(
    "steps-7",
    {
        "the example is attend with plain dot products": torch.allclose(
            attend(steps.queries, steps.keys, steps.values, score=dot).output,
            steps.outputs,
        ),
        "dividing by sqrt(3) moves an output by more than 0.1": (scaled - steps.outputs)
        .abs()
        .max()
        > 0.1,
    },
)

# %% [markdown]
r"""
S4 names three ways to draw the first weights: Gaussian, Xavier's and Kaiming's. All three keep them small, by the width that comes in:
"""

# %%
width = 256
drawn = {
    "Gaussian": torch.nn.init.normal_(torch.empty(width, width), std=0.02),
    "Xavier": torch.nn.init.xavier_uniform_(torch.empty(width, width)),
    "Kaiming": torch.nn.init.kaiming_normal_(torch.empty(width, width)),
}
deviation = {name: matrix.std().item() for name, matrix in drawn.items()}
for name, found in deviation.items():
    print(f"{name:9} standard deviation {found:.3f}")

# %% tags=["claim:steps-8"]
claim(
    "steps-8",
    {
        "Xavier: one over the root of the width, 1/16": abs(
            16 * deviation["Xavier"] - 1
        )
        < 0.02,
        "Kaiming: the root of two over the width": abs(
            deviation["Kaiming"] * (width / 2) ** 0.5 - 1
        )
        < 0.02,
        "the example's whole numbers reach a score of 16": steps.scores.max() == 16,
        "and a weight of .98": round(steps.weights.max().item(), 2) == 0.98,
    },
)

# %% tags=["claim:steps-9"]
batch = torch.randn(2, 3, 5)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # .T of more than two axes is deprecated
    turned = batch.T
claim(
    "steps-9",
    {
        "for two axes .T is .mT": torch.equal(batch[0].T, batch[0].mT),
        "for a batch .mT swaps the last two axes": batch.mT.shape == (2, 5, 3),
        "and .T turns all of them round": turned.shape == (5, 3, 2),
        "None puts in an axis of length 1": batch[0][:, None].shape == (3, 1, 5),
    },
)

# %% [markdown]
r"""
## 2 · Self-attention and scores
"""

# %% tags=["claim:self-2"]
x = torch.randn(5, 8)
by_torch = torch.nn.functional.scaled_dot_product_attention(x, x, x)
claim(
    "self-2",
    {
        "attend(x, x, x) is torch's self-attention of x": torch.allclose(
            attend(x, x, x).output, by_torch, atol=1e-6
        )
    },
)

# %% [markdown]
r"""
Without projections a token is its own best match. Scores are symmetric then; weights are not, since each row is divided by a sum of its own:
"""

# %%
words = ["the", "cat", "sleeps"]
tokens = torch.nn.functional.normalize(torch.randn(3, 8), dim=-1)
w_query, w_key = torch.randn(8, 8), torch.randn(8, 8)
same, projected = dot(tokens, tokens), dot(tokens @ w_query, tokens @ w_key)
figures.word_scores(words, same, projected)

# %% tags=["claim:self-1"]
even = torch.nn.functional.normalize(x, dim=-1)
prefers = attend(even, even, x).weights.argmax(-1)
table = attend(x, x, x).weights
claim(
    "self-1",
    {
        "unprojected scores are symmetric": torch.allclose(dot(x, x), dot(x, x).mT),
        "the weights made of them are not": not torch.allclose(table, table.mT),
        "with tokens of equal length each token prefers itself": torch.equal(
            prefers, torch.arange(5)
        ),
        "projected scores are not symmetric": not torch.allclose(
            projected, projected.mT
        ),
    },
)

# %% tags=["claim:score-2"]
one_hot, price = torch.eye(3), torch.tensor([[10.0], [20.0], [40.0]])
claim(
    "score-2",
    {
        "sharp scores give each key's own value": torch.equal(
            attend(1000 * one_hot, one_hot, price, score=dot).output, price
        ),
        "equal scores give the average": torch.allclose(
            attend(0 * one_hot, one_hot, price, score=dot).output, price.mean()
        ),
    },
)

# %% [markdown]
r"""
Three measurements on random vectors, over the width: standard deviation of the scores, the largest of 16 weights, and the size of the matrix of slopes, $\operatorname{diag}(w) - w w^\top$.
"""

# %%
widths = [4, 16, 64, 256, 1024]
spread, largest, slope = {}, {}, {}
for name, score in {"dot": dot, "scaled dot": scaled_dot}.items():
    tables = [score(torch.randn(500, d), torch.randn(16, d)) for d in widths]
    weights = [table.softmax(-1) for table in tables]
    jacobians = [
        torch.diag_embed(w) - w[..., :, None] * w[..., None, :] for w in weights
    ]
    spread[name] = (widths, [table.std().item() for table in tables])
    largest[name] = (widths, [w.amax(-1).mean().item() for w in weights])
    slope[name] = (widths, [j.norm(dim=(-2, -1)).mean().item() for j in jacobians])
figures.scaling(spread, largest, slope)

# %%
at_64 = widths.index(64)
verdict(
    "at d = 64 the largest of 16 weights is above .75 unscaled, below .35 scaled",
    largest["dot"][1][at_64] > 0.75 and largest["scaled dot"][1][at_64] < 0.35,
)
verdict(
    "at d = 1,024 the slopes are under a third of the scaled ones",
    slope["dot"][1][-1] < slope["scaled dot"][1][-1] / 3,
)

# %% [markdown]
r"""
Where the reason for the root fails: correlated parts. (A mean of 8 in every row of scores would be no failure: softmax ignores what a whole row has in common.) With 64 copies of one number
the scaled scores have the standard deviation 8, and the softmax is as saturated as without any root:
"""

# %%
q, k = torch.randn(500, 1).expand(-1, 64), torch.randn(16, 1).expand(-1, 64)
copies = scaled_dot(q, k)
even_q, even_k = torch.randn(500, 64), torch.randn(16, 64)
independent = scaled_dot(even_q, even_k)
of_mean_1 = scaled_dot(1 + even_q, 1 + even_k)

# %% tags=["claim:score-3"]
claim(
    "score-3",
    {
        "independent parts: the variance of q · k is within 30 % of d": all(
            abs(s**2 / d - 1) < 0.3 for d, s in zip(*spread["dot"], strict=True)
        ),
        "and scaled, the standard deviation is near 1": abs(independent.std() - 1)
        < 0.3,
        "parts of mean 1: the variance is more than twice as large": of_mean_1.var()
        > 2 * independent.var(),
        "64 copies of one number: above 5": copies.std() > 5,
        "their largest weight is nearly twice as large or more": copies.softmax(-1)
        .amax(-1)
        .mean()
        > 1.8 * independent.softmax(-1).amax(-1).mean(),
    },
)

# %% tags=["claim:score-4"]
q, k, v = torch.randn(2, 3), torch.randn(4, 5), torch.randn(4, 7)
try:
    attend(q, k, v)
    told = ""
except ValueError as error:
    told = str(error)
claim(
    "score-4",
    {
        "values of width 7 pass through queries and keys of width 3": attend(
            q, k[:, :3], v
        ).output.shape
        == (2, 7),
        "dot products of widths 3 and 5 are an error": "equal widths" in told,
        "an additive score compares widths 3 and 5": attend(
            q, k, v, score=Additive(3, 5, 8)
        ).output.shape
        == (2, 7),
        "a bilinear one, too": attend(q, k, v, score=Bilinear(3, 5)).output.shape
        == (2, 7),
    },
)

# %% tags=["claim:score-5"]
token, matrix = torch.randn(512), torch.randn(512, 64)
products_one_by_one = torch.stack([torch.dot(token, column) for column in matrix.T])
claim(
    "score-5",
    {
        "x @ W has 64 numbers, each a dot product with one column": torch.allclose(
            token @ matrix, products_one_by_one, atol=1e-4
        )
    },
)

# %% tags=["claim:score-6"]
q, k = torch.randn(1, 8), torch.randn(4, 8)
before, after = attend(q, k, k).weights, attend(q, torch.cat([5 * q, k[1:]]), k).weights
claim(
    "score-6",
    {
        "a key ten times as long scores ten times as much": torch.allclose(
            dot(q, 10 * k), 10 * dot(q, k)
        ),
        "a rival key takes weight from all others, whose scores stay": bool(
            (after[0, 1:] < before[0, 1:]).all()
        ),
    },
)

# %% [markdown]
r"""
Another normalisation than softmax: ReLU (negative scores become 0), divided by the sum. Its weights are positive and sum to 1, so the output stays among the values; and it can give a weight of exactly 0.
(ReLU alone is none: here its weights would sum to 5.)
"""

# %% tags=["claim:score-7"]
three, values = torch.tensor([2.0, -1.0, 3.0]), torch.tensor([1.0, 2.0, 4.0])
by_relu = three.relu() / three.relu().sum()
claim(
    "score-7",
    {
        "ReLU over its sum: the weights sum to 1": by_relu.sum() == 1,
        "the second of them is exactly 0, which softmax never gives": by_relu[1] == 0
        and three.softmax(-1)[1] > 0,
        "the output lies between smallest and largest value": values.min()
        < by_relu @ values
        < values.max(),
    },
)

# %% tags=["claim:score-8"]
one, heads = torch.randn(6, 512), torch.randn(8, 6, 64)
claim(
    "score-8",
    {
        "one head of width 512: the divisor is the root of 512": torch.allclose(
            dot(one, one) / scaled_dot(one, one),
            torch.tensor(512**0.5),
            rtol=1e-3,
        ),
        "eight heads of width 64: it is 8 in each": torch.allclose(
            dot(heads, heads) / scaled_dot(heads, heads), torch.tensor(8.0), rtol=1e-3
        ),
    },
)

# %% [markdown]
r"""
## 3 · The look-up: protocol, seeds, rates

Part 02b trains one seed on lists of 20 pairs, drawn from 60 symbols. Here a list has 16 pairs, drawn from 64 symbols and 8 answers; every list is new. Adam with a constant rate, batches of 64 lists, at most 1,000 steps; training ends once 95 % of 1,000 *validation* lists are
answered rightly, looked at every 20 steps. Four scores, five widths, six rates from 0.0003 to 0.1, three seeds: 360 trainings. For each score, width and seed the rate is the one that did best on
validation lists; reported is the accuracy on *test* lists, which were used for nothing else. `make experiments ARGS=look_up` runs it again.
"""

# %%
stored = results("look_up")["rows"]
rows = look_up.best_rows(stored)
reached = {(r["score"], r["d"], r["seed"]): r["validation"] >= 0.95 for r in rows}
got_there = {
    name: [d for d in widths if all(reached[name, d, seed] for seed in (0, 1, 2))]
    for name in look_up.RECIPE["scores"]
}
for name, where in got_there.items():
    print(f"{name:>10}: .95 with all three seeds at d = {', '.join(map(str, where))}")
print(
    "bilinear at 256:", sum(reached["bilinear", 256, s] for s in range(3)), "of 3 seeds"
)

# %%
figures.stored_arrival()

# %% [markdown]
r"""
Plain dot products fail from width 64 on. Scaled and additive scores succeed everywhere. Which of these two needs fewer steps?
"""

# %%
figures.stored_rates()

# %% [markdown]
r"""
At the rate 0.01 for both (left) additive needs fewer steps at every width. At the best rate for each (right) its lead is gone from width 16 on. **A comparison at one learning rate is a comparison of learning
rates.**
"""

# %%
at_best = {(r["score"], r["d"]): [] for r in rows}
for r in rows:
    at_best[r["score"], r["d"]].append(r["steps"])
middle = {key: sorted(steps)[1] for key, steps in at_best.items()}
at_one = {
    key: sorted(
        r["steps"] for r in stored if (r["score"], r["d"], r["lr"]) == (*key, 0.01)
    )[1]
    for key in middle
}
verdict(
    "at the rate 0.01 additive needs fewer steps at every width",
    all(at_one["additive", d] < at_one["scaled dot", d] for d in widths),
)
verdict(
    "at its best rate scaled dot needs as few or fewer from width 16 on",
    all(middle["scaled dot", d] <= middle["additive", d] for d in widths[1:]),
)

# %%
figures.stored_explosion()

# %% [markdown]
r"""
Bilinear is the surprise: it starts with a standard deviation of 1, like scaled dot, and its scores explode after the start. We suspect that the optimiser moves all $d^2$ numbers of $W$ by a full step each
time. Mind the edges: the best rate of bilinear at 1,024 is among the lowest that were tried, that of scaled dot is often the highest; a wider search could move both. Vaswani et al. 2017 (section
3.2.1) say that additive scoring beats unscaled dot products at larger widths, and suspect vanishing gradients. The first is seen here; the second is what section 2 measured, on random vectors.
"""

# %%
wide = [r for r in rows if r["d"] == 1024]
bilinear, scaled_rows = (
    [r for r in wide if r["score"] == name] for name in ("bilinear", "scaled dot")
)
failed = [r["spread_end"] for r in rows if r["validation"] < 0.95]
arrived = [r["spread_end"] for r in rows if r["validation"] >= 0.95]
verdict(
    "dot fails at 64, 256 and 1,024 with every rate and seed",
    all(r["validation"] < 0.95 for r in stored if r["score"] == "dot" and r["d"] >= 64),
)
verdict(
    "scaled dot and additive succeed at every width",
    got_there["scaled dot"] == got_there["additive"] == widths,
)
verdict(
    "bilinear fails at 1,024 though it starts small",
    all(r["spread_start"] < 1.2 and r["validation"] < 0.9 for r in bilinear),
)
verdict(
    "every failure ends with larger scores than any success",
    min(failed) > max(arrived),
)

# %% [markdown]
r"""
Is it the score, or where it starts? The same at width 256, with queries and keys that start a quarter or four times as long, three rates, three seeds (`make experiments ARGS=starts`). Each cell holds medians
of three seeds: the best validation accuracy, the steps it took, and the test accuracy for the third of the symbols whose own keys start with the highest scores, and for the third with the lowest:
"""

# %%
starts = results("starts")["rows"]
print(f"{'score':11}{'times':>6}{'at most':>9}   ", "rates 0.0025, 0.01, 0.04")
groups = {(r["score"], r["times"], r["at_most"]) for r in starts}
for score, times, most in sorted(groups, key=lambda g: (g[0], g[2], g[1])):
    cells = []
    for lr in (2.5e-3, 1e-2, 4e-2):
        of = [
            (r["validation"], r["steps"], r["high"], r["low"])
            for r in starts
            if (r["score"], r["times"], r["at_most"], r["lr"])
            == (score, times, most, lr)
        ]
        middle = [sorted(column)[1] for column in zip(*of, strict=True)]
        cells.append(f"{middle[0]:.2f} ({middle[1]:4}) {middle[2]:.2f} {middle[3]:.2f}")
    print(f"{score:11}{times:6}{most:9}   ", "   ".join(cells))


# %%
def validation(score, times):
    return [
        r["validation"] for r in starts if (r["score"], r["times"]) == (score, times)
    ]


verdict(
    "plain, a quarter as long: at least .95, every rate and seed",
    min(validation("dot", 0.25)) >= 0.95,
)
verdict(
    "plain as drawn: below .9, every rate and seed, 4,000 steps included",
    max(validation("dot", 1)) < 0.9,
)
verdict(
    "divided by the width: at least .95, every rate and seed",
    min(validation("dot / d", 1)) >= 0.95,
)
verdict(
    "scaled, four times as long: below .7, every rate and seed",
    max(validation("scaled dot", 4)) < 0.7,
)

# %%
saturated = [
    r
    for r in starts
    if (r["score"], r["times"]) in (("dot", 1), ("scaled dot", 4))
    and r["at_most"] == 1000
]
verdict(
    "who starts saturated knows the third of the highest far better, after 1,000 steps",
    all(r["high"] > 0.7 and r["high"] - r["low"] > 0.25 for r in saturated),
)
verdict(
    "at the rates 0.0025 and 0.01 it guesses for the third of the lowest, one of eight",
    all(r["low"] < 0.22 for r in saturated if r["lr"] <= 1e-2),
)
verdict(
    "where training succeeds, both thirds are above .85",
    all(min(r["high"], r["low"]) > 0.85 for r in starts if r["validation"] >= 0.95),
)

# %% [markdown]
r"""
So the start decides, at this width and with Adam. And the chance of the start decides what a saturated model learns first: symbols whose own keys begin with high scores. With four times the steps, or a
larger rate, the plain model gets at the others slowly, and climbs to .61 to .83, depending on the rate. Divided by the width itself (`dot / d`) the gradients are small
for all queries alike; Adam, which divides a gradient by its usual size, makes up for that, and the model learns.

What this does not show: one task, one optimiser, one way to draw the first numbers. Models in practice normalise their tokens and learn projections, which softens the failure of the plain dot product.
Steps are counted in twenties, so differences of one or two readings mean nothing.

## 4 · What a score costs

| score | formula | learned numbers | may widths differ? |
|---|---|---|---|
| dot, scaled dot | $q \cdot k$, $\;q \cdot k / \sqrt d$ | none | no |
| bilinear (Luong) | $q \cdot W k$, with a matrix $W$ | $d_q\,d_k$ | yes |
| additive (Bahdanau) | $v \cdot \tanh(W_q q + W_k k)$, with $d_h$ hidden units | $d_h (d_q + d_k + 1)$ | yes |

Queries have the width $d_q$, keys $d_k$. For 512 queries, 512 keys and 64 hidden units the hidden layer of the additive score holds $512 \cdot 512 \cdot 64$ numbers, nearly 17 million; the table of scores holds 262,144.

For each pair the additive score computes a hidden layer; a dot product computes one number. `Additive` cuts the queries into pieces, and computes a piece again when its gradient is needed.
Measured on the processor, on every machine; a panel beside shows a GPU's seconds, if one was measured.
"""

# %%
lengths = [64, 128, 256, 512]
kinds = {
    "dot": dot,
    "additive, in pieces": Additive(64, 64, 64),
    "additive, at once": Additive(64, 64, 64, max_pairs=10**9),
}


def self_attention_of(score, n):
    x = torch.randn(n, 64)
    return lambda: attend(x, x, x, score=score)


# %% tags=["measured"]
memory, seconds = {}, {}
with torch.no_grad(), on("cpu"):
    for name, score in kinds.items():
        calls = [self_attention_of(score, n) for n in lengths]
        memory[name] = [peak_mib(call) for call in calls]
        seconds[name] = [cpu_seconds(call, repeats=3) for call in calls]
figures.costs(lengths, memory, seconds, devices.beside("scores"))

# %%
verdict(
    "in pieces, additive holds less than a fifth of what it holds at once",
    memory["additive, in pieces"][-1] < memory["additive, at once"][-1] / 5,
)

# %% tags=["claim:score-1"]
claim(
    "score-1",
    {
        "scaled dot and additive learn the look-up at every width": got_there[
            "scaled dot"
        ]
        == got_there["additive"]
        == widths,
        "at 512 tokens additive holds over 50 times the memory": memory[
            "additive, at once"
        ][-1]
        > 50 * memory["dot"][-1],
    },
)

# %% [markdown]
r"""
## 5 · Where the idea comes from: weighting neighbours

Statisticians had soft look-ups long before neural networks. *Kernel regression* answers at a point with an average of all measurements, in which near ones count more (Nadaraya 1964, Watson 1964), by a bell
curve of some width $\sigma$: $s(q, k) = -(q - k)^2 / 2\sigma^2$. That is attention: the query is where you ask, the keys are the places where you measured, the values are the measurements.
"""


# %%
def bell(sigma):
    return lambda query, key: -torch.cdist(query, key).square() / (2 * sigma**2)


places = 6 * torch.rand(40, 1).sort(0).values  # keys
measured = places.sin() + 0.2 * torch.randn(40, 1)  # values
asked = torch.linspace(0, 6, 121)[:, None]  # queries
answers = {
    sigma: attend(asked, places, measured, score=bell(sigma)).output
    for sigma in (0.05, 0.4, 3.0)
}
figures.regression(asked, answers, asked.sin(), places, measured)

# %% [markdown]
r"""
The narrow bell is nearly a dictionary: it returns the nearest measurement, noise included. The wide one is on its way to an average. Now expand the square, with $\sigma = 1$:

$$-\tfrac12 \lVert q - k \rVert^2 = q \cdot k - \tfrac12 \lVert q \rVert^2 - \tfrac12 \lVert k \rVert^2$$

The middle term is the same for all keys of one query, so softmax drops it. If all keys have the same length, the last one drops out too. What is left is the dot product. Make one key longer, and the two part: the
longer key gains weight under the dot product, and loses it under the bell.
"""

# %%
k = torch.nn.functional.normalize(torch.randn(6, 4), dim=-1)  # six keys of length 1
q = k[:1].clone()  # a query equal to the first key
by_bell, by_dot = (attend(q, k, k, score=score).weights for score in (bell(1.0), dot))
assert_close(by_bell, by_dot)
k[0] *= 2  # now the first key is twice as long
longer_bell, longer_dot = (
    attend(q, k, k, score=score).weights for score in (bell(1.0), dot)
)
show(before=by_dot[0, 0], dot_after=longer_dot[0, 0], bell_after=longer_bell[0, 0])

# %% [markdown]
r"""
**Sources.** Nadaraya 1964; Watson 1964; Bahdanau, Cho & Bengio 2014 (arXiv:1409.0473); Luong, Pham & Manning 2015 (arXiv:1508.04025); Vaswani et al. 2017
(arXiv:1706.03762); Karim 2019, *Illustrated: Self-Attention*; the course's own sources S0 to S4. **Back** to [02a](../02a_soft_look_up.ipynb) or [02b](../02b_which_score.ipynb).
"""
