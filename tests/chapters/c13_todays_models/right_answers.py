"""Right answers to what the parts of chapter 13 ask, in several spellings."""

import torch
import torch.nn.functional as F
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.chapters.c13_todays_models import open_a_model, traps, wild_beams, wild_caches, wild_tiles
from lesson_lib.heads import merge_heads, split_heads
from lesson_lib.masks import causal
from lesson_lib.positions import rotary


def _normed_by_norm(x: Tensor, gain: Tensor) -> Tensor:
    return x * (x.pow(2).mean(dim=-1, keepdim=True) + 1e-6).rsqrt() * gain


def _normed_by_torch(x: Tensor, gain: Tensor) -> Tensor:
    return F.rms_norm(x, (x.shape[-1],), gain, eps=1e-6)


def _capped_by_hand(scores: Tensor, cap: float) -> Tensor:
    return torch.tanh(scores / cap) * cap


def _capped_by_exp(scores: Tensor, cap: float) -> Tensor:
    grown = torch.exp(2 * scores / cap)
    return cap - 2 * cap / (grown + 1)


def _sink_by_pad(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, sink: float) -> Tensor:
    bias = torch.full((len(q), len(k) + 1), 0.0, device=q.device)
    bias[:, len(k)] += sink
    more = F.pad(mask, (0, 1), value=True)
    return attend(q, F.pad(k, (0, 0, 0, 1)), F.pad(v, (0, 0, 0, 1)), mask=more, score_bias=bias).output


def _sink_in_the_bias(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, sink: float) -> Tensor:
    hidden = torch.zeros(mask.shape, device=q.device).masked_fill(~mask, -torch.inf)
    column = torch.full((len(q), 1), sink, device=q.device)
    keys, values = (torch.cat((x, x.new_zeros(1, x.shape[1]))) for x in (k, v))
    return attend(q, keys, values, score_bias=torch.cat((hidden, column), 1)).output


def _by_index(table: Tensor, length: int) -> Tensor:
    i = torch.arange(length, 2 * length, device=table.device)
    return table[i, i - length + 1].mean()


def _by_adding(table: Tensor, length: int) -> Tensor:
    total = 0.0
    for i in range(length, len(table)):
        total += float(table[i, i + 1 - length])
    return torch.tensor(total / length, device=table.device)


def _shifted(x: Tensor, sharp: float) -> Tensor:
    may = torch.eye(len(x), device=x.device).bool().roll(1, 0)
    may[0] = False
    before = attend(x, x, x, mask=may).output
    return attend(sharp * x, before, x, mask=causal(len(x), device=x.device)).output


def _by_triangles(x: Tensor, sharp: float) -> Tensor:
    n = len(x)
    ones = torch.ones(n, n, device=x.device, dtype=torch.bool)
    before = attend(x, x, x, mask=ones.tril(-1) & ones.triu(-1)).output
    return attend(x * sharp, before, x, mask=ones.tril()).output


def _one_slice(x: Tensor, w_query: Tensor, w_key: Tensor, head: int, d_k: int) -> Tensor:
    group = head * w_key.shape[0] // w_query.shape[0]
    q = rotary(F.linear(x, w_query).split(d_k, -1)[head], pairing="half-split")
    k = rotary(F.linear(x, w_key).split(d_k, -1)[group], pairing="half-split")
    return attend(q, k, k, mask=causal(x.shape[0])).weights


def _read_with_linear(x: Tensor, gain: Tensor, table: Tensor) -> Tensor:
    return F.linear(x * (x.pow(2).mean(-1, keepdim=True) + 1e-6).rsqrt() * gain, table)


def _layer_by_einsum(
    tokens: Tensor, table: Tensor, gains: Tensor, w_query: Tensor, w_key: Tensor, w_value: Tensor,
    w_output: Tensor, head_gains: Tensor, window: int,
) -> Tensor:  # fmt: skip
    d, d_k = table.shape[1], head_gains.shape[1]
    x = table[tokens] * d**0.5
    inner = F.rms_norm(x, (d,), gains[0] + 1)
    q = torch.einsum("nd,hkd->hnk", inner, w_query.view(-1, d_k, d))
    k = torch.einsum("nd,hkd->hnk", inner, w_key.view(-1, d_k, d))
    v = torch.einsum("nd,hkd->hnk", inner, w_value.view(-1, d_k, d))
    q = rotary(F.rms_norm(q, (d_k,), head_gains[0] + 1), pairing="half-split")
    k = rotary(F.rms_norm(k, (d_k,), head_gains[1] + 1), pairing="half-split")
    groups = torch.arange(len(q)) * len(k) // len(q)
    out = attend(q, k[groups], v[groups], mask=causal(len(tokens), window=window)).output
    return F.rms_norm(x + merge_heads(out) @ w_output.T, (d,), gains[1] + 1) @ table.T


def _prompt_token_by_token(x: Tensor, w_qkv: Tensor, w_out: Tensor, n_heads: int, chunk: int) -> Tensor:
    q, k, v = (split_heads(t, n_heads) for t in (x @ w_qkv.mT).chunk(3, -1))
    q, k = rotary(q, pairing="half-split"), rotary(k, pairing="half-split")
    rows = [attend(q[:, i : i + 1], k[:, : i + 1], v[:, : i + 1]).output for i in range(len(x))]
    return merge_heads(torch.cat(rows, 1)) @ w_out.mT


def _window_token_by_token(
    x: Tensor, w_query: Tensor, w_key: Tensor, w_value: Tensor, window: int, chunk: int
) -> Tensor:
    q, k = (rotary(x @ w.mT, pairing="half-split") for w in (w_query, w_key))
    v, rows = x @ w_value.mT, []
    for i in range(len(x)):
        first = max(0, i + 1 - window)
        rows.append(attend(q[i : i + 1], k[first : i + 1], v[first : i + 1]).output)
    return torch.cat(rows)


def _window_in_chunks(
    x: Tensor, w_query: Tensor, w_key: Tensor, w_value: Tensor, window: int, chunk: int
) -> Tensor:
    q, k = (rotary(x @ w.mT, pairing="half-split") for w in (w_query, w_key))
    v, rows = x @ w_value.mT, []
    for start in range(0, len(x), chunk):
        new, first = q[start : start + chunk], max(0, start - window + 1)
        stop = start + len(new)
        mask = causal(stop - first, queries=len(new), window=window)
        rows.append(attend(new, k[first:stop], v[first:stop], mask=mask).output)
    return torch.cat(rows)


def _padding_moved_away(tokens: Tensor, table: Tensor, weights: Tensor, pad: int) -> Tensor:
    made = []
    for text in tokens.flip(1):  # the padding is behind the text now
        kept = text[text != pad].flip(0)
        x = table[kept]
        for query, key, value, out in weights:
            turned = (rotary(x @ w.mT, pairing="half-split") for w in (query, key))
            x = x + attend(*turned, x @ value.mT, mask=causal(len(kept))).output @ out.mT
        made.append(table @ x[-1])
    return torch.stack(made)


def _all_beams_anew(start: int, table: Tensor, weights: Tensor, width: int, length: int) -> Tensor:
    tokens, scores = torch.tensor([[start]], device=table.device), torch.zeros(1, device=table.device)
    for _ in range(length):
        x = table[tokens]
        q, k, v = (x @ w.mT for w in weights)
        logits = (x + attend(q, k, v, mask=causal(x.shape[1])).output)[:, -1] @ table.mT
        both = (scores[:, None] + logits - logits.logsumexp(-1, keepdim=True)).flatten()
        best = both.topk(min(width, len(both)))
        tokens = torch.cat((tokens[best.indices // len(table)], best.indices[:, None] % len(table)), 1)
        scores = best.values
    return tokens[0, 1:]


def _windowed_token_by_token(query: Tensor, key: Tensor, value: Tensor, window: int, block: int) -> Tensor:
    rows = []
    for i in range(len(query)):
        seen = slice(max(0, i + 1 - window), i + 1)
        rows.append(attend(query[i : i + 1], key[seen], value[seen]).output)
    return torch.cat(rows)


def _windowed_in_halves(query: Tensor, key: Tensor, value: Tensor, window: int, block: int) -> Tensor:
    rows = []
    for start in range(0, len(query), block):
        q = query[start : start + block]
        first = max(0, start - window + 1)
        k, v = key[first : start + len(q)], value[first : start + len(q)]
        mask = causal(len(k), queries=len(q), window=window)
        rows.append(attend(q, k, v, mask=mask).output)
    return torch.cat(rows)


def _sink_behind(query: Tensor, key: Tensor, value: Tensor, sink: float, tile: int) -> Tensor:
    scores = query @ key.mT * query.shape[1] ** -0.5
    everybody = torch.cat((scores, torch.full_like(scores[:, :1], sink)), 1)
    shares = (scores - everybody.logsumexp(1, keepdim=True)).exp()
    return shares @ value


RIGHT = {
    "window_of_128": ("b", "127"),
    "cache_with_windows": ("3.003", "12 * (131072 + 128) * 2048 / 2^30"),
    "ten_times_longer": ("b", "a hundred times as large"),
    "normed": (_normed_by_norm, _normed_by_torch),
    "capped": (_capped_by_hand, _capped_by_exp),
    "loud_start": ("c", "the one with QK-norm alone"),
    "five_and_a_sink": ("b", "5/6, about .83"),
    "with_sink": (_sink_by_pad, _sink_in_the_bias),
    "what_follows": ("c", "a, after the first w"),
    "one_layer_copies": ("b", "no: it can find the first w, but that token's own row holds w, not a"),
    "two_looks": (_shifted, _by_triangles),
    "prefix_matching": (_by_index, _by_adding),
    "which_head_is_needed": ("c", "fewer than 10"),
    "longer_pieces": ("c", "fewer than 10"),
    "one_length_only": ("c", "fewer than 10"),
    "head_weights": (_one_slice, open_a_model._all_heads),
    "never_seen_name": ("c", "over .9"),
    "read_early": (_read_with_linear, open_a_model._read_by_hand),
    "which_layer": ("d", "behind layer 2"),
    "cut_the_brightest": ("c", "nearly .9"),
    "how_many_cuts": ("a", "two"),
    "row_to_carry": ("b", "that of the o"),
    "logits_of": (_layer_by_einsum, traps._head_by_head),
    "read_prompt": (_prompt_token_by_token, wild_caches._prompt_at_once),
    "read_window": (_window_token_by_token, _window_in_chunks),
    "next_logits": (_padding_moved_away, wild_caches._text_by_text),
    "best_beam": (_all_beams_anew, wild_beams._without_cache),
    "windowed": (_windowed_token_by_token, _windowed_in_halves),
    "tiles_with_sink": (_sink_behind, wild_tiles._with_a_key_of_its_own),
    "where_it_turns_wrong": (
        {"x": torch.tensor([[0.0, 2.0], [1.0, 1.0]], device="cpu"), "start": 256},
        (torch.ones(1, 4, device="cpu"), 100_003),
    ),
    "what_it_lets_through": (
        {
            "query": torch.tensor([[300.0]], device="cpu"),
            "key": torch.tensor([[-300.0], [1.0]], device="cpu"),
            "value": torch.tensor([[1.0], [2.0]], device="cpu"),
            "mask": torch.tensor([[True, False]], device="cpu"),
        },
        (
            torch.ones(1, 2, device="cpu"),
            torch.ones(2, 2, device="cpu"),
            torch.ones(2, 1, device="cpu"),
            torch.zeros(1, 2, dtype=torch.bool, device="cpu"),
        ),
    ),
}


def _seen(query: list, key: list, value: list, mask: list) -> dict[str, Tensor]:
    rows = {
        name: torch.tensor(x, device="cpu") for name, x in (("query", query), ("key", key), ("value", value))
    }
    return rows | {"mask": torch.tensor(mask, device="cpu")}


WRONG = {  # inputs that catch nothing, one for each slip
    "where_it_turns_wrong": (
        {"x": torch.zeros(0, 2, device="cpu"), "start": 1001},
        {"x": torch.zeros(1, 2, device="cpu"), "start": 1001},
        {"x": torch.ones(1, 2, device="cpu"), "start": 0},
        {"x": torch.ones(2, 2, device="cpu"), "start": 255},
        {"x": torch.ones(1, 2, device="cpu"), "start": 1024},
    ),
    "what_it_lets_through": (
        _seen([[1.0]], [[1.0], [2.0]], [[1.0], [2.0]], [[True, True]]),
        _seen([[1.0]], [[1.0], [2.0]], [[3.0], [3.0]], [[True, False]]),
        _seen([[0.0]], [[1.0], [2.0]], [[1.0], [2.0]], [[True, False]]),
        _seen([[20.0]], [[-10.0], [10.0]], [[1.0], [2.0]], [[True, False]]),
        _seen([[1.0]], [[1.0], [2.0]], [[1.0], [2.0]], [[True, False]]),
    ),
}
