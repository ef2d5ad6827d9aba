"""What part 06b asks: four predictions, and the two functions of a training step that the learner writes."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lesson_lib.chapters.c06_transformer import translator_seconds as seconds
from lesson_lib.checks.exercise import Case, Draw, Stage, Write
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.checks.short import Choice, Number

PART = "06b_translator"

who_looks = Choice(
    name="who_looks",
    notebook=PART,
    title="A table of weights",
    asked="20 characters go in; the decoder has 11 places. Which shape have the cross-attention's weights?",
    options={"a": "(20, 20)", "b": "(11, 11)", "c": "(11, 20)", "d": "(20, 11)"},
    answer="c",
    remember="a row for each query, a column for each key",
    slips={
        "that is the encoder's own attention": "a",
        "that is the decoder's own attention": "b",
        "the decoder asks: the queries, and so the rows, are its places": "d",
    },
)

without_mask = Choice(
    name="without_mask",
    notebook=PART,
    title="Train it without the causal mask",
    asked="Without the causal mask, 150 steps: how do its training loss and its translations compare?",
    options={
        "a": "higher loss, worse translations",
        "b": "lower loss, better translations",
        "c": "lower loss, and no translation at all",
        "d": "the same of both",
    },
    answer="c",
    remember="a low loss is no translation; why, you will find out below",
    slips={
        "a mask only forbids; without it the training task is no harder": "a",
        "lower, yes; but when it writes, the characters that come later do not exist yet": "b",
        "the mask changes what each place can see": "d",
    },
)

passes = Number(
    name="passes",
    notebook=PART,
    title="How many passes?",
    asked="Dates of 10 characters and end. How often does the decoder run for 100 training steps?",
    answer="100",
    value=100,
    remember="one run a step: all places at once, under the causal mask",
    slips={
        "that is writing; in training all right characters are known beforehand": "100 * 11",
        "start, ten characters, end: yet they are not computed one by one": "100 * 12",
        "one run gives all places their logits": "100 * 10",
        "neither the backward pass nor the encoder is a second run of the decoder": "100 * 2",
        "that is one training step; there are 100": "1",
        "one run takes all 48 dates of a batch at once": "100 * 48",
    },
)

padded_loss = Choice(
    name="padded_loss",
    notebook=PART,
    title="Easy points",
    asked="Half of the places are padding, which the model predicts surely. A loss that counts them is",
    options={"a": "too high", "b": "too low", "c": "the same"},
    answer="b",
    remember="padding is easy to guess; left in the mean, it hides how the real characters fare",
    slips={
        "a place that is predicted surely adds almost nothing to the sum, and 1 to the count": "a",
        "the mean runs over more places, and the new ones have almost no loss": "c",
    },
)


def next_character_loss(
    model,  # a function: model(source, lengths, before) gives logits
    source: Int[Tensor, "b m"],
    lengths: Int[Tensor, " b"],
    target: Int[Tensor, "b n"],  # start, the answer, end; then padding, which is 0
) -> Float[Tensor, ""]:
    logits = model(source, lengths, target[:, :-1]).flatten(0, 1)
    wanted = target[:, 1:].flatten()
    return torch.nn.functional.cross_entropy(logits, wanted, ignore_index=0)


Model = Callable[[Tensor, Tensor, Tensor], Tensor]

CHANCES = [  # of 0 padding, 1 start, 2 end, 3 and 4, after each of them
    [0.2, 0.2, 0.2, 0.2, 0.2],
    [0.05, 0.05, 0.1, 0.5, 0.3],
    [0.6, 0.1, 0.1, 0.1, 0.1],
    [0.1, 0.1, 0.3, 0.1, 0.4],
    [0.1, 0.1, 0.5, 0.2, 0.1],
]


def _last_only(chances: Tensor) -> Model:
    """A decoder that looks at the last character only: row c of `chances` for what comes after c."""

    def model(source: Tensor, lengths: Tensor, before: Tensor) -> Tensor:
        return chances.log().to(before.device)[before]

    return model


def _running(seed: int, characters: int) -> Model:
    """A causal decoder whose logits depend on the source, its length, and all characters so far."""
    rows = drawn(seed, characters, characters)

    def model(source: Tensor, lengths: Tensor, before: Tensor) -> Tensor:
        read = rows.to(before.device)[source].sum(1, keepdim=True) / lengths[:, None, None]
        return rows.to(before.device)[before].cumsum(1) + read

    return model


def _numbers(rows: list) -> Tensor:
    return torch.tensor(rows, device="cpu")


def _case(model: Model, source: list, lengths: list, target: list) -> Case:
    return {
        "model": model,
        "source": _numbers(source),
        "lengths": _numbers(lengths),
        "target": _numbers(target),
    }


def _more_losses(drawn: Draw) -> list[Case]:
    target = [[1, 5, 3, 6, 2], [1, 4, 2, 0, 0], [1, 7, 7, 2, 0]]
    source = [[3, 4, 5, 6, 7, 3, 4], [5, 5, 3, 0, 0, 0, 0], [7, 6, 5, 4, 0, 0, 0]]
    return [_case(_running(1, 8), source, [7, 3, 4], target)]


def _right_loss(model: Model, source: Tensor, lengths: Tensor, target: Tensor) -> Tensor:
    logs = model(source, lengths, target[:, :-1]).log_softmax(-1)
    wanted = target[:, 1:]
    losses = -logs.gather(-1, wanted[..., None])[..., 0]
    return losses[wanted != 0].mean()


write_next_character_loss = Write(
    name="next_character_loss",
    notebook=PART,
    second=lambda n: seconds.next_character_loss(write_next_character_loss, n),
    title="The loss of a training step",
    stars=2,
    minutes=6,
    why="two lines that every translator, GPT and chat model was trained with",
    asked=(
        "give the model all characters before each place; compare with the next ones by"
        " F.cross_entropy; leave padding out"
    ),
    stages=(
        Stage(
            "the answer is one character, 3: start, 3, end; chances .5 for 3 after start, .3 for end after 3",
            lambda: [_case(_last_only(table(CHANCES)), [[3]], [1], [[1, 3, 2]])],
            "The model reads start and 3, and must say 3 and end: (-ln .5 - ln .3) / 2 = 0.95.",
        ),
        Stage(
            "two characters",
            lambda: [_case(_last_only(table(CHANCES)), [[3]], [1], [[1, 3, 4, 2]])],
            "What goes in is the target without its last column; wanted is the target without its first.",
        ),
        Stage(
            "a batch: the second answer is shorter, and padded with 0",
            lambda: [_case(_last_only(table(CHANCES)), [[3], [4]], [1, 1], [[1, 3, 4, 2], [1, 4, 2, 0]])],
            "F.cross_entropy has an argument for a class that does not count.",
        ),
        Stage(
            "a model that reads source and lengths, too",
            lambda: [
                _case(
                    _running(3, 7),
                    [[3, 4, 5], [6, 3, 0]],
                    [3, 2],
                    [[1, 5, 6, 4, 2], [1, 4, 2, 0, 0]],
                )
            ],
            "Hand on source and lengths as they are.",
        ),
    ),
    reference=_right_loss,
    hints=(
        "Which column of target may the model not read? Which need it not predict?",
        "F.cross_entropy wants logits (places, classes) and classes (places,): how do you flatten?",
        "Which argument of F.cross_entropy takes the class that is to be left out?",
    ),
    solution=next_character_loss,
    hidden=_more_losses,
    remember="in: target[:, :-1]; out: target[:, 1:]; ignore_index = padding",
    slips={
        "the model reads what it must say: give it the characters BEFORE each place": (
            "target[:, :-1])",
            "target[:, 1:])",
        ),
        "you compare with the characters that went in; compare with the next ones": (
            "target[:, 1:].flatten()",
            "target[:, :-1].flatten()",
        ),
        "padding counts: leave it out by ignore_index=0": (", ignore_index=0", ""),
        "padding adds nothing, but is counted in the mean": (
            "    return torch.nn.functional.cross_entropy(logits, wanted, ignore_index=0)",
            "    losses = torch.nn.functional.cross_entropy(logits, wanted, reduction='none')\n"
            "    return (losses * (wanted != 0)).mean()",
        ),
        "ignore_index is padding, 0; you leave out another sign": ("ignore_index=0", "ignore_index=2"),
        "cross_entropy takes logits; it applies the softmax itself": (
            "cross_entropy(logits",
            "cross_entropy(logits.softmax(-1)",
        ),
        "the loss is the mean, not the sum": ("ignore_index=0", "ignore_index=0, reduction='sum'"),
        "the model reads the whole target, and its first logits are compared: the places no longer fit": (
            "target[:, :-1]).flatten(0, 1)",
            "target)[:, 1:].flatten(0, 1)",
        ),
        "the characters before each place run backwards": ("target[:, :-1])", "target[:, :-1].flip(1))"),
        "you average each text first; every real character is to count alike": (
            "    return torch.nn.functional.cross_entropy(logits, wanted, ignore_index=0)",
            "    rows = wanted.view(len(target), -1)\n"
            "    loss = torch.nn.functional.cross_entropy\n"
            "    each = [loss(a, b, ignore_index=0) for a, b in zip(logits.split(rows.shape[1]), rows)]\n"
            "    return torch.stack(each).mean()",
        ),
        "you look for padding in what goes in, so a place behind the end counts; look in what is wanted": (
            "    return torch.nn.functional.cross_entropy(logits, wanted, ignore_index=0)",
            "    real = target[:, :-1].flatten() != 0\n"
            "    return torch.nn.functional.cross_entropy(logits[real], wanted[real])",
        ),
        "shifted twice: the places are one apart already, and yours ask for the next character but one": (
            "target[:, :-1]).flatten(0, 1)",
            "target[:, :-1])[:, :-1].flatten(0, 1)",
            "target[:, 1:].flatten()",
            "target[:, 2:].flatten()",
        ),
        "nothing is shifted: each place is asked for the character that it has just read": (
            "target[:, :-1])",
            "target)",
            "target[:, 1:].flatten()",
            "target.flatten()",
        ),
        "you shift the wrong way: the model reads what comes after, and is asked for what came before": (
            "target[:, :-1])",
            "target[:, 1:])",
            "target[:, 1:].flatten()",
            "target[:, :-1].flatten()",
        ),
        "you flatten before you shift: the end of one text is asked for the start of the next": (
            "target[:, :-1]).flatten(0, 1)",
            "target).flatten(0, 1)[:-1]",
            "target[:, 1:].flatten()",
            "target.flatten()[1:]",
        ),
        "a second shift goes back: each place is asked for the character that it has just read": (
            "target[:, :-1]).flatten(0, 1)",
            "target[:, :-1])[:, 1:].flatten(0, 1)",
            "target[:, 1:].flatten()",
            "target[:, 1:-1].flatten()",
        ),
    },
)


def learning_rates(
    step: Int[Tensor, " n"],  # 1 for the first step
    steps: int,
    warm: int,
    peak: float,
) -> Float[Tensor, " n"]:
    rise = peak * step / warm
    done = (step - warm) / (steps - warm)
    fall = peak * (1 + torch.cos(torch.pi * done)) / 2
    return torch.where(step <= warm, rise, fall)


def _plan(first: int, last: int, steps: int, warm: int, peak: float) -> Case:
    return {
        "step": torch.arange(first, last + 1, device="cpu"),
        "steps": steps,
        "warm": warm,
        "peak": peak,
    }


def _right_rates(step: Tensor, steps: int, warm: int, peak: float) -> Tensor:
    rates = [
        peak * s / warm if s <= warm else peak * math.cos(math.pi / 2 * (s - warm) / (steps - warm)) ** 2
        for s in step.tolist()
    ]
    return torch.tensor(rates, device=step.device)


write_learning_rates = Write(
    name="learning_rates",
    second=lambda n: seconds.learning_rates(write_learning_rates, n),
    title="A slow start, a slow end",
    stars=2,
    minutes=6,
    why="nearly every model of today was trained on this curve",
    asked=(
        "up to step `warm` the rate rises evenly to peak: peak * step / warm; then it falls by half a cosine:"
        " peak * (1 + cos(pi * done)) / 2, where done goes from 0 at `warm` to 1 at `steps`"
    ),
    stages=(
        Stage(
            "the rise: steps 1 to 4, warm = 4, peak = 8",
            lambda: [_plan(1, 4, 100, 4, 8.0)],
            "2, 4, 6, 8.",
        ),
        Stage(
            "the fall: steps 4 to 8 of 8, warm = 4, peak = 8",
            lambda: [_plan(4, 8, 8, 4, 8.0)],
            "Done is 0, .25, .5, .75, 1: from 8 by way of 4, in the middle, to 0.",
        ),
        Stage(
            "both: all steps of 20, warm = 5",
            lambda: [_plan(1, 20, 20, 5, 0.5)],
            "torch.where(condition, rise, fall) picks the one or the other, step by step.",
        ),
    ),
    reference=_right_rates,
    hints=(
        "How large is step / warm at the first step, and at step warm?",
        "Behind the warm-up steps - warm steps remain. Which share of them is done at a step?",
        "Compute both curves for all steps. Which torch function picks from two tensors by a condition?",
    ),
    solution=learning_rates,
    hidden=lambda drawn: [_plan(3, 47, 50, 11, abs(float(drawn(1, 1))) + 0.1), _plan(1, 7, 7, 2, 1.0)],
    remember="warm-up, then half a cosine",
    slips={
        "the warm-up is missing: up to `warm` the rate rises": (
            "torch.where(step <= warm, rise, fall)",
            "fall.clamp(max=peak)",
        ),
        "the fall is missing: behind `warm` the rate stays at peak": (
            "torch.where(step <= warm, rise, fall)",
            "rise.clamp(max=peak)",
        ),
        "`done` counts from the first step; it begins at `warm`": (
            "(step - warm) / (steps - warm)",
            "step / steps",
        ),
        "`done` must reach 1 at the last step: divide by the steps that are left": (
            "/ (steps - warm)",
            "/ steps",
        ),
        "rise and fall have changed places": ("warm, rise, fall)", "warm, fall, rise)"),
        "that is a whole cosine: it falls and rises again": ("torch.pi * done", "2 * torch.pi * done"),
        "the cosine goes from 1 to -1; add 1 and halve it": (
            "peak * (1 + torch.cos(torch.pi * done)) / 2",
            "peak * torch.cos(torch.pi * done)",
        ),
        "you forgot to halve: the fall begins at twice the peak": ("done)) / 2", "done))"),
        "that is a quarter of a wave, cos(pi/2 done); half a wave is (1 + cos(pi done)) / 2": (
            "peak * (1 + torch.cos(torch.pi * done)) / 2",
            "peak * torch.cos(torch.pi / 2 * done)",
        ),
        "you count the steps from 0; the first is 1 and has the rate peak / warm, not 0": (
            "    rise = peak",
            "    step = step - 1\n    rise = peak",
        ),
        "that is a straight line down; half a cosine is asked for": (
            "peak * (1 + torch.cos(torch.pi * done)) / 2",
            "peak * (1 - done)",
        ),
        "the rise ends at 1; it must end at peak": ("rise = peak * step", "rise = step"),
        "the fall starts from 1; it must start from peak": ("fall = peak * (1", "fall = (1"),
        "your rise counts the steps from 0; the first is 1, and step `warm` itself reaches peak": (
            "rise = peak * step",
            "rise = peak * (step - 1)",
        ),
        "your cosine runs from the first step, times the rise; it begins at `warm`, where the rise ends": (
            "return torch.where(step <= warm, rise, fall)",
            "return rise.clamp(max=peak) * (1 + torch.cos(torch.pi * step / steps)) / 2",
        ),
        "brackets are missing: peak times (1 + cos), and all of it halved": (
            "peak * (1 + torch.cos(torch.pi * done)) / 2",
            "peak * 1 + torch.cos(torch.pi * done) / 2",
        ),
    },
)


def reads_ahead(
    model,  # a function: model(before) gives logits (b, n, signs)
    before: Int[Tensor, "b n"],
    other: int,
) -> Float[Tensor, " n"]:
    logits, moved = model(before), []
    for i in range(before.shape[1]):
        changed = before.clone()
        changed[:, i] = other
        difference = model(changed) - logits
        moved.append(difference[:, :i].abs().sum())
    return torch.stack(moved)


def _reader(seed: int, signs: int, ahead: int) -> Callable[[Tensor], Tensor]:
    """A model whose place i reads all places up to i + ahead."""
    rows = drawn(seed, signs, signs)

    def model(before: Tensor) -> Tensor:
        n = before.shape[1]
        mask = torch.ones(n, n, device=before.device).tril(ahead)
        return mask @ rows.to(before.device)[before]

    return model


def _itself(before: Tensor) -> Tensor:
    """One sign as its only logit, times 10, and the next one's added: place i reads i + 1."""
    following = torch.cat([before[:, 1:], torch.zeros_like(before[:, :1])], 1)
    return (10 * before + following)[..., None].float()


def _probe(model: Callable, before: list, other: int) -> Case:
    return {"model": model, "before": _numbers(before), "other": other}


def _right_ahead(model: Callable, before: Tensor, other: int) -> Tensor:
    n, logits = before.shape[1], model(before)
    found = torch.zeros(n, device=logits.device)
    for i in range(n):
        changed = torch.where(torch.arange(n, device=before.device) == i, other, before)
        found[i] = (model(changed) - logits).abs().sum((0, 2))[:i].sum()
    return found


write_reads_ahead = Write(
    name="reads_ahead",
    notebook=PART,
    second=lambda n: seconds.reads_ahead(write_reads_ahead, n),
    title="Does it read ahead?",
    stars=2,
    minutes=8,
    why="ten lines that have found leaks in published code",
    asked=(
        "for each place i: replace the sign at i by other, run the model again, sum the absolute change of"
        " all logits at the places BEFORE i"
    ),
    stages=(
        Stage(
            "signs 3, 5, 4; the logit at a place is 10 times its sign plus the next one; other = 9",
            lambda: [_probe(_itself, [[3, 5, 4]], 9)],
            "Place 0 has nobody before it: 0. At place 1, 5 becomes 9, and place 0 moves by 4. At place 2, 4"
            " becomes 9, and place 1 moves by 5.",
        ),
        Stage(
            "a model that reads one place ahead",
            lambda: [_probe(_reader(1, 7, 1), [[1, 5, 3, 6, 2]], 4)],
            "Begin from the untouched text each time; only one sign differs.",
        ),
        Stage(
            "two texts; a model without any mask; and one that is causal",
            lambda: [
                _probe(_reader(2, 7, 9), [[1, 5, 3, 6], [1, 4, 4, 2]], 0),
                _probe(_reader(3, 7, 0), [[1, 5, 3, 6], [1, 4, 4, 2]], 0),
            ],
            "Sum over texts, places before i, and logits; a causal model gives 0 everywhere.",
        ),
    ),
    reference=_right_ahead,
    hints=(
        "How do you change one sign without changing `before` itself?",
        "The model gives logits for all places. Which slice holds the places before i?",
        "A change may be up or down: what must you take before you sum?",
    ),
    solution=reads_ahead,
    hidden=lambda drawn: [_probe(_reader(5, 9, 2), [[1, 8, 7, 6, 5, 4], [1, 2, 2, 3, 3, 0]], 6)],
    remember="disturb the future, compare the past",
    slips={
        "the place itself counts as well; only those before it shall": ("[:, :i]", "[:, : i + 1]"),
        "all places count; those from i on may move": ("difference[:, :i]", "difference"),
        "you sum the places behind i: they may move": ("[:, :i]", "[:, i + 1 :]"),
        "changes up and down cancel: take absolute values": (".abs()", ""),
        "you copy `before` once, so each round changes one sign more": (
            "logits, moved = model(before), []",
            "logits, moved, changed = model(before), [], before.clone()",
            "        changed = before.clone()\n",
            "",
        ),
        "the mean is over all numbers; the sum is asked for": (
            "difference[:, :i].abs().sum()",
            "difference[:, : max(i, 1)].abs().mean() * (i > 0)",
        ),
        "you replace everything from i on; one sign alone is to change": (
            "changed[:, i] =",
            "changed[:, i:] =",
        ),
        "only the first text is changed": ("changed[:, i] = other", "changed[0, i] = other"),
        "squared changes are summed; absolute ones are asked for": (".abs().sum()", ".square().sum()"),
        "you sum the places from i on, which may move; asked is about those before i": (
            "[:, :i]",
            "[:, i:]",
        ),
        "you sum first, so that changes up and down cancel; take absolute values first, then sum": (
            ".abs().sum()",
            ".sum().abs()",
        ),
    },
)

ASKED = (
    who_looks,
    write_next_character_loss,
    padded_loss,
    passes,
    without_mask,
    write_reads_ahead,
)
