"""Signatures of operators at work: the dtypes that inputs may have, the specs that follow for outputs.

Lives here: `OperatorInference`, this part of an Operator; `brief`, values in errors.
Not here: declarations (slots.py), shape rules (shape_inference.py and the operators' own), kinds (var_types.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.dtypes import DType
from ..core.errors import InvalidArgumentError, SignatureError
from ..core.shapes import SCALAR, broadcast
from ..core.specs import TensorSpec
from .call import Call, CallProfile, contract_violation, failure_cause, rule_failure

if TYPE_CHECKING:
    from .slots import Input, Output


class OperatorInference:
    """Part of `Operator`: checks of dtypes, inference of outputs."""

    name: str
    inputs: tuple[Input[Any], ...]
    outputs: tuple[Output[Any], ...]
    input_names: tuple[str, ...]
    elementwise: bool
    trusted: bool
    profile: CallProfile
    accepted: dict[tuple[DType, ...], tuple[DType | None, ...]]
    infer_rule: Callable[..., Any] | None
    bind: Callable[..., Call]

    def accept(self, dtypes: tuple[DType, ...]) -> tuple[DType | None, ...]:
        """Check the dtypes of simple inputs and return the output dtypes that follow (None: determined by infer)."""
        result_dtypes = self.accepted.get(dtypes)
        if result_dtypes is None:
            self.check_dtypes(dtypes)
            by_name = dict(zip(self.input_names, dtypes))
            result_dtypes = tuple(o.dtype or (by_name[o.like] if o.like else None) for o in self.outputs)
            if self.elementwise and None in result_dtypes:  # `infer` determines it from dtypes: abs of a complex
                result_dtypes = tuple(s.dtype for s in self.infer(self.bind({}), [TensorSpec(None, d) for d in dtypes]))
            self.accepted[dtypes] = result_dtypes
        return result_dtypes

    def check_dtypes(self, dtypes: Sequence[Any], name: str | None = None) -> None:
        """Check the dtype of each input: a DType, None if absent, a tuple of them if repeated.

        raises SignatureError naming operator, input, found and wanted
        """
        leaders: dict[str, tuple[str, DType]] = {}
        for declared, dtype in zip(self.inputs, dtypes):
            if dtype is None:
                if not declared.optional:
                    raise SignatureError(
                        op=self.name,
                        node=name,
                        what=f"input {declared.name!r} is missing",
                        wanted=f"{declared.name}, {_dtype_names(declared.dtypes)}",
                    )
                continue
            for one in dtype if isinstance(dtype, tuple) else (dtype,):
                if one not in declared.dtypes:
                    raise SignatureError(
                        op=self.name,
                        node=name,
                        what=f"input {declared.name!r} has a dtype it does not take",
                        found=one.name,
                        wanted=_dtype_names(declared.dtypes),
                        explain="OW301",
                    )
                if declared.mixed:
                    continue
                group = declared.like or declared.name
                first, expected = leaders.setdefault(group, (declared.name, one))
                if expected is not one:
                    raise SignatureError(
                        op=self.name,
                        node=name,
                        what=f"inputs {first!r} and {declared.name!r} differ in dtype",
                        found={first: expected.name, declared.name: one.name},
                        wanted="the same dtype",
                        do=f"ow.cast(..., ow.{expected.name})",
                        explain="OW301",
                    )

    def infer(self, bound: Call, inputs: Sequence[Any], name: str | None = None) -> list[Any]:
        """Return the spec of each output (a list of specs for a repeated one).

        inputs: for each declared input an object with `.spec` and `.constant` (such as a TensorSpec), None where
        absent, a tuple where repeated. Checks dtypes and ranks first.
        raises InvalidArgumentError naming operator, input, found and wanted
        """
        self.check_dtypes([_dtypes_of(i) for i in inputs], name)
        for declared, value in zip(self.inputs, inputs):
            if declared.ranks is not None and value is not None:
                for one in value if isinstance(value, (tuple, list)) else (value,):
                    if one.spec.shape.rank not in (None, *declared.ranks):
                        raise InvalidArgumentError(
                            op=self.name,
                            node=name,
                            what=f"input {declared.name!r} has the wrong rank",
                            found=f"{one.spec.short()}",
                            wanted=f"rank {' or '.join(map(str, declared.ranks))}",
                        )
        call = bound.with_inputs(inputs)
        try:
            specs = self.infer_rule(call) if self.infer_rule else self._infer_like(inputs)
        except InvalidArgumentError as error:
            if error.op is None:
                raise InvalidArgumentError(op=self.name, node=name, what=error.message) from None
            raise rule_failure(self, "infer", error) from error.__cause__
        except Exception as error:
            if self.trusted:  # callers handle the errors of the catalogue's rules
                raise
            raise (failure := rule_failure(self, "infer", error, node=name)) from failure_cause(error, failure)
        if not isinstance(specs, (tuple, list)) or (self.profile.single is False and len(self.outputs) == 1):
            specs = [specs]
        if len(specs) != len(self.outputs):
            raise contract_violation(
                self, "infer", f"gave {len(specs)} specs, the operator has {len(self.outputs)} outputs", node=name
            )
        try:
            result_specs = [list(map(_as_spec, s)) if isinstance(s, (tuple, list)) else _as_spec(s) for s in specs]
        except AttributeError:
            raise contract_violation(
                self,
                "infer",
                "gave something that is not a spec",
                node=name,
                found=brief(specs),
                wanted="a TensorSpec for each output",
            ) from None
        for k in self.profile.tensors_only:
            several: Any = result_specs[k] if isinstance(result_specs[k], list) else (result_specs[k],)
            if any(s.dtype.is_handle for s in several):
                raise InvalidArgumentError(
                    op=self.name,
                    node=name,
                    what=f"output {self.outputs[k].name!r} is a tensor: it has no such dtype",
                    found=str(result_specs[k]),
                    do='Output(kind="of ..."), if the operator gives lists or handles',
                )
        return result_specs

    def _infer_like(self, inputs: Sequence[Any]) -> list[TensorSpec]:
        by_name = {
            n: i.spec for n, i in zip(self.input_names, inputs) if i is not None and not isinstance(i, (tuple, list))
        }
        shape = None
        if self.elementwise:
            shape = functools.reduce(broadcast, (s.shape for s in by_name.values()), SCALAR)
        return [
            TensorSpec(by_name[str(o.like)].shape if shape is None else shape, o.dtype or by_name[str(o.like)].dtype)
            for o in self.outputs
        ]


def brief(value: Any) -> str:
    """Return a value for an error: its type, and its text if that is short."""
    if isinstance(value, np.ndarray):
        return f"array of {value.dtype} {list(value.shape)}"
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(value).__name__})"


def _dtype_names(dtypes: Iterable[DType]) -> str:
    return "one of " + ", ".join(d.name for d in dtypes)


def _dtypes_of(value: Any) -> object:
    if value is None:
        return None
    if isinstance(value, (tuple, list)):
        return tuple(v.spec.dtype for v in value)
    return value.spec.dtype


def _as_spec(spec: Any) -> TensorSpec:
    return spec if isinstance(spec, TensorSpec) else spec.spec
