"""Reductions, softmax and products of matrices of ONNX.

Lives here: operators along axes. Not here: pools (pooling.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....core.dtypes import bool as boolean
from ....core.dtypes import int64, uint8
from ....ops import array, linalg, math, nn
from ....ops.array import cast
from ..execution import RULES
from ..operands import at, axes_of, axis_of, dims, dtype_of, rank_of
from .arithmetic import number

rule = RULES.rule


def _extreme(function: Callable[..., Any]) -> Callable[..., Any]:
    def extreme(x: Any, axis: Any, keepdims: bool) -> Any:
        if dtype_of(x) is boolean:
            return cast(function(cast(x, uint8), axis, keepdims), boolean)
        return function(x, axis, keepdims)

    return extreme


def _log_sum(x: Any, axis: Any, keepdims: bool) -> Any:
    return math.log(math.reduce_sum(x, axis, keepdims))


REDUCTIONS: dict[str, Callable[..., Any]] = {
    "ReduceL1": lambda x, axis, keepdims: math.reduce_sum(math.abs(x), axis, keepdims),
    "ReduceL2": lambda x, axis, keepdims: math.sqrt(math.reduce_sum(math.square(x), axis, keepdims)),
    "ReduceLogSum": _log_sum,
    "ReduceLogSumExp": math.reduce_logsumexp,
    "ReduceMax": _extreme(math.reduce_max),
    "ReduceMean": math.reduce_mean,
    "ReduceMin": _extreme(math.reduce_min),
    "ReduceProd": math.reduce_prod,
    "ReduceSum": math.reduce_sum,
    "ReduceSumSquare": lambda x, axis, keepdims: math.reduce_sum(math.square(x), axis, keepdims),
}


def _reduction(function: Callable[..., Any]) -> Any:
    def reduce(context: Any, inputs: Any, attributes: Any) -> Any:
        axes = axes_of(context, inputs, attributes, 1)
        if not axes and attributes.get("noop_with_empty_axes"):
            axes = []
        elif not axes:
            axes = None
        return function(inputs[0], axes, bool(attributes.get("keepdims", 1)))

    return reduce


for _name, _function in REDUCTIONS.items():
    rule(_name)(_reduction(_function))


def _arg(function: Callable[..., Any]) -> Any:
    def arg(context: Any, inputs: Any, attributes: Any) -> Any:
        x = inputs[0]
        axis = axis_of(attributes.get("axis", 0), rank_of(x))
        if attributes.get("select_last_index"):
            last = array.cast(array.shape(x)[axis], int64) - np.int64(1)
            index = math.subtract(last, function(array.reverse(x, [axis]), axis, int64))
        else:
            index = function(x, axis, int64)
        return array.expand_dims(index, axis) if attributes.get("keepdims", 1) else index

    return arg


rule("ArgMax")(_arg(math.argmax))
rule("ArgMin")(_arg(math.argmin))


def _softmax(function: Callable[..., Any]) -> Any:
    def softmax(context: Any, inputs: Any, attributes: Any) -> Any:
        """Compute the softmax; before version 13 all axes from `axis` on are one."""
        x = inputs[0]
        if context.opset >= 13:
            return function(x, attributes.get("axis", -1))
        axis = axis_of(attributes.get("axis", 1), rank_of(x))
        if axis == rank_of(x) - 1:
            return function(x, -1)
        sizes = dims(x)[axis:]
        flat = array.reshape(x, [*_leading(x, axis), int(np.prod(sizes))])
        return array.reshape(function(flat, -1), array.shape(x) if None in dims(x) else list(dims(x)))

    return softmax


def _leading(x: Any, axis: int) -> list[int]:
    sizes = list(dims(x)[:axis])
    return [-1] if None in sizes else [int(np.prod(sizes))]


rule("Softmax")(_softmax(lambda x, axis: nn.softmax(x, axis)))
rule("LogSoftmax")(_softmax(lambda x, axis: nn.log_softmax(x, axis)))


@rule("Hardmax")
def hardmax(context: Any, inputs: Any, attributes: Any) -> Any:
    x = inputs[0]
    axis = axis_of(attributes.get("axis", -1 if context.opset >= 13 else 1), rank_of(x))
    depth = dims(x)[axis]
    return array.one_hot(math.argmax(x, axis), depth, axis=axis, dtype=dtype_of(x))


@rule("LpNormalization")
def lp_normalization(context: Any, inputs: Any, attributes: Any) -> Any:
    x, axis, p = inputs[0], attributes.get("axis", -1), attributes.get("p", 2)
    norm = REDUCTIONS["ReduceL1" if p == 1 else "ReduceL2"](x, [axis], True)
    zero = number(0, x)
    return array.where(math.equal(norm, zero), zero, math.realdiv(x, norm))


@rule("MatMul")
def matmul(context: Any, inputs: Any, attributes: Any) -> Any:
    """Multiply as numpy.matmul: vectors are rows on the left and columns on the right."""
    a, b = inputs
    left, right = rank_of(a) == 1, rank_of(b) == 1
    a = array.expand_dims(a, 0) if left else a
    b = array.expand_dims(b, 1) if right else b
    product = linalg.matmul(a, b)
    if right:
        product = array.squeeze(product, [-1])
    return array.squeeze(product, [-2 if not right else -1]) if left else product


@rule("Gemm")
def gemm(context: Any, inputs: Any, attributes: Any) -> Any:
    a, b, c = inputs[0], inputs[1], at(inputs, 2)
    alpha, beta = attributes.get("alpha", 1.0), attributes.get("beta", 1.0)
    product = linalg.matmul(a, b, bool(attributes.get("transA")), bool(attributes.get("transB")))
    if alpha != 1:
        product = math.multiply(product, number(alpha, a))
    if c is None or beta == 0:
        return product
    return math.add(product, c if beta == 1 else math.multiply(c, number(beta, c)))


@rule("com.microsoft::FusedMatMul")
def fused_matmul(context: Any, inputs: Any, attributes: Any) -> Any:
    a, b = inputs
    product = linalg.matmul(a, b, bool(attributes.get("transA")), bool(attributes.get("transB")))
    alpha = attributes.get("alpha", 1.0)
    return product if alpha == 1 else math.multiply(product, number(alpha, a))


@rule("Einsum")
def einsum(context: Any, inputs: Any, attributes: Any) -> Any:
    return linalg.einsum(attributes["equation"].replace(" ", ""), *inputs)


@rule("CumSum")
def cumulative_sum(context: Any, inputs: Any, attributes: Any) -> Any:
    axis = int(context.required(inputs[1], "the axis").reshape(-1)[0])
    return math.cumsum(inputs[0], axis, bool(attributes.get("exclusive")), bool(attributes.get("reverse")))


@rule("CumProd")
def cumulative_product(context: Any, inputs: Any, attributes: Any) -> Any:
    axis = int(context.required(inputs[1], "the axis").reshape(-1)[0])
    return math.cumprod(inputs[0], axis, bool(attributes.get("exclusive")), bool(attributes.get("reverse")))


@rule("TopK")
def top_k(context: Any, inputs: Any, attributes: Any) -> Any:
    x = inputs[0]
    k = attributes.get("k")
    k = int(context.required(inputs[1], "k").reshape(-1)[0]) if k is None else k
    axis = axis_of(attributes.get("axis", -1), rank_of(x))
    perm = list(range(rank_of(x)))
    perm[axis], perm[-1] = perm[-1], perm[axis]
    last = x if axis == rank_of(x) - 1 else array.transpose(x, perm)
    if attributes.get("largest", 1):
        values, indices = math.top_k(last, k, index_type=int64)
    else:
        indices = cast(math.argsort(last, -1, "ASCENDING", stable=True), int64)[..., :k]
        values = array.gather(last, indices, batch_dims=rank_of(x) - 1, axis=rank_of(x) - 1)
    if axis != rank_of(x) - 1:
        values, indices = array.transpose(values, perm), array.transpose(indices, perm)
    return values, indices
