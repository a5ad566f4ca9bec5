"""Losses of the outputs of a model, from the arguments `loss` and `loss_weights` of `compile`.

Lives here: matching them to outputs or structures of outputs, their names, the total.
Not here: metrics (output_metrics.py), the steps that use them (trainer.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...core import nest
from ...ops import array
from .. import losses as losses_module
from ..losses.base import FunctionLoss, Loss
from ..metrics.base import Mean

if TYPE_CHECKING:
    from ...ops.tensor import Tensor


class _Requested:
    """An identifier of a loss and its weight: a leaf in the structure of the argument `loss`."""

    __slots__ = ("identifier", "weight")

    def __init__(self, identifier: Any, weight: Any) -> None:
        self.identifier, self.weight = identifier, weight


class OutputLoss(NamedTuple):
    """The loss of an output, or of a structure of outputs. path: its keys in the structure of all outputs."""

    path: tuple[Any, ...]
    loss: Loss
    weight: Any
    name: str


def _at(structure: Any, path: Sequence[Any]) -> Any:
    for key in path:
        structure = structure[key]
    return structure


class OutputLosses:
    """Weighted sum of the losses of all outputs; the mean of each is tracked if there are several.

    loss: a loss for every output; or a structure like the outputs, where a loss may stand at a structure of outputs,
    and None, or a missing key, means no loss; or, if the outputs are not a list, a list of losses of one output.
    """

    def __init__(self, loss: Any, loss_weights: Any, output_names: Sequence[str] | None = None) -> None:
        if loss_weights is not None and not isinstance(loss_weights, (list, tuple, dict, float, int)):
            raise ValueError(
                f"Expected `loss_weights` argument to be a float, list, tuple, or dict. Received: {loss_weights}"
            )
        self.loss, self.loss_weights, self.output_names = loss, loss_weights, output_names
        self.losses: list[OutputLoss] | None = None
        self.metrics: list[Mean] = []

    def build(self, y_true: Any, y_pred: Any) -> None:
        """Match the losses to outputs of these shapes."""
        y_true = self._like_outputs(y_true, y_pred)
        loss, weights = self.loss, self.loss_weights
        if isinstance(loss, dict) and not isinstance(y_pred, dict):
            loss, weights = self._by_name(loss, y_pred), self._by_name(weights, y_pred)
        if not nest.is_nested(loss):
            every = loss
            loss = nest.map_structure(lambda _: every, y_pred)
        if isinstance(weights, dict) and not isinstance(loss, dict):
            weights = self._by_name(weights, y_pred)
        flat, named = nest.flatten(y_pred), self.output_names
        names = [None] * len(flat) if named is None or len(named) != len(flat) else list(named)
        structure = nest.pack_sequence_as(y_pred, names)
        self.losses = list(_matched(_weighted(loss, weights), y_true, y_pred, structure, ()))
        if len(self.losses) > 1:
            labels: list[str] = []
            for each in self.losses:
                label = each.name
                if named is None:  # losses of one name, of outputs without names
                    number = sum(label == other.name for other in self.losses[: len(labels)])
                    label += f"_{number}" if number else ""
                labels.append(label)
            self.metrics = [Mean(name=f"{label}_loss") for label in labels]

    def _by_name(self, argument: Any, y_pred: Any) -> Any:
        """Return a dict by output name as a list like the outputs; other arguments as they are."""
        if not isinstance(argument, dict):
            return argument
        count = len(nest.flatten(y_pred))
        names = list(self.output_names or ()) or [f"output_{i}" for i in range(count)]
        if len(names) != count or any(key not in names for key in argument):
            raise ValueError(
                f"Expected keys {names} in loss dict, but found loss.keys()={list(argument)}: a key does not "
                "correspond to any model output."
            )
        entries = [argument.get(name) for name in names]
        return nest.pack_sequence_as(y_pred, entries)

    def _like_outputs(self, y_true: Any, y_pred: Any) -> Any:
        """Return targets in the structure of the outputs, with None for outputs without a loss.

        raises ValueError if their number differs
        """
        if not nest.is_nested(y_pred):
            flat = nest.flatten(y_true)
            if isinstance(y_true, dict) and self.output_names and self.output_names[0] in y_true:
                return y_true[self.output_names[0]]
            return flat[0] if len(flat) == 1 else y_true
        if isinstance(y_true, dict):
            if isinstance(y_pred, dict):
                if set(y_pred) <= set(y_true):
                    return {key: y_true[key] for key in y_pred}
                return {key: y_true.get(key) for key in y_pred}
            if self.output_names and set(y_true) <= set(self.output_names):
                y_true = [y_true.get(name) for name in self.output_names]
        flat, count = nest.flatten(y_true), len(nest.flatten(y_pred))
        if len(flat) == count:
            return nest.pack_sequence_as(y_pred, flat)
        requested = nest.flatten(self.loss)
        if len(requested) == count and len(flat) == sum(x is not None for x in requested):
            targets = iter(flat)
            return nest.pack_sequence_as(y_pred, [None if x is None else next(targets) for x in requested])
        raise ValueError(
            "y_true and y_pred have different structures.\n"
            f"y_true: {nest.map_structure(lambda _: '*', y_true)}\ny_pred: {nest.map_structure(lambda _: '*', y_pred)}"
        )

    def _weights_like_outputs(self, sample_weight: Any, y_pred: Any) -> Any:
        if isinstance(sample_weight, dict) or (nest.is_nested(sample_weight) and nest.is_nested(y_pred)):
            flat = nest.flatten(sample_weight)
            return flat[0] if len(flat) == 1 else self._like_outputs(sample_weight, y_pred)
        return sample_weight

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Tensor | None:
        """Return the total loss, a scalar; None if no output has a loss."""
        if self.losses is None:
            self.build(y_true, y_pred)
        y_true = self._like_outputs(y_true, y_pred)
        sample_weight = self._weights_like_outputs(sample_weight, y_pred)
        total = None
        for i, (path, loss, factor, _) in enumerate(self.losses or ()):
            predicted = _at(y_pred, path)
            first = nest.flatten(predicted)[0]
            weight = _at(sample_weight, path) if nest.is_nested(sample_weight) else sample_weight
            value = loss(_at(y_true, path), predicted, weight)
            if first.dtype.is_floating:
                value = array.cast(value, first.dtype)
            if self.metrics:
                self.metrics[i].update_state(value, sample_weight=array.cast(array.shape(first)[0], value.dtype))
            value = value if factor is None else value * factor
            total = value if total is None else total + value
        return total


def _weighted(loss: Any, weights: Any) -> Any:
    """Return the structure of losses with a `_Requested` in the place of each but None."""
    if not nest.is_nested(loss):
        return None if loss is None else _Requested(loss, weights)
    if not nest.is_nested(weights):
        return nest.map_structure(lambda each: _weighted(each, weights), loss)
    if isinstance(loss, dict) and isinstance(weights, dict):
        unknown = [key for key in weights if key not in loss]
        if unknown:
            raise ValueError(
                f"In the dict argument `loss_weights`, key {unknown[0]!r} does not correspond to any model output. "
                f"Received:\nloss_weights={weights}. The losses are of {list(loss)}"
            )
        return {key: _weighted(each, weights.get(key)) for key, each in loss.items()}
    flat, factors = nest.flatten(loss), nest.flatten(weights)
    if len(flat) != len(factors):
        raise ValueError(
            f"`loss_weights` must match the number of losses, got {len(flat)} losses and {len(factors)} weights."
        )
    leaves = [None if each is None else _Requested(each, factor) for each, factor in zip(flat, factors)]
    return nest.pack_sequence_as(loss, leaves)


def _matched(loss: Any, y_true: Any, y_pred: Any, names: Any, path: tuple[Any, ...]) -> Iterator[OutputLoss]:
    """Yield the losses of a part of the outputs."""
    is_flat = isinstance(loss, (list, tuple)) and not any(map(nest.is_nested, loss))
    if is_flat and len(loss) == len(nest.flatten(y_pred)):
        loss = nest.pack_sequence_as(y_pred, list(loss))
    if loss is None:
        return
    if isinstance(loss, _Requested):
        resolved = _as_loss(loss.identifier, y_true, y_pred)
        if resolved is not None:
            own = loss.identifier if isinstance(loss.identifier, str) else resolved.name
            yield OutputLoss(path, resolved, loss.weight, _name_of(own, names, path))
        return
    if isinstance(loss, (list, tuple)) and not isinstance(y_pred, type(loss)):  # several losses of one output
        for each in loss:
            yield from _matched(each, y_true, y_pred, names, path)
        return
    if not isinstance(loss, type(y_pred)) and not isinstance(y_pred, type(loss)):
        raise KeyError(f"The path: {path} in the `loss` argument, can't be found in the model's output (`y_pred`).")
    for key, each in loss.items() if isinstance(loss, dict) else enumerate(loss):
        if each is None:
            continue
        if not all(key in part if isinstance(loss, dict) else key < len(part) for part in (y_true, y_pred)):
            raise KeyError(
                f"The path: {(*path, key)} in the `loss` argument, can't be found in either the model's output "
                "(`y_pred`) or in the labels (`y_true`)."
            )
        yield from _matched(each, y_true[key], y_pred[key], names[key], (*path, key))


def _name_of(loss: str, names: Any, path: tuple[Any, ...]) -> str:
    """Return the name of a loss in logs: of its output, of the keys that lead to it, or of the loss itself."""
    if nest.is_nested(names):
        whole = names if isinstance(names, dict) else nest.flatten(names)
        return "/".join(map(str, path)) or "_".join(map(str, whole))
    name = names or loss
    if not path:
        return str(name)
    keys = (*path[:-1], name) if isinstance(path[-1], int) else path
    return "/".join(map(str, keys))


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
        }[target_kind(y_true, y_pred)]
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


def target_kind(y_true: Any, y_pred: Any) -> str:
    """Classify targets as "binary", "sparse" (class indices) or "categorical" (one-hot)."""
    last_true = y_true.shape[-1] if y_true.shape.rank else None
    last_pred = y_pred.shape[-1] if y_pred.shape.rank else None
    if last_pred == 1:
        return "binary"
    fewer = (y_true.shape.rank or 0) < (y_pred.shape.rank or 0)
    return "sparse" if (fewer or last_true == 1) and last_pred != 1 else "categorical"
