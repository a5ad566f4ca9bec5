"""Quantisation rules: the requirements of each operator on its quantised operands, a row an operator.

Lives here: the table and its vocabulary; `rules_of_users`, rows of users' operators whose classes compute on quantised
tensors.
Not here: applying the rows to a graph (plan.py), declarations in such classes (lite/ops/quantized/quantization.py).

An operator without a row stays float. A row's `results` ties the parameters of its outputs:

    FREE     to nothing: each output has its own measured range
    SAME     to the first operand: the kernel moves or selects its elements
    JOIN     to all operands, which share them: the kernel moves elements of several tensors into one
    NONE     outputs are not quantised: truth values, indices
    a fixed scale and zero point by type of activation, which the kernel demands

The rows follow the quantisation specification and the checks of official kernels. A user's operator takes integers if
its class has `quantized = "reals"` or a method of that name; else it stays float, between DEQUANTIZE and QUANTIZE, as
in the official converter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ...ops.definition import LiteOperator
from ...ops.module import ExternalOp, LiteModule, is_source
from ...registration import OperatorRegistration
from ...resolver import BuiltinOpResolver, with_customs

FREE, SAME, JOIN, NONE = "free", "same", "join", "none"
ALL = (-1,)  # every operand
Fixed = Mapping[str, tuple[float, int]]


class LinearOperands(NamedTuple):
    """Where an operator has its weights, their axis of output channels, and the bias."""

    weights: int
    axis: int
    bias: int
    needs_bias: bool = False  # the integer kernel refuses to do without


class QuantizationRule(NamedTuple):
    """operands: which inputs are activations. types: of activations with a kernel. unfused: the kernel takes no fused
    activation. any_form: the kernel does not look at the elements, so quantised or not is the same to it.
    sum: the output's scale must not be far below the inputs' (the kernel's fixed-point sum asks it). divisor: the
    operand that must be a constant no element of which becomes zero, as the kernel stops at one."""

    operands: tuple[int, ...] = (0,)
    results: str | Fixed = FREE
    types: tuple[str, ...] = ("int8", "int16")
    linear: LinearOperands | None = None
    unfused: bool = False
    any_form: bool = False
    sum: bool = False
    divisor: int | None = None


INT8 = ("int8",)
AVERAGING = ("AVERAGE_POOL_2D", "RESIZE_BILINEAR")  # of those with SAME results: they compute other numbers


def _rows(names: str, rule: QuantizationRule) -> dict[str, QuantizationRule]:
    return dict.fromkeys(names.split(), rule)


def _fixed(**by_type: tuple[float, int]) -> QuantizationRule:
    return QuantizationRule(results=by_type, types=tuple(by_type))


RULES: dict[str, QuantizationRule] = {
    "CONV_2D": QuantizationRule(linear=LinearOperands(1, 0, 2, needs_bias=True)),
    "DEPTHWISE_CONV_2D": QuantizationRule(linear=LinearOperands(1, 3, 2, needs_bias=True)),
    "FULLY_CONNECTED": QuantizationRule(linear=LinearOperands(1, 0, 2)),
    "TRANSPOSE_CONV": QuantizationRule(operands=(2,), linear=LinearOperands(1, 0, 3)),
    "BATCH_MATMUL": QuantizationRule(operands=(0, 1)),
    **_rows("ADD SUB", QuantizationRule(operands=(0, 1), sum=True)),
    "MUL": QuantizationRule(operands=(0, 1)),
    **_rows("SQUARED_DIFFERENCE PRELU", QuantizationRule(operands=(0, 1), types=INT8)),
    "DIV": QuantizationRule(operands=(0, 1), types=INT8, divisor=1),
    # fixed outputs
    "SOFTMAX": _fixed(int8=(1 / 256, -128), int16=(1 / 32768, 0)),
    "LOGISTIC": _fixed(int8=(1 / 256, -128), int16=(1 / 32768, 0)),
    "TANH": _fixed(int8=(1 / 128, 0), int16=(1 / 32768, 0)),
    "L2_NORMALIZATION": _fixed(int8=(1 / 128, 0)),
    "LOG_SOFTMAX": _fixed(int8=(16 / 256, 127)),
    # one operand, output of its own range
    **_rows("RELU RELU6 LEAKY_RELU ABS EXP LOG GELU RSQRT MEAN", QuantizationRule()),
    **_rows("RELU_N1_TO_1 HARD_SWISH SQRT SUM", QuantizationRule(types=INT8)),
    # elements moved or picked
    **_rows(
        "RESHAPE SQUEEZE EXPAND_DIMS TRANSPOSE SLICE STRIDED_SLICE PAD MIRROR_PAD TILE BROADCAST_TO REVERSE_V2 "
        "GATHER GATHER_ND SPACE_TO_BATCH_ND BATCH_TO_SPACE_ND AVERAGE_POOL_2D MAX_POOL_2D REDUCE_MAX REDUCE_MIN "
        "RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR UNPACK SPLIT_V",
        QuantizationRule(results=SAME),
    ),
    **_rows("SPACE_TO_DEPTH DEPTH_TO_SPACE TOPK_V2", QuantizationRule(results=SAME, types=INT8)),
    **_rows("SPLIT FILL", QuantizationRule(operands=(1,), results=SAME)),
    **_rows("CONCATENATION", QuantizationRule(operands=ALL, results=JOIN, unfused=True)),
    **_rows("PACK", QuantizationRule(operands=ALL, results=JOIN)),
    "DYNAMIC_UPDATE_SLICE": QuantizationRule(operands=(0, 1), results=JOIN, types=INT8),
    **_rows("MAXIMUM MINIMUM", QuantizationRule(operands=(0, 1), results=JOIN)),
    **_rows("SELECT SELECT_V2", QuantizationRule(operands=(1, 2), results=JOIN)),
    "ONE_HOT": QuantizationRule(operands=(2, 3), results=JOIN, types=INT8),
    "PADV2": QuantizationRule(operands=(0, 2), results=JOIN, types=INT8),
    # read, but not passed on
    **_rows(
        "EQUAL NOT_EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL",
        QuantizationRule(operands=(0, 1), results=NONE, types=INT8),
    ),
    **_rows("ARG_MAX ARG_MIN", QuantizationRule(results=NONE, types=INT8)),
    **_rows("SHAPE RANK", QuantizationRule(results=NONE, any_form=True)),
}


def rules_of_users(module: LiteModule, custom_ops: Any, op_resolver: Any) -> dict[str, QuantizationRule]:
    """Return the rule of each custom operator of the model that has one, by name.

    custom_ops, op_resolver: as for the Interpreter.
    """
    resolver = with_customs(op_resolver or BuiltinOpResolver(), custom_ops)
    rules = {}
    for graph in module.all_graphs:
        for node in graph.nodes:
            if isinstance(node.op, LiteOperator) or is_source(node):
                continue
            version = node.attrs["version"] if isinstance(node.op, ExternalOp) else node.op.version
            registration = resolver.find_custom(node.op.name, version)
            if isinstance(registration, OperatorRegistration) and registration.operator.says_quantized:
                said = registration.operator.quantized_rule
                if callable(said):
                    rules[node.op.name] = QuantizationRule(operands=ALL, types=INT8)
                elif said == "reals":
                    rules[node.op.name] = QuantizationRule(operands=ALL)
    return rules
