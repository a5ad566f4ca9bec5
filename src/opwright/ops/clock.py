"""The time of day, as a tensor.

Lives here: Timestamp.  Not here: measuring programs (benchmarks/).
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.specs import TensorSpec
from .definition import Output, operator


@operator
class Timestamp:
    """Seconds since 1970, each time it runs.

    .. math:: ts = now
    """

    ts = Output(dtype=dtypes.float64)
    effect = "random"
    gradient = None

    def infer(op) -> Any:
        return TensorSpec((), dtypes.float64)

    def compute(op) -> Any:
        return np.float64(time.time())


timestamp = Timestamp.as_function("timestamp")

__all__ = ["timestamp"]
