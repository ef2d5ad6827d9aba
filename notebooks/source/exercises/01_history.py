# %% [markdown]
# # 01 · History: exercises
#
# Six exercises, about 35 minutes. They follow the parts [01a · two saws](../01a_two_saws.ipynb), [01b · looking back](../01b_looking_back.ipynb) and [01c · where to look](../01c_where_to_look.ipynb); best in this order.
#
# <details><summary>中文摘要 · Chinese</summary>
#
# 六道练习:用计数求任何标注器的最好成绩;手写核回归与 REINFORCE 的均值和方差;读一张对齐表;说出窗口、循环网络和注意力各看不到什么。
# 每题都有检查、三个提示和答案;答错时会指出错在哪里。
#
# </details>
#
# **How it works.** Replace the `...` (or repair the function) in a cell, run it, then run the cell with `check`. It says what was asked, what you gave, and
# what is wrong, on the smallest example it can find. Three verbs:
#
# | you type | you get |
# |---|---|
# | `check(answer, "name")` | a verdict; for a function, `check(function)` is enough |
# | `hint("name")` | a question that helps; call it again for the next one, three in all |
# | `solution("name")` | a right answer, and what to remember |
#
# The stars say how hard: ★ short, ★★ some lines, ★★★ an idea that has to be found. Your progress is kept on this computer only;
# `progress()` shows it.

# %%
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lesson_lib.checks import check, hint, picture, progress, solution

# %% [markdown] tags=["exercise:word_before"]
# Here are 25 words of a small text, counted by the word before, the word itself, and its tag:
#
# | word before | word | noun | past form | base form |
# |---|---|---|---|---|
# | the | saw | 2 | 0 | 0 |
# | I | saw | 0 | 6 | 0 |
# | man | saw | 2 | 4 | 0 |
# | the | cut | 2 | 0 | 0 |
# | I | cut | 0 | 1 | 3 |
# | house | cut | 0 | 1 | 4 |
#
# Two words that look alike to a tagger get the same tag. First work out for yourself: what is the best share of right tags if the tagger sees the word alone?
# Then the question: **what is the best share if it sees the word and the one before it?** Type a number (`0.5`) or an expression in quotes (`"3 / 4"`).

# %% [markdown] tags=["exercise:best_share"]
# Let the computer count. A text has $n$ tokens, and two rows of whole numbers describe it: `seen[i]` stands for what the tagger sees of token $i$ (a word, or a pair of
# words, or a whole sentence: **equal numbers look alike**, and that is all they mean), and `tags[i]` is its tag. "I saw a saw", word by word, might be
#
# `seen = [4, 7, 2, 7]`, `tags = [0, 2, 1, 3]`
#
# **Give back the best share of right tags that any tagger can reach which sees only `seen[i]`**, as a tensor with one number (`torch.tensor(0.75)` is one).
# For this sentence it is 3/4.


# %% [markdown] tags=["exercise:kernel_regression"]
# Measured are $m$ points: `ys[j]` at the place `xs[j]`. Guess $y$ at $n$ new places `x[i]`:
#
# $$\text{score}_{ij} = -\frac{(x_i - xs_j)^2}{2\sigma^2}, \qquad \text{weight}_{ij} = \frac{e^{\text{score}_{ij}}}{\sum_{j'} e^{\text{score}_{ij'}}}, \qquad
# \text{guess}_i = \sum_j \text{weight}_{ij}\, ys_j$$
#
# **Write it**, softmax by hand. Before you type: which axis is the queries', which the keys', and over which of them do the weights sum to 1?
# (Calling `torch.softmax` passes, too.)


# %% [markdown] tags=["exercise:reinforce"]
# A network looks left with probability $p$ and right with probability $1 - p$. What it sees there earns a reward, $r_\text{left}$ or $r_\text{right}$. It should change $p$ so
# that the expected reward $p\, r_\text{left} + (1 - p)\, r_\text{right}$ grows, but in one try it sees one side only. REINFORCE makes an estimate of the derivative from that one draw:
#
# $$\text{estimate} = (\text{reward} - \text{baseline}) \cdot \frac{d \log p(\text{choice})}{d p}$$
#
# where $p(\text{choice})$ is $p$ for left and $1 - p$ for right. The estimate is a random number: it has one value for left and another for right.
# **Give back its mean and its variance**, as `torch.tensor([mean, variance])`. All four arguments are plain numbers.
#
# Predict first: does the baseline change the mean, the variance, or both? Then $p = 0.2$, rewards 1 and 0, no baseline, by hand: how far from its mean
# is an estimate, typically?


# %% [markdown]
# When it passes, try baselines with $p = 0.2$ and rewards 1 and 0. The mean reward, 0.2, is the usual choice. Is it the best one?
#
# <details><summary>Answer</summary>
#
# No baseline: mean 1, variance 4. Baseline 0.2: variance 2.25. Baseline 0.8: variance 0, since both draws then give the estimate 1. The mean reward helps; with two
# choices there is a baseline that takes away all the noise, and it is another one. With more choices there is none, in general.
#
# </details>

# %% [markdown] tags=["exercise:read_alignment"]
# A decoder with attention has read `17 May` and written `05-17`. These numbers are made up, but such a table comes out of every model of this kind. Each weight says
# how much of a character that was read (columns) went into a character that was written (rows):
#
# | written \ read | 1 | 7 | space | M | a | y |
# |---|---|---|---|---|---|---|
# | **0** | 0.01 | 0.02 | 0.03 | 0.86 | 0.05 | 0.03 |
# | **5** | 0.01 | 0.02 | 0.01 | 0.46 | 0.04 | 0.46 |
# | **-** | 0.15 | 0.18 | 0.22 | 0.15 | 0.14 | 0.16 |
# | **1** | 0.94 | 0.03 | 0.01 | 0.01 | 0.00 | 0.01 |
# | **7** | 0.04 | 0.93 | 0.01 | 0.01 | 0.00 | 0.01 |
#
# **Which character is a mixture of two others, with nearly nothing else in it?**
#
#
# And a second thought: why might the 5 need both, where the 0 needs only the M? (Which months begin with an M?)

# %% [markdown] tags=["exercise:what_they_miss"]
# Three taggers: a window that sees two words on either side, an RNN that reads from left to right, and attention over the whole sentence. Two sentences:
#
# - "did the man that saw the duck near the house **cut** the nail": here `cut` is a base form ("did ... cut"); without the first word it would be a past form.
# - "the garden **saw** cut the nail": here `saw` is a noun, a saw for gardens; in "the garden saw the nail" it would be a past form.
#
# **What does the window not see of `cut`? What has the RNN not read when it comes to `saw`? And what about attention?**
#
# Two or three sentences. The check shows a model answer and a few points: you judge your own, point by point.

# %% [markdown]
# ## What you should remember
#
# <details><summary>Open it when you are done</summary>
#
# 1. The limit belongs to what is seen, not to the network. Who sees more never has a lower limit.
# 2. Per sight the largest count, all added up, over the number of tokens: no tagger with that sight does better.
# 3. Query x, keys xs, values ys: a score of nearness, softmax over the keys, the weighted mean of the values. That was 1964.
# 4. The mean of REINFORCE's estimate is the true derivative, whatever the baseline; the baseline changes the noise alone.
# 5. Rows ask, and sum to 1: read a mixture along a row. Down a column you find all who looked at one place.
# 6. A window misses what is far, an RNN from left to right what is still to come; attention sees all, and must be told the order.
#
# </details>
#
# Next: the part [02a · soft look up](../02a_soft_look_up.ipynb).
