"""Each test of the capstone holds for the reference, and fails for a mistake that a learner makes."""

import ast
import re
from pathlib import Path

import pytest

from lesson_lib.chapters.c14_capstone import judge, stages
from lesson_lib.cli import course

REFERENCE = Path(__file__).with_name("reference.py").read_text(encoding="utf-8")
WRITTEN = "A Wibkat is a class. The Wibk|at class of the same of the same of the "

# The text that is replaced, and by what; the stage, the test that fails, and words of its sentence.
MISTAKES = [
    (" / math.sqrt(query.shape[-1])", "", 1, "properties of attention", "1/sqrt(d_k) is missing"),
    ("weights, 0.0) @ value", "weights, weights) @ value", 1, "properties of attention", "gives nan"),
    ("masked_fill(~mask, -torch.inf)", "masked_fill(~mask, -1e9)", 1, "properties of attention", "write -inf"),
    ("masked_fill(~mask,", "masked_fill(mask,", 1, "properties of attention", "opposite polarity"),
    ("scores.softmax(-1) @ value\n    weights", "scores.softmax(-2) @ value\n    weights", 1, "equal to torch's", "no mask"),
    ("query @ key.mT", "query @ key.T", 1, "equal to torch's", "stops with"),
    (
        "w(y).unflatten(-1, (heads, -1)).transpose(1, 2)",
        "w(y).view(len(y), heads, y.shape[1], -1)",
        2,
        "equal to nn.MultiheadAttention",
        "you split by a view alone",
    ),
    ("mask = mask[:, None]", "mask = mask", 2, "equal to nn.MultiheadAttention", "stops with"),
    ("self.w_value, memory,", "self.w_value, x,", 2, "equal to nn.MultiheadAttention", "stops with"),
    ("return self.w_output(attention", "return (attention", 2, "equal to nn.MultiheadAttention", "W_o is missing"),
    (".transpose(1, 2).flatten(2))\n\n\n# --- Stage 3", ".reshape(x.shape))\n\n\n# --- Stage 3", 2, "equal to nn.MultiheadAttention", "swapping heads and tokens back"),
    ("mask.dim() == 3:", "mask.dim() == 3 and False:", 2, "equal to nn.MultiheadAttention", "stops with"),
    (
        "k.repeat_interleave(shared, 1), v.repeat_interleave(shared, 1)",
        "k.repeat(1, shared, 1, 1), v.repeat(1, shared, 1, 1)",
        2,
        "shared keys, equal to torch's",
        "differ",
    ),
    ("q, k = turn(q), turn(k)", "k = turn(k)", 2, "queries and keys are turned", "queries AND keys"),
    ("q, k = turn(q), turn(k)", "q, k, v = turn(q), turn(k), turn(v)", 2, "queries and keys are turned", "values are turned"),
    ("[angles.sin(), angles.cos()]", "[angles.cos(), angles.sin()]", 3, "sinusoids", "two rows of width 4"),
    ("torch.arange(0, d, 2) / d)", "torch.arange(0, d, 2) / (2 * d))", 3, "sinusoids", "differ"),
    ("a, b = x.chunk(2, -1)", "a, b = x[..., ::2], x[..., 1::2]", 3, "a turn, equal to complex numbers", "differ"),
    ("return torch.cat([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], -1)", "a, b = x[..., ::2], x[..., 1::2]\n    return torch.stack([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], -1).flatten(-2)", 3, "a turn, equal to complex numbers", "your pairs are the columns 2j"),
    (
        "place = torch.arange(n, dtype=x.dtype, device=x.device)",
        "place = torch.arange(n, dtype=x.dtype, device=x.device) ** 2",
        3,
        "scores know distances alone",
        "rows 1 apart",
    ),
    (
        "return x + self.outer(torch.relu(self.inner(self.norms[-1](x))))",
        "return self.outer(torch.relu(self.inner(self.norms[-1](x))))",
        4,
        "equal to nn.TransformerEncoderLayer",
        "no mask",
    ),
    ("self.own(self.norms[0](x), mask=mask)", "self.own(self.norms[0](x))", 4, "equal to nn.TransformerEncoderLayer", "causal"),
    ("memory, mask=memory_mask)", "memory)", 4, "equal to nn.TransformerDecoderLayer", "memory_mask?"),
    ("(self.norms[1](x), memory,", "(self.norms[0](x), memory,", 4, "equal to nn.TransformerDecoderLayer", "differ"),
    (".tril()\n        x = self.rows", "\n        x = self.rows", 5, "does not read ahead", "under which mask"),
    ("memory_mask=real.expand(-1, n, -1)", "memory_mask=None", 5, "padding is nobody", "two looks meet padding"),
    ("mask=real.expand(-1, source.shape[1], -1)", "mask=None", 5, "padding is nobody", "two looks"),
    ("x = self.rows(source)", "x = self.signs(source)", 5, "order counts", "missing in the encoder"),
    ("self.norms[1](y) @ self.signs.weight.T", "self.norms[1](y)", 5, "logits", "of shape (2, 4, 11)"),
    ("self.norms[1](y) @ self.signs.weight.T", "(self.norms[1](y) @ self.signs.weight.T).softmax(-1)", 5, "logits", "shares that sum to 1"),
    ('turn=rotate)\n        y = norm', ')\n        y = norm', 5, "opens the model of 13c", "differ"),
    ('("gate", "up", "down")', '("up", "gate", "down")', 5, "opens the model of 13c", "differ"),
]  # fmt: skip


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    path = tmp_path_factory.mktemp("capstone") / "capstone.py"
    path.write_text(REFERENCE, encoding="utf-8")
    return path


@pytest.mark.parametrize("number", range(1, 6))
def test_the_reference_passes_every_stage(number, reference):
    report = judge.stage(number, reference)
    assert report.passed, report
    assert list(report.found) == list(stages.STAGES[number - 1].tests)
    if number == 5:
        assert report.more == {"your code writes": WRITTEN}


@pytest.mark.parametrize("old, new, number, test, words", MISTAKES)
def test_a_mistake_is_found_and_told(old, new, number, test, words, tmp_path):
    assert REFERENCE.count(old) == 1, f"{old!r} stands {REFERENCE.count(old)} times"
    path = tmp_path / "capstone.py"
    path.write_text(REFERENCE.replace(old, new), encoding="utf-8")
    report = judge.stage(number, path)
    assert not report and words in report.found[test], report


def test_every_test_of_every_stage_is_failed_by_a_mistake():
    wanted = {(stage.number, name) for stage in stages.STAGES for name in stage.tests}
    assert {(number, test) for _, _, number, test, _ in MISTAKES} == wanted


def test_post_norm_is_called_by_its_name(tmp_path):
    old = REFERENCE[REFERENCE.index("        x = x + self.own(self") : REFERENCE.index("# --- Stage 5")]
    new = (
        "        x = self.norms[0](x + self.own(x, mask=mask))\n"
        "        return self.norms[-1](x + self.outer(torch.relu(self.inner(x))))\n\n\n"
    )
    path = tmp_path / "capstone.py"
    path.write_text(REFERENCE.replace(old, new), encoding="utf-8")
    report = judge.stage(4, path)
    assert "that is post-norm" in report.found["equal to nn.TransformerEncoderLayer"]


def test_the_reference_fills_the_file_that_a_learner_gets():
    """The same functions, classes and arguments, in the same order."""

    def signatures(text):
        found = [part for part in ast.walk(ast.parse(text)) if isinstance(part, ast.FunctionDef)]
        return {part.name: ast.dump(part.args) for part in found if part.name not in ("rows", "norm")}

    assert signatures(REFERENCE) == signatures(judge.EMPTY.read_text(encoding="utf-8"))


def test_the_core_path_alone_is_needed():
    """The parts that the file names are core parts."""
    text = judge.EMPTY.read_text(encoding="utf-8")
    listed = re.findall(r"\bparts? ((?:\d\d[a-e]?(?:, (?:and )?| and )?)+)", text)
    parts = {part for some in listed for part in re.findall(r"\d\d[a-e]?", some)}
    assert {"02a", "04", "06b", "13c"} <= parts
    assert parts <= {lesson.number for lesson in course.lessons() if lesson.core}
