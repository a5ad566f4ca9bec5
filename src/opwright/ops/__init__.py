"""The operator catalogue: each operator whole, in one place.

Lives here: the machinery of definitions (definition.py, attributes.py, call.py), the two interpreters' meeting point
(dispatch.py), reverse-mode differentiation over recorded calls (autodiff.py), and one package per operator family.
Not here: who runs a call (eager/, tracing/), and the `.tflite` dialect (lite/ops/).

What users call `ow.ops`: get, list, spec, compatibility, register_kernel.
"""

from .kernels import KernelKey, register_kernel
from .registry import get
from .registry import list_names as list
from .specification import compatibility, spec

__all__ = ["KernelKey", "compatibility", "get", "list", "register_kernel", "spec"]
