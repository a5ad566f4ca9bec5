"""Where the bytes and the time of a library go: code by kernel and operator, weights, the arena over time, steps.

Lives here: `BuildReport` and its rows, `report_of`. Not here: printing it (tools/library_report.py), the times of steps
(step_times.py).

A kernel that several operators use is divided among them in proportion to their steps. Kernels that LLVM inlined into
the function that runs the steps count as that function's code, and so do kernels in object files whose symbols have no
sizes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..compiler.loops.buffers import Buffer
from ..compiler.loops.plans import Address, KernelStep, LoopPlan
from ..lite.format import Model
from ..lite.format.versions import op_name
from .memory_layouts import MemoryLayout, constant_of
from .model_plans import ModelPlan
from .modules import symbols_of
from .object_symbols import function_sizes


class KernelRow(NamedTuple):
    """A kernel. name: its family and constants; code: bytes, None if unknown; steps: that call it; operators: codes of
    the operators whose steps these are."""

    name: str
    code: int | None
    steps: int
    operators: tuple[str, ...]


class OperatorRow(NamedTuple):
    """All operators of one code, or of several that are computed together. nodes: how many; steps; code: bytes of
    kernels, weights: bytes of constants that are theirs; seconds: of one run, None if not measured."""

    operators: str
    nodes: int
    steps: int
    code: int
    weights: int
    seconds: float | None


class WeightRow(NamedTuple):
    """A stored constant. nodes: that read it; tensors: names of their constant inputs; shared: whether several nodes
    do."""

    nodes: tuple[str, ...]
    tensors: tuple[str, ...]
    nbytes: int


class ArenaRow(NamedTuple):
    """Memory while an operation runs. live: bytes of tensors that are needed then or later; nodes: of the operation."""

    position: int
    nodes: tuple[str, ...]
    live: int


class StepRow(NamedTuple):
    """A call of a kernel. nodes: that it computes; seconds: the least of several runs, None if not measured."""

    signature: str
    nodes: tuple[str, ...]
    kernel: str
    items: int
    seconds: float | None


class BuildReport(NamedTuple):
    """The parts of a library. Sizes in bytes; other: code outside of kernels and the headers of the object file."""

    name: str
    target: str
    code: int
    other: int
    weights: int
    arena: int
    state: int
    kernels: tuple[KernelRow, ...]
    operators: tuple[OperatorRow, ...]
    constants: tuple[WeightRow, ...]
    memory: tuple[ArenaRow, ...]
    steps: tuple[StepRow, ...]


def report_of(
    model: ModelPlan,
    name: str,
    layout: MemoryLayout,
    code: bytes,
    content: bytes,
    seconds: Mapping[int, float] | None = None,
) -> BuildReport:
    """Return the report of a built library.

    code: its object file; content: of the model; seconds: of steps by their number, over all plans in order
    """
    sizes, symbols = function_sizes(code), symbols_of(model, name)
    steps = [
        (s.key or s.function, step) for s in model.signatures for planned in s.plans for step in planned.plan.steps
    ]
    called = [step for _, step in steps if not step.covers]
    by_kernel: dict[int, list[KernelStep]] = defaultdict(list)
    for step in called:
        by_kernel[step.code.address].append(step)
    kernels = [
        KernelRow(calls[0].code.name, sizes.get(symbols[address]), len(calls), tuple(dict.fromkeys(map(_group, calls))))
        for address, calls in by_kernel.items()
    ]
    own = sum(row.code or 0 for row in kernels)
    rows = [
        StepRow(key, _nodes(step), step.code.name, step.items, None if seconds is None else seconds.get(i))
        for i, (key, step) in enumerate(steps)
        if not step.covers
    ]
    total = len(code) - (0 if layout.apart else layout.weights)
    constants = _constants(called, layout, _tensor_names(content))
    return BuildReport(
        name,
        model.target.name,
        total,
        total - own,
        layout.weights,
        max(layout.arena, 1),
        layout.state[-1],
        tuple(sorted(kernels, key=lambda row: -(row.code or 0))),
        _operators(by_kernel, [_size(sizes, symbols[a]) or 0 for a in by_kernel], constants, rows),
        tuple(sorted((row for row, _ in constants), key=lambda row: -row.nbytes)),
        tuple(_memory(model.plan)),
        tuple(rows),
    )


def _size(sizes: Mapping[str, int], symbol: str) -> int | None:
    """Return the bytes of a kernel and of its specialized forms, None if there are no such functions."""
    parts = [size for name, size in sizes.items() if name == symbol or name.startswith(f"{symbol}.")]
    return sum(parts) if parts else None


def _nodes(step: KernelStep) -> tuple[str, ...]:
    return step.op.origin if step.op is not None else ()


def _group(step: KernelStep) -> str:
    """Return the operator codes that a step computes."""
    return " + ".join(dict.fromkeys(node.rpartition(" ")[0] or node for node in _nodes(step))) or "plan"


def _operators(
    by_kernel: Mapping[int, Sequence[KernelStep]],
    sizes: Sequence[int],
    constants: Sequence[tuple[WeightRow, str]],
    rows: Sequence[StepRow],
) -> tuple[OperatorRow, ...]:
    nodes: dict[str, set[str]] = defaultdict(set)
    steps: Counter[str] = Counter()
    code: Counter[str] = Counter()
    for calls, size in zip(by_kernel.values(), sizes):
        groups = Counter(map(_group, calls))
        left = size
        for i, (group, count) in enumerate(groups.items()):
            share = left if i == len(groups) - 1 else size * count // len(calls)  # shares sum to the size
            code[group] += share
            left -= share
        steps += groups
        for step in calls:
            nodes[_group(step)] |= set(_nodes(step))
    weights: Counter[str] = Counter()
    for row, group in constants:
        weights[group] += row.nbytes
    seconds: dict[str, float] = defaultdict(float)
    for step_row in rows:
        group = " + ".join(dict.fromkeys(n.rpartition(" ")[0] or n for n in step_row.nodes)) or "plan"
        seconds[group] += step_row.seconds or 0.0
    timed = any(row.seconds is not None for row in rows)
    result = [
        OperatorRow(g, len(nodes[g]), steps[g], code[g], weights[g], seconds[g] if timed else None) for g in steps
    ]
    return tuple(sorted(result, key=lambda row: (-(row.seconds or 0.0), -row.code - row.weights)))


def _constants(
    steps: Iterable[KernelStep], layout: MemoryLayout, names: Mapping[str, tuple[str, ...]]
) -> list[tuple[WeightRow, str]]:
    """Return the stored constants, each with the operators that it counts for: the first that read it."""
    readers: dict[int, list[KernelStep]] = defaultdict(list)
    for step in steps:
        for w in step.words:
            array = constant_of(w.of) if isinstance(w, Address) else None
            if array is not None:
                readers[layout.places[id(array)]].append(step)
    rows = []
    for array in layout.arrays:
        of = readers.get(layout.places[id(array)], [])
        nodes = tuple(dict.fromkeys(node for step in of for node in _nodes(step)))
        tensors = tuple(dict.fromkeys(name for node in nodes for name in names.get(node, ())))
        rows.append((WeightRow(nodes, tensors, array.nbytes), _group(of[0]) if of else "state"))
    return rows


def _tensor_names(content: bytes) -> dict[str, tuple[str, ...]]:
    """Return the names of the constant inputs of each node, by the node's name in plans; none of a model with several
    subgraphs, whose nodes have the same names."""
    model = Model.read(content)
    if len(model.subgraphs) != 1:
        return {}
    (subgraph,) = model.subgraphs
    result = {}
    for i, operator in enumerate(subgraph.operators):
        code = model.operator_codes[operator.opcode_index]
        inputs = [subgraph.tensors[t] for t in operator.inputs if t >= 0]
        constant = tuple(t.name or "" for t in inputs if model.tensor_data(t) is not None)
        result[f"{code.custom_code or op_name(code)} {i}"] = constant
    return result


def _memory(plan: LoopPlan) -> Iterable[ArenaRow]:
    """Return the live bytes of the arena at each operation of a plan: the union of the places of live tensors."""
    spans: dict[int, list[int]] = {}
    for position, op in enumerate(plan.ops):
        for buffer in (op.output, *op.inputs):
            span = spans.setdefault(id(_root(buffer)), [position, position])
            span[1] = position
    places: list[tuple[int, int, int, int]] = []
    for buffer, offset in plan.places:
        span = spans.get(id(_root(buffer)), [])
        if span:
            places.append((span[0], span[1], offset, offset + buffer.size * buffer.dtype.size))
    for position, op in enumerate(plan.ops):
        live, end = 0, 0
        for start, stop in sorted((a, b) for first, last, a, b in places if first <= position <= last):
            live += max(0, stop - max(start, end))
            end = max(end, stop)
        yield ArenaRow(position, op.origin, live)


def _root(buffer: Any) -> Buffer:
    """Return the buffer whose memory a view uses."""
    while getattr(buffer, "of", None) is not None:
        buffer = buffer.of
    result: Buffer = buffer
    return result
