"""The probes of the property suite: each disturbs the inputs of an attention function in one way and looks
what changes.

The weights are read off the outputs: with one-hot values the output IS the table of weights. So a function
that returns no weights is judged as strictly as one that does.
"""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from lesson_lib.checks import runner, values
from lesson_lib.checks.inputs import drawn, table

N, M, D, BATCH = 3, 7, 5, 2  # queries, keys, width, sequences: distinct primes
MANY = 97  # keys, so that one weight that is dropped shows
NEAR = 1e-4
POISON = 1e6


EXCHANGED = {  # which of the two is compared with the query, and which is mixed
    "vk": "keys and values have changed places: the second argument is compared, the third is mixed",
    "kk": "the keys are mixed in place of the values: the third argument is not used",
    "vv": "the values are compared in place of the keys: the second argument is not used",
}


class Stop(Exception):
    """Nothing further can be probed; the sentence says why."""


@dataclass
class Probe:
    """Calls the function with inputs of one shape, and collects findings and warnings."""

    function: Callable
    by_name: bool = False
    batch: tuple[int, ...] = (BATCH,)
    findings: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """The mask goes by its name where the function has that name, else as fourth argument."""
        try:
            kinds = inspect.signature(self.function).parameters
            self.by_name = "mask" in kinds or any(p.kind is p.VAR_KEYWORD for p in kinds.values())
        except (TypeError, ValueError):
            self.by_name = False

    def _positional(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Any:
        if mask is None:
            return self.function(query, key, value)
        return (
            self.function(query, key, value, mask=mask)
            if self.by_name
            else self.function(query, key, value, mask)
        )

    def drawn(self, seed: int, *shape: int) -> Tensor:
        return drawn(seed, *self.batch, *shape)

    def call(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """(output, weights or None). Raises Stop where there is no output of the right kind."""
        given = {"query": query, "key": key, "value": value} | ({} if mask is None else {"mask": mask})
        outcome = runner.call(self._positional, given)
        if outcome.changed:
            names = " and ".join(outcome.changed)
            self.findings["no in-place writes"] = (
                f"{names} is changed in place, and whoever called still uses that tensor: make a new one"
            )
        if outcome.trouble:
            raise Stop(outcome.trouble + ("" if mask is None else " (called with mask=, a boolean tensor)"))
        value_out, weights = outcome.value, None
        if isinstance(value_out, tuple) and len(value_out) == 2:
            value_out, weights = map(values.ordinary, value_out)
        expected = query.new_zeros(*query.shape[:-1], value.shape[-1])
        if trouble := values.unfit(value_out, expected):
            raise Stop(trouble)
        shape = (*query.shape[:-1], key.shape[-2])
        if weights is not None and (not isinstance(weights, Tensor) or tuple(weights.shape) != shape):
            raise Stop(f"the weights must have shape {shape}, got {values.described(weights)}")
        return value_out.detach(), None if weights is None else weights.detach()

    def weights(self, query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
        """The table (..., n, m) by which the function really mixes values, read off with one-hot values."""
        m, width = key.shape[-2], key.shape[-1]
        one_hot = torch.eye(m, dtype=query.dtype, device=query.device)
        parts = []
        for start in range(0, m, width):
            value = torch.zeros_like(key)
            block = one_hot[:, start : start + width]
            value[..., : block.shape[-1]] = block
            parts.append(self.call(query, key, value, mask)[0][..., : block.shape[-1]])
        return torch.cat(parts, -1)

    def record(self, name: str, sentence: str) -> None:
        """Set the finding of a property, unless an earlier probe has found a fault in it."""
        if not self.findings.get(name):
            self.findings[name] = sentence


def start(probe: Probe) -> None:
    """One call with a batch, or, where that is refused, with one sequence, which then is used throughout."""
    probe.findings |= {"runs": "", "no in-place writes": ""}
    try:
        probe.call(probe.drawn(1, N, D), probe.drawn(2, M, D), probe.drawn(3, M, D))
    except Stop as reason:
        probe.batch = ()
        try:
            probe.call(probe.drawn(1, N, D), probe.drawn(2, M, D), probe.drawn(3, M, D))
        except Stop:
            raise reason from None
        probe.warnings.append("one sequence (n, d) works, a batch (b, n, d) does not; use .mT and dim=-1")


def _repeats(probe: Probe, scale: bool) -> None:
    q, k, v = probe.drawn(4, N, D), probe.drawn(5, MANY, D), probe.drawn(6, MANY, D)
    once, twice = probe.call(q, k, v)[0], probe.call(q, k, v)[0]
    alike = values.close(once, twice, 1e-6)
    sentence = "" if alike else "two calls with the same inputs differ: dropout left on, or something random"
    probe.record("same inputs, same output", sentence)


def _apart(probe: Probe, scale: bool) -> None:
    """Probe that one sequence of the batch does not change the outputs of another."""
    if not probe.batch:
        return
    q, k, v = probe.drawn(25, N, D), probe.drawn(26, M, D), probe.drawn(27, M, D)
    output, sentence = probe.call(q, k, v)[0], ""
    others = [torch.cat([x[:1], 1 - x[1:]]) for x in (q, k, v)]
    firsts = [torch.cat([1 - x[:1], x[1:]]) for x in (q, k, v)]
    pairs = (probe.call(*others)[0][0], output[0]), (probe.call(*firsts)[0][1], output[1])
    if not all(values.close(x, y, NEAR) for x, y in pairs):
        sentence = (
            "sequences of a batch are mixed: another sequence changes this one's outputs, as where the axis"
            " of the batch is taken for that of the tokens; (b, n, d) has its tokens in axis -2"
        )
        if _is(probe.weights(q, k).sum(0), 1):
            sentence = "the softmax runs over the batch (dim=0): rows do not sum to 1; use dim=-1, the keys"
    probe.record("sequences stay apart", sentence)


def _roles(probe: Probe, scale: bool) -> None:
    """Queries ask, keys are compared, values are mixed."""
    q, k, v = probe.drawn(7, N, D), probe.drawn(8, M, D), probe.drawn(9, M, D)
    output, sentence = probe.call(q, k, v)[0], ""
    for roles, diagnosis in EXCHANGED.items():
        compared, mixed = ({"k": k, "v": v}[role] for role in roles)
        for factor in (D**-0.5, 1.0):
            weights = (factor * q @ compared.mT).softmax(-1)
            if values.close(output, weights @ mixed, 1e-3):
                sentence = diagnosis
    probe.record("query, key and value", sentence)


def _rows_and_scale(probe: Probe, scale: bool) -> None:
    q, k, v = probe.drawn(7, N, D), probe.drawn(8, M, D), probe.drawn(9, M, D)
    table_, (output, returned) = probe.weights(q, k), probe.call(q, k, v)
    rows, columns = table_.sum(-1), table_.sum(-2)
    sentence = ""
    if not _is(rows, 1):
        sentence = (
            f"a query's weights must sum to 1; here a row sums to {values.fixed(rows.flatten()[0].item())}"
        )
        if _is(columns, 1):
            sentence = (
                "the softmax runs over queries: columns of the weights sum to 1, rows do not; use dim=-1, the"
                " keys"
            )
    elif (table_ < -NEAR).any():
        sentence = "some weights are negative; softmax gives positive ones only"
    elif not values.close(table_ @ v, output, 1e-3):
        sentence = "the output is not the weighted sum of the values: it is not linear in the values"
    elif returned is not None and not values.close(returned, table_, 1e-3):
        sentence = "the weights that are returned are not those by which the values are mixed"
    probe.record("rows sum to 1", sentence)
    factor = _factor(table_, q @ k.mT)
    if factor is None and not sentence:
        probe.warnings.append(
            "the scores are no multiple of q . k, so neither their scale nor their shift was probed"
        )
    if factor is not None and scale:
        probe.record("scale", _misscaled(factor))


def _misscaled(factor: float | int) -> str:
    """What is wrong with scores of `factor` times q . k at width D; '' where the factor is 1/sqrt(D)."""
    right = D**-0.5
    named = {
        1.0: "1/sqrt(d_k) is missing: the scores are plain dot products",
        right**2: "the scores are divided by d_k; divide by sqrt(d_k)",
        1 / right: "the scores are multiplied by sqrt(d_k); divide by it",
        right: "",
    }
    matches = [text for value, text in named.items() if abs(factor - value) < 1e-2 * value]
    number = (
        f"the scores are q . k times {values.fixed(factor)}; 1/sqrt({D}) = {values.fixed(right)} is right"
    )
    return matches[0] if matches else number


def _factor(weights: Tensor, products: Tensor) -> float | None:
    """c where weights = softmax(c * products), fitted; None where they are no such softmax."""
    if not (weights > 0).all():
        return None
    logs, x = weights.double().log(), products.double()
    logs, x = logs - logs.mean(-1, keepdim=True), x - x.mean(-1, keepdim=True)
    c = float((logs * x).sum() / (x * x).sum())
    return c if (logs - c * x).abs().max() < 1e-2 else None


def _shift(probe: Probe, scale: bool) -> None:
    """Adding one vector to all keys adds, per query, one number to all its scores."""
    q, k = probe.drawn(10, N, D), probe.drawn(11, M, D)
    before, after = probe.weights(q, k), probe.weights(q, k + 3.0)
    if _factor(before, q @ k.mT) is None:
        return
    sentence = ""
    if not _is(after - before, 0):
        sentence = "adding a constant to all scores of a query must change nothing; here it does"
    elif not probe.weights(50 * q, 50 * k).isfinite().all():
        sentence = "large scores give nan or inf; subtract each row's maximum before exp"
    probe.record("shift of all scores", sentence)


def _permutes(probe: Probe, scale: bool) -> None:
    q, k, v = probe.drawn(12, N, D), probe.drawn(13, M, D), probe.drawn(14, M, D)
    rows, columns = torch.tensor([2, 0, 1]), torch.tensor([3, 6, 0, 5, 1, 2, 4])
    output = probe.call(q, k, v)[0]
    sentence = ""
    if not values.close(probe.call(q, k[..., columns, :], v[..., columns, :])[0], output, 1e-4):
        sentence = (
            "the output depends on the order of the keys, though each keeps its value: something counts"
            " positions"
        )
    elif not values.close(probe.call(q[..., rows, :], k, v)[0], output[..., rows, :], 1e-4):
        sentence = (
            "queries in another order do not give the same outputs in that order: they influence each other"
        )
    probe.record("permutation equivariance", sentence)


def _polarity(probe: Probe, scale: bool) -> None:
    q, k = probe.drawn(15, N, D), probe.drawn(16, M, D)
    mask = table([[1, 1, 0, 1, 0, 0, 1], [0, 1, 0, 0, 0, 1, 0], [1, 0, 1, 0, 1, 1, 1]]).bool()
    try:
        free, masked = probe.weights(q, k), probe.weights(q, k, mask)
    except Stop as reason:
        raise Stop(_turned(probe) or str(reason)) from None
    names = ("mask polarity", "mask before softmax")
    probe.findings |= dict.fromkeys(names, "")
    if _is(masked[..., ~mask], 0):
        sums = masked.sum(-1)
        if not _is(sums, 1):
            multiplied = _is(masked - free * mask, 0)
            worst = sums.flatten()[(sums - 1).abs().flatten().argmax()].item()
            sentence = f"with a mask, a row of weights sums to {values.fixed(worst)} instead of 1"
            if _is(sums * (sums - 1), 0) and _is(free.sum(-1), 1):
                sentence = (
                    "a query looks at no key, though the mask allows it some: the mask hides keys that were"
                    " chosen before; hide first, then choose (top-k) among the allowed ones"
                )
            elif multiplied:
                sentence = (
                    "the mask is multiplied onto the weights after the softmax, and rows no longer sum to 1: "
                    "set the hidden SCORES to -inf before the softmax"
                )
            probe.record(names[1], sentence)
        elif problem := _shared_out_again(probe):
            probe.record(names[1], problem)
        return
    hidden = masked.masked_fill(mask, 0.0).sum(-1, keepdim=True) / (~mask).sum(-1, keepdim=True)
    if not masked.isfinite().all():
        every = probe.weights(q, k, torch.ones_like(mask))
        sentence = (
            "with a mask that hides nothing, the weights are nan already: 0 * inf is nan; write"
            " masked_fill(~mask, -inf) in place of a product"
        )
        if every.isfinite().all():
            sentence = (
                "rows that hide a key are nan: hidden scores are +inf, and inf - inf is nan; hide with -inf"
            )
    elif _is(masked[..., mask], 0) and _is((masked - hidden)[..., ~mask], 0):
        sentence = (
            "hidden keys take all the weight, in equal parts: their scores are a large number where -inf is"
            " meant, the minus is missing"
        )
    elif _is(masked[..., mask], 0):
        sentence = (
            "the mask has the opposite polarity: your function hides what is True; here True = may look. "
            "Invert it once, inside (~mask)"
        )
        probe.warnings.append(
            "opposite mask polarity found: nn.MultiheadAttention has it, too; scaled_dot_product_attention"
            " has ours"
        )
    elif _is(masked - free, 0):
        sentence = "the mask changes nothing: it is ignored"
    else:
        sentence = "hidden keys still have weight: the mask does not block what it hides"
    probe.record(names[0], sentence)


def _turned(probe: Probe) -> str:
    """A sentence where a mask that fits no table turns out to be transposed, on a square one."""
    q, k = probe.drawn(15, M, D), probe.drawn(16, M, D)
    mask = torch.ones(M, M).tril().bool()
    try:
        masked = probe.weights(q, k, mask)
    except Stop:
        return ""
    if not _is(masked[..., ~mask.mT], 0):
        return ""
    return "the mask is transposed: its rows are queries, its columns keys, as those of the scores are"


def _shared_out_again(probe: Probe) -> str:
    """A sentence where weights are hidden after the softmax and the rest is divided by its sum: that is right
    unless the hidden keys had all the weight."""
    q, k = 0 * probe.drawn(22, N, D), 0 * probe.drawn(23, M, D)
    mask = torch.ones(N, M).bool()
    mask[:, 2:5] = False
    q[..., 0], k[..., 0] = 20.0, -20.0  # scores of about -179
    alike = probe.weights(q, k, mask)
    k[..., 2:5, 0] = 0.0
    if not _is(alike[..., mask], 0.25) or _is(probe.weights(q, k, mask)[..., mask], 0.25):
        return ""
    return (
        "hidden keys are taken out after the softmax, and the rest renormalised; where they had all the"
        " weight, that is 0/0 (nan): set the hidden SCORES to -inf before the softmax"
    )


def _data_dependence(probe: Probe, scale: bool) -> None:
    """Scores of exactly 0 and inputs of 0: a mask made from the data loses its entries there."""
    q, k = probe.drawn(17, M, D) + 0.0137, probe.drawn(18, M, D)  # no score is 0 by chance
    mask = torch.ones(M, M).tril().bool()
    usual = probe.weights(q, k, mask)
    sentence = ""
    for name in ("query", "key"):
        zero_q, zero_k = q.clone(), k.clone()
        (zero_q if name == "query" else zero_k)[..., 1:6:2, :] = 0
        got = probe.weights(zero_q, zero_k, mask)
        wrong = ""
        if (got[..., ~mask] > NEAR).any():
            wrong = "the hidden key is seen (as in triu(scores).bool())"
        elif (usual[..., mask] > 0).all() and not (got[..., mask] > 0).all():
            wrong = "an allowed key is hidden (as in tril(scores).bool())"
        if wrong and _is(usual[..., ~mask], 0):
            sentence = (
                f"the mask depends on the data: where a score is exactly 0, {wrong}; make it from positions"
            )
    probe.record("mask depends on nothing else", sentence)


def _causality(probe: Probe, scale: bool) -> None:
    """Disturb the future: earlier outputs stay."""
    q, k, v = probe.drawn(19, M, D), probe.drawn(20, M, D), probe.drawn(21, M, D)
    mask, cut = torch.ones(M, M).tril().bool(), 4
    before = probe.call(q, k, v, mask)[0][..., :cut, :]
    q2, k2, v2 = q.clone(), k.clone(), v.clone()
    q2[..., cut:, :], k2[..., cut:, :], v2[..., cut:, :] = -3.0, 50.0, POISON
    after = probe.call(q2, k2, v2, mask)[0][..., :cut, :]
    leak = (after - before).abs().max().item() if after.isfinite().all() else math.inf
    sentence = (
        f"under a causal mask, later tokens change earlier outputs (by {values.fixed(leak)}): the future"
        " leaks"
    )
    probe.record("causality", "" if leak < NEAR else sentence)


def _extremes(probe: Probe, scale: bool) -> None:
    """The allowed scores are about -1e30, the hidden ones 0: only -inf is lower than that."""
    q, k = 0 * probe.drawn(22, N, D), 0 * probe.drawn(23, M, D)
    q[..., 0], k[..., 0] = 1e15, -1e15
    mask = torch.ones(N, M).bool()
    mask[:, 2:5] = False
    k[..., 2:5, 0] = 0.0
    got = probe.weights(q, k, mask)
    sentence = ""
    if not got.isfinite().all():
        sentence = "scores of -1e30 give nan"
    elif not _is(got[..., ~mask], 0):
        sentence = (
            "hidden keys win when the allowed scores are very low (-1e30): the mask writes a finite number "
            "(such as -1e4 or -1e9); write -inf"
        )
    elif not _is(got[..., mask], 0.25):
        sentence = "four allowed keys with equal scores of -1e30 must share the weight equally"
    probe.record("scores of -1e30", sentence)


def _empty(probe: Probe, scale: bool) -> None:
    """A query that may look at nothing."""
    q, k, v = probe.drawn(22, N, D), probe.drawn(23, M, D), probe.drawn(24, M, D)
    mask = torch.ones(N, M).bool()
    mask[1] = False
    whole, got = probe.call(q, k, v)[0], probe.call(q, k, v, mask)[0]
    row, others = got[..., 1, :], [0, 2]
    sentence = ""
    if row.isnan().any():
        sentence = (
            "a query that may look at nothing gives nan (softmax of nothing but -inf is 0/0); make it"
            " exactly 0"
        )
    elif (row != 0).any():
        given = "the average of all values" if values.close(row, v.mean(-2), 1e-3) else "something else"
        sentence = f"a query that may look at nothing must give exactly 0; here it gives {given}"
    elif not values.close(got[..., others, :], whole[..., others, :], 1e-4):
        sentence = "one query that may look at nothing changes the outputs of the others"
    elif not _finite_gradient(probe, q, k, v, mask):
        sentence = "a query that may look at nothing makes the gradient nan"
    probe.record("empty rows", sentence)


def _finite_gradient(probe: Probe, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> bool:
    leaves = [x.clone().requires_grad_() for x in (q, k, v)]
    try:
        output = probe._positional(*leaves, mask)
        output = output[0] if isinstance(output, tuple) else output
        if not output.requires_grad:
            return True  # a function that computes no gradient has none to spoil
        output.sum().backward()
    except Exception as error:
        raise Stop(runner.sentence(error) + " (with inputs that require a gradient)") from None
    return all(x.grad is None or bool(x.grad.isfinite().all()) for x in leaves)


def _is(x: Tensor, number: float | int) -> bool:
    return bool(((x - number).abs() < NEAR).all())


PROBES = (
    _repeats,
    _apart,
    _roles,
    _rows_and_scale,
    _shift,
    _permutes,
    _polarity,
    _data_dependence,
    _causality,
    _extremes,
    _empty,
)
