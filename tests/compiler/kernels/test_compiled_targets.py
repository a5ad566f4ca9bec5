"""Kernels whose values other modules test (lite/compiled, lite/customs, lite/ops) compile for every target."""

from __future__ import annotations

from form_kit import compiles_for, targets

from opwright.compiler.kernels.epilogue import Epilogue
from opwright.compiler.kernels.image_warp import affine_image, affine_points, crop_matrix, pixels_at
from opwright.compiler.kernels.lsh_projection import project
from opwright.compiler.kernels.matmul import matmul_int16
from opwright.compiler.kernels.pooling import max_places, put_in_windows, reduce_windows
from opwright.compiler.kernels.recurrent_cells import filters_over_time
from opwright.compiler.kernels.rnn import basic_cells, basic_cells_int, simple_recurrence
from opwright.compiler.kernels.scatter import put_entries
from opwright.compiler.loops.expressions import arg, convert
from opwright.core.dtypes import float32, int8, int16, int64

PLAIN = Epilogue(arg(0, float32), (), ())
SUMS = Epilogue(convert(arg(0, int64), float32), (), ())


@targets(
    (affine_points, {"numbers": 3}),
    (affine_image, {"centred": True}),
    (crop_matrix, {"half_turn": False}),
    (max_places, {"more": 0, "epilogue": PLAIN}),
    (put_in_windows, {}),
    (reduce_windows, {"source": int16, "kind": "max", "starts": True, "along": True, "apart": True, "lanes": 8}),
    (pixels_at, {"flow": True}),
    (pixels_at, {"flow": False}),
    (put_entries, {"width": 16}),
    (project, {"n": 12, "size": 4, "weighted": True, "sparse": True}),
    (project, {"n": 100, "size": 2, "weighted": False, "sparse": False}),
    (basic_cells, {}),
    (basic_cells_int, {"power": -11}),
    (matmul_int16, {"more": 0, "dtype": int8, "along": True, "epilogue": SUMS}),
    (matmul_int16, {"more": 0, "dtype": int16, "along": False, "epilogue": SUMS}),
    (simple_recurrence, {"rows": 2, "activation": "TANH", "rounding": "symmetric"}),
    (filters_over_time, {"more": 0, "source": float32, "total": float32, "lanes": 8, "epilogue": PLAIN}),
)
def test_they_compile_for_every_target(family, constants, names):
    compiles_for(names, family, **constants)
