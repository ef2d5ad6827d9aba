# %% [markdown]
r"""
{title}

You get names, shapes and a few constructors. In a file of your own you write attention, heads, positions, a layer and a Transformer. Each stage is judged by the same properties as the course's own code, and by equality with torch. At the end your Transformer learns to translate dates, and your code opens the model of part 13c.

**Afterwards you can** say: I have written this myself, and it runs real weights.

{about}

<details><summary>中文摘要 · Chinese</summary>
在自己的文件 capstone.py 里,从零写出注意力、多头、位置编码、一层和整个 Transformer。每一关都由性质测试和与 torch 的比较来判定;
最后用 06b 的日期训练它,并打开 13c 的模型。通过的内容写成一页,给你自己,也给老师。
</details>

## How it works

1. Run the next cell; then, in a cell of your own, `begin()`. It makes `capstone.py` beside this notebook. (In a terminal: `make capstone`.) An older file is never touched; to start over, rename it.
2. Open that file from the file browser on the left, and drag its tab beside this notebook. Each function says what goes in and what must come out.
3. Write a stage, save (Ctrl + S), and run its cell below. The file is read anew each time, and each stage uses those before it.

The judge says which test fails, and by how much; it compares in float32, to 1 in 10,000. What your file prints is shown, too. There is no solution, and few hints: you have the parts. Stuck for more than half an hour? Each stage names the parts that taught it.

**You are done** when five stages say *passed*, nine of ten test dates are right, and the page is written. A stage that fails looks like this:

```
✗ Stage 1, attention: not yet
  properties of attention  ✗ 1/sqrt(d_k) is missing ...
  equal to torch's         ✗ 15 of 15 numbers differ ...
```
"""

# %%
from lesson_lib.chapters.c14_capstone.judge import begin, page, stage, train

# %% [markdown]
r"""
## Stage 1 · Attention

*From parts 02a, 02b and 03. About 30 minutes.*

One function, with any leading axes. The judge disturbs the future, shuffles keys, hides everything from a query, and feeds allowed scores of $-10^{30}$, so that filling with $-10^9$ is no mask. A query that may look at nothing gets zeros, and its gradient is finite: a mask that is *added* as $-\infty$ makes that gradient nan.
"""

# %%
stage(1)

# %% [markdown]
r"""
## Stage 2 · Heads

*From parts 04 and 11b. About 50 minutes.*

The four matrices are made for you. You split, turn (if there is a `turn`), share the heads of keys, attend, join, and multiply. With the same matrices, `nn.MultiheadAttention` must give the same numbers, on a padded batch, too; shared keys are compared with `enable_gqa` of torch's fused attention, and `turn` with a plain factor.
"""

# %%
stage(2)

# %% [markdown]
r"""
## Stage 3 · Positions

*From parts 05a, 05b and 13c. About 40 minutes.*

Two ways: the table of 2017, added once, and the turn of today's models, in every layer. For the turn, mind which columns are a pair: here column $j$ and column $j + d/2$, as the model of 13c has it. The judge compares it with a product of complex numbers.
"""

# %%
stage(3)

# %% [markdown]
r"""
## Stage 4 · A layer

*From part 06a. About 40 minutes.*

Pre-norm, with and without a look at a memory. The judge gives your weights to torch's own layers.
"""

# %%
stage(4)

# %% [markdown]
r"""
## Stage 5 · A Transformer and a model of today

*From parts 06b, 13a and 13c. About two hours: the two halves are judged apart.*

`Translator` is yours from its first line: one table of signs for both sides, positions, two stacks, logits. It needs three masks: padding in the encoder, padding in the memory, and no look ahead. The judge pads, shuffles and looks ahead.

`logits_of` is the model of 13c, which lies in the library: load its tensors into your `Heads`, and get its logits.
"""

# %%
stage(5)

# %% [markdown]
r"""
## It learns

The loss and the loop are those of 06b: 850 steps of 48 dates. At least 90 % of 1,000 test dates must be right, to the last character, on days that were never trained on.

If the loss stays high: how long is a row of your table of signs, beside a row of positions? `nn.Embedding` draws with variance 1: its rows are already $\sqrt{d_{model}}$ long. Multiply by $\sqrt{d_{model}}$ only what you drew with variance $1/d_{model}$.
"""

# %%
train()

# %% [markdown]
r"""
## A page of what passed

`page()` judges all stages once more, trains, and writes `capstone.html`: each test, the share of right dates, the day, and a mark of your file (the beginning of its hash). It holds no name. Stages that fail stand there as failed. Keep it, or hand it in together with `capstone.py`.
"""

# %%
page()

# %% [markdown]
r"""
**And now?** Change something that the course has not tried: another norm, a window, a sink, fewer heads of keys. Train again, with three seeds, and say what it changed. Then open a small Llama from the hub with your own code: the names are those that you have used; look in its config.json for `rope_theta` and for tied embeddings.

**Sources.** Vaswani et al. 2017 (arXiv:1706.03762); Su et al. 2021 (arXiv:2104.09864), for the turn; Ainslie et al. 2023 (arXiv:2305.13245), for shared keys; Touvron et al. 2023 (arXiv:2302.13971), for the model of 13c.
"""
