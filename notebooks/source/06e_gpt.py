# %% [markdown]
r"""
{title}

*The* ... and then? Many characters may come. After *The statemen* hardly any but one. Whoever puts a number on both can write.

**Afterwards you can** write the loss that makes a stack a writer; say what positions are worth; explain the temperature; choose between encoder, decoder and both.

{about}

<details><summary>中文摘要 · Chinese</summary>
只用解码器:一叠带因果掩码的层,在每个位置猜下一个字符,就能写文章。位置编码很值钱:旋转位置 2.19 比特,学习的位置表 2.34,没有位置 3.52。
温度只改变概率的形状,不改变字符的先后次序:温度高,就更常抽到少见的字符,写出的真词变少。提示由同一叠层来读,不需要编码器。
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
from lesson_lib.checks import check, hint, predict, solution, warm_up, yours
from lesson_lib.data import topics
from lesson_lib.device import quick, to_device
from lesson_lib.experiments.gpt import bits_per_character
from lesson_lib.models.gpt import GPT, generate, next_logits, window_start
from lesson_lib.positions import rotary
from lesson_lib.training import fit

_ = torch.manual_seed(0)
warm_up()

# %% [markdown]
r"""
## 1 · One stack that looks back

Take the decoder of 06b. There is no source to read, so cross-attention goes. What is left is an encoder layer under a causal mask; GPT is a stack of such layers. At every place it gives each possible next token a probability; that makes it a **language model**. Our tokens are the characters of the manual that comes with Python. Each guess stands under the last character read for it: *h* under *T*.
"""

# %%
manual = " ".join(topics.texts("training").values())
line = 'The "while" statement is used for repeated execution'
assert line in manual
print("reads  ", line[:-1])
print("wanted ", line[1:])

# %%
predict("questions_at_once")

# %% [markdown] tags=["exercise:next_loss"]
# Write the loss. Place $i$ has read tokens $0$ to $i$, and guesses token $i + 1$.

# %% [markdown]
r"""
Ours has two layers of width 64, four heads and a table of 96 characters. No place is added to its rows: queries and keys are turned, as in 05b.
"""

# %%
sizes = {"n_layers": 2, "d_model": 64, "n_heads": 4, "context": 64}
writer = to_device(GPT(topics.CHARACTERS, positions="rotary", **sizes))


def passages(generator, batch=8):
    return topics.draw(generator, batch, length=63)  # (batch, 64)


tokens = to_device(passages(torch.Generator().manual_seed(0), batch=2))
logits = writer(tokens)  # a score for each character
print(tuple(tokens.shape), tuple(logits.shape))
assert_close(writer(tokens[:, :40]), logits[:, :40])

# %% [markdown]
r"""
The last line: without the last 24 characters, the first 40 places say the same: they do not read those 24.

Now train it with your loss (ours, until it passes) in 06b's loop, `fit`. We print it in bits: a character to which the model gave the probability $p$ costs $-\log_2 p$. Whoever knows nothing gives each 1/96, and pays $\log_2 96 = 6.58$ bits.
"""

# %% tags=["nbval-ignore-output"]
loss_of = yours("next_loss")
history = fit(
    writer,
    passages,
    lambda gpt, tokens: loss_of(gpt(tokens), tokens),
    steps=1800,
    lr=8e-3,
)
for row in history.rows[::3]:
    print(f"step {row['step']:4}: {row['loss'] / math.log(2):.2f} bits")

# %% [markdown]
r"""
## 2 · How good is it?

The loss falls from «4» bits to «1.9» (means of 180 steps), on text that is read again and again. Now the **bits per character** of topics kept for testing:
"""

# %%
bits = bits_per_character(writer)

# %% tags=["proof"]
assert quick() or 2.1 < bits < 2.3

# %% [markdown]
r"""
About 2.2. Counting, in the training text, what follows the last character gives 3.85. A **5-gram count** looks up what followed the last four, and mixes in shorter contexts for fours that it never met. *Long* is a GPT with three times the parameters and four minutes of training.
"""

# %%
predict("no_positions")

# %%
gpt_figures.stored_bits()

# %% [markdown]
r"""
Without positions 3.52 bits, little better than the last character alone; with a learned row for each place 2.34, with rotary positions 2.19 (medians of three seeds). A likely reason: rotary scores see distances, so a spelling learned at one place holds at all 64.

The fourth bar is sobering: mere counting, 2.17, is level with our network, 2.19. The long GPT has 2.05, in the one run we made.

## 3 · It writes

The text to be continued is the **prompt**. Each step makes probabilities of the last place's logits, draws a character and appends it.

Before the softmax, logits are divided by a **temperature**. Logits 2, 1, 0 become 4, 2, 0 at 0.5: the first is $e^2 = 7.4$ times as likely as the second, instead of $e = 2.7$ times.
"""

# %%
predict("which_heat")

# %% [markdown] tags=["exercise:tempered"]
# Write it. Nobody can divide by 0; there let the likeliest have probability 1.

# %% [markdown]
r"""
The model sees 64 characters at most. When they are full, `window_start` drops the older half:
"""


# %%
heat = yours("tempered")


def continue_text(prompt, length, temperature=1.0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    tokens = writer.numbers(prompt)
    for _ in range(length):
        seen = tokens[window_start(len(tokens), 64) :]
        with torch.no_grad():
            logits = writer(to_device(seen)[None])[0, -1].cpu().double()
        p = heat(logits, temperature)
        drawn = torch.multinomial(p, 1, generator=generator)
        tokens = torch.cat([tokens, drawn])
    return "".join(writer.characters[token] for token in tokens[len(prompt) :])


assert continue_text("The ", 80) == generate(writer, "The ", 80)
assert_close(next_logits(writer, manual[:100]), next_logits(writer, manual[64:100]))

# %% tags=["nbval-ignore-output"]
print("The " + generate(writer, "The ", 160))

# %% [markdown]
r"""
No sense, yet words. `generate` does so with a cache, which keeps the keys and values of earlier characters. The last assertion shows the limit: of 100 characters the first 64 change nothing.

One guess, three temperatures:
"""

# %% tags=["trained"]
logits = next_logits(writer, "The ")  # of the character behind it
shares = {t: heat(logits.double().cpu(), t) for t in (0.5, 1.0, 2.0)}
orders = [p.argsort(descending=True).tolist() for p in shares.values()]
assert orders[0] == orders[1] == orders[2]
gpt_figures.temperatures(writer.characters, shares)

# %% [markdown]
r"""
All 96 characters keep their order; the bars level out. **Entropy**, the bits that a draw costs on average, rises by about two bits from 0.5 to 2, of at most 6.58.

**"A higher temperature makes the model more creative."** The logits stay the same; the draw takes unlikely characters more often. Count the words that stand in the manual:
"""

# %% tags=["trained"]
vocabulary, known = set(re.findall(r"\w+", manual)), {}
for t in (0, 0.5, 1.0, 2.0):
    text = generate(writer, "The ", 400, temperature=t)
    said = re.findall(r"\w+", text)[:-1]  # the last word is cut off
    known[t] = sum(word in vocabulary for word in said) / max(len(said), 1)
gpt_figures.known_words(known)

# %% tags=["proof"]
assert quick() or known[0.5] - known[2.0] > 0.3

# %% [markdown]
r"""
At 0 and 0.5 (nearly) all words are the manual's, at 1 most of them, at 2 a minority. Heat brings misspellings; we measured nothing else.
"""

# %%
predict("at_zero")

# %% tags=["nbval-ignore-output"]
print("The " + generate(writer, "The ", 100, temperature=0))

# %% tags=["trained"]
ContinuationExplorer(writer, start="The ")

# %% [markdown]
r"""
It goes in circles. *Do:* start with "If the ", and move the temperature from 0 to 2: the lower bars level out, and words break. **Top-k** keeps the $k$ likeliest characters.

## 4 · Who reads the prompt?

**"It needs an encoder to understand the prompt."** The same stack reads it. How much does it use? Guess the same test characters from more and more of the text before them:
"""

# %% tags=["trained"]
windows = topics.stream("test").unfold(0, 65, 23)  # 65 characters, every 23
lengths = [1, 2, 4, 8, 16, 32, 64]
surprise = []
with torch.no_grad():
    for n in lengths:
        prompts = windows[:, 64 - n : 64].split(64)
        guesses = [writer(to_device(prompt))[:, -1].cpu() for prompt in prompts]
        loss = F.cross_entropy(torch.cat(guesses), windows[:, 64])
        surprise.append(loss.item() / math.log(2))  # in bits
gpt_figures.prompts(lengths, surprise)

# %% tags=["proof"]
assert quick() or (surprise[0] > 3.8 and surprise[3] < 2.6)

# %% [markdown]
r"""
One character of prompt gives about 4 bits, eight about 2.3, and 64 hardly less (in section 2 nearly all had 32 to 64). It uses about eight characters of its prompt, with no encoder. Understanding is another matter: a count would show a similar curve.

The three forms of the Transformer:

| | sees | learns from | good for |
|---|---|---|---|
| encoder only | both sides | hidden words | finding, ranking, classifying |
| decoder only | what came before | the next token | writing, chat, code |
| both | a source, and its own text | a source and its answer | translation, speech to text |

## In real work

A cache leaves one query beside all keys. What does `is_causal=True` do then?
"""

# %%
predict("one_query")

# %%
q, k, v = torch.randn(3, 1, 4, 5, 16)  # one text, four heads, five tokens
sdpa = F.scaled_dot_product_attention
at_once = sdpa(q, k, v, is_causal=True)

newest = q[:, :, -1:]  # beside its own key and four cached ones
print(tuple(newest.shape), tuple(k.shape))
assert_close(sdpa(newest, k, v), at_once[:, :, -1:])
wrong = sdpa(newest, k, v, is_causal=True)
assert_close(wrong, v[:, :, :1])  # the value of the first key

# %% [markdown]
r"""
The query's place goes wrong as easily. Four keys were cached before it, so its place is 4, and not 0:
"""

# %%
assert_close(rotary(newest, start=4), rotary(q)[:, :, -1:])
assert not torch.allclose(rotary(newest), rotary(q)[:, :, -1:])

# %% [markdown]
r"""
## The first word once more
"""

# %% tags=["nbval-ignore-output"]
bits, best = {}, {}
for text in ("The ", "The statemen"):
    p = next_logits(writer, text).double().softmax(-1).cpu()
    bits[text], best[text] = gpt_figures.entropy(p), p.max()
    print(
        f"{text!r}: {bits[text]:.1f} bits; {writer.characters[p.argmax()]!r} has {best[text]:.2f}"
    )

# %% tags=["proof"]
assert quick() or (16 < 2 ** bits["The "] < 30 and best["The "] < 0.2)
assert quick() or (2 ** bits["The statemen"] < 1.2 and best["The statemen"] > 0.9)

# %% [markdown]
r"""
2 to the power of the bits is the **perplexity**: behind *The* the model guesses as among some twenty characters. Behind *The statemen* it is nearly sure of *t*.

**To remember.** A causal stack that guesses the next token is a writer, and it reads its own prompt.

- Every place but the last is a question; shift by one.
- Rotary positions: 2.19 bits, a table 2.34, none 3.52.
- A temperature above 0 changes the shape, never the order.
- Encoders find, decoders write, both translate.

**Sources.** Radford et al. 2018, *Improving Language Understanding by Generative Pre-Training*; Su et al. 2021, RoFormer (arXiv:2104.09864); Fan et al. 2018, top-k (arXiv:1805.04833). Text: the Python documentation, © Python Software Foundation, PSF License. Seeds: [evidence](evidence/06_transformer_evidence.ipynb).

**Next**: [07a · Convolution](07a_convolution.ipynb), or on the core path [11b · Exact and fast](11b_exact_and_fast.ipynb).
"""
