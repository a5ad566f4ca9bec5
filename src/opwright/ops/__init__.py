"""The operator catalogue: each operator whole, in one place.

Lives here: the machinery of definitions (definition.py, attributes.py, call.py), the two interpreters' meeting point
(dispatch.py), reverse-mode differentiation over recorded calls (autodiff.py), and one package per operator family.
Not here: who runs a call (eager/, tracing/), and the `.tflite` dialect (lite/ops/).

What users call `ow.ops`: get, list, spec, compatibility, lint, register_kernel, register_library, explain,
DefaultGradient, SingleGradient.
"""

from ..core.lazy_imports import lazily

__getattr__, __dir__, __all__ = lazily(__name__)
