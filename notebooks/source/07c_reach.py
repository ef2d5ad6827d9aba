# /// ideas
# [gan]
# says = "a GAN: a generator makes pictures of noise, a discriminator scores real ones above them, and each learns from the other"
# motive = "A network that draws"
# shown = "sagan.noise"
# action = 'predict("far_columns")'
#
# [sees]
# says = "gradients show what an output depends on: one that is not 0 proves it"
# motive = "On which columns of noise"
# shown = "def sees"
# action = 'predict("far_columns")'
#
# [block]
# says = "attention in a CNN: a feature map is a set of vectors, and the block gives x + gamma times what each finds"
# motive = "something that carries news across"
# shown = "y_i = x_i"
# action = "place_attention"
#
# [gamma]
# says = "gamma starts at 0: it moves first, and then the matrices can learn"
# motive = "how can it ever learn"
# shown = "block.gamma.grad"
# action = 'predict("gamma_moves")'
#
# [rival]
# says = "a kernel 17 wide carries the news, too"
# motive = "It needs a rival"
# shown = "wide convolution"
# action = 'predict("who_agrees")'
#
# [reach]
# says = "before attention is praised, ask whether reach is all that was needed: at one fixed distance a wide kernel comes close"
# motive = "So only attention can make far parts agree"
# shown = "figures.agreement"
# action = 'predict("who_agrees")'
#
# [queries]
# says = "DETR: learned vectors ask the map, and each answers with a kind, or no object, and a box"
# motive = "Their number is unknown"
# shown = "asking = model.queries"
# action = 'predict("without_matching")'
#
# [numbering]
# says = "a list of objects has no order that a picture shows, so object k cannot belong to query k"
# motive = "Who answers for what"
# shown = "figures.by_objects"
# action = 'predict("without_matching")'
#
# [matching]
# says = "at each step objects are matched to queries so that the sum of costs is the smallest"
# motive = "whichever query fits it best"
# shown = "linear_sum_assignment"
# action = "Can you find 7"
#
# [set_loss]
# says = "matched queries answer their object's kind, all others no object; the loss does not know the list's order"
# motive = "once the pairs are known"
# shown = "loss_of = yours"
# action = "set_loss_of_kinds"
#
# [padding]
# says = "cut padding out of the costs before the matching: it can take a query that an object needs"
# motive = "Lists of objects are padded"
# shown = "padded"
# action = "padded[:, there]"
# ///

# %% [markdown]
r"""
{title}

Each real picture, on the left, holds the same digit, 0 or 1, at both ends, written differently. A network drew those on the right, and their two ends agree only by luck. Would attention make the ends agree?

**Afterwards you can** put attention into a convolutional network; ask whether a task needs attention, or only to see far enough; write a loss for a set of objects that has no order.

{about}

<details><summary>中文摘要 · Chinese</summary>
SAGAN 在卷积网络中间加一块注意力:y = x + γ·attend,γ 从 0 开始。它能让图片的两端一致吗?还有什么也能做到?
DETR 用几个查询去找物体。物体是集合,没有顺序,那么损失该怎么算?
</details>
"""

# %% tags=["imports"]
import torch
from scipy.optimize import linear_sum_assignment

from lesson_lib.attention import attend
from lesson_lib.chapters.c07_attention_vs_cnn import detr, figures, sagan
from lesson_lib.chapters.c07_attention_vs_cnn.experiments import detr as detecting
from lesson_lib.chapters.c07_attention_vs_cnn.experiments import sagan as painting
from lesson_lib.course import *

_ = torch.manual_seed(0)
warm_up()

# %%
real = painting.draw("test", 16, torch.Generator().manual_seed(0)).canvas  # (16, 8, 24)
figures.drawn(real, "nothing")

# %% [markdown]
r"""
## 1 · Two networks that train each other

A network that draws gets random numbers, the **noise**, and turns them into a picture. It is called a **generator**. A second network, the **discriminator**, learns to give real pictures a higher score than made ones, and the generator learns to raise the score of its own. Together they are a generative adversarial network, a **GAN**.

Our generator begins with $2 \times 6$ positions, each with eight random numbers of its own. Then:

| | what | size |
|---|---|---|
| 1 | for each position a matrix of its own; a convolution | $2 \times 6$ |
| 2 | doubled (each position becomes four), a convolution | $4 \times 12$ |
| 3 | the *middle*: so far nothing | $4 \times 12$ |
| 4 | doubled, two convolutions | $8 \times 24$ |

The convolutions are 3 × 3, so each lets a position see its neighbours only. Columns 0 to 7 of the picture are the left digit, and 16 to 23 the right one. On which columns of noise does a column of pixels depend? Autograd knows. We ask for the gradients of the column with respect to the noise of eight pictures. A gradient that is not 0 proves that the noise moves the column; zeros in all eight say that most likely it does not.
"""

# %%
predict("far_columns")

# %%
z = sagan.noise(8, torch.Generator().manual_seed(0)).requires_grad_()  # (8, 8, 2, 6)


def sees(generator, column):  # the columns of noise that move this column of pixels
    # gradients of the column with respect to z: (8, 8, 2, 6)
    (moved_by,) = torch.autograd.grad(generator(z).canvas[..., column].sum(), z)
    return (moved_by.abs().amax((0, 1, 2)) > 0).nonzero()[:, 0].tolist()


nothing = sagan.Generator("nothing").eval()
for column in (0, 3, 20, 23):
    print(f"column {column:2} sees noise {sees(nothing, column)}")

# %% [markdown]
r"""
The left half of the left digit, columns 0 to 3, sees noise 0 to 2 alone. The right half of the right digit sees 3 to 5 alone. Half a digit shows which one it is, so the two digits follow independent noise, and agree in half of the pictures if 0 and 1 are equally frequent. The middle needs something that carries news across.

## 2 · Attention between positions

What a convolution leaves is a **feature map**: a grid with a vector at each position. Attention takes these vectors for its tokens. SAGAN (2018) puts this block into both networks of a GAN:

$$y_i = x_i + \gamma \sum_j \operatorname{softmax}_j\!\Big(\frac{q_i \cdot k_j}{\sqrt{d}}\Big)\, v_j$$

Query, key and value of a position are a matrix times its vector, and $\gamma$ is one learned number. (SAGAN leaves the root out. Codes for positions are not needed here: vectors that begin with different matrices tell where they stand.)
"""

# %% [markdown] tags=["exercise:place_attention"]
# Write the block, with `attend` and its usual score. The map x is (b, channels, rows, columns); the matrices are (out, in), so a row is multiplied by `w_q.T`.

# %%
x = torch.randn(1, 32, 4, 12, requires_grad=True)
matrices = torch.randn(3, 32, 32) / 32**0.5
y = yours("place_attention")(x, *matrices, gamma=0.5)
(moved_by,) = torch.autograd.grad(y[..., 0].sum(), x)
print((moved_by.abs().amax((0, 1, 2)) > 0).nonzero()[:, 0].tolist())

# %% [markdown]
r"""
The first column of the map now sees all twelve. In SAGAN $\gamma$ starts at 0, so that the convolutions learn first. But what is multiplied by 0 has no effect: how can it ever learn?
"""

# %%
predict("gamma_moves")

# %%
block, x = sagan.SelfAttention2d(4, d_k=2), torch.randn(1, 4, 2, 3)  # the library's block
for gamma in (0.0, 0.1):
    block.zero_grad()
    block.gamma.data.fill_(gamma)
    block(x).output.square().sum().backward()
    query = block.query.weight.grad.abs().max()
    print(f"gamma {gamma}: its gradient {block.gamma.grad:.2f}, W_q's at most {query:.3f}")

# %% [markdown]
r"""
**"What is multiplied by 0 never learns."** In a product $\gamma \cdot a$ the gradient of $\gamma$ contains $a$, and that of $a$ contains $\gamma$. So at 0 $W_q$ gets «0.000», and $\gamma$ itself does not get 0, since $a$, what attention would add, is not 0. At 0.1 both get a gradient. So $\gamma$ moves first, and then the matrices learn, too.

## 3 · Who agrees?

Will it help? It needs a rival. A convolution can have **reach**, too, can see far, if its kernel is wide. In the middle map corresponding positions of the two digits stand eight columns apart, so take a kernel of one row and $8 + 1 + 8 = 17$ columns.
"""

# %%
wide = sagan.Generator("wide convolution").eval()
wide.middle.gamma.data.fill_(0.5)  # it has a gamma, too, and begins at 0
print(f"column 0 sees noise {sees(wide, 0)}")

# %% [markdown]
r"""
Now column 0 sees all the noise, through a kernel. Three GANs are trained for 2,400 steps: with nothing in the middle, with attention, with the wide kernel. (The discriminator has a map of 4 × 12 and gets the same middle.) A small classifier, trained on real digits, reads both ends of 2,000 pictures that each has made.
"""

# %%
predict("who_agrees")

# %%
figures.agreement()

# %% [markdown]
r"""
With nothing the ends agree in half of the pictures, which is luck: there are two digits. With attention it is 95 to 97 of 100 in the end, over three seeds. **"So only attention can make far parts agree."** With the wide kernel it is 93 to 95. **What was needed is reach.** Attention gives reach to every position; so does a kernel that is wide enough.

That holds for one fixed distance. The kernel was cut to it, and attention was not told it. If the distance changed from picture to picture, a kernel would not know where to look (part 07a), but that was not tested here.

## 4 · Objects found by questions

So far positions asked. A query need not belong to a position: a learned vector can ask the whole map. A **detector** says which objects a picture shows, and where: a kind and a box for each. Their number is unknown. In DETR (2020) a few learned vectors ask, the **object queries**. Each looks at the feature map of a convolutional network, and answers with one object, or with "no object":
"""


# %%
def answers(model, canvas):  # canvas (b, 1, 24, 24)
    features = model.stem(canvas)  # convolutions: (b, 48, 6, 6)
    tokens = model.norm(features.flatten(2).mT)  # positions as tokens: (b, 36, 48)
    tokens = model.encoder(tokens + model.positions(36)).output  # they ask each other
    asking = model.queries.expand(len(canvas), -1, -1)  # five learned vectors: (b, 5, 48)
    # a decoder without a mask: queries ask each other (who takes what?), then the map
    asking, *_ = model.decoder(asking, tokens)
    return model.kind(asking), model.box(asking).sigmoid()  # (b, 5, 5), (b, 5, 4)


given = detecting.scenes("test")
kinds, boxes = answers(detr.Detr().eval(), given.canvas[:2, None])  # untrained
print(f"kinds {tuple(kinds.shape)}, boxes {tuple(boxes.shape)}")
figures.found_in(given)

# %% [markdown]
r"""
For each of two scenes and five queries there are five logits, for four kinds and "no object", and a box: centre, width and height, as shares of the canvas. The picture shows what such a model finds after 1,000 steps; the numbers say how sure it is. One square is called a disc, and one disc is overlooked.

How does it learn that? The scenes come with a list of their objects. Who answers for what? The simplest rule: object number $k$ of the list belongs to query number $k$.
"""

# %%
predict("without_matching")

# %%
figures.by_objects()

# %% [markdown]
r"""
**"Give object 1 to query 1, and training will sort it out."** An object counts as found if its kind is right, and the overlap of the boxes is at least half of the area that they cover together. With object $k$ given to query $k$, single objects are found in 96 to 98 %, and objects in company in 2 to 9 %. (The other curve, 91 to 98 %, is the rule that comes next.) Nothing in a picture says which of two objects is the first of the list. So query 0 is asked now for the one and now for the other, and its box settles between them and fits neither.

Instead, let each object go to whichever query fits it best. A cost says how badly: how far the four numbers of the boxes are apart, and how improbable the query finds the right kind. With invented numbers:

| | object A | object B |
|---|---|---|
| query 0 | 1 | 2 |
| query 1 | 5 | 9 |
| query 2 | 6 | 8 |

Two objects may not share a query. Take the cheapest pair first, and the sum is 1 + 8 = 9. Can you find 7? The **matching** with the smallest sum is found by scipy:
"""

# %%
cost = torch.tensor([[1.0, 2], [5, 9], [6, 8]])  # queries, objects
queries, objects = linear_sum_assignment(cost.numpy())
for q, k in zip(queries, objects, strict=True):
    print(f"query {q} answers for object {'AB'[k]}: cost {cost[q, k]:.0f}")

# %% [markdown]
r"""
$2 + 5 = 7$. At every training step the matching is found anew. The loss of the kinds, once the pairs are known:
"""

# %% [markdown] tags=["exercise:set_loss_of_kinds"]
# `kind[k]` is the kind of object k, and `query[k]` answers for it. Matched queries shall answer their object's kind, all others "no object", the last column of the logits; take the mean over all queries.

# %%
loss_of = yours("set_loss_of_kinds")
logits = torch.randn(3, 5)  # three queries: four kinds, and "no object"
kinds_of = torch.tensor([2, 0])  # A is of kind 2, B of kind 0
for name, order in {"A, B": [0, 1], "B, A": [1, 0]}.items():
    queries, objects = linear_sum_assignment(cost[:, order].numpy())  # anew
    query = torch.zeros(2, dtype=torch.long)
    query[objects] = torch.tensor(queries)  # who answers for object k
    print(f"{name}: queries {query.tolist()}, loss {loss_of(logits, kinds_of[order], query):.3f}")

# %% [markdown]
r"""
List the objects the other way round, and the matching gives each the same query: the same loss. It does not depend on the order of the list.

## In real work

Lists of objects are padded to one length, with boxes of zeros, say. They get costs like any other object. What if these stay in the table?
"""

# %%
padded = torch.tensor([[1.0, 2, 0], [5, 9, 7], [6, 8, 7]])  # last column: padding
there = torch.tensor([True, True, False])
for name, table in (("padded", padded), ("cut out", padded[:, there])):
    queries, objects = linear_sum_assignment(table.numpy())
    pairs = dict(zip(objects.tolist(), queries.tolist(), strict=True))
    total = padded[pairs[0], 0] + padded[pairs[1], 1]
    print(f"{name}: queries {pairs[0]} and {pairs[1]} for A and B, cost {total:.0f}")

# %% [markdown]
r"""
The padding took query 0, where it costs 0, and the two real objects pay «13» in place of «7». Nothing raised an error. Cut the padding out before the matching.

## The two ends once more
"""

# %%
figures.drawn(real, "attention", "wide convolution")

# %% [markdown]
r"""
Of these 16 pictures the classifier reads the same digit twice in 15 with attention, and in 14 with the wide kernel; with nothing in the middle it was 9. Would attention make the ends agree? Yes, and so does a kernel that reaches as far.

**To remember.** Before you add attention, ask whether the task lacks reach.

- The block: $x + \gamma \cdot$ attention, with $\gamma = 0$ at the start. Gradients show what sees what.
- At one fixed distance a wide enough kernel comes close to attention.
- Learned queries answer with a set; a set needs a matching before it has a loss.

**Sources.** Zhang et al. 2018 (arXiv:1805.08318); Carion et al. 2020 (arXiv:2005.12872). Seeds, boxes, costs, claims: [evidence](evidence/07_attention_vs_cnn_evidence.ipynb).

**Next**: [08a](08a_remembering.ipynb).
"""
