# %% tags=["imports"] slideshow={"slide_type": "skip"}
from lesson_lib.cli.deck import *

# %% [markdown] slideshow={"slide_type": "slide"} tags=["title"]
# # What stands around attention?
#
# Afterwards you can
#
# - write an encoder layer and a decoder layer
# - say what sum, norm and network are for
# - choose where the norm stands

# %% [markdown] slideshow={"slide_type": "notes"}
# Fifty minutes, more than half of them yours. You need multi-head attention from part 04. Nothing is trained today: random matrices already show what each part of a layer does. Write each guess down before we look.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["Opening"]
# ## Eight words go through attention three times
#
# | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 |
# |---|---|---|---|---|---|---|---|
# | my | friend | kept | the | sharp | **saw** | beside | them |
#
# Each word is a row of 64 random numbers. Does row 5 still know that it is **saw**?

# %% [markdown] slideshow={"slide_type": "notes"}
# Nothing is trained: the rows are random, and so are the matrices of three multi-head attentions, one after the other. After each, a norm brings every row back to the same length, 8. Ask: each output is a mixture of what?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Where do the eight rows point?

# %%
vote("three_attentions")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("three_attentions")

# %% [markdown] slideshow={"slide_type": "notes"}
# One minute alone, then all letters at once. If it is quiet: mix eight colours to eight new ones, each an average of all; then again. Letter c) would need two mixtures with little in common; ask where they come from.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## All rows are one, unless the input is added

# %%
shown("06a", "figures.same_way(cosines)", only=0)

# %% [markdown]
# Bright: two rows point the same way.

# %% [markdown] slideshow={"slide_type": "notes"}
# At the start, a word agrees with itself alone. In the middle, after three attentions, everything is bright: eight rows, one direction. On the right each output was added to what came in, and the words stay apart. Ask: what was lost in the middle?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## With attention alone, a token forgets its word

# %%
shown("06a", 'print("after so many attentions')

# %% [markdown]
# The share of rows whose own word a linear read-out still names

# %% [markdown] slideshow={"slide_type": "notes"}
# Here is our ruler for today. First line: one attention leaves «0.38», three leave «0.14». That is a guess among the eight words of the sentence, which all rows share. Second line, added to the input: «0.92» are left.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["1"]
# ## Add what came in: the residual connection
#
# $$x + \text{sublayer}(x)$$
#
# Attention brings news of **other** tokens. The sum keeps the token's **own**.

# %% [markdown] slideshow={"slide_type": "notes"}
# The whole idea is a plus sign. A sub-layer is an attention, or a network that we meet in a moment. "It is there because gradients vanish." No: in a stack with norms they do not; what vanishes is the difference between tokens.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Twelve matrices start at zero

# %%
vote("zero_start")

# %%
timer(4)

# %% slideshow={"slide_type": "fragment"}
answer("zero_start")

# %% [markdown] slideshow={"slide_type": "notes"}
# Vote, talk, vote. Letter a) sees a chain without sums: there one zero cuts all. Letter b) thinks that later zeros bar the way back. Ask: what is the slope of x plus nothing? One.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["2"]
# ## Are two bits different? No weighted sum tells
#
# | bits | sum | relu(sum − 1) | sum − 2 · relu(sum − 1) |
# |---|---|---|---|
# | 0, 0 | 0 | 0 | **0** |
# | 0, 1 | 1 | 0 | **1** |
# | 1, 0 | 1 | 0 | **1** |
# | 1, 1 | 2 | 1 | **0** |

# %% [markdown] slideshow={"slide_type": "notes"}
# Two heads bring one bit each. Somebody must compute with them. If 0, 1 and 1, 0 both give 1, a weighted sum gives 2 for 1, 1. Two hidden numbers and a cut at zero repair it: relu makes negative numbers zero.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Do now: at least one bit

# %% [markdown]
# Notebook **06a**, section 2: change **one** number of `w_2`, and run the cell again.
#
# It should print 1 where **at least one** of the bits is 1.

# %%
timer(2)

# %% [markdown] slideshow={"slide_type": "notes"}
# In pairs. The minus two becomes minus one: then 1, 1 gives 2 minus 1. Ask a pair which number it was, and why. Who is ready makes the network say 1 where both bits are 1; that takes both numbers of w_2.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Then each token computes by itself
#
# $$\text{FFN}(x) = \text{relu}(x W_1 + b_1)\, W_2 + b_2$$
#
# | | numbers in a row |
# |---|---|
# | what comes in | 64 |
# | hidden, after $W_1$ | 256, four times as many |
# | what goes out, after $W_2$ | 64 |

# %% [markdown] slideshow={"slide_type": "notes"}
# The feed-forward network: widen, cut off what is negative, narrow again. The same matrices for all tokens, and no token sees another. Ask: which share of an encoder layer's learned numbers is attention's? A third. Two thirds are here.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["3"]
# ## Twelve random layers, and no norm
#
# $$x \leftarrow x + \text{attention}(x)$$
#
# $$x \leftarrow x + \text{FFN}(x)$$
#
# Each row begins 8 long. Nothing takes away; everything is added.

# %% [markdown] slideshow={"slide_type": "notes"}
# Attention, then the network, each with its sum: that is nearly a layer. "A norm is cosmetics." Let us see what happens without one. We stack twelve of these, with random matrices, and send our sentence through.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## How long are the rows in layer 11?

# %%
vote("twelve_layers")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("twelve_layers")

# %% [markdown] slideshow={"slide_type": "notes"}
# One minute. Letter b) adds the first row's length again and again; ask how long the output is that the second layer adds. Letter c) thinks that additions cancel.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Rows grow, and each query looks at one key

# %%
shown("06a", "layers = [(MultiHeadAttention(64, 4)")

# %% [markdown]
# Eight words: a weight of «0.13» is 1 in 8, no choice at all.

# %% [markdown] slideshow={"slide_type": "notes"}
# From 8 to «551». A longer row makes a longer output, which is added: compound interest. Scores are products of two rows, so they grow with the square, and softmax saturates: the largest weight is 1. With a norm the length stays 8.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## LayerNorm brings each row back
#
# $$\text{LayerNorm}(x) = g \odot \frac{x - \text{mean}}{\sqrt{\text{variance} + \varepsilon}} + b$$
#
# One token's own numbers; $g$ starts at 1, $b$ at 0.

# %% [markdown] slideshow={"slide_type": "notes"}
# Take one token. Subtract the mean of its numbers, divide by the root of their variance, the mean of the squared differences. Then each column has a learned factor and a learned shift. Epsilon is tiny. Sixty-four numbers of variance 1: the row is 8 long.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## One token by hand

# %%
vote("standard_token")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("standard_token")

# %% [markdown] slideshow={"slide_type": "notes"}
# On paper, with g = 1 and b = 0; two numbers behind the point are enough. Whoever has minus three forgot to divide; whoever has minus 0.6 divided by the variance. Then ask: and the token 101, 103, 105, 107? The same.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## An encoder layer: two sums, two norms
#
# ```text
# x --+-------------------(+)-- norm --> y
#     |                    |
#     +-- attention -------+
#
# y --+-------------------(+)-- norm -->
#     |                    |
#     +-- feed-forward ----+
# ```
#
# The order of 2017: the norm comes **after** the sum.

# %% [markdown] slideshow={"slide_type": "notes"}
# Draw it on the board, and leave it there. The straight line is the token's own row; each sub-layer branches off and comes back at the plus. Twelve of these are BERT. Ask: in self-attention, who is query, key and value? All three are x.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["turn:encoder_layer"]
# ## Your turn: the drawing as code

# %%
turn("encoder_layer")

# %% [markdown]
# What does the feed-forward network read: the first $x$, or what the first norm has left?

# %%
timer(6)

# %% [markdown] slideshow={"slide_type": "notes"}
# Alone. Two lines, twice the same pattern. Slips: a sum is missing; the norm stands inside the branch; the network reads the first x. Each gets its own answer. Who is ready writes `encoder_layer_2`: both sub-layers side by side.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["4"]
# ## Twelve of your layers: is the word left?

# %%
vote("twelve_of_yours")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("twelve_of_yours")

# %% [markdown] slideshow={"slide_type": "notes"}
# Through three attentions the sum kept the word. Now twelve layers: one minute. Then the answer. "The sum keeps it at any depth." No: about 20 of 100 are left. Letter c) forgets that all rows still tell which eight words the sentence has.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## After twelve, the word is lost again

# %%
shown("06a", 'print_kept("norm after the sum", yours("encoder_layer")) < 0.3')

# %% [markdown]
# All rows point the same way, as after three attentions without the sum.

# %% [markdown] slideshow={"slide_type": "notes"}
# The ruler again, on the layer that you wrote: «0.17» after twelve. And all rows point the same way: the smallest cosine is 1. Follow x on the board with a finger. How many norms does it meet in twelve layers? Twenty-four.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## On the road, or in the branch
#
# | | one sub-layer |
# |---|---|
# | **post-norm** | $x \leftarrow \text{norm}(x + \text{sublayer}(x))$ |
# | **pre-norm** | $x \leftarrow x + \text{sublayer}(\text{norm}(x))$ |
#
# Pre-norm has one more norm, after the last layer. How many norms does $x$ itself meet in twelve layers?

# %% [markdown] slideshow={"slide_type": "notes"}
# The road from sum to sum is called the residual stream. Post-norm: 24 norms stand on it. Pre-norm: none but the last; each norm stands in a branch, where a sub-layer reads. A third choice would be no norm at all. Which keeps the word?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Which of these keeps more of the word?

# %%
vote("which_keeps")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("which_keeps")

# %% [markdown] slideshow={"slide_type": "notes"}
# One minute. Whoever takes a) or c) may look back at the slide with the lengths: what happens to what is added, if nothing holds it? Whoever takes d): how many norms does the stream meet in pre-norm?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## In the branch, the norm lets the word stay

# %%
shown("06a", "def pre_norm_layer(x")

# %% [markdown]
# With the norm after the sum, ‹0.17› were left.

# %% [markdown] slideshow={"slide_type": "notes"}
# «0.79» after twelve, against ‹0.17› before. And the control: no norm at all leaves «0.08». So it is not the norm as such that forgets, and not its absence that helps. What counts is where it stands. But why?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Long outputs drown the word

# %%
shown("06a", 'print("length of an output / of its row')

# %% [markdown]
# The row has to carry its word past every output that is added.

# %% [markdown] slideshow={"slide_type": "notes"}
# Read layer 11. Where the word is lost, each output is as long as its row. In pre-norm it is «0.3» of it: the row has grown, and the output has not. Ask: how could we test that this is the cause?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Only the outputs get shorter, and post-norm remembers

# %%
shown("06a", "attention.w_output.weight.data /= 3")

# %% [markdown]
# Changed: the last matrix of each sub-layer, divided by 3. Before, ‹0.17› were left.

# %% [markdown] slideshow={"slide_type": "notes"}
# An intervention: the last matrix of each sub-layer, divided by three; nothing else changes. The layer you wrote keeps «0.94» after twelve. So post-norm forgets where outputs are about as long as rows. Most of today's models are pre-norm.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["5"]
# ## A decoder layer has three sub-layers
#
# ```text
# x --+------------------------(+)-- norm --> y
#     +-- causal attention -----+
# y --+------------------------(+)-- norm --> z
#     +-- cross-attention ------+   asks the memory
# z --+------------------------(+)-- norm -->
#     +-- feed-forward ---------+
# ```
#
# **Memory**: what leaves the encoder's last layer

# %% [markdown] slideshow={"slide_type": "notes"}
# A translator reads two texts: the one to be translated, and what it has written. The encoder has read the first, and leaves the memory. The decoder's own attention is causal; then each written token asks the memory. Here in the order of 2017.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## The encoder reads another text

# %%
vote("new_input")

# %%
timer(4)

# %% slideshow={"slide_type": "fragment"}
answer("new_input")

# %% [markdown] slideshow={"slide_type": "notes"}
# Vote, talk, vote. Letter a) lets the memory ask. Letter c) makes keys where queries are made. Letter d) thinks of self-attention. Point at the drawing: what has the first layer seen of the memory before it asks? Nothing.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["turn:decoder_layer"]
# ## Your turn: three sub-layers, in pre-norm

# %%
turn("decoder_layer")

# %% [markdown]
# Who asks, and who answers?

# %%
timer(8)

# %% [markdown] slideshow={"slide_type": "notes"}
# In pairs. Slips: the memory asks; the values come from x; only the query of the first attention is normed; the norm replaces x on its way. The check names each. Who is ready writes it in the order of 2017.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["end"]
# ## In one breath: attention brings news, the sum keeps who you are
#
# Before you go, on the ticket: where would you put the norm, and what would you look at to find out?
#
# At home: notebook **06a**, *In real work* and *To carry away*.

# %% [markdown] slideshow={"slide_type": "notes"}
# Saw is lost among eight after three attentions; the sum keeps it; after twelve layers it depends on the norm. A good ticket says: in the branch; compare the length of an output with its row. Next: these layers make a machine.
