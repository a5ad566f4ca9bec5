"""Loops over datasets and iterators in traced functions: one loop in the graph, whatever there is to iterate.

Lives here: what `for` and Python's builtins mean for them.
Not here: the rewriting (staging/), loops in graphs (tracing/staged/).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import staging
from ..core import dtypes
from ..ops import array, dispatch, math
from ..tracing.staged import Cursor, GraphStage
from .base import DatasetBase
from .iterator import OwnedIterator

_INFINITE, _UNKNOWN = -1, -2


def autograph_is_off() -> bool:
    """Whether the function being traced is one that AutoGraph leaves alone."""
    return staging.here.enabled is False


class _Iterated(Cursor):
    """An iterator, which keeps its place itself."""

    widens = True

    def __init__(self, iterator: OwnedIterator) -> None:
        self._iterator = iterator

    def more(self, position: Sequence[Any]) -> Any:
        """Whether it has another element; fetches it."""
        return self._iterator.has_next()

    def take(self, position: Sequence[Any]) -> tuple[Any, list[Any]]:
        """The element."""
        return self._iterator.get_next(), []


class IterationStage(GraphStage):
    """Datasets and iterators inside traced functions."""

    def cursor(self, items: Any) -> Cursor | None:
        """The iterator itself, or a new one over the dataset."""
        return _Iterated(items if isinstance(items, OwnedIterator) else OwnedIterator(items))

    def builtin(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Those of the table BUILTINS; iterators have none of their own."""
        rule = BUILTINS.get(name)
        if rule is None or not all(isinstance(a, DatasetBase) or callable(a) or name == "enumerate" for a in args):
            return NotImplemented
        return rule(*args, **kwargs)

    def contains(self, container: Any, item: Any) -> Any:
        """`in` a dataset: whether any element equals."""
        return _any(container.map(lambda element: math.reduce_all(math.equal(element, item))))


def _len(dataset: Any) -> Any:
    from ..ops.debugging import Assert

    count = dataset.cardinality()
    if not hasattr(count, "trace"):  # known
        return len(dataset)
    Assert(math.not_equal(count, _INFINITE), ["len requires dataset with definitive cardinality, got infinite"])
    Assert(math.not_equal(count, _UNKNOWN), ["len requires dataset with definitive cardinality, got unknown"])
    return count


def _enumerate(dataset: Any, start: Any = 0) -> Any:
    return dataset.enumerate(start)


def _zip(*datasets: Any) -> Any:
    return type(datasets[0]).zip(datasets)


def _map(function: Callable[..., Any], *datasets: Any) -> Any:
    return (datasets[0] if len(datasets) == 1 else _zip(*datasets)).map(function)


def _filter(function: Callable[..., Any], dataset: Any) -> Any:
    return dataset.filter(function)


def _truths(dataset: Any, name: str) -> Any:
    spec = dataset.element_spec
    if getattr(spec, "dtype", None) is not dtypes.bool:
        raise ValueError(f'in graph mode, the "{name}" builtin only supports datasets that return bool scalars, '
                         f"found elements of {spec!r}")  # fmt: skip
    return dataset


def _any(dataset: Any) -> Any:
    found = dispatch.to_tensor(False)
    return _truths(dataset, "any").reduce(found, lambda so_far, x: math.logical_or(so_far, array.reshape(x, ())))


def _all(dataset: Any) -> Any:
    found = dispatch.to_tensor(True)
    return _truths(dataset, "all").reduce(found, lambda so_far, x: math.logical_and(so_far, array.reshape(x, ())))


BUILTINS: dict[str, Callable[..., Any]] = {
    "len": _len, "enumerate": _enumerate, "zip": _zip, "map": _map, "filter": _filter, "any": _any, "all": _all,
}  # fmt: skip

_STAGE = IterationStage()
for _kind in (DatasetBase, OwnedIterator):
    staging.register_stage(_kind, _STAGE)
