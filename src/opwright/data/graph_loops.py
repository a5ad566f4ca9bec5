"""Loops over datasets and iterators in traced functions: one loop of the graph for any number of elements.

Lives here: `for` and Python builtins on datasets and iterators.
Not here: AutoGraph (autograph/), loops in graphs (tracing/statements/), the operators (ops/iteration.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..autograph.handlers import register_handler
from ..ops import dispatch, math
from ..ops.debugging import Assert
from ..tracing.control import cond
from ..tracing.statements import Cursor, GraphHandler
from .dataset import Dataset
from .iterator import OwnedIterator


class IteratorCursor(Cursor):
    """Cursor of an iterator, whose handle the loop captures."""

    def __init__(self, iterator: OwnedIterator) -> None:
        self.iterator = iterator

    widens = True  # as in TensorFlow: unknown element shapes make the loop variables' shapes unknown

    def more(self, position: Sequence[Any]) -> Any:
        """Return whether there is another element; it may be fetched."""
        return self.iterator.has_next()

    def take(self, position: Sequence[Any]) -> tuple[Any, list[Any]]:
        """Return the next element."""
        return self.iterator.get_next(), []


class DatasetHandler(GraphHandler):
    """Handler of datasets and iterators in traced functions."""

    def cursor(self, items: Any) -> Cursor | None:
        """Return a cursor: a new iteration of a dataset, or the current one of an iterator."""
        if isinstance(items, Dataset):
            return IteratorCursor(OwnedIterator(items))
        return IteratorCursor(items) if isinstance(items, OwnedIterator) else None

    def builtin(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Handle enumerate, zip, map, filter, len, any, all of datasets, and next of iterators with a default."""
        rule = _BUILTINS.get(name)
        return NotImplemented if rule is None else rule(*args, **kwargs)


def _zip(*values: Any, **kwargs: Any) -> Any:
    if not values or kwargs or not all(isinstance(v, Dataset) for v in values):
        return NotImplemented
    return Dataset.zip(values)


def _enumerate(values: Any, start: Any = 0) -> Any:
    return values.enumerate(start) if isinstance(values, Dataset) else NotImplemented


def _map(function: Any, *values: Any) -> Any:
    if not values or not all(isinstance(v, Dataset) for v in values):
        return NotImplemented
    return (values[0] if len(values) == 1 else Dataset.zip(values)).map(function)


def _filter(function: Any, values: Any) -> Any:
    return values.filter(function) if isinstance(values, Dataset) and function is not None else NotImplemented


def _len(values: Any) -> Any:
    if not isinstance(values, Dataset):
        return NotImplemented
    n = values.cardinality()
    Assert(math.greater_equal(n, 0), ["len() of a dataset whose size is infinite or unknown: its cardinality is", n])
    return n


def _any(values: Any) -> Any:
    if not isinstance(values, Dataset):
        return NotImplemented
    return values.reduce(dispatch.to_tensor(False), lambda result, x: math.logical_or(result, x))


def _all(values: Any) -> Any:
    if not isinstance(values, Dataset):
        return NotImplemented
    return values.reduce(dispatch.to_tensor(True), lambda result, x: math.logical_and(result, x))


def _next(iterator: Any, *default: Any) -> Any:
    if not isinstance(iterator, OwnedIterator) or not default:
        return NotImplemented
    return cond(iterator.has_next(), iterator.get_next, lambda: default[0])


_BUILTINS: dict[str, Any] = {
    "all": _all,
    "any": _any,
    "enumerate": _enumerate,
    "filter": _filter,
    "len": _len,
    "map": _map,
    "next": _next,
    "zip": _zip,
}

DATASET_HANDLER = DatasetHandler()
register_handler(Dataset, DATASET_HANDLER)
register_handler(OwnedIterator, DATASET_HANDLER)
