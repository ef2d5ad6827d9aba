"""The translator around any encoder and decoder, and the experiment on dates that it serves."""

import itertools
import math
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from lesson_lib.data.dates import Pair, characters
from lesson_lib.device import to_device
from lesson_lib.experiments import dates
from lesson_lib.models import translator
from lesson_lib.models.translator import (
    END,
    PAD,
    START,
    Batches,
    Logits,
    Step,
    TransformerTranslator,
    Translator,
    Vocabulary,
    beam,
    greedy,
    loss,
    opened,
    translate,
)
from lesson_lib.recurrent import AttentionDecoder, FixedVectorDecoder, TwoWayEncoder

D_TOKEN, D_HALF, D_STATE = 5, 7, 11
TEXTS = ["3. märz 2021", "mar 3, 1987", "12 mai 2001; 3.3.2021", "2021. gada 3. marts"]
SYSTEMS = ["additive", "scaled dot", "fixed vector"]


def small(make=AttentionDecoder):
    encoder = TwoWayEncoder(D_TOKEN, D_HALF)
    decoder = make(D_TOKEN, encoder.d_memory, D_STATE)
    return to_device(Translator(Vocabulary(characters()), encoder, decoder, d_token=D_TOKEN))


def transformer(vocabulary=None, norm_first=True, seed=1, scale=4, **options):
    """With `scale` 1 as it starts, in single precision; else with larger layers, or it only repeats the
    character before."""
    torch.manual_seed(seed)
    sizes = {"n_layers": 2, "d_model": 6, "n_heads": 3, "d_inner": 11, "dropout": 0.0}
    vocabulary = vocabulary or Vocabulary(characters())
    model = TransformerTranslator(vocabulary, norm_first=norm_first, **sizes | options)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.mul_(scale if ".w_" in name else 1)
    return to_device(model if scale == 1 else model.double()).eval()


MACHINES = {
    "attention": small,
    "fixed vector": lambda: small(FixedVectorDecoder),
    "pre-norm": transformer,
    "post-norm": lambda: transformer(norm_first=False),
    "as it starts": lambda: transformer(scale=1),
}
every_machine = pytest.mark.parametrize("make", MACHINES.values(), ids=MACHINES)


class Speller(nn.Module):
    """A decoder without recurrence that says "ab" whatever the input; encoded is the input's embedding."""

    d_output = 6

    def step(self, encoded, x, state):
        wanted = [3, 4, END][state] if state < 3 else PAD
        row = torch.zeros(len(x), self.d_output, device=x.device)
        row[:, wanted] = 1.0
        return row, state + 1, torch.full(encoded.shape[:2], 1 / encoded.shape[1], device=x.device)

    def start(self, encoded):
        return 0


class FirstLook(nn.Module):
    """An encoder that is no encoder."""

    def forward(self, x, lengths):
        return x


def speller():
    model = Translator(Vocabulary("abc"), FirstLook(), Speller(), d_token=D_TOKEN)
    with torch.no_grad():
        model.read.weight.copy_(torch.eye(6))
        model.read.bias.zero_()
    return to_device(model)


def test_characters_become_numbers_and_come_back():
    vocabulary = Vocabulary("abc")
    tokens, lengths = vocabulary.encode(["cab", "b"])
    assert (PAD, START, END, len(vocabulary)) == (0, 1, 2, 6)
    assert tokens.tolist() == [[5, 3, 4], [4, 0, 0]] and lengths.tolist() == [3, 1]
    assert tokens.device.type == lengths.device.type == "cpu"
    assert vocabulary.decode(torch.tensor([[5, 3, 2, 4], [4, 2, 0, 0], [2, 3, 3, 3], [3, 3, 3, 3]])) == [
        "ca", "b", "", "aaaa",
    ]  # fmt: skip


def test_a_batch_frames_its_answers_and_pads():
    source, lengths, target = Vocabulary("abc").batch([("ab", "c"), ("c", "ba")])
    assert source.tolist() == [[3, 4], [5, 0]] and lengths.tolist() == [2, 1]
    assert target.tolist() == [[START, 5, END, PAD], [START, 4, 3, END]]
    pair = Vocabulary("abc").batch([Pair("ab", "c"), Pair("c", "ba")])
    assert all(map(torch.equal, pair, (source, lengths, target)))


@pytest.mark.parametrize("characters_given", ["", "aba"])
def test_a_vocabulary_of_nothing_or_of_twins_is_refused(characters_given, no_shape_hook):
    with pytest.raises(ValueError, match="characters must be a text of at least one character, none of them"):
        Vocabulary(characters_given)


def test_texts_that_cannot_be_encoded_get_a_sentence():
    with pytest.raises(ValueError, match="'a7é' holds '7', 'é', which this vocabulary lacks"):
        Vocabulary("abc").encode(["abc", "a7é"])
    with pytest.raises(ValueError, match="there is nothing to translate"):
        Vocabulary("abc").batch([("", "a")])


def test_the_loss_is_the_mean_over_real_characters():
    batch = to_device(
        Vocabulary("abc").batch([("ab", "c"), ("c", "ba")])
    )  # 2 + 3 characters to name, END included
    right = torch.nn.functional.one_hot(batch.target[:, 1:], 6).float()

    class Knows(nn.Module):
        def forward(self, source, lengths, before):
            return Logits(self.scores, None)

    def model(scores):
        known = Knows()
        known.scores = scores
        return known

    assert loss(model(torch.zeros(2, 3, 6)), batch).item() == pytest.approx(math.log(6))
    assert loss(model(1e3 * right), batch).item() == pytest.approx(0, abs=1e-6)
    poisoned = 1e3 * right
    poisoned[0, 2] = torch.randn(6) * 1e9  # behind the END of the first row
    assert loss(model(poisoned), batch).item() == pytest.approx(0, abs=1e-6)
    wrong = 1e3 * right
    wrong[1, 0] = 0.0  # one of five does not know
    assert loss(model(wrong), batch).item() == pytest.approx(math.log(6) / 5)


def test_batches_hold_texts_of_about_one_length_and_every_pair_once():
    asked = []

    def pairs(generator, count):
        asked.append(count)
        lengths = torch.randint(1, 60, (count,), generator=generator, device="cpu").tolist()
        return [("a" * length, "b") for length in lengths]

    served = Batches(Vocabulary("ab"), pairs, batch=5, pool=7)
    generator = torch.Generator("cpu").manual_seed(0)
    lengths = [served(generator).lengths.tolist() for _ in range(7)]
    assert asked == [35]
    assert all(batch == sorted(batch) and len(batch) == 5 for batch in lengths)
    assert sum(max(batch) - min(batch) for batch in lengths) <= 60, "hardly any padding"
    assert [batch[0] for batch in lengths] != sorted(batch[0] for batch in lengths), "in random order"
    again = Batches(Vocabulary("ab"), pairs, batch=5, pool=7)
    generator = torch.Generator("cpu").manual_seed(0)
    assert [again(generator).lengths.tolist() for _ in range(7)] == lengths
    again(generator)
    assert asked == [35, 35, 35]


def test_the_longest_answer_is_cut_and_texts_keep_their_order(monkeypatch):
    assert [made.text for made in translate(speller(), ["c", "a"], longest=1)] == ["a", "a"]
    model = small()
    together = translate(model, TEXTS, longest=9)
    for text, made in zip(TEXTS, together, strict=True):
        (alone,) = translate(model, [text], longest=9)
        assert alone.text == made.text
        assert_close(alone.weights, made.weights)
        assert made.weights.shape == (len(made.text), len(text))
        assert_close(made.weights.sum(-1), torch.ones(len(made.text)).to(made.weights))
    monkeypatch.setattr(translator, "AT_ONCE", 1)
    assert [made.text for made in translate(model, TEXTS, longest=9)] == [made.text for made in together]
    assert translate(model, []) == []


def parallel(model, source, lengths, tokens):
    """Logits and weights of all places at once, the right tokens before each given."""
    before = torch.cat([torch.full_like(tokens[:, :1], START), tokens[:, :-1]], 1)
    options = {"weights": True} if isinstance(model, TransformerTranslator) else {}
    with torch.no_grad():
        return model(source, lengths, before, **options)


@every_machine
def test_greedy_is_the_likeliest_character_after_the_ones_before(make):
    model = make()
    source, lengths = to_device(model.vocabulary.encode(TEXTS))
    tokens, looks = greedy(model, source, lengths, 13)
    logits, weights = parallel(model, source, lengths, tokens)
    logits[..., :END] = -torch.inf
    assert torch.equal(logits.argmax(-1), tokens)
    assert (weights is None) == (looks is None) == (make is MACHINES["fixed vector"])
    if weights is not None:
        assert_close(looks, weights)


@every_machine
def test_teacher_forcing_gives_the_logits_of_one_step_after_the_other(make):
    """Unequal lengths: the padding of shorter texts is hidden in both, poison does not change that."""
    model = make()
    source, lengths, target = to_device(
        model.vocabulary.batch([(t, "2021-03-03"[: 3 + i]) for i, t in enumerate(TEXTS)])
    )
    before = target[:, :-1]
    with torch.no_grad():
        together = model(source, lengths, before)
        state, steps = model.start(source, lengths), []
        for tokens in before.unbind(1):
            steps.append(model.step(tokens, state))
            state = steps[-1].state
        assert all(isinstance(step, Step) for step in steps)
        assert_close(torch.stack([step.logits for step in steps], 1), together.logits, atol=1e-5, rtol=1e-5)
        source[torch.arange(source.shape[1], device=source.device) >= lengths[:, None]] = 7
        assert_close(model(source, lengths, before).logits, together.logits, atol=1e-5, rtol=1e-5)
        changed = torch.cat([before[:, :5], torch.full_like(before[:, 5:], 7)], 1)
        assert_close(
            model(source, lengths, changed).logits[:, :5], together.logits[:, :5], atol=1e-5, rtol=1e-5
        )


@every_machine
def test_rows_of_a_state_can_be_taken_in_any_order_and_twice(make):
    model = make()
    source, lengths = to_device(model.vocabulary.encode(TEXTS))
    rows = torch.tensor([2, 0, 0, 3, 1, 2, 2], device=source.device)
    with torch.no_grad():
        _, state, _ = model.step(torch.full_like(lengths, START), model.start(source, lengths))
        taken = state.take(rows)
        tokens = torch.tensor([5, 7, 11, 13], device=source.device)
        whole, _, looks = model.step(tokens, state)
        some, _, seen = model.step(tokens[rows], taken)
    assert_close(some, whole[rows])
    assert seen is looks is None or torch.allclose(seen, looks[rows], atol=1e-6)


@every_machine
def test_a_beam_of_one_is_greedy(make):
    model = make()
    source, lengths = to_device(model.vocabulary.encode(TEXTS))
    one, other = greedy(model, source, lengths, 13), beam(model, source, lengths, 13, 1)
    assert model.vocabulary.decode(one.tokens) == model.vocabulary.decode(other.tokens)
    if one.weights is not None:
        for row, text in enumerate(model.vocabulary.decode(one.tokens)):
            assert_close(one.weights[row, : len(text)], other.weights[row, : len(text)])


def likelihoods(model, text, longest):
    """The log-probability of EVERY answer: all that end, and all that are cut at `longest`; nothing is
    searched."""
    found, known = {}, range(END, len(model.vocabulary))
    source, lengths = to_device(model.vocabulary.encode([text]))
    for n in range(1, longest + 1):
        answers = [
            answer
            for answer in itertools.product(known, repeat=n)
            if END not in answer[:-1] and (n == longest or answer[-1] == END)
        ]
        tokens = torch.tensor(answers, device=source.device)
        logits = parallel(model, source.expand(len(answers), -1), lengths.expand(len(answers)), tokens).logits
        sums = logits.log_softmax(-1).gather(-1, tokens[..., None]).sum((1, 2))
        found |= dict(zip(answers, sums.tolist(), strict=True))
    return found


@pytest.mark.parametrize("kind", ["attention", "transformer"])
def test_a_wide_beam_finds_what_an_exhaustive_search_finds_and_greedy_does_not_always(kind):
    texts, longest, missed = ["ab", "baaab", "b"], 3, 0
    for seed in range(2):
        vocabulary = Vocabulary("ab")
        if kind == "transformer":
            model = transformer(vocabulary, seed=seed)
        else:
            torch.manual_seed(seed)
            encoder = TwoWayEncoder(D_TOKEN, D_HALF)
            decoder = AttentionDecoder(D_TOKEN, encoder.d_memory, D_STATE)
            model = to_device(Translator(vocabulary, encoder, decoder, d_token=D_TOKEN))
        source, lengths = to_device(vocabulary.encode(texts))
        wide, quick = (beam(model, source, lengths, longest, w).tokens.tolist() for w in (27, 1))
        for text, searched, first in zip(texts, wide, quick, strict=True):
            scores = likelihoods(model, text, longest)
            best = max(scores, key=scores.get)
            assert tuple(searched[: len(best)]) == best and set(searched[len(best) :]) <= {END}
            missed += tuple(first[: len(best)]) != best
    assert missed, "a search that finds no more than greedy proves nothing"


@every_machine
def test_a_beam_returns_the_weights_of_the_answer_it_returns(make):
    model = make()
    source, lengths = to_device(model.vocabulary.encode(TEXTS))
    tokens, looks = beam(model, source, lengths, 7, 5)
    _, weights = parallel(model, source, lengths, tokens)
    assert (looks is None) == (weights is None)
    for row, text in enumerate(model.vocabulary.decode(tokens)):
        if looks is not None:
            assert_close(looks[row, : len(text)], weights[row, : len(text)])
    (alone,) = translate(model, TEXTS[:1], longest=7, width=5)
    assert alone.text == model.vocabulary.decode(tokens)[0], "the batch does not matter"


def test_the_alignment_is_one_layers_cross_attention_averaged_over_its_heads():
    batch = to_device(Vocabulary("abc").batch([("abca", "ab"), ("b", "abc")]))
    tables = []
    for aligned in (0, 1, -1):
        model = transformer(Vocabulary("abc"), aligned=aligned)
        logits, weights = model(*batch[:2], batch.target[:, :-1], weights=True)
        assert weights.shape == (2, 4, 4)
        assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]))
        assert not weights[1, :, 1:].any(), "padding"
        inside = model.transformer(*batch[:2], batch.target[:, :-1], weights=True).decoder.weights
        assert_close(weights, inside[aligned].cross.sum(1) / 3)
        plain = model(*batch[:2], batch.target[:, :-1])
        assert_close(plain.logits, logits) and plain.weights is None
        tables.append(weights)
    assert_close(tables[1], tables[2])
    assert not torch.allclose(tables[0], tables[1])


def test_an_opened_model_shows_every_layer_of_both_stacks():
    model, text = transformer(), TEXTS[0]
    inside, (made,) = opened(model, text), translate(model, [text])
    assert inside.source == list(text) and inside.target == ["start", *made.text]
    n, m = len(inside.target), len(text)
    assert inside.encoder.output.shape == (1, m, 6) and inside.decoder.output.shape == (1, n, 6)
    assert [table.shape for table in inside.encoder.weights] == [(1, 3, m, m)] * 2
    assert [(t.own.shape, t.cross.shape) for t in inside.decoder.weights] == [
        ((1, 3, n, n), (1, 3, n, m))
    ] * 2
    assert len(inside.encoder.stream) == len(inside.decoder.stream) == 3
    assert not inside.decoder.weights[0].own.triu(1).any()
    assert_close(inside.decoder.weights[model.aligned].cross[0].mean(0)[: n - 1].cpu(), made.weights)
    said = model.transformer.embedding.logits(inside.decoder.output)[0, :, END:].argmax(-1) + END
    assert model.vocabulary.decode(said[None, : n - 1]) == [made.text], (
        "from each place comes the next character"
    )
    assert not inside.decoder.output.requires_grad


@pytest.mark.parametrize("search", [greedy, lambda *asked: beam(*asked, 3)])
def test_a_transformer_says_neither_padding_nor_start(search):
    model = transformer()
    with torch.no_grad():
        model.transformer.decoder.norm.bias.copy_(1e3 * torch.ones(6))
        model.transformer.embedding.table[[PAD, START]] = 10.0
    source, lengths = to_device(model.vocabulary.encode(TEXTS))
    first = model.start(source, lengths)
    logits, _, _ = model.step(torch.full_like(lengths, START), first)
    assert (logits.argmax(-1) < END).all(), "it wants to"
    assert (search(model, source, lengths, 7).tokens >= END).all()


@pytest.mark.parametrize("texts", ["3. märz 2021", None])
def test_one_text_is_no_list_of_texts(texts, no_shape_hook):
    with pytest.raises(TypeError, match=r"texts must be a list of texts, got \w+; one text is \[text\]"):
        translate(small(), texts)
    with pytest.raises(TypeError, match="a text must be a str, got NoneType None"):
        translate(small(), ["3. märz 2021", None])
    with pytest.raises(TypeError, match="a text must be a str, got tuple"):
        translate(small(), [("3. märz 2021", "2021-03-03")])


def test_a_text_with_an_unknown_character_is_named():
    with pytest.raises(ValueError, match="'3 марта' holds 'а', 'м', 'р', 'т'"):
        translate(small(), ["3 марта"])


def test_the_judging_texts_are_the_same_every_time_and_share_no_day():
    one, two = dates.texts(2, "validation"), dates.texts(2, "test")
    assert one == dates.texts(2, "validation") and len(one) == len(two) == dates.RECIPE["texts"]
    assert not {d for p in one for d in p.target.split(";")} & {d for p in two for d in p.target.split(";")}
    with pytest.raises(ValueError, match="split must be validation or test, got 'training'"):
        dates.texts(2, "training")


def test_an_answer_is_judged_whole_date_by_date_and_by_length(monkeypatch):
    pairs = [
        Pair("x" * 8, "2021-03-03;1999-12-31"),
        Pair("x" * 19, "2021-03-03;1999-12-31"),
        Pair("x" * 12, "2021-03-03;1999-12-31"),
        Pair("x" * 13, "2021-03-03;1999-12-31"),
    ]
    said = ["2021-03-03;1999-12-31", "2021-03-03;1999-12-30", "1999-12-31;2021-03-03", "1999-12-31"]
    monkeypatch.setattr(dates, "texts", lambda count, split: pairs)
    monkeypatch.setattr(dates, "translate", lambda model, sources: [SimpleNamespace(text=t) for t in said])
    judged = dates.judge(small(), 2)
    assert judged == {"exact": 0.25, "single dates": 3 / 8, "by_length": [[0, 1, 1.0], [10, 3, 0.0]]}
