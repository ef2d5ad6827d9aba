"""Looking: crops to the pixel, policies that differ in nothing else, REINFORCE right on average."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from lesson_lib.chapters.c01_history.experiments import glimpse as experiment
from lesson_lib.chapters.c01_history.glimpse import (
    POLICIES,
    REACH,
    Glimpser,
    Glimpses,
    Rectifier,
    first_pixel,
    glimpse,
    look,
    loss,
    reinforce,
    retina,
    rewards,
    right,
)
from lesson_lib.data import digits
from lesson_lib.device import to_device

B, HEIGHT, WIDTH = 5, 7, 11


def batch(count=7, size=24, split="training", seed=0):
    return to_device(digits.draw(split, count, torch.Generator().manual_seed(seed), size=size))


def by_slicing(canvas, place, size):
    """The crop as one would write it for one canvas: surround with zeros, round, slice."""
    (height, width), (x, y) = canvas.shape, place.tolist()
    wide = F.pad(canvas, (size, size, size, size))
    left = math.floor((x + 1) / 2 * width - size / 2 + 0.5) + size
    top = math.floor((y + 1) / 2 * height - size / 2 + 0.5) + size
    return wide[top : top + size, left : left + size]


def test_a_crop_equals_slicing_anywhere():
    canvas, place = torch.rand(B, HEIGHT, WIDTH), 2 * torch.rand(B, 2) - 1
    for size in (1, 2, 3, 4, 13, 26):
        expected = torch.stack([by_slicing(c, p, size) for c, p in zip(canvas, place, strict=True)])
        assert torch.equal(glimpse(canvas, place, size), expected)


@pytest.mark.parametrize("size", [3, 4])
def test_at_whole_pixels_a_crop_equals_torchs_sampling(size):
    """The same convention as grid_sample with align_corners=False: edges at -1 and 1."""
    canvas = torch.rand(B, HEIGHT, WIDTH)
    pixel = torch.stack([torch.randint(0, side - size + 1, (B,)) for side in (WIDTH, HEIGHT)], 1)
    place = (2 * pixel + size) / torch.tensor([WIDTH, HEIGHT]) - 1
    steps = (2 * torch.arange(size) + 1 - size).float()
    rows, columns = torch.meshgrid(steps / HEIGHT, steps / WIDTH, indexing="ij")
    grid = torch.stack([columns, rows], -1) + place[:, None, None]
    theirs = F.grid_sample(canvas[:, None], grid, align_corners=False)[:, 0]
    assert_close(glimpse(canvas, place, size), theirs, atol=1e-5, rtol=1e-5)
    assert torch.equal(first_pixel(place, (HEIGHT, WIDTH), size), pixel)


def test_a_crop_moves_in_jumps_and_has_no_gradient():
    canvas = torch.rand(1, 8, 8, requires_grad=True)
    place = torch.zeros(1, 2, requires_grad=True)
    patch = glimpse(canvas, place, 4)
    patch.sum().backward()
    assert place.grad is None and canvas.grad.sum() == 16
    for shift, same in ((0.12, True), (0.13, False)):  # half a pixel is 1/8
        assert torch.equal(glimpse(canvas, torch.tensor([[shift, 0.0]]), 4), patch) == same


def test_the_retina_is_sharp_in_the_middle_and_coarse_around():
    canvas, place = torch.rand(B, 24, 24), 1.2 * torch.rand(B, 2) - 0.6
    seen = retina(canvas, place, 6, 3)
    assert seen.shape == (B, 3, 6, 6)
    assert torch.equal(seen[:, 0], glimpse(canvas, place, 6))
    wide = glimpse(canvas, place, 24)
    assert_close(seen[:, 2, 1, 4], wide[:, 4:8, 16:20].mean((1, 2)))
    assert_close(seen[:, 1], F.avg_pool2d(glimpse(canvas, place, 12), 2))


X = torch.rand(B, 9, 9)


@pytest.mark.parametrize("call, error, said", [
    (lambda: glimpse(None, torch.zeros(B, 2), 3), TypeError, "canvas must be a tensor"),
    (lambda: glimpse(X, torch.full((B, 2), 1.5), 3), ValueError, r"got 1.5 to 1.5; use place.clamp"),
    (lambda: Glimpser(n_glimpses=0), ValueError, "n_glimpses must be at least 1, got 0"),
    (lambda: experiment.whole("vit"), ValueError, "kind must be one of fully connected, convolution"),
])  # fmt: skip
def test_bad_input_is_answered_with_a_sentence(no_shape_hook, call, error, said):
    with pytest.raises(error, match=said):
        call()


@pytest.mark.parametrize("policy", POLICIES)
def test_policies_share_everything_but_the_places(policy):
    torch.manual_seed(0)
    model = Glimpser(policy)
    torch.manual_seed(0)
    learned = Glimpser("learned")
    assert all(
        torch.equal(a, b)
        for a, b in zip(model.state_dict().values(), learned.state_dict().values(), strict=True)
    )
    given = batch()
    middle = digits.centre(given.corner, 24)
    looked = model.eval()(given.canvas, middle)
    assert looked.logits.shape == (7, 4, 10) and looked.places.shape == (7, 4, 2)
    assert looked.log_density.shape == looked.expected.shape == (7, 3)
    assert_close(looked.probabilities().sum(-1), torch.ones(7, 4))
    assert torch.equal(looked.places[:, 0], torch.zeros(7, 2))
    expected = {"told": middle, "centre": torch.zeros(7, 2)}.get(policy)
    for t in (1, 2, 3):
        assert expected is None or torch.equal(looked.places[:, t], expected)
    assert looked.places.abs().max() <= REACH + 1e-6


def test_random_places_fill_the_reach_and_follow_their_generator():
    model, given = Glimpser("random"), batch(400)
    looked = look(model, given, generator=torch.Generator().manual_seed(1))
    places = looked.places[:, 1:]
    assert REACH - 0.01 < places.abs().max() <= REACH and places.mean().abs() < 0.05
    assert torch.equal(look(model, given, generator=torch.Generator().manual_seed(1)).places, looked.places)
    anywhere = look(Glimpser("centre", start="random"), given).places
    assert anywhere[:, 0].std() > 0.3 and anywhere[:, 1:].abs().max() == 0


def test_the_eye_explores_while_it_trains_and_goes_to_the_mean_afterwards():
    model, given = to_device(Glimpser(std=0.1)), batch(1000)
    still = model.eval()(given.canvas).places
    assert torch.equal(still, model(given.canvas).places)
    wander = model.train()(given.canvas)
    assert (wander.places[:, 1] - still[:, 1]).std().item() == pytest.approx(0.1, rel=0.1)
    off = (wander.places[:, 1] - still[:, 1]).square().sum(-1)
    assert_close(wander.log_density[:, 0], -off / (2 * 0.1**2), atol=1e-3, rtol=1e-3)


def test_the_papers_core_by_hand():
    core = Rectifier(2)
    with torch.no_grad():
        core.remember.weight.copy_(torch.tensor([[1.0, 2.0], [0.0, -1.0]]))
        core.remember.bias.zero_()
    assert core(torch.tensor([[0.5, 0.5]]), torch.tensor([[1.0, 3.0]])).tolist() == [[7.5, 0.0]]


def test_two_places_by_hand():
    """Place A has probability 1/2 and reward 0.9, B 0.5; with theta in a sigmoid the gradient of the mean
    reward is 1/4 · 0.4."""
    theta = torch.zeros((), requires_grad=True)
    log_density = torch.stack([F.logsigmoid(theta), F.logsigmoid(-theta)])[:, None]
    reward = torch.tensor([[0.9], [0.5]])
    for expected, samples in ((0.0, [0.45, -0.25]), (0.7, [0.1, 0.1])):  # the mean is 0.1 both times
        each = [
            -torch.autograd.grad(reinforce(log_density[k : k + 1], reward[k : k + 1], expected), theta,
            retain_graph=True)[0].item()
            for k in (0, 1)
        ]  # fmt: skip
        assert each == pytest.approx(samples) and sum(each) / 2 == pytest.approx(0.1)


def test_reinforce_is_right_on_average_and_a_baseline_only_calms_it():
    """Reward -(x - 1)² with x normal about m, deviation s: the mean reward is -(m - 1)² - s², its gradient
    -2(m - 1)."""
    mean, std, count = torch.tensor(0.2, requires_grad=True), 0.5, 200_000
    place = mean.detach() + std * torch.randn(count, 1)
    reward = -((place - 1) ** 2)
    spreads = []
    for expected in (0.0, -(0.8**2) - std**2):
        density = -((place - mean) ** 2) / (2 * std**2)
        gradient = -torch.autograd.grad(reinforce(density, reward, expected), mean)[0]
        assert gradient.item() == pytest.approx(1.6, abs=0.05)
        spreads.append(((reward - expected) * (place - 0.2) / std**2).std().item())
    assert spreads[1] < spreads[0]


def test_the_baseline_learns_from_the_reward_only():
    model, given = to_device(Glimpser()), batch(31)
    looked = model(given.canvas)
    earned = rewards(looked, given.label)
    reinforce(looked.log_density, earned, looked.expected).backward(retain_graph=True)
    assert model.expect.weight.grad is None and model.locate.weight.grad.abs().max() > 0
    model.zero_grad()
    F.mse_loss(looked.expected, earned).backward()
    assert model.expect.weight.grad.abs().max() > 0 and model.core.weight_hh.grad is None


@pytest.mark.parametrize("into_core", [True, False])
def test_the_policys_gradient_reaches_the_core_or_stops_before_it(into_core):
    model, given = to_device(Glimpser(into_core=into_core)), batch(31)
    looked = model(given.canvas)
    reinforce(looked.log_density, torch.rand_like(looked.log_density)).backward()
    assert (model.what.weight.grad is not None) == into_core
    assert model.locate.weight.grad.abs().max() > 0 and model.classify.weight.grad is None


def guesses(rows):
    """Glimpses with these guesses, one canvas a row; its right digit is 3 and a guess has probability .6."""
    logits = torch.full((len(rows), len(rows[0]), 10), math.log(0.4 / 9))
    for i, row in enumerate(rows):
        for t, guess in enumerate(row):
            logits[i, t, guess] = math.log(0.6)
    empty = torch.zeros(len(rows), len(rows[0]) - 1)
    return Glimpses(logits, torch.zeros(len(rows), len(rows[0]), 2), empty, empty)


def test_rewards_by_hand():
    looked, label = guesses([[3, 1, 3], [3, 3, 5]]), torch.tensor([3, 3])
    assert rewards(looked, label).tolist() == [[1, 1], [0, 0]]
    assert rewards(looked, label, at="each").tolist() == [[0, 1], [1, 0]]
    low = 0.4 / 9
    assert_close(rewards(looked, label, reward="probability"), torch.tensor([[0.6, 0.6], [low, low]]))
    assert_close(
        rewards(looked, label, reward="probability", at="each"), torch.tensor([[low, 0.6], [0.6, low]])
    )
    for options in ({"reward": "p"}, {"at": "last"}):
        with pytest.raises(ValueError, match="must be one of"):
            rewards(looked, label, **options)
    given = batch(2)._replace(label=label)
    assert right(looked, given).tolist() == [[True, False, True], [True, True, False]]


class Saying(torch.nn.Module):
    """A stand-in for a model: always looked like that."""

    policy, n_glimpses = "learned", 3

    def __init__(self, looked):
        super().__init__()
        self.looked = looked

    def forward(self, canvas, told):
        return self.looked


def test_the_loss_by_hand():
    looked = guesses([[3, 1, 3], [3, 3, 5]])._replace(
        log_density=torch.tensor([[-1.0, -2.0], [-3.0, -4.0]]), expected=torch.full((2, 2), 0.25)
    )
    given = batch(2)._replace(label=torch.tensor([3, 3]))
    good, bad = -math.log(0.6), -math.log(0.4 / 9)
    places = -(0.75 * -1 + 0.75 * -2 - 0.25 * -3 - 0.25 * -4) / 4
    squared = (2 * 0.75**2 + 2 * 0.25**2) / 4
    assert loss(Saying(looked), given).item() == pytest.approx((good + bad) / 2 + places + squared)
    every = loss(Saying(looked), given, every_glimpse=True).item()
    assert every == pytest.approx((4 * good + 2 * bad) / 6 + places + squared)
    without = loss(Saying(looked), given, baseline=False).item()
    assert without == pytest.approx((good + bad) / 2 + 3 / 4 + squared)
    for change in ({"policy": "random"}, {"n_glimpses": 1}):
        model = Saying(looked)
        for name, value in change.items():
            setattr(model, name, value)
        assert loss(model, given).item() == pytest.approx((good + bad) / 2)


@pytest.mark.parametrize("departure", [None, *experiment.RECIPE["departures"]])
def test_every_departure_trains(monkeypatch, departure):
    monkeypatch.setitem(experiment.RECIPE, "validation", 11)
    model, history = experiment.train(lr=1e-3, steps=2, departure=departure)
    assert history.rows[-1]["step"] == 2 and not model.training
    changed = experiment.RECIPE["departures"].get(departure, {})
    assert isinstance(model.core, Rectifier) == (changed.get("core") == "rectifier")
    assert model.into_core == changed.get("into_core", True) and model.start == changed.get("start", "centre")


def test_the_noise_of_the_gradient_is_that_of_repeated_backward_passes():
    model, given = to_device(Glimpser(n_glimpses=2)), batch(3)
    model.eval()
    found = experiment.gradient_noise(model, given, paths=17)
    assert not model.training
    generator, gradients = torch.Generator().manual_seed(0), []
    model.train()
    for _ in range(17):
        looked = model(given.canvas, generator=generator)
        model.zero_grad()
        reinforce(looked.log_density, rewards(looked, given.label), looked.expected).backward()
        gradients.append(torch.cat([model.locate.weight.grad.flatten(), model.locate.bias.grad]))
    table = torch.stack(gradients).double()
    assert found["noise"] == pytest.approx(table.var(0).sum().sqrt().item(), rel=1e-4)
    squared = table.mean(0).square().sum() - table.var(0).sum() / 17
    assert found["signal squared"] == pytest.approx(squared.item(), rel=1e-3)


@pytest.mark.parametrize("kind, parameters", [("fully connected", 216_074), ("convolution", 10_346)])
def test_networks_that_see_everything(monkeypatch, kind, parameters):
    monkeypatch.setitem(experiment.RECIPE, "validation", 11)
    model, history = experiment.train_whole(kind, lr=1e-3, steps=2)
    assert sum(p.numel() for p in model.parameters()) == parameters
    assert history.column("score")[-1] == pytest.approx(experiment.whole_accuracy(model, "validation"))
