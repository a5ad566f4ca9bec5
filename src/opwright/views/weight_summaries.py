"""Constants of a model as values of JSON: their distributions, and their elements as text.

Lives here: `weight_summary`. Not here: graphs, in which they are kept by value (graph_documents.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..graph.ir import Value
from ..pages.markup import visible

ELEMENTS, BINS = 1000, 48  # elements that are shown, and bins of a histogram


def weight_summary(value: Value) -> dict[str, Any]:
    """Return the distribution and the elements of a constant, as real numbers."""
    array, quantization = value.constant, value.spec.quantization
    assert array is not None
    if array.dtype.kind in "OSU":
        return {"low": 0, "high": 0, "mean": 0, "deviation": 0, "counts": [], "elements": _elements(array)}
    real = array.astype(np.float64)
    if quantization is not None and quantization.has_scales and quantization.blocks is None:
        shape = [1] * real.ndim
        if len(quantization.scale) > 1:
            shape[quantization.axis] = -1
        zero = np.asarray(quantization.zero_point if len(quantization.zero_point) else [0], np.float64)
        scales, zeros = (x.reshape(shape) if x.size > 1 else x for x in (np.asarray(quantization.scale), zero))
        real = (real - zeros) * scales
    finite = real[np.isfinite(real)]
    if not finite.size:
        finite = np.zeros(1)
    figures = {"low": finite.min(), "high": finite.max(), "mean": finite.mean(), "deviation": finite.std()}
    counts = np.histogram(finite, BINS)[0].tolist()
    return {**{k: float(v) for k, v in figures.items()}, "counts": counts, "elements": _elements(real)}


def _elements(array: np.ndarray) -> str:
    """Return the elements as NumPy's text, of large arrays the ends of each axis."""
    with np.printoptions(threshold=ELEMENTS, edgeitems=8, precision=6, linewidth=100):
        return visible(array, 100 * ELEMENTS)
