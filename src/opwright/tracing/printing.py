"""How a trace's signature is printed.

Lives here: the layout.  Not here: what is printed (concrete.py).

    f(x, n=3)
      Args:
        x: {'a': <1>, 'b': [<2>]}
          <1>: float32 Tensor, shape=(2,)
          <2>: int32 Tensor, shape=()
      Returns:
        float32 Tensor, shape=(2,)
"""

from __future__ import annotations

import pprint
from collections.abc import Sequence
from typing import Any

from ..core import nest
from ..core.specs import TensorSpec
from ..core.type_spec import CompositeTensor, TypeSpec
from ..ops.tensor import TensorLike

Named = Sequence[tuple[str, Any]]


class _Mark:
    def __init__(self, number: int) -> None:
        self.text = f"<{number}>"

    def __repr__(self) -> str:
        return self.text


def _is_tensor(leaf: Any) -> bool:
    return isinstance(leaf, (TypeSpec, TensorLike, CompositeTensor))


def summary(name: str, arguments: Named) -> str:
    """name(x, n=3): tensors by name, fixed Python values with theirs."""
    shown = [n if any(map(_is_tensor, nest.flatten(v))) else f"{n}={v!r}" for n, v in arguments]
    return f"{name}({', '.join(shown)})"


def signature_text(name: str, arguments: Named, results: Any) -> str:
    """The whole signature: a line for each argument that holds tensors, and the results."""
    lines = [summary(name, arguments)]
    details = [f"    {n}: {_described(v)}" for n, v in arguments if any(map(_is_tensor, nest.flatten(v)))]
    if details:
        lines += ["  Args:", *details]
    return "\n".join([*lines, "  Returns:", f"    {_described(results)}"])


def _described(value: Any) -> str:
    if isinstance(value, CompositeTensor):
        return repr(value._type_spec)
    if isinstance(value, (TensorSpec, TensorLike)):
        return f"{value.dtype.name} Tensor, shape={value.shape}"
    if not nest.is_nested(value):
        return repr(value)
    leaves = nest.flatten(value)
    marks = [_Mark(i + 1) for i in range(len(leaves))]
    text = pprint.pformat(nest.pack_sequence_as(value, marks), width=10000)
    return "".join([text, *(f"\n      {m}: {_described(leaf)}" for m, leaf in zip(marks, leaves))])
