"""Views of a call for the rules of an operator (`op`): its attributes, and its inputs and outputs by name.

Lives here: `Call`, and `call_class`, which gives each operator its own slotted subclass; `CallProfile`, which each
operator has once.
Not here: the definition itself (definition.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..graph import Graph

if TYPE_CHECKING:
    from ..core.dtypes import DType
    from .definition import Operator


class Call:
    """One call of one operator, as seen by its rules.

    In `compute` it has the attributes; in `infer` also the inputs, each with `.spec`, `.dtype`, `.shape` and
    `.constant` (a NumPy array where the value is known, else None); in `gradient` inputs and outputs are tensors.
    """

    __slots__ = ("chosen", "inferred", "operator", "reference", "remembered")
    operator: Any
    chosen: dict[Any, Any]  # what computes it, by dtype, with the kernels that it was made of (kernels.py)
    inferred: dict[Any, Any]  # output specs by dtypes and shapes of eager inputs
    reference: Any  # the reference computation with these attributes, or None where the operator has none
    remembered: dict[Any, Any]  # what runs on scopes remember, by dtypes and shapes of inputs (scopes/fast_path.py)
    _attr_names: tuple[str, ...] = ()
    _input_names: tuple[str, ...] = ()
    _output_names: tuple[str, ...] = ()

    @property
    def attrs(self) -> dict[str, Any]:
        """All attributes by name."""
        return {name: getattr(self, name) for name in self._attr_names}

    def with_inputs(self, inputs: Iterable[Any], outputs: Iterable[Any] = ()) -> Call:
        """Return a copy with inputs and outputs."""
        new = type(self)()
        new.operator = self.operator
        for name in self._attr_names:
            setattr(new, name, getattr(self, name))
        for name, value in zip(self._input_names, inputs):
            setattr(new, name, value)
        for name, value in zip(self._output_names, outputs):
            setattr(new, name, value)
        return new

    def dtype_of(self, *slots: str, skip_empty: bool = False) -> DType:
        """Return the checked dtype of the tensors in the first of these inputs that has any, for `expected_kernel_key`.

        skip_empty: pass over members of a list that are not initialised.
        """
        from .kernel_operands import dtype_of

        return dtype_of(self, *slots, skip_empty=skip_empty)

    def __repr__(self) -> str:
        attrs = ", ".join(f"{k}={v!r}" for k, v in self.attrs.items())
        return f"{self.operator.name}({attrs})"


def call_class(
    name: str, attrs: Iterable[str], inputs: Iterable[str], outputs: Iterable[str], methods: dict[str, Any]
) -> type[Call]:
    """Return the subclass of Call for one operator. methods: helper functions of the user's class, callable as
    op.helper().
    """
    attrs, inputs, outputs = tuple(attrs), tuple(inputs), tuple(outputs)
    body = {
        **methods,
        "__slots__": (*attrs, *inputs, *outputs),
        "_attr_names": attrs,
        "_input_names": inputs,
        "_output_names": outputs,
    }
    return type(name, (Call,), body)


class CallProfile:
    """Properties of an operator's calls that follow from its definition, computed once for the paths of every call.

    positions: names of the inputs and attributes by position: the inputs, then the attributes, then the additions of
    later versions, so that older calls stay right. plain_count: number of inputs of a call by position without
    attributes, -1 where there is no such call.
    simple: no input is repeated or optional. quick: element-wise, simple, of any ranks. paired: quick, with two inputs
    of one dtype. single: one output, not repeated. tensors_only: outputs whose dtype `infer` determines.
    narrows: results are cast to the dtype they are `like`; a user's computation need not mind NumPy's widening, the
    catalogue's minds it itself. writes_out: `compute` returns one array and can write it into a given one, `out=`.
    inplace_places: positions of the inputs whose memory the only output may take, best first.
    keeps_calls: bound attributes may be kept: none of them refers to a graph or an object.
    """

    __slots__ = (
        "inplace_places",
        "keeps_calls",
        "narrows",
        "paired",
        "plain_count",
        "positions",
        "quick",
        "simple",
        "single",
        "tensors_only",
        "writes_out",
    )

    def __init__(self, op: Operator) -> None:
        inputs, outputs = op.inputs, op.outputs
        parts: tuple[Any, ...] = (*inputs, *op.attr_defs.values())
        newer = sorted(parts, key=lambda part: part.since)
        self.positions = tuple(part.name for part in newer)
        self.plain_count = -1 if any(i.since > 1 for i in inputs) else len(inputs)
        self.simple = not any(i.repeated or i.optional for i in inputs)
        self.quick = op.elementwise and self.simple and not any(i.ranks for i in inputs)
        self.paired = self.quick and len(inputs) == 2 and inputs[1].like == inputs[0].name
        self.single = len(outputs) == 1 and not outputs[0].repeated
        self.tensors_only = tuple(
            k
            for k, o in enumerate(outputs)
            if o.dtype is None and o.like is None and o.kind is None and op.kinds_rule is None
        )
        self.narrows = not op.trusted and any(o.like is not None and not o.repeated for o in outputs)
        self.writes_out = self.single and _takes_out(op.compute_rule)
        declared = op.inplace.get(op.output_names[0], ()) if outputs else ()
        self.inplace_places = tuple(map(op.input_names.index, (declared,) if isinstance(declared, str) else declared))
        self.keeps_calls = not any(a.type in (object, Graph, [object], [Graph]) for a in op.attr_defs.values())


def _takes_out(rule: Any) -> bool:
    """Return whether a computation can write its one result into an array: a keyword-only parameter `out`."""
    if isinstance(rule, np.ufunc):
        return rule.nout == 1
    code = getattr(rule, "__code__", None)
    if code is None:
        return False
    first = code.co_argcount
    return "out" in code.co_varnames[first : first + code.co_kwonlyargcount]
