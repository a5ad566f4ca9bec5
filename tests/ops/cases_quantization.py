"""Rows for training before quantisation: `ops/quantization.py`. Numbers are TensorFlow 2.21's."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness import bad, case, f32, i32

X = np.array([-3, -1.01, -1, -0.6, -0.004, 0, 0.004, 0.25, 0.5, 0.99, 1, 1.02, 2.5], np.float32)
LEAST, MOST = np.float32(-1), np.float32(1)

# min, max, num_bits, narrow_range: what becomes of X; which of dy = 1, 2, ... 13 reach x; the sums that reach min, max.
KNOWN = {
    (-1, 1, 8, False): (
        [
            -0.99607849,
            -0.99607849,
            -0.99607849,
            -0.59607846,
            -0.0078431377,
            0,
            0.0078431377,
            0.25098041,
            0.50196081,
            0.98823535,
            1.0039216,
            1.0039216,
            1.0039216,
        ],
        slice(3, 11),
        6,
        25,
    ),
    (-1, 1, 8, True): (
        [-1, -1, -1, -0.59842521, -0.0078740157, 0, 0.0078740157, 0.2519685, 0.50393701, 0.99212599, 1, 1, 1],
        slice(2, 11),
        3,
        25,
    ),
    (-0.2, 1.7, 4, False): (
        [
            -0.25333336,
            -0.25333336,
            -0.25333336,
            -0.25333336,
            0,
            0,
            0,
            0.25333336,
            0.50666672,
            1.0133334,
            1.0133334,
            1.0133334,
            1.6466669,
        ],
        slice(4, 12),
        10,
        13,
    ),
    (0.5, 2, 8, False): (
        [0, 0, 0, 0, 0, 0, 0.0058823531, 0.25294119, 0.5, 0.98823529, 1, 1.017647, 1.5],
        slice(5, 12),
        15,
        13,
    ),
    (-6, 6, 16, False): (
        [
            -3.0000458,
            -1.0100251,
            -0.99995422,
            -0.6000458,
            -0.0040283818,
            0,
            0.0040283818,
            0.24994278,
            0.50006866,
            0.99006635,
            0.99995422,
            1.0199131,
            2.4999771,
        ],
        slice(0, 13),
        0,
        0,
    ),
    (-1, 2, 2, True): ([-1.5, -1.5, -1.5, 0, 0, 0, 0, 0, 0, 1.5, 1.5, 1.5, 1.5], slice(1, 12), 1, 13),
    (0, 0, 8, False): ([0] * 13, slice(0, 13), 0, 0),
}
CHANNELS = np.array([[-3, 0.3], [0.2, 5], [1, -0.1]], np.float32)
SAME = {"grad": False, "widen": False, "rtol": 1e-6, "atol": 1e-6}  # the gradient is not that of steps


def gradients(x: Any, low: Any, high: Any, dy: Any, **attrs: Any) -> Any:
    """Return the gradients of x, min and max by the operator of that rank."""
    import opwright as ow

    name = "fake_quant_with_min_max_vars" + ("_per_channel" if low.shape.rank else "")
    with ow.GradientTape() as tape:
        for value in (x, low, high):
            tape.watch(value)
        y = getattr(ow.quantization, name)(x, low, high, **attrs)
    return tape.gradient(y, [x, low, high], output_gradients=dy)


def gradient_of_args(x: Any, dy: Any, **attrs: Any) -> Any:
    import opwright as ow

    with ow.GradientTape() as tape:
        tape.watch(x)
        y = ow.quantization.fake_quant_with_min_max_args(x, **attrs)
    return tape.gradient(y, x, output_gradients=dy)


def _known(with_args: bool) -> list[Any]:
    rows, dy = [], np.arange(1, 14, dtype=np.float32)
    for (low, high, bits, narrow), (y, through, below, above) in KNOWN.items():
        attrs: dict[str, Any] = {"num_bits": bits, "narrow_range": narrow}
        dx = np.zeros(13, np.float32)
        dx[through] = dy[through]
        if not with_args:
            bounds = np.float32(low), np.float32(high)
            rows.append(case(X, *bounds, expect=y, **attrs, **SAME))
            rows.append(
                case(X, *bounds, dy, expect=[dx, np.float32(below), np.float32(above)], call=gradients, **attrs, **SAME)
            )
        elif low < high:
            attrs |= {"min": float(low), "max": float(high)}
            rows.append(case(X, expect=y, **attrs, **SAME))
            rows.append(case(X, dy, expect=dx, call=gradient_of_args, **attrs, **SAME))
    return rows


CASES = {
    "FakeQuantWithMinMaxArgs": [
        *_known(True),
        case(f32(0, 3), expect=np.zeros((0, 3), np.float32), **SAME),
        bad(X, min=1.0, max=1.0, says="min has to be smaller than max"),
        bad(X, num_bits=1, says="num_bits"),
        bad(X, num_bits=17, says="num_bits"),
        bad(i32(3), says="dtype"),
    ],
    "FakeQuantWithMinMaxVars": [
        *_known(False),
        bad(X, np.array([-1], np.float32), MOST, says="rank"),
        bad(i32(3), LEAST, MOST, says="dtype"),
    ],
    "FakeQuantWithMinMaxVarsPerChannel": [
        case(
            CHANNELS,
            np.array([-1, 0], np.float32),
            np.array([0.5, 4], np.float32),
            expect=[[-1, 0.29803923], [0.2, 4], [0.5, 0]],
            **SAME,
        ),
        case(
            CHANNELS,
            np.array([-1, 0], np.float32),
            np.array([0.5, 4], np.float32),
            np.array([[1, 2], [3, 4], [5, 6]], np.float32),
            call=gradients,
            expect=[[[0, 2], [3, 0], [0, 0]], [1, 6], [5, 4]],
            **SAME,
        ),
        bad(CHANNELS, np.zeros(3, np.float32), np.ones(3, np.float32), says="last dimension"),
        bad(np.float32(1), np.zeros(1, np.float32), np.ones(1, np.float32), says="last dimension"),
    ],
}
