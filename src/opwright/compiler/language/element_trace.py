"""Kernels on elements while they are staged: their scalars, whose Python operators are the catalogue's.

Lives here: `KernelScalar`, `LaterNumber`, `ElementTrace`, `PORTABLE`.
Not here: the instructions of operators (operators.py), the loop over arrays (elements.py), control flow (control.py).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...core.dtypes import DType
from ...core.errors import SignatureError
from ...ops import overloads
from ...ops.tensor import TensorLike
from ..target import Target
from .llvm_types import ELEMENT_DTYPES
from .operators import KernelTrace
from .values import Value

PORTABLE = Target("portable", triple="", cpu="")
"""A target without features: kernels on elements use only instructions of every processor, so results agree."""


class KernelScalar(Value):
    """The value of one element, or of each element of a vector, with the Python operators of the catalogue."""

    __slots__ = ()

    @staticmethod
    def of(value: Value) -> KernelScalar:
        """Return a value as a scalar."""
        return KernelScalar(value.x, value.dtype)

    @property
    def value(self) -> Value:
        """Return the value with the language's operators."""
        return Value(self.x, self.dtype)

    __iter__: Any = None

    def __lshift__(self, o: Any) -> Value:
        return NotImplemented  # the catalogue has functions for shifts, but no operators

    __rshift__ = __lshift__

    def __repr__(self) -> str:
        return f"<kernel scalar {self.dtype.short}>"


_REFLECTED = [f"r{name}" for name in overloads.BINARY]
for _name in (*overloads.BINARY, *_REFLECTED, *overloads.COMPARISONS, *overloads.UNARY, "eq", "ne", "getitem"):
    setattr(KernelScalar, f"__{_name}__", getattr(TensorLike, f"__{_name}__"))


class LaterNumber:
    """A Python number whose value is known at run time (../c_source/kernels.py)."""

    __slots__ = ()


class ElementTrace(KernelTrace):
    """The staging of a kernel on elements. count: lanes of its scalars; 0 for one element."""

    counts_anything = True
    has_extremes = False
    needs_source = False

    def __init__(self, builder: ir.IRBuilder, name: str, count: int, fast: bool | None = None) -> None:
        super().__init__(builder, name, PORTABLE, fast)
        self.count, self.lines = count, False

    def count_value(self) -> None:
        """Do nothing: kernels on elements have no limit."""

    def returned(self, result: Any) -> KernelScalar:
        """Return a kernel's result as a scalar. Raises SignatureError for a dtype that kernels do not have."""
        scalar = self.to_tensor(result)
        if scalar.dtype not in ELEMENT_DTYPES:
            what = "the kernel returns a dtype that kernels do not have"
            raise SignatureError(op=self.name, what=what, found=scalar.dtype.name)
        return scalar

    def mark_line(self) -> None:
        """Emit a comment with the current line of the kernel, if lines are shown."""
        if self.lines:
            self.mark()

    def lower(self, op: Any, bound: Any, operands: Any) -> Value:
        """Lower an operator of the table on scalars of its dtypes."""
        return super().lower(op, bound, [x.value for x in operands])

    def result(self, value: Value, dtype: DType) -> KernelScalar:
        """Return a value as a scalar with the lanes of this kernel's scalars."""
        return KernelScalar(value.splat(self.count).x, dtype)

    def to_tensor(self, value: Any, dtype: Any = None, name: str | None = None) -> KernelScalar:
        """Return a Python number as a scalar; return a scalar unchanged."""
        return value if isinstance(value, KernelScalar) else KernelScalar.of(self.number(value, dtype))
