# %% [markdown]
r"""
# 02b · Which score, and why the root?

Two models learn to look things up. They differ in one division. After 1,000 steps one still fails. Which, and why?

**Afterwards you can** say why scores are divided by $\sqrt d$, and when that does not help; choose a score; compare two models fairly.

**Time** about 45 minutes. **You need** part [02a](02a_soft_look_up.ipynb). **Exercises**: [exercises/02_scoring](exercises/02_scoring.ipynb).

<details><summary>中文摘要</summary>
独立随机向量的点积,标准差随宽度按根号 d 增长;分数太大时 softmax 饱和,梯度消失,因此要除以根号 d。这一理由要求各分量独立、均值为 0、方差为 1;
分量相关时除以根号 d 并不够。只在同一个学习率下比较模型,比较的其实是学习率。
</details>
"""

# %%
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.chapters.c02_scoring import figures
from lesson_lib.chapters.c02_scoring.experiments import look_up
from lesson_lib.checks import check, hint, predict, solution, warm_up
from lesson_lib.device import quick
from lesson_lib.scores import dot, scaled_dot
from lesson_lib.show import show, show_source

_ = torch.manual_seed(0)
warm_up()

# %% [markdown]
r"""
The task: a list has 16 pairs of a symbol and an answer. Asked for one of its symbols, the model names the answer. There are 64 symbols and 8
answers. Guessing is right one time in eight, naming the list's commonest answer about one time in four. Every list is new: the model must learn to look up.
"""

# %%
asked, symbols, answers, right = look_up.draw(torch.Generator().manual_seed(4))
pairs = zip(symbols[0].tolist(), answers[0].tolist(), strict=True)
print("list  ", " ".join(f"{s}:{a}" for s, a in pairs))
print("asked ", asked[0].item(), "  right answer", right[0].item())

# %%
show_source(look_up.LookUp)

# %% [markdown]
r"""
Read `forward`: the asked symbol's vector is the query, the 16 symbols of the list have key vectors, their answers value vectors. (`nn.Embedding` is a table with
one learned row per symbol.) One model's score is $q \cdot k$, the other's $q \cdot k / \sqrt{256} = q \cdot k / 16$.
"""

# %%
predict("who_learns")

# %%
scores = ("dot", "scaled dot")
live = {name: look_up.train(name, 256, lr=1e-2)[1] for name in scores}
figures.learning(live, chance=1 / 8)

# %%
best = {name: max(history.column("score")) for name, history in live.items()}
# (quick() is True only where a test cuts trainings short)
assert quick() or (best["scaled dot"] >= 0.95 and best["dot"] < 0.8)
assert live["scaled dot"].column("step")[-1] <= 200

# %% [markdown]
r"""
The scaled model passes 95 % within 200 steps and stops. The other uses all 1,000 and is still far below. (On this axis each tick doubles.) It *could* hold the same solution, with vectors a quarter as long. It does not find it in time.

## 1 · Scores grow with the width

At the start all numbers are drawn independently, with mean 0 and variance 1.
"""

# %%
predict("growth")

# %%
for d in (4, 256, 1024):
    scores = dot(torch.randn(2000, 1, d), torch.randn(2000, 16, d))
    top = scores.softmax(-1).amax(-1).mean()
    print(
        f"width {d:4}  deviation {scores.std():5.2f}  largest of 16 weights {top:.2f}"
    )

# %% [markdown]
r"""
A product of two such numbers has variance 1, since $E[q^2 k^2] = E[q^2]\,E[k^2] = 1$. Variances of independent terms add up: $d$ products have variance
$d$ and standard deviation $\sqrt d$. So at our width, 256, one key takes 92 % of the weight, *by chance*, before anything is
learned. This is called **saturation**.

## 2 · Why saturation stops learning

How does a weight $w_i = e^{s_i} / Z$ move when its score moves? ($Z$ is the sum of all powers.) The quotient rule gives

$$\frac{\partial w_i}{\partial s_i} = \frac{e^{s_i} Z - e^{s_i} e^{s_i}}{Z^2} = w_i - w_i^2, \qquad \frac{\partial w_i}{\partial s_j} = -\frac{e^{s_i} e^{s_j}}{Z^2} = -w_i w_j.$$
"""

# %%
predict("slope_at")

# %% [markdown] tags=["exercise:slopes"]
# Write the table of all these slopes for one row of weights.

# %%
row = torch.randn(5)
table = torch.autograd.functional.jacobian(lambda s: s.softmax(-1), row)
w = row.softmax(-1)
assert_close(table, torch.diag(w) - w[:, None] * w[None, :])

# %% [markdown]
r"""
torch's own table agrees. Where one weight is 1 and the rest are 0, **all** slopes are 0. The gradient reaches the scores through this table: a model that has chosen by chance
hears little of its mistake. Divide by $\sqrt d$, and the standard deviation is 1 at every width:
"""

# %% [markdown] tags=["exercise:scaled_scores"]
# Write the score that the second model used.

# %%
predict("by_the_width")

# %%
q, k = torch.randn(2000, 1, 256), torch.randn(2000, 16, 256)
divided = {"nothing": dot(q, k), "root": scaled_dot(q, k), "width": dot(q, k) / 256}
for name, scores in divided.items():
    top = scores.softmax(-1).amax(-1)
    print(
        f"by {name:8} largest {top.mean():.2f}  its slope {(top - top**2).mean():.3f}"
    )

# %% [markdown]
r"""
An even share is 0.06. With the root the slope is over three times as large as without: its model hears more.

**"The root always keeps scores at 1."** The argument needs independent numbers. Training makes them depend on each other. Take the extreme:
"""

# %%
predict("copies")

# %%
q = torch.randn(2000, 1, 1).expand(-1, -1, 64)
k = torch.randn(2000, 16, 1).expand(-1, -1, 64)
scores = scaled_dot(q, k)
print(f"deviation {scores.std():.2f}  largest {scores.softmax(-1).amax(-1).mean():.2f}")

# %% [markdown]
r"""
One key has 0.68 of the weight, not 0.24. So the root makes a good *start*. Layers start by the same sum: their numbers are drawn, often from a Gaussian, with variance
$1/d$ (Xavier), or $2/d$ before a ReLU, which cuts half away (Kaiming).

## 3 · Other scores

| score | formula | learned numbers | may widths differ? |
|---|---|---|---|
| dot | $q \cdot k$ | none | no |
| scaled dot | $q \cdot k / \sqrt d$ | none | no |
| bilinear (Luong) | $q \cdot W k$ | $d_q\,d_k$ | yes |
| additive | $v \cdot \tanh(W_q q + W_k k)$ | $d_h (d_q + d_k + 1)$ | yes |

The additive score is a small network with $d_h$ hidden units; $v$ is a learned vector here. It came first (Bahdanau et al. 2014).
It adds numbers between −1 and 1 with a small $v$, so it needs no root. Stored runs, three seeds, the best of six learning rates:
"""

# %%
figures.stored_arrival()

# %% [markdown]
r"""
Plain dot products fail from width 64 on. Scaled and additive scores succeed at every width. Bilinear fails at 1,024. It is drawn so small that its
scores start near 1, too; training blows them up ([measured](evidence/02_scoring_evidence.ipynb)). Scaled or additive? Look at the same runs twice:
"""

# %%
figures.stored_rates()

# %% [markdown]
r"""
At one rate for both, additive needs fewer steps at every width. At the best rate for each, its lead is gone from width 16 on. **A comparison at one
learning rate is a comparison of learning rates.** What decides is the cost: for 512 tokens and 64 hidden units the additive score holds
$512 \cdot 512 \cdot 64$, nearly 17 million numbers, a dot product 262,144.

**"The dot product picks the most similar key."** Does it?
"""

# %%
predict("longer_key")

# %%
q = torch.tensor([[1.0, 0.0]])
k = torch.tensor([[1.0, 0.0], [3 / 2**0.5, 3 / 2**0.5]])
show(scores=dot(q, k), cosines=F.cosine_similarity(q, k))

# %% [markdown]
r"""
The cosine sees direction alone, and prefers the first key.

## In real work

torch divides by the root as well. The width is that of the vectors that are multiplied: many models of width 512 multiply vectors
of width 64 (chapter 04), and divide by 8. In half precision it matters *when* you divide: 65,504 is the largest float16.
"""

# %%
q, k = torch.randn(2, 3, 64), torch.randn(2, 5, 64)
assert_close(F.scaled_dot_product_attention(q, k, k), attend(q, k, k).output)
half = torch.full((1, 1024), 8.0, dtype=torch.float16)
show(
    late=(half @ half.mT / 1024**0.5).item(),
    early=((half / 1024**0.5) @ half.mT).item(),
)

# %% [markdown]
r"""
$8 \cdot 8$, 1,024 times, is 65,536: too large, so the late division gets infinity. Our `scaled_dot` divides the query first.

**To remember.** Divide by the root, and random scores have a standard deviation of 1 at every width, so the softmax starts with slopes that are not zero.

- $\operatorname{var}(q \cdot k) = d$ for independent parts of mean 0 and variance 1.
- Slopes of a softmax are $w - w^2$ and $-w_i w_j$: all zero where one weight is 1.
- The root is a start, not a law: correlated parts break it.
- Scaled and additive scores both learn; the scaled one is far cheaper.
- A dot product counts length as well as direction.

**Sources.** Bahdanau, Cho & Bengio 2014 (arXiv:1409.0473); Luong, Pham & Manning 2015 (arXiv:1508.04025); Vaswani et al. 2017 (arXiv:1706.03762), section 3.2.1. Seeds, rates and the
sources' claims: [evidence](evidence/02_scoring_evidence.ipynb).

**Next**: [03 · Matrix form](03_matrix_form.ipynb): how does it become a few matrix products?
"""
