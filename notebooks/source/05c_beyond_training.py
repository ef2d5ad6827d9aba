# /// ideas
# [table_ends]
# says = "a learned table is right where it was trained: its fall can be computed beforehand"
# motive = "A layer has learned to name"
# shown = "by arithmetic"
# action = 'predict("learned_at_128")'
#
# [two_questions]
# says = "ask of positions at a new length: do they run there, and has training met all that the layer meets there?"
# motive = "Running at a length is not being right there"
# shown = "two questions"
# action = 'predict("who_survives")'
#
# [distances]
# says = "positions in the score: Shaw's learned vector for each distance, shared beyond a radius; it survives"
# motive = "Distances last longer than positions"
# shown = "figures.stored_lengths()"
# action = 'predict("who_survives")'
#
# [alibi]
# says = "ALiBi: minus slope times distance in the score; near counts more than far"
# motive = "is the simplest"
# shown = "alibi_bias"
# action = "alibi_bias"
#
# [rotary_falls]
# says = "rotary falls because of distances that training never had: hidden, it is right again"
# motive = "Do the new distances do the harm?"
# shown = "near keys"
# action = 'predict("hidden_far")'
#
# [squeeze]
# says = "position interpolation squeezes new positions into the trained range; exact near distances are lost"
# motive = "training at full length is costly"
# shown = "from twelve back"
# action = "squeezed"
#
# [order_of_far]
# says = "squeezing keeps what is later and earlier: a task that needs this alone is saved without training"
# motive = "a task that needs no exact distance"
# shown = "interpolated"
# action = 'predict("stretched_far")'
#
# [one_clock_decides]
# says = "both tasks read the third clock, and need opposite things of it; without it, distances are confused"
# motive = "Which clocks does each task read?"
# shown = "slowed clock"
# action = 'predict("confused")'
#
# [by_parts]
# says = "a rule that knows no task: slow the clocks that did not go round in training (YaRN's idea)"
# motive = "Can a rule choose the clocks without knowing the task?"
# shown = "yours('by_parts')(plain"
# action = "by_parts"
#
# [ignored]
# says = "a configuration says how the clocks were slowed, and code that ignores it fails silently"
# motive = "The bug that people meet"
# shown = "off by up to"
# action = "Repair the line"
# ///

# %% [markdown]
r"""
{title}

A layer has learned to name the symbol three positions back, from texts of 32 symbols. Now it gets 128. There are several ways to tell it the positions, and most of them fail. Can you say *by how much*, before you measure?

**Afterwards you can** predict where a table of positions ends; write a penalty on distance (ALiBi) and position interpolation; say which positions survive a longer text and why, and what is lost if a trained model is stretched.

{about}

<details><summary>中文摘要 · Chinese</summary>
一层注意力在 32 个符号的文本上学会了“向前数三个”。换成 128 个符号,哪种位置还对?差多少,可以先算再量。本课比较几种位置在更长文本上的表现,
再把训练好的旋转位置压缩、分段放慢,看哪种任务得救、哪种任务被毁,以及为什么最后还要在新的长度上训练一会儿。
</details>
"""

# %% tags=["imports"]
from functools import partial

import torch

from lesson_lib.chapters.c05_positional_encoding import figures
from lesson_lib.chapters.c05_positional_encoding.experiments import order, stretch
from lesson_lib.course import *
from lesson_lib.device import quick, to_device
from lesson_lib.training import stored

_ = torch.manual_seed(0)
warm_up()

# %% [markdown]
r"""
## 1 · A table ends where it ends

The network is that of 05a: one layer of attention with four heads, without a mask, and a linear read-out. A text has 32 symbols, each one of 16, drawn at random; the task is to name the symbol three back, at every position but the first three. A **learned table** of codes has a row $p_i$ for each position. It starts at random, is trained like any weight, and is added, $x_i + p_i$. Ours has 128 rows, and training at 32 symbols reaches rows 0 to 31. The other 96 stay as they were drawn.
"""

# %%
predict("learned_at_128")

# %% tags=["nbval-ignore-output"]
# 400 steps, some seconds; train gives the model and its history
model, _ = order.train("learned", lr=1e-2)
gaps = []
for n in (48, 64, 128):
    share = (29 + (n - 32) / 16) / (n - 3)  # positions 3 to 31 known, the rest guessed
    measured = order.accuracy(model, n, order.TEST_SEED)
    print(f"{n:3} symbols: by arithmetic {share:.2f}, measured {measured:.2f}")
    gaps.append(abs(share - measured))

# %% tags=["proof"]
assert quick() or max(gaps) < 0.03

# %% tags=["trained"]
figures.by_position(order.right_by_position(model, 128, order.TEST_SEED).cpu())

# %% [markdown]
r"""
Arithmetic and measurement agree, and the picture shows where: the layer is right up to position 31, and guesses from there on. More training at 32 symbols cannot help, since no batch reaches row 32. And at 129 symbols there is no row at all.

## 2 · Positions or distances

Codes that are added say *where* a token stands. Other ways say how far apart two tokens are. Distances last longer than positions: in a longer text every position beyond 31 is new, but neighbours are as far apart as ever.

| way | where it enters | what is learned |
|---|---|---|
| learned table | added to the tokens | a row for each position |
| sinusoidal (05a) | added to the tokens | nothing |
| rotary (05b) | queries and keys are turned | nothing |
| Shaw | the score gets $q_i \cdot a_{j - i}$ | a vector $a$ for each offset $j - i$ from $-r$ to $r$; keys beyond the radius $r$ get the last vector of their side |
| ALiBi | the score gets −slope · distance | nothing: each head is given a slope, 1/2, 1/4 and so on |

ALiBi, attention with linear biases, is the simplest. Its distance is $|i - j|$, so both sides count alike.
"""

# %% [markdown] tags=["exercise:alibi_bias"]
# Write what ALiBi adds to the scores of one head, (n, n).

# %%
from carry import positions as carried  # the file that 05a and 05b began

word = torch.randn(1, 16).expand(24, -1)  # one word everywhere: only positions differ
w_q, w_k = torch.randn(2, 16, 16) / 4
rows = torch.randn(9, 16)  # Shaw's vectors, for offsets from -4 to 4
table, clocks = torch.randn(24, 16), carried.sinusoidal(24, 16)
q, k = word @ w_q, word @ w_k
i = torch.arange(24)
offsets = (i - i[:, None]).clamp(-4, 4) + 4  # j - i, (24, 24): 0 is the row for -4
shaw = (q[:, None] * rows[offsets]).sum(-1)  # q_i · a of that offset
tables = {
    "none": q @ k.T,
    "learned": (word + table) @ w_q @ ((word + table) @ w_k).T,
    "sinusoidal": (word + clocks) @ w_q @ ((word + clocks) @ w_k).T,
    "Shaw": q @ k.T + shaw,
    "ALiBi": q @ k.T + yours("alibi_bias")(24, 0.5),
    "rotary": carried.rotary(q) @ carried.rotary(k).T,
}
figures.score_tables(tables)

# %% [markdown]
r"""
Without positions all scores are equal. In the lower three tables each diagonal has one colour: the scores depend on $j - i$ alone. Shaw's has one colour on each side beyond offset 4. ALiBi's is a ridge. Rotary's has waves, so some far keys score as high as near ones. With learned or sinusoidal codes no diagonal has one colour: the parts of the score that hold a code (05b) depend on $i$ and $j$ separately.

## 3 · Who survives?

Running at a length is not being right there. So ask two questions of each way at 128 symbols: does it *run*, and has training met *all that the layer meets there*? (Here Shaw's radius is 8.)
"""

# %%
predict("who_survives")

# %%
figures.stored_lengths()

# %% [markdown]
r"""
At 32 symbols only two fail: the layer without positions, and ALiBi. (All that ALiBi can say is that near keys count more. It is meant for texts, where they do.) At 128 **Shaw** is still right: beyond its radius all keys share two vectors, which training has met. **"Sinusoids extrapolate, because their formula works for every position."** The formula runs, and the layer falls to ‹0.52›: it has never met these codes. **Rotary** meets distances beyond 31. Do the new distances do the harm? Take them away: hide every key that is more than 31 positions from the query.
"""

# %%
predict("hidden_far")

# %%
with stored():  # trained before, with one seed; the picture has the median of three
    rotating, _ = order.train("rotary", lr=0.1)
symbols, right = to_device(order.draw(torch.Generator().manual_seed(5), 200, length=128))
i = torch.arange(128, device=symbols.device)
near = (i[:, None] - i).abs() <= 31
instead = ~near | (i[:, None] - i == 3)  # a control: near ones hidden, but for three back
x = rotating.tokens(symbols)  # a vector for each symbol
for name, mask in {"all keys": None, "near keys": near, "far keys": instead}.items():
    outputs = rotating.layer(x, x, x, mask=mask).output
    logits = rotating.read(outputs)  # a score for each of 16 symbols
    share = (logits[:, 3:].argmax(-1) == right).float().mean()
    print(f"{name:9} {share:.2f}")

# %% [markdown]
r"""
With the new distances hidden it is always right again, at four times the length, and nothing was trained. Is it only that there are fewer keys? No: hide the near ones instead, all but three back, and nothing is gained. So the new distances do the harm: some far keys score high, and training never lowered their scores.

## 4 · Stretch a trained model

A mask hides far words, and training at full length is costly. Can a trained rotary model be stretched? **Position interpolation** (Chen et al. 2023) squeezes the new positions into the old range:
"""

# %% [markdown] tags=["exercise:squeezed"]
# Return the squeezed positions of n tokens, for a model that was trained on texts of `trained` tokens: 0, 1, 2 and so on where n fits, and else all divided by n / trained.

# %% [markdown]
r"""
A clock's angle is its frequency times the position. So dividing all positions by 4 is dividing all frequencies by 4, and that is how we do it. A head here has 16 columns, so eight clocks.
"""

# %%
plain = carried.frequencies(16)  # radians per token: 1, 0.32, 0.1 and so on
torch.testing.assert_close(yours("squeezed")(128, 32)[12] * plain, 12 * (plain / 4))


def right_at_128(model, task, turns):
    """Share of right answers at 128 symbols, if the clocks have the frequencies `turns`."""
    # the layer calls `rotate` on queries and keys; partial fixes one argument
    model.layer.rotate = partial(carried.rotary, turns=turns)
    return stretch.accuracy(model, task, 128)


for name, turns in {"as trained": plain, "interpolated": plain / 4}.items():
    print(f"{name:12} {right_at_128(rotating, 'three back', turns):.2f}")

# %% [markdown]
r"""
Squeezed, it is right as often as a guess. The token three back stands 0.75 back now, and the one from twelve back stands where three back was.

Here is a task that needs no exact distance, **the latest wins**. A token is a name with a number, each one of 16. The last token has no number: it asks for a name that has stood twice before. The answer is the *later* number.
"""

# %%
names, numbers, right = stretch.draw(torch.Generator().manual_seed(17), 1, length=8)
print("names  ", *(f"{name:2}" for name in names[0].tolist()))
print("numbers", *(f"{number:2}" for number in numbers[0, :-1].tolist()), " ?")
print("right  ", right.item())

# %%
predict("stretched_far")

# %%
with stored():  # one layer, rotary, trained at 32, read at the last token
    latest, _ = stretch.train("the latest wins")
for name, turns in {"as trained": plain, "interpolated": plain / 4}.items():
    print(f"{name:12} {right_at_128(latest, 'the latest wins', turns):.2f}")

# %% [markdown]
r"""
Whoever finds both numbers and says either at random is right in 1/2 + 1/2 · 1/16 = 0.53. As trained it is not even that good at 128 symbols. Squeezed it knows, without any training, since who is later stays later when all positions shrink. **"Interpolation makes a model read longer texts."** It saved one task and ruined the other.

## 5 · One clock, two wishes

Which clocks does each task read? Start from the frequencies as trained, and slow one clock alone, by 4. Clock 0 is the fastest.
"""

# %%
tasks = {"three back": rotating, "the latest wins": latest}
print("slowed clock    none", *(f"{clock:4}" for clock in range(8)))
for task, model in tasks.items():
    tried = [plain] + [plain / (1 + 3 * row) for row in torch.eye(8)]  # by 4 where row is 1
    print(f"{task:15}", *(f"{right_at_128(model, task, turns):4.2f}" for turns in tried))

# %% [markdown]
r"""
Three back is harmed if clock 0, 1 or 2 is slowed. The latest wins is helped by slowing clock 2 or 3. So **both tasks read clock 2, and they want opposite things of it.**

Why does three back need it? Slow it alone, and look at the wrong answers.
"""

# %%
predict("confused")

# %%
right_at_128(rotating, "three back", tried[3])  # clock 2 is slow now
said = rotating.read(rotating.layer(x, x, x).output).argmax(-1)
wrong = said[:, 25:] != symbols[:, 22:-3]  # from position 25 on; the right answer is 3 back
same = said[:, 25:] == symbols[:, 3:-22]  # what stands 22 back
print(f"of the wrong answers {same[wrong].float().mean():.0%} name the symbol 22 back")

# %% [markdown]
r"""
To clocks 0 and 1 the key 22 back looks like the key 3 back. Clock 2 tells them apart: in 19 tokens it turns by 1.9 radians, if it is not slowed.

The latest wins must tell early from late. Within 32 tokens clock 2 goes half round, so each of its angles means one distance, and training could make use of it. Within 128 it goes round twice, so one angle stands for several distances; and clock 3 reaches angles that training never met. Both mislead.

Can a rule choose the clocks without knowing the task? Leave those that went round within the trained length, and slow the others. We call this *by parts*. (YaRN, Peng et al. 2023, slows the clocks in between partly.)
"""

# %% [markdown] tags=["exercise:by_parts"]
# Write it. `turns` (d / 2,) are frequencies; a clock goes round within `trained` tokens if its frequency times `trained` is at least $2\pi$. Return `turns`, the slow ones divided by `times`.

# %%
for task, model in tasks.items():
    print(f"{task:17} {right_at_128(model, task, yours('by_parts')(plain, 32, 4)):.2f}")

# %% [markdown]
r"""
Your rule leaves clocks 0 and 1, and slows the rest. The latest wins is saved; three back falls from «0.85» to «0.45». So a stretched model is trained a little *at* the new length. A hundred steps there (medians of three seeds):

| | as trained | interpolated | by parts |
|---|---|---|---|
| three back | ‹0.99› | ‹0.06› | ‹0.74› |
| the latest wins | 0.79 | 0.97 | ‹0.96› |

Training mends all but interpolated three back, where neighbours stand a quarter apart. No way is best in both.

## In real work

| positions | models |
|---|---|
| learned table | BERT, GPT-2, ViT |
| ALiBi | BLOOM, MPT |
| rotary, base $10^4$ to $10^6$ | Llama, Qwen, Mistral, Gemma |
| rotary, slowed by parts | Llama 3.1, gpt-oss, DeepSeek V3 |
| rotary in three layers of four, no positions in the fourth | SmolLM3, Llama 4 |

A layer without positions has no distance that could be new; under a causal mask it still knows some order (05a).

The bug that people meet: a configuration says how the clocks were slowed (`rope_scaling`), and the code ignores it:
"""

# %%
q, k = torch.randn(2, 40, 16) / 2
told = carried.rotary(q, turns=plain / 4) @ carried.rotary(k, turns=plain / 4).T
ignored = carried.rotary(q) @ carried.rotary(k).T
print(f"scores off by up to {(told - ignored).abs().max():.1f}")

# %% [markdown]
r"""
No error is raised, and scores whose standard deviation is 1 are off by up to «3.5». Repair the line of `ignored`: does the number become 0?

## To carry away

`carry/positions.py` has all ways of this chapter and some more, and `python positions.py` prints their score tables beside each other. Here is the rule of Llama 3.1, *by parts* with steps in between: `factor` is our `times`, and `kept` is 1 for clocks with `fast` rounds or more in the trained length (`context`), and 0 for those with `slow` or fewer.
"""

# %%
show_source(carried.llama3)

# %% [markdown]
r"""
## Three back once more

At 32 symbols four ways were always right on three back, and at 128 one of them. The fall of the learned table could be computed beforehand; of the others you can ask whether training met all that the layer meets.

**To remember.** Ask of a longer text: has training met what the layer meets there, and does it still mean the same?

- Codes that are added fail at new positions; for a learned table arithmetic predicts the fall.
- New distances harm rotary; hidden, it is right again.
- Squeezing keeps the order of far words, and loses exact near distance.
- Which clocks are slowed decides what is kept; a little training at the new length mends much.

**Sources.** Shaw et al. 2018 (arXiv:1803.02155); Press et al. 2021, ALiBi (arXiv:2108.12409); Chen et al. 2023 (arXiv:2306.15595); Peng et al. 2023, YaRN (arXiv:2309.00071). Rates, seeds, and the sources' claims: [evidence](evidence/05_positional_encoding_evidence.ipynb).

**Next**: [06a · Layer](06a_layer.ipynb): what stands around attention?
"""
