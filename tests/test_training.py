"""The one training loop: it learns, it is repeatable, it stops when it should, and it survives being
stopped."""

import math
import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.optim.adam import adam

from lesson_lib import training
from lesson_lib.device import to_device
from lesson_lib.training import History, fit, stored, warmup


def line():
    """A line through noise-free points: y = 3x + 1; loss 0 is reachable."""
    torch.manual_seed(0)
    return nn.Linear(1, 1)


def draw(generator):
    x = torch.rand(16, 1, generator=generator, device="cpu")
    return x, 3 * x + 1


def loss(model, batch):
    x, y = batch
    return (model(x) - y).square().mean()


def slope_error(model):
    return -abs(model.weight.item() - 3)


def test_it_learns_and_reports_ten_rows():
    model = line()
    history = fit(model, draw, loss, steps=400, lr=0.1)
    assert history.column("step") == list(range(40, 401, 40))
    assert history.column("loss")[-1] < 1e-3 < history.column("loss")[0]
    assert model.weight.item() == pytest.approx(3, abs=0.1)
    assert not model.training


def test_the_same_seed_gives_the_same_numbers():
    one, two, other = (fit(line(), draw, loss, steps=20, seed_number=s).column("loss") for s in (1, 1, 2))
    assert one == two != other


def test_the_best_weights_on_the_validation_split_are_put_back():
    model, scores = line(), iter([0.1, 0.9, 0.3, 0.2])
    seen = []

    def validate(m):
        seen.append(m.weight.item())
        return next(scores)

    history = fit(model, draw, loss, steps=4, every=1, lr=0.1, validate=validate)
    assert model.weight.item() == seen[1]
    assert history.column("score") == [0.1, 0.9, 0.3, 0.2]


def test_patience_and_target_end_the_training():
    history = fit(line(), draw, loss, steps=100, every=1, validate=lambda m: 0.5, patience=3)
    assert history.column("step")[-1] == 4 and "no rise in 3 reports" in history.ended
    history = fit(line(), draw, loss, steps=2000, every=10, lr=0.1, validate=slope_error, stop_at=-0.1)
    assert history.column("step")[-1] < 2000 and "reached -0.1" in history.ended


def test_interrupting_keeps_the_history_and_the_model():
    calls = 0

    def stop_at_seven(model, batch):
        nonlocal calls
        calls += 1
        if calls == 7:
            raise KeyboardInterrupt
        return loss(model, batch)

    model = line()
    before = model.weight.item()
    history = fit(model, draw, stop_at_seven, steps=50, every=5)
    assert history.column("step") == [5] and "interrupted at step 5" in history.ended
    assert model.weight.item() != before


def test_clipping_bounds_a_step():
    model = line()
    grown = fit(model, draw, lambda m, b: 1e6 * loss(m, b), steps=1, lr=0.1, schedule="constant", clip=1e-12)
    assert abs(model.weight.grad.norm().item()) <= 1e-12
    assert math.isfinite(grown.column("loss")[0])


def test_quick_cuts_the_steps(monkeypatch):
    monkeypatch.setenv("LESSON_STEPS", "quick")
    assert fit(line(), draw, loss, steps=500).column("step")[-1] == 20


def test_nothing_is_written_when_the_bar_is_off(monkeypatch, capfd):
    monkeypatch.setenv("LESSON_PROGRESS", "off")
    fit(line(), draw, loss, steps=5)
    out, err = capfd.readouterr()
    assert out == err == ""


def test_the_bar_shows_by_default(monkeypatch, capfd):
    monkeypatch.delenv("LESSON_PROGRESS", raising=False)
    fit(line(), draw, loss, steps=5, name="a line")
    assert "a line" in capfd.readouterr().err


def test_history_reads_as_text_and_as_a_table():
    history = History([{"step": 5, "loss": 0.25, "cpu_s": 123.45}], ended="all steps done")
    assert "0.2500" in repr(history) and "123.5" in repr(history)
    assert (
        "<caption>all steps done</caption>" in history._repr_html_() and "<td>5</td>" in history._repr_html_()
    )
    with pytest.raises(KeyError, match="this history has step, loss, cpu_s"):
        history.column("accuracy")
    assert "no rows" in repr(History())


@pytest.mark.parametrize(
    "change, words",
    [
        ({"steps": 0}, "steps must be"),
        ({"lr": 0}, "lr must be"),
        ({"clip": 0}, "math.inf"),
        ({"schedule": "linear"}, "one-cycle"),
        ({"schedule": None}, "'one-cycle', 'constant' or a function of the step, got None"),
        ({"patience": 3}, "validation split"),
    ],
)
def test_bad_settings_get_a_sentence(change, words, no_shape_hook):
    with pytest.raises(ValueError, match=words):
        fit(line(), draw, loss, **({"steps": 5} | change))


def test_a_loss_that_explodes_gets_a_sentence():
    with pytest.raises(ValueError, match="lower lr"):
        fit(line(), draw, lambda m, b: loss(m, b) * math.nan, steps=5)


def test_a_schedule_is_a_function_of_the_step_from_1_on(monkeypatch):
    asked, rates = [], []

    def noted(*arguments, lr, **options):
        rates.append(lr)
        return adam(*arguments, lr=lr, **options)

    def schedule(step):
        asked.append(step)
        return 1 / step

    monkeypatch.setattr(training, "adam", noted)
    fit(line(), draw, loss, steps=5, lr=0.6, schedule=schedule)
    assert asked[:5] == [1, 2, 3, 4, 5]
    assert rates == pytest.approx([0.6, 0.3, 0.2, 0.15, 0.12])
    rates.clear()
    fit(line(), draw, loss, steps=5, lr=1, schedule=partial(warmup, d_model=64, warmup_steps=3))
    assert rates == pytest.approx([warmup(step, 64, 3) for step in range(1, 6)])


def test_the_steps_are_those_of_torchs_adam_to_the_last_bit():
    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(2)
            self.used, self.idle = nn.Linear(3, 1), nn.Linear(3, 1)  # idle never gets a gradient
            self.used.bias.requires_grad_(False)

        def forward(self, x):
            return self.used(x)

    def batch(generator):
        return torch.randn(7, 3, generator=generator, device="cpu")

    def off(model, x):
        return (model(x) - x.sum(1, keepdim=True)).square().mean()

    ours, torchs = Reader(), Reader()
    fit(ours, batch, off, steps=11, lr=0.05, clip=0.5, seed_number=3)
    generator = training.seed(3)
    learned = [p for p in torchs.parameters() if p.requires_grad]
    fused = all(p.device.type in ("cpu", "cuda") for p in learned)
    optimizer = torch.optim.Adam(learned, lr=0.05, fused=fused)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: training.one_cycle(done + 1, 11))
    for _ in range(11):
        optimizer.zero_grad()
        off(torchs, to_device(batch(generator))).backward()
        nn.utils.clip_grad_norm_(learned, 0.5)
        optimizer.step()
        scheduler.step()
    for name, value in ours.state_dict().items():
        assert torch.equal(value, torchs.state_dict()[name]), name
    assert not torch.equal(ours.used.weight, Reader().used.weight)


SHORT_TRAINING = """
import sys, torch
from lesson_lib.training import fit
fit(torch.nn.Linear(3, 1), lambda generator: torch.ones(2, 3), lambda model, x: model(x).sum(), steps=2)
print("torch._dynamo" in sys.modules)
"""


def test_training_never_imports_torchs_compiler():
    # on whatever this machine computes: a simulated device is not there in another process
    environment = {k: v for k, v in os.environ.items() if k != "LESSON_DEVICE"} | {"LESSON_PROGRESS": "off"}
    run = [sys.executable, "-c", SHORT_TRAINING]
    assert (
        subprocess.run(run, env=environment, capture_output=True, text=True, check=True).stdout == "False\n"
    )


def test_a_schedule_decides_what_is_learned():
    model = line()
    before = model.weight.item()
    fit(model, draw, loss, steps=5, lr=0.1, schedule=lambda step: 0.0)
    assert model.weight.item() == before
    constant, function = line(), line()
    fit(constant, draw, loss, steps=5, lr=0.1, schedule="constant")
    fit(function, draw, loss, steps=5, lr=0.1, schedule=lambda step: 1.0)
    assert constant.weight.item() == function.weight.item() != before


def test_warm_up_by_hand():
    assert warmup(4000, 512) == pytest.approx(512**-0.5 * 4000**-0.5)  # the two branches meet here
    assert warmup(1000, 512) == pytest.approx(warmup(4000, 512) / 4)
    assert warmup(16_000, 512) == pytest.approx(warmup(4000, 512) / 2)
    assert warmup(4000, 512) == max(warmup(step, 512) for step in range(1, 10_000))
    assert f"{warmup(4000, 512):.7f}" == "0.0006988"


@pytest.mark.parametrize(
    "arguments, words",
    [((0, 512), "step must be >= 1, got 0"), ((1, 0), "d_model must"), ((1, 512, 0), "warmup_steps must")],
)
def test_a_warm_up_that_cannot_be_gets_a_sentence(arguments, words):
    with pytest.raises(ValueError, match=words):
        warmup(*arguments)


def squared(model, batch):
    x, y = batch
    return (model(x) - y).square().mean()


def test_a_stored_training_is_read_and_gives_the_same_weights(monkeypatch, tmp_path):
    monkeypatch.setattr(training, "WEIGHTS", tmp_path / "weights")
    trained = line()
    with stored("a line", anew=True):
        fit(trained, draw, squared, steps=60, lr=0.1, name="line")
    read = line()
    with stored("a line"):
        history = fit(read, draw, squared, steps=60, lr=0.1, name="line")
    assert not history.rows and "stored" in history.ended and not read.training
    for name, x in read.state_dict().items():
        torch.testing.assert_close(x, trained.state_dict()[name], atol=2e-3, rtol=2e-3)
    other = line()
    assert fit(other, draw, squared, steps=60, lr=0.1, name="line").rows  # outside it trains


@pytest.mark.parametrize("changed", [{"steps": 61}, {"lr": 0.2}, {"seed_number": 1}, {"name": "curve"}])
def test_stored_weights_of_another_training_are_refused(monkeypatch, tmp_path, changed):
    monkeypatch.setattr(training, "WEIGHTS", tmp_path)
    recipe = {"steps": 60, "lr": 0.1, "seed_number": 0, "name": "line"}
    with stored("line", anew=True):
        fit(line(), draw, squared, **recipe)
    with stored("line"), pytest.raises(ValueError, match="were trained with"):
        fit(line(), draw, squared, **recipe | changed)


def test_weights_that_nobody_stored_get_a_sentence():
    with stored("nowhere"), pytest.raises(ValueError, match="no weights 'nowhere'; train without stored"):
        fit(line(), draw, squared, steps=5)


def test_a_quick_training_is_never_stored(monkeypatch, tmp_path):
    monkeypatch.setattr(training, "WEIGHTS", tmp_path)
    monkeypatch.setenv("LESSON_STEPS", "quick")
    with stored("line", anew=True), pytest.raises(ValueError, match="too little to be stored"):
        fit(line(), draw, squared, steps=60)
    assert not list(tmp_path.iterdir())


def test_every_stored_training_is_asked_for_and_every_one_that_is_asked_for_is_there():
    root = Path(__file__).parents[1]
    sources = (root / "notebooks" / "source").rglob("*.py")
    asked = {name for path in sources for name in re.findall(r'stored\("(\w+)"\)', path.read_text("utf-8"))}
    assert asked == {path.stem for path in training.WEIGHTS.glob("*.safetensors")} and len(asked) > 4
    assert sum(path.stat().st_size for path in training.WEIGHTS.iterdir()) < 2**21
