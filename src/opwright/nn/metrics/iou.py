"""Intersection over union of predicted and true regions.

Lives here: IoU and its variants for binary masks, one-hot labels, and all classes.
Not here: Dice and Tversky (losses/).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...core.dtypes import int32
from ...ops import array, dispatch, math
from ..reduction import as_floating, expand_weights
from .base import Metric

if TYPE_CHECKING:
    from ...ops.tensor import Tensor


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
