"""Regions of functions in the plan cache, so that later processes need not partition and plan.

Lives here: `key_of`, `find`, `save`.
Not here: the cache (plan_cache.py, plan_serialization.py), partitioning (partitioner.py), its user (native_plan.py).

The key of a graph is its text with sizes, digests of constants and users' kernels, and the switches that affect
results. A note lists the nodes of each region; a process that finds it loads neither rules nor kernels.
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
    from .kernels import array_addresses
    from .loops.buffers import Buffer
    from .loops.plans import LoopPlan
else:
    array_addresses = later(".kernels.array_addresses", __package__)
    partitioner = later(".partitioner", __package__)
    plan_serialization = later(".plan_serialization", __package__)

Call = Callable[..., Callable[..., Any]]
"""Builds the function of a region; the address of the code that connects arrays is optional."""

_MOST_CONSTANTS = 64 << 20  # bytes of a graph whose regions are kept: digests take 1 ms a MiB
_CONNECTED = "connected"


def key_of(graph: Graph) -> str | None:
    """Return the key of a graph with all its sizes; None if its regions are not cached."""
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
    """Return a graph with its cached regions; None if there are none."""
    cached = next(filter(None, map(plan_cache.find, plan_cache.keys_of(key))), None)
    if cached is None:
        return None
    connector = cached.helpers.get(_CONNECTED)
    return _restored(graph, cached.note, iter(cached.plans), _Constants(), lambda region: call_of(region, connector))


class _Constants:
    """The constants that regions read in place, by number: -1, -2, ... in the order of the regions."""

    def __init__(self) -> None:
        self.arrays: dict[int, np.ndarray] = {}

    def add(self, region: CompiledRegion) -> None:
        """Append the constants of a region under the next numbers."""
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
        work, *indices = entry
        region = operands.region(graph.name, [nodes[index] for index in indices], None, work)
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
    """Cache the regions of a graph, whose plans are packed."""
    constants = _Constants()
    for region in compiled.regions:
        constants.add(region)
    helpers = {} if items_offset() is None else {_CONNECTED: array_addresses.connected.code().address}
    plans = [region.plan for region in compiled.regions]
    name = plan_cache.key_with_modes(key, measured=False)
    plan_serialization.save(name, plans, compiled.note, constants.arrays, _positions, helpers)


def _positions(plan: LoopPlan) -> dict[Buffer, int]:
    return {b: index for index, b in enumerate(plan.outside)}
