"""Fake quantization for training, and the errors of quantized models.

Lives here: the public names, each loaded on first use. Not here: the operators (ops/quantization.py), the comparison of
models (aot/quantization_errors.py), post-training quantization (lite/convert/quantize/).
"""

from ..core.lazy_imports import lazily

__getattr__, __dir__, __all__ = lazily(__name__)
