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
from lesson_lib.experiments import results
from lesson_lib.models.pretrained import kept_per_token, unusual

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


def test_what_they_change_is_what_the_library_calls_unusual():
    table = figures.differences()
    assert set(table) == {"Transformer, 2017", *NAMES}
    assert not any(table["Transformer, 2017"])
    words = {"QK-norm": "QK-norm", "cap": "scores are capped", "sink": "sink", "window": "windows of"}
    for name in NAMES:
        told = " ".join(unusual(published.read(name)))
        for column, entry in zip(figures.COLUMNS, table[name], strict=True):
            if column in words:
                assert bool(entry) == (words[column] in told), (name, column)
    assert table["Gemma 3 27B"][1] == "1,024\nin 52 of 62" and table["gpt-oss 20B"][1] == "128\nin 12 of 24"
    assert table["Gemma 3 27B"][-1] == "10,000\n1,000,000" and table["Llama 3.1 8B"][-1] == "500,000"


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


def test_what_the_part_tells_of_the_loud_starts():
    rows = [row for row in results("loud_starts")["rows"] if row["steps"] == 800]
    right = {
        (kind, loud): sorted(r["accuracy"] for r in rows if (r["kind"], r["loud"]) == (kind, loud))
        for kind in loud_starts.RECIPE["kinds"]
        for loud in loud_starts.RECIPE["loud"]
    }
    assert all(len(each) == 3 for each in right.values())
    text = SOURCE.read_text(encoding="utf-8")
    by_seed = [r["accuracy"] for r in rows if (r["kind"], r["loud"]) == ("QK-norm", 4)]
    assert "{:.2f}, {:.2f} and {:.2f} in three seeds".format(*by_seed).replace("0.8", ".8") in text
    others = max(right[kind, 4][-1] for kind in ("plain", "soft cap"))
    assert f"the others {told(others)} at best" in text
    more = [row for row in results("loud_starts")["rows"] if row["steps"] == 3200]
    assert {told(row["accuracy"]) for row in more if row["kind"] == "QK-norm"} == {"1.00"}
    assert {told(row["accuracy"]) for row in more if row["kind"] == "plain"} == {".05"}
    low, _, high = right["QK-norm", 16]
    assert f"At 16 times it has {told(low)} to {told(high)}" in text


def told(share):
    return f"{share:.2f}".removeprefix("0")


def test_figures_have_words():
    for picture in (figures.families(), figures.loud_starts()):
        assert len(picture.alt) > 90 and picture.caption
