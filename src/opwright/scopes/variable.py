"""ScopeVariable: what a name in a scope stands for.

Lives here: the four kinds of contents, reading and setting them.
Not here: scopes (scope.py), tensors (held.py). `ow.Variable`, the trainable kind, is one of the objects it may hold.

Names of variables with a meaning of their own:

    @EMPTY@     no variable: an input that is absent, an output that nobody wants
    @TEMP@      a variable of the operator's own; becomes `<type>@<unique number>` when the instance is made
    v@GRAD      the gradient of v
    v@ZERO      zeros in the place of a gradient that does not come
"""

from __future__ import annotations

import itertools
from typing import Any

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
from .held import HeldTensor

EMPTY = "@EMPTY@"
TEMP = "@TEMP@"
GRAD = "@GRAD"
ZERO = "@ZERO"

_numbers = itertools.count()  # next() is one bytecode: no two threads get the same


def unique(op: str) -> str:
    """A name for a temporary of an operator, which no other has."""
    return f"{op}@{next(_numbers)}"


def grad_name(name: str) -> str:
    """What the gradient of a variable is called."""
    return name + GRAD


KINDS = ("dense", "rows", "list", "object")


class ScopeVariable:
    """A variable of a scope. It holds nothing at first, then one of

        dense    a tensor, with a LoD or none                   get_tensor()
        rows     rows of a larger tensor: IndexedSlices
        list     tensors in order; or a TensorList
        object   anything else: a `Variable`, a generator, what you like

    name: in its scope. kind: one of these words, None while it holds nothing.
    """

    __slots__ = ("__weakref__", "_held", "kind", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.kind: str | None = None
        self._held: Any = None

    @property
    def is_initialized(self) -> bool:
        """Whether it holds something; a tensor counts once it has rows."""
        return self.kind is not None and (self.kind != "dense" or self._held.is_initialized)

    def get_tensor(self) -> HeldTensor:
        """The tensor to be read or filled; made, empty, if the variable holds nothing yet.

        raises InvalidArgumentError where it holds something that is no dense tensor: nothing is converted unasked
        """
        if self.kind is None:
            self.kind, self._held = "dense", HeldTensor()
        if self.kind != "dense":
            raise InvalidArgumentError(
                op="ScopeVariable.get_tensor",
                what=f"variable {self.name!r} holds no dense tensor",
                found=f"{self.kind}: {type(self._held).__name__}",
                wanted="dense",
                do="var.value; rows are made dense by .to_dense()",
            )
        return self._held

    @property
    def value(self) -> Any:
        """What it holds: a tensor (a LoDTensor if it has a LoD), IndexedSlices, a list, or the object.

        raises FailedPreconditionError where it holds nothing
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
            return list(self._held) if self.kind == "list" and isinstance(self._held, tuple) else self._held
        tensor = self._held.values
        plain = tensor if isinstance(tensor, EagerTensor) else tensor._as_tensor()
        return LoDTensor.of(plain, self._held.levels) if self._held.levels else plain

    def set(self, value: Any, place: Any = None) -> None:
        """Give it another value, whose kind becomes its own: arrays, tensors, numbers, nestings of numbers are dense,
        lists of tensors or arrays are lists, a `Variable` and everything else is an object.

        place: where a dense tensor shall live.
        """
        if isinstance(value, ScopeVariable):
            self.share(value)
        elif isinstance(value, IndexedSlices):
            self.kind, self._held = "rows", value
        elif isinstance(value, Variable):
            self.kind, self._held = "object", value
        elif isinstance(value, EagerTensor) and value.dtype.is_handle:
            self.take(value._array)
        elif isinstance(value, TensorList):
            self.kind, self._held = "list", value
        elif isinstance(value, (list, tuple)) and all(isinstance(v, (TensorLike, np.ndarray)) for v in value):
            self.kind, self._held = "list", tuple(v if isinstance(v, Tensor) else _filled(v) for v in value)
        elif value is not None and _is_numbers(value):
            tensor = HeldTensor()  # first made, then held: what cannot become a tensor leaves the variable as it was
            tensor.set(value, place)
            if isinstance(value, LoDTensor):
                tensor.take(tensor._values, value.levels, value.layout)
            if self.kind == "dense":
                self._held.take(tensor._values, tensor.levels, tensor.layout)
            else:
                self.kind, self._held = "dense", tensor
        else:
            self.kind, self._held = "object", value

    def take(self, value: Any, levels: Any = (), layout: str = "any") -> None:
        """What a run puts here: a tensor of any place, rows, or what a handle stands for. Nothing is copied."""
        if isinstance(value, LoDTensor):
            value, levels, layout = value._values, value.levels, value.layout
        if isinstance(value, IndexedSlices):
            self.kind, self._held = "rows", value
        elif isinstance(value, TensorList):
            self.kind, self._held = "list", value
        elif not isinstance(value, Tensor):
            self.kind, self._held = "object", value
        elif self.kind == "dense":
            self._held.take(value, levels, layout)
        else:
            self.kind, self._held = "dense", HeldTensor().take(value, levels, layout)

    def share(self, other: ScopeVariable) -> None:
        """Hold what another variable holds; changing one then leaves the other as it is."""
        if other.kind == "dense":
            self.kind, held = "dense", other._held
            self._held = HeldTensor().take(held._values, held.levels, held.layout)
        else:
            self.kind, self._held = other.kind, other._held

    def clear(self) -> None:
        """Hold nothing again."""
        self.kind, self._held = None, None

    # ---- as the choice of a kernel sees it ---------------------------------------------------------------------------

    @property
    def spec(self) -> TensorSpec:
        """dtype and shape of a dense tensor, of the whole that rows are of, of a handle. Raises like `value`."""
        if self.kind == "dense" and self.is_initialized:
            return self._held.spec
        if self.kind == "rows":
            return TensorSpec(self._held.shape, self._held.dtype)
        held = self._held if self.kind else self.value
        return TensorSpec(SCALAR, dtypes.variant if isinstance(held, (TensorList, tuple)) else dtypes.resource)

    @property
    def place(self) -> Place:
        """Where a dense tensor lives; everything else is the host's."""
        return self._held.place if self.kind == "dense" and self.is_initialized else CPUPlace()

    @property
    def layout(self) -> str:
        """The layout of a dense tensor."""
        return self._held.layout if self.kind == "dense" else "any"

    @property
    def dtype(self) -> Any:
        """Element type. Raises like `value`."""
        return self.spec.dtype

    @property
    def shape(self) -> Any:
        """Shape; of rows that of the whole. Raises like `value`."""
        return self.spec.shape

    def __repr__(self) -> str:
        if not self.is_initialized:
            return f"<ScopeVariable {self.name!r}: not initialized>"
        if self.kind != "dense":
            return f"<ScopeVariable {self.name!r}: {self.kind}, {type(self._held).__name__}>"
        place = "" if self.place.kind == "cpu" else f" at {self.place}"
        return f"<ScopeVariable {self.name!r}: {self.spec.short()}{place}>"


def _filled(array: np.ndarray) -> Any:
    tensor = HeldTensor()
    tensor.set(array)
    return tensor.values


def _is_numbers(value: Any) -> bool:
    """Whether a value is what a tensor is made of: an array, a tensor, a number, text, or a nesting of these."""
    if isinstance(value, (bool, int, float, complex, str, bytes, TensorLike)):
        return True
    if isinstance(value, (list, tuple, range)):
        return all(map(_is_numbers, value))
    has_elements = hasattr(value, "__array__") or hasattr(value, "__array_ufunc__")  # of the host, or of a device
    return has_elements and hasattr(value, "dtype") and hasattr(value, "shape")
