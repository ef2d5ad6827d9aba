"""Experiments: their data are right, their stored results belong to the recipe in the code, and each runs."""

import json
import os
from collections import Counter
from contextlib import nullcontext
from functools import partial

import pytest
import torch

from lesson_lib import experiments, measure, training
from lesson_lib.chapters.c01_history.experiments import glimpse
from lesson_lib.chapters.c02_scoring.experiments import look_up
from lesson_lib.chapters.c04_multi_head.experiments import two_relations
from lesson_lib.chapters.c05_positional_encoding.experiments import order
from lesson_lib.chapters.c06_transformer.experiments import translation
from lesson_lib.chapters.c09_truncated_attention import speech
from lesson_lib.chapters.c09_truncated_attention.experiments import phonemes
from lesson_lib.chapters.c11_efficient_attention.experiments import laws
from lesson_lib.data import topics
from lesson_lib.device import device, on
from lesson_lib.experiments import costs, lengths, recall
from lesson_lib.positions import Learned

WITHOUT_GPU = [name for name in experiments.names() if not experiments.needs_gpu(name)]
STORED = [name for name in experiments.names() if experiments.stored_at(name).exists()]


def test_only_what_needs_a_gpu_may_have_no_results_yet():
    assert set(experiments.names()) - set(WITHOUT_GPU) == {"devices"}
    assert set(WITHOUT_GPU) <= set(STORED)


# Three seeds, or a reason: what is repeated here is the timing of calls (each the median of rounds), no
# training, and the GPU was lent for half an hour.
FEWER = {"devices": 2}


@pytest.mark.parametrize("name", STORED)
def test_stored_results_belong_to_the_recipe_and_hold_every_seed(name):
    stored = experiments.results(name)
    counts, seeds = Counter(row["seed"] for row in stored["rows"]), stored["recipe"]["seeds"]
    assert set(counts) == set(seeds)
    assert counts[seeds[0]] >= counts[seeds[-2]] == counts[seeds[-1]], "the first seed chooses rates"
    assert len(stored["recipe"]["seeds"]) >= FEWER.get(name, 3) and stored["date"] and stored["machine"]
    assert stored.get("gpu", "") in stored["machine"]
    assert "gpu" in stored or name in WITHOUT_GPU


# What is shortened beside the steps of a training: keys of an experiment's recipe, or of another one's
SHORT = {
    "arena": {"rates": [1e-3], "validation": 7, "test": 11, "cost": {"sizes": [17], "batch": 1, "steps": 1}},
    "bert": {"sentences": {"training": 300, "validation": 70, "test": 110}, "rates": [1e-2]},
    "beyond": {
        "radii": [2], "layers": [1, 2], "distances": [2, 3, 5], "rates": [1e-3], "pilot": 2,
        "validation": 7, "test": 11,
    },
    "bottleneck": {"counts": [4], "rates": [1e-3], "validation": 7, "test": 11},
    "camps": {"systems": ["GCN"], "rates": [1e-3], "pilot": 1},
    "carried": {"bert.sentences": {"training": 300, "validation": 70, "test": 110}},
    "chinese_dates": {"days": 2},
    "club": {"rates": [1e-2], "pilot": {"club": 1, "blocks": 1, "opposites": 3}, "within": {"2": [0.3]}},
    "codes": {"rows": [[5, "smaller codes"], [5, "no codes"]], "vit.validation": 7, "vit.test": 11},
    "copying": {"lengths": [6, 12]},
    "costs": {
        "over": {"n": {"sizes": [8, 16, 32, 64], "d": 4}, "d": {"sizes": [4, 8, 16], "n": 8}}, "rounds": 1,
        "generation": {"n": 8, "d": 4, "rounds": 1, "near": 2},
        "chunks": {"sizes": [64], "heads": [1], "d": 4, "rounds": 1},
        "threads": {"kinds": ["RNN"], "n": 8, "d": 4, "batches": [1], "counts": [1, 2], "rounds": 1},
    },
    "dates": {
        "settings": [["additive", 2, [1, 2], 2]], "rates": [1e-2], "texts": 5,
        "map": {"system": "additive", "dates": 1, "steps": 2, "seed": 0, "text": "3. märz 2021"},
    },
    "detr": {"scenes": {"validation": 7, "test": 11}, "kept": 5},
    "found": {"scenes": 3, "detr.scenes": {"validation": 7, "test": 11}},
    "glimpse": {
        "batch": 7, "rates": [2e-3], "departures": {"no baseline": {"baseline": False}},
        "other_n_glimpses": [1], "noise": {"paths": 3, "canvases": 5, "every": 1},
        "validation": 7, "test": 11, "pictures": 2,
    },
    "gpt": {
        "tried": [[4e-3, "learned"]], "n": [1, 2], "discounts": [0.5, 0.9], "lengths": [5],
        "samples": {"text": "The ", "length": 5, "settings": [[0, None], [1.0, 5]]},
    },
    "joined": {"distances": [5, 6], "rates": [1e-3], "pilot": [5], "validation": 7, "test": 11},
    "laws": {"shortest": 8, "longest": dict.fromkeys(laws.KINDS, 32), "rounds": 1},
    "lengths": {"speech_s": [1], "rounds": 1},
    "look_up": {"widths": [4], "rates": [1e-2]},
    "loud_starts": {"loud": [4]},
    "nearness": {
        "convolutions": [["depthwise", 5], ["dense", 5]], "rates": [1e-3], "radii": [None], "hide": [5],
        "kept": 1,
    },
    "norms": {
        "sentences": {"training": 300, "validation": 70, "test": 110},
        "batch": {"norms": ["layer", "batch"], "sizes": [4], "layers": 1, "steps": 2, "rates": [1e-2]},
        "depth": {"layers": [2], "size": 4, "steps": 2, "rates": [1e-2]},
    },
    "order": {"rates": [1e-2], "steps": [2], "sequences": 3},
    "phonemes": {"rates": [1e-2, 3e-2], "radii": [0, 5, None]},
    "paths": {"lengths": [4, 8]},
    "real_graph": {"rates": [1e-2], "shares": [0.5], "by_lot": ["GCN"]},
    "recall": {
        "distances": [3, 4], "middle": [3], "aided_middle": [3], "rates": [1e-3], "validation": 7, "test": 11,
        "judged": 2, "aided": {"start": [3]}, "pilot": {aid: [3] for aid in recall.AIDS},
    },
    "remembering": {"distances": [3], "rates": [1e-2], "pilot": [3]},
    "residual": {"layers": [2], "rates": [1e-2]},
    "sagan": {
        "systems": {"own": ["nothing"], "shared": ["attention"]}, "judged": 20, "shown": 2, "reports": 2,
        "classifier": {"steps": 2, "lr": 3e-3, "batch": 8, "seed": 0},
        "long": {"steps": 2, "noises": "own", "middles": ["nothing", "attention"]},
    },
    "schedules": {"dates.texts": 5},
    "shared_keys": {"rates": [4e-3, 8e-3]},
    "silent_heads": {"texts": 5, "translation.model": translation.RECIPE["model"] | {"n_heads": 1}},
    "small_batches": {"glimpse.validation": 7, "glimpse.test": 11},
    "stretch": {"sequences": 3, "lengths": [8, 16], "length": 8, "tuning_steps": 2},
    "tagger": {
        "systems": ["one word", "attention"], "rates": [1e-2],
        "sentences": {"training": 300, "validation": 70, "test": 110},
    },
    "translation": {
        "runs": [[[1], 2, [1]], [[1, 2], 2, [1]]], "other_rates": [1e-3], "timed": [3], "timed_batch": 2,
        "days": 1, "dates.texts": 5, "model": translation.RECIPE["model"] | {"n_layers": 1},
    },
    "unmasked": {"places": [1], "dates.texts": 5},
    "vit": {
        "n": {"digit": [50], "pair": [50, None]}, "rates": [1e-3], "pilot_n": 50, "validation": 7, "test": 11,
        "looked_at": 3,
    },
    "writer": {"lengths": [12], "judged_at": 12},
}  # fmt: skip
NOT_SHORT = {
    "devices": "needs a GPU: tests/test_experiments_devices.py",
    "ring": "starts processes, and has a small run of its own: test_ring_experiment.py",
}
MODULES = {name: experiments._module(name) for name in experiments.names()}


@pytest.fixture
def short(monkeypatch):
    """Two steps, few data, and no measuring of memory; what was kept from full recipes is forgotten, and so
    is, afterwards, what was made from short ones."""

    def forget():
        for module in MODULES.values():
            for made in vars(module).values():
                if getattr(made, "__module__", "") == module.__name__ and hasattr(made, "cache_clear"):
                    made.cache_clear()

    load, stream, arena = speech.load, topics.stream, MODULES["arena"]
    monkeypatch.setenv("LESSON_STEPS", "quick")
    for training_loop in (training, MODULES["sagan"]):
        monkeypatch.setattr(training_loop, "QUICK_STEPS", 2)
    monkeypatch.setattr(speech, "load", lambda split: load(split)[::20])
    monkeypatch.setattr(topics, "stream", lambda split: stream(split)[:700])
    monkeypatch.setattr(measure, "peak_mib", lambda call: bool(call()) + 0.5)
    monkeypatch.setattr(glimpse, "gradient_noise", partial(glimpse.gradient_noise, paths=2))
    monkeypatch.setattr(phonemes, "RADII", (0, None))
    monkeypatch.setattr(arena, "TASKS", {task: arena.TASKS[task] for task in ("pairs", "connected")})
    forget()
    yield
    forget()


@pytest.mark.parametrize("name", [name for name in MODULES if name not in NOT_SHORT])
def test_a_short_run_makes_rows_with_the_columns_of_the_stored_ones(name, short, monkeypatch):
    module, stored = MODULES[name], experiments.results(name)
    torch.set_default_device(None)  # as where experiments are run
    for key, value in SHORT.get(name, {}).items():
        of, _, key = key.rpartition(".")
        assert key in MODULES[of or name].RECIPE
        monkeypatch.setitem(MODULES[of or name].RECIPE, key, value)
    seed = module.RECIPE["seeds"][0]
    with on("cpu") if getattr(module, "DEVICE", "") == "cpu" else nullcontext():
        rows = json.loads(json.dumps(module.run(seed)))
    like = [row for row in stored["rows"] if row["seed"] == seed]
    assert {row["seed"] for row in rows} == {seed}
    assert {frozenset(row) for row in rows} == {frozenset(row) for row in like}
    for name_of_a_sort in ("kind", "part"):
        assert {row.get(name_of_a_sort) for row in rows} == {row.get(name_of_a_sort) for row in like}


def test_a_changed_recipe_is_refused(monkeypatch):
    monkeypatch.setitem(look_up.RECIPE, "steps", 7)
    with pytest.raises(ValueError, match="has changed in steps since its results were made"):
        experiments.results("look_up")


def test_unknown_and_missing_results_get_a_sentence(monkeypatch, tmp_path):
    with pytest.raises(ValueError, match=r"no experiment 'lookup'; choose from: .*dates.*look_up"):
        experiments.results("lookup")
    monkeypatch.setattr(experiments, "stored_at", lambda name: tmp_path / f"{name}.json")
    with pytest.raises(ValueError, match="no results of 'look_up' yet"):
        experiments.results("look_up")


def test_running_writes_recipe_rows_date_and_machine(monkeypatch, tmp_path):
    monkeypatch.setattr(experiments, "stored_at", lambda name: tmp_path / f"{name}.json")
    monkeypatch.setattr(look_up, "run", lambda seed: [{"seed": seed, "value": 1.0}])
    experiments.main(["look_up"])
    stored = json.loads((tmp_path / "look_up.json").read_text(encoding="utf-8"))
    assert stored["rows"] == [{"seed": seed, "value": 1.0} for seed in look_up.RECIPE["seeds"]]
    assert stored["recipe"]["pairs"] == 16 and "thread" in stored["machine"]
    assert ("gpu" in stored) == (device().type != "cpu")


def test_a_gpu_is_named_where_one_computed(monkeypatch, tmp_path):
    monkeypatch.setattr(experiments, "stored_at", lambda name: tmp_path / f"{name}.json")
    monkeypatch.setattr(experiments, "device", lambda: torch.device("xpu"))
    monkeypatch.setattr(look_up, "run", lambda seed: [{"seed": seed}])
    experiments.main(["look_up"])
    stored = json.loads((tmp_path / "look_up.json").read_text(encoding="utf-8"))
    assert stored["gpu"] == "a GPU of the kind xpu" and stored["machine"].endswith(", a GPU of the kind xpu")


def test_processor_seconds_are_measured_on_the_cpu_wherever_they_are_run(monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr(experiments, "stored_at", lambda name: tmp_path / f"{name}.json")
    monkeypatch.setenv("LESSON_DEVICE", "auto")
    for module in (costs, lengths, look_up):
        monkeypatch.setattr(
            module, "run", lambda seed: seen.append(os.environ["LESSON_DEVICE"]) or [{"seed": seed}]
        )
    experiments.main(["costs", "lengths", "look_up"])
    assert seen == 6 * ["cpu"] + 3 * ["auto"]
    assert "gpu" not in json.loads((tmp_path / "costs.json").read_text(encoding="utf-8"))


def test_what_needs_a_gpu_is_left_out_without_one_and_its_reason_said(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(experiments, "stored_at", lambda name: tmp_path / f"{name}.json")
    monkeypatch.setattr(experiments, "names", lambda: ["devices", "look_up"])
    monkeypatch.setattr(look_up, "run", lambda seed: [{"seed": seed}])
    with on("cpu"):
        assert experiments.main() == 0
        assert sorted(path.name for path in tmp_path.iterdir()) == ["look_up.json"]
        assert "devices: left out, since it needs a GPU" in capsys.readouterr().out
        assert experiments.main(["devices"]) == 1
        assert "devices: left out" in capsys.readouterr().out
        with pytest.raises(
            ValueError, match="no results of 'devices' yet; run on a machine with a GPU: python"
        ):
            experiments.results("devices")
        with pytest.raises(RuntimeError, match="compute on the CPU here"):
            experiments.gpu_name()


def test_a_look_up_asks_for_a_symbol_of_its_list_and_wants_its_answer():
    asked, symbols, answers, right = look_up.draw(torch.Generator().manual_seed(3), batch=50)
    assert all(len(set(row)) == 16 for row in symbols.tolist())
    for a, row, values, wanted in zip(
        asked.tolist(), symbols.tolist(), answers.tolist(), right.tolist(), strict=True
    ):
        assert values[row.index(a)] == wanted


def test_a_look_up_learns_and_its_splits_differ():
    model, history = look_up.train("scaled dot", 64, lr=1e-2)
    assert history.column("score")[-1] >= look_up.RECIPE["stop_at"]
    assert look_up.accuracy(model, look_up.TEST_SEED) > 0.85
    one, two = (
        look_up.draw(torch.Generator().manual_seed(s), 9)[1]
        for s in (look_up.VALIDATION_SEED, look_up.TEST_SEED)
    )
    assert not torch.equal(one, two)


def test_an_untrained_look_up_has_the_spread_that_its_score_promises():
    torch.manual_seed(0)
    assert look_up.spread(look_up.LookUp("dot", 256).to(torch.get_default_device())) == pytest.approx(
        16, rel=0.1
    )
    assert look_up.spread(look_up.LookUp("scaled dot", 256).to(torch.get_default_device())) == pytest.approx(
        1, rel=0.1
    )


def test_an_unknown_score_gets_a_sentence():
    with pytest.raises(
        ValueError, match="score must be one of dot, scaled dot, dot / d, additive, bilinear, got 'cosine'"
    ):
        look_up.make_score("cosine", 4)


def test_the_learning_rate_is_chosen_on_the_validation_split():
    def row(lr, steps, validation, test):
        return {
            "score": "dot",
            "d": 4,
            "seed": 0,
            "lr": lr,
            "steps": steps,
            "validation": validation,
            "test": test,
        }

    slow, fast, never = row(1, 900, 0.96, 0.99), row(2, 300, 0.95, 0.90), row(3, 1000, 0.94, 1.0)
    assert look_up.best_rows([slow, never, fast]) == [fast]
    assert look_up.best_rows([never, row(4, 1000, 0.93, 1.0)]) == [never]


def order_row(kind, lr, validation_loss, accuracy=(1.0, 0.5), seed=0, steps=400):
    return {
        "kind": kind,
        "steps": steps,
        "seed": seed,
        "lr": lr,
        "validation_loss": validation_loss,
        "accuracy": accuracy,
    }


def untrained(kind):
    torch.manual_seed(1)
    return order.Order(kind).to(device())


def test_the_answer_is_the_token_three_places_back_and_the_splits_differ(no_shape_hook):
    tokens, right = order.draw(torch.Generator().manual_seed(3), batch=5, length=11)
    assert tokens.shape == (5, 11) and right.shape == (5, 8)
    assert all(right[:, i - 3].equal(tokens[:, i - 3]) for i in range(3, 11))
    perfect = torch.nn.functional.one_hot(tokens.roll(3, -1), 16).float()
    assert order.loss(lambda _: 50 * perfect, (tokens, right)) == pytest.approx(0, abs=1e-6)
    one, two = (
        order.draw(torch.Generator().manual_seed(s), 9)[0] for s in (order.VALIDATION_SEED, order.TEST_SEED)
    )
    assert not torch.equal(one, two)


def test_rotary_positions_learn_in_400_steps_and_hold_beyond_their_length():
    model, history = order.train("rotary", lr=1e-2)
    assert history.rows[-1]["step"] == 400
    assert order.accuracy(model, 32, order.TEST_SEED) > 0.99
    assert order.accuracy(model, 64, order.TEST_SEED) > 0.9


def test_a_learned_table_is_right_where_it_was_trained_and_at_chance_behind():
    model, _ = order.train("learned", lr=1e-2)
    shares = order.right_by_position(model, 64, order.TEST_SEED)
    assert shares.shape == (61,) and shares[: 32 - 3].min() > 0.95 and shares[32 - 3 :].mean() < 0.15
    assert order.accuracy(model, 64, order.TEST_SEED) == pytest.approx(shares.mean().item())
    with pytest.raises(ValueError, match="codes for 32 positions, and 33 are asked for"):
        Learned(32, 64)(33)


@pytest.mark.parametrize(
    "kind, blind",
    [("none", True), ("none, causal", True)]
    + [(kind, False) for kind in ("learned", "sinusoidal", "floater", "rotary", "alibi", "alibi, causal")],
)
def test_without_positions_the_last_token_sees_a_bag_of_tokens(kind, blind):
    model, tokens = untrained(kind), torch.tensor([[1, 2, 3, 4, 5, 6, 7]])
    shuffled = tokens[:, [3, 0, 5, 2, 1, 4, 6]]
    assert torch.allclose(model(tokens)[:, -1], model(shuffled)[:, -1], atol=1e-5) == blind


@pytest.mark.parametrize("kind, blind", [("alibi", True), ("alibi, causal", False), ("rotary", False)])
def test_alibi_without_a_mask_cannot_tell_left_from_right(kind, blind):
    model, tokens = untrained(kind), torch.tensor([[1, 2, 3, 4, 5, 6, 7]])
    mirrored = model(tokens.flip(-1)).flip(-2)
    assert torch.allclose(model(tokens), mirrored, atol=1e-5) == blind


@pytest.mark.parametrize("kind", ["none", "alibi", "rotary", "shaw"])
def test_a_causal_kind_never_looks_ahead(kind):
    tokens = torch.tensor([[1, 2, 3, 4, 5, 6, 7]])
    changed = tokens.clone()
    changed[0, -1] = 9
    for name, equal in ((f"{kind}, causal", True), (kind, False)):
        model = untrained(name)
        assert torch.allclose(model(tokens)[:, :-1], model(changed)[:, :-1], atol=1e-6) == equal


@pytest.mark.parametrize("kind", ["learned", "sinusoidal"])
def test_tokens_and_added_codes_start_with_one_size(kind):
    model = untrained(kind)
    for table in (model.tokens.weight, model.added(128)):
        assert table.square().mean().item() == pytest.approx(1, rel=0.1)


def test_position_parameters_are_counted_by_hand():
    spent = {"learned": 128 * 64, "shaw": 2 * 17 * 16, "floater": 64 + (65 + 1) * 32 + (32 + 1) * 64}
    for kind in order.RECIPE["kinds"]:
        assert order.position_parameters(order.Order(kind)) == spent.get(kind, 0)


@pytest.mark.parametrize("kind", ["Shaw", "none, windowed"])
def test_an_unknown_system_of_positions_gets_a_sentence(kind):
    with pytest.raises(ValueError, match="kind must be one of none, learned, sinusoidal, shaw"):
        order.Order(kind)


def test_the_stored_rates_lie_inside_the_grid():
    chosen = {row["lr"] for row in order.best_rows(experiments.results("order")["rows"])}
    assert not {min(order.RECIPE["rates"]), max(order.RECIPE["rates"])} & chosen


def test_curves_by_length_hold_lowest_median_and_highest_of_the_seeds():
    rows = [order_row("none", 1, 0.1, (a, 1 - a, 0, a), seed=k) for k, a in enumerate((0.3, 0.9, 0.5))]
    rows += [order_row("none", 1, 0.1, (0.0,) * 4, steps=1200)]
    lengths, low, median, high = order.by_length(rows, 400)["none"]
    assert lengths == order.RECIPE["lengths"]
    assert low == [0.3, 1 - 0.9, 0, 0.3] and median == [0.5, 0.5, 0, 0.5] and high == [0.9, 1 - 0.3, 0, 0.9]


def test_two_names_are_the_tokens_one_and_three_back():
    tokens, names = two_relations.draw(torch.Generator().manual_seed(3), batch=5)
    for row, wanted in zip(tokens.tolist(), names.tolist(), strict=True):
        assert wanted == [[row[i - 1], row[i - 3]] for i in range(3, 12)]


def test_heads_change_nothing_but_the_heads():
    sizes = {
        s: sum(p.numel() for p in two_relations.make(s).parameters()) for s in two_relations.RECIPE["systems"]
    }
    assert sizes["1 head"] == sizes["2 heads"] == sizes["8 heads"] < sizes["1 head + MLP"]
    with pytest.raises(ValueError, match="system must be one of 1 head, 2 heads"):
        two_relations.make("3 heads")


def test_values_of_two_names_see_no_places():
    model = two_relations.make("1 head").to("cpu")
    tokens = torch.full((1, 12), 5, device="cpu")
    logits, weights = model(tokens)
    assert weights[0, 0].std() > 0, "the weights do see places"
    torch.testing.assert_close(logits, logits[:, :1].expand_as(logits))  # equal tokens: equal mixtures


def test_two_heads_learn_two_names_and_the_rate_is_chosen_on_validation():
    model, history = two_relations.train("2 heads", lr=1e-2, steps=300)
    assert min(two_relations.accuracy(model, two_relations.TEST_SEED)) > 0.9
    assert history.column("score")[-1] > 0.9
    rows = [
        {"system": "1 head", "seed": 0, "validation": v, "one back": t} for v, t in ((0.5, 1.0), (0.6, 0.1))
    ]
    assert two_relations.best_rows(rows) == [rows[1]]


def test_rates_are_chosen_on_one_seeds_validation_and_serve_the_others(monkeypatch):
    tuned = [order_row("none", 1, 0.3, (0.1, 0.1)), order_row("none", 2, 0.2), order_row("none", 3, 0.2)]
    tuned.append(order_row("none", 5, 0.1, steps=1200))
    assert [row["lr"] for row in order.best_rows(tuned)] == [2, 5]
    monkeypatch.setattr(order, "_grid", lambda: tuned)
    monkeypatch.setattr(order, "_row", lambda kind, **chosen: {"kind": kind} | chosen)
    assert order.run(0) == tuned
    assert order.run(2) == [
        {"kind": "none", "lr": 2, "seed": 2, "steps": 400},
        {"kind": "none", "lr": 5, "seed": 2, "steps": 1200},
    ]
