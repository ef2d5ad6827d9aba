"""Canvases of twins, agreement and Frechet distance against references."""

import math

import pytest
import scipy.linalg
import torch

from lesson_lib.chapters.c07_attention_vs_cnn.experiments import sagan as experiment
from lesson_lib.data import digits


@pytest.fixture
def few(monkeypatch):
    """Few canvases are judged, by a classifier of few steps."""
    monkeypatch.setitem(experiment.RECIPE, "judged", 60)
    monkeypatch.setitem(experiment.RECIPE, "classifier", experiment.RECIPE["classifier"] | {"steps": 30})
    for cached in (experiment.classifier, experiment.real):
        cached.cache_clear()
    yield
    for cached in (experiment.classifier, experiment.real):
        cached.cache_clear()


def test_a_canvas_holds_two_different_pictures_of_one_digit_of_its_split():
    images, labels = digits.pictures("test")
    canvas, label = experiment.draw("test", 41, torch.Generator().manual_seed(3))
    assert canvas.shape == (41, 8, 24) and canvas[..., 8:16].abs().max() == 0
    for one, digit in zip(canvas, label, strict=True):
        found = [
            {k for k, image in enumerate(images) if torch.equal(image, half)}
            for half in (one[:, :8], one[:, 16:])
        ]
        assert found[0] and found[1] and not found[0] & found[1]
        assert all(labels[k] == digit for k in found[0] | found[1])
    assert set(label.tolist()) == set(experiment.RECIPE["digits"])
    assert torch.equal(canvas, experiment.draw("test", 41, torch.Generator().manual_seed(3)).canvas)


def test_halves_are_all_left_ones_then_all_right_ones():
    canvas = torch.rand(3, 8, 24)
    cut = experiment.halves(canvas)
    assert torch.equal(cut[1], canvas[1, :, :8]) and torch.equal(cut[3 + 1], canvas[1, :, 16:])


def test_agreement_by_hand():
    told = experiment.agreement(torch.tensor([[1, 1, 2, 3], [1, 2, 2, 2]]))
    chance = 2 / 4 * 1 / 4 + 1 / 4 * 3 / 4
    assert told == {"agreement": 0.5, "chance": chance, "kappa": pytest.approx((0.5 - chance) / (1 - chance))}
    assert experiment.agreement(torch.full((2, 7), 4)) == {"agreement": 1.0, "chance": 1.0, "kappa": 0.0}


def test_frechet_is_scipys_and_by_hand_in_one_dimension():
    one = torch.randn(101, 5, device="cpu")
    other = torch.randn(97, 5, device="cpu") @ torch.randn(5, 5, device="cpu") + 1
    S, T = (x.double().T.cov().numpy() for x in (one, other))
    root = scipy.linalg.sqrtm(S @ T).real
    means = (one.double().mean(0) - other.double().mean(0)).square().sum().item()
    assert experiment.frechet(one, other) == pytest.approx(means + (S + T - 2 * root).trace(), rel=1e-6)
    assert experiment.frechet(one, one) == pytest.approx(0, abs=1e-9)
    a, b = torch.tensor([[0.0], [2.0]], device="cpu"), torch.tensor([[5.0], [11.0]], device="cpu")
    assert experiment.frechet(a, b) == pytest.approx((8 - 1) ** 2 + (math.sqrt(2) - math.sqrt(18)) ** 2)
    flat = torch.zeros(7, 5, device="cpu")  # no spread at all: only the means differ
    assert experiment.frechet(flat, flat + 2) == pytest.approx(5 * 4)


def test_wrong_arguments_get_a_sentence(few):
    with pytest.raises(ValueError, match="at least 2 rows on either side, got 1 and 3"):
        experiment.frechet(torch.zeros(1, 2, device="cpu"), torch.zeros(3, 2, device="cpu"))
    with pytest.raises(ValueError, match="noises must be one of own, shared, got 'none'"):
        experiment.train("nothing", "none", steps=1)
    with pytest.raises(ValueError, match="middle must be one of nothing, attention"):
        experiment.train("none", steps=1)


def test_a_turn_leaves_the_other_network_alone(few):
    gan = experiment.make("nothing")
    optimizers = {
        name: torch.optim.SGD(network.parameters(), lr=0.0) for name, network in gan._asdict().items()
    }
    before = {k: v.clone() for k, v in gan.generator.named_parameters()}
    told = experiment._turn(gan, optimizers, torch.Generator().manual_seed(0), "own")
    assert set(told) == {"discriminator", "generator"}
    assert all(torch.equal(before[k], v) for k, v in gan.generator.named_parameters())
    assert all(p.requires_grad for p in gan.discriminator.parameters())
    assert all(p.grad is not None for network in gan for p in network.parameters())


def test_stopping_keeps_what_was_learned(few, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(experiment, "_turn", stop)
    _, history = experiment.train("nothing", steps=3)
    assert history.ended.startswith("interrupted") and len(history.rows) == 1


def system(middle, seed, reports):
    return {"kind": "system", "noises": "own", "middle": middle, "seed": seed,
            "reports": [{"step": k, "kappa": v, "cpu_s": t} for k, v, t in reports]}  # fmt: skip


def test_equal_steps_and_equal_time_are_read_from_the_reports():
    rows = [
        {"kind": "real", "seed": 0},
        system("nothing", 0, [(0, 0.0, 0.0), (5, 0.1, 3.0), (10, 0.2, 6.0)]),
        system("attention", 0, [(0, 0.0, 0.0), (5, 0.5, 4.0), (10, 0.9, 8.0)]),
    ]
    assert experiment.at_the_end(rows, "kappa") == {("own", "nothing"): [0.2], ("own", "attention"): [0.9]}
    assert experiment.at_equal_time(rows, "kappa") == {("own", "nothing"): [0.2], ("own", "attention"): [0.5]}
    assert experiment.curves(rows, "kappa", "own", "nothing") == [[(0, 0.0), (5, 0.1), (10, 0.2)]]
