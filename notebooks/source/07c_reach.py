# %% [markdown]
r"""
{title}

Each real picture, on the left, holds the same digit, 0 or 1, at both ends, written differently. A network drew those on the right, and their two ends agree only by luck. Would attention make the ends agree?

**Afterwards you can** put attention into a CNN; say whether a task needs attention or only reach; write the loss by which a detector learns kinds.

{about}

<details><summary>中文摘要 · Chinese</summary>
SAGAN 在卷积网络中间加一块注意力:y = x + γ·attend,γ 从 0 开始。它能让图片的两端一致吗?还有什么也能做到?
DETR 用几个查询去找物体。物体是集合,没有顺序,那么损失该怎么算?
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
from lesson_lib.checks import check, hint, predict, solution, warm_up, yours
from lesson_lib.scores import dot

_ = torch.manual_seed(0)
warm_up()

# %%
real = painting.draw("test", 16, torch.Generator().manual_seed(0)).canvas  # (16, 8, 24)
figures.drawn(real, "nothing")

# %% [markdown]
r"""
## 1 · Two networks that train each other

A **generator** turns random numbers, the **noise**, into pictures. A **discriminator** learns to score real pictures above made ones, the generator to raise the score of its own. Together they are a **GAN**. This generator:
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


z = sagan.noise(8, torch.Generator().manual_seed(0)).requires_grad_()  # (8, 8, 2, 6)
nothing = sagan.Generator("nothing").eval()
assert_close(in_lines(nothing, z), nothing(z).canvas)

# %% [markdown]
r"""
Each of $2 \times 6$ places has noise of its own, eight numbers, and in `start` a matrix of its own. Then come $3 \times 3$ convolutions with norms and ReLU; `interpolate` doubles the map; `middle` we shall exchange; `paint` is a last $3 \times 3$ convolution. On which columns of noise does a column of pixels depend?
"""


# %%
def sees(generator, column):
    (moved_by,) = torch.autograd.grad(generator(z).canvas[..., column].sum(), z)
    return (moved_by.abs().amax((0, 1, 2)) > 0).nonzero()[:, 0].tolist()  # not 0


for left, right in ((0, 23), (7, 16)):  # the two digits' outer edges, inner edges
    print(f"{left}: {sees(nothing, left)}, {right}: {sees(nothing, right)}")

# %% [markdown]
r"""
The outer edges of the digits share none, the inner ones, 7 and 16, share 2 and 3.
"""

# %%
predict("which_widths")

# %%
for width in (3, 9, 17):
    wide = sagan.Generator("wide convolution").eval()
    sizes = {"padding": (0, width // 2), "groups": 32}  # a row of weights per channel
    wide.middle.around = torch.nn.Conv2d(32, 32, (1, width), **sizes)
    wide.middle.gamma.data.fill_(0.5)  # how much the middle adds
    print(f"{width:2}: first {sees(wide, 0)}, last {sees(wide, -1)}")

# %% [markdown]
r"""
With 9 they share columns 1 to 4, with 17 all. The digits start eight places apart; 17 reaches that.

## 2 · Attention between places

A **feature map** is what a convolution leaves: a grid with a vector at each place. To attention it is one more set (but `start` has told each place where it is). SAGAN (2018) puts this block into both networks:

$$y_i = x_i + \gamma \sum_j \operatorname{softmax}_j(q_i \cdot k_j)\, v_j$$

$q_i = W_q x_i$, likewise $k_i$ and $v_i$. $\gamma$ is one learned number.
"""

# %% [markdown] tags=["exercise:place_attention"]
# Write the block, with `attend` and its usual score.

# %%
x = torch.randn(1, 32, 4, 12, requires_grad=True)
matrices = torch.randn(3, 32, 32) / 32**0.5
y = yours("place_attention")(x, *matrices, gamma=0.5)  # ours, until it passes
(moved_by,) = torch.autograd.grad(y[..., 0].sum(), x)
print((moved_by.abs().amax((0, 1, 2)) > 0).nonzero()[:, 0].tolist())

# %% [markdown]
r"""
The first column sees all twelve. In the library it is `SelfAttention2d`, as in the paper without the root: `score=dot`. $\gamma$ starts at 0, so that convolutions learn first.
"""

# %%
predict("gamma_moves")

# %%
block, x = sagan.SelfAttention2d(4, d_k=2), torch.randn(1, 4, 2, 3)
for gamma in (0.0, 0.1):
    block.zero_grad()
    block.gamma.data.fill_(gamma)
    block(x).output.square().sum().backward()
    query = block.query.weight.grad.abs().max()
    print(f"gamma {gamma}: gradient {block.gamma.grad:.2f}, query's {query:.3f}")

q, k, v = (f(x).flatten(2).mT for f in (block.query, block.key, block.value))
found = attend(q, k, v, score=dot).output
assert_close(block(x).output, x + 0.1 * found.mT.reshape(x.shape))

# %% [markdown]
r"""
**"What is multiplied by 0 never learns."** $\gamma$ multiplies the query matrix's gradient, and what attention would add multiplies $\gamma$'s. So $\gamma$ moves first, and then the matrices learn, too.

## 3 · Who agrees?

A small classifier, trained on real digits, reads both ends. **Kappa** says how much more often they agree than chance:

$$\kappa = \frac{\text{agreement} - \text{chance}}{1 - \text{chance}}$$

By hand: 80 of 100 agree, 50 would by chance (two digits, equally often): $\kappa = 0.3 / 0.5 = 0.6$. Three GANs are trained, equal but for the middle, which is the same in both networks.
"""

# %%
predict("who_agrees")

# %%
figures.agreement()

# %% [markdown]
r"""
With nothing kappa stays at chance, 0.03 at most. With attention it rises after step 500 and ends at 0.90 to 0.94. **"So only attention can make far parts agree."** The convolution 17 wide ends at 0.87 to 0.91. **Not attention: reach.** That holds for one fixed distance: the kernel was cut to it, attention was not told. Where the distance changes, fixed weights would not know whom to ask. That is not tested here, nor which of the two networks needs the reach.

In other stored runs, of 600 steps, kappa is 0.03 to 0.17 with attention, 0.04 at most with the wide convolution: one would have missed both. Finished:
"""

# %%
figures.drawn(real, "attention", "wide convolution")

# %% [markdown]
r"""
Of these 16 the classifier reads the same digit twice in 15 with attention, in 14 with the wide convolution. With nothing it was 9; luck gives 8.

## 4 · Objects found by questions

A detector says which objects a picture shows, and where: a kind and a **box** for each. Their number is unknown, and they have no order. Until now places asked; in DETR (2020) learned vectors do, the **queries**: they ask the map of a CNN, the `stem`. Ours has five queries, $6 \times 6$ cells, and scenes of one to three shapes; the picture shows a trained one:
"""


# %%
def answers(model, canvas):
    cells = model.norm(model.stem(canvas).flatten(2).mT)  # (b, 36, 48): the CNN's map
    cells = model.encoder(cells + model.positions(36)).output  # cells attend to cells
    asking = model.queries.expand(len(canvas), -1, -1)  # (b, 5, 48)
    asking, *_ = model.decoder(asking, cells)  # each other (no mask), then the cells
    return model.kind(asking), model.box(asking).sigmoid()  # (b, 5, 5), (b, 5, 4)


given = detecting.scenes("test")
canvas, model = given.canvas[:2, None], detr.Detr().eval()
kinds, boxes = answers(model, canvas)
assert_close(kinds, model(canvas).logits)
assert_close(boxes, model(canvas).boxes)
figures.found_in(given)

# %% [markdown]
r"""
Each query gives five scores, for four kinds and "no object", and a box: centre and size, as shares of the canvas. An answer is right if its kind is, and its box overlaps by half (intersection over union). After 1,000 steps the queries find 94 to 95 % of the objects; the numbers are how sure they are. One square is called a disc, one disc overlooked. Answers given to the wrong scene find less than 2 %.

### Who answers for what?

At every training step each object is paired with one query, so that the sum of costs is smallest: the **matching**. A cost is high where box and kind fit badly:

| | object A | object B |
|---|---|---|
| query 0 | 1 | 2 |
| query 1 | 5 | 9 |
| query 2 | 6 | 8 |

The cheapest pair first: 1 + 8 = 9. Can you find 7?
"""

# %% [markdown] tags=["exercise:set_loss_of_kinds"]
# Matched queries answer their object's kind, all others "no object".

# %%
loss_of = yours("set_loss_of_kinds")
logits, kind = torch.randn(5, 5), torch.tensor([2, 0])  # objects A and B
turned = kind.flip(0)  # the same scene, B listed first
for name, query in (("matched", [4, 1]), ("by number", [0, 1])):
    query = torch.tensor(query)
    again = query.flip(0) if name == "matched" else query
    one, two = loss_of(logits, kind, query), loss_of(logits, turned, again)
    print(f"{name}: {one:.3f}, turned {two:.3f}")

# %% [markdown]
r"""
Reorder the list, and the matched pairs move along: the same loss. **"Give object 1 to query 1, and training will sort it out."** Then one scene has two losses. Train so:
"""

# %%
predict("without_matching")

# %%
figures.by_objects()

# %% [markdown]
r"""
**Recall** is the share of objects found. Without the matching it is 96 to 98 % for single objects, 2 to 9 % in company: of two objects query 0 is asked for either half the time, so its best box lies between. Without the encoder, in which cells ask cells, recall is still 94 %.

## In real work

scipy solves the matching. Lists of objects are padded. A padding column whose costs differ between queries can take one that an object needs:
"""

# %%
from scipy.optimize import linear_sum_assignment

cost = torch.tensor([[1.0, 2, -9], [5, 9, 0], [6, 8, 0]])  # last column: padding
there = torch.tensor([True, True, False])
for name, table in (("right", cost[:, there]), ("padded", cost)):
    queries, objects = linear_sum_assignment(table.numpy())
    pairs = dict(zip(objects.tolist(), queries.tolist(), strict=True))
    cost_of = [cost[pairs[k], k].item() for k in (0, 1)]
    print(f"{name}: queries {pairs[0]} and {pairs[1]}, {sum(cost_of):.0f}")

# %% [markdown]
r"""
## The two ends once more
"""

# %%
figures.places()

# %% [markdown]
r"""
Two places of the generator, one in each half, in two pictures. They hardly look at each other (0.005 at most). In the first picture both look most at (3, 8), with 0.26 and 0.12, in the second at (2, 10), with 0.56 and 0.69; even weights would be $1/48 = 0.02$. So both seem to read one third place, and the picture decides which. To overwrite it would be the test, not done here.

Would attention make the ends agree? Yes, and so would a kernel that reaches as far.

**To remember.** Before you add attention, ask whether the task lacks reach.

- The block: $x + \gamma \cdot$ attention, $\gamma = 0$ at the start.
- At one fixed distance a wide enough kernel comes close to attention.
- Queries answer with a set; a set needs a matching before it has a loss.

**Sources.** Zhang et al. 2018 (arXiv:1805.08318); Carion et al. 2020 (arXiv:2005.12872); Cohen 1960. Seeds, claims: [evidence](evidence/07_attention_vs_cnn_evidence.ipynb).

**Next**: [08a](08a_remembering.ipynb).
"""
