# %% tags=["imports"] slideshow={"slide_type": "skip"}
from lesson_lib.cli.deck import *

# %% [markdown] slideshow={"slide_type": "slide"} tags=["title"]
# # Does attention know order?
#
# Afterwards you can
#
# - test whether a layer knows order
# - say where not knowing it is right
# - write the position codes of the Transformer of 2017

# %% [markdown] slideshow={"slide_type": "notes"}
# Forty minutes; the test and the code are theirs to write.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["Opening"]
# ## Dog bites man
#
# The same three words, twice. Random matrices, no training.

# %% [markdown] slideshow={"slide_type": "notes"}
# *Dog bites man* and *man bites dog*. A layer of attention reads both. We look at one row: that of *dog*.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## The same dog?

# %%
vote("dog_in_both")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("dog_in_both")

# %% [markdown] slideshow={"slide_type": "notes"}
# Half a minute. Ask somebody who says no: what in the layer could tell the two dogs apart?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## No row shows where its token stood

# %%
shown("05a", "figures.two_sentences(outputs")

# %% [markdown] slideshow={"slide_type": "notes"}
# Compare *dog*: first row on the left, last on the right. The dog that bites and the dog that is bitten get the same output.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["1"]
# ## A test for order: shuffle, put back, compare
#
# Shuffle the tokens. Run the layer. Put each output back to where its token stood.
#
# Nothing has changed, for any order? The layer knows none.

# %% [markdown] slideshow={"slide_type": "notes"}
# It works for any layer. The middle step is easy to get wrong: putting back is the inverse of shuffling.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["turn:put_back"]
# ## Your turn: back to their places

# %%
turn("put_back")

# %%
timer(6)

# %% [markdown] slideshow={"slide_type": "notes"}
# Output row 0 belongs to the token that was row order[0]. The common slip shuffles a second time. Who is ready runs it on the layer: the largest difference is 0.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["1"]
# ## Three reasons why it must be so
#
# 1. Query, key, value are made of **one** token.
# 2. A score belongs to a **pair** of tokens.
# 3. Sums have no order.

# %% [markdown] slideshow={"slide_type": "notes"}
# Shuffle the tokens: the rows of the table are shuffled, and its columns in the same way. Softmax divides by a sum, and the output is a sum. So the outputs move with their tokens: the layer is equivariant. "Attention is invariant": no, only the mean over its outputs is.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## The two *the*

# %%
vote("two_the")

# %%
timer(4)

# %% slideshow={"slide_type": "fragment"}
answer("two_the")

# %% [markdown] slideshow={"slide_type": "notes"}
# Two equal words in a sentence. Four minutes. Whoever says that they differ by their neighbours should point to a step of the formula.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["2"]
# ## A digit is a set of points

# %%
shown("05a", "figures.as_lists(digits.pictures")

# %% [markdown] slideshow={"slide_type": "notes"}
# Each dark pixel is a token of three numbers: across, down, how dark. The same cloud in two orders. A small reader attends, takes the mean, and names the digit. It was trained on lists in reading order.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## The same digits, shuffled

# %%
vote("shuffled_points")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("shuffled_points")

# %% [markdown] slideshow={"slide_type": "notes"}
# What does the shuffle cost? Think of the three reasons, and of the mean.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Here, not knowing order is a gift

# %%
shown("05a", 'shares = {"as it is"')

# %% [markdown] slideshow={"slide_type": "notes"}
# The shuffle cost nothing. Nobody has to show each cloud in many orders. A point carries its position in itself.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["3"]
# ## Words do not carry their position

# %%
shown("05a", 'print("symbols      "')

# %% [markdown] slideshow={"slide_type": "notes"}
# A task in which only order counts: name the symbol three positions before. Go through one column together.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Three back, without codes

# %%
vote("without_codes")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("without_codes")

# %% [markdown] slideshow={"slide_type": "notes"}
# Guess the accuracy after training. It sees which symbols occur, and not where: what is then its best bet?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## The cure: write the position into the token
#
# $$x_i + p_i$$
#
# | code | trouble |
# |---|---|
# | the number $i$ | grows, and drowns the word |
# | $i / n$ | a step depends on the length |
# | a fast clock | soon begins anew |
# | a slow clock | neighbours look alike |

# %% [markdown] slideshow={"slide_type": "notes"}
# Go down the table with them: let the room find each trouble. Then: take several clocks, fast and slow, and of each hand the sine and the cosine.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## A ladder of clocks
#
# $$p_{i,2j} = \sin(i\,\omega_j) \qquad p_{i,2j+1} = \cos(i\,\omega_j)$$
#
# $$\omega_j = 10000^{-2j/d}$$

# %% [markdown] slideshow={"slide_type": "notes"}
# Columns 2j and 2j plus 1 are one clock. For d = 8 a turn takes 6, 63, 628 and 6,283 tokens. Read a code like a watch: fast hands tell neighbours apart, slow ones say in which part of the text you are.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["turn:code_row"]
# ## Your turn: the code of one position

# %%
turn("code_row")

# %%
timer(8)

# %% [markdown] slideshow={"slide_type": "notes"}
# d numbers, sines and cosines in turns. The common slip puts all sines first. By hand for d = 4 first, if they are stuck.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["3"]
# ## The table of codes

# %%
shown("05a", "figures.table(p)")

# %% [markdown] slideshow={"slide_type": "notes"}
# Rows are positions. On the left a clock that goes round every six tokens; on the far right they have hardly left their start.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Do now: two hands that meet
#
# Notebook **05a**, section 3, the clocks: set the offset to **44**.
#
# Which clocks tell the two positions apart?

# %%
timer(3)

# %% [markdown] slideshow={"slide_type": "notes"}
# The first clock's hands meet, since 44 tokens are seven turns. The second and the third tell them apart; the fourth has hardly moved. So several are needed.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Codes added too late

# %%
vote("codes_behind")

# %%
timer(4)

# %% slideshow={"slide_type": "fragment"}
answer("codes_behind")

# %% [markdown] slideshow={"slide_type": "notes"}
# Four minutes: the codes are added behind the layer. Whoever says that this is enough should say which step then sees them.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["4"]
# ## A code for every point?

# %%
vote("codes_on_points")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("codes_on_points")

# %% [markdown] slideshow={"slide_type": "notes"}
# Now the points get codes as well, by their place in the list. Training lists start at the top of the picture.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## The model used an accident
#
# | | in order | shuffled |
# |---|---|---|
# | no codes | ‹0.963› | ‹0.963› |
# | with codes | ‹0.957› | ‹0.443› |

# %% [markdown] slideshow={"slide_type": "notes"}
# In order the codes gain nothing. Shuffled, the reader with codes falls. A late place in the list meant low in the picture; the model used it, and the shuffle took it away. Give codes only where the order means something.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["Dog and man once more"]
# ## Which of three tell the dogs apart?

# %%
vote("which_know")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("which_know")

# %% [markdown] slideshow={"slide_type": "notes"}
# Bare; with codes; without codes but with a causal mask. The third one surprises: which of the three reasons does a mask break?

# %% [markdown] slideshow={"slide_type": "slide"} tags=["end"]
# ## Attention knows what its tokens are, not where they stand
#
# For a set this is right. A text needs codes, or at least a causal mask.
#
# Ticket: a task of yours in which order is an accident? At home: notebook **05a**, *In real work*.

# %% [markdown] slideshow={"slide_type": "notes"}
# torch's layers add no codes: you do. Shuffle, put back, compare. Collect the tickets.
