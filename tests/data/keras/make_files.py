"""Write the .keras files and their outputs that tests/frontends/test_keras_files.py reads.

KERAS_BACKEND=jax python tests/data/keras/make_files.py     in an environment with keras 3, h5py and jax
"""

from pathlib import Path

import keras
import numpy as np

HERE = Path(__file__).parent
layers, ops = keras.layers, keras.ops


def network():
    """Convolution, normalization, attention, recurrence, a model in a model, a shared layer."""
    i = keras.Input((8, 8, 3), name="image")
    shared = layers.Conv2D(4, 3, padding="same", activation="relu", name="c")
    x = layers.BatchNormalization()(layers.Conv2D(3, 1, use_bias=False)(i))
    x = layers.Add()([shared(x), shared(i)])
    z = layers.Dense(3, kernel_initializer=keras.initializers.VarianceScaling(2.0), kernel_regularizer="l2")(
        layers.GlobalAveragePooling2D()(x)
    )
    inner = keras.Sequential([keras.Input((3,)), layers.Dense(5), layers.LayerNormalization()], name="inner")
    r = layers.Reshape((5, 1))(layers.Dropout(0.5)(inner(z)))
    r = layers.Bidirectional(layers.LSTM(4, return_sequences=True))(r)
    r = layers.MultiHeadAttention(2, 4)(r, r)
    return keras.Model(i, [layers.GRU(3)(r), z])


def operations():
    """Operations of `keras.ops`, and operators of Python."""
    i, j = keras.Input((6, 4), name="first"), keras.Input((6, 4), name="second")
    d = ops.concatenate([i, j], axis=-1)
    return keras.Model(
        [i, j],
        [
            i[:, 1:3],
            i[..., None],
            i[:, 0],
            ops.mean(i, axis=1, keepdims=True),
            ops.argmax(d, axis=-1),
            ops.einsum("bij,bkj->bik", i, j),
            2.0 - i,
            ops.where(i > 0.5, i, 0.0),
            *ops.split(d, [3, 5], axis=-1),
            ops.top_k(i, 2)[0],
            ops.expand_dims(i, axis=(1, 2)),
            ops.transpose(i, (0, 2, 1)),
            ops.logsumexp(i, axis=-1),
            ops.roll(i, 1, axis=1),
            ops.moveaxis(i, 1, 2),
            1.0 / (i + 1.0),
            i**2,
            -i,
            ops.std(i, axis=1),
            ops.cast(i > 0.5, "int32"),
            ops.reshape(i, (-1, 24)),
            i // 0.3,
            ops.gelu(i),
            ops.softmax(i, axis=1),
            ops.cumsum(i, axis=1),
            ops.take(i, [2, 0], axis=1),
        ],
    )


def classifier():
    """A sequential model of layers with weights that do not train, and integers in."""
    return keras.Sequential(
        [
            keras.Input((7,), dtype="int32"),
            layers.Embedding(11, 6),
            layers.SeparableConv1D(5, 3, activation="gelu"),
            layers.BatchNormalization(scale=False),
            layers.Flatten(),
            layers.Dense(4, activation="softmax", kernel_constraint="max_norm"),
        ]
    )


def main():
    rng = np.random.default_rng(0)
    arrays = {}
    for build in (network, operations, classifier):
        keras.utils.set_random_seed(7)
        keras.backend.clear_session()
        model, name = build(), build.__name__
        for v in model.variables:
            if v.dtype == "float32":
                spread = rng.uniform(0.5, 1.5, v.shape) if "variance" in v.path else rng.normal(0, 0.5, v.shape)
                v.assign(spread.astype("f4"))
        inputs = [
            rng.integers(0, 11, (2, *x.shape[1:])).astype("i4")
            if x.dtype == "int32"
            else rng.uniform(0, 1, (2, *x.shape[1:])).astype("f4")
            for x in model.inputs
        ]
        outputs = model(inputs if len(inputs) > 1 else inputs[0])
        outputs = outputs if isinstance(outputs, list | tuple) else [outputs]
        arrays |= {f"{name}.input{i}": x for i, x in enumerate(inputs)}
        arrays |= {f"{name}.output{i}": np.asarray(y) for i, y in enumerate(outputs)}
        model.save(HERE / f"{name}.keras")
    np.savez_compressed(HERE / "expected.npz", **arrays)


if __name__ == "__main__":
    main()
