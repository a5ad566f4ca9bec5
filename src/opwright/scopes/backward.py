"""Add gradients to a graph: `append_backward` for a loss, `graph_gradients` for any targets.

Lives here: the two functions and their checks. Not here: the backward pass over the nodes (backward_pass.py), results
(gradient_map.py), gradient rules (the operators'), tapes (eager/tape.py), derivatives of traced functions, which are
separate programs (tracing/program.py).

The gradient of a value `v` is named `v@GRAD`. Where several nodes contribute, the parts are named
`v@GRAD@RENAME@block0@0`, `...@1` and so on, in order, and one AddN just before the first node that reads the sum
computes `v@GRAD`. Rows of a table (IndexedSlices) are `v@GRAD.values`, `v@GRAD.indices` and `v@GRAD.dense_shape`. Names
are for people: the result maps values to gradients and does not parse names.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from ..core.errors import InvalidArgumentError, NotFoundError
from ..graph import Graph, Value
from ..ops.autodiff import is_trainable
from .backward_pass import BackwardPass, NoGradientError
from .gradient_map import Backward
from .graphs import checked_graph

__all__ = ["Backward", "NoGradientError", "append_backward", "graph_gradients"]


def append_backward(
    graph: Graph, loss: Any, parameters: Iterable[Any] | None = None, no_grad_set: Iterable[Any] = ()
) -> Backward:
    """Return the graph extended with the gradients of `loss` with respect to its parameters.

    .. math:: p@GRAD = \\frac{\\partial loss}{\\partial p}

    loss: a value of the graph or its name, floating, of one element. parameters: values or names; by default all inputs
    that the loss depends on along differentiable paths; the handle of a variable stands for the variable's value.
    no_grad_set: values or names at which differentiation stops, in addition to results of `stop_gradient`. The new
    graph has the forward nodes unchanged, then those of the gradients. Its outputs are the graph's, then the gradients
    of the parameters, in the order of `.pairs`, three for rows: values, indices, dense shape. A parameter that the loss
    does not depend on has no pair.

    raises InvalidArgumentError for a loss that is not one floating number, NotFoundError for a value that is not in the
    graph, NoGradientError (a LookupError) naming operator and node where a path leads through an operator without
    gradient
    """
    value = _find(graph, loss, "loss")
    count = value.shape.num_elements()
    if not (value.dtype.is_floating or value.dtype.is_complex) or count != 1:
        unknown = "; its number of elements is not known" if count is None else ""
        raise InvalidArgumentError(
            op="append_backward",
            node=value.name,
            what=f"the loss must be one floating number{unknown}",
            found=value.spec.short(),
            wanted="f32[] or f32[1]",
            do="reduce it to a scalar with ow.reduce_mean or ow.reduce_sum; or use `graph_gradients`, for any shape",
        )
    selected = None if parameters is None else [_find(graph, p, "parameter") for p in parameters]
    backward = BackwardPass(graph, _stop_values(graph, no_grad_set))
    return backward.run([value], [None], graph.inputs if selected is None else selected, explicit=selected is not None)


def graph_gradients(
    graph: Graph, targets: Any, inputs: Any, target_gradients: Any = None, no_grad_set: Iterable[Any] = ()
) -> Backward:
    """Return the graph extended with the gradients of the sum of all `targets` with respect to each of `inputs`.

    targets, inputs: a value or name, or a list of them; any shape, anywhere in the graph. target_gradients: the initial
    gradient of each target, a value of the graph of the target's dtype and shape, or None for ones. `.gradients` has an
    entry for each input, None if the targets do not depend on it. See `append_backward`.
    """
    ys = [_find(graph, v, "target") for v in _listed(targets)]
    xs = [_find(graph, v, "input") for v in _listed(inputs)]
    starts = [None] * len(ys) if target_gradients is None else _listed(target_gradients)
    if len(starts) != len(ys):
        raise InvalidArgumentError(
            op="gradients",
            what="the number of target gradients differs from that of targets",
            found=f"{len(starts)} for {len(ys)} targets",
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
    return BackwardPass(graph, _stop_values(graph, no_grad_set)).run(ys, seeds, xs, explicit=True)


def _listed(values: Any) -> list[Any]:
    return list(values) if isinstance(values, (list, tuple)) else [values]


def _find(graph: Graph, query: Any, role: str) -> Value:
    """Return a value of the graph, looked up by itself or by name. Raises NotFoundError with similar names."""
    checked_graph(graph, "append_backward")
    name = query if isinstance(query, str) else getattr(query, "name", None)
    for value in graph.values():
        if value is query or (isinstance(query, str) and value.name == name):
            return value
    near = difflib.get_close_matches(str(name), [v.name for v in graph.values()], 3)
    if isinstance(query, Value):
        query, near = f"{query!r} of another graph", near[:1]
    raise NotFoundError(
        what=f"graph {graph.name!r} has no such {role}",
        found=query,
        do=f"did you mean {', '.join(near)}?" if near else "print the graph to see them",
    )


def _stop_values(graph: Graph, no_grad_set: Iterable[Any]) -> list[Value]:
    return [_find(graph, v, "value of no_grad_set") for v in no_grad_set]
