# %% [markdown]
r"""
{title}

In training the machine read the right characters and never its own. Now it translates *3. märz 2021* alone, and nobody puts it right. What it writes it must read.

**Afterwards you can** write the loop by which all such models write, and one step of a beam; say what a cache saves, and find the mask that breaks it.

{about}

<details><summary>中文摘要 · Chinese</summary>
写的时候没有正确答案可读:模型读自己写过的字符,一个接一个。本课写出这个循环,看它如何对待自己的错误,再用缓存避免重复计算,
用束搜索寻找更可能的文本,最后与 01b 的循环网络相比。
</details>
"""

# %%
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.chapters.c06_transformer import writing_figures as figures
from lesson_lib.chapters.c06_transformer.experiments import translation
from lesson_lib.checks import check, hint, predict, solution, warm_up, yours
from lesson_lib.device import quick, to_device
from lesson_lib.experiments import dates
from lesson_lib.masks import causal
from lesson_lib.models.translator import translate
from lesson_lib.show import show
from lesson_lib.training import stored
from lesson_lib.widgets import AlignmentExplorer

_ = torch.manual_seed(0)
warm_up()

# %% [markdown]
r"""
A **sign** is a character, *start* or *end*. Here is the translator of part 06b after 600 small steps of its loop, `fit`, stored, so that it still errs:
"""

# %%
with stored():  # reads what this training left before
    model, _ = translation.train(seed=0, steps=600, batch=48)
source, lengths = to_device(model.vocabulary.encode(["3. märz 2021"]))
start, end = to_device(torch.tensor([1])), 2  # their numbers in the vocabulary


@torch.no_grad()
def score_next(signs):
    """A logit for each possible sign after these, (n,), which begin with start."""
    return model(source, lengths, signs[None]).logits[0, -1]


# %% [markdown]
r"""
## 1 · Sign by sign

Append the likeliest sign, feed everything back, repeat until *end*. This is called **greedy** decoding.
"""

# %% [markdown] tags=["exercise:greedy_words"]
# Write the loop, for words of any kind. `begin` is what stands there already.

# %%
greedy_of = yours("greedy_words")  # ours, until yours has passed
written = greedy_of(score_next, start, end, most=20)
(text,) = model.vocabulary.decode(written[None])

# %% tags=["proof"]
assert quick() or text == "2021-03-03"

# %%
print(written.tolist(), "->", text)

# %% [markdown]
r"""
The recurrent decoder of part 01b also writes one by one; it hands on a state. Here *everything* written so far goes in again.
"""

# %%
predict("wrong_start")

# %%
behind = {}
for first in ("2", "1", "9"):
    begun = torch.cat([start, to_device(model.vocabulary.encode([first])[0][0])])
    written = greedy_of(score_next, begun, end, most=20)
    behind[first] = first + model.vocabulary.decode(written[None])[0]

# %% tags=["proof"]
assert quick() or "-03-03" in behind["1"]

# %% tags=["nbval-ignore-output"]
for first, text in behind.items():
    print(f"begun with {first}: {text}")

# %% [markdown]
r"""
Behind 1 it writes a year, then the right month and day, at times with a 0 too many. The year differs with seed and machine: 1921, 1202, 120; after 600 steps four digits are not yet sure. Behind 9, which begins no year of its training, it does the same. It goes on from what stands there, and cannot take a sign back. In training it
never saw a mistake of its own.

**"A wrong sign spoils the rest."** On 1,000 dates never trained on, count the right signs, once behind the right ones (teacher forcing), once behind its own:
"""

# %%
pairs = dates.texts(1, "test")
batch = to_device(model.vocabulary.batch(pairs))
with torch.no_grad():
    logits = model(batch.source, batch.lengths, batch.target[:, :-1]).logits
wanted = batch.target[:, 1:11]  # ten characters, without end
forced = (logits[:, :10].argmax(-1) == wanted).float()
made = [answer.text for answer in translate(model, [pair.source for pair in pairs])]
texts = [text[:10].ljust(10, "-") for text in made]
own = (to_device(model.vocabulary.encode(texts)[0]) == wanted).float()
exact = own.all(1).float().mean().item()
figures.by_place(forced.mean(0).cpu(), own.mean(0).cpu())

# %% tags=["proof"]
assert quick() or (exact > 0.85 and forced.mean() >= own.mean() > 0.95)

# %%
wrong = [(p, text) for p, text in zip(pairs, made, strict=True) if text != p.target]
swapped = sum(sorted(text) == sorted(pair.target) for pair, text in wrong)

# %% tags=["proof"]
assert quick() or swapped > len(wrong) / 2

# %% tags=["nbval-ignore-output"]
print(f"signs right: forced {forced.mean():.3f}, its own {own.mean():.3f}")
print(f"{len(wrong)} dates wrong, {swapped} of them by the order of their digits:")
for pair, text in wrong[:4]:
    print(f"{pair.source:34} {pair.target}   it wrote {text}")

# %% [markdown]
r"""
Most of the wrong dates have the right digits in a wrong order. Look at places 4, 7 and 10, where a number ends. Behind right signs hardly a mistake begins there. On its own, having written 1 where 3 belongs, it writes 3 where 1 belongs: one swap is two wrong signs. The next number is right again; it is read off the input.

## 2 · The cache
"""

# %%
predict("rows_of_a_date")

# %% [markdown]
r"""
A row is one sign's way through all layers. Under the causal mask, in every layer, a sign sees earlier ones only, so its keys and values never change, whatever follows. So each layer keeps two tables: its own signs' keys and values, a **cache** that grows, and the memory's, which do not. By hand, for one attention:
"""

# %%
q, k, v = torch.randn(3, 6, 8)  # six signs; queries, keys, values of width 8
whole = attend(q, k, v, mask=causal(6)).output  # all at once
keys, values, outputs = k[:0], v[:0], []  # an empty cache
for i in range(6):
    keys = torch.cat([keys, k[i : i + 1]])
    values = torch.cat([values, v[i : i + 1]])
    outputs.append(attend(q[i : i + 1], keys, values).output)
assert_close(torch.cat(outputs), whole)

# %% [markdown]
r"""
**"With a cache the model computes something else."** The outputs are the same. No mask is needed: what comes later is not in the cache yet. And in the whole machine:
"""

# %%
before = batch.target[:1, :-1]  # start and ten characters
one = to_device(model.vocabulary.encode([pairs[0].source]))
state = model.start(*one)  # the encoder runs once; the caches are empty
with torch.no_grad():
    steps = [model.step(sign, state).logits for sign in before[0, :, None]]
    whole = model(*one, before).logits[0]
assert_close(torch.cat(steps), whole, atol=1e-4, rtol=1e-4)
cache = state.caches[0]
print(
    "decoder layer 0 keeps",
    len(cache.own),
    "signs and",
    len(cache.cross),
    "of the memory",
)

# %% [markdown]
r"""
It computed «11» rows, not 66, and gave the same logits. What does this save in seconds?
"""

# %%
figures.cost_of_writing()

# %% [markdown]
r"""
At 10 signs little, since one small pass costs nearly as much as a larger one; at 200 signs five sixths. It costs storage: in each layer a key and a value for each sign written, and once for each sign read.

## 3 · Greedy is not the likeliest
"""

# %%
predict("likeliest")

# %% [markdown]
r"""
**Beam search** keeps the best few beginnings; their number is the **width**. Each is continued by every sign; of all these continuations the likeliest are kept. Log-probabilities add up. A beginning that has reached *end* stays as it is, and competes.
"""

# %% [markdown] tags=["exercise:best_continuations"]
# Write one step.

# %%
total = torch.tensor([0.6, 0.4]).log()  # A and B
logs = torch.tensor([[0.4, 0.35, 0.25], [1.0, 0.0, 0.0]]).log()  # what follows each
step_of = yours("best_continuations")
for beginning, sign in step_of(total, logs).tolist():
    chance = (total[beginning] + logs[beginning, sign]).exp()
    print(f"{'AB'[beginning]}, then sign {sign}: {chance:.2f}")

# %% [markdown]
r"""
The beam finds the text of «.40». And on our dates?
"""

# %%
four = [a.text for a in translate(model, [p.source for p in pairs], width=4)]
right = {
    1: exact,
    4: sum(a == p.target for a, p in zip(four, pairs, strict=True)) / 1000,
}
surer = figures.surer(model, wrong)  # wrong dates that are likelier than the right ones

# %% tags=["proof"]
assert quick() or abs(right[4] - right[1]) < 0.02

# %% tags=["nbval-ignore-output"]
print("dates right, by width:", {w: round(share, 3) for w, share in right.items()})
print(
    f"of {len(wrong)} wrong dates {surer} are likelier, to the model, than the right ones"
)

# %% [markdown]
r"""
Four beginnings change the number of right dates by hardly one in 1,000. Nearly all wrong dates are likelier than the right ones; even a perfect search could mend only the rest. Where greedy errs more, a beam helps more: on three dates in one text, in stored runs, it brought 12 to 24 of 1,000.

## 4 · Why then the Transformer?

Where does it look while it writes (first decoder layer, mean of the heads)?
"""

# %%
AlignmentExplorer(model, ["3. märz 2021", "14 juillet 1989", "december 31, 2049"])

# %% [markdown]
r"""
At the year's digits, then the month, then the day, much as the recurrent machine of part 01b. And how good are both on several dates in a row?
"""

# %%
figures.beside_the_recurrent()

# %% [markdown]
r"""
Trained on one date it has none of two. Trained on one to three it has .89 of two, .51 of three, and none of four: places that it never met (part 05c). Why only half of three, which it met, we do not know. The recurrent machine, trained on each count alone and on fewer texts, has .98 of three. **Here the Transformer is no improvement.**

The gain of 2017 is another, and this picture shows no time: for one date the recurrent decoder takes 11 steps in training, each waiting for the last; ours takes one. What parallel machines make of that is counted in part [08b](08b_costs.ipynb).

## In real work

torch's function with a cache, and the bug that people meet:
"""

# %%
predict("which_rows")

# %%
look = F.scaled_dot_product_attention
right = attend(q[-1:], k, v).output  # the newest of six signs; k, v: the cache
assert_close(look(q[-1:], k, v), right)
buggy = look(q[-1:], k, v, is_causal=True)
show(right=right[0, :3], buggy=buggy[0, :3], value_of_sign_0=v[0, :3])

# %% [markdown]
r"""
With one query the mask has one row, the first: the newest sign sees key 0 alone, and gets its value. No error is raised. For a single new sign leave the mask out; for $r$ new ones hand in the last $r$ rows of the causal mask.

Language models write in the same loop, but draw the next sign by its probability (part [06e](06e_gpt.ipynb)).

## The date once more

*3. märz 2021* became eleven questions, each with all that was written before. When we put a wrong sign in its mouth, it went on from there.

**To remember.** It writes by reading itself; a cache saves most of that work, and gives the same text.

- Ask, choose, append, ask again, until *end*.
- Under a causal mask, keys and values can be kept.
- Greedy takes the best sign, a beam looks for the best text.
- `is_causal` lines up the first query with the first key.
- Here no more accurate than a recurrent net; but it learns all places at once.

**Sources.** Vaswani et al. 2017 (arXiv:1706.03762); Sutskever, Vinyals & Le 2014 (arXiv:1409.3215), for beams; Bengio et al. 2015 (arXiv:1506.03099), on reading one's own mistakes. Three seeds, errors by language: [evidence](evidence/06_transformer_evidence.ipynb).

**Next**: [06d · BERT](06d_bert.ipynb): what does the encoder alone learn?
"""
