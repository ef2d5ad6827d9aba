# /// ideas
# [forgets]
# says = "with attention alone all tokens of a sentence become alike: a token forgets itself"
# motive = "Does the row of *saw* still know that it is *saw*?"
# shown = "figures.same_way(cosines)"
# action = 'predict("three_attentions")'
#
# [residual]
# says = "residual connection: x + sublayer(x); attention brings news of other tokens, the sum keeps the token's own"
# motive = "Is there a way to keep what it was?"
# shown = "outputs added to the input"
# action = "for keep, name in enumerate"
#
# [feed_forward]
# says = "feed-forward network: relu(x W_1 + b_1) W_2 + b_2, the same for each token by itself; it computes with what attention has brought"
# motive = "No weighted sum of the bits"
# shown = "1 where the bits differ"
# action = "w_2 = torch.tensor"
#
# [growth]
# says = "sums make rows grow from layer to layer, scores grow with the square, and softmax saturates"
# motive = "A norm is cosmetics"
# shown = "largest weight"
# action = 'predict("twelve_layers")'
#
# [layer_norm]
# says = "LayerNorm: one token's numbers, less their mean, over the root of their variance, times g plus b"
# motive = "A cure for the growth is to bring each row back"
# shown = "\\operatorname{LayerNorm}(x)"
# action = 'predict("standard_token")'
#
# [encoder_layer]
# says = "encoder layer: attention, then the feed-forward network; around each a sum and a norm"
# motive = "these four make the layer"
# shown = "+-- attention ---"
# action = "Write it for the order of 2017"
#
# [post_norm]
# says = "with the norm after the sum (post-norm, 2017), twelve random layers forget the word where outputs are about as long as rows, and keep it where the matrices are smaller"
# motive = "The sum kept the word through three attentions"
# shown = "norm after the sum"
# action = 'predict("twelve_of_yours")'
#
# [pre_norm]
# says = "pre-norm: x + sublayer(norm(x)), a last norm after the last layer; the row grows and outputs do not, so the word stays, and twelve layers learn"
# motive = "Where else could the norm stand?"
# shown = "length of an output / of its row"
# action = "def pre_norm_layer"
#
# [decoder_layer]
# says = "decoder layer: causal attention among its own tokens, cross-attention (queries from itself, keys and values from the memory), feed-forward network"
# motive = "reads two texts"
# shown = "+-- cross-attention ---"
# action = "Write it, this time in pre-norm"
#
# [last_norm]
# says = "in torch, a stack of pre-norm layers needs its last norm handed in"
# motive = "else long rows go to the read-out"
# shown = "no norm"
# action = "nn.LayerNorm(64)(rows)"
# ///

# %% [markdown]
r"""
{title}

*my friend kept the sharp saw beside them*: eight words, eight rows of numbers. Send them through attention three times in a row. Does the row of *saw* still know that it is *saw*?

**Afterwards you can** write an encoder layer and a decoder layer; say what the residual connection, the norm and the feed-forward network are for; choose where the norm stands.

{about}

<details><summary>中文摘要 · Chinese</summary>
八个词的向量连续三次通过注意力之后,“saw”这一行还知道自己是“saw”吗?本章用同一把尺子(线性读出)量三次:只有注意力时剩下多少;加上残差连接之后剩下多少;归一化放在哪里,十二层之后才不会忘。最后写出编码层和解码层。
</details>

{sources}
"""

# %% tags=["imports"]
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from lesson_lib.blocks import FeedForward
from lesson_lib.chapters.c06_transformer import layer_figures as figures
from lesson_lib.chapters.c06_transformer.experiments import residual
from lesson_lib.course import *
from lesson_lib.data.tagging import VOCABULARY, read
from lesson_lib.heads import MultiHeadAttention
from lesson_lib.masks import causal

_ = torch.manual_seed(0)
warm_up()

# %% [markdown]
r"""
Nothing is trained yet. Each word of a vocabulary has a row of 64 random numbers, and three multi-head attentions (part 04) have random matrices. After each of them, `norm` brings every row to the same length, 8 (section 3).
"""

# %%
predict("three_attentions")

# %%
table = torch.randn(len(VOCABULARY), 64)
attentions = [MultiHeadAttention(64, n_heads=4) for _ in range(3)]


def norm(x):
    return F.layer_norm(x, (64,))


def in_a_row(words, keep, times=3):
    """Rows after so many attentions; with keep=1 each output is added to what came in."""
    x = table[words]  # (b, n, 64)
    for attention in attentions[:times]:
        x = norm(keep * x + attention(x, x, x).output)
    return x


words = read("my friend kept the sharp saw beside them")  # (1, 8) numbers
rows = [in_a_row(words, 0, times=0), in_a_row(words, 0), in_a_row(words, 1)]
cosines = [F.normalize(x[0], dim=-1) @ F.normalize(x[0], dim=-1).T for x in rows]
figures.same_way(cosines)

# %% [markdown]
r"""
A cosine of 1 means that two rows point in the same direction. On the left, each word agrees with itself alone. In the middle, after three attentions, all eight rows point the same way. Each output mixes the same eight values, so outputs share more than the inputs did. Rows that are alike ask and answer alike, so the next outputs are still more alike. On the right, each output was *added* to what came in, and the words stay apart.

How much does a row still know? `remembered` is a ruler for this question. It takes the sentences of part 01a and fits, by least squares, a linear read-out that predicts each row's own word. It returns the share of new rows for which this is right.
"""

# %%
print("after so many attentions      0     1     2     3")
for keep, name in enumerate(("outputs alone", "outputs added to the input")):
    named = [
        residual.remembered(lambda w, k=keep, t=times: in_a_row(w, k, t)) for times in range(4)
    ]
    print(f"{name:27}", *(f"{share:5.2f}" for share in named))
    assert named[3] < 0.2 if keep == 0 else named[3] > 0.9

# %% [markdown]
r"""
At the start the read-out is right for «0.97», all but some rare words. In the first line one attention leaves «0.38», and three leave «0.14». A sentence has about eight words: the row that all of them share still tells which words the sentence has, but not which of them is its own, and a guess is right in 1 of 8. **With attention alone, each of these rows forgets its own word.** In the second line «0.92» stay.

## 1 · The residual connection

Is there a way to keep what it was? The second line shows it: $x + \operatorname{sublayer}(x)$. This sum is called a **residual connection**. A **sub-layer** is an attention, or the network of section 2. Attention brings news of other tokens, and the sum keeps the token's own.

## 2 · The other sub-layer

Attention moves information *between* tokens. Then each token must compute with what it has received. Let two heads bring one bit each, and let the answer be 1 where the bits differ. No weighted sum of the bits gives this answer: if 0, 1 and 1, 0 both give 1, then 1, 1 gives 2. A network with two **hidden** numbers, which stand between its two matrices, can:
"""

# %%
bits = torch.tensor([[0.0, 0], [0, 1], [1, 0], [1, 1]])
w_1, b_1 = torch.ones(2, 2), torch.tensor([0.0, -1])  # the sum of the bits; the sum less 1
w_2 = torch.tensor([[1.0], [-2]])
print("1 where the bits differ:", *((bits @ w_1 + b_1).relu() @ w_2)[:, 0].tolist())

# %% [markdown]
r"""
The second hidden number is the sum of the bits less 1. After `relu`, which makes negative numbers 0, it is 1 where both bits are 1, and 0 elsewhere. Its weight −2 takes the 2 back.

In the Transformer (*Attention Is All You Need*, 2017) such a network follows attention: the **feed-forward network**. Both together make a **layer**. The network works on each token by itself, with the same matrices for all:

$$\operatorname{FFN}(x) = \operatorname{relu}(x W_1 + b_1)\, W_2 + b_2$$

$W_1$ widens a row from its d_model numbers to d_inner hidden ones, usually four times as many, and $W_2$ leads back.

## 3 · The norm

**"A norm is cosmetics."** Send the sentence through twelve random layers, each with both sub-layers and both sums, but without any norm.
"""

# %%
predict("twelve_layers")

# %%
def length(rows):
    return torch.linalg.vector_norm(rows, dim=-1)


layers = [(MultiHeadAttention(64, 4), FeedForward(64, 256)) for _ in range(12)]
for name, after in (("without a norm", lambda x: x), ("with a norm", norm)):
    x = table[words]
    print(name)
    for i, (attention, network) in enumerate(layers):
        before, looked = length(x).mean(), attention(x, x, x)
        x = after(x + looked.output)
        x = after(x + network(x))
        if i in (0, 11):
            largest = looked.weights.max(-1).values.mean()
            print(f"  layer {i:2}: rows {before:4.0f} long, largest weight {largest:.2f}")

# %% [markdown]
r"""
Without a norm, the rows that come into layer 11 are «551» long, and were «8». A longer row makes a longer output, which is added, so the growth feeds itself. Scores are products of two rows, so they grow with the square, and softmax saturates (02b): each query looks at one key. With a norm the length stays «8», and nothing saturates. But «0.13» is 1 in 8: the queries of layer 11 do not choose (section 4).

A cure for the growth is to bring each row back. **LayerNorm** takes the d_model numbers of one token. It subtracts their mean, and divides by the root of their variance (the mean of the squared differences). Then it multiplies column $j$ by a learned number $g_j$, which starts at 1, and adds a learned $b_j$, which starts at 0 ($\odot$ multiplies number by number; the tiny $\varepsilon$ keeps us from dividing by 0).

$$\operatorname{LayerNorm}(x) = g \odot \frac{x - \operatorname{mean}(x)}{\sqrt{\operatorname{variance}(x) + \varepsilon}} + b$$

Our 64 numbers have then variance 1, so a row is $\sqrt{64} = 8$ long.
"""

# %%
predict("standard_token")

# %% [markdown]
r"""
Attention, network, sum and norm: these four make the layer of an **encoder**, the half of the Transformer that reads.

```
x --+-------------------(+)-- norm --> y
    +-- attention -------+
y --+-------------------(+)-- norm -->
    +-- feed-forward ----+
```
"""

# %% [markdown] tags=["exercise:encoder_layer"]
# Write it for the order of 2017: the norm comes after the sum. $x$ is (b, n, d); `attention(query, key, value)` returns the output alone; `norms` holds two functions.

# %% [markdown]
r"""
## 4 · Where does the norm stand?

The sum kept the word through three attentions. **"So it keeps it at any depth."** Does your layer keep it through twelve?
"""

# %%
predict("twelve_of_yours")

# %%
def after_layers(layer, words, n):
    """Rows after the first n of our twelve layers, put together by `layer`."""
    x = table[words]
    for attention, network in layers[:n]:
        x = layer(x, lambda *qkv, a=attention: a(*qkv).output, network, (norm, norm))
    return norm(x)


def print_kept(name, layer):
    kept = [residual.remembered(lambda w, n=n: after_layers(layer, w, n)) for n in (0, 3, 6, 12)]
    print(f"{name:21}", *(f"{share:5.2f}" for share in kept))
    return kept[-1]


print("after so many layers      0     3     6    12")
assert print_kept("norm after the sum", yours("encoder_layer")) < 0.3
rows = F.normalize(after_layers(yours("encoder_layer"), words, 12)[0], dim=-1)
print(f"smallest cosine of two words after twelve: {(rows @ rows.T).min():.2f}")

# %% [markdown]
r"""
After twelve of your layers «0.17» are left: the word is forgotten after all. All rows point the same way again, so do their keys, and each key gets 1 in 8 of the weight: that was the «0.13» of section 3.

Follow $x$ in the drawing from sum to sum. This road is the **residual stream**, and it meets a norm twice in each layer, 24 times in all. Where else could the norm stand? It can stand in the branch, where a sub-layer reads:

| | one sub-layer |
|---|---|
| **post-norm** (2017) | x ← norm(x + sublayer(x)) |
| **pre-norm** | x ← x + sublayer(norm(x)), and one norm after the last layer |

"""

# %%
predict("which_keeps")

# %%
def pre_norm_layer(x, attention, feed_forward, norms):
    y = norms[0](x)
    x = x + attention(y, y, y)
    return x + feed_forward(norms[1](x))


def no_norm_layer(x, attention, feed_forward, norms):
    x = x + attention(x, x, x)
    return x + feed_forward(x)


print("after so many layers      0     3     6    12")
assert print_kept("norm in the branch", pre_norm_layer) > 0.65
assert print_kept("no norm", no_norm_layer) < 0.2

# %% [markdown]
r"""
Depth opens a gap. With the norm in the branch «0.79» are left after twelve; without a norm «0.08», less than guessing among the sentence's words would. Why? Compare the length of each attention's output with the length of the row that it is added to:
"""

# %%
print("length of an output / of its row   layer 0   layer 11")
for kind in ("norm after the sum", "norm in the branch", "no norm"):
    x, ratios = table[words], []
    for attention, network in layers:
        for sublayer in (lambda y, a=attention: a(y, y, y).output, network):
            output = sublayer(norm(x) if kind == "norm in the branch" else x)
            ratios.append((length(output) / length(x)).mean())
            x = norm(x + output) if kind == "norm after the sum" else x + output
    print(f"{kind:34} {ratios[0]:5.1f} {ratios[-2]:10.1f}")  # the attentions alone

# %% [markdown]
r"""
In layer 0 an output is half as long as its row: the values that it averages cancel in part. In layer 11 of post-norm it is as long: rows are alike, so nothing cancels. Without a norm it is as long, too: each query takes one value whole. With the norm in the branch the row has grown, and the output has not.

Is this length the cause? Make the outputs shorter, and nothing else: divide the last matrix of each sub-layer by 3.
"""

# %%
for attention, network in layers:
    attention.w_output.weight.data /= 3
    network.w_out.weight.data /= 3
print("after so many layers      0     3     6    12")
assert print_kept("norm after the sum", yours("encoder_layer")) > 0.9

# %% [markdown]
r"""
Now outputs are short beside their rows, and your layer keeps the word. So post-norm forgets where outputs are about as long as rows. After training, a tagger of twelve layers gets ‹.83› of the ambiguous words right in pre-norm and ‹.52› in post-norm ([evidence](evidence/06_transformer_evidence.ipynb)). In 2017 post-norm machines had six layers. Most of today's models are pre-norm.

## 5 · The decoder layer

A translator reads two texts: the one to be translated, and what it has written so far. The encoder has read the first; what leaves its last layer is called the **memory**. The **decoder** is the half that writes. Its layers have one more sub-layer, between the other two: **cross-attention**, where each written token asks, and the memory answers. The first attention is causal. In post-norm:

```
x --+----------------------(+)-- norm --> y
    +-- causal attention ---+
y --+----------------------(+)-- norm --> z
    +-- cross-attention ----+   asks the memory
z --+----------------------(+)-- norm -->
    +-- feed-forward -------+
```
"""

# %% [markdown] tags=["exercise:decoder_layer"]
# Write it, this time in pre-norm. Who asks, and who answers? $x$ is (b, n, d), the memory (b, m, d), normed already. Both attentions are called as before; the first hides later tokens by itself. `norms` holds three functions.

# %% [markdown]
r"""
## In real work

torch has these layers. (`dropout` sets numbers to 0 at random in training.) One trap: with `norm_first=True`, which is pre-norm, you must hand in the norm after the last layer, else long rows go to the read-out:
"""

# %%
options = {"dim_feedforward": 256, "dropout": 0.0, "batch_first": True}
rows = table[words]
for _ in range(12):  # nn.TransformerEncoder(layer, 12) copies one: all start equal
    rows = nn.TransformerEncoderLayer(64, nhead=4, norm_first=True, **options)(rows)
for name, final in (("no norm", rows), ("norm", nn.LayerNorm(64)(rows))):
    print(f"{name:8} rows {length(final).mean():.0f} long")

# %% [markdown]
r"""
No error is raised, but the read-out gets rows of «11» in place of «8».

## To carry away

In `carry/transformer.py` one loop holds both orders of the norm. `attention(x)` lets the rows of x ask each other, `attention(x, memory)` lets them ask the memory. Both masks are handed in. (`cache` is for 06c.)
"""

# %%
from carry import transformer as carried

show_source(carried.Layer)

# %% [markdown]
r"""
With the same matrices, its decoder layer and yours must agree, or the last line raises an error:
"""

# %%
theirs, mask = carried.Layer(64, 4, cross=True), causal(5)
x, memory = torch.randn(1, 5, 64), norm(torch.randn(1, 7, 64))
own = yours("decoder_layer")(
    x,
    memory,
    lambda q, k, v: theirs.attention(q, mask=mask),
    lambda q, k, v: theirs.cross_attention(q, k),
    theirs.feed_forward,
    theirs.norms,
)
assert_close(theirs(x, mask=mask, memory=memory), own)

# %% [markdown]
r"""
Does the row of *saw* still know that it is *saw*? After three attentions the read-out is right for «0.14» of the rows; with the sum, for «0.92». After twelve layers it depends on the norm: «0.17» with it on the residual stream, «0.79» in the branch.

**To remember.** Attention brings the news; the sum keeps who you are.

- A layer: attention between tokens, a network inside each; a sum and a norm around both.
- Where every output is about as long as its row, a deep network forgets. With the norm in the branch, rows grow and outputs do not.
- In cross-attention, queries come from the decoder's tokens, keys and values from the memory.

**Sources.** Vaswani et al. 2017 (arXiv:1706.03762), section 3; He et al. 2015 (arXiv:1512.03385), for the sum; Dong, Cordonnier & Loukas 2021 (arXiv:2103.03404), on how fast attention alone forgets; Ba, Kiros & Hinton 2016 (arXiv:1607.06450), LayerNorm. Seeds, gradients, other norms: [evidence](evidence/06_transformer_evidence.ipynb).

**Next**: [06b · Translator](06b_translator.ipynb): layers make a machine. Can it translate?
"""
