"""Work done ahead and beside: prefetching in a thread, a map's function on several elements at once.

Lives here: the threads and their queues.  Not here: what is computed.

Both hand items over through `queue.SimpleQueue`, which is written in C: about 2 us an item, where queue.Queue takes 8.
A thread ends when its consumer does: the consumer is a generator, and closing it (or losing it) sends the word.
"""

from __future__ import annotations

import collections
import functools
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from ..core import forks
from ..core.errors import FailedPreconditionError, InvalidArgumentError
from ..eager.tensor import EagerTensor
from ..tracing.symbolic import SymbolicTensor
from .base import int_operand, static_int
from .context import IteratorContext
from .dataset import Dataset
from .functions import Failure

AUTOTUNE = -1
_AHEAD = 8  # elements that prefetch(AUTOTUNE) holds
_WORTH_A_THREAD = 200e-6  # seconds that a function must take before handing it to another thread pays
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
        return prefetched(functools.partial(self._inputs[0].flow, context.input()), _AHEAD if size < 0 else size)

    def _cardinality(self) -> int:
        return int(self._inputs[0]._cardinality())


def prefetched(start: Callable[[], Iterator[Any]], size: int) -> Iterator[Any]:
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
                raise _cut_off("prefetch")
            item = get()
            if item is _END:
                return
            put(None)
            yield item
    finally:
        room.put(_STOP)


def _cut_off(what: str) -> FailedPreconditionError:
    return FailedPreconditionError(
        op=f"Dataset.{what}",
        what="its threads are in the process that this one was forked from",
        do="begin to iterate after the fork",
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
    except Exception as error:  # no user's function raises here: those give Failures
        ready.put(Failure(error))
        ready.put(_END)


def calls_at_once(num_parallel_calls: Any) -> int:
    """Return the number of threads for `num_parallel_calls`: 1 for None, the number of cores for AUTOTUNE.

    raises ValueError or InvalidArgumentError for numbers that mean nothing
    """
    if num_parallel_calls is None:
        return 1
    if type(num_parallel_calls) is SymbolicTensor:
        return os.cpu_count() or 1
    if isinstance(num_parallel_calls, EagerTensor):
        num_parallel_calls = int(num_parallel_calls)
    if num_parallel_calls == AUTOTUNE:
        return os.cpu_count() or 1
    if num_parallel_calls < 1:
        raise InvalidArgumentError(
            op="Dataset", found=num_parallel_calls, what="num_parallel_calls must be greater than zero."
        )
    return int(num_parallel_calls)


def in_parallel(call: Callable[..., Any], items: Iterator[Any], at_once: int, ordered: bool) -> Iterator[Any]:
    """Yield the function's result for each element, computed by `num_threads` threads once calls are slow.

    ordered: whether results come in the elements' order, else as they are done.
    """
    spent, n = 0.0, 0
    for item in items:
        if type(item) is Failure:
            yield item
            continue
        began = time.perf_counter()
        result = _tried(call, item)
        spent += time.perf_counter() - began
        n += 1
        yield result
        if spent > _WORTH_A_THREAD * n:
            break
    else:
        return
    yield from _pooled(call, items, at_once, ordered)


def _tried(call: Callable[..., Any], item: Any) -> Any:
    try:
        return call(*item)
    except Exception as error:
        return Failure(error)


def _pooled(call: Callable[..., Any], items: Iterator[Any], at_once: int, ordered: bool) -> Iterator[Any]:
    tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
    done: queue.SimpleQueue[Any] = queue.SimpleQueue()
    for _ in range(at_once):
        threading.Thread(target=_work, args=(call, tasks, done), name="opwright-map", daemon=True).start()
    waiting: collections.deque[int] = collections.deque()
    results: dict[int, Any] = {}
    submitted = 0
    more = True
    process = forks.generation
    try:
        while more or waiting:
            if forks.generation != process:
                raise _cut_off("map")
            while more and len(waiting) < 2 * at_once:
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
        for _ in range(at_once):
            tasks.put(_STOP)


def _work(call: Callable[..., Any], tasks: Any, done: Any) -> None:
    while True:
        task = tasks.get()
        if task is _STOP:
            return
        number, item = task
        done.put((number, item if type(item) is Failure else _tried(call, item)))
