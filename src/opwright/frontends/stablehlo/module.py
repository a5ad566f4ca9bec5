"""A StableHLO module as objects: functions, operations, values, types, locations.

Lives here: what readers return and rules receive. Not here: reading (text.py, bytecode.py), execution.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ...core.dtypes import as_dtype
from ...core.errors import InvalidArgumentError

MAX_ELEMENTS = 2**31
MAX_DEPTH = 64
"""Bounds of a tensor type, and of regions and attributes within each other."""

DTYPES = {
    **{
        f"{kind}{bits}": as_dtype(np.dtype(f"{name}{bits}"))
        for kind, name in (("i", "int"), ("ui", "uint"))
        for bits in (8, 16, 32, 64)
    },
    "i1": as_dtype(np.bool_),
    "index": as_dtype(np.int64),
    "f16": as_dtype(np.float16),
    "bf16": as_dtype("bfloat16"),
    "f32": as_dtype(np.float32),
    "f64": as_dtype(np.float64),
    "complex<f32>": as_dtype(np.complex64),
    "complex<f64>": as_dtype(np.complex128),
}
"""Element types by their names in MLIR."""


@dataclasses.dataclass(frozen=True, slots=True)
class TensorType:
    """shape: None for unknown sizes. dtype: None for tokens and the like."""

    shape: tuple[int | None, ...]
    dtype: Any

    @property
    def sizes(self) -> tuple[int, ...]:
        """The shape, of which all sizes are known. Raises ValueError if they are not."""
        if None in self.shape:
            raise ValueError(f"the sizes {list(self.shape)} are not all known")
        return tuple(d for d in self.shape if d is not None)

    @property
    def size(self) -> int:
        """How many elements a tensor of this type has; unknown sizes count as 1."""
        count = 1
        for d in self.shape:
            count *= 1 if d is None else d
        return count


def tensor_type(shape: tuple[int | None, ...], element: str) -> TensorType:
    """Return the type of a shape and an element's name. Raises ValueError for what the catalogue has no dtype for."""
    if element not in DTYPES:
        raise ValueError(f"the element type {element} has no dtype in the catalogue")
    result = TensorType(shape, DTYPES[element])
    if result.size > MAX_ELEMENTS:
        raise ValueError(f"a tensor of shape {list(shape)} has over {MAX_ELEMENTS} elements")
    return result


OPAQUE = TensorType((), None)
"""The type of tokens, and of values that only unsupported operations have."""


class HloValue:
    """A result of an operation or an argument of a region; compared by identity."""

    __slots__ = ("location", "owner", "type")

    def __init__(self, kind: Any, owner: Operation | None = None, location: str = "") -> None:
        self.type, self.owner, self.location = kind, owner, location


class Operation:
    """name: with its dialect, such as "stablehlo.add". attributes: Python values. line: of the text, or 0."""

    __slots__ = ("attributes", "line", "location", "name", "operands", "regions", "results")

    def __init__(self, name: str, line: int = 0) -> None:
        self.name, self.line, self.location = name, line, ""
        self.operands: list[HloValue] = []
        self.results: list[HloValue] = []
        self.attributes: dict[str, Any] = {}
        self.regions: list[Region] = []


class Region:
    """One block: its arguments, its operations, and the values that its terminator returns."""

    __slots__ = ("arguments", "captured", "operations", "outputs")

    def __init__(self) -> None:
        self.arguments: list[HloValue] = []
        self.operations: list[Operation] = []
        self.outputs: list[HloValue] = []
        self.captured: list[HloValue] | None = None

    def captures(self) -> list[HloValue]:
        """Return the values that the region uses and does not define."""
        if self.captured is None:
            defined, used = {id(v) for v in self.arguments}, []
            for operation in self.operations:
                used += operation.operands
                for region in operation.regions:
                    used += region.captures()
                defined |= {id(v) for v in operation.results}
            unique = {id(v): v for v in (*used, *self.outputs) if id(v) not in defined}
            self.captured = list(unique.values())
        return self.captured


class HloFunction:
    """A function of a module. argument_attributes, result_attributes: those of each, such as jax.result_info."""

    __slots__ = ("argument_attributes", "body", "name", "public", "result_attributes")

    def __init__(self, name: str, body: Region, public: bool = True) -> None:
        self.name, self.body, self.public = name, body, public
        self.argument_attributes: list[Mapping[str, Any]] = []
        self.result_attributes: list[Mapping[str, Any]] = []


class HloModule:
    """functions: by name. locations: the text of each alias, such as "#loc3"."""

    __slots__ = ("functions", "locations", "name")

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.functions: dict[str, HloFunction] = {}
        self.locations: dict[str, str] = {}

    def main(self) -> HloFunction:
        """Return the function that is the program: @main, or the only public one. Raises InvalidArgumentError."""
        if "main" in self.functions:
            return self.functions["main"]
        public = [f for f in self.functions.values() if f.public]
        if len(public) != 1:
            raise InvalidArgumentError(
                op="from_stablehlo",
                what="no function of the module is the program",
                found=", ".join(f"@{name}" for name in self.functions) or "no function",
                wanted="@main, or one public function",
            )
        return public[0]

    def place(self, location: str) -> tuple[str, str, int]:
        """Return the name of a location, and the file and line that it has; "", "" and 0 without."""
        name, file, line = "", "", 0
        for _ in range(MAX_DEPTH):  # aliases of aliases
            location = self.locations.get(location.strip(), location).strip()
            match = _FILE.match(location)
            if match:
                file, line = match[1], int(match[2])
                break
            match = _NAMED.match(location)
            if match:
                name, location = name or match[1], match[2] or ""
            elif location.startswith("callsite("):
                location = location.removeprefix("callsite(").split(" at ")[0]
            elif location.startswith("fused"):
                location = location.partition("[")[2].split(",")[0].rstrip("])")
            if not match and location not in self.locations and not location.startswith(("callsite(", "fused", '"')):
                break
        return name, file, line


_FILE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+)')
_NAMED = re.compile(r'"((?:[^"\\]|\\.)*)"(?:\((.*)\))?', re.DOTALL)


def walk(region: Region) -> Iterator[Operation]:
    """Yield the operations of a region and of all regions inside."""
    for operation in region.operations:
        yield operation
        for inner in operation.regions:
            yield from walk(inner)
