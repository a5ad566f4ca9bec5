"""Element-wise kernels: a function on scalars, staged into an LLVM loop over arrays.

Lives here: the loop, staging the function in it, `compile_elementwise`.
Not here: scalars and calls while it is staged (scalars.py), control flow (staged.py), what an operator becomes
(lowering.py), compiling, keeping and loading code (native/), choosing kernels (ops/kernels.py).

The function runs on `KernelScalar`s, which stand for a vector of elements in the loop and for one element in what is
left at its end; each operator it calls is looked up in LOWER by name. So `ow.minimum(x, 1.0)` means in a kernel what
it means everywhere.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from .. import staging
from ..core.dtypes import DType, of_numpy
from ..core.errors import SignatureError
from ..ops import dispatch
from . import staged  # noqa: F401  registers what control flow on scalars means
from .lanes import I1, I64, Lanes
from .lowering import KINDS
from .native.store import find_module
from .scalars import KernelScalar, KernelTrace
from .target import Target, host

_BYTE, _POINTER = ir.IntType(8), ir.PointerType()


def emit(function: Callable[..., Any], name: str, inputs: Sequence[np.dtype], attrs: dict[str, Any],
         target: Target | None = None) -> tuple[ir.Module, DType]:  # fmt: skip
    """The module of one kernel, `void name(out, inputs..., n)` over contiguous arrays, and the dtype it gives.

    target: by default this processor; its vectors are what the loop works on.
    raises UnimplementedError or SignatureError naming kernel and operator for what kernels cannot express
    """
    module = ir.Module(name)
    found = [of_numpy(d) for d in inputs]
    loop = ir.Function(module, ir.FunctionType(ir.VoidType(), [_POINTER] * (len(inputs) + 1) + [I64]), name)
    names = function.__code__.co_varnames[: len(inputs)]
    for argument, arg_name in zip(loop.args, ("out", *names, "n")):
        argument.name = arg_name
        if argument.type == _POINTER:
            argument.attributes.add("noalias")
    out, *pointers, n = loop.args
    b = ir.IRBuilder(loop.append_basic_block("entry"))

    def body(count: int, i: ir.Value) -> DType:
        trace = KernelTrace(b, name, count)
        inputs = zip(pointers, found, names)
        scalars = [KernelScalar(_load(b, p, i, d, count, arg_name), d) for p, d, arg_name in inputs]
        return _store(b, out, i, _staged(trace, function, scalars, attrs))

    width = (target or host()).vector_bytes // 4
    vectors = b.and_(n, ir.Constant(I64, -width), "n.vectors")
    _loop(b, "i.loop", ir.Constant(I64, 0), vectors, width, lambda i: body(width, i))
    dtype = _loop(b, "i.rest", vectors, n, 1, lambda i: body(0, i))
    b.ret_void()
    return module, dtype


def _loop(b: ir.IRBuilder, name: str, start: ir.Value, end: ir.Value, step: int, body: Callable[[ir.Value], DType]
          ) -> DType:  # fmt: skip
    """`for i in range(start, end, step)`; gives what the body does."""
    before = b.block
    turn, done = b.append_basic_block(name), b.append_basic_block(f"{name}.done")
    b.cbranch(b.icmp_signed("<", start, end), turn, done)
    b.position_at_end(turn)
    i = b.phi(I64, "i")
    i.add_incoming(start, before)
    found = body(i)
    following = b.add(i, ir.Constant(I64, step), "i.next")
    i.add_incoming(following, b.block)
    b.cbranch(b.icmp_signed("<", following, end), turn, done)
    b.position_at_end(done)
    return found


def _load(b: ir.IRBuilder, pointer: ir.Value, i: ir.Value, dtype: DType, count: int, name: str) -> Lanes:
    stored = _BYTE if dtype.is_bool else KINDS[dtype]
    at = b.gep(pointer, [i], source_etype=stored, name=f"{name}.i.ptr")
    x = b.load(at, f"{name}.i", align=dtype.size, typ=ir.VectorType(stored, count) if count else stored)
    return Lanes(b, x).to(I1) if dtype.is_bool else Lanes(b, x)


def _store(b: ir.IRBuilder, pointer: ir.Value, i: ir.Value, y: KernelScalar) -> DType:
    lanes = y.lanes.to(_BYTE) if y.dtype.is_bool else y.lanes
    b.store(lanes.x, b.gep(pointer, [i], source_etype=lanes.kind, name="out.i.ptr"), align=y.dtype.size)
    return y.dtype


def _converted(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with its control flow staged; itself where its source is not to be had."""
    try:
        return staging.to_graph(function)
    except ValueError:
        return function


def _staged(trace: KernelTrace, function: Callable[..., Any], scalars: Sequence[KernelScalar], attrs: dict[str, Any]
            ) -> KernelScalar:  # fmt: skip
    """What the function gives. Raises SignatureError for a dtype that kernels do not have."""
    state = dispatch.state
    saved = state.trace, state.tapes
    state.trace, state.tapes = trace, ()
    try:
        with staging.converting(True):
            result = trace.to_tensor(_converted(function)(*scalars, **attrs))
    finally:
        state.trace, state.tapes = saved
    if result.dtype not in KINDS:
        raise SignatureError(op=trace.name, what="the kernel gives a dtype that kernels do not have",
                             found=result.dtype.name)  # fmt: skip
    return result


class CompiledKernel:
    """Machine code of one kernel for one choice of dtypes and attributes. dtype: NumPy's, of the result."""

    __slots__ = ("dtype", "run")

    def __init__(self, address: int, arguments: int, dtype: np.dtype) -> None:
        self.dtype = dtype
        kinds = [ctypes.c_void_p] * arguments + [ctypes.c_int64]
        self.run = ctypes.CFUNCTYPE(None, *kinds)(address)


def compile_elementwise(function: Callable[..., Any], name: str, inputs: Sequence[np.dtype], attrs: dict[str, Any]
                        ) -> CompiledKernel:  # fmt: skip
    """Stage, optimise and load one kernel."""
    full = f"{name}.{'_'.join(of_numpy(d).short for d in inputs)}"
    module, dtype = emit(function, full, inputs, attrs)
    return CompiledKernel(find_module(full, str(module), full).address, len(inputs) + 1, dtype.np)
