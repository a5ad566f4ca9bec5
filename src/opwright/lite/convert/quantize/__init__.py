"""Quantisation after training: a float `format.Model` becomes one with smaller weights, or one that runs on integers.

    mode = modes.mode_of(converter)
    model = quantize(model, mode, representative_dataset)

Stages of the integer kinds: calibrate (run the float model over data, note ranges), plan (which operators run on
integers, with which parameters), rewrite (new tables). Weights alone: weights.py, which needs no data.
Zeros among weights: sparsity.py.
Not here: integer kernels (lite/ops/quantized), version rules (format/versions.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....core.importing import lazily

if TYPE_CHECKING:
    from .driver import quantize
    from .modes import Mode, mode_of
    from .sparsity import sparsify

# Late, as the driver brings the interpreter with it, which most conversions do without.
_HOMES = {".driver": "quantize", ".modes": "Mode, mode_of", ".sparsity": "sparsify"}

__getattr__, __dir__ = lazily(__name__, _HOMES)

__all__ = ["Mode", "mode_of", "quantize", "sparsify"]
