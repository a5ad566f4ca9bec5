"""One form on NumPy arrays: its selector's steps, run whole or in parts.

Lives here: `buffer`, `running_sums`, `run`, `split`, `fastest`, `targets`, `compiles_for`.
Not here: what is expected (the tests).
"""

from __future__ import annotations

import ctypes
import time
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from opwright.compiler.language.compilation import KernelFamily
from opwright.compiler.loops.buffers import Buffer
from opwright.compiler.loops.expressions import apply, arg
from opwright.compiler.loops.graph import LoopGraph, parents
from opwright.compiler.loops.ops import LoopOp, Scan
from opwright.compiler.loops.planner import plan_of
from opwright.compiler.loops.plans import LoopPlan
from opwright.compiler.native.executor import ROW, BoundPlan
from opwright.compiler.target import NAMED, host
from opwright.core import dtypes

_KERNEL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)


def buffer(x: np.ndarray, name: str = "x") -> Buffer:
    """A buffer of an array's shape and dtype."""
    return Buffer(name, dtypes.as_dtype(x.dtype), x.shape)


def running_sums(y: Buffer, x: Buffer, axis: int) -> Scan:
    """Cumulative sums along an axis."""
    return Scan(y, (x,), axis, apply("add", arg(0, x.dtype), arg(1, x.dtype)), 0)


def _bound(
    forms: Sequence[LoopOp], inputs: Mapping[Buffer, np.ndarray], threads: int = 1
) -> tuple[LoopPlan, BoundPlan, np.ndarray]:
    last = forms[-1].output
    whole = ([last, *parents(last)])[-1]
    plan = plan_of(LoopGraph("test", tuple(inputs), (whole,), tuple(forms)))
    plan.pack()
    out = np.empty(whole.shape, whole.dtype.np)
    out.view(np.uint8).fill(0x5A) if out.size and out.ndim else None
    running = plan.bind(threads)
    running.connect({whole: out.ctypes.data, **{b: x.ctypes.data for b, x in inputs.items()}})
    return plan, running, out


def run(forms: LoopOp | Sequence[LoopOp], inputs: Mapping[Buffer, np.ndarray], threads: int = 1) -> np.ndarray:
    """Return the output of the last operation (with the array that it is a slice of), in marked memory."""
    _, running, out = _bound([forms] if isinstance(forms, LoopOp) else forms, inputs, threads)
    running.run()
    return out


def run_in_used_memory(form: LoopOp, inputs: Mapping[Buffer, np.ndarray]) -> np.ndarray:
    """Return the output of an operation whose temporaries are where other ones were before: NaN, not zeros."""
    _, running, out = _bound([form], inputs)
    arena = running.executor._keep[0]
    assert arena.nbytes == running.image.arena
    arena.fill(0xFF)
    running.run()
    return out


def split(form: LoopOp, inputs: Mapping[Buffer, np.ndarray], parts: int) -> np.ndarray:
    """Run with the work items of each step split into several calls, in reverse order."""
    plan, running, out = _bound([form], inputs)
    scratch = np.zeros(max((s.scratch for s in plan.steps), default=0) + 64, np.uint8)
    room = -(-scratch.ctypes.data // 64) * 64
    for number, s in enumerate(plan.steps):
        words = int(running.executor.block[ROW * number + 1])
        for part in reversed(range(parts)):
            low, high = s.items * part // parts, s.items * (part + 1) // parts
            if low < high:
                assert _KERNEL(s.code.address)(words, low, high, room) == 0
    return out


def fastest(form: LoopOp, inputs: Mapping[Buffer, np.ndarray], turns: int = 100) -> float:
    """Return the minimum time of several runs, in seconds."""
    _, running, out = _bound([form], inputs)
    times = []
    for _ in range(turns):
        start = time.perf_counter()
        running.run()
        times.append(time.perf_counter() - start)
    del out  # it had to live until now
    return min(times)


def compiles_for(names: Sequence[str], family: KernelFamily, **constants: Any) -> None:
    """Make object code of a kernel for targets by name."""
    for name in names:
        code = NAMED[name].object_code(str(family.emit(NAMED[name], **constants)))
        assert len(code) > 100, name


def targets(*families: tuple[KernelFamily, dict[str, Any]]) -> Any:
    """Parametrise a test by families, their constants and names of targets: the first for one of another processor;
    slow, each for all."""
    rows = []
    for family, constants in families:
        assert set(constants) == set(family.constants), f"{family.name} has constants {sorted(family.constants)}"
        entry = family.entry(constants)
        if not rows:
            rows.append(pytest.param(family, constants, (one_foreign(entry),), id=f"{entry} for one"))
        rows.append(pytest.param(family, constants, tuple(NAMED), id=f"{entry} for all", marks=pytest.mark.slow))
    return pytest.mark.parametrize(("family", "constants", "names"), rows)


def one_foreign(word: str) -> str:
    """The name of a target of another instruction set, always the same for a word: many words have all targets."""
    own = host().triple.split("-")[0]
    names = [name for name, target in NAMED.items() if target.triple.split("-")[0] != own]
    return names[zlib.crc32(word.encode()) % len(names)]
