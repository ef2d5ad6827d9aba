# %% [markdown]
r"""
{title}

Place 8 is five words on from place 3, and place 45 five words on from place 40. A layer sees neither 3 nor 40. It sees the codes $p_3, p_8, p_{40}, p_{45}$ of
part 05a. Is there anything in them that both pairs share?

**Afterwards you can** prove that a step is a rotation; say what that gives a layer, and what it does not; write rotary positions, and name the two bugs that people meet with them.

{about}

<details><summary>中文摘要 · Chinese</summary>
正弦编码向前走 δ 步,等于乘以一个只与 δ 有关的旋转矩阵,与起点无关。两个编码的点积因此只看距离、不看方向;方向要靠中间的矩阵,
例如四分之一圈的旋转。任意一个学到的矩阵都可能毁掉这种性质。旋转位置编码直接旋转查询和键,分数便必然只依赖 j − i。
</details>

{sources}
"""

# %%
import sympy
import torch
from jaxtyping import Float
from torch import Tensor
from torch.testing import assert_close

from lesson_lib.chapters.c05_positional_encoding import figures
from lesson_lib.chapters.c05_positional_encoding.rotation_explorer import (
    RotationExplorer,
)
from lesson_lib.checks import check, hint, predict, solution, warm_up
from lesson_lib.positions import rotary, rotation, sinusoidal
from lesson_lib.show import show, show_source

_ = torch.manual_seed(0)
warm_up()

# %%
predict("one_matrix")

# %%
p = sinusoidal(500, 4, dtype=torch.float64)  # 500 codes of width 4: two clocks
best = torch.linalg.lstsq(p[:95], p[5:100]).solution.T  # least squares, places 0 to 99
assert_close(best @ p[400], p[405])
show(five_words_on=best)

# %% [markdown]
r"""
There is one matrix for "five words on", and it holds everywhere. Look at it: two blocks of 2 by 2, one for each clock, and zeros elsewhere. $«0.2837»$ is $\cos 5$, and $«0.9589»$ is $-\sin 5$: the first clock turns by 5 radians, the second by $5 \cdot 0.01$.

## 1 · The proof

**By hand.** Take one clock of frequency $\omega$, at place $i$. Two formulas from school, with $a = i\omega$ and $b = \delta\omega$, say where it stands $\delta$ words later:

$$\sin(a + b) = \sin a \cos b + \cos a \sin b \qquad\qquad \cos(a + b) = -\sin a \sin b + \cos a \cos b$$

Both right sides are sums of the old $\sin a$ and $\cos a$, so they are a matrix times the old pair. (In this proof a code is a column, as usual for matrix times vector.)

$$\begin{bmatrix} \sin (a + b) \\ \cos (a + b) \end{bmatrix} =
\begin{bmatrix} \cos b & \sin b \\ -\sin b & \cos b \end{bmatrix}
\begin{bmatrix} \sin a \\ \cos a \end{bmatrix}$$

Where is $i$? It is not in the matrix, which holds $b = \delta\omega$ alone. Put the matrices of all clocks on the diagonal of a large one, and call it $R(\delta)$. Then $p_{i+\delta} = R(\delta)\, p_i$ for every $i$. ∎
"""

# %% [markdown] tags=["exercise:one_clock"]
# Write the matrix of one clock. Then swap the sign of its sines, and check again.

# %% [markdown]
r"""
**By algebra**, with letters in place of numbers, and **in numbers**, at random:
"""

# %%
a, b = sympy.symbols("a b", real=True)
R = sympy.Matrix([[sympy.cos(b), sympy.sin(b)], [-sympy.sin(b), sympy.cos(b)]])
turned = R * sympy.Matrix([sympy.sin(a), sympy.cos(a)])
moved = sympy.Matrix([sympy.sin(a + b), sympy.cos(a + b)])
print("difference:", list(sympy.simplify(turned - moved)))
print("determinant:", sympy.simplify(R.det()))
print("R transposed times R:", sympy.simplify(R.T * R).tolist())

# %%
p = sinusoidal(1000, 64, dtype=torch.float64)
for _ in range(200):
    i, delta = torch.randint(500, (2,)).tolist()
    assert_close(rotation(delta, 64, dtype=torch.float64) @ p[i], p[i + delta])

# %% [markdown]
r"""
The difference is «0» for all angles, and 200 random steps from random places end where they should. The last two lines say that $R$ keeps lengths and angles and is no mirror: it is a **rotation**.
"""

# %%
predict("swapped_sign")

# %%
assert_close(rotation(5, 64, dtype=torch.float64).T @ p[40], p[35])

# %% [markdown]
r"""
Swapping that sign transposes $R$, and $R(\delta)^\top = R(-\delta)$. Nothing fails; the step goes back.

*Do:* move the position: $R(\delta)$ stays. Move the offset $\delta$: it changes.
"""

# %%
RotationExplorer(d=4)

# %% [markdown]
r"""
## 2 · What follows

Two steps are one step, $R(a)\,R(b) = R(a + b)$. And the dot product of two codes holds their distance alone. For one clock it is $\sin a \sin b + \cos a \cos b = \cos(a - b)$, so for all clocks

$$p_i \cdot p_j = \textstyle\sum_m \cos\big(\omega_m (i - j)\big)$$
"""

# %%
predict("either_side")

# %%
assert_close(rotation(5, 64) @ rotation(8, 64), rotation(13, 64))
ahead, behind = p[50] @ p[55], p[50] @ p[45]
show(ahead=ahead, behind=behind)
print("offsets 0 to 8:", *(f"{product:.2f}" for product in p[0] @ p[:9].T))

# %% [markdown]
r"""
Five ahead and five behind give the same «23.50». **"The product falls with every step."** It starts at $d/2 = «32»$, the number of clocks, and falls to «23.50» at offset 5. At offset 6 it rises again, to «23.56»: the fastest clock has come round.

**"So sinusoids cannot tell left from right."** The *plain* product cannot. But a layer does not compute it. Its score holds $p_i M p_j^\top$ (part 05a; codes are rows again), and $M = W_q W_k^\top$ is learned. Put a quarter turn of every clock in between:
"""

# %%
quarter = torch.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64)
M = torch.block_diag(*[quarter] * 32)
show(ahead=p[50] @ M @ p[55], behind=p[50] @ M @ p[45], elsewhere=p[20] @ M @ p[25])

# %% [markdown]
r"""
Now five ahead gives «−4.94», five behind +«4.94», and at every place the same. A quarter turn makes sines of the cosines, and a sine has a sign.

## 3 · What does not follow
"""

# %%
predict("random_between")

# %%
eye, mixed = torch.eye(64), torch.randn(64, 64)
middle = {"nothing": eye, "quarter turn": M, "R(3)": rotation(3, 64), "random": mixed}
tables = {name: p[:21] @ m.double() @ p[:21].T for name, m in middle.items()}
assert_close(tables["R(3)"][3:].argmax(-1), torch.arange(18))  # row i: place i - 3
figures.in_between(tables)

# %% [markdown]
r"""
Three matrices keep the stripes: each turns every clock. With $R(3)$ every row from 3 on is brightest three places back (a row times $R$ turns the other way than $R$ times a column): a learned $M$ can *aim*. A matrix **can destroy** distance, as the random one did. So sinusoids *offer* it. Training may find it, and nothing forces training to.

## 4 · Rotary forces it

Su et al. (2021) add no code. In each head, after $W_q$ and $W_k$, they turn the query at place $i$ by $R(i)$ and the key at place $j$ by $R(j)$. Values stay. For rows we write $q\,R(i)$:

$$\big(q\,R(i)\big)\big(k\,R(j)\big)^\top = q\,R(i)\,R(j)^\top k^\top = q\,R(i)\,R(-j)\,k^\top = q\,R(i - j)\,k^\top$$

Whatever $W_q$ and $W_k$ have learned, places enter as $i - j$ alone.
"""

# %% [markdown] tags=["exercise:turn_rows"]
# Turn the rows of one clock, each by its own place.

# %%
show_source(rotary)

# %% [markdown]
r"""
The line with `stack` is yours, for all clocks at once: columns $2j$ and $2j + 1$ are a pair. (`_angles` gives place times frequency. `pairing` comes below, `frequencies` in 05c. `start` is the place of the first row.)
"""

# %%
predict("same_words")

# %%
q, k = torch.randn(2, 1, 8).expand(-1, 40, -1)  # 40 equal queries, 40 equal keys
turned = rotary(q) @ rotary(k).mT
added = (q + sinusoidal(40, 8)) @ (k + sinusoidal(40, 8)).mT
figures.equal_words({"rotary": turned, "codes added": added})

# %%
for offset in range(-39, 40):
    diagonal = turned.diagonal(offset)
    assert_close(diagonal, diagonal[:1].expand_as(diagonal), atol=1e-4, rtol=0)

# %% [markdown]
r"""
On the left every diagonal has one colour. Above the main diagonal the scores differ from those below: rotary knows which way. On the right stands $(q + p_i) \cdot (k + p_j)$. Two of its four parts, $q \cdot p_j$ and $p_i \cdot k$, depend on one place each, so the stripes break.

**"Rotary positions are added to the tokens."** Nothing is added, and a turn keeps lengths:
"""

# %%
assert_close(rotary(q).norm(dim=-1), q.norm(dim=-1))

# %% [markdown]
r"""
## In real work

Llama, Qwen, Mistral, Gemma: nearly every open language model turns its queries and keys. torch.nn.functional has no function for it, so everybody writes one, and two bugs return. Neither raises an error. *One:* some code pairs neighbours, columns $2j$ and $2j + 1$, other code column $j$ with $j + d/2$. Both are right, until weights trained with one are loaded into the other. *Two:* the place
itself is rounded: bfloat16 holds eight significant bits, and 1001 needs ten.
"""

# %%
q, k = torch.randn(40, 8), torch.randn(40, 8)
halves = rotary(q, pairing="half-split") @ rotary(k, pairing="half-split").mT
scores = rotary(q) @ rotary(k).mT
print(f"standard deviation of the scores: {scores.std():.1f}")
wrong = (halves - scores).abs()
print(f"the other pairing: wrong by {wrong.median():.1f}, at worst {wrong.max():.1f}")
print("places in bfloat16:", torch.arange(1000, 1005).bfloat16().int().tolist())

# %% [markdown]
r"""
The first bug moves a typical score by half a standard deviation, the worst by more than six. With the second, three words stand on place «1000». Compute angles in float32.

## Five words on once more
"""

# %%
word, other = torch.randn(2, 8)
for i in (3, 40):
    query, key = rotary(word[None], start=i), rotary(other[None], start=i + 5)
    print(f"from place {i:2} to {i + 5:2}: score {(query @ key.mT).item():.4f}")

# %% [markdown]
r"""
The same score twice: two words, five places apart. In added codes distance could be found; here it is all that a score can know of places.

**To remember.** Going on by $\delta$ places is a rotation that knows $\delta$ and not the place; rotary positions put it into every score.

- $p_{i+\delta} = R(\delta)\,p_i$: two formulas from school, one block for each clock.
- $p_i \cdot p_j$ knows how far, not which way; a quarter turn in between knows which way.
- Added codes offer distance; a matrix in between may keep or destroy it.
- Rotary turns queries and keys, so places enter as $i - j$ alone.
- Mind the pairing, and compute angles in float32.

**Sources.** Vaswani et al. 2017 (arXiv:1706.03762), section 3.5; Su et al. 2021, RoFormer (arXiv:2104.09864). The sources' claims: [evidence](evidence/05_positional_encoding_evidence.ipynb).

**Next**: [05c · Beyond training](05c_beyond_training.ipynb): which positions survive longer texts? Or [06a · Layer](06a_layer.ipynb).
"""
