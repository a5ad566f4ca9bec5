"""Models as workers receive them: by digest, from a file that the worker sees, else by their bytes.

Lives here: `ModelReference`, what every task carries; `PortableModel`, the driver's side; digests of files and folders.
Not here: opening a model on a worker (worker.py).

A `.tflite` file or a saved model travels as it is. A traced function travels as a saved model of its own, which keeps
variables at their present values. Anything else (a Python function, a layer) has no form without its program.
"""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..core.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from ..lite.format.model import Model
from ..lite.interpreter import Interpreter
from ..nn.module import Module
from ..saved import saved_model
from ..tracing.concrete import ConcreteFunction
from ..tracing.function import Function

TFLITE, SAVED_MODEL = "tflite", "saved_model"


class ModelReference(NamedTuple):
    """A model as a worker finds it. kind: TFLITE or SAVED_MODEL; digest: SHA-256 of the file or folder, in
    hexadecimal; path: where the driver has it; signature: None for the only one; num_threads: of a run, 0 for as many
    as the process has for others."""

    kind: str
    digest: str
    path: str
    signature: str | None
    num_threads: int


def digest_of(path: str) -> str:
    """Return the SHA-256 of a file, or of the names and digests of a folder's files. Raises OSError."""
    if not os.path.isdir(path):
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    hasher = hashlib.sha256()
    for name, file_path in _files_of(path):
        hasher.update(f"{name}\0{digest_of(file_path)}\n".encode())
    return hasher.hexdigest()


def _files_of(folder: str) -> Iterator[tuple[str, str]]:
    """Yield the files of a folder, sorted: paths within it, with `/`, and whole paths."""
    paths = (path for path in Path(folder).rglob("*") if path.is_file())
    yield from sorted((path.relative_to(folder).as_posix(), str(path)) for path in paths)


class PortableModel:
    """A model on its way to workers.

    model: the path of a `.tflite` file or of a saved model; the bytes of a `.tflite` file, a `lite.Model` or a
    `lite.Interpreter`; a `function` with an input_signature, or a concrete function.

    raises InvalidArgumentError for other types, NotFoundError for a missing file
    """

    def __init__(self, model: Any, signature: str | None = None, num_threads: int = 1) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        try:
            path = self._path_of(model)
            kind = SAVED_MODEL if os.path.isdir(path) else TFLITE
            self.reference = ModelReference(kind, digest_of(path), path, signature, num_threads)
        except BaseException:
            self.close()
            raise

    def _path_of(self, model: Any) -> str:
        """Return the path of the model's file or folder, written first if it has none."""
        if isinstance(model, Interpreter):
            model = model._source or model._content or model._model
        if isinstance(model, Model):
            path = os.path.join(self._temporary(), "model.tflite")
            model.write(path)
            return path
        if isinstance(model, bytes | bytearray | memoryview):
            path = os.path.join(self._temporary(), "model.tflite")
            Path(path).write_bytes(model)
            return path
        if isinstance(model, ConcreteFunction | Function):
            path = os.path.join(self._temporary(), "function")
            saved_model.save(Module(), path, signatures=model)
            return path
        if not isinstance(model, str | os.PathLike):
            raise InvalidArgumentError(
                what="this model cannot be sent to other processes",
                found=type(model).__name__,
                wanted="the path or bytes of a .tflite file, the folder of a saved model, or a function with an "
                "input_signature",
            )
        path = os.path.realpath(model)
        if not os.path.exists(path):
            raise NotFoundError(what="there is no such model", found=os.fspath(model))
        if os.path.isdir(path) and not saved_model.contains_saved_model(path):
            raise NotFoundError(what="this folder has no saved model", found=os.fspath(model))
        return path

    def _temporary(self) -> str:
        self._folder = tempfile.TemporaryDirectory(prefix="opwright-model-")
        return self._folder.name

    def content(self) -> np.ndarray:
        """Return the bytes for workers that do not see the file: uint8[n], which Ray's workers map instead of copying.

        raises FailedPreconditionError if the file was changed since its digest was computed
        """
        path = self.reference.path
        if digest_of(path) != self.reference.digest:
            raise FailedPreconditionError(what="the model was changed while the job runs", found=path)
        if self.reference.kind == TFLITE:
            return np.fromfile(path, np.uint8)
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as file:
            for name, file_path in _files_of(path):
                file.write(file_path, name)
        return np.frombuffer(archive.getvalue(), np.uint8)

    def close(self) -> None:
        """Remove the temporary file."""
        if self._folder is not None:
            self._folder.cleanup()
