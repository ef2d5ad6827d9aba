"""Ring attention: exact attention over a sequence that no single process holds.

Each process has some of the tokens: their queries, keys and values. The queries stay; keys and values go
round, from each process to the next:

    round 0    process 0 has keys 0    process 1 has keys 1    process 2 has keys 2
    round 1                  keys 2                  keys 0                  keys 1
    round 2                  keys 1                  keys 2                  keys 0

In each round a process attends to the keys that it has, and `merge`s that with what it had before, so that
after as many rounds as there are processes each query has met each key. Backward, the keys' gradients travel
with them, and are at home after one round more. A process holds its own tokens, the block of keys and values
that it computes with and the one that comes (backward, two blocks of gradients too): memory falls as 1 /
processes. With the causal mask, a process has nothing to do while it holds later keys. That saves half of all
the work, but hardly any time: of p processes the last must still do (p - 1/2) / p of its own, and the others
wait. Striped Attention deals the tokens out like cards, and evens that out; here they stay in order. Start it
with torchrun, which says to each process who it is: `make ring` runs `lesson_lib.cli.ring` so.
Source: Liu, Zaharia & Abbeel 2023, arXiv:2310.01889; the stripes: Brandon et al. 2023, arXiv:2311.09431; the
merge: `lesson_lib.efficient`.
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from jaxtyping import Float
from torch import Tensor

from lesson_lib import require
from lesson_lib.efficient import TILE, Partial, attend_part, gradients_part, merge


def attend_ring(
    query: Float[Tensor, "*#b n d_k"],
    key: Float[Tensor, "*#b m d_k"],
    value: Float[Tensor, "*#b m d_v"],
    *,
    causal: bool = False,
    group: dist.ProcessGroup | None = None,
) -> Float[Tensor, "*b n d_v"]:
    """This process's rows of `attend` over the tokens of ALL processes, which hold them in the order of their
    ranks; with a gradient.

    Every process of the group (default: all) must call it, with its own rows: n and m may differ from process
    to process, and be 0; all else is equal. `causal` hides later tokens, those of later processes among them;
    then n = m. Every process must call backward, too, one with n = 0 among them.
    Raises ValueError where torch.distributed is not initialised, and, in every process, where their inputs do
    not fit together; RuntimeError where another process has died. One that is alive and does not answer (or
    does not call backward) is waited for as long as init_process_group's `timeout` says, and is then taken
    for dead. The group must send from the inputs' device: 'gloo' from cpu, 'nccl' from cuda, after
    torch.cuda.set_device.
    """
    if not dist.is_available() or not dist.is_initialized():
        raise ValueError(
            "attend_ring needs a process group; start the program with torchrun, and begin it with "
            "torch.distributed.init_process_group('gloo')"
        )
    if dist.get_rank(group) < 0:
        raise ValueError("this process is not in the group; call attend_ring in its members only")
    ring = _Ring(group)
    counts = ring.agree(query, key, value, causal)
    batch = require.leading(query, key, value)
    query, key, value = (x.expand(*batch, *x.shape[-2:]) for x in (query, key, value))
    return _Attend.apply(query, key, value, ring, counts, causal)


class _Ring:
    """The processes in a circle, and what goes from each to the next."""

    def __init__(self, group: dist.ProcessGroup | None) -> None:
        self.group, self.rank, self.size = group, dist.get_rank(group), dist.get_world_size(group)

    def agree(self, query: Any, key: Any, value: Any, causal: bool) -> list[int]:
        """How many keys each process has. Raises in all of them where one has inputs that do not fit, so that
        none waits for it."""
        problem, facts = None, {}
        try:
            shape = require.inputs(query, key, value)
            self._check_device(query.device.type)
            if causal and shape[-2] != shape[-1]:
                raise ValueError(f"a causal mask needs a query for each key, got {shape[-2]} and {shape[-1]}")
            facts = {
                "the leading axes": tuple(shape[:-2]),
                "the width of keys": key.shape[-1],
                "the width of values": value.shape[-1],
                "the number format": str(query.dtype),
                "causal": bool(causal),
                # backward goes round, too: where one wants no gradient, the others would wait for it
                "whether a gradient is wanted": (
                    torch.is_grad_enabled() and any(x.requires_grad for x in (query, key, value))
                ),
            }
        except (TypeError, ValueError) as error:
            problem = error
        told: list[Any] = [None] * self.size
        mine = (None if problem is None else str(problem), facts, 0 if problem else key.shape[-2])
        self._with_others(lambda: dist.all_gather_object(told, mine, group=self.group))
        if problem is not None:
            raise problem
        for rank, (said, theirs, _) in enumerate(told):
            if said is not None:
                raise ValueError(f"process {rank} cannot take part: {said}")
            for name, fact in facts.items():
                if theirs[name] != fact:
                    raise ValueError(
                        f"{name} must be the same in all processes, got {fact} here (process {self.rank}) and"
                        f" {theirs[name]} in process {rank}"
                    )
        return [count for _, _, count in told]

    def _check_device(self, kind: str) -> None:
        backends = dict(pair.split(":") for pair in dist.get_backend_config(self.group).split(","))
        if backends.get(kind) is None or (backends[kind] == "gloo" and kind != "cpu"):
            raise ValueError(
                f"the inputs are on {kind}, from where this group ({dist.get_backend(self.group)}) sends"
                " nothing to other processes; 'gloo' sends from cpu, 'nccl' from cuda"
            )

    def send_on(self, block: Tensor, like: Sequence[int]) -> "_Coming":
        """Begin to hand a block to the next process, and to take one of that shape from the one before."""
        coming = block.new_empty(*like)
        peers = ((self.rank + 1) % self.size, (self.rank - 1) % self.size)
        after, before = (
            peer if self.group is None else dist.get_global_rank(self.group, peer) for peer in peers
        )
        calls = [
            dist.P2POp(call, x, peer, self.group)
            for call, x, peer in ((dist.isend, block.contiguous(), after), (dist.irecv, coming, before))
            if x.numel()
        ]
        works = self._with_others(lambda: dist.batch_isend_irecv(calls)) if calls else []
        return _Coming(self, works, coming)

    def _with_others(self, call: Any) -> Any:
        try:
            return call()
        except RuntimeError as error:
            raise RuntimeError(
                f"process {self.rank} of {self.size} has lost another one: it has died, or it did not answer"
                " in time. The first error among all processes' messages is the cause; mend it, and start"
                " them all again"
            ) from error


class _Coming:
    """A block on its way."""

    def __init__(self, ring: _Ring, works: list[Any], block: Tensor) -> None:
        self.ring, self.works, self.block = ring, works, block

    def wait(self) -> Tensor:
        for work in self.works:
            self.ring._with_others(work.wait)
        return self.block


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, ring: _Ring, counts: list[int], causal: bool
    ) -> Tensor:
        width = key.shape[-1]
        block, whole = torch.cat([key, value], -1), _empty_partial(query, value)
        for turn in range(ring.size):
            owner = (ring.rank - turn) % ring.size
            coming = None
            if turn < ring.size - 1:  # while the next block comes, this one is computed with
                coming = ring.send_on(block, _block_shape(block, counts[(owner - 1) % ring.size]))
            if not causal or owner <= ring.rank:
                ahead = _ahead(counts, ring.rank, owner) if causal else None
                _merge_into(whole, query, block[..., :width], block[..., width:], ahead)
            if coming is not None:
                block = coming.wait()
        ctx.save_for_backward(query, key, value, *whole)
        ctx.ring, ctx.counts, ctx.causal = ring, counts, causal
        return whole.output.to(query.dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, *whole = ctx.saved_tensors
        ring, counts, width = ctx.ring, ctx.counts, key.shape[-1]
        whole = Partial(*whole)
        block = torch.cat([key, value], -1)
        by_query = query.new_zeros(query.shape, dtype=whole.output.dtype)
        by_block = block.new_zeros(block.shape, dtype=whole.output.dtype)
        for turn in range(ring.size):
            owner = (ring.rank - turn) % ring.size
            like = _block_shape(block, counts[(owner - 1) % ring.size])
            coming = ring.send_on(block, like) if turn < ring.size - 1 else None
            if not ctx.causal or owner <= ring.rank:
                ahead = _ahead(counts, ring.rank, owner) if ctx.causal else None
                keys, values = block[..., :width], block[..., width:]
                by_keys, by_values = by_block[..., :width], by_block[..., width:]
                _add_gradients(by_query, by_keys, by_values, query, keys, values, whole, gradient, ahead)
            if ring.size > 1:  # the block's gradient goes with it, and one round further: home
                by_block = ring.send_on(by_block, like).wait()
            if coming is not None:
                block = coming.wait()
        found = (by_query, by_block[..., :width], by_block[..., width:])
        return *(x.to(query.dtype) for x in found), None, None, None


def _empty_partial(query: Tensor, value: Tensor) -> Partial:
    """Attention to no keys yet, in at least float32."""
    dtype = torch.promote_types(query.dtype, torch.float32)
    output = query.new_zeros(*query.shape[:-1], value.shape[-1], dtype=dtype)
    return Partial(output, query.new_full(query.shape[:-1], -torch.inf, dtype=dtype))


def _merge_into(whole: Partial, query: Tensor, key: Tensor, value: Tensor, ahead: int | None) -> None:
    """Merge into `whole`, in its own memory, what the queries find in these keys; tile by tile, so that no
    second `whole` is held."""
    for rows in _row_slices(query.shape[-2]):
        before = Partial(whole.output[..., rows, :], whole.log_sum[..., rows])
        part = attend_part(
            query[..., rows, :], key, value, ahead=None if ahead is None else ahead + rows.start
        )
        for mine, merged in zip(before, merge(before, part), strict=True):
            mine.copy_(merged)


def _add_gradients(
    by_query: Tensor, by_key: Tensor, by_value: Tensor,
    query: Tensor, key: Tensor, value: Tensor, whole: Partial, gradient: Tensor, ahead: int | None,
) -> None:  # fmt: skip
    """Add to the first three what these keys give to the gradients; tile by tile, so that no second three are
    held."""
    for rows in _row_slices(query.shape[-2]):
        these = Partial(whole.output[..., rows, :], whole.log_sum[..., rows])
        for columns in _row_slices(key.shape[-2]):
            reach = None if ahead is None else ahead + rows.start - columns.start
            if reach is not None and reach + TILE <= 0:  # no query of the tile may look at any of these keys
                break
            q, k, v = query[..., rows, :], key[..., columns, :], value[..., columns, :]
            found = gradients_part(q, k, v, these, gradient[..., rows, :], ahead=reach)
            by_query[..., rows, :] += found[0]
            by_key[..., columns, :] += found[1]
            by_value[..., columns, :] += found[2]


def _row_slices(count: int) -> list[slice]:
    return [slice(start, start + TILE) for start in range(0, count, TILE)]


def _block_shape(block: Tensor, count: int) -> tuple[int, ...]:
    return *block.shape[:-2], count, block.shape[-1]


def _ahead(counts: list[int], rank: int, owner: int) -> int:
    """Query i of `rank` may look at key j of `owner` where j <= i + this: the first token of `rank` less that
    of `owner`."""
    return sum(counts[:rank]) - sum(counts[:owner])
