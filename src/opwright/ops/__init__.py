"""The operator catalogue: each operator whole, in one place.

Lives here: the machinery of definitions (definition.py, attributes.py, call.py), the two interpreters' meeting point
(dispatch.py), reverse-mode differentiation over recorded calls (autodiff.py), and one package per operator family.
Not here: who runs a call (eager/, tracing/), and the `.tflite` dialect (lite/ops/).

What users call `ow.ops`: get, list, spec, compatibility, lint, register_kernel, register_library, explain,
DefaultGradient, SingleGradient.
"""

from typing import TYPE_CHECKING

from ..core.importing import lazily

if TYPE_CHECKING:
    from .changes import Change, compatibility
    from .gradient_makers import DefaultGradient, SingleGradient
    from .kernels import KernelKey, register_kernel, register_library
    from .linting import lint
    from .registry import get
    from .registry import list_names as list
    from .selection import explain
    from .specification import spec

_HOMES = {
    ".changes": "Change, compatibility",
    ".gradient_makers": "DefaultGradient, SingleGradient",
    ".kernels": "KernelKey, register_kernel, register_library",
    ".linting": "lint",
    ".registry": "get, list_names as list",
    ".selection": "explain",
    ".specification": "spec",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)

__all__ = [
    "Change", "DefaultGradient", "KernelKey", "SingleGradient", "compatibility", "explain", "get", "lint", "list",
    "register_kernel", "register_library", "spec",
]  # fmt: skip
