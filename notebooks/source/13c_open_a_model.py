# /// ideas
# [control]
# says = "a control takes away what the answer should come from: with another name, and over 200 names, it is copied"
# motive = "Did the model copy it"
# shown = "right with another name"
# action = 'predict("never_seen_name")'
#
# [lens]
# says = "logit lens: the last norm and the last matrix read the residual stream after any layer"
# motive = "What if the model ended earlier"
# shown = "after layer"
# action = "read_early"
#
# [patching]
# says = "activation patching: one row of another text's stream, put into ours, shows where the answer stands"
# motive = "Where does the letter stand before that"
# shown = "inside_figures.rows_exchanged"
# action = 'predict("row_to_carry")'
#
# [ablation]
# says = "a map shows where a head looks; an ablation shows whether the answer depends on it"
# motive = "A map says where a head looks"
# shown = "def without("
# action = 'predict("cut_the_brightest")'
#
# [difference]
# says = "judge cuts by the logit difference: a probability near 1 hides what a cut took"
# motive = "cannot show it"
# shown = "mean of 200"
# action = "logit_difference"
#
# [early]
# says = "an early head can matter most without looking at the answer"
# motive = "Do only those matter that look at the letter"
# shown = "inside_figures.without_heads"
# action = 'predict("early_head")'
#
# [through_maps]
# says = "it acts through the maps of later heads: give these back, and the answers are back"
# motive = "How can it matter"
# shown = "def with_maps("
# action = "with_maps(x, model.layers[2], read.weights[2])"
#
# [file]
# says = "a head's weights from the file: rows of two matrices, half-split rotary, attend"
# motive = "What does head 3 of layer 1 look at"
# shown = "on the character before"
# action = "head_weights"
#
# [zeros]
# says = "zeros in a head's columns of o_proj cut it for good; judge the change by a text that it should leave alone"
# motive = "Is that all that these heads do"
# shown = "bits per character"
# action = 'predict("which_zeros")'
#
# [hook]
# says = "a forward hook changes a module until it is removed: remove it in finally"
# motive = "How does `cut` do it"
# shown = "the next call"
# action = "def hooked("
# ///

# %% [markdown]
r"""
{title}

This course comes with a small language model, in a folder as people publish them: settings, a tokenizer, and a file of 424,992 numbers. Give it *A Wibkat is a class. The Wibk*. Nobody ever wrote *Wibkat*. Which of its numbers know how the name goes on?

**Afterwards you can** find after which layer and at which position an answer stands, and which heads it depends on; compute a head's weights from a file; test what else a change does.

{about}

<details><summary>中文摘要 · Chinese</summary>
打开磁盘上的一个模型,由粗到细地问:它怎样续写一个没人写过的名字?答案在哪一层之后(logit lens)、在哪个位置(activation patching)、靠哪些头(切除,用 logit 之差衡量)出现?
再从文件的张量算出一个头的权重,把零写进文件,看名字忘了没有,而普通文字是否照旧。
</details>
"""

# %% tags=["imports"]
import math
import shutil
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.chapters.c13_todays_models import inside_figures, writer
from lesson_lib.course import *
from lesson_lib.data import topics
from lesson_lib.device import to_device
from lesson_lib.masks import causal
from lesson_lib.models.pretrained import cut, open_model, opened
from lesson_lib.positions import rotary
from lesson_lib.widgets.machine import MachineExplorer

_ = torch.manual_seed(0)
_ = torch.set_grad_enabled(False)  # nothing is trained here
warm_up()

# %% [markdown]
r"""
## 1 · A name that nobody wrote

`open_model` builds the model that is in a folder, here `writer.FOLDER`. It is a Llama of 4 layers with 4 heads each, counted from 0. Its tokens are characters, behind a start token; `numbers` gives a text's tokens.
"""

# %%
predict("never_seen_name")

# %%
model = open_model(writer.FOLDER)
a = model.numbers("a")[-1]  # the number of the token a
for name in ("Wibkat", "Mumpel"):
    text = f"A {name} is a class. The Wibk"
    tokens = to_device(model.numbers(text))[None]  # (1, 30)
    p = model(tokens).logits[0, -1].softmax(-1).cpu()
    print(f"{text}: p(a) = {p[a]:.2f}")

# %% [markdown]
r"""
Did the model copy it? Then the *a* must be gone when the first name is another one. This is the **control**, and there *a* has «0.07». One name can be luck, so we ask 200: Wibkat, Mumpel and 198 names of six random letters. In the control each text has the next name in its first sentence. A guess among 26 letters would be right in 8.
"""

# %%
generator = torch.Generator("cpu").manual_seed(0)
letters = torch.randint(26, (198, 6), generator=generator).tolist()
names = ["".join(chr(97 + i) for i in row).capitalize() for row in letters]
names = ["Wibkat", "Mumpel", *names]


def tokens_of(first, second):  # two lists of names: (names, 30)
    pairs = zip(first, second, strict=True)
    said = [f"A {one} is a class. The {two[:4]}" for one, two in pairs]
    return to_device(torch.stack([model.numbers(text) for text in said]))


def right(logits):  # (200, 97)
    return (logits.argmax(-1) == answers).sum().item()


texts, controls = tokens_of(names, names), tokens_of(names[1:] + names[:1], names)
answers = texts[:, 7].cpu()  # the fifth letter of each name
whole, control = (model(x).logits[:, -1].cpu() for x in (texts, controls))
print(f"right {right(whole)} of 200, right with another name {right(control)}")

# %% tags=["proof"]
assert 150 < right(whole) < 170 and right(control) < 10

# %% [markdown]
r"""
So it copies four of five names, and fails at the fifth. We keep all 200 from here on. It was trained on Python's manual; in half of the pages an invented name replaced a word that comes back, and other texts were random characters, said twice. There only copying helps.

## 2 · After which layer?

The residual stream (06a) is a row of 96 numbers at each position, to which every layer adds. After the last layer a norm and a matrix turn a row into logits. What if the model ended earlier? Let the same norm and matrix read the stream after any layer: the **logit lens**.
"""

# %% [markdown] tags=["exercise:read_early"]
# Write the lens, for rows of the stream.

# %%
predict("which_layer")

# %% [markdown]
r"""
`load_file` gives the file's tensors by their names. With `weights=True` the model also returns each layer's weights and the stream.
"""

# %%
tensors = load_file(writer.FOLDER / "model.safetensors")
gain, table = tensors["model.norm.weight"], tensors["lm_head.weight"]
read = model(texts, weights=True)
start, *after = read.stream  # after[layer] is (200, 30, 96)
early = yours("read_early")


def at_end(x):  # logits (200, 97) of the last rows
    return early(x[:, -1].cpu(), gain, table)


stages = {"before layer 0": start}
stages |= {f"after layer {i}": x for i, x in enumerate(after)}
for stage, x in stages.items():
    p = at_end(x)[0].softmax(-1)  # of the Wibkat, which is text 0
    print(f"{stage:14}: p(a) = {p[a]:.2f}, right {right(at_end(x)):3} of 200")

# %% tags=["proof"]
assert_close(at_end(after[3]), whole, atol=1e-3, rtol=1e-4)
assert right(at_end(after[1])) < 12 and right(at_end(after[2])) > 150

# %% [markdown]
r"""
**"Each layer brings the answer a little nearer."** No: after layer 1 the lens finds «5» of 200 letters, after layer 2 «162». Layer 3 makes the model surer of the Wibkat.

## 3 · At which position?

Where does the letter stand before that? Take a second text, with Wibkot. Run ours up to a layer, replace one row of its stream by the row that the other text has there, and let the later layers go on. If the model now says *o*, the row carried the letter. This is **activation patching**.
"""

# %%
predict("row_to_carry")

# %% [markdown]
r"""
We do it for the first 50 names, each with the next letter of the alphabet as its other fifth letter (Wibkat: *o*).
"""

# %%
following = dict(zip("abcdefghijklmnopqrstuvwxyz", "bcdefghijklmnopqrstuvwxyza"))
changed = [name[:4] + following[name[4]] + name[5] for name in names[1:50]]
changed = ["Wibkot", *changed]
others = tokens_of(changed, changed)
_, *other_after = model(others, weights=True).stream


def says_other(logits):  # the share of the 50 names with the other letter
    return (logits.argmax(-1) == others[:, 7].cpu()).float().mean()


def patched(layer, position):
    x = after[layer][:50].clone()
    x[:, position] = other_after[layer][:, position]
    for later in model.layers[layer + 1 :]:
        x, _ = later(x)  # a layer returns its weights, too
    return says_other(at_end(x))


moved = torch.tensor([[patched(layer, i) for i in range(30)] for layer in range(4)])
inside_figures.rows_exchanged(moved, model.pieces(texts[0].cpu()))

# %% tags=["proof"]
assert min(moved[1, 7], moved[2, 29]) > 0.6 > 0.1 > max(moved[1, 29], moved[2, 7])

# %%
print(f"asked directly: {says_other(at_end(other_after[3])):.2f}")
print(f"row 7 after layer 1: {moved[1, 7]:.2f}, row 29 after layer 2: {moved[2, 29]:.2f}")

# %% [markdown]
r"""
After layers 0 and 1 the letter stands at position 7, where it was written: this one row makes the model say the other letter for «0.78» of the names, nearly as often as the other texts themselves do. After layer 2 the last row does this, and position 7 does nothing. So layer 2 moves the letter, as the lens said.

## 4 · Which heads?

Only attention moves something from one position to another. *Do:* choose layer 2, and step through its heads; the large map shows a head's weights, a row for each query. Which heads look from the last *k* at the *a*, position 7?
"""

# %%
MachineExplorer(lambda text: opened(model, text), ["A Wibkat is a class. The Wibk"])

# %%
for layer, weights in enumerate(read.weights):  # (200, 4, 30, 30)
    last = weights[:, :, -1, 7].mean(0).tolist()
    print(f"layer {layer}:", *(f"{weight:.2f}" for weight in last))

# %% [markdown]
r"""
On the mean of the 200 names, heads 1, 2 and 3 of layer 2 give the fifth letter «0.74», «0.73» and «0.79» of their weight (the Wibkat's *a* ‹.99›), and heads of other layers «0.02» at most. Heads that find what followed an earlier copy are called **induction heads** (13b).

A map says where a head looks, and not whether the answer depends on it. So take the head away: inside `with cut(model, [(2, 1)])` head 1 of layer 2 adds nothing. This is an **ablation**.
"""

# %%
predict("cut_the_brightest")

# %%
def without(*heads):  # pairs (layer, head)
    with cut(model, heads):
        return model(texts).logits[:, -1].cpu()


for head in (1, 2, 3):
    logits = without((2, head))
    p = logits[0].softmax(-1)[a]
    print(f"without head {head}: p(a) = {p:.2f}, right {right(logits)} of 200")

# %% [markdown]
r"""
**"So the head hardly matters."** The Wibkat keeps .88 or more. But a probability near 1 cannot show it: if *a* is 1,000 times as likely as the next token, and then 20 times, it falls from .999 to .95. So look at logits. The **logit difference** is the right token's logit minus the largest other; above 0 the answer is right.
"""

# %% [markdown] tags=["exercise:logit_difference"]
# Write it, for a batch of texts.

# %%
difference = yours("logit_difference")
uncut = difference(whole, answers)
cases = [(), (1,), (2,), (3,), (1, 2), (1, 3), (2, 3)]
for heads in cases:
    left = difference(without(*((2, head) for head in heads)), answers)
    print(f"without {heads!s:6}: Wibkat {left[0]:4.1f}, mean of 200 {left.mean():4.1f}")
print(f"another name  : Wibkat {difference(control, answers)[0]:4.1f}")

# %% tags=["proof"]
pair = difference(without((2, 2), (2, 3)), answers)
assert uncut.mean() > 3.5 and pair.mean() < -1 and pair[0] < 0

# %% [markdown]
r"""
Each single cut takes half of the Wibkat's «6.9», which its probability hid. Any two cuts take all of it: below 0 the answer is gone. On the names the losses nearly add up: heads 1 and 2 take 1.8 and 2.9, and both together 4.8. So several heads share the work, and one cut alone tells little.

## 5 · Which head of the early layers?

Do only those matter that look at the letter?
"""

# %%
predict("early_head")

# %%
left = torch.tensor([
    [difference(without((layer, head)), answers).mean() for head in range(4)] for layer in range(4)
])
inside_figures.without_heads(left)

# %% tags=["proof"]
first_two = left[:2].flatten()
assert first_two.argmin() == 7 and first_two[7] < 1.5 < 3 < first_two[:7].min()

# %% [markdown]
r"""
Head 3 of layer 1 leaves .7 of 4.2, less than the bright head 1 of layer 2 leaves. (Only head 3 of layer 2 leaves less.) The other early heads leave at least 3.6. How can it matter, if it does not look at the letter? Perhaps layer 2's heads need it to find the letter. What do they give to position 7, with it and without?
"""

# %%
with cut(model, [(1, 3)]):
    lost = model(texts, weights=True)
for seen in (read, lost):
    print(*(f"{weight:.2f}" for weight in seen.weights[2][:, :, -1, 7].mean(0).tolist()))

# %% [markdown]
r"""
They give it about half as much. Is this the whole harm? Then the names must come back if layer 2 gets its old maps, while head 3 of layer 1 stays cut. Here is a layer that takes its weights from outside, written out:
"""

# %%
def with_maps(x, layer, weights):  # weights (200, 4, 30, 30)
    values = layer.attention.w_value(layer.before[0](x))  # before: the two norms
    values = values.unflatten(-1, (2, 24)).repeat_interleave(2, dim=2)  # shared (11b)
    mixed = weights @ values.transpose(1, 2)  # (200, 4, 30, 24)
    x = x + layer.attention.w_output(mixed.transpose(1, 2).flatten(2))
    return x + layer.feed_forward(layer.before[1](x))


x = lost.stream[2]  # after layer 1, without its head 3
for maps, weights in {"new": lost.weights[2], "old": read.weights[2]}.items():
    y, _ = model.layers[3](with_maps(x, model.layers[2], weights))
    mean = difference(at_end(y), answers).mean()
    print(f"{maps} maps of layer 2: right {right(at_end(y))}, mean {mean:.1f}")

# %% tags=["proof"]
assert right(at_end(y)) > 150 > 115 > right(without((1, 3)))

# %% [markdown]
r"""
With layer 2's old maps all is back, even a little more: «167» names, «5.4». **So this head does its work for names through the maps of layer 2: it tells later heads where to look.**

## 6 · From the file

What does head 3 of layer 1 look at? Compute its map yourself, from the file.
"""

# %%
of_layer_1 = "model.layers.1.self_attn."
for name, matrix in tensors.items():
    if name.startswith(of_layer_1):
        print(name.removeprefix(of_layer_1), tuple(matrix.shape))

# %% [markdown]
r"""
Matrices are stored as (out, in). `q_proj` has 96 rows, 24 for each of 4 heads; `k_proj` has 48, so two heads share a head of keys (11b). In such files rotary positions pair column $j$ with $j + d_k/2$, here $j + 12$: `rotary(q, pairing="half-split")`. Weights do not depend on values, so give `attend` the keys twice.
"""

# %% [markdown] tags=["exercise:head_weights"]
# Write the weights of one head: its queries and keys, rotated; then `attend(…).weights`.

# %%
norm = tensors["model.layers.1.input_layernorm.weight"]
x = F.rms_norm(after[0][0].cpu(), (96,), norm, eps=1e-6)  # the Wibkat's rows
w_query, w_key = (tensors[f"{of_layer_1}{one}_proj.weight"] for one in "qk")
weights_of = yours("head_weights")
for head in range(4):
    mine = weights_of(x, w_query, w_key, head=head, d_k=24)
    assert_close(mine, read.weights[1][0, head].cpu(), atol=1e-4, rtol=1e-3)
    print(f"head {head}: {mine.diagonal(-1).mean():.2f} on the character before")

# %% [markdown]
r"""
Your maps equal the model's. Head 3 looks at the character before, with «0.89» of its weight. So each row can learn which character precedes it, and layer 2, at the last *k*, can ask for the row that a *k* precedes: the *a*. But a map is no proof: head 0 looks there as much, and without it 3.8 are left. (Other families need more than this: Qwen3 also norms queries and keys, 13a.)

## 7 · Zeros in the file

Is that all that these heads do? A head's output passes 24 columns of `o_proj`. If they are zeros in the file, the head adds nothing. We write such files, open them again, and let them read 116 pieces of the manual that the model never saw, in bits per character (06e).
"""

# %%
predict("which_zeros")


# %%
def zeroed(layer, heads):
    found = load_file(writer.FOLDER / "model.safetensors")
    for head in heads:
        columns = slice(24 * head, 24 * head + 24)
        found[f"model.layers.{layer}.self_attn.o_proj.weight"][:, columns] = 0
    with TemporaryDirectory() as folder:
        shutil.copy(writer.FOLDER / "config.json", folder)
        save_file(found, Path(folder) / "model.safetensors")
        return open_model(folder)


pages = topics.stream("test").unfold(0, 128, 256)  # 128 characters of every 256
pages = to_device(F.pad(pages, (1, 0), value=96))  # behind a start token


def bits(model):
    logits = model(pages[:, :-1]).logits.flatten(0, 1)
    return F.cross_entropy(logits, pages[:, 1:].flatten()).item() / math.log(2)


# %% tags=["nbval-ignore-output"]
found = {"as published": model}
for layer, heads in ((1, [3]), (2, [1, 2, 3]), (3, [1, 2, 3])):
    found[f"zeros in layer {layer}, heads {heads}"] = zeroed(layer, heads)
paid = {name: (right(one(texts).logits[:, -1].cpu()), bits(one)) for name, one in found.items()}
print("                              names  bits per character")
for name, (count, each) in paid.items():
    print(f"{name:29} {count:5}  {each:.2f}")

# %% tags=["proof"]
(_, plain), (some, spells), (none, copies), (most, last) = paid.values()
assert none < 10 < 80 < some < 120 < 145 < most and copies < plain + 0.12
assert spells > plain + 0.3 and last > plain + 0.17

# %% [markdown]
r"""
Head 3 of layer 1 fails this test: without it ordinary text costs .46 bits more. It is needed for spelling at large, and half of the names even survive. Layer 2's three heads are the other way round. With zeros in 3 · 24 columns of 96 numbers the names are gone, and spelling costs .08 more. Is that little because three heads are little? No: as many zeros in layer 3 leave the names, and cost .25.

## In real work

How does `cut` do it? With a **hook**: a function that torch calls before a module, and that may change what goes in. Here is one for a model in plain torch, from 13a's `notebooks/carry/llm.py`. Its modules have the names of the file's tensors, as in transformers. Guess the last line.
"""

# %%
from carry import llm as carried

theirs = carried.open_model(writer.FOLDER)
wibkat = texts[:1].cpu()


def p_of_a():
    return f"p(a) = {theirs(wibkat)[0, -1].softmax(-1)[a]:.2f}"


def silence(module, inputs):
    outputs = inputs[0].clone()  # of all heads, side by side: (b, n, 96)
    outputs[..., 72:96] = 0  # head 3
    return (outputs,)


print("whole:        ", p_of_a())
part = theirs.get_submodule("model.layers.1.self_attn.o_proj")
handle = part.register_forward_pre_hook(silence)
print("with the hook:", p_of_a())
print("the next call:", p_of_a())
handle.remove()

# %% [markdown]
r"""
A hook stays until it is removed, and every later "whole" model is a cut one. An error before `handle.remove()` is enough. `finally` runs even then:
"""

# %%
@contextmanager
def hooked(module, hook):
    handle = module.register_forward_pre_hook(hook)
    try:
        yield
    finally:
        handle.remove()


try:
    with hooked(part, silence):
        assert_close(theirs(wibkat)[0, -1], without((1, 3))[0], atol=1e-3, rtol=1e-4)
        raise KeyboardInterrupt
except KeyboardInterrupt:
    print("after an error:", p_of_a())

# %% [markdown]
r"""
Inside, the hook gives the logits of `cut`; after the error the model is whole.

## To carry away

This opens a folder, and gives the same logits:
"""

# %%
assert_close(theirs(texts.cpu()), model(texts).logits.cpu(), atol=1e-3, rtol=1e-4)
show_source(carried.open_model)

# %% [markdown]
r"""
For your own folder: `hf download Qwen/Qwen3-0.6B --local-dir qwen`, then `carried.open_model("qwen")`. Take two texts with equally many tokens and different answers, for example two countries whose capital is asked. Then patch, cut and `hooked` as above: a head's columns are `head_dim` wide.

## The Wibkat once more
"""

# %%
ending = "zeros in layer 2, heads [1, 2, 3]"
for name in ("as published", ending):
    tokens = texts[:1]
    while tokens.shape[1] < 34:  # the likeliest next character
        tokens = torch.cat((tokens, found[name](tokens).logits[:, -1:].argmax(-1)), 1)
    print(f"{name}: {''.join(model.pieces(tokens[0, 1:].cpu()))}")

# %% [markdown]
r"""
None of the 424,992 numbers knows the name: it stands in the text. Three heads of layer 2 fetch its letter, and head 3 of layer 1 shows them where. Without the three the model still spells.

**To remember.** A map shows where a head looks; only a change shows what depends on it.

- A lens says after which layer an answer shows, a patch at which position it stands.
- Judge cuts by the logit difference, on many texts, and cut several heads together.
- An early head can act through the maps of later ones.
- Test also what a change should leave alone.

**Sources.** nostalgebraist 2020, "interpreting GPT: the logit lens"; Meng et al. 2022 (arXiv:2202.05262); Michel et al. 2019 (arXiv:1905.10650); Olsson et al. 2022 (arXiv:2209.11895). Text: Python's manual, © Python Software Foundation, PSF License. Recipe, seeds: [evidence](evidence/13_todays_models_evidence.ipynb).

**Next**: the [exercises](exercises/13_todays_models.ipynb), with eight programs found in the wild.
"""
