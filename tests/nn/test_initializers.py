"""Initializers: what they draw, their seeds, their configurations."""

import numpy as np
import pytest

SEEDED = (
    "RandomNormal",
    "TruncatedNormal",
    "RandomUniform",
    "GlorotNormal",
    "GlorotUniform",
    "HeNormal",
    "HeUniform",
    "LecunNormal",
    "LecunUniform",
    "VarianceScaling",
    "Orthogonal",
)
SHAPE = (3, 3, 40, 60)  # fans 360 and 540


@pytest.mark.parametrize(
    ("name", "variance", "bound"),
    [
        ("GlorotNormal", 2 / 900, None),
        ("GlorotUniform", 2 / 900, (6 / 900) ** 0.5),
        ("HeNormal", 2 / 360, None),
        ("HeUniform", 2 / 360, (6 / 360) ** 0.5),
        ("LecunNormal", 1 / 360, None),
        ("LecunUniform", 1 / 360, (3 / 360) ** 0.5),
        ("RandomNormal", 0.05**2, None),
        ("TruncatedNormal", 0.05**2 * 0.87962566103423978**2, 0.1),
        ("RandomUniform", 0.1**2 / 12, 0.05),
    ],
)
def test_distributions(tf, name, variance, bound):
    """Mean 0 and the variance of the formula; 21,600 numbers, so a deviation of 1 % or so."""
    x = np.asarray(getattr(tf.keras.initializers, name)(seed=3)(SHAPE))
    assert x.dtype == np.float32
    assert abs(x.mean()) < 5 * (variance / x.size) ** 0.5
    assert x.var() == pytest.approx(variance, rel=0.05)
    if bound is not None:
        assert np.abs(x).max() <= bound * (1 + 1e-6)
        assert np.abs(x).max() > 0.97 * bound
    if "Normal" in name and name != "RandomNormal":
        limit = 2 * (variance**0.5) / 0.87962566103423978
        assert np.abs(x).max() <= limit * (1 + 1e-5)


@pytest.mark.parametrize("mode", ["fan_in", "fan_out", "fan_avg"])
@pytest.mark.parametrize("distribution", ["truncated_normal", "untruncated_normal", "uniform"])
def test_variance_scaling(tf, mode, distribution):
    n = {"fan_in": 360, "fan_out": 540, "fan_avg": 450}[mode]
    make = tf.keras.initializers.VarianceScaling(scale=0.7, mode=mode, distribution=distribution, seed=4)
    assert np.asarray(make(SHAPE)).var() == pytest.approx(0.7 / n, rel=0.05)


@pytest.mark.parametrize(("shape", "fans"), [((), 1), ((6,), 6), ((4, 8), 4), ((2, 3, 4, 8), 24)])
def test_fans_of_shapes(tf, shape, fans):
    """Uniform numbers with fan_in reach sqrt(3 / fan_in)."""
    tops = [
        np.abs(np.asarray(tf.keras.initializers.VarianceScaling(distribution="uniform", seed=s)(shape))).max()
        for s in range(200)
    ]
    assert max(tops) <= (3 / fans) ** 0.5 * (1 + 1e-6)
    assert max(tops) > 0.93 * (3 / fans) ** 0.5


def test_fans_by_axes(tf):
    make = tf.keras.initializers.VarianceScaling(distribution="uniform", seed=1, input_axes=[2], output_axes=[0, 1])
    top = np.abs(np.asarray(make((5, 4, 300)))).max()
    assert 0.99 * (3 / 300) ** 0.5 < top <= (3 / 300) ** 0.5 * (1 + 1e-6)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (2, 3, 4), (2, 3, 9)])
def test_orthogonal(tf, shape):
    x = np.asarray(tf.keras.initializers.Orthogonal(gain=2.0, seed=7)(shape), np.float64).reshape(-1, shape[-1])
    small = x.T @ x if x.shape[0] >= x.shape[1] else x @ x.T
    np.testing.assert_allclose(small, 4 * np.eye(len(small)), atol=1e-5)


def test_constants(tf):
    i = tf.keras.initializers
    np.testing.assert_array_equal(i.Zeros()((2, 3)), np.zeros((2, 3)))
    np.testing.assert_array_equal(i.Ones()((2,), dtype="int32"), np.ones(2, np.int32))
    np.testing.assert_array_equal(i.Constant(3.5)((2, 2)), np.full((2, 2), 3.5))
    np.testing.assert_array_equal(i.Identity(gain=2.0)((2, 3)), 2 * np.eye(2, 3))
    with pytest.raises(ValueError, match="2D"):
        i.Identity()((2, 3, 4))
    with pytest.raises(ValueError, match="at least two-dimensional"):
        i.Orthogonal()((3,))


@pytest.mark.parametrize("name", SEEDED)
def test_seeds(tf, name):
    make = getattr(tf.keras.initializers, name)
    one = make(seed=5)
    np.testing.assert_array_equal(one((4, 5)), make(seed=5)((4, 5)))
    np.testing.assert_array_equal(one((4, 5)), one((4, 5)))
    assert np.any(np.asarray(make(seed=6)((4, 5))) != np.asarray(one((4, 5))))
    assert np.any(np.asarray(make()((4, 5))) != np.asarray(make()((4, 5))))


def test_a_seed_generator_goes_on(tf):
    generator = tf.keras.random.SeedGenerator(3)
    make = tf.keras.initializers.RandomNormal(seed=generator)
    assert np.any(np.asarray(make((4,))) != np.asarray(make((4,))))


@pytest.mark.parametrize("name", [*SEEDED, "Zeros", "Ones", "Constant", "Identity"])
def test_names_and_configurations(tf, name):
    i = tf.keras.initializers
    cls = getattr(i, name)
    if name != "Constant":  # of which Keras 3.15 wants the value
        assert type(i.get(name)) is cls
    result = cls(seed=3) if name in SEEDED else cls()
    config = i.serialize(result)
    assert config["class_name"] == name
    again = i.deserialize(config)
    assert again.get_config() == result.get_config()
    np.testing.assert_array_equal(again((3, 3)), result((3, 3)))


def test_get(tf):
    i = tf.keras.initializers
    assert i.get(None) is None
    result = i.Ones()
    assert i.get(result) is result
    assert isinstance(i.get("glorot_uniform"), i.GlorotUniform)
    assert isinstance(i.get({"class_name": "HeNormal", "config": {"seed": 2}}), i.HeNormal)
    with pytest.raises(ValueError, match="nothing_such"):
        i.get("nothing_such")
    with pytest.raises(ValueError, match="scale"):
        i.VarianceScaling(scale=0.0)
    with pytest.raises(ValueError, match="mode"):
        i.VarianceScaling(mode="fan")


def test_a_function_is_an_initializer(tf):
    layer = tf.keras.layers.Dense(2, kernel_initializer=lambda shape, dtype=None: tf.fill(shape, 3.0))
    layer.build((None, 4))
    np.testing.assert_array_equal(layer.get_weights()[0], np.full((4, 2), 3.0))


@pytest.mark.ours
def test_the_global_seed_decides(tf):
    def draw():
        tf.random.set_seed(11)
        return tf.keras.layers.Dense(3), tf.keras.layers.Dense(3)

    first, second = ([layer(np.ones((1, 4), np.float32)).numpy() for layer in draw()] for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert np.any(first[0] != first[1])
