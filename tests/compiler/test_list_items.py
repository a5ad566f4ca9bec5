"""Gradients of loops over batches and sequences of unknown sizes: compiled for the sizes of a call as one native call.

Lives here: elements of lists that are the same in all iterations, and their types; values against eager float64.
Not here: lists of constant length (test_fixed_lists.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opwright as ow

W = np.random.default_rng(0).standard_normal((5, 5)).astype(np.float32) * 0.5


def last_state(x, w):
    """A recurrent layer over [batch, time, 5]."""
    steps = ow.transpose(x, [1, 0, 2])
    start = ow.zeros([ow.shape(x)[0], 5], x.dtype)
    count = ow.shape(x)[1]
    return ow.while_loop(
        lambda i, h: i < count, lambda i, h: (i + 1, ow.tanh(steps[i] + ow.matmul(h, w * 1.0))), (0, start)
    )[1]


def all_states(x, w):
    """The same, with the states of all steps in an array that grows."""
    steps, count = ow.transpose(x, [1, 0, 2]), ow.shape(x)[1]
    h, states = ow.zeros([ow.shape(x)[0], 5], x.dtype), ow.TensorArray(x.dtype, 0, dynamic_size=True)
    for i in ow.range(count):
        h = ow.tanh(steps[i] + ow.matmul(h, w))
        states = states.write(i, h)
    return states.stack()


def step(program: Any, w: Any) -> Any:
    def run(x):
        with ow.GradientTape() as tape:
            tape.watch(x)
            total = ow.reduce_sum(ow.square(program(x, w)))
        return total, *tape.gradient(total, [x, w])

    return run


@pytest.mark.parametrize("program", [last_state, all_states])
def test_sizes_of_a_call(program):
    spec = ow.TensorSpec([None, None, 5])
    f = ow.function(step(program, ow.Variable(W)), jit_compile=True, input_signature=[spec])
    eager = step(ow.autograph.to_graph(program), ow.Variable(W.astype(np.float64)))
    rng = np.random.default_rng(1)
    for batch, time in ((3, 4), (2, 7), (1, 1)):
        x = rng.standard_normal((batch, time, 5)).astype(np.float32)
        for actual, expected in zip(f(ow.constant(x)), eager(ow.constant(x.astype(np.float64))), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=2e-5, atol=1e-6)
        report = f.experimental_get_compiler_ir(ow.constant(x))("report").splitlines()
        assert "in 1 native calls, 1 as they are" in report[0], report
        assert report[-1].endswith("1 reads and writes of variables")


def test_elements_of_users_lists_keep_their_errors():
    @ow.function(jit_compile=True)
    def read(x, i):
        kept = []
        for _ in ow.range(ow.shape(x)[0]):
            kept.append(x)  # noqa: PERF401
        return kept[i]

    np.testing.assert_array_equal(read(ow.constant([1.0, 2.0]), ow.constant(1)), [1, 2])
    with pytest.raises(ow.errors.OpError):
        read(ow.constant([1.0, 2.0]), ow.constant(2))
