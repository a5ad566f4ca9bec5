"""Flex operators in the interpreter: the framework's own kernels under a custom operator's name.

Lives here: `flex_registration`.
Not here: FlexNodeDefs (nodedef.py), mapping of TensorFlow's operators to ours (conversion.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from ...core.dtypes import DType
from ...core.errors import InvalidArgumentError, NotFoundError, SignatureError
from ...core.forks import once
from ...ops import registry
from ...ops.call import Call
from ...ops.definition import Operator
from ..format.flexbuffers import decode
from ..registration import OperatorRegistration
from . import nodedef
from .conversion import COUNTS, NONES, OURS, ConstantInput, OpMapping, declaration, mapping_for

PREFIX = "Flex"
MOST_INPUTS = 1 << 20


class _FlexState:
    """Decoded options: attributes by our names and the mapping of inputs; and the call, once it is known.

    counts: the number of tensors of each argument, None for a single tensor.
    """

    __slots__ = ("attrs", "call", "counts", "form")

    def __init__(self, attrs: dict[str, Any], form: OpMapping | None, counts: Sequence[int | None]) -> None:
        self.attrs, self.form, self.counts = attrs, form, counts
        self.call: Call | None = None

    def arguments(self, operator: Operator, items: Sequence[Any]) -> list[Any]:
        """Return the node's inputs by argument, a tuple for several tensors. Raises SignatureError for another
        number."""
        expected = sum(1 if count is None else count for count in self.counts)
        if expected != len(items):
            raise SignatureError(
                op=operator.name, what="the node has the wrong number of inputs", found=len(items), wanted=expected
            )
        remaining = iter(items)
        return [next(remaining) if n is None else tuple(itertools.islice(remaining, n)) for n in self.counts]


class FlexRegistration(OperatorRegistration):
    """The kernel of a Flex operator: an operator of the catalogue, with attributes and inputs from the NodeDef."""

    __slots__ = ()

    def _init(self, context: Any, options: Any) -> object:
        document = decode(bytes(options)) if options else None
        if not isinstance(document, list) or len(document) < 2 or not isinstance(document[1], str):
            raise InvalidArgumentError(
                op=self.operator.name,
                what="a Flex operator without a NodeDef in its options",
                found=type(document).__name__,
                wanted="[name, NodeDef]",
            )
        return _read(self.operator, nodedef.decode(document[1].encode("utf-8", "surrogateescape")))

    def group(self, node: Any, items: Sequence[Any]) -> list[Any]:
        state: _FlexState = node.user_data
        arguments = state.arguments(self.operator, items)
        if state.form is None or state.form.inputs is None:
            return arguments
        places = dict(zip(state.form.inputs, arguments))
        return [places.get(i) for i in range(len(self.operator.inputs))]

    def dtype(self, node: Any) -> DType | None:
        for argument in self.group(node, node.tensors_in):
            for t in argument if isinstance(argument, tuple) else (argument,):
                if t is not None:
                    dtype: DType = t.dtype
                    return dtype
        return None

    def _call(self, node: Any) -> Call:
        """Return the attributes, including inputs of TensorFlow's operator that are attributes here."""
        state: _FlexState = node.user_data
        if state.call is None:
            attrs, form = dict(state.attrs), state.form
            if form is not None and form.inputs is not None:
                for source, t in zip(form.inputs, state.arguments(self.operator, node.tensors_in)):
                    if isinstance(source, ConstantInput):
                        attrs[source.attr] = self._constant(source, t)
            state.call = self.operator.bind(attrs)
        return state.call

    def _constant(self, const: ConstantInput, t: Any) -> object:
        if t is None or t.constant is None:
            raise InvalidArgumentError(
                op=self.operator.name, what=f"{const.attr!r} is not a constant of the model", found=repr(t)
            )
        values = t.constant.reshape(-1).tolist()
        if not const.vector and len(values) != 1:
            what = f"{const.attr!r} is not one number"
            raise InvalidArgumentError(op=self.operator.name, what=what, found=values[:8])
        return values if const.vector else values[0]


def _read(operator: Operator, definition: nodedef.FlexNodeDef) -> _FlexState:
    attrs: dict[str, Any] = {}
    attributes = dict(definition.attrs)
    if attributes.pop(OURS, False):
        attrs = dict.fromkeys(_texts(attributes.pop(NONES, [])))
        sizes = iter(attributes.pop(COUNTS, []))
        counts = [next(sizes, 0) if declared_input.repeated else None for declared_input in operator.inputs]
        form, declared = None, None
        by_our_name = attributes
    else:
        entry = mapping_for(definition.op)
        if entry is None:
            raise NotFoundError(op=operator.name, what=f"a Flex operator of {definition.op!r}, which is not here")
        form, declared = entry[1], declaration(definition.op)
        assert declared is not None
        attrs.update(form.needs)
        counts = [_count(argument, attributes) for argument in declared.inputs]
        by_our_name = {form.attrs.get(name, name): value for name, value in attributes.items()}
    for name, value in by_our_name.items():
        if name in operator.attr_defs:
            attrs[name] = _ours(operator, name, value)
        elif declared is None:
            what = f"attribute {name!r} of a Flex operator is not known here"
            raise InvalidArgumentError(op=operator.name, what=what, wanted=", ".join(operator.attr_defs) or "none")
        elif not name.startswith("_"):
            _check_usual(operator, name, value, declared)
    return _FlexState(attrs, form, counts)


def _count(argument: str, attrs: dict[str, Any]) -> int | None:
    """Return the number of tensors of a TensorFlow argument; None for a single tensor."""
    number, star, kind = argument.rpartition("*")
    if not star:
        return None
    length = attrs.get(number) if number else attrs.get(kind)
    count = len(length) if isinstance(length, list) else length
    return count if isinstance(count, int) and 0 <= count < MOST_INPUTS else 0


def _check_usual(operator: Operator, name: str, value: Any, declared: Any) -> None:
    """Raise InvalidArgumentError for an attribute that ours lacks, unless it is a type, a count, or the default."""
    attribute = declared.attrs.get(name)
    counted = {argument.rpartition("*")[0] for argument in declared.inputs}
    default: Any = None
    if attribute is not None:
        if attribute.kind in ("type", "list(type)") or name in counted:
            return
        default = attribute.default.encode() if isinstance(attribute.default, str) else attribute.default
        if attribute.has_default and value == default:
            return
    raise InvalidArgumentError(
        op=operator.name,
        what=f"the Flex operator has {name} = {value!r}",
        wanted=f"{default!r}: the operator here has no such attribute",
    )


def _texts(values: Any) -> list[str]:
    return [v.decode() for v in values]


def _ours(operator: Operator, name: str, value: Any) -> object:
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape") if operator.attr_defs[name].type is str else value
    if isinstance(value, list):
        return tuple(v.decode("utf-8", "surrogateescape") if isinstance(v, bytes) else v for v in value)
    return value


@once
def flex_registration(name: str) -> FlexRegistration | None:
    """Return the registration of a custom operator named Flex...; None if the catalogue lacks its operator."""
    op = name.removeprefix(PREFIX)
    entry = mapping_for(op)
    ours = op if entry is None else entry[0]
    if ours not in registry.list_names():
        return None
    operator = registry.get(ours)
    if operator.compute_rule is None and not operator.kernels:
        return None
    return FlexRegistration(operator)
