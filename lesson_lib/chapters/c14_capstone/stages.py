"""The five stages of the capstone, and how a learner's file is judged: by properties, by equality with torch,
and at last by what it has learned.

A stage is a list of tests: a name, and a function that takes the learner's module and gives '' or a sentence
on what is wrong. What the file does can stop no judge: every error becomes a sentence with its line.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor, nn

from lesson_lib.checks import properties
from lesson_lib.checks.values import described, first_difference
from lesson_lib.models.pretrained import SMALL_WRITER, open_model

B, N, M, D, H = 2, 3, 7, 12, 4  # batch, queries, keys, width, heads
NEAR = 1e-4

Test = Callable[[ModuleType], str]


@dataclass(frozen=True)
class Stage:
    """One stage: its number, its title, the names that it needs of the file, and its tests by name."""

    number: int
    title: str
    needs: tuple[str, ...]
    tests: dict[str, Test]


def drawn(*shape: int, seed: int = 0) -> Tensor:
    """Normal numbers, the same ones every time."""
    return torch.randn(*shape, generator=torch.Generator("cpu").manual_seed(seed), device="cpu")


def differs(found: object, right: Tensor, within: float = NEAR) -> str:
    """'' where what was found is the right tensor; else a sentence."""
    if found is None:
        return "gives None: is it written yet?"
    if not isinstance(found, Tensor):
        return f"gives {described(found)}; a tensor of shape {tuple(right.shape)} is asked for"
    if found.shape != right.shape:
        return f"gives shape {tuple(found.shape)}; asked for is {tuple(right.shape)}"
    found = found.detach().to(right.dtype)
    if torch.allclose(found, right, rtol=within, atol=within):
        return ""
    return first_difference(found, right, within)


def _output(made: object) -> object:
    """The output alone of what may be an output with its weights."""
    return made[0] if isinstance(made, tuple) and made else made


# --- 1: attention ---


def attention_has_the_properties(file: ModuleType) -> str:
    found = properties(file.attention)
    return "" if found.passed else found.diagnosis


def attention_is_torchs(file: ModuleType) -> str:
    shapes = (((N, D), (M, D), (M, 5)), ((B, H, N, D), (B, H, M, D), (B, H, M, 5)))
    for number, (q, k, v) in enumerate(shapes):
        query, key, value = drawn(*q, seed=1), drawn(*k, seed=2), drawn(*v, seed=3)
        for mask in (None, drawn(N, M, seed=4) > -0.5):
            right = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
            said = differs(_output(file.attention(query, key, value, mask)), right)
            if said:
                axes = "with heads and a batch" if number else "one sequence"
                return f"{axes}, {'with a mask' if mask is not None else 'no mask'}: {said}"
    return ""


# --- 2: heads ---


def _heads(file: ModuleType, shared: int = 1) -> nn.Module:
    torch.manual_seed(0)
    return file.Heads(D * H, H, H // shared)


def _given_weights(own: nn.Module, theirs: nn.MultiheadAttention) -> None:
    """Give torch's heads the learner's matrices, and biases of 0 where it has any."""
    theirs.in_proj_weight.data = torch.cat([w.weight.data for w in (own.w_query, own.w_key, own.w_value)])
    theirs.out_proj.weight.data = own.w_output.weight.data
    for bias in (theirs.in_proj_bias, theirs.out_proj.bias):
        if bias is not None:
            bias.data.zero_()


def _slip_of_heads(own: nn.Module, x: Tensor) -> str:
    """The usual mistake that gives what these heads give; '' where none does."""
    found = own(x)
    tables = [w(x) for w in (own.w_query, own.w_key, own.w_value)]
    q, k, v = (table.unflatten(-1, (H, D)).transpose(1, 2) for table in tables)
    viewed = [table.view(len(x), H, -1, D) for table in tables]
    mixed = F.scaled_dot_product_attention(q, k, v)
    joined = mixed.transpose(1, 2).flatten(2)
    by_width = F.scaled_dot_product_attention(q, k, v, scale=(D * H) ** -0.5)
    named = {
        "W_o is missing: the heads stand side by side, and nothing mixes them": joined,
        "you join without swapping heads and tokens back": own.w_output(mixed.reshape(joined.shape)),
        "you split by a view alone, which mixes heads with tokens: cut the width, then swap": own.w_output(
            F.scaled_dot_product_attention(*viewed).transpose(1, 2).flatten(2)
        ),
        "the scores are divided by the root of the full width; a head's own width is meant": own.w_output(
            by_width.transpose(1, 2).flatten(2)
        ),
        "nothing is split: that is one head of the full width": own.w_output(
            F.scaled_dot_product_attention(*tables)
        ),
    }
    return next((said for said, wrong in named.items() if not differs(found, wrong)), "")


def heads_are_torchs(file: ModuleType) -> str:
    """Equal to nn.MultiheadAttention with the same matrices."""
    own, theirs = _heads(file), nn.MultiheadAttention(D * H, H, bias=False, batch_first=True)
    _given_weights(own, theirs)
    x, memory, causal = drawn(B, N, D * H), drawn(B, M, D * H, seed=1), torch.ones(N, N).tril().bool()
    real = torch.arange(M) < torch.tensor([[M], [M - 2]])
    wanted = theirs(x, memory, memory, key_padding_mask=~real)[0]
    cases = (
        ("x looks at itself", own(x), theirs(x, x, x)[0]),
        ("x looks at itself under a causal mask", own(x, mask=causal), theirs(x, x, x, attn_mask=~causal)[0]),
        ("x looks at a memory", own(x, memory), theirs(x, memory, memory)[0]),
        ("a mask for each text, (b, n, m)", own(x, memory, mask=real[:, None].expand(B, N, M)), wanted),
    )
    said = _first(cases)
    return said and (_slip_of_heads(own, x) or said)


def neighbours_share_keys(file: ModuleType) -> str:
    """Fewer heads of keys: equal to torch's enable_gqa."""
    own, x = _heads(file, shared=2), drawn(B, M, D * H)
    q, k, v = (
        w(x).unflatten(-1, (heads, D)).transpose(1, 2)
        for w, heads in ((own.w_query, H), (own.w_key, H // 2), (own.w_value, H // 2))
    )
    mixed = F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    return differs(own(x), own.w_output(mixed.transpose(1, 2).flatten(2)))


def a_turn_meets_queries_and_keys(file: ModuleType) -> str:
    """`turn` is applied to both, in each head, before the scores, and not to the values."""
    own, x = _heads(file), drawn(B, N, D * H)
    q, k, v = (w(x).unflatten(-1, (H, D)).transpose(1, 2) for w in (own.w_query, own.w_key, own.w_value))

    def made(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return own.w_output(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))

    found = own(x, turn=lambda y: 3 * y)
    if not (said := differs(found, made(3 * q, 3 * k, v))):
        return ""
    named = {
        "`turn` is not used": made(q, k, v),
        "one of the two is not turned: `turn` is for queries AND keys": made(3 * q, k, v),
        "the values are turned, too; they keep what they say": made(3 * q, 3 * k, 3 * v),
    }
    return next((slip for slip, wrong in named.items() if not differs(found, wrong)), said)


# --- 3: positions ---


def sinusoids_are_those_of_2017(file: ModuleType) -> str:
    by_hand = torch.tensor([[0.0, 1, 0, 1], [0.8415, 0.5403, 0.0100, 0.9999]])
    said = differs(file.sinusoids(2, 4), by_hand, 1e-3)
    if said:
        return f"two rows of width 4: {said}"
    angles = torch.arange(50, dtype=torch.float64)[:, None] / 10000 ** (torch.arange(0, D, 2) / D)
    right = torch.stack([angles.sin(), angles.cos()], -1).flatten(1).float()
    return differs(file.sinusoids(50, D), right, 1e-3)


def rotate_is_a_turn(file: ModuleType) -> str:
    """Equal to a multiplication of complex numbers in torch."""
    for shape in ((5, 2), (M, D), (B, H, M, D)):
        x = drawn(*shape)
        half = shape[-1] // 2
        angles = torch.arange(shape[-2])[:, None] * 10000.0 ** (-torch.arange(half) / half)
        turned = torch.complex(x[..., :half], x[..., half:]) * torch.polar(torch.ones_like(angles), angles)
        said = differs(file.rotate(x), torch.cat([turned.real, turned.imag], -1))
        pairs = torch.complex(x[..., ::2], x[..., 1::2]) * torch.polar(torch.ones_like(angles), angles)
        if said and not differs(file.rotate(x), torch.stack([pairs.real, pairs.imag], -1).flatten(-2)):
            return "your pairs are the columns 2j and 2j + 1; asked for are j and j + d/2"
        if said:
            return f"x of shape {shape}: {said}"
    return ""


def scores_know_distances_alone(file: ModuleType) -> str:
    """Two equal rows, at any two places equally far apart, have one score."""
    q, k = drawn(D).expand(M, D), drawn(D, seed=1).expand(M, D)
    scores = file.rotate(q) @ file.rotate(k).mT
    for away in range(M - 1):
        same = scores.diagonal(away)
        if not torch.allclose(same, same[:1].expand_as(same), atol=1e-3):
            return f"rows {away} apart have different scores at different places"
    return ""


# --- 4: a layer ---


def _layers(file: ModuleType, cross: bool, norm_first: bool = True) -> tuple[nn.Module, nn.Module]:
    """The learner's layer and torch's with the same weights."""
    torch.manual_seed(0)
    own = file.Layer(D * H, H, 2 * D, cross=cross)
    make = nn.TransformerDecoderLayer if cross else nn.TransformerEncoderLayer
    theirs = make(D * H, H, 2 * D, dropout=0.0, batch_first=True, norm_first=norm_first)
    _given_weights(own.own, theirs.self_attn)
    if cross:
        _given_weights(own.cross, theirs.multihead_attn)
    theirs.linear1, theirs.linear2 = own.inner, own.outer
    for number, norm in enumerate(own.norms, 1):
        norm.weight.data, norm.bias.data = 1 + 0.1 * drawn(D * H, seed=number), 0.1 * drawn(D * H, seed=9)
        setattr(theirs, f"norm{number}", norm)
    return own, theirs


POST = "that is post-norm: each norm stands before its sub-layer, inside the sum"


def layer_is_torchs(file: ModuleType) -> str:
    """Equal to nn.TransformerEncoderLayer, norm_first."""
    own, theirs = _layers(file, cross=False)
    x, causal = drawn(B, N, D * H), torch.ones(N, N).tril().bool()
    cases = (("no mask", own(x), theirs(x)), ("causal", own(x, mask=causal), theirs(x, src_mask=~causal)))
    said = _first(cases)
    return POST if said and not differs(own(x), _layers(file, False, norm_first=False)[1](x)) else said


def layer_with_a_memory_is_torchs(file: ModuleType) -> str:
    """Equal to nn.TransformerDecoderLayer, norm_first."""
    own, theirs = _layers(file, cross=True)
    x, memory, causal = drawn(B, N, D * H), drawn(B, M, D * H, seed=1), torch.ones(N, N).tril().bool()
    real = torch.arange(M) < torch.tensor([[M], [M - 2]])
    plain = own(x, memory)
    if said := differs(plain, theirs(x, memory)):
        post = _layers(file, cross=True, norm_first=False)[1](x, memory)
        return POST if not differs(plain, post) else f"no mask: {said}"
    made = own(x, memory, mask=causal, memory_mask=real[:, None].expand(B, N, M))
    if said := differs(made, theirs(x, memory, tgt_mask=~causal, memory_key_padding_mask=~real)):
        one = differs(made, theirs(x, memory, tgt_mask=~causal))
        return f"with both masks: {said}" if one else "the look at the memory meets padding: memory_mask?"
    return ""


# --- 5: a Transformer, and a model of today ---

SIGNS = 11


def _translator(file: ModuleType) -> tuple[nn.Module, Tensor, Tensor]:
    torch.manual_seed(0)
    source = torch.tensor([[3, 4, 5, 6, 7], [8, 9, 10, 3, 5]])
    before = torch.tensor([[1, 3, 4, 5], [1, 9, 8, 7]])
    return file.Translator(SIGNS).eval(), source, before


def it_gives_logits(file: ModuleType) -> str:
    """A score for every sign at every place, and no two runs that differ."""
    model, source, before = _translator(file)
    first, right = model(source, before), (2, 4, SIGNS)
    if not isinstance(first, Tensor) or first.shape != right:
        return f"gives {described(first)}; logits of shape {right} are asked for"
    if (first >= 0).all() and torch.allclose(first.sum(-1), torch.ones(right[:2]), atol=1e-4):
        return "these are shares that sum to 1; logits are asked for, the loss brings its own softmax"
    return "" if torch.equal(first, model(source, before)) else "two runs differ: is dropout left on?"


def it_does_not_read_ahead(file: ModuleType) -> str:
    """A later sign moves no logits before it."""
    model, source, before = _translator(file)
    for place in range(1, before.shape[1]):
        changed = before.clone()
        changed[:, place] = 6
        moved = (model(source, changed) - model(source, before))[:, :place].abs().max().item()
        if moved > 1e-5:
            return f"the sign at place {place} moves logits before it, by {moved:.2g}: under which mask?"
    return ""


def padding_is_nobody(file: ModuleType) -> str:
    """Zeros behind the input change no logits."""
    model, source, before = _translator(file)
    moved = (model(F.pad(source, (0, 3)), before) - model(source, before)).abs().max().item()
    return "" if moved < 1e-4 else (
        f"three zeros behind the input move the logits by {moved:.2g}: two looks meet padding, the encoder's"
        " own and the decoder's at the memory"
    )  # fmt: skip


def order_counts(file: ModuleType) -> str:
    """The input's order changes the logits, and so does the order of what stands before."""
    model, source, before = _translator(file)
    if (model(source.flip(1), before) - model(source, before)).abs().max() < 1e-4:
        return "the input may be shuffled and nothing changes: positions are missing in the encoder"
    swapped = before[:, [0, 2, 1, 3]]
    if (model(source, swapped) - model(source, before))[:, 3].abs().max() < 1e-4:
        return "what stands before may be shuffled and nothing changes: positions are missing in the decoder"
    return ""


TEXT = "A Wibkat is a class. The Wibk"


def the_small_writer() -> tuple[dict[str, Tensor], dict]:
    """Tensors and config of the model that comes with the course."""
    config = json.loads((SMALL_WRITER / "config.json").read_text(encoding="utf-8"))
    return load_file(SMALL_WRITER / "model.safetensors"), config


def it_opens_the_small_writer(file: ModuleType) -> str:
    """The logits of 13c's model for a text, equal to those of the library."""
    tensors, config = the_small_writer()
    model = open_model(SMALL_WRITER).cpu()
    numbers = model.numbers(TEXT).cpu()
    with torch.no_grad():
        right = model(numbers[None]).logits[0]
        return differs(file.logits_of(numbers, tensors, config), right, 1e-3)


def continued(file: ModuleType, text: str, length: int) -> str:
    """What the learner's code writes behind a text, with the small writer's tensors: the likeliest sign each
    time."""
    tensors, config = the_small_writer()
    model = open_model(SMALL_WRITER).cpu()
    numbers = model.numbers(text).cpu()
    start = len(numbers)
    with torch.no_grad():
        for _ in range(length):
            following = file.logits_of(numbers, tensors, config)[-1].argmax()
            numbers = torch.cat([numbers, following[None]])
    return model.text.decode(numbers[start:].tolist())


def _first(cases: tuple[tuple[str, object, Tensor], ...]) -> str:
    """The first case in which what was found differs, with its name; '' where there is none."""
    told: Iterator[str] = (f"{name}: {said}" for name, made, right in cases if (said := differs(made, right)))
    return next(told, "")


STAGES = (
    Stage(
        1,
        "attention",
        ("attention",),
        {"properties of attention": attention_has_the_properties, "equal to torch's": attention_is_torchs},
    ),
    Stage(
        2,
        "heads",
        ("attention", "Heads"),
        {
            "equal to nn.MultiheadAttention": heads_are_torchs,
            "shared keys, equal to torch's": neighbours_share_keys,
            "queries and keys are turned": a_turn_meets_queries_and_keys,
        },
    ),
    Stage(
        3,
        "positions",
        ("sinusoids", "rotate"),
        {
            "sinusoids": sinusoids_are_those_of_2017,
            "a turn, equal to complex numbers": rotate_is_a_turn,
            "scores know distances alone": scores_know_distances_alone,
        },
    ),
    Stage(
        4,
        "a layer",
        ("attention", "Heads", "Layer"),
        {
            "equal to nn.TransformerEncoderLayer": layer_is_torchs,
            "equal to nn.TransformerDecoderLayer": layer_with_a_memory_is_torchs,
        },
    ),
    Stage(
        5,
        "a Transformer",
        ("attention", "Heads", "sinusoids", "rotate", "Layer", "Translator", "logits_of"),
        {
            "logits": it_gives_logits,
            "does not read ahead": it_does_not_read_ahead,
            "padding is nobody": padding_is_nobody,
            "order counts": order_counts,
            "opens the model of 13c": it_opens_the_small_writer,
        },
    ),
)
