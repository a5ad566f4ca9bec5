"""The files of a checkpoint: the object graph, and the values of its variables.

Lives here: writing them, and `CheckpointReader`.  Not here: assigning the values to objects (restoration.py).

    PREFIX.index                        JSON: format, version, object graph, type and checksum of each value
    PREFIX.data-XXXXXXXX.safetensors    the values, by the names in the index

The data file's name contains a checksum of its content and is recorded in the index, which is written last and replaces
an older one atomically. So a checkpoint is complete or absent, and an older one of the same name stays readable until
then.
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
from .object_graph import VALUE, children, walk

FORMAT, VERSION = "opwright.checkpoint", 1
SUFFIX = ".index"


def write(prefix: str, root: Any) -> None:
    """Write a checkpoint of the object graph below `root`.

    raises ValueError for dictionaries with keys that are not text
    """
    objects = list(walk(root))
    number = {id(value): i for i, (_, value) in enumerate(objects)}
    nodes: list[dict[str, Any]] = []
    stored: dict[str, np.ndarray] = {}
    tensors: dict[str, Any] = {}
    crc = 0
    for name, value in objects:
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
    """Return the data files of a checkpoint, including those of interrupted writers."""
    return glob.glob(f"{glob.escape(prefix)}.data-" + "[0-9a-f]" * 8 + ".safetensors")


def exists(prefix: str) -> bool:
    """Return whether there is a checkpoint of that name."""
    return os.path.isfile(prefix + SUFFIX)


def remove(prefix: str) -> None:
    """Delete a checkpoint's files; missing ones are ignored."""
    for path in (prefix + SUFFIX, *data_files(prefix)):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def check_format(content: dict[str, Any], path: str, name: str, newest: int) -> None:
    """Raise DataLossError if a manifest is not of this format, UnimplementedError if its version is newer."""
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
    """The values of a checkpoint by name, without the program that wrote it. Values are read on demand.

    raises NotFoundError if there is no such checkpoint, DataLossError if its files are damaged
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        path = prefix + SUFFIX
        if not os.path.isfile(path):
            raise NotFoundError(
                what=f"Unsuccessful TensorSliceReader constructor: Failed to find any matching files for {prefix}",
                do="train.latest_checkpoint(folder) returns the name of the newest one",
            )
        index = files.read_json(path, "a checkpoint's index")
        check_format(index, path, FORMAT, VERSION)
        self._start(index, path, "data")

    def _start(self, index: dict[str, Any], path: str, key: str) -> None:
        read = files.JsonReader(path)
        self.nodes = read_nodes(read, read.get(index, "objects", list))
        self._entries: dict[str, Any] = read.get(index, "tensors", dict)
        name = files.plain_name(read.get(index, key, str), path)
        self._file = safetensors.TensorFile(os.path.join(os.path.dirname(path), name))
        self._where = path
        for node in self.nodes:
            if node["value"] is not None:
                self.spec(node["value"])

    def spec(self, name: str) -> TensorSpec:
        """Return the type of a value. Raises NotFoundError if there is none of that name."""
        if name not in self._entries:
            raise NotFoundError(what=f"Key {name} not found in checkpoint {self.prefix}")
        return encoding.spec_of(self._entries[name], name, self._where)

    def has_tensor(self, tensor_str: str) -> bool:
        """Return whether there is a value of that name."""
        return tensor_str in self._entries

    def get_tensor(self, tensor_str: str) -> np.ndarray:
        """Return a value. Raises NotFoundError if there is none of that name, DataLossError if it is damaged."""
        return self.read(tensor_str)[0][()]

    def read(self, name: str) -> tuple[np.ndarray, DType]:
        """Return a value and its dtype."""
        self.spec(name)
        return encoding.read(self._file, name, self._entries[name], self._where)

    def get_variable_to_shape_map(self) -> dict[str, Any]:
        """Return the shape of every value by name."""
        return {name: self.spec(name).shape.as_list() for name in self._entries}

    def get_variable_to_dtype_map(self) -> dict[str, DType]:
        """Return the dtype of every value by name."""
        return {name: self.spec(name).dtype for name in self._entries}

    def debug_string(self) -> str:
        """Return a line for each value."""
        return "\n".join(f"{name} {self.spec(name).short()}" for name in sorted(self._entries))


def read_nodes(read: files.JsonReader, nodes: list[Any]) -> list[dict[str, Any]]:
    """Return the object graph of an index: each node's children by name, and the name of its value or None."""
    result = []
    for node in nodes:
        children = read.get(node, "children", dict)
        for name, number in children.items():
            read.index(number, nodes, f"child {name[:60]!r}")
        value = node.get("value")
        result.append(
            {"children": children, "value": value if value is None else read.of(value, str, "a value's name")}
        )
    if not result:
        raise read.fail("it has no objects")
    return result


def outside_traces() -> Any:
    """Return a context outside of any trace: checkpoints are written and read eagerly."""
    from ..tracing.trace import init_scope

    return init_scope() if dispatch.state.trace is not None else contextlib.nullcontext()
