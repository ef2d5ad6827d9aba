# %% [markdown]
r"""
# 07a · Is a convolution attention?

To find the edges of a house, a program takes nine pixels at a time, each times a number that somebody chose. Attention takes all pixels, and chooses
by itself. Can it do the same work, and what does it pay for its freedom?

**Afterwards you can** build a 3 × 3 convolution from nine heads; say how many heads are enough for a kernel; say when to draw a kernel, and when to let attention search.

**Time** about 45 minutes. **You need** parts [04](04_multi_head.ipynb) and [05a](05a_order.ipynb). **Exercises**:
[exercises/07_attention_vs_cnn](exercises/07_attention_vs_cnn.ipynb).

<details><summary>中文摘要</summary>
3 × 3 卷积就是九个头:每个头只看一个相对位置,它的值矩阵就是卷积核在那里的一小块;分数只取决于相对位置,并且足够尖锐。没有位置信息,多少个头都不够。
真正需要的头数由“位置花样”的秩决定,边缘检测只要两个头。知道该看哪里,就把它画出来;不知道,注意力要用数据、头数和步数去找。
</details>
"""

# %%
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.chapters.c07_attention_vs_cnn import figures
from lesson_lib.chapters.c07_attention_vs_cnn.experiments import fields
from lesson_lib.chapters.c07_attention_vs_cnn.pixels_explorer import PixelExplorer
from lesson_lib.checks import check, hint, predict, solution, warm_up
from lesson_lib.convolution import as_attention, offsets, with_few_heads
from lesson_lib.device import quick
from lesson_lib.heads import MultiHeadAttention
from lesson_lib.show import show

_ = torch.manual_seed(0)
warm_up()

# %%
picture = figures.example_picture()  # (3, 5, 10): red, green, blue; rows; columns
finder = torch.tensor([[1.0, 0, -1], [2, 0, -2], [1, 0, -1]])
kernel = finder.expand(1, 3, 3, 3) / 3  # the same for red, green and blue
edges = F.conv2d(picture[None], kernel, padding=1)[0, 0]  # (5, 10)
figures.edges(picture, {"its edges": edges}, marked={"A": (1, 5), "B": (1, 3)})

# %% [markdown]
r"""
The program is a **convolution**. Its nine numbers, the **kernel**, are laid on a pixel and its neighbours: left ones count plus, right ones minus. The sky at A gives 0. B has the dark roof at its
left: violet, below 0. Off the picture stand zeros, the **padding**, and make edges at both margins.

## 1 · Without positions

To attention the picture is a set of 50 tokens of three numbers, $(50, 3)$. A and B are the same blue.
"""

# %%
predict("enough_heads")

# %%
tokens = picture.flatten(1).T  # (50, 3), row by row
a, b = 10 * 1 + 5, 10 * 1 + 3  # rows of ten pixels
x = nn.Linear(3, 36)(tokens)  # wider, so that 36 heads fit
for n_heads in (1, 9, 36):
    layer = MultiHeadAttention(36, n_heads)
    output = layer(x, x, x).output
    print(f"heads {n_heads:2}: A - B = {(output[a] - output[b]).abs().max():.4f}")
print(f"edge finder: A {edges[1, 5]:.4f}, B {edges[1, 3]:.4f}")

# %% [markdown]
r"""
**"With enough heads, or enough training, it could."** The edge finder tells A from B, 0 from −1.1. No number of heads does: A and B ask the same query of the same keys, whatever the
matrices are. Scores must know where a pixel stands.

## 2 · What a convolution assumes

At the place $p$ (row, column) a convolution computes

$$y_p = \sum_{c} W_c \, x_{p + c}, \qquad c \in \{-1, 0, 1\}^2$$

Each of nine **offsets** $c$ = (down, right) has a matrix $W_c$, a **tap**, of shape (channels out, channels in). Here that is $1 \times 3$: three colours in, one edge out.

Two assumptions stand in the formula before it has seen any picture. Only the next pixels count: **locality**. Every place has the same taps: **weight sharing**. So when the house moves, its edges move along:
"""

# %%
moved = picture.roll(1, dims=-1)  # the last column comes in at the left
of_moved = F.conv2d(moved[None], kernel, padding=1)[0, 0]
assert_close(of_moved[:, 2:-1], edges[:, 1:-2])
figures.edges(moved, {"its edges": of_moved})

# %% [markdown]
r"""
That is **shift equivariance**. Codes for absolute places (part 05a) can break it. So let a score know only the offset $d$ from query to key.

## 3 · A head for each offset

The formula says: fetch a vector, multiply it by a matrix, add up. So do heads (part 04). Head $c$ needs weight 1 on the pixel at offset $c$; $W_c$ is,
transposed, its value matrix times its block of $W_o$.
"""

# %% [markdown] tags=["exercise:shift_weights"]
# Write one head's table of weights.

# %% [markdown]
r"""
`offsets` gives $d$ for each pair of pixels:
"""

# %%
d = offsets(5, 10)  # (50, 50, 2): down and right, from who asks to who is looked at
total = torch.zeros(50, 1)
for down in (-1, 0, 1):
    for right in (-1, 0, 1):
        weights = (d == torch.tensor([down, right])).all(-1).float()  # (50, 50)
        tap = kernel[:, :, down + 1, right + 1]
        total = total + weights @ tokens @ tap.T
assert_close(total.reshape(5, 10), edges)

# %% [markdown]
r"""
Nine tables of zeros and ones give the same edges. But softmax of finite scores is never exactly 0 or 1.

## 4 · Sharp scores

Let a head's score fall with the squared distance from its offset:

$$\text{score}_d = -s \, |d - c|^2$$

$s$ is its **sharpness**. By hand: of five pixels in a row the middle one asks, so $d = -2 \dots 2$; let $c = 1$. Squared distances are 9, 4, 1, 0, 1. With $s = 1$ the wanted pixel gets $1 / (1 + 2e^{-1} + e^{-4} + e^{-9}) = 0.57$.
"""

# %%
d_row = torch.tensor([-2.0, -1.0, 0.0, 1.0, 2.0])
for s in (1, 3, 10):
    show((-s * (d_row - 1) ** 2).softmax(-1))

# %% [markdown]
r"""
At sharpness 3 it gets 0.91, at 10 0.9999: never 1, and as near as we like.

Scores are products of two vectors. Is this one? Multiply out:

$$-s|d - c|^2 = r_d \cdot v - s|c|^2, \qquad r_d = (|d|^2,\ d_\text{down},\ d_\text{right})$$

$r_d$ belongs to a pair of pixels, $v$ to the head. Softmax does not see the last term: it is the same for all keys.
"""

# %% [markdown] tags=["exercise:head_vector"]
# Which three numbers are $v$?

# %% [markdown]
r"""
All together. Keys also stand on a border of zeros, the padding. `score_bias` is added to scores of contents, which are 0 here.
"""

# %%
d = offsets(5, 10, border=1)  # (50, 84, 2)
r = torch.cat([d.square().sum(-1, keepdim=True), d], -1)  # (50, 84, 3)
canvas = F.pad(picture, (1, 1, 1, 1)).flatten(1).T  # (84, 3)
no_query, no_key = torch.zeros(50, 1), torch.zeros(84, 1)


def edges_by_heads(s):
    total = torch.zeros(50, 1)
    for down in (-1, 0, 1):
        for right in (-1, 0, 1):
            v = -s * torch.tensor([1.0, -2.0 * down, -2.0 * right])
            head = attend(no_query, no_key, canvas, score_bias=r @ v).output
            total = total + head @ kernel[:, :, down + 1, right + 1].T
    return total.reshape(5, 10)


for s in (1, 5, 10):
    print(f"sharpness {s:2}: off by {(edges_by_heads(s) - edges).abs().max():.5f}")
figures.edges(picture, {f"nine heads, s = {s}": edges_by_heads(s) for s in (1, 10)})

# %% [markdown]
r"""
**Nine sharp heads are the convolution.** At sharpness 1 the edges are a blur, at 10 they are off by 0.0003. `as_attention` does it for any kernel that moves in steps of one pixel:
"""

# %%
conv = nn.Conv2d(3, 4, kernel_size=3, padding=1)
assert_close(as_attention(conv)(picture[None]), conv(picture[None]), atol=1e-5, rtol=0)
PixelExplorer(conv, picture)

# %% [markdown]
r"""
*Do:* raise the sharpness. *Look:* a blur becomes one pixel, and the difference below falls.

## 5 · Are nine needed?
"""

# %%
predict("edge_heads")

# %%
head_0 = (finder + 2) / 18  # lifted by 2: no share is negative, and they sum to 1
head_1 = torch.full((3, 3), 1 / 9)
assert_close(18 * (head_0 - head_1), finder)
figures.shares(head_0, head_1, finder)

# %% [markdown]
r"""
**"Nine pixels need nine heads."** Two will do, as near as we like: 18 times the first table minus 18 times the second is the edge finder, and a value matrix may hold the 18 and the −18.

In general, write the numbers of each tap as one row: a table with nine rows. Its rank $r$ counts the independent patterns of places. Add a constant to each pattern, until no number is negative: one head each. One more
head, with nine equal shares, subtracts all the constants. So $r + 1$ heads are enough, or nine, and `with_few_heads` builds them. Fewer than $r$ never do: a sum of fewer patterns has a lower rank.
"""

# %%
sobel = nn.Conv2d(3, 1, kernel_size=3, padding=1, bias=False)
sobel.weight.data.copy_(kernel)
for name, layer in {"edge finder": sobel, "random, 3 to 4 channels": conv}.items():
    patterns = layer.weight.flatten(2).flatten(0, 1).T  # (9, c_out * c_in)
    rank = torch.linalg.matrix_rank(patterns).item()
    few = with_few_heads(layer)
    assert_close(few(picture[None]), layer(picture[None]), atol=1e-5, rtol=0)
    print(f"{name}: rank {rank}, heads {len(few.values)}")

# %% [markdown]
r"""
The random kernel has rank 9. The nine heads are a theorem of Cordonnier, Loukas and Jaggi (2019); the count by rank is this course's, for free scores of each offset.

## 6 · The price

Nine taps of $C \times C$ take $9C^2$ products per pixel. Nine heads take those, too, and each mixes all $n$ pixels: $9nC$ more, scores not counted.
"""

# %%
predict("all_pixels")

# %%
for name, n, C in (("house", 50, 3), ("photograph", 224 * 224, 64)):
    times = (9 * C**2 + 9 * n * C) / (9 * C**2)
    print(f"{name}: {times:.0f} times")

# %% [markdown]
r"""
That is $1 + n/C$, to use nine pixels. Then why attention? Somebody has to know which nine. Here nobody does: a hidden convolution adds up four pixels, three steps up, down, left and right. Heads are to imitate it; they learn offsets,
sharpness and value matrices.
"""

# %%
predict("four_for_four")

# %%
learner, _ = fields.train(seed=0, n_heads=8)  # 300 steps
start = fields.heads(8, torch.Generator().manual_seed(0)).logits.centres
end = learner.logits.centres.detach().cpu()
assert quick() or fields.found(learner) == 4  # rings with a sharp head
figures.centres(start.detach(), end, fields.taps())

# %% [markdown]
r"""
After 300 steps every ring has a head. Two rings have two, and two heads end nowhere. Now with four heads, and with kernels that learn:
"""

# %%
figures.searched()

# %% [markdown]
r"""
A 3 × 3 kernel cannot reach the pixels, and misses all. Four heads miss 12 to 56 %: no seed finds all places. Eight heads find them in four seeds of five and miss 0.2 % at most; the fifth misses 20 %. A 7 × 7 kernel need not search, and misses under
0.01 %. **Spare heads are for the search.**

**Whoever knows where to look should draw it; attention pays heads and steps to find out.**

## In real work

Many of today's vision models mix both, others attend everywhere. `unfold` copies each pixel's neighbourhood, so that it has nine keys, weighted by content:
"""

# %%
batch = torch.randn(2, 64, 5, 10)  # (b, c, h, w)
pixels = batch.flatten(2).mT  # (b, n, c), n = 50
windows = F.unfold(batch, 3, padding=1).mT.unflatten(-1, (64, 9)).mT  # (b, n, 9, c)
real = F.unfold(torch.ones(2, 1, 5, 10), 3, padding=1).mT > 0  # False: padding
near = F.scaled_dot_product_attention(
    pixels[:, :, None], windows, windows, attn_mask=real[:, :, None]
)  # one query, nine keys: (b, n, 1, c)
show(keys_of_the_corner=real[0, 0].sum(), keys_in_the_middle=real[0, 15].sum())

# %% [markdown]
r"""
The mask hides the padding, so a corner has four keys. A bug that people meet: `batch.view(2, 50, 64)` has the right shape, and its rows are no pixels:
"""

# %%
wrong = batch.view(2, 50, 64)
print("rows that are pixels:", (wrong == pixels).all(-1).sum().item(), "of 100")

# %% [markdown]
r"""
## The house once more

Nine heads hold its edge finder, two are enough, and without positions no head finds it.

**To remember.** Whoever knows where to look draws it; attention pays to find out.

- A tap is a head: its score says where, its value matrix says what.
- Needed: scores of the offset alone, and sharp ones.
- Rank $r$ of the table of taps: $r$ heads are necessary; $r + 1$, or nine, are enough.
- Mixing all pixels costs $1 + n/C$ times as much.

**Sources.** Cordonnier, Loukas & Jaggi 2019 (arXiv:1911.03584). Other scores, widths, claims:
[evidence](evidence/07_attention_vs_cnn_evidence.ipynb).

**Next**: [07b · Data or prior](07b_data_or_prior.ipynb): what if nobody draws anything, and there are only data?
"""
