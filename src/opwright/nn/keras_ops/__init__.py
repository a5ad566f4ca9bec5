"""`keras.ops`: NumPy's functions, and those of networks, on tensors of any dtypes.

Lives here: names, imported at first use. Where TensorFlow's functions refuse operands of two dtypes, these promote them
(promotion.py). All accept KerasTensors of functional models, too.
"""

import sys

from ...core.lazy_imports import lazily

__getattr__, __dir__, __all__ = lazily(__name__)
numpy = sys.modules[__name__]  # `keras.ops.numpy` has a part of the names
