# %% [markdown]
r"""
# 04 · Multi-head attention: why several heads?

**The question.** You want to know two things about a word: which word stands before it, and which word it refers to. Attention gives you
one set of weights, and the weights sum to 1. Can one look answer both?

**After this lesson you can**

- say, with a proof of five lines, what a single head cannot do, and show that two heads can;
- split a table into heads, attend, merge, and mix, and get torch's numbers, to within 0.00001;
- count the parameters and the multiplications of any number of heads;
- say how torch's masks differ from ours, and from torch's own other function;
- read a head's map with the right amount of distrust.

**Time** about 75 minutes; a good place to stop is before section 5. **You need** parts [02a](02a_soft_look_up.ipynb), [02b](02b_which_score.ipynb) and
[03](03_matrix_form.ipynb). **Exercises**: [exercises/04_multi_head](exercises/04_multi_head.ipynb).
"""

# %%
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.chapters.c04_multi_head import figures
from lesson_lib.chapters.c04_multi_head.experiments import two_relations
from lesson_lib.claims import claim, verdict
from lesson_lib.device import to_device
from lesson_lib.experiments import results
from lesson_lib.heads import (
    MultiHeadAttention,
    masks_from_torch,
    merge_heads,
    split_heads,
)
from lesson_lib.masks import causal
from lesson_lib.show import show, show_source

_ = torch.manual_seed(0)

# %% [markdown]
r"""
> **Predict first.** Each token must name the symbol *one* place back and the symbol *three* places back. Both come from the same alphabet,
> drawn at random. One head may spread its weights as it likes, say half and half. From the mixture, can you read both names?
>
> <details><summary>Answer</summary>
> From half and half you can read <i>which two</i> symbols were mixed, but not which of them stood where: a mixture has no order. Section 1 shows
> that no other weights help, as long as the read-out is linear.
> </details>

## 1 · What one head cannot do

The task, on paper. The alphabet has eight symbols, 0 to 7. A sequence is twelve symbols, drawn at random, repeats allowed.
"""

# %%
tokens, names = two_relations.draw(torch.Generator().manual_seed(1), batch=1)
print("tokens    ", tokens[0].tolist())
print("one back  ", " " * 8, names[0, :, 0].tolist())
print("three back", " " * 8, names[0, :, 1].tolist())

# %% [markdown]
r"""
Check one column by hand: token 3, a 0, must name token 2, a 4, and token 0, a 5.

A **head** is one attention: one table of weights, one mixture for each token. Suppose a head has found the two places. It gives the weight
$w$ to the token one back, which we call $a$, and $1-w$ to the token three back, $b$. Its output is

$$z = w\,v_a + (1-w)\,v_b$$

A **linear read-out** multiplies $z$ by a matrix and adds a bias; the largest of eight numbers is the name. There are two read-outs, one for
$a$ and one for $b$. There are only 64 pairs $(a, b)$, so we can try many $w$: fit the best read-outs to all pairs, and count.
"""

# %%
pairs = torch.cartesian_prod(torch.arange(8), torch.arange(8))  # all (a, b)
values = torch.eye(8, dtype=torch.float64)  # a value per symbol: a single 1


def fitted(z, wanted):
    """The scores of a linear read-out that was fitted to name `wanted` from z."""
    matrix = torch.zeros(8, 8, dtype=z.dtype, requires_grad=True)
    bias = torch.zeros(8, dtype=z.dtype, requires_grad=True)
    search = torch.optim.LBFGS([matrix, bias], 1, 200, line_search_fn="strong_wolfe")

    def loss():
        search.zero_grad()
        value = (
            F.cross_entropy(z @ matrix + bias, wanted) + 1e-6 * matrix.square().sum()
        )
        value.backward()
        return value

    search.step(loss)
    return (z @ matrix + bias).detach()


# %% [markdown]
r"""
> **Predict.** At $w = \tfrac23$, how many of the 64 pairs get their $a$ right, and how many their $b$?
>
> <details><summary>Answer</summary>
> All 64 get a right: it has the larger part of every mixture. Of the b, 8 are right: the pairs with a = b. That is 12.5 %, as good as a blind guess.
> </details>
"""

# %%
eighteenths = torch.arange(19, dtype=torch.float64) / 18
shares = eighteenths[eighteenths != 0.5].tolist()  # at a half: a tie
right = {"one back": [], "three back": []}
for w in shares:
    z = w * values[pairs[:, 0]] + (1 - w) * values[pairs[:, 1]]
    for k, name in enumerate(right):
        hits = fitted(z, pairs[:, k]).argmax(-1) == pairs[:, k]
        right[name].append(hits.double().mean().item())
figures.one_head(shares, right)

# %%
low = [min(both) for both in zip(*right.values(), strict=True)]
verdict(
    "at each of the 18 weights one of the two names is right in 12.5 % only",
    set(low) == {0.125},
)

# %% [markdown]
r"""
Below a half the token three back is read, above it the token one back. The change is a jump; the sloping lines only join the points.
Whichever token has the larger share is read, the other is lost.

### The proof

Fitting can fail for many reasons, so here is why no read-out can work. It covers *every* head: the weights may depend on the places, on the
symbols, on anything.

1. Use two symbols only, $x$ and $y$. Every value in the sequence is then $v_x$ or $v_y$.
2. The output is a mixture of these two: $z = p\,v_x + (1-p)\,v_y$, where $p$ is the total weight on all the tokens $x$. Whatever the head does, $z$ lies
   on the line through $v_x$ and $v_y$, and one number $p$ says where.
3. Take a read-out's score of $x$ minus its score of $y$. Along the line it is $\alpha p + \beta$, so it changes sign at one $p$ at most. To name $x$ it
   must be positive, to name $y$ negative; the other six symbols can only do harm. So each read-out is a threshold.
4. Two read-outs are two thresholds. Two points cut a line into at most *three* pieces.
5. The pairs $xx$, $xy$, $yx$, $yy$ need *four* different answers. At least one of the four is always wrong. ∎

> **Predict.** Let $v_x = 1$ and $v_y = 0$, so that $z = p$. Thresholds stand at 0.3 for $a$ and 0.6 for $b$, and $x$ is said above them. Which pair
> can never be named?
>
> <details><summary>Answer</summary>
> Below 0.3 both say y: yy. Between, a says x and b says y: xy. Above 0.6: xx. So yx can never be named.
> </details>
"""

# %%
places = torch.arange(0, 101) / 100  # every p, in hundredths
said = {("x" if p > 0.3 else "y") + ("x" if p > 0.6 else "y") for p in places.tolist()}
print("answers that occur:", sorted(said))

# %% [markdown]
r"""
The proof says that something is always wrong. It does not say 12.5 %. That number came from fitted read-outs, which treat all symbols
alike. A lopsided read-out, which prefers some symbols, does better at $b$:
"""

# %%
z = 2 / 3 * values[pairs[:, 0]] + 1 / 3 * values[pairs[:, 1]]
lopsided = z * 3.0 ** torch.arange(8)  # three times as loud from symbol to symbol
hits = lopsided.argmax(-1) == pairs[:, 1]
show(right_of_64=hits.sum(), share=hits.double().mean())

# %% [markdown]
r"""
36 of 64, or 56 %. It always says the later of the two symbols, so it is right wherever $b$ does not come before $a$. As long as equal pairs
stay right, no linear read-out does better: of $xy$ and $yx$ it can get one.

Two conditions hide in the proof. *Linear* read-out: something bent behind the head escapes, and section 4 shows it. And values that carry
the symbols *only*: if they also carried the places, $z$ would leave the line.

## 2 · Two heads: project, split, attend, merge, mix

The way out is two heads: one for each relation. Each gets queries, keys and values of its own, so each has a table of weights of its own.
Then their outputs are laid side by side. With the hard cases of section 1, by hand:
"""

# %%
both = torch.cat(
    [values[pairs[:, 0]], values[pairs[:, 1]]], dim=-1
)  # two heads: (64, 16)
named = both.unflatten(-1, (2, 8)).argmax(
    -1
)  # a linear read-out: each looks at its half
verdict("two heads: all 64 pairs are named", torch.equal(named, pairs))

# %% [markdown]
r"""
In a real layer a last matrix $W^o$ mixes what lies side by side:

$$\text{head}_i = \text{attend}(x W_q^i,\; x W_k^i,\; x W_v^i), \qquad \text{output} = [\text{head}_0, \dots, \text{head}_{h-1}]\, W^o$$

Nobody computes the heads one after the other. All queries come from *one* wide matrix $W_q$, whose columns are the heads' matrices side by
side. The product is then cut. By hand:
"""


# %%
def several_heads(x, w_q, w_k, w_v, w_o, n_heads):
    n = x.shape[0]
    q = (x @ w_q).view(n, n_heads, -1).transpose(0, 1)  # (h, n, d_k)
    k = (x @ w_k).view(n, n_heads, -1).transpose(0, 1)
    v = (x @ w_v).view(n, n_heads, -1).transpose(0, 1)
    output = attend(q, k, v).output  # every head at once, (h, n, d_v)
    side_by_side = output.transpose(0, 1).reshape(n, -1)  # (n, h * d_v)
    return side_by_side @ w_o


x = torch.randn(5, 12)  # five tokens, d_model = 12
layer = MultiHeadAttention(d_model=12, n_heads=3)
projections = (layer.w_query, layer.w_key, layer.w_value, layer.w_output)
w_q, w_k, w_v, w_o = (project.weight.T for project in projections)
assert_close(several_heads(x, w_q, w_k, w_v, w_o, n_heads=3), layer(x, x, x).output)

# %% [markdown]
r"""
`attend` did not change: heads are one more leading axis, like a batch. The library's layer is the same, and takes more arguments.
`nn.Linear` stores its matrix transposed, hence the `.T`.
"""

# %%
show_source(MultiHeadAttention.forward)

# %% [markdown]
r"""
`_check` answers wrong input with a sentence. `rotate`, `cache` and other kinds of `attention` come in lessons 05, 06 and 09; all of them
pass through these lines. `n_key_heads` equals `n_heads` until lesson 11, and `_attend` then calls `attention`, with what it was given.

### Cutting, step by step

The cut has two steps, and the second is easily forgotten. Take three tokens, two heads of width two. To see where numbers go, let each
entry be 10 · token + column.
"""

# %%
whole = 10.0 * torch.arange(3)[:, None] + torch.arange(4)  # x W_q: (n, h * d)
viewed = whole.view(3, 2, 2)  # (n, h, d): the columns cut in two
heads = viewed.transpose(0, 1)  # (h, n, d): each head holds all tokens
assert_close(heads, split_heads(whole, n_heads=2))
figures.splitting(whole, heads)

# %% [markdown]
r"""
| step | shape | what it does |
|---|---|---|
| `x @ w_q` | $(n,\; h \cdot d)$ | all heads' queries, side by side |
| `.view(n, h, d)` | $(n, h, d)$ | cuts each row into $h$ pieces; nothing moves in memory |
| `.transpose(0, 1)` | $(h, n, d)$ | puts the heads in front, where `attend` takes leading axes |

> **Predict.** The end result has the shape $(h, n, d)$. Why not say `.view(2, 3, 2)` at once? What stands in its head 0?
>
> <details><summary>Answer</summary>
> A view counts through the numbers in the order of memory: the first six are token 0 whole, and half of token 1. Head 0 would hold the tokens 0 and 1,
> cut up, and head 1 the tokens 1 and 2. Heads are mixed with tokens, and no error is raised.
> </details>
"""

# %%
figures.split_wrongly(heads, whole.view(2, 3, 2))

# %% [markdown]
r"""
Read the third table: its rows are 0 1, 2 3 and 10 11. Two of the three "tokens" of that head are halves of token 0. Training may even run
with it, and get somewhere; a comparison like `assert_close` finds it at once.

The way back is the same two steps in reverse: swap the axes, then flatten.
"""

# %%
assert_close(merge_heads(heads), whole)  # there and back
wrong = heads.reshape(3, 4)  # flatten without swapping back
show(first_row=merge_heads(heads)[0], without_the_swap=wrong[0])

# %% [markdown]
r"""
Without the swap the first row holds 0, 1, 10, 11: two different tokens.

### What $W^o$ does

Lay the heads' outputs side by side and multiply by $W^o$. Cut $W^o$ into one block of rows for each head, and the product is a sum:

$$[b_0, b_1, b_2]\, W^o = b_0 W^o_0 + b_1 W^o_1 + b_2 W^o_2$$

So each head writes into the whole width of the output, in directions of its own, and the writings add up.

> **Predict.** Replace $W^o$ by the identity. Which part of the output does head 1 then write?
>
> <details><summary>Answer</summary>
> Only its own columns: with three heads of width 4 the columns 4 to 7. A last matrix lets all heads reach all columns.
> </details>
"""

# %%
q, k, v = (split_heads(project(x), 3) for project in projections[:3])
b = attend(q, k, v).output  # (h, n, d_v)
blocks = w_o.view(3, 4, 12)  # one block of rows per head
summed = sum(b[i] @ blocks[i] for i in range(3))
assert_close(summed, layer(x, x, x).output)
only_head_1 = merge_heads(b * torch.tensor([0.0, 1.0, 0.0])[:, None, None])
show(columns_written=only_head_1.abs().sum(0) > 0)

# %% [markdown]
r"""
## 3 · The lecture's two steps

A lecture on this subject computes $q = x W^q$ first, as with one head, and then multiplies *again*, by $W^{q,1}$ and $W^{q,2}$, to get the
two heads' queries. Papers and code have one step. Who is right?

> **Predict.** Can the two-step layer compute anything that the one-step layer cannot?
>
> <details><summary>Answer</summary>
> No. Two linear maps in a row are one linear map, the product of their matrices. The first step adds parameters, and no possibilities.
> </details>
"""

# %%
w_first = torch.randn(12, 12) / 12**0.5
w_second = torch.randn(3, 12, 4) / 12**0.5  # one per head
two_steps = (x @ w_first) @ w_second  # (h, n, d_k)
direct = x @ (w_first @ w_second)
assert_close(two_steps, direct)
show(
    numbers_two_steps=w_first.numel() + w_second.numel(),
    numbers_direct=w_second.numel(),
)

# %% [markdown]
r"""
Equal, with 288 learned numbers in place of 144. Both are right; one of them is shorter.

## 4 · Train it

The same task, now with everything learned: embeddings, projections, $W^o$, read-out. Queries and keys see symbols *and* places; how a place
becomes a row of numbers is the subject of lesson 05. Values see the symbols only. The model is one layer and one matrix behind it. In its
code, `mlp` comes at the end of this section, `sinusoidal` in lesson 05, and *logits* are scores before a softmax.
"""

# %%
show_source(two_relations.TwoNames)

# %% [markdown]
r"""
> **Predict.** One head, two heads, eight heads, all with $d_{model} = 32$. Which has the most parameters? Which will learn the task?
>
> <details><summary>Answer</summary>
> All three have the same number: eight heads of width 4 fill the same matrices as one head of width 32. Two and eight should learn it, one cannot.
> </details>
"""

# %%
stored = results("two_relations")["rows"]
best = two_relations.best_rows(stored)
rate = {row["system"]: row["lr"] for row in best if row["seed"] == 0}
live = {
    system: two_relations.train(system, lr=rate[system])[0]
    for system in ("1 head", "2 heads", "8 heads")
}
print({s: sum(p.numel() for p in m.parameters()) for s, m in live.items()})

# %% [markdown]
r"""
4,880 each. By hand: $8 \cdot 32$ for the embeddings, $4 \cdot 32^2$ for the layer, $32 \cdot 16 + 16$ for the read-out.
"""

# %% tags=["nbval-ignore-output"]
reached = {
    s: two_relations.accuracy(m, two_relations.TEST_SEED) for s, m in live.items()
}
figures.right_names(
    {
        f"{system}\n{name}": share
        for system, both in reached.items()
        for name, share in zip(("1 back", "3 back"), both, strict=True)
    },
    chance=1 / 8,
    caption="Live, one seed, test sequences. One head gives up one of the two names.",
)

# %%
for system in ("2 heads", "8 heads"):
    verdict(
        f"{system}: both names, over 95 %", min(reached[system]) > 0.95, trained=True
    )
verdict("1 head: one name over 95 %", max(reached["1 head"]) > 0.95, trained=True)
verdict("1 head: the other below 25 %", min(reached["1 head"]) < 0.25, trained=True)

# %% [markdown]
r"""
One head did what the fitted read-outs did: it kept one name, and stayed close to chance, 1/8, with the other. Here are the heads' maps for
one sequence. A map has a row for each token that asks.

> **Predict.** Two heads learned to look one back and three back. Which diagonal is bright in which map? Does head 0 always get the near one?
>
> <details><summary>Answer</summary>
> One map has its bright line one place left of the diagonal, the other three places left. Which head gets which is settled by the random start;
> another seed may swap them.
> </details>
"""

# %% tags=["nbval-ignore-output"]
sequence = to_device(tokens)
with torch.no_grad():
    learned = {system: model(sequence)[1][0] for system, model in live.items()}
figures.maps(
    torch.cat([learned["1 head"], learned["2 heads"]]),
    ["the one head", "two heads: head 0", "two heads: head 1"],
    "Live: rows ask, columns answer. Rows 0 to 2 were never trained: they have no token three back.",
)

# %%
rows = torch.arange(3, 12)
near, far = (
    [table[rows, rows - back].mean().item() for table in learned["2 heads"]]
    for back in (1, 3)
)
apart = near.index(max(near)) != far.index(max(far))
for name, shares in {"one back": near, "three back": far}.items():
    strong = max(shares) > 0.4 and min(shares) < 0.1
    verdict(f"a head of its own for {name}", apart and strong, trained=True)

# %% [markdown]
r"""
The bright cells do not hold all the weight, and need not: the right symbol only has to outweigh the rest.

Look at the heads yourself. *Do:* move the query from place 3 to place 11 and watch the bright cell walk along. *Then:* find out what the
rows 0, 1 and 2 do, which nobody ever graded.

<details><summary>What you should find</summary>
From row 3 on each head has one bright cell, always the same number of places back. The first rows have no token that far back; the heads
look anywhere, and nothing in the training cared.
</details>
"""

# %% tags=["nbval-ignore-output"]
from lesson_lib.chapters.c04_multi_head.heads_explorer import HeadExplorer

letters = [str(token) for token in tokens[0].tolist()]
HeadExplorer(learned["2 heads"].cpu(), letters, names=["head 0", "head 1"])

# %% [markdown]
r"""
### Three seeds, and the escape

The stored run has three seeds, a learning rate chosen on validation sequences, and one more system: one head with an **MLP** (a layer, a
ReLU, and another layer) in place of the linear read-out. A mixture of 2/3 and 1/3 is different for each of the 64 pairs; what bends can
tell them apart.
"""

# %%
middle = {
    system: [
        sorted(row[name] for row in best if row["system"] == system)[1]
        for name in ("one back", "three back")
    ]
    for system in two_relations.RECIPE["systems"]
}
figures.right_names(
    {
        f"{system.replace(' + ', chr(10) + '+ ')}\n{name}": share
        for system, both in middle.items()
        if system in ("1 head", "2 heads", "1 head + MLP")
        for name, share in zip(("1 back", "3 back"), both, strict=True)
    },
    chance=1 / 8,
    caption="Stored run, middle of three seeds. An MLP behind one head names both: the proof was about linear read-outs.",
)

# %%
escape = [row for row in best if row["system"] == "1 head + MLP"]
single = [row for row in best if row["system"] == "1 head"]
verdict("one head with an MLP: both over 90 % at all three seeds",
    all(min(row["one back"], row["three back"]) > 0.9 for row in escape))  # fmt: skip
verdict("one head, linear: one of the two under 25 % at all three seeds",
    all(min(row["one back"], row["three back"]) < 0.25 for row in single))  # fmt: skip

# %% [markdown]
r"""
So "one head cannot" has a condition: *with a linear read-out*. (The MLP makes that model larger, 10,640 numbers; but the two heads that do
as well need 4,880. It is the bend that helps.) A Transformer has an MLP behind every attention layer (lesson 06), and could decode some
mixtures. Several heads spare it the trouble.

## 5 · What do heads cost?

The paper has $d_{model} = 512$, and eight heads of width 64 in place of one of width 512.

> **Predict.** Do eight heads need eight times the parameters? Eight times the multiplications? Eight times anything?
>
> <details><summary>Answer</summary>
> The same parameters and the same products of matrices. Eight times the weights: every head has a table of its own, and softmax runs over all of them.
> </details>
"""

# %%
from torch.utils.flop_counter import FlopCounterMode

sentence = torch.randn(1, 100, 512)
for n_heads in (1, 8):
    wide = MultiHeadAttention(512, n_heads)
    with FlopCounterMode(display=False) as counter:
        weights = wide(sentence, sentence, sentence).weights
    products = counter.get_total_flops() // 2  # it counts a product and a sum as two
    parameters = sum(p.numel() for p in wide.parameters())
    print(
        f"{n_heads} head(s): {parameters:,} parameters, {products:,} products, {weights.numel():,} weights"
    )

# %% [markdown]
r"""
By hand: each of $W_q, W_k, W_v, W^o$ has $512 \cdot 512 = 262{,}144$ numbers; four of them make 1,048,576. Products: $4 \cdot 100 \cdot
512^2$ for the four projections, and $2 \cdot 100^2 \cdot 512$ for scores and mixtures: 115,097,600. In the scores $8 \cdot 64$ stands where
$1 \cdot 512$ stood. Only the weights grow, from 10,000 to 80,000.

### How narrow may a head be?

If heads are free, why not 512 heads of width 1? Take $d_k = 1$: query and key are plain numbers, a score is their product.

> **Predict.** Ten tokens, one head with $d_k = 1$. For each query, which key gets the largest weight? How many *different* keys can be somebody's
> favourite?
>
> <details><summary>Answer</summary>
> A positive query prefers the largest key, a negative one the smallest. So at most two keys are ever anybody's favourite, whatever the numbers.
> </details>
"""

# %%
favourites = {}
for d_k in (1, 2, 4, 16):
    q, k = torch.randn(200, 10, d_k), torch.randn(200, 10, d_k)
    first = attend(q, k, k).weights.argmax(-1)  # (200, 10): the favourite of each query
    favourites[d_k] = [len(set(row.tolist())) for row in first]
    mean = sum(favourites[d_k]) / 200
    print(
        f"d_k = {d_k:2}: {mean:.1f} different favourites on average, at most {max(favourites[d_k])}"
    )

# %%
verdict("d_k = 1: never more than two favourites", max(favourites[1]) <= 2)
verdict("d_k = 16: more than six on average", sum(favourites[16]) / 200 > 6)

# %% [markdown]
r"""
At width 16 the mean is 6.3. Ten queries that choose blindly among ten keys hit $10\,(1 - 0.9^{10}) = 6.5$ different ones, so here the width
no longer limits. At width 1 it does, whatever the numbers: ten tokens that each look one place back need nine favourites, and a head of
width 1 has two. The number of heads is a **hyperparameter**: you choose it. The other end costs, too: one wide head has one table.

## 6 · The same numbers as torch

torch has this layer: `nn.MultiheadAttention`. It adds a bias to every projection; ours does so with `bias=True`. The strongest test of ours
is to copy its matrices and compare every number.
"""

# %%
theirs = nn.MultiheadAttention(24, 3, bias=True, batch_first=True).eval()
for bias in (theirs.in_proj_bias, theirs.out_proj.bias):
    nn.init.normal_(bias)  # torch starts them at 0, which would test nothing
ours = MultiHeadAttention.from_torch(theirs)
x = torch.randn(2, 7, 24)
torchs, torch_weights = theirs(x, x, x, average_attn_weights=False)
assert_close(ours(x, x, x).output, torchs, atol=1e-5, rtol=1e-5)
assert_close(ours(x, x, x).weights, torch_weights, atol=1e-5, rtol=1e-5)
show(weights=tuple(torch_weights.shape))

# %% [markdown]
r"""
Without `average_attn_weights=False` torch returns the *mean* over the heads: on our task, the mean of "one back" and "three back", a map
that no head has.
"""

# %%
assert_close(theirs(x, x, x)[1], torch_weights.mean(1))

# %% [markdown]
r"""

### torch's masks say the opposite

In this course, and in torch's own `scaled_dot_product_attention`, True means *may look*. In `nn.MultiheadAttention`, True means *hidden*.

> **Predict.** You pass our causal mask, a lower triangle of True, to `nn.MultiheadAttention`. What may each token see then? What happens to the last token?
>
> <details><summary>Answer</summary>
> Exactly what it should not: the future only. The last token has no future; everything is hidden from it, and torch returns nan.
> </details>
"""

# %%
wrong, _ = theirs(x, x, x, attn_mask=causal(7))
print("rows with nan:", wrong[0].isnan().any(-1).int().tolist())
hidden = ~causal(7)  # what torch calls a causal mask
translated = masks_from_torch(hidden)
assert torch.equal(translated["mask"], ~hidden)
expected, _ = theirs(x, x, x, attn_mask=hidden)
assert_close(ours(x, x, x, **translated).output, expected, atol=1e-5, rtol=1e-5)

# %% [markdown]
r"""
`masks_from_torch` turns the mask round, and nothing else in this library knows torch's rule. The nan is a help: it shows. The other six
rows are wrong as well, and look healthy.

Now the other mistake: torch's mask, untranslated, in our layer. Nothing shows at all. The sure test is to disturb the future and look at
the past:
"""

# %%
disturbed = x.clone()
disturbed[:, -1] += 1.0  # another last token


def change(masks):
    """How much each earlier output moves when the last token changes."""
    before, after = (ours(y, y, y, **masks).output for y in (x, disturbed))
    return (before - after)[:, :-1].abs().amax((0, 2))


show(translated=change(translated), untranslated=change({"mask": ~causal(7)}))

# %%
verdict("translated: nothing moves at all", change(translated).max() == 0)
verdict("untranslated: all six outputs move", change({"mask": ~causal(7)}).min() > 0.01)

# %% [markdown]
r"""
Six zeros with the translated mask. Untranslated, all six earlier outputs know what comes last.

Padding works the same way. `key_padding_mask` has a row for each sequence, True = filler; translated and combined with the causal mask it
becomes one table:
"""

# %%
filler = torch.tensor(
    [[False] * 7, [False] * 5 + [True] * 2]
)  # the second has 5 tokens
both = masks_from_torch(~causal(7), filler)
expected, _ = theirs(x, x, x, attn_mask=~causal(7), key_padding_mask=filler)
assert_close(ours(x, x, x, **both).output, expected, atol=1e-5, rtol=1e-5)
assert torch.equal(both["mask"], ~hidden & ~filler[:, None])  # by hand
show(mask=both["mask"][1])

# %% [markdown]
r"""
Columns 5 and 6 are empty: nobody looks at filler. Rows 5 and 6 are not: filler still asks, and its outputs are thrown away later. The table
is $(b, n, n)$. The layer adds the axis of the heads, so that all heads share it.

### Two sequences: cross-attention

Queries may come from one sequence, keys and values from another: a translation that looks at its original. Nothing changes but the shapes.
"""

# %%
target, source = torch.randn(2, 4, 24), torch.randn(2, 7, 24)
crossed = ours(target, source, source)
show(output=tuple(crossed.output.shape), weights=tuple(crossed.weights.shape))

# %% [markdown]
r"""
One output for each of the four queries; in each head a table of 4 by 7. In self-attention the table is always square. Here it need not be.

## 7 · What do heads learn, and how many are needed?

The eight-head model was trained for a task that two heads can do. What do the other six do? Silence a head, by setting its block of $W^o$
to 0, and count the right names again.

> **Predict.** How many of the eight heads will be missed when they go one at a time: all, two, or none?
>
> <details><summary>Answer</summary>
> None of the three, in our run. Some can go at no cost, some cost points, and none is indispensable: the work is spread over several heads.
> Which heads matter is settled by the random start.
> </details>
"""

# %%
model = live["8 heads"]


def without(silent):
    """Mean share of right names when the heads in `silent` say nothing."""
    matrix = model.attention.w_output.weight
    before = matrix.detach().clone()
    with torch.no_grad():
        for head in silent:
            matrix[:, 4 * head : 4 * head + 4] = 0  # its block of W^o
        share = sum(two_relations.accuracy(model, two_relations.TEST_SEED)) / 2
        matrix.copy_(before)
    return share


whole_layer = without([])
alone = {head: without([head]) for head in range(8)}

# %% tags=["nbval-ignore-output"]
figures.ablation(
    {"all\nheads": whole_layer}
    | {f"without\n{head}": share for head, share in alone.items()}
)

# %% [markdown]
r"""
Now silence one after the other, each time the head that is missed least:
"""

# %%
silent, curve = [], [whole_layer]
while len(silent) < 8:
    options = {
        head: without([*silent, head]) for head in range(8) if head not in silent
    }
    silent.append(max(options, key=options.get))
    curve.append(options[silent[-1]])

# %% tags=["nbval-ignore-output"]
figures.removed(range(9), curve)

# %%
verdict("no single head is indispensable", min(alone.values()) > 0.6, trained=True)
verdict(
    "at least one head can go at a cost of under 2 %",
    curve[1] > whole_layer - 0.02,
    trained=True,
)
verdict("with all heads silenced, only guessing is left", curve[8] < 0.2, trained=True)
verdict("the layer as it was before", without([]) == whole_layer)

# %% [markdown]
r"""
Several heads can go almost for free. Then the curve falls: with two left the layer is far from perfect, although a layer that was *trained*
with two heads gets everything right. How many heads to learn with and how many to keep are two questions. With none left, the share is a
guess, 1/8.

Large models behave the same way: many of their heads can be removed at little cost, after training (Michel, Levy & Neubig 2019) or with
some further training (Voita et al. 2019). That does not mean that they were useless *during* training. Ours is a toy with one layer; it
shows the method, not a fact about language.

### A warning: a map is not an explanation

A bright cell says "this value was mixed in with a large share". It does not say "this is why". Test it directly: change the weights, and
see what happens to the answer.

Find a token whose neighbour, one place back, has the same symbol as some other token. Take the two-head model's weights and move the bright
cell from the neighbour to that other token.

> **Predict.** After the move, row 10 of the map tells another story. How much does the output change?
>
> <details><summary>Answer</summary>
> Not at all: equal symbols have equal values here. The same output comes from two maps that tell two different stories.
> </details>
"""

# %%
repeats = to_device(
    torch.tensor([[3, 5, 1, 6, 2, 0, 7, 4, 1, 6, 3, 2]])
)  # 6 at 3 and at 9
model = live["2 heads"]
with torch.no_grad():
    _, table = model(repeats)
    moved = table.clone()
    moved[..., 10, 3] += moved[..., 10, 9]  # token 10 now looks at place 3
    moved[..., 10, 9] = 0
    v = split_heads(model.attention.w_value(model.embed(repeats)), 2)
    output_change = (table @ v - moved @ v).abs().max().item()
    map_change = (table - moved).abs().max().item()

# %%
verdict("a weight changed by more than 0.3", map_change > 0.3, trained=True)
verdict("the heads' outputs changed by less than 0.00001", output_change < 1e-5)

# %% [markdown]
r"""
Token 10 "looks at its neighbour" in one map, and seven places back in the other. Both give the same outputs. Whether attention explains a
model's answer has been argued at length (Jain & Wallace 2019, *Attention is not Explanation*; Wiegreffe & Pinter 2019, *Attention is not
not Explanation*). The safe habit: look at the map for an idea, then intervene for an answer.

## 8 · What the sources say

Each claim, with what this notebook has just found. ✓ holds, ◐ holds with a condition, ✗ corrected.
"""

# %% tags=["claim:heads-1"]
claim(
    "heads-1",
    {
        "two heads name both tokens": min(reached["2 heads"]) > 0.95,
        "one head names one of them only": min(reached["1 head"]) < 0.25,
        "an MLP behind one head names both": min(middle["1 head + MLP"]) > 0.9,
    },
    trained=True,
)

# %% tags=["claim:heads-2"]
claim(
    "heads-2",
    {
        "two steps equal one step with the product": torch.allclose(
            two_steps, direct, atol=1e-5
        ),
        "with 288 numbers in place of 144": (
            w_first.numel() + w_second.numel(),
            w_second.numel(),
        )
        == (288, 144),
    },
)


# %% tags=["claim:heads-3"]
def counted(n_heads, names):
    layer = MultiHeadAttention(512, n_heads)
    return sum(
        p.numel() for name, p in layer.named_parameters() if name.split(".")[0] in names
    )


three = ("w_query", "w_key", "w_value")
claim(
    "heads-3",
    {
        "W_q, W_k, W_v: 786,432 numbers for 1 head and for 8": counted(1, three)
        == counted(8, three)
        == 786_432,
        "W_o adds 262,144": counted(8, ("w_output",)) == 262_144,
        "the output has the same width": len(
            {
                MultiHeadAttention(512, h)(*[torch.randn(5, 512)] * 3).output.shape
                for h in (1, 8)
            }
        )
        == 1,
    },
)

# %% tags=["claim:heads-4"]
q, k, v = torch.randn(2, 8, 5, 3), torch.randn(2, 8, 5, 3), torch.randn(2, 8, 5, 7)
as_is, other_v, other_k = (
    attend(q, *kv).weights for kv in ((k, v), (k, 2 * v), (2 * k, v))
)
claim(
    "heads-4",
    {
        "the weights have the shape (batch, heads, n, n)": as_is.shape == (2, 8, 5, 5),
        "other values: the same weights": torch.equal(as_is, other_v),
        "other keys: other weights": not torch.allclose(as_is, other_k),
    },
)

# %% tags=["claim:heads-5"]
odd = MultiHeadAttention(32, 3, d_k=5, d_v=7)  # 3 * 5 and 3 * 7 are not 32
claim(
    "heads-5",
    {
        "3 heads of width 5 and 7 in a model of width 32 run": odd(
            *[torch.randn(4, 32)] * 3
        ).output.shape
        == (4, 32),
        "a head of width 1 has at most two favourites": max(favourites[1]) <= 2,
    },
)

# %% tags=["claim:heads-6"]
alone = attend(q[..., :1, :], k[..., :1, :], v[..., :1, :]).output  # token 0 by itself
moved_k = k.clone()
moved_k[..., 4, :] += 1
claim(
    "heads-6",
    {
        "read to the letter, the output is the token's own value": torch.equal(
            alone, v[..., :1, :]
        ),
        "another key of token 4 changes the output of token 0": not torch.allclose(
            attend(q, moved_k, v).output[..., 0, :], attend(q, k, v).output[..., 0, :]
        ),
    },
)

# %% tags=["claim:heads-7"]
claim(
    "heads-7",
    {
        "W_o on the heads side by side equals a sum over heads": torch.allclose(
            summed, side_by_side := merge_heads(b) @ w_o, atol=1e-5
        ),
        "its weights are matrices, one block per head": blocks.shape == (3, 4, 12),
    },
)

# %% tags=["claim:heads-8"]
attended = attend(q, k, v).output
claim(
    "heads-8",
    {
        "the output of a head has width d_v = 7, not d_k = 3": attended.shape[-1] == 7,
        "merged: 8 heads of 7 make 56": merge_heads(attended).shape[-1] == 56,
        "weights of cross-attention: 4 by 7": crossed.weights.shape[-2:] == (4, 7),
    },
)

# %% [markdown]
r"""
One more claim is about masks. A source gives its mask the heads' axis with `mask.unsqueeze(1)`. For a mask of shape $(b, n, n)$ that is
right. For a causal mask of shape $(n, n)$ it gives $(n, 1, n)$, and torch lines shapes up from the right: the first $n$ lands on the
*heads*.
"""


# %% tags=["claim:mask-3"]
def hidden_from_first(n, n_heads):
    """Weight of token 0 on later tokens, per head, after mask.unsqueeze(1)."""
    scores = torch.zeros(2, n_heads, n, n)
    scores = scores.masked_fill(~causal(n).unsqueeze(1), -torch.inf)
    return scores.softmax(-1)[0, :, 0, 1:].sum(-1)


try:
    hidden_from_first(5, n_heads=4)
    raised = False
except RuntimeError:
    raised = True
leak = hidden_from_first(4, n_heads=4)
claim(
    "mask-3",
    {
        "5 tokens, 4 heads: an error": raised,
        "4 tokens, 4 heads: no error, and token 0 of the last head gives 75 % to the future": leak[
            -1
        ]
        == 0.75,
    },
)

# %% [markdown]
r"""
With as many heads as tokens it runs, and leaks. A shared mask of two axes needs no `unsqueeze` at all.

## 9 · Three wrong ideas worth having once

**"More heads are more parameters."** Section 5 counted: not one more, *as long as the heads share the width*.

> **Predict.** Keep every head at width 64. How many times the parameters of one head have eight?
>
> <details><summary>Answer</summary>
> Eight times: now the width is not shared, it grows.
> </details>
"""


# %%
def size(n_heads, **widths):
    return sum(
        p.numel() for p in MultiHeadAttention(512, n_heads, **widths).parameters()
    )


print("sharing 512:   ", size(1), size(8))
print("each of width 64:", size(1, d_k=64, d_v=64), size(8, d_k=64, d_v=64))

# %% [markdown]
r"""
Width shared, 1,048,576 both times. Width fixed, 131,072 and eight times as many.

**"Each head sees its own slice of the token."** The cut comes *after* the projection. Every head sees the whole token.

> **Predict.** Head 0 has the first 4 of 12 query columns. How many of the 12 numbers of a token does its query depend on?
>
> <details><summary>Answer</summary>
> All 12: each query column is a product of the whole token with a column of W_q.
> </details>
"""

# %%
token = torch.randn(1, 12, requires_grad=True)
split_heads(layer.w_query(token), 3)[0].sum().backward()  # head 0's query
show(numbers_it_depends_on=(token.grad != 0).sum())

# %% [markdown]
r"""
**"A bright map means that the head is heard."** Brightness is a property of the weights. Whether anybody listens is a property of $W^o$.

> **Predict.** We set head 0's block of $W^o$ to 0. What happens to its map, and what to the output?
>
> <details><summary>Answer</summary>
> The map stays exactly as bright. The output loses what head 0 said.
> </details>
"""

# %%
deaf = MultiHeadAttention(12, 3)
y = torch.randn(5, 12)
before = deaf(y, y, y)
with torch.no_grad():
    deaf.w_output.weight[:, :4] = 0
after = deaf(y, y, y)
print("the same maps:", torch.equal(before.weights, after.weights))
print("the same output:", torch.allclose(before.output, after.output))

# %% [markdown]
r"""
## 10 · Exercises

Open [exercises/04_multi_head](exercises/04_multi_head.ipynb). Splitting and merging are worth writing once with your own hands.

## 11 · Summary

- One head gives one mixture. With a linear read-out it cannot name two tokens of one alphabet: two thresholds, three pieces, four answers.
- Several heads are one attention with a further leading axis: project, view, transpose, attend, transpose back, flatten, $W^o$.
- $W^o$ on the heads side by side is a sum with one block of $W^o$ per head.
- At the same total width, more heads cost no parameters and no products, only more tables of weights. A head of width 1 has two favourites.
- `nn.MultiheadAttention` says True = hidden. We say True = may look. Disturb the future to test a mask.
- A map shows shares, not reasons. Silence heads, move weights, and look at the answer.

**Sources.** Vaswani et al. 2017 (arXiv:1706.03762), section 3.2.2; Michel, Levy & Neubig 2019 (arXiv:1905.10650); Voita et al. 2019
(arXiv:1905.09418); Jain & Wallace 2019 (arXiv:1902.10186); Wiegreffe & Pinter 2019 (arXiv:1908.04626); Hung-yi Lee, Machine Learning 2021;
the course's own sources S0, S2, S3.

**Next**: [05a · Order](05a_order.ipynb): the queries of this lesson knew their places. How?
"""
