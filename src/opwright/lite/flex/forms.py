"""How TensorFlow declares the catalogue's operators where it does so otherwise: other names, axes as inputs.

Lives here: `Form`, the table of those that differ, `form_of` (by our name), `form_for` (by theirs).
Not here: TensorFlow's declarations (signatures.py), nodes (carrying.py), running them (running.py).

Most operators bear TensorFlow's name, take its inputs and have its attributes; they need no row.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from ...core.dtypes import DType, int32, int64
from ...ops import registry
from .signatures import signature


class Const(NamedTuple):
    """An attribute of ours that is an input of theirs: a scalar, or a vector. absent: what stands for None, if
    anything may: "all" is every axis."""

    attr: str
    dtype: DType = int32
    vector: bool = False
    absent: str = ""


class Form(NamedTuple):
    """op: their name. inputs: for each of their inputs the number of ours, or a Const; None for ours as they are.
    attrs: their attributes that are ours under another name. needs: values that ours must have. drops: ours that have
    no meaning there."""

    op: str
    inputs: tuple[int | Const, ...] | None = None
    attrs: dict[str, str] = {}  # noqa: RUF012  never changed
    needs: dict[str, object] = {}  # noqa: RUF012
    drops: tuple[str, ...] = ()


_AXES = Const("axis", int32, True, "all")
_AXIS = Const("axis")
_REDUCE = {"keep_dims": "keepdims"}
_DRAWN = ("stream",)
_LAST: dict[str, object] = {"axis": -1}

FORMS: dict[str, Form] = {
    **{name: Form(name, (0, _AXES), _REDUCE)
       for name in ("All", "Any", "EuclideanNorm", "Max", "Mean", "Min", "Prod", "Sum")},
    **{name: Form(name, (0, _AXIS), {}) for name in ("ArgMax", "ArgMin", "Cumprod", "Cumsum", "CumulativeLogsumexp")},
    **{name: Form(name, None, drops=_DRAWN)
       for name in ("Multinomial", "RandomGamma", "RandomPoisson", "RandomShuffle", "RandomStandardNormal",
                    "RandomUniform", "RandomUniformInt", "TruncatedNormal")},
    **{name: Form(name, None, needs={"explicit_paddings": ()}) for name in
       ("Conv3D", "MaxPool3D", "MaxPool3DGrad", "MaxPool3DGradGrad", "MaxPoolGradGrad")},
    "Add": Form("AddV2"), "AdjustContrast": Form("AdjustContrastv2"), "Cast": Form("Cast", None, {"DstT": "dtype"}),
    "Concat": Form("ConcatV2", (0, _AXIS)), "ExpandDims": Form("ExpandDims", (0, _AXIS)),
    "ExtractImagePatches": Form("ExtractImagePatches", None, {"ksizes": "sizes"}),
    "Gather": Form("GatherV2", (0, 1, _AXIS)), "GatherNd": Form("GatherNd", None, needs={"batch_dims": 0}),
    "InTopK": Form("InTopKV2", (1, 0, 2)), "LinSpace": Form("LinSpace", (0, 1, Const("num"))),
    "LogSoftmax": Form("LogSoftmax", None, needs=_LAST), "Softmax": Form("Softmax", None, needs=_LAST),
    "MatrixDiag": Form("MatrixDiagV3", (0, Const("k", int32, True), Const("num_rows"), Const("num_cols"), 1)),
    "MatrixDiagPart": Form("MatrixDiagPartV3", (0, Const("k", int32, True), 1)),
    "MatrixSetDiag": Form("MatrixSetDiagV3", (0, 1, Const("k", int32, True))),
    "NonMaxSuppression": Form("NonMaxSuppressionV5"), "Pad": Form("PadV2"),
    "ReduceJoin": Form("ReduceJoin", (0, _AXES), {"keep_dims": "keep_dims"}),
    "Reverse": Form("ReverseV2", (0, Const("axis", int32, True))),
    "ReverseSequence": Form("ReverseSequence", None, {"seq_dim": "seq_axis", "batch_dim": "batch_axis"}),
    "Roll": Form("Roll", (0, 1, Const("axis", int32, True))),
    "Select": Form("SelectV2"), "SelfAdjointEig": Form("SelfAdjointEigV2"),
    "Split": Form("Split", (_AXIS, 0)), "SplitV": Form("SplitV", (0, 1, _AXIS)),
    "Squeeze": Form("Squeeze", None, {"squeeze_dims": "axis"}), "TopK": Form("TopKV2"),
    "Transpose": Form("Transpose", (0, Const("perm", int32, True))),
    "UniqueWithCounts": Form("UniqueWithCounts"), "Where": Form("Where"),
    "StatelessRandomNormal": Form("StatelessRandomNormal"),
}  # fmt: skip


@functools.cache
def form_of(name: str) -> Form | None:
    """The form of an operator of the catalogue; None where TensorFlow has none that means the same."""
    form = FORMS.get(name, Form(name))
    found = signature(form.op)
    if found is None or name not in registry.list_names():
        return None
    return form


@functools.cache
def form_for(op: str) -> tuple[str, Form] | None:
    """The catalogue's name and form for an operator of TensorFlow's; None where the catalogue has none."""
    ours = _theirs().get(op, op)
    form = form_of(ours)
    return None if form is None or form.op != op else (ours, form)


@functools.cache
def _theirs() -> dict[str, str]:
    return {form.op: name for name, form in FORMS.items()}
