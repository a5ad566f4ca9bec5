"""What parameters of kernels are annotated with.

Lives here: `ptr`, `PointerKind`; `number_word`, a number as the word that a kernel reads.
Not here: arrays (arrays.py), what LLVM calls these (kinds.py).
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import numpy as np

from ...core.dtypes import DType
from ...core.errors import InvalidArgumentError


class PointerKind(NamedTuple):
    """The annotation `ptr[dtype]`."""

    dtype: DType

    def __repr__(self) -> str:
        return f"ptr[{self.dtype.short}]"


class ptr:
    """`ptr[f32]`: a pointer to elements, as a parameter of a kernel."""

    def __class_getitem__(cls, dtype: DType) -> PointerKind:
        return PointerKind(dtype)


def number_word(x: Any, dtype: DType, op: str | None = None, name: str | None = None) -> int:
    """Return a number as the 8-byte word of a parameter of this dtype, an int64 with its bits in the low bytes.

    A float is rounded to the dtype; one beyond its range is an infinity, as in NumPy.
    raises InvalidArgumentError for a number that an integer or bool parameter cannot hold, naming op and parameter
    """
    if dtype.is_floating:
        with np.errstate(over="ignore"):
            bits = np.asarray(x, dtype.np).tobytes().ljust(8, b"\0")
        return int(struct.unpack("<q", bits)[0])
    try:
        whole = int(x)
        exact = bool(whole == x)
    except (OverflowError, ValueError):  # an infinity, NaN
        whole, exact = 0, False
    least, most = (0, 1) if dtype.is_bool else (int(dtype.min), int(dtype.max))
    if not exact or not least <= whole <= most:
        raise InvalidArgumentError(
            op=op,
            what=f"argument {name}" if name else "a parameter of a kernel",
            found=x,
            wanted=f"{dtype.name}, an integer within {least} to {most}",
        )
    return whole - (1 << 64) if whole >= 1 << 63 else whole
