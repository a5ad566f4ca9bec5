"""Layout assignment: how many transposes remain of channels-first programs, and that no bit changes.

Lives here: each operator's equation, the networks that need them together, programs that are left alone.
Not here: other passes (test_graph_passes.py), transposes of `.tflite` files (tests/lite/convert).
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opwright as ow
from opwright.compiler.plan import Plan
from opwright.graph.builder import verify
from opwright.graph.ir import same_attr
from opwright.graph.passes.layout import assign_layouts, transposes
from opwright.graph.passes.layout_rules import reshape_groups
from opwright.ops import registry
from thorough import examples

RNG = np.random.default_rng(24)


def integers(*shape):
    """Return small whole numbers as floats: their sums are exact in every order."""
    return RNG.integers(-4, 5, shape).astype(np.float32)


X = integers(2, 6, 5, 4)
W, V = ow.constant(integers(3, 3, 6, 6)), ow.constant(integers(1, 1, 6, 8))
NHWC, NCHW = [0, 2, 3, 1], [0, 3, 1, 2]


def conv(x, kernel=W):
    """Return a convolution of channels-first images, as importers write it."""
    return ow.transpose(ow.nn.conv2d(ow.transpose(x, NHWC), kernel, strides=1, padding="SAME"), NCHW)


def laid_out(function, *arrays, sizes=None):
    """Return the number of transposes after the pass, checking the results against those before it."""
    specs = [ow.TensorSpec(sizes or a.shape, a.dtype) for a in arrays]
    concrete = ow.function(function, autograph=False).get_concrete_function(*specs)
    graph = concrete.optimized_graph
    moved, remaining = assign_layouts(graph, registry.get)
    verify(moved)
    inputs = [*arrays, *(c._array for c in concrete.captured_inputs)]
    before, after = ([np.asarray(y) for y in ow.ops.dispatch.quietly(Plan(g).run, *inputs)] for g in (graph, moved))
    assert all(map(same_attr, before, after))
    assert [v.spec.shape.as_list() for v in moved.outputs] == [v.spec.shape.as_list() for v in graph.outputs]
    assert moved is graph or len(remaining) == len(transposes(moved)) <= len(transposes(graph))
    return len(transposes(moved))


BIAS, SQUARE = ow.constant(integers(6, 1, 1)), ow.constant(integers(6, 6))
# Programs between two convolutions, whose transposes cancel through them: only those of input and output remain.
BETWEEN = {
    "unary": lambda y: ow.nn.relu(y),
    "binary": lambda y: ow.nn.relu(y) + ow.square(y),
    "bias": lambda y: (y + BIAS) * 2.0,
    "select": lambda y: ow.where(y > 0.0, y, -y),
    "cast": lambda y: ow.cast(ow.cast(y, ow.int32), ow.float32),
    "reduction": lambda y: y - ow.reduce_max(y, [2, 3], keepdims=True) + ow.reduce_sum(y, 1, keepdims=True),
    "squeeze_and_excite": lambda y: y * ow.reduce_sum(y, [2, 3])[:, :, None, None],
    "concat": lambda y: ow.concat([y, ow.nn.relu(y)], 1)[:, ::2],
    "split": lambda y: ow.concat(ow.split(y, 2, 1)[::-1], 1),
    "pad": lambda y: ow.pad(y, [[0, 0], [0, 0], [2, 0], [1, 3]])[:, :, 1:, 2:],
    "mirror_pad": lambda y: ow.pad(y, [[0, 0], [0, 0], [2, 0], [1, 3]], "REFLECT"),
    "slice": lambda y: ow.slice(y, [0, 0, 1, 1], [2, 6, -1, 2]),
    "strided_slice": lambda y: y[:, :, 1::2, ::-1],
    "cumsum": lambda y: ow.cumsum(y, 1),
    "reverse": lambda y: ow.reverse(y, [1, 3]),
    "roll": lambda y: ow.roll(y, [1, 2], [2, 1]),
    "tile": lambda y: ow.tile(y, [1, 1, 2, 1]),
    "gather": lambda y: ow.gather(y, [5, 4, 3, 2, 1, 0], axis=1),
    "stack": lambda y: ow.stack([y, -y], 1)[:, 1],
    "unstack": lambda y: ow.stack(ow.unstack(y, axis=1), 1),
    "flatten_and_back": lambda y: ow.reshape(ow.reshape(y, [2, 6, 20]), [2, 6, 4, 5]),
    "groups": lambda y: ow.reshape(ow.reverse(ow.reshape(y, [2, 3, 2, 5, 4]), [1]), [2, 6, 5, 4]),
    "ones": lambda y: ow.squeeze(ow.expand_dims(y, 1), [1]),
    "rows": lambda y: ow.transpose(ow.matmul(ow.transpose(y, NHWC), SQUARE), NCHW),
}


def test_transposes_cancel_between_convolutions():
    remaining = {name: laid_out(lambda x, f=f: conv(f(conv(x))), X) for name, f in BETWEEN.items()}
    assert remaining == {
        **dict.fromkeys(BETWEEN, 2),
        "unstack": 3,
    }  # its parts have no channels, so the stack has no order to follow


def test_unknown_batches_and_sizes():
    names = ("unary", "bias", "reduction", "concat", "split", "strided_slice", "squeeze_and_excite", "pad")
    remaining = {n: laid_out(lambda x, n=n: conv(BETWEEN[n](conv(x))), X, sizes=(None, 6, 5, 4)) for n in names}
    assert remaining == dict.fromkeys(names, 2)
    free = [n for n in names if n != "squeeze_and_excite"]
    remaining = {n: laid_out(lambda x, n=n: conv(BETWEEN[n](conv(x))), X, sizes=(None, 6, None, None)) for n in free}
    assert remaining == dict.fromkeys(free, 2)


def head(x):
    """Pool the whole image: no transpose of the result remains."""
    return ow.reduce_sum(conv(x), [2, 3])


def attention(x):
    """Attend over positions: patches become rows by the transpose that the convolution had."""
    rows = ow.transpose(ow.reshape(conv(x, V), [2, 8, 20]), [0, 2, 1])
    scores = ow.matmul(rows, ow.transpose(rows, [0, 2, 1]))
    return ow.matmul(scores, rows)


def shuffle(x):
    """Shuffle channels: one transpose is the operation itself."""
    y = ow.transpose(ow.reshape(conv(x), [2, 2, 3, 5, 4]), [0, 2, 1, 3, 4])
    return ow.reduce_max(conv(ow.reshape(y, [2, 6, 5, 4])), [2, 3])


@pytest.mark.parametrize(("network", "remaining"), [(head, 1), (attention, 1), (shuffle, 2)])
def test_transposes_that_every_order_needs_remain(network, remaining):
    assert laid_out(network, X) == remaining


def test_products_keep_the_order_of_their_matrices():
    exchanged = [1, 0, 2, 3]

    def program(x):
        y = ow.transpose(x, exchanged)
        return ow.transpose(
            ow.matmul(ow.matmul(y, -y, transpose_b=True), ow.transpose(y, [0, 1, 3, 2])[:, :, 1:], transpose_b=True),
            exchanged,
        )

    assert laid_out(program, X) == 0
    assert laid_out(lambda x: ow.matmul(ow.transpose(x, exchanged), ow.transpose(conv(x), exchanged)[:, :, :4]), X) == 3


def test_sums_in_two_orders_have_that_of_the_source():
    """A residual stream stays in one order, instead of a transpose in each layer."""

    def program(x):
        y = ow.transpose(ow.reshape(x, [2, 6, 20]), [2, 0, 1])
        for _ in range(3):
            y = y + ow.sort(ow.matmul(y, SQUARE), axis=-1)
        return y

    assert laid_out(program, X) == 1


def test_class_axes():
    assert laid_out(lambda x: ow.argmax(conv(x), 1), X) == 1
    assert laid_out(lambda x: ow.transpose(ow.argmax(conv(x), 3), [0, 2, 1]), X) == 1


def test_declined_rules_leave_nothing_behind():
    batches = np.arange(2 * 6 * 5 * 4, dtype=np.float32).reshape(2, 6, 5, 4) % 7
    assert laid_out(lambda x: ow.matmul(conv(x), ow.constant(batches[0, 0, :4])), X) == 2
    assert laid_out(lambda x: ow.sort(ow.nn.layer_normalization(conv(x), axis=[1, 2, 3])), X) == 2


@pytest.mark.parametrize(
    "program",
    [
        lambda x: ow.transpose(x, NHWC),
        lambda x: ow.sort(ow.transpose(x, NHWC), axis=-1),
        lambda x: ow.reshape(ow.transpose(x, NHWC), [2, -1]),
        lambda x: (ow.sort(ow.nn.relu(ow.transpose(x, NHWC)), axis=-1), ow.sort(-ow.transpose(x, NHWC), axis=-1)),
    ],
)
def test_a_program_that_would_not_move_less_is_left_alone(program):
    graph = ow.function(program, autograph=False).get_concrete_function(ow.TensorSpec(X.shape, X.dtype)).optimized_graph
    assert assign_layouts(graph, registry.get) == (graph, [])


@pytest.mark.parametrize(
    ("before", "after", "groups"),
    [
        ([2, 3, 4], [6, 4], [([0, 1], [0]), ([2], [1])]),
        ([2, 1, 12], [2, 3, 4, 1], [([0], [0]), ([2], [1, 2])]),
        ([None, 6, 4], [None, 24], [([0], [0]), ([1, 2], [1])]),
        ([4, 6], [6, 4], [([0, 1], [0, 1])]),
        ([None, 6], [6, None], None),
        ([None, 6], [3, None, 2], None),
        ([None, None], [None, None], None),
    ],
)
def test_groups_of_reshapes(before, after, groups):
    assert reshape_groups(before, after) == groups


STEPS = {
    **BETWEEN,
    "conv": conv,
    "transpose": lambda y: ow.transpose(y, [0, 2, 1, 3]),
    "nhwc": lambda y: ow.transpose(y, NHWC),
    "rank_3": lambda y: ow.reshape(ow.transpose(ow.reshape(y, [2, y.shape[1], -1]), [0, 2, 1]), [2, -1, y.shape[1], 1]),
    "softmax": lambda y: ow.nn.softmax(y, axis=1),
}


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.sampled_from(sorted(STEPS)), min_size=2, max_size=6))
def test_random_chains_keep_every_bit(names):
    def program(x):
        y = x
        for name in names:
            try:
                y = STEPS[name](y)
            except (ow.errors.OpError, ValueError):  # of another shape
                continue
        return y, ow.reduce_max(y, 1)

    laid_out(program, X)
