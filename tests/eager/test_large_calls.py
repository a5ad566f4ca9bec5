"""Large eager calls by the compiler's kernels: values, bits that depend on nothing else, and what stays with NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opwright as ow
from opwright.compiler import tiered_plan
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
    allowed = bound * np.abs(expected) + row.argument_error * np.abs(x.numpy()) + absolute
    assert (np.abs(y - expected) <= allowed).all()


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
    tanh = registry.get("Tanh")
    with ow.flags(hot_calls=0):
        small, large = (
            tiered_plan.TieredPlan(
                large_calls._graph_of_rows(tanh, tanh.bind({}), ((None,),), ow.float32), large_calls.COMPILE_US
            )
            for _ in "ab"
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


def test_softmax_of_long_rows_stays_with_numpy() -> None:
    for x, axis in ((RNG.standard_normal((40000, 2)), 0), (RNG.standard_normal((2, 40000)), 1)):
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
    [np.ones((300, 300), np.float64), np.ones((100, 100), np.float32), np.ones((0, 70000), np.float32)],
    ids=lambda x: f"{x.dtype}{x.shape}",
)
def test_other_dtypes_and_small_tensors_stay_with_numpy(x: np.ndarray) -> None:
    for _ in range(4):
        np.testing.assert_array_equal(ow.exp(ow.constant(x)), np.exp(x))
    assert not large_calls._plans


def test_other_broadcasting_and_strided_tensors_stay_with_numpy() -> None:
    x, row = (ow.constant(RNG.uniform(1, 2, shape).astype(np.float32)) for shape in ((5, 60, 300), (1, 60, 1)))
    strided = ow.constant(x)[:, ::1]
    strided._array = np.asfortranarray(strided._array)
    for _ in range(4):
        np.testing.assert_array_equal(ow.pow(x, row), x.numpy() ** row.numpy())
        np.testing.assert_array_equal(ow.exp(strided), np.exp(x.numpy()))
        np.testing.assert_array_equal(ow.reduce_sum(strided), np.sum(strided._array))
        np.testing.assert_allclose(
            ow.reduce_sum(x, axis=(0, 1)), np.sum(x.numpy(), axis=(0, 1), dtype=np.float64), 1e-6
        )
    assert not large_calls._plans


PARTS = [  # shapes of the second operand, of a first one of [33, 20, 110]
    *((110,), (1, 110), (1, 1, 110), (20, 110), (1, 20, 110)),
    *((33, 20, 1), (), (1,), (1, 1, 1)),
]


@pytest.mark.parametrize("part", PARTS, ids=str)
def test_rows_and_columns_have_the_bits_of_numpy(part: tuple[int, ...]) -> None:
    x = ow.constant(RNG.standard_normal((33, 20, 110)).astype(np.float32))
    y = ow.constant(RNG.standard_normal(part).astype(np.float32))
    a, b = x.numpy(), y.numpy()
    run = _compiled if y.shape.num_elements() > 1 else lambda f, *operands: f(*operands)._array
    np.testing.assert_array_equal(run(ow.add, x, y), a + b)
    np.testing.assert_array_equal(run(ow.subtract, y, x), b - a)
    np.testing.assert_array_equal(run(ow.greater, x, y), a > b)


def test_choices_and_limits_have_the_bits_of_numpy() -> None:
    a = RNG.standard_normal(SHAPE).astype(np.float32)
    a[0, :6] = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1e-42]
    b, x = np.roll(a, 1), ow.constant(a)
    np.testing.assert_array_equal(_compiled(ow.nn.relu, x), np.maximum(a, np.float32(0)))
    np.testing.assert_array_equal(_compiled(lambda x: ow.clip_by_value(x, -0.5, 0.75), x), np.clip(a, -0.5, 0.75))
    np.testing.assert_array_equal(_compiled(ow.where, x > 0.0, x, ow.constant(b)), np.where(a > 0, a, b))
    np.testing.assert_array_equal(_compiled(lambda x: ow.where(x > 0.0, x, b[0]), x), np.where(a > 0, a, b[0]))


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda d: d.__name__)
@pytest.mark.parametrize("axis", [None, -1, (1, 2), (0, 1, 2), (2, 1), (-2, -1)], ids=str)
def test_sums_and_means(axis: Any, dtype: Any, keepdims: bool) -> None:
    x = ow.constant(RNG.standard_normal((7, 43, 231)).astype(dtype))
    wide = x.numpy().astype(np.longdouble)
    scale = np.sum(np.abs(wide), axis=axis, keepdims=keepdims)
    total = np.sum(wide, axis=axis, keepdims=keepdims)
    count = total.dtype.type(wide.size / total.size)
    y = _compiled(lambda x: ow.reduce_sum(x, axis, keepdims), x)
    assert y.dtype == dtype
    assert y.shape == total.shape
    bound = 16 * float(np.finfo(dtype).eps)
    assert (np.abs(y - total) <= bound * scale).all()
    mean = _compiled(lambda x: ow.reduce_mean(x, axis, keepdims), x)
    assert (np.abs(mean - total / count) <= bound * scale / count).all()


def test_sums_of_a_million_are_as_exact_as_sums_by_halves() -> None:
    x = RNG.uniform(0, 1, 1 << 20).astype(np.float32)
    total = _compiled(ow.reduce_sum, ow.constant(x))
    assert abs(float(total) / math.fsum(x.tolist()) - 1) < 2e-7
    results = []
    for threads in (1, 2, 3):
        large_calls._plans.clear()
        with ow.flags(num_threads=threads):
            results.append(float(_compiled(ow.reduce_sum, ow.constant(x))))
    assert results == [float(total)] * 3


def test_places_of_maxima() -> None:
    a = RNG.integers(0, 50, (301, 257)).astype(np.float32)  # several equal ones in most rows
    a[3, :200], a[4, 7], a[5, 0], a[6, :] = math.nan, math.nan, math.inf, -math.inf
    expected = np.where(np.isnan(a), -math.inf, a).argmax(1)
    for dtype in (ow.int64, ow.int32):
        y = _compiled(lambda x, dtype=dtype: ow.argmax(x, axis=-1, output_type=dtype), ow.constant(a))
        np.testing.assert_array_equal(y, expected)
        assert y.dtype == dtype.np


@pytest.mark.parametrize("attrs", [{}, {"exclusive": True}, {"reverse": True}, {"exclusive": True, "reverse": True}])
def test_cumulative_sums(attrs: dict[str, bool]) -> None:
    x = ow.constant(RNG.uniform(0, 1, (130, 515)).astype(np.float32))
    wide = x.numpy().astype(np.float64)[:, :: -1 if attrs.get("reverse") else 1]
    sums = np.cumsum(wide, 1) - (wide if attrs.get("exclusive") else 0)
    expected = sums[:, :: -1 if attrs.get("reverse") else 1]
    np.testing.assert_allclose(_compiled(lambda x: ow.cumsum(x, 1, **attrs), x), expected, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("batch", [3, 5])
def test_convolutions_of_batches(batch: int) -> None:
    image, filters = RNG.standard_normal((batch, 41, 43, 17)), RNG.standard_normal((3, 3, 17, 9))
    x, k = ow.constant(image.astype(np.float32)), ow.constant(filters.astype(np.float32))
    padded = np.pad(x.numpy().astype(np.float64), ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))
    expected = np.einsum("nhwcij,ijco->nhwo", windows, k.numpy().astype(np.float64), optimize=True)
    y = _compiled(lambda x, k: ow.nn.conv2d(x, k, 1, "SAME"), x, k)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=2e-4)


def _normal(*shape: int) -> Any:
    return ow.constant(RNG.standard_normal(shape).astype(np.float32))


IMAGE, VOLUME, FILTERS = _normal(3, 37, 41, 16), _normal(2, 9, 17, 16, 16), _normal(3, 3, 3, 16, 8)
SQUARE, SIGNAL = _normal(*SHAPE), _normal(260, 256)
COLOURS = ow.constant(RNG.random((3, 90, 85, 3)).astype(np.float32))
IDS = ow.constant(RNG.integers(0, 31, SHAPE[0]).astype(np.int32))
MATRICES = ow.constant((RNG.standard_normal((70, 32, 32)) + 8 * np.eye(32)).astype(np.float32))
HALF, COMPLEX = ow.cast(SQUARE, ow.float16), ow.complex(SQUARE, ow.roll(SQUARE, 1, 0))
WHOLE = ow.constant(RNG.integers(-99, 99, (300, 301)).astype(np.int32))

OF_FIXED_SIZES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "average pool": (lambda x: ow.nn.avg_pool2d(x, 3, 1, "SAME"), (IMAGE,)),
    "greatest in windows": (lambda x: ow.nn.max_pool2d(x, 3, 2, "VALID"), (IMAGE,)),
    "greatest in volumes": (lambda x: ow.nn.max_pool3d(x, 2, 2, "SAME"), (VOLUME,)),
    "convolution of volumes": (lambda x, f: ow.nn.conv3d(x, f, [1] * 5, "SAME"), (VOLUME, FILTERS)),
    "channel by channel": (
        lambda x, f: ow.nn.depthwise_conv2d(x, f, [1] * 4, "SAME"),
        (IMAGE, FILTERS[0, :, :, :, :2]),
    ),
    "patches": (lambda x: ow.image.extract_patches(x, [1, 3, 3, 1], [1, 2, 1, 1], [1] * 4, "SAME"), (IMAGE,)),
    "normalization of channels": (ow.nn.local_response_normalization, (IMAGE,)),
    "rounding to a grid": (lambda x: ow.quantization.fake_quant_with_min_max_args(x, -2, 3), (SQUARE,)),
    "rounding by variables": (
        ow.quantization.fake_quant_with_min_max_vars,
        (SQUARE, ow.constant(-2.0), ow.constant(3.0)),
    ),
    "halves by a number": (lambda x: ow.multiply(x, 0.5), (HALF,)),
    "colours": (ow.image.rgb_to_hsv, (COLOURS,)),
    "bilinear": (lambda x: ow.image.resize(x, [100, 71]), (COLOURS,)),
    "nearest": (lambda x: ow.image.resize(x, [100, 71], "nearest"), (COLOURS,)),
    "band": (lambda x: ow.linalg.band_part(x, 3, 5), (SQUARE,)),
    "mirror": (lambda x: ow.pad(x, [[3, 4], [5, 0]], "REFLECT"), (SQUARE,)),
    "triangular": (ow.linalg.triangular_solve, (MATRICES, MATRICES)),
    "inverse": (ow.linalg.inv, (MATRICES,)),
    "factors": (lambda x: ow.linalg.lu(x)[0], (MATRICES,)),
    "product": (lambda x: ow.reduce_prod(x, 1), (SQUARE * 2.0,)),
    "sum of rows": (lambda x, i: ow.math.unsorted_segment_sum(x, i, 31), (SQUARE, IDS)),
    "greatest of rows": (lambda x, i: ow.math.unsorted_segment_max(x, i, 31), (SQUARE, IDS)),
    "rows added": (lambda x, i: ow.tensor_scatter_nd_add(x, i[:, None], x), (SQUARE, IDS)),
    "sorted": (lambda x: ow.sort(x, 1), (SQUARE,)),
    "first of a sort": (lambda x: ow.math.top_k(x, 7)[1], (SQUARE,)),
    "spectrum": (ow.signal.rfft, (SIGNAL,)),
    "frames": (lambda x: ow.signal.frame(x, 64, 16), (SIGNAL,)),
    "columns added up": (lambda x: ow.cumsum(x, 0), (SQUARE,)),
    "softmax of columns": (lambda x: ow.nn.softmax(x, 0), (SQUARE,)),
    "greatest of columns": (lambda x: ow.argmax(x, 0), (SQUARE,)),
    "halves": (lambda x: x * x + x, (HALF,)),
    "exponentials of halves": (ow.exp, (HALF,)),
    "to halves": (lambda x: ow.cast(x, ow.float16), (SQUARE,)),
    "complex exponentials": (ow.exp, (COMPLEX,)),
    "product of integers": (lambda x: ow.matmul(x, x, transpose_b=True), (WHOLE,)),
    "entropy": (lambda x, i: ow.nn.sparse_softmax_cross_entropy_with_logits(i, x), (SQUARE, IDS)),
}


@pytest.mark.parametrize("name", OF_FIXED_SIZES)
def test_calls_of_fixed_sizes_agree_with_numpy(name: str) -> None:
    function, operands = OF_FIXED_SIZES[name]
    with ow.flags(jit=False):
        expected = function(*operands).numpy()
    y = _compiled(function, *operands)
    assert y.dtype == expected.dtype
    scale = np.abs(expected).max() if expected.size else 1
    np.testing.assert_allclose(y, expected, rtol=2e-6, atol=4e-6 * scale if y.dtype.kind in "fc" else 0)


def test_attributes_and_sizes_select_the_plan() -> None:
    """Attributes given as lists are bound again in each call; values of short integers are constants of a plan."""
    x = IMAGE.numpy()
    for size in (2, 3):
        y = _compiled(lambda x, size=size: ow.nn.max_pool2d(x, [1, size, size, 1], [1, 1, 1, 1], "VALID"), IMAGE)
        windows = np.lib.stride_tricks.sliding_window_view(x, (size, size), (1, 2))
        np.testing.assert_array_equal(y, windows.max((-2, -1)))
    for number in (31, 40):
        y = _compiled(lambda x, number=number: ow.math.unsorted_segment_max(x, IDS, number), SQUARE)
        assert y.shape == (number, SHAPE[1])


@pytest.mark.parametrize("name", ["rounding by variables", "halves by a number", "channel by channel"])
def test_numbers_and_strided_operands_have_the_shapes_of_the_plan(name: str) -> None:
    """The guards of machine code would leave a call of other shapes or strides to the uncompiled operator."""
    function, operands = OF_FIXED_SIZES[name]
    _compiled(function, *operands)
    (plan,) = [plan for plan in large_calls._plans.values() if not isinstance(plan, int)]
    taken: list[np.ndarray] = []
    run = plan.run
    plan.run = lambda *inputs: taken.extend(inputs) or run(*inputs)
    function(*operands)
    assert [a.shape for a in taken] == [tuple(v.shape.dims or ()) for v in plan.graph.inputs]
    assert taken
    assert all(a.flags.c_contiguous for a in taken)


def test_short_data_is_no_constant_of_a_plan() -> None:
    """Labels and indices differ from call to call: as constants they would make a plan of each, and evict others."""
    x = ow.constant(RNG.standard_normal((8, 1 << 14)).astype(np.float32))
    for k in range(5):
        ow.nn.sparse_softmax_cross_entropy_with_logits(ow.constant(np.arange(8) + k), x)
        ow.math.unsorted_segment_sum(x, ow.constant(np.arange(8) % (k + 1)), 9)
    assert len(large_calls._plans) == 2


def test_elements_out_of_range_in_compiled_calls() -> None:
    labels = IDS.numpy().copy()
    labels[77] = SHAPE[1]
    for wrong, text in ((ow.constant(labels), "label"), (IDS, None)):
        for _ in range(3):
            if text is None:
                ow.nn.sparse_softmax_cross_entropy_with_logits(wrong, SQUARE)
            else:
                with pytest.raises(InvalidArgumentError, match=text):
                    ow.nn.sparse_softmax_cross_entropy_with_logits(wrong, SQUARE)
    with pytest.raises(InvalidArgumentError, match="label"):
        ow.nn.sparse_softmax_cross_entropy_with_logits(ow.constant(labels), SQUARE)


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
