"""Conversion of a node of the catalogue to a Flex operator, with TensorFlow's NodeDef if it has the operator, else
ours.

Lives here: `to_flex`; declarations of TensorFlow's operators (signatures.json): `OpDeclaration`, `declaration`; their
mapping to the catalogue's: `OpMapping`, the table of differences (other names, axes as inputs), `mappings_of`, by the
catalogue's name, and `mapping_for`, by TensorFlow's.
Not here: when it is called (lite/convert/passes.py), the inverse (registration.py).

Most operators have TensorFlow's name, inputs and attributes, and need no row. A node that TensorFlow declares in the
same way runs in its Flex delegate, too. Any other keeps the catalogue's name and attributes and has the attribute
`_opwright`, which TensorFlow's parser accepts; TensorFlow then lacks the operator.
"""

from __future__ import annotations

import functools
import json
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.dtypes import DType, int32, of_numpy
from ...core.errors import InvalidArgumentError
from ...core.forks import once
from ...core.node_protos import Typed
from ...core.shapes import TensorShape
from ...graph import Node, Value
from ...graph.ir import flat
from ...ops import registry
from ..format.flexbuffers import encode_strings
from . import nodedef


class Attribute(NamedTuple):
    """A declared attribute. kind: "type", "int", "list(int)" ... has_default: whether it may be omitted. default: its
    value then."""

    kind: str
    has_default: bool
    default: Any


class OpDeclaration(NamedTuple):
    """A declared operator.

    inputs, outputs: for each argument its type attribute, or its type; "N*T" for N of one type, "*T" for a list of
    types. attrs: by name.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attrs: dict[str, Attribute]


@functools.cache
def _facts() -> dict[str, Any]:
    result: dict[str, Any] = json.loads(pkgutil.get_data(__name__, "signatures.json") or b"")
    return result


@functools.cache
def declaration(op: str) -> OpDeclaration | None:
    """Return the declaration of an operator; None for one that no Flex operator represents here."""
    row = _facts().get(op)
    if row is None:
        return None
    return OpDeclaration(tuple(row["in"]), tuple(row["out"]), {k: Attribute(*v) for k, v in row["attrs"].items()})


class ConstantInput(NamedTuple):
    """An attribute of ours that is an input of TensorFlow's operator: a scalar, or a vector.

    absent: the replacement for None, if allowed: "all" axes, or these "reversed".
    """

    attr: str
    dtype: DType = int32
    vector: bool = False
    absent: str = ""


class OpMapping(NamedTuple):
    """Mapping of a TensorFlow operator to the catalogue's.

    op: TensorFlow's name. inputs: for each of its inputs the index of ours, or a ConstantInput; None if they are the
    same. attrs: its attributes that ours have under another name. needs: required values of ours. drops: ours without
    meaning there. alike: attributes that mean the same as others of ours for real numbers. only: predicate of the nodes
    that it can express.
    """

    op: str
    inputs: tuple[int | ConstantInput, ...] | None = None
    attrs: dict[str, str] = {}
    needs: dict[str, object] = {}
    drops: tuple[str, ...] = ()
    alike: dict[str, str] = {}
    only: Callable[[Node], bool] | None = None


def _matrices(node: Node) -> bool:
    return all(v.spec.shape.rank == 2 for v in node.operands)


def _long_enough(node: Node) -> bool:
    """Return whether the input has the lengths of a real transform: TensorFlow's operator does not pad."""
    x, lengths = node.operands
    dims = x.spec.shape.dims
    if dims is None or lengths.constant is None:
        return False
    sizes = lengths.constant.reshape(-1).tolist()
    return all(d is not None and d >= n for d, n in zip(dims[-len(sizes) :], sizes))


_AXES = ConstantInput("axis", int32, True, "all")
_AXIS = ConstantInput("axis")
_REDUCE = {"keep_dims": "keepdims"}
_DRAWN = ("stream",)
_LAST: dict[str, object] = {"axis": -1}

_REALS = {"transpose_a": "adjoint_a", "transpose_b": "adjoint_b"}

_ROWS: dict[str, OpMapping | tuple[OpMapping, ...]] = {
    **{
        name: OpMapping(name, (0, _AXES), _REDUCE)
        for name in ("All", "Any", "EuclideanNorm", "Max", "Mean", "Min", "Prod", "Sum")
    },
    **{
        name: OpMapping(name, (0, _AXIS), {})
        for name in ("ArgMax", "ArgMin", "Cumprod", "Cumsum", "CumulativeLogsumexp")
    },
    **{
        name: OpMapping(name, None, drops=_DRAWN)
        for name in (
            "Multinomial",
            "RandomGamma",
            "RandomPoisson",
            "RandomShuffle",
            "RandomStandardNormal",
            "RandomUniform",
            "RandomUniformInt",
            "TruncatedNormal",
        )
    },
    **{
        name: OpMapping(name, None, needs={"explicit_paddings": ()})
        for name in ("Conv3D", "MaxPool3D", "MaxPool3DGrad", "MaxPool3DGradGrad", "MaxPoolGradGrad")
    },
    "Add": OpMapping("AddV2"),
    "AdjustContrast": OpMapping("AdjustContrastv2"),
    "Cast": OpMapping("Cast", None, {"DstT": "dtype"}),
    "Concat": OpMapping("ConcatV2", (0, _AXIS)),
    "ExpandDims": OpMapping("ExpandDims", (0, _AXIS)),
    "ExtractImagePatches": OpMapping("ExtractImagePatches", None, {"ksizes": "sizes"}),
    "Gather": OpMapping("GatherV2", (0, 1, _AXIS)),
    "GatherNd": OpMapping("GatherNd", None, needs={"batch_dims": 0}),
    "InTopK": OpMapping("InTopKV2", (1, 0, 2)),
    "LinSpace": OpMapping("LinSpace", (0, 1, ConstantInput("num"))),
    "LogSoftmax": OpMapping("LogSoftmax", None, needs=_LAST),
    "Softmax": OpMapping("Softmax", None, needs=_LAST),
    "MatrixDiag": OpMapping(
        "MatrixDiagV3", (0, ConstantInput("k", int32, True), ConstantInput("num_rows"), ConstantInput("num_cols"), 1)
    ),
    "MatrixDiagPart": OpMapping("MatrixDiagPartV3", (0, ConstantInput("k", int32, True), 1)),
    "MatrixSetDiag": OpMapping("MatrixSetDiagV3", (0, 1, ConstantInput("k", int32, True))),
    "MatMul": (
        OpMapping("MatMul", only=_matrices),
        OpMapping("BatchMatMulV2", None, {"adj_x": "adjoint_a", "adj_y": "adjoint_b"}, alike=_REALS),
    ),
    "NonMaxSuppression": OpMapping("NonMaxSuppressionV5"),
    "Pad": (OpMapping("PadV2"), OpMapping("Pad", (0, 1))),
    "RFFT": OpMapping("RFFT", only=_long_enough),
    "RFFT2D": OpMapping("RFFT2D", only=_long_enough),
    "RFFT3D": OpMapping("RFFT3D", only=_long_enough),
    "ReduceJoin": OpMapping("ReduceJoin", (0, _AXES), {"keep_dims": "keep_dims"}),
    "Reverse": OpMapping("ReverseV2", (0, ConstantInput("axis", int32, True))),
    "ReverseSequence": OpMapping("ReverseSequence", None, {"seq_dim": "seq_axis", "batch_dim": "batch_axis"}),
    "Roll": OpMapping("Roll", (0, 1, ConstantInput("axis", int32, True))),
    "Select": OpMapping("SelectV2"),
    "SelfAdjointEig": OpMapping("SelfAdjointEigV2"),
    "Split": OpMapping("Split", (_AXIS, 0)),
    "SplitV": OpMapping("SplitV", (0, 1, _AXIS)),
    "Squeeze": OpMapping("Squeeze", None, {"squeeze_dims": "axis"}),
    "TopK": OpMapping("TopKV2"),
    "Transpose": OpMapping("Transpose", (0, ConstantInput("perm", int32, True, "reversed"))),
}
MAPPINGS = {name: (forms,) if isinstance(forms, OpMapping) else forms for name, forms in _ROWS.items()}


@once
def mappings_of(name: str) -> tuple[OpMapping, ...]:
    """Return the mappings of a catalogue operator, in order of preference; none if TensorFlow lacks it."""
    if name not in registry.list_names():
        return ()
    return tuple(form for form in MAPPINGS.get(name, (OpMapping(name),)) if declaration(form.op) is not None)


@once
def mapping_for(op: str) -> tuple[str, OpMapping] | None:
    """Return the catalogue's name and the mapping of a TensorFlow operator; None if the catalogue lacks it."""
    ours = _theirs().get(op, op)
    return next(((ours, form) for form in mappings_of(ours) if form.op == op), None)


@functools.cache
def _theirs() -> dict[str, str]:
    return {form.op: name for name in MAPPINGS for form in mappings_of(name)}


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
    definition = nodedef.FlexNodeDef(op, inputs=[""] * len(inputs), attrs=attrs)
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
                types.setdefault(kind, Typed("type", [_dtype(x) for x in items]))
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
        return Typed(kind[5:-1], [_of_kind(kind[5:-1], item) for item in items])
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
