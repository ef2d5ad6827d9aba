"""A second device where there is no GPU: tensors that compute on the CPU, and behave as if they lay somewhere
else.

`pytest --device simulated` runs any test on it, the notebooks with nbval, too. It shows what a GPU would show
of a program that takes it for a CPU:

    a tensor of the CPU beside one of the device      refused, but for a single number, and an index
    .numpy() without .cpu()                           refused
    a generator of the CPU for a tensor made there    refused
    random numbers                                    a stream of their own: the same seed gives other numbers
                                                      than on the CPU
    sums, products, exponentials                      computed more exactly and then rounded: other last
                                                      digits than on the CPU
    index_add, scatter_add                            add in a random order, as threads of a GPU do
    memory                                            counted in pieces of 512 bytes, and a workspace for the
                                                      first product

What it does not show: whether CUDA's kernels exist, are right, or fast. Source of the mechanism: torch's
tensor subclasses (`__torch_dispatch__`) over the device that torch keeps for others, `PrivateUse1`.
"""

import functools
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils import backend_registration, checkpoint
from torch.utils._python_dispatch import TorchDispatchMode

NAME = "simulated"
PIECE, WORKSPACE = 512, 8 * 2**20  # bytes, as CUDA's allocator and its matrix products take them
aten = torch.ops.aten

# What is computed in float64 and rounded once.
ROUNDED = {
    aten.mm, aten.addmm, aten.bmm, aten.baddbmm, aten.dot, aten.mv, aten.convolution,
    aten.convolution_backward,
    aten._softmax, aten._log_softmax, aten._softmax_backward_data, aten._log_softmax_backward_data,
    aten.sum, aten.mean, aten.var, aten.var_mean, aten.cumsum, aten.logsumexp, aten.linalg_vector_norm,
    aten.exp, aten.log, aten.tanh, aten.sigmoid, aten.erf, aten.gelu, aten.sin, aten.cos, aten.rsqrt,
    aten.native_layer_norm, aten.native_layer_norm_backward,
    aten._scaled_dot_product_flash_attention_for_cpu,
    aten._scaled_dot_product_flash_attention_for_cpu_backward,
}  # fmt: skip
PRODUCTS = {aten.mm, aten.addmm, aten.bmm, aten.baddbmm}
BETWEEN = {aten._to_copy, aten.copy_, aten.copy}  # they carry numbers from one device to another
ON_THE_CPU = {aten._pack_padded_sequence, aten._pad_packed_sequence}  # their lengths
# their indices may lie on the CPU
INDEXING = {
    aten.index,
    aten.index_put,
    aten.index_put_,
    aten._unsafe_index,
}
ADDING = {  # operation: places of (dim, index, what is added)
    aten.index_add: (1, 2, 3), aten.index_add_: (1, 2, 3),
    aten.scatter_add: (1, 2, 3), aten.scatter_add_: (1, 2, 3),
}  # fmt: skip


class Simulated(Tensor):
    """A tensor of the simulated device; `inner`, on the CPU, holds its numbers."""

    inner: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, inner: Tensor) -> "Simulated":
        outer = torch.Tensor._make_wrapper_subclass(
            cls,
            inner.size(),
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=f"{NAME}:0",
        )
        outer.inner = inner
        memory.note(outer)
        return outer

    @classmethod
    def __torch_dispatch__(cls, operation, types, args=(), kwargs=None):
        return _run(operation, args, kwargs or {})

    @property
    def data(self) -> Tensor:
        return torch.Tensor.data.__get__(self)

    @data.setter
    def data(self, other: "Simulated") -> None:
        torch.Tensor.data.__set__(self, other)
        self.inner = other.inner

    def tolist(self):
        return self.inner.tolist()

    def numpy(self, *, force: bool = False):
        if force:
            return self.detach().inner.numpy()
        raise TypeError(
            f"can't convert {NAME}:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host"
            " memory first."
        )

    def __array__(self, dtype=None):
        return self.numpy()

    def __repr__(self, *, tensor_contents=None):
        return f"{torch.Tensor.__repr__(self.inner)[:-1]}, device='{NAME}:0')"

    def __format__(self, spec):
        return format(self.item(), spec) if self.ndim == 0 else repr(self)

    def __reduce_ex__(self, protocol):
        return _loaded, (self.detach().cpu(), self.requires_grad)


Simulated.__name__ = "Tensor"  # what a sentence about a wrong argument calls it, on a GPU as well


def _loaded(numbers: Tensor, requires_grad: bool) -> Tensor:
    return numbers.to(NAME).requires_grad_(requires_grad)


class Mode(TorchDispatchMode):
    """Sees to the operations that make tensors: none of their arguments is one of the device's."""

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        return _run(operation, args, kwargs or {})


class Memory:
    """What lies on the device, in bytes, from `reset` on."""

    def __init__(self) -> None:
        self.counting, self.warm, self.held, self.peak = False, False, 0, 0
        self.users: dict[int, int] = {}  # of a storage: tensors that are alive

    def reset(self) -> None:
        self.counting, self.held, self.peak, self.users = True, 0, 0, {}

    def note(self, outer: Simulated) -> None:
        if self.counting:
            storage = outer.inner.untyped_storage()
            key, size = storage._cdata, -(-storage.nbytes() // PIECE) * PIECE
            if not self.users.get(key):
                self.held += size
                self.peak = max(self.peak, self.held)
            self.users[key] = self.users.get(key, 0) + 1
            weakref.finalize(outer, self.free, self.users, key, size).atexit = False

    def free(self, users: dict[int, int], key: int, size: int) -> None:
        users[key] -= 1
        if users is self.users and not users[key]:
            self.held -= size

    def product(self) -> None:
        if not self.warm:
            self.warm = True
            if self.counting:
                self.held += WORKSPACE
                self.peak = max(self.peak, self.held)

    def most(self) -> int:
        self.counting = False
        return self.peak


memory, stream = Memory(), torch.Generator("cpu")
chance = torch.Generator("cpu")  # of the order of additions, which no seed decides


class Rules(NamedTuple):
    """What the device makes of an operation."""

    carries: bool
    on_the_cpu: bool
    indexing: bool
    product: bool
    rounded: bool
    random: bool
    adding: tuple[int, int, int] | None
    instead: Callable[..., Any] | None


@functools.cache
def _rules(operation: Any) -> Rules:
    packet = operation.overloadpacket
    return Rules(
        packet in BETWEEN,
        packet in ON_THE_CPU,
        packet in INDEXING,
        packet in PRODUCTS,
        packet in ROUNDED,
        torch.Tag.nondeterministic_seeded in operation.tags,
        ADDING.get(packet),
        CELLS.get(packet),
    )


def _each(change: Callable[[Any], Any], tree: Any) -> Any:
    """The same tuples, lists and dicts, with `change` of everything in them."""
    if isinstance(tree, (tuple, list)):
        return type(tree)([_each(change, x) for x in tree])
    if isinstance(tree, dict):
        return {name: _each(change, x) for name, x in tree.items()}
    return change(tree)


def _run(operation: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The operation on the CPU's numbers; its results lie where they would lie with a GPU."""
    rules, device = _rules(operation), kwargs.get("device")
    outer: dict[int, Simulated] = {}
    strangers: list[Tensor] = []  # tensors of the CPU; a single number may come from anywhere

    def plain(x: Any) -> Any:
        if isinstance(x, Simulated):
            outer[id(x.inner)] = x
            return x.inner
        if isinstance(x, Tensor) and x.ndim > 0:
            strangers.append(x)
        return x

    plain_args, plain_kwargs = _each(plain, args), _each(plain, kwargs)
    there = torch.device(device).type == NAME if device is not None else bool(outer)
    if outer and strangers and not (rules.carries or rules.on_the_cpu):
        if rules.indexing and isinstance(args[0], Simulated):  # its index may lie on the CPU
            strangers = [x for x in args[2:] if isinstance(x, Tensor) and any(x is y for y in strangers)]
        if strangers:
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"{NAME}:0 and {strangers[0].device}! ({operation})"
            )
    if there and isinstance(generator := kwargs.get("generator"), torch.Generator):
        raise RuntimeError(
            f"Expected a '{NAME}' device type for generator but found '{generator.device.type}'"
        )
    if not there:
        return operation(*plain_args, **plain_kwargs)
    if device is not None:
        plain_kwargs["device"] = "cpu"
    if rules.product:
        memory.product()
    found = _compute(operation, rules, plain_args, plain_kwargs)

    def wrap(x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        if (same := outer.get(id(x))) is None:
            return Simulated(x)
        if same.shape != x.shape or same.stride() != x.stride():  # transpose_ and the like
            same.data = Simulated(x)
        return same

    if (
        operation.overloadpacket is aten._pack_padded_sequence
    ):  # how many tokens each step has, stays on the CPU
        return wrap(found[0]), found[1]
    return _each(wrap, found)


def _compute(operation: Any, rules: Rules, args: tuple, kwargs: dict[str, Any]) -> Any:
    if rules.random:
        before = torch.get_rng_state()
        torch.set_rng_state(stream.get_state())
        try:
            return operation(*args, **kwargs)
        finally:
            stream.set_state(torch.get_rng_state())
            torch.set_rng_state(before)
    if rules.instead is not None:
        return rules.instead(*args, **kwargs)
    if rules.adding is not None:
        args = _shuffled(args, *rules.adding)
    elif rules.rounded and kwargs.get("dtype") is None and kwargs.get("out") is None:
        floats: list[bool] = []

        def wide(x: Any) -> Any:
            if not isinstance(x, Tensor) or not x.is_floating_point():
                return x
            floats.append(x.dtype == torch.float32)
            return x.double()

        wide_args = _each(wide, args)
        if floats and all(floats):
            return _each(_narrow, operation(*wide_args, **_each(wide, kwargs)))
    return operation(*args, **kwargs)


def _narrow(x: Any) -> Any:
    return x.float() if isinstance(x, Tensor) and x.dtype == torch.float64 else x


def _shuffled(args: tuple, dim: int, index: int, source: int) -> list[Any]:
    """The same additions in another order: the same permutation of indices and of what is added, along the
    axis."""
    args = list(args)
    axis, added = args[dim], args[source]
    if isinstance(added, Tensor) and added.ndim and args[index].ndim:
        along = axis if args[index].ndim == added.ndim else 0
        order = torch.randperm(args[index].shape[along], generator=chance, device="cpu")
        if args[index].shape[along] == added.shape[axis]:
            args[index], args[source] = (
                args[index].index_select(along, order),
                added.index_select(axis, order),
            )
    return args


def _lstm_cell(from_input, from_hidden, cell, input_bias=None, hidden_bias=None):
    gates = from_input + from_hidden
    for bias in (input_bias, hidden_bias):
        gates = gates if bias is None else gates + bias
    i, f, g, o = gates.chunk(4, -1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    new = f * cell + i * g
    return o * new.tanh(), new, torch.cat([i, f, g, o], -1)


def _lstm_cell_backward(grad_hidden, grad_new, cell, new, workspace, has_bias):
    i, f, g, o = workspace.chunk(4, -1)
    squashed = new.tanh()
    grad_hidden = torch.zeros_like(new) if grad_hidden is None else grad_hidden
    grad = grad_hidden * o * (1 - squashed**2) + (0 if grad_new is None else grad_new)
    gates = [
        grad * g * i * (1 - i),
        grad * cell * f * (1 - f),
        grad * i * (1 - g**2),
        grad_hidden * squashed * o * (1 - o),
    ]
    gates = torch.cat(gates, -1)
    return gates, grad * f, gates.sum(0) if has_bias else None


def _gru_cell(from_input, from_hidden, hidden, input_bias=None, hidden_bias=None):
    if input_bias is not None:
        from_input, from_hidden = from_input + input_bias, from_hidden + hidden_bias
    (ri, zi, ni), (rh, zh, nh) = from_input.chunk(3, -1), from_hidden.chunk(3, -1)
    r, z = (ri + rh).sigmoid(), (zi + zh).sigmoid()
    n = (ni + r * nh).tanh()
    return n + z * (hidden - n), torch.cat([r, z, n, hidden, nh], -1)


def _gru_cell_backward(grad, workspace, has_bias):
    r, z, n, hidden, nh = workspace.chunk(5, -1)
    to_n = grad * (1 - z) * (1 - n**2)
    to_z, to_r = grad * (hidden - n) * z * (1 - z), to_n * nh * r * (1 - r)
    inputs, states = torch.cat([to_r, to_z, to_n], -1), torch.cat([to_r, to_z, to_n * r], -1)
    biases = (inputs.sum(0), states.sum(0)) if has_bias else (None, None)
    return inputs, states, grad * z, *biases


# torch's loops call these on every device but the CPU, which has none of them.
CELLS = {
    aten._thnn_fused_lstm_cell: _lstm_cell,
    aten._thnn_fused_lstm_cell_backward_impl: _lstm_cell_backward,
    aten._thnn_fused_gru_cell: _gru_cell,
    aten._thnn_fused_gru_cell_backward: _gru_cell_backward,
}

_torchs_attention = F.scaled_dot_product_attention


def _attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    """torch's attention, by a fused kernel where a GPU would take one: without a table in memory."""
    fused = (
        isinstance(query, Simulated)
        and query.ndim == key.ndim == value.ndim == 4
        and query.shape[:2] == key.shape[:2] == value.shape[:2]
        and query.shape[-1] == value.shape[-1]
        and query.numel() * key.numel() > 0
        and query.stride(-1) == key.stride(-1) == value.stride(-1) == 1
        and dropout_p == 0
        and not enable_gqa
        and (attn_mask is None or (attn_mask.ndim in (2, 4) and not attn_mask.requires_grad))
    )
    if not fused:
        return _torchs_attention(
            query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
        )
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = torch.zeros_like(attn_mask, dtype=query.dtype).masked_fill(~attn_mask, -torch.inf)
    kernel = aten._scaled_dot_product_flash_attention_for_cpu
    return kernel(query, key, value, 0.0, is_causal, attn_mask=attn_mask, scale=scale)[0]


class _Module(backend_registration._DummyBackendModule):
    """torch.simulated: what torch asks of a device's module."""

    def manual_seed_all(self, seed: int) -> None:
        stream.manual_seed(seed ^ 0x5EED)

    manual_seed = manual_seed_all

    def _is_in_bad_fork(self) -> bool:
        return False

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.float16, torch.bfloat16]

    def get_rng_state(self, device: Any = None) -> Tensor:
        return stream.get_state()

    def set_rng_state(self, state: Tensor, device: Any = None) -> None:
        stream.set_state(state)

    def get_rng_state_all(self) -> list[Tensor]:
        return [stream.get_state()]

    def set_rng_state_all(self, states: list[Tensor]) -> None:
        stream.set_state(states[0])


def install() -> None:
    """From now on there is the device, for this process and its threads, and the lessons compute on it. Once
    is enough; it stays."""
    from lesson_lib import device
    from lesson_lib.checks import runner

    os.environ["LESSON_DEVICE"] = NAME
    if NAME in device.KNOWN:
        return
    device.KNOWN = (*device.KNOWN, NAME)
    # a line of this file is no learner's
    runner.LIBRARY_FOLDERS += (os.path.join(os.path.dirname(__file__), ""),)
    backend_registration._setup_privateuseone_for_python_backend(NAME, backend_module=_Module())
    torch._C._set_only_lift_cpu_tensors(True)  # torch.tensor makes its numbers on the CPU, then moves them
    F.scaled_dot_product_attention = _attention
    for name, does in {
        "synchronize": lambda device=None: None,
        "memory_allocated": lambda device=None: memory.held if memory.counting else 0,
        "reset_peak_memory_stats": lambda device=None: memory.reset(),
        "max_memory_allocated": lambda device=None: memory.most(),
    }.items():
        setattr(torch.accelerator, name, does)
    begin = threading.Thread.run

    def run(self: threading.Thread) -> None:
        torch.autograd.set_multithreading_enabled(False)
        with Mode():
            begin(self)

    threading.Thread.run = run
    # An exception on its way through autograd ends the process here, and checkpoints stop their second pass
    # by one.
    checkpoint._enable_checkpoint_early_stop = False
    # gradients are computed by the thread that asks for them
    torch.autograd.set_multithreading_enabled(False)
    Mode().__enter__()
