# %% [markdown]
r"""
{title}

*my friend kept the sharp saw beside them*: eight words, eight rows of numbers. Send them through attention three times in a row. Does the row of *saw* still know that it is *saw*?

**Afterwards you can** write an encoder layer and a decoder layer; say what the residual connection, the norm and the feed-forward network are for; choose where the norm stands.

{about}

<details><summary>中文摘要 · Chinese</summary>
只有注意力的网络会让每个词忘记自己:三层之后,八个词的向量几乎指向同一方向。残差连接(x 加上子层的输出)保住了词自身的信息,也让梯度有一条直路。
归一化放在子层之前(pre-norm),十二层也能学会;放在求和之后(post-norm),在同样短的训练里学不会。编码层有两个子层,解码层有三个。
</details>

{sources}
"""

# %%
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.testing import assert_close

from lesson_lib.blocks import FeedForward
from lesson_lib.chapters.c06_transformer import layer_figures as figures
from lesson_lib.chapters.c06_transformer.experiments import norms as tagging
from lesson_lib.chapters.c06_transformer.experiments import residual
from lesson_lib.checks import check, hint, predict, solution, warm_up
from lesson_lib.data.tagging import VOCABULARY, read
from lesson_lib.device import quick
from lesson_lib.heads import MultiHeadAttention
from lesson_lib.show import show
from lesson_lib.training import stored

_ = torch.manual_seed(0)
warm_up()

# %%
predict("alike")

# %% [markdown]
r"""
Each word gets a random row of 64 numbers; the attentions are random, too. `F.layer_norm` brings each row to one length (why: section 3).
"""

# %%
table = torch.randn(len(VOCABULARY), 64)  # (135, 64)
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
Cosine 1 means the same direction. At the start only a word and itself agree. Behind three attentions *all* do: each output mixes all eight values, so the rows draw closer; three times, and they are one. On
the right each attention *added* its output to what came in, and the words stay apart.

What does a row still know? `remembered` fits a linear read-out on 20,000 rows, to name each row's own word, and tests it on 10,000 others. (Naming the commonest word each time would score .05.)
"""

# %%
for keep, name in enumerate(("outputs alone", "added to the input")):
    named = [
        residual.remembered(lambda w, k=keep, t=times: in_a_row(w, k, t))
        for times in range(4)
    ]
    print(f"{name:19}", [f"{share:.2f}" for share in named])
    assert named[3] < 0.2 if keep == 0 else named[3] > 0.9

# %% [markdown]
r"""
From left to right: behind 0, 1, 2, 3 attentions. The fit itself misses 3 in 100. Without the sum the first attention costs most: «.38» remain. Three leave «.14», hardly better than guessing among the sentence's words: behind random attentions **a token forgets itself.** With the sum «.92» remain.

## 1 · The residual connection

$x + \operatorname{sublayer}(x)$ is called a **residual connection**. A **sub-layer** is attention, or the network of section 2. There are two reasons for the sum. You have seen the first: attention brings news from other tokens, and the sum keeps the
token's own.

The second is the way back. The derivative of $x + f(x)$ is the identity plus the derivative of $f$. For one number: let $f$ have slope .1. Twelve layers without the sum have the slope $.1^{12}$, a millionth of a millionth; with it,
$1.1^{12} = 3.1$. So a gradient can reach the first layer before the sub-layers have learned anything.

## 2 · The other sub-layer

Attention moves information *between* tokens; what it does with their values, project and mix, is linear. What was mixed must be computed with: the **feed-forward network** works *inside* each token, the same for all:

$$\operatorname{FFN}(x) = \max(0,\, x W_1 + b_1)\, W_2 + b_2$$

$W_1$ widens the row from d_model numbers, its width, to d_inner, usually four times as many. A **norm**, which brings rows to one length, follows each sum. That is an encoder layer:

```
x -+- attention -(+)- norm -+- feed-forward -(+)- norm ->
   +--------------+         +-----------------+
```
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
The title is that of the paper of 2017. And the sum? `residual.train` trains the tagger of part 01a with four such layers of width 32, with the sum and without. Data, steps and first weights are the same; each has its best learning rate of four.
"""

# %% tags=["trained"]
model, _ = residual.train(4, residual=True)
shares = {"with": tagging.accuracy(model, "test")}
with stored():  # reads what this training left before
    model, _ = residual.train(4, residual=False)
shares["without"] = tagging.accuracy(model, "test")
figures.with_and_without(shares)

# %% tags=["proof"]
assert quick() or (shares["with"] > 0.75 and shares["without"] < 0.6)

# %% [markdown]
r"""
With the sum four layers tag four of five words that can be two parts of speech. Without it they reach about half, no more than giving each word its commonest tag, without the sentence.

## 3 · The norm

**"A norm is cosmetics."** Send the sentence through twelve random layers, without any norm:
"""

# %%
x = table[words]
for layer in range(12):
    attention, inner = MultiHeadAttention(64, n_heads=4), FeedForward(64, d_inner=256)
    looked = attention(x, x, x)
    x = x + looked.output
    x = x + inner(x)
    if layer in (0, 3, 11):
        length = torch.linalg.vector_norm(x, dim=-1).mean()
        largest = looked.weights.max(-1).values.mean()
        print(f"layer {layer:2}: rows {length:6.0f} long, largest weight {largest:.2f}")

# %% [markdown]
r"""
They began 8 long, and even weights would be .12. A longer row makes a longer output, which is added: the growth feeds itself. Scores are products of two rows, so they grow with the square. By layer 11 each query puts all its weight on one key; there softmax is flat, and gradients through it vanish (part 02b).

**LayerNorm** takes one token's d_model numbers, subtracts their mean, divides by the root of their variance, then scales and shifts each column by learned numbers $g$ and $b$. (The tiny $\varepsilon$ keeps the division possible where all are equal.)

$$\operatorname{LayerNorm}(x) = g \cdot \frac{x - \operatorname{mean}(x)}{\sqrt{\operatorname{variance}(x) + \varepsilon}} + b$$
"""

# %%
predict("standard_token")

# %%
plain = nn.LayerNorm(4)  # at the start g = 1 and b = 0
show(plain(torch.tensor([1.0, 3.0, 5.0, 7.0])))

# %% [markdown]
r"""
**Why not BatchNorm**, which image networks use? It standardizes each *column* over all tokens of the batch. It trains about as well here; but while it trains, a sentence's result depends on who shares its batch.

## 4 · The decoder layer

A **decoder** writes. Its tokens are what it has written; the encoder's last output, which it looks at, is called the **memory**. So there are three sub-layers: attention among its own tokens, with a causal mask; **cross-attention** to the memory; the feed-forward network.
"""

# %% [markdown] tags=["exercise:decoder_layer"]
# Write it. Who asks, and who answers?

# %% [markdown]
r"""
## 5 · The norm behind, or before?

| | one sub-layer |
|---|---|
| **post-norm** (2017) | x ← norm(x + sublayer(x)) |
| **pre-norm** | x ← x + sublayer(norm(x)), and one norm behind the last layer |

Follow x, the **residual stream**, with a finger: where does it meet a norm?
"""

# %%
predict("twelve_layers")

# %%
figures.twelve_layers()

# %% [markdown]
r"""
Stored runs, three seeds. At twelve layers pre-norm has .83, and post-norm .52, the commonest tag. In pre-norm the stream meets one norm, at its end; in post-norm 24. Xiong et al. (2020) say why that hurts: at the start post-norm's last layers get gradients too large for the steps. We find it on one seed of three (evidence). The paper had six layers, and learning rates that begin small (part 06b).

## In real work

Most of today's large models are pre-norm, use **RMSNorm** (no mean is subtracted, no $b$), no biases, and a **gated** feed-forward network: its inner numbers are $\operatorname{silu}(x G) \cdot (x U)$, one product scaled by another, with $\operatorname{silu}(z) = z / (1 + e^{-z})$. A whole layer in plain torch:
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
The last line compares a padded text with the text alone. A bug that people meet is **dropout**: while a model trains, a share $p$ of numbers becomes 0, and the rest is scaled by $1/(1-p)$. Without `eval()` this goes on:
"""

# %%
layer = nn.TransformerEncoderLayer(16, 4, dropout=0.3, batch_first=True)
print("twice the same?", torch.equal(layer(batch), layer(batch)), end=", ")
print("after eval():", torch.equal(layer.eval()(batch), layer(batch)))

# %% [markdown]
r"""
The paper applies it to each sub-layer's output and to the rows that go in; torch's layer also to attention weights and inside the feed-forward network.

## The sentence once more

Behind three attentions the row of *saw* was the row of all. One plus sign brought it back.

**To remember.** Attention brings the news; the sum keeps who you are.

- A layer: attention between tokens, a network inside each; around both a sum and a norm.
- The norm bounds what a sub-layer sees: each token by its own numbers.
- A decoder layer asks the memory: queries from itself, keys and values from there.
- Pre-norm keeps a clear path, and trains deep.

**Sources.** Vaswani et al. 2017 (arXiv:1706.03762); He et al. 2015 (arXiv:1512.03385); Dong, Cordonnier & Loukas 2021 (arXiv:2103.03404), on how fast attention alone forgets; Ba, Kiros & Hinton 2016 (arXiv:1607.06450); Xiong et al. 2020 (arXiv:2002.04745). Seeds,
gradients, BatchNorm: [evidence](evidence/06_transformer_evidence.ipynb).

**Next**: [06b · Translator](06b_translator.ipynb): layers make a machine. Can it translate?
"""
