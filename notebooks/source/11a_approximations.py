# %% [markdown]
r"""
{title}

In 2021 eleven kinds of attention met on five tasks with long inputs: the **Long Range Arena**. "Transformer" is the plain one; the other ten do not compare all pairs of tokens. One has the best mean. Is it the best?

**Afterwards you can** read such a ranking with care; say what a cheaper attention gives up; imitate three of them, each by another argument of `attend`.

{about}

<details><summary>中文摘要 · Chinese</summary>
2021 年有人让十一种注意力在五个任务上比赛:换一换任务,赢家就变。这一课亲手做三种更便宜的注意力(全局词元、低秩、随机特征),各自说出它放弃了什么。
最后在我们自己的小赛场上再看一次:谁选任务,谁就选了赢家。
</details>

{sources}
"""

# %%
from collections import Counter
from statistics import median

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor
from torch.testing import assert_close

_ = torch.manual_seed(0)

# %%
from lesson_lib.attention import attend
from lesson_lib.blocks import EncoderLayer
from lesson_lib.chapters.c11_efficient_attention import (
    arena_figures,
    figures,
    lra,
)
from lesson_lib.chapters.c11_efficient_attention.experiments import (
    arena,
    bottleneck,
)
from lesson_lib.checks import check, hint, predict, solution, warm_up, yours
from lesson_lib.data import recall
from lesson_lib.device import quick, to_device
from lesson_lib.efficient import RandomFeatures
from lesson_lib.linear import attend_linear
from lesson_lib.masks import window
from lesson_lib.measure import operations, sensitivity

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
The paper's own numbers: test accuracy in %, where a guess has 10, 50, 50, 10, 50. ListOps: an expression's value. Text: does a film review praise, letter by letter? Retrieval: are two papers related? Image: what is on a photograph, pixel by pixel? Pathfinder: does a line join two dots? Inputs have 1,000 to 4,000 tokens. "Local" is 09's window, "Linear" 08c's linear attention.

BigBird is first. Take tasks out, in the cell above.
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
Seven of eleven. BigBird wins «12» choices, and no single task. Leave out Pathfinder, and the plain Transformer leads; leave out ListOps, and Sparse does, both by less than 0.1. **Who chooses the tasks chooses the winner.**

What do such ideas give up? First: who needs a cheaper one?

## 1 · When is attention what costs?

One layer, $n$ tokens, width $d$. Scores and mixture take $2 n^2 d$ multiplications, the four projections $4 n d^2$, a feed-forward network of width $4d$ takes $8 n d^2$:

$$\text{share of attention} = \frac{2 n^2 d}{2 n^2 d + 12\, n d^2} = \frac{n}{n + 6d}$$

By hand, $n = d = 512$: $1/7$. Counted:
"""

# %%
layer = EncoderLayer(512, 8, 2048, dropout=0.0).to("meta")  # shapes, no numbers
for n in (512, 3072, 8192):
    x, heads = (
        torch.empty(1, *sizes, device="meta") for sizes in ((n, 512), (8, n, 64))
    )
    with torch.no_grad():
        # weights=False: the same products, no table kept
        pairs = operations(lambda x=heads: attend(x, x, x, weights=False))
        share = pairs / operations(lambda x=x: layer(x))
    print(f"{n:5,} tokens: {share:.2f}")

# %% [markdown]
r"""
Half at $n = 6d$: little to gain for sentences, nearly all for books.

## 2 · Another mask

A window (09) is blind beyond its reach. Longformer and BigBird (2020) add **global tokens**, which see all and are seen by all.
"""

# %% [markdown] tags=["exercise:with_global"]
# Write the mask: a window, and the first `n_global` tokens global.

# %%
mask_of = yours("with_global")
masks = {"window": window(24, 2), "one global": mask_of(24, 2, 1)}
figures.seen_patterns(masks)


# %%
def hears(mask):
    """How many tokens the last output of two layers depends on."""

    def stack(x):
        for _ in range(2):
            x = x + attend(x, x, x, mask=mask).output
        return x

    x = torch.randn(len(mask), 4, dtype=torch.double)
    return int((sensitivity(stack, x)[-1] > 0).sum())


print("window alone:", hears(window(200, 2)))
print("one global token:", hears(mask_of(200, 2, 1)))

# %% [markdown]
r"""
The global token hears all in layer 1, and tells all in layer 2. (A mask alone saves nothing; 09's code skips pairs.) How much fits through its one vector? The task **pairs**: which letter stood beside this key?
"""

# %%
drawn = recall.pairs(torch.Generator("cpu").manual_seed(0), 1, 8)
letter = recall.SYMBOLS[drawn.answer[0]]  # one of eight
print(recall.pair_text(drawn.tokens[0]), "->", letter)

# %% [markdown]
r"""
A pair is one token; the last asks and is read. Two layers of width 64. With radius 0 a token sees itself and the first pair, which is global; so the question hears the others through that alone.
"""

# %%
predict("through_one_token")

# %% tags=["nbval-ignore-output"]
count, kind = 8, "window and global"  # yours: 4 or 16; "full"
model, _ = bottleneck.train(count, kind)  # 1,200 steps
right = bottleneck.accuracy(model, count)
print(f"{right:.2f} right")

# %%
# what the model does, step by step, on five texts
tokens, _ = arena.pairs(torch.Generator("cpu").manual_seed(1), 5, count)
x = model.embedding(to_device(tokens))  # (5, count + 1, 64), sinusoids added
for layer in model.layers:
    x = layer(x).output
logits = model.out(model.norm(x)[:, -1])  # (5, 8): read at the last token
assert_close(logits, model(to_device(tokens)))

# %% tags=["proof"]
ours = (count, kind) == (8, "window and global")
assert quick() or not ours or 0.3 < right < 0.9

# %%
arena_figures.through_one_token()

# %% [markdown]
r"""
Four pairs are learned; of 8 half are answered, of 16 a fifth. One vector holds them all, a **bottleneck** (or 1,200 steps are too few, as in 01b). Full attention looks at the pair itself.

## 3 · Other keys

The **Linformer** (2020) mixes $n$ keys down to $r$, and values likewise. The matrices $E$ and $F$, $(r, n)$, are learned:

$$\text{output} = \text{attend}(Q,\ E K,\ F V)$$

Keys 0, 0, 4, 4 have values 10, 20, 30, 40. $E$ and $F$ take the mean of the first two and of the last two: keys 0, 4, values 15, 35. Nothing is lost: a group's keys are equal.
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
Exact is «30», the mean of 20 and 40; both mixed keys are 2, so it gets «25». This **low rank** ($r$ rows for $n$) bets that like keys stand where $E$ mixes them.

A mixture holds later tokens, too, so no mask makes it causal. $E$ has a column for each place, so no text may be longer than in training.

**"What is linear in $n$ is cheaper."** Mixing takes $2 r n d$ multiplications, attention to the mixtures as many again; all pairs take $2 n^2 d$, less while $n < 2r$. The ratio at $r = 256$:
"""

# %%
for n in (256, 512, 4096):
    x, mix = torch.zeros(n, 64), torch.zeros(256, n)
    exact = operations(lambda x=x: attend(x, x, x))
    low = operations(lambda x=x, mix=mix: attend(x, mix @ x, mix @ x))
    print(f"{n:5,} tokens: {low / exact:.2f}")

# %% [markdown]
r"""
Even at 512, an eighth at 4,096.

## 4 · Another score

Linear attention needs weights $\phi(q) \cdot \phi(k)$. The features of 08c, elu + 1, gave others than softmax's. Is there a $\phi$ with $\phi(q) \cdot \phi(k) = e^{q \cdot k}$? On average. Draw a direction $w$ from a standard normal distribution:

$$\mathbb{E}_w\!\left[\, e^{w \cdot q - |q|^2/2} \cdot e^{w \cdot k - |k|^2/2} \,\right] = e^{q \cdot k}$$

For single numbers: $\mathbb{E}[e^{a w}] = e^{a^2/2}$, and $a = q + k$ leaves $(q + k)^2/2 - q^2/2 - k^2/2 = q k$. With $q = k = 1$ we want $e = 2.72$: $w = 0$ gives $e^{-1} = 0.37$, $w = 1$ gives $2.72$, $w = 2$ gives $e^3 = 20.1$. Rare large draws carry the mean.

The **Performer** (2020) draws $m$ directions, so a token has $m$ **random features**. (`attend` divides scores by $\sqrt d$, so each side by $d^{1/4}$.)
"""

# %% [markdown] tags=["exercise:random_features"]
# Write them: with $y = x / d^{1/4}$, the feature of each direction is $e^{w \cdot y - |y|^2/2} / \sqrt m$.

# %%
features = yours("random_features")
_ = torch.manual_seed(0)
q, k, v = torch.randn(3, 256, 16)
phi = RandomFeatures(16, 64)  # the library's, its directions drawn
assert_close(features(q, phi.directions), phi(q))


def log_products(query, key):
    return (phi(query) @ phi(key).mT).log()


by_score = attend(q, k, v, score=log_products).output  # as in 08c
# attend_linear: the same sums, brackets moved
assert_close(by_score, attend_linear(q, k, v, phi=phi))

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
An error of 1 is as bad as zeros. At size «0.25» it works; at size 1 a draw is worse, even than elu + 1. **"Unbiased, so right on average."** Each product is. The output is a ratio of two sums, and ratios are not: over 1 and 3 the mean of $1/x$ is 0.67, not 0.5.

This bet is on small queries and keys. Our layers start at size 1, `nn.Linear` at $1/\sqrt 3 = 0.58$, where more features help ([evidence](evidence/11_efficient_attention_evidence.ipynb)).

## 5 · Our own arena

The same network with full, window, linear, low-rank and random-feature attention on four tasks of 33 to 128 tokens: **pairs**, now 32; **digits** on a canvas of 10 by 10, pixel by pixel; **text**: from which of four packages' documentation is this passage? **listops**: `[MAX 4 [MIN 2 3 ] 1 ]` is 4. Radius 8, rank 16, 64 features; three seeds, each kind at its best learning rate.
"""

# %%
arena_figures.bars()

# %% [markdown]
r"""
**pairs** needs one token of many: full attention, 97 to 98 %. Low rank guesses: it mixes before the question is known. The window's question reaches 2 · 8 of the 32 pairs, and learns less. **digits**: low rank, 86 to 89. It alone has weights for each place; that may be why. **text**: a few tell-tale words will do, so the window keeps up. **listops** separates nobody.
"""

# %%
for task in (None, *arena_figures.TASKS):
    winner, best = next(iter(arena_figures.without(task).items()))
    print(f"without {task or '-':8} {winner:9} {best:.2f}")

# %% [markdown]
r"""
Only leaving out pairs changes the winner: low rank. And speed? At 4,096 tokens the cheap four train 7 to 15 times as fast ([evidence](evidence/11_efficient_attention_evidence.ipynb)); on the 33 of pairs none is faster.

## In real work

Today's models took windows, in turn with full layers (Gemma 3, gpt-oss), gated linear attention in three of four layers (Qwen3-Next, Kimi Linear), or a learned choice of keys (DeepSeek-V3.2). Global tokens: encoders of 2020, rarely since. Mixed keys, random features: hardly any. Nearly all also use exact speed-ups: [11b](11b_exact_and_fast.ipynb).

The bug that people meet: where filler stands in front, token 0 is filler.
"""

# %%
x = torch.randn(2, 1, 8, 16)  # (b, h, n, d); the second text has 5 tokens
real = torch.arange(8) >= torch.tensor([0, 3])[:, None]  # filler in front
may = mask_of(8, 1, 1) & real[:, None, None]  # (2, 1, 8, 8)
print("last token sees:", may[:, 0, -1].sum(-1).tolist())

is_first = F.one_hot(real.int().argmax(-1), 8).bool()[:, None]  # (2, 1, 8)
near = window(8, 1) | is_first[..., None] | is_first[..., None, :]
repaired = near & real[:, None, None]
print("repaired:", repaired[:, 0, -1].sum(-1).tolist())
by_torch = F.scaled_dot_product_attention(x, x, x, attn_mask=repaired)
assert_close(by_torch, attend(x, x, x, mask=repaired).output)

# %% [markdown]
r"""
The second text had lost its global token, without an error.

## The ranking once more

BigBird has the best mean of five tasks; of four, the Transformer or Sparse may have it. Each kind is a bet: that far tokens fit through one vector, that like keys stand together, that queries and keys are short.

**To remember.** Who chooses the tasks chooses the winner.

- Attention is $n/(n + 6d)$ of a layer's multiplications.
- Global tokens reach all, through few vectors.
- Mixed keys: neither told apart, nor causal, nor for longer texts.
- Random features: right on average in the product, not in the output.

**Sources.** Tay et al. 2021 (arXiv:2011.04006); Beltagy et al. 2020 (arXiv:2004.05150); Zaheer et al. 2020 (arXiv:2007.14062); Wang et al. 2020 (arXiv:2006.04768); Choromanski et al. 2021 (arXiv:2009.14794). Proofs: [evidence](evidence/11_efficient_attention_evidence.ipynb).

**Next**: [11b · Exact and fast](11b_exact_and_fast.ipynb): can softmax be computed without all scores?
"""
