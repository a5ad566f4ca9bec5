"""Networks for images and volumes of the corpus of networks. Run by make_networks.py."""

import numpy as np
import tensorflow as tf
from networks_table import adder

NETWORKS = {}
network = adder(NETWORKS)
L = tf.keras.layers


def image(*shape):
    """An input of one image."""
    return tf.keras.Input(shape, batch_size=1)


def model(x, y):
    """From an input to outputs."""
    return tf.keras.Model(x, y)


@network("float", "int8", "tensors", "uint8", "older", "int16x8")
def mobile():
    """Depthwise and pointwise convolutions, squeeze and excitation, hard swish."""
    x = y = image(24, 24, 3)
    for n, stride in ((8, 2), (16, 2), (16, 1)):
        y = L.DepthwiseConv2D(3, stride, "same", use_bias=False)(y)
        y = L.ReLU(6.0)(L.BatchNormalization()(y))
        y = L.Activation("hard_swish")(L.BatchNormalization()(L.Conv2D(n, 1)(y)))
    s = L.Conv2D(4, 1, activation="relu")(L.GlobalAveragePooling2D(keepdims=True)(y))
    y = y * L.Conv2D(16, 1, activation="hard_sigmoid")(s)
    y = L.Flatten()(L.AveragePooling2D(3)(y))
    return model(x, L.Dense(10, activation="softmax")(y))


@network("float", "int8", "int16x8")
def atrous():
    """Segmentation by dilated convolutions at several rates and the mean of the image, with its classes."""
    x = image(21, 21, 3)
    y = L.Conv2D(8, 3, 2, "same", activation="relu")(x)
    parts = [L.Conv2D(6, 3, dilation_rate=r, padding="same", activation="relu")(y) for r in (1, 2, 4)]
    parts.append(L.SeparableConv2D(6, 3, dilation_rate=2, padding="same")(y))
    parts.append(L.DepthwiseConv2D(3, dilation_rate=3, padding="same")(y))
    mean = L.Conv2D(6, 1)(L.GlobalAveragePooling2D(keepdims=True)(y))
    parts.append(L.Lambda(lambda t: tf.image.resize(t, (11, 11)))(mean))
    y = L.Conv2D(5, 1)(L.Concatenate()(parts))
    y = L.Lambda(lambda t: tf.compat.v1.image.resize_bilinear(t, (21, 21), align_corners=True))(y)
    return model(x, [y, L.Lambda(lambda t: tf.argmax(t, -1))(y)])


@network("float", "int8")
def u_shaped():
    """Down, up by transposed convolutions, and across."""
    x = y = image(32, 32, 2)
    across = []
    for n in (4, 8):
        y = L.BatchNormalization()(L.Conv2D(n, 3, padding="same", activation="relu")(y))
        across.append(y)
        y = L.MaxPooling2D()(y)
    y = L.Conv2D(12, 3, padding="same", activation="relu6")(y)
    for n, size in ((8, 2), (4, 3)):
        y = L.Conv2DTranspose(n, size, 2, "same")(y)
        y = L.LeakyReLU(0.2)(L.Concatenate()([y, across.pop()]))
    y = L.ZeroPadding2D(2)(L.Cropping2D(((1, 2), (3, 4)))(y))
    return model(x, L.Conv2D(1, 1, activation="sigmoid")(y))


@network("float16")
def finer():
    """Super-resolution: depth to space over what resizing gives."""
    x = image(12, 12, 3)
    y = L.Conv2D(12, 3, padding="same")(L.Conv2D(8, 5, padding="same", activation="tanh")(x))
    y = L.Lambda(lambda t: tf.nn.depth_to_space(t, 2))(y)
    bilinear, nearest = L.UpSampling2D(2, interpolation="bilinear")(x), L.UpSampling2D(2)(x)
    back = L.Lambda(lambda t: tf.nn.space_to_depth(t, 2))(y + bilinear + nearest)
    return model(x, [L.Lambda(lambda t: tf.clip_by_value(t, -1.0, 1.0))(y + bilinear), back])


@network("dynamic", "int8", "int16x8")
def generator():
    """From noise to an image: hybrid transposed convolutions in the dynamic range file."""
    x = image(16)
    y = L.Reshape((4, 4, 8))(L.Dense(128)(x))
    y = L.LeakyReLU()(L.BatchNormalization()(y))
    for n, size, stride in ((8, 5, 2), (4, 4, 2), (3, 3, 1)):
        padding = "valid" if size == 4 else "same"
        y = L.PReLU(shared_axes=[1, 2])(L.Conv2DTranspose(n, size, stride, padding, use_bias=size != 5)(y))
    return model(x, L.Activation("tanh")(y))


@network("float", "int8")
def video():
    """Convolutions over time and space."""
    x = image(8, 10, 10, 2)
    y = L.BatchNormalization()(L.Conv3D(4, 3, activation="relu")(x))
    y = L.Conv3D(4, (1, 3, 3), strides=(1, 2, 1), padding="same")(y)
    y = L.GlobalAveragePooling3D()(L.Conv3DTranspose(2, 2, 2)(y))
    return model(x, L.Dense(3)(y))


@network("float", "float16")
def groups():
    """Convolutions in groups, normalisations of groups, of axes and of length."""
    x = image(16, 16, 8)
    y = L.ReLU()(L.BatchNormalization()(L.Conv2D(16, 3, groups=4, padding="same", use_bias=False)(x)))
    y = L.Activation("silu")(L.GroupNormalization(4)(L.Conv2D(8, 3, 2, groups=8, padding="same")(y)))
    y = L.MaxPooling2D(3, 1, "same")(L.Conv2D(8, 3, activation="relu6")(y))
    y = L.Dense(4)(L.UnitNormalization()(L.LayerNormalization(axis=[1, 2])(y)))
    return model(x, L.Softmax(axis=-1)(y))


@network("int8")
def mixer():
    """Perceptrons over patches and over channels by turns."""
    x = image(16, 16, 3)
    y = L.Reshape((16, 12))(L.Conv2D(12, 4, 4)(x))
    for _ in range(2):
        z = L.Permute((2, 1))(L.LayerNormalization()(y))
        y = y + L.Permute((2, 1))(L.Dense(16)(L.Dense(8, activation="gelu")(z)))
        y = y + L.Dense(12)(L.Dense(20, activation="silu")(L.LayerNormalization()(y)))
    return model(x, L.Dense(5)(L.GlobalAveragePooling1D()(y)))


def _windows(t):
    cut = tf.reshape(t, (1, 2, 4, 2, 4, 6))
    return tf.reshape(tf.transpose(cut, (0, 1, 3, 2, 4, 5)), (-1, 16, 6))


def _whole(t):
    cut = tf.reshape(t, (1, 2, 2, 4, 4, 6))
    return tf.reshape(tf.transpose(cut, (0, 1, 3, 2, 4, 5)), (1, 8, 8, 6))


@network("float", "int8")
def shifted_windows():
    """Attention within windows, once shifted, and patches merged by strided slices."""
    x = y = image(8, 8, 6)
    for by in (0, 2):
        shift, back = (lambda t, by=by: tf.roll(t, (-by, -by), (1, 2))), (lambda t, by=by: tf.roll(t, (by, by), (1, 2)))
        z = L.Lambda(_windows)(L.Lambda(shift)(L.LayerNormalization()(y)))
        y = y + L.Lambda(back)(L.Lambda(_whole)(L.MultiHeadAttention(2, 3)(z, z)))
    y = L.Lambda(lambda t: tf.concat([t[:, i::2, j::2] for j in (0, 1) for i in (0, 1)], -1))(y)
    return model(x, L.Dense(12)(L.LayerNormalization()(y)))


@network("float")
def routing():
    """Capsules: routing by agreement, einsum after einsum."""
    w = tf.constant(np.random.default_rng(0).standard_normal((18, 3, 4, 5)).astype("f"))

    def route(u):
        votes, b = tf.einsum("bic,ijcd->bijd", u, w), tf.zeros((1, 18, 3))
        for _ in range(3):
            s = tf.einsum("bij,bijd->bjd", tf.nn.softmax(b, 2), votes)
            n = tf.reduce_sum(s * s, -1, keepdims=True)
            v = n / (1.0 + n) * s * tf.math.rsqrt(n + 1e-7)
            b = b + tf.einsum("bijd,bjd->bij", votes, v)
        return tf.norm(v, axis=-1)

    x = image(8, 8, 1)
    u = L.Reshape((18, 4))(L.Conv2D(8, 3, 2, activation="relu")(x))
    return model(x, L.Lambda(route)(u))


@network("float", "int8")
def prepared():
    """Layers that prepare images."""
    x = image(20, 20, 3)
    y = L.Resizing(13, 17)(L.Rescaling(1 / 127.5, -1)(x))
    y = L.CenterCrop(7, 5)(L.Resizing(9, 9, interpolation="nearest")(y))
    y = L.Normalization(mean=[0.1, 0.2, 0.3], variance=[1.0, 2.0, 3.0])(y)
    return model(x, L.Conv2D(3, 3, padding="same")(L.Resizing(8, 8, crop_to_aspect_ratio=True)(y)))


@network("float")
def detector():
    """Boxes and scores of a grid, and which are left."""
    grid = np.stack(np.meshgrid(np.arange(8), np.arange(8)), -1).reshape(64, 2) / 8

    def left(t):
        boxes, scores = t
        centre, size = boxes[0, :, :2] * 0.1 + tf.constant(grid, tf.float32), tf.exp(boxes[0, :, 2:] * 0.2) * 0.2
        corners, best = tf.concat([centre - size / 2, centre + size / 2], -1), tf.reduce_max(scores[0], -1)
        chosen, valid = tf.image.non_max_suppression_padded(corners, best, 10, 0.5, 0.3, pad_to_max_output_size=True)
        soft, by = tf.image.non_max_suppression_with_scores(corners, best, 10, 0.6, 0.2, 0.5)
        kinds = tf.argmax(scores[0], -1, output_type=tf.int32)
        return tf.gather(corners, chosen), tf.gather(kinds, chosen), valid, soft, by

    x = image(32, 32, 3)
    y = L.Conv2D(8, 3, 4, "same", activation="relu")(x)
    boxes = L.Reshape((64, 4))(L.Conv2D(4, 3, padding="same")(y))
    scores = L.Reshape((64, 3))(L.Conv2D(3, 3, padding="same", activation="sigmoid")(y))
    return model(x, L.Lambda(left)([boxes, scores]))


@network("float", "int8")
def any_size():
    """Images of any number and size."""
    x = tf.keras.Input((None, None, 3))
    y = L.Conv2D(6, 3, 2, "same", activation="relu")(x)
    up = L.Conv2DTranspose(2, 3, 2, "same")(y)
    return model(x, [L.Dense(4)(L.GlobalAveragePooling2D()(y)), L.UpSampling2D(2)(y), up])


@network("float", "int8")
def merges():
    """Two inputs, together in every way."""
    a, b = image(6, 4), image(6, 4)
    names = ("Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum", "Concatenate")
    return model([a, b], [*(getattr(L, n)()([a, b]) for n in names), L.Dot(2)([a, b])])
