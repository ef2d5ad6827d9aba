# %% [markdown]
r"""
{title}

A machine reads *3. märz 2021* and writes *2021-03-03*. It reads once. When it writes, may it look back at what it read, or must one vector hold everything?

**Afterwards you can** draw both machines of 2014; write one step of a decoder that looks back; tell "cannot" from "has not learned it yet".

{about}

<details><summary>中文摘要 · Chinese</summary>
2014年的编码器-解码器把整个输入压缩成一个向量;Bahdanau 的注意力在写每个字符之前都回看全部编码器状态。400 步训练后,回看几乎全对,单个向量几乎全错;
但训练四千步后,单个向量连三个日期也能学会大半。所以单个向量不是太小,而是学得慢。论文中处理的是单词,这里是字符。
</details>
"""

# %%
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.chapters.c01_history import figures
from lesson_lib.checks import check, hint, predict, solution, warm_up
from lesson_lib.data import dates as date_data
from lesson_lib.device import quick
from lesson_lib.experiments import dates
from lesson_lib.models.translator import translate
from lesson_lib.recurrent import AttentionDecoder
from lesson_lib.show import show, show_source
from lesson_lib.training import stored
from lesson_lib.widgets import AlignmentExplorer

_ = torch.manual_seed(0)
warm_up()

# %%
predict("which_letters")

# %% [markdown]
r"""
Our language is that of dates, as fifteen European languages write them. The translation is the international form. One text may hold several dates in a row:
"""

# %%
for pair in date_data.draw(torch.Generator().manual_seed(6), 3):
    print(f"{pair.source:40}{pair.target}")
two = date_data.draw(torch.Generator().manual_seed(3), 1, dates=2)[0]
print(two.source, "->", two.target)

# %% [markdown]
r"""
## 1 · Two machines of 2014

A recurrent network reads character by character. After each it holds a **state**, a row of numbers: its summary so far. This reader is the *encoder*. A second one, the
*decoder*, writes the answer, one character after the other, and carries a state, too; its first is made from the encoder's. The machines differ in what the decoder gets (Cho et al., June 2014; Bahdanau et al., September 2014):

```
one vector
    3    .    _    m    ä    r    z    _    2   ...    1
    h1 > h2 > h3 > h4 > h5 > h6 > h7 > h8 > h9  ... > h12
                                                       |
    decoder: 2 0 2 1 - 0 3 - 0 3  <---- every step ----+

a look back
    3    .    _    m    ä    r    z    _    2   ...    1
    h1 > h2 > h3 > h4 > h5 > h6 > h7 > h8 > h9  ... > h12
     \    \    \   weights, anew for each step  /    /
    decoder: 2 0 2 1 - 0 3 - 0 3  <-- weighted mean
```

(The papers read and wrote words; ours are characters.) The decoder's state asks: it is the **query**. The encoder's states $h_1 \dots h_m$ are **keys**, which are compared, and
**values**, which are mixed. A **score** says how well a key fits. **Softmax** raises $e$ to each score and divides by the sum, which makes **weights** that are positive and sum to 1.

With a reader from one end, one vector is the same machine with a mask: only the last place is open. (Ours reads from both ends. Its vector joins the two last states, and $h_j$ the two
states at place $j$.)
"""

# %% [markdown] tags=["exercise:one_place"]
# Write that mask, for n queries and m places.

# %%
predict("all_the_same")

# %%
states = torch.randn(7, 5)  # seven characters were read, a state of width 5 behind each
asking = torch.randn(4, 5)  # four characters are to be written
only_last = torch.arange(7) == torch.tensor([6] * 4)[:, None]  # (4, 7): the last place
show(weights=attend(asking, states, states, mask=only_last).weights)

# %% [markdown]
r"""
Four rows of weights, all the same: whatever is asked, the answer is $h_7$. Take the mask away, and each query gets a mixture of its own.

## 2 · One step of the decoder

Bahdanau's score is a small network: bring query and key to one width, add, bend with tanh, and let a learned vector $v$ make one number of it.

$$\text{score}_j = v \cdot \tanh(\text{state}\, W_{query} + h_j\, W_{key})$$
"""

# %% [markdown] tags=["exercise:additive_step"]
# `read` holds the states $h_j$ of m characters, (m, d_read), and `state` (d_state,) asks. Score them, turn scores into weights (`torch.softmax`), and mix `read` by the weights.

# %% [markdown]
r"""
Around your look, a step of the library's decoder does three more things: it puts the last character beside what was seen, moves the state on, and returns all three. (A linear layer outside
scores the next character.)
"""

# %%
show_source(AttentionDecoder.step)

# %% [markdown]
r"""
`h` are the $h_j$ of a batch; `self.core` is a recurrent network. In training the decoder is given the *right* character before each, and must name the next; the loss is the
cross-entropy of all. Writing alone, it is given its own last one.
"""

# %%
target = "2021-03-03"
print("is given   <start>", *target)
print("must write       ", *target, "<end>")

# %% [markdown]
r"""
## 3 · Train both

Two dates in a row, 400 steps of 16 texts each, at the learning rate that was best for each. The test days were never trained on, in any language. The vector holds 192
numbers, and its model has more parameters than the other.
"""

# %%
predict("wholly_right")

# %%
train = partial(dates.train, dates=2, lr=1e-2, steps=400)
models = {"additive": train("additive")[0]}
with stored():  # reads what this training left before
    models["fixed vector"] = train("fixed vector")[0]
exact = {name: dates.judge(model, 2)["exact"] for name, model in models.items()}

# %% tags=["nbval-ignore-output"]
print({name: round(share, 3) for name, share in exact.items()})

# %% tags=["proof"]
assert quick() or (exact["additive"] > 0.9 and exact["fixed vector"] < 0.05)

# %%
predict("what_it_shows")

# %% [markdown]
r"""
**"One vector of 192 numbers is too small."** Is it? Here it was trained longer, three seeds, one to three dates in a row:
"""

# %%
figures.stored_dates()

# %% [markdown]
r"""
After 500 steps the vector has .82 of single dates right and nothing of two or three. With twice the steps it has single dates, and .28 of two. With eight times the steps, *three* dates reach
.80. So there was room enough for three.  **A look back is not what makes this task possible. It makes it quick to learn.** We suspect why: each part of the answer has a short way to its part of
the input, and need not pass through one narrow place with all the others.

## 4 · Where did it look?

Nobody told the model which characters belong to which. Rows are what it wrote, from the top; columns are what it read.
"""

# %%
text = "3. märz 2021; july 4, 2030"
(told,) = translate(models["additive"], [text])

# %% tags=["nbval-ignore-output"]
figures.looked(told, text)

# %%
year = told.weights[:4].mean(0)  # where it looked while it wrote the first year

# %% tags=["proof"]
assert quick() or text.index("2021") - 2 <= year.argmax() <= text.index(";")

# %% [markdown]
r"""
Most rows have a bright spot. Such a table is called an **alignment**. **"A decoder reads its input in order."** The first rows look at the year, at the *end* of the first date; then the
look jumps back to the month. Bright cells may lie one place beside the character that you expect: the encoder reads from both ends, so a state knows its neighbours.
"""

# %%
predict("june_or_july")

# %% [markdown]
r"""
A map is a lead, no test (part 01a). Change the input: type june for july. Which digit follows? And the control: type 5 for 4. The month must stay.
"""

# %% tags=["trained"]
AlignmentExplorer(
    models["additive"],
    [text, "3. 11. 1987; 12 may 1999", "1 mai 2001; 4 juni 2030"],
)

# %% [markdown]
r"""
## In real work

Many translators and speech recognisers look back from a decoder at an encoder; it is called **cross-attention**. Texts of a batch are padded, so padded places must be closed. torch's
function (its score is the dot product, part 02b):
"""

# %%
q, h = torch.randn(2, 4, 8), torch.randn(2, 7, 8)  # (texts, queries or states, 8)
real = torch.arange(7) < torch.tensor([7, 5])[:, None]  # the second text has 5
look = F.scaled_dot_product_attention
alone = look(q[1:], h[1:, :5], h[1:, :5])[0]
for name, mask in {"with": real[:, None, :], "without": None}.items():
    moved = look(q, h, h, attn_mask=mask)[1] - alone
    print(f"{name:8} the mask: {moved.abs().max():.2f} from what it gets alone")

# %% [markdown]
r"""
With the mask the second text gets what it gets alone. Without, its padding is heard, and its answer depends on how long its neighbours are.

## The date once more
"""

# %% tags=["nbval-ignore-output"]
for name, model in models.items():
    for source in (text, text.replace("july", "june")):
        print(f"{name:13}{source:27}", translate(model, [source])[0].text)

# %% [markdown]
r"""
One month changed: with a look back one digit follows. One vector, after its 400 steps, writes two well-formed dates, both wrong, and the same two for june as for july.

**To remember.** A look back is not what made this task possible. It made it quick to learn.

- One vector of a one-way reader is attention with a single open place.
- A decoder's step: score all states, weigh, mix, move on.
- More steps can refute "cannot"; they never prove it.
- An alignment is read along its rows.

**Sources.** Cho et al. 2014 (arXiv:1406.1078); Sutskever, Vinyals & Le 2014 (arXiv:1409.3215); Bahdanau, Cho & Bengio 2014 (arXiv:1409.0473). Seeds, lengths, Chinese dates:
[evidence](evidence/01_history_evidence.ipynb).

**Next**: [01c · Where to look](01c_where_to_look.ipynb): can a machine learn where to look?
"""
