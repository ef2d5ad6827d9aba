# %% [markdown]
r"""
# 07c · What does reach buy in pictures?

Each real picture below, on the left, holds the same digit, 0 or 1, at both ends, written differently. A network drew those on the right, and its ends agree only by luck. Its outermost pixels, left and right, share nothing that they are drawn from. Would
attention?

**Afterwards you can** put attention into a CNN; say whether a task needs attention or only reach; write the loss by which a detector that answers with a set learns kinds.

**Time** about 45 minutes. **You need** parts [04](04_multi_head.ipynb) and [07b](07b_data_or_prior.ipynb). **Exercises**:
[exercises/07_attention_vs_cnn](exercises/07_attention_vs_cnn.ipynb).

<details><summary>中文摘要</summary>
SAGAN 在卷积网络中间加一块注意力:y = x + γ·attend,γ 从 0 开始。两端必须一致的图片需要的是“够得着”,不是注意力本身:足够宽的卷积也能做到。
DETR 用几个查询去找物体,物体是集合,没有顺序,所以要先做最优匹配,才能算损失;没有匹配,只有单独的物体能被找到。
</details>
"""

# %%
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.chapters.c07_attention_vs_cnn import detr, figures, sagan
from lesson_lib.chapters.c07_attention_vs_cnn.experiments import detr as detecting
from lesson_lib.chapters.c07_attention_vs_cnn.experiments import sagan as painting
from lesson_lib.chapters.c07_attention_vs_cnn.scenes import KINDS
from lesson_lib.checks import check, hint, predict, solution, warm_up
from lesson_lib.scores import dot
from lesson_lib.show import show

_ = torch.manual_seed(0)
warm_up()

# %%
real = painting.draw("test", 16, torch.Generator().manual_seed(0)).canvas  # (16, 8, 24)
figures.drawn(real, "nothing")

# %% [markdown]
r"""
## 1 · Two networks that train each other

A **generator** makes pictures of random numbers, the **noise**. A **discriminator** gets real and made pictures and learns to tell them apart; the generator learns to make it fail. Together they are a **GAN**. This generator:
"""


# %%
def in_lines(g, z):
    x = g.start(z.flatten(2).mT.reshape(len(z), -1, 1))  # a matrix for each place
    x = x.view(len(z), 12, 64).mT.unflatten(-1, (2, 6))  # (b, 64, 2, 6)
    x = g.first(F.interpolate(g.coarse(x), scale_factor=2))  # (b, 32, 4, 12)
    if g.middle:
        x = g.middle(x).output
    x = g.second(F.interpolate(x, scale_factor=2))  # (b, 16, 8, 24)
    return torch.sigmoid(g.paint(x))[:, 0]  # (b, 8, 24)


z = sagan.noise(2, torch.Generator().manual_seed(0))  # (2, 8, 2, 6)
for middle in ("nothing", "attention"):
    generator = sagan.Generator(middle).eval()
    assert_close(in_lines(generator, z), generator(z).canvas)

# %% [markdown]
r"""
Each of $2 \times 6$ places has noise of its own: eight numbers. `coarse`, `first` and `second` are $3 \times 3$ convolutions; `interpolate` doubles the map. How far does the news of one place's noise travel? Which of the six columns can change each end of the picture?
"""

# %%
for middle in ("nothing", "attention"):
    generator = sagan.Generator(middle).eval()
    if middle == "attention":
        generator.middle.gamma.data.fill_(0.5)  # how much attention adds: below
    for end, pixels in (("left", slice(8)), ("right", slice(16, 24))):
        z = sagan.noise(1, torch.Generator().manual_seed(0)).requires_grad_()
        (moved_by,) = torch.autograd.grad(generator(z).canvas[..., pixels].sum(), z)
        seen = moved_by.abs().amax((0, 1, 2)) > 0  # a gradient that is not 0
        columns = seen.nonzero()[:, 0].tolist()
        print(f"{middle:9} {end:5} {columns}")

# %% [markdown]
r"""
With convolutions alone each end sees four columns, and both see only columns 2 and 3: an agreement would have to rest on these. With attention in the middle both see all.

## 2 · Attention between places

A **feature map** is what a convolution leaves: a grid with a vector at each place. To attention it is one more set. SAGAN, a GAN of 2018, puts this block into both networks:

$$y_i = x_i + \gamma \sum_j \operatorname{softmax}_j(q_i \cdot k_j)\, v_j$$

$q$, $k$ and $v$ are matrices times $x$. $\gamma$ is one learned number.
"""

# %% [markdown] tags=["exercise:place_attention"]
# Write the block with `attend`.

# %% [markdown]
r"""
In the library it is `SelfAttention2d`; its matrices are $1 \times 1$ convolutions, and its scores have no root, as in the paper: `score=dot`. And $\gamma$ starts at 0.
"""

# %%
predict("gamma_moves")

# %%
block, x = sagan.SelfAttention2d(4, d_k=2), torch.randn(1, 4, 2, 3)
block(x).output.square().sum().backward()
assert torch.equal(block(x).output, x)  # gamma is 0: nothing is added
show(gamma=block.gamma.grad, query=block.query.weight.grad.abs().max())  # gradients

q, k, v = (f(x).flatten(2).mT for f in (block.query, block.key, block.value))
found = attend(q, k, v, score=dot).output
block.gamma.data.fill_(0.7)  # switched on
assert_close(block(x).output, x + 0.7 * found.mT.reshape(x.shape))

# %% [markdown]
r"""
**"What is multiplied by 0 never learns."** $\gamma$'s gradient is one number, the gradient at the block's output times what attention would add, summed: hardly ever 0. The query matrix has gradient 0 at the first step, and a real one as soon as $\gamma$ has moved.

## 3 · Who agrees?

A small classifier reads both ends. **Kappa** says how much more often they agree than chance:

$$\kappa = \frac{\text{agreement} - \text{chance}}{1 - \text{chance}}$$

By hand: 80 of 100 agree, 50 would by chance, $\kappa = 0.3 / 0.5 = 0.6$. Three generators are trained, equal but for their middle; the first figure's had nothing there.
"""

# %%
predict("who_agrees")

# %%
figures.agreement()

# %% [markdown]
r"""
With nothing kappa stays at chance, 0.02 at most. With attention it reaches 0.90 to 0.94. **"So attention makes far parts agree."** The wide convolution, 17 places wide, so that each place of the map, 12 wide, sees eight to either side, reaches 0.87 to 0.91. **Not attention: reach.** Attention has it without being told the distance.

Stop at 600 of these 2,400 steps, and kappa is 0.03 to 0.17 with attention: one would have reported no benefit. Two of the finished generators:
"""

# %%
figures.drawn(real, "attention", "wide convolution")

# %% [markdown]
r"""
Of these 16 the classifier reads the same digit twice in 15 with attention, in 14 with the wide convolution; of the first figure's it was 9: half of 16 agree by luck.

## 4 · Objects found by questions

A detector says which objects a picture shows, and where: a kind and a **box** for each. Their number is unknown, and they have no order. DETR (2020) lets a CNN make a map; learned vectors, the **queries**, ask its cells. Ours has five queries, $6 \times 6$ cells, and scenes of one to three shapes on $24 \times 24$ pixels:
"""


# %%
def answers(model, canvas):
    cells = model.norm(model.stem(canvas).flatten(2).mT)  # (b, 36, 48): the CNN's map
    cells = model.encoder(cells + model.positions(36)).output  # cells attend to cells
    asking = model.queries.expand(len(canvas), -1, -1)  # (b, 5, 48)
    asking, *_ = model.decoder(asking, cells)  # to each other, then to the cells
    return model.kind(asking), model.box(asking).sigmoid()  # (b, 5, 5), (b, 5, 4)


given = detecting.scenes("test")
canvas, model = given.canvas[:2, None], detr.Detr().eval()
kinds, boxes = answers(model, canvas)
assert_close(kinds, model(canvas).logits)
assert_close(boxes, model(canvas).boxes)
print("kinds:", ", ".join(KINDS), "and no object")
figures.found_in(given)

# %% [markdown]
r"""
Each query gives five scores, for four kinds and "no object", and a box as four shares of the canvas: the centre across and down, width, height. After 1,000 steps the queries find 94 to 95 % of the objects, right in kind and place; the numbers are how sure they are. They overlook one disc here. The level of chance: answers given to the wrong
scene find less than 2 %.

### Who answers for what?

While it trains, each object goes to a query of its own, so that the sum of costs is smallest: the **matching**. A cost is high where box and kind fit badly:

| | object A | object B |
|---|---|---|
| query 0 | 1 | 2 |
| query 1 | 5 | 9 |
| query 2 | 6 | 8 |
"""

# %%
predict("cheapest_pairs")

# %% [markdown] tags=["exercise:set_loss_of_kinds"]
# With the matching given, the kinds have an ordinary loss.

# %% [markdown]
r"""
**"Give object 1 to query 1, and training will sort it out."** Try the simple rule:
"""

# %%
predict("without_matching")

# %%
figures.by_objects()

# %% [markdown]
r"""
**Recall** is the share of the objects that are found. Without the matching it is 96 to 98 % for objects that stand alone, and 2 to 9 % for those in company.

And where is nothing gained? In the curve "no encoder" cells do not look at each other, and recall is 94 %, as before. A likely reason, not tested here: the questions look at all cells anyway, and the convolutions under them see $17 \times 17$ of $24 \times 24$ pixels.

## In real work

scipy solves the matching, picture by picture. Lists of objects are padded. The cost of padding means nothing, and matched it takes a query away, here query 0:
"""

# %%
from scipy.optimize import linear_sum_assignment

cost = torch.tensor([[1.0, 2, -9], [5, 9, 0], [6, 8, 0]])  # last column: padding
there = torch.tensor([True, True, False])
for name, table in (("right", cost[:, there]), ("with padding", cost)):
    queries, objects = linear_sum_assignment(table.numpy())
    pairs = dict(zip(objects.tolist(), queries.tolist(), strict=True))
    print(f"{name}: A to query {pairs[0]}, B to query {pairs[1]}")

# %% [markdown]
r"""
Networks that draw from noise by small steps put attention on their small maps, $16 \times 16$ or $8 \times 8$, where a table of weights is cheap. In today's models a click on a dog becomes a query, as in DETR.

## The two ends once more
"""

# %%
figures.places()

# %% [markdown]
r"""
Two places of the trained generator, one in each half. Neither looks at the other: both look most at the same third place, with 0.26 and 0.12, where even weights would be $1/48 = 0.02$. There, it seems, they read which digit to draw.

**To remember.** Before you add attention, ask whether the task lacks reach.

- The block: $x + \gamma \cdot$ attention, $\gamma = 0$ at the start.
- Where far parts must agree, attention helps; so does a kernel that is wide enough.
- Queries answer with a set; a set needs a matching before it has a loss.
- In our scenes an encoder gained nothing.

**Sources.** Zhang et al. 2018 (arXiv:1805.08318); Carion et al. 2020 (arXiv:2005.12872); Cohen 1960. Seeds, controls, claims: [evidence](evidence/07_attention_vs_cnn_evidence.ipynb).

**Next**: [08a](08a_remembering.ipynb): what did the recurrent network lack?
"""
