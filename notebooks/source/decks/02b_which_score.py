# %% tags=["imports"] slideshow={"slide_type": "skip"}
from lesson_lib.cli.deck import *

# %% [markdown] slideshow={"slide_type": "slide"} tags=["title"]
# # Which score, and why the root?
#
# Afterwards you can
#
# - see in a layer's first scores why it does not learn
# - write the score that nearly all models use
# - start a layer so that it learns without the division

# %% [markdown] slideshow={"slide_type": "notes"}
# Forty minutes. Two models, one division between them. First a guess, then a look before the first step.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["Opening"]
# ## Symbol 53 is asked for: its answer is 2

# %%
shown("02b", "look_up.draw(", only=0)

# %% [markdown] slideshow={"slide_type": "notes"}
# Twenty pairs, a symbol and its answer. 53 is asked for: find it. In the next list 53 has another answer, so nothing can be learned by heart: the model must learn to look.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## One model divides its scores by 16
#
# | | score |
# |---|---|
# | plain | $q \cdot k$ |
# | scaled | $q \cdot k \,/\, 16$ |
#
# Width 256. The same first numbers, the same 200 steps.

# %% [markdown] slideshow={"slide_type": "notes"}
# A soft look-up, as in 02a. Each symbol has a query and a key of 256 numbers. The number to divide by is the only difference, down to the first random numbers.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Who learns it?

# %%
vote("who_learns")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("who_learns")

# %% [markdown] slideshow={"slide_type": "notes"}
# Two hundred steps for each. Write down who gets there, then hands up.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## One division decides

# %%
shown("02b", 'accuracy = {"plain": train_look_up(plain)')

# %% [markdown] slideshow={"slide_type": "notes"}
# The scaled model is at the top after eighty steps. The plain one climbs to about a half, and crawls. The grey line is guessing. What keeps it down?

# %% [markdown] slideshow={"slide_type": "slide"} tags=["1"]
# ## Before the first step one key has it all

# %%
shown("02b", "figures.list_weights(before, pairs, right)")

# %% [markdown] slideshow={"slide_type": "notes"}
# No training yet. Above, the plain model: one key has nearly all of the weight, and it is a wrong one. Below, everybody has a little, the right key too. The word for the upper one is saturated. Who chose this key? Chance.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## How does the spread of scores grow?

# %%
vote("growth")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("growth")

# %% [markdown] slideshow={"slide_type": "notes"}
# The numbers are drawn at random, mean zero, variance one. The width goes from 4 to 1,024. Whoever says 256 has the variance in mind.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## The spread is the root of the width

# %%
shown("02b", "figures.spreads(")

# %% [markdown] slideshow={"slide_type": "notes"}
# Read the printed numbers: two, sixteen, thirty-two. Each product has variance one, and variances of independent terms add up. So d products have the variance d. At width 256 a score strays by sixteen, and a lead of sixteen is a factor of nine million.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## A quarter of the numbers is left

# %%
vote("three_quarters_zero")

# %%
timer(4)

# %% slideshow={"slide_type": "fragment"}
answer("three_quarters_zero")

# %% [markdown] slideshow={"slide_type": "notes"}
# The question with four minutes. Whoever takes a) counts the width; whoever takes c) thinks that deviations add up.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["turn:scaled_scores"]
# ## Your turn: divide by the root of the width

# %%
turn("scaled_scores")

# %%
timer(5)

# %% [markdown] slideshow={"slide_type": "notes"}
# A table, queries down, keys across. Take the width from the tensor; do not write sixteen. With the division the spread is one at every width: let them print it.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["2"]
# ## Without weight, a key is not heard
#
# $$\frac{\partial w_j}{\partial s_j} = w_j\,(1 - w_j)$$
#
# | $w_j$ | slope |
# |---|---|
# | 0.5 | 0.25 |
# | 0.001 | 0.001 |
# | 0.999 | 0.001 |

# %% [markdown] slideshow={"slide_type": "notes"}
# The loss can move a score only through the weights. Draw w minus w squared at the board: it is 0 at both ends. So a key with a weight near zero cannot be pushed, even if it is the right one; and the wrong one that has it all is hardly pushed either.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## In how many lists is the right key heard?

# %%
vote("who_is_heard")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("who_is_heard")

# %% [markdown] slideshow={"slide_type": "notes"}
# Four thousand lists, the plain model, before training. For each we take the push of the loss on the right key, and ask whether it is stronger than a thousandth.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## In six lists of a hundred

# %%
shown("02b", "figures.pushes(push)")

# %% [markdown] slideshow={"slide_type": "notes"}
# Each step on this axis is a large factor. Above, the plain model: only a few of the lists lie right of the dotted line. Below, the scaled model: nearly all. Most right keys of the plain model are not heard.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Which scores move?

# %%
vote("which_scores_move")

# %%
timer(4)

# %% slideshow={"slide_type": "fragment"}
answer("which_scores_move")

# %% [markdown] slideshow={"slide_type": "notes"}
# Scores 20, 20 and 0. Let them argue in pairs: the third key is the right one, and its weight is a billionth. Whoever takes a) thinks that the largest error has the largest push.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## The lucky symbols

# %%
vote("by_chance")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("by_chance")

# %% [markdown] slideshow={"slide_type": "notes"}
# Each symbol meets its own key with the same score in every list. Some started high, by chance, some low. We take the twenty highest and the twenty lowest.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["3"]
# ## What mends the plain model?

# %%
vote("what_mends")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("what_mends")

# %% [markdown] slideshow={"slide_type": "notes"}
# "A larger learning rate would mend it." That is what most people try. Let them vote before they see the curves.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["turn:short_start"]
# ## Your turn: start it shorter

# %%
turn("short_start")

# %%
timer(6)

# %% [markdown] slideshow={"slide_type": "notes"}
# A quarter is right at width 256. Now for any width: both vectors become shorter, so the product is divided twice. Which number? The fourth root of the width.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["3"]
# ## The root is a start

# %%
shown("02b", 'accuracy["plain, short start"]')

# %% [markdown]
# `short`: the plain model with your start.

# %% [markdown] slideshow={"slide_type": "notes"}
# Your start makes the plain model climb at once, without any division. The scaled model that starts four times as long stays below. The larger rate does not get there. The root does not change what a model can compute; it changes where it starts.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## After training, both look somewhere firmly

# %%
shown("02b", '"plain, after training"')

# %% [markdown] slideshow={"slide_type": "notes"}
# The plain model still looks at the wrong symbol. The scaled one looks at 53, and it is saturated now, too. That is fine: it has learned where to look. Saturation does harm where chance has made it.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["In real work"]
# ## Who divides, you or torch?

# %%
vote("handed_over")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("handed_over")

# %% [markdown] slideshow={"slide_type": "notes"}
# torch's function divides by itself. Here is a model that was trained without the division. No error comes; about half of the answers are wrong. Compare before and after, always.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["end"]
# ## A score that is large by chance decides what is learned
#
# The spread of a dot product is $\sqrt d$. Divide once.
#
# Ticket: what would you print before the first step of a model that does not learn? At home: notebook **02b**.

# %% [markdown] slideshow={"slide_type": "notes"}
# A key without weight is not heard. The root is a start, and there are others. Collect the tickets.
