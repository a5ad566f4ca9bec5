"""Text representation of tensors, as `ow.print` shows them.

Lives here: the text of one element and of a summarized array, in the formats of `print` and of assertions.
Not here: conversion of numbers to strings (conversion.py: AsString), templates (conversion.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_ESCAPES = {b"\n": b"\\n", b"\r": b"\\r", b"\t": b"\\t", b'"': b'\\"', b"'": b"\\'", b"\\": b"\\\\"}


def escaped(value: bytes) -> bytes:
    """Escape control characters and quotes as in a C string literal; UTF-8 is preserved."""
    out = bytearray()
    for code in value:
        character = bytes((code,))
        out += _ESCAPES.get(character) or (character if 32 <= code != 127 else b"\\%03o" % code)
    return bytes(out)


def _float_text(value: Any, parse: Callable[[str], Any], digits: int, max_digits: int) -> str:
    """Format a number with `digits` digits if they identify it, else with `max_digits`."""
    if value != value:
        return "nan"
    text = f"{float(value):.{digits}g}"
    return text if parse(text) == value else f"{float(value):.{max_digits}g}"


def element(kind: str, dtype: np.dtype, quoted: bool) -> Callable[[Any], bytes]:
    """Return the formatter of elements of an array of this kind. quoted: quote and escape strings."""
    if kind == "b":
        return lambda v: b"1" if v else b"0"
    if kind == "O":
        return (lambda v: b'"' + escaped(v) + b'"') if quoted else bytes
    if kind == "c":
        part = element("f", np.dtype(np.float32 if dtype.itemsize == 8 else np.float64), quoted)
        return lambda v: b"(" + part(v.real) + b"," + part(v.imag) + b")"
    if kind in "iu" or "int" in dtype.name:
        return lambda v: b"%d" % int(v)
    if dtype == np.float64:
        return lambda v: _float_text(v, float, 15, 17).encode()
    return lambda v: _float_text(np.float32(v), np.float32, 6, 9).encode()


def summary(array: np.ndarray, summarize: int, quoted: bool = True) -> bytes:
    """Format an array as `[1 2 3]` or `[[1 2]\\n [3 4]]`. summarize: elements at each end of each axis; -1 for all."""
    show = element(array.dtype.kind, array.dtype, quoted)
    rank = array.ndim
    ends = array.size if summarize < 0 else min(summarize, array.size)

    def spacing(axis: int) -> bytes:
        return b" " if axis == rank - 1 else b"\n" * (rank - axis - 1) + b" " * (axis + 1)

    def write(part: Any, axis: int) -> bytes:
        if axis == rank:
            return show(part[()] if isinstance(part, np.ndarray) else part)
        n = len(part)
        pieces = [write(part[i], axis + 1) for i in range(min(ends, n))]
        if n > 2 * ends:
            pieces.append(b"...")
        pieces += [write(part[i], axis + 1) for i in range(max(ends, n - ends), n)]
        text = spacing(axis).join(pieces)
        return b"[" + (spacing(axis) if pieces == [b"..."] else b"") + text + b"]"

    return write(array, 0)


def first_elements(array: np.ndarray, limit: int) -> str:
    """Format the first elements as assertions list them, without outer brackets: `1 2 3...`, `[1 2][3...]`."""
    show = element(array.dtype.kind, array.dtype, False)
    limit = array.size if limit < 0 else min(limit, array.size)
    shown = (
        [show(v).decode("utf-8", "replace") for v in array.reshape(-1)[:limit].tolist()]
        if array.dtype.kind in "biuO"
        else [show(v).decode() for v in array.reshape(-1)[:limit]]
    )
    ellipsis = "..." if array.size > limit else ""
    if array.ndim < 2:
        return " ".join(shown) + ellipsis
    position = 0

    def write(axis: int) -> str:
        nonlocal position
        if position >= limit:
            return ""
        text = ""
        if axis == array.ndim - 1:
            for i in range(array.shape[axis]):
                if position >= limit:
                    return text + "..."
                text += (" " if i else "") + shown[position]
                position += 1
            return text
        for _ in range(array.shape[axis]):
            if position < limit:
                text += "[" + write(axis + 1) + "]"
        return text

    return write(0) + ellipsis
