"""`MultiWorker`: data-parallel training, with the names of tf.distribute.

Lives here: `WorkerStrategy`, `MultiWorker`, `ReduceOp`, `InputContext`; the strategy that code runs inside of.
Not here: exchange between workers (communicators.py, mpi.py, mailboxes.py), gradients (gradients.py), parts of datasets
(datasets.py), tables by rows (tables.py).

Each worker is a process that runs the same program. The interface for layers below is `core/replicas.Replica`.
"""

from __future__ import annotations

import contextlib
import enum
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from ..core import flags, nest, replicas
from ..core.errors import FailedPreconditionError, InvalidArgumentError
from ..core.lazy_imports import later
from ..eager.variable import Variable
from ..ops import array, dispatch, math
from ..ops.indexed_slices import IndexedSlices
from ..tracing.trace import init_scope
from .collectives import Group, all_gathered, all_reduced
from .communicators import Communicator, LocalCommunicator
from .datasets import BatchPart, DistributedDataset, OwnBatches, SharedBatches, innermost
from .gradients import BUCKET, GradientReducer
from .hosts import keep_freed_memory, processors_of
from .sharded_checkpoint import slots_of

if TYPE_CHECKING:
    from ..compiler import merge_calls
    from ..ops.tensor import Tensor
else:
    merge_calls = later("..compiler.merge_calls", __package__)


_RANK_BITS = 48
"""Bits of the numbers of random draws below a worker's rank: more than a program draws."""


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


class MultiWorker(WorkerStrategy):
    """Data-parallel training: each worker computes the gradients of a part of a batch, and applies those of all.

        with ow.distribute.MultiWorker(ow.distribute.MPICommunicator()) as strategy:
            model = ...
            model.compile("adam", "mse")
            model.fit(x, y, batch_size=256)  # of all workers together

    communicator: of the engine; LocalCommunicator() by default, one worker. Workers of one host divide its processors,
    unless num_threads is set (OPWRIGHT_NUM_THREADS) or a launcher binds them. overlap: start to reduce gradients before
    the reverse pass ends; by default if a worker is on another host, as an exchange through memory takes the processor
    from the reverse pass. bucket_bytes: gradients that are reduced together. sync_every: workers train on their own and
    average their weights after this number of steps (local SGD, Stich 2019); 1: gradients are reduced in every step.
    raises InvalidArgumentError for arguments below 1
    """

    def __init__(
        self,
        communicator: Communicator | None = None,
        overlap: bool | None = None,
        bucket_bytes: int = BUCKET,
        sync_every: int = 1,
    ) -> None:
        for name, value in (("bucket_bytes", bucket_bytes), ("sync_every", sync_every)):
            if value < 1:
                raise InvalidArgumentError(op="MultiWorker", what=f"{name} is {value}", wanted="1 or more")
        self._local_size = 1 if communicator is None else communicator.local_size()
        if overlap is None:
            overlap = communicator is not None and self._local_size < communicator.size
        super().__init__(communicator, overlap)
        if self.num_replicas_in_sync > 1:
            keep_freed_memory()
            merge_calls.use_machine_code()
        self.sync_every = sync_every
        self._reducer = GradientReducer(self._group, bucket_bytes)
        self._is_mean = self._is_step = False
        self._steps = 0
        self._trained: dict[int, Variable] = {}
        self._weight: Variable | None = None
        self._part: BatchPart | None = None  # of the step that runs
        self._set_aside: list[tuple[Variable, np.ndarray]] = []  # the state of metrics before it, if it counts nothing

    def __enter__(self) -> Self:
        super().__enter__()
        if self._local_size > 1 and not flags.num_threads:
            share = processors_of(self._local_size)  # each worker would take every processor
            self._entered[-1].enter_context(flags.override(num_threads=share))
        return self

    def _replica(self) -> MultiWorker:
        return self

    def run(self, fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None) -> Any:
        """Return fn(*args, **kwargs), a step on this worker's batch. Average the weights if it is time.

        raises FailedPreconditionError in a function, if sync_every is not 1: the number of steps is counted outside
        """
        if self.sync_every > 1 and dispatch.state.trace is not None:
            raise FailedPreconditionError(
                op="MultiWorker.run",
                what=f"with sync_every={self.sync_every} steps are counted, and a function is traced once",
                do="strategy.run(function, args), where function is what ow.function returns",
            )
        with self._in_step():
            result = super().run(fn, args, kwargs)
        self._count_step(list(self._trained.values()))
        return result

    def _count_step(self, variables: Sequence[Variable]) -> None:
        if self.sync_every == 1 or dispatch.state.trace is not None:
            return
        self._steps += 1
        if self._steps % self.sync_every == 0:
            self.average(variables)

    def average(self, variables: Sequence[Variable]) -> None:
        """Set floating variables to their means over all workers."""
        floating = [v for v in variables if v.dtype.is_floating]
        if not floating or self.num_replicas_in_sync == 1:
            return
        with init_scope():
            sums = all_reduced(self._group, [v.value() for v in floating])
            for v, total in zip(floating, sums):
                v.assign(total / array.cast(self.num_replicas_in_sync, v.dtype))

    # ---- gradients: core/replicas.Replica -------------------------------------------------------------------------

    @property
    def _divisor(self) -> float:
        return float(self.num_replicas_in_sync) if self._is_mean else 1.0

    @property
    def stages_gradients(self) -> bool:
        """Whether reductions start before the reverse pass ends."""
        return self._group.overlap and self.sync_every == 1

    def staged_gradients(self, records: list[Any], start: dict[int, Any], sources: Sequence[Any]) -> list[Any]:
        """Implement core/replicas.Replica."""
        return self._reducer.staged(records, start, sources, self._divisor)

    def reduce_gradients(self, grads: Sequence[Any], variables: Sequence[Variable]) -> list[Any]:
        """Implement core/replicas.Replica. A table by rows has its gradients from all workers already."""
        self._trained.update({id(v): v for v in variables})
        if self.num_replicas_in_sync == 1:
            return list(grads)
        if self.sync_every > 1:
            factor = 1.0 if self._is_mean else float(self.num_replicas_in_sync)
            return list(grads) if factor == 1 else [_scaled(g, factor) for g in grads]
        local = [i for i, v in enumerate(variables) if not v.is_shard]
        reduced = iter(self._reducer.reduced([grads[i] for i in local], self._divisor))
        results: list[Any] = [None] * len(grads)
        for i in local:
            results[i] = next(reduced)
        for i, gradient in enumerate(grads):
            if results[i] is None:
                results[i] = gradient if self._divisor == 1 else _scaled(gradient, 1 / self._divisor)
        return results

    @contextlib.contextmanager
    def in_fit(self) -> Iterator[None]:
        """Implement core/replicas.Replica."""
        before, self._is_mean = self._is_mean, True
        try:
            with self._in_step():
                yield
        finally:
            self._is_mean = before

    @contextlib.contextmanager
    def _in_step(self) -> Iterator[None]:
        """Return a context in which each worker draws random numbers of its own."""
        before, self._is_step = self._is_step, True
        try:
            yield
        finally:
            self._is_step = before

    @property
    def random_offset(self) -> int:
        """Implement core/replicas.Replica."""
        return self.rank << _RANK_BITS if self._is_step else 0

    def local_loss(self, loss: Tensor) -> Tensor:
        """Implement core/replicas.Replica: the weight is the worker's part of the batch times the number of workers."""
        result: Tensor = loss * array.cast(self._weight_variable(), loss.dtype)
        return result

    def _weight_variable(self) -> Variable:
        if self._weight is None:
            with init_scope():
                self._weight = Variable(1.0, trainable=False, dtype="float64", name="weight_of_part")
        return self._weight

    def batch_moments(self, mean: Tensor, variance: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
        """Implement core/replicas.Replica by the pairwise formula of Chan, Golub and LeVeque (1979)."""
        count = count * array.cast(self._weight_variable() > 0.0, count.dtype)
        zeros = array.zeros_like(mean)  # of an empty part they are NaN
        mean, variance = array.where(count > 0, mean, zeros), array.where(count > 0, variance, zeros)
        parts = all_gathered(self._group, array.stack([mean, variance, array.zeros_like(mean) + count]))
        means, variances, counts = parts[:, 0], parts[:, 1], parts[:, 2]
        total = math.reduce_sum(counts, axis=0)
        joint = math.reduce_sum(counts * means, axis=0) / total
        return joint, math.reduce_sum(counts * (variances + math.square(means - joint)), axis=0) / total

    # ---- fit: core/replicas.Replica -------------------------------------------------------------------------------

    def reduced_metrics(self, variables: Sequence[Variable], result: Callable[[], Any]) -> Any:
        """Implement core/replicas.Replica: the local state is set aside while the result is computed."""
        if self.num_replicas_in_sync == 1 or not variables:
            return result()
        local = [array.identity(v.value()) for v in variables]
        for v, total in zip(variables, all_reduced(self._group, local)):
            v.assign(total)
        value = nest.map_structure(lambda x: array.identity(x) if hasattr(x, "dtype") else x, result())
        for v, own in zip(variables, local):
            v.assign(own)
        return value

    def shared_batches(self, batches: Any, whole_rests: bool = False) -> Any:
        """Implement core/replicas.Replica."""
        if self.num_replicas_in_sync == 1:
            return batches
        iterable = innermost(batches)
        source = getattr(iterable, "source", None)
        if isinstance(source, DistributedDataset):
            if source.whole is None:
                return batches if whole_rests else OwnBatches(batches, self._group)
            iterable.source = source.whole
        return SharedBatches(batches, self._group, whole_rests)

    def _next_part(self, batches: Any) -> BatchPart | None:
        """Return this worker's part of the next batch. Raises FailedPreconditionError if the batches differ."""
        if isinstance(batches, OwnBatches):
            return batches.next_part()
        part = batches.parts.popleft() if isinstance(batches, SharedBatches) else None
        if part is not None and part.digest is not None:
            digest = part.digest
            digests = self._group.run(lambda: [self.communicator.all_gather(digest)])[0]
            if (digests != digests[0]).any():
                raise FailedPreconditionError(
                    op="MultiWorker",
                    what="the workers' batches differ: each takes a part of its own batch",
                    wanted="the same dataset on all workers, in the same order",
                    do="shuffle with a seed, or strategy.distribute_datasets_from_function",
                )
        return part

    def gathered_outputs(self, outputs: Any, batches: Any) -> Any:
        """Implement core/replicas.Replica: outputs of a dataset of this worker's own stay its own."""
        part = self._next_part(batches)
        if part is None or part.size == part.of:
            return outputs
        own = [np.asarray(t.numpy(), order="C") for t in nest.flatten(outputs)]
        return nest.pack_sequence_as(outputs, [dispatch.to_tensor(a) for a in batches.gathered(own, part.of)])

    def begin_step(self, kind: str, batches: Any, model: Any) -> bool:
        """Implement core/replicas.Replica."""
        self._part = part = self._next_part(batches)
        if part is not None and not part.of:
            return False
        if kind == "train":
            self._set_weight(1.0 if part is None else part.size * self.num_replicas_in_sync / part.of)
        if part is not None and not part.size:
            self._set_aside = [(v, np.array(v.read_array())) for v in model.metrics_variables]
        return True

    def _set_weight(self, weight: float) -> None:
        variable = self._weight_variable()
        if variable.read_array() != weight:
            variable.assign(weight)

    def end_step(self, kind: str, model: Any, result: Any) -> Any:
        """Implement core/replicas.Replica."""
        part, self._part = self._part, None
        if kind == "train":
            self._set_weight(1.0)
            self._count_step(model.trainable_weights)
        if part is None or not part.has_idle:
            return result
        if not part.size:
            model.reset_metrics()  # also metrics that the step has created
            for v, value in self._set_aside:
                v.assign(value)
            self._set_aside = []
        metrics = model.get_metrics_result()
        return {**result, **{name: metrics[name] for name in result if name in metrics}}

    def synchronize(self, model: Any) -> None:
        """Implement core/replicas.Replica."""
        if self.num_replicas_in_sync > 1:
            optimizer = getattr(model, "optimizer", None)
            state = [] if optimizer is None or not optimizer.built else optimizer.variables
            own = {id(x) for v in model.weights if v.is_shard for x in (v, *slots_of(optimizer, v))}
            self.broadcast([v for v in [*model.weights, *state] if id(v) not in own])

    def average_statistics(self, model: Any) -> None:
        """Implement core/replicas.Replica."""
        self.average([v for v in model.non_trainable_weights if not v.is_shard])

    def written(self, write: Callable[[], Any]) -> Any:
        """Implement core/replicas.Replica: worker 0 writes. Raises its error, elsewhere FailedPreconditionError."""
        if self.num_replicas_in_sync == 1:
            return write()
        return self.all_succeed(write if self.is_chief else lambda: None)

    def all_succeed(self, function: Callable[[], Any]) -> Any:
        """Return function() after all workers have called theirs.

        raises what it raised; FailedPreconditionError if that of another worker raised
        """
        error: BaseException | None = None
        result = None
        try:
            result = function()
        except Exception as raised:
            error = raised
        failed = np.array(error is not None, np.int8)
        others = self._group.run(lambda: [self.communicator.all_gather(failed)])[0]
        if error is not None:
            raise error
        if others.any():
            raise FailedPreconditionError(
                op="MultiWorker",
                what=f"worker {int(others.argmax())} failed where all have to succeed; its error has the reason",
            )
        return result


def _scaled(gradient: Any, factor: float) -> Any:
    return gradient * factor if isinstance(gradient, IndexedSlices) else gradient * array.cast(factor, gradient.dtype)


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
