"""The kinds of notebook, told by their names, in the course's order.

02a_soft_look_up, 03_matrix_form     part: chapter 02 has several, chapter 03 has one
00_start_here, 14_capstone, glossary page
evidence/02_scoring_evidence         evidence: a chapter's claims and long experiments
exercises/02_scoring                 exercise: assigned and graded
solutions/02_scoring                 solution: not for learners
decks/02a_soft_look_up               deck: slides of a part, for instructors
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

Kind = Literal["part", "page", "evidence", "exercise", "solution", "deck"]
FOLDERS: dict[str, Kind] = {
    "evidence": "evidence",
    "exercises": "exercise",
    "solutions": "solution",
    "decks": "deck",
}
PAGES = ("", "00", "14")  # numbers of pages that are no parts: how to begin, and what to write at the end
LEARNERS: tuple[Kind, ...] = ("part", "page", "evidence", "exercise")  # what a learner gets a copy of
KINDS: tuple[Kind, ...] = (*LEARNERS, "solution", "deck")


def kind_of(name: str) -> Kind:
    """The kind of a notebook, by its name below notebooks/. Raises ValueError for another folder.

    >>> kind_of("02a_soft_look_up"), kind_of("glossary"), kind_of("exercises/02_scoring.ipynb")
    ('part', 'page', 'exercise')
    """
    folder, _, stem = name.rpartition("/")
    if not folder:
        return "page" if number_of(stem) in PAGES else "part"
    if folder not in FOLDERS:
        raise ValueError(f"{name!r} lies in no folder of notebooks; there are {', '.join(FOLDERS)}")
    return FOLDERS[folder]


def number_of(name: str) -> str:
    """The number at the start of a name, with the letter of a part: 02a, 03; '' where there is none."""
    match = re.match(r"(?:.*/)?(\d\d[a-z]?)_", name)
    return match[1] if match else ""


def chapter_of(name: str) -> str:
    """The number of the chapter: 02 of 02a_soft_look_up and of exercises/02_scoring; '' where none is."""
    return number_of(name)[:2]


def fitting(asked: str, names: Iterable[str]) -> list[str]:
    """The names that `asked` chooses: 02_scoring or its file one notebook, 02a a part, 02 a whole chapter.

    >>> fitting("02", ["02a_soft_look_up", "03_matrix_form", "exercises/02_scoring"])
    ['02a_soft_look_up', 'exercises/02_scoring']
    """
    asked, names = re.sub(r"^(notebooks/)?(source/)?|\.(ipynb|py)$", "", asked), list(names)
    exact = [name for name in names if name == asked]
    same = [name for name in names if name.rpartition("/")[2] == asked]  # of exercises and solutions both
    return exact or same or [name for name in names if asked and asked in (number_of(name), chapter_of(name))]


def ordered(names: Iterable[str]) -> list[str]:
    """Names in the course's order: parts and pages, then folder by folder, in each by number."""
    folders = ["", *FOLDERS]
    return sorted(names, key=lambda name: (folders.index(name.rpartition("/")[0]), name))


def built(root: Path, kinds: Iterable[Kind] = LEARNERS) -> list[str]:
    """The notebooks of these kinds that are built in a repository: 02_scoring, exercises/02_scoring ..."""
    folder = root / "notebooks"
    folders = [folder, *(folder / name for name in FOLDERS)]
    names = [p.relative_to(folder).with_suffix("").as_posix() for f in folders for p in f.glob("*.ipynb")]
    return [name for name in ordered(names) if kind_of(name) in kinds]
