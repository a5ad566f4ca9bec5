# ruff: noqa: F405  the names come from the star, for type checkers
"""The kernel language: what kernels on arrays are written in (docs/kernels.md).

    from opwright import language as kl

Pointers, which know no bounds, stay inside: they are for the kernels that Opwright ships (compiler/language/).
"""

from typing import TYPE_CHECKING

from .compiler import language as _language

if TYPE_CHECKING:
    from .compiler.language import *  # noqa: F403

__all__ = [
    "Array",
    "ArrayKernel",
    "Registers",
    "Target",
    "Value",
    "abs",
    "acos",
    "acosh",
    "all",
    "any",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bf16",
    "bitcast",
    "bool1",
    "ceil",
    "clamp",
    "concat",
    "constant_vector",
    "cos",
    "cosh",
    "dot4",
    "erf",
    "erfc",
    "exp",
    "expm1",
    "f16",
    "f32",
    "f64",
    "first",
    "floor",
    "fma",
    "full",
    "gelu",
    "i8",
    "i16",
    "i32",
    "i64",
    "insert",
    "iota",
    "log",
    "log1p",
    "loop",
    "maximum",
    "minimum",
    "pair_dot",
    "parallel",
    "part",
    "pow",
    "reduce_add",
    "reduce_max",
    "reduce_min",
    "registers",
    "round_even",
    "rsqrt",
    "select",
    "shuffle",
    "sigmoid",
    "sin",
    "sinh",
    "softplus",
    "splat",
    "sqrt",
    "stack",
    "tan",
    "tanh",
    "to_int",
    "trunc",
    "u8",
    "u16",
    "u32",
    "u64",
    "unroll",
    "zeros",
]


def __getattr__(name: str) -> object:
    if name in __all__:
        value = globals()[name] = getattr(_language, name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
