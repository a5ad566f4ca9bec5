"""`MultiWorker`: data-parallel training on the workers of a group.

Lives here: the strategy, with the methods that training, optimizers and layers call (`core/replicas.Replica`).
Not here: what it shares with other strategies (strategy.py), exchange between workers (communicators.py), gradients
(gradients.py), parts of datasets (datasets.py).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..core import flags, nest
from ..core.errors import FailedPreconditionError, InvalidArgumentError
from ..core.lazy_imports import later
from ..eager.variable import Variable
from ..ops import array, dispatch, math
from ..ops.indexed_slices import IndexedSlices
from ..tracing.trace import init_scope
from .collectives import all_gathered, all_reduced
from .communicators import Communicator
from .datasets import BatchPart, DistributedDataset, OwnBatches, SharedBatches, innermost
from .gradients import BUCKET, GradientReducer
from .hosts import keep_freed_memory, processors_of
from .sharded_checkpoint import slots_of
from .strategy import WorkerStrategy

if TYPE_CHECKING:
    from ..compiler import merge_calls
    from ..ops.tensor import Tensor
else:
    merge_calls = later("..compiler.merge_calls", __package__)

_RANK_BITS = 48
"""Bits of the numbers of random draws below a worker's rank: more than a program draws."""


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
