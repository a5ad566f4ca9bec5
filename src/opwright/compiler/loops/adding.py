"""What rules of both dialects do: add forms for one node.

Lives here: `Adding`, `Refused`.  Not here: nodes and their operands (rules/nodes.py, lite/compiled/nodes.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from ...core.dtypes import DType, uint8
from .forms import Bitcast, Buffer, Form, Part, View

F = TypeVar("F", bound=Form)

LINE = 64  # bytes: where the results of a form that has several begin


class Refused(Exception):
    """No forms for this node; why: a few words. It runs as it would without the compiler."""


class Adding:
    """The forms that one node's rule adds. origin: how they name the node. Subclasses know its operands."""

    __slots__ = ("forms", "origin")

    def __init__(self, origin: tuple[str, ...]) -> None:
        self.origin = origin
        self.forms: list[Form] = []

    def operand(self, place: int) -> Any:
        """An input, with `constant`: its elements, if known. Raises Refused."""
        raise TypeError(f"{type(self).__name__} must define operand(place)")

    def constant(self, place: int) -> np.ndarray:
        """The elements of an input. Raises Refused where they are not known."""
        found: np.ndarray | None = self.operand(place).constant
        if found is None:
            raise Refused(f"input {place} is no constant")
        return found

    def form(self, make: Callable[..., F], output: Buffer, *parts: Any, **named: Any) -> F:
        """Add a form that writes `output`."""
        made = make(output, *parts, origin=self.origin, **named)
        self.forms.append(made)
        return made

    def with_results(self, make: Callable[[Buffer, tuple[tuple[Buffer, int], ...]], Any], *outputs: Buffer) -> None:
        """Add a form that has several results: make(whole, results) adds it, writing one buffer of bytes that has each
        result at a place of its own; a copy takes each of them out."""
        if len(outputs) == 1:
            make(outputs[0], ((outputs[0], 0),))
            return
        starts, size = [], 0
        for b in outputs:
            starts.append(size)
            size += -(-b.size * b.dtype.size // LINE) * LINE
        whole = Buffer(f"{outputs[0].name}.all", uint8, (size,))
        make(whole, tuple(zip(outputs, starts)))
        for b, start in zip(outputs, starts):
            self.form(Part, b, whole, start)

    def viewed(self, buffer: Buffer, shape: Sequence[int]) -> Buffer:
        """The elements of a buffer under another shape."""
        shape = tuple(shape)
        if buffer.shape == shape:
            return buffer
        if buffer.constant is not None:
            return Buffer(buffer.name, buffer.dtype, shape, buffer.constant.reshape(shape))
        made = Buffer(f"{buffer.name}.{'x'.join(map(str, shape))}", buffer.dtype, shape)
        self.form(View, made, buffer)
        return made

    def bits(self, buffer: Buffer, dtype: DType, shape: Sequence[int]) -> Buffer:
        """The bytes of a buffer as elements of another dtype."""
        if buffer.dtype is dtype:
            return self.viewed(buffer, shape)
        if buffer.constant is not None:
            known = np.ascontiguousarray(buffer.constant).reshape(-1).view(dtype.np).reshape(shape)
            return Buffer(f"{buffer.name}.{dtype.short}", dtype, tuple(shape), known)
        made = Buffer(f"{buffer.name}.{dtype.short}", dtype, tuple(shape))
        self.form(Bitcast, made, buffer)
        return made
