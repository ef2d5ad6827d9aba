"""One wrong line in opening a model: each shows in the logits, and many leave every best token
as it was. The right model differs by less than NOISE."""

import math
from dataclasses import replace

import pytest
import torch

from lesson_lib.attention import Attended
from lesson_lib.heads import MultiHeadAttention
from lesson_lib.models.pretrained import files, open_model
from lesson_lib.models.pretrained import model as models
from lesson_lib.positions import rotary
from tests import peers

pytest.importorskip("transformers", reason="transformers is not carried to a GPU machine")
pytestmark = pytest.mark.on_cpu
TRAPS = {}


def trap(name):
    """The function plants one mistake with `patch`, before the model of that name is opened."""
    return lambda plant: TRAPS.setdefault(plant.__name__, (name, plant)) and plant


def options(patch, change):
    """Other options than config.json's."""
    right = files.options
    patch.setattr(files, "options", lambda given, **more: change(right(given, **more)))


def layers(patch, change):
    options(patch, lambda found: replace(found, layers=tuple(change(kind) for kind in found.layers)))


def file_name(patch, family, **wrong):
    """Other places of tensors; `i_` stands for the number of a layer."""
    entry = files.FAMILIES[family]
    other = {"layers.*." + name.replace("__", "."): value for name, value in wrong.items()}
    assert other.keys() <= entry.names.keys()
    patch.setitem(files.FAMILIES, family, entry._replace(names=entry.names | other))


def turned(patch, **wrong):
    def call(turn, x, start):
        given = torch.tensor(turn.frequencies, dtype=torch.float64)
        return turn.stretch * rotary(x, start, **{"pairing": "half-split", "frequencies": given} | wrong)

    patch.setattr(models.Turn, "__call__", call)


@trap("llama")
def pairs_of_neighbouring_columns(patch):
    turned(patch, pairing="interleaved")


@trap("llama, yarn")
def yarn_without_its_stretch(patch):
    layers(patch, lambda kind: replace(kind, turn=replace(kind.turn, stretch=1.0)))


@trap("mistral")
def a_window_of_one_more(patch):
    layers(patch, lambda kind: replace(kind, window=kind.window + 1))


@trap("gpt2")
def a_square_matrix_as_it_lies(patch):
    file_name(patch, "gpt2", attention__w_output="h.*.attn.c_proj")


@trap("llama")
def keys_repeated_in_another_order(patch):
    def attended(layer, q, k, v, **given):
        group = layer.n_heads // layer.n_key_heads
        return layer.attention(q, k.repeat(1, group, 1, 1), v.repeat(1, group, 1, 1), **given)

    patch.setattr(MultiHeadAttention, "_attend", attended)


@trap("gemma2")
def norms_without_their_1(patch):
    file_name(
        patch, "gemma2", before__0="layers.*.input_layernorm", after__0="layers.*.post_attention_layernorm",
        before__1="layers.*.pre_feedforward_layernorm", after__1="layers.*.post_feedforward_layernorm",
    )  # fmt: skip


@trap("gemma2")
def the_cap_behind_the_mask(patch):
    """Hidden scores of -1e9 become -cap, which is no small number."""

    def attention(found):
        def wrong(query, key, value, *, mask, **_given):
            scores = models._scaled(found.scale, query, key).masked_fill(~mask, -1e9)
            table = (found.cap * (scores / found.cap).tanh()).softmax(-1)
            return Attended(table @ value, table)

        return wrong

    patch.setattr(models, "_attention", attention)


@trap("gpt_oss")
def no_sinks(patch):
    right = models.SinkAttention.forward

    def forward(layer, *given, **more):
        layer.sinks.data.fill_(-math.inf)
        return right(layer, *given, **more)

    patch.setattr(models.SinkAttention, "forward", forward)


@trap("llama")
def another_eps(patch):
    options(patch, lambda found: replace(found, eps=1e-5))


@trap("gpt2")
def gelu_by_its_formula(patch):
    options(patch, lambda found: replace(found, activation="gelu"))


@trap("smollm3")
def positions_in_every_layer(patch):
    def change(found):
        turn = found.layers[0].turn
        return replace(found, layers=tuple(replace(kind, turn=turn) for kind in found.layers))

    options(patch, change)


@trap("granite")
def the_whole_of_what_a_sub_layer_adds(patch):
    options(patch, lambda found: replace(found, residual_scale=1.0))


@trap("granite")
def scores_by_the_root_of_the_width(patch):
    options(patch, lambda found: replace(found, scale=None))


@trap("olmo2")
def norms_of_each_head(patch):
    """Columns are scaled by the right weights, after the wrong mean square."""

    def forward(norm, x):
        columns = norm.weight.unflatten(0, (x.shape[1], -1))[:, None]
        return torch.nn.functional.rms_norm(x, x.shape[-1:], eps=norm.eps) * columns

    patch.setattr(models.WholeNorm, "forward", forward)


@trap("olmo3")
def one_kind_of_positions_for_all(patch):
    def change(found):
        turn = found.layers[-1].turn
        return replace(found, layers=tuple(replace(kind, turn=turn) for kind in found.layers))

    options(patch, change)


@trap("ministral3")
def scores_that_do_not_grow(patch):
    layers(patch, lambda kind: replace(kind, sharper=None))


@trap("phi3")
def gate_and_what_passes_interchanged(patch):
    names = files.FAMILIES["phi3"].names
    file_name(
        patch, "phi3", feed_forward__w_gate=names["layers.*.feed_forward.w_in"],
        feed_forward__w_in=names["layers.*.feed_forward.w_gate"],
    )  # fmt: skip


QUIET = {"another_eps", "gelu_by_its_formula"}  # as small as that, and still far from noise


@torch.no_grad()
def fallen_into(trap_name, root, patch):
    """The largest error of a logit with that mistake, as a share of the largest logit, and the share of best
    tokens that stay."""
    name, plant = TRAPS[trap_name]
    place = peers.folder(name, root)
    plant(patch)
    logits, read = peers.answers(name)[0], open_model(place)(peers.inputs(name))
    same = (read.logits.argmax(-1) == logits.argmax(-1)).float().mean()
    return peers.apart(read.logits, logits, float(logits.abs().max())), float(same)


@pytest.mark.parametrize("name", TRAPS)
def test_a_wrong_line_shows_in_the_logits(name, tmp_path, monkeypatch):
    monkeypatch.setenv("LESSON_DEVICE", "cpu")
    error, _ = fallen_into(name, tmp_path, monkeypatch)
    assert error > (1000 if name not in QUIET else 2) * peers.NOISE, error


def main():
    """The table of traps, measured now."""
    import tempfile
    from pathlib import Path

    for name in TRAPS:
        with tempfile.TemporaryDirectory() as root, pytest.MonkeyPatch.context() as patch:
            error, same = fallen_into(name, Path(root), patch)
            print(f"{name:40} error {error:.1e} of the largest logit; best token the same {same:4.0%}")


if __name__ == "__main__":
    main()
