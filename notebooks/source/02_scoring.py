# %% [markdown]
r"""
# 02 · Scoring: how relevant is this to that?

**The question.** Three people answer your question at once. How much do you listen to each of them?

Attention answers in two moves. It gives each answer a *score*, and it mixes the answers by their scores. The mixing never changes in this
course. The score does, and this lesson is about it.

**After this lesson you can**

- say what a query, a key, a value, a score, a weight and an output are, with their shapes;
- compute attention by hand for three tokens, and check it in Python and in torch;
- choose among four scores, and say what each costs;
- show, with numbers, why scores are divided by $\sqrt{d}$, and when that reason does not apply.

**Time** about 80 minutes, in two sittings if you like: there is a good place to stop before section 5. **You need** matrix products and a
little PyTorch; nothing of attention. **Exercises**: [exercises/02_scoring](exercises/02_scoring.ipynb).
"""

# %%
import math

import torch
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.chapters.c02_scoring import figures
from lesson_lib.claims import claim, verdict
from lesson_lib.scores import Additive, Bilinear, dot, scaled_dot
from lesson_lib.show import show, show_source

_ = torch.manual_seed(0)

# %% [markdown]
r"""
> **Predict first.** Three answers have the scores 2, 4 and 4. Scores become weights that are positive and sum to 1; a larger score gives a
> larger weight. What share does the first answer get: more than a tenth, or less? Decide before you open the fold.
>
> <details><summary>Answer</summary>
> Less: about 6 %. You will compute it in section 1.
> </details>

## Six words

You will meet these six words in every lesson. The shapes are those of one sequence: $n$ queries, $m$ keys, and as many values as keys.

| word | what it is | shape |
|---|---|---|
| **query** | what somebody is looking for | $(n, d_k)$ |
| **key** | what an answer is about; it is compared with queries | $(m, d_k)$ |
| **value** | what the answer says; it is what gets mixed | $(m, d_v)$ |
| **score** | how well one key fits one query; any number | $(n, m)$ |
| **weight** | the share that a value gets; positive, and the weights of one query sum to 1 | $(n, m)$ |
| **output** | the mixture of values that one query receives | $(n, d_v)$ |

A score and a weight are not the same thing. Scores can be negative or large; weights are shares. Rows belong to queries, columns to keys.

## 1 · A look-up with soft edges

A Python dictionary is the hard case. It compares your query with every key, finds the one that is equal, and returns its value.
"""

# %%
prices = {"tea": 10.0, "coffee": 20.0, "cake": 40.0}
show(prices["coffee"])

# %% [markdown]
r"""
Now make it soft. Let keys and queries be vectors. Score each key against the query with a dot product, turn the scores into weights, and mix
the values by their weights. To turn scores into weights, attention uses the **softmax**: raise $e$ to each score, then divide by the sum.

$$w_j = \frac{e^{s_j}}{\sum_l e^{s_l}}, \qquad \text{output} = \sum_j w_j v_j$$
"""


# %%
def soft_look_up(query, key, value):
    scores = query @ key.mT  # a row per query, a column per key
    largest = scores.amax(-1, keepdim=True)
    powers = (scores - largest).exp()  # the same weights, and no overflow
    weights = powers / powers.sum(-1, keepdim=True)
    return weights @ value, weights


key = torch.eye(3)  # tea, coffee, cake: three keys at right angles
value = torch.tensor([[10.0], [20.0], [40.0]])
output, weights = soft_look_up(torch.tensor([[0.0, 1.0, 0.0]]), key, value)
show(weights=weights, output=output)

# %% [markdown]
r"""
The query asks for coffee, whose key scores 1; the others score 0. Coffee gets the largest weight, 0.58, but the others get 0.21 each. The
output, 22.1, is nearer to the plain average of the three prices, 23.3, than to coffee's 20. It is a mixture.

> **Predict.** The query becomes `[0, 5, 0]`. Which way does the output move, and what is it close to?
>
> <details><summary>Answer</summary>
> Towards 20, the price of coffee: the scores are now 0, 5, 0, and e⁵ is about 148 times e⁰. The next cell shows it.
> </details>
"""

# %%
coffee = torch.tensor([[0.0, 1.0, 0.0]])
for sharpness in (0, 1, 5, 50):
    output, weights = soft_look_up(sharpness * coffee, key, value)
    shares = "  ".join(f"{share:.4f}" for share in weights[0])
    print(f"sharpness {sharpness:2}   weights {shares}   output {output.item():.4f}")

# %% [markdown]
r"""
Read the four lines from the bottom. At 50 the soft look-up *is* the dictionary: weight 1 on coffee, output 20. At 0 all scores are
equal, and the output is the plain average of the three prices, 23.3. Attention lives between a dictionary and an average.

The function above is the whole of attention. The library's version does the same and adds what later lessons need: masks, other scores, any
number of leading axes. Here is the proof that they agree, and then the library's own code. From now on we import it.
"""

# %%
q, k, v = torch.randn(5, 3), torch.randn(7, 3), torch.randn(7, 2)
ours, theirs = soft_look_up(q, k, v), attend(q, k, v, score=dot)
assert_close(ours[0], theirs.output)
assert_close(ours[1], theirs.weights)
show_source(attend)

# %% [markdown]
r"""
Start reading at `scores =`: score, add, hide, softmax, mix. The three lines before it check your input and take a faster kernel where
you do not want the weights. Dropout, which sets a random share of the weights to 0 during training, is off unless you ask for it.

### Softmax looks at differences

> **Predict.** The scores are 2, 4, 4 again. You add 100 to every score. Do the weights change? You multiply every score by 10. Do they
> change now?
>
> <details><summary>Answer</summary>
> Adding changes nothing: every power is multiplied by e¹⁰⁰, and the sum too. Multiplying does: differences of 2 become differences of 20.
> </details>
"""

# %%
scores = torch.tensor([2.0, 4.0, 4.0])
show(
    plain=scores.softmax(-1),
    plus_100=(scores + 100).softmax(-1),
    times_10=(10 * scores).softmax(-1),
)

# %% [markdown]
r"""
The first answer gets 0.0634: the 6 % of the first prediction. The difference of 2 in the score became a factor of $e^2 \approx 7.39$ in the weight:
0.4683 / 0.0634. Only differences count. Keep both facts: the first makes softmax safe to compute, the second is the subject of section 4.

Move the sliders, with the mouse or with the arrow keys, and type scores of your own.

- *Do:* find the smallest factor on the slider at which the first weight shows as 0.0000. *Then:* type `0, 0, 0` and try to make one weight
  larger than the others.

<details><summary>What you should find</summary>
About times 5: the difference of 2 becomes 10, and e⁻¹⁰ is 0.00005. With equal scores no factor and no shift can do it: all differences
are 0.
</details>
"""

# %%
from lesson_lib.chapters.c02_scoring.softmax_explorer import SoftmaxExplorer

SoftmaxExplorer((2.0, 4.0, 4.0))

# %% [markdown]
r"""
The factor has a name of its own: its inverse is called the **temperature**. High temperature means small differences and even weights.

## 2 · Where the idea comes from: weighting neighbours

Statisticians had soft look-ups long before neural networks. You have noisy measurements, and you want a value at a point where you did not
measure. *Kernel regression* answers with an average of all measurements, in which near ones count more (Nadaraya 1964, Watson 1964). Nearness
is measured by a bell curve of some width $\sigma$:

$$s(q, k) = -\frac{(q - k)^2}{2\sigma^2}$$

That is attention. The query is the point where you ask, the keys are the places where you measured, the values are the measurements, and the
bell curve is the score.
"""


# %%
def bell(width):
    return lambda query, key: -torch.cdist(query, key).square() / (2 * width**2)


places = 6 * torch.rand(40, 1).sort(0).values  # keys
measured = places.sin() + 0.2 * torch.randn(40, 1)  # values
asked = torch.linspace(0, 6, 121)[:, None]  # queries
answers = {
    width: attend(asked, places, measured, score=bell(width)).output
    for width in (0.05, 0.4, 3.0)
}
figures.regression(asked, answers, asked.sin(), places, measured)

# %%
error = {
    width: (a - asked.sin()).square().mean().sqrt().item()
    for width, a in answers.items()
}
verdict(
    "the middle width is closest to the truth",
    error[0.4] < min(error[0.05], error[3.0]),
)

# %% [markdown]
r"""
The narrow bell is nearly a dictionary: it returns the nearest measurement, noise included. The wide bell is nearly an average. Sharpness
again, under another name.

### From the bell to the dot product

Expand the square, with $\sigma = 1$:

$$-\tfrac12 \lVert q - k \rVert^2 = q \cdot k - \tfrac12 \lVert q \rVert^2 - \tfrac12 \lVert k \rVert^2$$

The middle term is the same for all keys of one query. Softmax ignores what is added to a whole row, so it drops out. If all keys have the same
length, the last term drops out too. What is left is the dot product.

> **Predict.** Bell and dot product now give the same weights. Make one key twice as long. Under which score does it gain weight with a query
> that points the same way?
>
> <details><summary>Answer</summary>
> Under the dot product: a longer key scores higher. Under the bell it loses, once it lies farther away than before.
> </details>
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
The first key's weight rises under the dot product and falls under the bell. So a dot product is *not* plain similarity: length counts. We come
back to that in section 7.

## 3 · Four scores

All four take a query and a key and return one number. Each is written out below and compared with the library's. The letters: $d_q$ and $d_k$
are the widths of query and key, $d_h$ is a width that you choose. Here, and only here, $v$ is a learned vector and not a value; the letter is the
paper's.

| score | formula | learned numbers | widths |
|---|---|---|---|
| dot | $q \cdot k$ | none | $d_q = d_k$ |
| scaled dot | $q \cdot k / \sqrt{d_k}$ | none | $d_q = d_k$ |
| additive | $v \cdot \tanh(W_q q + W_k k)$ | $d_h\,(d_q + d_k + 1)$ | any |
| bilinear | $q \cdot W k$ | $d_q\, d_k$ | any |

The additive score is a small neural network with one hidden layer of $d_h$ units, asked about each pair. It came first (Bahdanau et al. 2014).
The bilinear score and the plain dot product followed (Luong et al. 2015), and the scaled one came with the Transformer (Vaswani et al. 2017).
"""

# %%
q, k = torch.tensor([[2.0, 1.0, 3.0]]), torch.tensor([[0.0, 1.0, 1.0], [4.0, 4.0, 0.0]])
show(dot=dot(q, k), scaled=scaled_dot(q, k))

# %% [markdown]
r"""
By hand: $2\cdot0 + 1\cdot1 + 3\cdot1 = 4$ and $2\cdot4 + 1\cdot4 + 3\cdot0 = 12$. Divided by $\sqrt3 \approx 1.732$ they are 2.3094 and 6.9282.

The two learned scores written out once, for one pair, against the library:
"""

# %%
score = Additive(d_query=3, d_key=3, d_hidden=5)
hidden = torch.tanh(score.w_query.weight @ q[0] + score.w_key.weight @ k[0])
assert_close(score.v @ hidden, score(q, k)[0, 0])
bilinear = Bilinear(d_query=3, d_key=3)
assert_close(q[0] @ bilinear.w @ k[0], bilinear(q, k)[0, 0])
show_source(Additive)

# %% [markdown]
r"""
`_rows` is the formula. The rest of `forward` saves memory: for $n$ queries and $m$ keys the hidden layers of all pairs are $n \cdot m \cdot d_h$
numbers, so the queries go through in pieces. (`checkpoint` computes a piece again when its gradient is needed, in place of keeping it.)

> **Predict.** You want queries of width 3 and keys of width 5. Which of the four scores can compare them? And what may the width of the values
> be?
>
> <details><summary>Answer</summary>
> Additive and bilinear can. A dot product needs equal widths. The values may have any width under every score: they are mixed, never compared.
> </details>
"""

# %%
q, k, v = torch.randn(2, 3), torch.randn(4, 5), torch.randn(4, 7)
for score in (Additive(3, 5, 8), Bilinear(3, 5)):
    print(type(score).__name__, tuple(attend(q, k, v, score=score).output.shape))
try:
    attend(q, k, v, score=dot)
except ValueError as error:
    print("dot:", error)

# %% [markdown]
r"""
### Self-attention, and why tokens are projected first

So far queries, keys and values were three things. In **self-attention** they come from one sequence $x$ of tokens (words, pixels, frames: one
row each): every token asks, every token answers, itself included. The shortest form is `attend(x, x, x)`.

That form has a flaw. Its scores are $x_i \cdot x_j$, and that is the same number as $x_j \cdot x_i$.

> **Predict.** In "the cat sleeps", *sleeps* should look for its subject, *cat*. May *cat* then have a low score for *sleeps*, if scores are
> $x_i \cdot x_j$?
>
> <details><summary>Answer</summary>
> No. The table is symmetric: if <i>sleeps</i> scores <i>cat</i> high, <i>cat</i> scores <i>sleeps</i> just as high.
> </details>
"""

# %%
words = ["the", "cat", "sleeps"]
x = torch.nn.functional.normalize(torch.randn(3, 8), dim=-1)  # three tokens of length 1
w_query, w_key = torch.randn(8, 8), torch.randn(8, 8)
same, projected = dot(x, x), dot(x @ w_query, x @ w_key)
figures.word_scores(words, same, projected)

# %% [markdown]
r"""
On the left each word prefers itself: with tokens of equal length nothing is closer to $x_i$ than $x_i$. On the right the matrices are random, so
no number means anything yet, except that (cat, sleeps) and (sleeps, cat) may now differ. The cure is to let each token play
three parts: $q_i = x_i W_q$ for asking, $k_i = x_i W_k$ for being found, $v_i = x_i W_v$ for what it says. These three matrices are what
training learns. Lesson 03 trains them.

## 4 · Why divide by √d?

The scaled dot product divides by the root of the width. Here is the need for it, in three measurements.

> **Predict.** The numbers in `q` and `k` are drawn at random with mean 0 and variance 1. Their width grows from 4 to 1,024. What happens to the
> *standard deviation* of $q \cdot k$: does it stay, grow to 16 times, or grow to 256 times?
>
> <details><summary>Answer</summary>
> It grows to 16 times. A dot product is a sum of d products, each with variance 1, since E[q² k²] = E[q²] E[k²] = 1 · 1. Variances of independent things add up to d, so the
> standard deviation is √d: from 2 to 32.
> </details>

The third measurement needs one formula. The derivative of weight $i$ with respect to score $j$ is $w_i - w_i^2$ if $i = j$, and $-w_i w_j$ if not; as
a matrix, $\operatorname{diag}(w) - w w^\top$. The cell checks that against torch, then measures.
"""


# %%
def derivatives(w):  # of softmax: how the weights w move when their scores move
    return torch.diag_embed(w) - w[..., :, None] * w[..., None, :]


row = torch.randn(5)
by_torch = torch.autograd.functional.jacobian(lambda s: s.softmax(-1), row)
assert_close(by_torch, derivatives(row.softmax(-1)))

# %%
widths = [4, 16, 64, 256, 1024]
spread, largest, slope = {}, {}, {}
for name, score in {"dot": dot, "scaled dot": scaled_dot}.items():
    tables = [score(torch.randn(500, d), torch.randn(16, d)) for d in widths]
    weights = [table.softmax(-1) for table in tables]
    spread[name] = (widths, [table.std().item() for table in tables])
    largest[name] = (widths, [w.amax(-1).mean().item() for w in weights])
    sizes = [derivatives(w).norm(dim=(-2, -1)).mean().item() for w in weights]
    slope[name] = (widths, sizes)
figures.scaling(spread, largest, slope)

# %% [markdown]
r"""
**Left:** the standard deviation of the scores follows $\sqrt d$ (2, 4, 8, 16, 32). **Middle:** so the differences grow, and softmax gives nearly
everything to one key, for no reason but chance: the numbers were random. (At $d = 4$ nothing is wrong yet.) This is called **saturation**. **Right:** how much the weights
move when the scores move, the size of that matrix of derivatives. Where one weight is 1 and the rest are 0,
it is 0: no error signal comes back through the softmax, and the model cannot learn that its guess was wrong.
"""

# %%
at_64 = widths.index(64)
verdict(
    "spread of dot is within 15 % of √d at every width",
    all(abs(s / d**0.5 - 1) < 0.15 for d, s in zip(*spread["dot"], strict=True)),
)
verdict(
    "at d = 64 the largest of 16 weights is above .75 unscaled, below .35 scaled",
    largest["dot"][1][at_64] > 0.75 and largest["scaled dot"][1][at_64] < 0.35,
)
verdict(
    "at d = 1,024 the gradient is under a third of the scaled one",
    slope["dot"][1][-1] < slope["scaled dot"][1][-1] / 3,
)

# %% [markdown]
r"""
> **Predict.** Divide by $d$ instead of $\sqrt d$. What is the spread of the scores at $d = 1{,}024$, and what do the weights look like?
>
> <details><summary>Answer</summary>
> 32 / 1,024 = 1/32. The scores hardly differ, and all weights are nearly equal: attention becomes an average. The root is what keeps the spread
> at 1 for every width.
> </details>
"""

# %%
by_d = dot(torch.randn(500, 1024), torch.randn(16, 1024)) / 1024
show(spread=by_d.std(), one_over_32=1 / 32, largest_weight=by_d.softmax(-1).max())

# %% [markdown]
r"""
An equal share would be 1/16 = 0.0625; the largest of all 8,000 weights is hardly above it.

**When the reason fails.** It rests on a mean of 0 and a variance of 1, and on independent numbers. Give every number a mean of 1:

> **Predict.** $d = 64$, and the parts of `q` and `k` have mean 1 and variance 1. What is the mean of $q \cdot k$?
>
> <details><summary>Answer</summary>
> 64: each of the 64 products has mean 1 · 1. (And variance 3, so the sum has variance 192 instead of 64.)
> </details>
"""

# %%
q, k = 1 + torch.randn(50_000, 1, 64), 1 + torch.randn(50_000, 1, 64)
products = dot(q, k)
verdict("mean within 1 % of 64", abs(products.mean().item() / 64 - 1) < 0.01)
verdict("variance within 5 % of 192", abs(products.var().item() / 192 - 1) < 0.05)

# %% [markdown]
r"""
So the divisor is no law of nature. It keeps scores small *at the start of training*, when the learned numbers are still random. What training
does later is its own affair; section 6 measures it.

One more detail that is often told wrongly: the width under the root is the width of the vectors that are multiplied. With several heads (lesson
04) a model of width 512 works with vectors of width 64, and the divisor is $\sqrt{64} = 8$.

*A good place for a break.*

## 5 · Seven steps, by hand

Now a whole self-attention with small whole numbers, as two of the five texts that this course follows compute it (after Karim's illustrated guide, 2019). Three
tokens of width 4; three matrices from width 4 to width 3. Take pencil and paper: every number up to step 4 is a whole number.
"""

# %%
from lesson_lib.trace import EXAMPLE, example, in_pure_python, seven_steps

steps = seven_steps(**example())
show(
    inputs=steps.inputs.int(),
    w_query=example()["w_query"].int(),
    w_key=example()["w_key"].int(),
    w_value=example()["w_value"].int(),
)

# %% [markdown]
r"""
Steps 1 and 2 are given: inputs and matrices. Step 3 multiplies: `queries = x @ w_query`, and so on.

> **By hand.** The first input is `[1, 0, 1, 0]`. What is its query? (Add the first and the third row of `w_query`.)
>
> <details><summary>Answer</summary>
> [1, 0, 1] + [0, 0, 1] = [1, 0, 2].
> </details>
"""

# %%
show(keys=steps.keys.int(), queries=steps.queries.int(), values=steps.values.int())

# %% [markdown]
r"""
Step 4: each query times each key.

> **By hand.** The first query is `[1, 0, 2]`. Its scores with the three keys?
>
> <details><summary>Answer</summary>
> [1,0,2]·[0,1,1] = 2, [1,0,2]·[4,4,0] = 4, [1,0,2]·[2,3,1] = 4. The scores of the first prediction.
> </details>
"""

# %%
show(scores=steps.scores.int(), weights=steps.weights)

# %% [markdown]
r"""
Step 5 was softmax, row by row: row 1 is the one you know. In row 2 the largest score leads by 4, and its weight is 0.98. Step 6 multiplies
each value by its weight, step 7 adds up:
"""

# %%
show(weighted_values_of_query_1=steps.weighted_values[0], outputs=steps.outputs)

# %% [markdown]
r"""
The first output, 1.9366, is $0.0634\cdot1 + 0.4683\cdot2 + 0.4683\cdot2$: the first numbers of the three values, mixed.

Now play the film. *Do:* choose step 4 and move over the scores (or reach them with Tab): each cell shows its formula with its numbers, and marks the cells it is made from. *Then:*
switch the weights to "rounded by hand" and watch which row of the outputs moves most.

<details><summary>What you should find</summary>
Row 1: its middle number jumps from 6.68 to 7. The other two rows move less. The first row is the one that was not really rounded, as
the next lines tell.
</details>
"""

# %%
from lesson_lib.chapters.c02_scoring.steps_explorer import SevenStepsExplorer

SevenStepsExplorer()

# %% [markdown]
r"""
### What the texts do with their weights

To keep the arithmetic short, the texts replace the weights by hand-made ones: `[0.0, 0.5, 0.5]`, `[0.0, 1.0, 0.0]`, `[0.0, 0.9, 0.1]`.

> **Predict.** Is the first row what you get by rounding `[0.0634, 0.4683, 0.4683]` to one decimal?
>
> <details><summary>Answer</summary>
> No: 0.0634 rounds to 0.1, and the row would sum to 1.1. Rounded weights need not be weights any more.
> </details>
"""

# %%
by_hand = torch.tensor([[0.0, 0.5, 0.5], [0.0, 1.0, 0.0], [0.0, 0.9, 0.1]])
rounded = (10 * steps.weights).round() / 10
show(
    rounded=rounded,
    sums=rounded.sum(-1),
    outputs_by_hand=seven_steps(**example(), weights=by_hand).outputs,
)

# %% [markdown]
r"""
### The same without any library

If you want nothing between you and the numbers, here is all of it with lists and `math.exp`. One text prints its result to 16 digits.
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
show_source(in_pure_python)

# %%
verdict("pure Python gives the printed numbers to 1e-12", difference < 1e-12)
verdict(
    "torch in float64 does, too",
    (in_torch - torch.tensor(printed, dtype=torch.float64)).abs().max() < 1e-12,
)

# %% [markdown]
r"""
Note `score - max(scores)`: the text leaves it out. With its numbers that does no harm. With larger ones it does: `math.exp(709.79)` is
beyond the largest float, and Python raises an error; two scores of 709.5 do not even raise one.

> **Predict.** What weights do two equal scores of 709.5 get from `exp(x) / sum(exp(x))`?
>
> <details><summary>Answer</summary>
> 0 and 0. Each power fits into a float, their sum does not: it becomes infinity, and anything divided by infinity is 0. No error, no warning.
> </details>
"""

# %%
try:
    math.exp(709.79)
except OverflowError as error:
    print("exp(709.79):", error)
powers = [math.exp(709.5), math.exp(709.5)]
show(
    weights=str([power / sum(powers) for power in powers]),
    with_the_maximum_subtracted=torch.tensor([709.5, 709.5]).softmax(-1),
)

# %% [markdown]
r"""
## 6 · The experiment: which score learns a look-up?

Everything so far was random or given. Now we train. A list holds 16 pairs (symbol, answer), drawn from 64 symbols and 8 answers. Asked for one
symbol of the list, the model must give its answer. A guess is right one time in eight: 0.125 is chance.

Each symbol has a learned query vector and a learned key vector of width $d$, drawn at the start with variance 1; each answer has a learned value.
The output of `attend` goes through one linear layer to 8 numbers, one per answer. Only the score differs between the models.

> **Predict.** At $d = 256$, three models: dot, scaled dot, additive. All train for at most 1,000 steps, and stop when 95 % of the answers on
> lists that they did not train on are right. Who is first, who is last?
>
> <details><summary>Answer</summary>
> Additive and scaled dot arrive within 200 steps, close together. The plain dot product is not there after 1,000.
> </details>
"""

# %%
from lesson_lib.chapters.c02_scoring.experiments import look_up
from lesson_lib.experiments import results

live = {
    name: look_up.train(name, 256, lr=1e-2)[1]
    for name in ("dot", "scaled dot", "additive")
}
figures.learning(live, chance=1 / 8)

# %%
best = {name: max(history.column("score")) for name, history in live.items()}
verdict(
    "scaled dot and additive reach .95",
    min(best["scaled dot"], best["additive"]) >= 0.95,
    trained=True,
)
verdict("dot stays below .80", best["dot"] < 0.80, trained=True)
arrived = {name: history.column("step")[-1] for name, history in live.items()}
verdict(
    "additive and scaled dot arrive within 200 steps",
    max(arrived["additive"], arrived["scaled dot"]) <= 200,
    trained=True,
)

# %% [markdown]
r"""
One seed, one width and one learning rate are an anecdote. `make experiments` ran all four scores at five widths, with six learning rates and
three seeds, and kept the results. For each score, width and seed we take the learning rate that did best on the *validation* lists, and report
the accuracy on *test* lists, which were used for nothing else.
"""

# %%
stored = results("look_up")["rows"]
rows = look_up.best_rows(stored)
scores = look_up.RECIPE["scores"]


def over_widths(column):
    table = {}
    for name in scores:
        cells = [
            sorted(r[column] for r in rows if (r["score"], r["d"]) == (name, d))
            for d in widths
        ]
        # lowest, middle and highest of three seeds
        table[name] = (widths, *zip(*cells, strict=True))
    return table


figures.arrival(over_widths("test"), over_widths("steps"))

# %%
reached = {(r["score"], r["d"], r["seed"]): r["validation"] >= 0.95 for r in rows}
got_there = {
    name: [d for d in widths if all(reached[name, d, seed] for seed in (0, 1, 2))]
    for name in scores
}
for name, where in got_there.items():
    print(f"{name:>10}: .95 with all three seeds at d = {', '.join(map(str, where))}")
print(
    "bilinear at 256:", sum(reached["bilinear", 256, s] for s in range(3)), "of 3 seeds"
)

# %%
figures.explosion(over_widths("spread_start"), over_widths("spread_end"))

# %% [markdown]
r"""
What the pictures say:

- **Dot** gets there at widths 4 and 16, and at no larger one with any of the six learning rates. Its random scores start with a spread of
  $\sqrt d$; the softmax is saturated before the first step.
- **Scaled dot** gets there at every width, in fewer steps at every larger width than at 4. The only difference is a division.
- **Additive** gets there at every width too. The tanh keeps its parts between −1 and 1, so it needs no scale.
- **Bilinear** is the surprise. It starts with a spread of 1 like scaled dot. Yet at 1,024 it fails with every rate that we tried, and at 256 with
  one seed of three. Its scores explode after the start. We suspect that the optimiser moves all $d^2$ numbers of $W$ by a full step each time. A
  good start is needed; it is not enough.

The paper that introduced the scale says that additive scoring beats unscaled dot products at larger widths, and suspects vanishing gradients
(Vaswani et al. 2017, section 3.2.1). The first we see here. The second is what section 4 measured, on random vectors.

Steps are counted in twenties, so small differences mean nothing. And mind the edges: the best rate of bilinear at 1,024 is among the lowest that
we tried, that of scaled dot is often the highest. A wider search could move both.

> **Predict.** With a learning rate of 0.01 for everybody, additive needs fewer steps than scaled dot at every width. With the best rate for each,
> does it still?
>
> <details><summary>Answer</summary>
> At width 4 only. At 16 and 64 they are even, and from 256 on scaled dot is as fast or faster. A comparison at one learning rate is a comparison of
> learning rates. We fell for it in our first run, which stopped at 0.01.
> </details>
"""


# %%
def median_steps(table, name, d):
    return sorted(r["steps"] for r in table if (r["score"], r["d"]) == (name, d))[1]


same_rate = [r for r in stored if r["lr"] == 0.01]
print("(scaled dot, additive)")
for d in widths:
    at_001, at_best = (
        [median_steps(t, name, d) for name in ("scaled dot", "additive")]
        for t in (same_rate, rows)
    )
    print(f"d = {d:4}   steps at rate 0.01: {at_001}   at the best rates: {at_best}")

# %%
wide = [r for r in rows if r["d"] == 1024]
bilinear, scaled = (
    [r for r in wide if r["score"] == name] for name in ("bilinear", "scaled dot")
)
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
    "its scores end 20 times larger than scaled dot's",
    min(r["spread_end"] for r in bilinear) > 20 * max(r["spread_end"] for r in scaled),
)

# %%
failed = [r["spread_end"] for r in rows if r["validation"] < 0.95]
arrived = [r["spread_end"] for r in rows if r["validation"] >= 0.95]
verdict(
    "every failure ends with a larger spread than any success",
    min(failed) > max(arrived),
)

# %% [markdown]
r"""
### What a score costs

So why does almost nobody use the additive score today? Not for what it learns. For each pair it computes a hidden layer; a dot product computes one
number.

> **Predict.** 512 tokens attend to themselves, with a hidden layer of width 64. How many hidden numbers is that: about 33 thousand, 262 thousand or
> 17 million?
>
> <details><summary>Answer</summary>
> 512 · 512 · 64, nearly 17 million; at 4 bytes each, 64 MiB. The table of scores itself takes 1 MiB. The figure shows about twice both: the sums
> and their tanh, the scores and their weights, are held together for a moment.
> </details>
"""

# %%
from lesson_lib.device import on
from lesson_lib.experiments import devices
from lesson_lib.measure import cpu_seconds, peak_mib

lengths = [64, 128, 256, 512]
kinds = {
    "dot": dot,
    "additive, in pieces": Additive(64, 64, 64),
    "additive, at once": Additive(64, 64, 64, max_pairs=10**9),
}


def self_attention(score, n):
    x = torch.randn(n, 64)
    return lambda: attend(x, x, x, score=score)


# %% tags=["measured"]
memory, seconds = {}, {}
with torch.no_grad(), on("cpu"):
    for name, score in kinds.items():
        calls = [self_attention(score, n) for n in lengths]
        memory[name] = [peak_mib(call) for call in calls]
        seconds[name] = [cpu_seconds(call, repeats=3) for call in calls]
figures.costs(lengths, memory, seconds, devices.beside("scores"))

# %% [markdown]
r"""
Measured on the processor, on every machine. If yours has a GPU, a panel beside shows its seconds, to longer lengths. If not, there are the seconds of
a stored run on somebody's GPU, with its name, or a line that no GPU has been measured yet.
"""

# %%
verdict(
    "at 512 tokens, additive at once holds over 50 times the memory of dot",
    memory["additive, at once"][-1] > 50 * memory["dot"][-1],
)
verdict(
    "in pieces it holds less than a fifth of that",
    memory["additive, in pieces"][-1] < memory["additive, at once"][-1] / 5,
)

# %% [markdown]
r"""
**What section 6 does not show.** One task, one optimiser, one way to draw the first numbers. Models in practice normalise their tokens and learn
projections, which softens the failure of the plain dot product. Other widths of the hidden layer, and other machines, give other costs.
"""

# %% [markdown]
r"""
## 7 · Claims

This course follows five Chinese texts and runs what they claim: S0 (an overview), S1 (notes on position and complexity), S2 (the Transformer, with
code), S3 (lecture notes) and S4 (a worked example, with code). Each row below shows the claim in our words, our verdict, and what a
cell has just found: ✓ holds, ◐ holds with a condition, ✗ is corrected. If a finding were not true, its cell would end in an error.

### About self-attention
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

# %% tags=["claim:self-1"]
even = torch.nn.functional.normalize(x, dim=-1)
prefers = attend(even, even, x).weights.argmax(-1)
claim(
    "self-1",
    {
        "unprojected scores are symmetric": torch.allclose(dot(x, x), dot(x, x).mT),
        "with tokens of equal length each token prefers itself": torch.equal(
            prefers, torch.arange(5)
        ),
        "projected scores are not symmetric": not torch.allclose(
            projected, projected.mT
        ),
    },
)

# %% [markdown]
r"""
### About scores
"""

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

# %% tags=["claim:score-3"]
claim(
    "score-3",
    {
        "mean 0, variance 1: the variance of q · k is within 30 % of d at every width": all(
            abs(s**2 / d - 1) < 0.3 for d, s in zip(*spread["dot"], strict=True)
        ),
        "mean 1, d = 64: the score has mean 64": abs(products.mean().item() / 64 - 1)
        < 0.01,
        "mean 1, d = 64: the score has variance 192": abs(
            products.var().item() / 192 - 1
        )
        < 0.05,
    },
)

# %% tags=["claim:score-4"]
q, k, v = torch.randn(2, 3), torch.randn(4, 5), torch.randn(4, 7)
claim(
    "score-4",
    {
        "values of width 7 pass through queries and keys of width 3": attend(
            q, k[:, :3], v
        ).output.shape
        == (2, 7),
        "an additive score compares widths 3 and 5": attend(
            q, k, v, score=Additive(3, 5, 8)
        ).output.shape
        == (2, 7),
    },
)

# %% [markdown]
r"""
The next one is a matter of words, and words matter in a lesson: *multiplying* a token with a matrix is not *one* dot product.
"""

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
Softmax is one way to turn scores into weights. Here is another, ReLU: negative scores become 0, the rest stay. The *convex hull* of the values
is the set of all their mixtures with weights that are not negative and sum to 1; for single numbers it is the stretch from smallest to largest.
"""

# %% tags=["claim:score-7"]
three, values = torch.tensor([2.0, -1.0, 3.0]), torch.tensor([1.0, 2.0, 4.0])
by_softmax, by_relu = three.softmax(-1), three.relu()
inside = values.min() < by_softmax @ values < values.max()
claim(
    "score-7",
    {
        "softmax: the output lies between smallest and largest value": inside,
        "ReLU: the weights sum to 5": by_relu.sum() == 5,
        "ReLU: the output is 14, beyond every value": by_relu @ values == 14,
    },
)

# %% tags=["claim:score-8"]
heads = torch.randn(8, 6, 64)  # eight heads of width 64 in a model of width 512
ratio = dot(heads, heads) / scaled_dot(heads, heads)
claim(
    "score-8",
    {
        "the divisor is 8 everywhere": torch.allclose(ratio, torch.tensor(8.0)),
        "the root of the model's width would be 22.6": round(
            math.sqrt(heads.shape[0] * heads.shape[2]), 1
        )
        == 22.6,
    },
)

# %% [markdown]
r"""
### About the worked example
"""

# %% tags=["claim:steps-1"]
claim(
    "steps-1",
    {
        "keys": steps.keys.tolist() == [[0, 1, 1], [4, 4, 0], [2, 3, 1]],
        "queries": steps.queries.tolist() == [[1, 0, 2], [2, 2, 2], [2, 1, 3]],
        "values": steps.values.tolist() == [[1, 2, 3], [2, 8, 0], [2, 6, 3]],
        "scores": steps.scores.tolist() == [[2, 4, 4], [4, 16, 12], [4, 12, 10]],
        "weights, first and last": torch.allclose(
            steps.weights[[0, 2], [0, 2]], torch.tensor([0.063379, 0.11917]), rtol=1e-4
        ),
    },
)

# %% tags=["claim:steps-2"]
outputs = seven_steps(**example(), weights=by_hand).outputs
claim(
    "steps-2",
    {
        "the hand-made weights give the outputs as printed": torch.allclose(
            outputs, torch.tensor([[2.0, 7.0, 1.5], [2.0, 8.0, 0.0], [2.0, 7.8, 0.3]])
        ),
        "rows 2 and 3 are roundings": torch.allclose(rounded[1:], by_hand[1:]),
        "row 1 is none; rounded, it would sum to 1.1": abs(
            rounded[0].sum().item() - 1.1
        )
        < 1e-6,
    },
)

# %% tags=["claim:steps-3"]
claim("steps-3", {"all nine numbers agree to 1e-12": difference < 1e-12})


# %%
def by_definition(scores):
    return scores.exp() / scores.exp().sum()


# the first score at which exp is infinite, or so large that the sum is
too_large = {torch.float32: 88.73, torch.float16: 11.09}
over = [torch.tensor([s, 0.0], dtype=t) for t, s in too_large.items()]
under = [torch.tensor([s - 0.02, 0.0], dtype=t) for t, s in too_large.items()]

# %% tags=["claim:steps-4"]
small, in_python = torch.tensor([1.0, 2.0, 3.0]), [p / sum(powers) for p in powers]
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
torch has a layer for attention, `nn.MultiheadAttention`. It projects, scales, attends, and projects once more with a matrix $W_o$. To get the worked
example out of it, undo four things:

- the scale: multiply `w_query` by $\sqrt4$, since the layer's width is 4;
- the width: pad the matrices from 4 × 3 to 4 × 4;
- the bias: leave it out;
- $W_o$: make it the identity.

The layer stores its matrices transposed.
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

# %% tags=["claim:steps-6"]
biased = dict(torch.nn.MultiheadAttention(4, 1).named_parameters())
same_outputs = torch.allclose(from_layer[:, :3], steps.outputs, atol=1e-5)
claim(
    "steps-6",
    {
        "with all four undone, torch's layer gives the example's outputs": same_outputs,
        "it has a last matrix, W_o": "out_proj.weight" in biased,
        "its bias is on q, k and v: 3 times 4 numbers": biased["in_proj_bias"].shape
        == (12,),
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

# %% tags=["claim:steps-8"]
linear, attention = torch.nn.Linear(4, 300), torch.nn.MultiheadAttention(64, 1)
claim(
    "steps-8",
    {
        "nn.Linear starts within 1/sqrt(4) = 0.5": linear.weight.abs().max() <= 0.5,
        "MultiheadAttention starts within Xavier's bound, √(6 / (in + out))": attention.in_proj_weight.abs().max()
        <= math.sqrt(6 / (64 + 3 * 64)),
        "the example's whole numbers reach a score of 16": steps.scores.max() == 16,
        "and a weight of .98": round(steps.weights.max().item(), 2) == 0.98,
    },
)

# %% tags=["claim:steps-9"]
batch = torch.randn(2, 3, 5)
claim(
    "steps-9",
    {
        ".mT swaps the last two axes of a batch": batch.mT.shape == (2, 5, 3),
        "for two axes .T is the same": torch.equal(batch[0].T, batch[0].mT),
    },
)

# %% [markdown]
r"""
## 8 · Three wrong ideas worth having once

**"A score of 0 means: do not look."**

> **Predict.** Scores 0, −2, −3. What share does the first key get?
>
> <details><summary>Answer</summary>
> 84 %. Zero is only a number; the others are below it. "Do not look" is −∞ (lesson 03).
> </details>
"""

# %%
show(torch.tensor([0.0, -2.0, -3.0]).softmax(-1))

# %% [markdown]
r"""
**"The dot product picks the most similar key."** Below, the first key points exactly the way the query does. The second points 45° away, and is
three times as long.

> **Predict.** Which one gets the larger weight?
>
> <details><summary>Answer</summary>
> The second: 3 · cos 45° = 2.12 against 1.
> </details>
"""

# %%
q, k = torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 0.0], [3 / 2**0.5, 3 / 2**0.5]])
show(
    scores=dot(q, k),
    weights=attend(q, k, k, score=dot).weights,
    cosine=torch.nn.functional.cosine_similarity(q, k),
)

# %% [markdown]
r"""
The cosine, the dot product of the directions alone, prefers the first key: 1 against 0.71. The weight prefers the second.

**"A weight of 0.5 means the same in every row."** A weight is relative to the other keys.

> **Predict.** A key scores 2. Its one rival scores 0. Then eight more rivals with score 0 join. What happens to its weight?
>
> <details><summary>Answer</summary>
> It falls from .88 to .45, although nothing about the key changed: e² / (e² + 1) against e² / (e² + 9).
> </details>
"""

# %%
for rivals in (1, 9):
    show(torch.tensor([2.0] + [0.0] * rivals).softmax(-1)[0])

# %% [markdown]
r"""
## 9 · Exercises

Open [exercises/02_scoring](exercises/02_scoring.ipynb): from one ratio by hand to an answer in your own words. Every answer is checked on the
spot.

## 10 · Summary

- Attention scores each key against a query, turns scores into weights with a softmax, and mixes the values: `attend(query, key, value)`.
- It is a soft look-up: a dictionary when scores are sharp, an average when they are flat. Kernel regression is its ancestor.
- Softmax looks at differences of scores. Large differences saturate it, and its gradient vanishes.
- Dot products of random vectors have variance $d$; dividing by $\sqrt d$ keeps them at 1 at the start. This holds for mean 0 and variance 1.
- On our look-up the plain dot product does not get there from width 64 on; scaled and additive scores do at every width. Additive costs more per
  pair.

**Sources.** Nadaraya 1964; Watson 1964; Bahdanau, Cho & Bengio 2014 (arXiv:1409.0473); Luong, Pham & Manning 2015 (arXiv:1508.04025); Vaswani
et al. 2017 (arXiv:1706.03762), section 3.2.1; Karim 2019, *Illustrated: Self-Attention*; the course's own sources S0, S1, S2, S4.

**Next**: [03 · Matrix form](03_matrix_form.ipynb): why five matrix products do what a loop over queries does, and what training puts into the
matrices.
"""
