"""Dates in fifteen languages: what they look like, that each text means one day, and that no test day is
trained on."""

from datetime import date

import pytest
import torch
from babel import Locale

from lesson_lib.data import dates
from lesson_lib.data.dates import (
    LOCALES,
    SEPARATOR,
    STYLES,
    characters,
    days,
    draw,
    language,
    readings,
    written,
)

COUNT, IN_A_ROW = 29, 3
YEAR = [date.fromordinal(date(2020, 1, 1).toordinal() + i) for i in range(366)]


@pytest.mark.parametrize(
    "locale, style, text",
    [
        ("de", "medium", "03.03.2021"), ("de", "full", "mittwoch, 3. märz 2021"),
        ("en", "medium", "mar 3, 2021"), ("cs", "medium", "3. 3. 2021"),
        ("fi", "long", "3. maaliskuuta 2021"), ("hu", "full", "2021. március 3., szerda"),
        ("pt", "long", "3 de março de 2021"), ("tr", "full", "3 mart 2021 çarşamba"),
    ],
)  # fmt: skip
def test_a_day_is_written_as_the_language_writes_it(locale, style, text):
    assert written(date(2021, 3, 3), locale, style) == text


def test_fifteen_languages_count_with_the_same_digits():
    assert len(set(LOCALES)) == 15
    assert {Locale.parse(name).default_numbering_system for name in LOCALES} == {"latn"}


def test_a_text_means_one_day_whatever_the_language():
    meant = {}
    for day in [*YEAR, *(day.replace(year=1957) for day in YEAR if (day.month, day.day) != (2, 29))]:
        for text in {written(day, locale, style) for locale in LOCALES for style in STYLES}:
            assert meant.setdefault(text, day) == day, text
            assert str(day.year) in text and str(day.day) in text and text == text.lower()
    assert not any("\xa0" in text or "\u202f" in text for text in meant)


def test_the_splits_share_no_day_and_hold_all():
    parts = {split: set(days(split).tolist()) for split in ("test", "validation", "training")}
    assert {split: len(part) for split, part in parts.items()} == {
        "test": 3652, "validation": 3652, "training": 29_221,
    }  # fmt: skip
    assert set.union(*parts.values()) == set(range(dates.FIRST.toordinal(), dates.LAST.toordinal() + 1))
    months = torch.tensor([date.fromordinal(n).month for n in parts["test"]]).bincount(minlength=13)[1:]
    assert months.min() > 200, "every month is tested"


@pytest.mark.parametrize("split", ["test", "validation", "training"])
def test_every_date_of_a_row_is_a_day_of_its_split(split):
    allowed = set(days(split).tolist())
    pairs = draw(torch.Generator("cpu").manual_seed(3), COUNT, dates=IN_A_ROW, split=split)
    assert len(pairs) == COUNT
    for source, target in pairs:
        meant = [date.fromisoformat(text) for text in target.split(SEPARATOR)]
        assert len(meant) == IN_A_ROW and all(day.toordinal() in allowed for day in meant)
        for text, day in zip(source.split(f"{SEPARATOR} "), meant, strict=True):
            assert text in {written(day, locale, style) for locale in LOCALES for style in STYLES}


def test_a_draw_is_repeated_by_its_seed_only_and_mixes_languages():
    one, same, other = (draw(torch.Generator("cpu").manual_seed(s), COUNT, dates=2) for s in (5, 5, 7))
    assert one == same != other
    shapes = {len(source) for source, _ in one}
    assert len(shapes) > 10, "texts of many lengths"


def test_characters_are_sorted_and_enough_for_every_text():
    known = characters()
    assert known == "".join(sorted(set(known))) and set("0123456789-; äşř") < set(known)
    for source, target in draw(torch.Generator("cpu").manual_seed(11), 500, dates=2, split="test"):
        assert set(source) | set(target) <= set(known)


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"count": 0}, "count must be a whole number >= 1, got 0"),
        ({"count": 2.0}, "count must be a whole number >= 1, got 2.0"),
        ({"count": None}, "count must be a whole number >= 1, got None"),
        ({"dates": 0}, "dates must be a whole number >= 1, got 0"),
        ({"dates": "two"}, "dates must be a whole number >= 1, got 'two'"),
        ({"split": "train"}, "split must be one of test, validation, training, got 'train'"),
        ({"split": None}, "split must be one of"),
    ],
)
def test_a_draw_that_cannot_be_made_gets_a_sentence(arguments, words, no_shape_hook):
    with pytest.raises(ValueError, match=words):
        draw(torch.Generator("cpu"), **{"count": 2} | arguments)


def test_a_day_that_cannot_be_written_gets_a_sentence(no_shape_hook):
    with pytest.raises(TypeError, match="day must be a date, got str"):
        written("2021-03-03", "de", "long")
    with pytest.raises(ValueError, match=r"locale must be one of cs, .*, got 'ar'"):
        written(date(2021, 3, 3), "ar", "long")
    with pytest.raises(ValueError, match="style must be one of medium, long, full, got 'short'"):
        written(date(2021, 3, 3), "de", "short")


def test_every_text_is_read_back_as_the_day_and_by_who_wrote_it():
    for day in (date(2020, 2, 29), date(1957, 11, 30), date(2021, 3, 3)):
        for locale in LOCALES:
            for style in STYLES:
                (found,) = readings(written(day, locale, style))
                assert (day, locale, style) in found and {reading.day for reading in found} == {day}


def test_dates_in_a_row_are_read_one_by_one_whatever_case_and_spaces():
    german, english = readings("  Mittwoch, 3.  MÄRZ 2021;MAR 3, 1987 ")
    assert german == [(date(2021, 3, 3), "de", "full")] and english == [(date(1987, 3, 3), "en", "medium")]
    assert readings("3 mars 2021") == [
        [(date(2021, 3, 3), locale, style) for locale in ("fr", "sv") for style in ("medium", "long")]
    ]
    assert readings("3. märz 1850") == [[(date(1850, 3, 3), "de", "long")]], "no such year was ever drawn"


@pytest.mark.parametrize(
    "text",
    [
        "", "hello", "31. februar 2021", "29. februar 2021", "donnerstag, 3. märz 2021", "2021-03-03",
        "3. märz 21", "3. märz", "3. märz 2021 2021", "1 2 3 4 5 6 7 8 9 2021 2022", "0000", "3. märz 0021",
        "٣. märz 2021", "3. mars 2021",
    ],
)  # fmt: skip
def test_what_no_language_writes_has_no_reading(text):
    assert readings(text) == [[]]
    assert readings(f"3. märz 2021; {text}") == [[(date(2021, 3, 3), "de", "long")], []]


@pytest.mark.parametrize("text", [None, 3, ["3. märz 2021"]])
def test_only_texts_are_read(text, no_shape_hook):
    with pytest.raises(TypeError, match="text must be a str, got"):
        readings(text)


def test_languages_have_names():
    assert [language(name) for name in ("de", "cs", "lv")] == ["German", "Czech", "Latvian"]
