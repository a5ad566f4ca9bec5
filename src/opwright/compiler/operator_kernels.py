"""Kernels on arrays as operators' kernels: `@ow.kernel` with annotated parameters in an `@ow.operator` class.

Lives here: `OperatorKernel`: the roles of its parameters, calls on arrays.
Not here: kernels on arrays without an operator (language/array_kernels.py), their steps in plans
(kernels/user_kernels.py).

    @ow.kernel
    def kernel(x: kl.Array(kl.f32, "n", "m"), y: kl.Array(kl.f32, "n"), epsilon: kl.f32, *, axis, lanes=16): ...

Positional parameters are inputs, outputs and numbers among the attributes, by their names, in any order. Keyword-only
ones are constants: attributes of that name, or their defaults. Every output is a parameter: `infer` defines its shape,
and its elements are uninitialized. Inputs whose dtype, rank or sizes do not match the annotations are computed by
`compute`.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.dtypes import of_numpy
from ..core.errors import InvalidArgumentError
from ..core.specs import TensorSpec
from .language.parameters import Array

if TYPE_CHECKING:
    from .language.array_kernels import ArrayCode, ArrayKernel

INPUT, OUTPUT, ATTR = "input", "output", "attr"


class OperatorKernel:
    """An ArrayKernel that computes an operator: kernel(op, *arrays) -> array, or a tuple of several; NotImplemented for
    unsupported arrays.

    arrays: annotations by parameter; roles: the role of each parameter, with the index of the input or output, or the
    name of the attribute.

    raises TypeError if a parameter is not part of the operator, an output is not a parameter, or an annotation does not
    match its role
    """

    def __init__(self, kernel: ArrayKernel, operator: Any) -> None:
        self.kernel, self.operator = kernel, operator
        self.arrays = {name: kind for name, kind in kernel.parameters.items() if isinstance(kind, Array)}
        self.roles: dict[str, tuple[str, Any]] = {}
        inputs, outputs = [i.name for i in operator.inputs], [o.name for o in operator.outputs]

        def wrong(what: str) -> TypeError:
            return TypeError(f"operator {operator.name}: its kernel {what}")

        for name, kind in kernel.parameters.items():
            if name in inputs:
                self.roles[name] = INPUT, inputs.index(name)
            elif name in outputs:
                self.roles[name] = OUTPUT, outputs.index(name)
            elif name in operator.attr_defs:
                self.roles[name] = ATTR, name
            else:
                raise wrong(
                    f"has a parameter {name!r}, which is none of {', '.join((*inputs, *outputs, *operator.attr_defs))}"
                )
            if isinstance(kind, Array) == (self.roles[name][0] == ATTR):
                expected = "a dtype" if self.roles[name][0] == ATTR else "kl.Array(dtype, sizes)"
                raise wrong(f"annotates {name!r} with {kind!r}, wanted {expected}")
        for name in outputs:
            if name not in self.roles:
                raise wrong(f"has no parameter for output {name!r}")
        part: Any
        for part in (*operator.inputs, *operator.outputs):
            if part.repeated or getattr(part, "optional", False):
                raise wrong(f"is on arrays, and {part.name!r} is repeated or optional")
        for name, default in kernel.constants.items():
            if name not in operator.attr_defs and default is inspect.Parameter.empty:
                raise wrong(f"has a constant {name!r}, which is not an attribute and has no default")

    def constants(self, op: Any) -> dict[str, Any]:
        """Return its constants for these attributes."""
        return {
            n: getattr(op, n) if n in self.operator.attr_defs else default
            for n, default in self.kernel.constants.items()
        }

    def misfit(self, inputs: Sequence[Any], outputs: Sequence[Any] = ()) -> str | None:
        """Return why it does not support inputs and outputs of these dtypes and shapes; None if it does.

        Each has `dtype`, NumPy's or a DType, and `shape`.
        """
        sizes: dict[str, int] = {}
        for name, (role, index) in self.roles.items():
            if role == ATTR or (role == OUTPUT and not outputs):
                continue
            kind: Any = self.kernel.parameters[name]
            x = (inputs if role == INPUT else outputs)[index]
            dtype = x.dtype if isinstance(x.dtype, np.dtype) else x.dtype.np
            shape = kind.folded(x.shape)
            if dtype != kind.dtype.np or shape is None:
                return f"{name} is {dtype}{list(x.shape)}, its kernel takes {kind!r}"
            for size, declared in zip(shape, kind.shape):
                expected = declared if isinstance(declared, int) else sizes.setdefault(declared, size)
                if expected != size:
                    return f"{name} has the size {size} where its kernel takes {declared} = {expected}"
        return None

    def __call__(self, op: Any, *arrays: Any) -> Any:
        inputs = [a if type(a) is np.ndarray else np.asarray(a) for a in arrays]
        if self.misfit(inputs) is not None:
            return NotImplemented
        outs = []
        for spec in self._specs(op, inputs):
            if not spec.shape.is_fully_defined():
                return NotImplemented
            shape: Any = spec.shape.dims
            outs.append(np.empty(shape, spec.dtype.np))
        why = self.misfit(inputs, outs)
        if why is not None:
            raise InvalidArgumentError(op=self.operator.name, what=f"its kernel does not fit what infer says: {why}")
        self.code(op)  # raises for a kernel that writes inputs
        inputs = [np.ascontiguousarray(a).reshape(a.shape) for a in inputs]
        sources = {INPUT: inputs, OUTPUT: outs}
        arguments = [getattr(op, key) if role == ATTR else sources[role][key] for role, key in self.roles.values()]
        self.kernel(*arguments, **self.constants(op))
        return outs[0] if self.operator.profile.single else tuple(outs)

    def _specs(self, op: Any, arrays: Sequence[np.ndarray]) -> list[TensorSpec]:
        inferred: list[TensorSpec] | None = op.inferred.get(tuple([(of_numpy(a.dtype), a.shape) for a in arrays]))
        return inferred or self.operator.infer(op, [_InferredOperand(a) for a in arrays])

    def code(self, op: Any) -> ArrayCode:
        """Return the staged kernel for these attributes and arrays whose last axis is contiguous.

        raises its function's exceptions, and InvalidArgumentError if it writes an input
        """
        code = self.kernel.code(self.constants(op), (True,) * len(self.arrays))
        written_inputs = sorted(n for n in code.written if self.roles[n][0] == INPUT)
        if written_inputs:
            raise InvalidArgumentError(
                op=code.name,
                what=f"its kernel writes input {written_inputs[0]!r}",
                wanted="inputs unchanged, as others read them",
            )
        return code

    def __repr__(self) -> str:
        return f"<kernel of {self.operator.name}({', '.join(self.roles)})>"


class _InferredOperand:
    """An array as `infer` receives it."""

    __slots__ = ("constant", "dtype", "shape", "spec")

    def __init__(self, array: np.ndarray) -> None:
        self.constant, self.spec = array, TensorSpec(array.shape, of_numpy(array.dtype))
        self.dtype, self.shape = self.spec.dtype, self.spec.shape
