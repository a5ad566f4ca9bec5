"""Files of whole models: .keras archives of configuration and weights, .h5 files, SavedModel folders by `export`.

Lives here: `save_model`, `load_model`, `export`.
Not here: files of weights (weights_io.py, hdf5_weights.py), .h5 files (legacy_hdf5.py), files of layers (assets.py),
SavedModel folders (saved/), configurations (model_config.py; for Keras, keras_form.py).
"""

from __future__ import annotations

import importlib
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
from ..core.errors import UnimplementedError
from ..core.extras import optional_module
from ..core.files import replacing
from ..tracing.function import Function
from . import quantizers
from .assets import assets_of, restore_assets
from .configuration import CustomObjectScope
from .function_code import SafeModeScope
from .hdf5_weights import (
    OPTIMIZER,
    assign_optimizer,
    assign_weights,
    is_quantized,
    layer_paths,
    open_weights,
    weights_file,
)
from .keras_form import KERAS_VERSION, keras_configuration
from .keras_tensor import KerasTensor
from .legacy_hdf5 import model_file
from .model_config import deserialize, has_build_config, plain_value, serialize_model
from .shared_objects import ObjectSharingScope
from .weights_io import (
    FORMAT,
    H5_WEIGHTS,
    NotFound,
    arrays_of,
    assign,
    corrupt,
    file_content,
    members,
    parse_arrays,
    to_bytes,
)

OWN_CONFIG = "opwright.json"
"""The own configuration, next to that of Keras."""
NOT_MODELS = (".png", ".jpg", ".json", ".pkl", ".txt", ".tflite", ".onnx", ".pt", ".pb", ".zip", ".npz", ".safetensors")
"""Suffixes of files that are neither models nor folders."""


def save_model(
    model: Any, filepath: Any, overwrite: bool = True, keras_format: bool | None = None, **kwargs: Any
) -> None:
    """Save a model; see `Model.save`."""
    is_open = hasattr(filepath, "write")
    path = "file.keras" if is_open else os.fspath(filepath)
    if "save_format" in kwargs:
        raise ValueError(
            f"The `save_format` argument is deprecated: the name decides. Received: {kwargs['save_format']!r}"
        )
    if not overwrite and not is_open and os.path.exists(path):
        raise FileExistsError(f"{path} exists: pass overwrite=True")
    if path.endswith((".h5", ".hdf5")):
        include_optimizer = kwargs.pop("include_optimizer", True)
        if kwargs:
            raise ValueError(f"The following argument(s) are not supported with the .h5 format: {sorted(kwargs)}")
        content = model_file(model, include_optimizer)
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)  # as Keras for this format
        _write(path, content)
        return
    zipped = kwargs.pop("zipped", None) is not False
    if not path.endswith(".keras") and zipped:
        if path.endswith(NOT_MODELS):
            raise ValueError(
                "Invalid filepath extension for saving: a model is a .keras or .h5 file, or a SavedModel folder. "
                f"Received: filepath={path}"
            )
        export(model, path, **kwargs)
        return
    if path.endswith(".keras") and not zipped:
        raise ValueError(f"With `zipped=False` the model is a folder, whose name should not end in .keras: {path}")
    if kwargs:
        raise ValueError(f"The following argument(s) are not supported with the .keras format: {sorted(kwargs)}")
    files = keras_files(model, keras_format)
    if not zipped:
        for name, content in files.items():
            os.makedirs(os.path.dirname(os.path.join(path, name)), exist_ok=True)
            _write(os.path.join(path, name), content)
    elif is_open:
        filepath.write(_archive(files))
    else:
        _write(path, _archive(files))


def _write(path: str, content: bytes) -> None:
    with replacing(path) as file:
        file.write(content)


def keras_files(model: Any, keras_format: bool | None = None) -> dict[str, bytes]:
    """Return the files of a .keras archive by name: configuration, weights, state of the optimizer, assets.

    keras_format: whether Keras reads them; by default if it can
    """
    config = serialize_model(model)
    shapes = getattr(model, "_build_shapes", None)
    if not has_build_config(model):
        config["build_config"] = None if shapes is None else plain_value(shapes)
    if model._network is None and model._symbolic_inputs is not None:
        seen = nest.map_structure(lambda t: {"shape": list(t.shape), "dtype": t.dtype.name}, model._symbolic_inputs)
        config["inputs"] = plain_value(seen)
    if ways := {
        path: plain_value(quantizers.serialize(layer.quantization_config))
        for path, layer in layer_paths(model, {}, "", set())
        if is_quantized(layer)
    }:
        config["quantized"] = ways
    if model.compiled:
        config["compile_config"] = plain_value(model.get_compile_config())
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
    return {**files, **assets_of(model)}


def _archive(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return buffer.getvalue()


def _folder_members(path: str) -> dict[str, bytes]:
    """Return the files of a model that was saved with zipped=False."""
    files = {}
    for directory, _, names in os.walk(path):
        for name in names:
            full = os.path.join(directory, name)
            with open(full, "rb") as file:
                files[os.path.relpath(full, path).replace(os.sep, "/")] = file.read()
    return files


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


def load_model(
    filepath: Any,
    custom_objects: dict[str, Any] | None = None,
    compile: bool = True,
    safe_mode: bool | None = True,
    **kwargs: Any,
) -> Any:
    """Load a model saved by `Model.save`, or a .keras file of Keras 3. custom_objects: user classes and functions by
    name.

    compile: whether to restore its compilation. safe_mode: whether Python code in the file, of lambdas, raises
    ValueError; False runs it, which is as safe as its author is trusted. raises DataLossError for a corrupt file,
    TypeError for unknown classes
    """
    with SafeModeScope(safe_mode), ObjectSharingScope():
        return _load_model(filepath, custom_objects, compile)


def _load_model(filepath: Any, custom_objects: dict[str, Any] | None, compile: bool) -> Any:
    path = "the file" if hasattr(filepath, "read") else os.fspath(filepath)
    is_folder = not hasattr(filepath, "read") and os.path.isdir(path)
    if is_folder and not os.path.isfile(os.path.join(path, "config.json")):
        return _package().saved_model.load(path)
    if path.endswith((".h5", ".hdf5")) and os.path.isfile(path):
        return _package().from_keras(path, custom=custom_objects, compile=compile, safe_mode=None)
    if not is_folder and not hasattr(filepath, "read") and not path.endswith(".keras"):
        raise NotFound(f"File format not supported: filepath={path}. Models are .keras and .h5 files, or folders")
    content = b"" if is_folder else file_content(filepath)
    files = _folder_members(path) if is_folder else members(content, path)
    try:
        config = json.loads(files[OWN_CONFIG if OWN_CONFIG in files else "config.json"])
        if H5_WEIGHTS in files and OWN_CONFIG not in files:
            source = path if content and not hasattr(filepath, "read") else io.BytesIO(content or _archive(files))
            return _package().from_keras(source, custom=custom_objects, compile=compile, safe_mode=None)
        weights = None if H5_WEIGHTS in files else files["model.safetensors"]
    except (KeyError, ValueError) as error:
        raise corrupt(path, error) from None
    if any(b'"KerasOperation"' in files.get(name, b"") for name in (OWN_CONFIG, "config.json")):
        operations = importlib.import_module(f"{_package().__name__}.frontends.keras.operations")  # in a higher layer
        custom_objects = {**(custom_objects or {}), "KerasOperation": operations.KerasOperation}
    model = deserialize(config, custom_objects)
    shapes = deserialize(config.get("build_config"), custom_objects)
    if not model.built and shapes is not None and not has_build_config(model):
        model.build(tuple(shapes) if isinstance(shapes, list) else shapes)
    elif config.get("inputs") is not None:
        model._infer_outputs(_symbolic_inputs(config["inputs"]))  # creates the weights of a subclassed model
    ways = config.get("quantized", {})
    ways = dict.fromkeys(ways) if isinstance(ways, list) else ways  # older files have int8 alone
    for path, layer in layer_paths(model, {}, "", set()):
        if path in ways and not is_quantized(layer):  # inside of one that has no policy for it
            way = quantizers.get(ways[path]) or "int8"
            layer.quantize(config=way, type_check=False)
            if isinstance(way, quantizers.CalibratedConfig):
                layer.discard_kernel()
    root = None if weights is not None else open_weights(files[H5_WEIGHTS], path)
    if root is None:
        assign(model, parse_arrays(weights or b"", path), path)
    else:
        assign_weights(model, {}, root)
    restore_assets(model, files)
    if compile and config.get("compile_config"):
        with CustomObjectScope(custom_objects or {}):
            model.compile_from_config(config["compile_config"])
        if root is not None and model.optimizer is not None and OPTIMIZER in root:
            model.optimizer.build(model.trainable_weights)
            assign_optimizer(model.optimizer, root)
        if "optimizer.safetensors" in files and model.optimizer is not None:
            model.optimizer.build(model.trainable_weights)
            state = parse_arrays(files["optimizer.safetensors"], path)
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
