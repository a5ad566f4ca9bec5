"""Test that the scratch memory of kernels is bounded for tensors of any size, and that weights stay in the file.

The bound is a few times `SCRATCH`; without bands, tiles and blocks each of these programs takes several times more.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from quantize_harness import convert

import opwright as ow
from opwright.lite.ops.tiling import SCRATCH
from opwright.lite.runtime.memory import subgraph_memory
from thorough import sampled

OWN_OBJECTS = 200_000  # bytes of an interpreter of one operator: nodes, tensors, views


class Program(NamedTuple):
    """call: fn(x); shape: of x; whole: bytes of the largest array that a kernel in one piece would make; bound: of its
    parts. Products have a panel of rows as floats, of twice SCRATCH, next to the parts."""

    call: Callable[[Any], Any]
    shape: tuple[int, ...]
    whole: int
    bound: int = 3 * SCRATCH


def _w(*shape: int) -> Any:
    return ow.constant(np.random.RandomState(1).uniform(-0.1, 0.1, shape).astype(np.float32))


PROGRAMS = {
    "conv": Program(lambda x: ow.nn.conv2d(x, _w(3, 3, 32, 32), 1, "SAME"), (1, 56, 56, 32), 56 * 56 * 288 * 4),
    "conv_strided": Program(
        lambda x: ow.nn.conv2d(x, _w(5, 5, 8, 64), 2, "VALID"), (1, 180, 120, 8), 88 * 58 * 200 * 4
    ),
    "conv_wide": Program(lambda x: ow.nn.conv2d(x, _w(1, 9, 16, 16), 1, "SAME"), (1, 1, 16384, 16), 16384 * 144 * 4),
    "conv_batch": Program(lambda x: ow.nn.conv2d(x, _w(3, 3, 16, 16), 1, "SAME"), (64, 16, 16, 16), 64 * 256 * 144 * 4),
    "point": Program(lambda x: ow.nn.conv2d(x, _w(1, 1, 32, 64), 1, "SAME"), (1, 128, 128, 32), 128 * 128 * 64 * 4),
    "deep": Program(lambda x: ow.nn.conv2d(x, _w(3, 3, 384, 512), 1, "SAME"), (1, 7, 7, 384), 9 * 384 * 512 * 4),
    "depthwise": Program(
        lambda x: ow.nn.depthwise_conv2d(x, _w(3, 3, 64, 1), (1, 1, 1, 1), "SAME"),
        (1, 128, 128, 64),
        128 * 128 * 64 * 4,
    ),
    "transposed": Program(
        lambda x: ow.nn.conv2d_transpose(x, _w(3, 3, 16, 32), (1, 256, 256, 16), 2, "SAME"),
        (1, 128, 128, 32),
        256 * 256 * 16 * 4,
    ),
    "dense": Program(lambda x: ow.matmul(x, _w(1024, 2048)), (2, 1024), 1024 * 2048 * 4),
    "dense_rows": Program(lambda x: ow.matmul(x, _w(256, 256)), (8192, 256), 8192 * 256 * 4, 5 * SCRATCH),
    "max_pool": Program(lambda x: ow.nn.max_pool2d(x, 3, 2, "SAME"), (1, 256, 256, 32), 128 * 256 * 32 * 4),
    "average_pool": Program(lambda x: ow.nn.avg_pool2d(x, 3, 2, "SAME"), (1, 256, 256, 32), 128 * 256 * 32 * 4),
    "bilinear": Program(lambda x: ow.image.resize(x, (256, 256)), (1, 64, 64, 16), 256 * 256 * 16 * 4),
    "nearest": Program(lambda x: ow.image.resize(x, (256, 256), "nearest"), (1, 64, 64, 16), 256 * 256 * 16 * 4),
    "softmax": Program(ow.nn.softmax, (65536, 16), 65536 * 16 * 4),
    "broadcast": Program(lambda x: ow.nn.relu(x + _w(16)), (1, 256, 256, 16), 256 * 256 * 16 * 4),
    "hard_swish": Program(lambda x: x * ow.nn.relu6(x + 3.0) / 6.0, (1, 256, 256, 16), 256 * 256 * 16 * 4),
    "concatenation": Program(lambda x: ow.concat([x, x], 3), (1, 256, 256, 16), 256 * 256 * 32 * 4),
    "pad": Program(lambda x: ow.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]]), (1, 256, 256, 16), 258 * 258 * 16 * 4),
}


@pytest.mark.usefixtures("reference_engine")
@pytest.mark.parametrize("kind", ["float", "dynamic", "int8"])
@pytest.mark.parametrize("name", sampled(PROGRAMS, 8))
def test_kernels_take_little_beside_the_arena(name: str, kind: str) -> None:
    program = PROGRAMS[name]
    assert program.whole > 2 * program.bound, "a program that cannot show anything"
    random = np.random.RandomState(0)
    sample = random.uniform(-1, 1, program.shape).astype(np.float32)
    content = convert(program.call, program.shape, kind=kind, samples=[[sample]])
    _interpreter(content).invoke()  # what modules load and keep for all
    tracemalloc.start()
    try:
        interpreter = _interpreter(content)
        held = tracemalloc.get_traced_memory()[0]
        arena, own, mapped, copied = (sum(parts) for parts in zip(*map(subgraph_memory, interpreter._subgraphs)))
        assert held - arena - own < OWN_OBJECTS, "something of the size of the weights is kept"
        assert copied == 0, "constants were copied out of the file"
        interpreter.invoke()
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        interpreter.invoke()
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak - before <= program.bound, f"a run takes {(peak - before) / SCRATCH:.1f} times SCRATCH"
    assert after - before < 1 << 16, "a run keeps what it made"
    assert mapped <= len(content)


def _interpreter(content: bytes) -> Any:
    interpreter = ow.lite.Interpreter(model_content=content, num_threads=1)
    interpreter.allocate_tensors()
    return interpreter
