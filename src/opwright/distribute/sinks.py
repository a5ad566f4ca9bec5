"""Where the results of a job are stored: a folder of `.npy` files, Parquet, Zarr.

Lives here: `Sink` and its classes, `sink_for`, which chooses one by a path; `storable`.
Not here: which parts are complete (journal.py), when results come (inference.py).

A sink stores parts of `rows` consecutive elements, so that memory is bounded by the parts in flight; a part's name and
content depend only on the job. Batches never cross parts: an element is in the same batch in a resumed run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..core.errors import FailedPreconditionError, InvalidArgumentError, OpError, UnimplementedError
from ..core.extras import optional_module
from ..core.files import replacing
from .inference import ElementError
from .journal import Journal
from .portable_model import ModelReference

Value = Any
"""The result of an element: an array, a dict of arrays by output, or an `ElementError`."""

SINGLE = "output"
"""The name of the only output of a model, which results do not name."""


def storable(array: np.ndarray) -> np.ndarray:
    """Convert to a dtype of `.npy` files: strings to fixed-width bytes, bfloat16 to float32, int4 to int8."""
    if array.dtype.kind == "O":
        return array.astype(bytes)
    if array.dtype.isbuiltin == 1 or array.dtype.kind in "SU":
        return array
    return array.astype(np.int8 if "int" in array.dtype.name else np.float32)


def outputs_of(value: Value, reserved: Sequence[str] = ()) -> dict[str, np.ndarray]:
    """Return the outputs of an element by name, for names of files: others become `_`.

    reserved: names that are prefixed by `output_`. raises UnimplementedError if two outputs have one name then
    """
    if not isinstance(value, dict):
        return {SINGLE: np.asarray(value)}
    names = {name: re.sub(r"[^A-Za-z0-9_.-]", "_", name) for name in value}
    outputs = {f"{SINGLE}_{n}" if n in reserved else n: np.asarray(value[name]) for name, n in names.items()}
    if len(outputs) < len(value):
        raise UnimplementedError(what="two outputs are stored under the same name", found=sorted(value))
    return outputs


class Sink:
    """A folder of results, which a job continues where an earlier run of it ended, however that ended.

    path: the folder. rows: elements of a part, rounded up to whole batches. inputs: anything in JSON's types that
    identifies the elements, such as names and sizes of files; a run with other inputs is then refused.
    """

    def __init__(self, path: str | os.PathLike[str], rows: int, inputs: Any = None) -> None:
        if not isinstance(rows, int) or rows < 1:
            raise InvalidArgumentError(what="rows is out of range", found=repr(rows), wanted=">= 1")
        self.path, self.rows, self._inputs = Path(path), rows, inputs
        self._journal: Journal | None = None
        self._parts: dict[int, dict[int, Value]] = {}
        self._total: int | None = None

    # ---- the job -----------------------------------------------------------------------------------------------------

    def open(self, model: ModelReference, batch: int, total: int | None) -> None:
        """Begin a run. Raises FailedPreconditionError if the folder is another job's; OSError."""
        rows = -(-self.rows // batch) * batch
        job = {"sink": type(self).__name__, "rows": rows, "batch": batch, "elements": total, "inputs": self._inputs}
        job |= {"model": model.digest, "signature": model.signature}
        self.rows, self._total = rows, total
        self._parts.clear()
        self._journal = Journal(self.path, job, self._journal_path())
        self._begin()

    @property
    def journal(self) -> Journal:
        """The journal, while a run is open."""
        if self._journal is None:
            raise FailedPreconditionError(what="the sink is not open", do="pass it to map as sink=")
        return self._journal

    def done(self, start: int) -> int:
        """Return how many elements from `start` on are complete, if it is the first of a part."""
        return 0 if start % self.rows else self.journal.elements.get(start // self.rows, 0)

    def errors(self, start: int) -> list[ElementError]:
        """Return the errors of the complete part that begins at `start`."""
        entries = self.journal.errors.get(start // self.rows, ())
        return [ElementError(entry["index"], entry["type"], entry["message"]) for entry in entries]

    def take(self, start: int, values: Sequence[Value]) -> list[Value]:
        """Return what a part keeps of the results of consecutive elements; an `ElementError` for one that it cannot
        store. raises UnimplementedError for outputs of a type that it never stores, OSError"""
        kept = []
        for index, value in enumerate(values, start):
            if not isinstance(value, ElementError):
                try:
                    value = self._take(index, value)
                except ElementError as error:
                    value = error
            kept.append(value)
        return kept

    def add(self, start: int, kept: Sequence[Value]) -> None:
        """Add what `take` returned for consecutive elements of one part."""
        number = start // self.rows
        if number in self.journal.elements:
            raise FailedPreconditionError(
                what="there are more elements than in the run that completed the folder", found=f"element {start}"
            )
        part = self._parts.setdefault(number, {})
        part.update(enumerate(kept, start))
        if len(part) == self.rows:
            self._commit(number)

    def finish(self, total: int) -> None:
        """Store the last part, after all elements."""
        for number in sorted(self._parts):
            self._commit(number, last=True)
        self._end(total)
        self.journal.finish(total)

    def close(self) -> None:
        """End the run."""
        self._parts.clear()
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def _commit(self, number: int, last: bool = False) -> None:
        part = dict(sorted(self._parts[number].items()))
        if not self._can_store(part) and not last:
            return
        del self._parts[number]
        files = self._store(number, part)
        errors = [
            {"index": index, "type": value.error_type, "message": value.error_message}
            for index, value in part.items()
            if isinstance(value, ElementError)
        ]
        self.journal.commit(number, len(part), files, errors)
        for other in [n for n, waiting in self._parts.items() if len(waiting) == self.rows]:
            self._commit(other)  # it waited for the types of outputs

    # ---- what a class of sinks defines ------------------------------------------------------------------------------

    def _journal_path(self) -> Path | None:
        """Return the path of the journal, if it is not in the folder."""
        return None

    def _begin(self) -> None:
        """Prepare the folder."""

    def _take(self, index: int, value: Value) -> Value:
        """Return what a part keeps of a result until it is stored. Raises ElementError if it does not fit."""
        return value

    def _can_store(self, part: dict[int, Value]) -> bool:
        """Return whether a part can be stored now; otherwise it waits for another one."""
        return True

    def _store(self, number: int, part: dict[int, Value]) -> list[str]:
        """Write a part, over what a killed run left of it; return its files."""
        raise NotImplementedError(f"{type(self).__name__} defines _store")

    def _end(self, total: int) -> None:
        """Finish the output after all parts."""


class NumPySink(Sink):
    """A `.npy` file for each element: `000000012.npy`, or `000000012.NAME.npy` for each of several outputs.

    names: the name of each element's file, without suffix, in place of its index. Failed elements have no file; the
    journal has their errors. Strings become fixed-width bytes, bfloat16 float32.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        rows: int = 256,
        inputs: Any = None,
        names: Sequence[str] | Callable[[int], str] | None = None,
    ) -> None:
        super().__init__(path, rows, inputs)
        self._name: Callable[[int], str] = "{:09d}".format
        if names is not None:
            self._name = names if callable(names) else names.__getitem__

    def _take(self, index: int, value: Value) -> Value:
        """Write an element at once: a part keeps the names of its files."""
        files = []
        for name, array in outputs_of(value).items():
            suffix = f".{name}" if isinstance(value, dict) else ""
            files.append(f"{self._name(index)}{suffix}.npy")
            with replacing(self.path / files[-1]) as file:
                np.save(file, storable(array), allow_pickle=False)
        return files

    def _store(self, number: int, part: dict[int, Value]) -> list[str]:
        return [name for value in part.values() if not isinstance(value, ElementError) for name in value]


class ColumnSink(Sink):
    """A sink with a column for each output, of one type: a result of another type is an error of its element."""

    reserved: tuple[str, ...] = ()
    """Names of columns that are not outputs; outputs with these names are stored as `output_NAME`."""

    def _begin(self) -> None:
        self._types = self._stored_types()

    def _take(self, index: int, value: Value) -> Value:
        outputs = outputs_of(value, self.reserved)
        types = {name: self._type_of(name, array) for name, array in outputs.items()}
        if not self._types:
            self._types = types
        if types != self._types:
            error: OpError = InvalidArgumentError(
                what="an output has another shape or dtype than those stored before",
                found=_listed(types),
                wanted=_listed(self._types),
                do="use a NumPySink",
            )
            raise ElementError(index, type(error).__name__, str(error))
        return outputs

    def _stored_types(self) -> dict[str, Any]:
        """Return the types of the columns of an earlier run, by name; nothing before the first."""
        raise NotImplementedError(f"{type(self).__name__} defines _stored_types")

    def _type_of(self, name: str, array: np.ndarray) -> Any:
        """Return the type of a column that stores an array in each row. Raises UnimplementedError."""
        raise NotImplementedError(f"{type(self).__name__} defines _type_of")


def _listed(types: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in types.items())


class ParquetSink(ColumnSink):
    """A folder of Parquet files, `part-00000000.parquet` ..., which readers take as one table.

    Columns: `index`; one for each output, of fixed-shape tensors (Arrow's canonical extension type), or plain numbers;
    `error`, the message for an element that failed, whose outputs are null. A result of another shape than the first
    one is an error of its element. compression: as pyarrow takes it.

    raises FailedPreconditionError if pyarrow is not installed (`opwright[arrow]`); UnimplementedError for a result of
    complex numbers
    """

    reserved = ("index", "error")

    def __init__(
        self, path: str | os.PathLike[str], rows: int = 1024, inputs: Any = None, compression: str | None = "zstd"
    ) -> None:
        super().__init__(path, rows, inputs)
        self._arrow, self._parquet = optional_module("pyarrow"), optional_module("pyarrow.parquet")
        self._compression = compression

    def _stored_types(self) -> dict[str, Any]:
        for number in self.journal.elements:
            schema = self._parquet.read_schema(self.path / _part_name(number))
            if len(schema) > len(self.reserved):
                return {field.name: field.type for field in schema if field.name not in self.reserved}
        return {}

    def _can_store(self, part: dict[int, Value]) -> bool:
        return bool(self._types)

    def _type_of(self, name: str, array: np.ndarray) -> Any:
        arrow = self._arrow
        if array.dtype.kind == "c":
            raise UnimplementedError(what=f"output {name!r}: Parquet has no complex numbers", do="use a NumPySink")
        if array.dtype.kind == "O":
            kind = arrow.binary()
            for _ in array.shape:
                kind = arrow.list_(kind)
            return kind
        kind = arrow.from_numpy_dtype(storable(array[:0] if array.ndim else array).dtype)
        if not array.size:
            return arrow.list_(kind)  # Parquet reads no null among fixed-size lists of size 0
        return arrow.fixed_shape_tensor(kind, array.shape) if array.ndim else kind

    def _store(self, number: int, part: dict[int, Value]) -> list[str]:
        arrow = self._arrow
        fields = [("index", arrow.int64()), *self._types.items(), ("error", arrow.string())]
        schema = arrow.schema(fields)
        values = [None if isinstance(value, ElementError) else value for value in part.values()]
        columns = []
        for field in schema:
            if field.name == "index":
                columns.append(arrow.array(list(part), field.type))
            elif field.name == "error":
                texts = [value.error_message if isinstance(value, ElementError) else None for value in part.values()]
                columns.append(arrow.array(texts, field.type))
            else:
                arrays = [None if value is None else value[field.name] for value in values]
                columns.append(self._column(field, arrays))
        name = _part_name(number)
        with replacing(self.path / name) as file:
            table = arrow.Table.from_arrays(columns, schema=schema)
            self._parquet.write_table(table, file, compression=self._compression or "none")
        return [name]

    def _column(self, field: Any, arrays: list[np.ndarray | None]) -> Any:
        """Return the arrays of one output as an Arrow array; None is null."""
        arrow, kind = self._arrow, field.type
        if not isinstance(kind, arrow.FixedShapeTensorType):
            return arrow.array([None if array is None else _as_python(array) for array in arrays], kind)
        empty = np.zeros(tuple(kind.shape), kind.value_type.to_pandas_dtype())
        rows = np.stack([empty if array is None else storable(array) for array in arrays])
        mask = arrow.array([array is None for array in arrays])
        size = rows[0].size
        storage = arrow.FixedSizeListArray.from_arrays(arrow.array(rows.reshape(-1)), size, mask=mask)
        return arrow.ExtensionArray.from_storage(kind, storage)


def _as_python(array: np.ndarray) -> Any:
    return (array if array.dtype.kind == "O" else storable(array)).tolist() if array.size else []


def _part_name(number: int) -> str:
    return f"part-{number:08d}.parquet"


class ZarrSink(ColumnSink):
    """A Zarr group with an array for each output, of a row for each element, and `failed`, bool[n].

    A chunk has the rows of one part. Rows of failed elements are 0, or NaN in floats; the journal has their errors. A
    result of another shape than the first one is an error of its element.

    raises FailedPreconditionError if zarr is not installed (`opwright[zarr]`); UnimplementedError for a result of
    strings
    """

    reserved = ("failed",)

    def __init__(self, path: str | os.PathLike[str], rows: int = 256, inputs: Any = None) -> None:
        super().__init__(path, rows, inputs)
        self._zarr = optional_module("zarr")
        self._group: Any = None

    def _journal_path(self) -> Path:
        """Return a path next to the group: readers of a group warn of files that are not arrays."""
        return self.path.with_name(f"{self.path.name}.journal.jsonl")

    def _begin(self) -> None:
        self._group = self._zarr.open_group(str(self.path), mode="a")
        if "failed" not in self._group:
            self.journal.elements.clear()  # the group was removed, and not its journal
            self._create("failed", np.zeros((), bool))
        super()._begin()

    def _stored_types(self) -> dict[str, Any]:
        arrays = {name: self._group[name] for name in self._group if name not in self.reserved}
        return {name: (array.shape[1:], array.dtype) for name, array in arrays.items()}

    def _type_of(self, name: str, array: np.ndarray) -> Any:
        if array.dtype.kind in "OSU":
            raise UnimplementedError(what=f"output {name!r}: strings are not stored in Zarr", do="use a ParquetSink")
        return array.shape, storable(array[:0] if array.ndim else array).dtype

    def _create(self, name: str, example: np.ndarray) -> Any:
        return self._group.create_array(
            name,
            shape=(self._total or 0, *example.shape),
            chunks=(self.rows, *(max(1, size) for size in example.shape)),
            dtype=example.dtype,
            fill_value=np.nan if example.dtype.kind in "fc" else None,
        )

    def _store(self, number: int, part: dict[int, Value]) -> list[str]:
        start, stop = min(part), max(part) + 1
        columns: dict[str, dict[int, np.ndarray]] = {}
        failed = np.zeros(stop - start, bool)
        for index, value in part.items():
            if isinstance(value, ElementError):
                failed[index - start] = True
            else:
                for name, array in value.items():
                    columns.setdefault(name, {})[index - start] = storable(array)
        for name, rows in columns.items():
            self._write(name, rows, start, stop)
        self._write("failed", dict(enumerate(failed)), start, stop)
        return []

    def _write(self, name: str, rows: dict[int, np.ndarray], start: int, stop: int) -> None:
        example = np.asarray(next(iter(rows.values())))
        array = self._group[name] if name in self._group else self._create(name, example)
        if array.shape[0] < stop:
            array.resize((stop, *array.shape[1:]))
        block = np.full((stop - start, *array.shape[1:]), array.fill_value, array.dtype)
        for offset, row in rows.items():
            block[offset] = row
        array[start:stop] = block

    def _end(self, total: int) -> None:
        for name in self._group:
            array = self._group[name]
            if array.shape[0] != total:
                array.resize((total, *array.shape[1:]))


SINKS: dict[str, type[ParquetSink | ZarrSink]] = {".parquet": ParquetSink, ".zarr": ZarrSink}
"""The sink of a path by its suffix; any other folder is a NumPySink's."""


def sink_for(path: str | os.PathLike[str], inputs: Any = None) -> Sink:
    """Return the sink of a path: `NAME.parquet`, `NAME.zarr`, or a folder of `.npy` files."""
    sink: type[ParquetSink | ZarrSink | NumPySink] = SINKS.get(Path(path).suffix, NumPySink)
    return sink(path, inputs=inputs)
