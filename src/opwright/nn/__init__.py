"""Neural networks: the operators of `ow.nn`, modules, layers, models, and how they are trained.

Lives here: re-exports; what is not an operator is imported when first used.
Not here: the operators' definitions (ops/nn), layers (layers/), the names of Keras (keras.py above).
"""

from ..core.lazy_imports import lazily as _lazily
from ..ops.nn import *  # noqa: F403  the whole family, whose own __all__ lists it
from ..ops.nn import __all__ as _operators

__getattr__, __dir__, __all__ = _lazily(__name__)
__all__ += _operators
