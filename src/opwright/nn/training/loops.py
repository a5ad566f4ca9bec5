"""Training loops: fit, evaluate, predict, and their forms for single batches.

Lives here: the loops over batches; a model's train, test and predict steps as traced functions.
Not here: the steps (trainer.py), the batches (batches.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ...autograph.api import convert_if_enabled
from ...core import flags, nest, replicas
from ...core.specs import TensorSpec
from ...ops import array, dispatch
from ...ops.lod_tensor import LoDTensor, LoDTensorSpec
from ...ops.ragged import RaggedTensor
from ...tracing.dispatch_table import RetraceDetector
from ...tracing.function import Function
from .. import backend
from .batches import Batches, Lookahead, _as_arrays, as_array, batches_of, pack, split, unpack

if TYPE_CHECKING:
    from ...eager.variable import Variable
    from ..callbacks.base import History

T = TypeVar("T")


class TracedSteps:
    """Traced functions by kind of step and structure of a batch; the batch size is free.

    jit_compile: whether they are compiled to machine code, for each batch size.
    """

    def __init__(self, jit_compile: bool | None = None) -> None:
        self.jit_compile = jit_compile
        self._functions: dict[Any, tuple[Function[..., Any], Any]] = {}

    def discard(self, kind: str) -> None:
        """Discard the traces after a change of the model."""
        self._functions = {k: v for k, v in self._functions.items() if k[0] != kind}

    def graph(self, kind: str) -> Any:
        """Return the graph of the step that was traced first, None if none was."""
        functions = [function for key, (function, _) in self._functions.items() if key[0] == kind]
        return functions[0].get_concrete_function().graph if functions else None

    def run(
        self,
        kind: str,
        step: Callable[[Any], T],
        data: Any,
        prepare: Callable[[], None],
        ready: Callable[[], None] | None = None,
    ) -> T:
        """Run a step on a batch, tracing it first if necessary. prepare: called before tracing; ready: before a step
        that is traced."""
        if flags.run_functions_eagerly:
            return step(data)
        flat = nest.flatten(data)
        tensors = [t for t in flat if t is not None]
        replica = replicas.current()
        key = (
            kind,
            replica,
            _structure_key(data),
            tuple(
                [
                    (
                        t.dtype.name,
                        t.shape.dims[1:],
                        len(t.shape.dims),
                        t.lod_level if isinstance(t, LoDTensor) else None,
                    )
                    for t in tensors
                ]
            ),
        )
        entry = self._functions.get(key)
        if entry is None:
            prepare()
            entry = self._functions[key] = self._make(kind, step, data, flat, tensors), None
        elif ready is not None:
            ready()
        result: T = entry[0](*tensors)
        return result

    def _make(
        self, kind: str, step: Callable[[Any], Any], data: Any, flat: list[Any], tensors: list[Any]
    ) -> Function[..., Any]:
        present = [t is not None for t in flat]

        def traced(*tensor_arguments: Any) -> Any:
            remaining = iter(tensor_arguments)
            leaves = [next(remaining) if is_present else None for is_present in present]
            return convert_if_enabled(step)(nest.pack_sequence_as(data_form, leaves))

        data_form = nest.map_structure(lambda t: None if t is None else 0, data)
        specs = [_spec_of(t) for t in tensors]
        # Workers that switch to machine code at different steps would drift apart by rounding: compile at once.
        jit_compile = True if self.jit_compile is None and replicas.current() is not None else self.jit_compile
        function = Function(traced, specs, jit_compile=jit_compile, name=f"{kind}_step")
        function._detector = RetraceDetector()  # each is traced once: no warning about retracing
        return function


def _spec_of(x: Any) -> LoDTensorSpec | TensorSpec:
    shape = (None, *x.shape.dims[1:]) if x.shape.dims else ()
    return LoDTensorSpec(shape, x.dtype, x.lod_level) if isinstance(x, LoDTensor) else TensorSpec(shape, x.dtype)


def _structure_key(data: Any) -> tuple[Any, ...] | bool:
    """Return a hashable key of a structure."""
    if isinstance(data, dict):
        return ("dict", *((k, _structure_key(data[k])) for k in sorted(data)))
    if isinstance(data, (list, tuple)):
        return (type(data).__name__, *map(_structure_key, data))
    return data is None


class TrainingLoops:
    """Loops over batches of a trainable model; the steps are the trainer's."""

    name: Any
    optimizer: Any
    stop_training: bool
    steps_per_execution: int
    _trainer: Any
    _run: Any
    _assert_compiled: Any
    reset_metrics: Any
    metrics: Any
    get_metrics_result: Any

    if TYPE_CHECKING:

        @property
        def trainable_weights(self) -> list[Variable]: ...

    # ---- fit, evaluate, predict -------------------------------------------------------------------------------------

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: Any = "auto",
        callbacks: Any = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: Any = True,
        class_weight: dict[int, float] | None = None,
        sample_weight: Any = None,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        validation_steps: int | None = None,
        validation_batch_size: int | None = None,
        validation_freq: Any = 1,
    ) -> History | None:
        """Train the model, and return a History.

        x, y: arrays, tensors, lists or dicts of them; or only x: a dataset, a sequence or a generator of batches (x, y)
        or (x, y, sample_weight). batch_size: 32 by default. epochs: the number of the last epoch. verbose: 0 silent, 1
        a bar on a terminal, 2 a line per epoch. validation_split: the fraction of arrays, at their end, for validation.
        validation_data: (x, y), (x, y, sample_weight) or a dataset. shuffle: whether to shuffle arrays in each epoch;
        "batch": shuffle whole batches. class_weight, sample_weight: factors of the loss by class, by sample.
        steps_per_epoch, validation_steps: limits on batches. validation_freq: a period in epochs, or a list of epochs.
        raises ValueError before `compile`, and for inconsistent data
        """
        from ..callbacks import CallbackList

        self._assert_compiled("fit")
        if validation_split and validation_data is None:
            (x, y, sample_weight), validation_data = split(x, y, sample_weight, validation_split)
        epochs = min(epochs, backend.LIMITS["epochs"] or epochs)
        batches = batches_of(
            x, y, sample_weight, batch_size, shuffle, steps_per_epoch, class_weight, self.steps_per_execution
        )
        validation = self._validation(validation_data, validation_batch_size or batch_size, validation_steps)
        callback_list = CallbackList.of(callbacks, self, verbose, epochs=epochs, steps=batches.steps, history=True)
        replica = replicas.current()
        if replica is not None:
            batches = replica.shared_batches(batches)
        self.stop_training = False
        self._trainer.initial_epoch = self._trainer.when_built = None
        callback_list.on_train_begin()
        if self._trainer.initial_epoch is not None:
            initial_epoch = self._trainer.initial_epoch
        logs: dict[str, Any] = {}
        for epoch in range(initial_epoch, epochs):
            self.reset_metrics()
            callback_list.on_epoch_begin(epoch)
            logs = self._run_epoch("train", batches, callback_list)
            if replica is not None:
                replica.average_statistics(self)
            if not logs and not batches.samples and epoch == initial_epoch:
                raise ValueError("The dataset passed to `fit` has no batch")
            if validation is not None and _validates(epoch, validation_freq):
                validation_logs: Any = self.evaluate(validation, verbose=0, callbacks=callback_list, return_dict=True)
                logs = dict(sorted({**logs, **{f"val_{k}": v for k, v in validation_logs.items()}}.items()))
            callback_list.on_epoch_end(epoch, logs)
            if self.stop_training:
                break
        if self.optimizer is not None and logs:
            self.optimizer.finalize_variable_values(self.trainable_weights)
        callback_list.on_train_end(logs)
        return callback_list.history

    def _validation(self, data: Any, batch_size: int | None, steps: int | None) -> Batches | None:
        if data is None:
            return None
        if isinstance(data, (tuple, list)) and not hasattr(data, "element_spec"):
            x, y, weight = unpack(tuple(data))
            return batches_of(x, y, weight, batch_size, False, steps, group=self.steps_per_execution)
        return batches_of(data, steps=steps, group=self.steps_per_execution)

    def _run_epoch(self, kind: str, batches: Batches, callback_list: Any) -> dict[str, Any]:
        """Run one epoch over the batches, and return the final metrics as numbers."""
        logs: dict[str, Any] = {}
        group = self.steps_per_execution
        begin, end = getattr(callback_list, f"on_{kind}_batch_begin"), getattr(callback_list, f"on_{kind}_batch_end")
        pending = None
        result: Any = None
        step = -1
        replica = None if kind == "predict" else replicas.current()
        with Lookahead(batches.epoch(), batches.steps) as source:
            for step, data in enumerate(source):
                if replica is not None and not replica.begin_step(kind, batches, self):
                    step -= 1
                    break
                if pending is None:
                    begin(step)
                    pending = step
                result = self._run(kind, data, source.start)
                source.settle()
                if replica is not None:
                    result = replica.end_step(kind, self, result)
                if (step + 1) % group == 0:
                    logs = to_numbers(result)
                    end(step, logs)
                    pending = None
                    if self.stop_training:
                        break
        if pending is not None:
            logs = to_numbers(result)
            end(pending + group - 1, logs)
        return to_numbers(self.get_metrics_result()) if kind != "predict" and not logs and step >= 0 else logs

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: Any = "auto",
        sample_weight: Any = None,
        steps: int | None = None,
        callbacks: Any = None,
        return_dict: bool = False,
        **kwargs: Any,
    ) -> float | list[Any] | dict[str, Any]:
        """Return loss and metrics over the data: a list of numbers (a single number if there is one), or a dict.

        Arguments: see `fit`. Raises ValueError before `compile`.
        """
        from ..callbacks import CallbackList

        self._assert_compiled("evaluate")
        batches = batches_of(x, y, sample_weight, batch_size, False, steps, group=self.steps_per_execution)
        callback_list = (
            callbacks
            if isinstance(callbacks, CallbackList)
            else CallbackList.of(callbacks, self, verbose, epochs=1, steps=batches.steps)
        )
        callback_list.on_test_begin()
        self.reset_metrics()
        replica = replicas.current()
        if replica is not None:
            batches = replica.shared_batches(batches)
        batches.restart()
        logs = self._run_epoch("test", batches, callback_list)
        callback_list.on_test_end(logs)
        if return_dict:
            return logs
        values = [logs[k] for k in self._ordered_names(logs)]
        return values[0] if len(values) == 1 else values

    def _ordered_names(self, logs: dict[str, Any]) -> list[str]:
        """Return metric names in the order of `evaluate`: in the order of the metrics, then sorted."""
        names = [metric.name for m in self.metrics for metric in getattr(m, "metrics", None) or [m]]
        first = list(dict.fromkeys(n for n in names if n in logs))
        return first + sorted(k for k in logs if k not in first)

    def predict(
        self,
        x: Any,
        batch_size: int | None = None,
        verbose: Any = "auto",
        steps: int | None = None,
        callbacks: Any = None,
    ) -> Any:
        """Return the outputs for all data as arrays, in the outputs' structure. Arguments: see `fit`.

        Each of several workers computes a part of each batch, and returns the outputs of all.
        """
        from ..callbacks import CallbackList

        group = self.steps_per_execution
        batches = batches_of(x, None, None, batch_size, False, steps, group=group)
        callback_list = CallbackList.of(callbacks, self, verbose, epochs=1, steps=batches.steps)
        replica = replicas.current()
        if replica is not None:
            batches = replica.shared_batches(batches, whole_rests=True)
        callback_list.on_predict_begin()
        parts: list[Any] = []
        with Lookahead(batches.epoch(), batches.steps) as source:
            first, step = 0, -1
            for step, data in enumerate(source):
                if step % group == 0:
                    callback_list.on_predict_batch_begin(step)
                    first = len(parts)
                outputs = self._run("predict", data, source.start)
                source.settle()
                parts.append(outputs if replica is None else replica.gathered_outputs(outputs, batches))
                if (step + 1) % group == 0:
                    callback_list.on_predict_batch_end(step, {"outputs": _joined(parts[first:])})
            if (step + 1) % group:
                callback_list.on_predict_batch_end(
                    step // group * group + group - 1, {"outputs": _joined(parts[first:])}
                )
        callback_list.on_predict_end()
        if not parts:
            raise ValueError("Expect x to be a non-empty array or dataset.")
        return nest.map_structure(_stacked, *parts)

    # ---- single batches ---------------------------------------------------------------------------------------------

    def train_on_batch(
        self, x: Any, y: Any = None, sample_weight: Any = None, class_weight: Any = None, return_dict: bool = False
    ) -> float | list[Any] | dict[str, Any]:
        """Train on one batch, and return its metrics. Arguments: see `fit`."""
        self._assert_compiled("train_on_batch")
        if class_weight is not None and sample_weight is not None:
            raise ValueError("Arguments `sample_weight` and `class_weight` cannot be specified at the same time.")
        return self._run_single("train", x, y, sample_weight, class_weight, return_dict)

    def test_on_batch(
        self, x: Any, y: Any = None, sample_weight: Any = None, return_dict: bool = False
    ) -> float | list[Any] | dict[str, Any]:
        """Evaluate one batch, and return its metrics."""
        self._assert_compiled("test_on_batch")
        return self._run_single("test", x, y, sample_weight, None, return_dict)

    def predict_on_batch(self, x: Any) -> Any:
        """Return the outputs for one batch as arrays."""
        return nest.map_structure(lambda t: t.numpy(), self._run("predict", _tensors(pack(x))))

    def _run_single(
        self, kind: str, x: Any, y: Any, sample_weight: Any, class_weight: Any, return_dict: bool
    ) -> float | list[Any] | dict[str, Any]:
        data = pack(x, y, sample_weight)
        if class_weight is not None:
            batch_size = max(len(np.asarray(a)) for a in nest.flatten(x))
            data = next(iter(batches_of(x, y, None, batch_size, False, None, class_weight).epoch()))
        self.reset_metrics()
        logs = to_numbers(self._run(kind, _tensors(data)))
        if return_dict:
            return logs
        values = [logs[k] for k in self._ordered_names(logs)]
        return values[0] if len(values) == 1 else values


def _stacked(*pieces: Any) -> Any:
    """Return the outputs of all batches as an array; ragged if their shapes differ beyond the batch."""
    if len({tuple(piece.shape[1:]) for piece in pieces}) > 1:
        return array.concat([RaggedTensor.from_tensor(piece) for piece in pieces], 0)
    return np.concatenate([piece.numpy() for piece in pieces])


def _joined(parts: list[Any]) -> Any:
    """Return outputs of several batches as those of one."""
    if len(parts) == 1:
        return parts[0]
    if len({tuple(piece.shape[1:]) for piece in nest.flatten(parts)}) > 1:
        return nest.map_structure(_stacked, *parts)
    return nest.map_structure(lambda *pieces: array.concat(list(pieces), 0), *parts)


def to_numbers(logs: Any) -> dict[str, Any]:
    """Convert metrics to Python numbers by name; vector metrics become arrays, and dicts are merged."""
    values: dict[str, Any] = {}
    for key, value in sorted((logs or {}).items()):
        if isinstance(value, dict):
            values.update(to_numbers(value))
            continue
        a = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
        values[key] = float(a) if a.ndim == 0 else a
    return values


def _tensors(data: Any) -> Any:
    if isinstance(data, tuple):
        data = tuple(_as_arrays(d) for d in data)
    leaf = lambda v: v if v is None or hasattr(v, "_dtype") else dispatch.to_tensor(as_array(v))  # noqa: E731
    return nest.map_structure(leaf, data)


def _validates(epoch: int, validation_freq: Any) -> bool:
    if isinstance(validation_freq, int):
        return (epoch + 1) % validation_freq == 0
    return epoch + 1 in validation_freq
