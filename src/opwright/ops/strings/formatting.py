"""Tensors in the midst of text.

Lives here: StringFormat.  Not here: how one tensor is written (summarizing.py), printing (ops/printing.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes
from ...core.specs import TensorSpec
from .. import dispatch
from ..attributes import Attr
from ..definition import Input, Output, operator
from .summarizing import summary


@operator
class StringFormat:
    """A text with tensors in it, each as `print` writes it, in the order of the placeholders.

    .. math:: output = template \\text{ with the } i\\text{-th placeholder replaced by } inputs_i

    summarize: elements shown at each end of each axis, -1 for all. Output: a scalar.
    """

    inputs = Input(dtypes.any_dtype, repeated=True, mixed=True)
    output = Output(dtype=dtypes.string)
    template = Attr(str, default="%s")
    placeholder = Attr(str, default="%s")
    summarize = Attr(int, default=3)
    lod = "vanishes"
    gradient = None

    def infer(op) -> Any:
        return TensorSpec((), dtypes.string)

    def compute(op, inputs) -> Any:
        parts = [p.encode("utf-8", "surrogateescape") for p in op.template.split(op.placeholder)]
        text = parts[0]
        for array, part in zip(inputs, parts[1:]):
            text += summary(np.asarray(array), op.summarize) + part
        output = np.empty((), object)
        output[()] = text
        return output


def format(template: str, inputs: Any, placeholder: str = "{}", summarize: int = 3, name: str | None = None) -> Any:
    """`template` with a tensor in place of each placeholder, as `print` writes it. A scalar string.

    inputs: one tensor or a list of them. summarize: elements shown at each end of each axis, -1 for all.
    raises ValueError where there are more or fewer placeholders than tensors
    """
    given = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    wanted = template.count(placeholder)
    if wanted != len(given):
        raise ValueError(
            f"The template expects {wanted} tensors, but the inputs only has {len(given)}. Please ensure the number of "
            "placeholders in template matches inputs length."
        )
    tensors = [dispatch.to_tensor(v) for v in given]
    return StringFormat(tensors, template=template, placeholder=placeholder,
                        summarize=-1 if summarize is None else summarize, name=name)  # fmt: skip
