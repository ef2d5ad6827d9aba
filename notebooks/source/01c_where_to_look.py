# /// ideas
# [hard_and_soft]
# says = "soft attention mixes, hard attention draws one place; on average their outputs agree"
# motive = "How could it learn this?"
# shown = "values[torch.multinomial"
# action = 'predict("how_often_33")'
#
# [no_slope]
# says = "a drawn place has no slope: move a weight a little, and it stays or jumps"
# motive = "Can gradient descent train the weights?"
# shown = "stays the same, or jumps"
# action = 'predict("how_often_33")'
#
# [estimate]
# says = "reward times the slope of the log probability of what was drawn: right on average (REINFORCE)"
# motive = "all that you hear"
# shown = "\\frac{d \\log \\pi_a}{d\\theta}"
# action = 'predict("estimate_left")'
#
# [baseline]
# says = "a baseline that does not depend on the draw keeps the mean and can take noise away"
# motive = "never right"
# shown = "variance"
# action = "try 0.8 and 2"
#
# [nudge]
# says = "for a point drawn about a mean: (reward - baseline)(place - mean)/sigma squared moves the mean towards what was better than expected"
# motive = "An eye has more than two places"
# shown = "slopes.mean(0)"
# action = "nudge"
#
# [policy_loss]
# says = "as a loss: minus the mean of (reward - baseline) times log p; its gradient is the estimate"
# motive = "A network has thousands of numbers"
# shown = "policy_loss(log_p"
# action = "policy_loss"
#
# [ram]
# says = "the recurrent attention model: state, next place, guess; the three draws share the reward of the last guess"
# motive = "A model that looks"
# shown = "state = update("
# action = "GlimpseExplorer"
#
# [worth]
# says = "learned places beat random ones, and those the centre"
# motive = "Was it worth learning?"
# shown = "figures.stored_policies()"
# action = 'predict("who_moves_the_eye")'
#
# [too_short]
# says = "trained too briefly, learned places are worse than random ones; the noise is averaged over steps"
# motive = "Learned places beat random ones"
# shown = "figures.stored_small_batches()"
# action = 'predict("small_batches")'
#
# [sample]
# says = "under a log probability take sample, not rsample"
# motive = "meets a trap in torch"
# shown = "rsample"
# action = 'predict("which_sample")'
# ///

# %% [markdown]
r"""
{title}

A digit lies somewhere on a dark canvas. You may look four times, and each look is sharp in a small square only. All that you hear of your looks, afterwards, is whether your guess was right. Can you learn from that where to look?

**Afterwards you can** tell hard from soft attention; write the estimate that trains a choice; say when learned looking is worth its trouble, and when it is worse than random looks.

{about}

<details><summary>中文摘要 · Chinese</summary>
画布上某处有一个数字,只能看四小块,最后只知道猜得对不对。怎样从这一点奖励学会看哪里?本课推导对数概率乘奖励的估计,用基线减少噪声,
亲手让一个点走到有奖励的地方,再看循环注意力模型学到了什么,以及它何时还不如随便看。
</details>
"""

# %% tags=["imports"]
import torch
from torch.distributions import Normal

from lesson_lib.chapters.c01_history import glimpses_figures as figures
from lesson_lib.chapters.c01_history.experiments import glimpse
from lesson_lib.chapters.c01_history.glimpse import retina
from lesson_lib.chapters.c01_history.glimpses_explorer import GlimpseExplorer
from lesson_lib.course import *
from lesson_lib.training import stored

warm_up()

# %% [markdown]
r"""
Here is a canvas of 24 by 24 pixels, and what one look at its middle brings. `retina` cuts it out, as an eye does: a sharp square of 8 by 8 pixels, and around it a square of 16 by 16, blurred, since each 2 by 2 pixels become one.
"""

# %%
batch = glimpse.held_out("test")
canvas, middle = batch.canvas[:1], torch.zeros(1, 2, device=batch.canvas.device)
sharp, dim = retina(canvas, middle, size=8, n_scales=2)[0]
figures.one_look(canvas[0], sharp, dim)

# %% [markdown]
r"""
The model never sees the canvas whole. Its sharp square is empty, and the blurred one has a hint at its edge: look there next. How could it learn this?

## 1 · Hard and soft

Let three places hold the numbers 10, 20 and 40, with the weights 0.1, 0.2 and 0.7. **Soft attention** mixes them: $0.1 \cdot 10 + 0.2 \cdot 20 + 0.7 \cdot 40 = 33$. **Hard attention** draws *one* place, with the weights as probabilities, and takes what is there.
"""

# %%
predict("how_often_33")

# %%
weights, values = torch.tensor([0.1, 0.2, 0.7]), torch.tensor([10.0, 20.0, 40.0])
generator = torch.Generator().manual_seed(0)
# multinomial draws the numbers 0, 1, 2 with these probabilities
drawn = values[torch.multinomial(weights, 100_000, replacement=True, generator=generator)]
print(f"soft {weights @ values:.0f}, hard {drawn.unique().tolist()}, their mean {drawn.mean():.1f}")

# %% [markdown]
r"""
No draw is 33, but the mean of the draws is «33.0». Can gradient descent train the weights? For the mixture, yes: change a weight a little, and the mixture changes a little. But the place that was drawn stays the same, or jumps to another one. A jump has no slope.

## 2 · Learn from a reward

Place $a$ is drawn with probability $\pi_a$, and then earns the reward $r_a$. What should grow is the expected reward, $\sum_a \pi_a r_a$. This number does have a slope in each parameter $\theta$ of the probabilities. But all that you hear is the reward of the place that you drew, so you cannot compute the sum. Is there a way round? Since $\frac{d\pi}{d\theta} = \pi\,\frac{d\log\pi}{d\theta}$, the slope is

$$\frac{d}{d\theta} \sum_a \pi_a r_a = \sum_a \pi_a \Big( r_a \frac{d \log \pi_a}{d\theta} \Big)$$

The right side is the mean of the bracket over draws. So draw once, and take the bracket as an **estimate** of the slope (REINFORCE, Williams 1992). An example: you look left with probability $p = 0.2$, else right; left earns 1, right 0. The expected reward is $p$, so its true slope in $p$ is 1.
"""

# %%
predict("estimate_left")

# %% [markdown]
r"""
The estimate is 5 or 0: right on average, and never right. Can the noise be less? Subtract a number $b$ from every reward, a **baseline**. If $b$ does not depend on the draw, it adds $-b \sum_a \frac{d\pi_a}{d\theta} = -b\,\frac{d}{d\theta} 1 = 0$ to the mean, since probabilities sum to 1. So the mean stays. And the noise?
"""

# %%
p = 0.2
for baseline in (0.0, 0.2):
    # d log p / dp = 1 / p for left, and d log (1 - p) / dp = -1 / (1 - p) for right
    left, right = (1 - baseline) / p, (0 - baseline) * -1 / (1 - p) + 0.0
    mean = p * left + (1 - p) * right
    variance = p * (left - mean) ** 2 + (1 - p) * (right - mean) ** 2
    print(f"baseline {baseline}: {left:.2f} or {right:.2f}, mean {mean:.2f}, variance {variance:.2f}")

# %% [markdown]
r"""
With the expected reward as a baseline the variance falls from «4.00» to «2.25». Before you go on, try 0.8 and 2. With 0.8 both estimates are 1, and no noise is left; but 0.8 fits only this example, and a mean of past rewards can be had anywhere. With 2 the variance is 9: a bad baseline adds noise. None of them changes the mean.

An eye has more than two places. So let our model name a point, the *mean*, and let it look near this point while it learns: each coordinate of the place is drawn from a normal distribution about the mean, with standard deviation $\sigma$. The formula for the slope holds for such a density $p$ as well, with an integral in place of the sum, and $\log p(\text{place}) = -\frac{(\text{place} - \text{mean})^2}{2\sigma^2}$ for each coordinate, apart from a constant.
"""

# %% [markdown] tags=["exercise:nudge"]
# Write the estimate of the slope of the expected reward in the mean. `place` and `mean` are (n, 2), an $x$ and a $y$ for each of n looks; `std` is $\sigma$; `reward` and `baseline` are (n,).

# %% [markdown]
r"""
Your estimate says: if a draw was better than expected, move the mean towards it. Does this find anything? Hide a spot on a canvas whose edges are −1 and 1. A look within 0.3 of it earns 1, all others 0. The mean starts in the middle and follows your estimate; the baseline is the mean reward of the step before:
"""

# %%
spot, sigma = torch.tensor([0.6, -0.3]), 0.3
mean, expected = torch.zeros(2), torch.tensor(0.0)
generator = torch.Generator().manual_seed(0)
for step in range(121):
    places = mean + sigma * torch.randn(256, 2, generator=generator)  # 256 looks
    rewards = ((places - spot).norm(dim=-1) < 0.3).float()
    if step % 30 == 0:
        print(f"step {step:3}: mean ({mean[0]:.2f}, {mean[1]:.2f}), reward {rewards.mean():.2f}")
    slopes = yours("nudge")(places, mean.expand(256, 2), sigma, rewards, expected.expand(256))
    mean, expected = mean + 0.02 * slopes.mean(0), rewards.mean()

# %% [markdown]
r"""
The mean comes to the spot, from "good" and "not good" alone. Nobody told it a direction. (The reward does not become 1, since the looks still scatter: even with the mean on the spot only about 4 in 10 hit.) Start far away, at $(-1, 1)$, and nothing is learned for long: where no look hits, all rewards are 0, and so are all estimates.

## 3 · A model that looks

A network has thousands of numbers, and autograd should find the estimate for each. So we need a loss: a number whose gradient is minus the estimate. What decides where to look is called a **policy**; let us call the loss `policy_loss`.
"""

# %% [markdown] tags=["exercise:policy_loss"]
# Write this loss. `log_p` (b, looks) are the log probabilities of what was drawn, and carry the gradient; `reward` and `expected`, the baseline, (b, looks), carry none. Return the mean over all.

# %% [markdown]
r"""
For the last 256 looks, autograd must find what your `nudge` finds:
"""

# %%
about = mean.clone().requires_grad_()
log_p = Normal(about, sigma).log_prob(places).sum(-1)  # x and y are drawn apart: logs add
yours("policy_loss")(log_p[:, None], rewards[:, None], expected.expand(256, 1)).backward()
by_hand = yours("nudge")(
    places, mean.expand(256, 2), sigma, rewards, expected.expand(256)
).mean(0)
show(by_autograd=-about.grad, by_hand=by_hand)

# %% [markdown]
r"""
The same numbers. With this loss, here is the **recurrent attention model** (Mnih et al. 2014), in miniature. Its `state` (b, 128), for b canvases, starts at 0; `update` is one step of a recurrent network (01a). `see` is a small network that reads the two squares and the place; `locate`, `expect` and `classify` are linear layers that read the state. (`x.detach()` is x without its slope: nothing behind it learns from here.)

```python
place = zeros(b, 2)  # the first look: the middle
for look in range(4):
    state = update(see(canvas, place), state)
    if look < 3:  # choose the next place
        expected.append(expect(state.detach()))  # baseline
        mean = 2 / 3 * tanh(locate(state))  # inside the edges
        near = Normal(mean, 0.3)
        place = near.sample()  # numbers, without a slope
        log_p.append(near.log_prob(place).sum(-1))
guess = classify(state)
reward = right(guess, label)  # 1 or 0, for all three draws
loss = (cross_entropy(guess, label)
        + policy_loss(log_p, reward, expected.detach())
        + ((expected - reward) ** 2).mean())  # the baseline's
```

What a digit looks like, it learns from labels, as always. Where to look, it learns from the reward, since no slope passes through `sample`. All three draws led to the guess. Their probabilities multiply, so their logarithms add, and each is multiplied by the one reward. A baseline may depend on all that was known before its draw, since for this draw it is then a fixed number. After training the place is the mean itself, without noise.
"""

# %%
with stored():  # it was trained before, 1,000 steps of 256 canvases
    ram, _ = glimpse.train("learned", lr=6e-3, steps=1000)
looked, shown = glimpse.seen(ram, "test")
guesses = looked.probabilities()[:, -1].argmax(-1)  # after the fourth look
print(f"right on new canvases: {(guesses == shown.label).float().mean():.2f}")
print("pixels from digit to look:", [round(x, 1) for x in glimpse.pixels_off(ram, "test")])

# %% [markdown]
r"""
It is right on «0.94» of the canvases; guessing has 0.10. Step through its looks (solid: sharp; dashed: blurred). Where does the second look go?
"""

# %%
GlimpseExplorer(
    shown.canvas[:6], looked.places[:6], looked.probabilities()[:6], shown.label[:6]
)

# %% [markdown]
r"""
The second look jumps towards the digit: on average from «6.5» pixels off its middle to «3.5». The later ones are a little farther off, «4.5» and «4.8»; step through, and judge what they add.

## 4 · Was it worth learning?

Train all anew, for 1,200 steps, and change nothing but who moves the eye.
"""

# %%
predict("who_moves_the_eye")

# %%
figures.stored_policies()

# %% [markdown]
r"""
Each dot is a seed. Medians of three seeds: learned places .93, random places .78, always the centre .66 (whose blurred square often shows a part of the digit). The other rows are for comparison: told where the digit is, the model has .99; a fully connected network and a convolution (chapter 07) that see the whole canvas have .95 and .98. So this small canvas can be read without looking about. The idea is meant for pictures too large for that, and we tried none.

**"Learned places beat random ones."** These runs saw 307,200 canvases, 256 at a time for 1,200 steps. Now train with 20 at a time for 3,000 steps, which is 60,000 canvases.
"""

# %%
predict("small_batches")

# %%
figures.stored_small_batches()

# %% [markdown]
r"""
The third and fourth row: learned places have .34, and random ones .51. So learned places are *worse* than random ones. **"Batches of 20 are too small for so noisy an estimate."** So we thought, until we trained longer. The last two rows have batches of 20 as well, and 15,360 steps, so as many canvases as the large batches: now learned places reach .96, and random ones .86. Both beat the large batches: as many canvases make nearly thirteen times as many steps. So "they cannot" was wrong, and "not yet" was right (01b). We suspect that the noise must first average out over many steps.

## In real work

Chat models are tuned with relatives of this loss: the draw is a written answer, and the reward its mark. Whoever draws from a normal distribution meets a trap in torch, which has two ways to draw. `sample` returns a number. `rsample` returns mean + $\sigma$ · noise, and keeps the link to the mean:
"""

# %%
predict("which_sample")

# %%
for draw in ("sample", "rsample"):
    mean = torch.zeros(1000, requires_grad=True)
    near = Normal(mean, 0.3)
    _ = torch.manual_seed(0)
    place = getattr(near, draw)()  # near.sample() or near.rsample()
    reward = (place.detach() > 0).float()  # right of 0 earns 1
    (near.log_prob(place) * reward).sum().backward()
    print(f"{draw:8} mean of the estimates {mean.grad.mean():.2f}")

# %% [markdown]
r"""
The expected reward is the probability to land right of 0. Its true slope in the mean is the density at 0, $\frac{1}{\sigma\sqrt{2\pi}} = 1.33$, and `sample` comes near it with 1,000 draws, «1.40». **"rsample is sample with a gradient, so it is safer."** Its estimates are «0.00», without an error: nothing would be learned.

## The canvas once more

Labels taught it what digits look like. Where to look, it learned from one bit for each canvas: whether the guess was right. It took hundreds of thousands of canvases. A mixture over all places would have had a slope from the start: that is part [02a](02a_soft_look_up.ipynb).

**To remember.** A choice has no slope; reward times the slope of its log probability has the right mean, and much noise.

- Soft attention mixes, hard attention draws; on average their outputs agree.
- A baseline that does not depend on the draw keeps the mean; a good one takes noise away.
- Learned places beat random ones, but only after much training.
- `sample`, not `rsample`, under a log probability.

**Sources.** Williams 1992 (REINFORCE); Mnih, Heess, Graves & Kavukcuoglu 2014 (arXiv:1406.6247). The paper's own choices, the timeline: [evidence](evidence/01_history_evidence.ipynb).

**Next**: [02a · A soft look-up](02a_soft_look_up.ipynb): how much do I listen to each of three answers?
"""
