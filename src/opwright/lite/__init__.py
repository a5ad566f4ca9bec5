"""`.tflite`: the file format, the converter, the interpreter, resolvers.

    converter = lite.TFLiteConverter.from_concrete_functions([f.get_concrete_function()], f)
    interpreter = lite.Interpreter(model_content=converter.convert())

Lives here: the public names, each loaded when first used, so that `import opwright` stays quick.
Not here: anything itself. format/ the file; ops/ the operators; runtime/ what runs them; convert/ the converter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.importing import lazily

if TYPE_CHECKING:
    from . import customs as customs
    from . import litert as litert
    from .convert.converter import TFLiteConverter
    from .convert.options import OpsSet, Optimize, TargetSpec
    from .convert.patterns.pattern import Pattern, pattern
    from .convert.quantize.dataset import RepresentativeDataset
    from .delegate import Delegate, DelegateFlags, DelegateKernel, DelegateParams, DelegateWarning, SimpleDelegate
    from .format.model import Model
    from .interpreter import Interpreter, OpResolverType
    from .native.building import include_dir
    from .native.custom_ops import build_custom_ops
    from .native.loading import load_custom_ops
    from .registration import Registration
    from .resolver import BuiltinOpResolver, MutableOpResolver, OpResolver

_HOMES = {
    ".": "customs, litert",
    ".convert.converter": "TFLiteConverter",
    ".convert.options": "OpsSet, Optimize, TargetSpec",
    ".convert.patterns.pattern": "Pattern, pattern",
    ".convert.quantize.dataset": "RepresentativeDataset",
    ".delegate": "Delegate, DelegateFlags, DelegateKernel, DelegateParams, DelegateWarning, SimpleDelegate",
    ".format.model": "Model",
    ".interpreter": "Interpreter, OpResolverType",
    ".native.building": "include_dir",
    ".native.custom_ops": "build_custom_ops",
    ".native.loading": "load_custom_ops",
    ".registration": "Registration",
    ".resolver": "BuiltinOpResolver, MutableOpResolver, OpResolver",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)

__all__ = [
    "BuiltinOpResolver",
    "Delegate",
    "DelegateFlags",
    "DelegateKernel",
    "DelegateParams",
    "DelegateWarning",
    "Interpreter",
    "Model",
    "MutableOpResolver",
    "OpResolver",
    "OpResolverType",
    "OpsSet",
    "Optimize",
    "Pattern",
    "Registration",
    "RepresentativeDataset",
    "SimpleDelegate",
    "TFLiteConverter",
    "TargetSpec",
    "build_custom_ops",
    "include_dir",
    "load_custom_ops",
    "pattern",
]
