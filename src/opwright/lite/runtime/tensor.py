"""Tensors of a running subgraph: the state (`Tensor`) and the view for a node's methods (`TensorView`).

Lives here: shape, dtype, blockwise scales, the location of the elements.
Not here: memory planning (memory.py), tensors of a file and their constants (constants.py).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import DType, int8, string
from ...core.lazy_imports import later
from ...core.named_tuples import NamedTuple
from ..ops import types

if TYPE_CHECKING:
    from ...core import shapes, specs
    from ..format import schema
else:  # a model planned before runs without
    shapes, specs = later("...core.shapes", __package__), later("...core.specs", __package__)
    schema = later("..format.schema", __package__)

CONSTANT, FOLDED, ARENA, OWN, DYNAMIC, OUTSIDE = "constant", "folded", "arena", "own", "dynamic", "outside"
"""Storage of a tensor's elements: in the file; in memory of its own, computed when tensors were allocated and kept
until the next allocation; in the planned arena; in persistent memory of its own (variables, objects); in memory of its
own that is allocated during a run, when the shape is known; in memory of the node that calls the subgraph, for its
inputs."""


class BlockScales(NamedTuple):
    """Scales of blocks along the last dimension. scales: float16 [..., blocks]. size: elements per block."""

    scales: Tensor
    size: int


class Tensor:
    """One tensor of a subgraph. array: its elements, None until allocated. kind: one of the six storage kinds above."""

    __slots__ = (
        "_dtype",
        "_readonly",
        "_spec",
        "array",
        "blocks",
        "has_rank",
        "index",
        "is_variable",
        "kind",
        "name",
        "quantization",
        "shape",
        "signature",
        "sparsity",
        "type",
    )

    def __init__(self, index: int, name: str, type: Any, shape: tuple[int, ...], kind: str) -> None:
        self.index, self.name, self.type, self.shape, self.kind = index, name, type, shape, kind
        self.signature: tuple[int, ...] | None = None
        self.quantization: Any = None
        self.blocks: BlockScales | None = None
        self.sparsity: Any = None
        self.is_variable = False
        self.has_rank = True
        self.array: np.ndarray | None = None
        self._dtype: DType | None = types.BY_NAME.get(getattr(type, "name", ""))
        self._readonly: np.ndarray | None = None
        self._spec: specs.TensorSpec | None = None

    @property
    def dtype(self) -> DType:
        """The dtype. Raises UnimplementedError for types of the schema without one."""
        if self._dtype is None:
            return types.dtype_of(getattr(self.type, "name", str(self.type)), self.name)
        return self._dtype

    @property
    def is_object(self) -> bool:
        """Whether the elements are Python objects: strings and handles."""
        result: bool = self.dtype.np.kind == "O"
        return result

    @property
    def is_quantized(self) -> bool:
        """Whether the elements represent real numbers by scale and zero point."""
        q = self.quantization
        return q is not None and (len(q.scale) > 0 or self.blocks is not None) and self.dtype.is_integer

    @property
    def nbytes(self) -> int:
        """Bytes of the elements; 8 for an object."""
        result: int = math.prod(self.shape) * self.dtype.np.itemsize
        return result

    # Shape rules read `spec` and `constant`.

    @property
    def spec(self) -> specs.TensorSpec:
        """The type; the shape is unknown for a dynamic tensor without elements."""
        if self._spec is None:
            unknown = self.kind == DYNAMIC and self.array is None
            self._spec = specs.TensorSpec(None if unknown else shapes.of_known(self.shape), self.dtype)
        return self._spec

    @property
    def constant(self) -> np.ndarray | None:
        """The elements if no run changes them, else None."""
        return self.array if self.kind in (CONSTANT, FOLDED) else None

    @property
    def is_held(self) -> bool:
        """Whether the elements are in memory or a view of the file: all are but constants yet to be unpacked."""
        return self.array is not None

    def set_shape(self, shape: tuple[int, ...]) -> None:
        """Set the shape, and drop the elements."""
        self.shape, self._spec = shape, None
        self.bind(None)

    def set_dtype(self, dtype: DType) -> None:
        """Set the element type, and drop the elements."""
        self.type, self._dtype, self._spec = schema.TensorType[types.name_of(dtype)], dtype, None
        self.bind(None)

    def bind(self, array: np.ndarray | None) -> None:
        """Set the array that holds the elements."""
        self.array, self._readonly = array, None
        if self.kind == DYNAMIC:
            self._spec = None

    def set_kind(self, kind: str) -> None:
        """Set the storage kind; a change drops the elements."""
        if kind != self.kind:
            self.kind = kind
            self._spec = None
            self.bind(None)

    def allocate(self) -> None:
        """Allocate zeroed memory of its own for the current shape."""
        make = np.empty if self.is_object else np.zeros
        self.bind(make(self.shape, self.dtype.np))
        if self.is_object or self.is_variable:
            self.clear()

    def clear(self) -> None:
        """Fill with zeros or empty strings; an int8 variable with its zero point, as in the official run time."""
        assert self.array is not None
        start: Any = 0
        if self.is_object:
            start = b"" if self.dtype is string else None
        elif self.is_variable and self.dtype is int8 and self.is_quantized:
            points = self.quantization.zero_point
            start = np.int64(points[0] if points is not None and len(points) else 0).astype(np.int8)
        self.array.fill(start)

    @property
    def readonly(self) -> np.ndarray | None:
        """A read-only view of the elements."""
        if self._readonly is None and self.array is not None:
            self._readonly = self.array.view()
            self._readonly.flags.writeable = False
        return self._readonly

    def short(self) -> str:
        """Return the type as errors print it, such as f32[2,3]."""
        if self._dtype is None:
            return f"{getattr(self.type, 'name', self.type)}{list(self.shape)}"
        shape = "..." if self.kind == DYNAMIC and self.array is None else ",".join(map(str, self.shape))
        return f"{self._dtype.short}[{shape}]"

    def __repr__(self) -> str:
        return f"<tensor {self.index} {self.name!r} {self.short()}>"


class TensorView:
    """A tensor as seen by methods of a node.

    data: the elements as a NumPy view, read-only for an input; None before allocation. shape, dims: tuple and list of
    sizes. dtype: DType. type: the file's TensorType. name. index. is_constant. is_variable. quantization: the file's
    table (scale, zero_point, quantized_dimension) or None.
    """

    __slots__ = ("tensor", "tracker", "writable")

    def __init__(self, tensor: Tensor, writable: bool) -> None:
        self.tracker: Any = None  # tracks views passed to methods (tensor_access.py), or None
        self.tensor, self.writable = tensor, writable and tensor.kind != CONSTANT

    @property
    def data(self) -> np.ndarray | None:
        """The elements, in place."""
        array = self.tensor.array if self.writable else self.tensor.readonly
        return array if self.tracker is None else self.tracker.view(self.tensor, array)

    @data.setter
    def data(self, values: Any) -> None:
        raise AttributeError(f"tensor {self.name!r} has its memory: write into it, data[...] = values")

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes."""
        return self.tensor.shape

    @property
    def dims(self) -> list[int]:
        """Sizes, as a list."""
        return list(self.tensor.shape)

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self.tensor.dtype

    @property
    def type(self) -> Any:
        """The file's element type, a TensorType."""
        return self.tensor.type

    @property
    def name(self) -> str:
        """The name in the file."""
        return self.tensor.name

    @property
    def index(self) -> int:
        """The index among the subgraph's tensors."""
        return self.tensor.index

    @property
    def is_constant(self) -> bool:
        """Whether the elements are the file's and never change; they are available in prepare, too."""
        return self.tensor.kind == CONSTANT

    @property
    def is_variable(self) -> bool:
        """Whether the elements persist between runs."""
        return self.tensor.is_variable

    @property
    def is_dynamic(self) -> bool:
        """Whether the shape is determined during a run."""
        return self.tensor.kind == DYNAMIC

    @property
    def quantization(self) -> Any:
        """Scales and zero points, as the file's table."""
        return self.tensor.quantization

    def short(self) -> str:
        """Return the type as errors print it."""
        return self.tensor.short()

    def __repr__(self) -> str:
        return repr(self.tensor)
