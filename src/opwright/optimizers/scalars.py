"""Hyperparameters as tensors.

Lives here: `scalar`, and in which dtype to compute with scalars.  Not here: what is done with them.
"""

from __future__ import annotations

from typing import Any

from ..core.dtypes import DType, as_dtype, float32
from ..ops import array, dispatch


def scalar(value: Any, dtype: DType) -> Any:
    """`value` in `dtype`: a tensor or variable by a cast, a Python number without a detour through float32."""
    return array.cast(value, dtype) if hasattr(value, "dtype") else dispatch.to_tensor(value, dtype)


def working_dtype(dtype: Any) -> DType:
    """float32 for dtypes of 16 bits: in bfloat16 0.999 is 1, and step counts end at 256. Others: themselves."""
    dtype = as_dtype(dtype)
    return float32 if dtype.size < 4 else dtype
