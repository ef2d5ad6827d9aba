# %% tags=["imports"] slideshow={"slide_type": "skip"}
from lesson_lib.cli.deck import *

# %% [markdown] slideshow={"slide_type": "slide"} tags=["title"]
# # What does a word need to see?
#
# Afterwards you can
#
# - compute the best accuracy that a tagger can reach with what it sees
# - say what a window, a recurrent network and attention see
# - find out by an intervention which word a network uses

# %% [markdown] slideshow={"slide_type": "notes"}
# Forty minutes. A guess costs nothing here: write each one down before we look.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["Opening"]
# ## *I saw a saw.*
#
# The same word twice: first a verb, then a tool.
#
# A **tagger** names each word's part of speech.

# %% [markdown] slideshow={"slide_type": "notes"}
# What must it see to know which *saw* is which? Let two neighbours talk for half a minute.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## It sees one word and nothing else

# %%
vote("same_word")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("same_word")

# %% [markdown] slideshow={"slide_type": "notes"}
# The network may be as large as you like, and train as long as you like.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## What tells?
#
# | words like | may be | what tells |
# |---|---|---|
# | *saw* | noun, past form | a neighbour |
# | *cut*, *split* | noun, past, base | at times a word far away |
#
# ***may** each brush near us … **split** him*

# %% [markdown] slideshow={"slide_type": "notes"}
# A small grammar writes our sentences. After an auxiliary a verb has its base form: did see, not did saw. So *may* is the reason, and it may stand far away.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["1"]
# ## The same sight gets the same answer
#
# | sight | noun | past form | right at best |
# |---|---|---|---|
# | *the saw* | 4 | 0 | 4 of 4 |
# | *I saw* | 0 | 3 | 3 of 3 |
# | *garden saw* | 1 | 0 | 1 of 1 |

# %% [markdown] slideshow={"slide_type": "notes"}
# A word's sight is all that the tagger sees while it tags this word. Alone, *saw* is a noun five times of eight, so the best is five of eight. With the word before it: eight of eight. The rule: give each sight its most frequent tag, and add up.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["turn:most_right"]
# ## Your turn: the best that anybody can do

# %%
turn("most_right")

# %%
timer(8)

# %% [markdown] slideshow={"slide_type": "notes"}
# A row for each sight, a column for each tag. Two torch calls. The common slip takes the largest of the whole table, or the mean of the rows. The result is the limit: no network with this sight gets beyond it, at any size.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["2"]
# ## Do now: which words may a word see?
#
# A **mask**: row $i$, column $j$ says whether word $i$ may look at word $j$.
#
# On paper, for *I saw a saw*: each word sees one neighbour on either side, and itself.

# %%
timer(3)

# %% [markdown] slideshow={"slide_type": "notes"}
# In pairs: four rows, four columns. Rows look, columns are looked at. The corners stay empty. Ask which cells change if a word sees all that came before it.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Four networks, four masks

# %%
shown("01a", "figures.masks(")

# %% [markdown] slideshow={"slide_type": "notes"}
# Compare with your own, which were smaller. A window sees neighbours. A recurrent network reads from left to right and keeps one row of numbers, so it sees all that came before. Attention sees everything. Ask which mask contains which.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Who is best on words like *cut*?

# %%
vote("best_on_cut")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("best_on_cut")

# %% [markdown] slideshow={"slide_type": "notes"}
# The clue is an auxiliary, often far to the left. Half a minute.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## A wide sight never has a lower limit
#
# | | like *saw* | like *cut* |
# |---|---|---|
# | one word | lowest | a guess |
# | window | high | climbs slowly |
# | recurrent, attention | high | all or nearly all |

# %% [markdown] slideshow={"slide_type": "notes"}
# A sight that contains another never has a lower limit, since a tagger can ignore what it does not need. A window must be as wide as the farthest clue.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Attention without order

# %%
vote("without_order")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("without_order")

# %% [markdown] slideshow={"slide_type": "notes"}
# Attention adds rows, and a sum has no order: each word sees a bag of words. How much does the bag help with *saw*?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## One more input

# %%
vote("one_more_input")

# %%
timer(4)

# %% slideshow={"slide_type": "fragment"}
answer("one_more_input")

# %% [markdown] slideshow={"slide_type": "notes"}
# Four minutes. Whoever says that data or size help takes the limit for a lack of training. Ask what counts as something seen.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["3"]
# ## Every dot stands near its line

# %%
shown("01a", "figures.stored_taggers()")

# %% [markdown] slideshow={"slide_type": "notes"}
# Each dot is a trained network, each black line its limit. "Only attention can do this": the row *recurrent, both ways* refutes it. They differ in how the clue travels, from word to word or in one step.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["4"]
# ## Who looked?
#
# *did the **old** man that saw the duck near me **cut** the bottle*
#
# In the last layer one head puts all its weight on *did*, another three quarters on *old*.

# %% [markdown] slideshow={"slide_type": "notes"}
# The attention tagger on a new sentence. Two words get much weight from *cut*. "A large weight marks the cause": does the network use both?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Which deletion changes the tag?

# %%
vote("which_deletion")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("which_deletion")

# %% [markdown] slideshow={"slide_type": "notes"}
# We delete a word, and tag the rest again.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["turn:changed_tags"]
# ## Your turn: delete each word in turn

# %%
turn("changed_tags")

# %%
timer(8)

# %% [markdown] slideshow={"slide_type": "notes"}
# One mistake is easy: after a deletion all later tags stand one place further left. Positions count in the whole sentence.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["4"]
# ## Without *did* it changes, without *old* it does not
#
# Is it the word, or the move by one place? A **control** tells: take another word away, or put another auxiliary in its place.

# %% [markdown] slideshow={"slide_type": "notes"}
# Head 1 looks at *old*, and the tag does not depend on it. On all test sentences: without the auxiliary none stays a base form; without the second word, or with another auxiliary, nearly all do.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## It goes by place alone

# %%
vote("goes_by_place")

# %%
timer(4)

# %% slideshow={"slide_type": "fragment"}
answer("goes_by_place")

# %% [markdown] slideshow={"slide_type": "notes"}
# Four minutes. This network is a trap for a test without a control. Let them count places.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["I saw a saw"]
# ## Both are right
#
# A picture of weights gives an idea. Delete the word before you believe it.

# %% [markdown] slideshow={"slide_type": "notes"}
# The tagger says verb, then noun. A network that sees one word cannot do it, nor can attention without order: for both, the two look the same.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["end"]
# ## What a model sees sets the limit of what it can learn
#
# To know what a network uses, change it, and have a control.
#
# Ticket: the first question of this week's sheet. At home: notebook **01a**, *In real work*.

# %% [markdown] slideshow={"slide_type": "notes"}
# The same sight gets the same answer, at any size. Collect the tickets.
