"""Names that tutorials use: forward derivatives, moving averages, strategies of one replica, sparse functions.

Expected values: derivatives and sums by hand or by NumPy, and those of TensorFlow 2.21 for sparse functions.
"""

import numpy as np
import pytest

import opwright as ow


def parts(x):
    return (
        x.indices.numpy().tolist(),
        np.round(x.values.numpy().astype(float), 5).tolist(),
        x.dense_shape.numpy().tolist(),
    )


def test_forward_derivatives_are_products_of_jacobians():
    v, x = ow.Variable([[1.0, 2.0], [3.0, 4.0]]), ow.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    t = ow.constant([[1.0, 0.0], [0.0, 2.0]])
    with ow.autodiff.ForwardAccumulator([v, x], [t, ow.ones_like(x)]) as accumulator:
        y = ow.matmul(x, v)
        unconnected = ow.constant(1.0) * 2.0
    expected = x.numpy() @ t.numpy() + np.ones((3, 2)) @ v.numpy()
    np.testing.assert_allclose(accumulator.jvp(y), expected, rtol=1e-6)
    assert accumulator.jvp(unconnected) is None
    assert float(accumulator.jvp(unconnected, ow.UnconnectedGradients.ZERO)) == 0.0

    @ow.function
    def slope(x):
        with ow.autodiff.ForwardAccumulator(x, ow.ones_like(x)) as inner:
            y = ow.sin(x) * x
        return inner.jvp(y)

    points = np.array([0.5, 2.0])
    np.testing.assert_allclose(slope(ow.constant(points)), np.cos(points) * points + np.sin(points), rtol=1e-12)
    with pytest.raises(ValueError, match="must match"):
        ow.autodiff.ForwardAccumulator(x, ow.ones([2]))
    with pytest.raises(ValueError, match="context"):
        ow.autodiff.ForwardAccumulator(x, ow.ones_like(x)).jvp(x)


@pytest.mark.parametrize("zero_debias", [False, True])
def test_moving_averages_follow_variables(zero_debias):
    v = ow.Variable([1.0, 2.0], dtype=ow.float64, name="v")
    ema = ow.train.ExponentialMovingAverage(0.9, zero_debias=zero_debias)
    assert ema.average(v) is None
    average, weight = np.zeros(2) if zero_debias else np.array([1.0, 2.0]), 0.0
    for value in ([1.0, 2.0], [3.0, -1.0], [0.0, 4.0]):
        v.assign(value)
        ema.apply([v])
        average, weight = 0.9 * average + 0.1 * np.array(value), 0.9 * weight + 0.1
    np.testing.assert_allclose(ema.average(v), average / weight if zero_debias else average, rtol=1e-6)
    assert ema.average_name(v) == "v/ExponentialMovingAverage"
    quick = ow.train.ExponentialMovingAverage(0.9, num_updates=0)
    quick.apply([v])
    v.assign([10.0, 10.0])
    quick.apply([v])
    np.testing.assert_allclose(quick.average(v), 0.1 * np.array([0.0, 4.0]) + 0.9 * 10, rtol=1e-6)
    with pytest.raises(ValueError, match="floating"):
        ema.apply([ow.Variable(1)])


def test_a_strategy_of_one_replica_trains_and_reduces():
    strategy = ow.distribute.MirroredStrategy(["/cpu:0"], ow.distribute.NcclAllReduce())
    with strategy.scope():
        model = ow.keras.Sequential([ow.keras.layers.Dense(1, kernel_initializer="ones")])
        model.compile("sgd", "mse")
    assert model.fit(np.ones((8, 2), "f"), np.ones((8, 1), "f"), verbose=0).history["loss"] == [1.0]

    @ow.function
    def step(batch):
        value = strategy.run(lambda x: ow.reduce_sum(x), args=(batch,))
        return strategy.reduce(ow.distribute.ReduceOp.SUM, value, axis=None)

    batches = strategy.experimental_distribute_dataset(ow.data.Dataset.range(4).batch(2))
    assert [int(step(b)) for b in batches] == [1, 5]
    context = ow.distribute.get_replica_context()
    assert (context.num_replicas_in_sync, context.replica_id_in_sync_group) == (1, 0)
    assert context.merge_call(lambda s, x: s.num_replicas_in_sync + x, args=(2,)) == 3
    assert strategy.experimental_local_results(5) == (5,)
    for make in (ow.distribute.MirroredStrategy, ow.distribute.OneDeviceStrategy):
        with pytest.raises(ValueError, match="CPU"):
            make("/gpu:0")


def test_sparse_functions_of_rows_and_pairs():
    a = ow.SparseTensor([[0, 0], [1, 2]], [-1.0, 3.0], [2, 4])
    b = ow.SparseTensor([[0, 0], [0, 3], [1, 2]], [2.0, -5.0, 1.0], [2, 4])
    where = [[0, 0], [0, 3], [1, 2]]
    assert parts(ow.sparse.maximum(a, b)) == (where, [2.0, 0.0, 3.0], [2, 4])
    assert parts(ow.sparse.minimum(a, b)) == (where, [-1.0, -5.0, 1.0], [2, 4])
    assert parts(ow.sparse.softmax(b)) == (where, [0.99909, 0.00091, 1.0], [2, 4])
    pieces = [parts(p) for p in ow.sparse.split(b, 3, 1)]
    assert pieces == [([[0, 0]], [2.0], [2, 2]), ([[1, 0]], [1.0], [2, 1]), ([[0, 0]], [-5.0], [2, 1])]
    assert parts(ow.sparse.bincount([1, 1, 3, 0])) == ([[0], [1], [3]], [1, 2, 1], [4])
    rows = [[1, 1, 3], [0, 2, 2]]
    counted = parts(ow.sparse.bincount(rows, axis=-1, minlength=6))
    assert counted == ([[0, 1], [0, 3], [1, 0], [1, 2]], [2, 1, 1, 2], [2, 6])
    short = parts(ow.sparse.bincount(rows, axis=-1, maxlength=3, binary_output=True))
    assert short == ([[0, 1], [1, 0], [1, 2]], [1, 1, 1], [2, 3])
    assert parts(ow.sparse.bincount([1, 2, 1], weights=[0.5, 1.0, 2.0])) == ([[1], [2]], [2.5, 1.0], [3])
    assert parts(ow.sparse.bincount(ow.ragged.constant([[1, 1], [2]]), axis=-1))[:2] == ([[0, 1], [1, 2]], [2, 1])
    x = ow.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    assert ow.sparse.segment_sum(x, [0, 2, 1], [0, 0, 2]).numpy().tolist() == [[6, 8], [0, 0], [3, 4]]
    assert ow.sparse.segment_mean(x, [0, 2], [0, 0], num_segments=2).numpy().tolist() == [[3, 4], [0, 0]]
    np.testing.assert_allclose(ow.sparse.segment_sqrt_n(x, [0, 2], [0, 0]), np.array([[6, 8]]) / 2**0.5, rtol=1e-6)
    masked = ow.sparse.mask(ow.IndexedSlices(x, ow.constant([7, 8, 9])), ow.constant([8]))
    assert (masked.values.numpy().tolist(), masked.indices.numpy().tolist()) == ([[1, 2], [5, 6]], [7, 9])
    with ow.GradientTape() as tape:
        tape.watch(b.values)
        total = ow.reduce_sum(ow.sparse.softmax(b).values * ow.constant([1.0, 3.0, 5.0]))
    p = 1 / (1 + np.exp(-7.0))
    np.testing.assert_allclose(tape.gradient(total, b.values), [-2 * p * (1 - p), 2 * p * (1 - p), 0], atol=1e-7)


def test_first_lines_of_scripts():
    import opwright.compat.v2 as tf

    assert tf is ow
    tf.debugging.set_log_device_placement(True)
    tf.debugging.disable_traceback_filtering()
    assert not tf.debugging.get_log_device_placement()
    assert not tf.debugging.is_traceback_filtering_enabled()
    with pytest.raises(RuntimeError, match="never filtered"):
        tf.debugging.enable_traceback_filtering()


def test_older_names_of_random_numbers():
    g = ow.random.experimental.Generator.from_seed(1)
    assert g.normal([2]).shape == [2]
    assert ow.random.experimental.stateless_split is ow.random.split


PIXELS = np.random.default_rng(0).standard_normal((1, 5, 4, 2)).round(1).astype(np.float32)
ELEMENT = np.random.default_rng(1).standard_normal((2, 3, 2)).round(1).astype(np.float32)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("step", "rate"), [(1, 1), (2, 1), (1, 2)])
def test_morphology_of_images(padding, step, rate):
    """Against maxima over the places of the element, as its definition says; windows as those of convolutions."""

    def dilated(x, element):
        edges, sizes = [], []
        for size, window, each in zip(x.shape[1:3], element.shape, (step, 1)):
            spanned = (window - 1) * (rate if each == step and window == 2 else 1) + 1
            count = -(-size // each) if padding == "SAME" else -(-(size - spanned + 1) // each)
            total = max((count - 1) * each + spanned - size, 0) if padding == "SAME" else 0
            edges.append((total // 2, total - total // 2))
            sizes.append(count)
        padded = np.pad(x, [(0, 0), *edges, (0, 0)], constant_values=-np.inf)
        y = np.empty((1, *sizes, 2))
        for i, j in np.ndindex(*sizes):
            window = padded[0, i * step : i * step + rate + 1 : rate, j : j + 3]
            y[0, i, j] = (window + element).max((0, 1))
        return y

    call = [1, step, 1, 1], padding, "NHWC", [1, rate, 1, 1]
    np.testing.assert_allclose(ow.nn.dilation2d(PIXELS, ELEMENT, *call), dilated(PIXELS, ELEMENT), 1e-6)
    eroded = -dilated(-PIXELS, ELEMENT[::-1, ::-1])
    np.testing.assert_allclose(ow.nn.erosion2d(PIXELS, ELEMENT, *call), eroded, 1e-6)


def test_small_functions_of_tensorflow():
    """Values of TensorFlow 2.21."""
    labels, lengths = ow.nn.collapse_repeated([[1, 1, 2, 2, 1], [3, 3, 3, 0, 0], [1, 2, 3, 4, 4]], [5, 3, 5])
    assert labels.numpy().tolist() == [[1, 2, 1, 0], [3, 0, 0, 0], [1, 2, 3, 4]]
    assert lengths.numpy().tolist() == [3, 1, 4]
    paddings, crops = ow.required_space_to_batch_paddings([5, 7], [2, 3])
    assert (paddings.numpy().tolist(), crops.numpy().tolist()) == ([[0, 1], [0, 2]], [[0, 1], [0, 2]])
    paddings, crops = ow.required_space_to_batch_paddings([5, 7], [2, 3], [[1, 0], [0, 2]])
    assert (paddings.numpy().tolist(), crops.numpy().tolist()) == ([[1, 0], [0, 2]], [[0, 0], [0, 0]])
    bins = ow.histogram_fixed_width_bins([-1.0, 0.0, 1.5, 2.0, 5.0, 15.0], [0.0, 5.0], 5)
    assert (bins.numpy().tolist(), bins.dtype) == ([0, 0, 1, 2, 4, 4], ow.int32)
    x = np.array([[3.0, 1.0, 4.0], [1.5, 5.0, 9.0]], np.float32)
    values, places = ow.nn.approx_max_k(x, 2)
    assert (values.numpy().tolist(), places.numpy().tolist()) == ([[4, 3], [9, 5]], [[2, 0], [2, 1]])
    values, places = ow.math.approx_min_k(x, 1, reduction_dimension=0)
    assert (values.numpy().tolist(), places.numpy().tolist()) == ([[1.5, 1, 4]], [[1, 0, 0]])
    assert ow.saved_model.SERVING == "serve"
    assert ow.saved_model.PREDICT_METHOD_NAME == "tensorflow/serving/predict"


def test_artefacts_of_jpeg():
    pytest.importorskip("PIL")
    image = (np.indices((16, 16)).sum(0)[..., None] * np.array([8, 4, 2])).astype(np.uint8)
    coarse, fine = (ow.image.adjust_jpeg_quality(image, q) for q in (5, 100))
    decoded = ow.io.decode_jpeg(ow.io.encode_jpeg(image, quality=5))
    np.testing.assert_array_equal(coarse, decoded)
    errors = [np.abs(each.numpy().astype(int) - image).mean() for each in (coarse, fine)]
    assert errors[1] < 4 < errors[0]
    floats = ow.image.adjust_jpeg_quality(image / np.float32(255), 5)
    np.testing.assert_allclose(floats, coarse.numpy() / 255.0, atol=1e-6)
    one, other = (ow.image.stateless_random_jpeg_quality(image, 5, 95, [1, seed]) for seed in (1, 2))
    assert one.shape == ow.image.random_jpeg_quality(image, 5, 95).shape == image.shape
    assert (one.numpy() != other.numpy()).any()
    with pytest.raises(ValueError, match="min_jpeg_quality"):
        ow.image.random_jpeg_quality(image, 50, 5)
    with pytest.raises(ow.errors.InvalidArgumentError, match="quality"):
        ow.image.adjust_jpeg_quality(image, 101)
