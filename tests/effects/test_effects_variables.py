"""Parts of variables set: slices, rows, batches. Runs against TensorFlow too."""

import numpy as np
import pytest

X = np.arange(12, dtype=np.float32).reshape(3, 4)

KEYS = [
    (np.s_[1], [7, 8, 9, 10]),
    (np.s_[1:3], [[1, 2, 3, 4], [5, 6, 7, 8]]),
    (np.s_[:, 1], [7, 8, 9]),
    (np.s_[0, 2], 5),
    (np.s_[::2, ::3], [[1, 2], [3, 4]]),
    (np.s_[..., -1], [1, 2, 3]),
    (np.s_[-1:], [[1, 2, 3, 4]]),
]


@pytest.mark.parametrize("mode", ["eager", "graph"])
@pytest.mark.parametrize(("key", "value"), KEYS, ids=str)
def test_slices(tf, mode, key, value):
    v = tf.Variable(X)

    def f(x):
        v[key].assign(x)
        return v + 0.0

    result = (f if mode == "eager" else tf.function(f))(tf.constant(value, tf.float32))
    expected = X.copy()
    expected[key] = value
    assert result.numpy().tolist() == v.numpy().tolist() == expected.tolist()


def test_slices_are_tensors_otherwise(tf):
    v = tf.Variable(X)
    assert v[1:, 2].numpy().tolist() == [6.0, 10.0]
    assert not hasattr(tf.constant(X)[1:], "assign")
    with pytest.raises(tf.errors.InvalidArgumentError):
        v[0:2].assign([[1.0, 2.0, 3.0]] * 2)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("scatter_nd_update", [9, 2, 1, 4]),
        ("scatter_nd_add", [10, 2, 4, 4]),
        ("scatter_nd_sub", [-8, 2, 2, 4]),
        ("scatter_nd_max", [9, 2, 3, 4]),
        ("scatter_nd_min", [1, 2, 1, 4]),
    ],
)
def test_scatter_nd(tf, name, expected):
    v = tf.Variable([1.0, 2.0, 3.0, 4.0])
    getattr(v, name)([[0], [2]], [9.0, 1.0])
    assert v.numpy().tolist() == expected


def test_batch_scatter_update(tf):
    v = tf.Variable([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    v.batch_scatter_update(tf.IndexedSlices(tf.constant([[20.0], [30.0]]), tf.constant([[0], [2]])))
    assert v.numpy().tolist() == [[20.0, 2.0, 3.0], [4.0, 5.0, 30.0]]


def test_reading_parts(tf):
    v = tf.Variable(X)
    assert v.sparse_read([2, 0]).numpy().tolist() == X[[2, 0]].tolist()
    assert v.gather_nd([[1, 1], [2, 3]]).numpy().tolist() == [5.0, 11.0]
