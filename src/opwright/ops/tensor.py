"""Tensor: what operators take and give, seen by everyone alike.

Lives here: `TensorLike` (whatever speaks in Python's operators), `Tensor` (the base of eager and traced tensors) and
`IndexedSlices`.  Not here: storage (eager/), recording (tracing/), what the operators compute (the families).
Python's operators are filled in by overloads.py from the families, so that this module needs none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.dtypes import DType
from ..core.shapes import TensorShape
from ..core.specs import TensorSpec


class TensorLike:
    """Whatever may stand where a tensor is wanted and speaks Python's operators: tensors, variables."""

    __slots__ = ()
    __array_priority__ = 100  # NumPy arrays leave `array + tensor` to the tensor; `np.sin(tensor)` is theirs

    if TYPE_CHECKING:  # each kind has these its own way; Python's operators come from overloads.py

        def __getattr__(self, name: str) -> Any: ...
        def __iter__(self) -> Any: ...


class Tensor(TensorLike):
    """A value with a dtype and a shape: computed already (eager) or to be computed (inside `function`)."""

    __slots__ = ()

    @property
    def dtype(self) -> DType:
        """Element type."""
        raise AttributeError("dtype")

    @property
    def shape(self) -> TensorShape:
        """Shape, perhaps partly unknown while tracing."""
        raise AttributeError("shape")

    @property
    def spec(self) -> TensorSpec:
        """dtype and shape."""
        return TensorSpec(self.shape, self.dtype)

    @property
    def constant(self) -> Any:
        """The value as a read-only array where it is known without running, else None."""
        return None

    @property
    def rank(self) -> int | None:
        """Number of dimensions, None if unknown."""
        return self.shape.rank

    @property
    def ndim(self) -> int | None:
        """Same as `rank`."""
        return self.shape.rank

    def get_shape(self) -> TensorShape:
        """Same as `shape`."""
        return self.shape

    # A tensor is compared element by element (overloads.py), so it cannot be a dictionary key; `ref()` can.
    __hash__ = None  # type: ignore[assignment]

    def ref(self) -> Reference:
        """A hashable stand-in that compares by identity."""
        return Reference(self)


class Reference:
    """A hashable reference to a tensor or variable; equal for the same object."""

    __slots__ = ("_target",)

    def __init__(self, target: Any) -> None:
        self._target = target

    def deref(self) -> Any:
        """The tensor itself."""
        return self._target

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and self._target is other._target

    def __hash__(self) -> int:
        return id(self._target) >> 4

    def __repr__(self) -> str:
        return f"<Reference wrapping {self._target!r}>"
