"""Batches of data for training: from arrays, tensors, structures of them, datasets, sequences and generators.

Lives here: the iteration over all of these by epochs; `Lookahead`, which draws a batch while a step runs.
Not here: steps on batches (trainer.py).

A batch is (x,), (x, y) or (x, y, sample_weight), of tensors; a single tensor x is passed without a tuple.
"""

from __future__ import annotations

import contextvars
import functools
import itertools
import math
import queue
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ...core import flags, nest
from ...core.dtypes import as_dtype
from ...core.errors import ResourceExhaustedError
from ...ops import array, dispatch
from ...ops.sparse import SparseTensor, to_dense
from ...ops.tensor import TensorLike
from .. import backend
from ..random import default_seed


def pack(x: Any, y: Any = None, sample_weight: Any = None) -> Any:
    """Return x, y and sample_weight as `train_step` expects them."""
    if sample_weight is not None:
        return (x, y, sample_weight)
    if y is not None:
        return (x, y)
    return (x,) if nest.is_nested(x) else x


def unpack(data: Any) -> tuple[Any, Any, Any]:
    """Return x, y and sample_weight of a batch; None for missing parts.

    raises ValueError for a tuple with more than three entries
    """
    if isinstance(data, list):
        data = tuple(data)
    if not isinstance(data, tuple):
        return data, None, None
    if len(data) > 3:
        raise ValueError(
            "Data is expected to be in format `x`, `(x,)`, `(x, y)`, or `(x, y, sample_weight)`, found: "
            f"a tuple of {len(data)}"
        )
    x, y, sample_weight = (*data, None, None, None)[:3]
    return x, y, sample_weight


def as_array(value: Any) -> np.ndarray:
    """Convert data to an array; float64 becomes the default dtype of weights."""
    if isinstance(value, SparseTensor):
        value = to_dense(value)
    array = np.asarray(value.numpy() if isinstance(value, TensorLike) else value)
    if array.dtype == np.float64:
        array = array.astype(as_dtype(backend.floatx()).np)
    return array


class Batches:
    """Source of batches, iterated epoch by epoch. steps: batches per epoch, None if unknown."""

    steps: int | None = None
    samples: int | None = None

    def epoch(self) -> Iterator[Any]:
        """Yield the batches of the next epoch."""
        raise NotImplementedError(f"{type(self).__name__} has no epoch()")

    def restart(self) -> None:
        """Start the next epoch at the first batch, even if a limit on steps ended the previous one early."""


class ArrayBatches(Batches):
    """Batches of in-memory arrays, optionally shuffled in every epoch."""

    def __init__(self, x: Any, y: Any, sample_weight: Any, batch_size: int | None, shuffle: Any) -> None:
        leaf = lambda v: None if v is None else as_array(v)  # noqa: E731
        self.data = [nest.map_structure(leaf, _as_arrays(part)) for part in (x, y, sample_weight)]
        sizes = {len(a) if a.ndim else 0 for part in self.data for a in nest.flatten(part) if a is not None}
        if len(sizes) > 1:
            raise ValueError(
                "Data cardinality is ambiguous. Make sure all arrays contain the same number of samples. "
                f"Found {sorted(sizes)}"
            )
        self.samples = sizes.pop() if sizes else 0
        self.batch_size = batch_size or 32
        self.steps = math.ceil(self.samples / self.batch_size)
        self.shuffle = shuffle
        self.part_of: Callable[[int], slice] | None = None  # this worker's examples of a batch of n
        self.reseed(default_seed())

    def reseed(self, seed: int) -> None:
        """Shuffle by another seed from the next epoch on."""
        self.seed = seed
        self._random = np.random.default_rng(seed)

    def count_of(self, number: int) -> int:
        """Return the number of examples of a batch."""
        return min(self.batch_size, (self.samples or 0) - number * self.batch_size)

    def epoch(self) -> Iterator[Any]:
        """Yield the batches of the next epoch."""
        assert self.samples is not None
        order = None
        if self.shuffle == "batch":
            starts = self._random.permutation(self.steps or 0) * self.batch_size
            order = (
                np.concatenate([np.arange(s, min(s + self.batch_size, self.samples)) for s in starts])
                if len(starts)
                else None
            )
        elif self.shuffle:
            order = self._random.permutation(self.samples)
        for start in range(0, self.samples, self.batch_size):
            stop = start + self.batch_size
            if self.part_of is not None:
                part = self.part_of(self.count_of(start // self.batch_size))
                start, stop = start + part.start, start + part.stop
            indices: Any = slice(start, stop) if order is None else order[start:stop]
            yield pack(*[nest.map_structure(functools.partial(_rows_of, indices), part) for part in self.data])


def _rows_of(indices: Any, values: Any) -> Any:
    """Return a tensor of these rows of an array; None for no array. Raises ResourceExhaustedError."""
    if values is None:
        return None
    try:
        rows = values[indices]
    except MemoryError as error:
        raise ResourceExhaustedError(what="no memory for a batch", found=str(error)) from None
    return dispatch.to_tensor(rows)


def _as_arrays(part: Any) -> Any:
    """Convert a list of numbers to an array; a list of arrays is a list of inputs."""
    if isinstance(part, (list, tuple)) and part and all(each is None for each in part):
        return part  # optional inputs
    if isinstance(part, (list, tuple)) and part and not nest.is_nested(part[0]) and not hasattr(part[0], "shape"):
        return np.asarray(part)
    if isinstance(part, list) and part and isinstance(part[0], list):
        return np.asarray(part)
    to_numpy = getattr(part, "to_numpy", None)  # of a data frame or a column of one
    return part if to_numpy is None else to_numpy()


class IterableBatches(Batches):
    """Batches of a dataset, sequence or loader, restarted in every epoch; or of a generator, which continues."""

    def __init__(self, source: Any) -> None:
        self.source = source
        self._running: Iterator[Any] | None = None
        self.steps = _length(source)
        self.once = iter(source) is source if hasattr(source, "__next__") else False

    def epoch(self) -> Iterator[Any]:
        """Yield the batches of the next epoch."""
        if self._running is None or not self.once:
            self._running = self._items()
        for item in self._running:
            yield _as_tensors(item)
        self._running = None

    def restart(self) -> None:
        """Restart the source, unless it is a generator."""
        if not self.once:
            self._running = None

    def _items(self) -> Iterator[Any]:
        if (
            hasattr(self.source, "__getitem__")
            and hasattr(self.source, "__len__")
            and not hasattr(self.source, "element_spec")
        ):
            if hasattr(self.source, "on_epoch_begin"):
                self.source.on_epoch_begin()
            for i in itertools.count() if self.steps is None else range(self.steps):
                yield self.source[i]
            if hasattr(self.source, "on_epoch_end"):
                self.source.on_epoch_end()
        else:
            yield from self.source


def _as_tensors(item: Any) -> Any:
    if isinstance(item, list):
        item = tuple(item)

    def leaf(v: Any) -> TensorLike | None:
        return v if v is None or isinstance(v, TensorLike) else dispatch.to_tensor(as_array(v))

    return nest.map_structure(leaf, item)


def _length(source: Any) -> int | None:
    cardinality = getattr(source, "cardinality", None)
    if cardinality is not None:
        count = int(cardinality())
        return count if count >= 0 else None
    if hasattr(source, "num_batches"):  # of a PyDataset, None if it has no end
        number: int | None = source.num_batches
        return number
    try:
        return len(source)
    except TypeError:
        return None


def batches_of(
    x: Any,
    y: Any = None,
    sample_weight: Any = None,
    batch_size: int | None = None,
    shuffle: Any = False,
    steps: int | None = None,
    class_weight: dict[int, float] | None = None,
    group: int = 1,
) -> Batches:
    """Return the batches of the data passed to `fit`, at most `steps` an epoch, in whole groups.

    raises ValueError for a missing `x`, or `y` next to a dataset
    """
    if isinstance(x, Batches):
        return x
    if x is None:
        raise ValueError("`x` is missing: pass arrays, a dataset or a generator")
    is_source = hasattr(x, "element_spec") or (
        hasattr(x, "__iter__")
        and not isinstance(x, (list, tuple, dict, TensorLike))
        and not any(hasattr(x, name) for name in ("shape", "iloc", "__array__"))
    )
    if not is_source and hasattr(x, "__getitem__") and hasattr(x, "__len__"):
        is_source = not hasattr(x, "shape") and not hasattr(x, "iloc") and not isinstance(x, (list, tuple, dict))
    if (limit := backend.LIMITS["steps_per_epoch"]) is not None:
        steps = limit if steps is None else min(steps, limit)
    batches: Batches
    if is_source:
        for name, value in (("y", y), ("sample_weight", sample_weight)):
            if value is not None:
                raise ValueError(
                    f"When providing `x` as a dataset or generator, `{name}` should not be passed. "
                    f"Instead, "
                    "it should be included as part of its elements."
                )
        batches = IterableBatches(x)
    else:
        batches = ArrayBatches(x, y, sample_weight, batch_size, shuffle)
    if steps is not None:
        batches = _LimitedBatches(batches, steps, group)
    return batches if class_weight is None else _ClassWeightedBatches(batches, class_weight)


class _LimitedBatches(Batches):
    """At most `steps` batches an epoch, in whole groups; an epoch continues where the previous one ended.

    If the batches end within an epoch, it ends there, with a warning, and the next one starts at the first batch.
    """

    def __init__(self, inner: Batches, steps: int, group: int) -> None:
        self.inner, self.steps, self.samples = inner, steps, inner.samples
        self._group, self._limit = group, steps
        self._once = isinstance(inner, IterableBatches) and inner.once
        self._running: Iterator[Any] | None = None
        self._seen = 0  # batches of the current pass

    def restart(self) -> None:
        """Start at the first batch."""
        if not self._once:
            self._running, self._seen = None, 0

    def epoch(self) -> Iterator[Any]:
        """Yield the batches of the next epoch."""
        length, count = self.inner.steps, 0
        for _ in range(0, self._limit, self._group):
            if length is not None and self._seen >= length:
                self._warn()
                break
            item = None
            for _ in range(self._group):
                item = self._next(is_first=count == 0)
                if item is None:
                    break
                count, self._seen = count + 1, self._seen + 1
                yield item
            if item is None and length is None:
                self._running = None
                if count < self._limit:
                    self._warn()
                break
        if length is not None and self._seen >= length:
            self.restart()

    def _next(self, is_first: bool) -> Any:
        if self._running is None:
            self._running, self._seen = self.inner.epoch(), 0
        item = next(self._running, None)
        if item is None and is_first and not self._once:  # the pass had ended with the previous epoch
            self._running, self._seen = self.inner.epoch(), 0
            item = next(self._running, None)
        return item

    def _warn(self) -> None:
        warnings.warn(
            "Your input ran out of data; interrupting training. Make sure that your dataset or generator can generate "
            "at least `steps_per_epoch * epochs` batches. You may need to use the `.repeat()` function when building "
            "your dataset.",
            UserWarning,
            stacklevel=2,
        )


class _ClassWeightedBatches(Batches):
    """Batches with sample weights by class."""

    def __init__(self, inner: Batches, class_weight: dict[int, float]) -> None:
        self.inner, self.steps, self.samples = inner, inner.steps, inner.samples
        self.table = {int(k): float(v) for k, v in class_weight.items()}

    def epoch(self) -> Iterator[Any]:
        """Yield the batches with sample weights multiplied by class weights."""
        for data in self.inner.epoch():
            x, y, weight = unpack(data)
            if y is None or nest.is_nested(y):
                raise ValueError("`class_weight` is only supported for Models with a single output.")
            labels = np.asarray(y.numpy())
            if labels.ndim >= 2 and labels.shape[-1] > 1:
                labels = labels.argmax(-1)
            elif labels.ndim >= 2:
                labels = labels[..., 0]
            labels = np.rint(labels).astype(np.int64)
            keys = np.array(sorted(self.table))
            values = np.array([self.table[k] for k in keys], np.float32)
            indices = np.clip(np.searchsorted(keys, labels), 0, len(keys) - 1)
            class_weights = np.where(keys[indices] == labels, values[indices], np.float32(1.0)).astype(np.float32)
            new = dispatch.to_tensor(class_weights)
            yield pack(x, y, new if weight is None else array.cast(weight, new.dtype) * new)


def split(x: Any, y: Any, sample_weight: Any, share: float) -> tuple[tuple[Any, Any, Any], tuple[Any, Any, Any]]:
    """Split arrays into a first part and the last `share`. Raises ValueError if a part would be empty."""
    leaf: Callable[[Any], Any] = lambda v: None if v is None else as_array(v)  # noqa: E731
    parts = [nest.map_structure(leaf, _as_arrays(p)) for p in (x, y, sample_weight)]
    arrays = [a for p in parts for a in nest.flatten(p) if a is not None]
    if not arrays or hasattr(x, "element_spec") or hasattr(x, "__next__"):
        raise ValueError("`validation_split` is only supported for tensors or arrays")
    n = len(arrays[0])
    boundary = math.floor(n * (1.0 - share))
    if boundary in (0, n):
        raise ValueError(
            f"Training data contains {n} samples, which is not sufficient to split it into a "
            f"validation and "
            f"training set as specified by `validation_split={share}`. Either provide more data, or a "
            "different value for the `validation_split` argument."
        )
    first = [nest.map_structure(lambda a: None if a is None else a[:boundary], p) for p in parts]
    last = [nest.map_structure(lambda a: None if a is None else a[boundary:], p) for p in parts]
    return tuple(first), tuple(last)


WORTH = 200e-6
"""Seconds that a draw takes at least for the next one to be drawn by a thread: the two changes of threads take 50 us,
and slicing a batch of 128 x 784 floats 65."""


class _Drawn(NamedTuple):
    """The result of a draw: a batch, or what it raised; StopIteration at the end."""

    batch: Any
    error: BaseException | None


class Lookahead:
    """The batches of an epoch, in order, of which a thread draws the next one while a step runs.

        with Lookahead(batches.epoch(), batches.steps) as source:
            for data in source:
                run_step(data, source.start)  # calls source.start() when the step is about to compute
                source.settle()

    A draw runs between `start` and `settle` alone, or in the calling thread: what the loop does otherwise (callbacks,
    tracing of a step, which draws initial values) comes before or after it as without a thread, so that sequences of
    random numbers do not depend on time. Errors are raised where the batch would have been used. At the end the
    iterator is closed, after a draw that has begun. steps: the number of batches, if known: nothing is drawn behind it.
    """

    def __init__(self, batches: Iterator[Any], steps: int | None) -> None:
        self._batches, self._steps = batches, steps
        self._count = 0  # of batches that have been drawn
        self._seconds = 0.0  # of the last draw
        self._drawn: _Drawn | None = None
        self._is_drawing = False
        self._requests: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[_Drawn] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Lookahead:
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self.settle()
        finally:
            if self._thread is not None:
                self._requests.put(False)
            close = getattr(self._batches, "close", None)
            if close is not None and not self._is_drawing:
                close()

    def __iter__(self) -> Iterator[Any]:
        while True:
            self.settle()
            drawn, self._drawn = self._drawn or self._draw(), None
            if isinstance(drawn.error, StopIteration):
                return
            if drawn.error is not None:
                raise drawn.error
            yield drawn.batch

    def start(self) -> None:
        """Let the thread draw the next batch, if there is one and the last one took long enough."""
        if self._is_drawing or self._drawn is not None or self._seconds < WORTH or self._count == self._steps:
            return
        if flags.deterministic:  # the step might draw from the same random sequence
            return
        if self._thread is None:
            context = contextvars.copy_context()
            self._thread = threading.Thread(target=context.run, args=(self._serve,), name="batches", daemon=True)
            self._thread.start()
        self._is_drawing = True
        self._requests.put(True)

    def settle(self) -> None:
        """Wait for the draw that has begun, if any."""
        if self._is_drawing:
            self._drawn = self._results.get()
            self._is_drawing = False

    def _serve(self) -> None:
        while self._requests.get():
            self._results.put(self._draw())

    def _draw(self) -> _Drawn:
        start = time.perf_counter()
        try:
            drawn = _Drawn(next(self._batches), None)
        except BaseException as error:
            return _Drawn(None, error)
        self._seconds = time.perf_counter() - start
        self._count += 1
        return drawn
