"""Callbacks that keep models, or weights, as training goes.

Lives here: ModelCheckpoint, BackupAndRestore.  Not here: the files (weights_io.py).
"""

from __future__ import annotations

import os
from typing import Any

from ..training.progress import figure
from .base import Callback
from .watching import Watching


class ModelCheckpoint(Watching):
    """Keep the model, or its weights, every epoch or every `save_freq` batches.

    filepath: may have {epoch} and figures in it, as "{epoch:02d}-{val_loss:.2f}.safetensors"; with save_weights_only a
    .safetensors file. save_best_only: only where the figure is the best so far. initial_value_threshold: the best
    before training.
    raises ValueError for another save_freq
    """

    def __init__(self, filepath: Any, monitor: str = "val_loss", verbose: int = 0, save_best_only: bool = False,
                 save_weights_only: bool = False, mode: str = "auto", save_freq: Any = "epoch",
                 initial_value_threshold: float | None = None) -> None:  # fmt: skip
        super().__init__(monitor, mode)
        if save_freq != "epoch" and not isinstance(save_freq, int):
            raise ValueError(f"Unrecognized save_freq: {save_freq}. Expected save_freq are 'epoch' or integer values")
        self.filepath, self.verbose, self.save_best_only = os.fspath(filepath), verbose, save_best_only
        self.save_weights_only, self.save_freq, self.best = save_weights_only, save_freq, initial_value_threshold
        self._epoch = self._batches = 0

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Note the epoch."""
        self._epoch = epoch

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Keep it, where this is the batch."""
        self._batches += 1
        if isinstance(self.save_freq, int) and self._batches % self.save_freq == 0:
            self._save(self._epoch, batch, logs)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Keep it."""
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
            value = self._figure(logs)
            if value is None:
                return
            if not self._better(value, self.best):
                if self.verbose:
                    print(f"\nEpoch {epoch + 1}: {self.monitor} did not improve from {figure(self.best)}")
                return
            self.best = value
        if self.verbose:
            print(f"\nEpoch {epoch + 1}: saving model to {path}")
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        if self.save_weights_only:
            self.model.save_weights(path, overwrite=True)
        else:
            self.model.save(path, overwrite=True)


class BackupAndRestore(Callback):
    """Keep weights and the epoch after each epoch, and go on from there when `fit` is called again after a failure.

    backup_dir: where. delete_checkpoint: when training ends well.
    """

    def __init__(self, backup_dir: Any, save_freq: Any = "epoch", double_checkpoint: bool = False,
                 delete_checkpoint: bool = True) -> None:  # fmt: skip
        super().__init__()
        self.path = os.path.join(os.fspath(backup_dir), "backup.safetensors")
        self.delete_checkpoint = delete_checkpoint

    def on_train_begin(self, logs: Any = None) -> None:
        """Go on from the last backup, if there is one and the weights are made."""
        if os.path.exists(self.path) and self.model.built:
            self.model.load_weights(self.path)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Keep the weights."""
        os.makedirs(os.path.dirname(self.path) or ".", exist_ok=True)
        self.model.save_weights(self.path, overwrite=True)

    def on_train_end(self, logs: Any = None) -> None:
        """All went well."""
        if self.delete_checkpoint and os.path.exists(self.path):
            os.remove(self.path)
