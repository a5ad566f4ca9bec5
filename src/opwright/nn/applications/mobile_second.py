"""The later networks for small devices.

Lives here: MobileNetV3Small, MobileNetV3Large, EfficientNetV2B0 to B3, S, M and L.
Not here: the first ones (mobile.py).

Sources: Howard et al., 2019; Tan and Le, 2021. Names of layers are Keras's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..layers import (
    Activation,
    Add,
    BatchNormalization,
    Conv2D,
    Dense,
    DepthwiseConv2D,
    Dropout,
    Flatten,
    GlobalAveragePooling2D,
    Multiply,
    Normalization,
    ReLU,
    Rescaling,
    Reshape,
)
from .common import DEVIATIONS, MEANS, network
from .mobile import DENSE_INITIALIZER, KERNEL_INITIALIZER, padded, rounded

# ---- MobileNetV3 ---------------------------------------------------------------------------------------------------

# Expansion, filters, kernel (None: the network's), stride, whether channels are weighted, whether the activation is
# the network's and no ReLU.
SMALL = (
    (1, 16, 3, 2, True, False),
    (72 / 16, 24, 3, 2, False, False),
    (88 / 24, 24, 3, 1, False, False),
    (4, 40, None, 2, True, True),
    *((6, 40, None, 1, True, True),) * 2,
    *((3, 48, None, 1, True, True),) * 2,
    (6, 96, None, 2, True, True),
    *((6, 96, None, 1, True, True),) * 2,
)
LARGE = (
    (1, 16, 3, 1, False, False),
    (4, 24, 3, 2, False, False),
    (3, 24, 3, 1, False, False),
    (3, 40, None, 2, True, False),
    *((3, 40, None, 1, True, False),) * 2,
    (6, 80, 3, 2, False, True),
    (2.5, 80, 3, 1, False, True),
    *((2.3, 80, 3, 1, False, True),) * 2,
    *((6, 112, 3, 1, True, True),) * 2,
    (6, 160, None, 2, True, True),
    *((6, 160, None, 1, True, True),) * 2,
)


@network
def mobilenet_v3(
    x: Any,
    blocks: Sequence[tuple[Any, ...]],
    last: int,
    alpha: float = 1.0,
    minimalistic: bool = False,
    dropout_rate: float = 0.2,
    include_preprocessing: bool = True,
) -> Any:
    def activated(x: Any, swish: bool = True) -> Any:
        return Activation("hard_swish")(x) if swish and not minimalistic else ReLU()(x)

    def normalized(x: Any, name: str) -> Any:
        return BatchNormalization(axis=-1, epsilon=1e-3, momentum=0.999, name=name)(x)

    def pointwise(x: Any, filters: int, name: str, use_bias: bool = False) -> Any:
        return Conv2D(filters, 1, padding="same", use_bias=use_bias, name=name)(x)

    def weighted(x: Any, filters: int, name: str) -> Any:
        gate = GlobalAveragePooling2D(keepdims=True, name=f"{name}avg_pool")(x)
        gate = ReLU(name=f"{name}relu")(pointwise(gate, rounded(filters * 0.25), f"{name}conv", True))
        gate = pointwise(gate, filters, f"{name}conv_1", True)
        return Multiply(name=f"{name}mul")([x, ReLU(6.0)(gate + 3.0) * (1.0 / 6.0)])

    if include_preprocessing:
        x = Rescaling(1.0 / 127.5, -1.0)(x)
    x = Conv2D(16, 3, strides=2, padding="same", use_bias=False, name="conv")(x)
    x = activated(normalized(x, "conv_bn"))
    for i, (expansion, filters, kernel, stride, gates, swish) in enumerate(blocks):
        name, before = f"expanded_conv_{i}_" if i else "expanded_conv_", x
        filters, inner = rounded(filters * alpha), rounded(x.shape[-1] * expansion)
        kernel = kernel or (3 if minimalistic else 5)
        if i:
            x = activated(normalized(pointwise(x, inner, f"{name}expand"), f"{name}expand_bn"), swish)
        if stride == 2:
            x = padded(x, kernel, f"{name}depthwise_pad")
        padding = "same" if stride == 1 else "valid"
        x = DepthwiseConv2D(kernel, strides=stride, padding=padding, use_bias=False, name=f"{name}depthwise")(x)
        x = activated(normalized(x, f"{name}depthwise_bn"), swish)
        if gates and not minimalistic:
            x = weighted(x, inner, f"{name}squeeze_excite_")
        x = normalized(pointwise(x, filters, f"{name}project"), f"{name}project_bn")
        if stride == 1 and before.shape[-1] == filters:
            x = Add(name=f"{name}add")([before, x])
    x = activated(normalized(pointwise(x, rounded(x.shape[-1] * 6), "conv_1"), "conv_1_bn"))

    def top(x: Any, classes: int, activation: Any) -> Any:
        x = GlobalAveragePooling2D(keepdims=True)(x)
        x = activated(pointwise(x, rounded(last * alpha) if alpha > 1 else last, "conv_2", True))
        x = Dropout(dropout_rate)(x) if dropout_rate > 0 else x
        x = Flatten()(pointwise(x, classes, "logits", True))
        return Activation(activation, name="predictions")(x)

    return x, top


_V3: dict[str, Any] = {
    "size": None,
    "order": (
        *("input_shape", "alpha", "minimalistic", "include_top", "weights", "input_tensor", "classes", "pooling"),
        *("dropout_rate", "classifier_activation", "include_preprocessing"),
    ),
}
MobileNetV3Small = mobilenet_v3("MobileNetV3Small", model_name="MobileNetV3Small", blocks=SMALL, last=1024, **_V3)
MobileNetV3Large = mobilenet_v3("MobileNetV3Large", model_name="MobileNetV3Large", blocks=LARGE, last=1280, **_V3)

# ---- EfficientNetV2 ------------------------------------------------------------------------------------------------

# Repeats, filters, expansion, stride, and whether a block is one convolution and not a depth-wise one with a gate.
BASIC = (
    (1, 16, 1, 1, True),
    (2, 32, 4, 2, True),
    (2, 48, 4, 2, True),
    (3, 96, 4, 2, False),
    (5, 112, 6, 1, False),
    (8, 192, 6, 2, False),
)


def _blocks(repeats: Sequence[int], filters: Sequence[int]) -> tuple[tuple[Any, ...], ...]:
    """Return blocks of the larger networks, which differ in depth and width."""
    kinds = ((1, 1, True), (4, 2, True), (4, 2, True), (4, 2, False), (6, 1, False), (6, 2, False), (6, 1, False))
    return tuple((n, f, *kind) for n, f, kind in zip(repeats, filters, kinds))


@network
def efficientnet_v2(
    x: Any,
    blocks: Sequence[tuple[Any, ...]],
    stem: int,
    width: float = 1.0,
    depth: float = 1.0,
    basic: bool = True,
    include_preprocessing: bool = True,
) -> Any:
    def conv(filters: int, kernel: int, name: str, **options: Any) -> Any:
        options = {"padding": "same", "use_bias": False, **options}
        return Conv2D(filters, kernel, kernel_initializer=KERNEL_INITIALIZER, name=name, **options)

    def normalized(x: Any, name: str, activation: str | None = None) -> Any:
        x = BatchNormalization(axis=3, momentum=0.9, name=name)(x)
        return x if activation is None else Activation("swish", name=activation)(x)

    def filters_of(n: int) -> int:
        return max(8, int(n * width + 4) // 8 * 8)

    if include_preprocessing and basic and x.shape[-1] == 3:
        x = Rescaling(1.0 / 255)(x)
        x = Normalization(mean=MEANS.tolist(), variance=(DEVIATIONS**2).tolist(), axis=3)(x)
    elif include_preprocessing:
        x = Rescaling(1.0 / 128, -1.0)(x)
    x = conv(filters_of(stem), 3, "stem_conv", strides=2)(x)
    x = normalized(x, "stem_bn", "stem_activation")
    total, index = sum(block[0] for block in blocks), 0
    for i, (repeats, outputs, expansion, stride, fused) in enumerate(blocks, 1):
        for j in range(math.ceil(repeats * depth)):
            name, before, filters = f"block{i}{chr(j + 97)}_", x, filters_of(outputs)
            inputs, stride = x.shape[-1], 1 if j else stride
            inner = inputs * expansion
            if fused and expansion == 1:
                x = conv(filters, 3, f"{name}project_conv", strides=stride)(x)
                x = normalized(x, f"{name}project_bn", f"{name}project_activation")
            elif fused:
                x = conv(inner, 3, f"{name}expand_conv", strides=stride)(x)
                x = normalized(x, f"{name}expand_bn", f"{name}expand_activation")
            else:
                x = normalized(conv(inner, 1, f"{name}expand_conv")(x), f"{name}expand_bn", f"{name}expand_activation")
                x = DepthwiseConv2D(
                    3,
                    strides=stride,
                    padding="same",
                    use_bias=False,
                    depthwise_initializer=KERNEL_INITIALIZER,
                    name=f"{name}dwconv2",
                )(x)
                x = normalized(x, f"{name}bn", f"{name}activation")
                gate = Reshape((1, 1, inner), name=f"{name}se_reshape")(
                    GlobalAveragePooling2D(name=f"{name}se_squeeze")(x)
                )
                squeezed = max(1, int(inputs * 0.25))
                gate = conv(squeezed, 1, f"{name}se_reduce", activation="swish", use_bias=True)(gate)
                gate = conv(inner, 1, f"{name}se_expand", activation="sigmoid", use_bias=True)(gate)
                x = Multiply(name=f"{name}se_excite")([x, gate])
            if not (fused and expansion == 1):
                x = normalized(conv(filters, 1, f"{name}project_conv")(x), f"{name}project_bn")
            if stride == 1 and inputs == filters:
                rate = 0.2 * index / total
                x = Dropout(rate, noise_shape=(None, 1, 1, 1), name=f"{name}drop")(x) if rate else x
                x = Add(name=f"{name}add")([x, before])
            index += 1
    x = normalized(conv(filters_of(1280), 1, "top_conv")(x), "top_bn", "top_activation")

    def top(x: Any, classes: int, activation: Any) -> Any:
        x = Dropout(0.2, name="top_dropout")(GlobalAveragePooling2D(name="avg_pool")(x))
        return Dense(classes, activation=activation, kernel_initializer=DENSE_INITIALIZER, name="predictions")(x)

    return x, top


ORDER_V2 = (
    *("include_top", "weights", "input_tensor", "input_shape", "pooling", "classes", "classifier_activation"),
    "include_preprocessing",
)
"""Arguments in Keras's order."""


def _define(size: str, pixels: int, **own: Any) -> Any:
    return efficientnet_v2(
        f"EfficientNetV2{size}", pixels, model_name=f"efficientnetv2-{size.lower()}", order=ORDER_V2, **own
    )


EfficientNetV2B0 = _define("B0", 224, blocks=BASIC, stem=32)
EfficientNetV2B1 = _define("B1", 240, blocks=BASIC, stem=32, depth=1.1)
EfficientNetV2B2 = _define("B2", 260, blocks=BASIC, stem=32, width=1.1, depth=1.2)
EfficientNetV2B3 = _define("B3", 300, blocks=BASIC, stem=32, width=1.2, depth=1.4)
_S = _blocks((2, 4, 4, 6, 9, 15), (24, 48, 64, 128, 160, 256))
_M = _blocks((3, 5, 5, 7, 14, 18, 5), (24, 48, 80, 160, 176, 304, 512))
_L = _blocks((4, 7, 7, 10, 19, 25, 7), (32, 64, 96, 192, 224, 384, 640))
EfficientNetV2S = _define("S", 384, blocks=_S, stem=24, basic=False)
EfficientNetV2M = _define("M", 480, blocks=_M, stem=24, basic=False)
EfficientNetV2L = _define("L", 480, blocks=_L, stem=32, basic=False)
