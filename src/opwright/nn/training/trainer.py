"""Trainer: compilation, metrics, and the steps on one batch.

Lives here: `compile`, the default steps, which users may override.
Not here: the loops and traced steps (loops.py), losses and metrics by output (output_metrics.py), callbacks.

A step is one traced function of a batch, for any batch size; it is traced again if the structure or other sizes change.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ... import optimizers
from ...core import flags, nest, replicas
from ...core.introspection import signature_of
from ...eager.tape import GradientTape
from ...eager.variable import Variable
from ...ops import array, math
from ...ops.lod_tensor import LoDTensor
from ..metrics.base import Mean, Metric
from ..model_config import compile_arguments, compile_config
from ..module import total
from .batches import unpack
from .loops import TracedSteps, TrainingLoops
from .output_losses import OutputLosses
from .output_metrics import OutputMetrics

if TYPE_CHECKING:
    from ...ops.tensor import Tensor


class TrainingState:
    """Arguments of `compile` and the state derived from them; not part of the model's weights."""

    def __init__(self) -> None:
        self.losses: OutputLosses | None = None
        self.metrics: OutputMetrics | None = None
        self.tracker: Mean | None = None
        self.steps = TracedSteps()
        self.arguments: dict[str, Any] = {}
        self.user_metrics: list[Metric] = []
        self.initial_epoch: int | None = (
            None  # the first epoch of a resumed `fit`, set by a callback when training begins
        )
        self.when_built: Callable[[], None] | None = None  # called once, after the weights are created


class Trainer(TrainingLoops):
    """Training methods of a model."""

    built: bool

    if TYPE_CHECKING:  # the model's

        @property
        def name(self) -> str: ...

    def _init_training(self) -> None:
        self._trainer = TrainingState()
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
        """Configure training.

        optimizer: an optimizer or its name. loss, metrics: names, functions, objects; for several outputs a list or a
        dict by output name. loss_weights: factors of the outputs' losses. weighted_metrics: metrics with weights.
        run_eagerly: do not trace the steps. steps_per_execution: the number of batches between callbacks.
        auto_scale_loss: whether models of the policy "mixed_float16" train by `LossScaleOptimizer`.
        """
        if isinstance(loss_weights, (list, tuple, dict, float, int, type(None))) is False and metrics is None:
            metrics, loss_weights = loss_weights, None
        if kwargs:
            raise ValueError(f"Unrecognized arguments of compile: {list(kwargs)}")
        self.optimizer = optimizers.get(optimizer)
        scaled = isinstance(self.optimizer, (optimizers.LossScaleOptimizer, type(None))) or not auto_scale_loss
        if self.dtype_policy.name == "mixed_float16" and not scaled:  # type: ignore[attr-defined]
            self.optimizer = optimizers.LossScaleOptimizer(self.optimizer, name="loss_scale_optimizer")
        state = self._trainer = TrainingState()
        state.arguments = {
            "optimizer": self.optimizer,
            "loss": loss,
            "metrics": metrics,
            "loss_weights": loss_weights,
            "weighted_metrics": weighted_metrics,
            "run_eagerly": run_eagerly,
            "steps_per_execution": steps_per_execution,
            "jit_compile": jit_compile,
        }
        names = self.output_names if getattr(self, "_network", None) is not None else None  # type: ignore[attr-defined]
        if loss is not None:
            state.losses = OutputLosses(loss, loss_weights, names)
        if metrics is not None or weighted_metrics is not None:
            state.metrics = OutputMetrics(metrics, weighted_metrics, names)
        state.tracker = Mean(name="loss")
        self.run_eagerly, self.steps_per_execution = bool(run_eagerly), int(steps_per_execution)
        self.stop_training, self.compiled = False, True
        self.jit_compile = jit_compile
        state.steps.jit_compile = True if jit_compile is True else None  # "auto": the default of functions

    @property
    def loss(self) -> Any:
        """Loss argument of `compile`."""
        return self._trainer.arguments.get("loss")

    def get_compile_config(self) -> dict[str, Any]:
        """Return the arguments of `compile` as plain values."""
        return compile_config(self._trainer.arguments)

    def compile_from_config(self, config: dict[str, Any]) -> None:
        """Call `compile` with the result of `get_compile_config`; but warn, if a subclass has one of its own."""
        if type(self).compile is not Trainer.compile:
            warnings.warn(
                "`compile()` was not called as part of model loading because the model's `compile()` method is custom. "
                "All subclassed Models that have `compile()` overridden should also override `get_compile_config()` "
                "and `compile_from_config(config)`. Alternatively, you can call `compile()` manually after loading.",
                stacklevel=2,
            )
            return
        self.compile(**compile_arguments(config))

    def _assert_compiled(self, method: str) -> None:
        if not self.compiled:
            raise ValueError(
                f"You must call `compile()` before calling `{method}()`: the model has no optimizer and no loss yet."
            )

    # ---- metrics ----------------------------------------------------------------------------------------------------

    @property
    def metrics(self) -> list[Any]:
        """Loss tracker, metrics of the model and its layers, and compiled metrics."""
        state, metrics = self._trainer, []
        if state.tracker is not None:
            metrics.append(state.tracker)
        for layer in self._flatten_layers():  # type: ignore[attr-defined]
            for leaf in layer._tracked() if hasattr(layer, "_tracked") else ():
                if isinstance(leaf, Metric) and not any(leaf is m for m in metrics):
                    metrics.append(leaf)
        if state.metrics is not None:
            metrics.append(state.metrics)
        return metrics + (state.losses.metrics if state.losses is not None else [])

    @property
    def metrics_names(self) -> list[str]:
        """Names of the metrics."""
        return [m.name for m in self.metrics]

    @property
    def metrics_variables(self) -> list[Variable]:
        """State variables of the metrics."""
        return [v for m in self._all_metrics() for v in m.variables]

    def _all_metrics(self) -> list[Metric]:
        return [x for m in self.metrics for x in (m.metrics if isinstance(m, OutputMetrics) else [m])]

    def reset_metrics(self) -> None:
        """Reset all metrics."""
        for metric in self._all_metrics():
            metric.reset_state()

    def get_metrics_result(self) -> dict[str, Any]:
        """Return the accumulated metrics by name: of all workers, if there are several."""
        replica = replicas.current()
        if replica is not None:
            return replica.reduced_metrics(self.metrics_variables, self._metrics_result)  # type: ignore[no-any-return]
        return self._metrics_result()

    def _metrics_result(self) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for metric in self.metrics:
            if isinstance(metric, OutputMetrics):
                values.update(metric.result())
            else:
                result = metric.result()
                values.update(result) if isinstance(result, dict) else values.update({metric.name: result})
        return values

    # ---- one step, overridable --------------------------------------------------------------------------------------

    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True
    ) -> Tensor:
        """Return the loss of a batch: the compiled losses plus those added by layers.

        raises ValueError if there is neither
        """
        losses: list[Tensor] = []
        if self._trainer.losses is not None and y is not None:
            value = self._trainer.losses(y, y_pred, sample_weight)
            if value is not None:
                losses.append(value)
        sums = [math.reduce_sum(v) for v in self.losses]  # type: ignore[attr-defined]
        losses += [array.cast(s, losses[0].dtype) for s in sums] if losses else sums
        if not losses:
            if self._trainer.losses is not None and y is None:
                raise ValueError(
                    "No loss to compute. Provide a `loss` argument in `compile()`, and targets `y` to `fit()`."
                )
            if not training:
                return array.zeros(())
            raise ValueError("No loss to compute. Provide a `loss` argument in `compile()`.")
        return total(losses)

    def compute_metrics(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None) -> dict[str, Any]:
        """Accumulate the compiled metrics of a batch, and return all metrics."""
        if self._trainer.metrics is not None and y is not None:
            self._trainer.metrics.update_state(y, y_pred, sample_weight)
        return self.get_metrics_result()

    def compiled_loss(
        self, y: Any, y_pred: Any, sample_weight: Any = None, regularization_losses: Any = None
    ) -> Tensor:
        """Return `compute_loss`, under its older name; layer losses are included."""
        return self.compute_loss(y=y, y_pred=y_pred, sample_weight=sample_weight)

    @property
    def compiled_metrics(self) -> OutputMetrics:
        """Compiled metrics as one object with `update_state`, `result` and `reset_state`, under the older name."""
        return self._trainer.metrics or OutputMetrics(None, None)

    def _compute_loss(self, x: Any, y: Any, y_pred: Any, sample_weight: Any, training: bool) -> Tensor:
        """Call `compute_loss`; pass `training` unless an override lacks it."""
        parameters = signature_of(type(self).compute_loss).parameters
        takes_mode = "training" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        mode = {"training": training} if takes_mode else {}
        return self.compute_loss(x=x, y=y, y_pred=y_pred, sample_weight=sample_weight, **mode)

    def _track(self, loss: Any, x: Any) -> None:
        assert self._trainer.tracker is not None
        first = next(part for part in nest.flatten(x) if part is not None)  # optional inputs may lack
        batch = array.shape(first)[0]
        self._trainer.tracker.update_state(loss, sample_weight=array.cast(batch, loss.dtype))

    def train_step(self, data: Any) -> dict[str, Any]:
        """Train on one batch, and return the metrics. data: see `fit`. Override it for custom training."""
        x, y, sample_weight = unpack(data)
        with GradientTape() as tape:
            y_pred = self(x, training=True)  # type: ignore[operator]
            loss = self._compute_loss(x, y, y_pred, sample_weight, training=True)
            self._track(loss, x)
            if (replica := replicas.current()) is not None:
                loss = replica.local_loss(loss)
            if self.optimizer is not None:
                loss = self.optimizer.scale_loss(loss)
        variables = self.trainable_weights
        if variables:
            if self.optimizer is None:
                raise ValueError(f"Model {self.name!r} has weights to train: pass an optimizer to `compile()`.")
            self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def test_step(self, data: Any) -> dict[str, Any]:
        """Evaluate one batch, and return the metrics."""
        x, y, sample_weight = unpack(data)
        y_pred = self(x, training=False)  # type: ignore[operator]
        self._track(self._compute_loss(x, y, y_pred, sample_weight, training=False), x)
        return self.compute_metrics(x, y, y_pred, sample_weight=sample_weight)

    def predict_step(self, data: Any) -> Any:
        """Return the outputs for one batch."""
        return self(unpack(data)[0], training=False)  # type: ignore[operator]

    # ---- the traced steps -------------------------------------------------------------------------------------------

    def make_train_function(self, force: bool = False) -> Callable[[Any], Any]:
        """Return the function of a batch that `fit` calls."""
        return self._step_function("train", force)

    def make_test_function(self, force: bool = False) -> Callable[[Any], Any]:
        """Return the function of a batch that `evaluate` calls."""
        return self._step_function("test", force)

    def make_predict_function(self, force: bool = False) -> Callable[[Any], Any]:
        """Return the function of a batch that `predict` calls."""
        return self._step_function("predict", force)

    def _step_function(self, kind: str, force: bool = False) -> Callable[[Any], Any]:
        if force:
            self._trainer.steps.discard(kind)
        return lambda data: self._run(kind, data)

    def _run(self, kind: str, data: Any, ready: Callable[[], None] | None = None) -> Any:
        """Run a step on a batch. ready: called before a step that has been traced computes."""
        step = {"train": self.train_step, "test": self.test_step, "predict": self.predict_step}[kind]
        replica = replicas.current() if kind == "train" else None
        if replica is not None:
            with replica.in_fit():
                return self._run_step(kind, step, data, ready)
        return self._run_step(kind, step, data, ready)

    def _run_step(self, kind: str, step: Callable[[Any], Any], data: Any, ready: Callable[[], None] | None) -> Any:
        if self.run_eagerly:
            return step(data)
        return self._trainer.steps.run(kind, step, data, lambda: self._prepare(kind, data), ready)

    def _prepare(self, kind: str, data: Any) -> None:
        """Create weights, metrics and optimizer state before a step is traced, unless the step is overridden."""
        defaults = {"train": Trainer.train_step, "test": Trainer.test_step, "predict": Trainer.predict_step}
        if getattr(type(self), f"{kind}_step") is not defaults[kind]:
            return
        x, y, _ = unpack(data)
        state = self._trainer
        unmatched = any(
            m is not None and getattr(m, attribute) is None
            for m, attribute in ((state.losses, "losses"), (state.metrics, "rows"))
        )
        if not self.built or (y is not None and kind != "predict" and unmatched) or self._unbuilt():
            y_pred = self._infer_outputs(x)
            if y is not None and kind != "predict":
                specs = self._specs_of(y)  # type: ignore[attr-defined]
                own_loss = type(self).compute_loss is not Trainer.compute_loss  # which may compare other outputs
                if state.losses is not None and state.losses.losses is None and not own_loss:
                    state.losses.build(specs, y_pred)
                if state.metrics is not None and state.metrics.rows is None:
                    state.metrics.build(specs, y_pred)
        if kind == "train" and self.optimizer is not None and not self.optimizer.built:
            self.optimizer.build(self.trainable_weights)
        if kind == "train" and state.when_built is not None:
            restore, state.when_built = state.when_built, None
            restore()
        if kind == "train" and (replica := replicas.current()) is not None:
            replica.synchronize(self)

    def builds_before_steps(self) -> bool:
        """Return whether weights exist before the first training step, so that restored values take effect."""
        return (
            not self.run_eagerly and not flags.run_functions_eagerly and (type(self).train_step is Trainer.train_step)
        )

    def _unbuilt(self) -> bool:
        return any(not getattr(x, "built", True) for x in self._flatten_layers())  # type: ignore[attr-defined]

    def _infer_outputs(self, x: Any) -> Any:
        """Return the outputs' specs for a batch without computing them, and create the weights.

        LoDTensors have no symbolic form: the outputs of a batch with LoDTensors are computed.
        """
        arguments = {"training": False} if self._call_spec().training else {}  # type: ignore[attr-defined]
        if any(isinstance(part, LoDTensor) for part in nest.flatten(x)):
            return self(x, **arguments)  # type: ignore[operator]
        inputs = self._specs_of(x)  # type: ignore[attr-defined]
        if not self.built:
            self._build_for((inputs,), {})  # type: ignore[attr-defined]
        return self.compute_output_spec(self._convert_argument(inputs), **arguments)  # type: ignore[attr-defined]
