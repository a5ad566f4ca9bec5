"""Metrics of each output of a model, from the arguments of `compile`.

Lives here: matching them to outputs, their names.  Not here: losses (output_losses.py), the steps (trainer.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core import nest
from .. import losses as losses_module
from .. import metrics as metrics_module
from ..losses.base import Loss
from ..metrics.base import MeanMetricWrapper, Metric
from ..module import Module
from .output_losses import target_kind


def _is_single(spec: Any) -> bool:
    return not isinstance(spec, (list, tuple, dict))


def names_of(y_pred: Any, output_names: Sequence[str] | None) -> list[str]:
    """Return a name for each output: dict keys, the model's names, or output_0, output_1 ..."""
    if isinstance(y_pred, dict) and not any(map(nest.is_nested, y_pred.values())):
        return [str(key) for key in sorted(y_pred)]
    count = len(nest.flatten(y_pred))
    if output_names is not None and len(output_names) == count:
        seen: dict[str, int] = {}
        unique = []
        for name in output_names:
            seen[name] = seen.get(name, 0) + 1
            unique.append(name if seen[name] == 1 else f"{name}_{seen[name] - 1}")
        return unique
    return [f"output_{i}" for i in range(count)]


def has_names(y_pred: Any, output_names: Sequence[str] | None) -> bool:
    """Return whether the outputs have names: keys, or names of the model's layers."""
    if isinstance(y_pred, dict) and not any(map(nest.is_nested, y_pred.values())):
        return True
    return output_names is not None and len(output_names) == len(nest.flatten(y_pred))


def _entries_by_output(spec: Any, names: Sequence[str]) -> list[Any]:
    """Return one entry of the metrics for each output, from a single value, a list, or a dict by name.

    raises ValueError if a list has another length or a name is not an output's
    """
    if isinstance(spec, dict):
        unknown = [k for k in spec if k not in names]
        if unknown:
            raise ValueError(
                f"Invalid `metrics`: key '{unknown[0]}' does not correspond to any model output. "
                f"Received:\nmetrics={spec}. The outputs are {list(names)}"
            )
        return [spec.get(n) for n in names]
    if _is_single(spec):
        return [spec for _ in names]
    if len(spec) != len(names):
        raise ValueError(
            "For a model with multiple outputs, when providing the `metrics` argument as a list, it should have as "
            f"many entries as the model has outputs. Received:\nmetrics={spec}\nof length {len(spec)} whereas the "
            f"model has {len(names)} outputs."
        )
    return list(spec)


def _entries_like(spec: Any, y_pred: Any) -> list[Any]:
    """Return one entry of the metrics for each leaf of nested outputs, from a structure that is nested as they are."""
    if spec is None:
        return [None for _ in nest.flatten(y_pred)]
    if isinstance(y_pred, dict) and isinstance(spec, dict):
        _entries_by_output(spec, list(y_pred))  # raises an error for other keys
        return [entry for key in sorted(y_pred) for entry in _entries_like(spec.get(key), y_pred[key])]
    if isinstance(y_pred, (list, tuple)) and isinstance(spec, (list, tuple)) and len(spec) == len(y_pred):
        return [entry for each, part in zip(spec, y_pred) for entry in _entries_like(each, part)]
    return [spec for _ in nest.flatten(y_pred)]


def flat_targets(y: Any, names: Sequence[str], y_pred: Any, repeat: bool = False) -> list[Any]:
    """Return one target or sample weight per output. Raises ValueError if their number differs."""
    if y is None:
        return [None] * len(names)
    if isinstance(y, dict) and not any(map(nest.is_nested, y.values())):
        return [y.get(n) for n in names]
    flat = nest.flatten(y)
    if len(flat) == 1 and len(names) > 1 and repeat:
        return flat * len(names)
    if len(flat) != len(names):
        raise ValueError(
            f"y_true and y_pred have different structures.\ny_true: {len(flat)} tensors\n"
            f"y_pred: {len(names)} outputs {list(names)}"
        )
    return flat


_ACCURACIES = {
    "binary": metrics_module.BinaryAccuracy,
    "sparse": metrics_module.SparseCategoricalAccuracy,
    "categorical": metrics_module.CategoricalAccuracy,
}
_ENTROPIES = {
    "binary": metrics_module.BinaryCrossentropy,
    "sparse": metrics_module.SparseCategoricalCrossentropy,
    "categorical": metrics_module.CategoricalCrossentropy,
}


def as_metric(identifier: Any, y_true: Any, y_pred: Any) -> Metric:
    """Return the metric for a name, function, class or metric; shapes resolve "accuracy" and "crossentropy"."""
    if isinstance(identifier, Metric):
        return identifier
    if identifier in ("accuracy", "acc"):
        result: Metric = _ACCURACIES[target_kind(y_true, y_pred)](name=str(identifier))
        return result
    if identifier in ("crossentropy", "ce"):
        entropy: Metric = _ENTROPIES[target_kind(y_true, y_pred)](name=str(identifier))
        return entropy
    if isinstance(identifier, str) and identifier not in metrics_module.REGISTRY.members:
        metric: Any = losses_module.get(identifier)
    else:
        metric = metrics_module.get(identifier)
    if isinstance(metric, Metric):
        if isinstance(identifier, str):
            metric._name = identifier
        return metric
    if isinstance(metric, Loss):
        metric = metric.__call__
    name = identifier if isinstance(identifier, str) else getattr(metric, "__name__", type(metric).__name__)
    return MeanMetricWrapper(metric, name=name)


class OutputMetrics(Module):
    """Metrics of all outputs; prefixed with output names if there are several."""

    is_metric = True

    def __init__(self, metrics: Any, weighted: Any, output_names: Sequence[str] | None = None) -> None:
        super().__init__("compile_metrics")
        self.given, self.given_weighted, self.output_names = metrics, weighted, output_names
        self.rows: list[list[tuple[Metric, bool]]] | None = None

    def build(self, y_true: Any, y_pred: Any) -> None:
        """Match the metrics to outputs of these shapes."""
        self.names = names_of(y_pred, self.output_names)
        flat_true, flat_pred = flat_targets(y_true, self.names, y_pred), nest.flatten(y_pred)
        self.named = len(self.names) > 1 and has_names(y_pred, self.output_names)
        self.rows = [[] for _ in self.names]
        for argument, weighted in ((self.given, False), (self.given_weighted, True)):
            for row, identifiers, t, p in zip(self.rows, self._entries_of(argument, y_pred), flat_true, flat_pred):
                for identifier in identifiers:
                    if identifier is not None and t is not None:
                        row.append((as_metric(identifier, t, p), weighted))

    def _entries_of(self, argument: Any, y_pred: Any) -> list[list[Any]]:
        if not argument:
            return [[] for _ in self.names]
        if len(self.names) == 1:
            if isinstance(argument, dict):
                argument = _entries_by_output(argument, self.names)[0]
            return [_as_list(_unwrap(argument))]
        parts = y_pred.values() if isinstance(y_pred, dict) else y_pred
        if nest.is_nested(y_pred) and any(map(nest.is_nested, parts)):
            return [_as_list(g) for g in _entries_like(argument, y_pred)]
        return [_as_list(g) for g in _entries_by_output(argument, self.names)]

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Accumulate a batch."""
        if self.rows is None:
            self.build(y_true, y_pred)
        assert self.rows is not None
        flat_true, flat_pred = flat_targets(y_true, self.names, y_pred), nest.flatten(y_pred)
        flat_weight = flat_targets(sample_weight, self.names, y_pred, True)
        for row, t, p, w in zip(self.rows, flat_true, flat_pred, flat_weight):
            for metric, weighted in row:
                if weighted:
                    metric.update_state(t, p, sample_weight=w)
                else:
                    metric.update_state(t, p)

    def result(self) -> dict[str, Any]:
        """Return the accumulated metrics by name."""
        values: dict[str, Any] = {}
        rows = list(zip(getattr(self, "names", ()), self.rows or ()))
        for use_weights in (False, True):
            for name, row in rows:
                prefix = f"{name}_" if self.named else ""
                for metric in [m for m, weighted in row if weighted is use_weights]:
                    label = f"{prefix}{metric.name}"
                    if use_weights and label in values:
                        label = f"{prefix}weighted_{metric.name}"
                    base, number = label, 0
                    while label in values:
                        number += 1
                        label = f"{base}_{number}"
                    values[label] = metric.result()
        return values

    def reset_state(self) -> None:
        """Reset all metrics."""
        for metric in self.metrics:
            metric.reset_state()

    @property
    def metrics(self) -> list[Metric]:
        """All metrics, flattened."""
        return [m for row in self.rows or () for m, _ in row]

    @property
    def variables(self) -> list[Any]:
        """State variables of all metrics."""
        return [v for m in self.metrics for v in m.variables]


def _as_list(value: Any) -> list[Any]:
    return [] if value is None else list(value) if isinstance(value, (list, tuple)) else [value]


def _unwrap(argument: Any) -> Any:
    """Unwrap [["a"]] for one output to ["a"]."""
    if isinstance(argument, (list, tuple)) and len(argument) == 1 and isinstance(argument[0], (list, tuple)):
        return argument[0]
    return argument
