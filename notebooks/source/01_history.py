# %% [markdown]
r"""
# 01 · History that runs: where did attention come from?

**The question.** *I saw a saw.* The same word twice: first a verb, then a tool. You knew which was which, since you looked at the words
beside it. How does a machine learn *where* to look? Answers took from 1964 to 2017. In this lesson each of them is a small model, trained in
front of you, so that you see what was new, and what it could not do yet.

**After this lesson you can**

- say what a weighted mean by relevance is, and compute one by hand;
- tell hard attention, which looks at one place, from soft attention, which mixes all, and say why the first is harder to train;
- show what it costs to squeeze an input into one vector, and what Bahdanau's attention did about it;
- compute the best that any tagger can reach which sees one word, a window, or the whole sentence;
- place the Transformer, and what came after it, in a line of problems and ideas.

**Time** about 100 minutes; a good place to stop is before section 4, another before section 5. Training takes about a minute and a half in all. **You need** lesson
[00](00_start_here.ipynb). **Exercises**: [exercises/01_history](exercises/01_history.ipynb).
"""

# %%
import torch
from torch.testing import assert_close

from lesson_lib.attention import attend
from lesson_lib.chapters.c01_history import figures
from lesson_lib.chapters.c01_history import glimpses_figures as glimpse_figures
from lesson_lib.chapters.c01_history.experiments import glimpse, tagger
from lesson_lib.chapters.c01_history.timeline_figures import cards, timeline
from lesson_lib.charts import alignment as date_figures
from lesson_lib.charts.basic import heatmap
from lesson_lib.claims import claim, verdict
from lesson_lib.data import dates as date_data
from lesson_lib.data import tagging
from lesson_lib.data.milestones import MILESTONES
from lesson_lib.device import to_device
from lesson_lib.experiments import dates, results
from lesson_lib.masks import causal, window
from lesson_lib.models.tagger import Window
from lesson_lib.models.translator import translate
from lesson_lib.recurrent import AttentionDecoder
from lesson_lib.scores import Additive
from lesson_lib.show import show, show_source
from lesson_lib.widgets import AlignmentExplorer

_ = torch.manual_seed(0)

# %% [markdown]
r"""
> **Predict first.** A tagger is given one word at a time, and must name its part of speech: noun, verb, and so on. It may be as large as you
> like, and train for as long as you like. How many of the two *saw* of "I saw a saw" can it get right?
>
> <details><summary>Answer</summary>
> One. Both times it sees the same word, so both times it says the same. Section 5 turns this into a limit for any task, computed and not guessed.
> </details>

## 1 · The whole story on one page

Twenty-two entries, from 1964 to 2022. You need not know any of these names yet.
"""

# %%
timeline()

# %% [markdown]
r"""
Now walk through it. Click on the slider, then use the arrow keys. Each entry has the same three lines: the *problem*, the *idea*, and what it
could *not yet* do. Most of the time, the last line of one entry is the first line of a later one. The grey line is the entry's formula; you
will be able to read all of them at the end of the course.
"""

# %%
from lesson_lib.chapters.c01_history.timeline_explorer import TimelineExplorer

TimelineExplorer()

# %% [markdown]
r"""
> **Do.** Find the entry whose "not yet" says that everything must fit into one vector. Which entry, in the same year, has that as its problem?
>
> <details><summary>Answer</summary>
> The encoder and decoder of 2014, and Bahdanau's attention. Section 4 trains both.
> </details>

## 2 · 1964: a mean that listens to its neighbours

**Problem.** Guess $y$ at a new $x$ from measured pairs, without assuming a curve. **Idea.** Average the measured $y$; those whose $x$ is near
count for more. **Not yet.** What "near" means is chosen by hand; nothing is learned.

The words of the whole course fit on this small example. What we ask about is the **query**, here the new $x$. Each measured pair has a
**key**, its $x$, and a **value**, its $y$. A **score** says how well a key fits a query, the larger the better:

$$\text{score}(q, k) = -\frac{(q - k)^2}{2\sigma^2}$$

Zero if they are equal, and more and more negative with the distance. $\sigma$ is the width: how far away is still near. **Softmax** turns the
scores of one query into **weights**: raise $e$ to each score, and divide by the sum. The **output** is the weighted mean of the values.

By hand: measured at $x = 0, 1, 2$ are the values $1, 3, 2$. We ask at $x = 1$, with $\sigma = 1$.

> **Predict.** The scores are $-0.5$, $0$, $-0.5$. What are the weights? (It helps to know that $e^{-0.5} \approx 0.607$.) Is the output nearer
> to 3 or to 2?
>
> <details><summary>Answer</summary>
> 0.607, 1 and 0.607 add up to 2.213; divided by it, the weights are 0.274, 0.452, 0.274. The output is
> 0.274 · 1 + 0.452 · 3 + 0.274 · 2 = 2.18, nearer to 2.
> </details>
"""


# %%
def kernel_mean(query, key, value, sigma):
    """Rows: one query, key or value each; one number per query comes back."""
    score = -((query - key.T) ** 2) / (2 * sigma**2)  # (queries, keys)
    raised = score.exp()
    weights = raised / raised.sum(dim=1, keepdim=True)  # softmax, by hand
    return weights @ value, weights


key = torch.tensor([[0.0], [1.0], [2.0]])
value = torch.tensor([[1.0], [3.0], [2.0]])
output, weights = kernel_mean(torch.tensor([[1.0]]), key, value, sigma=1.0)
show(weights=weights, output=output)

# %% [markdown]
r"""
That is all of attention. The function of this course, `attend`, does the same; which score it uses is up to you:
"""


# %%
def near(sigma):
    return lambda query, key: -((query - key.mT) ** 2) / (2 * sigma**2)


attended = attend(torch.tensor([[1.0]]), key, value, score=near(1.0))
assert_close(attended.output, output)
assert_close(attended.weights, weights)

# %% [markdown]
r"""
> **Predict.** What does the curve through twenty measured points look like for a very small $\sigma$, and for a very large one?
>
> <details><summary>Answer</summary>
> Very small: only the nearest point counts, so the curve is a staircase of measured values. Very large: all weights are equal, and the curve is
> flat, at the mean.
> </details>
"""

# %%
generator = torch.Generator().manual_seed(4)
x_measured = torch.rand(20, 1, generator=generator).sort(dim=0).values * 6
y_measured = x_measured.sin() + 0.25 * torch.randn(20, 1, generator=generator)
x_asked = torch.linspace(0, 6, 200)[:, None]
curves = {
    f"σ = {sigma}": attend(x_asked, x_measured, y_measured, score=near(sigma)).output
    for sigma in (0.002, 0.4, 40)
}
figures.regression(
    x_asked[:, 0],
    {k: c[:, 0] for k, c in curves.items()},
    (x_measured[:, 0], y_measured[:, 0]),
)

# %% [markdown]
r"""
The middle width follows the points; the others are the two extremes of the answer above, a staircase and a flat line. This is the estimator of Nadaraya and of Watson, both
1964. What is missing is learning: who says which $\sigma$, and who says that "near in $x$" is the right kind of near? From here on, queries,
keys and values will be *learned*.
"""

# %% [markdown]
r"""
## 3 · 2014: one glimpse at a time

**Problem.** A picture is too large to look at everywhere with care. **Idea.** See a small part sharply, and *learn* where to look next. **Not yet.** One place
at a time; and looking at one place is a choice, which makes learning noisy.

Pictures came first. In 1990 and 1991 networks learned to move a small sharp window, the *fovea*, over a scene (Schmidhuber & Huber), and to pick regions to
search (Ahmad); in 2010 Larochelle and Hinton learned where glimpses should fall. The model that made the idea known is the *recurrent
attention model*, RAM (Mnih and others at Google DeepMind, June 2014).

### Hard and soft

Take three places with the weights 0.1, 0.2, 0.7 and the values 10, 20, 40. **Soft attention** mixes: $0.1 \cdot 10 + 0.2 \cdot 20 + 0.7 \cdot 40 = 33$.
**Hard attention** draws *one* place, with these weights as probabilities, and takes its value.

> **Predict.** Draw 100,000 times. How often does 33 come out, and what is the mean of all draws?
>
> <details><summary>Answer</summary>
> Never: only 10, 20 and 40 can come out. The mean is close to 33: soft attention is what hard attention gives on average.
> </details>
"""

# %%
places = torch.tensor([0.1, 0.2, 0.7], device="cpu")
worth = torch.tensor([10.0, 20.0, 40.0], device="cpu")
drawn = torch.multinomial(
    places, 100_000, replacement=True, generator=torch.Generator().manual_seed(0)
)
soft, hard = places @ worth, worth[drawn]
print("soft:", round(soft.item(), 4), "  hard gives:", hard.unique().tolist())
verdict("the mean of the draws is within 0.2 of soft", (hard.mean() - soft).abs() < 0.2)

# %% [markdown]
r"""
### Why a choice is hard to learn

Change a weight a little, and the soft output changes a little: there is a derivative to follow. The place that was drawn does not change at all, or it
jumps. So RAM learns as one trains an animal. Draw a place; if what came of it was good, make that place more probable. In a formula, with a
*reward* $r$ for what was seen,

$$\text{estimate of the derivative} = (r - \text{baseline}) \cdot \frac{d}{dp} \log \pi(\text{choice})$$

where $p$ is the number to be learned, and $\pi(\text{choice})$ the probability that it gives to what was drawn.

This is **REINFORCE** (Williams 1992). The **baseline** is any number fixed before the draw, as a rule the reward that was to be expected: only what is better than
expected counts as good.

The smallest example: look left with probability $p = 0.2$, reward 1, or right, reward 0. The expected reward is $p$, so its true derivative is 1.

> **Predict.** For *left*, $\pi = p$, and $\frac{d}{dp}\log p = \frac1p = 5$. Without a baseline the estimate is 5 there, and 0 for *right*. What is its mean? And is a single
> estimate any good?
>
> <details><summary>Answer</summary>
> 0.2 · 5 + 0.8 · 0 = 1: right on average. But no single estimate is near 1. The variance is 0.2 · 25 − 1 = 4.
> </details>
"""


# %%
def estimates(p, baseline):
    left = (1 - baseline) / p  # reward 1
    right = (0 - baseline) * -1 / (1 - p)  # reward 0
    mean = p * left + (1 - p) * right
    variance = p * left**2 + (1 - p) * right**2 - mean**2
    return {"left": left, "right": right, "mean": mean, "variance": variance}


for baseline in (0.0, 0.2):
    found = estimates(0.2, baseline)
    print(f"baseline {baseline}:", {k: round(x, 4) + 0.0 for k, x in found.items()})

# %% [markdown]
r"""
With the baseline 0.2, which is the expected reward, the mean is still 1, and the variance has gone from 4 to 2.25. The baseline leaves the mean alone, and makes the
estimate less noisy. It is still noisy: that is the price of hard attention.

### RAM, in miniature

RAM has no list of places with a weight each. From what it has seen, it names one place, and while it learns it looks *near* that place, at a point drawn from a normal
distribution. The rest is as above.

A digit of 8 by 8 pixels lies anywhere on a canvas of 24 by 24. The model may look four times. Each glimpse brings two patches about one place: 8 by 8 pixels as
they are, and 16 by 16 pixels, of which each 2 by 2 are averaged into one. So the middle is sharp, and the surroundings are dim, as in an eye:
"""

# %%
from lesson_lib.chapters.c01_history.glimpse import retina

batch = glimpse.held_out("test")
first = batch.canvas[:1]
at_centre = torch.zeros_like(batch.corner[:1], dtype=first.dtype)
sharp, dim = retina(first, at_centre, 8, n_scales=2)[0]
heatmap(
    {"canvas": first[0], "sharp: 8 by 8": sharp, "dim: 16 by 16": dim},
    numbers=False,
    limits=(0, 1),
    row_axis="",
    column_axis="",
    color_axis="brightness",
    alt="A canvas with a handwritten digit, and what a glimpse at its middle brings: a small sharp patch and a larger blurred one.",
    caption="Left: the canvas, which the model never sees whole. Right: all that one glimpse at its middle brings.",
)

# %% [markdown]
r"""
A recurrent network (a GRU: a state that each glimpse changes a little) collects what the glimpses bring. From its state two small matrices read what the
digit is, and where to look next. While it trains, the place is drawn around the one that it names, and the reward is 1 if the last guess is right. The
model is trained now, live, in about 20 seconds:
"""

# %%
stored_ram = results("glimpse")["rows"]
ram_rate = {
    row["name"]: row["lr"]
    for row in glimpse.best_rows(stored_ram)
    if (row["kind"], row["seed"]) == ("policy", 0)
}
ram, ram_history = glimpse.train("learned", lr=ram_rate["learned"])
ram_right = glimpse.accuracy(ram, "test")  # after each of the four glimpses

# %%
verdict("the first glimpse alone: under 75 %", ram_right[0] < 0.75, trained=True)
verdict("after four glimpses: above 85 %", ram_right[-1] > 0.85, trained=True)

# %% [markdown]
r"""
Here is where it looks, on the first six canvases of the test split. No canvas was chosen:
"""

# %%
looked, shown = glimpse.seen(ram, "test")
some = slice(0, 6)
views = (shown.canvas[some], looked.places[some], looked.probabilities()[some])

# %% tags=["nbval-ignore-output"]
glimpse_figures.paths(*views, shown.label[some])

# %% [markdown]
r"""
Step through them. The picture at the left shows the canvas and the path; in the middle is all that the model saw in this glimpse; at the right what it believes
after it.

> **Do.** Go to a picture whose digit lies in a corner, and step from glimpse 1 to 2. What does the model believe before, and what after?
>
> <details><summary>What you should find</summary>
> Before, the probabilities are spread out: the digit is outside the sharp patch. After the jump one of them stands out, as a rule.
> </details>
"""

# %%
from lesson_lib.chapters.c01_history.glimpses_explorer import GlimpseExplorer

GlimpseExplorer(*views, shown.label[some])

# %% [markdown]
r"""
### Was it worth learning where to look?

A fair comparison changes nothing but who moves the eye: the trained network, chance, or nobody (all glimpses at the centre). A fourth model is *told* where the
digit is, and two networks see the whole canvas at once.

> **Predict.** Order the four: learned, random, centre, told.
>
> <details><summary>Answer</summary>
> Told, learned, random, centre. Random places bring new parts of the canvas into view; the centre never does.
> </details>
"""

# %%
of_policy = glimpse.by_name(stored_ram, "policy")
glimpse_figures.policies(of_policy | glimpse.by_name(stored_ram, "whole"))

# %% [markdown]
r"""
Read the middle seeds: learned .93, random .78, always the centre .66, told .99. Where the eye goes is worth more than a quarter of all answers, and learning finds
most of that. It does not find all of it: who is told the place does better, and so does a convolution, the *whole canvas at once* (.98). On a canvas as small as this
nobody needs glimpses. The idea pays where a picture is too large to be looked at everywhere.

Look again at the paths. The second glimpse goes to the digit. The third and fourth often wander off: once the digit has been seen, a further look changes the answer
little, so there is little reward to learn from.

### Where learning to look gains nothing

The same model, on the plain digits of 8 by 8 pixels. Everything is in view of the first glimpse.
"""

# %%
plain = glimpse.by_name(stored_ram, "plain")
for name, shares in plain.items():
    print(f"{name:8}", [f"{share:.3f}" for share in shares])

# %%
glimpse_figures.gradient_noise(
    [row for row in stored_ram if row["kind"] == "noise"],
    paths=glimpse.RECIPE["noise"]["paths"],
)

# %% [markdown]
r"""
No policy is better than another by more than two points, and *learned* is the last of the three. Two reasons. Everything that can be seen is in view from the start, so
no place earns more than any other. And what there is to learn drowns in noise: in the right panel the signal is a tenth of the noise, and less, from the first measurement to the last.

The left panel is not comfortable either. Even there, the noise of one batch is about six times the signal at best. It works because hundreds of batches are averaged. The learned
baseline takes away up to three quarters of the noise, and more and more as the model gets better: then nearly every draw is rewarded, and without a baseline every draw is made more probable.

### What we changed, and what each change is worth

Our model departs from the paper in some points, and the paper's own choices can be put back one at a time:
"""

# %%
glimpse_figures.departures(
    glimpse.by_name(stored_ram, "departure"), of_policy["learned"]
)

# %% [markdown]
r"""
Most single changes cost little, or even help: a reward after each glimpse, or the probability of the right digit as a reward, is a finer signal than right or wrong. Two
of the paper's choices cost much here, a plain rectifier layer in the place of the GRU, and batches of 20. That is no verdict on the paper, which had other pictures
and another budget. It says what can be learned in twenty seconds.
"""

# %%
verdict(
    "learned is ahead of random, every seed of every other",
    min(of_policy["learned"]) > max(of_policy["random"]),
)
verdict(
    "random is ahead of the centre", min(of_policy["random"]) > max(of_policy["centre"])
)
verdict("told is ahead of learned", min(of_policy["told"]) > max(of_policy["learned"]))
all_plain = [share for shares in plain.values() for share in shares]
verdict(
    "on plain digits all are within 3 points", max(all_plain) - min(all_plain) < 0.03
)

# %% [markdown]
r"""
## 4 · 2014: translate, and look back

**Problem.** Translate inputs of any length with networks of a fixed size. **Idea, June 2014** (Cho and others; in September Sutskever and others). One recurrent network, the *encoder*, reads the
input character by character and carries a *state*, a row of numbers, along. Its last state is handed to a second one, the *decoder*, which writes the
output from it. **Not yet.** Everything must fit into that one vector.

**Idea, September 2014** (Bahdanau, Cho and Bengio). Keep *all* the encoder's states. Before each character that it writes, the decoder looks over them, and mixes. **Not yet.** Still
recurrent: one step after the other, in reading and in writing.

Our language is that of dates, as fifteen European languages write them; the translation is the international form. One to three dates in a row:
"""

# %%
for pair in date_data.draw(torch.Generator().manual_seed(6), 5):
    print(f"{pair.source:40}{pair.target}")
two = date_data.draw(torch.Generator().manual_seed(1), 1, dates=2)[0]
print(two.source, "->", two.target)

# %% [markdown]
r"""
Try the first by hand before you read on: which characters of the input do you need for the last two of the output? You look back at the input, for each part of
the output at another place. That is the idea.

### One vector: a mask with a single open place

Queries are the decoder's states, keys and values the encoder's. A fixed vector is what you get if the mask lets
every query see the last state only:
"""

# %%
states = torch.randn(7, 5)  # seven characters were read, a state of width 5 for each
asking = torch.randn(4, 5)  # four characters are to be written
only_last = torch.zeros(4, 7, dtype=torch.bool)
only_last[:, -1] = True
closed = attend(asking, states, states, mask=only_last)
show(weights=closed.weights[:2])
assert torch.equal(closed.output, states[-1].expand(4, 5))

# %% [markdown]
r"""
All four get the same row, whatever they ask. Take the mask away, and each gets its own mixture. Bahdanau's score for one query $q$ and one key $k$ is a small
network:

$$\text{score}(q, k) = w \cdot \tanh(W_q\, q + W_k\, k)$$

It is called *additive*, since query and key are added up before the $\tanh$. The matrices $W_q$ and $W_k$ bring both to one
width, here 3, and the vector $w$ turns the result into one number; all three are learned. By hand, pair by pair:
"""

# %%
additive = Additive(d_query=5, d_key=5, d_hidden=3)
w_q, w_k, w = additive.w_query.weight, additive.w_key.weight, additive.v
by_hand = torch.stack(
    [torch.stack([w @ torch.tanh(w_q @ q + w_k @ k) for k in states]) for q in asking]
)
assert_close(by_hand, additive(asking, states))
looked = attend(asking, states, states, score=additive)
show(weights=tuple(looked.weights.shape), output=tuple(looked.output.shape))

# %% [markdown]
r"""
Four queries by seven keys; each row sums to 1. In the decoder this happens once for every character that it writes; `state` asks, `h` are the encoder's
states. Our encoder is in fact two networks, one that reads from the left and one from the right; a state is both of theirs, side by side. The fixed vector of the comparison below
is kinder than the one above: both ends are in it.

"""

# %%
show_source(AttentionDecoder.step)

# %% [markdown]
r"""
### Train it

Live, with attention, on one date and on two dates in a row, about 35 seconds together. Days that are tested were never trained on, in any language.
"""

# %%
stored_dates = results("dates")["rows"]
date_rate = {
    row["system"]: row["lr"]
    for row in dates.best_rows(stored_dates)
    if (row["seed"], row["steps"], row["dates"]) == (0, 500, 2)
}
translators = {
    k: dates.train("additive", dates=k, lr=date_rate["additive"])[0] for k in (1, 2)
}

# %% tags=["nbval-ignore-output"]
exact = {k: dates.judge(model, k)["exact"] for k, model in translators.items()}
print({f"{k} in a row": round(share, 3) for k, share in exact.items()})

# %%
verdict(
    "one date: at least 85 % without a wrong character", exact[1] > 0.85, trained=True
)
verdict("two in a row: at least 60 %", exact[2] > 0.6, trained=True)

# %% [markdown]
r"""
Nobody told the model which character of the input belongs to which of the output. Here is what it found. Rows are the characters that it wrote, from the top,
columns those that it read:
"""

# %%
(told,) = translate(translators[1], ["mittwoch, 3. märz 2021"])

# %% tags=["nbval-ignore-output"]
date_figures.alignment_map(
    told.weights,
    "mittwoch, 3. märz 2021",
    told.text,
    caption="Live. Where the decoder looked for each character of its answer. Bright is large.",
)

# %% [markdown]
r"""
Two dates do no worse than one: each training step then holds twice as many. Now the picture. Such a table is an **alignment**: translating and aligning, in one go, is what the paper's title promises. The output begins with the year, so the first rows
look at the *end* of the input; then, with the first dash, the eye jumps back to the month. Which characters the encoder's state at a place stands for is not quite fixed: it is a state of a network that reads both ways, so it knows
its neighbours. Do not be surprised by a bright cell one place beside the one that you expect.

Now yours. Type a date in one of the languages, and walk along the answer with the slider:
"""

# %%
AlignmentExplorer(
    translators[1],
    ["mittwoch, 3. märz 2021", "12 de mayo de 1999", "july 4, 2030", "3. 11. 1987"],
)

# %% [markdown]
r"""
> **Do.** Take *july 4, 2030*, and go to the two characters of the month. Where does the model look? Then type *june 4, 2030*, and *juli 4, 2030*.
>
> <details><summary>What you should find</summary>
> For the month it looks at the letters of its name, and it has to see the end of the word: jul and jun differ in the third letter only. A mix of two languages was never
> trained on, so the last one is an experiment: believe what you see.
> </details>

### Against one vector

The same data, and one vector of 192 numbers. Its model has more parameters than the others. Learning rates, the size of a training step, were chosen for each model and number of
steps on two dates in a row, with days kept apart for that purpose (a *validation split*); the run of 4,000 steps takes the rate of the one of 1,000. *Scaled dot* is another
score, $q \cdot k / \sqrt{d}$, with $d$ the width of both; lesson 02 takes it apart.

> **Predict.** Which of them will lose from one date to three: attention, the fixed vector, or both?
>
> <details><summary>Answer</summary>
> The fixed vector loses nearly everything. Attention loses little.
> </details>
"""

# %%
for system in ("additive", "scaled dot", "fixed vector"):
    print(f"{system:13}", sum(p.numel() for p in dates.make(system).parameters()))
over_dates = dates.by_dates(stored_dates)
date_figures.right_over_dates(
    {f"{system}, {steps} steps": s for (system, steps), s in over_dates.items()},
    caption="Stored runs, 1,000 test texts each: the middle of three seeds, the band from the lowest to the highest.",
)

# %%
for (system, steps), (counts, _, middle, _) in over_dates.items():
    shares = ", ".join(f"{share:.2f}" for share in middle)
    print(f"{system:13}{steps:5} steps   {counts!s:10} {shares}")

# %% [markdown]
r"""
After 500 steps attention has nearly everything right, for one, two and three dates. The fixed vector has .82, then .00, then .00.

That looks like a proof that one vector cannot hold three dates. It is not: read the last two lines. With *twice* the steps one date is solved, and two are begun; with
*eight times* the steps three dates reach .80. The 192 numbers of the vector had room enough. What they lack is a short way: every part of the answer has
to be learned through the same narrow place. **Here, attention is not what makes the task possible. It makes it quick to learn.**

Is it the number of dates, or the number of characters?
"""

# %%
date_figures.right_over_length(
    dates.over_length(stored_dates, 500),
    caption="Stored runs, 500 steps, three seeds. A panel for each number of dates; groups of fewer than 30 texts are left out.",
)

# %% [markdown]
r"""
With the number of dates held fixed, longer inputs are no harder. For the fixed vector only the first panel can tell, since in the others nothing is right; there its curve
is level. A long text spells the month and adds a weekday that nobody needs. What counts is how much has to be *said*.
"""

# %%
fixed, looking = over_dates["fixed vector", 500], over_dates["additive", 500]
verdict("attention at three dates: every seed above 90 %", looking[1][2] > 0.9)
verdict("the fixed vector at three dates: no seed above 1 %", fixed[3][2] < 0.01)
verdict(
    "after 4,000 steps every seed of it is above 70 %",
    over_dates["fixed vector", 4000][1][0] > 0.7,
)
verdict(
    "both scores learn: above 90 % at three dates, every seed",
    min(looking[1][2], over_dates["scaled dot", 500][1][2]) > 0.9,
)

# %% [markdown]
r"""
## 5 · 2016: a sentence that looks at itself

**Problem.** A recurrent network's memory of a text is one vector, too. **Idea.** Let the words look at the words of their *own* sentence: queries,
keys and values all come from one sequence. That is **self-attention**. **Not yet.** At first it stood beside a recurrent network, and looked back only; the
Transformer of 2017 dropped the network, and looks both ways.

Here is the task that our first source uses to explain it: name each word's part of speech. The data come from a small grammar of our own:
"""

# %%
sample = tagging.draw(torch.Generator().manual_seed(5), 6)
for row in sample.words:
    print(tagging.text(row))
print(f"sentences: {tagging.count_sentences():.1e}")

# %% [markdown]
r"""
Nonsense, but grammatical. There are more than $10^{18}$ such sentences (the cell below counts them), so nothing can be learned by heart; those for testing were never seen in
training. Three kinds of words are ambiguous:

| words like | may be | which one is told by |
|---|---|---|
| *saw* (bit, felt, shot ...) | noun, or past form | its neighbours: "the saw", "I saw" |
| *watch* (duck, nail, plant ...) | noun, or base form | its neighbours: "the watch", "did I watch" |
| *cut* (hit, cast, set ...) | noun, past form, or base form | sometimes a word far away: "**did** the man that saw the duck near me **cut** the nail" |

A *base form* follows an auxiliary: did cut, will watch. Take *did* away from the last example, and *cut* is a past form.

### The best that anybody can do

Here is the argument of the Predict-first question, in general. **Two words that look the same to a tagger get the same tag.** So for each thing it may
see, the best it can do is to name the tag that is most frequent there. Suppose that it sees one word at a time, and that *saw* occurs like this:

| | noun | past form | best answer | right |
|---|---|---|---|---|
| *saw* | 5 | 3 | noun | 5 of 8 |

No network, however large, gets more than 5 of these 8. Suppose now that it sees the word before as well:

| | noun | past form | best answer | right |
|---|---|---|---|---|
| *the saw* | 4 | 0 | noun | 4 of 4 |
| *I saw* | 0 | 3 | past form | 3 of 3 |
| *garden saw* | 1 | 0 | noun | 1 of 1 |

Together 8 of 8. A sight that tells more apart can only raise the limit. Since the sentences come from a grammar, we need not count a sample: the
grammar knows every probability. `limit` adds them up, exactly:
"""

# %%
show_source(tagging.limit)

# %%
show(saw_seen_alone=torch.tensor(tagging.limit(tagging.window(0), ("saw",))))

# %% [markdown]
r"""
About 0.63: of all the uses of words like *saw*, 63 % are nouns. Whoever sees single words can always say "noun", and nothing better.

### What sees what

Each kind of network is a mask over the sentence, a table that says who may look at whom (rows ask, bright means *may look*):
"""

# %%
everything = torch.ones(6, 6)
heatmap(
    {
        "one word": window(6, radius=0).float(),
        "window 1": window(6, radius=1).float(),
        "recurrent": causal(6).float(),
        "attention": everything,
    },
    numbers=False,
    limits=(0, 1),
    row_axis="word that asks",
    column_axis="word asked",
    color_axis="may look",
    alt="Four masks over six words: a diagonal, a band of three, a lower triangle, and a full square.",
    caption="One word: itself. Window 1: itself and a neighbour on either side. Recurrent, read from the left: itself and all before. Attention: all.",
)

# %% [markdown]
r"""
> **Predict.** Which of the four can do best on *saw*? Which on *cut*?
>
> <details><summary>Answer</summary>
> On <i>saw</i> a window of one is as good as attention: the neighbours tell everything; the recurrent network misses the neighbour to the right. On <i>cut</i>
> attention is best: the auxiliary may be further away than the window reaches.
> </details>
"""

# %%
sights = {
    "one word": tagging.window(0),
    "window 1": tagging.window(1),
    "window 3": tagging.window(3),
    "window 7": tagging.window(7),
    "recurrent": tagging.before,
    "attention, no positions": tagging.bag,
    "attention": tagging.whole,
}
limits = {
    name: (tagging.limit(s, ("saw",)), tagging.limit(s, ("cut",)))
    for name, s in sights.items()
}
print(f"{'':24} saw    cut")
for name, (saw, cut) in limits.items():
    print(f"{name:24}{saw:.3f}  {cut:.3f}")

# %% [markdown]
r"""
Read it from the top. One word: bad. A window of 1: *saw* is solved, and *cut* is at .87. With 3 words on either side *cut* reaches .96, with 7
.98, and does not arrive. Reading from the left has no window, comes to .99 on both, and misses only what a *later* word tells: in "the garden saw bit me" and "the garden
saw me", the third word is a noun once and a verb once, and all that comes before it is the same. Seeing everything gives 1.000.

One line deserves a second look. Attention *without positions* sees all the words, and not their order. It is better than one word
alone, and far below a window of 1: in a shuffled sentence nobody can tell which *the* belongs to which *saw*. How attention gets to know positions is the
subject of lesson 05.

### Train them

Limits are for the best imaginable tagger. Are they reached? Every dot below is a small network, trained on the same 10,000 sentences with one of
three seeds; the black lines are the limits. The runs were stored by `make experiments`; all choices were made on a validation split.
"""

# %%
stored_tagger = results("tagger")["rows"]
figures.taggers(
    stored_tagger,
    ("saw", "cut"),
    "Stored runs, three seeds each, on 4,000 sentences never seen. Bars: the middle seed; black: the limit of what that tagger sees.",
)

# %%
gaps = [
    abs(row["right"][group] - row["limit"][group])
    for row in stored_tagger
    for group in ("saw", "cut")
]
verdict("no dot is more than 2 points from its line", max(gaps) < 0.02)

# %% [markdown]
r"""
The dots stop within two points of the lines. (One may lie a little to the right of its line, since the 4,000 sentences are a sample.) That is the point of this
section: **what a model sees, order included, decides what it can learn**; more training does not help beyond. It also says that each network had its fair chance.

How large should a window be? For *saw* and *watch* 1, for *cut* more than 7:
"""

# %%
radii = [0, 1, 2, 3, 5, 7]
window_limits = {
    group: [tagging.limit(tagging.window(r), (group,)) for r in radii]
    for group in ("saw", "watch", "cut")
}
figures.sweep(radii, window_limits, stored_tagger)

# %% [markdown]
r"""
There is no one right size. A window that is always enough has to be as large as the worst case, and then most of what it holds is of no use to most words. So let the network
choose by itself where to look. Live, a tagger with two layers of self-attention, about 15 seconds (what
layers and heads are is told in lessons 04 and 06):
"""

# %%
best_rate = {(row["system"], row["seed"]): row["lr"] for row in stored_tagger}
attentive, tagger_history = tagger.train("attention", lr=best_rate["attention", 0])
share = tagger.accuracy(attentive, "test")

# %%
verdict(
    "attention: more than 98 % of all tags right",
    share["all words"] > 0.98,
    trained=True,
)
verdict(
    "more than the limit of a window of 7 on cut",
    share["cut"] > limits["window 7"][1],
    trained=True,
)


# %%
def tags_of(sentence):
    """The tag that the trained network gives to each word of a sentence."""
    words = to_device(tagging.read(sentence))
    with torch.no_grad():
        return [tagging.TAGS[t] for t in attentive(words)[0].argmax(-1).tolist()]


with_did = "did the man that saw the duck near me cut the nail"
without_did = with_did.removeprefix("did ")

# %% tags=["nbval-ignore-output"]
for word, tag in zip(with_did.split(), tags_of(with_did), strict=True):
    print(f"{word:6}{tag}")

# %% [markdown]
r"""
> **Predict.** Take the first word away: "the man that saw the duck near me cut the nail". Which tags change?
>
> <details><summary>Answer</summary>
> That of <i>cut</i>, nine places away: from base form to past form. <i>saw</i> stays a past form, since it hangs on <i>that</i>.
> </details>
"""

# %%
before, after = tags_of(with_did)[1:], tags_of(without_did)
changed = [
    word
    for word, one, other in zip(without_did.split(), before, after, strict=True)
    if one != other
]
verdict("only the tag of cut changes", changed == ["cut"], trained=True)
verdict("from base to past", (before[8], after[8]) == ("base", "past"), trained=True)
verdict(
    "a control: woman in the place of man changes no tag",
    tags_of(with_did.replace("man", "woman")) == tags_of(with_did),
    trained=True,
)
verdict(
    "and the two saw of 'I saw a saw' are told apart",
    tags_of("I saw a saw")[1::2] == ["past", "noun"],
    trained=True,
)

# %% [markdown]
r"""
One word was removed, and one tag changed, nine places further on. That is an *intervention*, and with its control it shows that the network uses the far word. Do the
weights show it, too? Here are those of the first layer:
"""

# %%
sentence = to_device(tagging.read(with_did))
with torch.no_grad():
    _, maps = attentive.look(sentence)

# %% tags=["nbval-ignore-output"]
figures.sight(with_did.split(), maps[0][0], (4, 9))

# %% [markdown]
r"""
Left the query *saw*, right the query *cut*. In our run *cut* gives *did* no more than its share of a twelfth, and most to the word behind it. From this map you would never guess what the
intervention has just shown. It is the mean of four heads, in the first of two layers; a map is a place to get ideas, and an intervention is a test. Lesson 04 comes back to this.

An honest word on the recurrent network. Give it a second one that reads from the right, and it sees everything too; its row in the figure above, "both
ways", is at the limit as well. For twelve words attention is not needed. What it changes is how far a word has to travel: through nine steps of a
recurrent network, or in one step to any place. Lesson 08 measures what that is worth on longer inputs.

## 6 · 2017 and after: attention alone

If every word can look at every word in one step, what is the recurrent network for? The **Transformer** left it out. Then the same function went wherever
there are things that can be compared:
"""

# %%
cards(
    "Squeeze and excitation",
    "Non-local networks",
    "Transformer",
    "Graph attention",
    "Vision Transformer",
    "Windows for long texts",
    "Linear attention",
    "The same numbers, less memory",
)

# %% [markdown]
r"""
You will know these words when you get there: every row is part of a lesson, and every "not yet" a reason for the next one. What changes from row to row is, as a rule, the
score, the mask, or what the tokens are, and `attend` stays. Two rows change more: the first has no keys, and linear attention replaces the softmax.

## 7 · What the sources say

Each claim, with what this notebook has just found. ✓ holds, ◐ holds with a condition, ✗ corrected.
"""

# %% tags=["claim:history-1"]
claim(
    "history-1",
    {
        "three entries of the timeline on looking come before RAM": [
            m.name for m in MILESTONES if m.thread == "vision" and m.year < 2014
        ]
        == ["Learned fovea", "VISIT", "Foveal glimpses"],
        "stored: the worst learned seed is ahead of the best random one": min(
            of_policy["learned"]
        )
        > max(of_policy["random"]),
        "and of the best that stays at the centre": min(of_policy["learned"])
        > max(of_policy["centre"]),
        "with everything in view, learning to look gains less than 2 points": abs(
            sorted(plain["learned"])[1] - sorted(plain["random"])[1]
        )
        < 0.02,
    },
)

# %% tags=["claim:history-2"]
claim(
    "history-2",
    {
        "live: the rows of the alignment sum to 1": torch.allclose(
            told.weights.sum(-1), torch.ones(len(told.text)), atol=1e-4
        ),
        "live, two dates in a row: above 60 %": exact[2] > 0.6,
        "stored, 500 steps, three dates: attention above 90 %, one vector below 1 %": looking[
            1
        ][2]
        > 0.9
        and fixed[3][2] < 0.01,
        "stored, 4,000 steps: one vector above 70 %": over_dates["fixed vector", 4000][
            1
        ][0]
        > 0.7,
    },
    trained=True,
)

# %% [markdown]
r"""
That the paper was the first in its field is literature, and no cell can run it. Another source, S1, says that an LSTM, a relative of our GRU, forgets what
is long ago, and does better with attention. We find the second half. Forgetting over length we did not find here; lesson 08 looks for it.
"""

# %% [markdown]
r"""
Two claims on taggers are decided in the [evidence](evidence/01_history_evidence.ipynb) of part [01a](01a_two_saws.ipynb), the second edition of section 5.

The last claim is one of lesson 05, about verbs and positions; its words are here.
"""

# %% tags=["claim:position-16"]
_, tags, probability = tagging.patterns()  # every sentence of the grammar
verb = torch.isin(tags, torch.tensor([tagging.TAGS.index(t) for t in ("past", "base")]))
command = tags[:, 0] == tagging.TAGS.index("base")
question = tags[:, 0] == tagging.TAGS.index("auxiliary")
statement = ~command & ~question
claim(
    "position-16",
    {
        "no statement begins with a past or a base form": not verb[statement, 0].any(),
        "every command does": verb[command, 0].all(),
        "commands are a tenth of the grammar": abs(probability[command].sum() - 0.1)
        < 1e-9,
    },
)

# %% [markdown]
r"""
The grammar is ours, so this is no finding about English. It shows what the claim leaves out: it is about statements.

## 8 · Three wrong ideas worth having once

**"A bigger network would tell the two *saw* apart."** Not if it sees one word. Section 5 said it with a count; here it is with a hundred times the
width.

> **Predict.** A per-word tagger with 3,200 numbers for each word instead of 32, and random weights. Can its two answers differ?
>
> <details><summary>Answer</summary>
> No. The same input through the same network gives the same output. Size does not enter.
> </details>
"""

# %%
huge = Window(radius=0, d_model=3200, d_hidden=640)
one, two = huge(tagging.read("I saw a saw"))[0][[1, 3]]
print("the same scores:", torch.equal(one, two))

# %% [markdown]
r"""
**"Attention was invented for the Transformer."** The function was there in 1964, for drawing curves; learned looking in 1991; learned mixing in
2013, for handwriting (Graves, arXiv:1308.0850), and in 2014, for translation. What the Transformer added was to *leave the rest out*.

> **Predict.** How many of the 22 entries of the timeline are older than the Transformer's year?
>
> <details><summary>Answer</summary>
> Ten.
> </details>
"""

# %%
print(sum(m.year < 2017 for m in MILESTONES))

# %% [markdown]
r"""
**"Attention knows the order of the words."** It sees all of them, and no order. Shuffle the words, and without positions each word gets what it got
before.

> **Predict.** In attention without positions, words 0 and 3 change places. What happens to the scores of word 1?
>
> <details><summary>Answer</summary>
> Nothing, beyond rounding.
> </details>
"""

# %%
orderless = tagger.make("attention, no positions").eval()
shown = orderless(tagging.read("cat saw a man"))[0, 1]
shuffled = orderless(tagging.read("man saw a cat"))[0, 1]
verdict("the scores of saw stay", torch.allclose(shown, shuffled, atol=1e-5))

# %% [markdown]
r"""
## 9 · Exercises

Open [exercises/01_history](exercises/01_history.ipynb). The first one, the best share by counting, is the shortest proof in this course; do not leave
it out.

## 10 · Summary

- A score compares a query with keys, softmax turns scores into weights, and the output is the mean of the values with these weights. In 1964 the
  score was a distance.
- Hard attention looks at one place, and is usually trained by REINFORCE, which is noisy. Soft attention mixes all places and has a gradient.
- A fixed vector is attention that may look at one place only. Bahdanau's decoder looks at all states, and each time anew. That makes learning quick; with far more steps, one
  vector learns it too.
- What a model sees, order included, sets the limit of what it can learn; the limit can be computed, and small networks reach it.
- Self-attention sees all the words at once, and no order. Positions have to be added.

**Sources.** All entries of the timeline, with their numbers; above all Nadaraya 1964; Watson 1964; Schmidhuber & Huber 1991; Ahmad 1991; Larochelle & Hinton
2010; Williams 1992 (REINFORCE); Mnih et al. 2014 (arXiv:1406.6247); Cho et al. 2014 (arXiv:1406.1078); Sutskever, Vinyals & Le 2014 (arXiv:1409.3215); Bahdanau, Cho & Bengio 2014
(arXiv:1409.0473); Cheng, Dong & Lapata 2016 (arXiv:1601.06733); Vaswani et al. 2017 (arXiv:1706.03762); Hung-yi Lee, Machine Learning 2021; the course's own
sources S0, S1, S3.

**Next**: [02a · A soft look-up](02a_soft_look_up.ipynb): how much do I listen to each of three answers? The one function, taken apart.
"""
