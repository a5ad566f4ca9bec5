"""Gradients of all workers: buckets, sparse rows, and reverse passes whose reductions begin before their end.

Lives here: `GradientReducer`.  Not here: the operators that exchange (collectives.py), what is a mean (strategy.py).

A bucket is a number of gradients reduced together, as in PyTorch's DistributedDataParallel (Li et al., 2020). With
overlap, the reverse pass over a tape's records is cut where a bucket's gradients are complete: the exchange of the
bucket starts there, and the gradients of activations pass through the start, so that a compiled function is split into
native calls at the same places.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ..eager.variable import Variable
from ..ops.autodiff import backpropagate, flowing_ids
from ..ops.indexed_slices import IndexedSlices
from .collectives import FinishAllReduce, Group, StartAllReduce

BUCKET = 4 << 20
"""Bytes of gradients that are reduced together by default."""


class _Stage(NamedTuple):
    """Records of a reverse pass, and the sources whose gradients are complete after them."""

    records: list[Any]
    complete: list[int]


class _Bucket(NamedTuple):
    """A reduction in progress: its job, what it was started for, and where the sums belong; None: nowhere."""

    job: Any
    dense: list[Any]
    indices: list[int | None]
    values: list[Any]
    places: list[Any]


class _Started(NamedTuple):
    """A gradient whose reduction the reverse pass has started: the job, its gradients, the position among them."""

    job: Any
    gradients: list[Any]
    position: int

    def bucket(self) -> _Bucket:
        """Return the bucket, without indices yet."""
        return _Bucket(self.job, self.gradients, [None] * len(self.gradients), [], [])


class GradientReducer:
    """The reduction of gradients over a group. bucket: bytes of gradients that are reduced together."""

    def __init__(self, group: Group, bucket: int = BUCKET) -> None:
        self.group, self.bucket = group, bucket
        self._started: dict[int, _Started] = {}

    def reduced(self, grads: Sequence[Any], divisor: float) -> list[Any]:
        """Return the sums of gradients over all workers, divided: of dense ones by buckets, of rows by all rows."""
        results: list[Any] = list(grads)
        jobs: dict[int, _Bucket] = {}
        remaining: list[tuple[int, Any]] = []
        sparse = [i for i, g in enumerate(grads) if isinstance(g, IndexedSlices)]
        for i, gradient in enumerate(grads):
            started = self._started.pop(id(gradient), None)
            if started is not None:
                jobs.setdefault(id(started.job), started.bucket()).indices[started.position] = i
            elif not isinstance(gradient, IndexedSlices):
                remaining.append((i, gradient))
        self._started.clear()
        new = list(self._buckets(remaining))
        if sparse and not new:
            new.append([])
        for number, indices in enumerate(new):
            dense, rows = [grads[i] for i in indices], [grads[i] for i in sparse] if number == 0 else []
            values, places = [r.values for r in rows], [r.indices for r in rows]
            job = self._start(dense, values, places, [], divisor)[0]
            jobs[id(job)] = _Bucket(job, dense, [*indices, *(sparse if number == 0 else [])], values, places)
        for bucket in jobs.values():
            sums = FinishAllReduce(bucket.job, bucket.dense, bucket.values, bucket.places)
            n, k = len(bucket.dense), len(bucket.values)
            owners: Any = bucket.indices[n:]
            shapes = [grads[i].dense_shape for i in owners]
            totals = [*sums[:n], *map(IndexedSlices, sums[n : n + k], sums[n + k :], shapes)]
            for place, total in zip(bucket.indices, totals):
                if place is not None:
                    results[place] = total
        return results

    def _start(self, dense: Any, values: Any, places: Any, carried: Any, divisor: float) -> Any:
        return StartAllReduce(self.group.handle, dense, values, places, carried, divisor=float(divisor))

    def _buckets(self, grads: Sequence[tuple[int, Any]]) -> Iterator[list[int]]:
        """Yield the indices of each bucket, from the last gradient, which the reverse pass computes first."""
        indices: list[int] = []
        size = 0
        for i, gradient in reversed(grads):
            indices.append(i)
            size += _bytes(gradient)
            if size >= self.bucket:
                yield indices
                indices, size = [], 0
        if indices:
            yield indices

    # ---- overlap ----------------------------------------------------------------------------------------------------

    def staged(self, records: list[Any], start: dict[int, Any], sources: Sequence[Any], divisor: float) -> list[Any]:
        """Return the gradients of the sources, None without flow; reductions of those of variables have been started.

        records, start: as of `backpropagate`. sources: identities. `reduced` finishes what this starts.
        """
        grads: dict[int, Any] = dict(start)
        result: dict[int, Any] = {}
        stages = self._stages(records, sources)
        variables = {id(s) for s in sources if isinstance(s, Variable) and not s.is_shard}
        unfinished = {id(s) for s in sources}
        pending: list[int] = []
        for number, stage in enumerate(stages):
            earlier = {key for other in stages[number + 1 :] for r in other.records for key in flowing_ids(r)}
            grads = backpropagate(stage.records, grads, earlier | unfinished | (grads.keys() & earlier))
            for key in stage.complete:
                unfinished.discard(key)
                if key in grads:
                    result[key] = grads.pop(key)
                    if key in variables and not isinstance(result[key], IndexedSlices):
                        pending.append(key)
            if pending and (number == len(stages) - 1 or sum(_bytes(result[k]) for k in pending) >= self.bucket):
                passing = [k for k, g in grads.items() if not isinstance(g, IndexedSlices) and not g.dtype.is_handle]
                bucket = [result[k] for k in pending]
                job, passed = self._start(bucket, [], [], [grads[k] for k in passing], divisor)
                grads.update(zip(passing, passed))
                self._started.update({id(g): _Started(job, bucket, i) for i, g in enumerate(bucket)})
                pending = []
        return [result.get(id(s)) for s in sources]

    def _stages(self, records: list[Any], sources: Sequence[Any]) -> list[_Stage]:
        """Return the stages of a reverse pass, the last records first, each with at least a bucket of gradients."""
        first: dict[int, int] = {}
        keys = {id(s) for s in sources}
        for index, record in enumerate(records):
            for key in map(id, record.inputs):
                if key in keys:
                    first.setdefault(key, index)
        size_of = {id(s): _bytes(s) for s in sources}
        stages: list[_Stage] = []
        end, size, complete = len(records), 0, list[int]()
        for key, index in sorted(first.items(), key=lambda item: -item[1]):
            if size >= self.bucket and index < end:
                boundary = min(first[k] for k in complete)
                stages.append(_Stage(records[boundary:end], complete))
                end, size, complete = boundary, 0, []
            complete.append(key)
            size += size_of[key]
        stages.append(_Stage(records[:end], [*complete, *(keys - first.keys())]))
        return stages


def _bytes(tensor: Any) -> int:
    return int(tensor.shape.num_elements() or 1) * int(tensor.dtype.size)
