"""Optimizers by name and from dictionaries.

Lives here: `get`, `serialize`, `deserialize`.  Not here: what is in a configuration (base.py).
"""

from __future__ import annotations

from typing import Any

from .adam import Adam, Adamax, AdamW, Nadam
from .base import Optimizer
from .rules import SGD, Adadelta, Adagrad, Ftrl, Lion, RMSprop

OPTIMIZERS: dict[str, type[Optimizer]] = {
    c.__name__.lower(): c for c in (SGD, Adam, AdamW, RMSprop, Adagrad, Adadelta, Adamax, Nadam, Ftrl, Lion)
}


def serialize(optimizer: Optimizer) -> dict[str, Any]:
    """An optimizer as a dictionary of its class's name and its configuration."""
    return {"class_name": type(optimizer).__name__, "config": optimizer.get_config()}


def deserialize(config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> Optimizer:
    """The optimizer that `serialize` described; names in any case. custom_objects: classes of yours by name.

    raises ValueError for a class that is not known
    """
    known = {**OPTIMIZERS, **{name.lower(): c for name, c in (custom_objects or {}).items()}}
    name = config["class_name"]
    if name.lower() not in known:
        raise ValueError(
            f"Unknown optimizer {name!r}; known are {', '.join(c.__name__ for c in known.values())}. "
            "Give others in `custom_objects`"
        )
    return known[name.lower()].from_config(config.get("config", {}), custom_objects)


def get(identifier: Any) -> Optimizer | None:
    """An optimizer for a name, a dictionary, an optimizer (itself) or None (None)."""
    if identifier is None or isinstance(identifier, Optimizer):
        return identifier
    if isinstance(identifier, dict):
        return deserialize(identifier)
    if isinstance(identifier, str):
        return deserialize({"class_name": identifier, "config": {}})
    raise ValueError(f"Could not interpret optimizer identifier: {identifier!r}")
