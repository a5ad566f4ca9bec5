"""Activations, regularizers and constraints by name; what regularizers and constraints give, by NumPy in float64."""

import numpy as np
import pytest

X = np.random.default_rng(5).standard_normal((4, 3)).astype(np.float32)


def test_regularizers(tf):
    r, x = tf.keras.regularizers, X.astype(np.float64)
    for result, expected in (
        (r.L1(0.3), 0.3 * np.abs(x).sum()),
        (r.L2(0.2), 0.2 * (x**2).sum()),
        (r.L1L2(0.1, 0.2), 0.1 * np.abs(x).sum() + 0.2 * (x**2).sum()),
    ):
        assert float(result(X)) == pytest.approx(expected, rel=1e-6)
        again = r.deserialize(r.serialize(result))
        assert float(again(X)) == pytest.approx(expected, rel=1e-6)
    assert isinstance(r.get("l2"), r.L2)
    assert r.get(None) is None
    with pytest.raises(ValueError, match="l1"):
        r.L1(-1.0)


@pytest.mark.parametrize("mode", ["rows", "columns"])
def test_orthogonal_regularizer(tf, mode):
    x = X.astype(np.float64) if mode == "rows" else X.T.astype(np.float64)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    cosines = np.abs(unit @ unit.T)
    n = len(unit)
    expected = 0.4 * np.triu(cosines, 1).sum() / (n * (n - 1) / 2)
    assert float(tf.keras.regularizers.OrthogonalRegularizer(0.4, mode)(tf.constant(X))) == pytest.approx(
        expected, rel=1e-5
    )


def test_constraints(tf):
    c, x = tf.keras.constraints, X.astype(np.float64)
    norms = np.linalg.norm(x, axis=0, keepdims=True)
    limited = 0.5 * np.clip(norms, 1.0, 1.5) + 0.5 * norms
    for result, expected in (
        (c.MaxNorm(1.0), x * np.clip(norms, 0, 1.0) / norms),
        (c.UnitNorm(axis=1), x / np.linalg.norm(x, axis=1, keepdims=True)),
        (c.NonNeg(), np.maximum(x, 0)),
        (c.MinMaxNorm(1.0, 1.5, rate=0.5), x * limited / norms),
    ):
        np.testing.assert_allclose(result(tf.constant(X)), expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(c.deserialize(c.serialize(result))(tf.constant(X)), expected, rtol=1e-5, atol=1e-6)
    assert isinstance(c.get("max_norm"), c.MaxNorm)
    assert c.get(None) is None


def test_layers_have_losses_and_constraints(tf):
    layer = tf.keras.layers.Dense(
        3,
        kernel_regularizer="l2",
        bias_regularizer=tf.keras.regularizers.L1(0.5),
        kernel_constraint="non_neg",
        bias_initializer="ones",
    )
    layer(X)
    kernel = layer.get_weights()[0].astype(np.float64)
    assert sorted(float(v) for v in layer.losses) == pytest.approx(sorted([0.01 * (kernel**2).sum(), 1.5]), rel=1e-5)
    assert isinstance(layer.kernel_constraint, tf.keras.constraints.NonNeg)


def test_activities_are_regularized(tf):
    layer = tf.keras.layers.ActivityRegularization(l1=0.1, l2=0.2)
    layer(X)
    assert len(layer.losses) == 1


def test_activations_by_name(tf):
    a = tf.keras.activations
    assert a.get(None) is a.linear
    assert a.get("relu") is a.relu
    assert a.get("swish") is a.get("silu")
    assert a.serialize(a.gelu) == "gelu"
    assert a.deserialize("tanh") is a.tanh
    with pytest.raises(ValueError, match="nothing_such"):
        a.get("nothing_such")


def test_activations_of_arguments(tf):
    a, x = tf.keras.activations, 3 * X.astype(np.float64)
    inputs = tf.constant((3 * X).astype(np.float32))
    np.testing.assert_allclose(
        a.relu(inputs, negative_slope=0.2, threshold=0.5), np.where(x > 0.5, x, 0.2 * (x - 0.5)), rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(a.relu(inputs, max_value=1.5), np.clip(x, 0, 1.5), rtol=1e-5)
    np.testing.assert_allclose(a.elu(inputs, 0.3), np.where(x > 0, x, 0.3 * np.expm1(x)), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(a.leaky_relu(inputs, 0.3), np.where(x > 0, x, 0.3 * x), rtol=1e-5)
    np.testing.assert_allclose(a.threshold(inputs, 0.5, 7.0), np.where(x > 0.5, x, 7.0), rtol=1e-5)
    np.testing.assert_allclose(a.softmax(inputs, axis=0), np.exp(x) / np.exp(x).sum(0), rtol=1e-5)
    tanh = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    np.testing.assert_allclose(a.gelu(inputs, approximate=True), tanh, rtol=1e-4, atol=1e-5)
