"""Values in words: how an answer is written down, compared, and what is wrong with it before its numbers are
read."""

import inspect
import math
import sys
from collections.abc import Iterable, Mapping
from itertools import islice
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import torch
from torch import Tensor

LIMIT = 36  # numbers of one tensor that are written out


def fixed(number: float | int) -> str:
    """The number at four decimals, never -0; very large and very small ones with an exponent.

    >>> fixed(-0.00001), fixed(1e30), fixed(float("nan"))
    ('0.0000', '1.0000e+30', 'nan')
    """
    number = float(number)
    if not math.isfinite(number):
        return str(number)
    if abs(number) >= 1e6:
        return f"{number:.4e}"
    return f"{round(number, 4) + 0.0:.4f}"


def numeral(number: float | int) -> str:
    """A whole number without decimals, any other at four.

    >>> numeral(64.0), numeral(0.5)
    ('64', '0.5000')
    """
    whole = math.isfinite(number) and float(number).is_integer() and abs(number) < 1e15
    return str(int(number)) if whole else fixed(number)


def is_a(value: Any, kinds: type | tuple[type, ...]) -> bool:
    """`isinstance` by the type alone: no method of the value is called, which might be anything."""
    return issubclass(type(value), kinds)


def kind(value: Any) -> str:
    """The name of the value's type, whatever its class makes of names."""
    return _class_name(type(value))


def own_name(value: Any) -> str | None:
    """The `__name__` of a function, or of an object that holds one; None where that takes a line of its
    own."""
    plain = FunctionType, BuiltinFunctionType, MethodType
    name = value.__name__ if type(value) in plain else inspect.getattr_static(value, "__name__", None)
    if is_a(value, type):
        name = _class_name(value)
    return name if type(name) is str else None


def count(value: Any) -> int:
    """How many numbers, characters or entries a value holds, read off without looking at them; 1 for any
    other. The tensors of a short tuple are counted together."""
    if is_a(value, Tensor):
        return ordinary(value).numel()
    if is_numpy(value):
        return math.prod(_shape(value) or ())
    for known in (str, bytes, bytearray, list, tuple, dict, set, frozenset):
        if is_a(value, known):
            inside = sum(ordinary(part).numel() for part in entries(value, 8) if is_a(part, Tensor))
            return known.__len__(value) + inside
    return 1


def entries(value: Any, most: int) -> list[Any]:
    """The first entries of a list or tuple; none of any other value."""
    for known in (list, tuple):
        if is_a(value, known):
            return list(islice(known.__iter__(value), most))
    return []


def ordinary(value: Any) -> Any:
    """A tensor without what a subclass of the learner's makes of it; any other value as it is."""
    if not is_a(value, Tensor) or type(value) is Tensor:
        return value
    if type(value).__torch_dispatch__ is not Tensor.__torch_dispatch__:
        return value  # a device or a mode of somebody else's
    with torch._C.DisableTorchFunctionSubclass():
        return Tensor.as_subclass(value, Tensor)


def written(value: Any) -> str:
    """The value as text, the same on every machine: no address, no device, at most `LIMIT` numbers."""
    if is_a(value, Tensor):
        return _tensor(ordinary(value))
    if type(value) is bool or value is None or value is ...:
        return {True: "True", False: "False", None: "None", ...: "..."}[value]
    if type(value) is float:
        return numeral(value)
    if type(value) is int:
        return str(value) if abs(value) < 10**15 else "an integer of more than 15 digits"
    if type(value) is str:
        text = " ".join(value[:1000].split())
        return f'"{text if len(text) <= 160 else text[:157] + "..."}"'
    return described(value)


def described(value: Any) -> str:
    """What kind of thing the value is, with its article: 'a numpy array of shape (2, 3)'."""
    if value is None or value is ...:
        return str({None: "None", ...: "..."}[value])
    if is_a(value, Tensor):
        shape = _shape(ordinary(value))
        return "a nested tensor" if shape is None else f"a tensor of shape {shape}"
    if is_numpy(value):
        shape = _shape(value)
        return f"a numpy array of shape {shape}" if shape else "a numpy number"
    if is_a(value, type):
        return f"the class {_class_name(value)}"
    name = kind(value)
    name = {"str": "string", "int": "integer", "function": "function", "dict": "dictionary"}.get(name, name)
    length = next((f" of {known.__len__(value)}" for known in (tuple, list) if is_a(value, known)), "")
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}{length}"


def is_numpy(value: Any) -> bool:
    """True for arrays and numbers of numpy; numpy is not imported for it."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and is_a(value, (numpy.ndarray, numpy.generic))


def plain(value: Tensor) -> Tensor:
    """The same numbers as an ordinary float64 tensor on the CPU, without gradient and subclass."""
    value = value.detach().as_subclass(Tensor).cpu().resolve_conj()
    return (torch.view_as_real(value) if value.is_complex() else value).double()


def copies(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with every tensor cloned, so that a call can do no harm."""
    return {name: x.detach().clone() if isinstance(x, Tensor) else x for name, x in arguments.items()}


def same(x: Tensor, y: Tensor) -> bool:
    """True where two tensors agree in shape, dtype and every bit of their numbers (nan equals nan)."""
    if x.shape != y.shape or x.dtype != y.dtype:
        return False
    return bool(
        torch.equal(x, y) or ((x.isnan() == y.isnan()).all() and torch.equal(x.nan_to_num(), y.nan_to_num()))
    )


def close(x: Tensor, y: Tensor, tolerance: float | int) -> bool:
    """True where two tensors have one shape and agree to `tolerance`, absolute and relative; nan agrees with
    nan."""
    if x.shape != y.shape:
        return False
    return bool(torch.allclose(plain(x), plain(y), rtol=tolerance, atol=tolerance, equal_nan=True))


def unfit(value: Any, expected: Tensor) -> str | None:
    """A sentence on why the value cannot be compared with the expected tensor; None where it can."""
    if value is None or value is ...:
        return f"your function gives back {described(value)}; is the `return` missing, or on the wrong line?"
    if is_numpy(value):
        return (
            f"your function gives back {described(value)}; the lesson works with torch tensors from end to"
            " end, since numpy keeps no gradients: use torch's operations (torch.exp, @, .sum) inside it"
        )
    if is_a(value, (tuple, list)):
        inside = ", ".join(described(part) for part in entries(value, 3))
        return f"your function gives back {described(value)}, with {inside} in it; give back one tensor alone"
    if not is_a(value, Tensor):
        return (
            f"your function gives back {described(value)}; a tensor of shape {tuple(expected.shape)} is"
            " asked for"
        )
    if value.is_nested:
        return "your function gives back a nested tensor; give back an ordinary one (.to_padded_tensor())"
    if value.layout != torch.strided:
        return "your function gives back a sparse tensor; give back an ordinary one (.to_dense())"
    if value.device != expected.device:
        return (
            f"your result is on the device {value.device.type}, the inputs are on {expected.device.type}; "
            "make new tensors where the inputs are (device=query.device), and move nothing"
        )
    if value.shape != expected.shape:
        turned = value.ndim >= 2 and value.shape == expected.mT.shape if expected.ndim >= 2 else False
        return f"your result has shape {tuple(value.shape)}, asked for is {tuple(expected.shape)}" + (
            "; these are the two last axes exchanged: which of them counts the queries?" if turned else ""
        )
    held, asked = numbers(value.dtype), numbers(expected.dtype)
    if held != asked:
        repair = "; .float() makes them so" if asked == "real numbers" and not value.is_complex() else ""
        return f"your result holds {held} ({value.dtype}), asked for are {asked}{repair}"
    return None


def numbers(dtype: torch.dtype) -> str:
    """What numbers of this type are, in words: int32 and int64 are of one kind."""
    if dtype == torch.bool:
        return "truth values"
    if dtype.is_complex:
        return "complex numbers"
    return "real numbers" if dtype.is_floating_point else "whole numbers"


def unreal(value: Tensor) -> str | None:
    """A sentence that says where a result holds nan or inf; None where every number is finite."""
    bad = ~plain(value).isfinite()
    if not bad.any():
        return None
    index = bad.nonzero()[0].tolist()
    what = "nan" if plain(value).isnan()[tuple(index)] else "inf"
    where = f" at {index}" if index else ""
    return (
        f"your result holds {what}{where}; nan comes from 0/0, inf - inf or 0 * inf, "
        "inf from the exponential of a large number"
    )


def first_difference(value: Tensor, expected: Tensor, tolerance: float | int) -> str:
    """Where two tensors of one shape differ first, with both numbers."""
    x, y = plain(value), plain(expected)
    wrong = ~torch.isclose(x, y, rtol=tolerance, atol=tolerance)
    if not wrong.any():
        return ""
    index = wrong.nonzero()[0].tolist()
    write = fixed if expected.is_floating_point() else str  # True, 3
    one, other = (write(t.detach()[tuple(index)].item()) for t in (value, expected))
    numbers = f"{one} where {other} is right"
    if not index:
        return numbers
    share = f"{int(wrong.sum())} of {wrong.numel()} numbers differ, the first at {index}: "
    return share + numbers


def _shape(value: Any) -> tuple[int, ...] | None:
    """The shape of a tensor or of an array of numpy; None where it has none."""
    try:
        return tuple(
            value.shape if is_a(value, Tensor) else sys.modules["numpy"].ndarray.shape.__get__(value)
        )
    except (RuntimeError, TypeError):  # nested tensors; single numbers of numpy
        return None


def _class_name(kind: type) -> str:
    return type.__dict__["__name__"].__get__(kind)[:60]


def _tensor(value: Tensor) -> str:
    if value.is_nested or value.is_quantized:
        return described(value)
    if value.layout != torch.strided or value.device.type == "meta" or value.is_complex():
        return f"a tensor of shape {tuple(value.shape)}, {value.dtype}"
    if value.numel() > LIMIT or value.ndim > 4:
        return f"tensor of shape {tuple(value.shape)}"
    return _nested(value.detach().as_subclass(Tensor).cpu().tolist(), 0)


def _short(number: float) -> str:
    """Four decimals or fewer: 0.7, 2.0, 26.6629."""
    text = fixed(number)
    return text.rstrip("0") + "0" * text.endswith(".0000") if "e" not in text and "." in text else text


def _nested(rows: Any, depth: int) -> str:
    if not isinstance(rows, list):
        return str(rows) if isinstance(rows, (bool, int)) else _short(rows)
    inside: Iterable[str] = (_nested(row, depth + 1) for row in rows)
    if not rows or not isinstance(rows[0], list):
        return "[" + ", ".join(inside) + "]"
    return "[" + (",\n" + " " * (depth + 1)).join(inside) + "]"
