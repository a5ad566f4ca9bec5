"""ConvNeXt: residual blocks of wide depth-wise convolutions and layers on channels.

Lives here: ConvNeXtTiny to ConvNeXtXLarge.  Not here: other residual networks (residual.py).

Source: Liu et al., 2022. Names of layers are Keras's, which begin with the name of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..layers import Activation, Conv2D, Dense, GlobalAveragePooling2D, LayerNormalization, Normalization
from ..models import Sequential
from .common import DEVIATIONS, MEANS, network
from .own_layers import LayerScale

EPSILON = 1e-6


def normalization(name: str | None = None) -> LayerNormalization:
    """Return the normalization of all blocks."""
    return LayerNormalization(epsilon=EPSILON, name=name)


@network
def convnext(
    x: Any, depths: Sequence[int], filters: Sequence[int], prefix: str, include_preprocessing: bool = True
) -> Any:
    if include_preprocessing and x.shape[-1] == 3:
        mean, variance = (MEANS * 255).tolist(), ((DEVIATIONS * 255) ** 2).tolist()
        x = Normalization(mean=mean, variance=variance, name=f"{prefix}_prestem_normalization")(x)
    reductions = [
        Sequential(
            [Conv2D(filters[0], 4, strides=4, name=f"{prefix}_stem_conv"), normalization(f"{prefix}_stem_layernorm")],
            name=f"{prefix}_stem",
        )
    ]
    for i in range(3):
        halved = Conv2D(filters[i + 1], 2, strides=2, name=f"{prefix}_downsampling_conv_{i}")
        layers = [normalization(f"{prefix}_downsampling_layernorm_{i}"), halved]
        reductions.append(Sequential(layers, name=f"{prefix}_downsampling_block_{i}"))
    for i, (reduce, depth, n) in enumerate(zip(reductions, depths, filters)):
        x = reduce(x)
        for j in range(depth):
            name, before = f"{prefix}_stage_{i}_block_{j}_", x
            x = Conv2D(n, 7, padding="same", groups=n, name=f"{name}depthwise_conv")(x)
            x = Dense(4 * n, name=f"{name}pointwise_conv_1")(normalization(f"{name}layernorm")(x))
            x = Dense(n, name=f"{name}pointwise_conv_2")(Activation("gelu", name=f"{name}gelu")(x))
            x = LayerScale(1e-6, n, name=f"{name}layer_scale")(x)
            x = before + Activation("linear", name=f"{name}identity")(x)

    def top(x: Any, classes: int, activation: Any) -> Any:
        x = normalization(f"{prefix}_head_layernorm")(GlobalAveragePooling2D(name=f"{prefix}_head_gap")(x))
        return Dense(classes, activation=activation, name=f"{prefix}_head_dense")(x)

    return x, top, normalization()


ORDER = ("include_top", "include_preprocessing")
"""The first arguments, as in Keras."""


def _define(name: str, depth: int, width: int) -> Any:
    filters = [width * 2**i for i in range(4)]
    return convnext(
        name, model_name=name.lower().replace("xt", "xt_"), depths=(3, 3, depth, 3), filters=filters, order=ORDER
    )


ConvNeXtTiny = _define("ConvNeXtTiny", 9, 96)
ConvNeXtSmall = _define("ConvNeXtSmall", 27, 96)
ConvNeXtBase = _define("ConvNeXtBase", 27, 128)
ConvNeXtLarge = _define("ConvNeXtLarge", 27, 192)
ConvNeXtXLarge = _define("ConvNeXtXLarge", 27, 256)
