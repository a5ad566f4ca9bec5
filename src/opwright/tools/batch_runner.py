"""`opwright run --inputs`: run a model over many files on the workers of an executor.

Lives here: files as elements, custom operators by name on workers, the report.
Not here: the job (distribute/), one run that prints its outputs (model_runner.py).
"""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from .. import distribute
from ..distribute.sinks import SINKS, NumPySink
from .array_files import read_arrays
from .inspection import is_saved, read_model
from .model_runner import custom_operators, operators_for
from .report import BadFile, notes, out, print_json


class Unreadable(NamedTuple):
    """A file that the driver could not read, in place of its content."""

    message: str


def read_or_reason(path: str) -> Any:
    """Return the element of a file, or `Unreadable`: wherever a file is read, an error is its element's."""
    try:
        return read_arrays(path)
    except (OSError, ValueError) as error:
        return Unreadable(f"{type(error).__name__}: {error}")


def readable(element: Any) -> Any:
    """Return an element that the driver has read. Raises ValueError for one that it could not read."""
    if isinstance(element, Unreadable):
        raise ValueError(element.message)
    return element


class CustomsByName(list[Any]):
    """Custom operators that a process receives by the texts of --custom: files of Python cannot be pickled."""

    def __init__(self, texts: Sequence[str]) -> None:
        super().__init__(custom_operators(texts))
        self._texts = tuple(texts)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._texts,)


def files_of(patterns: Sequence[str]) -> list[str]:
    """Return the files that match glob patterns, sorted. Raises BadFile if there are none."""
    files = sorted({path for pattern in patterns for path in glob.glob(pattern, recursive=True)})
    if not files:
        raise BadFile(f"{', '.join(patterns)}: no file matches")
    return files


def names_of(files: Sequence[str]) -> list[str]:
    """Return a unique name for the outputs of each file: its name, with as many folders as are needed."""
    paths = [Path(file) for file in files]
    for depth in range(1, max(len(path.parts) for path in paths) + 1):
        names = ["_".join((*path.parts[-depth:-1], path.stem)).strip("/.") for path in paths]
        if len(set(names)) == len(names):
            return names
    raise BadFile(f"{files[0]}: two files would have outputs of the same name")  # x.npy next to x.npz


def run_batches(
    model: str,
    patterns: Sequence[str],
    output: str | None,
    executor: str | None,
    batch: int,
    retries: int,
    shared_disk: bool,
    customs: Sequence[str],
    as_json: bool,
) -> bool:
    """Run a model over files; return whether every element has a result. Raises BadFile, click.UsageError."""
    if output is None:
        raise click.UsageError("--inputs needs -o: the folder, NAME.parquet or NAME.zarr of the results")
    files = [os.path.abspath(file) for file in files_of(patterns)]
    sink_class = SINKS.get(Path(output).suffix)
    try:
        if sink_class is None:
            sink: distribute.Sink = NumPySink(output, inputs=_identity(files), names=names_of(files))
        else:
            sink = sink_class(output, inputs=_identity(files))
        results = _job(model, files, executor, batch, retries, shared_disk, customs, sink)
        with results:
            summary = results.summary()
    except OSError as error:
        raise BadFile(f"{error.filename or output}: {error.strerror or error}") from error
    for failed in summary.errors:
        notes().print(f"{files[failed.index]}: {failed.error_type}: {failed.error_message}")
    computed = summary.elements - summary.resumed
    rate = computed / max(summary.seconds, 1e-9)
    if as_json:
        errors = [
            {"file": files[e.index], "index": e.index, "type": e.error_type, "message": e.error_message}
            for e in summary.errors
        ]
        figures = summary._asdict() | {"errors": errors, "elements_per_second": rate, "output": output}
        print_json(figures)
    else:
        resumed = f", {summary.resumed} of them by an earlier run" if summary.resumed else ""
        out().print(f"{summary.elements} elements{resumed}, {summary.failed} failed; {rate:.1f} a second; {output}")
    return not summary.failed


def _job(
    model: str,
    files: list[str],
    executor: str | None,
    batch: int,
    retries: int,
    shared_disk: bool,
    customs: Sequence[str],
    sink: distribute.Sink,
) -> distribute.Results:
    operators: tuple[Any, ...] = ()
    if is_saved(model):
        if customs:
            raise click.UsageError("--custom goes with .tflite files")
    else:
        texts = [os.path.abspath(text) if text.endswith(".py") else text for text in customs]
        parsed = read_model(model)
        named = CustomsByName(texts)
        others = operators_for(parsed, texts)[len(named) :]
        operators = (*((named,) if named else ()), *others)
    is_local = shared_disk or executor is None or executor.partition(":")[0] in LOCAL
    elements: Any = files if is_local else _Read(files)
    load = read_arrays if is_local else readable
    return distribute.map(
        model,
        elements,
        executor,
        batch=batch,
        retries=retries,
        ordered=False,
        sink=sink,
        load=load,
        custom_ops=operators,
        progress=True,
    )


LOCAL = ("threads", "processes", "loky")
"""Executors whose workers read the files of this machine."""


class _Read(Sequence[Any]):
    """The contents of files, read by the driver when they are taken."""

    def __init__(self, files: Sequence[str]) -> None:
        self._files = files

    def __len__(self) -> int:
        return len(self._files)

    def __getitem__(self, index: Any) -> Any:
        return read_or_reason(self._files[index])

    def __iter__(self) -> Iterator[Any]:
        return map(read_or_reason, self._files)


def _identity(files: Sequence[str]) -> dict[str, Any]:
    """Return what identifies the elements of a job: the number of files, and the digest of names, sizes and times."""
    hasher = hashlib.sha256()
    for file in files:
        status = os.stat(file)
        hasher.update(f"{file}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    return {"files": len(files), "digest": hasher.hexdigest()}
