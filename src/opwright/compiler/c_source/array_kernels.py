"""Kernels on arrays as C: one function of pointers, sizes and numbers for each choice of constants.

Lives here: `array_source`, `ArraySource`, the staging.
Not here: whose inputs the arrays are (lite/export), arrays while staged (language/arrays.py).

Arrays lie in memory without gaps, as tensors of run times do. The function is given the work items of its parallel
loop, where it has one; how many there are a second function says, as for machine code. Guards stay: the function
gives 0 or the number of the guard that failed. Vectors have no form in C: such kernels are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from ...core import dtypes
from ...core.dtypes import DType
from ..language.array_kernels import ArrayKernel
from ..language.arrays import ArrayTrace
from ..language.entry_points import stage_arrays, word_type
from ..language.guards import Guards
from ..language.kinds import I64, KIND
from ..language.parameters import Array, call_words
from ..language.scalars import PORTABLE
from ..language.trace import define
from .expressions import c_type
from .functions import CFunction, write_function
from .scalar_kernels import callees, table_text, where_defined


@dataclass(frozen=True)
class ArraySource:
    """A kernel on arrays in C.

    name: of its function, whose parameters are, for each of the kernel's, a pointer and its sizes, or a number; then
    begin and end of the work items. items: the name of the function that counts them; None where there is one item.
    functions, tables: as `ScalarSource`. guards: what each guard is about. written: parameters that it writes.
    """

    name: str
    items: str | None
    functions: tuple[CFunction, ...]
    tables: tuple[str, ...]
    guards: tuple[str, ...]
    written: frozenset[str]


def array_source(kernel: ArrayKernel, name: str, constants: Mapping[str, Any]) -> ArraySource:
    """The C of a kernel on arrays with these constants. Raises what staging raises, and UnimplementedError."""
    module = ir.Module(name)
    guards, written = Guards(kernel.checked), set[str]()
    counts = _staged(kernel, module, f"{name}_items", constants, Guards(False), set(), counting=True)
    entry = _staged(kernel, module, name, constants, guards, written, counting=False)
    assert entry is not None
    functions: list[CFunction] = []
    for function in (counts, entry):
        if function is None:
            continue
        functions += [write_function(f, bounded=True) for f in callees(function)]
        elements = {
            p: f"{'' if p in written else 'const '}{c_type(KIND[_stored(k.dtype)])}"
            for p, k in kernel.parameters.items()
            if isinstance(k, Array)
        }
        functions.append(
            write_function(function, comment=f"/* {where_defined(kernel.function)} */\n", elements=elements)
        )
    tables = tuple(table_text(v) for v in module.global_values if isinstance(v, ir.GlobalVariable))
    unique = tuple({f.name: f for f in functions}.values())
    return ArraySource(
        name, counts.name if counts is not None else None, unique, tables, tuple(guards.places), frozenset(written)
    )


def _stored(dtype: DType) -> DType:
    """bool is a byte in memory."""
    return dtypes.uint8 if dtype.is_bool else dtype


class _ArrayTrace(ArrayTrace):
    """Staging for C, whose divisions (helpers.py) may have any divisor. Lines are noted."""

    division = None
    has_extremes = False

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.lines = True


def _staged(
    kernel: ArrayKernel,
    module: ir.Module,
    name: str,
    constants: Mapping[str, Any],
    guards: Guards,
    written: set[str],
    counting: bool,
) -> ir.Function | None:
    """The function of one kernel, or that which counts its items; None where it has no parallel loop to count."""
    words: list[tuple[str, ir.Type]] = []
    for parameter, what, kind, axis in call_words(kernel.parameters):
        if what != "stride":
            words.append((f"{parameter}_{axis}" if what == "size" else parameter, word_type(kind)))
    b = define(module, name, I64, words if counting else [*words, ("begin", I64), ("end", I64)])
    function = b.function
    items = None if counting else function.args[-2:]
    trace = _ArrayTrace(b, kernel.name, PORTABLE, guards, items)
    if not stage_arrays(trace, kernel, constants, lambda: function.args, None, written):
        return function
    if counting:
        return None
    b.ret(ir.Constant(I64, 0))
    return function
