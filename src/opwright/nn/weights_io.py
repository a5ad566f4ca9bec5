"""Files of weights and models.

Lives here: .safetensors files of weights, .keras archives of configuration and weights, backups of training.
Not here: .weights.h5 (hdf5_weights.py), files of layers (assets.py), SavedModel folders (saved/), configurations
(model_config.py; for Keras, keras_form.py).

A weight is stored by its path in the model: indices of layers, then its name, as in "0.kernel" or "2.1.bias"; names of
layers, which depend on global counters, are not part of it.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import io
import json
import os
import sys
import zipfile
from types import ModuleType
from typing import Any

import numpy as np

from ..core import nest
from ..core.errors import DataLossError, UnimplementedError
from ..core.extras import optional_module
from ..core.files import replacing
from ..eager.variable import Variable
from ..tracing.function import Function
from .assets import assets_of, restore_assets
from .hdf5_weights import (
    MOST_RATIO,
    OPTIMIZER,
    assign_optimizer,
    assign_weights,
    open_weights,
    stored_arrays,
    stores_itself,
    weights_file,
)
from .keras_form import KERAS_VERSION, keras_configuration
from .keras_tensor import KerasTensor
from .legacy_hdf5 import assign_legacy_weights, model_file, weights_of
from .model_config import compile_arguments, compile_config, deserialize, plain_value, serialize

FORMAT = {"format": "opwright.weights", "version": "1"}
HDF5 = ".weights.h5"
H5_WEIGHTS, OWN_CONFIG = "model.weights.h5", "opwright.json"
"""Members of .keras files: weights as Keras has them, and the own configuration next to that of Keras."""
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
    if path.endswith(HDF5):
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


def save_weights(model: Any, filepath: Any, overwrite: bool = True) -> None:
    """Save the weights of a model; see `Model.save_weights`."""
    path = _checked_path(filepath)
    if not overwrite and os.path.exists(path):
        raise FileExistsError(f"{path} exists: pass overwrite=True")
    arrays = arrays_of(model)
    if not arrays and not model.built:
        raise ValueError(f"Model {model.name!r} has no weights yet: call it, or `build(input_shape)`, first")
    content = weights_file(model) if path.endswith(HDF5) else to_bytes(arrays)
    with replacing(path) as file:
        file.write(content)


def _parse_arrays(content: bytes, path: str) -> dict[str, np.ndarray]:
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


def load_weights(model: Any, filepath: Any, skip_mismatch: bool = False) -> None:
    """Load the weights of a model; see `Model.load_weights`."""
    path = os.fspath(filepath)
    if not path.endswith((".safetensors", ".keras", ".h5", ".hdf5")):
        raise ValueError(
            f"{path}: File format not supported. Weights are in .safetensors, {HDF5}, .keras and .h5 files, by name"
        )
    content = _content(path)
    if path.endswith(".keras"):
        files = _members(content, path)
        name = next((n for n in (H5_WEIGHTS, "model.safetensors") if n in files), None)
        if name is None:
            raise DataLossError(what=f"{path} has no weights", found=", ".join(list(files)[:5]))
        path, content = f"the {name} of {path}", files[name]
    if path.endswith(".safetensors") or path.startswith("the model.safetensors"):
        assign(model, _parse_arrays(content, path), path, skip_mismatch)
        return
    if not model.built:
        raise ValueError(f"Model {model.name!r} has no weights to set yet: call it, or `build(input_shape)`, first")
    root = open_weights(content, path)
    older = weights_of(root)
    if older is None:
        assign_weights(model, {}, root, skip_mismatch)
    else:
        assign_legacy_weights(model, older, skip_mismatch)


def _content(filepath: Any) -> bytes:
    """Return the bytes of a file, or of an open one. Raises NotFound."""
    if hasattr(filepath, "read"):
        read: bytes = filepath.read()
        return read
    path = os.fspath(filepath)
    if not os.path.isfile(path):
        raise NotFound(f"File not found: filepath={path}. Please ensure the file is an accessible file.")
    with open(path, "rb") as file:
        return file.read()


def _members(content: bytes, path: str) -> dict[str, bytes]:
    """Return the members of a .keras file. Raises DataLossError for a file that is none, or expands beyond measure."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(member.file_size for member in archive.infolist()) > MOST_RATIO * len(content) + (1 << 20):
                raise DataLossError(what=f"{path} expands to more than {MOST_RATIO} times its size")
            return {name: archive.read(name) for name in archive.namelist()}
    except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        if isinstance(error, DataLossError):
            raise
        raise DataLossError(what=f"{path} is not a model saved by `Model.save`, or is corrupt: {error}") from None


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


# ---- whole models ----------------------------------------------------------------------------------------------------


def save_model(
    model: Any, filepath: Any, overwrite: bool = True, keras_format: bool | None = None, **kwargs: Any
) -> None:
    """Save a model; see `Model.save`."""
    is_open = hasattr(filepath, "write")
    path = "file.keras" if is_open else os.fspath(filepath)
    if "save_format" in kwargs:
        raise ValueError(f"The argument `save_format` is gone: the name decides. Received: {kwargs['save_format']!r}")
    if not overwrite and not is_open and os.path.exists(path):
        raise FileExistsError(f"{path} exists: pass overwrite=True")
    if path.endswith((".h5", ".hdf5")):
        include_optimizer = kwargs.pop("include_optimizer", True)
        if kwargs:
            raise ValueError(f"The following argument(s) are not supported with the .h5 format: {sorted(kwargs)}")
        content = model_file(model, include_optimizer)
        with replacing(path) as file:
            file.write(content)
        return
    if not path.endswith(".keras"):
        export(model, path, **kwargs)
        return
    if unknown := sorted(set(kwargs) - {"zipped"}):
        raise ValueError(f"The following argument(s) are not supported with the .keras format: {unknown}")
    config = serialize(model)
    shapes = getattr(model, "_build_shapes", None)
    config["build_config"] = None if shapes is None else plain_value(shapes)
    if model._network is None and model._symbolic_inputs is not None:
        seen = nest.map_structure(lambda t: {"shape": list(t.shape), "dtype": t.dtype.name}, model._symbolic_inputs)
        config["inputs"] = plain_value(seen)
    if model.compiled:
        config["compile_config"] = compile_config(model._trainer.arguments)
    arrays = arrays_of(model)
    form = _keras_form(model, keras_format)
    version = {"keras_version": KERAS_VERSION} if form else {}
    files = {"metadata.json": json.dumps({**FORMAT, "format": "opwright.model", **version}).encode()}
    if form is not None:
        files["config.json"] = json.dumps(form, indent=1).encode()
        files[OWN_CONFIG] = json.dumps(config, indent=1).encode()
        files[H5_WEIGHTS] = weights_file(model, model.optimizer)
    else:
        files["config.json"] = json.dumps(config, indent=1).encode()
        files["model.safetensors"] = to_bytes(arrays)
        if model.optimizer is not None and model.optimizer.built:
            state = {f"{i:04d}": np.asarray(v.read_array()) for i, v in enumerate(model.optimizer.variables)}
            files["optimizer.safetensors"] = to_bytes(state)
    files.update(assets_of(model))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    if is_open:
        filepath.write(buffer.getvalue())
        return
    with replacing(path) as file:
        file.write(buffer.getvalue())


def _keras_form(model: Any, keras_format: bool | None) -> dict[str, Any] | None:
    """Return what Keras reads as the model's configuration; None if the file is not for Keras."""
    if keras_format is False or (keras_format is None and importlib.util.find_spec("h5py") is None):
        return None
    optional_module("h5py")
    try:
        return keras_configuration(model)
    except UnimplementedError:
        if keras_format:
            raise
        return None


def load_model(filepath: Any, custom_objects: dict[str, Any] | None = None, compile: bool = True, **kwargs: Any) -> Any:
    """Load a model saved by `Model.save`, or a .keras file of Keras 3. custom_objects: user classes and functions by
    name.

    compile: whether to restore its compilation. raises DataLossError for a corrupt file, TypeError for unknown classes
    """
    path = "the file" if hasattr(filepath, "read") else os.fspath(filepath)
    if not hasattr(filepath, "read") and os.path.isdir(path):
        return _package().saved_model.load(path)
    if path.endswith((".h5", ".hdf5")) and os.path.isfile(path):
        return _package().from_keras(path, custom=custom_objects, compile=compile)
    content = _content(filepath)
    files = _members(content, path)
    try:
        config = json.loads(files[OWN_CONFIG if OWN_CONFIG in files else "config.json"])
        if H5_WEIGHTS in files and OWN_CONFIG not in files:
            return _package().from_keras(
                io.BytesIO(content) if hasattr(filepath, "read") else path, custom=custom_objects, compile=compile
            )
        weights = None if H5_WEIGHTS in files else files["model.safetensors"]
    except (KeyError, ValueError) as error:
        raise DataLossError(what=f"{path} is not a model saved by `Model.save`, or is corrupt: {error}") from None
    model = deserialize(config, custom_objects)
    shapes = deserialize(config.get("build_config"), custom_objects)
    if not model.built and shapes is not None:
        model.build(tuple(shapes) if isinstance(shapes, list) else shapes)
    elif config.get("inputs") is not None:
        model._infer_outputs(_symbolic_inputs(config["inputs"]))  # creates the weights of a subclassed model
    root = None if weights is not None else open_weights(files[H5_WEIGHTS], path)
    if root is None:
        assign(model, _parse_arrays(weights or b"", path), path)
    else:
        assign_weights(model, {}, root)
    restore_assets(model, files)
    if compile and config.get("compile_config"):
        model.compile(**compile_arguments(config["compile_config"], custom_objects))
        if root is not None and model.optimizer is not None and OPTIMIZER in root:
            model.optimizer.build(model.trainable_weights)
            assign_optimizer(model.optimizer, root)
        if "optimizer.safetensors" in files:
            model.optimizer.build(model.trainable_weights)
            state = _parse_arrays(files["optimizer.safetensors"], path)
            for i, variable in enumerate(model.optimizer.variables):
                if f"{i:04d}" in state:
                    variable.assign(state[f"{i:04d}"].astype(variable.dtype.np))
    return model


def _symbolic_inputs(recorded: Any) -> list[Any] | KerasTensor | dict[Any, Any]:
    """Return KerasTensors with the recorded shapes and dtypes."""
    if isinstance(recorded, list):
        return [_symbolic_inputs(k) for k in recorded]
    if set(recorded) == {"shape", "dtype"} and isinstance(recorded["dtype"], str):
        return KerasTensor(recorded["shape"], recorded["dtype"])
    return {k: _symbolic_inputs(v) for k, v in recorded.items()}


def export(model: Any, filepath: Any, input_signature: Any = None, **kwargs: Any) -> None:
    """Export a model; see `Model.export`."""
    if input_signature is not None:
        training = {"training": False} if model._call_spec().training else {}
        specs = list(input_signature) if isinstance(input_signature, (list, tuple)) else [input_signature]
        kwargs["signatures"] = Function(lambda *inputs: model(*inputs, **training), specs, name="serve")
    _package().saved_model.save(model, os.fspath(filepath), **kwargs)


def _package() -> ModuleType:
    return sys.modules[__name__.partition(".")[0]]  # its saved_model is in a higher layer


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
