"""Rules for softmax, bias and normalisation.

Lives here: Softmax, LogSoftmax, BiasAdd, FusedBatchNorm (inference), LayerNorm.
Not here: convolutions and pools (convolution.py), activations (direct.py), merging (../optimize.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.dtypes import float32
from ....graph import Node, Value
from ....graph.passes.rewriting import RewriteRule
from ..rewriter import LiteRewriter, NoMatch, RuleResult, rule_table
from .convolution import transposed


def _softmax(lite: str, **attrs: Any) -> Any:
    def lower(node: Node, low: LiteRewriter) -> RuleResult:
        (x,), axis = node.operands, node.attrs["axis"]
        rank = x.spec.shape.rank
        if rank is None:
            if axis != -1:
                return NoMatch(f"{lite} works along the last axis, and the rank is not known")
            return low.emit(lite, x, **attrs)
        axis %= rank
        if axis == rank - 1:
            return low.emit(lite, x, **attrs)
        order = [*range(rank)]
        order[axis], order[-1] = order[-1], order[axis]  # its own inverse
        return transposed(low, low.emit(lite, transposed(low, x, order), **attrs), order)

    return lower


def per_channel(low: LiteRewriter, vector: Value, rank: int, axis: int) -> Value:
    """A vector shaped to be broadcast along one axis of a tensor of that rank."""
    if axis == rank - 1:
        return vector
    shape = [1] * (rank - axis)
    shape[0] = -1
    if vector.constant is not None:
        return low.constant(vector.constant.reshape(shape), vector.dtype)
    dims = vector.spec.shape.dims
    known = [None if dims is None else dims[0], *shape[1:]]
    return low.emit("RESHAPE", vector, low.int32(shape), like=vector.spec.with_shape(known))


def _bias_add(node: Node, low: LiteRewriter) -> RuleResult:
    x, bias = node.operands
    rank = x.spec.shape.rank
    if node.attrs.get("data_format", "NHWC") in ("NCHW", "NCW", "NCDHW", "NC..."):
        if rank is None:
            return NoMatch("channels come second, and the rank is not known")
        bias = per_channel(low, bias, rank, 1)
    return low.emit("ADD", x, bias, like=node.outputs[0].spec)


def _fused_batch_norm(node: Node, low: LiteRewriter) -> RuleResult:
    x, scale, offset, mean, variance = node.inputs
    if node.attrs["is_training"]:
        return NoMatch("the statistics of the batch are wanted; inference has is_training=False")
    assert isinstance(x, Value)
    rank = x.spec.shape.rank
    axis = 1 if node.attrs["data_format"].startswith("NC") else (rank or 4) - 1
    parts = [v.constant if isinstance(v, Value) else None for v in (scale, offset, mean, variance)]
    if x.dtype is not float32 or rank is None or any(p is None for p in parts):
        return NoMatch("wanted float32 images and scale, offset, mean and variance that are constants")
    g, b, m, v = (np.asarray(p, np.float64) for p in parts)
    factor = g / np.sqrt(v + node.attrs["epsilon"])
    scaled = low.emit("MUL", x, per_channel(low, low.constant(factor, float32), rank, axis), like=x.spec)
    y = low.emit("ADD", scaled, per_channel(low, low.constant(b - m * factor, float32), rank, axis), like=x.spec)
    return (y, low.constant(parts[2], float32), low.constant(parts[3], float32))


def _layer_norm(node: Node, low: LiteRewriter) -> RuleResult:
    x, scale, offset = node.inputs
    assert isinstance(x, Value)
    axes = low.int32(node.attrs["axis"])
    mean = low.emit("MEAN", x, axes, keep_dims=True)
    variance = low.emit("MEAN", low.emit("SQUARED_DIFFERENCE", x, mean), axes, keep_dims=True)
    deviation = low.emit("ADD", variance, low.constant(node.attrs["epsilon"], x.dtype))
    y = low.emit("MUL", low.emit("SUB", x, mean), low.emit("RSQRT", deviation))
    if scale is not None:
        y = low.emit("MUL", y, scale)
    return y if offset is None else low.emit("ADD", y, offset)


NN = rule_table(
    RewriteRule("softmax", "Softmax", _softmax("SOFTMAX", beta=1.0)),
    RewriteRule("log_softmax", "LogSoftmax", _softmax("LOG_SOFTMAX")),
    RewriteRule("bias_add", "BiasAdd", _bias_add, "broadcasting adds it to each channel"),
    RewriteRule("batch_norm", "FusedBatchNorm", _fused_batch_norm, "with known statistics it is a scale and an offset"),
    RewriteRule("layer_norm", "LayerNorm", _layer_norm, "its definition"),
)
