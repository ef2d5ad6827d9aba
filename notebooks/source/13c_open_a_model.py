# %% [markdown]
r"""
{title}

This course comes with a folder as people publish language models: 424,992 numbers of four bytes.

Give it *A Wibkat is a class. The Wibk*. Nobody wrote *Wibkat*. Which of its numbers know how the name goes on?

**Afterwards you can** compute a head's weights from a file, read out any layer, and find what an answer depends on; also in a folder of your own.

{about}

<details><summary>中文摘要 · Chinese</summary>
打开磁盘上的一个模型:先从文件里的张量自己算出一个头的权重;再在每一层之后提前读出它想说什么(logit lens);
然后切掉头,或把另一段文字的一行换进来。几种工具讲同一个故事:谁找到答案,答案在哪里。同样的代码可以打开你自己的模型。
</details>
"""

# %%
import torch
import torch.nn.functional as F
from jaxtyping import Float
from safetensors.torch import load_file
from torch import Tensor
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.chapters.c13_todays_models import inside_figures, writer
from lesson_lib.checks import check, hint, predict, solution, warm_up, yours
from lesson_lib.device import to_device
from lesson_lib.masks import causal
from lesson_lib.models.pretrained import described, open_model
from lesson_lib.models.pretrained.inside import (
    cut,
    exchanged,
    lens,
    opened,
    without_each,
)
from lesson_lib.positions import rotary
from lesson_lib.widgets.machine import MachineExplorer

_ = torch.manual_seed(0)
warm_up()

# %%
for name in ("config.json", "model.safetensors", "tokenizer.json"):
    print(f"{name:18} {(writer.FOLDER / name).stat().st_size / 1000:6.1f} kB")

# %% [markdown]
r"""
## 1 · A head's weights, from the file

`config.json` says: 4 layers of width 96, 4 heads of 24, 2 heads of keys, rotary positions.
"""

# %%
tensors = load_file(writer.FOLDER / "model.safetensors")
for name, x in tensors.items():
    if name.startswith("model.layers.1.self_attn"):
        print(name.removeprefix("model."), tuple(x.shape))

# %% [markdown]
r"""
Matrices are (out, in): two heads of keys, 24 numbers each, make «48». `o_proj` is 04's output matrix. Layers and heads count from 0. Published Llamas turn the columns $j$ and $j + 12$ of a head together: `rotary(q, pairing="half-split")`. Only the weights are asked for, so any values do: `attend(q, k, k, mask=…).weights`.
"""

# %% [markdown] tags=["exercise:head_weights"]
# Write the weights of one head, from the tensors alone: its queries and its keys, turned; then `attend`.

# %% [markdown]
r"""
The library opens the same folder. Do its weights equal yours, in layer 1, head 3?
"""

# %%
model = open_model(writer.FOLDER)
text = "A Wibkat is a class. The Wibk"
numbers = model.numbers(text)  # 29 characters behind a start token
with torch.no_grad():
    read = model(to_device(numbers)[None], weights=True)

layer = "model.layers.1"
x = read.stream[1][0].cpu()  # [0]: as they come in, [1]: behind layer 0
x = F.rms_norm(x, (96,), tensors[f"{layer}.input_layernorm.weight"], eps=1e-6)
w_query = tensors[f"{layer}.self_attn.q_proj.weight"]
w_key = tensors[f"{layer}.self_attn.k_proj.weight"]
mine = yours("head_weights")(x, w_query, w_key, head=3, d_k=24)
assert_close(mine, read.weights[1][0, 3].cpu(), atol=1e-4, rtol=1e-3)
signs = model.pieces(numbers)
for row in (7, 29):
    best = mine[row].argmax()
    print(
        f"{signs[row]} ({row}) looks at {signs[best]} ({best}): {mine[row, best]:.2f}"
    )

# %% [markdown]
r"""
All 30 · 30 weights agree. This head looks at the character before. What will that be good for?

## 2 · What does it say?
"""

# %%
predict("never_seen_name")


# %%
def what_next(text):
    with torch.no_grad():
        logits = model(to_device(model.numbers(text))[None]).logits[0, -1].cpu()
    p = logits.softmax(-1)
    best = model.pieces(p.argmax()[None])[0]
    print(f"{text!r}: {best!r} has {p.max():.2f}, 'a' {p[a]:.2f}")
    return p


a = model.numbers("a")[-1]
assert what_next(text)[a] > 0.99
_ = what_next("A Mumpel is a class. The Wibk")  # the control
_ = what_next("2 + 3 = ")

# %% [markdown]
r"""
Without Wibkat *a* gets little. The sum is wrong: it knows spelling.

It was trained here, in a quarter of an hour: on 06e's manual, partly with an invented name for a repeated word, and on random signs said twice. It needs 1.98 bits per character (06e's 5-gram count 2.17), and copies the fifth letter of 161 of 200 invented names. Far behind 128 characters, its longest text, it falls apart ([evidence](evidence/13_todays_models_evidence.ipynb)).

## 3 · Layer by layer

Read the row of the last *k* behind each layer as if the model ended there: the **logit lens**. We print the share of *a*, and its *lead*: its logit minus the best other.
"""

# %% [markdown] tags=["exercise:read_early"]
# Write it: what stands between the last layer and the logits?

# %%
predict("which_layer")


# %%
def share_and_lead(logits):
    others = logits.clone()
    others[a] = -torch.inf
    return f"{logits.softmax(-1)[a]:.2f}, lead {logits[a] - others.max():4.1f}"


early = yours("read_early")
gain, table = tensors["model.norm.weight"], tensors["lm_head.weight"]
for layer, rows in enumerate(read.stream, start=-1):  # -1: as it comes in
    logits = early(rows[0].cpu(), gain, table)[-1]
    print(f"layer {layer:2}: {share_and_lead(logits)}")
    ours = lens(model, read)[layer + 1, 0, -1].cpu()
    assert_close(logits, ours, atol=1e-3, rtol=1e-4)

# %% [markdown]
r"""
**"Each layer brings the answer a little nearer."** Layer 1 does not; layer 2 fetches it, layer 3 sharpens.

## 4 · Who fetched it?

*Do:* move the layer to 2, step through the heads. Then layer 1, head 3.
"""

# %%
MachineExplorer(
    lambda text: opened(model, text), [text, "A Wibkot is a class. The Wibk"]
)

# %% [markdown]
r"""
In the last row heads 1, 2 and 3 of layer 2 give ‹.99› to the *a* of Wibkat: **induction heads** ([13b](13b_induction.ipynb) lets you write them). It takes two looks: layer 1 writes into each row who stood before it; layer 2 asks who stands behind *k*, and finds the *a*.

A map says where a head looks. `cut` lets a head add nothing: an **ablation**.
"""

# %%
predict("cut_the_brightest")

# %%
left = without_each(model, text, int(a))  # a cut for every head by itself
assert left[2].min() > 0.85 and left[1, 3] < 0.1
inside_figures.without_heads(left)

# %% [markdown]
r"""
.90 is left. **"So the head hardly matters."** Look at the lead:
"""


# %%
def without(*heads):
    with cut(model, heads), torch.no_grad():
        logits = model(to_device(numbers)[None]).logits[0, -1]
    print(heads, share_and_lead(logits))


without()
without((2, 1))
without((2, 2))
without((2, 3))

# %%
predict("how_many_cuts")

# %%
without((2, 1), (2, 2))
without((2, 1), (2, 3))
without((2, 2), (2, 3))

# %% [markdown]
r"""
One cut takes half of the lead, and the share hides it. Two cost more than twice that.

Which cell of the table surprises you? The row of the last *k* gives *a* nothing in layer 1's head 3, yet its cut leaves ‹.07›. What do layer 2's heads give to *a*, with it and without?
"""

# %%
with cut(model, [(1, 3)]):
    lost = opened(model, text)
for seen in (read, lost):
    print(*(f"{share:.2f}" for share in seen.weights[2][0, :, 29, 7].tolist()))

# %% [markdown]
r"""
**"The head that looks at the answer finds it alone."** They find it worse. But «.57» and «.64» remain, so this is not all: a cut takes all that a head does.

## 5 · Where is the answer?

Take a second text, *Wibkot* for *Wibkat*, and put one of its rows in the place of ours: **activation patching**.
"""

# %%
predict("row_to_carry")

# %%
other = "A Wibkot is a class. The Wibk"
moved = exchanged(model, text, other)  # [1]: behind layer 1
assert moved[1, 7] > 0.9 > 0.1 > moved[1, 29]
assert moved[2, 29] > 0.9 > 0.1 > moved[2, 7]
inside_figures.rows_exchanged(moved, model.pieces(numbers))

# %% [markdown]
r"""
Behind layers 0 and 1 the answer stands at place 7, where it was written; behind layer 2 in the last row, and nobody needs place 7 any more. Lens and patches agree.

## 6 · Where does a head look that finds nothing?
"""

# %%
seen = opened(model, "Wq7$kLm zXg0")  # nothing repeats
rests = seen.weights[2][0, :, 5:, 0].mean(-1)  # rows 5 to 12 on the start token
print(*(f"{share:.2f}" for share in rests.tolist()))

# %% [markdown]
r"""
Layer 2's heads find no copy, and give the start token «.40» to «.79»; even weights would give .11. Untaught, it became their sink. 13a's gpt-oss has sinks built in.

## 7 · Yours

A folder of your own may hold any family of 13a's. Take two texts with equally many tokens and different answers, say two countries whose capital is asked. `cuts` takes a pass for each head, `rows` one for each layer and token.
"""

# %%
FOLDER = writer.FOLDER  # or "path/to/a/folder"
TEXT = "A Wibkat is a class. The Wibk"
OTHER = "A Wibkot is a class. The Wibk"

# %%
yours_now = open_model(FOLDER)
print(described(yours_now).split("\n")[0])
explorer = MachineExplorer(lambda t: opened(yours_now, t), [TEXT, OTHER])
cuts = inside_figures.without_heads(without_each(yours_now, TEXT))
rows = inside_figures.rows_exchanged(
    exchanged(yours_now, TEXT, OTHER), opened(yours_now, TEXT).pieces
)
# write explorer, cuts or rows in a new cell to see it

# %% [markdown]
r"""
## In real work

`hf download Qwen/Qwen3-0.6B --local-dir qwen` fetches a folder; all above needs no network. In transformers a *hook*, a function that runs before a module, cuts a head (`d_v` is the file's head_dim, `theirs` the model, `tokens` a text's):

```python
def silence(module, given):  # before the output matrix
    (outputs,) = given
    heads = outputs.unflatten(-1, (-1, d_v)).clone()
    heads.select(-2, head).zero_()
    return (heads.flatten(-2),)


part = theirs.get_submodule("model.layers.1.self_attn.o_proj")
handle = part.register_forward_pre_hook(silence)
changed = theirs(tokens).logits
handle.remove()  # or every later call is cut, too
```

The bug that people meet is the hook that stays. In a batch padded on the left, count from the end.

## The Wibkat once more
"""

# %%
of_one_head = 4 * 24 * 96  # its rows or columns of q, k, v, o
print(f"{of_one_head:,} of {sum(p.numel() for p in model.parameters()):,}")
with cut(model, [(1, 3)]):
    _ = what_next(text)
_ = what_next(text)

# %% [markdown]
r"""
Without what these «9,216» numbers make (half of them serve head 2, too) *a* has «.07», as if Mumpel stood there. They mark who stood before; layer 2's heads fetch the row with the mark. What else they do we did not find out.

**To remember.** A map shows where a head looks, a lens what a row says, a cut or a patch what the answer depends on.

- A head's weights: rows of two matrices, a turn, `attend`.
- Judge a cut by logits: a share near 1 hides it.
- What finds nothing here rests on the first token.

**Sources.** nostalgebraist 2020, "interpreting GPT: the logit lens"; Meng et al. 2022 (arXiv:2202.05262); Michel et al. 2019 (arXiv:1905.10650); Xiao et al. 2023 (arXiv:2309.17453). Text: Python's manual, © Python Software Foundation, PSF License. Recipe, seeds: [evidence](evidence/13_todays_models_evidence.ipynb).

**Next**: the [exercises](exercises/13_todays_models.ipynb), with eight programs found in the wild.
"""
