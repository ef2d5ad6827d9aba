# %% tags=["imports"] slideshow={"slide_type": "skip"}
from lesson_lib.cli.deck import *

# %% [markdown] slideshow={"slide_type": "slide"} tags=["title"]
# # What stands around attention?
#
# Afterwards you can
#
# - write an encoder layer and a decoder layer
# - say what the sum, the norm and the feed-forward network are for
# - choose where the norm stands

# %% [markdown] slideshow={"slide_type": "notes"}
# Fifty minutes. One ruler through the whole part: how much does a row still know of its own word?

# %% [markdown] slideshow={"slide_type": "slide"} tags=["Opening"]
# ## Does *saw* still know that it is *saw*?
#
# *my friend kept the sharp **saw** beside them*
#
# Eight rows of random numbers. Three attentions, one after the other.

# %% [markdown] slideshow={"slide_type": "notes"}
# Nothing is trained. Each word has a row of 64 random numbers; three attentions have random matrices, and after each the rows are brought back to one length.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## After three attentions?

# %%
vote("three_attentions")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("three_attentions")

# %% [markdown] slideshow={"slide_type": "notes"}
# Half a minute: do the rows stay apart, or what becomes of them?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## All rows point the same way

# %%
shown("06a", "figures.same_way(cosines)")

# %% [markdown] slideshow={"slide_type": "notes"}
# A cosine of 1 means the same direction. On the left each word agrees with itself alone. In the middle, after three attentions, all agree with all: each output mixes the same eight values. On the right the input was added.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["1"]
# ## The sum keeps who you are
#
# $$x + \operatorname{sublayer}(x)$$
#
# | after three attentions | own word read |
# |---|---|
# | outputs alone | ‹0.14› |
# | outputs added to the input | ‹0.92› |

# %% [markdown] slideshow={"slide_type": "notes"}
# The ruler: a linear read-out that tries to tell each row's own word. Without the sum hardly more than guessing within the sentence is left. Attention brings news; the residual connection keeps the row.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## A layer that starts at zero

# %%
vote("zero_start")

# %%
timer(4)

# %% slideshow={"slide_type": "fragment"}
answer("zero_start")

# %% [markdown] slideshow={"slide_type": "notes"}
# Four minutes. If the last matrix of a sub-layer is zero, what does a layer do? Whoever says nothing passes has forgotten the sum.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["2"]
# ## Attention cannot say: the bits differ
#
# | bit | bit | differ |
# |---|---|---|
# | 0 | 0 | 0 |
# | 0 | 1 | 1 |
# | 1 | 0 | 1 |
# | 1 | 1 | 0 |

# %% [markdown] slideshow={"slide_type": "notes"}
# Two heads bring a bit each. No weighted sum of the bits gives the last column: let them try with two numbers. Each token must compute with what it has received.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## A network inside each token
#
# $$\operatorname{FFN}(x) = \operatorname{relu}(x W_1 + b_1)\, W_2 + b_2$$
#
# The same matrices for every token; four times as wide inside.

# %% [markdown] slideshow={"slide_type": "notes"}
# The second hidden number is the sum less one: after relu it is 1 where both bits are 1, and its weight takes the 2 back. Attention moves information between tokens, the network computes inside each.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["3"]
# ## "A norm is cosmetics": twelve layers without one

# %%
vote("twelve_layers")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("twelve_layers")

# %% [markdown] slideshow={"slide_type": "notes"}
# Both sub-layers, both sums, no norm. How long is a row that comes into the last layer? Eight at the start.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Growth feeds itself
#
# | | before layer 0 | before layer 11 |
# |---|---|---|
# | no norm | 8 | ‹551› |
# | a norm after each sum | 8 | 8 |

# %% [markdown] slideshow={"slide_type": "notes"}
# A longer row makes a longer output, which is added. Scores are products of two rows, so they grow with the square, and the softmax saturates.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## A token is standardised alone

# %%
vote("standard_token")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("standard_token")

# %% [markdown] slideshow={"slide_type": "notes"}
# LayerNorm takes the numbers of one token: it subtracts their mean and divides by their spread. Ask what it does not look at: the other tokens, the batch.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["turn:encoder_layer"]
# ## Your turn: an encoder layer

# %%
turn("encoder_layer")

# %%
timer(8)

# %% [markdown] slideshow={"slide_type": "notes"}
# The order of 2017: the norm comes after the sum. x asks x. The common slip norms the branch, or adds the wrong x in the second sum.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["4"]
# ## "So it keeps it at any depth": does yours?

# %%
vote("twelve_of_yours")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("twelve_of_yours")

# %% [markdown] slideshow={"slide_type": "notes"}
# The sum kept the word through three attentions. Their own layer, twelve times, random matrices: how much is left?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## The word is forgotten after all
#
# | | one sub-layer |
# |---|---|
# | **post-norm** | $x \leftarrow \operatorname{norm}(x + \operatorname{sublayer}(x))$ |
# | **pre-norm** | $x \leftarrow x + \operatorname{sublayer}(\operatorname{norm}(x))$ |

# %% [markdown] slideshow={"slide_type": "notes"}
# The road from sum to sum is the residual stream. In post-norm it meets a norm twice in each layer, 24 times in all. Where else could the norm stand? In the branch.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Which keeps the word?

# %%
vote("which_keeps")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("which_keeps")

# %% [markdown] slideshow={"slide_type": "notes"}
# Three candidates: after the sum, in the branch, none. Let them vote before the numbers.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## With the norm in the branch it stays
#
# | after twelve layers | own word read |
# |---|---|
# | norm after the sum | ‹0.17› |
# | norm in the branch | ‹0.79› |
# | no norm | ‹0.08› |

# %% [markdown] slideshow={"slide_type": "notes"}
# In post-norm an output ends as long as its row, so the row is half forgotten at each step. In pre-norm rows grow and outputs do not. Make the outputs shorter, and post-norm keeps the word, too: that was the cause.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["5"]
# ## A decoder layer asks twice
#
# 1. Its own tokens, the later ones hidden.
# 2. The **memory**: what the encoder has read.
# 3. The network.

# %% [markdown] slideshow={"slide_type": "notes"}
# A translator reads two texts. What leaves the encoder's last layer is called the memory. In the second attention queries come from the decoder's tokens, keys and values from the memory.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["turn:decoder_layer"]
# ## Your turn: a decoder layer

# %%
turn("decoder_layer")

# %%
timer(8)

# %% [markdown] slideshow={"slide_type": "notes"}
# In pre-norm this time. Who asks, who answers? The memory is normed already: norming it again is the common slip.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["5"]
# ## The source is replaced: what changes?

# %%
vote("new_input")

# %%
timer(4)

# %% slideshow={"slide_type": "fragment"}
answer("new_input")

# %% [markdown] slideshow={"slide_type": "notes"}
# Four minutes. Whoever says all three thinks of self-attention; whoever says queries lets the memory ask. Follow the arrows of the decoder layer at the board.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["end"]
# ## Attention brings the news; the sum keeps who you are
#
# A sum and a norm around both sub-layers.
#
# Ticket: where does the norm stand in a model that you use? At home: notebook **06a**, *In real work*.

# %% [markdown] slideshow={"slide_type": "notes"}
# With norm_first=True in torch hand in the norm after the last layer, else long rows go to the read-out. Collect the tickets.
