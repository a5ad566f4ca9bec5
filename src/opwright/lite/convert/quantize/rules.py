"""What each builtin operator asks of its quantised operands: one row per operator.

Lives here: the table, and its words.  Not here: how the rows are put together for a whole graph (plan.py).

An operator without a row stays float. A row's `results` says what ties the parameters of its outputs:

    FREE     none: each output has the range it was seen with
    SAME     to those of the first operand: the kernel moves elements, or picks among them
    JOIN     all operands and the output have the same: the kernel moves elements of several tensors into one
    NONE     outputs are not quantised: truth values, indices
    a fixed scale and zero point by type of activation, which the kernel demands

The rows follow the quantisation specification and what the kernels of the official run time accept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

FREE, SAME, JOIN, NONE = "free", "same", "join", "none"
ALL = (-1,)  # every operand
Fixed = Mapping[str, tuple[float, int]]


class Linear(NamedTuple):
    """Where an operator has its weights, their axis of output channels, and the bias."""

    weights: int
    axis: int
    bias: int
    needs_bias: bool = False  # the integer kernel refuses to do without


class Rule(NamedTuple):
    """operands: which inputs are activations. types: of activations with a kernel. unfused: the kernel takes no fused
    activation. any_form: the kernel does not look at the elements, so quantised or not is the same to it.
    sum: the output's scale must not be far below the inputs' (the kernel's fixed-point sum asks it). divisor: the
    operand that must be a constant no element of which becomes zero, as the kernel stops at one."""

    operands: tuple[int, ...] = (0,)
    results: str | Fixed = FREE
    types: tuple[str, ...] = ("int8", "int16")
    linear: Linear | None = None
    unfused: bool = False
    any_form: bool = False
    sum: bool = False
    divisor: int | None = None


INT8 = ("int8",)


def _rows(names: str, rule: Rule) -> dict[str, Rule]:
    return dict.fromkeys(names.split(), rule)


def _fixed(**by_type: tuple[float, int]) -> Rule:
    return Rule(results=by_type, types=tuple(by_type))


RULES: dict[str, Rule] = {
    "CONV_2D": Rule(linear=Linear(1, 0, 2, needs_bias=True)),
    "DEPTHWISE_CONV_2D": Rule(linear=Linear(1, 3, 2, needs_bias=True)),
    "FULLY_CONNECTED": Rule(linear=Linear(1, 0, 2)),
    "TRANSPOSE_CONV": Rule(operands=(2,), linear=Linear(1, 0, 3)),
    "BATCH_MATMUL": Rule(operands=(0, 1)),
    **_rows("ADD SUB", Rule(operands=(0, 1), sum=True)),
    "MUL": Rule(operands=(0, 1)),
    **_rows("SQUARED_DIFFERENCE PRELU", Rule(operands=(0, 1), types=INT8)),
    "DIV": Rule(operands=(0, 1), types=INT8, divisor=1),
    # fixed outputs
    "SOFTMAX": _fixed(int8=(1 / 256, -128), int16=(1 / 32768, 0)),
    "LOGISTIC": _fixed(int8=(1 / 256, -128), int16=(1 / 32768, 0)),
    "TANH": _fixed(int8=(1 / 128, 0), int16=(1 / 32768, 0)),
    "L2_NORMALIZATION": _fixed(int8=(1 / 128, 0)),
    "LOG_SOFTMAX": _fixed(int8=(16 / 256, 127)),
    # one operand, output of its own range
    **_rows("RELU RELU6 LEAKY_RELU ABS EXP LOG GELU RSQRT MEAN", Rule()),
    **_rows("RELU_N1_TO_1 HARD_SWISH SQRT SUM", Rule(types=INT8)),
    # elements moved or picked
    **_rows(
        "RESHAPE SQUEEZE EXPAND_DIMS TRANSPOSE SLICE STRIDED_SLICE PAD MIRROR_PAD TILE BROADCAST_TO REVERSE_V2 "
        "GATHER GATHER_ND SPACE_TO_BATCH_ND BATCH_TO_SPACE_ND AVERAGE_POOL_2D MAX_POOL_2D REDUCE_MAX REDUCE_MIN "
        "RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR UNPACK SPLIT_V",
        Rule(results=SAME),
    ),
    **_rows("SPACE_TO_DEPTH DEPTH_TO_SPACE TOPK_V2", Rule(results=SAME, types=INT8)),
    **_rows("SPLIT FILL", Rule(operands=(1,), results=SAME)),
    **_rows("CONCATENATION", Rule(operands=ALL, results=JOIN, unfused=True)),
    **_rows("PACK", Rule(operands=ALL, results=JOIN)),
    "DYNAMIC_UPDATE_SLICE": Rule(operands=(0, 1), results=JOIN, types=INT8),
    **_rows("MAXIMUM MINIMUM", Rule(operands=(0, 1), results=JOIN)),
    **_rows("SELECT SELECT_V2", Rule(operands=(1, 2), results=JOIN)),
    "ONE_HOT": Rule(operands=(2, 3), results=JOIN, types=INT8),
    "PADV2": Rule(operands=(0, 2), results=JOIN, types=INT8),
    # read, but not passed on
    **_rows("EQUAL NOT_EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL", Rule(operands=(0, 1), results=NONE, types=INT8)),
    **_rows("ARG_MAX ARG_MIN", Rule(results=NONE, types=INT8)),
    **_rows("SHAPE RANK", Rule(results=NONE, any_form=True)),
}
