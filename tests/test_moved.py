"""What the first edition's notebooks import is still found, and is the very module that has the new name."""

import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from lesson_lib import charts, moved
from lesson_lib.chapters.c07_attention_vs_cnn import figures, vit
from lesson_lib.chapters.c07_attention_vs_cnn.experiments import vit as trained
from lesson_lib.chapters.c07_attention_vs_cnn.pixels_explorer import PixelExplorer

IMPORTS = tomllib.loads(Path(__file__).with_name("first_edition_imports.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("module", IMPORTS)
def test_what_the_first_edition_imports_is_there(module):
    session: dict = {}
    names = IMPORTS[module].split()
    exec(f"from {module} import {', '.join(names)}", session)
    assert set(names) <= set(session)


@pytest.mark.parametrize(
    "old, new",
    [
        ("lesson_lib.plots", charts),
        ("lesson_lib.plots.picture", charts.picture),
        ("lesson_lib.plots.lesson_07", figures),
        ("lesson_lib.models.vit", vit),
        ("lesson_lib.experiments.vit", trained),
        ("lesson_lib.widgets.pixels", sys.modules[PixelExplorer.__module__]),
        ("lesson_lib.checks.lesson_07", import_module("lesson_lib.chapters.c07_attention_vs_cnn.exercises")),
    ],
)
def test_an_old_name_is_the_new_module_and_no_copy(old, new):
    spec = new.__spec__
    assert import_module(old) is new and new.__spec__ is spec and new.__name__ == spec.name


def test_a_widget_of_one_chapter_is_found_where_all_of_them_were():
    from lesson_lib import widgets

    assert widgets.PixelExplorer.__name__ == "PixelExplorer"
    assert widgets.PixelExplorer.__module__ == PixelExplorer.__module__


@pytest.mark.parametrize(
    "name",
    [
        *("lesson_lib.attention", "lesson_lib.data.dates", "lesson_lib.charts.picture"),
        *("lesson_lib.widgets.explorer", "lesson_lib.checks.engine", "lesson_lib.models.tagger"),
        *("lesson_lib", "torch.plots", "lesson_lib.plots.a.b", "lesson_lib.widgets.*"),
        *("lesson_lib.plots.nothing", "lesson_lib.checks.lesson_99"),
    ],
)
def test_what_has_not_moved_is_left_alone(name):
    assert moved.new_name(name) is None


def test_a_name_that_nobody_ever_had_is_refused_as_ever():
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'lesson_lib\.plots\.lesson_77'"):
        import_module("lesson_lib.plots.lesson_77")
    with pytest.raises(ImportError, match=r"cannot import name 'NoExplorer' from 'lesson_lib\.widgets'"):
        exec("from lesson_lib.widgets import NoExplorer")


def test_the_library_itself_uses_no_old_name():
    """Else a picture could be there twice; a fresh interpreter imports all, and the finder is never asked."""
    code = (
        "import pkgutil, lesson_lib\n"
        "from lesson_lib import moved\n"
        "asked = []\n"
        "moved.Moved.create_module = lambda self, spec: asked.append(spec.name)\n"
        "for found in pkgutil.walk_packages(lesson_lib.__path__, 'lesson_lib.'):\n"
        "    if '.cli' not in found.name and not found.name.endswith(('__main__', 'speech_maker')):\n"
        "        __import__(found.name)\n"
        "assert not asked, asked\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
