"""Accuracies: fractions of correct predictions.

Lives here: the functions [batch, ..., classes] -> [batch, ...] of 0 and 1, and their classes.
Not here: counts by kind of error (confusion.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.dtypes import as_dtype, int32, int64
from ...ops import array, dispatch, math
from .. import backend
from ..reduction import as_floating, same_rank
from .base import MeanMetricWrapper

if TYPE_CHECKING:
    from ...ops.tensor import Tensor


def _as_indicator(x: Tensor) -> Tensor:
    return array.cast(x, as_dtype(backend.floatx()))


def accuracy(y_true: Any, y_pred: Any) -> Tensor:
    """Return 1 where both are equal, else 0."""
    y_pred = dispatch.to_tensor(y_pred)
    y_true, y_pred = same_rank(array.cast(dispatch.to_tensor(y_true), y_pred.dtype), y_pred)
    return _as_indicator(math.equal(y_true, y_pred))


def binary_accuracy(y_true: Any, y_pred: Any, threshold: float = 0.5) -> Tensor:
    """Return 1 where (y_pred > threshold) equals y_true (0 or 1), else 0."""
    y_pred = dispatch.to_tensor(y_pred)
    y_true, y_pred = same_rank(as_floating(y_true, y_pred.dtype), y_pred)
    return _as_indicator(math.equal(y_true, array.cast(y_pred > threshold, y_true.dtype)))


def categorical_accuracy(y_true: object, y_pred: object) -> Tensor:
    """Return 1 where the argmax of y_pred is that of y_true (one-hot), else 0."""
    y_true, y_pred = dispatch.to_tensor(y_true), dispatch.to_tensor(y_pred)
    return _as_indicator(math.equal(math.argmax(y_true, axis=-1), math.argmax(y_pred, axis=-1)))


def _classes(y_true: object, y_pred: Tensor) -> Tensor:
    """Convert labels to class indices, without a trailing axis of size 1."""
    y_true = dispatch.to_tensor(y_true)
    if y_true.shape.rank is not None and y_true.shape.rank == y_pred.shape.rank and y_true.shape[-1] == 1:
        y_true = array.squeeze(y_true, [-1])
    return array.cast(y_true, int64)


def sparse_categorical_accuracy(y_true: object, y_pred: object) -> Tensor:
    """Return 1 where the argmax of y_pred is y_true, a class index, else 0."""
    y_pred = dispatch.to_tensor(y_pred)
    return _as_indicator(math.equal(_classes(y_true, y_pred), math.argmax(y_pred, axis=-1)))


def _in_top_k(classes: Tensor, y_pred: Tensor, k: int) -> Tensor:
    rank = y_pred.shape.rank
    if rank == 2:
        return _as_indicator(math.in_top_k(targets=array.cast(classes, int32), predictions=y_pred, k=k))
    shape = array.shape(classes)
    rows = array.reshape(y_pred, [-1, y_pred.shape[-1]])
    hits = math.in_top_k(targets=array.cast(array.reshape(classes, [-1]), int32), predictions=rows, k=k)
    return _as_indicator(array.reshape(hits, shape))


def top_k_categorical_accuracy(y_true: object, y_pred: object, k: int = 5) -> Tensor:
    """Return 1 where the argmax of y_true (one-hot) is among the k largest of y_pred, else 0."""
    y_pred = dispatch.to_tensor(y_pred)
    return _in_top_k(math.argmax(dispatch.to_tensor(y_true), axis=-1), y_pred, k)


def sparse_top_k_categorical_accuracy(
    y_true: object, y_pred: object, k: int = 5, from_sorted_ids: bool = False
) -> Tensor:
    """Return 1 where y_true, a class index, is among the k largest of y_pred, else 0.

    from_sorted_ids: y_pred contains class indices, the most probable first.
    """
    y_pred = dispatch.to_tensor(y_pred)
    classes = _classes(y_true, y_pred)
    if from_sorted_ids:
        hits = math.equal(array.expand_dims(array.cast(classes, y_pred.dtype), -1), y_pred[..., :k])
        return _as_indicator(math.reduce_any(hits, axis=-1))
    return _in_top_k(classes, y_pred, k)


class Accuracy(MeanMetricWrapper):
    """Fraction of predictions equal to y_true."""

    def __init__(self, name: str = "accuracy", dtype: Any = None) -> None:
        super().__init__(accuracy, name, dtype)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {"name": self.name, "dtype": self.dtype}


class BinaryAccuracy(MeanMetricWrapper):
    """Fraction of predictions for which (y_pred > threshold) equals y_true."""

    def __init__(self, name: str = "binary_accuracy", dtype: Any = None, threshold: float = 0.5) -> None:
        if threshold is not None and not 0 <= threshold <= 1:
            raise ValueError(
                "Invalid value for argument `threshold`. Expected a value in interval [0, 1]. "
                f"Received: threshold={threshold}"
            )
        super().__init__(binary_accuracy, name, dtype, threshold=threshold)


class CategoricalAccuracy(MeanMetricWrapper):
    """Fraction of predictions whose argmax is correct; labels one-hot."""

    def __init__(self, name: str = "categorical_accuracy", dtype: Any = None) -> None:
        super().__init__(categorical_accuracy, name, dtype)


class SparseCategoricalAccuracy(MeanMetricWrapper):
    """Fraction of predictions whose argmax is correct; labels are class indices."""

    def __init__(self, name: str = "sparse_categorical_accuracy", dtype: Any = None) -> None:
        super().__init__(sparse_categorical_accuracy, name, dtype)


class TopKCategoricalAccuracy(MeanMetricWrapper):
    """Fraction of predictions whose k largest scores include the label; labels one-hot."""

    def __init__(self, k: int = 5, name: str = "top_k_categorical_accuracy", dtype: Any = None) -> None:
        super().__init__(top_k_categorical_accuracy, name, dtype, k=k)
        self.k = k


class SparseTopKCategoricalAccuracy(MeanMetricWrapper):
    """Fraction of predictions whose k largest scores include the label; labels are class indices."""

    def __init__(
        self,
        k: int = 5,
        name: str = "sparse_top_k_categorical_accuracy",
        dtype: Any = None,
        from_sorted_ids: bool = False,
    ) -> None:
        super().__init__(sparse_top_k_categorical_accuracy, name, dtype, k=k, from_sorted_ids=from_sorted_ids)
        self.k, self.from_sorted_ids = k, from_sorted_ids
