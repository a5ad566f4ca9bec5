"""Fixed-point arithmetic in kernels: the formulas of `scalar` on the kernel language's values.

Lives here: `INT16`, `INT32`.  Not here: the formulas (opwright/scalar), the same on arrays (lite/ops/quantized).
"""

from ...scalar.fixed_point import FixedPoint
from ...scalar.fixed_point_int32 import FixedPointInt32
from .. import language as kl

INT16 = FixedPoint(kl, 16)
"""On int32 that hold int16."""
INT32 = FixedPointInt32(kl)
"""On int64 that hold int32."""
