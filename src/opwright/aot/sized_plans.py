"""The plans of a signature for all sizes and numbers that a run decides.

Lives here: `SizedPlan`, `SizedPlans`.
Not here: the signatures of a model (model_plans.py), bounds (size_bounds.py), shapes that follow from numbers
(run_sizes.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ..compiler.kernels import NoKernel
from ..compiler.loops.buffers import Buffer
from ..compiler.loops.fusion import fused
from ..compiler.loops.planner import plan_of
from ..compiler.loops.plans import LoopPlan
from ..core.errors import OpError, UnimplementedError
from ..lite.compiled.counted_rows import RunNumber
from ..lite.compiled.partition_plans import PartitionPlanner
from ..lite.compiled.whole_graphs import whole_graph
from ..lite.interpreter import Interpreter
from ..lite.runtime.subgraph import Subgraph
from ..lite.runtime.tensor import Tensor
from .identifiers import unique
from .run_sizes import COUNTED, LOOPS, deciding_nodes, is_unbounded, prepare_decided, with_elements
from .size_bounds import (
    Bounds,
    InputFacts,
    SizeParameter,
    beginning,
    bound_name,
    check_bounded,
    check_count,
    counter_of,
    elements_in,
    parameters_of,
    sizes_in,
    with_sizes,
)
from .state_fields import StateFields


class SizedPlan(NamedTuple):
    """The plan of a signature for inputs of some sizes. inputs, outputs: buffers of the signature's tensors; state: the
    buffer and the index in `ModelPlan.state` of each variable; read: indices of variables whose value before the run
    matters; written: of variables that the run assigns; counts: memory of the numbers that nodes decide, None of those
    without elements to count."""

    plan: LoopPlan
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    state: tuple[tuple[Buffer, int], ...]
    read: frozenset[int]
    written: frozenset[int]
    counts: tuple[Buffer | None, ...] = ()


class SizedPlans:
    """The plans of a signature for all of its sizes. index: of the subgraph; names: of the inputs.

    subgraph, tensors: the inputs' ones; identifiers, facts: of the inputs; taken: identifiers of the signature,
    which the example declares arrays by; parameters, plans, numbers, reported: as of `SignaturePlan`
    """

    def __init__(
        self, interpreter: Interpreter, index: int, names: Sequence[str], planner: PartitionPlanner, state: StateFields
    ) -> None:
        self._interpreter, self._index, self._planner, self._state = interpreter, index, planner, state
        self.subgraph = interpreter._subgraphs[index]
        self.tensors = [self.subgraph.tensors[i] for i in self.subgraph.inputs]
        self.names = names
        self.taken: set[str] = set()
        self.identifiers = [unique(name, self.taken) for name in self.names]
        self._shapes = [t.shape for t in self.tensors]
        self._most: dict[int, int] = {}  # the user's bounds, by tensor whose shape a run decides
        self._unbounded: dict[int, str] = {}  # names of nodes that need such bounds, by tensor
        self.facts = [_facts_of(t, name) for t, name in zip(self.tensors, self.names)]
        self.parameters: list[SizeParameter] = []
        self.used: set[str] = set()  # names of bounds of numbers that nodes decide
        self.plans: list[SizedPlan] = []
        self.numbers: list[int] = []
        self.reported: dict[int, int] = {}

    def plan(self, bounds: Bounds) -> None:
        """Plan for each combination of sizes. Raises UnimplementedError, InvalidArgumentError; if the model has none of
        the combinations, its own error."""
        own = parameters_of(bounds, self.facts, self.taken)
        tensors = self.subgraph.tensors
        self._most = {t.index: bounds[name][1] for t in tensors if (name := bound_name(t.name)) in bounds}
        decided = self._decided(own)
        cells = {tensor: cell for cell, tensor in enumerate(decided)}
        read = [t for t, most in decided.items() if most is not None]
        for t in decided:
            if t in self._unbounded:
                check_bounded(bounds, tensors[t].name, self._unbounded[t])
        self.used |= {name for t in decided if (name := bound_name(tensors[t].name)) in bounds}
        counters = [counter_of(bounds, tensors[t].name, decided[t] or 0, cells[t], self.taken) for t in read]
        self.reported = {i: cells[t] for i, t in enumerate(self.subgraph.outputs) if t in cells and t not in read}
        parameters = check_count([*own, *counters])
        refusal: OpError | None = None
        planned: list[tuple[int, ...]] = []
        for number, sizes in enumerate(sizes_in(parameters)):
            numbers: dict[int, int | None] = dict.fromkeys(decided)
            numbers |= dict(zip(read, sizes[len(own) :]))
            try:
                most = self._prepare(own, sizes, numbers)
            except OpError as error:
                if not any(p.element for p in own) and not counters:
                    raise
                refusal = refusal or error
                continue
            if any((numbers[t] or 0) > n for t, n in most.items()):
                continue  # more than there are elements to count
            decisions = {t: RunNumber(n, most[t]) for t, n in numbers.items() if t in most}  # others have known shapes
            self.plans.append(_planned(self._planner, self.subgraph, self._state, decisions, numbers))
            self.numbers.append(number)
            planned.append(sizes)
        if not self.plans and refusal is not None:
            raise refusal
        self.parameters = beginning(parameters, planned, [self._unbounded.get(t) in LOOPS for t in read])
        if counters and (layers := self._state.updated_early):
            raise UnimplementedError(
                op="aot.build",
                what="shapes follow from numbers that a run decides, in a model with layers that keep their state",
                found=", ".join(p.name for p in counters) + " and " + ", ".join(layers),
                do="a model for each of both",
            )

    def _decided(self, own: Sequence[SizeParameter]) -> dict[int, int | None]:
        """Return the tensors whose shapes follow from numbers that nodes decide: the most there can be, or None of rows
        that no node reads."""
        decided: dict[int, int | None] = {}
        for sizes in sizes_in(own):
            numbers: dict[int, int | None] = {}
            most: dict[int, int] = {}
            try:
                self._prepare(own, sizes, numbers)
                while found := {t: n for t, n in deciding_nodes(self.subgraph).items() if t not in numbers}:
                    self._unbounded |= {t: n.name for t, n in found.items() if is_unbounded(n)}
                    numbers |= dict.fromkeys(found)
                    most = self._prepare(own, sizes, numbers)
            except OpError:
                continue  # `plan` reports it if there are no other sizes
            for t in most:
                decided[t] = max(decided.get(t) or 0, most[t]) if self._is_read(t) else None
        return decided

    def _is_read(self, tensor: int) -> bool:
        """Return whether shapes of plans depend on the number: all but those of counted rows that no node reads."""
        nodes = self.subgraph.execution_plan
        return any(
            any(x is not None and x.index == tensor for x in node.tensors_in)
            or (node.name not in COUNTED and any(y.index == tensor for y in node.tensors_out))
            for node in nodes
        )

    def _prepare(
        self, own: Sequence[SizeParameter], sizes: Sequence[int], numbers: Mapping[int, int | None]
    ) -> dict[int, int]:
        """Prepare the nodes for some sizes; return the most of the numbers that nodes decide."""
        with_elements(self.tensors, elements_in(own, sizes))
        for t, shape in zip(self.tensors, with_sizes(self._shapes, own, sizes)):
            if shape != t.shape:
                self._interpreter._resize(t.index, shape, False, self._index)
        self._interpreter._allocate(self._index)
        if not numbers and not any(p.element for p in own):
            return {}
        return prepare_decided(self.subgraph, numbers, self._most)


def _facts_of(tensor: Tensor, name: str) -> InputFacts:
    shape = tensor.shape if tensor.signature is None else tensor.signature
    is_list = not tensor.is_object and tensor.dtype.is_integer and min(shape, default=0) >= 0
    return InputFacts(name, shape, math.prod(shape) if is_list else 0)


def _planned(
    planner: PartitionPlanner,
    subgraph: Subgraph,
    state: StateFields,
    numbers: Mapping[int, RunNumber],
    cells: Iterable[int],
) -> SizedPlan:
    """Return the plan of a prepared subgraph. numbers: as of `whole_graph`; cells: tensors of numbers of any plan."""
    whole = whole_graph(planner, subgraph, numbers)
    after, apart = fused(whole.graph)
    try:
        plan = plan_of(after, parts_of=apart)
    except NoKernel as why:
        reasons = {" + ".join(op.origin): reason for op, reason in why.ops.items()}
        raise UnimplementedError(
            op="aot.build", what="operations have no kernel for this target", found=reasons or str(why)
        ) from None
    plan.pack()
    state.initialise(subgraph)
    count = len(subgraph.inputs)
    memory = plan.graph.inputs[count:]
    indices = [state.index(v, b) for v, b in zip(whole.variables, memory)]
    return SizedPlan(
        plan,
        plan.graph.inputs[:count],
        plan.graph.outputs[: len(subgraph.outputs)],
        tuple(zip(memory, indices)),
        frozenset(i for v, i in zip(whole.variables, indices) if v in whole.read),
        frozenset(i for v, i in zip(whole.variables, indices) if v in whole.written),
        tuple(whole.counts.get(t) for t in cells),
    )
