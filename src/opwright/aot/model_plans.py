"""The plan of a whole model for a target, and the kernels that it uses.

Lives here: `ModelPlan`, `plan_model`, `TensorDescription`.
Not here: lowering and planning (lite/compiled/, compiler/loops/), values of variables (state_fields.py), code
(modules.py).
"""

from __future__ import annotations

import contextlib
import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from ..compiler.cross_compilation import RecordedKernel, cross_compiling
from ..compiler.kernels import NoKernel
from ..compiler.loops.buffers import Buffer
from ..compiler.loops.fusion import fused
from ..compiler.loops.planner import plan_of
from ..compiler.loops.plans import LoopPlan
from ..compiler.target import Target
from ..core import flags
from ..core.errors import OpError, UnimplementedError
from ..lite.compiled.partition_plans import PartitionPlanner
from ..lite.compiled.whole_graphs import whole_graph
from ..lite.interpreter import Interpreter
from ..lite.runtime.subgraph import Subgraph
from ..lite.runtime.tensor import Tensor
from .identifiers import unique
from .run_sizes import counted_tensors, prepare_counted, with_elements
from .size_bounds import (
    Bounds,
    InputFacts,
    SizeParameter,
    check_count,
    check_used,
    counter_of,
    elements_in,
    parameters_of,
    sizes_in,
    unknown_sizes,
    with_sizes,
)
from .state_fields import StateField, StateFields

if TYPE_CHECKING:
    from .cpu_levels import CpuLevel


class TensorDescription(NamedTuple):
    """An input or output of a library.

    identifier: its name in C; name: in the model; buffer: its memory in the plan for the largest sizes; scale,
    zero_point: of quantized elements, otherwise None
    """

    identifier: str
    name: str
    shape: tuple[int, ...]
    dtype: str
    buffer: Buffer
    scale: float | None
    zero_point: int | None

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.buffer.size * self.buffer.dtype.size

    @property
    def alignment(self) -> int:
        """Alignment in bytes: of an element, of a part of complex ones, as C sees them."""
        return self.buffer.dtype.size // (2 if self.dtype.startswith("complex") else 1)


class SizedPlan(NamedTuple):
    """The plan of a signature for inputs of some sizes. inputs, outputs: buffers of the signature's tensors; state: the
    buffer and the index in `ModelPlan.state` of each variable; read: indices of variables whose value before the run
    matters; written: of variables that the run assigns; counts: memory of the numbers of rows that operators count,
    None of those without elements to count."""

    plan: LoopPlan
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    state: tuple[tuple[Buffer, int], ...]
    read: frozenset[int]
    written: frozenset[int]
    counts: tuple[Buffer | None, ...] = ()


class SignaturePlan(NamedTuple):
    """A signature of a model. key: its name in the model, empty without one; function: the name as a C identifier;
    sizes: what a run decides; plans: one for each combination of sizes, the last one's first, and for each level of
    processors; numbers: which combinations these are, as some are no shapes of the model; reported: by position of an
    output, the count that is its number of rows."""

    key: str
    function: str
    inputs: tuple[TensorDescription, ...]
    outputs: tuple[TensorDescription, ...]
    plans: tuple[SizedPlan, ...]
    sizes: tuple[SizeParameter, ...] = ()
    numbers: tuple[int, ...] = (0,)
    reported: Mapping[int, int] = MappingProxyType({})

    @property
    def varying(self) -> list[int]:
        """Positions of the outputs whose shapes depend on the sizes."""
        shapes = [[b.shape for b in p.outputs] for p in self.plans]
        return [i for i in range(len(self.outputs)) if i in self.reported or any(s[i] != shapes[0][i] for s in shapes)]

    @property
    def stated(self) -> list[SizeParameter]:
        """The sizes that the caller states with the inputs."""
        return [p for p in self.sizes if p.places]

    @property
    def counters(self) -> list[SizeParameter]:
        """The sizes that operators count."""
        return [p for p in self.sizes if p.counter is not None]

    @property
    def counts(self) -> int:
        """How many numbers of rows operators count."""
        return len(self.plans[0].counts)


class ModelPlan(NamedTuple):
    """A model planned for a target. kernels: by the addresses of the steps of plans; signatures: at least one; state:
    variables that runs update; digest: of the model's bytes; levels: of processors, lowest first, empty for one target;
    targets: of kernels by address, where there are levels."""

    target: Target
    kernels: dict[int, RecordedKernel]
    signatures: tuple[SignaturePlan, ...]
    state: tuple[StateField, ...]
    digest: str
    levels: tuple[CpuLevel, ...] = ()
    targets: Mapping[int, Target] = MappingProxyType({})

    @property
    def plans(self) -> list[SizedPlan]:
        """The plans of all signatures."""
        return [plan for signature in self.signatures for plan in signature.plans]

    def symbol(self, signature: SignaturePlan, name: str) -> str:
        """Return the C function of a signature of the library of this name: the only one is NAME_run."""
        return f"{name}_run" if len(self.signatures) == 1 else self.prefix(signature, name)

    def prefix(self, signature: SignaturePlan, name: str) -> str:
        """Return what the structures and sizes of a signature begin with."""
        return name if len(self.signatures) == 1 else f"{name}_{signature.function}"

    @property
    def plan(self) -> LoopPlan:
        """The first plan."""
        return self.plans[0].plan

    @property
    def inputs(self) -> tuple[TensorDescription, ...]:
        """Inputs of the first signature."""
        return self.signatures[0].inputs

    @property
    def outputs(self) -> tuple[TensorDescription, ...]:
        """Outputs of the first signature."""
        return self.signatures[0].outputs


def plan_model(
    content: bytes, target: Target, custom_ops: Iterable[Any] = (), bounds: Bounds = MappingProxyType({})
) -> ModelPlan:
    """Plan a model for a target.

    content: the bytes of a .tflite file; custom_ops: as of `lite.Interpreter`; bounds: least and most of unknown sizes,
    by name. raises UnimplementedError for nodes without machine code, by name; InvalidArgumentError for bounds that do
    not fit the model
    """
    with flags.override(compiled=False), _prepared(content, custom_ops) as interpreter:
        digest = hashlib.sha256(content).hexdigest()
        state = StateFields(digest)
        taken, unknown = {"reset", "state", "status", "arena"}, set[str]()
        signatures = []
        with cross_compiling(target) as recorder:
            planner = PartitionPlanner(f"aot {target.name}", background=False)
            for key, index in _signatures(interpreter):
                sized = _SizedPlans(interpreter, index, key, planner, state)
                sized.plan(bounds)
                unknown |= unknown_sizes(sized.facts)
                names = _names(interpreter, key, sized.subgraph, "outputs")
                tensors = [sized.subgraph.tensors[i] for i in sized.subgraph.outputs]
                plans = sized.plans
                signatures.append(
                    SignaturePlan(
                        key,
                        unique(key or "run", taken),
                        tuple(map(_describe, plans[-1].inputs, sized.tensors, sized.names, sized.identifiers)),
                        tuple(
                            _describe(b, t, name, unique(name, sized.taken))
                            for b, t, name in zip(_largest(plans), tensors, names)
                        ),
                        tuple(plans),
                        tuple(sized.parameters),
                        tuple(sized.numbers),
                        sized.reported,
                    )
                )
        check_used(bounds, [p for s in signatures for p in s.sizes], unknown)
    return ModelPlan(target, recorder.kernels, tuple(signatures), tuple(state.fields), digest)


class _SizedPlans:
    """The plans of a signature for all of its sizes.

    subgraph, tensors: the inputs' ones; names, identifiers, facts: of the inputs; taken: identifiers of the signature,
    which the example declares arrays by; parameters, plans, numbers, reported: as of `SignaturePlan`
    """

    def __init__(
        self, interpreter: Interpreter, index: int, key: str, planner: PartitionPlanner, state: StateFields
    ) -> None:
        self._interpreter, self._index, self._planner, self._state = interpreter, index, planner, state
        self.subgraph = interpreter._subgraphs[index]
        self.tensors = [self.subgraph.tensors[i] for i in self.subgraph.inputs]
        self.names = _names(interpreter, key, self.subgraph, "inputs")
        self.taken: set[str] = set()
        self.identifiers = [unique(name, self.taken) for name in self.names]
        self._shapes = [t.shape for t in self.tensors]
        self.facts = [_facts_of(t, name) for t, name in zip(self.tensors, self.names)]
        self.parameters: list[SizeParameter] = []
        self.plans: list[SizedPlan] = []
        self.numbers: list[int] = []
        self.reported: dict[int, int] = {}

    def plan(self, bounds: Bounds) -> None:
        """Plan for each combination of sizes. Raises UnimplementedError, InvalidArgumentError; if the model has none of
        the combinations, its own error."""
        own = parameters_of(bounds, self.facts, self.taken)
        counted = self._counted(own)
        tensors = self.subgraph.tensors
        cells = {tensor: cell for cell, tensor in enumerate(counted)}
        read = [t for t, rows in counted.items() if rows is not None]
        counters = [counter_of(bounds, tensors[t].name, counted[t] or 0, cells[t], self.taken) for t in read]
        self.reported = {i: cells[t] for i, t in enumerate(self.subgraph.outputs) if t in cells and t not in read}
        self.parameters = check_count([*own, *counters])
        refusal: OpError | None = None
        for number, sizes in enumerate(sizes_in(self.parameters)):
            rows: dict[int, int | None] = dict.fromkeys(counted)
            rows |= dict(zip(read, sizes[len(own) :]))
            try:
                most = self._prepare(own, sizes, rows)
            except OpError as error:
                if not any(p.element for p in own) and not counters:
                    raise
                refusal = refusal or error
                continue
            if any((rows[t] or 0) > n for t, n in most.items()):
                continue  # more than there are elements to count
            self.plans.append(_planned(self._planner, self.subgraph, self._state, rows))
            self.numbers.append(number)
        if not self.plans and refusal is not None:
            raise refusal
        if counters and self._state.fields:
            raise UnimplementedError(
                op="aot.build",
                what="operators read as many rows as a run counts, in a model with state",
                found=", ".join(p.name for p in counters),
                do="a signature for each of both",
            )

    def _counted(self, own: Sequence[SizeParameter]) -> dict[int, int | None]:
        """Return the tensors whose rows operators count: the most there can be, or None if no node reads them."""
        counted: dict[int, int | None] = {}
        for sizes in sizes_in(own):
            rows: dict[int, int | None] = {}
            most: dict[int, int] = {}
            try:
                self._prepare(own, sizes, rows)
                while found := {t: None for t in counted_tensors(self.subgraph) if t not in rows}:
                    rows |= found
                    most = self._prepare(own, sizes, rows)
            except OpError:
                continue  # `plan` reports it if there are no other sizes
            for t in most:
                is_read = any(
                    x is not None and x.index == t for n in self.subgraph.execution_plan for x in n.tensors_in
                )
                counted[t] = max(counted.get(t) or 0, most[t]) if is_read else None
        return counted

    def _prepare(
        self, own: Sequence[SizeParameter], sizes: Sequence[int], rows: Mapping[int, int | None]
    ) -> dict[int, int]:
        """Prepare the nodes for some sizes; return the most rows of counted tensors."""
        with_elements(self.tensors, elements_in(own, sizes))
        for t, shape in zip(self.tensors, with_sizes(self._shapes, own, sizes)):
            if shape != t.shape:
                self._interpreter._resize(t.index, shape, False, self._index)
        self._interpreter._allocate(self._index)
        if not rows and not any(p.element for p in own):
            return {}
        return prepare_counted(self.subgraph, rows)


def _facts_of(tensor: Tensor, name: str) -> InputFacts:
    shape = tensor.shape if tensor.signature is None else tensor.signature
    is_list = not tensor.is_object and tensor.dtype.is_integer and min(shape, default=0) >= 0
    return InputFacts(name, shape, math.prod(shape) if is_list else 0)


def _planned(
    planner: PartitionPlanner, subgraph: Subgraph, state: StateFields, rows: Mapping[int, int | None]
) -> SizedPlan:
    """Return the plan of a prepared subgraph. rows: as of `whole_graph`."""
    whole = whole_graph(planner, subgraph, rows)
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
        tuple(whole.counts.get(t) for t in rows),
    )


def _largest(plans: Sequence[SizedPlan]) -> list[Buffer]:
    """Return each output as the plan has it whose result is largest."""
    return [max(buffers, key=lambda b: b.size) for buffers in zip(*(p.outputs for p in plans))]


def _names(interpreter: Interpreter, key: str, subgraph: Subgraph, side: str) -> list[str]:
    """Return the names of the inputs or outputs of a signature, in the order of the subgraph."""
    indices = getattr(subgraph, side)
    names = {i: [subgraph.tensors[i].name] for i in indices}
    for entry in reversed(getattr(interpreter._signatures.get(key), side, None) or ()):
        names[int(entry.tensor_index)].append(entry.name)
    return [names[i].pop() if len(names[i]) > 1 else names[i][0] for i in indices]


def _signatures(interpreter: Interpreter) -> list[tuple[str, int]]:
    """Return the key and the subgraph of each signature; of a model without any, the first subgraph."""
    return [(key, int(d.subgraph_index)) for key, d in interpreter._signatures.items()] or [("", 0)]


@contextlib.contextmanager
def _prepared(content: bytes, custom_ops: Iterable[Any]) -> Iterator[Interpreter]:
    interpreter = Interpreter(model_content=content, custom_ops=[*custom_ops])
    try:
        interpreter.allocate_tensors()
        yield interpreter
    finally:
        interpreter.close()


def _describe(buffer: Buffer, tensor: Any, name: str, unique_name: str) -> TensorDescription:
    q = tensor.quantization
    scalar = q is not None and len(q.scale) == 1
    return TensorDescription(
        unique_name,
        name,
        buffer.shape,
        buffer.dtype.name,
        buffer,
        float(q.scale[0]) if scalar else None,
        int(q.zero_point[0]) if scalar else None,
    )
