"""Plans of the reverse pass: which tapes they run, what distinguishes two tapes, and what they leave to the pass.

Every operator's plan is tested on the rows of its table (tests/ops/test_reverse_plans_of_rows.py).
"""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import opwright as ow
from opwright.eager import reverse_plans, short_calls
from opwright.ops import registry
from opwright.ops.definition import MOST_CALLS

RNG = np.random.default_rng(5)


@pytest.fixture(autouse=True, params=["machine code", "Python"])
def passes(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> list[int]:
    """Build plans at the second gradient of a signature; return the sizes of the tapes that the pass ran."""
    function = short_calls.signature_function() if request.param == "machine code" else None
    monkeypatch.setattr(reverse_plans, "_signature_function", function)
    monkeypatch.setattr(reverse_plans, "signature_function", lambda: function)
    sizes: list[int] = []
    by_pass = reverse_plans._by_pass

    def counted(records: Any, *rest: Any) -> Any:
        sizes.append(len(records))
        return by_pass(records, *rest)

    monkeypatch.setattr(reverse_plans, "_plans", {})
    monkeypatch.setattr(reverse_plans, "SIGHTINGS", 1)
    monkeypatch.setattr(reverse_plans, "_by_pass", counted)
    return sizes


def tensor(*shape: int) -> Any:
    return ow.constant(RNG.standard_normal(shape))


def check_layer(passes: list[int], n: int, m: int) -> None:
    w, b = ow.Variable(tensor(n, m)), ow.Variable(tensor(m))
    for _ in range(5):
        x = tensor(4, n)
        with ow.GradientTape() as tape:
            y = ow.tanh(x @ w + b)
        dw, db = tape.gradient(y, [w, b])
        dz = 1 - np.tanh(x.numpy() @ w.numpy() + b.numpy()) ** 2
        np.testing.assert_allclose(dw, x.numpy().T @ dz, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(db, dz.sum(0), rtol=1e-12)
        w.assign_add(tensor(n, m))
    assert len(passes) == 2


def test_a_layer_of_variables(passes: list[int]) -> None:
    check_layer(passes, 3, 2)


def test_a_layer_after_variables_of_many_shapes(passes: list[int]) -> None:
    reading = registry.get("ReadVariable")
    for rows in range(MOST_CALLS + 10):
        reading.bind({"dtype": ow.float16, "shape": ow.TensorShape([rows, 7])})
    assert len(reading._bound) == MOST_CALLS
    check_layer(passes, 5, 6)


def test_a_mean_of_squares_in_a_dict(passes: list[int]) -> None:
    for _ in range(4):
        x, y = tensor(6), tensor(6)
        with ow.GradientTape() as tape:
            tape.watch([x, y])
            loss = ow.reduce_mean(ow.square(x - y))
        grads = tape.gradient(loss, {"y": y, "x": x})
        np.testing.assert_allclose(grads["x"], (x.numpy() - y.numpy()) / 3, rtol=1e-14)
        np.testing.assert_allclose(grads["y"], (y.numpy() - x.numpy()) / 3, rtol=1e-14)
    assert len(passes) == 2


def test_tapes_that_differ_in_one_tensor() -> None:
    for _ in range(4):
        x, y = tensor(3), tensor(3)
        for a, b, dx in ((x, x, 2 * x.numpy()), (x, y, y.numpy()), (y, x, y.numpy()), (y, y, None)):
            with ow.GradientTape() as tape:
                tape.watch([x, y])
                product = a * b
            grad = tape.gradient(product, x)
            assert (grad is None) == (dx is None)
            if dx is not None:
                np.testing.assert_array_equal(grad, dx)


def test_shapes_and_dtypes_have_plans_of_their_own() -> None:
    for _ in range(3):
        for shape in ((2, 3), (3,), (1, 3), ()):
            for dtype in (np.float32, np.float64):
                x, y = ow.constant(RNG.standard_normal(shape).astype(dtype)), ow.constant(np.ones((2, 3), dtype))
                with ow.GradientTape() as tape:
                    tape.watch(x)
                    z = x + y
                grad = tape.gradient(z, x)
                assert (grad.dtype.np, grad.shape) == (dtype, shape)
                np.testing.assert_array_equal(grad, np.full(shape, 6 // max(1, int(np.prod(shape)))))


def test_derivatives_of_higher_order(passes: list[int]) -> None:
    for _ in range(4):
        x = tensor(4)
        with ow.GradientTape() as outer:
            outer.watch(x)
            with ow.GradientTape() as inner:
                inner.watch(x)
                y = x * x * x
            dx = inner.gradient(y, x)
        np.testing.assert_allclose(outer.gradient(dx, x), 6 * x.numpy(), rtol=1e-14)
    assert len(passes) == 4


def test_persistent_tapes_initial_gradients_and_sources_without_flow() -> None:
    for _ in range(3):
        x, other, dy = tensor(3), tensor(3), tensor(3)
        with ow.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = ow.exp(x)
        for _ in range(2):
            np.testing.assert_array_equal(tape.gradient(y, x, dy), dy.numpy() * np.exp(x.numpy()))
            assert tape.gradient(y, [other, x])[0] is None
            zero, same = tape.gradient(y, [other, y], unconnected_gradients="zero")
            np.testing.assert_array_equal(zero, np.zeros(3))
            np.testing.assert_array_equal(same, np.ones(3))
        np.testing.assert_array_equal(tape.jacobian(y, x), np.diag(np.exp(x.numpy())))


def test_rules_that_read_elements_stay_with_the_pass(passes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    def rule(op: Any, dy: Any) -> Any:
        return dy * float(np.sign(op.x.numpy().sum()))

    monkeypatch.setattr(registry.get("Square"), "gradient_rule", rule)
    for sign in (1.0, -1.0, 1.0, -1.0):
        x = ow.constant([sign, sign])
        with ow.GradientTape() as tape:
            tape.watch(x)
            y = ow.square(x)
        np.testing.assert_array_equal(tape.gradient(y, x), [sign, sign])
    assert len(passes) == 4
    assert [plan for plan, _ in reverse_plans._plans.values()] == [None]


def test_operators_of_users_and_custom_gradients_stay_with_the_pass(passes: list[int]) -> None:
    called = []

    @ow.operator
    class Doubled:
        x = ow.Input(dtypes=ow.floating)
        y = ow.Output(like="x")

        def compute(op, x):
            return 2 * x

        def gradient(op, dy):
            called.append(op)
            return 2.0 * dy

    @ow.custom_gradient
    def tripled(x: Any) -> Any:
        return 3.0 * x, lambda dy: 3.0 * dy

    for _ in range(4):
        x = tensor(2)
        with ow.GradientTape() as tape:
            tape.watch(x)
            y = tripled(Doubled(x))
        np.testing.assert_array_equal(tape.gradient(y, x), [6, 6])
    assert len(passes) == len(called) == 4


def test_large_tensors_stay_with_the_pass(passes: list[int]) -> None:
    x = tensor(reverse_plans.MOST_ELEMENTS + 1)
    for _ in range(4):
        with ow.GradientTape() as tape:
            tape.watch(x)
            y = ow.square(x)
        tape.gradient(y, x)
    assert len(passes) == 4


def test_checks_of_numbers_name_the_operator() -> None:
    x = ow.constant([0.0, 1.0])
    with ow.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = ow.sqrt(x)
    for _ in range(3):
        assert np.isinf(tape.gradient(y, x).numpy()[0])
    with ow.flags(check_numerics=True), pytest.raises(ow.errors.InvalidArgumentError, match="RealDiv"):
        tape.gradient(y, x)


def test_nothing_is_kept_alive() -> None:
    def arrays() -> list[Any]:
        x = tensor(3)
        with ow.GradientTape() as tape:
            tape.watch(x)
            y = ow.exp(ow.square(x))
        grad = tape.gradient(y, x)
        return [weakref.ref(t) for t in (x, y, grad)]

    for _ in range(4):
        dead = arrays()
        gc.collect()
        assert [r() for r in dead] == [None, None, None]


def test_the_oldest_signature_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reverse_plans, "MOST", 3)
    for n in (1, 2, 3, 4, 5, 5, 5):
        x = tensor(n)
        with ow.GradientTape() as tape:
            tape.watch(x)
            y = ow.square(x)
        np.testing.assert_array_equal(tape.gradient(y, x), 2 * x.numpy())
    assert len(reverse_plans._plans) == 3
