# %% [markdown]
r"""
# 05 · Positional encoding: how does attention know order?

**The question.** *Dog bites man* and *man bites dog* have the same three words. Does attention know which is which?

It does not. This lesson proves that, and then teaches it order in six ways; a causal mask is a seventh. One of them, the sinusoid, has a
property worth proving: moving it on by $\delta$ positions is a rotation. You will derive that rotation by hand, let a computer algebra
system check it, and measure it.

**After this lesson you can**

- prove in four lines that attention ignores order, and name what breaks the proof;
- write down the sinusoidal table, and say what every column does;
- prove that $p_{i+\delta} = R(\delta)\, p_i$, and say what follows and what does not;
- get from there to rotary positions in three steps;
- say which of these ways still works beyond the length it was trained at, from your own measurement.

**Time** about 100 minutes; good places to stop are before section 4 and before section 6. **You need** lessons
[02a](02a_soft_look_up.ipynb) to [04](04_multi_head.ipynb), and sine and cosine. **Exercises**:
[exercises/05_positional_encoding](exercises/05_positional_encoding.ipynb).
"""

# %%
import math

import torch
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.chapters.c05_positional_encoding import figures
from lesson_lib.claims import claim, verdict
from lesson_lib.device import to_device
from lesson_lib.heads import MultiHeadAttention
from lesson_lib.masks import causal
from lesson_lib.positions import (
    Floater,
    Learned,
    Shaw,
    alibi,
    frequencies,
    rotary,
    rotation,
    sinusoidal,
)
from lesson_lib.show import show, show_source

_ = torch.manual_seed(0)

# %% [markdown]
r"""
> **Predict first.** You feed a self-attention layer five tokens, then the same five in another order. Token 2 of the first run stands at place 4 in the
> second. Is its output the same, nearly the same, or different?
>
> <details><summary>Answer</summary>
> The same, up to rounding. Its query meets the same keys and mixes the same values, only in another order, and sums do not care about order.
> </details>

## 1 · Attention does not know order

Let $\pi$ be any **permutation**: a new order of the tokens. Write $\pi X$ for the rows of $X$ in that order.

**Claim.** Without a mask, or any other table that belongs to positions, $\operatorname{attend}(\pi X) = \pi \operatorname{attend}(X)$:
shuffle the inputs, and the same outputs come out, shuffled. The technical word is **equivariant**: the change of the input reappears as the
same change of the output.

**Proof.** As a matrix, $\pi$ has one 1 in every row and column and zeros elsewhere, so $\pi^\top \pi$ is the identity.

1. Projections work on rows one by one: the queries of $\pi X$ are $\pi Q$, the keys $\pi K$, the values $\pi V$.
2. Scores: $(\pi Q)(\pi K)^\top = \pi\, (Q K^\top)\, \pi^\top$. Rows and columns of the table are reordered, and no entry changes.
3. Softmax works inside a row, and does not care about the order there: the weights are $\pi A' \pi^\top$.
4. Outputs: $(\pi A' \pi^\top)(\pi V) = \pi A' (\pi^\top \pi) V = \pi\, (A' V)$. ∎

With several heads each head is shuffled alike, and $W^o$ works on rows, so the whole layer is.
"""

# %%
layer = MultiHeadAttention(d_model=16, n_heads=4)
x = torch.randn(5, 16)
new_order = torch.tensor([3, 0, 4, 1, 2])
outputs = layer(x, x, x).output
of_shuffled = layer(*[x[new_order]] * 3).output
put_back = of_shuffled[new_order.argsort()]
figures.shuffled(outputs[:, :8], of_shuffled[:, :8], put_back[:, :8])

# %%
for _ in range(100):
    shuffle = torch.randperm(5)
    assert_close(layer(*[x[shuffle]] * 3).output, outputs[shuffle])
print("100 random orders: the same outputs, shuffled")

# %% [markdown]
r"""
That was a layer with random weights. Does training change it? Here is a task that needs order: *name the token three places back*. There
are 16 symbols, so a blind guess is right in 1/16 of the cases. One layer of attention, four heads, a linear read-out; no positions.
(`stored` is a run made before. We take from it the learning rate that was best on validation sequences.)
"""

# %%
from lesson_lib.chapters.c05_positional_encoding.experiments import order
from lesson_lib.experiments import results

stored = results("order")["rows"]
best = order.best_rows(stored)
rate = {row["kind"]: row["lr"] for row in best if row["steps"] == 400}
live = {"none": order.train("none", lr=rate["none"], steps=400)[0]}
tokens = to_device(torch.randint(16, (1, 32)))
shuffle = torch.randperm(32)
with torch.no_grad():
    answers, shuffled_answers = live["none"](tokens), live["none"](tokens[:, shuffle])
assert_close(shuffled_answers, answers[:, shuffle], atol=1e-4, rtol=1e-4)
verdict("no positions: under 30 % right after training",
    order.accuracy(live["none"], 32, order.TEST_SEED) < 0.3, trained=True)  # fmt: skip

# %% [markdown]
r"""
No training can help: the proof holds for every setting of the weights. Some answers can be had without order, though. What share does *name
the most frequent symbol of the sequence* get?
"""

# %%
texts = torch.randint(16, (20_000, 32))
most_frequent = texts.mode(dim=1).values
hits = texts[:, :29] == most_frequent[:, None]  # the answers are the first 29 tokens
verdict("it is right in about 0.15 of the cases", 0.14 < hits.float().mean() < 0.16)

# %% [markdown]
r"""
0.15, against 1/16 = 0.06 for a blind guess. Remember that number.

### What breaks the proof

Line 2 breaks when a table is added that does *not* move with the tokens. A causal mask is such a table.

> **Predict.** Put a causal mask on the layer. Are outputs still the same up to order?
>
> <details><summary>Answer</summary>
> No. The first token sees one token, the last sees all: how many you see tells you where you stand.
> </details>
"""

# %%
masked = layer(x, x, x, mask=causal(5)).output
of_shuffled = layer(*[x[new_order]] * 3, mask=causal(5)).output
show(largest_difference=(of_shuffled - masked[new_order]).abs().max())

# %% [markdown]
r"""
Without the mask the difference was 0, up to rounding; now it is 1.8, more than most outputs are large. So deep models with a causal mask
can infer positions without being told (Haviv et al. 2022). The comparison in section 7 has such a row, one layer deep.

## 2 · Add a code to each token

The simplest way in: give every position $i$ a vector $p_i$ of its own, and add it to the token that stands there. The layer sees $x_i +
p_i$.

> **Predict.** Why add? Would it not be cleaner to lay $x_i$ and $p_i$ side by side and let a wider matrix read both?
>
> <details><summary>Answer</summary>
> Adding is a special case of that: W(x + p) = Wx + Wp. It is the wide matrix [W W] applied to both side by side, with its two halves tied. It costs no width.
> </details>
"""

# %%
w, token, code = torch.randn(8, 16), torch.randn(16), torch.randn(16)
added = w @ (token + code)
side_by_side = torch.cat([w, w], dim=1) @ torch.cat([token, code])
assert_close(added, side_by_side)

# %% [markdown]
r"""
Which vectors? They should differ from each other, at any length. Here is the choice of the Transformer paper. Width $d$, even; pair $j$ of
columns has one **frequency** $\omega_j$, in radians per token:

$$p_{i,\,2j} = \sin(i\,\omega_j), \qquad p_{i,\,2j+1} = \cos(i\,\omega_j), \qquad \omega_j = 10000^{-2j/d}, \qquad j = 0, \dots, \tfrac d2 - 1$$
"""


# %%
def codes(n, d):
    """Rows of sines and cosines, written out."""
    table = torch.zeros(n, d, dtype=torch.float64)
    for i in range(n):
        for j in range(d // 2):
            angle = i / 10000 ** (2 * j / d)
            table[i, 2 * j] = math.sin(angle)
            table[i, 2 * j + 1] = math.cos(angle)
    return table


assert_close(codes(50, 16), sinusoidal(50, 16, dtype=torch.float64))
show(frequencies=frequencies(4), table=codes(3, 4))

# %% [markdown]
r"""
By hand, for $d = 4$: the frequencies are $10000^0 = 1$ and $10000^{-1/2} = 0.01$. Position 0 is $\sin 0, \cos 0, \sin 0, \cos 0 = 0, 1, 0,
1$. Position 1 starts with $\sin 1 = 0.8415$. The last two columns hardly move: in two steps they turn by 0.02.
"""

# %%
p = sinusoidal(64, 32, dtype=torch.float64)
figures.table(p)

# %% [markdown]
r"""
On the left the clocks turn fast. The right half looks like stripes of 0 and 1: in 64 steps those clocks have hardly left their start.

> **Predict.** Two neighbouring columns, 6 and 7: are they two different frequencies, or one?
>
> <details><summary>Answer</summary>
> One. Both belong to pair 3. A table of width 32 has 16 frequencies.
> </details>
"""

# %%
long = sinusoidal(1000, 32, dtype=torch.float64)
spectrum = torch.fft.rfft(long - long.mean(0), dim=0).abs()
print("strongest wave, as full turns in 1,000 rows, columns 0 to 9:")
print(spectrum.argmax(0)[:10].tolist())
figures.waves(p, pairs=(1, 3, 5))

# %% [markdown]
r"""
The Fourier transform finds each column's strongest wave: the same one in columns 2 and 3 (up to one turn, since a wave need not fit a whole
number of times), in 4 and 5, in 6 and 7. A sine and a cosine of the same frequency together say *where* on the circle the wave stands; a
sine alone says it only up to a mirror. Hence the pairs.

The length of a full turn in tokens is the **wavelength** $2\pi / \omega_j$.
"""

# %%
for d in (4, 32, 512):
    wavelengths = 2 * math.pi / frequencies(d)
    print(
        f"d = {d:3}: shortest {wavelengths[0]:.2f} tokens, longest {wavelengths[-1]:,.0f} tokens"
    )

# %% [markdown]
r"""
The shortest is always $2\pi$, since $\omega_0 = 1$. The longest is $2\pi \cdot 10000^{(d-2)/d}$: for $d = 4$ that is $2\pi \cdot 100 =
628$. As $d$ grows it comes near $2\pi \cdot 10000 = 62{,}832$.

### A counter with round digits

Count in binary: the last bit flips at every step, the one before at every second. Each bit is slower than the last one by a factor of 2.
The codes do the same with waves.

> **Predict.** For $d = 16$ each pair is slower than the one before by the factor $10000^{2/16}$. Is that more or less than 2?
>
> <details><summary>Answer</summary>
> More: 3.16. Two pairs make a factor of 10.
> </details>
"""


# %%
def changes(column):
    """How often the sign changes from one row to the next."""
    return int((column.sign().diff() != 0).sum())


p16 = sinusoidal(1000, 16, dtype=torch.float64)
sines = [changes(p16[:, 2 * j]) for j in range(8)]
cosines = [changes(p16[:, 2 * j + 1]) for j in range(8)]
bits = torch.tensor([[i >> b & 1 for b in range(10)] for i in range(1000)])
flips = [int((bits[:, b].diff() != 0).sum()) for b in range(10)]
print("sine columns  ", sines)
print("cosine columns", cosines)
figures.counters({"sines": sines, "cosines": cosines[:6]}, flips)

# %% [markdown]
r"""
318, 101, 32: each about 3.16 times fewer. The slow columns show a trap. Read the two lists alternately, as the columns stand in the table:
the last six count 2, 1, 1, 0, 1, 0. A sine starts at exactly 0, and leaving 0 counts as a change. *Pair by pair* the counts never rise; the
last two pairs are too slow for 1,000 rows to tell apart. Their frequencies do fall, by the same factor each time. So "later columns are
slower" is true of pairs.

## 3 · Clocks

A pair (cosine, sine) is a point on a circle of radius 1, at the angle $i\,\omega_j$. So a code is a row of clocks. Each clock runs slower
than the one before. To read the position, read all the clocks, as with seconds, minutes and hours. The widget draws two hands on each: one
for position $i$, one for $i + \delta$; $\delta$ is called the *offset*.

*Do:* move the position and watch the angle between the two hands of each clock. *Then:* set the offset to 0, and to 44, and look at the
first clock.

<details><summary>What you should find</summary>
All hands turn, and the angle between the two hands of a clock does not: it belongs to the offset. At offset 44 the hands of the first clock
meet again, since 44 tokens are seven turns (7 · 2π = 43.98). The second clock tells the two places apart.
</details>
"""

# %%
from lesson_lib.chapters.c05_positional_encoding.clocks_explorer import ClockExplorer
from lesson_lib.chapters.c05_positional_encoding.rotation_explorer import (
    RotationExplorer,
)

ClockExplorer(d=8)

# %% [markdown]
r"""
> **Predict.** With one clock only ($d = 2$), which of the positions 1 to 44 is closest to position 0? And with 32 clocks?
>
> <details><summary>Answer</summary>
> 44, by the widget. With 32 clocks it is position 1: the slow clocks have hardly moved after one step, and after 44 they have.
> </details>
"""

# %%
closest = {}
for d in (2, 64):
    p = sinusoidal(45, d, dtype=torch.float64)
    distance = (p[1:] - p[0]).norm(dim=-1)
    closest[d] = distance.argmin().item() + 1
    print(f"d = {d:2}: closest to position 0 is {closest[d]}, at {distance.min():.4f}")

# %% [markdown]
r"""
One frequency *nearly* repeats after 44: seven turns and 0.0177. With 32 of them none of these 44 positions comes close; the nearest is 1.47
away.

## 4 · The proof: moving on is a rotation

Here is what makes sinusoids special. To get from $p_i$ to $p_{i+\delta}$ you turn every clock by $\delta\,\omega_j$. *The same turn from
wherever you start.*

**Step 1, by hand.** Two formulas from school:

$$\sin(a + b) = \sin a \cos b + \cos a \sin b \qquad\qquad \cos(a + b) = \cos a \cos b - \sin a \sin b$$

Take one pair, with $a = i\omega$ and $b = \delta\omega$:

$$p_{i+\delta,\,2j} = \sin(i\omega + \delta\omega) = \underbrace{\sin(i\omega)}_{p_{i,2j}} \cos(\delta\omega) + \underbrace{\cos(i\omega)}_{p_{i,2j+1}} \sin(\delta\omega)$$
$$p_{i+\delta,\,2j+1} = \cos(i\omega + \delta\omega) = -\,\underbrace{\sin(i\omega)}_{p_{i,2j}} \sin(\delta\omega) + \underbrace{\cos(i\omega)}_{p_{i,2j+1}} \cos(\delta\omega)$$

**Step 2, as a matrix.** Both lines are linear in the old pair. (In this proof a code is a column, as usual for matrix times vector. In the
formulas of the layer tokens are rows again.)

$$\begin{bmatrix} p_{i+\delta,\,2j} \\ p_{i+\delta,\,2j+1} \end{bmatrix} =
\begin{bmatrix} \cos(\delta\omega_j) & \sin(\delta\omega_j) \\ -\sin(\delta\omega_j) & \cos(\delta\omega_j) \end{bmatrix}
\begin{bmatrix} p_{i,\,2j} \\ p_{i,\,2j+1} \end{bmatrix}$$

You may know a rotation with the minus at the upper right. Here the sine comes first, so the two axes are swapped: in these coordinates the
turn is clockwise. In the widget, with the cosine to the right, the same move turns the hand counterclockwise.

**Step 3, see what is missing.** The position $i$ does not occur in the matrix.

**Step 4, all pairs.** Put the $d/2$ small matrices on the diagonal of a large one, zeros elsewhere. Call it $R(\delta)$. Then, for every
$i$:

$$p_{i+\delta} = R(\delta)\, p_i \qquad ∎$$

> **Predict.** What is $R(0)$? And what does $R(\delta)$ look like when $\delta$ is negative?
>
> <details><summary>Answer</summary>
> R(0) is the identity: cos 0 = 1, sin 0 = 0. A negative δ changes the sign of the sines only: R(−δ) is R(δ) transposed, and it walks back.
> </details>

Now let a computer algebra system do steps 1 and 2, with letters in place of numbers:
"""

# %%
import sympy

i, delta, omega = sympy.symbols("i delta omega", real=True)


def pair(t):
    return sympy.Matrix([sympy.sin(t * omega), sympy.cos(t * omega)])


turn = sympy.Matrix([
    [sympy.cos(delta * omega), sympy.sin(delta * omega)],
    [-sympy.sin(delta * omega), sympy.cos(delta * omega)],
])  # fmt: skip
print(
    "turn * pair(i) - pair(i + delta) =",
    list(sympy.simplify(turn * pair(i) - pair(i + delta))),
)
print("turn transposed * turn =", sympy.simplify(turn.T * turn).tolist())
print("determinant =", sympy.simplify(turn.det()))

# %% [markdown]
r"""
Zero, with letters: for *all* $i$, $\delta$ and $\omega$, not only for those that one has tried. The last two lines say that the matrix
keeps lengths and angles, and mirrors nothing: a **rotation**.

Then in numbers, for the whole matrix, with widths, positions and offsets drawn at random:
"""

# %%
largest = 0.0
for _ in range(500):
    d = 2 * int(torch.randint(1, 65, ()))
    start, step = int(torch.randint(0, 1000, ())), int(torch.randint(0, 1000, ()))
    table = sinusoidal(2000, d, dtype=torch.float64)
    moved = rotation(step, d, dtype=torch.float64) @ table[start]
    largest = max(largest, (moved - table[start + step]).abs().max().item())
verdict("500 random cases: the largest error is below 1e-6", largest < 1e-6)
verdict("and even below 1e-12", largest < 1e-12)
show(turn_by_3=rotation(3, 4, dtype=torch.float64))

# %% [markdown]
r"""
For $d = 4$: the upper left block turns by 3 radians ($\cos 3 = -0.99$), the lower right one by 0.03 ($\cos 0.03 = 0.9996$).

*Do:* fix the offset and move the position: which of the tables changes? *Then:* find an offset at which the upper left block is close to
the identity.

<details><summary>What you should find</summary>
p[i] and p[i + δ] change with the position; R(δ) does not, and neither does their dot product. At δ = 44 and at −44 the first block is close
to the identity: seven turns.
</details>
"""

# %%
RotationExplorer(d=6)

# %% [markdown]
r"""
### What follows

1. $R(\delta)^\top R(\delta)$ is the identity: a code never grows or shrinks. Every $p_i$ has length $\sqrt{d/2}$, since $\sin^2 + \cos^2 = 1$ for each pair.
2. $R(a) R(b) = R(a + b)$: two moves are one move.
3. The dot product of two codes depends on their distance alone ($j$ is a second position here, and $m$ counts the pairs):

$$p_i \cdot p_j = \sum_{m} \big(\sin i\omega_m \sin j\omega_m + \cos i\omega_m \cos j\omega_m\big) = \sum_{m} \cos\big(\omega_m (i - j)\big)$$
"""

# %%
turns = {a: rotation(a, 16, dtype=torch.float64) for a in (5, 8, 13)}
assert_close(turns[5].T @ turns[5], torch.eye(16, dtype=torch.float64))
assert_close(turns[5] @ turns[8], turns[13])
p = sinusoidal(100, 64, dtype=torch.float64)
by_pair = p @ p.T
show(determinant=turns[5].det(), length=p[17].norm(), root_of_half_d=32**0.5)
figures.products(by_pair)

# %% [markdown]
r"""
> **Predict.** Follow one row of this picture away from the diagonal. Does the product fall with every step?
>
> <details><summary>Answer</summary>
> No. It falls first, and then it wobbles: cosines come back. The next cell prints it.
> </details>
"""

# %%
row = by_pair[0]
first_rise = int((row.diff() > 0).nonzero()[0]) + 1
print("products with position 0:", " ".join(f"{value:.2f}" for value in row[:9]))
print("the first rise is at offset", first_rise)
verdict(
    "5 ahead and 5 behind give the same product",
    torch.isclose(by_pair[50, 55], by_pair[50, 45]),
)

# %% [markdown]
r"""
It starts at $d/2 = 32$ and rises for the first time at offset 6. And a cosine has no sign: 5 ahead and 5 behind are the same. So these
products alone do not tell left from right.

### What does not follow

The layer never computes $p_i \cdot p_j$. It computes $(x_i + p_i)\, W_q W_k^\top\, (x_j + p_j)^\top$. Multiply that out, and one of four
terms is $p_i\, W_q W_k^\top\, p_j^\top$: codes with a learned matrix in between.

> **Predict.** With a *random* matrix in between: is the term still a function of $i - j$ alone?
>
> <details><summary>Answer</summary>
> No. The identity in between gave cosines of the distance; a general matrix mixes the pairs, and the place itself comes back.
> </details>
"""

# %%
between = torch.randn(64, 64, dtype=torch.float64) / 8
offsets = list(range(-20, 21))
learned_form = p @ between @ p.T
curves = {
    f"i = {i}": [learned_form[i, i + k].item() for k in offsets] for i in (25, 45, 65)
}
plain = [by_pair[25, 25 + k].item() for k in offsets]
figures.product_curves(offsets, plain, curves)

# %% [markdown]
r"""
So sinusoids *offer* relative positions: put a rotation in between, and the score peaks at that offset. Training may find it. Nothing forces
it to.
"""

# %%
aimed = p @ rotation(3, 64, dtype=torch.float64).T @ p.T  # row i is p[i + 3]
verdict(
    "R(3) in between: every row peaks at i + 3",
    all(aimed[i].argmax() == i + 3 for i in range(90)),
)

# %% [markdown]
r"""
The next section forces it.

## 5 · From there to rotary, in three steps

Why add the code at all? Turn the *query* and the *key* themselves, each by its own position, and let them meet:

$$(R(i)^\top q) \cdot (R(j)^\top k) = q^\top R(i)\, R(j)^\top k = q^\top R(i - j)\, k$$

With tokens as rows a query is turned by `row @ R(i)`; written as a column, that is $R(i)^\top q$. The steps: $a \cdot b = a^\top b$; then
$R(j)^\top = R(-j)$; then two turns are one. The position enters through $i - j$ alone, whatever $W_q$ and $W_k$ are. These are **rotary**
positions (Su et al. 2021). By hand:
"""


# %%
def turn_rows(x):
    """Row i turned by i positions."""
    return torch.stack([row @ rotation(i, x.shape[-1]) for i, row in enumerate(x)])


q, k = torch.randn(7, 8), torch.randn(7, 8)
assert_close(turn_rows(q), rotary(q), atol=1e-5, rtol=1e-5)
show_source(rotary)

# %% [markdown]
r"""
Read one line: `stack((a * cos - b * sin, a * sin + b * cos))`. It is the row $(a, b)$ times the block of Step 2; the matrices are never
built. `start` is the place of the first token, `pairing` comes in a moment.

> **Predict.** Give all tokens the same query and the same key, and turn them. What does the table of scores look like?
>
> <details><summary>Answer</summary>
> Constant along every line parallel to the diagonal: the content is the same everywhere, so only i − j is left.
> </details>
"""

# %%
same_q, same_k = torch.randn(8).expand(40, 8), torch.randn(8).expand(40, 8)
scores = rotary(same_q) @ rotary(same_k).mT
diagonals = [scores.diagonal(offset) for offset in range(-39, 40)]
verdict(
    "constant along each diagonal",
    all(diagonal.std(correction=0) < 1e-5 for diagonal in diagonals),
)
verdict("one ahead and one behind differ", (scores[5, 6] - scores[6, 5]).abs() > 1e-3)

# %% [markdown]
r"""
And it tells left from right, since $q$ and $k$ differ.

**A trap in published code.** Some code pairs neighbouring columns (0, 1), (2, 3) and so on, as the paper does. Much other code pairs column
$j$ with column $j + d/2$. They are equal up to an order of the columns, so each can be trained; but weights trained with one and run with
the other are wrong, and no error is raised.
"""

# %%
order_of_columns = torch.tensor([0, 2, 4, 6, 1, 3, 5, 7])  # evens first, then odds
half_split = rotary(q[:, order_of_columns], pairing="half-split")
assert_close(half_split, rotary(q)[:, order_of_columns])
mixed_up = (
    rotary(q, pairing="half-split") @ rotary(k, pairing="half-split").mT
) - rotary(q) @ rotary(k).mT
show(
    largest_error_when_mixed_up=mixed_up.abs().max(),
    spread_of_the_scores=(rotary(q) @ rotary(k).mT).std(),
)

# %% [markdown]
r"""
The scores spread by 2.4, and the mix-up changes one of them by 5: no small error.

## 6 · Four more ways

Each is one line away from `attend`, or two for Shaw. The first and the fourth row you know.

| way | where it enters | learned numbers ($n$ positions, width $d$; heads of width $d_k$; $r$ a radius) |
|---|---|---|
| sinusoidal | `x + sinusoidal(n, d)` | 0 |
| learned table | `x + learned(n)` | $n\,d$ |
| FLOATER | `x + floater(n)` | a small network |
| rotary | `attend(rotary(q), rotary(k), v)` | 0 |
| Shaw | `score=shaw`, and `+ shaw.values(weights)` | $2\,(2r+1)\,d_k$ |
| ALiBi | `score_bias=alibi(n, h)` | 0 |

### A learned table

Treat the codes as parameters: a row for each position, up to some largest. BERT and many others do.

> **Predict.** A table has 128 rows. A sequence of 129 tokens arrives. What should happen?
>
> <details><summary>Answer</summary>
> An error that says so. There is no rule for row 129.
> </details>
"""

# %%
learned = Learned(128, 16)
try:
    learned(129)
except ValueError as error:
    print(error)
show(a_rule_has_no_end=tuple(sinusoidal(129, 16).shape))

# %% [markdown]
r"""
Some code computes the sinusoids once, for 200 positions, and keeps the table. That is a table, too: it ends. Worse is a table with one row:
adding it raises no error, because one row fits every length.

### Distances instead of places: Shaw

A vector for each *distance* $j - i$, added to the key before the score, and another added to the value (Shaw et al. 2018). Distances beyond
a radius $r$ share a vector, so there are $2r + 1$ of each.

$$s_{ij} = \frac{q_i \cdot (k_j + a^K_{j-i})}{\sqrt{d_k}}, \qquad z_i = \sum_j w_{ij}\, (v_j + a^V_{j-i})$$
"""

# %%
n, radius = 7, 2
steps_apart = torch.arange(n) - torch.arange(n)[:, None]  # j - i
which_row = steps_apart.clamp(-radius, radius) + radius
figures.distances(which_row, radius)

# %%
shaw = Shaw(d_k=4, radius=2, d_v=3)
_ = torch.nn.init.normal_(shaw.key_rows), torch.nn.init.normal_(shaw.value_rows)
q, k, v = torch.randn(7, 4), torch.randn(7, 4), torch.randn(7, 3)
by_hand = (q[:, None] * (k + shaw.key_rows[which_row])).sum(-1) / 4**0.5
assert_close(shaw(q, k), by_hand)
output, weights = attend(q, k, v, score=shaw)
with_distances = output + shaw.values(weights)
assert_close(
    with_distances, (weights[..., None] * (v + shaw.value_rows[which_row])).sum(1)
)

# %% [markdown]
r"""
By hand, `k + key_rows[which_row]` is a table of $n \times n \times d_k$ numbers. The library never holds it: $q \cdot (k + a) = q \cdot k +
q \cdot a$, and there are only $2r + 1$ different products $q \cdot a$ per query, picked by distance.

### A code that flows: FLOATER

Let the code be the path of a point. It starts somewhere, and a small learned network $f$ says where it moves, and how fast, at time $t$
(Liu et al. 2020):

$$\frac{dp}{dt} = f(t, p), \qquad p_i = p(i\,\Delta)$$

Token $i$ is read off at the time $i\Delta$, here with $\Delta = 0.1$. A computer follows the path in small steps. The rule of Runge and
Kutta asks the network four times per step and weighs the answers 1 : 2 : 2 : 1; see the last line below. We take one step per token, so
that the numbers are the same on every machine.
"""

# %%
floater = Floater(d=16)
show_source(Floater._next)

# %% [markdown]
r"""
> **Predict.** How many learned numbers does FLOATER have for 32 positions, and how many for 3,200?
>
> <details><summary>Answer</summary>
> The same: the network and the start do not depend on the length. A learned table grows with it.
> </details>
"""

# %%
numbers = sum(parameter.numel() for parameter in floater.parameters())
print(
    f"FLOATER of width 16: {numbers:,} numbers for 32 positions, and the same numbers give {len(floater(3200)):,} codes"
)
print(
    f"tables of width 16: {32 * 16:,} numbers for 32 positions, {3200 * 16:,} for 3,200"
)

# %% [markdown]
r"""
### A slope: ALiBi

No vectors at all. Each head subtracts a multiple of the distance from its scores, so that far tokens weigh less, more so in some heads
(Press et al. 2021). It was made for causal models; without a mask it cannot tell left from right. In a layer it is `layer(x, x, x,
score_bias=alibi(n, h)[None])`: the `[None]` is the axis of the batch.
"""

# %%
show(bias_of_head_0=alibi(4, n_heads=8)[0])

# %% [markdown]
r"""
Head 0 of 8 has the slope 1/2: each step costs 0.5. The slopes of $h$ heads are $2^{-8/h}, 2^{-16/h}, \dots, 2^{-8}$.
"""

# %% [markdown]
r"""
## 7 · One run that compares them

The task of section 1 again: name the token three places back. All systems are trained at 32 tokens, and tested at 32, 48, 64 and 128. Two
of them live. Codes that are added are scaled so that their entries start with variance 1, like those of the tokens: neither drowns the
other.

> **Predict.** Which of the two will be right more often at 128 tokens, four times the length it has seen: sinusoidal codes, or rotary ones?
>
> <details><summary>Answer</summary>
> Rotary ones. The sinusoid <i>has</i> codes for every length, but the layer never saw those beyond position 31.
> </details>
"""

# %%
for kind in ("sinusoidal", "rotary"):
    live[kind] = order.train(kind, lr=rate[kind], steps=400)[0]
lengths = order.RECIPE["lengths"]
reached = {
    kind: [order.accuracy(live[kind], n, order.TEST_SEED) for n in lengths]
    for kind in ("sinusoidal", "rotary")
}

# %% tags=["nbval-ignore-output"]
figures.live(lengths, reached)

# %%
for kind, shares in reached.items():
    verdict(f"{kind}: over 85 % right at 32", shares[0] > 0.85, trained=True)
lost = {kind: shares[0] - shares[-1] for kind, shares in reached.items()}
verdict(
    "sinusoidal loses over 20 points from 32 to 128",
    lost["sinusoidal"] > 0.2,
    trained=True,
)
verdict(
    "rotary loses less, by over 10 points",
    lost["sinusoidal"] - lost["rotary"] > 0.1,
    trained=True,
)

# %% [markdown]
r"""
A mean over all positions hides where the answers are right. Here they are position by position, in tests of 128 tokens:
"""

# %% tags=["nbval-ignore-output"]
figures.by_position(
    {
        kind: order.right_by_position(live[kind], 128, order.TEST_SEED)
        for kind in reached
    }
)

# %% [markdown]
r"""
The sinusoid's curve breaks at the vertical line: position 31 was the last one trained. Beyond it the curve rises and falls. The rotary
curve knows no such line: it depends on offsets, and "three back" is three back everywhere. But it has steps. Ask the model which offsets it
looks at:
"""

# %% tags=["nbval-ignore-output"]
many_tokens = to_device(torch.randint(16, (50, 128)))
with torch.no_grad():
    x128 = live["rotary"].tokens(many_tokens)
    table = (
        live["rotary"].layer(x128, x128, x128).weights.mean((0, 1))
    )  # sequences, heads
by_offset = {k: table.diagonal(k).mean().item() for k in range(-127, 128)}
strongest = sorted(by_offset, key=by_offset.get, reverse=True)[:4]
for offset in strongest:
    print(f"offset {offset:4}: mean weight {by_offset[offset]:.2f}")

# %%
verdict("the strongest offset is −3", strongest[0] == -3, trained=True)
strange = [offset for offset in strongest if abs(offset) > 31]
verdict(
    "of the next three at least two were never trained", len(strange) >= 2, trained=True
)

# %% [markdown]
r"""
Training saw the offsets −31 to 31. A few of the others happen to score high, since nothing ever taught the layer that they should not. Such
an offset exists for some positions only. An offset far ahead exists near the start alone, one far behind near the end alone: where one
appears or disappears, the curve has a step. So even the first positions, which were trained, suffer in a long test.
"""

# %% [markdown]
r"""
Now all of them: three seeds, a learning rate chosen on validation sequences of 32 tokens, and two lengths of training. Two rows have a
causal mask.
"""

# %%
curves = order.by_length(stored, steps=400)
figures.extrapolation(
    {k: c for k, c in curves.items() if "causal" not in k and k != "none"}
)

# %%
spent = {row["kind"]: row["parameters"] for row in best}
print(f"{'400 steps':14}{'numbers':>8}   right at " + "    ".join(map(str, lengths)))
for kind, (_, _, middle, _) in curves.items():
    shares = "  ".join(f"{share:.2f}" for share in middle)
    print(f"{kind:14}{spent[kind]:8,}         {shares}")

# %% [markdown]
r"""
*Numbers* are the learned numbers spent on positions; the shares are the middle of three seeds. Read them column by column. **At 32 tokens**
five systems are perfect. Without positions the layer reaches 0.15: what naming the most frequent symbol gives, so it has learned all that
can be known without order. ALiBi, whose slope knows near from far but not "three", does little better (0.20). A causal mask helps both a
little, to 0.21 and 0.22. Why so little? The scores of a first layer are made from the tokens alone, and the mask only cuts some off. A
place can show in its *output*; to look three back it would have to be known *before* the scores. That takes a second layer.

**At 128 tokens** the picture changes. Shaw is still perfect: it learned "distance three", and distance three is the same everywhere. Rotary
positions lose a fifth. Of the added codes the sinusoid keeps half, the learned table 0.28, and FLOATER 0.08, which is near chance. At 48
they stand at 0.85, 0.67 and 0.45, where Shaw and rotary lose nothing.

The learned table was made with 128 rows, so it runs here. Training at 32 tokens reaches the rows 0 to 31; the other 96 stay as they were
drawn.

> **Predict.** The learned table has 0.67, 0.51 and 0.28. Suppose it is always right at the positions 3 to 31, which were trained, and guesses (1 in 16) beyond them. What share would that be at 48, 64 and 128 tokens?
>
> <details><summary>Answer</summary>
> (29 + 16/16) / 45 = 0.67; (29 + 32/16) / 61 = 0.51; (29 + 96/16) / 125 = 0.28. Exactly what was measured: it knows all it has seen, and nothing else.
> </details>
"""

# %%
longer = order.by_length(stored, steps=1200)
print(f"{'':14}  400 steps                1,200 steps")
for kind in ("learned", "sinusoidal", "floater", "alibi", "none, causal"):
    before, after = (
        "  ".join(f"{share:.2f}" for share in runs[kind][2])
        for runs in (curves, longer)
    )
    print(f"{kind:14}  {before}   {after}")

# %% [markdown]
r"""
The learned table gains nothing: more steps cannot train rows that never occur. FLOATER gains most (its rate was chosen anew, so this is
rate and length of training together), and the sinusoid some. Neither comes near Shaw.

*What this does not show.* One layer, one small task, random tokens. FLOATER's paper adds its codes in every layer of a full Transformer,
and so may do better than our small form. And the learning rate was chosen on sequences of 32 tokens, as it must be. At that length many
rates are perfect; at 128 they differ:
"""

# %%
for kind in ("sinusoidal", "rotary"):
    perfect = [
        f"{row['accuracy'][-1]:.2f}"
        for row in stored
        if (row["kind"], row["steps"], row["seed"]) == (kind, 400, 0)
        and row["validation"] > 0.99
    ]
    print(f"{kind:10} at 128 tokens, by rates perfect at 32: {', '.join(perfect)}")

# %% [markdown]
r"""
The last number of each row is the rate that was chosen. It is the best of the sinusoid's, and the worst of the rotary ones: a validation at
32 tokens cannot see it.

### The FLOATER paper's Table 1, beside our own run

The paper sorts four ways by three questions. **Inductive**: can it be used at lengths never trained? **Data-driven**: does it learn from
data? **Parameter-efficient**: does its size not grow with the length? We answer the first question twice: does it *run* at 128 tokens, and
is it still *right* there (in three of four answers or more)?
"""

# %%
paper = {
    "sinusoidal": "yes no  yes",
    "learned": "no  yes no ",
    "shaw": "no  yes yes",
    "floater": "yes yes yes",
}


def numbers_for(kind, n):
    """How many learned numbers it has when it is made for n positions."""
    made = {"learned": Learned(n, 64), "shaw": Shaw(16, 8), "floater": Floater(64)}
    return sum(p.numel() for p in made[kind].parameters()) if kind in made else 0


def runs_at(kind, n):
    """Does it run at n tokens, made for 32?"""
    if kind != "learned":
        return order.Order(kind)(torch.zeros(1, n, dtype=torch.long)).shape[1] == n
    try:
        return len(Learned(32, 64)(n)) == n
    except ValueError:
        return False


# %%
print("            paper: ind data eff   ours: runs right data eff")
for kind, theirs in paper.items():
    ours = (
        runs_at(kind, 128),
        longer[kind][2][-1] >= 0.75,
        numbers_for(kind, 32) > 0,
        numbers_for(kind, 3200) == numbers_for(kind, 32),
    )
    row = "  ".join("yes" if truth else "no " for truth in ours)
    print(f"{kind:18} {theirs}         {row}")

# %% [markdown]
r"""
The columns "data" and "eff" agree: what is learned, and what grows, can be counted. The first column does not. Shaw's distances are
clipped, so they exist at every length, and in our task they are right at every length: the table says "no". Sinusoids and FLOATER run at
every length, as the table says, and are wrong where they were not trained. Read as *can be computed*, the paper's first column fits three
of four rows, and Shaw is the exception. Read as *still right*, it fits one, the learned table. So ask of every such table which of the two
is meant.

## 8 · What the sources say

Each claim, with what this notebook has just found. ✓ holds, ◐ holds with a condition, ✗ corrected.
"""

# %% tags=["claim:position-1"]
y = torch.randn(5, 16)
same = layer(*[y[new_order]] * 3).output
claim(
    "position-1",
    {
        "shuffled inputs give the same outputs, shuffled": torch.allclose(
            same, layer(y, y, y).output[new_order], atol=1e-6
        ),
        "also after training": torch.allclose(
            shuffled_answers, answers[:, shuffle], atol=1e-4
        ),
        "a causal mask breaks it": not torch.allclose(
            of_shuffled, masked[new_order], atol=1e-2
        ),
    },
)

# %% tags=["claim:position-2"]
claim(
    "position-2",
    {
        "the formula and the library agree to 1e-12": (
            codes(200, 64) - sinusoidal(200, 64, dtype=torch.float64)
        )
        .abs()
        .max()
        < 1e-12
    },
)

# %% tags=["claim:position-3"]
claim(
    "position-3",
    {
        "width 8 has the pairs j = 0, 1, 2, 3": len(frequencies(8)) == 4,
        "j = 4 would need the columns 8 and 9": codes(1, 8).shape[1] <= 2 * 4,
    },
)

# %% tags=["claim:position-4"]
claim(
    "position-4",
    {
        "pair by pair, the sines' counts never rise": sines
        == sorted(sines, reverse=True),
        "column by column they do not": [
            c for both in zip(sines, cosines, strict=True) for c in both
        ][-6:]
        == [2, 1, 1, 0, 1, 0],
        "each bit of a counter flips about half as often as the one before": all(
            flips[b + 1] == flips[b] // 2 for b in range(9)
        ),
    },
)

# %% tags=["claim:position-5"]
claim(
    "position-5",
    {
        "columns 6 and 7 have their strongest wave at the same place": spectrum[
            :, 6
        ].argmax()
        == spectrum[:, 7].argmax(),
        "they are sine and cosine of one angle: squares sum to 1": torch.allclose(
            long[:, 6] ** 2 + long[:, 7] ** 2, torch.ones(1000, dtype=torch.float64)
        ),
        "32 columns, 16 frequencies": len(frequencies(32)) == 16,
    },
)

# %% tags=["claim:position-6"]
claim(
    "position-6",
    {
        "with letters: the difference is zero": sympy.simplify(
            turn * pair(i) - pair(i + delta)
        )
        == sympy.zeros(2, 1),
        "in 500 random cases: below 1e-6": largest < 1e-6,
        "determinant 1": torch.isclose(
            turns[5].det(), torch.tensor(1.0, dtype=torch.float64)
        ),
    },
)

# %% tags=["claim:position-7"]
diagonal_spread = max(by_pair.diagonal(k).std(correction=0) for k in range(-90, 91))
claim(
    "position-7",
    {
        "p_i · p_j is constant along diagonals": diagonal_spread < 1e-9,
        "it is the same for i − j and j − i": torch.allclose(by_pair, by_pair.T),
        "it rises again at offset 6": first_rise == 6,
        "a random matrix in between makes it depend on i": learned_form.diagonal(
            3
        ).std()
        > 1,
    },
)

# %% [markdown]
r"""
One source says that *multiplying sinusoids shifts the phase*. Multiplying by the rotation matrix does. A plain product of two sinusoids
makes two new waves, of the sum and of the difference of the frequencies.
"""

# %% tags=["claim:position-8"]
t = torch.arange(1000, dtype=torch.float64) * 2 * math.pi / 1000
product = (50 * t).sin() * (8 * t).sin()
strongest = torch.fft.rfft(product).abs().topk(2).indices.sort().values
claim(
    "position-8",
    {
        "50 turns times 8 turns has waves of 42 and 58 turns": strongest.tolist()
        == [42, 58],
        "the rotation keeps the frequency": changes(
            (p16 @ rotation(5, 16, dtype=torch.float64).T)[:, 0]
        )
        in (317, 318, 319),
    },
)

# %% tags=["claim:position-9"]
cached = sinusoidal(200, 16)[None]  # a table made once, for 200 positions
try:
    torch.randn(1, 201, 16) + cached[:, :201]
    fails = False
except RuntimeError:
    fails = True
try:
    learned(129)
    told = ""
except ValueError as error:
    told = str(error)
claim(
    "position-9",
    {
        "a table of 200 rows fails at 201": fails,
        "ours says how many it has": "128 positions" in told,
        "a table of one row would be added silently": (
            torch.randn(1, 201, 16) + cached[:, :1]
        ).shape
        == (1, 201, 16),
        "a rule has no end": len(sinusoidal(100_000, 2)) == 100_000,
    },
)

# %% tags=["claim:position-10"]
claim(
    "position-10",
    {
        "sinusoidal spends no parameters, Shaw and FLOATER some that do not grow": spent[
            "sinusoidal"
        ]
        == 0
        < min(spent["shaw"], spent["floater"]),
        "a learned table spends a row per position": spent["learned"] == 128 * 64,
        "it is the only one that fails beyond its length": not runs_at("learned", 128)
        and all(runs_at(k, 128) for k in ("sinusoidal", "shaw", "floater")),
        "Shaw is still right at 128, against the table": longer["shaw"][1][-1] > 0.85,
        "sinusoidal and FLOATER run at 128, and miss more than one in four": max(
            longer["sinusoidal"][3][-1], longer["floater"][3][-1]
        )
        < 0.75,
    },
)

# %% tags=["claim:position-11"]
p6 = sinusoidal(500, 6, dtype=torch.float64)
found = torch.linalg.lstsq(p6[:-5], p6[5:]).solution.T  # one matrix for all positions
claim(
    "position-11",
    {
        "one matrix moves the codes of ALL positions on by 5": torch.allclose(
            p6[:-5] @ found.T, p6[5:], atol=1e-8
        ),
        "least squares finds the rotation": torch.allclose(
            found, rotation(5, 6, dtype=torch.float64), atol=1e-6
        ),
    },
)

# %% tags=["claim:position-12"]
model, texts = live["sinusoidal"], to_device(torch.randint(16, (2, 32)))
embedded = model.tokens(texts)
with_codes = embedded + model.added(32)  # it is told the length, and no text
claim(
    "position-12",
    {
        "two texts differ": not torch.allclose(embedded[0], embedded[1]),
        "what is added to them does not": torch.allclose(
            with_codes[0] - embedded[0], with_codes[1] - embedded[1], atol=1e-4
        ),
    },
)

# %% tags=["claim:position-13"]
longest = 2 * math.pi / frequencies(512)[-1].item()
claim(
    "position-13",
    {
        "one frequency: 44 is closest to 0": closest[2] == 44,
        "32 frequencies: 1 is closest to 0": closest[64] == 1,
        "d = 512: the longest wave has 60,611 tokens": round(longest) == 60_611,
    },
)

# %% tags=["claim:position-14"]
claim(
    "position-14",
    {
        "W (a + e) = [W W] (a, e)": torch.allclose(added, side_by_side, atol=1e-5),
        "with codes the task is learned, without them it is not": reached["sinusoidal"][
            0
        ]
        > 0.85
        and order.accuracy(live["none"], 32, order.TEST_SEED) < 0.3,
    },
    trained=True,
)

# %% [markdown]
r"""
Two sources say that convolutions and recurrent nets carry positions by themselves. A convolution knows *offsets*: the neighbour on the left
has a weight of its own. Where it stands it does not know, except near the border, where zeros are padded:
"""

# %% tags=["claim:position-15"]
ones = torch.ones(1, 1, 9)
third = torch.full((1, 1, 3), 1 / 3)
padded = torch.nn.functional.conv1d(ones, third, padding=1)
on_a_ring = torch.nn.functional.conv1d(
    torch.cat([ones[..., -1:], ones, ones[..., :1]], -1), third
)
recurrent = torch.nn.RNN(16, 16, batch_first=True)
in_order, reordered = recurrent(x[None])[0][0], recurrent(x[new_order][None])[0][0]
claim(
    "position-15",
    {
        "a recurrent net notices the order": not torch.allclose(
            reordered, in_order[new_order], atol=1e-2
        ),
        "a convolution of equal inputs is equal everywhere on a ring": bool(
            (on_a_ring - 1).abs().max() < 1e-6
        ),
        "with zero padding the border shows": bool(padded[0, 0, 0] < 0.7),
        "one layer deep, two tokens only": int((padded[0, 0] < 0.99).sum()) == 2,
    },
)

# %% [markdown]
r"""
And a lecture gives an example of what positions are good for: *verbs are rare at the start of a sentence*. Two real texts that come with
Python: its "Zen", 19 sentences that state something, and the descriptions of the methods of `str`, which command. The Zen's first words,
for you to judge:
"""

# %%
import codecs
import contextlib
import io

with contextlib.redirect_stdout(io.StringIO()):
    import this
zen = codecs.decode(this.s, "rot13").splitlines()[2:]
openings = [sentence.split()[0] for sentence in zen]
print(", ".join(openings))
commands = [
    getattr(str, name).__doc__.split()[0]
    for name in dir(str)
    if name.islower() and name[0] != "_"
]

# %% tags=["claim:position-16"]
claim(
    "position-16",
    {
        "of 19 statements none begins with a verb": len(openings) == 19
        and not {"Is", "Do", "Are", "Make", "Let", "Refuse"} & set(openings),
        "though 'is' occurs in ten of them": sum(" is " in sentence for sentence in zen)
        == 10,
        "of the commands more than half begin with the verb 'Return'": commands.count(
            "Return"
        )
        > len(commands) / 2,
    },
)

# %% tags=["claim:position-17"]
at_32 = {kind: longer[kind][2][0] for kind in ("learned", "sinusoidal")}
claim(
    "position-17",
    {
        "both kinds learn the task at the length of training": min(at_32.values())
        > 0.9,
        "they differ by less than 10 points there": abs(
            at_32["learned"] - at_32["sinusoidal"]
        )
        < 0.1,
    },
)

# %% [markdown]
r"""
## 9 · Three wrong ideas worth having once

**"Neighbours need similar codes, or the layer cannot use them."** A learned table starts with random rows, and section 7 saw it do as well
as the sinusoid at the length of training.

> **Predict.** Shuffle the 64 rows of the sinusoidal table, once and for all, and give position $i$ the row $\pi(i)$. What is lost?
>
> <details><summary>Answer</summary>
> Each position still has a row of its own, so nothing is lost that a table would need. What is lost is the rule: one matrix for "three on". The cell measures that.
> </details>
"""

# %%
table = sinusoidal(64, 6, dtype=torch.float64)
mixed = table[torch.randperm(64)]


def error_of_the_best_matrix(rows):
    """How far the best matrix for 'three on' misses, at worst."""
    matrix = torch.linalg.lstsq(rows[:-3], rows[3:]).solution
    return (rows[:-3] @ matrix - rows[3:]).abs().max()


verdict("in order: no error above 1e-6", error_of_the_best_matrix(table) < 1e-6)
verdict("shuffled: errors above 0.5", error_of_the_best_matrix(mixed) > 0.5)

# %% [markdown]
r"""
**"Sinusoids extrapolate, because the formula works for every position."** The formula does; the layer behind it saw 32 positions. Section 7
measured what happens.

**"Rotary positions are added to the tokens."** Nothing is added, and the values are not touched: the length of a query does not change,
only its direction.

> **Predict.** What happens to the score of a token with *itself* when queries and keys are turned?
>
> <details><summary>Answer</summary>
> Nothing. Both are turned by the same angle, and i − j = 0.
> </details>
"""

# %%
q, k = torch.randn(6, 8), torch.randn(6, 8)
assert_close(rotary(q).norm(dim=-1), q.norm(dim=-1))
assert_close((rotary(q) * rotary(k)).sum(-1), (q * k).sum(-1), atol=1e-5, rtol=1e-5)
print("lengths kept, and each token's score with itself")

# %% [markdown]
r"""
## 10 · Exercises

Open [exercises/05_positional_encoding](exercises/05_positional_encoding.ipynb). Writing the rotation matrix once, with the sign in the
right place, is worth more than reading it five times.

## 11 · Summary

- Attention without positions is equivariant: shuffle the inputs, and the outputs are shuffled. A causal mask breaks this.
- Codes are added: $x_i + p_i$. Sinusoids come in pairs, one frequency each; every pair is a clock.
- $p_{i+\delta} = R(\delta)\, p_i$ with a rotation that does not depend on $i$: two angle-addition formulas. So $p_i \cdot p_j = \sum \cos(\omega (i-j))$: distance only, no direction, not monotone.
- A matrix between the codes can undo that; a random one does. Rotary positions turn queries and keys, and the scores see $i - j$ whatever is learned.
- A table ends where it ends. A rule runs at every length; whether the *layer* is still right there is another question, and only a test answers it.

**Sources.** Vaswani et al. 2017 (arXiv:1706.03762), section 3.5; Gehring et al. 2017 (arXiv:1705.03122); Shaw, Uszkoreit & Vaswani 2018
(arXiv:1803.02155); Devlin et al. 2018 (arXiv:1810.04805); Liu et al. 2020 (arXiv:2003.09229); Su et al. 2021 (arXiv:2104.09864); Press,
Smith & Lewis 2021 (arXiv:2108.12409); Haviv et al. 2022 (arXiv:2203.16634); Hung-yi Lee, Machine Learning 2021; the course's own sources
S1, S2, S3.

**Next**: lesson 06 puts heads, positions, masks and two more parts together: the Transformer.
"""
