"""`python -m lesson_lib new 05d name`: the files of a new part, and what is left to write."""

import argparse
import re
from pathlib import Path

from lesson_lib.cli import course
from lesson_lib.places import ROOT

SOURCE = '''# /// ideas
# ["a first idea"]
# says = "what one keeps of it"
# motive = "A puzzle in three sentences"
# shown = "words of the cell with its number or picture"
# action = 'predict("NAME_first")'
# ///

# %% [markdown]
r"""
{title}

A puzzle in three sentences, with the example that comes back at the discovery and at the end.

**Afterwards you can** ...

{about}

<details><summary>中文摘要 · Chinese</summary>
...
</details>
"""

# %% tags=["imports"]
import torch

from lesson_lib.attention import attend
from lesson_lib.course import *

warm_up()

# %%
predict("NAME_first")
'''
WORDS = """## NAME_first: A first prediction

What is asked, in one paragraph?

a) the right answer ✓
b) a wrong one — why it is wrong
c) another — why it is wrong, too

> why the right one is right
"""
CODE = '''"""What of the questions in STEM.md is code."""

from lesson_lib.checks.questions import Code

CODE: dict[str, Code] = {}
'''
ROW = """[parts.STEM]
title = "TITLE"
question = "what does it ask?"
minutes = 45
needs = "{LAST}"
edition = 3

"""
LEFT = """Left to write:
  its title, question, minutes, needs      course.toml
  eight to ten ideas, each with its cells  the head of notebooks/source/STEM.py
  minutes by section, prompts              notebooks/instructor/CHAPTER.md
  its slides with notes, if it is core     notebooks/source/decks/STEM.py
  two questions for a room, if it is core  notebooks/instructor/questions.md
  what proves it, and its claims           notebooks/source/evidence/CHAPTER_evidence.py, claims.toml
  other right answers, and tests           tests/chapters/
Then: make notebooks ARGS=NUMBER, and make test."""


def options(parser: argparse.ArgumentParser) -> None:
    """Give `parser` the options of `main`."""
    parser.add_argument("number", metavar="NUMBER", help="the next free one of its chapter, such as 05d")
    parser.add_argument("name", metavar="NAME", help="a word or some, joined by _, such as nope")


def main(number: str, name: str, *, root: Path = ROOT) -> int:
    """Make the files of a part, with a line for each; 0, or 1 after a sentence."""
    stem = f"{number}_{name}"
    chapter = next((c for c in course.chapters(root) if c.number == number[:2]), None)
    if not re.fullmatch(r"\d\d[a-z]_[a-z][a-z_]*", stem) or chapter is None:
        print(f"{stem!r} is no part of a chapter that there is; NUMBER is like 05d, NAME like nope")
        return 1
    last = chapter.lessons[-1].number
    free = last[:2] + chr(ord(last[2]) + 1) if last[2:] else ""
    if number != free:
        print(
            f"the next part of chapter {number[:2]} is {free}" if free else f"{last} has no letter: it is one"
        )
        return 1
    (folder,) = (root / "lesson_lib" / "chapters").glob(f"c{number[:2]}_*")
    if any(f"## {name}_first" in page.read_text("utf-8") for page in folder.parent.glob("*/questions/*.md")):
        print(f"a question is called {name}_first already; take another NAME")
        return 1
    fields = {"NAME": name, "STEM": stem, "TITLE": name.replace("_", " "), "CHAPTER": chapter.name}
    fields |= {"LAST": last, "NUMBER": number}

    def put(text: str) -> str:
        return re.sub("|".join(fields), lambda match: fields[match[0]], text)

    files = {
        root / "notebooks" / "source" / f"{stem}.py": put(SOURCE),
        folder / "questions" / f"{stem}.md": put(WORDS),
        folder / "questions" / f"{stem}.py": put(CODE),
    }
    for path, text in files.items():
        path.write_text(text, encoding="utf-8", newline="\n")
        print(f"made: {path.relative_to(root)}")
    table = root / "course.toml"
    text = table.read_text(encoding="utf-8")
    end = text.find("\n[chapters.", text.index(f"[parts.{chapter.lessons[-1].name}]")) + 1 or len(text) + 1
    before, after = text[:end].rstrip("\n") + "\n\n", text[end:]
    table.write_text((before + put(ROW) + after).rstrip("\n") + "\n", encoding="utf-8", newline="\n")
    print(f"a row in: {table.relative_to(root)}")
    course.chapters.cache_clear()
    print(put(LEFT))
    return 0
