"""Rows for the borders of fused operators.

Lives here: rows for FusionInputs and FusionResults (ops/control.py).  Not here: who puts borders, and what converters
make of them (tests/lite/convert).
"""

from __future__ import annotations

from harness import bad, case, f32, f64, i32

# fmt: off
CASES = {
    "FusionInputs": [
        case([f64(4, 13), f64(6, 9)], implements="my_op", expect=lambda xs: xs),
        case([f32(2, 3), i32(2)], implements="my_op", expect=lambda xs: xs),
        bad([f64(2)], implements=3, says="implements"),
    ],
    "FusionResults": [
        case([f64(4, 13), f64(6, 9)], [f64(2)], implements="my_op", expect=lambda ys, xs: ys),
        case([f32(2, 3), i32(2)], [f32(3), i32(1)], implements="my_op", expect=lambda ys, xs: ys),
        bad([f64(2)], [f64(3)], implements=None, says="implements"),
    ],
}
