"""The table of ATen rules, and what rules use: the context of a call, tensors of arguments.

Lives here: `TABLE`, `aten`, `AtenCall`, `tensor`, `shape_argument`. Not here: the rules (the other modules), the walk.

A rule is named by its operator, `aten::add`, for all overloads, or by one overload, `aten::max.dim`. It receives the
context and then the arguments of the node. Tensors are arrays if they are known at import, variables, or tensors.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ....core.dtypes import DType, float32, int32, int64
from ....core.errors import UnimplementedError
from ....ops import array, dispatch
from ....ops.tensor import TensorLike
from ...importing import RuleTable

TABLE = RuleTable("torch")
MODULES = (
    "creation",
    "decompositions",
    "detection",
    "activations",
    "elementwise",
    "size_arithmetic",
    "indexing",
    "interpolation",
    "linear",
    "matrices",
    "normalization",
    "order",
    "pooling",
    "quantization",
    "recurrent",
    "reductions",
    "scatter",
    "shapes",
    "special",
    "spectral",
)

Dims = Sequence["int | None"]


@dataclasses.dataclass
class AtenCall:
    """The context of one call. dtypes, shapes: of its outputs, None for an unknown size. promoted: the dtype that its
    tensor arguments have in common, by PyTorch's rules; None without tensors. strides: of the first argument, where it
    is not a contiguous tensor; None otherwise.
    """

    dtypes: tuple[DType, ...] = (float32,)
    shapes: tuple[Dims, ...] = ((),)
    promoted: DType | None = None
    strides: tuple[int, ...] | None = None

    @property
    def dtype(self) -> DType:
        """The dtype of the first output."""
        return self.dtypes[0]

    @property
    def shape(self) -> Dims:
        """The shape of the first output."""
        return self.shapes[0]


def aten(*names: str, pure: bool = True) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds the rule of operators, `NAME` or `NAME.OVERLOAD`, of the namespace aten."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        def rule(context: Any, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
            return function(context, *inputs, **attributes)

        TABLE.rule(*(name if "::" in name else f"aten::{name}" for name in names), pure=pure)(rule)
        return function

    return add


def load_rules() -> RuleTable:
    """Import all modules of rules; return the table."""
    for module in MODULES:
        importlib.import_module(f".{module}", __package__)
    return TABLE


def tensor(value: Any, dtype: DType | None = None) -> Any:
    """Return an argument as a tensor, cast if need be. Numbers become scalars of the dtype."""
    if isinstance(value, (bool, int, float, complex)):
        if dtype is not None and dtype.is_integer and not isinstance(value, complex):
            value = int(value)
        return dispatch.to_tensor(np.asarray(value, None if dtype is None else dtype.np))
    result = dispatch.to_tensor(value)
    if dtype is None or result.dtype is dtype:
        return result
    if result.dtype.is_complex and not dtype.is_complex:
        raise UnimplementedError(what="this operator's rule takes no complex numbers", found=result.dtype.name)
    return array.cast(result, dtype)


def rank_of(value: Any) -> int:
    """Return the rank of a tensor, which programs of torch.export always have."""
    rank = np.ndim(value) if isinstance(value, (np.ndarray, np.generic, int, float)) else value.shape.rank
    assert rank is not None
    return int(rank)


def sizes(value: Any) -> list[int | None]:
    """Return the sizes of a tensor, None for an unknown one."""
    return list(value.shape)


def axes_of(dim: Any, rank: int) -> list[int]:
    """Return axes from an argument `dim`: a number, numbers, or None and [] for all."""
    if dim is None or (isinstance(dim, (list, tuple)) and not dim):
        return list(range(rank))
    several = [dim] if isinstance(dim, int) else dim
    return [d % rank if rank else 0 for d in several] if rank else []


def is_dynamic(values: Sequence[Any]) -> bool:
    """Return whether a size among values is computed."""
    return any(isinstance(v, TensorLike) for v in values)


def shape_argument(op: AtenCall, dims: Sequence[Any]) -> Any:
    """Return a shape for an operator: numbers if one size at most is unknown, else a vector that is computed."""
    if not is_dynamic(dims):
        return [int(d) for d in dims]
    return vector(dims)


def reshape_argument(op: AtenCall, dims: Sequence[Any]) -> Any:
    """Return the shape of a reshape; the only unknown size is -1."""
    if op.shape is not None and list(op.shape).count(None) <= 1:
        return [-1 if d is None else d for d in op.shape]
    return shape_argument(op, dims)


def vector(values: Sequence[Any]) -> Any:
    """Return an int32 vector of numbers and computed sizes."""
    return array.stack([array.cast(tensor(v), int32) for v in values])


def dim_size(x: Any, axis: int) -> Any:
    """Return the size of a dimension: a number, or a computed int64 scalar."""
    size = x.shape[axis]
    return int(size) if size is not None else array.cast(array.shape(x)[axis], int64)


def to_nhwc(x: Any) -> Any:
    """Return channels-first images, sequences or volumes as channels-last."""
    rank = rank_of(x)
    return array.transpose(x, [0, *range(2, rank), 1])


def to_nchw(x: Any) -> Any:
    """Return channels-last images, sequences or volumes as channels-first."""
    rank = rank_of(x)
    return array.transpose(x, [0, rank - 1, *range(1, rank - 1)])


def spread(value: Any, count: int) -> list[Any]:
    """Return an argument with a number for each dimension, which may be given once for all."""
    several = [value] if isinstance(value, int) else list(value)
    return several * count if len(several) == 1 else several
