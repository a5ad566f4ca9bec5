"""Checkpoints of models whose tables are divided among workers, read on any number of them.

Lives here: `ShardedCheckpoint`.  Not here: checkpoints of whole variables (saved/checkpoint.py), rows by worker
(tables.py).

In the folder: `NUMBER-shard-R-of-N.safetensors`, the rows of worker R with the optimizer's state of them, from that
worker; `NUMBER-dense.safetensors`, all other variables, and `index.json`, which names the number, from worker 0. The
index is replaced last, after all workers have written: until then it names the previous checkpoint, whose files remain.
"""

from __future__ import annotations

import contextlib
import glob
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import replicas
from ..core.errors import DataLossError, FailedPreconditionError, NotFoundError
from ..core.files import replacing
from ..eager.variable import Variable
from ..saved import json_files, safetensors
from .tables import ShardVariable, rows_of_shard

if TYPE_CHECKING:
    from .multi_worker import MultiWorker

FORMAT, VERSION = "opwright.sharded_checkpoint", 1
_INDEX = "index.json"


def slots_of(optimizer: Any, variable: Variable) -> list[Variable]:
    """Return the optimizer's state of one variable, in order of creation; none before the optimizer is built."""
    if optimizer is None or not optimizer.built or variable.identity() not in optimizer._index:
        return []
    index, count = optimizer._index[variable.identity()], len(optimizer._trainable_variables)
    state = {id(v) for v in optimizer.variables}
    return [
        value[index]
        for value in vars(optimizer).values()
        if isinstance(value, list) and len(value) == count and all(id(v) in state for v in value)
        if value is not optimizer._trainable_variables and value is not optimizer._variables
    ]


class ShardedCheckpoint:
    """Checkpoints of a model and its optimizer in a folder, the latest of which is kept.

        checkpoint = ow.distribute.ShardedCheckpoint(folder, model, optimizer)
        step = checkpoint.restore()  # 0 without a checkpoint
        checkpoint.save(step)

    optimizer: by default the model's. Every worker calls `save` and `restore`; the folder is one that all of them see.
    raises FailedPreconditionError outside of a strategy
    """

    def __init__(self, folder: Any, model: Any, optimizer: Any = None) -> None:
        strategy: Any = replicas.current()
        if strategy is None:
            raise FailedPreconditionError(
                op="ShardedCheckpoint", what="there is no strategy", do="with MultiWorker(...)"
            )
        self.folder = os.fspath(folder)
        self._strategy: MultiWorker = strategy
        self._model, self._optimizer = model, model.optimizer if optimizer is None else optimizer

    # ---- what is stored ---------------------------------------------------------------------------------------------

    def _tables(self) -> dict[str, tuple[ShardVariable, list[Variable]]]:
        tables = [v for v in self._model.weights if isinstance(v, ShardVariable)]
        return {f"table-{i}": (v, slots_of(self._optimizer, v)) for i, v in enumerate(tables)}

    def _dense(self) -> dict[str, Variable]:
        of_tables = {id(x) for v, slots in self._tables().values() for x in (v, *slots)}
        state = [] if self._optimizer is None or not self._optimizer.built else self._optimizer.variables
        groups = (("weight", self._model.weights), ("optimizer", state))
        return {f"{kind}-{i:05d}": v for kind, group in groups for i, v in enumerate(group) if id(v) not in of_tables}

    def _shard(self, number: int, rank: int, size: int) -> str:
        return os.path.join(self.folder, f"{number}-shard-{rank}-of-{size}.safetensors")

    # ---- writing ----------------------------------------------------------------------------------------------------

    def save(self, step: int = 0) -> None:
        """Write a checkpoint, whose `restore` returns `step`. Earlier ones are deleted.

        raises what writing raises, on the worker where it failed; FailedPreconditionError on the others
        """
        strategy, index = self._strategy, self._read_index()
        number = 1 + (0 if index is None else index["number"])
        tables = {
            f"{name}.{i}": np.asarray(v.read_array())
            for name, (table, slots) in self._tables().items()
            for i, v in enumerate([table, *slots])
        }

        def write(path: str, arrays: dict[str, np.ndarray]) -> None:
            os.makedirs(self.folder, exist_ok=True)
            with replacing(path, sync=True) as file:
                safetensors.write(file, arrays, {"format": FORMAT})

        strategy.all_succeed(lambda: write(self._shard(number, strategy.rank, strategy.num_replicas_in_sync), tables))

        def finish() -> None:
            dense = {k: np.asarray(v.read_array(), order="C") for k, v in self._dense().items()}
            write(os.path.join(self.folder, f"{number}-dense.safetensors"), dense)
            content = {
                "format": FORMAT,
                "version": VERSION,
                "producer": json_files.producer(),
                "number": number,
                "size": strategy.num_replicas_in_sync,
                "step": int(step),
            }
            json_files.write_json(os.path.join(self.folder, _INDEX), content)
            json_files.sync_folder(self.folder)
            for path in glob.glob(os.path.join(glob.escape(self.folder), "*.safetensors")):
                if not os.path.basename(path).startswith(f"{number}-"):
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(path)

        strategy.written(finish)

    # ---- reading ----------------------------------------------------------------------------------------------------

    def _read_index(self) -> dict[str, Any] | None:
        path = os.path.join(self.folder, _INDEX)
        try:
            index = json_files.read_json(path, "the index of a sharded checkpoint")
        except NotFoundError:
            return None
        numbers = [index.get(key) for key in ("number", "size", "step")]
        if index.get("format") != FORMAT or not all(type(n) is int and n >= 0 for n in numbers) or not numbers[1]:
            raise DataLossError(what=f"{path} is not the index of a sharded checkpoint", found=numbers)
        if index.get("version") != VERSION:
            raise DataLossError(what=f"{path} is of version {index.get('version')}", wanted=f"{VERSION}")
        return index

    def restore(self) -> int:
        """Assign the latest checkpoint's values, written by any number of workers. Returns its step, 0 without one.

        The model, and for its state the optimizer, must be built. raises DataLossError for a damaged checkpoint, or one
        of another model
        """
        index = self._read_index()
        if index is None:
            return 0
        file = safetensors.TensorFile(os.path.join(self.folder, f"{index['number']}-dense.safetensors"))
        dense = self._dense()
        if set(file) != set(dense):
            raise self._differs("variables", sorted(set(file) ^ set(dense))[:4])
        for name, variable in dense.items():
            self._assign(variable, file.read(name), name)
        file.close()
        for name, (table, slots) in self._tables().items():
            for i, variable in enumerate([table, *slots]):
                self._assign(variable, self._rows(index, f"{name}.{i}", table), name)
        return int(index["step"])

    def _rows(self, index: dict[str, Any], name: str, table: ShardVariable) -> np.ndarray:
        """Return the rows of this worker from the shards of all former workers, mapped one at a time."""
        rows = rows_of_shard(table.rows, table.worker, table.workers)
        result: np.ndarray | None = None
        for rank in range(index["size"]):
            path = self._shard(index["number"], rank, index["size"])
            file = safetensors.TensorFile(path)
            entry = file.entries.get(name)
            file.close()
            if entry is None or entry.shape[0] != len(range(rank, table.rows, index["size"])):
                raise self._differs(f"{name} in {path}", None if entry is None else entry.shape)
            stored = np.memmap(path, entry.dtype, "r", entry.begin, entry.shape) if entry.end > entry.begin else None
            if result is None:
                result = np.empty((len(rows), *entry.shape[1:]), entry.dtype)
            here = rows % index["size"] == rank
            if stored is not None and here.any():
                result[here] = stored[rows[here] // index["size"]]
        assert result is not None, "there is at least one shard"
        return result

    def _assign(self, variable: Variable, value: np.ndarray, name: str) -> None:
        if value.shape != variable.read_array().shape or value.dtype != variable.dtype.np:
            raise self._differs(name, f"{value.dtype}{list(value.shape)}")
        variable.write_array(value)

    def _differs(self, what: str, found: Any) -> DataLossError:
        return DataLossError(what=f"the checkpoint in {self.folder} is of another model: {what}", found=found)
