"""Six published files: what they change, what they keep; a loud start; and what the part tells of both."""

from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from lesson_lib.chapters.c13_todays_models import figures, published
from lesson_lib.chapters.c13_todays_models.cache_explorer import (
    AS_IS,
    NO_WINDOWS,
    OWN_KEYS,
    TOKENS,
    CacheExplorer,
    kept_mib,
    windows_of,
)
from lesson_lib.chapters.c13_todays_models.experiments import loud_starts
from lesson_lib.models.pretrained import kept_per_token

SOURCE = Path(__file__).parents[3] / "notebooks" / "source" / "13a_today.py"
NAMES = list(published.CONFIGS)


@pytest.mark.parametrize("name", NAMES)
def test_a_published_file_is_read_as_its_own_library_reads_it(name):
    """Window, heads and widths of each layer, beside transformers' own configuration class."""
    if find_spec("transformers") is None:
        pytest.skip("transformers is not installed: a test dependency that the GPU kit does not carry")
    from transformers import AutoConfig

    config = dict(published.CONFIGS[name])
    theirs = AutoConfig.for_model(config.pop("model_type"), **config)
    o = published.read(name)
    assert (o.n_heads, o.n_key_heads, o.d_k) == (
        theirs.num_attention_heads, theirs.num_key_value_heads, theirs.head_dim,
    )  # fmt: skip
    kinds = getattr(theirs, "layer_types", None) or ["sliding_attention"] * len(o.layers)
    window = getattr(theirs, "sliding_window", None) or 0
    asked = [window if kind == "sliding_attention" else 0 for kind in kinds]
    assert windows_of(o) == asked and len(o.layers) == theirs.num_hidden_layers


def test_what_they_keep_by_hand():
    llama, gpt_oss = published.read("Llama 3.1 8B"), published.read("gpt-oss 20B")
    assert kept_per_token(llama) == 2048 and kept_per_token(gpt_oss) == 1024
    assert kept_mib(llama, 131072) == 16 * 1024 and kept_mib(llama, 131072, OWN_KEYS) == 64 * 1024
    assert windows_of(gpt_oss) == [128, 0] * 12
    assert kept_mib(gpt_oss, 131072) == 12 * (131072 + 128) * 1024 * 2 / 2**20 == 3075
    assert kept_mib(gpt_oss, 131072, NO_WINDOWS) == 6 * 1024
    mistral = published.read("Mistral 7B v0.1")
    assert kept_mib(mistral, 131072, NO_WINDOWS) / kept_mib(mistral, 131072) == 32
    assert kept_mib(mistral, 4096) == kept_mib(mistral, 4096, NO_WINDOWS) == kept_mib(mistral, 2**20)


def test_the_explorer_follows_its_controls():
    w = CacheExplorer()
    assert "Qwen3 8B keeps most, 18 GiB, Mistral 7B v0.1 least, 512 MiB" in w.words()
    before = w.drawing.value
    w.how.value = OWN_KEYS
    assert w.drawing.value != before and "Gemma 3 27B keeps most, 124 GiB" in w.words()
    w.how.value = AS_IS
    for tokens in TOKENS:
        w.tokens.value = tokens
        assert set(w.held()) == set(NAMES) and f"{tokens:,} tokens" in w.drawing.value
    assert w.still().caption == w.words() and len(w.still().alt) > 80


def test_a_start_is_as_loud_as_asked():
    one, four = (loud_starts.start("plain", loud, 0) for loud in (1, 4))
    assert loud_starts.largest_score(four) > 10 * loud_starts.largest_score(one)
    state = four.state_dict()
    for name, x in one.state_dict().items():
        factor = 4 if "w_query" in name or "w_key" in name else 1
        assert torch.equal(state[name], factor * x), name
    normed = loud_starts.start("QK-norm", 16, 0)
    assert loud_starts.largest_score(normed) <= 32**0.5 + 1e-3  # one head 32 wide, gains of 1
    assert normed.options.head_norms and loud_starts.start("soft cap", 1, 0).options.cap == 50


def test_a_run_has_a_row_for_each_kind_and_start(monkeypatch):
    monkeypatch.setenv("LESSON_STEPS", "quick")
    rows = loud_starts.run(2)
    kinds = list(loud_starts.RECIPE["kinds"])
    again = [(4, "plain"), (16, "QK-norm")]
    assert [(r["loud"], r["kind"]) for r in rows] == [(n, k) for n in (1, 4, 16) for k in kinds] + again
    assert [row["steps"] for row in rows] == 9 * [800] + 2 * [3200]
    assert all(row["seed"] == 2 and len(row["largest"]) == 2 for row in rows)


def test_figures_have_words():
    picture = figures.loud_starts()
    assert len(picture.alt) > 90 and picture.caption
