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
# says = "a loss of -ln p divided by ln 2 counts bits; 2 to the power of the bits is the perplexity, among how many equally likely characters a model hesitates; 96 for one that knows nothing"
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
# [counting]
# says = "counting what followed the last four characters is as good as this network; a larger one beats it"
# motive = "Is that good"
# shown = "gpt_figures.stored_bits()"
# action = 'predict("count_or_network")'
#
# [eight]
# says = "the stack reads its own prompt, with no encoder; this one uses about eight characters of it"
# motive = "How much of its prompt does our model use"
# shown = "gpt_figures.prompts"
# action = 'predict("how_far")'
#
# [too_long]
# says = "beyond the length of its training a model fails without an error; hand in the last tokens only"
# motive = "accepts any length"
# shown = "positions"
# action = 'predict("longer")'
#
# [top_p]
# says = "top_p keeps the likeliest tokens that have p together, many where the model is unsure and one where it knows"
# motive = "How many characters have 0.9 together"
# shown = "of 96"
# action = "carried.probabilities(after"
#
# [three_forms]
# says = "encoder alone, decoder alone and both differ in what their masks hide and in what they learn to say"
# motive = "three forms of the Transformer"
# shown = "its mask hides"
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

from lesson_lib.chapters.c06_transformer import gpt_figures
from lesson_lib.chapters.c06_transformer.continuation_explorer import (
    ContinuationExplorer,
)
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

Take the decoder of 06b. There is no source to read, so cross-attention goes. What is left of each layer is attention and a feed-forward network, that is, an encoder layer of 06a under a causal mask. A stack of such layers is a **GPT** (*generative*: it writes; *pre-trained*: on any text, before it is given a task; Transformer). At each position it gives every possible next token a logit, which makes it a **language model**.

Our tokens are 96 characters, and our text is the manual that comes with Python, with a help text for each of its topics. Some topics are kept for testing. What the model must say stands here under the last character that was read: *h* under *T*.
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
The model has two layers of width 64 and four heads. In its feed-forward networks a rounded ReLU (GELU) stands in place of the ReLU, as in GPTs. No codes are added to the embeddings. Inside the layers queries and keys are turned by their positions instead (rotary positions, 05b). So 06b's machine shrinks to an embedding, one stack, and the logits from the same table of embeddings:
"""

# %%
sizes = {"n_layers": 2, "d_model": 64, "n_heads": 4}
writer = to_device(GPT(topics.CHARACTERS, context=64, **sizes))  # context: of its training


def gpt_logits(gpt, tokens):
    """At each position, the logits of the next character: (b, n, 96)."""
    x = gpt.embedding(tokens)
    x = gpt.encoder(x, mask=causal(tokens.shape[1], device=tokens.device)).output
    return gpt.embedding.logits(x)


# %% [markdown]
r"""
We train it with your loss in the loop of 06b, here called `fit`, on batches of 8 texts of 64 characters. What does a loss of 3 mean? The loss is the mean of $-\ln p$, where $p$ is the probability that the right character got. Divided by $\ln 2 = 0.693$ it counts **bits**, $-\log_2 p$: one bit is a choice between two equally likely characters. So a loss of 3 is 4.3 bits, and the model is as unsure as among $2^{4.3} = 20$ equally likely characters. This number is the **perplexity**. Who knows nothing has a perplexity of 96 and pays $\log_2 96 = 6.58$ bits. Who is sure and right pays 0.
"""

# %% tags=["nbval-ignore-output"]
loss_of = yours("next_loss")


def passages(generator):
    """8 texts of 64 characters, from anywhere in the manual."""
    return topics.draw(generator, 8, length=63)  # 63, and the one after them


history = fit(
    writer,
    passages,
    lambda gpt, tokens: loss_of(gpt_logits(gpt, tokens), tokens),
    steps=1800,
    lr=8e-3,
)
for row in history.rows[::3]:  # each the mean of 180 steps
    print(f"step {row['step']:4}: {row['loss'] / math.log(2):.2f} bits")

# %% [markdown]
r"""
The loss falls from over «4» bits to about «1.9».

## 2 · It writes

The text to be continued is the **prompt**. To continue it, draw a character by the probabilities after it, append it, and go on. How daring should the draw be? Before the softmax the logits are divided by a number, the **temperature**. Logits 2, 1, 0 become 4, 2, 0 at temperature 0.5: the first character is then $e^2 = 7.4$ times as likely as the second, instead of $e = 2.7$ times.
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
        p = heat(logits.cpu(), temperature)
        drawn = torch.multinomial(p, 1, generator=generator)
        tokens = torch.cat([tokens, drawn])
    return "".join(writer.characters[token] for token in tokens[len(prompt) :])


# %% tags=["nbval-ignore-output"]
print("The " + continue_text("The ", 160))

# %% [markdown]
r"""
It makes no sense, and yet most of its words are English, and its quotation marks stand as in the manual. (Another seed writes another text.) Here are the likeliest characters after *The* and a blank, at three temperatures:
"""

# %% tags=["trained"]
def after(text):
    """The logits (96,) of the character after a text."""
    tokens = to_device(writer.numbers(text))
    with torch.no_grad():
        return gpt_logits(writer, tokens[None])[0, -1].cpu()


shares = {t: heat(after("The "), t) for t in (0.5, 1.0, 2.0)}
gpt_figures.temperatures(writer.characters, shares)

# %% tags=["proof"]
orders = [p.argsort(descending=True).tolist() for p in shares.values()]
assert orders[0] == orders[1] == orders[2]

# %% [markdown]
r"""
The order stays, and the bars level out: the higher the temperature, the more often an unlikely character is drawn.
"""

# %%
predict("at_zero")

# %% tags=["nbval-ignore-output"]
print("The " + continue_text("The ", 100, temperature=0))

# %% [markdown]
r"""
**"At temperature 0 it writes its best text."** It goes in circles. Why, section 3 finds out. *Do:* type "If the ", and write at 0.5, 1 and 2: the hotter, the more words break.
"""

# %% tags=["trained"]
ContinuationExplorer(writer, start="If the ")

# %% [markdown]
r"""
## 3 · What does it know?

Training text is no test: the model has read it about four times. What does it pay for a character of the topics that were kept for testing, after at least 32 others?
"""

# %% tags=["nbval-ignore-output"]
bits = bits_per_character(writer)
print(f"{bits:.2f} bits, a perplexity of {2**bits:.1f}")

# %% tags=["proof"]
assert quick() or 2.1 < bits < 2.4

# %% [markdown]
r"""
About 0.3 bits more than on its training text. Is that good? A rival has no network at all: a **5-gram count** looks up how often each character followed the last four in the training text. (A part of the probability always goes to what followed the last three, two and one, so that no character gets 0.)
"""

# %%
predict("count_or_network")

# %%
gpt_figures.stored_bits()

# %% [markdown]
r"""
A count of the last character alone pays 3.85 bits. The 5-gram count pays 2.17, and our network, with 2,600 steps in place of 1,800, pays 2.19: level. The last bar is a GPT with three layers of width 96 that reads 128 characters and was trained for 4,000 steps. It pays 2.05, in the one run that we made. So a network can beat the count, but a small one after a minute does not.

(Rotary positions belong to it: without any positions it pays 3.52, with a learned code for each 2.34; [evidence](evidence/06_transformer_evidence.ipynb).)

How much of its prompt does our model use? We let it say the same test characters after more and more of the text before them:
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
gpt_figures.prompts(lengths, surprise)  # beside stored counts

# %% tags=["nbval-ignore-output"]
print(*(f"{n}: {b:.1f}" for n, b in zip(lengths, surprise, strict=True)), sep="  ")

# %% tags=["proof"]
assert quick() or (surprise[0] > 3.8 and surprise[3] < 2.6)
assert quick() or abs(surprise[3] - surprise[-1]) < 0.2

# %% [markdown]
r"""
With one character of prompt our model pays about «4» bits, with eight about «2.3», and 56 more characters save hardly anything.

**"It needs an encoder to understand the prompt."** No encoder has read these prompts, and yet eight characters of them save some 1.8 bits: the stack that writes reads them itself.

Where network and count see the same few characters, the count pays less. So the network can win only through what stands farther back, and this one gains nothing there. That fits the circles of section 2: once the last few characters return, the likeliest next one returns, too. A larger model may use more; draw the same curve for it.

## In real work

Rotary positions need no table, so the stack accepts any length and raises no error. Ours learned on 64 characters. Now it reads 256:
"""

# %%
predict("longer")

# %% tags=["trained"]
def paid(texts):
    """Bits at each position: (b, n - 1)."""
    texts = to_device(texts)
    with torch.no_grad():
        logits = gpt_logits(writer, texts[:, :-1])
    return F.cross_entropy(logits.mT, texts[:, 1:], reduction="none") / math.log(2)


texts = topics.stream("test").unfold(0, 257, 101)  # 257 characters, from every 101st
long, cut = paid(texts).mean(0), paid(texts[:, 192:]).mean(0)  # cut: the last 64 alone

# %% tags=["nbval-ignore-output"]
for first in range(0, 256, 64):
    print(f"positions {first:3} to {first + 63}: {long[first : first + 64].mean():.1f} bits")
print(f"the last character, after 256: {long[-1]:.1f} bits; after 64: {cut[-1]:.1f}")

# %% tags=["proof"]
assert quick() or (long[:64].mean() < 2.6 and long[192:].mean() > 4 and cut[-1] < 2.8)

# %% [markdown]
r"""
Up to 64 all is well, and twice the length still costs little, as in 05c. Beyond that the bits jump: no training text had such distances. (Why the fall is so steep here, we have not examined.) The same last character is cheap again if only 64 are handed in, as `continue_text` does. So measure the bits at the length at which a model is to be used.

## To carry away

The file that you carried away from 06b has this model too: `Transformer(96, encoder=False, rotary=True)`. Its `write` chooses each token with this function:
"""

# %%
from carry import transformer as carried

show_source(carried.probabilities)

# %% [markdown]
r"""
`top_p=0.9` goes down from the likeliest token and stops as soon as those kept have 0.9 together; `top_k=5` keeps five. (`scatter` puts the sorted probabilities back in the order of the vocabulary.) How many characters have 0.9 together?
"""

# %% tags=["nbval-ignore-output"]
kept = {}
for text in ("The ", "The statemen"):
    kept[text] = int((carried.probabilities(after(text), top_p=0.9) > 0).sum())
    print(f"{text!r}: {kept[text]} of 96")

# %% tags=["proof"]
assert quick() or (kept["The "] > 10 and kept["The statemen"] == 1)

# %% [markdown]
r"""
After *The* a fifth of them are kept. The many others share a tenth: without `top_p` one draw in ten would take one of them. After *The statemen* the *t* alone is kept.

The three forms of the Transformer are now complete:

| | its mask hides | learns to say | good for |
|---|---|---|---|
| encoder alone (06d) | padding | hidden words | finding, classifying |
| decoder alone | later tokens | the next token | writing, chat, code |
| both (06b) | padding; later tokens | the answer's next token | translation |

## The first word once more
"""

# %% tags=["nbval-ignore-output"]
cost = {}
for text in ("The ", "The statemen"):
    p = after(text).double().softmax(-1)
    cost[text], best = -(p * p.log2()).sum(), p.argmax()
    print(
        f"{text!r}: {cost[text]:.1f} bits, perplexity {2 ** cost[text]:.1f};"
        f" likeliest {writer.characters[best]!r} with {p[best]:.2f}"
    )

# %% tags=["proof"]
assert quick() or (16 < 2 ** cost["The "] < 32 and 2 ** cost["The statemen"] < 1.5)

# %% [markdown]
r"""
The first number is the mean cost of a draw, $-\sum p \log_2 p$, which is called the **entropy**. After *The* the model hesitates as among some twenty equally likely characters, and after *The statemen* it knows. So it has put a number on both.

**To remember.** A causal stack that says the next token is a writer, and it reads its own prompt.

- Every position but the last is a question; shift by one.
- A temperature changes how even the probabilities are, never their order.
- Measure how much of its prompt a model uses, and at which length it stops working.
- Put a count beside a network before you praise it.

**Sources.** Radford et al. 2018, *Improving Language Understanding by Generative Pre-Training*; Su et al. 2021, RoFormer (arXiv:2104.09864); Fan et al. 2018, top-k (arXiv:1805.04833). Text: the Python documentation, © Python Software Foundation, PSF License. Seeds: [evidence](evidence/06_transformer_evidence.ipynb).

**Next**: [07a · Convolution](07a_convolution.ipynb), or on the core path [11b · Exact and fast](11b_exact_and_fast.ipynb).
"""
