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
# Fifty minutes. The discovery is a machine with a loss near zero that translates nothing: do not give it away.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["Opening"]
# ## *mercredi 3 mars 2021* goes in

# %%
shown("06b", "explorer = MachineExplorer(", only=1)

# %% [markdown] slideshow={"slide_type": "notes"}
# The machine has written 2021 and a dash; the month comes next. Nearly all of this query's weight lies on the *a* of *mars*. Nobody told the machine where a month stands, nor in which language.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["1"]
# ## An encoder reads, a decoder writes

# %%
shown("06b", "machine_figures.transformer_diagram(norm_first=True)")

# %% [markdown] slideshow={"slide_type": "notes"}
# Upper row, from the left: each character becomes an embedding, the code of its position is added, the encoder's layers follow. What leaves the last norm is the memory. Lower row: the decoder reads what has been written so far, and asks the memory.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Who looks at whom?

# %%
vote("who_looks")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("who_looks")

# %% [markdown] slideshow={"slide_type": "notes"}
# Three attentions in this drawing. Half a minute: in which of them may a token look at a later one?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## One date through every shape
#
# | | shape |
# |---|---|
# | source | (1, 20) |
# | memory | (1, 20, 64) |
# | decoder to encoder, weights | (1, 4, 11, 20) |
# | logits | (1, 11, 74) |

# %% [markdown] slideshow={"slide_type": "notes"}
# Twenty characters stay twenty rows. Four heads have eleven by twenty weights. Each of the eleven positions ends with 74 logits: 71 characters, and start, end, padding. Ask for each number where it comes from.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Row zero

# %%
vote("row_zero")

# %%
timer(4)

# %% slideshow={"slide_type": "fragment"}
answer("row_zero")

# %% [markdown] slideshow={"slide_type": "notes"}
# Four minutes, with the table of shapes in sight on the board.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["2"]
# ## In training the right tokens go in

# %%
shown("06b", 'print("goes in ", spell(target[:, :11]))')

# %% [markdown] slideshow={"slide_type": "notes"}
# This is teacher forcing. In column 0 start goes in and the decoder must say 2. In column 1 this 2 goes in and it must say 0. Both lines are the same target, one shifted by a column. Remember that.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Does padding count?

# %%
vote("padded_loss")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("padded_loss")

# %% [markdown] slideshow={"slide_type": "notes"}
# Answers differ in length, so the target is filled up. What becomes of the loss if those positions count, too?

# %% [markdown] slideshow={"slide_type": "slide"} tags=["turn:next_character_loss"]
# ## Your turn: the loss of the next character

# %%
turn("next_character_loss")

# %%
timer(12)

# %% [markdown] slideshow={"slide_type": "notes"}
# Alone. Goes in: all but the last; must say: all but the first. Flatten batch and positions in the same way. The common slip forgets the shift, and the loss then looks wonderful.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["2"]
# ## How often does your loss call the model?

# %%
vote("passes")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("passes")

# %% [markdown] slideshow={"slide_type": "notes"}
# "It writes an answer, and is then corrected": no, in training it writes nothing. Every token that goes in is known beforehand.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["3"]
# ## Two machines, one mask apart
#
# | | the decoder's own attention |
# |---|---|
# | A | causal mask |
# | B | **no** mask |
#
# Same start, same batches, same steps.

# %% [markdown] slideshow={"slide_type": "notes"}
# Somebody forgets the mask. All else is equal, down to the first numbers.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Which has the lower loss?

# %%
vote("without_mask")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("without_mask")

# %% [markdown] slideshow={"slide_type": "notes"}
# Write down the loss, and how many unseen dates each will get right.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## B's loss drops to nearly nothing

# %%
shown("06b", "translator_figures.losses(losses)")

# %% [markdown] slideshow={"slide_type": "notes"}
# At first the two curves run together. Then B finds something. Which of the two would you ship? Let them raise hands.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## B gets none right
#
# | | loss | unseen dates right |
# |---|---|---|
# | A | higher | most |
# | B | near 0 | none |

# %% [markdown] slideshow={"slide_type": "notes"}
# "A low training loss means a good translator": B refutes it. What it writes is no date at all. The notebook prints some.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["4"]
# ## Disturb the future, look at the past
#
# Change **one** token that goes in.
#
# Do the logits **before** it move?

# %% [markdown] slideshow={"slide_type": "notes"}
# The test of part 03, from outside: no look at the code is needed. If an earlier logit moves, the model reads ahead.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["turn:reads_ahead"]
# ## Your turn: does it read ahead?

# %%
turn("reads_ahead")

# %%
timer(10)

# %% [markdown] slideshow={"slide_type": "notes"}
# A fresh copy for each position, then the sum of what moved before it. In A it is 0, to the last digit. In B it is not.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["4"]
# ## B copies what stands one column to the right

# %%
shown("06b", "changed = before.clone()")

# %% [markdown] slideshow={"slide_type": "notes"}
# Put a 7 where the last digit of the year goes in. A still says the right digit one column earlier. B says 7. So it copies. Then it does not need the source: with another date's source it is right all the same.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## The forgotten shift

# %%
vote("no_shift")

# %%
timer(4)

# %% slideshow={"slide_type": "fragment"}
answer("no_shift")

# %% [markdown] slideshow={"slide_type": "notes"}
# Another fault, four minutes: the same tokens go in and must be said. Whoever says that the loss stays high has forgotten that the answer stands in the input.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["In real work"]
# ## Three masks, not two
#
# | mask | hides |
# |---|---|
# | `tgt_mask` | later tokens |
# | `src_key_padding_mask` | padding, in the encoder |
# | `memory_key_padding_mask` | padding, **from the decoder** |

# %% [markdown] slideshow={"slide_type": "notes"}
# In nn.Transformer True hides. Without the third, a translation depends on how long the other texts of its batch are. No error comes.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["end"]
# ## If a training loss is too good, suspect a model that reads ahead
#
# Disturb the future, compare the past.
#
# Ticket: which test would have stopped B? At home: notebook **06b**, section 4, and 06c.

# %% [markdown] slideshow={"slide_type": "notes"}
# In goes the target without its last token; wanted is the target without its first; padding does not count.
