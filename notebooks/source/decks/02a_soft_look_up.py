# %% tags=["imports"] slideshow={"slide_type": "skip"}
from lesson_lib.cli.deck import *

# %% [markdown] slideshow={"slide_type": "slide"} tags=["title"]
# # How much do I listen to each of three answers?
#
# Afterwards you can
#
# - compute attention by hand, and in three lines of torch
# - name its six parts, with their shapes
# - hide the filler in a batch

# %% [markdown] slideshow={"slide_type": "notes"}
# Forty minutes, a third of them yours. A guess costs nothing here: write each one down before we look.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["Opening"]
# ## Three people name a price
#
# | | says | score for your question |
# |---|---|---|
# | Ann | 10 | 1 |
# | Ben | 20 | 3 |
# | Cy | 40 | 5 |
#
# You want **one** number, to which all three contribute.

# %% [markdown] slideshow={"slide_type": "notes"}
# Three people name a price for a pot of tea. You trust them differently, and you have put your trust into numbers: one, three, five. Each must get a share. A share is positive, even where a score is negative, and the shares add up to one.

# %% [markdown] slideshow={"slide_type": "subslide"} tags=["Opening"]
# ## Ann's share?

# %% tags=["Opening"]
vote("ann_share")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("ann_share")

# %% [markdown] slideshow={"slide_type": "notes"}
# One minute alone, then all letters at once. Whoever takes a) divides by the sum of the scores. Ask: and if one score were minus two? Whoever takes c) or d) may say what a score is good for then.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Softmax: e to each score, shared out
#
# $$\text{Ann: } \frac{e^1}{e^1 + e^3 + e^5} = \frac{2.72}{2.72 + 20.09 + 148.41} \approx 0.016$$
#
# One point ahead means $e$ times the share.

# %% [markdown] slideshow={"slide_type": "notes"}
# The rule makes every score positive: it takes e to the score. Then it divides by the sum. Ann has 2.7 of 171, not quite two percent. A score of minus two does no harm either.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Plus 100, or times 10?

# %%
vote("plus_or_times")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("plus_or_times")

# %% [markdown] slideshow={"slide_type": "notes"}
# Vote. Then they try it, on the next slide; the answer may wait until they have.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Do now: move the scores
#
# Open notebook **02a**. Run the first cells.
#
# Type 5 in place of Ann's 1. Whose share falls most?
#
# Then move *plus*, and *times*.

# %%
timer(3)

# %% [markdown] slideshow={"slide_type": "notes"}
# Everybody, in pairs. Ann and Cy then have the same score, so they have the same share, 47 percent. Cy's share falls most: he had 87. *Plus* does nothing. Ask somebody to say why.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["1"]
# ## A dictionary has one answer, or none

# %%
code("02a", 'prices = {"black tea"')

# %%
shown("02a", 'prices = {"black tea"')

# %% [markdown] slideshow={"slide_type": "notes"}
# Where do scores come from? A dictionary looks for the key that equals your query. You ask for tea: no key is equal to it, so there is no answer at all. A shop's search is softer: it scores every title. Attention does so, too, and then it mixes.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## A score is a dot product
#
# | | key | score with $[1, 2]$ | value |
# |---|---|---|---|
# | Ann | $[1, 0]$ | $1 \cdot 1 + 2 \cdot 0 = 1$ | 10 |
# | Ben | $[1, 1]$ | $1 \cdot 1 + 2 \cdot 1 = 3$ | 20 |
# | Cy | $[1, 2]$ | $1 \cdot 1 + 2 \cdot 2 = 5$ | 40 |

# %% [markdown] slideshow={"slide_type": "notes"}
# You ask with two numbers: how much you want of tea, and how much of prices. Each person has two numbers, too: what they know. Multiply in pairs, and add.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Attention: score, share, mix

# %%
code("02a", "query = torch.tensor([[1.0, 2.0]])", lines=slice(0, 5))

# %%
shown("02a", "query = torch.tensor([[1.0, 2.0]])")

# %% [markdown] slideshow={"slide_type": "notes"}
# The same in code. One row is one query. The transposed table of keys meets it; softmax runs over the keys, the last axis; the weights mix the values. You hear «37.2»: mostly Cy's 40, pulled down by Ben.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Six parts, and their shapes

# %%
shown("02a", "figures.six_parts()")

# %% [markdown] slideshow={"slide_type": "notes"}
# These are the six words of the day. A query asks, a key is compared, that gives a score. Softmax makes it a weight. Weights mix values, and the mixture is the output. Rows ask, columns answer. Draw it on the board, and leave it there.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["turn:soft_look_up"]
# ## Your turn: three lines

# %%
turn("soft_look_up")

# %%
timer(10)

# %% [markdown] slideshow={"slide_type": "notes"}
# Alone: the three lines, for any number of queries. Hand in early, and hand in wrong: the answer tells you what you did. The common slips are the softmax over the wrong axis, and giving back the weights. Who is ready takes card E1.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["1"]
# ## A query of zeros: whom do you hear?

# %%
vote("query_of_zeros")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("query_of_zeros")

# %% [markdown] slideshow={"slide_type": "notes"}
# You ask for nothing at all. Let them say it before you look.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Between a dictionary and an average

# %%
shown("02a", "queries = torch.tensor([[0.0], [0.5]")

# %% [markdown] slideshow={"slide_type": "notes"}
# Your query times zero, a half, one, ten. At ten Cy has it all, as in a dictionary. At zero all three have a third: the plain average, «23.33». The larger the differences between the scores, the nearer to the dictionary.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["2"]
# ## Self-attention: every word asks

# %%
shown("02a", "x = torch.tensor([[0.0, 0.0, 0.0]")

# %% [markdown]
# Rows: *the*, *cat*, *sleeps*. Each word's row is its query **and** its key.

# %% [markdown] slideshow={"slide_type": "notes"}
# In a sentence every word asks, and every word is asked, itself included. First idea: the row serves as both. Read the last row: *sleeps* looks at itself, and learns nothing. But a verb should find out who sleeps.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## What a word looks for is not what it is found by
#
# $$\text{queries} = x\,W_q$$
#
# $$\text{keys} = x\,W_k$$
#
# $$\text{values} = x\,W_v$$
#
# *sleeps* **looks for** a noun, **is found as** a verb.

# %% [markdown] slideshow={"slide_type": "notes"}
# So three matrices give each word three roles. What it passes on may be a third thing: *cat* is found as a noun, and passes on that it is an animal. Training finds the matrices, in part 03; here we write them by hand.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Now *sleeps* finds *cat*

# %%
shown("02a", "w_q = torch.tensor([[0.0, 0.0]")

# %% [markdown] slideshow={"slide_type": "notes"}
# The row of *sleeps* times the first matrix is its query, three, zero: it asks for a noun. Nearly all of its weight, «0.9998», is on *cat*, and its output says: an animal sleeps.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Do now: let *cat* look for the verb
#
# Notebook **02a**, section 2: change **one** number of `w_q`, and run the cell again.

# %%
timer(3)

# %% [markdown] slideshow={"slide_type": "notes"}
# In pairs. In the row of the noun, the zero for the verb becomes a one. Then *cat* gives nearly all of its weight to *sleeps*. Ask a pair which number it was, and why.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["2"]
# ## A score by hand

# %%
vote("score_by_hand")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("score_by_hand")

# %% [markdown] slideshow={"slide_type": "notes"}
# On paper, alone. A common answer takes the wrong row: ask which token asks. The notebook has a film of all seven steps: play it when they have done the worksheet, not before.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["3"]
# ## A batch has an empty chair
#
# Zoe met only Ann and Ben. A tensor needs lists of equal length: an empty chair fills hers, with key $[0, 0]$ and value 0.

# %% [markdown] slideshow={"slide_type": "notes"}
# A model answers many questions at once. Zoe mistrusts experts, so she asks with minus one, minus two. Her scores are minus one, minus three, and, for the chair, zero.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## The chair's share?

# %%
vote("padding_share")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("padding_share")

# %% [markdown] slideshow={"slide_type": "notes"}
# Vote. "A score of zero means: do not look" is what most people think. It is a score like any other.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## The chair speaks loudest

# %%
shown("02a", "keys[1, 2], values[1, 2] = 0, 0")

# %% [markdown] slideshow={"slide_type": "notes"}
# Look at the second row: the chair has «71» % of the weight, more than both people together. Zoe is told «3.3», though nobody said less than ten. Only minus infinity means: do not look.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["turn:without_padding"]
# ## Your turn: hide the empty chair

# %%
turn("without_padding")

# %% [markdown]
# True in `real`: a person. Each row of weights must still sum to 1.

# %%
timer(8)

# %% [markdown] slideshow={"slide_type": "notes"}
# Hide before the softmax, or after it? Mind the middle axis: one row of `real` serves all queries of its list.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["3"]
# ## The mask, and the mask turned round

# %%
shown("02a", 'turned = yours("without_padding")')

# %% [markdown]
# nan: all keys of that row are hidden.

# %% [markdown] slideshow={"slide_type": "notes"}
# With the right mask Zoe hears 11.19. Turned round, she hears the chair alone, and your row is nan: minus infinity minus minus infinity. When you see nan, look first for a row whose keys are all hidden.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["To carry away"]
# ## One line in torch

# %%
code("02a", "by_torch = F.scaled_dot_product_attention", lines=slice(0, 3))

# %%
shown("02a", "by_torch = F.scaled_dot_product_attention")

# %% [markdown] slideshow={"slide_type": "notes"}
# The course's own file and torch agree: «34.90» and «11.96». Why not 37.18? torch divides the scores by a root, which part 02b explains. In its mask, too, True means: may look.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["Three people once more"]
# ## With which query does Ann get most?

# %%
vote("ann_first")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("ann_first")

# %% [markdown] slideshow={"slide_type": "notes"}
# They keep their keys, and name the same prices. Only your question changes, and Ann gets two thirds. A score belongs to a question and a key.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["end"]
# ## In one breath: score, share, mix
#
# Before you go, on the ticket: which of today's sentences would you have called wrong this morning?
#
# At home: notebook **02a**, what we left out.

# %% [markdown] slideshow={"slide_type": "notes"}
# Rows ask, columns answer, each row of weights sums to one. Only differences of scores count. Padding is hidden with minus infinity, before the softmax. Collect the tickets at the door.
