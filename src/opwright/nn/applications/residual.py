"""Networks of residual blocks, dense blocks and plain convolutions.

Lives here: VGG16, VGG19, ResNet50 to ResNet152, their second versions, DenseNet121 to DenseNet201, Xception.
Not here: networks for small devices (mobile.py).

Sources: Simonyan and Zisserman, 2014; He et al., 2015 and 2016; Huang et al., 2017; Chollet, 2017. Names of layers are
Keras's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..layers import (
    Activation,
    Add,
    AveragePooling2D,
    BatchNormalization,
    Concatenate,
    Conv2D,
    Dense,
    Flatten,
    MaxPooling2D,
    SeparableConv2D,
    ZeroPadding2D,
)
from .common import network, pooled_classes

EPSILON = 1.001e-5


def normalized(x: Any, name: str | None = None, activate: str | None = None, epsilon: float = EPSILON) -> Any:
    """Return normalized features, activated by ReLU if the activation has a name."""
    x = BatchNormalization(axis=3, epsilon=epsilon, name=name)(x)
    return x if activate is None else Activation("relu", name=activate)(x)


# ---- plain ---------------------------------------------------------------------------------------------------------


@network
def vgg(x: Any, repeats: Sequence[int]) -> Any:
    for i, (count, filters) in enumerate(zip(repeats, (64, 128, 256, 512, 512)), 1):
        for j in range(1, count + 1):
            x = Conv2D(filters, 3, activation="relu", padding="same", name=f"block{i}_conv{j}")(x)
        x = MaxPooling2D(2, strides=2, name=f"block{i}_pool")(x)

    def top(x: Any, classes: int, activation: Any) -> Any:
        x = Flatten(name="flatten")(x)
        for name in ("fc1", "fc2"):
            x = Dense(4096, activation="relu", name=name)(x)
        return Dense(classes, activation=activation, name="predictions")(x)

    return x, top


VGG16 = vgg("VGG16", repeats=(2, 2, 3, 3, 3))
VGG19 = vgg("VGG19", repeats=(2, 2, 4, 4, 4))


# ---- residual ------------------------------------------------------------------------------------------------------


def _stem(x: Any) -> Any:
    return Conv2D(64, 7, strides=2, name="conv1_conv")(ZeroPadding2D(3, name="conv1_pad")(x))


def _pooled(x: Any) -> Any:
    return MaxPooling2D(3, strides=2, name="pool1_pool")(ZeroPadding2D(1, name="pool1_pad")(x))


@network
def resnet(x: Any, repeats: Sequence[int]) -> Any:
    x = _pooled(normalized(_stem(x), "conv1_bn", "conv1_relu"))
    for i, (count, filters) in enumerate(zip(repeats, (64, 128, 256, 512)), 2):
        for j in range(1, count + 1):
            name, stride = f"conv{i}_block{j}", 2 if j == 1 and i > 2 else 1
            shortcut = x
            if j == 1:
                shortcut = normalized(Conv2D(4 * filters, 1, strides=stride, name=f"{name}_0_conv")(x), f"{name}_0_bn")
            y = normalized(
                Conv2D(filters, 1, strides=stride, name=f"{name}_1_conv")(x), f"{name}_1_bn", f"{name}_1_relu"
            )
            y = Conv2D(filters, 3, padding="same", name=f"{name}_2_conv")(y)
            y = normalized(y, f"{name}_2_bn", f"{name}_2_relu")
            y = normalized(Conv2D(4 * filters, 1, name=f"{name}_3_conv")(y), f"{name}_3_bn")
            x = Activation("relu", name=f"{name}_out")(Add(name=f"{name}_add")([shortcut, y]))
    return x, pooled_classes


ResNet50 = resnet("ResNet50", repeats=(3, 4, 6, 3))
ResNet101 = resnet("ResNet101", repeats=(3, 4, 23, 3))
ResNet152 = resnet("ResNet152", repeats=(3, 8, 36, 3))


@network
def resnet_v2(x: Any, repeats: Sequence[int]) -> Any:
    x = _pooled(_stem(x))
    for i, (count, filters) in enumerate(zip(repeats, (64, 128, 256, 512)), 2):
        for j in range(1, count + 1):
            name, stride = f"conv{i}_block{j}", 2 if j == count and i < 5 else 1
            before = normalized(x, f"{name}_preact_bn", f"{name}_preact_relu")
            if j == 1:
                shortcut = Conv2D(4 * filters, 1, strides=stride, name=f"{name}_0_conv")(before)
            else:
                shortcut = MaxPooling2D(1, strides=stride)(x) if stride > 1 else x
            y = Conv2D(filters, 1, strides=1, use_bias=False, name=f"{name}_1_conv")(before)
            y = ZeroPadding2D(1, name=f"{name}_2_pad")(normalized(y, f"{name}_1_bn", f"{name}_1_relu"))
            y = Conv2D(filters, 3, strides=stride, use_bias=False, name=f"{name}_2_conv")(y)
            y = Conv2D(4 * filters, 1, name=f"{name}_3_conv")(normalized(y, f"{name}_2_bn", f"{name}_2_relu"))
            x = Add(name=f"{name}_out")([shortcut, y])
    return normalized(x, "post_bn", "post_relu"), pooled_classes


ResNet50V2 = resnet_v2("ResNet50V2", repeats=(3, 4, 6, 3))
ResNet101V2 = resnet_v2("ResNet101V2", repeats=(3, 4, 23, 3))
ResNet152V2 = resnet_v2("ResNet152V2", repeats=(3, 8, 36, 3))


# ---- dense ---------------------------------------------------------------------------------------------------------

GROWTH = 32


@network
def densenet(x: Any, repeats: Sequence[int]) -> Any:
    x = Conv2D(64, 7, strides=2, use_bias=False, name="conv1_conv")(ZeroPadding2D(3)(x))
    x = MaxPooling2D(3, strides=2, name="pool1")(ZeroPadding2D(1)(normalized(x, "conv1_bn", "conv1_relu")))
    for i, count in enumerate(repeats, 2):
        for j in range(1, count + 1):
            name = f"conv{i}_block{j}"
            y = normalized(x, f"{name}_0_bn", f"{name}_0_relu")
            y = Conv2D(4 * GROWTH, 1, use_bias=False, name=f"{name}_1_conv")(y)
            y = normalized(y, f"{name}_1_bn", f"{name}_1_relu")
            y = Conv2D(GROWTH, 3, padding="same", use_bias=False, name=f"{name}_2_conv")(y)
            x = Concatenate(axis=3, name=f"{name}_concat")([x, y])
        if i <= len(repeats):
            x = normalized(x, f"pool{i}_bn", f"pool{i}_relu")
            x = Conv2D(x.shape[-1] // 2, 1, use_bias=False, name=f"pool{i}_conv")(x)
            x = AveragePooling2D(2, strides=2, name=f"pool{i}_pool")(x)
    return normalized(x, "bn", "relu"), pooled_classes


DenseNet121 = densenet("DenseNet121", repeats=(6, 12, 24, 16))
DenseNet169 = densenet("DenseNet169", repeats=(6, 12, 32, 32))
DenseNet201 = densenet("DenseNet201", repeats=(6, 12, 48, 32))


# ---- separable -----------------------------------------------------------------------------------------------------


@network
def xception_network(x: Any) -> Any:
    def separable(x: Any, filters: int, name: str) -> Any:
        x = SeparableConv2D(filters, 3, padding="same", use_bias=False, name=name)(x)
        return normalized(x, f"{name}_bn", epsilon=1e-3)

    def reduced(x: Any, block: int, first: int, filters: int) -> Any:
        residual = normalized(Conv2D(filters, 1, strides=2, padding="same", use_bias=False)(x), epsilon=1e-3)
        if block > 2:
            x = Activation("relu", name=f"block{block}_sepconv1_act")(x)
        x = Activation("relu", name=f"block{block}_sepconv2_act")(separable(x, first, f"block{block}_sepconv1"))
        x = separable(x, filters, f"block{block}_sepconv2")
        return Add()([MaxPooling2D(3, strides=2, padding="same", name=f"block{block}_pool")(x), residual])

    x = Conv2D(32, 3, strides=2, use_bias=False, name="block1_conv1")(x)
    x = normalized(x, "block1_conv1_bn", "block1_conv1_act", 1e-3)
    x = Conv2D(64, 3, use_bias=False, name="block1_conv2")(x)
    x = normalized(x, "block1_conv2_bn", "block1_conv2_act", 1e-3)
    for block, filters in ((2, 128), (3, 256), (4, 728)):
        x = reduced(x, block, filters, filters)
    for block in range(5, 13):
        residual = x
        for j in (1, 2, 3):
            name = f"block{block}_sepconv{j}"
            x = separable(Activation("relu", name=f"{name}_act")(x), 728, name)
        x = Add()([x, residual])
    x = reduced(x, 13, 728, 1024)
    for j, filters in ((1, 1536), (2, 2048)):
        name = f"block14_sepconv{j}"
        x = Activation("relu", name=f"{name}_act")(separable(x, filters, name))
    return x, pooled_classes


Xception = xception_network("Xception", size=299, least=71)
