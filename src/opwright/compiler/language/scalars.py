"""The scalars of kernels on elements, and the staging of such a kernel.

Lives here: `KernelScalar`, `ElementTrace`, `LaterNumber`.
Not here: their control flow (masks.py), the loop over arrays (elements.py), operators (operators.py).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...core.dtypes import DType
from ...core.errors import SignatureError
from ...ops import overloads
from ...ops.tensor import TensorLike
from ..target import Target
from .kinds import ELEMENT_DTYPES
from .operators import KernelTrace
from .values import Value

PORTABLE = Target("portable", triple="", cpu="")
"""No processor: kernels on elements use no instruction that some processors lack, so results are the same on all."""


class KernelScalar(Value):
    """The value of one element, in a vector of several; Python's operators on it are the catalogue's."""

    __slots__ = ()

    @staticmethod
    def of(value: Value) -> KernelScalar:
        """Return a value as a scalar."""
        return KernelScalar(value.x, value.dtype)

    @property
    def value(self) -> Value:
        """The value, with the language's operators."""
        return Value(self.x, self.dtype)

    __iter__: Any = None

    def __lshift__(self, o: Any) -> Any:
        return NotImplemented  # the catalogue has functions for shifts, and no operators

    __rshift__ = __lshift__

    def __repr__(self) -> str:
        return f"<kernel scalar {self.dtype.short}>"


_REFLECTED = [f"r{name}" for name in overloads.BINARY]
for _name in (*overloads.BINARY, *_REFLECTED, *overloads.COMPARISONS, *overloads.UNARY, "eq", "ne", "getitem"):
    setattr(KernelScalar, f"__{_name}__", getattr(TensorLike, f"__{_name}__"))


class LaterNumber:
    """A Python number that is known only when the code runs (../c_source/numbers.py): in a kernel it stands as one."""

    __slots__ = ()


class ElementTrace(KernelTrace):
    """The staging of a kernel on elements. count: of elements that a scalar stands for; 0 for one."""

    counts_anything = True
    has_extremes = False
    needs_source = False

    def __init__(self, builder: ir.IRBuilder, name: str, count: int, fast: bool | None = None) -> None:
        super().__init__(builder, name, PORTABLE, fast)
        self.count, self.lines = count, False

    def count_value(self) -> None:
        """Do nothing: such kernels have no bound."""

    def returned(self, result: Any) -> KernelScalar:
        """Return a kernel's result as a scalar. Raises SignatureError for a dtype that kernels do not have."""
        scalar: KernelScalar = self.to_tensor(result)
        if scalar.dtype not in ELEMENT_DTYPES:
            what = "the kernel gives a dtype that kernels do not have"
            raise SignatureError(op=self.name, what=what, found=scalar.dtype.name)
        return scalar

    def mark_line(self) -> None:
        """Note the line of the kernel's Python, where lines are noted."""
        if self.lines:
            self.mark()

    def lower(self, op: Any, bound: Any, operands: Any) -> Value:
        """Return what an operator of the table computes of scalars that it takes."""
        return super().lower(op, bound, [x.value for x in operands])

    def result(self, value: Value, dtype: DType) -> KernelScalar:
        """Return a value as a scalar of as many elements as the kernel's others."""
        return KernelScalar(value.splat(self.count).x, dtype)

    def to_tensor(self, value: Any, dtype: Any = None, name: str | None = None) -> Any:
        """Return a Python number as a scalar; a scalar as it is."""
        return value if isinstance(value, KernelScalar) else KernelScalar.of(self.number(value, dtype))
