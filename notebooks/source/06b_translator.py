# %% [markdown]
r"""
{title}

*mercredi 3 mars 2021* goes in, and *2021-03-03* shall come out: dates as fifteen languages write them. Some days are kept for testing. You have attention, heads, positions and layers. Now they become one machine.

**Afterwards you can** follow a text through every shape of a Transformer; write the loss of its training; test whether a model reads ahead.

{about}

<details><summary>中文摘要 · Chinese</summary>
一个日期从字符编号走到每个字符的得分:每一步的形状都打印出来。训练时,解码器一次算出所有位置,输入是正确答案右移一位(teacher forcing);损失不计填充。
最后训练两台机器,其中一台没有因果遮罩,并用一个测试来检查谁偷看了后面的字符。
</details>

{sources}
"""

# %%
import copy
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.testing import assert_close

from lesson_lib.chapters.c06_transformer import machine_figures, translator_figures
from lesson_lib.chapters.c06_transformer.experiments import translation
from lesson_lib.checks import check, hint, predict, solution, warm_up, yours
from lesson_lib.device import quick, to_device
from lesson_lib.experiments import dates
from lesson_lib.masks import causal, padding
from lesson_lib.models.translator import Batches, opened, translate
from lesson_lib.training import counted, one_cycle
from lesson_lib.widgets.machine import MachineExplorer

_ = torch.manual_seed(0)
warm_up()

# %% [markdown]
r"""
## 1 · The machine

The **encoder**, a stack of layers, reads the input; the **decoder** writes. In pre-norm:
"""

# %%
machine_figures.transformer_diagram(norm_first=True)

# %% [markdown]
r"""
From the left: characters become rows of a table, positions are added, layers add to them. What the *last* encoder layer leaves is the **memory**, in orange. Every decoder layer asks it. At the end each place gets
**logits**, a score for every sign (character) of the vocabulary: the products of its row with all rows of the table.
"""

# %%
predict("who_looks")

# %% [markdown]
r"""
One date, every shape. Ours is small: two layers on each side, d_model = 64, four heads.
"""

# %%
model = translation.make()  # untrained
batch = model.vocabulary.batch([("mercredi 3 mars 2021", "2021-03-03")])
machine, before = model.transformer, batch.target[:, :-1]
x = machine.embedding(batch.source)
memory = machine.encoder(x).output
y = machine.embedding(before)
decoded = machine.decoder(y, memory, mask=causal(11), weights=True)
shapes = {
    "characters in, as numbers": batch.source,
    "their rows, with positions": x,
    "memory": memory,
    "written so far, with start": before,
    "decoder layer 0 looks at itself": decoded.weights[0].own,
    "and at the memory": decoded.weights[0].cross,
    "out of the decoder": decoded.output,
    "logits": machine.embedding.logits(decoded.output),
}
for name, tensor in shapes.items():
    print(f"{name:33}{tuple(tensor.shape)}")

# %% [markdown]
r"""
«20» characters keep their «20» rows to the end of the encoder. The decoder's «11» places are *start* and ten characters. At the end, each place scores «74» signs: 71 characters, start, end and padding.

Both decoder layers are given what the *last* encoder layer left, not the layer beside them.

One detail of the table. Its rows are drawn with variance $1/d_{model}$, so that logits, which are products with them, begin around 0 with a spread of 1. So a row is about 1 long; the code of a place (part 05a) is $\sqrt{64/2} = 5.7$ long. In their sum the place would drown the character.
So rows are multiplied by $\sqrt{d_{model}} = 8$ on their way in: 8 against 5.7. The character leads, and the place is still heard.

## 2 · The training step

The decoder predicts the next character at each place. What goes in is the *right* text up to there, even where the model would have written a wrong one. This is called **teacher forcing**:
"""

# %%
answer = ["start", *"2021-03-03", "end"]
print("goes in   ", " ".join(f"{sign:>5}" for sign in answer[:-1]))
print("must say  ", " ".join(f"{sign:>5}" for sign in answer[1:]))

# %% [markdown]
r"""
Our answers all have eleven signs. Other texts do not; then the shorter ones are padded with the number 0, and a loss must leave these places out.
"""

# %% [markdown] tags=["exercise:next_character_loss"]
# Write the loss: cut `target` into what goes in and what must be said, and average the cross-entropy over real signs.

# %%
predict("padded_loss")

# %%
predict("passes")

# %% [markdown]
r"""
**"In training it writes an answer, and is then corrected."** Count the decoder's runs in one step. (`yours` gives your function once it has passed its check, and ours until then.)
"""

# %%
loss_of = yours("next_character_loss")
runs = []
handle = machine.decoder.register_forward_hook(lambda *_: runs.append(1))
loss_of(lambda *given: model(*given).logits, *batch)
handle.remove()
print("runs of the decoder:", len(runs))

# %% [markdown]
r"""
One, for all places; nothing is written. A recurrent network must finish one character before it begins the next. Here no place waits for another, in training: this is what a Transformer gained in 2017.

How large a step? Adam divides by the root of an average of past squared gradients; in the first steps it has few. So the learning rate begins small (**warm-up**), and ends small, to settle:
"""

# %%
translator_figures.schedules(850, d_model=64)

# %% [markdown]
r"""
Dashed is the schedule of 2017, which falls with one over the root of the step; ours falls along half a cosine, as most do today. Does the rise matter? In stored runs with the schedule of 2017, post-norm gets .86 to .94 of the dates right; without the rise, .03 at most. Pre-norm learns both ways.

Now the loop. It stands here once, with your loss, `loss_of`; other parts call the whole as `fit`.
"""


# %%
def machine_logits(model, source, lengths, before, mask):
    """The whole machine: logits of all places at once."""
    machine, real = model.transformer, padding(lengths, source.shape[1])
    memory = machine.encoder(machine.embedding(source), mask=real).output
    y = machine.embedding(before)
    y = machine.decoder(y, memory, mask=mask, memory_mask=real).output
    return machine.embedding.logits(y)


# %%
def train_machine(model, steps, mask_of, planned=850, peak=6e-3):
    """Train in place, for so many of the planned steps; the loss of each."""
    draw = Batches(model.vocabulary, translation.single, batch=48, pool=8)
    generator, losses = torch.Generator("cpu").manual_seed(0), []
    optimizer = torch.optim.Adam(model.parameters())
    for step in counted(range(1, steps + 1), model, losses):  # under a bar
        source, lengths, target = to_device(draw(generator))
        mask = mask_of(target.shape[1] - 1)
        machine = partial(machine_logits, model, mask=mask)
        loss = loss_of(machine, source, lengths, target)
        optimizer.param_groups[0]["lr"] = peak * one_cycle(step, planned)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


# %% [markdown]
r"""
`Batches` draws pairs, 48 at a time.

## 3 · Two machines

They have the same first weights, data and rates. One has no causal mask; it gets 150 steps, the other 850.
"""

# %%
predict("without_mask")

# %% tags=["trained"]
_ = torch.manual_seed(0)
honest = to_device(translation.make())
device, other = honest.transformer.embedding.table.device, copy.deepcopy(honest)
few, many = (20, 20) if quick() else (150, 850)
losses = {
    "without the mask": train_machine(other, few, lambda n: None),
    "with the causal mask": train_machine(honest, many, partial(causal, device=device)),
}
late = {name: sum(loss[130:150]) / 20 for name, loss in losses.items()}
translator_figures.losses(losses)

# %% tags=["proof"]
assert quick() or late["without the mask"] < late["with the causal mask"] / 5

# %%
pairs, right = dates.texts(1, "test"), {}  # 1,000 dates of days never trained on
for name, trained in {"without the mask": other, "with": honest}.items():
    # translate: the likeliest sign, again and again, until the end sign
    made = translate(trained, [pair.source for pair in pairs])
    hits = [one.text == pair.target for one, pair in zip(made, pairs, strict=True)]
    text = translate(trained, ["mercredi 3 mars 2021"])[0].text
    right[name] = sum(hits) / len(hits), text

# %% tags=["proof"]
assert quick() or (right["without the mask"][0] < 0.01 and right["with"][0] > 0.9)

# %% tags=["nbval-ignore-output"]
for name, (share, text) in right.items():
    print(f"{name:17} {share:.3f} right   {text}")

# %% [markdown]
r"""
**"A low loss means a good translator."** Over the steps 131 to 150 the machine without the mask has less than a fifth of the other's loss. It does not get a single date right: what it writes is no date at all.

Can you find out why, from outside? Replace one character of what goes in. Which places *before* it move?
"""

# %% [markdown] tags=["exercise:reads_ahead"]
# Write that test. For each place i: how far do the logits of the places before i move, summed, when the sign at i becomes `other`, a sign that did not stand there?

# %% tags=["trained"]
ahead_of = yours("reads_ahead")
_, lengths, target = given = to_device(honest.vocabulary.batch(pairs[:1]))
with torch.no_grad():
    moved = {
        name: ahead_of(
            lambda before, m=trained, k=mask: machine_logits(
                m, given.source, lengths, before, k
            ),
            target[:, :-1],
            other=20,
        ).cpu()
        for name, trained, mask in (
            ("without", other, None),
            ("with", honest, causal(11, device=device)),
        )
    }
assert moved["with"].max() == 0 < moved["without"][1:].min()
translator_figures.ahead(moved)

# %% [markdown]
r"""
With the mask nothing moves. Without it every later sign moves the places before it. And in stored runs (1,000 steps, a loss near 0, not one date) the prediction follows: put another digit in, and in .86 to .93 of the cases the place before says it. It learned to copy from the future, and when it writes there is no future.

The honest machine gets more than nine in ten dates right, on days that it never saw.

Look inside. Choose *decoder to encoder*, layer 1 (they count from 1 here), and step through the places with *query*; the row of a sign is where it looks to write the *next* one. Type a date of your own. (In the still picture these maps are called *cross*. Beside the maps: how long the stream's rows are, on average and from shortest to longest.)
"""

# %% tags=["trained"]
MachineExplorer(
    lambda text: opened(honest, " ".join(text.lower().split())),
    ["mercredi 3 mars 2021", "14 juillet 1989"],
)

# %% [markdown]
r"""
The heads follow what is written: in stored runs .89 to .92 of this layer's weights lie on the year's digits while the year is written.

## In real work

A near relative in plain torch, whole: post-norm, learned places, a read-out of its own. torch's masks say True = hidden:
"""


# %%
class Seq2Seq(nn.Module):
    def __init__(self, n_signs, d=64):
        super().__init__()
        self.sign, self.place = nn.Embedding(n_signs, d), nn.Embedding(100, d)
        self.core = nn.Transformer(d, 4, 2, 2, 256, dropout=0.0, batch_first=True)
        self.read = nn.Linear(d, n_signs)

    def rows(self, tokens):
        return self.sign(tokens) + self.place.weight[: tokens.shape[1]]

    def forward(self, source, before, hide_memory=True):
        n, hidden = before.shape[1], source == 0
        ahead = torch.ones(n, n, dtype=torch.bool, device=source.device).triu(1)
        out = self.core(
            self.rows(source), self.rows(before), tgt_mask=ahead,
            src_key_padding_mask=hidden,
            memory_key_padding_mask=hidden if hide_memory else None,
        )  # fmt: skip
        return self.read(out)


# %%
plain = Seq2Seq(40)
source, before = torch.randint(3, 40, (1, 9)), torch.randint(3, 40, (1, 5))
alone, padded = plain(source, before), F.pad(source, (0, 4))
assert_close(plain(padded, before), alone)
moved = plain(padded, before, hide_memory=False) - alone
print(f"memory_key_padding_mask forgotten: off by {moved.abs().max():.2f}")

# %% [markdown]
r"""
The forgotten mask is the bug that people meet: three masks, and the third is easily left out. Then the decoder looks at padding, and a text's logits depend on how long its neighbours are.

## The date once more

*mercredi 3 mars 2021* became «20» rows, a memory, «11» places, and the right ten characters, all learned at once. How does it write them one by one, when nobody knows the right ones?

**To remember.** Train all places at once, under the causal mask; a loss that is too good may read ahead.

- In goes `target[:, :-1]`, wanted is `target[:, 1:]`, without padding.
- Rows times $\sqrt{d_{model}}$, so that a place does not drown a character.
- Warm-up: post-norm needs it.

**Sources.** Vaswani et al. 2017 (arXiv:1706.03762), sections 3.4 and 5.3; Press & Wolf 2016 (arXiv:1608.05859), for the one table. Three seeds, errors by language: [evidence](evidence/06_transformer_evidence.ipynb).

**Next**: [06c · Writing](06c_writing.ipynb), or on the core path [06d · BERT](06d_bert.ipynb).
"""
