# /// ideas
# [greedy]
# says = "greedy decoding: ask for the logits of the next token, take the largest, append, ask again, until end"
# motive = "No answer is known now"
# shown = "greedy_of(score_next"
# action = "Write the loop"
#
# [no_way_back]
# says = "what has been written is an input like any other and cannot be taken back: one unsure choice, and the next token fits it surely"
# motive = "Where was the machine unsure?"
# shown = "topk(2)"
# action = 'predict("least_sure")'
#
# [own_mistakes]
# says = "a wrong digit of the year spoils one more, and not the rest of the date"
# motive = "That is a fear about every model"
# shown = "figures.by_place"
# action = 'predict("fourth_digit")'
#
# [read_off]
# says = "what comes next depends on the source, on what has been written, and on the position"
# motive = "Perhaps its mistakes are too small to do harm"
# shown = "All 1,000 answers begin alike"
# action = 'predict("wrong_year")'
#
# [exposure]
# says = "exposure bias: it was trained after right tokens only; it hurts where the next token is read off what was written"
# motive = "In training it read right tokens only"
# shown = "as the hyphens do"
# action = 'predict("four_hyphens")'
#
# [rows_again]
# says = "without a cache the steps compute 1 + 2 + ... + n rows"
# motive = "starts at *start* again"
# shown = "66"
# action = 'predict("rows_of_a_date")'
#
# [cache]
# says = "under the causal mask the keys and values of written tokens never change, in any layer, so they can be kept: a key/value cache; the outputs are the same"
# motive = "Which of these rows are new"
# shown = "keys = torch.cat"
# action = "cache, new"
#
# [price]
# says = "the cache costs memory: a key and a value for each token, in each layer"
# motive = "What does this save in seconds"
# shown = "256"
# action = "figures.cost_of_writing()"
#
# [lined_up]
# says = "is_causal lines query 0 up with key 0; r new tokens need the last r rows of the causal mask"
# motive = "With a cache there are fewer queries than keys"
# shown = "value_of_token_0"
# action = 'predict("which_rows")'
# ///

# %% [markdown]
r"""
{title}

*29.7.2013* goes into the machine of part 06b, and *2031-07-29* comes out. That is wrong in a curious way: two digits have changed places, and everything after them is right. In training the machine read right characters only. Now nobody puts it right, and what it writes, it must read.

**Afterwards you can** write the loop by which all such models write; say what one wrong token costs; keep what need not be computed twice, and give new tokens the right mask.

{about}

<details><summary>中文摘要 · Chinese</summary>
写的时候没有正确答案可读:模型读自己写过的字符,一个接一个。本课写出这个循环,看哪一步最没有把握,再替它写错一个年份,看后面会怎样;
然后用键值缓存避免重复计算,并为新的词元写出正确的掩码。
</details>
"""

# %% tags=["imports"]
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.chapters.c06_transformer import writing_figures as figures
from lesson_lib.chapters.c06_transformer.experiments import translation
from lesson_lib.course import *
from lesson_lib.device import to_device
from lesson_lib.experiments import dates
from lesson_lib.masks import causal
from lesson_lib.training import stored

_ = torch.manual_seed(0)
warm_up()

# %% [markdown]
r"""
Here is the machine that 06b opened first. Its matrices go into the class that you carried away:
"""

# %%
from carry import transformer as carried

with stored():
    trained, _ = translation.train(seed=0, steps=600, batch=48)
vocabulary = trained.vocabulary
names = ["padding", "start", "end", *vocabulary.characters]  # 74 tokens
machine = to_device(carried.Transformer(len(names)))
state = trained.transformer.state_dict()
_ = machine.load_state_dict(translation.carried_names(state))  # under this class's names

# %% [markdown]
r"""
## 1 · One token after the other

No answer is known now. For the tokens written so far, the machine gives each possible next token a logit, and no more. `score_next` asks for these logits. The encoder runs once, since the source does not change; `score_next` runs the decoder alone:
"""

# %%
source, _ = vocabulary.encode(["29.7.2013"])  # numbers (1, 9), and their count
memory, memory_mask = machine.encode(to_device(source))  # mask: True = no padding
start, end = to_device(torch.tensor([1])), 2


@torch.no_grad()
def score_next(tokens):
    """The logits (74,) of the token that follows `tokens` (n,), which begin with start."""
    logits = machine.decode(tokens[None], memory, memory_mask)  # (1, n, 74)
    return logits[0, -1]


# %% [markdown]
r"""
To write, take the token with the largest logit, append it, and ask again, until the token is *end*. This is **greedy** decoding.
"""

# %% [markdown] tags=["exercise:greedy_words"]
# Write the loop. `begin` (n,) are the tokens that stand there already. Return a tensor of the new tokens alone, `end` included, and at most `most` of them.

# %%
greedy_of = yours("greedy_words")  # ours, until yours has passed
written = greedy_of(score_next, start, end, most=20)
print(*(names[token] for token in written.tolist()))

# %% tags=["proof"]
assert "".join(names[token] for token in written.tolist()) == "2031-07-29end"

# %% [markdown]
r"""
Eleven tokens, *end* included, so the loop asked 11 times. Where was the machine unsure?
"""

# %%
predict("least_sure")

# %%
tokens = torch.cat([start, written])
for i in range(len(written)):
    chances, best = score_next(tokens[: i + 1]).softmax(-1).topk(2)
    one, other = (names[token] for token in best.tolist())
    print(f"{i:2}  {one:3} {chances[0]:.2f}   {other:3} {chances[1]:.2f}")

# %% [markdown]
r"""
Each line has a position of the answer, the likeliest token with its probability, and the second. Only position 2 is unsure: 3 has «0.74», and the right 1 has «0.25». It knows that a 1 and a 3 come, and is unsure of their order. Greedy decoding takes the 3. From then on the 3 is an input like any other, and nothing takes it back: at position 3 only the 1 is left. What if we write the 1 ourselves?
"""

# %%
begun = torch.cat([start, to_device(vocabulary.encode(["201"])[0][0])])
right = greedy_of(score_next, begun, end, most=20)
print("201 +", *(names[token] for token in right.tolist()))

# %% [markdown]
r"""
After 201 it writes 3, and the whole date is right. So one choice made two wrong tokens.

## 2 · What does a mistake cost?

**"One wrong token spoils all that follows."** That is a fear about every model that reads its own text. To test it, we let the machine write 1,000 dates of days that it has never seen, twice: once after right tokens (teacher forcing, 06b), and once after its own. For the latter, `carried.write` is your loop for a whole batch; it returns the new tokens, and padding after *end*.
"""

# %%
predict("fourth_digit")

# %%
days = dates.texts(1, "test")  # one date in each text
batch = to_device(vocabulary.batch(days))
starts, wanted = batch.target[:, :1], batch.target[:, 1:]  # wanted: ten characters, end
with torch.no_grad():
    forced = machine(batch.target[:, :-1], batch.source).argmax(-1) == wanted
answers = carried.write(machine, starts, batch.source, longest=11)  # greedy, a batch
own = answers == wanted  # (1000, 11): True = this token is right
figures.by_place(forced[:, :10], own[:, :10])

# %% [markdown]
r"""
Both curves dip at positions 2, 5 and 8, where the machine has to choose a digit. After its own tokens the position after each choice falls, too, and most of all position 3:
"""

# %%
third, fourth, rest = ~own[:, 2], ~own[:, 3], own[:, 4:].all(1)
swapped = (answers[:, 2:4] == wanted[:, [3, 2]]).all(1) & third

# %% tags=["proof"]
assert 30 < third.sum() < 60 and swapped[third].float().mean() > 0.9
assert (third & ~fourth).sum() < 3 and rest[third].float().mean() > 0.9

# %% tags=["nbval-ignore-output"]
print(f"{third.sum()} third and {fourth.sum()} fourth digits are wrong", end="; ")
print(f"{swapped.sum()} years are swapped")
print(f"month and day are right in {rest[third].float().mean():.2f} of these dates,")
print(f"and in {rest.float().mean():.2f} of all dates")

# %% [markdown]
r"""
Nearly all of these years are swapped. And where the year is wrong, month and day are as right as ever. So the fear is unfounded for these mistakes: a wrong third digit brings a wrong fourth one, and month and day stay right.

Perhaps its mistakes are too small to do harm: 2031 is a year as good as 2013. So we make a large one.
"""

# %%
predict("wrong_year")

# %%
def written_after(text):
    """What the machine writes for each of the 1,000 days after a text of ours."""
    ours = to_device(vocabulary.encode([text] * len(days))[0])
    begin = torch.cat([starts, ours], 1)
    return carried.write(machine, begin, batch.source, longest=11 - len(text))


number = [day.source for day in days].index("29.7.2013")
nines = written_after("9999")
right = (nines == wanted[:, 4:]).all(1).float().mean()
print("9999 +", *(names[token] for token in nines[number].tolist()))
print(f"right in {right:.2f} of the dates; after its own year {rest.float().mean():.2f}")

# %% tags=["proof"]
assert (right - rest.float().mean()).abs() < 0.02 < 0.9 < right

# %% [markdown]
r"""
Our date goes on with -07-29, and over all days the rest is right as often as after the machine's own year. All 1,000 answers begin alike, so what differs after 9999 can come from the source alone. At the fourth digit the machine did read what had been written. Does it read it after the year, too? Put four hyphens in place of the year:
"""

# %%
predict("four_hyphens")

# %%
hyphens = written_after("----")
month = (hyphens[:, :2] == wanted[:, 5:7]).all(1).float().mean()
more = (hyphens[:, :6] == wanted[:, 5:]).all(1).float().mean()
print("---- +", *(names[token] for token in hyphens[number].tolist()))
print(f"the month comes at once, and is right in {month:.2f}; the day too in {more:.2f}")

# %% tags=["proof"]
assert month > 0.85 and more < 0.5

# %% [markdown]
r"""
After a hyphen a number has always come. So the machine writes the month at once, one position early, and mostly the right one. Then the day goes wrong, while *end* comes at position 10, as in every date. What it writes depends on three things: on the source (month and day after 9999), on what has been written (the fourth digit, and the month after a hyphen), and on the position (*end*). In training the three always agreed.

In training it read right tokens only, and now it reads its own. This difference is called **exposure bias**. The machine's own mistakes look like other dates, so they cost little. A text that looks like nothing it ever read, as the hyphens do, can lead it astray. A language model (06e) has no source at all: it reads what has been written, and nothing else.

*Do:* let it go on from a beginning of yours, such as `written_after("20")`.

## 3 · The same rows again

Your loop wrote our date in 11 runs of the decoder, and each run starts at *start* again.
"""

# %%
predict("rows_of_a_date")

# %% [markdown]
r"""
Which of these rows are new in a run? Only the last. Under the causal mask a token sees itself and earlier tokens. So its row after the first layer does not depend on what follows, and therefore neither does its row after the second. Later tokens need two things of it in each layer, its key and its value. They are computed once and kept: this is the **key/value cache**. By hand, for one attention and six tokens:
"""

# %%
q, k, v = torch.randn(3, 6, 8)  # queries, keys and values of width 8
whole = attend(q, k, v, mask=causal(6)).output  # all at once
keys, values, outputs = k[:0], v[:0], []  # an empty cache
for i in range(6):
    keys = torch.cat([keys, k[i : i + 1]])
    values = torch.cat([values, v[i : i + 1]])
    outputs.append(attend(q[i : i + 1], keys, values).output)
assert_close(torch.cat(outputs), whole)

# %% [markdown]
r"""
No mask is needed: when a token asks, later keys are not in the cache yet.

**"With a cache the model computes something else."** The last line says that the outputs are the same. Now in the whole machine. `decode` takes an empty dictionary as its cache, and then the new tokens alone:
"""

# %%
cache, new, cached, rows = {}, start[None], [], 0
while new.item() != end:
    rows += new.shape[1]
    with torch.no_grad():
        logits = machine.decode(new, memory, memory_mask, cache)
    new = logits[:, -1:].argmax(-1)
    cached.append(new[0])

# %% tags=["proof"]
assert torch.equal(torch.cat(cached), written)

# %%
print(rows, "rows:", *(names[token] for token in torch.cat(cached).tolist()))

# %% [markdown]
r"""
It wrote the same tokens from «11» rows; yours took 66. What does this save in seconds?
"""

# %%
figures.cost_of_writing()

# %% [markdown]
r"""
Both axes are logarithmic. At 10 characters the curves nearly meet. At 200 characters 20,100 rows became 200, a hundredth, but the time is only a sixth. There are still 200 runs, each starts all operations of all layers, and its query still meets all kept keys. The price is storage. In this machine 2 layers keep a key and a value of 64 numbers each, which makes 256 numbers for each token written.

## In real work

With `is_causal=True` torch's function makes the causal mask by itself. That is handy in training, where queries and keys are the same tokens. With a cache there are fewer queries than keys.
"""

# %%
predict("which_rows")

# %%
look = F.scaled_dot_product_attention
buggy = look(q[5:], k, v, is_causal=True)
show(right=whole[5, :3], buggy=buggy[0, :3], value_of_token_0=v[0, :3])

# %% [markdown]
r"""
The newest token got the value of token 0 and nothing else, and no error is raised. One new token needs no mask at all. Several new tokens at once, such as the next question in a chat, need one:
"""

# %% [markdown] tags=["exercise:mask_of_new"]
# Write the mask (new, past + new) for `new` tokens after `past` cached ones.

# %%
mask = yours("mask_of_new")(past=4, new=2)
assert_close(look(q[4:], k, v, attn_mask=mask), whole[4:])
print(mask.int())

# %% [markdown]
r"""
These are the last two rows of the causal mask. With them, the two newest tokens get the same outputs as when all six were computed together.

## To carry away

The cache is kept in the attention, and your mask is made in `decode`, where `n` tokens are new:
"""

# %%
show_source(carried.Attention.forward, carried.Transformer.decode)

# %% [markdown]
r"""
The dictionary `cache` has an entry for each attention, its keys and values so far. Self-attention appends the new keys and values; cross-attention computes those of the memory in the first run and reuses them. `embed` gives a new token the code of position `past`; with the code of position 0 the output would be wrong, and no error would say so. (The lines on `rotary`, and calls without a memory, serve 06e.)

And *29.7.2013*? A search that keeps both beginnings, a **beam**, is an [exercise](exercises/06_transformer.ipynb). It would not help here. The probability of a text is the product of its tokens' probabilities. With 201 it is at most «0.25», since no factor is above 1; with 203 it is about «0.74», since all other factors are near 1. So the mistake is the machine's and not the search's.

**To remember.** It writes by reading itself; what has been written stays.

- Ask, choose, append, ask again, until *end*.
- A wrong token costs the tokens that depend on it: here one digit, and not the date.
- Under a causal mask keys and values can be kept; r new tokens take the last r rows of the mask.

**Sources.** Vaswani et al. 2017 (arXiv:1706.03762); Bengio et al. 2015 (arXiv:1506.03099), on reading one's own mistakes. Three seeds, beams, several dates in a row: [evidence](evidence/06_transformer_evidence.ipynb).

**Next**: [06d · BERT](06d_bert.ipynb): what does the encoder alone learn?
"""
