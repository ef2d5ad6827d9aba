# %% [markdown]
r"""
{title}

A digit lies somewhere on a dark canvas. You may look four times; each look is sharp in 8 by 8 pixels only. All that you hear of your looks, afterwards, is whether your guess was right. Can you
learn from that where to look?

**Afterwards you can** tell hard from soft attention; derive the estimate that trains a choice; say when learned looking is worth its trouble, and when it is worse than random looks.

{about}

<details><summary>中文摘要 · Chinese</summary>
硬注意力每次只看一个位置,位置的选择没有梯度,只能从奖励学习:用对数概率的导数乘以奖励来估计梯度(REINFORCE),均值正确但噪声很大,基线可以降噪。
循环注意力模型(RAM)由此学会看哪里;但训练太短时,学到的位置比随机位置还差;一眼能看全时,学习也没有收益。
</details>
"""

# %%
import torch
from jaxtyping import Float
from torch import Tensor
from torch.distributions import Normal
from torch.testing import assert_close

from lesson_lib.chapters.c01_history import glimpses_figures as figures
from lesson_lib.chapters.c01_history.experiments import glimpse
from lesson_lib.chapters.c01_history.glimpse import reinforce, retina
from lesson_lib.chapters.c01_history.glimpses_explorer import GlimpseExplorer
from lesson_lib.checks import check, hint, predict, solution, warm_up
from lesson_lib.device import quick
from lesson_lib.show import show
from lesson_lib.training import stored

warm_up()

# %%
batch = glimpse.held_out("test")
canvas, middle = batch.canvas[:1], torch.zeros_like(batch.canvas[:1, 0, :2])
sharp, dim = retina(canvas, middle, 8, n_scales=2)[0]
figures.one_look(canvas[0], sharp, dim)

# %% [markdown]
r"""
Left is the canvas, 24 by 24 pixels, with a digit of 8 by 8; nobody sees it whole. One look at its middle brings 8 by 8 pixels, sharp, and 16 by 16 dim ones (each 2 by 2 averaged),
as an eye does. Here the sharp patch is empty; the dim one hints where to look next.

## 1 · Hard and soft

Three places hold 10, 20 and 40, and have the weights 0.1, 0.2 and 0.7. **Soft attention** mixes: $0.1 \cdot 10 + 0.2 \cdot 20 + 0.7 \cdot 40 = 33$. **Hard attention** draws *one* place,
with these weights as probabilities, and takes what is there.
"""

# %%
predict("how_often_33")

# %%
weights, values = torch.tensor([0.1, 0.2, 0.7]), torch.tensor([10.0, 20.0, 40.0])
generator = torch.Generator().manual_seed(0)
drawn = values[
    torch.multinomial(weights, 100_000, replacement=True, generator=generator)
]
print("soft", (weights @ values).item(), "  hard", drawn.unique().tolist())
assert abs(drawn.mean() - 33) < 0.2

# %% [markdown]
r"""
The mean of the draws is near «33». But change a weight a little: the mixture changes a little, a slope to follow. The place that was drawn stays, or jumps. There is no slope.

## 2 · Learn from a reward

Place $a$ has the reward $r_a$ and the probability $\pi_a$. What should grow is the expected reward. Its slope in any parameter $\theta$ is, by $\frac{d\pi}{d\theta} =
\pi\,\frac{d\log\pi}{d\theta}$,

$$\frac{d}{d\theta} \sum_a \pi_a r_a = \sum_a \pi_a \Big( r_a \frac{d \log \pi_a}{d\theta} \Big)$$

The right side is a mean over draws. So draw once, and take $r_a \frac{d \log \pi_a}{d\theta}$ as an **estimate** of the slope (REINFORCE, Williams 1992). Example: look left with
probability $p = 0.2$ and reward 1, or right with reward 0. The expected reward is $p$, so its true slope in $p$ is 1.
"""

# %%
predict("estimate_left")

# %% [markdown]
r"""
Right on average, and never right: 5 or 0. Subtract a **baseline** $b$ from the reward, the reward that was expected. It adds $-b \sum_a \frac{d\pi_a}{d\theta} = -b \cdot \frac{d}{d\theta} 1
= 0$ to the mean, so the mean stays. And the noise?
"""

# %%
p = 0.2
for baseline in (0.0, 0.2):
    left, right = (1 - baseline) / p, (baseline - 0) / (1 - p)
    mean = p * left + (1 - p) * right
    variance = p * left**2 + (1 - p) * right**2 - mean**2
    print(
        f"baseline {baseline}: estimates {left:.2f}, {right:.2f}  mean {mean:.2f}  variance {variance:.2f}"
    )

# %% [markdown]
r"""
The variance falls from «4» to «2.25». Try 0.8 (with two places all noise can go) and 2: a good baseline takes noise away, a bad one adds some.

An eye has more than two places. Our model names a point, its *mean*, and while it learns it looks near that point: the place $x$ is drawn from a normal distribution of deviation
$\sigma$. So $\log p(x) = -(x - \text{mean})^2 / 2\sigma^2$ and a constant.
"""

# %% [markdown] tags=["exercise:nudge"]
# Write the estimate of the slope in the mean. Rewards and baselines are (b,), places and means (b, 2): an $x$ and a $y$ for each canvas.

# %% [markdown]
r"""
In the library `reinforce` is a loss: minus its gradient is your estimate, averaged over the batch.
"""

# %%
mean = torch.tensor([[0.0, 0.5]], requires_grad=True)
place, reward, expected = (
    torch.tensor([[0.3, 0.1]]),
    torch.ones(1, 1),
    torch.full((1, 1), 0.6),
)
log_p = Normal(mean, 0.3).log_prob(place).sum(-1, keepdim=True)
reinforce(log_p, reward, expected).backward()
assert_close(-mean.grad, (reward - expected) * (place - mean.detach()) / 0.3**2)
show(downhill=-mean.grad)

# %% [markdown]
r"""
Better than expected: the mean moves towards the place that was drawn, right and up ($y$ counts downwards).

## 3 · A model that looks

The recurrent attention model (RAM, Mnih et al. 2014), in miniature:

```
canvas ─> look at place ─> state of all looks ─┬─> which digit?
               ^                               │   (at the end)
               └─ drawn about the mean <─ where?
```

A look at the edge must not fail.
"""

# %% [markdown] tags=["exercise:crop"]
# A look cuts a square out of the canvas; here `size` is odd, so that there is a centre, pixel (row, column). The function below fails at the edges: repair it, so that there are
# zeros beyond the edge.

# %% [markdown]
r"""
The whole model, its noise $\sigma = 0.3$, and its loss:

```python
place = zeros                               # the middle
for look in range(4):
    state = gru(see(canvas, place), state)  # 128 numbers
    mean = 2 / 3 * tanh(locate(state))      # on the canvas
    place = (mean + 0.3 * noise).detach()   # noise in training
expected = expect(state.detach())           # the baseline
loss = (cross_entropy(classify(state), label)
        + reinforce(log_p, reward, expected)
        + (expected - reward) ** 2)
```

(The canvas goes from −1 to 1.) What a digit looks like is learned from labels, as always. Where to look is learned from the reward alone: 1 if the last guess was right. 1,000 steps:
"""

# %%
with stored():  # reads what this training left before
    ram, _ = glimpse.train("learned", lr=6e-3, steps=1000)
right = glimpse.accuracy(ram, "test")  # after each of the four looks

# %% tags=["nbval-ignore-output"]
print("right after each look:", [round(share, 2) for share in right])

# %% tags=["proof"]
assert quick() or (right[0] < 0.75 and right[-1] > 0.85)

# %% [markdown]
r"""
One look is right in over half, four in over nine of ten. Step through the looks (solid: sharp; dashed: dim): where does it go when the digit lies in a corner?
"""

# %%
looked, shown = glimpse.seen(ram, "test")
some = slice(0, 6)
GlimpseExplorer(
    shown.canvas[some],
    looked.places[some],
    looked.probabilities()[some],
    shown.label[some],
)

# %% [markdown]
r"""
The second look jumps to the digit. Later ones wander: once the digit is seen, a look changes less, so there is less reward to learn from.

## 4 · Was it worth learning?

Nothing changes but who moves the eye.
"""

# %%
predict("who_moves_the_eye")

# %%
figures.stored_policies()

# %% [markdown]
r"""
Medians of three seeds: learned .93, random .78, the centre .66. Told where the digit is, the model has .99; a convolution that sees everything has .98: so small a canvas needs no looks.

**"Learned places beat random ones."** Train with batches of 20 canvases, 3,000 steps: a fifth of the canvases.
"""

# %%
predict("small_batches")

# %%
figures.stored_small_batches()

# %% [markdown]
r"""
Worse than random places: .34 against .51. **"Batches of 20 are too small for so noisy an estimate."** So we thought, until we trained longer. With as many canvases as before (the last two rows) batches
of 20 reach .96, more than batches of 256. We suspect that at first the eye follows noise. Noise is averaged over *steps*, too. Nor is
anything gained where one look sees everything: on digits that fill the canvas all have .98 ([measured](evidence/01_history_evidence.ipynb)).

## In real work

Most models of today mix: a mixture has a slope. Where a choice cannot be avoided, section 2 returns: chat models are tuned by the log probability of what they wrote,
times reward minus baseline. torch has a trap for it. `sample` draws a number; `rsample` computes mean + $\sigma$ · noise, and keeps the link to the mean:
"""

# %%
predict("which_sample")

# %%
for draw in ("sample", "rsample"):
    mean = torch.zeros(1000, requires_grad=True)
    near = Normal(mean, 0.3)
    torch.manual_seed(0)
    place = getattr(near, draw)()
    (near.log_prob(place) * (place.detach() > 0)).sum().backward()  # reward: right of 0
    print(f"{draw:8} mean of the estimates {mean.grad.mean():.2f}")

# %% [markdown]
r"""
From 1,000 draws `sample` comes near the true slope, the density at 0, $\frac{1}{\sigma\sqrt{2\pi}} = 1.33$. **"rsample is sample with a gradient, so it is safer."** Its estimates are 0, without an error.

## The canvas once more

From one bit of reward a machine learned where to look, from 256,000 canvases. A mixture over all places would have had a slope from the
start: that is part [02a](02a_soft_look_up.ipynb).

**To remember.** A choice has no slope; reward times the slope of its log probability has the right mean, and much noise.

- Soft attention mixes, hard attention draws; their outputs agree on average.
- A baseline leaves the mean alone; a good one takes noise away.
- Learned looking pays where no look sees everything, and after many canvases.
- `sample`, not `rsample`, under a log probability.

**Sources.** Williams 1992 (REINFORCE); Mnih, Heess, Graves & Kavukcuoglu 2014 (arXiv:1406.6247). The paper's own choices, the timeline: [evidence](evidence/01_history_evidence.ipynb).

**Next**: [02a · A soft look-up](02a_soft_look_up.ipynb): how much do I listen to each of three answers?
"""
