"""Quantisation after training: a float `LiteModule` becomes one with smaller weights, or one that runs on integers.

    mode = modes.mode_of(converter)
    module = quantize(module, mode, representative_dataset)       # of a file: import_model before, export after

Stages of the integer kinds: calibrate (run the float model over data, note ranges), plan (which operators run on
integers, with which parameters), rewrite (new graphs). Weights alone: weights.py, which needs no data.
Zeros among weights: sparsity.py.
Not here: integer kernels (lite/ops/quantized), version rules (format/versions.py).
"""

from ....core.importing import lazily

# The driver imports the interpreter, which most conversions do without.
__getattr__, __dir__, __all__ = lazily(__name__)
