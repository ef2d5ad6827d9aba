# %% tags=["imports"] slideshow={"slide_type": "skip"}
from lesson_lib.cli.deck import *

# %% [markdown] slideshow={"slide_type": "slide"} tags=["title"]
# # Can the whole machine translate?
#
# Afterwards you can
#
# - name every shape in a Transformer
# - write the loss by which translators are trained
# - find out from outside what a trained model reads

# %% [markdown] slideshow={"slide_type": "notes"}
# Fifty minutes, more than half of them yours. Heads, positions and layers are known; now they stand together in one machine. We train it twice, with one difference, and you say which of the two you would ship.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["Opening"]
# ## Fifteen languages write a date; one form comes out
#
# | goes in | should come out |
# |---|---|
# | mercredi 3 mars 2021 | 2021-03-03 |
# | 14 juillet 1989 | 1989-07-14 |
# | czwartek, 5 maja 2011 | 2011-05-05 |
# | tuesday, june 20, 2028 | 2028-06-20 |

# %% [markdown] slideshow={"slide_type": "notes"}
# Each line is one text, character by character. Nobody tells the machine which language it is, or where the month stands. In part 01b a recurrent network learned this; today heads and layers do it. The test dates are days that it never trained on.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Do now: ask a trained machine where it looks

# %% [markdown]
# Open notebook **06b**, and run the first cells.
#
# In the explorer, pick *14 juillet 1989*. Move *query* to 5, then to 8.
#
# At which character does it look before the month? Before the day?

# %%
timer(3)

# %% [markdown] slideshow={"slide_type": "notes"}
# In pairs. Part *decoder to encoder*, layer 2, head 0. Query 5 stands before the month: nearly all weight is on the j of juillet. Query 8 stands before the day: on the 1 of 14. Nobody told it either of these.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["1"]
# ## One table stands at both ends
#
# | | goes in | comes out |
# |---|---|---|
# | first | token 12 | its **embedding**: row 12 of a learned table |
# | last | a position's last row $y$ | **logits**: $y \cdot$ each row of the same table |
#
# A token: a character, *start*, *end*, or padding.

# %% [markdown] slideshow={"slide_type": "notes"}
# The vocabulary numbers all tokens. A number picks a row; that is the embedding. At the other end the machine must say the next token: it compares its last row with all rows of the table, by dot products. The row that points the same way gets the largest logit.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Every decoder layer asks the same memory

# %%
shown("06b", "machine_figures.transformer_diagram", only=0)

# %% [markdown] slideshow={"slide_type": "notes"}
# Follow the blue line above: the encoder reads the source, and leaves the memory. Below, the decoder reads what is written. Orange: each of its layers asks this one memory. Ask: which encoder layer does the third decoder layer read? The last one, like all others.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## The decoder begins with *start* and stops with *end*
#
# | position | 0 | 1 | 2 | … | 9 | 10 |
# |---|---|---|---|---|---|---|
# | reads | start | 2 | 0 | … | 0 | 3 |
# | must say | 2 | 0 | 2 | … | 3 | end |
#
# The **source** has 20 characters; the **target** is *2021-03-03*.

# %% [markdown] slideshow={"slide_type": "notes"}
# Two words for today: source is what the encoder reads, target is the answer. The decoder reads start first, and then each character that is written. So it reads eleven tokens for our ten characters, and says eleven: the last one is end.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## A table of weights: which shape?

# %%
vote("who_looks")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("who_looks")

# %% [markdown] slideshow={"slide_type": "notes"}
# One minute alone, then all letters at once. Whoever takes d) has queries as columns: ask who asks here. Letters a) and b) are the two other attentions: the encoder's own, and the decoder's own.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## One date, from characters to logits

# %%
shown("06b", "shapes = {")

# %% [markdown]
# One pair, its positions, the width 64. Where are the heads?

# %% [markdown] slideshow={"slide_type": "notes"}
# Read each shape aloud, and let them say what the axes are. The first is the batch, one date. «20» characters stay 20 rows up to the memory. Each of four heads has «11» by 20 weights. «74» logits: 71 characters, and three more.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## One row of the memory is left

# %%
vote("row_zero")

# %%
timer(4)

# %% slideshow={"slide_type": "fragment"}
answer("row_zero")

# %% [markdown] slideshow={"slide_type": "notes"}
# Vote, talk with a neighbour, vote again. Letter a) thinks that a row holds its own character alone. Letter b) has the encoder read from left to right. Letter c) lets the decoder see the source by itself. Ask: which mask has the encoder?

# %% [markdown] slideshow={"slide_type": "slide"} tags=["2"]
# ## In training, the right tokens go in
#
# | position | 0 | 1 | 2 | 3 | 4 | 5 | 6 | … | 10 |
# |---|---|---|---|---|---|---|---|---|---|
# | goes in | start | 2 | 0 | 2 | 1 | - | 0 | … | 3 |
# | must say | 2 | 0 | 2 | 1 | - | 0 | 3 | … | end |
#
# **Teacher forcing**: both lines are one `target`, shifted by one column.

# %% [markdown] slideshow={"slide_type": "notes"}
# In training the answer is known. So the decoder is given the right tokens, even where it would have written a wrong one. Above: the target without its last token. Below: the target without its first. Leave these two lines on the board; we need them all day.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Shorter answers are filled up
#
# | position | 0 | 1 | 2 | 3 | 4 | … |
# |---|---|---|---|---|---|---|
# | one answer | 2 | 0 | 2 | 1 | - | … |
# | a shorter one | 7 | 4 | end | **padding** | **padding** | … |
#
# The loss is a mean of cross-entropies, one at each position.

# %% [markdown] slideshow={"slide_type": "notes"}
# A batch is a tensor, so its answers must have equal length. The shorter one is filled up behind its end with token 0, padding. At each position the loss compares the logits with the right token. Ask: should padding count? Let them vote on what happens if it does.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## If padding counts, what does the loss say?

# %%
vote("padded_loss")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("padded_loss")

# %% [markdown] slideshow={"slide_type": "notes"}
# One minute. Letter c) forgets that the mean divides by more positions. Letter b) thinks that each position costs something; one that is predicted for certain costs nothing. So the number looks good, and hides how the real tokens fare.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["turn:next_character_loss"]
# ## Your turn: the loss of a training step

# %%
turn("next_character_loss")

# %% [markdown]
# `model(source, lengths, before)` gives logits $(b, n, 74)$.

# %%
timer(7)

# %% [markdown] slideshow={"slide_type": "notes"}
# In pairs. Two cuts of the target, flatten, and one argument of cross_entropy, ignore_index. Common slips: the model reads what it must say; padding adds nothing, but is still counted in the mean. Who is ready takes `next_character_loss_2`: what a chat model learns.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["2"]
# ## How often does the decoder run?

# %%
vote("passes")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("passes")

# %% [markdown] slideshow={"slide_type": "notes"}
# A number on paper, alone. Whoever writes 1100 thinks of writing, where each token waits for the one before. Ask: which token of the upper line is unknown in training? None. So one run gives all positions.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Training is one run; writing is eleven
#
# | for one date | encoder | decoder |
# |---|---|---|
# | training | 1 run | 1 run, all 11 positions |
# | writing | 1 run | 11 runs, a token each |

# %% [markdown] slideshow={"slide_type": "notes"}
# "In training the machine writes an answer, and is then corrected." No: it writes nothing, and your loss calls it once. A recurrent decoder needs eleven steps even in training, since each state waits for the one before.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["3"]
# ## Two machines, one difference
#
# | | A | B |
# |---|---|---|
# | weights at the start | the same | the same |
# | batches | the same | the same |
# | your loss, 500 steps | the same | the same |
# | mask of the decoder's own attention | **causal** | **none** |

# %% [markdown] slideshow={"slide_type": "notes"}
# Half a minute of training each: start the cell now, and let it run while they vote. A sees what has been written so far. B sees all tokens that go in, also later ones. All else is equal, to the last random number.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## What becomes of B?

# %%
vote("without_mask")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("without_mask")

# %% [markdown] slideshow={"slide_type": "notes"}
# One minute. Let one of a) and one of b) give a reason before you open it. Letter a) takes a mask for help; it only forbids. Letter b) is half right: ask what training and writing have different.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## B's loss drops far below A's

# %%
shown("06b", 'a = to_device(machine)', only=0)

# %% [markdown] slideshow={"slide_type": "notes"}
# The axis is logarithmic: a grid line is ten times less. For some sixty steps both curves run together. Then B drops. Ask: if you had only this picture, which machine would you ship? Most people say B.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## A writes dates, B writes none
#
# | | A | B |
# |---|---|---|
# | training loss at the end | ‹0.0275› | ‹0.0005› |
# | right, of 1,000 unseen days | **‹0.91›** | **‹0.00›** |
# | *mercredi 3 mars 2021* | 2021-03-03 | -111--0000 |

# %% [markdown] slideshow={"slide_type": "notes"}
# A thousand dates of days that neither has seen. A has ‹0.91› of them right, B none: what it writes is not even a date. "A low training loss means a good translator." B refutes it. But what has B learned, all that time?

# %% [markdown] slideshow={"slide_type": "slide"} tags=["4"]
# ## Disturb the future, compare the past
#
# | position | 0 | 1 | 2 | 3 | 4 | 5 |
# |---|---|---|---|---|---|---|
# | goes in | start | 2 | 0 | 2 | **7** | - |
# | logits | same? | same? | same? | same? | | |
#
# A model that reads ahead has a **leak**.

# %% [markdown] slideshow={"slide_type": "notes"}
# A test from outside, for any model. Change one token that goes in, here at position 4. Then look at the logits before it. An honest model cannot know of the change, so nothing moves there. If something does, it reads ahead.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["turn:reads_ahead"]
# ## Your turn: write the test for a leak

# %%
turn("reads_ahead")

# %% [markdown]
# Take a fresh copy of `before` each time. The source is in `model` already.

# %%
timer(8)

# %% [markdown] slideshow={"slide_type": "notes"}
# Alone, then in pairs. A loop over i; clone inside the loop, or each round changes one token more. Absolute values before the sum, or up and down cancel. Position i itself may move. Who is ready tries the same test by gradients.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["4"]
# ## In A nothing moves before the change
#
# | one token changed at position | 1 | 4 | 7 | 10 |
# |---|---|---|---|---|
# | A: earlier logits moved by | ‹0.0› | ‹0.0› | ‹0.0› | ‹0.0› |
# | B: earlier logits moved by | ‹58.4› | ‹103.5› | ‹150.2› | ‹152.5› |

# %% [markdown] slideshow={"slide_type": "notes"}
# This is what your test prints, at four of the eleven positions. A: exactly zero, everywhere. B moves at each position; so it reads ahead. Position 0 is left out, since nothing stands before it. Ask: what does B do with what it sees?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## B says what stands one column to its right
#
# | position | 2 | 3 | 4 | 5 |
# |---|---|---|---|---|
# | goes in | 0 | 2 | **7** | - |
# | must say | 2 | 1 | - | 0 |
# | A says | 2 | **1** | - | 0 |
# | B says | 2 | **7** | - | 0 |

# %% [markdown] slideshow={"slide_type": "notes"}
# We put a wrong 7 into column 4, where the 1 of the year went in. Look at column 3. A still says 1, the right digit. B says 7. Let them say it: B copies the token one column to the right, whatever it is.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## B does not need its source
#
# | tokens said right | own source | another date's source |
# |---|---|---|
# | A | ‹0.99› | ‹0.53› |
# | B | ‹1.00› | ‹1.00› |
#
# Writing, nothing stands to the right of the last token: there is nothing to copy.

# %% [markdown] slideshow={"slide_type": "notes"}
# Each test date gets the source of another one. A now mostly says the other date; two dates share about half of their tokens. B does not notice. Copying made its loss nearly zero, so nothing pushed it to read. The mask made A read.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Somebody forgets the shift

# %%
vote("no_shift")

# %%
timer(4)

# %% slideshow={"slide_type": "fragment"}
answer("no_shift")

# %% [markdown] slideshow={"slide_type": "notes"}
# Vote, talk, vote. Letter a) trusts the mask too much: a position may see itself. Letter c) takes every loss that is too good for a look ahead. Let somebody write both lines on the board, unshifted.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["In real work"]
# ## Forget torch's third mask, and nothing fails

# %%
shown("06b", "core = nn.Transformer(64")

# %% [markdown]
# Three masks: `tgt_mask`, `src_key_padding_mask`, `memory_key_padding_mask`. In each, True = **hidden**.

# %% [markdown] slideshow={"slide_type": "notes"}
# Four rows of padding behind nine. With all three masks nothing changes. Without the last, the decoder asks padding, and numbers of size 1 move by up to «0.50». So a translation depends on how long the other texts of its batch are.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["end"]
# ## In one breath: shift by one, hide the future, leave padding out
#
# Before you go, on the ticket: a training loss is too good. What do you test, and how?
#
# At home: notebook **06b**, *To carry away*; then **06d**.

# %% [markdown] slideshow={"slide_type": "notes"}
# You would ship A. A low loss is no translation. A good ticket says: change a later token, and look at the logits before it. An even better one adds: and check that the answer is not what goes in. Collect the tickets at the door.
