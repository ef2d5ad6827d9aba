# %% [markdown]
r"""
# 06c · How does it write?

In training the machine read the right characters and never its own. Now it translates *3. märz 2021* alone, and nobody puts it right. What it writes it must read.

**Afterwards you can** write the loop by which all such models write, and one step of a beam; say what a cache saves, and find the mask that breaks it.

**Time** about 45 minutes. **You need** part [06b](06b_translator.ipynb). **Exercises**: [exercises/06_transformer](exercises/06_transformer.ipynb).

<details><summary>中文摘要</summary>
写的时候没有正确答案可读:模型读自己写过的字符,一个接一个。把第一个字符换成错的,它会接着错的往下写。缓存保存已算过的键和值,结果不变,行数从 66 降到 11。
贪心不一定得到最可能的文本;束搜索同时保留几个开头。在这个规模上,Transformer 并不比 01b 的循环网络更准,但训练时所有位置同时计算。
</details>
"""

# %%
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor
from torch.testing import assert_close

from lesson_lib.chapters.c06_transformer import writing_figures as figures
from lesson_lib.chapters.c06_transformer.experiments import translation
from lesson_lib.checks import check, hint, predict, solution, warm_up
from lesson_lib.device import quick, to_device
from lesson_lib.experiments import dates
from lesson_lib.models.translator import translate
from lesson_lib.widgets import AlignmentExplorer

_ = torch.manual_seed(0)
warm_up()

# %% [markdown]
r"""
Train the translator of part 06b by the same loop, `fit`, for 500 steps instead of 1,000. It shall still make mistakes.
"""

# %%
model, _ = translation.train(seed=0, steps=500)
source, lengths, _ = to_device(model.vocabulary.batch([("3. märz 2021", "-")]))
start = torch.ones_like(source[:, :1])  # (1, 1): the number of start is 1


@torch.no_grad()
def score_next(words):
    """Logits of the sign after words (n,), which begin with start."""
    return model(source, lengths, words[None]).logits[0, -1]


# %% [markdown]
r"""
## 1 · Word by word

Which sign is likeliest, is appended, and goes in with all the others for the next one. So it goes until *end* is written. This is called **greedy** decoding.
"""

# %% [markdown] tags=["exercise:greedy_words"]
# Write the loop, for signs or words of any kind.

# %%
words = start[0]
for _ in range(11):
    chances = score_next(words).softmax(-1)
    words = torch.cat([words, chances.argmax()[None]])
(text,) = model.vocabulary.decode(words[None, 1:])
assert quick() or text == "2021-03-03"

# %% tags=["nbval-ignore-output"]
print(text)

# %% [markdown]
r"""
An RNN also writes one by one. It hands on a state. Here *everything* written so far goes in again.
"""

# %%
predict("wrong_start")

# %%
behind = {}
for first in ("2", "1", "9"):
    words = torch.cat([start[0], to_device(model.vocabulary.encode([first])[0])[0]])
    for _ in range(10):
        words = torch.cat([words, score_next(words).argmax()[None]])
    behind[first] = model.vocabulary.decode(words[None, 1:])[0]
assert quick() or (behind["1"].startswith("19") and behind["1"].endswith("-03-03"))

# %% tags=["nbval-ignore-output"]
for first, text in behind.items():
    print(f"begun with {first}: {text}")

# %% [markdown]
r"""
Behind 1 it writes a year that begins with 19, as all such years in its training did, then the right month and day. It goes on from what stands there. It cannot take a sign back. This is the price of teacher forcing: its own mistakes were never among its inputs.

**"A wrong character spoils the rest."** Count both, on 1,000 dates never trained on: signs right when the right ones stand before them, and when its own do.
"""

# %%
pairs = dates.texts(1, "test")
batch = to_device(model.vocabulary.batch(pairs))
with torch.no_grad():
    logits = model(batch.source, batch.lengths, batch.target[:, :-1]).logits
forced = (logits.argmax(-1) == batch.target[:, 1:])[:, :10].float()  # without end
made = [answer.text.ljust(10) for answer in translate(model, [p.source for p in pairs])]
own = torch.tensor(
    [
        [a == b for a, b in zip(text, pair.target, strict=False)]
        for text, pair in zip(made, pairs, strict=True)
    ]
).float()
exact = own.all(1).float().mean().item()
assert quick() or (exact > 0.85 and forced.mean() >= own.mean() > 0.95)
figures.by_place(forced.mean(0), own.mean(0))

# %%
wrong = [(p, text) for p, text in zip(pairs, made, strict=True) if text != p.target]

# %% tags=["nbval-ignore-output"]
print(f"{exact:.3f} of the dates without a wrong sign; some of the others:")
for pair, text in wrong[:5]:
    print(f"{pair.source:34} {pair.target}   it wrote {text}")

# %% [markdown]
r"""
What it gets wrong is mostly the order of two digits. Look at places 4, 7 and 10, the second digits. Behind the right sign the second digit is right as well. On its own, where 2031 became 2013, both are wrong. The month does not suffer from a wrong year, nor the day from a wrong month.

## 2 · The cache
"""

# %%
predict("rows_of_a_date")

# %% [markdown]
r"""
A row in a decoder is a token's pass through all layers. Under the causal mask the keys and values of a sign never change, whatever follows. So keep them: this is a **cache**, one for each layer, and one for the keys and values of the memory.
"""

# %%
before = batch.target[:1, :-1]  # start and ten characters
state = model.start(source, lengths)  # the encoder runs once
with torch.no_grad():
    one_by_one = [model.step(sign, state).logits for sign in before[0, :, None]]
    whole = model(source, lengths, before).logits[0]
assert_close(torch.cat(one_by_one), whole, atol=1e-4, rtol=1e-4)
print("kept of its own:", len(state.caches[0].own), end=", ")
print("of the memory:", len(state.caches[0].cross))

# %% [markdown]
r"""
**"With a cache the model computes something else."** The logits are the same, to within rounding. It computed 11 rows, not 66. What does this save in seconds?
"""

# %%
figures.cost_of_writing()

# %% [markdown]
r"""
At 10 signs hardly anything, since one small pass costs nearly as much as a larger one. At 200 signs five sixths.

## 3 · Greedy is not the likeliest
"""

# %%
predict("likeliest")

# %% [markdown]
r"""
**Beam search** keeps several beginnings side by side, the *width*. Each is continued by every sign; of all these continuations the likeliest are kept. Log-probabilities of signs add up.
"""

# %% [markdown] tags=["exercise:best_continuations"]
# Write one step.

# %%
shares = {}
for width in (1, 4):
    made = translate(model, [p.source for p in pairs], width=width)
    hits = [answer.text == p.target for answer, p in zip(made, pairs, strict=True)]
    shares[width] = sum(hits) / len(hits)
assert quick() or abs(shares[4] - shares[1]) < 0.02

# %% tags=["nbval-ignore-output"]
print({f"width {width}": round(share, 3) for width, share in shares.items()})

# %% [markdown]
r"""
Here four beginnings bring almost nothing: where this model is wrong, it is mostly sure of it. On rows of three dates, in stored runs, they brought 12 to 24 texts of 1,000.

## 4 · Why then the Transformer?

Where does it look while it writes? Compare with the machine of part 01b.
"""

# %%
AlignmentExplorer(model, ["3. märz 2021", "14 juillet 1989", "december 31, 2049"])

# %% [markdown]
r"""
It looks much alike: the year's digits, then the month, then the day. And how good is it? Trained on rows of one to three dates, beside the recurrent machine of 01b, which looks back as well:
"""

# %%
figures.beside_the_recurrent()

# %% [markdown]
r"""
Of three dates the recurrent machine has .98 right, the Transformer .51. The recurrent one was trained on rows of three alone, and on fewer texts. **At this size the Transformer is no improvement.** What was gained in 2017 does not show in this picture: in training all places are computed at once. For one date the recurrent decoder takes 11
steps, each waiting for the last; ours takes one. On a machine that computes in parallel, much more text could be read in the same time, by much larger models (part [08b](08_attention_vs_rnn.ipynb)).

## In real work

A cache in plain torch, with the bug that people meet:
"""

# %%
predict("which_rows")

# %%
q, k, v = torch.randn(3, 1, 2, 6, 8)  # (batch, heads, tokens, width), each
look = F.scaled_dot_product_attention
whole = look(q, k, v, is_causal=True)[:, :, -1:]  # the last place, all at once
newest = q[:, :, -1:]  # the same place alone; k and v come from the cache
assert_close(look(newest, k, v), whole)
assert_close(look(newest, k, v, is_causal=True), v[:, :, :1])
off = (look(newest, k, v, is_causal=True) - whole).abs().max()
print(f"with is_causal=True: off by {off:.2f}")

# %% [markdown]
r"""
With one query the mask has one row, the first: the newest sign sees key 0 alone. No error is raised. For a single new sign leave the mask out; for several, hand in a mask whose *last* row sees everything.

Language models write in the same loop, with chances drawn instead of the likeliest sign (part [06e](06e_gpt.ipynb)); translators and speech recognisers mostly use beams of 4 to 10.

## The date once more

*3. märz 2021* went in once. Eleven times the decoder read what it had written. What it wrote wrong stayed.

**To remember.** It writes by reading itself; a cache makes this cheap, and changes nothing.

- Ask, choose, append, ask again, until *end*.
- Under a causal mask, keys and values can be kept.
- Greedy takes the best sign, a beam looks for the best text.
- `is_causal` lines up the first query with the first key.
- At this size not better than a recurrent net: only all at once.

**Sources.** Vaswani et al. 2017 (arXiv:1706.03762); Sutskever, Vinyals & Le 2014 (arXiv:1409.3215), for beams; Bengio et al. 2015 (arXiv:1506.03099), on reading one's own mistakes. Three seeds, errors by language: [evidence](evidence/06_transformer_evidence.ipynb).

**Next**: [06d · BERT](06d_bert.ipynb): what does the encoder alone learn?
"""
