# %% tags=["imports"] slideshow={"slide_type": "skip"}
from lesson_lib.cli.deck import *

# %% [markdown] slideshow={"slide_type": "slide"} tags=["title"]
# # What do today's models change?
#
# Afterwards you can
#
# - read the attention of a model's page, entry by entry
# - say what a text costs
# - write two changes of today's models in a few lines

# %% [markdown] slideshow={"slide_type": "notes"}
# Fifty minutes. The page of the start is read again at the end, and then one that nobody has seen.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["Opening"]
# ## Seven entries of gpt-oss 20B's page
#
# | entry | |
# |---|---|
# | `num_hidden_layers` | 24 |
# | `hidden_size` | 2880 |
# | `num_attention_heads` | 64 |
# | `num_key_value_heads` | 8 |
# | `head_dim` | 64 |
# | `sliding_window` | 128 |
# | `layer_types` | window, all, window, all, … |

# %% [markdown] slideshow={"slide_type": "notes"}
# Every published model comes with such a page. Ask: which of them can you read already? Layers, the width of a token, eight heads of queries on each head of keys. The `layer_types` alternate: window, all, window, all.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## "Heads split the width of a token": not here
#
# 64 heads of 64 are 4,096 columns. The token has 2,880.

# %% [markdown] slideshow={"slide_type": "notes"}
# The query matrix leads from 2,880 to 4,096, and the output matrix leads back. So the width of a head is a choice of its own.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["1"]
# ## A window of three

# %%
shown("13a", "print(causal(6, window=3).int())")

# %% [markdown] slideshow={"slide_type": "notes"}
# Rows are queries, 1 means may look. In such a layer a token hears the last tokens only.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## What does a window of 128 lose?

# %%
vote("window_of_128")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("window_of_128")

# %% [markdown] slideshow={"slide_type": "notes"}
# Half a minute. Then: what lies farther back is not lost, since every second layer looks at all.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## What a long text costs

# %%
vote("cache_with_windows")

# %%
timer(2)

# %% slideshow={"slide_type": "fragment"}
answer("cache_with_windows")

# %% [markdown] slideshow={"slide_type": "notes"}
# In a layer with a window old keys and values are never used again, so its cache may forget them. Let them compute: the formula of 11b, with twelve layers that keep all.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Six models, a bar for each

# %%
shown("13a", "CacheExplorer()")

# %% [markdown] slideshow={"slide_type": "notes"}
# Three GiB for gpt-oss. Ask which model keeps least for a token, and by which trick.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Do now: take the windows away
#
# Notebook **13a**, section 1: at 131,072 tokens take the windows away, then the shared keys.
#
# Whose cache grows most, each time?

# %%
timer(4)

# %% [markdown] slideshow={"slide_type": "notes"}
# Without windows Mistral's grows most, 32 times, for all its layers have one. Then gpt-oss's, eight times: 64 heads of keys in place of 8.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["2"]
# ## One narrow row for all heads
#
# $$q \cdot (W_k\, c) = (W_k^\top q) \cdot c$$
#
# DeepSeek V3 keeps 512 numbers of a token for 128 heads, and 64 for its position. In the notebook: heads of width 8, rows of 12.

# %% [markdown] slideshow={"slide_type": "notes"}
# A learned matrix makes of each token one narrow row, and the cache keeps that. The key matrix moves over to the query, so no key is made anew. All heads ask the same rows, which are keys and values at once.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Is it the same attention?

# %%
vote("wrong_root")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("wrong_root")

# %% [markdown] slideshow={"slide_type": "notes"}
# The products are equal, as the last slide says. Ask what else attend does between the product and the softmax, and let them look for the difference.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["3"]
# ## Queries and keys grow ten times longer

# %%
vote("ten_times_longer")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("ten_times_longer")

# %% [markdown] slideshow={"slide_type": "notes"}
# Training makes them longer. The root mends what the width does at the start; it cannot know what training does. What becomes of the scores?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## QK-norm takes the lengths away
#
# Each query and each key is divided by the root of its mean square, and each column multiplied by a learned gain.
#
# **Then** the rotary turn.

# %% [markdown] slideshow={"slide_type": "notes"}
# A normed row of 64 numbers has length 8, so with gains of one no score passes 8. The gains are learned, so a head can still become sharp.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["turn:normed"]
# ## Your turn: QK-norm

# %%
turn("normed")

# %%
timer(6)

# %% [markdown] slideshow={"slide_type": "notes"}
# Two lines. The common slips: the mean over the tokens instead of the columns, the sum in place of the mean.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["3"]
# ## Long or close?

# %%
vote("long_or_close")

# %%
timer(4)

# %% slideshow={"slide_type": "fragment"}
answer("long_or_close")

# %% [markdown] slideshow={"slide_type": "notes"}
# Two keys: one long, one that points the right way. With the norm, which of them wins? Four minutes.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["4"]
# ## What if no key fits?
#
# A row of weights sums to 1: softmax must give all its weight away.
#
# Trained models give it to the first token, a **sink**.

# %% [markdown] slideshow={"slide_type": "notes"}
# Add a window after training, so that late tokens no longer see the first one, and the model breaks: the weight that was parked there lands on real tokens. gpt-oss gives each head a learned score that belongs to no token.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Five scores and a sink

# %%
vote("five_and_a_sink")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("five_and_a_sink")

# %% [markdown] slideshow={"slide_type": "notes"}
# A sink takes its share of the sum, and mixes nothing. Half a minute, on paper.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["turn:with_sink"]
# ## Your turn: one more key

# %%
turn("with_sink")

# %%
timer(8)

# %% [markdown] slideshow={"slide_type": "notes"}
# One more key and one more value, of zeros, and one call of attend. The common slip is a key of zeros without the sink's score.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["4"]
# ## A sink is a gate
#
# $$\frac{Z}{Z + e^{\text{sink}}} = \sigma(\ln Z - \text{sink})$$

# %% [markdown] slideshow={"slide_type": "notes"}
# Z is the sum over the tokens. The share that they get is a number between 0 and 1: a gate in front of the output. Qwen's gate is made of the token by a matrix instead: it says how much it wants to hear, before it has met any key.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## A sink takes a quarter

# %%
vote("sink_takes_a_quarter")

# %%
timer(4)

# %% slideshow={"slide_type": "fragment"}
answer("sink_takes_a_quarter")

# %% [markdown] slideshow={"slide_type": "notes"}
# Four minutes. Whoever rescales the rest has forgotten what a gate is for.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["5"]
# ## Does it fade among many keys?

# %%
shown("13a", "for n in (100, 1_000, 10_000):")

# %% [markdown] slideshow={"slide_type": "notes"}
# A key that is ahead by six. Among a hundred keys it has most of the weight, among ten thousand hardly any. On the right all scores grow with the logarithm of the length, and it stays.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["A page never seen"]
# ## Read it alone: Olmo 3 7B
#
# | entry | |
# |---|---|
# | `num_hidden_layers` | 32 |
# | `hidden_size` | 4096 |
# | `num_attention_heads` | 32 |
# | `num_key_value_heads` | 32 |
# | `layer_types` | three windows, then one that sees all |
# | `sliding_window` | 4096 |

# %% [markdown] slideshow={"slide_type": "notes"}
# Nobody has seen this page. Which width has a head? Here the heads do split the token, 4,096 by 32. No keys are shared. Every fourth layer sees all.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## What does it keep?

# %%
vote("unknown_page")

# %%
timer(3)

# %% slideshow={"slide_type": "fragment"}
answer("unknown_page")

# %% [markdown] slideshow={"slide_type": "notes"}
# In pairs, with the formula of 11b. Then ask what the page does not say: where the norms stand, and whether there are sinks. For that one looks for `q_norm` and `sinks` among the names of the weights.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["end"]
# ## The function is that of the first day
#
# Windows, shared keys and latent rows save memory. QK-norm takes lengths out. A sink is a gate.
#
# Ticket: one sentence about gpt-oss's page. At home: notebook **13a**, *In real work*.

# %% [markdown] slideshow={"slide_type": "notes"}
# Compare a loaded model with its original by logits, on a text longer than its window. Collect the tickets.
