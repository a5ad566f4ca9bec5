"""Modules `tensorflow.python...` under which TensorFlow's own test files find the public names of this package.

Lives here: the import hook, the public modules in which names of internal modules are looked up, names that differ.
Not here: what the files need of TensorFlow's test helpers (helpers.py), the runner (__main__.py).
"""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import pathlib
import re
import sys
import types
from typing import Any

import helpers

import opwright as ow

V1 = ow.compat.v1
PUBLIC_MODULES = (
    *(ow, ow.math, ow.nn, ow.linalg, ow.strings, ow.random, ow.image, ow.io, ow.sparse, ow.ragged, ow.signal),
    *(ow.bitwise, ow.debugging, ow.lookup, ow.nest, ow.dtypes, ow.errors, ow.compat, ow.data, ow.data.experimental),
    *(ow.config, ow.autograph, ow.train, ow.quantization, ow.saved_model, V1),
)
"""Where names are looked up after those of AREAS, in this order."""
AREAS: dict[str, tuple[Any, ...]] = {
    "math_ops": (ow.math, ow, ow.linalg),
    "nn_ops": (ow.nn, ow.math),
    "nn": (ow.nn,),
    "nn_impl": (ow.nn,),
    "linalg_ops": (ow.linalg,),
    "linalg_impl": (ow.linalg,),
    "string_ops": (ow.strings,),
    "gen_string_ops": (ow.strings,),
    "ragged_string_ops": (ow.strings,),
    "ragged_math_ops": (ow.ragged, ow),
    "ragged_factory_ops": (ow.ragged,),
    "random_ops": (ow.random,),
    "stateless_random_ops": (ow.random,),
    "image_ops": (ow.image,),
    "image_ops_impl": (ow.image,),
    "sparse_ops": (ow.sparse,),
    "signal": (ow.signal,),
    "shape_ops": (ow.signal,),
    "sets": (ow.sets,),
    "ragged_array_ops": (ow.ragged,),
    "map_fn": (ow,),
    "nest": (ow.nest,),
    "dtypes": (ow.dtypes, ow),
    "errors": (ow.errors,),
    "errors_impl": (ow.errors,),
    "options": (ow.data,),
    "dataset_ops": (ow.data,),
    "random_access": (ow.data.experimental,),
    "test": (helpers,),
    "googletest": (helpers,),
    "test_util": (helpers,),
    "ragged_test_util": (helpers,),
    "combinations": (helpers.combinations,),
    "test_base": (helpers.test_base,),
    "checkpoint_test_base": (helpers.checkpoint_test_base,),
    "context": (helpers.context,),
    "gradient_checker_v2": (helpers.gradient_checker_v2,),
    "tf_logging": (ow.get_logger(),),
}
PREFIXES = {
    "string_ops": ("string_",),
    "linalg_ops": ("matrix_", "batch_matrix_"),
    "linalg_impl": ("matrix_",),
    "random_ops": ("random_",),
    "stateless_random_ops": ("stateless_random_",),
    "sparse_ops": ("sparse_",),
    "sparse_tensor": ("",),
    "sets": ("set_",),
}
"""Beginnings of names that public ones lack."""


def output_part(part: str) -> Any:
    """Return a function of datasets that returns the dtypes, shapes or classes of their elements."""

    def select(dataset: Any) -> Any:
        specs = dataset.element_spec
        return ow.nest.map_structure(lambda spec: getattr(spec, part), specs)

    return select


PRIVATE: dict[tuple[str, str], Any] = {
    ("array_ops", "where"): V1.where,
    ("array_ops", "where_v2"): ow.where,
    ("array_ops", "gather"): V1.gather,
    ("array_ops", "check_numerics"): ow.debugging.check_numerics,
    ("array_ops", "matrix_band_part"): ow.linalg.band_part,
    ("ragged_where_op", "where"): V1.where,
    ("ragged_where_op", "where_v2"): ow.where,
    ("math_ops", "matmul"): ow.linalg.matmul,
    ("nn_ops", "in_top_k"): lambda predictions, targets, k, name=None: ow.math.in_top_k(targets, predictions, k),
    ("dataset_ops", "get_legacy_output_types"): output_part("dtype"),
    ("dataset_ops", "get_legacy_output_shapes"): output_part("shape"),
    ("dataset_ops", "get_structure"): lambda dataset: dataset.element_spec,
    ("dataset_ops", "INFINITE"): ow.data.INFINITE_CARDINALITY,
    ("dataset_ops", "UNKNOWN"): ow.data.UNKNOWN_CARDINALITY,
    ("def_function", "function"): ow.function,
    ("backprop", "GradientTape"): ow.GradientTape,
    ("resource_variable_ops", "ResourceVariable"): ow.Variable,
    ("sparse_tensor", "SparseTensorValue"): ow.SparseTensor,
    ("sparse_tensor", "is_sparse"): lambda value: isinstance(value, ow.SparseTensor),
    ("ragged_tensor", "is_ragged"): lambda value: isinstance(value, ow.RaggedTensor),
    ("ragged_factory_ops", "constant"): ow.ragged.constant,
    ("ragged_factory_ops", "constant_value"): ow.ragged.constant,
    ("string_ops", "reduce_join_v2"): ow.strings.reduce_join,
    ("linalg_ops", "matrix_determinant"): ow.linalg.det,
    ("gen_linalg_ops", "log_matrix_determinant"): ow.linalg.slogdet,
    ("ragged_conversion_ops", "to_tensor"): lambda rt: rt.to_tensor() if isinstance(rt, ow.RaggedTensor) else rt,
    ("ragged_conversion_ops", "from_tensor"): ow.RaggedTensor.from_tensor,
    ("ragged_squeeze_op", "squeeze"): ow.squeeze,
    ("sparse_ops", "sparse_split"): ow.sparse.split,
    ("sparse_ops", "sparse_concat"): ow.sparse.concat,
    ("script_ops", "py_func"): lambda func, inp, Tout, stateful=True, name=None: ow.numpy_function(func, inp, Tout),
    ("script_ops", "eager_py_func"): ow.py_function,
    ("control_flow_v2_toggles", "control_flow_v2_enabled"): lambda: True,
    ("tensor_shape", "unknown_shape"): lambda rank=None: ow.TensorShape(None if rank is None else [None] * rank),
    ("tensor_shape", "as_shape"): ow.TensorShape,
    ("tensor_spec", "TensorSpec"): ow.TensorSpec,
    ("sparse_ops", "sparse_to_dense"): lambda indices, shape, values: ow.sparse.to_dense(
        ow.SparseTensor(indices, values, shape)
    ),
    ("string_ops", "string_length"): lambda input, name=None, unit="BYTE": ow.strings.length(input, unit, name),
    ("test_util", "matmul_without_tf32"): ow.linalg.matmul,
    ("stateless_random_ops", "stateless_random_normal"): ow.random.stateless_normal,
    ("stateless_random_ops", "stateless_random_uniform"): ow.random.stateless_uniform,
    ("ops", "Graph"): helpers.Graph,
    ("ops", "inside_function"): ow.inside_function,
    ("array_ops", "placeholder"): helpers.placeholder,
    ("array_ops", "placeholder_with_default"): helpers.placeholder_with_default,
    ("variables", "global_variables_initializer"): lambda: None,
    ("variables", "variables_initializer"): lambda variables: None,
    ("platform", "test"): helpers,
    ("platform", "googletest"): helpers,
}
SOURCES = pathlib.Path()
"""The folder that contains TensorFlow's folder `tensorflow`; the plugin sets it."""
NAMES = [
    line.split()[0]
    for line in (pathlib.Path(__file__).parents[1] / "public_names" / "tensorflow.txt").read_text().splitlines()
    if line.startswith("tf.")
]
PUBLIC = {name.rpartition(".")[2] for name in NAMES}
"""Last parts of TensorFlow's public names."""


class Unavailable:
    """A private or missing name of TensorFlow: tests that use it fail, and others of the file run."""

    what = "is not part of opwright"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__} {self.what}")


def spellings(area: str, name: str) -> list[str]:
    """Return the forms under which a public module may have a name of an internal one."""
    forms = [name, name.removesuffix("_v2"), name.removesuffix("_v1")]
    forms += [name.removeprefix(prefix) for prefix in PREFIXES.get(area, ())]
    forms.append(f"{area.removesuffix('_ops').removesuffix('_op')}_{name}")
    return list(dict.fromkeys(forms))


def look_up(module: str, name: str) -> Any:
    """Return what `from module import name` means: something public, or an Unavailable class."""
    area = module.rpartition(".")[2]
    if (area, name) in PRIVATE:
        return PRIVATE[area, name]
    for place in (*AREAS.get(area, ()), *PUBLIC_MODULES):
        for spelled in spellings(area, name):
            with contextlib.suppress(AttributeError):
                return getattr(place, spelled)
    members = {"what": "is a public name that opwright lacks"} if name in PUBLIC else {}
    return type(name, (Unavailable,), members)


class Names(types.ModuleType):
    """A module of `tensorflow.python`: other modules of it, else public names."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        # `from tensorflow.python.ops import array_ops` and `from ...array_ops import concat` look the same.
        is_module = re.fullmatch(r"[a-z0-9_]+", name) and (
            name in AREAS or re.search(r"(_ops|_op|_util|_impl|_lib|_test_base)\d*$|^(ops|ragged|data|sets)$", name)
        )
        is_private = (self.__name__.rpartition(".")[2], name) in PRIVATE
        parent = self.__name__.rpartition(".")[2] in PACKAGES and not self.__name__.endswith("framework.ops")
        if parent and not is_private and (is_module or not hasattr(ow, name)):
            return importlib.import_module(f"{self.__name__}.{name}")
        return look_up(self.__name__, name)


PACKAGES = {
    *("python", "framework", "ops", "eager", "platform", "data", "util", "client", "training", "kernel_tests"),
    *(
        "ragged",
        "signal",
        "experimental",
        "tracking",
        "checkpoint",
        "linalg",
        "types",
        "trackable",
        "saved_model",
        "layers",
    ),
}
"""Folders of TensorFlow's sources; `ragged`, `linalg` and others are modules of functions, too."""


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Find `tensorflow` as `opwright`, and `tensorflow.python...` as modules of names."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name == "tensorflow" or name.startswith("tensorflow."):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> types.ModuleType:
        return Names(spec.name) if spec.name.startswith("tensorflow.") else Root(spec.name)

    def exec_module(self, module: Any) -> None:
        pass


class Root(types.ModuleType):
    """`tensorflow`: this package, and the internal modules."""

    def __getattr__(self, name: str) -> Any:
        if name == "python":
            return importlib.import_module("tensorflow.python")
        return getattr(ow, name)


def install() -> None:
    """Make the names importable; `eval()` of tensors is their value."""
    sys.meta_path.insert(0, Finder())
    ow.Tensor.eval = helpers.value_of
    ow.Variable.eval = helpers.value_of
