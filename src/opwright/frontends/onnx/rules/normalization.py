"""Normalization of ONNX: by batch, instance, group, layer, and across channels."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ops import array, math, nn
from ....ops.array import cast
from ....ops.dispatch import to_tensor
from ..execution import RULES
from ..operands import at, axis_of, dims, dtype_of, rank_of
from .arithmetic import number

rule = RULES.rule


def _per_channel(v: Any, x: Any) -> Any:
    return array.reshape(v, [1, -1, *[1] * (rank_of(x) - 2)])


@rule("BatchNormalization")
def batch_normalization(context: Any, inputs: Any, attributes: Any) -> Any:
    """Multiply and add, by constants that are known if the statistics are."""
    x, scale, bias, mean, variance = inputs
    epsilon = attributes.get("epsilon", 1e-5)
    results: tuple[Any, ...] = ()
    if attributes.get("training_mode"):
        momentum = attributes.get("momentum", 0.9)
        axes = [0, *range(2, rank_of(x))]
        seen_mean, seen = math.reduce_mean(x, axes), math.reduce_variance(x, axes)
        old, new = number(momentum, mean), number(1 - momentum, mean)
        results = tuple(
            math.add(math.multiply(running, old), math.multiply(cast(now, dtype_of(running)), new))
            for running, now in ((mean, seen_mean), (variance, seen))
        )
        mean, variance = seen_mean, seen
    factor = math.multiply(scale, math.rsqrt(math.add(variance, number(epsilon, variance))))
    offset = math.subtract(bias, math.multiply(mean, factor))
    factor, offset = cast(factor, dtype_of(x)), cast(offset, dtype_of(x))
    y = math.add(math.multiply(x, _per_channel(factor, x)), _per_channel(offset, x))
    return [y, *results]


def _normalized(x: Any, axes: list[int], epsilon: float) -> Any:
    mean = math.reduce_mean(x, axes, True)
    centred = math.subtract(x, mean)
    variance = math.reduce_mean(math.square(centred), axes, True)
    return math.multiply(centred, math.rsqrt(math.add(variance, number(epsilon, x))))


@rule("InstanceNormalization")
def instance_normalization(context: Any, inputs: Any, attributes: Any) -> Any:
    x, scale, bias = inputs
    y = _normalized(x, list(range(2, rank_of(x))), attributes.get("epsilon", 1e-5))
    return math.add(math.multiply(y, _per_channel(scale, x)), _per_channel(bias, x))


@rule("LayerNormalization")
def layer_normalization(context: Any, inputs: Any, attributes: Any) -> Any:
    x, scale, bias = inputs[0], inputs[1], at(inputs, 2)
    axis, epsilon = axis_of(attributes.get("axis", -1), rank_of(x)), attributes.get("epsilon", 1e-5)
    if axis == rank_of(x) - 1 and bias is not None and not (context.wants(1) or context.wants(2)):
        return nn.layer_normalization(x, scale, bias, -1, epsilon)
    axes = list(range(axis, rank_of(x)))
    mean = math.reduce_mean(x, axes, True)
    centred = math.subtract(x, mean)
    variance = math.reduce_mean(math.square(centred), axes, True)
    inverse = math.rsqrt(math.add(variance, number(epsilon, x)))
    y = math.multiply(math.multiply(centred, inverse), scale)
    return [y if bias is None else math.add(y, bias), mean, inverse]


@rule("com.microsoft::SkipLayerNormalization")
def skip_layer_normalization(context: Any, inputs: Any, attributes: Any) -> Any:
    x, skip, gamma = inputs[:3]
    total = math.add(x, skip)
    if at(inputs, 4) is not None:
        total = math.add(total, inputs[4])
    beta = at(inputs, 3)
    beta = np.zeros(dims(gamma), dtype_of(x).np) if beta is None else beta
    y = nn.layer_normalization(total, gamma, beta, -1, attributes.get("epsilon", 1e-12))
    return [y, None, None, total]


@rule("com.microsoft::SimplifiedLayerNormalization", "SimplifiedLayerNormalization")
def simplified_layer_normalization(context: Any, inputs: Any, attributes: Any) -> Any:
    x, scale = inputs[:2]
    axes = list(range(axis_of(attributes.get("axis", -1), rank_of(x)), rank_of(x)))
    mean = math.reduce_mean(math.square(x), axes, True)
    inverse = math.rsqrt(math.add(mean, number(attributes.get("epsilon", 1e-5), x)))
    return [math.multiply(math.multiply(x, inverse), scale), inverse]


@rule("com.microsoft::SkipSimplifiedLayerNormalization")
def skip_simplified_layer_normalization(context: Any, inputs: Any, attributes: Any) -> Any:
    total = math.add(inputs[0], inputs[1])
    if at(inputs, 3) is not None:
        total = math.add(total, inputs[3])
    y, inverse = simplified_layer_normalization(context, [total, inputs[2]], attributes)
    return [y, None, inverse, total]


@rule("LRN")
def local_response_normalization(context: Any, inputs: Any, attributes: Any) -> Any:
    """Normalize across the channels c - (size - 1) // 2 to c + size // 2."""
    x, size = inputs[0], attributes["size"]
    alpha, beta, bias = (attributes.get(k, d) for k, d in (("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0)))
    if rank_of(x) == 4 and size % 2:
        last = array.transpose(x, [0, 2, 3, 1])
        return array.transpose(nn.lrn(last, size // 2, bias, alpha / size, beta), [0, 3, 1, 2])
    pads = np.zeros((rank_of(x), 2), np.int32)
    pads[1] = (size - 1) // 2, size // 2
    squares = array.pad(math.square(x), pads)
    channels = dims(x)[1]
    total: Any = None
    for i in range(size):
        part = to_tensor(squares)[:, i : i + channels]
        total = part if total is None else math.add(total, part)
    base = math.add(math.multiply(total, number(alpha / size, x)), number(bias, x))
    return math.realdiv(x, math.pow(base, number(beta, x)))
