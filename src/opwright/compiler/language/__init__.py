"""The kernel language: Python that becomes machine code, loops, vectors and all.

Lives here: the names a kernel is written with. What staging needs is imported when a kernel is staged, as a process
that finds its kernels in the cache needs no more than their names.

    from opwright.compiler import language as kl
    from opwright.compiler.language import f32, i64, ptr

    @kl.family
    def scale(work, x: ptr[f32], y: ptr[f32], n: i64, factor: f32):
        ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core import dtypes as _dtypes
from ...core.importing import lazily
from ...scalar.table import FUNCTIONS
from ..target import Target
from .family import Family, FamilyCode, call, family
from .parameters import ptr as _ptr

if TYPE_CHECKING:
    from .arrays import Array
    from .calling import ArrayKernel, parallel, unroll
    from .control import LoopRange, loop
    from .dots import dot4, lookup, pair_dot, round_bytes
    from .emitting import Work
    from .functions import (
        abs,
        after,
        all,
        any,
        bitcast,
        ceil,
        clamp,
        concat,
        constant_vector,
        convert,
        first,
        floor,
        fma,
        full,
        full_like,
        gather,
        insert,
        iota,
        likely,
        maximum,
        minimum,
        null,
        on_lanes,
        opaque,
        opaque_pointer,
        part,
        pointer,
        reduce_add,
        reduce_max,
        reduce_min,
        registers,
        round_even,
        select,
        shuffle,
        splat,
        sqrt,
        stack,
        to_int,
        trunc,
        truncated_quotient,
        type_of,
        zeros,
    )
    from .memory import copy
    from .neon import add_pairs, byte_products, dot4_signed, joined, load_halves, matrix_dot, pair_sums
    from .places import Pointer, Registers
    from .tiles import tile_config, tile_dot, tile_load, tile_release, tile_store, tile_zero
    from .values import Value, value

ptr: Any = _ptr  # a type checker takes annotations for types
f16: Any = _dtypes.float16
bf16: Any = _dtypes.bfloat16
f32: Any = _dtypes.float32
f64: Any = _dtypes.float64
i8: Any = _dtypes.int8
u8: Any = _dtypes.uint8
i16: Any = _dtypes.int16
u16: Any = _dtypes.uint16
i32: Any = _dtypes.int32
u32: Any = _dtypes.uint32
i64: Any = _dtypes.int64
u64: Any = _dtypes.uint64
bool1: Any = _dtypes.bool


_HOMES = {
    ".memory": "copy",
    ".arrays": "Array",
    ".calling": "ArrayKernel, parallel, unroll",
    ".control": "LoopRange, loop",
    ".dots": "dot4, lookup, pair_dot, round_bytes",
    ".emitting": "Work",
    ".functions": (
        "abs, after, all, any, bitcast, ceil, clamp, concat, constant_vector, convert, first, floor, fma, full, "
        "full_like, gather, insert, iota, likely, maximum, minimum, null, on_lanes, opaque, opaque_pointer, "
        "part, pointer, reduce_add, reduce_max, reduce_min, registers, round_even, select, shuffle, splat, sqrt, "
        "stack, to_int, trunc, truncated_quotient, type_of, zeros"
    ),
    ".neon": "add_pairs, byte_products, dot4_signed, joined, load_halves, matrix_dot, pair_sums",
    ".places": "Pointer, Registers",
    ".tiles": "tile_config, tile_dot, tile_load, tile_release, tile_store, tile_zero",
    ".values": "Value, value",
}
_NAMES = {name for names in _HOMES.values() for name in names.split(", ")}
_of_modules, __dir__ = lazily(__name__, _HOMES)


def __getattr__(name: str) -> Any:
    """Return a name of the modules, or the function of a row of the table of scalar functions."""
    row = FUNCTIONS.get(name)
    if row is None or name in _NAMES:
        return _of_modules(name)
    from .functions import function_of  # which needs llvmlite

    found = function_of(row)
    globals()[name] = found
    return found


__all__ = [
    "Array",
    "ArrayKernel",
    "Family",
    "FamilyCode",
    "LoopRange",
    "Pointer",
    "Registers",
    "Target",
    "Value",
    "Work",
    "abs",
    "add_pairs",
    "after",
    "all",
    "any",
    "bf16",
    "bitcast",
    "bool1",
    "byte_products",
    "call",
    "ceil",
    "clamp",
    "concat",
    "constant_vector",
    "convert",
    "copy",
    "dot4",
    "dot4_signed",
    "f16",
    "f32",
    "f64",
    "family",
    "first",
    "floor",
    "fma",
    "full",
    "full_like",
    "gather",
    "i8",
    "i16",
    "i32",
    "i64",
    "insert",
    "iota",
    "joined",
    "likely",
    "load_halves",
    "lookup",
    "loop",
    "matrix_dot",
    "maximum",
    "minimum",
    "null",
    "on_lanes",
    "opaque",
    "opaque_pointer",
    "pair_dot",
    "pair_sums",
    "parallel",
    "part",
    "pointer",
    "ptr",
    "reduce_add",
    "reduce_max",
    "reduce_min",
    "registers",
    "round_bytes",
    "round_even",
    "select",
    "shuffle",
    "splat",
    "sqrt",
    "stack",
    "tile_config",
    "tile_dot",
    "tile_load",
    "tile_release",
    "tile_store",
    "tile_zero",
    "to_int",
    "trunc",
    "truncated_quotient",
    "type_of",
    "u8",
    "u16",
    "u32",
    "u64",
    "unroll",
    "value",
    "zeros",
]
