"""Networks for small devices, and those found by search from them.

Lives here: MobileNet, MobileNetV2, EfficientNetB0 to EfficientNetB7.  Not here: larger networks (residual.py).

Sources: Howard et al., 2017; Sandler et al., 2018; Tan and Le, 2019. Names of layers are Keras's.
"""

from __future__ import annotations

import math
from typing import Any

from ..layers import (
    Activation,
    Add,
    BatchNormalization,
    Conv2D,
    Dense,
    DepthwiseConv2D,
    Dropout,
    GlobalAveragePooling2D,
    Multiply,
    Normalization,
    ReLU,
    Rescaling,
    Reshape,
    ZeroPadding2D,
)
from .common import WITHOUT_SHAPE, network, pooled_classes


def rounded(filters: float, divisor: int = 8) -> int:
    """Return a number of filters as a multiple of the divisor, at least nine tenths of it."""
    multiple = max(divisor, int(filters + divisor / 2) // divisor * divisor)
    return int(multiple + divisor if multiple < 0.9 * filters else multiple)


def padded(x: Any, kernel_size: int, name: str) -> Any:
    """Return features with zeros around, so that a convolution with strides of 2 sees what SAME would show it."""
    half = kernel_size // 2
    sizes = [(half - (1 if n is None else 1 - n % 2), half) for n in x.shape[1:3]]
    return ZeroPadding2D(tuple(sizes), name=name)(x)


@network
def mobilenet(x: Any, alpha: float = 1.0, depth_multiplier: int = 1, dropout: float = 1e-3) -> Any:
    def normalized(x: Any, name: str) -> Any:
        return ReLU(6.0, name=f"{name}_relu")(BatchNormalization(axis=-1, name=f"{name}_bn")(x))

    x = Conv2D(int(32 * alpha), 3, strides=2, padding="same", use_bias=False, name="conv1")(x)
    x = normalized(x, "conv1")
    for i, filters in enumerate((64, 128, 128, 256, 256, *[512] * 6, 1024, 1024), 1):
        reduces = i in (2, 4, 6, 12)
        if reduces:
            x = ZeroPadding2D(((0, 1), (0, 1)), name=f"conv_pad_{i}")(x)
        x = DepthwiseConv2D(
            3,
            strides=2 if reduces else 1,
            padding="valid" if reduces else "same",
            depth_multiplier=depth_multiplier,
            use_bias=False,
            name=f"conv_dw_{i}",
        )(x)
        x = normalized(x, f"conv_dw_{i}")
        x = Conv2D(int(filters * alpha), 1, padding="same", use_bias=False, name=f"conv_pw_{i}")(x)
        x = normalized(x, f"conv_pw_{i}")

    def top(x: Any, classes: int, activation: Any) -> Any:
        x = Dropout(dropout, name="dropout")(GlobalAveragePooling2D(keepdims=True)(x))
        x = Conv2D(classes, 1, padding="same", name="conv_preds")(x)
        return Activation(activation, name="predictions")(Reshape((classes,), name="reshape_2")(x))

    return x, top


MobileNet = mobilenet("MobileNet", order=("input_shape", "alpha", "depth_multiplier", "dropout", *WITHOUT_SHAPE))

# Filters and strides of MobileNetV2's blocks.
BLOCKS_V2 = (
    *((16, 1), (24, 2), (24, 1), (32, 2), (32, 1), (32, 1), (64, 2), (64, 1), (64, 1), (64, 1), (96, 1), (96, 1)),
    *((96, 1), (160, 2), (160, 1), (160, 1), (320, 1)),
)


@network
def mobilenet_v2(x: Any, alpha: float = 1.0) -> Any:
    def normalized(x: Any, name: str) -> Any:
        return BatchNormalization(axis=-1, epsilon=1e-3, momentum=0.999, name=name)(x)

    x = Conv2D(rounded(32 * alpha), 3, strides=2, padding="same", use_bias=False, name="Conv1")(x)
    x = ReLU(6.0, name="Conv1_relu")(normalized(x, "bn_Conv1"))
    for i, (filters, stride) in enumerate(BLOCKS_V2):
        name, before = f"block_{i}_" if i else "expanded_conv_", x
        if i:
            x = Conv2D(6 * x.shape[-1], 1, padding="same", use_bias=False, name=f"{name}expand")(x)
            x = ReLU(6.0, name=f"{name}expand_relu")(normalized(x, f"{name}expand_BN"))
        if stride == 2:
            x = padded(x, 3, f"{name}pad")
        padding = "same" if stride == 1 else "valid"
        x = DepthwiseConv2D(3, strides=stride, use_bias=False, padding=padding, name=f"{name}depthwise")(x)
        x = ReLU(6.0, name=f"{name}depthwise_relu")(normalized(x, f"{name}depthwise_BN"))
        count = rounded(int(filters * alpha))
        x = Conv2D(count, 1, padding="same", use_bias=False, name=f"{name}project")(x)
        x = normalized(x, f"{name}project_BN")
        if stride == 1 and before.shape[-1] == count:
            x = Add(name=f"{name}add")([before, x])
    x = Conv2D(rounded(1280 * alpha) if alpha > 1 else 1280, 1, use_bias=False, name="Conv_1")(x)
    x = ReLU(6.0, name="out_relu")(normalized(x, "Conv_1_bn"))
    return x, lambda x, classes, activation: pooled_classes(x, classes, activation, None)


MobileNetV2 = mobilenet_v2("MobileNetV2", order=("input_shape", "alpha", *WITHOUT_SHAPE))

# Kernel size, repeats, filters in and out, expansion and stride of EfficientNet's blocks.
BLOCKS = (
    (3, 1, 32, 16, 1, 1),
    (3, 2, 16, 24, 6, 2),
    (5, 2, 24, 40, 6, 2),
    (3, 3, 40, 80, 6, 2),
    (5, 3, 80, 112, 6, 1),
    (5, 4, 112, 192, 6, 2),
    (3, 1, 192, 320, 6, 1),
)
KERNEL_INITIALIZER = {"class_name": "VarianceScaling", "config": {"scale": 2.0, "mode": "fan_out"}}
DENSE_INITIALIZER = {
    "class_name": "VarianceScaling",
    "config": {"scale": 1 / 3, "mode": "fan_out", "distribution": "uniform"},
}


@network
def efficientnet(x: Any, width: float, depth: float, dropout: float, drop_connect: float = 0.2) -> Any:
    def conv(filters: int, kernel: int, name: str, **options: Any) -> Conv2D:
        options = {"padding": "same", "use_bias": False, **options}
        return Conv2D(filters, kernel, kernel_initializer=KERNEL_INITIALIZER, name=name, **options)

    def normalized(x: Any, name: str, activation: str) -> Any:
        return Activation("swish", name=activation)(BatchNormalization(axis=3, name=name)(x))

    x = Normalization(axis=3)(Rescaling(1.0 / 255.0)(x))
    x = conv(rounded(32 * width), 3, "stem_conv", strides=2, padding="valid")(padded(x, 3, "stem_conv_pad"))
    x = normalized(x, "stem_bn", "stem_activation")
    counts = [math.ceil(depth * block[1]) for block in BLOCKS]
    index = 0
    for i, ((kernel, _, first, filters_out, expansion, stride), count) in enumerate(zip(BLOCKS, counts), 1):
        filters = rounded(filters_out * width)
        for j in range(count):
            name, before = f"block{i}{chr(j + 97)}_", x
            filters_in, stride = (rounded(first * width), stride) if j == 0 else (filters, 1)
            if expansion != 1:
                x = conv(filters_in * expansion, 1, f"{name}expand_conv")(x)
                x = normalized(x, f"{name}expand_bn", f"{name}expand_activation")
            if stride == 2:
                x = padded(x, kernel, f"{name}dwconv_pad")
            x = DepthwiseConv2D(
                kernel,
                strides=stride,
                padding="valid" if stride == 2 else "same",
                use_bias=False,
                depthwise_initializer=KERNEL_INITIALIZER,
                name=f"{name}dwconv",
            )(x)
            x = normalized(x, f"{name}bn", f"{name}activation")
            gate = GlobalAveragePooling2D(name=f"{name}se_squeeze")(x)
            gate = Reshape((1, 1, filters_in * expansion), name=f"{name}se_reshape")(gate)
            squeezed = max(1, int(filters_in * 0.25))
            gate = conv(squeezed, 1, f"{name}se_reduce", activation="swish", use_bias=True)(gate)
            gate = conv(filters_in * expansion, 1, f"{name}se_expand", activation="sigmoid", use_bias=True)(gate)
            x = Multiply(name=f"{name}se_excite")([x, gate])
            x = BatchNormalization(axis=3, name=f"{name}project_bn")(conv(filters, 1, f"{name}project_conv")(x))
            if stride == 1 and filters_in == filters:
                rate = drop_connect * index / sum(counts)
                if rate > 0:
                    x = Dropout(rate, noise_shape=(None, 1, 1, 1), name=f"{name}drop")(x)
                x = Add(name=f"{name}add")([x, before])
            index += 1
    x = normalized(conv(rounded(1280 * width), 1, "top_conv")(x), "top_bn", "top_activation")

    def top(x: Any, classes: int, activation: Any) -> Any:
        x = GlobalAveragePooling2D(name="avg_pool")(x)
        x = Dropout(dropout, name="top_dropout")(x) if dropout > 0 else x
        return Dense(classes, activation=activation, kernel_initializer=DENSE_INITIALIZER, name="predictions")(x)

    return x, top


EfficientNetB0 = efficientnet("EfficientNetB0", width=1.0, depth=1.0, size=224, dropout=0.2)
EfficientNetB1 = efficientnet("EfficientNetB1", width=1.0, depth=1.1, size=240, dropout=0.2)
EfficientNetB2 = efficientnet("EfficientNetB2", width=1.1, depth=1.2, size=260, dropout=0.3)
EfficientNetB3 = efficientnet("EfficientNetB3", width=1.2, depth=1.4, size=300, dropout=0.3)
EfficientNetB4 = efficientnet("EfficientNetB4", width=1.4, depth=1.8, size=380, dropout=0.4)
EfficientNetB5 = efficientnet("EfficientNetB5", width=1.6, depth=2.2, size=456, dropout=0.4)
EfficientNetB6 = efficientnet("EfficientNetB6", width=1.8, depth=2.6, size=528, dropout=0.5)
EfficientNetB7 = efficientnet("EfficientNetB7", width=2.0, depth=3.1, size=600, dropout=0.5)
