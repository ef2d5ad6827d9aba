# %% [markdown]
r"""
{title}

*Dog bites man* and *man bites dog* have the same three words, and do not mean the same. A handwritten digit is a list of dark points, and means the same in
any order. Which of the two does attention read right?

**Afterwards you can** test whether a layer knows order; say where not knowing it is right; write the codes of the first Transformer, with their 10000.

{about}

<details><summary>中文摘要 · Chinese</summary>
没有位置信息的注意力是等变的:打乱输入,输出只是跟着打乱。对点云这类集合,这正是我们想要的;对句子则不行,必须把位置写进词里。
正弦编码由许多快慢不同的时钟组成,底数 10000 保证最慢的时钟在一篇文章里走不完一圈。把编码加进输入,分数就展开成四项。
</details>

{sources}
"""

# %%
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.testing import assert_close

from lesson_lib.chapters.c05_positional_encoding import figures
from lesson_lib.chapters.c05_positional_encoding.clocks_explorer import ClockExplorer
from lesson_lib.chapters.c05_positional_encoding.experiments import order, points
from lesson_lib.checks import check, hint, predict, solution, warm_up
from lesson_lib.data import digits
from lesson_lib.device import quick
from lesson_lib.heads import MultiHeadAttention
from lesson_lib.masks import causal
from lesson_lib.positions import frequencies, sinusoidal
from lesson_lib.show import show, show_source
from lesson_lib.training import stored

_ = torch.manual_seed(0)
warm_up()

# %%
predict("dog_in_both")

# %%
layer = MultiHeadAttention(d_model=16, n_heads=4)
dog, bites, man = 3 * torch.randn(3, 16)  # far apart, so that the rows differ
one, other = torch.stack([dog, bites, man]), torch.stack([man, bites, dog])
outputs, of_other = layer(one, one, one).output, layer(other, other, other).output
figures.two_sentences(outputs, of_other, ("dog", "bites", "man"))

# %% [markdown]
r"""
Compare *dog*, first on the left and last on the right: the dog that bites and the dog that is bitten get the same output. **No row shows where its token
stood.**

## 1 · Shuffle and compare

To test any layer, shuffle its tokens, `x[order]`, put the outputs back, and compare.
"""

# %% [markdown] tags=["exercise:put_back"]
# The middle step: row 0 of `x[order]` was row `order[0]`.

# %%
x = torch.randn(5, 16)
outputs = layer(x, x, x).output
for _ in range(100):
    new = torch.randperm(5)  # a random order of 0 to 4
    of_shuffled = layer(x[new], x[new], x[new]).output
    assert_close(of_shuffled, outputs[new])  # the same, without putting back

# %% [markdown]
r"""
A hundred random orders, and no difference beyond rounding. Without a mask it must be so:

1. Query, key and value are made from one token alone, with the same matrix for every token.
2. A score belongs to a pair of tokens. Rows and columns of the table change places; no number changes.
3. Softmax and output sum over the keys, and a sum does not mind the order of its terms.

Outputs that move along with their inputs are called **equivariant**; a result that stays as it is, **invariant**. **"Attention is
invariant."** Its table of outputs does change. The mean over its rows does not:
"""

# %%
assert not torch.allclose(of_shuffled, outputs, atol=0.1)
assert_close(of_shuffled.mean(0), outputs.mean(0))

# %% [markdown]
r"""
## 2 · Where that is right

A laser scanner gives a **point cloud**: points of a street, in no order that means anything. Our small cloud is a handwritten digit. Each dark pixel is a token of
three numbers: $x$, $y$ (downwards), and how dark it is.
"""

# %%
clouds, real, labels = points.lists("test")
cloud = clouds[7][real[7]]
print(f"digit {labels[7]}, {len(cloud)} points (x, y, darkness), the first three:")
show(cloud[:3])
mixed = cloud[torch.randperm(len(cloud))]
figures.as_lists(digits.pictures("test")[0][7], cloud, mixed)

# %%
show_source(points.PointReader)

# %% [markdown]
r"""
Read `forward`; `codes` comes later. Points $(b, n, 3)$ are lifted to width 64, attend to each other, and are averaged; `real` hides padding. All training lists run row by row, from the top of the picture.
"""

# %%
predict("shuffled_points")

# %% tags=["trained"]
reader, _ = points.train("no codes")
shares = {"no codes": points.accuracy(reader, "test")}
figures.point_accuracy(shares)

# %%
in_order, shuffled = shares["no codes"]
assert abs(in_order - shuffled) < 0.005  # one digit of 300 is 0.0033

# %% tags=["proof"]
assert quick() or in_order > 0.9

# %% [markdown]
r"""
Equally high: the shuffle cost nothing. Here blindness is a gift: nobody has to show each cloud in many orders.

Every point *carries its place in itself*, as $x$ and $y$. Trained on darkness alone, the model gets 22 % right; a guess gets 10.

## 3 · Words do not carry their place

A task in which only order counts: of 16 symbols, name the one three places before you.
"""

# %%
symbols, right = order.draw(torch.Generator().manual_seed(1), batch=1, length=10)
print("symbols      ", *(f"{s:2}" for s in symbols[0].tolist()))
print("right answers", *["  "] * 3, *(f"{s:2}" for s in right[0].tolist()))

# %%
figures.stored_three_back()

# %% [markdown]
r"""
**"After enough training it learns the order by itself."** Without codes it has 15 % both times, as whoever names the commonest of a text's 32. The three steps hold for trained weights, too.

The cure: write the place into the token, as a point has it. Place $i$ gets a vector $p_i$, a **code**, and the layer sees
$x_i + p_i$.

Which vectors? The first Transformer took clocks. Columns $2j$ and $2j + 1$ are one clock. With each token it turns by the angle $\omega_j$, its **frequency**:

$$p_{i,\,2j} = \sin(i\,\omega_j), \qquad p_{i,\,2j+1} = \cos(i\,\omega_j), \qquad \omega_j = 10000^{-2j/d}, \qquad j = 0, \dots, \tfrac d2 - 1$$

By hand for $d = 4$: the frequencies are $1$ and $10000^{-1/2} = 0.01$. So $p_0 = (0, 1, 0, 1)$, and $p_1 = (\sin 1, \cos 1, \sin 0.01, \cos 0.01) = (0.84, 0.54, 0.01, 1.00)$.
"""

# %% [markdown] tags=["exercise:code_row"]
# Write the code of one place.

# %%
p = sinusoidal(64, 32)  # a row for each of 64 places
figures.table(p)

# %% [markdown]
r"""
The left clock goes round every six tokens. On the far right the clocks have hardly left their start, sine 0 and cosine 1. Read a code like a watch: the fast hand tells neighbours apart, slow hands the part of the text.

*Do:* set the offset between the two hands to 44. They meet on the first clock, since 44 tokens are seven turns ($7 \cdot 2\pi = 43.98$). The second clock tells the places apart.
"""

# %%
ClockExplorer(d=8)

# %%
predict("slowest_clock")

# %%
turn = {base: 2 * torch.pi / frequencies(512, base=base) for base in (10, 10_000)}
for base, tokens in turn.items():
    print(
        f"base {base:6,}: tokens for a turn, from {tokens[0]:.2f} to {tokens[-1]:,.0f}"
    )
figures.nearness_by_base((10, 10_000))

# %% [markdown]
r"""
With base 10 all places beyond some tens look equally far. With base 10,000 the curve falls on, with ripples, to 0.2 at place 1,000: the slowest clock needs «60,611» tokens for a turn. The price is clocks that hardly
move in short texts.

## 4 · Back to the points

Now the reader with `codes`.
"""

# %%
predict("codes_on_points")

# %% tags=["trained"]
with stored():  # reads what this training left before
    told, _ = points.train("codes")
shares["codes"] = points.accuracy(told, "test")
figures.point_accuracy(shares)

# %% tags=["proof"]
assert quick() or (shares["codes"][0] > 0.85 and shares["codes"][1] < 0.65)

# %% [markdown]
r"""
In order both get over «0.9». Shuffled, the second falls to about half. Training lists start at the top, so a place in the list says something about $y$. The model used it, and the shuffle made it false. **Give codes to
what will have an order where the model is used.**

## 5 · What a score then holds

With $M = W_q W_k^\top$ (part 03), a score, before its division by the root, has four parts:

$$(x_i + p_i)\, M\, (x_j + p_j)^\top = \underbrace{x_i M x_j^\top}_{\text{word with word}} + \underbrace{x_i M p_j^\top}_{\text{word with place}} + \underbrace{p_i M x_j^\top}_{\text{place with word}} + \underbrace{p_i M p_j^\top}_{\text{place with place}}$$
"""

# %%
M = torch.randn(16, 16) / 16  # not trained: only the form of the parts counts
q, words = sinusoidal(3, 16), one / 3  # codes; words, made about as large
terms = {
    "word with word": words @ M @ words.T,
    "word with place": words @ M @ q.T,
    "place with word": q @ M @ words.T,
    "place with place": q @ M @ q.T,
}
assert_close(sum(terms.values()), (words + q) @ M @ (words + q).T)
figures.four_terms(terms, ("dog", "bites", "man"))

# %% [markdown]
r"""
In the second table row *bites* has a score for each place. A trained model could make column 0 large: "a verb looks at the start". The last table holds no word, and is the same for every text: "look one place back".

## In real work

torch's Transformer layers add **no** codes; you do, before the first layer. Who forgets gets no error, only a set of words. The test shows it:
"""

# %%
ready = nn.TransformerEncoderLayer(16, nhead=4, batch_first=True).eval()
assert_close(ready(x[None, new])[0], ready(x[None])[0][new])

# %% [markdown]
r"""
A batch that is padded on the left needs its places counted from the first real word:
"""

# %%
real_words = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]])
show(places=(real_words.cumsum(-1) - 1).clamp(min=0))

# %% [markdown]
r"""
The first word of row 0, in column 2, has place 0.

## Dog and man once more
"""

# %%
p = sinusoidal(3, 16)
with_codes = [layer(s + p, s + p, s + p).output for s in (one, other)]
with_mask = [layer(s, s, s, mask=causal(3)).output for s in (one, other)]
for name, (first, last) in {"codes": with_codes, "mask": with_mask}.items():
    print(f"{name}: outputs of dog differ by {(first[0] - last[2]).abs().max():.2f}")

# %% [markdown]
r"""
Without codes and mask the number is 0. Codes make the two dogs differ. So does a causal mask: the first word sees one word, the last sees three, so step 2 breaks, and a causal model can infer some order without codes.

**To remember.** Attention knows what its tokens are, not where they stand: right for sets, and for texts the place must be put in.

- Shuffle, put back, compare: the test for order.
- A point carries its place in itself; a word needs a code, $x_i + p_i$.
- Sinusoids are $d/2$ clocks, the slowest slower than the text is long.
- A score then has four parts; one sees places alone.
- Where order means nothing, codes can do harm.

**Sources.** Vaswani et al. 2017 (arXiv:1706.03762), section 3.5; Zaheer et al. 2017, *Deep Sets* (arXiv:1703.06114); Lee et al. 2019, *Set Transformer* (arXiv:1810.00825); Haviv et al. 2022 (arXiv:2203.16634). Seeds, claims:
[evidence](evidence/05_positional_encoding_evidence.ipynb).

**Next**: [05b · Rotation](05b_rotation.ipynb): can distance be seen in a code?
"""
