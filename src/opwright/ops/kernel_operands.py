"""Tensors of a call as the choice of a kernel sees them, and what must become of them before a kernel gets them.

Lives here: `KernelOperand`, `InputTransform`, which transforms an operand needs.
Not here: the key that a call asks for and what serves it (kernel_selection.py), carrying transforms out (scopes/).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..core import dtypes
from ..core.dtypes import DType
from ..core.errors import DefinitionError, InvalidArgumentError, NotFoundError, SignatureError
from ..core.places import CPUPlace, Place
from ..core.shapes import TensorShape
from ..core.specs import TensorSpec
from .kernels import KernelKey
from .rule_errors import call_rule, contract_violation


@dataclass(frozen=True, slots=True)
class KernelOperand:
    """One tensor of a call as the choice of a kernel sees it: never its elements.

    op: the operator's name. slot: the input it fills. name: of the variable. spec: None while it is not initialised.
    place, layout: where and how it is held. by_shape: nothing but its shape may be used. absent: the name stands for
    no variable at all.
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
        """Whether it holds anything."""
        return self.spec is not None

    @property
    def dtype(self) -> DType:
        """Its dtype. Raises InvalidArgumentError naming operator, input and variable where it holds nothing."""
        if self.by_shape:
            raise DefinitionError(
                op=self.op,
                what=f"the choice of a kernel may not look into input {self.slot!r}",
                wanted="its shape alone: it is in shape_only",
            )
        return self.checked().dtype

    @property
    def shape(self) -> TensorShape:
        """Its shape."""
        return self.checked().shape

    @property
    def constant(self) -> Any:
        """There is none: a kernel is chosen by kinds of tensors, never by elements. Raises DefinitionError."""
        raise DefinitionError(
            op=self.op,
            what=f"the choice of a kernel may not look into input {self.slot!r}",
            found="its rule asks for elements",
            wanted="dtype, shape, layout and place",
        )

    def checked(self) -> TensorSpec:
        """Its spec. Raises InvalidArgumentError where it holds nothing."""
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


def members(value: Any) -> tuple[KernelOperand, ...]:
    return () if value is None else value if isinstance(value, tuple) else (value,)


def on_devices(dtype: DType) -> bool:
    """Whether devices have arrays of this dtype: not of text and handles."""
    return not dtype.is_handle and dtype is not dtypes.string


def operands_of(op: Any, values: Iterable[Any]) -> list[Any]:
    """An KernelOperand, None or a tuple of them for each input, from tensors, arrays, specs or variables."""
    found: list[Any] = []
    for declared, value in zip(op.inputs, values):
        if value is None or not declared.repeated or not isinstance(value, (list, tuple)):
            one = None if value is None else operand_of(op, declared, value)
            found.append(one if one is None or not declared.repeated else (one,))
        else:
            found.append(tuple(operand_of(op, declared, v) for v in value))
    return found


def operand_of(op: Any, declared: Any, value: Any) -> KernelOperand:
    """One value as the choice sees it. What it is asked for: `operand_spec`, `place` and `layout` where it has them."""
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
        from . import dispatch

        try:
            spec = dispatch.to_tensor(value).spec
        except (TypeError, ValueError) as error:
            raise SignatureError(
                op=op.name,
                what=f"input {declared.name!r} is no tensor",
                wanted="a tensor, array, spec or variable of a scope",
                found=f"{type(value).__name__}: {error}",
            ) from None
    place = getattr(value, "place", None)
    place = place if isinstance(place, Place) else CPUPlace()
    by_shape = declared.name in op.shape_only
    layout = getattr(value, "layout", "any")
    return KernelOperand(op.name, declared.name, name or declared.name, spec, place, layout, by_shape)


# ---- transforms ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class InputTransform:
    """One change of one input, made on a copy before the kernel runs. what: "layout", "dtype" or "place"."""

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
    """What a kernel of this key at `target` needs of one operand: layout, then dtype, then place.

    Only the shape of inputs in `shape_only` is read, wherever they are: nothing is done to those. The dtype changes
    only where the definition's `input_kernel_key` says so.
    raises InvalidArgumentError for a layout to be changed of what has not four dimensions
    """
    if operand.by_shape or not operand.is_initialized:
        return []
    held = KernelKey(operand.place, operand.dtype, operand.layout)
    if op.input_key_rule is not None:
        wanted = call_rule(op, "input_kernel_key", op.input_key_rule, call, operand, expected)
        if not isinstance(wanted, KernelKey):
            raise contract_violation(
                op,
                "input_kernel_key",
                f"gave no key for input {operand.slot!r}",
                found=type(wanted).__name__,
                wanted="a KernelKey",
            )
    else:
        wanted = KernelKey(target, held.dtype, expected.layout)
    found = []
    if "any" not in (held.layout, wanted.layout) and held.layout != wanted.layout:
        if operand.shape.rank != 4:
            raise InvalidArgumentError(
                op=op.name,
                what=f"input {operand.slot!r} cannot change its layout",
                found=f"{operand}, {held.layout}",
                wanted="four dimensions",
            )
        found.append(InputTransform(operand.slot, operand.name, "layout", held.layout, wanted.layout))
    if wanted.dtype is not None and wanted.dtype is not held.dtype:
        found.append(InputTransform(operand.slot, operand.name, "dtype", held.dtype, wanted.dtype))
    if operand.place != target and not operand.dtype.is_handle:
        found.append(InputTransform(operand.slot, operand.name, "place", operand.place, target))
    return found


# ---- dtypes of operands ---------------------------------------------------------------------------------------------


def missing(op: Any, declared: Any) -> SignatureError:
    """Return the error for a required input without a tensor."""
    return SignatureError(
        op=op.name,
        what=f"input {declared.name!r} is missing",
        found="no variable",
        wanted=f"a tensor; the call is {op.signature()}",
    )


def check_dtypes_agree(op: Any, leader: KernelOperand, one: KernelOperand) -> None:
    """Raises InvalidArgumentError for operands of two dtypes, which must have one."""
    if leader.dtype is one.dtype:
        return
    slots = leader.slot if leader.slot == one.slot else f"{leader.slot}, {one.slot}"
    shown = [f"{o.slot}{f' {o.name!r}' if o.name != o.slot else ''} {o.dtype.name}" for o in (leader, one)]
    raise InvalidArgumentError(
        op=op.name,
        what=f"tensors of different dtypes in {slots}, which must have one",
        found=", ".join(shown),
        wanted="one dtype",
        do="ow.cast one of them",
    )


def dtype_of(call: Any, *slots: str, skip_empty: bool = False) -> DType:
    """What `op.dtype_of("x")` gives in a key rule: the dtype of the tensors in the first of these inputs that has any.

    skip_empty: pass over members of a list that are not initialised; the kernel then gets the list without them.
    raises as `expected_kernel_key` does
    """
    op = call.operator
    for slot in slots:
        if slot not in op.input_names:
            raise contract_violation(
                op,
                "expected_kernel_key",
                f"asks for the dtype of {slot!r}, which is no input",
                wanted=f"one of {', '.join(op.input_names)}",
            )
        declared = op.inputs[op.input_names.index(slot)]
        value = getattr(call, slot)
        found = [one for one in members(value) if one.is_initialized or one.absent or not skip_empty]
        if value is None and not declared.optional:
            raise missing(op, declared)
        for one in found:
            if not declared.mixed:
                check_dtypes_agree(op, found[0], one)
        if found:
            return found[0].dtype
    raise NotFoundError(
        op=op.name,
        what=f"no tensor in {', '.join(slots)}",
        found="nothing that is initialized",
        wanted="at least one, for its dtype",
    )
