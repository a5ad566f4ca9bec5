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
