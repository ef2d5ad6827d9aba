# /// ideas
# ["batch axis"]
# says = "x is (b, n, d), b sequences at once; `@` and `.mT` work on the last two axes, for each sequence by itself, and all sequences share the matrices"
# motive = "Here `x` holds $b = 64$ sequences"
# shown = "(64, 8, 13)"
# action = "def self_attention(x, w_q, w_k, w_v):"
# ["five products"]
# says = "self-attention is Q = x W_q, K = x W_k, V = x W_v, A = softmax(Q K^T / sqrt(d_k)), O = A V; entry (i, j) of Q K^T is query i times key j, so A is (b, n, n)"
# motive = "The formulas stay those of 02a and 02b"
# shown = "(64, 8, 8)"
# action = "def self_attention(x, w_q, w_k, w_v):"
# ["the relation"]
# says = "q_i . k_j = x_i M x_j^T with M = W_q W_k^T: whom a token looks for stands in M, here in the block guest with guest; what is passed on stands in W_v"
# motive = "How does a row find this column?"
# shown = "looks for   3 6 0 5 2 7 4 1"
# action = 'predict("where_written")'
# ["learned and computed"]
# says = "the matrices are learned; the weights are computed from them, anew for each input; change a matrix by hand, and the answers follow"
# motive = "Attention learns the weights."
# shown = "exchanged"
# action = 'predict("swapped_rows")'
# ["causal mask"]
# says = "row i may look at columns 0 to i, itself included; causal(n) is this mask, (n, n), True = may look; a language model, which predicts the next word, is trained under it"
# motive = "Let the guests come one by one"
# shown = "| to predict | tea | is | still | hot |"
# action = 'predict("zeros_after")'
# ["influence"]
# says = "a test of any layer: replace each token in turn, and see which outputs move; the table (n, n) has a row for each output and a column for each replaced token"
# motive = "A test can tell."
# shown = "above the diagonal"
# action = "def influence(f, x, other):"
# ["before the softmax"]
# says = "zeros after the softmax leak, because the hidden scores have already taken part in each row's sum; -inf before the softmax does not"
# motive = "A first idea"
# shown = "figures.influence(tables)"
# action = 'predict("zeros_after")'
# ["two masks"]
# says = "padding in front lies in the past, so a key must pass the causal mask and the padding mask: join them with &"
# motive = "the padding stands in front"
# shown = "who knew that"
# action = 'predict("padding_in_front")'
# ///

# %% [markdown]
r"""
{title}

Eight guests meet at many parties, each time in another order. Each guest has a secret partner, the same at every party. The relation goes one way: the partner of guest 5 is guest 7, and the partner of guest 7 is somebody else. Each guest wears a card from 0 to 4, drawn anew for every party, and must name the card that the partner wears. In training the model is told the right cards, but never who is whose partner. Where will it write the secret down?

**Afterwards you can** write self-attention for a batch; read in trained matrices whom a token looks for; hide later tokens and padding, and test that they are hidden.

{about}

<details><summary>中文摘要 · Chinese</summary>
自注意力是五次矩阵乘法加一次 softmax,可以一次处理一整批序列。八位客人各有一位秘密搭档,模型只被告知正确答案;本章训练一层自注意力,找到它把秘密写在哪里,并动手改写。
随后隐藏未来与填充,并学会检验:逐个替换词元,看哪些输出会动。
</details>

{sources}
"""

# %% tags=["imports"]
import torch
import torch.nn.functional as F
from torch import nn

from lesson_lib.attention import attend
from lesson_lib.chapters.c03_matrix_form import figures
from lesson_lib.chapters.c03_matrix_form.experiments import partners
from lesson_lib.course import *
from lesson_lib.masks import causal

_ = torch.manual_seed(0)
warm_up()

# %% [markdown]
r"""
`partners.draw(generator, 64)` draws 64 parties. It returns the tokens `x`, the `right` card of each guest, and `where`, the position of the guest's partner, counted from 0.

A guest at a party is one token, a row of 13 numbers. A 1 among the first eight says which guest it is. A 1 among the last five says which card the guest wears. The other eleven numbers are 0. Here is the first party:
"""

# %%
x, right, where = partners.draw(torch.Generator().manual_seed(1573), 64)
print("guest      ", *x[0, :, :8].argmax(-1).tolist())
print("wears card ", *x[0, :, 8:].argmax(-1).tolist())
print("right card ", *right[0].tolist())
figures.tokens(x[0])

# %% [markdown]
r"""
Read the first column: guest 5 stands first. Its partner, guest 7, stands second and wears card 0, so the right card of guest 5 is 0. The picture shows the eight tokens.

## 1 · Five products

In 02a, `x` was one sequence, a matrix of shape $(n, d)$: $n$ tokens of $d$ numbers. Here `x` holds $b = 64$ sequences, one for each party, so it has one more axis in front, the **batch axis**. The formulas stay those of 02a and 02b:

$$Q = x W_q \qquad K = x W_k \qquad V = x W_v \qquad A = \operatorname{softmax}\!\left(\frac{Q K^\top}{\sqrt{d_k}}\right) \qquad O = A V$$

$A$ holds the weights and $O$ the outputs. All parties share the three matrices. Queries and keys have $d_k$ numbers, and we choose 10. Values and outputs have $d_v = 5$, one for each card.

| | shape | here |
|---|---|---|
| $x$ | $(b, n, d)$ | (64, 8, 13) |
| $W_q$, $W_k$ | $(d, d_k)$ | (13, 10) |
| $W_v$ | $(d, d_v)$ | (13, 5) |
| $Q$, $K$ | $(b, n, d_k)$ | (64, 8, 10) |
| $A$ | $(b, n, n)$ | (64, 8, 8) |
| $V$, $O$ | $(b, n, d_v)$ | (64, 8, 5) |

In torch, `@` multiplies the matrices in the last two axes, for each party by itself, and `.mT` transposes them. Row $i$ of $Q$ is query $i$, and column $j$ of $K^\top$ is key $j$. So entry $(i, j)$ of $Q K^\top$ is the dot product of query $i$ and key $j$.
"""

# %% [markdown] tags=["exercise:self_attention"]
# Write the five formulas as code, for any (b, n, d). Return the output, (b, n, d_v).

# %% [markdown]
r"""
## 2 · What is learned?

A layer keeps the three matrices as parameters, which start as small random numbers. `attend(q, k, v)` computes $A$ and $O$, and returns the pair `.output` and `.weights`. One sequence, $(n, d)$, will do as well.
"""


# %%
class SelfAttention(nn.Module):
    def __init__(self, d, d_k, d_v):
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d, d_k) / d**0.5)
        self.w_k = nn.Parameter(torch.randn(d, d_k) / d**0.5)
        self.w_v = nn.Parameter(torch.randn(d, d_v) / d**0.5)

    def forward(self, x, mask=None):
        return attend(x @ self.w_q, x @ self.w_k, x @ self.w_v, mask=mask)


# %% [markdown]
r"""
The five numbers of an output are **logits**: the position of the largest is the layer's answer, and the loss, cross-entropy, compares all five with the right card. Each of the 800 training steps draws 64 new parties:
"""


# %%
def train(layer):
    generator = torch.Generator().manual_seed(0)
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.01)
    for _ in range(800):
        x, right, _ = partners.draw(generator, 64)
        logits = layer(x).output  # (64, 8, 5)
        loss = F.cross_entropy(logits.flatten(0, 1), right.flatten())  # (512, 5), (512,)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


# %% tags=["nbval-ignore-output"]
layer = SelfAttention(13, 10, 5)
before = layer(x[0]).weights.detach()
train(layer)
new_x, new_right, _ = partners.draw(torch.Generator().manual_seed(1), 500)
frequent = new_x[..., 8:].argmax(-1).mode(-1, keepdim=True).values  # worn most often in each party
for name, named in {"layer": layer(new_x).output.argmax(-1), "most frequent card": frequent}.items():
    print(f"{name:19}{(named == new_right).float().mean():.2f} right")

# %% tags=["proof"]
assert (layer(new_x).output.argmax(-1) == new_right).float().mean() > 0.99

# %% [markdown]
r"""
The layer is right at 500 unseen parties, where naming each party's most frequent card, worn by about three of eight guests, is right in «40» % of all cases. Here are its weights at the first party:
"""

# %% tags=["trained"]
figures.found_partners(before, layer(x[0]).weights.detach(), where[0])

# %% [markdown]
r"""
Before training, each row spreads its weight over all guests. Afterwards each row has one bright cell, where the partner stands, as the right table shows.

How does a row find this column? Take one score apart. It is $q_i \cdot k_j / \sqrt{10}$, and since $q_i = x_i W_q$ and $k_j = x_j W_k$,

$$q_i \cdot k_j = x_i W_q \, (x_j W_k)^\top = x_i \, M \, x_j^\top \qquad \text{with} \qquad M = W_q W_k^\top$$

$M$ has shape $(13, 13)$. The two 1s of token $i$ pick two rows of $M$: one of the first eight, for the guest, and one of the last five, for the card. The two 1s of token $j$ pick two columns in the same way. So rows belong to the token that looks, and columns to the token that is looked at. Four entries of $M$ add up to the dot product, one from each block: guest with guest, guest with card, card with guest, card with card.
"""

# %%
predict("where_written")

# %% tags=["trained"]
M = (layer.w_q @ layer.w_k.mT).detach()
figures.learned_relation(M, partners.PARTNER)

# %% tags=["nbval-ignore-output"]
print("guest      ", *range(8))
print("looks for  ", *M[:8, :8].argmax(-1).tolist())
print("card       ", *range(5))
print("raises most", *layer.w_v[8:].argmax(-1).tolist())
others = torch.cat((M[:8, 8:].flatten(), M[8:].flatten()))  # of the three other blocks
print(f"partners: {M[range(8), partners.PARTNER].min():.0f} or more; other blocks: {others.abs().max():.0f} at most")

# %% tags=["proof"]
assert torch.equal(M[:8, :8].argmax(-1), partners.PARTNER)
block = M[:8, :8].clone()
strengths = block.gather(1, partners.PARTNER[:, None])
block.scatter_(1, partners.PARTNER[:, None], 0.0)
assert strengths.min() > 20 > 15 > block.max() and block.min() < -5
assert max(M[:8, 8:].abs().max(), M[8:].abs().max()) < 4
assert torch.equal(layer.w_v[8:].argmax(-1), torch.arange(5))

# %% [markdown]
r"""
There is the secret. In the block guest with guest, the brightest cell of row 0 stands in column 3: guest 0 looks for guest 3. The printed line *looks for* gives the brightest column of each row, and these are the partners in the right picture. Partners have entries above 20; those of the other three blocks are near 0. **Whom a token looks for stands in $W_q W_k^\top$.** (Reading is so easy only because a token is two 1s: each row of $M$ belongs to one guest or one card.)

The third matrix, $W_v$, says what is passed on. Its last five rows belong to the cards. The last printed line gives the column of the largest entry in each: card 0 raises logit 0 most, card 1 logit 1, and so on.

**"Attention learns the weights."** No: it learns the matrices. From them the weights are computed, anew for each party. So the answers should follow when we change a matrix by hand:
"""

# %%
predict("swapped_rows")

# %%
swapped = layer.w_q.detach().clone()
swapped[[0, 1]] = layer.w_q[[1, 0]].detach()
output = yours("self_attention")(x, swapped, layer.w_k, layer.w_v)
print("guest     ", *x[0, :, :8].argmax(-1).tolist())
print("trained   ", *layer(x[0]).output.argmax(-1).tolist())
print("exchanged ", *output[0].argmax(-1).tolist())

# %% [markdown]
r"""
Guest 0 named 2, the card of guest 3. Now it names 4, the card of guest 6. Guest 1 changed from 4 to 2 in the same way, and the other six answer as before.

## 3 · Hide the future

Let the guests come one by one, in the order in which they stand, and answer on arrival. Then a guest may look only at those who have come, itself included: row $i$ may look at columns 0 to $i$. A mask that says this is called **causal**. `causal(n)` returns it, of shape $(n, n)$, with True for *may look*.

A language model needs the same mask. In training it predicts each row's next word, for all rows at once:

| row | 0 | 1 | 2 | 3 |
|---|---|---|---|---|
| input | the | tea | is | still |
| to predict | tea | is | still | hot |

The answer of row 0, *tea*, is the input of row 1. If row 0 could look there, it would only have to copy.

How is the mask applied? A first idea: compute the softmax as before, and then set the forbidden weights to 0.
"""

# %%
predict("zeros_after")

# %% [markdown]
r"""
A test can tell. Replace one token by another, and see which outputs move. Do this for each token in turn. The result is a table with a row for each output and a column for each replaced token. If the future is hidden, a later token moves no earlier output, so the table is 0 above the diagonal.
"""

# %% [markdown] tags=["exercise:influence"]
# `f` is any function that turns tokens `x`, (b, n, d), into one tensor of outputs, (b, n, d_v). Replace token j of `x` by token j of `other`, which has the same shape. Entry (i, j) of the table, (n, n), is the largest absolute change in output i, over all sequences and all numbers of the output. (`t.amax((0, 2))` is the largest over axes 0 and 2.)

# %% [markdown]
r"""
We test two ways: zeros after the softmax, and, as in 02a, $-\infty$ before it. `s.masked_fill(m, c)` writes $c$ where $m$ is True, and `~` exchanges True and False. `roll` shifts the parties by one, so the replacement is the token at the same position in another party.
"""


# %% tags=["trained"]
def scores(x):
    return (x @ layer.w_q) @ (x @ layer.w_k).mT / 10**0.5


def zeros_after(x):
    return scores(x).softmax(-1).masked_fill(~causal(8), 0) @ (x @ layer.w_v)


def inf_before(x):
    return scores(x).masked_fill(~causal(8), -torch.inf).softmax(-1) @ (x @ layer.w_v)


other = x.roll(1, dims=0)
tables = {way.__name__: yours("influence")(way, x, other).detach() for way in (zeros_after, inf_before)}
figures.influence(tables)

# %% tags=["proof"]
assert tables["zeros_after"][6, 7] > 1 and tables["inf_before"].triu(1).max() == 0

# %% [markdown]
r"""
On and below the diagonal tokens may move outputs, and do. Above it all entries on the right are 0, but not on the left: replacing token 7, the last one, moves a logit of output 6 by more than 1. The future **leaks**.

**"A weight of 0 hides a token."** Not if the token's score took part in the row's sum. Where the partner comes later, $e$ to the partner's score makes up nearly all of this sum, and the visible weights are near 0. Put another token there, and the sum shrinks, so the visible weights grow. What leaks is the old sum. (Dividing each row by its new sum mends it.)

With $-\infty$ as its score, the partner adds $e^{-\infty} = 0$ to the sum. `attend` does so with its `mask`.

## 4 · In real work: a batch of sentences

Now the tokens are words. A model that continues several sentences adds one word to each at a time. This is simplest when all end in the same column, so the padding stands in front:
"""

# %%
sentences = ["the tea is still hot", "time flies", "who knew that"]
lengths = torch.tensor([len(sentence.split()) for sentence in sentences])
real = torch.arange(5) >= 5 - lengths[:, None]  # (3, 5), True = a real word
for sentence, row in zip(sentences, real.int().tolist(), strict=True):
    print(row, sentence)

# %% [markdown]
r"""
In `real`, a 1 is a real word and a 0 is padding.
"""

# %%
predict("padding_in_front")

# %% [markdown]
r"""
Random numbers stand for all five rows of a sentence, padding included, and for the matrices of a new layer. Here is the second sentence, *time flies*:
"""


# %%
words, others = torch.randn(3, 5, 13), torch.randn(3, 5, 13)
reader = SelfAttention(13, 10, 5)


def who_moves(mask):
    return yours("influence")(lambda x: reader(x, mask).output, words[1:2], others[1:2]).detach()


figures.influence({"causal mask": who_moves(causal(5))})

# %% [markdown]
r"""
Rows 3 and 4 are the two real words. Replacing the padding, in columns 0 to 2, moves both: padding in front lies in the past, and the causal mask hides only the future. So a key must pass two masks. `a & b` is True where both are True.
"""

# %% [markdown] tags=["exercise:both_masks"]
# `real` is (b, n), True for a real word. Return one mask, (b, n, n), True where the key is a real word and does not come later than the query.

# %%
both = yours("both_masks")(real)  # (3, 5, 5)
figures.influence({"both masks": who_moves(both[1])})

# %% [markdown]
r"""
Only real words move real words now. Rows of padding may look at nothing; `attend` returns zeros for them, so they never move.

## To carry away

`causal` and `influence` stand beside `attend` in the file of 02a, `notebooks/carry/attention.py`. Both masks at once are `causal(n) & real[:, None, :]`.
"""

# %%
from carry import attention as carried

show_source(carried.influence)

# %% [markdown]
r"""
With the trained matrices, let the guests of the first party come one by one:
"""

# %% tags=["nbval-ignore-output"]
q, k, v = x @ layer.w_q, x @ layer.w_k, x @ layer.w_v
output, _ = carried.attend(q, k, v, mask=carried.causal(8))
print("partner has come ", *(where[0] <= torch.arange(8)).int().tolist())
print("right card       ", *right[0].tolist())
print("it names         ", *output[0].argmax(-1).tolist())

# %% tags=["proof"]
come = where[0] <= torch.arange(8)
assert torch.equal(output[0].argmax(-1)[come], right[0][come]) and come.sum() == 3
assert output[0, 0].argmax() == 2

# %% [markdown]
r"""
Where the first line has a 1, the named card is right. The other five guests can only guess: guest 5, who comes first, sees nobody else and names its own card, 2, and the others mix the cards that they see. The matrices have not changed: the mask decides who is seen.

**To remember.** Self-attention is five products and a softmax; a mask says what it may see.

- Whom a token looks for stands in $W_q W_k^\top$; the weights are computed for each input.
- Hide before the softmax, with $-\infty$; join masks with `&`.
- Replace each token in turn, and see which outputs move.

**Sources.** Vaswani et al. 2017 (arXiv:1706.03762), section 3.2; Hung-yi Lee, *Machine Learning* 2021. Seeds, timings, claims: [evidence](evidence/03_matrix_form_evidence.ipynb).

**Next**: [04 · Multi-head attention](04_multi_head.ipynb): what can one table of weights not do?
"""
