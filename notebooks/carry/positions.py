"""Positions in plain torch: one file to copy into a project. MIT licence.

    added to the tokens       x + sinusoidal(n, d)        x + learned(table, n)
    turn queries and keys     rotary(q), rotary(k)        stretched by linear, ntk, yarn, llama3
    added to the scores       relative(q, rows, m)        alibi(m, n_heads)
    moved_by_order, shifts    tests: does a layer know order? do positions enter as distances alone?
    python positions.py       prints their score tables beside each other

`start` is the position of the first row: how many tokens stand in the key/value cache, or 0.
"""

import math

import torch


def frequencies(d, base=10_000.0):
    """Radians per token of d / 2 clocks, from 1 down; a clock needs 2 pi / frequency tokens for a turn."""
    return base ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)


def sinusoidal(n, d, start=0, base=10_000.0, device=None):
    """Codes of n positions (n, d): a sine and, beside it, a cosine of each clock. Vaswani et al. 2017."""
    angles = torch.arange(start, start + n, dtype=torch.float64)[:, None] * frequencies(d, base)
    return torch.stack((angles.sin(), angles.cos()), -1).flatten(-2).float().to(device)


def learned(table, n, start=0):
    """Rows of a table of learned codes (longest, d), an nn.Parameter, as BERT and GPT-2 have it."""
    if start + n > len(table):
        raise ValueError(f"the table ends at position {len(table) - 1}, and {start + n - 1} is asked for")
    return table[start : start + n]


def rotary(x, start=0, turns=None, *, halves=False, part=1.0):
    """Queries or keys (..., n, d), each row turned by its position: RoPE, Su et al. 2021. Values stay.

    `turns`: radians per token, (d / 2,); without it those of `frequencies`. A pair is two neighbouring
    columns, or with halves=True column j and j + d / 2, as in most files of today: never mix the two.
    With part < 1 only the first columns turn. Angles are float32 or better, whatever x is: in bfloat16
    position 1001 is 1000.
    """
    n, d = x.shape[-2], int(x.shape[-1] * part)
    x, rest = x[..., :d], x[..., d:]
    turns = frequencies(d) if turns is None else turns
    angles = torch.arange(start, start + n, dtype=torch.float64)[:, None] * turns.cpu()
    cos, sin = (table.to(x) for table in (angles.cos(), angles.sin()))
    if halves:
        a, b = x.chunk(2, -1)
        turned = torch.cat((a * cos - b * sin, a * sin + b * cos), -1)
    else:
        a, b = x[..., 0::2], x[..., 1::2]
        turned = torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)
    return torch.cat((turned, rest), -1)


def linear(d, factor, base=10_000.0):
    """Position interpolation, for texts `factor` times as long: all clocks slower. Chen et al. 2023."""
    return frequencies(d, base) / factor


def ntk(d, factor, base=10_000.0):
    """A larger base: the fastest clock stays, the slowest becomes `factor` times slower."""
    return frequencies(d, base * factor ** (d / (d - 2)))


def llama3(d, factor, context, base=10_000.0, fast=4, slow=1):
    """Clocks that go round `fast` times in the old context stay, those that do `slow` times or fewer are
    slowed by the factor; a straight line between, over the number of rounds. Llama 3.1's rule."""
    plain = frequencies(d, base)
    kept = ((context * plain / (2 * math.pi) - slow) / (fast - slow)).clamp(0, 1)
    return plain * kept + plain / factor * (1 - kept)


def yarn(d, factor, context, base=10_000.0, fast=32, slow=1):
    """The same with another line, over the number of the clock: Peng et al. 2023. They also multiply queries
    and keys by 0.1 ln(factor) + 1."""
    plain = frequencies(d, base)
    low, high = (d * math.log(context / (2 * math.pi * r)) / (2 * math.log(base)) for r in (fast, slow))
    low, high = max(math.floor(low), 0), min(math.ceil(high), d - 1)
    slowed = ((torch.arange(d // 2, dtype=torch.float64) - low) / max(high - low, 1e-3)).clamp(0, 1)
    return plain * (1 - slowed) + plain / factor * slowed


def relative(q, rows, m):
    """Scores (..., n, m) that Shaw et al. 2018 add to q @ k.mT, before the division by the root.

    q (..., n, d) are the last n of m tokens. Rows (2 r + 1, d) are learned, one for each distance from -r to
    r; farther keys share the last row of their side.
    """
    n, r = q.shape[-2], len(rows) // 2
    distance = torch.arange(m, device=q.device) - torch.arange(m - n, m, device=q.device)[:, None]
    index = (distance.clamp(-r, r) + r).expand(*q.shape[:-1], m)
    return (q @ rows.mT).gather(-1, index)


def alibi(m, n_heads, n=None, device=None):
    """Score bias (h, n, m): minus slope times distance; queries are the last n of m. Press et al. 2021."""
    slopes = 2.0 ** (-8.0 * torch.arange(1, n_heads + 1) / n_heads)
    distance = torch.arange(m) - torch.arange(m - (m if n is None else n), m)[:, None]
    return (-slopes[:, None, None] * distance.abs()).to(device)


def moved_by_order(layer, x, times=10):
    """How far the outputs of layer(x), (n, d), depend on the order of x: 0 where it knows no order."""
    orders = [torch.randperm(len(x)) for _ in range(times)]
    backs = [layer(x[order])[order.argsort()] for order in orders]  # each output where its token stood
    return max((back - layer(x)).abs().max().item() for back in backs)


def shifts(scores, by=5, n=12, d=16):
    """How far `scores(q, k, start)` (n, n) moves when all positions do: 0 where distance alone counts."""
    q, k = torch.randn(2, n, d)
    return (scores(q, k, 0) - scores(q, k, by)).abs().max().item()


if __name__ == "__main__":
    torch.manual_seed(0)
    n, d = 18, 16
    table, rows = torch.randn(64, d), torch.randn(9, d)
    ways = {
        "sinusoidal": lambda q, k, s: (q + sinusoidal(len(q), d, s)) @ (k + sinusoidal(len(k), d, s)).T,
        "learned": lambda q, k, s: (q + learned(table, len(q), s)) @ (k + learned(table, len(k), s)).T,
        "Shaw": lambda q, k, s: q @ k.T + relative(q, rows, len(k)),
        "ALiBi": lambda q, k, s: q @ k.T + 8 * alibi(len(k), 8)[0],
        "rotary": lambda q, k, s: rotary(q, s) @ rotary(k, s).T,
    }
    query, key = torch.randn(2, 1, d).expand(-1, n, -1)  # one word everywhere: only positions differ
    drawn = {name: way(query, key, 0) for name, way in ways.items()}
    print("One word everywhere: its scores, query by query (rows) and key by key (columns); dark is low.")
    print("  ".join(f"{name:{n}}" for name in ways))
    for i in range(n):
        grey = ((t - t.min()) / (t.max() - t.min()) * 9.99 for t in drawn.values())
        print("  ".join("".join(" .:-=+*#%@"[int(x)] for x in t[i]) for t in grey))
    print("\nAll positions 5 further on: the scores of two random texts move by")
    print("  ".join(f"{shifts(way):<{n}.3f}" for way in ways.values()))
