"""Functions of `keras.ops` whose results NumPy gives, and those of functions in functional models.

Not here: values that Keras gave (test_keras_ops.py).
"""

import numpy as np
import pytest

import opwright as ow

ops = ow.keras.ops
X = np.random.default_rng(4).normal(size=(2, 6, 3)).astype("float32")


def test_softmax_over_all_axes():
    weights = np.exp(X.astype(np.float64))
    np.testing.assert_allclose(ops.softmax(X, axis=None), weights / weights.sum(), rtol=1e-5)
    np.testing.assert_allclose(ops.log_softmax(X, axis=None), np.log(weights / weights.sum()), rtol=1e-5)
    with pytest.warns(UserWarning, match="axis has size 1"):
        ops.softmax(X[..., :1])


@pytest.mark.parametrize("axis", [1, -2, (0, 1)])
def test_norm_of_axes_that_are_not_there(axis):
    with pytest.raises(ValueError, match="Axes"):
        ops.norm(X[0, 0], ord=2, axis=axis)


def test_scatter_update_multiplies_by_all_updates():
    expected = np.full((4, 2), 2.0)
    indices, updates = [[1], [1], [3]], np.array([[2.0, 3.0], [5.0, 7.0], [0.5, 1.0]])
    np.multiply.at(expected, [i for (i,) in indices], updates)
    np.testing.assert_array_equal(ops.scatter_update(np.full((4, 2), 2.0), indices, updates, reduction="mul"), expected)
    expected = np.ones((2, 2))
    np.multiply.at(expected, ([0, 0], [1, 1]), [3.0, 4.0])
    result = ops.scatter_update(np.ones((2, 2)), [[0, 1], [0, 1]], np.array([3.0, 4.0]), reduction="mul")
    np.testing.assert_array_equal(result, expected)


def test_rearrange():
    np.testing.assert_array_equal(ops.rearrange(X, "a b c -> c a b"), X.transpose(2, 0, 1))
    np.testing.assert_array_equal(ops.rearrange(X, "a b c -> (a b) c"), X.reshape(12, 3))
    split = X.reshape(2, 2, 3, 3).transpose(1, 0, 2, 3).reshape(2, 6, 3)
    np.testing.assert_array_equal(ops.rearrange(X, "a (h w) c -> h (a w) c", h=2), split)
    assert ops.rearrange(ow.keras.KerasTensor((None, 6, 3)), "a (h w) c -> (a h) w c", w=3).shape.as_list() == [
        None,
        3,
        3,
    ]
    for pattern, sizes in [("a b -> b a", {}), ("a b c -> a b", {}), ("a (h w) c -> a h w c", {}), ("a b c", {})]:
        with pytest.raises(ValueError, match=r"pattern|names|sizes"):
            ops.rearrange(X, pattern, **sizes)
    with pytest.raises(ValueError, match="Axis 1"):
        ops.rearrange(X, "a (h w) c -> a h w c", h=4)


def test_ctc():
    """The loss by its definition: minus the log of the sum over all paths; decoding by hand."""
    logits = np.random.default_rng(1).normal(size=(1, 3, 3))
    p = np.exp(logits[0]) / np.exp(logits[0]).sum(-1, keepdims=True)
    paths = [(a, b, c) for a in range(3) for b in range(3) for c in range(3)]

    def labels(path):
        merged = [k for k, before in zip(path, (None, *path)) if k != before]
        return [k for k in merged if k != 0]

    total = sum(p[0, a] * p[1, b] * p[2, c] for a, b, c in paths if labels((a, b, c)) == [1, 2])
    np.testing.assert_allclose(ops.ctc_loss([[1, 2]], logits, [2], [3]), [-np.log(total)], rtol=1e-6)
    steps = np.eye(3)[[[1, 1, 0, 2], [0, 2, 2, 1]]] * 5.0
    decoded, scores = ops.ctc_decode(steps, [4, 3])
    np.testing.assert_array_equal(decoded, [[[1, 2, -1, -1], [2, -1, -1, -1]]])
    np.testing.assert_allclose(scores, [[-20.0], [-15.0]])
    with pytest.raises(ValueError, match="strategy"):
        ops.ctc_decode(steps, [4, 3], strategy="beam")


def test_functions_of_functions_are_layers():
    x = ow.keras.Input((4,))
    doubled = ops.fori_loop(0, 3, lambda i, value: value * 2.0, x)
    clipped = ops.while_loop(lambda value: ops.max(value) > 1.0, lambda value: value / 2.0, doubled)
    chosen = ops.cond(ops.sum(x) > 0.0, lambda: ops.ones(()), lambda: ops.zeros(()))
    model = ow.keras.Model(x, [doubled, clipped, chosen])
    rows = np.array([[1.0, 2.0, 3.0, 0.5]], "float32")
    results = model(rows)
    np.testing.assert_array_equal(results[0], rows * 8)
    np.testing.assert_array_equal(results[1], rows * 8 / 32)
    assert float(results[2]) == 1.0


def test_pictures_have_three_or_four_axes():
    for function in (ops.image.rgb_to_grayscale, ops.image.rgb_to_hsv, ops.image.hsv_to_rgb):
        with pytest.raises(ValueError, match="Invalid images rank"):
            function(np.ones((3, 3), "float32"))
    assert ops.image.extract_patches(np.ones((1, 4, 4, 4, 2), "float32"), (2, 2, 2)).shape.as_list() == [1, 2, 2, 2, 16]


def test_sizes_that_follow_from_shapes_are_known():
    tensor = ow.keras.KerasTensor((None, 3))
    for result in (ops.ones_like(tensor), ops.roll(tensor, 1), ops.repeat(tensor, 2, axis=1)[:, :3], ops.imag(tensor)):
        assert result.shape.as_list() == [None, 3]
    pair = ow.keras.KerasTensor((2, 3))
    assert ops.kron(pair, pair).shape.as_list() == [4, 9]
    assert ops.median(pair, axis=1).shape.as_list() == [2]
    x = ow.keras.Input((4,))
    model = ow.keras.Model(x, ow.keras.layers.Dense(2, kernel_initializer="ones")(ops.ones_like(x)))
    np.testing.assert_array_equal(model(np.zeros((3, 4), "float32")), np.full((3, 2), 4.0))


def test_arguments_of_attention():
    layers, rows = ow.keras.layers, np.ones((2, 4, 8), "float32")
    for arguments, says in [((0, 4), "num_heads"), ((2, 1.5), "key_dim"), ((2, 4, -1), "value_dim")]:
        with pytest.raises(ValueError, match=f"argument `{says}`"):
            layers.MultiHeadAttention(*arguments)
    with pytest.raises(ValueError, match="sliding_window"):
        layers.GroupQueryAttention(4, 4, 2, sliding_window=0)
    with pytest.raises(ValueError, match="Invalid `output_shape`"):
        layers.MultiHeadAttention(2, 4, output_shape=8.0)
    with pytest.raises(ValueError, match="must be equal"):
        layers.MultiHeadAttention(2, 4).compute_output_shape((2, 4, 8), (2, 2, 8), (2, 1, 8))
    with pytest.raises(ValueError, match="length 2 or 3"):
        layers.AdditiveAttention()([rows] * 4)
    with pytest.raises(ValueError, match="mask must be a list"):
        layers.AdditiveAttention()([rows, rows], mask=rows[..., 0] > 0)
    with pytest.raises(ValueError, match="broadcastable"):
        layers.Softmax()(rows[0], mask=np.ones((4, 3)))


def test_dtypes_of_random_integers():
    for dtype in ("int8", "int16", "uint8", "int64"):
        drawn = ow.keras.random.categorical(np.zeros((2, 3), "float32"), 50, dtype=dtype, seed=1)
        assert drawn.dtype.name == dtype
        np.testing.assert_array_equal(np.unique(drawn), [0, 1, 2])
    with pytest.raises(ValueError, match="integer `dtype`"):
        ow.keras.random.randint((2,), 0, 3, dtype="float32")


Q = np.float32([[0.5, 0.2], [0.1, 1.0]])
OTHERS = [  # results that NumPy gives, in the dtypes that Keras's specifications of outputs name
    ("quantile", (X, Q), {"axis": 1, "keepdims": True}, np.quantile(X, Q, 1, keepdims=True), "float32"),
    ("nanpercentile", (X, 100 * Q), {}, np.percentile(X, 100 * Q), "float32"),
    ("logspace", (1.0, X[0, 0], 1), {}, [[10.0] * 3], "float32"),
    ("linspace", (X[0, 0], 2.0, 1), {"endpoint": False}, [X[0, 0]], "float32"),
    ("full_like", (np.int64([1, 2]), 2.0), {}, [2, 2], "int64"),
    ("trapezoid", (X[0, 0],), {"dx": np.int32(2)}, np.trapezoid(X[0, 0], dx=2), "float32"),
    ("relu", (np.int8([3, -2]),), {}, [3, 0], "int8"),
    ("relu6", (np.int64([30, -2]),), {}, [6, 0], "int64"),
    ("threshold", (np.int32([3, 5]), 4, 0), {}, [0, 5], "int32"),
    ("square", (np.array([True, False]),), {}, [1, 0], "int32"),
    ("mod", (np.array([True, True]), np.array([True, True])), {}, [0, 0], "int32"),
    ("cbrt", (np.int64([8, 27]),), {}, [2, 3], "float64"),
    ("hypot", (np.int64([3]), np.int64([4])), {}, [5], "float64"),
    ("deg2rad", (np.int32([180]),), {}, [np.pi], "float32"),
    ("i0", (np.int64([0]),), {}, [1], "float64"),
]


@pytest.mark.parametrize(("name", "args", "options", "expected", "dtype"), OTHERS, ids=[row[0] for row in OTHERS])
def test_values_and_dtypes(name, args, options, expected, dtype):
    result = getattr(ops, name)(*args, **options)
    assert (result.dtype.name, tuple(result.shape)) == (dtype, np.shape(expected))
    np.testing.assert_allclose(result, expected, 1e-5, 1e-6)


def test_a_vector_of_weights_needs_an_axis():
    with pytest.raises(ValueError, match="weights"):
        ops.average(X[0], weights=[1.0, 2.0, 3.0])


def test_area_of_gains_and_moments_of_half_precision():
    """Gains by their definition: 1 - odds fn / tp of recall, 1 - odds fp / tp of precision."""
    area = ow.keras.metrics.AUC(curve="PRGAIN", thresholds=[0.5])
    area.update_state([0, 0, 1, 1, 1], [0.1, 0.6, 0.55, 0.8, 0.3])
    recall, precision = [1, 1 - 1.5 * 1 / 2, 0], [1 - 1.5 * 2 / 3, 1 - 1.5 * 1 / 2, 1]  # odds 3 : 2, three thresholds
    np.testing.assert_allclose(area.result().numpy(), -np.trapezoid(precision, recall), rtol=1e-6)
    mean, variance = ow.keras.ops.moments(np.array([-1800, 1000, 500], np.float16), [0])
    assert (mean.numpy(), variance.numpy()) == (np.float16(-100), np.finfo(np.float16).max)
