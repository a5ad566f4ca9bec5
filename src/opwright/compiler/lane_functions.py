"""The array namespace on lanes: one instruction each or a few, under the names of scalar/numpy_namespace.py.

Lives here: these functions; scalar/numerics is written over this module.
Not here: lanes (lanes.py), what an operator becomes (lowering.py).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from ..core.dtypes import DType
from ..ops import dispatch
from .exponents import fraction, has_exponents, round_exponent, scale
from .lanes import I32, I64, KINDS, Lanes, is_number

_DTYPES = {kind: dtype for dtype, kind in KINDS.items()}


def type_of(x: Lanes) -> DType:
    """The dtype of lanes."""
    return _DTYPES[x.kind]


def full_like(x: Lanes, value: float, dtype: DType | None = None) -> Lanes:
    """As many lanes of a number; dtype: by default x's."""
    return x.full(value, KINDS[dtype] if dtype is not None else None)


def select(mask: Lanes, a: Any, c: Any) -> Lanes:
    """a where the mask holds, else c. At least one is lanes."""
    like = a if isinstance(a, Lanes) else c
    return Lanes(mask.b, mask.b.select(mask.x, like._operand(a), like._operand(c)))


def minimum(a: Any, c: Any, *, number: bool = False) -> Lanes:
    """The smaller; of floats c where one is NaN. number: whether c is known to be no NaN."""
    found = extreme("min", a, c, number)
    return select(a < c, a, c) if found is None else found


def maximum(a: Any, c: Any, *, number: bool = False) -> Lanes:
    """The larger; of floats c where one is NaN. number: whether c is known to be no NaN."""
    found = extreme("max", a, c, number)
    return select(a > c, a, c) if found is None else found


def extreme(name: str, a: Any, c: Any, number: bool) -> Lanes | None:
    """min or max of floats in one instruction of 64-bit ARM, None where it has none: FMIN and FMAX keep a NaN, FMINNM
    and FMAXNM pass over it, so that they serve where one operand is known to be a number. -0.0 is less than 0.0."""
    target = getattr(dispatch.state.trace, "target", None)
    like = a if isinstance(a, Lanes) else c
    if target is None or not target.is_aarch64 or not like.is_float:
        return None
    first, second = Lanes(like.b, like._operand(a)), like._operand(c)
    if number or is_number(second):
        return first.intrinsic(f"{name}num", Lanes(like.b, second))
    return first.intrinsic(f"{name}imum", Lanes(like.b, second)) if is_number(first.x) else None


def clamp(x: Lanes, low: Any, high: Any) -> Lanes:
    """x within [low, high]; of floats low where x is NaN."""
    return minimum(maximum(x, low), high)


def fma(x: Lanes, y: Any, z: Any) -> Lanes:
    """x * y + z; of floats rounded once where the processor can."""
    return x.intrinsic("fmuladd", y, z) if x.is_float else x * y + z


def abs(x: Lanes) -> Lanes:
    """|x|; of the least integer itself."""
    return x.intrinsic("fabs") if x.is_float else select(x < 0, -x, x)


def truncated_quotient(a: Lanes, c: Lanes) -> Lanes:
    """a / c of integers, rounded toward zero; c is not 0, nor -1 below the least integer."""
    return Lanes(a.b, a.b.sdiv(a.x, c.x))


def float_remainder(a: Lanes, c: Lanes) -> Lanes:
    """a - c trunc(a / c) of floats, as the C library's fmod."""
    return Lanes(a.b, a.b.frem(a.x, c.x))


def sqrt(x: Lanes) -> Lanes:
    """The square root, rounded right."""
    return x.intrinsic("sqrt")


def round_even(x: Lanes) -> Lanes:
    """The nearest whole number, of two the even one, as a float."""
    return x.intrinsic("rint")


def floor(x: Lanes) -> Lanes:
    """The greatest whole number that is not greater."""
    return x.intrinsic("floor")


def ceil(x: Lanes) -> Lanes:
    """The least whole number that is not less."""
    return x.intrinsic("ceil")


def trunc(x: Lanes) -> Lanes:
    """Toward zero, as a float."""
    return x.intrinsic("trunc")


def copysign(x: Lanes, sign: Any) -> Lanes:
    """|x| with the sign of another float."""
    return x.intrinsic("copysign", sign)


def convert(x: Lanes, dtype: DType) -> Lanes:
    """Integers extended by their sign or cut off, floats rounded; floats, within its range, to integers toward zero."""
    return x.to(KINDS[dtype])


def bitcast(x: Lanes, dtype: DType) -> Lanes:
    """The same bits as another dtype of the same size."""
    return Lanes(x.b, x.b.bitcast(x.x, x._typed(KINDS[dtype])))


def where_any(mask: Lanes, compute: Callable[[], Lanes], otherwise: Lanes) -> Lanes:
    """What `compute` gives where the mask holds in one lane at least, else `otherwise`: it branches around the rest."""
    b = mask.b
    entry = b.block
    with b.if_then(mask.any(), likely=False):
        found = compute()
        end = b.block
    merged = b.phi(otherwise.x.type)
    merged.add_incoming(otherwise.x, entry)
    merged.add_incoming(found.x, end)
    return Lanes(b, merged)


def each_lane(name: str, function: Callable[..., Lanes], x: Lanes, dtype: DType) -> Lanes:
    """`function(m, number)` of each lane by itself, as a function of its own in the module; dtype: of what it gives."""
    module = x.b.module
    known = module.globals.get(name)
    if known is None:
        known = ir.Function(module, ir.FunctionType(KINDS[dtype], [x.kind]), name)
        known.linkage = "internal"
        inner = ir.IRBuilder(known.append_basic_block("entry"))
        inner.ret(function(sys.modules[__name__], Lanes(inner, known.args[0])).x)
    return x.map(lambda one: x.b.call(known, [one]), KINDS[dtype])


def table_element(name: str, words: Sequence[int], index: Lanes) -> Lanes:
    """The word of 32 bits at an index of a constant table, as an int64 that is not negative."""
    b = index.b
    kind = ir.ArrayType(I32, len(words))
    table = b.module.globals.get(name)
    if table is None:
        table = ir.GlobalVariable(b.module, kind, name)
        table.initializer, table.global_constant, table.linkage = ir.Constant(kind, list(words)), True, "internal"
    return Lanes(b, b.zext(b.load(b.gep(table, [ir.Constant(I32, 0), index.x]), typ=I32), I64))


__all__ = [
    "abs", "bitcast", "ceil", "clamp", "convert", "copysign", "each_lane", "float_remainder", "floor", "fma",
    "fraction", "full_like", "has_exponents", "maximum", "minimum", "round_even", "round_exponent", "scale", "select",
    "sqrt", "table_element", "trunc", "truncated_quotient", "type_of", "where_any",
]
