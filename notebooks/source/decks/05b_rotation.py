# %% tags=["imports"] slideshow={"slide_type": "skip"}
from lesson_lib.cli.deck import *

# %% [markdown] slideshow={"slide_type": "slide"} tags=["title"]
# # Can distance be seen in a code?
#
# Afterwards you can
#
# - prove that a step is a rotation
# - say what that gives a layer, and what it does not
# - write RoPE, the positions of most open models of today

# %% [markdown] slideshow={"slide_type": "notes"}
# Forty minutes; the blackboard is needed for the proof.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["Opening"]
# ## Five on from 3, five on from 40

# %%
shown("05b", "for i, j in ((3, 8), (40, 45), (3, 13)):")

# %% [markdown] slideshow={"slide_type": "notes"}
# A layer sees neither 3 nor 40: it sees codes. Both pairs that are five apart have the same dot product, and another distance has another one. So the two pairs share something. What is it?

# %% [markdown] slideshow={"slide_type": "slide"} tags=["1"]
# ## One matrix for every position?

# %%
vote("one_matrix")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("one_matrix")

# %% [markdown] slideshow={"slide_type": "notes"}
# We look for one matrix that takes each code five positions on, by least squares, from the first hundred codes.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Two blocks, and zeros elsewhere

# %%
shown("05b", "five_on = torch.linalg.lstsq")

# %% [markdown] slideshow={"slide_type": "notes"}
# One matrix does it everywhere, far behind the codes that it was fitted on. Look at the blocks: one for each clock. The first two numbers are the cosine and the sine of 5.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## A step is a rotation
#
# $$\begin{bmatrix} \sin (a + b) \\ \cos (a + b) \end{bmatrix} =
# \begin{bmatrix} \cos b & \sin b \\ -\sin b & \cos b \end{bmatrix}
# \begin{bmatrix} \sin a \\ \cos a \end{bmatrix}$$
#
# Where is the position?

# %% [markdown] slideshow={"slide_type": "notes"}
# Two formulas from school, with a the angle now and b the step. The matrix holds b alone: the position is not in it. All blocks on a diagonal make the matrix R of the step.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["turn:one_clock"]
# ## Your turn: the matrix of one clock

# %%
turn("one_clock")

# %%
timer(6)

# %% [markdown] slideshow={"slide_type": "notes"}
# Two by two, from one angle. The common slip puts the minus into the other corner, and then it turns back.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["1"]
# ## Do now: two sliders
#
# Notebook **05b**, section 1, the explorer: the position $i$ and the offset $\delta$. Which of them changes $R(\delta)$?
#
# Decide first. Then move both.

# %%
timer(3)

# %% [markdown] slideshow={"slide_type": "notes"}
# Only the offset does, and the turned code stays equal to the code at i plus the offset.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## The minus in the other corner

# %%
vote("swapped_sign")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("swapped_sign")

# %% [markdown] slideshow={"slide_type": "notes"}
# A sign goes wrong in everybody's code once. No error is raised. What does the matrix do then?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Whose codes lose the law?

# %%
vote("whose_law")

# %%
timer(4)

# %% slideshow={"slide_type": "fragment"}
answer("whose_law")

# %% [markdown] slideshow={"slide_type": "notes"}
# Four minutes. Whoever says Ann thinks that the law needs the frequencies of the formula; whoever says Cy, the blocks.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["2"]
# ## The dot product knows the distance
#
# $$p_i \cdot p_j = \textstyle\sum_m \cos\big(\omega_m (i - j)\big)$$

# %% [markdown] slideshow={"slide_type": "notes"}
# For each clock the dot product is the cosine of the difference. Position i alone does not occur. So that is what the two pairs share.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## On either side?

# %%
vote("either_side")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("either_side")

# %% [markdown] slideshow={"slide_type": "notes"}
# Three to the left, or three to the right: does this product know?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## "So sinusoids cannot tell left from right": a layer can
#
# $$(x_i + p_i)\, M\, (x_j + p_j)^\top$$
#
# One of its four parts is $p_i M p_j^\top$, with a learned $M$ in between.

# %% [markdown] slideshow={"slide_type": "notes"}
# The plain product cannot. But a layer does not compute the plain product. What if training made M a rotation by three?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Aimed three back

# %%
shown("05b", 'tables = {"nothing"')

# %% [markdown] slideshow={"slide_type": "notes"}
# With nothing in between, each row is brightest at its own position. With the rotation it is brightest three back: a layer can learn to look at a distance, and in a direction.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## A random matrix in between

# %%
shown("05b", "mixed = torch.randn(64, 64")

# %% [markdown] slideshow={"slide_type": "notes"}
# No diagonal has one colour: distance is lost. So added codes offer distance; training must take the offer.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["3"]
# ## RoPE forces it
#
# $$\big(q\,R(i)\big)\big(k\,R(j)\big)^\top = q\,R(i - j)\,k^\top$$
#
# After the matrices, so nothing learned can undo it.

# %% [markdown] slideshow={"slide_type": "notes"}
# No code is added. In each head query and key are turned by their positions, after the learned matrices. The two turns join into one, by the distance. That is rotary position embedding.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["turn:turn_rows"]
# ## Your turn: turn a pair of columns

# %%
turn("turn_rows")

# %%
timer(8)

# %% [markdown] slideshow={"slide_type": "notes"}
# Row i turns by i times the frequency. The common slip overwrites the first column before the second is computed.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["3"]
# ## Forty times the same word

# %%
vote("same_words")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("same_words")

# %% [markdown] slideshow={"slide_type": "notes"}
# Forty equal tokens, so nothing but position can tell. Which table has one colour on each diagonal?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Each diagonal has one colour

# %%
shown("05b", "figures.equal_words(")

# %% [markdown] slideshow={"slide_type": "notes"}
# On the left, RoPE: one colour on each diagonal, and above the main one another than below: it knows which way. On the right, codes added: no such law.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## A query that is turned by 0

# %%
vote("query_at_zero")

# %%
timer(4)

# %% slideshow={"slide_type": "fragment"}
answer("query_at_zero")

# %% [markdown] slideshow={"slide_type": "notes"}
# Four minutes, the bug of many a first cache. Whoever says that nothing is left should look at the keys.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["end"]
# ## A step is a rotation; RoPE puts it where nothing can undo it
#
# Added codes **offer** distance. RoPE **forces** it.
#
# Ticket: where is the position in the matrix of a step? At home: notebook **05b**, *In real work*.

# %% [markdown] slideshow={"slide_type": "notes"}
# Turn queries and keys, not values. Collect the tickets.
