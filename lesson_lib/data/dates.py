"""Dates as fifteen languages write them, and as ISO 8601 writes them: "3. märz 2021" becomes "2021-03-03".

Babel brings the languages' own patterns with it (CLDR data); nothing is downloaded. All fifteen count days in
the Gregorian calendar and with the digits 0 to 9, and where a month is a number it stands behind the day, so
that a text means one day only. Most write day, month, year; English starts with the month, Hungarian and
Latvian with the year, and the weekday, where there is one, stands in front or behind. Several dates in a row
may be in several languages.

The days from 1950 to 2049 are split once and for all: a tenth for testing, a tenth for validation, the rest
for training. No text of a test day, in any language, is ever trained on. Writing a date takes about ten
microseconds, so it is done on demand.
"""

import re
from calendar import monthrange
from datetime import date
from functools import cache
from typing import NamedTuple

import torch
from babel import Locale
from babel.dates import format_date
from jaxtyping import Int
from torch import Tensor

from lesson_lib import require

LOCALES = ("cs", "da", "de", "en", "es", "fi", "fr", "hu", "it", "lv", "nl", "pl", "pt", "sv", "tr")
CHINESE = "zh"  # a sixteenth language, for the one experiment that asks for it
STYLES = ("medium", "long", "full")  # such as: mar 3, 2021 / march 3, 2021 / wednesday, march 3, 2021
SPLITS = ("test", "validation", "training")
SEPARATOR = ";"
FIRST, LAST = date(1950, 1, 1), date(2049, 12, 31)


class Pair(NamedTuple):
    """Dates as people write them, and the same dates as ISO 8601 writes them."""

    source: str
    target: str


class Reading(NamedTuple):
    """A day that a text means, and a language and a style that write it exactly so."""

    day: date
    locale: str
    style: str


def written(day: date, locale: str, style: str) -> str:
    """The day in that language, in lower case, with plain spaces.

    Raises TypeError where `day` is no date, ValueError for a locale or style that is not in LOCALES, CHINESE
    or STYLES.

    >>> written(date(2021, 3, 3), "de", "long"), written(date(2021, 3, 3), "en", "full")
    ('3. märz 2021', 'wednesday, march 3, 2021')
    """
    if not isinstance(day, date):
        raise TypeError(
            f"day must be a date, got {type(day).__name__}; make one with datetime.date(2021, 3, 3)"
        )
    require.one_of((*LOCALES, CHINESE), locale=locale)
    require.one_of(STYLES, style=style)
    return " ".join(format_date(day, style, locale=locale).lower().split())


def language(locale: str) -> str:
    """The language's name in English.

    >>> language("de")
    'German'
    """
    return Locale.parse(locale).get_language_name("en")


def readings(text: str) -> list[list[Reading]]:
    """For each date of a row, all its readings: which day it means, and who writes it so; an empty list where
    it is no date of ours.

    Upper case and spaces more or less do not count. Years have four digits; those before 1950 and after 2049
    are read too.
    Raises TypeError where `text` is no text.

    >>> [[tuple(reading)[1:] for reading in one] for one in readings("Mar 3, 2021; 31. Februar 2021")]
    [[('en', 'medium')], []]
    """
    if not isinstance(text, str):
        raise TypeError(f"text must be a str, got {type(text).__name__}; such as '3. märz 2021'")
    return [_read(" ".join(part.lower().split())) for part in text.split(SEPARATOR)]


@cache
def characters(locales: tuple[str, ...] = LOCALES) -> str:
    """Every character that occurs in dates of these languages and in answers, sorted. A leap year shows all
    the months, weekdays and days."""
    year = range(date(2020, 1, 1).toordinal(), date(2021, 1, 1).toordinal())
    texts = (written(date.fromordinal(n), locale, s) for n in year for locale in locales for s in STYLES)
    return "".join(sorted(set("0123456789- ").union(SEPARATOR, *texts)))


@cache
def days(split: str) -> Int[Tensor, " days"]:
    """The days of a split ("test", "validation", "training") as Python's day numbers, on the CPU.

    Raises ValueError for another name.
    """
    require.one_of(SPLITS, split=split)
    count = LAST.toordinal() - FIRST.toordinal() + 1
    order = torch.randperm(count, generator=torch.Generator("cpu").manual_seed(0), device="cpu")
    tenth = count // 10
    parts = order.split([tenth, tenth, count - 2 * tenth])
    return FIRST.toordinal() + parts[SPLITS.index(split)]


def draw(
    generator: torch.Generator,
    count: int,
    *,
    dates: int = 1,
    split: str = "training",
    locales: tuple[str, ...] = LOCALES,
) -> list[Pair]:
    """`count` pairs, each of `dates` dates in a row; day, language (of `locales`) and style of every date are
    drawn on their own.

    Raises ValueError where `count` or `dates` is less than 1, and for an unknown split.
    """
    require.whole(count=count, dates=dates)

    def pick(choices: int) -> list[list[int]]:
        return torch.randint(choices, (count, dates), generator=generator, device="cpu").tolist()

    known = days(split).tolist()
    rows = zip(pick(len(known)), pick(len(locales)), pick(len(STYLES)), strict=True)
    return [
        _pair(*([names[i] for i in row] for names, row in zip((known, locales, STYLES), drawn, strict=True)))
        for drawn in rows
    ]


def _read(text: str) -> list[Reading]:
    """Readings of one date. Every language writes day and year as numbers, so that only the month is to be
    tried."""
    numbers = re.findall("[0-9]+", text)
    if len(numbers) > 3:
        return []
    years = {int(number) for number in numbers if len(number) == 4 and number[0] != "0"}
    numbered = {int(number) for number in numbers if len(number) <= 2} & set(range(1, 32))
    possible = [(y, m, d) for y in years for m in range(1, 13) for d in numbered if d <= monthrange(y, m)[1]]
    return [
        Reading(day, locale, style)
        for day in sorted(date(*each) for each in possible)
        for locale in LOCALES
        for style in STYLES
        if written(day, locale, style) == text
    ]


def _pair(numbers: list[int], locales: list[str], styles: list[str]) -> Pair:
    chosen = [date.fromordinal(number) for number in numbers]
    texts = map(written, chosen, locales, styles)
    return Pair(f"{SEPARATOR} ".join(texts), SEPARATOR.join(day.isoformat() for day in chosen))
