"""Documentation as text to classify: files in one split only, names hidden, whatever the versions say."""

import sys

import numpy as np
import pytest
import torch

from lesson_lib.chapters.c11_efficient_attention import passages as data
from lesson_lib.data.topics import CHARACTERS

LONG = "The quick brown fox jumps over the lazy dog and then rests"  # longer than QUOTED
OWN = "".join(chr(ord("a") + i % 26) for i in range(130))  # a passage as short as may be
MODULES = {
    split: [m for m in (f"package.m{i}" for i in range(90)) if data.split_of(m) == split]
    for split in data.SPLITS
}


def generator(seed=0):
    return torch.Generator("cpu").manual_seed(seed)


def words(tokens):
    return "".join(CHARACTERS[i] for i in tokens)


def forget():
    for cached in (data._kept, data._stream):
        cached.cache_clear()


@pytest.fixture
def installed(monkeypatch):
    """Give the module other packages' docstrings: `installed({package: {module: [text]}})`."""

    def use(found):
        forget()
        monkeypatch.setattr(data, "_docstrings", lambda package: found.get(package, {}))

    yield use
    monkeypatch.undo()
    forget()


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of source files that is found as numpy is: `package({path: source})`."""

    def build(files):
        for path, source in files.items():
            target = tmp_path / "madeup" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(source, encoding="utf-8")
        monkeypatch.syspath_prepend(str(tmp_path))
        return "madeup"

    return build


def test_the_real_splits_share_no_file_and_hold_each_package():
    modules = {
        split: {m for some in data.texts(split).values() for m in some if some[m]} for split in data.SPLITS
    }
    assert modules["training"].isdisjoint(modules["test"] | modules["validation"])
    assert modules["test"].isdisjoint(modules["validation"])
    for split in data.SPLITS:
        assert tuple(data.texts(split)) == data.PACKAGES
        for package, some in data.texts(split).items():
            assert all(m.split(".")[0] == package and data.split_of(m) == split for m in some)
            size = sum(len(text) for passages in some.values() for text in passages)
            assert size > {"training": 50_000}.get(split, 10_000), (split, package)


def test_the_real_splits_share_no_40_characters_in_a_row():
    def runs(split):
        found = set()
        for some in data.texts(split).values():
            for paragraph in "\n\n".join(t for passages in some.values() for t in passages).split("\n\n"):
                line = " ".join(paragraph.split())
                found |= {hash(line[i : i + data.QUOTED]) for i in range(len(line) - data.QUOTED + 1)}
        return found

    test, validation = runs("test"), runs("validation")
    assert test.isdisjoint(validation) and len(test) > 50_000
    assert runs("training").isdisjoint(test | validation)


def test_the_real_passages_hide_their_names_and_keep_to_the_alphabet():
    told = ("numpy", "scipy", "sklearn", "networkx", "scikit", "matplotlib")
    for split in data.SPLITS:
        for some in data.texts(split).values():
            for text in (text for passages in some.values() for text in passages):
                assert len(text) >= data.SHORTEST and set(text) <= set(CHARACTERS)
                assert not [name for name in told if name in text.lower()]
                assert not [short for short in ("np.", "nx.", "plt.") if f" {short}" in text]
    assert data.HIDDEN in str(data.texts("test"))


@pytest.mark.parametrize("raw, expected", [
    (">>> import numpy as np", ">>> import *** as ***"),
    ("G = nx.path_graph(3); np.nx_inp", "G = ***.path_graph(3); ***.***_inp"),
    ("from scikit-learn, SciPy and NumPy", "from ***, *** and ***"),
    ("to_networkx_graph, numpydoc", "to_***_graph, ***doc"),
    ("sp.linalg, sparse, spline", "***.linalg, sparse, spline"),
    ("plt.show(), mpl_toolkits, matplotlib", "***.show(), ***_toolkits, ***"),
    ("input, inp, snp, 2np, pandas", "input, inp, snp, 2np, ***"),
    ("torch.Tensor, pytorch", "***.Tensor, ***"),
])  # fmt: skip
def test_names_are_hidden_and_words_that_hold_a_short_one_are_not(raw, expected):
    assert data.hide(raw) == expected


def test_a_modules_split_depends_on_its_name_only():
    import binascii

    for module in (f"package.m{i}" for i in range(90)):
        rest = binascii.crc32(module.encode()) % 5
        assert data.split_of(module) == ("test", "validation", "training", "training", "training")[rest]
    assert min(map(len, MODULES.values())) > 9 and len(MODULES["training"]) > 40


def test_what_a_test_file_says_is_in_no_other_split(installed):
    test, validation, training = (MODULES[split][0] for split in ("test", "validation", "training"))
    broken = LONG.replace(" fox", "\n    fox")
    said = {test: [f"{LONG}\n\n{OWN.upper()}"], validation: [f"He said: {broken}!\n\n{OWN[::-1]}"]}
    of_training = {training: [f"{OWN}\n\nSo: {LONG}, and on\n\nSee also: here"]}
    installed({"numpy": said, "scipy": of_training})
    assert data.texts("test")["numpy"] == {test: (f"{LONG}\n\n{OWN.upper()}",)}
    assert data.texts("validation")["numpy"] == {validation: (OWN[::-1],)}
    assert data.texts("training")["scipy"] == {training: (f"{OWN}\n\nSee also: here",)}
    assert data.texts("training")["numpy"] == {} == data.texts("test")["networkx"]


def test_fresh_paragraphs_agree_with_sets_of_strings():
    random = np.random.default_rng(0)
    paragraphs, rank = [], random.integers(3, size=67)
    for _ in rank:  # few phrases, so that many runs are shared; lengths around QUOTED
        parts = random.choice(["alpha beta gamma delta", "epsilon zeta eta", "theta iota", "kappa"], size=3)
        paragraphs.append(" ".join(parts)[: random.integers(30, 60)])
    paragraphs += ["", "x"]
    rank = np.r_[rank, 0, 2]

    def runs(text):
        return {text[i : i + data.QUOTED] for i in range(len(text) - data.QUOTED + 1)}

    earlier = [[other for other, r in zip(paragraphs, rank, strict=True) if r < own] for own in rank]
    expected = [
        all(runs(text).isdisjoint(runs(other)) for other in others)
        for text, others in zip(paragraphs, earlier, strict=True)
    ]
    assert data._fresh(paragraphs, rank).tolist() == expected
    assert {True, False} == set(expected)
    assert data._fresh([], np.zeros(0, dtype=int)).tolist() == []


DOC = "A docstring that is long enough to be a passage of its own: " + OWN
SOURCE = f'''
"""{DOC} module"""
class Shape:
    r"""{DOC} class \\d"""
    def area(self):
        """{DOC} method"""
        def inner():
            """{DOC} inner"""
    async def wait(self):
        """{DOC} waiting"""
def short():
    """Too short."""
raise SystemExit("nobody imports this")
'''


def test_docstrings_are_read_and_nothing_is_imported(package, monkeypatch):
    name = package({
        "__init__.py": "raise SystemExit('imported')", "shape.py": SOURCE,
        "sub/deep.py": f'"""{DOC} deep"""\nx = "\\d"\n', "tests/test_shape.py": f'"""{DOC} test"""',
        "broken.py": f'"""{DOC} broken"""\nprint "two"',
        "large.py": f'"""{DOC} large"""\n' + "# padding\n" * (data.LARGEST // 10),
    })  # fmt: skip
    found = data._docstrings(name)
    assert found["madeup.shape"] == [f"{DOC} module", f"{DOC} class \\d", f"{DOC} method"]
    assert found["madeup.sub.deep"] == [f"{DOC} deep"]
    assert not {"madeup.broken", "madeup.large", "madeup.tests.test_shape"} & set(found)
    assert name not in sys.modules


def test_windows_are_pieces_of_their_package_and_short_ones_are_filled_with_blanks(installed):
    module = MODULES["test"][0]
    texts = {package: [f"{i} {OWN}", f"{OWN}{i}\n!"] for i, package in enumerate(data.PACKAGES)}
    installed({package: {module: some} for package, some in texts.items()})
    tokens, answer = data.draw("test", 67, generator(), n=149)
    assert tokens.shape == (67, 149) and tokens.dtype == torch.long and answer.shape == (67,)
    assert tokens.device.type == answer.device.type == "cpu"
    for row, label in zip(tokens.tolist(), answer.tolist(), strict=True):
        assert words(row) in [text.ljust(149) for text in texts[data.PACKAGES[label]]]
    short = data.draw("test", 67, generator(), n=7)
    for row, label in zip(short.tokens.tolist(), short.answer.tolist(), strict=True):
        assert any(words(row) in text for text in texts[data.PACKAGES[label]])


def test_each_window_and_each_package_may_come(installed):
    module = MODULES["validation"][0]
    installed({package: {module: [OWN[:128]]} for package in data.PACKAGES})
    tokens, answer = data.draw("validation", 4001, generator(), n=121)
    assert {words(row) for row in tokens.tolist()} == {OWN[i : i + 121] for i in range(8)}
    assert (answer.bincount(minlength=4) / 4001 - 0.25).abs().max() < 0.03
    whole = data.draw("validation", 5, generator(), n=128).tokens
    assert {words(row) for row in whole.tolist()} == {OWN[:128]}


@pytest.mark.parametrize("call, said", [
    (lambda: data.draw("dev", 3, generator()), "split must be one of training, validation, test, got 'dev'"),
    (lambda: data.draw("test", True, generator()), "batch .* got True"),
    (lambda: data.draw("test", 3, generator(), n=None), "n must be .* got None"),
    (lambda: data.hide(None), "text must be a str, got NoneType"),
])  # fmt: skip
def test_bad_input_is_answered_with_a_sentence(no_shape_hook, call, said):
    with pytest.raises((ValueError, TypeError), match=said):
        call()


def test_a_missing_package_says_what_to_install(monkeypatch):
    monkeypatch.setattr(data, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"sklearn is missing.*; install scikit-learn"):
        data._docstrings("sklearn")
