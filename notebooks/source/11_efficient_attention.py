# %% [markdown]
r"""
# 11 · Efficient attention: what next?

**The question.** Attention compares every token with every token. Ten times the text is a hundred times the work. Dozens of cheaper forms have been proposed. What do they give up? And is there anything that is cheaper and gives up nothing?

**After this lesson you can**

- say from which length on attention, and not the rest of the layer, is what costs;
- place a new "efficient" attention on a map of the ideas, and name what it gives up;
- build three of them, `attend` with another mask, with other keys, with another score, and measure their errors;
- read a benchmark of them with a critical eye, since you have run a small one;
- compute softmax in pieces, by hand, and explain with it how a GPU's fast kernel and a ring of machines work;
- work out what fits: the cache of a language model, a billion tokens, and how many machines that takes.

**Time** about 130 minutes; a good place to stop is before section 6. **You need** lessons [04](04_multi_head.ipynb), [08c](08c_linear.ipynb) and [09](09_truncated_attention.ipynb), and for section 7 the cache of [06c](06c_writing.ipynb) and the GPT of [06e](06e_gpt.ipynb).
**Exercises**: [exercises/11_efficient_attention](exercises/11_efficient_attention.ipynb).
"""

# %%
from statistics import fmean, median

import torch
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.blocks import EncoderLayer
from lesson_lib.chapters.c11_efficient_attention import figures
from lesson_lib.chapters.c11_efficient_attention.experiments import arena
from lesson_lib.claims import claim, verdict
from lesson_lib.efficient import LowRank, Partial, RandomFeatures, attend_tiles, merge
from lesson_lib.experiments import devices, results
from lesson_lib.heads import Cache, MultiHeadAttention
from lesson_lib.linear import attend_linear
from lesson_lib.masks import causal, window
from lesson_lib.measure import (
    cpu_seconds,
    growth_exponent,
    operations,
    peak_mib,
    sensitivity,
)

_ = torch.manual_seed(0)

# %% [markdown]
r"""
> **Predict first.** A layer of the original Transformer: width 512, 8 heads, a feed-forward network of 2,048. It reads 512 tokens. What share of its multiplications is spent on comparing tokens and mixing values, and what on the rest (projections, feed-forward)?
>
> <details><summary>Answer</summary>
> One seventh on attention proper, six sevenths on the rest. At this length the famous square is not what costs. Section 1 counts it, and finds where that turns.
> </details>

## 1 · When is attention what costs?

One layer, $n$ tokens, width $d$. Comparing all pairs takes $n^2 d$ multiplications, mixing the values as many again. The four projections take $4 n d^2$, a feed-forward network of width $4d$ takes $8 n d^2$:

$$\text{share of attention} = \frac{2 n^2 d}{2 n^2 d + 12\, n d^2} = \frac{n}{n + 6d}$$

So attention is half of the work at $n = 6d$: 3,072 tokens, for a width of 512. Do not trust the formula; count what torch runs:
"""

# %%
layer = EncoderLayer(512, 8, 2048, dropout=0.0).eval()
shares = {}
with torch.no_grad():
    for n in (512, 3072, 8192):
        x, q = torch.zeros(1, n, 512), torch.zeros(1, 8, n, 64)
        all_pairs = operations(lambda q=q: attend(q, q, q, weights=False))
        shares[n] = all_pairs / operations(lambda x=x: layer(x))
        print(f"{n:5,} tokens: attention is {shares[n]:.3f} of the multiplications")

# %%
verdict("at n = 6d, half of them", shares[3072] == 1 / 2)
verdict("at 512 tokens, one seventh", abs(shares[512] - 1 / 7) < 1e-12)
for n in (3072, 100_000):
    print(
        f"{n:7,} tokens: share {n / (n + 6 * 512):.2f}, table {8 * n * n * 4 / 2**20:9,.0f} MiB"
    )

# %% [markdown]
r"""
Two warnings. A multiplication is not a second: the products inside attention run at another speed than the large ones outside it (part 08b measured where the clocks cross). And the *memory* of the table grows with $n^2$, too, unless somebody avoids it: 8 heads at 3,072 tokens hold 288 MiB of weights, and at 100,000 tokens 298 GiB.

So for a sentence there is nothing to gain. At 8,192 tokens attention is 0.73 of the multiplications; at the 100,000 of a book, 0.97. That is where all the following ideas live.

### A map

By 2020 so many forms had been proposed that a survey was needed to sort them (Tay and others, 2020). This map follows its idea. The numbers in it name the lessons of this course in which a form runs:
"""

# %%
figures.family_map()

# %% [markdown]
r"""
Read it by columns. The left one never computes most scores. The middle one lets a few stand for all: a few tokens, a few mixed keys, a few features. Both give something up, and the last line of each box says what. The right one compares every pair. Its upper box gives up nothing: the *same numbers* in another order. Its lower one gives up that each head has keys of its own. Grey boxes do not run in this course. Sections 2 to 5 take the left and the middle, sections 6 to 8 the right; windows are in lesson [09](09_truncated_attention.ipynb), known edges in [10a](10a_graph.ipynb), linear attention in [08c](08c_linear.ipynb).

## 2 · Look at fewer pairs, and let a few see everything

A window (lesson 09) is cheap, and blind beyond its reach. The usual repair: a few **global tokens**, which see everything, and which everything sees. Longformer and BigBird, both of 2020, have them (BigBird adds pairs drawn at random). It is `attend` with another mask:
"""


# %%
def with_global(n, radius, n_global):
    """A window, and the first `n_global` tokens that see all and are seen by all."""
    mask = window(n, radius)
    mask[:, :n_global] = True
    mask[:n_global] = True
    return mask


masks = {
    "all pairs": torch.ones(32, 32, dtype=torch.bool),
    "window": window(32, 2),
    "window and 2 global tokens": with_global(32, 2, 2),
}
figures.seen_patterns(masks)

# %% [markdown]
r"""
> **Predict.** 200 tokens, radius 2, one global token, two layers. From token 199, how far back does an output hear? And without the global token?
>
> <details><summary>Answer</summary>
> With it: everything. In the first layer the global token hears all; in the second, all hear the global token. Without it, 2 · 2 = 4 tokens back, 5 with itself.
> </details>
"""


# %%
def hears(mask, layers=2):
    """How many of the tokens the last output of a stack of attentions depends on."""
    n = len(mask)
    x = torch.randn(n, 4, dtype=torch.double)

    def stack(x):
        for _ in range(layers):
            x = x + attend(x, x, x, mask=mask).output
        return x

    return int((sensitivity(stack, x)[-1] > 0).sum())


print("window alone:", hears(window(200, 2)), "tokens")
print("and one global token:", hears(with_global(200, 2, 1)), "of 200 tokens")
cells = {name: int(mask.sum()) for name, mask in masks.items()}
print("pairs looked at, of 32 tokens:", cells)

# %% [markdown]
r"""
All 200, for two more pairs per token. (In the picture, of 1,024 pairs the window looks at 154, with two global tokens at 268.) But think of what passes through one such token: whatever 199 others have to say, in one vector. It is a bottleneck, as the fixed vector of lesson 01 was. (And our mask is drawn over the full table, so it saves nothing yet. A fast form needs blocks, as `attend_window` has them.)

## 3 · Fewer keys: low rank

Must there be a key for each token? The **Linformer** (2020) mixes $n$ keys down to $k$ of them, and values likewise, by matrices $E$ and $F$ of $k \times n$ numbers that are learned:

$$\mathrm{out} = \mathrm{attend}(Q,\; E K,\; F V)$$

The table is $n \times k$. In the course's one function, only the arguments differ:
"""


# %%
def fewer_keys(query, key, value, E, F):
    """Attention to mixtures of the keys."""
    return attend(query, E @ key, F @ value).output


q, k, v = torch.randn(3, 64, 8)
by_library = LowRank(64, 16)
by_hand = fewer_keys(q, k, v, by_library.mix_keys, by_library.mix_values)
assert_close(by_hand, by_library(q, k, v))
assert_close(fewer_keys(q, k, v, torch.eye(64), torch.eye(64)), attend(q, k, v).output)
print("with E = F = the identity it is attend itself")

# %% [markdown]
r"""
> **Predict.** Four keys, 0, 0, 4, 4, and their values 10, 20, 30, 40. $E$ and $F$ both take the mean of the first two and the mean of the last two. For a query of 2: is the output with the two mixtures the exact one? And with the keys 0, 4, 0, 4?
>
> <details><summary>Answer</summary>
> With 0, 0, 4, 4, yes: equal keys get equal weights, so the mean of their values is all that is needed. With 0, 4, 0, 4, no: both mixed keys are 2, and no query can choose any more. (A query of 0 weighs all alike, and would not notice.)
> </details>
"""

# %%
halves = torch.tensor([[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]])
four_values = torch.tensor([[10.0], [20.0], [30.0], [40.0]])
for keys in ([0.0, 0.0, 4.0, 4.0], [0.0, 4.0, 0.0, 4.0]):
    four_keys = torch.tensor(keys)[:, None]
    for asked in (0.0, 2.0):
        one_query = torch.tensor([[asked]])
        exact = attend(one_query, four_keys, four_values).output.item()
        mixed = fewer_keys(one_query, four_keys, four_values, halves, halves).item()
        print(f"keys {keys}, query {asked}: exact {exact:.2f}, mixed {mixed:.2f}")

# %% [markdown]
r"""
With like keys side by side the mixtures give the exact answer, also for a query that chooses. With unlike ones the query has nothing to choose from.

So it is a bet that keys are redundant. Is a table of weights of low rank? Any table is a sum of rank-one tables, one for each singular value above 0; where most are small, they can be dropped, and the $k$ largest make the best table of rank $k$. Here are the singular values of three tables, 256 tokens each: keys drawn at random; keys in eight groups of nearly equal ones; and a sequence that changes slowly, so that neighbours are alike:
"""


# %%
def three_inputs(n=256, d=16):
    """Queries, keys and values: at random, with keys in 8 groups, and changing slowly."""
    noise = torch.randn(3, n, d)
    groups = 1.5 * torch.randn(8, d)
    grouped = groups[torch.randint(8, (n,))] + 0.1 * torch.randn(n, d)
    walk = torch.randn(3, n, d).cumsum(1)
    slow = (walk - walk.mean(1, keepdim=True)) / walk.std(1, keepdim=True)
    return {
        "at random": noise,
        "keys in 8 groups": (noise[0], grouped, noise[2]),
        "changing slowly": slow,
    }


_ = torch.manual_seed(0)
inputs = three_inputs()
spectra = {
    name: torch.linalg.svdvals(attend(*qkv).weights) for name, qkv in inputs.items()
}
figures.spectra(spectra)

# %% [markdown]
r"""
"Ninety percent" in the legend is the number of singular values that hold that share of their squares' sum. Random keys need 36, eight groups 6 (see the fall after the eighth), slow change 4. But the best table is not what mixing keys gives. The best one and two ways to mix, for the slow sequence and for the random one:
"""


# %%
def off(approximate, exact):
    """Length of the error over the length of the exact outputs."""
    return float((approximate - exact).norm() / exact.norm())


def neighbours(rank, n=256):
    """E that takes the mean of n / rank neighbours."""
    E = (torch.arange(rank)[:, None] == torch.arange(n) * rank // n).float()
    return E / E.sum(1, keepdim=True)


# %%
def errors_of(q, k, v, ranks):
    """Errors by rank: the best table, means of neighbours, and mixtures at random."""
    exact = attend(q, k, v)
    U, S, V = torch.linalg.svd(exact.weights)
    best, means, random = [], [], []
    for r in ranks:
        best.append((r, [off((U[:, :r] * S[:r]) @ V[:r] @ v, exact.output)]))
        E = neighbours(r)
        means.append((r, [off(fewer_keys(q, k, v, E, E), exact.output)]))
        draws = [LowRank(256, r)(q, k, v).detach() for _ in range(5)]
        random.append((r, [off(draw, exact.output) for draw in draws]))
    return {"best table": best, "means of neighbours": means, "at random": random}


ranks = (8, 16, 32, 64, 128)
low_rank = {name: errors_of(*qkv, ranks) for name, qkv in inputs.items()}
figures.errors(low_rank["changing slowly"], xlabel="rank", ylabel="relative error")

# %%
figures.errors(low_rank["at random"], xlabel="rank", ylabel="relative error")

# %% [markdown]
r"""
An error of 1 is as bad as answering 0 always (dotted). Where neighbours are alike, their means do: 16 of them in the place of 256 keys are 6 % off. Where keys are random, 64 means of neighbours are still 66 % off, although the best table of rank 64 is 19 % off: that table depends on the queries, and is found by computing the whole one first. And keys in eight groups? Their best table of rank 8 is 8 % off, but means of neighbours are 70 % off even at 64: redundancy alone is not enough, like keys must stand where $E$ mixes them. (The next cell prints these numbers.) And mixtures at random, with which a Linformer starts, are no approximation at these ranks. **It must be trained**; what it can learn is where, in the sequences of its task, like keys stand.

That names what is given up: a mixture has no place, so it cannot be masked; a causal form is lost, since each mixed key holds the future (below, even output 0 hears token 7, the last). And $E$ has a column for each place: no longer text than in training.
"""

# %%
slow_at_16 = dict(low_rank["changing slowly"]["means of neighbours"])[16][0]
random_at_64 = dict(low_rank["at random"]["means of neighbours"])[64][0]
for name, way, rank in (
    ("changing slowly", "means of neighbours", 16), ("at random", "means of neighbours", 64),
    ("at random", "best table", 64), ("keys in 8 groups", "best table", 8),
    ("keys in 8 groups", "means of neighbours", 64),
):  # fmt: skip
    print(f"{name}, {way}, rank {rank}: {dict(low_rank[name][way])[rank][0]:.2f}")
verdict("slow: 16 means, less than 8 % off", slow_at_16 < 0.08)
verdict("random: 64 means, more than 60 % off", random_at_64 > 0.6)

# %%
x = torch.randn(8, 4, dtype=torch.double)
leaky = LowRank(8, 3).double()
moves = sensitivity(lambda x: leaky(x, x, x), x)
print("outputs that hear token 7:", (moves[:, 7] > 0).nonzero()[:, 0].tolist())

# %% [markdown]
r"""
## 4 · Another score: random features

Lesson 08 dropped the exponential: with weights $\phi(q) \cdot \phi(k)$ the products can be re-associated, and the cost grows with $n$. There $\phi$ was elu + 1, and the weights were others than softmax's. Is there a $\phi$ with $\phi(q) \cdot \phi(k) = e^{q \cdot k}$? Not with finitely many features. On *average* there is. Draw a direction $w$ from a normal distribution. Then

$$\mathbb{E}_w\!\left[ e^{w \cdot q - |q|^2/2} \; e^{w \cdot k - |k|^2/2} \right] = e^{q \cdot k}$$

The left factor knows only $q$, the right one only $k$. Draw $m$ directions, and each token has $m$ **random features**; their product is a mean of $m$ draws. That is the **Performer** (2020).

> **Predict.** The mean is right for any q and k. But what does one draw look like, when q and k grow from 0.5 and 1 to 1 and 1.5: is its spread twice as large, five times, twenty times?
>
> <details><summary>Answer</summary>
> Twenty-one times. It grows with the exponential of the square of q + k; the cell below shows it. (The mean itself grows 2.7 times.)
> </details>

**Why it holds**, in one dimension: $w$ has mean 0 and variance 1, and $\mathbb{E}[e^{a w}] = e^{a^2/2}$. With $a = q + k$ the mean is $e^{(q+k)^2/2 - q^2/2 - k^2/2} = e^{qk}$. In $d$ dimensions, coordinate by coordinate.
"""

# %%
_ = torch.manual_seed(0)
w = torch.randn(1_000_000, dtype=torch.double)
for q_number, k_number in ((0.5, 1.0), (1.0, 1.5)):
    draws = (w * (q_number + k_number) - (q_number**2 + k_number**2) / 2).exp()
    right = torch.tensor(q_number * k_number, dtype=torch.double).exp()
    print(
        f"wanted {right:.2f}, mean {draws.mean():.2f}, spread {draws.std():5.1f};",
        end=" ",
    )
    q_and_k = torch.tensor(q_number + k_number, dtype=torch.double)
    print(f"spread by the formula {right * (q_and_k.square().exp() - 1).sqrt():5.1f}")

# %% [markdown]
r"""
Both means of a million draws are right to half a percent. Now look at the spread (standard deviation) of a single draw. By a formula like the one above it is $e^{qk}\sqrt{e^{(q+k)^2} - 1}$: 4.8 and 102. The sum $q + k$ went from 1.5 to 2.5, and the spread became 21 times as large. Our million draws show only 72: the rare huge ones that make up the rest did not come. Keep that.

In the library, `RandomFeatures` is a $\phi$, and attention with it is `attend_linear` of part 08c with another $\phi$. Dividing by $d^{1/4}$ on both sides brings in the score's $\sqrt{d}$; directions are drawn at right angles to each other, as in the paper, which lowers the error. By hand, and then the error of $m$ features, which should fall like $1/\sqrt{m}$:
"""


# %%
def features_by_hand(x, directions):
    """Random features of queries or keys: a column for each direction."""
    m, d = directions.shape
    y = x / d**0.25
    return (y @ directions.T - y.square().sum(-1, keepdim=True) / 2).exp() / m**0.5


phi = RandomFeatures(8, 32)
assert_close(features_by_hand(q, phi.directions), phi(q))


# %%
def feature_errors(length, counts=(16, 64, 256, 1024)):
    """Errors of five draws each; queries and keys have `length` per coordinate."""
    q, k = length * torch.randn(2, 256, 16)
    v = torch.randn(256, 16)
    exact = attend(q, k, v).output
    rows = []
    for m in counts:
        maps = [RandomFeatures(16, m, seed=seed) for seed in range(5)]
        rows.append((m, [off(attend_linear(q, k, v, phi=phi), exact) for phi in maps]))
    return rows, off(attend_linear(q, k, v), exact)


_ = torch.manual_seed(0)
by_features = {
    f"coordinates of size {length}": feature_errors(length)
    for length in (0.25, 0.5, 1.0, 2.0)
}
figures.errors(
    {name: rows for name, (rows, _) in by_features.items()},
    xlabel="features", slope=-0.5,
)  # fmt: skip

# %% [markdown]
r"""
For small queries and keys it works as promised: four times the features, half the error (dashed). For coordinates of size 1, about what projections make of a layer norm's output at the start, it does not in this range: even with 1,024 features, four for each key, the median error is above 1, which is worse than nothing (at size 2 as well). It is still right *on average*; the spread is what kills it, and the spread grows exponentially with $|q + k|^2$, as the two spreads above have shown.

And elu + 1, which does not try to be softmax? Its error with coordinates of size 0.5 is 0.27, at size 1 it is 0.79, without any draws: at size 0.5 as good as some hundred features, at size 1 better than 1,024.
"""

# %%
for name, (_, of_elu) in by_features.items():
    print(f"{name}: elu + 1 is off by {of_elu:.2f}")
small, large = (
    by_features["coordinates of size 0.25"],
    by_features["coordinates of size 1.0"],
)
medians = [median(draws) for _, draws in small[0]]
slope = growth_exponent([16, 64, 256, 1024], medians)
verdict("small: the error falls with a power of about -1/2", -0.6 < slope < -0.4)
verdict("size 1: above 1 with up to 1,024 features",
    min(median(draws) for _, draws in large[0]) > 1)  # fmt: skip
verdict("size 1: elu + 1 is closer than any of them",
    large[1] < min(median(draws) for _, draws in large[0]))  # fmt: skip
middle = by_features["coordinates of size 0.5"]
verdict("size 0.5: elu + 1 lies between 64 and 256 features",
    median(middle[0][2][1]) < middle[1] < median(middle[0][1][1]))  # fmt: skip

# %% [markdown]
r"""
That does not say that a Performer cannot learn. A network that is *trained* with random features need not imitate softmax; it may keep its queries short, or live with other weights. An approximation's error and a model's accuracy are two questions. The second needs a benchmark.
"""

# %% [markdown]
r"""
## 5 · A small arena

The **Long Range Arena** (Tay and others, 2021) made one network read long sequences with many kinds of attention, on the same tasks, among them: expressions in brackets (ListOps), text letter by letter, pictures pixel by pixel, and "are these two dots joined?" (Pathfinder). Its picture of accuracy against speed is the one that our source S3 shows as the future.

Here is a small one. The same classifier, two layers, width 64, and five attentions inside: "full" (all pairs, by torch's compiled kernel, which section 6 explains), a window of radius 8, linear (elu + 1), low rank (16 mixtures), and random features (64 of them). Two of the tasks by an example, and the sizes of all:
"""

# %%
from lesson_lib.chapters.c11_efficient_attention import listops
from lesson_lib.data import recall as letters

generator = torch.Generator("cpu").manual_seed(0)
some = letters.pairs(generator, 1, 6)
print("pairs:    ", letters.pair_text(some.tokens[0]), "->", "ABCDEFGH"[some.answer[0]])
expression = listops.draw(generator.manual_seed(10), 1, 20)
print("listops:  ", listops.text(expression.tokens[0]), "->", int(expression.answer))
for task, facts in arena.TASKS.items():
    print(f"{task:10} {facts.n:4} tokens, {facts.n_classes:2} classes")

# %% [markdown]
r"""
- **pairs**: which letter stands beside the key that is asked for? All pairs but one are noise, and which one counts is known only at the end. In the arena there are 32 pairs, a token each, with keys 0 to 31, and the question.
- **digits**: a digit somewhere on a small canvas, its pixels row by row, in 17 greys.
- **text**: from which of four packages' documentation (numpy, scipy, scikit-learn, networkx) is this passage? Letters of real text that came with your installation; the names that would give it away are masked.
- **listops**: what is `[MAX 4 [MIN 2 3 ] 1 ]`? 4. SM is the sum modulo 10, MED the middle one (of two in the middle, their mean, rounded down); the answer is one of ten digits.
- **connected**: do the two marked ends belong to the same curve? There are always two long curves on the picture, and the marks stand on one or on both.

Two of the kinds on the first task, live:

> **Predict.** "Pairs", full against linear attention, the same steps. Chance is 1 of 8. Which learns it?
>
> <details><summary>Answer</summary>
> Full attention. To pick one pair out of 32 a weight must be nearly 1 at one place and nearly 0 at 31, and softmax can make it so. Weights of elu + 1 are sums of few smooth products; they blur.
> </details>
"""

# %% tags=["nbval-ignore-output"]
learned = {}
for kind in arena.RECIPE["live"]["kinds"]:
    model, _ = arena.train(arena.RECIPE["live"]["task"], kind)
    learned[kind] = arena.accuracy(model, arena.RECIPE["live"]["task"])
    print(f"{kind:8} {learned[kind]:.3f} right")

# %%
verdict("full attention is ahead by more than 20 points",
    learned["full"] > learned["linear"] + 0.2, trained=True)  # fmt: skip

# %% [markdown]
r"""
Chance would be 0.125. Linear attention has learned a part; from seed to seed it differs much. The stored run has all kinds on all tasks, three seeds each; rates were chosen on validation sequences, for each kind and task. The dotted line is who always says the most frequent class:
"""

# %%
stored = results("arena")["rows"]
points = [row for row in stored if row["kind"] == "point"]


def reached(task, kind):
    """Test accuracies of a kind on a task, one for each seed."""
    return [
        r["accuracy"] for r in points if (r["task"], r["attention"]) == (task, kind)
    ]


def guessed(task):
    """Who always says the most frequent class, mean of the test samples."""
    told = [r["accuracy"] for r in stored if r["kind"] == "guess" and r["task"] == task]
    return fmean(told)


tasks = ("pairs", "digits", "text", "listops")
by_kind = {kind: {task: reached(task, kind) for task in tasks} for kind in arena.KINDS}
figures.arena_bars(by_kind, {task: guessed(task) for task in tasks})

# %% [markdown]
r"""
Read it task by task.

- **pairs**: full attention, 97 to 98 of 100. Random features and linear attention get part of it, 29 to 59, and differ much by seed. The window's question sees 8 of the 32 pairs, and it is right in 19 to 20: less than it could be. Low rank guesses: which pair will be asked for is not known when keys are mixed.
- **digits**: the other way round. Low rank is right in 86 to 89 of 100, all others in 54 to 71. On a canvas this small a digit has only nine places to stand, and low rank is the only kind with learned numbers for each place, 6,400 of them. That may be why; we have not taken it apart.
- **text**: 39 to 51 of 100. Low rank is last; the means of the other four lie within 4 points, the window's among them. A few tell-tale words are enough, and their letters stand side by side.
- **listops**: 30 to 40 of 100, all kinds alike, their means within 3 points. At this size the task does not separate the kinds.
- **connected** is left out. After 600 steps full attention, the only kind tried and at one rate, is at chance (0.49 to 0.53), so there was nothing to compare. In the published arena, too, there is a picture task that no kind learned.
"""

# %%
others = [kind for kind in arena.KINDS if kind != "full"]
verdict("pairs: the worst run of full attention is 30 points ahead of any other's best",
    min(reached("pairs", "full"))
    > 0.3 + max(max(reached("pairs", kind)) for kind in others))  # fmt: skip
verdict("digits: the worst run of low rank is ahead of any other's best",
    min(reached("digits", "low rank"))
    > max(max(values["digits"]) for kind, values in by_kind.items() if kind != "low rank"))  # fmt: skip
on_text = {kind: fmean(reached("text", kind)) for kind in by_kind}
ahead = [mean for kind, mean in on_text.items() if kind != "low rank"]
verdict("text: low rank is last, the other means lie within 4 points",
    on_text["low rank"] < min(ahead) and max(ahead) < min(ahead) + 0.04)  # fmt: skip
on_listops = [fmean(reached("listops", kind)) for kind in by_kind]
verdict(
    "listops: all means lie within 4 points", max(on_listops) < min(on_listops) + 0.04
)
verdict("connected: full attention at chance in each seed", all(
    abs(row["accuracy"] - 0.5) < 0.05 for row in stored
    if row.get("task") == "connected" and row["kind"] == "dropped"))  # fmt: skip

# %% [markdown]
r"""
### What does it cost?

The same networks at longer sequences: steps of training per second of processor time, and MiB at the peak, forward and backward, one sequence.
"""

# %%
costs = arena.costs(stored)
print("steps per s, MiB at", *(f"{n:>15,}" for n in arena.RECIPE["cost"]["sizes"]))

# %%
for kind, at in costs.items():
    cells = [f"{steps:7.1f} {mib:7.1f}" for steps, mib in at.values()]
    print(f"{kind:20}", *cells)

# %%
at_length = 4096
figures.arena_plane(
    by_kind,
    {kind: costs[kind][at_length][0] for kind in by_kind},
    {kind: costs[kind][at_length][1] for kind in by_kind},
)

# %% [markdown]
r"""
All of it in one table, means of three seeds, cost at 4,096 tokens:
"""

# %%
print(f"{'':16}", *(f"{task:>8}" for task in tasks), "  steps/s     MiB")
for kind, of_task in by_kind.items():
    right = " ".join(f"{fmean(of_task[task]):8.3f}" for task in tasks)
    print(
        f"{kind:16} {right} {costs[kind][at_length][0]:9.1f} {costs[kind][at_length][1]:7.1f}"
    )

# %% [markdown]
r"""
The picture is the survey's and the arena's kind: accuracy, averaged over the tasks, against steps per second (of processor time) at 4,096 tokens; the circle's area is memory, the bar spans the seeds (linear attention's is long). At 256 tokens the gain is 36 % at most, and random features are slower than full attention. At 4,096 the cheaper ones do 7 to 15 times as many steps. The memory is within a fifth of each other for all but random features (30 to 36 MiB), *because* the compiled kernel never holds the table; with it, full attention takes 1,043 MiB, 35 times as much.

> **Predict.** Full attention has the best mean. Leave one task out of the four. Can the winner change?
>
> <details><summary>Answer</summary>
> Yes: without pairs, low rank wins. Who chooses the tasks chooses the winner. Ask of a benchmark what its tasks need, before you read its ranking.
> </details>
"""

# %%
for left_out in (None, *tasks):
    kept = [task for task in tasks if task != left_out]
    mean_of = {
        kind: fmean(fmean(by_kind[kind][task]) for task in kept) for kind in by_kind
    }
    best = max(mean_of, key=mean_of.get)
    print(
        f"without {left_out or 'none':8} best mean: {best:9} {mean_of[best]:.3f}",
        end="",
    )
    print(f"   (full {mean_of['full']:.3f})")

# %% [markdown]
r"""
What this arena does not show: sequences of thousands of tokens, for which these forms were made; trainings of more than 40 seconds; other sizes of radius, rank and features. With a larger radius the window would see the pairs; with more features the blur would be less. It shows that the answer to "which is best?" begins with "for what?".
"""

# %% [markdown]
r"""
## 6 · The same numbers, in another order

Everything so far gave something up. Now the right column. It begins with an old question: can a softmax be computed without seeing all the scores at once?

### One score at a time

Softmax subtracts the largest score before it takes exponentials, so that nothing overflows. But the largest is known only at the end. The trick: use the largest *so far*, and when a larger one comes, shrink what has been summed by $e^{\text{old} - \text{new}}$.

> **Predict.** Scores ln 1, ln 3, ln 4 with values 10, 20, 40. After the first two: which output, and which sum of exponentials? What is left to do for the third?
>
> <details><summary>Answer</summary>
> After two: (1 · 10 + 3 · 20) / 4 = 17.5, with a sum of 4. The third has 4 as well, so it counts as much as both together: (17.5 + 40) / 2 = 28.75. Nothing else need be remembered of the first two.
> </details>
"""


# %%
def one_at_a_time(scores, values):
    """Softmax of the scores, mixing the values, in one pass."""
    top, total, mixed = torch.tensor(-torch.inf), 0.0, 0.0
    for score, value in zip(scores, values, strict=True):
        new = torch.maximum(top, score)
        shrink, weight = (top - new).exp(), (score - new).exp()
        total = total * shrink + weight
        mixed = mixed * shrink + weight * value
        top = new
        print(f"largest {top:.4f}  sum {total:.4f}  output {mixed / total:.4f}")
    return mixed / total


three_scores = torch.tensor([1.0, 3.0, 4.0]).log()
three_values = torch.tensor([10.0, 20.0, 40.0])
output = one_at_a_time(three_scores, three_values)
assert_close(output, three_scores.softmax(0) @ three_values)

# %% [markdown]
r"""
(The sum is relative to the largest so far: 4/3 in the second line stands for 1 + 3, divided by 3.) That is the **online softmax** (Milakov and Gimelshein 2018). What must be kept for a query does not grow: the largest score, a sum, and a mixed vector.

### A tile at a time

For speed take not one key at a time but a **tile**: 256 queries times 256 keys. The table is never whole; one tile of it exists at a time:
"""

# %%
figures.tile_order(n=16, tile=4, causal=True, step=4)

# %% [markdown]
r"""
Row by row of tiles, from left to right; hatched ones lie in the future of all their queries and are skipped. On the right is what is kept between two tiles. That is the idea of **FlashAttention** (Dao and others, 2022), which writes such a loop for a GPU, where a tile fits into a small, fast memory and the table does not. Ours is in PyTorch. Its heart, here with all queries at once and tiles of keys only:
"""


# %%
def tiles_by_hand(query, key, value, tile):
    """attend, one tile of keys at a time."""
    top = torch.full((len(query), 1), -torch.inf)
    total, mixed = 0.0, 0.0
    for start in range(0, len(key), tile):
        k, v = key[start : start + tile], value[start : start + tile]
        scores = query @ k.T / query.shape[-1] ** 0.5
        new = torch.maximum(top, scores.amax(1, keepdim=True))
        shrink, weights = (top - new).exp(), (scores - new).exp()
        total = total * shrink + weights.sum(1, keepdim=True)
        mixed = mixed * shrink + weights @ v
        top = new
    return mixed / total


_ = torch.manual_seed(0)
q, k, v = torch.randn(3, 100, 8, dtype=torch.float64)
exact = attend(q, k, v).output
for tile in (1, 7, 64, 100):
    assert_close(tiles_by_hand(q, k, v, tile), exact, atol=1e-6, rtol=0)
assert_close(
    attend_tiles(q, k, v, causal=True), attend(q, k, v, mask=causal(100)).output
)
print("tiles of 1, 7, 64 and 100 keys: equal to 1e-6")

# %% [markdown]
r"""
No approximation anywhere; only sums in another order. For the gradient the weights are needed once more. `attend_tiles` keeps the outputs and one number for each query, `log_sum`, the largest score plus the logarithm of the sum, and computes the tiles again when it goes back. What does that do to memory?

> **Predict.** Twice the tokens. What happens to the peak memory of `attend`, with its table, and of the tiles? And to the number of multiplications?
>
> <details><summary>Answer</summary>
> Four times for the table; at most twice for the tiles, since a tile itself does not grow. The multiplications: four times for both. It is the same work.
> </details>
"""


# %%
from lesson_lib.device import on


@on("cpu")
def peaks(n):
    """MiB at the peak of a forward pass: the table, our tiles, torch's fused kernel."""
    q = torch.randn(1, 4, n, 32)
    return {
        "table": peak_mib(lambda: attend(q, q, q)),
        "tiles": peak_mib(lambda: attend_tiles(q, q, q)),
        "fused kernel": peak_mib(lambda: attend(q, q, q, weights=False)),
    }


lengths = (1024, 2048, 4096)
by_length = {n: peaks(n) for n in lengths}
for n, row in by_length.items():
    print(
        f"{n:5,} tokens:", ", ".join(f"{name} {mib:.1f}" for name, mib in row.items())
    )

# %%
powers = {
    name: growth_exponent(lengths, [by_length[n][name] for n in lengths])
    for name in by_length[1024]
}
verdict("the table's memory grows with the square", abs(powers["table"] - 2) < 0.1)
verdict("that of tiles and of the fused kernel does not",
    max(powers["tiles"], powers["fused kernel"]) < 1.1)  # fmt: skip

# %% [markdown]
r"""
Four times each for the table (32.5, 129, 514 MiB); the tiles go from 2.8 to 4.3. The last number of each line is what `attend(weights=False)` has used since lesson 02: torch's **fused kernel**, which is the same algorithm, compiled. So all along you had an attention whose memory grows with $n$; you paid for the table only when you wanted to *see* the weights. From 1,024 tokens on it takes about two thirds of our tiles' time (in the stored run of section 9), and less than the table's, too. (Under a causal mask ours can be ahead: it skips the hatched tiles, and a kernel that is given a mask as a table does not know that it may.)

### Parts can be merged

A tile needs nothing from another one but two things: its output, and the logarithm of its sum of exponentials. Two such **parts** merge into one, in any order. With outputs $o_1, o_2$ and sums $e^{a}, e^{b}$:

$$o = \frac{e^{a}\, o_1 + e^{b}\, o_2}{e^{a} + e^{b}}$$

> **Predict.** One part has output 17.5 and sum 4, the other 40 and sum 4. Merged? And if the second sum is 12?
>
> <details><summary>Answer</summary>
> (17.5 + 40) / 2 = 28.75, as above. With 12 the second counts three times as much: (17.5 + 3 · 40) / 4 = 34.375.
> </details>

In a computer the larger of $a$ and $b$ is subtracted first, as above; a query that saw no key has $a = -\infty$ and counts nothing. `efficient.merge` does it; `Partial` is an output with its logarithm. Section 8 needs it.
"""

# %%
one = Partial(torch.tensor([[17.5]]), torch.tensor([4.0]).log())
for its_sum in (4.0, 12.0):
    other = Partial(torch.tensor([[40.0]]), torch.tensor([its_sum]).log())
    print(f"{merge(one, other).output.item():.3f}")

# %%
two_parts = [
    Partial(
        attend(q, k[rows], v[rows]).output,
        (q @ k[rows].T / 8**0.5).logsumexp(1),
    )
    for rows in (slice(0, 30), slice(30, 100))
]
assert_close(merge(*two_parts).output, exact)
assert_close(merge(*two_parts[::-1]).output, exact)
mean_of_both = (two_parts[0].output + two_parts[1].output) / 2
print("merged: the same. Off by taking the mean of both:", end=" ")
print(f"{off(mean_of_both, exact):.2f}")

# %% [markdown]
r"""
Taking the plain mean is 38 % off: one part holds 30 keys, the other 70, and their sums differ from query to query.

## 7 · Fewer keys to keep

A language model writes token by token, and looks back at the keys and values of all tokens so far: the cache of lesson 06. Nothing is computed twice, but everything is kept, and read again for each new token. In large models that is what fills the machine.

> **Predict.** 32 layers, 32 heads of width 128, numbers of 2 bytes. How many GiB does the cache of one conversation of 32,768 tokens take?
>
> <details><summary>Answer</summary>
> Keys and values: 2 · 32 layers · 32 heads · 128 numbers · 2 bytes = 512 KiB a token. Times 32,768: 16 GiB. For one user.
> </details>

Must each head have its own keys? **Multi-query attention** (Shazeer 2019) keeps one head of keys and values for all query heads. **Grouped-query attention** (Ainslie and others, 2023) is between: groups of query heads share one.
"""

# %%
figures.shared_heads(8, [8, 2, 1])

# %% [markdown]
r"""
In the library it is one argument of the heads that you know, `n_key_heads`. Written by hand: project to fewer heads, then use each of them for a whole group.
"""

# %%
_ = torch.manual_seed(0)
shared = MultiHeadAttention(32, 8, n_key_heads=2)
x = torch.randn(1, 10, 32)
query = shared.w_query(x).unflatten(-1, (8, 4)).transpose(1, 2)
key, value = (
    project(x).unflatten(-1, (2, 4)).transpose(1, 2)
    for project in (shared.w_key, shared.w_value)
)
each_four_times = [heads.repeat_interleave(4, dim=1) for heads in (key, value)]
mixed = attend(query, *each_four_times).output
by_hand = shared.w_output(mixed.transpose(1, 2).flatten(2))
assert_close(by_hand, shared(x, x, x).output)
print("keys kept:", tuple(key.shape), " queries:", tuple(query.shape))

# %% [markdown]
r"""
(`repeat_interleave` gives 0 0 0 0 1 1 1 1: neighbours share. With `repeat`, 0 1 0 1 ..., every query would meet another group's keys, and nothing would tell you.) Now write 300 tokens, one at a time, and measure what the cache holds:
"""


# %%
@torch.no_grad()
def cache_kib(n_key_heads, tokens=300):
    """KiB that a layer's cache holds after writing."""
    layer, cache = MultiHeadAttention(64, 8, n_key_heads=n_key_heads), Cache()
    for new in torch.randn(1, tokens, 64).split(1, dim=1):
        layer(new, new, new, cache=cache, weights=False)
    return sum(kept.nbytes for kept in (cache.key, cache.value)) / 1024


for n_key_heads in (8, 4, 2, 1):
    print(f"{n_key_heads} heads of keys: {cache_kib(n_key_heads):5.1f} KiB")
print("by the formula, 8 heads:", 2 * 8 * 8 * 4 * 300 / 1024)

# %% [markdown]
r"""
And does it save time? Each new token reads all that is kept. One more token behind 1,024 to 4,096 of them; on your GPU, too, or on that of a stored run, if there is one:
"""


# %%
@torch.no_grad()
def next_token(n_key_heads, tokens):
    """Processor seconds for one more token, the cache holding `tokens`."""
    layer, cache = MultiHeadAttention(512, 8, n_key_heads=n_key_heads), Cache()
    layer(*[torch.randn(1, tokens, 512)] * 3, cache=cache, weights=False)
    key, value, new = cache.key, cache.value, torch.randn(1, 1, 512)

    def once():
        cache.key, cache.value = key, value
        layer(new, new, new, cache=cache, weights=False)

    return cpu_seconds(once, repeats=9)


# %% tags=["measured"]
held = (1024, 2048, 4096)
heads_of_keys = {"8 heads of keys": 8, "2 heads of keys": 2, "1 head of keys": 1}
waited = {
    name: [next_token(count, tokens) for tokens in held]
    for name, count in heads_of_keys.items()
}
figures.next_token(held, waited, devices.beside("next token"))

# %%
verdict("4,096 tokens, one head of keys: less than half the time of eight",
    waited["1 head of keys"][-1] < waited["8 heads of keys"][-1] / 2, trained=True)  # fmt: skip

# %% [markdown]
r"""
With one head of keys there is an eighth to read (and for our `Cache`, which copies all it holds when it grows, to copy), and the projections are smaller. The products of queries with keys are as many as before. In a large model, with 2 · layers · heads of keys · width · tokens · 2 bytes, as in the answer above:
"""

# %%
figures.cache_growth(
    32, 128, {"32 heads of keys": 32, "8 (grouped)": 8, "1 (multi-query)": 1},
    tokens=[1024, 8192, 32768, 131072, 1048576],
)  # fmt: skip

# %% [markdown]
r"""
Does it cost quality? It is not an approximation of anything: a model is trained with it from the start. The stored run trains the short GPT of lesson 06, with 4 heads, three seeds each; "wider" has one head of keys, and a feed-forward network widened until the parameters are as many as with four:
"""

# %%
from lesson_lib.chapters.c11_efficient_attention.experiments import shared_keys

shared_rows = results("shared_keys")["rows"]
for (n_key_heads, d_inner), bits in shared_keys.means(shared_rows).items():
    kept = shared_keys.means(shared_rows, "cache_bytes")[n_key_heads, d_inner]
    known = shared_keys.means(shared_rows, "validation_bits")[n_key_heads, d_inner]
    name = f"{n_key_heads} heads of keys" + (", wider" if d_inner > 256 else "")
    print(f"{name:24} bits: test {bits:.3f}, validation {known:.3f};", end=" ")
    print(f"cache {kept / 1024:.0f} KiB")

# %%
of_full, of_shared = (
    [row["bits"] for row in shared_rows
     if row["kind"] == "trained" and (row["n_key_heads"] == 4) == full]
    for full in (True, False)
)  # fmt: skip
verdict("test text: each of the shared ones is behind each of the full ones",
    min(of_shared) > max(of_full))  # fmt: skip
verdict("by less than 3 %", max(of_shared) < 1.03 * fmean(of_full))

# %% [markdown]
r"""
Half of the cache (of a full context of 64 characters) for 1.2 % more bits on the test text, a quarter for 1.5 to 1.6 %; on the validation text 0.2 to 0.4 %, within the spread of the seeds. Widening brings back nothing that stands out. Which of the shared ones is best cannot be told from three seeds.
"""

# %% [markdown]
r"""
## 8 · Many machines

One thing is left that no single machine can give: a sequence that does not fit. Exact attention, all pairs, and nobody holds all keys.

**Ring attention** (Liu and others, 2023) is section 6 with people in the place of tiles. Four of you sit in a circle, each with a quarter of the tokens. Your queries stay with you. Your keys and values you hand to your right-hand neighbour, and get your left-hand neighbour's. First you attend to your own keys; after each hand-over to those that came, and merge:
"""

# %%
figures.ring_rounds(4)

# %% [markdown]
r"""
> **Predict.** With $p$ processes, how many hand-overs until everybody has seen all keys? And what does a process hold at any time?
>
> <details><summary>Answer</summary>
> p − 1. It holds its own queries, keys, values and outputs, the block of keys and values it works with, and the one that is coming: all of them n / p tokens. So memory falls as 1 / p (from two processes on: a single one has no block coming).
> </details>

(In the picture, grey cells were computed in earlier rounds; an arrow is the hand-over after the round.) In one process it can be played with lists. Each "process" is a place in them, and handing over is a turn of the list:
"""


# %%
def part(query, key, value):
    """Attention to some of the keys, ready to be merged."""
    log_sum = (query @ key.mT / query.shape[-1] ** 0.5).logsumexp(-1)
    return Partial(attend(query, key, value).output, log_sum)


def ring_by_hand(query, key, value, processes):
    """All pairs, though no process ever computes with more than one block of keys."""
    queries, keys, values = (x.chunk(processes) for x in (query, key, value))
    have = [part(*own) for own in zip(queries, keys, values, strict=True)]
    for _ in range(processes - 1):
        keys, values = keys[-1:] + keys[:-1], values[-1:] + values[:-1]
        for me in range(processes):
            have[me] = merge(have[me], part(queries[me], keys[me], values[me]))
    return torch.cat([done.output for done in have])


assert_close(ring_by_hand(q, k, v, processes=4), exact)
print("4 processes: the same numbers")

# %% [markdown]
r"""
In earnest, each is a process of its own, with its own memory, here or on another machine; `torch.distributed` carries the blocks, and `ring.attend_ring` does the rest, with gradients. Processes are started by `torchrun`, which comes with PyTorch. Three of them, on your machine, now:
"""

# %% tags=["nbval-ignore-output"]
from lesson_lib.chapters.c11_efficient_attention.experiments import ring

sizes = ("--tokens", "1536", "--causal", "--backward")
ran = ring.torchrun(3, "-m", "lesson_lib", "ring", *sizes, wait_s=180)
print(ran.stdout or ran.stderr[-1000:])

# %%
difference = float(ran.stdout.split("largest difference ")[1].split()[0])
verdict(
    "three processes, causal, with gradients: off by less than 1e-5", difference < 1e-5
)

# %% [markdown]
r"""
"Largest difference" compares with `attend` in one process, outputs and gradients; the 7 MiB are what each process sends: two hand-overs forward, two backward and three of gradients, 1 MiB each. `make ring`, in a terminal, does the same with 1, 2, 3 and 4 processes. The stored run, with 8,192 tokens and four heads of width 64:
"""

# %%
stored_ring = results("ring")["rows"]
all_pairs_only = [row for row in stored_ring if not row["causal"]]
figures.ring_memory([row for row in all_pairs_only if row["tokens"] == 8192])

# %%
by_processes = ring.memory(stored_ring)[8192, False]
for processes, mib in by_processes.items():
    print(f"{processes} processes: {mib:5.1f} MiB in each,", end=" ")
    print(f"{mib / by_processes[1]:.2f} of one")
differences = [row["error"] for row in stored_ring if row.get("error") is not None]
verdict("largest difference over all runs below 1e-5", max(differences) < 1e-5)
verdict("4 processes hold 0.54 to 0.55 of what 2 hold",
    0.54 < by_processes[4] / by_processes[2] < 0.55)  # fmt: skip

# %% [markdown]
r"""
Each dot of the picture is the process that held most. One alone takes 51 MiB, four take 19 each: more than a quarter, since one alone has no second block coming, and since a tile of 3 MiB does not shrink. From two processes to four it is 0.54. (With gradients: 84, 56, 43, 32 MiB.) Seconds are not in the picture: the four shared two processor cores.
"""

# %% [markdown]
r"""
## 9 · On paper: a thousand, a million, a billion tokens

What would it cost to read a library at once? Nobody will run that in a lesson. But costs follow **laws**. Attention to all pairs takes

$$\text{seconds}(n) = a + b\, n + c\, n^2, \qquad \text{memory}(n) = a' + b'\, n \;(+\; c'\, n^2 \text{ with the table})$$

and three numbers can be found from short sequences: the ones with which the law is nearest to what was measured. Seven kinds were measured on one thread (8 heads of width 64, forward only, from 256 tokens on): "table" is `attend` with its weights, "full" the fused kernel, "tiles" `attend_tiles`; the window has 128 tokens to each side, low rank 256 mixtures, and there are 256 random features, all larger than in the arena. The linear kinds have no $c$. The two longest lengths of each kind were kept out of the fit, to see whether a law can be trusted up to four times beyond what it knows:
"""

# %%
from lesson_lib.chapters.c11_efficient_attention.experiments import laws

measured = results("laws")["rows"]
print("MiB: the law's, and the measured")
for kind, at in laws.checked(measured, "mib").items():
    said = "   ".join(
        f"{n:7,} tokens: {law:.1f}, {mib:.1f}" for n, (law, mib) in at.items()
    )
    print(f"{kind:15} {said}")

# %%
from lesson_lib.chapters.c11_efficient_attention import scale_figures

scale_figures.laws_picture(measured, laws.laws(measured, "mib"), of="mib")

# %% [markdown]
r"""
Open marks were held out; the law was fitted to the last three filled ones before them. Full (the fused kernel) and the tiles run in parallel with the linear kinds, below them: memory is no argument against exact attention, once the table is gone. Every prediction for the open marks is right to a percent. Seconds:
"""

# %%
scale_figures.laws_picture(measured, laws.laws(measured, "cpu_s"), of="cpu_s")

# %% [markdown]
r"""
On log scales a power is a slope: all pairs rise twice as steeply. The lines fit less well here. The laws of linear attention and of random features say a quarter to a third too little for the longest sequences: from some size on each token takes longer, and we have not found out why. (A fit to all shorter lengths was worse, so we took the last three; the check is no longer blind.)
"""

# %%
for of, most in (("mib", 1.01), ("cpu_s", 1.6)):
    ratios = [
        law / value
        for at in laws.checked(measured, of).values()
        for law, value in at.values()
    ]
    verdict(f"{of}: every prediction within a factor of {most}",
        max(max(ratios), 1 / min(ratios)) < most)  # fmt: skip

# %% [markdown]
r"""
What the laws say of one machine that has to hold it all, queries, keys and values included:
"""

# %% tags=["nbval-ignore-output"]
at_home = laws.machine_laws(measured)
longest = {kind: max(at) for kind, at in laws.points(measured).items()}
scale_figures.scale_table(at_home, longest=longest)

# %% [markdown]
r"""
Three readings of it. At a **thousand** tokens all fit anywhere, and all are done in milliseconds: take the exact one. At a **million**, exact attention without a table takes 7.7 GiB, and six hours for one layer, where the linear kinds take seconds; the table would take 29 TiB. At a **billion**, nothing fits: queries, keys, values and outputs alone are 7.5 TiB, and linear attention, with its features, takes 13. The square shows in *time*: seven hundred years.

### And how many machines?

A ring shares out the memory, and the work. What a process of `attend_ring` holds can be counted from its code: its own queries, keys and values, the block it works with, the block that comes, and the outputs it merges, eight tensors of its own tokens' size, six if it is alone, and a tile. The stored run of section 8 can check the count:

"""

# %%
held = ring.memory(stored_ring)[8192, False]
for processes, mib in held.items():
    counted_mib = laws.ring_mib(8192, processes, heads=4, width=64)
    print(f"{processes} processes: counted {counted_mib:.1f} MiB, measured {mib:.1f}")

# %% [markdown]
r"""
> **Predict.** A machine with 8 GiB free. A token's queries, 8 heads of width 64 in 4 bytes, take 2 KiB. How many tokens can one process of a ring hold, roughly? So how many machines does a billion tokens need?
>
> <details><summary>Answer</summary>
> Eight tensors: 16 KiB a token. 8 GiB / 16 KiB is 524,288 tokens; a billion tokens need a little more than 1,900 machines.
> </details>
"""

# %%
machines = {
    (n, gib): laws.machines_needed(n, 1024 * gib)
    for n in (10**3, 10**6, 10**9) for gib in (8, 80)
}  # fmt: skip
for (n, gib), count in machines.items():
    print(f"{n:13,} tokens, {gib:2} GiB in each: {count:5,} machines")

# %% [markdown]
r"""
With 1,913 machines of 8 GiB, a billion tokens *fit*. (A million needs two: a ring of one holds six tensors, 11.4 GiB, where the fused kernel alone holds four.) Time is another matter: the tiles of one layer would take 1,134 years on our one thread, seven months when 1,913 share them. A ring takes the wall away that memory is, not the square.

Choose for yourself. *Do:* set 1 million tokens and 8 GiB. Which kinds fit into one machine? *Then:* find the smallest number of machines for which the ring fits. *At last:* a billion tokens: what could one machine do in a day, if it had the memory?
"""

# %%
from lesson_lib.chapters.c11_efficient_attention.scale_explorer import ScaleExplorer

ScaleExplorer(at_home, laws.ring_mib, longest=longest)

# %% [markdown]
r"""
<details><summary>Answers</summary>
Only "full" and "tiles" fit, with 7.7 GiB: the cheaper kinds hold <i>more</i>, 9.5 GiB and up. The ring needs 2. At a billion the four linear kinds would take 1.3 to 8 hours, and 9 to 37 TiB; the others take centuries.
</details>

What the paper does not know: it extrapolates from one thread of one processor, by up to five orders of magnitude; it counts one layer's attention, without projections, gradients or the other layers; it lets machines talk at no cost. It is right about powers and wrong about factors. And it says nothing about whether a model that *can* read a billion tokens finds anything in them.
"""

# %% [markdown]
r"""
## 10 · Claims

Three of our sources end with this lesson's question: S1 calls attention's cost high, S3 its largest problem, S0 says that variants exist to cut it down, for a balance of speed and accuracy. Is cost the main problem? Is it always a trade?
"""

# %% tags=["claim:efficient-1"]
twice = [
    operations(lambda n=n: attend(*[torch.zeros(1, n, 64)] * 3)) for n in (500, 1000)
]
at_256, at_4096 = ({kind: costs[kind][n] for kind in by_kind} for n in (256, 4096))
faster = [at_4096[kind][0] / at_4096["full"][0] for kind in others]
best_other = max(max(by_kind[kind]["pairs"]) for kind in others)
long_queries = torch.randn(3, 300, 16)
claim("efficient-1", {
    "twice the tokens: four times the multiplications": twice[1] == 4 * twice[0],
    "but at width 512 and 512 tokens, six of seven are elsewhere in the layer": abs(
        shares[512] - 1 / 7) < 1e-9,
    "and half of them at 6 d = 3,072 tokens": shares[3072] == 1 / 2,
    "stored, 4,096 tokens: each cheaper kind makes over 5 times the steps": min(faster) > 5,
    "at 256 tokens none makes twice as many": max(
        at_256[kind][0] for kind in others) < 2 * at_256["full"][0],
    "the price, on pairs: 30 points and more, in every seed": min(
        by_kind["full"]["pairs"]) > best_other + 0.3,
    "no price on digits: low rank is ahead of all pairs, in every seed": min(
        by_kind["low rank"]["digits"]) > max(by_kind["full"]["digits"]),
    "memory needs no trade: at 4,096 tokens all pairs take no more than the others":
        at_4096["full"][1] < 1.01 * min(at_4096[kind][1] for kind in others),
    "tile by tile, the numbers are the same": torch.allclose(
        attend_tiles(*long_queries), attend(*long_queries).output, atol=1e-6),
})  # fmt: skip

# %% [markdown]
r"""
## 11 · Three wrong ideas worth having once

**"What is linear in $n$ is faster."** From some length on, and that length differs. Processor time of the stored run:
"""

# %%
ms = {
    kind: {n: 1000 * s for n, s in at.items()}
    for kind, at in laws.points(measured).items()
}
print("milliseconds       256 tokens  1,024 tokens  8,192 tokens")
for kind, at in ms.items():
    print(f"{kind:18}", *(f"{at[n]:11.1f} " for n in (256, 1024, 8192)))
verdict("256 tokens: full is faster than window, low rank and random features",
    ms["full"][256] < min(ms[kind][256] for kind in ("window", "low rank", "random features")))  # fmt: skip
verdict("1,024 tokens: slower than each of them",
    ms["full"][1024] > max(ms[kind][1024] for kind in ("window", "low rank", "random features")))  # fmt: skip

# %% [markdown]
r"""
At 256 tokens full attention (1.9 ms) beats the window, low rank and random features, but not elu + 1 (0.9), whose features cost next to nothing. No wonder: with 256 mixtures of 256 keys nothing is saved yet. At 1,024 all four are ahead. The length depends on their sizes: the arena's small ones (radius 8, rank 16) were ahead at 256 already.

**"FlashAttention is fast because it computes less."** Count the multiplications of tiles and of the table:
"""

# %%
q4 = torch.randn(1, 4, 512, 32)
counted = {
    "table": operations(lambda: attend(q4, q4, q4)),
    "tiles": operations(lambda: attend_tiles(q4, q4, q4)),
    "fused kernel": operations(lambda: attend(q4, q4, q4, weights=False)),
}
for name, count in counted.items():
    print(f"{name:13} {count:11,}")
verdict("all the same", len(set(counted.values())) == 1)

# %% [markdown]
r"""
Equal to the last one in the matrix products. The rescaling of the tiles comes on top, and for gradients they compute their weights twice. A fused kernel is fast because numbers are *moved* less, between a small fast memory and a large slow one; our tiles, in PyTorch, are no faster than the table (37 and 35 ms at 1,024 tokens).

**"Four machines make it cheaper."** They make it possible, and sooner done. The work is the same, and the keys' travel is added:
"""

# %%
q, k, v = torch.randn(3, 240, 8)
alone = operations(lambda: attend(q, k, v))
for processes in (2, 4, 8):
    together = operations(lambda p=processes: ring_by_hand(q, k, v, p))
    sent = (processes - 1) * (k.nbytes + v.nbytes) / 1024
    print(f"{processes} processes: {together / alone:.2f} times the products,", end=" ")
    print(f"by the formula {sent:.0f} KiB sent in all")
    assert together == 1.5 * alone

# %% [markdown]
r"""
(Ours by hand computes scores twice, once for the output and once for the sum: half as many products again. `attend_ring` does not.) Each process sends its block $p - 1$ times, so what is sent in all grows with the number of processes. While it computes it can send: with enough tokens for each process the sending is hidden behind the computing, with too few it is all that one waits for.

## 12 · Exercises

Open [exercises/11_efficient_attention](exercises/11_efficient_attention.ipynb). If you do only one, merge two parts.

## 13 · Summary

- Attention is $n / (n + 6d)$ of a layer's multiplications: half at $n = 6d$. For short texts there is nothing to gain.
- Cheaper forms look at fewer pairs (windows, global tokens), at fewer keys (low rank), or with another score (features). Each gives up something that can be named: far pairs; masks and longer texts; sharp weights.
- Low rank is good only where it mixes like keys; random features are right on average, and their spread grows exponentially with the squared length of queries plus keys.
- In our small arena full attention is far ahead where one token must be picked out of many, low rank on digits, and on text four of five are alike. Leave out the pairs, and the winner changes.
- Online softmax computes the same numbers tile by tile: memory grows with $n$, work with $n^2$. FlashAttention and torch's fused kernel are that. The outputs of parts merge through their sums of exponentials.
- Heads that share keys have a smaller cache, a quarter in our GPT of four heads with one head of keys, which cost it 1.6 % on the test text and hardly anything on the validation text.
- A ring of processes holds what one cannot: exact, memory as 1 / p from two processes on, the work shared, not saved.
- On paper: a million tokens fit into one machine and take hours a layer; a billion need 1,900 machines of 8 GiB and seven months, on our slow threads. How to be both fast and good is still open.

**Sources.** Tay, Dehghani, Bahri & Metzler 2020 (arXiv:2009.06732, the survey); Tay and others 2021 (arXiv:2011.04006, Long Range Arena); Zaheer and others 2020 (arXiv:2007.14062, BigBird); Beltagy, Peters & Cohan 2020 (arXiv:2004.05150, Longformer); Wang and others 2020 (arXiv:2006.04768, Linformer); Katharopoulos and others 2020 (arXiv:2006.16236, linear attention); Choromanski and others 2021 (arXiv:2009.14794, Performer);
Nangia & Bowman 2018 (arXiv:1804.06028, ListOps); Milakov & Gimelshein 2018 (arXiv:1805.02867, online softmax); Dao and others 2022 (arXiv:2205.14135, FlashAttention); Shazeer 2019 (arXiv:1911.02150, multi-query attention); Ainslie and others 2023 (arXiv:2305.13245, grouped-query attention); Liu, Zaharia & Abbeel 2023 (arXiv:2310.01889, ring attention); the course's own sources S0, S1 and S3.

**Next**: lesson [12](12_claims.ipynb) puts all claims of the sources on one page, with what this course found.
"""
