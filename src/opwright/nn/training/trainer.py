"""Trainer: compile, fit, evaluate, predict.

Lives here: the methods of models that train and their defaults for one step, which users override.
Not here: batches (batches.py), losses and metrics by output (by_output.py), traced steps (steps.py), callbacks.

A step is one traced function of a batch, of any number of samples; it is traced again where the structure or the other
sizes change.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import optimizers
from ...core import nest
from ...eager.tape import GradientTape
from ...eager.variable import Variable
from ...ops import array, dispatch, math
from ..metrics.base import Mean, Metric
from .batches import Batches, batches_of, pack, split, unpack
from .by_output import OutputLosses, OutputMetrics
from .steps import Steps


class State:
    """What `compile` was given and what follows from it; no part of the model's weights."""

    def __init__(self) -> None:
        self.losses: OutputLosses | None = None
        self.metrics: OutputMetrics | None = None
        self.tracker: Mean | None = None
        self.steps = Steps()
        self.arguments: dict[str, Any] = {}
        self.user_metrics: list[Metric] = []


class Trainer:
    """The training half of a model."""

    name: Any
    built: bool

    def _init_training(self) -> None:
        self._trainer = State()
        self.optimizer: Any = None
        self.compiled = False
        self.stop_training = False
        self.run_eagerly = False
        self.steps_per_execution = 1

    # ---- compile ----------------------------------------------------------------------------------------------------

    def compile(
        self,
        optimizer: Any = "rmsprop",
        loss: Any = None,
        metrics: Any = None,
        loss_weights: Any = None,
        weighted_metrics: Any = None,
        run_eagerly: bool = False,
        steps_per_execution: int = 1,
        jit_compile: Any = "auto",
        auto_scale_loss: bool = True,
        **kwargs: Any,
    ) -> None:
        """Say how to train.

        optimizer: one, or its name. loss, metrics: names, functions, objects; for several outputs a list or a dict by
        output name. loss_weights: factors of the outputs' losses. weighted_metrics: metrics that heed sample weights.
        run_eagerly: do not trace the steps. steps_per_execution: callbacks hear of every so many batches.
        """
        if isinstance(loss_weights, (list, tuple, dict, float, int, type(None))) is False and metrics is None:
            metrics, loss_weights = loss_weights, None
        if kwargs:
            raise ValueError(f"Unrecognized arguments of compile: {list(kwargs)}")
        self.optimizer = optimizers.get(optimizer)
        state = self._trainer = State()
        state.arguments = {"optimizer": self.optimizer, "loss": loss, "metrics": metrics, "loss_weights": loss_weights,
                           "weighted_metrics": weighted_metrics, "run_eagerly": run_eagerly,
                           "steps_per_execution": steps_per_execution, "jit_compile": jit_compile}  # fmt: skip
        names = self.output_names if getattr(self, "_network", None) is not None else None  # type: ignore[attr-defined]
        if loss is not None:
            state.losses = OutputLosses(loss, loss_weights, names)
        if metrics is not None or weighted_metrics is not None:
            state.metrics = OutputMetrics(metrics, weighted_metrics, names)
        state.tracker = Mean(name="loss")
        self.run_eagerly, self.steps_per_execution = bool(run_eagerly), int(steps_per_execution)
        self.stop_training, self.compiled = False, True
        self.jit_compile = jit_compile

    @property
    def loss(self) -> Any:
        """What `compile` was given as loss."""
        return self._trainer.arguments.get("loss")

    def get_compile_config(self) -> dict[str, Any]:
        """What `compile` was given, as plain values."""
        from ..model_config import compile_config

        return compile_config(self._trainer.arguments)

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """`compile` with what `get_compile_config` gave."""
        from ..model_config import compile_arguments

        self.compile(**compile_arguments(config))

    def _assert_compiled(self, method: str) -> None:
        if not self.compiled:
            raise ValueError(f"You must call `compile()` before calling `{method}()`: the model has no optimizer and no "
                             "loss yet.")  # fmt: skip

    # ---- metrics ----------------------------------------------------------------------------------------------------

    @property
    def metrics(self) -> list[Any]:
        """The loss's mean, metrics of the model and of its layers, those that were compiled."""
        state, found = self._trainer, []
        if state.tracker is not None:
            found.append(state.tracker)
        for layer in self._flatten_layers():  # type: ignore[attr-defined]
            for leaf in layer._held() if hasattr(layer, "_held") else ():
                if isinstance(leaf, Metric) and not any(leaf is m for m in found):
                    found.append(leaf)
        if state.metrics is not None:
            found.append(state.metrics)
        return found + (state.losses.metrics if state.losses is not None else [])

    @property
    def metrics_names(self) -> list[str]:
        """Their names."""
        return [m.name for m in self.metrics]

    @property
    def metrics_variables(self) -> list[Variable]:
        """Their variables."""
        return [v for m in self._all_metrics() for v in m.variables]

    def _all_metrics(self) -> list[Metric]:
        return [x for m in self.metrics for x in (m.metrics if isinstance(m, OutputMetrics) else [m])]

    def reset_metrics(self) -> None:
        """Begin all of them anew."""
        for metric in self._all_metrics():
            metric.reset_state()

    def get_metrics_result(self) -> dict[str, Any]:
        """The figures so far, by name."""
        found: dict[str, Any] = {}
        for metric in self.metrics:
            if isinstance(metric, OutputMetrics):
                found.update(metric.results())
            else:
                result = metric.result()
                found.update(result) if isinstance(result, dict) else found.update({metric.name: result})
        return found

    # ---- one step, to be overridden ---------------------------------------------------------------------------------

    def compute_loss(self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None,
                     training: bool = True) -> Any:  # fmt: skip
        """The loss of a batch: what was compiled, plus the losses that layers added.

        raises ValueError where there is neither
        """
        found = []
        if self._trainer.losses is not None and y is not None:
            value = self._trainer.losses(y, y_pred, sample_weight)
            if value is not None:
                found.append(value)
        found += [array.cast(math.reduce_sum(v), found[0].dtype) if found else math.reduce_sum(v) for v in self.losses]  # type: ignore[attr-defined]
        if not found:
            if self._trainer.losses is not None and y is None:
                raise ValueError("No loss to compute. Provide a `loss` argument in `compile()`, and targets `y` to `fit()`.")
            if not training:
                return array.zeros(())
            raise ValueError("No loss to compute. Provide a `loss` argument in `compile()`.")
        return found[0] if len(found) == 1 else math.add_n(found)

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> dict[str, Any]:
        """Update the compiled metrics by a batch, and give all figures."""
        if self._trainer.metrics is not None and y is not None:
            self._trainer.metrics.update(y, y_pred, sample_weight)
        return self.get_metrics_result()

    def _track(self, loss: Any, x: Any) -> None:
        assert self._trainer.tracker is not None
        batch = array.shape(nest.flatten(x)[0])[0]
        self._trainer.tracker.update_state(loss, sample_weight=array.cast(batch, loss.dtype))

    def train_step(self, data: Any) -> dict[str, Any]:
        """Train by one batch; give the figures. data: see `fit`. Overridden where training goes another way."""
        x, y, sample_weight = unpack(data)
        with GradientTape() as tape:
            y_pred = self(x, training=True)  # type: ignore[operator]
            loss = self.compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=True)
            self._track(loss, x)
            if self.optimizer is not None:
                loss = self.optimizer.scale_loss(loss)
        variables = self.trainable_weights  # type: ignore[attr-defined]
        if variables:
            self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def test_step(self, data: Any) -> dict[str, Any]:
        """Judge one batch; give the figures."""
        x, y, sample_weight = unpack(data)
        y_pred = self(x, training=False)  # type: ignore[operator]
        self._track(self.compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, training=False), x)
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def predict_step(self, data: Any) -> Any:
        """Predict one batch."""
        return self(unpack(data)[0], training=False)  # type: ignore[operator]

    # ---- the traced steps -------------------------------------------------------------------------------------------

    def make_train_function(self, force: bool = False) -> Any:
        """The function of a batch that `fit` calls."""
        return self._step("train", force)

    def make_test_function(self, force: bool = False) -> Any:
        """The function of a batch that `evaluate` calls."""
        return self._step("test", force)

    def make_predict_function(self, force: bool = False) -> Any:
        """The function of a batch that `predict` calls."""
        return self._step("predict", force)

    def _step(self, kind: str, force: bool = False) -> Any:
        if force:
            self._trainer.steps.forget(kind)
        return lambda data: self._run(kind, data)

    def _run(self, kind: str, data: Any) -> Any:
        step = {"train": self.train_step, "test": self.test_step, "predict": self.predict_step}[kind]
        if self.run_eagerly:
            return step(data)
        return self._trainer.steps.run(kind, step, data, lambda: self._prepare(kind, data))

    def _prepare(self, kind: str, data: Any) -> None:
        """Make weights, metrics and the optimizer's state before a step is traced, where the defaults are in force."""
        defaults = {"train": Trainer.train_step, "test": Trainer.test_step, "predict": Trainer.predict_step}
        if getattr(type(self), f"{kind}_step") is not defaults[kind]:
            return
        x, y, _ = unpack(data)
        state = self._trainer
        unmatched = any(m is not None and getattr(m, attribute) is None
                        for m, attribute in ((state.losses, "losses"), (state.metrics, "rows")))  # fmt: skip
        if not self.built or (y is not None and kind != "predict" and unmatched) or self._unbuilt():
            y_pred = self._laid_out(x)
            if y is not None and kind != "predict":
                specs = self._specs_of(y)  # type: ignore[attr-defined]
                if state.losses is not None and state.losses.losses is None:
                    state.losses.build(specs, y_pred)
                if state.metrics is not None and state.metrics.rows is None:
                    state.metrics.build(specs, y_pred)
        if kind == "train" and self.optimizer is not None and not self.optimizer.built:
            self.optimizer.build(self.trainable_weights)  # type: ignore[attr-defined]

    def _unbuilt(self) -> bool:
        return any(not getattr(x, "built", True) for x in self._flatten_layers())  # type: ignore[attr-defined]

    def _laid_out(self, x: Any) -> Any:
        """What the model gives for such a batch, nothing computed; its weights are made."""
        inputs = self._specs_of(x)  # type: ignore[attr-defined]
        arguments = {"training": False} if self._call_spec().training else {}  # type: ignore[attr-defined]
        if not self.built:
            self._build_for((inputs,), {})  # type: ignore[attr-defined]
        return self.compute_output_spec(self._converted(inputs), **arguments)  # type: ignore[attr-defined]

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
    ) -> Any:
        """Train, and give a History.

        x, y: arrays, tensors, lists or dicts of them; or x alone: a dataset, a sequence or a generator of batches
        (x, y) or (x, y, sample_weight). batch_size: 32 by default. epochs: the number of the last epoch.
        verbose: 0 silent, 1 a bar on a terminal, 2 a line for each epoch. validation_split: the last share of arrays is
        held out. validation_data: (x, y), (x, y, sample_weight) or a dataset. shuffle: arrays, anew for each epoch;
        "batch": whole batches. class_weight, sample_weight: factors of the loss by class, by sample. steps_per_epoch,
        validation_steps: batches, where not all. validation_freq: every so many epochs, or a list of epochs.
        raises ValueError before `compile`, and for data that do not fit
        """
        from ..callbacks import CallbackList

        self._assert_compiled("fit")
        if validation_split and validation_data is None:
            (x, y, sample_weight), validation_data = split(x, y, sample_weight, validation_split)
        batches = batches_of(x, y, sample_weight, batch_size, shuffle, steps_per_epoch, class_weight)
        validation = self._validation(validation_data, validation_batch_size or batch_size, validation_steps)
        heard = CallbackList.of(callbacks, self, verbose, epochs=epochs, steps=batches.steps, history=True)
        self.stop_training = False
        heard.on_train_begin()
        logs: dict[str, Any] = {}
        for epoch in range(initial_epoch, epochs):
            self.reset_metrics()
            heard.on_epoch_begin(epoch)
            logs = self._pass("train", batches, heard)
            if not logs and not batches.samples and epoch == initial_epoch:
                raise ValueError("The dataset given to `fit` has no batch")
            if validation is not None and _due(epoch, validation_freq):
                found = self.evaluate(validation, verbose=0, callbacks=heard, return_dict=True)
                logs.update({f"val_{k}": v for k, v in found.items()})
            heard.on_epoch_end(epoch, logs)
            if self.stop_training:
                break
        if self.optimizer is not None and logs:
            self.optimizer.finalize_variable_values(self.trainable_weights)  # type: ignore[attr-defined]
        heard.on_train_end(logs)
        return heard.history

    def _validation(self, data: Any, batch_size: int | None, steps: int | None) -> Batches | None:
        if data is None:
            return None
        if isinstance(data, (tuple, list)) and not hasattr(data, "element_spec"):
            x, y, weight = unpack(tuple(data))
            return batches_of(x, y, weight, batch_size, False, steps)
        return batches_of(data, steps=steps)

    def _pass(self, kind: str, batches: Batches, heard: Any) -> dict[str, Any]:
        """Once over the data. Gives the last figures, as numbers."""
        logs: dict[str, Any] = {}
        group = self.steps_per_execution
        begin, end = getattr(heard, f"on_{kind}_batch_begin"), getattr(heard, f"on_{kind}_batch_end")
        pending = None
        result: Any = None
        step = -1
        for step, data in enumerate(batches.epoch()):
            if pending is None:
                begin(step)
                pending = step
            result = self._run(kind, data)
            if (step + 1) % group == 0:
                logs = numbers(result)
                end(step, logs)
                pending = None
                if self.stop_training:
                    break
        if pending is not None:
            logs = numbers(result)
            end(step, logs)
        return numbers(self.get_metrics_result()) if kind != "predict" and not logs and step >= 0 else logs

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
    ) -> Any:
        """The loss and the metrics over the data: numbers in a list (a number where there is one), or a dict.

        arguments: see `fit`. raises ValueError before `compile`
        """
        from ..callbacks import CallbackList

        self._assert_compiled("evaluate")
        batches = batches_of(x, y, sample_weight, batch_size, False, steps)
        heard = callbacks if isinstance(callbacks, CallbackList) else CallbackList.of(
            callbacks, self, verbose, epochs=1, steps=batches.steps)  # fmt: skip
        heard.on_test_begin()
        self.reset_metrics()
        logs = self._pass("test", batches, heard)
        heard.on_test_end(logs)
        if return_dict:
            return logs
        values = [logs[k] for k in self._in_order(logs)]
        return values[0] if len(values) == 1 else values

    def _in_order(self, logs: dict[str, Any]) -> list[str]:
        """Names of figures as `evaluate` lists them: the loss, the compiled metrics, the others by name."""
        first = ["loss"] if "loss" in logs else []
        compiled = list(self._trainer.metrics.results()) if self._trainer.metrics is not None else []
        first += [k for k in compiled if k in logs]
        return first + sorted(k for k in logs if k not in first)

    def predict(self, x: Any, batch_size: int | None = None, verbose: Any = "auto", steps: int | None = None,
                callbacks: Any = None) -> Any:  # fmt: skip
        """The outputs for all of the data, as arrays in the outputs' structure. arguments: see `fit`."""
        from ..callbacks import CallbackList

        batches = batches_of(x, None, None, batch_size, False, steps)
        heard = CallbackList.of(callbacks, self, verbose, epochs=1, steps=batches.steps)
        heard.on_predict_begin()
        parts: list[Any] = []
        for step, data in enumerate(batches.epoch()):
            heard.on_predict_batch_begin(step)
            parts.append(self._run("predict", data))
            heard.on_predict_batch_end(step, {"outputs": parts[-1]})
        heard.on_predict_end()
        if not parts:
            raise ValueError("Expect x to be a non-empty array or dataset.")
        return nest.map_structure(lambda *pieces: np.concatenate([p.numpy() for p in pieces]), *parts)

    # ---- single batches ---------------------------------------------------------------------------------------------

    def train_on_batch(self, x: Any, y: Any = None, sample_weight: Any = None, class_weight: Any = None,
                       return_dict: bool = False) -> Any:  # fmt: skip
        """Train by one batch; the figures so far: they go on until `reset_metrics`."""
        self._assert_compiled("train_on_batch")
        if class_weight is not None and sample_weight is not None:
            raise ValueError("Arguments `sample_weight` and `class_weight` cannot be specified at the same time.")
        return self._single("train", x, y, sample_weight, class_weight, return_dict)

    def test_on_batch(self, x: Any, y: Any = None, sample_weight: Any = None, return_dict: bool = False) -> Any:
        """Judge one batch; the figures so far."""
        self._assert_compiled("test_on_batch")
        return self._single("test", x, y, sample_weight, None, return_dict)

    def predict_on_batch(self, x: Any) -> Any:
        """Predict one batch, as arrays."""
        return nest.map_structure(lambda t: t.numpy(), self._run("predict", _tensors(pack(x))))

    def _single(self, kind: str, x: Any, y: Any, sample_weight: Any, class_weight: Any, return_dict: bool) -> Any:
        data = pack(x, y, sample_weight)
        if class_weight is not None:
            whole = max(len(np.asarray(a)) for a in nest.flatten(x))
            data = next(iter(batches_of(x, y, None, whole, False, None, class_weight).epoch()))
        logs = numbers(self._run(kind, _tensors(data)))
        if return_dict:
            return logs
        values = [logs[k] for k in self._in_order(logs)]
        return values[0] if len(values) == 1 else values


def numbers(logs: Any) -> dict[str, Any]:
    """Figures as Python numbers; arrays where a metric gives several."""
    found: dict[str, Any] = {}
    for key, value in (logs or {}).items():
        a = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
        found[key] = float(a) if a.ndim == 0 else a
    return found


def _tensors(data: Any) -> Any:
    from .batches import _arrays, as_array

    if isinstance(data, tuple):
        data = tuple(_arrays(d) for d in data)
    leaf = lambda v: v if v is None or hasattr(v, "_dtype") else dispatch.to_tensor(as_array(v))  # noqa: E731
    return nest.map_structure(leaf, data)


def _due(epoch: int, validation_freq: Any) -> bool:
    if isinstance(validation_freq, int):
        return (epoch + 1) % validation_freq == 0
    return epoch + 1 in validation_freq
