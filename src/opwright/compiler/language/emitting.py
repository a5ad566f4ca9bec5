"""Staging one kernel of a family into LLVM's module.

Lives here: `emit`, `Work` (what a kernel is asked to do).  Not here: families (families.py), values (values.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from ... import staging
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
from .values import Value

if TYPE_CHECKING:
    from .families import Family

staging.keep_in(CONVERSIONS)


class Work:
    """What a kernel is asked to do now: the first parameter of each."""

    def __init__(self, begin: Value, end: Value, scratch: ir.Value, target: Target) -> None:
        self.begin, self.end, self.target, self._scratch = begin, end, target, scratch

    def items(self) -> LoopRange:
        """The work items of this call, to loop over."""
        return LoopRange(self.begin, self.end)

    def scratch(self, dtype: DType) -> Pointer:
        """This thread's scratch memory, on a multiple of 64 bytes."""
        return Pointer(self._scratch, dtype, 64)

    def lanes(self, dtype: DType) -> int:
        """Elements of a dtype in a vector of the target."""
        return self.target.vector_bytes // dtype.size


def emit(family: Family, target: Target, constants: dict[str, Any], polls: bool = False) -> ir.Module:
    """The module of one kernel, before optimisation; its function is `family.entry(constants)`.

    polls: whether users' loops in it are ended by signals, by a function of this process.
    """
    if set(constants) != set(family.constants):
        raise TypeError(f"{family.name} has constants {', '.join(family.constants)}; found {', '.join(constants)}")
    entry = family.entry(constants)
    module = ir.Module(entry)
    kinds = {n: POINTER if isinstance(k, PointerKind) else KIND[k] for n, k in family.kinds(constants).items()}
    body = ir.Function(module, ir.FunctionType(I64, [*kinds.values(), I64, I64, POINTER]), f"{entry}.body")
    body.linkage = "internal"
    body.attributes.add("alwaysinline")
    body.attributes.add("nounwind")
    for argument, name in zip(body.args, (*kinds, "begin", "end", "scratch")):
        argument.name = name
        if argument.type == POINTER:
            argument.attributes.add("noalias")
    _stage(family, body, target, constants, polls)
    outer = _outside(module, entry, body, list(kinds.values()))
    if target.is_x86 and target.vector_bytes > STACK:
        outer.attributes.add("nounwind")  # llvmlite prints `alignstack` only beside another attribute
        outer.attributes.alignstack = target.vector_bytes
    return module


def _stage(family: Family, body: ir.Function, target: Target, constants: dict[str, Any], polls: bool) -> None:
    """Run the kernel's Python on values that stand for the function's arguments."""
    staged = KernelTrace(ir.IRBuilder(body.append_basic_block("entry")), family.name, target)
    staged.functions_poll = polls
    staged.shares_divisions = target.is_x86  # where nothing later does it (target.py)

    def call() -> Any:
        *given, begin, end, scratch = body.args
        words = [Pointer(x, k.dtype) if isinstance(k, PointerKind) else Value(x, k)
                 for x, k in zip(given, family.kinds(constants).values())]  # fmt: skip
        named = {n: v for n, v in constants.items() if family.more is None or n != family.more[0]}
        work = Work(Value(begin, dtypes.int64), Value(end, dtypes.int64), scratch, target)
        return _converted(family.function)(work, *words, **named)

    try:
        status = staged.run(call)
    finally:
        CONVERSIONS.write()
    staged.builder.ret(status.x if isinstance(status, Value) else ir.Constant(I64, status or 0))


@functools.cache
def _converted(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of a family in graph form; to make it takes as long as to stage a kernel."""
    converted: Callable[..., Any] = staging.to_graph(function)
    return converted


STACK = 16
"""Bytes that the stack is a multiple of at a call. LLVM keeps vectors there that registers have no room for: without
`alignstack` half of the longer ones would cross cache lines, unless the kernel has a `stack` of its own."""


def _outside(module: ir.Module, entry: str, body: ir.Function, kinds: Sequence[ir.Type]) -> ir.Function:
    """Return the function that others call: it reads the words."""
    outer = ir.Function(module, ir.FunctionType(I64, [POINTER, I64, I64, POINTER]), entry)
    for argument, name in zip(outer.args, ("words", "begin", "end", "scratch")):
        argument.name = name
    outer.attributes.add("nounwind")
    b = ir.IRBuilder(outer.append_basic_block("entry"))
    words = [b.load(b.gep(outer.args[0], [ir.Constant(I64, i)], source_etype=I64), typ=kind, align=8)
             for i, kind in enumerate(kinds)]  # fmt: skip
    b.ret(b.call(body, [*words, *outer.args[1:]]))
    return outer
