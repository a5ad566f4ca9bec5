"""Neural networks: the operators of `ow.nn`, modules, layers, models, and how they are trained.

Lives here: re-exports; what is not an operator is imported when first used.
Not here: the operators' definitions (ops/nn), layers (layers/), the names of Keras (keras.py above).
"""

from __future__ import annotations

import importlib as _importlib
from typing import TYPE_CHECKING, Any

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

_LATER = {
    "Input": "input_layer", "Layer": "layer", "Model": "model", "Sequential": "sequential", "activations": None,
    "callbacks": None, "constraints": None, "initializers": None, "layers": None, "losses": None, "metrics": None,
    "models": None, "regularizers": None, "utils": None,
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'opwright.nn' has no attribute {name!r}")
    home = _LATER[name]
    if home is None:
        globals()[name] = _importlib.import_module(f".{name}", __name__)
    else:
        globals()[name] = getattr(_importlib.import_module(f".{home}", __name__), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*__all__, *globals()})


__all__ = [
    *_operators, "Input", "Layer", "Model", "Module", "Sequential", "activations", "callbacks", "constraints",
    "initializers", "layers", "losses", "metrics", "models", "regularizers", "utils",
]  # fmt: skip
