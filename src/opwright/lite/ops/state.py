"""State that persists from run to run, by name: variables (VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE), hash tables
(HASHTABLE, HASHTABLE_IMPORT, HASHTABLE_FIND, HASHTABLE_SIZE), and CALL_ONCE, which initializes both.

Lives here: these operators and their registrations, and checks that lite/customs/text.py shares.
Not here: values and entries (runtime/resources.py), HASHTABLE_LOOKUP (lookup.py), variable tensors (runtime/tensor.py).

A handle is a tensor of type RESOURCE that holds the variable or table itself, so that it may be passed to branches and
loops. A table is filled once; its keys and values are int64 and strings, or strings and int64.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.dtypes import any_dtype, int64, resource, string
from ...core.errors import InvalidArgumentError
from ...core.shapes import SCALAR, UNKNOWN
from ...core.specs import TensorSpec
from ...graph import Graph
from ...ops.attributes import Attr
from ...ops.slots import Input, Output
from ..registration import Registration
from ..runtime.builtin_registrations import ResourceHandleRegistration
from ..runtime.resources import HashTable, Resources, ResourceVariable
from . import types
from .definition import EnumAttr, LiteDefinition, lite_operator
from .shapes import refuse, text


@lite_operator("VAR_HANDLE")
class VarHandleOp(LiteDefinition):
    """The variable of this name in this container; handles of one name are one variable in all subgraphs.

    .. math:: handle = variable(container, name)
    """

    container = Attr(str, default="")
    shared_name = Attr(str, default="")
    handle = Output(dtype=resource)

    def infer(op: Any) -> TensorSpec:
        return TensorSpec(SCALAR, resource)

    def registration(operator: Any) -> Registration:
        def find(resources: Resources, options: Any) -> ResourceVariable:
            return resources.variable(
                getattr(options, "container", None) or "", getattr(options, "shared_name", None) or ""
            )

        return ResourceHandleRegistration(find)


@lite_operator("READ_VARIABLE", typed_by="dtype")
class ReadVariableOp(LiteDefinition):
    """The value of a variable at this point of the run.

    .. math:: value = variable

    If the file specifies all sizes of the output, the variable must have as many elements when it is read.
    """

    handle = Input((resource,))
    value = Output()
    dtype = EnumAttr("TensorType")
    effect = "read"

    def infer(op: Any) -> TensorSpec:
        return TensorSpec(UNKNOWN, types.dtype_of(op.dtype))

    def registration(operator: Any) -> Registration:
        return Registration(None, None, _prepare_read, _read)


def _prepare_read(context: Any, node: Any) -> None:
    _counts(node, 1, 1)
    _check_handle(node)
    t = node.tensors_out[0]
    if node.user_data is None:
        node.user_data = t.shape  # that of the file; a dynamic tensor's changes
    if _is_open(node):
        context.set_tensor_to_dynamic(node.outputs[0])
    else:
        context.resize(t, node.user_data)


def _is_open(node: Any) -> bool:
    """Return whether sizes of the output depend on the value."""
    t = node.tensors_out[0]
    return (t.signature is not None and -1 in t.signature) or (node.user_data == () and not t.has_rank)


def _read(context: Any, node: Any) -> None:
    t, variable = node.tensors_out[0], handle_in(node)
    value = variable.read()
    if value.dtype != t.dtype.np:
        raise InvalidArgumentError(
            what=f"{variable!r} is read as another type than was assigned", found=value.dtype.name, wanted=t.dtype.name
        )
    if node.outputs[0].is_dynamic:
        context.resize(t, value.shape if _is_open(node) else node.user_data)
    if value.shape != t.shape:
        if value.size != t.array.size:
            raise InvalidArgumentError(
                what=f"{variable!r} is read with another number of elements than were assigned",
                found=text(value.shape),
                wanted=text(t.shape),
                do="convert the model with this size unknown (shape=[None, ...] of the variable)",
            )
        value = value.reshape(t.shape)
    np.copyto(t.array, value)


@lite_operator("ASSIGN_VARIABLE")
class AssignVariableOp(LiteDefinition):
    """Set a variable; shape and dtype may be others than before.

    .. math:: variable \\leftarrow value
    """

    handle = Input((resource,))
    value = Input(any_dtype)
    effect = "write"

    def infer(op: Any) -> tuple[()]:
        return ()

    def registration(operator: Any) -> Registration:
        return Registration(None, None, _prepare_assign, _assign)


def _prepare_assign(context: Any, node: Any) -> None:
    _counts(node, 2, 0)
    _check_handle(node)
    if (value := node.tensors_in[1]).dtype is resource:
        raise refuse(f"input {value.name!r} is a handle", found=value.short(), wanted="the value to assign")


def _assign(context: Any, node: Any) -> None:
    handle_in(node).assign(node.tensors_in[1].readonly)


@lite_operator("CALL_ONCE", graphs={"init_subgraph_index": "init"})
class CallOnceOp(LiteDefinition):
    """Run a subgraph without inputs and outputs, the first time only that a node with it runs in an interpreter.

    .. math:: init()
    """

    init = Attr(Graph)
    effect = "write"

    def infer(op: Any) -> tuple[()]:
        if op.init.inputs or op.init.outputs:
            raise refuse("the subgraph has inputs or outputs", found=repr(op.init), wanted="none")
        return ()

    def registration(operator: Any) -> Registration:
        return Registration(None, None, _prepare_once, _once)


def _prepare_once(context: Any, node: Any) -> None:
    _counts(node, 0, 0)
    index, family = _init_of(node), node.subgraph.family
    if not 0 <= index < len(family) or family[index] is node.subgraph:
        raise refuse("init_subgraph_index names no other subgraph", found=index, wanted=f"below {len(family)}")
    if family[index].inputs or family[index].outputs:
        raise refuse(f"subgraph {index}, which is to initialise, has inputs or outputs", wanted="none")


def _init_of(node: Any) -> int:
    return int(getattr(node.options, "init_subgraph_index", 0))


def _once(context: Any, node: Any) -> None:
    index, done = _init_of(node), node.subgraph.resources.initialized
    if index in done:
        return
    init = node.subgraph.family[index]
    init.accept(())
    init.connect((), (), node)
    init.run()
    done.add(index)
    init.release()


# ---- what operators on resources share -------------------------------------------------------------------------------


def _counts(node: Any, inputs: int, outputs: int) -> None:
    counts = len(node.tensors_in), len(node.tensors_out)
    if counts != (inputs, outputs) or any(t is None for t in node.tensors_in):
        raise refuse("the node has the wrong number of inputs or outputs", found=counts, wanted=(inputs, outputs))


def _check_handle(node: Any) -> None:
    t = node.tensors_in[0]
    if t.dtype is not resource:
        raise refuse(f"input {t.name!r} is not a handle", found=t.short(), wanted="a tensor of type RESOURCE")


def handle_in(node: Any) -> ResourceVariable:
    """Return the variable of a node's first input. Raises InvalidArgumentError for other contents."""
    array = node.tensors_in[0].array
    variable = array.reshape(-1)[0] if array is not None and array.size else None
    if not isinstance(variable, ResourceVariable):
        raise refuse(
            f"tensor {node.tensors_in[0].name!r} holds no variable",
            found=repr(variable),
            wanted="the output of a VAR_HANDLE",
        )
    return variable


KINDS = (("INT64", "STRING"), ("STRING", "INT64"))
ENTRY = (int64, string)


@lite_operator("HASHTABLE")
class HashtableOp(LiteDefinition):
    """The hash table of this number; one in all subgraphs.

    .. math:: table = table(number)
    """

    table = Output(dtype=resource)

    def infer(op: Any) -> TensorSpec:
        _check_kinds(op.key_dtype, op.value_dtype)
        return TensorSpec((1,), resource)

    def registration(operator: Any) -> Registration:
        def find(resources: Resources, options: Any) -> HashTable:
            call = operator.from_options(options)
            _check_kinds(call.key_dtype, call.value_dtype)
            return resources.table(call.table_id, call.key_dtype, call.value_dtype)

        return ResourceHandleRegistration(find)


def _check_kinds(key: str, value: str) -> None:
    if (key, value) not in KINDS:
        raise refuse(
            "a hash table goes from INT64 to STRING or from STRING to INT64",
            found=f"{key} to {value}",
            wanted="INT64 to STRING, or STRING to INT64",
        )


def check_pairs(op: Any) -> None:
    """Raise InvalidArgumentError if the operands `keys` and `values` differ in shape."""
    keys, values = op.keys.spec.shape, op.values.spec.shape
    if not keys.is_compatible_with(values):
        raise refuse(
            "keys and values differ in shape", found={"keys": text(keys), "values": text(values)}, wanted="one shape"
        )


@lite_operator("HASHTABLE_IMPORT")
class HashtableImportOp(LiteDefinition):
    """Fill a table that is empty still; another import changes nothing. The first of equal keys counts.

    .. math:: table_{keys_i} \\leftarrow values_i
    """

    table = Input((resource,))
    keys = Input(ENTRY)
    values = Input(ENTRY)
    effect = "write"

    def infer(op: Any) -> tuple[()]:
        check_pairs(op)
        return ()

    def compute(op: Any, table: np.ndarray, keys: np.ndarray, values: np.ndarray) -> tuple[()]:
        if keys.shape != values.shape:
            raise refuse(
                "keys and values differ in shape",
                found={"keys": keys.shape, "values": values.shape},
                wanted="one shape",
            )
        _table(table, keys, values).fill(keys, values)
        return ()


@lite_operator("HASHTABLE_FIND")
class HashtableFindOp(LiteDefinition):
    """The value of each key, or the default where a key is not there.

    .. math:: values_i = table_{keys_i}
    """

    table = Input((resource,))
    keys = Input(ENTRY)
    default = Input(ENTRY)
    values = Output(like="default")
    effect = "read"

    def infer(op: Any) -> TensorSpec:
        if op.default.spec.shape.num_elements() == 0:
            raise refuse("the default is one element", found=op.default.spec.short(), wanted="one element")
        return TensorSpec(op.keys.spec.shape, op.default.spec.dtype)

    def compute(op: Any, table: np.ndarray, keys: np.ndarray, default: np.ndarray) -> np.ndarray:
        return _table(table, keys, default).find(keys, default)


@lite_operator("HASHTABLE_SIZE")
class HashtableSizeOp(LiteDefinition):
    """The number of keys in a table.

    .. math:: size = |table|
    """

    table = Input((resource,))
    size = Output(dtype=int64)
    effect = "read"

    def infer(op: Any) -> TensorSpec:
        return TensorSpec((1,), int64)

    def compute(op: Any, table: np.ndarray) -> np.ndarray:
        return np.array([len(_table(table))], np.int64)


def _table(handle: np.ndarray, *entries: np.ndarray) -> HashTable:
    """Return the table in a handle; check the types of keys and values."""
    return checked_table(handle.reshape(-1)[0] if handle.size else None, entries, "HASHTABLE")


@functools.cache
def _entry_name(dtype: np.dtype[Any]) -> str:
    """Return the schema's name of a dtype of entries."""
    return "STRING" if dtype.kind == "O" else dtype.name.upper()


def checked_table(table: object, entries: Sequence[np.ndarray], maker: str) -> HashTable:
    """Return the hash table of a handle; check that its types are those of the entries.

    maker: the operator whose output handles are. raises InvalidArgumentError
    """
    if not isinstance(table, HashTable):
        raise refuse("the handle does not stand for a hash table", found=repr(table), wanted=f"the output of a {maker}")
    names = [_entry_name(x.dtype) for x in entries]
    expected = [table.key_dtype, table.value_dtype][: len(names)]
    if names != expected:
        raise refuse(f"{table!r} has other types", found=" to ".join(names), wanted=" to ".join(expected))
    return table
