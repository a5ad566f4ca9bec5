"""Kernels on elements: a Python function of scalars, in a loop over arrays or inlined into other kernels.

Lives here: the loop, the staging of the function in it, inlining of functions.
Not here: scalars (operators.py), control flow (masks.py), running such kernels on arrays (../elementwise.py), their
functions as parts of expressions (../inlined_kernels.py).

The function runs on scalars that represent a vector of elements in the main loop and one element in the remainder loop,
so `ow.minimum(x, 1.0)` has the same meaning in a kernel as elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from llvmlite import ir

from ...core import dtypes
from ...core.dtypes import DType, of_numpy
from ..target import Target, host
from . import masks  # noqa: F401  registers the control flow of scalars
from .llvm_types import I64, KIND, POINTER, stored, typed
from .operators import ElementTrace, KernelScalar
from .trace import current, define
from .values import Value

if TYPE_CHECKING:
    from ..inlined_kernels import InlinedKernel


def emit_elements(
    function: Callable[..., Any],
    name: str,
    inputs: Sequence[np.dtype],
    attrs: dict[str, Any],
    target: Target | None = None,
    fast: bool | None = None,
    polls: bool = False,
) -> tuple[ir.Module, DType]:
    """Return the module of one kernel, `void name(out, inputs..., n)` over contiguous arrays, and its result's dtype.

    target: defines the vector length; by default this processor. fast: by default the value of `fast_math`.
    polls: whether the function's own loops poll for signals through a function of this process.
    raises UnimplementedError or SignatureError naming kernel and operator for operations that kernels cannot express
    """
    module = ir.Module(name)
    kinds = [of_numpy(d) for d in inputs]
    names = [n for n in function.__code__.co_varnames if n not in attrs][: len(inputs)]
    b = define(module, name, ir.VoidType(), [*((n, POINTER) for n in ("out", *names)), ("n", I64)], noalias=True)
    out, *pointers, n = b.function.args

    def body(count: int, i: ir.Value) -> DType:
        """Emit the computation of `count` elements from i on; one element if count is 0."""
        trace = ElementTrace(b, name, count, fast)
        trace.polls = polls
        elements = [(_load(b, p, i, d, count, arg_name), d) for p, d, arg_name in zip(pointers, kinds, names)]
        y = stage_elements(trace, function, elements, attrs)
        element = b.zext(y.x, typed(dtypes.uint8, count)) if y.dtype.is_bool else y.x
        b.store(element, b.gep(out, [i], source_etype=KIND[stored(y.dtype)], name="out.i.ptr"), align=y.dtype.size)
        return y.dtype

    width = (target or host()).vector_bytes // 4
    vectors = b.and_(n, ir.Constant(I64, -width), "n.vectors")
    _loop(b, "i.loop", ir.Constant(I64, 0), vectors, width, lambda i: body(width, i))
    dtype = _loop(b, "i.rest", vectors, n, 1, lambda i: body(0, i))
    b.ret_void()
    return module, dtype


def _loop(
    b: ir.IRBuilder, name: str, start: ir.Value, end: ir.Value, step: int, body: Callable[[ir.Value], DType]
) -> DType:
    """Emit `for i in range(start, end, step): body(i)` with readable block names; return the body's result."""
    before = b.block
    loop, done = b.append_basic_block(name), b.append_basic_block(f"{name}.done")
    b.cbranch(b.icmp_signed("<", start, end), loop, done)
    b.position_at_end(loop)
    i = b.phi(I64, "i")
    i.add_incoming(start, before)
    result = body(i)
    following = b.add(i, ir.Constant(I64, step), "i.next")
    i.add_incoming(following, b.block)
    b.cbranch(b.icmp_signed("<", following, end), loop, done)
    b.position_at_end(done)
    return result


def _load(b: ir.IRBuilder, pointer: ir.Value, i: ir.Value, dtype: DType, count: int, name: str) -> ir.Value:
    kind = KIND[stored(dtype)]
    address = b.gep(pointer, [i], source_etype=kind, name=f"{name}.i.ptr")
    x = b.load(address, f"{name}.i", align=dtype.size, typ=ir.VectorType(kind, count) if count else kind)
    return b.trunc(x, typed(dtype, count)) if dtype.is_bool else x


def call_arguments(function: Any, scalars: Sequence[Any], attrs: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return the positional and keyword arguments of a call. attrs: include omitted inputs, as None."""
    code = getattr(function, "__code__", None)
    names = code.co_varnames[: code.co_argcount] if code is not None else ()
    if not any(n in attrs for n in names):
        return list(scalars), dict(attrs)
    remaining = iter(scalars)
    positional = [attrs[n] if n in attrs else next(remaining) for n in names]
    return positional, {k: v for k, v in attrs.items() if k not in names}


Elements = Sequence[tuple[ir.Value, DType]]


def stage_elements(
    trace: ElementTrace, function: Callable[..., Any], elements: Elements, attrs: Mapping[str, Any]
) -> KernelScalar:
    """Stage a kernel's function on these elements; return its result. Raises the errors of `Staging.stage`."""
    result: KernelScalar = trace.stage(
        function, lambda: call_arguments(function, [KernelScalar(x, d) for x, d in elements], attrs)
    )
    return result


class FunctionSummary(NamedTuple):
    """Properties of a scalar function: the dtype of its result, the text and number of its instructions, whether it has
    loops."""

    dtype: DType
    text: str
    num_instructions: int
    has_loops: bool


def summarize(function: InlinedKernel) -> FunctionSummary:
    """Stage a function once, on single elements, and return its properties."""
    module = ir.Module(function.name)
    b = define(module, function.name, ir.VoidType(), [("", KIND[d]) for d in function.inputs])
    llvm_function = b.function
    trace = ElementTrace(b, function.name, 0, function.fast)
    y = stage_elements(trace, function.function, list(zip(llvm_function.args, function.inputs)), function.attrs)
    b.comment(f"gives {y.x.get_reference()} {y.dtype.short}")
    b.ret_void()
    num_instructions = sum(len(block.instructions) for block in llvm_function.blocks)
    return FunctionSummary(y.dtype, str(module), num_instructions, len(llvm_function.blocks) > 1)


def inlined(function: InlinedKernel, xs: Sequence[Value]) -> Value:
    """Stage a function inline on values of the current kernel, broadcast to the longest vector."""
    outer, count = current(), max(x.count for x in xs)
    trace = ElementTrace(outer.builder, function.name, count, function.fast)
    trace.polls = outer.functions_poll
    y = stage_elements(trace, function.function, [(x.splat(count).x, x.dtype) for x in xs], function.attrs)
    return Value(y.x, y.dtype)
