# %% [markdown]
r"""
# 03 · Matrix form: how does it become a few matrix products?

**The question.** By hand, lesson 02 worked one query at a time; its code did all of them at once with `query @ key.mT`. Why is that the same? How does
the whole of attention become a handful of matrix products, and what in those matrices is learned?

**After this lesson you can**

- turn the loop over queries into products, and predict every shape;
- read both conventions, tokens as rows and tokens as columns, and translate between them;
- say which numbers a self-attention layer learns, and watch it learn them;
- hide tokens with a mask, and recognise two masks that look right and are wrong.

**Time** about 50 minutes. **You need** [lesson 02](02_scoring.ipynb): query, key, value, score, weight. **Exercises**:
[exercises/03_matrix_form](exercises/03_matrix_form.ipynb).
"""

# %%
import torch
from torch.testing import assert_close

from lesson_lib.attention import attend, attend_columns
from lesson_lib.chapters.c03_matrix_form import figures
from lesson_lib.claims import claim, verdict
from lesson_lib.experiments import devices
from lesson_lib.masks import causal
from lesson_lib.measure import cpu_seconds
from lesson_lib.scores import dot
from lesson_lib.show import show, show_source

_ = torch.manual_seed(0)

# %% [markdown]
r"""
> **Predict first.** A sequence has 6 tokens of width 10. Queries and keys have width 4. How many numbers are in the table of scores: 24, 36 or 60?
>
> <details><summary>Answer</summary>
> 36: one score for each pair of tokens, 6 × 6. The widths 10 and 4 do not appear in it.
> </details>

## 1 · From the loop to the product

Here is self-attention over a sequence `x`, one token at a time: for token $i$, its scores with all keys, its weights, its output.
"""


# %%
def attend_in_a_loop(query, key, value):
    outputs = []
    for q in query:  # one token's query, shape (d_k,)
        scores = torch.stack([torch.dot(q, k) for k in key])  # shape (n,)
        weights = scores.softmax(-1)
        outputs.append((weights[:, None] * value).sum(0))  # shape (d_v,)
    return torch.stack(outputs)


# %%
n, d_model, d_k, d_v = 6, 10, 4, 5
x = torch.randn(n, d_model)
w_q, w_k, w_v = (torch.randn(d_model, d) / d_model**0.5 for d in (d_k, d_k, d_v))
query, key, value = x @ w_q, x @ w_k, x @ w_v
show(attend_in_a_loop(query, key, value)[0])

# %% [markdown]
r"""
Two things repeat in that loop. `torch.dot(q, k)` runs over all pairs: that is what a matrix product with a transpose is, `query @ key.mT`. And a
weighted sum of the rows of `value` is a product too, `weights @ value`. So the loop collapses:

$$Q = X W_q, \qquad K = X W_k, \qquad V = X W_v$$
$$A = Q K^\top, \qquad A' = \operatorname{softmax}_{\text{rows}}(A), \qquad O = A' V$$
"""

# %%
scores = query @ key.mT
weights = scores.softmax(-1)
output = weights @ value
assert_close(output, attend_in_a_loop(query, key, value))
assert_close(output, attend(query, key, value, score=dot).output)
show(output[0])

# %% [markdown]
r"""
(We leave out $1/\sqrt d$ until section 4, as the lecture does that this lesson follows. It changes no shape.)

The same row, from three lines without a loop. `.mT` swaps the last two axes, so the three lines also work for a whole batch of sequences: put
any number of axes in front.

> **Predict.** With 256 tokens of width 64, how much faster is the product: twice, five times, or more than twenty times?
>
> <details><summary>Answer</summary>
> More than twenty times on the machine that built this page; the next figure shows its answer. The arithmetic is the same; the loop spends its time
> on Python and on tiny operations. How much more depends on the machine, so the cell after the figure insists on five times only.
> </details>
"""

# %% tags=["measured"]
sizes = [16, 32, 64, 128, 256]
seconds = {"loop": [], "product": []}
for size in sizes:
    q = torch.randn(size, 64)
    seconds["loop"].append(
        cpu_seconds(lambda q=q: attend_in_a_loop(q, q, q), repeats=1)
    )
    seconds["product"].append(
        cpu_seconds(
            lambda q=q: [attend(q, q, q, score=dot) for _ in range(100)], repeats=3
        )
        / 100
    )
figures.loop_and_product(sizes, seconds, devices.beside("loop"))

# %%
verdict(
    "at 256 tokens the product is at least 5 times faster",
    seconds["loop"][-1] > 5 * seconds["product"][-1],
)

# %% [markdown]
r"""
(With a GPU at hand, a panel beside shows its seconds; without one, those of a stored run on a GPU, if there is one.)

Speed is one gain. The other is in the order of things. No token needs another's result, in the loop either; but only the product can use that. All
queries, all keys, all values, all outputs come at once. Lesson 08 sets this against recurrent networks, in which every token waits for the one before.

## 2 · Every matrix, drawn to scale

The sizes are $n = 6$ tokens, $d_{model} = 10$, $d_k = 4$, $d_v = 5$. The thick orange edges count tokens.
"""

# %%
figures.to_scale(n, d_model, d_k, d_v)

# %% [markdown]
r"""
> **Predict.** You double the number of tokens. Which of Q, K, V, A, O grow to twice their size, and which to four times? Do $W_q, W_k, W_v$ grow?
>
> <details><summary>Answer</summary>
> Q, K, V and O double. A grows to four times. The three learned matrices stay: that is why one layer serves sequences of any length.
> </details>
"""


# %%
def sizes_at(n):
    x = torch.randn(n, d_model)
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    return {
        "Q": q.numel(),
        "K": k.numel(),
        "V": v.numel(),
        "A": (q @ k.mT).numel(),
        "O": attend(q, k, v).output.numel(),
        "W_q": w_q.numel(),
    }


for name, count in sizes_at(6).items():
    print(f"{name:>3}: {count:3} numbers at n = 6, {sizes_at(12)[name]:3} at n = 12")

# %% [markdown]
r"""
Change the sizes yourself. The widget starts with tokens as columns, $I = X^\top$, which section 3 explains. *Do:* set $n$ to 1. *Then:* find a setting in which `O` and `X` have the same shape; layers that are stacked
need it. *Last:* switch to rows and see what stays.

<details><summary>What you should find</summary>
With n = 1 the score table is one number, and its weight is 1. O and X have the same shape when d_v = d_model. In columns every matrix is the
transpose of its row form, and the factors stand in the other order; A has tokens on both sides in both.
</details>
"""

# %%
from lesson_lib.chapters.c03_matrix_form.shapes_explorer import ShapeExplorer

ShapeExplorer(n=6, d_model=10, d_k=4, d_v=5)

# %% [markdown]
r"""
## 3 · Rows or columns

Code and most papers lay tokens down as rows. Many lectures stand them up as columns: the input is $I = X^\top$, and matrices multiply from the left.

| | tokens are rows | tokens are columns |
|---|---|---|
| input | $X$, $(n, d)$ | $I$, $(d, n)$ |
| queries | $Q = X W_q$ | $Q = W^q I$ |
| scores | $A = Q K^\top$, row = query | $A = K^\top Q$, column = query |
| softmax | over each row | over each column |
| outputs | $O = A' V$ | $O = V A'$ |

Transpose the left column and you get the right one, since $(BC)^\top = C^\top B^\top$. The lecture's $W^q$ is our $W_q^\top$; nothing else changes.
`attend_columns` follows the lecture letter by letter, and takes the transposed matrices:
"""

# %%
show_source(attend_columns)

# %%
c = attend_columns(x.T, w_q.T, w_k.T, w_v.T)
assert_close(c.O, output.T)
assert_close(c.A_prime, weights.T)
figures.mirrored(weights, c.A_prime)

# %% [markdown]
r"""
> **Predict.** A friend reads the lecture ($O = V A'$) and writes row-convention code: `value @ weights`. Values have the shape (6, 5), weights
> (6, 6). What happens? And what if values were (6, 6)?
>
> <details><summary>Answer</summary>
> (6, 5) @ (6, 6) does not fit: an error, which is lucky. (6, 6) @ (6, 6) fits: no error, and wrong numbers.
> </details>
"""

# %%
square = torch.randn(n, n)  # values as wide as the sequence is long
right, wrong = weights @ square, square @ weights
try:
    value @ weights
except RuntimeError:
    print("value (6, 5) @ weights (6, 6): torch refuses")
show(largest_error=(right - wrong).abs().max())

# %% [markdown]
r"""
The second product ran, and its largest error is 2.2: no small slip, just other numbers. The silent case is the dangerous one. Guard against it the way this course's tests do: give every axis a different size, best a prime. Then a
swapped axis cannot fit by luck.

## 4 · What is learned?

The table $A'$ is *not* learned. It is computed anew for each sequence. What is learned are the three matrices, and they stay the same for every
sequence and every length.

Watch them learn. Eight symbols have secret partners: each symbol's partner is another symbol, and partnership is one-way (0 looks for 3, 3 looks
for 5, and so on). A sequence holds all eight symbols in random order, each with a random payload from 0 to 7. For each token, the layer must give
*the payload of its partner*. A token is a row of 16 numbers: a 1 at its symbol, a 1 at its payload.
"""

# %%
from lesson_lib.device import to_device
from lesson_lib.training import fit

partner = torch.tensor([3, 6, 0, 5, 2, 7, 4, 1])


def draw(generator, batch=64):
    symbols = torch.rand(batch, 8, generator=generator).argsort(-1)
    payload = torch.randint(8, (batch, 8), generator=generator)
    tokens = torch.cat([torch.eye(8)[symbols], torch.eye(8)[payload]], dim=-1)
    place = symbols.argsort(-1).gather(
        1, partner[symbols]
    )  # where each token's partner stands
    return tokens, payload.gather(1, place), place


# %% [markdown]
r"""
The layer below has nothing but the three matrices. No bias, no other part.
"""


# %%
class SelfAttention(torch.nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.w_q = torch.nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_k = torch.nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_v = torch.nn.Parameter(torch.randn(d_model, d_v) / d_model**0.5)

    def forward(self, x):
        return attend(x @ self.w_q, x @ self.w_k, x @ self.w_v)


def loss(model, batch):
    tokens, answer, _ = batch
    return torch.nn.functional.cross_entropy(
        model(tokens).output.flatten(0, 1), answer.flatten()
    )


# %% [markdown]
r"""
> **Predict.** Chance is one in eight. Could a layer *without* $W_q$ and $W_k$, with scores $x_i \cdot x_j$, solve this?
>
> <details><summary>Answer</summary>
> No. Its scores are symmetric and largest for the token itself; partnership is one-way, and the partner is another token. The cell trains both.
> </details>
"""


# %%
class Unprojected(SelfAttention):
    def forward(self, x):
        return attend(x, x, x @ self.w_v)


# %%
def right_answers(model, split=1_000_000):  # a generator that training never uses
    tokens, answer, _ = to_device(draw(torch.Generator().manual_seed(split), 500))
    with torch.no_grad():
        return (model(tokens).output.argmax(-1) == answer).float().mean().item()


def train(kind, seed):
    torch.manual_seed(seed)
    model = kind(16, 8, 8)
    before = model(draw(torch.Generator().manual_seed(7))[0][:1]).weights[0].detach()
    settings = {"steps": 800, "lr": 3e-2, "seed_number": seed, "name": kind.__name__}
    fit(model, draw, loss, **settings)
    return model, before


# %%
trained = {
    kind.__name__: [train(kind, seed) for seed in range(3)]
    for kind in (SelfAttention, Unprojected)
}
accuracy = {
    name: [right_answers(model) for model, _ in models]
    for name, models in trained.items()
}
_, answer, _ = draw(torch.Generator().manual_seed(1_000_000), 500)
commonest = (answer == answer.mode(-1, keepdim=True).values).float().mean().item()
figures.with_and_without(
    {name: sorted(shares)[1] for name, shares in accuracy.items()},
    marks={"chance": 1 / 8, "commonest payload": commonest},
)

# %%
verdict(
    "with projections all three seeds answer at least 95 %",
    min(accuracy["SelfAttention"]) >= 0.95,
    trained=True,
)
verdict(
    "without them none beats naming the commonest payload by 5 %",
    max(accuracy["Unprojected"]) < commonest + 0.05,
    trained=True,
)

# %% [markdown]
r"""
With projections all three seeds end close to 1. Without them the layer cannot find the partner. What it can do is name the commonest payload of the
sequence, which is right for about a third of the tokens (the upper dashed line); it does no better.

Where did the knowledge go? Look at one sequence before and after training, beside the truth. Rows and columns are *places* in this sequence, not
symbols.
"""

# %%
model, before = trained["SelfAttention"][0]
tokens, _, place = to_device(draw(torch.Generator().manual_seed(7)))
after = model(tokens[:1]).weights[0].detach()
figures.found_partners(before, after, place[0])

# %% [markdown]
r"""
The truth is visible in the matrices as well. Each score is a sum of four parts: symbol with symbol, symbol with payload, payload with symbol, payload
with payload. The part of symbol $a$ with symbol $b$ is entry $(a, b)$ of $W_q W_k^\top$ (before the division by $\sqrt{d_k}$). Partnership must show
there for *every* sequence:
"""

# %%
relation = (model.w_q @ model.w_k.mT)[:8, :8].detach().cpu()
found = relation.argmax(-1)
figures.learned_relation(relation, partner)

# %%
verdict(
    "the largest entry of each row is the partner",
    torch.equal(found, partner),
    trained=True,
)
names = {name: tuple(p.shape) for name, p in model.named_parameters()}
print(names, sum(p.numel() for p in model.parameters()), "numbers")

# %% [markdown]
r"""
Three matrices, 384 numbers: $16 \cdot 8$ three times. That is all this layer knows.

*What this does not show.* This was one relation, and it hangs on symbols alone. Two relations at once need several heads (lesson 04); relations
between places need positions (lesson 05).

## 5 · Only matrix products?

It is tempting to say: so attention is a chain of matrix products. Leave the softmax out and see what that would be.

> **Predict.** Without softmax the output is $X W_v$ weighted by $X W_q (X W_k)^\top$: three factors of $X$. Double every input. By which factor does the
> output grow?
>
> <details><summary>Answer</summary>
> By 2³ = 8. And with softmax, no such rule: weights stay shares, and the output stays among the values.
> </details>
"""


# %%
def without_softmax(x):
    return ((x @ w_q) @ (x @ w_k).mT) @ (x @ w_v)


def with_softmax(x):
    return attend(x @ w_q, x @ w_k, x @ w_v, score=dot).output


show(
    without=without_softmax(2 * x)[:2, 0] / without_softmax(x)[:2, 0],
    with_it=with_softmax(2 * x)[:2, 0] / with_softmax(x)[:2, 0],
)

# %% [markdown]
r"""
Without softmax both tokens grow by 8. With it there is no such rule: the values double, the weights move as well, and each token gets its own
factor.

There is a second difference. In a chain of products the brackets may be moved (the factors keep their places): $(Q K^\top) V = Q (K^\top V)$. The left
side makes an $n \times n$ table (36 numbers here), the right side only a $d_k \times d_v$ one (20). Softmax stands in the way, since it needs the whole row. *Linear attention*
replaces $e^{q \cdot k}$ by a product $\phi(q) \cdot \phi(k)$ of a vector made from the query and one made from the key, so that the brackets can be
moved again; lesson 08 builds it.
"""

# %%
one_grouping, other_grouping = (query @ key.mT) @ value, query @ (key.mT @ value)
assert_close(one_grouping, other_grouping, rtol=1e-4, atol=1e-4)
show(
    table_of_the_first=(query @ key.mT).numel(),
    table_of_the_second=(key.mT @ value).numel(),
)

# %% [markdown]
r"""
## 6 · Hiding tokens: the mask

A model that writes text must not look at words that are not written yet. So we need a table of who may look at whom. Ours is boolean, and **True
means: may look**. `show` writes True as 1. (Some libraries mean the opposite by True. Check before you pass a mask to anybody.)
"""

# %%
show(causal(4))

# %% [markdown]
r"""
Row 0, the first token, sees itself. Row 3, the last, sees all four. This mask is called **causal**.

### A mask that looks right

A first idea: compute the weights, then set the forbidden ones to 0.

> **Predict.** What is wrong with `weights * mask`? Look at the sums of the rows below, and at whom the first row still depends on.
>
> <details><summary>Answer</summary>
> The rows no longer sum to 1. And the forbidden scores were in the softmax's sum, so a later token still changes the earlier weights: the future
> leaks.
> </details>
"""

# %%
x = 0.5 * torch.randn(4, 8)
changed = x.clone()
changed[3] = torch.randn(8)  # another last token: tokens 0, 1, 2 must not notice
multiplied, multiplied_changed = (
    dot(t, t).softmax(-1) * causal(4) for t in (x, changed)
)
show(
    sums=multiplied.sum(-1),
    change_in_row_0=(multiplied - multiplied_changed)[0].abs().max(),
)

# %% [markdown]
r"""
The first three rows sum to less than 1. And the change is 0.0070, not 0: token 3 changed, and row 0 noticed.

### The repair

Hide *before* the softmax. A forbidden score becomes $-\infty$, and $e^{-\infty} = 0$: it adds nothing to the sum, and its weight is exactly 0. This is
what `attend(mask=...)` does.
"""

# %%
hidden = dot(x, x).masked_fill(~causal(4), -torch.inf)
weights, weights_changed = (
    attend(t, t, t, score=dot, mask=causal(4)).weights for t in (x, changed)
)
assert_close(hidden.softmax(-1), weights)
show(
    weights=weights,
    sums=weights.sum(-1),
    change_in_rows_0_to_2=(weights - weights_changed)[:3].abs().max(),
)

# %% [markdown]
r"""
The upper triangle is 0, the rows sum to 1, and changing the last token changes nothing before it. That test, *disturb the future and compare the
past*, sees what the eye does not. Use it on every causal model you write.

### A number instead of infinity

Much code writes −1e9 in place of −∞. In everyday float32 that works. Three cases break it.

> **Predict.** A row may look at nothing (a padded sentence of length 0, say). All its scores are −1e9. What are its weights?
>
> <details><summary>Answer</summary>
> All equal: softmax looks at differences, and they are 0. The row that should see nothing sees everything. With −∞ the plain formula gives 0/0, not a
> number; <code>attend</code> gives exact zeros.
> </details>
"""

# %%
nothing = torch.zeros(1, 3, dtype=torch.bool)
scores = torch.tensor([[1.0, 2.0, 3.0]])
q, k, v = torch.ones(1, 1), scores.mT, torch.eye(3)
show(
    with_1e9=scores.masked_fill(~nothing, -1e9).softmax(-1),
    with_infinity=scores.masked_fill(~nothing, -torch.inf).softmax(-1),
    attend=attend(q, k, v, score=dot, mask=nothing).weights,
)

# %% [markdown]
r"""
The other two cases: float16 cannot hold −1e9, and torch refuses it; and a visible score *below* −1e9 loses to the hidden ones. The
claims below compute both.

## 7 · Claims

The texts behind them: S0 (an overview of self-attention), S2 (the Transformer, with code) and S3 (lecture notes, part 2).

✓ holds, ◐ holds with a condition, ✗ is corrected. Each finding was computed in the cell that shows it or above it.
"""

# %% tags=["claim:matrix-1"]
x = torch.randn(n, d_model)
rows = attend(x @ w_q, x @ w_k, x @ w_v, score=dot)
c = attend_columns(x.T, w_q.T, w_k.T, w_v.T)
claim(
    "matrix-1",
    {
        "O in columns is the transpose of O in rows": torch.allclose(
            c.O, rows.output.T, atol=1e-5
        ),
        "so is the table of weights": torch.allclose(
            c.A_prime, rows.weights.T, atol=1e-6
        ),
        "A is K transposed times Q": torch.allclose(c.A, c.K.T @ c.Q, atol=1e-4),
        "each column of A′ sums to 1": torch.allclose(c.A_prime.sum(0), torch.ones(n)),
    },
)

# %% tags=["claim:matrix-2"]
one_head = dict(torch.nn.MultiheadAttention(16, 1, bias=False).named_parameters())
claim(
    "matrix-2",
    {
        "our layer learns its partners with three matrices": set(names)
        == {"w_q", "w_k", "w_v"},
        "torch's layer adds a fourth, W_o": one_head["in_proj_weight"].shape == (48, 16)
        and one_head["out_proj.weight"].shape == (16, 16),
    },
)

# %% tags=["claim:matrix-3"]
claim(
    "matrix-3",
    {
        "one product gives the loop's numbers": torch.allclose(
            attend(query, key, value, score=dot).output,
            attend_in_a_loop(query, key, value),
            atol=1e-5,
        ),
        "at least 5 times faster at 256 tokens": seconds["loop"][-1]
        > 5 * seconds["product"][-1],
    },
)

# %% tags=["claim:matrix-4"]
claim(
    "matrix-4",
    {
        "without softmax, doubling the input gives 8 times the output": torch.allclose(
            without_softmax(2 * x), 8 * without_softmax(x), rtol=1e-4
        ),
        "with softmax it does not": not torch.allclose(
            with_softmax(2 * x), 8 * with_softmax(x), rtol=0.1
        ),
        "without softmax the brackets can be moved": torch.allclose(
            one_grouping, other_grouping, rtol=1e-4, atol=1e-4
        ),
    },
)

# %% tags=["claim:matrix-5"]
c = attend_columns(
    x.T, w_q.T, w_k.T, torch.randn(n, d_model)
)  # values as wide as the sequence is long
claim(
    "matrix-5",
    {
        "V A′ is the output": torch.allclose(c.V @ c.A_prime, c.O, atol=1e-5),
        "A′ V runs without an error": (c.A_prime @ c.V).shape == c.O.shape,
        "and is off by more than 1": (c.A_prime @ c.V - c.O).abs().max() > 1,
    },
)

# %% tags=["claim:matrix-6"]
two_words = torch.randn(2, 512)
q, k, v = (two_words @ (torch.randn(512, 512) / 512**0.5) for _ in range(3))
z = attend(q, k, v)
claim(
    "matrix-6",
    {
        "Q, K and V are (2, 512)": q.shape == k.shape == v.shape == (2, 512),
        "scores and weights are (2, 2)": z.weights.shape == (2, 2),
        "Z is (2, 512)": z.output.shape == (2, 512),
    },
)

# %%
q, k, v = torch.randn(7, 4), torch.randn(7, 4), torch.randn(7, 3)
before = attend(q, k, v, mask=causal(7)).output
other_k = torch.cat([k[:4], 100 * k[4:]])
other_v = torch.cat([v[:4], -1e9 * v[4:]])
after = attend(q, other_k, other_v, mask=causal(7)).output
infinite = torch.cat([v[:4], torch.full((3, 3), torch.inf)])
ours = attend(q, k, infinite, mask=causal(7)).output
by_torch = torch.nn.functional.scaled_dot_product_attention(
    q, k, infinite, attn_mask=causal(7)
)

# %% tags=["claim:mask-1"]
claim(
    "mask-1",
    {
        "the first four outputs are the same to the bit": torch.equal(
            before[:4], after[:4]
        ),
        "a hidden infinity leaks: 0 · inf is nan": ours[:4].isnan().any(),
        "in torch's own function, too": by_torch[:4].isnan().any(),
    },
)

# %%
mask = torch.tensor([[True, False]])
try:
    torch.zeros(1, 2, dtype=torch.float16).masked_fill(~mask, -1e9)
    refused = False
except RuntimeError:
    refused = True
plain = torch.zeros(1, 2).masked_fill(~mask, -1e9).softmax(-1)
low = torch.tensor([[-2e9, 0.0]])  # the visible key scores -2e9, the hidden one 0
with_1e9 = low.masked_fill(~mask, -1e9).softmax(-1)
one, zeros = torch.ones(1, 1), torch.zeros(2, 1)
with_infinity = attend(one, zeros, torch.eye(2), score_bias=low, mask=mask).weights

# %% tags=["claim:mask-2"]
uniform = scores.masked_fill(~nothing, -1e9).softmax(-1)
zero = attend(one, scores.mT, torch.eye(3), mask=nothing).weights
claim(
    "mask-2",
    {
        "fine in float32 for ordinary scores": plain.tolist() == [[1.0, 0.0]],
        "float16 refuses -1e9": refused,
        "a row with nothing to see becomes uniform": uniform.allclose(
            torch.tensor(1 / 3)
        ),
        "attend gives that row zeros": zero.tolist() == [[0.0, 0.0, 0.0]],
        "a visible score of -2e9 loses to a hidden -1e9": with_1e9.tolist()
        == [[0.0, 1.0]],
        "with infinity it wins": with_infinity.tolist() == [[1.0, 0.0]],
    },
)

# %% [markdown]
r"""
## 8 · Three wrong ideas worth having once

**"Attention learns the weights."** It learns three matrices. The weights are computed. Feed the trained layer of section 4 two sequences: the same
matrices, different tables.

> **Predict.** The same eight symbols in reverse order. How does the table of weights change?
>
> <details><summary>Answer</summary>
> Its rows and columns are reversed. No weight is tied to a place: the partner is found wherever it stands.
> </details>
"""

# %%
forward, backward = (
    model(t).weights[0].detach() for t in (tokens[:1], tokens[:1].flip(1))
)
verdict(
    "reversing the tokens reverses rows and columns of the table",
    torch.allclose(backward, forward.flip(0, 1), atol=1e-4),
)
verdict(
    "and the table is another one",
    not torch.allclose(backward, forward, atol=1e-2),
    trained=True,
)

# %% [markdown]
r"""
**"The table of weights is square."** Only when a sequence attends to itself.

> **Predict.** Three queries ask seven keys. Which shape has the table of weights?
>
> <details><summary>Answer</summary>
> (3, 7): a row per query, a column per key.
> </details>
"""

# %%
weights = attend(torch.randn(3, 4), torch.randn(7, 4), torch.randn(7, 2)).weights
print(tuple(weights.shape))

# %% [markdown]
r"""
**"softmax(dim=-1) is always right."** It is right when keys are columns. In the lecture's convention they are rows.

> **Predict.** You compute $A = K^\top Q$ and call `softmax(-1)`. Each output is $V$ times a column of the result. What is wrong with those columns?
>
> <details><summary>Answer</summary>
> They do not sum to 1: the softmax ran over the queries. The outputs are no mixtures of the values any more.
> </details>
"""

# %%
c = attend_columns(x.T, w_q.T, w_k.T, w_v.T)
show(right=c.A.softmax(-2).sum(-2), wrong=c.A.softmax(-1).sum(-2))

# %% [markdown]
r"""
One column of the wrong table sums to 3.3, the others to 0.4 to 0.6.

## 9 · Exercises

Open [exercises/03_matrix_form](exercises/03_matrix_form.ipynb). Every answer is checked on the spot.

## 10 · Summary

- Five products make self-attention: `x @ w_q`, `x @ w_k`, `x @ w_v`, `query @ key.mT`, `weights @ value`, with a softmax before the last.
- Rows or columns is a matter of transposing: $O = A'V$ or $O = VA'$. With square shapes the wrong order runs silently; use different primes.
- Learned are $W_q, W_k, W_v$. The weights are computed for each sequence; $W_q W_k^\top$ holds the relation.
- Softmax is what keeps attention from being a chain of products.
- Hide with −∞ before the softmax, never with 0 after it. Test by disturbing the future.

**Sources.** Vaswani et al. 2017 (arXiv:1706.03762), section 3.2; Hung-yi Lee, *Machine Learning* 2021, self-attention part 2 (the column convention);
the course's own sources S0, S2, S3.

**Next**: [04 · Multi-head attention](04_multi_head.ipynb): what one table of weights cannot do.
"""
