"""`.tflite`: the file format, the converter, the interpreter, resolvers.

    converter = lite.TFLiteConverter.from_concrete_functions([f.get_concrete_function()], f)
    interpreter = lite.Interpreter(model_content=converter.convert())

Lives here: the public names, each loaded when first used, so that `import opwright` stays quick.
Not here: anything itself. format/ the file; ops/ the operators; runtime/ what runs them; convert/ the converter.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .convert.converter import TFLiteConverter
    from .convert.options import OpsSet, Optimize, TargetSpec
    from .convert.patterns.pattern import Pattern, pattern
    from .convert.quantize.dataset import RepresentativeDataset
    from .delegate import Delegate, DelegateFlags, DelegateKernel, DelegateParams, DelegateWarning, SimpleDelegate
    from .format import Model
    from .interpreter import Interpreter, OpResolverType
    from .native.building import include_dir
    from .native.custom_ops import build_custom_ops
    from .native.loading import load_custom_ops
    from .registration import Registration
    from .resolver import BuiltinOpResolver, MutableOpResolver, OpResolver

_HOMES = {
    "BuiltinOpResolver": "resolver",
    "Delegate": "delegate",
    "DelegateFlags": "delegate",
    "DelegateKernel": "delegate",
    "DelegateParams": "delegate",
    "DelegateWarning": "delegate",
    "Interpreter": "interpreter",
    "Model": "format",
    "MutableOpResolver": "resolver",
    "OpResolver": "resolver",
    "OpResolverType": "interpreter",
    "OpsSet": "convert.options",
    "Optimize": "convert.options",
    "Pattern": "convert.patterns.pattern",
    "Registration": "registration",
    "RepresentativeDataset": "convert.quantize.dataset",
    "SimpleDelegate": "delegate",
    "TFLiteConverter": "convert.converter",
    "TargetSpec": "convert.options",
    "build_custom_ops": "native.custom_ops",
    "include_dir": "native.building",
    "load_custom_ops": "native.loading",
    "pattern": "convert.patterns.pattern",
}

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


def __getattr__(name: str) -> Any:
    if name in ("customs", "litert"):  # modules: lite.customs.list_names(), lite.litert.CompiledModel
        return importlib.import_module(f"{__name__}.{name}")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
