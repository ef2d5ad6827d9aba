# %% [markdown]
r"""
# 13c · What is in a model on my disk?

A folder with a language model, as people publish them. It came with this course.
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
from lesson_lib.models.pretrained import (
    carried,
    cut,
    described,
    lens,
    open_model,
    opened,
    without_each,
)
from lesson_lib.positions import rotary
from lesson_lib.widgets.machine import MachineExplorer

_ = torch.manual_seed(0)
for name in ("config.json", "model.safetensors", "tokenizer.json"):
    print(f"{name:18} {(writer.FOLDER / name).stat().st_size / 1000:6.1f} kB")

# %% [markdown]
r"""
Given *A Wibkat is a class. The Wibk*, it goes on with *a*. Nobody ever wrote *Wibkat*. Which of its 424,992 numbers did that?

**Afterwards you can** compute a head from its file, read out any layer, and find what an answer depends on; also in a folder of your own.

**Time** about 45 minutes. **You need** parts [04](04_multi_head.ipynb), [05b](05b_rotation.ipynb), [06a](06a_layer.ipynb), [06e](06e_gpt.ipynb), [11b](11b_exact_and_fast.ipynb) and [13a](13a_today.ipynb). **Exercises**: [exercises/13_todays_models](exercises/13_todays_models.ipynb).

<details><summary>中文摘要</summary>
打开磁盘上的一个模型:先从文件里的张量自己算出一个头;再在每一层之后提前读出它想说什么;然后切掉头、交换一行。
最亮的头权重 .99,切掉它答案仍有约 .9;切掉一个从不看答案的头,答案却没了。换掉一行就能换掉答案,那一行在第 2 层之前是被抄的字母,之后是最后一个字母。
</details>
"""

# %%
warm_up()

# %% [markdown]
r"""
## 1 · A head from its file

`model.safetensors` holds tensors by name. Those of the first layer's attention, and its norm:
"""

# %%
tensors = load_file(writer.FOLDER / "model.safetensors")
for name, x in tensors.items():
    if name.startswith("model.layers.0.self_attn") or ".0.input" in name:
        print(name.removeprefix("model."), tuple(x.shape))

# %%
predict("shape_of_keys")

# %% [markdown] tags=["exercise:head_weights"]
# Write the weights of one head, from the tensors alone: its rows of both matrices, turned, and `attend`.

# %% [markdown]
r"""
The library opens the same folder, whatever the family. Are its numbers yours?
"""

# %%
model = open_model(writer.FOLDER)
text = "A Wibkat is a class. The Wibk"
numbers = model.numbers(text)  # 29 characters behind a start token
print(len(numbers), model.pieces(numbers)[:9])

x = tensors["model.embed_tokens.weight"][numbers]
x = F.rms_norm(x, (96,), tensors["model.layers.0.input_layernorm.weight"], eps=1e-6)
first = "model.layers.0.self_attn"
w_query, w_key = tensors[f"{first}.q_proj.weight"], tensors[f"{first}.k_proj.weight"]
mine = yours("head_weights")(x, w_query, w_key, head=3, d_k=24)
with torch.no_grad():
    read = model(to_device(numbers)[None], weights=True)
assert_close(mine, read.weights[0][0, 3].cpu(), atol=1e-5, rtol=1e-4)

# %% [markdown]
r"""
All 900 are. Layers and heads count from 0, as in the file.

## 2 · What does it say?
"""

# %%
predict("never_seen_name")


# %%
def shares(text):
    with torch.no_grad():
        logits = model(to_device(model.numbers(text))[None]).logits[0, -1].cpu()
    p = logits.softmax(-1)
    best = p.topk(2)
    named = zip(model.pieces(best.indices), best.values.tolist(), strict=True)
    print(repr(text), *(f"{sign!r} {share:.2f}" for sign, share in named))
    return p


p = shares(text)
assert p[model.numbers("a")[-1]] > 0.99
_ = shares("A Mumpel is a class. The Wibk")  # the control
_ = shares("2 + 3 = ")

# %% [markdown]
r"""
The second line is the control: without Wibkat in the text, *a* gets little. The third: it knows spelling, not sums.
"""

# %%
inside_figures.stored_bits()

# %% [markdown]
r"""
It was trained here, in a quarter of an hour, on 06e's manual, on pages where a repeated word has become an invented one, and on random signs said twice. Of names drawn at random it copies the fifth letter in .81 of 200. It never saw a text longer than 128 characters: at 192 its surprise doubles ([evidence](evidence/13_todays_models_evidence.ipynb)).

## 3 · Layer by layer

Read the row of the last *k* behind each layer as if the model ended there: the **logit lens**.
"""

# %% [markdown] tags=["exercise:read_early"]
# Write it: what stands between the last layer and the logits?

# %%
predict("which_layer")

# %%
early = yours("read_early")
gain, table = tensors["model.norm.weight"], tensors["lm_head.weight"]
a = model.numbers("a")[-1]
for layer, rows in enumerate(read.stream, start=-1):  # -1: as it comes in
    logits = early(rows[0].cpu(), gain, table)[-1]
    print(f"{layer:2}: {logits.softmax(-1)[a]:.2f}", end="   ")
    assert_close(
        logits, lens(model, read)[layer + 1, 0, -1].cpu(), atol=1e-3, rtol=1e-4
    )

# %% [markdown]
r"""
**"Each layer brings the answer a little nearer."** Here it comes in one step, with layer 2.

## 4 · Who fetched it?
"""

# %%
MachineExplorer(
    lambda text: opened(model, text), [text, "A Wibkot is a class. The Wibk"]
)

# %% [markdown]
r"""
*Do:* move the query to the last *k*, 29, the layer to 2, and step through the heads. Then layer 1, head 3.

In layer 2 heads 1, 2 and 3 give .99 of their weight to the *a* of Wibkat. In layer 1 head 3 looks at the character before. These are two looks: layer 1 writes into each row who stood before it; layer 2 asks for that, and finds the *a* behind *k* ([13b](13b_induction.ipynb) lets you write them).

A map says where a head looks, no more. `cut` lets a head add nothing; all else stays.
"""

# %%
predict("cut_the_brightest")

# %%
left = without_each(model, text, int(a))  # a cut for every head by itself
assert left[2].min() > 0.85 and left[1, 3] < 0.1
inside_figures.without_heads(left)

# %% [markdown]
r"""
Any of the three bright heads can go: the others do the same.
"""

# %%
predict("how_many_cuts")

# %%
for heads in [(2, 1), (2, 2)], [(2, 1), (2, 3)], [(2, 1), (2, 2), (2, 3)]:
    with cut(model, heads), torch.no_grad():
        logits = model(to_device(numbers)[None]).logits[0, -1]
    print(heads, f"{logits.softmax(-1)[a]:.2f}")

# %% [markdown]
r"""
In the table one head is missed at once: layer 1, head 3, which never looked at the *a*. **"The brightest head is the one that matters."** Here it is one that looks elsewhere: without it the others do not know where to look. And a cut that changes nothing does not show that a head is useless.

## 5 · Where is the answer?

Take a second text of the same length, *Wibkot* for *Wibkat*. Carry one row of it over:
"""

# %%
predict("row_to_carry")

# %%
other = "A Wibkot is a class. The Wibk"
moved = carried(model, text, other)  # each row behind each layer
assert (
    moved[1, 7] > 0.9
    and moved[1, 29] < 0.1
    and moved[2, 29] > 0.9
    and moved[2, 7] < 0.1
)
inside_figures.rows_carried(moved, model.pieces(numbers))

# %% [markdown]
r"""
Behind layers 0 and 1 the answer stands at place 7, where it was written. Behind layer 2 it stands in the last row, and nobody needs place 7 any more. Lens, cut and exchange tell one story.

## 6 · Where does a head look that finds nothing?
"""

# %%
with torch.no_grad():
    nothing = model(to_device(model.numbers("Wq7$kLm zXg0")[None]), weights=True)
for layer in (1, 2):
    rests = nothing.weights[layer][0, :, 5:, 0].mean(-1)  # on the start token
    print(f"layer {layer}:", *(f"{share:.2f}" for share in rests.tolist()))

# %% [markdown]
r"""
No character repeats, so layer 2's heads find no copy. They rest on the start token: it became their sink, untaught. 13a's gpt-oss has sinks built in.

## 7 · Yours

A folder of your own may hold any family of 13a's, GPT-2 or BERT. The two texts need equally many tokens, and different answers.
"""

# %%
FOLDER = writer.FOLDER  # or "path/to/a/folder"
TEXT, OTHER = "A Wibkat is a class. The Wibk", "A Wibkot is a class. The Wibk"

# %%
yours_now = open_model(FOLDER)
print(described(yours_now).split("\n")[0])
explorer = MachineExplorer(lambda text: opened(yours_now, text), [TEXT, OTHER])
cuts = inside_figures.without_heads(without_each(yours_now, TEXT))
rows = inside_figures.rows_carried(
    carried(yours_now, TEXT, OTHER), opened(yours_now, TEXT).pieces
)
# one of them in the last line of a cell, and it shows: explorer, cuts or rows

# %% [markdown]
r"""
## In real work

The hub's own tool fetches a folder, `hf download Qwen/Qwen3-0.6B --local-dir qwen`; all above runs without a network. In transformers a hook cuts a head:

```python
def silence(module, given):  # before the output matrix
    outputs = given[0].clone()
    outputs[..., head * d_v : (head + 1) * d_v] = 0
    return (outputs,)


part = theirs.model.layers[layer].self_attn.o_proj
handle = part.register_forward_pre_hook(silence)
changed = theirs(tokens).logits
handle.remove()  # or every later call is cut, too
```

The bug that people meet is the hook that stays. In a batch padded on the left, count places from the end.

## The Wibkat once more
"""

# %%
with cut(model, [(1, 3)]):
    _ = shares(text)
_ = shares(text)

# %% [markdown]
r"""
**To remember.** A map shows where a head looks, a lens when the answer is there, a cut or an exchange what it depends on.

- A head is a few rows of two matrices, a turn, and `attend`.
- Norm and table read out any layer.
- Heads that do the same hide each other from single cuts.
- What finds nothing rests on the first token.

**Sources.** nostalgebraist 2020, "interpreting GPT: the logit lens"; Meng et al. 2022 (arXiv:2202.05262); Michel et al. 2019 (arXiv:1905.10650); Xiao et al. 2023 (arXiv:2309.17453). Text: the Python documentation, © Python Software Foundation, PSF License. Recipe, seeds: [evidence](evidence/13_todays_models_evidence.ipynb).

**Next**: the [exercises](exercises/13_todays_models.ipynb), with eight programs found in the wild.
"""
