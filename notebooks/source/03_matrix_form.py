# %% [markdown]
r"""
{title}

Eight guests meet in random order. Each wears a card from 0 to 7, and must name the card of a secret partner. (Guest 1's partner is guest 6, guest 6's is
somebody else.) The model only hears what the right cards were. Where will it write the secret down?

**Afterwards you can** write self-attention for a batch; read out of the matrices what it learned; hide future and padding, and test
that they are hidden.

{about}

<details><summary>中文摘要 · Chinese</summary>
自注意力是五次矩阵乘法加一次 softmax,前面可以有任意多个批次维。学到的只有三个矩阵,权重表对每个输入重新计算;两两关系就写在 W_q 与 W_k 转置的乘积里。
要隐藏的位置必须在 softmax 之前设为负无穷,而不是事后置零;扰动未来、比较过去,就能检验掩码是否泄漏。
</details>

{sources}
"""

# %%
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.chapters.c03_matrix_form import figures
from lesson_lib.chapters.c03_matrix_form.experiments import partners
from lesson_lib.chapters.c03_matrix_form.shapes_explorer import ShapeExplorer
from lesson_lib.checks import check, hint, predict, solution, warm_up, yours
from lesson_lib.device import quick, to_device
from lesson_lib.masks import causal
from lesson_lib.show import show, show_source

_ = torch.manual_seed(0)
warm_up()

# %%
x, right, where = to_device(partners.draw(torch.Generator().manual_seed(7)))
# x (64, 8, 16); right, the answers, and where, the partner's place: (64, 8)
guests, cards = x[0, :, :8].argmax(-1), x[0, :, 8:].argmax(-1)
for name, row in {"guest": guests, "card": cards, "right answer": right[0]}.items():
    print(f"{name:12}", *row.tolist())
figures.tokens(x[0])

# %% [markdown]
r"""
Guest 1 came first; guest 6 wears card 1, so the first right answer is 1. A token is a row of the picture: a 1 for the guest, a 1 for the card.

## 1 · Five products

In 02a one list was $(n, d)$. Here `x` holds 64 lists, the parties, $(b, n, d) = (64, 8, 16)$, and no formula changes:

$$Q = x W_q \qquad K = x W_k \qquad V = x W_v \qquad A = \operatorname{softmax}\!\left(\frac{Q K^\top}{\sqrt{d_k}}\right) \qquad O = A V$$

`@` multiplies the last two axes, and `.mT` swaps them, for each party. Entry $(i, j)$ of $Q K^\top$ is query $i$ times key $j$: one product holds all dot
products.
"""

# %%
predict("table_shape")

# %% [markdown]
r"""
Move `n` from 6 to 12: $Q, K, V, O$ double, $A$ grows fourfold, $W_q, W_k, W_v$ stay.
"""

# %%
ShapeExplorer(n=6, d_model=16, d_k=8, d_v=8)

# %% [markdown] tags=["exercise:self_attention"]
# Three products make queries, keys and values, one compares, one mixes.

# %% [markdown]
r"""
The library's layer returns a pair, output and weights:
"""

# %%
show_source(partners.SelfAttention)

# %% [markdown]
r"""
## 2 · What is learned?

An output has eight numbers, one for each card; the largest is the answer. Training: 800 batches of 64 parties, cross-entropy of the right cards.
"""

# %%
predict("no_matrices")

# %%
layer, _ = partners.train("SelfAttention")
bare, _ = partners.train("Unprojected")
shares = {
    "with W_q and W_k": partners.accuracy(layer),
    "without": partners.accuracy(bare),
}
figures.with_and_without(shares, marks={"commonest card": partners.commonest()})

# %%
assert shares["without"] < partners.commonest()

# %% tags=["proof"]
assert quick() or shares["with W_q and W_k"] > 0.99

# %% [markdown]
r"""
With its matrices the layer is always right. Without, a score is (divided by $\sqrt{16}$) 0.5 for oneself, 0.25 for a guest with the same card, 0 for the rest. Nothing in it depends on who the partner is. The layer can
only count cards, its own too much: right three times in ten, where naming the commonest gives 33 %. Such scores are symmetric, and partnership is not. (Weights are
not: each row has a sum of its own.)
"""

# %%
weights = [
    m(x[:1]).weights[0].detach() for m in (partners.untrained("SelfAttention"), layer)
]
figures.found_partners(*weights, where[0])

# %% [markdown]
r"""
Before training every row spreads its weight. After it, each row has one bright cell, where the partner stands. How does the layer know? Look into one score:

$$q_i \cdot k_j = x_i\, M\, x_j^\top \qquad \text{with} \qquad M = W_q W_k^\top, \text{ of shape } (16, 16)$$

Each token has two ones, so four entries of $M$ add up to the score: guest with guest, guest with card, card with guest, card with card.
"""

# %%
predict("where_written")

# %%
M = (layer.w_q @ layer.w_k.mT).detach().cpu()
figures.learned_relation(M, partners.PARTNER)

# %%
print("guest      ", *range(8))
print("looks for  ", *M[:8, :8].argmax(-1).tolist())

# %% tags=["proof"]
assert quick() or torch.equal(M[:8, :8].argmax(-1), partners.PARTNER)

# %% [markdown]
r"""
There is the secret. In row 0 column 3 is brightest: guest 0 looks for guest 3. All eight rows are right, and the other blocks are nearly flat.
**What a layer knows about pairs stands in $W_q W_k^\top$.**

**"Attention learns the weights."** It learns matrices, here $3 \cdot 16 \cdot 8 = 384$ numbers. Weights are computed anew for each party. Where does each guest look most?
"""

# %%
for party, table in enumerate(layer(x[:2]).weights):
    print(f"party {party}: looks most at ", *table.argmax(-1).tolist())
    print("         partner stands at", *where[party].tolist())

# %% tags=["proof"]
assert quick() or torch.equal(layer(x[:2]).weights.argmax(-1), where[:2])

# %% [markdown]
r"""
The same matrices, another table.


## 3 · Hide the future

A language model writes the next word. In training row $i$ must guess word $i + 1$, for all rows at once, and the answers lie in the input. The **causal** mask lets row $i$ look
at columns 0 to $i$ only. First idea: set forbidden weights to 0.
"""

# %%
predict("zeros_after")

# %% tags=["slide"]
t, mask = torch.randn(4, 8), causal(4)
changed = t.clone()
changed[3] = torch.randn(8)  # another last token
scores = [u @ u.mT / 8**0.5 for u in (t, changed)]
tables = {
    "zeros after": [s.softmax(-1) * mask for s in scores],
    "-inf before": [s.masked_fill(~mask, -torch.inf).softmax(-1) for s in scores],
}
for name, (one, other) in tables.items():
    print(f"{name}: rows 0 to 2 move by {(one - other)[:3].abs().max():.3f}")

# %% [markdown]
r"""
With zeros, earlier rows moved by up to 0.062: the future leaked. With $-\infty$ nothing moved. Test every causal model so: **disturb the future, compare
the past.**

## 4 · In real work: a batch of sentences

A model that writes on needs the last word of every sentence in the same column. So padding stands in front:
"""

# %%
batch = ["the tea is still hot", "time flies", "who knew that"]
lengths = torch.tensor([len(sentence.split()) for sentence in batch])
real = torch.arange(5) >= 5 - lengths[:, None]  # (3, 5)
for sentence, row in zip(batch, real.int().tolist(), strict=True):
    print(row, sentence)

# %% [markdown] tags=["exercise:both_masks"]
# Make one mask (b, n, n) that hides the future and the padding.

# %%
mask = yours("both_masks")(real)  # True = may look
figures.who_may_look(dict(zip(batch, mask, strict=True)))

# %% [markdown]
r"""
The triangle hides the future, dark columns hide padding. Change the padding, with the causal mask alone and with both:
"""

# %%
words = torch.randn(3, 5, 16)
other = words.clone()
other[~real] = torch.randn(5, 16)  # another padding
for name, allowed in {"causal": causal(5), "both": mask}.items():
    one, two = (attend(t, t, t, mask=allowed).output[real] for t in (words, other))
    print(f"{name:7} real words move by {(one - two).abs().max():.2f}")
by_torch = F.scaled_dot_product_attention(words, words, words, attn_mask=mask)
assert_close(by_torch, attend(words, words, words, mask=mask).output)

# %% [markdown]
r"""
With the causal mask alone, padding leaks into real words. (Padding *behind* a sentence would be future, and hidden.) torch's own function,
`scaled_dot_product_attention`, gives our outputs. But row 0 of *time flies* is padding itself, and may look at nobody:
"""

# %%
scores = torch.tensor([1.0, 2.0, 3.0])
nobody = torch.zeros(1, 3, dtype=torch.bool)
q, k = torch.ones(1, 1), scores[:, None]  # so that q @ k.mT is these scores
v = torch.eye(3)
show(
    formula=scores.masked_fill(~nobody, -torch.inf).softmax(-1),
    with_1e9=scores.masked_fill(~nobody, -1e9).softmax(-1),
    attend=attend(q, k, v, mask=nobody).weights,
)

# %% [markdown]
r"""
Every power is 0, and the formula divides 0 by 0: nan. `attend` and torch's function give zeros. **"−1e9 is as good as −∞."** Here it gives hidden words equal shares, and
half precision (float16 ends at 65,504) cannot hold it. Nor does a weight of 0 hide an infinite value: $0 \cdot \infty$ is nan.

A writing model adds a word at a time. Each key and value is made from its own token, so the earlier ones are kept (the *KV cache*); only the new word asks. With `is_causal=True` torch's function makes
the causal mask itself.
"""

# %%
predict("top_left")

# %%
key = torch.randn(1, 5, 4)
last, names = key[:, -1:], torch.eye(5)[None]  # values that name their key
for flag in (True, False):
    seen = F.scaled_dot_product_attention(last, key, names, is_causal=flag)
    print(
        f"is_causal={flag!s:5}  keys seen:", (seen[0, 0] > 0).nonzero()[:, 0].tolist()
    )

# %% [markdown]
r"""
The last word needs no mask; two need the mask's last rows, `causal(5)[-2:]`.

## The party once more
"""

# %%
predict("one_by_one")

# %%
x, right, where = to_device(partners.draw(torch.Generator().manual_seed(8), 500))
hit = layer(x, causal(8, device=x.device)).output.argmax(-1) == right
here = where <= torch.arange(8, device=x.device)
share = {"partner is there": hit[here], "not yet": hit[~here], "all": hit}
figures.one_by_one({name: one.float().mean().item() for name, one in share.items()})

# %% tags=["proof"]
assert quick() or (hit[here].all() and hit[~here].float().mean() < 0.2)

# %% [markdown]
r"""
Always right where the partner has come, one in eight where not. The matrices know what they knew; the mask decides who is seen.

**To remember.** Self-attention is five products and a softmax. Three matrices hold what it knows, a mask what it may see.

- $x$ is $(b, n, d)$, scores are $(b, n, n)$; the same matrices serve any $n$.
- $W_q W_k^\top$ holds the relation; weights are computed for each input.
- Hide before the softmax, with $-\infty$; combine masks with `&`.
- Disturb the future, compare the past.
- `is_causal` counts from the first key.

**Sources.** Vaswani et al. 2017 (arXiv:1706.03762), section 3.2; Hung-yi Lee, *Machine Learning* 2021 (tokens as columns). Seeds, timings, claims:
[evidence](evidence/03_matrix_form_evidence.ipynb).

**Next**: [04 · Multi-head attention](04_multi_head.ipynb): what can one table of weights not do?
"""
