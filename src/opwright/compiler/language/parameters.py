"""Parameters of kernels: their annotations, and the words that calls pass for them.

Lives here: `ptr`, `PointerKind`, `Array`; `call_words`, the order of the words of a call; `number_word`.
Not here: the values of parameters during staging (pointers.py, arrays.py), their LLVM types (llvm_types.py).

A call passes words of 8 bytes: one for a number or a pointer; for an array its address, its sizes and its strides in
elements; for a NamedTuple an int64 for each field.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core import dtypes
from ...core.dtypes import DType, as_dtype
from ...core.errors import InvalidArgumentError

REST = "..."
"""Name of the product of the leading axes that an annotation with `...` folds."""


class PointerKind(NamedTuple):
    """The annotation `ptr[dtype]`."""

    dtype: DType

    def __repr__(self) -> str:
        return f"ptr[{self.dtype.short}]"


class ptr:
    """`ptr[f32]`: a pointer to elements, as a parameter of a kernel."""

    def __class_getitem__(cls, dtype: DType) -> PointerKind:
        return PointerKind(dtype)


class Array:
    """The annotation of an array parameter: dtype and sizes. A size is a number, or a name that denotes one size.

    `Array(f32, "rows", "columns")`; `Array(f32)` is an array of rank 0. `Array(f32, ..., "n")` accepts any rank from 1
    on: the axes before the last are folded into one, whose size is equal in all such arrays.
    """

    def __init__(self, dtype: Any, *shape: Any) -> None:
        self.dtype: DType = as_dtype(dtype)
        self.leading = bool(shape) and shape[0] is Ellipsis
        if self.leading:
            shape = (REST, *shape[1:])
        for size in shape:
            if not isinstance(size, int | str) or isinstance(size, bool) or (isinstance(size, int) and size < 0):
                raise TypeError(f"a size is a number or a name, found {size!r}")
        self.shape: tuple[int | str, ...] = shape

    def folded(self, shape: Sequence[int]) -> tuple[int, ...] | None:
        """Return a shape with its leading axes folded; None if the rank does not match."""
        if not self.leading:
            return tuple(shape) if len(shape) == len(self.shape) else None
        inner = len(self.shape) - 1
        if len(shape) < inner:
            return None
        axis = len(shape) - inner
        return math.prod(shape[:axis]), *shape[axis:]

    def __repr__(self) -> str:
        return f"{self.dtype.short}[{', '.join(map(str, self.shape))}]"


class CallWord(NamedTuple):
    """One word of a call. what: "number", "address", "size" or "stride"; kind: its type; axis: of a size or stride."""

    parameter: str
    what: str
    kind: DType | PointerKind
    axis: int = 0


def is_record(kind: Any) -> bool:
    """Return whether an annotation is a NamedTuple: several numbers as one parameter of a family."""
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")


def call_words(parameters: Mapping[str, Any]) -> list[CallWord]:
    """Return the words that a call passes for annotated parameters, in order."""
    words: list[CallWord] = []
    for name, kind in parameters.items():
        if isinstance(kind, Array):
            words.append(CallWord(name, "address", PointerKind(kind.dtype)))
            words += [
                CallWord(name, what, dtypes.int64, k) for what in ("size", "stride") for k in range(len(kind.shape))
            ]
        elif is_record(kind):
            words += [CallWord(f"{name}.{field}", "number", dtypes.int64) for field in kind._fields]
        else:
            words.append(CallWord(name, "number" if isinstance(kind, DType) else "address", kind))
    return words


def number_word(x: Any, dtype: DType, op: str | None = None, name: str | None = None) -> int:
    """Return a number as the word of a parameter of this dtype: an int64 with its bits in the low bytes.

    Floats are rounded to the dtype; beyond its range they become infinities, as in NumPy.
    raises InvalidArgumentError for a number that an integer or bool parameter cannot represent, naming op and parameter
    """
    if dtype.is_floating:
        with np.errstate(over="ignore"):
            bits = np.asarray(x, dtype.np).tobytes().ljust(8, b"\0")
        return int(struct.unpack("<q", bits)[0])
    try:
        integer = int(x)
        exact = bool(integer == x)
    except (OverflowError, ValueError):  # an infinity, NaN
        integer, exact = 0, False
    low, high = (0, 1) if dtype.is_bool else (int(dtype.min), int(dtype.max))
    if not exact or not low <= integer <= high:
        raise InvalidArgumentError(
            op=op,
            what=f"argument {name}" if name else "a parameter of a kernel",
            found=x,
            wanted=f"{dtype.name}, an integer within {low} to {high}",
        )
    return integer - (1 << 64) if integer >= 1 << 63 else integer
