# %% [markdown]
r"""
{title}

A sentence of 2.6 seconds is 261 vectors, an hour of speech 360,000, and attention compares each with every other. Must it?

**Afterwards you can** test how far a token must look; compute a window in blocks; tell "has not learned it" from "cannot hear it".

{about}

<details><summary>中文摘要 · Chinese</summary>
一小时语音有三十六万个向量,注意力要把每一个与其他所有的比较,必须如此吗?这一课先测量辨认一个音素需要看多远,再把窗口分块计算,并与整张表的数值核对。
最后问:有什么是窗口无论训练多久也学不到的?
</details>

{sources}
"""

# %%
import torch
import torch.nn.functional as F
from IPython.display import Audio
from jaxtyping import Bool, Float
from torch import Tensor
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.chapters.c09_truncated_attention import (
    figures,
    reach_figures,
    recording_explorer,
    speech,
)
from lesson_lib.chapters.c09_truncated_attention.experiments import phonemes
from lesson_lib.checks import check, hint, predict, solution, warm_up, yours
from lesson_lib.device import on, quick, to_device
from lesson_lib.masks import causal, padding, window
from lesson_lib.measure import operations, seconds_in_turn, sensitivity
from lesson_lib.training import stored
from lesson_lib.truncated import attend_window

_ = torch.manual_seed(0)
warm_up()

# %%
samples = speech.read_wav(speech.example())
Audio(samples.numpy(), rate=speech.RATE)

# %%
spoken = speech.load("test")[0]  # the same sentence, as frames
print(spoken.text)
figures.utterance(spoken.frames, spoken.labels, speech.LABELS)

# %% [markdown]
r"""
Each column is a **frame**: how loud 40 bands of pitch are in 25 ms of sound; the next begins 10 ms later. So the sentence is a table (261, 40), each row a token. Above stand the **phonemes**, the sounds; half of them last 7 frames or less. The task: name each frame's phoneme, one of 57, or silence.

No person spoke: a synthesiser, espeak-ng, said 297 sentences, each in one of fourteen voices, and knows when it said what. Twelve voices train, with 216 sentences; the **validation voice** is for choices, the **test voice** for measuring.

## 1 · How far must a frame look?

A **window** of radius $r$: each frame looks at the $r$ frames before it, at itself, and at the $r$ behind. As a mask it is a band:
"""

# %%
everything = torch.ones(24, 24, dtype=torch.bool)
figures.band({"the whole sentence": everything, "radius 3": window(24, 3)})

# %% [markdown]
r"""
The network: two layers of 06a, with four heads and rotary positions, between two linear layers.
"""

# %%
model = to_device(phonemes.PhonemeRecogniser(len(speech.LABELS), radius=5))
x = model.listen(to_device(spoken.frames)[None])  # linear: (1, 261, 48)
x = model.encoder(x).output  # each layer looks 5 frames around
logits = model.name(x)  # linear: (1, 261, 58)
assert_close(logits, model(to_device(spoken.frames)[None]))
print(tuple(logits.shape))

# %%
predict("who_names_most")

# %% tags=["nbval-ignore-output"]
mine = 5  # yours to change: 2, 15 or 50
models = {mine: phonemes.train(mine, steps=220)[0]}
with stored():  # reads what this training left before
    models[None], _ = phonemes.train(None, steps=220)
for radius, model in models.items():
    right = phonemes.accuracy(model, "test").frames
    print(f"radius {radius}: {right:.2f} of the test voice's frames")

# %% tags=["trained"]
near = phonemes.accuracy(models[mine], "test").frames
whole = phonemes.accuracy(models[None], "test").frames


def names_of(model):
    with torch.no_grad():
        return model(to_device(spoken.frames)[None])[0].argmax(-1).cpu()


guesses = {"whole": names_of(models[None]), "window": names_of(models[mine])}
figures.spoken(spoken.frames, spoken.labels, guesses, speech.LABELS)

# %% tags=["proof"]
assert quick() or mine != 5 or near > whole + 0.03

# %% [markdown]
r"""
Radius 5 wins, and less is orange. Yet the other could learn scores that fall with the distance, and then it would be nearly a window.

Do not believe 220 steps of one seed. Next: 1,800 steps, three seeds, each radius at its best learning rate. And a rival: in both layers a **convolution** instead of attention, which sums the same frames with weights that are the same everywhere.
"""

# %%
reach_figures.by_radius()

# %% [markdown]
r"""
A frame alone: 56 of 100. Radius 5: 73, 15: 75, 50: 73. **"More context can only help."** The whole sentence has 68, its best seed below the worst of radius 5. A convolution of radius 15 does as well: what counts here is which frames are seen.

## 2 · Why is seeing more worse?

Too few steps? Compare them at the same loss on the training sentences, 0.3:
"""

# %%
reach_figures.same_loss()

# %% [markdown]
r"""
No: on the validation voice 0.81 for radius 15, 0.76 for the whole sentence. Equally good on old sentences, worse on a new voice: it **overfits**. Hide from each of its layers what is farther than 15:
"""

# %%
predict("far_keys_hidden")

# %% tags=["nbval-ignore-output"]
blinkered = phonemes.PhonemeRecogniser(len(speech.LABELS), radius=15)
blinkered.load_state_dict(models[None].state_dict())  # its own weights
hidden = phonemes.accuracy(to_device(blinkered), "test").frames
print(f"all keys {whole:.3f}, those within 15 {hidden:.3f}")

# %%
recording_explorer.RecordingExplorer(models[None], speech.LABELS)

# %% tags=["proof"]
assert quick() or hidden < whole - 0.05

# %% [markdown]
r"""
It needs them: what it learned rests on far frames. Move along the sentence; the bars are each layer's weights. After longer trainings one layer has 0.39 to 0.53 within 15 frames, untrained ‹0.12›.

One test voice is one voice. So leave out each of the fourteen in turn:
"""

# %%
reach_figures.voices()

# %% [markdown]
r"""
Voices differ more than radii, and m2, the test voice, is a hard one. Yet **for each of the fourteen the window is ahead**. (More speech may change this.)

## 3 · What does a mask save?

The table of weights, say with 8 heads and 4 bytes a number:
"""

# %%
for name, n in {"a minute": 6_000, "an hour": 360_000}.items():
    print(f"{name}: {8 * 4 * n**2 / 2**30:,.1f} GiB in one layer")

# %%
predict("mask_saves")

# %%
q, k, v = torch.randn(3, 1000, 64)
band = window(1000, radius=15)
masked = attend(q, k, v, mask=band)
all_pairs = operations(lambda: attend(q, k, v))
print(f"without a mask {all_pairs:,}")
in_band = operations(lambda: attend(q, k, v, mask=band))
print(f"with a mask    {in_band:,}")

# %% [markdown]
r"""
`operations` counts them: $1{,}000 \cdot 1{,}000 \cdot 64$ for the scores, as many for the mixture, either way. **"Our attention is local, so it is cheap."** Not by a mask. What saves is never to ask far keys.

## 4 · In blocks

Take the queries in blocks. A block needs the keys of one stretch:
"""

# %%
figures.blocks(n=36, radius=4, block=8)

# %% [markdown]
r"""
Radius 15: 1,000 queries make 25 blocks of 40, (25, 40, 64), with keys (25, 70, 64). (The picture cuts off the ends; zeros make all blocks alike.)
"""

# %% [markdown] tags=["exercise:keys_of_blocks"]
# Cut the keys. Frames 1, 2, 3, 4 in blocks of two, radius 1: rows 0 1 2 3 and 2 3 4 0. (`F.pad` adds rows of zeros.)

# %% [markdown] tags=["exercise:who_is_seen"]
# Of its block's 70 keys a query sees 31 at most, and no zeros: query 0 of the example sees the second and third of its four.

# %%
cut, seen = yours("keys_of_blocks"), yours("who_is_seen")


def in_blocks(query, key, value, radius, block):
    q = query.unflatten(0, (-1, block))  # (blocks, block, d)
    k, v = (cut(x, radius, block) for x in (key, value))
    mask = seen(len(query), radius, block)
    return attend(q, k, v, mask=mask).output.flatten(0, 1)


assert_close(in_blocks(q, k, v, 15, 40), masked.output)
fewer = operations(lambda: in_blocks(q, k, v, 15, 40))
print(f"in blocks {fewer:,}: {all_pairs / fewer:.1f} times fewer")

# %% [markdown]
r"""
The same numbers, for 70 scores in place of 1,000. Twice the frames are twice the blocks: the cost grows with $n$, not with $n^2$. The library's `attend_window` takes any number of frames:
"""

# %% tags=["nbval-ignore-output"]
long = torch.randn(1, 8, 4000, 64)
with on("cpu"), torch.no_grad():
    calls = {
        "all": lambda: attend(long, long, long, weights=False),  # output only
        "window": lambda: attend_window(long, long, long, 15),
    }
    taken = seconds_in_turn(calls, repeats=3)
print(f"4,000 frames: {taken['all'] / taken['window']:.0f} times as fast")

# %% [markdown]
r"""
## 5 · What no window can do

Another task: a capital letter, some small letters, a question mark. Which capital was it? There are eight.
"""

# %%
predict("beyond_reach")

# %%
reach_figures.recalled()

# %% [markdown]
r"""
One token too far, and it guesses. A layer hears through the one below: radius 8 carries a token 8 places on, two layers 16. Layers times radius is the **reach**. `sensitivity` gives the size of the derivative of an output with respect to each token:
"""

# %%
stack = phonemes.PhonemeRecogniser(5, radius=8, n_layers=2).double()
noise = torch.randn(41, 40, dtype=torch.double)  # 41 frames, 40 bands
heard = sensitivity(stack.cpu(), noise)[20]  # output 20, all frames
print("16 frames away: more than 0:", bool(heard[20 - 16] > 0))
print("17 frames away: exactly", heard[20 - 17].item())

# %% [markdown]
r"""
Beyond the reach no weights make the output depend on the letter, so training finds none. Within it, a network can learn, and need not: four layers of radius 4, trained at 16 without near letters first, guess with a derivative that is not 0 ([evidence](evidence/09_truncated_attention_evidence.ipynb)).

That two layers of 15 suffice is a fact about phonemes. **A window is a claim about the task.**

## In real work

Gemma 3 has five window layers of 1,024 tokens for each full one. After `torch.compile(flex_attention)` this skips blocks:

```python
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

def within(batch, head, query, key):
    return (query - key).abs() <= 15

q, k, v = torch.randn(3, 1, 8, 1000, 64)  # (b, h, n, d)
blocks = create_block_mask(within, None, None, 1000, 1000, device=q.device)
output = flex_attention(q, k, v, block_mask=blocks)
```

The bug that people meet: does a token count in its own window?
"""

# %%
n, size = 8, 4
i, j = torch.arange(n)[:, None], torch.arange(n)
theirs = (j <= i) & (i - j < size)  # itself and 3 before: most models' way
ours = window(n, radius=size) & causal(n)  # a radius of 4
counts = theirs[-1].sum().item(), ours[-1].sum().item()
print("keys of the last token:", *counts)

x = torch.randn(2, 1, n, 16)  # two texts, the second has 5 tokens
real = padding(torch.tensor([8, 5]), n)  # (2, 1, 8)
may = theirs & real[:, None]
by_torch = F.scaled_dot_product_attention(x, x, x, attn_mask=may)
by_blocks = attend_window(x, x, x, size - 1, causal=True, padding=real)  # 3
assert_close(by_torch, by_blocks)

# %% [markdown]
r"""
Mix them up: a model is a little worse, without an error. One frame more each side:
"""

# %% tags=["nbval-ignore-output"]
run = phonemes.PhonemeRecogniser(len(speech.LABELS), radius=mine + 1)
run.load_state_dict(models[mine].state_dict())
right = phonemes.accuracy(to_device(run), "test").frames
print(f"trained with {mine}: {near:.3f}, run with {mine + 1}: {right:.3f}")

# %% [markdown]
r"""

## 2.6 seconds once more

Of its 68,121 pairs 7,851 lie within 15 frames: with these alone more frames are right.

**To remember.** A window is a claim about the task: that what matters is near.

- Seeing more is more to learn: here the whole sentence is worse.
- A mask hides scores and saves none; blocks never compute them.
- Layers times radius is the reach. Beyond it the derivative is exactly 0.

**Sources.** Lee, *Machine Learning* 2021 (self-attention, part 1); Child et al. 2019 (arXiv:1904.10509); Beltagy, Peters & Cohan 2020 (arXiv:2004.05150). Costs, claims: [evidence](evidence/09_truncated_attention_evidence.ipynb).

**Next**: [10a · Graph](10a_graph.ipynb): what if we know who is connected?
"""
