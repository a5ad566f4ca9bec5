"""Kernels as C: one function of numbers, or of pointers, sizes and numbers, for each choice of constants.

Lives here: `scalar_source`, `ScalarSource`; `array_source`, `ArraySource`; tracing for C; attributes whose values are
known at run time (`AttributeValue`, `AttributeNeeded`).
Not here: loops over elements, tensors of the arrays, attributes that are known before (lite/export), the text of
functions (functions.py).

Kernels are traced as for machine code, those on scalars with one lane. The mathematical functions that they call become
functions of their own, from scalar/numerics, so that results are equal bit for bit; functions of float64 are those of
the C library in both.

Arrays are contiguous, as tensors of run times are. The parameters of the function include the work items of its
parallel loop, if it has one; a second function counts them, as for machine code. Guards remain: the function returns 0
or the number of the guard that failed. Vectors have no equivalent in C: such kernels are refused.

In compiled kernels attributes are Python numbers: arithmetic among them is that of Python, in float64; with a scalar,
they take its dtype. An `AttributeValue` behaves alike at run time: it is a float64 (or int64), computes in it, and is
converted when combined with a scalar. Python cannot read its value, so a kernel that needs it (`math.sqrt(alpha)`,
`range(n)` unrolled) raises an error that asks for the value.
"""

from __future__ import annotations

import functools
import inspect
import linecache
import operator
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from llvmlite import ir

from ...core import dtypes, flags
from ...core.dtypes import DType
from ...core.errors import SignatureError
from ...ops.arguments import tensors
from ...scalar.table import OF_OPERATOR, ScalarFunction, chosen
from ..language.array_kernels import ArrayKernel
from ..language.arrays import ArrayTrace
from ..language.bounds_checks import Guards
from ..language.element_trace import PORTABLE, ElementTrace, KernelScalar, LaterNumber
from ..language.elements import stage_elements
from ..language.entry_points import stage_arrays, word_type
from ..language.llvm_types import ELEMENT_DTYPES, F32, I64, KIND, stored
from ..language.operators import evaluate
from ..language.parameters import Array, call_words
from ..language.trace import define
from ..language.values import Value, value
from .expressions import c_type
from .functions import CFunction, write_function


class AttributeNeeded(SignatureError):
    """A kernel reads the value of an attribute that is known at run time. attribute: its name."""

    def __init__(self, attribute: str) -> None:
        super().__init__(what=f"the kernel asks Python for the value of attribute {attribute!r}")
        self.attribute = attribute


class AttributeValue(LaterNumber):
    """A number that is known at run time. number: float64 or int64. name: of the attribute.

    narrow: names of attributes that become int32, whose values must fit; common to a kernel.
    """

    __slots__ = ("name", "narrow", "number")

    def __init__(self, number: Value, name: str, narrow: set[str]) -> None:
        self.number, self.name, self.narrow = number, name, narrow

    @property
    def is_float(self) -> bool:
        """Return whether it is a float rather than an int."""
        return self.number.dtype.is_floating

    @property
    def stand_in(self) -> float | int:
        """Return a new Python number of its type."""
        return float("0.5") if self.is_float else int("1000003")

    def as_scalar(self, dtype: DType | None) -> KernelScalar:
        """Return a scalar of this dtype, by default the dtype of Python numbers."""
        dtype = dtype or (dtypes.float32 if self.is_float else dtypes.int32)
        if dtype not in ELEMENT_DTYPES:
            raise TypeError(f"a kernel has no scalars of dtype {dtype.name}")
        if self.is_float and not dtype.is_floating:
            raise TypeError(f"cannot use {self.name} as {dtype.name}")
        if dtype is dtypes.int32:
            self.narrow.add(self.name)
        return KernelScalar.of(self.number.to(dtype))

    def _operands(self, other: Any) -> tuple[Value, Value] | None:
        """Return both as numbers of one dtype; None if the other is not a number."""
        a = self.number
        if isinstance(other, AttributeValue):
            c = other.number
        elif isinstance(other, float) or (isinstance(other, int) and not isinstance(other, bool)):
            c = value(other, dtypes.float64 if isinstance(other, float) else a.dtype)
        else:
            return None
        return (a, c) if a.dtype is c.dtype else (a.to(dtypes.float64), c.to(dtypes.float64))

    def _binary(self, function: Callable[[Any, Any], Any], other: Any, swap: bool = False) -> AttributeValue:
        pair = self._operands(other)
        return NotImplemented if pair is None else self._computed(function, *(reversed(pair) if swap else pair))

    def _computed(self, function: Callable[[Any, Any], Any], a: Value, c: Value) -> AttributeValue:
        if function is operator.truediv:
            a, c = a.to(dtypes.float64), c.to(dtypes.float64)
        return AttributeValue(function(a, c), self.name, self.narrow)

    def _compared(self, function: Callable[[Any, Any], Any], other: Any) -> KernelScalar:
        pair = self._operands(other)
        return NotImplemented if pair is None else KernelScalar.of(function(*pair))

    __add__ = functools.partialmethod(_binary, operator.add)
    __radd__ = functools.partialmethod(_binary, operator.add, swap=True)
    __sub__ = functools.partialmethod(_binary, operator.sub)
    __rsub__ = functools.partialmethod(_binary, operator.sub, swap=True)
    __mul__ = functools.partialmethod(_binary, operator.mul)
    __rmul__ = functools.partialmethod(_binary, operator.mul, swap=True)
    __truediv__ = functools.partialmethod(_binary, operator.truediv)
    __rtruediv__ = functools.partialmethod(_binary, operator.truediv, swap=True)

    def __neg__(self) -> AttributeValue:
        return AttributeValue(-self.number, self.name, self.narrow)

    def __pos__(self) -> AttributeValue:
        return self

    __lt__ = functools.partialmethod(_compared, operator.lt)
    __le__ = functools.partialmethod(_compared, operator.le)
    __gt__ = functools.partialmethod(_compared, operator.gt)
    __ge__ = functools.partialmethod(_compared, operator.ge)
    __eq__ = functools.partialmethod(_compared, operator.eq)  # pyright: ignore[reportAssignmentType]
    __ne__ = functools.partialmethod(_compared, operator.ne)  # pyright: ignore[reportAssignmentType]
    __hash__ = None  # type: ignore[assignment]

    def _unknown(self, *_: Any) -> NoReturn:
        raise AttributeNeeded(self.name)

    __float__ = __int__ = __index__ = __bool__ = __round__ = __trunc__ = __floor__ = __ceil__ = _unknown
    __pow__ = __rpow__ = __mod__ = __rmod__ = __floordiv__ = __rfloordiv__ = __abs__ = __iter__ = __len__ = _unknown

    def __repr__(self) -> str:
        return f"<attribute {self.name}>"


SYMBOLIC = {float: dtypes.float64, int: dtypes.int64}
"""Dtypes of attributes that are known at run time."""


@dataclass(frozen=True)
class ScalarSource:
    """A kernel on scalars in C.

    name: of its function, whose parameters are a number for each input, then attributes that are known at run time.
    functions: its callees before itself. tables: constants that they read. dtype: of the result. narrow: attributes of
    type int that become int32.
    """

    name: str
    functions: tuple[CFunction, ...]
    tables: tuple[str, ...]
    dtype: DType
    narrow: frozenset[str]


class CTrace(ElementTrace):
    """Tracing for C: mathematical functions are calls, attributes may be known at run time, lines are recorded."""

    def __init__(self, builder: ir.IRBuilder, name: str, functions: dict[str, ir.Function]) -> None:
        super().__init__(builder, name, 0, fast=False)
        self.functions, self.lines = functions, True

    def record(self, op: Any, inputs: Sequence[Any], bound: Any, name: str | None) -> Value:
        """Lower one call. Attributes take the dtype that a Python number would take in their place."""
        self.mark()
        if not any(isinstance(x, AttributeValue) for x in inputs):
            return super().record(op, inputs, bound, name)
        later = {}
        substituted = list(inputs)
        for i, x in enumerate(inputs):
            if isinstance(x, AttributeValue):
                substituted[i] = x.stand_in
                later[id(substituted[i])] = x

        def to_tensor(value: Any, dtype: Any = None, name: str | None = None) -> KernelScalar:
            return later[id(value)].as_scalar(dtype) if id(value) in later else self.to_tensor(value, dtype, name)

        return super().record(op, tensors(op, substituted, to_tensor, name), bound, name)

    def lower(self, op: Any, bound: Any, operands: Sequence[Any]) -> Value:
        """Return the result of an operator; lower a mathematical function of float32 to a call."""
        row = OF_OPERATOR.get(op.name)
        row = chosen(row, lambda attribute: getattr(bound, attribute)) if row is not None else None
        if row is None or not row.exact or row.takes_float64 or any(x.dtype is not dtypes.float32 for x in operands):
            return super().lower(op, bound, operands)
        return Value(self.builder.call(self._mathematical(row), [x.x for x in operands]), dtypes.float32)

    def _mathematical(self, row: ScalarFunction) -> ir.Function:
        """Return the function of float32 that the module has for a row of the table."""
        full = f"ow_{row.name}f"
        if full not in self.functions:
            parameters = [(letter, F32) for letter in ("xy" if row.name != "atan2" else "yx")[: row.arity]]
            with self.inside(define(self.builder.module, full, F32, parameters)) as b:
                b.ret(evaluate(row, *(Value(a, dtypes.float32) for a in b.function.args)).x)
            self.functions[full] = b.function
        return self.functions[full]

    def to_tensor(self, value: Any, dtype: Any = None, name: str | None = None) -> KernelScalar:
        """Return a number as a scalar; an attribute with its own dtype."""
        return value.as_scalar(dtype) if isinstance(value, AttributeValue) else super().to_tensor(value, dtype, name)

    def line_text(self, file: str, number: int) -> str:
        """Return the comment that names a line, with its text."""
        return f"{super().line_text(file, number)}  {linecache.getline(file, number).strip()}".rstrip()


def scalar_source(
    function: Callable[..., Any],
    op: str,
    name: str,
    inputs: Sequence[DType],
    attrs: Mapping[str, Any],
    parameters: Sequence[str] = (),
) -> ScalarSource:
    """Return the C of a kernel on scalars.

    op: name of the operator, for errors; name: of the C function. attrs: the value of each attribute, or `float` or
    `int` for one that is known at run time; None for each omitted input. parameters: names of the inputs, by default
    those of the function.
    raises UnimplementedError, SignatureError or TypeError for constructs that kernels, or C, lack
    """
    module = ir.Module(name)
    names = list(parameters or list(inspect.signature(function).parameters)[: len(inputs)])
    later = {n: SYMBOLIC[v] for n, v in attrs.items() if v in (float, int) and isinstance(v, type)}
    kinds = [KIND[d] for d in (*inputs, *later.values())]
    narrow: set[str] = set()
    dtype, traced = _traced_scalars(module, function, op, name, kinds, [*names, *later], inputs, attrs, narrow)
    *helpers, entry = traced
    functions = []
    for f in helpers:
        functions += [write_function(g, bounded=True) for g in _callees(f)]
        functions.append(write_function(f, bounded=True, comment=f"/* {_accuracy(f.name)} */\n"))
    functions.append(write_function(entry, comment=f"/* {_where_defined(function)} */\n"))
    return ScalarSource(name, _unique(functions), _tables(module), dtype, frozenset(narrow))


def _traced_scalars(
    module: ir.Module,
    function: Callable[..., Any],
    op: str,
    name: str,
    kinds: Sequence[ir.Type],
    names: Sequence[str],
    inputs: Sequence[DType],
    attrs: Mapping[str, Any],
    narrow: set[str],
) -> tuple[DType, list[ir.Function]]:
    """Trace twice, for the type of the result and with it; return its dtype and the functions, the kernel last."""
    functions: dict[str, ir.Function] = {}
    result, entry = None, None
    for kind in (ir.VoidType(), None):  # a first trace determines the type of the result
        scratch = module if kind is None else ir.Module(name)
        functions.clear()
        b = define(scratch, name, result.x.type if result is not None else kind, list(zip(names, kinds)))
        entry = b.function
        trace = CTrace(b, op, functions)
        values, later = dict(attrs), list(zip(entry.args, names))[len(inputs) :]
        with flags.override(fast_math=False):
            for argument, attribute in later:
                number = trace.run(functools.partial(Value, argument, SYMBOLIC[attrs[attribute]]))
                values[attribute] = AttributeValue(number, attribute, narrow)
            result = stage_elements(trace, function, list(zip(entry.args, inputs)), values)
        b.ret(result.x)
    assert result is not None
    assert entry is not None
    return result.dtype, [*functions.values(), entry]


# ---- kernels on arrays -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ArraySource:
    """A kernel on arrays in C.

    name: of its function, whose parameters are a pointer and sizes, or a number, for each of the kernel; then begin and
    end of the work items. items: name of the function that counts them; None for a single item. functions, tables: as
    `ScalarSource`. guards: messages. written: parameters that it writes.
    """

    name: str
    items: str | None
    functions: tuple[CFunction, ...]
    tables: tuple[str, ...]
    guards: tuple[str, ...]
    written: frozenset[str]


def array_source(kernel: ArrayKernel, name: str, constants: Mapping[str, Any]) -> ArraySource:
    """Return the C of a kernel on arrays with these constants. Raises UnimplementedError, and the errors of tracing."""
    module = ir.Module(name)
    guards, written = Guards(kernel.checked), set[str]()
    counts = _traced_arrays(kernel, module, f"{name}_items", constants, Guards(False), set(), counting=True)
    entry = _traced_arrays(kernel, module, name, constants, guards, written, counting=False)
    assert entry is not None
    functions: list[CFunction] = []
    for function in (counts, entry):
        if function is None:
            continue
        functions += [write_function(f, bounded=True) for f in _callees(function)]
        elements = {
            p: f"{'' if p in written else 'const '}{c_type(KIND[stored(k.dtype)])}"
            for p, k in kernel.parameters.items()
            if isinstance(k, Array)
        }
        functions.append(
            write_function(function, comment=f"/* {_where_defined(kernel.function)} */\n", elements=elements)
        )
    items = None if counts is None else counts.name
    return ArraySource(name, items, _unique(functions), _tables(module), tuple(guards.messages), frozenset(written))


class CArrayTrace(ArrayTrace):
    """Tracing for C, whose divisions (expressions.py) accept any divisor. Lines are recorded."""

    division = None
    has_extremes = False

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.lines = True


def _traced_arrays(
    kernel: ArrayKernel,
    module: ir.Module,
    name: str,
    constants: Mapping[str, Any],
    guards: Guards,
    written: set[str],
    counting: bool,
) -> ir.Function | None:
    """Return the function of a kernel, or the one that counts its items; None without a parallel loop to count."""
    words: list[tuple[str, ir.Type]] = []
    for parameter, role, kind, axis in call_words(kernel.parameters):
        if role != "stride":
            words.append((f"{parameter}_{axis}" if role == "size" else parameter, word_type(kind)))
    b = define(module, name, I64, words if counting else [*words, ("begin", I64), ("end", I64)])
    function = b.function
    items = None if counting else function.args[-2:]
    trace = CArrayTrace(b, kernel.name, PORTABLE, guards, items)
    if not stage_arrays(trace, kernel, constants, lambda: function.args, None, written):
        return function
    if counting:
        return None
    b.ret(ir.Constant(I64, 0))
    return function


# ---- text ------------------------------------------------------------------------------------------------------------


def _unique(functions: Sequence[CFunction]) -> tuple[CFunction, ...]:
    return tuple({f.name: f for f in functions}.values())


def _tables(module: ir.Module) -> tuple[str, ...]:
    return tuple(table_text(v) for v in module.global_values if isinstance(v, ir.GlobalVariable))


def _callees(function: ir.Function) -> list[ir.Function]:
    """Return the functions of the module that it calls."""
    callees = {x.callee for block in function.blocks for x in block.instructions if hasattr(x, "callee")}
    return sorted((f for f in callees if f.blocks), key=lambda f: f.name)


def table_text(table: ir.GlobalVariable) -> str:
    """Return the definition of a table of the module."""
    kind = table.initializer.type
    numbers = ", ".join(
        f"0x{int(getattr(n, 'constant', n)) % (1 << kind.element.width):x}u" for n in table.initializer.constant
    )
    return f"static const {c_type(kind.element, unsigned=True)} {table.name}[{kind.count}] = {{{numbers}}};\n"


def _accuracy(name: str) -> str:
    stem = name.removeprefix("ow_")[:-1]
    return f"{stem} of float, within one unit in the last place."


def _where_defined(function: Callable[..., Any]) -> str:
    """Return the name of a function and its file and line."""
    code = getattr(function, "__code__", None)
    if code is None:
        return function.__name__
    name = function.__qualname__.replace("<locals>.", "")
    return f"{name}, {os.path.basename(code.co_filename)}:{code.co_firstlineno}"
