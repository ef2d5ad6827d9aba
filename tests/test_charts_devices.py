"""A GPU's seconds stand beside the CPU's on the same axes, with what they are; what is read aloud does not
depend on them."""

import pytest

from lesson_lib.chapters.c02_scoring import figures as lesson_02
from lesson_lib.chapters.c03_matrix_form import figures as lesson_03
from lesson_lib.chapters.c10_graph_attention import figures as lesson_10
from lesson_lib.chapters.c11_efficient_attention import figures as lesson_11
from lesson_lib.charts import devices

CPU = {"loop": ([16, 32], [0.003, 0.011]), "product": ([16, 32], [0.0002, 0.0007])}
STORED = "a made-up GPU, 2000-01-01, not this machine"


def rows(kinds=("loop", "product"), seeds=(0, 7, 2)):
    return [
        {"kind": kind, "n": n, "seconds": 1e-6 * (n + seed) * (k + 1), "seed": seed}
        for k, kind in enumerate(kinds) for n in (16, 32, 64) for seed in seeds
    ]  # fmt: skip


def drawn(gpu, **options):
    return devices.seconds_beside(CPU, gpu, alt="Seconds.", caption="Seconds.", x_axis="n", **options)


def curve(axes, name):
    (line,) = [line for line in axes.lines if line.get_label() == name]
    return line


def test_the_gpu_has_a_panel_of_its_own_on_the_same_axes_with_its_name():
    cpu, gpu = drawn((rows(), STORED)).figure.axes
    assert list(curve(gpu, "loop").get_xdata()) == [16, 32, 64]
    assert list(curve(gpu, "loop").get_ydata()) == pytest.approx([18e-6, 34e-6, 66e-6])  # the middle seed
    corners = gpu.collections[0].get_paths()[0].vertices.tolist()
    assert [16, pytest.approx(16e-6)] in corners and [64, pytest.approx(71e-6)] in corners
    assert list(curve(cpu, "loop").get_ydata()) == [0.003, 0.011]
    for name in CPU:
        one, other = curve(cpu, name), curve(gpu, name)
        assert (one.get_color(), one.get_marker()) == (other.get_color(), other.get_marker())
    assert cpu.get_xlim() == gpu.get_xlim() and cpu.get_ylim() == gpu.get_ylim()
    assert gpu.get_ylim()[0] < 16e-6 and gpu.get_ylim()[1] > 0.011 and gpu.get_xlim()[1] > 64
    title = gpu.get_title("left")
    assert title.startswith("seconds on a GPU\n") and title.split("\n", 1)[1].replace("\n", " ") == STORED
    assert cpu.get_title("left") == "processor seconds"


def test_without_a_gpu_the_cpu_stands_alone_and_a_line_says_so():
    (axes,) = drawn(([], "No GPU has been measured yet.")).figure.axes
    assert [text.get_text() for text in axes.texts] == ["No GPU has been measured yet."]
    assert not drawn(None).figure.axes[0].texts


def figures(gpu):
    two = ([16, 32], {"one": [0.1, 0.2], "two": [0.3, 0.9]})
    costs = [{"kind": k, "n": n, "seconds": 0.1 * n, "mib": 1.0 * n} for k in ("one", "two") for n in (4, 16)]
    return [
        lesson_02.costs(two[0], two[1], two[1], gpu), lesson_03.loop_and_product(*two, gpu),
        lesson_10.sparse_dense(costs, gpu),
        lesson_11.next_token(*two, gpu),
    ]  # fmt: skip


def test_what_is_read_aloud_is_the_same_with_and_without_a_gpu():
    measured = rows(("one", "two"))
    cases = [figures(gpu) for gpu in (None, ([], "No GPU has been measured yet."), (measured, STORED))]
    for alone, none, beside in zip(*cases, strict=True):
        assert alone.alt == none.alt == beside.alt and alone.caption == none.caption == beside.caption
        assert "GPU" in alone.alt and not any(c.isdigit() for c in alone.alt)
        assert len(beside.figure.axes) == len(alone.figure.axes) + 1
        assert beside.figure.axes[-1].get_title("left").startswith("seconds on a GPU")
        assert len(none.figure.axes[-1].texts) == len(alone.figure.axes[-1].texts) + 1
        assert beside.figure.get_size_inches()[0] <= 8.0
        beside.figure.draw_without_rendering()
