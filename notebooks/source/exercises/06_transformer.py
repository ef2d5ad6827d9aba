# %% [markdown]
# # 06 · The Transformer: exercises
#
# Eight exercises, about 70 minutes. They follow the lesson `06_transformer`; best in this order.
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

# %% [markdown]
# ## 1 · One look more: what does it cost?
#
# `★★ · 7 min · whoever can count a layer can count every model: the rest is multiplication`
#
# Take a pencil. ONE layer of a decoder, published form, but small: $d_\text{model} = 10$, 2 heads, and a feed-forward network that is $d_\text{inner} = 60$ wide inside.
# The matrices of attention have no biases, the feed-forward network has both of its own. Each of the three sub-layers has a norm with a weight and a bias.
# **How many learned numbers are in the layer?** Type a number or an expression in quotes.

# %%
### BEGIN SOLUTION
decoder_numbers = "2 * 4 * 10 * 10 + 2 * 10 * 60 + 60 + 10 + 3 * 2 * 10"
### END SOLUTION
### STUB: decoder_numbers = ...

# %% tags=["exercise:decoder_numbers", "points:4"]
check(decoder_numbers, "decoder_numbers")

# %%
# hint("decoder_numbers")  # without the first '#': a question; run again for the next one
# solution("decoder_numbers")

# %% [markdown]
# ## 2 · The norm of a much-read tutorial: a repair
#
# `★★ · 8 min · these lines train well, and nobody notices until published weights are loaded`
#
# LayerNorm takes each token $x_i$, $d$ numbers with mean $\mu$, and makes
#
# $$\frac{x_i - \mu}{\sqrt{\sigma^2 + \varepsilon}} \cdot \text{weight} + \text{bias}, \qquad \sigma^2 = \frac{1}{d} \sum_{c=1}^{d} (x_{i,c} - \mu)^2$$
#
# The function below stands, nearly word for word, in a tutorial that many have copied. Two things in it differ from the formula. **Repair it.**


# %%
def norm_of_tokens(
    x: Float[Tensor, "*b n d_model"],
    weight: Float[Tensor, " d_model"],
    bias: Float[Tensor, " d_model"],
    eps: float,
) -> Float[Tensor, "*b n d_model"]:
    mean = x.mean(dim=-1, keepdim=True)
    ### BEGIN SOLUTION
    variance = (x - mean).square().mean(dim=-1, keepdim=True)
    return (x - mean) / torch.sqrt(variance + eps) * weight + bias
    ### END SOLUTION
    ### STUB: std = x.std(dim=-1, keepdim=True)
    ### STUB: return (x - mean) / (std + eps) * weight + bias


# %% tags=["exercise:norm_of_tokens", "points:4"]
check(norm_of_tokens)

# %%
# hint("norm_of_tokens")
# solution("norm_of_tokens")

# %% [markdown]
# ## 3 · From post-norm to pre-norm
#
# `★★ · 10 min · most models of today are pre-norm, most figures are post-norm, and code mixes the two`
#
# `sublayers` holds functions, one per sub-layer; `norm` is a function, too. All of them take tokens and return as many of the same width. The function below is post-norm, as published in 2017.
# **Make it pre-norm:**
#
# $$x \leftarrow x + \text{sublayer}(\text{norm}(x)) \quad \text{for each sub-layer, and once, behind the last:} \quad \text{norm}(x)$$
#
# The check hands you a "norm" that halves, so that you can follow it in your head.


# %%
def pre_norm_stack(
    x: Float[Tensor, "n d_model"],
    sublayers: tuple,  # of functions: sublayer(x)
    norm,  # a function: norm(x)
) -> Float[Tensor, "n d_model"]:
    ### BEGIN SOLUTION
    for sublayer in sublayers:
        x = x + sublayer(norm(x))
    return norm(x)
    ### END SOLUTION
    ### STUB: for sublayer in sublayers:
    ### STUB:     x = norm(x + sublayer(x))
    ### STUB: return x


# %% tags=["exercise:pre_norm_stack", "points:4"]
check(pre_norm_stack)

# %%
# hint("pre_norm_stack")
# solution("pre_norm_stack")

# %% [markdown]
# ## 4 · How large does it get? Predict the curve
#
# `★★ · 5 min · it says why pre-norm needs one norm more at its end, and why its late layers seem to do little`
#
# Tokens $x$ with mean 0 and variance 1 enter 24 sub-layers. Suppose that each sub-layer, whatever it reads, makes rows with mean 0 and variance 1 that have nothing to do with $x$. So does a
# model at the start of its training, roughly. You draw the size of the numbers in $x$ (the root of their mean square) after each sub-layer: once for pre-norm, before its last norm, and once
# for post-norm. **What do you see?**
#
# - a) pre-norm: up like a square root, from 1 to about 5; post-norm: flat at 1
# - b) pre-norm: up in a straight line, from 1 to about 25; post-norm: flat at 1
# - c) both flat at 1: each has a norm at every sub-layer
# - d) post-norm: up like a square root, from 1 to about 5; pre-norm: flat at 1
# - e) pre-norm: it doubles with every sub-layer; post-norm: flat at 1
# - f) pre-norm: flat at 1; post-norm: down towards 0

# %%
### BEGIN SOLUTION
stream_curve = "a"
### END SOLUTION
### STUB: stream_curve = ...  # one letter, in quotes

# %% tags=["exercise:stream_curve", "points:4"]
check(stream_curve, "stream_curve")

# %%
picture("stream_curve")

# %%
# hint("stream_curve")
# solution("stream_curve")

# %% [markdown]
# ## 5 · A loss too good to be true: a repair
#
# `★★★ · 12 min · the loss falls to nearly nothing within minutes, and the model writes nonsense`
#
# One step of training. `target` holds the right sentences, one per row, with filler behind the short ones. `decode` is a whole decoder: from words (b, n) it makes logits (b, n, words),
# and its causal mask lets position $i$ read positions 0 to $i$, **itself included**. From what it reads at position $i$ it must guess `target[:, i]`. Two things are wrong below: what the
# decoder reads, and what is counted. **Repair it.** The loss is the mean over all real words of the batch. `torch.nn.functional.cross_entropy` takes logits (k, words) and words (k,), and returns the mean.


# %%
def forced_loss(
    decode,  # a function: words (b, n) to logits (b, n, words)
    target: Int[Tensor, "b n"],
    start: int,
    filler: int,
) -> Float[Tensor, ""]:
    ### BEGIN SOLUTION
    first = torch.full_like(target[:, :1], start)
    before = torch.cat([first, target[:, :-1]], dim=1)  # the word before each word
    logits = decode(before)  # (b, n, words)
    real = target != filler
    return torch.nn.functional.cross_entropy(logits[real], target[real])
    ### END SOLUTION
    ### STUB: logits = decode(target)  # (b, n, words)
    ### STUB: every = logits.flatten(0, 1), target.flatten()
    ### STUB: return torch.nn.functional.cross_entropy(*every)


# %% tags=["exercise:forced_loss", "points:6"]
check(forced_loss)

# %%
# hint("forced_loss")
# solution("forced_loss")

# %% [markdown]
# ## 6 · Word by word
#
# `★★ · 10 min · this loop is how every such model writes; a better choice of the next word is one line of it`
#
# When it writes, a decoder has no right sentence to read. `score_next(words)` reads a row of words and returns the logits of the next one. **Write the loop:** begin with `begin`, take the word
# with the highest logit, append it, ask again. Stop when the end sign has been written, or `most` new words. The result holds the new words alone, the end sign included.
# Such a search is called *greedy*: it never takes a word back.


# %%
def greedy_words(
    score_next,  # a function: words (n,) to logits (words,) of the next one
    begin: Int[Tensor, " n"],
    end: int,
    most: int,
) -> Int[Tensor, " written"]:
    ### BEGIN SOLUTION
    words = begin
    for _ in range(most):
        best = score_next(words).argmax()
        words = torch.cat([words, best[None]])
        if best == end:
            break
    return words[len(begin) :]
    ### END SOLUTION
    ### STUB: return ...


# %% tags=["exercise:greedy_words", "points:4"]
check(greedy_words)

# %%
# hint("greedy_words")
# solution("greedy_words")

# %% [markdown]
# ## 7 · Hot, cold, and the k best
#
# `★★ · 10 min · most models that you talk to draw their words in this way, or in one much like it; two numbers decide how daring it is`
#
# A greedy text soon goes round in circles, so words are drawn by chance. From which probabilities? Two numbers change them. The **temperature** divides the logits before the softmax. **Top-k** keeps the
# k words with the highest logits; all others get the probability 0, exactly. **Write both.** There is one row per text; the rows do not know of each other. No two logits of a row are equal.


# %%
def k_best_probabilities(
    logits: Float[Tensor, "*b words"], temperature: float, k: int
) -> Float[Tensor, "*b words"]:
    ### BEGIN SOLUTION
    smallest = logits.topk(k).values[..., -1:]  # of the k that are kept
    kept = logits.masked_fill(logits < smallest, -torch.inf)
    return torch.softmax(kept / temperature, dim=-1)
    ### END SOLUTION
    ### STUB: return ...


# %% tags=["exercise:k_best_probabilities", "points:4"]
check(k_best_probabilities)

# %%
# hint("k_best_probabilities")
# solution("k_best_probabilities")

# %% [markdown]
# ## 8 · Training and writing, in your own words
#
# `★★ · 7 min · a model with a perfect training loss can still lose its way in its own sentence`
#
# You repaired the training of a decoder, and you wrote the loop with which it writes. **Which earlier words does it read while it trains, and which while it writes? What can be done at once, and what
# must wait? And what can go wrong?** Two or three sentences. The check looks for the ideas that an answer cannot avoid, then shows a model answer. It reads words, not meaning: compare the two yourself.

# %%
### BEGIN SOLUTION
why_training_differs = """In training it reads the right words before each position, all positions at once, behind a causal mask.
When it writes, it reads its own words, one at a time. After a mistake it reads a beginning that it never met in training."""
### END SOLUTION
### STUB: why_training_differs = """ """

# %% tags=["exercise:why_training_differs", "points:4"]
check(why_training_differs, "why_training_differs")

# %%
# hint("why_training_differs")
# solution("why_training_differs")

# %% [markdown]
# ## What you should remember
#
# <details><summary>Open it when you are done</summary>
#
# 1. A decoder layer has 8 d_model² + 2 d_model · d_inner + d_inner + 7 d_model numbers.
# 2. LayerNorm divides by √(variance + ε), with ε under the root, and the variance divides by d. One token at a time.
# 3. Pre-norm: x = x + sublayer(norm(x)). x itself meets a norm only once, behind the last sub-layer.
# 4. Pre-norm normalizes what a sub-layer reads, post-norm what it leaves: pre-norm's stream grows like a square root.
# 5. The decoder reads the target shifted right by one, start sign first. Filler counts neither in the sum nor in the divisor.
# 6. Ask, choose, append, ask again: each word costs one call of the decoder.
# 7. Divide the logits by the temperature, set all but the k best to −∞, then softmax.
# 8. Training reads the right words, writing its own, mistakes included.
#
# </details>
