# /// ideas
# [language_model]
# says = "a decoder without a source is a stack of encoder layers under a causal mask: GPT; at each position it gives every possible next token a logit, which makes it a language model"
# motive = "There is no source to read"
# shown = "def gpt_logits"
# action = 'predict("questions_at_once")'
#
# [shifted_loss]
# says = "n characters are n - 1 questions: logits without the last position, tokens without the first"
# motive = "Read the two lines down a column"
# shown = "must say"
# action = "Write the loss"
#
# [bits]
# says = "a loss of -ln p divided by ln 2 counts bits; 2 to the power of the bits is the perplexity, among how many equally likely characters a model chooses; 96 for one that knows nothing"
# motive = "What does a loss of 3 mean"
# shown = "gpt_figures.training"
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
# says = "counting what followed the last four characters is as good as this network on unseen text; a larger one beats it"
# motive = "A rival has no network"
# shown = "def paid"
# action = 'predict("count_or_network")'
#
# [eight]
# says = "the stack reads its own prompt, with no encoder; this one uses about eight characters of it"
# motive = "How many of the 63 help"
# shown = "gpt_figures.prompts"
# action = 'predict("how_far")'
#
# [too_long]
# says = "beyond the length of its training a model fails without an error; hand in the last tokens only"
# motive = "accepts any length"
# shown = "gpt_figures.beyond"
# action = 'predict("longer")'
#
# [top_p]
# says = "top_p keeps the likeliest tokens that have p together, many where the model is unsure and one where it knows"
# motive = "Two options cut them off"
# shown = "kept by top_p"
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

**Afterwards you can** write the loss of a language model, and the line by which chat programs are made more or less daring; measure how much of the text before it a model uses, and where it breaks down.

{about}

<details><summary>中文摘要 · Chinese</summary>
只用解码器:一叠带因果掩码的层,在每个位置给出下一个字符的概率,就能写文章,这就是语言模型。本课写出它的损失和温度,让它写字,
再用比特衡量它:数数能做到多好,它究竟用了提示里的多少个字符,文本比训练时更长会怎样,最后用 top-p 去掉不太可能的字符。
</details>
"""

# %% tags=["imports"]
import math

import torch
import torch.nn.functional as F
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.chapters.c06_transformer import gpt_figures
from lesson_lib.chapters.c06_transformer.continuation_explorer import (
    ContinuationExplorer,
)
from lesson_lib.course import *
from lesson_lib.data import topics
from lesson_lib.device import quick, to_device
from lesson_lib.masks import causal
from lesson_lib.models.gpt import GPT
from lesson_lib.positions import rotary
from lesson_lib.training import fit

_ = torch.manual_seed(0)
warm_up()

# %% [markdown]
r"""
## 1 · One stack that looks back

Take the decoder of 06b. There is no source to read, so cross-attention goes. What is left of each layer is attention and a feed-forward network, that is, an encoder layer of 06a under a causal mask. A stack of such layers is a **GPT** (*generative*: it writes; *pre-trained*: on any text, before it is given a task; Transformer). At each position it gives every possible next token a logit, which makes it a **language model**.

Our text is the manual that comes with Python, with a help text for each of its topics. Some topics are kept for testing. The tokens are its 96 characters: letters, digits, signs, the blank and the line break. Read the two lines down a column: after *T* the model must say *h*.
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
The model has two layers of width 64 and four heads. No codes are added to the embeddings. Inside the layers queries and keys are turned by their positions instead (rotary positions, 05b). So 06b's machine shrinks to an embedding, one stack, and the logits from the same table of embeddings:
"""

# %%
sizes = {"n_layers": 2, "d_model": 64, "n_heads": 4}
writer = to_device(GPT(topics.CHARACTERS, context=64, **sizes))  # 64: for the explorer


def gpt_logits(gpt, tokens, mask=None):
    """At each position, the logits of the next character: (b, n, 96)."""
    if mask is None:
        mask = causal(tokens.shape[1], device=tokens.device)
    x = gpt.embedding(tokens)
    x = gpt.encoder(x, mask=mask).output  # layers of 06a, rotary; the rows after the last norm
    return gpt.embedding.logits(x)


# %% [markdown]
r"""
We train it with your loss in the loop of 06b, here called `fit`, on batches of 8 texts of 64 characters. What does a loss of 3 mean? The loss is the mean of $-\ln p$, where $p$ is the probability that the right character got. Divided by $\ln 2 = 0.693$ it is the mean of $-\log_2 p$. We say that the model *pays* $-\log_2 p$ **bits** for a character; one bit is a choice between two equally likely ones. So a loss of 3 is 4.3 bits, as if the model chose among $2^{4.3} = 20$ equally likely characters. This number is its **perplexity**. A model that knows nothing gives each character 1/96: it has a perplexity of 96 and pays $\log_2 96 = 6.58$ bits. A model that is sure and right pays 0.
"""

# %% tags=["trained"]
loss_of = yours("next_loss")


def passages(generator):
    """8 texts of 64 characters, from anywhere in the manual: (8, 64)."""
    return topics.draw(generator, 8, length=63)  # 63 questions, so 64 characters


history = fit(
    writer,
    passages,
    lambda gpt, tokens: loss_of(gpt_logits(gpt, tokens), tokens),
    steps=1800,
    lr=8e-3,
)
gpt_figures.training(history.rows)

# %% tags=["proof"]
paid_in_training = [row["loss"] / math.log(2) for row in history.rows]
assert quick() or (paid_in_training[0] > 4 and 1.7 < paid_in_training[-1] < 2.1)

# %% [markdown]
r"""
In its first 180 steps the model pays over 4 bits on average, in its last about 1.9, a perplexity below 4.

`gpt.encoder` holds only what you know. Here is the whole machine once more, in one cell, with the numbers that it has learned: `attend` (02a), heads (04), turns by position (05b), norms and sums (06a). (A GELU is a ReLU with a round corner.)
"""


# %%
def whole_gpt(tokens, w):  # w: the learned numbers by name
    def linear(x, at):
        return F.linear(x, w[at + ".weight"], w.get(at + ".bias"))

    def norm(x, at):
        return F.layer_norm(x, (64,), w[at + ".weight"], w[at + ".bias"])

    def heads(x):  # (b, n, 64) to (b, 4, n, 16)
        return x.unflatten(-1, (4, 16)).transpose(1, 2)

    table = w["embedding.table"]
    mask = causal(tokens.shape[1], device=tokens.device)
    x = table[tokens] * 64**0.5  # its rows are short, which suits the logits
    for at in ("encoder.layers.0.", "encoder.layers.1."):
        y = norm(x, at + "norms.0")
        q, k, v = (
            heads(linear(y, f"{at}attention.w_{name}"))
            for name in ("query", "key", "value")
        )
        y = attend(rotary(q), rotary(k), v, mask=mask).output
        y = y.transpose(1, 2).flatten(2)  # the heads side by side
        x = x + linear(y, at + "attention.w_output")
        y = linear(norm(x, at + "norms.1"), at + "feed_forward.w_in")
        x = x + linear(F.gelu(y), at + "feed_forward.w_out")
    return norm(x, "encoder.norm") @ table.mT


# %%
learned, tokens = writer.state_dict(), to_device(writer.numbers(line)[None])
theirs = gpt_logits(writer, tokens).detach()
assert_close(whole_gpt(tokens, learned), theirs, atol=1e-4, rtol=0)
count = sum(numbers.numel() for numbers in learned.values())
print(f"the same logits, from {count:,} numbers")

# %% [markdown]
r"""
These lines are a GPT. A larger one has more layers, and wider rows.

## 2 · It writes

The text to be continued is the **prompt**. To continue it, draw a character by the probabilities after it, append it, and go on. How daring should the draw be? Before the softmax the logits are divided by a number, the **temperature**. Logits 2, 1, 0 become 4, 2, 0 at temperature 0.5: the first character is then $e^2 = 7.4$ times as likely as the second, instead of $e = 2.7$ times.
"""

# %%
predict("which_heat")

# %% [markdown] tags=["exercise:tempered"]
# Return the probabilities (..., 96) of logits of this shape. At temperature 0, by which nobody can divide, the likeliest character gets 1.

# %%
heat = yours("tempered")


@torch.no_grad()
def continue_text(prompt, length, temperature=1.0, seed=0):
    """`length` characters that go on from the prompt."""
    generator = torch.Generator().manual_seed(seed)
    tokens = writer.numbers(prompt)  # (n,)
    for _ in range(length):
        seen = to_device(tokens[-63:])  # at most as many as it was trained to read
        logits = gpt_logits(writer, seen[None])[0, -1]
        p = heat(logits.cpu(), temperature)
        drawn = torch.multinomial(p, 1, generator=generator)  # i with probability p[i]
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


shares = {t: heat(after("The ").double(), t) for t in (0.5, 1.0, 2.0)}
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
**"At temperature 0 it writes its best text."** It goes in circles. (Section 3 has a reason.) *Do:* let it write at 0.5, then at 2.
"""

# %% tags=["trained"]
ContinuationExplorer(writer, start="If the ")

# %% [markdown]
r"""
## 3 · What does it use?

Text that it was trained on is no test. What does it pay at each position of unseen text?
"""


# %%
def paid(texts, mask=None):
    """The mean bits at each position of texts (b, n): (n - 1,)."""
    texts = to_device(texts)
    with torch.no_grad():
        logits = gpt_logits(writer, texts[:, :-1], mask).mT  # torch wants the 96 on axis 1
        losses = F.cross_entropy(logits, texts[:, 1:], reduction="none")
    return losses.mean(0).cpu() / math.log(2)


test = topics.stream("test")  # all characters of the test topics, as numbers
bits = paid(test.unfold(0, 64, 23))  # texts of 64 characters, one starts at every 23rd
known = paid(topics.stream("training").unfold(0, 64, 233))

# %% tags=["nbval-ignore-output"]
for name, each in {"unseen text": bits, "training text": known}.items():
    late = each[32:].mean()
    print(f"{name}, after 33 to 63 characters: {late:.2f} bits, perplexity {2**late:.1f}")

# %% tags=["proof"]
assert quick() or 2.1 < bits[32:].mean() < 2.4

# %% [markdown]
r"""
On text that it was trained on it pays less: part of what it has learned holds there alone. Is «2.25» good? A rival has no network at all. A **5-gram count** looks up, in the training text, how often each character followed the last four. (What followed the last three, two and one gets a share of the probability, and every character a little, so that none gets 0.)
"""

# %%
predict("count_or_network")

# %% [markdown]
r"""
The count pays ‹2.17› bits on the same topics, and our network a little more. (A larger one, trained longer on longer texts, paid ‹2.05›, in the one run that we made: [evidence](evidence/06_transformer_evidence.ipynb).)

Our network reads up to 63 characters, and the count four. How many of the 63 help?
"""

# %%
predict("how_far")

# %% tags=["trained"]
gpt_figures.prompts(bits)  # beside counts of the last one to seven characters

# %% tags=["proof"]
assert quick() or (bits[0] > 3.8 and bits[4:8].mean() < 2.6)
assert quick() or bits[4:8].mean() - bits[32:].mean() < 0.2

# %% [markdown]
r"""
After one character the network pays about 4 bits, after five to eight less than 2.5. From there on the curve is nearly flat: what stands farther back hardly helps it. The counts of one to seven characters lie lower. So from the same few characters a count gets more, and the long prompt does not make up for it. (Why, we have not tested.) It fits the circles of section 2: once the last few characters return, the likeliest next one returns, too.

**"It needs an encoder to understand the prompt."** There is no encoder, and the more of the prompt stands there, the less the model pays: the stack that writes has read it. But reading a prompt and using all of it are two things.

## In real work

Rotary positions need no table, so the stack accepts any length and raises no error. Ours learned on 64 characters. Now it reads 256:
"""

# %%
predict("longer")

# %% tags=["trained"]
texts = test.unfold(0, 257, 101)  # texts of 257 characters
n = to_device(torch.arange(256))
near = n[:, None] - n < 63  # True: the key is no farther back than in training
everything, near_only = paid(texts), paid(texts, causal(256, device=n.device) & near)
gpt_figures.beyond({"all keys": everything, "the last 63 keys": near_only})

# %% tags=["proof"]
assert quick() or (everything[:64].mean() < 2.6 and everything[192:].mean() > 4)
assert quick() or near_only[192:].mean() < 2.6

# %% [markdown]
r"""
Up to some 100 characters the model is as good as before. Then the bits rise steeply, to over 5, more than after a single character. In the second curve a mask hides all keys that are farther back than in training, and the model is as good as ever. So late positions do no harm by themselves. What harms is to look farther back than in training, or at more keys; this test cannot tell which. Mask them (part 09), or hand in the last tokens only, as `continue_text` does. And measure at the length at which a model is to be used.

## To carry away

At temperature 1 the many unlikely characters are drawn often enough to break words. Two options cut them off. `top_k=5` keeps the five likeliest. `top_p=0.9` keeps the likeliest until they have 0.9 together: of 0.6, 0.25, 0.1, 0.05 it keeps three, since two have only 0.85. With these options `write` in your `carry/transformer.py` chooses each token:
"""

# %%
from carry import transformer as carried

show_source(carried.probabilities)

# %% [markdown]
r"""
`sort` puts the likeliest first, `p.cumsum(-1) - p` is what stands before each, and `scatter` puts each probability back at its token. (The model of this part is `Transformer(99, encoder=False, rotary=True)` there: our 96 characters behind the file's three tokens for padding, start and end.)

## The first word once more
"""

# %% tags=["nbval-ignore-output"]
kept = {}
for text in ("The ", "The statemen"):
    p = carried.probabilities(after(text), top_p=0.9)
    kept[text], best = int((p > 0).sum()), after(text).argmax()
    print(f"{text!r}: kept by top_p=0.9: {kept[text]} of 96,", end=" ")
    print(f"first {writer.characters[best]!r} with {after(text).softmax(-1)[best]:.2f}")

# %% tags=["proof"]
assert quick() or (kept["The "] > 10 and kept["The statemen"] == 1)

# %% [markdown]
r"""
After *The* a fifth of all characters share the 0.9, the quotation mark first: in this manual sentences like *The "while" statement* are common. After *The statemen* the model knows. So it has put a number on both.

The three forms of the Transformer are complete:

| | its mask hides | learns to say | good for |
|---|---|---|---|
| encoder alone (06d) | padding | hidden words | finding, classifying |
| decoder alone | later tokens | the next token | writing, chat, code |
| both (06b) | padding; later tokens | the answer's next token | translation |

**To remember.** A causal stack that says the next token is a writer, and it reads its own prompt.

- Every position but the last is a question; shift by one.
- A temperature changes how even the probabilities are, never their order.
- Put a count beside a network before you praise it.
- Measure how much of its prompt a model uses, and at which length it breaks down.

**Sources.** Radford et al. 2018, *Improving Language Understanding by Generative Pre-Training*; Su et al. 2021, RoFormer (arXiv:2104.09864); Fan et al. 2018, top-k (arXiv:1805.04833). Text: the Python documentation, © Python Software Foundation, PSF License. Seeds: [evidence](evidence/06_transformer_evidence.ipynb).

**Next**: [07a · Convolution](07a_convolution.ipynb), or on the core path [11b · Exact and fast](11b_exact_and_fast.ipynb).
"""
