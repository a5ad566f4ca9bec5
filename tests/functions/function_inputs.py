"""Numbers at which functions are tested: all magnitudes of both signs, and where implementations go wrong."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

FLOATS = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32, "float64": np.float64}

# Where one of the functions has a zero, a pole, a branch of its implementation, or saturates.
POINTS = (
    0.0,
    0.25,
    0.46875,
    0.5,
    0.625,
    1.0,
    1.4616321,
    1.5,
    2.0,
    2.5,
    3.0,
    3.1415927,
    4.0,
    4.5,
    5.0,
    5.5,
    6.0,
    6.2831855,
    7.0,
    8.0,
    9.0,
    10.0,
    11.09,
    12.0,
    13.3,
    14.0,
    15.9,
    16.64,
    17.33,
    18.0,
    20.0,
    27.2,
    36.7,
    44.36,
    65504.0,
    80.0,
    87.0,
    87.33655,
    88.0,
    88.3,
    88.3762626647949,
    88.72283,
    88.7229,
    89.5,
    95.0,
    103.27893,
    103.97208,
    104.0,
    105.0,
    200.0,
    709.78,
    745.2,
    1e3,
    1e4,
    8388607.5,
    8388608.0,
    16777216.0,
    2.0**31,
    1e10,
    2.0**52,
    2.0**63,
    1e20,
    1e38,
)


def finest(dtype: str) -> np.finfo:
    """Limits of a floating dtype, of bfloat16 too."""
    return ml_dtypes.finfo(FLOATS[dtype])


def unary_inputs(dtype: str, count: int, seed: int = 0) -> np.ndarray:
    """About `count` numbers of a dtype: log-spaced magnitudes of both signs, points and their neighbours, denormals."""
    kind, info = FLOATS[dtype], finest(dtype)
    rng = np.random.default_rng(seed)
    low, high = float(info.smallest_subnormal), float(info.max)
    each = max(8, count // 4)
    sizes = np.exp2(rng.uniform(np.log2(low), np.log2(high), each))
    usual = np.concatenate([rng.uniform(0, 12, each // 2), rng.uniform(0, 110, each // 2)])
    with np.errstate(over="ignore"):
        points = np.array(POINTS).astype(kind)
        positive = np.concatenate(
            [
                sizes.astype(kind),
                usual.astype(kind),
                points,
                np.nextafter(points, kind(np.inf)),
                np.nextafter(points, kind(-np.inf)),
                np.array([low, 3 * low, float(info.tiny), float(info.tiny) * 0.75, high, np.inf]).astype(kind),
            ]
        )
    return np.concatenate([positive, -positive, nans(kind)])


def nans(kind: Any) -> np.ndarray:
    """NaN of both signs and of small, large and mixed payloads: formulas on bits may take some for numbers."""
    whole = np.array(np.inf, kind).view(f"u{np.dtype(kind).itemsize}")
    payload = int(np.array(np.nan, kind).view(whole.dtype)) ^ int(whole)  # the quiet bit
    bits = [payload, 2 * payload - 1, payload + payload // 3 + 1, payload + 1]
    positive = np.array([int(whole) | b for b in bits], whole.dtype).view(kind)
    return np.concatenate([positive, np.negative(positive)])


SECOND = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 3.5, 7.0, 10.0, 127.0, 1e-3, 1e10, 2.0**24)
"""Numbers for pairs of everything with everything, next to the ends of the range."""


def binary_inputs(dtype: str, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Pairs: all of the special numbers with each other, usual ones, and any with any."""
    kind, info = FLOATS[dtype], finest(dtype)
    rng = np.random.default_rng(seed)
    with np.errstate(over="ignore"):
        special = np.array([*SECOND, float(info.smallest_subnormal), float(info.tiny), float(info.max), np.inf])
        special = np.concatenate([special, -special, [np.nan]]).astype(kind)
        x, y = np.repeat(special, special.size), np.tile(special, special.size)
        log = np.log2(float(info.max))
        any_x, any_y = (np.exp2(rng.uniform(-log, log, count)) * rng.choice([1, -1], count) for _ in range(2))
        near_x = rng.uniform(-20, 20, count)
        near_y = np.where(rng.random(count) < 0.5, rng.uniform(-4, 4, count), near_x * rng.integers(1, 9, count))
        whole_x, whole_y = (rng.integers(-60, 60, count).astype(float) for _ in range(2))
        return (
            np.concatenate([x, *(a.astype(kind) for a in (any_x, near_x, whole_x))]),
            np.concatenate([y, *(a.astype(kind) for a in (any_y, near_y, whole_y))]),
        )
