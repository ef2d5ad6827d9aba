"""The scale explorer says of memory and time what the laws and the ring say."""

import html

import pytest

from lesson_lib.chapters.c11_efficient_attention.scale_explorer import ScaleExplorer
from lesson_lib.measure import Law
from tests.explorers import stands_alone

LAWS = {
    "table": (Law(0, 0, 3e-8), Law(0, 0, 3e-5)),
    "tiles": (Law(0, 0, 2e-8), Law(6, 0.008, 0)),
    "window": (Law(0, 1e-5, 0), Law(0, 0.01, 0)),
}
LONGEST = {"table": 8192, "tiles": 16384, "window": 10**8}


def ring(n, machines):
    """Eight MiB for a thousand tokens of a machine's own, and one more."""
    return 1 + 8 * -(-n // machines) / 1000


def explorer(tokens=1_000_000, memory=80, machines=10):
    w = ScaleExplorer(LAWS, ring, longest=LONGEST)
    w.tokens.value, w.memory.value, w.machines.value = tokens, memory, machines
    return w


def test_a_still_picture_stands_for_it_and_nothing_is_loaded():
    assert stands_alone(explorer)
    assert explorer().still().caption == explorer().words()


def test_one_machine_and_a_ring_by_hand():
    found = explorer(tokens=100_000).alone()
    assert found["table"].mib == pytest.approx(300_000) and not found["table"].fits  # 80 GiB are 81,920 MiB
    assert found["tiles"].mib == pytest.approx(806) and found["tiles"].fits
    assert found["tiles"].seconds == pytest.approx(200) and found["window"].seconds == pytest.approx(1)
    assert [fit.far for fit in found.values()] == [True, False, False]  # 81,920 and 163,840 are ten times
    w = explorer(tokens=1_000_000, machines=20, memory=1)
    ring = w.shared()
    assert ring.mib == pytest.approx(401) and ring.fits and ring.far
    assert ring.seconds == pytest.approx(2e-8 * 1e12 / 20)
    assert w.needed() == 8  # 7 take 1,143.9 MiB each, 8 take 1,001
    w.machines.value = 5
    assert not w.shared().fits


def test_more_machines_than_tokens_do_not_help():
    w = explorer(tokens=1000, machines=100_000)
    assert w.shared().mib == ring(1000, 1000) and w.shared().seconds == pytest.approx(2e-8 * 1e6 / 1000)


def test_the_kind_whose_seconds_are_shared_can_be_chosen():
    w = ScaleExplorer(LAWS, ring, longest=LONGEST, exact="table")
    w.machines.value = 1
    assert w.shared().seconds == w.alone()["table"].seconds != w.alone()["tiles"].seconds


def test_what_fits_is_told_in_words():
    assert explorer(tokens=1_000_000, machines=10).words() == (
        "1 M tokens, one machine of 80 GiB: tiles and window fit; table (29 TiB) does not. A ring of 10"
        " machines holds 801 MiB in each, which fits; 1 is enough. Exact attention takes 33 min there,"
        " 5.6 h on one, without sending."
    )
    assert (
        explorer(tokens=1000, machines=1).words()
        == "1 k tokens, one machine of 80 GiB: all kinds fit. A ring of 1 machine holds 9.0 MiB in each,"
        " which fits; 1 is enough. Exact attention takes 20 ms there, without sending."
    )
    said = explorer(tokens=10**9, memory=1, machines=100).words()
    assert "nothing fits; the least is tiles with 7.6 TiB." in said
    assert "which does not fit; 7,821 are needed" in said


def test_no_number_of_machines_may_be_enough():
    w = ScaleExplorer(LAWS, lambda n, machines: 2000.0, longest=LONGEST)
    w.memory.value, w.tokens.value = 1, 1000
    assert w.needed() is None and "no number of machines is enough" in w.words()
    assert "does not fit (for no number)" in w.drawing.value


def test_the_law_behind_a_number_is_reached_by_keyboard():
    drawing = html.unescape(explorer().drawing.value)
    assert 'tabindex="0" aria-label="tiles, seconds: 2.0e-8 n²"' in drawing
    assert 'aria-label="tiles, MiB with its inputs: 6.0 + 0.0080 n"' in drawing


def test_names_are_escaped():
    w = ScaleExplorer({"<i>": LAWS["tiles"]}, ring, longest={"<i>": 9}, exact="<i>")
    assert "<i>" not in w.drawing.value and "&lt;i&gt;" in w.drawing.value
