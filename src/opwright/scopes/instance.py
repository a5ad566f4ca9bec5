"""`OpInstance`: an operator with the names of the variables that it reads and writes.

Lives here: the type, and the checks of its construction.  Not here: running one (execution.py).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

from ..core.errors import SignatureError
from ..core.introspection import users_line
from ..graph.ir import Node, same_attr
from ..ops import dispatch, registry
from ..ops.definition import Operator
from .execution import explain, run
from .variable import EMPTY, TEMP, unique

if TYPE_CHECKING:
    from ..ops.kernel_selection import Explanation

Slots = Mapping[str, tuple[str, ...]]


class OpInstance:
    """A deferred call: an operator, the variables it reads and writes, and its attributes.

    type: the Operator. inputs, outputs: names of variables by slot, looked up at run time. attrs: all attributes,
    checked. at: the line that created it, for errors; not compared. Immutable; equal if the four agree. Running it does
    not change it, so it may run on many scopes and places, in several threads at once.

    In inputs and outputs a name may replace a list of one; `@EMPTY@` stands for no variable (alone in a repeated
    output: all of it is unused), `@TEMP@` for a new temporary.

    >>> add = ow.ops.get("Add").on({"x": "a", "y": "b"}, {"z": "c"})
    >>> add
    {z: c} = Add({x: a, y: b})
    >>> add.run(scope, ow.CPUPlace())

    raises SignatureError naming operator and slot: for an input, output or attribute that is missing or unknown, two
    variables for a slot of one, one for two outputs; for attributes as `Operator.bind`
    """

    __slots__ = ("at", "attrs", "inputs", "outputs", "type")

    type: Operator
    inputs: Slots
    outputs: Slots
    attrs: Mapping[str, Any]
    at: str | None

    def __init__(
        self, op: Any, inputs: Any = None, outputs: Any = None, attrs: Any = None, at: str | None = None
    ) -> None:
        kind: Operator = registry.operator_of(op)
        if attrs is not None and not isinstance(attrs, Mapping):
            raise SignatureError(
                op=kind.name,
                what="the attributes are not a mapping",
                found=type(attrs).__name__,
                wanted=f"{{name: value}} with {', '.join(kind.attr_defs) or 'nothing'}",
            )
        bound = kind.bind(dict(attrs or {}))
        self._fill(
            kind,
            _checked_names(kind, "input", kind.inputs, inputs),
            _checked_names(kind, "output", kind.outputs, outputs),
            bound.attrs,
            at or users_line(),
        )

    def _fill(self, op: Operator, inputs: Slots, outputs: Slots, attrs: Mapping[str, Any], at: str | None) -> None:
        put = object.__setattr__
        put(self, "type", op)
        put(self, "inputs", MappingProxyType(dict(inputs)))
        put(self, "outputs", MappingProxyType(dict(outputs)))
        put(self, "attrs", MappingProxyType(dict(attrs)))
        put(self, "at", at)

    @classmethod
    def of_node(cls, node: Node) -> OpInstance:
        """Return the instance equivalent to a node of a graph: its variables have the names of the values."""
        op = node.op
        instance = object.__new__(cls)
        inputs = {
            declared.name: (EMPTY,)
            if operand is None
            else tuple(v.name for v in operand)
            if isinstance(operand, tuple)
            else (operand.name,)
            for declared, operand in zip(op.inputs, node.inputs)
        }
        packed = op.pack_all([v.name for v in node.outputs])
        outputs = {o.name: tuple(p) if isinstance(p, list) else (p,) for o, p in zip(op.outputs, packed)}
        instance._fill(op, inputs, outputs, node.attrs, node.at)
        return instance

    def run(self, scope: Any = None, place: Any = None) -> Explanation:
        """Run it on the variables of a scope; see `execution.run` for the result.

        scope: by default the global one. place: a place or its name, by default the CPU.
        """
        return run(self, scope, place)

    def explain(self, scope: Any = None, place: Any = None) -> Explanation:
        """Return the kernel that would be selected, and why; see `ow.ops.explain`."""
        return explain(self, scope, place)

    def input_names(self) -> Iterator[str]:
        """Return the names of the variables it reads, in order."""
        return (name for names in self.inputs.values() for name in names if name != EMPTY)

    def output_names(self) -> Iterator[str]:
        """Return the names of the variables it writes, in order."""
        return (name for names in self.outputs.values() for name in names if name != EMPTY)

    # ---- equality, copies -------------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OpInstance):
            return NotImplemented
        return (
            self.type is other.type
            and self.inputs == other.inputs
            and self.outputs == other.outputs
            and all(same_attr(value, other.attrs[name]) for name, value in self.attrs.items())
        )

    def __hash__(self) -> int:
        return hash((self.type, tuple(self.inputs.items()), tuple(self.outputs.items())))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"an instance of {self.type.name} is immutable: {name!r} cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"an instance of {self.type.name} is immutable: {name!r} cannot be deleted")

    def __copy__(self) -> OpInstance:
        return self

    def __deepcopy__(self, memo: Any) -> OpInstance:
        instance = object.__new__(OpInstance)
        kinds = {name: declared.type for name, declared in self.type.attr_defs.items()}  # most are immutable
        attrs = {k: copy.deepcopy(v, memo) if kinds[k] is object else v for k, v in self.attrs.items()}
        instance._fill(self.type, self.inputs, self.outputs, attrs, self.at)
        return instance

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.type, dict(self.inputs), dict(self.outputs), dict(self.attrs), self.at)

    def __repr__(self) -> str:
        attrs = []
        for name, declared in self.type.attr_defs.items():
            value = self.attrs[name]
            if declared.required or not same_attr(value, declared.default):
                attrs.append(f", {name}={_short(value)}")
        return f"{_slots(self.outputs)} = {self.type.name}({_slots(self.inputs)}{''.join(attrs)})"


def _rebuild(op: Operator, inputs: Any, outputs: Any, attrs: Any, at: str | None) -> OpInstance:
    instance = object.__new__(OpInstance)
    instance._fill(op, inputs, outputs, attrs, at)
    return instance


def _slots(slots: Slots) -> str:
    shown = [slot + ": " + (names[0] if len(names) == 1 else f"[{', '.join(names)}]") for slot, names in slots.items()]
    return f"{{{', '.join(shown)}}}"


def _short(value: Any) -> str:
    if hasattr(value, "nodes"):
        return str(value.name)
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def _checked_names(op: Operator, side: str, declared: Sequence[Any], names_by_slot: Any) -> dict[str, tuple[str, ...]]:
    """Return the names by slot, in the operator's order of slots. Raises SignatureError."""
    slots = {definition.name: definition for definition in declared}
    if names_by_slot is None:
        names_by_slot = {}
    if not isinstance(names_by_slot, Mapping):
        raise SignatureError(
            op=op.name,
            what=f"the {side}s are not a mapping",
            found=type(names_by_slot).__name__,
            wanted=f"{{slot: name}} with {', '.join(slots) or 'nothing'}",
        )
    for name in names_by_slot:
        if name not in slots:
            raise SignatureError(
                op=op.name,
                what=f"there is no {side} {name!r}",
                found=repr(names_by_slot[name]),
                wanted=f"one of {', '.join(slots)}" if slots else f"no {side}s",
            )
    result = {}
    for name, definition in slots.items():
        value = names_by_slot.get(name)
        names = () if value is None else tuple(value) if isinstance(value, (list, tuple)) else (value,)
        for item in names:
            if not isinstance(item, str) or not item:
                raise SignatureError(
                    op=op.name,
                    what=f"{side} {name!r} takes names of variables",
                    found=f"{item!r} ({type(item).__name__})",
                    wanted="texts",
                )
        if not definition.repeated and len(names) > 1:
            raise SignatureError(
                op=op.name,
                what=f"{side} {name!r} takes one variable",
                found=f"{len(names)}: {', '.join(names)}",
                wanted="one name",
            )
        if not names or (side == "input" and not definition.repeated and names == (EMPTY,)):
            if getattr(definition, "optional", False) or definition.lod_of is not None:
                continue
            if value is None or not definition.repeated:
                unwanted = f", or {EMPTY!r} if it is unused" if side == "output" else ""
                raise SignatureError(
                    op=op.name,
                    what=f"{side} {name!r} is missing",
                    found="no name",
                    wanted=f"the name of a variable{unwanted}",
                )
        result[name] = tuple(unique(op.name) if item == TEMP else item for item in names)
    if side == "output":
        outputs = [item for names in result.values() for item in names if item != EMPTY]
        for item in outputs:
            if outputs.count(item) > 1:
                raise SignatureError(
                    op=op.name,
                    what=f"variable {item!r} is given for two outputs",
                    found=", ".join(f"{s}: {', '.join(n)}" for s, n in result.items()),
                    wanted=f"a name for each, or {EMPTY!r} if it is unused",
                )
    return result


dispatch.install_instances(OpInstance)
