"""Small networks that read a sequence and name a symbol that stood in it: recurrent ones, and a layer of
attention.

All have the same embedding, the same width and the same linear read-out at the LAST token, where the question
stands. So what they know of the symbol must have reached the last token: step by step in a recurrent network,
in one step in attention. A network that reads both ways can bring it there only by the half that comes from
the left; "BiRNN, both ends" is read where each half ends, at the last token and at the first, as is usual
where a whole sequence is judged. Attention is one pre-norm layer of an encoder without a mask, on sinusoidal
positions; its embedding is not scaled. Parameters differ by system. It may have more layers, and a window:
then the symbol must come by way of tokens between, at most `radius` tokens with each layer.
"""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from lesson_lib import require
from lesson_lib.attention import attend
from lesson_lib.blocks import EncoderLayer
from lesson_lib.data.recall import CHARACTERS, SYMBOLS, Recall
from lesson_lib.positions import sinusoidal
from lesson_lib.recurrent import Recurrent
from lesson_lib.truncated import WindowAttention

SYSTEMS = ("RNN", "LSTM", "BiRNN", "BiRNN, both ends", "attention")


class RecallerOutput(NamedTuple):
    """Logits, and how the last token's attention weighs all tokens, head by head, in the last layer (None
    where there is no attention)."""

    logits: Float[Tensor, "b symbols"]
    weights: Float[Tensor, "b h n"] | None


class Recaller(nn.Module):
    """Logits (b, symbols) of the symbol that the sequence holds.

    Attention may have `n_layers` layers, each of which sees `radius` tokens around (None: all).
    Raises ValueError for a system that is none of SYSTEMS, a radius or more layers for another than
    "attention", fewer layers than 1 or a radius below 0.
    """

    def __init__(
        self,
        system: str,
        *,
        d_model: int = 32,
        n_heads: int = 4,
        n_layers: int = 1,
        radius: int | None = None,
    ) -> None:
        super().__init__()
        _known(system, n_layers, radius)
        self.system = system
        self.embed = nn.Embedding(len(CHARACTERS), d_model)
        if system == "attention":
            look = attend if radius is None else WindowAttention(radius)
            self.core, *below = (
                EncoderLayer(d_model, n_heads, 2 * d_model, dropout=0.0, norm_first=True, attention=look)
                for _ in range(n_layers)
            )
            self.below = nn.ModuleList(below)
        elif system.startswith("BiRNN"):
            self.core = Recurrent("RNN", d_model, d_model // 2, both_ways=True)
        else:
            self.core = Recurrent(system, d_model, d_model)
        self.read = nn.Linear(d_model, len(SYMBOLS))

    def forward(self, tokens: Int[Tensor, "b n"]) -> Float[Tensor, "b symbols"]:
        """Logits, read at the last token (or both ends)."""
        return self._run(self._embedded(tokens)).logits

    def look(self, tokens: Int[Tensor, "b n"]) -> RecallerOutput:
        """The same logits, and where the last token looks."""
        return self._run(self._embedded(tokens), weights=True)

    def of_embedded(self, x: Float[Tensor, "b n d_model"]) -> Float[Tensor, "b symbols"]:
        """The same logits from embedded tokens, for gradients with respect to them."""
        return self._run(x).logits

    def _embedded(self, tokens: Tensor) -> Tensor:
        _numbers(tokens)
        return self.embed(tokens)

    def _run(self, x: Tensor, *, weights: bool = False) -> RecallerOutput:
        if self.system == "attention":
            places = sinusoidal(x.shape[1], x.shape[2], dtype=x.dtype, device=x.device)
            y = x + places
            for layer in self.below:
                y = layer(y).output
            y, table = self.core(y, weights=weights)
            return RecallerOutput(self.read(y[:, -1]), table[:, :, -1] if weights else None)
        y = self.core(x)
        if self.system == "BiRNN, both ends":
            half = y.shape[-1] // 2
            return RecallerOutput(self.read(torch.cat([y[:, -1, :half], y[:, 0, half:]], -1)), None)
        return RecallerOutput(self.read(y[:, -1]), None)


@torch.no_grad()
def start_to_keep(model: Recaller, tokens: int) -> None:
    """Set an untrained RNN or LSTM, in place, so that its state lasts for about that many tokens.

        RNN    U is orthogonal: a product with it leaves the length of a state
        LSTM   forget biases log u, input biases -log u, u from 1 to tokens - 1 at random: the cells'
               half-lives are spread over all times

    Raises ValueError for another system, and where tokens is no whole number >= 3.
    Source: Saxe et al. 2013, arXiv:1312.6120 (orthogonal starts); Tallec & Ollivier 2018, arXiv:1804.11188
    (the biases, "chrono initialization"); a forget bias of 1: Jozefowicz et al. 2015.
    """
    if model.system not in ("RNN", "LSTM"):
        raise ValueError(f"only an RNN or an LSTM can start so, got {model.system!r}")
    require.whole(at_least=3, tokens=tokens)
    layer = model.core.layer
    if model.system == "RNN":
        nn.init.orthogonal_(layer.weight_hh_l0)
        return
    d = layer.hidden_size
    nn.init.zeros_(layer.bias_hh_l0[: 2 * d])
    forget = layer.bias_ih_l0[d : 2 * d]
    forget.uniform_(1, tokens - 1).log_()
    layer.bias_ih_l0[:d] = -forget


def loss(model: nn.Module, batch: Recall) -> Float[Tensor, ""]:
    """Mean cross-entropy of the right answers; log 8 = 2.08 where all symbols are held for equally likely."""
    return F.cross_entropy(model(batch.tokens), batch.answer)


def gradients(model: nn.Module, batch: Recall) -> Float[Tensor, " n"]:
    """What moves the answer: for each token the norm of the gradient of the right answer's logit with respect
    to its embedding, averaged.

    Where it is 0 at the symbol, the answer does not depend on the symbol, and training on it has nothing to
    go by.
    """
    training = model.training
    model.train()  # cuDNN's recurrent layers have a gradient in training mode only; nothing here drops out
    try:
        with torch.enable_grad():
            x = model.embed(batch.tokens).detach().requires_grad_()
            right = model.of_embedded(x).gather(1, batch.answer[:, None])
            (found,) = torch.autograd.grad(right.sum(), x)
    finally:
        model.train(training)
    return found.norm(dim=-1).mean(0)


def _known(system: Any, n_layers: Any, radius: Any) -> None:
    require.one_of(SYSTEMS, system=system)
    require.whole(n_layers=n_layers)
    if system != "attention" and (n_layers != 1 or radius is not None):
        raise ValueError(
            f"only attention has a radius and more layers than 1, got {system!r}; leave out radius and"
            " n_layers"
        )


def _numbers(tokens: Any) -> None:
    """On a GPU a number out of range would end the process, so it is looked for here."""
    if not isinstance(tokens, Tensor) or tokens.is_floating_point() or tokens.dtype == torch.bool:
        got = tokens.dtype if isinstance(tokens, Tensor) else type(tokens).__name__
        raise TypeError(
            f"tokens must be a tensor of token numbers (b, n), got {got}; data.recall.draw makes some"
        )
    if tokens.ndim != 2 or tokens.shape[1] == 0:
        raise ValueError(
            f"tokens must have shape (b, n) with at least one token, got {tuple(tokens.shape)}; a single"
            " sequence is tokens[None]"
        )
    if tokens.numel() and not 0 <= int(tokens.min()) <= int(tokens.max()) < len(CHARACTERS):
        raise ValueError(
            f"tokens must be numbers from 0 to {len(CHARACTERS) - 1}, got {int(tokens.min())} to"
            f" {int(tokens.max())}"
        )
