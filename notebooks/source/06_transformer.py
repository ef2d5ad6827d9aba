# %% [markdown]
r"""
# 06 · The Transformer: how do the parts make the whole?

**The question.** You have attention, several heads, masks and positions. What else does it take to turn "mercredi 3 mars 2021" into
"2021-03-03", and how much of the machine is attention?

**After this lesson you can**

- build an encoder layer and a decoder layer from parts that you know, and get torch's numbers, to within 0.00001;
- count the parameters of the published model by hand, and say where most of them are;
- say what a norm does, which numbers share a mean, and why it matters whether the norm stands behind a sub-layer or before it;
- explain why a decoder learns all its words at once and writes them one by one;
- train a translator, a small BERT and a small GPT, and read what they do with the right amount of distrust.

**Time** about 140 minutes; good places to stop are before sections 5 and 8. **You need** lessons [04](04_multi_head.ipynb) and
[05b](05b_rotation.ipynb); two tasks come from parts [01a](01a_two_saws.ipynb) and [01b](01b_looking_back.ipynb). **Exercises**: [exercises/06_transformer](exercises/06_transformer.ipynb).
"""

# %%
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from lesson_lib import blocks
from lesson_lib.blocks import (
    BatchNorm,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    FeedForward,
    LayerNorm,
    TokenEmbedding,
    Transformer,
)
from lesson_lib.chapters.c06_transformer import figures
from lesson_lib.claims import claim, verdict
from lesson_lib.device import to_device
from lesson_lib.masks import causal, padding
from lesson_lib.show import show, show_source

_ = torch.manual_seed(0)

# %% [markdown]
r"""
> **Predict first.** The published model has 6 encoder layers and 6 decoder layers, tokens of 512 numbers, 8 heads. Between the attentions
> stands a plain network, applied to each token alone, that widens 512 to 2048 and comes back. Of the numbers that an encoder layer learns,
> which share belongs to attention: about a third, about a half, or nearly all?
>
> <details><summary>Answer</summary>
> A third. Attention has four matrices of 512 by 512, about 1.05 million numbers; the plain network has two of 512 by 2048, about 2.1 million. We count in section 3.
> </details>

## 1 · The plan

Four words first. A **layer** is a small machine that takes tokens, a table of shape (n, d_model), and returns tokens of the same shape. So
layers can be put one behind the other; that is a **stack**. Inside a layer are **sub-layers**: attention, or a plain network that treats
each token alone (the **feed-forward network**). Around each sub-layer stand a **residual connection** and a **norm**; section 2 says what
they are.

The **encoder** is a stack that reads the input. The **decoder** is a stack that writes the output, and looks at what the encoder left.
"""

# %%
from lesson_lib.chapters.c06_transformer import machine_figures as pictures

pictures.transformer_diagram()

# %% [markdown]
r"""
Follow the blue line from the top left. The text's characters become rows of a table, positions are added, and the encoder's layers work on
them. What the *last* encoder layer leaves is called the **memory** (orange). Every decoder layer looks at that memory. The ⊕ signs and the norms come in section 2, the table and
the logits in section 3.

You know everything here that says *attention*. There are three uses of it, and one function, `attend`, does them all:

| | queries from | keys and values from | mask |
|---|---|---|---|
| encoder's own attention | the input | the input | hides padding |
| decoder's own attention | the output so far | the output so far | causal, so that nothing looks ahead |
| attention to the memory (*cross-attention*) | the output so far | the memory | hides padding |

> **Predict.** The input has m = 22 characters, the output n = 10. What shape have the weights of one head in each of the three?
>
> <details><summary>Answer</summary>
> 22 × 22, 10 × 10, and 10 × 22: a row per query, a column per key.
> </details>

## 2 · One layer, part by part

### The feed-forward network

Two linear maps and a ReLU (negative numbers become 0) between:

$$\operatorname{FFN}(x) = W_2 \max(0, W_1 x + b_1) + b_2$$

It works on each token alone. Attention moves information *between* tokens, and this works on it *inside* a token.
"""

# %%
ffn = FeedForward(d_model=4, d_inner=8)
x = torch.randn(3, 4)
by_hand = (x @ ffn.w_in.weight.T + ffn.w_in.bias).clamp(min=0)
by_hand = by_hand @ ffn.w_out.weight.T + ffn.w_out.bias
assert_close(by_hand, ffn(x))
one_by_one = torch.stack([ffn(token) for token in x])
assert_close(one_by_one, ffn(x))
print("the same, token by token and all at once")

# %% [markdown]
r"""
> **Predict.** "Each token alone, the same map everywhere" is what another layer does that you may know from images: a convolution. With
> which kernel size?
>
> <details><summary>Answer</summary>
> One. A convolution with a kernel of one cell sees one place at a time, and uses the same weights at every place.
> </details>
"""

# %%
first, second = nn.Conv1d(4, 8, kernel_size=1), nn.Conv1d(8, 4, kernel_size=1)
with torch.no_grad():
    first.weight.copy_(ffn.w_in.weight[..., None])
    first.bias.copy_(ffn.w_in.bias)
    second.weight.copy_(ffn.w_out.weight[..., None])
    second.bias.copy_(ffn.w_out.bias)
as_convolutions = second(first(x.T[None]).relu())[0].T  # torch wants (1, channels, n)
assert_close(as_convolutions, ffn(x))
print("two convolutions with a kernel of size 1: the same numbers")

# %% [markdown]
r"""
### The residual connection

A sub-layer's output is *added* to its input: $x + \operatorname{sublayer}(x)$. So a layer that has learned nothing yet does little harm,
and every layer adds its part to a common sum. That sum, seen along the layers, is the **residual stream**. We watch it in section 7.

### The norm

Sums grow. A **norm** brings each token back to a fixed size. **LayerNorm** takes the d_model numbers of one token, subtracts their mean,
divides by their spread, then scales and shifts each column by learned numbers $g$ and $b$:

$$\operatorname{LayerNorm}(x) = g \cdot \frac{x - \operatorname{mean}(x)}{\sqrt{\operatorname{variance}(x) + \varepsilon}} + b$$

By hand, for the token (1, 3, 5, 7): the mean is 4, the differences are −3, −1, 1, 3. Their squares are 9, 1, 1, 9, so the variance is 20/4 = 5.
We divide by √5 = 2.236.
"""


# %%
def layer_norm(x, g, b, eps=1e-5):
    """Each row standardized, then scaled and shifted."""
    mean = x.mean(-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(-1, keepdim=True)
    return g * (x - mean) / (variance + eps).sqrt() + b


token = torch.tensor([[1.0, 3.0, 5.0, 7.0]])
show(layer_norm(token, g=torch.ones(4), b=torch.zeros(4)))

# %%
norm, theirs = LayerNorm(16), nn.LayerNorm(16)
with torch.no_grad():
    for parameters in zip(norm.parameters(), theirs.parameters(), strict=True):
        numbers = torch.randn(16)
        parameters[0].copy_(numbers)
        parameters[1].copy_(numbers)
y = 100 + 7 * torch.randn(5, 16)
assert_close(layer_norm(y, norm.weight, norm.bias), norm(y), atol=1e-4, rtol=1e-4)
assert_close(norm(y), theirs(y), atol=1e-4, rtol=1e-4)
show_source(blocks.standardize)

# %% [markdown]
r"""
−3 / 2.236 = −1.342, as printed. The variance divides by the count, 4, not by 3. And $\varepsilon$ stands *under the root*: it keeps the
division possible where all numbers are equal.

> **Predict.** A token's numbers differ by about 0.0001 only, so their variance is about 0.00000001 = 1e-8. What variance do they have behind a
> LayerNorm with ε = 1e-5?
>
> <details><summary>Answer</summary>
> Not 1. They are divided by √(1e-8 + 1e-5), and ε is a thousand times the variance: the result is about 1e-8 / 1e-5 = 0.001.
> </details>
"""

# %%
plain = LayerNorm(512)
for size in (1.0, 1e-2, 1e-4):
    out = plain(
        size * torch.randn(4000, 512, generator=torch.Generator().manual_seed(0))
    )
    variance = out.var(-1, correction=0).mean().item()
    print(f"tokens of size {size:g}: variance {variance:.3f} behind the norm")

# %% [markdown]
r"""
At 0.01 it is 0.0001 / (0.0001 + 0.00001) = 0.909. So "the result has mean 0 and variance 1" holds for tokens that are large against √ε = 0.003, and not for the tiny ones.

### The neighbour: BatchNorm

Image networks mostly used another norm before: **BatchNorm**. The formula is the same. What differs is which numbers share a mean.
"""

# %%
figures.who_shares_a_mean()

# %% [markdown]
r"""
LayerNorm: a token is standardized by its own numbers. BatchNorm: a *column* is standardized over all tokens of all sentences in the batch.
So in BatchNorm what becomes of your sentence depends on who else is in the batch. How much?

> **Predict.** Put one and the same sentence into 300 random batches, of 2, 4, ... 128 sentences, and measure how much its output varies.
> From 32 sentences to 64: does the spread halve, fall to 0.7, or stay?
>
> <details><summary>Answer</summary>
> BatchNorm: it falls to about 0.7 = 1/√2. Its mean is the mean of a random sample, and the error of such a mean falls with the root of the sample's size. LayerNorm: there is no spread at all.
> </details>
"""

# %%
generator = torch.Generator().manual_seed(0)
mine = torch.randn(1, 1, 8, generator=generator) + torch.randn(
    1, 6, 8, generator=generator
)
sizes, spread = [2, 4, 8, 16, 32, 64, 128], {"BatchNorm": [], "LayerNorm": []}
for size in sizes:
    outputs = {"BatchNorm": [], "LayerNorm": []}
    for _ in range(300):
        subject = torch.randn(
            size - 1, 1, 8, generator=generator
        )  # each sentence has one of its own
        others = subject + torch.randn(size - 1, 6, 8, generator=generator)
        batch = torch.cat([mine, others])
        outputs["BatchNorm"].append(BatchNorm(8)(batch)[0])
        outputs["LayerNorm"].append(LayerNorm(8)(batch)[0])
    for name, seen in outputs.items():
        spread[name].append(torch.stack(seen).detach().std(0).mean().item())
figures.company(sizes, spread["BatchNorm"])

# %%
steps = torch.tensor(sizes).log2().double()
slope = torch.linalg.lstsq(
    torch.stack([steps, torch.ones(7)], 1).double(),
    torch.tensor(spread["BatchNorm"]).log2().double()[:, None],
).solution[0]
verdict(
    "BatchNorm: the spread falls as a power of the batch size between -0.4 and -0.6",
    -0.6 < slope < -0.4,
)
verdict(
    "LayerNorm: no spread at all, at any batch size", max(spread["LayerNorm"]) < 1e-6
)

# %% [markdown]
r"""
A slope of −1/2 in such a picture, where both axes count doublings, is 1/√B. To use a trained network on one sentence, BatchNorm cannot ask
a batch. So it keeps running means while it trains, and uses those afterwards: `train()` and `eval()` give different outputs. LayerNorm has
nothing to keep.

Does that hurt the *training*? The stored run trains a tagger, which names each word's part of speech (lesson 01), with two encoder layers and one norm or the other, at
batches of 2 to 128 sentences. It is scored on words that can be two parts of speech. Every setting gets 1,000 steps and its best rate on validation sentences.
"""

# %%
from lesson_lib.chapters.c06_transformer.experiments import norms
from lesson_lib.experiments import results

stored = results("norms")["rows"]
trained = norms.best(stored, "batch", ("norm", "size"))


def curve(name):
    """Batch sizes, and lowest, middle and highest accuracy of three seeds."""
    seeds = [trained[name, size] for size in sizes]
    return (sizes, *([values[k] for values in seeds] for k in range(3)))


by_size = {"LayerNorm": curve("layer"), "BatchNorm": curve("batch")}
ahead = [
    b - l for b, l in zip(by_size["BatchNorm"][2], by_size["LayerNorm"][2], strict=True)
]
print("BatchNorm ahead by", [f"{a:+.2f}" for a in ahead])
figures.by_batch_size(by_size)

# %% [markdown]
r"""
With 2 sentences in a batch BatchNorm is behind, 0.67 against 0.69 (middle seeds; the bands do not touch). With 8 to 32 it is *ahead*, by 2 to 3
points, and from 64 on they are equal. (Both curves rise, since 1,000 larger batches show more sentences. For 2 and 4 sentences the best rate was
mostly the lowest that we tried.) So on this task small batches hurt BatchNorm only where they are very small. A reason: a batch of 2 sentences has
some 20 tokens, and BatchNorm averages over all of them. What speaks against it in a Transformer is less the accuracy than the company: padding, other
people's sentences, and two modes that differ.

### A layer, put together

Sub-layer, residual connection, norm; twice. Here is an encoder layer in two lines, with the parts of a real one:
"""


# %%
def encoder_layer(x, parts, mask=None):
    """As published: the norm stands behind the sum."""
    x = parts.norms[0](x + parts.attention(x, x, x, mask=mask).output)
    return parts.norms[1](x + parts.feed_forward(x))


layer = EncoderLayer(d_model=16, n_heads=4, d_inner=32).eval()
x = torch.randn(2, 5, 16)
assert_close(encoder_layer(x, layer), layer(x).output)
show_source(EncoderLayer.forward)

# %% [markdown]
r"""
`_around` puts the residual connection, the norm and **dropout** around a sub-layer. Dropout sets a tenth of the numbers to 0 while the model trains, at random, and scales the rest up by 1/0.9, so that sums keep their size; it makes the model rely on no single number. In the paper it stands in two places: on
each sub-layer's output, before the sum, and on the sum of embeddings and positions.

Is it torch's layer? Copy torch's weights and compare, with a mask. torch's masks say True = *hidden*; lesson 04 has the reason for
`masks_from_torch`.
"""

# %%
from lesson_lib.heads import masks_from_torch

theirs = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True).eval()
ours = EncoderLayer.from_torch(theirs)
hidden = torch.tensor(
    [[False] * 5, [False] * 3 + [True] * 2]
)  # the second text has 3 tokens
with torch.no_grad():
    expected = theirs(x, src_key_padding_mask=hidden)
    found = ours(x, **masks_from_torch(None, hidden)).output
assert_close(found[0], expected[0], atol=1e-5, rtol=1e-5)
assert_close(found[1, :3], expected[1, :3], atol=1e-5, rtol=1e-5)
decoder_theirs = nn.TransformerDecoderLayer(16, 4, 32, batch_first=True).eval()
decoder_ours = DecoderLayer.from_torch(decoder_theirs)
y = torch.randn(2, 7, 16)
ahead = torch.ones(7, 7).triu(1).bool()
expected = decoder_theirs(y, x, tgt_mask=ahead, memory_key_padding_mask=hidden)
found = decoder_ours(y, x, mask=causal(7), memory_mask=padding(torch.tensor([5, 3]), 5))
assert_close(found.output, expected, atol=1e-5, rtol=1e-5)
print("encoder layer and decoder layer: torch's numbers")

# %% [markdown]
r"""
## 3 · Count it

Write $d$ for d_model and $f$ for d_inner. An encoder layer has

- attention: $W_q, W_k, W_v, W_o$, all heads together $d \times d$ each: $4d^2$ (the paper's formulas have no biases there);
- the feed-forward network: $2df$ weights, $f + d$ biases;
- two norms: $2d$ each.

> **Predict.** A decoder layer has one sub-layer more. Which terms come twice, and what is the sum for d = 512, f = 2048?
>
> <details><summary>Answer</summary>
> Attention comes twice, 8d², and there are three norms, 6d. In all 8d² + 2df + f + d + 6d = 4,199,936.
> </details>
"""

# %%
d, f = 512, 2048
encoder_count = 4 * d**2 + (2 * d * f + f + d) + 2 * 2 * d
decoder_count = 8 * d**2 + (2 * d * f + f + d) + 3 * 2 * d


def count(module):
    """How many numbers it learns."""
    return sum(p.numel() for p in module.parameters())


with torch.device("meta"):  # shapes without memory
    whole = Transformer(37_000)
print(f"encoder layer  {encoder_count:11,}  {count(whole.encoder.layers[0]):11,}")
print(f"decoder layer  {decoder_count:11,}  {count(whole.decoder.layers[0]):11,}")
print(
    f"6 + 6 layers   {6 * (encoder_count + decoder_count):11,}  {count(whole.encoder) + count(whole.decoder):11,}"
)
print(f"37,000 words   {37_000 * d:11,}  {count(whole.embedding):11,}")
print(f"the machine    {' ':11}  {count(whole):11,}")
print(f"attention's share of an encoder layer: {4 * d**2 / encoder_count:.2f}")

# %% [markdown]
r"""
Formula on the left, module on the right. The paper's Table 3 gives the base model 65 million. With one table of 37,000 words for input,
output and the last step we count 63 million; the paper does not list its parts, so we cannot say where the other two are. Biases in
attention would add only 37 thousand.

One table for three uses: a word's row goes in, times √512, and the logits (a score for each word, before softmax) are the products of the
decoder's output with all rows.
"""

# %%
words = TokenEmbedding(n_tokens=11, d_model=6, dropout=0.0)
tokens = torch.tensor([[3, 3, 7]])
rows = words.table[tokens[0]] * 6**0.5
from lesson_lib.positions import sinusoidal

assert_close(words(tokens)[0], rows + sinusoidal(3, 6))
assert_close(words.logits(rows), rows @ words.table.T)
print(
    "into the machine:",
    tuple(words(tokens).shape),
    " out of it:",
    tuple(words.logits(rows).shape),
)

# %% [markdown]
r"""
## 4 · The norm behind, or before?

The published layer puts the norm *behind* the sum (**post-norm**). Nearly all later large models put it *before* the sub-layer, inside the branch
(**pre-norm**), and one more behind the last layer:

| | one sub-layer |
|---|---|
| post-norm | x ← norm(x + sublayer(x)) |
| pre-norm | x ← x + sublayer(norm(x)) |

In `lesson_lib` that is one switch, `norm_first`. Compare with the first picture: only the norms have moved.
"""

# %%
pictures.transformer_diagram(norm_first=True)

# %% [markdown]
r"""
Look at what that changes before any training: twelve layers with random weights, one batch of
sentences, one backward pass.

> **Predict.** In pre-norm nothing ever scales the sum x down. What happens to the size of a token from layer to layer?
>
> <details><summary>Answer</summary>
> It grows: every layer adds something to it. In post-norm a norm stands at the end of each layer, so the size is √d_model there (as long as g = 1 and b = 0, as before training).
> </details>
"""

# %%
from lesson_lib.models import tagger

sizes_of, streams = {}, {}
sentences = to_device(norms.batches(32)(torch.Generator().manual_seed(0)))
for name in ("post-norm", "pre-norm"):
    _ = torch.manual_seed(0)
    deep = to_device(norms.Tagger(12, norm_first=name == "pre-norm"))
    tagger.loss(deep, sentences).backward()
    grads = [part.feed_forward.w_out.weight.grad for part in deep.encoder.layers]
    sizes_of[name] = [grad.norm().item() for grad in grads]
    with torch.no_grad():
        passed = deep.encoder(deep.embed(sentences.words), weights=True).stream
    streams[name] = [tokens.norm(dim=-1).mean().item() for tokens in passed]
figures.gradients(sizes_of, streams)

# %%
post, pre = sizes_of["post-norm"], sizes_of["pre-norm"]
verdict(
    "post-norm: the last layer's gradient is over 5 times the first one's",
    post[-1] > 5 * post[0],
)
verdict("pre-norm: first and last differ by less than 4 times", max(pre) < 4 * min(pre))
verdict("post-norm: tokens leave every layer at one size, the root of 32", all(
    abs(size - 32**0.5) < 0.01 for size in streams["post-norm"][1:]))  # fmt: skip
verdict(
    "pre-norm: they grow from layer to layer",
    streams["pre-norm"] == sorted(streams["pre-norm"]),
)

# %% [markdown]
r"""
With plain gradient descent, a step that is right for post-norm's last layer would hardly move its first. (Xiong et al. 2020 prove for random weights that post-norm's last layer gets large gradients however deep the stack is; the fall towards the first they argue and measure. Adam, with which we train, rescales
each number's steps, and so repairs a part of it.) The paper's remedy is a **warm-up**: start with tiny steps, and let the learning rate grow for 4,000 steps.

$$\text{rate} = d_\text{model}^{-1/2} \cdot \min\bigl(\text{step}^{-1/2},\; \text{step} \cdot \text{warmup}^{-3/2}\bigr)$$

> **Predict.** At which step is the rate largest, and how large is it there, for d_model = 512 and 4,000 steps of warm-up?
>
> <details><summary>Answer</summary>
> Where the two branches are equal: at step 4,000. There it is 1/√(512 · 4000) = 0.0007.
> </details>
"""

# %%
from lesson_lib.training import warmup

at = list(range(1, 20_001, 50))
curves = {
    f"{w:,} steps": (at, [warmup(s, 512, w) for s in at]) for w in (1000, 4000, 8000)
}
show(peak=torch.tensor(warmup(4000, 512)), by_hand=torch.tensor((512 * 4000) ** -0.5))
figures.schedule(curves)

# %% [markdown]
r"""
What comes of it? The stored run trains taggers of 2, 6 and 12 layers, each for 400 steps, with both norms, with a warm-up and without.
"""

# %%
depth = norms.best(stored, "depth", ("norm_first", "rise", "layers"))
figures.by_depth(depth)

# %% [markdown]
r"""
Two layers: pre-norm is 3 points ahead. Twelve: pre-norm still has 0.83, and post-norm 0.52 to 0.53, no more than each class's most frequent tag is worth
(next cell): it has learned nothing from the context. Six lie between. The warm-up, 40 of 400 steps here, changes little in either; that is not what we
expected, and the paper's has 4,000 steps, ten times our whole training. So what this shows is that depth is hard for post-norm *in short trainings*; the published
model has six layers, was trained for 100,000 steps, and is post-norm.
"""

# %%
from lesson_lib.data.tagging import AMBIGUOUS, CLASSES

given = norms.sentences("test")
tags = [given.tags[given.classes == CLASSES.index(name)] for name in AMBIGUOUS]
most = sum(int(some.bincount().max()) for some in tags)
print(f"each class's most frequent tag: {most / sum(map(len, tags)):.3f} right")
nothing = all(max(depth[False, rise, 12]) < 0.53 for rise in (True, False))
verdict("post-norm, twelve layers: under 0.53 on every seed, warm-up or not", nothing)
verdict("pre-norm, twelve layers: over 0.8", min(depth[True, True, 12]) > 0.8)

# %% [markdown]
r"""
## 5 · The decoder: all at once, and one by one

A decoder writes. At every place it says how likely each character is as the *next* one. To learn that, it is shown the right text, shifted by
one place:
"""

# %%
from lesson_lib.data.dates import characters
from lesson_lib.models.translator import Vocabulary

vocabulary = Vocabulary(characters())
batch = vocabulary.batch([("3. märz 2021", "2021-03-03")])
answer = ["<", *"2021-03-03", ">"]  # < is the start, > is the end
print("goes in:      ", " ".join(f"{c:>3}" for c in answer[:-1]))
print("should answer:", " ".join(f"{c:>3}" for c in answer[1:]))
print("as numbers:   ", " ".join(f"{t:3}" for t in batch.target[0].tolist()))

# %% [markdown]
r"""
The last line is what the model sees: 1 is *start*, 2 is *end*. At each place the character *before* goes in, and the next one is asked for. The right characters go in even where the model would have
written a wrong one: this is **teacher forcing**. All eleven places can then be computed at once, in one pass.

> **Predict.** What would the decoder learn if its own attention had no causal mask?
>
> <details><summary>Answer</summary>
> To copy. The answer at place i goes in at place i + 1, and without a mask place i can look there. The loss would fall to nearly nothing, and the model could not write at all.
> </details>

Does the mask hold in the whole machine? Replace one character of what goes in, and see which answers move.
"""

# %%
_ = torch.manual_seed(1)
machine = Transformer(len(vocabulary), 2, 32, 4, 64, dropout=0.0).eval()
before = batch.target[:, :-1]
with torch.no_grad():
    logits = machine(batch.source, batch.lengths, before).logits[0]
    moved = torch.zeros(11, 11)
    for place in range(11):
        changed = before.clone()
        changed[0, place] = 20  # a letter, which no answer holds
        difference = machine(batch.source, batch.lengths, changed).logits[0] - logits
        moved[place] = difference.norm(dim=-1)
verdict(
    "no answer moves when a later character is replaced", (moved.tril(-1) == 0).all()
)
figures.causal_probe(moved)

# %% [markdown]
r"""
Below the diagonal everything is exactly 0. (On it and to its right, all later answers move.) The encoder's side has no such mask: every
answer sees all of the input.

### Writing

When the model writes, nobody knows the right characters. It starts with *start*, takes the likeliest next character, puts *that* in, and so
on until it writes *end*. This is called **greedy** decoding. One by one, like a recurrent net; but what goes in at each step is *all* it has
written so far, not only the last character.

> **Predict.** Feed the same eleven characters one by one instead of all at once. Are the logits the same?
>
> <details><summary>Answer</summary>
> Yes. Under the causal mask place i never saw more than the characters up to i. Whether the later ones are there already makes no difference.
> </details>
"""

# %%
with torch.no_grad():
    growing = [
        machine(batch.source, batch.lengths, before[:, : i + 1]).logits[0, -1]
        for i in range(11)
    ]
assert_close(torch.stack(growing), logits, atol=1e-5, rtol=1e-5)
print("11 passes over a growing text = one pass over the whole")

# %% [markdown]
r"""
Those eleven passes computed 1 + 2 + ... + 11 = 66 rows, and 55 of them for the second time or more. The keys and values of a character do not
change when more characters follow, since it cannot see them. So keep them: this is a **cache**, one for each decoder layer, and one for the keys and values of the memory, which never change at all.
"""

# %%
state = machine.start(batch.source, batch.lengths)  # the encoder runs once
with torch.no_grad():
    one_by_one = [
        machine.step(before[:, i : i + 1], state).logits[0, 0] for i in range(11)
    ]
assert_close(torch.stack(one_by_one), logits, atol=1e-5, rtol=1e-5)
cache = state.caches[0]
print(
    f"layer 1 keeps {len(cache.own)} characters of its own and {len(cache.cross)} of the memory"
)
show_source(Transformer.step)

# %% [markdown]
r"""
`step` is the same decoder, run on one new character; there is no second formula. That the two ways agree to 0.00001 is what makes the cache
safe. The stored run measures what it saves: a small translator writes answers of 10 to 200 characters, sixteen texts at a time.
"""

# %%
from lesson_lib.chapters.c06_transformer.experiments import translation

stored_translation = results("translation")["rows"]
figures.cost_of_writing([row for row in stored_translation if row["kind"] == "speed"])

# %% [markdown]
r"""
At 10 characters the cache hardly matters, at 200 it saves five sixths of the time. Without it the last character costs a pass over 200, and
every one before a pass over its own past; with it each costs one row. (Both lists were the same characters; the run checks that.)

## 6 · It translates

The task of lesson 01: dates as fifteen languages write them, into one standard form. No day that we test on occurs in the training, in any
language. There a recurrent net with attention solved it; here stands nothing but what you have just seen: two encoder and two decoder
layers, d_model = 64, 4 heads, pre-norm. Training takes less than a minute.
"""

# %%
from lesson_lib.models.translator import opened, translate

translator, history = translation.train(seed=0)
print(f"{count(translator):,} numbers learned")

# %% tags=["nbval-ignore-output"]
history

# %%
from lesson_lib.experiments import dates

pairs = dates.texts(1, "test")
answers = translate(translator, [pair.source for pair in pairs])
right = [made.text == pair.target for made, pair in zip(answers, pairs, strict=True)]
verdict("of 1,000 dates never seen at least 95 in 100 have no wrong character",
    sum(right) / len(right) >= 0.95, trained=True)  # fmt: skip

# %% [markdown]
r"""
The picture shows where the first decoder layer looks, the mean of its four heads.

*Do:* type a date in a language that you know; then a day that does not exist (31 februar 2021); then a word that is no date. *Look:* where
does the attention go while the month is written?
"""

# %%
from lesson_lib.widgets import AlignmentExplorer

AlignmentExplorer(
    translator, ["mittwoch, 3. märz 2021", "14 juillet 1989", "december 31, 2049"]
)

# %% [markdown]
r"""
<details><summary>What you should find</summary>
For the year the weights lie on the digits of the year, for the day on the day; for the month they spread over the letters of its name, and some of the weekday's. 31 februar gets an answer too, some other day, and the line below the picture says that no language writes it like that. A text that is no date gets an answer too, since
the model can do nothing else: it has never seen anything but dates. That line, which checks the answer against the fifteen languages, is not the model's.
</details>

Three seeds, stored, also for several dates in a row:
"""

# %%
figures.translations(translation.by_dates(stored_translation))

# %% [markdown]
r"""
One date: .999, .998 and .991 of the texts have no wrong character, on three seeds. Trained on one date and asked for two, the same model gets
*none*. Trained on rows of one to three it gets 0.89 of two and 0.51 of three (middle seed), and of rows of four not one, though nearly half of
the single dates in them are right. Lesson 01's recurrent net with additive attention had .955 and more of three dates, trained on rows of three alone, with less training. So at this size and
on this task the Transformer is no improvement; it learns one date well, and rows of dates slowly. Lesson 05 has a suspicion about four: places
that were never trained. We have not tested it here.


And its errors on one date, by language?
"""

# %%
figures.errors_by_language(
    [row for row in stored_translation if row["kind"] == "language"]
)

# %%
examples = [row["examples"] for row in stored_translation if row["kind"] == "language"]
for text, answer, made_of_it in [some[-1] for some in examples if some][:12]:
    print(f"{text:36} {answer}   it wrote {made_of_it}")

# %% [markdown]
r"""
37 wrong texts of 6,750, none of them by seed 0. The file keeps up to three for each seed and language; in all of those two digits of one number are
swapped (2002 becomes 2020), or a doubled digit loses one to a 0 (22 becomes 02), or the other way round. English and Latvian have most errors,
six languages none; with 9 in 450 at most, that order may be chance.

### Greedy is not the likeliest

> **Predict.** Two steps. First character: A with 0.6, B with 0.4. After A the best next one has 0.4; after B it has 1.0. What does greedy
> decoding write, and which text is the likeliest?
>
> <details><summary>Answer</summary>
> Greedy starts with A, and ends with 0.6 · 0.4 = 0.24. The text that starts with B has 0.4 · 1.0 = 0.40.
> </details>

**Beam search** keeps several beginnings side by side, the likeliest ones (here 4), lengthens each by every character, and keeps the likeliest
again. It may find texts that greedy decoding misses. Does it help here?
"""

# %%
for width in (1, 4):
    exact = [
        row["exact"]
        for row in stored_translation
        if row["kind"] == "test" and row["width"] == width
        if (row["trained_on"], row["dates"]) == ([1], 1)
    ]
    print(f"{width} beginning(s) side by side: {', '.join(f'{e:.3f}' for e in exact)}")

# %% [markdown]
r"""
Nothing, on one date. (On rows of three dates, where more is wrong, it found 12 to 24 texts in a thousand more.)

## 7 · The machine, opened

Here is the trained machine on one date. Small maps: every layer and head, for all three attentions. Choose a part, a layer, a head and a
token; the table beside the large map follows that token down the residual stream.

*Do:* find a head of "decoder to encoder" that looks at the year while the year is written. Find an encoder head in which the characters of the year look at each other. *Then* watch the column "norm" (here: the length of the token's row) and the change beside it: which layer changes the token most?
"""

# %%
from lesson_lib.chapters.c06_transformer.machine_explorer import MachineExplorer

MachineExplorer(
    lambda text: opened(translator, " ".join(text.lower().split())),
    ["3. märz 2021", "14 juillet 1989"],
)

# %% [markdown]
r"""
<details><summary>What you may find</summary>
In "decoder to encoder" most heads are busy with the part that is being written: the year's digits, then the month's letters, then the day's. In the encoder some maps show blocks: the year's characters look at the year. In the encoder the first layer adds most length, in the decoder the second adds more (the next figure shows it).
</details>
"""

# %%
inside = opened(translator, "3. märz 2021")
pictures.stream_norms(
    {"encoder": inside.encoder.stream, "decoder": inside.decoder.stream},
    alt="Length of the tokens' rows over the layers passed: the decoder's grow with every layer, the encoder's mostly in the first.",
)

# %% [markdown]
r"""
The curve is the mean over the tokens, the band goes from the shortest row to the longest. Nothing in pre-norm brings the stream back to a fixed size: the decoder's
rows grow from about 12 to about 60. The encoder's second layer adds hardly any length.

> **Predict.** Could the machine do without one of its heads? Say which part would hurt most if one head were silent: encoder, decoder's own,
> or decoder to encoder?
>
> <details><summary>Answer</summary>
> One would bet on "to the encoder": without it the decoder knows nothing of the input. The cell below says otherwise.
> </details>
"""

# %%
batch = to_device(translator.vocabulary.batch(pairs[:500]))
parts, inner = {}, translator.transformer
for i, (reads, writes) in enumerate(
    zip(inner.encoder.layers, inner.decoder.layers, strict=True), 1
):
    parts[f"encoder, layer {i}"] = reads.attention
    parts[f"decoder's own, layer {i}"] = writes.attention
    parts[f"to the encoder, layer {i}"] = writes.cross_attention


# %%
@torch.no_grad()
def right_without(attention, head):
    """Share of texts right at every place, while one head says nothing."""
    weight, width = attention.w_output.weight, attention.d_v
    kept = weight.clone()
    weight[:, head * width : (head + 1) * width] = 0  # W_o no longer reads that head
    logits = translator(batch.source, batch.lengths, batch.target[:, :-1]).logits
    weight.copy_(kept)
    wrong = (logits.argmax(-1) != batch.target[:, 1:]) & (batch.target[:, 1:] != 0)
    return 1 - wrong.any(1).float().mean().item()


shares = torch.tensor(
    [[right_without(part, h) for h in range(4)] for part in parts.values()]
)
figures.silenced(shares, list(parts))

# %% [markdown]
r"""
Here, with one seed, it is the *decoder's own* attention in layer 1: without its head 3 about a tenth of the texts stay right. Its other heads come next, and two encoder heads of layer 1. Silence one of the eight heads that look from the decoder to the encoder, and at most a few texts in a hundred are
lost: the others stand in. *Why* it is so, the table does not say.
"""

# %%
first, second = shares[:3], shares[3:]
verdict(
    "the head that is missed most stands in a first layer",
    first.min() < second.min(),
    trained=True,
)

# %% [markdown]
r"""

## 8 · Only the encoder: a small BERT

Take the encoder alone, and ask it for words. Hide some words of a text behind `[mask]`, and let the encoder guess them *from both sides*. No
labels are needed: any text will do. That is a **masked language model**; the best known is BERT (Devlin et al. 2018).

Our text is generated, so that we know what can be known. In these sentences a verb agrees in number with its subject ("keys ... have", "key
... has"), and other nouns stand between the two:
"""

# %%
from lesson_lib.chapters.c06_transformer import agreement

generator = torch.Generator().manual_seed(0)
drawn = agreement.draw(generator, 4, "test")
for words, length in zip(drawn.words, drawn.lengths, strict=True):
    print(agreement.text(words[:length]))
for rule, share in agreement.rules(agreement.draw(generator, 4000, "test")).items():
    print(f"{rule:13} names the verb's number in {share:.2f} of 4,000 sentences")

# %% [markdown]
r"""
"First noun" is right in 0.80: that is what a rule of thumb reaches, and what has to be beaten.

> **Predict.** "The keys to the cabinet [mask] old." A guess that sees only the two neighbours of the gap, "cabinet" and "old": which form
> does it prefer, *is* or *are*?
>
> <details><summary>Answer</summary>
> It leans to "is", since "cabinet" is a singular, and it is wrong: the keys are old.
> </details>

As published, 15 in 100 words are chosen to be guessed. Of these, 80 in 100 become `[mask]`, 10 a random word, and 10 stay as they are. The model
is asked for all of them, and cannot see which words were left or replaced: so it must have an opinion about every word.
"""

# %%
from lesson_lib.chapters.c06_transformer.bert import hide

hidden = hide(drawn.words, drawn.lengths, torch.Generator().manual_seed(1))
for seen, chosen, length in zip(hidden.seen, hidden.chosen, drawn.lengths, strict=True):
    places = chosen.nonzero()[:, 0].tolist()
    print(agreement.text(seen[:length]), " asked: word", *places)

# %% [markdown]
r"""
(Words count from 0.) The model has two layers, two heads each, and positions from a learned table:
"""

# %%
from lesson_lib.chapters.c06_transformer.bert import fill, maps
from lesson_lib.chapters.c06_transformer.experiments import bert as masked

bert, bert_history = masked.train(seed=0)
print(f"{count(bert):,} numbers learned")

# %% tags=["nbval-ignore-output"]
for guess in fill(bert, "the keys to the cabinet [mask] old"):
    print(f"{guess.word:8} {guess.probability:.3f}")

# %% [markdown]
r"""
All four likely forms are plural: the keys, not the cabinet, decide. How did it get there?
"""

# %%
figures.bert_history(bert_history.rows)

# %% [markdown]
r"""
The right-hand curve rises first: the model learns which *kind* of word may stand where. A word of the right kind is still one of many, so the
curve ends near 0.14, and cannot go far beyond. The verbs' number comes between steps 360 and 900, from a coin's half to 0.97: that is where the model finds
the subject.
"""

# %%
found = masked.guessed(bert)
by_counting = {sight: masked.guessed(sight) for sight in masked.SIGHTS}
agreeing = masked.agreement(bert)
verdict("hidden words: the cross-entropy is 0.1 below the best count", found["cross_entropy"]
    < min(count["cross_entropy"] for count in by_counting.values()) - 0.1, trained=True)  # fmt: skip
verdict("verbs in the right number: over 0.95, where every noun but the subject misleads",
    agreeing["misleading"] > 0.95, trained=True)  # fmt: skip

# %%
stored_bert = results("bert")["rows"]
figures.agreement([row for row in stored_bert if row["kind"] == "trained"])

# %% [markdown]
r"""
Left: with no noun between, the left neighbour *is* the subject (or its adjective stands before it), and counting does well. With one or more
between, counting falls to a coin's half. Right: where those nouns all have the other number, counting is fooled, and worse than a coin. The
BERT is right in over 99 of 100 of them, on all three seeds. It is better at hidden words in general too. Its **cross-entropy**, the mean of −ln of the probability given to the right word, is 1.97 to 1.98; the best count,
of both neighbours, has 2.54. (The unit of such a mean is called a *nat*, and a *bit* where the logarithm has base 2.)

### Which head finds the subject?

Ask each head: when the verb is hidden, how much weight does the gap put on the subject?
"""

# %%
looked = maps(bert, "the keys to the cabinet near the lamp [mask] old")
figures.bert_maps(looked.words, looked.weights)

# %%
figures.probe([row for row in stored_bert if row["kind"] == "probe"])

# %% [markdown]
r"""
Hatched is a control: if a head looked at a fixed distance from the gap, its favourite one, how often would the subject stand there? In seed 0 one head does what we hoped to see: in 99 of 100 sentences its largest weight lies on the subject. In seed 1 the best head does so in
half of them, in seed 2 in 28 of 100, less than a fixed distance would reach. Yet all three models are right in over 99 of 100 sentences.
*Something* tells them the number.

### A look is no proof

A head that looks at the subject *may* be what makes the verb agree. To find out, interfere: hide the subject from that head alone, and
count right verbs again.
"""

# %%
figures.interference([row for row in stored_bert if row["kind"] == "interference"])

# %% [markdown]
r"""
Seed 0: hide the subject from layer 2, head 1, and 9 of 100 verbs stay right. That is fewer than a coin gets, since the nouns that are left all
mislead. The look was the cause. In seed 1 the same head costs a third of the verbs, and another one, in layer 1, costs 40 of 100 when no word may see the
subject there.

Seed 2: hide the subject from the gap, in *all* heads: 95 of 100 stay right (plain bars, "everywhere"). The gap hardly needs to look at the subject. Hide
the subject from *every* word (hatched bars), and one head of layer 1 turns out to carry it: half of the verbs fall. So the number travels through other words, and
the gap reads it there. In the map of the gap's row nobody would have seen that. By the hatched bars, the head with the largest weight on the subject matters
most in seed 0 only.

So a map of weights is a lead. What it leads to is a test: change it, and count again. (Lesson 01 had the same surprise, in its tagger.)

## 9 · Only the decoder: a small GPT

Now the other half. Drop the encoder, and the attention to it; what is left of a decoder layer is an encoder layer under a causal mask. Let it
guess the next character of a text, at every place at once, and you have a **language model** that can write: it takes a character by
chance, with the probabilities that it has computed, puts it behind the text, and goes on. GPT is such a stack (Radford et al. 2018).

Our text is the manual that comes with Python, the topics behind `help("if")` and its like. The model reads characters. Topics are split into
training, validation and test; nothing that we test on was read.
"""

# %%
from lesson_lib.data import topics
from lesson_lib.experiments import gpt as writing
from lesson_lib.models.gpt import generate, next_characters

print(topics.licence())
writer, gpt_history = writing.train(seed=0)
print(f"{count(writer):,} numbers learned")

# %% tags=["nbval-ignore-output"]
print(gpt_history)
print(generate(writer, "The ", 300, temperature=0.8))

# %% [markdown]
r"""
Not sense, yet words, brackets, line breaks. In about half a minute it has learned spelling, mostly.

How does it write? By hand, eight lines: compute the logits of the last place, make probabilities of them, draw a character, append it, and
start again. (The model's context is 64 characters; longer texts are cut to fit.)
"""


# %%
def write(text, length, temperature, seed):
    """Continue a text, one drawn character after the other; no cache."""
    generator = torch.Generator().manual_seed(seed)
    tokens = writer.numbers(text)
    for _ in range(length):
        with torch.no_grad():
            logits = writer(to_device(tokens)[None])[0, -1].cpu().double()
        probabilities = (logits / temperature).softmax(-1)
        drawn = torch.multinomial(probabilities, 1, generator=generator)
        tokens = torch.cat([tokens, drawn])
    return "".join(writer.characters[token] for token in tokens[len(text) :])


by_hand = write("The ", 50, 0.8, seed=5)
verdict("the library's 50 characters are the same",
    by_hand == generate(writer, "The ", 50, temperature=0.8, seed=5))  # fmt: skip

# %% [markdown]
r"""
`generate` does the same, with a cache.

### Temperature and top-k

The model's logits become probabilities by softmax. Divide the logits by a **temperature** first: below 1 the likeliest characters get more,
above 1 the others catch up. At 0, where one cannot divide, the likeliest is taken, always. **Top-k** keeps the k likeliest characters and drops the rest.

> **Predict.** Logits 2, 1, 0. With temperature 0.5 they become 4, 2, 0. By which factor is the first likelier than the second now, and
> before?
>
> <details><summary>Answer</summary>
> e² = 7.4 now, e = 2.7 before: the factor is e to the power of the difference.
> </details>
"""

# %%
logits = torch.tensor([2.0, 1.0, 0.0])
for temperature in (0.5, 1.0, 2.0):
    print(
        temperature, [f"{p:.3f}" for p in (logits / temperature).softmax(-1).tolist()]
    )

# %%
from lesson_lib.chapters.c06_transformer.continuation_explorer import (
    ContinuationExplorer,
)

ContinuationExplorer(writer, start="The ")

# %% [markdown]
r"""
*Do:* start with "If the ", then with "def ". Turn the temperature to 0, then to 2. *Look:* at temperature 0 it soon goes round in circles:
the likeliest character after the likeliest text is always the same.

### How good is it?

The fair rivals are **n-gram models**: count in the training text which character follows which n − 1 characters. (What was never seen gets a share
too, from shorter contexts; the method is Kneser-Ney's.) Both are measured in
**bits per character**: the mean of $-\log_2$ of the probability given to the character that came. 2 to that power is the **perplexity**:
among how many equally likely characters the model hesitates, on average.

> **Predict.** A model that knows nothing gives each of 96 characters the same probability. How many bits?
>
> <details><summary>Answer</summary>
> log₂ 96 = 6.58, and the perplexity is 96.
> </details>
"""

# %%
stored_gpt = results("gpt")["rows"]
figures.bits(stored_gpt)

# %% [markdown]
r"""
The short GPT, 35 seconds of training and 64 characters of context, is about as good as a 5-gram model: 2.19 against 2.17 bits. That
rival is a count, and takes a second. The long one has three layers, three times the numbers (343,776), 128 characters of context, dropout, and four minutes; it has 2.05 bits, and beats all n-gram models up to n = 8, which level off at 2.09. What the
n-grams cannot do is use more: their table of contexts grows until nearly every context is new.

*What this does not show.* The manual is small, about 230,000 characters to train on. We did not try more. The short one ends at 1.26 nats on its training text, which is 1.8 bits; on the validation topics, which it has not read either, it has 1.87, and on the
test topics 2.19. The 5-gram has 1.84 and 2.17 there: the few test topics are harder. So only a small part of the gap is learning by heart. One seed for the long run, since it takes four minutes.

### The cache at work

To write a character the model needs the keys and values of the characters before it in its window. Without a cache it computes them anew each time.
"""

# %%
figures.cost_of_sampling([row for row in stored_gpt if row["kind"] == "cost"])

# %% [markdown]
r"""
For 1,000 characters 47,500 rows without the cache, and 1,963 with it; yet only a third of the time is saved. The window has 64 characters, so no pass is long, and
one small call costs nearly as much here as a large one. When the window is full, its older half is dropped and the rest is computed anew: hence
two rows for a character.
"""

# %%
same = [
    generate(writer, "The ", 100, seed=3, cached=cached) for cached in (True, False)
]
verdict("with the cache and without it: the same 100 characters", same[0] == same[1])

# %% [markdown]
r"""
## 10 · What the sources say

Each claim, with what this notebook has just found. ✓ holds, ◐ holds with a condition, ✗ corrected. (S2 is the source on the Transformer, with
code; S3 are notes on a lecture.)
"""


# %%
from lesson_lib.masks import window


def layers_needed(n, mask=None):
    """Encoder layers until the first of n tokens depends on the last."""
    for n_layers in range(1, n + 1):
        x = torch.randn(1, n, 8, requires_grad=True)
        Encoder(n_layers, 8, 2, 16).eval()(x, mask=mask).output[0, 0].norm().backward()
        if x.grad[0, -1].count_nonzero():
            return n_layers


_ = torch.manual_seed(0)
full = {n: layers_needed(n) for n in (2, 7, 127)}
near = {n: layers_needed(n, window(n, radius=1)) for n in (2, 4, 7)}
print("all may look at all    ", full)
print("only direct neighbours ", near)

# %% tags=["claim:transformer-1"]
claim(
    "transformer-1",
    {
        "one layer, however far": set(full.values()) == {1},
        "with a window of radius 1: n - 1 layers": all(
            needed == n - 1 for n, needed in near.items()
        ),
    },
)

# %%
with torch.device("meta"):  # shapes without memory
    torchs = nn.Transformer(batch_first=True)
stacks = [whole.encoder, whole.decoder]
per_layer = [count(stack.layers[0]) for stack in stacks]
both = sum(count(stack) for stack in stacks)
inner = count(whole.encoder.layers[0].feed_forward) / per_layer[0]
print(
    f"layers {per_layer}; 6 + 6 of them {both:,}; nn.Transformer {count(torchs):,}; with the table {count(whole):,}"
)
print(f"the feed-forward network's share of an encoder layer: {inner:.4f}")

# %% tags=["claim:transformer-2"]
claim(
    "transformer-2",
    {
        "6 encoder and 6 decoder layers by default": [
            len(stack.layers) for stack in stacks
        ]
        == [6, 6],
        "3,150,336 and 4,199,936 numbers each, 44,101,632 in all": per_layer
        == [3_150_336, 4_199_936]
        and both == 44_101_632,
        "nn.Transformer adds biases and two last norms: 44,140,544": count(torchs)
        == both + 6 * 3 * 4 * 512 + 2 * 2 * 512
        == 44_140_544,
        "37,000 words of 512 bring it to 63.0 million": round(count(whole) / 1e6, 1)
        == 63.0,
        "the width 2048, which no source names, makes two thirds of a layer": abs(
            inner - 2 / 3
        )
        < 0.001,
    },
)

# %% tags=["claim:transformer-3"]
_ = torch.manual_seed(0)
layer, x = EncoderLayer(8, 2, 32).eval(), torch.randn(2, 5, 8)
ffn, norm = layer.feed_forward, layer.norms[1]
middle = layer.norms[0](x + layer.attention(x, x, x).output)
inner = F.relu(F.linear(middle, ffn.w_in.weight, ffn.w_in.bias))
printed = F.linear(inner, ffn.w_out.weight, ffn.w_out.bias) + middle
printed = F.layer_norm(printed, (8,), norm.weight, norm.bias)
narrow = F.conv1d(middle.mT, ffn.w_in.weight[..., None], ffn.w_in.bias).relu()
narrow = F.conv1d(narrow, ffn.w_out.weight[..., None], ffn.w_out.bias).mT
claim(
    "transformer-3",
    {
        "two linear maps with ReLU, residual, norm: our layer": torch.allclose(
            layer(x).output, printed, atol=1e-5
        ),
        "two convolutions of size 1 give the same": torch.allclose(
            narrow, ffn(middle), atol=1e-5
        ),
    },
)

# %% [markdown]
r"""
> **Predict.** torch's BatchNorm gets one vector, shape (1, 8); then one picture, shape (1, 8, 2, 3). Which of the two raises an error while it trains?
>
> <details><summary>Answer</summary>
> The vector: one number per column has no spread. The picture has six places per column to average over.
> </details>
"""

# %%
numbers = torch.randn(
    20_000, 128, generator=torch.Generator("cpu").manual_seed(0), device="cpu"
)
off = {b: numbers[:, :b].mean(1).square().mean().sqrt().item() for b in (2, 8, 32, 128)}
print("batch, how far its mean is off, 1/sqrt(batch)")
for b, error in off.items():
    print(f"{b:5} {error:24.4f} {b**-0.5:14.4f}")


def runs(norm, *shape):
    try:
        return norm(torch.randn(shape)).shape == shape
    except ValueError:
        return False


x, layer_norm, batch_norm = 3 + torch.randn(2, 5, 8), LayerNorm(8), BatchNorm(8)

# %% tags=["claim:transformer-4"]
claim(
    "transformer-4",
    {
        "the mean of a batch is off by 1/sqrt(batch), to 3 %": all(
            abs(e * b**0.5 - 1) < 0.03 for b, e in off.items()
        ),
        "one vector alone: an error": not runs(nn.BatchNorm1d(8), 1, 8)
        and not runs(BatchNorm(8), 1, 8),
        "one image, one text: none": runs(nn.BatchNorm2d(8), 1, 8, 2, 3)
        and runs(BatchNorm(8), 1, 5, 8),
        "LayerNorm: train and eval alike": torch.equal(
            layer_norm.train()(x), layer_norm.eval()(x)
        ),
        "BatchNorm: not": not torch.allclose(
            batch_norm.train()(x), batch_norm.eval()(x), atol=0.1
        ),
        "LayerNorm: each token by itself": torch.allclose(
            layer_norm(x)[1, 4], layer_norm(x[1, 4])
        ),
    },
)

# %%
_ = torch.manual_seed(0)
layer, x, memory, given = (
    DecoderLayer(8, 2, 16).eval(),
    torch.randn(1, 4, 8),
    torch.randn(1, 6, 8),
    {},
)
for name in ("w_query", "w_key", "w_value"):
    part = getattr(layer.cross_attention, name)
    part.register_forward_hook(
        lambda part, x, made, name=name: given.update({name: x[0]})
    )
made = layer(x, memory, mask=causal(4), weights=True)
own = layer.norms[0](x + layer.attention(x, x, x, mask=causal(4)).output)
print("weights of the attention to the memory:", tuple(made.weights.cross.shape))

# %% tags=["claim:transformer-5"]
claim(
    "transformer-5",
    {
        "the query is made from the decoder's own attention": torch.allclose(
            given["w_query"], own
        ),
        "key and value are made from the memory": torch.equal(given["w_key"], memory)
        and torch.equal(given["w_value"], memory),
        "a row for each of 4 output tokens, a column for each of 6 input tokens": made.weights.cross.shape[
            -2:
        ]
        == (4, 6),
    },
)

# %%
_ = torch.manual_seed(0)
model = Transformer(11, 2, 8, 2, 16).eval()
source, before = torch.randint(11, (2, 6)), torch.randint(11, (2, 5))
calls = []
model.decoder.register_forward_hook(lambda *_: calls.append(1))
at_once = model(source, None, before).logits
training_calls = len(calls)
state = model.start(source, None)
one_by_one = torch.cat(
    [model.step(token, state).logits for token in before.split(1, dim=1)], 1
)
print(
    "runs of the decoder:",
    training_calls,
    "in training,",
    len(calls) - training_calls,
    "at inference",
)

# %% tags=["claim:transformer-6"]
claim(
    "transformer-6",
    {
        "in training one run for all 5 positions": training_calls == 1,
        "at inference one run for each": len(calls) == 1 + 5,
        "the same logits": torch.allclose(at_once, one_by_one, atol=1e-5),
    },
)


# %% [markdown]
r"""
The same source gives every mask its axis for the heads by `mask.unsqueeze(1)`. For padding, (b, 1, m), that is right. For a causal mask of shape
(n, n) it is not:
"""

# %% tags=["claim:mask-3"]
try:
    torch.randn(2, 4, 7, 7).masked_fill(~causal(7).unsqueeze(1), -torch.inf)
    fails = False
except RuntimeError:
    fails = True
scores = torch.zeros(2, 4, 4, 4)  # as many tokens as heads
table = scores.masked_fill(~causal(4).unsqueeze(1), -torch.inf).softmax(-1)
claim("mask-3", {
    "padding: the axis is where the heads are": padding(torch.tensor([2, 3]), 3).unsqueeze(1).shape == (2, 1, 1, 3),
    "causal, 7 tokens, 4 heads: an error": fails,
    "causal, 4 tokens, 4 heads: no error, and head 3 shows token 0 all later ones": table[0, 3, 0].min() > 0,
    "head 0 shows every token the first one only": (table[0, 0, :, 0] == 1).all(),
})  # fmt: skip

# %% [markdown]
r"""
> **Predict.** In the next block `dropout=0` is passed to the constructor. What share of the weights is 0 while it trains?
>
> <details><summary>Answer</summary>
> A tenth. The attention inside has a dropout of its own, 0.1, that nobody can reach.
> </details>

One source writes its own block and passes a `dropout` to its constructor. The attention inside has another dropout, of 0.1, which no argument
reaches. Here is that wiring, in short:
"""


# %%
from lesson_lib.attention import attend


class SourceBlock(nn.Module):
    """The source's wiring: the constructor's dropout stays outside of its attention."""

    def __init__(self, dropout):
        super().__init__()
        self.projections = nn.ModuleList(
            nn.Linear(64, 64, bias=False) for _ in range(3)
        )
        self.attention_dropout = nn.Dropout(
            0.1
        )  # a default of another class: nobody passes `dropout` on
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        q, k, v = (project(x) for project in self.projections)
        weights = self.attention_dropout(attend(q, k, v).weights)
        return x + self.dropout(weights @ v), weights


# %%
_ = torch.manual_seed(0)
x, block = torch.randn(8, 64, 64), SourceBlock(dropout=0.0)
dropped = block(x)[1]
kept = block.eval()(x)[1]
print(
    f"dropout=0 in training: {(dropped == 0).float().mean():.4f} of the weights are 0"
)
print(f"their rows sum to {dropped.sum(-1).min():.4f} ... {dropped.sum(-1).max():.4f}")

# %% tags=["claim:transformer-7"]
ours = EncoderLayer(64, 8, 128, dropout=0.5)
table = ours(x, weights=True).weights
claim(
    "transformer-7",
    {
        "with dropout=0 a tenth of the weights is dropped": abs(
            (dropped == 0).float().mean() - 0.1
        )
        < 0.01,
        "the weights returned do not sum to 1": dropped.sum(-1).min() < 0.95
        and dropped.sum(-1).max() > 1.05,
        "in eval mode they do": torch.allclose(kept.sum(-1), torch.ones(8, 64)),
        "ours returns the weights before dropout": torch.allclose(
            table.sum(-1), torch.ones(8, 8, 64)
        ),
    },
)

# %%
_ = torch.manual_seed(0)
x, tiny, eps = torch.randn(2, 5, 8), 1e-4 * torch.randn(5, 512), 1e-5
by_token, by_text = F.layer_norm(x, (8,)), F.layer_norm(x, (5, 8))
centred = tiny - tiny.mean(-1, keepdim=True)
variance = centred.square().mean(-1, keepdim=True)  # divided by the count
normed = F.layer_norm(tiny, (512,), eps=eps)
left = normed.var(-1, correction=0).mean()
print(f"numbers of size 0.0001 come out with variance {left:.4f}")
print(
    "[1, 3] becomes",
    [round(v, 4) for v in F.layer_norm(torch.tensor([1.0, 3.0]), (2,)).tolist()],
)

# %% tags=["claim:transformer-8"]
claim(
    "transformer-8",
    {
        "the shape names axes: (8,) gives each token mean 0, (5, 8) only each text": by_token.mean(
            -1
        )
        .abs()
        .max()
        < 1e-5
        < by_text.mean(-1).abs().max()
        and by_text.mean((1, 2)).abs().max() < 1e-5,
        "eps is under the root, the variance divides by the count": torch.allclose(
            normed, centred / (variance + eps).sqrt()
        ),
        "outside of the root it would differ by much": not torch.allclose(
            normed, centred / (variance.sqrt() + eps), rtol=0.1
        ),
        "the variance is not 1 but about 0.001": 0.0008 < left < 0.0012,
    },
)

# %%
_ = torch.manual_seed(0)
x, spread = 3 * torch.randn(2, 5, 8), {}
for norm_first in (False, True):
    layer = EncoderLayer(8, 2, 32, norm_first=norm_first).eval()
    spread[norm_first] = layer(x).output.var(-1, correction=0)
layer = EncoderLayer(8, 2, 32).eval()
middle = layer.norms[0](x + layer.attention(x, x, x).output)
print(
    "variance within a token: post-norm",
    f"{spread[False].mean():.4f}",
    "pre-norm",
    f"{spread[True].mean():.4f}",
)

# %% tags=["claim:transformer-9"]
claim(
    "transformer-9",
    {
        "residual, then norm, twice: our default": torch.allclose(
            layer(x).output, layer.norms[1](middle + layer.feed_forward(middle))
        ),
        "torch's default, too": not nn.TransformerEncoderLayer(8, 2, 32).norm_first,
        "so every token leaves with variance 1": (spread[False] - 1).abs().max() < 0.01,
        "pre-norm leaves the sum as it is": (spread[True] - 1).abs().max() > 1,
    },
)

# %% [markdown]
r"""
Are the inputs like those of Word2Vec, rows that another model made beforehand? No: the table is learned with the rest, and it is one table for
three uses.
"""

# %% tags=["claim:transformer-10"]
_ = torch.manual_seed(0)
model = Transformer(11, 2, 8, 2, 16, dropout=0.0)
table, tokens = model.embedding.table, torch.randint(11, (2, 5))
rows = model.embedding(tokens) - sinusoidal(5, 8)
tables = [name for name, p in model.named_parameters() if 11 in p.shape]
model(tokens, None, tokens).logits.square().mean().backward()
print("parameters with a row per word:", tables)
claim(
    "transformer-10",
    {
        "a row goes in times sqrt(8)": torch.allclose(
            rows, table[tokens] * 8**0.5, atol=1e-5
        ),
        "the same rows give the logits": torch.allclose(
            model.embedding.logits(torch.eye(8)), table.T
        ),
        "one table for input, output and logits": tables == ["embedding.table"],
        "it has a gradient: it is learned with the rest": table.grad.count_nonzero()
        > 0,
    },
)

# %% [markdown]
r"""
> **Predict.** Three encoder layers, three decoder layers. In which order do they run, and whose output does the *first* decoder layer read?
>
> <details><summary>Answer</summary>
> All encoder layers first, and the last one's. A picture with the two stacks side by side suggests pairs; the next cell wires such pairs and gets other numbers.
> </details>
"""

# %%
_ = torch.manual_seed(0)
model = Transformer(11, 3, 8, 2, 16).eval()
source, before, order, memories = (
    torch.randint(11, (2, 6)),
    torch.randint(11, (2, 5)),
    [],
    [],
)
for kind, stack in (("encoder", model.encoder), ("decoder", model.decoder)):
    for i, layer in enumerate(stack.layers, 1):
        layer.register_forward_pre_hook(
            lambda *_, name=f"{kind} {i}": order.append(name)
        )
for layer in model.decoder.layers:
    layer.register_forward_pre_hook(lambda layer, given: memories.append(given[1]))
made = model(source, None, before, weights=True)
print(" > ".join(order))
paired = model.embedding(before)
for layer, memory in zip(model.decoder.layers, made.encoder.stream[1:], strict=True):
    paired = layer(paired, memory, mask=causal(5)).output

# %% tags=["claim:transformer-11"]
claim(
    "transformer-11",
    {
        "all encoder layers run before the first decoder layer": [
            name[:7] for name in order[:6]
        ]
        == 3 * ["encoder"] + 3 * ["decoder"],
        "all decoder layers read the last encoder layer's output": all(
            memory is made.encoder.stream[-1] for memory in memories[:3]
        ),
        "in pairs the same weights give other numbers": not torch.allclose(
            paired, made.decoder.output, atol=1e-2
        ),
    },
)

# %%
_ = torch.manual_seed(0)
model = Transformer(11, 2, 8, 2, 16).eval()
source, before = torch.randint(11, (1, 6)), torch.randint(11, (1, 5))
made = model(source, None, before, weights=True)
alone = model.embedding.logits(
    model.decoder(model.embedding(before)[:, -1:], made.encoder.output).output
)
state = model.start(source, None)
steps = [model.step(token, state, weights=True) for token in before.split(1, dim=1)]
out, shares = made.decoder.output, made.logits.softmax(-1)
print("weights of the last step:", tuple(steps[-1].decoder.weights[0].own.shape))
print(
    f"the stack's output sums to {out[0, -1].sum():.4f}, its softmaxed logits to {shares[0, -1].sum():.4f}"
)

# %% tags=["claim:transformer-12"]
claim(
    "transformer-12",
    {
        "the previous output alone gives other logits": not torch.allclose(
            alone[:, -1], made.logits[:, -1], atol=1e-2
        ),
        "the newest as query, all 5 so far as keys": steps[-1]
        .decoder.weights[0]
        .own.shape[-2:]
        == (1, 5),
        "which gives the logits of the whole": torch.allclose(
            steps[-1].logits[:, -1], made.logits[:, -1], atol=1e-5
        ),
        "the stack's output is no distribution": out.min() < 0 and out.shape[-1] != 11,
        "a linear map and a softmax make one": torch.allclose(
            shares.sum(-1), torch.ones(1, 5)
        ),
    },
)

# %% tags=["claim:bert-1"]
from lesson_lib.chapters.c06_transformer.bert import changed

seen, lengths = to_device((torch.tensor([[5, 6, 7, 8, 9]]), torch.tensor([5])))
other = seen.clone()
other[0, 4] = 10
alone = to_device(~torch.eye(5, dtype=torch.bool)[None])
with torch.no_grad():
    free = [bert(words, lengths)[0, 0] for words in (seen, other)]
    with changed(bert, 0, blind=alone), changed(bert, 1, blind=alone):
        apart = [bert(words, lengths)[0, 0] for words in (seen, other)]
claim("bert-1", {
    "its parts: embeddings and an encoder": not any(
        isinstance(part, nn.RNNBase | nn.Conv1d) for part in bert.modules()),
    "another last word changes what it says of the first": not torch.allclose(*free),
    "not where each word may look only at itself": torch.equal(*apart),
    "it learned: verbs in the right number": agreeing["all"] > 0.95,
}, trained=True)  # fmt: skip

# %% [markdown]
r"""
## 11 · Three wrong ideas worth having once

**"Attention is all you need; the rest is plumbing."** The title of the paper, taken at its word. Put three attentions behind each other, with
random weights, eight tokens, a norm behind each; leave out the residual connection.

> **Predict.** Attention mixes values; each output is an average of all tokens. What becomes of the *differences* between the tokens?
>
> <details><summary>Answer</summary>
> They average out. After three layers all eight tokens point the same way (Dong, Cordonnier & Loukas 2021 prove how fast). The residual connection keeps what each token was.
> </details>
"""


# %%
from lesson_lib.heads import MultiHeadAttention


def alike(x):
    """Mean cosine between different tokens: 1 where all point the same way."""
    unit = F.normalize(x, dim=-1)
    return (((unit @ unit.T).sum() - len(x)) / (len(x) * (len(x) - 1))).item()


_ = torch.manual_seed(0)
start, attentions = torch.randn(8, 32), [MultiHeadAttention(32, 4) for _ in range(3)]
cosines = {}
for name, keep in (("without residual", 0), ("with residual", 1)):
    x, cosines[name] = start, []
    for attention in attentions:
        x = F.layer_norm(keep * x + attention(x, x, x).output, (32,))
        cosines[name].append(alike(x))
    print(f"{name:17}", [f"{cosine:.2f}" for cosine in cosines[name]])
verdict("without: over 0.99 after three layers", cosines["without residual"][-1] > 0.99)
verdict("with: under 0.3", cosines["with residual"][-1] < 0.3)

# %% [markdown]
r"""
And two thirds of the numbers in an encoder layer were not attention's, half of those in a decoder layer (section 3).

**"The decoder needs the answer to learn, so it cannot be tested."** It needs the *right characters before* each place while it learns. When it
is tested it gets none: it reads its own. All shares of right texts in section 6 are of that kind; the table of silent heads in section 7
is not, and says so.

> **Predict.** With the right characters before each place, is the share of right *characters* higher or lower than when it reads its own?
>
> <details><summary>Answer</summary>
> As a rule higher, or equal: one wrong character cannot lead to the next.
> </details>

"""

# %%
logits = translator(batch.source, batch.lengths, batch.target[:, :-1]).logits
real = batch.target[:, 1:] > 2  # neither padding nor the end
told = (logits.argmax(-1) == batch.target[:, 1:])[real].float().mean()
own = [a == b for made, pair in zip(answers[:500], pairs[:500], strict=True)
       for a, b in zip(made.text.ljust(10), pair.target, strict=False)]  # fmt: skip
verdict("told the right ones before: as many right characters, to within 0.002, or more",
    told >= sum(own) / len(own) - 0.002, trained=True)  # fmt: skip

# %% [markdown]
r"""
**"The temperature makes the model more creative."** It changes how the same probabilities are used; the model is not asked again. The order
of the characters stays:
"""

# %%
careful = [c for c, _ in next_characters(writer, "The ", temperature=0.5)]
wild = [c for c, _ in next_characters(writer, "The ", temperature=2.0)]
verdict(
    "the same ten characters in the same order at 0.5 and at 2",
    careful[:10] == wild[:10],
)

# %% [markdown]
r"""
## 12 · Exercises

Open [exercises/06_transformer](exercises/06_transformer.ipynb). If you do only one, repair the loss that teaches a decoder nothing: you will
meet that bug.

## 13 · Summary

- A layer is attention and a feed-forward network, each with a residual connection, a norm, and dropout while it trains. Two thirds of an encoder layer's numbers are in the feed-forward network, and half of a decoder layer's.
- LayerNorm standardizes a token by its own numbers; BatchNorm a column by the batch, and so by the company. ε stands under the root.
- Post-norm keeps the stream's size, and its first layers get small gradients; pre-norm lets the stream grow and trains at depths where post-norm here did not.
- Every decoder layer reads the *last* encoder layer's output. In training all places are computed at once, under the causal mask; in writing one after the other, with a cache, and the logits are the same.
- The encoder alone guesses hidden words (BERT); a causal stack alone writes (GPT).
- A head that looks at a word is a lead, not a proof: interfere, and count again.

**Sources.** Vaswani et al. 2017 (arXiv:1706.03762); Ba, Kiros & Hinton 2016 (arXiv:1607.06450); Ioffe & Szegedy 2015 (arXiv:1502.03167);
Xiong et al. 2020 (arXiv:2002.04745); Press & Wolf 2016 (arXiv:1608.05859); Devlin et al. 2018 (arXiv:1810.04805); Radford et al. 2018,
*Improving Language Understanding by Generative Pre-Training*; Linzen, Dupoux & Goldberg 2016 (arXiv:1611.01368); Dong, Cordonnier & Loukas
2021 (arXiv:2103.03404); the course's own source S2.

**Next**: lesson 07 asks whether a convolution is a special case of all this.
"""
