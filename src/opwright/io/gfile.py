"""`ow.io.gfile`: files and folders under the names of TensorFlow's file systems; local ones only.

Lives here: `GFile` and the functions on paths.
Not here: files as tensors (files.py).

Paths are str, bytes, path objects or `file://` addresses. Errors are those of `ow.errors`.
"""

from __future__ import annotations

import builtins
import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

from ..core.errors import AlreadyExistsError, FailedPreconditionError, InvalidArgumentError, NotFoundError
from .files import match_paths
from .local_files import local_path, translated

__all__ = [
    "GFile",
    "copy",
    "exists",
    "get_registered_schemes",
    "glob",
    "isdir",
    "join",
    "listdir",
    "makedirs",
    "mkdir",
    "remove",
    "rename",
    "rmtree",
    "stat",
    "walk",
]

_MODES = ("r", "w", "a", "r+", "w+", "a+")


class GFile:
    """A file: text as str, or bytes with "b" in the mode. It is opened by the first use.

    name: a path. mode: "r", "w", "a", "r+", "w+" or "a+", with "b" for bytes.
    raises InvalidArgumentError for another mode; NotFoundError, PermissionDeniedError at the first use
    """

    def __init__(self, name: Any, mode: str = "r") -> None:
        if mode.replace("b", "") not in _MODES or mode.count("b") > 1:
            raise InvalidArgumentError(op="io.gfile.GFile", what="mode is not 'r' or 'w' or 'a'", found=repr(mode))
        self._path, self._mode = local_path(name), mode
        self._file: Any = None
        self._name = name
        if mode[0] == "w":
            self._open()  # the file exists from now on

    @property
    def name(self) -> Any:
        """The path as it was passed."""
        return self._name

    @property
    def mode(self) -> str:
        """The mode."""
        return self._mode

    def _open(self) -> Any:
        if self._file is None:
            with translated("io.gfile.GFile", self._path):
                # Positions are in bytes and texts in UTF-8 on every system, so the file is opened for bytes.
                self._file = builtins.open(self._path, self._mode.replace("b", "") + "b")  # noqa: SIM115
        return self._file

    def _text(self, data: bytes) -> Any:
        return data if "b" in self._mode else data.decode()

    def read(self, n: int = -1) -> Any:
        """Return the next n bytes, all by default; as text decoded from UTF-8."""
        return self._text(self._open().read(n))

    def readline(self) -> Any:
        """Return the next line with its ending; empty at the end."""
        return self._text(self._open().readline())

    def readlines(self) -> list[Any]:
        """Return the remaining lines."""
        return list(self)

    def write(self, file_content: Any) -> None:
        """Append text (in UTF-8) or bytes at the position."""
        self._open().write(file_content.encode() if isinstance(file_content, str) else file_content)

    def seek(self, offset: int | None = None, whence: int = 0, position: int | None = None) -> None:
        """Set the position: offset bytes from the start (whence 0), the position (1) or the end (2).

        raises InvalidArgumentError without an offset, or for another whence
        """
        offset = position if offset is None else offset
        if offset is None or whence not in (0, 1, 2):
            raise InvalidArgumentError(op="io.gfile.GFile.seek", what="needs an offset, and whence in 0, 1, 2")
        self._open().seek(offset, whence)

    def tell(self) -> int:
        """Return the position in bytes."""
        return int(self._open().tell())

    def size(self) -> int:
        """Return the size of the file in bytes."""
        if self._file is not None and self._file.writable():
            self._file.flush()
        return stat(self._path).length

    def seekable(self) -> bool:
        """Return True."""
        return True

    def flush(self) -> None:
        """Write buffered data to the file."""
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> GFile:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        return map(self._text, iter(self._open()))

    def __next__(self) -> Any:
        line = self.readline()
        if not line:
            raise StopIteration
        return line


class FileStatistics:
    """length: bytes. mtime_nsec: the time of the last change, in ns since 1970. is_directory."""

    def __init__(self, result: os.stat_result) -> None:
        self.is_directory = (result.st_mode & 0o170000) == 0o040000
        self.length = 0 if self.is_directory else result.st_size
        self.mtime_nsec = result.st_mtime_ns


def exists(path: Any) -> bool:
    """Return whether a file or folder exists."""
    return os.path.exists(local_path(path))


def isdir(path: Any) -> bool:
    """Return whether a folder exists."""
    return os.path.isdir(local_path(path))


def glob(pattern: Any) -> list[str]:
    """Return the paths that match one or several glob patterns, sorted."""
    return match_paths(pattern if isinstance(pattern, list | tuple) else [pattern])


def listdir(path: Any) -> list[str]:
    """Return the names in a folder, in no order. Raises NotFoundError."""
    text = local_path(path)
    if not os.path.isdir(text):
        raise NotFoundError(op="io.gfile.listdir", what=f"Could not find directory {text}")
    return os.listdir(text)


def mkdir(path: Any) -> None:
    """Create a folder. Raises AlreadyExistsError, NotFoundError if its parent does not exist."""
    text = local_path(path)
    with translated("io.gfile.mkdir", text):
        os.mkdir(text)


def makedirs(path: Any) -> None:
    """Create a folder and its parents, unless they exist. Raises FailedPreconditionError for a file of that name."""
    text = local_path(path)
    try:
        with translated("io.gfile.makedirs", text):
            os.makedirs(text, exist_ok=True)
    except AlreadyExistsError as error:
        raise FailedPreconditionError(op="io.gfile.makedirs", what=f"{text} is not a directory") from error


def remove(path: Any) -> None:
    """Delete a file. Raises NotFoundError, FailedPreconditionError for a folder."""
    text = local_path(path)
    with translated("io.gfile.remove", text):
        if os.path.isdir(text):
            raise IsADirectoryError(0, "Is a directory")
        os.remove(text)


def rmtree(path: Any) -> None:
    """Delete a folder with its contents. Raises NotFoundError, FailedPreconditionError for a file."""
    text = local_path(path)
    with translated("io.gfile.rmtree", text):
        shutil.rmtree(text)


def copy(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Copy a file's contents. Raises NotFoundError; AlreadyExistsError for an existing one unless `overwrite`."""
    source, target = local_path(src), local_path(dst)
    _check_target(target, overwrite, "io.gfile.copy")
    with translated("io.gfile.copy", source):
        shutil.copyfile(source, target)


def rename(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Rename a file or folder. Raises NotFoundError; AlreadyExistsError for an existing one unless `overwrite`."""
    source, target = local_path(src), local_path(dst)
    _check_target(target, overwrite, "io.gfile.rename")
    with translated("io.gfile.rename", source):
        os.replace(source, target)


def _check_target(path: str, overwrite: bool, op: str) -> None:
    if not overwrite and os.path.exists(path):
        raise AlreadyExistsError(op=op, what=f"file already exists: {path}", do="overwrite=True")


def stat(path: Any) -> FileStatistics:
    """Return the size and time of a file or folder. Raises NotFoundError."""
    text = local_path(path)
    with translated("io.gfile.stat", text):
        return FileStatistics(os.stat(text))


def walk(
    top: Any, topdown: bool = True, onerror: Callable[[OSError], object] | None = None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield (folder, names of folders, names of files) of a tree, as `os.walk`."""
    return os.walk(local_path(top), topdown, onerror)


def join(path: Any, *paths: Any) -> Any:
    """Return the parts of a path joined by the system's separator."""
    return os.path.join(path, *paths)


def get_registered_schemes() -> list[str]:
    """Return the schemes of addresses that functions take: local paths and file://."""
    return ["", "file"]
