"""Kernels on elements: a Python function of scalars, in a loop over arrays and inside of other kernels.

Lives here: the loop, the staging of the function in it, `emit`; functions inline.
Not here: scalars (scalars.py), control flow (masks.py), running such kernels on arrays (../elementwise.py), their
functions as parts of expressions (../inlined_kernels.py).

The function runs on scalars, which stand for a vector of elements in the loop and for one element in what is left at
its end. So `ow.minimum(x, 1.0)` means in a kernel what it means everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from llvmlite import ir

from ...core import dtypes
from ...core.dtypes import DType, of_numpy
from ..target import Target, host
from . import masks  # noqa: F401  registers what control flow on scalars means
from .kinds import I64, KIND, POINTER, stored, typed
from .scalars import ElementTrace, KernelScalar
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

    target: by default this processor; its vectors are what the loop works on. fast: by default as `fast_math` is.
    polls: whether the function's own loops are ended by signals, by a function of this process.
    raises UnimplementedError or SignatureError naming kernel and operator for what kernels cannot express
    """
    module = ir.Module(name)
    kinds = [of_numpy(d) for d in inputs]
    names = [n for n in function.__code__.co_varnames if n not in attrs][: len(inputs)]
    b = define(module, name, ir.VoidType(), [*((n, POINTER) for n in ("out", *names)), ("n", I64)], noalias=True)
    out, *pointers, n = b.function.args

    def body(count: int, i: ir.Value) -> DType:
        """Compute `count` elements from i on; 0 for one."""
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
    """Write `for i in range(start, end, step): body(i)` with blocks named for a reader; return the body's result."""
    before = b.block
    turn, done = b.append_basic_block(name), b.append_basic_block(f"{name}.done")
    b.cbranch(b.icmp_signed("<", start, end), turn, done)
    b.position_at_end(turn)
    i = b.phi(I64, "i")
    i.add_incoming(start, before)
    result = body(i)
    following = b.add(i, ir.Constant(I64, step), "i.next")
    i.add_incoming(following, b.block)
    b.cbranch(b.icmp_signed("<", following, end), turn, done)
    b.position_at_end(done)
    return result


def _load(b: ir.IRBuilder, pointer: ir.Value, i: ir.Value, dtype: DType, count: int, name: str) -> ir.Value:
    kind = KIND[stored(dtype)]
    at = b.gep(pointer, [i], source_etype=kind, name=f"{name}.i.ptr")
    x = b.load(at, f"{name}.i", align=dtype.size, typ=ir.VectorType(kind, count) if count else kind)
    return b.trunc(x, typed(dtype, count)) if dtype.is_bool else x


def arranged(function: Any, scalars: Sequence[Any], attrs: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of a call: inputs that are left out stand among the attributes, as None."""
    code = getattr(function, "__code__", None)
    names = code.co_varnames[: code.co_argcount] if code is not None else ()
    if not any(n in attrs for n in names):
        return list(scalars), dict(attrs)
    rest = iter(scalars)
    return [attrs[n] if n in attrs else next(rest) for n in names], {k: v for k, v in attrs.items() if k not in names}


Elements = Sequence[tuple[ir.Value, DType]]


def stage_elements(
    trace: ElementTrace, function: Callable[..., Any], elements: Elements, attrs: Mapping[str, Any]
) -> KernelScalar:
    """Stage a kernel's function on these elements; return its result. Raises what `Staging.stage` raises."""
    result: KernelScalar = trace.stage(
        function, lambda: arranged(function, [KernelScalar(x, d) for x, d in elements], attrs)
    )
    return result


# ---- functions inline ------------------------------------------------------------------------------------------------


class Facts(NamedTuple):
    """What a function on scalars is: its result's dtype, its instructions as text and their number, whether it has
    loops."""

    dtype: DType
    text: str
    weight: int
    endless: bool


def look_at(function: InlinedKernel) -> Facts:
    """Stage a function once, on single elements, to see what it is."""
    module = ir.Module(function.name)
    b = define(module, function.name, ir.VoidType(), [("", KIND[d]) for d in function.inputs])
    alone = b.function
    trace = ElementTrace(b, function.name, 0, function.fast)
    y = stage_elements(trace, function.function, list(zip(alone.args, function.inputs)), function.attrs)
    b.comment(f"gives {y.x.get_reference()} {y.dtype.short}")
    b.ret_void()
    weight = sum(len(block.instructions) for block in alone.blocks)
    return Facts(y.dtype, str(module), weight, len(alone.blocks) > 1)


def inlined(function: InlinedKernel, xs: Sequence[Value]) -> Value:
    """Stage a function on values of the kernel that is being staged: vectors are as long as the longest."""
    outer, count = current(), max(x.count for x in xs)
    trace = ElementTrace(outer.builder, function.name, count, function.fast)
    trace.polls = outer.functions_poll
    y = stage_elements(trace, function.function, [(x.splat(count).x, x.dtype) for x in xs], function.attrs)
    return Value(y.x, y.dtype)
