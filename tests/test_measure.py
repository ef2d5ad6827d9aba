"""Measuring: known amounts of memory and time."""

import time

import pytest
import torch

from lesson_lib.measure import cpu_seconds, growth_exponent, peak_mib


def test_peak_counts_what_is_held_at_once():
    mib = 2**20 // 4  # float32 numbers in one MiB
    assert peak_mib(lambda: torch.empty(5 * mib)) == pytest.approx(5, abs=0.01)
    assert peak_mib(lambda: [torch.empty(2 * mib) for _ in range(3)]) == pytest.approx(6, abs=0.01)

    def one_after_the_other():
        for _ in range(3):
            torch.empty(2 * mib)

    assert peak_mib(one_after_the_other) == pytest.approx(2, abs=0.01)


def test_peak_leaves_out_what_was_there_before():
    kept = torch.empty(2**20)
    assert peak_mib(lambda: torch.empty(2**18)) == pytest.approx(1, abs=0.01)
    assert kept.shape == (2**20,)


def test_processor_seconds_do_not_count_sleep():
    assert cpu_seconds(lambda: time.sleep(0.05), repeats=1) < 0.04

    def busy():
        end = time.process_time() + 0.03
        while time.process_time() < end:
            pass

    assert cpu_seconds(busy, repeats=1) >= 0.03


def test_growth_exponent_stands_one_outlier():
    sizes = [1, 2, 4, 8, 16, 32, 64]
    values = [size**1.5 for size in sizes]
    values[3] *= 10
    assert growth_exponent(sizes, values) == pytest.approx(1.5, abs=0.1)


@pytest.mark.parametrize(
    "sizes, values, words",
    [([1], [1], "two different"), ([1, 2], [1], "one value per"), ([1, 2], [0, 1], "positive")],
)
def test_bad_input_gets_a_sentence(sizes, values, words):
    with pytest.raises(ValueError, match=words):
        growth_exponent(sizes, values)


def test_no_repeats_gets_a_sentence():
    with pytest.raises(ValueError, match="repeats"):
        cpu_seconds(lambda: None, repeats=0)
