"""Staging one kernel of a family into LLVM's module.

Lives here: `emit`, `Work` (what a kernel is asked to do).  Not here: families (families.py), values (values.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from ...autograph.api import to_graph
from ...autograph.conversion import set_store
from ...core import dtypes
from ...core.dtypes import DType
from ..target import Target
from . import branches  # noqa: F401  registers what control flow on values means
from .control import LoopRange
from .conversions import CONVERSIONS
from .kinds import I64, KIND, POINTER
from .operators import KernelTrace
from .parameters import PointerKind
from .places import Pointer
from .trace import WORDS, define
from .values import Value

if TYPE_CHECKING:
    from .families import Family

set_store(CONVERSIONS)


class Work:
    """What a kernel is asked to do now: the first parameter of each."""

    def __init__(self, begin: Value, end: Value, scratch: ir.Value, target: Target) -> None:
        self.begin, self.end, self.target, self._scratch = begin, end, target, scratch

    def items(self) -> LoopRange:
        """Return the work items of this call, to loop over."""
        return LoopRange(self.begin, self.end)

    def scratch(self, dtype: DType) -> Pointer:
        """Return this thread's scratch memory, on a multiple of 64 bytes."""
        return Pointer(self._scratch, dtype, 64)

    def lanes(self, dtype: DType) -> int:
        """Return the number of elements in a vector of the target."""
        return self.target.vector_bytes // dtype.size


def emit(family: Family, target: Target, constants: dict[str, Any], polls: bool = False) -> ir.Module:
    """Return the module of one kernel, before optimisation; its function is `family.entry(constants)`.

    polls: whether users' loops in it are ended by signals, by a function of this process.
    """
    if set(constants) != set(family.constants):
        raise TypeError(f"{family.name} has constants {', '.join(family.constants)}; found {', '.join(constants)}")
    entry = family.entry(constants)
    module = ir.Module(entry)
    kinds = {n: POINTER if isinstance(k, PointerKind) else KIND[k] for n, k in family.kinds(constants).items()}
    parameters = [*kinds.items(), ("begin", I64), ("end", I64), ("scratch", POINTER)]
    b = define(module, f"{entry}.body", I64, parameters, noalias=True)
    body = b.function
    body.linkage = "internal"
    body.attributes.add("alwaysinline")
    body.attributes.add("nounwind")
    _stage(family, b, target, constants, polls)
    outer = _outside(module, entry, body, list(kinds.values()))
    if target.is_x86 and target.vector_bytes > STACK:
        outer.attributes.add("nounwind")  # llvmlite prints `alignstack` only beside another attribute
        outer.attributes.alignstack = target.vector_bytes
    return module


def _stage(family: Family, b: ir.IRBuilder, target: Target, constants: dict[str, Any], polls: bool) -> None:
    """Run the kernel's Python on values that stand for the function's arguments."""
    staged = KernelTrace(b, family.name, target)
    staged.functions_poll = polls
    staged.shares_divisions = target.is_x86  # where nothing later does it (target.py)

    def call() -> Any:
        *given, begin, end, scratch = b.function.args
        words = [
            Pointer(x, k.dtype) if isinstance(k, PointerKind) else Value(x, k)
            for x, k in zip(given, family.kinds(constants).values())
        ]
        named = {n: v for n, v in constants.items() if family.more is None or n != family.more[0]}
        work = Work(Value(begin, dtypes.int64), Value(end, dtypes.int64), scratch, target)
        return _converted(family.function)(work, *words, **named)

    try:
        status = staged.run(call)
    finally:
        CONVERSIONS.write()
    b.ret(status.x if isinstance(status, Value) else ir.Constant(I64, status or 0))


@functools.cache
def _converted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of a family in graph form; to convert it takes as long as to stage a kernel."""
    converted: Callable[..., Any] = to_graph(function)
    return converted


STACK = 16
"""Bytes that the stack is a multiple of at a call. LLVM keeps vectors there that registers have no room for: without
`alignstack` half of the longer ones would cross cache lines, unless the kernel has a `stack` of its own."""


def _outside(module: ir.Module, entry: str, body: ir.Function, kinds: Sequence[ir.Type]) -> ir.Function:
    """Return the function that others call: it reads the words."""
    b = define(module, entry, I64, WORDS)
    outer = b.function
    outer.attributes.add("nounwind")
    words = [
        b.load(b.gep(outer.args[0], [ir.Constant(I64, i)], source_etype=I64), typ=kind, align=8)
        for i, kind in enumerate(kinds)
    ]
    b.ret(b.call(body, [*words, *outer.args[1:]]))
    return outer
