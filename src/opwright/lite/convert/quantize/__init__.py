"""Post-training quantisation of a float `LiteModule`: smaller weights, or integer computation.

    mode = modes.mode_of(converter)
    module = quantize(module, mode, representative_dataset)       # of a file: import_model before, export after

Integer modes: calibrate (ranges, from data or FAKE_QUANT), plan (nodes that run on integers, with their parameters),
quantise each graph (driver.py). Weights alone need no data, and may be sparse (weights.py).
Not here: integer kernels (lite/ops/quantized), version rules (format/versions.py).
"""

from ....core.lazy_imports import lazily

# The driver imports the interpreter, which most conversions do without.
__getattr__, __dir__, __all__ = lazily(__name__)
