"""N-gram models of characters: the next one is guessed from the n - 1 before it, by counting. The baseline of
language models.

Smoothing is interpolated Kneser-Ney, with one discount D for all orders, to be chosen on a validation split:

    p_m(c | h) = max(count(h c) - D, 0) / count(h) + D · kinds(h) / count(h) · p_(m-1)(c | h without its first
    character)

`h` are the m - 1 characters before, `kinds(h)` counts the different characters that were seen after them;
where h was never seen, p_m = p_(m-1); p_0 is the same for all characters. The highest order counts
occurrences, every lower one the different characters that stood in front: what it has to predict are the
cases that the higher order does not know.
Source: Kneser & Ney 1995, "Improved backing-off for m-gram language modeling"; the interpolated form: Chen &
Goodman 1999, "An empirical study of smoothing techniques for language modeling", who recommend it with three
discounts per order (here: one).
"""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lesson_lib import require


class NGrams:
    """An n-gram model of a text, counted at once: `bits(tokens)` as `models.gpt.bits`. All on the CPU.

    `tokens` are numbers below `n_tokens`, such as data.topics.stream returns. Raises ValueError where n is
    less than 1, where the discount is not between 0 and 1, and where n_tokens ** n is too large to count (2
    ** 63).
    """

    def __init__(
        self, tokens: Int[Tensor, " length"], n: int, *, n_tokens: int, discount: float = 0.8
    ) -> None:
        require.whole(n=n, n_tokens=n_tokens)
        if not 0 < discount < 1:
            raise ValueError(f"discount must lie between 0 and 1, got {discount}; 0.8 is a common start")
        if n_tokens**n >= 2**63:
            raise ValueError(f"n = {n} is too large to count with {n_tokens} tokens; use a smaller n")
        if len(tokens) < n:
            raise ValueError(f"tokens must hold at least n = {n} of them, got {len(tokens)}")
        self.n, self.n_tokens, self.discount = n, n_tokens, discount
        grams, counts = self._grams(tokens.cpu(), n).unique(return_counts=True)
        self._orders = [self._order(grams, counts)]
        for m in range(n - 1, 0, -1):  # a shorter gram counts the different tokens in front of it
            grams, counts = (grams % n_tokens**m).unique(return_counts=True)
            self._orders.insert(0, self._order(grams, counts))

    def bits(self, tokens: Int[Tensor, " n"]) -> Float[Tensor, " n_less_one"]:
        """The surprise, -log2 p, of each character after the first, float64; in front of the text, token 0 is
        assumed."""
        return -self.probabilities(tokens)[1:].log2()

    def probabilities(self, tokens: Int[Tensor, " n"]) -> Float[Tensor, " n"]:
        """The probability of each character of a text, given the n - 1 before it."""
        front = torch.zeros(self.n - 1, dtype=torch.long, device="cpu")
        whole = torch.cat([front, tokens.cpu()])
        p = torch.full((len(tokens),), 1 / self.n_tokens, dtype=torch.float64, device="cpu")
        for m, (grams, counts, before, totals, kinds) in enumerate(self._orders, 1):
            asked = self._grams(whole[self.n - m :], m)
            count, total = _found(grams, counts, asked), _found(before, totals, asked // self.n_tokens)
            spared = self.discount * _found(before, kinds, asked // self.n_tokens)
            mixed = ((count - self.discount).clamp(min=0) + spared * p) / total.clamp(min=1)
            p = torch.where(total > 0, mixed, p)
        return p

    def _grams(self, tokens: Tensor, m: int) -> Tensor:
        """Each run of m tokens as one number, the last token its last digit."""
        powers = self.n_tokens ** torch.arange(m - 1, -1, -1, device="cpu")
        return (tokens.unfold(0, m, 1) * powers).sum(-1)

    def _order(self, grams: Tensor, counts: Tensor) -> tuple[Tensor, ...]:
        before, place, kinds = (grams // self.n_tokens).unique(return_inverse=True, return_counts=True)
        totals = torch.zeros_like(before).index_add(0, place, counts)
        return grams, counts, before, totals, kinds


def _found(keys: Tensor, values: Tensor, asked: Tensor) -> Any:
    """The value of each asked key, 0 where there is none; keys are sorted."""
    place = torch.searchsorted(keys, asked).clamp(max=len(keys) - 1)
    return torch.where(keys[place] == asked, values[place], 0)
