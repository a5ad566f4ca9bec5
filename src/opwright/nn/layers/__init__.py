"""All layers, under Keras's names, imported when first used.

Lives here: re-exports.
Not here: the base class (../layer.py), the input layer (../network.py).
"""

from ...core.lazy_imports import lazily as _lazily

__getattr__, __dir__, __all__ = _lazily(__name__)
