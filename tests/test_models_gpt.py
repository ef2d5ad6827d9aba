"""The small GPT: it never looks ahead, its cache changes nothing but the cost, and its sampling does what it
says; the n-grams beside it."""

import math
from collections import Counter

import pytest
import torch
from torch.testing import assert_close

from lesson_lib import experiments
from lesson_lib.device import to_device
from lesson_lib.models import gpt
from lesson_lib.models.gpt import GPT, bits, distribution, generate, loss, next_characters, window_start
from lesson_lib.models.ngrams import NGrams

ALPHABET = "\nabcdefghijk"
KINDS = ["rotary", "learned"]


def small(positions="rotary", context=13, **options):
    torch.manual_seed(1)
    model = GPT(ALPHABET, n_layers=2, d_model=24, n_heads=3, context=context, positions=positions, **options)
    with torch.no_grad():  # lively enough that every character before matters
        for name, weight in model.named_parameters():
            weight.mul_(3 if ".w_" in name else 1)
    return to_device(model).eval()


def some(n, seed=0):
    generator = torch.Generator("cpu").manual_seed(seed)
    return torch.randint(len(ALPHABET), (n,), generator=generator, device="cpu")


@pytest.mark.parametrize("positions", KINDS)
def test_no_place_looks_ahead_and_every_place_looks_back(positions):
    model, tokens = small(positions), to_device(some(11))[None]
    changed = tokens.clone()
    changed[0, 6] = (changed[0, 6] + 1) % len(ALPHABET)
    one, two = model(tokens), model(changed)
    assert_close(one[:, :6], two[:, :6])
    assert (one[:, 6:] - two[:, 6:]).abs().amax(-1).min() > 1e-4


def test_parameters_are_counted_by_hand():
    v, d, layers, context = 12, 24, 2, 13
    layer = 4 * d * d + 2 * d * 4 * d + 4 * d + 5 * d
    counted = {kind: sum(p.numel() for p in small(kind).parameters()) for kind in KINDS}
    assert counted["rotary"] == v * d + layers * layer + 2 * d
    assert counted["learned"] == counted["rotary"] + context * d


@pytest.mark.parametrize("positions, n_key_heads", [("rotary", 1), ("rotary", 2), ("learned", 2)])
def test_shared_heads_of_keys_and_their_cache(positions, n_key_heads):
    """Generation with the cache is that without; the cache holds n_key_heads of 4 heads; parameters are fewer
    by what the keys and values lack."""
    torch.manual_seed(1)
    sizes = {"n_layers": 2, "d_model": 24, "n_heads": 4, "context": 13, "positions": positions}
    model = to_device(GPT(ALPHABET, **sizes, n_key_heads=n_key_heads)).eval()
    for temperature in (0, 1.3):
        made = [
            generate(model, "abc", 23, temperature=temperature, cached=cached) for cached in (True, False)
        ]
        assert made[0] == made[1] and len(made[0]) == 23
    caches, tokens = model.encoder.caches(), to_device(some(11))[None]
    parts = torch.cat([model(part, caches) for part in tokens.split([4, 1, 6], 1)], 1)
    assert_close(parts, model(tokens), atol=1e-5, rtol=1e-5)
    assert {cache.key.shape for cache in caches} == {(1, n_key_heads, 11, 6)}
    full, counted = (sum(p.numel() for p in m.parameters()) for m in (GPT(ALPHABET, **sizes), model))
    assert full - counted == 2 * 2 * 24 * (4 - n_key_heads) * 6


def test_loss_is_the_mean_surprise_of_the_next_character():
    model, windows = small(), to_device(some(21).view(3, 7))
    by_hand = [-model(row[None, :-1])[0].log_softmax(-1)[i, row[i + 1]] for row in windows for i in range(6)]
    assert_close(loss(model, windows), torch.stack(by_hand).mean())


def test_the_window_holds_half_to_all_of_the_context():
    for context in (2, 3, 7, 13):
        for n in range(1, 60):
            seen = n - window_start(n, context)
            assert seen == n if n <= context else context - context // 2 < seen <= context
            assert window_start(n, context) <= window_start(n + 1, context)


@pytest.mark.parametrize("positions", KINDS)
def test_the_caches_logits_are_those_of_the_whole_window(positions):
    model, known = small(positions), some(22).tolist()
    cached, whole = gpt._Reader(model, cached=True), gpt._Reader(model, cached=False)
    for n in range(1, 23):
        assert_close(cached.logits(known[:n]), whole.logits(known[:n]), atol=1e-5, rtol=0)


def test_the_cache_computes_a_row_per_character_until_the_window_moves():
    model, rows = small(context=13), []
    model.encoder.register_forward_pre_hook(lambda _, x: rows.append(x[0].shape[1]))
    generate(model, "abcde", 12)
    assert rows == [5, 1, 1, 1, 1, 1, 1, 1, 1, 8, 1, 1]  # 14 known, of which the first 6 are dropped
    rows.clear()
    generate(model, "abcde", 12, cached=False)
    assert rows == [5, 6, 7, 8, 9, 10, 11, 12, 13, 8, 9, 10]


@pytest.mark.parametrize("positions", KINDS)
@pytest.mark.parametrize("n, context", [(2, 13), (14, 13), (40, 13), (25, 8)])
def test_bits_are_those_of_generation(positions, n, context):
    model, tokens = small(positions, context), some(n)
    reader, by_hand = gpt._Reader(model, cached=False), []
    with torch.no_grad():
        for i in range(1, n):
            shares = reader.logits(tokens[:i].tolist()).softmax(-1)
            by_hand.append(-math.log2(shares[tokens[i]].item()))
    found = bits(model, tokens)
    assert found.dtype == torch.float64 and found.device.type == "cpu"
    assert_close(found, torch.tensor(by_hand, dtype=torch.float64, device="cpu"), atol=1e-4, rtol=0)


def test_temperature_and_top_k_reshape_the_odds_as_computed_by_hand():
    logits = torch.tensor([0.0, math.log(2), math.log(4)])
    for temperature, top_k, expected in [
        (1, None, [1 / 7, 2 / 7, 4 / 7]),
        (0.5, None, [1 / 21, 4 / 21, 16 / 21]),
        (1.0, 2, [0, 1 / 3, 2 / 3]),
        (2.0, 1, [0, 0, 1]),
        (0, None, [0, 0, 1]),
        (0, 3, [0, 0, 1]),
        (1e-300, None, [0, 0, 1]),
    ]:
        shares = distribution(logits, temperature, top_k)
        expected = torch.tensor(expected, dtype=torch.float64, device="cpu")
        assert_close(shares, expected, atol=1e-7, rtol=0)
    assert distribution(torch.zeros(5), top_k=3).count_nonzero() == 3, "ties too: exactly k"


def test_temperature_0_takes_the_likeliest_whatever_the_seed():
    model = small()
    made = {generate(model, "abc", 17, temperature=0, seed=seed) for seed in range(3)}
    assert made == {generate(model, "abc", 17, top_k=1, seed=9)}
    text = "abc" + made.pop()
    for i in range(3, len(text)):
        assert next_characters(model, text[:i])[0][0] == text[i]


def test_draws_follow_the_odds_and_the_seed():
    model = small()
    odds = dict(next_characters(model, "abc", 1.5, 4))
    count = Counter(generate(model, "abc", 1, temperature=1.5, top_k=4, seed=seed) for seed in range(150))
    assert set(count) <= set(odds) and len(odds) == 4 and sum(odds.values()) == pytest.approx(1)
    assert all(abs(count[c] / 150 - odds[c]) < 0.12 for c in odds)
    assert (
        generate(model, "abc", 30, seed=5)
        == generate(model, "abc", 30, seed=5)
        != generate(model, "abc", 30, seed=6)
    )


def test_next_characters_are_sorted_and_sum_to_1():
    pairs = next_characters(small(), "ab")
    shares = [share for _, share in pairs]
    assert {c for c, _ in pairs} == set(ALPHABET) and sum(shares) == pytest.approx(1)
    assert shares == sorted(shares, reverse=True)
    assert next_characters(small(), "ab", 0) == [(pairs[0][0], 1.0)]


def test_an_empty_text_starts_from_the_first_character():
    model = small()
    assert generate(model, "", 20, seed=4) == generate(model, "\n", 20, seed=4)
    assert next_characters(model, "") == next_characters(model, "\n")


def test_of_a_long_text_only_the_window_counts():
    model, tail = small(context=13), "abcdefghija"
    start = window_start(41, 13)
    assert next_characters(model, "k" * 30 + tail) == next_characters(
        model, "k" * start + ("k" * 30 + tail)[start:]
    )
    far = "a" * start + ("k" * 30 + tail)[start:]
    assert far != "k" * 30 + tail and next_characters(model, far) == next_characters(model, "k" * 30 + tail)


@pytest.mark.parametrize("temperature", [-0.1, math.nan, "1"])
def test_odd_temperatures_get_a_sentence(temperature, no_shape_hook):
    for ask in (lambda **o: generate(small(), "a", 2, **o), lambda **o: next_characters(small(), "a", **o)):
        with pytest.raises(ValueError, match=r"temperature must be a number >= 0, got .*"):
            ask(temperature=temperature)


@pytest.mark.parametrize(
    "top_k, words", [(0, "whole number from 1 to"), (2.0, "whole number"), (13, "from 1 to 12")]
)
def test_odd_top_ks_get_a_sentence(top_k, words, no_shape_hook):
    with pytest.raises(ValueError, match=f"top_k must be .*{words}"):
        generate(small(), "a", 2, top_k=top_k)
    with pytest.raises(ValueError, match=f"top_k must be .*{words}"):
        distribution(torch.zeros(12), top_k=top_k)


@pytest.mark.parametrize("length", [0, 1.5])
def test_odd_lengths_get_a_sentence(length, no_shape_hook):
    with pytest.raises(ValueError, match="length must be a whole number >= 1"):
        generate(small(), "a", length)


def test_unknown_characters_and_what_is_no_text_get_a_sentence(no_shape_hook):
    with pytest.raises(ValueError, match="text holds 'z', 'é', which this model has never seen"):
        generate(small(), "abzé", 3)
    for wrong in (None, ["a"], 3):
        with pytest.raises(TypeError, match="text must be a str"):
            next_characters(small(), wrong)


@pytest.mark.parametrize("positions", KINDS)
def test_more_than_the_context_is_refused(positions):
    model = small(positions)
    assert model(to_device(some(13))[None]).shape == (1, 13, 12)
    with pytest.raises(ValueError, match="tokens must fit the context of 13, got 14"):
        model(to_device(some(14))[None])
    caches = model.encoder.caches()
    model(to_device(some(13))[None], caches)
    with pytest.raises(ValueError, match="got 14"):
        model(to_device(some(1))[None], caches)


def by_definition(text, h, c, n, n_tokens, d):
    """Interpolated Kneser-Ney from its definition, with loops; h has at most n - 1 tokens."""
    grams = [tuple(text[i : i + n]) for i in range(len(text) - n + 1)]

    def level(m):
        if m == 0:
            return 1 / n_tokens
        before = tuple(h[len(h) - (m - 1) :])
        count = Counter(grams)
        if m < n:  # how many different tokens stand in front
            count = Counter(gram[1:] for gram in {gram[-m - 1 :] for gram in grams})
        total = sum(k for g, k in count.items() if g[:-1] == before)
        if not total:
            return level(m - 1)
        kinds = len({g for g in count if g[:-1] == before})
        return (max(count[(*before, c)] - d, 0) + d * kinds * level(m - 1)) / total

    return level(n)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_n_grams_are_kneser_ney_by_its_definition(n):
    text, asked = some(60, seed=1) % 5, some(17, seed=2) % 5
    found = NGrams(text, n, n_tokens=7, discount=0.7).probabilities(asked)
    padded = [0] * (n - 1) + asked.tolist()
    expected = [
        by_definition(text.tolist(), padded[i : i + n - 1], padded[i + n - 1], n, 7, 0.7) for i in range(17)
    ]
    assert_close(found, torch.tensor(expected, dtype=torch.float64, device="cpu"))


@pytest.mark.parametrize("n", [1, 2, 5])
def test_probabilities_of_all_characters_sum_to_1(n):
    model, before = NGrams(some(200) % 5, n, n_tokens=7), some(9, seed=3) % 7
    last = [model.probabilities(torch.cat([before, torch.tensor([c], device="cpu")]))[-1] for c in range(7)]
    assert min(last) > 0 and sum(last) == pytest.approx(1)


def test_a_long_n_gram_knows_a_pattern_that_a_short_one_cannot_see():
    text = torch.tensor([0, 1, 2, 3, 0, 3, 2, 1] * 40, device="cpu")  # who follows depends on two before
    one, two, three = (NGrams(text, n, n_tokens=5).bits(text).mean().item() for n in (1, 2, 3))
    assert three < 0.1 < 0.8 < two < 1.9 < one
    assert NGrams(text, 2, n_tokens=5).bits(text).shape == (len(text) - 1,)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"n": 0}, "n must be a whole number >= 1"),
        ({"discount": 1.0}, "discount must lie between 0 and 1, got 1.0"),
        ({"n": 20}, "n = 20 is too large to count"),
        ({"n": 8}, "tokens must hold at least n = 8"),
    ],
)
def test_odd_n_grams_get_a_sentence(options, words, no_shape_hook):
    with pytest.raises(ValueError, match=words):
        NGrams(some(7), **{"n": 2, "n_tokens": 12} | options)


def test_rates_positions_and_discounts_were_chosen_on_validation():
    stored = experiments.results("gpt")
    recipe, rows = stored["recipe"], stored["rows"]
    tried = [
        r
        for r in rows
        if r["kind"] == "tried" or (r["kind"] == "trained" and r["size"] == "short" and r["seed"] == 0)
    ]
    assert len(tried) == 1 + len(recipe["tried"])
    best = min(tried, key=lambda r: r["validation_bits"])
    short = recipe["short"]
    assert (best["lr"], best["positions"]) == (short["lr"], short["sizes"]["positions"])
    rates = [r["lr"] for r in tried if r["positions"] == best["positions"]]
    assert min(rates) < best["lr"] < max(rates)
    discounts = {r["n"]: r["discount"] for r in rows if r["kind"] == "n-gram"}
    assert all(
        min(recipe["discounts"]) < discounts[n] < max(recipe["discounts"]) for n in recipe["n"] if n > 1
    )
