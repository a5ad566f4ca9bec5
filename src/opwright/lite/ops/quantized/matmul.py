"""Integer rules of FULLY_CONNECTED and BATCH_MATMUL.

Lives here: these rules, with that of shuffled weights: blocks of 4 rows by 16 columns (weights_format
SHUFFLED4x16INT8), as the first quantized recurrent networks have them.
Not here: float activations with integer weights (hybrid.py), the second output of a node with shuffled weights
(runtime/builtin_registrations.py).

.. math:: q_y = clamp(z_y + M (b + \\sum (q_w - z_w)(q_x - z_x))),   M = s_x s_w / s_y

FULLY_CONNECTED multiplies by M in double precision and rounds once, as the official reference kernel does since 2025;
with int16 weights it multiplies as all kernels with sums of 64 bits do.

Shuffled weights are stored less their zero point 128, as int8. The workspace receives the input less its zero point,
four rows in blocks of 16 columns. Zero points in the file are ignored: they are 128, and 0 for the output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ....scalar.fixed_point import array_round_away as round_away
from ....scalar.fixed_point import multiplier, multipliers, short_multiplier
from ..matmul import products, without_columns
from ..tiling import Part
from .fixed_point import INT32, Weights, exact_float, finishing, finishing_wide, multiplied
from .operand import BIASES, Operand, check_axis, check_scaled, check_symmetric, check_types, fused_bounds

TYPES = (
    "INT8 INT8 INT8",
    "INT8 INT4 INT8",
    "INT8 INT2 INT8",
    "UINT8 UINT8 UINT8",
    "UINT8 UINT8 INT16",
    "INT16 INT8 INT16",
    "INT16 INT4 INT16",
    "INT16 INT2 INT16",
    "INT16 INT16 INT16",
)


def fully_connected(op: Any, x: Operand, weights: Operand, bias: Operand | None, y: Operand) -> Callable[..., Any]:
    kind = check_types(op, TYPES, x, weights, y)
    if bias is not None:
        check_types(op, BIASES[kind], bias)
    check_scaled(x, y)
    if weights.per_channel and kind != "UINT8":
        check_symmetric(weights)
        check_axis(weights, 0)
    else:
        check_scaled(weights, zero=True)
    if kind == "INT16":
        check_symmetric(x, y)
    matrix = Weights(weights, x.reach, 0)
    low, high = fused_bounds(op.fused_activation_function, y)
    real = float(x.scale) * weights.scales.astype(np.float64) / float(y.scale)
    real = real if weights.per_channel else real[0]
    scaled = (
        _by_wide_sums(x, weights, y)
        if weights.type == "INT16"
        else lambda acc, outputs: round_away(acc * (real[outputs] if np.ndim(real) else real))
    )

    def parts(q: Any, w: Any, b: Any) -> Iterator[Part]:
        n, k = w.shape
        vectors = q if op.keep_num_dims else q.reshape(-1, k)

        def finish(sums: np.ndarray, where: tuple[slice, ...], outputs: slice) -> np.ndarray:
            acc = sums.astype(np.float64) if b is None else sums + b.reshape(-1)[outputs].astype(np.float64)
            return y.saturated(scaled(acc, outputs), low, high)

        return multiplied((*vectors.shape[:-1], n), w, matrix, lambda rows, t: x.centred(vectors[rows], t), finish)

    def run(q: np.ndarray, w: np.ndarray, b: np.ndarray | None) -> Iterator[Part] | np.ndarray:
        return parts(q, w, b) if w.shape[1] else without_columns(op, q, len(w))

    return run


def _by_wide_sums(x: Operand, weights: Operand, y: Operand) -> Callable[[Any, slice], Any]:
    """Return the function from exact sums (floats) of some outputs to integers, by their multipliers."""
    if weights.per_channel:
        m, e = multipliers(float(x.scale) * weights.scales.astype(np.float64) / float(y.scale))
    else:
        m, e = multipliers(float(x.scale * weights.scale) / float(y.scale))
    short, e = np.broadcast_to(short_multiplier(m), weights.shape[:1]), np.broadcast_to(e, weights.shape[:1])
    return lambda acc, outputs: INT32.rescale_wide(acc.astype(np.int64), short[outputs], e[outputs])


def batch_matmul(op: Any, x: Operand, y: Operand, z: Operand) -> Callable[..., Any]:
    """Rescale the sums; with output type INT32, which has no scale, return the sums of raw products."""
    kind = check_types(op, ("INT8 INT8 INT8", "INT8 INT8 INT32", "INT16 INT16 INT16", "INT16 INT8 INT16"), x, y, z)
    if z.type == "INT32":
        return lambda a, b: products(op, a, b, lambda a, b: _sums(a, b, 128 * 128))
    check_scaled(x, y, z)
    if kind == "INT16":
        check_symmetric(x, y, z)
    m, e = multiplier(float(x.scale * y.scale) / float(z.scale))
    finish = (finishing_wide if kind == "INT16" else finishing)(m, e, 0, z.zero_point, z.low, z.high)

    def multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        result: np.ndarray = finish(_sums(a, b, x.reach * y.reach, x.zero_point, y.zero_point))
        return result

    return lambda a, b: products(op, a, b, multiply)


def _sums(a: np.ndarray, b: np.ndarray, max_product: int, a_zero: int = 0, b_zero: int = 0) -> np.ndarray:
    """Compute exact sums of products of integers less their zero points, int64. max_product: the greatest |product|."""
    exact = exact_float(a.shape[-1] * max_product)
    result: np.ndarray = np.matmul(a.astype(exact) - exact(a_zero), b.astype(exact) - exact(b_zero)).astype(np.int64)
    return result


SHUFFLED_TYPES = ("UINT8 UINT8 INT32 INT16 UINT8",)
BLOCK_ROWS, BLOCK_COLUMNS = 4, 16


def shuffled_fully_connected(
    op: Any, x: Operand, weights: Operand, bias: Operand | None, y: Operand, workspace: Operand
) -> Callable[..., Any]:
    check_types(op, SHUFFLED_TYPES, x, weights, bias, y, workspace)
    check_scaled(x, weights, y)
    n, k = weights.shape
    m, e = multiplier(float(x.scale * weights.scale) / float(y.scale))
    low, high = fused_bounds(op.fused_activation_function, y)

    def run(q: np.ndarray, w: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rows = (q.reshape(-1, k) ^ np.uint8(128)).view(np.int8)
        if rows.size > np.prod(workspace.shape, dtype=np.int64):
            raise workspace.wrong("is too small", list(workspace.shape), f"{rows.size} elements")
        blocks = w.view(np.int8).reshape(n // BLOCK_ROWS, k // BLOCK_COLUMNS, BLOCK_ROWS, BLOCK_COLUMNS)
        matrix = blocks.transpose(0, 2, 1, 3).reshape(n, k)
        acc = np.matmul(rows.astype(np.float64), matrix.T.astype(np.float64)).astype(np.int64) + b.reshape(-1)
        scratch = np.zeros(workspace.shape, np.uint8)
        by_block = (
            rows.reshape(-1, k // BLOCK_COLUMNS, BLOCK_COLUMNS).swapaxes(0, 1) if len(rows) == BLOCK_ROWS else rows
        )
        scratch.reshape(-1)[: rows.size] = by_block.reshape(-1).view(np.uint8)
        out = np.clip(INT32.rescale(acc, m, e), low, high)
        return out.reshape((*q.shape[:-1], n)) if op.keep_num_dims else out, scratch

    return run
