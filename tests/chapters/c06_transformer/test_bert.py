"""The small BERT: both sides, no padding, words hidden as published, heads that can be interfered with."""

import math

import pytest
import torch

from lesson_lib.chapters.c06_transformer import bert
from lesson_lib.chapters.c06_transformer.agreement import LONGEST, MASK, PAD, VOCABULARY, draw, read
from lesson_lib.chapters.c06_transformer.bert import Bert, Counts, Hidden, changed, fill, hide, maps
from lesson_lib.chapters.c06_transformer.experiments import bert as experiment
from lesson_lib.device import to_device

LAYERS, HEADS, D_MODEL = 3, 5, 35
SENTENCE = "the keys to the cabinet near my doors [mask] old"


def generator(seed=0):
    return torch.Generator("cpu").manual_seed(seed)


def small():
    torch.manual_seed(0)
    return to_device(Bert(n_layers=LAYERS, d_model=D_MODEL, n_heads=HEADS, d_inner=13)).eval()


def one(sentence):
    words = read(sentence)
    return to_device((words, torch.tensor([words.shape[1]], device="cpu")))


def test_logits_for_every_word_at_every_place_and_parameters_by_hand():
    model = small()
    assert model(*one(SENTENCE)).shape == (1, 10, len(VOCABULARY))
    layer = 4 * D_MODEL**2 + 2 * D_MODEL * 13 + 13 + 5 * D_MODEL
    table = (len(VOCABULARY) + LONGEST) * D_MODEL + len(VOCABULARY)
    assert sum(p.numel() for p in model.parameters()) == table + LAYERS * layer + 2 * D_MODEL


def test_words_and_positions_start_with_one_size():
    model = Bert(d_model=96)
    rows = model.embedding.table * 96**0.5
    assert rows.std().item() == pytest.approx(1, abs=0.05)
    assert model.embedding.positions.table.std().item() == pytest.approx(1, abs=0.05)


def test_both_sides_reach_every_place():
    model, (words, lengths) = small(), one(SENTENCE)
    for place in (0, 9):
        other = words.clone()
        other[0, place] = read("quiet")[0, 0]
        assert ((model(words, lengths) - model(other, lengths)).abs().amax(-1) > 0).all()


def test_padding_changes_nothing():
    model, (words, lengths) = small(), one(SENTENCE)
    poisoned = torch.nn.functional.pad(words, (0, 7), value=17)  # no PAD there: only the length tells
    torch.testing.assert_close(model(poisoned, lengths)[:, :10], model(words, lengths))


def test_logits_come_from_the_table_of_embeddings():
    model, (words, lengths) = small(), one(SENTENCE)
    with torch.no_grad():
        model.bias.uniform_()
    output = model.stack(words, lengths).output
    torch.testing.assert_close(model(words, lengths), output @ model.embedding.table.T + model.bias)


def test_hide_chooses_fifteen_percent_of_the_real_words():
    given = draw(generator(), 1201)
    seen, lengths, words, chosen = hide(given.words, given.lengths, generator(1))
    assert torch.equal(words, given.words) and torch.equal(lengths, given.lengths)
    assert not chosen[words == PAD].any() and torch.equal(seen[~chosen], words[~chosen])
    wanted = [max(1, round(0.15 * n)) for n in lengths.tolist()]
    assert chosen.sum(1).tolist() == wanted
    shares = chosen.sum(0) / (words != PAD).sum(0)
    assert shares[:8].min() > 0.1 and shares[:8].max() < 0.25  # every place has its turn


def test_hide_masks_replaces_and_leaves_as_published():
    words = torch.full((4000, 10), 40, device="cpu")
    lengths = torch.full((4000,), 10, device="cpu")
    seen, _, _, chosen = hide(words, lengths, generator(2), share=1.0)
    assert chosen.all()
    assert (seen == MASK).float().mean() == pytest.approx(0.8, abs=0.01)
    assert (seen == 40).float().mean() == pytest.approx(0.1 + 0.1 / (len(VOCABULARY) - 2), abs=0.01)
    others = seen[(seen != MASK) & (seen != 40)]
    assert others.min() == MASK + 1 and others.max() == len(VOCABULARY) - 1


def test_the_loss_counts_the_chosen_places_alone():
    model = small()
    given = draw(generator(), 7)
    batch = to_device(hide(given.words, given.lengths, generator(1)))
    logits = model(batch.seen, batch.lengths).log_softmax(-1)
    by_hand = [
        -logits[b, i, batch.words[b, i]].item()
        for b, i in batch.chosen.nonzero().tolist()
    ]  # fmt: skip
    assert bert.loss(model, batch).item() == pytest.approx(sum(by_hand) / len(by_hand), rel=1e-5)


def test_counts_by_hand():
    # places chosen: the middle of "2 3 4" twice, of "2 5 4" and of "6 5 4" once, all seen as [mask]
    words = torch.tensor([[2, 3, 4], [2, 3, 4], [2, 5, 4], [6, 5, 4]], device="cpu")
    seen, chosen = words.clone(), torch.zeros(4, 3, dtype=torch.bool, device="cpu")
    seen[:, 1], chosen[:, 1] = MASK, True
    counted = Counts(Hidden(seen, torch.full((4,), 3, device="cpu"), words, chosen), n_words=7, prior=0.0)
    asked = seen[:1]
    assert counted.logits(asked, "nothing")[0, 1].exp().tolist() == pytest.approx([0, 0, 0, 0.5, 0, 0.5, 0])
    assert counted.logits(asked, "left")[0, 1].exp().tolist() == pytest.approx([0, 0, 0, 2 / 3, 0, 1 / 3, 0])
    sure = counted.logits(seen[3:], "both")[0, 1].exp()
    assert sure.tolist() == pytest.approx([0, 0, 0, 0, 0, 1, 0])
    with pytest.raises(ValueError, match="sight must be nothing, left or both, got 'right'"):
        counted.logits(asked, "right")


def test_fill_ranks_words_with_probabilities():
    model = small()
    guesses = fill(model, SENTENCE.upper() + ".", top=3)
    shares = [guess.probability for guess in guesses]
    assert len(guesses) == 3 and shares == sorted(shares, reverse=True)
    everything = fill(model, SENTENCE, top=1000)
    assert len(everything) == len(VOCABULARY) and math.isclose(
        sum(g.probability for g in everything), 1, rel_tol=1e-5
    )
    assert everything[:3] == guesses


@pytest.mark.parametrize("sentence, options, message", [
    ("the keys are old", {}, r"has no \[mask\]; write \[mask\] once"),
    ("the keis [mask] old", {}, "'keis' is not among the 84 words of this grammar; near it: keys"),
    ("", {}, "with spaces between"), ("the keys [mask] old", {"top": 0}, "top must be a whole number >= 1"),
])  # fmt: skip
def test_fill_says_what_is_wrong(sentence, options, message, no_shape_hook):
    with pytest.raises(ValueError, match=message):
        fill(small(), sentence, **options)


def test_maps_are_rows_of_weights_for_every_layer_and_head():
    words, weights = maps(small(), SENTENCE)
    assert words == SENTENCE.split() and weights.shape == (LAYERS, HEADS, 10, 10)
    torch.testing.assert_close(weights.sum(-1), torch.ones(LAYERS, HEADS, 10, device="cpu"))
    assert weights.device.type == "cpu" and not weights.requires_grad


def weights_of(model, inputs):
    with torch.no_grad():
        return model.stack(*inputs, weights=True).weights


def test_a_blind_head_loses_that_key_and_no_other_head_of_its_layer_changes():
    model, inputs = small(), one(SENTENCE)
    before = weights_of(model, inputs)
    blind = torch.zeros(1, 10, 10, dtype=torch.bool)
    blind[0, 8, 1] = True
    with changed(model, 1, 2, blind=blind):
        after = weights_of(model, inputs)
    torch.testing.assert_close(after[0], before[0])
    others = [h for h in range(HEADS) if h != 2]
    torch.testing.assert_close(after[1][:, others], before[1][:, others])
    assert after[1][0, 2, 8, 1] == 0 and after[1][0, 2, 8].sum().item() == pytest.approx(1, abs=1e-5)
    renormed = before[1][0, 2, 8].clone()
    renormed[1] = 0
    torch.testing.assert_close(after[1][0, 2, 8], renormed / renormed.sum())
    torch.testing.assert_close(after[1][0, 2, :8], before[1][0, 2, :8])
    assert (after[2] - before[2]).abs().max() > 1e-6


def test_a_uniform_head_looks_evenly_and_at_no_padding():
    model, (words, lengths) = small(), one(SENTENCE)
    inputs = (torch.nn.functional.pad(words, (0, 3), value=17), lengths)
    with changed(model, 0, 4):
        after = weights_of(model, inputs)
    wanted = torch.tensor([0.1] * 10 + [0.0] * 3).expand(13, 13)
    torch.testing.assert_close(after[0][0, 4], wanted)
    assert (after[0][0, 0] - wanted).abs().max() > 1e-4
    with changed(model, 0):
        after = weights_of(model, inputs)
    torch.testing.assert_close(after[0][0], wanted.expand(HEADS, 13, 13))


def test_after_an_interference_the_model_is_as_before_even_after_an_error():
    model, inputs = small(), one(SENTENCE)
    before = model(*inputs)
    with pytest.raises(RuntimeError, match="stop"), changed(model, 0, 0):
        assert (model(*inputs) - before).abs().max() > 0
        raise RuntimeError("stop")
    torch.testing.assert_close(model(*inputs), before)


# The experiment, on few sentences.


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setitem(experiment.RECIPE, "sentences", {"training": 1200, "validation": 31, "test": 211})
    caches = (experiment.sentences, experiment.hidden, experiment.counts)
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()


def test_agreement_asks_which_form_is_likelier(few, monkeypatch, no_shape_hook):
    given = experiment.sentences("test")
    right = given.right()

    def sure(guesser, seen, lengths):
        assert torch.equal(seen, given.masked())
        logits = torch.zeros(*seen.shape, len(VOCABULARY), device="cpu")
        logits[torch.arange(len(seen), device="cpu"), given.verb, right] = guesser
        return logits

    monkeypatch.setattr(experiment, "logits", sure)
    for confidence, share in ((1.0, 1.0), (0.0, 0.5), (-1.0, 0.0)):
        found = experiment.agreement(confidence)
        assert found["all"] == found["misleading"] == share
        by_hand = math.log(math.exp(confidence) + len(VOCABULARY) - 1) - confidence
        assert found["cross_entropy"] == pytest.approx(by_hand, rel=1e-5)
        assert [row[2] for row in found["by_attractors"]] == [share] * 4
    assert sum(row[1] for row in found["by_attractors"]) == 211
    assert sum(row[1] for row in found["misleading_by_attractors"]) == given.misleading.sum()


def test_guesses_by_counting_follow_the_neighbour_and_are_misled(few):
    assert experiment.agreement("nothing")["all"] == pytest.approx(0.5, abs=0.15)
    found = experiment.agreement("left")
    assert found["misleading"] < 0.45 and found["by_attractors"][0][2] > 0.6
    losses = [experiment.guessed(sight)["cross_entropy"] for sight in experiment.SIGHTS]
    assert losses[1] < losses[0] and losses[2] < losses[0]


def test_the_probe_reads_the_masked_verbs_row(few, monkeypatch):
    model = to_device(experiment.make()).eval()
    given = experiment.probed()
    assert given.attractors.min() == 1
    row = 7
    seen = given.masked()[row : row + 1, : given.lengths[row]]
    tables = weights_of(model, to_device((seen, given.lengths[row : row + 1])))
    found = experiment.looks(model, given)
    for layer in range(2):
        torch.testing.assert_close(
            found[layer][:, row, : given.lengths[row]], tables[layer][0, :, given.verb[row]].cpu()
        )
    perfect = torch.zeros(1, 1, *given.words.shape, device="cpu").scatter(
        -1, given.subject[None, None, :, None], 1.0
    )
    monkeypatch.setattr(experiment, "looks", lambda model, given: perfect)
    (told,) = experiment.probe(model)
    assert (told["weight"], told["largest"]) == (1, 1)
    assert told["offset"] == pytest.approx(experiment.best_offset()) and told["offset"] < 0.5


def test_blind_hides_the_subject_from_the_queries_that_are_meant(few):
    given = experiment.probed().take(torch.tensor([3, 5, 8], device="cpu"))
    everywhere, at_verb, control = (experiment.blind(given, how) for how in ("all", "verb", "control"))
    for b, (subject, verb) in enumerate(zip(given.subject.tolist(), given.verb.tolist(), strict=True)):
        n = given.words.shape[1]
        assert everywhere[b].nonzero().tolist() == [[i, subject] for i in range(n)]
        assert at_verb[b].nonzero().tolist() == [[verb, subject]]
        assert control[b].nonzero().tolist() == [[i, verb - 1] for i in range(n)]
