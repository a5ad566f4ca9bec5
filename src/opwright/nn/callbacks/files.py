"""Callbacks that write logs, checkpoints and backups, and small ones.

Lives here: CSVLogger, LambdaCallback, TerminateOnNaN; ModelCheckpoint, BackupAndRestore.
Not here: the progress bar (base.py), the files' formats (weights_io.py).
"""

from __future__ import annotations

import csv
import os
from typing import Any

import numpy as np

from ...core import replicas
from ...core.errors import DataLossError
from ..messages import show
from ..weights_io import read_backup, write_backup
from .base import Callback, format_number
from .metric_monitors import MetricMonitor


class LambdaCallback(Callback):
    """Callback defined by functions: LambdaCallback(on_epoch_end=lambda epoch, logs: ...)."""

    def __init__(
        self,
        on_epoch_begin: Any = None,
        on_epoch_end: Any = None,
        on_train_begin: Any = None,
        on_train_end: Any = None,
        on_train_batch_begin: Any = None,
        on_train_batch_end: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        functions = {
            "on_epoch_begin": on_epoch_begin,
            "on_epoch_end": on_epoch_end,
            "on_train_begin": on_train_begin,
            "on_train_end": on_train_end,
            "on_train_batch_begin": on_train_batch_begin,
            "on_train_batch_end": on_train_batch_end,
            **kwargs,
        }
        for event, function in functions.items():
            if function is not None:
                setattr(self, event, function)


class TerminateOnNaN(Callback):
    """Callback that stops training as soon as the loss is not finite."""

    def __init__(self, raise_error: bool = False) -> None:
        super().__init__()
        self.raise_error = raise_error

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Stop training if the loss is not finite. Raises RuntimeError if raise_error is set."""
        loss = (logs or {}).get("loss")
        if loss is not None and not np.isfinite(loss):
            if self.raise_error:
                raise RuntimeError(f"NaN or Inf loss encountered at batch {batch}: {loss}")
            show(f"Batch {batch}: Invalid loss, terminating training")
            self.model.stop_training = True


class CSVLogger(Callback):
    """Callback that writes the metrics of each epoch to a CSV file."""

    def __init__(self, filename: Any, separator: str = ",", append: bool = False) -> None:
        super().__init__()
        self.filename, self.sep, self.append = os.fspath(filename), separator, append
        self._file: Any = None
        self._writer: Any = None
        self._keys: list[str] = []

    def on_train_begin(self, logs: Any = None) -> None:
        """Open the file: one worker writes it."""
        replicas.written(self._open)

    def _open(self) -> None:
        self._header = not (self.append and os.path.exists(self.filename) and os.path.getsize(self.filename))
        self._file = open(self.filename, "a" if self.append else "w", newline="")  # noqa: SIM115  closed in on_train_end
        self._writer = None

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Write a row."""
        if self._file is None:
            return
        logs = logs or {}
        if self._writer is None:
            self._keys = sorted(logs)
            if not any(key.startswith("val_") for key in logs):  # columns for validation in later epochs
                self._keys += [f"val_{key}" for key in self._keys]
            self._writer = csv.DictWriter(self._file, ["epoch", *self._keys], delimiter=self.sep, lineterminator="\n")
            if self._header:
                self._writer.writeheader()
        row: dict[str, Any] = {"epoch": epoch}
        for key in self._keys:
            value = logs.get(key, "NA")
            row[key] = value if np.ndim(value) == 0 else f'"[{", ".join(map(str, value))}]"'
        self._writer.writerow(row)
        self._file.flush()

    def on_train_end(self, logs: Any = None) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
        self._writer = None


class _BatchInterval:
    """Counts batches across epochs, also where `steps_per_execution` reports only the last one of each group."""

    def __init__(self, length: Any) -> None:
        self._length, self._passed, self._last = length, 0, -1

    def ends_with(self, batch: int) -> bool:
        """Return whether at least `length` batches have passed since this was true; length "epoch": False."""
        self._passed += batch + 1 if batch <= self._last else batch - self._last  # else of a new epoch
        self._last = batch
        if self._length == "epoch" or self._passed < self._length:
            return False
        self._passed = 0
        return True


class ModelCheckpoint(MetricMonitor):
    """Callback that saves the model or its weights, every epoch or every `save_freq` batches.

    filepath: may contain {epoch} and metrics, as in "{epoch:02d}-{val_loss:.2f}.safetensors"; with save_weights_only a
    .safetensors file. save_best_only: save only if the metric is the best so far. initial_value_threshold: the best
    value before training.
    raises ValueError for another save_freq
    """

    def __init__(
        self,
        filepath: Any,
        monitor: str = "val_loss",
        verbose: int = 0,
        save_best_only: bool = False,
        save_weights_only: bool = False,
        mode: str = "auto",
        save_freq: Any = "epoch",
        initial_value_threshold: float | None = None,
    ) -> None:
        super().__init__(monitor, mode)
        if save_freq != "epoch" and not isinstance(save_freq, int):
            raise ValueError(f"Unrecognized save_freq: {save_freq}. Expected save_freq are 'epoch' or integer values")
        self.filepath, self.verbose, self.save_best_only = os.fspath(filepath), verbose, save_best_only
        self.save_weights_only, self.save_freq, self.best = save_weights_only, save_freq, initial_value_threshold
        self._epoch, self._interval = 0, _BatchInterval(save_freq)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Record the epoch."""
        self._epoch = epoch

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Save the model if `save_freq` batches have passed."""
        if self._interval.ends_with(batch):
            self._save(self._epoch, batch, logs)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Save the model if `save_freq` is "epoch"."""
        if self.save_freq == "epoch":
            self._save(epoch, None, logs)

    def _save(self, epoch: int, batch: int | None, logs: Any) -> None:
        logs = dict(logs or {})
        values = {k: v for k, v in logs.items() if k not in ("epoch", "batch")}
        if batch is not None:
            values["batch"] = batch + 1
        try:
            path = self.filepath.format(epoch=epoch + 1, **values)
        except KeyError as error:
            raise KeyError(f'Failed to format this callback filepath: "{self.filepath}". Reason: {error}') from None
        if self.save_best_only:
            value = self._monitored_value(logs)
            if value is not None and not self._improves(value, self.best):
                if self.verbose:
                    show(f"\nEpoch {epoch + 1}: {self.monitor} did not improve from {format_number(self.best)}")
                return
            self.best = self.best if value is None else value  # without the metric, each model is saved, as in Keras
        if self.verbose:
            show(f"\nEpoch {epoch + 1}: saving model to {path}")

        def save() -> None:
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            if self.save_weights_only:
                self.model.save_weights(path, overwrite=True)
            else:
                self.model.save(path, overwrite=True)

        replicas.written(save)


class BackupAndRestore(Callback):
    """Callback that backs up training, and resumes it when `fit` is called again after a failure.

    A backup contains the weights, the optimizer's state and the number of finished epochs. An interrupted epoch
    restarts with its first batch.

    backup_dir: the folder. save_freq: "epoch", or a number of batches. double_checkpoint: keep the previous backup as
    well, in case the latest is lost. delete_checkpoint: remove the backups after successful training.
    raises ValueError for another save_freq; when training begins, for a backup of another model, and for an unbuilt
    model whose first step creates the weights (`run_eagerly`, an overridden `train_step`): build it first
    """

    def __init__(
        self, backup_dir: Any, save_freq: Any = "epoch", double_checkpoint: bool = False, delete_checkpoint: bool = True
    ) -> None:
        super().__init__()
        if save_freq != "epoch" and (not isinstance(save_freq, int) or isinstance(save_freq, bool) or save_freq < 1):
            raise ValueError(f"Unrecognized save_freq: {save_freq}. Expected save_freq are 'epoch' or integer values")
        if not backup_dir:
            raise ValueError("Empty `backup_dir` argument passed: it is the folder of the backups.")
        folder = os.fspath(backup_dir)
        self.path = os.path.join(folder, "backup.safetensors")
        self.previous = os.path.join(folder, "backup.previous.safetensors")
        self.save_freq, self.double_checkpoint = save_freq, double_checkpoint
        self.delete_checkpoint = delete_checkpoint
        self._epoch, self._interval = 0, _BatchInterval(save_freq)
        self._made_folder = not os.path.isdir(folder)  # and removes it after successful training

    def on_train_begin(self, logs: Any = None) -> None:
        """Restore the latest backup, if there is one."""
        for path in (self.path, self.previous):
            try:
                backup = read_backup(path)
            except FileNotFoundError:
                continue
            except DataLossError:
                if path == self.previous or not os.path.exists(self.previous):
                    raise
                continue
            break
        else:
            return
        model = self.model
        if model.built:
            backup.restore(model)
        elif model.builds_before_steps():
            model._trainer.when_built = lambda: backup.restore(model)
        else:
            raise ValueError(
                f"{path} cannot be restored: model {model.name!r} has no weights before its first step. "
                "Build it before `fit`"
            )
        model._trainer.initial_epoch = backup.epoch

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Record the epoch."""
        self._epoch = epoch

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Write a backup if `save_freq` batches have passed."""
        if self._interval.ends_with(batch):
            self._back_up(self._epoch)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Write a backup if `save_freq` is "epoch"."""
        if self.save_freq == "epoch":
            self._back_up(epoch + 1)

    def _back_up(self, finished: int) -> None:
        def write() -> None:
            os.makedirs(os.path.dirname(self.path) or ".", exist_ok=True)
            if self.double_checkpoint and os.path.exists(self.path):
                os.replace(self.path, self.previous)
            write_backup(self.path, self.model, finished)

        if (replica := replicas.current()) is not None:
            replica.average_statistics(self.model)
        replicas.written(write)

    def on_train_end(self, logs: Any = None) -> None:
        """Remove the backups after a successful run."""

        def remove() -> None:
            for path in (self.path, self.previous):
                if os.path.exists(path):
                    os.remove(path)
            folder = os.path.dirname(self.path)
            if self._made_folder and os.path.isdir(folder) and not os.listdir(folder):
                os.rmdir(folder)

        if self.delete_checkpoint:
            replicas.written(remove)
