"""Attention in plain torch: one file to copy into a project. MIT licence.

    attend                (b, h, n, d) queries, (b, h, m, d) keys: output and weights; mask, bias, dropout
    causal, padding       masks: True = may look; join two with &
    MultiHeadAttention    the layer: self- and cross-attention, shared keys, or torch's fused kernel
    influence             a test: which outputs move when a token is replaced?
    python attention.py   trains three matrices for some seconds, and reads a secret in them
"""

import torch
import torch.nn.functional as F
from torch import nn


def attend(query, key, value, *, mask=None, score_bias=None, dropout=0.0):
    """Output (..., n, d_v) and weights (..., n, m), before dropout.

    The query is (..., n, d), the key (..., m, d), the value (..., m, d_v).
    mask (..., n, m) is boolean, score_bias (..., n, m) is added to the scores. A query that may look at
    nothing gets zeros. (The query is divided, not the product, which could overflow in float16.)
    """
    d = query.shape[-1]
    scores = (query * d**-0.5) @ key.mT
    if score_bias is not None:
        scores = scores + score_bias
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    empty = (scores == -torch.inf).all(-1, keepdim=True)  # softmax makes nan of such a row
    weights = scores.masked_fill(empty, 0.0).softmax(-1).masked_fill(empty, 0.0)
    return F.dropout(weights, dropout) @ value, weights  # dropout=0.0 outside of training


def fused(query, key, value, *, mask=None, score_bias=None, dropout=0.0):
    """The output of `attend` by torch's own function, which need not hold the (n, m) table."""
    table = mask if score_bias is None else score_bias
    if mask is not None and score_bias is not None:
        table = score_bias.masked_fill(~mask, -torch.inf)
    if table is None:
        return F.scaled_dot_product_attention(query, key, value, dropout_p=dropout)
    open_ = table if table.dtype == torch.bool else table > -torch.inf
    empty = ~open_.any(-1, keepdim=True)
    table = table | empty if table is open_ else table.masked_fill(empty, 0.0)
    output = F.scaled_dot_product_attention(query, key, value, attn_mask=table, dropout_p=dropout)
    return output.masked_fill(empty, 0.0)


def causal(n, *, queries=None, device=None):
    """Mask (queries, n): each token may look at itself and at earlier ones.

    With a cache only the last tokens ask: causal(9, queries=2) has the last two of nine rows (torch's
    is_causal=True gives the first two). To hide padding, too: causal(n) & real[:, None, :], real (b, n).
    """
    rows = torch.arange(n - (n if queries is None else queries), n, device=device)
    return torch.arange(n, device=device) <= rows[:, None]


def padding(lengths, n):
    """Mask (b, 1, n): sequence i has lengths[i] real tokens, and padding behind them. It hides keys."""
    return torch.arange(n, device=lengths.device) < lengths[:, None, None]


def split(x, n_heads):  # (b, n, h * d) to (b, h, n, d): split the width, then swap
    return x.unflatten(-1, (n_heads, -1)).transpose(-3, -2)


def merge(heads):  # (b, h, n, d) to (b, n, h * d): swap, then join
    return heads.transpose(-3, -2).flatten(-2)


class MultiHeadAttention(nn.Module):
    """Self-attention layer(x, x, x), or cross-attention layer(x, source, source), with several heads.

    With n_key_heads, groups of heads share keys and values. A mask or bias: (n, m), (b, n, m), (b, h, n, m).
    """

    def __init__(self, d_model, n_heads, *, n_key_heads=None, bias=False, dropout=0.0):
        super().__init__()
        n_key_heads = n_heads if n_key_heads is None else n_key_heads
        if d_model % n_heads or n_heads % n_key_heads:
            raise ValueError(f"{n_heads=} must divide {d_model=}, and {n_key_heads=} must divide {n_heads=}")
        self.n_heads, self.n_key_heads, self.dropout = n_heads, n_key_heads, dropout
        shared = d_model // n_heads * n_key_heads
        self.w_query = nn.Linear(d_model, d_model, bias=bias)
        self.w_key = nn.Linear(d_model, shared, bias=bias)
        self.w_value = nn.Linear(d_model, shared, bias=bias)
        self.w_output = nn.Linear(d_model, d_model, bias=bias)

    def forward(self, query, key, value, *, mask=None, score_bias=None, weights=True):
        """Output (b, n, d_model), and weights (b, h, n, m); with weights=False the fused kernel, and None."""
        q = split(self.w_query(query), self.n_heads)
        k, v = (split(x, self.n_key_heads) for x in (self.w_key(key), self.w_value(value)))
        k, v = (x.repeat_interleave(self.n_heads // self.n_key_heads, dim=-3) for x in (k, v))
        options = {"mask": mask, "score_bias": score_bias}
        for name, table in options.items():
            if table is not None and table.ndim == query.ndim:  # (b, n, m): the same for all heads
                options[name] = table.unsqueeze(-3)
        options["dropout"] = self.dropout * self.training
        heads, table = attend(q, k, v, **options) if weights else (fused(q, k, v, **options), None)
        return self.w_output(merge(heads)), table


@torch.no_grad()
def influence(f, x, other=None):
    """Table (n, n): how far output i of f(x) moves at most when token j of x (b, n, d) is replaced.

    f(x) is one tensor (b, n, ...). The table is 0 above the diagonal where f is causal, and in the columns
    of hidden tokens. `other` has the tokens to take. Dropout must be off: layer.eval().
    """
    other = torch.randn_like(x) if other is None else other
    before, table = f(x), x.new_zeros(x.shape[1], x.shape[1])
    for j in range(len(table)):
        changed = x.clone()
        changed[:, j] = other[:, j]
        table[:, j] = (f(changed) - before).abs().flatten(2).amax((0, 2))
    return table


def party(secret, b, cards=5):
    """b parties: tokens (b, n, n + cards), a 1 for guest and for card; the cards of the partners (b, n)."""
    n = len(secret)
    guest = torch.rand(b, n).argsort(-1)
    card = torch.randint(cards, (b, n))
    right = card.gather(1, guest.argsort(-1).gather(1, secret[guest]))
    return torch.cat((F.one_hot(guest, n), F.one_hot(card, cards)), -1).float(), right


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)  # matrices so small are faster without a second thread
    secret = torch.tensor([3, 6, 0, 5, 2, 7, 4, 1])  # guest 0's partner is guest 3; never shown in training
    w_q, w_k, w_v = (nn.Parameter(torch.randn(13, width) / 13**0.5) for width in (10, 10, 5))
    optimizer = torch.optim.Adam((w_q, w_k, w_v), lr=0.01)

    def layer(x, mask=None):
        return attend(x @ w_q, x @ w_k, x @ w_v, mask=mask)[0]

    for step in range(1, 801):
        x, right = party(secret, 64)
        loss = F.cross_entropy(layer(x).flatten(0, 1), right.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 200 == 0:
            print(f"step {step}  loss {loss.item():.3f}")
    x, right = party(secret, 500)
    for name, mask in {"all may look": None, "causal": causal(8)}.items():
        hits = (layer(x, mask).argmax(-1) == right).float().mean()
        leak = influence(lambda x, m=mask: layer(x, m), x).triu(1).max()
        print(f"{name:13} right {hits:.2f}  a later token moves an output by {leak:.2f}")
    print(f"secret {secret.tolist()}\nfound  {(w_q @ w_k.T)[:8, :8].argmax(-1).tolist()}")
