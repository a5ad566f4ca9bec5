"""Element-wise builtin operators as rows of two tables.

Lives here: `define`, which makes an operator of a row.
Not here: the rows of one operand (unary.py) and of two (arithmetic.py); operators with a class of their own.

A row states what the dialect alone knows: the formula in words, the types, the rule for quantised tensors. The
computation is the function of scalar/table.py that names the builtin operator; a row that passes its own says why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.dtypes import DType
from ...core.specs import TensorSpec
from ...ops.slots import Input, Output
from ...scalar.table import OF_BUILTIN
from ..format import schema
from .definition import LiteOperator, facts, lite_operator
from .fusing import fuse
from .shapes import broadcast, fixed


def computation(name: str) -> Callable[..., Any]:
    """Return the function of the scalar table that a builtin operator is."""
    row = OF_BUILTIN[name]
    return row.ufunc or row.of_arrays


def define(
    module: str,
    name: str,
    formula: str,
    dtypes: Sequence[DType],
    compute: Callable[..., Any] | None = None,
    *,
    operands: int = 1,
    out: DType | None = None,
    check: Callable[[Any], None] | None = None,
    **settings: Any,
) -> LiteOperator:
    """Define an element-wise operator of a module; two operands broadcast.

    compute: a NumPy ufunc or a function of arrays; by default the function of the scalar table. out: the dtype of the
    result where it is not that of the operands. check: of the elements of the second operand, raises
    InvalidArgumentError; called in prepare where they are constants of the file, otherwise by `compute`. settings: more
    of the class body, such as quantized="tables.exp". An operator whose options have a fused activation applies it.
    """
    of_arrays = compute or computation(name)
    ufunc = of_arrays if isinstance(of_arrays, np.ufunc) else None
    options = facts(name)["options"]
    fused = options is not None and any(f.name == FUSED_ACTIVATION for f in schema.table(options).fields)

    def infer(op: Any) -> TensorSpec:
        known = fixed(op.y) if check is not None else None
        if check is not None and known is not None:
            check(known)
        return TensorSpec(broadcast(op.x, op.y), out or op.x.spec.dtype)

    def computed(op: Any, *arrays: Any) -> Any:
        return fuse(op, of_arrays(*arrays)) if fused else of_arrays(*arrays)

    def writes(op: Any, dtype: DType) -> np.ufunc | None:
        return ufunc if op.fused_activation_function == "NONE" else None

    names = ("x", "y")[:operands]
    result = "y" if operands == 1 else "z"
    body = {
        "__doc__": f"{name}, {_manner(operands, fused)}.\n\n.. math:: {result} = "
        + (f"act({formula})" if fused else formula),
        "__module__": module,
        "x": Input(tuple(dtypes)),
        **({"y": Input(tuple(dtypes), like="x")} if operands == 2 else {}),
        result: Output(like=None if out else "x", dtype=out),
        "elementwise": True,
        "inplace": {result: names if operands == 2 else "x"},
        "compute": ufunc if ufunc is not None and not fused else computed,
        **({"infer": infer} if operands == 2 else {}),
        **({"writes": writes} if fused and ufunc is not None else {}),
        **settings,
    }
    return lite_operator(name)(type(name, (), body))


FUSED_ACTIVATION = "fused_activation_function"
"""The option of operators that apply an activation to their result."""


def _manner(operands: int, fused: bool) -> str:
    return "element by element" if operands == 1 else "broadcast, with a fused activation" if fused else "broadcast"
