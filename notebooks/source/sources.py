# %% [markdown]
r"""
# Sources: if you come from the five texts

This course follows five texts in Chinese. If you have read one of them, start here: where each of its sections is, and a path of some four hours through the cells that follow the texts. Two pages go with this one: [their letters and their code beside ours](sources_code.ipynb), and [every claim](sources_claims.ipynb) with its verdict, and the errata. If you have read none of them, you need none of this.

<details><summary>中文摘要 · Chinese</summary>
如果你读过这五篇文章中的任何一篇,可以从这一页开始:每一节在课程的什么地方,还有一条四小时的路。另外两页:记号与代码对照;全部九十五个论断与勘误。各课开头写有“五篇文章之路”,注明哪几节属于这条路。
</details>
"""

# %%
from lesson_lib.chapters.c12_claims import five_texts

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
## 3 · A path of four hours

These sections follow the texts, in an order that builds up. In a part, click on the section and choose *Run → Run All Above Selected Cell*. Each of these parts names its sections at its top: Sources · 五篇文章之路. `make lab ARGS=sources` opens this page.
"""

# %%
five_texts.path()

# %% [markdown]
r"""
About 270 minutes with what you predict and write. It leaves out what the texts do not have: learned glimpses, what trains and what does not, real graphs, today's models.
"""
