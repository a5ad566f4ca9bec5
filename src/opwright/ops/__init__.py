"""The operator catalogue: each operator in one place.

Lives here: the machinery of definitions (definition.py, attributes.py, call.py), dispatch between the interpreters
(dispatch.py), reverse-mode differentiation over recorded calls (autodiff.py), and one package per operator family.
Not here: execution of calls (eager/, tracing/), the `.tflite` dialect (lite/ops/).

The public names of `ow.ops`: get, list, spec, compatibility, lint, register_kernel, register_library, explain,
DefaultGradient, SingleGradient.
"""

from ..core.lazy_imports import lazily

__getattr__, __dir__, __all__ = lazily(__name__)
