"""Python's operators on tensors: the operator of each.

Lives here: the table, and its installation on `TensorLike`.  Not here: the operators.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import InvalidArgumentError, SignatureError
from . import array, dispatch, linalg, math
from .tensor import TensorLike

if TYPE_CHECKING:
    from .tensor import Tensor


def _matmul(x: Any, y: Any) -> Tensor:
    return linalg.matmul(x, y)


def _bitwise_or_logical(bitwise: str, logical: Callable[..., Any]) -> Callable[..., Any]:
    def apply(x: Any, y: Any) -> object:
        first = x if isinstance(x, TensorLike) else y
        if first.dtype.is_bool:
            return logical(x, y)
        from . import bitwise as ops

        return getattr(ops, bitwise)(x, y)

    return apply


def _invert(x: Any) -> Tensor:
    if x.dtype.is_bool:
        return math.logical_not(x)
    from . import bitwise

    return bitwise.invert(x)


BINARY: dict[str, Callable[..., Any]] = {
    "add": math.add,
    "sub": math.subtract,
    "mul": math.multiply,
    "truediv": math.divide,
    "floordiv": math.floordiv,
    "mod": math.floormod,
    "pow": math.pow,
    "matmul": _matmul,
    "and": _bitwise_or_logical("bitwise_and", math.logical_and),
    "or": _bitwise_or_logical("bitwise_or", math.logical_or),
    "xor": _bitwise_or_logical("bitwise_xor", math.logical_xor),
}
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "lt": math.less,
    "le": math.less_equal,
    "gt": math.greater,
    "ge": math.greater_equal,
}
UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": math.negative,
    "abs": math.abs,
    "invert": _invert,
    "pos": array.identity,
}


def _forward(function: Callable[[Any, Any], Any], reflected: str) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> object:
        try:
            return function(self, other)
        except (TypeError, ValueError):
            if (
                not isinstance(other, TensorLike)
                and hasattr(type(other), reflected)
                and not hasattr(other, "dtype")
                and not isinstance(other, (bool, int, float, complex, str, bytes, list, tuple))
            ):
                return NotImplemented  # the other object may implement it
            raise

    return method


def _backward(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> object:
        if isinstance(other, (np.ndarray, np.generic)):  # on either side it takes the tensor's dtype
            other = dispatch.to_tensor(other, self.dtype)
        return function(other, self)

    return method


def _equality(function: Callable[[Any, Any], Any], when_incomparable: bool) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> object:
        if other is None:
            return when_incomparable
        try:
            return function(self, other)
        except SignatureError:
            raise  # another dtype: False would hide the mistake
        except InvalidArgumentError:
            return dispatch.to_tensor(when_incomparable)  # shapes that do not broadcast

    return method


NAMED = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")  # a node made by x + y is named add, by add Add


def install_named(cls: type[TensorLike]) -> None:
    """Name the nodes of Python's arithmetic after its operators, as TensorFlow does, for a class of tensors."""
    for name in NAMED:
        function = functools.partial(BINARY[name], name=name)
        setattr(cls, f"__{name}__", _forward(function, f"__r{name}__"))
        setattr(cls, f"__r{name}__", _backward(function))


def _install() -> None:
    for name, function in BINARY.items():
        setattr(TensorLike, f"__{name}__", _forward(function, f"__r{name}__"))
        setattr(TensorLike, f"__r{name}__", _backward(function))
    for name, function in COMPARISONS.items():
        setattr(TensorLike, f"__{name}__", lambda self, other, f=function: f(self, other))
    for name, unary in UNARY.items():
        setattr(TensorLike, f"__{name}__", lambda self, f=unary: f(self))
    TensorLike.__eq__ = _equality(math.equal, False)  # type: ignore[method-assign]
    TensorLike.__ne__ = _equality(math.not_equal, True)  # type: ignore[method-assign]
    TensorLike.__getitem__ = array.getitem  # type: ignore[method-assign]


_install()
