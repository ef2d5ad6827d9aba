"""The one training loop: it learns, it is repeatable, it stops when it should, and it survives being
stopped."""

import math
import os
import re
import subprocess
import sys
import time
from functools import partial

import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell
from nbformat.v4 import new_code_cell
from torch import nn
from torch.optim.adam import adam

from lesson_lib import training
from lesson_lib.cli import build, sources
from lesson_lib.device import to_device
from lesson_lib.training import History, counted, fit, no_time, stored, warmup


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


def test_interrupting_keeps_the_history_and_the_model_and_says_so(capsys):
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
    assert history.column("step") == [5] and history.ended == "interrupted in step 7 of 50"
    told = capsys.readouterr().out
    assert "stopped in step 7 of 50" in told and "cells below" in told and "no_time" not in told
    assert model.weight.item() != before


def test_quick_cuts_the_steps(monkeypatch):
    monkeypatch.setenv("LESSON_STEPS", "quick")
    assert fit(line(), draw, loss, steps=500).column("step")[-1] == 20


def test_nothing_is_written_when_the_bar_is_off(monkeypatch, capfd):
    monkeypatch.setenv("LESSON_PROGRESS", "off")
    fit(line(), draw, loss, steps=5)
    out, err = capfd.readouterr()
    assert out == err == ""


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


@pytest.fixture
def shelf(monkeypatch, tmp_path):
    """An empty folder of stored weights, on which every training is written that asks for it."""
    monkeypatch.setattr(training, "WEIGHTS", tmp_path)
    monkeypatch.setattr(training, "_written", set())
    monkeypatch.setenv("LESSON_STORED", "anew")
    return tmp_path


RECIPE = {"steps": 60, "lr": 0.1, "seed_number": 0, "name": "line"}


def fitted(**changed):
    model = line()
    return model, fit(model, draw, squared, **RECIPE | changed)


def test_a_stored_training_is_read_with_its_weights_and_its_history(monkeypatch, shelf):
    with stored():
        trained, history = fitted()
    monkeypatch.delenv("LESSON_STORED")
    with stored():
        read, told = fitted()
    assert "stored" in told.ended and not read.training
    for row, kept in zip(history.rows, told.rows, strict=True):
        assert kept == pytest.approx(row, abs=1e-5)
    for name, x in read.state_dict().items():
        torch.testing.assert_close(x, trained.state_dict()[name], atol=2e-3, rtol=2e-3)
    assert fitted()[1].ended == "all steps done", "outside it trains"


@pytest.mark.parametrize("changed", [{"steps": 61}, {"lr": 0.2}, {"seed_number": 1}, {"name": "curve"}])
def test_weights_of_another_training_are_never_taken(monkeypatch, shelf, changed):
    with stored():
        fitted()
    monkeypatch.delenv("LESSON_STORED")
    with stored(), pytest.raises(ValueError, match="no weights are stored for this training"):
        fitted(**changed)


def test_nor_those_that_learned_from_other_data(monkeypatch, shelf, capsys):
    def steeper(generator):
        x, y = draw(generator)
        return x, 2 * y

    with stored():
        fitted()
    monkeypatch.delenv("LESSON_STORED")
    with stored(), pytest.raises(ValueError, match="no weights are stored for this training"):
        fit(line(), steeper, squared, **RECIPE)
    trained = fit(line(), steeper, squared, **RECIPE).rows
    monkeypatch.setenv("LESSON_STORED", "1")
    for row, same in zip(fit(line(), steeper, squared, **RECIPE).rows, trained, strict=True):
        assert row["loss"] == same["loss"], "it is trained, and on the very same batches"
    assert capsys.readouterr().out == ""


def test_two_trainings_that_only_their_data_tell_apart_cannot_both_be_stored(shelf):
    with stored():
        fitted()
        with pytest.raises(ValueError, match="another name"):
            fitted()


def test_a_quick_training_is_never_stored(monkeypatch, shelf):
    monkeypatch.setenv("LESSON_STEPS", "quick")
    with stored(), pytest.raises(ValueError, match="too little to be stored"):
        fitted()
    assert not list(shelf.iterdir())


def test_no_time_takes_what_is_stored_and_says_so(monkeypatch, shelf, capsys):
    with stored():
        trained, _ = fitted()
    no_time()  # the fixture puts LESSON_STORED back
    assert "stored" in capsys.readouterr().out
    read, history = fitted()
    assert capsys.readouterr().out == "line: the lesson's stored weights; nothing is trained here\n"
    assert history.column("step")[-1] == 60
    torch.testing.assert_close(read.weight, trained.weight, atol=2e-3, rtol=2e-3)
    _, history = fitted(lr=0.2)
    assert history.ended == "all steps done" and capsys.readouterr().out == "", "nothing stored: it trains"


def test_short_trainings_are_not_stored(monkeypatch, shelf):
    fitted()
    assert not list(shelf.iterdir())
    monkeypatch.setattr(training, "LONG_S", 0.0)
    fitted()
    assert [path.name[:5] for path in shelf.iterdir()] == ["line-"]


def by_hand(model, losses, steps=8):
    """A loop as a lesson writes one: plain gradient descent."""
    generator = torch.Generator("cpu").manual_seed(0)
    for _ in counted(range(1, steps + 1), model, losses):
        value = squared(model, to_device(draw(generator)))
        model.zero_grad()
        value.backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.1 * p.grad
        losses.append(value.item())


def test_a_loop_by_hand_counts_and_is_stored_like_any_other(monkeypatch, shelf, capsys):
    monkeypatch.setattr(training, "LONG_S", 0.0)
    trained, losses = line(), []
    by_hand(trained, losses)
    assert len(losses) == 8 and losses[-1] < losses[0]
    monkeypatch.setenv("LESSON_STORED", "1")
    read, kept = line(), []
    by_hand(read, kept)
    assert "nothing is trained here" in capsys.readouterr().out
    assert kept == pytest.approx(losses, abs=1e-5)
    torch.testing.assert_close(read.weight, trained.weight, atol=2e-3, rtol=2e-3)


def test_two_loops_of_one_kind_are_kept_apart_by_their_names(monkeypatch, shelf):
    monkeypatch.setattr(training, "LONG_S", 0.0)
    for name in ("A", "B"):
        list(counted(range(1, 3), line(), [], name))
    assert sorted(path.name[:2] for path in shelf.iterdir()) == ["a-", "b-"]


class Shell(InteractiveShell):
    """IPython without a terminal; what it shows of an error is kept."""

    def _showtraceback(self, kind, error, lines):
        self.shown = lines


LOOP = """
import torch
from lesson_lib.training import counted
losses, model = [], torch.nn.Linear(1, 1)
def train():
    for step in counted(range(1, 51), model, losses):
        losses.append(1.0)
        if step == stop:
            raise error
train()
print("went on")
"""


@pytest.fixture
def shell():
    shell = Shell()
    yield shell
    Shell.clear_instance()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), None])
def test_a_stopped_loop_by_hand_ends_its_cell_in_a_sentence(shell, capsys, monkeypatch, error):
    monkeypatch.setattr(training.sys.modules["IPython"], "get_ipython", lambda: shell)
    shell.push({"stop": 7 if error else 51, "error": error})
    before = shell.custom_exceptions, shell.CustomTB
    result = shell.run_cell(LOOP)
    told = capsys.readouterr().out
    assert not hasattr(shell, "shown"), "no traceback"
    assert (shell.custom_exceptions, shell.CustomTB) == before, "IPython's own way is put back"
    assert result.success == (error is None) == ("went on" in told)
    assert ("stopped in step 7 of 50" in told) == (error is not None)


@pytest.mark.parametrize("error", [ZeroDivisionError(), KeyboardInterrupt()])
def test_what_is_no_stop_of_a_loop_by_hand_is_shown_as_ever(shell, capsys, monkeypatch, error):
    monkeypatch.setattr(training.sys.modules["IPython"], "get_ipython", lambda: shell)
    within = isinstance(error, ZeroDivisionError)  # the other is raised after the loop, in the same cell
    shell.push({"stop": 7 if within else 51, "error": error})
    before = shell.custom_exceptions, shell.CustomTB
    shell.run_cell(LOOP + "raise error")
    assert type(error).__name__ in "".join(shell.shown) and "Stopped" not in capsys.readouterr().out
    assert (shell.custom_exceptions, shell.CustomTB) == before


def test_the_bar_says_how_long_it_takes_here_and_what_is_left(monkeypatch, capfd):
    monkeypatch.delenv("LESSON_PROGRESS", raising=False)

    def slow(model, batch):
        time.sleep(0.1)
        return loss(model, batch)

    fit(line(), draw, slow, steps=30, name="a line")
    bars = re.findall(
        r"a line: +(\d+)%.*?about (\d+) s on this machine, (\d+) s left", capfd.readouterr().err
    )
    assert len(bars) > 5
    whole, left = int(bars[len(bars) // 2][1]), [int(bar[2]) for bar in bars]
    assert whole in (3, 4, 5) and left == sorted(left, reverse=True), bars


def test_a_training_of_a_moment_has_no_bar(monkeypatch, capfd):
    monkeypatch.delenv("LESSON_PROGRESS", raising=False)
    fit(line(), draw, loss, steps=5)
    assert capfd.readouterr().err == ""


def test_a_part_holds_with_stored_weights():
    [target] = sources.targets(["06d_bert"])
    notebook = sources.read_source(target)
    notebook.cells.insert(0, new_code_cell("from lesson_lib.training import no_time\n\nno_time()"))
    build.execute(notebook, target)  # raises where an assertion of the part fails
    outputs = [output for cell in notebook.cells[1:] for output in cell.get("outputs", [])]
    assert any(
        "nothing is trained here" in output.get("data", {}).get("text/plain", "") for output in outputs
    )


def test_the_stored_weights_are_few():
    files = list(training.WEIGHTS.glob("*.safetensors"))
    assert len(files) > 4 and sum(path.stat().st_size for path in files) < 8 * 2**20
