"""`keras` and its private modules as names of `opwright.keras`, so that Keras's own test files run unmodified.

Lives here: the import finder, where a name of `keras.src` is looked for, what has no public name.
Not here: running and counting (__main__.py), Keras's sources, which are no part of this package.

Test files import from where Keras keeps its code (`from keras.src.layers.core.dense import Dense`). A name is looked
for in the public module of the same area, in `opwright.keras`, and then wherever it has the only public name. Test
modules and their helpers (`keras.src.testing`) are Keras's own, from the folder KERAS_SOURCES. `tensorflow` is
`opwright`. The backend's name is "tensorflow": its branches of tests use `tf`.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import pathlib
import re
import sys
import types
from typing import Any

import numpy as np

import opwright as ow
from opwright import keras
from opwright.core import nest
from opwright.nn import bounding_boxes, function_code, model_config, quantizers, reduction, shared_objects
from opwright.nn.callbacks import metric_monitors
from opwright.nn.keras_ops.promotion import result_type
from opwright.nn.layer_calls import mask_of, set_mask
from opwright.nn.layers import quantized_weights
from opwright.nn.training import output_losses, output_metrics, trainer
from opwright.optimizers import gradients

SOURCES = pathlib.Path(os.environ["KERAS_SOURCES"])
"""Folder that contains Keras's package `keras`, unpacked from its source distribution."""


def _public() -> dict[str, Any]:
    """Return classes and functions of `opwright.keras` that have one meaning, by name."""
    by_name: dict[str, Any] = {}
    for module in [keras, *(getattr(keras, n) for n in keras.__all__)]:
        if not isinstance(module, types.ModuleType):
            continue
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if isinstance(value, type) or name not in by_name:
                by_name[name] = value
    return by_name


def backend_name():
    """Return the name of the backend for Keras's tests."""
    return "tensorflow"


class Variable(ow.Variable):
    """A variable by Keras's constructor, which `keras.Variable` is not: it takes values as TensorFlow's does."""

    __slots__ = ()

    def __init__(self, initializer, shape=None, dtype=None, trainable=True, autocast=True, name=None, **others):
        value = keras.initializers.get(initializer) if isinstance(initializer, str) else initializer
        if callable(value):
            value = value(shape, dtype=dtype or keras.config.floatx())
        if dtype is None and not hasattr(value, "dtype") and np.asarray(value).dtype.kind == "f":
            dtype = keras.config.floatx()
        super().__init__(value, trainable=trainable, name=name, dtype=dtype)


_value_of = ow.Variable.value
SOURCE_FILES = str(SOURCES)


class _Value:
    """`Variable.value`: for Keras's tests a property, for all others the method."""

    def __get__(self, variable, owner=None):
        if variable is None:
            return _value_of
        caller = sys._getframe(1).f_code.co_filename
        return _value_of(variable) if caller.startswith(SOURCE_FILES) else types.MethodType(_value_of, variable)


ow.Variable.value = _Value()


def _clip_gradients(self, grads):
    """Return gradients as `apply` clips them."""
    if self.clipnorm and self.clipnorm > 0:
        return [gradients.clip_norm(g, self.clipnorm) for g in grads]
    if self.global_clipnorm and self.global_clipnorm > 0:
        return gradients.clip_global_norm(grads, self.global_clipnorm)
    return [gradients.clip_value(g, self.clipvalue) for g in grads] if self.clipvalue else grads


def _apply_weight_decay(self, variables):
    """Decay weights as `apply` does."""
    for v in variables:
        if (decay := self.decay_of(v)) is not None and self._decays(v):
            self.update_by("decay", v, v, (), (decay, gradients.scalar(self.learning_rate, v.dtype)))


ow.compat.v1.SummaryMetadata = type("SummaryMetadata", (), {})
for _name, _member in {
    "_clip_gradients": _clip_gradients,
    "_apply_weight_decay": _apply_weight_decay,
    "_model_variables_moving_average": property(lambda self: self._averages),
    "_accumulated_gradients": property(lambda self: self._accumulated),
}.items():
    setattr(keras.optimizers.Optimizer, _name, _member)  # Keras's private names of what its tests read
keras.backend.backend = keras.config.backend = backend_name
keras.KerasTensor._keras_history = property(lambda self: self.history)
trainer.Trainer._loss_tracker = property(lambda self: self._trainer.tracker)
keras.Model._operations = property(lambda self: self.operations)
keras.Sequential._functional = property(lambda self: self if self._network is None else keras.Model(*_ends(self)))


quantized_weights.QuantizedWeights._embeddings = property(lambda self: self._kernel)
quantized_weights.QuantizedWeights._int4_block_size = property(lambda self: self.block_size)
quantized_weights.QuantizedWeights.original_kernel_shape = property(lambda self: self._kernel_shape)
quantized_weights.QuantizedWeights._orig_output_dim = property(lambda self: self._kernel_shape[-1])
quantized_weights.QuantizedWeights._int4_unpacked_column_size = property(lambda self: self._tables()[0].matrix()[1])
quantized_weights.QuantizedWeights.inputs_quantizer = property(
    lambda self: self.activation_quantizer(
        None if self.quantization_mode == "int4" else keras.quantizers.AbsMaxQuantizer()
    )
)


def _ends(model):
    return model.input, model.output


class TensorFlowTrainer(trainer.Trainer):
    """Training methods for layers, as Keras's tests mix them in: `Trainer.__init__` takes no arguments."""

    _specs_of = keras.Model._specs_of

    def __init__(self):
        self._init_training()


def tensors(structure):
    """Return a structure with tensors in the place of arrays, as training steps have them."""
    return nest.map_structure(lambda x: ow.convert_to_tensor(x) if isinstance(x, np.ndarray) else x, structure)


_find = model_config.find


def _find_in_tests(name, module, *rest):
    """Return a class by name; also one of a test file, which for Keras is a module of its own package."""
    loaded = sys.modules.get(str(module), None) if str(module).endswith("_test") else None
    return getattr(loaded, name, None) or _find(name, module, *rest)


model_config.find = _find_in_tests


class CompileLoss(output_losses.OutputLosses):
    """The losses of `compile` by the constructor of Keras's private class."""

    def __init__(self, loss, loss_weights=None, reduction="sum_over_batch_size", output_names=None):
        super().__init__(loss, loss_weights, output_names)

    variables = property(lambda self: [v for m in self.metrics for v in m.variables])

    def build(self, y_true, y_pred):
        super().build(tensors(y_true), tensors(y_pred))

    def __call__(self, y_true, y_pred, sample_weight=None):
        return super().__call__(tensors(y_true), tensors(y_pred), tensors(sample_weight))


class CompileMetrics(output_metrics.OutputMetrics):
    """The metrics of `compile` by the constructor of Keras's private class."""

    def __init__(self, metrics, weighted_metrics, name="compile_metric", output_names=None):
        super().__init__(metrics, weighted_metrics, output_names)

    built = property(lambda self: self.rows is not None)

    def build(self, y_true, y_pred):
        super().build(tensors(y_true), tensors(y_pred))

    def update_state(self, y_true, y_pred, sample_weight=None):
        super().update_state(tensors(y_true), tensors(y_pred), tensors(sample_weight))


def compute_output_spec(function, *args, **kwargs):
    """Return KerasTensors of what a function returns for KerasTensors."""
    return keras.layers.Lambda(lambda xs: function(*xs[0], **xs[1])).compute_output_spec((args, kwargs))


def _dtype_name(dtype):
    """Return the name of a dtype of PyTorch, whose results Keras's tests compare, or the dtype."""
    return str(dtype).removeprefix("torch.") if str(dtype).startswith("torch.") else dtype


BACKEND = {
    "backend": backend_name,
    "convert_to_numpy": lambda x: np.asarray(x.numpy() if hasattr(x, "numpy") else x),
    "convert_to_tensor": lambda x, dtype=None, sparse=None, ragged=None: keras.ops.convert_to_tensor(x, dtype),
    "Variable": Variable,
    "KerasTensor": keras.KerasTensor,
    "is_tensor": lambda x: ow.is_tensor(x) and not isinstance(x, ow.Variable),
    "result_type": lambda *dtypes: getattr(result_type(*dtypes), "name", result_type(*dtypes)),
    "cast": keras.ops.cast,
    "SUPPORTS_SPARSE_TENSORS": False,
    "SUPPORTS_RAGGED_TENSORS": False,
    "SUPPORTS_COMPLEX_DTYPES": True,
    "IS_THREAD_SAFE": True,
    "get_keras_mask": mask_of,
    "set_keras_mask": set_mask,
    "name_scope": keras.name_scope,
    "compute_output_spec": compute_output_spec,
    "random": keras.random,
    "config": keras.config,
    "device": keras.device,
    "standardize_dtype": lambda dtype: keras.backend.standardize_dtype(_dtype_name(dtype)),
    "numpy": keras.ops,
    "nn": keras.ops.nn,
    "math": keras.ops,
    "core": keras.ops,
    "is_keras_tensor": keras.utils.is_keras_tensor,
}
AREAS: dict[str, tuple[Any, ...]] = {
    "backend": (BACKEND, keras.backend, keras.config, keras.ops),
    "layers": (keras.layers, keras),
    "models": (keras, keras.models),
    "ops": (keras.ops, keras.ops.nn, keras.ops.image, keras.ops.linalg),
    "saving": (keras.saving, keras.models),
    "legacy": (keras.saving, keras.losses),
    "utils": (keras.utils, keras.config),
    "dtype_policies": (keras.dtype_policies, keras.mixed_precision, keras.config),
    "trainers": (keras, keras.utils),
    "applications": (keras.applications.imagenet_utils, keras.applications),
}
MODULES = {
    "saving.serialization_lib": "saving",
    "saving.saving_lib": "saving",
    "saving.saving_api": "saving",
    "saving.object_registration": "saving",
}


class RegisteredNames(dict):
    """The registered name of each class."""

    def __missing__(self, thing):
        return keras.utils.get_registered_name(thing)


def _save_legacy(model, filepath, overwrite=True, include_optimizer=True):
    keras.saving.save_model(model, filepath, overwrite, include_optimizer=include_optimizer)


def _monitor_callback(monitor="val_loss", mode="auto", min_delta=0):
    return metric_monitors.MetricMonitor(monitor, mode, min_delta)


BOXES = "layers.preprocessing.image_preprocessing.bounding_boxes"
PRIVATE = {
    ("backend.tensorflow.trainer", "TensorFlowTrainer"): TensorFlowTrainer,
    ("backend.common.symbolic_scope", "in_symbolic_scope"): lambda: not ow.executing_eagerly(),
    ("trainers.compile_utils", "CompileLoss"): CompileLoss,
    ("trainers.compile_utils", "CompileMetrics"): CompileMetrics,
    ("models.functional", "Functional"): keras.Model,
    ("models", "Functional"): keras.Model,
    ("losses.loss", "squeeze_or_expand_to_same_rank"): reduction.same_rank,
    ("saving.saving_lib", "_MEMORY_UPPER_BOUND"): 0.5,
    ("saving.serialization_lib", "SafeModeScope"): function_code.SafeModeScope,
    ("saving.serialization_lib", "ObjectSharingScope"): shared_objects.ObjectSharingScope,
    ("saving.saving_lib", "_CONFIG_FILENAME"): "config.json",
    ("saving.saving_lib", "_METADATA_FILENAME"): "metadata.json",
    ("saving.saving_lib", "_VARS_FNAME"): "model.weights",
    ("saving.saving_lib", "save_weights_only"): keras.saving.save_weights,
    ("saving.saving_lib", "load_weights_only"): keras.saving.load_weights,
    ("legacy.saving.legacy_h5_format", "save_model_to_hdf5"): _save_legacy,
    ("legacy.saving.legacy_h5_format", "load_model_from_hdf5"): keras.saving.load_model,
    ("callbacks.monitor_callback", "MonitorCallback"): _monitor_callback,
    ("utils.summary_utils", "print_summary"): lambda model, *args, **kwargs: model.summary(*args, **kwargs),
    ("utils.summary_utils", "count_params"): lambda weights: sum(int(np.prod(w.shape)) for w in weights),
    ("backend.config", "standardize_data_format"): lambda value: value or keras.config.image_data_format(),
    ("utils.module_utils", "tensorflow"): ow,
    ("saving.object_registration", "GLOBAL_CUSTOM_OBJECTS"): keras.utils.get_custom_objects(),
    ("saving.object_registration", "GLOBAL_CUSTOM_NAMES"): RegisteredNames(),
    (f"{BOXES}.validation", "densify_bounding_boxes"): lambda boxes, is_batched=False, max_boxes=None: (
        bounding_boxes.densify(boxes, max_boxes)
    ),
    ("utils.backend_utils", "convert_tf_tensor"): lambda outputs, dtype=None: ow.convert_to_tensor(outputs, dtype),
    ("quantizers.quantization_config", "validate_and_resolve_config"): quantizers.resolve,
    ("dtype_policies.dtype_policy", "_get_quantized_dtype_policy_by_str"): keras.dtype_policies.get,
    ("utils.file_utils", "join"): os.path.join,
    ("utils.file_utils", "exists"): os.path.exists,
    ("utils.traceback_utils", "is_traceback_filtering_enabled"): lambda: False,
}
INTEGERS = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64")
FLOATS = ("bfloat16", "float16", "float32", "float64")
DTYPES = {"INT_TYPES": INTEGERS, "FLOAT_TYPES": FLOATS, "FLOAT8_TYPES": (), "BOOL_TYPES": ("bool",)}
DTYPES["ALLOWED_DTYPES"] = {"bool", *INTEGERS, *FLOATS, "string", "complex64", "complex128"}
KERAS_OWN = ("testing", "backend.common.backend_utils")
"""Modules whose source is Keras's: helpers of tests, and shapes that tests expect."""
EVERYWHERE = _public()
PUBLIC = {
    line.split()[0].rpartition(".")[2]
    for line in (pathlib.Path(__file__).parents[1] / "public_names" / "keras.txt").read_text().splitlines()
    if line.startswith("keras.")
}
"""Last parts of Keras's public names."""


class Unavailable:
    """A private or missing name of Keras: tests that use it fail, and others of the file run."""

    what = "is not part of opwright"

    def __new__(cls, *args, **kwargs):
        raise NotImplementedError(f"{cls.__name__} {cls.what}")


class Absent(types.ModuleType):
    """A private module of TensorFlow: tests that use it fail, and others of the file run."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (Unavailable,), {})


def _operation(name: str, places: Any) -> Any:
    """Return a class like Keras's of an operation: its objects apply the function of that name. None: no function."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    for place in places:
        for spelled in (snake, snake.replace("_", ""), *ALIASES.get(snake, ())):
            function = getattr(place, spelled, None)
            if function is not None and not isinstance(function, type):
                break
        else:
            continue
        break
    else:
        return None

    def __init__(self, *args, **kwargs):
        self.name = kwargs.pop("name", snake)
        self.args, self.kwargs = args, kwargs

    def __call__(self, *operands, **kwargs):
        own = (*self.args, *operands) if name in FUNCTIONS_FIRST else (*operands, *self.args)
        return function(*own, **{**self.kwargs, **kwargs})

    calls = dict.fromkeys(("__call__", "call", "symbolic_call", "compute_output_spec"), __call__)
    members = {"__init__": __init__, **calls}
    return type(name, (), members)


FUNCTIONS_FIRST = ("Einsum", "ForiLoop", "VectorizedMap", "WhileLoop")
"""Classes of operations whose constructors take what their functions take before the operands."""
ALIASES = {
    "group_norm": ("group_normalization",),
    "layer_norm": ("layer_normalization",),
    "rmsnorm": ("rms_normalization",),
    "rgbto_hsv": ("rgb_to_hsv",),
    "hsvto_rgb": ("hsv_to_rgb",),
    "rgbto_grayscale": ("rgb_to_grayscale",),
}


def _look_up(name: str, attribute: str) -> Any:
    """Return what `from name import attribute` means; raises AttributeError."""
    path = name.split(".")[2:]
    if (".".join(path), attribute) in PRIVATE:
        return PRIVATE[".".join(path), attribute]
    area = path[0] if path else ""
    if path[-1:] == ["dtypes"] and attribute in DTYPES:
        return DTYPES[attribute]
    places = AREAS.get(area, (getattr(keras, area, keras) if area else keras, keras))
    if path[:2] == ["optimizers", "schedules"]:
        places = (keras.optimizers.schedules, *places)
    if path[:2] == ["ops", "nn"]:
        places = (keras.ops.nn, *places)
    if "bounding_boxes" in path:
        places = (keras.utils.bounding_boxes, *places)
    if area == "ops" and attribute[0].isupper() and (operation := _operation(attribute, places)) is not None:
        return operation
    for place in (*places, EVERYWHERE):
        if isinstance(place, dict):
            if attribute in place:
                return place[attribute]
        else:
            try:
                return getattr(place, attribute)
            except AttributeError:
                continue
    members = {"what": "is a public name that opwright lacks"} if attribute in PUBLIC else {}
    return type(attribute, (Unavailable,), members)


def _file_of(name: str) -> pathlib.Path | None:
    """Return the file or folder of a module of Keras's sources, or None."""
    path = SOURCES.joinpath(*name.split("."))
    return path if path.is_dir() else path.with_suffix(".py") if path.with_suffix(".py").is_file() else None


class Names(types.ModuleType):
    """A module of `keras.src`: other modules of it, else public names."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        full = f"{self.__name__}.{name}"
        if self.__name__ == "keras":
            return importlib.import_module(full) if name in ("src", "api") else getattr(keras, name)
        if (self.__name__, name) not in (("keras.src", "backend"),) and _file_of(full) is None:
            return _look_up(self.__name__, name)
        return importlib.import_module(full)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Find `keras.src...` here, Keras's own tests and their helpers in its sources, and `tensorflow` as `opwright`."""

    def find_spec(self, name, path=None, target=None):
        if name == "tensorflow" or (name.startswith("tensorflow.") and self._opwright(name)):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        if name.startswith(("tensorflow.python", "tensorflow.core", "tensorflow.compiler")):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        if name != "keras" and not name.startswith("keras."):
            return None
        file = _file_of(name)
        own = name.endswith("_test") or name.removeprefix("keras.src.").startswith(KERAS_OWN)
        if own and file is not None:
            file = file / "__init__.py" if file.is_dir() else file
            return importlib.util.spec_from_file_location(
                name, file, submodule_search_locations=[str(file.parent)] if file.name == "__init__.py" else None
            )
        if name.startswith("keras.src.") and file is None:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    @staticmethod
    def _opwright(name):
        thing = ow
        for part in name.split(".")[1:]:
            thing = getattr(thing, part, None)
        return thing

    def create_module(self, spec):
        if spec.name.startswith("tensorflow"):
            return self._opwright(spec.name) or Absent(spec.name)
        parts = spec.name.split(".")
        if parts[1:2] not in ([], ["src"]):  # keras.layers
            thing = keras
            for part in parts[1:]:
                if part != "api":
                    thing = getattr(thing, part)
            return thing
        return Names(spec.name)

    def exec_module(self, module):
        pass


def seed_generators(layer):
    """Return the generators of seeds of a layer and its sublayers, which Keras's helper reads from a private list."""
    by_name: dict[int, Any] = {}
    for each in layer._flatten_layers(True, True):
        for value in nest.flatten([v for v in vars(each).values() if isinstance(v, keras.random.SeedGenerator)]):
            by_name[id(value)] = value
    return list(by_name.values())


def install() -> None:
    """Make the names importable."""
    sys.meta_path.insert(0, Finder())
