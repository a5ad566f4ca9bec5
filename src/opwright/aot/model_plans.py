"""The plan of a whole model for a target, and the kernels that it uses.

Lives here: `ModelPlan`, `plan_model`, `TensorDescription`.
Not here: lowering and planning (lite/compiled/, compiler/loops/), code (modules.py).
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

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
from ..lite.interpreter import Interpreter

_WORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl concept const constexpr
continue decltype default delete do double dynamic_cast else enum explicit export extern false float for friend goto if
inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast struct switch template
this thread_local throw true try typedef typeid typename typeof union unsigned using virtual void volatile wchar_t while
xor xor_eq
arena argc argv inputs main memory outputs read_file state status i abs exp fabs log pow printf sin sqrt
"""
RESERVED = frozenset(_WORDS.split())
"""Words that identifiers cannot be: keywords of C and C++, and names in the example and of C functions."""


class TensorDescription(NamedTuple):
    """An input or output of a library.

    identifier: its name in C; name: in the model; buffer: its memory in the plan; scale, zero_point: of quantized
    elements, otherwise None; initial: each byte of a tensor of the state before the first run
    """

    identifier: str
    name: str
    shape: tuple[int, ...]
    dtype: str
    buffer: Buffer
    scale: float | None
    zero_point: int | None
    initial: int = 0

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.buffer.size * self.buffer.dtype.size


class ModelPlan(NamedTuple):
    """A model planned for a target. kernels: by the addresses of the plan's steps; state: tensors that runs update,
    whose bytes are `initial` at first; digest: of the model's bytes."""

    target: Target
    plan: LoopPlan
    kernels: dict[int, RecordedKernel]
    inputs: tuple[TensorDescription, ...]
    outputs: tuple[TensorDescription, ...]
    state: tuple[TensorDescription, ...]
    digest: str


def plan_model(content: bytes, target: Target, custom_ops: Iterable[Any] = ()) -> ModelPlan:
    """Plan a model for a target.

    content: the bytes of a .tflite file; custom_ops: as of `lite.Interpreter`. raises UnimplementedError for nodes
    without machine code, resources and constant outputs, by name
    """
    with flags.override(compiled=False), _prepared(content, custom_ops) as interpreter:
        (subgraph, *_) = interpreter._subgraphs
        names = _names(interpreter)
        with cross_compiling(target) as recorder:
            graph = PartitionPlanner(f"aot {target.name}", background=False).whole_graph(subgraph)
            variables = [
                i for t in subgraph.tensors if t.is_variable and f"t{(i := t.index)}" in _names_of(graph.inputs)
            ]
            _check_outside(graph.inputs, [*subgraph.inputs, *variables], "resources")
            _check_outside(graph.outputs, subgraph.outputs, "outputs that are constants or resources")
            after, apart = fused(graph)
            try:
                plan = plan_of(after, parts_of=apart)
            except NoKernel as why:
                reasons = {" + ".join(op.origin): reason for op, reason in why.ops.items()}
                raise UnimplementedError(
                    op="aot.build", what="operations have no kernel for this target", found=reasons or str(why)
                ) from None
            plan.pack()
        taken: set[str] = set()  # identifiers of inputs and outputs together: the example declares arrays by them
        count = len(subgraph.inputs)
        inputs, outputs, state = (
            tuple(
                _describe(b, subgraph.tensors[i], names.get(i, f"state_{i}"), taken) for b, i in zip(buffers, indices)
            )
            for buffers, indices in (
                (plan.graph.inputs[:count], subgraph.inputs),
                (plan.graph.outputs, subgraph.outputs),
                (plan.graph.inputs[count:], variables),
            )
        )
        state = tuple(t._replace(initial=_initial(subgraph.tensors[i])) for t, i in zip(state, variables))
    return ModelPlan(target, plan, recorder.kernels, inputs, outputs, state, hashlib.sha256(content).hexdigest())


@contextlib.contextmanager
def _prepared(content: bytes, custom_ops: Iterable[Any]) -> Iterator[Interpreter]:
    interpreter = Interpreter(model_content=content, custom_ops=[*custom_ops])
    try:
        interpreter.allocate_tensors()
        yield interpreter
    finally:
        interpreter.close()


def _names_of(buffers: Iterable[Buffer]) -> list[str]:
    return [b.name for b in buffers]


def _check_outside(buffers: tuple[Buffer, ...], tensors: Any, what: str) -> None:
    if _names_of(buffers) != [f"t{i}" for i in tensors]:
        raise UnimplementedError(
            op="aot.build",
            what=f"this model has {what}, which libraries do not support yet",
            found=", ".join(_names_of(buffers)),
            wanted=", ".join(f"t{i}" for i in tensors),
        )


def _names(interpreter: Interpreter) -> dict[int, str]:
    """Return names of inputs and outputs by tensor: those of the signature, where the model has exactly one."""
    details = {d["index"]: d["name"] for d in (*interpreter.get_input_details(), *interpreter.get_output_details())}
    if len(interpreter.get_signature_list()) == 1:
        runner = interpreter.get_signature_runner()
        for rows in (runner.get_input_details(), runner.get_output_details()):
            details |= {d["index"]: name for name, d in rows.items()}
    return details


def _describe(buffer: Buffer, tensor: Any, name: str, taken: set[str]) -> TensorDescription:
    q = tensor.quantization
    scalar = q is not None and len(q.scale) == 1
    unique = stem = identifier(name)
    number = 1
    while unique in taken:
        number += 1
        unique = f"{stem}_{number}"
    taken.add(unique)
    return TensorDescription(
        unique,
        name,
        tuple(tensor.shape),
        buffer.dtype.name,
        buffer,
        float(q.scale[0]) if scalar else None,
        int(q.zero_point[0]) if scalar else None,
    )


def _initial(tensor: Any) -> int:
    """Return the byte that a variable tensor consists of before the first run: zero, or its zero point."""
    values = set(np.ascontiguousarray(tensor.array).view(np.uint8).reshape(-1).tolist())
    if len(values) > 1:
        raise UnimplementedError(op="aot.build", what="a state begins with different elements", found=repr(tensor))
    return values.pop() if values else 0


def identifier(name: str) -> str:
    """Return a C identifier for a name of a model or file: lower case, other characters as underscores."""
    text = re.sub(r"[^0-9a-z]+", "_", name.lower()).strip("_")[:60]
    return text if text and not text[0].isdigit() and text not in RESERVED else f"t_{text}"
