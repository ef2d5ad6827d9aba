"""Right answers to the exercises of lesson 06, in many spellings; wrong ones to the open question."""

import math
from typing import Any

import torch
from torch import Tensor

from lesson_lib.masks import causal
from tests import code_of

asked = code_of("c06_transformer")


def _through(x: Tensor, sublayers: tuple, norms: tuple) -> Tensor:
    for sublayer, norm in zip(sublayers, norms, strict=True):
        x = norm(x + sublayer(x))
    return x


def _branch_by_branch(x: Tensor, sublayers: tuple, norms: tuple) -> Tensor:
    for sublayer, norm in zip(sublayers, norms, strict=True):
        x = x + sublayer(norm(x))
    return x


def _best(logits: Tensor, k: int) -> Tensor:
    """True for the k largest of each row."""
    return torch.zeros_like(logits, dtype=torch.bool).scatter(-1, logits.topk(k).indices, True)


def _kept(logits: Tensor, k: int, hidden: float = -torch.inf) -> Tensor:
    return logits.masked_fill(~_best(logits, k), hidden)


def _centred(x: Tensor) -> Tensor:
    return x - x.mean(-1, keepdim=True)


def _by_recursion(x: Tensor, sublayers: tuple, norm: asked.Sublayer) -> Tensor:
    if not sublayers:
        return norm(x)
    return _by_recursion(x + sublayers[0](norm(x)), sublayers[1:], norm)


def _as_a_sum(x: Tensor, sublayers: tuple, norm: asked.Sublayer) -> Tensor:
    parts = [x]
    for sublayer in sublayers:
        parts.append(sublayer(norm(torch.stack(parts).sum(0))))
    return norm(torch.stack(parts).sum(0))


def _in_a_list(score_next: Any, begin: Tensor, end: int, most: int) -> Tensor:
    new: list[int] = []
    while len(new) < most and end not in new:
        new.append(int(score_next(torch.cat([begin, begin.new_tensor(new)])).argmax()))
    return begin.new_tensor(new)


def _by_calling_itself(score_next: Any, begin: Tensor, end: int, most: int) -> Tensor:
    if most == 0:
        return begin[:0]
    best = score_next(begin).max(-1).indices[None]
    longer = torch.cat([begin, best])
    return best if best == end else torch.cat([best, _by_calling_itself(score_next, longer, end, most - 1)])


def _chosen_after(logits: Tensor, temperature: float, k: int) -> Tensor:
    shares = (logits / temperature).softmax(-1) * _best(logits, k)
    return shares / shares.sum(-1, keepdim=True)


def _one_by_one(words: Tensor, chosen: Tensor, fate: Tensor, other: Tensor) -> Tensor:
    seen = words.clone()
    for place in chosen.nonzero().tolist():
        at = tuple(place)
        if fate[at] < 0.9:
            seen[at] = 1 if fate[at] < 0.8 else other[at]
    return seen


def _one_true_each(gap: Tensor, subject: Tensor, n: int) -> Tensor:
    table = torch.ones(len(gap), n, n, dtype=torch.bool)
    table[torch.arange(len(gap)), gap, subject] = False
    return table


def _powers(logits: Tensor, temperature: float) -> Tensor:
    if temperature == 0:
        return torch.zeros_like(logits).scatter(-1, logits.argmax(-1, keepdim=True), 1.0)
    p = logits.softmax(-1) ** (1 / temperature)
    return p / p.sum(-1, keepdim=True)


def _in_place(x: Tensor, attention: asked.Sublayer, feed_forward: asked.Sublayer, norms: tuple) -> Tensor:
    y = x.clone()
    y += attention(x, x, x)
    y = norms[0](y)
    return norms[1](y + feed_forward(y))


def _added_up(
    x: Tensor, memory: Tensor, own: asked.Sublayer, other: asked.Sublayer, last: asked.Sublayer, norms: tuple
) -> Tensor:
    y = norms[0](x)
    x = torch.stack([x, own(y, y, y)]).sum(0)
    x = torch.stack([x, other(norms[1](x), memory, memory)]).sum(0)
    return torch.stack([x, last(norms[2](x))]).sum(0)


def _all_texts_at_once(model: asked.Sublayer, before: Tensor, other: int) -> Tensor:
    """Text i of the batch is changed at i; changes are counted below the diagonal."""
    n = before.shape[1]
    changed = torch.where(torch.eye(n, dtype=torch.bool)[:, None], other, before)  # (n, b, n)
    change = model(changed.flatten(0, 1)).unflatten(0, (n, -1)) - model(before)
    return change.abs().sum((1, 3)).tril(-1).sum(1)


RIGHT = {
    "encoder_layer": (
        asked._right_encoder,
        lambda x, attention, feed_forward, norms: norms[1](
            feed_forward(norms[0](attention(x, x, x) + x)) + norms[0](attention(x, x, x) + x)
        ),
        lambda x, attention, feed_forward, norms: _through(
            x, (lambda y: attention(y, y, y), feed_forward), norms
        ),
        _in_place,
    ),
    "decoder_layer": (
        asked._right_decoder,
        lambda x, memory, attention, cross_attention, feed_forward, norms: _branch_by_branch(
            x,
            (
                lambda y: attention(y, y, y),
                lambda y: cross_attention(y, key=memory, value=memory),
                feed_forward,
            ),
            norms,
        ),
        _added_up,
    ),
    "next_character_loss": (
        asked._right_loss,
        lambda model, source, lengths, target: torch.nn.functional.cross_entropy(
            model(source, lengths, target[:, :-1]).mT, target[:, 1:], ignore_index=0
        ),
        lambda model, source, lengths, target: (
            -(
                torch.distributions.Categorical(logits=model(source, lengths, target[:, :-1]))
                .log_prob(target[:, 1:])[target[:, 1:] != 0]
                .mean()
            )
        ),
    ),
    "reads_ahead": (
        asked._right_ahead,
        lambda model, before, other: torch.stack(
            [
                (model(before.index_fill(1, torch.tensor([i], device=before.device), other)) - model(before))
                .abs()[:, :i]
                .sum()
                for i in range(before.shape[1])
            ]
        ),
        _all_texts_at_once,
    ),
    "learning_rates": (
        asked._right_rates,
        lambda step, steps, warm, peak: (
            peak
            * torch.minimum(
                step / warm,
                0.5 + 0.5 * torch.cos(torch.pi * ((step - warm) / (steps - warm)).clamp(min=0)),
            )
        ),
        lambda step, steps, warm, peak: torch.tensor(
            [
                peak * (s / warm if s <= warm else math.cos(math.pi / 2 * (s - warm) / (steps - warm)) ** 2)
                for s in step.tolist()
            ]
        ),
    ),
    "best_continuations": (
        asked._right_continuations,
        lambda total, logs: torch.stack(
            torch.unravel_index((total[:, None] + logs).flatten().topk(len(total)).indices, logs.shape), 1
        ),
        lambda total, logs: torch.stack(
            [
                (total[:, None] + logs).flatten().argsort(descending=True)[: len(total)] // logs.shape[1],
                (total[:, None] + logs).flatten().argsort(descending=True)[: len(total)] % logs.shape[1],
            ],
            -1,
        ),
    ),
    "next_loss": (
        lambda logits, tokens: torch.nn.functional.cross_entropy(
            logits[:, :-1].transpose(1, 2), tokens[:, 1:]
        ),
        lambda logits, tokens: -logits[:, :-1].log_softmax(-1).gather(-1, tokens[:, 1:, None]).mean(),
        lambda logits, tokens: torch.nn.functional.cross_entropy(
            logits.transpose(1, 2), torch.nn.functional.pad(tokens[:, 1:], (0, 1), value=-100)
        ),
    ),
    "tempered": (
        lambda logits, t: (
            (logits / t).softmax(-1) if t else (logits == logits.max(-1, keepdim=True).values).float()
        ),
        lambda logits, t: ((logits - logits.max(-1, keepdim=True).values) / max(t, 1e-9)).softmax(-1),
        _powers,
    ),
    "hide_words": (
        lambda words, chosen, fate, other: torch.where(
            chosen & (fate < 0.8), 1, torch.where(chosen & (fate >= 0.8) & (fate < 0.9), other, words)
        ),
        _one_by_one,
        lambda w, c, f, o: (
            w.masked_fill(c & (f < 0.8), 1) * ~(c & (f >= 0.8) & (f < 0.9)) + o * (c & (f >= 0.8) & (f < 0.9))
        ),
    ),
    "hidden_loss": (
        lambda logits, words, chosen: (
            -logits.log_softmax(-1).gather(-1, words[..., None])[..., 0][chosen].mean()
        ),
        lambda logits, words, chosen: torch.nn.functional.cross_entropy(
            logits.transpose(1, 2), words.masked_fill(~chosen, -100)
        ),
        lambda logits, words, chosen: (
            (torch.nn.functional.cross_entropy(logits.mT, words, reduction="none") * chosen).sum()
            / chosen.sum()
        ),
    ),
    "hidden_from_gap": (
        _one_true_each,
        lambda gap, subject, n: (
            (
                torch.nn.functional.one_hot(gap, n)[:, :, None]
                * torch.nn.functional.one_hot(subject, n)[:, None]
            )
            == 0
        ),
        lambda gap, subject, n: (torch.arange(n * n) != (gap * n + subject)[:, None]).view(-1, n, n),
    ),
    "norm_of_tokens": (
        lambda x, weight, bias, eps: torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, eps),
        lambda x, weight, bias, eps: (
            _centred(x) * (x.var(-1, keepdim=True, correction=0) + eps).rsqrt() * weight + bias
        ),
        asked._over(-1),
    ),
    "pre_norm_stack": (
        asked._stack(asked._around),
        _by_recursion,
        _as_a_sum,
    ),
    "forced_loss": (
        lambda decode, target, start, filler: torch.nn.functional.cross_entropy(
            decode(asked._before(target, start)).flatten(0, 1), target.flatten(), ignore_index=filler
        ),
        asked._mean_of(lambda target, start: torch.nn.functional.pad(target, (1, -1), value=start)),
        asked._mean_of(asked._before, lambda losses, real: (losses * real).sum() / real.sum()),
    ),
    "greedy_words": (asked._writes(), _in_a_list, _by_calling_itself),
    "mask_of_new": (
        lambda past, new: torch.ones(new, past + new, dtype=torch.bool).tril(past),
        lambda past, new: causal(past + new)[past:],
        lambda past, new: torch.tensor([[j <= past + i for j in range(past + new)] for i in range(new)]),
    ),
    "k_best_probabilities": (
        asked._of_the_sorted,
        _chosen_after,
        lambda logits, temperature, k: torch.softmax(_kept(logits, k) / temperature, -1),
        lambda logits, temperature, k: (
            (
                p := (logits / temperature).softmax(-1)
                * (logits >= logits.topk(k).values.amin(-1, keepdim=True))
            )
            / p.sum(-1, keepdim=True)
        ),
    ),
    "why_training_differs": (
        (
            "Teacher forcing puts the correct words before every position, so all losses are computed in"
            " parallel. Later the model reads words that it chose, one at a time, and after a wrong one it is"
            " somewhere it has never been."
        ),
        (
            "While it trains it reads the right words and while it writes its own. In training all places are"
            " computed at once, in writing one after the other, so one mistake is read by all that follow."
        ),
        (
            "While training it reads the target, shifted by one, in one pass with a causal mask. While"
            " writing it reads its own output in a loop, and an early error is read by all later steps."
        ),
    ),
}

# in the order of the slips
WRONG = {
    "why_training_differs": (
        "In training the decoder sees the future words.",
        "The decoder learns from its errors while it writes.",
        "The encoder works in a different way when the model writes.",
        "In training there is dropout.",
        "It uses beam search to write.",
        "It overfits to the training sentences.",
    ),
}
