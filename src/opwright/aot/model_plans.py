"""The plan of a whole model for a target, and the kernels that it uses.

Lives here: `ModelPlan`, `plan_model`, `TensorDescription`.
Not here: lowering and planning (lite/compiled/, compiler/loops/), values of variables (state_fields.py), code
(modules.py).
"""

from __future__ import annotations

import contextlib
import hashlib
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
from ..core.errors import UnimplementedError
from ..lite.compiled.partition_plans import PartitionPlanner
from ..lite.compiled.whole_graphs import whole_graph
from ..lite.interpreter import Interpreter
from ..lite.runtime.subgraph import Subgraph
from .identifiers import unique
from .size_bounds import Bounds, SizeParameter, check_used, parameters_of, sizes_in, unknown_sizes, with_sizes
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
    matters; written: of variables that the run assigns."""

    plan: LoopPlan
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    state: tuple[tuple[Buffer, int], ...]
    read: frozenset[int]
    written: frozenset[int]


class SignaturePlan(NamedTuple):
    """A signature of a model. key: its name in the model, empty without one; function: the name as a C identifier;
    sizes: what the caller states with the inputs; plans: one for each combination of sizes, the last one's first, and
    for each level of processors."""

    key: str
    function: str
    inputs: tuple[TensorDescription, ...]
    outputs: tuple[TensorDescription, ...]
    plans: tuple[SizedPlan, ...]
    sizes: tuple[SizeParameter, ...] = ()

    @property
    def varying(self) -> list[int]:
        """Positions of the outputs whose shapes depend on the sizes."""
        shapes = [[b.shape for b in p.outputs] for p in self.plans]
        return [i for i in range(len(self.outputs)) if any(s[i] != shapes[0][i] for s in shapes)]


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
                subgraph = interpreter._subgraphs[index]
                names = _names(interpreter, key, subgraph, "inputs")
                tensors = [subgraph.tensors[i] for i in subgraph.inputs]
                shapes, unknown_shapes = [t.shape for t in tensors], [t.signature for t in tensors]
                unknown |= unknown_sizes(names, unknown_shapes)
                identifiers: set[str] = set()  # of a signature together: the example declares arrays by them
                inputs = [unique(name, identifiers) for name in names]
                parameters = parameters_of(bounds, names, unknown_shapes, identifiers)
                plans = []
                for sizes in sizes_in(parameters):
                    for t, shape in zip(tensors, with_sizes(shapes, parameters, sizes)):
                        if shape != t.shape:
                            interpreter._resize(t.index, shape, False, index)
                    interpreter._allocate(index)
                    plans.append(_planned(planner, subgraph, state))
                outputs = _names(interpreter, key, subgraph, "outputs")
                signatures.append(
                    SignaturePlan(
                        key,
                        unique(key or "run", taken),
                        tuple(map(_describe, plans[-1].inputs, tensors, names, inputs)),
                        tuple(
                            _describe(b, subgraph.tensors[i], name, unique(name, identifiers))
                            for b, i, name in zip(_largest(plans), subgraph.outputs, outputs)
                        ),
                        tuple(plans),
                        tuple(parameters),
                    )
                )
        check_used(bounds, [p for s in signatures for p in s.sizes], unknown)
    return ModelPlan(target, recorder.kernels, tuple(signatures), tuple(state.fields), digest)


def _planned(planner: PartitionPlanner, subgraph: Subgraph, state: StateFields) -> SizedPlan:
    """Return the plan of a prepared subgraph."""
    whole = whole_graph(planner, subgraph)
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
