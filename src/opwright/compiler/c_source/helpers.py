"""Small C functions that generated kernels call, each defined only if used.

Lives here: their text and dependencies.  Not here: their callers (instructions.py).

All are exact: results are equal on any processor, bit for bit. `ow_fma` and `ow_fmaf` round once if the processor has
the instruction and twice otherwise, as compiled kernels do.
"""

from __future__ import annotations

from collections.abc import Iterable

_WRAPS = {"add": "+", "sub": "-", "mul": "*"}


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
#ifdef OW_HAS_FMA
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
