# %% [markdown]
r"""
{title}

Random signs, some of them said already:

    k f w a c m k f w

**Afterwards you can** explain how two heads copy what nobody taught them; find such heads by a score; cut one, and say what a bright map proves and what not.

{about}

<details><summary>中文摘要 · Chinese</summary>
一段随机字符说两遍:模型怎样抄写?第一层的头把"前一个是谁"写进每个记号,第二层的头去找"谁的前一个和我一样",再取它的字符:这叫归纳头。
用分数找到这两个头,再切掉其中一个,正确率从 1.00 降到 .05 至 .09,或只剩猜测。若训练只用一种长度,分数照样是 1.00,却只是记住了距离。
</details>
"""

# %%
import torch
from jaxtyping import Float
from torch import Tensor
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.chapters.c13_todays_models import figures, induction
from lesson_lib.chapters.c13_todays_models.induction import letters
from lesson_lib.checks import check, hint, predict, solution, warm_up, yours
from lesson_lib.device import quick, to_device
from lesson_lib.masks import causal
from lesson_lib.models.pretrained import cut
from lesson_lib.widgets.heads import HeadExplorer

_ = torch.manual_seed(0)
warm_up()

# %%
predict("what_follows")

# %% [markdown]
r"""
You looked back for the same sign, and read on after it. It works for signs never seen before: **in-context learning**, no weight changes.

## 1 · One look, or two?

Each sign is a one-hot row: 1 at its number, else 0. The last w can find the first one, as 02a's query found the key that fits.
"""

# %%
predict("one_layer_copies")

# %% [markdown]
r"""
The row of the a must first receive the sign before it. That takes a layer of its own:
"""

# %%
figures.two_heads()

# %% [markdown]
r"""
First look, layer 0: each token takes the sign before it into its row. Second look, layer 1: the last w does not ask for w. It asks *who comes after w?*, and finds the a. Keys read the "after w" of a row, values its own sign.
"""

# %% [markdown] tags=["exercise:two_looks"]
# Write both looks, without any training. Where one key is allowed, any query does. With `sharp` at 100 a query picks nearly one key.

# %%
looks = yours("two_looks")
signs = induction.LETTERS  # the sign of each number, 0 to 63
numbers = torch.tensor([signs.index(sign) for sign in "kfwacmkfw"])
x = torch.eye(64)[numbers]  # (9, 64): one-hot rows
found = looks(x, 100)
for place in (6, 7, 8):
    print(letters(numbers)[place], "->", signs[found[place].argmax()])

# %% [markdown]
r"""
Two calls of `attend` copy any piece without repeats, and nothing was learned. Will training find them?

## 2 · Train it

A text is a random piece of 6 to 24 different signs out of 64, said twice. Only the second half, from its second sign on, enters the loss: the rest cannot be known.
"""

# %%
generator = torch.Generator().manual_seed(0)
texts = induction.said_twice(generator, batch=2)
print(tuple(texts.shape), *map(letters, texts), sep="\n")
model = induction.small_llama()
print(model.options.family, len(model.layers), "layers of width 32,")
print(model.options.n_heads, "head each, rotary positions;")
print(sum(p.numel() for p in model.parameters()), "parameters")

# %% [markdown]
r"""
The model is a Llama (06a's layer, pre-norm), as small as can be. A guess is right once in 64 times, .016.
"""

# %% tags=["nbval-ignore-output"]
model, history = induction.train(seed=0)
for row in history.rows:
    print(f"step {row['step']:3}: loss {row['loss']:.2f}")
right = induction.accuracy(model, length=24)  # of new texts
print(f"right: {right:.2f}")

# %% tags=["proof"]
assert quick() or right > 0.95

# %% [markdown]
r"""
First the loss hardly moves from $\ln 64 = 4.16$, then it falls within some two hundred steps, and all are right. A likely reason for the wait: either head helps little without the other. One layer alone gets .22 at best.

**"It knows the texts by heart."** It is tested on new ones.

## 3 · Which head does it?

Look at both heads, on a piece of 11 signs said twice:
"""

# %% tags=["trained"]
texts = induction.said_twice(generator, 1, shortest=11, longest=11)
with torch.no_grad():
    read = model(to_device(texts), weights=True)  # keeps what each head saw
maps = torch.cat([table[0] for table in read.weights]).cpu()  # (2, 22, 22)
HeadExplorer(maps, list(letters(texts[0])), ["layer 0", "layer 1"])

# %% [markdown]
r"""
*Do:* move the query to 15. Its sign stood at 4 before. Layer 0 looks mostly at 14, layer 1 at 5. In the maps: a bright stripe beside the diagonal; in layer 1 one ten places below it.

Large models have thousands of heads. Make a number of it.
"""

# %% [markdown] tags=["exercise:prefix_matching"]
# Write the **prefix matching score**: how much do tokens of the second half look at the one after their first copy?

# %% tags=["nbval-ignore-output"]
score = yours("prefix_matching")
for layer, table in enumerate(maps):
    before = table.diagonal(-1).mean()  # the weight on the token before
    print(f"layer {layer}: before {before:.2f}, match {score(table, 11):.2f}")

# %% tags=["proof"]
assert quick() or score(maps[1], 11) > 0.8 > 0.5 > score(maps[0], 11)

# %% [markdown]
r"""
On 16 texts with pieces of 24 signs layer 1 scores .99, layer 0 .00; layer 0 gives .60 to .70 to the token before, in three seeds. A head that finds the earlier copy of its own sign and hands on what followed is an **induction head**, the other a **previous-token head**. The score finds candidates.

## 4 · A bright map is not a cause

Does the answer depend on a head? Inside `cut` its output is 0; all else stays.
"""

# %%
predict("which_head_is_needed")

# %% tags=["nbval-ignore-output"]
left = {}
for layer in (0, 1):
    with cut(model, [(layer, 0)]):  # (layer, head)
        left[layer] = induction.accuracy(model, length=24)
    print(f"without layer {layer}'s head: {left[layer]:.2f}")

# %% tags=["proof"]
assert quick() or (left[0] < 0.2 and left[1] < 0.05)

# %% [markdown]
r"""
Without layer 1's head a guess is left. Without layer 0's .05 to «.09» in three stored seeds: any sign already said is a better bet than one of 64.

**"The head that looks at the copied sign does the copying alone."** Without layer 0 it does not know where to look. They meet in the residual stream (06a): one writes, the other reads.

## 5 · How far does it go?
"""

# %%
predict("longer_pieces")

# %%
long = induction.said_twice(generator, 1, shortest=48, longest=48)[0]
copied = looks(torch.eye(64)[long], 100)[48:].argmax(-1)
print("by hand:", (copied[:-1] == long[49:]).sum().item(), "of 47")

# %%
predict("one_length_only")

# %%
figures.how_far()

# %% [markdown]
r"""
By hand all are right, up to 64 signs. The trained model, "two layers, 6 to 24", is right wherever it was trained; at 36 .19 to .41 are, at 48 .03 to ‹.09›. Perhaps because the right key was never more than 23 places back in training.

"Two layers, 24 only" learned to *look 23 places back*. At 18 it has .07 at best. Its score is 1.00, the other's .99. Yet the mean weight on the token before is .05 at most, and without layer 0's head .95 to .99 are right. (At 6 one of its seeds is right, too: how, we do not know.)

To test a head's name, change the length, and cut it.

## In real work

Olsson and others (2022) found such heads in models of two and more layers, formed in a short span of training. For a model in a `folder` on your disk:

```python
from transformers import AutoModelForCausalLM

big = AutoModelForCausalLM.from_pretrained(
    folder, attn_implementation="eager"
)
weights = big(tokens, output_attentions=True).attentions
```

A table (b, heads, n, n) for each layer; fast kernels keep none (11b), hence `"eager"`. Weights of padded rows come, too: crop them. Two texts, of 22 and 12 signs:
"""

# %%
short = induction.said_twice(generator, 1, shortest=6, longest=6)
both = torch.zeros(2, 22, dtype=torch.long)  # 0: filler, and a sign, too
both[0], both[1, :12] = texts[0], short[0]
with torch.no_grad():
    tables = model(to_device(both), weights=True).weights[1][:, 0].cpu()
    alone = model(to_device(short), weights=True).weights[1][0, 0].cpu()
assert_close(tables[1, :12, :12], alone, atol=1e-4, rtol=1e-4)

# %% tags=["proof"]
assert quick() or score(alone, 6) > 0.8 > 0.3 > score(tables[1], 11)

# %% [markdown]
r"""
Filler behind a text changes nothing before it. But with length 11 the score reads the wrong diagonal of the second table.

## The nine signs once more
"""

# %%
with torch.no_grad():
    logits = model(to_device(numbers)[None]).logits[0, -1]
said = signs[logits.argmax()]
print("by hand:", signs[looks(x, 100)[-1].argmax()])

# %% tags=["proof"]
assert quick() or said == "a"

# %% [markdown]
r"""
Two looks by hand and 24,736 trained numbers say the same: a.

**To remember.** One head writes who stood before; another asks for it, and copies.

- In the first layer keys are single tokens: to match what stood before takes two.
- Heads meet in the residual stream: a cut far away can break what looks healthy.
- A score finds a head; a cut and another length show what it does.
- Where a rule and a shortcut give the same answer, it tests neither.

**Sources.** Elhage et al. 2021, "A mathematical framework for transformer circuits"; Olsson et al. 2022 (arXiv:2209.11895). Seeds, scores, cuts: [evidence](evidence/13_todays_models_evidence.ipynb).

**Next**: [13c · What is in a model on my disk?](13c_open_a_model.ipynb)
"""
