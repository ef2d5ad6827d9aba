"""Attention over long texts in plain torch: one file to copy into a project. MIT licence.

query (..., n, d), key (..., m, d), value (..., m, d_v), output (..., n, d_v); in a mask True = may look.
A mask alone saves nothing: all scores are computed, and some hidden.
A query that may look at no key gets zeros, and no gradient becomes nan.

    attend                    all scores at once, the yardstick
    window_attention          each token asks the tokens within a radius: cost n * radius, not n * n
    block_attention           each token asks its own block of tokens: cost n * block
    window_and_global         a mask for padded texts: a window, and some tokens that see and are seen by all
    chosen                    a mask of the k keys with the best scores: a second, cheap score chooses
    partial, merge, output    exact attention in pieces: what some keys say, two pieces joined, the end
    attend_part               attention to a part of the keys, ready to be merged with other parts
    attend_tiles              exact attention, one tile of scores at a time: memory n, not n * n
    RollingCache              keys and values of the last tokens, for writing with a window
    python long.py            counts products and seconds at growing n, and writes with a cache
"""

import time

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode


def partial(scores, value):
    """What some keys say, of scores (..., n, m) and values (..., m, d_v): top (..., n, 1), the largest score;
    total (..., n, 1), the sum of exp(score - top); mixed (..., n, d_v), the sum of exp(score - top) * value.

    Where all scores are -inf both sums are 0. (top cancels in mixed / total: it needs no gradient.)
    """
    top = scores.detach().amax(-1, keepdim=True)
    top = top.clamp(min=torch.finfo(scores.dtype).min)  # -inf less -inf would be nan
    weights = (scores - top).exp()
    return top, weights.sum(-1, keepdim=True), weights @ value


def merge(one, other):
    """Both pieces as one, in any order: the sums of the piece with the smaller top shrink."""
    top = torch.maximum(one[0], other[0])
    first, second = (one[0] - top).exp(), (other[0] - top).exp()
    return top, first * one[1] + second * other[1], first * one[2] + second * other[2]


def output(piece):
    """The outputs (..., n, d_v): the weighted mean of all values that the piece has met."""
    _, total, mixed = piece
    return mixed / total.masked_fill(total == 0, 1.0)  # no key at all: 0 / 1


def scores_of(query, key, mask=None):
    """Scores (..., n, m), in float32 at least, so that long sums keep their digits."""
    kind = torch.promote_types(query.dtype, torch.float32)
    scores = (query.to(kind) * query.shape[-1] ** -0.5) @ key.to(kind).mT
    return scores if mask is None else scores.masked_fill(~mask, -torch.inf)


def attend(query, key, value, mask=None):
    """softmax(query key^T / sqrt(d)) value."""
    scores = scores_of(query, key, mask)
    return output(partial(scores, value.to(scores.dtype))).to(query.dtype)


def stretches(x, block, before=0, after=0):
    """(..., n, d) to (..., blocks, before + block + after, d): each block of rows with its neighbours; beyond
    the ends stand rows of zeros (or False). n need not be a multiple of the block."""
    x = F.pad(x, (0, 0, before, after + -x.shape[-2] % block))
    return x.unfold(-2, before + block + after, block).mT


def in_blocks(query, key, value, band, before=0, after=0, real=None):
    """Attention of each block of queries to its stretch of keys; band (block, before + block + after) says
    which keys of the stretch each query of a block sees."""
    n, block = query.shape[-2], len(band)
    real = torch.ones(n, dtype=torch.bool, device=query.device) if real is None else real
    q, k, v = stretches(query, block), *(stretches(x, block, before, after) for x in (key, value))
    mask = band & stretches(real[..., None], block, before, after).mT  # False beyond the ends, too
    return attend(q, k, v, mask).flatten(-3, -2)[..., :n, :]


def window_attention(query, key, value, radius, *, causal=False, real=None, block=None):
    """Each token asks the tokens at most `radius` away, itself included; with `causal` none that comes later.

    Most models count a window's tokens: 4,096 with the token itself is causal with radius=4095. real
    (..., n), for example (b, 1, n) beside queries (b, h, n, d): False = padding, which nobody sees.
    """
    block, after = block or max(radius, 32), 0 if causal else radius
    i = radius + torch.arange(block, device=query.device)[:, None]  # a query's position in its stretch
    j = torch.arange(radius + block + after, device=query.device)
    band = (i - radius <= j) & (j <= i + after)
    return in_blocks(query, key, value, band, radius, after, real)


def block_attention(query, key, value, block, *, causal=False, real=None):
    """Each token asks the tokens of its own block; nothing crosses a border."""
    band = torch.ones(block, block, dtype=torch.bool, device=query.device)
    return in_blocks(query, key, value, band.tril() if causal else band, real=real)


def window_and_global(real, radius, n_global=1):
    """Mask (b, 1, n, n) of a window, and of each text's first `n_global` real tokens, which see and are seen
    by all. real (b, n): False = padding, on either side."""
    i = torch.arange(real.shape[-1], device=real.device)
    near = (i[:, None] - i).abs() <= radius
    first = real & (real.cumsum(-1) <= n_global)  # counts real tokens: padding in front is no first token
    may = near | first[:, :, None] | first[:, None, :]
    return (may & real[:, None, :])[:, None]


def chosen(scores, k, mask):
    """Mask (..., n, m) for `attend`: of the keys that `mask` allows, the k with the best scores.

    scores (..., n, m) come from a cheap second score. Hide first (later tokens, padding), then choose: a
    hidden key must not take a place. The mask is for training; a fast program gathers the chosen keys."""
    scores = scores.masked_fill(~mask, -torch.inf)
    best = scores.topk(min(k, scores.shape[-1]), -1).indices
    return torch.zeros_like(scores, dtype=torch.bool).scatter(-1, best, True) & mask


def attend_part(query, key, value, *, mask=None, ahead=None, tile=256):
    """The piece (top, total, mixed) of these keys, `tile` of them at a time.

    mask (..., n, m) or (..., 1, m). With `ahead` query i sees the keys up to number i + ahead: 0 where
    queries and keys are the same tokens, less than 0 where these keys come later.
    """
    kind, rows = torch.promote_types(query.dtype, torch.float32), query.shape[:-1]
    top = query.new_full((*rows, 1), torch.finfo(kind).min, dtype=kind)
    piece = top, torch.zeros_like(top), query.new_zeros((*rows, value.shape[-1]), dtype=kind)
    n, m = query.shape[-2], key.shape[-2]
    last = m if ahead is None else min(m, n + ahead)  # tiles that no query sees are not computed
    for start in range(0, last, tile):
        some = slice(start, min(last, start + tile))
        scores = scores_of(query, key[..., some, :])
        if mask is not None:
            scores = scores.masked_fill(~mask[..., some], -torch.inf)
        if ahead is not None:
            may = torch.ones_like(scores, dtype=torch.bool).tril(ahead - start)
            scores = scores.masked_fill(~may, -torch.inf)
        piece = merge(piece, partial(scores, value[..., some, :].to(kind)))
    return piece


def attend_tiles(query, key, value, *, mask=None, causal=False, tile=256):
    """The output of `attend`, of tiles of `tile` queries by `tile` keys: the table is never held.

    With `causal` the queries are the last tokens, and tiles above the diagonal are skipped. The way back
    computes each row of tiles once more (`checkpoint`), since nobody kept its weights.
    """
    n, m = query.shape[-2], key.shape[-2]

    def row(start, q):
        own = mask if mask is None or mask.shape[-2] == 1 else mask[..., start : start + tile, :]
        ahead = start + m - n if causal else None
        return output(attend_part(q, key, value, mask=own, ahead=ahead, tile=tile)).to(query.dtype)

    rows = enumerate(query.split(tile, -2))
    return torch.cat([checkpoint(row, i * tile, q, use_reentrant=False) for i, q in rows], -2)


class RollingCache:
    """Keys and values (..., tokens, d) for a window of so many tokens, the new one among them.

    attend(query, *cache.append(key, value)) is the causal window, token by token or in chunks; at most
    window - 1 old tokens are kept. (Keys that are turned by position are turned before they come here.)"""

    def __init__(self, window):
        self.window, self.seen, self.key, self.value = window, 0, None, None

    def append(self, key, value):
        """All keys and values that the new tokens may see, and the mask (new, all)."""
        if self.key is not None:
            key, value = torch.cat((self.key, key), -2), torch.cat((self.value, value), -2)
        old, m = 0 if self.key is None else self.key.shape[-2], key.shape[-2]
        self.seen += m - old  # the position of the next token
        kept = slice(max(0, m - self.window + 1), m)
        self.key, self.value = key[..., kept, :].clone(), value[..., kept, :].clone()
        i, j = torch.arange(old, m, device=key.device)[:, None], torch.arange(m, device=key.device)
        return key, value, (i - self.window < j) & (j <= i)


if __name__ == "__main__":
    torch.manual_seed(0)
    ways = {"table": attend, "tiles": attend_tiles}
    ways["window"] = lambda *qkv: window_attention(*qkv, radius=127, causal=True)
    for n in (1024, 2048, 4096):
        q, k, v = torch.randn(3, 1, 4, n, 32)
        for name, way in ways.items():
            with FlopCounterMode(display=False) as counted:
                way(q, k, v)
            start = time.perf_counter()
            way(q, k, v)
            took, million = time.perf_counter() - start, counted.get_total_flops() / 2e6
            print(f"{n:5} tokens, {name:6} {million:7,.0f} million products  {took:.3f} s")
    cache = RollingCache(window=128)  # the same window, one new token at a time
    steps = zip(*(x.split(1, -2) for x in (q, k, v)), strict=True)
    written = torch.cat([attend(q, *cache.append(k, v)) for q, k, v in steps], -2)
    off = (written - ways["window"](q, k, v)).abs().max()
    print(f"with a cache of {cache.key.shape[-2]} of {cache.seen} tokens: the same up to {off:.0e}")
