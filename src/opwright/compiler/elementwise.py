"""Element-wise kernels: a function on scalars, staged into an LLVM loop over arrays.

Lives here: the loop, staging the function in it, `compile_elementwise`; staging it inline in other kernels.
Not here: such functions as parts of expressions (inlined_kernels.py), scalars and calls while it is staged
(scalars.py), control flow (staged.py), what an operator becomes (lowering.py), how Python enters (entering.py),
compiling, keeping and loading code (native/), choosing kernels (ops/kernels.py).

The function runs on `KernelScalar`s, which stand for a vector of elements in the loop and for one element in what is
left at its end; each operator it calls is looked up in LOWER by name. So `ow.minimum(x, 1.0)` means in a kernel what
it means everywhere.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from llvmlite import ir

from .. import staging
from ..core.dtypes import DType, of_numpy
from ..core.errors import InternalError, InvalidArgumentError, OpError, SignatureError, compose
from ..core.frames import raised_at
from ..ops import dispatch
from . import staged  # noqa: F401  registers what control flow on scalars means
from .entering import add_entry, bound_entry
from .lanes import I1, I64, KINDS, Lanes
from .native.image import POLL, runs_images
from .native.interrupts import raise_pending
from .native.objects import items_offset
from .native.store import find_module
from .results import LARGE, large
from .scalars import KernelScalar, KernelTrace, arranged
from .target import Target, host

if TYPE_CHECKING:
    from .inlined_kernels import InlinedKernel
    from .language import Value

_BYTE, _POINTER = ir.IntType(8), ir.PointerType()


def emit(function: Callable[..., Any], name: str, inputs: Sequence[np.dtype], attrs: dict[str, Any],
         target: Target | None = None, fast: bool | None = None, polls: bool = False
         ) -> tuple[ir.Module, DType]:  # fmt: skip
    """The module of one kernel, `void name(out, inputs..., n)` over contiguous arrays, and the dtype it gives.

    target: by default this processor; its vectors are what the loop works on. fast: by default as `fast_math` is.
    polls: whether the function's own loops are ended by signals, by a function of this process.
    raises UnimplementedError or SignatureError naming kernel and operator for what kernels cannot express
    """
    module = ir.Module(name)
    found = [of_numpy(d) for d in inputs]
    loop = ir.Function(module, ir.FunctionType(ir.VoidType(), [_POINTER] * (len(inputs) + 1) + [I64]), name)
    names = [n for n in function.__code__.co_varnames if n not in attrs][: len(inputs)]
    for argument, arg_name in zip(loop.args, ("out", *names, "n")):
        argument.name = arg_name
        if argument.type == _POINTER:
            argument.attributes.add("noalias")
    out, *pointers, n = loop.args
    b = ir.IRBuilder(loop.append_basic_block("entry"))

    def body(count: int, i: ir.Value) -> DType:
        trace = KernelTrace(b, name, count, fast)
        trace.polls = polls
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


@functools.lru_cache(maxsize=256)
def _converted(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with its control flow staged; itself where its source is not to be had."""
    try:
        converted: Callable[..., Any] = staging.to_graph(function)
        return converted
    except ValueError:
        return function


def _staged(trace: KernelTrace, function: Callable[..., Any], scalars: Sequence[KernelScalar], attrs: dict[str, Any]
            ) -> KernelScalar:  # fmt: skip
    """What the function gives.

    raises SignatureError for a dtype that kernels do not have, InvalidArgumentError for what the function raises beside
    OpErrors and the errors of Python that say by themselves what is wrong with a function
    """
    state = dispatch.state
    saved = state.trace, state.tapes
    state.trace, state.tapes = trace, ()
    try:
        with staging.converting(True):
            given, rest = arranged(function, scalars, attrs)
            result = trace.to_tensor(_converted(function)(*given, **rest))
    except OpError as error:
        if error.op != trace.name:  # it is about an operator that the kernel calls
            error.args = (compose(f"in its kernel, {error.message}", op=trace.name, at=raised_at(error)),)
            error.op = trace.name
        raise
    except (TypeError, ValueError, NameError, MemoryError):
        raise
    except Exception as error:
        what = f"its kernel cannot be staged: {type(error).__name__}: {error}"
        raise InvalidArgumentError(op=trace.name, at=raised_at(error), what=what) from error
    finally:
        state.trace, state.tapes = saved
    if result.dtype not in KINDS:
        raise SignatureError(op=trace.name, what="the kernel gives a dtype that kernels do not have",
                             found=result.dtype.name)  # fmt: skip
    return result


class CompiledKernel:
    """Machine code of one kernel for one choice of dtypes and attributes.

    dtype: NumPy's, of the result. run(out, *inputs): over `np.ndarray`s of one shape; whether they were what it takes:
    dense, aligned and of its dtypes, in NumPy's own objects for them.
    """

    __slots__ = ("dtype", "dtypes", "run")

    def __init__(self, run: Callable[..., Any], dtypes: Sequence[np.dtype]) -> None:
        self.run, self.dtypes, self.dtype = run, tuple(dtypes[1:]), dtypes[0]

    def over(self, shape: tuple[int, ...], arrays: Sequence[np.ndarray]) -> np.ndarray:
        """The result for arrays of this shape and of the dtypes."""
        out = np.empty(shape, self.dtype) if arrays[0].nbytes < LARGE else large(shape, self.dtype)
        if not self.run(out, *arrays):
            fitting = [np.empty(shape, d) for d in self.dtypes]
            for copy, a in zip(fitting, arrays):
                copy[...] = a
            if not self.run(out, *fitting):
                raise InternalError(what="a kernel refuses arrays that were made for it",
                                    found=", ".join(f"{a.dtype}{list(a.shape)}" for a in fitting))  # fmt: skip
        return out


def compile_elementwise(function: Callable[..., Any], name: str, inputs: Sequence[np.dtype], attrs: dict[str, Any],
                        fast: bool | None = None) -> CompiledKernel:  # fmt: skip
    """Stage, optimise and load one kernel. fast: as of `emit`."""
    found = [of_numpy(d) for d in inputs]
    full = f"{name}.{'_'.join(d.short for d in found)}"
    module, dtype = emit(function, full, inputs, attrs, fast=fast, polls=runs_images())
    dtypes = [np.dtype(d.np) for d in (dtype, *found)]
    if runs_images() and items_offset() is not None:
        entry = add_entry(module, module.globals[full], len(dtypes))
        run = bound_entry(find_module(full, str(module), entry).address, dtypes)
        return CompiledKernel(_ending(run) if POLL in module.globals else run, dtypes)
    return CompiledKernel(_by_address(find_module(full, str(module), full).address, dtypes), dtypes)


def _ending(run: Callable[..., int]) -> Callable[..., int]:
    """`CompiledKernel.run` of a loop that a signal may end: it raises what the signal's handler raised."""

    def checked(out: np.ndarray, *arrays: np.ndarray) -> int:
        fits = run(out, *arrays)
        raise_pending()
        return fits

    return checked


def _by_address(address: int, dtypes: Sequence[np.dtype]) -> Callable[..., bool]:
    """`CompiledKernel.run` of a loop where Python's objects are not read by machine code."""
    loop = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(dtypes), ctypes.c_int64)(address)

    def run(out: np.ndarray, *arrays: np.ndarray) -> bool:
        if not all(a.flags.c_contiguous and a.flags.aligned for a in arrays):
            return False
        loop(out.ctypes.data, *[a.ctypes.data for a in arrays], out.size)
        return True

    return run


# ---- functions inline ------------------------------------------------------------------------------------------------


class Facts(NamedTuple):
    """What a function on scalars is: the dtype it gives, its instructions as text and their number, and whether it has
    loops."""

    dtype: DType
    text: str
    weight: int
    endless: bool


def look_at(function: InlinedKernel) -> Facts:
    """Stage a function once, on single elements, to see what it is."""
    module = ir.Module(function.name)
    kinds = [KINDS[d] for d in function.inputs]
    alone = ir.Function(module, ir.FunctionType(ir.VoidType(), kinds), function.name)
    b = ir.IRBuilder(alone.append_basic_block("entry"))
    scalars = [KernelScalar(Lanes(b, x), d) for x, d in zip(alone.args, function.inputs)]
    found = _staged(KernelTrace(b, function.name, 0, function.fast), function.function, scalars, function.attrs)
    b.comment(f"gives {found.lanes.x.get_reference()} {found.dtype.short}")
    b.ret_void()
    weight = sum(len(block.instructions) for block in alone.blocks)
    return Facts(found.dtype, str(module), weight, len(alone.blocks) > 1)


def inlined(function: InlinedKernel, xs: Sequence[Value]) -> Value:
    """What a function gives of values of the kernel that is being staged: vectors are as long as the longest."""
    from .language.trace import current
    from .language.values import Value

    count, b = max(x.count for x in xs), current().builder
    scalars = [KernelScalar(Lanes(b, x.splat(count).x), x.dtype) for x in xs]
    trace = KernelTrace(b, function.name, count, function.fast)
    trace.polls = current().functions_poll
    found = _staged(trace, function.function, scalars, function.attrs)
    return Value(found.lanes.x, found.dtype)


def arrays_function(function: InlinedKernel) -> Callable[..., np.ndarray]:
    """The function over arrays of one shape, as machine code."""
    compiled = compile_elementwise(function.function, function.name, [np.dtype(d.np) for d in function.inputs],
                                   function.attrs, function.fast)  # fmt: skip
    return lambda *arrays: compiled.over(arrays[0].shape, arrays)
