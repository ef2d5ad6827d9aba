"""The model that comes with the course: a small Llama that was trained here on Python's manual, and on two
things that make it copy what it never saw: random signs said twice, and pages in which a word that stands
there more than once has everywhere become an invented one.

    FOLDER        config.json, model.safetensors, tokenizer.json and README.md, as models are published
    train(seed)   what made it: `python -m lesson_lib experiments writer`, with seed 0

A text begins with a token of its own, START, as in most published models. Positions beyond 128 were never
trained.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from lesson_lib import require
from lesson_lib.data import topics
from lesson_lib.device import to_device
from lesson_lib.models.pretrained import SMALL_WRITER, Model, new_model, save_model
from lesson_lib.models.pretrained.characters import Characters
from lesson_lib.training import History, fit

FOLDER = SMALL_WRITER
CONTEXT = 128  # characters behind the start
START = len(topics.CHARACTERS)
SHORTEST, LONGEST = 6, 63  # signs of a piece
CONFIG = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": START + 1,
    "hidden_size": 96, "intermediate_size": 256, "num_hidden_layers": 4,
    "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_act": "silu",
    "rms_norm_eps": 1e-6, "tie_word_embeddings": False, "max_position_embeddings": CONTEXT + 1,
    "rope_theta": 10_000.0, "bos_token_id": START,
}  # fmt: skip
WORD = re.compile(r"\b[A-Za-z]{4,}\b")
TOGETHER = 64  # texts that are judged at once


def pages(generator: torch.Generator, batch: int = 8) -> Int[Tensor, "batch n"]:
    """Pieces of the manual, each behind START; on the CPU."""
    return _behind_start(topics.draw(generator, batch, CONTEXT - 1))


def renamed(generator: torch.Generator, batch: int = 8) -> Int[Tensor, "batch n"]:
    """Pages in which a word of at least four letters that stands there more than once, if there is one, is
    everywhere replaced by the same random letters."""
    numbers = pages(generator, batch)
    for row in numbers:
        text = "".join(topics.CHARACTERS[number] for number in row[1:].tolist())
        words = Counter(WORD.findall(text))
        often = [word for word, count in words.items() if count > 1]
        if not often:
            continue
        word = often[int(torch.randint(len(often), (1,), generator=generator, device="cpu"))]
        letters = torch.randint(26, (len(word),), generator=generator, device="cpu").tolist()
        name = "".join(chr(97 + letter) for letter in letters)
        name = name.capitalize() if word[0].isupper() else name
        new = re.sub(rf"\b{word}\b", name, text)
        row[1:] = torch.tensor([topics.CHARACTERS.index(sign) for sign in new])
    return numbers


def said_twice(
    generator: torch.Generator, batch: int = 8, *, shortest: int = SHORTEST, longest: int = LONGEST
) -> Int[Tensor, "batch n"]:
    """Random pieces of different signs, each said twice behind START; all of one length, which is drawn, too.
    No newlines. On the CPU."""
    require.whole(batch=batch, shortest=shortest)
    require.whole(at_least=shortest, at_most=START - 1, longest=longest)
    length = int(torch.randint(shortest, longest + 1, (1,), generator=generator, device="cpu"))
    piece = 1 + torch.rand(batch, START - 1, generator=generator, device="cpu").argsort(1)[:, :length]
    return _behind_start(torch.cat((piece, piece), 1))


def loss(model: nn.Module, texts: Int[Tensor, "b n"], skip: int = 0) -> Float[Tensor, ""]:
    """Cross-entropy, in nats, of what follows each token but the first `skip`."""
    logits = model(texts[:, :-1]).logits[:, skip:]
    return F.cross_entropy(logits.flatten(0, 1), texts[:, skip + 1 :].flatten())


def train(
    seed: int = 0, *, copies_first: int, steps: int, lr: float, copies: int, share: float, dropout: float
) -> tuple[Model, History]:
    """A trained model, and the history of its second training.

    First `copies_first` steps on signs said twice alone, in which only the second saying counts; then `steps`
    on 8 pages, of which half are `renamed`, and `copies` texts said twice, whose loss counts `share`; where
    `copies` is 0, on plain pages alone. The weights with the fewest bits on the validation topics are kept.
    """
    torch.manual_seed(seed)
    model = new_model(CONFIG)
    nn.init.normal_(model.embedding.table)
    if copies_first:
        fit(
            model, lambda generator: said_twice(generator, 32, longest=24),
            lambda judged, texts: loss(judged, texts, skip=(texts.shape[1] - 1) // 2 + 1),
            steps=copies_first, lr=lr, seed_number=seed, name="signs said twice",
        )  # fmt: skip

    def draw(generator: torch.Generator) -> tuple[Tensor, Tensor]:
        if not copies:
            return pages(generator), torch.empty(0, device="cpu")
        mixed = torch.cat((pages(generator, 4), renamed(generator, 4)))
        return mixed, said_twice(generator, copies)

    with _dropping(model, dropout):
        history = fit(
            model, draw,
            lambda judged, texts: (
                loss(judged, texts[0]) + share * loss(judged, texts[1]) if copies else loss(judged, texts[0])
            ),
            steps=steps, lr=lr, seed_number=seed, validate=lambda judged: -bits(judged, "validation"),
            every=max(1, steps // 10), name="Python's manual",
        )  # fmt: skip
    return model, history


@torch.no_grad()
def bits(model: nn.Module, split: str = "test") -> float:
    """Mean surprise, -log2 p, of the characters of a split's topics; each is seen with at least 64 before it,
    where the text has so many, and at most 127."""
    tokens, half = topics.stream(split), CONTEXT // 2
    windows = F.pad(tokens.unfold(0, CONTEXT, half), (1, 0), value=START)
    found = []
    for some in windows.split(TOGETHER):
        given = to_device(some)
        shares = model(given[:, :-1]).logits.double().log_softmax(-1)
        found.append(-shares.gather(-1, given[:, 1:, None])[..., 0].cpu() / math.log(2))
    rows = torch.cat(found)  # of each window but the first, the last half is new
    return torch.cat((rows[0], rows[1:, -half:].flatten())).mean().item()


@torch.no_grad()
def copied(model: Model, length: int, texts: int = 64) -> float:
    """The share of right next signs in the second saying of new texts, from its second sign on."""
    generator = torch.Generator("cpu").manual_seed(4000 + length)
    tokens = to_device(said_twice(generator, texts, shortest=length, longest=length))
    said = model(tokens[:, :-1]).logits[:, length + 1 :].argmax(-1)
    return (said == tokens[:, length + 2 :]).float().mean().item()


def save(model: Model, folder: Path = FOLDER) -> None:
    """The model's folder; README.md, written by hand, stays."""
    save_model(model, folder)
    numbers = {sign: number for number, sign in enumerate(topics.CHARACTERS)} | {"<s>": START}
    Characters(numbers, start=START).save(folder / "tokenizer.json")


def _behind_start(tokens: Tensor) -> Tensor:
    return F.pad(tokens, (1, 0), value=START)


@contextmanager
def _dropping(model: Model, dropout: float) -> Iterator[None]:
    """Inside, a share of what each sub-layer adds is dropped while the model trains."""

    def drop(module: nn.Module, _given: object, made: Tensor) -> Tensor:
        return F.dropout(made, dropout, module.training)

    hooks = [
        part.register_forward_hook(drop)
        for layer in model.layers
        for part in (layer.attention.w_output, layer.feed_forward)
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
