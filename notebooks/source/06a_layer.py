# %% [markdown]
r"""
# 06a · What stands around attention?

*my friend kept the sharp saw beside them*: eight words, eight rows of numbers. Send them through attention three times in a row. Does the row of *saw* still know that it is *saw*?

**Afterwards you can** write an encoder layer and a decoder layer; say what the residual connection, the norm and the feed-forward network are for; choose where the norm stands.

**Time** about 45 minutes. **You need** parts [04](04_multi_head.ipynb) and [05a](05a_order.ipynb). **Exercises**: [exercises/06_transformer](exercises/06_transformer.ipynb).

<details><summary>中文摘要</summary>
只有注意力的网络会让每个词忘记自己:三层之后,八个词的向量几乎指向同一方向。残差连接(x 加上子层的输出)保住了词自身的信息,也让梯度有一条直路。
归一化放在子层之前(pre-norm),十二层也能学会;放在求和之后(post-norm),在同样短的训练里学不会。编码层有两个子层,解码层有三个。
</details>
"""

# %%
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.testing import assert_close

from lesson_lib.blocks import DecoderLayer, EncoderLayer, LayerNorm
from lesson_lib.chapters.c06_transformer import layer_figures as figures
from lesson_lib.chapters.c06_transformer.experiments import norms as tagging
from lesson_lib.chapters.c06_transformer.experiments import residual
from lesson_lib.checks import check, hint, predict, solution, warm_up
from lesson_lib.data.tagging import VOCABULARY, read
from lesson_lib.device import quick
from lesson_lib.heads import MultiHeadAttention
from lesson_lib.show import show

_ = torch.manual_seed(0)
warm_up()

# %%
predict("alike")

# %% [markdown]
r"""
Each word of the vocabulary gets a random row of 64 numbers; the three attentions are random, too. `F.layer_norm` keeps rows at one length (section 3).
"""

# %%
table = torch.randn(len(VOCABULARY), 64)  # (135 words, d_model)
attentions = [MultiHeadAttention(64, n_heads=4) for _ in range(3)]


def in_a_row(words, keep, times=3):
    """Rows behind so many attentions; with keep=1 each adds what came in."""
    x = table[words]  # (b, n, 64)
    for attention in attentions[:times]:
        x = F.layer_norm(keep * x + attention(x, x, x).output, (64,))
    return x


words = read("my friend kept the sharp saw beside them")  # (1, 8) numbers
rows = [in_a_row(words, 0, times=0), in_a_row(words, 0), in_a_row(words, 1)]
cosines = [F.normalize(x[0], dim=-1) @ F.normalize(x[0], dim=-1).T for x in rows]
figures.same_way(cosines)

# %% [markdown]
r"""
A cell is the cosine between two words: 1 means the same direction. At the start only a word and itself agree. Behind three attentions *all* do: each output is an average of all eight values, and averages of averages are alike. On
the right each attention *added* its output to what came in, and the words stay apart.

What does a row still know? Fit a linear read-out that names each row's own word, and test it on sentences that it has not seen:
"""

# %%
for keep, name in enumerate(("outputs alone", "added to the input")):
    named = [
        residual.remembered(lambda w, t=times: in_a_row(w, keep, t))
        for times in range(4)
    ]
    print(f"{name:19}", [f"{share:.2f}" for share in named])
    assert named[3] < 0.2 if keep == 0 else named[3] > 0.9

# %% [markdown]
r"""
From left to right: behind 0, 1, 2, 3 attentions. Without the sum .97 falls to .14: **a token forgets itself.** With the sum .92 remain.

## 1 · The residual connection

$x + \operatorname{sublayer}(x)$ is called a **residual connection**. A **sub-layer** is attention, or the network of section 2. There are two reasons for the sum. You have seen the first: attention brings news from other tokens, and the sum keeps the
token's own.

The second is the way back. The derivative of $x + f(x)$ is the identity plus the derivative of $f$. For one number: let $f$ have slope .1. Twelve layers without the sum have the slope $.1^{12}$, a millionth of a millionth; with it,
$1.1^{12} = 3.1$. So a gradient reaches the first layer even while the sub-layers have learned nothing.

## 2 · The other sub-layer

Attention moves information *between* tokens. The **feed-forward network** works *inside* each token, the same for all:

$$\operatorname{FFN}(x) = W_2 \max(0,\, W_1 x + b_1) + b_2$$

$W_1$ widens the row from d_model to d_inner numbers, usually four times as many. A **norm** follows each sum. That is an encoder layer.
"""

# %% [markdown] tags=["exercise:encoder_layer"]
# Write it. `attention(query, key, value)` returns the output alone. The norm stands around the sum, as published in 2017.

# %% [markdown]
r"""
**"Attention is all you need; the rest is plumbing."**
"""

# %%
predict("attention_share")

# %% [markdown]
r"""
And the sum? Name each word's part of speech (part 01a) with four layers, with the residual connection and without. Everything else is equal, the first weights, too. (At the best of four learning rates for each.)
"""

# %%
shares = {}
for name, kept in {"with": True, "without": False}.items():
    model, _ = residual.train(4, residual=kept)
    shares[name] = tagging.accuracy(model, "test")
assert quick() or (shares["with"] > 0.75 and shares["without"] < 0.6)
figures.with_and_without(shares)

# %% [markdown]
r"""
With the sum four layers tag .83 of the words that can be two parts of speech. Without it they reach .52: for each word its commonest tag would be worth as much. The title of the paper is a good title.

## 3 · The norm

Sums grow. **LayerNorm** takes one token's d_model numbers, subtracts their mean, divides by the root of their variance, then scales and shifts each column by learned numbers $g$ and $b$:

$$\operatorname{LayerNorm}(x) = g \cdot \frac{x - \operatorname{mean}(x)}{\sqrt{\operatorname{variance}(x) + \varepsilon}} + b$$
"""

# %%
predict("standard_token")

# %%
plain = nn.LayerNorm(4)  # at the start g = 1 and b = 0
show(plain(torch.tensor([1.0, 3.0, 5.0, 7.0])))

# %% [markdown]
r"""
**"Behind a norm every token has variance 1."**
"""

# %%
predict("tiny_tokens")

# %%
tiny = 1e-4 * torch.randn(1000, 512)  # variance 1e-8; epsilon is 1e-5
show(variance=LayerNorm(512)(tiny).var(-1).mean())

# %% [markdown]
r"""
**Why not BatchNorm**, which image networks use? It standardizes each *column* over all tokens of the batch. Then your sentence's result depends on its neighbours and on their padding, and needs stored means at test time. It trains as well here ([evidence](evidence/06_transformer_evidence.ipynb)); it is the dependence that
speaks against it.

## 4 · The decoder layer

A **decoder** writes. Its tokens are what it has written; the encoder's last output, which it looks at, is called the **memory**. So there are three sub-layers: attention among its own tokens, with a causal mask; **cross-attention** to the memory; the feed-forward network.
"""

# %% [markdown] tags=["exercise:decoder_layer"]
# Write it. Who asks, and who answers?

# %% [markdown]
r"""
Both layers of the library give torch's numbers:
"""

# %%
sizes = {"dim_feedforward": 32, "batch_first": True}
x, memory = torch.randn(2, 5, 16), torch.randn(2, 7, 16)  # (b, n, d_model)
encoder = nn.TransformerEncoderLayer(16, 4, **sizes).eval()
assert_close(EncoderLayer.from_torch(encoder)(x).output, encoder(x))
decoder = nn.TransformerDecoderLayer(16, 4, **sizes).eval()
ours = DecoderLayer.from_torch(decoder)(x, memory).output
assert_close(ours, decoder(x, memory))

# %% [markdown]
r"""
## 5 · The norm behind, or before?

| | one sub-layer |
|---|---|
| **post-norm** (2017) | x ← norm(x + sublayer(x)) |
| **pre-norm** | x ← x + sublayer(norm(x)), and one norm behind the last layer |

In pre-norm nothing but sums stands between the first x and the last.
"""

# %%
predict("twelve_layers")

# %%
figures.twelve_layers()

# %% [markdown]
r"""
At two layers pre-norm is slightly ahead. At twelve pre-norm has .83, and post-norm .52: nothing learned. In post-norm the way back leads through a norm at each of 24 sums, and the first layers get the smallest gradients. The paper's remedy is a slow start (part
06b); it had six layers and 100,000 steps, not 400.

## In real work

Most of today's large models are pre-norm, use **RMSNorm** (no mean is subtracted, no $b$), a *gated* feed-forward network, no biases and little dropout. A whole layer in plain torch:
"""


# %%
class Block(nn.Module):
    def __init__(self, d, heads, wide):
        super().__init__()
        self.norms = nn.ModuleList(nn.RMSNorm(d) for _ in range(2))
        self.attention = nn.MultiheadAttention(d, heads, bias=False, batch_first=True)
        self.gate, self.up = (nn.Linear(d, wide, bias=False) for _ in range(2))
        self.down = nn.Linear(wide, d, bias=False)

    def forward(self, x, hidden=None):  # hidden (b, n): True at padding
        y = self.norms[0](x)
        x = x + self.attention(y, y, y, hidden, need_weights=False)[0]
        y = self.norms[1](x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


block, batch = Block(16, 4, 48), torch.randn(2, 7, 16)
hidden = torch.arange(7) >= torch.tensor([7, 5])[:, None]  # the second has 5 tokens
assert_close(block(batch, hidden)[1, :5], block(batch[1:, :5])[0])

# %% [markdown]
r"""
The last line compares the padded text with the text alone. **Dropout** sets a share of numbers to 0 while a model trains. The paper drops each sub-layer's output and the sum of embedding and position. torch's layer has the same argument and drops in two places more:
"""

# %%
parts = nn.TransformerEncoderLayer(16, 4, dropout=0.3).named_modules()
print("dropout:", [name for name, part in parts if isinstance(part, nn.Dropout)])
layer = nn.TransformerEncoderLayer(16, 4, dropout=0.3, batch_first=True)
print("and attention's weights:", layer.self_attn.dropout)
print("twice the same?", torch.equal(layer(x), layer(x)), end=", ")
print("after eval():", torch.equal(layer.eval()(x), layer(x)))

# %% [markdown]
r"""
`dropout` sits inside the feed-forward network, `dropout1` and `dropout2` on the outputs. The bug that people meet: without `eval()` a trained model answers at random.

## The sentence once more

*saw*, behind three attentions, knew itself in one case of seven. One plus sign brought it back.

**To remember.** Attention brings the news; the sum keeps who you are.

- A layer: attention between tokens, a network inside each; around both a sum and a norm.
- Two thirds of an encoder layer's weights are not attention's.
- LayerNorm: each token by its own numbers; epsilon under the root.
- A decoder layer asks the memory: queries from itself, keys and values from there.
- Pre-norm keeps a clear path, and trains deep.

**Sources.** Vaswani et al. 2017 (arXiv:1706.03762); He et al. 2015 (arXiv:1512.03385); Dong, Cordonnier & Loukas 2021 (arXiv:2103.03404), on how fast attention alone forgets; Ba, Kiros & Hinton 2016 (arXiv:1607.06450); Xiong et al. 2020 (arXiv:2002.04745). Seeds,
gradients, BatchNorm: [evidence](evidence/06_transformer_evidence.ipynb).

**Next**: [06b · Translator](06b_translator.ipynb): layers make a machine. Can it translate?
"""
