"""A text said twice: random tokens, so that nothing but the text itself says what comes next.

    piece    k f w a c        drawn anew for every text, no token twice: there is nothing to learn by heart
    text     k f w a c k f w a c
    asked    after each token of the second half: what follows?

The model is a small Llama (`models.pretrained`), so that everything that opens a published model opens it,
too.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from lesson_lib import require
from lesson_lib.device import to_device
from lesson_lib.models.pretrained import Model, new_model
from lesson_lib.training import History, fit

N_TOKENS = 64
SHORTEST, LONGEST = 6, 24  # tokens of a piece
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-"


def said_twice(
    generator: torch.Generator, batch: int = 32, *, shortest: int = SHORTEST, longest: int = LONGEST
) -> Int[Tensor, "batch twice"]:
    """Texts of random pieces, each said twice; all of one length, which is drawn, too. On the CPU.

    Raises ValueError where a count is less than 1, the longest is shorter than the shortest, or longer than
    there are tokens.
    """
    require.whole(batch=batch, shortest=shortest)
    require.whole(at_least=shortest, at_most=N_TOKENS, longest=longest)
    length = int(torch.randint(shortest, longest + 1, (1,), generator=generator, device="cpu"))
    piece = torch.rand(batch, N_TOKENS, generator=generator, device="cpu").argsort(1)[:, :length]
    return torch.cat((piece, piece), 1)


def letters(tokens: Int[Tensor, " n"]) -> str:
    """Tokens as signs, one for each.

    >>> letters(torch.tensor([0, 5, 26]))
    'afA'
    """
    return "".join(LETTERS[number] for number in tokens.tolist())


def small_llama(n_layers: int = 2, *, d_model: int = 32, seed: int = 0) -> Model:
    """A new Llama for these texts, one head in each layer: 24,736 parameters with the defaults.

    Its table of embeddings starts with numbers of variance 1, and positions turn with a base of 100: with
    the usual ones not every seed finds the two heads in so few steps.
    """
    torch.manual_seed(seed)
    model = new_model({
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": N_TOKENS,
        "hidden_size": d_model, "intermediate_size": 2 * d_model, "num_hidden_layers": n_layers,
        "num_attention_heads": 1, "num_key_value_heads": 1, "hidden_act": "silu",
        "rms_norm_eps": 1e-6, "tie_word_embeddings": False, "max_position_embeddings": 96,
        "rope_parameters": {"rope_type": "default", "rope_theta": 100.0},
    })  # fmt: skip
    torch.nn.init.normal_(model.embedding.table)
    return model


def loss(model: nn.Module, texts: Int[Tensor, "b twice"]) -> Float[Tensor, ""]:
    """Cross-entropy, in nats, of what follows each token of the second half; the first half cannot be
    known."""
    half = texts.shape[1] // 2
    logits = model(texts[:, :-1]).logits[:, half:]
    return F.cross_entropy(logits.flatten(0, 1), texts[:, half + 1 :].flatten())


def train(
    seed: int = 0, *, steps: int = 800, lr: float = 1e-2, shortest: int = SHORTEST, **sizes: int
) -> tuple[Model, History]:
    """A trained model and its history. `shortest=24` gives all pieces one length."""
    model = small_llama(seed=seed, **sizes)
    history = fit(
        model,
        lambda generator: said_twice(generator, shortest=shortest),
        loss,
        steps=steps,
        lr=lr,
        seed_number=seed,
        name="a text said twice",
    )
    return model, history


@torch.no_grad()
def accuracy(model: Model, length: int = LONGEST, texts: int = 64) -> float:
    """The share of right next tokens in the second half of new texts, from its second token on."""
    generator = torch.Generator("cpu").manual_seed(1000 + length)
    tokens = to_device(said_twice(generator, texts, shortest=length, longest=length))
    said = model(tokens[:, :-1]).logits[:, length:].argmax(-1)
    return (said == tokens[:, length + 1 :]).float().mean().item()


def previous_score(table: Float[Tensor, "*b n n"]) -> float:
    """The mean weight that a token gives to the one before it."""
    return table.diagonal(-1, -2, -1).mean().item()


def matching_score(table: Float[Tensor, "*b n n"], length: int) -> float:
    """The mean weight that a token of the second half gives to the one that stood after its first
    occurrence, `length` - 1 tokens before it: the prefix matching score of Olsson et al. 2022."""
    return table.diagonal(1 - length, -2, -1)[..., 1:].mean().item()


@torch.no_grad()
def scores(
    model: Model, length: int = LONGEST, texts: int = 16
) -> dict[tuple[int, int], tuple[float, float]]:
    """{(layer, head): (previous_score, matching_score)} on new texts."""
    generator = torch.Generator("cpu").manual_seed(2000 + length)
    tokens = to_device(said_twice(generator, texts, shortest=length, longest=length))
    found = {}
    for layer, tables in enumerate(model(tokens, weights=True).weights):
        for head in range(tables.shape[1]):
            table = tables[:, head]
            found[layer, head] = (previous_score(table), matching_score(table, length))
    return found
