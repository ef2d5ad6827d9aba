# %% [markdown]
r"""
# 03 · Matrix form: evidence

What part [03](../03_matrix_form.ipynb) says in a sentence, with protocol, seeds and numbers; and what the course's sources claim of matrices and
masks, each with its own sentence. S0 is an overview, S2 a text on the Transformer with code, S3 lecture notes. ✓ holds, ◐ holds with a condition. Each
finding is computed in its cell or above it; were it not true, the cell would end in an error.

<details><summary>中文摘要 · Chinese</summary>
本页给出第 3 章各个结论的依据:三个随机种子的结果、循环与矩阵乘法的用时,以及各篇原文关于矩阵形式和掩码的原句与判定。
</details>
"""

# %%
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from lesson_lib.attention import attend, attend_columns
from lesson_lib.chapters.c03_matrix_form import figures
from lesson_lib.chapters.c03_matrix_form.experiments import partners
from lesson_lib.claims import claim
from lesson_lib.experiments import devices, results
from lesson_lib.masks import causal
from lesson_lib.measure import cpu_seconds
from lesson_lib.scores import dot
from lesson_lib.show import show

_ = torch.manual_seed(0)

# %% [markdown]
r"""
## 1 · Secret partners: three seeds

One layer of self-attention, 800 steps of Adam, batches of 64 parties, a learning rate of 0.03 that warms up over a tenth of the steps and then falls along a cosine. The
rate was not tuned. The test is 500 parties from a generator that training never uses. "Partners found": in how many rows of the block guest by guest
of $W_q W_k^\top$ the partner's entry is the largest. Run it again with `make experiments ARGS=partners`.
"""

# %%
rows = results("partners")["rows"]
for layer in partners.RECIPE["layers"]:
    tests = [row["test"] for row in rows if row["layer"] == layer]
    print(f"{layer:14} right answers:", *(f"{share:.3f}" for share in tests))
found = [row["partners_found"] for row in rows if "partners_found" in row]
print("partners found:               ", *(f"{share:.3f}" for share in found))
print(f"naming the most frequent card: {rows[0]['commonest']:.3f}")

# %%
with_projections = [row["test"] for row in rows if row["layer"] == "SelfAttention"]
without = [row["test"] for row in rows if row["layer"] == "Unprojected"]
assert min(with_projections) > 0.99 and set(found) == {1.0}
assert max(without) < rows[0]["commonest"]

# %% [markdown]
r"""
What this does not show: one relation, told by names alone. Two relations at once need several heads (chapter 04); relations between places need positions (chapter 05).

Why the layer without projections stays *below* the party's most frequent card: each guest scores itself highest, with $x_i \cdot x_i = 2$ against 0 or 1, so its own card weighs most.

## 2 · A loop, and the product

The same numbers, one query at a time:
"""


# %%
def attend_in_a_loop(query, key, value):
    outputs = []
    for q in query:  # one token's query, shape (d_k,)
        scores = torch.stack([torch.dot(q, k) for k in key])  # shape (n,)
        outputs.append((scores.softmax(-1)[:, None] * value).sum(0))  # shape (d_v,)
    return torch.stack(outputs)


n, d_model, d_k, d_v = 6, 10, 4, 5
x = torch.randn(n, d_model)
w_q, w_k, w_v = (torch.randn(d_model, d) / d_model**0.5 for d in (d_k, d_k, d_v))
query, key, value = x @ w_q, x @ w_k, x @ w_v
looped = attend_in_a_loop(query, key, value)
assert_close((query @ key.mT).softmax(-1) @ value, looped)

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

# %% [markdown]
r"""
The arithmetic is the same; the loop spends its time on Python and on tiny operations. So the factor is no measure of parallel work. That is a matter of order: in the loop,
too, no token waits for another, and only the product makes use of it. Chapter 08 sets this against recurrent networks, in which every token waits.

## 3 · What the sources say of the matrices
"""

# %% tags=["claim:matrix-3"]
claim(
    "matrix-3",
    {
        "one product gives the loop's numbers": torch.allclose(
            attend(query, key, value, score=dot).output, looped, atol=1e-5
        ),
        "at least 5 times faster at 256 tokens": seconds["loop"][-1]
        > 5 * seconds["product"][-1],
    },
)

# %% [markdown]
r"""
The lecture stands tokens up as columns: its input is $I = X^\top$, and matrices multiply from the left. Transpose every matrix of part 03, and turn
each product round, since $(BC)^\top = C^\top B^\top$:

| | tokens are rows | tokens are columns |
|---|---|---|
| input | $X$, $(n, d)$ | $I$, $(d, n)$ |
| queries | $Q = X W_q$ | $Q = W^q I$ |
| scores | $A = Q K^\top$, row = query | $A = K^\top Q$, column = query |
| softmax | over each row | over each column |
| outputs | $O = A' V$ | $O = V A'$ |

The lecture, letter by letter, and then `attend_columns`:
"""

# %%
I = x.T
Q, K, V = w_q.T @ I, w_k.T @ I, w_v.T @ I
A = K.T @ Q
A_prime = A.softmax(0)
columns = attend_columns(I, w_q.T, w_k.T, w_v.T)
assert_close(columns.O, V @ A_prime)
rows_of = attend(query, key, value, score=dot)
figures.mirrored(rows_of.weights, A_prime)

# %% tags=["claim:matrix-1"]
claim(
    "matrix-1",
    {
        "O in columns is the transpose of O in rows": torch.allclose(
            V @ A_prime, rows_of.output.T, atol=1e-5
        ),
        "so is the table of weights": torch.allclose(
            A_prime, rows_of.weights.T, atol=1e-6
        ),
        "each column of A′ sums to 1": torch.allclose(A_prime.sum(0), torch.ones(n)),
    },
)

# %% [markdown]
r"""
**"softmax(-1) is always right."** It is right where keys are columns. In the lecture's table they are rows. The columns of the wrong table sum to anything from 0.3 to 1.9:
"""

# %%
show(right=A.softmax(0).sum(0), wrong=A.softmax(-1).sum(0))

# %% tags=["claim:matrix-5"]
square = torch.randn(n, n)  # values as wide as the sequence is long
claim(
    "matrix-5",
    {
        "V A′ is the output": torch.allclose(
            square @ A_prime, (rows_of.weights @ square.T).T, atol=1e-5
        ),
        "A′ V runs without an error where d_v = n": (A_prime @ square).shape == (n, n),
        "and is off by more than 1": (A_prime @ square - square @ A_prime).abs().max()
        > 1,
    },
)

# %% tags=["claim:matrix-2"]
names = dict(partners.untrained("SelfAttention").named_parameters())
one_head = dict(torch.nn.MultiheadAttention(16, 1).named_parameters())
claim(
    "matrix-2",
    {
        "our layer finds its partners with three matrices": set(names)
        == {"w_q", "w_k", "w_v"},
        "torch's layer adds a fourth, W_o, with one head, too": one_head[
            "out_proj.weight"
        ].shape
        == (16, 16),
        "and biases, if you do not leave them out": {
            "in_proj_bias",
            "out_proj.bias",
        }
        <= set(one_head),
    },
)

# %% [markdown]
r"""
The next sentence of the lecture comes right after a softmax, so it is a manner of speaking. What would it mean without?
"""


# %%
def without_softmax(x):
    return ((x @ w_q) @ (x @ w_k).mT) @ (x @ w_v)


def with_softmax(x):
    return attend(x @ w_q, x @ w_k, x @ w_v, score=dot).output


one_grouping, other_grouping = (query @ key.mT) @ value, query @ (key.mT @ value)
tables = (query @ key.mT).numel(), (key.mT @ value).numel()
show(table_of_the_first=tables[0], table_of_the_second=tables[1])

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

# %% [markdown]
r"""
The left brackets make an $n \times n$ table, the right ones a $d_k \times d_v$ one, which does not grow with the length. Softmax stands in the way, since it needs the whole
row. *Linear attention* (chapter 08) replaces $e^{q \cdot k}$ by a product $\phi(q) \cdot \phi(k)$, so that the brackets can be moved again.
"""

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

# %% [markdown]
r"""
## 4 · What they say of masks

The past, to the bit; and what a hidden infinity does:
"""

# %%
q, k, v = torch.randn(7, 4), torch.randn(7, 4), torch.randn(7, 3)
before = attend(q, k, v, mask=causal(7)).output
other_k = torch.cat([k[:4], 100 * k[4:]])
other_v = torch.cat([v[:4], -1e9 * v[4:]])
after = attend(q, other_k, other_v, mask=causal(7)).output
infinite = torch.cat([v[:4], torch.full((3, 3), torch.inf)])
ours = attend(q, k, infinite, mask=causal(7)).output
by_torch = F.scaled_dot_product_attention(q, k, infinite, attn_mask=causal(7))

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

# %% [markdown]
r"""
A number in place of infinity: where it does, and the three cases that break it.
"""

# %%
nothing, scores = torch.zeros(1, 3, dtype=torch.bool), torch.tensor([[1.0, 2.0, 3.0]])
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
uniform = scores.masked_fill(~nothing, -1e9).softmax(-1)
zero = attend(one, scores.mT, torch.eye(3), mask=nothing).weights

# %% tags=["claim:mask-2"]
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
**Sources.** Vaswani et al. 2017 (arXiv:1706.03762), section 3.2; Hung-yi Lee, *Machine Learning* 2021, self-attention part 2 (the column convention); the course's own
sources S0, S2, S3. **Back** to [03 · Matrix form](../03_matrix_form.ipynb).
"""
