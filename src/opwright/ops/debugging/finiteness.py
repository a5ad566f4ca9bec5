"""NaN and infinity found out where a program asks for it.

Lives here: CheckNumerics.  Not here: the switch that looks everywhere (eager/debugging.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import floating
from ...core.errors import InvalidArgumentError
from .. import dispatch
from ..attributes import Attr
from ..definition import Input, Output, operator


@operator
class CheckNumerics:
    """The tensor itself, if all its elements are finite numbers.

    .. math:: output = tensor

    message: what the error begins with.
    raises InvalidArgumentError saying whether there are NaN, Inf or both
    """

    tensor = Input(floating)
    output = Output(like="tensor")
    message = Attr(str)
    inplace = {"output": "tensor"}
    effect = "write"  # it may raise, which is what it is there for: it keeps its place and is never dropped

    def compute(op, tensor) -> Any:
        array = np.asarray(tensor, np.float64)
        if not np.isfinite(array).all():
            kinds = [k for k, found in (("Inf", np.isinf(array).any()), ("NaN", np.isnan(array).any())) if found]
            raise InvalidArgumentError(what=f"{op.message} : Tensor had {' and '.join(kinds)} values")
        return tensor

    def gradient(op, doutput) -> Any:
        return CheckNumerics(doutput, message=f"Not a number (NaN) or infinity (Inf) values detected in gradient. "
                                              f"{op.message}")  # fmt: skip


check_numerics = CheckNumerics.as_function("check_numerics")


def assert_all_finite(x: Any, message: str, name: str | None = None) -> Any:
    """The tensor itself, if none of its elements is NaN or infinite. See CheckNumerics."""
    return check_numerics(dispatch.to_tensor(x), message, name=name)
