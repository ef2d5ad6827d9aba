# /// ideas
# [two_ends]
# says = "embedding: a row of a learned table for each token; logits: the dot products of a position's last row with all rows of the same table, a number for each token"
# motive = "must say which token comes next"
# shown = "machine.embedding.logits(decoded.output)"
# action = "shapes = {"
#
# [transformer]
# says = "the Transformer: a stack of encoder layers, whose last norm leaves the memory, and a stack of decoder layers, which all ask the same memory"
# motive = "Between the two ends"
# shown = "machine_figures.transformer_diagram"
# action = 'predict("who_looks")'
#
# [shifted]
# says = "teacher forcing: the decoder reads the right tokens, and at each position must say the next; both are one target, shifted by one, between start and end"
# motive = "In training the right answer is known"
# shown = "must say"
# action = "Write this loss"
#
# [no_padding]
# says = "the loss is the mean cross-entropy over real tokens; padding is easy to predict and must not count"
# motive = "these positions must not count"
# shown = "ignore_index"
# action = 'predict("padded_loss")'
#
# [one_pass]
# says = "one run of the decoder gives the logits of all positions, since every token that goes in is known"
# motive = "In training the machine writes an answer"
# shown = "11 steps"
# action = 'predict("passes")'
#
# [low_loss]
# says = "a low training loss is no translation: the machine without the causal mask has the lower loss, and writes no date"
# motive = "Which of the two machines would you ship?"
# shown = "right on unseen days"
# action = 'predict("without_mask")'
#
# [leak]
# says = "a leak: logits that depend on later tokens; found from outside, by changing one token and comparing the positions before it"
# motive = "What did B learn?"
# shown = "moved by"
# action = "check(reads_ahead)"
#
# [copies]
# says = "B copies the token one column to the right, and does not need its source: with another date's source its answers stay the same"
# motive = "If B only copies"
# shown = "another's"
# action = "changed[:, 4] = seven"
#
# [third_mask]
# says = "nn.Transformer needs three masks, True = hidden; memory_key_padding_mask is the one whose absence raises no error"
# motive = "Forget the third, and nothing fails"
# shown = "two masks"
# action = "memory_key_padding_mask=third"
# ///

# %% [markdown]
r"""
{title}

*mercredi 3 mars 2021* goes in, and *2021-03-03* should come out: dates as fifteen languages write them. Part 01b learned this with a recurrent network. Now heads, positions and layers stand together in one machine. You write its loss, and train it twice, with one difference. Which of the two machines would you ship?

**Afterwards you can** name every shape in a Transformer; write the loss by which translators are trained; find out from outside what a trained model reads.

{about}

<details><summary>中文摘要 · Chinese</summary>
本课把注意力、位置编码和各层组装成一台完整的翻译机,并打印每一步的形状。训练时,解码器在每个位置读入正确的字符,预测下一个字符(teacher forcing);损失不计填充。
然后训练两台只差一个掩码的机器,比较它们的损失和译文,再从外部做实验,查明每台机器究竟学会了读什么。
</details>

{sources}
"""

# %% tags=["imports"]
import copy
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from lesson_lib.chapters.c06_transformer import machine_figures, translator_figures
from lesson_lib.chapters.c06_transformer.experiments import translation
from lesson_lib.course import *
from lesson_lib.device import quick, to_device
from lesson_lib.experiments import dates
from lesson_lib.masks import causal, padding
from lesson_lib.models.translator import Batches, opened
from lesson_lib.training import counted, stored
from lesson_lib.widgets.machine import MachineExplorer

_ = torch.manual_seed(0)
warm_up()

# %% [markdown]
r"""
Here is such a machine, trained. It has written *2021-*, and the month comes next.
"""

# %% tags=["trained"]
with stored():  # it was trained before: its weights are read
    trained, _ = translation.train(seed=0, steps=600, batch=48)
examples = ["mercredi 3 mars 2021", "14 juillet 1989"]
explorer = MachineExplorer(lambda text: opened(trained, text.lower()), examples)
explorer.part.value, explorer.layer.value, explorer.at.value = "cross", 2, 5
print(explorer.words())
explorer

# %% [markdown]
r"""
Nearly all of this query's weight lies on the *a* of *mars*. (The explorer counts layers from 1, heads from 0.) Nobody told the machine where a month stands.

## 1 · From characters to logits

The **vocabulary** numbers all tokens: here the characters, and three more. A token's number picks one row of a learned table; this row is the token's **embedding**. At the other end, each position of the decoder ends with a row of numbers, and must say which token comes next. The dot products of this row with all rows of the same table are its **logits**, one for each token: a token whose embedding points the same way gets a large one.

Between the two ends stand an encoder and a decoder, stacks of the layers of 06a. The whole is the **Transformer**, here in pre-norm:
"""

# %%
machine_figures.transformer_diagram(norm_first=True)

# %% [markdown]
r"""
Read the upper row from the left. Each character becomes its embedding, the code of its position is added (05a), and the encoder's layers follow. What leaves the last norm is the memory. In the lower row the decoder reads what has been written, and each of its layers asks this memory.

The text that the encoder reads is the **source**, the answer the **target**. The three tokens that are no characters: *start* is what the decoder reads first, *end* is what it says when the answer is complete, and the third is padding. So for our date the decoder reads 11 tokens: *start* and the ten characters of *2021-03-03*.
"""

# %%
predict("who_looks")

# %% [markdown]
r"""
Here is an untrained machine with two layers on each side, width 64 and four heads. `vocabulary.batch` turns pairs of texts into numbers: `source`; `lengths`, how many tokens of each source are real; and `target`, which is *start*, the answer and *end*.
"""

# %%
translator = translation.make()
vocabulary, machine = translator.vocabulary, translator.transformer
source, lengths, target = vocabulary.batch([("mercredi 3 mars 2021", "2021-03-03")])
before = target[:, :11]  # all but end

x = machine.embedding(source)
memory = machine.encoder(x).output
y = machine.embedding(before)
decoded = machine.decoder(y, memory, mask=causal(11), weights=True)
shapes = {
    "source": source,
    "embeddings with positions": x,
    "memory": memory,
    "what the decoder reads": before,
    "weights of cross-attention": decoded.weights[0].cross,  # of the first layer
    "logits": machine.embedding.logits(decoded.output),
}
for name, tensor in shapes.items():
    print(f"{name:27} {tuple(tensor.shape)}")

# %% [markdown]
r"""
The first axis is the batch, here one pair. The «20» characters stay «20» rows up to the memory. Each of the four heads has «11» by «20» weights, and each of the «11» positions ends with «74» logits: for 71 characters and the three others.

## 2 · One training step

In training the right answer is known. So the decoder is given the right tokens, even where it would have written a wrong one. This is called **teacher forcing**. In the line that `spell` gives, each column is a position of the decoder:
"""

# %%
names = ["padding", "start", "end", *vocabulary.characters]


def spell(tokens):
    """The names of the tokens (1, n) in one line."""
    return "".join(f"{names[token]:>6}" for token in tokens[0].tolist())


print("goes in ", spell(target[:, :11]))
print("must say", spell(target[:, 1:]))

# %% [markdown]
r"""
In column 0 *start* goes in, and the decoder must say 2. In column 1 this 2 goes in, and it must say 0. So both lines are the same `target`, one shifted by one column.

The loss at one position is the cross-entropy between its 74 logits and the right token. The loss of a step is the mean over the positions of all texts. But where answers differ in length, `target` is filled up behind *end* with padding, token 0, and these positions must not count.
"""

# %%
predict("padded_loss")

# %% [markdown] tags=["exercise:next_character_loss"]
# Write this loss. `model(source, lengths, before)` gives the logits (b, n, 74), where `before` holds the tokens that go into the decoder. `F.cross_entropy` wants one row of logits for each token, so flatten batch and positions into one axis; its argument `ignore_index` names a token that does not count.

# %%
predict("passes")

# %% [markdown]
r"""
**"In training the machine writes an answer, and is then corrected."** No: it writes nothing. Your loss calls the model once, and every token that goes in is known beforehand, so no position waits for another. A recurrent decoder needs 11 steps, because it makes each state from the one before.

## 3 · Two machines

`machine_logits` is the whole machine. `padding(lengths, m)`, (b, 1, m), hides the padding of the source from all queries; the layer adds the axis of heads. With `mask=False` the decoder's own attention has no mask:
"""

# %%
def machine_logits(machine, source, lengths, before, mask=True):
    """At each position, the logits of the next token: (b, n, 74)."""
    real = padding(lengths, source.shape[1])
    memory = machine.encoder(machine.embedding(source), mask=real).output
    own = causal(before.shape[1], device=before.device) if mask else None
    y = machine.embedding(before)
    y = machine.decoder(y, memory, mask=own, memory_mask=real).output
    return machine.embedding.logits(y)


# %%
loss_of = yours("next_character_loss")


def train_machine(model, machine, name, peak=6e-3):
    """Train in place; the loss of each step."""
    steps = 20 if quick() else 500
    # pairs of training days; sources of like length share a batch (pool), so little is padded
    draw = Batches(vocabulary, translation.single, batch=48, pool=8)
    generator, losses = torch.Generator("cpu").manual_seed(0), []
    optimizer = torch.optim.Adam(machine.parameters())
    for step in counted(range(1, steps + 1), machine, losses, name):  # under a bar
        rise, fall = 10 * step / steps, (steps - step) / (0.9 * steps)
        optimizer.param_groups[0]["lr"] = peak * min(rise, fall)
        loss = loss_of(model, *to_device(draw(generator)))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(machine.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


# %% [markdown]
r"""
The loop has two rules of the trade ([evidence](evidence/06_transformer_evidence.ipynb)): the learning rate rises for 50 steps and then falls to 0, and a gradient longer than 1 is cut to this length, so that one odd batch does not count too much. We train two machines from the same first weights on the same batches. A has the causal mask, and B has none.
"""

# %%
predict("without_mask")

# %% tags=["trained"]
a = to_device(machine)
b = copy.deepcopy(a)
models = {"A": partial(machine_logits, a), "B": partial(machine_logits, b, mask=False)}
losses = {"A": train_machine(models["A"], a, "A"), "B": train_machine(models["B"], b, "B")}
translator_figures.losses(losses)

# %% [markdown]
r"""
At first the two curves run together. Then the curve of B drops. Now both machines write, for 1,000 dates of days that neither has seen. `write` appends the token with the largest logit, 11 times:
"""


# %%
@torch.no_grad()
def write(model, source, lengths, longest=11):
    """The written tokens (b, longest)."""
    before = torch.ones_like(source[:, :1])  # start is token 1
    for _ in range(longest):
        logits = model(source, lengths, before)[:, -1:]  # of the last position
        before = torch.cat([before, logits.argmax(-1)], dim=1)
    return before[:, 1:]


# %% tags=["nbval-ignore-output"]
test = to_device(vocabulary.batch(dates.texts(1, "test")))  # one date in each text
source, lengths, target = to_device((source, lengths, target))
right = {}
for name, model in models.items():
    written = write(model, test.source, test.lengths)
    right[name] = (written == test.target[:, 1:]).all(1).float().mean().item()
    loss = sum(losses[name][-20:]) / 20
    print(f"{name}: loss {loss:.4f}, right on unseen days {right[name]:.2f}")
    print("  ours", spell(write(model, source, lengths)))

# %% tags=["proof"]
final = {name: sum(each[-20:]) / 20 for name, each in losses.items()}
assert quick() or (final["B"] < final["A"] / 5 and right["A"] > 0.7 and right["B"] < 0.01)

# %% [markdown]
r"""
B ends with a loss far below A's. A gets most of the unseen dates right, and B none: what it writes is no date.

**"A low training loss means a good translator."** B refutes it.

## 4 · What did B learn?

The two machines differ only in which tokens the decoder may see. So disturb the future and compare the past (03): change one token that goes in, and look at the logits of the positions *before* it.
"""

# %% [markdown] tags=["exercise:reads_ahead"]
# Write this test. Here `model(before)` gives the logits (1, n, 74): the source is in it already. For each position $i$, put the token `other` there, in a fresh copy of `before`, run the model again, and add up how far all logits at positions 0 to $i - 1$ have moved, up or down. Return the $n$ sums as a tensor.

# %% tags=["nbval-ignore-output"]
ahead_of = yours("reads_ahead")
seven = names.index("7")  # our date has no 7
before = target[:, :11]
print("goes in ", spell(before))
for name, model in models.items():
    with torch.no_grad():
        moved = ahead_of(partial(model, source, lengths), before, seven)
    print(f"{name} moved by", "".join(f"{value:6.1f}" for value in moved)[2:])

# %% tags=["proof"]
for name, model in models.items():
    with torch.no_grad():
        moved = ahead_of(partial(model, source, lengths), before, seven)
    assert moved.max() == 0 if name == "A" else moved[1:].min() > 0

# %% [markdown]
r"""
Read the last column, where the final 3 became a 7. In A no earlier logit moved at all; in B some did. (Column 0 has nothing before it.) So B **reads ahead**: its logits at a position depend on tokens that come later. Such a fault is called a **leak**.

What does B do with what it reads? Put a 7 in column 4, where the last digit of the year goes in, and see what both say in column 3:
"""

# %% tags=["nbval-ignore-output"]
changed = before.clone()
changed[:, 4] = seven
print("goes in ", spell(changed))
print("must say", spell(target[:, 1:]))
for name, model in models.items():
    print(f"{name} says  ", spell(model(source, lengths, changed).argmax(-1)))

# %% [markdown]
r"""
In column 3, A still says 1, the right digit. B says 7: it says what stands one column to the right in the upper line. If B only copies, it does not need the source. So give each test date the source of another date, and count how many tokens of its answer are said right:
"""

# %% tags=["nbval-ignore-output"]
sources = {
    "own": (test.source, test.lengths),
    "another's": (test.source.roll(1, 0), test.lengths.roll(1)),
}
other = test.target.roll(1, 0)[:, 1:]
same = (test.target[:, 1:] == other).float().mean()
print(f"two dates share {same:.2f} of their tokens")
said = {}
for name, model in models.items():
    for whose, given in sources.items():
        with torch.no_grad():
            logits = model(*given, test.target[:, :-1])
        answer = logits.argmax(-1)
        said[name, whose] = (answer == test.target[:, 1:]).float().mean().item()
        print(f"{name}, {whose:9} source: {said[name, whose]:.2f} right", end="")
        print(f", {(answer == other).float().mean():.2f} as in the other date")

# %% tags=["proof"]
assert quick() or (said["A", "own"] > 0.9 and abs(said["A", "another's"] - same) < 0.1)
assert quick() or min(said["B", whose] for whose in sources) > 0.98

# %% [markdown]
r"""
With its own source A says nearly every token right. With another's it mostly says the other date. B says nearly every token right with both: while it can copy, the source does not matter. These are unseen days: they give no warning either.

Look at our two lines again. At every position but the last, the answer stands one column to the right in the line that goes in, because both are one `target`, shifted. B has found this, which makes its loss nearly 0, so nothing pushes it to read the source. But when it writes, nothing stands to the right of the last token, so B has nothing to copy. From A the causal mask hides the next token, so A had to read the source. You would ship A.

## In real work

torch has encoder and decoder together as `nn.Transformer`. In its masks True means *hidden*. A translator needs three: `tgt_mask`, the causal one; `src_key_padding_mask`, which hides padding inside the encoder; and `memory_key_padding_mask`, which hides it from the cross-attention. (The target's padding needs none: it stands on the right, so the causal mask hides it.) Forget the third, and nothing fails. Put four rows of padding behind nine, and compare:
"""

# %%
_ = torch.manual_seed(0)
layers = {"num_encoder_layers": 2, "num_decoder_layers": 2, "dim_feedforward": 256}
core = nn.Transformer(64, nhead=4, **layers, dropout=0.0, batch_first=True)  # post-norm
x, y = torch.randn(1, 9, 64), torch.randn(1, 5, 64)  # rows of encoder and decoder
masks = {"tgt_mask": ~causal(5), "src_key_padding_mask": torch.arange(13)[None] >= 9}
longer = F.pad(x, (0, 0, 0, 4))
alone = core(x, y, tgt_mask=~causal(5))
for name, third in {"two masks": None, "three masks": masks["src_key_padding_mask"]}.items():
    padded = core(longer, y, **masks, memory_key_padding_mask=third)
    print(f"{name:12} changes a number by up to {(padded - alone).abs().max():.2f}")

# %% [markdown]
r"""
With three masks padding changes nothing. Without the third, numbers of size 1 change by up to «0.50»: a translation depends on how long the other texts of its batch are.

## To carry away

`carry/transformer.py` holds the whole machine. Here are both ends, and the causal mask (`cache` is for 06c):
"""

# %%
from carry import transformer as carried

show_source(carried.Transformer.embed, carried.Transformer.decode)

# %% [markdown]
r"""
Your two functions take the source last; it is masked where a token is 0, so no `lengths` are needed. For `other` the test takes the vocabulary's next token:
"""

# %%
show_source(carried.loss_of, carried.reads_ahead)

# %% [markdown]
r"""
Load the machine that we opened first, and let the file write our date:
"""

# %% tags=["trained"]
again = to_device(carried.Transformer(len(names)))
again.load_state_dict(translation.carried_names(trained.transformer.state_dict()))
leak = carried.reads_ahead(again, target, source).max()
print(spell(carried.write(again, target[:, :1], source)))
print(f"reads ahead by {leak:.1f}")

# %% [markdown]
r"""
It does. In training it reads only right characters; when it writes, its own. What becomes of a wrong one? (06c)

**To remember.** If a training loss is too good, suspect a model that reads ahead.

- In goes the target without its last token; wanted is the target without its first; padding does not count.
- Disturb the future, compare the past: this finds a leak from outside.
- In `nn.Transformer`, `memory_key_padding_mask` hides the source's padding from the decoder.

**Sources.** Vaswani et al. 2017 (arXiv:1706.03762), section 3; Press & Wolf 2016 (arXiv:1608.05859), for the one table. Three seeds, schedules, errors by language: [evidence](evidence/06_transformer_evidence.ipynb).

**Next**: [06c · Writing](06c_writing.ipynb), or on the core path [06d · BERT](06d_bert.ipynb).
"""
