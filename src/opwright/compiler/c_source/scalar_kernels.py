"""Kernels on scalars as C: one function of numbers for each choice of dtypes and of known attributes.

Lives here: `scalar_source`, `ScalarSource`, the staging.
Not here: loops over elements, tensors (lite/export), from instructions to text (functions.py).

The kernel is staged as it is for machine code, with one lane. The mathematical functions it calls become functions of
their own, made of what scalar/numerics has, so that they give here and there the same bits; those of float64 are
the C library's, here and there.
"""

from __future__ import annotations

import contextlib
import inspect
import linecache
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from ... import staging
from ...core import flags
from ...core.dtypes import DType
from ...core.errors import SignatureError
from ...core.frames import OURS
from ...ops import dispatch
from ...ops.arguments import tensors
from ...scalar.table import OF_OPERATOR, ScalarFunction, chosen
from .. import lane_functions, staged  # noqa: F401  staged registers what control flow on scalars means
from ..lanes import F32, F64, I64, KINDS, Lanes
from ..scalars import KernelScalar, KernelTrace, arranged
from .expressions import c_type
from .functions import CFunction, write_function
from .numbers import AttributeValue, attribute_of

SYMBOLIC = {float: F64, int: I64}
"""What an attribute that is known later is passed as."""


@dataclass(frozen=True)
class ScalarSource:
    """A kernel on scalars in C.

    name: of its function, which takes a number for each input, then the attributes that are known later.
    functions: all that are needed, in an order in which C takes them. tables: constants they read.
    dtype: of what it gives. narrow: attributes of type int that are computed with as int32.
    """

    name: str
    functions: tuple[CFunction, ...]
    tables: tuple[str, ...]
    dtype: DType
    narrow: frozenset[str]


class CTrace(KernelTrace):
    """Staging for C: mathematical functions are called, attributes may be known later, lines are noted."""

    def __init__(self, builder: ir.IRBuilder, name: str, functions: dict[str, ir.Function]) -> None:
        super().__init__(builder, name, 0)
        self.functions = functions
        self._line: tuple[str, int] | None = None

    def record(self, op: Any, inputs: Sequence[Any], bound: Any, name: str | None) -> Any:
        """One call. Attributes take the dtype that a Python number would take in their place."""
        self._mark()
        if not any(isinstance(x, AttributeValue) for x in inputs):
            return self._lowered(op, inputs, bound, name)
        later = {}
        given = list(inputs)
        for i, x in enumerate(inputs):
            if isinstance(x, AttributeValue):
                given[i] = x.stand_in
                later[id(given[i])] = x

        def to_tensor(value: Any, dtype: Any = None, name: str | None = None) -> Any:
            return later[id(value)].as_scalar(dtype) if id(value) in later else self.to_tensor(value, dtype, name)

        return self._lowered(op, tensors(op, given, to_tensor, name), bound, name)

    def _lowered(self, op: Any, inputs: Sequence[Any], bound: Any, name: str | None) -> Any:
        row = OF_OPERATOR.get(op.name)
        row = chosen(row, lambda attribute: getattr(bound, attribute)) if row is not None else None
        if row is None or self.fast or not row.exact or row.takes_float64:
            return super().record(op, inputs, bound, name)
        scalars = tensors(op, inputs, self.to_tensor, name)
        if any(s.lanes.kind != F32 for s in scalars):
            return super().record(op, inputs, bound, name)
        op.check_dtypes([s.dtype for s in scalars])
        called = self._mathematical(row)
        return KernelScalar(Lanes(self.builder, self.builder.call(called, [s.lanes.x for s in scalars])),
                            scalars[0].dtype)  # fmt: skip

    def _mathematical(self, row: ScalarFunction) -> ir.Function:
        """The function of float32 that the module has for a row of the table."""
        full = f"ow_{row.name}f"
        if full not in self.functions:
            code = row.numerics("exact")
            assert code is not None
            module = self.builder.module
            made = ir.Function(module, ir.FunctionType(F32, [F32] * row.arity), full)
            for argument, letter in zip(made.args, "xy" if row.name != "atan2" else "yx"):
                argument.name = letter
            b = ir.IRBuilder(made.append_basic_block("entry"))
            b.ret(code(lane_functions, *(Lanes(b, a) for a in made.args)).x)
            self.functions[full] = made
        return self.functions[full]

    def to_tensor(self, value: Any, dtype: Any = None, name: str | None = None) -> Any:
        """A number as a scalar; an attribute with its own dtype."""
        return value.as_scalar(dtype) if isinstance(value, AttributeValue) else super().to_tensor(value, dtype, name)

    def _mark(self) -> None:
        """Note the line of the kernel's Python, where it is another than before."""
        frame: Any = sys._getframe(2)
        while frame is not None and frame.f_code.co_filename.startswith(OURS):
            frame = frame.f_back
        if frame is not None and (line := (frame.f_code.co_filename, frame.f_lineno)) != self._line:
            self._line = line
            text = linecache.getline(*line).strip()
            self.builder.comment(f"{os.path.basename(line[0])}:{line[1]}  {text}".rstrip())


def scalar_source(function: Callable[..., Any], op: str, name: str, inputs: Sequence[DType],
                  attrs: Mapping[str, Any], parameters: Sequence[str] = ()) -> ScalarSource:  # fmt: skip
    """The C of a kernel's function on scalars.

    op: the operator's name, for errors; name: that of the C function. attrs: the value of each attribute, or `float` or
    `int` for one that is known later; also None for each input that is left out. parameters: names of the others, by
    default the function's.
    raises UnimplementedError, SignatureError or TypeError for what kernels, or C, cannot express
    """
    module = ir.Module(name)
    names = list(parameters or list(inspect.signature(function).parameters)[: len(inputs)])
    later = {n: SYMBOLIC[v] for n, v in attrs.items() if v in (float, int) and isinstance(v, type)}
    kinds = [*(KINDS[d] for d in inputs), *later.values()]
    narrow: set[str] = set()
    dtype, made = _staged(module, function, op, name, kinds, [*names, *later], inputs, attrs, narrow)
    *helpers, entry = made
    functions = []
    for f in helpers:
        functions += [write_function(g, bounded=True) for g in callees(f)]
        functions.append(write_function(f, bounded=True, comment=f"/* {_says(f.name)} */\n"))
    functions.append(write_function(entry, comment=f"/* {where_defined(function)} */\n"))
    tables = tuple(table_text(v) for v in module.global_values if isinstance(v, ir.GlobalVariable))
    return ScalarSource(name, tuple({f.name: f for f in functions}.values()), tables, dtype, frozenset(narrow))


def _staged(module: ir.Module, function: Callable[..., Any], op: str, name: str, kinds: Sequence[ir.Type],
            names: Sequence[str], inputs: Sequence[DType], attrs: Mapping[str, Any], narrow: set[str]
            ) -> tuple[DType, list[ir.Function]]:  # fmt: skip
    """The module's functions, the kernel's own last, once it is known what it gives."""
    functions: dict[str, ir.Function] = {}
    result, entry = None, None
    for kind in (ir.VoidType(), None):  # what it gives is known after a first staging
        scratch = module if kind is None else ir.Module(name)
        functions.clear()
        gives = result.lanes.x.type if result is not None else kind
        entry = ir.Function(scratch, ir.FunctionType(gives, kinds), name)
        for argument, said in zip(entry.args, names):
            argument.name = said
        b = ir.IRBuilder(entry.append_basic_block("entry"))
        trace = CTrace(b, op, functions)
        scalars = [KernelScalar(Lanes(b, a), d) for a, d in zip(entry.args, inputs)]
        given = dict(attrs)
        for argument, said in list(zip(entry.args, names))[len(inputs) :]:
            given[said] = attribute_of(b, argument, said, narrow)
        with _recording(trace):
            positional, rest = arranged(function, scalars, given)
            result = trace.to_tensor(_converted(function)(*positional, **rest))
        if result.dtype not in KINDS:
            raise SignatureError(op=op, what="the kernel gives a dtype that kernels do not have",
                                 found=result.dtype.name)  # fmt: skip
        b.ret(result.lanes.x)
    assert result is not None
    assert entry is not None
    return result.dtype, [*functions.values(), entry]


@contextlib.contextmanager
def _recording(trace: CTrace) -> Iterator[None]:
    state = dispatch.state
    saved = state.trace, state.tapes
    state.trace, state.tapes = trace, ()
    try:
        with staging.converting(True), flags.override(fast_math=False):
            yield
    finally:
        state.trace, state.tapes = saved


def _converted(function: Callable[..., Any]) -> Callable[..., Any]:
    if not inspect.isfunction(function):  # an operator of the catalogue
        return function
    try:
        return staging.to_graph(function)
    except ValueError:  # its source is not to be had
        return function


def callees(function: ir.Function) -> list[ir.Function]:
    """The functions of the module that it calls."""
    found = {x.callee for block in function.blocks for x in block.instructions if hasattr(x, "callee")}
    return sorted((f for f in found if f.blocks), key=lambda f: f.name)


def table_text(table: ir.GlobalVariable) -> str:
    """A table of numbers of the module."""
    kind = table.initializer.type
    numbers = ", ".join(f"0x{int(getattr(n, 'constant', n)) % (1 << kind.element.width):x}u"
                        for n in table.initializer.constant)  # fmt: skip
    return f"static const {c_type(kind.element, unsigned=True)} {table.name}[{kind.count}] = {{{numbers}}};\n"


def _says(name: str) -> str:
    stem = name.removeprefix("ow_")[:-1]
    return f"{stem} of float, within one unit in the last place."


def where_defined(function: Callable[..., Any]) -> str:
    """A function's name, and where its Python stands."""
    code = getattr(function, "__code__", None)
    if code is None:
        return function.__name__
    name = function.__qualname__.replace("<locals>.", "")
    return f"{name}, {os.path.basename(code.co_filename)}:{code.co_firstlineno}"
