"""C expressions: text with its precedence, types and numbers; the small C functions that they call.

Lives here: `CExpression`, `c_type`, `literal`; HELPERS, functions that are defined only if used.
Not here: the expression of an instruction (instructions.py).

Integers of LLVM have no sign; C variables hold them as signed. Arithmetic that wraps is unsigned, as signed overflow is
undefined in C, so an expression records whether its type is unsigned.

All helpers are exact: results are equal on any processor, bit for bit. `ow_fma` and `ow_fmaf` round once if the
processor has the instruction and twice otherwise, as compiled kernels do.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from llvmlite import ir

from ...core.errors import UnimplementedError

PRIMARY, UNARY, MUL, ADD, SHIFT, COMPARE, EQUAL, AND, XOR, OR, CHOICE = range(11)
"""Precedences of the operators of C, the tightest first."""

_WIDTHS = (8, 16, 32, 64)


@dataclass(frozen=True)
class CExpression:
    """A C expression. unsigned: whether its type is. reads: variables and memory ("*") that it reads."""

    text: str
    precedence: int = PRIMARY
    unsigned: bool = False
    reads: frozenset[str] = frozenset()

    def within(self, precedence: int) -> str:
        """Return the text as an operand, in parentheses if it binds less tightly."""
        return self.text if self.precedence <= precedence else f"({self.text})"


def reads(*operands: CExpression) -> frozenset[str]:
    """Return the union of what the operands read."""
    return frozenset().union(*(o.reads for o in operands))


def c_type(kind: ir.Type, unsigned: bool = False) -> str:
    """Return the C name of a type. Raises UnimplementedError for vectors and integers of other widths."""
    if isinstance(kind, ir.FloatType):
        return "float"
    if isinstance(kind, ir.DoubleType):
        return "double"
    if isinstance(kind, ir.IntType) and kind.width == 1:
        return "bool"
    if isinstance(kind, ir.IntType) and kind.width in _WIDTHS:
        return f"{'u' if unsigned else ''}int{kind.width}_t"
    if isinstance(kind, ir.VoidType):
        return "void"
    if isinstance(kind, ir.PointerType):
        return "ow_address"  # of byte_addresses.py
    if isinstance(kind, ir.VectorType):
        raise UnimplementedError(
            what="the kernel works on vectors, which C has none of",
            found=f"{kind.count} lanes of {c_type(kind.element)}",
            do="write the kernel on numbers: C compilers make vectors of plain loops",
        )
    raise UnimplementedError(what="a type that C has no name for", found=str(kind))


def is_flag(kind: ir.Type) -> bool:
    """Return whether a type is boolean."""
    return isinstance(kind, ir.IntType) and kind.width == 1


def literal(kind: ir.Type, value: object) -> CExpression:
    """Return a number in C, which reads back bit for bit."""
    if value is None:
        value = 0
    if isinstance(kind, ir.FloatType | ir.DoubleType):
        return _floating(float(value), isinstance(kind, ir.FloatType))  # type: ignore[arg-type]
    if isinstance(kind, ir.PointerType):
        return CExpression("NULL")
    c_type(kind)  # refuses vectors
    number = int(value)  # type: ignore[call-overload]
    width = kind.width
    if width == 1:
        return CExpression("true" if number & 1 else "false")
    number = (number + (1 << (width - 1))) % (1 << width) - (1 << (width - 1))
    if number == -(1 << (width - 1)):
        return CExpression(f"INT{width}_MIN")
    text = str(abs(number)) if abs(number) < 1 << 31 else f"INT64_C({abs(number)})"
    return CExpression(f"-{text}", UNARY) if number < 0 else CExpression(text)


def _floating(value: float, single: bool) -> CExpression:
    if math.isnan(value):
        return CExpression("NAN")
    negative = math.copysign(1.0, value) < 0
    if math.isinf(value):
        text = "INFINITY"
    elif single:
        exact = struct.unpack("f", struct.pack("f", abs(value)))[0]
        text = _with_point(str(np.float32(exact))) + "f"
    else:
        text = _with_point(repr(abs(value)))
    return CExpression(f"-{text}", UNARY) if negative else CExpression(text)


def _with_point(text: str) -> str:
    return text if "." in text or "e" in text else f"{text}.0"


def _bits(name: str, source: str, target: str, comment: str) -> str:
    return f"""/* {comment} */
static inline {target} {name}({source} x) {{
  {target} bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}}
"""


def _division(name: str, kind: str, sign: str, minimum: str, comment: str) -> str:
    overflow = "-1" if not kind.startswith("u") else None
    result = "0" if sign == "%" else minimum
    edge = f"  if (b == {overflow} && a == {minimum}) return {result};\n" if overflow else ""
    return f"""/* {comment} */
static inline {kind} {name}({kind} a, {kind} b) {{
  if (b == 0) return 0;
{edge}  return ({kind})(a {sign} b);
}}
"""


def _conversion(name: str, source: str, target: str, low: str, high: str, minimum: str) -> str:
    """Return the conversion of a float to an integer; low is in range, high is the first value above it."""
    return f"""/* Toward zero; NaN, and what {target} cannot hold, is its least number. */
static inline {target} {name}({source} x) {{
  return x >= {low} && x < {high} ? ({target})x : {minimum};
}}
"""


def _saturating(name: str, source: str, target: str, low: str, high: str, minimum: str, maximum: str) -> str:
    return f"""/* Toward zero; what {target} cannot hold is its nearest end, NaN is 0. */
static inline {target} {name}({source} x) {{
  if (x != x) return 0;
  return x < {low} ? {minimum} : x >= {high} ? {maximum} : ({target})x;
}}
"""


_FUSED = """/* x * y + z: rounded once where the processor has an instruction for that. */
"""


def _fused(name: str, kind: str, function: str) -> str:
    return f"""{_FUSED}static inline {kind} {name}({kind} x, {kind} y, {kind} z) {{
#if defined(OW_HAS_FMA) && defined(__GNUC__)
  return __builtin_{function}(x, y, z); /* an instruction with -ffreestanding, too */
#elif defined(OW_HAS_FMA)
  return {function}(x, y, z);
#else
  return x * y + z;
#endif
}}
"""


FMA_SWITCH = """#if defined(__FMA__) || defined(__FMA4__) || defined(FP_FAST_FMA) || defined(__aarch64__) || \\
    defined(__ARM_FEATURE_FMA) || defined(__riscv_fdiv) || (defined(_MSC_VER) && defined(__AVX2__))
#define OW_HAS_FMA 1
#endif
"""

_LIMITS = {  # of each integer type: minimum, that as a float, the first float above the range, maximum
    "int8_t": ("INT8_MIN", "-128.0", "128.0", "INT8_MAX"),
    "int16_t": ("INT16_MIN", "-32768.0", "32768.0", "INT16_MAX"),
    "int32_t": ("INT32_MIN", "-2147483648.0", "2147483648.0", "INT32_MAX"),
    "int64_t": ("INT64_MIN", "-9223372036854775808.0", "9223372036854775808.0", "INT64_MAX"),
    "uint8_t": ("0", "0.0", "256.0", "UINT8_MAX"),
    "uint16_t": ("0", "0.0", "65536.0", "UINT16_MAX"),
    "uint32_t": ("0", "0.0", "4294967296.0", "UINT32_MAX"),
    "uint64_t": ("0", "0.0", "18446744073709551616.0", "UINT64_MAX"),
}


def short(kind: str) -> str:
    """Return the name of a type in names of helpers: f32, i64, u8."""
    floats = {"float": "f32", "double": "f64"}
    return floats.get(kind) or kind.replace("uint", "u").replace("int", "i").removesuffix("_t")


def _all() -> dict[str, str]:
    helpers = {
        "ow_fma": _fused("ow_fma", "double", "fma"),
        "ow_fmaf": _fused("ow_fmaf", "float", "fmaf"),
        "ow_bits_f32": _bits("ow_bits_f32", "float", "int32_t", "The bits of a float."),
        "ow_bits_f64": _bits("ow_bits_f64", "double", "int64_t", "The bits of a double."),
        "ow_float_of": _bits("ow_float_of", "int32_t", "float", "The float that has these bits."),
        "ow_double_of": _bits("ow_double_of", "int64_t", "double", "The double that has these bits."),
        "ow_nearest": """/* The nearest whole number, of two the even one; |x| is below 2^51. */
static inline double ow_nearest(double x) {
  return (x + 6755399441055744.0) - 6755399441055744.0;
}
""",
    }
    for kind, (minimum, low, high, maximum) in _LIMITS.items():
        for source in ("float", "double"):
            end = "f" if source == "float" else ""
            pair = f"{short(source)}_to_{short(kind)}"
            helpers[f"ow_{pair}"] = _conversion(f"ow_{pair}", source, kind, f"{low}{end}", f"{high}{end}", minimum)
            helpers[f"ow_{pair}_sat"] = _saturating(
                f"ow_{pair}_sat", source, kind, f"{low}{end}", f"{high}{end}", minimum, maximum
            )
        for name, sign, comment in (
            ("div", "/", "a / b toward zero; 0 where b is 0."),
            ("rem", "%", "What is left of a / b toward zero; 0 where b is 0."),
        ):
            helpers[f"ow_{name}_{short(kind)}"] = _division(f"ow_{name}_{short(kind)}", kind, sign, minimum, comment)
    return helpers


HELPERS = _all()
"""Definitions of helpers by name."""


def helpers_text(names: Iterable[str]) -> str:
    """Return the definitions of these helpers, in a fixed order."""
    used = set(names)
    switch = FMA_SWITCH + "\n" if used & {"ow_fma", "ow_fmaf"} else ""
    return switch + "\n".join(text for name, text in HELPERS.items() if name in used)
