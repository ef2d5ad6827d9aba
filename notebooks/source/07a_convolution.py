# %% [markdown]
r"""
{title}

To find the edges of a house, a program takes nine pixels at a time, each times a number that somebody chose. Attention takes all pixels, and chooses
by itself. Can it do the same work? What does freedom cost?

**Afterwards you can** build a convolution from heads, say how many heads a kernel needs, and when no kernel can do what one head does.

{about}

<details><summary>中文摘要 · Chinese</summary>
3 × 3 卷积就是九个头:每个头只看一个相对位置,它的值矩阵就是卷积核在那里的一小块;分数只取决于相对位置,并且足够尖锐。这一课数一数需要几个头、要花多少乘法,再看什么时候卷积够用、什么时候不够。
</details>

{sources}
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
from lesson_lib.checks import check, hint, predict, solution, warm_up, yours
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
figures.edges(picture, {"the edge finder": edges}, marked={"A": (1, 5), "B": (1, 3)})

# %% [markdown]
r"""
The program is a **convolution**. Nine numbers, `finder`, are laid on a pixel and its neighbours: left ones count plus, right ones minus. Each colour takes a third of these nine numbers; all 27 are the **kernel**. The sky at A gives 0.
B has the dark roof at its left: violet, below 0. Off the picture stand zeros, the **padding**, and make edges at both margins.

## 1 · Without positions

To attention the picture is a set of 50 tokens of three numbers, $(50, 3)$. A and B are the same blue.
"""

# %%
predict("enough_heads")

# %%
tokens = picture.flatten(1).T  # (50, 3), row by row
a, b = 10 * 1 + 5, 10 * 1 + 3  # rows of ten pixels
x = nn.Linear(3, 36)(tokens)  # wider, so that 36 heads fit
for n_heads in (1, 36):
    layer = MultiHeadAttention(36, n_heads)
    output = layer(x, x, x).output
    print(f"heads {n_heads:2}: A - B = {(output[a] - output[b]).abs().max():.4f}")
print(f"edge finder: A {edges[1, 5]:.4f}, B {edges[1, 3]:.4f}")

# %% [markdown]
r"""
**"With enough heads it could."** The edge finder tells A from B, «0» from «−1.1». No number of heads does: A and B ask the same query of the same keys. Scores must know where a pixel stands.

## 2 · What a convolution assumes

At the pixel $p$ (row, column) a convolution computes

$$y_p = \sum_{c} W_c \, x_{p + c}, \qquad c \in \{-1, 0, 1\}^2$$

Each of nine **offsets** $c$ = (down, right) has a matrix $W_c$, a **tap**, of shape (channels out, channels in), here $1 \times 3$. A **channel** is one number of a pixel.

The formula assumes two things before any picture comes. Only the next pixels count: **locality**. Every pixel gets the same taps: **weight sharing**. So when the house moves one column, its edges move along:
"""

# %%
moved = picture.roll(1, dims=-1)  # the last column comes in at the left
of_moved = F.conv2d(moved[None], kernel, padding=1)[0, 0]
assert_close(of_moved[:, 2:-1], edges[:, 1:-2])  # without the margins
figures.edges(moved, {"the edge finder": of_moved})

# %% [markdown]
r"""
That is **shift equivariance**. So let a score know only the offset $d$ from query to key.

## 3 · A head for each offset

As heads do, the formula fetches vectors, multiplies each by a matrix, adds up. Head $c$ needs weight 1 on the pixel at offset $c$. What it fetches is multiplied by the tap: its value matrix times its rows of $W_o$ is $W_c^T$.
"""

# %% [markdown] tags=["exercise:shift_weights"]
# Write one head's table of weights.

# %%
table_of = yours("shift_weights")  # once it has passed; until then ours
total = torch.zeros(50, 1)
for down in (-1, 0, 1):
    for right in (-1, 0, 1):
        weights = table_of(5, 10, down, right)  # (50, 50)
        tap = kernel[:, :, down + 1, right + 1]  # (1, 3)
        total = total + weights @ tokens @ tap.T
assert_close(total.reshape(5, 10), edges)

# %% [markdown]
r"""
Nine tables give the same edges. But softmax of finite scores is never exactly 0 or 1.

## 4 · Sharp scores

Let a head's score fall with the squared distance from its offset:

$$\text{score}_d = -s \, |d - c|^2$$

$s$ is its **sharpness**. By hand: of five pixels in a row the middle one asks, so $d = -2 \dots 2$; let $c = 1$, $s = 1$. The wanted pixel gets $1 / (1 + 2e^{-1} + e^{-4} + e^{-9}) = 0.57$.
"""

# %%
d_row = torch.tensor([-2.0, -1.0, 0.0, 1.0, 2.0])
for s in (1, 3, 10):
    show((-s * (d_row - 1) ** 2).softmax(-1))

# %% [markdown]
r"""
At sharpness 3 it gets «0.91», at 10 «0.9999»: as near 1 as we like.

Offset and sharpness fit into three numbers. Multiply out:

$$-s|d - c|^2 = r_d \cdot v - s|c|^2, \qquad r_d = (|d|^2,\ d_\text{down},\ d_\text{right})$$

$r_d$ depends on the two pixels, $v$ on the head; `score_bias` adds $r_d \cdot v$ to the score. The last term is the same for all keys, so softmax does not see it.
"""

# %% [markdown] tags=["exercise:head_vector"]
# Which three numbers are $v$?

# %% [markdown]
r"""
All together, with keys on a border of zeros:
"""

# %%
vector_of = yours("head_vector")


def pairs(d):  # offsets (n, m, 2) to r (n, m, 3)
    return torch.cat([d.square().sum(-1, keepdim=True), d], -1)


d = offsets(5, 10, border=1)  # (50, 84, 2): 50 pixels ask, 7 * 12 are looked at
r = pairs(d)
canvas = F.pad(picture, (1, 1, 1, 1)).flatten(1).T  # (84, 3)
no_query, no_key = torch.zeros(50, 1), torch.zeros(84, 1)  # contents score 0


def edges_by_heads(s):
    total = torch.zeros(50, 1)
    for down in (-1, 0, 1):
        for right in (-1, 0, 1):
            v = vector_of(torch.tensor([down, right]).float(), s)
            head = attend(no_query, no_key, canvas, score_bias=r @ v).output
            total = total + head @ kernel[:, :, down + 1, right + 1].T
    return total.reshape(5, 10)


# %%
for s in (1, 10):
    print(f"sharpness {s:2}: off by {(edges_by_heads(s) - edges).abs().max():.4f}")
figures.edges(picture, {f"nine heads, s = {s}": edges_by_heads(s) for s in (1, 10)})

# %% [markdown]
r"""
**Nine sharp heads are the convolution.** At sharpness 1 the edges are a blur, at 10 they are off by «0.0003». The library's `as_attention` does it, at sharpness 32, for any such kernel. The edge finder at B:
"""

# %%
conv = nn.Conv2d(3, 4, kernel_size=3, padding=1)
assert_close(as_attention(conv)(picture[None]), conv(picture[None]), atol=1e-5, rtol=0)
edge_finder = nn.Conv2d(3, 1, kernel_size=3, padding=1, bias=False)
edge_finder.weight.data.copy_(kernel)
PixelExplorer(edge_finder, picture, start=(1, 3))

# %% [markdown]
r"""
*Do:* at which sharpness does one pixel hold 0.99?

## 5 · Are nine needed?

Above 6 one pixel holds 0.99. Now let a head score each of the nine offsets as it likes, and all others −∞.
"""

# %%
predict("edge_heads")

# %%
head_0 = (finder + 3) / 27  # lifted by 3: all shares are above 0, and sum to 1
head_1 = torch.full((3, 3), 1 / 9)
assert_close(27 * (head_0 - head_1), finder)
figures.shares(head_0, head_1, finder)

# %% [markdown]
r"""
**"Nine pixels need nine heads."** Two will do: for each colour one value matrix holds 9, the other −9.

In general, write each tap's numbers as one row: a table of nine rows. At rank 2 every column is a mixture of two patterns of nine numbers. Lift each until nothing is negative, divide by its sum: a head's shares. A lift adds the same number to all nine places, so one more
head, with equal shares, subtracts all lifts together. So rank + 1 heads are enough, or nine. Fewer than the rank are not: a head adds one pattern.
"""

# %%
both = nn.Conv2d(3, 2, kernel_size=3, padding=1, bias=False)  # two edge finders:
both.weight.data.copy_(torch.cat([kernel, kernel.mT]))  # left to right, top to bottom
for name, layer in {"two edge finders": both, "random, 3 to 4 channels": conv}.items():
    table = layer.weight.flatten(2).flatten(0, 1).T  # (9, channels out * channels in)
    rank = torch.linalg.matrix_rank(table).item()
    few = with_few_heads(layer)  # builds them
    assert_close(few(picture[None]), layer(picture[None]), atol=1e-5, rtol=0)
    print(f"{name}: rank {rank}, heads {len(few.values)}")

# %% [markdown]
r"""
Two edge finders take three heads; the random kernel keeps nine. (Nine: Cordonnier, Loukas & Jaggi 2019; the count by rank is ours.)

## 6 · The price

Nine taps of $C \times C$ take $9C^2$ products per pixel. Nine heads take those, too, and each mixes all $n$ pixels, to use one: $9nC$ more. Together that is $1 + n/C$ times as much, for a photograph of 224 × 224 pixels with 64 channels 785 times.

And if nobody says which nine? A hidden convolution adds up four pixels, those three steps above, below, left and right, each times a random matrix. Heads see pictures of noise,
must reproduce its output, and learn offsets, sharpness, value matrices.
"""

# %%
predict("four_for_four")

# %%
learner, _ = fields.train(seed=0, n_heads=8)  # eight heads, 300 steps
start = fields.heads(8, torch.Generator().manual_seed(0)).logits.centres
end = learner.logits.centres.detach().cpu()
figures.centres(start.detach(), end, fields.taps())

# %% tags=["proof"]
assert quick() or fields.found(learner) == 4  # rings with a sharp head

# %% [markdown]
r"""
Eight heads find all four rings; some end nowhere. Four, eight, and kernels that learn, five seeds each:
"""

# %%
figures.searched()

# %% [markdown]
r"""
Missed is the share of the output's variance. A 3 × 3 kernel misses all: in noise, near pixels say nothing of far ones. Four heads miss 12 to 56 %. Eight find all places in four seeds of five. **Spare heads are for the search.** A 7 × 7 kernel has the four
among its taps, need not search, and misses under 0.01 %.

## 7 · Where no kernel can

Now each pixel carries an arrow and wants the pixel three steps that way, up, down, left or right.
"""

# %%
predict("arrows")

# %%
arrows = fields.taps()[torch.randint(4, (400,))].float()  # (400, 2): offsets
d = offsets(20, 20, border=3)  # (400, 676, 2)
noise = F.pad(torch.randn(16, 20, 20), (3, 3, 3, 3))  # 16 pictures, with borders
canvas = noise.flatten(1).T  # (676, 16): a picture is a channel
there = (d == arrows[:, None]).all(-1)  # (400, 676): each row has one True
wanted = canvas[there.int().argmax(1)]  # (400, 16)

v = torch.stack([vector_of(arrow, 10.0) for arrow in arrows])  # each pixel's own
bias = (pairs(d) * v[:, None]).sum(-1)  # (400, 676)
no_query, no_key = torch.zeros(400, 1), torch.zeros(676, 1)
by_head = attend(no_query, no_key, canvas, score_bias=bias).output

seen = F.unfold(noise[:, None], 7)  # (16, 49, 400): what a 7 x 7 kernel sees
seen = seen.permute(2, 0, 1).reshape(-1, 49)
target = wanted.reshape(-1, 1)  # (6400, 1)
best = torch.linalg.lstsq(seen, target).solution  # least squares: no kernel is better
made = {"best 7 x 7 kernel": seen @ best, "one head": by_head.reshape(-1, 1)}
for name, output in made.items():
    print(f"{name} misses {(output - target).var() / target.var():.0%}")

# %% [markdown]
r"""
**"A kernel that reaches far enough can do what attention does."** The best one gives each place about a quarter: ¾ of the wanted pixel is missing, ¼ of three others wrong, (9 + 3)/16 = 75 % of the variance (the rest is chance). Arrows as further channels would not help one kernel: it adds, it cannot choose. One head misses nothing that shows: $v$ comes from the pixel that asks, so it is a *query*, and content says where to look.

## In real work

The vision model Swin attends in windows of 7 × 7 and adds to each score a learned number for its offset.
"""

# %%
table = nn.Parameter(torch.randn(4, 13, 13))  # 4 heads; offsets -6 to 6
place = offsets(7, 7).long() + 6  # (49, 49, 2)
bias = table[None, :, place[..., 0], place[..., 1]]  # (1, 4, 49, 49)
q, k, v = torch.randn(3, 2, 4, 49, 16)  # two windows
real = F.scaled_dot_product_attention(
    q, k, v, attn_mask=bias
)  # numbers in it are added
assert_close(real, attend(q, k, v, score_bias=bias).output)

# %% [markdown]
r"""
## The house once more

Nine heads find its edges, two are enough, and without positions none do.

**To remember.** Whoever knows where to look builds it in; attention is for places that content chooses.

- A tap is a head: its score says where, its value matrix says what.
- Rank heads are necessary; rank + 1, or nine, are enough.
- Nine heads cost $1 + n/C$ times a kernel.

**Sources.** Cordonnier, Loukas & Jaggi 2019 (arXiv:1911.03584); Swin: Liu et al. 2021 (arXiv:2103.14030). More: [evidence](evidence/07_attention_vs_cnn_evidence.ipynb).

**Next**: [07b · Data or prior](07b_data_or_prior.ipynb): what if nobody builds anything in, and there are only data?
"""
