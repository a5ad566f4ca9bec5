"""Calls of `keras.ops` on arrays that both libraries get: Keras's results are in data/keras_ops.npz.

Lives here: `CALLS`, the lines of data/keras_ops_calls.txt; `arrays`, which they name.
Not here: the script that records (record_keras_ops.py), the test (test_keras_ops.py).
"""

from __future__ import annotations

import pathlib

import numpy as np


def arrays() -> dict[str, np.ndarray]:
    """Return the arrays that calls name: one letter each, digits of another size."""
    r = np.random.RandomState(7)
    f = r.randn(3, 4).astype(np.float32)
    square = r.randn(2, 3, 3).astype(np.float32)
    nan = f.copy()
    nan[0, 1] = nan[2, 3] = nan[2, 0] = np.nan
    return {
        "x": f,
        "y": r.randn(3, 4).astype(np.float32),
        "row": r.randn(4).astype(np.float32),
        "p": (np.abs(f) + 0.1).astype(np.float32),
        "u": np.clip(np.abs(f) / 3, 0.01, 0.95).astype(np.float32),
        "h": f.astype(np.float16),
        "i": r.randint(-9, 9, (3, 4)).astype(np.int32),
        "j": r.randint(1, 6, (3, 4)).astype(np.int32),
        "i8": r.randint(-9, 9, (3, 4)).astype(np.int8),
        "u8": r.randint(1, 9, (3, 4)).astype(np.uint8),
        "b": r.rand(3, 4) > 0.4,
        "c": r.rand(3, 4) > 0.6,
        "z": (f + 1j * r.randn(3, 4)).astype(np.complex64),
        "n": nan,
        "inf": np.array([1, -np.inf, np.inf, np.nan, 0, -0.0], np.float32),
        "v": np.array([3, 1, 2, 1, 3, 0, 2, 2], np.int32),
        "w": r.rand(8).astype(np.float32),
        "sorted_": np.sort(r.randn(6)).astype(np.float32),
        "m": square,
        "spd": (square @ square.transpose(0, 2, 1) + 2 * np.eye(3)).astype(np.float32),
        "low": np.tril(square + 3 * np.eye(3)).astype(np.float32),
        "rhs": r.randn(2, 3, 2).astype(np.float32),
        "tall": r.randn(5, 3).astype(np.float32),
        "img": r.rand(2, 6, 5, 3).astype(np.float32),
        "seq": r.rand(2, 9, 3).astype(np.float32),
        "vol": r.rand(1, 4, 5, 4, 2).astype(np.float32),
        "k1": r.randn(3, 3, 4).astype(np.float32),
        "k2": r.randn(3, 2, 3, 4).astype(np.float32),
        "k3": r.randn(2, 2, 2, 2, 3).astype(np.float32),
        "t2": r.randn(3, 2, 4, 3).astype(np.float32),
        "d2": r.randn(3, 3, 3, 2).astype(np.float32),
        "d1": r.randn(3, 3, 2).astype(np.float32),
        "pw": r.randn(1, 1, 6, 4).astype(np.float32),
        "q": r.randn(2, 5, 4, 8).astype(np.float32),
        "kv": r.randn(2, 6, 2, 8).astype(np.float32),
        "wave": r.randn(2, 64).astype(np.float32),
        "ten": np.arange(10, dtype=np.float32),
        "cube": r.randn(2, 3, 4).astype(np.float32),
    }


CALLS = (pathlib.Path(__file__).parents[1] / "data" / "keras_ops_calls.txt").read_text("utf-8").splitlines()
