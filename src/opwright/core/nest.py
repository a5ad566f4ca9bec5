"""Nested structures: flattening into leaves and packing again, as in `tf.nest`.

Lives here: the public functions and the errors that name the path. Not here: the types that are structures
(core/structures.py), the leaves (tensors, specs, anything), trace types of structures (tracing/).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from .errors import compose
from .structures import (
    EXPANDED,
    PLAIN,
    TEXT,
    Field,
    RowByType,
    UnsortableKeys,
    is_namedtuple,
    register_composite,
    sorted_keys,
)

__all__ = [
    "Field",
    "assert_same_structure",
    "flatten",
    "flatten_with_paths",
    "is_nested",
    "map_structure",
    "pack_sequence_as",
    "path_text",
    "register_composite",
]

Path = tuple[Any, ...]


def is_nested(structure: Any) -> bool:
    """Return whether `structure` is a container; an empty list is nested, too.

    >>> is_nested([1]), is_nested({}), is_nested("text"), is_nested(None)
    (True, True, False, False)
    """
    return PLAIN[type(structure)] is not None


def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:
    """Return the leaves of `structure`, depth first; values of dicts by sorted key. A leaf is returned in a list.

    expand_composites: whether composites (sparse rows, extension types) are flattened, too.
    raises TypeError if the keys of a dict cannot be sorted.

    >>> flatten({"b": [1, 2], "a": (3, None)})
    [3, None, 1, 2]
    >>> flatten(7)
    [7]
    """
    rows = EXPANDED if expand_composites else PLAIN
    row = rows[type(structure)]
    if row is None:
        return [structure]
    leaves: list[Any] = []
    try:
        _extend(leaves, row.children(structure), rows)
    except UnsortableKeys as error:
        raise _unsortable(structure, rows) from error.__cause__
    return leaves


def _extend(leaves: list[Any], children: Iterable[Any], rows: RowByType) -> None:
    for child in children:
        row = rows[type(child)]
        if row is None:
            leaves.append(child)
        else:
            _extend(leaves, row.children(child), rows)


def flatten_with_paths(structure: Any, expand_composites: bool = False) -> list[tuple[Path, Any]]:
    """Return the leaves with their paths: indices, dict keys and field names, outermost first.

    >>> flatten_with_paths({"b": [1, 2], "a": 3})
    [(('a',), 3), (('b', 0), 1), (('b', 1), 2)]
    """
    rows = EXPANDED if expand_composites else PLAIN
    try:
        return list(_walk((), structure, rows))
    except UnsortableKeys as error:
        raise _unsortable(structure, rows) from error.__cause__


def _walk(path: Path, structure: Any, rows: RowByType) -> Iterator[tuple[Path, Any]]:
    row = rows[type(structure)]
    if row is None:
        yield path, structure
        return
    for key, child in zip(row.keys(structure), row.children(structure)):
        yield from _walk((*path, key), child, rows)


def path_text(path: Path) -> str:
    """Return a path as Python source, to append to the structure's name.

    >>> path_text((1, "a", Field("x")))
    "[1]['a'].x"
    """
    return "".join(f".{step}" if isinstance(step, Field) else f"[{step!r}]" for step in path)


def pack_sequence_as(structure: Any, flat_sequence: Sequence[Any], expand_composites: bool = False) -> Any:
    """Pack the leaves of `flat_sequence` into the structure of `structure`; the inverse of `flatten`.

    Types, and the order of a dict's keys, are those of `structure`.
    raises ValueError if the number of leaves differs, TypeError if `flat_sequence` is not a list or tuple.

    >>> pack_sequence_as({"b": [1, 2], "a": 3}, [10, 20, 30])
    {'b': [20, 30], 'a': 10}
    """
    rows = EXPANDED if expand_composites else PLAIN
    if rows[type(structure)] is None and type(flat_sequence) is list and len(flat_sequence) == 1:
        return flat_sequence[0]  # a leaf in a list, as `flatten` returns one
    if not isinstance(flat_sequence, Sequence) or isinstance(flat_sequence, TEXT):
        raise TypeError(
            compose(
                "the leaves to pack are not in a list or tuple",
                op="nest.pack_sequence_as",
                found=type(flat_sequence).__name__,
                wanted="a list or tuple of leaves",
                do="nest.flatten(...) returns such a list",
            )
        )
    count = len(flatten(structure, expand_composites))
    if count != len(flat_sequence):
        raise ValueError(
            compose(
                "the number of leaves differs",
                op="nest.pack_sequence_as",
                found={f"{count} in": _outline(structure), f"{len(flat_sequence)} in": "flat_sequence"},
                wanted="as many leaves as the structure has",
            )
        )
    return _pack(structure, iter(flat_sequence), rows)


def _pack(structure: Any, leaves: Iterator[Any], rows: RowByType) -> object:
    row = rows[type(structure)]
    if row is None:
        return next(leaves)
    children = [_pack(child, leaves, rows) for child in row.children(structure)]
    try:
        return row.rebuild(structure, children)
    except TypeError as error:
        raise TypeError(
            compose(
                f"{type(structure).__name__} cannot be constructed from its new parts: {error}",
                op="nest.pack_sequence_as",
                wanted="a type whose constructor accepts "
                + {"mapping": "key and value pairs", "namedtuple": "its fields", "attrs": "its attributes"}.get(
                    row.name, "a list of parts"
                ),
            )
        ) from error


def map_structure(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """Apply `func` to corresponding leaves; return the results in the structure of the first argument.

    keywords: check_types (True) and expand_composites (False), as for `assert_same_structure`.
    raises ValueError or TypeError, naming the path, if the structures differ.

    >>> map_structure(lambda x, y: x + y, {"a": 1, "b": [2]}, {"a": 10, "b": [20]})
    {'a': 11, 'b': [22]}
    """
    check_types = kwargs.pop("check_types", True)
    expand_composites = kwargs.pop("expand_composites", False)
    if kwargs:
        raise ValueError(
            compose(
                "unknown keyword",
                op="nest.map_structure",
                found=", ".join(kwargs),
                wanted="check_types or expand_composites",
            )
        )
    if not callable(func):
        raise TypeError(compose("func cannot be called", op="nest.map_structure", found=f"a {type(func).__name__}"))
    if not structure:
        raise ValueError(compose("no structure to map over", op="nest.map_structure", wanted="one structure or more"))
    first, *others = structure
    for other in others:
        _check_same(first, other, check_types, expand_composites, "nest.map_structure")
    columns = [flatten(each, expand_composites) for each in structure]
    return _pack(first, iter([func(*leaves) for leaves in zip(*columns)]), EXPANDED if expand_composites else PLAIN)


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False) -> None:
    """Raise, naming the path, unless the two structures correspond; leaves are not compared.

    check_types: whether the types of the sequences and the keys of the mappings must be equal, too. Subclasses of list
    are equivalent, and so are mappings, and namedtuples of one name with the same fields.
    raises ValueError if the structure or the keys differ, TypeError if only the types do.

    >>> assert_same_structure([1, {"a": 2}], ["x", {"a": None}])
    >>> assert_same_structure([1, (2,)], [1, [2]])
    Traceback (most recent call last):
        ...
    TypeError: nest.assert_same_structure: the structures differ at [1]: their types do
      found   first tuple in [., (.,)], second list in [., [.]]
      wanted  one type, or check_types=False
    """
    _check_same(nest1, nest2, check_types, expand_composites, "nest.assert_same_structure")


# --- differences of two structures ----------------------------------------------------------------------------------


def _check_same(first: Any, second: Any, check_types: bool, expand_composites: bool, caller: str) -> None:
    rows = EXPANDED if expand_composites else PLAIN
    try:
        difference = _difference((), first, second, check_types, rows)
        if difference is None:
            return
        kind, path, what, (part, other_part), rule = difference
        if path:
            where = f" at {path_text(path)}"
            parts = {"first": f"{part} in {_outline(first)}", "second": f"{other_part} in {_outline(second)}"}
        else:
            where, parts = "", {"first": part, "second": other_part}
    except UnsortableKeys as error:
        raise _unsortable([first, second], rows, caller, skip=1) from error.__cause__
    raise kind(compose(f"the structures differ{where}: {what}", op=caller, found=parts, wanted=rule))


_Difference = tuple[type[Exception], Path, str, tuple[str, str], str]


def _difference(path: Path, a: Any, b: Any, check_types: bool, rows: RowByType) -> _Difference | None:
    """Return the first difference, depth first, or None."""
    row, other = rows[type(a)], rows[type(b)]
    if row is None or other is None:
        if row is other:
            return None
        shown = tuple(_outline(s) if r else f"a leaf ({type(s).__name__})" for s, r in ((a, row), (b, other)))
        parts = type(a if row is not None else b).__name__
        return (
            ValueError,
            path,
            "one is a leaf, one has parts",
            (shown[0], shown[1]),
            f"the same nesting: expected {parts}",
        )
    if check_types and type(a) is not type(b) and not (row is other and row.alike(type(a), type(b))):
        names = _type_name(a, b), _type_name(b, a)
        return TypeError, path, "their types do", names, "one type, or check_types=False"
    children, others = row.children(a), other.children(b)
    keys = list(row.keys(a))
    if check_types and row.name == "mapping" and keys != list(other.keys(b)):
        return ValueError, path, "their keys do", (_keys_text(a), _keys_text(b)), "the same keys"
    for key, child, other_child in zip(keys, children, others):
        difference = _difference((*path, key), child, other_child, check_types, rows)
        if difference is not None:
            return difference
    if len(children) != len(others):  # last, as tf.nest also reports differences of common parts first
        return ValueError, path, f"{len(children)} parts and {len(others)}", (_outline(a), _outline(b)), "as many parts"
    return None


def _type_name(a: Any, b: Any) -> str:
    """Return the name of a type, such as `list`; with its module if both types have one name, with fields for a
    namedtuple.
    """
    cls = type(a)
    name = f"{cls.__module__}.{cls.__qualname__}" if cls.__name__ == type(b).__name__ else cls.__name__
    return f"{name}({', '.join(cls._fields)})" if is_namedtuple(cls) else name


def _keys_text(mapping: Mapping[Any, Any]) -> str:
    return _shorten("{" + ", ".join(repr(key) for key in sorted_keys(mapping)) + "}")


def _outline(structure: Any) -> str:
    """Return the structure without its leaves: `[., {'a': (., .)}]`. Values of leaves are never shown."""
    return _shorten(_outline_of(structure))


def _outline_of(structure: Any) -> str:
    row = PLAIN[type(structure)]
    if row is None:
        return "."
    parts = [_outline_of(child) for child in row.children(structure)]
    if row.name == "mapping":
        return "{" + ", ".join(f"{key!r}: {part}" for key, part in zip(sorted_keys(structure), parts)) + "}"
    if type(structure) is list:
        return "[" + ", ".join(parts) + "]"
    if type(structure) is tuple:
        return "(" + ", ".join(parts) + ("," if len(parts) == 1 else "") + ")"
    return f"{type(structure).__name__}({', '.join(parts)})"


def _shorten(text: str, limit: int = 200) -> str:
    return text if len(text) <= limit else f"{text[: limit - 4]} ..."


def _unsortable(structure: Any, rows: RowByType, caller: str = "nest.flatten", skip: int = 0) -> TypeError:
    """Return the error for the first mapping without sortable keys; skip: outer path steps that are not the user's."""
    path, mapping = next(_unsortable_mappings((), structure, rows))
    where = f" at {path_text(path[skip:])}" if path[skip:] else ""
    return TypeError(
        compose(
            f"the keys of the {type(mapping).__name__}{where} cannot be sorted",
            op=caller,
            found="keys of type " + ", ".join(sorted({type(key).__name__ for key in mapping})),
            wanted="keys that compare with each other, such as all str",
        )
    )


def _unsortable_mappings(path: Path, structure: Any, rows: RowByType) -> Iterator[tuple[Path, Any]]:
    row = rows[type(structure)]
    if row is None:
        return
    try:
        parts = list(zip(row.keys(structure), row.children(structure)))
    except UnsortableKeys:
        yield path, structure
        return
    for key, child in parts:
        yield from _unsortable_mappings((*path, key), child, rows)
