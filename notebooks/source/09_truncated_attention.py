# %% [markdown]
r"""
# 09 · Truncated attention: what if the input is long?

**The question.** A minute of speech is 6,000 vectors, and attention compares every one of them with every other. Must it? Most sounds of speech are over within a tenth of a second. If a
vector looks only at its neighbourhood, what is saved, and what is lost?

**After this lesson you can**

- say what a frame of speech is, and how long a sentence is in frames;
- compute the memory of attention's table for a second, a minute and an hour, and find it again by measurement;
- write attention in a window, tell what a mask saves (nothing) and what blocks save (nearly everything), and prove that the numbers stay the same;
- measure how far a frame must look to know its sound, and say when such a measurement is fair;
- say how far a stack of windows can hear, and what no window can do.

**Time** about 100 minutes; a good place to stop is before section 4. **You need** lessons [02a](02a_soft_look_up.ipynb) to [04](04_multi_head.ipynb), and for section 4 the rotary positions of [05b](05b_rotation.ipynb) and the layers of [06a](06a_layer.ipynb); section 6 uses a task of part [08a](08a_remembering.ipynb) and explains it again.
Of speech you need to know nothing. **Exercises**: [exercises/09_truncated_attention](exercises/09_truncated_attention.ipynb).
"""

# %%
from statistics import fmean

import torch
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.chapters.c09_truncated_attention import figures, speech
from lesson_lib.chapters.c09_truncated_attention.experiments import beyond, phonemes
from lesson_lib.chapters.c09_truncated_attention.phonemes import PhonemeRecogniser
from lesson_lib.claims import claim, verdict
from lesson_lib.device import on, to_device
from lesson_lib.experiments import devices, lengths, results
from lesson_lib.masks import causal, window
from lesson_lib.measure import growth_exponent, operations, sensitivity
from lesson_lib.show import show, show_source
from lesson_lib.truncated import attend_window

_ = torch.manual_seed(0)

# %% [markdown]
r"""
> **Predict first.** Attention with 8 heads reads one minute of speech: 6,000 vectors. How large are its tables of weights, in all heads together, with numbers of 4 bytes? And for an hour?
>
> <details><summary>Answer</summary>
> 8 · 6,000² · 4 bytes = 1.15 billion bytes, about 1.1 GiB, in one layer. An hour is 60 times as long, and so its tables are 3,600 times as large: 3.8 TiB. Section 2 computes the line in between.
> </details>

## 1 · How long is a sentence?

A microphone gives 16,000 numbers a second. Speech recognisers look at them through a small window in time, 25 ms wide, and move it on by 10 ms. For each place of the window they ask how much sound there is in each of some bands of pitch (*mel bands*, which are wider the higher they lie), and take the logarithm. What comes out is a **frame**: here a row of
40 numbers. So a recording is a sequence of vectors, 100 a second, and each vector is a token. Listen to one:
"""

# %%
from IPython.display import Audio

samples = speech.read_wav(speech.example())
Audio(samples.numpy(), rate=speech.RATE)

# %%
frames = speech.log_mel(samples)
print(f"{len(samples):,} samples -> {tuple(frames.shape)} frames")
print(f"{len(samples) / speech.RATE:.2f} seconds")

# %% [markdown]
r"""
Two and a half seconds, 261 frames. Each column of the next picture is a frame: low pitches at the bottom, and the brighter, the louder. Above it stand the sounds that were spoken. Such a sound is a **phoneme**, written as dictionaries write it; ː makes it long.
"""

# %%
spoken = speech.load("test")[0]
print(spoken.text)
figures.utterance(spoken.frames, spoken.labels, speech.LABELS)

# %% [markdown]
r"""
The vowels are stacks of bright bars. The *s* in "stamped" is noise high up. The *p* in it, at 1 second, is a gap: for a tenth of a second there is next to nothing to hear, and then the burst of the *t*.

**Where these sentences come from.** They are no recordings of people. A speech synthesiser, espeak-ng, spoke 297 sentences with fourteen voices, at several paces and pitches; it says for each moment which phoneme it is at, and so every frame has a label that nobody had to write. Noise was added. It is much tidier than real speech.
Twelve voices speak in the training. A thirteenth, the *validation voice*, serves to make choices, and a fourteenth, the *test voice*, to measure. No sentence is in two of the three.

> **Predict.** How long does a phoneme last, in frames: about 2, about 7, or about 30?
>
> <details><summary>Answer</summary>
> About 7: the middle one of all lasts 70 ms. Nine in ten last from 30 to 180 ms.
> </details>
"""


# %%
def runs_of(labels):
    """How many frames each phoneme lasts, one number for each that is spoken."""
    _, lasted = labels.unique_consecutive(return_counts=True)
    return lasted[1:-1]  # without the silence at both ends


utterances = speech.load("training")
lasted = torch.cat([runs_of(one.labels) for one in utterances]).float()
sentence = torch.tensor([float(len(one.labels)) for one in utterances])
print("phonemes, in frames: 5 %, 50 %, 95 % are shorter than", end=" ")
print([int(lasted.quantile(share)) for share in (0.05, 0.5, 0.95)])
print("sentences, in frames: shortest, middle, longest:", end=" ")
print([int(sentence.quantile(share)) for share in (0.0, 0.5, 1.0)])

# %% [markdown]
r"""
A sentence is a few hundred frames, a phoneme seven. That is the whole idea of this lesson: what a frame must know to name its sound lies near it, and attention looks everywhere.

## 2 · What L × L costs

Attention has a table of scores with a row for each query and a column for each key. For $L$ frames, $h$ heads and 4 bytes a number that is

$$4 \, h \, L^2 \ \text{bytes}$$

and as many again for each further table that is held (the scores, the weights). Ten times the length, a hundred times the memory:
"""

# %%
print("speech          frames   one table, 8 heads")
for name, seconds in {
    "1 second": 1,
    "10 seconds": 10,
    "1 minute": 60,
    "10 minutes": 600,
    "1 hour": 3600,
}.items():
    length = 100 * seconds
    print(f"{name:12} {length:9,} {lengths.table_mib(length) / 1024:14.5f} GiB")

# %% [markdown]
r"""
Computed; now measured. `peak_mib` asks torch how much memory a call has in use at its highest point, beyond what was there before.

> **Predict.** How many tables are held at once: when only the output is wanted, and when gradients are computed, too?
>
> <details><summary>Answer</summary>
> One, and a little for the output: the weights are written over the scores. With gradients about three: the weights are kept for the way back, and their gradient and that of the scores are as large. (In short inputs the rest weighs more, hence 1.26 and 4.02 at 250 frames.)
> </details>
"""

# %%
print("tables held at once, from the measured memory")
for length in (250, 500, 1000):
    one = lengths.table_mib(length)
    forward, both = (lengths.mib("table", length, backward=b) for b in (False, True))
    print(f"{length:5} frames: {forward / one:.2f}, with gradients {both / one:.2f}")

# %% [markdown]
r"""
In lesson 02 you have met torch's **fused** kernel (`weights=False`): it never holds the table whole. That mends the memory, and not the work: all $L^2$ scores are computed, some at a time. `measure.operations` counts the multiplications:
"""


# %%
def work(length, **options):
    """Multiplications of one attention, 8 heads of width 64."""
    x = torch.randn(1, 8, length, 64)
    return operations(lambda: attend(x, x, x, **options))


print("1,000 frames, multiplications")
print(f"  with the table  {work(1000):>15,}")
print(f"  fused           {work(1000, weights=False):>15,}")
print(f"  fused, 10 times as long {work(10_000, weights=False) // work(1000):>7} times")

# %% [markdown]
r"""
$2 h L^2 d = 2 \cdot 8 \cdot 1000^2 \cdot 64 = 1{,}024{,}000{,}000$, either way.

The stored measurements (one thread). "Mask over the table" and "window" are explained in section 3. The marks are measured, the dashed lines go on with the power that the formula has:
"""

# %%
stored = results("lengths")["rows"]
figures.gib(stored)

# %% [markdown]
r"""
A laptop of 16 GiB is full at a few minutes of speech, in *one* layer and with nothing else in memory. "Fused" and "window" need a few MiB for ten seconds: as much as one or two copies of the queries. In the next section we make the last of these lines.

## 3 · Looking around

### A band

**Truncated** attention, or attention in a **window**: each frame looks at the $r$ frames before it, at itself, and at the $r$ frames behind it. $r$ is the **radius**, chosen by us, not learned. As a mask it is a band along the diagonal:
"""

# %%
figures.band(
    {
        "everything": torch.ones(24, 24, dtype=torch.bool),
        "window, radius 3": window(24, radius=3),
        "the same, causal": window(24, radius=3) & causal(24),
    }
)

# %% [markdown]
r"""
The third is for those who cannot wait: a recogniser that writes while you speak must not look at frames that have not been spoken.

By hand, with five frames. All scores are 0, so the weights are equal among those that may be seen, and the output is their mean. The values are 0, 10, 20, 30, 40 and the radius is 1.

> **Predict.** The five outputs?
>
> <details><summary>Answer</summary>
> 5, 10, 20, 30, 35. The first frame has no left neighbour: it looks at two frames, and each weighs a half. Nothing stands in for the missing one.
> </details>
"""

# %%
values = torch.tensor([[0.0], [10.0], [20.0], [30.0], [40.0]])
zeros = torch.zeros(5, 1)
show(attend(zeros, zeros, values, mask=window(5, radius=1)).output[:, 0])

# %% [markdown]
r"""
### A mask saves nothing

1,000 frames, radius 15: each frame may look at 31 frames, itself included, instead of 1,000. That is a thirtieth.

> **Predict.** How many multiplications does `attend` make with this mask, compared with none?
>
> <details><summary>Answer</summary>
> As many. A mask is applied to scores, and so all scores have been computed before it comes.
> </details>
"""

# %%
everything, masked = work(1000), work(1000, mask=window(1000, radius=15))
print(f"without a mask {everything:,}")
print(f"with a mask    {masked:,}")
tables = (lengths.mib(kind, 1000) for kind in ("table", "mask over the table"))
print("MiB at the peak: {:.0f} and {:.0f}".format(*tables))

# %% [markdown]
r"""
And it takes twice the memory: the scores are copied when they are masked, and so two tables are held. So the work must be left out, not thrown away afterwards.

### First by hand

Take the queries one by one. Query $i$ needs the keys from $i - r$ up to $i + r$, those that exist. That is a slice of the keys, and attention over a slice is `attend`:
"""


# %%
def look_around(query, key, value, radius):
    """Attention in a window, a query at a time."""
    rows = []
    for i in range(query.shape[-2]):
        near = slice(max(0, i - radius), i + radius + 1)
        one = query[..., i : i + 1, :]
        rows.append(attend(one, key[..., near, :], value[..., near, :]).output)
    return torch.cat(rows, dim=-2)


x = torch.randn(3, 1, 8, 1000, 64)
with_mask = attend(*x, mask=window(1000, radius=15)).output
by_hand = operations(lambda: look_around(*x, radius=15))
assert_close(look_around(*x, radius=15), with_mask)
print("the same numbers;", f"{by_hand:,} multiplications,", end=" ")
print(f"{everything / by_hand:.1f} times fewer")

# %% [markdown]
r"""
The same numbers, and thirty times fewer multiplications. It makes a thousand small calls, one for each frame, as an RNN does. Lesson 08 has shown what a machine wants instead: few large products.

### Then in blocks

So cut the queries into blocks, of 8 in the picture. All queries of a block together need the keys of the block and $r$ more on either side. That is one rectangle of the table for each block. All these rectangles have the same size; so they are computed at once, by one call:
"""

# %%
figures.blocks(n=36, radius=4, block=8)

# %% [markdown]
r"""
The corners of each rectangle are computed and then hidden by a small mask, the same for all blocks. That is the price. At both ends, where keys are missing, the outermost queries go by themselves.

> **Predict.** Radius 64, blocks of 64 queries. How many keys does a block need? And how many of a query's scores are thrown away?
>
> <details><summary>Answer</summary>
> 64 + 64 + 64 = 192 keys. A query may look at 129 of them, so 63 of 192 scores are for nothing: about a third.
> </details>
"""

# %%
show_source(attend_window)

# %% [markdown]
r"""
`_Neighbours` makes the overlapping pieces of keys without copying them, and `_band` the small mask. It is the same function as `attend` with a mask, for every length and every radius; here are some of them, the odd ones too:
"""

# %%
for n in (1, 2, 31, 100, 333):
    for radius in (0, 1, 5, 40, 1000):
        q, k, v = torch.randn(3, 2, n, 8)
        by_mask = attend(q, k, v, mask=window(n, radius)).output
        assert_close(attend_window(q, k, v, radius), by_mask, atol=1e-5, rtol=1e-5)
print("25 lengths and radii: equal")


# %%
def work_in_window(length, radius):
    """Multiplications of attention in a window, 8 heads of width 64."""
    x = torch.randn(1, 8, length, 64)
    return operations(lambda: attend_window(x, x, x, radius))


for n in (1000, 2000, 4000):
    done, mib = work_in_window(n, 15), lengths.mib("window", n)
    fewer = 2 * 8 * n * n * 64 // done
    print(f"{n:5,} frames: {done:>11,} multiplications, {fewer} times fewer;", end=" ")
    print(f"{mib:4.1f} MiB")

# %% [markdown]
r"""
Twice the frames, twice the work and twice the memory: the cost is **linear**. (At 1,000 frames the loop was 32 times cheaper, blocks are 16 times. A block has at least 32 queries, and needs 62 keys where a query may look at 31.) How much time that is, on this machine and now; and on a GPU beside it, yours or, if you have none, that of a stored run, if there is one:
"""

# %% tags=["measured"]
n_frames = (500, 1000, 2000, 4000)
with on("cpu"):
    taken = {
        kind: [lengths.seconds(kind, n) for n in n_frames]
        for kind in ("fused", "window")
    }
figures.live_seconds(n_frames, taken, devices.beside("speech"))

# %%
verdict("4,000 frames: the window is at least 5 times as fast",
    5 * taken["window"][-1] < taken["fused"][-1], trained=True)  # fmt: skip
verdict("the time of all pairs grows faster than their number of frames",
    growth_exponent((1000, 2000, 4000), taken["fused"][1:]) > 1.4, trained=True)  # fmt: skip

# %% [markdown]
r"""
## 4 · How far must a frame look?

The work can be left out. May it? That is a question for a measurement, and the answer belongs to the task. Here is the task: *for each frame, which of 58 labels fits it: 57 phonemes, and silence?*

The network is small: each frame becomes a token of width 48, then come two layers of self-attention as in lesson 06, four heads each, then a linear layer with 58 outputs. Its positions are rotary (lesson 05), so only distances count. One thing is varied: the radius. At radius 0 a frame sees itself alone, and nothing is left of attention.

> **Predict.** Radius 0, 2, 5, 15, 50, or the whole sentence. From which radius on does it get no better?
>
> <details><summary>Answer</summary>
> Write your number down. The training below gives a first idea, and "The fair measurement" the answer.
> </details>
"""

# %% tags=["nbval-ignore-output"]
models, histories = {}, {}
for radius in (0, 5, None):
    models[radius], histories[radius] = phonemes.train(
        radius, steps=phonemes.RECIPE["live"]["steps"]
    )
    found = phonemes.accuracy(models[radius])
    name = "everything" if radius is None else f"radius {radius}"
    print(f"{name:11} {found.frames:.3f} of all frames,", end=" ")
    print(f"{found.speech:.3f} of those that are not silence")

# %%
_, guessed = phonemes.guess()
right = {radius: phonemes.accuracy(model).frames for radius, model in models.items()}
verdict("by itself a frame knows far more than the most frequent label",
    right[0] > guessed.frames + 0.2, trained=True)  # fmt: skip
verdict("with five frames on each side: at least 8 points more",
    right[5] > right[0] + 0.08, trained=True)  # fmt: skip


# %% [markdown]
r"""
Half of the frames by itself, out of 58 labels: a frame is a good part of the answer. With five frames on each side, in each of the two layers, more than a tenth of all frames more. And with everything in view, *less* than with five? Do not believe that yet. All three had the same few steps.

Here is a sentence of the test voice, with the guesses of the first and the second model. Orange marks a wrong frame:
"""


# %%
@torch.no_grad()
def guesses_of(model, frames):
    """The phoneme that a recogniser gives each frame."""
    return model(to_device(frames)[None])[0].argmax(-1).cpu()


figures.spoken(
    spoken.frames, spoken.labels, guesses_of(models[0], spoken.frames), speech.LABELS,
    title="radius 0",
)  # fmt: skip

# %%
figures.spoken(
    spoken.frames, spoken.labels, guesses_of(models[5], spoken.frames), speech.LABELS,
    title="radius 5",
)  # fmt: skip

# %% [markdown]
r"""
At radius 0 the guess flickers, and at radius 5 it stands still for longer, also where it is wrong. At radius 0 nothing tells a frame that its neighbours belong to the same sound. And it cannot know what is only visible in time, such as a stop (p, t, k), which *is* a silence followed by a burst.

### The fair measurement

A comparison of radii can go wrong in three ways: too few steps for the wide windows; training on short pieces and testing on whole sentences; one learning rate for all. In the stored run each radius has the best of four learning rates, chosen on the validation voice in short trainings (it is 0.01 for all); all are trained on whole sentences, for 1,800 steps (six times as long as above, each sentence 33 times), and of each the weights that did best on the validation voice are kept; three seeds. The test voice was never heard.
"""

# %%
stored_speech = results("phonemes")["rows"]
best = phonemes.saturates(stored_speech)
figures.accuracy(stored_speech, saturates=best)


# %%
def stored_right(radius, column="accuracy", kind="point"):
    """A number for each seed: test accuracies of that radius (None: everything)."""
    return [
        row[column] for row in stored_speech
        if (row["kind"], row.get("radius")) == (kind, radius)
    ]  # fmt: skip


def mean_right(radius, *what):
    return fmean(stored_right(radius, *what))


for radius in phonemes.RADII:
    name = "everything" if radius is None else f"radius {radius}"
    right, loss = mean_right(radius), mean_right(radius, "loss_train")
    print(f"{name:11} {right:.3f} right; loss on training sentences {loss:.2f}")

# %% [markdown]
r"""
The upper line, two layers:

- A frame by itself: 56 of 100. Always to guess silence would give 12.
- Radius 2: 68. Radius 5: 73. **Radius 15: 75, the best mean.** There are two layers, so it hears 30 frames, 300 ms, to each side: its own phoneme and some neighbours. Single seeds of 5, 15 and 50 overlap: from 5 on there is little to gain.
- **The whole sentence: 68. Worse** than a radius of 5, in every seed.
- The lower line, one layer, rises and falls alike, some points lower.

What do neighbours bring, and to which sounds?
"""

# %%
figures.by_kind(stored_speech)

# %% [markdown]
r"""
Silence hardly needs them. A *stop* (p, t, k) is a short silence and a burst: a radius of 2 brings most of what can be had. *Fricatives* (s, f) are noise, *nasals* (m, n) go through the nose, *approximants* (l, r, w) are nearly vowels. Vowels gain most, and are worst all the same: a vowel is told by where its bright bars lie, and another voice has them elsewhere. (On the validation voice, by which the best weights were chosen, 87 of 100 frames are right at radius 15: a voice can be near to those that were trained on, or far.)

Now the last dot of the first picture. Has full attention learned too little? Compare all radii at the moment when they had learned the training sentences *equally well*, when their loss there had fallen to the same level:
"""

# %%
figures.matched(
    {
        f"loss {level}": phonemes.matched(stored_speech, level)
        for level in (0.9, 0.6, 0.3)
    }
)

# %% [markdown]
r"""
At each of the three losses full attention is behind radius 15, by 3 points at 0.9 and by 5 at the others (means of three seeds, each a single look at a noisy curve), although both have learned their sentences about equally well. (Radius 0 never gets to 0.6.) So too little training is not the reason. It could do all that a window does, and what it does instead holds less well for a new voice: it looks like **overfitting**. A window need not learn that what matters is near; full attention has to find that out from 216 sentences, nine minutes of speech.

Two things that the stored run can also tell. Planned with a third of the steps, it would have said that *5* frames are enough. And layers help: two layers of radius 5 do better than one of radius 15, though they reach less far.
"""

# %%
short = phonemes.saturates(stored_speech, kind="shorter")
print("with a third of the steps: enough at radius", short)
print(f"one layer of radius 15: {mean_right(15, 'accuracy', 'layer'):.3f}")
print(f"two layers of radius 5: {mean_right(5):.3f}")

# %% [markdown]
r"""
What this does not show: that a wide window *harms* recognition in general. With a thousand times the speech the difference may well go away. And a label per frame is not yet a word; which word it was can hang on the whole sentence.
"""

# %%
verdict("best at radius 15: more than 15 points over a frame alone",
    best == 15 and mean_right(15) > mean_right(0) + 0.15)  # fmt: skip
verdict("5 is 1 to 2 points behind",
    0.01 < mean_right(15) - mean_right(5) < 0.02)  # fmt: skip
verdict("the whole sentence: 5 points and more behind",
    mean_right(None) < mean_right(15) - 0.05)  # fmt: skip
gaps = []
for level in (0.9, 0.6, 0.3):
    at_loss = phonemes.matched(stored_speech, level)
    near, wide = (fmean(at_loss[r]) for r in (15, None))
    gaps.append(near - wide)
verdict("at each of the three losses 3 points behind and more, at the lower two 5",
    gaps[0] > 0.03 and min(gaps[1:]) > 0.05)  # fmt: skip
verdict("at the same loss of 0.3, every seed of 15 is ahead of every seed of it",
    min(at_loss[15]) > max(at_loss[None]))  # fmt: skip
verdict("two layers of radius 5: ahead of one of radius 15",
    mean_right(5) > mean_right(15, "accuracy", "layer") + 0.02)  # fmt: skip

# %% [markdown]
r"""And the cost, over the seconds of speech. The dashed line stands at the 0.6 seconds that a frame hears at radius 15: where accuracy has saturated.
"""

# %%
figures.costs(stored, reach_s=(2 * 2 * 15 + 1) / 100)

# %% [markdown]
r"""
At 80 seconds of speech, forward, one layer: the table takes 2.5 s and 2 GiB; the mask over the table, 6.6 s and 4 GiB; the fused kernel, 1.1 s and 16 MiB; the window, 0.03 s and 31 MiB. Three things to read:

- From ten seconds on the window's time and memory are nearly straight lines of slope 1; the others' time has slope 2, or more.
- **In memory the fused kernel is the leanest**, with about half of the window's. What the window saves over it is work.
- For one second of speech there is no time to save: the window is the slowest of the four.
"""

# %%
in_time, in_memory = (lengths.exponents(stored, of) for of in ("cpu_s", "mib"))
for kind in lengths.KINDS:
    print(f"{kind:20} time n^{in_time[kind]:.2f}, memory n^{in_memory[kind]:.2f}")

# %%
verdict("the window's time grows as n, to 0.2", abs(in_time["window"] - 1) < 0.2)
verdict("its memory to 0.05", abs(in_memory["window"] - 1) < 0.05)
verdict("all pairs: as the square, or faster",
    min(p for kind, p in in_time.items() if kind != "window") > 1.9)  # fmt: skip

# %% [markdown]
r"""

Move the radius yourself: what is looked at, what it costs for ten seconds of speech, and what it brings.
"""

# %%
from lesson_lib.chapters.c09_truncated_attention.window_explorer import WindowExplorer

WindowExplorer(stored_speech, saturates=best)

# %% [markdown]
r"""
*Do:* move the radius from 0 to 15. *Look:* the accuracy climbs, and the cost is a small part of the full table's. *Do:* go on to 60, and to "full" at the end. *Look:* the cost goes on growing with the radius; the accuracy rises no more, and then it falls.

### Your own voice

Record a sentence of up to 12 seconds, and save it as a WAV file with 16,000 samples a second (most recorders can export it). The button "my WAV file" below reads it. The model has heard twelve synthetic voices and no person, so expect many errors, in vowels above all. The file goes to the machine on which this notebook runs, and nowhere else.
"""

# %%
from lesson_lib.chapters.c09_truncated_attention.recording_explorer import (
    RecordingExplorer,
)

RecordingExplorer(models[None], speech.LABELS)

# %% [markdown]
r"""
*Do:* press play, then move the slider through the sentence. *Look:* the bars show where the frame looks, in each layer. This is the model that may look everywhere, after its 300 steps. How much of the weight stays near, within 15 frames? In the stored run, which trained longer:
"""

# %%
print("weight within 15 frames, full attention, stored: first and second layer")
for first, second in stored_right(None, "near"):
    print(f"   {first:.2f}   {second:.2f}")
print(f"even weights over 250 frames: {(31 - 15 * 16 / 250) / 250:.2f}")

# %% [markdown]
r"""
In each seed one of the two layers keeps more than three times as much of its weight near as even weights would: the first in two seeds, the second in the third. Nobody told it to. (Only its rotary positions let it tell near from far.)

## 5 · Windows on top of windows

Our recogniser has two layers. At radius 5 the first layer lets frame 100 hear frames 95 to 105. In the second layer frame 100 looks at frame 105, and that one has heard frame 110.

> **Predict.** Radius 3, and 1, 2, 3, 4 layers. How many frames does one output depend on?
>
> <details><summary>Answer</summary>
> 7, 13, 19, 25: each layer adds 3 on either side. In general 2 · layers · radius + 1.
> </details>

`sensitivity` computes how strongly each output depends on each input, by derivatives (gradients); where there is no way, it is exactly 0. In the picture the colour says how strongly, on a logarithmic scale:
"""


# %%
def heard_by_frame_20(layers):
    """How strongly output 20 of 41 depends on each frame, in an untrained stack."""
    _ = torch.manual_seed(0)
    stack = PhonemeRecogniser(5, radius=3, n_layers=layers).double()
    noise = torch.randn(41, speech.N_MELS, dtype=torch.double)
    return sensitivity(stack, noise)[20]


heard = {layers: heard_by_frame_20(layers) for layers in (1, 2, 3, 4)}
for layers, row in heard.items():
    print(f"layers: {layers}, frames that the output hears: {int((row > 0).sum())}")
figures.fields(heard)

# %% [markdown]
r"""
The **receptive field** grows with depth, as that of convolutions does (lesson 07). It grows in steps of the radius, so a distance of $D$ frames takes $D / r$ layers: the path of length $O(n/r)$ in the table of lesson 08. And the outer frames arrive weakly.

For a recogniser that listens while you speak, the same numbers are a **latency**: at each layer it waits for $r$ frames of the future.
"""

# %%
for radius, layers in ((5, 2), (15, 2), (15, 12)):
    print(f"radius {radius:2}, {layers:2} layers: waits {10 * radius * layers:5} ms")

_ = torch.manual_seed(0)
x = torch.randn(30, 8, dtype=torch.double)
past_only = sensitivity(lambda x: attend_window(x, x, x, 4, causal=True), x)
print("causal: frames heard by frame 20:", past_only[20].nonzero()[:, 0].tolist())

# %% [markdown]
r"""
Twelve layers that look 150 ms ahead wait nearly two seconds before the first word. A causal window waits for nothing, and hears less.

## 6 · What a window cannot do

Speech is kind to windows: what matters is near. Here is the task of lesson 08, which is not. A capital letter, some filler of small letters, and a question: which capital was it?
"""

# %%
from lesson_lib.data import recall as letters

generator = torch.Generator("cpu").manual_seed(0)
example = letters.draw(generator, 2, distance=12)
for tokens, answer in zip(*example, strict=True):
    print(letters.text(tokens), "->", letters.SYMBOLS[answer])

# %% [markdown]
r"""
The question must hear the capital, 12 tokens before it. (In training, distances grow from 1 to the one that is asked; section 8 shows why.)

> **Predict.** Two layers, radius 8: their reach is 16. Trained and tested at a distance of 12: chance (1 of 8), or right? And at a distance of 20?
>
> <details><summary>Answer</summary>
> At 12 it can be learned, by way of a token in between: nearly all are right. At 20 the capital does not reach the question. No training helps, since the derivative is exactly 0: it stays at chance.
> </details>
"""

# %% tags=["nbval-ignore-output"]
within, _ = beyond.train(8, 2, 12)
out_of_reach, _ = beyond.train(8, 2, 20)
recalled = {
    12: beyond.recall.accuracy(within, 12),
    20: beyond.recall.accuracy(out_of_reach, 20),
}
for distance, share in recalled.items():
    print(f"{distance} tokens: {share:.3f} right")

# %%
verdict("12 tokens, within reach: learned", recalled[12] > 0.9, trained=True)
verdict("20 tokens, beyond: chance", abs(recalled[20] - 1 / 8) < 0.05, trained=True)
print("derivative at the capital, 12 tokens:", beyond.gradient(within, 12) > 0)
print("20 tokens: exactly", beyond.gradient(out_of_reach, 20))

# %% [markdown]
r"""
The stored run has more of both, with three seeds. The line in each row is the reach, radius times layers:
"""

# %%
stored_beyond = results("beyond")["rows"]
figures.beyond(stored_beyond)

# %% [markdown]
r"""
Left of the line at least 93 of 100 are right, in every cell and every seed. At the first distance on its right they guess, 11 to 15 of 100, and a star says that the derivative is exactly 0, before and after training.
"""

# %%
reached, out = [], []
for row in stored_beyond:
    if row["kind"] == "point":
        near_enough = row["distance"] <= row["radius"] * row["layers"]
        (reached if near_enough else out).append(row)
verdict("within reach: at least 0.93 in every seed",
    min(row["accuracy"] for row in reached) > 0.93)  # fmt: skip
verdict("beyond: between 0.1 and 0.16",
    0.1 < min(row["accuracy"] for row in out) <= max(row["accuracy"] for row in out) < 0.16)  # fmt: skip
verdict("beyond: every derivative is exactly 0",
    all(row["gradient"] == row["gradient_after"] == 0 for row in out))  # fmt: skip

# %% [markdown]
r"""
So there is a second reading of section 4. That speech needs no more than some frames to each side is a fact about *phonemes*.

**A window is a claim about the task**, that what matters is near. For phonemes it is nearly true. For the meaning of a word it often is not; lesson 11 shows what people do then: a window and a few tokens that see everything, for one.

## 7 · Claims

What S3, the lecture notes on self-attention, says about long inputs, with the verdicts that the cells compute.
"""

# %% [markdown]
r"""
How many frames has a second? That depends on what is done at its ends, so ask torch for one second and for two.
"""

# %%
of_seconds = {}
for ends, centred in (("left out", False), ("padded", True)):
    of_seconds[ends] = [
        torch.stft(
            torch.zeros(seconds * speech.RATE), 400, speech.HOP,
            window=torch.hann_window(400), center=centred, return_complex=True,
        ).shape[-1]
        for seconds in (1, 2)
    ]  # fmt: skip
    print(f"ends {ends:8}: one second, two seconds: {of_seconds[ends]} frames")

# %% tags=["claim:truncated-1"]
sizes = (500, 1000, 2000)
held = [lengths.mib("table", size) for size in sizes]
in_one = [lengths.mib("fused", size) for size in sizes]
claim("truncated-1", {
    "every further second brings 100 frames of 10 ms": all(
        two - one == 100 for one, two in of_seconds.values()),
    "the first has 98, 25 ms wide, and 101 where its ends are padded": [
        one for one, _ in of_seconds.values()] == [98, 101],
    "the multiplications are 2 h L² d, exactly": [work(size) for size in sizes]
    == [2 * 8 * size**2 * 64 for size in sizes],
    "memory, measured, is never less than the table computed": all(
        mib >= lengths.table_mib(size) for size, mib in zip(sizes, held, strict=True)),
    "and nearly four times as much for twice the length": 3 < held[2] / held[1] < 4,
    "the fused kernel multiplies as often": work(2000, weights=False) == work(2000),
    "but its memory grows with L, not with its square": growth_exponent(sizes, in_one) < 1.3,
})  # fmt: skip


# %%
def stored_seconds(kind, frames):
    """Stored seconds of a forward pass, a number for each repeat."""
    return [
        row["cpu_s"] for row in stored
        if (row["kind"], row["n"], row["backward"]) == (kind, frames, False)
    ]  # fmt: skip


# %% tags=["claim:truncated-2"]
sequence = torch.randn(1, 8, 1200, 64)
alone, enough, everything_seen = (stored_right(radius) for radius in (0, best, None))
claim("truncated-2", {
    "a frame alone knows much less: a tenth of all frames and more": min(enough) > max(alone) + 0.1,
    "15 frames on each side are enough, or fewer": best in (2, 5, 15),
    "the whole sentence brings no two points more": max(everything_seen) < min(enough) + 0.02,
    "a mask over the table computes as much as none": work(1200, mask=window(1200, 15)) == work(1200),
    "in blocks of 32 there are 62 keys for each query, not 1,200": abs(
        operations(lambda: attend_window(*[sequence] * 3, 15)) / (2 * 8 * 1200 * 62 * 64) - 1) < 0.02,
    "stored: ten seconds of speech, twice as fast as all pairs and more": 2 * max(
        stored_seconds("window", 1000)) < min(stored_seconds("fused", 1000)),
    "one second: nothing to gain, the table is faster": min(stored_seconds("window", 100))
    > max(stored_seconds("table", 100)),
})  # fmt: skip

# %% tags=["claim:truncated-3"]
lasts = [len(one.frames) for split in speech.SPLITS for one in speech.load(split)]
of_9_and_10_s = [len(speech.log_mel(torch.randn(s * speech.RATE))) for s in (9, 10)]
claim("truncated-3", {
    "297 sentences, and none has a thousand frames": len(lasts) == 297 and max(lasts) < 1000,
    "they have hundreds: from 150 to 400": 150 <= min(lasts) <= max(lasts) <= 400,
    "a thousand frames are ten seconds": of_9_and_10_s == [901, 1001],
    "all sentences in a row have tens of thousands": sum(lasts) > 70_000,
})  # fmt: skip

# %% [markdown]
r"""
## 8 · Three wrong ideas worth having once

**"Use the fused kernel, and long inputs are no problem."** It holds no table. It still computes it:
"""

# %%
ten_seconds = work(1000, weights=False)
for seconds in (10, 600):
    scores = ten_seconds * (seconds / 10) ** 2
    print(f"{seconds:3} s of speech: {scores:8.3g} multiplications in one layer")

# %% [markdown]
r"""
Sixty times the speech, 3,600 times the work. What the kernel saves is memory.

**"At the ends the missing neighbours count as zeros."** In a convolution they do (lesson 07). In attention there *are* no such keys, and the weights of the others sum to 1. Put a row of zeros at either end, and the numbers change:
"""

# %%
padded = torch.nn.functional.pad(values, (0, 0, 1, 1))
with_zeros = attend_window(torch.zeros(7, 1), torch.zeros(7, 1), padded, 1)[1:-1, 0]
show(attend_window(zeros, zeros, values, 1)[:, 0])
show(with_zeros)

# %% [markdown]
r"""
The first and the last mean have become smaller: zeros were counted as values. The error shows at the ends of a sequence only, and in a mean over a long one it is lost.

**"What is within reach will be learned."** Four layers of radius 4 reach 16 tokens, and so does one layer of radius 16. Both are trained to recall a symbol at a distance of 16: as usual, and with distances that lengthen from 1 to 16 in training, as in the stored run of section 6.
"""

# %%
for layers, radius in ((1, 16), (4, 4)):
    for how, kind in (("as usual", "plain"), ("lengthening", "point")):
        mine = [
            row["accuracy"] for row in stored_beyond
            if (row["kind"], row["layers"], row["radius"], row["distance"]) == (kind, layers, radius, 16)
        ]  # fmt: skip
        print(
            f"{layers} x radius {radius:2}, {how:11}",
            *(f"{share:6.2f}" for share in mine),
        )

at_the_start = [
    row["gradient"] for row in stored_beyond
    if (row["kind"], row["layers"], row["radius"]) == ("plain", 4, 4)
]  # fmt: skip
print("derivative at the symbol before training, 4 x radius 4:", at_the_start)

# %% [markdown]
r"""
The four layers guess, in all three seeds, unless they are led there. (Learning rates were chosen at radius 8. There, too, four layers trained as usual guess at their full reach, at all three rates tried.) There is a way for the signal, and at the start hardly anything of it arrives: the derivative at the symbol is about a ten-thousandth. Reach is what a network *can* hear. What it learns to hear is another matter, as with the RNNs of lesson 08.

## 9 · Exercises

Open [exercises/09_truncated_attention](exercises/09_truncated_attention.ipynb). If you do only one, write attention block by block.

## 10 · Summary

- Speech is 100 frames a second. A sentence is a few hundred tokens, a phoneme about seven.
- Attention's table has $h L^2$ numbers: 1 GiB for a minute and 8 heads, 3.8 TiB for an hour. A fused kernel saves the memory, and none of the work.
- A window of radius $r$ is a band. A mask over the full table saves nothing; blocks of neighbours make $O(n \, r)$ of it, in time and memory, with the same numbers.
- To name phonemes by frames, 15 frames to each side in two layers were best, and 5 nearly as good; the whole sentence was worse, even where it had learned its sentences equally well: a window need not learn that what matters is near.
- A stack of $m$ windows hears $m \cdot r$ tokens to each side. Beyond that the derivative is exactly 0, and nothing can be learned.

**Sources.** Lee, *Machine Learning* 2021, self-attention part 1 (truncated); Vaswani et al. 2017 (arXiv:1706.03762, section 4, "restricted"); Child et al. 2019 (arXiv:1904.10509) and Beltagy, Peters & Cohan 2020 (arXiv:2004.05150): blocks and windows; Davis & Mermelstein 1980 (mel frames); Dao et al. 2022 (arXiv:2205.14135, a fused kernel);
Su et al. 2021 (arXiv:2104.09864, rotary positions); the speech: espeak-ng 1.52; the course's own source S3.

**Next**: [10a · Graph](10a_graph.ipynb). A window says that neighbours in time matter. What if we *know* who is connected with whom?
"""
