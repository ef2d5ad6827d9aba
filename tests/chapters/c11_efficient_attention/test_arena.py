"""The arena's networks differ in their attention alone: each equals the full one where it should."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from lesson_lib.attention import Attended, attend
from lesson_lib.chapters.c11_efficient_attention import arena
from lesson_lib.chapters.c11_efficient_attention.arena import KINDS, Classifier, Labelled
from lesson_lib.device import device
from lesson_lib.efficient import LowRank, RandomFeatures
from lesson_lib.linear import feature_map
from lesson_lib.positions import sinusoidal

B, N, TOKENS, CLASSES, D, H = 3, 13, 17, 5, 22, 2
D_K = D // H


def make(kind, **options):
    sizes = {"n": N, "n_tokens": TOKENS, "n_classes": CLASSES, "d_model": D, "n_heads": H} | options
    return Classifier(kind, **sizes).to(device()).eval()


def some(count=B, n=N):
    generator = torch.Generator("cpu").manual_seed(0)
    return torch.randint(TOKENS, (count, n), generator=generator, device="cpu").to(device())


def alike(kind, **options):
    """A network of that kind, and the full one with the same weights. What low rank has of its own is left
    over."""
    with torch.device("cpu"):  # the same weights and features on every device
        model, full = make(kind, **options), make("full", **options)
    missing, left = full.load_state_dict(model.state_dict(), strict=False)
    assert not missing and all(".attention.attention." in name for name in left)
    return model, full


def with_attention(model, attention):
    for layer in model.layers:
        layer.attention.attention = attention
    return model


def test_no_two_kinds_are_the_same():
    weights = make("full").state_dict()
    outputs = []
    for kind in KINDS:
        model = make(kind, radius=2, rank=3)
        model.load_state_dict(weights, strict=False)
        outputs.append(model(some()))
    for i, one in enumerate(outputs):
        assert all((one - other).abs().max() > 1e-4 for other in outputs[:i])


@pytest.mark.parametrize("kind", KINDS)
def test_low_rank_alone_has_parameters_of_its_own(kind):
    def count(model):
        return sum(p.numel() for p in model.parameters())

    more = 2 * 2 * 3 * N if kind == "low rank" else 0  # keys and values, two layers, three mixtures of n
    assert count(make(kind, rank=3)) == count(make("full")) + more


def test_its_parameters_counted_by_hand():
    # attention, two matrices of width 2 D and their biases, two norms
    layer = 4 * D**2 + 2 * D * 2 * D + 2 * D + 5 * D
    total = sum(p.numel() for p in make("full", n_layers=3).parameters())
    assert total == TOKENS * D + 3 * layer + 2 * D + (D + 1) * CLASSES


def test_layers_that_add_nothing_leave_the_tokens_as_they_are():
    """Their norms stand inside (pre-norm), so the way past them is free."""
    model, tokens = make("full", read="last"), some()
    for layer in model.layers:
        layer.attention.w_output.weight.data.zero_()
        for parameter in layer.feed_forward.parameters():
            parameter.data.zero_()
        for parameter in layer.norms.parameters():  # whatever they do
            parameter.data.normal_()
    assert_close(model(tokens), model.out(model.norm(model.embedding(tokens)[:, -1])))


@pytest.mark.parametrize("radius", [N - 1, N, 10 * N])
def test_a_window_that_reaches_all_is_full_attention(radius):
    window, full = alike("window", radius=radius)
    assert_close(window(some()), full(some()), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("n_layers, radius", [(1, 2), (2, 2), (3, 1)])
def test_a_window_sees_as_far_as_its_layers_carry(n_layers, radius):
    """Read at the last token: what stands further away than n_layers · radius changes nothing."""
    model, tokens = make("window", read="last", n_layers=n_layers, radius=radius), some()
    for place in range(N):
        changed = tokens.clone()
        changed[:, place] = (tokens[:, place] + 1) % TOKENS
        difference = (model(changed) - model(tokens)).abs().max()
        assert (difference > 1e-6) == (N - 1 - place <= n_layers * radius)


def test_low_rank_without_mixing_is_full_attention():
    low, full = alike("low rank", rank=N)
    for module in low.modules():
        if isinstance(module, LowRank):
            for mix in (module.mix_keys, module.mix_values):
                nn.init.eye_(mix)
    assert_close(low(some()), full(some()), atol=1e-5, rtol=1e-5)


def test_linear_is_attention_with_the_logarithm_of_products_for_a_score():
    linear, full = alike("linear")

    def by_table(query, key, value, **options):
        return attend(query, key, value, score=lambda q, k: (feature_map(q) @ feature_map(k).mT).log())

    assert_close(linear(some()), with_attention(full, by_table)(some()), atol=1e-5, rtol=1e-4)


def test_random_features_are_attention_with_their_products():
    model, full = alike("random features", n_features=7)
    phi = RandomFeatures(D_K, 7).to(device())

    def by_table(query, key, value, **options):
        weights = phi(query) @ phi(key).mT
        return Attended(weights / weights.sum(-1, keepdim=True) @ value, None)

    assert_close(model(some()), with_attention(full, by_table)(some()), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_sequences_of_a_batch_know_nothing_of_each_other(kind):
    model, tokens = make(kind), some()
    assert_close(model(tokens)[1:2], model(tokens[1:2]), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_the_answer_is_read_where_it_is_said(kind):
    mean, last = make(kind, read="mean"), make(kind, read="last")
    last.load_state_dict(mean.state_dict())
    x = mean.embedding.table[some()] * D**0.5 + sinusoidal(N, D, device=device())
    for layer in mean.layers:
        x = layer(x).output
    x = mean.norm(x)
    assert_close(mean(some()), mean.out(x).mean(1), atol=1e-5, rtol=1e-5)  # the mean of the tokens' logits
    assert_close(last(some()), last.out(x[:, -1]), atol=1e-5, rtol=1e-5)
    assert (mean(some()) - last(some())).abs().max() > 1e-4


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_reach_all_parameters(kind):
    model, tokens = make(kind, rank=3, radius=2).train(), some()
    arena.loss(model, Labelled(tokens, tokens[:, 0] % CLASSES)).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().max() > 0, name


@pytest.mark.parametrize("bad", ["Full", {}])
def test_another_kind_gets_a_sentence(no_shape_hook, bad):
    for ask in (make, lambda kind: arena.attention(kind, n=N, d_k=D_K, radius=2, rank=3, n_features=7)):
        with pytest.raises(
            ValueError, match=r"kind must be one of full, .*, random features, window and global, got "
        ) as caught:
            ask(bad)
        assert str(caught.value).endswith(repr(bad))


@pytest.mark.parametrize(
    "kind, name",
    [("window", "radius"), ("low rank", "rank"), ("low rank", "n"), ("random features", "n_features")],
)
@pytest.mark.parametrize("bad", [-1, [1]])
def test_a_bad_size_of_an_attention_gets_a_sentence(no_shape_hook, kind, name, bad):
    with pytest.raises(ValueError, match=f"{name} must be a whole number"):
        make(kind, **{name: bad})


def test_low_rank_takes_no_longer_sequences():
    model = make("low rank")
    assert model(some(n=N - 2)).shape == (B, CLASSES)
    with pytest.raises(ValueError, match=f"mixes at most {N} keys, got {N + 1}"):
        model(some(n=N + 1))
