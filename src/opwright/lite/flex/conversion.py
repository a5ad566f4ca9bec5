"""A node of the catalogue as a Flex operator: TensorFlow's own NodeDef where it has the operator, else one of ours.

Lives here: `to_flex`.  Not here: when it is done (lite/convert/passes.py), the way back (registration.py).

A node that TensorFlow declares alike runs in its Flex delegate, too. Any other keeps our name and attributes and is
marked by the attribute `_opwright`, which TensorFlow's parser lets pass and whose operator it then does not find.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.dtypes import DType, of_numpy
from ...core.errors import InvalidArgumentError
from ...core.shapes import TensorShape
from ...graph import Node, Value
from ...graph.ir import flat
from ...ops import registry
from ..format.flexbuffers import encode_strings
from . import nodedef
from .declarations import ConstantInput, OpDeclaration, OpMapping, declaration, mappings_of

# Attributes of nodes that only we read: the mark, the names of those that are None, the lengths of repeated inputs.
OURS, NONES, COUNTS = "_opwright", "_none", "_counts"


class FlexNode(NamedTuple):
    """code: the custom operator's name. options: its bytes. inputs: values, arrays that are constants, or None."""

    code: str
    options: bytes
    inputs: list[Any]


def to_flex(node: Node) -> FlexNode:
    """The Flex operator of a node of the catalogue.

    raises InvalidArgumentError where attributes have no place in a NodeDef
    """
    if node.op.name not in registry.list_names() or registry.get(node.op.name) is not node.op:
        raise InvalidArgumentError(what=f"{node.op.name} is not the catalogue's operator of this name")
    for form in mappings_of(node.op.name):
        theirs = _mapped(node, form)
        if theirs is not None:
            return theirs
    attrs = {name: _plain(name, value) for name, value in node.attrs.items() if value is not None}
    nones = [name for name, value in node.attrs.items() if value is None]
    counts = [len(operand) for operand in node.inputs if isinstance(operand, tuple)]
    attrs |= {OURS: True, **({NONES: nones} if nones else {}), **({COUNTS: counts} if counts else {})}
    return _flex_node(node.op.name, attrs, flat(node.inputs))


def _flex_node(op: str, attrs: dict[str, Any], inputs: list[Any]) -> FlexNode:
    definition = nodedef.NodeDef(op, inputs=[""] * len(inputs), attrs=attrs)
    return FlexNode(f"Flex{op}", encode_strings([op.encode(), nodedef.encode(definition)]), inputs)


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, (bool, int, float, str, bytes, DType, TensorShape)):
        return value
    if isinstance(value, tuple) and all(isinstance(v, type(value[0])) and _plain(name, v) is v for v in value):
        return list(value)
    raise InvalidArgumentError(what=f"attribute {name!r} has no place in a Flex operator", found=repr(value)[:80])


class _NotExpressible(Exception):
    """TensorFlow's operator does not say this."""


def _mapped(node: Node, form: OpMapping) -> FlexNode | None:
    declared = declaration(form.op)
    if declared is None or (form.only is not None and not form.only(node)):
        return None
    try:
        operands = _operands(node, form)
        if len(operands) != len(declared.inputs):
            return None
        known = _types(declared, operands, node)
        attrs = _attributes(node, form, declared, known)
    except (_NotExpressible, TypeError, ValueError):
        return None
    return _flex_node(form.op, attrs, flat(operands))


def _operands(node: Node, form: OpMapping) -> list[Any]:
    places = range(len(node.inputs)) if form.inputs is None else form.inputs
    return [
        _const(node, place) if isinstance(place, ConstantInput) else _present(node.inputs[place]) for place in places
    ]


def _present(operand: Any) -> Any:
    if operand is None:
        raise _NotExpressible
    return operand


def _const(node: Node, const: ConstantInput) -> np.ndarray:
    value = node.attrs[const.attr]
    if value is None or (value == () and const.absent):
        rank = next(node.operands).spec.shape.rank
        if not const.absent or rank is None:
            raise _NotExpressible
        value = range(rank) if const.absent == "all" else range(rank)[::-1]
    array = np.asarray(value, const.dtype.np)
    return array.reshape(-1) if const.vector else array.reshape(())


def _dtype(x: Any) -> DType:
    return x.dtype if isinstance(x, Value) else of_numpy(x.dtype)


def _types(declared: OpDeclaration, operands: Sequence[Any], node: Node) -> dict[str, Any]:
    """The attributes that follow from the operands and results: types and numbers."""
    known: dict[str, Any] = {}
    results = node.op.pack_all(node.outputs)
    if len(results) != len(declared.outputs):
        raise _NotExpressible
    for said, side in ((declared.inputs, operands), (declared.outputs, results)):
        for argument, operand in zip(said, side):
            count, star, kind = argument.rpartition("*")
            items = list(operand) if isinstance(operand, (list, tuple)) else [operand]
            if star and count:
                known.setdefault(count, len(items))
            if star and not count:
                known.setdefault(kind, nodedef.Typed("type", [_dtype(x) for x in items]))
            elif kind in declared.attrs and items:
                if known.setdefault(kind, _dtype(items[0])) is not _dtype(items[0]):
                    raise _NotExpressible
            elif items and _dtype(items[0]).name != kind:
                raise _NotExpressible
    return known


def _attributes(node: Node, form: OpMapping, declared: OpDeclaration, known: Mapping[str, Any]) -> dict[str, Any]:
    ours = dict(node.attrs)
    for name, value in form.needs.items():
        if ours.pop(name, value) != value:
            raise _NotExpressible
    for name in (*form.drops, *(place.attr for place in form.inputs or () if isinstance(place, ConstantInput))):
        ours.pop(name, None)
    if not any(v.dtype.is_complex for v in node.operands):
        for name, other in form.alike.items():
            ours[other] = bool(ours[other]) != bool(ours.pop(name))
    attrs: dict[str, Any] = {}
    for name, attribute in declared.attrs.items():
        mine = form.attrs.get(name, name)
        if name in known:
            if mine in ours and ours.pop(mine) != known[name]:
                raise _NotExpressible
            attrs[name] = known[name]
        elif mine in ours:
            attrs[name] = _of_kind(attribute.kind, ours.pop(mine))
        elif not attribute.has_default:
            raise _NotExpressible
    defaults = node.op.attr_defs
    if any(value != defaults[name].default for name, value in ours.items()):
        raise _NotExpressible  # an attribute that TensorFlow's operator lacks has another value than usual
    return attrs


def _of_kind(kind: str, value: Any) -> Any:
    """A value as an attribute of that kind. Raises _No where it is none."""
    if kind.startswith("list("):
        items = list(value) if isinstance(value, (tuple, list)) else [value]
        return nodedef.Typed(kind[5:-1], [_of_kind(kind[5:-1], item) for item in items])
    wanted: dict[str, Any] = {
        "int": int,
        "float": (int, float),
        "bool": bool,
        "string": (str, bytes),
        "type": DType,
        "shape": TensorShape,
    }
    if kind not in wanted or not isinstance(value, wanted[kind]) or (kind != "bool" and isinstance(value, bool)):
        raise _NotExpressible
    return float(value) if kind == "float" else value
