"""Gradients into what becomes one tensor on the way: lists of tensors, slices made dense."""

import pytest


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (lambda tf, x: tf.convert_to_tensor([x, x * 2.0]), 3.0),
        (lambda tf, x: tf.convert_to_tensor([[x, 1.0], [x * 2.0, x]]), 4.0),
        (lambda tf, x: tf.reduce_sum([x, x * x]), 7.0),
        (lambda tf, x: tf.constant([1.0, 2.0]) + [x, x], 2.0),  # noqa: RUF005  a tensor, no list
        (lambda tf, x: tf.linalg.matmul([[x, 1.0]], [[x], [x]]), 7.0),
        (lambda tf, x: tf.concat([[x], [x * x, 1.0]], 0), 7.0),
    ],
)
@pytest.mark.parametrize("source", ["tensor", "variable"])
def test_gradients_flow_into_lists_of_tensors(tf, made, expected, source):
    x = tf.constant(3.0) if source == "tensor" else tf.Variable(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = made(tf, x)
    assert tape.gradient(y, x).numpy() == expected


@pytest.mark.parametrize("traced", [False, True])
def test_gradients_flow_through_slices_made_dense(tf, traced):
    x = tf.constant([1.0, 2.0])

    def f(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.gather(x, [1, 0]) ** 3
            slices = tape.gradient(y, x)
            total = tf.reduce_sum(tf.convert_to_tensor(slices)) + tf.reduce_sum(slices)
        return tf.convert_to_tensor(outer.gradient(total, x))

    assert (tf.function(f) if traced else f)(x).numpy().tolist() == [12.0, 24.0]
