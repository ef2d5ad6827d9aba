# %% [markdown]
r"""
# 06e · What does the decoder alone learn?

*The* ... and then? Many characters may come. After *The statemen* hardly any but one. Somebody who can put a number on both can write: draw a character, put it behind the text, and go on.

**Afterwards you can** train a stack to write; say what rotary positions are worth; explain the temperature; choose between encoder, decoder and both.

**Time** about 45 minutes. **You need** parts [05b](05b_rotation.ipynb), [06a](06a_layer.ipynb) and [06d](06d_bert.ipynb). **Exercises**: [exercises/06_transformer](exercises/06_transformer.ipynb).

<details><summary>中文摘要</summary>
只用解码器:一叠带因果掩码的层,在每个位置猜下一个字符,就能写文章。位置编码很值钱:旋转位置 2.19 比特,学习的位置表 2.34,没有位置 3.52。
温度只改变概率的形状,不改变字符的先后次序:温度高,写出的真词变少,模型并没有更有想法。提示由同一叠层来读,不需要编码器。
</details>
"""

# %%
import math
import re

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor
from torch.testing import assert_close

from lesson_lib.chapters.c06_transformer import gpt_figures
from lesson_lib.chapters.c06_transformer.continuation_explorer import (
    ContinuationExplorer,
)
from lesson_lib.checks import check, hint, predict, solution, warm_up
from lesson_lib.data import topics
from lesson_lib.device import quick, to_device
from lesson_lib.experiments import gpt as writing
from lesson_lib.heads import merge_heads, split_heads
from lesson_lib.masks import causal
from lesson_lib.models.gpt import generate, next_logits
from lesson_lib.positions import rotary

_ = torch.manual_seed(0)
warm_up()

# %% [markdown]
r"""
## 1 · One stack that looks back

Take the decoder of 06b and drop the attention to the memory, since there is no memory. What is left is an encoder layer under a causal mask. GPT is a stack of such layers. At every place it guesses the next token. Our tokens are the characters of the manual that comes with Python. Below, each guess stands under the last character that was read for it:
"""

# %%
manual = " ".join(topics.texts("training").values())
line = 'The "while" statement is used for repeated execution'
assert line in manual
print("reads  ", line[:-1])
print("guesses", line[1:])

# %%
predict("questions_at_once")

# %% [markdown] tags=["exercise:next_loss"]
# Write the loss. Place $i$ has read tokens $0$ to $i$, and guesses token $i + 1$.

# %% [markdown]
r"""
The model has two layers of width 64 with four heads. Queries and keys are turned by their places (part 05b), and no code is added:
"""


# %%
def gpt_logits(gpt, tokens):
    x = gpt.embedding(tokens)  # (b, n, 64): no place is added
    ahead = causal(tokens.shape[1], device=tokens.device)
    for layer in gpt.encoder.layers:  # encoder layers with a causal mask
        x = x + turned_attention(layer, layer.norms[0](x), ahead)
        x = x + layer.feed_forward(layer.norms[1](x))
    return gpt.embedding.logits(gpt.encoder.norm(x))  # (b, n, 96)


def turned_attention(layer, x, ahead):
    parts = layer.attention
    projections = parts.w_query, parts.w_key, parts.w_value
    q, k, v = (split_heads(project(x), 4) for project in projections)
    q, k = rotary(q), rotary(k)  # turned by their places
    mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=ahead)
    return parts.w_output(merge_heads(mixed))


writer, _ = writing.train(seed=0)  # 2,600 batches of 8 windows: half a minute
drawn = topics.draw(torch.Generator().manual_seed(0), batch=2, length=63)
tokens = to_device(drawn)  # (2, 64)
assert_close(gpt_logits(writer, tokens), writer(tokens), atol=1e-4, rtol=1e-4)

# %% [markdown]
r"""
## 2 · How good is it?

We count in **bits per character**: the mean of $-\log_2 p$, where $p$ is the probability that the model gave to the character that came. Whoever knows nothing gives each of 96 characters 1/96; that costs $\log_2 96 = 6.58$ bits. On test topics, which it never read, our model needs 2.19.
"""

# %%
bits = writing.bits_per_character(writer)
assert quick() or 2.1 < bits < 2.3

# %%
predict("no_positions")

# %%
gpt_figures.stored_bits()

# %% [markdown]
r"""
Without positions it is 3.52 bits, with a learned table 2.34, with rotary positions 2.19 (medians). Each of three seeds gains at least 0.13 from the table to rotary. This is the payoff of 05b. A likely reason: rotary scores see distances, so a spelling learned at one place holds at all 64. The table must learn each place.

The fourth bar is a warning. A **5-gram count** looks up which character followed the last four in the training text. It has 2.17. Only the long GPT, with three times the numbers and four minutes of training (one seed), is clearly better: 2.05.

## 3 · It writes

Each step takes the logits of the last place, makes probabilities of them, draws a character and appends it. The model sees 64 characters at most.
"""


# %%
def continue_text(text, length, seed):
    generator = torch.Generator().manual_seed(seed)
    tokens = writer.numbers(text)
    for _ in range(length):
        with torch.no_grad():
            logits = writer(to_device(tokens)[None])[0, -1].cpu().double()
        drawn = torch.multinomial(logits.softmax(-1), 1, generator=generator)
        tokens = torch.cat([tokens, drawn])
    return "".join(writer.characters[token] for token in tokens[len(text) :])


assert continue_text("The ", 50, seed=5) == generate(writer, "The ", 50, seed=5)

# %% tags=["nbval-ignore-output"]
print("The " + generate(writer, "The ", 240))

# %% [markdown]
r"""
It makes no sense, yet there are words, brackets and line breaks. `generate` does the same with a **cache**: it keeps the keys and values of the characters before.

Every such writer has a slider. The logits are divided by a **temperature** before the softmax. Logits 2, 1, 0 become 4, 2, 0 at temperature 0.5, so the first is $e^2 = 7.4$ times as likely as the second, instead of $e = 2.7$ times.
"""

# %%
predict("which_heat")

# %% [markdown] tags=["exercise:tempered"]
# Write it. At temperature 0 nobody can divide: the likeliest character has probability 1.

# %%
logits = next_logits(writer, "The ")  # of the character behind it
shares = {t: (logits.double() / t).softmax(-1).cpu() for t in (0.5, 1.0, 2.0)}
orders = [p.argsort(descending=True).tolist() for p in shares.values()]
assert orders[0] == orders[1] == orders[2]
gpt_figures.temperatures(writer.characters, shares)

# %% [markdown]
r"""
All 96 characters keep their order; only the shape changes. **Entropy**, the mean surprise of a draw, rises from 3.4 bits at 0.5 to 5.4 at 2, of at most 6.58.

**"A higher temperature makes the model more creative."** The model computes the same logits at every temperature. What changes is how often the draw takes a character that the model holds unlikely. Which texts come out then? Count the words that stand in the manual:
"""

# %%
vocabulary, known = set(re.findall(r"\w+", manual)), {}
for t in (0, 0.5, 1.0, 2.0):
    text = generate(writer, "The ", 600, temperature=t)
    said = re.findall(r"\w+", text)[:-1]  # the last word is cut off
    known[t] = sum(word in vocabulary for word in said) / len(said)
assert quick() or known[0.5] - known[2.0] > 0.3
gpt_figures.known_words(known)

# %% [markdown]
r"""
At 0.5 nearly all words are the manual's, at 1 eight of ten, at 2 four of ten. The others are mostly misspelled. Heat brings variety and errors, no ideas.
"""

# %%
predict("at_zero")

# %% tags=["nbval-ignore-output"]
print("The " + generate(writer, "The ", 130, temperature=0))

# %%
ContinuationExplorer(writer, start="The ")

# %% [markdown]
r"""
At 0 it goes in circles. *Do:* start with "If the ", and turn the temperature up. **Top-k**, the second slider, keeps the $k$ likeliest characters and drops the others.

## 4 · Who reads the prompt?

**"It needs an encoder to understand the prompt."** The same stack reads it: every new character attends to all before. How much does it use? Guess the same test characters with more and more of the text before them:
"""

# %%
windows = topics.stream("test").unfold(0, 65, 23)  # 65 characters, every 23
lengths = [1, 2, 4, 8, 16, 32, 64]
surprise = []
with torch.no_grad():
    for n in lengths:
        prompts = windows[:, 64 - n : 64].split(64)
        guesses = [writer(to_device(prompt))[:, -1].cpu() for prompt in prompts]
        loss = F.cross_entropy(torch.cat(guesses), windows[:, 64])
        surprise.append(loss.item() / math.log(2))  # in bits
assert quick() or (surprise[0] > 3.8 and surprise[3] < 2.6)
gpt_figures.prompts(lengths, surprise)

# %% [markdown]
r"""
One character of prompt gives 4.0 bits, eight give 2.2. So the stack reads its prompt, without any encoder. Beyond eight characters this small model gains hardly anything: 64 give 2.2 as well.

The three forms of the Transformer:

| | sees | learns from | good for | today |
|---|---|---|---|---|
| encoder only | both sides | hidden words | finding, ranking, classifying | ModernBERT, E5 |
| decoder only | what came before | the next token | writing, chat, code | GPT, Llama, Qwen |
| both | a source, and its own text | pairs of texts | translation, speech to text | T5, Whisper |

## In real work

torch's attention with `is_causal=True` reads a prompt. Then a cache keeps keys and values, and each new token is one query:
"""

# %%
predict("one_query")

# %%
q, k, v = torch.randn(3, 1, 4, 5, 16)  # one text, four heads, five tokens
sdpa = F.scaled_dot_product_attention
at_once = sdpa(q, k, v, is_causal=True)

newest = q[:, :, -1:]  # beside all five cached keys
assert_close(sdpa(newest, k, v), at_once[:, :, -1:])
wrong = sdpa(newest, k, v, is_causal=True)
assert_close(wrong, v[:, :, :1])  # the value of the first key

# %% [markdown]
r"""
The bug that people meet: `is_causal=True` left on with a cache. The newest token then reads the first one alone. The other half of the bug is its place: the query stands at place 4, the length of the cache, and not at 0:
"""

# %%
assert_close(rotary(newest, start=4), rotary(q)[:, :, -1:])
assert not torch.allclose(rotary(newest), rotary(q)[:, :, -1:])

# %% [markdown]
r"""
## *The* once more
"""

# %% tags=["nbval-ignore-output"]
for text in ("The ", "The statemen"):
    p = next_logits(writer, text).double().softmax(-1).cpu()
    best = writer.characters[p.argmax()]
    print(f"{text!r}: {gpt_figures.entropy(p):.1f} bits; {best!r} has {p.max():.2f}")

# %% [markdown]
r"""
An entropy of 4.4 bits is that of $2^{4.4} = 21$ equally likely characters. Behind *The statemen* the model is nearly sure of *t*.

**To remember.** A causal stack that guesses the next token is a writer, and it reads its own prompt.

- Every place but the last is a question; shift by one.
- Rotary positions: 2.19 bits, a table 2.34, none 3.52.
- Temperature changes the shape, never the order.
- Encoders find, decoders write, both translate.
- With a cache: no causal flag, and the true place.

**Sources.** Radford et al. 2018, *Improving Language Understanding by Generative Pre-Training*; Su et al. 2021, RoFormer (arXiv:2104.09864); Fan et al. 2018, top-k (arXiv:1805.04833). Text: the Python documentation, © Python Software Foundation, PSF License. Seeds, claims: [evidence](evidence/06_transformer_evidence.ipynb).

**Next**: [07a · Convolution](07a_convolution.ipynb): is a convolution attention?
"""
