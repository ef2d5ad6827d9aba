# /// ideas
# ["look-up task"]
# says = "a task that a soft look-up can learn: new lists of pairs of a symbol and an answer; asked for a symbol, name its answer"
# motive = "Two models learn to look things up"
# shown = "the right answer is 2"
# action = 'predict("who_learns")'
# ["saturated softmax"]
# says = "a softmax is saturated where one weight is nearly 1 and all others are nearly 0; at width 256 this happens by chance, before training"
# motive = "How does each model divide its weight"
# shown = "figures.list_weights(before, pairs, right)"
# action = 'predict("growth")'
# ["the spread of dot products"]
# says = "for independent numbers with mean 0 and variance 1, q · k has the standard deviation √d, d being the width"
# motive = "What does this mean for a dot product?"
# shown = "figures.spreads"
# action = 'predict("growth")'
# ["scaled dot product"]
# says = "the scaled dot product is q · k / √d: its standard deviation starts at 1 for every width"
# motive = "and the standard deviation is 1 at every width"
# shown = "It is 1.0 at all"
# action = "check(scaled_scores)"
# ["the push on a key"]
# says = "the derivatives of softmax by score j are w_j - w_j² and -w_i w_j; each has the factor w_j, so a key of weight 0 is not pushed by the loss"
# motive = "How does the weight"
# shown = "figures.pushes(push)"
# action = 'predict("who_is_heard")'
# ["chance decides"]
# says = "without the division chance decides what is learned: symbols whose own key starts with a low score stay at guessing"
# motive = "Which symbols can the plain model learn?"
# shown = "Asked for one of the 20 highest"
# action = 'predict("by_chance")'
# ["a start, no capacity"]
# says = "the root changes where a model starts, not what it can compute: shorter vectors do the same, longer ones undo it; a larger learning rate is no cure"
# motive = "A larger learning rate would mend the plain model"
# shown = "(4q) \\cdot (4k) / 16 = q \\cdot k"
# action = "check(short_start)"
# ["divide once"]
# says = "torch's scaled_dot_product_attention divides by the root itself; scale=1.0 switches that off; compare logits before and after"
# motive = "Some trained models do not divide"
# shown = "accuracy 1.00  largest difference 0.0000"
# action = 'predict("handed_over")'
# ///

# %% [markdown]
r"""
{title}

Two models learn to look things up in a list. They differ in one division. Do both of them learn it?

**Afterwards you can** see in a layer's first scores why it does not learn; write the score that nearly all models use; start a layer so that it learns without the division.

{about}

<details><summary>中文摘要 · Chinese</summary>
两个模型学习同一项查表任务,只差一次除法。它们都学得会吗?本章先看训练之前的分数:向量的宽度怎样改变分数,分数又怎样改变学习。
然后请你亲手让失败的模型学会,最后看一个在实际工作中不会报错的陷阱。
</details>

{sources}
"""

# %% tags=["imports"]
import torch
import torch.nn.functional as F
from torch import nn

from lesson_lib.chapters.c02_scoring import figures
from lesson_lib.chapters.c02_scoring.experiments import look_up
from lesson_lib.course import *

_ = torch.manual_seed(0)
warm_up()

# %% [markdown]
r"""
A list holds 20 pairs of a symbol and an answer; no symbol comes twice. There are 60 symbols, the numbers 0 to 59, and 8 answers, the numbers 0 to 7. A model is asked for one symbol of the list, and must name its answer. `look_up.draw` draws such lists at random, here 4,000; we look at list 0:
"""

# %%
# asked (4000,): the symbol asked for; symbols and answers (4000, 20): the pairs;
# target (4000,): the right answer
asked, symbols, answers, target = look_up.draw(
    torch.Generator().manual_seed(53), 4000, symbols=60, pairs=20
)
pairs = [f"{s}:{a}" for s, a in zip(symbols[0].tolist(), answers[0].tolist())]
print(" ".join(pairs))
print(f"asked for {asked[0]}, right answer {target[0]}")

# %% [markdown]
r"""
The pair 53:2 says that the right answer is 2. In other lists symbol 53 has other answers. So a model cannot learn answers by heart; it must learn to look.

The model is a soft look-up, as in 02a. Each symbol has two learned vectors: a query, for when it is asked for, and a key, for when it stands in the list. Both hold 256 numbers; this is their **width** $d$. Each answer has a learned value, of ten numbers.
`nn.Embedding(60, 256)` is a table of 60 learned vectors, and `self.query(asked)` picks those of the asked symbols. The class takes $b$ lists at once:
"""


# %%
class LookUp(nn.Module):
    def __init__(self, divide_by):
        super().__init__()
        self.query, self.key = nn.Embedding(60, 256), nn.Embedding(60, 256)
        self.value, self.read = nn.Embedding(8, 10), nn.Linear(10, 8)
        self.divide_by = divide_by

    def scores(self, asked, symbols):
        q, k = self.query(asked)[:, None], self.key(symbols)
        return q @ k.mT / self.divide_by  # (b, 1, 256) @ (b, 256, 20) -> (b, 1, 20)

    def answer(self, scores, answers):
        mixture = scores.softmax(-1) @ self.value(answers)  # (b, 1, 10)
        return self.read(mixture[:, 0])  # (b, 8)

    def forward(self, asked, symbols, answers):
        return self.answer(self.scores(asked, symbols), answers)


# %% [markdown]
r"""
`scores` compares each query with the 20 keys of its list. `answer` mixes the values and turns the mixture into eight **logits**, one for each answer: the largest one is what the model names.

`LookUp(1)`, the plain model, has the score $q \cdot k$. `LookUp(16)`, the scaled model, has $q \cdot k / 16$.

Both are trained alike: 200 steps of Adam, each on 100 new lists. Every ten steps `train_look_up` notes the **accuracy**, the share of right answers on 1,000 unseen lists:
"""

# %%
# unseen: asked, symbols and answers of 1,000 other lists
*unseen, unseen_target = look_up.draw(
    torch.Generator().manual_seed(1), 1000, symbols=60, pairs=20
)


def is_right(model):
    with torch.no_grad():
        return (model(*unseen).argmax(-1) == unseen_target).float()  # (1000,)


# %%
def train_look_up(model, lr=0.01):
    generator, accuracy = torch.Generator().manual_seed(0), [is_right(model).mean()]
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for step in range(1, 201):
        *given, wanted = look_up.draw(generator, 100, symbols=60, pairs=20)
        loss = F.cross_entropy(model(*given), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            accuracy.append(is_right(model).mean())
    return accuracy


def fresh(divide_by):
    torch.manual_seed(0)  # the same first numbers for every model
    return LookUp(divide_by)


# %%
predict("who_learns")

# %% tags=["trained"]
plain, scaled = fresh(1), fresh(16)
accuracy = {"plain": train_look_up(plain), "scaled": train_look_up(scaled)}
figures.learning(accuracy, every=10, guessing=1 / 8)

# %% tags=["proof"]
assert accuracy["scaled"][8] > 0.9 and accuracy["scaled"][-1] > 0.98
assert 0.35 < accuracy["plain"][-1] < 0.7

# %% [markdown]
r"""
After 80 steps the scaled model is right in nearly all unseen lists. The plain one climbs slowly, and after 200 steps it is right in about half of them. (The [evidence](evidence/02_scoring_evidence.ipynb) has more rates and seeds.)

## 1 · Before the first step

How does each model divide its weight among the keys of list 0 before training?
"""


# %%
def weights_of(model):
    with torch.no_grad():
        return model.scores(asked[:1], symbols[:1]).softmax(-1)[0, 0]  # (20,)


right = pairs.index("53:2")
before = {
    "plain, before training": weights_of(fresh(1)),
    "scaled, before training": weights_of(fresh(16)),
}
figures.list_weights(before, pairs, right)

# %% [markdown]
r"""
In the plain model symbol 24 has nearly all of the weight, and the right pair has none that we could see. In the scaled model every key has some weight, the right one, too.

Where one weight is nearly 1 and all others are nearly 0, a softmax is **saturated**. Nothing has been learned yet, so chance has chosen symbol 24.

Weights depend on differences of scores (02a), so the plain model's scores must lie far apart. `nn.Embedding` draws its first numbers independently, with mean 0 and variance 1. What does this mean for a dot product?
"""

# %%
predict("growth")

# %%
random_scores = {}
for d in (4, 256, 1024):
    scores = torch.randn(300, d) @ torch.randn(300, d).mT  # 300 queries, 300 keys
    random_scores[f"width {d}"] = scores
    print(f"width {d:4}   standard deviation {scores.std():4.1f}")
figures.spreads({name: random_scores[name] for name in ("width 4", "width 256")})

# %% [markdown]
r"""
Scores of width 256 reach beyond 30. The standard deviations are close to the roots of the widths, «2», «16» and «32».

Why the roots? A product $q_i k_i$ of two independent numbers with mean 0 has mean 0, so its variance is $E[q_i^2 k_i^2] = E[q_i^2] \, E[k_i^2] = 1$. Variances of independent terms add up. So a sum of $d$ such products has the variance $d$, and the standard deviation $\sqrt d$.

At width 256 two scores easily lie 16 apart, and then one weight is $e^{16}$ times the other, nearly nine million times. Divide all scores by $\sqrt d$, and the standard deviation is 1 at every width.
"""

# %% [markdown] tags=["exercise:scaled_scores"]
# Nearly all models use this score, the **scaled dot product**. Write it for $n$ queries and $m$ keys of any width.

# %%
for d in (4, 256, 1024):
    q, k = torch.randn(300, d), torch.randn(300, d)
    print(f"width {d:4}   {yours('scaled_scores')(q, k).std():.1f}")

# %% [markdown]
r"""
It is «1.0» at all three widths.

## 2 · What saturation does to learning

How does the weight $w_i$ of one key move when the score $s_j$ of a key grows? The weight is $w_i = e^{s_i} / Z$, where $Z$ is the sum of $e^s$ over all keys. The quotient rule gives

$$\frac{\partial w_j}{\partial s_j} = \frac{e^{s_j} Z - e^{s_j} e^{s_j}}{Z^2} = w_j - w_j^2 = w_j (1 - w_j)$$

$$\frac{\partial w_i}{\partial s_j} = -\frac{e^{s_i} e^{s_j}}{Z^2} = -w_i w_j \quad (i \neq j).$$
"""

# %% [markdown]
r"""
Both have the factor $w_j$. At $w_j = 0.5$ the first is 0.25; at 0.001 and at 0.999 it is about 0.001. The loss $L$ depends on $s_j$ only through the weights, so by the chain rule

$$\frac{\partial L}{\partial s_j} = \sum_i \frac{\partial L}{\partial w_i} \, \frac{\partial w_i}{\partial s_j},$$

and every term of this sum has the factor $w_j$. The other factor, $\partial L / \partial w_i$, is value $i$ times the derivative of $L$ by the mixture. This factor does not grow when $w_j$ shrinks.

The size of $\partial L / \partial s_j$ is the **push** of the loss on key $j$. So a key with a weight of nearly 0 is hardly pushed, even if it is the right one. The wrong key that has nearly all of the weight is hardly pushed either, since $1 - w_j$ and all other weights are nearly 0.
"""

# %%
predict("who_is_heard")


# %%
def pushes(model):
    scores = model.scores(asked, symbols).detach().requires_grad_()  # (4000, 1, 20)
    # the scores are inputs of their own here; torch gives the derivative of the loss by each of them
    loss = F.cross_entropy(model.answer(scores, answers), target, reduction="sum")
    # "sum" keeps the push of each list; the mean would divide it by 4,000
    (gradient,) = torch.autograd.grad(loss, scores)
    return gradient[:, 0][symbols == asked[:, None]].abs()  # of the right keys: (4000,)


push = {"plain": pushes(fresh(1)), "scaled": pushes(fresh(16))}
for name, sizes in push.items():
    share = (sizes > 0.001).float().mean()
    print(f"{name:7} stronger than .001 in {share:.2f} of the lists")
figures.pushes(push)

# %% [markdown]
r"""
In the plain model the right key gets a push stronger than ‹.001› (right of the dotted line) in «6» % of the lists. In the scaled model it is stronger than ‹.001› in «93» %.

A symbol has one key for all lists, so a strong push in a few of them may be enough.

Which symbols can the plain model learn? The right key is the asked symbol's own key, and the score of a query with its own key is the same in every list. If this score happens to start high, the right key has weight and is pushed; if it starts low, it is not. So we order the
symbols by this first score, and compare the 20 highest with the 20 lowest:
"""

# %%
predict("by_chance")

# %%
first = fresh(1)
own = (first.query.weight * first.key.weight).sum(-1)  # tables (60, 256); each query, its own key: (60,)
order = own.argsort(descending=True)


def by_start(model):  # the accuracy on lists that ask for one of the 20 highest, or the 20 lowest
    return [
        is_right(model)[torch.isin(unseen[0], some)].mean().item()
        for some in (order[:20], order[-20:])
    ]


# %% tags=["nbval-ignore-output"]
print("        20 highest  20 lowest")
for name, model in {"plain": plain, "scaled": scaled}.items():
    high, low = by_start(model)
    print(f"{name:7} {high:10.2f} {low:10.2f}")

# %% tags=["proof"]
assert by_start(plain)[0] > 0.85 and by_start(plain)[1] < 0.25
assert min(by_start(scaled)) > 0.95 and 53 in order[-20:]

# %% [markdown]
r"""
Asked for one of the 20 highest, the trained plain model is nearly always right. Asked for one of the 20 lowest, it is right in about one list of eight, which is guessing. The scaled model has the same first vectors, but smaller scores, and learns all of them. **In the plain model, chance decides before the first step what these 200 steps can learn.** Symbol 53 is one of the 20 lowest.

## 3 · The score, or its start?

**"A larger learning rate would mend the plain model."** Its pushes are weak, so let it take larger steps:
"""

# %%
predict("what_mends")

# %% [markdown] tags=["exercise:short_start"]
# A quarter is right for width 256. What is right for other widths? Write a function that shortens vectors of any width $d$, so that the dot product of two of them has the variance 1.

# %% tags=["trained"]
# three more models
fast, short, long = fresh(1), fresh(1), fresh(16)
with torch.no_grad():
    for table in (short.query.weight, short.key.weight):
        table.copy_(yours("short_start")(table))  # your start
    for table in (long.query.weight, long.key.weight):
        table.mul_(4)  # four times as long
accuracy["plain, rate 0.04"] = train_look_up(fast, lr=0.04)  # four times the rate
accuracy["plain, short start"] = train_look_up(short)
accuracy["scaled, 4 times as long"] = train_look_up(long)
figures.learning(accuracy, every=10, guessing=1 / 8)

# %% tags=["proof"]
assert accuracy["plain, short start"][8] > 0.95
assert accuracy["scaled, 4 times as long"][-1] < 0.65

# %% tags=["nbval-ignore-output"]
print(f"short start, after 100 steps: {accuracy['plain, short start'][10]:.2f}")
print(f"rate 0.04, for the 20 lowest: {by_start(fast)[1]:.2f}")

# %% tags=["proof"]
assert by_start(fast)[1] < 0.35 and 0.3 < accuracy["plain, rate 0.04"][-1] < 0.65

# %% [markdown]
r"""
With your start, vectors divided by $d^{1/4}$, the plain model is above 95 % after 100 steps. The scaled model with vectors four times as long fails like the plain one, because it starts with the plain model's scores: $(4q) \cdot (4k) / 16 = q \cdot k$. **The root does not change what a model can compute. It changes, above all, where it starts.**

At four times the rate the plain model stays at about half of the lists, and for the 20 lowest symbols it does little more than guess. Adam makes up for weak gradients, so one might hope for more. Why that does not help here, we do not know.
"""

# %% tags=["trained"]
after = {  # the weights of list 0
    "plain, after training": weights_of(plain),
    "scaled, after training": weights_of(scaled),
}
figures.list_weights(after, pairs, right)

# %% tags=["proof"]
assert after["plain, after training"].argmax() != right
assert after["scaled, after training"][right] > 0.95

# %% [markdown]
r"""
The plain model still gives its weight to symbol 24. The scaled model gives it to 53:2. **"A saturated softmax is bad."** Not always: the scaled model's softmax is saturated now, because learning has made its scores large. Saturation does harm where chance has made it.

## In real work

Some trained models do not divide, such as T5, a text model that starts with shorter queries (Raffel et al. 2019). torch's `F.scaled_dot_product_attention(q, k, v)` divides by $\sqrt d$ itself, unless `scale` names another factor.
"""

# %%
predict("handed_over")


# %% tags=["nbval-ignore-output"]
def by_torch(options):
    asked, symbols, answers = unseen
    q, k, v = short.query(asked)[:, None], short.key(symbols), short.value(answers)
    return short.read(F.scaled_dot_product_attention(q, k, v, **options)[:, 0])


for options in ({}, {"scale": 1.0}):
    logits = by_torch(options)
    share = (logits.argmax(-1) == unseen_target).float().mean()
    difference = (logits - short(*unseen)).abs().max()
    print(f"{options}  accuracy {share:.2f}  largest difference {difference:.4f}")

# %% tags=["proof"]
assert 0.3 < (by_torch({}).argmax(-1) == unseen_target).float().mean() < 0.65
assert (by_torch({"scale": 1.0}) - short(*unseen)).abs().max() < 1e-4

# %% [markdown]
r"""
No error comes, but logits are off by several points, and only about half of the answers are right: torch divided the scores by 16, but the model was trained without that. With `scale=1.0` torch does not divide, and the logits are those of `short` to four decimals. This is also the test: whoever moves a
trained model to another function compares the logits before and after.

## To carry away

In `carry/attention.py`, which 02a printed, this part's division is the line `scores = (query * d**-0.5) @ key.mT` of `attend`. It divides the query, which gives the same scores. With the scaled model's vectors it finds 53:2:
"""

# %% tags=["nbval-ignore-output"]
from carry import attention as carried

with torch.no_grad():
    output, weights = carried.attend(
        scaled.query(asked[:1]), scaled.key(symbols[0]), scaled.value(answers[0])
    )
    named = scaled.read(output).argmax().item()
print(f"{pairs[weights.argmax()]} has the weight {weights.max():.2f}; it names {named}")

# %% tags=["proof"]
assert named == 2 and weights.argmax() == right and weights.max() > 0.95

# %% [markdown]
r"""
**To remember.** A score that is large by chance decides what can be learned; divided by $\sqrt d$, all scores start small.

- $q \cdot k$ has the standard deviation $\sqrt d$ for independent numbers with mean 0 and variance 1.
- Before the first step, look at the standard deviation of the scores: far above 1, the softmax is saturated by chance.
- The derivative of the loss by the score of key $j$ has the factor $w_j$: a key without weight is not pushed.
- The root is a start: shorter vectors start alike, longer ones undo it, and a larger learning rate is no cure.
- torch's function divides by $\sqrt d$: a model trained without this needs `scale=1.0`.

**Sources.** Vaswani et al. 2017 (arXiv:1706.03762), section 3.2.1; Raffel et al. 2019 (arXiv:1910.10683). [Evidence](evidence/02_scoring_evidence.ipynb).

**Next**: [03 · Matrix form](03_matrix_form.ipynb): how does attention become a few matrix products?
"""
