"""Higher-order operators: branches, loops, scans and maps.

Lives here: `CONTROL`, a function for each, of bodies and operands. Not here: the walk over nodes (importer.py).

Bodies take and return flat lists of tensors, as subgraphs of `torch.export` do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...ops import array
from ...tracing import control
from ...tracing.control.higher_order import loop_over
from ..importing import is_known, tensor_of

Body = Callable[..., list[Any]]


def _listed(results: Any) -> list[Any]:
    return list(results) if isinstance(results, (list, tuple)) else [results]


def cond(chooser: Any, true: Body, false: Body, operands: Sequence[Any] = ()) -> list[Any]:
    """Return the results of one of two branches."""
    if is_known(chooser):
        return (true if bool(chooser) else false)(*operands)
    return _listed(control.cond(tensor_of(chooser), lambda: true(*operands), lambda: false(*operands)))


def while_loop(condition: Body, body: Body, carried: Sequence[Any], others: Sequence[Any] = ()) -> list[Any]:
    """Return what is carried when the condition is first false."""
    results = control.while_loop(
        lambda *values: array.reshape(condition(*values, *others)[0], []),
        lambda *values: body(*values, *others),
        [tensor_of(v) for v in carried],
    )
    return _listed(results)


def scan(step: Body, start: Sequence[Any], elements: Sequence[Any], others: Sequence[Any] = ()) -> list[Any]:
    """Return what steps over the rows of the elements carry at last, then their other results, stacked."""
    begin, rows = [tensor_of(v) for v in start], [tensor_of(v) for v in elements]

    def following(element: Any, carried: Sequence[Any]) -> tuple[Sequence[Any], Any]:
        results = step(*carried, *element, *others)
        return results[: len(begin)], results[len(begin) :]

    carried, stacked = loop_over(following, rows, rows, _count(rows), begin, False)
    return [*carried, *stacked]


def map_rows(function: Body, elements: Sequence[Any], others: Sequence[Any] = ()) -> list[Any]:
    """Return the results for each row of the elements, stacked."""
    return scan(function, [], elements, others)


def _count(rows: Sequence[Any]) -> Any:
    size = rows[0].shape[0]
    return array.shape(rows[0])[0] if size is None else int(size)


CONTROL: dict[str, Callable[..., list[Any]]] = {
    "cond": cond,
    "while_loop": while_loop,
    "scan": scan,
    "map_impl": map_rows,
}
"""The control flow that the importer executes itself, by PyTorch's name of the higher-order operator."""
