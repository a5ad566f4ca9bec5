"""Small networks of the kinds people convert, each written once, for Opwright and TensorFlow alike.

Lives here: `NETWORKS`, name -> Network; weights and inputs that are the same in both.
Not here: the builders (networks_vision.py, networks_sequence.py), checks (the test files).
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from networks_kit import NETWORKS, Network
from networks_sequence import __doc__ as _sequence
from networks_vision import __doc__ as _vision

__all__ = ["NETWORKS", "Network", "built", "inputs_of"]
assert _sequence
assert _vision  # imported for their rows


def inputs_of(name: str, seed: int = 0) -> list[np.ndarray]:
    """Inputs of a network, in order."""
    row = NETWORKS[name]
    random = np.random.RandomState(zlib.crc32(name.encode()) % 2**31 + seed)
    if row.words:
        return [random.randint(0, row.words, shape).astype(row.dtype) for shape in row.shapes]
    return [random.uniform(-1, 1, shape).astype(row.dtype) for shape in row.shapes]


def built(tf: Any, name: str) -> Any:
    """A network of one of the two with its weights; none of these is as it was made, so that each counts."""
    model = NETWORKS[name].build(tf)
    if not model.built or not model.weights:
        model(tf.constant(inputs_of(name)[0]))
    random = np.random.RandomState(zlib.crc32(name.encode()) % 2**31)
    model.set_weights([_values(w.name, tuple(w.shape), random) for w in model.weights if "seed" not in w.name])
    return model


def _values(name: str, shape: tuple[int, ...], random: np.random.RandomState) -> np.ndarray:
    if "variance" in name or "gamma" in name or "scale" in name:
        return random.uniform(0.5, 1.5, shape).astype(np.float32)
    return (random.randn(*shape) / np.sqrt(max(np.prod(shape[:-1]), 1))).astype(np.float32)
