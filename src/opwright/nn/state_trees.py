"""Variables of a model as nested dictionaries by path, for checkpoints of other libraries.

Lives here: both directions.  Not here: files (weights_io.py), variables in order (module.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .model import Model


def _groups(model: Model) -> dict[str, list[Any]]:
    optimizer = [] if model.optimizer is None else list(model.optimizer.variables)
    return {
        "trainable_variables": list(model.trainable_variables),
        "non_trainable_variables": list(model.non_trainable_variables),
        "optimizer_variables": optimizer,
        "metrics_variables": list(model.metrics_variables),
    }


def get_state_tree(model: Model, value_format: str) -> dict[str, Any]:
    """Return the values of all variables by group and path. Raises ValueError if two of a group have one path."""
    if value_format not in ("backend_tensor", "numpy_array"):
        raise ValueError(f"value_format is 'backend_tensor' or 'numpy_array'. Received: {value_format!r}")
    tree: dict[str, Any] = {}
    for group, variables in _groups(model).items():
        root: dict[str, Any] = {}
        for variable in variables:
            *parents, last = variable.path.split("/")
            part = root
            for key in parents:
                part = part.setdefault(key, {})
            if last in part:
                raise ValueError(f"The following variable path is found twice in the model: '{variable.path}'.")
            part[last] = variable.numpy() if value_format == "numpy_array" else variable.value()
        tree[group] = root
    return tree


def set_state_tree(model: Model, tree: dict[str, Any]) -> None:
    """Assign the values of a tree. Raises ValueError for a group that models do not have."""
    if model.optimizer is not None and not model.optimizer.built:
        model.optimizer.build(model.trainable_variables)
    groups = _groups(model)
    for group, values in tree.items():
        if group not in groups:
            raise ValueError(f"Unknown variable group: {group!r}; the groups are {sorted(groups)}")
        by_path = {variable.path: variable for variable in groups[group]}
        for path, value in _flattened(values, ""):
            if path in by_path:
                by_path[path].assign(np.asarray(value, by_path[path].dtype.np))


def _flattened(tree: Any, path: str) -> list[tuple[str, Any]]:
    if not isinstance(tree, dict):
        return [(path, tree)]
    return [leaf for key, part in tree.items() for leaf in _flattened(part, f"{path}/{key}" if path else key)]
