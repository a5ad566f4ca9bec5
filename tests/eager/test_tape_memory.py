"""Test which tensors a tape keeps until the backward pass, by weak references and by the peak of NumPy's buffers."""

from __future__ import annotations

import gc
import threading
import tracemalloc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opwright as ow
from thorough import sampled

N = 60_000  # float64: 480 kB a buffer, so that everything else is small beside it
BUFFER = N * 8


def peak_of(step: Callable[[], Any]) -> float:
    """The most memory that was in use at once during a step, beyond what was before, in buffers."""
    step()
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        step()
        return (tracemalloc.get_traced_memory()[1] - before) / BUFFER
    finally:
        tracemalloc.stop()


def chain(link: Callable[[Any], Any], depth: int) -> Callable[[], Any]:
    """Forward and backward through `depth` links; the gradient is that of the sum."""
    start = ow.constant(np.linspace(0.1, 1.0, N))

    def step() -> Any:
        with ow.GradientTape() as tape:
            tape.watch(start)
            x = start
            for _ in range(depth):
                x = link(x)
            y = ow.reduce_sum(x)
        del x
        return tape.gradient(y, start)

    return step


half = ow.constant(np.full(N, 0.5))
third = ow.constant(np.ones((300, 200)))
chosen = ow.constant(np.arange(N) % 2 == 0)
FREE = {  # the gradients of these need no elements of what they were given
    "add": lambda x: x + half,
    "negative": lambda x: -x,
    "reshape and add": lambda x: ow.reshape(ow.reshape(x, [300, 200]) + third, [-1]),
    "concat and slice": lambda x: ow.concat([x[N // 2 :], x[: N // 2] + 0.0], 0),
    "split": lambda x: ow.concat(ow.split(x, 3), 0),
    "stack": lambda x: ow.reshape(ow.stack(ow.unstack(ow.reshape(x, [3, -1])), 0), [-1]),
    "transpose": lambda x: ow.reshape(ow.transpose(ow.reshape(x, [300, 200])) + ow.transpose(third), [-1]),
    "pad": lambda x: ow.pad(x, [[1, 1]])[1:-1] + half,
    "broadcast": lambda x: ow.reduce_mean(ow.broadcast_to(ow.reshape(x, [1, N]), [2, N]), axis=0),
    "gather": lambda x: ow.reshape(ow.gather(ow.reshape(x, [300, 200]), list(range(200)), axis=1), [-1]),
    "cumsum": lambda x: ow.math.cumsum(x) + half,
    "select": lambda x: ow.where(chosen, x, half),
    "average pooling": lambda x: ow.reshape(ow.nn.avg_pool2d(ow.reshape(x, [1, 300, 200, 1]), 3, 1, "SAME"), [-1]),
}
OF_RESULTS = {"exp": lambda x: ow.exp(-x), "tanh": ow.tanh, "sigmoid": ow.sigmoid, "relu": ow.nn.relu}


@pytest.mark.parametrize("name", sampled(FREE, 4))
def test_the_peak_does_not_grow_with_depth(name: str) -> None:
    shallow, deep = peak_of(chain(FREE[name], 4)), peak_of(chain(FREE[name], 40))
    assert deep < shallow + 2.0, f"{shallow:.1f} buffers at depth 4, {deep:.1f} at depth 40"


@pytest.mark.parametrize("name", OF_RESULTS)
def test_results_that_are_read_are_kept_once(name: str) -> None:
    """A chain of n keeps its n results, and neither other inputs nor gradients."""
    deep = peak_of(chain(OF_RESULTS[name], 20))
    assert deep < 28


def test_records_die_as_they_are_used() -> None:
    """Half of the way back, half of the results are gone: the peak of the gradients falls in no place on the whole."""
    start = ow.constant(np.linspace(0.1, 1.0, N))
    alive: list[int] = []
    seen: list[weakref.ref[Any]] = []

    @ow.custom_gradient
    def look(x):
        def grad(dy):
            gc.collect()
            alive.append(sum(r() is not None for r in seen))
            return dy

        return ow.identity(x), grad

    with ow.GradientTape() as tape:
        tape.watch(start)
        x = start
        for _ in range(6):
            x = ow.tanh(x)
            seen.append(weakref.ref(x._array))
            x = look(x)
        y = ow.reduce_sum(x)
    del x
    tape.gradient(y, start)
    assert alive == [6, 5, 4, 3, 2, 1]


def test_a_persistent_tape_keeps_what_it_needs_again() -> None:
    x = ow.constant(numbers())
    with ow.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = ow.exp(x) * x
    first, second = tape.gradient(y, x).numpy(), tape.gradient(y, x).numpy()
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(first, np.exp(numbers()) * (1 + numbers()), rtol=1e-12)


def numbers() -> np.ndarray:
    return np.linspace(-1.0, 1.0, 7)


# ---- single operators -----------------------------------------------------------------------------------------------

# Each with the inputs whose elements its gradient does not read, by the formulas of the gradients.
RELEASED: dict[str, tuple[Callable[..., Any], int, tuple[int, ...], bool]] = {
    # name: (call, inputs, positions of released inputs, whether the result is released)
    "add": (lambda a, b: a + b, 2, (0, 1), True),
    "subtract": (lambda a, b: a - b, 2, (0, 1), True),
    "multiply": (lambda a, b: a * b, 2, (), True),
    "divide": (lambda a, b: a / b, 2, (0,), False),
    "exp": (ow.exp, 1, (0,), False),
    "log": (ow.math.log, 1, (), True),
    "sum": (ow.reduce_sum, 1, (0,), True),
    "mean": (lambda a: ow.reduce_mean(a, axis=1), 1, (0,), True),
    "maximum of an axis": (lambda a: ow.reduce_max(a, axis=1), 1, (), True),
    "concat": (lambda a, b: ow.concat([a, b], 0), 2, (0, 1), True),
    "slice": (lambda a: a[1:, :2], 1, (0,), True),
    "matmul": (lambda a, b: ow.matmul(a, b), 2, (), True),
    "relu": (ow.nn.relu, 1, (0,), False),
    "softmax": (ow.nn.softmax, 1, (0,), False),
    "gather": (lambda a: ow.gather(a, [0, 2]), 1, (0,), True),
    "tile": (lambda a: ow.tile(a, [2, 1]), 1, (0,), True),
    "sort": (lambda a: ow.sort(a), 1, (0,), None),
    "top": (lambda a: ow.math.top_k(a, 2)[0], 1, (0,), None),
    "max pooling": (lambda a: ow.nn.max_pool2d(ow.reshape(a, [1, 4, 4, 1]), 2, 2, "VALID"), 1, (), True),
    "average pooling": (lambda a: ow.nn.avg_pool2d(ow.reshape(a, [1, 4, 4, 1]), 2, 2, "VALID"), 1, (0,), True),
    "cast": (lambda a: ow.cast(a, ow.float32), 1, (0,), True),
    "stop_gradient": (ow.stop_gradient, 1, (0,), True),
    "spectrum": (lambda a: ow.signal.rfft(ow.cast(a, ow.float32)), 1, (0,), True),
}


@pytest.mark.parametrize("name", RELEASED)
def test_what_a_gradient_does_not_read_is_released(name: str) -> None:
    call, n, released, result = RELEASED[name]
    tensors = [ow.constant(np.linspace(0.5, 2.0, 16).reshape(4, 4) + i) for i in range(n)]
    with ow.GradientTape() as tape:
        tape.watch(tensors)
        y = call(*tensors)
    inputs, output = [weakref.ref(t._array) for t in tensors], weakref.ref(y._array)
    base = y._array.base is not None
    del tensors, y
    gc.collect()
    assert tuple(i for i, r in enumerate(inputs) if r() is None) == released
    if result is not None and not base:
        assert (output() is None) == result


def test_watching_keeps_nothing_alive() -> None:
    x = ow.constant(numbers())
    known = weakref.ref(x._array)
    with ow.GradientTape() as tape:
        tape.watch(x)
    del x
    assert known() is None
    assert tape.watched_variables() == ()


def test_identities_are_not_mixed_up() -> None:
    """Tensors that come and go while a tape looks on; an id that is used again must not be taken for the old one."""
    x = ow.constant(2.0)
    with ow.GradientTape() as tape:
        tape.watch(x)
        y = x
        for _ in range(200):
            y = y + 0.0
            ow.constant(1.0) * ow.constant(3.0)
        z = ow.stop_gradient(y) * 5.0
        for _ in range(200):
            z = z + ow.constant(1.0)
        total = y * 3.0 + z * 0.0
    assert tape.gradient(total, x).numpy() == 3.0


def test_threads_agree_on_an_identity() -> None:
    x, result, wait = ow.constant(3.0), [], threading.Barrier(8)

    def work() -> None:
        wait.wait()
        for _ in range(50):
            with ow.GradientTape() as tape:
                tape.watch(x)
                y = x * x
            result.append(float(tape.gradient(y, x)))

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert result == [6.0] * 400


# ---- higher orders --------------------------------------------------------------------------------------------------


def test_higher_orders_through_outlines() -> None:
    """f = sum(mean(x, 1)^3 concat x[0]): by hand f' = mean^2 + [first row], f'' v along ones."""
    x = np.linspace(0.2, 1.7, 12).reshape(3, 4)

    def f(x):
        return ow.reduce_sum(ow.concat([ow.reduce_mean(x, axis=1) ** 3.0, ow.square(x[0])], 0))

    a = ow.constant(x)
    with ow.GradientTape() as outer:
        outer.watch(a)
        with ow.GradientTape() as inner:
            inner.watch(a)
            y = f(a)
        first = inner.gradient(y, a)
        along = ow.reduce_sum(first)
    second = outer.gradient(along, a)
    mean = x.mean(1, keepdims=True)
    by_hand = 3 * mean**2 / 4 * np.ones((1, 4))
    by_hand[0] += 2 * x[0]
    np.testing.assert_allclose(first.numpy(), by_hand, rtol=1e-12)
    twice = 6 * mean / 4 * np.ones((1, 4))
    twice[0] += 2
    np.testing.assert_allclose(second.numpy(), twice, rtol=1e-12)


def test_a_gradient_asked_for_inside_a_function() -> None:
    """Records of an eager tape, run in a trace: their identities become shapes there."""
    x = ow.constant(np.linspace(0.0, 1.0, 6).reshape(2, 3))
    with ow.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = ow.reduce_sum(ow.reduce_mean(x + ow.zeros((3,), ow.float64), axis=0) * 3.0)
    grad = ow.function(lambda: tape.gradient(y, x), autograph=False)()
    np.testing.assert_allclose(grad.numpy(), np.full((2, 3), 1.5), rtol=1e-12)
