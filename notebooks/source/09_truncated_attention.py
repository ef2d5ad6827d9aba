# %% [markdown]
r"""
# 09 · What if the input is long?

Two and a half seconds of speech are 261 vectors; an hour is 360,000, and attention compares each with every other. Must it? Listen first.

**Afterwards you can** test how far a token must look; compute a window in blocks; tell "has not learned it" from "cannot hear it".

**Time** about 45 minutes. **You need** parts [03](03_matrix_form.ipynb), [05b](05b_rotation.ipynb) and [06a](06a_layer.ipynb). **Exercises**: [exercises/09_truncated_attention](exercises/09_truncated_attention.ipynb).

<details><summary>中文摘要</summary>
一小时语音有三十六万个向量,注意力要把每一个与其他所有的比较。这一课先测量辨认音素需要看多远:看整句反而不如只看一个窗口;再把窗口分块计算,数值不变,省下真正的计算。
最后是窗口做不到的事:层数乘半径之外,导数恰好是零,训练多久也学不到。
</details>
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
    speech,
)
from lesson_lib.chapters.c09_truncated_attention.experiments import phonemes
from lesson_lib.chapters.c09_truncated_attention.phonemes import (
    PhonemeRecogniser,
)
from lesson_lib.chapters.c09_truncated_attention.recording_explorer import (
    RecordingExplorer,
)
from lesson_lib.checks import check, hint, predict, solution, warm_up, yours
from lesson_lib.device import on, to_device
from lesson_lib.masks import causal, padding, window
from lesson_lib.measure import operations, seconds_in_turn, sensitivity
from lesson_lib.truncated import attend_window

_ = torch.manual_seed(0)
warm_up()

# %%
samples = speech.read_wav(speech.example())
Audio(samples.numpy(), rate=speech.RATE)

# %%
spoken = speech.load("test")[0]
print(spoken.text)
figures.utterance(spoken.frames, spoken.labels, speech.LABELS)

# %% [markdown]
r"""
Each column is a **frame**: how loud 40 bands of pitch are in 25 ms of sound; the next begins 10 ms later. So the sentence is a table (261, 40), each row a token. Above stand the **phonemes**, the sounds; half of them last 7 frames or less. The task: name each frame's phoneme, one of 57, or silence.

No person spoke: a synthesiser, espeak-ng, said 297 sentences in fourteen voices, and knows when it said what. Twelve voices train; the **validation voice** is for choices, the **test voice** for measuring. No sentence is in two of the three.

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
model = to_device(PhonemeRecogniser(len(speech.LABELS), radius=5))
x = model.listen(to_device(spoken.frames)[None])  # (1, 261, 40 -> 48)
x = model.encoder(x).output  # each layer looks 5 frames around
logits = model.name(x)  # (1, 261, 58)
assert_close(logits, model(to_device(spoken.frames)[None]))
print(tuple(logits.shape))

# %%
predict("who_names_most")

# %% tags=["nbval-ignore-output"]
models = {}
for radius in (5, None):  # None is the whole sentence
    models[radius], _ = phonemes.train(radius, steps=300)
    right = phonemes.accuracy(models[radius], "test").frames
    print(f"radius {radius}: {right:.2f} of the test voice's frames")

# %%
near, whole = (phonemes.accuracy(models[r], "test").frames for r in (5, None))
assert near > whole + 0.03


def guessed(model):
    with torch.no_grad():
        return model(to_device(spoken.frames)[None])[0].argmax(-1).cpu()


guesses = {"whole": guessed(models[None]), "radius 5": guessed(models[5])}
figures.spoken(spoken.frames, spoken.labels, guesses, speech.LABELS)

# %% [markdown]
r"""
**The whole sentence is worse than a window.** It could give every far frame a weight near 0, and then it *would* be the window.

Do not believe 300 steps of one seed. Next: 1,800 steps, three seeds, each radius at its best learning rate. And a rival: a **convolution** in the place of attention, which sums the same frames with learned weights, the same everywhere.
"""

# %%
reach_figures.by_radius()

# %% [markdown]
r"""
A frame alone: 56 of 100. Radius 5: 73. **Radius 15: 75.** The whole sentence: 68, each seed below each of radius 5. A convolution of radius 15 is as good as attention: what counts here is reach.

## 2 · Why is seeing more worse?

Too few steps? Then compare the networks when each has fallen to the same loss on the training sentences:
"""

# %%
reach_figures.same_loss()

# %% [markdown]
r"""
No: each seed of radius 15 is ahead of each seed of the whole sentence. What the latter learns of 216 sentences holds less well for others: it **overfits**.

Where does it look? Move along the sentence; the bars are the weights.
"""

# %%
RecordingExplorer(models[None], speech.LABELS)

# %%
reach_figures.near()

# %% [markdown]
r"""
Untrained, no more is near than with even weights. Trained, one of the two layers has 0.39 to 0.53 there: it has half found out. A window need not learn it.

One test voice is one voice. So leave out each of the fourteen in its turn:
"""

# %%
reach_figures.voices()

# %% [markdown]
r"""
Voices differ more than radii, and m2, the test voice, is a hard one. Yet **for each of the fourteen the window is ahead**. (With far more speech, or with people, this may differ.)

## 3 · A mask saves nothing

A table of weights has a number for each pair. With 8 heads and 4 bytes a number:
"""

# %%
for name, n in {"a minute": 6_000, "an hour": 360_000}.items():
    print(f"{name}: {8 * 4 * n**2 / 2**30:,.1f} GiB in one layer")

# %%
predict("mask_saves")

# %%
q, k, v = torch.randn(3, 1000, 64)
masked = attend(q, k, v, mask=window(1000, radius=15))
everything = operations(lambda: attend(q, k, v))
print(f"without a mask {everything:,}")
print(f"with a mask    {operations(lambda: attend(q, k, v, mask=window(1000, 15))):,}")

# %% [markdown]
r"""
`operations` counts them: $1{,}000 \cdot 1{,}000 \cdot 64$ for the scores, as many for the mixture, either way. **"Our attention is local, so it is cheap."** Not by a mask. What saves is never to ask far keys.

## 4 · In blocks

Frame by frame, that is a thousand small calls; machines want few large ones. So cut the queries into blocks. A block needs the keys of one stretch:
"""

# %%
figures.blocks(n=36, radius=4, block=8)

# %%
predict("keys_of_a_block")

# %% [markdown]
r"""
25 blocks of 40, then. The shapes: queries (25, 40, 64), keys (25, 70, 64).
"""

# %% [markdown] tags=["exercise:keys_in_reach"]
# Cut the keys: overlapping stretches, one for each block.

# %% [markdown] tags=["exercise:who_is_seen"]
# And the mask inside each block.

# %%
reach, seen = yours("keys_in_reach"), yours("who_is_seen")


def in_blocks(query, key, value, radius, block):
    q = query.unflatten(0, (-1, block))  # (blocks, block, d)
    k, v = (reach(x, radius, block) for x in (key, value))
    mask = seen(len(query), radius, block)
    return attend(q, k, v, mask=mask).output.flatten(0, 1)


assert_close(in_blocks(q, k, v, 15, 40), masked.output)
fewer = operations(lambda: in_blocks(q, k, v, 15, 40))
print(f"in blocks {fewer:,}: {everything / fewer:.1f} times fewer")

# %% [markdown]
r"""
The same numbers. Twice the frames are twice the blocks: the cost grows with $n$, not with $n^2$. The library's `attend_window` takes any number of frames:
"""

# %% tags=["nbval-ignore-output"]
long = torch.randn(1, 8, 4000, 64)
with on("cpu"), torch.no_grad():
    calls = {
        "all pairs": lambda: attend(long, long, long, weights=False),
        "window": lambda: attend_window(long, long, long, 15),
    }
    taken = seconds_in_turn(calls, repeats=3)
print(f"4,000 frames: {taken['all pairs'] / taken['window']:.0f} times as fast")

# %% [markdown]
r"""
## 5 · What no window can do

Each layer hears through the one below. With radius 8 the first layer carries frame 0 to frame 8, the second to frame 16:
"""

# %%
stack = PhonemeRecogniser(5, radius=8, n_layers=2).double()
noise = torch.randn(41, speech.N_MELS, dtype=torch.double)
heard = sensitivity(stack.cpu(), noise)[20]  # of output 20, to each frame
print("frame 4: more than 0:", bool(heard[4] > 0))
print("frame 3: exactly", heard[3].item())

# %% [markdown]
r"""
`sensitivity` is the size of the derivative. From output 20, frame 4 is 16 away, frame 3 is 17. Layers times radius is the **reach**; beyond it the derivative is exactly 0.

Now another task: a capital letter, some small letters, a question mark. Which capital was it? There are eight.
"""

# %%
predict("beyond_reach")

# %%
reach_figures.recalled()

# %% [markdown]
r"""
At its reach each network is right; one token farther it guesses. No training helps: it follows derivatives. (Within reach is not yet learned: see the [evidence](evidence/09_truncated_attention_evidence.ipynb).) So section 1 has a second reading: that 15 frames are enough is a fact about phonemes. **A window is a claim about the task.**

## In real work

Gemma 3, a language model, has five window layers of 1,024 tokens for each full one. torch has a function that skips blocks:

```python
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

def near(batch, head, query, key):
    return (query - key).abs() <= 15

blocks = create_block_mask(near, None, None, n, n, device=q.device)
output = flex_attention(q, k, v, block_mask=blocks)  # fast once compiled
```

The bug that people meet: does a token count in its own window?
"""

# %%
n, size = 8, 4
i, j = torch.arange(n)[:, None], torch.arange(n)
theirs = (j <= i) & (i - j < size)  # itself and 3 before: most models' way
ours = window(n, radius=size) & causal(n)  # a radius of 4
print("keys of the last token:", theirs[-1].sum().item(), ours[-1].sum().item())

x = torch.randn(2, 1, n, 16)  # two texts, the second has 5 tokens
real = padding(torch.tensor([8, 5]), n)  # (2, 1, 8)
by_torch = F.scaled_dot_product_attention(x, x, x, attn_mask=theirs & real[:, None])
by_blocks = attend_window(x, x, x, size - 1, causal=True, padding=real)
assert_close(by_torch, by_blocks)

# %% [markdown]
r"""
Trained with one and run with the other, a model works a little worse: no error says so.

## Two and a half seconds once more

All pairs of its 261 frames are 68,121 scores in each head; of them 7,851 are within 15 frames. With these alone more frames are named rightly.

**To remember.** A window is a claim about the task: that what matters is near.

- Seeing more is also more to learn: here the whole sentence is worse than a window.
- A mask hides scores and saves none; blocks never compute them.
- Layers times radius is the reach. Beyond it the derivative is exactly 0.

**Sources.** Lee, *Machine Learning* 2021 (self-attention, part 1); Child et al. 2019 (arXiv:1904.10509); Beltagy, Peters & Cohan 2020 (arXiv:2004.05150). Protocols, costs, claims: [evidence](evidence/09_truncated_attention_evidence.ipynb).

**Next**: [10a · Graph](10a_graph.ipynb): what if we know who is connected?
"""
