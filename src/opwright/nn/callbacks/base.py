"""Callbacks: the base class, the list that dispatches events, and the progress bar.

Lives here: Callback, CallbackList, History, ProgbarLogger; the bar, a growing line on a terminal, a plain one
elsewhere.
Not here: callbacks that control training (metric_monitors.py), that write files (files.py).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.errors import FailedPreconditionError
from ...core.extras import optional_module
from ..messages import is_interactive_logging_enabled

WIDTH = 20
NOTEBOOK_COLUMNS = 120


def format_duration(seconds: float) -> str:
    """Format a duration: 950us, 12ms, 3s, 2:05, 1:02:03."""
    if seconds >= 3600:
        return f"{int(seconds // 3600)}:{int(seconds % 3600 // 60):02d}:{int(seconds % 60):02d}"
    if seconds >= 60:
        return f"{int(seconds // 60)}:{int(seconds % 60):02d}"
    if seconds >= 1:
        return f"{seconds:.0f}s"
    return f"{seconds * 1e3:.0f}ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f}us"


def format_number(value: Any) -> str:
    """Format a number with four decimals, or with an exponent if it is small."""
    number = float(np.mean(np.asarray(value)))
    return f"{number:.4f}" if abs(number) > 1e-3 or number == 0 else f"{number:.4e}"


class Progbar:
    """Progress through `target` steps (None if unknown), with metrics.

    verbose: 0 nothing; 1 a bar on a terminal, one line at the end elsewhere; 2 one line at the end.
    interval: seconds between updates of the bar. unit_name: the name of a step. stateful_metrics: names of the metrics
    that are shown as they are; of others the mean over steps is shown. stateless_metrics: the other way round.
    raises ValueError for both
    """

    def __init__(
        self,
        target: int | None,
        width: int = WIDTH,
        verbose: int = 1,
        interval: float = 0.05,
        stateful_metrics: Any = None,
        stateless_metrics: Any = None,
        unit_name: str = "step",
    ) -> None:
        if stateful_metrics is not None and stateless_metrics is not None:
            raise ValueError("Only one of `stateful_metrics` or `stateless_metrics` can be provided.")
        self.stateful_metrics = set(stateful_metrics or ())
        self.stateless_metrics = None if stateless_metrics is None else set(stateless_metrics)
        self._sums: dict[str, tuple[Any, int]] = {}
        self._seen = 0
        self.target, self.width, self.verbose, self.interval = target, width, verbose, interval
        self.unit_name = unit_name
        self.finalized = False
        self._start, self._last, self._shown = time.monotonic(), 0.0, 0
        self._console: Any = None
        self._terminal = bool(getattr(sys.stdout, "isatty", bool)()) or "ipykernel" in sys.modules  # rewrite lines, too

    def update(self, current: int, values: Any = None, finalize: bool | None = None) -> None:
        """Report that `current` steps are done. values: pairs of name and number."""
        if finalize is None:
            finalize = self.target is not None and current >= self.target
        values = self._means(current, values or ())
        now = time.monotonic()
        if self.verbose == 0 or self.finalized:
            return
        if not finalize and (self.verbose != 1 or not self._terminal or now - self._last < self.interval):
            return
        self._last = now
        line = self._line(current, now - self._start, values, bool(finalize))
        if self._terminal and self.verbose == 1:
            self._rewrite(line, bool(finalize))
        elif finalize:
            sys.stdout.write(line + "\n")
        sys.stdout.flush()
        self.finalized = bool(finalize)

    def _means(self, current: int, values: Any) -> dict[str, Any]:
        """Add the values of the steps since the last update; return means over steps, and values as they are."""
        steps = max(current - self._seen, 1)
        for name, value in dict(values).items():
            value = float(np.mean(value)) if isinstance(value, list | tuple) else value
            is_mean = (
                name not in self.stateful_metrics if self.stateless_metrics is None else name in self.stateless_metrics
            )
            total, count = self._sums.get(name, (0, 0)) if is_mean else (0, 0)
            self._sums[name] = (total + value * steps, count + steps) if is_mean else (value, 1)
        self._seen = current
        return {name: total / count if count > 1 else total for name, (total, count) in self._sums.items()}

    def _rewrite(self, line: str, final: bool) -> None:
        """Show a line of a terminal or notebook in place of the last; only the final one may be longer than a row."""
        from rich.console import Console  # 40 ms, which only terminals need
        from rich.text import Text

        if self._console is None:
            notebook = "ipykernel" in sys.modules
            columns = NOTEBOOK_COLUMNS if notebook else None  # where lines are not cut, and have no width of their own
            self._console = Console(
                file=sys.stdout, force_terminal=True, force_jupyter=False, width=columns, highlight=False
            )
        text = Text(line, overflow="ellipsis", no_wrap=True)
        text.highlight_regex("━+", "bar.complete")
        if not final:
            text.truncate(self._console.width - 1)
        text.pad_right(max(self._shown - text.cell_len, 0))
        self._shown = 0 if final else text.cell_len
        sys.stdout.write("\r")
        self._console.print(text, end="\n" if final else "", soft_wrap=True)

    def add(self, n: int, values: Any = None) -> None:
        """Report `n` more steps."""
        self._seen = getattr(self, "_seen", 0) + n
        self.update(self._seen, values)

    def _line(self, current: int, elapsed: float, values: dict[str, Any], final: bool) -> str:
        target = self.target
        digits = len(str(target)) if target else 0
        per_step = elapsed / current if current else 0.0
        parts = [f"{current:>{digits}d}/{target if target else 'Unknown'}"]
        if self.verbose == 1:
            filled = round(self.width * min(current / target, 1.0)) if target else 0
            parts[0] += " " + "━" * filled + " " * (self.width - filled)
        left = (
            f"{format_duration(elapsed)} {format_duration(per_step)}/{self.unit_name}"
            if final or not target
            else format_duration(per_step * (target - current))
        )
        if self.verbose == 1:
            parts[0] += f" {left}"
        else:
            parts += [f"{elapsed:.0f}s", f"{format_duration(per_step)}/{self.unit_name}"]
        parts += [f"{name}: {format_number(values[name])}" for name in values]
        return " - ".join(parts)


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

    def plot(self) -> list[Any]:
        """Draw the metrics over the epochs, each with that of validation; return the axes, one per metric.

        Needs matplotlib: `pip install 'opwright[plot]'`. `axes[0].figure.savefig(path)` writes the picture.
        raises FailedPreconditionError without matplotlib or before the first epoch
        """
        names = [name for name in self.history if name.removeprefix("val_") not in self.history or name[:4] != "val_"]
        if not names:
            raise FailedPreconditionError(op="History.plot", what="no epoch has ended")
        _, axes = optional_module("matplotlib.pyplot").subplots(
            1, len(names), figsize=(4 * len(names), 3), squeeze=False, layout="constrained"
        )
        for axis, name in zip(axes[0], names):
            for label, style in ((name, "-"), (f"val_{name}", "--")):
                if label in self.history:
                    numbers = self.history[label]
                    axis.plot(self.epoch[-len(numbers) :], numbers, style, marker=".", label=label)
            axis.set(xlabel="epoch", title=name)
            axis.legend()
        return list(axes[0])


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
        quiet = 1 if is_interactive_logging_enabled() else 2
        verbose = quiet if verbose == "auto" else int(verbose)
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
        self.seen, self.progbar = (
            0,
            Progbar(params.get("steps"), verbose=params.get("verbose", 1), stateless_metrics=()),
        )

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
