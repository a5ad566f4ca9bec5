"""Gradients added to a graph: `append_backward` for a loss, `graph_gradients` for any targets.

Lives here: the two functions and their checks.
Not here: the walk back over the nodes (backward_walk.py), results (gradient_map.py), gradient rules (each operator's
own), tapes (eager/tape.py), derivatives of traced functions, programs of their own (tracing/program.py).

The gradient of a value `v` is named `v@GRAD`. Where several nodes give a part of it the parts are named
`v@GRAD@RENAME@block0@0`, `...@1` and so on, as they come, and one AddN just before the first node that reads the sum
gives `v@GRAD`. Rows of a table (IndexedSlices) are `v@GRAD.values`, `v@GRAD.indices` and `v@GRAD.dense_shape`. Names
are for people: which value has which gradient is kept in the result, and is not read from names.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core.errors import InvalidArgumentError, NotFoundError
from ..graph import Graph, Value
from ..ops.autodiff import is_trainable
from .backward_walk import NoGradientError, Walk
from .gradient_map import Backward
from .graphs import checked_graph

__all__ = ["Backward", "NoGradientError", "append_backward", "graph_gradients"]


def append_backward(
    graph: Graph, loss: Any, parameters: Iterable[Any] | None = None, no_grad_set: Iterable[Any] = ()
) -> Backward:
    """The graph with the gradient of `loss` by its parameters after it.

    .. math:: p@GRAD = \\frac{\\partial loss}{\\partial p}

    loss: a value of the graph or its name, floating, of one element. parameters: values or names; by default all inputs
    that the loss depends on by ways that gradients can go; the handle of a variable stands for what it holds.
    no_grad_set: values or names that no gradient flows into, besides results of `stop_gradient`.
    The new graph has the forward nodes as they were, then those of the gradient. Its outputs are those of the graph and
    then the gradients of the parameters, in the order of `.pairs`, three for rows: values, indices, dense shape.
    A parameter that the loss does not depend on has no pair.

    raises InvalidArgumentError for a loss that is no floating number, NotFoundError for what is not in the graph,
    NoGradientError (a LookupError) naming operator and node where the way leads through an operator without gradient
    """
    value = _find(graph, loss, "loss")
    count = value.shape.num_elements()
    if not (value.dtype.is_floating or value.dtype.is_complex) or count != 1:
        unknown = "; how many elements it has is not known" if count is None else ""
        raise InvalidArgumentError(
            op="append_backward",
            node=value.name,
            what=f"the loss must be one floating number{unknown}",
            found=value.spec.short(),
            wanted="f32[] or f32[1]",
            do="reduce it to a scalar with ow.reduce_mean or ow.reduce_sum; or use `graph_gradients`, for any shape",
        )
    chosen = None if parameters is None else [_find(graph, p, "parameter") for p in parameters]
    walk = Walk(graph, _given(graph, no_grad_set))
    return walk.run([value], [None], graph.inputs if chosen is None else chosen, explicit=chosen is not None)


def graph_gradients(
    graph: Graph, targets: Any, inputs: Any, target_gradients: Any = None, no_grad_set: Iterable[Any] = ()
) -> Backward:
    """The graph with the gradients of the sum of all `targets` by each of `inputs` after it.

    targets, inputs: a value or name, or a list of them; any shape, anywhere in the graph. target_gradients: for each
    target a value of the graph, of the target's dtype and shape, that its gradient starts from, or None for ones.
    `.gradients` has what was found for each input, None where the targets do not depend on it. See `append_backward`.
    """
    ys, xs = (
        [_find(graph, v, role) for v in _listed(given)] for given, role in ((targets, "target"), (inputs, "input"))
    )
    starts = [None] * len(ys) if target_gradients is None else _listed(target_gradients)
    if len(starts) != len(ys):
        raise InvalidArgumentError(
            op="gradients", what="one gradient is wanted for each target", found=f"{len(starts)} for {len(ys)} targets"
        )
    seeds = [None if s is None else _find(graph, s, "target gradient") for s in starts]
    for y, seed in zip(ys, seeds):
        if not is_trainable(y.dtype) or y.dtype.is_handle:
            raise InvalidArgumentError(
                op="gradients",
                node=y.name,
                what="a target of this dtype has no gradient",
                found=y.spec.short(),
                wanted="a floating or complex one",
            )
        if seed is not None and (seed.dtype is not y.dtype or not seed.shape.is_compatible_with(y.shape)):
            raise InvalidArgumentError(
                op="gradients",
                node=y.name,
                what="a target and its gradient differ in type",
                found={"target": y.spec.short(), "gradient": seed.spec.short()},
            )
    return Walk(graph, _given(graph, no_grad_set)).run(ys, seeds, xs, explicit=True)


def _listed(given: Any) -> list[Any]:
    return list(given) if isinstance(given, (list, tuple)) else [given]


def _find(graph: Graph, wanted: Any, role: str) -> Value:
    """A value of the graph by itself or by name. Raises NotFoundError with names that look alike."""
    checked_graph(graph, "append_backward")
    name = wanted if isinstance(wanted, str) else getattr(wanted, "name", None)
    for value in graph.values():
        if value is wanted or (isinstance(wanted, str) and value.name == name):
            return value
    import difflib

    near = difflib.get_close_matches(str(name), [v.name for v in graph.values()], 3)
    if isinstance(wanted, Value):
        wanted, near = f"{wanted!r} of another graph", near[:1]
    raise NotFoundError(
        what=f"graph {graph.name!r} has no such {role}",
        found=wanted,
        do=f"did you mean {', '.join(near)}?" if near else "print the graph to see them",
    )


def _given(graph: Graph, no_grad_set: Iterable[Any]) -> list[Value]:
    return [_find(graph, v, "value of no_grad_set") for v in no_grad_set]
