"""The worker's side of batch inference: open a model once, run batches, isolate the elements that fail.

Lives here: `run_task`, the call that every task makes; `BatchOutcome`, its result; the models that are open.
Not here: which batches run where (dispatcher.py), the driver's side of results (inference.py), arrays on their way
(elements.py, slots.py).

A model is opened once for each thread of a worker, since an interpreter serves one thread at a time, and its digest is
compared before. Errors travel as text: an exception object of the model's own class might not exist in the driver.
"""

from __future__ import annotations

import collections
import contextlib
import hashlib
import io
import os
import tempfile
import threading
import time
import traceback
import zipfile
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from ..core import flags
from ..core.errors import DataLossError, InvalidArgumentError, OpError
from ..core.shapes import TensorShape
from ..core.specs import TensorSpec
from ..eager.tensor import convert_to_tensor
from ..lite.interpreter import Interpreter
from ..saved import saved_model
from . import slots
from .elements import ElementColumns
from .portable_model import SAVED_MODEL, TFLITE, ModelReference, digest_of

MOST_OPEN = 4
"""Models that a thread of a worker keeps open: workers of Dask and Ray outlive jobs."""

Element = Any
"""An array or what becomes one; a tuple of them, in the order of the inputs; a dict of them, by name."""


class ErrorText(NamedTuple):
    """An exception as text. type: the name of its class."""

    type: str
    message: str
    traceback: str


class BatchOutcome(NamedTuple):
    """The result of a batch of n elements.

    names: of the outputs. stacked: an array for each output with n rows; None if elements ran one by one: then rows has
    the outputs of each element, or its error. reason: why a batch of several elements was not run as one; empty if its
    elements are to blame, or if it was. seconds: of the worker.
    """

    names: tuple[str, ...]
    stacked: list[np.ndarray] | None
    rows: list[list[np.ndarray] | ErrorText]
    reason: str
    seconds: float


class ModelNeeded(NamedTuple):
    """The outcome of a task whose worker does not see the model's file."""

    worker: str


class SlotUnseen(NamedTuple):
    """The outcome of a task whose worker cannot map the slot of its arrays, as in a container of its own."""

    worker: str


class ModelError(NamedTuple):
    """The outcome of a task whose worker cannot open the model."""

    error: ErrorText


class ModelInput(NamedTuple):
    """An input. shape: None for unknown sizes, or instead of all; the first axis may have any size."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int | None, ...] | None

    def lacks_batch_axis(self, array: np.ndarray) -> bool:
        """Return whether an element has the shape of one row of the input."""
        return self.shape is not None and array.ndim == len(self.shape) - 1

    def check(self, array: np.ndarray) -> None:
        """Raise InvalidArgumentError unless an element fits, with or without the first axis."""
        if self.shape is None:
            return
        sizes = array.shape if self.lacks_batch_axis(array) else array.shape[1:]
        if array.ndim > len(self.shape) or any(w not in (None, n) for n, w in zip_longest(sizes, self.shape[1:])):
            raise InvalidArgumentError(
                what=f"an element does not fit input {self.name!r}", found=array.shape, wanted=self.shape
            )


class _WholeInputs(Exception):
    """Elements that have the model's batch axis already; they run one by one, which is not a defect of the model."""


class OpenModel:
    """A model on a thread of a worker: inputs, names of outputs, and how to run it on whole arrays by name."""

    def __init__(self, inputs: list[ModelInput], run: Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]) -> None:
        self.inputs, self.run = inputs, run
        self.unbatched = ""  # the reason why batches fail, once each of their elements has run alone

    def arrays(self, element: Element) -> list[np.ndarray]:
        """Return the inputs of one element, in order. Raises InvalidArgumentError if they are not the model's."""
        names = [i.name for i in self.inputs]
        if isinstance(element, dict):
            if element.keys() != set(names):
                raise InvalidArgumentError(
                    what="an element has other inputs than the model", found=sorted(element), wanted=sorted(names)
                )
            values: Sequence[Any] = [element[name] for name in names]
        else:
            values = element if isinstance(element, tuple) else (element,)
        if len(values) != len(names):
            raise InvalidArgumentError(
                what="an element has another number of inputs than the model", found=len(values), wanted=names
            )
        arrays = [v if isinstance(v, np.ndarray) else np.asarray(v, i.dtype) for v, i in zip(values, self.inputs)]
        for array, model_input in zip(arrays, self.inputs):
            model_input.check(array)
        return arrays

    def columns(self, elements: ElementColumns) -> list[np.ndarray] | None:
        """Return the inputs of stacked elements, in order, unless they have another dtype or the model's first axis."""
        columns: Sequence[np.ndarray] = elements.arrays
        if not isinstance(elements.names, str):
            by_name = dict(zip(elements.names, columns))
            if by_name.keys() != {i.name for i in self.inputs}:
                return None
            columns = [by_name[i.name] for i in self.inputs]
        if len(columns) != len(self.inputs):
            return None
        for column, expected in zip(columns, self.inputs):
            if expected.dtype != column.dtype or expected.shape is None or column.ndim != len(expected.shape):
                return None
            if any(size not in (None, n) for size, n in zip(expected.shape[1:], column.shape[1:])):
                return None
        return list(columns)

    def lacks_batch_axis(self, arrays: Sequence[np.ndarray]) -> bool:
        """Return whether every input lacks the model's first axis, along which elements are stacked."""
        return all(i.lacks_batch_axis(a) for a, i in zip(arrays, self.inputs))


# ---- opening ---------------------------------------------------------------------------------------------------------

_threads = threading.local()


def open_model(reference: ModelReference, customs: tuple[Any, ...], job: str, content: Any) -> OpenModel | None:
    """Return this thread's model of a reference, opened from its file or from `content`; None if it has neither.

    customs: operators; models with some are kept for one job only, since their code may change.
    raises OpError for a damaged model
    """
    models: collections.OrderedDict[Any, OpenModel] = _threads.__dict__.setdefault("models", collections.OrderedDict())
    key = reference._replace(path=""), job if customs else ""
    if key in models:
        models.move_to_end(key)
        return models[key]
    try:
        at_path = digest_of(reference.path) == reference.digest
    except OSError:
        at_path = False
    if not at_path and content is None:
        return None
    opened = _OPENERS[reference.kind](reference, customs, None if at_path else memoryview(content))
    models[key] = opened
    while len(models) > MOST_OPEN:
        models.popitem(last=False)
    return opened


def _check(reference: ModelReference, digest: str) -> None:
    if digest != reference.digest:
        raise DataLossError(what="a model was damaged on its way to the worker", found=digest, wanted=reference.digest)


def _open_tflite(reference: ModelReference, customs: tuple[Any, ...], content: memoryview | None) -> OpenModel:
    source: dict[str, Any] = {"model_path": reference.path}
    if content is not None:
        _check(reference, hashlib.sha256(content).hexdigest())
        source = {"model_content": content}
    interpreter = Interpreter(**source, num_threads=reference.num_threads, custom_ops=list(customs))
    signatures = interpreter.get_signature_list()
    if not signatures and reference.signature is None:
        return _open_main_subgraph(interpreter)
    runner = interpreter.get_signature_runner(_only_signature(reference.signature, list(signatures)))
    details = runner.get_input_details()
    return OpenModel([_input_of(name, details[name]) for name in details], lambda inputs: runner(**inputs))


def _only_signature(key: str | None, keys: list[str]) -> str:
    if key is None and len(keys) > 1:
        raise InvalidArgumentError(what="the model has several signatures", found=keys, do=f"signature={keys[0]!r}")
    return keys[0] if key is None else key


def _input_of(name: str, detail: dict[str, Any]) -> ModelInput:
    signature = detail["shape_signature"] if len(detail["shape_signature"]) else detail["shape"]
    return ModelInput(name, np.dtype(detail["dtype"]), tuple(None if n < 0 else int(n) for n in signature))


def _open_main_subgraph(interpreter: Interpreter) -> OpenModel:
    """Return a model without signatures; its inputs and outputs have the names of their tensors."""
    details = interpreter.get_input_details()
    index = {detail["name"]: detail["index"] for detail in details}
    shapes: dict[str, tuple[int, ...]] = {}

    def run(inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        current = {name: array.shape for name, array in inputs.items()}
        if current != shapes:
            shapes.clear()  # should a resize fail, the next run resizes all
            for name, shape in current.items():
                interpreter.resize_tensor_input(index[name], shape)
            interpreter.allocate_tensors()
            shapes.update(current)
        for name, array in inputs.items():
            interpreter.set_tensor(index[name], array)
        interpreter.invoke()
        return {detail["name"]: interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()}

    return OpenModel([_input_of(detail["name"], detail) for detail in details], run)


def _open_saved_model(reference: ModelReference, customs: tuple[Any, ...], content: memoryview | None) -> OpenModel:
    if customs:
        raise InvalidArgumentError(what="a saved model has its operators by name", do="leave custom_ops out")
    if content is None:
        return _open_signature(saved_model.load(reference.path), reference.signature, reference.num_threads)
    with tempfile.TemporaryDirectory(prefix="opwright-model-") as folder:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            archive.extractall(folder)  # which writes nothing outside of the folder
        _check(reference, digest_of(folder))
        return _open_signature(saved_model.load(folder), reference.signature, reference.num_threads)


def _open_signature(loaded: Any, key: str | None, num_threads: int) -> OpenModel:
    function = loaded.signatures[_only_signature(key, list(loaded.signatures))]
    specs: dict[str, TensorSpec] = function.structured_input_signature[1]

    def run(inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        with flags.override(num_threads=num_threads) if num_threads else contextlib.nullcontext():
            outputs = function(**{name: convert_to_tensor(array) for name, array in inputs.items()})
        return {name: np.array(tensor) for name, tensor in outputs.items()}

    return OpenModel([ModelInput(name, spec.dtype.np, _sizes(spec.shape)) for name, spec in specs.items()], run)


def _sizes(shape: TensorShape) -> tuple[int | None, ...] | None:
    return None if shape.rank is None else tuple(shape.as_list())


_OPENERS = {TFLITE: _open_tflite, SAVED_MODEL: _open_saved_model}


# ---- running ---------------------------------------------------------------------------------------------------------


def run_task(
    reference: ModelReference,
    customs: tuple[Any, ...],
    job: str,
    load: Callable[[Any], Element] | None,
    elements: list[Any] | ElementColumns,
    batch: int,
    slot: slots.SlotReference | None = None,
    content: Any = None,
) -> list[BatchOutcome] | ModelNeeded | ModelError | SlotUnseen:
    """Run a model on elements, `batch` at a time; errors are part of the outcomes.

    load: the function that reads an element, on the worker; None for elements that are the inputs themselves. slot: the
    memory of the arrays that the elements have places of, and of the outputs; None if the task has the arrays.
    """
    memory = None if slot is None else slots.opened(slot)
    if slot is not None and memory is None:
        return SlotUnseen(_identity())
    try:
        model = open_model(reference, customs, job, content)
    except (OpError, ValueError, OSError, RuntimeError) as error:
        return ModelError(error_text(error))
    if model is None:
        return ModelNeeded(_identity())
    if memory is not None:
        elements = slots.get_all(memory, elements)
    outcomes = []
    for start in range(0, len(elements), batch):
        outcome = _run_batch(model, load, elements[start : start + batch])
        if memory is not None:
            outcome = outcome._replace(
                stacked=slots.put_all(memory, outcome.stacked), rows=slots.put_all(memory, outcome.rows)
            )
        outcomes.append(outcome)
    return outcomes


def _identity() -> str:
    return f"{os.uname().nodename if hasattr(os, 'uname') else ''}:{os.getpid()}"


def _run_batch(
    model: OpenModel, load: Callable[[Any], Element] | None, elements: list[Any] | ElementColumns
) -> BatchOutcome:
    start = time.perf_counter()
    reason = model.unbatched
    if isinstance(elements, ElementColumns) and load is None and not reason:
        columns = model.columns(elements)
        if columns is not None:
            try:
                names, stacked = _run_rows(model, columns)
                return BatchOutcome(names, stacked, [], "", time.perf_counter() - start)
            except (Exception, SystemExit):  # reported below, by the element
                pass
    inputs = [_inputs_of(model, element, load) for element in elements]
    if len(inputs) > 1 and not reason:
        try:
            names, stacked = _run_stacked(model, inputs)
            return BatchOutcome(names, stacked, [], "", time.perf_counter() - start)
        except _WholeInputs:
            pass
        except (Exception, SystemExit) as error:
            reason = f"{type(error).__name__}: {error}"
    output_names: tuple[str, ...] = ()
    rows: list[list[np.ndarray] | ErrorText] = []
    for arrays in inputs:
        if not isinstance(arrays, ErrorText):
            try:
                output_names, outputs = _run_one(model, arrays)
                rows.append(outputs)
                continue
            except (Exception, SystemExit) as error:
                arrays = error_text(error)
        rows.append(arrays)
    if len(rows) == 1 or any(isinstance(row, ErrorText) for row in rows) or not _same_shapes(inputs):
        reason = ""
    model.unbatched = reason
    return BatchOutcome(output_names, None, rows, reason, time.perf_counter() - start)


def error_text(error: BaseException) -> ErrorText:
    """Return an exception as text."""
    return ErrorText(type(error).__name__, str(error), "".join(traceback.format_exception(error)))


def _inputs_of(model: OpenModel, element: Any, load: Callable[[Any], Element] | None) -> list[np.ndarray] | ErrorText:
    try:
        return model.arrays(element if load is None else load(element))
    except (Exception, SystemExit) as error:  # the latter would end the driver, where the engine raises it
        return error_text(error)


def _same_shapes(inputs: Sequence[list[np.ndarray] | ErrorText]) -> bool:
    return len({tuple(a.shape for a in arrays) for arrays in inputs if not isinstance(arrays, ErrorText)}) == 1


def _run_stacked(
    model: OpenModel, inputs: list[list[np.ndarray] | ErrorText]
) -> tuple[tuple[str, ...], list[np.ndarray]]:
    """Run all elements as one batch. Raises any error if that is not possible."""
    columns: list[list[np.ndarray]] = [[] for _ in model.inputs]
    for arrays in inputs:
        if isinstance(arrays, ErrorText) or not model.lacks_batch_axis(arrays):
            raise _WholeInputs
        for column, array in zip(columns, arrays):
            column.append(array)
    return _run_rows(model, [np.stack(column) for column in columns])


def _run_rows(model: OpenModel, arrays: list[np.ndarray]) -> tuple[tuple[str, ...], list[np.ndarray]]:
    """Run stacked elements. Raises any error if that is not possible."""
    outputs = model.run({i.name: array for i, array in zip(model.inputs, arrays)})
    for name, array in outputs.items():
        if not array.ndim or len(array) != len(arrays[0]):
            raise InvalidArgumentError(
                what=f"output {name!r} has no row for each element", found=array.shape, wanted=f"{len(arrays[0])} rows"
            )
    return tuple(outputs), list(outputs.values())


def _run_one(model: OpenModel, arrays: list[np.ndarray]) -> tuple[tuple[str, ...], list[np.ndarray]]:
    """Run one element; its outputs lack the batch axis if its inputs do."""
    add_axis = model.lacks_batch_axis(arrays) and bool(arrays)
    outputs = model.run({i.name: a[np.newaxis] if add_axis else a for i, a in zip(model.inputs, arrays)})
    if add_axis:
        return tuple(outputs), [a[0] if a.ndim and len(a) == 1 else a for a in outputs.values()]
    return tuple(outputs), list(outputs.values())
