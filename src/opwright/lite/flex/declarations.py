"""TensorFlow's declarations of operators: as data (signatures.json), and as they differ from the catalogue's.

Lives here: `Signature`, `signature`; `Form`, the table of differences (other names, axes as inputs), `forms_of` (by our
name), `form_for` (by TensorFlow's).
Not here: nodes (conversion.py), running them (registration.py).

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
    """kind: "type", "int", "list(int)" ... has_default: whether it may be left out. default: then its value."""

    kind: str
    has_default: bool
    default: Any


class Signature(NamedTuple):
    """inputs, outputs: for each argument its type attribute, or its type; "N*T" for N of one type, "*T" for a list of
    types. attrs: by name."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attrs: dict[str, Attribute]


@functools.cache
def _facts() -> dict[str, Any]:
    return json.loads(resources.files(__package__).joinpath("signatures.json").read_text("utf-8"))


@functools.cache
def signature(op: str) -> Signature | None:
    """The declaration of an operator; None for one that no Flex operator here carries."""
    row = _facts().get(op)
    if row is None:
        return None
    return Signature(tuple(row["in"]), tuple(row["out"]), {k: Attribute(*v) for k, v in row["attrs"].items()})


class Const(NamedTuple):
    """An attribute of ours that is an input of theirs: a scalar, or a vector. absent: what stands for None, if
    anything may: "all" axes, or these "reversed"."""

    attr: str
    dtype: DType = int32
    vector: bool = False
    absent: str = ""


class Form(NamedTuple):
    """op: their name. inputs: for each of their inputs the number of ours, or a Const; None for ours as they are.
    attrs: their attributes that are ours under another name. needs: values that ours must have. drops: ours that have
    no meaning there. alike: attributes that mean the same as others of ours where numbers are real. only: which nodes
    theirs takes."""

    op: str
    inputs: tuple[int | Const, ...] | None = None
    attrs: dict[str, str] = {}
    needs: dict[str, object] = {}
    drops: tuple[str, ...] = ()
    alike: dict[str, str] = {}
    only: Callable[[Node], bool] | None = None


def _matrices(node: Node) -> bool:
    return all(v.spec.shape.rank == 2 for v in node.operands)


def _long_enough(node: Node) -> bool:
    """Whether the input has the lengths of a real transform: theirs adds no zeros."""
    x, lengths = node.operands
    dims = x.spec.shape.dims
    if dims is None or lengths.constant is None:
        return False
    wanted = lengths.constant.reshape(-1).tolist()
    return all(d is not None and d >= n for d, n in zip(dims[-len(wanted) :], wanted))


_AXES = Const("axis", int32, True, "all")
_AXIS = Const("axis")
_REDUCE = {"keep_dims": "keepdims"}
_DRAWN = ("stream",)
_LAST: dict[str, object] = {"axis": -1}

_REALS = {"transpose_a": "adjoint_a", "transpose_b": "adjoint_b"}

_ROWS: dict[str, Form | tuple[Form, ...]] = {
    **{
        name: Form(name, (0, _AXES), _REDUCE)
        for name in ("All", "Any", "EuclideanNorm", "Max", "Mean", "Min", "Prod", "Sum")
    },
    **{name: Form(name, (0, _AXIS), {}) for name in ("ArgMax", "ArgMin", "Cumprod", "Cumsum", "CumulativeLogsumexp")},
    **{
        name: Form(name, None, drops=_DRAWN)
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
        name: Form(name, None, needs={"explicit_paddings": ()})
        for name in ("Conv3D", "MaxPool3D", "MaxPool3DGrad", "MaxPool3DGradGrad", "MaxPoolGradGrad")
    },
    "Add": Form("AddV2"),
    "AdjustContrast": Form("AdjustContrastv2"),
    "Cast": Form("Cast", None, {"DstT": "dtype"}),
    "Concat": Form("ConcatV2", (0, _AXIS)),
    "ExpandDims": Form("ExpandDims", (0, _AXIS)),
    "ExtractImagePatches": Form("ExtractImagePatches", None, {"ksizes": "sizes"}),
    "Gather": Form("GatherV2", (0, 1, _AXIS)),
    "GatherNd": Form("GatherNd", None, needs={"batch_dims": 0}),
    "InTopK": Form("InTopKV2", (1, 0, 2)),
    "LinSpace": Form("LinSpace", (0, 1, Const("num"))),
    "LogSoftmax": Form("LogSoftmax", None, needs=_LAST),
    "Softmax": Form("Softmax", None, needs=_LAST),
    "MatrixDiag": Form("MatrixDiagV3", (0, Const("k", int32, True), Const("num_rows"), Const("num_cols"), 1)),
    "MatrixDiagPart": Form("MatrixDiagPartV3", (0, Const("k", int32, True), 1)),
    "MatrixSetDiag": Form("MatrixSetDiagV3", (0, 1, Const("k", int32, True))),
    "MatMul": (
        Form("MatMul", only=_matrices),
        Form("BatchMatMulV2", None, {"adj_x": "adjoint_a", "adj_y": "adjoint_b"}, alike=_REALS),
    ),
    "NonMaxSuppression": Form("NonMaxSuppressionV5"),
    "Pad": (Form("PadV2"), Form("Pad", (0, 1))),
    "RFFT": Form("RFFT", only=_long_enough),
    "RFFT2D": Form("RFFT2D", only=_long_enough),
    "RFFT3D": Form("RFFT3D", only=_long_enough),
    "ReduceJoin": Form("ReduceJoin", (0, _AXES), {"keep_dims": "keep_dims"}),
    "Reverse": Form("ReverseV2", (0, Const("axis", int32, True))),
    "ReverseSequence": Form("ReverseSequence", None, {"seq_dim": "seq_axis", "batch_dim": "batch_axis"}),
    "Roll": Form("Roll", (0, 1, Const("axis", int32, True))),
    "Select": Form("SelectV2"),
    "SelfAdjointEig": Form("SelfAdjointEigV2"),
    "Split": Form("Split", (_AXIS, 0)),
    "SplitV": Form("SplitV", (0, 1, _AXIS)),
    "Squeeze": Form("Squeeze", None, {"squeeze_dims": "axis"}),
    "TopK": Form("TopKV2"),
    "Transpose": Form("Transpose", (0, Const("perm", int32, True, "reversed"))),
}
FORMS = {name: (forms,) if isinstance(forms, Form) else forms for name, forms in _ROWS.items()}


@once
def forms_of(name: str) -> tuple[Form, ...]:
    """The forms of an operator of the catalogue, to be tried in order; none where TensorFlow has no such operator."""
    if name not in registry.list_names():
        return ()
    return tuple(form for form in FORMS.get(name, (Form(name),)) if signature(form.op) is not None)


@once
def form_for(op: str) -> tuple[str, Form] | None:
    """The catalogue's name and form for an operator of TensorFlow's; None where the catalogue has none."""
    ours = _theirs().get(op, op)
    return next(((ours, form) for form in forms_of(ours) if form.op == op), None)


@functools.cache
def _theirs() -> dict[str, str]:
    return {form.op: name for name in FORMS for form in forms_of(name)}
