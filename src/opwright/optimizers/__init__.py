"""Optimizers and learning rate schedules: rules that update variables by gradients.

Lives here: the public names, `get`, `serialize`, `deserialize`.
Not here: gradients (eager/tape.py), models that train (nn/), the contents of a configuration (base.py).
"""

from __future__ import annotations

from typing import Any

from . import schedules
from .adam import Adam, Adamax, AdamW, Nadam
from .base import Optimizer
from .loss_scale import LossScaleOptimizer
from .matrix_rules import Adafactor, Lamb, Muon
from .rules import SGD, Adadelta, Adagrad, Ftrl, Lion, RMSprop
from .several import MultiOptimizer, OptimizerMap, ScheduleFreeAdamW

__all__ = [
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Ftrl",
    "Lamb",
    "Lion",
    "LossScaleOptimizer",
    "MultiOptimizer",
    "Muon",
    "Nadam",
    "Optimizer",
    "OptimizerMap",
    "RMSprop",
    "ScheduleFreeAdamW",
    "deserialize",
    "get",
    "schedules",
    "serialize",
]

OPTIMIZERS: dict[str, type[Optimizer]] = {
    c.__name__.lower(): c
    for c in (
        SGD,
        Adam,
        AdamW,
        RMSprop,
        Adagrad,
        Adadelta,
        Adamax,
        Nadam,
        Ftrl,
        Lion,
        Adafactor,
        Lamb,
        Muon,
        LossScaleOptimizer,
        MultiOptimizer,
        ScheduleFreeAdamW,
    )
}


def serialize(optimizer: Optimizer) -> dict[str, Any]:
    """Return an optimizer as a dictionary of its class name and its configuration."""
    return {"class_name": type(optimizer).__name__, "config": optimizer.get_config()}


def deserialize(config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> Optimizer:
    """Return the optimizer described by `serialize`'s result; names in any case. custom_objects: user-defined classes
    by name.

    raises ValueError for an unknown class
    """
    classes = {**OPTIMIZERS, **{name.lower(): c for name, c in (custom_objects or {}).items()}}
    name = config["class_name"]
    if name.lower() not in classes:
        raise ValueError(
            f"Unknown optimizer {name!r}; known are {', '.join(c.__name__ for c in classes.values())}. "
            "Pass others in `custom_objects`"
        )
    arguments = dict(config.get("config", {}))
    if isinstance(arguments.get("inner_optimizer"), dict):  # with the user's classes
        arguments["inner_optimizer"] = deserialize(arguments["inner_optimizer"], custom_objects)
    result: Optimizer = classes[name.lower()].from_config(arguments, custom_objects)
    return result


def get(identifier: Any) -> Optimizer | None:
    """Return an optimizer for a name, a dictionary, an optimizer (itself) or None (None)."""
    if identifier is None or isinstance(identifier, Optimizer):
        return identifier
    if isinstance(identifier, dict):
        return deserialize(identifier)
    if isinstance(identifier, str):
        return deserialize({"class_name": identifier, "config": {}})
    raise ValueError(f"Could not interpret optimizer identifier: {identifier!r}")
