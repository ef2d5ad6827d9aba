"""A version is one everywhere, and dated once it is given."""

import pytest

import lesson_lib
from tools import release

CITED = "cff-version: 1.2.0\nversion: 2.1.0\ndate-released: 2027-01-02\nlicense: MIT\n"


@pytest.fixture
def root(tmp_path):
    (tmp_path / "CHANGELOG.md").write_text("# What changed\n\n## 2.1.0 · 2027-01-02\n\n- x\n", "utf-8")
    (tmp_path / "CITATION.cff").write_text(CITED, "utf-8")
    return tmp_path


def test_ours_agree():
    assert release.disagreements(version=lesson_lib.__version__) == []


@pytest.mark.parametrize("version", ["2.1.0", "2.1.0.dev0"])
def test_what_agrees_is_let_through(root, version):
    assert release.disagreements(root, version) == []


def test_a_changelog_that_is_behind_is_named(root):
    assert "begins with 2.1.0, not with 2.2.0" in " ".join(release.disagreements(root, "2.2.0.dev0"))


@pytest.mark.parametrize("old, new", [("2.1.0", "2.0.0"), ("2027-01-02", "2027-01-01")])
def test_a_citation_of_another_version_or_day_is_named(root, old, new):
    (root / "CITATION.cff").write_text(CITED.replace(old, new), "utf-8")
    (found,) = release.disagreements(root, "2.1.0")
    assert found.startswith("CITATION.cff has no line") and old in found
    assert release.disagreements(root, "2.1.0.dev0") == [], "not cited yet"
