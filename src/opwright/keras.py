"""keras: the names of `ow.nn` and `ow.optimizers` as users of Keras know them.

Lives here: aliases.  Not here: anything that computes.
"""

from __future__ import annotations

import sys
import types
from typing import NoReturn

from . import optimizers
from .core import __version__ as __version__
from .core.lazy_imports import MissingNameError, explain_missing
from .eager.variable import Variable
from .nn import (
    activations,
    applications,
    backend,
    callbacks,
    config,
    constraints,
    datasets,
    distillation,
    dtype_policies,
    initializers,
    layers,
    losses,
    metrics,
    mixed_precision,
    models,
    preprocessing,
    quantizers,
    random,
    regularizers,
    saving,
    tree,
    utils,
)
from .nn import keras_ops as ops
from .nn.constraints import Constraint
from .nn.dtype_policies import DTypePolicy, FloatDTypePolicy
from .nn.initializers import Initializer
from .nn.keras_tensor import KerasTensor
from .nn.layer import Layer
from .nn.layer_calls import InputSpec
from .nn.losses import Loss
from .nn.metrics import Metric
from .nn.model import Model
from .nn.models import Sequential
from .nn.network import Input
from .nn.quantizers import Quantizer
from .nn.regularizers import Regularizer
from .nn.rematerialization import RematScope, remat
from .optimizers import Optimizer
from .tracing.name_scopes import device, name_scope

__all__ = [
    "Constraint",
    "DTypePolicy",
    "FloatDTypePolicy",
    "Initializer",
    "Input",
    "InputSpec",
    "KerasTensor",
    "Layer",
    "Loss",
    "Metric",
    "Model",
    "Optimizer",
    "Quantizer",
    "Regularizer",
    "RematScope",
    "Sequential",
    "Variable",
    "activations",
    "applications",
    "backend",
    "callbacks",
    "config",
    "constraints",
    "datasets",
    "device",
    "distillation",
    "dtype_policies",
    "initializers",
    "layers",
    "losses",
    "metrics",
    "mixed_precision",
    "models",
    "name_scope",
    "ops",
    "optimizers",
    "preprocessing",
    "quantizers",
    "random",
    "regularizers",
    "remat",
    "saving",
    "tree",
    "utils",
    "version",
]


def version() -> str:
    """Return the version of the package."""
    return __version__


# `from opwright.keras.layers import Dense`: the import system looks here first.
for _name, _value in list(globals().items()):
    if isinstance(_value, types.ModuleType) and _name in __all__:
        sys.modules[f"{__name__}.{_name}"] = _value
        explain_missing(_value)
for _name in ("image", "linalg", "nn", "numpy"):
    sys.modules[f"{__name__}.ops.{_name}"] = getattr(ops, _name)
sys.modules[f"{__name__}.utils.bounding_boxes"] = utils.bounding_boxes
for _name in datasets.__all__:
    sys.modules[f"{__name__}.datasets.{_name}"] = getattr(datasets, _name)
for _name in ("image", "sequence", "text"):
    sys.modules[f"{__name__}.preprocessing.{_name}"] = getattr(preprocessing, _name)


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> NoReturn:
    raise MissingNameError(__name__, name)
