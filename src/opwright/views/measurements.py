"""Figures of nodes that need a run: times, who computes them, errors against another model.

Lives here: `measure`, `errors_against`, `own_errors`. Not here: timing (lite/runtime/profiler.py, timeline.py), errors
(aot/differences.py, aot/quantization_errors.py), counts of operations (lite/ops/operation_counts.py).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..aot.differences import diff
from ..aot.model_runs import random_input
from ..aot.quantization_errors import debug_quantization
from ..compiler.kernels import peak_rates
from ..core import flags
from ..core.errors import InvalidArgumentError
from ..lite.compiled.delegate import CompiledDelegate
from ..lite.format import Model, versions
from ..lite.interpreter import Interpreter
from ..lite.ops.operation_counts import PRODUCTS, arithmetic_operations
from ..lite.runtime.timeline import TimelineEvent

WAITS = 8  # runs after which the compiler may still be at work on other sizes
SAMPLES = 4
"""Random inputs of `own_errors`."""

Figures = dict[tuple[int, int], dict[str, Any]]
"""Figures of nodes, by subgraph and number of the operator."""


def measure(path: str, runs: int, custom_ops: Sequence[Any] = ()) -> Figures:
    """Return the median seconds of a run ("t"), who computes the node and why ("k"), and of nodes with products the
    share of the processor's peak ("p").

    The first signature runs on random inputs, on one thread. raises the errors of `Interpreter`
    """
    with Interpreter(model_path=path, custom_ops=[*custom_ops]) as interpreter:
        interpreter.allocate_tensors()
        rng = np.random.default_rng(0)
        for detail in interpreter.get_input_details():
            interpreter.set_tensor(detail["index"], random_input(detail, rng))
        for _ in range(WAITS):
            interpreter.invoke()
            compiling = [t for t in threading.enumerate() if t.name == "opwright-compiler"]
            if not compiling:
                break
            for thread in compiling:
                thread.join()
        profile = interpreter.profile(runs)
        steps = [event for event in interpreter.timeline(min(runs, 5)).events if event.kind == "step"]
        details = {int(detail["index"]): detail for detail in interpreter.get_tensor_details()}
    kernels = _kernels(steps)
    reasons: dict[tuple[int, int], str] | None = None
    result: Figures = {}
    for index in (0, *profile.called):
        for row in profile if index == 0 else profile.called[index]:
            numbers = row.get("nodes") or [row["node"]]
            for number in map(int, numbers):
                if row.get("delegate") == "Opwright":
                    by = kernels.get((index, number)) or "machine code, within another node's kernel"
                elif "delegate" in row:
                    by = str(row["delegate"])
                else:
                    reasons = _reasons(path, custom_ops) if reasons is None else reasons
                    by = f"the interpreter: {reasons.get((index, number), 'the node is not compiled alone')}"
                result[index, number] = {"t": float(row["seconds"]) / len(numbers), "k": by}
    for number, share in _shares_of_peak(Model.read(path), details, steps):
        if (0, number) in result:
            result[0, number]["p"] = share
    return result


def _kernels(steps: Iterable[TimelineEvent]) -> dict[tuple[int, int], str]:
    """Return the kernels of nodes in machine code, with the nodes that they compute together."""
    texts: dict[tuple[int, int], dict[str, None]] = {}
    for step in steps:
        name = step.kernel.removeprefix("opwright.compiler.kernels.")
        together = f", {step.name}" if len(step.nodes) > 1 else ""
        for node in step.nodes:
            texts.setdefault((step.subgraph, node), {})[f"{name}{together}"] = None
    return {key: f"machine code: {'; '.join(names)}" for key, names in texts.items()}


def _reasons(path: str, custom_ops: Sequence[Any]) -> dict[tuple[int, int], str]:
    """Return why nodes have no machine code: the model is planned again, as plans that are stored have no reasons."""
    delegate = CompiledDelegate()
    with (
        flags.override(compiled=False),
        Interpreter(path, custom_ops=[*custom_ops], experimental_delegates=[delegate]) as interpreter,
    ):
        interpreter.allocate_tensors()
        return dict(delegate.refused)


def _shares_of_peak(
    model: Model, details: dict[int, dict[str, Any]], steps: Sequence[TimelineEvent]
) -> Iterable[tuple[int, float]]:
    """Yield nodes with products and the share of the peak rate that the kernels of each have."""
    counts: dict[int, int] = {}
    for number, operator in enumerate(model.subgraphs[0].operators):
        name = versions.op_name(model.operator_codes[operator.opcode_index])
        tensors = [int(t) for t in (*operator.inputs, operator.outputs[0])]
        if name in PRODUCTS:
            *inputs, output = ([] if t < 0 else [int(n) for n in details[t]["shape"]] for t in tensors)
            counts[number] = arithmetic_operations(name, inputs, output)
    for number in counts:
        of_node = [step for step in steps if step.subgraph == 0 and number in step.nodes]
        seconds = sum(step.seconds for step in of_node)
        if not seconds:
            continue
        together = {node for step in of_node for node in step.nodes}
        result = int(model.subgraphs[0].operators[number].outputs[0])
        int8 = details[result]["dtype"] in (np.int8, np.uint8)
        peak = peak_rates.peak_int8() if int8 else peak_rates.peak_f32()
        yield number, sum(counts.get(node, 0) for node in together) / seconds / peak


def own_errors(path: str, other: str, custom_ops: Sequence[Any] = ()) -> dict[tuple[int, int], float]:
    """Return the error of each quantized node's own, relative to the deviation of the float tensor, on random inputs;
    empty if `path` is not the quantized form of `other`."""
    rng = np.random.default_rng(0)
    with Interpreter(other, custom_ops=[*custom_ops]) as interpreter:
        details = interpreter.get_input_details()
    samples = [[random_input(detail, rng) for detail in details] for _ in range(SAMPLES)]
    try:
        errors = debug_quantization(path, other, samples, custom_ops=custom_ops)
    except InvalidArgumentError:
        return {}
    return {(0, row.node): row.relative for row in errors.tensors if row.node is not None and row.scale}


def errors_against(path: str, other: str, custom_ops: Sequence[Any] = ()) -> dict[tuple[int, int], float]:
    """Return the largest error of each node's results, by subgraph and number of the node, where both models have the
    tensor. The other model's results on the same random inputs count as exact. Raises the errors of `aot.diff`."""
    result = diff(path, other, custom_ops=custom_ops)
    rows = [row for row in (*result.inner, *result.outputs) if row.node is not None and not row.remark]
    errors: dict[tuple[int, int], float] = {}
    for row in rows:
        assert row.node is not None
        errors[0, row.node] = max(errors.get((0, row.node), 0.0), float(row.largest))
    return errors
