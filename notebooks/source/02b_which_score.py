# %% [markdown]
r"""
{title}

Two models learn to look things up. They differ in one division, and both *could* hold the right solution. Do both find it?

**Afterwards you can** find out why an attention layer does not learn; say what dividing by $\sqrt d$ does, and when that is not enough; choose a score.

{about}

<details><summary>中文摘要 · Chinese</summary>
独立随机向量的点积,标准差随宽度按根号 d 增长;分数太大时 softmax 饱和,多数查询几乎收不到梯度。除以根号 d 改变的是起点,不是模型的表达能力:
让向量从四分之一的长度开始,不除也能学会。各分量相关时除以根号 d 并不够;只在同一个学习率下比较模型,比较的其实是学习率。
</details>

{sources}
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
The task: a list has 16 pairs of a symbol (of 64) and an answer (of 8). Asked for one of its symbols, the model names the answer. Naming the list's commonest answer is right about one time in four. Every list is new: the model must learn to look up.
"""

# %% tags=["slide"]
asked, symbols, answers, right = look_up.draw(torch.Generator().manual_seed(4), 4000)
pairs = zip(symbols[0].tolist(), answers[0].tolist(), strict=True)
print("list  ", " ".join(f"{s}:{a}" for s, a in pairs))
print("asked ", asked[0].item(), "  right answer", right[0].item())

# %%
show_source(look_up.LookUp)

# %% [markdown]
r"""
Read `forward`: the asked symbol's vector is the query, the 16 symbols of the list have key vectors, their answers value vectors. (`nn.Embedding` is a table with
one learned row per symbol.) One model's score is $q \cdot k$, the other's $q \cdot k / \sqrt{256} = q \cdot k / 16$. Both train with Adam, at a learning rate of 0.01.
"""

# %%
predict("who_learns")

# %% tags=["trained"]
names = ("dot", "scaled dot")
live = {name: look_up.train(name, 256, lr=1e-2)[1] for name in names}
figures.learning(live, 1 / 4)

# %% tags=["proof"]
best = {name: max(history.column("score")) for name, history in live.items()}
assert live["scaled dot"].column("step")[-1] <= 200
assert quick() or (best["scaled dot"] >= 0.95 and best["dot"] < 0.8)

# %% [markdown]
r"""
The scaled model passes 95 % within 200 steps and stops. The plain one uses all 1,000 and ends near two thirds.

Yet $q \cdot k / 16 = \frac q4 \cdot \frac k4$: with vectors a quarter as long, the plain model computes the same. It is not too weak.

## 1 · Scores grow with the width

`nn.Embedding` draws its first numbers independently, with mean 0 and variance 1.
"""

# %% tags=["slide"]
predict("growth")

# %%
for d in (4, 256, 1024):
    scores = dot(torch.randn(2000, 1, d), torch.randn(2000, 16, d))
    first, next_one = scores.topk(2).values.unbind(-1)
    top = scores.softmax(-1).amax(-1).mean()
    print(
        f"width {d:4}  deviation {scores.std():5.2f}  lead {(first - next_one).median():5.2f}  top {top:.2f}"
    )

# %% [markdown] tags=["slide"]
r"""
A product $q_i k_i$ of two such numbers has mean 0, so its variance is $E[q_i^2 k_i^2] = E[q_i^2]\,E[k_i^2] = 1$. Variances of independent terms add up: $d$ products have variance
$d$ and standard deviation $\sqrt d$; divided by $\sqrt d$ it is 1. At our width, 256, in half of the lists the best of 16 scores leads by 6 points or more, and $e^{-6}$ is 0.002. The top key takes 92 % of the weight on average, by
chance, before anything is learned: **saturation**.

## 2 · What saturation does to learning

How does a weight $w_i = e^{s_i} / Z$ move when its score moves? ($Z$ is the sum of all powers.) The quotient rule gives

$$\frac{\partial w_i}{\partial s_i} = \frac{e^{s_i} Z - e^{s_i} e^{s_i}}{Z^2} = w_i - w_i^2, \qquad \frac{\partial w_i}{\partial s_j} = -\frac{e^{s_i} e^{s_j}}{Z^2} = -w_i w_j.$$
"""

# %% [markdown] tags=["exercise:slopes"]
# Write the table of all these slopes for one row of weights.

# %%
for row in (torch.tensor([0.0, 0.0, 0.0]), torch.tensor([10.0, 0.0, 0.0])):
    table = torch.autograd.functional.jacobian(lambda s: s.softmax(-1), row)
    show(scores=row, slopes=table)

# %% [markdown]
r"""
Equal scores: slopes of 0.22 and −0.11. A lead of 10: all slopes are near 0. The gradient of the loss passes through this table on its way to queries and keys. How long is the gradient of each of 4,000 queries, before
training?
"""

# %%
predict("who_is_heard")


# %% tags=["slide"]
def gradient_lengths(score):
    model = look_up.LookUp("dot", 256)
    q = model.query(asked).detach().requires_grad_()
    k, v = model.key(symbols), model.value(answers)
    mixed = attend(q[:, None], k, v, score=score).output[:, 0]
    F.cross_entropy(model.read(mixed), right, reduction="sum").backward()
    return q.grad.norm(dim=-1)


divisions = {
    "q · k": dot,
    "q · k / 16": scaled_dot,
    "q · k / 256": lambda q, k: dot(q, k) / 256,
}
for name, score in divisions.items():
    g = gradient_lengths(score)
    low, middle, high = g.quantile(torch.tensor([0.25, 0.5, 0.75])).tolist()
    print(
        f"{name:12} quarters {low:.3f} {middle:.3f} {high:.3f}  largest {g.max():5.2f}"
    )

# %% [markdown]
r"""
Without a division half of the queries hear next to nothing, and a few are shouted at. With the root all hear about the same. Divided by the width the slopes are open, but
the chain rule multiplies every gradient by 1 / 256. (Adam makes up for what is small for *all*: that model learns, too.)

## 3 · The score, or its start?
"""

# %% [markdown] tags=["exercise:scaled_scores"]
# Write the score that the second model used.

# %% [markdown]
r"""
**"A larger learning rate would mend the plain model."** Would it?
"""

# %%
predict("what_mends")

# %% tags=["trained"]
live["dot, 1/4 as long"] = look_up.train("dot", 256, lr=1e-2, times=0.25)[1]
live["scaled, 4 times"] = look_up.train("scaled dot", 256, lr=1e-2, times=4)[1]
figures.learning(live, 1 / 4)

# %% tags=["proof"]
best = {name: max(history.column("score")) for name, history in live.items()}
assert quick() or best["dot, 1/4 as long"] >= 0.95 > 0.7 > best["scaled, 4 times"]
assert quick() or live["dot, 1/4 as long"].column("step")[-1] <= 100

# %% [markdown]
r"""
A quarter as long, the plain model learns at least as fast as the scaled one. Four times as long, the scaled one fails; so say three rates and three seeds
([measured](evidence/02_scoring_evidence.ipynb)). **The root does not change what a model can say. It changes where it starts.**

**"The root keeps the deviation of scores at 1."** Training lets it grow: a sharp look needs large scores. And at the start, the argument needs *independent* numbers. Take the extreme:
"""

# %%
predict("copies")

# %%
q = torch.randn(2000, 1, 1).expand(-1, -1, 64)
k = torch.randn(2000, 16, 1).expand(-1, -1, 64)
scores = scaled_dot(q, k)
print(f"deviation {scores.std():.2f}  top {scores.softmax(-1).amax(-1).mean():.2f}")

# %% [markdown]
r"""
The top key has 0.68 of the weight on average; with independent numbers the root leaves 0.24. The same sum grows in a linear layer. There the weights are drawn smaller instead,
often from a Gaussian: with variance $1/d$ (Xavier), or $2/d$ before a ReLU, which drops half (Kaiming).

## 4 · Other scores

| score | formula | learned numbers | may widths differ? |
|---|---|---|---|
| dot, scaled dot | $q \cdot k$, $\;q \cdot k / \sqrt d$ | none | no |
| bilinear (Luong) | $q \cdot W k$, with a matrix $W$ | $d_q\,d_k$ | yes |
| additive | $v \cdot \tanh(W_q q + W_k k)$ | $d_h (d_q + d_k + 1)$ | yes |

The additive score is a small network with $d_h$ hidden units; $v$ is a learned vector. It came first (Bahdanau et al. 2014). Stored runs to 95 %, at most 1,000 steps, three seeds, the best of six learning rates:
"""

# %%
figures.stored_arrival()

# %% [markdown]
r"""
Plain dot products fail from width 64 on; scaled and additive scores succeed everywhere. Bilinear starts with a deviation of 1, too ($W$ is drawn so), and at width 1,024 training drives it above 100:
a good start is not always enough. Scaled or additive? The same runs again:
"""

# %%
figures.stored_rates()

# %% [markdown]
r"""
At the rate 0.01 for both (left) additive needs fewer steps at every width. At the best rate for each, its lead is gone from width 16 on. **A comparison at one learning rate is a comparison of learning rates.** What decides is the cost: for 512 tokens
and 64 hidden units the additive score holds $512 \cdot 512 \cdot 64$, nearly 17 million numbers, a dot product 262,144. Take the scaled dot product.

## In real work

torch divides by the root, and so does `attend` by itself. The width is that of the vectors that are multiplied: a model of width 512 with vectors
of width 64 (chapter 04) divides by 8. In half precision it matters *when* you divide: 65,504 is the largest float16.
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
$8 \cdot 8$, 1,024 times, is 65,536. Dividing late gets infinity; dividing the query first, as `scaled_dot` does, gets the right 2,048.

**To remember.** Divide by the root, and attention starts with weights that are mixed, so that every query is heard.

- $\operatorname{var}(q \cdot k) = d$ for independent numbers of mean 0 and variance 1.
- Slopes of a softmax are $w - w^2$ and $-w_i w_j$: 0 where one weight is 1.
- The root is a start: correlated parts, or training, can undo it.
- Scaled and additive scores both learn; the scaled one is far cheaper.

**Sources.** Bahdanau, Cho & Bengio 2014 (arXiv:1409.0473); Luong, Pham & Manning 2015 (arXiv:1508.04025); Vaswani et al. 2017 (arXiv:1706.03762), section 3.2.1. [Evidence](evidence/02_scoring_evidence.ipynb).

**Next**: [03 · Matrix form](03_matrix_form.ipynb): how does it become a few matrix products?
"""
