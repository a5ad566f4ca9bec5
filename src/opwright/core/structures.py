"""Structure types: how each family of containers is flattened and rebuilt; the table behind `nest`.

Lives here: the table `STRUCTURES`, its rows by type, and the registry of composites.  Not here: traversals
(core/nest.py).

    type                                         children, in order        rebuilt as
    class with __tf_flatten__, __tf_unflatten__  its components            the result of __tf_unflatten__
    dict and every other Mapping                 values by sorted key      the same type, keys in their own order
    namedtuple                                   fields                    the same type
    attrs class                                  attributes                the same type
    list, tuple and their subclasses             in order                  the same type
    deque, range, dict views, other Sequences    in order                  the same type; range and views as a list
    registered composite, if expanded            its components            as registered

All other values are leaves: None, numbers, str, bytes, arrays, sets, dataclasses without the two methods.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Mapping, MappingView, MutableMapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

from .named_tuples import NamedTuple

T = TypeVar("T")


class Field(str):
    """A path step that is an attribute's name; equal to a dict key of the same letters, which is a plain `str`."""

    __slots__ = ()


class Structure(NamedTuple):
    """The flattening and rebuilding of one family of types.

    children: the parts in flattening order; keys: a path step for each; rebuild: from the original and new children to
    a value of the same structure; alike: whether two different types of this family are equivalent.
    """

    name: str
    has: Callable[[type], bool]
    children: Callable[[Any], Sequence[Any]]
    keys: Callable[[Any], Iterable[Any]]
    rebuild: Callable[[Any, list[Any]], Any]
    alike: Callable[[type, type], bool]


class UnsortableKeys(TypeError):
    """The keys of a mapping cannot be sorted. `nest` converts it to a `TypeError` with the path."""


def sorted_keys(mapping: Mapping[Any, Any]) -> list[Any]:
    try:
        return sorted(mapping)
    except TypeError as error:
        raise UnsortableKeys(str(error)) from error


def _mapping_children(mapping: Mapping[Any, Any]) -> list[Any]:
    return [mapping[key] for key in sorted_keys(mapping)]


def _mapping_rebuild(mapping: Mapping[Any, Any], children: list[Any]) -> object:
    new = dict(zip(sorted_keys(mapping), children))
    cls = type(mapping)
    if cls is dict:
        return {key: new[key] for key in mapping}
    if cls is MappingProxyType:
        return MappingProxyType({key: new[key] for key in mapping})
    if isinstance(mapping, MutableMapping):
        result = cls(mapping.default_factory) if cls is collections.defaultdict else cls()  # type: ignore[attr-defined, call-arg]
        for key in mapping:
            result[key] = new[key]  # type: ignore[index]
        return result
    return cls([(key, new[key]) for key in mapping])  # type: ignore[call-arg]


def is_namedtuple(cls: type) -> bool:
    fields = getattr(cls, "_fields", None)
    return issubclass(cls, tuple) and isinstance(fields, tuple) and all(isinstance(name, str) for name in fields)


def _same_namedtuple(a: type, b: type) -> bool:
    return a.__name__ == b.__name__ and a._fields == b._fields  # type: ignore[attr-defined]


def _attrs_rebuild(structure: Any, children: list[Any]) -> object:
    arguments, later = {}, {}
    for attribute, child in zip(type(structure).__attrs_attrs__, children):
        if getattr(attribute, "init", True):
            arguments[getattr(attribute, "alias", None) or attribute.name.lstrip("_")] = child
        else:
            later[attribute.name] = child
    result = type(structure)(**arguments)
    for name, child in later.items():
        object.__setattr__(result, name, child)  # frozen classes too
    return result


def _custom_rebuild(structure: Any, children: list[Any]) -> object:
    metadata, _ = structure.__tf_flatten__()
    return structure.__tf_unflatten__(metadata, tuple(children))


def _sequence_rebuild(structure: Any, children: list[Any]) -> object:
    cls = type(structure)
    if cls is range or cls is list or isinstance(structure, MappingView):
        return children
    return tuple(children) if cls is tuple else cls(children)


def _itself(structure: T) -> T:
    return structure


def _positions(structure: Any) -> Iterable[int]:
    return range(len(structure))


def _never(a: type, b: type) -> bool:
    return False


def _always(a: type, b: type) -> bool:
    return True


TEXT = (str, bytes, bytearray, memoryview)

STRUCTURES = (  # the first match applies; a type without a match is a leaf
    Structure(
        "custom",
        has=lambda cls: hasattr(cls, "__tf_flatten__") and hasattr(cls, "__tf_unflatten__"),
        children=lambda s: s.__tf_flatten__()[1],
        keys=lambda s: range(len(s.__tf_flatten__()[1])),
        rebuild=_custom_rebuild,
        alike=_never,
    ),
    Structure(
        "mapping",
        has=lambda cls: issubclass(cls, Mapping),
        children=_mapping_children,
        keys=sorted_keys,
        rebuild=_mapping_rebuild,
        alike=_always,  # a dict is equivalent to an OrderedDict
    ),
    Structure(
        "namedtuple",
        has=is_namedtuple,
        children=_itself,
        keys=lambda s: map(Field, s._fields),
        rebuild=lambda s, children: type(s)(*children),
        alike=_same_namedtuple,  # two definitions, such as in two modules
    ),
    Structure(
        "attrs",
        has=lambda cls: hasattr(cls, "__attrs_attrs__"),
        children=lambda s: [getattr(s, a.name) for a in type(s).__attrs_attrs__],
        keys=lambda s: [Field(a.name) for a in type(s).__attrs_attrs__],
        rebuild=_attrs_rebuild,
        alike=_never,
    ),
    Structure(
        "list",
        has=lambda cls: issubclass(cls, list),
        children=_itself,
        keys=_positions,
        rebuild=_sequence_rebuild,
        alike=_always,  # subclasses of list are used as lists
    ),
    Structure(
        "view",
        has=lambda cls: issubclass(cls, MappingView),
        children=list,
        keys=_positions,
        rebuild=_sequence_rebuild,
        alike=_never,
    ),
    Structure(
        "sequence",
        has=lambda cls: issubclass(cls, Sequence) and not issubclass(cls, TEXT),
        children=_itself,
        keys=_positions,
        rebuild=_sequence_rebuild,
        alike=_never,
    ),
)

_COMPOSITES: dict[type, Structure | None] = {}  # None: a leaf


def _composite_of(cls: type) -> Structure | None:
    return next((_COMPOSITES[base] for base in cls.__mro__ if base in _COMPOSITES), None)


def register_type_specs(composite: type, spec: type) -> None:
    """Register values with a `_type_spec`, and their specs, as composites: one row, so that a spec has its values'
    structure.

    Packing a structure of specs yields values. `register_leaf` excludes the specs of single tensors.
    """

    def spec_parts(value: Any) -> object:
        return value._component_specs

    def parts(value: Any) -> Sequence[Any]:
        return (spec_parts(value) if isinstance(value, spec) else value._type_spec._to_components(value),)

    def rebuilt(value: Any, children: Sequence[Any]) -> object:
        return getattr(value, "_from_components" if isinstance(value, spec) else "_with_components")(children[0])

    row = Structure(
        "composite",
        has=lambda cls: issubclass(cls, (composite, spec)),
        children=parts,
        keys=lambda s: [Field("components")],
        rebuild=rebuilt,
        alike=_always,
    )
    _COMPOSITES[composite] = _COMPOSITES[spec] = row
    PLAIN.clear()
    EXPANDED.clear()


def register_leaf(cls: type) -> None:
    """Register `cls` and its subclasses as leaves, whatever their bases are registered as."""
    _COMPOSITES[cls] = None
    PLAIN.clear()
    EXPANDED.clear()


class RowByType(dict[type, "Structure | None"]):
    """A cache from types to their rows, None for leaves, filled on demand."""

    def __init__(self, expand_composites: bool) -> None:
        super().__init__()
        self.expand_composites = expand_composites

    def __missing__(self, cls: type) -> Structure | None:
        composite = _composite_of(cls)
        if composite is not None:
            row = composite if self.expand_composites else None
        else:
            row = next((row for row in STRUCTURES if row.has(cls)), None)
        self[cls] = row
        return row


PLAIN, EXPANDED = RowByType(False), RowByType(True)


def register_composite(
    cls: type, to_components: Callable[[Any], Sequence[Any]], from_components: Callable[[Any, list[Any]], Any]
) -> None:
    """Register `cls` and its subclasses as composites: leaves, unless `expand_composites=True` requests their parts.

    to_components: value -> parts; from_components: (original value, new parts) -> value.

    register_composite(IndexedSlices, lambda s: [s.values, s.indices], lambda s, parts: IndexedSlices(*parts))
    """
    _COMPOSITES[cls] = Structure(
        "composite",
        has=lambda other: issubclass(other, cls),
        children=to_components,
        keys=lambda s: range(len(to_components(s))),
        rebuild=from_components,
        alike=_never,
    )
    PLAIN.clear()
    EXPANDED.clear()
