# /// ideas
# [two_machines]
# says = "an encoder reads and leaves a state after each character; a decoder writes; it gets one vector at every step, or looks back with weights made anew"
# motive = "may it look back at what it read"
# shown = "a look back"
# action = 'predict("which_letters")'
#
# [look]
# says = "the decoder's state is the query, the encoder's states are keys and values; scores become weights by softmax, and the weights mix the values"
# motive = "How does a machine look?"
# shown = "scores.softmax"
# action = "Try it"
#
# [additive]
# says = "Bahdanau's score: a small network with a learned vector v, which works for query and key of different width"
# motive = "must be learned"
# shown = "tanh(\\text{state}"
# action = "additive_step"
#
# [step]
# says = "a decoder's step: look, join with the last character, move the state on, name the next character"
# motive = "What does a decoder do with its look?"
# shown = "pieces.core(seen, state)"
# action = 'yours("additive_step")'
#
# [one_open_place]
# says = "with one open place its weight is 1, whatever is asked: one vector is attention with such a mask"
# motive = "Can a look back become one vector?"
# shown = "yours(\"one_place\")"
# action = 'predict("all_the_same")'
#
# [slow]
# says = "after 400 steps the look back has .971 of two dates, one vector none"
# motive = "We train both for 400 steps"
# shown = "0.971"
# action = 'predict("wholly_right")'
#
# [not_yet]
# says = "'cannot' and 'not yet' look the same after 400 steps; a longer run that succeeds shows 'not yet', one that fails shows nothing"
# motive = "too small"
# shown = "figures.stored_dates()"
# action = 'predict("ten_times")'
#
# [alignment]
# says = "an alignment is the table of weights, read along its rows; nobody taught it"
# motive = "Nobody told the model"
# shown = "figures.looked"
# action = 'predict("first_row")'
#
# [closed_places]
# says = "close some places, and see which characters change: this tests the look itself"
# motive = "A map gives an idea"
# shown = "closed:"
# action = 'predict("july_closed")'
#
# [as_many]
# says = "a machine that was trained on two dates writes two dates"
# motive = "What does it make of"
# shown = "writes(\"5. märz 2021\")"
# action = "Try other texts"
# ///

# %% [markdown]
r"""
{title}

A machine reads *5. märz 2021* and writes *2021-03-05*. It reads once. When it writes, may it look back at what it read, or must one vector hold everything?

**Afterwards you can** write one step of a decoder that looks back; read where it looked; tell "it cannot" from "it has not learned it yet".

{about}

<details><summary>中文摘要 · Chinese</summary>
2014 年的翻译机先读完输入,再逐个字符写出答案。写的时候,是只给它一个向量,还是让它每一步都回看读过的内容?本课写出回看的一步,训练两台机器,
再问:学不会和还没学会,怎样区分?最后看它写每个字符时看了哪里。
</details>
"""

# %% tags=["imports"]
from functools import partial

import torch

from lesson_lib.attention import attend
from lesson_lib.chapters.c01_history import figures
from lesson_lib.course import *
from lesson_lib.data import dates as date_data
from lesson_lib.experiments import dates
from lesson_lib.models.translator import translate
from lesson_lib.training import stored
from lesson_lib.widgets import AlignmentExplorer

_ = torch.manual_seed(0)
warm_up()

# %%
predict("which_letters")

# %% [markdown]
r"""
Our language is that of dates, as fifteen European languages write them. The translation is the international form. One text may hold two dates in a row:
"""

# %%
for pair in date_data.draw(torch.Generator().manual_seed(6), 3):
    print(f"{pair.source:40}{pair.target}")
two = date_data.draw(torch.Generator().manual_seed(3), 1, dates=2)[0]
print(two.source, "->", two.target)

# %% [markdown]
r"""
## 1 · Two machines of 2014

A recurrent network reads character by character. After each character it holds a **state**, a row of numbers that sums up what it has read so far. This reader is the **encoder**. (Ours has two readers, one from each end. $h_j$ joins their states at place $j$, so it knows something of both sides.) A second recurrent network, the **decoder**, writes the answer character by character. It has a state, too. The two machines differ in what the decoder gets from the encoder (Cho et al., June 2014; Bahdanau et al., September 2014):

```
one vector
    5    .    _    m    ä    r    z    _    2   ...    1
    h1 > h2 > h3 > h4 > h5 > h6 > h7 > h8 > h9  ... > h12
                                                       |
    decoder: 2 0 2 1 - 0 3 - 0 5  <---- every step ----+

a look back
    5    .    _    m    ä    r    z    _    2   ...    1
    h1 > h2 > h3 > h4 > h5 > h6 > h7 > h8 > h9  ... > h12
     \    \    \   weights, anew for each step  /    /
    decoder: 2 0 2 1 - 0 3 - 0 5  <-- weighted mean
```

How does a machine look? Before each character, the decoder's state asks; it is called the **query**. The encoder's states $h_1 \dots h_m$ are compared with it; in this role they are the **keys**. Each key gets a **score**, a number that says how well it fits. **Softmax** makes **weights** of the scores: it raises $e$ to each score and divides by the sum, so the weights are positive and sum to 1. Then the weights mix the encoder's states; in this role they are the **values**. By hand, with three states of two numbers:
"""

# %%
h = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
scores = torch.tensor([0.0, 2.0, 1.0])
show(weights=scores.softmax(-1), mixture=scores.softmax(-1) @ h)

# %% [markdown]
r"""
$e^0, e^2, e^1$ are 1, 7.39 and 2.72, together 11.11, so the second state gets $7.39 / 11.11 =$ «0.6652». The mixture's first number is $«0.0900» \cdot 1 + «0.2447» \cdot 1 =$ «0.3348». Softmax looks at differences: add 5 to all scores, and no weight changes, since $e^5$ cancels. Try it.

## 2 · One step of the decoder

Where do scores come from? Which states fit which query must be learned, so Bahdanau lets a small network judge the fit. Two learned matrices bring the query and $h_j$ to one width; the two rows are added, and tanh is applied to each number. The dot product with a learned vector $v$ is the score. It is called **additive**:

$$\text{score}_j = v \cdot \tanh(\text{state}\, W_{query} + h_j\, W_{key})$$
"""

# %% [markdown] tags=["exercise:additive_step"]
# Write the look. `state` (d_state,) asks; `read` (m, d_read) holds the states $h_j$ of m characters; `w_query` is (d_state, d_hidden), `w_key` (d_read, d_hidden), `v` (d_hidden,). Score the m states, make weights (`torch.softmax`), and return the mixture of `read`, (d_read,).

# %% [markdown]
r"""
What does a decoder do with its look? Here is the whole machine, for one text, with your function in it. The other pieces come from a machine that we trained:

| piece | what it is |
|---|---|
| `begin(text)` | the encoder reads; returns the states $h$, (m, 128), and the decoder's first state, (128,), which is made from them |
| `w_query`, `w_key`, `v` | the score's, (128, 64), (128, 64) and (64,) |
| `embed(character)` | 48 learned numbers for each character |
| `core(seen, state)` | one step of a recurrent network: from what was seen and the old state, the new state |
| `best(row)` | scores all characters that may come next, "end" among them, and names the best |
"""

# %%
train = partial(dates.train, dates=2, lr=1e-2, steps=400)
with stored():  # it was trained before; without this line it takes half a minute
    looks_back, _ = train("additive")
pieces = dates.pieces(looks_back)


@torch.no_grad()
def writes(text, closed=()):
    """What the machine writes; it may not look at the closed places."""
    h, state = pieces.begin(text)
    h = h[[j for j in range(len(h)) if j not in closed]]
    last, written = "start", []
    while last != "end" and len(written) < 30:
        context = yours("additive_step")(
            state, h, pieces.w_query, pieces.w_key, pieces.v
        )
        seen = torch.cat([context, pieces.embed(last)])
        state = pieces.core(seen, state)
        last = pieces.best(torch.cat([state, seen]))
        written.append(last)
    return "".join(written).removesuffix("end")


text = "5. märz 2021; july 4, 2030"
print(text, "->", writes(text))

# %% [markdown]
r"""
It is right. Each turn of the loop does four things. It looks; it joins the mixture with the character written last ("start" at first); from both and the old state it makes the new state; and from all three it names the next character. When the machine writes, it reads its own last character. In training it is given the *right* last character, and must name the next.

Can a look back become one vector? Take a reader that goes from left to right only, and close all places but the last. A **mask** says which query may see which place.
"""

# %% [markdown] tags=["exercise:one_place"]
# Write this mask (n, m), for n queries and m places: each query sees the last place and no other.

# %%
predict("all_the_same")

# %%
asking, states = torch.randn(4, 5), torch.randn(7, 5)  # four queries, seven places
show(weights=attend(asking, states, states, mask=yours("one_place")(4, 7)).weights)

# %% [markdown]
r"""
`attend` is the course's function for scores, weights and mixture; chapter 02 opens it. (Its score is another one, which makes no difference with one open place.) All four rows of weights are the same: whatever is asked, the answer is $h_7$. So, with a reader from the left, one vector is a look back with one open place.

## 3 · Train both

We train both for 400 steps on two dates in a row. The 1,000 texts that test them hold dates that no training text had, in any language. In the machine with one vector both readers are wider; their last states, 96 numbers each, are its one vector of 192. It is the larger machine: 285,000 learned numbers against 216,000. Of the learning rates that we tried, .01 was best for both.
"""

# %%
predict("wholly_right")

# %%
models = {"a look back": looks_back}
with stored():
    models["one vector"] = train("fixed vector")[0]  # its name in the library
for name, model in models.items():
    exact = dates.judge(model, dates=2)["exact"]
    print(f"{name:12} {exact:.3f} of 1,000 texts wholly right;", translate(model, [text])[0].text)

# %% [markdown]
r"""
For our text, one vector writes two dates in good form, but twice the same, and wrong. **"One vector of 192 numbers is too small."** Is it?
"""

# %%
predict("what_it_shows")

# %% [markdown]
r"""
So train it longer.
"""

# %%
predict("ten_times")

# %%
figures.stored_dates()

# %% [markdown]
r"""
Each dot is the median of three machines, trained from three seeds on one, two or three dates in a row. After 500 steps the look back has ‹.98› of three dates, and one vector none. Follow one vector: after 1,000 steps ‹.28› of the texts with two dates are right, and after 4,000 steps ‹.80› of those with *three*. So there was room enough. **A look back is not what makes this task possible. It makes it quick to learn.**

A longer run that succeeds shows that it was "not yet". Had it failed, we would still not know. Why is the look back so quick? We suspect that it gives each part of the answer a short way to its part of the input.

## 4 · Where did it look?

Nobody told the model which characters belong to which. Its weights make a table: a row for each character that it wrote, a column for each that it read. This table is called an **alignment**.
"""

# %%
predict("first_row")

# %%
(told,) = translate(looks_back, [text])
figures.looked(told, text)

# %% [markdown]
r"""
Go down the rows. The first four look at *2021*, the *end* of the first date. Then the look jumps back to *märz*, and again back to the 5. The second date, too, is read year, month, day: *2030*, back to *july*, on to 4. **"A decoder reads its input in order."** This one reads in the order in which it writes. Some bright cells lie one place beside the character that you expect; a state knows something of its neighbours. (The rows of the hyphens look here and there: a hyphen needs no source.)

A map gives an idea, and no more (01a). Your `writes` can test the look itself: close places, and see which characters change.
"""

# %%
predict("july_closed")

# %%
for word in ("märz", "july", "2021", "5.", ","):
    places = range(text.index(word), text.index(word) + len(word))
    print(f"{word:5} closed: {writes(text, closed=places)}")

# %% [markdown]
r"""
Each time one field changes, and no other: without *märz* the first month is wrong, without *july* the second, without *2021* the first year, without *5.* the first day. And as a control, without the comma nothing changes. What stands in the gap instead is a guess (05 repeats the day, the second 03 the first month). So the machine writes each field from where it looked. Try it on the first text below: guess from the map which places decide its month, and run `writes` with them closed; positions count from 0.
"""

# %% tags=["trained"]
AlignmentExplorer(looks_back, ["3. 11. 1987; 12 may 1999", text, "1 mai 2001; 4 juni 2030"])

# %% [markdown]
r"""
## In real work

A decoder's look back at an encoder is called **cross-attention**; many translators and speech recognisers have it. Whoever uses such a machine should know what it was trained on. Ours has seen texts of two dates only.

## The date once more

What does it make of our first date, alone? Try other texts, too.
"""

# %%
print(writes("5. märz 2021"))

# %% [markdown]
r"""
It writes two dates, since no training text had one. The second is right, and the first has an invented year. Nothing warns you: both are in good form.

**To remember.** A look back is not what made this task possible. It made it quick to learn.

- A step of the decoder: score all states, weigh, mix; then move on.
- With a reader from one end, one vector is a look back with one open place.
- A longer run can refute "it cannot"; no run can prove it.
- An alignment is read along its rows, and tested by closing places.

**Sources.** Cho et al. 2014 (arXiv:1406.1078); Sutskever, Vinyals & Le 2014 (arXiv:1409.3215); Bahdanau, Cho & Bengio 2014 (arXiv:1409.0473). The papers read and wrote words, ours are characters. Seeds, lengths, Chinese dates: [evidence](evidence/01_history_evidence.ipynb).

**Next**: [01c · Where to look](01c_where_to_look.ipynb): can a machine learn where to look?
"""
