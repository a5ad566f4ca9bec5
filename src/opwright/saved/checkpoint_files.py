"""The files of a checkpoint, and the assignment of their values to objects.

Lives here: writing the object graph and the values of its variables, `CheckpointReader`; `Restoration`, which assigns
values to existing objects, and to later ones when they are created; the status objects of `Checkpoint.restore`.
Not here: `Checkpoint` itself (checkpoint.py).

    PREFIX.index                        JSON: format, version, object graph, type and checksum of each value
    PREFIX.data-XXXXXXXX.safetensors    the values, by the names in the index

The data file's name contains a checksum of its content and is recorded in the index, which is written last and replaces
an older one atomically. So a checkpoint is complete or absent, and an older one of the same name stays readable until
then.

Objects are matched from the root down: a child of a matched object matches the checkpoint's child of the same name. A
value is assigned to the first variable that matches it, once. Remaining values are deferred (eager/variable_state.py)
while any of the objects is alive.
"""

from __future__ import annotations

import contextlib
import glob
import logging
import os
import weakref
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np

from ..core.dtypes import DType
from ..core.errors import DataLossError, InvalidArgumentError, NotFoundError, UnimplementedError
from ..core.files import replacing
from ..core.lazy_imports import finalizer
from ..core.specs import TensorSpec
from ..eager import variable_state
from ..eager.variable import Variable
from . import json_files, safetensors
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
            if value.is_shard:
                raise ValueError(f"{value.name} has rows on other workers: use ow.distribute.ShardedCheckpoint")
            node["value"] = key = name + VALUE
            array = value.read_array()
            stored[key] = safetensors.encode(array, value.dtype)
            tensors[key] = safetensors.describe(array, value.dtype, stored[key])
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
        "producer": json_files.producer(),
        "data": data,
        "objects": nodes,
        "tensors": tensors,
    }
    json_files.write_json(prefix + SUFFIX, index)
    json_files.sync_folder(folder)
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
        raise DataLossError(what=f"{path} is not a {name} file", found=repr(content.get("format"))[:80])
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
        index = json_files.read_json(path, "a checkpoint's index")
        check_format(index, path, FORMAT, VERSION)
        self._start(index, path, "data")

    def _start(self, index: dict[str, Any], path: str, key: str) -> None:
        read = json_files.JsonReader(path)
        self.nodes = read_nodes(read, read.get(index, "objects", list))
        self._entries: dict[str, Any] = read.get(index, "tensors", dict)
        name = json_files.plain_name(read.get(index, key, str), path)
        self._file = safetensors.TensorFile(os.path.join(os.path.dirname(path), name))
        self._where = path
        for node in self.nodes:
            if node["value"] is not None:
                self.spec(node["value"])

    def spec(self, name: str) -> TensorSpec:
        """Return the type of a value. Raises NotFoundError if there is none of that name."""
        if name not in self._entries:
            raise NotFoundError(what=f"Key {name} not found in checkpoint {self.prefix}")
        return safetensors.spec_of(self._entries[name], name, self._where)

    def has_tensor(self, tensor_str: str) -> bool:
        """Return whether there is a value of that name."""
        return tensor_str in self._entries

    def get_tensor(self, tensor_str: str) -> np.ndarray:
        """Return a value. Raises NotFoundError if there is none of that name, DataLossError if it is damaged."""
        return self.read(tensor_str)[0][()]

    def read(self, name: str) -> tuple[np.ndarray, DType]:
        """Return a value and its dtype."""
        self.spec(name)
        return safetensors.read(self._file, name, self._entries[name], self._where)

    def get_variable_to_shape_map(self) -> dict[str, Any]:
        """Return the shape of every value by name."""
        return {name: self.spec(name).shape.as_list() for name in self._entries}

    def get_variable_to_dtype_map(self) -> dict[str, DType]:
        """Return the dtype of every value by name."""
        return {name: self.spec(name).dtype for name in self._entries}

    def debug_string(self) -> str:
        """Return a line for each value."""
        return "\n".join(f"{name} {self.spec(name).short()}" for name in sorted(self._entries))


def read_nodes(read: json_files.JsonReader, nodes: list[Any]) -> list[dict[str, Any]]:
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


_log = logging.getLogger("opwright")


class Restoration:
    """One call of `restore`, until all values are assigned."""

    def __init__(self, reader: CheckpointReader, root: Any) -> None:
        self.expect_partial = False
        self.reader = reader
        self.values = {i for i, node in enumerate(reader.nodes) if node["value"] is not None}
        self.bound: dict[int, Any] = {}  # node number -> the object it is bound to, weakly if possible
        self._root = _reference(root)
        self._tops = {key: _reference(child) for key, child in children(root).items()}

    def _top_objects(self) -> dict[str, Any]:
        root = self._root()
        if root is not None:
            return children(root)
        return {key: child for key, ref in self._tops.items() if (child := ref()) is not None}

    def assign(self) -> bool:
        """Match existing objects and assign values. False if no values remain, or all objects are dead."""
        tops = self._top_objects()
        root = self._root()
        if root is None and not tops:
            return False
        if root is not None:
            self._match(0, root)
        todo: list[tuple[int, Any]] = []
        self._descend(0, tops, todo)
        seen = {0}
        for number, value in todo:
            if number in seen:
                continue
            seen.add(number)
            if self._match(number, value):
                self._descend(number, children(value), todo)
        return bool(self.values - self.bound.keys())

    def _descend(self, number: int, objects: dict[str, Any], todo: list[tuple[int, Any]]) -> None:
        names = self.reader.nodes[number]["children"]
        todo.extend((names[key], child) for key, child in objects.items() if key in names)

    def _match(self, number: int, value: Any) -> bool:
        """Bind a node to an object and assign a variable's value. False if it is bound to another object."""
        if number in self.bound:
            existing = self.bound[number]()
            if existing is not None:
                return existing is value or not isinstance(value, Variable)
        key = self.reader.nodes[number]["value"]
        if key is not None and isinstance(value, Variable):
            self._assign_value(key, value)
        self.bound[number] = _reference(value)
        return True

    def _assign_value(self, key: str, variable: Variable) -> None:
        spec = self.reader.spec(key)
        if not variable.shape.is_compatible_with(spec.shape):
            raise ValueError(
                f"Received incompatible tensor with shape {spec.shape} when attempting to restore variable with shape "
                f"{variable.shape} and name {variable.name}."
            )
        if spec.dtype is not variable.dtype:
            raise InvalidArgumentError(
                what=f"the checkpoint's value for variable {variable.name!r} ({key}) has another dtype",
                found=spec.dtype.name,
                wanted=variable.dtype.name,
            )
        variable.write_array(self.reader.read(key)[0])

    def python_objects(self) -> Iterator[tuple[str, Any]]:
        """Yield every existing object below the root, with its name."""
        seen: set[int] = set()
        todo = list(self._top_objects().items())
        for name, value in todo:
            if id(value) not in seen:
                seen.add(id(value))
                yield name, value
                todo.extend((f"{name}.{key}", child) for key, child in children(value).items())

    def unmatched(self) -> list[tuple[str, Any]]:
        """Return the variables of the program without a value in the checkpoint."""
        bound = {id(value) for ref in self.bound.values() if (value := ref()) is not None}
        return [(n, v) for n, v in self.python_objects() if isinstance(v, Variable) and id(v) not in bound]

    def unassigned(self) -> list[str]:
        """Return the names of values that were assigned to no variable."""
        return [self.reader.nodes[i]["value"] for i in sorted(self.values - self.bound.keys())]

    @finalizer
    def __del__(self) -> None:
        if "_tops" not in self.__dict__ or self.expect_partial:  # partly constructed
            return
        if unassigned := self.unassigned():
            _log.warning(
                "A checkpoint was restored (e.g. tf.train.Checkpoint.restore or tf.keras.Model.load_weights) but not "
                "all checkpointed values were used. Use expect_partial() on the load status object to silence this. "
                "Not used: %s",
                _abbreviated(unassigned),
            )


def _reference(value: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(value)
    except TypeError:  # lists and dicts take no weak references
        return lambda: value


def restore(reader: CheckpointReader, root: Any) -> CheckpointLoadStatus:
    """Assign all values that can be assigned now; defer the others.

    raises ValueError if a shape differs, InvalidArgumentError if a dtype differs
    """
    restoration = Restoration(reader, root)
    if restoration.assign():
        variable_state.deferred_restores.append(restoration.assign)
    return CheckpointLoadStatus(restoration, root)


class CheckpointLoadStatus:
    """The status of a restore, with checks that raise AssertionError and return the status itself.

    A final warning names values that were never used, unless `expect_partial()` was called.
    """

    def __init__(self, restoration: Restoration, root: Any) -> None:
        self._restoration, self._root = restoration, root  # keeps the root alive for the checks

    def assert_consumed(self) -> CheckpointLoadStatus:
        """Check that every value of the checkpoint has a variable, and every variable of the program a value."""
        self.assert_existing_objects_matched()
        unassigned = self._restoration.unassigned()
        if unassigned:
            raise AssertionError(
                f"Unresolved object in checkpoint {self._restoration.reader.prefix}: {_abbreviated(unassigned)}"
            )
        return self

    def assert_existing_objects_matched(self) -> CheckpointLoadStatus:
        """Check that every variable of the program has a value; the checkpoint may have more."""
        variable_state.run_deferred_restores()
        unmatched = self._restoration.unmatched()
        if unmatched:
            names = _abbreviated([f"{name} {value.name!r}" for name, value in unmatched])
            raise AssertionError(
                f"Found {len(unmatched)} Python objects that were not bound to checkpointed values, likely due to "
                f"changes in the Python program: {names}"
            )
        return self

    def assert_nontrivial_match(self) -> CheckpointLoadStatus:
        """Check that an object other than the root matched."""
        variable_state.run_deferred_restores()
        if len(self._restoration.bound) <= 1:
            unmatched = self._restoration.unmatched()
            if unmatched:
                raise AssertionError(
                    "Nothing except the root object matched a checkpointed value. Typically this means that the "
                    "checkpoint does not match the Python program. The following objects have no matching "
                    f"checkpointed value: {_abbreviated([f'{name} {value.name!r}' for name, value in unmatched])}"
                )
            raise AssertionError("Nothing to load. No dependencies have been added to the Checkpoint yet.")
        return self

    def expect_partial(self) -> CheckpointLoadStatus:
        """Declare that values may stay unused: disables the warning."""
        self._restoration.expect_partial = True
        return self

    def initialize_or_restore(self, session: Any = None) -> None:
        """Do nothing: values are assigned by `restore`."""

    def run_restore_ops(self, session: Any = None) -> None:
        """Do nothing: values are assigned by `restore`."""


class InitializationOnlyStatus(CheckpointLoadStatus):
    """The status of `restore(None)`: nothing was restored."""

    def __init__(self) -> None:
        pass

    def assert_consumed(self) -> NoReturn:
        """Raise AssertionError."""
        raise AssertionError("No checkpoint specified (save_path=None); nothing is being restored.")

    assert_existing_objects_matched = assert_nontrivial_match = assert_consumed

    def expect_partial(self) -> InitializationOnlyStatus:
        """Return the status itself."""
        return self

    def run_restore_ops(self, session: Any = None) -> None:
        """Raise AssertionError."""
        raise AssertionError(
            "No checkpoint specified, so no restore ops are available (save_path=None to Saver.restore)."
        )


def _abbreviated(items: list[str]) -> str:
    return ", ".join(items[:10]) + (f" and {len(items) - 10} more" if len(items) > 10 else "")
