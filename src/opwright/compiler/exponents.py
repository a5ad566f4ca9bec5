"""AVX-512's instructions for exponents, on lanes of float32.

Lives here: `has_exponents`, `fraction`, `round_exponent`, `scale`.
Not here: instructions that every processor has (lane_functions.py), exponentials (scalar/numerics/single.py).
"""

from __future__ import annotations

from llvmlite import ir

from ..ops import dispatch
from .lanes import I32, Lanes

FLOOR, EVEN = 9, 8  # what the instructions' immediates call these roundings, without exceptions
QUIET, CURRENT = 8, 4  # as rounding modes: exceptions suppressed; that of the processor


def has_exponents(x: Lanes) -> bool:
    """Whether the kernel's target has the instructions, for as many lanes."""
    target = getattr(dispatch.state.trace, "target", None)
    return target is not None and x.count in (16, 32, 64) and bool(target.has("avx512dq"))


def fraction(x: Lanes) -> Lanes:
    """x - floor(x); of infinities 0."""
    return _masked("reduce", x, ir.Constant(I32, FLOOR), QUIET)


def round_exponent(x: Lanes) -> Lanes:
    """The nearest whole number, of two the even one."""
    return _masked("rndscale", x, ir.Constant(I32, EVEN), QUIET)


def scale(x: Lanes, exponent: Lanes) -> Lanes:
    """x 2^floor(exponent), which may overflow and underflow."""
    return _masked("scalef", x, exponent.x, CURRENT)


def _masked(name: str, x: Lanes, operand: ir.Value, rounding: int) -> Lanes:
    """An instruction of AVX-512 on float32, 16 at a time. operand: a vector of as many, or a constant."""
    b = x.b
    if x.count > 16:
        half = x.count // 2
        low, high = (_masked(name, Lanes(b, _lanes(b, x.x, None, start, half)),
                             _lanes(b, operand, None, start, half) if operand.type == x.x.type else operand, rounding)
                     for start in (0, half))
        return Lanes(b, _lanes(b, low.x, high.x, 0, x.count))
    kind, bits = x.x.type, ir.IntType(16)
    full = f"llvm.x86.avx512.mask.{name}.ps.512"
    operands = [x.x, operand, ir.Constant(kind, None), ir.Constant(bits, -1), ir.Constant(I32, rounding)]
    known = b.module.globals.get(full)
    function = known or ir.Function(b.module, ir.FunctionType(kind, [o.type for o in operands]), full)
    return Lanes(b, b.call(function, operands))


def _lanes(b: ir.IRBuilder, low: ir.Value, high: ir.Value | None, start: int, count: int) -> ir.Value:
    """count lanes from `start` on, of one vector or of two after another."""
    places = ir.Constant(ir.VectorType(I32, count), [ir.Constant(I32, start + i) for i in range(count)])
    return b.shuffle_vector(low, ir.Constant(low.type, ir.Undefined) if high is None else high, places)
