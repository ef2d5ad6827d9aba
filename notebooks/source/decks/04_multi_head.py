# %% tags=["imports"] slideshow={"slide_type": "skip"}
from lesson_lib.cli.deck import *

# %% [markdown] slideshow={"slide_type": "slide"} tags=["title"]
# # Why several heads?
#
# Afterwards you can
#
# - prove how much one head can tell
# - write multi-head attention
# - find the head that looks at what *it* means, and test it

# %% [markdown] slideshow={"slide_type": "notes"}
# Fifty minutes. Two tasks, and a vote that wants the four sentences: let them write the sentences down.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["Opening"]
# ## What was too tired?
#
# *The animal did not cross the street because it was too **tired**.*
#
# *The animal did not cross the street because it was too **wide**.*

# %% [markdown] slideshow={"slide_type": "notes"}
# One word has changed, and *it* means the other noun. We ask two questions of each sentence: who acted, that is the first noun; and what is it, that is the noun which the last word fits.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Four sentences, four pairs of answers

# %%
shown("04", "first     second    last      who acted")

# %% [markdown] slideshow={"slide_type": "notes"}
# A street may cross an animal, too. Two orders, two last words: four sentences, and each has another pair of answers. Leave these four on the board; the votes come back to them.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["1"]
# ## One head gives one mixture
#
# $$z = p\, v_{\text{animal}} + (1-p)\, v_{\text{street}}$$
#
# Each sentence may have its own $p$. The two values stay.

# %% [markdown] slideshow={"slide_type": "notes"}
# A head is attention with one table of weights. The last word asks, and the two nouns are its only keys. One weight p for animal, the rest for street. The value of a noun is the same wherever it stands.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## One weight for two questions

# %%
vote("four_pairs")

# %%
timer(2)

# %% slideshow={"slide_type": "fragment"}
answer("four_pairs")

# %% [markdown] slideshow={"slide_type": "notes"}
# Each question has a linear read-out: it answers animal where a weighted sum is positive. Two minutes, with the four sentences on the board.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Two cuts make three pieces

# %%
shown("04", "figures.pieces(acted=0.3, it=0.6)")

# %% [markdown] slideshow={"slide_type": "notes"}
# Along the line p goes from 0 to 1. A linear read-out changes its sign once at most: a cut. Two cuts, three pieces, four pairs of answers: one pair has no piece. So one head gets at most three of the four right, whatever it has learned.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Do now: move the cuts
#
# Notebook **04**, section 1: change `acted` and `it`, and run the cell again.
#
# Can you get a fourth piece?

# %%
timer(3)

# %% [markdown] slideshow={"slide_type": "notes"}
# In pairs. Nobody gets it, and that is the proof with the hands. Ask what a wider value would help: nothing, p is one number.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## "A wider head could do it": no
#
# However many numbers a value has, $p$ is **one** number, and $z$ stays on one line.

# %% [markdown] slideshow={"slide_type": "notes"}
# Ask what a wider value would help. Nothing: the line is longer, and it is still a line.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## The proof has four conditions
#
# 1. Two keys: the nouns.
# 2. Linear read-outs.
# 3. They see nothing but $z$.
# 4. A value does not tell where its noun stands.

# %% [markdown] slideshow={"slide_type": "notes"}
# A third key would make a triangle of the line. A curved read-out may change its answer twice. Say each once, and leave them on the board: a later vote drops none of them.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["1"]
# ## Street at 0.2, animal at 0.5: and at 0.9?

# %%
vote("three_points")

# %%
timer(4)

# %% slideshow={"slide_type": "fragment"}
answer("three_points")

# %% [markdown] slideshow={"slide_type": "notes"}
# Four minutes. Whoever says street thinks that a read-out may change its mind twice; whoever says that it depends on training has not seen the straight line. Ask for the picture of the cut.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["2"]
# ## Two heads: a point in a square

# %%
shown("04", "figures.square(corners)")

# %% [markdown] slideshow={"slide_type": "notes"}
# Each head has a weight of its own, so two numbers: a point in a square. One read-out sees head 0, the other head 1. One cut is vertical, one horizontal: four pieces, one for each sentence.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Multi-head attention
#
# $$\text{head}_i = \operatorname{attend}(x W_q^i,\; x W_k^i,\; x W_v^i)$$
#
# $$\text{output} = [\text{head}_0, \text{head}_1, \dots]\; W_o$$
#
# The heads share the width: $d = d_{\text{model}} / h$.

# %% [markdown] slideshow={"slide_type": "notes"}
# Each head has three narrow matrices. The outputs are put side by side, and one more matrix mixes them. Two heads have as many learned numbers as one wide head.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## One step too few

# %%
vote("view_alone")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("view_alone")

# %% [markdown] slideshow={"slide_type": "notes"}
# In code all queries stand side by side in one matrix. Somebody splits them into heads with one view. Which numbers does head 0 hold then? No error comes.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## A view alone mixes tokens with heads

# %%
shown("04", "figures.as_heads(x, x.view(2, 3, 4))")

# %% [markdown] slideshow={"slide_type": "notes"}
# Each colour is a token. Head 0 should hold the left half of all three tokens. It holds both halves of token 0, and half of token 1. Which step is missing?

# %% [markdown] slideshow={"slide_type": "slide"} tags=["turn:heads_apart"]
# ## Your turn: heads apart

# %%
turn("heads_apart")

# %%
timer(12)

# %% [markdown] slideshow={"slide_type": "notes"}
# In pairs, one types and one reads. Split the width first; then swap two axes. Who is stuck draws the table of three tokens. People who never reshape need the twelve minutes.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["2"]
# ## Now each head has its columns of every token

# %%
shown("04", "heads = split(x, 2)")

# %% [markdown] slideshow={"slide_type": "notes"}
# On the way back the other order: swap first, then join. Somebody who joins first writes each head's tokens into one row.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Heads that share their questions

# %%
vote("shared_questions")

# %%
timer(4)

# %% slideshow={"slide_type": "fragment"}
answer("shared_questions")

# %% [markdown] slideshow={"slide_type": "notes"}
# The four sentences again. Both heads use the same query and key matrices, and only the values differ. Whoever says four counts heads; what counts are different weights.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["3"]
# ## Will two heads answer pairs that never met?

# %%
vote("unseen_pair")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("unseen_pair")

# %% [markdown] slideshow={"slide_type": "notes"}
# Training leaves out pairs of words: animal never stands with tired. Each word occurs in others. One head and two heads are trained alike, three seeds each.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Two heads do, one head cannot
#
# | both answers right, three seeds | held out |
# |---|---|
# | first noun twice | half |
# | one head | six of ten |
# | two heads | nearly all |

# %% [markdown] slideshow={"slide_type": "notes"}
# The proof allows one head three of four; training stays below, and we do not know why. Two heads are right nearly always, for pairs that never met.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["4"]
# ## Training found the corners

# %%
shown("04", "figures.square(dict(zip(corners")

# %% [markdown] slideshow={"slide_type": "notes"}
# The same square, with the weights of a trained model. Nothing in the loss asks for corners. But a weight that goes along with an answer need not be its cause. How would you test that?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Move a weight by hand

# %%
vote("by_hand")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("by_hand")

# %% [markdown] slideshow={"slide_type": "notes"}
# In one head we exchange the weights of the two nouns, and nothing else. Which answer changes? And in the other head? That second one is the control.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Each head causes one answer
#
# | weights exchanged in | *who acted* | *what is it* |
# |---|---|---|
# | the head for *it* | stays | changes |
# | the other head | changes | stays |

# %% [markdown] slideshow={"slide_type": "notes"}
# Nearly always and hardly ever, the notebook has the numbers. Without the second line one could not tell a cause from a disturbance.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["In real work"]
# ## In torch's layer, True hides
#
# `nn.MultiheadAttention(…, attn_mask=causal(7))`
#
# Each word sees only **later** words. Six outputs look healthy.

# %% [markdown] slideshow={"slide_type": "notes"}
# In torch's function True means: may look. In this layer it hides. With the wrong sign the last word sees nothing, so its output is nan; all others are wrong, and no error comes. Compare with a layer that you trust.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["end"]
# ## One head, one mixture; two heads, two
#
# Two cuts make three pieces on a line, four in a square.
#
# Ticket: what is the control of a test that you know? At home: notebook **04**, sections 3 and 4.

# %% [markdown] slideshow={"slide_type": "notes"}
# Split the width, then swap; back: swap, then join. To test a head, move its weights, with a control.
