"""Hash tables as custom operators: HashTableV2, LookupTableImportV2, LookupTableFindV2, LookupTableSizeV2.

Lives here: these operators, which TensorFlow's converter wrote before there were builtin ones.
Not here: HASHTABLE and its kin (lite/ops/hash_tables.py), where the entries are kept (runtime/resources.py).

A handle is an int32 (of the table's name) or a tensor of type RESOURCE. Keys are int32, int64 or strings, values these
or float32. The first of equal keys counts; a table is filled once.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.dtypes import float32, int32, int64, resource, string
from ...core.specs import TensorSpec
from ...ops.attributes import Attr
from ...ops.slots import Input, Output
from ..ops.definition import EnumAttr, LiteDefinition
from ..ops.hash_tables import check_pairs, checked_table
from ..ops.shapes import check_one, refuse
from ..registration import OperatorRegistration
from .definition import custom_operator

KEYS = ("INT32", "INT64", "STRING")
VALUES = (*KEYS, "FLOAT32")
_HANDLE = (int32, resource)
_KEY = (int32, int64, string)
_VALUE = (*_KEY, float32)


def number_of(name: str) -> int:
    """Return an int32 that identifies a table by its name, distinct from the numbers of builtin tables."""
    return zlib.crc32(name.encode()) - (1 << 31)


class TableRegistration(OperatorRegistration):
    """The operator's shape rules, and `run(call, resources, arrays) -> results` in place of `compute`, as handles stand
    for what the interpreter keeps."""

    __slots__ = ("run",)

    def __init__(self, operator: Any, run: Callable[..., Any]) -> None:
        super().__init__(operator)
        self.run = run

    def bind(self, context: Any, node: Any) -> Any:
        return functools.partial(self._invoke, context, node)

    def _invoke(self, context: Any, node: Any) -> None:
        results = self.run(self._call(node), node.subgraph.resources, [t.readonly for t in node.tensors_in])
        for t, result in zip(node.tensors_out, results):
            if t.array is None or t.shape != np.shape(result):
                context.resize(t, np.shape(result))
            np.copyto(t.array, result)


class HandleRegistration(OperatorRegistration):
    """An output that stands for a table: its number, or the table itself."""

    __slots__ = ()

    def _prepare(self, context: Any, node: Any) -> None:
        super()._prepare(context, node) if _is_number(node) else self._prepare_resource(context, node)

    def _prepare_resource(self, context: Any, node: Any) -> None:
        """Check the type of the output: declarations do not cover tensors of resources."""
        self.operator.infer(self._call(node), [])
        if len(node.tensors_out) != 1 or node.tensors_out[0].dtype is not resource:
            raise refuse(
                "the handle has the wrong type", found=[t.short() for t in node.tensors_out], wanted="INT32 or RESOURCE"
            )
        context.resize(node.tensors_out[0], (1,))

    def bind(self, context: Any, node: Any) -> Any:
        return functools.partial(self._invoke, context, node)

    def _invoke(self, context: Any, node: Any) -> None:
        op: Any = self._call(node)
        number = number_of(op.table_name or op.shared_name)
        table = node.subgraph.resources.table(number, op.key_dtype, value_type(op.value_dtype))
        node.tensors_out[0].array.fill(number if _is_number(node) else table)


def _is_number(node: Any) -> bool:
    return len(node.tensors_out) == 1 and node.tensors_out[0].dtype is int32


def value_type(name: str) -> str:
    """Return the type of values: 1 is FLOAT32 in the numbering of older kernels, FLOAT16 in the schema."""
    return "FLOAT32" if name == "FLOAT16" else name


@custom_operator("HashTableV2")
class HashTableV2(LiteDefinition):
    """The hash table of this name; one in all subgraphs.

    .. math:: table = table(name)

    table_name, else shared_name: its name; key_dtype: INT32, INT64 or STRING; value_dtype: these or FLOAT32, by their
    numbers in the schema (1 counts as FLOAT32, as in the older kernels' own numbering)
    """

    table = Output(dtype=int32)
    table_name = Attr(str, default="")
    shared_name = Attr(str, default="")
    key_dtype = EnumAttr("TensorType", 5)
    value_dtype = EnumAttr("TensorType", 5)

    def infer(op: Any) -> TensorSpec:
        if not (op.table_name or op.shared_name):
            raise refuse("the table has no name", wanted="table_name or shared_name")
        if op.key_dtype not in KEYS or value_type(op.value_dtype) not in VALUES:
            raise refuse(
                "no hash table has these types",
                found=f"{op.key_dtype} to {op.value_dtype}",
                wanted=f"{', '.join(KEYS)} to {', '.join(VALUES)}",
            )
        return TensorSpec((1,), int32)

    def registration(operator: Any) -> Any:
        return HandleRegistration(operator)


def _table(resources: Any, handle: np.ndarray, *entries: np.ndarray) -> Any:
    """Return the table of a handle; check the types of keys and values."""
    table: Any = handle.reshape(-1)[0] if handle.size else None
    if handle.dtype != object:
        table = resources.tables.get(int(table)) if table is not None else None
    return checked_table(table, entries, "HashTableV2")


@custom_operator("LookupTableImportV2")
class LookupTableImportV2(LiteDefinition):
    """Fill a table that is empty still; another import changes nothing. The first of equal keys counts.

    .. math:: table_{keys_i} \\leftarrow values_i
    """

    table = Input(_HANDLE)
    keys = Input(_KEY)
    values = Input(_VALUE)
    effect = "write"

    def infer(op: Any) -> tuple[()]:
        check_pairs(op)
        return ()

    def registration(operator: Any) -> Any:
        def run(op: Any, resources: Any, arrays: Any) -> tuple[()]:
            _table(resources, *arrays).fill(*arrays[1:])
            return ()

        return TableRegistration(operator, run)


@custom_operator("LookupTableFindV2")
class LookupTableFindV2(LiteDefinition):
    """The value of each key, or the default where a key is not there.

    .. math:: values_i = table_{keys_i}

    default: one element
    """

    table = Input(_HANDLE)
    keys = Input(_KEY)
    default = Input(_VALUE)
    values = Output(like="default")
    effect = "read"

    def infer(op: Any) -> TensorSpec:
        check_one(op.default, "the default", "element")
        return TensorSpec(op.keys.spec.shape, op.default.spec.dtype)

    def registration(operator: Any) -> Any:
        def run(op: Any, resources: Any, arrays: Any) -> tuple[np.ndarray]:
            return (_table(resources, *arrays).find(*arrays[1:]),)

        return TableRegistration(operator, run)


@custom_operator("LookupTableSizeV2")
class LookupTableSizeV2(LiteDefinition):
    """The number of keys in a table.

    .. math:: size = |table|
    """

    table = Input(_HANDLE)
    size = Output(dtype=int64)
    effect = "read"

    def infer(op: Any) -> TensorSpec:
        return TensorSpec((1,), int64)

    def registration(operator: Any) -> Any:
        def run(op: Any, resources: Any, arrays: Any) -> tuple[np.ndarray]:
            return (np.array([len(_table(resources, *arrays))], np.int64),)

        return TableRegistration(operator, run)
