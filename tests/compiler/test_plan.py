"""Plans: run as the graph means, drop what is dead, and name the node of an error."""

from __future__ import annotations

import gc
import linecache
import weakref
from typing import Any

import numpy as np
import pytest

import opwright as ow
from opwright.compiler.plan import Plan


def plan_of(function: Any, *specs: ow.TensorSpec) -> Plan:
    return Plan(ow.function(function).get_concrete_function(*specs).graph)


def test_a_plan_is_a_straight_line_of_kernels() -> None:
    plan = plan_of(lambda x: ow.tanh(x * 2.0) + x, ow.TensorSpec([3]))
    x = np.array([1.0, 2.0, 3.0], np.float32)
    (got,) = plan.run(x)
    np.testing.assert_allclose(got, np.tanh(x * 2) + x, rtol=1e-6)
    assert str(plan).count("= k") == 3  # Mul, Tanh, Add: constants and identities cost nothing
    assert "del " in str(plan)


def test_several_outputs_lists_and_inputs_passed_through() -> None:
    def f(x: Any) -> Any:
        a, b = ow.split(x, 2)
        return a, x, b + a, ow.constant(3.0)

    x = np.arange(4, dtype=np.float32)
    got = plan_of(f, ow.TensorSpec([4])).run(x)
    for g, w in zip(got, (x[:2], x, x[2:] + x[:2], 3.0), strict=True):
        np.testing.assert_array_equal(g, w)


def test_values_die_at_their_last_use() -> None:
    seen: list[Any] = []

    class Watched(np.ndarray):
        pass

    @ow.operator
    class Make:
        """Makes an array that can be watched.   .. math:: y = x"""

        x = ow.Input(dtypes=ow.floating)
        y = ow.Output(like="x")

        def compute(op, x: Any) -> Any:
            array = np.array(x).view(Watched)
            seen.append(weakref.ref(array))
            return array

    @ow.operator
    class CountAlive:
        """How many of the watched arrays are alive.   .. math:: y = n"""

        x = ow.Input(dtypes=ow.floating)
        y = ow.Output(like="x")

        def compute(op, x: Any) -> Any:
            gc.collect()
            return np.full(np.shape(x), sum(r() is not None for r in seen), np.float32)

    def f(x: Any) -> Any:
        for _ in range(5):
            x = ow.add(Make(x), 0.0)
        return CountAlive(x)

    with ow.flags(verify=True):
        (alive,) = plan_of(f, ow.TensorSpec([1])).run(np.ones(1, np.float32))
    assert alive[0] <= 1.0


def test_an_error_names_operator_node_and_line() -> None:
    @ow.function
    def f(x: Any, i: Any) -> Any:
        return ow.gather(x, i, name="pick")

    f(ow.constant([1.0, 2.0]), ow.constant(1))
    with pytest.raises(ow.errors.InvalidArgumentError) as caught:
        f(ow.constant([1.0, 2.0]), ow.constant(5))
    text = str(caught.value)
    assert "Gather" in text
    assert "pick" in text
    assert "test_plan.py" in text


PAIRS = {
    "product": lambda x, y: ow.reduce_sum(ow.matmul(x, y)),
    "sum": lambda x, y: ow.tanh(x) + y,
    "infix": lambda x, y: ow.square(x) * y - x,
    "parts": lambda x, y: ow.nn.softmax_cross_entropy_with_logits(x, ow.exp(y)),
    "branches": lambda x, y: ow.where(x > 0.0, x, y),
}


@pytest.mark.parametrize("jit_compile", [None, True])
@pytest.mark.parametrize("program", PAIRS.values(), ids=PAIRS)
def test_shapes_that_do_not_fit_at_run_time_are_errors_as_eagerly(program: Any, jit_compile: bool | None) -> None:
    arguments = ow.ones([3, 4]), ow.ones([2, 5])
    with pytest.raises(ow.errors.InvalidArgumentError) as eager:
        program(*arguments)
    signature = [ow.TensorSpec([None, None])] * 2
    with pytest.raises(ow.errors.InvalidArgumentError) as traced:
        ow.function(program, jit_compile=jit_compile, input_signature=signature)(*arguments)
    operator, text = str(eager.value).split(": ", 1)
    assert str(traced.value).startswith(f"{operator} '")
    assert "test_plan.py" in str(traced.value)
    assert str(traced.value).split(": ", 1)[1] == text


def test_the_source_goes_with_the_plan() -> None:
    plan = plan_of(lambda x: x + 1.0, ow.TensorSpec([2]))
    name = plan.filename
    assert name in linecache.cache
    del plan
    gc.collect()
    assert name not in linecache.cache
