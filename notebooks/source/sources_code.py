# %% [markdown]
r"""
# Sources: their letters and their code, beside ours

What the five texts of [Sources](sources.ipynb) call what this course calls otherwise; and the example that two of them work by hand, with the code as they print it.

<details><summary>中文摘要 · Chinese</summary>
五篇文章的记号与本课程的记号对照;两篇文章手算的同一个例子(七个步骤),原文的代码与我们的代码并排运行,并留有原文给读者的练习。
</details>
"""

# %%
import torch

from lesson_lib.attention import attend
from lesson_lib.checks import check, hint
from lesson_lib.show import show
from lesson_lib.trace import example, seven_steps

# %% [markdown]
r"""
## 1 · Their letters and ours

| theirs | where | ours |
|---|---|---|
| $a^i$, $I$ (tokens as columns) | S0, S3 | $x_i$, a row of $X$: $X = I^\top$ |
| $q^i = W^q a^i$ | S0, S3 | $q_i = x_i W_q$, so our $W_q$ is their $(W^q)^\top$ |
| $\alpha_{i,j}$, $A = K^\top Q$ | S0, S3 | the scores; $Q K^\top$ is their $A^\top$ |
| $\alpha'_{i,j}$, $A'$, softmax by column | S0, S3 | the weights; softmax by row |
| $b^i$, $O = V A'$ | S0, S3 | the outputs, $A V$ |
| $q^{i,1}$, $W^{q,1}$ | S3 | the query of head 1; one projection, then cut into heads |
| $W^o$ | S3 | `w_output` |
| $e^i$ | S3 | a row of the position table $P$ |
| $p_{i,2j}$, $\omega_j$, $\delta$ | S1 | `sinusoidal(n, d)[i, 2j]`, the frequency, the shift |
| `pos`, `i`, `d_hid`, `n_position` | S2 | the position, the pair, the width $d$, the table's length |
| `len_q`, `len_k`, `sz_b` | S2 | $n$, $m$, $b$ |
| `d_model`, `d_k`, `d_v`, `d_inner` | S2 | the same names |
| $Z$ | S2 | the outputs; in one place the weights |
| `temperature` | S2 | $\sqrt{d_k}$, inside `attend` |
| mask 0 | S2 | mask False: may not look |
| $L$ | S3 | $n$, the number of tokens |

## 2 · The seven steps: by hand, and as printed

S0 and S4 work one example: three tokens of width 4, three matrices. S4 ends with the only exercise of the five texts: *outputs 2 and 3 are left to the reader.* Here they are.

Tokens $(1, 0, 1, 0)$, $(0, 2, 0, 2)$, $(1, 1, 1, 1)$ have

| token | key | query | value | its scores with keys 1, 2, 3 | softmax, "approximated for readability" |
|---|---|---|---|---|---|
| 1 | 0 1 1 | 1 0 2 | 1 2 3 | 2 4 4 | 0.0 0.5 0.5 |
| 2 | 4 4 0 | 2 2 2 | 2 8 0 | ? | 0.0 1.0 0.0 |
| 3 | 2 3 1 | 2 1 3 | 2 6 3 | ? | 0.0 0.9 0.1 |

Output 1 is $0.0 \cdot (1, 2, 3) + 0.5 \cdot (2, 8, 0) + 0.5 \cdot (2, 6, 3) = (2, 7, 1.5)$. Do the other two on paper. To hand one in, add up its three numbers; output 1 would be 10.5.
"""

# %%
output_two = ...

check(output_two, "output_two")

# %%
output_three = ...

check(output_three, "output_three")

# %%
hint("output_three")

# %% [markdown]
r"""
Now the code as S0 and S4 print it, from the keys on, and ours beside it:
"""

# %%
given = example()
x, w_key, w_query, w_value = (given[n] for n in ("x", "w_key", "w_query", "w_value"))

keys = x @ w_key  # as printed, to the sum of weighted_values
querys = x @ w_query
values = x @ w_value
attn_scores = querys @ keys.T
attn_scores_softmax = torch.softmax(attn_scores, dim=-1)
weighted_values = values[:, None] * attn_scores_softmax.T[:, :, None]
outputs = weighted_values.sum(dim=0)

# %%
ours = seven_steps(**given)
by_attend = attend(querys * 3**0.5, keys, values).output  # attend divides by it
show(printed=outputs, seven_steps=ours.outputs, attend=by_attend)
assert torch.equal(outputs, ours.outputs) and torch.allclose(outputs, by_attend)
assert torch.equal(weighted_values.transpose(0, 1), ours.weighted_values)

# %% [markdown]
r"""
The same numbers. What differs:

- **No root.** The example's scores are not divided by $\sqrt{3}$; `attend` divides, so its queries are multiplied first.
- **`None`** puts in an axis of length 1: values (3, 1, 3) times transposed weights (3, 3, 1) is a table (key, query, number). Ours is (query, key, number): swap the first two axes.
- **"Approximated"** weights (0, 0.5, 0.5) are no rounding: 0.0634 rounds to 0.1. With the exact weights the outputs are those above.
- **`.T`** turns all axes of a batch round; `.mT` swaps the last two.

S4's plain Python gives the same nine numbers to twelve decimals: [evidence 02](evidence/02_scoring_evidence.ipynb). S2's six classes run as printed beside ours, with a dictionary of their names: [evidence 06, section 8](evidence/06_transformer_evidence.ipynb), and its `PositionalEncoding` in [evidence 05](evidence/05_positional_encoding_evidence.ipynb).

**Back** to [Sources](sources.ipynb).
"""
