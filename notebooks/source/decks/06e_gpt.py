# %% tags=["imports"] slideshow={"slide_type": "skip"}
from lesson_lib.cli.deck import *

# %% [markdown] slideshow={"slide_type": "slide"} tags=["title"]
# # What does the decoder alone learn?
#
# Afterwards you can
#
# - write the loss of a language model
# - write the line that makes a chat program more or less daring
# - measure how much of its prompt a model uses

# %% [markdown] slideshow={"slide_type": "notes"}
# Forty minutes. The manual that comes with Python is the text; the model trains in a minute.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["Opening"]
# ## *The* … and then?
#
# After *The* many characters may come.
#
# After *The statemen* hardly any but **t**.

# %% [markdown] slideshow={"slide_type": "notes"}
# Whoever puts a number on both can write: draw the next character by these numbers, append it, go on. That is a language model.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["1"]
# ## One stack that looks back

# %%
shown("06e", 'print("reads   ", line[:-1])')

# %% [markdown] slideshow={"slide_type": "notes"}
# Take the decoder of 06b, without a source: attention under a causal mask, and a feed-forward network. Read the two lines down: each character is to be said at the position before it.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## How many questions are in one text?

# %%
vote("questions_at_once")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("questions_at_once")

# %% [markdown] slideshow={"slide_type": "notes"}
# One pass through the stack. How many guesses does the loss judge?

# %% [markdown] slideshow={"slide_type": "slide"} tags=["turn:next_loss"]
# ## Your turn: the loss

# %%
turn("next_loss")

# %%
timer(8)

# %% [markdown] slideshow={"slide_type": "notes"}
# Logits at position i are to say token i plus 1. The common slips flatten logits and tokens differently, or average over the wrong axis. Hand in early.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["1"]
# ## The shift is forgotten

# %%
vote("forgotten_shift")

# %%
timer(4)

# %% slideshow={"slide_type": "fragment"}
answer("forgotten_shift")

# %% [markdown] slideshow={"slide_type": "notes"}
# Four minutes. What does the loss do, and what does the model write? Whoever says that it does not learn has not seen how easy copying is.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## What does a loss of 3 mean?

# %%
shown("06e", "gpt_figures.training(history.rows)")

# %% [markdown] slideshow={"slide_type": "notes"}
# The loss is the mean of minus ln p. Divided by ln 2 it is bits a character: one bit is a coin toss. A loss of 3 is 4.3 bits, a choice among twenty. In its last steps the model pays about two bits: as if it chose among fewer than four characters.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["2"]
# ## It writes: draw, append, go on
#
# $$p = \operatorname{softmax}\!\left(\frac{\text{logits}}{T}\right)$$

# %% [markdown] slideshow={"slide_type": "notes"}
# How daring should the draw be? Before the softmax the logits are divided by a number, the temperature. At 1 the probabilities are the model's own.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Which heat?

# %%
vote("which_heat")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("which_heat")

# %% [markdown] slideshow={"slide_type": "notes"}
# Think of differences of scores, part 02a: dividing by a small number stretches them.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["turn:tempered"]
# ## Your turn: temperature

# %%
turn("tempered")

# %%
timer(6)

# %% [markdown] slideshow={"slide_type": "notes"}
# At temperature 0 nobody can divide: the likeliest character gets 1. The common slip multiplies.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## After *The* and a blank, at three temperatures

# %%
shown("06e", "gpt_figures.temperatures(")

# %% [markdown] slideshow={"slide_type": "notes"}
# The likeliest characters after the same prompt. Cold, one of them takes nearly all; hot, they are nearly even. Look along one character: its place in the order is the same in all three.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["2"]
# ## Do now: make it bolder
#
# Notebook **06e**, section 2: the explorer. Take the temperature from 0.2 to 1.5.
#
# When does it break words?

# %%
timer(4)

# %% [markdown] slideshow={"slide_type": "notes"}
# In pairs. Cold, it repeats itself; hot, it breaks words. The order of the characters never changes, only how even their probabilities are.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Cut, and heat

# %%
vote("cut_and_heat")

# %%
timer(4)

# %% slideshow={"slide_type": "fragment"}
answer("cut_and_heat")

# %% [markdown] slideshow={"slide_type": "notes"}
# Four minutes. Ann heats and cuts, Ben cuts and heats. Whoever says Ann thinks that heat changes the order of the characters; whoever says Ben takes heat for an amount that is shared out.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["3"]
# ## Does it use all of its prompt?
#
# Hide all but the last $k$ characters, and look at what the next one costs.
#
# Put a **count** beside the network.

# %% [markdown] slideshow={"slide_type": "notes"}
# A count of what followed one, two, three characters in the manual needs no training. A network that loses against a count of seven characters has not earned its price.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## How far back does it look?

# %%
shown("06e", "gpt_figures.prompts(bits)")

# %% [markdown] slideshow={"slide_type": "notes"}
# One curve is the network, given more and more of the text; the other counts what followed the last characters. After a handful of characters the network's curve is nearly flat: what stands farther back hardly helps. And the count is better at first. Would you have put it there?

# %% [markdown] slideshow={"slide_type": "slide"} tags=["In real work"]
# ## Twice as long, four times as long

# %%
vote("longer")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("longer")

# %% [markdown] slideshow={"slide_type": "notes"}
# Rotary positions need no table, so the stack accepts any length and raises no error. Ours learned on 64 characters. Now it reads 256.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Beyond its length it breaks

# %%
shown("06e", "gpt_figures.beyond({")

# %% [markdown] slideshow={"slide_type": "notes"}
# Up to some hundred characters it is as good as before; then it pays more than after a single character. In the second curve a mask hides keys that are farther back than in training: the cure is a window.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["The first word once more"]
# ## Three forms of the Transformer
#
# | | its mask hides | good for |
# |---|---|---|
# | encoder alone | padding | finding, classifying |
# | decoder alone | later tokens | writing, chat, code |
# | both | padding; later tokens | translation |

# %% [markdown] slideshow={"slide_type": "notes"}
# "It needs an encoder to understand the prompt": no, the more of the prompt stands there, the less the model pays. The stack that writes has read it.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["end"]
# ## A causal stack that says the next token is a writer
#
# Shift by one. A temperature changes how even the probabilities are, never their order.
#
# Ticket: what would you count before you praise a model? At home: notebook **06e**, section 3.

# %% [markdown] slideshow={"slide_type": "notes"}
# Measure how much of its prompt a model uses, and at which length it breaks down. Collect the tickets.
