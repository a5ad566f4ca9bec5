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


def functions():
    """Functions of `keras.ops` of each kind of arguments: by position, by name, tensors and constants."""
    i, j = keras.Input((6, 4), name="first"), keras.Input((6, 4), name="second")
    square = ops.matmul(ops.transpose(i, (0, 2, 1)), i) + 4 * ops.eye(4)
    images = ops.expand_dims(i, -1)
    return keras.Model(
        [i, j],
        [
            ops.arctan2(i, j),
            ops.arcsin(i * 0.5),
            ops.pad(i, ((0, 0), (1, 2), (0, 1)), constant_values=2.0),
            ops.pad(i, ((0, 0), (1, 2), (0, 1)), mode="reflect"),
            ops.clip(i, 0.2, 0.7),
            ops.normalize(i, axis=1),
            ops.layer_normalization(i),
            ops.rms_normalization(i, j[0, 0]),
            ops.batch_normalization(i, j[0, 0], j[1, 0] + 0.5, axis=-1, epsilon=0.01),
            *ops.moments(i, axes=[1, 2], keepdims=True),
            ops.tensordot(i, j, axes=[[1, 2], [1, 2]]),
            ops.einsum("bij,bkj->bik", i, j),
            ops.take_along_axis(i, ops.argsort(j, axis=1), axis=1),
            ops.slice_update(i, (0, 1, 0), j[:, :2]),
            ops.flip(i, axis=(1, 2)),
            ops.diff(i, axis=1),
            ops.tril(i, k=-1),
            ops.quantile(i, 0.3, axis=1),
            ops.median(i, axis=-1),
            ops.count_nonzero(i > 0.5, axis=1),
            ops.isclose(i, j, rtol=0.1),
            ops.logaddexp(i, j),
            ops.full_like(i, 3.0),
            ops.zeros_like(i),
            ops.binary_crossentropy(i, j, from_logits=True),
            ops.log_softmax(i),
            ops.celu(i, alpha=2.0),
            ops.solve(square, i[:, :4]),
            ops.logdet(square),
            ops.norm(i, axis=(1, 2)),
            ops.dot_product_attention(i[:, :, None], j[:, :, None], i[:, :, None], is_causal=True),
            ops.rfft(i)[0],
            ops.image.resize(images, (5, 3), interpolation="nearest"),
            ops.image.extract_patches(images, (2, 2), strides=1, padding="valid"),
            ops.max_pool(images, (2, 2), strides=1, padding="same"),
            ops.conv(images, np.ones((3, 3, 1, 2), "f4"), padding="same"),
            ops.unstack(i, axis=2)[1],
            ops.meshgrid(i[0, :, 0], j[0, 0], indexing="ij")[1],
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
    for build in (network, operations, functions, classifier):
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
