"""Functions of the scalar table and operators of the catalogue on values of a kernel.

Lives here: `evaluate`, which computes a row of scalar/table.py, `function_of`, the table LOWER (operator name ->
rule(trace, call, values...) -> value), `KernelTrace`, which lowers the operators that a kernel calls.
Not here: kernels on elements (element_trace.py), formulas and mathematical functions (scalar/), the functions that they
use (functions.py), control flow (branches.py), and the operators that values leave to the catalogue, `**` and `@`
(entry_points.py installs them for kernels of users: their modules take 60 ms to import).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from ...core.dtypes import DType, float32, float64
from ...core.errors import UnimplementedError
from ...ops.arguments import natural_dtype, tensors
from ...ops.tensor import Tensor
from ...scalar.table import FUNCTIONS, OF_OPERATOR, ScalarFunction, chosen
from ..native.image import address_of
from . import functions
from .functions import KernelNamespace, map_lanes
from .llvm_types import ELEMENT_DTYPES, F64, number
from .trace import Staging, current
from .values import Value, alike

FLAGGED = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
"""Functions of floats whose instruction takes the flags of `fast_math` (trace.FAST)."""

Rule = Callable[..., Value]


def apply(code: Callable[..., Any], *xs: Any) -> Value:
    """Apply a function of scalar/numerics, `code(m, *values)`, to values of one dtype."""
    staged, operands = current(), alike(*xs)
    before = staged.values
    result: Value = code(functions.FUNCTIONS, *operands)
    staged.values = before + 1  # MAX_VALUES limits the values of the kernel's own code
    return result


def evaluate(row: ScalarFunction, *xs: Any, accuracy: str = "exact", libm: bool = False) -> Value:
    """Compute a row of the table on values of one dtype; its last operands may be Python numbers.

    Uses the row's vector code for floats at this accuracy ("double" for float64); the C library if `libm` allows it and
    there is no such code; otherwise, and for integers, the formula. Raises TypeError for floats without code.
    """
    like = xs[-1] if row.name == "select" else xs[0]
    dtype = like.dtype
    code = row.numerics(accuracy) if dtype.is_floating else None
    if code is not None and (dtype is float32 or row.takes_float64 or accuracy == "double"):
        return apply(code, *xs)
    if libm and row.libm and dtype is float64:
        return _libm(row, *alike(*xs))
    if code is not None and not libm:
        raise TypeError(f"{row.name} is defined for float32, found {dtype.name}")
    namespace: Any = KernelNamespace(lambda name: _row_function(name, accuracy, libm))
    result: Value = row.code(namespace, *xs)
    return result


def _row_function(name: str, accuracy: str, libm: bool) -> Callable[..., Value] | None:
    row = FUNCTIONS.get(name)
    return None if row is None else lambda *xs: evaluate(row, *xs, accuracy=accuracy, libm=libm)


def _libm(row: ScalarFunction, *xs: Value) -> Value:
    """Call a function of the C library on float64, one element at a time."""
    symbol, b = row.libm, current().builder
    if address_of(symbol) is None:
        raise UnimplementedError(op=row.name, what=f"the C library has no {symbol}")
    function = b.module.globals.get(symbol) or ir.Function(b.module, ir.FunctionType(F64, [F64] * len(xs)), symbol)
    function.attributes.add("readnone")
    return map_lanes(lambda *each: b.call(function, each), float64, *xs)


def function_of(row: ScalarFunction) -> Callable[..., Value]:
    """Return a row of the table as a function of the language: exact code for floats, else the formula."""

    def compute(*xs: Any) -> Value:
        return evaluate(row, *alike(*xs))

    compute.__name__ = compute.__qualname__ = row.name
    compute.__doc__ = f"{row.name}, of float32 within {row.exact_ulps:g} unit in the last place (scalar/table.py)."
    return compute


def _of_row(row: ScalarFunction) -> Rule:
    def lower(trace: KernelTrace, op: Any, *xs: Value) -> Value:
        def attribute(name: str) -> Any:
            return getattr(op, name)

        function = chosen(row, attribute)
        operands = (*xs, *map(attribute, row.attributes))
        if function.name in FLAGGED and xs[0].dtype.is_floating:
            x, y = alike(*operands)
            instruction = getattr(trace.builder, FLAGGED[function.name])
            return Value(instruction(x.x, y.x, flags=trace.arithmetic_flags), x.dtype)
        return evaluate(function, *operands, accuracy="relaxed" if trace.fast else "exact", libm=True)

    return lower


def _cast(trace: KernelTrace, op: Any, x: Value) -> Value:
    if op.dtype not in ELEMENT_DTYPES:
        raise UnimplementedError(op="Cast", what=f"a kernel has no scalars of dtype {op.dtype.name}")
    return x.to(op.dtype)


LOWER: dict[str, Rule] = {
    **{name: _of_row(row) for name, row in OF_OPERATOR.items()},
    "Cast": _cast,
    "Identity": lambda trace, op, x: x,
    "StopGradient": lambda trace, op, x: x,
    "Const": lambda trace, op: trace.number(op.value[()]),
}


class KernelTrace(Staging):
    """The staging of a kernel that may call operators, which become instructions."""

    count = 0
    """Lanes of constants made from Python numbers; 0 for scalars, which broadcast."""

    def record(self, op: Any, inputs: Sequence[Any], bound: Any, name: str | None) -> Value:
        """Lower one call. Raises UnimplementedError for operators that kernels do not have."""
        operands = tensors(op, inputs, self.to_tensor, name)
        if op.name not in LOWER:
            raise UnimplementedError(
                op=op.name,
                what="kernels have no such operator",
                wanted=f"one of {', '.join(sorted(LOWER))}",
                do="write it with these, or omit the kernel: the reference kernel then computes the operator",
            )
        op.check_dtypes([x.dtype for x in operands])
        result = self.lower(op, bound, operands)
        (spec,) = op.infer(bound, operands)
        return self.result(result, spec.dtype)

    def lower(self, op: Any, bound: Any, operands: Sequence[Any]) -> Value:
        """Lower an operator of the table on values of its dtypes."""
        return LOWER[op.name](self, bound, *operands)

    def result(self, value: Value, dtype: DType) -> Value:
        """Return the result of an operator call to the kernel's Python."""
        return Value(value.x, dtype)

    def to_tensor(self, value: Any, dtype: Any = None, name: str | None = None) -> Value:
        """Return a Python number as a value; return a value unchanged."""
        return value if isinstance(value, Value) else self.number(value, dtype)

    def number(self, value: Any, dtype: DType | None = None) -> Value:
        """Return a Python number as a value of `count` lanes. dtype: by default the natural one."""
        if isinstance(value, Tensor) or np.ndim(value) != 0:
            raise TypeError(f"a kernel works on scalars; found {value!r} in {self.name!r}")
        dtype = dtype or natural_dtype(value)
        if dtype not in ELEMENT_DTYPES:
            raise TypeError(f"a kernel has no scalars of dtype {dtype.name}")
        if isinstance(value, float) and not dtype.is_floating:
            raise TypeError(f"cannot use {value!r} as {dtype.name}")
        return Value(number(dtype, dtype.as_numpy_dtype(value), self.count), dtype)
