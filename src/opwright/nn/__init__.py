"""Neural networks: the operators of `ow.nn`, modules, layers, models, and how they are trained.

Lives here: re-exports; what is not an operator is imported when first used.
Not here: the operators' definitions (ops/nn), layers (layers/), the names of Keras (keras.py above).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.importing import lazily as _lazily
from ..ops.nn import *  # noqa: F403  the whole family, whose own __all__ lists it
from ..ops.nn import __all__ as _operators
from .module import Module

if TYPE_CHECKING:
    from . import (
        activations,
        callbacks,
        constraints,
        initializers,
        layers,
        losses,
        metrics,
        models,
        regularizers,
        utils,
    )
    from .input_layer import Input
    from .layer import Layer
    from .model import Model
    from .sequential import Sequential

_HOMES = {
    ".": ("activations, callbacks, constraints, initializers, layers, losses, metrics, models, regularizers, utils"),
    ".input_layer": "Input",
    ".layer": "Layer",
    ".model": "Model",
    ".sequential": "Sequential",
}

__getattr__, __dir__ = _lazily(__name__, _HOMES)

__all__ = [
    *_operators, "Input", "Layer", "Model", "Module", "Sequential", "activations", "callbacks", "constraints",
    "initializers", "layers", "losses", "metrics", "models", "regularizers", "utils",
]  # fmt: skip
