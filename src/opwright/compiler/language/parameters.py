"""What parameters of kernels are annotated with.

Lives here: `ptr`, `PointerKind`.  Not here: arrays (arrays.py), what LLVM calls these (kinds.py).
"""

from __future__ import annotations

from typing import NamedTuple

from ...core.dtypes import DType


class PointerKind(NamedTuple):
    """The annotation `ptr[dtype]`."""

    dtype: DType

    def __repr__(self) -> str:
        return f"ptr[{self.dtype.short}]"


class ptr:
    """`ptr[f32]`: a pointer to elements, as a parameter of a kernel."""

    def __class_getitem__(cls, dtype: DType) -> PointerKind:
        return PointerKind(dtype)
