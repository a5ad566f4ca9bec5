"""A checkpoint's files: which objects there are, and the values of their variables.

Lives here: writing them, and `CheckpointReader`.  Not here: giving the values to objects (restoring.py).

    PREFIX.index                        JSON: format, version, the objects' tree, type and checksum of each value
    PREFIX.data-XXXXXXXX.safetensors    the values, under the names that the index has

The data file's name holds a checksum of its content and stands in the index, which is written last and takes the place
of an older one in one step. So a checkpoint is there whole or not at all, and an older one of the same name stays
readable until then.
"""

from __future__ import annotations

import contextlib
import glob
import os
import zlib
from typing import Any

import numpy as np

from ..core.dtypes import DType
from ..core.errors import DataLossError, NotFoundError, UnimplementedError
from ..core.files import replacing
from ..core.specs import TensorSpec
from ..eager.variable import Variable
from ..ops import dispatch
from . import encoding, files, safetensors
from .objects import VALUE, children, walk

FORMAT, VERSION = "opwright.checkpoint", 1
SUFFIX = ".index"


def write(prefix: str, root: Any) -> None:
    """Write a checkpoint of everything below `root`.

    raises ValueError for dictionaries with keys that are no text
    """
    found = list(walk(root))
    number = {id(value): i for i, (_, value) in enumerate(found)}
    nodes: list[dict[str, Any]] = []
    stored: dict[str, np.ndarray] = {}
    tensors: dict[str, Any] = {}
    crc = 0
    for name, value in found:
        node: dict[str, Any] = {"children": {key: number[id(child)] for key, child in children(value).items()}}
        if isinstance(value, Variable):
            node["value"] = key = name + VALUE
            array = value.read_array()
            stored[key] = encoding.encode(array, value.dtype)
            tensors[key] = encoding.describe(array, value.dtype, stored[key])
            crc = zlib.crc32(f"{key}{tensors[key]}".encode(), crc)
        nodes.append(node)
    folder, base = os.path.split(prefix)
    if folder:
        os.makedirs(folder, exist_ok=True)
    data = f"{base}.data-{crc:08x}.safetensors"
    with replacing(os.path.join(folder, data), sync=True) as file:
        safetensors.write(file, stored, {"format": FORMAT})
    index = {
        "format": FORMAT,
        "version": VERSION,
        "producer": files.producer(),
        "data": data,
        "objects": nodes,
        "tensors": tensors,
    }
    files.write_json(prefix + SUFFIX, index)
    files.sync_folder(folder)
    for old in data_files(prefix):
        if os.path.basename(old) != data:
            with contextlib.suppress(OSError):
                os.unlink(old)


def data_files(prefix: str) -> list[str]:
    """The data files of a checkpoint, those that an interrupted writer left included."""
    return glob.glob(f"{glob.escape(prefix)}.data-" + "[0-9a-f]" * 8 + ".safetensors")


def exists(prefix: str) -> bool:
    """Whether there is a checkpoint of that name."""
    return os.path.isfile(prefix + SUFFIX)


def remove(prefix: str) -> None:
    """Delete a checkpoint's files; those that are gone already are no error."""
    for path in (prefix + SUFFIX, *data_files(prefix)):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def check_format(content: dict[str, Any], path: str, name: str, newest: int) -> None:
    """Raises DataLossError where a manifest is not of this format, UnimplementedError where its version is newer."""
    if content.get("format") != name:
        raise DataLossError(what=f"{path} is no {name} file", found=repr(content.get("format"))[:80])
    version = content.get("version")
    if type(version) is not int or version < 1:
        raise DataLossError(what=f"{path} has no valid version", found=repr(version)[:80], wanted=f"1 to {newest}")
    if version > newest:
        raise UnimplementedError(
            what=f"{path} has version {version}, written by opwright {str(content.get('producer'))[:40]}",
            wanted=f"at most version {newest}",
            do="load it with a newer opwright",
        )


class CheckpointReader:
    """The values of a checkpoint by name, without the program that wrote it. Values are read when asked for.

    raises NotFoundError where there is no such checkpoint, DataLossError where its files are damaged
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        path = prefix + SUFFIX
        if not os.path.isfile(path):
            raise NotFoundError(
                what=f"Unsuccessful TensorSliceReader constructor: Failed to find any matching files for {prefix}",
                do="train.latest_checkpoint(folder) gives the newest one's name",
            )
        index = files.read_json(path, "a checkpoint's index")
        check_format(index, path, FORMAT, VERSION)
        self._start(index, path, "data")

    def _start(self, index: dict[str, Any], path: str, key: str) -> None:
        read = files.Reader(path)
        self.nodes = read_nodes(read, read.get(index, "objects", list))
        self._entries: dict[str, Any] = read.get(index, "tensors", dict)
        name = files.plain_name(read.get(index, key, str), path)
        self._file = safetensors.TensorFile(os.path.join(os.path.dirname(path), name))
        self._where = path
        for node in self.nodes:
            if node["value"] is not None:
                self.spec(node["value"])

    def spec(self, name: str) -> TensorSpec:
        """The type of a value. Raises NotFoundError where there is none of that name."""
        if name not in self._entries:
            raise NotFoundError(what=f"Key {name} not found in checkpoint {self.prefix}")
        return encoding.spec_of(self._entries[name], name, self._where)

    def has_tensor(self, tensor_str: str) -> bool:
        """Whether there is a value of that name."""
        return tensor_str in self._entries

    def get_tensor(self, tensor_str: str) -> np.ndarray:
        """A value. Raises NotFoundError where there is none of that name, DataLossError where it is damaged."""
        return self.read(tensor_str)[0][()]

    def read(self, name: str) -> tuple[np.ndarray, DType]:
        """A value and its dtype."""
        self.spec(name)
        return encoding.read(self._file, name, self._entries[name], self._where)

    def get_variable_to_shape_map(self) -> dict[str, Any]:
        """The shape of every value by name."""
        return {name: self.spec(name).shape.as_list() for name in self._entries}

    def get_variable_to_dtype_map(self) -> dict[str, DType]:
        """The dtype of every value by name."""
        return {name: self.spec(name).dtype for name in self._entries}

    def debug_string(self) -> str:
        """A line for each value."""
        return "\n".join(f"{name} {self.spec(name).short()}" for name in sorted(self._entries))


def read_nodes(read: files.Reader, nodes: list[Any]) -> list[dict[str, Any]]:
    """The objects' tree of an index: each node's children by name, and the name of its value or None."""
    result = []
    for node in nodes:
        found = read.get(node, "children", dict)
        for name, number in found.items():
            read.index(number, nodes, f"child {name[:60]!r}")
        value = node.get("value")
        result.append({"children": found, "value": value if value is None else read.of(value, str, "a value's name")})
    if not result:
        raise read.fail("it has no objects")
    return result


def eagerly() -> Any:
    """Out of any trace: a checkpoint is written and read now."""
    from ..tracing.trace import init_scope

    return init_scope() if dispatch.state.trace is not None else contextlib.nullcontext()
