"""What is stored of an output, and when a stored one stays: where nbval finds it equal to the new one."""

import base64
import io

import nbformat
import pytest
from PIL import Image

from lesson_lib.cli import outputs


def picture(colour, size=(40, 30), text="A square.", alt="A square.", touched=0):
    image = Image.new("RGB", size, colour)
    for i in range(touched):
        image.putpixel((i % size[0], i // size[0]), (0, 0, 0))
    file = io.BytesIO()
    image.save(file, "png")
    png = base64.b64encode(file.getvalue()).decode()
    data = {"image/png": png, "text/plain": text}
    return nbformat.v4.new_output("display_data", data=data, metadata={"image/png": {"alt": alt}})


def said(text):
    return nbformat.v4.new_output("stream", name="stdout", text=text)


@pytest.mark.parametrize(
    "stored, new, ignored, kept",
    [
        ([said("1\n")], [said("1\n")], False, True),
        ([said("1\n")], [said("2\n")], False, False),
        ([said("1\n")], [said("2\n")], True, True),
        ([said("1\n")], [], True, False),
        ([picture("red")], [picture("blue")], False, True),
        ([picture("red")], [picture("red", text="A circle.")], False, False),
        ([picture("red", alt="")], [picture("red")], False, False),
        ([said("1\n")], [picture("red")], False, False),
    ],
)
def test_an_output_is_kept_where_nbval_finds_it_equal(stored, new, ignored, kept):
    assert outputs.may_keep(stored, new, ignored=ignored) is kept


def test_our_comparison_is_nbvals_own():
    """The same verdict as nbval's compare_outputs, on each pair of outputs here."""
    from types import SimpleNamespace

    from nbval.plugin import IPyNbCell, nocolors

    skipped = ("metadata", "traceback", "prompt_number", "output_type", "name", "execution_count")
    judge = SimpleNamespace(
        parent=SimpleNamespace(skip_compare=(*skipped, outputs.WIDGET, "image/png", "image/jpeg")),
        colors=nocolors,
        sanitize=lambda text: text,
        format_output_compare=lambda *_: None,
    )
    widget = nbformat.v4.new_output(
        "display_data", data={outputs.WIDGET: {"model_id": "1"}, "text/plain": "A square."}
    )
    still = nbformat.v4.new_output("display_data", data={"text/plain": "A square."})
    error = nbformat.v4.new_output("error", ename="NameError", evalue="x", traceback=["one"])
    pool = [[], [said("1\n")], [said("2\n")], [picture("red")], [picture("blue")], [widget], [still], [error]]
    for one in pool:
        for two in pool:
            equal = outputs.seen_by_nbval(one) == outputs.seen_by_nbval(two)
            assert equal == IPyNbCell.compare_outputs(judge, two, one), (one, two)


@pytest.mark.parametrize(
    "new, alike",
    [
        (picture("red"), True),
        (picture("red", touched=2), True),
        (picture("red", touched=200), False),
        (picture("blue"), False),
        (picture("red", size=(41, 30)), False),
    ],
    ids=["the same", "two pixels", "many pixels", "another colour", "another size"],
)
def test_a_kept_picture_that_looks_different_is_noticed(new, alike):
    assert outputs.looks_alike(picture("red").data["image/png"], new.data["image/png"]) is alike


def test_one_changed_digit_in_a_large_picture_is_noticed():
    wide = {"size": (600, 400)}
    digit = picture("red", **wide)
    image = Image.new("RGB", wide["size"], "red")
    image.paste((0, 0, 0), (300, 200, 306, 208))  # 48 of 240,000 pixels
    file = io.BytesIO()
    image.save(file, "png")
    changed = base64.b64encode(file.getvalue()).decode()
    assert not outputs.looks_alike(digit.data["image/png"], changed)
    assert outputs.looks_alike(digit.data["image/png"], picture("red", touched=8, **wide).data["image/png"])


def test_outputs_are_stored_without_what_a_machine_decides():
    widget = nbformat.v4.new_output(
        "execute_result", data={outputs.WIDGET: {}, "text/plain": "A."}, execution_count=9
    )
    error = nbformat.v4.new_output("error", ename="NameError", evalue="x", traceback=["File /somewhere"])
    made = outputs.normal_outputs([said("1\n"), widget, said("2\n"), error], count=4)
    assert [output.output_type for output in made] == ["stream", "execute_result", "error"]
    assert made[0].text == "1\n2\n" and made[1].data == {"text/plain": "A."} and made[1].execution_count == 4
    assert made[2].traceback == ["NameError: x"]
