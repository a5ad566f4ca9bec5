"""Results as bytes, and the difference of two in words.

Lives here: `packed`, `failure`, `difference`, `text_difference`, `bytes_difference`.
Not here: running what has a result (execution.py).

A result is a JSON header, a line feed, and the elements of each array: {"arrays": [[dtype, shape, bytes], ...]}, or
{"error": text} alone.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray

FLOATS = {"float16": np.uint16, "bfloat16": np.uint16, "float32": np.uint32, "float64": np.uint64}
"""The integers that floating dtypes are compared as."""

# Of an error's text, what says where something lies rather than what is wrong: it changes from process to process, or
# with a line that moves.
_PLACES = (
    (re.compile(r"0x[0-9a-fA-F]{5,}"), "0x.."),
    (re.compile(r"(/[\w.+-]+)+/(?=[\w.+-])"), ""),
    (re.compile(r"(\.py):\d+"), r"\1"),
    (re.compile(r"\bline \d+"), "line .."),
)


def packed(arrays: Sequence[Array]) -> bytes:
    """The bytes of a result."""
    bodies = [_elements(a) for a in arrays]
    header = [[a.dtype.name, list(a.shape), len(body)] for a, body in zip(arrays, bodies)]
    return b"\n".join([json.dumps({"arrays": header}).encode(), b"".join(bodies)])


def _elements(a: Array) -> bytes:
    if a.dtype == object:
        return json.dumps(
            [x.decode("latin-1") if isinstance(x, bytes) else without_places(repr(x)) for x in a.reshape(-1).tolist()]
        ).encode()
    return np.ascontiguousarray(a).tobytes()


def failure(error: BaseException) -> bytes:
    """The bytes of a result that is an error: its type and text."""
    return json.dumps({"error": f"{type(error).__name__}: {without_places(str(error))}"}).encode() + b"\n"


def without_places(text: str) -> str:
    """A text without addresses, folders and line numbers."""
    for pattern, other in _PLACES:
        text = pattern.sub(other, text)
    return text


def shown(data: bytes) -> str:
    """A result in a few words: dtypes and shapes, or the error."""
    header = json.loads(data.partition(b"\n")[0])
    if "error" in header:
        return str(header["error"])
    return ", ".join(f"{name}{shape}" for name, shape, _ in header["arrays"]) or "nothing"


def _unpacked(data: bytes) -> list[Any]:
    head, _, body = data.partition(b"\n")
    result, at = [], 0
    for name, shape, count in json.loads(head)["arrays"]:
        raw, at = body[at : at + count], at + count
        if name == "object":
            result.append(np.array(json.loads(raw), object).reshape(shape))
        else:
            dtype = np.dtype(getattr(ml_dtypes, name, None) or name)
            result.append(np.frombuffer(raw, dtype).reshape(shape))
    return result


def difference(before: bytes, after: bytes) -> str:
    """How two results differ, in words: of each output how many elements, by how much at most, the first of them."""
    if b'{"error"' in (before[:8], after[:8]) or shown(before) != shown(after):
        return f"was {shown(before)}\nnow {shown(after)}"
    lines = []
    for i, (a, b) in enumerate(zip(_unpacked(before), _unpacked(after))):
        if _elements(a) != _elements(b):
            lines.append(f"output {i}, {a.dtype.name}{list(a.shape)}: {_elementwise(a, b)}")
    return "\n".join(lines)


def text_difference(before: bytes, after: bytes) -> str:
    """How two texts differ, as a unified diff."""
    lines = (x.decode("utf-8", "replace").splitlines() for x in (before, after))
    return "\n".join(difflib.unified_diff(*lines, "was", "now", lineterm="", n=1))


def bytes_difference(before: bytes, after: bytes) -> str:
    """How two files differ: their sizes, how many bytes, the first of them."""
    if len(before) != len(after):
        return f"was {len(before)} bytes, now {len(after)}"
    places = [i for i, (a, b) in enumerate(zip(before, after)) if a != b]
    was, now = before[places[0]], after[places[0]]
    return f"{len(places)} of {len(before)} bytes differ, the first at {places[0]}: was {was:#04x}, now {now:#04x}"


def _elementwise(a: Array, b: Array) -> str:
    name = a.dtype.name
    if name.startswith("complex"):
        part = np.dtype(f"float{a.dtype.itemsize * 4}")
        a, b = (np.ascontiguousarray(x).reshape(-1).view(part).reshape(*x.shape, 2) for x in (a, b))
        name = part.name
    differ = a.view(FLOATS[name]) != b.view(FLOATS[name]) if name in FLOATS else a != b
    first = tuple(int(n) for n in np.argwhere(differ)[0])
    x, y = a[first], b[first]
    text = f"{int(differ.sum())} of {a.size} elements differ"
    if name in FLOATS:
        text += f", {_distance(a[differ], b[differ])}"
        x, y = (f"{float(v):.9g} ({v.view(FLOATS[name]):#x})" for v in (x, y))
    elif a.dtype.kind in "iu":
        text += f", by {max(abs(int(p) - int(q)) for p, q in zip(a[differ], b[differ]))} at most"
    return f"{text}; first at {list(first)}: was {x}, now {y}"


def _distance(a: Array, b: Array) -> str:
    """The greatest distance in units of the last place, and how many numbers became NaN or stopped being one."""
    with np.errstate(invalid="ignore"):
        numbers = ~(np.isnan(a.astype(np.float64)) | np.isnan(b.astype(np.float64)))
    gaps = [abs(int(p) - int(q)) for p, q in zip(_ordered(a[numbers]), _ordered(b[numbers]))]
    parts = [f"{max(gaps)} ulp at most" if max(gaps) else "0.0 for -0.0"] if gaps else []
    nans = int((~numbers).sum())
    return ", ".join([*parts, *([f"{nans} of them NaN in one or both"] if nans else [])])


def _ordered(a: Array) -> list[int]:
    """Floats as integers in the same order, both zeros as 0."""
    bits = a.view(FLOATS[a.dtype.name])
    top = 1 << (8 * bits.itemsize - 1)
    return [top - int(w) if int(w) & top else int(w) for w in bits]
