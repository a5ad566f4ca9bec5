"""Native calls from Python: a compiled region as a function of NumPy arrays, kept in the plan cache.

Lives here: `function_of`; `key_of`, `find_regions`, `save_regions`: later processes need not partition and plan.
Not here: regions (regions.py), memory for large results (memory.py), the machine code that connects arrays
(kernels/array_addresses.py), plans bound to memory and the native call itself (native/executor.py), the cache
(plan_cache.py, plan_serialization.py).

A call is one native call: its first step, `connected`, reads the arrays from the tuple of arguments, checks that each
has the plan's layout, and writes its address to the words of the steps. NumPy takes 0.8 us for an address, `connected`
5 ns. If an argument does not fit, it is converted and the call repeated.

The key of a graph in the cache is its text with sizes, digests of constants and users' kernels, and the switches that
affect results. A note lists the nodes of each region; a process that finds it loads neither rules nor kernels.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import flags
from ..core.errors import InternalError
from ..core.files import digest
from ..core.lazy_imports import later
from ..core.processors import usable_processors
from ..core.specs import TensorSpec
from ..graph import Graph, Node
from . import plan_cache
from .functional_control_flow import functionalized
from .memory import LARGE, large
from .native import executor as native
from .native.builtins import items_offset
from .native.executor import BoundPlan, PlanImage
from .plan import Plan
from .regions import (
    CallOf,
    CompiledGraph,
    CompiledLoop,
    CompiledRegion,
    Operands,
    UncompiledNode,
    replace_regions,
    shape_of,
)
from .scalar_loops import LoopInput

if TYPE_CHECKING:
    from . import partitioner, plan_serialization
    from .kernels import array_addresses
    from .loops.buffers import Buffer
    from .loops.plans import LoopPlan
else:
    array_addresses = later(".kernels.array_addresses", __package__)
    partitioner = later(".partitioner", __package__)
    plan_serialization = later(".plan_serialization", __package__)

Call = Callable[..., Any]
"""Builds the function of a region or a node; the address of the code that connects arrays is optional."""

_MOST_CONSTANTS = 64 << 20  # bytes of a graph whose regions are kept: digests take 1 ms a MiB
_CONNECTED = "connected"
SHARED = 1 << 17  # elements; smaller regions run on the calling thread


def key_of(graph: Graph) -> str | None:
    """Return the key of a graph with all its sizes; None if its regions are not cached."""
    if not plan_cache.may_find():
        return None
    nodes = list(every_node(graph))
    if sum(n.attrs["value"].nbytes for n in nodes if n.op.name == "Const") > _MOST_CONSTANTS:
        return None
    try:
        text = graph.to_text("", _stored)
    except TypeError:  # an attribute is a Python object
        return None
    codes = [partitioner.code_of(n) for n in nodes if not n.op.catalogue or getattr(n.op, "cpu_kernels", False)]
    return f"function {flags.fast_math} {flags.target} {items_offset()} {codes} {text}"


def every_node(graph: Graph) -> Iterator[Node]:
    """Yield the nodes of a graph and those of its control flow."""
    for node in graph.nodes:
        yield node
        for inner in node.subgraphs:
            yield from every_node(inner)


def _stored(array: np.ndarray) -> str | None:
    return None if array.dtype.hasobject else digest(np.ascontiguousarray(array).tobytes())


def find_regions(key: str, graph: Graph, call_of: Call) -> CompiledGraph | None:
    """Return a graph with its cached regions; None if there are none."""
    cached = next(filter(None, map(plan_cache.find, plan_cache.keys_of(key))), None)
    if cached is None:
        return None
    connector = cached.helpers.get(_CONNECTED)
    codes = map(cached.helpers.__getitem__, map(_loop_name, itertools.count()))
    constants = _Constants()
    return _restored(graph, cached.note, iter(cached.plans), codes, constants, lambda r: call_of(r, connector))


def _loop_name(index: int) -> str:
    return f"loop {index}"


class _Constants:
    """The constants that regions read in place, by number: -1, -2, ... in the order of the regions."""

    def __init__(self) -> None:
        self.arrays: dict[int, np.ndarray] = {}

    def add(self, region: CompiledRegion) -> None:
        """Append the constants of a region under the next numbers."""
        for node in region.constants:
            self.arrays[-1 - len(self.arrays)] = np.ascontiguousarray(node.attrs["value"])


def _restored(
    graph: Graph, note: Any, plans: Iterator[PlanImage], codes: Iterator[int], constants: _Constants, call_of: CallOf
) -> CompiledGraph:
    """Return a graph with the regions and loops of a note. codes: addresses of the kernels of loops."""
    if note["functional"]:
        graph, _ = functionalized(graph, note["functional"])
    operands = Operands(graph)
    nodes = [node for node in operands.nodes if node.op.name != "Const"]
    schedule: list[CompiledRegion | CompiledLoop | Node] = []
    for entry in note["schedule"]:
        if isinstance(entry, int):
            schedule.append(nodes[entry])
            continue
        if isinstance(entry, dict):
            inputs = tuple([LoopInput(kind, dtype, tuple(shape)) for kind, dtype, shape in entry["inputs"]])
            schedule.append(CompiledLoop(nodes[entry["loop"]], next(codes), inputs, entry["steps"]))
            continue
        work, *indices = entry
        region = operands.region(graph.name, [nodes[index] for index in indices], None, work)
        constants.add(region)
        schedule.append(region._replace(plan=next(plans).located(constants.arrays)))
    regions = [entry for entry in schedule if isinstance(entry, CompiledRegion)]
    loops = [entry for entry in schedule if isinstance(entry, CompiledLoop)]
    uncompiled = [UncompiledNode(*row) for row in note["uncompiled"]]
    notes = iter(note["inner"])

    def within(inner: Graph) -> Graph:
        restored = _restored(inner, next(notes), plans, codes, constants, call_of)
        regions.extend(restored.regions)
        loops.extend(restored.loops)
        uncompiled.extend(restored.uncompiled)
        return restored.graph

    return CompiledGraph(replace_regions(graph, operands, schedule, call_of, within), regions, loops, uncompiled, note)


def save_regions(key: str, compiled: CompiledGraph) -> None:
    """Cache the regions of a graph, whose plans are packed."""
    constants = _Constants()
    for region in compiled.regions:
        constants.add(region)
    helpers = {} if items_offset() is None else {_CONNECTED: array_addresses.connected.code().address}
    helpers |= {_loop_name(i): loop.code for i, loop in enumerate(compiled.loops)}
    plans = [region.plan for region in compiled.regions]
    name = plan_cache.key_with_modes(key, measured=False)
    plan_serialization.save(name, plans, compiled.note, constants.arrays, _positions, helpers)


def _positions(plan: LoopPlan) -> dict[Buffer, int]:
    return {b: index for index, b in enumerate(plan.outside)}


class RegionCallee:
    """A region that several threads may call: each acquires a plan bound to memory, or binds one."""

    def __init__(self, region: CompiledRegion, connector: int | None) -> None:
        self.region, self._connector = region, connector
        self.values = (*region.inputs, *region.outputs)
        variables = region.variables
        specs = [variables.get(v, v.spec) for v in self.values]
        self.shapes = [shape_of(spec) for spec in specs]
        self.dtypes = [spec.dtype.np for spec in specs]
        self.native = items_offset() is not None
        self.threads = max(1, flags.num_threads or usable_processors()) if region.work >= SHARED else 1
        self.free: list[tuple[Any, Any, Any]] = []
        self.plain: Plan | None = None

    def another(self) -> tuple[Any, Any, Any]:
        """Bind another plan. Return the word with the address of a call's items, the executor, and the owner of
        both."""
        plan = self.region.plan
        if not self.native:
            running = plan.bind(self.threads)
            return None, running.executor, running
        code = array_addresses.connected.code().address if self._connector is None else self._connector
        step = native.Step(code, [0, 0, len(self.values), id(np.ndarray)], 1, 1)
        running = plan.bind(self.threads, None, [step])
        table: list[int] = []
        for key, shape, dtype in zip(plan.outside, self.shapes, self.dtypes):
            places = running.places(key)
            table += [id(dtype), len(shape), len(places), 0, *shape]
            table += [number for place in places for number in place]
        kept = np.array(table, np.int64)
        words = running.ahead[0]
        words[1] = kept.ctypes.data
        return memoryview(words.data), running.executor, _Holding(running, kept)

    def otherwise(self, acquired: tuple[Any, Any, Any], arrays: tuple[Any, ...]) -> None:
        """Run the region if `connected` did not: convert each input to the plan's layout. Raises errors of guards."""
        inputs = len(self.region.inputs)
        fitting: list[np.ndarray] = []
        for a, v, shape, d in zip(arrays[:inputs], self.values, self.shapes, self.dtypes):
            if np.shape(a) != shape:
                raise InternalError(
                    op=self.region.nodes[0].op.name,
                    node=self.region.nodes[0].name,
                    what="a native call is given another shape than it was compiled for",
                    found=list(np.shape(a)),
                    wanted=repr(v),
                )
            fitting.append(np.ascontiguousarray(np.asarray(a), d).reshape(shape))
        arguments = (*fitting, *arrays[inputs:])
        self.connect(acquired, arguments)
        try:
            acquired[1].run()
        except native.StepError:  # the operators themselves have the right words for it, or a result after all
            for y, result in zip(arrays[inputs:], self.plainly(fitting)):
                np.copyto(y, result)
        self.free.append(acquired)

    def connect(self, acquired: tuple[Any, Any, Any], arguments: tuple[Any, ...]) -> None:
        """Let the next run of an acquired plan use these arrays, which the caller keeps alive."""
        if self.native:
            acquired[0][0] = id(arguments) + (items_offset() or 0)
        else:
            acquired[2].connect({key: a.ctypes.data for key, a in zip(self.region.plan.outside, arguments)})

    def plainly(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """Compute the nodes one by one."""
        if self.plain is None:
            self.plain = Plan(self.region.graph)
        return self.plain.explained(*inputs)


class _Holding:
    """A bound plan and the table that its first step reads."""

    def __init__(self, running: BoundPlan, table: np.ndarray) -> None:
        self.running, self.table = running, table


def result_of(spec: TensorSpec) -> tuple[Callable[..., np.ndarray], tuple[int, ...], np.dtype[Any]]:
    """Return the function that allocates a result of a region, and its arguments."""
    shape, dtype = shape_of(spec), spec.dtype.np
    return large if math.prod(shape) * dtype.itemsize >= LARGE else np.empty, shape, dtype


def function_of(region: CompiledRegion, connector: int | None = None) -> Callable[..., Any]:
    """Return the region as a function of its inputs, which returns its output, or a tuple of them.

    Generated for the number of inputs and outputs: for 3 operators of 4x4, a loop over them would cost as much as the
    kernels. connector: the address of the code of `connected`, for a plan of the cache.
    """
    callee = RegionCallee(region, connector)
    scope: dict[str, Any] = {
        "pop": callee.free.pop,
        "push": callee.free.append,
        "another": callee.another,
        "otherwise": callee.otherwise,
        "offset": items_offset() or 0,
        "ndarray": np.ndarray,
        "asarray": np.asarray,
    }
    xs = [f"x{i}" for i in range(len(region.inputs))]
    ys = [f"y{i}" for i in range(len(region.outputs))]
    lines = [f"def native({', '.join(xs)}):"]
    for y, v in zip(ys, region.outputs):
        empty, shape, dtype = result_of(v.spec)
        scope |= {f"{y}_shape": shape, f"{y}_dtype": dtype, f"{y}_empty": empty}
        lines.append(f"    {y} = {y}_empty({y}_shape, {y}_dtype)")
    for x, v in zip(xs, region.inputs):
        if not v.shape.rank:  # between iterations of loops numbers are NumPy's scalars
            lines.append(f"    {x} = {x} if type({x}) is ndarray else asarray({x})")
    lines += [
        f"    arrays = ({''.join(f'{n}, ' for n in (*xs, *ys))})",
        "    try:",
        "        taken = pop()",
        "    except IndexError:",
        "        taken = another()",
    ]
    if callee.native:
        lines += [
            "    word, executor, _ = taken",
            "    word[0] = id(arrays) + offset",
            "    if executor._run():",
            "        otherwise(taken, arrays)",
            "    else:",
            "        push(taken)",
        ]
    else:
        lines.append("    otherwise(taken, arrays)")
    lines.append(f"    return {', '.join(ys)}")
    exec(compile("\n".join(lines), "<native call>", "exec"), scope)
    function: Callable[..., Any] = scope["native"]
    return function
