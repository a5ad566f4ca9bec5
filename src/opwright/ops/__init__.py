"""The operator catalogue: each operator whole, in one place.

Lives here: the machinery of definitions (definition.py, attributes.py, call.py), the two interpreters' meeting point
(dispatch.py), reverse-mode differentiation over recorded calls (autodiff.py), and one package per operator family.
Not here: who runs a call (eager/, tracing/), and the `.tflite` dialect (lite/ops/).

What users call `ow.ops`: get, list, spec, compatibility, lint, register_kernel, register_library, explain,
DefaultGradient, SingleGradient.
"""

import importlib
from typing import Any

from .kernels import KernelKey, register_kernel, register_library
from .registry import get
from .registry import list_names as list

_LATER = {
    "spec": "specification", "compatibility": "changes", "Change": "changes", "lint": "linting",
    "explain": "selection", "DefaultGradient": "gradient_makers", "SingleGradient": "gradient_makers",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(importlib.import_module(f".{_LATER[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Change", "DefaultGradient", "KernelKey", "SingleGradient", "compatibility", "explain", "get", "lint", "list",
    "register_kernel", "register_library", "spec",
]  # fmt: skip
