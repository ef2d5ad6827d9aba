"""Right answers to what the parts of chapter 13 ask, in several spellings."""

import heapq

import torch
import torch.nn.functional as F
from torch import Tensor

from lesson_lib.attention import attend
from lesson_lib.heads import merge_heads, split_heads
from lesson_lib.masks import causal
from lesson_lib.positions import rotary
from tests import code_of

asked = code_of("c13_todays_models")


def _normed_by_norm(x: Tensor, gain: Tensor) -> Tensor:
    return x * (x.pow(2).mean(dim=-1, keepdim=True) + 1e-6).rsqrt() * gain


def _normed_by_torch(x: Tensor, gain: Tensor) -> Tensor:
    return F.rms_norm(x, (x.shape[-1],), gain, eps=1e-6)


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


def _normed_by_length(x: Tensor, gain: Tensor) -> Tensor:
    length = torch.linalg.vector_norm(x.double(), dim=-1, keepdim=True)
    return (x / (length**2 / x.shape[-1] + 1e-6) ** 0.5 * gain).to(x.dtype)


def _sink_by_cat(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, sink: float) -> Tensor:
    seen = torch.cat((mask, torch.ones(len(q), 1, dtype=torch.bool)), dim=1)
    bias = F.pad(torch.zeros(mask.shape), (0, 1), value=sink)
    keys, values = (
        torch.vstack((k, torch.zeros(1, k.shape[1]))),
        torch.vstack((v, torch.zeros(1, v.shape[1]))),
    )
    return attend(q, keys, values, mask=seen, score_bias=bias)[0]


def _by_diagonal(x: Tensor, sharp: float) -> Tensor:
    before = torch.diag(torch.ones(len(x) - 1), -1).bool()
    copied = attend(x, x, x, mask=before).output
    return attend(sharp * x, copied, x, mask=causal(len(x))).output


def _head_by_hand(x: Tensor, w_query: Tensor, w_key: Tensor, head: int, d_k: int) -> Tensor:
    """All heads are cut, one of each is used; the mask is added."""
    queries, keys = (w.view(-1, d_k, w.shape[1]) for w in (w_query, w_key))
    q = torch.einsum("nd,kd->nk", x, queries[head])
    k = torch.einsum("nd,kd->nk", x, keys[head * len(keys) // len(queries)])
    scores = rotary(q, pairing="half-split") @ rotary(k, pairing="half-split").T / d_k**0.5
    return (scores + torch.full_like(scores, -torch.inf).triu(1)).softmax(-1)


def _layer_by_torch(
    tokens: Tensor, table: Tensor, gains: Tensor, w_query: Tensor, w_key: Tensor, w_value: Tensor,
    w_output: Tensor, head_gains: Tensor, window: int,
) -> Tensor:  # fmt: skip
    """One product for queries, keys and values, torch's sharing, a mask of two triangles."""
    d_k, n = head_gains.shape[1], len(tokens)
    x = table[tokens] * table.shape[1] ** 0.5
    inner = F.rms_norm(x, x.shape[1:]) * (1 + gains[0])
    q, k, v = (
        part.view(n, -1, d_k).transpose(0, 1)
        for part in (inner @ torch.cat((w_query, w_key, w_value)).T).split(
            [len(w) for w in (w_query, w_key, w_value)], dim=1
        )
    )
    q, k = (
        rotary(F.rms_norm(part, (d_k,)) * (1 + gain), pairing="half-split")
        for part, gain in zip((q, k), head_gains, strict=True)
    )
    seen = torch.ones(n, n, dtype=torch.bool).tril().triu(1 - window)
    out = F.scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=seen, enable_gqa=True)[0]
    x = x + F.linear(out.transpose(0, 1).reshape(n, -1), w_output)
    return F.linear(F.rms_norm(x, x.shape[1:]) * (1 + gains[1]), table)


def _prompt_in_chunks(x: Tensor, w_qkv: Tensor, w_out: Tensor, n_heads: int, chunk: int) -> Tensor:
    """Chunk by chunk, with keys and values in lists."""
    keys, values, rows, read = [], [], [], 0
    for part in x.split(chunk):
        q, k, v = (part @ w_qkv.T).view(len(part), 3, n_heads, -1).permute(1, 2, 0, 3)
        keys.append(rotary(k, read, pairing="half-split"))
        values.append(v)
        read += len(part)
        asked = rotary(q, read - len(part), pairing="half-split")
        mask = causal(read, queries=len(part))
        rows.append(
            F.linear(
                merge_heads(attend(asked, torch.cat(keys, 1), torch.cat(values, 1), mask=mask).output), w_out
            )
        )
    return torch.cat(rows)


def _window_with_a_short_cache(
    x: Tensor, w_query: Tensor, w_key: Tensor, w_value: Tensor, window: int, chunk: int
) -> Tensor:
    """One token at a time; of the cache the last `window` tokens stay."""
    keys, values, rows = x.new_zeros(0, len(w_key)), x.new_zeros(0, len(w_value)), []
    for i, token in enumerate(x.split(1)):
        keys = torch.cat((keys, rotary(token @ w_key.T, i, pairing="half-split")))[-window:]
        values = torch.cat((values, token @ w_value.T))[-window:]
        shares = (rotary(token @ w_query.T, i, pairing="half-split") @ keys.T / len(w_key) ** 0.5).softmax(-1)
        rows.append(shares @ values)
    return torch.vstack(rows)


def _padding_hidden(tokens: Tensor, table: Tensor, weights: Tensor, pad: int) -> Tensor:
    """The whole batch: distances are those of columns, so only the padding is to be hidden."""
    real, n = tokens != pad, tokens.shape[1]
    x = table[tokens]
    for w in weights:
        q, k, v = torch.einsum("bnd,ted->tbne", x, w[:3])
        scores = rotary(q, pairing="half-split") @ rotary(k, pairing="half-split").mT / k.shape[-1] ** 0.5
        scores = scores.masked_fill(~real[:, None] | torch.ones(n, n).triu(1).bool(), -1e9)
        x = x + scores.softmax(-1) @ v @ w[3].T
    return F.linear(x[:, -1], table)


def _all_texts_at_the_end(start: int, table: Tensor, weights: Tensor, width: int, length: int) -> Tensor:
    """A heap of texts, each with what it has cost."""
    texts = [(0.0, [start])]
    for _ in range(length):
        longer = []
        for cost, text in texts:
            x = table[torch.tensor(text)]
            q, k, v = (F.linear(x, w) for w in weights)
            out = (F.softmax(k @ q[-1] / k.shape[1] ** 0.5, 0)[:, None] * v).sum(0)
            costs = -F.log_softmax(table @ (x[-1] + out), dim=0)
            longer += [(cost + more, [*text, token]) for token, more in enumerate(costs.tolist())]
        texts = heapq.nsmallest(width, longer)
    return torch.tensor(texts[0][1][1:])


def _windowed_by_unfold(query: Tensor, key: Tensor, value: Tensor, window: int, block: int) -> Tensor:
    """Each query has its own `window` keys; those before the text are hidden."""
    keys, values = (F.pad(x, (0, 0, window - 1, 0)).unfold(0, window, 1) for x in (key, value))
    scores = torch.einsum("nd,ndw->nw", query, keys) / query.shape[1] ** 0.5
    missing = torch.arange(len(query))[:, None] + torch.arange(window) < window - 1
    return torch.einsum("nw,ndw->nd", scores.masked_fill(missing, -torch.inf).softmax(1), values)


def _less_than_all(query: Tensor, key: Tensor, value: Tensor, sink: float, tile: int) -> Tensor:
    """What the sink takes is a factor at the end."""
    output, log_sum = torch.zeros(len(query), value.shape[1]), torch.full((len(query), 1), -torch.inf)
    for k, v in zip(key.split(tile), value.split(tile), strict=True):
        scores = torch.einsum("nd,md->nm", query, k) / k.shape[1] ** 0.5
        more = torch.logaddexp(log_sum, scores.logsumexp(1, keepdim=True))
        output = output * (log_sum - more).exp() + (scores - more).exp() @ v
        log_sum = more
    return output * torch.sigmoid(log_sum - sink)


RIGHT = {
    "normed": (_normed_by_norm, _normed_by_torch, _normed_by_length),
    "with_sink": (_sink_by_pad, _sink_in_the_bias, _sink_by_cat),
    "two_looks": (_shifted, _by_triangles, _by_diagonal),
    "prefix_matching": (
        _by_index,
        _by_adding,
        lambda table, length: table[length:, 1 : length + 1].trace() / length,
    ),
    "logit_difference": (
        asked._one_by_one,
        lambda logits, answers: (
            logits[torch.arange(len(logits)), answers]
            - logits.masked_fill(F.one_hot(answers, logits.shape[1]).bool(), -torch.inf).max(-1).values
        ),
        lambda logits, answers: torch.where(
            logits.argmax(1) == answers,
            logits.topk(2).values.diff(dim=1)[:, 0].neg(),
            logits.gather(1, answers[:, None])[:, 0] - logits.amax(1),
        ),
    ),
    "head_weights": (_one_slice, asked._all_heads, _head_by_hand),
    "logits_of": (_layer_by_einsum, asked._head_by_head, _layer_by_torch),
    "read_prompt": (_prompt_token_by_token, asked._prompt_at_once, _prompt_in_chunks),
    "read_window": (_window_token_by_token, _window_in_chunks, _window_with_a_short_cache),
    "next_logits": (_padding_moved_away, asked._text_by_text, _padding_hidden),
    "best_beam": (_all_beams_anew, asked._without_cache, _all_texts_at_the_end),
    "windowed": (_windowed_token_by_token, _windowed_in_halves, _windowed_by_unfold),
    "tiles_with_sink": (_sink_behind, asked._with_a_key_of_its_own, _less_than_all),
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
