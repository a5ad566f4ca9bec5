"""The result of differentiating a graph: the new graph, and the map from its values to their gradients.

Lives here: `Backward`, `RowsGradient`.  Not here: differentiation (backward.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..core.forks import cached_property
from ..core.specs import TensorSpec
from ..graph import Graph, Node, Value
from ..ops.indexed_slices import IndexedSlices
from ..ops.var_types import of_graph
from .graphs import run_graph
from .scope import Scope, scope_or_global
from .variable import EMPTY, ScopeVariable


class RowsGradient(NamedTuple):
    """A gradient that is rows of a table: three values of the graph. kind: "rows".

    name: `<variable>@GRAD`; values: [n, ...]; indices: [n]; dense_shape: the table's shape as a vector, or None.
    spec: of the table.
    """

    name: str
    values: Value
    indices: Value
    dense_shape: Value | None
    spec: TensorSpec
    kind: str = "rows"

    @property
    def parts(self) -> tuple[Value, ...]:
        """Return the values that it consists of, in the order of the graph's outputs."""
        return tuple(v for v in (self.values, self.indices, self.dense_shape) if v is not None)


Gradient = Value | RowsGradient


class _Links(Mapping[Any, Any]):
    """Gradients by value or by its name; names are looked up as a whole, never parsed."""

    def __init__(self, links: Mapping[str, Gradient], graphs: Sequence[Graph]) -> None:
        self._links, self._values_of_graphs = links, {v for g in graphs for v in g.values()}

    def __getitem__(self, key: Any) -> Value | RowsGradient:
        if isinstance(key, str):
            return self._links[key]
        if key not in self._values_of_graphs:
            raise KeyError(f"{key!r} is a value of another graph")
        return self._links[key.name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._links)

    def __len__(self) -> int:
        return len(self._links)

    def __repr__(self) -> str:
        return f"{{{', '.join(f'{k}: {g.name}' for k, g in self._links.items())}}}"


class Backward:
    """A graph with gradients.

    graph: the forward nodes, then those of the gradients. forward: the original graph; its values have the same names
    in `graph`. targets: the loss or the targets, by name. gradient_of: the gradient of each value that has one, by the
    value, of either graph, or its name: a Value, or a RowsGradient. value_of: the inverse, by names. no_grad: names of
    the values at which differentiation stops: those of the no_grad_set, results of operators such as StopGradient, and
    results of participating nodes that no path to the targets reads.
    """

    def __init__(
        self,
        forward: Graph,
        graph: Graph,
        targets: Sequence[str],
        sources: Sequence[str],
        links: Mapping[str, Gradient],
        slots: Mapping[str, Mapping[str, Any]],
        no_grad: frozenset[str],
    ) -> None:
        self.forward, self.graph, self.targets, self.no_grad = forward, graph, tuple(targets), no_grad
        self.gradient_of: Mapping[Any, Any] = _Links(links, (forward, graph))
        self.value_of: dict[str, str] = {g.name: name for name, g in links.items()}
        self._sources, self._slots = tuple(sources), slots
        self._values = {v.name: v for v in graph.values()}

    @property
    def pairs(self) -> tuple[tuple[Value, Gradient], ...]:
        """Return (parameter, its gradient) for each parameter that has one, in the requested order."""
        return tuple(
            (self._values[n], self.gradient_of[n]) for n in dict.fromkeys(self._sources) if n in self.gradient_of
        )

    @property
    def gradients(self) -> tuple[Gradient | None, ...]:
        """Return the gradient of each requested parameter or input, None if it has none."""
        return tuple(self.gradient_of.get(n) for n in self._sources)

    def run(self, scope: Scope | None = None, place: Any = None) -> list[ScopeVariable]:
        """Run the graph on the variables of a scope, as `run_graph`; gradients that are rows become variables too.

        Returns the variables of the gradients, in the order of `pairs`.
        """
        scope = scope_or_global(scope)
        run_graph(self.graph, scope, place)
        variables = []
        for _, grad in self.pairs:
            if isinstance(grad, RowsGradient):
                parts = [scope.find_var(v.name).value for v in grad.parts]  # type: ignore[union-attr]
                (scope.find_var(grad.name) or scope.var(grad.name)).set(IndexedSlices(*parts))
            variable = scope.find_var(grad.name)
            assert variable is not None
            variables.append(variable)
        return variables

    @cached_property
    def kinds(self) -> dict[str, str]:
        """Return the kind of every value by name (ops/var_types.py); gradients that are rows replace their parts."""
        result = of_graph(self.graph)
        for grad in map(self.gradient_of.__getitem__, self.gradient_of):
            if isinstance(grad, RowsGradient):
                for part in grad.parts:
                    result.pop(part.name, None)
                result[grad.name] = grad.kind
        return result

    def input_gradients(self, node: Node | str) -> dict[str, Any]:
        """Return the contribution of a forward node to the gradient of each of its inputs: a name, or @EMPTY@.

        A repeated input has a list with an entry for each member. Raises KeyError for a node that is not in the graph.
        """
        forward = self.forward.find(node if isinstance(node, str) else node.name)
        slots = self._slots.get(forward.name)
        if slots is not None:
            return dict(slots)
        return {
            declared.name: [EMPTY] * len(operand) if isinstance(operand, tuple) else EMPTY
            for declared, operand in zip(forward.op.inputs, forward.inputs)
        }

    def __repr__(self) -> str:
        pairs = ", ".join(f"{p.name}: {g.name}" for p, g in self.pairs)
        return f"<Backward of {', '.join(self.targets)} in {self.graph.name}: {pairs}>"


def flat_gradient(grad: Any) -> list[Any]:
    """Return the tensors of a gradient during recording; for rows: values, indices and dense shape."""
    if isinstance(grad, IndexedSlices):
        return [t for t in (grad.values, grad.indices, grad.dense_shape) if t is not None]
    return [grad]


def graph_gradient(grad: Any) -> Gradient:
    """Return a recorded gradient as values of the graph."""
    if not isinstance(grad, IndexedSlices):
        value: Value = grad.value_in_graph
        return value
    values, indices = grad.values.value_in_graph, grad.indices.value_in_graph
    shape = None if grad.dense_shape is None else grad.dense_shape.value_in_graph
    name = values.name.removesuffix(".values")
    return RowsGradient(name, values, indices, shape, TensorSpec(grad.shape, grad.dtype))
