"""`python -m lesson_lib ring`, started by torchrun: each process makes its own tokens, attends to all of them
in a ring, and says what it took."""

import argparse
import os
import sys

ALL = 8192  # up to so many tokens all queries are compared with one process's attention, else the first FEW
FEW = 1024
START = "torchrun --standalone --local-addr localhost --nproc-per-node 4 -m lesson_lib ring"


def options(parser: argparse.ArgumentParser) -> None:
    """Give `parser` the options of `main`."""
    parser.add_argument(
        "--tokens", type=int, default=8192, metavar="N", help="of all processes together (default: 8192)"
    )
    parser.add_argument("--heads", type=int, default=4, metavar="H", help="default: 4")
    parser.add_argument("--width", type=int, default=64, metavar="D", help="of each head (default: 64)")
    parser.add_argument("--causal", action="store_true", help="no token looks at a later one")
    parser.add_argument("--backward", action="store_true", help="gradients, too")


def main(*, tokens: int, heads: int, width: int, causal: bool, backward: bool) -> int:
    """Print a line with what was measured, in process 0; 0 where all went well, 1 after a sentence that says
    what did not."""
    small = [
        f"--{name} {x}" for name, x in {"tokens": tokens, "heads": heads, "width": width}.items() if x < 1
    ]
    if small:
        print(f"ring needs whole numbers >= 1, got {', '.join(small)}", file=sys.stderr)
        return 1
    if not {"RANK", "WORLD_SIZE", "MASTER_ADDR"} <= os.environ.keys():
        print(
            f"ring runs in several processes, which torchrun starts: make ring, or: {START}",
            file=sys.stderr,
        )
        return 1
    import torch.distributed as dist

    from lesson_lib.chapters.c11_efficient_attention.experiments import ring

    ring.join(tokens, heads, width)
    try:
        row = ring.measured(
            tokens, heads, width, causal=causal, backward=backward, compare=tokens if tokens <= ALL else FEW
        )
    except RuntimeError as error:
        print(f"process {dist.get_rank()}: {error}", file=sys.stderr, flush=True)
        return 1
    if row:
        print(line(row), flush=True)
    dist.destroy_process_group()
    return 0


def line(row: dict) -> str:
    """A row of `ring.measured` in words."""
    of = "" if row["compared"] == row["tokens"] else f" (of {row['compared']:,} queries)"
    return (
        f"processes {row['processes']} · tokens {row['tokens']:,} · {row['seconds']:5.1f} s ·"
        f" {row['mib']:6.1f} MiB per process · {row['sent_mib']:6.1f} MiB sent · largest difference"
        f" {row['error']:.0e}{of}"
    )
