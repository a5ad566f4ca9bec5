"""`keras.tree`: nestings of lists, tuples, dicts and named tuples.

Lives here: Keras's functions of structures.  Not here: the types that are structures, and TensorFlow's (core/nest.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core import nest
from ..core.nest import flatten as flatten
from ..core.nest import is_nested as is_nested
from ..core.nest import pack_sequence_as as pack_sequence_as
from ..core.structures import PLAIN, Field

__all__ = [
    "MAP_TO_NONE",
    "assert_same_paths",
    "assert_same_structure",
    "flatten",
    "flatten_with_path",
    "is_nested",
    "lists_to_tuples",
    "map_shape_structure",
    "map_structure",
    "map_structure_up_to",
    "pack_sequence_as",
    "traverse",
]


class MAP_TO_NONE:
    """Result of a function of `traverse` that replaces a part by None."""


def assert_same_structure(a: Any, b: Any, check_types: bool | None = None) -> None:
    """Raise ValueError, naming the path, unless the two structures correspond; leaves are not compared.

    check_types: without effect, as in Keras: types are compared
    """
    try:
        nest.assert_same_structure(a, b)
    except TypeError as error:
        raise ValueError(str(error)) from None


def assert_same_paths(a: Any, b: Any) -> None:
    """Raise ValueError unless the leaves of two structures have the same paths; types are not compared.

    >>> assert_same_paths([0, 1], (2, 3))
    """
    first, second = ({path for path, _ in flatten_with_path(structure)} for structure in (a, b))
    if first != second:
        raise ValueError(f"Paths differ: only in the first {first - second}, only in the second {second - first}.")


def flatten_with_path(structure: Any) -> list[tuple[tuple[Any, ...], Any]]:
    """Return the leaves with their paths: indices and keys, outermost first; fields of named tuples by index.

    >>> flatten_with_path([{"foo": 42}])
    [((0, 'foo'), 42)]
    """
    leaves: list[tuple[tuple[Any, ...], Any]] = []

    def walk(path: tuple[Any, ...], part: Any) -> None:
        row = PLAIN[type(part)]
        if row is None:
            leaves.append((path, part))
            return
        for i, (key, child) in enumerate(zip(row.keys(part), row.children(part))):
            walk((*path, i if isinstance(key, Field) else key), child)

    walk((), structure)
    return leaves


def map_structure(func: Callable[..., Any], *structures: Any, none_is_leaf: bool = True) -> Any:
    """Apply `func` to corresponding leaves; return the results in the structure of the first argument.

    none_is_leaf: whether None is given to `func`; else it stays None, where all structures have it.
    raises ValueError if the structures differ, TypeError if `func` cannot be called.
    """
    if not callable(func):
        raise TypeError(f"`func` must be callable. Received: func={func!r}")
    for other in structures[1:]:
        assert_same_structure(structures[0], other)
    if none_is_leaf:
        return nest.map_structure(func, *structures)
    return nest.map_structure(lambda *xs: None if all(x is None for x in xs) else func(*xs), *structures)


def map_structure_up_to(shallow_structure: Any, func: Callable[..., Any], *structures: Any) -> Any:
    """Apply `func` to the parts of structures at the leaves of `shallow_structure`, in whose structure results are.

    raises ValueError if a structure is not nested as deep as `shallow_structure`, TypeError without structures.

    >>> map_structure_up_to([None, None], len, [[1, 1], [2, 2, 2]])
    [2, 3]
    """
    if not structures:
        raise TypeError("Argument `structures` is empty; `map_structure_up_to` needs one structure or more.")
    row = PLAIN[type(shallow_structure)]
    if row is None:
        return func(*structures)
    for structure in structures:
        other = PLAIN[type(structure)]
        alike = other is not None and (type(structure) is type(shallow_structure) or row is other)
        if not alike or list(row.keys(shallow_structure)) != list(row.keys(structure)):
            raise ValueError(
                f"The structures differ: the shallow one has {shallow_structure!r} where another has {structure!r}."
            )
    parts = [row.children(structure) for structure in structures]
    shallow = row.children(shallow_structure)
    return row.rebuild(shallow_structure, [map_structure_up_to(s, func, *xs) for s, *xs in zip(shallow, *parts)])


def traverse(func: Callable[[Any], Any], structure: Any, top_down: bool = True) -> Any:
    """Apply `func` to each part of a structure, itself included, and return the structure of what it returned.

    None from `func` keeps the part, and, from the outside in (`top_down`), goes on with its parts; MAP_TO_NONE
    replaces it by None.
    raises TypeError if `func` cannot be called

    >>> parts = []
    >>> traverse(parts.append, [(1, 2), 3])
    [(1, 2), 3]
    >>> parts
    [[(1, 2), 3], (1, 2), 1, 2, 3]
    """
    if not callable(func):
        raise TypeError(f"`func` must be callable. Received: func={func!r}")

    def replaced(part: Any, kept: Callable[[], Any]) -> Any:
        result = func(part)
        return kept() if result is None else None if result is MAP_TO_NONE else result

    def walk(part: Any) -> Any:
        row = PLAIN[type(part)]

        def inner() -> Any:
            return part if row is None else row.rebuild(part, [walk(child) for child in row.children(part)])

        if top_down:
            return replaced(part, inner)
        whole = inner()
        return replaced(whole, lambda: whole)

    return walk(structure)


def lists_to_tuples(structure: Any) -> Any:
    """Return the structure with tuples in the place of lists.

    >>> lists_to_tuples([1, {"a": [2, 3]}])
    (1, {'a': (2, 3)})
    """
    return traverse(lambda part: tuple(part) if isinstance(part, list) else None, structure, top_down=False)


def map_shape_structure(func: Callable[..., Any], structure: Any) -> Any:
    """Apply `func` to each shape, a tuple of integers and None, in a structure of shapes.

    >>> map_shape_structure(sum, {"a": (1, 2), "b": [(3,)]})
    {'a': 3, 'b': [3]}
    """

    def map_shape(part: Any) -> Any:
        if not isinstance(part, tuple) or not all(size is None or isinstance(size, int) for size in part):
            return None
        result = func(part)
        return MAP_TO_NONE if result is None else result

    if not callable(func):
        raise TypeError(f"`func` must be callable. Received: func={func!r}")
    return traverse(map_shape, structure)
