"""Polls in the code of loops: now and then a kernel asks whether it is to go on.

Lives here: `spend`, which counts work and polls.
Not here: what a poll does (native/interrupts.py), the loops (language/branches.py, language/masks.py).

A poll is a call. A loop that called at each turn would be slower, so a kernel has a budget, which loops take their
turns off; where nothing is left of it the kernel polls.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from .language.llvm_types import I64
from .native.image import POLL

TURNS = 1 << 16
"""Iterations between two polls: a fraction of a millisecond of the shortest iterations."""


def spend(trace: Any, turns: ir.Value) -> None:
    """Subtract iterations, an int64, from the budget of the kernel that is being staged, and poll when it is used up.

    Code that must end returns the poll's result, or nothing if its function returns nothing.
    """
    b = trace.builder
    if trace.budget is None:
        with b.goto_entry_block():
            trace.budget = b.alloca(I64)
            b.store(ir.Constant(I64, TURNS), trace.budget)
    left = b.sub(b.load(trace.budget, typ=I64), turns)
    b.store(left, trace.budget)
    ask, ended, on = (b.append_basic_block(f"poll{part}") for part in ("", ".ended", ".over"))
    b.cbranch(b.icmp_signed("<", left, ir.Constant(I64, 0)), ask, on)
    b.position_at_end(ask)
    b.store(ir.Constant(I64, TURNS), trace.budget)
    poll = b.module.globals.get(POLL) or ir.Function(b.module, ir.FunctionType(I64, []), POLL)
    answer = b.call(poll, [])
    b.cbranch(b.icmp_signed("==", answer, ir.Constant(I64, 0)), on, ended)
    b.position_at_end(ended)
    if isinstance(b.function.function_type.return_type, ir.VoidType):
        b.ret_void()
    else:
        b.ret(answer)
    b.position_at_end(on)
