"""Arithmetic of exported programs on sizes: Python's operators on numbers, or on tensors of open sizes.

Not here: functions of tensors (elementwise.py).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ....core.dtypes import as_dtype
from ....ops import array, math
from ....ops.tensor import TensorLike
from .table import AtenCall, aten, tensor

NUMBERS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "truediv": operator.truediv,
    "mod": operator.mod,
    "pow": operator.pow,
    "neg": operator.neg,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "and_": operator.and_,
    "or_": operator.or_,
    "sym_not": operator.not_,
    "sym_max": max,
    "sym_min": min,
    "sym_float": float,
    "sym_int": int,
    "sym_sum": sum,
}
ON_TENSORS: dict[str, Callable[..., Any]] = {
    "eq": math.equal,
    "ne": math.not_equal,
    "sym_not": math.logical_not,
    "sym_max": math.maximum,
    "sym_min": math.minimum,
    "sym_float": lambda x: array.cast(x, as_dtype("float32")),
    "sym_int": lambda x: array.cast(x, as_dtype("int64")),
    "sym_sum": lambda xs: sum(xs[1:], start=xs[0]),
    "truediv": lambda x, y: array.cast(x, as_dtype("float32")) / array.cast(y, as_dtype("float32")),
}


def _number(name: str, function: Callable[..., Any]) -> None:
    def rule(op: AtenCall, *args: Any) -> Any:
        if not any(
            isinstance(a, TensorLike) for arg in args for a in (arg if isinstance(arg, (list, tuple)) else (arg,))
        ):
            return function(*args)
        if name == "sym_sum":
            return ON_TENSORS[name]([tensor(a, as_dtype("int64")) for a in args[0]])
        like = next(a for a in args if isinstance(a, TensorLike)).dtype
        return ON_TENSORS.get(name, function)(*(tensor(a, like) for a in args))

    aten(f"operator::{name}")(rule)


for _name, _function in NUMBERS.items():
    _number(_name, _function)
