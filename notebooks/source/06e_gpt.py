# /// ideas
# [language_model]
# says = "a decoder without a source is a stack of encoder layers under a causal mask: GPT; at each position it gives every possible next token a logit, which makes it a language model"
# motive = "There is no source to read"
# shown = "def gpt_logits"
# action = 'predict("questions_at_once")'
#
# [shifted_loss]
# says = "n characters are n - 1 questions: logits without the last position, tokens without the first"
# motive = "under the last character that was read"
# shown = "must say"
# action = "Write the loss"
#
# [bits]
# says = "a character of probability p costs -log2 p bits; a model that knows nothing pays log2 96 = 6.58"
# motive = "What does a loss of 3 mean"
# shown = "bits\")"
# action = "fit("
#
# [temperature]
# says = "the temperature divides the logits before the softmax: it changes how even the probabilities are and never their order"
# motive = "How daring should the draw be"
# shown = "gpt_figures.temperatures"
# action = 'predict("which_heat")'
#
# [in_circles]
# says = "at temperature 0 the text goes in circles: once the last few characters return, so does the next choice"
# motive = "always takes the likeliest"
# shown = "temperature=0"
# action = 'predict("at_zero")'
#
# [positions]
# says = "positions are worth more than a bit: none 3.52, a learned table 2.34, rotary 2.19 bits on unseen text"
# motive = "What is worth how much"
# shown = "gpt_figures.stored_bits()"
# action = 'predict("no_positions")'
#
# [counting]
# says = "counting what followed the last four characters is as good as this network"
# motive = "Is that good"
# shown = "2.17"
# action = "gpt_figures.stored_bits()"
#
# [eight]
# says = "the stack reads its own prompt, with no encoder; this one uses about eight characters of it"
# motive = "How much of it does our model use"
# shown = "gpt_figures.prompts"
# action = 'predict("how_far")'
#
# [too_long]
# says = "beyond the length of its training a model fails without an error; hand in the last tokens only"
# motive = "accepts any length"
# shown = "positions"
# action = 'predict("longer")'
#
# [perplexity]
# says = "perplexity, 2 to the mean bits: among how many equally likely characters the model hesitates"
# motive = "Whoever puts a number on both"
# shown = "2 to the power of the bits"
# action = "for text in"
# ///

# %% [markdown]
r"""
{title}

*The* ... and then? Many characters may come. After *The statemen* hardly any but *t*. Whoever puts a number on both can write: draw the next character by these numbers, append it, and go on.

**Afterwards you can** write the loss of a language model and the line behind every temperature slider; say what a model pays for a character, and how much of its prompt it uses.

{about}

<details><summary>中文摘要 · Chinese</summary>
只用解码器:一叠带因果掩码的层,在每个位置给出下一个字符的概率,就能写文章,这就是语言模型。本课写出它的损失和温度,让它写字,
再用比特衡量它:位置编码值多少,数数能做到多好,它究竟用了提示里的多少个字符,以及文本比训练时更长会怎样。
</details>
"""

# %% tags=["imports"]
import math

import torch
import torch.nn.functional as F
from torch import nn

from lesson_lib.chapters.c06_transformer import gpt_figures
from lesson_lib.chapters.c06_transformer.continuation_explorer import (
    ContinuationExplorer,
)
from lesson_lib.chapters.c06_transformer.experiments import translation
from lesson_lib.course import *
from lesson_lib.data import topics
from lesson_lib.device import quick, to_device
from lesson_lib.experiments.gpt import bits_per_character
from lesson_lib.masks import causal
from lesson_lib.models.gpt import GPT
from lesson_lib.training import fit

_ = torch.manual_seed(0)
warm_up()

# %% [markdown]
r"""
## 1 · One stack that looks back

Take the decoder of 06b. There is no source to read, so cross-attention goes. What is left is a stack of 06a's encoder layers under a causal mask. This is a **GPT** (generative pre-trained Transformer). At each position it gives every possible next token a logit, which makes it a **language model**.

Our tokens are characters, of the help texts that come with Python. What the model must say stands here under the last character that was read: *h* under *T*.
"""

# %%
manual = " ".join(topics.texts("training").values())
line = 'The "while" statement is used for repeated execution'
assert line in manual
print("reads   ", line[:-1])
print("must say", line[1:])

# %%
predict("questions_at_once")

# %% [markdown] tags=["exercise:next_loss"]
# Write the loss. `logits` (b, n, 96) at position $i$ come from tokens 0 to $i$, and are to say token $i + 1$; `tokens` is (b, n).

# %% [markdown]
r"""
The model has two layers of width 64 and four heads, and its vocabulary has 96 characters. No codes are added to the embeddings. Inside the layers queries and keys are turned by their positions instead (rotary positions, 05b). So 06b's machine shrinks to three lines:
"""

# %%
writer = GPT(topics.CHARACTERS, n_layers=2, d_model=64, n_heads=4, context=64)
writer = to_device(writer)  # rotary by default


def gpt_logits(gpt, tokens):
    """At each position, the logits of the next character: (b, n, 96)."""
    x = gpt.embedding(tokens)
    x = gpt.encoder(x, mask=causal(tokens.shape[1], device=tokens.device)).output
    return gpt.embedding.logits(x)


# %% [markdown]
r"""
We train it with your loss in the loop of 06b, here called `fit`, on batches of 8 texts of 64 characters. What does a loss of 3 mean? To read it, we turn it into **bits**: a character to which the model gave the probability $p$ costs $-\log_2 p$. A model that knows nothing gives each character 1/96 and pays $\log_2 96 = 6.58$ bits. One that is sure and right pays 0.
"""

# %% tags=["nbval-ignore-output"]
loss_of = yours("next_loss")


def passages(generator):
    return topics.draw(generator, 8, length=63)  # (8, 64), from anywhere in the manual


history = fit(
    writer,
    passages,
    lambda gpt, tokens: loss_of(gpt_logits(gpt, tokens), tokens),
    steps=1800,
    lr=8e-3,
)
for row in history.rows[::3]:  # the loss is in natural logarithms: divide by ln 2
    print(f"step {row['step']:4}: {row['loss'] / math.log(2):.2f} bits")

# %% [markdown]
r"""
The loss falls from over «4» bits to about «1.9» (means of 180 steps).

## 2 · It writes

The text to be continued is the **prompt**. 06c took the likeliest token each time. Here we draw one by its probability, so that two texts differ. How daring should the draw be? Before the softmax the logits are divided by a number, the **temperature**. Logits 2, 1, 0 become 4, 2, 0 at temperature 0.5: the first character is then $e^2 = 7.4$ times as likely as the second, instead of $e = 2.7$ times.
"""

# %%
predict("which_heat")

# %% [markdown] tags=["exercise:tempered"]
# Write it, for logits of any shape (..., 96). Nobody can divide by 0; there let the likeliest character have probability 1.

# %%
heat = yours("tempered")


@torch.no_grad()
def continue_text(prompt, length, temperature=1.0, seed=0):
    """`length` characters that go on from the prompt."""
    generator = torch.Generator().manual_seed(seed)
    tokens = writer.numbers(prompt)  # (n,)
    for _ in range(length):
        seen = to_device(tokens[-64:])  # as many as in training, at most
        logits = gpt_logits(writer, seen[None])[0, -1]
        p = heat(logits.cpu().double(), temperature)
        drawn = torch.multinomial(p, 1, generator=generator)
        tokens = torch.cat([tokens, drawn])
    return "".join(writer.characters[token] for token in tokens[len(prompt) :])


# %% tags=["nbval-ignore-output"]
print("The " + continue_text("The ", 160))

# %% [markdown]
r"""
It makes no sense, and yet most of it are words and brackets as the manual has them. Here are the probabilities of the character after *The* and a blank, at three temperatures:
"""

# %% tags=["trained"]
with torch.no_grad():
    tokens = to_device(writer.numbers("The "))
    logits = gpt_logits(writer, tokens[None])[0, -1].cpu().double()
shares = {t: heat(logits, t) for t in (0.5, 1.0, 2.0)}
gpt_figures.temperatures(writer.characters, shares)

# %% tags=["proof"]
orders = [p.argsort(descending=True).tolist() for p in shares.values()]
assert orders[0] == orders[1] == orders[2]

# %% [markdown]
r"""
The order stays, and the bars level out. The title of each picture has the mean cost of a draw in bits, the **entropy**: the more even the bars, the higher it is.
"""

# %%
predict("at_zero")

# %% tags=["nbval-ignore-output"]
print("The " + continue_text("The ", 100, temperature=0))

# %% [markdown]
r"""
**"At temperature 0 it writes its best text."** It goes in circles. Why, section 3 finds out. *Do:* type "If the ", and move the temperature from 0 to 2. Where do the words break?
"""

# %% tags=["trained"]
ContinuationExplorer(writer, start="If the ")

# %% [markdown]
r"""
## 3 · What does it know?

Training text is no test. These are the bits for a character of topics that were kept for testing:
"""

# %% tags=["nbval-ignore-output"]
bits = bits_per_character(writer)
print(f"{bits:.2f} bits, with 32 to 64 characters before each")

# %% tags=["proof"]
assert quick() or 2.1 < bits < 2.4

# %% [markdown]
r"""
Is that good? A rival has no network at all: a **5-gram count** looks up which character followed the last four in the training text, and how often. (Where these four never stood there, it looks at the last three, and so on.) What is worth how much? These are models that were trained longer, for 2,600 steps:
"""

# %%
predict("no_positions")

# %%
gpt_figures.stored_bits()

# %% [markdown]
r"""
Without positions the model pays 3.52 bits, with a learned row for each position 2.34, with rotary positions 2.19. A likely reason for the last step: rotary scores depend on distances, so a spelling that was learned at one position holds at all 64.

The fourth bar is sobering: the count has 2.17 and is level with our network.

**"It needs an encoder to understand the prompt."** The same stack reads the prompt. How much of it does our model use? We let it say the same test characters after more and more of the text before them:
"""

# %%
predict("how_far")

# %% tags=["trained"]
windows = topics.stream("test").unfold(0, 65, 23)  # 65 characters, from every 23rd on
lengths = [1, 2, 4, 8, 16, 32, 64]
surprise = []
for n in lengths:
    with torch.no_grad():
        logits = gpt_logits(writer, to_device(windows[:, 64 - n : 64]))[:, -1].cpu()
    surprise.append(F.cross_entropy(logits, windows[:, 64]).item() / math.log(2))
gpt_figures.prompts(lengths, surprise)

# %% tags=["proof"]
assert quick() or (surprise[0] > 3.8 and surprise[3] < 2.6)
assert quick() or abs(surprise[3] - surprise[-1]) < 0.2

# %% [markdown]
r"""
With one character of prompt it pays about 4 bits, with eight about 2.3, and 56 more characters save hardly anything. So this model knows what eight characters tell: how words are spelled. That is why a count of four can keep up, and why the text goes in circles: once the last few characters return, the likeliest next one returns, too.

A larger model that is trained longer uses more of its prompt. This curve is how one finds out.

## In real work

Rotary positions need no table, so the model accepts any length, and raises no error. Here it is in the class that you carry away, where `encoder=False` leaves the decoder alone. It learned on 64 characters and now reads 256:
"""

# %%
predict("longer")

# %% tags=["trained"]
from carry import transformer as carried

again = carried.Transformer(96, encoder=False, rotary=True, activation=nn.GELU)
state = translation.carried_names(writer.state_dict())
again.load_state_dict({n.replace("encoder.", "decoder."): x for n, x in state.items()})
again = to_device(again)


def paid(texts):
    """Bits at each position: (b, n - 1)."""
    texts = to_device(texts)
    with torch.no_grad():
        logits = again(texts[:, :-1])
    return F.cross_entropy(logits.mT, texts[:, 1:], reduction="none") / math.log(2)


long = paid(topics.stream("test").unfold(0, 257, 101)).mean(0)  # (256,)
cut = paid(topics.stream("test").unfold(0, 65, 101)[2:]).mean(0)  # the last 64 alone

# %% tags=["nbval-ignore-output"]
for first in range(0, 256, 64):
    print(f"positions {first:3} to {first + 63}: {long[first : first + 64].mean():.1f} bits")
print(f"the last position, all before it: {long[-1]:.1f} bits; 64 of them: {cut[-1]:.1f}")

# %% tags=["proof"]
assert quick() or (long[:64].mean() < 2.6 and long[192:].mean() > 4 and cut[-1] < 2.8)

# %% [markdown]
r"""
Up to 64 all is well. Far beyond, the model pays nearly as much as one that knows nothing: it meets distances that it never met in training (05c). So hand in the last 64 tokens only, as `continue_text` does, and measure the bits at the length at which a model is to be used.

## To carry away

`write` of 06c draws with this function; at temperature 0 it is your loop of 06c:
"""

# %%
show_source(carried.probabilities)

# %% [markdown]
r"""
`top_k` keeps the k likeliest tokens, and `top_p` the fewest that have p together; both cut off the many unlikely ones. The three forms of the Transformer are now complete:

| | its mask hides | learns to say | good for |
|---|---|---|---|
| encoder alone (06d) | padding | hidden words | finding, classifying |
| decoder alone | what comes later | the next token | writing, chat, code |
| both (06b) | each its own | the answer's next token | translation |

## The first word once more
"""

# %% tags=["nbval-ignore-output"]
cost = {}
for text in ("The ", "The statemen"):
    with torch.no_grad():
        tokens = to_device(writer.numbers(text))
        p = gpt_logits(writer, tokens[None])[0, -1].cpu().double().softmax(-1)
    cost[text], best = gpt_figures.entropy(p), p.argmax()
    print(f"{text!r}: {cost[text]:.1f} bits, likeliest {writer.characters[best]!r} {p[best]:.2f}")

# %% tags=["proof"]
assert quick() or (16 < 2 ** cost["The "] < 32 and 2 ** cost["The statemen"] < 1.5)

# %% [markdown]
r"""
2 to the power of the bits is the **perplexity**: after *The* the model hesitates as among some twenty equally likely characters, and after *The statemen* among hardly more than one. So it has put a number on both.

**To remember.** A causal stack that says the next token is a writer, and it reads its own prompt.

- Every position but the last is a question; shift by one.
- A temperature changes how even the probabilities are, never their order.
- Measure how much of its prompt a model uses, and where it stops to work.

**Sources.** Radford et al. 2018, *Improving Language Understanding by Generative Pre-Training*; Su et al. 2021, RoFormer (arXiv:2104.09864); Fan et al. 2018, top-k (arXiv:1805.04833). Text: the Python documentation, © Python Software Foundation, PSF License. Seeds: [evidence](evidence/06_transformer_evidence.ipynb).

**Next**: [07a · Convolution](07a_convolution.ipynb), or on the core path [11b · Exact and fast](11b_exact_and_fast.ipynb).
"""
