"""Buffers of elements: prefetching, parallel calls of a map's function, caches in memory or in a file.

Lives here: threads and their queues, the cache and its file format.  Not here: the computation of elements.

Threads exchange items through `queue.SimpleQueue`, which is implemented in C: about 2 us per item, where queue.Queue
takes 8. A thread ends with its consumer: the consumer is a generator, which sends a stop signal when it is closed or
collected.

A cache file outlives the process. It is replaced atomically when it is complete. Numbers are little-endian. An
iteration that is abandoned or has a Failure caches nothing.

    file    = magic b"OWCACHE1", then one record per element, then the end
    record  = b"E", then for each component: rank and sizes as int64, and the bytes (a string: its length and bytes)
    end     = b".", the number of elements as int64
"""

from __future__ import annotations

import collections
import functools
import json
import os
import queue
import struct
import threading
import time
from collections.abc import Callable, Iterator
from typing import IO, Any, TypeVar

import numpy as np

from ..core import forks
from ..core.dtypes import DType
from ..core.errors import DataLossError, FailedPreconditionError, InvalidArgumentError
from ..core.files import Replacement
from ..core.processors import usable_processors
from ..eager.tensor import EagerTensor, convert_to_tensor
from ..tracing.symbolic import SymbolicTensor
from .base import int_operand, static_int
from .dataset import Dataset
from .functions import Failure, IteratorContext
from .structure import operand

T = TypeVar("T")

AUTOTUNE = -1
_AUTOTUNE_BUFFER = 8  # buffer size of prefetch(AUTOTUNE)
_MIN_SECONDS_PER_THREAD_TASK = 200e-6  # minimum seconds per call for which a thread pays off
_END: Any = object()
_STOP: Any = object()


class _PrefetchDataset(Dataset):
    def __init__(self, input_dataset: Any, buffer_size: Any) -> None:
        size = int_operand(AUTOTUNE if buffer_size is None else buffer_size, "buffer_size")
        super().__init__(input_dataset.element_spec, (input_dataset,), (size,))
        self.begin()

    def begin(self) -> None:
        size = static_int(self._operands[0])
        if size is not None and size < AUTOTUNE:
            raise InvalidArgumentError(
                op="Dataset.prefetch",
                found=size,
                what="buffer_size must be >= 0 or set buffer_size to be -1 for auto-tuning",
            )

    def flow(self, context: IteratorContext) -> Iterator[Any]:
        size = int(self._operands[0])
        if size == 0:
            return iter(self._inputs[0].flow(context.input()))
        return prefetch_items(
            functools.partial(self._inputs[0].flow, context.input()), _AUTOTUNE_BUFFER if size < 0 else size
        )

    def _cardinality(self) -> int:
        return int(self._inputs[0]._cardinality())


def prefetch_items(start: Callable[[], Iterator[Any]], size: int) -> Iterator[Any]:
    """Yield items computed by a thread at most `size` items ahead, started by the first `next`."""
    ready: queue.SimpleQueue[Any] = queue.SimpleQueue()
    room: queue.SimpleQueue[Any] = queue.SimpleQueue()
    for _ in range(size):
        room.put(None)
    threading.Thread(target=_produce, args=(start, ready, room), name="opwright-prefetch", daemon=True).start()
    try:
        get, put, process = ready.get, room.put, forks.generation
        while True:
            if forks.generation != process:
                raise _fork_error("prefetch")
            item = get()
            if item is _END:
                return
            put(None)
            yield item
    finally:
        room.put(_STOP)


def _fork_error(what: str) -> FailedPreconditionError:
    return FailedPreconditionError(
        op=f"Dataset.{what}",
        what="its threads belong to the parent process of the fork",
        do="start the iteration after the fork",
    )


def _produce(start: Callable[[], Iterator[Any]], ready: Any, room: Any) -> None:
    try:
        items = start()
        wait, put = room.get, ready.put
        while wait() is not _STOP:
            item = next(items, _END)
            put(item)
            if item is _END:
                return
    except Exception as error:  # not of a user function, whose errors are Failures
        ready.put(Failure(error))
        ready.put(_END)


def num_threads(num_parallel_calls: Any) -> int:
    """Return the number of threads for `num_parallel_calls`: 1 for None, the number of cores for AUTOTUNE.

    raises InvalidArgumentError for other numbers below 1
    """
    if num_parallel_calls is None:
        return 1
    if type(num_parallel_calls) is SymbolicTensor:
        return usable_processors()
    if isinstance(num_parallel_calls, EagerTensor):
        num_parallel_calls = int(num_parallel_calls)
    if num_parallel_calls == AUTOTUNE:
        return usable_processors()
    if num_parallel_calls < 1:
        raise InvalidArgumentError(
            op="Dataset", found=num_parallel_calls, what="num_parallel_calls must be greater than zero."
        )
    return int(num_parallel_calls)


def parallel_map(call: Callable[..., Any], items: Iterator[Any], thread_count: int, ordered: bool) -> Iterator[Any]:
    """Yield the function's result for each element, computed by `num_threads` threads once calls are slow.

    ordered: whether results are in the elements' order, instead of completion order.
    """
    spent, n = 0.0, 0
    for item in items:
        if type(item) is Failure:
            yield item
            continue
        began = time.perf_counter()
        result = _call_or_failure(call, item)
        spent += time.perf_counter() - began
        n += 1
        yield result
        if spent > _MIN_SECONDS_PER_THREAD_TASK * n:
            break
    else:
        return
    yield from _thread_pool_map(call, items, thread_count, ordered)


def _call_or_failure(call: Callable[..., T], item: Any) -> T | Failure:
    try:
        return call(*item)
    except Exception as error:
        return Failure(error)


def _thread_pool_map(call: Callable[..., Any], items: Iterator[Any], thread_count: int, ordered: bool) -> Iterator[Any]:
    tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
    done: queue.SimpleQueue[Any] = queue.SimpleQueue()
    for _ in range(thread_count):
        threading.Thread(target=_work, args=(call, tasks, done), name="opwright-map", daemon=True).start()
    waiting: collections.deque[int] = collections.deque()
    results: dict[int, Any] = {}
    submitted = 0
    more = True
    process = forks.generation
    try:
        while more or waiting:
            if forks.generation != process:
                raise _fork_error("map")
            while more and len(waiting) < 2 * thread_count:
                item = next(items, _END)
                if item is _END:
                    more = False
                else:
                    tasks.put((submitted, item))
                    waiting.append(submitted)
                    submitted += 1
            if not waiting:
                return
            if ordered:
                number = waiting.popleft()
                while number not in results:
                    key, result = done.get()
                    results[key] = result
                yield results.pop(number)
            else:
                waiting.pop()
                yield done.get()[1]
    finally:
        for _ in range(thread_count):
            tasks.put(_STOP)


def _work(call: Callable[..., Any], tasks: Any, done: Any) -> None:
    while True:
        task = tasks.get()
        if task is _STOP:
            return
        number, item = task
        done.put((number, item if type(item) is Failure else _call_or_failure(call, item)))


_MAGIC = b"OWCACHE1"


class _CacheDataset(Dataset):
    def __init__(self, input_dataset: Any, filename: Any) -> None:
        name = operand(convert_to_tensor(filename, "string"))
        if any(d.is_handle for d in input_dataset._form.dtypes) and (type(name) is SymbolicTensor or name[()]):
            raise TypeError(f"datasets of datasets cannot be cached in a file: {input_dataset.element_spec!r}")
        super().__init__(input_dataset.element_spec, (input_dataset,), (name,))
        self.begin()

    def begin(self) -> None:
        self._cached: list[Any] | None = None

    def flow(self, context: IteratorContext) -> Iterator[Any]:
        name = self._operands[0][()]
        if name:
            path = name.decode()
            if os.path.exists(path):
                return read_elements(path, self._form.dtypes)
            return self._cache_in_file(path, context)
        return self._cache_in_memory(context) if self._cached is None else iter(self._cached)

    def _cache_in_memory(self, context: IteratorContext) -> Iterator[Any]:
        items: list[Any] = []
        complete = True
        for item in self._inputs[0].flow(context.input()):
            if type(item) is Failure:
                complete = False
            else:
                items.append(item)
            yield item
        if complete:
            self._cached = items

    def _cache_in_file(self, path: str, context: IteratorContext) -> Iterator[Any]:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        new = Replacement(path)
        try:
            file = new.file
            file.write(_MAGIC)
            header = json.dumps([d.name for d in self._form.dtypes]).encode()
            file.write(struct.pack("<q", len(header)) + header)
            count, complete = 0, True
            for item in self._inputs[0].flow(context.input()):
                if type(item) is Failure:
                    complete = False
                elif complete:
                    file.write(b"E")
                    for array in item:
                        _write_array(file, array)
                    count += 1
                yield item
            file.write(b"." + struct.pack("<q", count))
            if complete:
                new.commit(sync=True)
        finally:
            new.discard()

    def _cardinality(self) -> int:
        return int(self._inputs[0]._cardinality())


def _write_array(file: IO[bytes], array: np.ndarray) -> None:
    file.write(struct.pack(f"<{1 + array.ndim}q", array.ndim, *array.shape))
    if array.dtype == object:
        for text in array.ravel():
            file.write(struct.pack("<q", len(text)))
            file.write(text)
    else:
        file.write(np.ascontiguousarray(array).tobytes())


def read_elements(path: str, dtypes: tuple[DType, ...]) -> Iterator[Any]:
    """Yield the elements of a cache file, or the DataLossError of a damaged one."""

    def damaged(what: str) -> DataLossError:
        return DataLossError(
            op="Dataset.cache",
            what=f"{path!r} is not a complete cache file of this dataset: {what}",
            do="delete it; the next iteration writes it again",
        )

    size = os.path.getsize(path)
    with open(path, "rb") as file:

        def exactly(n: int) -> bytes:
            if n < 0 or n > size:
                raise damaged(f"a length of {n} bytes")
            data = file.read(n)
            if len(data) != n:
                raise damaged("it ends early")
            return data

        def numbers(n: int) -> tuple[int, ...]:
            if not 0 <= n <= 64:
                raise damaged(f"a rank of {n}")
            return struct.unpack(f"<{n}q", exactly(8 * n))

        try:
            if exactly(len(_MAGIC)) != _MAGIC:
                raise damaged("unknown magic bytes")
            header = exactly(*numbers(1)).decode(errors="replace")
            if header != json.dumps([d.name for d in dtypes]):
                raise damaged(f"it contains elements of dtypes {header}")
            count = 0
            while (mark := exactly(1)) == b"E":
                item = []
                for dtype in dtypes:
                    shape = numbers(*numbers(1))
                    n = int(np.prod(shape, dtype=object)) if shape else 1
                    if min(shape, default=0) < 0 or n * (dtype.size or 8) > size:
                        raise damaged(f"a shape of {shape}")
                    if dtype.name == "string":
                        array = np.fromiter((exactly(*numbers(1)) for _ in range(n)), object, n)
                    else:
                        array = np.frombuffer(exactly(n * dtype.size), dtype.np)
                    item.append(array.reshape(shape))
                count += 1
                yield tuple(item)
            if mark != b"." or numbers(1) != (count,):
                raise damaged("the end record is missing")
        except DataLossError as error:
            yield Failure(error)
