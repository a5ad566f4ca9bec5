"""Variables that stay from run to run, by name: VAR_HANDLE, READ_VARIABLE, ASSIGN_VARIABLE; and CALL_ONCE, which
sets them when the interpreter first runs.

Lives here: these operators and their registrations.
Not here: the values (runtime/resources.py), hash tables (hash_tables.py), variable tensors (runtime/tensor.py).

A handle is a tensor of type RESOURCE that holds the variable itself, so that it may be handed into branches and loops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.dtypes import any_dtype, resource
from ...core.errors import InvalidArgumentError
from ...core.shapes import SCALAR, UNKNOWN
from ...core.specs import TensorSpec
from ...graph import Graph
from ...ops.attributes import Attr
from ...ops.slots import Input, Output
from . import types
from .definition import EnumAttr, LiteDefinition, lite_operator
from .shapes import refuse, text


@lite_operator("VAR_HANDLE")
class VarHandle(LiteDefinition):
    """The variable of this name in this container; handles of one name are one variable in all subgraphs.

    .. math:: handle = variable(container, name)
    """

    container = Attr(str, default="")
    shared_name = Attr(str, default="")
    handle = Output(dtype=resource)

    def infer(op: Any) -> TensorSpec:
        return TensorSpec(SCALAR, resource)

    def registration(operator: Any) -> Any:
        def find(resources: Any, options: Any) -> Any:
            return resources.variable(
                getattr(options, "container", None) or "", getattr(options, "shared_name", None) or ""
            )

        return handle_registration(find)


@lite_operator("READ_VARIABLE", typed_by="dtype")
class ReadVariable(LiteDefinition):
    """The value of a variable at this point of the run.

    .. math:: value = variable

    Where the file says all sizes of the output, the variable must have as many elements when it is read.
    """

    handle = Input((resource,))
    value = Output()
    dtype = EnumAttr("TensorType")
    effect = "read"

    def infer(op: Any) -> TensorSpec:
        return TensorSpec(UNKNOWN, types.dtype_of(op.dtype))

    def registration(operator: Any) -> Any:
        from ..registration import Registration

        return Registration(None, None, _prepare_read, _read)


def _prepare_read(context: Any, node: Any) -> None:
    _counts(node, 1, 1)
    _check_handle(node)
    t = node.tensors_out[0]
    if node.user_data is None:
        node.user_data = t.shape  # as the file has it; a dynamic tensor's changes
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
class AssignVariable(LiteDefinition):
    """Set a variable; shape and dtype may be others than before.

    .. math:: variable \\leftarrow value
    """

    handle = Input((resource,))
    value = Input(any_dtype)
    effect = "write"

    def infer(op: Any) -> tuple[()]:
        return ()

    def registration(operator: Any) -> Any:
        from ..registration import Registration

        return Registration(None, None, _prepare_assign, _assign)


def _prepare_assign(context: Any, node: Any) -> None:
    _counts(node, 2, 0)
    _check_handle(node)
    if (value := node.tensors_in[1]).dtype is resource:
        raise refuse(f"input {value.name!r} is a handle", found=value.short(), wanted="the value to assign")


def _assign(context: Any, node: Any) -> None:
    handle_in(node).assign(node.tensors_in[1].readonly)


@lite_operator("CALL_ONCE", graphs={"init_subgraph_index": "init"})
class CallOnce(LiteDefinition):
    """Run a subgraph without inputs and outputs, the first time only that a node with it runs in an interpreter.

    .. math:: init()
    """

    init = Attr(Graph)
    effect = "write"

    def infer(op: Any) -> tuple[()]:
        if op.init.inputs or op.init.outputs:
            raise refuse("the subgraph has inputs or outputs", found=repr(op.init), wanted="none")
        return ()

    def registration(operator: Any) -> Any:
        from ..registration import Registration

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


def handle_registration(find: Callable[[Any, Any], Any]) -> Any:
    """Return the registration of an operator that returns a handle: find(resources, options) -> the resource."""
    from ..runtime.builtin_registrations import ResourceHandleRegistration

    return ResourceHandleRegistration(find)


def _counts(node: Any, inputs: int, outputs: int) -> None:
    counts = len(node.tensors_in), len(node.tensors_out)
    if counts != (inputs, outputs) or any(t is None for t in node.tensors_in):
        raise refuse("the node has the wrong number of inputs or outputs", found=counts, wanted=(inputs, outputs))


def _check_handle(node: Any) -> None:
    t = node.tensors_in[0]
    if t.dtype is not resource:
        raise refuse(f"input {t.name!r} is no handle", found=t.short(), wanted="a tensor of type RESOURCE")


def handle_in(node: Any) -> Any:
    """Return the variable of a node's first input. Raises InvalidArgumentError for other contents."""
    from ..runtime.resources import ResourceVariable

    array = node.tensors_in[0].array
    variable = array.reshape(-1)[0] if array is not None and array.size else None
    if not isinstance(variable, ResourceVariable):
        raise refuse(
            f"tensor {node.tensors_in[0].name!r} holds no variable",
            found=repr(variable),
            wanted="the output of a VAR_HANDLE",
        )
    return variable
