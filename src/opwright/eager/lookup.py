"""Hash tables, `ow.lookup`: values by key.

Lives here: tables that are filled once and their initializers, tables that programs change.
Not here: the operator that looks keys up (ops/lookup.py), layers with vocabularies (nn/layers/index_lookup.py).

A static table is two tensors, its keys and values: functions that look keys up capture them as constants, which saved
models and files contain. A mutable table is a dictionary of this process.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from ..core import dtypes
from ..core.dtypes import DType, as_dtype
from ..core.errors import InvalidArgumentError, NotFoundError
from ..core.shapes import TensorShape
from ..core.specs import TensorSpec
from ..ops import array, dispatch, strings
from ..ops.lookup import KEY_DTYPES, LookupTableFind, index_of
from ..ops.ragged import RaggedTensor
from ..ops.sparse.sparse_tensor import SparseTensor
from .python_functions import py_function
from .tensor import EagerTensor, convert_to_tensor

__all__ = [
    "KeyValueTensorInitializer",
    "StaticHashTable",
    "StaticVocabularyTable",
    "TextFileIndex",
    "TextFileInitializer",
    "experimental",
]


class TextFileIndex:
    """Parts of a line of a text file that are a key or value, instead of the number of a column."""

    WHOLE_LINE = -2
    LINE_NUMBER = -1


class KeyValueTensorInitializer:
    """Content of a table: keys and values, vectors of one length."""

    def __init__(
        self, keys: Any, values: Any, key_dtype: Any = None, value_dtype: Any = None, name: str | None = None
    ) -> None:
        self.keys = _vector(keys, key_dtype)
        self.values = _vector(values, value_dtype)
        if self.keys.shape != self.values.shape:
            raise InvalidArgumentError(
                op="lookup.KeyValueTensorInitializer",
                what="keys and values differ in number",
                found={"keys": self.keys.shape, "values": self.values.shape},
            )

    @property
    def key_dtype(self) -> DType:
        """Element type of the keys."""
        result: DType = self.keys.dtype
        return result

    @property
    def value_dtype(self) -> DType:
        """Element type of the values."""
        result: DType = self.values.dtype
        return result


def _vector(values: Any, dtype: Any) -> Any:
    tensor = convert_to_tensor(values, None if dtype is None else as_dtype(dtype))
    return array.reshape(tensor, [-1]) if tensor.shape.rank != 1 else tensor


class TextFileInitializer(KeyValueTensorInitializer):
    """Content of a table: the lines of a text file.

    key_index, value_index: a column of the line, or TextFileIndex.WHOLE_LINE or LINE_NUMBER. vocab_size: the number of
    lines to read. delimiter: between columns. value_index_offset: added to line numbers.
    raises NotFoundError for a missing file, InvalidArgumentError for fewer lines or lines without the columns
    """

    def __init__(
        self,
        filename: Any,
        key_dtype: Any,
        key_index: int,
        value_dtype: Any,
        value_index: int,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = None,
        value_index_offset: int = 0,
    ) -> None:
        path = os.fspath(filename)
        if not os.path.exists(path):
            raise NotFoundError(op="lookup.TextFileInitializer", what=f"{path}; No such file or directory")
        with open(path, "rb") as file:
            lines = [line.removesuffix(b"\r") for line in file.read().removesuffix(b"\n").split(b"\n")]
        lines = [] if lines == [b""] else lines
        if vocab_size is not None:
            if len(lines) < vocab_size:
                raise InvalidArgumentError(
                    op="lookup.TextFileInitializer",
                    what=f"Invalid vocab_size in {path}: expected {vocab_size} but got {len(lines)}",
                )
            lines = lines[:vocab_size]

        def column(index: int, dtype: DType, offset: int) -> Any:
            if index == TextFileIndex.LINE_NUMBER:
                return np.arange(offset, offset + len(lines), dtype=dtype.np)
            if index == TextFileIndex.WHOLE_LINE:
                texts = lines
            else:
                rows = [line.split(delimiter.encode()) for line in lines]
                short = [i for i, row in enumerate(rows) if len(row) <= index]
                if short:
                    raise InvalidArgumentError(
                        op="lookup.TextFileInitializer",
                        what=f"line {short[0]} of {path} has no column {index}",
                        found=f"{len(rows[short[0]])} columns",
                    )
                texts = [row[index] for row in rows]
            result = np.empty(len(texts), dtype.np)
            result[:] = texts if dtype is dtypes.string else [dtype.np.type(text.decode()) for text in texts]
            return result

        key, value = as_dtype(key_dtype), as_dtype(value_dtype)
        super().__init__(column(key_index, key, 0), column(value_index, value, value_index_offset), key, value)


class _Table:
    """Base of tables: `lookup` by tensors of any kind."""

    key_dtype: DType
    value_dtype: DType

    def _find(self, keys: Any) -> Any:
        raise NotImplementedError

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """Return the value of each key, or the default. keys: a tensor, RaggedTensor or SparseTensor of the key dtype.

        raises TypeError for another dtype
        """
        keys = keys if isinstance(keys, (RaggedTensor, SparseTensor)) else dispatch.to_tensor(keys)
        if keys.dtype is not self.key_dtype:
            raise TypeError(
                f"Dtype of argument `keys` must be {self.key_dtype.name}, received: {keys.dtype.name} "
                f"(of {type(self).__name__})"
            )
        if isinstance(keys, SparseTensor):
            return keys.with_values(self._find(keys.values))
        if isinstance(keys, RaggedTensor):
            return keys.with_flat_values(self._find(keys.flat_values))
        return self._find(keys)

    def __getitem__(self, keys: Any) -> Any:
        return self.lookup(keys)


class StaticHashTable(_Table):
    """A table that is filled when it is created.

    initializer: its content. default_value: of keys that it does not have.
    raises InvalidArgumentError for a key with two values

    >>> table = ow.lookup.StaticHashTable(ow.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2]), -1)
    >>> table.lookup(["b", "z"]).numpy()
    array([ 2, -1], dtype=int32)
    """

    def __init__(
        self, initializer: Any, default_value: Any, name: str | None = None, experimental_is_anonymous: bool = False
    ) -> None:
        self.key_dtype, self.value_dtype = initializer.key_dtype, initializer.value_dtype
        if self.key_dtype not in KEY_DTYPES:
            raise TypeError(f"No table has keys of dtype {self.key_dtype.name}")
        self.default_value = convert_to_tensor(default_value, self.value_dtype)
        self.name = name or "hash_table"
        keys, values = initializer.keys.numpy(), initializer.values.numpy()
        index = index_of(keys)
        first = np.fromiter(index.values(), np.int64, len(index))
        if len(first) < len(keys):
            for key, value in zip(keys.tolist(), values.tolist()):
                if values[index[key]] != value:
                    raise InvalidArgumentError(
                        op="lookup.StaticHashTable",
                        what=f"HashTable has different value for same key. Key {key!r} has {values[index[key]]!r} and "
                        f"trying to add value {value!r}",
                    )
        self._keys = EagerTensor(np.ascontiguousarray(keys[first]), self.key_dtype)
        self._values = EagerTensor(np.ascontiguousarray(values[first]), self.value_dtype)

    def _find(self, keys: Any) -> Any:
        return LookupTableFind(keys, self._keys, self._values, self.default_value)

    def size(self, name: str | None = None) -> Any:
        """Return the number of keys, int64."""
        return array.size(self._keys, dtypes.int64)

    def export(self, name: str | None = None) -> tuple[Any, Any]:
        """Return all keys and their values."""
        return self._keys, self._values


class StaticVocabularyTable(_Table):
    """Numbers of strings or integers: those of an initializer, and for other keys one of num_oov_buckets, by hash.

    .. math:: index(key) = table_{key}, \\text{ else } size + FarmHashFingerprint64(key) \\bmod num\\_oov\\_buckets

    initializer: with int64 values; None if all keys are hashed. lookup_key_dtype: of integers, if the table has
    strings.
    raises ValueError for num_oov_buckets below 1
    """

    def __init__(
        self,
        initializer: Any,
        num_oov_buckets: int,
        lookup_key_dtype: Any = None,
        name: str | None = None,
        experimental_is_anonymous: bool = False,
    ) -> None:
        if num_oov_buckets <= 0:
            raise ValueError(f"`num_oov_buckets` must be > 0; use StaticHashTable instead. Received: {num_oov_buckets}")
        self._table = None
        if initializer is not None:
            if initializer.value_dtype is not dtypes.int64:
                raise TypeError(f"Invalid `value_dtype`, expected int64 but got {initializer.value_dtype.name}.")
            self._table = StaticHashTable(initializer, -1)
        table_dtype = dtypes.string if self._table is None else self._table.key_dtype
        self.key_dtype = table_dtype if lookup_key_dtype is None else as_dtype(lookup_key_dtype)
        if self.key_dtype is not dtypes.string and not self.key_dtype.is_integer:
            raise TypeError(f"Invalid `key_dtype`, expected string or an integer but got {self.key_dtype.name}")
        self.value_dtype, self.num_oov_buckets = dtypes.int64, int(num_oov_buckets)
        self.name = name or "vocabulary_table"

    def _find(self, keys: Any) -> Any:
        texts: Any = keys if keys.dtype is dtypes.string else strings.as_string(keys)
        offset = 0 if self._table is None else len(self._table._keys)
        hashed = strings.to_hash_bucket_fast(texts, self.num_oov_buckets) + offset
        if self._table is None:
            return hashed
        entries = self._table._find(texts if self._table.key_dtype is dtypes.string else array.cast(keys, dtypes.int64))
        return array.where(entries < 0, hashed, entries)

    def size(self, name: str | None = None) -> Any:
        """Return the number of indices, those of unknown keys included."""
        entries = 0 if self._table is None else len(self._table._keys)
        return array.cast(entries + self.num_oov_buckets, dtypes.int64)


class MutableHashTable(_Table):
    """A table that programs change: eagerly, and in functions in the order of the program.

    default_value: of keys that it does not have; its shape is that of each value. It is a dictionary of this process:
    functions that use it are not part of saved models and `.tflite` files.
    """

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        name: str | None = None,
        checkpoint: bool = True,
        experimental_is_anonymous: bool = False,
    ) -> None:
        self.key_dtype, self.value_dtype = as_dtype(key_dtype), as_dtype(value_dtype)
        self.default_value = convert_to_tensor(default_value, self.value_dtype)
        self.name = name or "mutable_hash_table"
        self._items: dict[Any, Any] = {}
        self._shape = self.default_value.shape

    def _run(self, function: Callable[..., Any], operands: list[Any], outputs: list[TensorSpec]) -> Any:
        return py_function(function, operands, outputs)

    def _values_of(self, items: list[Any], shape: tuple[int, ...]) -> np.ndarray:
        inner = tuple(int(d) for d in self.default_value.numpy().shape)
        result = np.empty((len(items), *inner), self.value_dtype.np)
        for i, item in enumerate(items):
            result[i, ...] = item
        return result.reshape(*shape, *inner)

    def _find(self, keys: Any) -> Any:
        other = self.default_value.numpy()

        def find(keys: Any) -> Any:
            names = keys.numpy().reshape(-1).tolist() if keys.shape.rank else [keys.numpy()]
            return self._values_of([self._items.get(k, other) for k in names], tuple(keys.shape))

        shape = TensorShape(None) if keys.shape.rank is None else keys.shape.concatenate(self._shape)
        return self._run(find, [keys], [TensorSpec(shape, self.value_dtype)])[0]

    def insert(self, keys: Any, values: Any, name: str | None = None) -> Any:
        """Set the values of keys, of which the last counts."""
        keys, values = dispatch.to_tensor(keys, self.key_dtype), dispatch.to_tensor(values, self.value_dtype)

        def store(keys: Any, values: Any) -> None:
            rows = values.numpy().reshape(-1, *self._shape.as_list())
            names = keys.numpy().reshape(-1).tolist() if keys.shape.rank else [keys.numpy()]
            if len(rows) != len(names):
                raise InvalidArgumentError(
                    op="MutableHashTable.insert", what="keys and values differ in number", found=(len(names), len(rows))
                )
            self._items.update(zip(names, [row.copy() if hasattr(row, "copy") else row for row in rows]))

        return self._run(store, [keys, values], [])

    def remove(self, keys: Any, name: str | None = None) -> Any:
        """Remove keys; keys that the table does not have are ignored."""

        def drop(keys: Any) -> None:
            for key in keys.numpy().reshape(-1).tolist() if keys.shape.rank else [keys.numpy()]:
                self._items.pop(key, None)

        return self._run(drop, [dispatch.to_tensor(keys, self.key_dtype)], [])

    erase = remove

    def size(self, name: str | None = None) -> Any:
        """Return the number of keys, int64."""
        spec = [TensorSpec([], dtypes.int64)]
        return self._run(lambda: np.int64(len(self._items)), [], spec)[0]

    def export(self, name: str | None = None) -> tuple[Any, Any]:
        """Return all keys and their values."""

        def all_items() -> list[Any]:
            keys = np.empty(len(self._items), self.key_dtype.np)
            keys[:] = list(self._items)
            return [keys, self._values_of(list(self._items.values()), (len(self._items),))]

        values = TensorShape([None]).concatenate(self._shape)
        specs = [TensorSpec([None], self.key_dtype), TensorSpec(values, self.value_dtype)]
        return cast("tuple[Any, Any]", tuple(self._run(all_items, [], specs)))


class DenseHashTable(MutableHashTable):
    """A MutableHashTable under the name of TensorFlow's with open addressing, which reserves two keys.

    empty_key, deleted_key: keys that programs do not use. raises InvalidArgumentError where they do
    """

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        empty_key: Any,
        deleted_key: Any,
        initial_num_buckets: int | None = None,
        name: str | None = None,
        checkpoint: bool = True,
        experimental_is_anonymous: bool = False,
    ) -> None:
        super().__init__(key_dtype, value_dtype, default_value, name or "dense_hash_table")
        self._reserved = [convert_to_tensor(k, self.key_dtype).numpy() for k in (empty_key, deleted_key)]

    def insert(self, keys: Any, values: Any, name: str | None = None) -> Any:
        """Set the values of keys. Raises InvalidArgumentError for a reserved key."""
        constant = getattr(keys, "constant", None)
        names = np.asarray(convert_to_tensor(keys, self.key_dtype).numpy() if constant is None else constant)
        if any(np.any(names == reserved) for reserved in self._reserved):
            raise InvalidArgumentError(
                op="DenseHashTable.insert", what="Using the empty_key as a table key is not allowed"
            )
        return super().insert(keys, values)


experimental = SimpleNamespace(MutableHashTable=MutableHashTable, DenseHashTable=DenseHashTable)
"""Tables that programs change, under TensorFlow's name."""
