"""Trace types of containers: lists, tuples, dicts, namedtuples, attrs classes, dataclasses.

Lives here: `ContainerType`, the type of every container, and `ContainerLayout`, which identifies and builds one kind.
Not here: the types of the elements, and which values are containers (trace_type.py).
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeGuard

from ..core.specs import TensorSpec
from ..core.structures import STRUCTURES, is_namedtuple
from ..core.type_spec import TraceType, comparable

_CUSTOM, _MAPPING, _NAMEDTUPLE, _ATTRS = STRUCTURES[:4]


class ContainerType(TraceType):
    """The type of a container: its layout, and the types of its children in the order of flattening."""

    __slots__ = ("_hash", "layout", "parts")

    def __init__(self, layout: ContainerLayout, parts: Sequence[TraceType]) -> None:
        self.layout, self.parts = layout, tuple(parts)
        self._hash = hash((layout, self.parts))

    def _alike(self, other: object) -> TypeGuard[ContainerType]:
        return type(other) is ContainerType and self.layout == other.layout and len(self.parts) == len(other.parts)

    def is_subtype_of(self, other: TraceType) -> bool:
        """Return whether `other` is the same container with parts that are supertypes."""
        return self._alike(other) and all(a.is_subtype_of(b) for a, b in zip(self.parts, other.parts))

    def most_specific_common_supertype(self, others: Sequence[TraceType]) -> TraceType | None:
        """Return the container of the parts' supertypes; None if a part has none."""
        alike = [o for o in others if self._alike(o)]
        if len(alike) < len(others):
            return None
        parts = []
        for i, part in enumerate(self.parts):
            supertype = part.most_specific_common_supertype([o.parts[i] for o in alike])
            if supertype is None:
                return None
            parts.append(supertype)
        return ContainerType(self.layout, parts)

    def placeholder_value(self, placeholder_context: Any) -> Any:
        """Return the container of placeholders."""
        part = getattr(placeholder_context, "part", None)
        if part is None:
            return self.layout.build([p.placeholder_value(placeholder_context) for p in self.parts])
        return self.layout.build([part(key, p) for key, p in zip(self.layout.keys(len(self.parts)), self.parts)])

    def to_tensors(self, value: Any) -> list[Any]:
        """Return the tensors of all parts."""
        tensors: list[Any] = []
        for kind, child in zip(self.parts, self.layout.children(value)):
            if type(kind) is TensorSpec:
                tensors.append(child)
            else:
                tensors += kind.to_tensors(child)
        return tensors

    def from_tensors(self, tensors: Iterator[Any]) -> object:
        """Build the container from its tensors."""
        return self.layout.build([p.from_tensors(tensors) for p in self.parts])

    def flatten(self) -> list[Any]:
        """Return the tensor specs of all parts."""
        return [s for p in self.parts for s in p.flatten()]

    def cast(self, value: Any, cast_context: Any) -> object:
        """Cast the parts of a container. Raises TypeError for another container."""
        if isinstance(value, TraceType):
            if not value.is_subtype_of(self):
                raise TypeError(f"Can not cast {value!r} to {self!r}")
            return value
        children = self.layout.parts_of(value, len(self.parts))
        if children is None:
            raise TypeError(f"Can not cast {value!r} to {self!r}: it does not have that structure")
        return self.layout.build([p.cast(c, cast_context) for p, c in zip(self.parts, children)])

    def __eq__(self, other: object) -> bool:
        return self._alike(other) and self.parts == other.parts

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return self.layout.text([repr(p) for p in self.parts])


@dataclasses.dataclass(frozen=True, eq=False)
class ContainerLayout:
    """The identity of one kind of container, and its construction from children.

    kind: "List", "Tuple", "Dict" ...; cls: the class, None if any class of the kind matches; names: keys or fields,
    sorted if their order is irrelevant.

    Two namedtuple classes of one name with the same fields are equal, as for `nest`.
    """

    kind: str
    cls: Any = None
    names: tuple[Any, ...] = ()
    metadata: Any = None
    template: Any = None  # copied by `build`; not compared

    def __eq__(self, other: object) -> bool:
        if type(other) is not ContainerLayout or self.kind != other.kind or self.names != other.names:
            return False
        if self.cls is not other.cls and (self.kind != "NamedTuple" or self.cls.__name__ != other.cls.__name__):
            return False
        return self.metadata is other.metadata or comparable(self.metadata) == comparable(other.metadata)

    def __hash__(self) -> int:
        return hash((self.kind, self.names))  # metadata need not be hashable

    def keys(self, count: int) -> Sequence[Any]:
        """Return a path step for each child."""
        return self.names if self.names else range(count)

    def children(self, value: Any) -> Sequence[Any]:
        """Return the children of a value of this layout."""
        if self.kind == "Dict":
            return [value[k] for k in self.names]
        if self.kind in ("Attrs", "Fields", "Slice"):
            return [getattr(value, n) for n in self.names]
        children: Sequence[Any] = value.__tf_flatten__()[1] if self.kind == "CustomNest" else value
        return children

    def parts_of(self, value: Any, count: int) -> Sequence[Any] | None:
        """Return the children of a value, None if it has another layout. A list matches a tuple and vice versa, as
        calls mix them.
        """
        if self.kind in ("List", "Tuple"):
            fits = isinstance(value, (list, tuple))
        elif self.kind == "Dict":
            fits = isinstance(value, Mapping) and value.keys() == set(self.names)
        elif self.kind == "NamedTuple":
            fits = is_namedtuple(type(value)) and type(value)._fields == self.names
        else:
            fits = isinstance(value, self.cls)
        if not fits:
            return None
        children = self.children(value)
        return children if len(children) == count else None

    def build(self, children: list[Any]) -> object:
        """Build the container of these children."""
        if self.kind == "List":
            return children
        if self.kind == "Tuple":
            return tuple(children)
        if self.kind == "Slice":
            return slice(*children)
        if self.kind == "CustomNest":
            unflatten = self.cls.__tf_unflatten__
            if isinstance(inspect.getattr_static(self.cls, "__tf_unflatten__"), types.FunctionType):
                unflatten = self.cls.__new__(self.cls).__tf_unflatten__  # written as a plain method
            return unflatten(self.metadata, tuple(children))
        if self.kind == "NamedTuple":
            return self.cls(*children)
        if self.kind == "Fields":
            new = copy.copy(self.template)
            for name, child in zip(self.names, children):
                object.__setattr__(new, name, child)
            return new
        row = _MAPPING if self.kind == "Dict" else _ATTRS
        return row.rebuild(self.template, children)

    def text(self, parts: list[str]) -> str:
        """Return the text form of the type."""
        if self.kind == "Dict":
            parts = [f"[{k!r}, {p}]" for k, p in zip(self.names, parts)]
        name = self.kind if self.cls is None else f"{self.kind}[{self.cls.__name__}]"
        return f"{name}[{', '.join(parts)}]"


def halves(call: ContainerType) -> tuple[ContainerType, ContainerType]:
    """Return the types of a call's positional and of its keyword arguments."""
    positional, by_name = call.parts
    assert isinstance(positional, ContainerType)
    assert isinstance(by_name, ContainerType)
    return positional, by_name


LIST, TUPLE = ContainerLayout("List"), ContainerLayout("Tuple")
SLICE = ContainerLayout("Slice", slice, ("start", "stop", "step"))
