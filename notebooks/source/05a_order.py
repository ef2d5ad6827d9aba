# /// ideas
# [test_for_order]
# says = "the test for order: shuffle the tokens, put the outputs back, compare"
# motive = "How would you find out for any layer?"
# shown = "moved_by_order"
# action = "put_back"
#
# [equivariant]
# says = "attention without mask and codes is equivariant: outputs move along with their tokens, and nothing else changes"
# motive = "A hundred random orders"
# shown = "0.0000"
# action = 'predict("dog_in_both")'
#
# [sets]
# says = "where tokens carry their position themselves, as points do, not knowing order is right"
# motive = "Where that is right"
# shown = "right digits: in order"
# action = 'predict("shuffled_points")'
#
# [three_back]
# says = "a task of order alone cannot be learned without codes, however long one trains"
# motive = "A task in which only order counts"
# shown = "figures.stored_three_back(codes=False)"
# action = 'predict("without_codes")'
#
# [into_the_token]
# says = "a position is written into the token: x_i + p_i"
# motive = "write the position into the token"
# shown = "x_i + p_i"
# action = "code_row"
#
# [clocks]
# says = "one number for a position grows or repeats; a pair of sine and cosine at many frequencies does neither"
# motive = "Why not write the number"
# shown = "angle.sin()"
# action = "Look for two with nearly the same sine"
#
# [sinusoid]
# says = "sinusoidal codes: d/2 clocks, frequency 10000 ** (-2j/d), a sine and a cosine of each"
# motive = "So take several clocks"
# shown = "10000^{-2j/d}"
# action = "code_row"
#
# [fast_and_slow]
# says = "fast clocks tell neighbours apart, slow ones the part of the text"
# motive = "Read a code like a watch"
# shown = "ClockExplorer(d=8)"
# action = "set the offset"
#
# [base]
# says = "choose the base so that the slowest clock needs longer for a turn than your longest text"
# motive = "Why 10000?"
# shown = "it needs 60,611"
# action = 'predict("slowest_clock")'
#
# [harm]
# says = "codes do harm where the order is an accident"
# motive = "Back to the points"
# shown = 'points.train("codes")'
# action = 'predict("codes_on_points")'
#
# [torch_adds_none]
# says = "torch's layers add no codes; forgetting them raises no error"
# motive = "torch's layers add"
# shown = "nn.TransformerEncoderLayer"
# action = "Try your test on torch"
#
# [mask_tells_order]
# says = "a causal mask breaks the symmetry: such a model can infer some order without codes"
# motive = "reads both sentences in three ways"
# shown = "mask=causal(3)"
# action = 'predict("which_know")'
# ///

# %% [markdown]
r"""
{title}

*Dog bites man* and *man bites dog* have the same three words, and do not mean the same. A handwritten digit is a list of dark points, and means the same in any order. Which of the two does attention read right?

**Afterwards you can** test whether a layer knows order; say where not knowing it is right; write the position codes of the Transformer of 2017, and say why they are as they are.

{about}

<details><summary>中文摘要 · Chinese</summary>
“狗咬人”和“人咬狗”用的是同样三个词,意思却不同;手写数字的点无论怎样排列都是同一个数字。注意力读对了哪一个?本课写出检验任何一层是否知道顺序的测试,
看什么时候不知道顺序恰好是对的,再从头想出位置编码为什么由快慢不同的时钟组成。
</details>

{sources}
"""

# %% tags=["imports"]
import torch
from torch import nn

from lesson_lib.chapters.c05_positional_encoding import figures
from lesson_lib.chapters.c05_positional_encoding.clocks_explorer import ClockExplorer
from lesson_lib.chapters.c05_positional_encoding.experiments import order as three_back
from lesson_lib.chapters.c05_positional_encoding.experiments import points
from lesson_lib.course import *
from lesson_lib.data import digits
from lesson_lib.heads import MultiHeadAttention
from lesson_lib.masks import causal
from lesson_lib.positions import sinusoidal
from lesson_lib.training import stored

_ = torch.manual_seed(0)
warm_up()

# %%
predict("dog_in_both")

# %%
layer = MultiHeadAttention(d_model=16, n_heads=4)  # your MultiHead of 04; its results have names
dog, bites, man = 3 * torch.randn(3, 16)
one, other = torch.stack([dog, bites, man]), torch.stack([man, bites, dog])
outputs, of_other = layer(one, one, one).output, layer(other, other, other).output
figures.two_sentences(outputs, of_other, ("dog", "bites", "man"))

# %% [markdown]
r"""
Compare *dog*, the first row on the left and the last on the right: the dog that bites and the dog that is bitten get the same output. **No row shows where its token stood.**

## 1 · Shuffle and compare

How would you find out for any layer? Shuffle its tokens: `x[order]`, where `order` holds the rows' numbers in a random order, say 2, 0, 1. Put the outputs back to where their tokens stood, and compare them with the outputs of `x`. If nothing has changed, for any order, the layer knows none.
"""

# %% [markdown] tags=["exercise:put_back"]
# Write the middle step. `outputs` (n, d) belong to `x[order]`: row 0 belongs to the token that was row `order[0]` of x. Return them in the order of x.

# %%
def moved_by_order(layer, x, times=100):
    """How far the outputs of layer(x), (n, d), depend on the order of x: 0 if not at all."""
    farthest, plain = 0.0, layer(x)
    for _ in range(times):
        order = torch.randperm(len(x))
        back = yours("put_back")(layer(x[order]), order)
        farthest = max(farthest, (back - plain).abs().max().item())
    return farthest


x = torch.randn(5, 16)
moved = moved_by_order(lambda t: layer(t, t, t).output, x)
print(f"A hundred random orders: outputs differ by {moved:.4f} at most")

# %% [markdown]
r"""
It must be so, for three reasons:

1. Query, key and value are made from one token alone, with the same matrices for every token.
2. A score belongs to a pair of tokens. Shuffle the tokens, and the table's rows are shuffled, and its columns in the same way; the score of each pair stays.
3. Softmax divides by a sum over the keys, and the output is a sum over the keys, too. Sums have no order.

A layer is called **equivariant** if shuffling its inputs shuffles its outputs in the same way, and changes nothing else. **"Attention is invariant."** No: an **invariant** result stays as it is, and here the outputs move with their tokens. But their mean over the tokens is invariant:
"""

# %%
new = torch.tensor([2, 0, 1, 4, 3])
tables = [layer(t, t, t).output for t in (x, x[new])]
print(f"the tables differ by {(tables[0] - tables[1]).abs().max():.2f}")
print(f"their means differ by {(tables[0].mean(0) - tables[1].mean(0)).abs().max():.2f}")

# %% [markdown]
r"""
## 2 · Where that is right

A laser scanner sees a street as a **point cloud**: points, in no order that means anything. Our small cloud is a handwritten digit. Each dark pixel is a token of three numbers: $x$, $y$ (downwards), both from −1 to 1, and how dark it is.
"""

# %%
clouds, real, labels = points.lists("test")  # real: True for a point, False for padding
cloud = clouds[7][real[7]]
print(f"digit {labels[7]}, {len(cloud)} points (x, y, darkness), the first three:")
show(cloud[:3])
mixed = cloud[torch.randperm(len(cloud))]
figures.as_lists(digits.pictures("test")[0][7], cloud, mixed)

# %% [markdown]
r"""
A small reader lifts each point to 64 numbers, lets the points attend to each other, and reads the digit from the mean over the real points:
"""

# %%
show_source(points.PointReader)

# %% [markdown]
r"""
It is trained on lists in reading order, row by row from the top.
"""

# %%
predict("shuffled_points")

# %%
with stored():  # it was trained before; without this line it takes a quarter of a minute
    reader, _ = points.train("no codes")  # codes come in section 3
shares = {"as it is": points.accuracy(reader, "test")}
print("right digits: in order {:.3f}, shuffled {:.3f}".format(*shares["as it is"]))

# %% [markdown]
r"""
The shuffle cost nothing. Here not knowing order is a gift: nobody has to show each cloud in many orders. A point carries its position in itself, as $x$ and $y$.

## 3 · Words do not carry their position

A task in which only order counts: name the symbol three positions before. There are 16 symbols, drawn at random, 32 in a text (here 10); the first three have no answer:
"""

# %%
symbols, right = three_back.draw(torch.Generator().manual_seed(1), batch=1, length=10)
print("symbols      ", *(f"{s:2}" for s in symbols[0].tolist()))
print("right answers", *["  "] * 3, *(f"{s:2}" for s in right[0].tolist()))

# %%
predict("without_codes")

# %%
figures.stored_three_back(codes=False)

# %% [markdown]
r"""
**"After enough training it learns the order by itself."** It has 15 % after 400 steps, and 15 % after 1,200: the three reasons hold for trained matrices, too. It sees which symbols occur, and not where, so its best bet is the commonest symbol of the text:
"""

# %%
texts, _ = three_back.draw(torch.Generator().manual_seed(2), batch=500, length=32)
share = (texts[..., None] == torch.arange(16)).float().mean(1).max(-1).values.mean()
print(f"the commonest symbol makes up {share:.2f} of a text")

# %% [markdown]
r"""

The cure is to write the position into the token. Position $i$ gets a vector $p_i$, its **code**, and the layer sees the sum $x_i + p_i$. Word and code can lie in different directions of the sum, and a matrix can read either.

Which vector? Why not write the number $i$ itself? It grows: in a long text it drowns the word. Why not $i / n$, which does not grow? The step from one word to the next then depends on the length $n$ of the text. A clock does neither: its hand turns by the same angle at each token, and we write down its sine. Look for two with nearly the same sine:
"""

# %%
i = torch.arange(8)
print("position", *(f"{k:5}" for k in i.tolist()))
for name, angle in {"fast": i * 1.0, "slow": i * 0.01}.items():
    print(f"{name:8}", *(f"{s:5.2f}" for s in angle.sin().tolist()))

# %% [markdown]
r"""
The fast one takes each value twice in a turn (1 and 2 are nearly alike), and after 6.28 tokens it begins anew. The slow one hardly differs between neighbours. So take several clocks, fast and slow, and of each the sine and the cosine, which together show where the hand stands. These are the **sinusoidal** codes of the Transformer (2017):

$$p_{i,\,2j} = \sin(i\,\omega_j), \qquad p_{i,\,2j+1} = \cos(i\,\omega_j), \qquad j = 0, \dots, \tfrac d2 - 1$$

$$\omega_j = 10000^{-2j/d}$$

Columns $2j$ and $2j + 1$ are one clock. With each token it turns by the angle $\omega_j$, its **frequency**, so a turn takes $2\pi / \omega_j$ tokens. The powers make a ladder: for $d = 8$ a turn takes 6, 63, 628 and 6,283 tokens, each clock ten times slower than the one before. By hand for $d = 4$: the frequencies are $1$ and $10000^{-1/2} = ‹0.01›$. So $p_0 = (0, 1, 0, 1)$, and $p_1 = (\sin 1, \cos 1, \sin ‹0.01›, \cos ‹0.01›) = (‹0.84›, ‹0.54›, ‹0.01›, 1.00)$.
"""

# %% [markdown] tags=["exercise:code_row"]
# Write the code of one position, d numbers.

# %%
p = torch.stack([yours("code_row")(float(i), 32) for i in range(64)])  # (64, 32)
figures.table(p)

# %% [markdown]
r"""
The clock on the left goes round every six tokens. On the far right the clocks have hardly left their start, sine 0 and cosine 1. Read a code like a watch: the fast hands tell neighbours apart, the slow ones say in which part of the text you are.

*Do:* below, one hand of each clock stands for position $i$, the other for $i$ + offset. Which clocks can tell the two apart if you set the offset to 44?
"""

# %%
ClockExplorer(d=8)

# %% [markdown]
r"""
The two hands meet on the first clock, since 44 tokens are seven turns ($7 \cdot 2\pi = 43.98$). The second and the third clock tell the positions apart; the fourth has hardly moved. Does a layer use such codes? The same network, one layer of attention and a linear read-out, trained on three back with codes added:
"""

# %%
figures.stored_three_back()

# %% [markdown]
r"""
With codes it is right nearly always. How a score can find "three back" in sines and cosines, part 05b shows.

Why 10000? This number, the **base**, sets how slow the slowest clock is.
"""

# %%
predict("slowest_clock")

# %% [markdown]
r"""
With 10000 and the same width it needs 60,611. A rule of thumb: let its turn take longer than your longest text.

## 4 · Back to the points

Now give the points codes as well: after it is lifted to 64 numbers, the $i$-th point of a list gets $p_i$ added.
"""

# %%
predict("codes_on_points")

# %%
with stored():
    told, _ = points.train("codes")
shares["with codes"] = points.accuracy(told, "test")
for name, both in shares.items():
    print("{:12} in order {:.3f}, shuffled {:.3f}".format(name, *both))

# %% [markdown]
r"""
In order the codes gain nothing, «0.957» against «0.963». Shuffled, the reader with codes falls to «0.443». Training lists start at the top, so a late position in the list meant low in the picture. The model used it, and the shuffle took this away. **Give codes only to inputs whose order will mean something when the model is used.**

## In real work

torch's layers add **no** codes; you do, before the first layer. If you forget, no error is raised; without a causal mask the model reads a bag of words. Try your test on torch's layer, an attention and a small network (06a).
"""

# %%
ready = nn.TransformerEncoderLayer(16, nhead=4, dropout=0.0, batch_first=True)
coded = sinusoidal(5, 16)
for name, code in {"torch's layer": 0, "with codes": coded}.items():
    moved = moved_by_order(lambda t, c=code: ready((t + c)[None])[0].detach(), x)  # codes stay
    print(f"{name:14} {moved:.2f}")

# %% [markdown]
r"""
Bare, it knows no order; with codes its outputs move.

## To carry away

`carry/positions.py` has this chapter's codes in plain torch, and your test:
"""

# %%
from carry import positions as carried

torch.testing.assert_close(carried.sinusoidal(64, 32), p, atol=1e-4, rtol=0)  # as yours
show_source(carried.frequencies, carried.sinusoidal, carried.moved_by_order)

# %% [markdown]
r"""
## Dog and man once more

Our layer reads both sentences in three ways: as at the beginning; with codes; and without codes, but with a causal mask (03), which hides later words.
"""

# %%
predict("which_know")

# %%
codes = sinusoidal(3, 16)
ways = {
    "bare": [layer(s, s, s).output for s in (one, other)],
    "codes": [layer(s + codes, s + codes, s + codes).output for s in (one, other)],
    "causal mask": [layer(s, s, s, mask=causal(3)).output for s in (one, other)],
}
for name, (first, last) in ways.items():
    differ = (first[0] - last[2]).abs().max()  # dog, in both
    print(f"{name:12} the two dogs differ: {'yes' if differ > 1e-4 else 'no'}")

# %% [markdown]
r"""
Codes make the two dogs differ. So does a causal mask: whether a pair of words has a score now depends on their positions, so reason 2 fails. A causal model can therefore infer some order without codes. Attention without either reads the digit right, and the sentence wrong.

**To remember.** Attention without a causal mask knows what its tokens are, not where they stand. For a set this is right; a text needs codes, or at least a causal mask.

- Shuffle, put back, compare: the test for order.
- A point carries its position in itself; a word needs a code, $x_i + p_i$.
- Sinusoidal codes are $d/2$ clocks: fast ones for neighbours, slow ones for the part of the text.
- Where order is an accident, codes do harm.

**Sources.** Vaswani et al. 2017 (arXiv:1706.03762), section 3.5; Zaheer et al. 2017, *Deep Sets* (arXiv:1703.06114); Lee et al. 2019, *Set Transformer* (arXiv:1810.00825); Haviv et al. 2022 (arXiv:2203.16634). Seeds, claims: [evidence](evidence/05_positional_encoding_evidence.ipynb).

**Next**: [05b · Rotation](05b_rotation.ipynb): can distance be seen in a code?
"""
