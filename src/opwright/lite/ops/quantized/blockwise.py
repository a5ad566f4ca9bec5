"""Weights of int4 or int2 with a scale for each block of a row, as models of language have them: FULLY_CONNECTED of
floats, EMBEDDING_LOOKUP.

Lives here: these two rules.  Not here: one scale a tensor or a channel (hybrid.py), where the scales are found
(runtime/tensor.py).

.. math:: y_{ij} = act(s_i \\sum_b s_{jb} \\sum_{k \\in b} w_{jk} (q_{ik} - z_i) + b_j)

Rows of activations are quantised to int8 with a zero point each. The scales are float16.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..fusing import fuse
from .hybrid import asymmetric
from .operand import Operand, check_types

_f = np.float32


def _scales(weights: Operand) -> np.ndarray:
    """The scales, float32 [rows, blocks]. Raises InvalidArgumentError where they do not fit the weights."""
    blocks = weights.blocks
    found, constant = Operand(blocks.scales), blocks.scales.constant
    if found.type != "FLOAT16" or constant is None:
        raise found.wrong("holds no scales", found.type, "constants of type FLOAT16")
    if len(weights.shape) != 2 or blocks.size < 1 or weights.shape[1] % blocks.size:
        raise weights.wrong(
            "has blocks that do not fit it", f"{blocks.size} elements of {list(weights.shape)}", "rows of whole blocks"
        )
    rows, size = weights.shape[0], weights.shape[1] // blocks.size
    if constant.size != rows * size:
        raise found.wrong("has another number of scales than there are blocks", constant.size, rows * size)
    return constant.reshape(rows, size).astype(_f)


def fully_connected(op: Any, x: Operand, weights: Operand, bias: Operand | None, y: Operand) -> Any:
    check_types(op, ("FLOAT32 INT4 FLOAT32", "FLOAT32 INT2 FLOAT32"), x, weights, y)
    scales, size = _scales(weights), weights.blocks.size

    def run(real: Any, w: Any, b: Any) -> Any:
        n, k = w.shape
        rows = real.reshape(-1, k)
        steps = asymmetric(rows, (1,))
        values, out = steps.of(rows), np.zeros((len(rows), n), _f)
        for block in range(k // size):
            part = slice(block * size, (block + 1) * size)
            out += np.matmul(values[:, part], w[:, part].astype(_f).T) * scales[:, block]
        out *= steps.scale
        if b is not None:
            out += b.reshape(-1)
        return fuse(op, out.reshape((*real.shape[:-1], n)) if op.keep_num_dims else out)

    return run


def embedding_lookup(op: Any, lookup: Operand, value: Operand, y: Operand) -> Any:
    """Rows of integers as the reals they stand for."""
    check_types(op, ("INT4 FLOAT32", "INT4 FLOAT16", "INT2 FLOAT32", "INT2 FLOAT16"), value, y)
    scales, size = _scales(value), value.blocks.size

    def run(ids: Any, table: Any) -> Any:
        rows = op.reference(ids, table).astype(_f)
        return (rows.reshape(len(ids), scales.shape[1], size) * scales[ids][..., None]).reshape(rows.shape)

    return run
