"""The model that comes with the course: what it was trained on, that others open it, too, that it copies; and
its instruments on a folder of every family."""

import re
from contextlib import contextmanager
from importlib.util import find_spec

import pytest
import torch
from torch.testing import assert_close

from lesson_lib.chapters.c13_todays_models import inside_figures, writer
from lesson_lib.cli.sources import ROOT
from lesson_lib.data import topics
from lesson_lib.experiments import results
from lesson_lib.models.pretrained import cut, exchanged, lens, new_model, open_model, opened, without_each
from lesson_lib.widgets.heads import HeadExplorer
from lesson_lib.widgets.machine import MachineExplorer
from tests import peers

TEXT, OTHER = "A Wibkat is a class. The Wibk", "A Wibkot is a class. The Wibk"
A, LAST = 7, 29  # the places of the a to be copied, and of the k that is continued


@pytest.fixture(scope="module")
def model():
    return open_model(writer.FOLDER)


def text_of(numbers):
    return "".join(topics.CHARACTERS[number] for number in numbers.tolist())


def seeded(seed=0):
    return torch.Generator("cpu").manual_seed(seed)


def test_the_folder_is_small_and_complete(model):
    sizes = {path.name: path.stat().st_size for path in writer.FOLDER.iterdir()}
    assert set(sizes) == {"README.md", "config.json", "model.safetensors", "tokenizer.json"}
    assert sum(sizes.values()) < 6e6
    assert sum(p.numel() for p in model.parameters()) == 424_992 and not model.left
    assert model.pieces(model.numbers("a b")) == ["<s>", "a", " ", "b"]


@pytest.mark.on_cpu  # transformers refuses a default device
def test_transformers_and_tokenizers_open_it_too(model):
    if find_spec("transformers") is None:
        pytest.skip("transformers is not installed: a test dependency that the GPU kit does not carry")
    peers.quiet()
    from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

    theirs = AutoModelForCausalLM.from_pretrained(writer.FOLDER).eval()
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(writer.FOLDER / "tokenizer.json"))
    numbers = model.numbers(TEXT)
    assert tokenizer(TEXT)["input_ids"] == numbers.tolist()
    with torch.no_grad():
        ours = model(numbers[None].to(model.norm.weight.device)).logits.cpu()
        assert_close(ours, theirs(numbers[None]).logits, atol=1e-4, rtol=1e-4)


@pytest.mark.on_cpu  # transformers refuses a default device
def test_the_hook_that_the_part_shows_cuts_a_head_of_theirs(model):
    if find_spec("transformers") is None:
        pytest.skip("transformers is not installed: a test dependency that the GPU kit does not carry")
    peers.quiet()
    from transformers import AutoModelForCausalLM

    text = (ROOT / "notebooks" / "source" / "13c_open_a_model.py").read_text("utf-8")
    session = {"contextmanager": contextmanager}
    exec(re.search(r"def silence\(.*?\n\n\n", text, re.DOTALL)[0], session)
    exec(re.search(r"@contextmanager\ndef hooked\(.*?\n\n\n", text, re.DOTALL)[0], session)
    theirs, numbers = AutoModelForCausalLM.from_pretrained(writer.FOLDER).eval(), model.numbers(TEXT)
    part = theirs.get_submodule("model.layers.1.self_attn.o_proj")
    with torch.no_grad():
        with session["hooked"](part, session["silence"]):
            changed = theirs(numbers[None]).logits
        with cut(model, [(1, 3)]):
            ours = model(numbers[None].to(model.norm.weight.device)).logits.cpu()
        assert_close(changed, ours, atol=1e-4, rtol=1e-4)
        whole = model(numbers[None].to(model.norm.weight.device)).logits.cpu()
        assert_close(theirs(numbers[None]).logits, whole, atol=1e-4, rtol=1e-4)  # the hook is gone


def test_it_spells_and_it_copies(model):
    """The manual differs from one Python to the next, so its bits are no exact number here."""
    assert writer.bits(model) < 2.2
    assert writer.copied(model, 24) > 0.99


def test_what_the_part_says_of_it(model):
    left = without_each(model, TEXT)
    assert left[2].min() > 0.85 and left[1, 3] < 0.1 and left[3].min() > 0.98
    moved = exchanged(model, TEXT, OTHER)
    assert (moved > 0.5).nonzero().tolist() == [[0, A], [1, A], [2, LAST], [3, LAST]]
    seen = opened(model, TEXT)
    assert all(seen.weights[2][0, head, LAST, A] > 0.98 for head in (1, 2, 3))
    assert seen.weights[1][0, 3, LAST, LAST - 1] > 0.95
    assert [row[-1] for row in seen.says][3:] == ["a", "a"]
    a = int(model.numbers("a")[-1])
    read = model(model.numbers(TEXT)[None].to(model.norm.weight.device), weights=True)
    shares = lens(model, read)[:, 0, -1].softmax(-1)[:, a]
    assert shares[:3].max() < 0.05 and shares[3] > 0.8
    with cut(model, [(2, 1), (2, 2)]), torch.no_grad():
        changed = model(model.numbers(TEXT)[None].to(model.norm.weight.device)).logits[0, -1].softmax(-1)
    assert changed[a] < 0.2


def test_pages_stand_behind_a_start_token():
    page = writer.pages(seeded(), 3)
    assert page.shape == (3, writer.CONTEXT + 1) and (page[:, 0] == writer.START).all()
    assert text_of(page[1, 1:]) in text_of(topics.stream("training"))


def test_a_word_said_twice_becomes_an_invented_one_everywhere():
    before, after = writer.pages(seeded(3), 40), writer.renamed(seeded(3), 40)
    changed = [i for i in range(40) if not torch.equal(before[i], after[i])]
    assert 10 < len(changed) < 35
    for i in changed:
        old, new = (re.findall(r"\w+|\W", text_of(x[i, 1:])) for x in (before, after))
        swapped = {(a, b) for a, b in zip(old, new, strict=True) if a != b}
        ((word, name),) = swapped
        assert len(word) == len(name) >= 4 and old.count(word) >= 2 and word[0].isupper() == name[0].isupper()
        assert word not in new
    kept = set(range(40)) - set(changed)
    words = [writer.WORD.findall(text_of(before[i, 1:])) for i in kept]
    assert all(len(found) == len(set(found)) for found in words)


def test_signs_said_twice_differ_within_a_piece():
    texts = writer.said_twice(seeded(), 5, shortest=7, longest=7)
    assert texts.shape == (5, 15) and torch.equal(texts[:, 1:8], texts[:, 8:])
    assert all(len(set(row[1:8].tolist())) == 7 for row in texts)
    assert texts[:, 1:].min() >= 1 and texts[:, 1:].max() < writer.START


@torch.no_grad()
def test_the_loss_skips_what_cannot_be_known():
    model = new_model(writer.CONFIG).eval()
    texts = writer.said_twice(seeded(), 2, shortest=4, longest=4).to(model.norm.weight.device)
    logs = model(texts[:, :-1]).logits.log_softmax(-1)
    each = -logs.gather(-1, texts[:, 1:, None])[..., 0]
    assert_close(writer.loss(model, texts), each.mean())
    assert_close(writer.loss(model, texts, skip=5), each[:, 5:].mean())


def test_a_short_training_leaves_no_dropout_behind(monkeypatch):
    monkeypatch.setenv("LESSON_STEPS", "quick")
    monkeypatch.setattr(writer, "bits", lambda model, split="test": 1.0)
    model, _ = writer.train(3, copies_first=2, steps=2, lr=1e-3, copies=2, share=0.25, dropout=0.5)
    parts = [part for layer in model.layers for part in (layer.attention.w_output, layer.feed_forward)]
    assert not any(part._forward_hooks for part in parts)


def test_bits_are_those_of_the_characters(model, monkeypatch):
    """By hand: each character of a short text, with at least 64 before it."""
    short = topics.stream("test")[:300]
    monkeypatch.setattr(writer.topics, "stream", lambda split: short)
    whole = torch.cat((torch.tensor([writer.START], device="cpu"), short))
    found = []
    for i in range(256):  # four half windows
        first = 0 if i < 128 else 64 * (i // 64 - 1)
        seen = whole[1 + first : 1 + i] if first else whole[1 : 1 + i]
        given = torch.cat((whole[:1], seen))[None].to(model.norm.weight.device)
        with torch.no_grad():
            logs = model(given).logits[0, -1].double().log_softmax(-1)
        found.append(-logs[short[i]].item() / 0.6931471805599453)
    assert writer.bits(model) == pytest.approx(sum(found) / len(found), abs=1e-4)


def test_the_stored_runs_say_what_the_part_says():
    rows = results("writer")["rows"]
    of_kind = {kind: [row for row in rows if row["kind"] == kind] for kind in ("manual", "manual and copies")}
    assert all(len(found) == 3 for found in of_kind.values())
    assert [row["copied"]["60"] > 0.98 for row in of_kind["manual and copies"]] == [True, False, True]
    shipped = of_kind["manual and copies"][0]
    assert 1.97 < shipped["bits"] < 1.99 and shipped["parameters"] == 424_992
    assert max(row["bits"] for row in of_kind["manual and copies"]) < min(
        row["bits"] for row in of_kind["manual"]
    )
    assert all(row["copied"]["24"] < 0.05 for row in of_kind["manual"])


def unlike(model, one, others):
    """The first of the others that has another answer."""

    @torch.no_grad()
    def answer(x):
        return int(model(x[None].to(next(model.parameters()).device)).logits.flatten(0, -2)[-1].argmax())

    return next(other for other in others if answer(other) != answer(one))


@pytest.mark.parametrize("name", ["gpt2", "bert", "vit", "gpt_oss"])
def test_its_instruments_run_on_a_folder_of_each_family(name, tmp_path):
    if find_spec("transformers") is None:
        pytest.skip("transformers is not installed: a test dependency that the GPU kit does not carry")
    place = peers.folder(name, tmp_path)
    one, *others = peers.inputs(name, n=9, batch=400)
    if name == "vit":  # images have no text: the explorer opens them by a name
        seen = open_model(place)
        other = unlike(seen, one, others)
        images = {"first": one, "second": other}
        widget = MachineExplorer(lambda text: opened(seen, images[text]), list(images))
        assert "Overview of 8 maps" in widget.drawing.value
        assert without_each(seen, one).shape == (2, 4) and exchanged(seen, one, other).shape == (2, 17)
        HeadExplorer(opened(seen, one).weights[1][0], opened(seen, one).pieces)
        return
    other = unlike(open_model(place), one, others)
    texts = [" ".join(map(str, row.tolist())) for row in (one, other)]
    model = open_model(place)
    explorer = MachineExplorer(lambda text: opened(model, text), texts)
    maps = len(model.layers) * model.options.n_heads
    assert f"Overview of {maps} maps" in explorer.drawing.value and "would<br>say" in explorer.drawing.value
    moved = exchanged(model, *texts)
    for picture in (
        inside_figures.without_heads(without_each(model, texts[0])),
        inside_figures.rows_exchanged(moved, opened(model, texts[0]).pieces),
    ):
        assert picture.png().startswith(b"\x89PNG")
    HeadExplorer(opened(model, texts[0]).weights[0][0], texts[0].split(), sinks=model.options.sinks)
