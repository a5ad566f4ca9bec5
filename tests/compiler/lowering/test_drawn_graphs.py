"""Graphs drawn at random, native against the plain plan: fusion, sharing of memory and moves meet in them.

Their operators are continuous, so that a difference in the last bit stays small.
"""

import numpy as np
import pytest

import opwright as ow
from opwright.compiler import partitioner
from opwright.compiler.calls import function_of
from opwright.compiler.plan import Plan
from opwright.ops.dispatch import quietly
from thorough import sampled

UNARY = [
    ow.tanh,
    ow.nn.relu,
    ow.abs,
    ow.square,
    ow.sigmoid,
    ow.nn.gelu,
    ow.negative,
    ow.nn.relu6,
    ow.sin,
    lambda x: x * 0.5 + 0.25,
    lambda x: ow.minimum(x, 0.5),
    lambda x: ow.where(x > 0.0, x, 0.1 * x),
    ow.nn.softplus,
    lambda x: 1.0 / (1.0 + ow.square(x)),
    lambda x: ow.cast(ow.cast(x, ow.float64) * 0.3, ow.float32),
    ow.nn.elu,
]
BINARY = [
    ow.add,
    ow.subtract,
    ow.multiply,
    ow.maximum,
    ow.minimum,
    ow.math.squared_difference,
    lambda x, y: ow.where(x > y, x, y),
    lambda x, y: x / (1.0 + ow.abs(y)),
]


def _axis(rng, x):
    return int(rng.integers(len(x.shape)))


def rearranged(rng, x):
    """The elements, or some of them, in other places."""
    rank = len(x.shape)
    kind = int(rng.integers(8))
    axis = _axis(rng, x)
    if kind == 0:
        return ow.transpose(x, rng.permutation(rank))
    if kind == 1:
        return ow.reshape(x, [-1])
    if kind == 2:
        return ow.reverse(x, [axis])
    if kind == 3:
        return ow.concat([x, x * 2.0], axis)
    if kind == 4:
        return ow.pad(x, [[1, 2] if i == axis else [0, 0] for i in range(rank)])
    if kind == 5:
        return x[tuple(slice(None, None, 2) if i == axis else slice(None) for i in range(rank))]
    if kind == 6:
        return ow.expand_dims(x, axis)
    return ow.gather(x, [0, 0, -1 % x.shape[axis]], axis=axis)


def reduced(rng, x):
    reduce = [ow.reduce_sum, ow.reduce_mean, ow.reduce_max, ow.reduce_min][rng.integers(4)]
    return reduce(x, _axis(rng, x), keepdims=bool(rng.integers(2)))


def contracted(rng, x):
    """A product, a convolution, a pool, or a softmax, by the rank."""
    kind = int(rng.integers(4))
    n = x.shape[-1]
    if len(x.shape) == 4 and min(x.shape[1:3]) >= 2 and kind < 3:
        weights = ow.constant(rng.standard_normal((3, 3, n, 1 + int(rng.integers(9)))).astype(np.float32) * 0.3)
        if kind == 0:
            return ow.nn.conv2d(x, weights, 1 + int(rng.integers(2)), "SAME")
        if kind == 1:
            return ow.nn.depthwise_conv2d(x, weights[..., :1], [1, 1, 1, 1], "SAME")
        return ow.nn.max_pool2d(x, 2, 1, "SAME")
    if kind == 3:
        return ow.nn.softmax(x)
    weights = ow.constant(rng.standard_normal((n, 1 + int(rng.integers(20)))).astype(np.float32) * n**-0.5)
    return ow.matmul(ow.reshape(x, [-1, n]), weights)


def drawn(seed):
    """A function of two tensors, and the tensors."""
    rng = np.random.default_rng(seed)
    shape = [(2, 6, 5, 3), (4, 7), (3, 5, 8), (1, 9, 9, 4), (33, 17)][rng.integers(5)]
    a, b = (ow.constant(rng.standard_normal(shape).astype(np.float32)) for _ in range(2))
    moves = rng.integers(0, 2**31, 12)

    def function(a, b):
        values = [a, b]
        for seed in moves:
            step = np.random.default_rng(seed)
            x = values[step.integers(max(0, len(values) - 4), len(values))]
            kind = step.integers(10)
            if kind < 4 or not x.shape.rank:
                y = UNARY[step.integers(len(UNARY))](x)
            elif kind < 7:
                alike = [v for v in values if v.shape == x.shape]
                y = BINARY[step.integers(len(BINARY))](x, alike[step.integers(len(alike))])
            elif kind == 7:
                y = rearranged(step, x)
            elif kind == 8:
                y = reduced(step, x)
            else:
                y = contracted(step, x)
            if 0 < y.shape.num_elements() < 20_000 and y.shape.rank <= 5:
                values.append(y)
        return [values[-1], values[len(values) // 2], *(v for v in values[2:] if v.shape.num_elements() < 8)]

    return function, a, b


def check(seed):
    function, a, b = drawn(seed)
    graph = ow.function(function, autograph=False).get_concrete_function(a, b).optimized_graph
    result = partitioner.compile_regions(graph, function_of)
    arrays = a.numpy(), b.numpy()
    captured = [c._array for c in graph.origin.captured] if graph.origin is not None else []
    expected = quietly(Plan(graph).run, *arrays, *captured)
    plan = Plan(result.graph)
    for _ in range(2):  # the second time in memory that the first has used
        for i, (x, y) in enumerate(zip(quietly(plan.run, *arrays, *captured), expected, strict=True)):
            scale = float(np.abs(y).max(initial=1e-3))
            np.testing.assert_allclose(x, y, 0.0, 2e-5 * scale, err_msg=f"seed {seed}, result {i}")


@pytest.mark.parametrize("block", sampled(range(4), 4))
def test_drawn_graphs(block):
    for seed in range(4 * block, 4 * block + 4):
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_many_drawn_graphs(block):
    for seed in range(1000 + 100 * block, 1100 + 100 * block):
        check(seed)
