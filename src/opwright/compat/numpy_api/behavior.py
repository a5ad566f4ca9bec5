"""NumPy's methods and operators of tensors, after `ow.experimental.numpy.experimental_enable_numpy_behavior()`.

Lives here: what that call changes.  Not here: the functions (elements.py, arrays.py, reductions.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...ops import array as ops
from ...ops.tensor import Tensor, TensorLike
from . import arrays, dtypes, reductions
from .elements import FUNCTIONS

_BINARY = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "true_divide",
    "floordiv": "floor_divide",
    "mod": "mod",
    "pow": "power",
    "matmul": "matmul",
}
_METHODS = (
    "ravel",
    "clip",
    "max",
    "min",
    "mean",
    "sum",
    "prod",
    "std",
    "var",
    "any",
    "all",
    "argmax",
    "argmin",
    "repeat",
)


def _function(name: str) -> Callable[..., Any]:
    """Return one of the functions by name."""
    homes = (FUNCTIONS, vars(arrays), vars(reductions))
    return next(home[name] for home in homes if name in home)


def _promoting(name: str, original: Callable[..., Any], reflected: bool) -> Callable[..., Any]:
    """Return an operator that promotes operands of two dtypes."""
    function = FUNCTIONS[name]

    def operator(x: Any, y: Any) -> Any:
        if isinstance(y, TensorLike) and y.dtype is x.dtype:
            return original(x, y)
        try:
            return function(y, x) if reflected else function(x, y)
        except TypeError:
            return NotImplemented

    return operator


def _reshape(x: Any, *shape: Any, order: str = "C") -> Any:
    sizes = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
    return FUNCTIONS["reshape"](x, sizes)


def _transpose(x: Any, *axes: Any) -> Any:
    order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
    return FUNCTIONS["transpose"](x, order or None)


def _indexing(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return `__getitem__` that takes lists and arrays of positions, too."""

    def getitem(x: Any, key: Any) -> Any:
        if isinstance(key, (list, np.ndarray)) or (isinstance(key, TensorLike) and key.shape.rank):
            places = dtypes.to_tensor(key)
            return ops.boolean_mask(x, places) if places.dtype.is_bool else arrays.take(x, places, axis=0)
        return original(x, key)

    return getitem


def experimental_enable_numpy_behavior(prefer_float32: bool = False, dtype_conversion_mode: str = "legacy") -> None:
    """Give tensors NumPy's methods (`T`, `reshape`, `astype`, `sum` ...), and operators that promote dtypes.

    prefer_float32: whether numbers without a dtype are int32 and float32. dtype_conversion_mode: "legacy", NumPy's.
    raises ValueError for another mode
    """
    if dtype_conversion_mode != "legacy":
        raise ValueError(f'dtype_conversion_mode is "legacy", NumPy\'s rules; found {dtype_conversion_mode!r}')
    dtypes.preferences.float32 = prefer_float32
    if hasattr(Tensor, "T"):
        return
    for method in _METHODS:
        setattr(Tensor, method, _function(method))
    Tensor.reshape, Tensor.transpose = _reshape, _transpose  # type: ignore[attr-defined]
    Tensor.flatten, Tensor.astype = arrays.flatten, arrays.array  # type: ignore[attr-defined]
    Tensor.T = property(FUNCTIONS["transpose"])  # type: ignore[attr-defined]
    Tensor.size = property(arrays.size)  # type: ignore[attr-defined]
    Tensor.data = property(lambda x: x)  # type: ignore[attr-defined]
    Tensor.tolist = lambda x: x.numpy().tolist()  # type: ignore[attr-defined]
    classes: tuple[Any, ...] = (TensorLike, Tensor, *Tensor.__subclasses__())
    for cls in classes:
        if "__getitem__" in vars(cls):
            cls.__getitem__ = _indexing(vars(cls)["__getitem__"])
        for stem, name in _BINARY.items():
            for prefix in ("", "r"):
                special = f"__{prefix}{stem}__"
                if special in vars(cls):
                    setattr(cls, special, _promoting(name, vars(cls)[special], prefix == "r"))
