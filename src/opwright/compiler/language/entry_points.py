"""Entry points: the functions through which steps of plans call kernels, and which load their words.

Lives here: `emit_family`, `Work` (the work items of a call), `emit_arrays`.
Not here: families (compilation.py), kernels on arrays (array_kernels.py), kernels on elements (elements.py), staging a
function (trace.py).

    i64 NAME(ptr words, i64 begin, i64 end, ptr scratch)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from ...core import dtypes
from ...core.dtypes import DType
from ...core.errors import InternalError
from ...core.lazy_imports import import_module
from ..target import ADDRESSED, SHORT_PASSES, Target
from . import branches  # noqa: F401  registers the control flow of values
from .arrays import ArrayTrace, ItemCountReached, array_arguments
from .bounds_checks import Guards
from .control import LoopRange
from .llvm_types import I32, I64, KIND, POINTER
from .operators import KernelTrace
from .parameters import PointerKind, call_words
from .pointers import Pointer
from .trace import WORK, define
from .values import Value

if TYPE_CHECKING:
    from .array_kernels import ArrayKernel
    from .compilation import KernelFamily

STACK = 16
"""Alignment of the stack at a call, in bytes. LLVM spills vectors to it: without `alignstack`, half of the longer ones
would cross cache lines, unless the kernel calls `stack`."""


class Work:
    """The work items of a call and its scratch memory: the first parameter of each kernel."""

    def __init__(self, begin: Value, end: Value, scratch: ir.Value, target: Target) -> None:
        self.begin, self.end, self.target, self._scratch = begin, end, target, scratch

    def items(self) -> LoopRange:
        """Return the range of this call's work items."""
        return LoopRange(self.begin, self.end)

    def scratch(self, dtype: DType) -> Pointer:
        """Return this thread's scratch memory, aligned to 64 bytes."""
        return Pointer(self._scratch, dtype, 64)

    def lanes(self, dtype: DType) -> int:
        """Return the number of elements in a vector of the target."""
        return self.target.lanes(dtype.size)


def emit_family(family: KernelFamily, target: Target, constants: dict[str, Any], polls: bool = False) -> ir.Module:
    """Return the module of one kernel before optimization; its function is `family.entry(constants)`.

    polls: whether users' loops in it poll for signals through a function of this process.
    """
    if not family.function.__module__.startswith("opwright."):
        _install_operators()
    if set(constants) != set(family.constants):
        raise TypeError(f"{family.name} has constants {', '.join(family.constants)}; found {', '.join(constants)}")
    entry = family.entry(constants)
    module = ir.Module(entry)
    if not family.hoisted:
        module.add_named_metadata(SHORT_PASSES)
    if family.addressed and target.registers < 32:  # measured with 16
        module.add_named_metadata(ADDRESSED)
    kinds = family.kinds(constants)
    parameters = [(name, word_type(kind)) for name, kind in kinds.items()]
    b = define(module, f"{entry}.body", I64, [*parameters, *WORK], noalias=True)
    body = b.function
    body.linkage = "internal"
    body.attributes.add("alwaysinline")
    body.attributes.add("nounwind")
    trace = KernelTrace(b, family.name, target)
    trace.is_users, trace.functions_poll = False, polls
    trace.shares_divisions = target.is_x86  # whose passes do not (target.py)

    def arguments() -> tuple[list[Any], dict[str, Any]]:
        *words, begin, end, scratch = body.args
        named = {n: v for n, v in constants.items() if family.more is None or n != family.more[0]}
        work = Work(Value(begin, dtypes.int64), Value(end, dtypes.int64), scratch, target)
        return [work, *family.arguments(words, _word_value)], named

    status = trace.stage(family.function, arguments)
    if status is not None and not family.guarded:
        raise InternalError(op=family.name, what="a kernel that is declared to return nothing returns a value")
    b.ret(status.x if isinstance(status, Value) else ir.Constant(I64, status or 0))
    b = define(module, entry, I64, [("words", POINTER), *WORK])
    outer = b.function
    outer.attributes.add("nounwind")
    words = _load_words(target, b, [kind for _, kind in parameters])
    b.ret(b.call(body, [*words, *outer.args[1:]]))
    if target.is_x86 and target.vector_bytes > STACK:
        outer.attributes.alignstack = target.vector_bytes  # llvmlite prints it only next to another attribute
    return module


def _install_operators() -> None:
    """Define the operators of the catalogue on values: users' kernels have `**` and `@`, Opwright's own do not."""
    import_module("opwright.ops.overloads")


class ArrayFacts:
    """Properties of a kernel on arrays: its guards, the parameters that it writes, whether it has a parallel loop."""

    def __init__(self, checked: bool) -> None:
        self.guards, self.written, self.parallel = Guards(checked), set[str](), False


def emit_arrays(
    kernel: ArrayKernel,
    target: Target,
    constants: Mapping[str, Any],
    dense: Sequence[bool],
    polls: bool = False,
    items: ir.Module | None = None,
) -> tuple[ir.Module, ArrayFacts]:
    """Return the module of a kernel on arrays, with the functions `NAME` and `NAME.items`, which counts the items of
    its parallel loop (1 without one).

    dense: for each array, whether the elements along its last axis are adjacent. polls: as for `emit_family`, in all
    loops. items: another module for `NAME.items`, to compile it separately.
    """
    _install_operators()
    module, facts = ir.Module(kernel.name), ArrayFacts(kernel.checked)
    kinds = [word_type(word.kind) for word in call_words(kernel.parameters)]
    for counting in (True, False):
        b = define(
            (items or module) if counting else module,
            f"{kernel.name}.items" if counting else kernel.name,
            I64,
            [("words", POINTER), *WORK],
        )
        trace = ArrayTrace(b, kernel.name, target, facts.guards, None if counting else b.function.args[1:3])
        trace.polls = polls and not counting
        if stage_arrays(
            trace, kernel, constants, functools.partial(_load_words, target, b, kinds), dense, facts.written
        ):
            b.ret(ir.Constant(I64, 1 if counting else 0))
        else:
            facts.parallel = True
    return module, facts


def stage_arrays(
    trace: ArrayTrace,
    kernel: ArrayKernel,
    constants: Mapping[str, Any],
    words: Callable[[], Iterable[ir.Value]],
    dense: Sequence[bool] | None,
    written: set[str],
) -> bool:
    """Stage a kernel on arrays in its function. Return whether its Python ran to the end.

    It does not if only the items of a parallel loop are counted: the function then returns their number.
    words, dense, written: as for `array_arguments`
    """

    def arguments() -> tuple[list[Any], Mapping[str, Any]]:
        return array_arguments(kernel.parameters, words(), dense, trace.guards or Guards(False), written), constants

    try:
        trace.stage(kernel.function, arguments)
    except ItemCountReached as counted:
        trace.builder.ret(counted.count.x)
        for block in trace.builder.function.blocks:
            if not block.is_terminated:
                ir.IRBuilder(block).unreachable()
        return False
    return True


def _word_value(x: ir.Value, kind: DType | PointerKind) -> Value | Pointer:
    return Pointer(x, kind.dtype) if isinstance(kind, PointerKind) else Value(x, kind)


def word_type(kind: DType | PointerKind) -> ir.Type:
    """Return the LLVM type of a word."""
    return POINTER if isinstance(kind, PointerKind) else KIND[kind]


def _load_words(target: Target, b: ir.IRBuilder, kinds: Sequence[ir.Type]) -> list[ir.Value]:
    """Load the words to which a function's first argument points. A value is in the lowest bits of its word."""
    words = b.function.args[0]
    places = [b.gep(words, [ir.Constant(I64, i)], source_etype=I64) for i in range(len(kinds))]
    if not target.is_big_endian:
        return [b.load(place, typ=kind, align=8) for place, kind in zip(places, kinds)]
    return [_narrowed(b, b.load(place, typ=I64, align=8), kind) for place, kind in zip(places, kinds)]


def _narrowed(b: ir.IRBuilder, x: ir.Value, kind: ir.Type) -> ir.Value:
    """Return the lowest bits of a word as a value."""
    if kind == POINTER:
        return b.inttoptr(x, kind)
    if isinstance(kind, ir.IntType):
        return x if kind == I64 else b.trunc(x, kind)
    return b.bitcast(x if kind == ir.DoubleType() else b.trunc(x, I32), kind)
