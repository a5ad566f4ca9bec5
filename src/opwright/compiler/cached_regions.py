"""Regions of functions in the plan cache, so that a later process partitions and plans nothing.

Lives here: `key_of`, `find`, `save`.
Not here: the cache (plan_cache.py, plan_serialization.py), partitioning (partitioner.py), who asks (native_plan.py).

A graph's key is its text with sizes, constants by digest, users' kernels by digest, and the switches that decide
results. A note says which nodes each region has; a process that finds it loads neither rules nor kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import flags
from ..core.files import digest
from ..core.lazy_imports import later
from ..graph import Graph, Node
from . import plan_cache
from .bound_plan import PlanImage
from .native.objects import items_offset
from .regions import CompiledGraph, CompiledRegion, Operands, UncompiledNode, replace_regions

if TYPE_CHECKING:
    from . import partitioner, plan_serialization
    from .kernels import array_binding
    from .loops.buffers import Buffer
    from .loops.plans import LoopPlan
else:
    array_binding = later(".kernels.array_binding", __package__)
    partitioner = later(".partitioner", __package__)
    plan_serialization = later(".plan_serialization", __package__)

Call = Callable[..., Callable[..., Any]]
"""Makes the function of a region, where the step that connects arrays is code at an address."""

_MOST_CONSTANTS = 64 << 20  # bytes of a graph whose regions are kept: digests take 1 ms a MiB
_CONNECTED = "connected"


def key_of(graph: Graph) -> str | None:
    """Return text that stands for a graph with all its sizes; None for one whose regions are not kept."""
    if not plan_cache.may_find():
        return None
    nodes = list(_nodes(graph))
    if sum(n.attrs["value"].nbytes for n in nodes if n.op.name == "Const") > _MOST_CONSTANTS:
        return None
    try:
        text = graph.to_text("", _stored)
    except TypeError:  # an attribute is a Python object
        return None
    codes = [partitioner.code_of(n) for n in nodes if not n.op.catalogue or getattr(n.op, "cpu_kernels", False)]
    return f"function {flags.fast_math} {flags.target} {items_offset()} {codes} {text}"


def _nodes(graph: Graph) -> Iterator[Node]:
    for node in graph.nodes:
        yield node
        for inner in node.subgraphs:
            yield from _nodes(inner)


def _stored(array: np.ndarray) -> str | None:
    return None if array.dtype.hasobject else digest(np.ascontiguousarray(array).tobytes())


def find(key: str, graph: Graph, call_of: Call) -> CompiledGraph | None:
    """Return a graph with its regions as they were kept; None where they were not."""
    cached = next(filter(None, map(plan_cache.find, plan_cache.keys_of(key))), None)
    if cached is None:
        return None
    connector = cached.helpers.get(_CONNECTED)
    return _restored(graph, cached.note, iter(cached.plans), _Constants(), lambda region: call_of(region, connector))


class _Constants:
    """The constants that regions read where they are, by number: -1, -2, ... in the order of the regions."""

    def __init__(self) -> None:
        self.arrays: dict[int, np.ndarray] = {}

    def add(self, region: CompiledRegion) -> None:
        """Number a region's."""
        for node in region.constants:
            self.arrays[-1 - len(self.arrays)] = np.ascontiguousarray(node.attrs["value"])


def _restored(
    graph: Graph, note: Any, plans: Iterator[PlanImage], constants: _Constants, call_of: Callable[[CompiledRegion], Any]
) -> CompiledGraph:
    operands = Operands(graph)
    nodes = [node for node in operands.nodes if node.op.name != "Const"]
    schedule: list[CompiledRegion | Node] = []
    for entry in note["schedule"]:
        if isinstance(entry, int):
            schedule.append(nodes[entry])
            continue
        work, *places = entry
        region = operands.region(graph.name, [nodes[place] for place in places], None, work)
        constants.add(region)
        schedule.append(region._replace(plan=next(plans).located(constants.arrays)))
    regions = [entry for entry in schedule if isinstance(entry, CompiledRegion)]
    uncompiled = [UncompiledNode(*row) for row in note["uncompiled"]]
    notes = iter(note["inner"])

    def within(inner: Graph) -> Graph:
        restored = _restored(inner, next(notes), plans, constants, call_of)
        regions.extend(restored.regions)
        uncompiled.extend(restored.uncompiled)
        return restored.graph

    return CompiledGraph(replace_regions(graph, operands, schedule, call_of, within), regions, uncompiled, note)


def save(key: str, compiled: CompiledGraph) -> None:
    """Keep the regions of a graph, whose plans are packed, for later processes."""
    constants = _Constants()
    for region in compiled.regions:
        constants.add(region)
    helpers = {} if items_offset() is None else {_CONNECTED: array_binding.connected.code().address}
    plans = [region.plan for region in compiled.regions]
    name = plan_cache.key_with_modes(key, measured=False)
    plan_serialization.save(name, plans, compiled.note, constants.arrays, _positions, helpers)


def _positions(plan: LoopPlan) -> dict[Buffer, int]:
    return {b: place for place, b in enumerate(plan.outside)}
