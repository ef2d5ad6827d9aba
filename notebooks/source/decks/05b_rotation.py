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
# Forty-five minutes, more than half of them yours. You need the clocks of part 05a. There is one proof today, with two formulas from school; RoPE falls out of it in one line.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["Opening"]
# ## Two pairs, both five apart

# %%
shown("05b", "p = sinusoidal(500, 64")

# %% [markdown]
# A layer sees neither 3 nor 40. It sees their codes. What do both pairs share?

# %% [markdown] slideshow={"slide_type": "notes"}
# You see at once that both are five apart, because you see the numbers. A layer sees codes. Both pairs have the product «23.50», and the pair that is ten apart has «21.05». So something is shared. Collect guesses, and answer none.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["1"]
# ## Width 4: two clocks, four numbers
#
# $$p_i = \big(\sin i,\;\; \cos i,\;\; \sin 0.01\,i,\;\; \cos 0.01\,i\big)$$
#
# With each position the first clock turns by 1 radian, the second by 0.01.

# %% [markdown] slideshow={"slide_type": "notes"}
# Codes of width 4, so that we can read every number: sine and cosine of a fast clock, sine and cosine of a slow one. Ask: how many positions does the first clock need for a turn? A good six. And the second? A hundred times as many.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## One matrix for all steps of five?

# %%
vote("one_matrix")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("one_matrix")

# %% [markdown] slideshow={"slide_type": "notes"}
# One minute. We look for the matrix that fits best, on the first hundred positions, and try it on one that it never met. Letter b) thinks of a fit with an error. Letter c) thinks that the matrix learned the first hundred.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## One matrix does it everywhere

# %%
shown("05b", "five_on = torch.linalg.lstsq")

# %% [markdown]
# Two blocks, one for each clock. $\cos 5 = «0.2837»$ and $\sin 5 = «-0.9589»$; the second clock turns by $0.05$.

# %% [markdown] slideshow={"slide_type": "notes"}
# No error at position 400. Ask: by which angle does the first clock turn, from 3 to 8, and from 103 to 108? By 5, both times. And what do the zeros say? That clocks do not meet. Where have you seen such blocks?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Two formulas from school
#
# $$\sin(a + b) = \sin a \cos b + \cos a \sin b$$
#
# $$\cos(a + b) = -\sin a \sin b + \cos a \cos b$$
#
# One clock at position $i$, then $\delta$ later: $a = i\omega$, $b = \delta\omega$.

# %% [markdown] slideshow={"slide_type": "notes"}
# Why does one matrix do? Draw a circle on the board, a hand at a, and a second one further by b. On the right stand the old sine and the old cosine, each times something. Ask: what are they multiplied by? By numbers of b alone.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Where is *i*?
#
# $$\begin{bmatrix} \sin (a + b) \\ \cos (a + b) \end{bmatrix} = \begin{bmatrix} \cos b & \sin b \\ -\sin b & \cos b \end{bmatrix} \begin{bmatrix} \sin a \\ \cos a \end{bmatrix}$$
#
# $$p_{i+\delta} = R(\delta)\, p_i \quad \text{for every } i$$

# %% [markdown] slideshow={"slide_type": "notes"}
# The same two formulas, as a matrix. Where is i? Nowhere in the matrix: b is delta times omega. Put the blocks of all clocks on one diagonal, and call it R of delta. It turns, and it changes no length: a rotation.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["turn:one_clock"]
# ## Your turn: the matrix of one clock

# %%
turn("one_clock")

# %% [markdown]
# $$R \begin{bmatrix} \sin a \\ \cos a \end{bmatrix} = \begin{bmatrix} \sin (a + \text{angle}) \\ \cos (a + \text{angle}) \end{bmatrix}$$

# %%
timer(5)

# %% [markdown] slideshow={"slide_type": "notes"}
# Alone. If it is quiet: write the two formulas below each other. Which factors hold the angle alone? "The minus goes to the upper right, as in every rotation." Here the sine stands first, so it stands below.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["1"]
# ## Do now: what changes the matrix?

# %%
shown("05b", "RotationExplorer(d=4)")

# %% [markdown]
# Notebook **05b**, section 1. Move $i$, then $\delta$. Decide first.

# %%
timer(2)

# %% [markdown] slideshow={"slide_type": "notes"}
# In pairs. Moving the position changes the codes, and the matrix stays. Moving the offset changes the matrix. The last two columns stay equal all the time: the turned code is the code of the later position.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## The other sign: where does it lead?

# %%
vote("swapped_sign")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("swapped_sign")

# %% [markdown] slideshow={"slide_type": "notes"}
# One minute. Whoever takes a) puts minus b into the first formula of school. Whoever takes c) thinks that a wrong sign makes no rotation: it turns by the same angle, the other way round.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Back, and on: two rules
#
# $$R(\delta)^\top = R(-\delta)$$
#
# $$R(\delta)\,R(\varepsilon) = R(\delta + \varepsilon)$$
#
# The transpose goes back. Two steps are one.

# %% [markdown] slideshow={"slide_type": "notes"}
# The cosine keeps its sign, the sine changes it: so the transpose turns back. No error is raised when you mix them up. And a step of two and a step of three are one of five. Write both rules on the board: RoPE needs them.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Ann, Ben and Cy change the codes

# %%
vote("whose_law")

# %%
timer(4)

# %% slideshow={"slide_type": "fragment"}
answer("whose_law")

# %% [markdown] slideshow={"slide_type": "notes"}
# Vote, talk with a neighbour, vote again. Letter a) thinks that the frequencies must be those of the formula. Letter c) takes the look of the blocks for the law. Letter d) forgets that a sine needs its cosine. Ask for Ben's code of position 0.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["2"]
# ## Five ahead, five behind

# %%
vote("either_side")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("either_side")

# %% [markdown] slideshow={"slide_type": "notes"}
# One minute. Draw a hand at 50, one five ahead, one five behind. Letters a) and b): the two angles differ in sign alone. What does a cosine make of that?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## The product knows how far, not which way
#
# $$p_i \cdot p_j = \textstyle\sum_m \cos\big(\omega_m (i - j)\big)$$

# %%
shown("05a", "ClockExplorer(d=8)")

# %% [markdown] slideshow={"slide_type": "notes"}
# Sine times sine plus cosine times cosine: each clock gives the cosine of the angle between its hands; sum over all clocks. Position i alone does not occur. So here is what the two pairs shared: their distance. And a cosine does not know the sign.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## A layer puts a learned matrix in between
#
# $$\begin{aligned}(x_i + p_i)\, M\, (x_j + p_j)^\top =\;& x_i M x_j^\top + x_i M p_j^\top \\ +\;& p_i M x_j^\top + p_i M p_j^\top\end{aligned}$$
#
# $M = W_q W_k^\top$. The last part holds positions alone.

# %% [markdown] slideshow={"slide_type": "notes"}
# "So sinusoids cannot tell left from right." The plain product cannot. But a layer has M in between, and M is learned. Multiply out: four parts. Which of them knows no word? The last. What if training made M a rotation?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## R(3) in between: where is row *i* brightest?

# %%
vote("aimed")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("aimed")

# %% [markdown] slideshow={"slide_type": "notes"}
# One minute. Letter a) is the product with nothing in between. Letter c) has the right distance and the wrong side: a code is a row here, so R stands transposed, and transposed means back.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## A matrix in between can aim

# %%
shown("05b", 'tables = {"nothing"', only=0)

# %% [markdown]
# $$p_i\,R(3) = p_{i-3}$$

# %% [markdown] slideshow={"slide_type": "notes"}
# On the left, nothing in between: brightest on the diagonal. On the right R of three: from row 3 on, brightest three positions back. So a learned matrix can tell the sides apart, and can aim. This is how part 05a's network found three back.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## A random matrix loses what codes offer

# %%
shown("05b", 'figures.in_between({"random"', only=0)

# %% [markdown] slideshow={"slide_type": "notes"}
# Follow any diagonal: its colour changes. Now a sine of one clock meets a cosine of another, and such a product depends on both positions. So added codes offer distance, and nothing forces training to take it. Ask: could we force it? Where would R have to stand?

# %% [markdown] slideshow={"slide_type": "slide"} tags=["3"]
# ## RoPE: turn behind the learned matrices
#
# $$q = x_i\,W_q \quad\longrightarrow\quad q\,R(i)$$
#
# $$k = x_j\,W_k \quad\longrightarrow\quad k\,R(j)$$
#
# Nothing is added. Values are not turned.

# %% [markdown] slideshow={"slide_type": "notes"}
# Each pair of columns is turned like a clock. "Rotary positions are added to the tokens." No: rows are turned, and keep their lengths. Ask: why are values not turned? Positions decide where to look, not what is mixed.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Only *i* − *j* is left
#
# $$\big(q\,R(i)\big)\big(k\,R(j)\big)^\top = q\,R(i)\,R(j)^\top k^\top$$
#
# $$= q\,R(i)\,R(-j)\,k^\top = q\,R(i - j)\,k^\top$$

# %% [markdown] slideshow={"slide_type": "notes"}
# Go through it with the two rules on the board: transposed means back, two turns are one. A query at 7, a key at 3; both walk on by 100. What happens to their score? Nothing: 107 minus 103 is still 4.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["turn:turn_rows"]
# ## Your turn: rotary, for one clock

# %%
turn("turn_rows")

# %% [markdown]
# $$(a,\; b) \;\to\; (a \cos t - b \sin t,\;\; a \sin t + b \cos t)$$
#
# Row $i$ has $t = i \cdot$ `frequency`.

# %%
timer(7)

# %% [markdown] slideshow={"slide_type": "notes"}
# Alone: n rows of two numbers. One angle for each row, then two new columns from the old ones. The slip is to overwrite a before b is made. Row 0 is not turned at all; use that as a check. Ready early: second("turn_rows").

# %% [markdown] slideshow={"slide_type": "slide"} tags=["3"]
# ## Forty times the same word

# %%
vote("same_words")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("same_words")

# %% [markdown] slideshow={"slide_type": "notes"}
# All tokens have one query and one key, so words cannot make a difference. Letter b) is right before the turn. Letter c) forgets that a diagonal has one i minus j.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Stripes: RoPE knows distance, and which way

# %%
shown("05b", "figures.equal_words")

# %% [markdown] slideshow={"slide_type": "notes"}
# All that you see comes from positions. Left: follow a diagonal, and its colour stays; and above the main diagonal it is not as below. Right, codes were added: two of the four parts depend on one position alone, and the stripes break.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## A bug: the query is turned by R(0)

# %%
vote("query_at_zero")

# %%
timer(4)

# %% slideshow={"slide_type": "fragment"}
answer("query_at_zero")

# %% [markdown] slideshow={"slide_type": "notes"}
# Vote, talk, vote. Letter b) thinks that rotary gives the distance whoever is turned. Letter c) lets the one who asks bring the place in. Letter d) takes R(0) for an undoing. Let somebody write the line of the proof, with R(0).

# %% [markdown] slideshow={"slide_type": "slide"} tags=["In real work"]
# ## Bug one: columns in other pairs
#
# | who is paired | column 0 with | of width 8 |
# |---|---|---|
# | neighbours | 1 | (0, 1) (2, 3) (4, 5) (6, 7) |
# | halves | 4 | (0, 4) (1, 5) (2, 6) (3, 7) |

# %%
shown("05b", "cure = torch.tensor([0, 2, 4, 6")

# %% [markdown] slideshow={"slide_type": "notes"}
# Both ways are right, until weights trained with one are loaded into the other. No error is raised, and a typical score is off by «1.9», half a standard deviation and more. The cure: permute the columns of both matrices once, within each head.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Bug two: five positions in bfloat16

# %%
vote("rounded_positions")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("rounded_positions")

# %% [markdown] slideshow={"slide_type": "notes"}
# One minute. Letter a): how many bits does 1001 need? Ten. Letter c) rounds everything to one number. Three of the five words then stand at 1000, and no error is raised. So compute angles in float32.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["Five on once more"]
# ## With RoPE both pairs are equal again

# %%
shown("05b", "word, another = torch.randn(2, 1, 64)")

# %% [markdown]
# Read each column downwards.

# %% [markdown] slideshow={"slide_type": "notes"}
# Positions 3 and 8, 40 and 45, as at the beginning. The codes alone: equal. A random matrix in between: two different numbers. RoPE: equal, «6.88» both times, though its matrices are random, too.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["end"]
# ## In one breath: a step is a turn, and knows no start
#
# Before you go, on the ticket: added codes and RoPE. Which of them *offers* distance, which *forces* it, and why?
#
# At home: exercises **05**, `shift_matrix`. Then notebook **05b**, *In real work*.

# %% [markdown] slideshow={"slide_type": "notes"}
# Two formulas from school, one block for each clock. The product of two codes knows how far, not which way. RoPE turns behind the learned matrices, so nothing can undo it. A good ticket says where R stands. Next: which positions survive longer texts?
