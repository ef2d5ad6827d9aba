# %% [markdown]
r"""
{title}

A layer has learned to name the symbol three places back, from lists of 32 symbols. Now it gets 128. There are several ways to tell it the places, and most of them fail. Can you say *by how much*, before you measure?

**Afterwards you can** predict where a table of positions ends; write ALiBi and position interpolation; choose positions for a model, and know what stretching costs.

{about}

<details><summary>中文摘要 · Chinese</summary>
可学习的位置表只在训练过的位置上正确,准确率可以事先用算术算出:0.67、0.51、0.28。能算到更长,不等于在更长处仍然正确。
把位置按比例压缩(位置插值)救活了只需远处先后的任务,却毁掉了需要精确近距离的任务;今天的模型多用旋转编码,只让走得慢的时钟更慢,并在新长度上再训练。
</details>
"""

# %%
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.testing import assert_close

from lesson_lib.chapters.c05_positional_encoding import figures
from lesson_lib.chapters.c05_positional_encoding.experiments import order, stretch
from lesson_lib.checks import check, hint, predict, solution, warm_up
from lesson_lib.device import quick
from lesson_lib.positions import Learned, Shaw, alibi, frequencies, rotary, sinusoidal
from lesson_lib.scores import scaled_dot
from lesson_lib.show import show, show_source
from lesson_lib.training import stored

_ = torch.manual_seed(0)
warm_up()

# %% [markdown]
r"""
## 1 · A table ends where it ends

The first way is a **learned table**: row $i$ is the code of place $i$, drawn at random and trained like any weight. It is added, $x_i + p_i$. Ours has 128 rows. Training at 32 tokens reaches rows 0 to 31; the other 96 stay as they were drawn.
"""

# %%
predict("learned_at_128")

# %% tags=["nbval-ignore-output"]
model, _ = order.train("learned", lr=1e-2)
gaps = []
for n in (48, 64, 128):
    share = (29 + (n - 32) / 16) / (n - 3)  # places 3 to 31 known, the rest guessed
    measured = order.accuracy(model, n, order.TEST_SEED)
    print(f"{n:3} tokens: by arithmetic {share:.2f}, measured {measured:.2f}")
    gaps.append(abs(share - measured))

# %% tags=["proof"]
assert quick() or max(gaps) < 0.03

# %% tags=["trained"]
figures.by_position(order.right_by_position(model, 128, order.TEST_SEED).cpu())

# %% [markdown]
r"""
Theory and measurement agree, and the picture says why: right up to place 31, a guess from there on. **It knows all it has seen, and nothing else.** More training at 32 cannot help, since no batch reaches row 32. And at 129 tokens there is no row at all:
"""

# %%
try:
    Learned(128, 64)(129)
except ValueError as error:
    print(str(error).split(";")[0])

# %% [markdown]
r"""
## 2 · Six ways and their scores

| way | what it does | numbers to learn |
|---|---|---|
| none | | 0 |
| sinusoidal | adds clocks, $x_i + p_i$ | 0 |
| learned | adds a row of a table | a row for each place |
| Shaw | adds a vector for the distance $j - i$ to the key; beyond a radius $r$, each side shares its last one | $2r + 1$ vectors |
| ALiBi | takes slope · distance from the score; slopes 1/2, 1/4, ... in eight heads | 0 |
| rotary | turns queries and keys | 0 |

(Shaw adds such vectors to the values, too.) ALiBi is one line:
"""

# %% [markdown] tags=["exercise:alibi_bias"]
# Write what ALiBi adds to the scores of one head.

# %%
predict("striped")

# %%
word, w_q, w_k = torch.randn(1, 16).expand(24, -1), *torch.randn(2, 16, 16) / 4
q, k = word @ w_q, word @ w_k  # 24 equal queries, 24 equal keys
shaw = Shaw(16, radius=4)
_ = nn.init.normal_(shaw.key_rows)
with_clocks, with_rows = word + sinusoidal(24, 16), word + torch.randn(24, 16)
tables = {
    "none": scaled_dot(q, k),
    "sinusoidal": scaled_dot(with_clocks @ w_q, with_clocks @ w_k),
    "learned": scaled_dot(with_rows @ w_q, with_rows @ w_k),
    "Shaw": shaw(q, k),
    "ALiBi": scaled_dot(q, k) + alibi(24, n_heads=8)[0],
    "rotary": scaled_dot(rotary(q), rotary(k)),
}
figures.score_tables(tables)

# %% [markdown]
r"""
The lower row has stripes along its diagonals: distance alone. Beyond radius 4 each side of Shaw's table has one colour. ALiBi is a ridge, the same to both sides: before and after is left to a causal mask. The upper row knows nothing, or each place, not distance.

## 3 · Who survives?
"""

# %%
predict("who_survives")

# %%
figures.stored_lengths()

# %% [markdown]
r"""
All but *none* and ALiBi are perfect at 32 tokens; ALiBi knows near from far, not "three". At 128 Shaw is still always right, for beyond its radius of 8 there is nothing new. Rotary has 80 %: distances beyond 31 were never trained, and some score high by chance.

**"Sinusoids extrapolate, because their formula works for every place."** They fall to 52 %. Running at a length is not being right there. FLOATER, in which a small network makes each code from the one before, runs at every length, and has 8 % at 128.

## 4 · Stretch a trained model

Training at full length is costly. Can a trained rotary model be made longer? **Position interpolation** (Chen et al. 2023) squeezes the new places into the old range:
"""

# %% [markdown] tags=["exercise:squeezed"]
# Divide the places, so that none lies beyond those trained.

# %%
predict("stretched_near")

# %%
figures.squeezed_three_back()

# %% [markdown]
r"""
Squeezed by 2 or more, the model is right as often as a guess: the token three back now looks like 1.5 or 0.75 back.

Another task, **the latest wins**: a name stands twice among others, each time with a number. Asked for the name, say its *last* number. The last token asks; here its name is 10, and the last 10 before it has 0.
"""

# %%
names, numbers, right = stretch.draw(torch.Generator().manual_seed(3), 1, length=8)
print("names  ", *(f"{name:2}" for name in names[0].tolist()))
print("numbers", *(f"{number:2}" for number in numbers[0, :-1].tolist()), " ?")
print("right  ", right.item())

# %%
show_source(stretch.Latest)

# %%
predict("stretched_far")

# %%
with stored():  # reads what this training left before
    latest, _ = stretch.train("the latest wins")
shares = {
    way: stretch.reached(latest, "the latest wins", way)
    for way in ("as trained", "interpolated")
}
figures.live_stretch(shares)

# %%
longest = {way: share[2] for way, share in shares.items()}  # at 128 tokens

# %% tags=["proof"]
assert quick() or (longest["as trained"] < 0.6 and longest["interpolated"] > 0.9)

# %% [markdown]
r"""
From under half to nearly always, without training. Now both tasks, and two more ways. *Larger base*: the first clock keeps its pace, the last is slowed by 4 (at 128 tokens), those between by less. *By parts*: clocks that went round within 32 tokens keep their pace, slower ones are slowed by 4.
"""

# %%
figures.stored_stretch()

# %% [markdown]
r"""
**"Interpolation makes a model read longer texts."** On the left it ruins it, on the right it saves it. Fast clocks tell neighbours apart, slow ones early from late. *By parts* touches the slow ones alone. And after a hundred more steps, at 128 tokens (medians)?

| | as trained | interpolated | larger base | by parts |
|---|---|---|---|---|
| three back | 98 % | 6 % | 100 % | 89 % |
| the latest wins | 80 % | 98 % | 84 % | 96 % |

Only *by parts* is near 90 % or above on both.

## In real work

| positions | models |
|---|---|
| learned table | BERT, GPT-2, ViT |
| a learned number for each distance, shared far away | T5 |
| ALiBi | BLOOM, MPT |
| rotary, base $10^4$ to $10^6$ | Llama, Qwen, Mistral, Gemma |
| rotary, stretched by parts | Llama 3.1, gpt-oss, DeepSeek V3 |

Which would I choose? For pictures and short texts of one length, a table. Else rotary, a base that fits the longest text, and some training *at* that length. The bug that people meet: a configuration says how the clocks were slowed (`rope_scaling`), and the code ignores it.
"""

# %%
x = torch.randn(1, 40, 64)
as_told = rotary(x, frequencies=frequencies(64) / 4)
not_read = rotary(x)
show(wrong_by=(as_told @ as_told.mT - not_read @ not_read.mT).abs().max() / 8)
assert_close(as_told[:, ::4], rotary(x[:, ::4]), atol=1e-5, rtol=1e-5)

# %% [markdown]
r"""
Nothing fails, and scores (standard deviation 1) are off by up to «3.3». The assertion shows the squeeze: token 4 is turned like token 1 of the old model.

## Three back once more

Five systems were right at 32 tokens, FLOATER one of them, and one at 128. Ask of each: does it *run* at that length, and has training met all that it meets there?

**To remember.** A model is right where it was trained: at places, distances and angles that it has met.

- A learned table: arithmetic predicts its fall.
- Codes that are added fail at new places; distances last longer.
- Rotary meets new distances: it falls slowly.
- Squeezing keeps the order of far words, and loses exact near distance.
- Slow the slow clocks only, and train a little at the new length.

**Sources.** Shaw et al. 2018 (arXiv:1803.02155); Liu et al. 2020, FLOATER (arXiv:2003.09229); Press et al. 2021, ALiBi (arXiv:2108.12409); Chen et al. 2023 (arXiv:2306.15595); Peng et al. 2023, YaRN (arXiv:2309.00071). Rates, seeds, FLOATER's run, and the
sources' claims: [evidence](evidence/05_positional_encoding_evidence.ipynb).

**Next**: [06a · Layer](06a_layer.ipynb): what stands around attention?
"""
