"""Rows of the operators' test tables: what one is made of.

Lives here: `case` and `bad`, the input generators, what a table's keys mean.
Not here: the rows (cases_*.py, a file a family), the checks on them (checks.py), their collection (test_operators.py).

    CASES = {"Atan": [case(f64(2, 3), expect=np.arctan), bad(i32(2), says="dtype")],
             "math.reduce_std": [case(f64(2, 3), axis=0, expect=lambda x: x.std(0))]}

A key is an operator's name or a public function's, dotted or not. Each check says by `applies` which rows it is for,
so what a row does not declare is not collected, rather than skipped.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

import opwright.ops
from opwright.ops import registry


@functools.cache
def _families() -> list[str]:
    return [f"opwright.ops.{m.name}" for m in pkgutil.iter_modules(opwright.ops.__path__)]


@functools.cache
def resolve(key: str) -> Callable[..., Any]:
    """The operator or public function that a table's key names. Raises LookupError."""
    if key in registry.list_names():
        return registry.get(key)
    for home in ("opwright", "opwright.ops", *_families()):
        try:
            return functools.reduce(getattr, key.split("."), importlib.import_module(home))
        except (AttributeError, ModuleNotFoundError):
            pass
    try:
        return registry.get(key)
    except KeyError as error:
        raise LookupError(f"no operator or public function is named {key!r}") from error


def operator_of(key: str) -> Any:
    """The operator that a key is about, if it is about one: itself, or the one a public function was made of."""
    from opwright.ops.definition import Operator

    result = resolve(key)
    return result if isinstance(result, Operator) else getattr(result, "operator", None)


# ---- rows ---------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Case:
    """One row. See `case` and `bad`."""

    inputs: tuple[Any, ...]
    attrs: dict[str, Any]
    expect: Any = None
    says_nothing: str = ""
    holds: Callable[..., Any] | None = None
    gives: Any = None
    grad: Any = None
    rtol: float | None = None
    atol: float | None = None
    call: Callable[..., Any] | None = None
    half: bool | None = None
    trace: bool = True
    unknown: bool = True
    widen: bool = True
    static: tuple[int, ...] = ()
    raises: Any = None
    says: tuple[str, ...] = ()
    key: str = field(default="", init=False)
    number: int = field(default=0, init=False)  # among the rows of its key

    def function(self) -> Callable[..., Any]:
        """Return the function that the row calls."""
        return self.call or resolve(self.key)

    def run(self, inputs: Sequence[Any] | None = None) -> Any:
        """The result on the row's inputs, or on others of the same structure."""
        return self.function()(*(as_tensors(self.inputs if inputs is None else inputs)), **self.attrs)


def case(
    *inputs: Any,
    expect: Any = None,
    says_nothing: str = "",
    holds: Callable[..., Any] | None = None,
    gives: Any = None,
    grad: Any = None,
    rtol: float | None = None,
    atol: float | None = None,
    call: Callable[..., Any] | None = None,
    half: bool | None = None,
    trace: bool = True,
    unknown: bool = True,
    widen: bool = True,
    static: Sequence[int] = (),
    **attrs: Any,
) -> Case:
    """A call that works.

    inputs: arrays; lists of arrays for a repeated input; None for an absent one; anything else is passed as it is.
    expect: an independent oracle, called with the inputs (floating ones as float64 unless widen=False), or the result.
    holds: instead, called with the result's arrays and then the inputs; raises AssertionError or gives False.
    says_nothing: instead, why there is no oracle. gives: the output's dtype, or a list of them.
    grad: whether gradients are compared with differences: True, False, the input positions to compare; by default
    True for an operator with a gradient, and for a function whatever its operators have. call: what is called
    instead of the key's own operator or function. half: whether float16 and bfloat16 variants run (default: where
    declared). trace: whether it works inside `function`; unknown: with unknown dimensions too. static: positions of
    inputs that are constants, not arguments, when traced.
    """
    if expect is None and holds is None and not says_nothing:
        raise TypeError("a case needs expect=, holds=, or says_nothing='the reason why it has neither'")
    return Case(
        inputs,
        attrs,
        expect,
        says_nothing,
        holds,
        gives,
        grad,
        rtol,
        atol,
        call,
        half,
        trace,
        unknown,
        widen,
        tuple(static),
    )


def bad(
    *inputs: Any, says: str | Sequence[str], raises: Any = None, call: Callable[..., Any] | None = None, **attrs: Any
) -> Case:
    """A call that must fail, with class `raises` (InvalidArgumentError), the operator's name and the words `says`."""
    from opwright.core.errors import InvalidArgumentError

    words = (says,) if isinstance(says, str) else tuple(says)
    return Case(inputs, attrs, raises=raises or InvalidArgumentError, says=words, call=call)


def as_tensors(inputs: Sequence[Any]) -> list[Any]:
    """Arrays as tensors, inside lists too; everything else as it is."""
    from opwright.ops import dispatch

    def one(value: Any) -> Any:
        if isinstance(value, (np.ndarray, np.generic)):
            return dispatch.to_tensor(value)
        if isinstance(value, (list, tuple)) and any(isinstance(v, (np.ndarray, np.generic)) for v in value):
            return type(value)(map(one, value))
        return value

    return list(map(one, inputs))


# ---- inputs -------------------------------------------------------------------------------------------------------

_made: dict[Any, int] = {}


def _random(kind: str, shape: tuple[int, ...]) -> np.random.Generator:
    """Seeded by who asks, for what, for the how manieth time: a row's numbers stay when other files change."""
    frame = sys._getframe(2)
    key = (frame.f_globals.get("__name__", ""), kind, shape)
    _made[key] = count = _made.get(key, -1) + 1
    return np.random.default_rng(zlib.crc32(repr((key, count)).encode()))


def _spread(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers in [-2, 2], shuffled, none equal or nearly so, none near zero."""
    n = int(np.prod(shape))
    step = 4.0 / max(n, 1)
    values = -2.0 + step * (np.arange(n) + rng.uniform(0.3, 0.7, n))
    values[np.abs(values) < 0.05 * step] += 0.1 * step
    return rng.permutation(values).reshape(shape)


def f64(*shape: int) -> np.ndarray:
    """float64 in [-2, 2], without ties"""
    return _spread(_random("f64", shape), shape)


def f32(*shape: int) -> np.ndarray:
    """float32 in [-2, 2], without ties"""
    return _spread(_random("f32", shape), shape).astype(np.float32)


def f16(*shape: int) -> np.ndarray:
    """float16 in [-2, 2]"""
    return _spread(_random("f16", shape), shape).astype(np.float16)


def bf16(*shape: int) -> np.ndarray:
    """bfloat16 in [-2, 2]"""
    return _spread(_random("bf16", shape), shape).astype(ml_dtypes.bfloat16)


def c64(*shape: int) -> np.ndarray:
    """complex64, both parts in [-2, 2]"""
    rng = _random("c64", shape)
    return np.asarray(_spread(rng, shape) + 1j * _spread(rng, shape)).astype(np.complex64)


def c128(*shape: int) -> np.ndarray:
    """complex128, both parts in [-2, 2]"""
    rng = _random("c128", shape)
    return np.asarray(_spread(rng, shape) + 1j * _spread(rng, shape))


def _integers(kind: str, dtype: Any, lowest: int, highest: int) -> Callable[..., np.ndarray]:
    def generate(*shape: int, low: int | None = None, high: int | None = None) -> np.ndarray:
        rng, n = _random(kind, shape), int(np.prod(shape))
        if low is not None or high is not None:
            return np.asarray(rng.integers(low or 0, 9 if high is None else high, shape)).astype(dtype)
        centre = n // 2 if lowest < 0 else 0
        values = np.clip(np.arange(n) - centre, lowest, highest)
        return rng.permutation(values).reshape(shape).astype(dtype)

    generate.__name__ = kind
    start = "around" if lowest < 0 else "from"
    generate.__doc__ = f"{np.dtype(dtype).name}: the integers {start} zero, shuffled; or random ones in [low, high)"
    return generate


i4 = _integers("i4", ml_dtypes.int4, -8, 7)
i8 = _integers("i8", np.int8, -128, 127)
i16 = _integers("i16", np.int16, -(2**15), 2**15 - 1)
i32 = _integers("i32", np.int32, -(2**31), 2**31 - 1)
i64 = _integers("i64", np.int64, -(2**62), 2**62)
u8 = _integers("u8", np.uint8, 0, 255)
u16 = _integers("u16", np.uint16, 0, 2**16 - 1)
u32 = _integers("u32", np.uint32, 0, 2**32 - 1)
u64 = _integers("u64", np.uint64, 0, 2**62)


def bools(*shape: int) -> np.ndarray:
    """bool, both values where there is room"""
    rng, n = _random("bools", shape), int(np.prod(shape))
    return rng.permutation(np.arange(n) % 2 == 0).reshape(shape)


def strings(*shape: int) -> np.ndarray:
    """bytes of 0 to 8 letters"""
    rng, n = _random("strings", shape), int(np.prod(shape))
    array = np.empty(n, object)
    array[:] = [bytes(rng.integers(97, 123, rng.integers(0, 9)).tolist()) for _ in range(n)]
    return array.reshape(shape)


def pos(x: np.ndarray) -> np.ndarray:
    """what a generator made, moved to be positive: [-2, 2] to [0.1, 2.1], integers to 1 and up"""
    if x.dtype.kind in "iu":
        return (x - x.min() + 1).astype(x.dtype) if x.size else x
    return np.asarray(x * x.dtype.type(0.5) + x.dtype.type(1.1)).astype(x.dtype)


def unit(x: np.ndarray) -> np.ndarray:
    """what a generator made, shrunk to (-0.9, 0.9)"""
    return np.asarray(x * x.dtype.type(0.45)).astype(x.dtype)
