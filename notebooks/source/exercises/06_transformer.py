# %% [markdown]
# # 06 · The Transformer: exercises
#
# Nine exercises, about 70 minutes. They follow the parts [06a · layer](../06a_layer.ipynb) to [06e · gpt](../06e_gpt.ipynb); best in this order.
#
# **How it works.** Replace the `...` (or repair the function) in a cell, run it, then run the cell with `check`. `hint("name")` asks a question that helps, three in
# all; `solution("name")` shows a right answer. `progress()` lists what you have done.
# The stars: ★ a few minutes, ★★ some lines or some thinking, ★★★ a published bug to find.
#
# Throughout, a **sub-layer** is one attention or one feed-forward network. A layer of the encoder has two of them, a layer of the decoder three. **Logits** are the scores
# of all words of the vocabulary, from which a softmax makes probabilities. Words are numbers here. Two of them are signs: the **start sign** stands before a sentence,
# the **end sign** behind it. **Filler** makes the sentences of a batch equally long.

# %%
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lesson_lib.checks import check, hint, picture, progress, solution

# %% [markdown] tags=["exercise:decoder_numbers"]
# Take a pencil. ONE layer of a decoder, published form, but small: $d_\text{model} = 10$, 2 heads, and a feed-forward network that is $d_\text{inner} = 60$ wide inside.
# The matrices of attention have no biases, the feed-forward network has both of its own. Each of the three sub-layers has a norm with a weight and a bias.
# **How many learned numbers are in the layer?** Type a number or an expression in quotes.

# %% [markdown] tags=["exercise:norm_of_tokens"]
# LayerNorm takes each token $x_i$, $d$ numbers with mean $\mu$, and makes
#
# $$\frac{x_i - \mu}{\sqrt{\sigma^2 + \varepsilon}} \cdot \text{weight} + \text{bias}, \qquad \sigma^2 = \frac{1}{d} \sum_{c=1}^{d} (x_{i,c} - \mu)^2$$
#
# The function below stands, nearly word for word, in a tutorial that many have copied. Two things in it differ from the formula. **Repair it.**


# %% [markdown] tags=["exercise:pre_norm_stack"]
# `sublayers` holds functions, one per sub-layer; `norm` is a function, too. All of them take tokens and return as many of the same width. The function below is post-norm, as published in 2017.
# **Make it pre-norm:**
#
# $$x \leftarrow x + \text{sublayer}(\text{norm}(x)) \quad \text{for each sub-layer, and once, behind the last:} \quad \text{norm}(x)$$
#
# The check hands you a "norm" that halves, so that you can follow it in your head.


# %% [markdown] tags=["exercise:stream_curve"]
# Tokens $x$ with mean 0 and variance 1 enter 24 sub-layers. Suppose that each sub-layer, whatever it reads, makes rows with mean 0 and variance 1 that have nothing to do with $x$. So does a
# model at the start of its training, roughly. You draw the size of the numbers in $x$ (the root of their mean square) after each sub-layer: once for pre-norm, before its last norm, and once
# for post-norm. **What do you see?**

# %% [markdown] tags=["exercise:learning_rates"]
# `step` holds step numbers, 1 for the first of `steps`. **Write the rate of each:** it rises evenly during the first `warm` steps, reaches `peak`, and falls along half a cosine to 0 at the last step.


# %% [markdown] tags=["exercise:forced_loss"]
# One step of training. `target` holds the right sentences, one per row, with filler behind the short ones. `decode` is a whole decoder: from words (b, n) it makes logits (b, n, words),
# and its causal mask lets position $i$ read positions 0 to $i$, **itself included**. From what it reads at position $i$ it must guess `target[:, i]`. Two things are wrong below: what the
# decoder reads, and what is counted. **Repair it.** The loss is the mean over all real words of the batch. `torch.nn.functional.cross_entropy` takes logits (k, words) and words (k,), and returns the mean.


# %% [markdown] tags=["exercise:best_continuations"]
# First character: A with probability .6, B with .4. Behind A the best next one has .4, behind B 1.0. The greedy loop of part 06c writes A and a text of probability .6 · .4 = .24; the text
# that begins with B has .40. **Beam search** keeps the best few beginnings of a text; their number is the **width**. Each beginning is continued by every token, and of all these continuations
# the likeliest are kept. `total` (width,) holds the log-probability of each beginning, `logs` (width, tokens) that of each next token behind it. **Write one step.**
#
# On single dates a beam of four writes no more right answers than the greedy loop; on three dates in one text it brings 12 to 24 of 1,000 (evidence of chapter 06, section 4).


# %% [markdown] tags=["exercise:k_best_probabilities"]
# A greedy text (part 06c) soon goes round in circles, so words are drawn by chance. From which probabilities? Two numbers change them. The **temperature** divides the logits before the softmax. **Top-k** keeps the
# k words with the highest logits; all others get the probability 0, exactly. **Write both.** There is one row per text; the rows do not know of each other. No two logits of a row are equal.


# %% [markdown] tags=["exercise:why_training_differs"]
# You repaired the training of a decoder; part 06c has the loop with which it writes. **Which earlier words does it read while it trains, and which while it writes? What can be done at once, and what
# must wait? And what can go wrong?** Two or three sentences. The check shows a model answer and a few points: you judge your own, point by point.

# %% [markdown]
# ## What you should remember
#
# <details><summary>Open it when you are done</summary>
#
# 1. A decoder layer has 8 d_model² + 2 d_model · d_inner + d_inner + 7 d_model numbers.
# 2. LayerNorm divides by √(variance + ε), with ε under the root, and the variance divides by d. One token at a time.
# 3. Pre-norm: x = x + sublayer(norm(x)). x itself meets a norm only once, behind the last sub-layer.
# 4. Pre-norm normalizes what a sub-layer reads, post-norm what it leaves: pre-norm's stream grows like a square root.
# 5. The learning rate: warm-up, then half a cosine.
# 6. The decoder reads the target shifted right by one, start sign first. Filler counts neither in the sum nor in the divisor.
# 7. A beam keeps the best few beginnings: log-probabilities add, all continuations compete.
# 8. Divide the logits by the temperature, set all but the k best to −∞, then softmax.
# 9. Training reads the right words, writing its own, mistakes included.
#
# </details>
