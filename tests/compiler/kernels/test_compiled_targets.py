"""Kernels whose values other modules test (lite/compiled, lite/customs, lite/ops) compile for every target."""

from __future__ import annotations

from form_kit import compiles_for, targets

from opwright.compiler.kernels.epilogue import Epilogue
from opwright.compiler.kernels.filters import filters_over_time
from opwright.compiler.kernels.place_pools import max_places, put_in_windows
from opwright.compiler.kernels.simple_recurrence import simple_recurrence
from opwright.compiler.kernels.warping import affine_image, affine_points, crop_matrix
from opwright.compiler.kernels.windows import reduce_windows
from opwright.compiler.loops.expressions import arg
from opwright.core.dtypes import float32, int16

PLAIN = Epilogue(arg(0, float32), (), ())


@targets(
    (affine_points, {"numbers": 3}),
    (affine_image, {"centred": True}),
    (crop_matrix, {"half_turn": False}),
    (max_places, {"more": 0, "epilogue": PLAIN}),
    (put_in_windows, {}),
    (reduce_windows, {"source": int16, "kind": "max", "starts": True, "along": True, "apart": True, "lanes": 8}),
    (simple_recurrence, {"rows": 2, "activation": "TANH", "rounding": "symmetric"}),
    (filters_over_time, {"more": 0, "source": float32, "total": float32, "lanes": 8, "epilogue": PLAIN}),
)
def test_they_compile_for_every_target(family, constants, names):
    compiles_for(names, family, **constants)
