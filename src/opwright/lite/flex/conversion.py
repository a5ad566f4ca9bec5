"""Conversion of a node of the catalogue to a Flex operator, with TensorFlow's NodeDef if it has the operator, else
ours.

Lives here: `to_flex`.
Not here: when it is called (lite/convert/passes.py), the inverse (registration.py).

A node that TensorFlow declares in the same way runs in its Flex delegate, too. Any other keeps the catalogue's name and
attributes and has the attribute `_opwright`, which TensorFlow's parser accepts; TensorFlow then lacks the operator.
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

# Attributes private to Opwright: the mark, names of attributes that are None, lengths of repeated inputs.
OURS, NONES, COUNTS = "_opwright", "_none", "_counts"


class FlexNode(NamedTuple):
    """A Flex operator. code: the custom operator's name. options: its bytes. inputs: values, constant arrays, or
    None."""

    code: str
    options: bytes
    inputs: list[Any]


def to_flex(node: Node) -> FlexNode:
    """Return the Flex operator of a node of the catalogue.

    raises InvalidArgumentError for attributes that a NodeDef cannot represent
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


def _plain(name: str, value: Any) -> object:
    if isinstance(value, (bool, int, float, str, bytes, DType, TensorShape)):
        return value
    if isinstance(value, tuple) and all(isinstance(v, type(value[0])) and _plain(name, v) is v for v in value):
        return list(value)
    raise InvalidArgumentError(what=f"attribute {name!r} has no place in a Flex operator", found=repr(value)[:80])


class _NotExpressible(Exception):
    """Raised if TensorFlow's operator cannot express the node."""


def _mapped(node: Node, form: OpMapping) -> FlexNode | None:
    declared = declaration(form.op)
    if declared is None or (form.only is not None and not form.only(node)):
        return None
    try:
        operands = _operands(node, form)
        if len(operands) != len(declared.inputs):
            return None
        inferred = _types(declared, operands, node)
        attrs = _attributes(node, form, declared, inferred)
    except (_NotExpressible, TypeError, ValueError):
        return None
    return _flex_node(form.op, attrs, flat(operands))


def _operands(node: Node, form: OpMapping) -> list[Any]:
    sources = range(len(node.inputs)) if form.inputs is None else form.inputs
    return [
        _const(node, source) if isinstance(source, ConstantInput) else _present(node.inputs[source])
        for source in sources
    ]


def _present(operand: Any) -> object:
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
    """Return the attributes that follow from operands and results: types and counts."""
    types: dict[str, Any] = {}
    results = node.op.pack_all(node.outputs)
    if len(results) != len(declared.outputs):
        raise _NotExpressible
    for declared_arguments, side in ((declared.inputs, operands), (declared.outputs, results)):
        for argument, operand in zip(declared_arguments, side):
            count, star, kind = argument.rpartition("*")
            items = list(operand) if isinstance(operand, (list, tuple)) else [operand]
            if star and count:
                types.setdefault(count, len(items))
            if star and not count:
                types.setdefault(kind, nodedef.Typed("type", [_dtype(x) for x in items]))
            elif kind in declared.attrs and items:
                if types.setdefault(kind, _dtype(items[0])) is not _dtype(items[0]):
                    raise _NotExpressible
            elif items and _dtype(items[0]).name != kind:
                raise _NotExpressible
    return types


def _attributes(node: Node, form: OpMapping, declared: OpDeclaration, inferred: Mapping[str, Any]) -> dict[str, Any]:
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
        if name in inferred:
            if mine in ours and ours.pop(mine) != inferred[name]:
                raise _NotExpressible
            attrs[name] = inferred[name]
        elif mine in ours:
            attrs[name] = _of_kind(attribute.kind, ours.pop(mine))
        elif not attribute.has_default:
            raise _NotExpressible
    defaults = node.op.attr_defs
    if any(value != defaults[name].default for name, value in ours.items()):
        raise _NotExpressible  # an attribute that TensorFlow's operator lacks differs from its default
    return attrs


def _of_kind(kind: str, value: Any) -> object:
    """Return a value as an attribute of that kind. Raises _NotExpressible if it is not."""
    if kind.startswith("list("):
        items = list(value) if isinstance(value, (tuple, list)) else [value]
        return nodedef.Typed(kind[5:-1], [_of_kind(kind[5:-1], item) for item in items])
    types: dict[str, Any] = {
        "int": int,
        "float": (int, float),
        "bool": bool,
        "string": (str, bytes),
        "type": DType,
        "shape": TensorShape,
    }
    if kind not in types or not isinstance(value, types[kind]) or (kind != "bool" and isinstance(value, bool)):
        raise _NotExpressible
    return float(value) if kind == "float" else value
