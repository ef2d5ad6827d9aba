"""Second problems of parts 06b and 06c: a chat model's loss, the published schedule, and inputs that catch a
mistake."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from lesson_lib.checks.exercise import Case, Exercise, Stage, Write
from lesson_lib.checks.inputs import drawn, table
from lesson_lib.training import warmup

Model = Callable[[Tensor], Tensor]


def next_character_loss_2(
    model,  # a function: model(tokens) gives logits (b, n, words), each of the word after it
    tokens: Int[Tensor, "b n"],  # prompt, answer, then padding, which is 0
    prompt: Int[Tensor, " b"],  # how many tokens of each row are prompt
) -> Float[Tensor, ""]:
    logits = model(tokens[:, :-1])
    place = torch.arange(1, tokens.shape[1], device=tokens.device)
    wanted = tokens[:, 1:].masked_fill(place < prompt[:, None], 0)
    return F.cross_entropy(logits.flatten(0, 1), wanted.flatten(), ignore_index=0)


def _after(chances: Tensor) -> Model:
    """A model that looks at the last word only."""

    def model(tokens: Tensor) -> Tensor:
        return chances.log().to(tokens.device)[tokens]

    return model


def _running(seed: int, words: int) -> Model:
    rows = drawn(seed, words, words)

    def model(tokens: Tensor) -> Tensor:
        return rows.to(tokens.device)[tokens].cumsum(1)

    return model


def _chat(model: Model, tokens: list, prompt: list) -> Case:
    return {
        "model": model,
        "tokens": torch.tensor(tokens, device="cpu"),
        "prompt": torch.tensor(prompt, device="cpu"),
    }


def _right_chat(model: Model, tokens: Tensor, prompt: Tensor) -> Tensor:
    logs = model(tokens).log_softmax(-1)
    losses = [
        -logs[i, t - 1, tokens[i, t]]
        for i in range(len(tokens))
        for t in range(int(prompt[i]), tokens.shape[1])
        if tokens[i, t] != 0
    ]
    return torch.stack(losses).mean()


CHANCES = [[0.25, 0.25, 0.25, 0.25], [0.1, 0.2, 0.3, 0.4], [0.1, 0.1, 0.2, 0.6], [0.1, 0.5, 0.2, 0.2]]

CHAT = Write(
    name="next_character_loss_2",
    title="What a chat model learns",
    asked=(
        "a chat model reads prompt and answer in one row, and is to learn the answers only: each token is"
        " predicted from those before it; the loss is the mean over answer tokens; prompt tokens and padding"
        " (0) do not count"
    ),
    stages=(
        Stage(
            "prompt 1, answer 2, 3: the chance of 2 after 1 is .3, of 3 after 2 is .6",
            lambda: [_chat(_after(table(CHANCES)), [[1, 2, 3]], [1])],
            "The first answer token is predicted from the prompt's last: (-ln .3 - ln .6) / 2 = 0.86.",
        ),
        Stage(
            "a prompt of two tokens",
            lambda: [_chat(_after(table(CHANCES)), [[3, 1, 2, 3]], [2])],
            "The second prompt token is predicted, too, by the model; leave its loss out.",
        ),
        Stage(
            "two rows with other prompts, and padding",
            lambda: [_chat(_running(3, 7), [[3, 1, 4, 5, 6], [2, 6, 1, 0, 0]], [2, 1])],
            "Set what does not count to the class that cross_entropy ignores.",
        ),
    ),
    hints=(
        "Which token does the logit at place t predict?",
        "For which places of tokens[:, 1:] is the wanted token part of the prompt?",
        "How do you make F.cross_entropy leave out both, prompt and padding, by one argument?",
    ),
    solution=next_character_loss_2,
    reference=_right_chat,
    remember="one row, shifted by one; the mask says which tokens are to be learned",
    slips={
        "the prompt counts as well": (".masked_fill(place < prompt[:, None], 0)", ""),
        "one answer token too few: the first one counts, it is predicted from the prompt's last": (
            "place < prompt",
            "place <= prompt",
        ),
        "one prompt token counts: places of tokens[:, 1:] begin at 1": (
            "torch.arange(1, tokens.shape[1], device",
            "torch.arange(0, tokens.shape[1] - 1, device",
            "place < prompt",
            "place + 2 < prompt + 1",
        ),
        "padding counts": (", ignore_index=0", ", ignore_index=-100"),
        "the logits are compared with the tokens that they read": (
            "tokens[:, 1:].masked_fill(place",
            "tokens[:, :-1].masked_fill(place",
        ),
        "only the prompt counts; it is the answer that is to be learned": (
            "place < prompt",
            "place >= prompt",
        ),
    },
    hidden=lambda drawn: [
        _chat(_running(1, 9), [[3, 1, 4, 1, 5, 2], [8, 7, 6, 5, 0, 0], [2, 2, 7, 0, 0, 0]], [4, 1, 2])
    ],
)


def learning_rates_2(
    step: Int[Tensor, " n"],  # 1 for the first step
    d_model: int,
    warm: int,
) -> Float[Tensor, " n"]:
    return d_model**-0.5 * torch.minimum(step**-0.5, step * warm**-1.5)


def _published(first: int, last: int, d_model: int, warm: int) -> Case:
    return {"step": torch.arange(first, last + 1, device="cpu"), "d_model": d_model, "warm": warm}


PUBLISHED = Write(
    name="learning_rates_2",
    title="The schedule of 2017",
    asked=(
        "the Transformer's paper: d_model to the power -1/2 times the smaller of two: step to the power -1/2,"
        " and step * warm to the power -3/2"
    ),
    stages=(
        Stage(
            "d_model 4, warm 4: steps 1 to 4",
            lambda: [_published(1, 4, 4, 4)],
            "The first step: 1/2 * 1 * 1/8 = 1/16; at step 4 both branches are 1/2, so the rate is 1/4.",
        ),
        Stage("steps 4 to 16", lambda: [_published(4, 16, 4, 4)], "At step 16: 1/2 * 1/4 = 1/8."),
        Stage(
            "the base model's peak: d_model 512, warm 4000",
            lambda: [_published(3998, 4002, 512, 4000)],
            "1 / sqrt(512 * 4000) = 0.0007 at step 4000.",
        ),
    ),
    hints=(
        "Which of the two branches is smaller at the first step?",
        "At which step are they equal?",
        "Which torch function gives the smaller of two tensors, number by number?",
    ),
    solution=learning_rates_2,
    reference=lambda step, d_model, warm: torch.tensor(
        [warmup(s, d_model, warm) for s in step.tolist()], device=step.device
    ),
    remember="up to `warm` a straight line, then the root: the peak is 1 / sqrt(d_model * warm)",
    tolerance=1e-6,
    slips={
        "the larger of the two was taken": ("torch.minimum", "torch.maximum"),
        "the rise is missing": ("torch.minimum(step**-0.5, step * warm**-1.5)", "step**-0.5"),
        "the fall is missing": ("torch.minimum(step**-0.5, step * warm**-1.5)", "step * warm**-1.5"),
        "the width is missing: a wider model takes smaller steps": ("d_model**-0.5 * ", ""),
        "d_model grows the rate; its power is -1/2": ("d_model**-0.5", "d_model**0.5"),
        "the line's slope is warm to the power -3/2": ("warm**-1.5", "warm**-0.5"),
    },
    hidden=lambda drawn: [_published(1, 60, 7 + int(drawn(1, 1).abs() * 10), 11)],
)


def next_character_loss(first: Write, n: int) -> Exercise:
    """The loss of a chat model."""
    return CHAT


def learning_rates(first: Write, n: int) -> Exercise:
    """The published schedule."""
    return PUBLISHED


def reads_ahead_2(
    model,  # a function: model(x) gives outputs (n, d) for rows x (n, d)
    x: Float[Tensor, "n d"],
) -> Float[Tensor, "n n"]:
    x = x.detach().clone().requires_grad_()
    rows = []
    for output in model(x):
        (slope,) = torch.autograd.grad(output.sum(), x, retain_graph=True)
        rows.append(slope.abs().sum(-1))
    return torch.stack(rows)


def _mixes(seed: int, n: int, ahead: int) -> Model:
    """Place i mixes the places up to i + ahead, with weights of its own, and bends the result."""
    weights = (1.0 + drawn(seed, n, n).abs()).tril(ahead)

    def model(x: Tensor) -> Tensor:
        return torch.sin(weights.to(x.device) @ x)

    return model


def _twice(x: Tensor) -> Tensor:
    """Each place is twice itself minus the next one."""
    return 2 * x - torch.cat([x[1:], torch.zeros_like(x[:1])])


def _right_slopes(model: Model, x: Tensor) -> Tensor:
    slopes = torch.autograd.functional.jacobian(lambda rows: model(rows).sum(-1), x)  # (n, n, d)
    return slopes.abs().sum(-1)


PAST = Write(
    name="reads_ahead_2",
    title="The same test by gradients",
    asked=(
        "signs cannot be changed a little, rows can: give back (n, n), in row i, column j the sum over x[j]'s"
        " numbers of the absolute slope of output i's sum"
    ),
    stages=(
        Stage(
            "two rows of one number; output i is 2 x[i] - x[i + 1]",
            lambda: [{"model": _twice, "x": table([[3.0], [5.0]])}],
            "Row 0: 2 and 1; row 1: 0 and 2. The 1 above the diagonal says that place 0 reads ahead.",
        ),
        Stage(
            "a causal model",
            lambda: [{"model": _mixes(1, 4, 0), "x": drawn(2, 4, 3)}],
            "One output at a time: its sum, then torch.autograd.grad with respect to x.",
        ),
        Stage(
            "one that reads ahead",
            lambda: [{"model": _mixes(3, 5, 1), "x": drawn(4, 5, 2)}],
            "Everything above the diagonal that is not 0 is a leak.",
        ),
    ),
    hints=(
        "What must x have before torch can give slopes with respect to it?",
        "torch.autograd.grad(number, x) gives a tensor as large as x. Which axis do you sum?",
        "You ask once for each output. Which argument keeps the graph for the next question?",
    ),
    solution=reads_ahead_2,
    reference=_right_slopes,
    remember="the table of slopes shows at a glance who reads whom: above the diagonal it must be 0",
    slips={
        "columns and rows have changed places: row i is output i": (
            "return torch.stack(rows)",
            "return torch.stack(rows, 1)",
        ),
        "slopes up and down cancel: take absolute values": (".abs()", ""),
        "you sum over the places; sum over a row's numbers": ("slope.abs().sum(-1)", "slope.abs().sum(-2)"),
        "the mean is over a row's numbers; the sum is asked for": (
            "slope.abs().sum(-1)",
            "slope.abs().mean(-1)",
        ),
    },
    hidden=lambda drawn: [{"model": _mixes(5, 7, 2), "x": drawn(6, 7, 3)}],
)


def reads_ahead(first: Write, n: int) -> Exercise:
    """The same test by gradients."""
    return PAST
