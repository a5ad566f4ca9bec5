"""Attributes whose values are known at run time, while a kernel is traced for C.

Lives here: `AttributeValue`, `AttributeNeeded`.
Not here: tracing (kernels.py), which attributes are known before (lite/export).

In compiled kernels attributes are Python numbers: arithmetic among them is that of Python, in float64; with a scalar,
they take its dtype. An `AttributeValue` behaves alike at run time: it is a float64 (or int64), computes in it, and is
converted when combined with a scalar. Python cannot read its value, so a kernel that needs it (`math.sqrt(alpha)`,
`range(n)` unrolled) raises an error that asks for the value.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ...core import dtypes
from ...core.dtypes import DType
from ...core.errors import SignatureError
from ..language.llvm_types import ELEMENT_DTYPES
from ..language.operators import KernelScalar, LaterNumber
from ..language.values import Value, value


class AttributeNeeded(SignatureError):
    """A kernel reads the value of an attribute that is known at run time. attribute: its name."""

    def __init__(self, attribute: str) -> None:
        super().__init__(what=f"the kernel asks Python for the value of attribute {attribute!r}")
        self.attribute = attribute


class AttributeValue(LaterNumber):
    """A number that is known at run time. number: float64 or int64. name: of the attribute.

    narrow: names of attributes that become int32, whose values must fit; common to a kernel.
    """

    __slots__ = ("name", "narrow", "number")

    def __init__(self, number: Value, name: str, narrow: set[str]) -> None:
        self.number, self.name, self.narrow = number, name, narrow

    @property
    def is_float(self) -> bool:
        """Whether it is a float rather than an int."""
        return self.number.dtype.is_floating

    @property
    def stand_in(self) -> float | int:
        """A new Python number of its type."""
        return float("0.5") if self.is_float else int("1000003")

    def as_scalar(self, dtype: DType | None) -> KernelScalar:
        """Return a scalar of this dtype, by default the dtype of Python numbers."""
        dtype = dtype or (dtypes.float32 if self.is_float else dtypes.int32)
        if dtype not in ELEMENT_DTYPES:
            raise TypeError(f"a kernel has no scalars of dtype {dtype.name}")
        if self.is_float and not dtype.is_floating:
            raise TypeError(f"cannot use {self.name} as {dtype.name}")
        if dtype is dtypes.int32:
            self.narrow.add(self.name)
        return KernelScalar.of(self.number.to(dtype))

    def _operands(self, other: Any) -> tuple[Value, Value] | None:
        """Return both as numbers of one dtype; None if the other is not a number."""
        a = self.number
        if isinstance(other, AttributeValue):
            c = other.number
        elif isinstance(other, float) or (isinstance(other, int) and not isinstance(other, bool)):
            c = value(other, dtypes.float64 if isinstance(other, float) else a.dtype)
        else:
            return None
        return (a, c) if a.dtype is c.dtype else (a.to(dtypes.float64), c.to(dtypes.float64))

    def _binary(self, function: Callable[[Any, Any], Any], other: Any, swap: bool = False) -> AttributeValue:
        pair = self._operands(other)
        if pair is None:
            return NotImplemented
        a, c = reversed(pair) if swap else pair
        if function is operator.truediv:
            a, c = a.to(dtypes.float64), c.to(dtypes.float64)
        return AttributeValue(function(a, c), self.name, self.narrow)

    def _compared(self, function: Callable[[Any, Any], Any], other: Any) -> KernelScalar:
        pair = self._operands(other)
        return NotImplemented if pair is None else KernelScalar.of(function(*pair))

    def __add__(self, other: Any) -> AttributeValue:
        return self._binary(operator.add, other)

    def __radd__(self, other: Any) -> AttributeValue:
        return self._binary(operator.add, other, swap=True)

    def __sub__(self, other: Any) -> AttributeValue:
        return self._binary(operator.sub, other)

    def __rsub__(self, other: Any) -> AttributeValue:
        return self._binary(operator.sub, other, swap=True)

    def __mul__(self, other: Any) -> AttributeValue:
        return self._binary(operator.mul, other)

    def __rmul__(self, other: Any) -> AttributeValue:
        return self._binary(operator.mul, other, swap=True)

    def __truediv__(self, other: Any) -> AttributeValue:
        return self._binary(operator.truediv, other)

    def __rtruediv__(self, other: Any) -> AttributeValue:
        return self._binary(operator.truediv, other, swap=True)

    def __neg__(self) -> AttributeValue:
        return AttributeValue(-self.number, self.name, self.narrow)

    def __pos__(self) -> AttributeValue:
        return self

    def __lt__(self, other: Any) -> KernelScalar:
        return self._compared(operator.lt, other)

    def __le__(self, other: Any) -> KernelScalar:
        return self._compared(operator.le, other)

    def __gt__(self, other: Any) -> KernelScalar:
        return self._compared(operator.gt, other)

    def __ge__(self, other: Any) -> KernelScalar:
        return self._compared(operator.ge, other)

    def __eq__(self, other: Any) -> Any:
        return self._compared(operator.eq, other)

    def __ne__(self, other: Any) -> Any:
        return self._compared(operator.ne, other)

    __hash__ = None  # type: ignore[assignment]

    def _unknown(self, *_: Any) -> Any:
        raise AttributeNeeded(self.name)

    __float__ = __int__ = __index__ = __bool__ = __round__ = __trunc__ = __floor__ = __ceil__ = _unknown
    __pow__ = __rpow__ = __mod__ = __rmod__ = __floordiv__ = __rfloordiv__ = __abs__ = __iter__ = __len__ = _unknown

    def __repr__(self) -> str:
        return f"<attribute {self.name}>"
