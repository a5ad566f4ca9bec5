"""Rules for softmax, bias, normalisation and losses.

Lives here: Softmax, LogSoftmax, BiasAdd, FusedBatchNorm (inference), LayerNorm; cross entropies, BiasAddGrad,
gradients of Tile, MirrorPad and StridedSlice.
Not here: convolutions and pools (convolution.py), their gradients (window_gradients.py), activations (direct.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....core.dtypes import float32
from ....graph import Node, Value
from ....graph.passes.rewrite_rules import RewriteRule
from ..rewriter import (
    LiteRewriter,
    NoMatch,
    Rewrite,
    RuleResult,
    constant_of,
    only,
    padded,
    rank_of,
    reshaped,
    rule_table,
    sizes,
    sliced,
)
from .convolution import transposed
from .direct import front
from .gather_scatter import MASKS


def _softmax(lite: str, **attrs: Any) -> Rewrite:
    def lower(node: Node, rewriter: LiteRewriter) -> RuleResult:
        (x,), axis = node.operands, node.attrs["axis"]
        rank = x.spec.shape.rank
        if rank is None:
            if axis != -1:
                return NoMatch(f"{lite} works along the last axis, and the rank is not known")
            return rewriter.emit(lite, x, **attrs)
        axis %= rank
        if axis == rank - 1:
            return rewriter.emit(lite, x, **attrs)
        order = [*range(rank)]
        order[axis], order[-1] = order[-1], order[axis]  # its own inverse
        return transposed(rewriter, rewriter.emit(lite, transposed(rewriter, x, order), **attrs), order)

    return lower


def per_channel(rewriter: LiteRewriter, vector: Value, rank: int, axis: int) -> Value:
    """Reshape a vector to broadcast along one axis of a tensor of that rank."""
    if axis == rank - 1:
        return vector
    shape = [1] * (rank - axis)
    shape[0] = -1
    if vector.constant is not None:
        return rewriter.constant(vector.constant.reshape(shape), vector.dtype)
    dims = vector.spec.shape.dims
    shape_of_vector = [None if dims is None else dims[0], *shape[1:]]
    return rewriter.emit("RESHAPE", vector, rewriter.int32(shape), like=vector.spec.with_shape(shape_of_vector))


def _bias_add(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, bias = node.operands
    rank = x.spec.shape.rank
    if node.attrs.get("data_format", "NHWC") in ("NCHW", "NCW", "NCDHW", "NC..."):
        if rank is None:
            return NoMatch("channels come second, and the rank is not known")
        bias = per_channel(rewriter, bias, rank, 1)
    return rewriter.emit("ADD", x, bias, like=node.outputs[0].spec)


def _fused_batch_norm(node: Node, rewriter: LiteRewriter) -> RuleResult:
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
    scaled = rewriter.emit("MUL", x, per_channel(rewriter, rewriter.constant(factor, float32), rank, axis), like=x.spec)
    y = rewriter.emit(
        "ADD", scaled, per_channel(rewriter, rewriter.constant(b - m * factor, float32), rank, axis), like=x.spec
    )
    return (y, rewriter.constant(parts[2], float32), rewriter.constant(parts[3], float32))


def _layer_norm(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, scale, offset = node.inputs
    assert isinstance(x, Value)
    assert not isinstance(scale, tuple)
    assert not isinstance(offset, tuple)
    axes = rewriter.int32(node.attrs["axis"])
    mean = rewriter.emit("MEAN", x, axes, keep_dims=True)
    variance = rewriter.emit("MEAN", rewriter.emit("SQUARED_DIFFERENCE", x, mean), axes, keep_dims=True)
    deviation = rewriter.emit("ADD", variance, rewriter.constant(node.attrs["epsilon"], x.dtype))
    y = rewriter.emit("MUL", rewriter.emit("SUB", x, mean), rewriter.emit("RSQRT", deviation))
    if scale is not None:
        y = rewriter.emit("MUL", y, _at_axes(rewriter, scale, node.attrs["axis"], rank_of(x)))
    return y if offset is None else rewriter.emit("ADD", y, _at_axes(rewriter, offset, node.attrs["axis"], rank_of(x)))


def _at_axes(rewriter: LiteRewriter, vector: Any, axes: Sequence[int], rank: int) -> Value:
    """Return a tensor of the sizes at axes, with ones between them and behind them, so that it broadcasts."""
    assert isinstance(vector, Value)
    places = sorted(front(a, rank) for a in axes)
    if places == list(range(rank - len(places), rank)):
        return vector
    shape = [1] * rank
    for place, size in zip(places, vector.spec.shape):
        shape[place] = -1 if size is None else int(size)
    return rewriter.emit("RESHAPE", vector, rewriter.int32(shape))


NN = rule_table(
    RewriteRule("softmax", "Softmax", _softmax("SOFTMAX", beta=1.0)),
    RewriteRule("log_softmax", "LogSoftmax", _softmax("LOG_SOFTMAX")),
    RewriteRule("bias_add", "BiasAdd", _bias_add, "broadcasting adds it to each channel"),
    RewriteRule("batch_norm", "FusedBatchNorm", _fused_batch_norm, "with known statistics it is a scale and an offset"),
    RewriteRule("layer_norm", "LayerNorm", _layer_norm, "its definition"),
)


def _log_softmax(rewriter: LiteRewriter, x: Value, axis: int) -> Value:
    rank = rank_of(x)
    if axis == rank - 1:
        return rewriter.emit("LOG_SOFTMAX", x)
    order = [*range(rank)]
    order[axis], order[-1] = order[-1], order[axis]  # its own inverse
    return transposed(rewriter, rewriter.emit("LOG_SOFTMAX", transposed(rewriter, x, order)), order)


def _cross_entropy(node: Node, rewriter: LiteRewriter) -> RuleResult:
    labels, logits = node.operands
    only(logits, float32)
    axis = front(node.attrs["axis"], rank_of(logits))
    terms = rewriter.emit("MUL", labels, _log_softmax(rewriter, logits, axis))
    return rewriter.emit("NEG", rewriter.emit("SUM", terms, rewriter.int32([axis])), like=node.outputs[0].spec)


def _sparse_cross_entropy(node: Node, rewriter: LiteRewriter) -> RuleResult:
    labels, logits = node.operands
    only(logits, float32)
    rank = rank_of(logits)
    column = rewriter.emit("EXPAND_DIMS", rewriter.int32(labels), rewriter.int32([rank - 1]))
    flat = _log_softmax(rewriter, logits, rank - 1)
    chosen = rewriter.emit("GATHER", flat, column, axis=rank - 1, batch_dims=rank - 1)
    return rewriter.emit("NEG", rewriter.emit("SQUEEZE", chosen, squeeze_dims=[rank - 1]), like=node.outputs[0].spec)


def _bias_add_grad(node: Node, rewriter: LiteRewriter) -> RuleResult:
    (dy,) = node.operands
    rank = rank_of(dy)
    channel = 1 if node.attrs["data_format"].startswith("NC") else rank - 1
    return rewriter.emit("SUM", dy, rewriter.int32([i for i in range(rank) if i != channel]), like=node.outputs[0].spec)


def _tile_grad(node: Node, rewriter: LiteRewriter) -> RuleResult:
    dy, multiples, _ = node.operands
    times, dims = constant_of(multiples, "multiples").tolist(), sizes(dy)
    apart = [v for t, d in zip(times, dims) for v in (t, d // t if t else 0)]
    repeated = [2 * i for i, t in enumerate(times) if t != 1]
    y = reshaped(rewriter, dy, apart)
    y = rewriter.emit("SUM", y, rewriter.int32(repeated)) if repeated else y
    return reshaped(rewriter, y, [d // t if t else 0 for t, d in zip(times, dims)])


def _mirror_pad_grad(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Add the reversed borders of each dimension to the elements that they mirror."""
    y, paddings = node.operands
    edge = 1 if node.attrs["mode"].upper() == "REFLECT" else 0
    for axis, (before, after) in enumerate(constant_of(paddings, "paddings").tolist()):
        if not before and not after:
            continue
        dims = sizes(y)
        inner = dims[axis] - before - after
        total = _part(rewriter, y, axis, before, inner)
        for begin, count, at in ((0, before, edge), (before + inner, after, inner - edge - after)):
            if count:
                turned = rewriter.emit("REVERSE_V2", _part(rewriter, y, axis, begin, count), rewriter.int32([axis]))
                pads = [(0, 0)] * len(dims)
                pads[axis] = (at, inner - at - count)
                total = rewriter.emit("ADD", total, padded(rewriter, turned, pads))
        y = total
    return y


def _part(rewriter: LiteRewriter, x: Value, axis: int, begin: int, count: int) -> Value:
    starts, counts = [0] * rank_of(x), [-1] * rank_of(x)
    starts[axis], counts[axis] = begin, count
    return sliced(rewriter, x, starts, counts)


def _strided_slice_grad(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Insert zeros between the elements of dy, then around it."""
    shape, *bounds, dy = node.operands
    dims = [int(d) for d in constant_of(shape, "the shape")]
    index = _index_of(dims, [constant_of(b, "a bound").tolist() for b in bounds], {m: node.attrs[m] for m in MASKS})
    counts = [len(range(d)[i]) for d, i in zip(dims, index)]
    y = reshaped(rewriter, dy, counts)
    for axis, (d, taken) in enumerate(zip(dims, index)):
        places = range(d)[taken]
        if not len(places):
            continue
        if places.step < 0:
            y = rewriter.emit("REVERSE_V2", y, rewriter.int32([axis]))
            places = places[::-1]
        if places.step > 1 and len(places) > 1:
            y = _spread(rewriter, y, axis, places.step)
        pads = [(0, 0)] * len(dims)
        pads[axis] = (places[0], d - 1 - places[-1])
        y = padded(rewriter, y, pads)
    return y if 0 not in counts else rewriter.constant(np.zeros(dims), dy.dtype)


def _spread(rewriter: LiteRewriter, y: Value, axis: int, step: int) -> Value:
    """Spread elements `step` apart along an axis, with zeros between."""
    dims = sizes(y)
    apart = reshaped(rewriter, y, [*dims[: axis + 1], 1, *dims[axis + 1 :]])
    pads = [(0, 0)] * (len(dims) + 1)
    pads[axis + 1] = (0, step - 1)
    joined = reshaped(rewriter, padded(rewriter, apart, pads), [*dims[:axis], dims[axis] * step, *dims[axis + 1 :]])
    counts = [-1] * len(dims)
    counts[axis] = (dims[axis] - 1) * step + 1
    return sliced(rewriter, joined, [0] * len(dims), counts)


def _index_of(dims: list[int], bounds: list[list[int]], masks: dict[str, int]) -> list[slice]:
    """Return the slice of each dimension that a strided slice takes."""
    begin, end, strides = bounds
    n = len(begin)
    bit = {name: [bool(mask >> i & 1) for i in range(n)] for name, mask in masks.items()}
    named = [i for i in range(n) if not bit["ellipsis_mask"][i] and not bit["new_axis_mask"][i]]
    index: list[slice] = []
    for i in range(n):
        if bit["ellipsis_mask"][i]:
            index += [slice(None)] * (len(dims) - len(named))
        elif not bit["new_axis_mask"][i]:
            if bit["shrink_axis_mask"][i]:
                at = begin[i] + dims[len(index)] if begin[i] < 0 else begin[i]
                index.append(slice(at, at + 1))
            else:
                first = None if bit["begin_mask"][i] else begin[i]
                index.append(slice(first, None if bit["end_mask"][i] else end[i], strides[i]))
    return index + [slice(None)] * (len(dims) - len(index))


def _strided_slice_update(node: Node, rewriter: LiteRewriter) -> RuleResult:
    x, *bounds, value = node.operands
    dims = sizes(x)
    if bounds[0].constant is None:
        return _computed_slice_update(node, rewriter)
    index = _index_of(dims, [constant_of(b, "a bound").tolist() for b in bounds], {m: node.attrs[m] for m in MASKS})
    places = [range(d)[i] for d, i in zip(dims, index)]
    if any(p.step != 1 for p in places) or node.attrs["new_axis_mask"]:
        return NoMatch("DYNAMIC_UPDATE_SLICE replaces elements side by side")
    counts = [len(p) for p in places]
    shrunk = [bool(node.attrs["shrink_axis_mask"] >> i & 1) for i in range(len(counts))]
    if node.attrs["ellipsis_mask"] and any(shrunk):
        return NoMatch("an ellipsis beside single elements")
    value_sizes = sizes(value)
    kept = [c for c, s in zip(counts, shrunk) if not s]
    if value_sizes != kept:
        value = rewriter.emit("BROADCAST_TO", value, rewriter.int32(kept))
    part = reshaped(rewriter, value, counts)
    starts = rewriter.int32([p[0] if len(p) else 0 for p in places])
    return rewriter.emit("DYNAMIC_UPDATE_SLICE", x, part, starts, like=node.outputs[0].spec)


def _computed_slice_update(node: Node, rewriter: LiteRewriter) -> RuleResult:
    """Replace elements from a computed place on: the end is seen to be the begin and the update's sizes."""
    x, begin, end, strides, value = node.operands
    if any(node.attrs[m] for m in MASKS) or set(constant_of(strides, "strides").tolist()) - {1}:
        return NoMatch("a computed bound with strides or masks")
    counts = sizes(value)
    added = rewriter.producer(end, "ADD")
    ends = added is not None and begin in added.operands and [v.constant for v in added.operands if v is not begin]
    if not ends or ends[0] is None or ends[0].tolist() != counts:
        return NoMatch("the end is not the computed begin and the sizes of the update")
    return rewriter.emit("DYNAMIC_UPDATE_SLICE", x, value, rewriter.int32(begin), like=node.outputs[0].spec)


LOSSES = rule_table(
    RewriteRule("cross_entropy", "SoftmaxCrossEntropyWithLogits", _cross_entropy, "its definition"),
    RewriteRule("sparse_cross_entropy", "SparseSoftmaxCrossEntropyWithLogits", _sparse_cross_entropy, "its definition"),
    RewriteRule("bias_add_grad", "BiasAddGrad", _bias_add_grad, "its definition"),
    RewriteRule("tile_grad", "TileGrad", _tile_grad, "repetitions stand in a dimension of their own"),
    RewriteRule("mirror_pad_grad", "MirrorPadGrad", _mirror_pad_grad, "borders are turned round and added"),
    RewriteRule("strided_slice_grad", "StridedSliceGrad", _strided_slice_grad, "zeros between and around"),
    RewriteRule("strided_slice_update", "TensorStridedSliceUpdate", _strided_slice_update, "of elements side by side"),
)
