"""Networks of the sizes that phones and servers run, written once for every framework with Keras's names.

Lives here: `mobilenet_v2`, `mobilenet_v3_small`, `efficientnet_b0`, `resnet50`: on one image of 224 x 224, with random
weights; `mobilenet_v2_075_192`.
Not here: their files (models.py), what is measured with them (ours.py, duels.py, peers/).
"""

from __future__ import annotations

from typing import Any

#          channels out, blocks, stride of the first, channels inside as a multiple
STAGES = ((16, 1, 1, 1), (24, 2, 2, 6), (32, 3, 2, 6), (64, 4, 2, 6), (96, 3, 1, 6), (160, 3, 2, 6), (320, 1, 1, 6))

#             window, channels inside, channels out, squeezed, activation, stride
V3_BLOCKS = (
    (3, 16, 16, True, "relu", 2),
    (3, 72, 24, False, "relu", 2),
    (3, 88, 24, False, "relu", 1),
    (5, 96, 40, True, "hard_silu", 2),
    (5, 240, 40, True, "hard_silu", 1),
    (5, 240, 40, True, "hard_silu", 1),
    (5, 120, 48, True, "hard_silu", 1),
    (5, 144, 48, True, "hard_silu", 1),
    (5, 288, 96, True, "hard_silu", 2),
    (5, 576, 96, True, "hard_silu", 1),
    (5, 576, 96, True, "hard_silu", 1),
)

#             channels inside as a multiple, channels out, blocks, stride of the first, window
B0_STAGES = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)


class _Parts:
    """The building blocks of the networks."""

    def __init__(self, keras: Any, size: int = 224) -> None:
        self.keras, self.layers = keras, keras.layers
        self.image = keras.Input((size, size, 3), batch_size=1)

    def finished(self, x: Any, activation: str | None) -> Any:
        """Normalised, then activated."""
        x = self.layers.BatchNormalization(beta_initializer="random_normal")(x)
        if activation == "relu6":
            return self.layers.ReLU(6.0)(x)
        return x if activation is None else self.layers.Activation(activation)(x)

    def conv(self, x: Any, channels: int, size: int, stride: int = 1, activation: str | None = None) -> Any:
        x = self.layers.Conv2D(channels, size, stride, padding="same", use_bias=False)(x)
        return self.finished(x, activation)

    def depthwise(self, x: Any, size: int, stride: int, activation: str) -> Any:
        x = self.layers.DepthwiseConv2D(size, stride, padding="same", use_bias=False)(x)
        return self.finished(x, activation)

    def squeezed(self, x: Any, channels: int, activation: str, gate: str) -> Any:
        """Each channel times a number that comes from the means of all."""
        y = self.layers.GlobalAveragePooling2D(keepdims=True)(x)
        y = self.layers.Conv2D(channels, 1, activation=activation)(y)
        return self.layers.Multiply()([x, self.layers.Conv2D(x.shape[-1], 1, activation=gate)(y)])

    def model(self, x: Any) -> Any:
        x = self.layers.GlobalAveragePooling2D()(x)
        return self.keras.Model(
            self.image, self.layers.Dense(1000, activation="softmax", bias_initializer="random_normal")(x)
        )


def mobilenet_v2(keras: Any, width: float = 1.0, size: int = 224) -> Any:
    """MobileNetV2 (Sandler et al. 2018, table 2), of width 1 3.5 M weights. width: scales the channels."""
    p = _Parts(keras, size)
    x = p.conv(p.image, _scaled(32, width), 3, 2, "relu6")
    for channels, blocks, stride, multiple in STAGES:
        for i in range(blocks):
            y = p.conv(x, multiple * x.shape[-1], 1, 1, "relu6") if multiple > 1 else x
            y = p.conv(p.depthwise(y, 3, stride if i == 0 else 1, "relu6"), _scaled(channels, width), 1)
            x = p.layers.Add()([x, y]) if y.shape == x.shape else y
    return p.model(p.conv(x, 1280, 1, 1, "relu6"))


def mobilenet_v2_075_192(keras: Any) -> Any:
    """MobileNetV2 of width 0.75 for images of 192 x 192: none of those whose kernels a wheel is made from."""
    return mobilenet_v2(keras, 0.75, 192)


def _scaled(channels: int, width: float) -> int:
    """The multiple of 8 next to a share of the channels, at least nine tenths of it."""
    rounded = max(8, int(channels * width + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * channels * width else rounded


def mobilenet_v3_small(keras: Any) -> Any:
    """MobileNetV3-Small (Howard et al. 2019, table 2), 2.5 M weights."""
    p = _Parts(keras)
    x = p.conv(p.image, 16, 3, 2, "hard_silu")
    for size, inside, channels, squeezed, activation, stride in V3_BLOCKS:
        y = p.conv(x, inside, 1, 1, activation) if inside != x.shape[-1] else x
        y = p.depthwise(y, size, stride, activation)
        if squeezed:
            y = p.squeezed(y, -(-inside // 32) * 8, "relu", "hard_sigmoid")
        y = p.conv(y, channels, 1)
        x = p.layers.Add()([x, y]) if y.shape == x.shape else y
    x = p.conv(x, 576, 1, 1, "hard_silu")
    x = p.layers.Conv2D(1024, 1, activation="hard_silu")(p.layers.GlobalAveragePooling2D(keepdims=True)(x))
    return p.model(x)


def efficientnet_b0(keras: Any) -> Any:
    """EfficientNet-B0 (Tan and Le 2019, table 1), 5.3 M weights."""
    p = _Parts(keras)
    x = p.conv(p.image, 32, 3, 2, "silu")
    for multiple, channels, blocks, stride, size in B0_STAGES:
        for i in range(blocks):
            y = p.conv(x, multiple * x.shape[-1], 1, 1, "silu") if multiple > 1 else x
            y = p.depthwise(y, size, stride if i == 0 else 1, "silu")
            y = p.conv(p.squeezed(y, x.shape[-1] // 4, "silu", "sigmoid"), channels, 1)
            x = p.layers.Add()([x, y]) if y.shape == x.shape else y
    return p.model(p.conv(x, 1280, 1, 1, "silu"))


def resnet50(keras: Any) -> Any:
    """ResNet-50 (He et al. 2015, table 1), 25.6 M weights."""
    p = _Parts(keras)
    x = p.layers.MaxPooling2D(3, 2, padding="same")(p.conv(p.image, 64, 7, 2, "relu"))
    for channels, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(blocks):
            y = p.conv(x, channels, 1, stride if i == 0 else 1, "relu")
            y = p.conv(p.conv(y, channels, 3, 1, "relu"), 4 * channels, 1)
            x = p.conv(x, 4 * channels, 1, stride if i == 0 else 1) if i == 0 else x
            x = p.layers.Activation("relu")(p.layers.Add()([x, y]))
    return p.model(x)
