"""The calls of a function at which it is compiled, and at which its machine code runs.

Lives here: `schedule`, and the estimates that it follows from: `call_time` of the uncompiled function, `compile_time`;
`patience`, by which the calls in between share the wait for a compiler that is late.
Not here: the plan that counts calls (tiered_plan.py).

Both numbers follow from the graph and the sizes of its inputs alone, never from the clock or the cache: machine code
rounds differently from NumPy, and a program that is run twice has to give the same bits twice.
"""

from __future__ import annotations

import math

from ..core import flags
from ..graph import Graph, Node, Value
from ..graph.passes.control_flow import exact_iterations

FEWEST_CALLS, MOST_CALLS = 3, 50
"""Bounds of the number of calls before the compiler starts."""
MOST_AWAITED = 20_000
"""Maximum number of calls between the start of the compiler and the first call of its code."""
START_US, COMPILE_US, PLAN_US = 250_000.0, 5_000.0, 500.0
"""Estimated time to import the compiler, to compile a node, and to plan one for further shapes, in microseconds.

Kernels take sizes as arguments, so that most of those compiled for one set of shapes serve the others. If the cache
has their products and convolutions, as after any similar model, a node takes 1 to 10 ms. The estimate is between that
and an empty cache: only the first process waits for an empty cache, but each one runs uncompiled until the estimate is
over."""
COLD_START_US, COLD_US = 500_000.0, 40_000.0
"""The first two with an empty cache of machine code: benchmarks/first_calls.py's small functions take 0.6 to 1.2 s of
processor time, its training steps, of 48 to 83 nodes, 2.3 to 3.7 s."""
QUICK_US, NODE_US, UPDATE_US, BYTES_PER_US = 0.7, 4.0, 25.0, 10_000.0
"""Estimated time of an element-wise call in a plain plan, of any other call, of a step of an optimizer, and of writing
results."""
FREE = frozenset({"Const", "Identity", "ReadVariable"})
"""Nodes that take no time, in a plain plan or in the compiler."""
PRODUCTS_PER_US = {
    **dict.fromkeys(("Conv", "MatMul", "Einsum", "LSTMSequence", "GRUSequence"), 38_000.0),
    "DepthwiseConv": 2_000.0,
    "CTCLoss": 70.0,  # 61 ms for logits [150, 32, 32] and labels [32, 25]
}
"""Multiplications in a microsecond, by the beginning of a contraction's name: OpenBLAS's on a core of a Zen 3, AVX2."""
WINDOWS_PER_US = 250.0
"""Elements of windows that a convolution copies in a microsecond, before the product with its filters: a step of a CNN
with 32 and 64 channels takes 57 ms, those of tutorials with up to 16 channels 500 to 2,000 multiplications a
microsecond."""
NS_PER_COST = 0.3
"""Time of NumPy for an element of an element-wise function, in nanoseconds, for each unit of the cost of its row in
scalar/table.py."""
ELEMENT_NS = {
    **dict.fromkeys(("Erf", "Erfc", "Gelu"), 100.0),  # rounded from float64
    **dict.fromkeys(("Sin", "Cos"), 3.0),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Cumsum"), 4.0),
    **dict.fromkeys(("Sum", "Mean"), 0.3),
    "ArgMax": 0.6,
}
"""The same for functions with other times, and for an element of the operand of functions of rows."""
ITERATIONS = 100
"""Estimated number of times that a loop runs its body, if it is unknown; a branch runs once, if at all."""


def call_time(graph: Graph, unknown: int = 1) -> float:
    """Estimate the time of a call of a graph's plain plan, in microseconds. unknown: the size of unknown dimensions."""
    time = 0.0
    for node in graph.nodes:
        if node.op.name in FREE:
            continue
        time += QUICK_US if node.op.profile.quick else UPDATE_US if node.op.name == "UpdateVariable" else NODE_US
        time += _elements_time(node, unknown) + _products_time(node, unknown)
        times = [call_time(part, unknown) for part in node.subgraphs]
        if node.op.name == "While":
            iterations = exact_iterations(node)
            time += (ITERATIONS if iterations is None else iterations) * sum(times)
        else:
            time += max(times, default=0.0)
    return time


def _elements_time(node: Node, unknown: int) -> float:
    """Estimate the time to compute and to write the elements of a node's results, in microseconds."""
    size = sum([_elements(v, unknown) for v in node.outputs])
    time, ns = size * 4 / BYTES_PER_US, ELEMENT_NS.get(node.op.name, 0.0)
    if ns:
        size = max([size, *[_elements(v, unknown) for v in node.operands]])
    else:
        ns = NS_PER_COST * node.op.profile.vector_cost
    return max(time, size * ns / 1000)


def _products_time(node: Node, unknown: int) -> float:
    """Estimate the time of a contraction's products, in microseconds; 0 for other nodes."""
    rate = next((rate for op, rate in PRODUCTS_PER_US.items() if node.op.name.startswith(op)), None)
    if rate is None:
        return 0.0
    products = _multiplications(node, unknown)
    filters = _filters(node)
    if filters is None or node.op.name.startswith("Depthwise"):
        return products / rate
    return products / rate + products / filters[-1] / WINDOWS_PER_US


def _multiplications(node: Node, unknown: int) -> float:
    """Return the number of multiplications of a contraction.

    A product of a [m, k] and b [k, n] takes m k n = sqrt(|a| |b| |a b|) of them; a convolution also as many times the
    root of the number of pixels of its window, and of a channel's share of them if channels are apart.
    """
    operands = sorted([_elements(v, unknown) for v in node.operands])
    sizes = math.prod(operands[-2:]) * max([_elements(v, unknown) for v in node.outputs])
    filters = _filters(node)
    if filters is not None:
        *window, channels, _ = filters
        share = channels if node.op.name.startswith("Depthwise") else 1
        return math.sqrt(sizes * math.prod(window) / share)
    return math.sqrt(sizes)


def _filters(node: Node) -> list[int] | None:
    """Return the shape of a convolution's filters, [*window, channels, outputs]; None for other nodes."""
    names = node.op.input_names
    filters: object = next((node.inputs[names.index(name)] for name in ("filters", "filter") if name in names), None)
    if filters is None and "filter_sizes" in names:
        filters = node.outputs[0]
    if not isinstance(filters, Value) or filters.shape.dims is None:
        return None
    return [d or 1 for d in filters.shape.dims]


def _elements(value: Value, unknown: int) -> int:
    if value.dtype.is_handle or value.shape.dims is None:
        return 0 if value.dtype.is_handle else unknown
    return math.prod([unknown if d is None else d for d in value.shape.dims])


def _count(graph: Graph) -> int:
    """Return the number of nodes that take time, those of loops and branches among them."""
    return sum([(node.op.name not in FREE) + sum([_count(part) for part in node.subgraphs]) for node in graph.nodes])


def compile_time(graph: Graph) -> float:
    """Estimate the time to compile a graph for its first set of shapes if the compiler is loaded, in microseconds."""
    return COMPILE_US * _count(graph)


def cold_time(graph: Graph) -> float:
    """Estimate the time to load the compiler and to compile a graph with an empty cache, in microseconds."""
    return COLD_START_US + COLD_US * _count(graph)


def patience(expected: float, elapsed: float, calls: float, call: float) -> float:
    """Return how long a call waits for a compiler that is late: its share of the time that will be missing.

    expected: time of the compiler; elapsed: since it began; calls: up to the one that needs the code; call: time of
    one. A compiler that is over its time is expected to take an eighth more. Any unit of time.
    """
    return max((max(expected - elapsed, elapsed / 8) - (calls - 1) * call) / calls, 0.0)


def planning_time(graph: Graph) -> float:
    """Estimate the time to plan a graph for further shapes, in microseconds."""
    return PLAN_US * _count(graph)


def schedule(graph: Graph, unknown: int = 1, compilation: float | None = None) -> tuple[int, int]:
    """Return the number of the call at which the compiler starts, and of the one that runs its code.

    The compiler starts once calls have taken a twentieth of its own time, by estimate, and its code runs when calls
    since then have taken as long as it has: a function that is called now and then never waits for it. unknown: the
    size of unknown dimensions; compilation: time of the compiler, by default `compile_time`, and to load it.
    """
    if flags.hot_calls:
        return flags.hot_calls, flags.hot_calls + 1
    time = max(call_time(graph, unknown), QUICK_US)
    loading = START_US if compilation is None else 0.0  # delays the code, but not the start of the compiler
    if compilation is None:
        compilation = compile_time(graph)
    start = min(MOST_CALLS, max(FEWEST_CALLS, math.ceil(compilation / 20 / time)))
    return start, start + min(MOST_AWAITED, math.ceil((loading + compilation) / time))
