"""Preprocessing of text: tftext:WhitespaceTokenizer, tftext:Ngrams, and the lookup tables of vocabularies: HashTableV2,
LookupTableImportV2, LookupTableFindV2, LookupTableSizeV2.

Lives here: these operators, as TensorFlow Text and TensorFlow's converter write them.
Not here: the builtins HASHTABLE to HASHTABLE_SIZE, with the checks of both (lite/ops/state.py), where the entries are
kept (runtime/resources.py), tokenizers with a vocabulary, whose data files hold.

A list of lists of words is one tensor, filled up with empty strings, or ragged: all words in a row, and for each
dimension but the last the places where its rows begin, and the end.

A table's handle is an int32 (of the table's name) or a tensor of type RESOURCE. Keys are int32, int64 or strings,
values these or float32. The first of equal keys counts; a table is filled once.
"""

from __future__ import annotations

import functools
import itertools
import zlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import float32, int32, int64, resource, string
from ...core.specs import TensorSpec
from ...ops.attributes import Attr
from ...ops.slots import Input, Output
from ..ops.definition import EnumAttr, LiteDefinition
from ..ops.shapes import check_one, refuse, spec, text
from ..ops.state import check_pairs, checked_table
from ..registration import OperatorRegistration, Registration
from .definition import custom_operator

if TYPE_CHECKING:
    from ..runtime.resources import HashTable, Resources

SPACES = frozenset(
    map(chr, (*range(9, 14), 32, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000))
)
"""The characters with Unicode's property White_Space."""


def words_of(raw: bytes) -> list[bytes]:
    """Return the words of a UTF-8 text, up to the first invalid sequence or U+FFFD."""
    text = raw.decode("utf-8", "replace").partition("\ufffd")[0]
    return "".join(" " if c in SPACES else c for c in text).encode().split(b" ")


def _strings(elements: list[bytes], shape: Any) -> np.ndarray:
    return np.fromiter(elements, object, len(elements)).reshape(shape)


@custom_operator("tftext:WhitespaceTokenizer", counted_by="outputs")
class WhitespaceTokenizerOp(LiteDefinition):
    """The words of each text, as white space parts them.

    .. math:: words_{i} = split(x_i)

    x: strings of any shape; words: x.shape + [most words], filled up with empty strings, where there is one output;
    else all words in a row, and for each dimension of x int64 [number of rows + 1], where the rows begin.
    """

    x = Input((string,))
    ys = Output(repeated=True)
    outputs = Attr(int, default=1)

    def infer(op: Any) -> list[TensorSpec]:
        dims = op.x.spec.shape.dims
        if op.outputs == 1:
            return [spec(None if dims is None else (*dims, None), string)]
        if dims is not None and len(dims) != op.outputs - 1:
            raise refuse("there is not one output of rows for each dimension", found=op.outputs - 1, wanted=len(dims))
        sizes: list[Any] = [None] * (op.outputs - 1)
        for i, d in enumerate(dims or ()):
            before = sizes[i - 1] if i else 1
            sizes[i] = None if d is None or before is None else before * d
        return [spec((None,), string), *(spec((None if n is None else n + 1,), int64) for n in sizes)]

    def compute(op: Any, x: np.ndarray) -> list[np.ndarray]:
        lists = [[w for w in words_of(raw) if w] for raw in x.reshape(-1).tolist()]
        if op.outputs == 1:
            longest = max(map(len, lists), default=0)
            flat = [w for words in lists for w in (*words, *[b""] * (longest - len(words)))]
            return [_strings(flat, (*x.shape, longest))]
        rows, count = [], 1
        for i, d in enumerate(x.shape[:-1]):
            count *= d
            rows.append(np.arange(count + 1, dtype=np.int64) * x.shape[i + 1])
        ends = np.cumsum([0, *map(len, lists)], dtype=np.int64)
        return [_strings([w for words in lists for w in words], (-1,)), *rows, ends]


@custom_operator("tftext:Ngrams")
class NgramsOp(LiteDefinition):
    """Each run of `width` words of a row, joined.

    .. math:: y_{...i} = x_{...i} + separator + ... + x_{...,i + width - 1}

    x: strings [..., words], y: [..., words - width + 1]; or ragged: all words in a row, then int64 rows, and the same
    comes out. axis is -1, reduction_type STRING_JOIN.
    """

    x = Input((string,))
    rows = Input((int64,), repeated=True)
    ys = Output(repeated=True)
    width = Attr(int, default=0)
    axis = Attr(int, default=0)
    reduction_type = Attr(str, default="")
    string_separator = Attr(str, default="")

    def infer(op: Any) -> list[TensorSpec]:
        if op.width < 1 or op.axis != -1 or op.reduction_type != "STRING_JOIN":
            raise refuse(
                "n-grams of this kind are not supported",
                found=f"width {op.width}, axis {op.axis}, {op.reduction_type!r}",
                wanted="a width of at least 1, axis -1, 'STRING_JOIN'",
            )
        if op.rows:
            return [spec((None,), string), *(TensorSpec(r.spec.shape, int64) for r in op.rows)]
        dims = op.x.spec.shape.dims
        if dims == ():
            raise refuse("x is one word", found=text(dims), wanted="[..., words]")
        last = None if dims is None or dims[-1] is None else max(0, dims[-1] - op.width + 1)
        return [spec(None if dims is None else (*dims[:-1], last), string)]

    def compute(op: Any, x: np.ndarray, rows: Sequence[np.ndarray]) -> list[np.ndarray]:
        separator = op.string_separator.encode()
        words = x.reshape(-1).tolist()
        if rows:
            ends = rows[-1].tolist()
        else:
            ends = list(range(0, len(words) + 1, x.shape[-1])) if x.shape[-1] else [0]
        if any(a > b for a, b in itertools.pairwise(ends)) or (ends and (ends[0] < 0 or ends[-1] > len(words))):
            raise refuse("the rows are not within the words", found=ends[:8], wanted=f"rising, 0 to {len(words)}")
        joined, offsets = [], [0]
        for a, b in itertools.pairwise(ends):
            joined += [separator.join(words[i : i + op.width]) for i in range(a, b - op.width + 1)]
            offsets.append(len(joined))
        if rows:
            return [_strings(joined, (-1,)), *rows[:-1], np.array(offsets[: len(ends)], np.int64)]
        return [_strings(joined, (*x.shape[:-1], max(0, x.shape[-1] - op.width + 1)))]


KEYS = ("INT32", "INT64", "STRING")
VALUES = (*KEYS, "FLOAT32")
_HANDLE = (int32, resource)
_KEY = (int32, int64, string)
_VALUE = (*_KEY, float32)


def number_of(name: str) -> int:
    """Return an int32 that identifies a table by its name, distinct from the numbers of builtin tables."""
    return zlib.crc32(name.encode()) - (1 << 31)


class TableRegistration(OperatorRegistration):
    """The operator's shape rules, and `run(call, resources, arrays) -> results` in place of `compute`, as handles
    represent resources of the interpreter."""

    __slots__ = ("run",)

    def __init__(self, operator: Any, run: Callable[..., Any]) -> None:
        super().__init__(operator)
        self.run = run

    def bind(self, context: Any, node: Any) -> Callable[[], Any]:
        return functools.partial(self._invoke, context, node)

    def _invoke(self, context: Any, node: Any) -> None:
        results = self.run(self._call(node), node.subgraph.resources, [t.readonly for t in node.tensors_in])
        for t, result in zip(node.tensors_out, results):
            if t.array is None or t.shape != np.shape(result):
                context.resize(t, np.shape(result))
            array: Any = t.array
            np.copyto(array, result)


class HandleRegistration(OperatorRegistration):
    """The handle of a table: its number, or the table itself."""

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

    def bind(self, context: Any, node: Any) -> Callable[[], Any]:
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
class HashTableV2Op(LiteDefinition):
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

    registration = HandleRegistration


def _table(resources: Resources, handle: np.ndarray, *entries: np.ndarray) -> HashTable:
    """Return the table of a handle; check the types of keys and values."""
    table: Any = handle.reshape(-1)[0] if handle.size else None
    if handle.dtype != object:
        table = resources.tables.get(int(table)) if table is not None else None
    return checked_table(table, entries, "HashTableV2")


@custom_operator("LookupTableImportV2")
class LookupTableImportV2Op(LiteDefinition):
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

    def registration(operator: Any) -> Registration:
        def run(op: Any, resources: Any, arrays: Any) -> tuple[()]:
            _table(resources, *arrays).fill(*arrays[1:])
            return ()

        return TableRegistration(operator, run)


@custom_operator("LookupTableFindV2")
class LookupTableFindV2Op(LiteDefinition):
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

    def registration(operator: Any) -> Registration:
        def run(op: Any, resources: Any, arrays: Any) -> tuple[np.ndarray]:
            return (_table(resources, *arrays).find(*arrays[1:]),)

        return TableRegistration(operator, run)


@custom_operator("LookupTableSizeV2")
class LookupTableSizeV2Op(LiteDefinition):
    """The number of keys in a table.

    .. math:: size = |table|
    """

    table = Input(_HANDLE)
    size = Output(dtype=int64)
    effect = "read"

    def infer(op: Any) -> TensorSpec:
        return TensorSpec((1,), int64)

    def registration(operator: Any) -> Registration:
        def run(op: Any, resources: Any, arrays: Any) -> tuple[np.ndarray]:
            return (np.array([len(_table(resources, *arrays))], np.int64),)

        return TableRegistration(operator, run)
