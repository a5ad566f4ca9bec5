"""Shapes with unknown dimensions and unknown rank.

Lives here: `TensorShape`, its algebra (compatible, subtype, merge, concatenate) and NumPy's broadcasting of it.
Not here: shape rules of operators (ops/).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, SupportsIndex, overload

from .errors import InvalidArgumentError

Dims = tuple[int | None, ...]


class TensorShape:
    """The shape of a tensor: a tuple of sizes, None for an unknown one. Immutable. `TensorShape(None)`: unknown rank.

    dims: the tuple, or None if the rank is unknown. Equality is structural: unknown sizes equal only unknown sizes, as
    in current TensorFlow. raises ValueError for a negative size, TypeError for one that is not an integer
    """

    __slots__ = ("dims",)
    dims: Dims | None

    def __init__(self, dims: Any) -> None:
        object.__setattr__(self, "dims", _as_dims(dims))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a TensorShape is immutable; cannot set {name}")

    @property
    def rank(self) -> int | None:
        """Number of dimensions, None if unknown."""
        return None if self.dims is None else len(self.dims)

    @property
    def ndims(self) -> int | None:
        """Same as `rank`."""
        return self.rank

    def is_fully_defined(self) -> bool:
        """Return whether rank and all sizes are known."""
        return self.dims is not None and None not in self.dims

    def num_elements(self) -> int | None:
        """Return the product of the sizes, None if any is unknown."""
        if self.dims is None:
            return None
        n = 1
        for d in self.dims:
            if d is None:
                return None
            n *= d
        return n

    def as_list(self) -> list[int | None]:
        """Return the sizes as a list. Raises ValueError if the rank is unknown."""
        if self.dims is None:
            raise ValueError("as_list() is not defined on an unknown TensorShape.")
        return list(self.dims)

    def is_compatible_with(self, other: Any) -> bool:
        """Return whether a tensor could have both shapes."""
        a, b = self.dims, as_shape(other).dims
        if a is None or b is None:
            return True
        return len(a) == len(b) and all(x is None or y is None or x == y for x, y in zip(a, b))

    def is_subtype_of(self, other: Any) -> bool:
        """Return whether every tensor of this shape also has shape `other` (which may be less specific)."""
        a, b = self.dims, as_shape(other).dims
        if b is None:
            return True
        if a is None or len(a) != len(b):
            return False
        return all(y is None or x == y for x, y in zip(a, b))

    def most_specific_common_supertype(self, others: Sequence[TensorShape]) -> TensorShape:
        """Return the most specific shape of which all of these are subtypes."""
        dims = self.dims
        for other in others:
            b = other.dims
            if dims is None or b is None or len(dims) != len(b):
                return UNKNOWN
            dims = tuple(x if x == y else None for x, y in zip(dims, b))
        return TensorShape(dims)

    most_specific_compatible_shape = lambda self, other: self.most_specific_common_supertype([as_shape(other)])  # noqa: E731

    def merge_with(self, other: Any) -> TensorShape:
        """Return the shape of a tensor that has both shapes. Raises ValueError if they are incompatible."""
        a, b = self.dims, as_shape(other).dims
        if a is None:
            return as_shape(other)
        if b is None:
            return self
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {as_shape(other)} are not compatible")
        return TensorShape(tuple(y if x is None else x for x, y in zip(a, b)))

    def concatenate(self, other: Any) -> TensorShape:
        """Return this shape followed by the other; unknown rank if either has it."""
        a, b = self.dims, as_shape(other).dims
        return UNKNOWN if a is None or b is None else TensorShape(a + b)

    def with_rank(self, rank: int) -> TensorShape:
        """Return this shape with the rank `rank`. Raises ValueError if it has another."""
        if self.dims is None:
            return TensorShape((None,) * rank)
        self.assert_has_rank(rank)
        return self

    def with_rank_at_least(self, rank: int) -> TensorShape:
        """Return the shape if its rank may be `rank` or more. Raises ValueError for a lower one."""
        if self.rank is not None and self.rank < rank:
            raise ValueError(f"Shape {self} must have rank at least {rank}")
        return self

    def with_rank_at_most(self, rank: int) -> TensorShape:
        """Return the shape if its rank may be `rank` or less. Raises ValueError for a higher one."""
        if self.rank is not None and self.rank > rank:
            raise ValueError(f"Shape {self} must have rank at most {rank}")
        return self

    def assert_has_rank(self, rank: int) -> None:
        """Raise ValueError if the rank is known and differs."""
        if self.rank not in (None, rank):
            raise ValueError(f"Shape {self} must have rank {rank}")

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raise ValueError if no tensor can have both shapes."""
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {as_shape(other)} are incompatible")

    def assert_is_fully_defined(self) -> None:
        """Raise ValueError if rank or a size is unknown."""
        if not self.is_fully_defined():
            raise ValueError(f"Shape {self} is not fully defined")

    def __len__(self) -> int:
        if self.dims is None:
            raise ValueError("Cannot take the length of shape with unknown rank.")
        return len(self.dims)

    def __bool__(self) -> bool:
        return self.dims is not None

    def __iter__(self) -> Iterator[int | None]:
        if self.dims is None:
            raise ValueError("Cannot iterate over a shape with unknown rank.")
        return iter(self.dims)

    @overload
    def __getitem__(self, key: SupportsIndex) -> Any: ...
    @overload
    def __getitem__(self, key: slice) -> TensorShape: ...
    def __getitem__(self, key: SupportsIndex | slice) -> object:
        if isinstance(key, slice):
            return UNKNOWN if self.dims is None else TensorShape(self.dims[key])
        return None if self.dims is None else self.dims[key]

    def __add__(self, other: Any) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other: Any) -> TensorShape:
        return as_shape(other).concatenate(self)

    def __eq__(self, other: object) -> bool:
        try:
            return self.dims == as_shape(other).dims
        except (TypeError, ValueError):
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self.dims)

    def __str__(self) -> str:
        if self.dims is None:
            return "<unknown>"
        inside = ", ".join(map(str, self.dims))
        return f"({inside},)" if len(self.dims) == 1 else f"({inside})"

    def __repr__(self) -> str:
        return "TensorShape(None)" if self.dims is None else f"TensorShape({list(self.dims)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return TensorShape, (self.dims,)


def _as_dims(dims: Any) -> Dims | None:
    if dims is None:
        return None
    if type(dims) is TensorShape:
        return dims.dims
    if isinstance(dims, (str, bytes)):
        raise TypeError(f"a shape is a sequence of sizes, found {dims!r}")
    try:
        items = tuple(dims)
    except TypeError:
        items = (dims,)  # one size, as in TensorFlow
    return tuple(_as_dim(d) for d in items)


def _as_dim(size: Any) -> int | None:
    if size is None:
        return None
    if type(size) is not int:
        try:
            size = size.__index__()
        except AttributeError:
            raise TypeError(f"a dimension is an integer or None, found {size!r}") from None
    if size < 0:
        raise ValueError(f"Dimension {size} must be >= 0")
    result: int | None = size
    return result


def as_shape(shape: Any) -> TensorShape:
    """Return the TensorShape for a TensorShape, a sequence of sizes, one size, or None (unknown rank)."""
    return shape if type(shape) is TensorShape else TensorShape(shape)


def of_known(dims: tuple[int, ...]) -> TensorShape:
    """Return the shape of an array's `shape`, unchecked: a hot path. Shapes are immutable, and frequent ones shared."""
    shape = _known.get(dims)
    if shape is None:
        shape = TensorShape.__new__(TensorShape)
        object.__setattr__(shape, "dims", dims)
        if len(_known) < MOST_KNOWN:
            _known[dims] = shape
    return shape


MOST_KNOWN = 1024
_known: dict[tuple[int, ...], TensorShape] = {}


UNKNOWN = TensorShape(None)
SCALAR = TensorShape(())


def broadcast(a: TensorShape, b: TensorShape) -> TensorShape:
    """Broadcast two shapes by NumPy's rules: aligned at the end, size 1 is repeated; an unknown size with 1 stays
    unknown.

    raises InvalidArgumentError if the sizes are incompatible
    """
    if a.dims is None or b.dims is None:
        return UNKNOWN
    if a.dims == b.dims:
        return a
    long, short = (a.dims, b.dims) if len(a.dims) >= len(b.dims) else (b.dims, a.dims)
    pad = len(long) - len(short)
    out = list(long[:pad])
    for x, y in zip(long[pad:], short):
        if x == y or y == 1:
            out.append(x)
        elif x == 1 or x is None:
            out.append(y)
        elif y is None:
            out.append(x)
        else:
            raise InvalidArgumentError(
                what=f"Incompatible shapes: {list(a.dims)} vs. {list(b.dims)}",
                wanted="sizes that are equal or 1, aligned at the last dimension",
            )
    return TensorShape(out)
