"""Quantisation after training: a float `format.Model` becomes one with smaller weights, or one that runs on integers.

    mode = modes.mode_of(converter)
    model = quantize(model, mode, representative_dataset)

Stages of the integer kinds: calibrate (run the float model over data, note ranges), plan (which operators run on
integers, with which parameters), rewrite (new tables). Weights alone: weights.py, which needs no data.
Zeros among weights: sparsity.py.
Not here: integer kernels (lite/ops/quantized), version rules (format/versions.py).
"""

from __future__ import annotations

from typing import Any

__all__ = ["Mode", "mode_of", "quantize", "sparsify"]

_HOMES = {"Mode": "modes", "mode_of": "modes", "quantize": "driver", "sparsify": "sparsity"}


def __getattr__(name: str) -> Any:  # the driver brings the interpreter with it, which most conversions do without
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
