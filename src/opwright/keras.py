"""keras: the names of `ow.nn` and `ow.optimizers` as users of Keras know them.

Lives here: aliases.  Not here: anything that computes.
"""

from __future__ import annotations

import sys
import types
from typing import NoReturn

from . import optimizers
from .core import __version__ as __version__
from .eager.variable import Variable
from .nn import (
    activations,
    backend,
    callbacks,
    config,
    constraints,
    initializers,
    layers,
    losses,
    metrics,
    models,
    random,
    regularizers,
    saving,
    tree,
    utils,
)
from .nn import keras_ops as ops
from .nn.constraints import Constraint
from .nn.initializers import Initializer
from .nn.keras_tensor import KerasTensor
from .nn.layer import Layer
from .nn.layer_calls import InputSpec
from .nn.losses import Loss
from .nn.metrics import Metric
from .nn.model import Model
from .nn.models import Sequential
from .nn.network import Input
from .nn.regularizers import Regularizer
from .optimizers import Optimizer
from .tracing.name_scopes import name_scope

__all__ = [
    "Constraint",
    "Initializer",
    "Input",
    "InputSpec",
    "KerasTensor",
    "Layer",
    "Loss",
    "Metric",
    "Model",
    "Optimizer",
    "Regularizer",
    "Sequential",
    "Variable",
    "activations",
    "backend",
    "callbacks",
    "config",
    "constraints",
    "initializers",
    "layers",
    "losses",
    "metrics",
    "models",
    "name_scope",
    "ops",
    "optimizers",
    "random",
    "regularizers",
    "saving",
    "tree",
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
