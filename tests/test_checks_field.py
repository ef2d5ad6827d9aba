"""Wrong answers as people write them, each in a way of its own: the sentence names the cause, however the
code was written."""

import math
import re

import pytest
import torch
import torch.nn.functional as F

from lesson_lib.checks import check, properties, store
from lesson_lib.efficient import attend_part, merge

pytestmark = [pytest.mark.on_cpu, pytest.mark.usefixtures("untried")]
FIELD, SUITE, KEPT = [], [], {}
SWAPPED = r"keys? and values? have changed places"
ALL_THREE = r"all three have changed places"


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("LESSON_HOME", str(tmp_path))
    monkeypatch.setattr(store, "_unsaved", [])


def told(name, words, **options):
    """Keeps a wrong answer to this exercise (or to properties()), with what its sentence must hold."""

    def keep(answer):
        if name == "properties":
            SUITE.append(pytest.param(answer, words, options, id=answer.__name__))
        else:
            FIELD.append(pytest.param(name, words, answer, id=f"{name}-{answer.__name__}"))
        return answer

    return keep


# --- labels ---


@told("next_loss", r"shifted twice")
def labels_from_a_dataset_that_shifts(logits, tokens):
    labels = torch.full_like(tokens, -100)
    labels[:, :-1] = tokens[:, 1:]
    return F.cross_entropy(logits[:, :-1].transpose(1, 2), labels[:, 1:], ignore_index=-100)


@told("next_loss", r"roll goes round")
def rolled_labels(logits, tokens):
    labels = torch.cat([tokens[:, 1:], tokens[:, :1]], 1)
    return F.cross_entropy(logits.transpose(1, 2), labels)


@told("next_loss", r"nothing is shifted")
def cut_at_one_end(logits, tokens):
    logs = logits.log_softmax(-1)[:, :-1]
    return -logs.gather(-1, tokens[:, :-1, None]).mean()


@told("next_loss", r"wrong way")
def asked_for_the_past(logits, tokens):
    picked = logits[:, 1:].log_softmax(-1).gather(-1, tokens[:, :-1].unsqueeze(-1))
    return -picked.mean()


@told("next_loss", r"softmax is done twice")
def probabilities_as_logits(logits, tokens):
    return F.cross_entropy(torch.softmax(logits, 2)[:, :-1].transpose(1, 2), tokens[:, 1:])


@told("next_character_loss", r"shifted twice")
def a_model_that_shifts_and_a_loop_that_shifts(model, source, lengths, target):
    asked, wanted = target[:, :-1], target[:, 1:]
    logits = model(source, lengths, asked)
    return F.cross_entropy(logits[:, :-1].transpose(1, 2), wanted[:, 1:], ignore_index=0)


@told("forced_loss", r"twice")
def two_start_signs(decode, target, start, filler):
    two = target.new_full((len(target), 2), start)
    read = torch.cat([two, target], 1)[:, : target.shape[1]]
    return F.cross_entropy(decode(read).transpose(1, 2), target, ignore_index=filler)


@told("hidden_loss", r"shift")
def shifted_as_in_a_decoder(logits, words, chosen):
    labels = words.masked_fill(~chosen, -100)
    return F.cross_entropy(logits[:, :-1].transpose(1, 2), labels[:, 1:], ignore_index=-100)


# --- who asks, who is compared, what is mixed ---


@told("soft_look_up", SWAPPED)
def by_einsum(query, key, value):
    return torch.einsum("nm,md->nd", torch.einsum("nd,md->nm", query, value).softmax(1), key)


@told("scaled_attention", SWAPPED)
def torchs_with_two_exchanged(query, key, value):
    return F.scaled_dot_product_attention(query, value, key)


@told("scaled_attention", ALL_THREE)
def from_a_library_with_another_order(query, key, value):
    def theirs(v, k, q):
        return torch.einsum("...nm,...md->...nd", (q @ k.mT / k.shape[-1] ** 0.5).softmax(-1), v)

    return theirs(query, value, key)


@told("self_attention", r"x itself stands in")
def unprojected_scores(x, w_q, w_k, w_v):
    return F.scaled_dot_product_attention(x, x, x @ w_v)


@told("self_attention", r"batch")
def softmax_over_all_rows(x, w_q, w_k, w_v):
    scores = torch.einsum("bnd,bmd->bnm", x @ w_q, x @ w_k) / math.sqrt(w_q.shape[1])
    exps = scores.exp()
    return exps / exps.sum((0, 1), keepdim=True) @ (x @ w_v)


@told("by_state", SWAPPED)
def a_state_by_cumsum(query, key, value):
    S = torch.einsum("nd,ne->nde", value, key).cumsum(0)
    return torch.einsum("nd,nde->ne", query, S) / (query * value.cumsum(0)).sum(1, keepdim=True)


@told("in_a_ring", SWAPPED)
def a_ring_by_index(query, key, value, machines):
    q, k, v = query.chunk(machines), value.chunk(machines), key.chunk(machines)
    outs = []
    for i in range(machines):
        part = attend_part(q[i], k[i], v[i])
        for step in range(1, machines):
            part = merge(part, attend_part(q[i], k[i - step], v[i - step]))
        outs.append(part.output)
    return torch.cat(outs)


@told("decoder_layer", r"the values come from x|memory gives keys AND values")
def half_a_memory(x, memory, attention, cross_attention, feed_forward, norms):
    one, two, three = norms
    y = one(x)
    x = attention(y, y, y) + x
    y = two(x)
    x = cross_attention(y, memory, y) + x
    return feed_forward(three(x)) + x


@told("additive_scores", r"exchanged")
def projections_exchanged(query, key, w_query, w_key, v):
    return ((query @ w_key).unsqueeze(1) + (key @ w_query).unsqueeze(0)).tanh() @ v


# --- heads: scale, order, sum ---


@told("many_heads", r"n_heads")
def scaled_by_their_number(x, w_query, w_key, w_value, w_output, n_heads):
    q, k, v = (y.unflatten(-1, (n_heads, -1)).movedim(-2, -3) for y in (x @ w_query, x @ w_key, x @ w_value))
    made = F.scaled_dot_product_attention(q, k, v, scale=1 / math.sqrt(n_heads))
    return made.movedim(-3, -2).flatten(-2) @ w_output


@told("several_heads", r"last head comes first")
def stacked_backwards(query, key, value, w_output, n_heads):
    parts = zip(*(x.chunk(n_heads, -1) for x in (query, key, value)), strict=True)
    outs = [F.scaled_dot_product_attention(*part) for part in parts]
    return torch.cat(outs[::-1], -1) @ w_output


@told("many_heads", r"relu")
def a_projection_with_relu(x, w_query, w_key, w_value, w_output, n_heads):
    parts = zip(*((x @ w).chunk(n_heads, -1) for w in (w_query, w_key, w_value)), strict=True)
    return F.relu(torch.cat([F.scaled_dot_product_attention(*part) for part in parts], -1) @ w_output)


@told("grouped_query", r"summed over the query heads")
def a_sum_that_hides_in_einsum(query, key, value):
    grouped = query.view(len(key), -1, *query.shape[1:])
    scores = torch.einsum("gsnd,gmd->gnm", grouped, key) * query.shape[-1] ** -0.5
    return torch.einsum("gnm,gmd->gnd", scores.softmax(-1), value)


# --- masks ---


@told("without_padding", r"rows")
def filled_by_rows(scores, real):
    return torch.where(real[..., None], scores, torch.tensor(-1e9)).softmax(-1)


@told("without_padding", r"turn the mask round")
def finite_and_turned_round(scores, real):
    return (scores + real[:, None] * -1e9).softmax(2)


@told("without_padding", r"\+inf")
def minus_minus_infinity(scores, real):
    return torch.where(real[:, None], scores, -float("-inf")).softmax(-1)


@told("attend_to_known", r"turned round")
def strangers_by_torch(query, key, value, knows):
    return F.scaled_dot_product_attention(query[None], key[None], value[None], attn_mask=~knows)[0]


@told("both_masks", r"one word too far|sees the next")
def one_too_far(real):
    n = real.shape[1]
    later = torch.ones(n, n, dtype=torch.bool).triu(2)
    return real.unsqueeze(1) & ~later


@told("with_sink", r"opposite polarity")
def a_sink_and_a_mask_turned_round(q, k, v, mask, sink):
    scores = (q @ k.T / math.sqrt(q.shape[1])).masked_fill(mask, -torch.inf)
    scores = torch.cat([scores, scores.new_full((len(q), 1), sink)], 1)
    return scores.softmax(1)[:, :-1] @ v


# --- windows, one off everywhere ---


def _row_by_row(query, key, value, sees):
    made = []
    for i in range(len(query)):
        j = [j for j in range(len(key)) if sees(i, j)]
        weights = (key[j] @ query[i] / math.sqrt(query.shape[1])).softmax(0)
        made.append(weights @ value[j])
    return torch.stack(made)


@told("block_by_block", r"one frame too wide")
def wide_row_by_row(query, key, value, radius, block):
    return _row_by_row(query, key, value, lambda i, j: abs(i - j) <= radius + 1)


@told("near_blocks", r"farthest key on each side|window was not too wide")
def narrow_near_blocks(query, key, value, radius):
    return _row_by_row(query, key, value, lambda i, j: abs(i - j) < radius)


@told("windowed", r"distance equal to the window|one key too many")
def wide_windowed(query, key, value, window, block):
    return _row_by_row(query, key, value, lambda i, j: 0 <= i - j <= window)


@told("dilated_window", r"one step too many")
def far_dilated(queries, keys, radius, step):
    far = keys[None] - queries[:, None]
    return sum(far == step * s for s in range(-radius - 1, radius + 2)).bool()


# --- places: rotary and caches ---


def _turned(t, place):
    half = t.shape[-1] // 2
    angle = place[:, None] * 10000.0 ** (-torch.arange(half) / half)
    a, b = t.split(half, -1)
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)


def _read(x, w_qkv, w_out, n_heads, chunk, query_at, key_at, later=False):
    """A layer that reads in chunks; at which places queries and keys are turned is what is wrong."""
    keys, values, made, seen = [], [], [], 0
    for part in x.split(chunk):
        n = len(part)
        q, k, v = (t.unflatten(-1, (n_heads, -1)).movedim(1, 0) for t in (part @ w_qkv.T).chunk(3, -1))
        q, k = _turned(q, query_at(seen, n)), _turned(k, key_at(seen, n))
        keys.append(k)
        values.append(v)
        seen += n
        k, v = torch.cat(keys, 1), torch.cat(values, 1)
        mask = torch.arange(seen)[None] <= (seen - n + torch.arange(n))[:, None] + later
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        made.append(out.movedim(0, 1).flatten(1) @ w_out.T)
    return torch.cat(made)


def _behind(seen, n):
    return seen + torch.arange(n)


@told("read_prompt", r"queries of a chunk start again")
def queries_at_zero(*given):
    return _read(*given, lambda seen, n: torch.arange(n), _behind)


@told("read_prompt", r"new keys start again|only the queries are turned by their place")
def keys_at_zero(*given):
    return _read(*given, _behind, lambda seen, n: torch.arange(n))


@told("read_prompt", r"twice")
def an_offset_counted_twice(*given):
    return _read(*given, *[lambda seen, n: 2 * seen + torch.arange(n)] * 2)


@told("read_prompt", r"own tokens")
def an_offset_after_the_chunk(*given):
    return _read(*given, *[lambda seen, n: seen + n + torch.arange(n)] * 2)


@told("read_prompt", r"kept by its length")
def a_table_kept_by_its_length(*given):
    kept = {}
    return _read(*given, *[lambda seen, n: kept.setdefault(n, seen + torch.arange(n))] * 2)


@told("read_prompt", r"sees the one behind")
def one_ahead(*given):
    return _read(*given, _behind, _behind, later=True)


def _rolling(x, w_query, w_key, w_value, window, chunk, place, sees):
    made, key, value, seen = [], x.new_zeros(0, len(w_key)), x.new_zeros(0, len(w_value)), 0
    for part in x.split(chunk):
        own = seen + torch.arange(len(part))
        at = place(seen, len(key), len(part))
        key = torch.cat([key, _turned(part @ w_key.T, at)])
        value = torch.cat([value, part @ w_value.T])
        seen += len(part)
        far = own[:, None] - torch.arange(seen - len(key), seen)
        scores = _turned(part @ w_query.T, at) @ key.T / math.sqrt(len(w_key))
        made.append(scores.masked_fill(~sees(far, window), -1e30).softmax(-1) @ value)
        kept = max(0, len(key) - window + 1)
        key, value = key[kept:], value[kept:]
    return torch.cat(made)


def _in_sight(far, window):
    return (far >= 0) & (far < window)


@told("read_window", r"what is kept, and that stops growing")
def a_place_is_what_is_kept(*given):
    return _rolling(*given, lambda seen, kept, n: kept + torch.arange(n), _in_sight)


@told("read_window", r"later tokens of a chunk")
def open_to_the_chunk(*given):
    return _rolling(*given, lambda seen, kept, n: seen + torch.arange(n), lambda far, window: far < window)


@told("head_weights", r"keys are not|queries are turned, the keys")
def keys_unturned(x, w_query, w_key, head, d_k):
    shared = len(w_query) // len(w_key)
    q = x @ w_query.unflatten(0, (-1, d_k))[head].T
    k = x @ w_key.unflatten(0, (-1, d_k))[head // shared].T
    scores = _turned(q, torch.arange(len(x))) @ k.T / math.sqrt(d_k)
    return scores.masked_fill(torch.ones(len(x), len(x)).triu(1).bool(), -torch.inf).softmax(-1)


@told("turned", r"one position late")
def places_from_one(x, positions, frequencies):
    z = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    turns = torch.polar(torch.ones(len(positions), len(frequencies)), torch.outer(positions + 1, frequencies))
    return torch.view_as_real(z * turns).flatten(-2)


@told("best_beam", r"WORST")
def a_search_for_the_worst(start, table, weights, width, length):
    texts = [([start], 0.0)]
    for _ in range(length):
        children = []
        for text, score in texts:
            x = table[torch.tensor(text)]
            q, k, v = (x @ w.T for w in weights)
            out = F.scaled_dot_product_attention(q[None, -1:], k[None], v[None])[0, 0]
            logs = ((x[-1] + out) @ table.T).log_softmax(-1).tolist()
            children += [([*text, token], score + log) for token, log in enumerate(logs)]
        texts = sorted(children, key=lambda child: child[1])[:width]
    return torch.tensor(max(texts, key=lambda text: text[1])[0][1:])


# --- codes ---


@told("code_row", r"//|whole number")
def whole_exponents(position, d):
    row = []
    for j in range(d // 2):
        angle = position / 10000 ** (2 * j // d)
        row += [math.sin(angle), math.cos(angle)]
    return torch.tensor(row)


@told("code_row", r"power comes before")
def a_power_too_early(position, d):
    angles = position * (1 / 10000 ** torch.arange(0.0, d, 2) / d)
    return torch.stack([angles.sin(), angles.cos()], 1).reshape(-1)


# --- gates ---


@told("lstm_step", r"ONNX")
def from_an_exported_file(summed, cell):
    i, o, f, c = summed.view(4, -1)
    cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(c)
    return torch.stack((torch.sigmoid(o) * torch.tanh(cell), cell))


def _gru(x, state, W, U, b, c, order, mix):
    new = dict(zip(order, (x @ W.T + b).chunk(3, 1), strict=True))
    old = dict(zip(order, (state @ U.T + c).chunk(3, 1), strict=True))
    r, z = ((new[gate] + old[gate]).sigmoid() for gate in "rz")
    return mix(z, (new["n"] + r * old["n"]).tanh(), state)


@told("gru_step", r"r and z have changed places")
def z_first(*given):
    return _gru(*given, "zrn", lambda z, n, h: n + z * (h - n))


@told("gru_step", r"as it was given|last line|what you changed")
def an_update_turned_round(*given):
    return _gru(*given, "rzn", lambda z, n, h: h + z * (n - h))


# --- what is kept, what is divided ---


@told("k_best_probabilities", r"turned round")
def the_best_are_hidden(logits, temperature, k):
    logits = logits.clone()
    return logits.scatter(-1, logits.topk(k, -1).indices, -torch.inf).div(temperature).softmax(-1)


@told("by_state", r"multiply")
def times_the_normaliser(query, key, value):
    scores = (query @ key.T).tril()
    return scores @ value * scores.sum(1, keepdim=True)


@told("along_edges", r"LEAVE")
def sums_of_the_senders(scores, value, edge_index):
    source, target = edge_index
    exps = scores.exp()
    share = exps / torch.stack([exps[source == s].sum() for s in source])
    return torch.stack(
        [(share[target == i, None] * value[source[target == i]]).sum(0) for i in range(len(value))]
    )


@told("norm_of_tokens", r"root of the standard deviation")
def a_root_of_a_root(x, weight, bias, eps):
    std, mean = torch.std_mean(x, -1, keepdim=True)
    return torch.rsqrt(std + eps) * (x - mean) * weight + bias


@told("additive_step", r"relu")
def a_relu_in_between(state, read, w_query, w_key, v):
    scores = torch.stack([F.relu(state @ w_query + row @ w_key) @ v for row in read])
    return (scores.softmax(0)[:, None] * read).sum(0)


# --- dropout, in an answer and in a layer ---


@told("scaled_attention", r"two different results.*dropout")
def a_dropout_in_training(query, key, value):
    weights = torch.softmax(query @ key.mT / math.sqrt(query.shape[-1]), -1)
    return F.dropout(weights, 0.1) @ value


@told("without_loops", r"two different results.*dropout")
def a_rare_dropout(query, key, value):
    return F.scaled_dot_product_attention(query[None], key[None], value[None], dropout_p=0.1, scale=1.0)[0]


@pytest.mark.parametrize("name, words, answer", FIELD)
def test_the_cause_is_named(name, words, answer):
    result = check(answer, name)
    assert not result.passed and re.search(words, result.diagnosis, re.S), result


@pytest.mark.parametrize("name", ["scaled_attention", "without_loops"])
def test_a_dropout_is_named_whatever_is_drawn(name):
    """The first inputs have a single key, whose weight two calls may well drop, or keep, alike."""
    answers = {"scaled_attention": a_dropout_in_training, "without_loops": a_rare_dropout}
    for seed in range(20):
        torch.manual_seed(seed)
        assert "two different results" in check(answers[name], name).diagnosis, seed


# --- properties ---


@told("properties", r"renormalised")
def hidden_after_and_shared_out(query, key, value, mask=None):
    weights = torch.einsum("...nd,...md->...nm", query, key).div(math.sqrt(query.shape[-1])).softmax(-1)
    weights = weights if mask is None else weights.masked_fill(~mask, 0.0)
    return F.normalize(weights, p=1, dim=-1) @ value


@told("properties", r"\+inf")
def a_bias_of_plus_infinity(query, key, value, mask=None):
    bias = None if mask is None else torch.zeros(mask.shape).masked_fill(~mask, math.inf)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=bias)


@told("properties", r"0 \* inf is nan")
def a_product_with_infinity(query, key, value, mask=None):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    return (scores if mask is None else scores + (1 - mask.float()) * -math.inf).softmax(-1) @ value


@told("properties", r"the minus is missing")
def a_billion_too_much(query, key, value, mask=None):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    return (scores if mask is None else scores + 1e9 * ~mask).softmax(-1) @ value


@told("properties", r"mask is transposed")
def a_mask_by_columns(query, key, value, mask=None):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    return (scores if mask is None else scores.masked_fill(~mask.T, -1e30)).softmax(-1) @ value


@told("properties", r"softmax runs over the batch")
def softmax_over_the_batch(query, key, value, mask=None):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    return (scores if mask is None else scores.masked_fill(~mask, -1e30)).softmax(0) @ value


@told("properties", r"sequences of a batch are mixed")
def tokens_first(query, key, value, mask=None):
    n = min(len(query), len(key))
    q, k, v = (x.movedim(0, 1) if x.ndim == 3 else x for x in (query, key[:n], value[:n]))
    return F.scaled_dot_product_attention(q, k[: len(q)], v[: len(q)]).movedim(0, 1)


@told("properties", r"two calls with the same inputs differ")
def a_very_rare_dropout(query, key, value, mask=None):
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=0.02)


@told("properties", r"comes after it in its piece", causal=True)
def a_triangle_at_the_beginning_only(query, key, value):
    first = query.shape[1] == key.shape[1]
    return F.scaled_dot_product_attention(query, key, value, is_causal=first)


def _step(x, cache, query_at, key_at):
    """One head that looks back, with a list as its cache."""
    n, seen = x.shape[1], sum(key.shape[1] for key, _ in cache)
    q, k, v = x.split(4, -1)
    cache.append((_turned(k, key_at(seen, n)), v))
    keys, values = (torch.cat(part, 1) for part in zip(*cache, strict=True))
    mask = torch.ones(n, seen + n, dtype=torch.bool).tril(seen)
    return F.scaled_dot_product_attention(_turned(q, query_at(seen, n)), keys, values, attn_mask=mask)


@told("properties", r"kept by a piece's length", cache=list)
def a_kept_table(x, cache):
    if not cache:
        KEPT.clear()

    def places(seen, n):
        return KEPT.setdefault(n, seen + torch.arange(n))

    return _step(x, cache, places, places)


@told("properties", r"not once, for query and key alike", cache=list)
def a_query_at_zero(x, cache):
    return _step(x, cache, lambda seen, n: torch.arange(n), _behind)


@pytest.mark.parametrize("function, words, options", SUITE)
def test_the_suite_names_the_cause(function, words, options):
    result = properties(function, **options)
    assert not result.passed and re.search(words, result.diagnosis), result
