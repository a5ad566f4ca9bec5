"""Running a function of values over arrays of float32, with vectors of any width."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir

from opwright.compiler import language as kl
from opwright.compiler.language import Value, f32
from opwright.compiler.language.llvm_types import F32, I64
from opwright.compiler.language.operators import KernelTrace
from opwright.compiler.native.store import find_module
from opwright.compiler.target import named
from opwright.scalar.table import FORMULA, FUNCTIONS, ScalarFunction


def exact_functions() -> dict[str, Callable[..., Value]]:
    """The exact code of float32 that rows of the table have, by name, as functions of values."""
    rows = [row for row in FUNCTIONS.values() if row.exact and not row.takes_float64]
    return {row.name: functools.partial(kl.apply, _code(row, "exact")) for row in rows}


def fast_functions() -> dict[str, Callable[..., Value]]:
    """Return the fast vector code of rows by name."""
    rows = [row for row in FUNCTIONS.values() if row.fast not in ("", FORMULA)]
    return {row.name: functools.partial(kl.apply, _code(row, "fast")) for row in rows}


def _code(row: ScalarFunction, accuracy: str) -> Callable[..., Value]:
    code = row.numerics(accuracy)
    assert code is not None
    return code


def compiled(function: Callable[..., Value], inputs: int, width: int) -> Callable[..., np.ndarray]:
    """`f(*arrays)`; width: of the vectors, 0 for one element at a time. The arrays' length is a multiple of it."""
    name = "lanes"
    module, pointer = ir.Module(name), ir.PointerType()
    loop = ir.Function(module, ir.FunctionType(ir.VoidType(), [pointer] * (inputs + 1) + [I64]), name)
    entry, turn, done = (loop.append_basic_block(n) for n in ("entry", "turn", "done"))
    b = ir.IRBuilder(entry)
    b.branch(turn)
    b.position_at_end(turn)
    i = b.phi(I64)
    i.add_incoming(ir.Constant(I64, 0), entry)
    kind = ir.VectorType(F32, width) if width else F32
    xs = [b.load(b.gep(p, [i], source_etype=F32), typ=kind, align=4) for p in loop.args[1:-1]]
    y = KernelTrace(b, name, named("generic")).run(lambda: function(*(Value(x, f32) for x in xs)))
    b.store(y.x, b.gep(loop.args[0], [i], source_etype=F32), align=4)
    following = b.add(i, ir.Constant(I64, width or 1))
    i.add_incoming(following, b.block)
    b.cbranch(b.icmp_signed("<", following, loop.args[-1]), turn, done)
    b.position_at_end(done)
    b.ret_void()
    run: Any = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (inputs + 1), ctypes.c_int64)(
        find_module(name, str(module), name).address
    )

    def call(*arrays: np.ndarray) -> np.ndarray:
        operands = [np.ascontiguousarray(a, np.float32) for a in arrays]
        out = np.empty_like(operands[0])
        run(out.ctypes.data, *[a.ctypes.data for a in operands], out.size)
        return out

    return call
