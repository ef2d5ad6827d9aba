"""torch's fused kernel, which never holds the (n, m) table, for what `attend` takes; and the rows that let
nothing through."""

import torch
import torch.nn.functional as F
from torch import Tensor

from lesson_lib import require


def empty_rows(table: Tensor) -> Tensor | None:
    """Which rows of a mask or of scores let nothing through, shape (..., n, 1); None where there is none.

    A GPU is not asked whether there is one: waiting for its answer costs more than filling rows.
    """
    if table.shape[-1] == 0:
        return None
    table, boolean = table.detach(), table.dtype == torch.bool
    if table.device.type == "cpu":
        first = table[..., 0] if boolean else table[..., 0] > -torch.inf
        if first.all():  # causal and padding masks end here: every query sees the first key
            return None
    empty = ~table.any(-1, keepdim=True) if boolean else table.amax(-1, keepdim=True) == -torch.inf
    return empty if table.device.type != "cpu" or empty.any() else None


def fused(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, mask: Tensor | None, dropout: float
) -> Tensor:
    """torch's fused kernel on inputs of any rank. On the CPU it is fused only for 4-D inputs with d_v
    = d_k."""
    d_k, d_v = query.shape[-1], value.shape[-1]
    batch = require.leading(query, key, value)
    table = mask if bias is None else bias if mask is None else bias.masked_fill(~mask, -torch.inf)
    empty = None if table is None else empty_rows(table)
    if empty is not None:
        # such a row looks at everything, so that no kernel makes nan of it, and is set to 0 below
        table = table | empty if table.dtype == torch.bool else table.masked_fill(empty, 0.0)
    width = max(d_k, d_v)
    output = F.scaled_dot_product_attention(
        _four_axes(_padded(query, width), batch),
        _four_axes(_padded(key, width), batch),
        _four_axes(_padded(value, width), batch),
        attn_mask=None if table is None else _four_axes(table, batch, shared=True),
        dropout_p=dropout,
        scale=d_k**-0.5,
    )
    output = output.reshape(*batch, query.shape[-2], width)[..., :d_v]
    return output if empty is None else output.masked_fill(empty, 0.0)


def _padded(x: Tensor, width: int) -> Tensor:
    return x if x.shape[-1] == width else F.pad(x, (0, width - x.shape[-1]))


def _four_axes(x: Tensor, batch: torch.Size, *, shared: bool = False) -> Tensor:
    """View of x with leading axes (b, h); axes of size 1 that all share stay 1 where `shared`."""
    if shared and x.shape[:-2].numel() == 1:
        return x.reshape(1, 1, *x.shape[-2:])
    if len(batch) < 2:
        lead = x.shape[:-2] if shared else batch
        return x.expand(*lead, *x.shape[-2:]).reshape(*lead, *[1] * (2 - len(lead)), *x.shape[-2:])
    heads = x.shape[-3] if shared else batch[-1]
    x = x.expand(*batch[:-1], heads, *x.shape[-2:])
    return x if len(batch) == 2 else x.flatten(0, len(batch) - 2)
