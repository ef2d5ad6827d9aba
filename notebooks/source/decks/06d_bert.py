# %% tags=["imports"] slideshow={"slide_type": "skip"}
from lesson_lib.cli.deck import *

# %% [markdown] slideshow={"slide_type": "slide"} tags=["title"]
# # What does the encoder alone learn?
#
# Afterwards you can
#
# - turn any text into questions with known answers
# - train an encoder on them
# - test whether a head that looks right matters

# %% [markdown] slideshow={"slide_type": "notes"}
# Fifty minutes, more than half of them yours. A detective story: we train a small BERT, find a suspect among its heads, and test it. Then we train twice more, and have to think again.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["Opening"]
# ## *Is* or *are*? You knew at once
#
# | 0 | 1 | 2 | 3 | 4 | 5 | 6 |
# |---|---|---|---|---|---|---|
# | the | **keys** | to | the | **cabinet** | [mask] | old |
#
# The nearer noun did not fool you. Nobody told you which word is the subject.

# %% [markdown] slideshow={"slide_type": "notes"}
# Read it aloud, with a gap. Everybody says *are*. Ask: how did you know? The subject is *keys*, though *cabinet* stands nearer. Can a model learn this from text alone, if nobody tells it what a subject is?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## What do two neighbours tell?

# %%
vote("two_neighbours")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("two_neighbours")

# %% [markdown] slideshow={"slide_type": "notes"}
# One minute alone, then all letters at once. Letter b) needs the word *keys*, and the count sees only *cabinet* and *old*. Letter c) forgets that the word before a verb is often its subject.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["1"]
# ## Simple rules take the wrong noun
#
# | sentence | subject | first noun | nearest noun |
# |---|---|---|---|
# | behind the letter the keys need our gardens | keys | letter | keys |
# | near my horse our cabinets under our trees behind the woman have my children | cabinets | horse | woman |
# | **right in 4,000 sentences** | | **‹0.80›** | **‹0.64›** |

# %% [markdown] slideshow={"slide_type": "notes"}
# Our sentences are generated, so we know each subject. Read the second one: its verb is *have*. Which noun has the right number? Only *cabinets* and *trees*. The first noun is right in four of five: that is what a model has to beat.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## A misleading sentence: all other nouns say the opposite
#
# | | number |
# |---|---|
# | keys: the subject | plural |
# | cabinet: between subject and verb | singular |
# | the verb | plural |
#
# **Misleading**: nouns stand between subject and verb, and all but the subject have the wrong number.

# %% [markdown] slideshow={"slide_type": "notes"}
# Keep this word; the rest of the hour counts on misleading sentences alone. Whoever guesses gets half of them. Ask: what does the rule of the nearest noun get here? Nothing.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["2"]
# ## Hide words, and the text is its own answer key
#
# | of 100 chosen words | become |
# |---|---|
# | 80 | [mask] |
# | 10 | another word |
# | 10 | stay as they are |
#
# BERT chooses 15 % of all words, and is asked for all that it chose.

# %% [markdown] slideshow={"slide_type": "notes"}
# A masked language model says hidden words from both sides. No label is needed. Why do some words stay? The model cannot tell them from words that were not chosen; so it needs an opinion on every word, also where no [mask] stands.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Of 1,000 words: how many masks?

# %%
vote("how_many_masks")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("how_many_masks")

# %% [markdown] slideshow={"slide_type": "notes"}
# One minute. Letter a) forgets the two tenths. Letter b) thinks that only masks are asked for; a word that stays is asked for, too. Let somebody compute it aloud.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["turn:hide_words"]
# ## Your turn: what the model sees

# %%
turn("hide_words")

# %% [markdown]
# `fate` is a random number from 0 to 1 for each word.

# %%
timer(6)

# %% [markdown] slideshow={"slide_type": "notes"}
# Alone. Two decisions for each word: is it chosen, and what is its fate? One torch.where inside another. Slips: words change that were not chosen; 0 is padding, not the mask. Who is ready takes `hide_words_2`, and catches a wrong one.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["2"]
# ## The model is not told that *today* is wrong

# %%
shown("06d", 'hide = yours("hide_words")')

# %% [markdown]
# Which word stood at position 4? Is it asked for?

# %% [markdown] slideshow={"slide_type": "notes"}
# Your function at work; behind the bar, the chosen positions. In the first sentence *keys* became *today*, and the model is asked for it. In the second two words are masks. Ask: could a reader find position 4 without the bar? Perhaps: no noun stands behind *the*.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## The loss asks at the chosen positions alone
#
# | position | 2 | 3 | 4 | 5 | 6 |
# |---|---|---|---|---|---|
# | the model sees | letter | the | today | need | our |
# | true word | letter | the | keys | need | our |
# | asked? | no | no | **yes** | no | no |
#
# Visible words would only be copied.

# %% [markdown] slideshow={"slide_type": "notes"}
# The model gives logits at every position. Cross-entropy compares them with the true word, at the chosen positions alone. Ask: what would a loss over all positions teach? Mostly to copy. You write this loss at home; it is one line.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## BERT: the layers of 06a, and no causal mask
#
# | | decoder of 06b | BERT |
# |---|---|---|
# | hides later words | yes | **no** |
# | hides padding | yes | yes |
# | asked for | the next word | hidden words |
#
# Here: two pre-norm layers, two heads each, 74 words, 1,800 steps.

# %% [markdown] slideshow={"slide_type": "notes"}
# An encoder alone. Words on both sides may help, so only padding is hidden. Start the training now; it takes about twenty seconds. Ask: could a decoder be asked for hidden words? It would see one side only.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## It says four words, and all are plural

# %%
shown("06d", 'print("losses:"')

# %% [markdown]
# Ten losses on the way; then the likeliest words for **[mask]** in our sentence

# %% [markdown] slideshow={"slide_type": "notes"}
# From «3.44» to «1.83», and never to zero: nobody can know which noun was hidden. Whoever knows nothing pays 4.30. Now our sentence: four words, each about a quarter. All are plural, and *cabinet* did not pull it over.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Three misleading nouns do not fool it

# %%
shown("06d", "bert_figures.by_nouns_between()", only=0)

# %% [markdown] slideshow={"slide_type": "notes"}
# Misleading sentences alone, with one, two, three wrong nouns between subject and verb. BERT stays near the top. The count of neighbours lies far below a half: it believes the wrong nouns. So somewhere in the model the subject is found. Where?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Two words are hidden

# %%
vote("two_gaps")

# %%
timer(4)

# %% slideshow={"slide_type": "fragment"}
answer("two_gaps")

# %% [markdown] slideshow={"slide_type": "notes"}
# Vote, talk, vote. Letter a) lets the verb know what was drawn for the noun. Letter c) counts two singulars, and forgets two plurals. Let somebody draw the table of four cases on the board.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["3"]
# ## One head looks at *keys*

# %%
shown("06d", "bert_figures.gap(looked.words", only=0)

# %% [markdown] slideshow={"slide_type": "notes"}
# A row for each of the four heads; the masked position asks. Layers and heads count from 0. Let them read the rows: in layer 1, head 1 one word is bright. Does this head look for the subject, or did it only happen here?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## It looks at the subject in nearly every sentence

# %%
shown("06d", "on_subject = (weights.argmax(-1)", only=0)

# %% [markdown] slideshow={"slide_type": "notes"}
# One sentence is no evidence; these are 2,800. How often does a head's largest weight lie on the subject? One bar stands out. The line is the best that looking at a fixed distance can do. So this head follows the subject. Is that the cause of the answer?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Forbid one look, and count again
#
# | hidden from [mask] in one head | what for |
# |---|---|
# | nothing | how good is it? |
# | the subject: *keys* | **test** |
# | the next word: *to* | **control** |
#
# A control must be able to fail.

# %% [markdown] slideshow={"slide_type": "notes"}
# A witness looked at the right person; was that how the answer came about? So we forbid this one look, and change nothing else. Then the same with another word. That word could matter: in layer 0 it may have looked at the subject.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## How many verbs stay right?

# %%
vote("blind_one_head")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("blind_one_head")

# %% [markdown] slideshow={"slide_type": "notes"}
# One minute. Letter b) thinks of a coin. Ask: which nouns does the model still see in a misleading sentence, and does it guess, or trust them? Letter a) is possible, if another head carries the number, too.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["turn:hidden_from_gap"]
# ## Your turn: forbid one look

# %%
turn("hidden_from_gap")

# %% [markdown]
# Each sentence has a table of its own, with one False. Which row? Which column?

# %%
timer(7)

# %% [markdown] slideshow={"slide_type": "notes"}
# In pairs. Rows ask, columns are looked at. Compare arange with the positions of all sentences at once, and mind the axes. Slips: a whole row or column is hidden; rows and columns exchanged; each table hides the pairs of all sentences.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["3"]
# ## Without this look, it believes the wrong nouns

# %%
shown("06d", 'one_look = yours("hidden_from_gap")', only=0)

# %% [markdown] slideshow={"slide_type": "notes"}
# A mask hides one word from the gap. Without the next word: nothing is lost; that is the control. Without the subject: about one verb in ten stays right, far below the coin's line. So in this model the look is the cause.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Do now: a sentence that survives

# %% [markdown]
# Notebook **06d**, section 3: change `mine` and `place`.
#
# Find a sentence whose four words keep the right number **without** the look. (`agreement.VOCABULARY` has the words.)

# %%
timer(3)

# %% [markdown] slideshow={"slide_type": "notes"}
# In pairs. `place` is the position of the subject, counted from 0. Hint: which nouns would then have to help? Let two pairs read theirs aloud, and say what the model may have used in place of the subject.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Hidden in one head, or in both

# %%
vote("one_or_both")

# %%
timer(4)

# %% slideshow={"slide_type": "fragment"}
answer("one_or_both")

# %% [markdown] slideshow={"slide_type": "notes"}
# Another model, made-up numbers. The gap is the masked position. Vote, talk, vote. Letter a) takes two tests one by one for a test of both. Letter b) turns "only both together do harm" round. Right: what one look loses, the other brings.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["4"]
# ## The same training again, and no head follows the subject

# %%
shown("06d", "bert_figures.stored_looks(2)", only=0)

# %% [markdown] slideshow={"slide_type": "notes"}
# "Now we know how a BERT finds the subject." No: that was one model, run 0. This is run 2: other first weights, as good. Hide the subject from the masked position in all four heads, and ‹0.95› stay right. From where?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Our control becomes a suspect

# %%
vote("third_seed")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("third_seed")

# %% [markdown] slideshow={"slide_type": "notes"}
# One minute. In our sentence the next word is *to*. Letter a) is what run 0 showed; this is another model. Letter c) would mean that there is no other route; but the masked position may still look at the subject.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Each route can stand in for the other
#
# | hidden from [mask] | run 0 | run 2 |
# |---|---|---|
# | the subject | ‹0.10› | **‹0.95›** |
# | the next word | ‹1.00› | **‹0.69›** |
# | both | ‹0.09› | **‹0.07›** |
# | the next word but one | ‹1.00› | ‹1.00› |

# %% [markdown] slideshow={"slide_type": "notes"}
# Right verbs in misleading sentences. Run 0 has one route, run 2 has two. Hide one, and it looks nearly harmless; hide both, and the number is lost. The last line is a new control. Run 1 has two routes as well.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## How did *to* know? It had looked first
#
# ```text
# layer 0    keys <--- to        "to" looks at "keys"
# layer 1    to <--- [mask]      [mask] looks at "to"
# ```
#
# Hide the subject from both, [mask] and *to*: in run 2 ‹0.14› stay right.

# %% [markdown] slideshow={"slide_type": "notes"}
# Ask before you point: two layers; who can have read the subject in the first one? The next word did. So "the map of run 2 shows no look at the subject, so it does not matter" is wrong: with *to* hidden, that look alone keeps two thirds right.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["In real work"]
# ## Forget −100, and the loss looks three times as good

# %%
shown("06d", "with -100:")

# %% [markdown]
# Scripts give a target for every position: **−100** where no word was chosen. torch skips it.

# %% [markdown] slideshow={"slide_type": "notes"}
# The same model, the same batch. Ask: why is the second number so low? At most positions the answer stands in the input. So a loss that is too good may ask for what is visible. Look for the −100 first.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["end"]
# ## In one breath: a map is a lead, an intervention is a test
#
# Before you go, on the ticket: a head looks at the right word. What do you do before you believe it?
#
# At home: notebook **06d**, *The loss over chosen places*; then **06e**.

# %% [markdown] slideshow={"slide_type": "notes"}
# A good ticket names three things: forbid the look, hide another word as a control, train again. The best adds: hide each suspect alone, and then both. Collect the tickets at the door. Next: what does the decoder alone learn?
