"""Test that a traced function keeps only the values that its backward program reads, and the shapes of others."""

from __future__ import annotations

import gc
import resource
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opwright as ow
from opwright.compiler.background import compiling

ROWS, COLUMNS = 200, 300
BUFFER = ROWS * COLUMNS * 8


def held_by(function: Callable[..., Any], *arguments: Any) -> float:
    """Return the memory of a tape between forward and backward pass, in buffers of the argument's size."""

    def forward() -> Any:
        tape = ow.GradientTape()
        with tape:
            tape.watch(arguments)
            y = function(*arguments)
        return tape, y

    for _ in range(3):  # with OPWRIGHT_HOT_CALLS=1 the second call compiles
        forward()
    compiling.submit(lambda: None).wait()  # its thread allocates, too
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        kept = forward()
        gc.collect()
        result = (tracemalloc.get_traced_memory()[0] - before) / BUFFER
        kept[0].gradient(kept[1], arguments)
        return result
    finally:
        tracemalloc.stop()


def signature(known: bool) -> Any:
    return [ow.TensorSpec([ROWS, COLUMNS] if known else [None, None], ow.float64)]


x = ow.constant(np.linspace(0.1, 0.9, ROWS * COLUMNS).reshape(ROWS, COLUMNS))


def rows_and_columns(x: Any) -> Any:
    """Sums that broadcast back: their gradients ask for the shapes of all that is in between."""
    for _ in range(10):
        y = x + ow.reduce_mean(x, axis=0)
        x = y - ow.reduce_mean(y, axis=1, keepdims=True)
    return ow.reduce_sum(x)


def moved(x: Any) -> Any:
    for _ in range(10):
        x = ow.concat([x[1:], x[:1]], 0) + ow.reduce_sum(ow.transpose(x)) * 1e-9
    return ow.reduce_sum(x)


def of_results(x: Any) -> Any:
    for _ in range(10):
        x = ow.tanh(x) + 1.0
    return ow.reduce_sum(x)


@pytest.mark.parametrize("known", [True, False], ids=["known sizes", "unknown sizes"])
@pytest.mark.parametrize(("function", "buffers"), [(rows_and_columns, 0.2), (moved, 0.2), (of_results, 10.3)])
def test_what_is_held(function: Callable[..., Any], buffers: float, known: bool) -> None:
    assert held_by(ow.function(function, autograph=False, input_signature=signature(known)), x) < buffers


@pytest.mark.parametrize("known", [True, False], ids=["known sizes", "unknown sizes"])
@pytest.mark.parametrize("function", [rows_and_columns, moved, of_results])
def test_the_gradient_is_the_eager_one(function: Callable[..., Any], known: bool) -> None:
    a = ow.constant(np.linspace(0.1, 0.9, 12).reshape(3, 4))
    traced = ow.function(
        function, autograph=False, input_signature=[ow.TensorSpec(None if not known else [3, 4], ow.float64)]
    )

    def both(f: Any) -> tuple[Any, Any]:
        with ow.GradientTape() as outer:
            outer.watch(a)
            with ow.GradientTape() as inner:
                inner.watch(a)
                y = f(a)
            first = inner.gradient(y, a)
            along = ow.reduce_sum(first * a)
        return first.numpy(), outer.gradient(along, a, unconnected_gradients="zero").numpy()

    for actual, expected in zip(both(traced), both(function)):
        np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-12)


def test_a_shape_is_computed_once_and_taken_across() -> None:
    """The backward graph asks for shapes; it captures vectors, not the tensors."""
    traced = ow.function(rows_and_columns, autograph=False, input_signature=signature(False))
    with ow.GradientTape() as tape:
        tape.watch(x)
        y = traced(x)
    tape.gradient(y, x)
    program = traced.get_concrete_function().program
    (derivative,) = program._derivatives.values()
    for built in derivative._backward.values():
        for outer, placeholder in built.program.trace.captures.values():
            assert placeholder.shape.rank == 1, f"captures {outer}"
            assert placeholder.dtype is ow.int64
    assert len({id(o) for o in derivative.forward.outputs}) == len(derivative.forward.outputs)


def test_a_loop_keeps_shapes_instead_of_tensors() -> None:
    def loop(x: Any) -> Any:
        def turn(i: Any, y: Any) -> Any:
            return i + 1, y + ow.reduce_mean(y, axis=0)

        return ow.reduce_sum(ow.while_loop(lambda i, y: i < 20, turn, (0, x))[1])

    assert held_by(ow.function(loop, autograph=False, input_signature=signature(False)), x) < 0.5


def test_a_branch_keeps_shapes_instead_of_tensors() -> None:
    def branch(x: Any) -> Any:
        def then() -> Any:
            y = x + 1.0
            return y + ow.reduce_mean(y + 2.0, axis=0)

        return ow.reduce_sum(ow.cond(ow.reduce_sum(x) > 0.0, then, lambda: x))

    assert held_by(ow.function(branch, autograph=False, input_signature=signature(False)), x) < 0.5


def test_a_second_output_that_nobody_differentiates() -> None:
    """Zeros in place of its gradient need its shape alone."""
    traced = ow.function(
        lambda x: (ow.reduce_sum(x * 2.0), ow.exp(x)), autograph=False, input_signature=signature(False)
    )
    with ow.GradientTape() as tape:
        tape.watch(x)
        y, _ = traced(x)
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), np.full((ROWS, COLUMNS), 2.0))


def test_a_later_tape_over_the_gradient_of_a_function() -> None:
    """The gradient is linear in what arrives: its derivative by that is the function's own, the other way round."""
    traced = ow.function(lambda x: ow.tanh(x) * ow.reduce_mean(x), autograph=False)
    a = ow.constant(np.linspace(0.1, 0.9, 4))
    v = ow.constant(np.array([1.0, -2.0, 0.5, 3.0]))
    with ow.GradientTape() as first:
        first.watch(a)
        y = traced(a)
    with ow.GradientTape() as second:
        second.watch(v)
        pulled = first.gradient(y, a, output_gradients=v)
        total = ow.reduce_sum(pulled * ow.constant(np.arange(1.0, 5.0)))
    result = second.gradient(total, v).numpy()
    t, m = np.tanh(a.numpy()), a.numpy().mean()
    jacobian = np.diag((1 - t * t) * m) + np.outer(t, np.full(4, 0.25))
    np.testing.assert_allclose(result, jacobian @ np.arange(1.0, 5.0), rtol=1e-12)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the resident set as Linux states it")
def test_zeros_in_a_trace_occupy_no_memory():
    """Operators with several results receive zeros for those without a gradient, an LSTM as many as its gates."""
    spec, kept = ow.TensorSpec([1 << 24], ow.float32), []

    def growth() -> int:
        before = resident_pages()
        kept.append(ow.function(lambda x: x + ow.zeros_like(x)).get_concrete_function(spec))
        return resident_pages() - before

    assert min(growth() for _ in range(3)) * resource.getpagesize() < 1 << 24  # a quarter of the zeros


def resident_pages() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1])
