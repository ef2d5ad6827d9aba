# %% tags=["imports"] slideshow={"slide_type": "skip"}
from lesson_lib.cli.deck import *

# %% [markdown] slideshow={"slide_type": "slide"} tags=["title"]
# # How does attention become a few matrix products?
#
# Afterwards you can
#
# - write self-attention for a batch
# - read in trained matrices whom a token looks for
# - hide later tokens and padding, and test that they are hidden

# %% [markdown] slideshow={"slide_type": "notes"}
# Forty-five minutes. Three tasks are yours: the layer, the test, the two masks.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["Opening"]
# ## Eight guests, and a secret partner
#
# Each guest wears a card, drawn anew at every party. Each must name **the partner's** card. Nobody is told who is whose partner.

# %% [markdown] slideshow={"slide_type": "notes"}
# Many parties, each in another order. The partner of a guest is the same at every party; the cards are drawn anew. In training the model is told the right cards, and never the partners. Where will it write the secret down?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## A party, as the layer gets it

# %%
shown("03", "figures.tokens(x[0])")

# %% [markdown] slideshow={"slide_type": "notes"}
# Each guest is a row of thirteen numbers. One of the first eight is a 1: which guest. One of the last five is a 1: which card. Guest 5 stands first; its partner is guest 7, at position 1, with card 0. So guest 5 must say 0.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["1"]
# ## Five products, no loop
#
# $$Q = x W_q \qquad K = x W_k \qquad V = x W_v$$
#
# $$A = \operatorname{softmax}\!\left(\frac{Q K^\top}{\sqrt{d_k}}\right) \qquad O = A V$$

# %% [markdown] slideshow={"slide_type": "notes"}
# Sixty-four sequences at once. Three products make queries, keys and values. One compares all with all; then the root and the softmax. One mixes. At-sign and transpose work on the last two axes, so no sequence meets another.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Which shapes know how many tokens there are?
#
# | | shape | here |
# |---|---|---|
# | $x$ | $(b, n, d)$ | (64, 8, 13) |
# | $W_q$, $W_k$ | $(d, d_k)$ | (13, 10) |
# | $A$ | $(b, n, n)$ | (64, 8, 8) |
# | $V$, $O$ | $(b, n, d_v)$ | (64, 8, 5) |

# %% [markdown] slideshow={"slide_type": "notes"}
# Go down the right column. Only the matrices have no 64 in front and no 8: all sequences share them, and they do not know how many tokens there are. Ask: what becomes of them with twenty tokens? Nothing.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["turn:self_attention"]
# ## Your turn: five products

# %%
turn("self_attention")

# %%
timer(10)

# %% [markdown] slideshow={"slide_type": "notes"}
# Alone. Divide by the root of the width of the keys. Hand in before you are sure. The common slips: the softmax over the wrong axis, a transpose of all axes, the root of the wrong width.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["2"]
# ## Three tables are learned, and nothing else

# %%
code("03", "class SelfAttention(nn.Module):")

# %% [markdown] slideshow={"slide_type": "notes"}
# Look at the constructor: three tables of numbers. No number of tokens occurs. Forward is one line: three products, and attend does the rest. The five numbers of an output are logits; the largest is the answer.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## It has found out who is whose partner

# %%
shown("03", "figures.found_partners")

# %% [markdown] slideshow={"slide_type": "notes"}
# The first party, before training and after. Before, each guest listens to everybody. After, each row has one bright cell, where the right table has the partner. It is right at all unseen parties. How does a row find its column?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Take one score apart
#
# $$q_i \cdot k_j = x_i\, W_q W_k^\top\, x_j^\top = x_i\, M\, x_j^\top$$
#
# A token is two 1s: its guest and its card. Four entries of $M$ add up to the score.

# %% [markdown] slideshow={"slide_type": "notes"}
# The product of the two matrices is thirteen by thirteen. It falls into four blocks: guest with guest, guest with card, card with guest, card with card. Each of the four entries comes from another block.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## In which block must the secret stand?

# %%
vote("where_written")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("where_written")

# %% [markdown] slideshow={"slide_type": "notes"}
# Ask: what stays the same from party to party? Cards are drawn anew, and say nothing about partners.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## There is the secret

# %%
shown("03", "figures.learned_relation")

# %% [markdown] slideshow={"slide_type": "notes"}
# Only one block is bright, guest with guest. Take row 0 and find its brightest column: 3. Guest 0 looks for guest 3. Beside it stands the truth, which was never shown in training. Compare two more rows.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["2"]
# ## "Attention learns the weights": no, the matrices
#
# The weights are computed from them, anew for each input. So a change by hand must change the answers.

# %% [markdown] slideshow={"slide_type": "notes"}
# If that is so, we can exchange two rows of the first matrix, without training, and predict what happens.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Rows 0 and 1 of the first matrix are exchanged

# %%
vote("swapped_rows")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("swapped_rows")

# %% [markdown] slideshow={"slide_type": "notes"}
# Guest 0 looked for guest 3, guest 1 for guest 6. Let them say whose card guest 0 names now, then run it.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## The answers follow

# %%
shown("03", "swapped[[0, 1]] = layer.w_q")

# %% [markdown] slideshow={"slide_type": "notes"}
# Find guests 0 and 1 in the first line. Their answers have changed places of looking; all the others answer as before.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["3"]
# ## Hide the future
#
# | row | 0 | 1 | 2 | 3 |
# |---|---|---|---|---|
# | input | the | tea | is | still |
# | to predict | tea | is | still | hot |
#
# Row $i$ may look at columns 0 to $i$: a **causal** mask.

# %% [markdown] slideshow={"slide_type": "notes"}
# The answer of row 0 is the input of row 1. If row 0 could look there, it would only have to copy. So every language model hides what comes later. How?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Softmax over all, then zeros. Is the future hidden?

# %%
vote("zeros_after")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("zeros_after")

# %% [markdown] slideshow={"slide_type": "notes"}
# A first idea: compute the softmax as before, then set the forbidden weights to zero. I replace the last token by another one. Do the weights of the earlier rows change?

# %% [markdown] slideshow={"slide_type": "slide"} tags=["3"]
# ## A test that anybody can make
#
# Replace one token. See which outputs move. Do it for each token in turn.
#
# Future hidden: all is 0 above the diagonal.

# %% [markdown] slideshow={"slide_type": "notes"}
# A table: a row for each output, a column for each token that was replaced. It works for any function, yours or not.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["turn:influence"]
# ## Your turn: who moves whom?

# %%
turn("influence")

# %%
timer(7)

# %% [markdown] slideshow={"slide_type": "notes"}
# Entry i, j is the largest change of output i when token j is replaced. Copy x before you change it: the commonest slip is to change the input itself.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["3"]
# ## Zeros after the softmax leak

# %%
shown("03", "figures.influence(tables)")

# %% [markdown] slideshow={"slide_type": "notes"}
# Above the diagonal stands what the future does. On the right, minus infinity before the softmax: all is 0. On the left, zeros after it: token 7 moves output 6. The hidden score was in the row's sum, and the sum leaks.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## And if one divides again?

# %%
vote("divide_again")

# %%
timer(4)

# %% slideshow={"slide_type": "fragment"}
answer("divide_again")

# %% [markdown] slideshow={"slide_type": "notes"}
# Somebody repairs the zeros by a second division. Whoever says smaller forgets that division; whoever says more even forgets that one number divides the whole row. Do two numbers at the board.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["4"]
# ## Three sentences, padding in front
#
# | | | | | |
# |---|---|---|---|---|
# | the | tea | is | still | hot |
# | – | – | – | time | flies |
# | – | – | who | knew | that |

# %% [markdown] slideshow={"slide_type": "notes"}
# A model that goes on writing adds one word to each sentence, so the last words stand in one column and the padding in front. The causal mask is set.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Can the padding move the words?

# %%
vote("padding_in_front")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("padding_in_front")

# %% [markdown] slideshow={"slide_type": "notes"}
# Take the second sentence, three times padding in front. Half a minute.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Padding lies in the past

# %%
shown("03", 'figures.influence({"causal mask"')

# %% [markdown] slideshow={"slide_type": "notes"}
# The test again. The last two rows are the words. In the first three columns of these rows not all is 0: the padding moves both words. A causal mask hides only the future.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["turn:both_masks"]
# ## Your turn: both masks in one

# %%
turn("both_masks")

# %%
timer(5)

# %% [markdown] slideshow={"slide_type": "notes"}
# True where the key is a real word and does not come later. They have both halves; the question is the and-sign and which axis of length one. Who is ready runs the test with the new mask: the first three columns are 0.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["end"]
# ## Five products and a softmax; a mask says what may be seen
#
# Whom a token looks for stands in $W_q W_k^\top$. Hide **before** the softmax.
#
# Ticket: what would you test first in somebody else's layer? At home: notebook **03**, the rest.

# %% [markdown] slideshow={"slide_type": "notes"}
# Join masks with the and-sign; replace each token in turn, and see which outputs move. Collect the tickets.
