"""keras: the names of `ow.nn` and `ow.optimizers` as users of Keras know them.

Lives here: aliases.  Not here: anything that computes.
"""

from __future__ import annotations

import sys
import types
from typing import NoReturn

from . import optimizers
from .nn import (
    activations,
    backend,
    callbacks,
    constraints,
    initializers,
    layers,
    losses,
    metrics,
    models,
    random,
    regularizers,
    utils,
)
from .nn.keras_tensor import KerasTensor
from .nn.layer import Layer
from .nn.layer_calls import InputSpec
from .nn.losses import Loss
from .nn.metrics import Metric
from .nn.model import Model
from .nn.models import Sequential
from .nn.network import Input

__all__ = [
    "Input",
    "InputSpec",
    "KerasTensor",
    "Layer",
    "Loss",
    "Metric",
    "Model",
    "Sequential",
    "activations",
    "backend",
    "callbacks",
    "constraints",
    "initializers",
    "layers",
    "losses",
    "metrics",
    "models",
    "optimizers",
    "random",
    "regularizers",
    "utils",
]

# `from opwright.keras.layers import Dense`: the import system looks here first.
for _name, _value in list(globals().items()):
    if isinstance(_value, types.ModuleType) and _name in __all__:
        sys.modules[f"{__name__}.{_name}"] = _value


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(f"module 'opwright.keras' has no attribute {name!r}; it has {', '.join(__all__)}")
