"""Tensor: the operands and results of operators, under every interpreter.

Lives here: `TensorLike` (all objects with Python's operators), `Tensor` (the base of eager and symbolic tensors),
`is_tensor` and `get_static_value`.
Not here: storage (eager/), recording (tracing/), the operators (the families).
overloads.py installs Python's operators from the families, so that this module does not import them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from ..core.dtypes import DType
from ..core.shapes import TensorShape
from ..core.specs import TensorSpec, install_tensor_class
from .indexed_slices import IndexedSlices

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class TensorLike:
    """Base class of operands with Python's operators: tensors and variables."""

    __slots__ = ()
    __array_priority__ = 100  # NumPy arrays leave `array + tensor` to the tensor; `np.sin(tensor)` is theirs

    @property
    def _identity(self) -> TensorLike:
        """Its identity for tapes (shape_only_tensor.py)."""
        return self

    if TYPE_CHECKING:  # each kind implements these its own way; overloads.py installs Python's operators

        @property
        def dtype(self) -> DType: ...
        @property
        def shape(self) -> TensorShape: ...
        @property
        def spec(self) -> TensorSpec: ...
        @property
        def constant(self) -> np.ndarray | None: ...
        @property
        def name(self) -> str: ...
        @property
        def device(self) -> str: ...
        def __bytes__(self) -> bytes: ...
        def __buffer__(self, flags: int, /) -> memoryview: ...
        def __dlpack_device__(self) -> tuple[int, int]: ...
        def numpy(self) -> Any: ...
        def set_shape(self, shape: Any) -> None: ...
        def ref(self) -> TensorReference: ...
        def get_shape(self) -> TensorShape: ...
        def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray: ...
        def __bool__(self) -> bool: ...
        def __int__(self) -> int: ...
        def __float__(self) -> float: ...
        def __complex__(self) -> complex: ...
        def __index__(self) -> int: ...
        def __len__(self) -> int: ...
        def __iter__(self) -> Iterator[Tensor]: ...
        def __getitem__(self, key: Any) -> Tensor: ...
        def __add__(self, other: TensorValue) -> Tensor: ...
        def __radd__(self, other: TensorValue) -> Tensor: ...
        def __sub__(self, other: TensorValue) -> Tensor: ...
        def __rsub__(self, other: TensorValue) -> Tensor: ...
        def __mul__(self, other: TensorValue) -> Tensor: ...
        def __rmul__(self, other: TensorValue) -> Tensor: ...
        def __truediv__(self, other: TensorValue) -> Tensor: ...
        def __rtruediv__(self, other: TensorValue) -> Tensor: ...
        def __floordiv__(self, other: TensorValue) -> Tensor: ...
        def __rfloordiv__(self, other: TensorValue) -> Tensor: ...
        def __mod__(self, other: TensorValue) -> Tensor: ...
        def __rmod__(self, other: TensorValue) -> Tensor: ...
        def __pow__(self, other: TensorValue) -> Tensor: ...
        def __rpow__(self, other: TensorValue) -> Tensor: ...
        def __matmul__(self, other: TensorValue) -> Tensor: ...
        def __rmatmul__(self, other: TensorValue) -> Tensor: ...
        def __and__(self, other: TensorValue) -> Tensor: ...
        def __rand__(self, other: TensorValue) -> Tensor: ...
        def __or__(self, other: TensorValue) -> Tensor: ...
        def __ror__(self, other: TensorValue) -> Tensor: ...
        def __xor__(self, other: TensorValue) -> Tensor: ...
        def __rxor__(self, other: TensorValue) -> Tensor: ...
        def __lt__(self, other: TensorValue) -> Tensor: ...
        def __le__(self, other: TensorValue) -> Tensor: ...
        def __gt__(self, other: TensorValue) -> Tensor: ...
        def __ge__(self, other: TensorValue) -> Tensor: ...
        def __eq__(self, other: object) -> Tensor: ...  # type: ignore[override]  # element-wise, unlike object's
        def __ne__(self, other: object) -> Tensor: ...  # type: ignore[override]
        def __neg__(self) -> Tensor: ...
        def __pos__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __invert__(self) -> Tensor: ...


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
    def constant(self) -> np.ndarray | None:
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
        """Return `shape`."""
        return self.shape

    # A tensor is compared element by element (overloads.py), so it cannot be a dictionary key; `ref()` can.
    __hash__ = None  # type: ignore[assignment]

    def ref(self) -> TensorReference:
        """Return a hashable reference that compares by identity."""
        return TensorReference(self)


install_tensor_class(Tensor)

TensorValue: TypeAlias = "TensorLike | IndexedSlices | npt.ArrayLike"
"""Operands: tensors, variables, sparse rows, and everything that NumPy converts to an array."""


class Overriding(Tensor):
    """A tensor that overrides calls of operators on it: of a Keras model under construction, or a LoDTensor.

    Such a call is neither run nor recorded; `record` returns its result.
    """

    __slots__ = ()

    def _as_tensor(self) -> Overriding:
        return self

    def record(self, op: Any, inputs: Any, bound: Any, name: str | None) -> Any:
        """Return the result of the call of an operator. inputs: one entry per declared input, as tensors."""
        raise TypeError(f"{op.name} cannot be called on {self!r}")


def overriding(inputs: Any) -> Overriding | None:
    """Return the first tensor among the inputs of a call that overrides it, or None."""
    for x in inputs:
        for y in x if type(x) is tuple else (x,):
            if isinstance(y, Overriding):
                return y
    return None


class TensorReference:
    """A hashable reference to a tensor or variable; equal for the same object."""

    __slots__ = ("__weakref__", "_target")

    def __init__(self, target: TensorLike) -> None:
        self._target = target

    def __lt__(self, other: Any) -> bool:
        """Return an arbitrary order, so that keys of a dict can be sorted."""
        return id(self._target) < id(other._target) if isinstance(other, TensorReference) else NotImplemented

    def deref(self) -> TensorLike:
        """Return the tensor."""
        return self._target

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorReference) and self._target is other._target

    def __hash__(self) -> int:
        return id(self._target) >> 4

    def __repr__(self) -> str:
        return f"<Reference wrapping {self._target!r}>"


def is_tensor(x: Any) -> bool:
    """Return whether x is a tensor: eager or symbolic, a variable, or sparse rows. Arrays and numbers are not.

    >>> ow.is_tensor(ow.constant(1.0)), ow.is_tensor(1.0)
    (True, False)
    """
    return isinstance(x, (TensorLike, IndexedSlices))


def get_static_value(tensor: Any, partial: bool = False) -> Any:
    """Return the value of a tensor as an array if it is known without running the program, else None.

    None for variables and for values computed inside `function`; other objects are returned as they are.
    partial: accepted for TensorFlow's signature; a partially known value is None.

    >>> ow.get_static_value(ow.constant([1, 2]))
    array([1, 2], dtype=int32)
    """
    if not isinstance(tensor, TensorLike):
        return tensor
    value = tensor.constant
    return value if value is None or value.ndim else value[()]
