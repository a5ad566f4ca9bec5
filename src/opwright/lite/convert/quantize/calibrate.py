"""Calibration: the float model runs over representative data, and the range of every tensor is noted.

Lives here: `calibrate`.  Not here: what a sample may look like (dataset.py), what ranges are for (plan.py).

Each node is watched as it runs, in every subgraph: a loop's body is seen in each of its turns, a branch when taken.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ....core.dtypes import float32
from ....core.errors import InvalidArgumentError, NotFoundError
from ....graph import Value
from ...format import Model
from ...interpreter import Interpreter, OpResolverType
from ...ops.module import LiteModule
from ..export import Export
from .calibrated_graph import Range
from .dataset import samples

QUIET_SECONDS = 1.0  # nobody is shown progress of what is over sooner


def calibrate(module: LiteModule, dataset: Any, custom_ops: Any = (), op_resolver: Any = None) -> dict[Value, Range]:
    """Return the least and greatest element of each float32 value that was computed, in every graph.

    raises InvalidArgumentError for no samples, samples that do not fit the model, and tensors that hold NaN or
    infinity, which it names
    """
    exported = Export(module)
    model = Model.read(exported.model.to_bytes())
    seen: list[dict[int, Range]] = [{} for _ in model.subgraphs]
    reference = OpResolverType.BUILTIN_REF  # every tensor is looked at
    with Interpreter(
        model_content=model, custom_ops=custom_ops, op_resolver=op_resolver, experimental_op_resolver_type=reference
    ) as interpreter:
        for ranges, subgraph in zip(seen, interpreter._subgraphs):
            subgraph.observe(_observer(subgraph, ranges))
        count, show, met = 0, _Progress(), set()
        try:
            for sample in samples(dataset, model):
                _run(interpreter, seen, sample.subgraph, sample.arrays, count)
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
    return {value: seen[s][t] for value, (s, t) in exported.tensors.items() if t in seen[s]}


def _run(
    interpreter: Interpreter, seen: list[dict[int, Range]], index: int, arrays: Iterable[tuple[int, Any]], number: int
) -> None:
    try:
        arrays = list(arrays)
        for t, array in arrays:
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
        for t, array in arrays:
            interpreter._set(t, array, index)
            _note(seen[index], subgraph.tensors[t])
        subgraph.invoke()
    except InvalidArgumentError as error:
        raise InvalidArgumentError(
            what=f"calibration stopped at sample {number} of converter.representative_dataset: {error.message}"
        ) from error


def _observer(subgraph: Any, ranges: dict[int, Range]) -> Callable[[Any, bool], None]:
    """Notes the ranges of what each node reads from outside, before it runs, and of what it has written."""
    outer = set(subgraph.inputs)

    def observe(node: Any, done: bool) -> None:
        for t in node.tensors_out if done else node.tensors_in:
            if t is not None and (done or t.index in outer):
                _note(ranges, t)

    return observe


def _note(ranges: dict[int, Range], t: Any) -> None:
    array = t.array
    if t.dtype is not float32 or array is None or not array.size:
        return
    low, high = float(array.min()), float(array.max())
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


class _Progress:
    """A line on stderr with the number of samples, on terminals, from the first second on."""

    def __init__(self) -> None:
        self.since = time.monotonic()
        self.bar: Any = None
        self.task: Any = None
        self.shown = sys.stderr.isatty()

    def at(self, count: int) -> None:
        """So many samples are done."""
        if not self.shown or (self.bar is None and time.monotonic() - self.since < QUIET_SECONDS):
            return
        if self.bar is None:
            self.bar = self._made()
            self.task = self.bar.add_task("calibrating", total=None)
            self.bar.start()
        self.bar.update(self.task, completed=count)

    @staticmethod
    def _made() -> Any:
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        return Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            TextColumn("{task.completed} samples"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self.bar is not None:
            self.bar.stop()
