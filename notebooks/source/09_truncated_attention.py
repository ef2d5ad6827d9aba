# /// ideas
# [frames]
# says = "speech is a table of frames: 25 ms of sound, every 10 ms, 40 numbers; each frame is a token"
# motive = "an hour of speech 360,000"
# shown = "figures.utterance"
# action = "Listen"
#
# [window]
# says = "a window of radius r: each frame looks at r frames before it, at itself, and at r after it"
# motive = "a frame might only need its neighbours"
# shown = "figures.band"
# action = "phonemes.train(5"
#
# [less_is_more]
# says = "a window of 5 names more frames of a new voice than the whole sentence does"
# motive = "Which of the two names more"
# shown = "reach_figures.by_radius"
# action = 'predict("who_names_most")'
#
# [overfits]
# says = "compared at the same training loss the whole sentence is still worse: not too few steps, it overfits"
# motive = "has only learned less"
# shown = "reach_figures.same_loss"
# action = "to the same value"
#
# [reach]
# says = "layers times radius is the reach: what stands farther away changes nothing"
# motive = "What can a window not do"
# shown = "reach_figures.recalled"
# action = 'predict("beyond_reach")'
#
# [cannot]
# says = "no path, gradient 0 whatever the weights are: it cannot; a path and a guess: this training has not learned it"
# motive = "How can one see beforehand"
# shown = "carried.heard"
# action = 'predict("which_could_learn")'
#
# [table]
# says = "the table of weights grows with n squared: 1.1 GiB for a minute, 3,862 for an hour"
# motive = "The table of weights"
# shown = "GiB in one layer"
# action = 'predict("mask_saves")'
#
# [mask]
# says = "a mask hides scores and saves no product"
# motive = "only 31 of 1,000"
# shown = "with a mask"
# action = 'predict("mask_saves")'
#
# [blocks]
# says = "blocks of queries, each with one stretch of keys: n (block + 2 r) scores in place of n^2"
# motive = "How can we never compute them"
# shown = "figures.blocks"
# action = "keys_of_blocks"
#
# [edges]
# says = "inside its block a query still has its own window, and rows of zeros are no keys"
# motive = "sees too many keys"
# shown = "in_blocks"
# action = "who_is_seen"
#
# [counts]
# says = "does a window count the token itself? 4 keys or 5, without an error"
# motive = "Models count a window"
# shown = "keys of the last token"
# action = "Say first"
# ///

# %% [markdown]
r"""
{title}

A sentence of 2.6 seconds is 261 vectors, an hour of speech 360,000. Attention compares each with every other. Must it?

**Afterwards you can** test how far a token must look; tell "has not learned it" from "cannot"; compute a window in blocks.

{about}

<details><summary>中文摘要 · Chinese</summary>
一小时语音有三十六万个向量,注意力要把每一个与其他所有的比较,必须如此吗?这一课先测量辨认一个音素需要看多远,再问窗口永远做不到什么,最后把窗口分块计算,并与整张表的数值核对。
</details>

{sources}
"""

# %% tags=["imports"]
import torch
import torch.nn.functional as F
from IPython.display import Audio
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.chapters.c09_truncated_attention import figures, reach_figures, speech
from lesson_lib.chapters.c09_truncated_attention.experiments import beyond, phonemes
from lesson_lib.course import *
from lesson_lib.data import recall
from lesson_lib.device import quick, to_device
from lesson_lib.masks import causal, window
from lesson_lib.measure import operations
from lesson_lib.training import stored

_ = torch.manual_seed(0)
warm_up()

# %%
samples = speech.read_wav(speech.example())
Audio(samples.numpy(), rate=speech.RATE)

# %% [markdown]
r"""
Listen. As a picture, each column is a **frame**: how loud 40 bands of pitch are in 25 milliseconds of sound. The next frame begins 10 milliseconds later. So the sentence is a table (261, 40), and each row of it is a token.
"""

# %%
spoken = speech.load("test")[0]
print(spoken.text)
figures.utterance(spoken.frames, spoken.labels, speech.LABELS)

# %% [markdown]
r"""
The letters are **phonemes**, the sounds of speech. Half of them last 7 frames or less. The task is to name each frame's phoneme: one of 57, or silence.

A synthesiser said 297 sentences in fourteen voices, and knows when it said what. We train on 216 sentences in twelve voices. The **test voice** speaks 45 others, and no network has heard it. One more voice, the **validation voice**, speaks the remaining 36: choices are made on it.

## 1 · How far must a frame look?

Since a phoneme is short, a frame might only need its neighbours. A **window** of radius $r$ lets each frame look at the $r$ frames before it, at itself, and at the $r$ after it. As a mask it is a band:
"""

# %%
everything = torch.ones(24, 24, dtype=torch.bool)
figures.band({"the whole sentence": everything, "radius 3": window(24, 3)})

# %% [markdown]
r"""
The network is two layers of 06a with four heads and rotary positions, between two linear layers. One copy gets windows of radius 5 in both layers. The other copy sees the whole sentence. Which of the two names more frames of the test voice?
"""

# %%
predict("who_names_most")

# %% tags=["nbval-ignore-output"]
models = {"radius 5": phonemes.train(5, steps=220)[0]}
with stored():  # reads what this training left before
    models["whole"], _ = phonemes.train(None, steps=220)
right = {name: phonemes.accuracy(model, "test").frames for name, model in models.items()}
for name, share in right.items():
    print(f"{name}: {share:.2f} of the test voice's frames")

# %% tags=["trained"]
def names_of(model):
    with torch.no_grad():
        logits = model(to_device(spoken.frames)[None])  # (1, 261, 58)
    return logits[0].argmax(-1).cpu()


guesses = {name: names_of(models[name]) for name in ("whole", "radius 5")}
figures.spoken(spoken.frames, spoken.labels, guesses, speech.LABELS)

# %% tags=["proof"]
assert quick() or right["radius 5"] > right["whole"] + 0.03

# %% [markdown]
r"""
Orange frames are named wrongly, and the window has fewer of them. That is strange, since the other copy sees all that a window sees.

One seed and 220 steps prove little. The next picture has 1,800 steps, three seeds, and for each radius the learning rate of four that was best on the validation voice.
"""

# %%
reach_figures.by_radius()

# %% [markdown]
r"""
A network that sees one frame alone is right in 56 of 100. With radius 5 it is right in 73, with radius 15 in 75. **"More context can only help."** The whole sentence has 68, and its best seed lies below the worst of radius 5.

Why does seeing more hurt? Perhaps the network that sees more has only learned less in the same steps. Then it would be worse on old sentences, too. So we stop each network when its loss on the training sentences has fallen to the same value, 0.3, and ask it about the validation voice:
"""

# %%
reach_figures.same_loss()

# %% [markdown]
r"""
The difference stays. Equally good on old sentences, the network with radius 15 names 0.81 of this voice's frames, and the network that sees all 0.76. (The validation voice is easier than the test voice.) It has **overfitted**: it has learned more that holds only in training. (With more than these nine minutes of speech, the whole sentence may catch up.)

## 2 · What no window can do

What can a window not do? Take the task of 08a: a capital letter, some babble, and a question mark. Which of eight capitals was it? Networks of one, two or four layers have windows of radius 8. We train a new network for each distance of the letter. Training begins with near letters and moves out to this distance.
"""

# %%
predict("beyond_reach")

# %%
reach_figures.recalled()

# %% [markdown]
r"""
One layer is right up to 8, two layers up to 16, four up to 32. One token farther they guess, and are right in 1 of 8. In a layer a token looks 8 tokens far. What it finds there has itself looked 8 tokens far in the layer below. So layers times radius is the **reach**.

How can one see beforehand what a network cannot learn? In 08a we measured how strongly a letter is **heard**: the length of the right logit's gradient with respect to the letter's vector. `heard` gives this length for each token, and the letter is the first.
"""

# %%
from carry import recurrent as carried


def heard_before_training(radius, layers, distance):
    model = beyond.start(radius, layers)  # attention layers, untrained
    some = to_device(recall.draw(torch.Generator().manual_seed(0), 64, distance))
    return carried.heard(model, some.tokens, some.answer)[0].item()


for radius, layers, distance in ((8, 2, 16), (8, 2, 17), (4, 4, 16)):
    how = f"radius {radius}, {layers} layers, distance {distance}"
    print(f"{how}: {heard_before_training(radius, layers, distance):.0e}")

# %% [markdown]
r"""
At 17 it is exactly 0, for any weights: the letter enters no sum on the way to the output. So there is nothing to train. The last line is another network, four layers of radius 4, whose reach is 16, too. It hears the letter faintly. (Change a radius, a number of layers or a distance: say first where the 0 will stand.) Trained at distance 16 from the first step on, it is right in ‹0.13›, ‹0.14› and ‹0.13› with three seeds: it guesses.
"""

# %%
predict("which_could_learn")

# %% [markdown]
r"""
With near letters first, it is right in ‹1.00› with all three seeds. So there are two reasons for a guess. Where no path leads from the letter to the output, the gradient is 0 whatever the weights are: the network **cannot**. Where a path does, a guess says only that *this* training *has not learned it*. For phonemes a reach of 10 to 30 frames is enough, and a letter may stand at any distance. **A window is a claim about the task.**

## 3 · What does a mask save?

Back to the hour. The table of weights has a row and a column for each frame. With 8 heads and 4 bytes a number it takes:
"""

# %%
for name, frames in {"a minute": 6_000, "an hour": 360_000}.items():
    print(f"{name}: {8 * 4 * frames**2 / 2**30:,.1f} GiB in one layer")

# %% [markdown]
r"""
That is $60^2$ times as much. But with a radius of 15 a frame looks at only 31 of 1,000, or of 360,000.
"""

# %%
predict("mask_saves")

# %%
q, k, v = torch.randn(3, 1000, 64)
band = window(1000, radius=15)
masked = attend(q, k, v, mask=band)
all_pairs = operations(lambda: attend(q, k, v))
in_band = operations(lambda: attend(q, k, v, mask=band))
print(f"products without a mask {all_pairs:,}")
print(f"products with a mask    {in_band:,}")

# %% [markdown]
r"""
There are $1{,}000^2 \cdot 64$ products for the scores and as many for the mixture, either way. **"Our attention is local, so it is cheap."** Not by a mask: it hides scores that have been computed. How can we never compute them?

## 4 · In blocks

Take the queries in blocks. All queries of a block together need the keys of one stretch: the block's own, and $r$ more on either side.
"""

# %%
figures.blocks(n=32, radius=4, block=8)

# %% [markdown]
r"""
A box is what a block computes, and the dark band is what counts. Beyond the ends there are no keys, so we put rows of zeros there. All in all $n$ frames take $n \cdot (\text{block} + 2r)$ scores, where the table has $n^2$. With radius 15 we cut 1,000 queries into 25 blocks of 40, a table (25, 40, 64). Each block needs 15 + 40 + 15 = 70 keys, so the keys become a table (25, 70, 64). (Smaller blocks compute less in vain; larger ones make larger matrix products, 08b.)
"""

# %% [markdown] tags=["exercise:keys_of_blocks"]
# Cut the keys. Example: frames a, b, c, d in blocks of two, radius 1. The first block gets the keys 0, a, b, c and the second b, c, d, 0, where 0 is a row of zeros. (`F.pad(x, (0, 0, r, r))` puts $r$ rows of zeros before x and $r$ after it.)

# %% [markdown] tags=["exercise:who_is_seen"]
# Now a query sees too many keys: 70, among them rows of zeros. Return the mask inside the blocks. In the example the keys of the first block are 0, a, b, c. Its first query, a, may see a and b: False, True, True, False. Its second, b, may see all but the 0.

# %% [markdown]
r"""
Your two functions, and `attend` does the rest, as if the blocks were a batch:
"""

# %%
cut, seen = yours("keys_of_blocks"), yours("who_is_seen")


def in_blocks(query, key, value, radius, block):
    q = query.unflatten(0, (-1, block))  # (blocks, block, d)
    k, v = (cut(x, radius, block) for x in (key, value))
    mask = seen(len(query), radius, block)
    return attend(q, k, v, mask=mask).output.flatten(0, 1)


assert_close(in_blocks(q, k, v, 15, 40), masked.output)
fewer = operations(lambda: in_blocks(q, k, v, 15, 40))
print(f"products in blocks {fewer:,}: {all_pairs / fewer:.1f} times fewer")

# %% [markdown]
r"""
The outputs are the same, with 70 scores a frame in place of 1,000. Twice the frames need twice the blocks, so the cost grows with $n$ and not with $n^2$.

## In real work

Models count a window in two ways. Ours counts the tokens to one side. Most models look back only, and count the token itself, too. Say first: how many keys has the last of 8 tokens with a window of 4, in each?
"""

# %%
n, size = 8, 4
i, j = torch.arange(n)[:, None], torch.arange(n)
theirs = (j <= i) & (i - j < size)  # itself and the 3 before
wrong = window(n, radius=size) & causal(n)  # itself and the 4 before
mended = window(n, radius=size - 1) & causal(n)
for name, mask in {"theirs": theirs, "radius 4": wrong, "radius 3": mended}.items():
    print(f"{name}: keys of the last token {mask[-1].sum().item()}")

# %%
assert theirs.equal(mended) and not theirs.equal(wrong)

# %% [markdown]
r"""
Their window of 4 is our radius of 3. Mix them up, and nothing fails, but the network runs with a window that it was not trained with. So compare the masks, as the last cell does.

## To carry away

`notebooks/carry/long.py` computes windows at any length, for heads and batches. This is its middle. `stretches` cuts as your `keys_of_blocks` does, with so many keys `before` and `after` a block, and `band` is the window inside a block. `real` is False for padding, and beyond the ends. The file's own `attend` returns the output alone.
"""

# %%
from carry import long as carried_long

show_source(carried_long.in_blocks)

# %%
minute = torch.randn(6_000, 64)
by_window = carried_long.window_attention(minute, minute, minute, radius=15)
assert_close(carried_long.window_attention(q, k, v, radius=15), masked.output)

# %% [markdown]
r"""
`window_attention` makes the band and calls `in_blocks`. It takes as many rows as a minute has without their table, and for our 1,000 its outputs are those of the mask.

## 2.6 seconds once more

It need not. In blocks of 40 with radius 15 the hour has 70 scores a frame: with 8 heads 0.75 GiB in place of 3,862.

**To remember.** A window is a claim about the task: that what matters is near.

- More context can hurt: with nine minutes of speech the whole sentence overfits.
- Layers times radius is the reach; what lies beyond cannot be learned.
- A mask hides scores and saves none; blocks never compute them.

**Sources.** Lee, *Machine Learning* 2021 (self-attention); Child et al. 2019 (arXiv:1904.10509); Beltagy, Peters & Cohan 2020 (arXiv:2004.05150). Costs, voices, claims: [evidence](evidence/09_truncated_attention_evidence.ipynb).

**Next**: [10a · Graph](10a_graph.ipynb): what if we know who is connected?
"""
