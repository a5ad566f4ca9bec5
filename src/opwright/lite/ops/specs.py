"""Types of the lite dialect's values: what a file states of a tensor besides its element type and shape.

Lives here: `LiteTensorSpec`, `Quantization`, `BlockwiseScales`, `Sparsity`, and the text of each (`detailed`).
Not here: their tables in files (spec_serialization.py), quantized arithmetic (quantized/).

    conv: i8[1,8,8,4]{scale=0.5, zero_point=-3} = CONV_2D(x, w, b, ...)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ...core.specs import TensorSpec
from ...graph.ir import Value, same_attr


class BlockwiseScales(NamedTuple):
    """Scales of blocks of elements, which files keep in tensors of their own.

    scales: float16 or float32; zero_points: or None for zeros. size: elements of a block along the last dimension.
    axes: the quantized dimensions where they are several, else empty. names: of the two tensors.
    """

    scales: np.ndarray
    zero_points: np.ndarray | None
    size: int
    axes: tuple[int, ...] = ()
    names: tuple[str, str] = ("", "")


class Quantization:
    """How integers stand for real numbers: real = scale * (q - zero_point), by slices of `axis` or as a whole.

    scale: float32, one or one a slice; none where `blocks` has them. zero_point: int64. low, high: the range that a
    trainer recorded, often empty. custom: parameters whose meaning another program knows, or None. Immutable.
    """

    __slots__ = ("axis", "blocks", "custom", "high", "low", "scale", "zero_point")

    def __init__(
        self,
        scale: Any = (),
        zero_point: Any = (),
        axis: int = 0,
        low: Any = (),
        high: Any = (),
        blocks: BlockwiseScales | None = None,
        custom: bytes | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "scale", np.atleast_1d(np.asarray(scale, np.float32)))
        put(self, "zero_point", np.atleast_1d(np.asarray(zero_point, np.int64)))
        put(self, "axis", axis)
        put(self, "low", np.atleast_1d(np.asarray(low, np.float32)))
        put(self, "high", np.atleast_1d(np.asarray(high, np.float32)))
        put(self, "blocks", blocks)
        put(self, "custom", custom)

    scale: np.ndarray
    zero_point: np.ndarray
    axis: int
    low: np.ndarray
    high: np.ndarray
    blocks: BlockwiseScales | None
    custom: bytes | None

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Quantization is immutable; cannot set {name}")

    @property
    def quantized_dimension(self) -> int:
        """The axis under the name that tables of files have."""
        return self.axis

    @property
    def has_scales(self) -> bool:
        """Whether elements stand for real numbers: a range alone does not say so."""
        return len(self.scale) > 0 or self.blocks is not None

    @property
    def details(self) -> dict[str, Any]:
        """The parameters as attributes of graph text, defaults left out."""
        details: dict[str, Any] = {}
        for name in ("scale", "zero_point", "low", "high"):
            values = getattr(self, name)
            if len(values):
                details[name] = values.item() if len(values) == 1 and np.isfinite(values[0]) else values
        if self.axis:
            details["axis"] = self.axis
        if self.blocks is not None:
            details["blocks"] = tuple(self.blocks)
        if self.custom is not None:
            details["custom"] = self.custom
        return details

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantization) and same_attr(self.details, other.details)

    def __hash__(self) -> int:
        return hash((self.scale.tobytes(), self.zero_point.tobytes(), self.axis))

    def __repr__(self) -> str:
        return f"Quantization({', '.join(f'{k}={v!r}' for k, v in self.details.items())})"

    def __reduce__(self) -> Any:
        return Quantization, (self.scale, self.zero_point, self.axis, self.low, self.high, self.blocks, self.custom)


class Sparsity(NamedTuple):
    """Where the elements that a file stores of a constant belong.

    traversal_order: of the dimensions and of their blocks, which count on from the rank. block_map: the dimensions in
    blocks. levels: for each of the order a size, or (segments, indices) of a compressed one.
    """

    traversal_order: tuple[int, ...]
    block_map: tuple[int, ...]
    levels: tuple[int | tuple[np.ndarray, np.ndarray], ...]


class LiteTensorSpec(TensorSpec):
    """A tensor's type in the lite dialect.

    name: of the tensor in the file, where it is not that of the value. quantization: or None. is_variable: the tensor
    keeps its elements from run to run. sparsity: how a constant is stored, or None for densely. sizes: of the
    dimensions that the shape leaves open, before inputs are resized; None for 1 each.
    """

    __slots__ = ("is_variable", "quantization", "sizes", "sparsity")
    quantization: Quantization | None
    is_variable: bool
    sparsity: Sparsity | None
    sizes: tuple[int, ...] | None

    def __init__(
        self,
        shape: Any,
        dtype: Any,
        name: str | None = None,
        quantization: Quantization | None = None,
        is_variable: bool = False,
        sparsity: Sparsity | None = None,
        sizes: tuple[int, ...] | None = None,
    ) -> None:
        super().__init__(shape, dtype, name)
        put = object.__setattr__
        put(self, "quantization", quantization)
        put(self, "is_variable", is_variable)
        put(self, "sparsity", sparsity)
        put(self, "sizes", sizes)

    @property
    def details(self) -> dict[str, Any]:
        """Return the differences from a plain type, as attributes of graph text."""
        details = {} if self.quantization is None else self.quantization.details
        if self.is_variable:
            details["variable"] = True
        if self.sparsity is not None:
            details["sparsity"] = tuple(self.sparsity)
        if self.sizes is not None:
            details["sizes"] = self.sizes
        if self.name is not None:
            details["name"] = self.name
        return details

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is type(self)
            and self.dtype is other.dtype
            and self.shape == other.shape
            and same_attr(self.details, other.details)
        )

    def __hash__(self) -> int:
        return super().__hash__()

    def __repr__(self) -> str:
        return f"LiteTensorSpec({self.short()}, {', '.join(f'{k}={v!r}' for k, v in self.details.items())})"

    def __reduce__(self) -> Any:
        parts = self.shape, self.dtype, self.name, self.quantization, self.is_variable, self.sparsity, self.sizes
        return type(self), parts


def with_changes(spec: TensorSpec, **changes: Any) -> TensorSpec:
    """Return the type with some fields of a `LiteTensorSpec` changed; a plain type where nothing is left to add."""
    fields = {name: getattr(spec, name, None) for name in ("shape", "dtype", "quantization", "sparsity", "sizes")}
    fields["name"] = spec.name if isinstance(spec, LiteTensorSpec) else None
    fields["is_variable"] = getattr(spec, "is_variable", False)
    changed = LiteTensorSpec(**{**fields, **changes})
    return changed if changed.details else TensorSpec(changed.shape, changed.dtype)


def name_of(value: Value) -> str:
    """Return the name of a value's tensor in a file."""
    spec = value.spec
    return spec.name if isinstance(spec, LiteTensorSpec) and spec.name is not None else value.name


_PARAMETERS = ("scale", "zero_point", "axis", "low", "high", "custom")


def detailed(spec: TensorSpec, details: Mapping[str, Any]) -> LiteTensorSpec:
    """Return a type with the attributes that graph text adds to it. Raises ValueError for one that is not known."""
    left = dict(details)
    parameters = {name: left.pop(name) for name in _PARAMETERS if name in left}
    if "blocks" in left:
        parameters["blocks"] = BlockwiseScales(*left.pop("blocks"))
    sparsity, sizes = left.pop("sparsity", None), left.pop("sizes", None)
    name, is_variable = left.pop("name", None), left.pop("variable", False)
    if left:
        raise ValueError(f"types of the lite dialect have no {', '.join(left)}")
    return LiteTensorSpec(
        spec.shape,
        spec.dtype,
        name,
        quantization=Quantization(**parameters) if parameters else None,
        is_variable=bool(is_variable),
        sparsity=None if sparsity is None else Sparsity(*sparsity),
        sizes=sizes,
    )
