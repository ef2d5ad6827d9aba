# /// ideas
# [ranking]
# says = "who chooses the tasks chooses the winner: 31 choices of five tasks have seven winners"
# motive = "Is it the best"
# shown = "winners = Counter"
# action = 'predict("who_can_win")'
#
# [share]
# says = "scores and mixture take n / (n + 6 d) of a layer's multiplications, half at n = 6 d"
# motive = "who needs a cheaper one"
# shown = "\\frac{n}{n + 6d}"
# action = 'predict("share_of_scores")'
#
# [global]
# says = "a global token sees all and is seen by all"
# motive = "blind beyond its reach"
# shown = "figures.seen_patterns"
# action = "with_global"
#
# [bottleneck]
# says = "what goes through one token was mixed before the question was known: a bottleneck"
# motive = "How much fits through one vector"
# shown = "class PairReader"
# action = 'predict("through_one_token")'
#
# [who_asks]
# says = "make the token global that asks: it chooses by itself"
# motive = "The first pair cannot know"
# shown = "which=16"
# action = 'predict("the_question_is_global")'
#
# [low_rank]
# says = "low rank: attend(Q, E K, F V); nothing is lost where the keys that E mixes are equal"
# motive = "What if there were fewer keys"
# shown = "halves @ keys"
# action = 'predict("mixed_keys")'
#
# [mixtures]
# says = "a learned E mixes all positions: no mask makes it causal, and a longer text has no column"
# motive = "What else is given up"
# shown = "has no column"
# action = "leaky_mixtures"
#
# [crossing]
# says = "linear in n says how a cost grows, not how large it is: low rank costs 2r / n of all pairs"
# motive = "And is it cheaper"
# shown = "low / exact"
# action = "From which n"
#
# [random]
# says = "random features: products that are e^{q·k} on average"
# motive = "Is there a"
# shown = "products.mean()"
# action = "random_features"
#
# [rare]
# says = "half of that average comes from draws beyond |q + k|; for long vectors they are too rare"
# motive = "Where does the average come from"
# shown = "beyond = w > 2"
# action = 'predict("more_features")'
#
# [padding]
# says = "with padding in front token 0 is padding: count real tokens"
# motive = "Texts of a batch are padded"
# shown = "carried.window_and_global"
# action = "How many keys should"
# ///

# %% [markdown]
r"""
{title}

In 2021 eleven kinds of attention met on five tasks with long inputs: the **Long Range Arena**. "Transformer" is the plain one; the other ten do not compare all pairs of tokens. One has the best mean. Is it the best?

**Afterwards you can** read such a ranking with care; say what a cheaper attention gives up; build three of them: with another mask, other keys, another score.

{about}

<details><summary>中文摘要 · Chinese</summary>
2021 年有人让十一种注意力在五个任务上比赛:换一换任务,赢家就变。这一课亲手做三种更便宜的注意力(全局词元、低秩、随机特征),各自说出它放弃了什么。
</details>

{sources}
"""

# %% tags=["imports"]
from collections import Counter
from statistics import median

import torch
import torch.nn.functional as F
from torch import nn

from lesson_lib.attention import attend
from lesson_lib.blocks import EncoderLayer
from lesson_lib.chapters.c11_efficient_attention import figures, lra
from lesson_lib.chapters.c11_efficient_attention.experiments import arena
from lesson_lib.course import *
from lesson_lib.device import quick, to_device
from lesson_lib.masks import window
from lesson_lib.measure import operations, sensitivity
from lesson_lib.training import fit

_ = torch.manual_seed(0)
warm_up()

# %%
left_out = []  # yours to change: ["Pathfinder"], for example
kept = [task for task in lra.TASKS if task not in left_out]
print(" " * 17, *(f"{task[:7]:>7}" for task in lra.TASKS))
for kind, mean in lra.means(kept).items():  # the best mean first
    of_task = " ".join(f"{share:7.2f}" for share in lra.RIGHT[kind])
    print(f"{kind:11} {mean:5.2f} {of_task}")

# %% [markdown]
r"""
Behind each kind stand its mean and the paper's test accuracies in %, one run each. A guess has 10, 50, 50, 10, 50. ListOps: an expression's value. Text: does a film review praise, letter by letter? Retrieval: are two papers related? Image: what is on a photograph, pixel by pixel? Pathfinder: does a line join two dots? Inputs have 1,000 to 4,000 tokens. (A sixth task no kind learned.) The ten spare comparisons in different ways; we shall build three.

BigBird is first. ListOps moves the mean most. Take tasks out, in the cell above.
"""

# %%
predict("who_can_win")

# %%
winners = Counter()
for some in lra.choices():  # each choice of tasks
    means = lra.means(some)
    winners[max(means, key=means.get)] += 1
for kind, times in winners.most_common():
    print(f"{kind:11} {times:2} of 31")

# %% [markdown]
r"""
Seven of eleven win. BigBird wins «12» choices, but no single task. Leave out Pathfinder, and the plain Transformer leads; leave out ListOps, and Sparse does. Both lead by less than 0.1, which says little with one run each. **Who chooses the tasks chooses the winner.**

So do not ask which is best; ask what each gives up. But first: who needs a cheaper one?

## 1 · When is attention what costs?
"""

# %%
predict("share_of_scores")

# %% [markdown]
r"""
Take one layer, $n$ tokens, width $d$. Scores and mixture take $2 n^2 d$ multiplications. The four projections take $4 n d^2$, and a feed-forward network of width $4d$ takes $8 n d^2$:

$$\text{share of attention} = \frac{2 n^2 d}{2 n^2 d + 12\, n d^2} = \frac{n}{n + 6d}$$

At $n = d$ that is $1/7$, and it is a half at $n = 6d$: 3,072 tokens for a width of 512. For sentences there is little to gain, for books nearly all.

## 2 · Another mask

A window (09) is blind beyond its reach. Longformer and BigBird (2020) add **global tokens**, which see all and are seen by all.
"""

# %% [markdown] tags=["exercise:with_global"]
# Write the mask: a window, and the first `n_global` tokens global.

# %%
mask_of = yours("with_global")
masks = {"window": window(24, 2), "one global": mask_of(24, 2, 1)}
figures.seen_patterns(masks)

# %% [markdown]
r"""
One global token adds a row and a column: here 42 pairs, $2(n - 3)$, not $n^2$. What do these pairs buy? Count the tokens on which the last output of two layers depends. (`sensitivity` gives the size of each derivative.)
"""


# %%
def two_layers(x, mask):
    for _ in range(2):
        x = x + attend(x, x, x, mask=mask).output
    return x


x = torch.randn(200, 4, dtype=torch.double)
for name, mask in {"window": window(200, 2), "one global": mask_of(200, 2, 1)}.items():
    reached = sensitivity(lambda x, mask=mask: two_layers(x, mask), x)[-1] > 0
    print(f"{name:10}: the last output hears {int(reached.sum())} of 200 tokens")

# %% [markdown]
r"""
The window alone lets «5» tokens through, and with one global token it is all «200». The global token hears everybody in layer 1, and tells everybody in layer 2. (A mask alone saves nothing; 09's blocks skip pairs.)

But all of it passes through one vector. How much fits through one vector? The task **pairs**: which letter stood beside this key?
"""

# %%
count = 16
tokens, answer = arena.pairs(torch.Generator().manual_seed(0), 1, count)
*pairs, question = tokens[0].tolist()
print(*(f"{pair // 8}={'ABCDEFGH'[pair % 8]}" for pair in pairs))
print(f"{question - 8 * count}? ->", "ABCDEFGH"[answer[0]])

# %% [markdown]
r"""
Each pair is one token (its number is 8 times the key plus the letter), and so is the question at the end, where the answer is read. Each has a row of its own in the embedding. The network has two layers; the radius is 0, so a token sees itself and the global token alone:
"""


# %%
class PairReader(nn.Module):
    def __init__(self, which):  # the position of the global token
        super().__init__()
        self.mask = window(count + 1, 0)
        self.mask[:, which] = self.mask[which] = True
        self.embed = nn.Embedding(9 * count, 64)  # 8 letters a key; questions
        options = {"dropout": 0.0, "norm_first": True}
        # 06a's layers: width 64, four heads, inner width 128
        layers = [EncoderLayer(64, 4, 128, **options) for _ in range(2)]
        self.layers = nn.ModuleList(layers)
        self.read = nn.Linear(64, 8)

    def forward(self, tokens):  # (b, 17)
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x, mask=self.mask.to(x.device)).output
        return self.read(x[:, -1])


# %%
def share_right_of(which):
    _ = torch.manual_seed(0)
    model = to_device(PairReader(which))
    fit(
        model,
        lambda generator: arena.pairs(generator, 32, count),
        lambda model, batch: F.cross_entropy(model(batch.tokens), batch.answer),
        steps=1200,
        lr=0.003,
    )
    new = to_device(arena.pairs(torch.Generator().manual_seed(7), 2000, count))
    with torch.no_grad():
        return (model(new.tokens).argmax(-1) == new.answer).float().mean().item()


# %%
predict("through_one_token")

# %% tags=["nbval-ignore-output"]
first_pair = share_right_of(which=0)
print(f"the first pair is global: {first_pair:.2f} right")

# %% tags=["proof"]
assert quick() or first_pair < 0.35

# %% [markdown]
r"""
A guess has 0.125. The global token meets the 16 pairs in layer 1 with its own query. In layer 2 the question finds all of them in one vector, a **bottleneck**. With 4 pairs such a network is right in ‹0.98› and more ([evidence](evidence/11_efficient_attention_evidence.ipynb)). This training did not keep sixteen apart.

The first pair cannot know what will be asked. So let the question itself be global, and no pair. The mask opens as many cells as before.
"""

# %%
predict("the_question_is_global")

# %% tags=["nbval-ignore-output"]
the_question = share_right_of(which=16)
print(f"the question is global: {the_question:.2f} right")

# %% tags=["proof"]
assert quick() or the_question > 0.9

# %% [markdown]
r"""
Only the position of the global token has changed, and the network answers: now the question meets each pair in layer 1. **Make the token global that asks**: it chooses by its own query. The Longformer does so when it answers questions about a text.

## 3 · Other keys

What if there were fewer keys? The **Linformer** (2020) mixes $n$ keys down to $r$, and values likewise. The matrices $E$ and $F$, $(r, n)$, are learned:

$$\text{output} = \text{attend}(Q,\ E K,\ F V)$$

Take keys 0, 0, 4, 4 with values 10, 20, 30, 40. $E$ and $F$ take the mean of the first two and of the last two: keys 0, 4, values 15, 35. Nothing is lost, because the keys of a group are equal.
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
In the first row both give «34.99» (not 35: the far keys keep a weight of $e^{-8}$). In the second, exact is «30», the mean of 20 and 40. But both mixed keys are 2, so the query cannot choose, and gets «25». The weights times $F$ are a table over all n values whose rank is $r$ at most, hence the name **low rank**. $E$ chooses by position, not by content.

What else is given up? A learned $E$ has no zeros, so each mixture holds all positions, later ones too. A mask can hide a mixture, but not a part of it. So no mask makes the layer causal (exercise `leaky_mixtures`). And for a token behind the longest text of training, $E$ has no column.

And is it cheaper? **"What is linear in $n$ is cheaper."** Mixing keys and values takes $2 r n d$ multiplications. Attention to the mixtures takes as many again. All pairs take $2 n^2 d$. From which n on does $r = 256$ pay?
"""

# %%
for n in (256, 512, 4096):
    x, mix = torch.zeros(n, 64), torch.zeros(256, n)
    exact = operations(lambda x=x: attend(x, x, x))
    low = operations(lambda x=x, mix=mix: attend(x, mix @ x, mix @ x))
    print(f"{n:5,} tokens: {low / exact:.2f} times as many")

# %% [markdown]
r"""
The ratio is $2r/n$. At 512 tokens both take as many multiplications, below that low rank takes more.

## 4 · Another score

Linear attention (08c) needs weights $\phi(q) \cdot \phi(k)$, since then the sum over keys can be made once. Is there a $\phi$ with $\phi(q) \cdot \phi(k) = e^{q \cdot k}$, softmax's own? On average, yes. Draw a random number $w$ from a standard normal distribution. The mean of $e^{aw}$ is $e^{a^2/2}$. With $a = q + k$:

$$\text{mean of } e^{wq - q^2/2} \cdot e^{wk - k^2/2} \;=\; e^{(q + k)^2/2 - q^2/2 - k^2/2} \;=\; e^{qk}$$

For vectors each number of $w$ is drawn independently, so their factors multiply. The **Performer** (2020) draws $m$ directions $w$, so a token has $m$ **random features**. The sum over the $m$ features is divided by $m$, which makes it a mean.
"""

# %% [markdown] tags=["exercise:random_features"]
# Write them. `attend` divides scores by $\sqrt d$, so each side is divided by $d^{1/4}$: with $y = x / d^{1/4}$ the feature of a direction is $e^{w \cdot y - |y|^2/2} / \sqrt m$.

# %%
features = yours("random_features")


def performer(query, key, value, directions):
    phi_q, phi_k = features(query, directions), features(key, directions)  # (n, m)
    return phi_q @ (phi_k.T @ value) / (phi_q @ phi_k.sum(0))[:, None]


_ = torch.manual_seed(0)
w = torch.randn(1_000_000)  # directions of one number; q = k = 1
products = (w - 0.5).exp() * (w - 0.5).exp()
beyond = w > 2
print(f"mean of a million: {products.mean():.1f}, and e is {torch.e:.1f}")
part = products[beyond].sum() / products.sum()
print(f"w > 2: {beyond.float().mean():.3f} of the draws, {part:.2f} of the mean")

# %% [markdown]
r"""
Right on average. Where does the average come from? Half of it comes from draws beyond $q + k$ = 2, and of the draws only one in 44 lies there. For vectors the part of $w$ along $q + k$ counts, and half of the mean comes from draws where it is longer. With 16 numbers of size (standard deviation) 1 that is about 2.8: one draw in 430.

Now whole outputs: how far off are they? The error's length is divided by the length of softmax's outputs. The last column takes the plain mean of all values instead, which reads no query and no key.
"""

# %%
predict("more_features")


# %%
def off(found, exact):
    return ((found - exact).norm() / exact.norm()).item()


print("size  64 features   1,024   16,384   plain mean")
q, k, v = torch.randn(3, 256, 16)
for size in (0.25, 1.0):
    a, b = size * q, size * k
    exact = attend(a, b, v).output
    errors = []
    for m, draws in ((64, 50), (1024, 50), (16384, 5)):
        found = [performer(a, b, v, torch.randn(m, 16)) for _ in range(draws)]
        errors.append(median(off(output, exact) for output in found))
    plain = off(v.mean(0).expand_as(v), exact)
    print(f"{size:4} {errors[0]:12.3f} {errors[1]:7.3f} {errors[2]:8.3f} {plain:12.3f}")

# %% [markdown]
r"""
At size «0.25» the error falls to about a quarter with 16 times as many features, as a mean of independent draws should. At size 1 it only halves with 256 times as many. Large weights need a large $q \cdot k$, and so mostly a long $q + k$, whose draws are rarer still. At size «0.25» the plain mean is off by «0.049», and 64 features by more. At size 1 it takes 16,384 features to come even with it; fewer are off by more than the outputs' own length. **"It is right on average, so it is right."** A model has one draw. The Performer assumes that queries and keys are short.

## In real work

Today's models took other ways:

- windows, in turn with layers that see all: Gemma 3;
- the gated delta rule (08d) in three of four layers: Qwen3-Next;
- keys chosen by a small learned scorer ([11d](11d_chosen_keys.ipynb)): DeepSeek-V3.2.

Whoever uses global tokens meets a trap. Texts of a batch are padded to equal length, some programs pad in front, and then token 0 is padding. How many keys should the last token see, with radius 1?
"""

# %%
real = torch.tensor([8 * [1], 3 * [0] + 5 * [1]]).bool()  # padding in front
may = mask_of(8, 1, 1) & real[:, None, :]
print("the last token sees", may[:, -1].sum(-1).tolist())

# %% [markdown]
r"""
Three: itself, its neighbour and the global token. The second text has lost its global token, and no error came.

## To carry away

`notebooks/carry/long.py` has windows and this mask in plain torch. Its global tokens are each text's first *real* ones, so put the question first:
"""

# %%
from carry import long as carried

show_source(carried.window_and_global)

# %%
repaired = carried.window_and_global(real, radius=1)  # (2, 1, 8, 8): for heads
print("the last token sees", repaired[:, 0, -1].sum(-1).tolist())

# %% [markdown]
r"""
## The ranking once more

Give each task the weight that it has in your own work. Who leads, and by how much?
"""

# %%
wanted = {"ListOps": 0, "Text": 3, "Retrieval": 2, "Image": 0, "Pathfinder": 0}


def mean_of(kind):
    weighted = zip(wanted.values(), lra.RIGHT[kind])
    return sum(weight * right for weight, right in weighted) / sum(wanted.values())


for kind in sorted(lra.RIGHT, key=mean_of, reverse=True)[:3]:
    print(f"{kind:11} {mean_of(kind):.2f}")

# %% [markdown]
r"""
For these weights the first two are less than 0.2 apart, one run each: no winner. BigBird has the best mean of the five tasks, is first on none of them, and loses the lead without Pathfinder or without ListOps.

**To remember.** Who chooses the tasks chooses the winner. Ask what each kind gives up.

- Scores and mixture are $n/(n + 6d)$ of a layer's multiplications.
- A global token reaches all, through one vector; make the one global that asks.
- Mixed keys cannot be told apart, nor hidden one by one; $E$ has a column for each position.
- Random features are right on average; for long queries and keys the average needs too many.

**Sources.** Tay et al. 2021 (arXiv:2011.04006); Beltagy et al. 2020 (arXiv:2004.05150); Zaheer et al. 2020 (arXiv:2007.14062); Wang et al. 2020 (arXiv:2006.04768); Choromanski et al. 2021 (arXiv:2009.14794). A small arena of our own, and proofs: [evidence](evidence/11_efficient_attention_evidence.ipynb).

**Next**: [11b · Exact and fast](11b_exact_and_fast.ipynb): can softmax be computed without all scores?
"""
