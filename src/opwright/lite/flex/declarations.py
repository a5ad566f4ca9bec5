"""Declarations of TensorFlow's operators (signatures.json), and their mapping to the catalogue's operators.

Lives here: `OpDeclaration`, `declaration`; `OpMapping`, the table of differences (other names, axes as inputs);
`mappings_of`, by the catalogue's name, and `mapping_for`, by TensorFlow's.
Not here: nodes (conversion.py), kernels (registration.py).

Most operators have TensorFlow's name, inputs and attributes, and need no row.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from importlib import resources
from typing import Any, NamedTuple

from ...core.dtypes import DType, int32
from ...core.forks import once
from ...graph import Node
from ...ops import registry


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
    result: dict[str, Any] = json.loads(resources.files(__package__).joinpath("signatures.json").read_text("utf-8"))
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
