"""Attention that learns where to look: heads imitate a hidden convolution whose taps lie three pixels away.

The hidden convolution mixes three channels at four places, above, below, left and right. Its pictures are
noise, fresh ones for each step, so what is learned is the places and nothing else. The heads' centres start
at random, blunt enough to feel a pull from afar. Convolutions learn from the same pictures: one with a kernel
of 3 x 3, which cannot reach the places, and one of 7 x 7, which has them among its 49. The measure is the
unexplained share of the output's variance on pictures that were never seen. Source of heads that learn their
centres: Cordonnier, Loukas & Jaggi 2019, arXiv:1911.03584.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lesson_lib.convolution import Near, PixelAttention
from lesson_lib.device import to_device
from lesson_lib.training import History, fit

RECIPE = {
    "channels": 3,
    "size": 8,
    "far": 3,  # pixels from the middle to each tap
    "heads": [4, 8],
    "kernels": [3, 7],
    "start": {"spread": 2.0, "sharpness": 0.2, "values": 0.1},
    "batch": 4,
    "steps": 300,
    "lr": {"heads": 0.1, "kernel": 0.03},
    "seeds": [0, 1, 2, 3, 4],
}


def taps() -> Tensor:
    """Where the hidden convolution looks: offsets (4, 2), down and right."""
    far = RECIPE["far"]
    return torch.tensor([[-far, 0], [0, -far], [0, far], [far, 0]], device="cpu")


def hidden(seed: int = 0) -> nn.Conv2d:
    """The convolution to be imitated, on the CPU: all taps zero but four, which are random matrices."""
    c, far = RECIPE["channels"], RECIPE["far"]
    conv = nn.Conv2d(c, c, 2 * far + 1, padding=far, bias=False, device="cpu")
    weight = torch.zeros_like(conv.weight)
    generator = torch.Generator("cpu").manual_seed(1000 + seed)
    for down, right in (far + taps()).tolist():
        weight[:, :, down, right] = torch.randn(c, c, generator=generator, device="cpu")
    conv.weight = nn.Parameter(weight, requires_grad=False)
    return conv


def heads(n_heads: int, generator: torch.Generator) -> PixelAttention:
    """Attention that has learned nothing yet: centres at random around the middle, blunt."""
    start, c = RECIPE["start"], RECIPE["channels"]
    centres = start["spread"] * torch.randn(n_heads, 2, generator=generator, device="cpu")
    values = start["values"] * torch.randn(n_heads, c, c, generator=generator, device="cpu")
    sharpness = torch.full((n_heads,), start["sharpness"], device="cpu")
    return PixelAttention(Near(centres, sharpness), values, None, border=RECIPE["far"])


def pictures(generator: torch.Generator, count: int = RECIPE["batch"]) -> Tensor:
    """Noise (count, channels, size, size)."""
    return torch.randn(
        count, RECIPE["channels"], RECIPE["size"], RECIPE["size"], generator=generator, device="cpu"
    )


def train(
    seed: int = 0, *, n_heads: int | None = None, kernel: int | None = None
) -> tuple[nn.Module, History]:
    """Train attention with that many heads, or else a convolution with that kernel, to imitate the hidden
    one.

    Raises ValueError where both are given, or none.
    """
    if (n_heads is None) == (kernel is None):
        raise ValueError(f"give n_heads or kernel, one of the two, got {n_heads} and {kernel}")
    generator = torch.Generator("cpu").manual_seed(seed)
    c, target = RECIPE["channels"], to_device(hidden(seed))
    if kernel is None:
        model = heads(n_heads, generator)
    else:
        torch.manual_seed(seed)
        model = nn.Conv2d(c, c, kernel, padding=kernel // 2, bias=False, device="cpu")
    history = fit(
        model, pictures, lambda model, x: unexplained(model, target, x), steps=RECIPE["steps"],
        lr=RECIPE["lr"]["heads" if kernel is None else "kernel"], seed_number=seed,
        name=f"{n_heads} heads" if kernel is None else f"kernel of {kernel} x {kernel}",
    )  # fmt: skip
    return model, history


def unexplained(model: nn.Module, target: nn.Module, x: Tensor) -> Tensor:
    """The mean squared error as a share of the target's variance: 0 is perfect, 1 is no better than
    the mean."""
    wanted = target(x)
    return F.mse_loss(model(x), wanted) / wanted.var()


@torch.no_grad()
def judged(model: nn.Module, seed: int = 0) -> float:
    """The unexplained share on 256 new pictures."""
    x = to_device(pictures(torch.Generator("cpu").manual_seed(2000 + seed), 256))
    return unexplained(model, to_device(hidden(seed)), x).item()


def found(model: PixelAttention) -> int:
    """How many of the four taps have a sharp head within half a pixel."""
    centres, sharp = model.logits.centres.detach().cpu(), model.logits.sharpness.detach().cpu() > 1
    near = torch.cdist(taps().to(centres), centres[sharp]) < 0.5
    return int(near.any(1).sum())


def run(seed: int) -> list[dict[str, Any]]:
    """A row for each number of heads and each kernel."""
    rows: list[dict[str, Any]] = []
    for options in [{"n_heads": n} for n in RECIPE["heads"]] + [{"kernel": k} for k in RECIPE["kernels"]]:
        model, history = train(seed, **options)
        row = {"seed": seed, **options, "unexplained": judged(model, seed), "cpu_s": history.cpu_s}
        if "n_heads" in options:
            row["found"] = found(model)
        rows.append(row | {"parameters": sum(p.numel() for p in model.parameters())})
    return rows
