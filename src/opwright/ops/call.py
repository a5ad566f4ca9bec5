"""What the rules of an operator see as `op`: its attributes, and its inputs and outputs by name.

Lives here: `Call`, and `call_class`, which gives each operator its own slotted subclass.
Not here: the definition itself (definition.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


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
    remembered: dict[Any, Any]  # what runs on scopes remember, by dtypes and shapes of inputs (runtime/shortcut.py)
    _attr_names: tuple[str, ...] = ()
    _input_names: tuple[str, ...] = ()
    _output_names: tuple[str, ...] = ()

    @property
    def attrs(self) -> dict[str, Any]:
        """All attributes by name."""
        return {name: getattr(self, name) for name in self._attr_names}

    def with_inputs(self, inputs: Iterable[Any], outputs: Iterable[Any] = ()) -> Call:
        """A copy that also has inputs and outputs."""
        new = type(self)()
        new.operator = self.operator
        for name in self._attr_names:
            setattr(new, name, getattr(self, name))
        for name, value in zip(self._input_names, inputs):
            setattr(new, name, value)
        for name, value in zip(self._output_names, outputs):
            setattr(new, name, value)
        return new

    def dtype_of(self, *slots: str, skip_empty: bool = False) -> Any:
        """In `expected_kernel_key`: the dtype of the tensors in the first of these inputs that has any, checked.

        skip_empty: pass over members of a list that are not initialised.
        """
        from .operands import dtype_of

        return dtype_of(self, *slots, skip_empty=skip_empty)

    def __repr__(self) -> str:
        attrs = ", ".join(f"{k}={v!r}" for k, v in self.attrs.items())
        return f"{self.operator.name}({attrs})"


def call_class(name: str, attrs: Iterable[str], inputs: Iterable[str], outputs: Iterable[str], methods: dict[str, Any]
               ) -> type[Call]:  # fmt: skip
    """The subclass of Call for one operator; methods: helper functions of the user's class, callable as op.helper()."""
    attrs, inputs, outputs = tuple(attrs), tuple(inputs), tuple(outputs)
    body = {
        **methods,
        "__slots__": (*attrs, *inputs, *outputs),
        "_attr_names": attrs,
        "_input_names": inputs,
        "_output_names": outputs,
    }
    return type(name, (Call,), body)
