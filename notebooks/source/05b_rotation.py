# /// ideas
# [one_matrix]
# says = "one matrix R(delta) takes every code delta positions on, wherever it starts"
# motive = "Is there anything in them that both pairs share?"
# shown = "five_on"
# action = 'predict("one_matrix")'
#
# [proof]
# says = "one clock's block is [[cos, sin], [-sin, cos]] of its angle: two formulas from school, and i is not in it"
# motive = "Why does one matrix do?"
# shown = "Where is $i$?"
# action = "one_clock"
#
# [back_and_on]
# says = "R transposed goes back, and steps add: R(a) R(b) = R(a + b)"
# motive = "A sign goes wrong"
# shown = "R(\\delta)^\\top = R(-\\delta)"
# action = 'predict("swapped_sign")'
#
# [distance]
# says = "the dot product of two codes depends on their distance alone, and does not know the side"
# motive = "So what did the two pairs share?"
# shown = "\\cos\\big(\\omega_m (i - j)\\big)"
# action = 'predict("either_side")'
#
# [aim]
# says = "a matrix in between can tell the sides apart, and can aim: with R(3), position i scores highest with i - 3"
# motive = "But a layer does not compute"
# shown = "figures.in_between"
# action = 'predict("aimed")'
#
# [offered]
# says = "a general matrix destroys distance: added codes offer it, and nothing forces training to find it"
# motive = "And a matrix that is not made for it?"
# shown = "mixed = torch.randn(64, 64"
# action = 'predict("random_between")'
#
# [rope]
# says = "rotary position embedding (RoPE): turn query i by R(i) and key j by R(j) after the learned matrices; positions enter as i - j alone"
# motive = "Where must $R$ stand"
# shown = "q\\,R(i - j)\\,k^\\top"
# action = "turn_rows"
#
# [stripes]
# says = "equal words: with RoPE the scores are constant along each diagonal, with added codes they are not"
# motive = "Forty tokens"
# shown = "figures.equal_words"
# action = 'predict("same_words")'
#
# [pairing]
# says = "two pairings of columns; weights that were trained with one are wrong with the other"
# motive = "two bugs return"
# shown = "halves=True"
# action = "within each head"
#
# [float32]
# says = "compute angles in float32: bfloat16 rounds positions"
# motive = "the position itself is rounded"
# shown = "bfloat16()"
# action = 'predict("rounded_positions")'
# ///

# %% [markdown]
r"""
{title}

Position 8 is five on from position 3, and position 45 is five on from position 40. A layer sees neither 3 nor 40. It sees the codes $p_3, p_8, p_{40}, p_{45}$ of part 05a. Is there anything in them that both pairs share?

**Afterwards you can** prove that a step is a rotation; say what that gives a layer, and what it does not; write RoPE, the positions of most open language models of today.

{about}

<details><summary>中文摘要 · Chinese</summary>
从位置 3 到 8 与从 40 到 45,都是向前五步。两对编码有什么共同之处?本课证明:向前走 δ 步等于乘以一个与起点无关的旋转矩阵,
再看点积知道什么、不知道什么,最后找出应当把旋转放在哪里,才能让位置只以 i − j 的形式进入分数(RoPE),并看两个常见的错误。
</details>

{sources}
"""

# %% tags=["imports"]
import torch

from lesson_lib.chapters.c05_positional_encoding import figures
from lesson_lib.chapters.c05_positional_encoding.rotation_explorer import (
    RotationExplorer,
)
from lesson_lib.course import *
from lesson_lib.positions import rotation, sinusoidal

_ = torch.manual_seed(0)
warm_up()

# %%
p = sinusoidal(500, 64, dtype=torch.float64)  # 32 clocks
for i, j in ((3, 8), (40, 45), (3, 13)):
    print(f"p_{i} · p_{j} = {p[i] @ p[j]:.2f}")

# %% [markdown]
r"""
Both pairs have the dot product «23.50», and another distance has another one. So the two pairs share something. What is it?

## 1 · A step is a rotation

If all pairs that are five apart are related alike, one matrix might take each code five positions on. Look for it with codes of width 4, two clocks, so that its numbers can be read.
"""

# %%
predict("one_matrix")

# %%
small = sinusoidal(500, 4, dtype=torch.float64)
# the matrix with the least squared error; .T: it acts on columns
five_on = torch.linalg.lstsq(small[:95], small[5:100]).solution.T
show(five_on=five_on)
error = (five_on @ small[400] - small[405]).abs().max()
print(f"largest error at position 400: {error:.4f}")

# %% [markdown]
r"""
One matrix does it everywhere. Look at it: two blocks of 2 by 2, one for each clock, and zeros elsewhere. The first clock turns by 5 radians: $«0.2837»$ is $\cos 5$, and $«-0.9589»$ is $\sin 5$. The second turns by $5 \cdot 0.01 = 0.05$, which is hardly a turn: its block is nearly the identity.

Why does one matrix do? Take one clock of frequency $\omega$, at position $i$. Two formulas from school, with $a = i\omega$ and $b = \delta\omega$, say where it stands $\delta$ positions later:

$$\sin(a + b) = \sin a \cos b + \cos a \sin b$$

$$\cos(a + b) = -\sin a \sin b + \cos a \cos b$$

Both right sides are sums of the old $\sin a$ and $\cos a$, so they are a matrix times the old pair. (In this proof a code is a column.)

$$\begin{bmatrix} \sin (a + b) \\ \cos (a + b) \end{bmatrix} =
\begin{bmatrix} \cos b & \sin b \\ -\sin b & \cos b \end{bmatrix}
\begin{bmatrix} \sin a \\ \cos a \end{bmatrix}$$

Where is $i$? It is not in the matrix, which holds $b = \delta\omega$ alone. Put the blocks of all clocks on the diagonal of a large matrix, and call it $R(\delta)$. Then $p_{i+\delta} = R(\delta)\, p_i$ for every $i$. ∎ The matrix turns each clock and changes no length: it is a **rotation**.
"""

# %% [markdown] tags=["exercise:one_clock"]
# Write the matrix of one clock, (2, 2), that turns it by `angle`, a tensor with one number.

# %%
blocks = [yours("one_clock")(5 * 10000.0 ** torch.tensor(-2 * j / 64)) for j in range(32)]
R = torch.block_diag(*blocks).double()  # (64, 64)
for i in (3, 40, 300):
    print(f"R(5) p_{i} is p_{i + 5}, up to {(R @ p[i] - p[i + 5]).abs().max():.4f}")

# %% [markdown]
r"""
Your 32 blocks make $R(5)$, and it is right wherever a code stands. The explorer has two sliders, for the position $i$ and the offset $\delta$. Which of them changes $R(\delta)$? Decide, then move both.
"""

# %%
RotationExplorer(d=4)

# %% [markdown]
r"""
Only $\delta$ does, and the turned code stays equal to the code at $i + \delta$. A sign goes wrong in everybody's code once:
"""

# %%
predict("swapped_sign")

# %% [markdown]
r"""
Since $\sin(-b) = -\sin b$ and $\cos(-b) = \cos b$, the transpose turns the other way: $R(\delta)^\top = R(-\delta)$. No error is raised, but the step goes back. And two steps are one: $R(\delta)\,R(\varepsilon) = R(\delta + \varepsilon)$. RoPE will need both rules.

## 2 · What the codes offer

So what did the two pairs share? Take one clock, and the angles $a = i\omega$ and $b = j\omega$ of two positions. The dot product of the two pairs is $\sin a \sin b + \cos a \cos b = \cos(a - b)$. For all clocks, numbered by $m$, it is

$$p_i \cdot p_j = \textstyle\sum_m \cos\big(\omega_m (i - j)\big)$$

Position $i$ alone does not occur in it. It depends on the distance.
"""

# %%
predict("either_side")

# %% [markdown]
r"""
**"So sinusoids cannot tell left from right."** The *plain* product cannot. But a layer does not compute it. With codes added, the score of part 03 has four parts,

$$(x_i + p_i)\, M\, (x_j + p_j)^\top = x_i M x_j^\top + x_i M p_j^\top + p_i M x_j^\top + p_i M p_j^\top,$$

and the last holds positions alone, with the learned matrix $M = W_q W_k^\top$ in between. What if training made $M = R(3)$? Codes are rows again. To write $p_{i-\delta} = R(-\delta)\,p_i$ with rows, transpose it; since $R(-\delta)^\top = R(\delta)$, it becomes $p_{i-\delta} = p_i\,R(\delta)$.
"""

# %%
predict("aimed")

# %%
three = rotation(3, 64, dtype=torch.float64)  # R(3), of 32 blocks as above
tables = {"nothing": p[:21] @ p[:21].T, "R(3)": p[:21] @ three @ p[:21].T}
figures.in_between(tables)

# %% [markdown]
r"""
With nothing in between, each row is brightest at its own position. With $R(3)$ each row from 3 on is brightest three positions back: $p_i R(3)\, p_j^\top = p_{i-3} \cdot p_j$ is largest at $j = i - 3$. So a learned matrix can tell the sides apart, and it can *aim*. And a matrix that is not made for it?
"""

# %%
predict("random_between")

# %%
mixed = torch.randn(64, 64, dtype=torch.float64)
figures.in_between({"random": p[:21] @ mixed @ p[:21].T})

# %% [markdown]
r"""
No diagonal has one colour. A random matrix multiplies, among others, the sine of one clock with the cosine of another, and such products do not depend on $i - j$ alone. So **added codes offer distance**. Training may find it, and nothing forces training to.

## 3 · RoPE forces it

Where must $R$ stand so that no learned matrix can undo it? After the matrices. Su et al. (2021) add no code to the tokens. In each head (04), before the scores, they take the query $q = x_i W_q$ and the key $k = x_j W_k$, and turn the query at position $i$ by $R(i)$, the key at position $j$ by $R(j)$. A query is no code, but its columns can be taken in pairs, and each pair is turned like a clock, with the frequencies of 05a. (Which way they turn does not matter, if both turn the same way.) Values are not turned: positions should decide where to look, not what is mixed. With the two rules of section 1,

$$\big(q\,R(i)\big)\big(k\,R(j)\big)^\top = q\,R(i)\,R(j)^\top k^\top = q\,R(i)\,R(-j)\,k^\top = q\,R(i - j)\,k^\top$$

Whatever $W_q$ and $W_k$ have learned, positions enter as $i - j$ alone. This is called rotary position embedding, **RoPE**.
"""

# %% [markdown] tags=["exercise:turn_rows"]
# Turn one pair of columns. `x` (n, 2) holds the pair of n tokens. Row i, (a, b), becomes $(a, b)\,R(i)$, which is $(a \cos t - b \sin t,\; a \sin t + b \cos t)$ with $t = i \cdot$ `frequency`.

# %% [markdown]
r"""
This function turns all pairs at once, and on the first pair it agrees with yours. (`start` is the position of the first row. `halves` comes below; ignore the other arguments for now.)
"""

# %%
from carry import positions as carried

x = torch.randn(7, 4)
first_pair = carried.rotary(x)[:, :2]  # its frequency is 1
torch.testing.assert_close(first_pair, yours("turn_rows")(x[:, :2], 1.0))
show_source(carried.rotary)  # frequencies() is that of 05a

# %%
predict("same_words")

# %%
q, k = torch.randn(2, 1, 8).expand(-1, 40, -1)  # 40 equal queries, 40 equal keys
codes = carried.sinusoidal(40, 8)
turned = carried.rotary(q) @ carried.rotary(k).mT
added = (q + codes) @ (k + codes).mT  # without learned matrices
figures.equal_words({"RoPE": turned, "codes added": added})

# %% [markdown]
r"""
Forty tokens, one word: on the left each diagonal has one colour. And above the main diagonal the scores differ from those below: RoPE knows which way. (If $q$ were equal to $k$, only cosines would remain, and both sides would score alike.) On the right two of the four parts, $q \cdot p_j$ and $p_i \cdot k$, depend on one position each, so the stripes break. **"Rotary positions are added to the tokens."** Nothing is added; rows are turned, and keep their lengths.

## In real work

Llama, Qwen, Mistral, Gemma and most other open language models have RoPE. Everybody writes it anew, and two bugs return. Neither raises an error. *One* is the pairing. Some code pairs neighbouring columns, other code column $j$ with column $j + d/2$ (`halves=True`). Both are right, until weights that were trained with one are loaded into the other:
"""

# %%
q, k = torch.randn(40, 8), torch.randn(40, 8)
scores = carried.rotary(q) @ carried.rotary(k).mT
other = carried.rotary(q, halves=True) @ carried.rotary(k, halves=True).mT
cure = torch.tensor([0, 2, 4, 6, 1, 3, 5, 7])  # old neighbours now stand 4 apart
cured = carried.rotary(q[:, cure], halves=True) @ carried.rotary(k[:, cure], halves=True).mT
print(f"scores have standard deviation {scores.std():.1f}")
print(f"the other pairing: median error {(other - scores).abs().median():.1f}")
print(f"with permuted columns: largest error {(cured - scores).abs().max():.4f}")

# %% [markdown]
r"""
A typical score is off by about half a standard deviation. The cure is to permute the columns of $W_q$ and $W_k$ once, within each head: the even ones first, if neighbours were paired in training. (`nn.Linear` stores its matrix transposed; there these are rows.)

*Two*: many models compute in bfloat16, which keeps eight significant bits. Then the position itself is rounded if it is made in that type, before any angle is computed.
"""

# %%
predict("rounded_positions")

# %%
print("positions in bfloat16:", torch.arange(1000, 1005).bfloat16().int().tolist())

# %% [markdown]
r"""
Three words stand at position «1000», and two at «1004». So compute angles in float32 or finer, as the carried function does.

## Five on once more

Here are both pairs of the beginning with added codes, with a random matrix in between, and with RoPE. Compare within a column.
"""

# %%
word, another = torch.randn(2, 1, 64)
w_q, w_k = torch.randn(2, 64, 64) / 8  # any matrices
print("           codes  random M    RoPE")
for i in (3, 40):
    between = p[i] @ mixed @ p[i + 5]
    query = carried.rotary(word @ w_q, start=i)
    key = carried.rotary(another @ w_k, start=i + 5)
    score = (query @ key.mT).item()
    print(f"{i:2} to {i + 5:2}  {p[i] @ p[i + 5]:7.2f}  {between:8.2f} {score:7.2f}")

# %% [markdown]
r"""
The codes of both pairs have the same product. A random matrix in between makes two different numbers of it. With RoPE the two are equal again, although $W_q$ and $W_k$ are random, too.

**To remember.** Going on by $\delta$ positions is a rotation that knows $\delta$ and not the position; RoPE puts it into every score.

- $p_{i+\delta} = R(\delta)\,p_i$: two formulas from school, one block for each clock.
- $p_i \cdot p_j$ knows how far, not which way; a matrix in between can aim, or make the score depend on both positions.
- RoPE turns queries and keys after the learned matrices, so positions enter as $i - j$ alone.
- Mind the pairing, and compute angles in float32.

**Sources.** Vaswani et al. 2017 (arXiv:1706.03762), section 3.5; Su et al. 2021, RoFormer (arXiv:2104.09864). The proof by computer algebra, the sources' claims: [evidence](evidence/05_positional_encoding_evidence.ipynb).

**Next**: [05c · Beyond training](05c_beyond_training.ipynb): which positions survive longer texts? Or [06a · Layer](06a_layer.ipynb).
"""
