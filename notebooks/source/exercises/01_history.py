# %% [markdown]
# # 01 · History: exercises
#
# Eight exercises, about 45 minutes. They follow the lesson `01_history`; best in this order.
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
# The stars say how hard: ★ short, ★★ some lines, ★★★ pencil and paper. Your progress is kept on this computer only;
# `progress()` shows it.

# %%
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lesson_lib.checks import check, hint, picture, progress, solution

# %% [markdown]
# ## 1 · How good can it get?
#
# `★ · 4 min · whoever knows the limit of what a model sees does not train in vain`
#
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

# %%
### BEGIN SOLUTION
word_before = "(2 + 6 + 4 + 2 + 3 + 4) / 25"
### END SOLUTION
### STUB: word_before = ...

# %% tags=["exercise:word_before", "points:2"]
check(word_before, "word_before")

# %%
# hint("word_before")  # without the first '#': a question; run again for the next one
# solution("word_before")

# %% [markdown]
# ## 2 · The limit, by counting
#
# `★★ · 7 min · with a limit beside it, a tagger's score tells whether it learned badly or saw too little`
#
# Let the computer count. A text has $n$ tokens, and two rows of whole numbers describe it: `seen[i]` stands for what the tagger sees of token $i$ (a word, or a pair of
# words, or a whole sentence: **equal numbers look alike**, and that is all they mean), and `tags[i]` is its tag. "I saw a saw", word by word, might be
#
# `seen = [4, 7, 2, 7]`, `tags = [0, 2, 1, 3]`
#
# **Give back the best share of right tags that any tagger can reach which sees only `seen[i]`**, as a tensor with one number (`torch.tensor(0.75)` is one).
# For this sentence it is 3/4.


# %%
def best_share(seen: Int[Tensor, " n"], tags: Int[Tensor, " n"]) -> Float[Tensor, ""]:
    ### BEGIN SOLUTION
    right = 0
    for sight in seen.unique():
        right += tags[seen == sight].bincount().max()  # its most frequent tag
    return right / len(tags)
    ### END SOLUTION
    ### STUB: return ...


# %% tags=["exercise:best_share", "points:4"]
check(best_share)

# %%
# hint("best_share")
# solution("best_share")

# %% [markdown]
# ## 3 · Attention in 1964
#
# `★★ · 6 min · score, softmax, weighted mean: the three steps of this course, fifty years before the name`
#
# Measured are $m$ points: `ys[j]` at the place `xs[j]`. Guess $y$ at $n$ new places `x[i]`:
#
# $$\text{score}_{ij} = -\frac{(x_i - xs_j)^2}{2\sigma^2}, \qquad \text{weight}_{ij} = \frac{e^{\text{score}_{ij}}}{\sum_{j'} e^{\text{score}_{ij'}}}, \qquad
# \text{guess}_i = \sum_j \text{weight}_{ij}\, ys_j$$
#
# **Write it**, softmax by hand. Before you type: which axis is the queries', which the keys', and over which of them do the weights sum to 1?
# (Calling `torch.softmax` passes, too.)


# %%
def kernel_regression(
    x: Float[Tensor, " n"],
    xs: Float[Tensor, " m"],
    ys: Float[Tensor, " m"],
    sigma: float,
) -> Float[Tensor, " n"]:
    ### BEGIN SOLUTION
    scores = -((x[:, None] - xs) ** 2) / (2 * sigma**2)  # (n, m): queries x, keys xs
    exponentials = scores.exp()
    weights = exponentials / exponentials.sum(-1, keepdim=True)
    return weights @ ys
    ### END SOLUTION
    ### STUB: return ...


# %% tags=["exercise:kernel_regression", "points:4"]
check(kernel_regression)

# %%
# hint("kernel_regression")
# solution("kernel_regression")

# %% [markdown]
# ## 4 · A glimpse at the edge: a repair
#
# `★★ · 6 min · a slice beyond the edge raises no error: it comes back too small, or empty, or from the wrong side`
#
# RAM sees a small square of a canvas at a time. Its centre is pixel `(row, column)`, and `size` is odd, so that there is a centre. The function below is right in
# the middle of the canvas. At an edge it is not: **repair it, so that there are zeros beyond the edge** and the patch always is size × size.
#
# First guess: on a canvas of 5 × 7, what does it give for the corner (0, 0) and size 3?


# %%
def crop(
    canvas: Float[Tensor, "height width"], row: int, column: int, size: int
) -> Float[Tensor, "size size"]:
    half = size // 2
    ### BEGIN SOLUTION
    padded = torch.nn.functional.pad(canvas, (half, half, half, half))
    return padded[row : row + size, column : column + size]
    ### END SOLUTION
    ### STUB: rows = slice(row - half, row + half + 1)
    ### STUB: columns = slice(column - half, column + half + 1)
    ### STUB: return canvas[rows, columns]


# %% tags=["exercise:crop", "points:4"]
check(crop)

# %%
# hint("crop")
# solution("crop")

# %% [markdown]
# ## 5 · A lucky glimpse
#
# `★★★ · 8 min · looking at ONE place has no gradient; this estimate is how RAM learns all the same, and the price is noise`
#
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


# %%
def reinforce(
    p: float, reward_left: float, reward_right: float, baseline: float
) -> Float[Tensor, "2"]:
    ### BEGIN SOLUTION
    left = (reward_left - baseline) / p  # d log p / dp = 1 / p
    right = -(reward_right - baseline) / (1 - p)  # d log(1 - p) / dp = -1 / (1 - p)
    mean = p * left + (1 - p) * right
    variance = p * left**2 + (1 - p) * right**2 - mean**2
    return torch.tensor([mean, variance])
    ### END SOLUTION
    ### STUB: return ...


# %% tags=["exercise:reinforce", "points:6"]
check(reinforce)

# %%
# hint("reinforce")
# solution("reinforce")

# %% [markdown]
# When it passes, try baselines with $p = 0.2$ and rewards 1 and 0. The mean reward, 0.2, is the usual choice. Is it the best one?
#
# <details><summary>Answer</summary>
#
# No baseline: mean 1, variance 4. Baseline 0.2: variance 2.25. Baseline 0.8: variance 0, since both draws then give the estimate 1. The mean reward helps; with two
# choices there is a baseline that takes away all the noise, and it is another one. With more choices there is none, in general.
#
# </details>
#
# ## 6 · One step of Bahdanau's decoder
#
# `★★ · 7 min · the line that replaced the fixed vector in 2014; the query is the decoder's state`
#
# The encoder has read $m$ characters and left a row for each: `read`, $(m, d_\text{read})$. Before the decoder writes the next character, it looks back at all of them:
#
# $$\text{score}_j = v \cdot \tanh(\text{state}\, W_\text{query} + \text{read}_j\, W_\text{key}), \qquad \text{context} = \sum_j \text{softmax}(\text{score})_j\, \text{read}_j$$
#
# `state` is one row of $d_\text{state}$ numbers, $v$ a learned vector. **Give back the context**, $(d_\text{read},)$. You may call `torch.softmax`.


# %%
def additive_step(
    state: Float[Tensor, " d_state"],
    read: Float[Tensor, "m d_read"],
    w_query: Float[Tensor, "d_state d_hidden"],
    w_key: Float[Tensor, "d_read d_hidden"],
    v: Float[Tensor, " d_hidden"],
) -> Float[Tensor, " d_read"]:
    ### BEGIN SOLUTION
    scores = torch.tanh(state @ w_query + read @ w_key) @ v  # (m,): one per place
    weights = torch.softmax(scores, dim=-1)
    return weights @ read
    ### END SOLUTION
    ### STUB: return ...


# %% tags=["exercise:additive_step", "points:4"]
check(additive_step)

# %%
# hint("additive_step")
# solution("additive_step")

# %% [markdown]
# ## 7 · Who looked where? Read a table
#
# `★ · 4 min · you will read many such tables; first find out which axis asks`
#
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
# - a) the written 5: a mixture of the M and the y that were read
# - b) the M that was read: a mixture of the written 0 and 5
# - c) the written dash: a mixture of the space and the 7 that were read
# - d) the written 0: a mixture of the M and the a that were read
# - e) the written 7: a mixture of the 1 and the 7 that were read
# - f) none of them: softmax takes the largest score
#
# And a second thought: why might the 5 need both, where the 0 needs only the M? (Which months begin with an M?)

# %%
### BEGIN SOLUTION
read_alignment = "a"
### END SOLUTION
### STUB: read_alignment = ...  # one letter, in quotes

# %% tags=["exercise:read_alignment", "points:2"]
check(read_alignment, "read_alignment")

# %% [markdown]
# Now look at the same table as a picture. The number of each row's bright cells is what you were asked for.

# %%
picture("read_alignment")

# %%
# hint("read_alignment")
# solution("read_alignment")

# %% [markdown]
# ## 8 · What neither can see, in your own words
#
# `★★ · 5 min · three architectures, told apart by one question: which words may this output depend on?`
#
# Three taggers: a window that sees two words on either side, an RNN that reads from left to right, and attention over the whole sentence. Two sentences:
#
# - "did the man that saw the duck near the house **cut** the nail": here `cut` is a base form ("did ... cut"); without the first word it would be a past form.
# - "the garden **saw** cut the nail": here `saw` is a noun, a saw for gardens; in "the garden saw the nail" it would be a past form.
#
# **What does the window not see of `cut`? What has the RNN not read when it comes to `saw`? And what about attention?**
#
# Two or three sentences. The check looks for the ideas that an answer cannot avoid, then shows a model answer. It reads words, not meaning:
# compare the two yourself.

# %%
### BEGIN SOLUTION
what_they_miss = """The auxiliary "did" stands ten words before "cut", outside the window. When the RNN comes to "saw", it has not read
the next word, which decides. Attention may look at every word of the sentence, before and after, if positions tell it the order."""
### END SOLUTION
### STUB: what_they_miss = """ """

# %% tags=["exercise:what_they_miss", "points:4"]
check(what_they_miss, "what_they_miss")

# %%
# hint("what_they_miss")
# solution("what_they_miss")

# %% [markdown]
# ## What you should remember
#
# <details><summary>Open it when you are done</summary>
#
# 1. The limit belongs to what is seen, not to the network. Who sees more never has a lower limit.
# 2. Per sight the largest count, all added up, over the number of tokens: no tagger with that sight does better.
# 3. Query x, keys xs, values ys: a score of nearness, softmax over the keys, the weighted mean of the values. That was 1964.
# 4. A frame of size // 2 zeros, then slice from the centre's own numbers. A slice beyond the edge raises no error.
# 5. The mean of REINFORCE's estimate is the true derivative, whatever the baseline; the baseline changes the noise alone.
# 6. Bahdanau: the query is the decoder's state, keys and values are what was read; each written character gets a context of its own.
# 7. Rows ask, and sum to 1: read a mixture along a row. Down a column you find all who looked at one place.
# 8. A window misses what is far, an RNN from left to right what is still to come; attention sees all, and must be told the order.
#
# </details>
#
# Next: the lesson `02_scoring`, and its exercises.
