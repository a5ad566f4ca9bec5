"""Callbacks that write down or react at once: functions as a callback, NaN, CSV files.

Lives here: these three.  Not here: the progress bar (base.py).
"""

from __future__ import annotations

import csv
import os
from typing import Any

import numpy as np

from .base import Callback


class LambdaCallback(Callback):
    """Functions as a callback: LambdaCallback(on_epoch_end=lambda epoch, logs: ...)."""

    def __init__(self, on_epoch_begin: Any = None, on_epoch_end: Any = None, on_train_begin: Any = None,
                 on_train_end: Any = None, on_train_batch_begin: Any = None, on_train_batch_end: Any = None,
                 **kwargs: Any) -> None:  # fmt: skip
        super().__init__()
        given = {"on_epoch_begin": on_epoch_begin, "on_epoch_end": on_epoch_end, "on_train_begin": on_train_begin,
                 "on_train_end": on_train_end, "on_train_batch_begin": on_train_batch_begin,
                 "on_train_batch_end": on_train_batch_end, **kwargs}  # fmt: skip
        for event, function in given.items():
            if function is not None:
                setattr(self, event, function)


class TerminateOnNaN(Callback):
    """Stop as soon as the loss is no finite number."""

    def __init__(self, raise_error: bool = False) -> None:
        super().__init__()
        self.raise_error = raise_error

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Look at the loss. Raises RuntimeError where raise_error is set."""
        loss = (logs or {}).get("loss")
        if loss is not None and not np.isfinite(loss):
            if self.raise_error:
                raise RuntimeError(f"Batch {batch}: Invalid loss, terminating training")
            print(f"Batch {batch}: Invalid loss, terminating training")
            self.model.stop_training = True


class CSVLogger(Callback):
    """Write each epoch's figures to a file of comma-separated values."""

    def __init__(self, filename: Any, separator: str = ",", append: bool = False) -> None:
        super().__init__()
        self.filename, self.sep, self.append = os.fspath(filename), separator, append
        self._file: Any = None
        self._writer: Any = None
        self._keys: list[str] = []

    def on_train_begin(self, logs: Any = None) -> None:
        """Open the file."""
        self._header = not (self.append and os.path.exists(self.filename) and os.path.getsize(self.filename))
        self._file = open(self.filename, "a" if self.append else "w", newline="")  # noqa: SIM115  closed in on_train_end
        self._writer = None

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Write a row."""
        logs = logs or {}
        if self._writer is None:
            self._keys = sorted(logs)
            if not any(key.startswith("val_") for key in logs):  # columns for a validation that comes later
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
