"""Derivatives of generated programs: those of a graph are those of Python's own turns and branches on a tape, and
these are those of differences."""

import numpy as np
import pytest
from gradient_programs import POINTS, Made, programs, reset, tensors, total, v
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import opwright as ow
from thorough import examples


def first_order(program, arguments):
    """The results, and the gradients by a, b, s and v."""
    reset()
    sources = [*arguments[:3], v]
    with ow.GradientTape() as tape:
        tape.watch(arguments[:3])
        outputs = program(*arguments)
        y = total(outputs)
    return [*outputs, *map(ow.convert_to_tensor, tape.gradient(y, sources, unconnected_gradients="zero"))]


def second_order(program, arguments):
    """The gradients of a weighted sum of the gradients."""
    reset()
    sources = [*arguments[:3], v]
    with ow.GradientTape() as outer:
        outer.watch(arguments[:3])
        with ow.GradientTape() as tape:
            tape.watch(arguments[:3])
            y = total(program(*arguments))
        grads = [ow.convert_to_tensor(g) for g in tape.gradient(y, sources, unconnected_gradients="zero")]
        mixed = ow.add_n([ow.reduce_sum(ow.sin(g + k)) for k, g in enumerate(grads)])
    return [ow.convert_to_tensor(g) for g in outer.gradient(mixed, sources, unconnected_gradients="zero")]


def differences(program, point, n, step):
    """Central differences of `total` by a, b, s and v."""
    start = [np.array(x, np.float64) for x in (*point, (0.6, -0.7))]
    grads = [np.zeros_like(x) for x in start]
    for k, x in enumerate(start):
        for at in np.ndindex(x.shape):
            values = []
            for sign in (1, -1):
                moved = [y.copy() for y in start]
                moved[k][at] += sign * step
                reset(moved[3])
                values.append(float(total(program(*tensors(moved[:3], n)))))
            grads[k][at] = (values[0] - values[1]) / (2 * step)
    return grads


def close(actual, expected, what):
    for i, (x, y) in enumerate(zip(actual, expected, strict=True)):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-8, atol=1e-10, err_msg=f"{what}, {i}")


def check(source, point, n, second, at_a_time):
    with Made(source) as program:
        arguments = tensors(point, n)
        expected = first_order(program, arguments)
        traced = ow.function(program)
        close(first_order(traced, arguments), expected, "a function on a tape")
        # `at_a_time`: the function is traced for any n, and called with another one first
        whole = ow.function(lambda *args: first_order(traced if at_a_time else program, args))
        close(whole(*arguments), expected, "a tape in a function")
        if second:
            expected = second_order(program, arguments)
            close(second_order(traced, arguments), expected, "second order, a function on two tapes")
            whole = ow.function(lambda *args: second_order(traced if at_a_time else program, args))
            close(whole(*arguments), expected, "second order, two tapes in a function")


def check_by_differences(source, point, n):
    if "stop_gradient" in source or "assign" in source:
        return  # not what differences see
    with Made(source) as program:
        result = first_order(program, tensors(point, n))[2:]
        coarse, fine = differences(program, point, n, 1e-5), differences(program, point, n, 3e-6)
    for one, other, grad in zip(coarse, fine, result):
        if np.allclose(one, other, rtol=1e-5, atol=1e-7):  # else a branch or a maximum changes here
            np.testing.assert_allclose(np.asarray(grad), other, rtol=1e-5, atol=1e-6)


SETTINGS = {"suppress_health_check": list(HealthCheck), "deadline": None}


@settings(max_examples=examples(20), **SETTINGS)
@given(programs(), POINTS, st.integers(0, 3), st.booleans(), st.booleans())
def test_gradients_of_generated_programs(source, point, n, second, at_a_time):
    check(source, point, n, second, at_a_time)


@settings(max_examples=examples(15), **SETTINGS)
@given(programs(), POINTS, st.integers(0, 3))
def test_gradients_are_those_of_differences(source, point, n):
    check_by_differences(source, point, n)


@pytest.mark.slow
@settings(max_examples=600, **SETTINGS)
@given(programs(3), POINTS, st.integers(0, 4), st.booleans(), st.booleans())
def test_gradients_of_many_generated_programs(source, point, n, second, at_a_time):
    check(source, point, n, second, at_a_time)
    check_by_differences(source, point, n)
