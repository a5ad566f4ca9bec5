"""Embedding tables larger than a machine's memory: rows by worker, lookups and their gradients by all-to-all.

Lives here: `ShardedEmbedding`, its variable and its operators.
Not here: checkpoints of tables (sharded_checkpoint.py), sparse optimizers, which update a shard as any table.

With n workers, worker r owns the rows i with i mod n = r, as row i div n of its shard: frequent rows, which often have
neighbouring numbers, are spread. A lookup sends each worker the rows that are read of it, once each, and receives their
values; the gradient takes the same way back, so that an owner has the gradients of all workers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import replicas
from ..core.dtypes import as_dtype, int64, resource
from ..core.errors import FailedPreconditionError, InvalidArgumentError
from ..core.specs import TensorSpec
from ..eager.variable import Variable
from ..nn.layer import Layer
from ..ops import array, dispatch
from ..ops.attributes import Attr
from ..ops.definition import operator
from ..ops.slots import Input, OperatorDefinition, Output
from .collectives import Group

if TYPE_CHECKING:
    from ..ops.tensor import Tensor

_LIMIT = 0.05
"""Largest initial value, that of Keras's "uniform"."""


class ShardVariable(Variable):
    """The rows of a table that one of `size` workers owns."""

    def __init__(self, initial_value: Any, worker: int, workers: int, rows: int, name: str) -> None:
        super().__init__(initial_value, name=name)
        self.worker, self.workers, self.rows = worker, workers, rows
        self.is_shard = workers > 1


def rows_of_shard(rows: int, rank: int, size: int) -> np.ndarray:
    """Return the rows of a table that a worker owns, ascending: int64."""
    return np.arange(rank, rows, size, dtype=np.int64)


def uniform_rows(rows: np.ndarray, width: int, seed: int, dtype: Any = np.float32) -> np.ndarray:
    """Return initial values of rows, uniform in [-0.05, 0.05), which depend on seed, row and column alone.

    The bits are SplitMix64 (Steele, Lea and Flood, 2014) of the element's number, so that a table is the same on any
    number of workers.
    """
    with np.errstate(over="ignore"):
        element = rows.astype(np.uint64)[:, None] * np.uint64(width) + np.arange(width, dtype=np.uint64)
        z: Any = (element + np.uint64(seed) * np.uint64(0x100000001B3) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    values: np.ndarray = (((z >> np.uint64(11)) * 2.0**-53 * 2 - 1) * _LIMIT).astype(dtype)
    return values


@operator
class RouteRows(OperatorDefinition[tuple[Any, Any, Any, Any]]):
    """Send each worker the rows that are looked up of it.

    .. math:: requests = [rows\\_of\\_r\\_here_0, rows\\_of\\_r\\_here_1, ...]

    ids: rows of a table of `rows` rows, in any order. requests: rows of this worker's shard, first the ones that
    worker 0 reads. positions: for each id, its place among the rows that come back. asked, sent: rows by worker.
    raises InvalidArgumentError for an id out of range
    """

    group = Input(resource)
    ids = Input((as_dtype("int32"), int64))
    requests = Output(dtype=int64)
    positions = Output(dtype=int64)
    asked = Output(dtype=int64)
    sent = Output(dtype=int64)
    rows = Attr(int)
    effect = "write"
    gradient = None

    def infer(op) -> tuple[TensorSpec, ...]:
        counts = TensorSpec([None], int64)
        return TensorSpec([None], int64), TensorSpec(op.ids.shape, int64), counts, counts

    def compute(op, group: Group, ids: np.ndarray) -> tuple[np.ndarray, ...]:
        ids, size = np.asarray(ids), group.communicator.size
        distinct, inverse = np.unique(ids, return_inverse=True)
        if distinct.size and not 0 <= distinct[0] <= distinct[-1] < op.rows:
            raise InvalidArgumentError(
                op="RouteRows", what="ids out of range", found=[distinct[0], distinct[-1]], wanted=f"0 to {op.rows - 1}"
            )
        owners = distinct % size
        order = np.argsort(owners, kind="stable")
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        asked = np.bincount(owners, minlength=size).astype(np.int64)
        parts = np.split(distinct[order].astype(np.int64) // size, np.cumsum(asked)[:-1])
        received: list[np.ndarray] = []

        def collective() -> list[np.ndarray]:
            received.extend(one for (one,) in group.communicator.all_to_all([[p] for p in parts]))
            return received

        group.run(collective)
        sent = np.array([len(r) for r in received], np.int64)
        return np.concatenate(received), places[inverse].reshape(ids.shape), asked, sent


@operator
class ExchangeRows(OperatorDefinition[Any]):
    """Send each worker its rows, and return the rows that the others sent.

    .. math:: y = [x_{0 \\to r}, x_{1 \\to r}, ...]

    x: [n, ...], the rows for worker 0 first. sent, received: rows by worker. The gradient takes the way back.
    """

    group = Input(resource)
    x = Input()
    sent = Input(int64, rank=1)
    received = Input(int64, rank=1)
    y = Output(kind="as x, of any number of rows")
    effect = "write"

    def infer(op) -> TensorSpec:
        return TensorSpec([None, *op.x.shape[1:]], op.x.dtype)

    def compute(op, group: Group, x: np.ndarray, sent: np.ndarray, received: np.ndarray) -> np.ndarray:
        rank = group.communicator.rank
        y = np.empty((int(np.sum(received)), *x.shape[1:]), x.dtype)
        parts = np.split(np.asarray(x, order="C"), np.cumsum(sent)[:-1])
        arriving = np.split(y, np.cumsum(received)[:-1])
        arriving[rank][...] = parts[rank]

        def collective() -> list[np.ndarray]:
            group.communicator.exchange([[p] for p in parts], [[a] for a in arriving])
            return []

        group.run(collective)
        return y

    def gradient(op, dy: Tensor) -> tuple[None, Tensor, None, None]:
        return None, ExchangeRows(op.group, dy, op.received, op.sent), None, None


class ShardedEmbedding(Layer):
    """Trained table that maps integers to rows, whose rows are divided among the workers of a strategy.

    input_dim: the number of rows; output_dim: the length of a row. inputs: integers [batch, ...]; output: [batch, ...,
    output_dim]. embeddings_initializer: "uniform", in [-0.05, 0.05), or a function of the rows, int64 [n], that returns
    their values, [n, output_dim]. seed: of "uniform"; the table is the same on any number of workers.
    Weights: embeddings, this worker's rows. Optimizers with `lazy_mode` change only the rows that a batch reads.
    raises FailedPreconditionError outside of a strategy
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        embeddings_initializer: str | Callable[[np.ndarray], Any] = "uniform",
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.input_dim, self.output_dim, self.seed = int(input_dim), int(output_dim), int(seed)
        if min(self.input_dim, self.output_dim) < 1:
            raise ValueError(f"A table has rows and columns; found {input_dim} x {output_dim}")
        if not callable(embeddings_initializer) and embeddings_initializer != "uniform":
            raise ValueError(f"`embeddings_initializer` is 'uniform' or a function; found {embeddings_initializer!r}")
        self.embeddings_initializer = embeddings_initializer
        strategy: Any = replicas.current()
        if strategy is None:
            raise FailedPreconditionError(
                op="ShardedEmbedding",
                what="there is no strategy",
                do="with ow.distribute.MultiWorker(communicator): create the model",
            )
        self._group: Group = strategy.group

    def build(self, input_shape: Any = None) -> None:
        """Create this worker's rows."""
        communicator = self._group.communicator
        rows = rows_of_shard(self.input_dim, communicator.rank, communicator.size)
        values = (
            self.embeddings_initializer(rows)
            if callable(self.embeddings_initializer)
            else uniform_rows(rows, self.output_dim, self.seed)
        )
        self.embeddings = ShardVariable(
            np.asarray(values, np.float32),
            communicator.rank,
            communicator.size,
            self.input_dim,
            f"{self.name}/embeddings",
        )

    def call(self, inputs: Any) -> Tensor:
        """Look up the rows."""
        ids = dispatch.to_tensor(inputs)
        if ids.dtype.name not in ("int32", "int64"):
            ids = array.cast(ids, "int64")
        handle = self._group.handle
        requests, positions, asked, sent = RouteRows(handle, ids, rows=self.input_dim)
        rows = ExchangeRows(handle, array.gather(self.embeddings, requests), sent, asked)
        found: Tensor = array.gather(rows, positions)
        return found

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """Return the input shape followed by output_dim."""
        return (*input_shape, self.output_dim)

    def compute_output_spec(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the type of the rows, without looking them up."""
        from ..nn.keras_tensor import KerasTensor

        return KerasTensor(self.compute_output_shape(tuple(inputs.shape)), "float32")

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments. Raises ValueError for a function as initializer."""
        if callable(self.embeddings_initializer):
            raise ValueError("a function as `embeddings_initializer` has no configuration")
        return {
            **super().get_config(),
            "input_dim": self.input_dim,
            "output_dim": self.output_dim,
            "embeddings_initializer": self.embeddings_initializer,
            "seed": self.seed,
        }
