"""Random numbers of ONNX: the distributions agree, the numbers are of this package's generators."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.dtypes import float32
from ....ops import math, random
from ....ops.array import cast
from ..execution import RULES
from ..files import dtype_of_code
from ..operands import dtype_of, shape_of

rule = RULES.rule


def _dtype(attributes: Any, like: Any = None) -> Any:
    if "dtype" in attributes:
        return dtype_of_code(attributes["dtype"], "random numbers")
    return float32 if like is None else dtype_of(like)


def _seed(attributes: Any) -> int | None:
    return int(np.float32(attributes["seed"]).view(np.uint32)) & 0x7FFFFFFF if "seed" in attributes else None


def _uniform(shape: Any, attributes: Any, dtype: Any) -> Any:
    low, high = attributes.get("low", 0.0), attributes.get("high", 1.0)
    return random.uniform(shape, low, high, dtype, _seed(attributes))


def _normal(shape: Any, attributes: Any, dtype: Any) -> Any:
    return random.normal(shape, attributes.get("mean", 0.0), attributes.get("scale", 1.0), dtype, _seed(attributes))


for _name, _draw in {"RandomUniform": _uniform, "RandomNormal": _normal}.items():
    rule(_name, pure=False)(
        lambda context, inputs, attributes, draw=_draw: draw(list(attributes["shape"]), attributes, _dtype(attributes))
    )
    rule(f"{_name}Like", pure=False)(
        lambda context, inputs, attributes, draw=_draw: draw(
            shape_of(inputs[0]), attributes, _dtype(attributes, inputs[0])
        )
    )


@rule("Bernoulli", pure=False)
def bernoulli(context: Any, inputs: Any, attributes: Any) -> Any:
    x = cast(inputs[0], float32)
    drawn = math.less(random.uniform(shape_of(x), seed=_seed(attributes)), x)
    return cast(drawn, _dtype(attributes, inputs[0]))


@rule("Multinomial", pure=False)
def multinomial(context: Any, inputs: Any, attributes: Any) -> Any:
    to = dtype_of_code(attributes.get("dtype", 6), "Multinomial")
    return random.categorical(inputs[0], attributes.get("sample_size", 1), to, _seed(attributes))
