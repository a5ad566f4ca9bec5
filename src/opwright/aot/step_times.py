"""The times of a library's steps on this processor.

Lives here: `step_times`. Not here: what the steps are (build_report.py).

The object file is emitted again with its kernels as global functions, linked into this process, and its steps are
called one after the other, as the library does. A call from Python costs about a microsecond, which is measured with a
step of no items and subtracted.
"""

from __future__ import annotations

import ctypes
import time

import numpy as np

from ..compiler.loops.buffers import Buffer
from ..compiler.loops.plans import JUMP, Address, ArenaOffset, KernelStep, word
from ..compiler.native.executor import KERNEL, aligned
from ..compiler.native.image import load_images
from ..compiler.native.linker import link
from .memory_layouts import MemoryLayout, constant_of, weights_of
from .model_plans import ModelPlan
from .modules import emit_object, symbols_of

RUNS = 15


def step_times(model: ModelPlan, name: str, layout: MemoryLayout, runs: int = RUNS) -> dict[int, float] | None:
    """Return seconds of each step by its number over all plans in order, the least of several runs on inputs of zeros.

    None for plans with jumps, whose steps run as often as their values decide.
    """
    steps = [(planned, step) for s in model.signatures for planned in s.plans for step in planned.plan.steps]
    if any(step.covers == JUMP for _, step in steps):
        return None
    functions = load_images([link(emit_object(model, name, layout, global_kernels=True))])[0]
    symbols = symbols_of(model, name)
    memory = aligned(max(layout.arena, 1))
    weights = aligned(max(layout.weights, 1))
    weights[: layout.weights] = np.frombuffer(weights_of(layout), np.uint8)
    outside: dict[int, np.ndarray] = {}
    calls = []
    for number, (planned, step) in enumerate(steps):
        if step.covers:
            continue
        scratch = memory.ctypes.data + layout.scratch(planned.plan)
        words = _words(step, memory.ctypes.data, weights.ctypes.data, layout, outside)
        kernel = KERNEL(functions[symbols[step.code.address]])
        calls.append((number, kernel, ctypes.addressof(words), step.items, scratch, words))
    times = dict.fromkeys((number for number, *_ in calls), float("inf"))
    overhead = float("inf")
    clock = time.perf_counter
    for _ in range(runs):
        for number, kernel, address, items, scratch, _words_of in calls:
            start = clock()
            kernel(address, 0, items, scratch)
            middle = clock()
            kernel(address, 0, 0, scratch)
            end = clock()
            times[number] = min(times[number], middle - start)
            overhead = min(overhead, end - middle)
    return {number: max(seconds - overhead, 0.0) for number, seconds in times.items()}


def _words(
    step: KernelStep, arena: int, weights: int, layout: MemoryLayout, outside: dict[int, np.ndarray]
) -> ctypes.Array[ctypes.c_int64]:
    """Return the words of a step. outside: memory of inputs, outputs and state by buffer, zeros at first."""
    values = []
    for w, kind in zip(step.words, step.code.parameters, strict=True):
        if isinstance(w, ArenaOffset):
            values.append(arena + w.offset)
        elif isinstance(w, Address):
            array, buffer = constant_of(w.of), w.of
            if array is not None or not isinstance(buffer, Buffer):
                values.append(weights + layout.places[id(array)] + w.offset)
                continue
            if id(buffer) not in outside:
                outside[id(buffer)] = aligned(max(buffer.size * buffer.dtype.size, 1))
            values.append(outside[id(buffer)].ctypes.data + w.offset)
        else:
            values.append(word(w, kind))
    return (ctypes.c_int64 * max(len(values), 1))(*values)
