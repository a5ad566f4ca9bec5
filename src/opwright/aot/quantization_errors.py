"""Errors of a quantized model, tensor by tensor, against the model that it was quantized from.

Lives here: `debug_quantization`, `QuantizationErrors`, `TensorErrors`. Not here: one pair of results (differences.py),
running models (model_runs.py), pages (tools/difference_report.py), the quantizer (lite/convert/quantize/).

Metrics are those of TensorFlow's `QuantizationDebugger`: each float operator runs on the dequantized inputs of its
quantized one, and their results are compared, so that the error is the operator's own. In addition, tensors are
compared with those of a run of the whole float model, where errors add up along the network.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TextIO

import numpy as np

from ..core import flags
from ..core.errors import InvalidArgumentError
from ..lite.interpreter import Interpreter
from .bisection import common_tensors, computed, producer_of
from .model_runs import ModelOnRunTime, TensorFacts, model_of

BINS = 64
"""Number of bins of a histogram."""
COLUMNS = (
    "op_name",
    "tensor_idx",
    "num_elements",
    "stddev",
    "mean_error",
    "max_abs_error",
    "mean_squared_error",
    "scale",
    "zero_point",
    "tensor_name",
)
"""Columns of `QuantizationErrors.dump`, as `QuantizationDebugger.layer_statistics_dump` writes them."""


class TensorErrors(NamedTuple):
    """The errors of one tensor.

    name; node, operator: what computes it in the quantized model; tensor: its index there; num_elements; stddev,
    mean_error, max_abs_error, mean_squared_error: of quantized - float, where the float operator has the dequantized
    inputs: of each sample, averaged; scale, zero_point: of a tensor that is quantized as a whole, else 0; deviation: of
    the float tensor over all samples; network: the root of the mean squared error against the float model's own run;
    saturated: share of the float elements beyond the quantized range; worst: the sample with the largest error; edges,
    float_counts, counts: histograms of both over the quantized range
    """

    name: str
    node: int | None
    operator: str
    tensor: int
    num_elements: int
    stddev: float
    mean_error: float
    max_abs_error: float
    mean_squared_error: float
    scale: float
    zero_point: int
    deviation: float
    network: float
    saturated: float
    worst: int
    edges: tuple[float, ...]
    float_counts: tuple[int, ...]
    counts: tuple[int, ...]

    @property
    def rmse_over_scale(self) -> float:
        """Root of the mean squared error in steps of quantization; 1/sqrt(12), 0.29, if only rounding errs."""
        return self.mean_squared_error**0.5 / self.scale if self.scale else 0.0

    @property
    def relative(self) -> float:
        """Root of the mean squared error, relative to the deviation of the float tensor; 0 for a constant one."""
        return self.mean_squared_error**0.5 / self.deviation if self.deviation else 0.0


class QuantizationErrors(NamedTuple):
    """The result of `debug_quantization`. quantized, original: names; tensors: in program order; samples: how many ran;
    sample_errors: of each sample, the largest error of the outputs, relative to the largest float output."""

    quantized: str
    original: str
    tensors: tuple[TensorErrors, ...]
    samples: int
    sample_errors: tuple[float, ...]

    @property
    def worst_samples(self) -> tuple[int, ...]:
        """Numbers of the samples, those with the largest errors of outputs first."""
        return tuple(sorted(range(self.samples), key=lambda i: -self.sample_errors[i]))

    def leave_in_float(self, count: int = 5) -> tuple[TensorErrors, ...]:
        """Return the tensors whose operators have the largest errors of their own, relative to the deviation of the
        float tensor: candidates for float16 or float32. At most `count`, the largest first."""
        rows = [row for row in self.tensors if row.node is not None and row.relative]
        return tuple(sorted(rows, key=lambda row: -row.relative)[:count])

    def dump(self, file: TextIO) -> None:
        """Write the rows as CSV with COLUMNS, as `QuantizationDebugger.layer_statistics_dump` does."""
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for row in self.tensors:
            figures = (row.num_elements, row.stddev, row.mean_error, row.max_abs_error, row.mean_squared_error)
            writer.writerow((row.operator, row.tensor, *figures, row.scale, row.zero_point, row.name))


class _Sums:
    """Sums over the samples of one tensor."""

    def __init__(self, facts: TensorFacts) -> None:
        self.facts = facts
        self.metrics: list[tuple[float, float, float, float]] = []
        self.count, self.total, self.squares, self.network, self.beyond = 0, 0.0, 0.0, 0.0, 0
        limits = np.iinfo(facts.dtype) if facts.scale else None
        low, high = (0.0, 0.0) if limits is None else facts.real(np.array([limits.min, limits.max]))
        self.edges = np.linspace(low, high, BINS + 1) if limits is not None else np.zeros(0)
        self.float_counts, self.counts = np.zeros(BINS, np.int64), np.zeros(BINS, np.int64)

    def add(self, real: np.ndarray, own: np.ndarray, exact: np.ndarray) -> None:
        """Add a sample. real: the dequantized tensor; own: of the float operator on the same inputs; exact: of the
        float model's own run."""
        errors = real - own
        self.metrics.append(
            (float(errors.std()), float(errors.mean()), float(np.abs(errors).max()), float((errors**2).mean()))
        )
        self.count += exact.size
        self.total += float(exact.sum())
        self.squares += float((exact**2).sum())
        self.network += float(((real - exact) ** 2).sum())
        if self.edges.size:
            self.float_counts += np.histogram(np.clip(exact, self.edges[0], self.edges[-1]), self.edges)[0]
            self.counts += np.histogram(np.clip(real, self.edges[0], self.edges[-1]), self.edges)[0]
            half = self.facts.scale / 2
            self.beyond += int(((exact < self.edges[0] - half) | (exact > self.edges[-1] + half)).sum())

    def row(self, name: str, node: int | None, operator: str, tensor: int) -> TensorErrors:
        """Return the errors over all samples."""
        stddev, mean, largest, squared = np.mean(self.metrics, axis=0).tolist()
        average = self.total / self.count
        return TensorErrors(
            name,
            node,
            operator,
            tensor,
            self.count // len(self.metrics),
            stddev,
            mean,
            largest,
            squared,
            self.facts.scale,
            self.facts.zero_point,
            max(self.squares / self.count - average**2, 0.0) ** 0.5,
            (self.network / self.count) ** 0.5,
            self.beyond / self.count,
            int(np.argmax([metric[2] for metric in self.metrics])),
            tuple(self.edges.tolist()),
            tuple(self.float_counts.tolist()),
            tuple(self.counts.tolist()),
        )


class _FloatOperator:
    """The operator of the float model that computes a tensor, alone. inputs: indices of what it reads and computes not
    itself."""

    def __init__(self, side: ModelOnRunTime, node: int, tensor: int) -> None:
        assert side.model is not None
        subgraph = side.model.subgraphs[0]
        operator = subgraph.operators[node]
        self.inputs = [
            int(t)
            for t in dict.fromkeys(operator.inputs)
            if t >= 0 and side.model.tensor_data(subgraph.tensors[t]) is None
        ]
        cut = model_of(side.model, [operator], [tensor], self.inputs)
        with flags.override(compiled=False):
            self._interpreter = Interpreter(model_content=cut, custom_ops=side.custom_ops)
            self._interpreter.allocate_tensors()
        self._tensor = tensor

    def run(self, values: Mapping[int, np.ndarray]) -> np.ndarray:
        """Return the tensor in float64. values: by index."""
        details = {d["index"]: d for d in self._interpreter.get_input_details()}
        with flags.override(compiled=False):
            for index in self.inputs:
                value = values[index].astype(details[index]["dtype"])
                if tuple(details[index]["shape"]) != value.shape:
                    self._interpreter.resize_tensor_input(index, value.shape)
                    self._interpreter.allocate_tensors()
            for index in self.inputs:
                self._interpreter.set_tensor(index, values[index].astype(details[index]["dtype"]))
            self._interpreter.invoke()
        return np.asarray(self._interpreter.get_tensor(self._tensor), np.float64)


class _Pair(NamedTuple):
    """A tensor of both models. ours, theirs: indices; sums; alone: the float operator, if all that it reads is of both
    models."""

    name: str
    ours: int
    theirs: int
    sums: _Sums
    alone: _FloatOperator | None


def debug_quantization(
    quantized: str | os.PathLike[str],
    original: str | os.PathLike[str],
    data: Iterable[Mapping[str, Any] | Sequence[Any]],
    *,
    custom_ops: Iterable[Any] = (),
) -> QuantizationErrors:
    """Compare a quantized model with the float model on samples, tensor by tensor, by the reference kernels.

    quantized, original: .tflite files, whose tensors are paired by name; inputs: in order. data: samples: sequences of
    the float model's inputs in order, or mappings by name. custom_ops: as of `lite.Interpreter`

    >>> errors = ow.quantization.debug("int8.tflite", "float.tflite", [[x] for x in samples])
    >>> errors.leave_in_float()

    raises InvalidArgumentError for samples that do not match, no samples, or models without common tensors
    """
    custom_ops = [*custom_ops]
    ours = ModelOnRunTime(quantized, "reference", custom_ops)
    exact = ModelOnRunTime(original, "reference", custom_ops)
    pairs = _pairs(ours, exact)
    inputs = _input_indices(exact)
    sample_errors = []
    for sample in data:
        feeds = _feeds(exact.inputs, sample)
        others = [of.elements(array) for of, array in zip(ours.inputs, feeds)]
        outputs, inner = ours.run(others, [pair.ours for pair in pairs])
        exact_outputs, exact_inner = exact.run(feeds, [pair.theirs for pair in pairs])
        real = {pair.theirs: pair.sums.facts.real(inner[pair.ours]) for pair in pairs}
        dequantized = {i: of.real(array) for i, of, array in zip(inputs, ours.inputs, others)}
        for pair in pairs:
            if not real[pair.theirs].size:
                continue
            whole = exact_inner[pair.theirs].astype(np.float64)
            own = whole if pair.alone is None else pair.alone.run(dequantized | real)
            pair.sums.add(real[pair.theirs], own, whole)
        sample_errors.append(_largest(ours.outputs, outputs, exact_outputs))
    if not sample_errors:
        raise _error("no samples", "an empty iterable", "one sample at least")
    rows = []
    for pair in pairs:
        if pair.sums.metrics:
            node, operator = producer_of(ours, pair.ours)
            rows.append(pair.sums.row(pair.name, node, operator or "", pair.ours))
    return QuantizationErrors(str(ours), str(exact), tuple(rows), len(sample_errors), tuple(sample_errors))


def _input_indices(side: ModelOnRunTime) -> list[int]:
    assert side.model is not None
    return [int(i) for i in side.model.subgraphs[0].inputs]


def _pairs(ours: ModelOnRunTime, exact: ModelOnRunTime) -> list[_Pair]:
    """Return the tensors of both models: of a dequantized tensor, the quantized one. Raises InvalidArgumentError."""
    common = common_tensors(ours, exact)
    if not common.ours or len(ours.inputs) != len(exact.inputs):
        raise _error("the models have no inner tensors, or other inputs, in common", f"{ours}, {exact}", "one model")
    assert ours.model is not None
    facts = computed(ours)
    operators = ours.model.subgraphs[0].operators
    joined: list[tuple[str, int, int]] = []
    for i, j, of, other in zip(common.ours, common.theirs, common.facts, common.facts_b):
        node, operator = producer_of(ours, i)
        source = int(operators[node].inputs[0]) if node is not None and operator == "DEQUANTIZE" else i
        source = source if source in facts else i
        if facts[source].dtype.kind in "fiu" and other.dtype.kind == "f":
            joined.append((of.name, source, j))
    available = {j for _, _, j in joined} | set(_input_indices(exact))
    result = []
    for name, i, j in joined:
        node, _ = producer_of(exact, j)
        alone = None if node is None else _FloatOperator(exact, node, j)
        if alone is not None and not set(alone.inputs) <= available:
            alone = None
        result.append(_Pair(name, i, j, _Sums(facts[i]), alone))
    return result


def _error(what: str, value: object, expected: str) -> InvalidArgumentError:
    return InvalidArgumentError(op="quantization.debug", what=what, found=value, wanted=expected)


def _feeds(inputs: Sequence[TensorFacts], sample: Mapping[str, Any] | Sequence[Any]) -> list[np.ndarray]:
    names = [facts.name for facts in inputs]
    if isinstance(sample, Mapping):
        if set(sample) != set(names):
            raise _error("a sample has other inputs than the model", sorted(sample), str(names))
        sample = [sample[name] for name in names]
    arrays = [np.asarray(value) for value in sample]
    if [(a.dtype, a.ndim) for a in arrays] != [(facts.dtype, len(facts.shape)) for facts in inputs]:
        raise _error(
            "a sample does not match the float model's inputs",
            [f"{a.dtype}{list(a.shape)}" for a in arrays],
            str([f"{facts.dtype}{list(facts.shape)}" for facts in inputs]),
        )
    return arrays


def _largest(facts: Sequence[TensorFacts], outputs: Sequence[np.ndarray], exact: Sequence[np.ndarray]) -> float:
    """Return the largest error of one sample's outputs, relative to the largest float output."""
    errors = [
        float(np.abs(of.real(a) - b.astype(np.float64)).max(initial=0.0)) / (float(np.abs(b).max(initial=0.0)) or 1.0)
        for of, a, b in zip(facts, outputs, exact)
        if b.dtype.kind == "f" and a.shape == b.shape
    ]
    return max(errors, default=0.0)
