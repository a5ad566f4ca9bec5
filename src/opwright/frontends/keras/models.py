"""Import of Keras models.

Lives here: `from_keras`. Not here: files (archives.py), configurations (configurations.py), weights (weights.py).
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Mapping
from typing import Any

from ...core.errors import InvalidArgumentError, OpError
from ...nn.applications.own_layers import LAYERS
from ...nn.assets import restore_assets
from ...nn.configuration import CUSTOM, CustomObjectScope
from ...nn.function_code import SafeModeScope
from ...nn.hdf5_weights import OPTIMIZER, assign_optimizer, assign_weights
from ...nn.legacy_hdf5 import assign_legacy_optimizer, assign_legacy_weights
from ...nn.model import Model
from ...nn.model_config import compile_arguments, deserialize
from ...nn.shared_objects import ObjectSharingScope
from ..importing import MALFORMED
from .archives import Archive
from .configurations import ConfigurationConverter
from .legacy_files import LegacyFile
from .traced import TracedLayer, TracedModel, backend
from .weights import assign_from_model


def from_keras(
    model: str | os.PathLike[str] | Any,
    *,
    custom: Mapping[str, Any] | None = None,
    compile: bool = False,
    safe_mode: bool | None = True,
) -> Model:
    """Return a model of Keras 3 as a `keras.Model` of Opwright, with its weights.

    model: a .keras file, or an .h5 file of Keras 2 or 3, which need h5py but not Keras; or a Keras model object of any
    backend: Sequential or functional, models in models included. The backends jax and torch record layers of an object
    that have no equivalent, and models that are classes of users (`from_jax`, `from_torch`). custom: Opwright classes
    and functions by their name in Keras, such as {"Package>Scale": Scale} or {"Scale": Scale}; registered ones
    (`register_keras_serializable`) are known. compile: whether the model of a file is compiled as it was, with the
    state of its optimizer; otherwise it is not compiled for training: call `compile`. safe_mode: False runs Python code
    of lambdas, which a file may have; True refuses it, None does what the caller's `SafeModeScope` says.

    raises UnimplementedError that lists all layers, operations and arguments without an equivalent,
    InvalidArgumentError for damaged files, FailedPreconditionError without h5py
    """
    with SafeModeScope(safe_mode), ObjectSharingScope():
        return _from_keras(model, dict(custom or {}), compile)


def _from_keras(model: Any, custom: dict[str, Any], compile: bool) -> Model:
    if isinstance(model, str | os.PathLike) and os.fspath(model).endswith((".h5", ".hdf5")):
        return _of_legacy_file(LegacyFile(model), custom, compile)
    if isinstance(model, str | os.PathLike) or hasattr(model, "read"):
        with Archive(model) as archive:
            result, converter = _model_of(archive.configuration, custom, archive.path)
            weights = archive.weights()
            assign_weights(result, converter.class_names, weights)
            restore_assets(result, archive.files(), converter.class_names)
            if compile and archive.configuration.get("compile_config"):
                _compile(result, converter, archive.configuration["compile_config"], custom)
                if result.optimizer is not None and OPTIMIZER in weights:
                    result.optimizer.build(result.trainable_weights)
                    assign_optimizer(result.optimizer, weights)
        return result
    serialize = getattr(sys.modules.get("keras.saving"), "serialize_keras_object", None)
    if serialize is None or not hasattr(model, "get_config"):
        raise InvalidArgumentError(
            op="from_keras", what="this is neither a Keras model nor a path", found=type(model).__name__
        )
    if not isinstance(getattr(model, "layers", None), list):
        raise InvalidArgumentError(op="from_keras", what="this Keras object is not a model", found=type(model).__name__)
    name = str(getattr(model, "name", "model"))
    recorded = backend()
    networks = (sys.modules["keras"].Sequential, sys.modules["keras.src.models.functional"].Functional)
    if recorded and model.built and not isinstance(model, networks) and not _registered(model, custom):
        return TracedModel(model)
    result, _ = _model_of(serialize(model), custom, name, _layers_of(model) if recorded else {})
    assign_from_model(result, model)
    return result


def _of_legacy_file(file: LegacyFile, custom: dict[str, Any], compile: bool) -> Model:
    """Return the model of an .h5 file."""
    result, converter = _model_of(file.configuration, custom, file.path)
    assign_legacy_weights(result, file.weights)
    if compile and file.configuration.get("compile_config"):
        _compile(result, converter, file.configuration["compile_config"], custom)
        if result.optimizer is not None:
            result.optimizer.build(result.trainable_weights)
            assign_legacy_optimizer(result.optimizer, file.root)
    return result


def _registered(model: Any, custom: Mapping[str, Any]) -> bool:
    """Return whether a class of Opwright stands for the class of a Keras model."""
    name = sys.modules["keras.saving"].get_registered_name(type(model))
    return any(key in names for key in (name, type(model).__name__) for names in (custom, CUSTOM))


def _layers_of(model: Any) -> dict[str, Any]:
    """Return the layers of a Keras model and of models in it by name, those of one name left out."""
    found: dict[str, Any] = {}
    several = set()
    for layer in model._flatten_layers(include_self=False):
        if found.setdefault(layer.name, layer) is not layer:
            several.add(layer.name)
    return {name: layer for name, layer in found.items() if name not in several and layer.built}


def _compile(model: Model, converter: ConfigurationConverter, config: Any, custom: dict[str, Any]) -> None:
    """Compile a model with the arguments that a file of Keras has."""
    known = inspect.signature(Model.compile).parameters
    arguments = {k: v for k, v in converter.convert(config).items() if k in known and v is not None}
    converter.check("the arguments of compile")
    model.compile(**compile_arguments(arguments, {k.rpartition(">")[2]: v for k, v in custom.items()}))


def _model_of(
    configuration: Any, custom: dict[str, Any], source: str, layers: Mapping[str, Any] | None = None
) -> tuple[Model, ConfigurationConverter]:
    converter = ConfigurationConverter(custom, layers)
    try:
        converted = converter.convert(configuration)
        converter.check(source)
        by_name = {
            "TracedLayer": TracedLayer,
            **LAYERS,
            **{k.rpartition(">")[2]: v for k, v in custom.items()},
            **custom,
        }
        with CustomObjectScope(by_name):
            model = deserialize(converted)
            built_for = configuration.get("build_config") if isinstance(model, Model) else None
            if isinstance(built_for, dict) and not model.built and built_for.get("input_shape") is not None:
                model.build(tuple(built_for["input_shape"]))
    except OpError:
        raise
    except MALFORMED as error:
        raise InvalidArgumentError(
            op="from_keras", what=f"the configuration is not that of a model: {error}", found=source
        ) from error
    if not isinstance(model, Model):
        raise InvalidArgumentError(op="from_keras", what="this is not a model", found=type(model).__name__)
    if not model.built:
        raise InvalidArgumentError(
            op="from_keras",
            what="the model has no weights yet",
            found=source,
            do="call the Keras model, or its build(input_shape), before",
        )
    return model, converter
