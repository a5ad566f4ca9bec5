"""TensorArraySpec: the type of a TensorArray, by which functions and control flow flatten one.

Lives here: the type.  Not here: TensorArray (tensor_array.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ..core import dtypes
from ..core.dtypes import as_dtype
from ..core.shapes import TensorShape, as_shape
from ..core.specs import TensorSpec
from ..core.type_spec import TypeSpec


class TensorArraySpec(TypeSpec):
    """The type of a TensorArray.

    element_shape: of each element, None if unknown. dtype: of the elements. dynamic_size, infer_shape: as for
    TensorArray.
    """

    __slots__ = ("_dtype", "_dynamic_size", "_element_shape", "_infer_shape")
    array_type: ClassVar[type[Any]]
    """TensorArray; set by its module, which imports this one."""

    def __init__(
        self,
        element_shape: Any = None,
        dtype: Any = dtypes.float32,
        dynamic_size: bool = False,
        infer_shape: bool = True,
    ) -> None:
        self._element_shape = as_shape(element_shape)
        self._dtype = as_dtype(dtype)
        self._dynamic_size, self._infer_shape = bool(dynamic_size), bool(infer_shape)

    @classmethod
    def from_value(cls, value: Any) -> TensorArraySpec:
        """Return the type of a TensorArray. Raises TypeError for anything else."""
        if not isinstance(value, cls.array_type):
            raise TypeError(f"Expected value to be a TensorArray, but got: {type(value)}")
        return cls(value.element_shape, value.dtype, value.dynamic_size, value._infer_shape)

    @property
    def value_type(self) -> type[Any]:
        """TensorArray."""
        return self.array_type

    @property
    def element_shape(self) -> TensorShape:
        """The shape of each element, as far as it is known."""
        return self._element_shape

    @property
    def dtype(self) -> dtypes.DType:
        """The elements' dtype."""
        return self._dtype

    def _serialize(self) -> tuple[Any, ...]:
        return self._element_shape, self._dtype, self._dynamic_size, self._infer_shape

    @property
    def _component_specs(self) -> list[Any]:
        return [TensorSpec((), dtypes.variant)]

    def _to_components(self, value: Any) -> list[Any]:
        return [value.flow]

    def _from_components(self, components: Sequence[Any]) -> object:
        array = self.array_type(
            self._dtype,
            flow=components[0],
            dynamic_size=self._dynamic_size,
            infer_shape=self._infer_shape,
            clear_after_read=False,
        )
        array._inferred[0] = self._element_shape
        return array
