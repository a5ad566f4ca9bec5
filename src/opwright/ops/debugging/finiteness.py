"""Detection of NaN and infinity.

Lives here: CheckNumerics, and the errors of the switch `check_numerics`.
Not here: the switch (eager/debugging.py), its checks (eager/execute.py, compiler/plan.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import DType, floating
from ...core.errors import InvalidArgumentError
from .. import dispatch
from ..attributes import Attr
from ..definition import operator
from ..public_functions import documented_by
from ..slots import Input, OperatorDefinition, Output

if TYPE_CHECKING:
    from .. import signatures
    from ..tensor import Tensor


@operator
class CheckNumerics(OperatorDefinition):
    """Return a tensor; raise an error unless all its elements are finite.

    .. math:: output = tensor

    message: prefix of the error message.
    raises InvalidArgumentError naming NaN, Inf or both
    """

    tensor = Input(floating)
    output = Output(like="tensor")
    message = Attr(str)
    inplace = {"output": "tensor"}
    effect = "write"  # its purpose is to raise: it is neither reordered nor dropped

    def compute(op, tensor: np.ndarray) -> np.ndarray:
        if not np.isfinite(tensor).all():
            kinds = [k for k, present in (("Inf", np.isinf(tensor).any()), ("NaN", np.isnan(tensor).any())) if present]
            raise InvalidArgumentError(what=f"{op.message} : Tensor had {' and '.join(kinds)} values")
        return tensor

    def gradient(op, doutput: Any) -> Tensor:
        return CheckNumerics(
            doutput, message=f"Not a number (NaN) or infinity (Inf) values detected in gradient. {op.message}"
        )


check_numerics: signatures.CheckNumerics = CheckNumerics.as_function("check_numerics")


@documented_by(CheckNumerics)
def assert_all_finite(x: Any, message: str, name: str | None = None) -> Tensor:
    """Return the tensor; raise an error if an element is NaN or infinite."""
    return check_numerics(dispatch.to_tensor(x), message, name=name)


# Operators that only move values: their nonfinite outputs stem from nonfinite inputs.
MOVERS = frozenset(
    {
        "BroadcastTo",
        "Concat",
        "Const",
        "ExpandDims",
        "Fill",
        "Gather",
        "GatherNd",
        "Identity",
        "Pack",
        "Permute",
        "Reshape",
        "Reverse",
        "Select",
        "Slice",
        "Split",
        "Squeeze",
        "Stack",
        "StopGradient",
        "StridedSlice",
        "Tile",
        "Transpose",
        "Unpack",
        "Unstack",
        "ReadVariable",
    }
)


def _kinds(array: np.ndarray) -> list[tuple[str, int]]:
    counts = (("-Inf", array == -np.inf), ("+Inf", array == np.inf), ("NaN", np.isnan(array)))
    return [(kind, int(np.count_nonzero(mask))) for kind, mask in counts if mask.any()]


def wrong_number(
    op: str,
    index: int,
    outputs: Sequence[Any],
    dtypes: Sequence[DType],
    inputs: Sequence[str],
    name: str | None,
    at: str | None,
    graph: str | None = None,
) -> InvalidArgumentError | None:
    """Return the error for a NaN or infinity in output `index` of a call, or None.

    outputs, dtypes: of all outputs. inputs: a description of each. at: the user's line. graph: of the node, if any.
    """
    dtype = dtypes[index]
    if not dtype.is_floating and not dtype.is_complex:
        return None
    array = np.asarray(outputs[index])
    if dtype.is_complex:
        array = np.stack([array.real, array.imag])
    wide = array.astype(np.float64)
    if np.isfinite(wide).all():
        return None
    kinds = _kinds(wide)
    kind = f'graph op "{op}"' if graph is not None else f'eagerly-executing op "{op}"'
    lines = [
        "NaN or Inf in the output",
        "",
        f"!!! Detected Infinity or NaN in output {index} of {kind} (# of outputs: {len(outputs)}) !!!",
        f"  dtype: {dtype!r}",
        f"  shape: {tuple(np.shape(outputs[index]))}",
        *(f"  # of {k} elements: {n}" for k, n in kinds),
        "",
    ]
    if len(inputs) == 1:
        lines.append(f"  Input tensor: {inputs[0]}")
    else:
        lines += [f"  Input tensors ({len(inputs)}):", *(f"         {i}: {x}" for i, x in enumerate(inputs))]
    if graph is not None:
        lines.append(f'  Graph name: "{graph}"')
    lines.append(f" : Tensor had {' and '.join(k for k, _ in kinds)} values")
    return InvalidArgumentError(op=op, node=name, at=at, what="\n".join(lines))
