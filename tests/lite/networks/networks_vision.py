"""Networks of images, volumes and signals: convolutions, pools, norms, resizing; see networks_all.py."""

from __future__ import annotations

from typing import Any

from networks_kit import network


def conv_bn(tf: Any, x: Any, n: int, k: int = 3, s: int = 1, act: Any = "relu6", use_bias: bool = False) -> Any:
    """A convolution, batch norm, and an activation by name or as a function."""
    L = tf.keras.layers
    x = L.Conv2D(n, k, s, padding="same", use_bias=use_bias)(x)
    x = L.BatchNormalization()(x)
    return L.Activation(act)(x) if isinstance(act, str) else act(x)


def hard_swish(tf: Any) -> Any:
    """As MobileNetV3 writes it."""
    return lambda x: x * tf.keras.layers.ReLU(6.0)(x + 3.0) / 6.0


@network((1, 32, 32, 3))
def mobilenet_v1(tf: Any) -> Any:
    K, L = tf.keras, tf.keras.layers
    i = K.Input((32, 32, 3))
    x = conv_bn(tf, i, 8, 3, 2)
    for n, s in ((16, 1), (32, 2), (32, 1)):
        if s == 2:
            x = L.ZeroPadding2D(((0, 1), (0, 1)))(x)
        x = L.DepthwiseConv2D(3, s, padding="same" if s == 1 else "valid", use_bias=False)(x)
        x = L.BatchNormalization()(x)
        x = L.ReLU(6.0)(x)
        x = conv_bn(tf, x, n, 1)
    x = L.GlobalAveragePooling2D(keepdims=True)(x)
    x = L.Dropout(0.1)(x)
    x = L.Conv2D(10, 1)(x)
    x = L.Reshape((10,))(x)
    return K.Model(i, L.Softmax()(x))


@network((2, 32, 32, 3))
def mobilenet_v2(tf: Any) -> Any:
    K, L = tf.keras, tf.keras.layers
    i = K.Input((32, 32, 3))
    x = L.Rescaling(1 / 127.5, offset=-1)(i)
    x = conv_bn(tf, x, 8, 3, 2)
    for n, s, t in ((8, 1, 1), (16, 2, 6), (16, 1, 6)):
        y = conv_bn(tf, x, x.shape[-1] * t, 1)
        y = L.DepthwiseConv2D(3, s, padding="same", use_bias=False)(y)
        y = L.BatchNormalization()(y)
        y = L.ReLU(6.0)(y)
        y = L.Conv2D(n, 1, use_bias=False)(y)
        y = L.BatchNormalization()(y)
        x = L.Add()([x, y]) if s == 1 and x.shape[-1] == n else y
    x = conv_bn(tf, x, 32, 1)
    x = L.GlobalAveragePooling2D()(x)
    return K.Model(i, L.Dense(10, activation="softmax")(x))


@network((1, 32, 32, 3))
def mobilenet_v3(tf: Any) -> Any:
    K, L = tf.keras, tf.keras.layers
    h = hard_swish(tf)
    i = K.Input((32, 32, 3))
    x = conv_bn(tf, i, 8, 3, 2, h)
    for n, s, act in ((8, 1, "relu"), (16, 2, h), (16, 1, h)):
        y = conv_bn(tf, x, 24, 1, 1, act)
        y = L.DepthwiseConv2D(5, s, padding="same", use_bias=False)(y)
        y = L.BatchNormalization()(y)
        y = L.Activation(act)(y) if isinstance(act, str) else act(y)
        z = L.GlobalAveragePooling2D(keepdims=True)(y)
        z = L.Conv2D(8, 1, activation="relu")(z)
        z = L.Conv2D(24, 1)(z)
        z = L.ReLU(6.0)(z + 3.0) * (1.0 / 6.0)
        y = L.Multiply()([y, z])
        y = L.Conv2D(n, 1, use_bias=False)(y)
        y = L.BatchNormalization()(y)
        x = L.Add()([x, y]) if s == 1 and x.shape[-1] == n else y
    x = L.GlobalAveragePooling2D()(x)
    x = L.Dense(16, activation="hard_swish")(x)
    return K.Model(i, L.Dense(10, activation="softmax")(x))


@network((1, 32, 32, 3))
def efficientnet(tf: Any) -> Any:
    K, L = tf.keras, tf.keras.layers
    i = K.Input((32, 32, 3))
    x = L.Rescaling(1 / 255.0)(i)
    x = L.Normalization(mean=[0.4, 0.5, 0.6], variance=[0.1, 0.2, 0.3])(x)
    x = L.ZeroPadding2D(((0, 1), (0, 1)))(x)
    x = L.Conv2D(8, 3, 2, padding="valid", use_bias=False)(x)
    x = L.BatchNormalization()(x)
    x = L.Activation("swish")(x)
    for n, s in ((8, 1), (16, 2)):
        y = conv_bn(tf, x, 24, 1, 1, "swish")
        y = L.DepthwiseConv2D(3, s, padding="same", use_bias=False)(y)
        y = L.BatchNormalization()(y)
        y = L.Activation("swish")(y)
        z = L.GlobalAveragePooling2D()(y)
        z = L.Reshape((1, 1, 24))(z)
        z = L.Conv2D(4, 1, padding="same", activation="swish")(z)
        z = L.Conv2D(24, 1, padding="same", activation="sigmoid")(z)
        y = L.multiply([y, z])
        y = L.Conv2D(n, 1, use_bias=False)(y)
        y = L.BatchNormalization()(y)
        if s == 1:
            y = L.Dropout(0.2, noise_shape=(None, 1, 1, 1))(y)
            x = L.add([y, x])
        else:
            x = y
    x = L.GlobalAveragePooling2D()(x)
    return K.Model(i, L.Dense(7, activation="softmax")(x))


@network((2, 24, 24, 3))
def resnet(tf: Any) -> Any:
    K, L = tf.keras, tf.keras.layers
    i = K.Input((24, 24, 3))
    x = L.ZeroPadding2D(3)(i)
    x = L.Conv2D(8, 7, 2)(x)
    x = L.BatchNormalization(epsilon=1.001e-5)(x)
    x = L.ReLU()(x)
    x = L.ZeroPadding2D(1)(x)
    x = L.MaxPooling2D(3, 2)(x)
    for n, s in ((8, 1), (16, 2)):
        short = L.BatchNormalization()(L.Conv2D(n * 2, 1, s)(x))
        y = conv_bn(tf, x, n, 1, s, "relu", True)
        y = conv_bn(tf, y, n, 3, 1, "relu", True)
        y = L.BatchNormalization()(L.Conv2D(n * 2, 1)(y))
        x = L.Activation("relu")(L.Add()([short, y]))
    x = L.GlobalAveragePooling2D()(x)
    return K.Model(i, L.Dense(5)(x))


@network((2, 24, 24, 3))
def resnet_v2(tf: Any) -> Any:
    K, L = tf.keras, tf.keras.layers
    i = K.Input((24, 24, 3))
    x = L.Conv2D(8, 3, padding="same")(i)
    for n in (8, 16):
        y = L.ReLU()(L.BatchNormalization()(x))
        short = L.Conv2D(n, 1, 2)(y)
        y = L.ReLU()(L.BatchNormalization()(L.Conv2D(n, 3, 2, padding="same", use_bias=False)(y)))
        y = L.Conv2D(n, 3, padding="same")(y)
        x = short + y
    x = L.ReLU()(L.BatchNormalization()(x))
    x = L.GlobalMaxPooling2D()(x)
    return K.Model(i, L.Dense(5)(x))


@network((1, 16, 16, 3))
def densenet(tf: Any) -> Any:
    K, L = tf.keras, tf.keras.layers
    i = K.Input((16, 16, 3))
    x = L.Conv2D(8, 3, padding="same", use_bias=False)(i)
    for _block in range(2):
        for _ in range(2):
            y = L.ReLU()(L.BatchNormalization()(x))
            y = L.Conv2D(16, 1, use_bias=False)(y)
            y = L.ReLU()(L.BatchNormalization()(y))
            y = L.Conv2D(4, 3, padding="same", use_bias=False)(y)
            x = L.Concatenate()([x, y])
        x = L.ReLU()(L.BatchNormalization()(x))
        x = L.Conv2D(x.shape[-1] // 2, 1, use_bias=False)(x)
        x = L.AveragePooling2D(2, 2)(x)
    x = L.ReLU()(L.BatchNormalization()(x))
    x = L.GlobalAveragePooling2D()(x)
    return K.Model(i, L.Dense(5, activation="softmax")(x))


@network((1, 17, 17, 3))
def inception(tf: Any) -> Any:
    K, L = tf.keras, tf.keras.layers
    i = K.Input((17, 17, 3))

    def c(x: Any, n: int, a: int, b: int, s: int = 1, p: str = "same") -> Any:
        x = L.Conv2D(n, (a, b), strides=s, padding=p, use_bias=False)(x)
        x = L.BatchNormalization(scale=False)(x)
        return L.Activation("relu")(x)

    x = c(i, 8, 3, 3, 2, "valid")
    b1 = c(x, 4, 1, 1)
    b2 = c(c(x, 4, 1, 1), 6, 5, 5)
    b3 = c(c(c(x, 4, 1, 1), 4, 1, 7), 6, 7, 1)
    b4 = c(L.AveragePooling2D(3, 1, padding="same")(x), 4, 1, 1)
    x = L.concatenate([b1, b2, b3, b4], axis=3)
    x = L.concatenate([c(x, 6, 3, 3, 2, "valid"), L.MaxPooling2D(3, 2)(x)])
    x = L.Flatten()(x)
    return K.Model(i, L.Dense(5, activation="softmax")(x))


@network((1, 32, 32, 2))
def unet(tf: Any) -> Any:
    K, L = tf.keras, tf.keras.layers
    i = K.Input((32, 32, 2))
    skips, x = [], i
    for n in (4, 8):
        x = L.Conv2D(n, 3, activation="relu", padding="same")(x)
        skips.append(x)
        x = L.MaxPooling2D()(x)
    x = L.Conv2D(16, 3, activation="relu", padding="same", dilation_rate=2)(x)
    for n, s in zip((8, 4), reversed(skips)):
        x = L.Conv2DTranspose(n, 2 if n == 8 else 3, strides=2, padding="same")(x)
        x = L.concatenate([x, s])
        x = L.Conv2D(n, 3, activation=L.LeakyReLU(0.1), padding="same")(x)
    up = L.UpSampling2D(2, interpolation="bilinear")(x)
    n = L.UpSampling2D(2)(x)
    r = L.Resizing(32, 32)(up + n)
    out = L.Conv2D(1, 1, activation="sigmoid")(x)
    return K.Model(i, [out, r])


@network((2, 28, 28, 1))
def autoencoder(tf: Any) -> Any:
    K, L = tf.keras, tf.keras.layers
    enc = K.Sequential(
        [
            K.Input((28, 28, 1)),
            L.Conv2D(4, 3, 2, padding="same", activation="relu"),
            L.Conv2D(8, 3, 2, padding="same", activation="relu"),
            L.Flatten(),
            L.Dense(6),
        ]
    )
    dec = K.Sequential(
        [
            K.Input((6,)),
            L.Dense(7 * 7 * 8, activation="relu"),
            L.Reshape((7, 7, 8)),
            L.Conv2DTranspose(4, 3, 2, padding="same", activation="relu"),
            L.Conv2DTranspose(1, 3, 2, padding="same", activation="sigmoid"),
        ]
    )
    i = K.Input((28, 28, 1))
    return K.Model(i, dec(enc(i)))


@network((1, 21, 30, 3))
def fully_convolutional_unknown(tf: Any) -> Any:
    K, L = tf.keras, tf.keras.layers
    i = K.Input((None, None, 3))
    x = L.Conv2D(4, 3, 2, padding="same", activation="relu")(i)
    x = L.DepthwiseConv2D(3, padding="same", dilation_rate=2)(x)
    x = L.MaxPooling2D(2, padding="same")(x)
    y = L.UpSampling2D(2, interpolation="bilinear")(x)
    z = L.Conv2DTranspose(3, 3, 2, padding="same")(x)
    g = L.GlobalAveragePooling2D()(x)
    return K.Model(i, [L.Concatenate()([y, z]), L.Dense(2)(g)])


@network((2, 16, 3))
def pools_1d(tf: Any) -> Any:
    K, L = tf.keras, tf.keras.layers
    i = K.Input((16, 3))
    x = L.Conv1D(6, 3, padding="causal", dilation_rate=2, activation="relu")(i)
    x = L.SeparableConv1D(6, 3, padding="same")(x)
    a = L.MaxPooling1D(2)(x)
    b = L.AveragePooling1D(3, 2, padding="same")(x)
    c = L.Conv1DTranspose(2, 3, 2, padding="same")(a)
    d = L.UpSampling1D(2)(L.Cropping1D(1)(b))
    e = L.GlobalMaxPooling1D()(x)
    f = L.DepthwiseConv1D(3, padding="same", depth_multiplier=2)(x)
    return K.Model(i, [a, b, c, d, e, f, L.ZeroPadding1D(2)(x), L.RepeatVector(3)(e), L.Permute((2, 1))(x)])


@network((1, 6, 8, 8, 2))
def volumes(tf: Any) -> Any:
    K, L = tf.keras, tf.keras.layers
    i = K.Input((6, 8, 8, 2))
    x = L.Conv3D(4, 3, padding="same", activation="relu")(i)
    a = L.MaxPooling3D(2)(x)
    b = L.AveragePooling3D(2)(x)
    c = L.Conv3DTranspose(2, 2, 2)(a)
    more = [L.UpSampling3D(2)(b), L.ZeroPadding3D(1)(b), L.Cropping3D(1)(x), L.GlobalAveragePooling3D()(x)]
    return K.Model(i, [a, b, c, *more])


@network((2, 8, 8, 4))
def norms(tf: Any) -> Any:
    K, L = tf.keras, tf.keras.layers
    i = K.Input((8, 8, 4))
    return K.Model(
        i,
        [
            L.LayerNormalization(axis=[1, 2, 3])(i),
            L.GroupNormalization(2)(i),
            L.UnitNormalization()(i),
            L.BatchNormalization(axis=1)(i),
            L.RMSNormalization()(i),
            L.GroupNormalization(-1)(i),
        ],
    )


@network((1, 9, 9, 4))
def grouped_separable(tf: Any) -> Any:
    K, L = tf.keras, tf.keras.layers
    i = K.Input((9, 9, 4))
    x = L.Conv2D(8, 3, groups=2, padding="same", activation="relu")(i)
    x = L.SeparableConv2D(6, 3, depth_multiplier=2, activation="relu")(x)
    x = L.Cropping2D(((1, 0), (0, 1)))(x)
    y = L.DepthwiseConv2D(3, 2, depth_multiplier=2, padding="same")(x)
    return K.Model(i, [x, y, L.AveragePooling2D((2, 3), padding="same")(x), L.SpatialDropout2D(0.5)(x)])


@network((1, 9, 10, 4))
def adaptive_pools(tf: Any) -> Any:
    K, L = tf.keras, tf.keras.layers
    i = K.Input((9, 10, 4))
    layers = [
        L.AdaptiveAveragePooling2D((3, 4)),
        L.AdaptiveMaxPooling2D(2),
        L.Resizing(5, 7, interpolation="nearest"),
        L.Resizing(5, 7, crop_to_aspect_ratio=True),
        L.Resizing(12, 7, interpolation="bicubic"),
    ]
    return K.Model(i, [layer(i) for layer in layers])
