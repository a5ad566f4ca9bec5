"""Files of weights.

Lives here: .safetensors files of weights, reading .keras archives, backups of training.
Not here: .weights.h5 and their shards (hdf5_weights.py, weight_shards.py), whole models (model_files.py).

A weight is stored by its path in the model: indices of layers, then its name, as in "0.kernel" or "2.1.bias"; names of
layers, which depend on global counters, are not part of it.
"""

from __future__ import annotations

import dataclasses
import io
import json
import os
import zipfile
from typing import Any

import numpy as np

from ..core.archives import DAMAGED_ZIP
from ..core.errors import DataLossError
from ..core.files import replacing
from ..eager.variable import Variable
from . import weight_shards
from .hdf5_weights import MOST_RATIO, assign_weights, open_weights, stored_arrays, stores_itself, weights_file
from .legacy_hdf5 import assign_legacy_weights, weights_of

FORMAT = {"format": "opwright.weights", "version": "1"}
HDF5 = ".weights.h5"
H5_WEIGHTS = "model.weights.h5"
"""Member of .keras files: weights as Keras has them."""
_OWN = "own:"  # between a layer's path and the keys it stores


def _weights_and_owners(layer: Any) -> tuple[dict[str, Variable], dict[str, Any]]:
    """Return the weights by path, and the layers that override `save_own_variables` by path."""
    weights: dict[str, Variable] = {}
    owners: dict[str, Any] = {}
    seen: set[int] = set()

    def walk(module: Any, prefix: str) -> None:
        if stores_itself(module):
            owners[f"{prefix}{_OWN}"] = module
            seen.update(map(id, module._own_variables()))
        own = module._own_variables() if hasattr(module, "_own_variables") else list(module.variables)
        order = {id(v): i for i, v in enumerate(module.weights if hasattr(module, "weights") else own)}
        for variable in sorted(own, key=lambda v: order.get(id(v), 0)):
            if id(variable) in seen:
                continue
            seen.add(id(variable))
            base = prefix + variable.name.partition(":")[0].rpartition("/")[2]
            name, number = base, 1
            while name in weights:
                name, number = f"{base}_{number}", number + 1
            weights[name] = variable
        for i, inner in enumerate(
            getattr(module, "layers", None) or (module._sublayers() if hasattr(module, "_sublayers") else ())
        ):
            walk(inner, f"{prefix}{i}.")

    walk(layer, "")
    return weights, owners


def arrays_of(model: Any) -> dict[str, np.ndarray]:
    """Return all weights by path, including the arrays of layers that override `save_own_variables`."""
    variables, owners = _weights_and_owners(model)
    if any(v.is_shard for v in variables.values()):
        raise ValueError(f"Model {model.name!r} has rows on other workers: save it by ow.distribute.ShardedCheckpoint")
    arrays = {name: np.array(v.read_array(), order="C") for name, v in variables.items()}
    for prefix, layer in owners.items():
        arrays.update({f"{prefix}{key}": array for key, array in stored_arrays(layer).items()})
    return arrays


def _checked_path(filepath: Any) -> str:
    path: str = os.fspath(filepath)
    if path.endswith((HDF5, weight_shards.SUFFIX)):
        return path
    if path.endswith((".h5", ".hdf5")):
        raise ValueError(f"{path}: the name of an HDF5 file of weights ends in {HDF5}, as Keras 3 writes and reads it")
    if not path.endswith(".safetensors"):
        raise ValueError(f"{path}: the name of a file of weights ends in .safetensors or {HDF5}")
    return path


class NotFound(FileNotFoundError, ValueError):
    """There is no such file; Keras raises a ValueError."""


def to_bytes(arrays: dict[str, np.ndarray], metadata: dict[str, str] = FORMAT) -> bytes:
    """Serialize arrays as a .safetensors file."""
    from safetensors.numpy import save

    return save({k: np.ascontiguousarray(v) if v.ndim else v for k, v in arrays.items()}, metadata)


def save_weights(
    model: Any, filepath: Any, overwrite: bool = True, max_shard_size: float | None = None, objects_to_skip: Any = None
) -> None:
    """Save the weights of a model; see `Model.save_weights`. objects_to_skip: layers that are not saved, in HDF5."""
    path = _checked_path(filepath)
    if path.endswith(weight_shards.SUFFIX) and max_shard_size is None:
        raise ValueError(f"{path}: weights in several files need `max_shard_size`, in GB")
    if max_shard_size is not None and not path.endswith((HDF5, weight_shards.SUFFIX)):
        raise ValueError(f"{path}: weights in several files have a name that ends in {weight_shards.SUFFIX}")
    if objects_to_skip is not None and path.endswith(".safetensors"):
        raise ValueError(f"{path}: `objects_to_skip` only supports {HDF5} files")
    if not overwrite and os.path.exists(path):
        raise FileExistsError(f"{path} exists: pass overwrite=True")
    arrays = arrays_of(model)
    if not arrays and not model.built:
        raise ValueError(
            "You are saving a model that has not yet been built. "
            f"Model {model.name!r} has no weights yet: call it, or `build(input_shape)`, first"
        )
    skip = list(objects_to_skip or ())
    if max_shard_size is not None:
        weight_shards.save(model, path, max_shard_size, skip)
        return
    content = weights_file(model, skip=skip) if path.endswith(HDF5) else to_bytes(arrays)
    with replacing(path) as file:
        file.write(content)


def parse_arrays(content: bytes, path: str) -> dict[str, np.ndarray]:
    """Return the arrays of a .safetensors file. Raises DataLossError for a corrupt one."""
    return from_bytes(content, path)[0]


def from_bytes(content: bytes, path: str) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Parse a .safetensors file: return arrays and metadata. Raises DataLossError for a corrupt file."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        arrays = load(content)
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        return arrays, header.get("__metadata__") or {}
    except (SafetensorError, ValueError, KeyError) as error:
        raise DataLossError(what=f"{path} is not a .safetensors file, or is corrupt: {error}") from None


def load_weights(
    model: Any, filepath: Any, skip_mismatch: bool = False, objects_to_skip: Any = None, by_name: bool | None = None
) -> None:
    """Load the weights of a model; see `Model.load_weights`."""
    path = os.fspath(filepath)
    if not path.endswith((".safetensors", ".keras", ".h5", ".hdf5", weight_shards.SUFFIX)):
        raise ValueError(
            f"{path}: File format not supported. Weights are in .safetensors, {HDF5}, .keras and .h5 files, by name"
        )
    if objects_to_skip is not None and not path.endswith((HDF5, weight_shards.SUFFIX)):
        raise ValueError(f"`objects_to_skip` only supports loading '.weights.h5' files. Received: {path}")
    if by_name is not None and (path.endswith(HDF5) or not path.endswith((".h5", ".hdf5"))):
        raise ValueError(f"`by_name` only supports loading legacy '.h5' or '.hdf5' files. Received: {path}")
    content = file_content(path)
    if path.endswith(".keras"):
        files = members(content, path)
        name = next((n for n in (H5_WEIGHTS, "model.safetensors") if n in files), None)
        if name is None:
            raise DataLossError(what=f"{path} has no weights", found=", ".join(list(files)[:5]))
        path, content = f"the {name} of {path}", files[name]
    if path.endswith(".safetensors") or path.startswith("the model.safetensors"):
        assign(model, parse_arrays(content, path), path, skip_mismatch)
        return
    if not model.built:
        raise ValueError(
            "You are loading weights into a model that has not yet been built. "
            f"Model {model.name!r} has no weights to set yet: call it, or `build(input_shape)`, first"
        )
    is_sharded = path.endswith(weight_shards.SUFFIX)
    root = weight_shards.open_all(content, path) if is_sharded else open_weights(content, path)
    older = None if is_sharded else weights_of(root)
    if older is None:
        assign_weights(model, {}, root, skip_mismatch, list(objects_to_skip or ()))
    else:
        assign_legacy_weights(model, older, skip_mismatch, bool(by_name))


def file_content(filepath: Any) -> bytes:
    """Return the bytes of a file, or of an open one. Raises NotFound."""
    if hasattr(filepath, "read"):
        read: bytes = filepath.read()
        return read
    path = os.fspath(filepath)
    if not os.path.isfile(path):
        raise NotFound(f"File not found: filepath={path}. Please ensure the file is an accessible file.")
    with open(path, "rb") as file:
        return file.read()


def members(content: bytes, path: str) -> dict[str, bytes]:
    """Return the members of a .keras file. Raises DataLossError for a file that is none, or expands beyond measure."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(member.file_size for member in archive.infolist()) > MOST_RATIO * len(content) + (1 << 20):
                raise DataLossError(
                    what=f"{path} expands to more than {MOST_RATIO} times its size: a decompression bomb"
                )
            return {name: archive.read(name) for name in archive.namelist()}
    except DAMAGED_ZIP as error:
        if isinstance(error, DataLossError):
            raise
        raise corrupt(path, error) from None


def corrupt(path: Any, error: Exception) -> DataLossError:
    """Return the error of a file that is not a saved model."""
    return DataLossError(what=f"{path} is not a model saved by `Model.save`, or is corrupt: {error}")


def assign(model: Any, arrays: dict[str, np.ndarray], path: str, skip_mismatch: bool = False) -> None:
    """Assign the weights by path: all of them, or none if they do not match."""
    variables, owners = _weights_and_owners(model)
    arrays, stored = _split_stored(arrays, owners)
    if not variables and arrays:
        raise ValueError(f"Model {model.name!r} has no weights to set yet: call it, or `build(input_shape)`, first")
    missing, spare = sorted(set(variables) - set(arrays)), sorted(set(arrays) - set(variables))
    wrong = [
        f"{k}: {tuple(variables[k].shape)} in the model, {arrays[k].shape} in the file"
        for k in sorted(variables)
        if k in arrays and not variables[k].shape.is_compatible_with(arrays[k].shape)
    ]
    if (missing or spare or wrong) and not skip_mismatch:
        what = [f"missing {', '.join(missing)}"] if missing else []
        what += [f"unknown {', '.join(spare)}"] if spare else []
        what += [f"mismatched shapes {'; '.join(wrong)}"] if wrong else []
        raise ValueError(
            f"The weights in {path} do not match model {model.name!r}: {'. '.join(what)}. "
            "skip_mismatch=True loads the matching ones"
        )
    refused = {w.partition(":")[0] for w in wrong}
    for name, variable in variables.items():
        if name in arrays and name not in refused:
            variable.assign(arrays[name].astype(variable.dtype.np))
    for prefix, layer in owners.items():
        layer.load_own_variables(stored[prefix])


def _split_stored(
    arrays: dict[str, np.ndarray], owners: dict[str, Any]
) -> tuple[dict[str, np.ndarray], dict[str, dict[str, np.ndarray]]]:
    """Separate the weights from the arrays of layers that override `save_own_variables`."""
    stored: dict[str, dict[str, np.ndarray]] = {prefix: {} for prefix in owners}
    weights = {}
    for name, value in arrays.items():
        way, marked, key = name.partition(_OWN)
        if marked and way + marked in stored:
            stored[way + marked][key] = value
        else:
            weights[name] = value
    return weights, stored


# ---- backups ---------------------------------------------------------------------------------------------------------

BACKUP_FORMAT = "opwright.backup"
_MODEL, _OPTIMIZER = "model.", "optimizer."


@dataclasses.dataclass(frozen=True)
class Backup:
    """Content of a backup. epoch: the number of finished epochs; arrays: weights and state by name."""

    path: str
    epoch: int
    arrays: dict[str, np.ndarray]

    def restore(self, model: Any) -> None:
        """Restore weights and optimizer state. Raises ValueError for those of another model."""
        assign(model, self._part(_MODEL), self.path)
        optimizer, state = model.optimizer, self._part(_OPTIMIZER)
        if optimizer is None or not state:
            return
        if not optimizer.built:
            optimizer.build(model.trainable_weights)
        variables = _optimizer_state(optimizer)
        if variables.keys() != state.keys() or any(v.shape.dims != state[k].shape for k, v in variables.items()):
            raise ValueError(
                f"The backup in {self.path} was created with another optimizer than "
                f"{type(optimizer).__name__} of {len(variables)} variables; it has {len(state)}"
            )
        for name, variable in variables.items():
            variable.assign(state[name].astype(variable.dtype.np))

    def _part(self, prefix: str) -> dict[str, np.ndarray]:
        return {k.removeprefix(prefix): v for k, v in self.arrays.items() if k.startswith(prefix)}


def _optimizer_state(optimizer: Any) -> dict[str, Any]:
    return {f"{i:04d}": v for i, v in enumerate(optimizer.variables)}


def write_backup(path: str, model: Any, epoch: int) -> None:
    """Write a backup of a model and its optimizer after `epoch` epochs; the file is replaced atomically."""
    arrays = {f"{_MODEL}{name}": array for name, array in arrays_of(model).items()}
    if model.optimizer is not None and model.optimizer.built:
        arrays.update(
            (f"{_OPTIMIZER}{k}", np.asarray(v.read_array())) for k, v in _optimizer_state(model.optimizer).items()
        )
    with replacing(path) as file:
        file.write(to_bytes(arrays, {"format": BACKUP_FORMAT, "version": "1", "epoch": str(epoch)}))


def read_backup(path: str) -> Backup:
    """Read a backup. Raises FileNotFoundError, or DataLossError for a corrupt file."""
    with open(path, "rb") as file:
        arrays, metadata = from_bytes(file.read(), path)
    epoch = metadata.get("epoch", "")
    if metadata.get("format") != BACKUP_FORMAT or not epoch.isdecimal():
        raise DataLossError(
            what=f"{path} is not a backup of training",
            found=metadata or "no metadata",
            wanted=f"format {BACKUP_FORMAT} and a number of epochs",
            do="remove it",
        )
    return Backup(path, int(epoch), arrays)
