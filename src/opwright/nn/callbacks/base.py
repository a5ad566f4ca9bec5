"""Callbacks: the base class and the list that dispatches events.

Lives here: Callback, CallbackList, History, ProgbarLogger.
Not here: callbacks that control training (metric_monitors.py), that write files (files.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..training.progress import Progbar

_EVENTS = [f"on_{kind}_{when}" for kind in ("train", "test", "predict") for when in ("begin", "end")]
_BATCHES = [f"on_{kind}_batch_{when}" for kind in ("train", "test", "predict") for when in ("begin", "end")]


class Callback:
    """Base class of callbacks: override the methods of the events to handle.

    model: the model. params: verbose, epochs, steps. logs: metrics by name.
    """

    def __init__(self) -> None:
        self.params: dict[str, Any] | None = None
        self.validation_data = None
        self._model: Any = None

    @property
    def model(self) -> Any:
        """Model in training."""
        return getattr(self, "_model", None)

    def set_params(self, params: dict[str, Any]) -> None:
        """Receive the parameters before training, evaluation or prediction begins."""
        self.params = params

    def set_model(self, model: Any) -> None:
        """Receive the model before training, evaluation or prediction begins."""
        self._model = model

    def on_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Handle the start of a training batch; an alias of on_train_batch_begin."""

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """Handle the end of a training batch; an alias of on_train_batch_end."""

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Handle the start of an epoch."""

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Handle the end of an epoch. logs: its metrics; those of validation have the prefix val_."""

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Handle the start of a training batch."""
        self.on_batch_begin(batch, logs)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Handle the end of a training batch. logs: the metrics of the epoch so far."""
        self.on_batch_end(batch, logs)

    def on_test_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Handle the start of an evaluation batch."""

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        """Handle the end of an evaluation batch."""

    def on_predict_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Handle the start of a prediction batch."""

    def on_predict_batch_end(self, batch: int, logs: Any = None) -> None:
        """Handle the end of a prediction batch. logs: {"outputs": tensors}."""

    def on_train_begin(self, logs: Any = None) -> None:
        """Handle the start of `fit`."""

    def on_train_end(self, logs: Any = None) -> None:
        """Handle the end of `fit`."""

    def on_test_begin(self, logs: Any = None) -> None:
        """Handle the start of `evaluate` or of validation."""

    def on_test_end(self, logs: Any = None) -> None:
        """Handle the end of `evaluate` or of validation."""

    def on_predict_begin(self, logs: Any = None) -> None:
        """Handle the start of `predict`."""

    def on_predict_end(self, logs: Any = None) -> None:
        """Handle the end of `predict`."""


class History(Callback):
    """Metrics by epoch, the result of `fit`. history: a list per metric. epoch: the epoch numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.history: dict[str, list[Any]] = {}
        self.epoch: list[int] = []

    def on_train_begin(self, logs: Any = None) -> None:
        """Clear the list of epochs."""
        self.epoch = []

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Append the metrics of the epoch."""
        self.epoch.append(epoch)
        for key, value in (logs or {}).items():
            self.history.setdefault(key, []).append(value)
        self.model.history = self


class CallbackList:
    """Ordered list of callbacks."""

    def __init__(
        self,
        callbacks: Any = None,
        add_history: bool = False,
        add_progbar: bool = False,
        model: Any = None,
        **params: Any,
    ) -> None:
        self.callbacks = list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks] if callbacks else []
        if add_progbar and not any(isinstance(c, ProgbarLogger) for c in self.callbacks):
            self.callbacks.append(ProgbarLogger())
        histories = [c for c in self.callbacks if isinstance(c, History)]
        if add_history and not histories:
            histories = [History()]
            self.callbacks.append(histories[0])
        self.history = histories[0] if histories else None
        for callback in self.callbacks:
            callback.set_params(params)
            if model is not None:
                callback.set_model(model)

    @classmethod
    def of(
        cls, callbacks: Any, model: Any, verbose: Any, epochs: int, steps: int | None, history: bool = False
    ) -> CallbackList:
        """Return the list of callbacks for a run of `fit`, `evaluate` or `predict`."""
        if isinstance(callbacks, CallbackList):
            return callbacks
        verbose = 1 if verbose == "auto" else int(verbose)
        return cls(callbacks, history, verbose != 0, model, verbose=verbose, epochs=epochs, steps=steps)

    def append(self, callback: Any) -> None:
        """Append a callback."""
        self.callbacks.append(callback)

    def __getattr__(self, event: str) -> Callable[..., None]:
        if not event.startswith("on_"):
            raise AttributeError(event)
        methods = [getattr(c, event) for c in self.callbacks if _overrides(c, event)]

        logs_index = 0 if event in _EVENTS else 1  # arguments before `logs`, which always is a dict for those who hear

        def dispatch(*args: Any, logs: Any = None) -> None:
            event_logs = args[logs_index] if len(args) > logs_index else logs
            for method in methods:
                method(*args[:logs_index], {} if event_logs is None else event_logs)

        if event in _BATCHES or event in _EVENTS or event in ("on_epoch_begin", "on_epoch_end"):
            self.__dict__[event] = dispatch
        return dispatch


def _overrides(callback: Any, event: str) -> bool:
    """Return whether a callback overrides this method; calls per batch are frequent, so the defaults are skipped."""
    if getattr(type(callback), event, None) is not getattr(Callback, event, None) or event in vars(callback):
        return True
    if event.startswith("on_train_batch"):
        alias = event.replace("train_", "")
        return getattr(type(callback), alias) is not getattr(Callback, alias) or alias in vars(callback)
    return False


class ProgbarLogger(Callback):
    """Callback that prints a progress bar."""

    def __init__(self) -> None:
        super().__init__()
        self.progbar: Progbar | None = None
        self.seen, self._training = 0, False

    def _begin(self) -> None:
        params = self.params or {}
        self.seen, self.progbar = 0, Progbar(params.get("steps"), verbose=params.get("verbose", 1))

    def _batch(self, batch: int, logs: Any) -> None:
        self.seen = batch + 1
        if self.progbar is not None:
            self.progbar.update(self.seen, _sorted(logs), finalize=False)

    def _finish(self, logs: Any) -> None:
        if self.progbar is not None:
            self.progbar.target = self.seen
            self.progbar.update(self.seen, _sorted(logs), finalize=True)

    def on_train_begin(self, logs: Any = None) -> None:
        """Suppress the bars of validation during training."""
        self._training = True

    def on_train_end(self, logs: Any = None) -> None:
        """Show bars for evaluation again."""
        self._training = False

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Start a new bar."""
        if (self.params or {}).get("epochs", 1) > 1 and (self.params or {}).get("verbose", 1):
            print(f"Epoch {epoch + 1}/{(self.params or {})['epochs']}")
        self._begin()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Advance the bar by one batch."""
        self._batch(batch, logs)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Print the final state of the bar."""
        self._finish(logs)

    def on_test_begin(self, logs: Any = None) -> None:
        """Start a bar for `evaluate`."""
        if not self._training:
            self._begin()

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        """Advance the bar by one batch."""
        if not self._training:
            self._batch(batch, logs)

    def on_test_end(self, logs: Any = None) -> None:
        """Print the final state of the bar."""
        if not self._training:
            self._finish(logs)

    def on_predict_begin(self, logs: Any = None) -> None:
        """Start a bar for `predict`."""
        self._begin()

    def on_predict_batch_end(self, batch: int, logs: Any = None) -> None:
        """Advance the bar by one batch."""
        self._batch(batch, None)

    def on_predict_end(self, logs: Any = None) -> None:
        """Print the final state of the bar."""
        self._finish(None)


def _sorted(logs: Any) -> list[tuple[str, Any]]:
    return sorted((logs or {}).items(), key=lambda item: (item[0].startswith("val_"), item[0]))
