"""`@ow.kernel`: machine code agrees with float64 NumPy, specials included; what kernels cannot do is an error."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import opwright as ow
from opwright.compiler.kernel import Kernel
from opwright.compiler.language.elements import emit_elements
from opwright.compiler.language.operators import LOWER

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 1e-30, 3e30, np.inf, -np.inf, np.nan]


def sample(dtype: str, n: int = 1000) -> np.ndarray:
    rng = np.random.default_rng(7)
    if dtype.startswith("int"):
        return rng.integers(-50, 50, n).astype(dtype)
    return np.concatenate([rng.standard_normal(n) * 3, SPECIAL]).astype(dtype)


def run(function: Any, *arrays: np.ndarray, **attrs: Any) -> Any:
    class Owner:
        name = "test"

    class Call:
        operator = Owner

    call = Call()
    for name, value in attrs.items():
        setattr(call, name, value)
    return Kernel(function)(call, *arrays)


def _gelu(x: np.ndarray) -> np.ndarray:
    x = np.minimum(x, 1e30)
    return 0.5 * x * np.vectorize(math.erfc, otypes=[float])(-x / math.sqrt(2))


def _approximate_gelu(x: np.ndarray) -> np.ndarray:
    x = np.clip(x, -9.0, 9.0)
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


FUNCTIONS = [
    # the kernel, the same in NumPy, on how many inputs
    (lambda x: x * 2.0 + 1.0, lambda x: x * 2 + 1, 1),
    (lambda x, y: (x - y) / 3.0, lambda x, y: (x - y) / 3, 2),
    (lambda x: -ow.abs(x), lambda x: -np.abs(x), 1),
    (
        lambda x: ow.minimum(x, 6.0) + 0.1 * ow.maximum(x - 6.0, 0.0),
        lambda x: np.minimum(x, 6) + 0.1 * np.maximum(x - 6, 0),
        1,
    ),
    (lambda x, y: ow.maximum(x, y), np.maximum, 2),
    (lambda x, y: ow.minimum(x, y), np.minimum, 2),
    (lambda x: ow.where(x > 0.0, x, 0.5 * x), lambda x: np.where(x > 0, x, 0.5 * x), 1),
    (lambda x: ow.sqrt(ow.abs(x)), lambda x: np.sqrt(np.abs(x)), 1),
    (lambda x: ow.floor(x) + ow.math.ceil(x) + ow.round(x), lambda x: np.floor(x) + np.ceil(x) + np.rint(x), 1),
    (ow.atan, np.arctan, 1),
    (lambda x: ow.sin(x) * ow.cos(x), lambda x: np.sin(x) * np.cos(x), 1),
    (ow.tanh, np.tanh, 1),
    (ow.sigmoid, lambda x: 1 / (1 + np.exp(-x)), 1),
    (lambda x: ow.square(x), np.square, 1),
    (lambda x: ow.math.rsqrt(ow.abs(x)), lambda x: 1 / np.sqrt(np.abs(x)), 1),
    (lambda x: ow.math.softplus(x), lambda x: np.logaddexp(0, x), 1),
    (lambda x: ow.nn.gelu(ow.minimum(x, 1e30)), _gelu, 1),
    (lambda x: ow.nn.gelu(ow.maximum(ow.minimum(x, 9.0), -9.0), approximate=True), _approximate_gelu, 1),
    (lambda x, y: ow.where(ow.logical_and(x < y, x != 1.0), x, y), lambda x, y: np.where((x < y) & (x != 1), x, y), 2),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("kernel", "oracle", "n"), FUNCTIONS)
def test_agrees_with_numpy_in_float64(kernel: Any, oracle: Any, n: int, dtype: str) -> None:
    x = sample(dtype)
    arrays = [x, x[::-1].copy()][:n]
    if hasattr(kernel, "operator"):  # a public function takes `name` too; a kernel takes scalars only
        public = kernel
        kernel = lambda x: public(x)  # noqa: E731
    got = run(kernel, *arrays)
    with np.errstate(all="ignore"):
        expected = oracle(*[a.astype(np.float64) for a in arrays]).astype(dtype)
    assert got.dtype == np.dtype(dtype)
    tolerance = 4e-6 if dtype == "float32" else 1e-14
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_integers(dtype: str) -> None:
    x, y = sample(dtype), sample(dtype)[::-1].copy()
    np.testing.assert_array_equal(run(lambda x, y: ow.maximum(x * y, -x) - 3, x, y), np.maximum(x * y, -x) - 3)
    np.testing.assert_array_equal(run(lambda x, y: x < y, x, y), x < y)
    np.testing.assert_array_equal(run(lambda x, y: ow.abs(x), x, y), np.abs(x))


def test_casts_and_booleans() -> None:
    x = np.array([-1.5, 0.0, 2.5, 7.9], np.float32)
    np.testing.assert_array_equal(run(lambda x: ow.cast(x, ow.int32), x), np.array([-1, 0, 2, 7], np.int32))
    np.testing.assert_array_equal(run(lambda x: ow.cast(x, ow.bool), x), x != 0)
    flags = np.array([True, False, True])
    np.testing.assert_array_equal(run(lambda f: ow.cast(f, ow.float32) * 2.0, flags), [2.0, 0.0, 2.0])
    np.testing.assert_array_equal(run(lambda f: ow.logical_not(f), flags), ~flags)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 5), (2, 0, 4)])
def test_every_shape(shape: tuple[int, ...]) -> None:
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    got = run(lambda x: x + 1.0, x)
    assert got.shape == shape
    np.testing.assert_array_equal(got, x + 1)


def test_broadcasting_and_strides() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(run(lambda x, y: x + y, x, x[:, :1]), x + x[:, :1])
    np.testing.assert_array_equal(run(lambda x: x + 1.0, x.T[::2]), x.T[::2] + 1)


def test_dtypes_that_kernels_do_not_have_go_to_the_reference() -> None:
    assert run(lambda x: x + 1.0, np.zeros(3, np.float16)) is NotImplemented


@ow.operator(version=2)
class LeakyClip:
    """Clip with a leak.

    .. math:: y = \\min(x, limit) + alpha \\max(x - limit, 0)
    """

    x = ow.Input(dtypes=ow.floating)
    y = ow.Output(like="x")
    alpha = ow.Attr(float, default=0.0, check=ow.attr.at_least(0.0))
    limit = ow.Attr(float, default=6.0, since=2)

    def compute(op, x: Any) -> Any:
        return np.minimum(x, op.limit) + op.alpha * np.maximum(x - op.limit, 0.0)

    def gradient(op, dy: Any) -> Any:
        return ow.where(op.x < op.limit, dy, op.alpha * dy)

    @ow.kernel
    def kernel(x: Any, *, alpha: float, limit: float) -> Any:
        return ow.minimum(x, limit) + alpha * ow.maximum(x - limit, 0.0)


@pytest.mark.parametrize("attrs", [{}, {"alpha": 0.1}, {"alpha": 0.5, "limit": 1.0}])
@pytest.mark.parametrize("dtype", [ow.float16, ow.bfloat16, ow.float32, ow.float64])
def test_an_operator_uses_its_kernel_and_agrees_with_its_reference(attrs: dict[str, float], dtype: Any) -> None:
    x = ow.constant(np.linspace(-3, 9, 25), dtype)
    expected = LeakyClip.reference(LeakyClip.bind(attrs))(x.numpy())
    got = LeakyClip(x, **attrs)
    assert got.dtype is dtype
    np.testing.assert_allclose(
        got.numpy().astype("f8"), np.asarray(expected).astype("f8"), rtol=1e-2 if dtype.size == 2 else 1e-6
    )
    traced = ow.function(lambda x: LeakyClip(x, **attrs))
    np.testing.assert_array_equal(traced(x).numpy(), got.numpy())


def test_an_operator_without_a_lowering_is_named() -> None:
    with pytest.raises(ow.errors.UnimplementedError, match="Digamma"):
        run(lambda x: ow.math.digamma(x), np.ones(3, np.float32))


def test_a_scalar_has_no_truth_value_where_python_cannot_be_converted() -> None:
    function = eval("lambda x: 1.0 if x > 0.0 else x")  # without source
    with pytest.raises(TypeError, match=r"ow\.where"):
        run(function, np.ones(3, np.float32))


def test_attributes_are_python_values() -> None:
    def kernel(x: Any, *, steps: int) -> Any:
        for _ in range(steps):
            x = x * 2.0
        return x

    np.testing.assert_array_equal(run(kernel, np.ones(3, np.float32), steps=5), np.full(3, 32.0))


def test_the_ir_names_what_values_hold() -> None:
    module, dtype = emit_elements(lambda price: price * 2.0, "Double", [np.dtype("float32")], {})
    text = str(module)
    assert dtype is ow.float32
    for name in ("price.i", "out", "i.loop", "i.next", "Double"):
        assert name in text


def test_every_lowering_is_of_a_catalogue_operator() -> None:
    known = set(ow.ops.list())
    assert set(LOWER) <= known, set(LOWER) - known
