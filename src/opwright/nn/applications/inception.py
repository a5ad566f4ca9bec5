"""Networks of inception blocks: parallel convolutions whose features are joined.

Lives here: InceptionV3, InceptionResNetV2.  Not here: Xception (residual.py).

Sources: Szegedy et al., 2015 and 2016. A branch of a block is a tuple of convolutions (filters, kernel size), which
read each other; a third element REDUCE halves the picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..layers import Activation, AveragePooling2D, BatchNormalization, Concatenate, Conv2D, MaxPooling2D
from .common import network, pooled_classes
from .own_layers import CustomScaleLayer

REDUCE = "reduce"
Branches = Sequence[Sequence[tuple[Any, ...]]]


def convolved(x: Any, filters: int, kernel: Any, mode: str = "same", name: str | None = None) -> Any:
    """Return convolved, normalized and activated features. mode: "same", "valid" or REDUCE."""
    reduces = mode == REDUCE
    padding = "valid" if reduces else mode
    x = Conv2D(filters, kernel, strides=2 if reduces else 1, padding=padding, use_bias=False, name=name)(x)
    x = BatchNormalization(axis=3, scale=False, name=name and f"{name}_bn")(x)
    return Activation("relu", name=name and f"{name}_ac")(x)


def branch(x: Any, convolutions: Sequence[tuple[Any, ...]]) -> Any:
    """Return the features of one branch."""
    for convolution in convolutions:
        x = convolved(x, *convolution)
    return x


def inception(x: Any, branches: Branches, pooled: int | None, name: str) -> Any:
    """Return the joined features of branches and a pool: pooled by `pooled` filters, or, for None, halved."""
    parts = [branch(x, convolutions) for convolutions in branches]
    if pooled is None:
        parts.append(MaxPooling2D(3, strides=2)(x))
    else:
        parts.append(convolved(AveragePooling2D(3, strides=1, padding="same")(x), pooled, 1))
    return Concatenate(axis=3, name=name)(parts)


def stem(x: Any) -> Any:
    """Return the features of the first five convolutions, of an eighth of the size."""
    x = branch(x, ((32, 3, REDUCE), (32, 3, "valid"), (64, 3)))
    x = branch(MaxPooling2D(3, strides=2)(x), ((80, 1, "valid"), (192, 3, "valid")))
    return MaxPooling2D(3, strides=2)(x)


# ---- the third version ---------------------------------------------------------------------------------------------


def _five(pooled: int) -> tuple[Branches, int]:
    return (((64, 1),), ((48, 1), (64, 5)), ((64, 1), (96, 3), (96, 3))), pooled


def _seven(n: int) -> tuple[Branches, int]:
    """Return a block of kernels 1 by 7 and 7 by 1, which n filters read."""
    row, column = (1, 7), (7, 1)
    double = ((n, 1), (n, column), (n, row), (n, column), (192, row))
    return (((192, 1),), ((n, 1), (n, row), (192, column)), double), 192


BLOCKS_V3: tuple[tuple[Branches, int | None], ...] = (
    _five(32),
    _five(64),
    _five(64),
    ((((384, 3, REDUCE),), ((64, 1), (96, 3), (96, 3, REDUCE))), None),
    _seven(128),
    _seven(160),
    _seven(160),
    _seven(192),
    ((((192, 1), (320, 3, REDUCE)), ((192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3, REDUCE))), None),
)


def _split(x: Any, name: str | None = None) -> Any:
    """Return features convolved by rows and by columns."""
    return Concatenate(axis=3, name=name)([convolved(x, 384, (1, 3)), convolved(x, 384, (3, 1))])


@network
def inception_v3(x: Any) -> Any:
    x = stem(x)
    for i, (branches, pooled) in enumerate(BLOCKS_V3):
        x = inception(x, branches, pooled, f"mixed{i}")
    for i in range(2):
        first = convolved(x, 320, 1)
        second = _split(convolved(x, 384, 1), f"mixed9_{i}")
        third = _split(branch(x, ((448, 1), (384, 3))))
        pooled_part = convolved(AveragePooling2D(3, strides=1, padding="same")(x), 192, 1)
        x = Concatenate(axis=3, name=f"mixed{9 + i}")([first, second, third, pooled_part])
    return x, pooled_classes


InceptionV3 = inception_v3("InceptionV3", size=299, least=75, model_name="inception_v3")


# ---- with residuals ------------------------------------------------------------------------------------------------


RESIDUALS: dict[str, Branches] = {
    "block35": (((32, 1),), ((32, 1), (32, 3)), ((32, 1), (48, 3), (64, 3))),
    "block17": (((192, 1),), ((128, 1), (160, (1, 7)), (192, (7, 1)))),
    "block8": (((192, 1),), ((192, 1), (224, (1, 3)), (256, (3, 1)))),
}


def residual(x: Any, kind: str, index: int, scale: float, activate: bool = True) -> Any:
    """Return features plus those of a block of RESIDUALS."""
    name = f"{kind}_{index}"
    mixed = Concatenate(axis=3, name=f"{name}_mixed")([branch(x, each) for each in RESIDUALS[kind]])
    change = Conv2D(x.shape[-1], 1, padding="same", name=f"{name}_conv")(mixed)
    x = CustomScaleLayer(scale)([x, change])
    return Activation("relu", name=f"{name}_ac")(x) if activate else x


@network
def inception_resnet_v2(x: Any) -> Any:
    x = inception(stem(x), (((96, 1),), ((48, 1), (64, 5)), ((64, 1), (96, 3), (96, 3))), 64, "mixed_5b")
    for i in range(1, 11):
        x = residual(x, "block35", i, 0.17)
    x = inception(x, (((384, 3, REDUCE),), ((256, 1), (256, 3), (384, 3, REDUCE))), None, "mixed_6a")
    for i in range(1, 21):
        x = residual(x, "block17", i, 0.1)
    reductions = (((256, 1), (n, 3, REDUCE)) for n in (384, 288))
    x = inception(x, (*reductions, ((256, 1), (288, 3), (320, 3, REDUCE))), None, "mixed_7a")
    for i in range(1, 10):
        x = residual(x, "block8", i, 0.2)
    x = residual(x, "block8", 10, 1.0, activate=False)
    return convolved(x, 1536, 1, name="conv_7b"), pooled_classes


InceptionResNetV2 = inception_resnet_v2("InceptionResNetV2", size=299, least=75, model_name="inception_resnet_v2")
