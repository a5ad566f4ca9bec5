"""Walsh-Hadamard transforms of rows, in place and in stages.

Lives here: the selector of Hadamard, its family.
Not here: Fourier transforms (fourier.py), the rule (../lowering/spectral.py).

A stage adds and subtracts elements that are `half` apart; stages within a vector shuffle it. Additions are those of the
official kernel, in its order, so that results have the same bits.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import float32
from .. import language as kl
from ..language import f32, i64, ptr
from ..loops.domain_ops import Hadamard
from . import NoKernel, selector
from .tiling import grain, vector_lanes

if TYPE_CHECKING:
    from ..language import Value, Work
    from ..loops.plan_builder import Builder


@kl.family
def hadamard(work: Work, x: ptr[f32], y: ptr[f32], size: i64, scale: f32, *, lanes: int) -> None:
    """Transform a run of `size` elements, a multiple of the lanes. A work item is a run."""
    for item in work.items():
        source, run = x + item * size, y + item * size
        for i in range(0, size, lanes):
            run.store(_within(source.load(i, lanes), lanes), i)
        half = kl.value(lanes)
        while half < size:
            for start in range(0, size, half * 2):
                for i in range(start, start + half, lanes):
                    a, b = run.load(i, lanes), run.load(i + half, lanes)
                    run.store(a + b, i)
                    run.store(a - b, i + half)
            half = half * 2
        for i in range(0, size, lanes):
            run.store(run.load(i, lanes) * scale, i)


def _within(v: Value, lanes: int) -> Value:
    """Apply the stages within a vector."""
    half = 1
    for _ in range(lanes.bit_length() - 1):
        other = kl.shuffle(v, None, [i ^ half for i in range(lanes)])
        is_first = kl.constant_vector(kl.bool1, [not i & half for i in range(lanes)])
        v = kl.select(is_first, v + other, other - v)
        half = 2 * half
    return v


@selector(Hadamard)
def select_hadamard(form: Hadamard, build: Builder) -> None:
    """Select for float32."""
    x, y, size = form.input, form.output, form.size
    if any(b.parent is not None or b.dtype is not float32 for b in (x, y)) or not x.size or x.size % size:
        raise NoKernel(f"a transform of {x!r} to {y!r}")
    items = x.size // size
    words: list[Any] = [build.pointer(x), build.pointer(y), size, float(np.float32(1.0 / np.sqrt(size)))]
    stages = int(math.log2(size)) + 1
    build.step(hadamard.code(lanes=vector_lanes(size)), words, items, chunk=grain(4 * size * stages, items))
