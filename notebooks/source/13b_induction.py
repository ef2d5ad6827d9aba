# /// ideas
# [in_context]
# says = "in-context learning: the answer comes from the text at hand, and no weight changes"
# motive = "What comes next?"
# shown = "k f w a c m k f w"
# action = 'predict("what_follows")'
#
# [one_look]
# says = "in a first layer each key and value is made of one token, so one look finds equal tokens and not what follows them"
# motive = "A head of attention looks back once"
# shown = "each gets half of the weight"
# action = 'predict("one_layer_copies")'
#
# [two_in_a_row]
# says = "a row can hold two tokens, itself and the one before; keys are made of the one, values of the other"
# motive = "How can one row hold two tokens?"
# shown = "0 0 1 | 0 1 0"
# action = "keep the two halves as two tables"
#
# [two_looks]
# says = "two looks copy: the first takes the token before into each row, the second asks who stands after my own token"
# motive = "The row of the a would have to know"
# shown = "figures.two_heads()"
# action = "two_looks"
#
# [one_back]
# says = "rotary positions let a head prefer a distance: the score of a mean query with a mean key is highest one back"
# motive = "By what does layer 0 find the token before?"
# shown = "by_distance"
# action = "rotary(mean_q.expand(30, -1))"
#
# [two_heads]
# says = "a previous-token head looks at the token before; an induction head at the token behind the earlier copy of its own"
# motive = "Which head does it?"
# shown = "maps = torch.cat("
# action = "HeadExplorer(maps"
#
# [score]
# says = "the prefix matching score, the mean weight on the token behind the earlier copy, finds candidates"
# motive = "Large models have thousands of heads"
# shown = "on the token before {before:.2f}"
# action = "prefix_matching"
#
# [ablation]
# says = "ablation: a layer adds its mean to each token; without layer 0's message layer 1's stripe is gone, and the copying"
# motive = "Does the copying need these heads?"
# shown = "layer 1, layer 0 cut"
# action = 'predict("which_head_is_needed")'
#
# [keys]
# says = "layer 1's keys, and nothing else in it, read what layer 0 wrote: K-composition"
# motive = "Where in layer 1 is it read?"
# shown = 'for name, rest, for_keys in ('
# action = "model.look(1, rest, for_keys)"
#
# [shortcut]
# says = "a head that knows a distance has a score of 1.00, too: to test a head's name, cut what it should need, and change the length"
# motive = "Is it the same?"
# shown = "other, _ = trained(24)"
# action = 'predict("second_cut")'
#
# [zero]
# says = "a cut to zero takes the mean as well: both models break, and the shortcut looks like an induction head"
# motive = "The common cut sets to zero"
# shown = "nn.init.zeros_(p)"
# action = 'right(silent, 24)'
# ///

# %% [markdown]
r"""
{title}

Random tokens, each of them one character. Some have come already:

    k f w a c m k f w

What comes next?

**Afterwards you can** write how two layers of attention copy; find the heads that do it by a score; test whether a head does what its score suggests.

{about}

<details><summary>中文摘要 · Chinese</summary>
一串随机字符,一部分出现过:下一个是什么?先亲手写出两次"看"(两层注意力),再训练一个只有注意力的小模型,用分数找到做这件事的头,然后切断其中一层,看剩下什么。最后训练第二个模型,它的分数一样高:它做的是同一件事吗?
</details>
"""

# %% tags=["imports"]
import copy

import torch
import torch.nn.functional as F
from torch import nn

from lesson_lib.attention import attend
from lesson_lib.chapters.c13_todays_models import figures, induction, writer
from lesson_lib.chapters.c13_todays_models.induction import letters
from lesson_lib.course import *
from lesson_lib.device import quick, to_device
from lesson_lib.masks import causal
from lesson_lib.models.pretrained import open_model
from lesson_lib.positions import rotary
from lesson_lib.training import fit
from lesson_lib.widgets.heads import HeadExplorer

_ = torch.manual_seed(0)
warm_up()

# %%
predict("what_follows")

# %% [markdown]
r"""
You looked back for the same token, and read on behind it. You would manage with tokens that you have never met. When the answer comes so from the text at hand, and no weight changes, this is called **in-context learning**.

## 1 · One look, or two?

A head of attention looks back once. Let each token be a one-hot row: 1 at its number, else 0.
"""

# %%
predict("one_layer_copies")

# %% [markdown]
r"""
The last w finds the first w and, just as well, itself: their rows are equal, so each gets half of the weight. Both hand over w. The row of the a would have to know that a w stands before it. That takes a layer of its own:
"""

# %%
figures.two_heads()

# %% [markdown]
r"""
In layer 0 each token takes the token before it into its row. In layer 1 the last w does not look for a w. It asks *who stands after w?*, and finds the a.

How can one row hold two tokens? Take three tokens, k, w, a. After layer 0 the row of the a has its own one-hot numbers on the left, and those of the token before it on the right:

    0 0 1 | 0 1 0
      a   | after w

A matrix $W_k$ that reads the right half makes the key *after w*. A matrix $W_v$ that reads the left half makes the value *a*.
"""

# %% [markdown] tags=["exercise:two_looks"]
# Write both looks; nothing is trained. You can keep the two halves as two tables: `x`, and what the first look gave. In the first look each token may see one key, so any query does. The first token may see none, and `attend` gives zeros to such a row. In the second look multiply the queries by `sharp`: at 100 nearly all weight goes to the keys that fit.

# %%
looks = yours("two_looks")
characters = induction.LETTERS  # token 0 is "a", token 63 is "-"
numbers = torch.tensor([characters.index(one) for one in "kfwacmkfw"])
x = torch.eye(64)[numbers]  # (9, 64): one-hot rows
found = looks(x, 100)
for position in (6, 7, 8):
    print("kfwacmkfw"[position], "->", characters[found[position].argmax()])

# %% [markdown]
r"""
After k comes f, after f comes w, after w comes a: two calls of `attend` copy, and nothing was learned. Will training find these looks?

## 2 · Train it

A text is a random piece of 6 to 24 different tokens out of 64, said twice. Here are two:
"""

# %%
generator = torch.Generator().manual_seed(0)
for text in induction.said_twice(generator, batch=2):
    print(letters(text))  # the characters of its tokens

# %% [markdown]
r"""
The model has two layers of attention with one head each, and nothing else:
"""


# %%
class Copier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(64, 48)
        self.layers = nn.ModuleList(  # four matrices for each of two layers
            nn.ModuleList(nn.Linear(48, 48) for _ in range(4)) for _ in range(2)
        )
        self.read = nn.Linear(48, 64)  # a logit for each token

    def look(self, layer, x, for_keys):
        w_q, w_k, w_v, w_o = self.layers[layer]
        q, k = rotary(w_q(x)), rotary(w_k(for_keys))  # turned by position, 05b
        may = causal(x.shape[1]).to(x.device)
        output, weights = attend(q, k, w_v(x), mask=may)
        return w_o(output), weights

    def forward(self, tokens, cut=None):
        x, tables = self.embed(tokens), []
        for layer in (0, 1):
            added, weights = self.look(layer, x, x)
            if layer == cut:
                added = added.mean((0, 1))  # the same for every token
            x, tables = x + added, [*tables, weights]
        return self.read(x), tables


# %% [markdown]
r"""
In `look` keys are made from rows of their own, `for_keys`; until section 4 these are `x`. What a layer finds is added to the rows (the residual connection, 06a). We come to `cut` later.

The loss looks at the second half alone, from its second token on, because what comes before cannot be known:
"""


# %%
def second_half(model, texts):
    half = texts.shape[1] // 2
    logits, _ = model(texts[:, :-1])
    said, follows = logits[:, half:], texts[:, half + 1 :]
    return F.cross_entropy(said.flatten(0, 1), follows.flatten())


def trained(shortest):  # pieces have `shortest` to 24 tokens
    def some(generator):
        return induction.said_twice(generator, 32, shortest=shortest)

    _ = torch.manual_seed(0)  # always the same first weights
    model, name = Copier(), f"pieces from {shortest}"
    options = {"steps": 400, "lr": 0.003, "schedule": "constant", "name": name}
    return model, fit(model, some, second_half, **options)


@torch.no_grad()
def right(model, length, cut=None):  # share of right tokens in 64 new texts
    new = torch.Generator().manual_seed(1)
    texts = induction.said_twice(new, 64, shortest=length, longest=length)
    texts = to_device(texts)
    said = model(texts[:, :-1], cut)[0][:, length:].argmax(-1)
    return (said == texts[:, length + 1 :]).float().mean().item()


# %% tags=["nbval-ignore-output"]
model, history = trained(6)
for row in history.rows:
    print(f"step {row['step']:3}: loss {row['loss']:.2f}")
print(f"right, pieces of 24: {right(model, 24):.2f}")

# %% tags=["proof"]
assert quick() or right(model, 24) > 0.9

# %% [markdown]
r"""
A guess among 64 has a loss of $\ln 64 = 4.16$. For a hundred steps the loss hardly leaves it, then it falls to nearly nothing. (Why it waits we have not tested.) **"It knows the texts by heart."** The last line says no: these pieces are new, and nearly all tokens are right. A guess would be right in 0.016.

By what does layer 0 find the token before? By hand it was a mask. Here only the turns can tell, and with them a score depends on the distance $i - j$, besides the two tokens. So take the tokens out: the mean query of all 64 tokens, and their mean key.
"""

# %% tags=["nbval-ignore-output"]
with torch.no_grad():
    w_q, w_k, _, _ = model.layers[0]
    mean_q, mean_k = (w(model.embed.weight).mean(0) for w in (w_q, w_k))
    q, k = rotary(mean_q.expand(30, -1)), rotary(mean_k.expand(30, -1))
by_distance = (q[-1] @ k.T / 48**0.5).flip(0).cpu()  # the last one's scores
print("0, 1, 2, ... back:", *(f"{one:.1f}" for one in by_distance[:6]))

# %% tags=["proof"]
assert quick() or by_distance.argmax() == 1

# %% [markdown]
r"""
The score is highest one back: whatever the tokens are, layer 0 prefers that distance.

## 3 · Which head does it?

Look at both heads, on a piece of 11 tokens said twice:
"""

# %% tags=["trained"]
texts = induction.said_twice(generator, 1, shortest=11, longest=11)
with torch.no_grad():
    _, tables = model(to_device(texts))
maps = torch.cat(tables).cpu()  # (2, 22, 22): a table of weights for each head
HeadExplorer(maps, list(letters(texts[0])), ["layer 0", "layer 1"])

# %% [markdown]
r"""
*Do:* move the query to 15. Its first copy stands at 4. Where does each head look?

<details><summary>Answer</summary>
Layer 0 looks at 14, the token before. Layer 1 looks at 5, the token behind the first copy.
</details>

Each head has a bright stripe: layer 0 one below the diagonal, layer 1 ten below it, since $15 - 5 = 11 - 1$. A head like layer 0's is called a **previous-token head**. An **induction head** looks at the token behind the earlier copy of its own, and copies it. Large models have thousands of heads, too many to look at. So make a number of the second stripe.
"""

# %% [markdown] tags=["exercise:prefix_matching"]
# Write the **prefix matching score**: how much weight do tokens of the second half give to the token behind their first copy, on average?

# %% tags=["nbval-ignore-output"]
score = yours("prefix_matching")
for layer, table in enumerate(maps):
    before = table.diagonal(-1).mean()
    print(f"layer {layer}: on the token before {before:.2f}, score {score(table, 11):.2f}")

# %% tags=["proof"]
assert quick() or score(maps[1], 11) > 0.8 > 0.5 > score(maps[0], 11)
assert quick() or maps[0].diagonal(-1).mean() > 0.6

# %% [markdown]
r"""
Layer 0 gives most of its weight to the token before, layer 1 nearly all to the token behind the first copy.

## 4 · Cut one

Does the copying need these heads? An **ablation** takes away what a part of a model says, and leaves all else. Here `cut` does it: the layer adds the same row to every token, the mean of all that it would have added. So nothing that it says tells one token from another.
"""

# %%
predict("which_head_is_needed")

# %% tags=["nbval-ignore-output"]
for layer in (0, 1):
    print(f"layer {layer} cut: {right(model, 24, cut=layer):.2f} are right")

# %% tags=["proof"]
assert quick() or max(right(model, 24, cut=0), right(model, 24, cut=1)) < 0.15

# %% [markdown]
r"""
Hardly any are right, whichever layer is cut. **"The head that looks at the copied token copies alone."** Look at it while layer 0 is cut:
"""

# %% tags=["trained"]
with torch.no_grad():
    _, tables = model(to_device(texts), cut=0)
both = torch.stack((maps[1], tables[1][0].cpu()))
HeadExplorer(both, list(letters(texts[0])), ["layer 1", "layer 1, layer 0 cut"])

# %% tags=["proof"]
assert quick() or score(both[1], 11) < 0.3

# %% [markdown]
r"""
The stripe is gone: layer 1 no longer finds the position. So it needs what layer 0 wrote. Where in layer 1 is it read? By hand the keys read it. Give the cut rows to layer 1's keys alone, then to everything but its keys:
"""

# %% tags=["nbval-ignore-output"]
new = to_device(induction.said_twice(generator, 64, shortest=24))
with torch.no_grad():
    x = model.embed(new[:, :-1])
    added, _ = model.look(0, x, x)
    whole, bare = x + added, x + added.mean((0, 1))
    shares = {}
    for name, rest, for_keys in (("keys", whole, bare), ("all but keys", bare, whole)):
        logits = model.read(rest + model.look(1, rest, for_keys)[0])
        hits = logits[:, 24:].argmax(-1) == new[:, 25:]
        shares[name] = hits.float().mean().item()
        print(f"cut rows for {name}: {shares[name]:.2f} are right")

# %% tags=["proof"]
assert quick() or shares["keys"] < 0.15 < 0.9 < shares["all but keys"]

# %% [markdown]
r"""
With cut rows for the keys alone the copying is gone, and with cut rows everywhere else nothing is lost. So training found our two looks: layer 0 writes who stood before, and layer 1's keys read it. (The sources call this K-composition. In a Llama of two layers, too, three seeds find two such heads: [evidence](evidence/13_todays_models_evidence.ipynb).)

## 5 · A second model

One argument changes: all pieces have 24 tokens.
"""

# %% tags=["nbval-ignore-output"]
other, _ = trained(24)
some = induction.said_twice(generator, 16, shortest=24)
with torch.no_grad():
    its = other(to_device(some))[1][1].mean(0).cpu()  # layer 1, the mean of 16 tables
print(f"right, pieces of 24: {right(other, 24):.2f}")
print(f"score of layer 1: {score(its, 24):.2f}")

# %% tags=["proof"]
assert quick() or (right(other, 24) > 0.95 and score(its, 24) > 0.95)

# %% [markdown]
r"""
All are right, with a perfect score. Is it the same?
"""

# %%
predict("second_cut")

# %% tags=["nbval-ignore-output"]
print(f"layer 0 cut: {right(other, 24, cut=0):.2f} are right")

# %% tags=["proof"]
assert quick() or right(other, 24, cut=0) > 0.9

# %% [markdown]
r"""
Nothing is lost. So its layer 1 does not ask who stands after a token. What else can it go by?
"""

# %%
predict("one_length_only")

# %% tags=["nbval-ignore-output"]
print("pieces of    18   24   36   48")
for name, each in (("6 to 24", model), ("24 only", other)):
    print(f"{name:9}", *(f"{right(each, n):.2f}" for n in (18, 24, 36, 48)))

# %% tags=["proof"]
assert quick() or max(right(other, n) for n in (18, 36, 48)) < 0.1
assert quick() or right(model, 18) > 0.9 and right(model, 36) > 0.6

# %% [markdown]
r"""
The second model learned to look 23 positions back, whatever stands there. At 24 that is where an induction head looks, so no text of this length can tell the two apart. The first model copies pieces of 36, longer than any that it trained on; at 48 it is right less often. The looks by hand have no length at all.

**A score finds candidates. To test a head's name, cut what it should need, and change the length.**

## In real work

The common cut sets to zero what a head adds. Here it is, on the second model: $W_o$ of layer 0 becomes 0.
"""

# %% tags=["nbval-ignore-output"]
silent = copy.deepcopy(other)
for p in silent.layers[0][3].parameters():  # W_o and its bias
    nn.init.zeros_(p)
print(f"to zero: {right(silent, 24):.2f}, to the mean: {right(other, 24, cut=0):.2f}")

# %% tags=["proof"]
assert quick() or right(silent, 24) < 0.3

# %% [markdown]
r"""
By this cut the second model needs layer 0 as much as the first. But a cut to zero takes two things: what layer 0 says of a token, and the row that it adds to all of them alike. The cut to the mean puts the second back, and nothing is missing. So layer 1 needs the common row, and no token's message. Cut to the mean before you call a head needed.

## To carry away

Your score needs nothing of a model but its tables of weights, for a text of random tokens said twice. The course comes with a model of 4 layers with 4 heads each, which 13c opens. Its texts begin with a start token, which is cropped here:
"""


# %%
def scores_of(tables, length):  # for each layer (b, heads, n, n): a score for each head
    return [[score(one, length).item() for one in heads.mean(0)] for heads in tables]


big = open_model(writer.FOLDER)
some = writer.said_twice(generator, 16, shortest=24, longest=24)
with torch.no_grad():
    read = big(to_device(some), weights=True).weights  # True: keep the tables
for layer, row in enumerate(scores_of([t[..., 1:, 1:].cpu() for t in read], 24)):
    print(f"layer {layer}:", *(f"{one:.1f}" for one in row))

# %% [markdown]
r"""
Sixteen numbers, and layer 2 stands out: four candidates, which 13c cuts. (Fast kernels keep no weights, 11b. Of the files to carry, `attention.py` hands them out.) Olsson and others (2022) found such heads in language models of two and more layers, all within a short span of training.

## The nine tokens once more

Who says *a*? And what do four speakers say in the second half of a piece of 18?
"""

# %% tags=["nbval-ignore-output"]
text = induction.said_twice(torch.Generator().manual_seed(3), 1, shortest=18, longest=18)


def speak(given):  # the token that each speaker says behind each given one
    yield "by hand", looks(torch.eye(64)[given], 100)
    with torch.no_grad():
        for name, each, cut in (("trained", model, None), ("cut", model, 0), ("24 only", other, None)):
            yield name, each(to_device(given)[None], cut)[0][0].cpu()


said = {name: letters(rows.argmax(-1)[18:]) for name, rows in speak(text[0, :-1])}
last = {name: letters(rows.argmax(-1)[-1:]) for name, rows in speak(numbers)}
print(f"{'the text':8}    {letters(text[0, 19:])}")
for name in said:
    print(f"{name:8} {last[name]}  {said[name]}")

# %% tags=["proof"]
truth = letters(text[0, 19:])
assert said["by hand"] == truth and last["by hand"] == "a"
assert quick() or (last["trained"] == "a" and said["24 only"][-11:] == truth[:11])

# %% [markdown]
r"""
By hand and trained: *a*, and the text. With layer 0 cut the model babbles. The last eleven of "24 only" are the text's first eleven: it looks 23 back where 17 would be right, six positions too far.

**To remember.** One head writes who stood before; another asks for it, and copies.

- In a first layer a key knows its own token alone; to match what stood before takes two layers.
- One head's keys can read what another head wrote.
- A score finds a head; a cut and another length show what it does.
- Cut to the mean, or you cut more than you meant.

**Sources.** Elhage et al. 2021, "A mathematical framework for transformer circuits"; Olsson et al. 2022 (arXiv:2209.11895). More models, seeds and cuts: [evidence](evidence/13_todays_models_evidence.ipynb).

**Next**: [13c · What is in a model on my disk?](13c_open_a_model.ipynb)
"""
