"""Computation of results: in parts, so that scratch memory is bounded, and with a fused activation.

Lives here: `tiles` of a shape, `elements` and `rows`, which run a kernel on parts of its operands, `fuse`.
Not here: the windows of convolutions and pools (windows.py), callers of kernels (registration.py), the bounds of
activations (core/constants.py).

A kernel returns its whole result, or yields parts of it: (where, part), `where` being an index into the result.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ...core.constants import CLAMPS, FUSED_CLAMPS

SCRATCH = 1 << 19
"""Bytes of scratch memory that a kernel aims at, besides its inputs and outputs; it takes at most a small multiple."""

BLOCK = 1 << 14
"""Elements at a time of kernels on elements and rows: SCRATCH for four arrays of eight bytes an element."""

Part = tuple[tuple[slice, ...], np.ndarray]


def tiles(shape: Sequence[int], room: int) -> Iterator[tuple[slice, ...]]:
    """Partition an array of this shape into contiguous tiles of at most max(room, 1) elements; yield their indices."""
    inner = math.prod(shape)
    steps = []
    for size in shape:
        inner //= max(size, 1)
        steps.append(min(max(room // max(inner, 1), 1), max(size, 1)))
    if 0 in shape:
        return iter(())
    return itertools.product(
        *([slice(i, min(i + step, size)) for i in range(0, size, step)] for size, step in zip(shape, steps))
    )


def broadcast_slice(array: Any, where: tuple[slice, ...], inner: int = 0) -> Any:
    """Return the slice of an operand that a tile of a broadcast result reads. inner: last dimensions kept."""
    last = where[len(where) - array.ndim + inner :]
    index = (slice(None) if size == 1 else part for size, part in zip(array.shape, last))
    return array[(*index, ...)]  # "...": of a scalar, too, a view


def elements(kernel: Callable[..., Any], arrays: Sequence[np.ndarray], shape: tuple[int, ...]) -> Iterator[Part]:
    """Run an element-wise kernel with broadcasting in parts. shape: of the result."""
    for where in tiles(shape, BLOCK):
        yield where, kernel(*(broadcast_slice(a, where) for a in arrays))


def in_elements(op: Any, x: np.ndarray) -> Iterator[Part]:
    """Compute an element-wise operator in parts, where its quantized kernels are not element-wise."""
    return elements(op.reference, (x,), x.shape)


def rows(kernel: Callable[..., Any], arrays: Sequence[Any], shape: tuple[int, ...]) -> Iterator[Part]:
    """Run a kernel that maps rows of its first input to rows of the result in parts; other inputs are passed unchanged.

    A row is a line along the last dimension; shape: of the result.
    """
    x, *others = arrays
    for where in tiles(shape[:-1], BLOCK // max(x.shape[-1], shape[-1], 1)):
        yield where, kernel(x[where], *others)


def store_parts(parts: Iterable[Part], out: np.ndarray) -> None:
    """Store the parts of a result, whose values are within the range of its type."""
    for where, part in parts:
        index: Any = (*where, ...)  # "...": of a scalar, too, a view
        np.copyto(out[index], part, casting="unsafe")


def merge_parts(parts: Iterable[Part], shape: Sequence[int], dtype: Any) -> np.ndarray:
    """Assemble a result from its parts."""
    result = np.empty(tuple(shape), dtype)
    store_parts(parts, result)
    return result


def fuse(op: Any, y: np.ndarray) -> np.ndarray:
    """Clamp `y` to the bounds of the operator's fused activation; arrays are overwritten."""
    if op.fused_activation_function not in FUSED_CLAMPS:
        return y
    low, high = CLAMPS[op.fused_activation_function]
    if y.dtype.kind == "u":
        low = 0
    out = y if isinstance(y, np.ndarray) else None
    y = np.maximum(y, y.dtype.type(low), out=out)
    return y if high is None else np.minimum(y, y.dtype.type(high), out=out)
