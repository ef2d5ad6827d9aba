"""The step at which two openings of a folder part: none where ours is right; with each trap the step that it
spoils, and no later one."""

import pytest
import torch

from lesson_lib import cli
from lesson_lib.models.pretrained import SMALL_WRITER
from lesson_lib.models.pretrained.against import NOISE, Step, compared, parting
from tests import peers
from tests.test_models_pretrained_traps import TRAPS

pytest.importorskip("transformers", reason="transformers is not carried to a GPU machine")
pytestmark = pytest.mark.on_cpu
# trap: (layer, step)
SPOILED = {
    "pairs_of_neighbouring_columns": (0, "weights"),
    "yarn_without_its_stretch": (0, "weights"),
    "a_window_of_one_more": (0, "weights"),
    "a_square_matrix_as_it_lies": (0, "attention.w_output"),
    "keys_repeated_in_another_order": (0, "weights"),
    "norms_without_their_1": (0, "before.0"),
    "the_cap_behind_the_mask": (0, "weights"),
    "no_sinks": (0, "weights"),
    "another_eps": (0, "before.0"),
    "gelu_by_its_formula": (0, "feed_forward.w_out"),
    "positions_in_every_layer": (1, "weights"),
    "the_whole_of_what_a_sub_layer_adds": (0, "before.1"),
    "scores_by_the_root_of_the_width": (0, "weights"),
    "norms_of_each_head": (0, "attention.query_norm"),
    "one_kind_of_positions_for_all": (0, "weights"),
    "scores_that_do_not_grow": (0, "weights"),
    "gate_and_what_passes_interchanged": (0, "feed_forward.w_out"),
}


@pytest.fixture(autouse=True)
def _on_the_cpu(monkeypatch):
    monkeypatch.setenv("LESSON_DEVICE", "cpu")


@pytest.mark.parametrize("name", peers.FOLDERS)
def test_a_right_model_parts_nowhere(name, tmp_path):
    steps = compared(peers.folder(name, tmp_path))
    assert {step.name for step in steps} >= {"embedding", "weights", "stream", "logits"}
    assert max(step.apart for step in steps) < NOISE / 2 and "the same in all" in parting(steps)


@pytest.mark.parametrize("trap", TRAPS)
def test_each_trap_is_found_where_it_lies(trap, tmp_path, monkeypatch):
    name, plant = TRAPS[trap]
    place = peers.folder(name, tmp_path)
    plant(monkeypatch)
    steps = compared(place)
    first = next(step for step in steps if step.apart >= NOISE)
    assert (first.layer, first.name) == SPOILED[trap]
    assert "Look at" in parting(steps)


def test_a_number_that_is_none_is_found():
    steps = [Step(0, "embedding", 0.0), Step(0, "weights", float("nan")), Step(0, "logits", 0.0)]
    assert "layer 0, weights of attention" in parting(steps) and "before: 1." in parting(steps)


def test_the_command(tmp_path, capsys, monkeypatch):
    assert cli.main(["model", str(SMALL_WRITER), "--against", "transformers"]) == 0
    assert "the same in all" in capsys.readouterr().out
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    assert cli.main(["model", str(SMALL_WRITER), "--against", "transformers"]) == 1
    assert "pip install transformers" in capsys.readouterr().err
    assert torch.is_grad_enabled()
