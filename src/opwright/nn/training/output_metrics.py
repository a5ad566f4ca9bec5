"""Losses and metrics of each output of a model, from the arguments of `compile`.

Lives here: matching them to outputs, their names, the total loss.  Not here: the steps that use them (trainer.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...core import nest
from ...ops import array
from .. import losses as losses_module
from .. import metrics as metrics_module
from ..losses.base import FunctionLoss, Loss
from ..metrics.base import Mean, MeanMetricWrapper, Metric
from ..module import Module

if TYPE_CHECKING:
    from ...ops.tensor import Tensor


def _is_single(spec: Any) -> bool:
    return not isinstance(spec, (list, tuple, dict))


def names_of(y_pred: Any, output_names: Sequence[str] | None) -> list[str]:
    """Return a name for each output: dict keys, the model's names, or output_0, output_1 ..."""
    if isinstance(y_pred, dict):
        return [str(k) for k in sorted(y_pred)]
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
    return isinstance(y_pred, dict) or (output_names is not None and len(output_names) == len(nest.flatten(y_pred)))


def entries_by_output(spec: Any, names: Sequence[str], y_pred: Any, what: str, repeat: bool = True) -> list[Any]:
    """Return one entry of an argument for each output, from a single value, a list, or a dict by name.

    raises ValueError if a list has another length or a name is not an output's
    """
    if isinstance(spec, dict):
        unknown = [k for k in spec if k not in names]
        if unknown:
            raise ValueError(
                f"In the dict argument `{what}`, key '{unknown[0]}' does not correspond to any model output. "
                f"Received:\n{what}={spec}. The outputs are {list(names)}"
            )
        entries = [spec.get(n) for n in names]
        if what == "loss":  # a list of one loss is that loss
            entries = [e[0] if isinstance(e, (list, tuple)) and len(e) == 1 else e for e in entries]
        return entries
    if _is_single(spec):
        return [spec if repeat or i == 0 else None for i in range(len(names))]
    flat = nest.flatten(spec) if what == "loss" else list(spec)
    if len(flat) != len(names):
        raise ValueError(
            f"For a model with multiple outputs, when providing the `{what}` argument as a list, it "
            f"should "
            f"have as many entries as the model has outputs. Received:\n{what}={spec}\nof length "
            f"{len(flat)} "
            f"whereas the model has {len(names)} outputs."
        )
    return flat


class OutputLosses:
    """Weighted sum of the losses of all outputs; the mean of each is tracked if there are several."""

    def __init__(self, loss: Any, loss_weights: Any, output_names: Sequence[str] | None = None) -> None:
        if loss_weights is not None and not isinstance(loss_weights, (list, tuple, dict, float, int)):
            raise ValueError(
                f"Expected `loss_weights` argument to be a float, list, tuple, or dict. Received: {loss_weights}"
            )
        self.loss, self.loss_weights, self.output_names = loss, loss_weights, output_names
        self.losses: list[Any] | None = None
        self.metrics: list[Mean] = []

    def build(self, y_true: Any, y_pred: Any) -> None:
        """Match the losses to outputs of these shapes."""
        names = names_of(y_pred, self.output_names)
        flat_pred = nest.flatten(y_pred)
        flat_true = flat_targets(y_true, names, y_pred)
        identifiers = entries_by_output(self.loss, names, y_pred, "loss")
        self.losses = [_as_loss(g, t, p) for g, t, p in zip(identifiers, flat_true, flat_pred)]
        weights = self.loss_weights
        self.weights = (
            [None] * len(names) if weights is None else entries_by_output(weights, names, y_pred, "loss_weights")
        )
        self.names = names
        self.trackers: list[Mean | None] = [None] * len(names)
        if sum(x is not None for x in self.losses) > 1:
            labels = self._loss_names(identifiers, y_pred)
            self.trackers = [None if x is None else Mean(name=f"{n}_loss") for n, x in zip(labels, self.losses)]
            order = names
            if isinstance(y_pred, dict):  # in the user's order
                order = [str(k) for k in (self.loss if isinstance(self.loss, dict) else y_pred)]
            by_name = dict(zip(names, self.trackers))
            self.metrics = [m for n in order if (m := by_name[n]) is not None]

    def _loss_names(self, identifiers: list[Any], y_pred: Any) -> list[str]:
        """Return names for the losses: of the outputs, or of the losses if outputs are unnamed."""
        assert self.losses is not None
        if has_names(y_pred, self.output_names):
            return self.names
        labels: list[str] = []
        for identifier, loss in zip(identifiers, self.losses):
            base = name = identifier if isinstance(identifier, str) else getattr(loss, "name", "loss")
            count = 0
            while name in labels:
                count += 1
                name = f"{base}_{count}"
            labels.append(name)
        return labels

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Tensor | None:
        """Return the total loss, a scalar; None if no output has a loss."""
        if self.losses is None:
            self.build(y_true, y_pred)
        assert self.losses is not None
        flat_pred, flat_true = nest.flatten(y_pred), flat_targets(y_true, self.names, y_pred)
        flat_weight = flat_targets(sample_weight, self.names, y_pred, True)
        total = None
        rows = zip(self.losses, self.weights, flat_true, flat_pred, flat_weight, self.trackers)
        for loss, factor, t, p, w, tracker in rows:
            if loss is None:
                continue
            value = array.cast(loss(t, p, w), p.dtype) if p.dtype.is_floating else loss(t, p, w)
            if tracker is not None:
                tracker.update_state(value, sample_weight=array.cast(array.shape(p)[0], value.dtype))
            value = value if factor is None else value * factor
            total = value if total is None else total + value
        return total


def flat_targets(y: Any, names: Sequence[str], y_pred: Any, repeat: bool = False) -> list[Any]:
    """Return one target or sample weight per output. Raises ValueError if their number differs."""
    if y is None:
        return [None] * len(names)
    if isinstance(y, dict):
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


def _as_loss(identifier: Any, y_true: Any, y_pred: Any) -> Loss | None:
    if identifier is None:
        return None
    if isinstance(identifier, Loss):
        return identifier
    if identifier in ("crossentropy", "ce"):
        identifier = {
            "binary": losses_module.binary_crossentropy,
            "sparse": losses_module.sparse_categorical_crossentropy,
            "categorical": losses_module.categorical_crossentropy,
        }[_target_kind(y_true, y_pred)]
    loss: Any = losses_module.get(identifier)
    if isinstance(loss, Loss):
        return loss
    for cls in losses_module.REGISTRY.members.values():
        if isinstance(cls, type) and issubclass(cls, FunctionLoss):
            make: Any = cls
            instance = _INSTANCES.get(cls) or _INSTANCES.setdefault(cls, make())
            if instance.fn is loss:  # a function of this package: its class matches ranks
                matched: FunctionLoss = make()
                return matched
    return FunctionLoss(loss, name=getattr(loss, "__name__", "custom_loss"))


_INSTANCES: dict[type[FunctionLoss], FunctionLoss] = {}


def _target_kind(y_true: Any, y_pred: Any) -> str:
    """Classify targets as "binary", "sparse" (class indices) or "categorical" (one-hot)."""
    last_true = y_true.shape[-1] if y_true.shape.rank else None
    last_pred = y_pred.shape[-1] if y_pred.shape.rank else None
    if last_pred == 1:
        return "binary"
    fewer = (y_true.shape.rank or 0) < (y_pred.shape.rank or 0)
    return "sparse" if (fewer or last_true == 1) and last_pred != 1 else "categorical"


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
        result: Metric = _ACCURACIES[_target_kind(y_true, y_pred)](name=str(identifier))
        return result
    if identifier in ("crossentropy", "ce"):
        entropy: Metric = _ENTROPIES[_target_kind(y_true, y_pred)](name=str(identifier))
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
            for row, identifiers, t, p in zip(
                self.rows, self._entries_by_output(argument, y_pred), flat_true, flat_pred
            ):
                for identifier in identifiers:
                    if identifier is not None and t is not None:
                        row.append((as_metric(identifier, t, p), weighted))

    def _entries_by_output(self, argument: Any, y_pred: Any) -> list[list[Any]]:
        num_outputs = len(self.names)
        if not argument:
            return [[] for _ in self.names]
        if num_outputs == 1:
            if isinstance(argument, dict):
                argument = entries_by_output(argument, self.names, y_pred, "metrics")[0]
            return [_as_list(_unwrap(argument))]
        if (
            isinstance(argument, (list, tuple))
            and all(_is_single(g) for g in argument)
            and len(argument) != num_outputs
        ):
            raise ValueError(
                "For a model with multiple outputs, when providing the `metrics` argument as a list, it "
                f"should have as many entries as the model has outputs. Received:\nmetrics={argument}\nof "
                f"length "
                f"{len(argument)} whereas the model has {num_outputs} outputs."
            )
        return [_as_list(g) for g in entries_by_output(argument, self.names, y_pred, "metrics")]

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
