"""Calibration: ranges of values, measured on representative data or stated by FAKE_QUANT operators.

Lives here: `RepresentativeDataset`, samples of a model's inputs; `calibrate`, which runs the float model and watches
every node, in each iteration of a loop and each branch taken; `trained`, which removes FAKE_QUANTs of
quantisation-aware training and keeps their ranges; `carried`, which extends ranges over operators that move elements.
Not here: the use of ranges (plan.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ....core.dtypes import float32
from ....core.errors import InvalidArgumentError, NotFoundError
from ....core.terminal_progress import TerminalProgress
from ....graph import Graph, GraphRewriter, Node, Value
from ....graph.builder import map_subgraphs
from ....graph.ir import flat
from ....scalar.fixed_point import nudged
from ...format import Model
from ...interpreter import Interpreter, OpResolverType
from ...ops import types
from ...ops.definition import LiteOperator
from ...ops.module import LiteModule
from ...runtime.tensor import CONSTANT, FOLDED
from ..export import ModuleExporter
from .graphs import CalibratedGraph, Range, constant, is_float, producer
from .parameters import grid_of, stored_parameters
from .plan import activations
from .rules import AVERAGING, JOIN, RULES, SAME

FORMS = (
    "a dictionary with input names and values, a tuple with signature key and a dictionary with input names and "
    "values, or an array with input values in the order of input tensors of the graph"
)


class RepresentativeDataset:
    """A small set of inputs by which a converter learns the ranges of a model's tensors.

    input_gen: a function without arguments, whose result is iterated over once. Each sample is a list or tuple of
    arrays in the order of the inputs, a dict by their names, or `(signature_key, dict)` where there are several
    signatures. Samples need not have one shape where the model leaves sizes open. A few hundred usually do.
    """

    def __init__(self, input_gen: Callable[[], Iterable[Any]]) -> None:
        if not callable(input_gen):
            raise InvalidArgumentError(
                what="RepresentativeDataset takes a function",
                found=type(input_gen).__name__,
                do="RepresentativeDataset(lambda: samples)",
            )
        self.input_gen = input_gen


class Sample(NamedTuple):
    """The subgraph to run, and its inputs: index of the tensor, array."""

    subgraph: int
    arrays: list[tuple[int, np.ndarray]]


def samples(dataset: RepresentativeDataset | Callable[[], Iterable[Any]], model: Model) -> Iterator[Sample]:
    """Yield the samples of a RepresentativeDataset, or of a function as it takes. Raises InvalidArgumentError."""
    if not isinstance(dataset, RepresentativeDataset):
        if not callable(dataset):
            raise InvalidArgumentError(
                what="converter.representative_dataset is not a function",
                found=type(dataset).__name__,
                do="lambda: samples",
            )
        dataset = RepresentativeDataset(dataset)
    signatures = {d.signature_key: d for d in model.signature_defs}
    for number, sample in enumerate(dataset.input_gen()):
        yield _sample(sample, signatures, model, number)


def _sample(sample: Any, signatures: dict[str, Any], model: Model, number: int) -> Sample:
    key = None
    if isinstance(sample, tuple) and len(sample) == 2 and isinstance(sample[0], str):
        key, sample = sample
        if not isinstance(sample, dict):
            raise InvalidArgumentError(
                what="You need to provide either a dictionary with input names and values in the second argument in "
                "the tuple",
                found=f"sample {number}: ({key!r}, {type(sample).__name__})",
            )
        if key not in signatures:
            raise InvalidArgumentError(
                what=f'Invalid signature_key provided: "{key}".',
                found=f"sample {number}",
                wanted=f"one of {', '.join(signatures)}",
            )
    elif len(signatures) > 1:
        raise InvalidArgumentError(
            what=f"the model has {len(signatures)} signatures, and a sample names none of them",
            found=f"sample {number}: {type(sample).__name__}",
            wanted=f"tuples (key, dict), key one of {', '.join(signatures)}",
        )
    definition = signatures[key] if key is not None else next(iter(signatures.values()), None)
    index = int(definition.subgraph_index) if definition is not None else 0
    subgraph = model.subgraphs[index]
    if isinstance(sample, dict):
        inputs = {m.name: int(m.tensor_index) for m in definition.inputs} if definition is not None else {}
        _same_names(sample, inputs, number)
        pairs = [(inputs[name], sample[name]) for name in inputs]
    elif isinstance(sample, (list, tuple)):
        places = np.asarray(subgraph.inputs).tolist()
        if len(sample) != len(places):
            raise InvalidArgumentError(
                what=f"sample {number} of converter.representative_dataset has other inputs",
                found=f"{len(sample)} arrays",
                wanted=str(len(places)),
            )
        pairs = list(zip(places, sample))
    else:
        raise InvalidArgumentError(
            what=f"You need to provide either {FORMS} in the representative_dataset function. Unsupported value from "
            "dataset",
            found=f"sample {number}: {type(sample).__name__}",
            do="yield [array]",
        )
    return Sample(index, [(t, _array(value, subgraph.tensors[t])) for t, value in pairs])


def _same_names(sample: dict[str, Any], inputs: dict[str, int], number: int) -> None:
    if set(sample) != set(inputs):
        raise InvalidArgumentError(
            what=f"sample {number} of converter.representative_dataset has other names than the model's inputs",
            found=", ".join(map(str, sample)) or "none",
            wanted=", ".join(inputs) or "none",
        )


def _array(value: Any, tensor: Any) -> np.ndarray:
    """Convert Python numbers to the tensor's dtype, which arrays must have already."""
    if isinstance(value, (int, float, bool, list, tuple)):
        return np.asarray(value, types.dtype_of(tensor.type.name).np)
    return np.asarray(value)


def calibrate(
    module: LiteModule, dataset: Any, custom_ops: Any = (), op_resolver: Any = None
) -> tuple[dict[Value, Range], dict[Value, Range]]:
    """Return the least and greatest element of each float32 value that was computed, in every graph.

    The second result has the values with elements of -inf that constants brought in, as masks and padding do; their
    ranges are those of the other elements.

    raises InvalidArgumentError for no samples, samples that do not fit the model, and tensors that hold NaN or
    infinity, which it names
    """
    exported = ModuleExporter(module)
    model = Model.read(exported.model.to_bytes())
    seen: list[dict[int, Range]] = [{} for _ in model.subgraphs]
    masked: list[set[int]] = [set() for _ in model.subgraphs]
    reference = OpResolverType.BUILTIN_REF  # every tensor is looked at
    with Interpreter(
        model_content=model, custom_ops=custom_ops, op_resolver=op_resolver, experimental_op_resolver_type=reference
    ) as interpreter:
        for ranges, hidden, subgraph in zip(seen, masked, interpreter._subgraphs):
            subgraph.observe(_observer(subgraph, ranges, hidden))
        count, show, met = 0, TerminalProgress("calibrating", "samples"), set()
        try:
            for sample in samples(dataset, model):
                _run(interpreter, seen, masked, sample, count)
                count += 1
                met.add(sample.subgraph)
                show.at(count)
        finally:
            show.close()
    if not count:
        raise InvalidArgumentError(
            what="converter.representative_dataset yields no sample",
            wanted="some hundred inputs like those the model will meet",
        )
    for definition in model.signature_defs:
        if int(definition.subgraph_index) not in met:
            raise InvalidArgumentError(
                what=f"converter.representative_dataset yields no sample of the signature {definition.signature_key!r}",
                do="yield (signature_key, dict)",
            )
    values: tuple[dict[Value, Range], dict[Value, Range]] = {}, {}
    for value, (s, t) in exported.tensors.items():
        if t in seen[s]:
            values[t in masked[s]][value] = seen[s][t]
    return values


def _run(
    interpreter: Interpreter, seen: list[dict[int, Range]], masked: list[set[int]], sample: Sample, number: int
) -> None:
    index = sample.subgraph
    try:
        for t, array in sample.arrays:
            interpreter._resize(t, array.shape, False, index)
        try:
            interpreter._allocate(index)
        except NotFoundError as error:  # fused operators: all others have kernels
            lines = [line for line in error.message.splitlines() if line.startswith("Encountered")]
            raise NotFoundError(
                what="\n".join(["calibration cannot run the model", *lines]),
                do="converter.calibration_custom_ops, as an Interpreter's custom_ops; "
                "or without representative_dataset",
            ) from error
        subgraph = interpreter._subgraphs[index]
        for t, array in sample.arrays:
            interpreter._set(t, array, index)
            _note(seen[index], subgraph.tensors[t], masked[index])
        subgraph.invoke()
    except InvalidArgumentError as error:
        raise InvalidArgumentError(
            what=f"calibration stopped at sample {number} of converter.representative_dataset: {error.message}"
        ) from error


def _observer(subgraph: Any, ranges: dict[int, Range], masked: set[int]) -> Callable[[Any, bool], None]:
    """Return an observer that records the ranges of a node's outer operands before it runs, and of its results.

    masked: tensors that hold -inf, to which it adds.
    """
    outer = set(subgraph.inputs)

    def observe(node: Any, done: bool) -> None:
        for t in node.tensors_out if done else node.tensors_in:
            if t is not None and (done or t.index in outer):
                _note(ranges, t, masked, node if done else None)

    return observe


def _takes_masks(node: Any, masked: set[int], ranges: dict[int, Range]) -> bool:
    """Return whether -inf in a node's result is that of an operand, a constant or a masked tensor, or the sum of two
    masks of the least numbers."""
    rule = RULES.get(node.name)
    if rule is None or not (rule.results in (SAME, JOIN) or node.name == "ADD"):
        return False
    floats = [t for t in node.tensors_in if t is not None and t.dtype is float32]
    lows = [
        t.array.min(initial=0.0) if t.kind in (CONSTANT, FOLDED) else ranges.get(t.index, (0, 0))[0] for t in floats
    ]
    least = float(np.finfo(np.float32).min) / 4
    return any(t.index in masked or low < least for t, low in zip(floats, lows))


def _note(ranges: dict[int, Range], t: Any, masked: set[int], node: Any = None) -> None:
    """Record the range of a tensor. masked: tensors that hold -inf; node: what computed it, if it may be one."""
    array = t.array
    if t.dtype is not float32 or array is None or not array.size:
        return
    low, high = float(array.min()), float(array.max())
    if low == -np.inf and high < np.inf and node is not None and _takes_masks(node, masked, ranges):
        masked.add(t.index)
        low = float(array.min(initial=high, where=array > -np.inf))
        if high == -np.inf:  # nothing else in it
            return
    if not (np.isfinite(low) and np.isfinite(high)):
        raise InvalidArgumentError(
            what=f"tensor {t.name!r} holds what has no range",
            found=f"{low} .. {high}",
            wanted="finite numbers",
            do="look at what computes it, or at the data",
        )
    if t.index in ranges:
        least, most = ranges[t.index]
        low, high = min(low, least), max(high, most)
    ranges[t.index] = (low, high)


BITS = 8
STEPS = 2**BITS - 1


def trained(graph: Graph, inside: Callable[[Graph], Graph], ranges: dict[Value, Range], bits: int = BITS) -> Graph:
    """Return a graph without its FAKE_QUANTs of these bits; add the ranges of the values that they read.

    One between an input and an output of the graph remains, and one of a value that has another range; the ranges of
    their results are added. inside: the same for subgraphs.
    """
    learned: dict[Value, Range] = {}
    outer = set(graph.outputs)
    instead: dict[Value, Value] = {}  # removed values and their replacements
    gone = set()
    for node in graph.nodes:
        if node.op.name == "DEQUANTIZE" and (stored := stored_parameters(next(node.operands))) is not None:
            learned[node.outputs[0]] = stored.low, stored.high
        if node.op.name != "FAKE_QUANT" or node.attrs["num_bits"] != bits:
            continue
        (x,), (y,) = node.operands, node.outputs
        x = instead.get(x, x)
        stated = _with_zero(float(node.attrs["min"]), float(node.attrs["max"])) if bits == BITS else _symmetric(node)
        if learned.get(x, stated) != stated:
            learned[y] = stated
            continue
        if y in outer:
            if x in outer or producer(x) is None or x in learned:
                continue
            instead = {v: y if by is x else by for v, by in instead.items()} | {x: y}
        else:
            instead[y] = x
        gone.add(node)
        learned[y if y in outer else x] = stated
    removed: dict[Value, list[Value]] = {}
    for value, replacement in instead.items():
        removed.setdefault(replacement, []).append(value)
    rewriter = GraphRewriter(graph)
    rewriter.mapping.update({v: value for value in graph.inputs for v in removed.get(value, ())})
    for old in graph.nodes:
        if old in gone:
            continue
        kept = [instead.get(v, v) for v in old.outputs]
        node = map_subgraphs(rewriter.remap(old), inside)
        if kept != list(old.outputs):
            names = [v.name for v in kept]
            node = Node(old.op, node.inputs, node.attrs, [v.spec for v in kept], names[0], old.at, names, old.rules)
        for value, new in zip(kept, rewriter.insert(node).outputs):
            rewriter.mapping.update(dict.fromkeys((value, *removed.get(value, ())), new))
    ranges |= {rewriter.mapping.get(v, v): r for v, r in learned.items()}
    return rewriter.finish()


def _symmetric(node: Node) -> Range:
    """Return the range of a FAKE_QUANT of 16 bits with the zero point 0, whose least integer int16 kernels omit."""
    most = float(node.attrs["max"])
    return -most, most


def _with_zero(low: float, high: float) -> Range:
    """Return the range moved so that 0 is one of its numbers; in float64, as the official converter does."""
    if not (high - low) / STEPS > 0:
        return low, high
    _, least, most = nudged(low, high, 0.0, float(STEPS))
    return float(least), float(most)


def carried(graph: CalibratedGraph, explicit: bool = False) -> None:
    """Propagate ranges through operators that move elements, in both directions, and add those of fixed outputs.

    explicit: the ranges are all that the program quantizes: results that are rounded nowhere get none.
    """
    for node in (*graph.operators, *reversed(graph.operators)):
        rule = RULES.get(node.op.name) if isinstance(node.op, LiteOperator) else None
        if rule is None:
            continue
        if explicit and (node.op.name in AVERAGING or rule.results is not SAME):
            continue
        if rule.results is SAME:
            same = [*activations(node, rule)[:1], *filter(is_float, node.outputs)]
            ranges = [graph.range_of(v) for v in same]
            known_range = next((r for r in ranges if r is not None), None)
            if known_range is not None:
                graph.ranges |= {v: known_range for v, r in zip(same, ranges) if r is None and v not in graph.masked}
        elif not isinstance(rule.results, str) and "int8" in rule.results:
            scale, zero = rule.results["int8"]
            graph.ranges.setdefault(node.outputs[0], (scale * (-128 - zero), scale * (127 - zero)))


def ranges_of_constants(graph: CalibratedGraph) -> dict[Value, Range]:
    """Return the ranges in which the int8 parameters of constants are those of the integers that they were."""
    ranges: dict[Value, Range] = {}
    for value in {v for node in graph.operators for v in flat(node.inputs) if v is not None}:
        array = constant(value)
        if array is None or not array.size or array.size > 1 << 20:
            continue
        step = grid_of(array, 255, span=True)
        if step is not None:
            low = np.rint(min(float(array.min()), 0.0) / step)
            ranges[value] = float(low * step), float((low + 255) * step)
    return ranges
