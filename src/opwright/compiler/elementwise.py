"""Kernels on elements as machine code over whole arrays, and the entry by which Python calls one.

Lives here: `compile_elementwise`, `CompiledKernel`; the entry's instructions, and its function object.
Not here: staging the kernel (language/elements.py), compiling, caching and loading code (native/), the layout of
Python's objects (native/builtins.py), the selection of kernels (ops/kernels.py).

    PyObject *NAME.call(PyObject *self, PyObject *const *arguments, Py_ssize_t n)      out, then the inputs: arrays

The entry returns 1 if the arrays are dense, have the loop's dtypes and one shape; otherwise it does nothing and returns
0. `self` is the address of the dtype objects. Long loops run without the GIL. A call from Python takes 0.1 us; through
ctypes and `array.ctypes.data` it would take 4.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir

from ..core.dtypes import of_numpy
from ..core.errors import InternalError
from .language.compilation import compile_kernel
from .language.elements import emit_elements
from .language.llvm_types import I32, I64, POINTER
from .language.trace import define
from .memory import LARGE, large
from .native.builtins import CONTIGUOUS, DATA, DTYPE, FLAGS, RANK, SEVERAL, SIZES, Method, bound, items_offset
from .native.image import POLL, runs_images
from .native.workers import raise_pending
from .target import Target

LONG = 1 << 15  # elements from which the GIL is released


class CompiledKernel:
    """Machine code of one kernel for one choice of dtypes and attributes.

    dtype: NumPy's, of the result. run(out, *inputs): compute over `np.ndarray`s of one shape; return whether they are
    dense, aligned and of its dtypes, in NumPy's own dtype objects.
    """

    __slots__ = ("dtype", "dtypes", "run")

    def __init__(self, run: Callable[..., Any], dtypes: Sequence[np.dtype]) -> None:
        self.run, self.dtypes, self.dtype = run, tuple(dtypes[1:]), dtypes[0]

    def over(self, shape: tuple[int, ...], arrays: Sequence[np.ndarray]) -> np.ndarray:
        """Return an empty result for arrays of this shape."""
        out = np.empty(shape, self.dtype) if arrays[0].nbytes < LARGE else large(shape, self.dtype)
        if not self.run(out, *arrays):
            fitting = [np.empty(shape, d) for d in self.dtypes]
            for copy, a in zip(fitting, arrays):
                copy[...] = a
            if not self.run(out, *fitting):
                raise InternalError(
                    what="a kernel refuses arrays that were allocated for it",
                    found=", ".join(f"{a.dtype}{list(a.shape)}" for a in fitting),
                )
        return out


def compile_elementwise(
    function: Callable[..., Any], name: str, inputs: Sequence[np.dtype], attrs: dict[str, Any], fast: bool | None = None
) -> CompiledKernel:
    """Stage, optimize and load a kernel. fast: as of `emit_elements`."""
    input_dtypes = [of_numpy(d) for d in inputs]
    full = f"{name}.{'_'.join(d.short for d in input_dtypes)}"
    called = runs_images() and items_offset() is not None  # Python's objects are read by machine code
    staged: list[Any] = []

    def stage(target: Target, polls: bool) -> ir.Module:
        module, dtype = emit_elements(function, full, inputs, attrs, target, fast, polls)
        staged[:] = module, [np.dtype(d.np) for d in (dtype, *input_dtypes)]
        if called:
            _add_entry(module, module.globals[full], 1 + len(input_dtypes))
        return module

    code = compile_kernel(f"{full}.call" if called else full, stage)
    module, dtypes = staged
    if not called:
        return CompiledKernel(_by_address(code.address, dtypes), dtypes)
    run = _bound_entry(code.address, dtypes)
    return CompiledKernel(_ending(run) if POLL in module.globals else run, dtypes)


def _ending(run: Callable[..., int]) -> Callable[..., int]:
    """Implement `CompiledKernel.run` for a loop that a signal may end, which raises the handler's exception."""

    def checked(out: np.ndarray, *arrays: np.ndarray) -> int:
        fits = run(out, *arrays)
        raise_pending()
        return fits

    return checked


def _by_address(address: int, dtypes: Sequence[np.dtype]) -> Callable[..., bool]:
    """Implement `CompiledKernel.run` for Python versions whose objects machine code does not read."""
    loop = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(dtypes), ctypes.c_int64)(address)

    def run(out: np.ndarray, *arrays: np.ndarray) -> bool:
        if not all(a.flags.c_contiguous and a.flags.aligned for a in arrays):
            return False
        loop(out.ctypes.data, *[a.ctypes.data for a in arrays], out.size)
        return True

    return run


# ---- the entry -------------------------------------------------------------------------------------------------------


def _add_entry(module: ir.Module, loop: ir.Function, arrays: int) -> None:
    """Add the entry `NAME.call` for a loop `void(addresses..., n)`."""
    b = define(module, f"{loop.name}.call", POINTER, [("self", POINTER), ("arguments", POINTER), ("count", I64)])
    entry = b.function
    fits, whole, apart, done = (entry.append_basic_block(n) for n in ("fits", "whole", "apart", "done"))
    refused = entry.append_basic_block("refused")
    table = b.call(_outside(module, "PyLong_AsVoidPtr", POINTER, [POINTER]), [entry.args[0]], "dtypes")
    objects = [_load(b, entry.args[1], i, POINTER, f"array.{i}") for i in range(arrays)]
    rank = b.trunc(_load(b, objects[0], RANK, I64, "rank.word"), I32, "rank")
    sizes = _load(b, objects[0], SIZES, POINTER, "sizes")
    for i, array in enumerate(objects):
        dtype = b.icmp_signed("==", _load(b, array, DTYPE, I64, "dtype"), _load(b, table, i, I64, "wanted"))
        flags = b.and_(_load(b, array, FLAGS, I64, "flags"), ir.Constant(I64, CONTIGUOUS))
        dense = b.icmp_signed("==", flags, ir.Constant(I64, CONTIGUOUS))
        alike = b.icmp_signed("==", b.trunc(_load(b, array, RANK, I64, "rank.word"), I32), rank)
        going = entry.append_basic_block(f"looked.{i}")
        b.cbranch(b.and_(b.and_(dtype, dense), alike), going, refused)
        b.position_at_end(going)
    n = _elements(b, rank, sizes, [_load(b, a, SIZES, POINTER, "sizes") for a in objects[1:]], refused)
    b.branch(fits)
    b.position_at_end(fits)
    addresses = [_load(b, a, DATA, POINTER, "address") for a in objects]
    b.cbranch(b.icmp_signed("<", n, ir.Constant(I64, LONG)), whole, apart)
    b.position_at_end(whole)
    b.call(loop, [*addresses, n])
    b.branch(done)
    b.position_at_end(apart)
    thread = b.call(_outside(module, "PyEval_SaveThread", POINTER, []), [])
    b.call(loop, [*addresses, n])
    b.call(_outside(module, "PyEval_RestoreThread", ir.VoidType(), [POINTER]), [thread])
    b.branch(done)
    number = _outside(module, "PyLong_FromLongLong", POINTER, [I64])
    for block, result in ((done, 1), (refused, 0)):
        b.position_at_end(block)
        b.ret(b.call(number, [ir.Constant(I64, result)]))


def _load(b: ir.IRBuilder, base: ir.Value, word: int, kind: ir.Type, name: str) -> ir.Value:
    pointer = b.gep(base, [ir.Constant(I64, word)], source_etype=I64)
    return b.load(pointer, name, align=8, typ=kind)


def _outside(module: ir.Module, name: str, result: ir.Type, arguments: list[ir.Type]) -> ir.Function:
    return module.globals.get(name) or ir.Function(module, ir.FunctionType(result, arguments), name)


def _elements(
    b: ir.IRBuilder, rank: ir.Value, sizes: ir.Value, others: Sequence[ir.Value], refused: ir.Block
) -> ir.Value:
    """Return the product of the sizes; branch to `refused` if others differ."""
    before, function = b.block, b.function
    head, body, end = (function.append_basic_block(f"axis.{n}") for n in ("head", "turn", "done"))
    b.branch(head)
    b.position_at_end(head)
    axis, n = b.phi(I32, "axis"), b.phi(I64, "n")
    b.cbranch(b.icmp_signed("<", axis, rank), body, end)
    b.position_at_end(body)
    size = b.load(b.gep(sizes, [b.sext(axis, I64)], source_etype=I64), "size", align=8, typ=I64)
    for other in others:
        same = b.load(b.gep(other, [b.sext(axis, I64)], source_etype=I64), align=8, typ=I64)
        going = function.append_basic_block("axis.alike")
        b.cbranch(b.icmp_signed("==", same, size), going, refused)
        b.position_at_end(going)
    more, following = b.mul(n, size), b.add(axis, ir.Constant(I32, 1))
    for phi, first, then in ((axis, ir.Constant(I32, 0), following), (n, ir.Constant(I64, 1), more)):
        phi.add_incoming(first, before)
        phi.add_incoming(then, b.block)
    b.branch(head)
    b.position_at_end(end)
    return n


_kept: list[Any] = []  # definitions and dtypes that builtin functions point to


def _bound_entry(address: int, dtypes: Sequence[np.dtype[Any]]) -> Callable[..., int]:
    """Return the entry at an address as a Python function: run(out, *inputs), all `np.ndarray` -> 1, or 0 if they do
    not fit. dtypes: of all, in order."""
    table = (ctypes.c_int64 * len(dtypes))(*map(id, dtypes))
    method = Method(b"run", address, SEVERAL, None)
    _kept.append((method, table, tuple(dtypes)))
    return bound(method, ctypes.addressof(table))
