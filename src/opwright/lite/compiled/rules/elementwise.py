"""Element by element: what the rules of maps share, and the operators of one tensor.

Lives here: the rules of ABS to ZEROS_LIKE, LOGICAL_NOT; `plain`, `quantized`, `mapped`, `tabulated`.
Not here: CAST (casting.py), operators of several tensors (arithmetic.py, comparison.py), activations (activations.py),
between reals and integers (quantizing.py).

A function of one quantised tensor is a table: what the operator's own integer rule gives for each of its 256 or 65536
integers. So it is exact, and a look-up.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....compiler.kernels.expression import DTYPES
from ....compiler.loops.expressions import Expr, apply, arg, const, convert, lookup
from ....compiler.loops.forms import Buffer, Checked, Map
from ....core.dtypes import DType, bfloat16, float16, float32, int8, int16, uint8
from ....core.dtypes import bool as bool_
from ....core.errors import OpError
from ....scalar.table import ACTIVATIONS, OF_BUILTIN
from ...ops.definition import LiteOperator
from ...quantized_registration import is_quantized, kernel_of, rule_of, run_quantized
from ...registration import OperatorRegistration
from ...written import group
from ..nodes import At, Operand, Refused
from .registry import rule

UNARY = tuple(builtin for builtin, row in OF_BUILTIN.items() if row.arity == 1 and row not in ACTIVATIONS)
"""Those of the table that are no activations."""

POSITIVE = ("SQRT", "RSQRT")
"""Whose integer rules refuse integers below the zero point."""


def registered(at: At) -> OperatorRegistration:
    """What serves the node with the interpreter. Raises Refused where that is not the builtin operator."""
    found = at.node.registration
    if not isinstance(found, OperatorRegistration) or not isinstance(found.operator, LiteOperator):
        raise Refused("it has a kernel of its own")
    return found


def quantized(at: At) -> bool:
    """Whether integers of the node stand for real numbers, and it does not take them as any others."""
    operator: Any = registered(at).operator
    return is_quantized(operator, at.node) and not operator.moves


def plain(at: At, *operands: Operand) -> DType:
    """The type of operands that are taken as they are. Raises Refused where the operator does not declare it."""
    declared = registered(at).operator.inputs
    for place, o in enumerate(operands):
        slot = declared[min(place, len(declared) - 1)]
        if o.dtype not in slot.dtypes or o.dtype not in DTYPES:
            raise Refused(f"elements of type {o.dtype.name}")
    return operands[-1].dtype


def alike(*operands: Operand) -> None:
    """Raises Refused for operands of several types."""
    if len({o.dtype for o in operands}) > 1:
        raise Refused("types " + ", ".join(o.dtype.name for o in operands))


def broadcast(*operands: Operand) -> tuple[int, ...]:
    """The shape of all together. Raises Refused where they do not fit."""
    try:
        return np.broadcast_shapes(*(o.shape for o in operands))
    except ValueError:
        raise Refused(f"{', '.join(map(repr, operands))} do not broadcast") from None


def mapped(at: At, y: Operand, expr: Expr, *operands: Operand) -> None:
    """The map that writes y. Raises Refused where the file gives y another type."""
    if y.dtype is not expr.dtype:
        raise Refused(f"the output is {y.dtype.name}, {expr.dtype.name} follows from the inputs")
    at.form(Map, y.buffer, tuple(o.buffer for o in operands), expr)


# ---- tables --------------------------------------------------------------------------------------------------------

_tables: OrderedDict[Any, np.ndarray] = OrderedDict()
_KEPT = 512  # tables of bytes that models have in common, or one model after the other


def integer_kernel(at: At) -> Any:
    """The operator's own kernel on the integers of the node. Raises Refused for what it refuses."""
    node, registration = at.node, registered(at)
    try:
        path = rule_of(registration.operator, node)
        return kernel_of(registration.operator, path, registration._call(node), node, group)
    except OpError as error:
        raise Refused(error.message) from None


def _parameters(o: Operand) -> tuple[Any, ...]:
    return o.dtype, o.scales.tobytes() if o.is_quantized else b"", o.zero if o.is_quantized else 0


def tabulated(at: At, x: Operand, y: Operand) -> None:
    """A function of one quantised tensor. Raises Refused for what its integer rule refuses; what that refuses as it
    runs is a guard."""
    if x.dtype not in (int8, uint8, int16) or y.dtype not in DTYPES:
        raise Refused(f"elements of type {x.dtype.name}")
    source, least = x.buffer, int(x.dtype.min)
    if at.node.name in POSITIVE and x.zero != least:
        source, least = at.new(x.dtype, x.shape, ".checked"), x.zero
        at.form(Checked, source, x.buffer, "below", least)
    key = (at.node.name, repr(registered(at)._call(at.node).attrs), _parameters(x), _parameters(y))
    found = _tables.get(key)
    if found is None:
        kernel = integer_kernel(at)
        every = np.arange(1 << (8 * x.dtype.size), dtype=f"u{x.dtype.size}").view(x.dtype.np)
        found = np.empty(every.shape, y.dtype.np)
        with np.errstate(all="ignore"):
            run_quantized(kernel, [np.maximum(every, every.dtype.type(least))], [found], at.node.name)
        found.flags.writeable = False
        if found.size == 256:
            _tables[key] = found
        if len(_tables) > _KEPT:
            _tables.popitem(last=False)
    table = Buffer(f"{y.buffer.name}.table", y.dtype, found.shape, found)
    at.form(Map, y.buffer, (source, table), lookup(arg(0, x.dtype), arg(1, y.dtype)))


# ---- operators of one tensor ---------------------------------------------------------------------------------------


def unary(at: At, expr_of: Any) -> None:
    """y = expr_of(x), of quantised tensors by the operator's integer rule."""
    x = at.operand(0)
    y = at.output(x.shape)
    if quantized(at):
        tabulated(at, x, y)
        return
    dtype = plain(at, x)
    mapped(at, y, expr_of(arg(0, dtype)), x)


@rule(*UNARY)
def function(at: At) -> None:
    unary(at, lambda x: apply(OF_BUILTIN[at.node.name].name, x))


@rule("ZEROS_LIKE")
def zeros_like(at: At) -> None:
    x = at.operand(0)
    y = at.output(x.shape)
    mapped(at, y, const(0, plain(at, x)))


def as_type(x: Expr, dtype: DType) -> Expr:
    """x as another type; NaN as an integer is the greatest."""
    found = convert(x, dtype)
    if not x.dtype.is_floating or dtype.is_floating or dtype.is_bool:
        return found
    wide = convert(x, float32) if x.dtype in (float16, bfloat16) else x
    known = Expr("equal", bool_, (wide, wide))
    return Expr("select", dtype, (known, found, const(int(dtype.max), dtype)))


def truth(op: str, *args: Expr) -> Expr:
    """A comparison."""
    return Expr(op, bool_, args)


def every(operands: Sequence[Operand]) -> list[Expr]:
    """The operands as arguments in their order."""
    return [arg(i, o.dtype) for i, o in enumerate(operands)]
