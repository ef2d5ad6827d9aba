# /// ideas
# [convolution]
# says = "a convolution lays the same numbers, its kernel, on every pixel and its neighbours, and adds up"
# motive = "To find the edges of a house"
# shown = "finder = torch.tensor"
# action = 'predict("at_b")'
#
# [no_positions]
# says = "without positions no number of heads is a convolution: equal pixels get equal outputs"
# motive = "A and B are the same blue"
# shown = "MultiHeadAttention(36, n_heads)"
# action = 'predict("enough_heads")'
#
# [assumed]
# says = "a convolution assumes locality and weight sharing; its matrix for one offset is a tap"
# motive = "what does the convolution know that attention does not"
# shown = "y_p = \\sum_"
# action = "shift_weights"
#
# [head_per_offset]
# says = "a head for each offset: the score says where, the value matrix says what"
# motive = "The formula does what heads do"
# shown = "total + weights @ tokens @ tap.T"
# action = "shift_weights"
#
# [sharpness]
# says = "the score -s |r - g|^2: with a large s one pixel gets nearly all the weight"
# motive = "gives no weight of exactly 0 or 1"
# shown = "for s in (1, 3, 10):"
# action = "At which sharpness"
#
# [distance]
# says = "a squared distance is a dot product, up to a term that softmax does not see: a key that says where it stands, a query that says where to look"
# motive = "Is this one"
# shown = "score=dot"
# action = "goal_query"
#
# [price]
# says = "a head mixes all n keys to use one: nine heads cost 1 + n / C times a kernel"
# motive = "What does freedom cost"
# shown = "nine_heads = 9"
# action = 'predict("price_of_nine")'
#
# [chosen]
# says = "where the position depends on content, the best kernel misses three quarters, and one head nothing"
# motive = "What does that freedom buy"
# shown = "torch.linalg.lstsq"
# action = 'predict("arrows")'
#
# [query]
# says = "a fixed offset in the query makes a convolution; an offset that the pixel carries lets content decide where to look"
# motive = "Compare its goals"
# shown = "grid(20, 20) + arrows"
# action = "sky_arrows"
#
# [bias]
# says = "a learned number for each offset, added to the score (Swin)"
# motive = "let training find the scores"
# shown = "carried.offsets"
# action = "layer.by_offset"
# ///

# %% [markdown]
r"""
{title}

To find the edges of a house, a program takes nine pixels at a time, each times a number that somebody chose. Attention takes all pixels, and chooses by itself. Can it do the same work? What does freedom cost, and what does it buy?

**Afterwards you can** build a convolution from heads, say what that costs, and name a task that one head can do and no convolution.

{about}

<details><summary>中文摘要 · Chinese</summary>
3 × 3 卷积就是九个头:每个头只看一个相对位置,它的值矩阵就是卷积核在那里的一小块;分数只取决于相对位置,并且足够尖锐。
这一课先搭出这样的九个头,再数一数要多花多少乘法,最后看一个任何卷积核都做不了、而一个头就能做的任务。
</details>

{sources}
"""

# %% tags=["imports"]
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.chapters.c07_attention_vs_cnn import figures
from lesson_lib.chapters.c07_attention_vs_cnn.pixels_explorer import PixelExplorer
from lesson_lib.course import *
from lesson_lib.heads import MultiHeadAttention
from lesson_lib.scores import dot

_ = torch.manual_seed(0)
warm_up()

# %% [markdown]
r"""
The picture has 5 rows and 10 columns. Each pixel has three numbers, red, green and blue, from 0 (dark) to 1 (bright). The program takes their mean as the pixel's brightness: the sky has 0.8, the roof 0.433. Then it lays nine numbers on a pixel and its eight neighbours, multiplies each brightness by the number on it, and adds up:

```
1  0  -1
2  0  -2
1  0  -1
```

Such a program is a **convolution**, and its numbers are the **kernel**. Two pixels of the sky get names. A, in row 1 and column 5, has sky all around. B is in row 1 and column 3: at its left stand, from above, sky, roof and roof; at its right all is sky.
"""

# %%
predict("at_b")

# %%
picture = figures.example_picture()  # (3, 5, 10): colours, rows, columns
finder = torch.tensor([[1.0, 0, -1], [2, 0, -2], [1, 0, -1]])
# (numbers out, colours, rows, columns); a third for each colour makes the mean
kernel = finder.expand(1, 3, 3, 3) / 3
edges = F.conv2d(picture[None], kernel, padding=1)[0, 0]  # (5, 10)
print(f"at A {edges[1, 5]:.4f}, at B {edges[1, 3]:.4f}")
figures.edges(picture, {"the edge finder": edges}, marked={"A": (1, 5), "B": (1, 3)})

# %% [markdown]
r"""
At B the result is «-1.1000»: the left side is darker, so the right one with its minus wins (violet). A has the same on both sides and gets «0». (The kernel of the code has 27 numbers, nine for each colour. Off the picture it finds zeros, as `padding=1` says. They count as black, so there are edges at the margins, too.)

## 1 · Without positions

To attention the picture is a set of 50 tokens of three numbers, $(50, 3)$. A and B are the same blue.
"""

# %%
predict("enough_heads")

# %%
tokens = picture.flatten(1).T  # (50, 3), row by row
a, b = 10 * 1 + 5, 10 * 1 + 3  # the numbers of A and B: 15 and 13
wide = nn.Linear(3, 36)(tokens)  # (50, 36), so that it can be cut into 36 heads
for n_heads in (1, 36):
    layer = MultiHeadAttention(36, n_heads)
    output = layer(wide, wide, wide).output
    print(f"heads {n_heads:2}: A - B = {(output[a] - output[b]).abs().max():.4f}")

# %% [markdown]
r"""
**"With enough heads it could."** No number of heads does. A and B ask the same query of the same keys, so each head gives both the same output. A score must know where a pixel stands.

## 2 · What a convolution assumes

So what does the convolution know that attention does not? Here is its formula. The numbers of the pixel $p$ are the vector $x_p$, and its output is

$$y_p = \sum_{\delta} W_\delta \, x_{p + \delta}, \qquad \delta \in \{-1, 0, 1\}^2$$

An **offset** $\delta$ is a pair (down, right), and there are nine: $(0, -1)$ is the pixel at the left. The matrix $W_\delta$ of an offset, a **tap**, has the shape (numbers out, numbers in). Ours are $1 \times 3$. The tap of $(0, -1)$ is $(2/3, 2/3, 2/3)$.

The formula makes two assumptions before it sees any picture. Only neighbours count: **locality**. And every pixel has the same taps: **weight sharing**. So wherever the house stands, it has the same edges.

## 3 · A head for each offset

The formula does what heads do: it fetches a vector, multiplies it by a matrix, and adds up the results. So give each offset $\delta$ a head. Its table of weights has a 1 where the key stands at offset $\delta$ from the query. What it fetches is multiplied by $W_\delta$. (In part 04 a head's vectors are multiplied by $W_v$ before, and by its rows of $W_o$ afterwards. Here $W_\delta^\top$ is the product of the two.)
"""

# %% [markdown] tags=["exercise:shift_weights"]
# Write one head's table of weights.

# %%
table_of = yours("shift_weights")
total = torch.zeros(50, 1)
for down in (-1, 0, 1):
    for right in (-1, 0, 1):
        weights = table_of(5, 10, down, right)  # (50, 50)
        tap = kernel[:, :, down + 1, right + 1]  # (1, 3)
        total = total + weights @ tokens @ tap.T
assert_close(total.reshape(5, 10), edges)

# %% [markdown]
r"""
Your nine tables give the same edges, at every pixel. A mask that leaves one pixel open would make such a table. But a mask is given, and cannot be learned. Can scores do it? Two things stand in the way. A row of weights sums to 1, while your table has rows of zeros where a pixel at the margin looks off the picture. A border of zeros around the picture, whose pixels are keys, too, removes that. And softmax of finite scores gives no weight of exactly 0 or 1.

## 4 · Sharp scores

A head wants the pixel at one offset. Call the position where that pixel stands its **goal**, $g = p + \delta$. Let the score of a key fall with the squared distance of its position $r$ (row, column) from the goal:

$$\text{score} = -s \, |r - g|^2$$

The number $s$ is its **sharpness**. By hand: a row of five pixels, at $r = 0 \dots 4$, and the goal $g = 3$. At $s = 1$ the wanted pixel gets the weight $1 / (1 + 2e^{-1} + e^{-4} + e^{-9}) = 0.57$.
"""

# %%
for s in (1, 3, 10):
    show((-s * (torch.arange(5.0) - 3) ** 2).softmax(-1))

# %% [markdown]
r"""
The fourth number is the wanted pixel. At sharpness 3 it gets «0.91», and at 10 it gets «0.9999»: as near to 1 as we like.

Below are nine such heads on the house. Choose a head and move its sharpness. At which sharpness does one pixel hold 0.99 of the weight? And what becomes of the difference from the convolution (last row)?
"""

# %%
conv = nn.Conv2d(3, 1, kernel_size=3, padding=1, bias=False)
conv.weight.data.copy_(kernel)
PixelExplorer(conv, picture, start=(1, 3))

# %% [markdown]
r"""
It holds 0.99 from about 6 on. At 32, the end of the slider, the difference is 0.0000.

A score of attention is a product of a query, which knows who asks, and a key, which knows who is asked. Is this one? Multiply out:

$$-s|r - g|^2 = q \cdot k - s|g|^2, \qquad k = (|r|^2,\ r_\text{down},\ r_\text{right})$$

The last term is the same for all keys, so softmax does not see it, and it may be left out. What remains is a product: a key $k$ of three numbers, which says where it stands, and a query $q$ of three numbers, which says where to look.
"""

# %% [markdown] tags=["exercise:goal_query"]
# Which three numbers are $q$?

# %% [markdown]
r"""
So a head needs nothing but `attend`, with a score that is not divided by the root, `score=dot`. Queries and keys are made of positions alone; colours are only fetched.
"""

# %%
def grid(height, width, border=0):  # (pixels, 2): row, column; the picture's corner is 0, 0
    rows, columns = torch.arange(-border, height + border), torch.arange(-border, width + border)
    return torch.cartesian_prod(rows, columns).float()  # all pairs


query_of = yours("goal_query")


def look(canvas, at, goals, s):  # canvas (keys, c) stands at (keys, 2); goals (pixels, 2)
    k = torch.cat([at.square().sum(-1, keepdim=True), at], -1)  # (keys, 3)
    q = torch.stack([query_of(goal, s) for goal in goals])  # (pixels, 3)
    return attend(q, k, canvas, score=dot).output  # (pixels, c)


# %%
house = F.pad(picture, (1, 1, 1, 1)).flatten(1).T  # a border of 1: (84, 3)


def edges_by_heads(s):
    total = torch.zeros(50, 1)
    for delta in grid(1, 1, border=1):  # nine offsets
        head = look(house, grid(5, 10, border=1), grid(5, 10) + delta, s)
        down, right = delta.int() + 1
        total = total + head @ kernel[:, :, down, right].T
    return total.reshape(5, 10)


for s in (1, 10):
    print(f"sharpness {s:2}: off by {(edges_by_heads(s) - edges).abs().max():.4f}")
figures.edges(picture, {f"nine heads, s = {s}": edges_by_heads(s) for s in (1, 10)})

# %% [markdown]
r"""
**Nine sharp heads are the convolution.** At sharpness 1 the largest error is «1.3871», more than the edge at B: the left map is a blur. At 10 it is «0.0003», and the right map shows the edges.

## 5 · The price

What does freedom cost? For one pixel of the house the kernel does 27 multiplications: nine taps of three numbers.
"""

# %%
predict("price_of_nine")

# %%
for name, keys, c_in, c_out in (("house", 7 * 12, 3, 1), ("photo", 226 * 226, 64, 64)):
    by_taps = 9 * c_in * c_out
    nine_heads = 9 * (keys * c_in + c_in * c_out)  # mix the keys, then the tap
    print(f"{name}: {by_taps:,} and {nine_heads:,}, {nine_heads // by_taps} times as many")

# %% [markdown]
r"""
A head mixes $n$ keys of $c$ numbers, to use one of them: $nc$ multiplications. Its tap makes $C$ numbers of the result: $cC$ more. The kernel has the taps alone, so nine heads cost $(nc + cC) / cC = 1 + n/C$ times as much: 85 for the house. Inside a network a photograph of 224 × 224 pixels may have 64 numbers for each: 799. Whoever knows where to look should not pay that.

## 6 · Where no kernel can

What does that freedom buy? Now each pixel carries an arrow: up, down, left or right. Its output shall be the pixel three steps that way. The head's rival is the best kernel of 7 × 7, which reaches all four, and does not see the arrows. What an output misses is the variance of its error, divided by the variance of the wanted pixels.
"""

# %%
predict("arrows")

# %%
ways = torch.tensor([[-3.0, 0], [3, 0], [0, -3], [0, 3]])
arrows = ways[torch.randint(4, (400,))]  # one for each pixel of 20 rows of 20
noise = torch.randn(16, 1, 20, 20)  # 16 random pictures, one number a pixel
canvas = F.pad(noise, (3, 3, 3, 3)).flatten(1).T  # 26 rows of 26: (676, 16)
goals = grid(20, 20) + arrows  # (400, 2)
row, column = (goals + 3).long().unbind(-1)  # on the canvas
wanted = canvas[26 * row + column]  # (400, 16): all pictures have the same arrows

# the kernel: under it lie 49 numbers for each pixel; lstsq finds the best taps
seen = F.unfold(noise, 7, padding=3).permute(2, 0, 1)  # (400, 16, 49)
best = torch.linalg.lstsq(seen.flatten(0, 1), wanted.reshape(-1, 1)).solution
by_kernel = (seen @ best)[..., 0]

by_head = look(canvas, grid(20, 20, border=3), goals, 10.0)
for name, output in {"best kernel": by_kernel, "one head": by_head}.items():
    print(f"{name} misses {(output - wanted).var() / wanted.var():.0%}")

# %% [markdown]
r"""
**"A kernel that reaches far enough can do what attention does."** The same taps serve all pixels, so the best kernel gives each of the four positions about ¼. Then ¾ of the wanted pixel is missing, and ¼ of each of three others is too much. The pixels are independent, so the squares add: $9/16 + 3/16 = 75\,\%$. (The «74» is a little less, because the 49 numbers were fitted to these very pictures.)

If it saw the arrows, too, it would gain nothing. Wanted is a sum of four products, 1 or 0 as the arrow says, times a pixel, and a convolution never multiplies two of its inputs. (Two convolutions with a ReLU between them can imitate it: [evidence](evidence/07_attention_vs_cnn_evidence.ipynb).)

The head's error is 0 %. Compare its goals with those of section 4. There all pixels shared one offset, `grid(5, 10) + delta`, so all did the same. Here each pixel adds its own arrow, `grid(20, 20) + arrows`. The query is $s\,(-1, 2g)$. If a token carries a 1, its position and its arrow, each number of the query is a fixed sum of what it carries, so a matrix $W_q$ can make it. In this way content decides where to look.

## In real work

Often nobody knows where to look. Then let training find the scores. The vision model Swin attends among neighbouring tokens, small squares of pixels. To each score $q \cdot k$ it adds a learned number for the offset, a **relative position bias**.

## To carry away

`notebooks/carry/vision.py` is this chapter in plain torch, for your own projects. Its `Attention(d, n_heads, grid)` takes tokens $(b, n, d)$ that stand in a grid, and gives back $(b, n, d)$. It holds a table `by_offset` of learned numbers, (heads, offsets), and this function gives the column for each pair. In 5 × 10 pixels `down` has 9 values and `right` has 19, so the offset $(0, -1)$ has column $4 \cdot 19 + 8 = 84$:
"""

# %%
from carry import vision as carried

# %%
show_source(carried.offsets)

# %%
layer = carried.Attention(36, 4, grid=(5, 10))
before = layer(wide[None])[0]
with torch.no_grad():
    layer.by_offset[:, 84] = 3.0  # the left neighbour, in each of four heads
after = layer(wide[None])[0]
for name, output in {"before": before, "after": after}.items():
    print(f"{name:6}: A - B = {(output[a] - output[b]).abs().max():.4f}")

# %% [markdown]
r"""
The learned numbers start at 0. Then the layer knows no positions, and A and B get the same output, as in section 1. Raise one number in each head, and the layer tells them apart.

## The house once more

Give A an arrow to the roof, three steps to the left, and B one to the wall, two steps down. Then change an arrow in the cell, say first what it will fetch, and run it.
"""

# %%
sky = torch.tensor([a, b])
sky_arrows = torch.tensor([[0.0, -3.0], [2.0, 0.0]])
goals = grid(5, 10)[sky] + sky_arrows
fetched = look(tokens, grid(5, 10), goals, 10.0)
show(fetched=fetched, roof=picture[:, 1, 2], wall=picture[:, 3, 3])

# %% [markdown]
r"""
One head fetches both: A gets the roof's colour, and B the wall's. (The neighbours keep a little weight, 0.0001 or so.) The two are the same blue, and ask different questions.

**To remember.** Whoever knows where to look builds it in; attention is for positions that content chooses.

- For each tap a head: its score says where, the tap says what. Without positions there is no where.
- A score that falls with the squared distance is a product: a key that says where it stands, a query that says where to look.
- Nine heads cost $1 + n/C$ times a kernel: each mixes $n$ keys, and $C$ numbers come out.
- A fixed offset in the query makes a convolution; an offset that the pixel carries makes what no convolution can.

**Sources.** Cordonnier, Loukas & Jaggi 2019 (arXiv:1911.03584); Swin: Liu et al. 2021 (arXiv:2103.14030). Whether fewer heads do, and whether heads find their offsets by themselves: [evidence](evidence/07_attention_vs_cnn_evidence.ipynb).

**Next**: [07b · Data or prior](07b_data_or_prior.ipynb): what if nobody builds anything in, and there are only data?
"""
