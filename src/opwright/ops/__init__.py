"""The operator catalogue: each operator whole, in one place.

Lives here: the machinery of definitions (definition.py, attributes.py, call.py), the two interpreters' meeting point
(dispatch.py), reverse-mode differentiation over recorded calls (autodiff.py), and one package per operator family.
Not here: who runs a call (eager/, tracing/), and the `.tflite` dialect (lite/ops/).

What users call `ow.ops`: get, list, spec, compatibility, register_kernel.
"""

from typing import Any

from .kernels import KernelKey, register_kernel
from .registry import get
from .registry import list_names as list


def __getattr__(name: str) -> Any:
    if name in ("spec", "compatibility"):
        from . import specification

        return getattr(specification, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["KernelKey", "compatibility", "get", "list", "register_kernel", "spec"]
