"""Matrix products: FULLY_CONNECTED and BATCH_MATMUL.

Lives here: the two operators.  Not here: convolutions (convolution.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import float16, float32, int8, int32
from ...core.errors import InvalidArgumentError
from ...core.lazy_imports import later
from ...core.shapes import UNKNOWN, TensorShape
from ...core.specs import TensorSpec
from ...ops.accumulation import widened
from ...ops.slots import Input, Output
from ..runtime.builtin_registrations import ShuffledFullyConnectedRegistration
from .definition import EnumAttr, LiteDefinition, lite_operator
from .shapes import product, refuse, same, spec, text
from .tiling import SCRATCH, Part, broadcast_slice, fuse, merge_parts, tiles

if TYPE_CHECKING:
    from ...ops import array_shapes
else:  # for BATCH_MATMUL
    array_shapes = later("...ops.array_shapes", __package__)

_FLOATS = (float32, float16)


@lite_operator("FULLY_CONNECTED")
class FullyConnectedOp(LiteDefinition):
    """A matrix product with the weights transposed, a bias and a fused activation.

    .. math:: y_{ij} = act(\\sum_k x_{ik} w_{jk} + b_j)

    x: any shape, read as [rows, k]; weights: [n, k]; bias: [n]; y: [rows, n], or x's shape with n for its last size
    where keep_num_dims is set. 16-bit floats are added up in float32. Without columns, k = 0, y is 0 whatever the bias.
    """

    x = Input(_FLOATS)
    weights = Input(_FLOATS, like="x", rank=2)
    bias = Input(_FLOATS, optional=True)
    y = Output(like="x")
    quantized = "matmul.fully_connected"
    hybrid = "hybrid.fully_connected"

    registration = ShuffledFullyConnectedRegistration

    def infer(op: Any) -> TensorSpec:
        shape, dtype = op.x.spec.shape, op.x.spec.dtype
        n, k = op.weights.spec.shape.dims or (None, None)
        if op.weights_format != "DEFAULT":
            _check_shuffled(op, shape, n, k)
        if op.bias is not None and not same(product(op.bias.spec.shape.dims or (None,)), n):
            raise refuse(
                "the bias does not fit the weights",
                found={"weights": text(op.weights.spec.shape), "bias": text(op.bias.spec.shape)},
                wanted=f"{n} elements, one a row of the weights",
            )
        if op.bias is not None and op.bias.spec.dtype not in (dtype, float32):
            raise refuse("the bias is not float32", found=op.bias.spec.short(), wanted="float32")
        if shape.dims is None:
            return TensorSpec(UNKNOWN, dtype)
        if k == 0 and 0 in shape.dims:
            return spec((*shape.dims[:-1], n) if op.keep_num_dims else (product(shape.dims[:-1]), n), dtype)
        if op.keep_num_dims:
            if not shape.dims or not same(shape.dims[-1], k):
                raise _does_not_fit(shape, op.weights.spec.shape)
            return spec((*shape.dims[:-1], n), dtype)
        total = product(shape.dims)
        if total is None or k is None:
            last = shape.dims[-1] if shape.dims else None
            return spec((shape.dims[0] if shape.rank == 2 and last is not None and last == k else None, n), dtype)
        if not k or total % k:
            raise _does_not_fit(shape, op.weights.spec.shape)
        return spec((total // k, n), dtype)

    def parts(op: Any, x: np.ndarray, weights: np.ndarray, bias: np.ndarray | None) -> Iterator[Part]:
        n, k = weights.shape
        if not k:
            yield (), without_columns(op, x, n)
            return
        vectors, w = x if op.keep_num_dims else x.reshape(-1, k), widened(weights).T
        for where in tiles(vectors.shape[:-1], SCRATCH // max(2 * w.itemsize * n, 1)):
            rows = widened(vectors[where])
            y = np.matmul(rows.reshape(-1, k), w)
            if bias is not None:
                y += bias.reshape(-1)
            yield where, fuse(op, y.reshape((*rows.shape[:-1], n)))

    def compute(op: Any, x: np.ndarray, weights: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
        n, k = weights.shape
        if not k:
            return without_columns(op, x, n)
        lead = x.shape[:-1] if op.keep_num_dims else (x.size // k,)
        return merge_parts(op.parts(x, weights, bias), (*lead, n), x.dtype)


def without_columns(op: Any, x: Any, n: int) -> np.ndarray:
    """Return the result of FULLY_CONNECTED for weights [n, 0]: zeros."""
    return np.zeros((*x.shape[:-1], n) if op.keep_num_dims else (math.prod(x.shape[:-1]), n), x.dtype)


def _check_shuffled(op: Any, x: TensorShape, n: int | None, k: int | None) -> None:
    """Check weights in blocks of 4 rows by 16 columns, for 1 or 4 rows of activations."""
    total = product(x.dims or (None,))
    if op.bias is None or (n is not None and n % 4) or (k is not None and (k == 0 or k % 16)):
        raise refuse(
            "shuffled weights are blocks of 4 by 16, and go with a bias",
            found={"weights": [n, k]},
            wanted="a multiple of 4 rows, and of 16 columns",
        )
    if total is not None and k and total // k not in (1, 4):
        raise refuse("shuffled weights go with 1 or 4 rows of activations", found=text(x), wanted=f"[1,{k}] or [4,{k}]")


def _does_not_fit(x: TensorShape, weights: TensorShape) -> InvalidArgumentError:
    return refuse(
        "the weights do not fit the input",
        found={"x": text(x), "weights": text(weights)},
        wanted="a multiple of weights.shape[1] elements",
    )


@lite_operator("BATCH_MATMUL", typed_by="output_type")
class BatchMatMulOp(LiteDefinition):
    """Matrix products over the last two dimensions; the others are broadcast. adj_x, adj_y: swap the last two first.

    .. math:: z_{ij} = \\sum_k x_{ik} y_{kj}

    output_type: INT32 for raw sums of int8, without scales; else that of x.
    """

    x = Input(_FLOATS)
    y = Input(_FLOATS, like="x")
    z = Output(like="x")
    output_type = EnumAttr("TensorType")
    quantized = "matmul.batch_matmul"
    unscaled = True
    hybrid = "hybrid.batch_matmul"

    def infer(op: Any) -> TensorSpec:
        dtype = op.x.spec.dtype
        if op.output_type == "INT32":
            if getattr(op.x, "stored", None) is not int8:
                raise refuse("sums without scales are of int8", found=op.x.spec.short(), wanted="x of type int8")
            dtype = int32
        return spec(array_shapes.product_dims(op.x.spec, op.y.spec, op.adj_x, op.adj_y), dtype)

    def parts(op: Any, x: np.ndarray, y: np.ndarray) -> Iterator[Part]:
        return products(op, x, y, lambda a, b: np.matmul(widened(a), widened(b)))

    def compute(op: Any, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        a, b = widened(x), widened(y)
        z = np.matmul(a.swapaxes(-1, -2) if op.adj_x else a, b.swapaxes(-1, -2) if op.adj_y else b)
        result: np.ndarray = z.astype(x.dtype, copy=False)
        return result


def products(op: Any, x: Any, y: Any, multiply: Callable[[Any, Any], Any]) -> Iterator[Part]:
    """Compute BATCH_MATMUL in parts: some matrices, or rows of one. multiply: fn(matrices, matrices) -> matrices"""
    a, b = x.swapaxes(-1, -2) if op.adj_x else x, y.swapaxes(-1, -2) if op.adj_y else y
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    for where in tiles((*lead, a.shape[-2]), SCRATCH // (8 * (a.shape[-1] + b.shape[-1] + 1))):
        yield where, multiply(broadcast_slice(a, where, 1), broadcast_slice(b, where[:-1], 2))
