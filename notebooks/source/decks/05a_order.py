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
# Forty-five minutes, and more than half of them are yours. You need attention from part 02, and the heads from part 04. Each guess is written down before we look.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["Opening"]
# ## In which of these does order matter?
#
# | | in another order |
# |---|---|
# | *dog bites man* | *man bites dog* |
# | the dark points of a handwritten 9 | the same points, listed differently |

# %% [markdown] slideshow={"slide_type": "notes"}
# Three equal words, and it matters who stands where. A picture's points: the same nine, however they are listed. Ask for a show of hands for each. Then the question of the day: which of the two does attention read right?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## The same output for both dogs?
#
# No mask, no positions.

# %%
vote("dog_in_both")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("dog_in_both")

# %% [markdown] slideshow={"slide_type": "notes"}
# One minute, alone. If it is quiet: from which numbers is the query of *dog* made? Is its place among them? Whoever takes c) thinks of the row's place in the table, not of what stands in the row.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## No row shows where its token stood

# %%
shown("05a", "figures.two_sentences", only=0)

# %% [markdown]
# Compare **dog**: first row on the left, last row on the right.

# %% [markdown] slideshow={"slide_type": "notes"}
# A row is the output of one word. Point at both rows of *dog*: the dog that bites, and the dog that is bitten, number by number the same. Only the place of the row differs.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["1"]
# ## A test for any layer
#
# | | with order 2, 0, 1 |
# |---|---|
# | shuffle the tokens | `x[order]`: token 2, token 0, token 1 |
# | put the outputs back | token 0, token 1, token 2 |
# | compare | with the outputs of `x` |

# %% [markdown] slideshow={"slide_type": "notes"}
# One pair of sentences is one example. This works for any layer, also for one from a library. If no order changes anything, the layer knows none. Ask: with order 2, 0, 1, where does token 0's output stand? In row 1.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["turn:put_back"]
# ## Your turn: put the outputs back

# %%
turn("put_back")

# %% [markdown]
# Row 0 of `outputs` belongs to the token that was row `order[0]` of `x`.

# %%
timer(5)

# %% [markdown] slideshow={"slide_type": "notes"}
# In pairs, with three cards on the table: shuffle them, and undo it. The common slip is to shuffle once more, outputs[order]: that undoes a swap, and no ring of three. Whoever is ready runs second("put_back").

# %% [markdown] slideshow={"slide_type": "slide"} tags=["1"]
# ## A hundred orders, and nothing moves

# %%
code("05a", "def moved_by_order", lines=slice(2, 8))

# %%
shown("05a", "def moved_by_order")

# %% [markdown] slideshow={"slide_type": "notes"}
# The line in the middle puts the outputs back in order. A hundred random orders of five tokens; we keep the largest difference. One order that mattered would show here. Ask: have we proved it? No, but the next slide does.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## It must be so, for three reasons
#
# | | why order cannot enter |
# |---|---|
# | query, key, value | each is made from **one** token alone |
# | a score | belongs to a **pair**, wherever the two stand |
# | softmax and output | are **sums** over the keys: sums have no order |

# %% [markdown] slideshow={"slide_type": "notes"}
# Three lines, and they hold for any weights. Ask: which of them needs softmax? The third; and without softmax the sum over the values is left, so all still holds.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Outputs move with their tokens: equivariant

# %%
shown("05a", "new = torch.tensor([2, 0, 1, 4, 3])")

# %% [markdown]
# **"Attention is invariant."** No: outputs move along. Their mean over the tokens is invariant.

# %% [markdown] slideshow={"slide_type": "notes"}
# Give three people a number each, and let them change seats: the numbers walk along. The tables differ by «0.99», for the rows have moved; the means do not differ. Layers that move along are called equivariant.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## "the dog bites the man": the two *the*

# %%
vote("two_the")

# %%
timer(4)

# %% slideshow={"slide_type": "fragment"}
answer("two_the")

# %% [markdown] slideshow={"slide_type": "notes"}
# Vote, talk with a neighbour, vote again. Letter a) thinks that the layer knows neighbours. Letter b) thinks that it reads from left to right. Letter d) hopes for training; ask which of the three reasons speaks of weights.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["2"]
# ## A cloud of points comes in no order

# %%
shown("05a", "clouds, real, labels = points.lists", only=1)

# %% [markdown]
# A token: $x$, $y$, and how dark.

# %% [markdown] slideshow={"slide_type": "notes"}
# A laser scanner sees a street as a list of points. Our small cloud is a nine with 23 dark pixels. Both lists hold the same points; the grey line follows the order of the list.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## A reader of points
#
# | step | what it does |
# |---|---|
# | lift | each point becomes 64 numbers |
# | attend | the points look at each other |
# | mean | over all points: one row |
# | name | the digit |
#
# Trained on lists in reading order, from the top.

# %% [markdown] slideshow={"slide_type": "notes"}
# Four steps. The mean makes one answer of a whole list. It has only ever seen lists that begin at the top of the picture. Ask: which of the four steps could learn that?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## We shuffle every test list

# %%
vote("shuffled_points")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("shuffled_points")

# %% [markdown] slideshow={"slide_type": "notes"}
# One minute. Whoever takes b) or c) should name the step that knows who came first. Whoever takes d) may say what has been lost: every point still brings its x and its y.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## The shuffle costs nothing

# %%
shown("05a", 'points.train("no codes")')

# %% [markdown]
# A point carries its position in itself. Here, not knowing order is right.

# %% [markdown] slideshow={"slide_type": "notes"}
# «0.963» both times, to the last digit. The outputs moved with their points, and the mean does not mind. With dog and man it was a fault; here nobody has to show each cloud in many orders.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["3"]
# ## Words do not: name the symbol three back
# | symbols | 5 | 11 | 12 | 8 | 15 | 9 | 11 | 5 |
# |---|---|---|---|---|---|---|---|---|
# | right answers | | | | 5 | 11 | 12 | 8 | 15 |
#
# 16 symbols, drawn at random; 32 of them in a text. Only order counts.

# %% [markdown] slideshow={"slide_type": "notes"}
# Find the first answer: it stands under the 8, and it is 5. Count three back from the 8, and you are at the 5. The first three symbols have no answer. A blind guess is right once in 16.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## After enough training, without codes?

# %%
vote("without_codes")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("without_codes")

# %% [markdown] slideshow={"slide_type": "notes"}
# One minute. Letter b) trusts in training: which number says what stood three back? Letter c) is a blind guess. Ask: you get a bag with the 32 symbols of a text, in no order. On which would you bet?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Three times the training, and no step nearer

# %%
shown("05a", "figures.stored_three_back(codes=False)", only=0)

# %% [markdown] slideshow={"slide_type": "notes"}
# ‹0.15› after 400 steps, and after 1,200. "After enough training it learns the order by itself." No: the three reasons hold for trained matrices, too. It bets on the commonest symbol of the text, and that makes up ‹0.15›.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Write the position into the token: which vector?
#
# $$x_i + p_i$$
#
# | what tells position $i$ | what goes wrong |
# |---|---|
# | $i$ itself | grows, and drowns the word |
# | $i / n$ | a step depends on the length |
# | a fast clock, $\sin i$ | 1 and 2 are alike: ‹0.84›, ‹0.91› |
# | a slow clock, $\sin 0.01\,i$ | neighbours are alike: ‹0.01›, ‹0.02› |

# %% [markdown] slideshow={"slide_type": "notes"}
# The cure: add a code to the word. Cover the right column, and let the room say what goes wrong. A clock's hand turns by the same angle at each token. One clock is not enough; what would you do? Take several.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Several clocks, and of each the sine and the cosine
#
# $$p_{i,\,2j} = \sin(i\,\omega_j) \qquad p_{i,\,2j+1} = \cos(i\,\omega_j)$$
#
# $$\omega_j = 10000^{-2j/d}$$
#
# $$d = 4:\quad p_1 = (\sin 1,\; \cos 1,\; \sin 0.01,\; \cos 0.01)$$

# %% [markdown] slideshow={"slide_type": "notes"}
# Columns 2j and 2j + 1 are one clock. Omega is its frequency, the angle of one step. For width 4 do it together: the frequencies are 1 and 0.01. Ask for position 0: zero, one, zero, one. Width 32 has 16 clocks, not 32.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["turn:code_row"]
# ## Your turn: the code of one position

# %%
turn("code_row")

# %% [markdown]
# First all frequencies, then all angles, then sine and cosine, side by side.

# %%
timer(6)

# %% [markdown] slideshow={"slide_type": "notes"}
# Alone. The slips: an exponent of -j/d in place of -2j/d, and all sines before all cosines. The table still looks handsome then, so check row 1 of width 4 by hand. Who is ready takes card E5.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["3"]
# ## Read a code like a watch

# %%
shown("05a", 'p = torch.stack([yours("code_row")', only=0)

# %% [markdown] slideshow={"slide_type": "notes"}
# A row is a position, two columns are a clock. On the left the colours change from row to row: once round in six tokens. On the right nothing seems to move. Fast hands tell neighbours apart, slow ones say in which part of the text.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Do now: set the offset to 44

# %%
shown("05a", "ClockExplorer(d=8)")

# %% [markdown]
# Notebook **05a**, section 3. Which clocks tell the two positions apart?

# %%
timer(2)

# %% [markdown] slideshow={"slide_type": "notes"}
# In pairs. On the first clock the hands meet, since 44 tokens are seven turns. The second and the third tell them apart; the fourth has hardly moved. Ask: is the first clock useless, then? No, it tells neighbours apart.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## The same network, with codes added

# %%
shown("05a", "figures.stored_three_back()", only=0)

# %% [markdown] slideshow={"slide_type": "notes"}
# Right nearly always, after 400 steps already. How a score finds three back in sines and cosines, part 05b shows. Why 10000? It sets the slowest clock: its turn should take longer than your longest text. That vote, `slowest_clock`, is for home.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Codes added behind the layer

# %%
vote("codes_behind")

# %%
timer(4)

# %% slideshow={"slide_type": "fragment"}
answer("codes_behind")

# %% [markdown] slideshow={"slide_type": "notes"}
# Vote, talk, vote. Letter a): each row does hold its place, but a mean forgets which row. Letter b) keeps the order in the fast clocks. Letter c) hopes that training finds what the mean has lost. Let somebody write the mean as two means.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["4"]
# ## Shall the points get codes, too?

# %%
vote("codes_on_points")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("codes_on_points")

# %% [markdown] slideshow={"slide_type": "notes"}
# Now the point that is i-th in its list gets the code of i. Training lists begin at the top, test lists are shuffled. Letter a) forgets that the codes stay while the points move. Letter b) thinks that the model hardly used them.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Where order is an accident, codes do harm

# %%
shown("05a", 'told, _ = points.train("codes")')

# %% [markdown]
# Give codes only to inputs whose order will mean something when the model is used.

# %% [markdown] slideshow={"slide_type": "notes"}
# In order the codes gain nothing, «0.957». Shuffled, the reader falls to «0.443». It had learned that late in the list means low in the picture. Whose fault is it, the codes' or the training's? Both: trained on shuffled lists it could learn to ignore them. But why give a code that must be ignored?

# %% [markdown] slideshow={"slide_type": "slide"} tags=["Dog and man once more"]
# ## In which of three ways do the dogs differ?

# %%
vote("which_know")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("which_know")

# %% [markdown] slideshow={"slide_type": "notes"}
# The layer as at the beginning; with codes; without codes, but with a mask that hides later words. Letter b): how many words does *dog* see in each of the two sentences? Then look at reason 2 again: a pair's score depends on its places now.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["end"]
# ## In one breath: it knows what, and not where
#
# Before you go, on the ticket: an input of your own work. Does it need codes?
#
# At home: notebook **05a**, *In real work*: torch's layers add no codes, and nothing complains.

# %% [markdown] slideshow={"slide_type": "notes"}
# Shuffle, put back, compare. A point carries its position, a word needs a code: fast clocks for neighbours, slow ones for the part of the text. A causal mask tells some order, too. A good ticket says what a new order would change.
