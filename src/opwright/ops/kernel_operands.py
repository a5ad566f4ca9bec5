"""Operands of kernel selection: the tensors of a call by spec, place and layout, and their transforms before a kernel.

Lives here: `KernelOperand`, `InputTransform`, the transforms that an operand needs.
Not here: the key of a call and the kernels for it (kernel_selection.py), execution of transforms (scopes/).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NoReturn

from ..core import dtypes
from ..core.dtypes import DType
from ..core.errors import DefinitionError, InvalidArgumentError, SignatureError
from ..core.places import CPUPlace, Place
from ..core.shapes import TensorShape
from ..core.specs import TensorSpec
from . import dispatch
from .call import call_rule, contract_violation
from .kernels import KernelKey


@dataclass(frozen=True, slots=True)
class KernelOperand:
    """One tensor of a call, without its elements, for kernel selection.

    op: the operator's name. slot: its input. name: of the variable. spec: None while it is not initialized. place,
    layout: of its memory. by_shape: only its shape may be used. absent: there is no variable of this name.
    """

    op: str
    slot: str
    name: str
    spec: TensorSpec | None
    place: Place = field(default_factory=CPUPlace)
    layout: str = "any"
    by_shape: bool = False
    absent: bool = False

    @property
    def is_initialized(self) -> bool:
        """Whether it has a value."""
        return self.spec is not None

    @property
    def dtype(self) -> DType:
        """Return its dtype. Raises InvalidArgumentError naming operator, input and variable without a value."""
        if self.by_shape:
            raise DefinitionError(
                op=self.op,
                what=f"the choice of a kernel may not look into input {self.slot!r}",
                wanted="its shape alone: it is in shape_only",
            )
        return self.checked().dtype

    @property
    def shape(self) -> TensorShape:
        """Return its shape."""
        return self.checked().shape

    @property
    def constant(self) -> NoReturn:
        """Raise DefinitionError: a kernel is selected by types of tensors, never by elements."""
        raise DefinitionError(
            op=self.op,
            what=f"the choice of a kernel may not look into input {self.slot!r}",
            found="its rule asks for elements",
            wanted="dtype, shape, layout and place",
        )

    def checked(self) -> TensorSpec:
        """Return its spec. Raises InvalidArgumentError without a value."""
        if self.spec is None:
            raise InvalidArgumentError(
                op=self.op,
                what=f"input {self.slot!r} is {'missing' if self.absent else 'not initialized'}",
                found=f"no variable {self.name!r}" if self.absent else f"variable {self.name!r} without a value",
                wanted="a tensor",
                do=None if self.name.startswith("@") else f"scope.var({self.name!r}).set(...) before the run",
            )
        return self.spec

    def __str__(self) -> str:
        spec = "not initialized" if self.spec is None else self.spec.short()
        return f"{self.name!r} {spec}" if self.name != self.slot else spec


def on_devices(dtype: DType) -> bool:
    """Return whether device arrays support this dtype: all but text and handles."""
    return not dtype.is_handle and dtype is not dtypes.string


def operands_of(op: Any, values: Iterable[Any]) -> list[Any]:
    """Return a KernelOperand, None or a tuple of them per input, from tensors, arrays, specs or variables."""
    operands: list[Any] = []
    for declared, value in zip(op.inputs, values):
        if value is None or not declared.repeated or not isinstance(value, (list, tuple)):
            one = None if value is None else operand_of(op, declared, value)
            operands.append(one if one is None or not declared.repeated else (one,))
        else:
            operands.append(tuple(operand_of(op, declared, v) for v in value))
    return operands


def operand_of(op: Any, declared: Any, value: Any) -> KernelOperand:
    """Return one value as an operand, from its attributes `operand_spec`, `place` and `layout` if it has them."""
    if isinstance(value, KernelOperand):
        return value
    name = getattr(value, "name", None) if hasattr(value, "is_initialized") else None
    if isinstance(value, TensorSpec):
        spec: TensorSpec | None = value
    elif getattr(value, "is_initialized", True) is False:
        spec = None
    elif hasattr(value, "spec"):
        spec = value.spec
    elif hasattr(value, "shape") and hasattr(value, "dtype"):
        spec = TensorSpec(value.shape, value.dtype if isinstance(value.dtype, DType) else dtypes.of_numpy(value.dtype))
    else:
        try:
            spec = dispatch.to_tensor(value).spec
        except (TypeError, ValueError) as error:
            raise SignatureError(
                op=op.name,
                what=f"input {declared.name!r} is not a tensor",
                wanted="a tensor, array, spec or variable of a scope",
                found=f"{type(value).__name__}: {error}",
            ) from None
    location = getattr(value, "place", None)
    location = location if isinstance(location, Place) else CPUPlace()
    by_shape = declared.name in op.shape_only
    layout = getattr(value, "layout", "any")
    return KernelOperand(op.name, declared.name, name or declared.name, spec, location, layout, by_shape)


# ---- transforms ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class InputTransform:
    """One transform of one input, applied to a copy before the kernel runs. what: "layout", "dtype" or "place"."""

    slot: str
    name: str
    what: str
    found: Any
    wanted: Any

    def __str__(self) -> str:
        name = f" {self.name!r}" if self.name != self.slot else ""
        found, wanted = (getattr(v, "name", v) for v in (self.found, self.wanted))
        return f"{self.slot}{name}: {self.what} {found} -> {wanted}"


def transforms_of(
    op: Any, call: Any, operand: KernelOperand, expected: KernelKey, target: Place
) -> list[InputTransform]:
    """Return the transforms that a kernel of this key at `target` needs: layout, then dtype, then place.

    Inputs in `shape_only` need none. The dtype changes only if the definition's `input_kernel_key` requests it.
    raises InvalidArgumentError for a change of layout unless the operand has four dimensions
    """
    if operand.by_shape or not operand.is_initialized:
        return []
    current = KernelKey(operand.place, operand.dtype, operand.layout)
    if op.input_key_rule is not None:
        target_key = call_rule(op, "input_kernel_key", op.input_key_rule, call, operand, expected)
        if not isinstance(target_key, KernelKey):
            raise contract_violation(
                op,
                "input_kernel_key",
                f"gave no key for input {operand.slot!r}",
                found=type(target_key).__name__,
                wanted="a KernelKey",
            )
    else:
        target_key = KernelKey(target, current.dtype, expected.layout)
    transforms = []
    if "any" not in (current.layout, target_key.layout) and current.layout != target_key.layout:
        if operand.shape.rank != 4:
            raise InvalidArgumentError(
                op=op.name,
                what=f"input {operand.slot!r} cannot change its layout",
                found=f"{operand}, {current.layout}",
                wanted="four dimensions",
            )
        transforms.append(InputTransform(operand.slot, operand.name, "layout", current.layout, target_key.layout))
    if target_key.dtype is not None and target_key.dtype is not current.dtype:
        transforms.append(InputTransform(operand.slot, operand.name, "dtype", current.dtype, target_key.dtype))
    if operand.place != target and not operand.dtype.is_handle:
        transforms.append(InputTransform(operand.slot, operand.name, "place", operand.place, target))
    return transforms
