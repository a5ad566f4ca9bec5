"""Fused operators of onnxruntime, domain com.microsoft: attention, rotary positions, embeddings, fused products.

Lives here: their definitions by catalogue operators. Not here: integers (quantization.py), norms (normalization.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.dtypes import float32, int32
from ....core.errors import UnimplementedError
from ....ops import array, linalg, math, nn
from ....ops.array import cast
from ....ops.dispatch import to_tensor
from ..execution import RULES
from ..operands import at, dims, rank_of
from .arithmetic import number
from .quantization import dequantized, dynamic_quantize_linear

rule = RULES.rule


# ---- attention -------------------------------------------------------------------------------------------------------


def _size(x: Any, axis: int) -> Any:
    """Return a size: a number, or an int32 scalar where it is unknown."""
    size = dims(x)[axis]
    return array.shape(x)[axis] if size is None else size


def _heads(x: Any, count: int) -> Any:
    """Return [b, s, n h] as [b, n, s, h]."""
    size = static_dims_of_last(x)
    shape = _shape([_size(x, 0), _size(x, 1), count, size // count])
    return array.transpose(array.reshape(x, shape), [0, 2, 1, 3])


def _shape(sizes: list[Any]) -> Any:
    """Return a shape of numbers, or a vector if a size is computed."""
    if all(isinstance(s, int) for s in sizes):
        return sizes
    return array.stack([cast(to_tensor(np.int32(s)) if isinstance(s, int) else s, int32) for s in sizes])


def static_dims_of_last(x: Any) -> int:
    """Return the last size. Raises UnimplementedError if it is unknown."""
    size = dims(x)[-1]
    if size is None:
        raise UnimplementedError(what="the hidden size must be known", found=dims(x))
    return int(size)


def _joined(x: Any) -> Any:
    """Return [b, n, s, h] as [b, s, n h]."""
    _, n, _, h = dims(x)
    moved = array.transpose(x, [0, 2, 1, 3])
    return array.reshape(moved, _shape([_size(moved, 0), _size(moved, 1), n * h]))


def _product(q: Any, k: Any, v: Any, scale: float, added: Any, softcap: float = 0.0) -> Any:
    """Return softmax(scale q k^T + added) v."""
    scores = math.multiply(linalg.matmul(q, k, transpose_b=True), number(scale, q))
    if softcap:
        scores = math.multiply(math.tanh(math.realdiv(scores, number(softcap, q))), number(softcap, q))
    for part in added:
        scores = math.add(scores, part)
    return linalg.matmul(nn.softmax(scores, -1), v)


def _penalty(allowed: Any, value: float, like: Any) -> Any:
    """Return 0 where scores count, else a large negative number."""
    zero = number(0, like)
    return array.where(allowed, zero, number(value, like))


def _causal(q: Any, k: Any) -> Any:
    """Return which keys [t] each query [s] sees, where the queries are the last of the keys."""
    s, t = _size(q, 2), _size(k, 2)
    rows = math.add(array.range(s), math.subtract(t, s))
    return math.less_equal(array.expand_dims(array.range(t), 0), array.expand_dims(rows, 1))


def _masked(mask: Any, k: Any, like: Any, filter_value: float) -> Any:
    """Return what a mask adds to scores: lengths [b], keys [b, t], or [b, s, t]."""
    rank = rank_of(mask)
    if rank == 1:  # the number of keys of each sequence
        allowed = math.less(array.expand_dims(array.range(_size(k, 2)), 0), array.expand_dims(mask, 1))
        return _penalty(array.expand_dims(array.expand_dims(allowed, 1), 1), filter_value, like)
    allowed = math.greater(mask, number(0, mask))
    for _ in range(4 - rank):
        allowed = array.expand_dims(allowed, 1)
    return _penalty(allowed, filter_value, like)


@rule("com.microsoft::Attention")
def attention(context: Any, inputs: Any, attributes: Any) -> Any:
    """Project [b, s, d] by weights of queries, keys and values, and attend. present: [2, b, n, t, h]."""
    x, weights, bias, mask, past, added = (at(inputs, i) for i in range(6))
    if attributes.get("do_rotary"):
        raise UnimplementedError(what="Attention with rotary positions", do="RotaryEmbedding before it")
    count = attributes["num_heads"]
    projected = linalg.matmul(x, weights)
    if bias is not None:
        projected = math.add(projected, bias)
    sizes = list(attributes.get("qkv_hidden_sizes") or [static_dims_of_last(projected) // 3] * 3)
    q, k, v = (_heads(part, count) for part in array.split(projected, sizes, -1))
    if past is not None:
        k = array.concat([to_tensor(past)[0], k], 2)
        v = array.concat([to_tensor(past)[1], v], 2)
    parts = []
    if mask is not None and rank_of(mask) == 1 and dims(mask)[0] != dims(x)[0]:
        raise UnimplementedError(what="Attention with starts and ends of sequences", found=dims(mask))
    low = attributes.get("mask_filter_value", -10000.0)
    if mask is not None:
        parts.append(_masked(mask, k, q, low))
    if attributes.get("unidirectional"):
        parts.append(_penalty(_causal(q, k), float(np.finfo(np.float32).min), q))
    if added is not None:
        parts.append(added)
    scale = attributes.get("scale") or (sizes[0] // count) ** -0.5
    y = _joined(_product(q, k, v, scale, parts))
    return [y, array.stack([k, v])] if context.wants(1) else [y]


@rule("com.microsoft::MultiHeadAttention")
def multi_head_attention(context: Any, inputs: Any, attributes: Any) -> Any:
    """Attend with queries, keys and values [b, s, n h], packed or not, or keys [b, n, t, h] of another sequence."""
    q, k, v, bias, padding, added, past_k, past_v = (at(inputs, i) for i in range(8))
    count = attributes["num_heads"]
    if rank_of(q) == 5:  # [b, s, n, 3, h]
        q, k, v = (array.transpose(to_tensor(q)[:, :, :, i], [0, 2, 1, 3]) for i in range(3))
    else:
        if bias is not None:
            hidden = static_dims_of_last(q)
            parts = array.split(bias, [hidden, hidden, dims(bias)[0] - 2 * hidden], 0)
            q = math.add(q, parts[0])
            if k is not None and rank_of(k) == 3:
                k, v = math.add(k, parts[1]), math.add(v, parts[2])
        q = _heads(q, count)
        if rank_of(k) == 5:  # [b, t, n, 2, h]
            k, v = (array.transpose(to_tensor(k)[:, :, :, i], [0, 2, 1, 3]) for i in range(2))
        elif rank_of(k) == 3:
            k, v = _heads(k, count), _heads(v, count)
    if past_k is not None:
        k, v = array.concat([past_k, k], 2), array.concat([past_v, v], 2)
    parts = [] if padding is None else [_masked(padding, k, q, attributes.get("mask_filter_value", -10000.0))]
    if attributes.get("unidirectional"):
        parts.append(_penalty(_causal(q, k), float(np.finfo(np.float32).min), q))
    if added is not None:
        parts.append(added)
    scale = attributes.get("scale") or dims(q)[-1] ** -0.5
    return [_joined(_product(q, k, v, scale, parts)), k, v]


@rule("com.microsoft::GroupQueryAttention")
def group_query_attention(context: Any, inputs: Any, attributes: Any) -> Any:
    """Attend causally with keys and values of fewer heads, behind a cache [b, n, p, h] of any filling.

    Key t of sequence b is the cache's where t < past_b, else the new one t - past_b; past_b = seqlens_k + 1 - s.
    """
    q, k, v, past_k, past_v, last, total, cos, sin, ids = (at(inputs, i) for i in range(10))
    n, groups = attributes["num_heads"], attributes["kv_num_heads"]
    if attributes.get("smooth_softmax") or any(at(inputs, i) is not None for i in (10, 11)):
        raise UnimplementedError(what="GroupQueryAttention with smooth softmax, sinks or a bias")
    if k is None:  # packed
        h = static_dims_of_last(q) // (n + 2 * groups)
        q, k, v = array.split(q, [n * h, groups * h, groups * h], -1)
    q, k, v = _heads(q, n), _heads(k, groups), _heads(v, groups)
    s = _size(q, 2)
    lengths = math.add(array.reshape(cast(last, int32), [-1]), np.int32(1))
    before = math.maximum(math.subtract(lengths, s), np.int32(0))
    steps = math.add(array.expand_dims(before, 1), array.expand_dims(array.range(s), 0))  # [b, s]
    if attributes.get("do_rotary"):
        where_ = steps if ids is None else ids
        interleaved = attributes.get("rotary_interleaved", 0)
        q, k = (_rotated(x, where_, cos, sin, interleaved) for x in (q, k))
    if past_k is None or dims(past_k)[2] == 0:
        keys, values = k, v
    else:
        p = _size(past_k, 2)
        known_total = (
            None if total is None else np.asarray(total).reshape(-1) if isinstance(total, np.ndarray) else None
        )
        whole = math.add(p, s) if known_total is None else max(int(known_total[0]), p) if isinstance(p, int) else p
        keys, values = (_extended(old, new, before, whole) for old, new in ((past_k, k), (past_v, v)))
    t = array.range(_size(keys, 2))
    allowed = math.less_equal(array.reshape(t, [1, 1, -1]), array.expand_dims(steps, -1))  # [b, s, t]
    window = attributes.get("local_window_size", -1)
    if window > 0:
        near = math.greater(array.reshape(t, [1, 1, -1]), math.subtract(array.expand_dims(steps, -1), np.int32(window)))
        allowed = math.logical_and(allowed, near)
    added = _penalty(array.expand_dims(allowed, 1), float(np.finfo(np.float32).min), q)
    wide_k, wide_v = (_repeated(x, n // groups) for x in (keys, values))
    scale = attributes.get("scale") or dims(q)[-1] ** -0.5
    y = _product(q, wide_k, wide_v, scale, [added], attributes.get("softcap", 0.0))
    return [_joined(y), keys, values]


def _extended(old: Any, new: Any, before: Any, whole: Any) -> Any:
    """Return the cache [b, n, p, h] with new rows behind the first `before` ones of each sequence."""
    s, p = _size(new, 2), _size(old, 2)
    t = array.range(whole)
    places = math.subtract(array.expand_dims(t, 0), array.expand_dims(before, 1))  # [b, t]
    of_new = math.minimum(math.maximum(places, np.int32(0)), math.subtract(s, np.int32(1)))
    of_old = math.minimum(t, math.subtract(p, np.int32(1)))
    rows = array.gather(array.transpose(new, [0, 2, 1, 3]), of_new, axis=1, batch_dims=1)
    rows = array.transpose(rows, [0, 2, 1, 3])
    kept = array.gather(old, of_old, axis=2)
    fresh = math.logical_and(math.greater_equal(places, np.int32(0)), math.less(places, s))
    return array.where(array.expand_dims(array.expand_dims(fresh, 1), -1), rows, kept)


def _repeated(x: Any, times: int) -> Any:
    """Return [b, n, t, h] with each head several times."""
    if times == 1:
        return x
    wide = array.tile(array.expand_dims(x, 2), [1, 1, times, 1, 1])
    _, n, _, h = dims(x)
    return array.reshape(wide, _shape([_size(x, 0), n * times, _size(x, 2), h]))


# ---- positions -------------------------------------------------------------------------------------------------------


def _rotated(x: Any, positions: Any, cos: Any, sin: Any, interleaved: int) -> Any:
    """Return [b, n, s, h] with pairs of the first elements of each head turned by the angles of positions [b, s]."""
    half = dims(cos)[-1]
    turned, rest = to_tensor(x)[..., : 2 * half], to_tensor(x)[..., 2 * half :]
    c, s = (array.expand_dims(array.gather(table, positions), 1) for table in (cos, sin))  # [b, 1, s, half]
    if interleaved:
        first, second = turned[..., 0::2], turned[..., 1::2]
    else:
        first, second = turned[..., :half], turned[..., half:]
    pair = (
        math.subtract(math.multiply(first, c), math.multiply(second, s)),
        math.add(math.multiply(first, s), math.multiply(second, c)),
    )
    if interleaved:
        y = array.reshape(array.stack(list(pair), -1), array.shape(turned))
    else:
        y = array.concat(list(pair), -1)
    return y if dims(rest)[-1] == 0 else array.concat([y, rest], -1)


@rule("com.microsoft::RotaryEmbedding")
def rotary_embedding(context: Any, inputs: Any, attributes: Any) -> Any:
    """Rotate heads [b, n, s, h], or [b, s, n h], by positions [b, s], or from one offset on."""
    x, positions, cos, sin = inputs[:4]
    flat = rank_of(x) == 3
    if flat:
        width = attributes.get("rotary_embedding_dim", 0)
        count = attributes.get("num_heads", 0) if width else static_dims_of_last(x) // (2 * dims(cos)[-1])
        x = _heads(x, count)
    if rank_of(positions) == 1:
        steps = array.expand_dims(array.range(_size(x, 2)), 0)
        positions = math.add(cast(positions, int32), steps)
    y = _rotated(x, positions, cos, sin, attributes.get("interleaved", 0))
    scale = attributes.get("scale", 1.0)
    y = y if scale == 1.0 else math.multiply(y, number(scale, y))
    return _joined(y) if flat else y


@rule("com.microsoft::EmbedLayerNormalization")
def embed_layer_normalization(context: Any, inputs: Any, attributes: Any) -> Any:
    """Normalize the sum of the embeddings of words, positions and segments; count each row's mask."""
    ids, segments, words, positions, kinds, gamma, beta, mask, places = (at(inputs, i) for i in range(9))
    where_ = array.range(_size(ids, 1)) if places is None else places
    total = math.add(array.gather(words, ids), array.gather(positions, where_))
    if segments is not None:
        total = math.add(total, array.gather(kinds, segments))
    y = nn.layer_normalization(total, gamma, beta, -1, attributes.get("epsilon", 1e-12))
    if mask is None:
        count = array.zeros([_size(ids, 0)], int32)
    else:
        count = math.reduce_sum(cast(mask, int32), [1])
    return [y, count, total]


# ---- products --------------------------------------------------------------------------------------------------------

ACTIVATIONS = ("Relu", "Sigmoid", "Tanh", "LeakyRelu", "Clip", "HardSigmoid")


def _activated(context: Any, y: Any, attributes: Any) -> Any:
    name = attributes.get("activation")
    if name is None:
        return y
    if name not in ACTIVATIONS:
        raise UnimplementedError(what="a fused activation", found=name, wanted=", ".join(ACTIVATIONS))
    parameters = list(attributes.get("activation_params", ()))
    if name == "Clip":
        return math.minimum(math.maximum(y, number(parameters[0], y)), number(parameters[1], y))
    numbers = {"LeakyRelu": ("alpha",), "HardSigmoid": ("alpha", "beta")}.get(name, ())
    given = parameters or [attributes[f"activation_{n}"] for n in numbers if f"activation_{n}" in attributes]
    function = RULES.find(name)
    assert function is not None
    return function(context, [y], dict(zip(numbers, given)))


@rule("com.microsoft::FusedConv")
def fused_conv(context: Any, inputs: Any, attributes: Any) -> Any:
    function = RULES.find("Conv")
    assert function is not None
    y = function(context, list(inputs[:3]), attributes)
    return _activated(context, y if at(inputs, 3) is None else math.add(y, inputs[3]), attributes)


@rule("com.microsoft::FusedGemm")
def fused_gemm(context: Any, inputs: Any, attributes: Any) -> Any:
    function = RULES.find("Gemm")
    assert function is not None
    return _activated(context, function(context, list(inputs), attributes), attributes)


@rule("com.microsoft::BiasSoftmax")
def bias_softmax(context: Any, inputs: Any, attributes: Any) -> Any:
    x, bias = inputs
    if attributes.get("axis", 1) not in (-1, rank_of(x) - 1):
        raise UnimplementedError(what="BiasSoftmax over several axes", found=attributes.get("axis", 1))
    return nn.softmax(math.add(x, bias), -1)


@rule("com.microsoft::DynamicQuantizeMatMul")
def dynamic_quantize_matmul(context: Any, inputs: Any, attributes: Any) -> Any:
    """Multiply by integer weights; the left operand is rounded to uint8 of its own range."""
    a, b, scale, zero, bias = (at(inputs, i) for i in range(5))
    q, a_scale, point = dynamic_quantize_linear(context, [a], {})
    y = linalg.matmul(dequantized(q, a_scale, point), dequantized(b, scale, zero))
    return y if bias is None else math.add(y, bias)


@rule("com.microsoft::MatMulIntegerToFloat")
def matmul_integer_to_float(context: Any, inputs: Any, attributes: Any) -> Any:
    a, b, a_scale, b_scale, a_zero, b_zero, bias = (at(inputs, i) for i in range(7))
    y = linalg.matmul(dequantized(a, a_scale, a_zero), dequantized(b, b_scale, b_zero))
    return y if bias is None else math.add(y, bias)


@rule("com.microsoft::QAttention")
def quantized_attention(context: Any, inputs: Any, attributes: Any) -> Any:
    """Attend with projections of integers."""
    x, weights, bias, x_scale, w_scale, mask, x_zero, w_zero, past = (at(inputs, i) for i in range(9))
    real = [dequantized(x, x_scale, x_zero), dequantized(weights, w_scale, w_zero), cast(bias, float32)]
    return attention(context, [*real, mask, past], attributes)
