"""The short path of small eager calls: NumPy's bits, and what it leaves to the general path."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import opwright as ow
from opwright.compiler.native import ufunc_calls
from opwright.core import dtypes, flags
from opwright.core.errors import InvalidArgumentError, SignatureError
from opwright.eager import short_calls
from opwright.ops import registry
from opwright.ops.kernels import KernelKey

UFUNCS = sorted(
    name for name, op in registry.catalogue().items() if type(op.compute_rule) is np.ufunc and len(op.outputs) == 1
)
RNG = np.random.default_rng(3)


@pytest.fixture(autouse=True)
def _built(monkeypatch: pytest.MonkeyPatch) -> None:
    """Build functions at the first call of each operator."""
    if ufunc_calls.make_ufunc_calls() is None:
        pytest.skip("this process reads no objects by machine code")
    monkeypatch.setattr(short_calls, "_due", 0)


def _bound(name: str) -> Any:
    return registry.get(name).bind({})


def _values(dtype: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return values of both signs, with the extremes and, of floats, zeros of both signs, infinities and NaN."""
    if dtype.is_bool:
        return RNG.integers(0, 2, shape).astype(np.bool_)
    values = (RNG.standard_normal(shape) * 3).astype(dtype.np)
    special = (
        [0.0, -0.0, math.inf, -math.inf, math.nan, 1.0]
        if dtype.is_floating or dtype.is_complex
        else [0, dtype.min, dtype.max]
    )
    flat = values.reshape(-1)
    for i, value in enumerate(special[: flat.size // 2]):
        flat[RNG.integers(0, flat.size)] = value
        flat[i] = value
    return values


def _taken(name: str) -> list[Any]:
    """Return the dtypes for which an operator has a loop."""
    op = registry.get(name)
    taken = []
    for dtype in op.inputs[0].dtypes:
        if dtype.is_handle or dtype is ow.string:
            continue
        (result,) = op.accept((dtype,) * len(op.inputs))
        if result is None:
            continue
        loops = [dtype.np] * len(op.inputs) + [result.np]
        if ufunc_calls.inner_loop(op.compute_rule, loops) is not None:
            taken.append(dtype)
    return taken


def _same_bits(result: Any, expected: np.ndarray) -> None:
    array = result.numpy() if result.shape.rank else np.asarray(result.numpy())
    expected = np.asarray(expected)
    assert array.dtype == expected.dtype
    assert array.shape == expected.shape
    nan = np.isnan(expected) if expected.dtype.kind in "fc" else np.zeros(expected.shape, bool)
    np.testing.assert_array_equal(array[~nan].view(np.uint8), expected[~nan].view(np.uint8))
    assert np.isnan(array[nan]).all()


@pytest.mark.parametrize("name", UFUNCS)
def test_bits_equal_the_ufunc(name: str) -> None:
    op = registry.get(name)
    taken = _taken(name)
    assert taken or name in NO_LOOPS
    for dtype in taken:
        for shapes in (((5, 7),) * 2, ((3, 4), ()), ((), (2, 2, 2)), ((), ()), ((1,),) * 2):
            arrays = [_values(dtype, shape) for shape in shapes[: len(op.inputs)]]
            tensors = [ow.constant(a, dtype) for a in arrays]
            op(*tensors)  # builds
            short = _bound(name)._short(*tensors)
            assert short is not None
            assert short.dtype is op.accept((dtype,) * len(arrays))[0]
            with np.errstate(all="ignore"):
                _same_bits(short, op.compute_rule(*arrays))


NO_LOOPS: tuple[str, ...] = ()


@pytest.mark.parametrize("name", short_calls.SAME_AS)
def test_bits_equal_the_ufunc_in_its_place(name: str) -> None:
    op = registry.get(name)
    for dtype in (ow.float32, ow.float64):
        arrays = [_values(dtype, (5, 7)) for _ in op.inputs]
        tensors = [ow.constant(a, dtype) for a in arrays]
        op(*tensors)
        short = _bound(name)._short(*tensors)
        assert short is not None
        with np.errstate(all="ignore"):
            _same_bits(short, op.compute_rule(_bound(name), *arrays))
    for x in (ow.constant(["a", "b"]), ow.Variable([1.0]), 1.0):
        assert _bound(name)._short(*[x] * len(op.inputs)) is None


ROWS = [
    (1,),
    (9,),
    (5, 1),
    (4, 4),
    (3, 8),
    (7, 17),
    (2, 3, 33),
    (3, 129),
    (1, 1000),
]  # pairwise sums from 8, blocks from 128
ALONG_AN_AXIS = [
    *[("Softmax", {"axis": -1})],
    *[
        (name, {"axis": k, "output_type": d})
        for name in ("ArgMax", "ArgMin")
        for k, d in ((-1, ow.int64), (0, ow.int32))
    ],
]


@pytest.mark.parametrize(("name", "attributes"), ALONG_AN_AXIS)
@pytest.mark.parametrize("dtype", [ow.float32, ow.float64], ids=str)
def test_bits_along_an_axis_equal_the_reference(name: str, attributes: dict[str, Any], dtype: Any) -> None:
    op = registry.get(name)
    bound = op.bind(attributes)
    for shape in ROWS:
        special = [np.full(shape, -np.inf), np.full(shape, np.nan), np.where(RNG.random(shape) < 0.5, np.nan, -np.inf)]
        equal = np.round(RNG.standard_normal(shape))
        for array in (_values(dtype, shape), RNG.standard_normal(shape) * 5, equal, *special):
            x = ow.constant(array, dtype)
            op(x, **attributes)  # builds
            short = bound._short(x)
            assert short is not None
            with np.errstate(all="ignore"):
                _same_bits(short, op.compute_rule(bound, x.numpy()))
    x = ow.zeros([2, 3])
    declined = [
        x[:, ::2],
        ow.zeros([0, 3]),
        ow.constant(1.0),
        ow.zeros([80, 80]),
        ow.zeros([2], ow.float16),
        ow.Variable(x),
    ]
    assert [bound._short(y) for y in declined] == [None] * len(declined)


def test_short_reshapes() -> None:
    x, bound = ow.constant(RNG.standard_normal((4, 6)).astype(np.float32)), _bound("Reshape")
    ow.reshape(x, [24])  # builds
    for shape in ([24], (2, 12), [-1], [3, -1, 2], ow.constant([8, 3]), ow.constant([6, -1], ow.int64)):
        sizes = shape.numpy().tolist() if isinstance(shape, ow.Tensor) else shape
        _same_bits(bound._short(x, shape), x.numpy().reshape(sizes))
    for bad in ([5], [-1, -1], [-2, 12], [], [5, -1]):
        assert bound._short(x, bad) is None
        with pytest.raises(InvalidArgumentError, match="Reshape"):
            ow.reshape(x, bad)
    with ow.GradientTape() as tape:
        tape.watch(x)
        y = ow.reduce_sum(ow.reshape(x, [2, 12])[1] ** 2)
    expected = 2 * x.numpy() * (np.arange(4) >= 2)[:, None]
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), expected, rtol=1e-6)


def test_specs_by_elements_and_of_lists() -> None:
    x, y, wide = ow.zeros([2, 6]), ow.ones([3, 6]), ow.zeros([2, 6], ow.float64)
    for _ in range(3):
        for shape in ([12], [3, 4], [4, 3], [-1, 2], [2, 3, 2]):
            assert ow.reshape(x, shape).shape == np.zeros((2, 6)).reshape(shape).shape
            assert ow.reshape(x, ow.constant(shape, ow.int64)).shape == np.zeros((2, 6)).reshape(shape).shape
        with pytest.raises(InvalidArgumentError, match="Reshape"):
            ow.reshape(x, [5])
        assert ow.concat([x, y], 0).shape == (5, 6)
        assert ow.concat((x, x), 1).shape == (2, 12)
        assert ow.stack([x, x]).shape == (2, 2, 6)
        with pytest.raises(InvalidArgumentError, match="Concat"):
            ow.concat([x, y], 1)
        with pytest.raises(SignatureError, match="Concat"):
            ow.concat([x, wide], 0)
        assert float(ow.reduce_sum([x[0, 0] + 1.0, y[0, 0]])) == 2.0  # a list as one tensor
        assert ow.clip_by_value(wide, -1.0, 1).dtype is ow.float64


def test_the_usual_operators_take_it() -> None:
    assert {"Add", "Sub", "Mul", "RealDiv", "Neg", "Exp", "Tanh", "Sqrt", "Less"} <= set(UFUNCS)
    assert {dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64} <= set(_taken("Add"))


X = ow.constant(RNG.standard_normal((4, 4)).astype(np.float32))


@pytest.mark.parametrize(
    "pair",
    [
        (X, ow.constant(np.ones(4, np.float32))),  # broadcast rows
        (X, ow.constant(np.ones((4, 1), np.float32))),
        (X, ow.constant(np.ones((4, 4)))),  # another dtype
        (X, np.ones((4, 4), np.float32)),
        (X, 1.0),
        (X[:, ::2], X[:, ::2]),  # strided
        (X[:0], X[:0]),  # empty
        (ow.zeros([4097]), ow.zeros([4097])),  # large
        (ow.Variable(X), X),
        (ow.constant(["a"]), ow.constant(["b"])),
        (X,),
        (X, X, X),
    ],
    ids=lambda pair: " ".join(str(getattr(x, "shape", x)) for x in pair),
)
def test_declines(pair: tuple[Any, ...]) -> None:
    ow.add(X, X)
    assert _bound("Add")._short(X, X) is not None
    assert _bound("Add")._short(*pair) is None


@pytest.mark.parametrize("transposed", [(a, b) for a in (False, True) for b in (False, True)], ids=str)
@pytest.mark.parametrize("dtype", [ow.float32, ow.float64], ids=lambda d: d.name)
def test_products_equal_matmul(dtype: Any, transposed: tuple[bool, bool]) -> None:
    for m, k, n in ((4, 4, 4), (1, 1, 1), (1, 5, 3), (3, 1, 2), (2, 7, 1), (31, 17, 13), (32, 32, 32)):
        a, b = _values(dtype, (k, m) if transposed[0] else (m, k)), _values(dtype, (n, k) if transposed[1] else (k, n))
        x, y = ow.constant(a), ow.constant(b)
        with np.errstate(all="ignore"):
            expected = np.matmul(a.T if transposed[0] else a, b.T if transposed[1] else b)
        product, attrs = registry.get("MatMul"), {"transpose_a": transposed[0], "transpose_b": transposed[1]}
        for _ in range(2):
            _same_bits(product(x, y, **attrs), expected)
        short = product.bind(attrs)._short(x, y)
        assert short is not None
        _same_bits(short, expected)
    x = ow.constant(_values(dtype, (5, 5)))
    pair = x.numpy().T if transposed[0] else x.numpy(), x.numpy().T if transposed[1] else x.numpy()
    with np.errstate(all="ignore"):
        _same_bits(ow.matmul(x, x, *transposed), np.matmul(*pair))


def test_products_that_are_left_to_the_general_path() -> None:
    x, batch = ow.zeros([4, 4]), ow.zeros([2, 4, 4])
    ow.matmul(x, x)
    short = _bound("MatMul")._short
    assert short(x, x) is not None
    wide = ow.zeros([4, 3000])
    others = (x, ow.zeros([3, 4])), (batch, batch), (x, ow.zeros([4])), (x[:0], x), (ow.transpose(wide), wide), (x,)
    for pair in others:
        assert short(*pair) is None
    with pytest.raises(InvalidArgumentError, match="MatMul"):
        ow.matmul(x, ow.zeros([3, 4]))
    bytes_ = ow.constant(np.ones((2, 2), np.int8))
    assert ow.matmul(bytes_, bytes_, output_type=ow.int32).dtype is ow.int32


def test_numbers_and_errors_as_on_the_general_path() -> None:
    ow.add(X, X)
    _same_bits(X + 2.5, X.numpy() + np.float32(2.5))
    _same_bits(3 - X, np.float32(3) - X.numpy())
    with pytest.raises(SignatureError, match="differ in dtype"):
        ow.add(X, ow.constant(np.ones((4, 4))))
    with pytest.raises(InvalidArgumentError, match="Add"):
        ow.add(X, ow.zeros([3, 4]))


def test_tapes_record_it() -> None:
    for _ in range(3):
        with ow.GradientTape() as tape:
            tape.watch(X)
            y = ow.tanh(X * X)
        x = X.numpy().astype(np.float64)
        expected = 2 * x * (1 - np.tanh(x * x) ** 2)
        np.testing.assert_allclose(tape.gradient(y, X).numpy(), expected, rtol=1e-4, atol=1e-6)


def test_check_numerics_names_the_operator() -> None:
    big = ow.constant(np.full((2, 2), 3e38, np.float32))
    ow.add(big, big)
    with flags.override(check_numerics=True), pytest.raises(InvalidArgumentError, match="Add"):
        ow.add(big, big)


def test_a_registered_kernel_takes_over() -> None:
    op = registry.get("Cosh")
    x = ow.constant(np.ones((2, 2), np.float32))
    op(x)
    assert _bound("Cosh")._short
    key = KernelKey("cpu", ow.float32, "any", "foreign")
    ow.ops.register_kernel(op, dtype=ow.float32)(lambda op, x: np.full_like(x, 7))
    try:
        _same_bits(op(x), np.full((2, 2), 7, np.float32))
    finally:
        del op.kernels[key]
        op.kernel_cache.clear()
        op.cpu_kernels = bool(op.kernels)
    _same_bits(op(x), np.cosh(np.ones((2, 2), np.float32)))


def test_results_are_collected() -> None:
    import gc
    import sys
    import weakref

    ow.add(X, X)
    before = sys.getrefcount(ow.float32), sys.getrefcount(X._array.dtype)
    kept = [ow.add(X, X) for _ in range(1000)]
    dead = weakref.ref(kept[0])
    kept.clear()
    gc.collect()
    after = sys.getrefcount(ow.float32), sys.getrefcount(X._array.dtype)
    assert dead() is None
    assert max(abs(a - b) for a, b in zip(after, before)) < 100


def test_the_code_is_built_after_enough_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short_calls, "_calls", 0)
    monkeypatch.setattr(short_calls, "_due", short_calls.FIRST)
    bound = _bound("Add")
    bound._short = None
    for _ in range(short_calls.FIRST - 1):
        ow.add(X, X)
    assert bound._short is None
    ow.add(X, X)
    assert bound._short is not None
