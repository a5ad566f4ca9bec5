"""A network of the size that is converted for phones, written once for every framework with Keras's names.

Lives here: `mobilenet_v2`.  Not here: what is measured with it (ours.py, peers/).
"""

from __future__ import annotations

from typing import Any

#          channels out, blocks, stride of the first, channels inside as a multiple
STAGES = ((16, 1, 1, 1), (24, 2, 2, 6), (32, 3, 2, 6), (64, 4, 2, 6), (96, 3, 1, 6), (160, 3, 2, 6), (320, 1, 1, 6))


def mobilenet_v2(keras: Any) -> Any:
    """MobileNetV2 (Sandler et al. 2018, table 2) of width 1 on one image of 224 x 224, 3.5 M random weights."""
    layers = keras.layers

    def finished(x: Any, activate: bool = True) -> Any:
        x = layers.BatchNormalization(beta_initializer="random_normal")(x)
        return layers.ReLU(6.0)(x) if activate else x

    def conv(x: Any, channels: int, size: int, stride: int = 1, activate: bool = True) -> Any:
        return finished(layers.Conv2D(channels, size, stride, padding="same", use_bias=False)(x), activate)

    def block(x: Any, channels: int, stride: int, inside: int) -> Any:
        y = conv(x, inside, 1) if inside != x.shape[-1] else x
        y = finished(layers.DepthwiseConv2D(3, stride, padding="same", use_bias=False)(y))
        y = conv(y, channels, 1, activate=False)
        return layers.Add()([x, y]) if y.shape == x.shape else y

    image = keras.Input((224, 224, 3), batch_size=1)
    x = conv(image, 32, 3, 2)
    for channels, blocks, stride, multiple in STAGES:
        for i in range(blocks):
            x = block(x, channels, stride if i == 0 else 1, multiple * x.shape[-1])
    x = layers.GlobalAveragePooling2D()(conv(x, 1280, 1))
    return keras.Model(image, layers.Dense(1000, activation="softmax", bias_initializer="random_normal")(x))
