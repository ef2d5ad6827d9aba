"""Seconds of part 08b's two layers on a GPU."""

from lesson_lib.charts.devices import bands
from lesson_lib.experiments import results


def on_gpu() -> dict[str, tuple[list[int], list[float]]]:
    """{"RNN" or "attention": (lengths, seconds)} of one text of width 64, forward: the medians that the
    experiment `devices` stored."""
    stored = results("devices")["rows"]
    curves = bands([row for row in stored if (row["series"], row["device"]) == ("layers", "gpu")])
    return {name: (curves[kind][0], curves[kind][len(curves[kind]) // 2])
            for name, kind in (("RNN", "RNN"), ("attention", "attention alone"))}  # fmt: skip
