# %% [markdown]
r"""
{title}

You will learn attention by using it: guess, run, compare. This page shows how, in ten minutes.

{about}

<details><summary>中文摘要 · Chinese</summary>
先猜,再运行,再比较。每个练习都会当场批改;答错没有代价,而且会告诉你错在哪里。表格中行提问,列回答,掩码中 True 表示"可以看"。
</details>

Click on the next cell and press **Shift + Enter**. Do that with every cell, from the top.
"""

# %%
from lesson_lib.chapters.c06_transformer.experiments import translation
from lesson_lib.training import stored
from lesson_lib.widgets import AlignmentExplorer

with stored():  # trained beforehand
    model, _ = translation.train(seed=0, steps=600, batch=48)
AlignmentExplorer(model, ["3. märz 2021", "sunday, july 20, 1969", "14 juillet 1989"])

# %% [markdown]
r"""
A small network reads a date in any of fifteen languages and writes year-month-day. It learned from such pairs alone; nobody told it what a month is.
**Type your birthday**, then Enter. Move *output character*: the bars show where the network looked while it wrote that character. Then type *hello world*: it can write
nothing but dates. You will build it in [06b](06b_translator.ipynb); the looking is what this course is about.

## 1 · Does everything work here?
"""

# %% tags=["nbval-ignore-output"]
from lesson_lib.cli import doctor

_ = doctor.main(brief=True)

# %%
import torch

from lesson_lib.attention import attend
from lesson_lib.charts import heatmap
from lesson_lib.checks import check, hint, predict, progress, solution
from lesson_lib.masks import causal
from lesson_lib.show import show

# %% [markdown]
r"""
*All is fine* means that you can go on; otherwise it says what to install. Folded cells (three dots) are machinery: run them, you need not read them.

## 2 · Guess, then run

`predict` asks you before you compute. Your first answer is kept. A wrong one tells you what it would have meant, and costs nothing.
"""

# %%
predict("sum_of_three")

# %%
show(product=torch.ones(2, 3) @ torch.ones(3, 4))

# %% [markdown]
r"""
`show` prints tensors with names and shapes, at four decimals.

## 3 · Break it, and mend it

Change `(3, 4)` above to `(5, 4)`, run, and read the *last* line of the error. Then mend it. Nothing can be lost: this
notebook is your own copy. **Kernel → Restart Kernel and Run All Cells** starts afresh, on another day, too; your answers are kept.

While something trains, a bar says how long it takes on your machine, and ■ stops it. No time? Type `no_time()` in a new cell: stored models from then on.

## 4 · Hand in an answer

A row of weights is `[0.25, 0.75]`, the values are 8 and 4. **What is the weighted sum?** Replace the dots first by a wrong number, then by the right one.
Text works, too: `"0.5 * 20 + 0.5 * 2"`.
"""

# %%
weighted_sum = ...

check(weighted_sum, "weighted_sum")

# %% [markdown]
r"""
Stuck? *Hint* asks a question; there are three. *Solution* answers. Buttons can be typed:
"""

# %%
hint("weighted_sum")

# %% [markdown]
r"""
In a part such cells are called *your turn*. Most chapters have exercises besides. In a cell of your own, `progress()` shows what is done, and what is next.

**"Bold quotations"** are what people say; each is answered. A *stored run* was made beforehand.

## 5 · Rows ask, columns answer

The whole course is one function, `attend`. It makes a table: each row is somebody who asks, each column somebody who may answer. Here each of four words
may look at itself and at earlier words. A **mask** says so, and in it **True means: may look**.
"""

# %%
words = torch.randn(4, 8, generator=torch.Generator().manual_seed(0))
heatmap(
    attend(words, words, words, mask=causal(4)).weights,
    limits=(0, 1),
    alt="A table of weights, four rows by four columns: above the diagonal all are 0.",
    caption="Bright is much; queries ask, keys answer. The first word sees only itself.",
)

# %% [markdown]
r"""
## The way from here

The core path: 01a, 02a, 02b, 03, 04, 05a, 05b, 06a, 06b, 06d, 06e, 11b, 13a, 13c. Next: [01a · Two saws](01a_two_saws.ipynb), or, in a hurry, [02a · How much do I listen to each of three answers?](02a_soft_look_up.ipynb) Words and letters: [glossary](glossary.ipynb).

**Summary.** Guess, run, compare. Hand in answers early and wrong.
"""
