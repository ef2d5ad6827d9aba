# %% tags=["imports"] slideshow={"slide_type": "skip"}
from lesson_lib.cli.deck import *

# %% [markdown] slideshow={"slide_type": "slide"} tags=["title"]
# # Can softmax be computed without all scores?
#
# Afterwards you can
#
# - compute attention in pieces, and join them
# - say what a fast program saves, and what not
# - work out what a model keeps for its next token

# %% [markdown] slideshow={"slide_type": "notes"}
# Fifty minutes. Engineers wake up in section 5: leave time for it.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["Opening"]
# ## Three scores come one after the other
#
# | score | value |
# |---|---|
# | ln 1 | 10 |
# | ln 3 | 20 |
# | ln 4 | 40 |
#
# Each is thrown away once seen. Can the output still be exact?

# %% [markdown] slideshow={"slide_type": "notes"}
# The exponentials are 1, 3 and 4. After two of them the output is seventeen and a half. Let them check it on paper.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["1"]
# ## What must be kept?

# %%
vote("enough_to_keep")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("enough_to_keep")

# %% [markdown] slideshow={"slide_type": "notes"}
# The output of attention is a weighted mean. What must you keep of a mean in order to continue it?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Two sums are enough

# %%
code("11b", "total, mixed = 0.0, 0.0", lines=slice(2, 7))

# %%
shown("11b", "total, mixed = 0.0, 0.0")

# %% [markdown] slideshow={"slide_type": "notes"}
# The sum of the exponentials, and the exponentials times their values. One by one, or all at once: both give «28.75».

# %% [markdown] slideshow={"slide_type": "slide"} tags=["2"]
# ## Add 100 to all scores: nan
#
# Softmax should not change. But $e^{100}$ is more than float32 can hold.
#
# So subtract the largest score, which is known only **at the end**.

# %% [markdown] slideshow={"slide_type": "notes"}
# Softmax sees differences only, so adding 100 should do nothing. Yet the sums overflow. Every program subtracts the largest score first; we have not seen it yet. What can be done?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Subtract the largest so far
#
# | | largest | sum | weighted values |
# |---|---|---|---|
# | after ln 1, ln 3 | ln 3 | 4/3 | 70/3 |
# | shrunk by 3/4 | ln 4 | 1 | 17.5 |
# | plus ln 4 | ln 4 | 2 | 57.5 |

# %% [markdown] slideshow={"slide_type": "notes"}
# When a larger one comes, both sums shrink by e to old minus new. Then they are what they would have been from the start. Do the middle row with them: three quarters of four thirds. This is the online softmax.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Somebody forgets to shrink

# %%
vote("forgotten_shrinking")

# %%
timer(4)

# %% slideshow={"slide_type": "fragment"}
answer("forgotten_shrinking")

# %% [markdown] slideshow={"slide_type": "notes"}
# Four minutes. Let them compute with two keys. Whoever says that it cancels has forgotten which terms came before.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["3"]
# ## A tile at a time

# %%
shown("11b", "figures.tile_order(n=16")

# %% [markdown] slideshow={"slide_type": "notes"}
# One key at a time is slow. A tile is a block of the table, here four by four. Tile 7 is in hand, 1 to 6 are gone. On the right stands what is kept of each query: the largest, the sum, the weighted values.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["turn:one_tile"]
# ## Your turn: what happens when a tile comes

# %%
turn("one_tile")

# %%
timer(10)

# %% [markdown] slideshow={"slide_type": "notes"}
# The three rows of the table, for n queries and many keys. The common slip shrinks one sum and forgets the other. Whatever the tile, the outputs are those of attend.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["4"]
# ## Twice the tokens

# %%
vote("twice_as_long")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("twice_as_long")

# %% [markdown] slideshow={"slide_type": "notes"}
# Three ways: the whole table, tiles, torch's own program. All three do the same multiplications. What does twice the length do to the memory of the table, and of the tiles?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Memory grows with the length, not with its square

# %%
shown("11b", "for n in (1024, 2048, 4096):")

# %% [markdown] slideshow={"slide_type": "notes"}
# Read the last line: the table takes five hundred, the tiles four. The multiplications are equal, to the last one. So why should it be faster?

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## What is moved, and how often?

# %%
vote("bytes_moved")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("bytes_moved")

# %% [markdown] slideshow={"slide_type": "notes"}
# A processor computes with what lies in a small fast memory; all else waits in a large slow one. The table is written and read several times. Tiles read keys and values again for each row of tiles.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## A fifteenth

# %%
shown("11b", "one_table = size * heads * n * n")

# %% [markdown] slideshow={"slide_type": "notes"}
# That is what FlashAttention saves: not arithmetic, bytes. "It is an approximation": no, it is exact. The seconds on this machine stand in the notebook.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["5"]
# ## What is kept for the next token?
#
# A GPT asks all earlier tokens, one new token at a time.
#
# Their keys and values do not change: they are kept, in the **cache**.

# %% [markdown] slideshow={"slide_type": "notes"}
# So nothing is computed twice. What does that cost? Everybody computes it now: one conversation with a real model.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Do now: the size of a cache

# %%
vote("cache_size")

# %%
timer(4)

# %% slideshow={"slide_type": "fragment"}
answer("cache_size")

# %% [markdown] slideshow={"slide_type": "notes"}
# On paper or in the notebook. The common mistakes: the 2 for keys and values is forgotten, or the bytes. Sixteen GiB is as much as 8.6 billion parameters of two bytes.

# %% [markdown] slideshow={"slide_type": "subslide"}
# ## Must each head have its own keys?

# %%
shown("11b", "figures.shared_heads(8, [8, 2, 1])")

# %% [markdown] slideshow={"slide_type": "notes"}
# On the left each of eight heads has its own. In the middle four query heads share one: grouped-query attention. On the right all share. Only the heads of keys are kept; queries are not kept at all.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["turn:with_shared_keys"]
# ## Your turn: heads that share keys

# %%
turn("with_shared_keys")

# %%
timer(10)

# %% [markdown] slideshow={"slide_type": "notes"}
# Neighbours share: query heads 0 to 3 use key head 0. The common slip forgets to split queries and keys into different numbers of heads.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["5"]
# ## Shared keys, own scores

# %%
vote("shared_keys_own_scores")

# %%
timer(4)

# %% slideshow={"slide_type": "fragment"}
answer("shared_keys_own_scores")

# %% [markdown] slideshow={"slide_type": "notes"}
# Four minutes. Whoever says both thinks that heads which share keys share scores, too. Ask: who asks? Eight queries still meet every token.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["In real work"]
# ## Which heads share?

# %%
vote("wrong_neighbours")

# %%
timer(1)

# %% slideshow={"slide_type": "fragment"}
answer("wrong_neighbours")

# %% [markdown] slideshow={"slide_type": "notes"}
# Half a minute. Then: compare a loaded model with its original, number by number, before you use it.

# %% [markdown] slideshow={"slide_type": "slide"} tags=["end"]
# ## Exact attention need not keep its scores
#
# Keep the largest, the sum, the weighted values. The cache: 2 · layers · heads **of keys** · width · bytes · tokens.
#
# Ticket: what would you share first? At home: notebook **11b**, section 4.

# %% [markdown] slideshow={"slide_type": "notes"}
# Two parts merge in any order, which is what many machines do in 11c. Tiles save memory and bytes; they do not shrink the cache.
