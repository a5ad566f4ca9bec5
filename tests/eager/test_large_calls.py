"""Large eager calls by the compiler's kernels: values, bits that depend on nothing else, and what stays with NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import opwright as ow
from opwright.core.errors import InvalidArgumentError
from opwright.eager import large_calls
from opwright.ops import registry
from opwright.ops.kernels import KernelKey
from opwright.scalar.table import OF_OPERATOR

RNG = np.random.default_rng(11)
SHAPE = (257, 263)  # 67591 elements, a prime number of rows: no multiple of a vector
vectorized = np.vectorize

# The interval of inputs, and the function of float64.
FUNCTIONS: dict[str, tuple[float, float, Any]] = {
    "Exp": (-20, 20, np.exp),
    "Expm1": (-5, 5, np.expm1),
    "Log": (1e-6, 100, np.log),
    "Log1p": (-0.9, 100, np.log1p),
    "Tan": (-1.5, 1.5, np.tan),
    "Asin": (-1, 1, np.arcsin),
    "Acos": (-1, 1, np.arccos),
    "Atan": (-50, 50, np.arctan),
    "Sinh": (-10, 10, np.sinh),
    "Cosh": (-10, 10, np.cosh),
    "Tanh": (-10, 10, np.tanh),
    "Asinh": (-50, 50, np.arcsinh),
    "Acosh": (1, 50, np.arccosh),
    "Atanh": (-0.99, 0.99, np.arctanh),
    "Sigmoid": (-20, 20, lambda x: 1 / (1 + np.exp(-x))),
    "Softplus": (-20, 20, lambda x: np.log1p(np.exp(x))),
    "Elu": (-5, 5, lambda x: np.where(x > 0, x, np.expm1(x))),
    "Selu": (-5, 5, lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x))),
    "Erf": (-4, 4, vectorized(math.erf)),
    "Erfc": (-4, 4, vectorized(math.erfc)),
    "Gelu": (-5, 5, vectorized(lambda x: x * math.erfc(-x / math.sqrt(2)) / 2)),
}


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let compiled code take over at the second call."""
    monkeypatch.setattr(large_calls, "_plans", {})
    monkeypatch.setattr(large_calls, "UNCOUNTED", 0)
    with ow.flags(hot_calls=1):
        yield


def _compiled(function: Any, *tensors: Any) -> np.ndarray:
    """Return the result of the second call, which is compiled."""
    function(*tensors)
    result: np.ndarray = function(*tensors)._array
    plans = [plan for plan in large_calls._plans.values() if not isinstance(plan, int)]
    assert any(plan._compiled and plan._number for plan in plans)
    return result


def _input(name: str, shape: tuple[int, ...] = SHAPE) -> Any:
    low, high, _ = FUNCTIONS[name]
    return ow.constant(RNG.uniform(low, high, shape).astype(np.float32))


def test_every_costly_function_is_here() -> None:
    rows = {
        name: row
        for name, row in OF_OPERATOR.items()
        if row.cost >= large_calls.LEAST_COST and row.arity == 1 and "f" in row.dtypes
    }
    assert set(FUNCTIONS) == set(rows) - large_calls.AS_FAST


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_are_within_the_bound_of_the_table(name: str) -> None:
    row, function = OF_OPERATOR[name], FUNCTIONS[name][2]
    x = _input(name)
    y = _compiled(registry.get(name), x)
    expected = function(x.numpy().astype(np.float64))
    bound = max(row.fast_error[1], row.exact_ulps * 2.0**-23, 3e-7) + 2.0**-23
    assert y.dtype == np.float32
    absolute = 1e-6 if name in ("Elu", "Selu", "Log", "Acos") else 1e-37  # near zeros of the function
    np.testing.assert_allclose(y, expected, rtol=bound, atol=absolute)


def test_bits_depend_on_the_element_alone() -> None:
    x = _input("Tanh", (3 * 2**16 + 5,))
    whole = _compiled(ow.tanh, x)
    for start, stop in ((0, 2**16), (1, 2**16 + 8), (77, 2 * 2**16), (2**16 + 3, 3 * 2**16 + 5)):
        part = _compiled(ow.tanh, ow.constant(x.numpy()[start:stop]))
        np.testing.assert_array_equal(part, whole[start:stop])
    square = _compiled(ow.tanh, ow.constant(x.numpy()[: 2**16].reshape(2, 2**8, 2**7)))
    np.testing.assert_array_equal(square.reshape(-1), whole[: 2**16])


def test_bits_do_not_depend_on_threads() -> None:
    x = _input("Exp", (1 << 18,))
    results = []
    for threads in (1, 2, 3):
        large_calls._plans.clear()
        with ow.flags(num_threads=threads):
            results.append(_compiled(ow.exp, x))
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def test_bits_are_the_same_in_every_run() -> None:
    x = _input("Gelu")

    def program() -> list[bytes]:
        large_calls._plans.clear()
        return [ow.nn.gelu(x)._array.tobytes() for _ in range(6)]

    assert program() == program()


def test_the_work_of_the_calls_decides_when() -> None:
    with ow.flags(hot_calls=0):
        small, large = (
            large_calls._new_plan(registry.get("Tanh"), registry.get("Tanh").bind({}), ((None,),)) for _ in "ab"
        )
        few, many = np.zeros(1 << 24, np.float32), np.zeros(1 << 16, np.float32)
        start, switch = large._schedule([few])
        assert start <= 3
        assert switch < 8  # of 70 ms each, by estimate
        start, switch = small._schedule([many])
        assert start > 10
        assert 200 < switch < 1000  # of 0.27 ms


def test_scalars_take_part() -> None:
    x = ow.constant(RNG.uniform(0.5, 4, 1 << 17).astype(np.float32))
    y = _compiled(lambda x: ow.pow(x, 1.7), x)
    np.testing.assert_allclose(y, x.numpy().astype(np.float64) ** np.float32(1.7), rtol=2e-6)
    z = _compiled(lambda x: ow.pow(2.5, x), x)
    np.testing.assert_allclose(z, 2.5 ** x.numpy().astype(np.float64), rtol=2e-6)


@pytest.mark.parametrize("shape", [(300, 300), (2, 33, 1001), (70001, 1), (17, large_calls.LONGEST_ROW)], ids=str)
def test_softmax_of_the_last_axis(shape: tuple[int, ...]) -> None:
    x = ow.constant((5 * RNG.standard_normal(shape)).astype(np.float32))
    wide = x.numpy().astype(np.float64)
    shifted = wide - wide.max(-1, keepdims=True)
    logarithm = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    y = _compiled(ow.nn.softmax, x)
    error = np.abs(y / np.exp(logarithm) - 1)
    assert (error <= 2e-6 + 2.0**-24 * np.abs(shifted)).all()  # the difference from the maximum is rounded, too
    np.testing.assert_allclose(_compiled(lambda x: ow.nn.softmax(x, axis=len(shape) - 1), x), y, rtol=0)
    np.testing.assert_allclose(_compiled(ow.nn.log_softmax, x), logarithm, rtol=2e-6, atol=3e-6)


def test_rows_of_a_softmax_do_not_depend_on_each_other() -> None:
    x = RNG.standard_normal((1031, 77)).astype(np.float32)
    whole = _compiled(ow.nn.softmax, ow.constant(x))
    for start, stop in ((0, 900), (1, 1030), (13, 917), (100, 1031)):
        np.testing.assert_array_equal(_compiled(ow.nn.softmax, ow.constant(x[start:stop])), whole[start:stop])
    results = []
    for threads in (1, 2, 3):
        large_calls._plans.clear()
        with ow.flags(num_threads=threads):
            results.append(_compiled(ow.nn.softmax, ow.constant(x)))
        np.testing.assert_array_equal(results[-1], whole)


def test_softmax_of_other_axes_and_long_rows_stays_with_numpy() -> None:
    for x, axis in ((RNG.standard_normal((300, 300)), 0), (RNG.standard_normal((2, 40000)), 1)):
        x = x.astype(np.float32)
        exponentials = np.exp(x - x.max(axis, keepdims=True))
        for _ in range(4):
            expected = exponentials / exponentials.sum(axis, keepdims=True)
            np.testing.assert_array_equal(ow.nn.softmax(x, axis=axis), expected)
    assert not large_calls._plans


def test_sums_and_products_have_the_bits_of_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_calls, "LEAST_MOVED", 1 << 17)
    x, y = (ow.constant(RNG.standard_normal(large_calls.LEAST_MOVED + 3).astype(np.float32)) for _ in "xy")
    np.testing.assert_array_equal(_compiled(ow.add, x, y), x.numpy() + y.numpy())
    np.testing.assert_array_equal(_compiled(ow.multiply, x, y), x.numpy() * y.numpy())
    np.testing.assert_array_equal(_compiled(ow.divide, x, y), x.numpy() / y.numpy())


def test_results_have_memory_of_their_own() -> None:
    x = _input("Exp")
    results = [ow.exp(x) for _ in range(5)]
    for a in results:
        for b in results:
            assert (a is b) == np.shares_memory(a._array, b._array)


@pytest.mark.parametrize(
    "x",
    [
        np.ones((300, 300), np.float64),
        np.ones((300, 300), np.float16),
        np.ones((300, 300), np.complex64),
        np.ones((100, 100), np.float32),
        np.ones((0, 70000), np.float32),
    ],
    ids=lambda x: f"{x.dtype}{x.shape}",
)
def test_other_dtypes_and_small_tensors_stay_with_numpy(x: np.ndarray) -> None:
    for _ in range(4):
        np.testing.assert_array_equal(ow.exp(ow.constant(x)), np.exp(x))
    assert not large_calls._plans


def test_broadcasting_and_strided_tensors_stay_with_numpy() -> None:
    x, row = (ow.constant(RNG.uniform(1, 2, shape).astype(np.float32)) for shape in ((300, 300), (300,)))
    strided = ow.constant(x)[:, ::1]
    strided._array = np.asfortranarray(strided._array)
    for _ in range(4):
        np.testing.assert_array_equal(ow.pow(x, row), x.numpy() ** row.numpy())
        np.testing.assert_array_equal(ow.exp(strided), np.exp(x.numpy()))
    assert not large_calls._plans


@pytest.mark.parametrize("switch", [{"jit": False}, {"deterministic": True}], ids=str)
def test_switches_turn_it_off(switch: dict[str, bool]) -> None:
    x = _input("Tanh")
    exponentials = np.exp(x.numpy() - x.numpy().max(-1, keepdims=True))
    with ow.flags(**switch):
        for _ in range(4):
            np.testing.assert_array_equal(ow.tanh(x), np.tanh(x.numpy()))
            np.testing.assert_array_equal(ow.nn.softmax(x), exponentials / exponentials.sum(-1, keepdims=True))
    assert not large_calls._plans


def test_errors_and_gradients_of_compiled_calls() -> None:
    x, y = ow.constant(np.ones((300, 300), np.float32)), ow.constant(np.ones((301, 300), np.float32))
    for _ in range(3):
        with pytest.raises(InvalidArgumentError, match="Pow"):
            ow.pow(x, y)
        with ow.GradientTape() as tape:
            tape.watch(x)
            z = ow.exp(x)
        np.testing.assert_allclose(tape.gradient(z, x), np.full((300, 300), math.e), rtol=1e-6)
    with ow.flags(check_numerics=True), pytest.raises(InvalidArgumentError, match="Log"):
        ow.math.log(x - 1.0)


def test_a_kernel_of_a_user_is_used() -> None:
    op, x = registry.get("Cosh"), _input("Cosh")
    _compiled(op, x)
    key = KernelKey("cpu", ow.float32, "any", "foreign")
    ow.ops.register_kernel(op, dtype=ow.float32)(lambda op, x: np.full_like(x, 7))
    try:
        np.testing.assert_array_equal(op(x), np.full(SHAPE, 7))
    finally:
        del op.kernels[key]
        op.kernel_cache.clear()
        op.cpu_kernels = bool(op.kernels)
