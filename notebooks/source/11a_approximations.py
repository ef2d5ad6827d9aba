# %% [markdown]
r"""
# 11a · Can attention be cheaper?

In 2021 eleven kinds of attention met on five tasks with long inputs: the **Long Range Arena**. "Transformer" is the plain one, which compares all pairs of tokens; the others were made to be cheaper. One has the best mean. Is it the best?

**Afterwards you can** read such a ranking with care; say what a cheaper attention gives up; build three of them, each by another argument of `attend`.

**Time** about 45 minutes. **You need** parts [04](04_multi_head.ipynb), [08c](08c_linear.ipynb) and [09](09_truncated_attention.ipynb). **Exercises**: [exercises/11_efficient_attention](exercises/11_efficient_attention.ipynb).

<details><summary>中文摘要</summary>
2021 年有人让十一种注意力在五个任务上比赛:换一换任务,赢家就变。这一课亲手做三种更便宜的注意力(全局词元、低秩、随机特征),各自说出它放弃了什么。
最后在我们自己的小赛场上再看一次:谁选任务,谁就选了赢家。
</details>
"""

# %%
from collections import Counter
from statistics import median

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.blocks import EncoderLayer
from lesson_lib.chapters.c11_efficient_attention import (
    arena_figures,
    figures,
    lra,
)
from lesson_lib.chapters.c11_efficient_attention.experiments import arena
from lesson_lib.checks import check, hint, predict, solution, warm_up, yours
from lesson_lib.data import recall
from lesson_lib.device import quick, to_device
from lesson_lib.efficient import RandomFeatures
from lesson_lib.linear import attend_linear
from lesson_lib.masks import window
from lesson_lib.measure import operations, sensitivity

_ = torch.manual_seed(0)
warm_up()

# %%
left_out = []  # yours to change: ["Pathfinder"], for example
kept = [task for task in lra.TASKS if task not in left_out]
print(f"{'':12}  mean", *(f"{task:>10}" for task in lra.TASKS))
for kind, mean in lra.means(kept).items():
    of_task = " ".join(f"{share:10.2f}" for share in lra.RIGHT[kind])
    print(f"{kind:12} {mean:5.2f} {of_task}")

# %% [markdown]
r"""
These are the paper's own numbers: test accuracy in %, where a guess has 10, 50, 50, 10 and 50. ListOps: the value of an expression in brackets. Text: does this film review praise, read letter by letter? Retrieval: are these two papers related? Image: what is on this small photograph, read pixel by pixel? Pathfinder: does a line join the two dots? An input has 1,000 to 4,000 tokens.

BigBird is first. Now take tasks out of the mean, in the cell above.
"""

# %%
predict("who_can_win")

# %%
winners = Counter(next(iter(lra.means(some))) for some in lra.choices())
for kind, times in winners.most_common():
    print(f"{kind:11} {times:2} of 31")
assert len(winners) == 7

# %% [markdown]
r"""
Seven of eleven. BigBird wins 12 of the 31 choices, and no single task. Leave out Pathfinder: the plain Transformer leads. Leave out ListOps: Sparse does. **Who chooses the tasks chooses the winner.**

So do not ask who is best. Ask what a task needs, and what each kind gives up. First: who needs a cheaper one?

## 1 · When is attention what costs?

One layer, $n$ tokens, width $d$. Scores and mixture take $2 n^2 d$ multiplications, the four projections $4 n d^2$, a feed-forward network of width $4d$ takes $8 n d^2$:

$$\text{share of attention} = \frac{2 n^2 d}{2 n^2 d + 12\, n d^2} = \frac{n}{n + 6d}$$

By hand, $n = d = 512$: $1/7$. Do not trust it, count:
"""

# %%
layer = EncoderLayer(512, 8, 2048, dropout=0.0)
for n in (512, 3072, 8192):
    x, heads = torch.zeros(1, n, 512), torch.zeros(1, 8, n, 64)
    with torch.no_grad():
        pairs = operations(lambda x=heads: attend(x, x, x, weights=False))
        share = pairs / operations(lambda x=x: layer(x))
    print(f"{n:5,} tokens: {share:.2f} of the multiplications")

# %% [markdown]
r"""
Half at $n = 6d$. For a sentence there is little to gain; for a book nearly all.

## 2 · Another mask

A window (09) is blind beyond its reach. Longformer and BigBird (2020) add **global tokens**, which see all and are seen by all.
"""

# %% [markdown] tags=["exercise:with_global"]
# Write the mask.

# %%
mask_of = yours("with_global")
figures.seen_patterns({"window": window(24, 2), "one global": mask_of(24, 2, 1)})


# %%
def hears(mask):
    """How many tokens the last output of two layers depends on."""

    def stack(x):
        for _ in range(2):
            x = x + attend(x, x, x, mask=mask).output
        return x

    x = torch.randn(len(mask), 4, dtype=torch.double)
    return int((sensitivity(stack, x)[-1] > 0).sum())


print("window alone:", hears(window(200, 2)), "of 200 tokens")
print("and one global token:", hears(mask_of(200, 2, 1)), "of 200 tokens")

# %% [markdown]
r"""
Two pairs more for each token, and the last one hears all 200: the global token hears them in layer 1, and tells in layer 2.

Can a network use that? Here is a task, **pairs**:
"""

# %%
drawn = recall.pairs(torch.Generator("cpu").manual_seed(0), 1, 6)
letter = recall.SYMBOLS[drawn.answer[0]]
print(recall.pair_text(drawn.tokens[0]), "->", letter)

# %% [markdown]
r"""
Which letter, one of eight, stood beside this key? We take 32 pairs, each one token, then the question. The network: embedding and positions, two layers of width 64, and an answer read at the last token. With a window of radius 8 it reaches 16 of the 32 pairs.
"""

# %%
predict("through_one_token")

# %% tags=["nbval-ignore-output"]
mine = "window and global"  # yours: "full", "window", "linear", "low rank"
model, _ = arena.train("pairs", mine)  # some 20 s
right = arena.accuracy(model, "pairs")
print(f"{mine}: {right:.2f} right")

# %%
assert quick() or mine != "window and global" or right < 0.35
tokens = arena.draw("pairs", "test", 5, torch.Generator("cpu").manual_seed(1))[0]
tokens = to_device(tokens)  # (5, 33)
x = model.embedding(tokens)  # (5, 33, 64)
for layer in model.layers:
    x = layer(x).output
assert_close(model.out(model.norm(x)[:, -1]), model(tokens))  # (5, 8)

# %% [markdown]
r"""
About a fifth, in each of three seeds. To hear is not to find: which pair counts is known at the end only, and by then the global token's one vector has 32 pairs in it. That is the **bottleneck** of 01b. Full attention, which can still look at the pair itself: 98 of 100.

## 3 · Other keys

The **Linformer** (2020) mixes $n$ keys down to $r$, and values likewise. The matrices $E$ and $F$, $(r, n)$, are learned:

$$\text{output} = \text{attend}(Q,\ E K,\ F V)$$

Four keys, 0, 0, 4, 4, with values 10, 20, 30, 40. $E$ and $F$ take the mean of the first two and of the last two: keys 0, 4, values 15, 35. That is exact, since equal keys have equal weights.
"""

# %%
predict("mixed_keys")

# %%
halves = torch.tensor([[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]])
values, query = torch.tensor([[10.0], [20], [30], [40]]), torch.tensor([[2.0]])
for four in ([0.0, 0, 4, 4], [0.0, 4, 0, 4]):
    keys = torch.tensor(four)[:, None]
    exact = attend(query, keys, values).output.item()
    mixed = attend(query, halves @ keys, halves @ values).output.item()
    print(f"{four}: exact {exact:.2f}, mixed {mixed:.2f}")

# %% [markdown]
r"""
With 0, 4, 0, 4 the query wants the second and fourth, 30; both mixed keys are 2, and it gets 25. Low rank is a bet that like keys stand where $E$ mixes them.

It also gives up two things for certain. A mixture holds later tokens, too, so no mask makes it causal. And $E$ has a column for each place: no longer text than in training.

**"What is linear in $n$ is faster."** Mixing takes $2 r n d$ multiplications, attention to mixtures $2 n r d$ more. All pairs take $2 n^2 d$, less as long as $n < 2r$. With the paper's $r = 256$:
"""

# %%
for n in (256, 512, 4096):
    x, mix = torch.zeros(n, 64), torch.zeros(256, n)
    exact = operations(lambda x=x: attend(x, x, x))
    low = operations(lambda x=x, mix=mix: attend(x, mix @ x, mix @ x))
    print(f"{n:5,} tokens: low rank takes {low / exact:.2f} of all pairs' work")

# %% [markdown]
r"""
## 4 · Another score

Linear attention (08c) moves the brackets, which needs a weight that is a product, $\phi(q) \cdot \phi(k)$. With elu + 1 the weights were others than softmax's. Is there a $\phi$ with $\phi(q) \cdot \phi(k) = e^{q \cdot k}$? On average, yes. Draw a direction $w$ from a normal distribution:

$$\mathbb{E}_w\!\left[\, e^{w \cdot q - |q|^2/2} \cdot e^{w \cdot k - |k|^2/2} \,\right] = e^{q \cdot k}$$

Why, for single numbers: $\mathbb{E}[e^{a w}] = e^{a^2/2}$; with $a = q + k$ the exponent is $(q + k)^2/2 - q^2/2 - k^2/2 = q k$. For $q = k = 1$ we want $e = 2.72$: $w = 0$ gives $e^{-1} = 0.37$, $w = 1$ gives $2.72$, $w = 2$ gives $e^3 = 20.1$. Rare large draws carry the mean.

The **Performer** (2020) draws $m$ directions: each token gets $m$ **random features**. Since `attend` divides scores by $\sqrt d$, queries and keys are first divided by $d^{1/4}$.
"""

# %% [markdown] tags=["exercise:random_features"]
# Write the features.

# %%
features = yours("random_features")
q, k, v = torch.randn(3, 256, 16)
phi = RandomFeatures(16, 64)  # the library's, its directions drawn
assert_close(features(q, phi.directions), phi(q))

# %%
predict("right_on_average")


# %%
def off(found, exact):
    """Length of the error over the length of the exact outputs."""
    return ((found - exact).norm() / exact.norm()).item()


print("size   one draw   mean of 400   elu + 1")
for size in (0.25, 0.5, 1.0):
    a, b = size * q, size * k
    exact = attend(a, b, v).output
    draws = [RandomFeatures(16, 64, seed=seed) for seed in range(400)]
    found = torch.stack([attend_linear(a, b, v, phi=phi) for phi in draws])
    one = median(off(output, exact) for output in found)
    elu = off(attend_linear(a, b, v), exact)
    print(f"{size:4} {one:10.2f} {off(found.mean(0), exact):13.2f} {elu:9.2f}")

# %% [markdown]
r"""
An error of 1 is as bad as zeros. At size 0.25 it works. At size 1 one draw is worse than zeros. **"Unbiased, so right on average."** Each product is unbiased; the output is a ratio of two sums of products, and its mean stays far off.

So small queries and keys are what this bet needs. Our layers start at size 1, those of `nn.Linear` at 0.58: there more features help ([evidence](evidence/11_efficient_attention_evidence.ipynb)). And training need not imitate softmax. What can be learned is another question.

## 5 · Our own arena

The network of section 2, five kinds of attention, four tasks of 33 to 128 tokens. **digits**: a digit on a canvas of 10 by 10, pixel by pixel. **text**: from which of four packages' documentation is this passage? **listops**: what is `[MAX 4 [MIN 2 3 ] 1 ]`? (4.) Window 8, rank 16, 64 features; three seeds, each kind at its best learning rate.
"""

# %%
arena_figures.bars()

# %% [markdown]
r"""
**pairs** needs one token found among many: full attention, 97 to 98. Low rank guesses: keys are mixed before the question is known. **digits**: low rank, 86 to 89. It alone learns numbers for each place, and a digit has nine places to stand; that may be why. **text**: a few tell-tale words will do, and their letters stand side by side: the window keeps up. **listops** separates nobody.
"""

# %%
predict("without_pairs")

# %%
for task in (None, *arena_figures.TASKS):
    (first, best), (second, next_best), *_ = arena_figures.without(task).items()
    told = f"without {task}" if task else "all tasks"
    print(f"{told:16} {first:9} {best:.2f}, then {second:16} {next_best:.2f}")

# %% [markdown]
r"""
Without pairs low rank wins: again, who chooses the tasks. And speed? At 4,096 tokens the cheap kinds make 7 to 15 times as many training steps in the same processor time; at 256, at most 1.4 times.

## In real work

What today's models took of this:

- windows, in turn with full layers: Gemma 2 and 3, gpt-oss;
- linear attention in three of four layers: Qwen3-Next, Kimi Linear;
- a learned choice of keys: DeepSeek-V3.2;
- global tokens: encoders of 2020, rarely since. Mixed keys and random features: hardly any.

Nearly all took something else, exact and fast: [11b](11b_exact_and_fast.ipynb).

The bug that people meet: token 0 is filler. Texts to be continued are filled up in front:
"""

# %%
x = torch.randn(2, 1, 8, 16)  # (b, h, n, d); the second text has 5 tokens
real = torch.arange(8) >= torch.tensor([0, 3])[:, None]  # filler in front
may = mask_of(8, 1, 1) & real[:, None, None]  # (2, 1, 8, 8)
print("keys of the last token:", may[:, 0, -1].sum(-1).tolist())

is_first = F.one_hot(real.int().argmax(-1), 8).bool()[:, None]  # (2, 1, 8)
near = window(8, 1) | is_first[..., None] | is_first[..., None, :]
repaired = near & real[:, None, None]
print("repaired:", repaired[:, 0, -1].sum(-1).tolist())
by_torch = F.scaled_dot_product_attention(x, x, x, attn_mask=repaired)
assert_close(by_torch, attend(x, x, x, mask=repaired).output)

# %% [markdown]
r"""
Nobody sees the filler, so the second text has lost its global token, without an error.

## The ranking once more

BigBird has the best mean of five tasks. Of four, it may be the Transformer or Sparse. Each kind is a bet on the tasks: that far tokens fit through one vector, that like keys stand together, that queries and keys are short.

**To remember.** Who chooses the tasks chooses the winner.

- Attention is $n/(n + 6d)$ of a layer: below some thousand tokens there is little to gain.
- Global tokens reach all, through a bottleneck.
- Mixed keys cannot be told apart, masked, or lengthened.
- Random features are right on average in the product, not in the output.

**Sources.** Tay et al. 2021 (arXiv:2011.04006) and 2020 (arXiv:2009.06732); Beltagy et al. 2020 (arXiv:2004.05150); Zaheer et al. 2020 (arXiv:2007.14062); Wang et al. 2020 (arXiv:2006.04768); Choromanski et al. 2021 (arXiv:2009.14794). Proofs: [evidence](evidence/11_efficient_attention_evidence.ipynb).

**Next**: [11b · Exact and fast](11b_exact_and_fast.ipynb): can softmax be computed without all scores?
"""
