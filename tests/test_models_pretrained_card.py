"""A card from any config.json: what a cache keeps by the papers' own numbers, families that are opened as
`described` says, others by the fields that many share; what is unknown is said."""

import xml.etree.ElementTree as ET

import pytest

from lesson_lib import cli
from lesson_lib.chapters.c13_todays_models.published import CONFIGS, read
from lesson_lib.models.pretrained import SMALL_WRITER, card, kept
from tests import peers


def default(kind, **changed):
    """A configuration as its class writes it, without the sizes being asked for."""
    transformers = pytest.importorskip("transformers", reason="transformers is not carried to a GPU machine")
    peers.quiet()
    return transformers.CONFIG_MAPPING[kind]().to_dict() | changed


@pytest.mark.parametrize("name", CONFIGS)
def test_of_a_family_that_is_opened_it_keeps_what_is_described(name):
    found = card(CONFIGS[name], name=name)
    for tokens in (1, 500, 100_000):
        assert sum(kind.kept(tokens) for kind in found.layers) == kept(read(name), tokens)
    assert "unlike 2017" in dict(found.facts) and not found.unread


@pytest.mark.parametrize(
    "kind, per_token, said",
    [
        ("deepseek_v3", [512 + 64], "128 + 64 wide"),
        ("deepseek_v32", [512 + 64 + 128], "2,048 of all, by 64 narrow heads"),
        ("qwen3_next", [0, 2 * 2 * 256], "a state of 524,288 numbers"),
        ("kimi_linear", [0, 576], "positions: unknown"),
        ("minimax", [None, 2 * 8 * 128], "16 layers unknown, not counted"),
        ("llama4_text", [2 * 8 * 128], "its chunk of 8,192"),
        ("granite_swa", [2 * 4 * 128], "the last 128"),
        ("deepseek_v4", [None], "cache: unknown"),
    ],
)
def test_of_other_families_it_says_what_fields_say(kind, per_token, said):
    found = card(default(kind))
    assert sorted({one.per_token for one in found.layers}, key=str) == sorted(per_token, key=str)
    assert said in str(found)
    assert "sinks: the weights alone may say" in str(found)
    assert "vocab_size" not in found.unread


def test_layers_without_positions_and_fields_that_are_not_read_are_seen():
    found = card(default("llama4_text", twisted=True))
    (chunked, many), (whole, few) = found.groups
    assert (many, few) == (36, 12) and whole.positions == "none" != chunked.positions
    assert {"twisted", "attn_temperature_tuning", "use_qk_norm"} <= set(found.unread)
    assert "twisted" in found.svg()
    refused = card(default("llama", twisted=True) | {"sliding_window": 3})
    assert (
        "'twisted' (True)" in dict(refused.facts)["not opened"]
        or "sliding" in dict(refused.facts)["not opened"]
    )


def test_every_text_model_of_transformers_has_a_card():
    pytest.importorskip("transformers", reason="transformers is not carried to a GPU machine")
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    peers.quiet()
    drawn, refused = 0, []
    for kind in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        try:
            given = default(kind)
        except Exception:  # a class whose own defaults it does not accept
            refused.append(kind)
            continue
        layers = (given.get("text_config") or given).get("num_hidden_layers")
        if not isinstance(layers, int) or layers < 1:
            continue
        found = card(given)
        assert len(found.layers) >= 1 and "cache" in dict(found.facts), kind
        ET.fromstring(found.svg())
        drawn += 1
    assert drawn > 100 and len(refused) < 5


def test_the_picture_has_a_bar_for_each_layer_and_words_within_it():
    found = card(CONFIGS["Gemma 3 27B"], name="a <name>")
    root = ET.fromstring(found.svg())
    space = "{http://www.w3.org/2000/svg}"
    bars = [one for one in root.iter(f"{space}rect") if one.get("width") == "100"]
    height, texts = float(root.get("height")), [*root.iter(f"{space}text")]
    assert len(bars) == 62 and len({one.get("stroke") for one in bars}) == 2
    assert all(50 < float(one.get("y")) + float(one.get("height")) < height for one in bars)
    assert all(float(one.get("y")) < height for one in texts)
    assert root.find(f"{space}title").text == "a <name>: Gemma 3"
    assert "52 x sliding_attention" in root.find(f"{space}desc").text
    shown = found._repr_html_()
    assert 'alt="a &lt;name&gt;: Gemma 3.' in shown and "max-width: 100%" in shown and "\n" not in shown


def test_the_command_writes_it(tmp_path, capsys):
    file = tmp_path / "card.svg"
    assert cli.main(["model", str(SMALL_WRITER), "--card", str(file)]) == 0
    assert "The card is" in capsys.readouterr().out and ET.parse(file)
    (tmp_path / "config.json").write_text("{}")
    assert cli.main(["model", str(tmp_path), "--card", str(file)]) == 1
    assert "num_hidden_layers" in capsys.readouterr().err
