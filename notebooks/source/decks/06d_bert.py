# %% tags=["imports"] slideshow={"slide_type": "skip"}
from lesson_lib.cli.deck import *

# %% [markdown] slideshow={"slide_type": "slide"} tags=["title"]
# # What does the encoder alone learn?
#
# Afterwards you can
#
# - turn any text into questions
# - train an encoder on them
# - test whether a head that looks right matters

# %% [markdown] slideshow={"slide_type": "notes"}
# Fifty minutes. The end surprises: two more runs take another way. Keep section 4.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["Opening"]
# ## *The keys to the cabinet [mask] old.*
#
# Is *is* hidden, or *are*? The nearer *cabinet* did not fool you.

# %% [markdown] slideshow={"slide_type": "notes"}
# Can a model learn that if nobody tells it what a subject is? Let them say how they knew.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## A count of neighbours

# %%
vote("two_neighbours")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("two_neighbours")

# %% [markdown] slideshow={"slide_type": "notes"}
# Somebody counts which word stands between *cabinet* and *old* in a large text. What does the count say here?

# %% [markdown] slideshow={"slide_type": "slide"} tags=["1"]
# ## A text whose answers are known
#
# | rule | |
# |---|---|
# | the verb follows the nearest noun | often wrong |
# | the verb follows the first noun | wrong in one of five |
# | the verb follows its **subject** | right |

# %% [markdown] slideshow={"slide_type": "notes"}
# Our sentences are generated, so we know their grammar. Even the better rule is wrong in one of five. These are the baselines.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["2"]
# ## Hide words and ask
#
# 15 % are chosen. Of these 80 % become `[mask]`, 10 % another word, 10 % stay.

# %% [markdown] slideshow={"slide_type": "notes"}
# The text is its own answer key: no label is needed. This is BERT's recipe of 2018. The loss asks at all chosen positions, also where the word still stands.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## How many masks?

# %%
vote("how_many_masks")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("how_many_masks")

# %% [markdown] slideshow={"slide_type": "notes"}
# A text of so many words. Whoever takes fifteen per cent forgets that not all chosen ones become a mask.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["turn:hide_words"]
# ## Your turn: what the model sees

# %%
turn("hide_words")

# %%
timer(8)

# %% [markdown] slideshow={"slide_type": "notes"}
# Below 0.8 a mask, up to 0.9 another word, else it stays. Only where chosen. The common slip changes words that were not chosen.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["turn:hidden_loss"]
# ## Your turn: the loss at the chosen positions

# %%
turn("hidden_loss")

# %%
timer(5)

# %% [markdown] slideshow={"slide_type": "notes"}
# A word that was not chosen stands in the input: it would only be copied. So cut out the chosen positions, in logits and in words alike.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["2"]
# ## Two gaps

# %%
vote("two_gaps")

# %%
timer(4)

# %% slideshow={"slide_type": "fragment"}
answer("two_gaps")

# %% [markdown] slideshow={"slide_type": "notes"}
# Four minutes. The model fills each gap by itself. Whoever says nearly always thinks that one gap knows what was drawn for the other.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Three nouns in between do not fool it

# %%
shown("06d", "bert_figures.by_nouns_between()")

# %% [markdown] slideshow={"slide_type": "notes"}
# Even after three misleading nouns it is right nearly always; the count of neighbours is mostly wrong. How does it do it?

# %% [markdown] slideshow={"slide_type": "slide"} tags=["3"]
# ## Who found the subject?

# %%
shown("06d", "bert_figures.gap(looked.words")

# %% [markdown] slideshow={"slide_type": "notes"}
# From the masked position: in layer 1, head 1 nearly all the weight lies on *keys*. One sentence is no evidence.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## One head follows the subject

# %%
shown("06d", "bert_figures.looks(on_subject")

# %% [markdown] slideshow={"slide_type": "notes"}
# Of thousands of sentences: how often does the largest weight lie on the subject? One head does so nearly always. The line is a comparison: a head that always looks a fixed number of words back.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Blind one head to one word

# %%
vote("blind_one_head")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("blind_one_head")

# %% [markdown] slideshow={"slide_type": "notes"}
# Forbid this look, and nothing else. And the control: in the same head another word is hidden.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["turn:hidden_from_gap"]
# ## Your turn: forbid one look

# %%
turn("hidden_from_gap")

# %%
timer(8)

# %% [markdown] slideshow={"slide_type": "notes"}
# True means may look. One entry of each sentence's table becomes False. The common slip hides the subject from everybody.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["3"]
# ## Without the look the misleading nouns decide

# %%
shown("06d", "bert_figures.blinded(shares)")

# %% [markdown] slideshow={"slide_type": "notes"}
# Without the next word nothing is lost. Without the subject about one verb in ten stays right, fewer than a coin gets, because the model believes the wrong nouns. Here the look is the cause.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## One or both?

# %%
vote("one_or_both")

# %%
timer(4)

# %% slideshow={"slide_type": "fragment"}
answer("one_or_both")

# %% [markdown] slideshow={"slide_type": "notes"}
# Four minutes, with a made-up table. Whoever says neither has tested one by one only.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["4"]
# ## "Now we know how a BERT finds the subject": one run

# %%
shown("06d", "bert_figures.stored_looks(2)")

# %% [markdown] slideshow={"slide_type": "notes"}
# The same sentences and steps, other first weights and batches, as good. In run 2 no head follows the subject. So where does the number come from?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## What was our control?

# %%
vote("third_seed")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("third_seed")

# %% [markdown] slideshow={"slide_type": "notes"}
# In run 0 the next word was a control. Hide it in run 2.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## By way of the next word
#
# | | |
# |---|---|
# | layer 0 | *to* looks at *keys* |
# | layer 1 | the gap looks at *to* |
#
# Where one thing can stand in for another, hide **both**.

# %% [markdown] slideshow={"slide_type": "notes"}
# Run 2 has two routes. Without the subject nearly all stay right, without the next word two of three, without both hardly any. The next word looked at the subject in layer 0. A weight need not be the largest to carry a number.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["In real work"]
# ## A loss that looks too good
#
# Targets everywhere, −100 where no word was chosen: cross-entropy skips it.
#
# Forgotten? The loss is a third.

# %% [markdown] slideshow={"slide_type": "notes"}
# At most positions the answer stands in the input. The number looks better than the model is. Ask what one should suspect when a loss is too good: part 06b said it.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["end"]
# ## A map is a lead; an intervention is a test
#
# Hide each suspect alone, then both.
#
# Ticket: which control could not have failed? At home: notebook **06d**, *In real work*.

# %% [markdown] slideshow={"slide_type": "notes"}
# An encoder learns from hidden words, without a label. Another run may take another route. Collect the tickets.
