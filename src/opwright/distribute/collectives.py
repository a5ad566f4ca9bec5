"""Operators that all workers run together, eagerly and in functions.

Lives here: `Group`, the queue of a strategy's collectives; all-reduce in two halves, all-gather.
Not here: the exchange (communicators.py), which tensors are reduced (gradients.py).

Each operator's first input is a handle of the group, which orders the collectives among each other and nothing else:
plans of machine code run between them, and updates of variables wait for values alone. `StartAllReduce` returns at
once, a thread of the group exchanges; `FinishAllReduce` waits.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import forks
from ..core.dtypes import any_dtype, resource
from ..core.specs import TensorSpec
from ..eager.tensor import EagerTensor
from ..ops import dispatch
from ..ops.attributes import Attr
from ..ops.definition import operator
from ..ops.slots import Input, OperatorDefinition, Output

if TYPE_CHECKING:
    from ..ops.tensor import Tensor
    from .communicators import Communicator

_HANDLE = TensorSpec((), resource)


class Collective:
    """A collective in progress."""

    shape = ()  # as of all objects of handles

    def __init__(self, run: Callable[[], list[np.ndarray]]) -> None:
        self._run, self._done = run, threading.Event()
        self._result: list[np.ndarray] = []
        self._error: BaseException | None = None

    def perform(self) -> None:
        """Run it in the calling thread."""
        try:
            self._result = self._run()
        except BaseException as error:
            self._error = error
        finally:
            del self._run  # and the arrays that it sends
            self._done.set()

    def result(self) -> list[np.ndarray]:
        """Wait for the arrays, and return them. Raises what the collective raised."""
        self._done.wait()
        if self._error is not None:
            raise self._error
        return self._result


class Group:
    """The collectives of a strategy, in program order: in the calling thread, or if `overlap` in one of their own."""

    shape = ()

    def __init__(self, communicator: Communicator, overlap: bool) -> None:
        self.communicator, self.overlap = communicator, overlap
        self._lock = forks.lock()
        self._waiting: queue.SimpleQueue[Collective | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._last: Collective | None = None
        self._handle: Any = None

    @property
    def handle(self) -> Tensor:
        """The tensor by which operators refer to the group: one object, so that functions capture it once."""
        if self._handle is None:
            self._handle = EagerTensor(self, resource)
        tensor: Tensor = self._handle
        return tensor

    def start(self, run: Callable[[], list[np.ndarray]]) -> Collective:
        """Start a collective after the earlier ones."""
        job = Collective(run)
        if not self.overlap:
            job.perform()
            return job
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="collectives", daemon=True)
                self._thread.start()
            self._last = job
            self._waiting.put(job)
        return job

    def run(self, collective: Callable[[], list[np.ndarray]]) -> list[np.ndarray]:
        """Run a collective after the earlier ones, and return its arrays: without a change of threads."""
        if self._last is not None:
            self._last._done.wait()
        job = Collective(collective)
        job.perform()
        return job.result()

    def broadcast(self, array: np.ndarray, root: int = 0) -> None:
        """Overwrite an array by that of worker `root`, after the earlier collectives."""

        def collective() -> list[np.ndarray]:
            self.communicator.broadcast(array, root)
            return []

        self.run(collective)

    def close(self) -> None:
        """End the thread, after the collectives that wait."""
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join()
            self._thread = None

    def _serve(self) -> None:
        while (job := self._waiting.get()) is not None:
            job.perform()

    def __repr__(self) -> str:
        return f"<worker {self.communicator.rank} of {self.communicator.size}>"


@operator
class StartAllReduce(OperatorDefinition[tuple[Any, Any]]):
    """Start the sums of tensors and of sparse rows over all workers.

    .. math:: passed = carried

    input: tensors to add. values: sparse rows to add, each [n, ...] with n of its own on each worker; indices: theirs,
    [n]. carried: tensors that later calls read; what reads `passed` instead runs after the start. divisor: of the sums.
    """

    group = Input(resource)
    input = Input(any_dtype, repeated=True, mixed=True)
    values = Input(any_dtype, repeated=True, mixed=True)
    indices = Input(any_dtype, repeated=True, mixed=True)
    carried = Input(any_dtype, repeated=True, mixed=True)
    job = Output(dtype=resource)
    passed = Output(repeated=True, kind="as carried")
    divisor = Attr(float, default=1.0)
    effect = "write"
    views = {"passed": "carried"}
    gradient = None

    def infer(op) -> tuple[TensorSpec, list[TensorSpec]]:
        return _HANDLE, [x.spec for x in op.carried]

    def compute(op, group: Group, input: Any, values: Any, indices: Any, carried: Any) -> tuple[Collective, list[Any]]:
        arrays, rows = list(map(np.asarray, input)), list(zip(map(np.asarray, indices), map(np.asarray, values)))

        def collective() -> list[np.ndarray]:
            sums, merged = group.communicator.all_reduce_with_rows(arrays, rows, op.divisor)
            return [*sums, *(v for _, v in merged), *(i for i, _ in merged)]

        return group.start(collective), list(carried)


@operator
class FinishAllReduce(OperatorDefinition[Any]):
    """Wait for sums over all workers.

    .. math:: output = \\frac{1}{divisor} \\sum_r input_r

    job: of StartAllReduce. input, values, indices: what it was started for, by shape alone. output: sums
    of input; then values and then indices of the sums of sparse rows, each index once, ascending.
    raises WorkerLostError
    """

    job = Input(resource)
    input = Input(any_dtype, repeated=True, mixed=True)
    values = Input(any_dtype, repeated=True, mixed=True)
    indices = Input(any_dtype, repeated=True, mixed=True)
    output = Output(repeated=True, kind="as input, values and indices, with any number of rows")
    shape_only = ("input", "values", "indices")
    gradient = None

    def infer(op) -> list[TensorSpec]:
        rows = [TensorSpec([None, *v.shape[1:]], v.dtype) for v in op.values]
        return [*(x.spec for x in op.input), *rows, *(TensorSpec([None], i.dtype) for i in op.indices)]

    def compute(op, job: Collective, input: Any, values: Any, indices: Any) -> list[np.ndarray]:
        return job.result()


@operator
class AllReduce(OperatorDefinition[Any]):
    """Return the sum of a tensor over all workers.

    .. math:: y = \\sum_r x_r
    """

    group = Input(resource)
    x = Input(any_dtype)
    y = Output(like="x")
    effect = "write"

    def infer(op) -> TensorSpec:
        spec: TensorSpec = op.x.spec
        return spec

    def compute(op, group: Group, x: np.ndarray) -> np.ndarray:
        return group.run(lambda: group.communicator.all_reduce([np.asarray(x)]))[0]

    def gradient(op, dy: Tensor) -> tuple[None, Tensor]:
        return None, AllReduce(op.group, dy)


@operator
class AllGather(OperatorDefinition[Any]):
    """Return the tensors of all workers, of equal shapes, by rank.

    .. math:: y_{r} = x_r

    y: [size, ...]. The gradient is the sum of all workers' gradients of this worker's entry.
    """

    group = Input(resource)
    x = Input(any_dtype)
    y = Output(kind="as x, with a first axis of all workers")
    size = Attr(int)
    rank = Attr(int)
    effect = "write"

    def infer(op) -> TensorSpec:
        return TensorSpec([op.size, *op.x.shape], op.x.dtype)

    def compute(op, group: Group, x: np.ndarray) -> np.ndarray:
        return group.run(lambda: [group.communicator.all_gather(np.asarray(x))])[0]

    def gradient(op, dy: Tensor) -> tuple[None, Tensor]:
        return None, AllReduce(op.group, dy)[op.rank]


def all_reduced(group: Group, tensors: Sequence[Any]) -> list[Any]:
    """Return the sums of tensors over all workers, by one exchange."""
    job, _ = StartAllReduce(group.handle, list(tensors), [], [], [])
    return list(FinishAllReduce(job, list(tensors), [], []))


def all_gathered(group: Group, tensor: Any) -> Any:
    """Return the tensors of all workers by rank: [size, ...]. Gradients flow through it."""
    communicator = group.communicator
    return AllGather(group.handle, dispatch.to_tensor(tensor), size=communicator.size, rank=communicator.rank)
