"""The borders of a function that stands for one fused operator where it is converted (`experimental_implements`).

Lives here: FusionInputs, FusionResults.
Not here: putting them around a call (tracing/inlining.py), their conversion
(lite/convert/custom_arguments.py).

    FusionInputs -> the function's own operators -> FusionResults

Both give what they are given, so a program with them computes what it would without. FusionResults reads the inputs,
too: so one node knows both borders, whatever is done to what lies between.
"""

from __future__ import annotations

from typing import Any

from ..core.dtypes import anything
from ..core.specs import TensorSpec
from .attributes import Attr
from .definition import operator
from .slots import Input, OperatorDefinition, Output
from .tensor import Tensor


@operator
class FusionInputs(OperatorDefinition[list[Tensor]]):
    """What a fused operator is given.

    .. math:: outputs_i = inputs_i
    """

    inputs = Input(anything, repeated=True, mixed=True)
    outputs = Output(repeated=True)
    implements = Attr(str, doc="the fused operator, as `function(experimental_implements=...)` was told")
    inplace = {"outputs": "inputs"}

    def infer(op) -> list[Any]:
        return [TensorSpec(x.spec.shape, x.spec.dtype) for x in op.inputs]

    def compute(op, inputs: Any) -> list[Any]:
        return list(inputs)

    def gradient(op, doutputs: Any) -> Any:
        return doutputs


@operator
class FusionResults(OperatorDefinition[list[Tensor]]):
    """What a fused operator gives.

    .. math:: outputs_i = results_i
    """

    results = Input(anything, repeated=True, mixed=True)
    inputs = Input(anything, repeated=True, mixed=True, doc="what the operator was given: read by converters alone")
    outputs = Output(repeated=True)
    implements = Attr(str, doc="the fused operator, as `function(experimental_implements=...)` was told")
    inplace = {"outputs": "results"}
    shape_only = ("inputs",)
    no_need_buffer = ("inputs",)

    def infer(op) -> list[Any]:
        return [TensorSpec(x.spec.shape, x.spec.dtype) for x in op.results]

    def compute(op, results: Any, inputs: Any) -> list[Any]:
        return list(results)

    def gradient(op, doutputs: Any) -> tuple[Any, list[None]]:
        return doutputs, [None] * len(op.inputs)
