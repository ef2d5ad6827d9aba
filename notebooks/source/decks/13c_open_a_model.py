# %% tags=["imports"] slideshow={"slide_type": "skip"}
from lesson_lib.cli.deck import *

# %% [markdown] slideshow={"slide_type": "slide"} tags=["title"]
# # What is in a model on my disk?
#
# Afterwards you can
#
# - find after which layer, at which position, and by which heads an answer is made
# - compute a head's weights from a file
# - test what else a change does

# %% [markdown] slideshow={"slide_type": "notes"}
# Fifty minutes, all from one small folder: settings, tokenizer, 424,992 numbers. Nothing is trained.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["Opening"]
# ## *A Wibkat is a class. The Wibk…*
#
# Nobody ever wrote *Wibkat*. Which letter comes next?

# %% [markdown] slideshow={"slide_type": "notes"}
# It comes with the course, as people publish models. Four layers of four heads. Let them say what a count of letters would do.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["1"]
# ## A name that nobody wrote

# %%
vote("never_seen_name")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("never_seen_name")

# %% [markdown] slideshow={"slide_type": "notes"}
# How probable is the right letter for this model? It was trained on a manual in which invented names come back.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## It copies 160 names of 200
#
# | | right of 200 |
# |---|---|
# | the name stands in the text | ‹160› |
# | **another** name stands there | few |

# %% [markdown] slideshow={"slide_type": "notes"}
# One name can be luck, so we ask two hundred. The second line is the control: with another name in the first sentence the letter is gone. So it copies. But where?

# %% [markdown] slideshow={"slide_type": "slide"} tags=["2"]
# ## What if the model ended earlier?
#
# Read each layer's stream with the last norm and the last matrix: the **logit lens**.

# %% [markdown] slideshow={"slide_type": "notes"}
# The residual stream has a row at each position, and every layer adds to it. Let the same norm and matrix read it after each layer.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## After which layer?

# %%
vote("which_layer")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("which_layer")

# %% [markdown] slideshow={"slide_type": "notes"}
# Four layers, 0 to 3. Where does the answer appear?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Not little by little

# %%
shown("13c", 'print("                p(a)  right")')

# %% [markdown] slideshow={"slide_type": "notes"}
# "Each layer brings the answer a little nearer": no. After layer 1 the lens finds a handful, after layer 2 nearly all. Layer 3 adds no name.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["3"]
# ## Exchange one row
#
# Run ours up to some layer. Replace **one** row of its stream by that of *Wibkot*. Let the rest go on.
#
# Says the model *o* now?

# %% [markdown] slideshow={"slide_type": "notes"}
# That is activation patching. If the answer follows the row, the letter stood there.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Which row carries it?

# %%
vote("row_to_carry")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("row_to_carry")

# %% [markdown] slideshow={"slide_type": "notes"}
# Thirty positions. After layer 0, where does the letter stand? And after layer 2?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## First where it was written, then at the end

# %%
shown("13c", "inside_figures.rows_exchanged(")

# %% [markdown] slideshow={"slide_type": "notes"}
# After layers 0 and 1 the letter stands at position 7, where it was written. After layer 2 only the last row matters. So layer 2 moves it.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Which rows are equal?

# %%
vote("equal_rows")

# %%
timer(4)

# %% slideshow={"slide_type": "fragment"}
answer("equal_rows")

# %% [markdown] slideshow={"slide_type": "notes"}
# Four minutes: two texts that differ at position 7. A causal mask and two layers. Whoever says all but row 7 takes a row for its own character alone.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["4"]
# ## Three heads look at the letter
#
# Heads 1, 2 and 3 of layer 2 give it about three quarters of their weight: **induction heads**.

# %% [markdown] slideshow={"slide_type": "notes"}
# Only attention moves something between positions. A map says where a head looks. It does not say whether the answer depends on it. So take the head away.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Cut the brightest head

# %%
vote("cut_the_brightest")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("cut_the_brightest")

# %% [markdown] slideshow={"slide_type": "notes"}
# Its output becomes 0. How probable is the letter then?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## "So the head hardly matters": a probability hides it
#
# | probability | odds |
# |---|---|
# | .999 | 1,000 : 1 |
# | .95 | 20 : 1 |

# %% [markdown] slideshow={"slide_type": "notes"}
# The probability stays near 1. But the odds fell from a thousand to twenty. The difference of two logits shows it.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["turn:logit_difference"]
# ## Your turn: the logit difference

# %%
turn("logit_difference")

# %%
timer(8)

# %% [markdown] slideshow={"slide_type": "notes"}
# The right letter's logit less the other's, at the last position, for a batch. The common slip takes the softmax first.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["4"]
# ## In which text does it fall more?

# %%
vote("share_or_lead")

# %%
timer(4)

# %% slideshow={"slide_type": "fragment"}
answer("share_or_lead")

# %% [markdown] slideshow={"slide_type": "notes"}
# Four minutes, with odds. Whoever says text 2 looks at the probability.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["5"]
# ## Do only those heads matter that look at the letter?

# %%
vote("early_head")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("early_head")

# %% [markdown] slideshow={"slide_type": "notes"}
# We cut each of the sixteen heads alone, and look at what is left of the logit difference.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Head 3 of layer 1, too

# %%
shown("13c", "inside_figures.without_heads(left)")

# %% [markdown] slideshow={"slide_type": "notes"}
# It does not look at the letter, and without it hardly anything is left. Give layer 2 its old maps back, with the head still cut: the names return. So it tells later heads where to look.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["turn:head_weights"]
# ## Your turn: a head's weights, from the file

# %%
turn("head_weights")

# %%
timer(10)

# %% [markdown] slideshow={"slide_type": "notes"}
# Two tensors, queries and keys; split, turn, attend. Two heads share a head of keys. Which head looks at the token before? That is the one.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["7"]
# ## Zeros in the file: which?

# %%
vote("which_zeros")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("which_zeros")

# %% [markdown] slideshow={"slide_type": "notes"}
# Write zeros in place of what a head sends out, save, open again. Which zeros forget the names and keep the spelling?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Test what a change should leave alone
#
# | zeros in | names | other text |
# |---|---|---|
# | layer 1, head 3 | half survive | half a bit worse |
# | layer 2, three heads | gone | nearly as before |

# %% [markdown] slideshow={"slide_type": "notes"}
# Head 3 of layer 1 is needed for spelling at large. The three heads of layer 2 are nearly alone responsible for names. Without the last column one could not tell a copier from a wreck.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["end"]
# ## A map shows where a head looks; only a change shows what depends on it
#
# Lens: which layer. Patch: which position. Cut: which heads.
#
# Ticket: what would you leave alone, and test? At home: notebook **13c**, *In real work*.

# %% [markdown] slideshow={"slide_type": "notes"}
# None of the numbers knows the name: it stands in the text. Collect the tickets.
