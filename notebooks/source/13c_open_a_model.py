# /// ideas
# [control]
# says = "a control takes away what the answer should come from: with another name, and over 200 names, it is copied"
# motive = "Did the model copy it"
# shown = "with another name"
# action = 'predict("never_seen_name")'
#
# [lens]
# says = "logit lens: the last norm and the last matrix read the residual stream after any layer"
# motive = "What if the model ended earlier"
# shown = "def at_end("
# action = 'predict("which_layer")'
#
# [patching]
# says = "activation patching: one row of another text's stream, put into ours, shows where the answer stands"
# motive = "Where does the letter stand before that"
# shown = "inside_figures.rows_exchanged"
# action = 'predict("row_to_carry")'
#
# [ablation]
# says = "a map shows where a head looks; an ablation shows whether the answer depends on it"
# motive = "It does not say whether the answer depends on it"
# shown = "def without("
# action = 'predict("cut_the_brightest")'
#
# [difference]
# says = "judge cuts by the logit difference: a probability near 1 hides what a cut took"
# motive = "hides most of a loss"
# shown = "mean of the names"
# action = "logit_difference"
#
# [early]
# says = "an early head can matter most without looking at the answer"
# motive = "Do only those heads matter"
# shown = "inside_figures.without_heads"
# action = 'predict("early_head")'
#
# [through_maps]
# says = "it acts through the maps of later heads: give these back, and the answers are back"
# motive = "How can it matter"
# shown = "maps: {"
# action = "def with_maps("
#
# [file]
# says = "a head's weights from the file: rows of two matrices, half-split rotary, attend"
# motive = "What does head 3 of layer 1 look at"
# shown = "mine.diagonal(-1)"
# action = "head_weights"
#
# [zeros]
# says = "zeros in a head's columns of o_proj cut it for good; judge the change by a text that it should leave alone"
# motive = "Is copying all that these heads do"
# shown = "def with_zeros("
# action = 'predict("which_zeros")'
#
# [hook]
# says = "a forward hook changes a module until it is removed: remove it in finally"
# motive = "How does `cut` do it"
# shown = "next call"
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
import shutil
from contextlib import contextmanager
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
from lesson_lib.models.pretrained import cut, open_model
from lesson_lib.positions import rotary

_ = torch.set_grad_enabled(False)  # nothing is trained here
warm_up()

# %% [markdown]
r"""
## 1 · A name that nobody wrote

`open_model` builds the model that lies in a folder, here `writer.FOLDER`. It is built like a Llama: RMS norms first (13a), rotary positions, a causal mask. It has width 96 and 4 layers of 4 heads, each 24 wide; two heads share keys and values (11b). Most of its numbers, 69 %, are in feed-forward networks, $W_3(\mathrm{silu}(W_1 x) \odot W_2 x)$, which this part leaves alone. Layers and heads count from 0. Its tokens are characters, behind a start token.
"""

# %%
predict("never_seen_name")

# %%
model = open_model(writer.FOLDER)
a = model.numbers("a")[-1]  # numbers: a text's tokens; this is the token a
for name in ("Wibkat", "Mumpel"):
    tokens = to_device(model.numbers(f"A {name} is a class. The Wibk"))
    p = model(tokens[None]).logits[0, -1].softmax(-1).cpu()
    print(f"{name}: p(a) = {p[a]:.2f}")

# %% [markdown]
r"""
Did the model copy it? Then the *a* must be gone when another name stands in the first sentence. This is the **control**, and there *a* has «0.07». One name can be luck, so we ask 200: Wibkat, Mumpel and 198 of six random letters. In the control each first sentence has the next name. A guess among 26 letters would be right for 8.
"""

# %%
letters = torch.randint(26, (198, 6), generator=torch.Generator("cpu").manual_seed(0))
names = ["".join(chr(97 + i) for i in row).capitalize() for row in letters.tolist()]
names = ["Wibkat", "Mumpel", *names]


def tokens_of(first, second):  # two lists of names: tokens (names, 30)
    pairs = zip(first, second, strict=True)
    said = [f"A {one} is a class. The {two[:4]}" for one, two in pairs]
    return to_device(torch.stack([model.numbers(text) for text in said]))


def count_right(logits):  # (200, 97): how many of the 200 are right
    return (logits.argmax(-1) == answers).sum().item()


texts, controls = tokens_of(names, names), tokens_of(names[1:] + names[:1], names)
answers = texts[:, 7].cpu()  # the fifth letter of each name
whole, control = (model(x).logits[:, -1].cpu() for x in (texts, controls))
print(f"right: {count_right(whole)}; with another name: {count_right(control)}")

# %% tags=["proof"]
assert 150 < count_right(whole) < 170 and count_right(control) < 10

# %% [markdown]
r"""
It copies «160» names, and misses one in five; we keep all 200. It was trained on Python's manual, and in half of the pages an invented name replaced a word that comes back. There only copying helps.

## 2 · After which layer?

The residual stream (06a) has a row of 96 numbers at each position, and every layer adds to it. After the last layer a norm and a matrix make logits of it. What if the model ended earlier? Let the same norm and matrix read the stream after any layer: the **logit lens**.
"""

# %%
predict("which_layer")

# %%
tensors = load_file(writer.FOLDER / "model.safetensors")  # of the file, by name
gain, table = tensors["model.norm.weight"], tensors["lm_head.weight"]
read = model(texts, weights=True)  # also each layer's weights, and the stream
after = read.stream[1:]  # after[layer] is (200, 30, 96); stream[0]: before layer 0


def at_end(x):  # of rows (b, 30, 96) the logits (b, 97) at the last position
    # rms_norm: divided by the root of the mean square, times gain (13a)
    return F.rms_norm(x[:, -1].cpu(), (96,), gain, eps=1e-6) @ table.mT


print("                p(a)  right")
stages = ["before layer 0", *(f"after layer {i}" for i in range(4))]
for stage, x in zip(stages, read.stream):
    p = at_end(x)[0].softmax(-1)  # text 0 is the Wibkat's
    print(f"{stage:15} {p[a]:.2f} {count_right(at_end(x)):6}")

# %% tags=["proof"]
assert_close(at_end(after[3]), whole, atol=1e-3, rtol=1e-4)
assert count_right(at_end(after[1])) < 12 and count_right(at_end(after[2])) > 150

# %% [markdown]
r"""
**"Each layer brings the answer a little nearer."** No: after layer 1 the lens finds «5» of 200 letters, and after layer 2 it finds «162». Layer 3 adds no name.

## 3 · At which position?

Where does the letter stand before that? Take a second text, with Wibkot. Run ours up to some layer, replace one row of its stream by the other text's, and let the later layers go on. If the model now says *o*, this row carried the letter. This is **activation patching**.
"""

# %%
predict("row_to_carry")

# %%
changed = [f"{name[:4]}o{name[5]}" for name in names[:31]]  # 31, to save time
others = tokens_of(changed, changed)
other_after = model(others, weights=True).stream[1:]


def patched(layer, position):
    x = after[layer][:31].clone()
    x[:, position] = other_after[layer][:, position]
    for later in model.layers[layer + 1 :]:
        x, _ = later(x)  # a layer returns its weights, too
    return (at_end(x).argmax(-1) == others[:, 7].cpu()).float().mean()


moved = torch.tensor([[patched(layer, i) for i in range(30)] for layer in range(4)])
tokens = model.pieces(texts[0].cpu())  # as strings
inside_figures.rows_exchanged(moved, tokens)

# %% tags=["proof"]
assert min(moved[1, 7], moved[2, 29]) > 0.6 > 0.1 > max(moved[1, 29], moved[2, 7])

# %% [markdown]
r"""
After layers 0 and 1 the letter stands at position 7, where it was written: this one row makes the model say *o* for about three names of four, nearly as many as it copies at all. After layer 2 only the last row does. So layer 2 moves the letter there, where the lens saw it.

## 4 · Which heads?

Only attention moves something from one position to another. So which heads look from the last position at position 7? We print their weights, the mean of 200 names:
"""

# %%
for layer, weights in enumerate(read.weights):  # (200, 4, 30, 30)
    last = weights[:, :, -1, 7].mean(0).tolist()
    print(f"layer {layer}:", *(f"{weight:.2f}" for weight in last))

# %% [markdown]
r"""
Heads 1, 2 and 3 of layer 2 give the letter «0.74», «0.73» and «0.79» of their weight; we leave head 0. Such heads find what followed an earlier copy, since a head below has told each token which one stood before it: **induction heads** (13b).

A table of weights, a **map**, says where a head looks. It does not say whether the answer depends on it. So take the head away: inside `with cut(model, [(2, 1)])` the output of layer 2's head 1 is 0. This is an **ablation**. (A cut to zero takes more than the message, 13b; section 5 tests one such cut.)
"""

# %%
predict("cut_the_brightest")


# %%
def without(*heads):  # pairs (layer, head): logits (200, 97)
    with cut(model, heads):
        return model(texts).logits[:, -1].cpu()


for head in (1, 2, 3):
    print(f"without head {head}: p(a) = {without((2, head))[0].softmax(-1)[a]:.2f}")

# %% [markdown]
r"""
**"So the head hardly matters."** The Wibkat keeps «0.88» or more. But a probability near 1 hides most of a loss: from .999 to .95 the odds fall from 1,000 : 1 to 20 : 1. Logits show it, because the difference of two logits is the logarithm of their tokens' odds. The **logit difference** is the right token's logit minus the largest other; above 0 the answer is right.
"""

# %% [markdown] tags=["exercise:logit_difference"]
# Write it, for a batch of texts.

# %%
difference = yours("logit_difference")
print("without    Wibkat  mean of the names  right")
for heads in [(), (1,), (2,), (3,), (1, 2), (1, 3), (2, 3)]:
    left = difference(without(*((2, head) for head in heads)), answers)
    right = (left > 0).sum().item()
    print(f"{heads!s:10} {left[0]:6.1f} {left.mean():18.1f} {right:6}")

# %% tags=["proof"]
assert difference(whole, answers).mean() > 3.5 and left.mean() < -1 and left[0] < 0

# %% [markdown]
r"""
Each single cut takes half of the Wibkat's «6.9», and its probability hid that. On the names losses roughly add up: heads 1 and 3 take 1.8 and 4.1, and both together 5.9. So each head brings its part, head 3 the largest. Without heads 2 and 3, «23» names are right; without 1 and 2, still «101».

## 5 · Which head of the early layers?

Do only those heads matter that look at the letter?
"""

# %%
predict("early_head")

# %%
left = torch.zeros(4, 4)
for layer in range(4):
    for head in range(4):
        left[layer, head] = difference(without((layer, head)), answers).mean()
inside_figures.without_heads(left)

# %% tags=["proof"]
assert left[1, 3] < 1.5 < 3 < min(left[0].min(), left[1, :3].min())

# %% [markdown]
r"""
Without head 3 of layer 1, 0.7 of «4.2» is left; the other early heads leave at least 3.6. How can it matter without looking at the letter? Perhaps layer 2's heads need it to find the letter. What do they give to position 7, with it and without?
"""

# %%
with cut(model, [(1, 3)]):
    lost = model(texts, weights=True)
for seen in (read, lost):
    print(*(f"{weight:.2f}" for weight in seen.weights[2][:, :, -1, 7].mean(0).tolist()))

# %% [markdown]
r"""
About half as much. Is this all the harm? Then the names must come back if layer 2 gets its old maps while head 3 of layer 1 stays cut. So write a layer out, with weights that come from outside:
"""


# %%
def with_maps(x, layer, weights):  # weights (200, 4, 30, 30)
    values = layer.attention.w_value(layer.before[0](x))  # before: its two norms
    values = values.unflatten(-1, (2, 24)).repeat_interleave(2, dim=2)  # shared (11b)
    mixed = weights @ values.transpose(1, 2)  # (200, 4, 30, 24)
    x = x + layer.attention.w_output(mixed.transpose(1, 2).flatten(2))
    return x + layer.feed_forward(layer.before[1](x))


x = lost.stream[2]  # after layer 1, whose head 3 was cut
for maps, weights in {"new": lost.weights[2], "old": read.weights[2]}.items():
    y, _ = model.layers[3](with_maps(x, model.layers[2], weights))
    left = difference(at_end(y), answers).mean()
    print(f"{maps} maps: {count_right(at_end(y))} right, difference {left:.1f}")

# %% tags=["proof"]
assert count_right(at_end(y)) > 150 > 115 > count_right(without((1, 3)))

# %% [markdown]
r"""
With the old maps «167» names are right, and the difference, «5.4», is larger than with the head. **So for names this head works through the maps of layer 2: it tells later heads where to look.**

## 6 · From the file

What does head 3 of layer 1 look at? Compute its map from the file. The tensors `q_proj.weight` (96, 96) and `k_proj.weight` (48, 96) are stored as (out, in): 24 rows for each of 4 heads, and for each of 2 shared heads of keys. In such files rotary positions pair column $j$ with $j + d_k/2$: `rotary(q, pairing="half-split")`, for q (n, d_k) at positions 0 to $n - 1$. Weights do not depend on values, so give `attend` the keys twice.
"""

# %% [markdown] tags=["exercise:head_weights"]
# Write the weights of one head: its queries and keys, rotated; then `attend(…).weights`.

# %%
norm = tensors["model.layers.1.input_layernorm.weight"]
x = F.rms_norm(after[0][0].cpu(), (96,), norm, eps=1e-6)  # the Wibkat's rows
w_query = tensors["model.layers.1.self_attn.q_proj.weight"]
w_key = tensors["model.layers.1.self_attn.k_proj.weight"]
weights_of = yours("head_weights")
for head in range(4):
    mine = weights_of(x, w_query, w_key, head=head, d_k=24)
    assert_close(mine, read.weights[1][0, head].cpu(), atol=1e-4, rtol=1e-3)
    print(f"head {head}: {mine.diagonal(-1).mean():.2f}")

# %% [markdown]
r"""
The numbers are mean weights on the character before, and head 3 has «0.89». So each row can learn which character stands before it. At the last *k*, layer 2 can then look for a row with *k* before it, and finds the *a*'s. The map alone is no proof: head 0 looks there as much, and without it 3.8 are left.

## 7 · Zeros in the file

Is copying all that these heads do? In the file, a head's output passes 24 columns of `o_proj`, 04's output matrix. If they are 0, the head adds nothing. We write such files, open them again, now with 13a's `llm.py`, and let them read pages of the manual that were not in the training.
"""

# %%
predict("which_zeros")


# %%
from carry import llm as carried


def with_zeros(layer, heads):
    changed = load_file(writer.FOLDER / "model.safetensors")
    matrix = changed[f"model.layers.{layer}.self_attn.o_proj.weight"]
    for head in heads:
        matrix[:, 24 * head : 24 * head + 24] = 0
    with TemporaryDirectory() as folder:
        shutil.copy(writer.FOLDER / "config.json", folder)
        save_file(changed, f"{folder}/model.safetensors")
        return carried.open_model(folder)


pages = topics.stream("test").unfold(0, 128, 256)  # 128 characters of every 256
pages = F.pad(pages, (1, 0), value=96)  # behind a start token


def bits_of(model):  # bits per character: the loss divided by ln 2 (06e)
    logits = model(pages[:, :-1]).flatten(0, 1)
    return F.cross_entropy(logits, pages[:, 1:].flatten()).item() / 0.6931


# %% tags=["nbval-ignore-output"]
found, paid = {}, {}
print("zeros in            names  bits")
for layer, heads in ((0, []), (1, [3]), (2, [1, 2, 3]), (3, [1, 2, 3])):
    one = found[layer] = with_zeros(layer, heads)
    paid[layer] = count_right(one(texts.cpu())[:, -1]), bits_of(one)
    where = f"layer {layer}, {heads}" if heads else "nothing"
    print(f"{where:19} {paid[layer][0]:5}  {paid[layer][1]:.2f}")

# %% tags=["proof"]
assert paid[2][0] < 10 < 80 < paid[1][0] < 120 < 145 < paid[3][0]
assert paid[2][1] < paid[0][1] + 0.12 < paid[0][1] + 0.17 < paid[3][1] < paid[1][1] - 0.1

# %% [markdown]
r"""
Without head 3 of layer 1 each character costs nearly half a bit more, and half of the names survive: this head is needed for spelling at large. Without layer 2's three heads the names are gone, and a character costs less than a tenth of a bit more. Is that little for three heads? Yes: as many zeros in layer 3 leave the names, and cost a quarter of a bit.

## In real work

How does `cut` do it? With a **hook**: a function that torch calls at a module; here before it, so it may change what goes in. It fits any model in plain torch, such as `llm.py`'s, whose modules are named like the file's tensors. Guess what the second call prints.
"""

# %%
theirs = found[0]  # with no zeros
wibkat = texts[:1].cpu()


def silence(module, inputs):
    outputs = inputs[0].clone()  # of all heads, side by side: (b, n, 96)
    outputs[..., 72:96] = 0  # head 3
    return (outputs,)


def p_of_a():
    return f"{theirs(wibkat)[0, -1].softmax(-1)[a]:.2f}"


part = theirs.get_submodule("model.layers.1.self_attn.o_proj")
handle = part.register_forward_pre_hook(silence)
print("cut", p_of_a())
print("next call", p_of_a())
handle.remove()

# %% [markdown]
r"""
A hook stays until it is removed, so every later call is cut, too. And an error on the way skips `remove`. A `finally` block runs even then; `with` runs what stands before `yield` first:
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
        raise ValueError("an error on the way")
except ValueError:
    print("after an error", p_of_a())

# %% [markdown]
r"""
After the error the model is whole.

## To carry away

`llm.py` opens a folder, with the logits of the library's `open_model`:
"""

# %%
assert_close(theirs(texts.cpu())[:, -1], whole, atol=1e-3, rtol=1e-4)
show_source(carried.open_model)

# %% [markdown]
r"""
`hf download Qwen/Qwen3-0.6B --local-dir qwen` fetches a model of your own. Take two texts with equally many tokens and different answers, and cut its heads with `hooked`, its `head_dim` in place of 24.

## The Wibkat once more
"""

# %%
for layer in (0, 2):  # as published; zeros in layer 2
    more = carried.write(found[layer], texts[0].cpu(), 4)
    print("The Wibk" + "".join(model.pieces(torch.tensor(more))))

# %% [markdown]
r"""
None of the 424,992 numbers knows the name, since it stands in the text. Three heads of layer 2 fetch its letter, and head 3 of layer 1 shows them where. Without the three the model writes another word.

**To remember.** A map shows where a head looks; only a change shows what depends on it.

- A lens says after which layer an answer shows, a patch at which position.
- Judge a cut by the logit difference, over many texts: a probability near 1 hardly moves.
- An early head can act through the maps of later ones.
- Test also what a change should leave alone.

**Sources.** nostalgebraist 2020, "interpreting GPT: the logit lens"; Meng et al. 2022 (arXiv:2202.05262); Michel et al. 2019 (arXiv:1905.10650); Olsson et al. 2022 (arXiv:2209.11895). Text: Python's manual, © Python Software Foundation, PSF License. Recipe, seeds: [evidence](evidence/13_todays_models_evidence.ipynb).

**Next**: the [exercises](exercises/13_todays_models.ipynb), with eight programs found in the wild.
"""
