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
from ..compiler.loops.buffers import Buffer
from ..compiler.loops.plans import LoopPlan
from ..compiler.target import Target
from ..core import flags
from ..lite.compiled.partition_plans import PartitionPlanner
from ..lite.interpreter import Interpreter
from ..lite.runtime.subgraph import Subgraph
from .identifiers import unique
from .size_bounds import Bounds, SizeParameter, check_used, unknown_sizes
from .sized_plans import SizedPlan, SizedPlans
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


class SignaturePlan(NamedTuple):
    """A signature of a model. key: its name in the model, empty without one; function: the name as a C identifier;
    sizes: what a run decides; plans: one for each combination of sizes, the last one's first, and for each level of
    processors; numbers: which combinations these are, as some are not shapes of the model; reported: by position of an
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
        taken, used, unknown = {"reset", "state", "status", "arena"}, set[str](), set[str]()
        signatures = []
        with cross_compiling(target) as recorder:
            planner = PartitionPlanner(f"aot {target.name}", background=False)
            for key, index in _signatures(interpreter):
                names = _names(interpreter, key, interpreter._subgraphs[index], "inputs")
                sized = SizedPlans(interpreter, index, names, planner, state)
                sized.plan(bounds)
                unknown |= unknown_sizes(sized.facts)
                used |= sized.used | {p.name for p in sized.parameters}
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
        check_used(bounds, used, unknown)
    return ModelPlan(target, recorder.kernels, tuple(signatures), tuple(state.fields), digest)


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
