"""Strategies of training on workers, with the names of tf.distribute.

Lives here: `WorkerStrategy`, those of one worker, `ReduceOp`, `InputContext`; the strategy that code runs inside of.
Not here: data-parallel training (multi_worker.py), exchange between workers (communicators.py, mpi.py, mailboxes.py),
parts of datasets (datasets.py), tables by rows (tables.py).

Each worker is a process that runs the same program. The interface for layers below is `core/replicas.Replica`.
"""

from __future__ import annotations

import contextlib
import enum
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from ..core import nest, replicas
from ..eager.variable import Variable
from ..ops import array, dispatch, math
from .collectives import Group, all_gathered, all_reduced
from .communicators import Communicator, LocalCommunicator
from .datasets import DistributedDataset


class ReduceOp(enum.Enum):
    """How values of several workers become one."""

    SUM = "SUM"
    MEAN = "MEAN"


class InputContext(NamedTuple):
    """Number and batch size of this worker, for a function that builds its dataset."""

    num_input_pipelines: int
    input_pipeline_id: int
    num_replicas_in_sync: int

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """Return the batch size of one worker. Raises ValueError if the workers do not divide the global one."""
        if global_batch_size % self.num_replicas_in_sync:
            raise ValueError(
                f"The `global_batch_size` {global_batch_size} is not divisible by `num_replicas_in_sync` "
                f"{self.num_replicas_in_sync} "
            )
        return global_batch_size // self.num_replicas_in_sync


class _ScopesOfThread(threading.local):
    """The strategies that a thread is inside of, and the one of `experimental_set_strategy`."""

    def __init__(self) -> None:
        self.entered: list[tuple[WorkerStrategy, bool]] = []  # whether in a step, which every replica runs
        self.default: WorkerStrategy | None = None
        self.exit = contextlib.ExitStack()  # ends the default one


_scopes = _ScopesOfThread()


@contextlib.contextmanager
def _inside(strategy: WorkerStrategy, is_step: bool) -> Iterator[None]:
    _scopes.entered.append((strategy, is_step))
    try:
        yield
    finally:
        _scopes.entered.pop()


class WorkerStrategy:
    """The workers of a data-parallel program, and what they do together. Every worker calls the same methods."""

    def __init__(self, communicator: Communicator | None = None, overlap: bool = True) -> None:
        self.communicator = LocalCommunicator() if communicator is None else communicator
        self._group = Group(self.communicator, overlap and self.communicator.size > 1)
        self._entered: list[contextlib.ExitStack] = []

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of workers."""
        return self.communicator.size

    @property
    def rank(self) -> int:
        """The number of this worker, from 0."""
        return self.communicator.rank

    @property
    def is_chief(self) -> bool:
        """Whether this worker writes the files of all: worker 0."""
        return self.rank == 0

    @property
    def group(self) -> Group:
        """The queue of the strategy's collectives."""
        return self._group

    # ---- values of all workers --------------------------------------------------------------------------------------

    def reduce(self, reduce_op: ReduceOp | str, value: Any, axis: int | None = None) -> Any:
        """Return the sum or mean of a value, or of each in a structure, over all workers.

        reduce_op: "SUM" or "MEAN". axis: also reduce this axis of each worker's value, whose lengths may differ.
        raises ValueError for another reduce_op, WorkerLostError
        """
        name = (reduce_op.value if isinstance(reduce_op, ReduceOp) else str(reduce_op)).upper()
        if name not in ReduceOp.__members__:
            raise ValueError(f"reduce_op is 'SUM' or 'MEAN', found {reduce_op!r}")
        tensors = [dispatch.to_tensor(v) for v in nest.flatten(value)]
        if axis is None:
            totals = all_reduced(self._group, tensors)
            counts: list[Any] = [self.num_replicas_in_sync] * len(tensors)
        else:
            sizes = [array.cast(array.shape(t)[axis], "int64") for t in tensors]
            sums = all_reduced(self._group, [*(math.reduce_sum(t, axis=axis) for t in tensors), *sizes])
            totals, counts = sums[: len(tensors)], sums[len(tensors) :]
        if name == "MEAN":
            totals = [t / array.cast(n, t.dtype) for t, n in zip(totals, counts)]
        return nest.pack_sequence_as(value, totals)

    def gather(self, value: Any, axis: int = 0) -> Any:
        """Return the values of all workers, of equal shapes, one after the other along an axis."""
        parts = all_gathered(self._group, value)
        return array.concat([parts[r] for r in range(self.num_replicas_in_sync)], axis)

    def broadcast(self, variables: Sequence[Variable], root: int = 0) -> None:
        """Give variables the values of worker `root`."""
        for v in variables:
            value = np.array(v.read_array(), order="C")
            self._group.broadcast(value, root)
            v.write_array(value)

    # ---- datasets ---------------------------------------------------------------------------------------------------

    def experimental_distribute_dataset(self, dataset: Any, options: Any = None) -> DistributedDataset:
        """Return this worker's part of a dataset of global batches: of each batch one of `size` runs of examples.

        Every worker runs the dataset's functions on all elements; `distribute_datasets_from_function` avoids that.
        Batches whose size the workers don't divide have parts that differ by one; of a batch with fewer examples than
        there are workers, some have empty parts: divide sums by the global batch size, a mean of nothing is NaN.
        """
        return DistributedDataset(dataset, self.communicator)

    def distribute_datasets_from_function(
        self, dataset_fn: Callable[[InputContext], Any], options: Any = None
    ) -> DistributedDataset:
        """Return this worker's dataset: dataset_fn(context), by `Dataset.shard` or files of its own."""
        size = self.num_replicas_in_sync
        return DistributedDataset(dataset_fn(InputContext(size, self.rank, size)), None)

    # ---- scope ------------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        stack = contextlib.ExitStack()
        stack.enter_context(replicas.entered(self._replica()))
        stack.enter_context(_inside(self, False))
        self._entered.append(stack)
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self._entered.pop().close()
        if error is not None and not isinstance(error, (SystemExit, KeyboardInterrupt, GeneratorExit)):
            self.communicator.abort(error)

    @contextlib.contextmanager
    def scope(self) -> Iterator[Self]:
        """Return the context in which models are created and trained: that of the strategy itself."""
        with self:
            yield self

    def run(self, fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None) -> Any:
        """Return fn(*args, **kwargs), a step on this worker's batch.

        Optimizers add the gradients of all workers: scale the loss by the global batch size.
        """
        with replicas.entered(self._replica()), _inside(self, True):
            return fn(*args, **(kwargs or {}))

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """Return the values of this process' replica: one."""
        return (value,)

    def experimental_distribute_values_from_function(self, value_fn: Callable[[ReplicaContext], Any]) -> Any:
        """Return value_fn(context) for this process' replica."""
        return value_fn(ReplicaContext(self))

    def _replica(self) -> Any:
        return None


class CrossDeviceOps:
    """How devices of a MirroredStrategy exchange values; accepted: its one replica has nothing to exchange."""

    def __init__(self, num_packs: int = 1) -> None:
        self.num_packs = num_packs


class HierarchicalCopyAllReduce(CrossDeviceOps):
    """Sums copied along a hierarchy of GPUs; accepted, as CrossDeviceOps."""


class NcclAllReduce(CrossDeviceOps):
    """Sums by NCCL, a library of GPUs; accepted, as CrossDeviceOps."""


class ReductionToOneDevice(CrossDeviceOps):
    """Sums on one device, copied to the others; accepted, as CrossDeviceOps."""

    def __init__(self, reduce_to_device: Any = None, accumulation_fn: Any = None) -> None:
        super().__init__()


class OneDeviceStrategy(WorkerStrategy):
    """A strategy of one replica, on the CPU. device: "/cpu:0" or the like. Raises ValueError for another device."""

    def __init__(self, device: str = "/cpu:0") -> None:
        _check_device(device)
        super().__init__()


class MirroredStrategy(WorkerStrategy):
    """A strategy of a replica a device: one, as the CPU is the only device; its operators use the CPU's threads.

    Several processes and machines are `MultiWorker`. devices: CPUs; cross_device_ops: accepted.
    raises ValueError for other devices
    """

    def __init__(self, devices: Sequence[str] | str | None = None, cross_device_ops: Any = None) -> None:
        for device in [devices] if isinstance(devices, str) else devices or ():
            _check_device(device)
        super().__init__()


def _check_device(device: Any) -> None:
    name = str(device)
    if "cpu" not in name.lower():
        raise ValueError(f"The only device is the CPU, '/cpu:0'; found {name!r}")


class ReplicaContext(NamedTuple):
    """The replica on which a step runs, by `get_replica_context`."""

    strategy: Any

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas."""
        return int(self.strategy.num_replicas_in_sync)

    @property
    def replica_id_in_sync_group(self) -> int:
        """The number of this replica, from 0."""
        return int(self.strategy.rank)

    def all_reduce(self, reduce_op: ReduceOp | str, value: Any, options: Any = None) -> Any:
        """Return the sum or mean of a value over all replicas, as `Strategy.reduce`."""
        return self.strategy.reduce(reduce_op, value, axis=None)

    def all_gather(self, value: Any, axis: int, options: Any = None) -> Any:
        """Return the values of all replicas one after the other, as `Strategy.gather`."""
        return self.strategy.gather(value, axis)

    def merge_call(self, merge_fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        """Return merge_fn(strategy, *args, **kwargs)."""
        return merge_fn(self.strategy, *args, **(kwargs or {}))


def get_replica_context() -> ReplicaContext:
    """Return the context of the replica that the code runs on."""
    return ReplicaContext(get_strategy())


def has_strategy() -> bool:
    """Return whether the code runs inside of a strategy."""
    return bool(_scopes.entered) or _scopes.default is not None


def get_strategy() -> WorkerStrategy:
    """Return the strategy that the code runs inside of; one of a single worker outside of all."""
    if _scopes.entered:
        return _scopes.entered[-1][0]
    return WorkerStrategy() if _scopes.default is None else _scopes.default


def in_cross_replica_context() -> bool:
    """Return whether the code is in a strategy's scope, and not in a step, which every replica runs."""
    if _scopes.entered:
        return not _scopes.entered[-1][1]
    return _scopes.default is not None


def experimental_set_strategy(strategy: WorkerStrategy | None) -> None:
    """Make a strategy the one of all following code of this thread, as its scope does; None: of none.

    raises RuntimeError inside of a scope
    """
    if _scopes.entered:
        raise RuntimeError("Must not be called inside a `tf.distribute.Strategy` scope.")
    _scopes.exit.close()
    _scopes.default = strategy
    if strategy is not None:
        _scopes.exit.enter_context(replicas.entered(strategy._replica()))
