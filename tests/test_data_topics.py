"""Python's manual as text: one alphabet whatever the version, splits by topic, nothing of a test topic in
training."""

import sys

import pytest
import torch

from lesson_lib.data import topics as data

LONG = "The quick brown fox jumps over the lazy dog and then rests"  # longer than QUOTED
NAMES = {split: [n for n in map(str, range(90)) if data.split_of(n) == split] for split in data.SPLITS}


@pytest.fixture
def manual(monkeypatch):
    """Give the module another manual: `manual({topic: text})`."""

    def use(topics):
        data.texts.cache_clear()
        data.stream.cache_clear()
        monkeypatch.setattr(data, "_manual", lambda: topics)

    yield use
    monkeypatch.undo()
    data.texts.cache_clear()
    data.stream.cache_clear()


def test_the_alphabet_is_fixed():
    assert len(data.CHARACTERS) == len(set(data.CHARACTERS)) == 96
    assert data.CHARACTERS[:3] == "\n !" and data.CHARACTERS[-1] == "~"


def test_every_character_of_the_manual_is_in_the_alphabet_and_every_split_has_text():
    sizes = {split: len(data.stream(split)) for split in data.SPLITS}
    assert sizes["training"] > 150_000 and min(sizes.values()) > 15_000
    for split in data.SPLITS:
        assert data.stream(split).min() == 0 and data.stream(split).max() < 96
        assert data.stream(split).device.type == "cpu"


def test_numbers_are_places_in_the_alphabet():
    text = "\n\n".join(data.texts("test").values()) + "\n"
    assert "".join(data.CHARACTERS[i] for i in data.stream("test").tolist()) == text


@pytest.mark.parametrize(
    "raw, expected",
    [
        ("Title\n=====\n\n\n\nText  \n", "Title\n\nText"),
        ("+---+---+\n| a | b |\n+===+===+\nx\n\ty", "x\n    y"),
        ("a ::= b\n   | c", "a ::= b\n   | c"),  # an alternative of a grammar is no table
        ("“a” – ‘b’ — c…\u00a0d", "\"a\" - 'b' - c... d"),
        ('"""\n°ß\r!', '"""\n???!'),
    ],
)
def test_cleaning(raw, expected):
    assert data.clean(raw) == expected


def test_cleaning_refuses_what_is_no_text(no_shape_hook):
    for wrong in (None, 3, ["a"]):
        with pytest.raises(TypeError, match="text must be a str"):
            data.clean(wrong)


def test_a_topics_split_depends_on_its_name_only():
    assert [data.split_of(name) for name in ("power", "calls", "compound")] == [
        "test", "validation", "training",
    ]  # fmt: skip
    assert all(len(NAMES[split]) > 3 for split in data.SPLITS)
    names = [name for split in data.SPLITS for name in data.texts(split)]
    assert len(names) == len(set(names))


def test_what_a_test_topic_says_is_not_in_training(manual):
    a, b, c, d = NAMES["test"][0], NAMES["validation"][0], *NAMES["training"][:2]
    quoting = (  # broken elsewhere, and inside a longer one
        f"He said: {LONG.replace(' fox', chr(10) + '  fox')}!"
    )
    manual(
        {c: f"Own words\n\n{quoting}\n\nSee also:", d: f"See also:\n\n{LONG}", a: LONG, b: f"{LONG}\n\nmore"}
    )
    assert data.texts("test") == {a: LONG}
    assert data.texts("validation") == {b: "more"}
    assert data.texts("training") == {c: "Own words\n\nSee also:", d: "See also:"}


def test_an_emptied_topic_is_left_out_and_training_repeats_nothing(manual):
    one, two = NAMES["training"][:2]
    manual({one: LONG, two: LONG})
    assert data.texts("training") == {min(one, two): LONG}


def test_the_real_splits_share_no_paragraph():
    def paragraphs(split):
        return {
            " ".join(p.split())
            for text in data.texts(split).values()
            for p in text.split("\n\n")
            if len(p) > 80
        }

    assert paragraphs("test").isdisjoint(paragraphs("training"))
    assert paragraphs("validation").isdisjoint(paragraphs("training") | paragraphs("test"))


def test_windows_are_pieces_of_their_split(manual):
    name = NAMES["test"][0]
    manual({name: "abcdefghijklmnopqrs"})
    windows = data.draw(torch.Generator("cpu").manual_seed(0), 53, 7, "test")
    assert windows.shape == (53, 8) and windows.dtype == torch.long and windows.device.type == "cpu"
    text = "".join(data.CHARACTERS[i] for i in data.stream("test").tolist())
    assert text == "abcdefghijklmnopqrs\n"
    starts = {text.index("".join(data.CHARACTERS[i] for i in row)) for row in windows.tolist()}
    assert starts == set(range(13)), "every window is possible, the last one too"


def test_windows_repeat_with_their_generator():
    one, two, three = (data.draw(torch.Generator("cpu").manual_seed(s), 3, 11) for s in (5, 5, 6))
    assert one.equal(two) and not one.equal(three)


@pytest.mark.parametrize("batch, length, words", [(0, 5, "batch"), (2, 0, "length"), (2, True, "length")])
def test_odd_counts_get_a_sentence(batch, length, words, no_shape_hook):
    with pytest.raises(ValueError, match=f"{words} must be a whole number >= 1"):
        data.draw(torch.Generator("cpu"), batch, length)


def test_windows_longer_than_the_text_and_unknown_splits_get_a_sentence():
    with pytest.raises(ValueError, match=r"length must be less than the split's \d+ characters, got 9999999"):
        data.draw(torch.Generator("cpu"), 2, 9_999_999)
    with pytest.raises(ValueError, match="split must be one of test, validation, training, got 'train'"):
        data.texts("train")
    with pytest.raises(ValueError, match="split must be one of"):
        data.stream("dev")


def test_a_window_may_be_no_longer_than_its_split(manual):
    manual({NAMES["test"][0]: "abc"})
    assert data.draw(torch.Generator("cpu"), 2, 3, "test").tolist() == [[66, 67, 68, 0]] * 2
    with pytest.raises(ValueError, match="less than the split's 4 characters"):
        data.draw(torch.Generator("cpu"), 2, 4, "test")


def test_a_python_without_its_manual_says_what_to_install(manual, monkeypatch):
    manual({})
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "pydoc_data.topics", None)
    with pytest.raises(
        ModuleNotFoundError, match=r"came without pydoc_data.*; install the full standard library"
    ):
        data.texts("test")


def test_the_licence_is_named():
    assert "PSF License" in data.licence() and data.licence().endswith(".")
