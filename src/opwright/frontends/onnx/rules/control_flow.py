"""If, Loop and Scan of ONNX, whose bodies are subgraphs.

Lives here: branches and loops as the catalogue's; loops of a number of steps that is known at import and that change
the shapes of their state, or collect sequences, are unrolled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.dtypes import int64
from ....core.errors import InvalidArgumentError
from ....core.shapes import TensorShape
from ....ops import array, math
from ....ops.array import cast
from ....tracing.control import cond, while_loop
from ....tracing.tensor_array import TensorArray
from ...importing import known, tensor_of
from ..execution import RULES
from ..files import dtype_of_code
from ..operands import at, axis_of, dims, dtype_of, rank_of

rule = RULES.rule
MAX_UNROLLED = 4096
"""Greatest number of steps of a loop that are written out."""
MAX_UNROLLED_NODES = 1 << 16
"""Greatest number of nodes of all loops that are written out: those of loops in loops multiply."""


@rule("If", pure=False)
def branch(context: Any, inputs: Any, attributes: Any) -> Any:
    """Select a branch: at import, if the condition is known then."""
    condition = known(inputs[0])
    then, otherwise = attributes["then_branch"], attributes["else_branch"]
    if condition is not None:
        return context.run(then if condition.reshape(-1)[0] else otherwise, [])
    count = len(then.output)

    def run(graph: Any) -> Any:
        results = context.run(graph, [])
        if any(v is None or isinstance(v, (list, tuple)) for v in results):
            context.required(inputs[0], "a condition whose branches return sequences, or nothing,")
        return [array.identity(tensor_of(v)) for v in results]

    results = cond(array.reshape(inputs[0], []), lambda: run(then), lambda: run(otherwise))
    results = list(results) if isinstance(results, (list, tuple)) else [results][:count]
    if any(r.shape.rank is None for r in results) and context.sources.get(id(inputs[0])):
        context.required(inputs[0], "a condition whose branches have results of different ranks")
    return results


@rule("Loop", pure=False)
def loop(context: Any, inputs: Any, attributes: Any) -> Any:
    """Return the last state, then what each step adds; a known number of steps is written out, else a `while_loop`."""
    body, trips, condition = attributes["body"], at(inputs, 0), at(inputs, 1)
    state = list(inputs[2:])
    steps = None if trips is None else known(trips)
    first = True if condition is None else known(condition)
    count = None if steps is None else int(steps.reshape(-1)[0])
    fixed = trips is None or count is not None
    if first is not None and fixed and (count is None or count <= MAX_UNROLLED):
        results = _unrolled(context, body, count, bool(np.reshape(first, -1)[0]), state)
        if results is not None:
            return results
    if any(v is None or isinstance(v, (list, tuple)) for v in state):
        context.required(trips, "the number of steps of a loop whose state is a sequence")
        context.required(condition, "the condition of a loop whose state is a sequence")
    return _while(context, body, trips, condition, state)


def _unrolled(context: Any, body: Any, count: int | None, more: bool, state: list[Any]) -> list[Any] | None:
    """Return the results of a loop that ends for certain; None if a condition is computed, or for too many nodes."""
    kept = list(state)
    collected: list[list[Any]] = [[] for _ in range(len(body.output) - 1 - len(state))]
    step = 0
    while more and (count is None or step < count):
        if step >= MAX_UNROLLED:
            return None
        results = context.run(body, [np.asarray(step, np.int64), np.asarray(True), *kept])
        context.unrolled.nodes += len(body.node)
        going = known(results[0])
        if going is None or context.unrolled.nodes > MAX_UNROLLED_NODES:
            return None
        kept = results[1 : 1 + len(state)]
        for column, value in zip(collected, results[1 + len(state) :]):
            column.append(value)
        more, step = bool(going.reshape(-1)[0]), step + 1
    return [*kept, *(_stacked(column, body.output[1 + len(state) + i]) for i, column in enumerate(collected))]


def _stacked(column: list[Any], info: Any) -> Any:
    if column:
        return array.stack(column)

    sizes = [d.dim_value for d in info.type.tensor_type.shape.dim]
    return np.zeros([0, *sizes], dtype_of_code(info.type.tensor_type.elem_type, info.name).np)


def _while(context: Any, body: Any, trips: Any, condition: Any, state: list[Any]) -> list[Any]:
    limit = np.asarray(2**62, np.int64) if trips is None else array.reshape(cast(trips, int64), [])
    first = np.asarray(True) if condition is None else array.reshape(condition, [])
    extra = body.output[1 + len(state) :]
    arrays, kinds = [], []
    if any(not info.type.tensor_type.elem_type for info in extra):  # in a function's body types may be left out
        first_step = [np.asarray(0, np.int64), np.asarray(True), *state]
        kinds = [dtype_of(v) for v in context.run(body, first_step)[1 + len(state) :]]
    for i, info in enumerate(extra):
        kind = info.type.tensor_type
        sizes = [d.dim_value if d.HasField("dim_value") else None for d in kind.shape.dim]
        shape = TensorShape(sizes if kind.HasField("shape") else None)
        dtype = kinds[i] if kinds else dtype_of_code(kind.elem_type, info.name)
        arrays.append(TensorArray(dtype, 0, True, element_shape=shape))

    def going(step: Any, more: Any, kept: Any, columns: Any) -> Any:
        return math.logical_and(math.less(step, limit), more)

    def run(step: Any, more: Any, kept: Any, columns: Any) -> Any:
        results = context.run(body, [step, more, *kept])
        values = [tensor_of(v) for v in results[1 : 1 + len(state)]]
        written = [c.write(cast(step, np.int32), v) for c, v in zip(columns, results[1 + len(state) :])]
        following = array.reshape(tensor_of(results[0]), [])
        return math.add(step, np.int64(1)), following, values, written

    begin = [tensor_of(v) for v in state]
    shapes = [TensorShape([None] * rank_of(v)) for v in begin]
    fixed = [TensorShape(dims(v)) for v in begin]
    start = (tensor_of(np.asarray(0, np.int64)), tensor_of(first), begin, arrays)
    try:
        _, _, kept, columns = while_loop(going, run, start)
    except ValueError as error:  # the shape of the state changes
        if fixed == shapes:
            raise
        invariants = (TensorShape([]), TensorShape([]), shapes, [TensorShape(None)] * len(arrays))
        try:
            _, _, kept, columns = while_loop(going, run, start, invariants)
        except ValueError:
            raise error from None
    return [*kept, *(c.stack() for c in columns)]


@rule("Scan", pure=False)
def scan(context: Any, inputs: Any, attributes: Any) -> Any:
    """Step over slices of inputs; version 8 has a batch axis first, and the lengths of its sequences."""
    body, count = attributes["body"], attributes["num_scan_inputs"]
    if context.opset < 9:
        if inputs[0] is not None:
            raise InvalidArgumentError(what="Scan of version 8 with sequence_lens")
        batches = [
            _scan(context, body, count, [array.gather(v, np.int32(b)) for v in inputs[1:]], attributes)
            for b in range(dims(inputs[1])[0] or 0)
        ]
        return [array.stack(list(column)) for column in zip(*batches)]
    return _scan(context, body, count, list(inputs), attributes)


def _scan(context: Any, body: Any, count: int, inputs: list[Any], attributes: Any) -> list[Any]:
    state, scanned = inputs[: len(inputs) - count], inputs[len(inputs) - count :]
    axes = attributes.get("scan_input_axes") or [0] * count
    backwards = attributes.get("scan_input_directions", attributes.get("directions")) or [0] * count
    axes = [axis_of(a, rank_of(v)) for a, v in zip(axes, scanned)]
    steps = dims(scanned[0])[axes[0]]
    if steps is None or steps > MAX_UNROLLED or context.unrolled.nodes + steps * len(body.node) > MAX_UNROLLED_NODES:
        return _scan_loop(context, body, state, scanned, axes, backwards, attributes)
    columns: list[list[Any]] = [[] for _ in range(len(body.output) - len(state))]
    for step in range(steps):
        slices = [
            array.gather(v, np.int32(steps - 1 - step if back else step), axis=a)
            for v, a, back in zip(scanned, axes, backwards)
        ]
        results = context.run(body, [*state, *slices])
        context.unrolled.nodes += len(body.node)
        state = results[: len(state)]
        for column, value in zip(columns, results[len(state) :]):
            column.append(value)
    return [*state, *_outputs([array.stack(c) for c in columns], attributes)]


def _outputs(stacked: list[Any], attributes: Any) -> list[Any]:
    axes = attributes.get("scan_output_axes") or [0] * len(stacked)
    backwards = attributes.get("scan_output_directions") or [0] * len(stacked)
    results = []
    for value, axis, back in zip(stacked, axes, backwards):
        value = array.reverse(value, [0]) if back else value
        axis = axis_of(axis, rank_of(value))
        order = [*range(1, axis + 1), 0, *range(axis + 1, rank_of(value))]
        results.append(array.transpose(value, order) if axis else value)
    return results


def _scan_loop(
    context: Any, body: Any, state: list[Any], scanned: list[Any], axes: Any, backwards: Any, attributes: Any
) -> list[Any]:
    lined = []
    for value, axis, back in zip(scanned, axes, backwards):
        order = [axis, *(i for i in range(rank_of(value)) if i != axis)]
        value = array.transpose(value, order) if axis else value
        lined.append(array.reverse(value, [0]) if back else value)
    steps = array.shape(lined[0])[0]
    kinds = context.run(body, [*state, *(array.gather(v, np.int32(0)) for v in lined)])[len(state) :]
    arrays = [TensorArray(dtype_of(k), steps, element_shape=TensorShape(dims(k))) for k in kinds]

    def run(step: Any, kept: Any, columns: Any) -> Any:
        results = context.run(body, [*kept, *(array.gather(v, step) for v in lined)])
        written = [c.write(step, v) for c, v in zip(columns, results[len(kept) :])]
        return math.add(step, np.int32(1)), [tensor_of(v) for v in results[: len(kept)]], written

    start = (tensor_of(np.asarray(0, np.int32)), [tensor_of(v) for v in state], arrays)
    _, kept, columns = while_loop(lambda step, kept, columns: math.less(step, steps), run, start)
    return [*kept, *_outputs([c.stack() for c in columns], attributes)]
