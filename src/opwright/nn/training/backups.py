"""Backups of a training in progress: a model's weights, its optimizer's state and the epoch, in one file.

Lives here: `write_backup`, `read_backup`, `Backup`.  Not here: when they are made (callbacks/keeping.py).
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from ...core.errors import DataLossError
from ...core.files import replacing
from .. import weights_io

FORMAT = "opwright.backup"
_MODEL, _OPTIMIZER = "model.", "optimizer."


@dataclasses.dataclass(frozen=True)
class Backup:
    """What a backup holds. epoch: how many epochs are finished; arrays: weights and state by name."""

    path: str
    epoch: int
    arrays: dict[str, np.ndarray]

    def restore(self, model: Any) -> None:
        """Set the weights and the optimizer's state. Raises ValueError where they are of another model."""
        weights_io.assign(model, self._part(_MODEL), self.path)
        optimizer, state = model.optimizer, self._part(_OPTIMIZER)
        if optimizer is None or not state:
            return
        if not optimizer.built:
            optimizer.build(model.trainable_weights)
        variables = _state_of(optimizer)
        if variables.keys() != state.keys() or any(v.shape.dims != state[k].shape for k, v in variables.items()):
            raise ValueError(f"The backup in {self.path} was made with another optimizer than "
                             f"{type(optimizer).__name__} of {len(variables)} variables; it has {len(state)}"
                             )  # fmt: skip
        for name, variable in variables.items():
            variable.assign(state[name].astype(variable.dtype.np))

    def _part(self, prefix: str) -> dict[str, np.ndarray]:
        return {k.removeprefix(prefix): v for k, v in self.arrays.items() if k.startswith(prefix)}


def _state_of(optimizer: Any) -> dict[str, Any]:
    return {f"{i:04d}": v for i, v in enumerate(optimizer.variables)}


def write_backup(path: str, model: Any, epoch: int) -> None:
    """Write a backup of a model and its optimizer after `epoch` finished epochs; the file is replaced as a whole."""
    arrays = {f"{_MODEL}{name}": array for name, array in weights_io.arrays_of(model).items()}
    if model.optimizer is not None and model.optimizer.built:
        arrays.update((f"{_OPTIMIZER}{k}", np.asarray(v.read_array())) for k, v in _state_of(model.optimizer).items())
    with replacing(path) as file:
        file.write(weights_io.to_bytes(arrays, {"format": FORMAT, "version": "1", "epoch": str(epoch)}))


def read_backup(path: str) -> Backup:
    """Read a backup. Raises FileNotFoundError, and DataLossError for a file that is damaged or none."""
    with open(path, "rb") as file:
        arrays, metadata = weights_io.from_bytes(file.read(), path)
    epoch = metadata.get("epoch", "")
    if metadata.get("format") != FORMAT or not epoch.isdecimal():
        raise DataLossError(what=f"{path} is no backup of a training", found=metadata or "no metadata",
                            wanted=f"format {FORMAT} and a number of epochs", do="remove it")  # fmt: skip
    return Backup(path, int(epoch), arrays)
