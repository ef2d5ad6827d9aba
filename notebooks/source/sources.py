# %% [markdown]
r"""
# Sources: if you come from the five texts

This course follows five texts in Chinese. If you have read one of them, start here: where each of its sections is, what its letters are called, its code beside ours, and a path of three hours through the cells that follow the texts. If you have not, you need none of this.

<details><summary>中文摘要 · Chinese</summary>
如果你读过这五篇文章中的任何一篇,可以从这一页开始:每一节在课程的什么地方,记号怎样对应,原文的代码和我们的代码并排运行,还有一条三小时的路。
最后是全部九十五个论断:原文、英译、结论和理由。各课开头写有“五篇文章之路”,注明哪几节属于这条路。
</details>
"""

# %%
import torch

from lesson_lib.attention import attend
from lesson_lib.chapters.c12_claims import five_texts
from lesson_lib.checks import check, hint
from lesson_lib.claims import errata, page
from lesson_lib.show import show
from lesson_lib.trace import example, seven_steps

# %% [markdown]
r"""
## 1 · Who they are

The ledger and the evidence call them S0 to S4.
"""

# %%
five_texts.who()

# %% [markdown]
r"""
What stands behind them: Hung-yi Lee's lectures at National Taiwan University (S3, and most of S0), Mu Li's lectures to *Dive into Deep Learning* (S1), Karim's *Illustrated: Self-Attention* (S4, and S0's code), and *Attention is all you need* with a well-known implementation in PyTorch (S2).

## 2 · Where each of their sections is

A link opens the notebook; in JupyterLab a second click goes to the cell.
"""

# %%
five_texts.map_of("S0")

# %%
five_texts.map_of("S1")

# %%
five_texts.map_of("S2")

# %%
five_texts.map_of("S3")

# %%
five_texts.map_of("S4")

# %% [markdown]
r"""
## 3 · Their letters and ours

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

## 4 · The seven steps: by hand, and as printed

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

## 5 · A path of three hours

These sections follow the texts, in an order that builds up. In a part, click on the section and choose *Run → Run All Above Selected Cell*. Each of these parts names its sections at its top: Sources · 五篇文章之路. `make lab ARGS=sources` opens this page.
"""

# %%
five_texts.path()

# %% [markdown]
r"""
About 270 minutes with what you predict and write. It leaves out what the texts do not have: learned glimpses, what trains and what does not, real graphs, today's models.

## 6 · Every claim, with its own words

✓ holds, ◐ holds with a condition, ✗ corrected, – unsaid: code or a figure. A verdict is that of a sentence's kindest reading; what stands in brackets is an addition, no blame. A toy is a small trained model of ours.
"""

# %%
page()

# %% [markdown]
r"""
## 7 · Errata

Slips that need no cell:
"""

# %%
errata()
