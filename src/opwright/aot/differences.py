"""Two models, or one model on two run times, on the same inputs: errors of outputs and inner tensors.

Lives here: `diff`, `ModelDifferences`; inputs, pairs of inputs and outputs.
Not here: errors of one tensor (tensor_differences.py), running models (model_runs.py), the search where inner tensors
cannot be read (bisection.py), the command (tools/model_diff.py).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.errors import InvalidArgumentError
from .bisection import Bisection, CommonTensors, common_tensors, producer_of
from .model_runs import ModelOnRunTime, TensorFacts, random_input
from .tensor_differences import TensorDifference, Tolerance, tensor_difference


class ModelDifferences(NamedTuple):
    """The result of `diff`. a, b: what was compared; outputs, inner: errors by tensor; complete: whether all inner
    tensors were compared, or a part in a bisection; first: the first operator that differs, or None.
    since: the last operator known to agree before `first`, where operators between them could not be compared."""

    a: str
    b: str
    outputs: tuple[TensorDifference, ...]
    inner: tuple[TensorDifference, ...]
    complete: bool
    first: TensorDifference | None
    since: int | None = None

    @property
    def agree(self) -> bool:
        """Return whether all outputs agree."""
        return all(row.agrees for row in self.outputs)


def diff(
    a: str | os.PathLike[str],
    b: str | os.PathLike[str] | None = None,
    *,
    a_runtime: str = "interpreter",
    b_runtime: str = "interpreter",
    inputs: Mapping[str, Any] | None = None,
    seed: int = 0,
    absolute: float | None = None,
    relative: float | None = None,
    inner: bool = True,
    custom_ops: Iterable[Any] = (),
    progress: Callable[[str], object] = lambda step: None,
) -> ModelDifferences:
    """Compare two models, two run times of one model, or a built library and its model on the same inputs.

    a, b: .tflite files, or folders of built libraries; b: by default the model a. a_runtime, b_runtime: "interpreter",
    "reference" (the interpreter's kernels in NumPy), "litert" (the official interpreter), "litert-builtin" (without its
    default delegate), "library:FOLDER" (built from the model). inputs: arrays by name; random with the seed where left
    out. Inputs and outputs are paired by name, or in order where the names differ; where types differ, as a model and
    its quantized form, real numbers are compared. absolute, relative: see `Tolerance`. inner: whether inner tensors are
    compared and the first operator that differs is searched. custom_ops: as of `lite.Interpreter`. progress: called
    with a text before each run

    raises InvalidArgumentError for arguments that do not match, NotFoundError for missing files, UnimplementedError
    where a run time does not run a model
    """
    custom_ops = [*custom_ops]
    if b is None and a_runtime == b_runtime:
        raise InvalidArgumentError(
            op="aot.diff",
            what="a model is compared with itself on one run time",
            found=a_runtime,
            do="b_runtime='reference'",
        )
    first = ModelOnRunTime(a, a_runtime, custom_ops)
    second = ModelOnRunTime(a if b is None else b, b_runtime, custom_ops)
    tolerance = Tolerance(absolute, relative)
    feeds = _feeds(first, inputs or {}, seed)
    in_order = _paired(first.inputs, second.inputs, "inputs")
    feeds_b = [_as(feeds[i], first.inputs[i], second.inputs[j]) for j, i in sorted((j, i) for i, j in in_order)]
    common = common_tensors(first, second) if inner else CommonTensors([], [], [], [])
    readable = first.keeps_inner_tensors and second.keeps_inner_tensors and bool(common.ours)
    sides = []
    for side, values, tensors in ((first, feeds, common.ours), (second, feeds_b, common.theirs)):
        progress(str(side))
        sides.append(side.run(values, tensors if readable else ()))
    (outputs_a, inner_a), (outputs_b, inner_b) = sides
    rows = [
        tensor_difference(
            outputs_a[i],
            first.outputs[i],
            outputs_b[j],
            second.outputs[j],
            tolerance,
            producer_of(first, first.indices[i]),
        )
        for i, j in _paired(first.outputs, second.outputs, "outputs")
    ]
    result = ModelDifferences(str(first), str(second), tuple(rows), (), readable, None)
    if readable:
        compared = [
            tensor_difference(
                inner_a[i], common.facts[n], inner_b[j], common.facts_b[n], tolerance, producer_of(first, i)
            )
            for n, (i, j) in enumerate(zip(common.ours, common.theirs))
            if i in inner_a and j in inner_b
        ]
        differing = [row for row in (*compared, *rows) if not row.agrees]
        return result._replace(
            inner=tuple(compared),
            first=min(differing, key=lambda row: -1 if row.node is None else row.node, default=None),
        )
    if result.agree or not common.ours:
        return result
    search = Bisection(first, second, feeds, feeds_b, common, tolerance, progress).search(rows)
    return result._replace(inner=search.inner, first=search.first, since=search.since)


def _paired(a: Sequence[TensorFacts], b: Sequence[TensorFacts], what: str) -> list[tuple[int, int]]:
    """Return pairs of positions: by name where both have the same names, each once; in order otherwise."""
    if len(a) != len(b):
        raise InvalidArgumentError(
            op="aot.diff",
            what=f"the models have different {what}",
            found=[t.name for t in a],
            wanted=[t.name for t in b],
        )
    names, others = [t.name for t in a], [t.name for t in b]
    if set(names) == set(others) and len(set(names)) == len(names):
        return [(i, others.index(name)) for i, name in enumerate(names)]
    return [(i, i) for i in range(len(a))]


def _feeds(side: ModelOnRunTime, arrays: Mapping[str, Any], seed: int) -> list[np.ndarray]:
    """Return the inputs of a model in order: arrays by name, random ones for the rest."""
    names = [t.name for t in side.inputs]
    unknown = [name for name in arrays if name not in names]
    if unknown:
        raise InvalidArgumentError(op="aot.diff", what="no such input", found=unknown, wanted=names)
    rng = np.random.default_rng(seed)
    feeds = []
    for facts in side.inputs:
        drawn = random_input({"dtype": facts.dtype, "shape": facts.shape}, rng)
        array = np.asarray(arrays.get(facts.name, drawn))
        if array.dtype != facts.dtype or array.ndim != len(facts.shape):
            raise InvalidArgumentError(
                op="aot.diff",
                what=f"input {facts.name!r} does not match",
                found=f"{array.dtype}{list(array.shape)}",
                wanted=f"{facts.dtype}{list(facts.shape)}",
            )
        feeds.append(array)
    return feeds


def _as(array: np.ndarray, of: TensorFacts, other: TensorFacts) -> np.ndarray:
    """Return an input as another model takes it: its real numbers, quantized as there."""
    same = (of.dtype, of.scale, of.zero_point) == (other.dtype, other.scale, other.zero_point)
    if same or of.dtype.kind in "OSU" or other.dtype.kind in "OSU":
        return array
    return other.elements(of.real(array))
