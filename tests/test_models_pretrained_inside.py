"""Cuts, patches and lenses: what is changed inside is what is said, and all is put back."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from lesson_lib.charts.opened import parts
from lesson_lib.device import to_device
from lesson_lib.models.pretrained import (
    cut,
    exchanged,
    lens,
    new_model,
    opened,
    patched,
    without_each,
)  # fmt: skip
from lesson_lib.models.pretrained.characters import Characters

N = 9
CONFIG = {
    "model_type": "llama", "vocab_size": 31, "hidden_size": 12, "intermediate_size": 20,
    "num_hidden_layers": 3, "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 4,
}  # fmt: skip


@pytest.fixture
def model():
    torch.manual_seed(1)
    made = new_model(CONFIG).eval()
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.5)
    return made


def tokens(seed=2):
    generator = torch.Generator("cpu").manual_seed(seed)
    return to_device(torch.randint(31, (2, N), generator=generator, device="cpu"))


@torch.no_grad()
def test_a_head_that_is_cut_adds_nothing(model):
    """As if its columns of w_output were 0."""
    x = tokens()
    whole = model(x, weights=True)
    with cut(model, [(1, 2), (1, 5), (0, 0)]):
        got = model(x, weights=True)
    for layer, head in ((1, 2), (1, 5), (0, 0)):
        model.layers[layer].attention.w_output.weight[:, head * 4 : head * 4 + 4] = 0
    assert_close(got.logits, model(x).logits)
    assert not torch.allclose(got.logits, whole.logits, atol=1e-2)
    assert_close(got.weights[0], whole.weights[0])  # it still looks


@torch.no_grad()
def test_all_is_put_back_also_after_an_error(model):
    x = tokens()
    expected = model(x).logits
    for block in (cut(model, [(0, 1)]), patched(model, 0, {3: torch.zeros(12)})):
        with pytest.raises(RuntimeError), block:
            raise RuntimeError
        assert torch.equal(model(x).logits, expected)
    with cut(model, []):
        assert torch.equal(model(x).logits, expected)


@torch.no_grad()
def test_a_patch_carries_what_another_text_has_there(model):
    x, other = tokens(), tokens(3)
    theirs = model(other, weights=True)
    with patched(model, 1, {4: theirs.stream[2][:, 4]}):
        got = model(x, weights=True)
    assert_close(got.stream[2][:, 4], theirs.stream[2][:, 4])
    keep = [i for i in range(N) if i != 4]
    own = model(x, weights=True)
    assert_close(got.stream[2][:, keep], own.stream[2][:, keep])
    assert_close(got.logits[:, :4], own.logits[:, :4])  # nobody before it hears of it
    assert not torch.allclose(got.logits[:, 5:], own.logits[:, 5:], atol=1e-3)
    with patched(
        model, 2, {i: theirs.stream[3][:, i] for i in range(N)}
    ):  # all of it: the other text's answer
        assert_close(model(x).logits, theirs.logits)
    with patched(model, 1, {4: torch.zeros(12)}):  # one row for all texts
        assert model(x, weights=True).stream[2][:, 4].abs().max() == 0


@torch.no_grad()
def test_the_lens_ends_with_the_models_own_logits(model):
    read = model(tokens(), weights=True)
    found = lens(model, read)
    assert found.shape == (4, 2, N, 31)
    assert_close(found[-1], read.logits)
    first = model.read_out(model.norm(model.embedding.table[tokens()]), model.embedding)
    assert_close(found[0], first)


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda m: cut(m, [(3, 0)]).__enter__(), "layer must lie between 0 and 2 in this llama, got 3"),
        (lambda m: cut(m, [(0, -1)]).__enter__(), "head must lie between 0 and 5"),
        (lambda m: cut(m, [1]).__enter__(), "heads must be pairs"),
        (lambda m: cut(m, [(0, True)]).__enter__(), "head must lie between"),
        (lambda m: patched(m, 7, {}).__enter__(), "layer must lie between"),
        (lambda m: patched(m, 0, {0: torch.zeros(3)}).__enter__(), r"a row has 12 numbers, got \(3,\)"),
        (lambda m: patched(m, 0, {-1: torch.zeros(12)}).__enter__(), "token must be a whole number"),
        (lambda m: lens(m, m(tokens())), "read without its stream"),
    ],
)
def test_bad_input_is_answered_with_a_sentence(no_shape_hook, model, call, said):
    with pytest.raises(ValueError, match=said):
        call(model)


def test_a_text_is_opened_as_the_model_reads_it(model):
    """Without a tokenizer a text is numbers; what a row would say is the likeliest token of its lens."""
    made = opened(model, "3, 17 5")
    assert made == opened(model, "3 17 5")._replace(weights=made.weights, stream=made.stream)
    assert made.pieces == ["3", "17", "5"] and len(made.weights) == 3 and len(made.stream) == 4
    read = model(to_device(torch.tensor([[3, 17, 5]])), weights=True)
    assert_close(made.weights[2], read.weights[2])
    assert made.says[-1] == [str(number) for number in read.logits[0].argmax(-1).tolist()]
    assert made.says[0] == [str(number) for number in lens(model, read)[0, 0].argmax(-1).tolist()]
    model.text = Characters({chr(97 + number): number for number in range(30)} | {"<s>": 30}, start=30)
    assert opened(model, "cab").pieces == ["<s>", "c", "a", "b"]
    (part,) = parts(opened(model, "cab"))
    assert part.weights.shape == (3, 6, 4, 4) and part.first == 0 and len(part.says) == 4


def test_what_cannot_be_opened_gets_a_sentence(model, no_shape_hook):
    with pytest.raises(
        ValueError, match="without a tokenizer: give it numbers of tokens, such as '3 17 5', not"
    ):
        opened(model, "spam")
    with pytest.raises(ValueError, match="tokens must lie between 0 and 30, got 31"):
        opened(model, "31")
    with pytest.raises(TypeError, match="give a text, numbers of tokens, or one image, got list"):
        opened(model, [1, 2])
    with pytest.raises(TypeError, match="model must be one that open_model or new_model gives, got str"):
        opened("a/folder", "spam")


@torch.no_grad()
def test_the_share_that_is_left_without_each_head(model):
    x = tokens()[0]
    left = without_each(model, x.cpu())
    answer = int(model(x[None]).logits[0, -1].argmax())
    assert left.shape == (3, 6)
    for layer, head in ((0, 4), (2, 1)):
        with cut(model, [(layer, head)]):
            share = model(x[None]).logits[0, -1].softmax(-1)[answer].cpu()
        assert_close(left[layer, head], share)
    assert_close(without_each(model, x.cpu(), 7)[1, 5], without_each(model, x, answer=7)[1, 5])
    assert (left - left[0, 0]).abs().max() > 1e-3


@torch.no_grad()
def test_behind_the_last_layer_only_the_last_row_carries_the_answer(model):
    x, other = tokens()[0], tokens(3)[0]
    answer = int(model(other[None]).logits[0, -1].argmax())
    assert answer != int(model(x[None]).logits[0, -1].argmax())
    moved = exchanged(model, x.cpu(), other.cpu())
    before = model(x[None]).logits[0, -1].softmax(-1)[answer].cpu()
    after = model(other[None]).logits[0, -1].softmax(-1)[answer].cpu()
    assert moved.shape == (3, N)
    assert_close(moved[2, :-1], before.expand(N - 1))
    assert_close(moved[2, -1], after)
    stream = model(other[None], weights=True).stream
    with patched(model, 0, {4: stream[1][:, 4]}):
        assert_close(moved[0, 4], model(x[None]).logits[0, -1].softmax(-1)[answer].cpu())


def test_what_cannot_be_carried_gets_a_sentence(model):
    with pytest.raises(ValueError, match="the same number of tokens, got 3 and 2"):
        exchanged(model, "1 2 3", "1 2")
    with pytest.raises(ValueError, match="both texts have the same answer; change one token"):
        exchanged(model, "1 2 3", "1 2 3")
    model.read_out = None
    with pytest.raises(ValueError, match="reads out nothing, so it has no answer"):
        without_each(model, "1 2 3")
