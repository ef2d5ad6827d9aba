"""Where two openings of one folder part: ours, and that of transformers, step by step.

Both read the same tokens. What each module puts out is compared in the order in which it is computed; the
first layer, and in it the first step, that differs by more than float32's noise is named, with what can be
wrong there and is still right before.
"""

from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from lesson_lib.models.pretrained.files import open_model
from lesson_lib.models.pretrained.model import Model
from lesson_lib.models.pretrained.names import FAMILIES, theirs

NOISE = 1e-5  # of the largest number of a step
# our module: what it is called here, and what can be wrong if it is the first to differ
STEPS = {
    "embedding": ("the embedding", "the table, its scale, positions that are added"),
    "before.0": ("the norm before attention", "its kind, its eps, its weights (1 added or not)"),
    "attention.w_query": ("queries", "which rows of the file, a bias, a transposed matrix"),
    "attention.w_key": ("keys", "which rows of the file, a bias, a transposed matrix"),
    "attention.w_value": ("values", "which rows of the file, a bias, a transposed matrix"),
    "attention.query_norm": ("normed queries", "each head or all columns, eps, 1 added or not"),
    "attention.key_norm": ("normed keys", "each head or all columns, eps, 1 added or not"),
    "weights": (
        "weights of attention",
        "positions (pairs, base, scaling, whether they turn), mask or window, scale, cap, sinks, which heads"
        " share keys",
    ),
    "mixed": ("what the heads mix", "which heads share values"),
    "attention.w_output": ("the output of attention", "a transposed matrix, a bias"),
    "after.0": ("the norm after attention", "its kind, its eps, its weights (1 added or not)"),
    "behind.0": ("the norm behind the first sum", "its kind, its eps, what is added"),
    "before.1": ("the norm before the network", "its kind and eps, or what attention's sum is multiplied by"),
    "feed_forward.w_gate": ("the network's gate", "which rows of the file"),
    "feed_forward.w_in": ("the network's inner numbers", "which rows of the file, a transposed matrix"),
    "feed_forward.w_out": ("the network's output", "the activation, gate and input interchanged"),
    "after.1": ("the norm after the network", "its kind, its eps, its weights (1 added or not)"),
    "behind.1": ("the norm behind the second sum", "its kind, its eps, what is added"),
    "stream": ("the layer's output", "what a sub-layer adds, and what it is multiplied by; experts"),
    "logits": ("the logits", "the last norm, the table that reads out, a cap, what they are multiplied by"),
}


class Step(NamedTuple):
    """One place where both were compared: the number of the layer, our name of the step, and the largest
    difference as a share of the largest number."""

    layer: int
    name: str
    apart: float


def compared(folder: str | Path, **options: Any) -> list[Step]:
    """Every step that both have, in order, for tokens that are drawn; `options` are those of `open_model`.

    Raises ImportError where transformers is missing, ValueError or OSError where the folder is not opened.
    """
    ours = open_model(folder, **options).cpu()
    other, x = _transformers(folder, ours.options.family), _drawn(ours)
    mine, yours = _run_ours(ours, x), _run_theirs(ours, other, x)
    both = {place: _apart(value, yours[place]) for place, value in mine.items() if place in yours}
    return [Step(*place, apart) for place, apart in both.items() if apart is not None]


def parting(steps: list[Step]) -> str:
    """A sentence: the first step at which both part, or that they do not."""
    first = next((i for i, step in enumerate(steps) if not step.apart < NOISE), None)
    if first is None:
        largest = max(step.apart for step in steps)
        return (
            f"the same in all {len(steps)} steps; the largest difference is {largest:.1e} of a step's largest"
        )
    layer, name, apart = steps[first]
    where, why = STEPS[name]
    where = where if name in ("embedding", "logits") else f"layer {layer}, {where}"
    return (
        f"they part at {where}: {apart:.1e} of its largest; steps that agree before: {first}. Look at {why}"
    )


def _transformers(folder: str | Path, family: str) -> nn.Module:
    try:
        import transformers
    except ImportError:
        raise ImportError("--against transformers needs that package: pip install transformers") from None
    kinds = {"bert": "AutoModelForMaskedLM", "vit": "AutoModelForImageClassification"}
    transformers.logging.set_verbosity_error()
    made = getattr(transformers, kinds.get(family, "AutoModelForCausalLM")).from_pretrained(
        str(folder), attn_implementation="eager", dtype=torch.float32, local_files_only=True
    )
    return made.eval()


def _drawn(model: Model) -> Tensor:
    generator, o = torch.Generator().manual_seed(0), model.options
    if o.image:
        channels, side, _ = o.image
        return torch.randn(1, channels, side, side, generator=generator)
    return torch.randint(o.n_tokens, (2, min(24, o.positions or 24)), generator=generator)


@torch.no_grad()
def _run_ours(model: Model, x: Tensor) -> dict[tuple[int, str], Tensor]:
    """What each step puts out, in order."""
    found: dict[tuple[int, str], Tensor] = {}
    handles = []
    for i, layer in enumerate(model.layers):
        for name, module in layer.named_modules():
            scaled = name == "attention.w_query" and layer.kind.sharper  # ours scales what comes in
            if name in STEPS and not isinstance(module, nn.Identity) and not scaled:
                handles.append(module.register_forward_hook(_keeps(found, (i, name))))
        handles.append(layer.attention.w_output.register_forward_pre_hook(_keeps_input(found, (i, "mixed"))))
        handles.append(layer.attention.register_forward_hook(_keeps_weights(found, (i, "weights"))))
        handles.append(layer.register_forward_hook(_keeps(found, (i, "stream"))))
    read = model(x, weights=True)
    for handle in handles:
        handle.remove()
    if read.logits is not None:
        found[len(model.layers), "logits"] = read.logits
    found[0, "embedding"] = read.stream[0]
    order = [*STEPS]
    return dict(sorted(found.items(), key=lambda item: (item[0][0], order.index(item[0][1]))))


@torch.no_grad()
def _run_theirs(ours: Model, other: nn.Module, x: Tensor) -> dict[tuple[int, str], Tensor]:
    family, found, handles = FAMILIES[ours.options.family], {}, []
    modules = {name.removeprefix(family.prefix): module for name, module in other.named_modules()}
    for i in range(len(ours.layers)):
        for name in STEPS:
            try:
                made = theirs(f"layers.{i}.{name}.weight", family.names)
            except KeyError:
                continue
            module = modules.get(made.name.removesuffix(".weight"))
            if module is None or made.rows is not None or "c_attn" in made.name:
                continue
            handles.append(module.register_forward_hook(_keeps(found, (i, name))))
            if name == "attention.w_output":
                handles.append(module.register_forward_pre_hook(_keeps_input(found, (i, "mixed"))))
    told = other(x, output_attentions=True, output_hidden_states=True)
    for handle in handles:
        handle.remove()
    for i, table in enumerate(told.attentions):
        found[i, "weights"] = table
    *streams, _ = told.hidden_states  # the last one is behind the last norm
    found[0, "embedding"] = streams[0]
    found |= {(i, "stream"): stream for i, stream in enumerate(streams[1:])}
    found[len(ours.layers), "logits"] = told.logits if hasattr(told, "logits") else told.prediction_logits
    return found


def _keeps(found: dict, place: tuple[int, str]) -> Any:
    return lambda _module, _given, made: found.update({place: made[0] if isinstance(made, tuple) else made})


def _keeps_input(found: dict, place: tuple[int, str]) -> Any:
    return lambda _module, given: found.update({place: given[0]})


def _keeps_weights(found: dict, place: tuple[int, str]) -> Any:
    return lambda _module, _given, made: found.update({place: made.weights})


def _apart(one: Tensor, other: Tensor) -> float | None:
    """The largest difference as a share of the largest number; None where the shapes say that the two are no
    one thing. Heads may stand before tokens or behind them."""
    if one.shape != other.shape and one.ndim == 4:
        one = one.transpose(1, 2)
        one = one if other.ndim == 4 else one.flatten(2)
    if one.shape != other.shape:
        return None
    return float((one - other).abs().max() / other.abs().max().clamp(min=1e-12))
