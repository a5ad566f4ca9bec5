"""Metrics of predicted classes: accuracies, and intersection over union of regions.

Lives here: accuracy functions [batch, ..., classes] -> [batch, ...] of 0 and 1, and their classes; IoU and its variants
for binary masks, one-hot labels, and all classes.
Not here: counts by kind of error (confusion.py), Dice and Tversky (losses/).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...core.dtypes import as_dtype, int32, int64
from ...ops import array, dispatch, math
from .. import backend
from ..reduction import as_floating, expand_weights, same_rank
from .base import MeanMetricWrapper, Metric

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


class IoU(Metric):
    """Mean over classes of tp / (tp + fp + fn).

    num_classes: the number of classes. target_class_ids: the classes that count. ignore_class: elements with this label
    do not count. sparse_y_true, sparse_y_pred: whether they contain class indices, instead of scores along `axis`.
    raises ValueError for target classes out of range
    """

    def __init__(
        self,
        num_classes: int,
        target_class_ids: Sequence[int],
        name: str | None = None,
        dtype: Any = None,
        ignore_class: int | None = None,
        sparse_y_true: bool = True,
        sparse_y_pred: bool = True,
        axis: int = -1,
    ) -> None:
        super().__init__(dtype, name)
        if max(target_class_ids) >= num_classes:
            raise ValueError(f"Target class id {max(target_class_ids)} is out of range, which is [0, {num_classes}).")
        self.num_classes, self.target_class_ids, self.ignore_class = num_classes, list(target_class_ids), ignore_class
        self.sparse_y_true, self.sparse_y_pred, self.axis = sparse_y_true, sparse_y_pred, axis
        self.total_cm = self.add_variable((num_classes, num_classes), "zeros", name="total_confusion_matrix")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Accumulate a batch of class indices, or of scores with an axis of classes."""
        y_true, y_pred = dispatch.to_tensor(y_true), dispatch.to_tensor(y_pred)
        if not self.sparse_y_true:
            y_true = math.argmax(y_true, axis=self.axis)
        if not self.sparse_y_pred:
            y_pred = math.argmax(y_pred, axis=self.axis)
        true, guess = array.reshape(array.cast(y_true, int32), [-1]), array.reshape(array.cast(y_pred, int32), [-1])
        weight = array.ones_like(array.cast(true, self._dtype))
        if sample_weight is not None:
            sample_weights = expand_weights(as_floating(sample_weight, self._dtype), y_true)
            weight = array.reshape(sample_weights + array.zeros_like(array.cast(y_true, self._dtype)), [-1])
        if self.ignore_class is not None:
            valid = math.not_equal(true, self.ignore_class)
            weight = array.where(valid, weight, array.zeros_like(weight))
            true, guess = (array.where(valid, x, array.zeros_like(x)) for x in (true, guess))
        inside = (true >= 0) & (true < self.num_classes) & (guess >= 0) & (guess < self.num_classes)
        weight = array.where(inside, weight, array.zeros_like(weight))  # elements out of range do not count
        true, guess = (array.where(inside, x, array.zeros_like(x)) for x in (true, guess))
        cells = true * self.num_classes + guess
        counts = math.unsorted_segment_sum(weight, cells, self.num_classes**2)
        self.total_cm.assign_add(array.reshape(counts, [self.num_classes, self.num_classes]))

    def result(self) -> Tensor:
        """Return the mean over the target classes that occur."""
        matrix = self.total_cm.value()
        ids = dispatch.to_tensor(self.target_class_ids, int32)
        right = array.gather_nd(matrix, array.stack([ids, ids], axis=1))
        rows, columns = math.reduce_sum(matrix, axis=1), math.reduce_sum(matrix, axis=0)
        union = array.gather(rows, ids) + array.gather(columns, ids) - right
        occurring = math.reduce_sum(array.cast(union > 1e-9, self._dtype))
        return math.divide_no_nan(math.reduce_sum(math.divide_no_nan(right, union)), occurring)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        names = ("num_classes", "target_class_ids", "ignore_class", "sparse_y_true", "sparse_y_pred", "axis")
        return {**super().get_config(), **{n: getattr(self, n) for n in names}}


class BinaryIoU(IoU):
    """IoU of two classes; y_pred >= threshold is class 1."""

    def __init__(
        self,
        target_class_ids: Sequence[int] = (0, 1),
        threshold: float | None = 0.5,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(2, target_class_ids, name, dtype)
        self.threshold = threshold

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Accumulate a batch. y_true: 0 or 1. y_pred: in [0, 1]."""
        y_pred = as_floating(y_pred, self._dtype)
        if self.threshold is not None:
            y_pred = array.cast(y_pred >= self.threshold, int32)
        super().update_state(y_true, y_pred, sample_weight)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {
            "target_class_ids": self.target_class_ids,
            "threshold": self.threshold,
            "name": self.name,
            "dtype": self.dtype,
        }


class MeanIoU(IoU):
    """IoU over all classes."""

    def __init__(
        self,
        num_classes: int,
        name: str | None = None,
        dtype: Any = None,
        ignore_class: int | None = None,
        sparse_y_true: bool = True,
        sparse_y_pred: bool = True,
        axis: int = -1,
    ) -> None:
        super().__init__(
            num_classes, list(range(num_classes)), name, dtype, ignore_class, sparse_y_true, sparse_y_pred, axis
        )

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {k: v for k, v in super().get_config().items() if k != "target_class_ids"}


class OneHotIoU(IoU):
    """IoU, labels one-hot."""

    def __init__(
        self,
        num_classes: int,
        target_class_ids: Sequence[int],
        name: str | None = None,
        dtype: Any = None,
        ignore_class: int | None = None,
        sparse_y_pred: bool = False,
        axis: int = -1,
    ) -> None:
        super().__init__(num_classes, target_class_ids, name, dtype, ignore_class, False, sparse_y_pred, axis)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {k: v for k, v in super().get_config().items() if k != "sparse_y_true"}


class OneHotMeanIoU(MeanIoU):
    """IoU over all classes, labels one-hot."""

    def __init__(
        self,
        num_classes: int,
        name: str | None = None,
        dtype: Any = None,
        ignore_class: int | None = None,
        sparse_y_pred: bool = False,
        axis: int = -1,
    ) -> None:
        super().__init__(num_classes, name, dtype, ignore_class, False, sparse_y_pred, axis)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {k: v for k, v in super().get_config().items() if k != "sparse_y_true"}
