"""NASNet: cells found by search, each of which reads the outputs of the last two.

Lives here: NASNetMobile, NASNetLarge.  Not here: other networks for small devices (mobile.py).

Source: Zoph et al., 2018. Names of layers are Keras's.
"""

from __future__ import annotations

from typing import Any

from ..layers import (
    Activation,
    Add,
    AveragePooling2D,
    BatchNormalization,
    Concatenate,
    Conv2D,
    Cropping2D,
    Dense,
    GlobalAveragePooling2D,
    MaxPooling2D,
    SeparableConv2D,
    ZeroPadding2D,
)
from .common import WITHOUT_SHAPE, network
from .mobile import padded


def normalized(x: Any, name: str) -> Any:
    """Return normalized features."""
    return BatchNormalization(axis=-1, momentum=0.9997, epsilon=1e-3, name=name)(x)


def pointwise(x: Any, filters: int, name: str) -> Any:
    """Return features convolved by one element each."""
    return Conv2D(filters, 1, padding="same", use_bias=False, kernel_initializer="he_normal", name=name)(x)


def separable(x: Any, filters: int, kernel: int, name: str, reduces: bool = False) -> Any:
    """Return the features of two separable convolutions, each of the ReLU of what it reads."""
    x = Activation("relu")(x)
    if reduces:
        x = padded(x, kernel, f"separable_conv_1_pad_{name}")
    for i in (1, 2):
        first = reduces and i == 1
        x = x if i == 1 else Activation("relu")(x)
        layer = SeparableConv2D(
            filters,
            kernel,
            strides=2 if first else 1,
            padding="valid" if first else "same",
            use_bias=False,
            name=f"separable_conv_{i}_{name}",
        )
        x = normalized(layer(x), f"separable_conv_{i}_bn_{name}")
    return x


def adjusted(p: Any, x: Any, filters: int, name: str) -> Any:
    """Return the features of the last but one cell with the size and filters of the last one's."""
    if p is None:
        return x
    if p.shape[-2] != x.shape[-2]:
        p = Activation("relu", name=f"adjust_relu_1_{name}")(p)
        first = AveragePooling2D(1, strides=2, name=f"adjust_avg_pool_1_{name}")(p)
        first = pointwise(first, filters // 2, f"adjust_conv_1_{name}")
        second = Cropping2D(((1, 0), (1, 0)))(ZeroPadding2D(((0, 1), (0, 1)))(p))
        second = AveragePooling2D(1, strides=2, name=f"adjust_avg_pool_2_{name}")(second)
        second = pointwise(second, filters // 2, f"adjust_conv_2_{name}")
        return normalized(Concatenate(axis=-1)([first, second]), f"adjust_bn_{name}")
    if p.shape[-1] != filters:
        p = pointwise(Activation("relu")(p), filters, f"adjust_conv_projection_{name}")
        return normalized(p, f"adjust_bn_{name}")
    return p


def _entry(x: Any, filters: int, kind: str, name: str) -> Any:
    h = pointwise(Activation("relu")(x), filters, f"{kind}_conv_1_{name}")
    return normalized(h, f"{kind}_bn_1_{name}")


def normal_cell(x: Any, p: Any, filters: int, name: str) -> tuple[Any, Any]:
    """Return the features of a cell that keeps the size, and those of the cell before it."""
    p = adjusted(p, x, filters, name)
    h = _entry(x, filters, "normal", name)

    def sum_of(i: int, left: Any, right: Any) -> Any:
        return Add(name=f"normal_add_{i}_{name}")([left, right])

    def averaged(features: Any, side: str) -> Any:
        return AveragePooling2D(3, strides=1, padding="same", name=f"normal_{side}_{name}")(features)

    left, right = separable(h, filters, 5, f"normal_left1_{name}"), separable(p, filters, 3, f"normal_right1_{name}")
    x1 = sum_of(1, left, right)
    left, right = separable(p, filters, 5, f"normal_left2_{name}"), separable(p, filters, 3, f"normal_right2_{name}")
    x2 = sum_of(2, left, right)
    x3 = sum_of(3, averaged(h, "left3"), p)
    x4 = sum_of(4, averaged(p, "left4"), averaged(p, "right4"))
    x5 = sum_of(5, separable(h, filters, 3, f"normal_left5_{name}"), h)
    return Concatenate(axis=-1, name=f"normal_concat_{name}")([p, x1, x2, x3, x4, x5]), x


def reduction_cell(x: Any, p: Any, filters: int, name: str) -> tuple[Any, Any]:
    """Return the features of a cell that halves the size, and those of the cell before it."""
    p = adjusted(p, x, filters, name)
    h = _entry(x, filters, "reduction", name)
    wide = padded(h, 3, f"reduction_pad_1_{name}")

    def halved(features: Any, kernel: int, side: str) -> Any:
        return separable(features, filters, kernel, f"reduction_{side}_{name}", reduces=True)

    left, right = halved(h, 5, "left1"), halved(p, 7, "right1")
    x1 = Add(name=f"reduction_add_1_{name}")([left, right])
    left = MaxPooling2D(3, strides=2, name=f"reduction_left2_{name}")(wide)
    x2 = Add(name=f"reduction_add_2_{name}")([left, halved(p, 7, "right2")])
    left = AveragePooling2D(3, strides=2, name=f"reduction_left3_{name}")(wide)
    x3 = Add(name=f"reduction_add3_{name}")([left, halved(p, 5, "right3")])
    x4 = AveragePooling2D(3, strides=1, padding="same", name=f"reduction_left4_{name}")(x1)
    x4 = Add()([x2, x4])
    left = separable(x1, filters, 3, f"reduction_left4_{name}")
    right = MaxPooling2D(3, strides=2, name=f"reduction_right5_{name}")(wide)
    x5 = Add(name=f"reduction_add4_{name}")([left, right])
    return Concatenate(axis=-1, name=f"reduction_concat_{name}")([x2, x3, x4, x5]), x


@network
def nasnet(x: Any, penultimate_filters: int, num_blocks: int, stem_block_filters: int, skip_reduction: bool) -> Any:
    filters = penultimate_filters // 24
    x = Conv2D(stem_block_filters, 3, strides=2, use_bias=False, kernel_initializer="he_normal", name="stem_conv1")(x)
    x = normalized(x, "stem_bn1")
    x, p = reduction_cell(x, None, filters // 4, "stem_1")
    x, p = reduction_cell(x, p, filters // 2, "stem_2")
    for stage in range(3):
        if stage:
            x, before = reduction_cell(x, p, filters * 2**stage, f"reduce_{stage * num_blocks}")
            p = p if skip_reduction else before
        first = stage * num_blocks + bool(stage)
        for i in range(first, first + num_blocks):
            x, p = normal_cell(x, p, filters * 2**stage, str(i))
    x = Activation("relu")(x)

    def top(x: Any, classes: int, activation: Any) -> Any:
        return Dense(classes, activation=activation, name="predictions")(GlobalAveragePooling2D()(x))

    return x, top


NASNetMobile = nasnet(
    "NASNetMobile",
    order=("input_shape", *WITHOUT_SHAPE),
    model_name="nasnet_mobile",
    penultimate_filters=1056,
    num_blocks=4,
    stem_block_filters=32,
    skip_reduction=False,
)
NASNetLarge = nasnet(
    "NASNetLarge",
    order=("input_shape", *WITHOUT_SHAPE),
    model_name="nasnet_large",
    size=331,
    penultimate_filters=4032,
    num_blocks=6,
    stem_block_filters=96,
    skip_reduction=True,
)
