"""Phonemes over radii: what is drawn, how it is judged, and how its rates were chosen."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from lesson_lib.chapters.c09_truncated_attention import speech
from lesson_lib.chapters.c09_truncated_attention.experiments import phonemes
from lesson_lib.chapters.c09_truncated_attention.phonemes import FILLER, PhonemeRecogniser
from lesson_lib.chapters.c09_truncated_attention.speech import N_MELS, Utterance
from lesson_lib.device import to_device
from lesson_lib.experiments import results

NAMES = ("_", "aɪ", "tʃ", "n̩", "s", "l")


class Reads(PhonemeRecogniser):
    """Names the label that stands in a frame's first number, moved on by `wrong`, and is sure of it."""

    def __init__(self, wrong=0):
        nn.Module.__init__(self)
        self.wrong = wrong

    def forward(self, frames, *, mask=None):
        label = (frames[..., 0].long() + self.wrong) % len(NAMES)
        return 1000.0 * nn.functional.one_hot(label, len(NAMES))


def utterance(labels):
    labels = torch.tensor(labels, device="cpu")
    frames = torch.zeros(len(labels), N_MELS, device="cpu")
    frames[:, 0] = labels
    return Utterance(frames, labels, text="so", voice="m1")


@pytest.fixture
def tiny(monkeypatch):
    """Splits of a few frames, whose first number is the label."""
    splits = {
        "training": [utterance([0, 0, 1, 1, 1, 2])] * 3 + [utterance([0, 4, 4, 4, 4])],
        "validation": [utterance([0, 1, 2, 3, 4, 5])],
        "test": [utterance([0, 0, 4, 1]), utterance([0] * 5 + [4, 2, 2, 3, 5, 1])],
    }
    monkeypatch.setattr(speech, "load", splits.__getitem__)
    monkeypatch.setattr(speech, "LABELS", NAMES, raising=False)
    for name, value in {"d_model": 6, "n_heads": 3, "batch": 2, "steps": 5, "every": 2}.items():
        monkeypatch.setitem(phonemes.RECIPE, name, value)
    phonemes._padded.cache_clear()
    yield splits
    phonemes._padded.cache_clear()


def test_batches_are_whole_utterances_each_once(tiny):
    some, generator = phonemes.batches(tiny["training"][2:]), torch.Generator("cpu").manual_seed(0)
    for _ in range(3):
        frames, labels, mask = some(generator)
        assert frames.shape == (2, 6, N_MELS)
        assert sorted(labels.tolist()) == [[0, 0, 1, 1, 1, 2], [0, 4, 4, 4, 4, FILLER]]
        assert_close(frames[..., 0], labels.clamp_min(0).float())
        assert sorted(mask.sum(-1).flatten().tolist()) == [5, 6]


def test_accuracy_counts_frames_with_and_without_silence(tiny):
    class Silent(Reads):
        """Says silence of every s, and is right elsewhere."""

        def forward(self, frames, *, mask=None):
            return super().forward(torch.where(frames == 4, 0.0, frames))

    assert phonemes.accuracy(Reads()) == (1, 1) and phonemes.accuracy(Reads(1)) == (0, 0)
    assert phonemes.accuracy(Silent()) == pytest.approx((13 / 15, 6 / 8))
    assert phonemes.accuracy(Silent(), "validation") == pytest.approx((5 / 6, 4 / 5))


def test_accuracy_of_each_kind(tiny):
    class Confuses(Reads):
        def forward(self, frames, *, mask=None):
            return super().forward(torch.where(frames == 1, 2.0, frames))

    found = phonemes.by_kind(Confuses())
    assert found == {"silence": 1, "vowel": 0, "stop": 1, "fricative": 1, "nasal": 1, "approximant": 1}


@pytest.mark.parametrize("name, kind", [
    ("_", "silence"), ("aɪɚ", "vowel"), ("əl", "vowel"), ("tʃ", "stop"), ("ð", "fricative"), ("n̩", "nasal"),
    ("ɾ", "approximant"),
])  # fmt: skip
def test_the_kind_of_a_sound(name, kind):
    assert phonemes.kind_of(name) == kind


def test_loss_is_the_mean_over_frames_not_over_batches(tiny):
    class Half(Reads):
        """Two labels for equally likely where it is silent; sure and right elsewhere."""

        def forward(self, frames, *, mask=None):
            logits = super().forward(frames)
            logits[..., 1] = torch.where(frames[..., 0] == 0, 1000.0, logits[..., 1])
            return logits

    assert phonemes.mean_loss(Half(), "test") == pytest.approx(7 / 15 * 0.6931472)
    assert phonemes.mean_loss(Half(), "training") == pytest.approx(7 / 23 * 0.6931472)


def test_the_guess_is_the_most_frequent_label_of_the_training(tiny):
    label, (frames, spoken) = phonemes.guess()  # 9 times aɪ in training, and twice among 15 test frames
    assert label == "aɪ" and frames == pytest.approx(2 / 15) and spoken == pytest.approx(2 / 8)


def test_near_is_the_share_of_weights_in_reach():
    model = to_device(PhonemeRecogniser(5, radius=None, d_model=6, n_heads=3)).eval()
    for layer in model.encoder.layers:
        nn.init.zeros_(layer.attention.w_query.weight)  # all frames alike
    wanted = []
    for one in speech.load("validation")[:2]:
        n = len(one.labels)
        wanted.append(sum(min(n, i + 4) - max(0, i - 3) for i in range(n)) / n**2)
    assert phonemes.near(model, 3, count=2) == pytest.approx([sum(wanted) / 2] * 2, rel=1e-4)
    truncated = to_device(PhonemeRecogniser(5, radius=3, d_model=6, n_heads=3)).eval()
    assert phonemes.near(truncated, 3, count=2) == pytest.approx([1, 1])


def test_training_is_the_same_twice_and_leaves_the_test_alone(tiny, monkeypatch):
    rates = []
    fit = phonemes.fit

    def noted(*args, **options):
        rates.append(options["lr"])
        return fit(*args, **options)

    monkeypatch.setattr(phonemes, "fit", noted)
    tiny["test"] = None  # it is not looked at
    a, b, c = (phonemes.train(5, seed, lr=lr)[0] for seed, lr in ((0, None), (0, None), (1, 7e-3)))
    assert_close(a.state_dict(), b.state_dict(), rtol=0, atol=0)
    assert not torch.equal(a.name.weight, c.name.weight)
    assert rates == [phonemes.RECIPE["lr"]["5"]] * 2 + [7e-3]


@pytest.mark.parametrize("radius", [1, True, "full"])
def test_another_radius_gets_a_sentence(no_shape_hook, radius):
    with pytest.raises(ValueError, match="radius must be one of 0, 2, 5, 15, 50, None, got"):
        phonemes.train(radius)


def test_a_row_holds_what_was_measured(tiny):
    row = phonemes.point("layer", 2, 1, 5, 1e-3, 0)
    model, history = phonemes.train(2, 0, n_layers=1, lr=1e-3)
    assert (row["kind"], row["radius"], row["n_layers"], row["lr"], row["seed"]) == ("layer", 2, 1, 1e-3, 0)
    assert row["accuracy"] == round(phonemes.accuracy(model).frames, 4)
    assert row["accuracy_validation"] == round(max(history.column("score")), 4)
    assert row["steps"] == 5 and row["best_step"] in (2, 4, 5)
    assert [step for step, _, _ in row["curve"]] == [2, 4, 5]
    assert [at for step, _, at in row["curve"] if step == row["best_step"]] == [row["accuracy_validation"]]
    assert row["parameters"] == sum(p.numel() for p in model.parameters()) and len(row["near"]) == 1


def test_where_accuracy_saturates_and_the_first_look_with_that_loss():
    """The mean over seeds counts; the smallest radius within a point of the best, other kinds aside."""
    at = {
        0: (0.5, 0.6), 2: (0.7, 0.7), 5: (0.79, 0.798), 15: (0.80, 0.80), 50: (0.81, 0.77), None: (0.7, 0.7),
    }  # fmt: skip
    rows = [{"kind": "point", "radius": r, "accuracy": one} for r, both in at.items() for one in both]
    rows += [{"kind": "layer", "radius": r, "accuracy": 1.0 if r is None else 0.2} for r in at]
    assert phonemes.saturates(rows) == 5 and phonemes.saturates(rows, kind="layer") is None
    curve = [[50, 2.0, 0.3], [100, 1.0, 0.5], [150, 0.9, 0.4], [200, 1.1, 0.6]]
    rows = [{"kind": kind, "radius": 5, "curve": curve} for kind in ("point", "rate", "layer")]
    rows.append({"kind": "point", "radius": 5, "curve": [[50, 0.7, 0.45]]})
    rows.append({"kind": "point", "radius": 0, "curve": [[50, 3.0, 0.1]]})
    found = phonemes.matched(rows, 1.0)
    assert found[5] == [0.5, 0.45] and found[0] == [] and list(found) == list(phonemes.RADII)


def stored(name="accuracy", *, kind="point", **wanted):
    """A column of the stored rows of that kind, seed by seed."""
    wanted = {"kind": kind} | wanted
    rows = [
        row
        for row in results("phonemes")["rows"]
        if all(row.get(key) == value for key, value in wanted.items())
    ]
    assert rows
    return [row[name] for row in rows]


def mean(numbers):
    return sum(numbers) / len(numbers)


def test_the_rates_are_the_best_on_validation_and_none_is_the_last_of_its_row():
    rates = phonemes.RECIPE["rates"]
    for radius in phonemes.RADII:
        scores = {}
        for row in results("phonemes")["rows"]:
            if row["kind"] in ("shorter", "rate") and row["seed"] == 0 and row["radius"] == radius:
                scores[row["lr"]] = row["accuracy_validation"]
        assert sorted(scores) == rates
        best = max(scores, key=scores.get)
        assert phonemes.RECIPE["lr"][phonemes._name(radius)] == best and best in rates[1:-1]
