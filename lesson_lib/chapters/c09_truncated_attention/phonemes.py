"""A recogniser of phonemes: for each 10 ms frame of speech, which phoneme is spoken.

    tokens = Linear(frame)                     each frame's 40 numbers, one token
    logits = Linear(Encoder(tokens))           pre-norm layers whose tokens look `radius` frames around, or at
                                               the whole utterance

Positions are rotary: scores depend on how far two frames lie apart, not on where they stand, so that an
utterance may have any length. With a radius the layers never make a table of n x n
(`truncated.attend_window`), and in time and memory the network is linear in n. After L layers a frame has
heard of L · radius frames on each side. This is a frame classifier, small enough for one processor thread: no
words, no alignment, no subsampling, no convolution.
Source: truncated attention in speech: Hung-yi Lee, Machine Learning 2021, self-attention part 1; pre-norm
layers: Vaswani et al. 2017, arXiv:1706.03762, with Xiong et al. 2020, arXiv:2002.04745; rotary positions: Su
et al. 2021, arXiv:2104.09864.
"""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lesson_lib import require
from lesson_lib.attention import attend
from lesson_lib.blocks import Encoder, Stacked
from lesson_lib.chapters.c09_truncated_attention.speech import N_MELS, Utterance
from lesson_lib.masks import padding
from lesson_lib.positions import rotary
from lesson_lib.truncated import WindowAttention

FILLER = -1  # the label of frames that are none


class PhonemeOutput(NamedTuple):
    """Logits, and where each frame looked: a table (b, h, n, n) per layer."""

    logits: Float[Tensor, "b n labels"]
    weights: list[Float[Tensor, "b h n n"]]


class Batch(NamedTuple):
    """Utterances filled up to the longest: frames (0 where filler), labels (FILLER where filler), and the
    mask that hides it."""

    frames: Float[Tensor, "b n mels"]
    labels: Int[Tensor, "b n"]
    mask: Bool[Tensor, "b 1 n"]


class PhonemeRecogniser(nn.Module):
    """Logits (b, n, n_labels) of each frame's phoneme. `radius` is how far a layer looks, in frames on each
    side; None is the whole utterance.

    Parameters: (n_mels + 1) · d_model, an Encoder's with d_inner = 2 · d_model, and (d_model + 1) · n_labels;
    none of them depends on the radius.
    Raises ValueError where a count is less than 1, d_model / n_heads is no even whole number, or the radius
    none >= 0.
    """

    def __init__(
        self, n_labels: int, *, radius: int | None, d_model: int = 48, n_heads: int = 4, n_layers: int = 2
    ) -> None:
        super().__init__()
        require.whole(n_labels=n_labels, d_model=d_model, n_heads=n_heads, n_layers=n_layers)
        if d_model % (2 * n_heads):
            raise ValueError(
                f"d_model must be a multiple of 2 · n_heads = {2 * n_heads}, as rotary positions turn pairs,"
                f" got {d_model}"
            )
        self.radius = radius
        self.listen = nn.Linear(N_MELS, d_model)
        self.encoder = Encoder(
            n_layers, d_model, n_heads, 2 * d_model, dropout=0.0, norm_first=True, rotate=rotary,
            attention=attend if radius is None else WindowAttention(radius),
        )  # fmt: skip
        self.name = nn.Linear(d_model, n_labels)

    def forward(
        self, frames: Float[Tensor, "b n mels"], *, mask: Bool[Tensor, "b 1 n"] | None = None
    ) -> Float[Tensor, "b n labels"]:
        """Logits. `mask` hides filler, as `masks.padding(lengths, n)` makes it; what stands at the filler
        means nothing."""
        return self.name(self._stack(frames, mask=mask).output)

    def look(self, frames: Float[Tensor, "b n mels"]) -> PhonemeOutput:
        """The same logits, and where each frame looked. Makes whole tables, so it is for short recordings."""
        stacked = self._stack(frames, weights=True)
        return PhonemeOutput(self.name(stacked.output), stacked.weights)

    def _stack(self, frames: Tensor, **options: Any) -> Stacked:
        _checked(frames)
        return self.encoder(self.listen(frames), **options)


def batch(utterances: list[Utterance]) -> Batch:
    """Utterances side by side. Raises ValueError where there are none."""
    if not isinstance(utterances, (list, tuple)) or not utterances:
        raise ValueError(
            f"utterances must be a list of at least one, got {utterances!r:.60}; speech.load makes some"
        )
    frames = nn.utils.rnn.pad_sequence([one.frames for one in utterances], batch_first=True)
    labels = nn.utils.rnn.pad_sequence(
        [one.labels for one in utterances], batch_first=True, padding_value=FILLER
    )
    lengths = torch.tensor([len(one.labels) for one in utterances], device=labels.device)
    return Batch(frames, labels, padding(lengths, labels.shape[1]))


def loss(model: PhonemeRecogniser, batch: Batch) -> Float[Tensor, ""]:
    """Mean cross-entropy of the frames' phonemes; filler does not count. log(n_labels) where all are held for
    equally likely."""
    logits = model(batch.frames, mask=batch.mask)
    return F.cross_entropy(logits.flatten(0, 1), batch.labels.flatten(), ignore_index=FILLER)


def _checked(frames: Any) -> None:
    if not isinstance(frames, Tensor) or not frames.is_floating_point():
        got = frames.dtype if isinstance(frames, Tensor) else type(frames).__name__
        raise TypeError(f"frames must be a tensor of floats, got {got}; speech.log_mel makes them")
    if frames.ndim != 3 or frames.shape[-1] != N_MELS or frames.shape[1] == 0:
        raise ValueError(
            f"frames must have shape (b, n, {N_MELS}) with at least one frame, got {tuple(frames.shape)}; "
            "a single utterance is frames[None]"
        )
