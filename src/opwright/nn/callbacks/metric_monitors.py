"""Callbacks that monitor a metric or set the learning rate.

Lives here: MetricMonitor, EarlyStopping, ReduceLROnPlateau, LearningRateScheduler.
Not here: checkpoints of models (files.py).
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import keras_ops
from ..messages import show
from .base import Callback


class MetricMonitor(Callback):
    """Base class of callbacks that monitor a metric.

    monitor: its name. mode: "min", "max", or "auto", which decides by the metric, and by its name: "max" for accuracies
    and similar metrics, "min" for losses and the other metrics of the model.
    raises ValueError, when training reports it, for a name of which that is unknown
    """

    def __init__(self, monitor: str, mode: str, min_delta: float = 0.0) -> None:
        super().__init__()
        self.monitor, self.mode, self.min_delta = monitor, mode if mode in ("min", "max") else "auto", abs(min_delta)
        self._up: bool | None = {"min": False, "max": True}.get(self.mode)

    def _maximizes(self) -> bool:
        """Return whether larger values are better."""
        if self._up is None:
            name, names = self.monitor.removeprefix("val_"), []
            for metric in getattr(self.model, "metrics", ()):
                for leaf in getattr(metric, "metrics", None) or [metric]:
                    names.append(getattr(leaf, "name", None))
                    if names[-1] == name and getattr(leaf, "_maximizes", None):
                        self._up = leaf._maximizes == "up"
            if self._up is None:
                self._up = bool(re.search(r"acc|auc|precision|recall|f1|fbeta|iou|positives$|r2|similarity", name))
                self._up = self._up and not name.startswith("false") and not name.endswith("loss")
                is_known = self._up or name.endswith("loss") or any(n and name.endswith(n) for n in names)
                if not is_known:
                    self._up = None
                    raise ValueError(
                        f"{type(self).__name__} callback received monitor={self.monitor}, a metric of which it is "
                        "unknown whether larger values are better. Pass `mode='max'` or `mode='min'`."
                    )
        return self._up

    @property
    def monitor_op(self) -> Any:
        """The comparison of a better value with a worse one: `keras.ops.greater` or `less`."""
        return keras_ops.greater if self._maximizes() else keras_ops.less

    def _improves(self, value: Any, best: Any) -> bool:
        if best is None:
            return True
        return bool(value - self.min_delta > best) if self._maximizes() else bool(value + self.min_delta < best)

    def _monitored_value(self, logs: Any) -> float | None:
        self._maximizes()  # raises an error for an unknown name
        value = (logs or {}).get(self.monitor)
        if value is None:
            warnings.warn(
                f"{type(self).__name__} is conditioned on metric `{self.monitor}` which is not available. "
                f"Available metrics are: {','.join(logs or {})}",
                stacklevel=3,
            )
        return value


class EarlyStopping(MetricMonitor):
    """Callback that stops training when a metric has not improved by min_delta for more than `patience` epochs.

    baseline: a value that it must improve on. restore_best_weights: restore the weights of the best epoch.
    start_from_epoch: the first epoch that counts.
    """

    def __init__(
        self,
        monitor: str = "val_loss",
        min_delta: float = 0,
        patience: int = 0,
        verbose: int = 0,
        mode: str = "auto",
        baseline: float | None = None,
        restore_best_weights: bool = False,
        start_from_epoch: int = 0,
    ) -> None:
        super().__init__(monitor, mode, min_delta)
        self.patience, self.verbose, self.baseline = patience, verbose, baseline
        self.restore_best_weights, self.start_from_epoch = restore_best_weights, start_from_epoch
        self.wait = self.stopped_epoch = self.best_epoch = 0
        self.best: Any = None
        self.best_weights: Any = None

    def on_train_begin(self, logs: Any = None) -> None:
        """Reset the counters."""
        self.wait = self.stopped_epoch = self.best_epoch = 0
        self.best = self.best_weights = None

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Check the monitored metric."""
        value = self._monitored_value(logs)
        if value is None or epoch < self.start_from_epoch:
            return
        if self.restore_best_weights and self.best_weights is None:
            self.best_weights, self.best_epoch = self.model.get_weights(), epoch
        self.wait += 1
        if self._improves(value, self.best):
            self.best, self.best_epoch = value, epoch
            if self.restore_best_weights:
                self.best_weights = self.model.get_weights()
            if self.baseline is None or self._improves(value, self.baseline):
                self.wait = 0
            return
        if self.wait >= self.patience and epoch > 0:
            self.stopped_epoch = epoch
            self.model.stop_training = True

    def on_train_end(self, logs: Any = None) -> None:
        """Report the epoch of the stop, and restore the best weights."""
        if self.stopped_epoch > 0 and self.verbose > 0:
            show(f"Epoch {self.stopped_epoch + 1}: early stopping")
        if self.restore_best_weights and self.best_weights is not None:
            if self.verbose > 0:
                show(f"Restoring model weights from the end of the best epoch: {self.best_epoch + 1}.")
            self.model.set_weights(self.best_weights)


def current_learning_rate(model: Any) -> float:
    """Return the learning rate of the next step."""
    return float(np.asarray(model.optimizer.learning_rate.numpy()))


class LearningRateScheduler(Callback):
    """Callback that sets the learning rate of each epoch to schedule(epoch, rate) or schedule(epoch).

    raises ValueError if the optimizer has no learning rate, or the schedule returns no float
    """

    def __init__(self, schedule: Callable[..., float], verbose: int = 0) -> None:
        super().__init__()
        self.schedule, self.verbose = schedule, verbose

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Set the learning rate for the epoch."""
        if not hasattr(self.model.optimizer, "learning_rate"):
            raise ValueError('Optimizer must have a "learning_rate" attribute.')
        try:
            rate = self.schedule(epoch, current_learning_rate(self.model))
        except TypeError:
            rate = self.schedule(epoch)
        if not isinstance(rate, (float, np.floating)):
            raise ValueError(f"The output of the `schedule` function should be a float. Got: {rate}")
        self.model.optimizer.learning_rate = float(rate)
        if self.verbose > 0:
            show(f"\nEpoch {epoch + 1}: LearningRateScheduler setting learning rate to {rate}.")

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Add the learning rate to the logs."""
        if logs is not None:
            logs["learning_rate"] = current_learning_rate(self.model)


class ReduceLROnPlateau(MetricMonitor):
    """Callback that multiplies the learning rate by `factor` when a metric has not improved for `patience` epochs.

    cooldown: the number of epochs after a reduction that do not count. min_lr: the lower bound of the rate.
    raises ValueError for a factor of 1 or more
    """

    def __init__(
        self,
        monitor: str = "val_loss",
        factor: float = 0.1,
        patience: int = 10,
        verbose: int = 0,
        mode: str = "auto",
        min_delta: float = 1e-4,
        cooldown: int = 0,
        min_lr: float = 0.0,
        **kwargs: Any,
    ) -> None:
        if factor >= 1.0:
            raise ValueError(f"ReduceLROnPlateau does not support a factor >= 1.0. Received factor={factor}")
        super().__init__(monitor, mode, min_delta)
        self.factor, self.patience, self.verbose = factor, patience, verbose
        self.cooldown, self.min_lr = cooldown, min_lr
        self.cooldown_counter = self.wait = 0
        self.best: Any = None

    def on_train_begin(self, logs: Any = None) -> None:
        """Reset the counters."""
        self.cooldown_counter = self.wait = 0
        self.best = None

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Check the monitored metric."""
        if logs is not None:
            logs["learning_rate"] = current_learning_rate(self.model)
        value = self._monitored_value(logs)
        if value is None:
            return
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.wait = 0
        if self._improves(value, self.best):
            self.best, self.wait = value, 0
        elif self.cooldown_counter <= 0:
            self.wait += 1
            old = float(current_learning_rate(self.model))
            if self.wait >= self.patience and old > np.float32(self.min_lr):
                new = max(old * self.factor, self.min_lr)
                self.model.optimizer.learning_rate = new
                if self.verbose > 0:
                    show(f"\nEpoch {epoch + 1}: ReduceLROnPlateau reducing learning rate to {new}.")
                self.cooldown_counter, self.wait = self.cooldown, 0
