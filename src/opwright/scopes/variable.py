"""`ScopeVariable`: a named variable of a scope.

Lives here: the four kinds of contents, reading and setting them. Not here: scopes (scope.py), tensors
(scope_tensor.py). `ow.Variable`, the trainable kind, is one of the objects that it may hold.

Reserved names of variables:

    @EMPTY@     no variable: an absent input, an unused output
    @TEMP@      a temporary of the operator; becomes `<type>@<unique number>` when the instance is created
    v@GRAD      the gradient of v
    v@ZERO      zeros in place of a missing gradient
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import dtypes
from ..core.errors import FailedPreconditionError, InvalidArgumentError
from ..core.places import CPUPlace, Place
from ..core.shapes import SCALAR
from ..core.specs import TensorSpec
from ..eager.tensor import EagerTensor
from ..eager.variable import Variable
from ..ops.indexed_slices import IndexedSlices
from ..ops.lod_tensor import LoDTensor
from ..ops.tensor import Tensor, TensorLike
from ..ops.tensor_list import TensorList
from .scope_tensor import ScopeTensor

if TYPE_CHECKING:
    from ..core.dtypes import DType
    from ..core.shapes import TensorShape

EMPTY = "@EMPTY@"
TEMP = "@TEMP@"
GRAD = "@GRAD"
ZERO = "@ZERO"

_numbers = itertools.count()  # next() is one bytecode: no two threads get the same


def unique(op: str) -> str:
    """Return a unique name for a temporary of an operator."""
    return f"{op}@{next(_numbers)}"


def grad_name(name: str) -> str:
    """Return the name of a variable's gradient."""
    return name + GRAD


KINDS = ("dense", "rows", "list", "object")


class ScopeVariable:
    """A variable of a scope: empty at first, then of one of these kinds

        dense    a tensor, with a LoD or none                   get_tensor()
        rows     rows of a larger tensor: IndexedSlices
        list     tensors in order; or a TensorList
        object   any other object: a `Variable`, a generator

    name: in its scope. kind: one of these words, None while it is empty.
    """

    __slots__ = ("__weakref__", "_contents", "kind", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.kind: str | None = None
        self._contents: Any = None

    @property
    def is_initialized(self) -> bool:
        """Whether it has a value; a tensor counts once its rows are set."""
        return self.kind is not None and (self.kind != "dense" or self._contents.is_initialized)

    def get_tensor(self) -> ScopeTensor:
        """Return the tensor to read or fill; created empty if the variable has no value.

        raises InvalidArgumentError if the variable is of another kind: there is no implicit conversion
        """
        if self.kind is None:
            self.kind, self._contents = "dense", ScopeTensor()
        if self.kind != "dense":
            raise InvalidArgumentError(
                op="ScopeVariable.get_tensor",
                what=f"variable {self.name!r} holds no dense tensor",
                found=f"{self.kind}: {type(self._contents).__name__}",
                wanted="dense",
                do="var.value; .to_dense() converts rows",
            )
        result: ScopeTensor = self._contents
        return result

    @property
    def value(self) -> Any:
        """The value: a tensor (a LoDTensor if it has a LoD), IndexedSlices, a list, or the object.

        raises FailedPreconditionError if there is none
        """
        if not self.is_initialized:
            raise FailedPreconditionError(
                op="ScopeVariable.value",
                what=f"variable {self.name!r} is not initialized",
                found="nothing",
                wanted="a value",
                do="var.set(...)",
            )
        if self.kind != "dense":
            return list(self._contents) if self.kind == "list" and isinstance(self._contents, tuple) else self._contents
        tensor = self._contents.values
        plain = tensor if isinstance(tensor, EagerTensor) else tensor._as_tensor()
        return LoDTensor.of(plain, self._contents.levels) if self._contents.levels else plain

    def set(self, value: Any, place: Any = None) -> None:
        """Replace the value and its kind: arrays, tensors, numbers and nestings of numbers are dense, lists of tensors
        or arrays are lists, a `Variable` and any other object is an object.

        place: the place of a dense tensor.
        """
        if isinstance(value, ScopeVariable):
            self.share(value)
        elif isinstance(value, IndexedSlices):
            self.kind, self._contents = "rows", value
        elif isinstance(value, Variable):
            self.kind, self._contents = "object", value
        elif isinstance(value, EagerTensor) and value.dtype.is_handle:
            self.take(value._array)
        elif isinstance(value, TensorList):
            self.kind, self._contents = "list", value
        elif isinstance(value, (list, tuple)) and all(isinstance(v, (TensorLike, np.ndarray)) for v in value):
            self.kind, self._contents = "list", tuple(v if isinstance(v, Tensor) else _tensor_from(v) for v in value)
        elif value is not None and _is_numbers(value):
            tensor = ScopeTensor()  # converted first: an error leaves the variable unchanged
            tensor.set(value, place)
            if isinstance(value, LoDTensor):
                tensor.take(tensor._values, value.levels, value.layout)
            if self.kind == "dense":
                self._contents.take(tensor._values, tensor.levels, tensor.layout)
            else:
                self.kind, self._contents = "dense", tensor
        else:
            self.kind, self._contents = "object", value

    def take(self, value: Any, levels: Any = (), layout: str = "any") -> None:
        """Store a run's result without copying: a tensor of any place, rows, or the object of a handle."""
        if isinstance(value, LoDTensor):
            value, levels, layout = value._values, value.levels, value.layout
        if isinstance(value, IndexedSlices):
            self.kind, self._contents = "rows", value
        elif isinstance(value, TensorList):
            self.kind, self._contents = "list", value
        elif not isinstance(value, Tensor):
            self.kind, self._contents = "object", value
        elif self.kind == "dense":
            self._contents.take(value, levels, layout)
        else:
            self.kind, self._contents = "dense", ScopeTensor().take(value, levels, layout)

    def share(self, other: ScopeVariable) -> None:
        """Share the value of another variable; assigning to either one does not affect the other."""
        if other.kind == "dense":
            self.kind, contents = "dense", other._contents
            self._contents = ScopeTensor().take(contents._values, contents.levels, contents.layout)
        else:
            self.kind, self._contents = other.kind, other._contents

    def clear(self) -> None:
        """Remove the value."""
        self.kind, self._contents = None, None

    # ---- for kernel selection ---------------------------------------------------------------------------------------

    @property
    def spec(self) -> TensorSpec:
        """dtype and shape of a dense tensor, of the table that rows belong to, or of a handle. Raises like `value`."""
        if self.kind == "dense" and self.is_initialized:
            result: TensorSpec = self._contents.spec
            return result
        if self.kind == "rows":
            return TensorSpec(self._contents.shape, self._contents.dtype)
        contents = self._contents if self.kind else self.value
        return TensorSpec(SCALAR, dtypes.variant if isinstance(contents, (TensorList, tuple)) else dtypes.resource)

    @property
    def place(self) -> Place:
        """The place of a dense tensor; the CPU for all other kinds."""
        return self._contents.place if self.kind == "dense" and self.is_initialized else CPUPlace()

    @property
    def layout(self) -> str:
        """The layout of a dense tensor."""
        return self._contents.layout if self.kind == "dense" else "any"

    @property
    def dtype(self) -> DType:
        """Element type. Raises like `value`."""
        return self.spec.dtype

    @property
    def shape(self) -> TensorShape:
        """Shape; for rows, the table's. Raises like `value`."""
        return self.spec.shape

    def __repr__(self) -> str:
        if not self.is_initialized:
            return f"<ScopeVariable {self.name!r}: not initialized>"
        if self.kind != "dense":
            return f"<ScopeVariable {self.name!r}: {self.kind}, {type(self._contents).__name__}>"
        place = "" if self.place.kind == "cpu" else f" at {self.place}"
        return f"<ScopeVariable {self.name!r}: {self.spec.short()}{place}>"


def _tensor_from(array: np.ndarray) -> object:
    tensor = ScopeTensor()
    tensor.set(array)
    return tensor.values


def _is_numbers(value: Any) -> bool:
    """Return whether a value converts to a tensor: an array, a tensor, a number, text, or a nesting of these."""
    if isinstance(value, (bool, int, float, complex, str, bytes, TensorLike)):
        return True
    if isinstance(value, (list, tuple, range)):
        return all(map(_is_numbers, value))
    has_elements = hasattr(value, "__array__") or hasattr(
        value, "__array_ufunc__"
    )  # an array of the host or of a device
    return has_elements and hasattr(value, "dtype") and hasattr(value, "shape")
