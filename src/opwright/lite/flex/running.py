"""Flex operators in the interpreter: the framework's own kernels behind a custom operator's name.

Lives here: `flex_registration`.  Not here: NodeDefs (nodedef.py), what is TensorFlow's form of which operator (forms.py).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from ...core.errors import InvalidArgumentError, NotFoundError
from ...ops import registry
from ...ops.call import Call
from ...ops.definition import Operator
from ..format.flex import decode
from ..registration import OperatorRegistration
from . import nodedef
from .carrying import NONES, OURS
from .forms import Const, Form, form_for
from .signatures import signature

PREFIX = "Flex"


class _State:
    """What options say, the attributes by our names and the form of the inputs; and the call, once it is known."""

    __slots__ = ("attrs", "call", "form")

    def __init__(self, attrs: dict[str, Any], form: Form | None) -> None:
        self.attrs, self.form = attrs, form
        self.call: Call | None = None


class FlexRegistration(OperatorRegistration):
    """The kernel of a Flex operator: an operator of the catalogue, its attributes and inputs as the NodeDef says."""

    __slots__ = ()

    def _init(self, context: Any, options: Any) -> Any:
        given = decode(bytes(options)) if options else None
        if not isinstance(given, list) or len(given) < 2 or not isinstance(given[1], str):
            raise InvalidArgumentError(op=self.operator.name, what="a Flex operator without a NodeDef in its options",
                                       found=type(given).__name__, wanted="[name, NodeDef]")  # fmt: skip
        return _read(self.operator, nodedef.decode(given[1].encode("utf-8", "surrogateescape")))

    def operands(self, node: Any) -> Sequence[Any]:
        """The tensors that are inputs of ours, in our order."""
        form = node.user_data.form
        if form is None or form.inputs is None:
            return node.tensors_in  # type: ignore[no-any-return]
        places = [(place, i) for i, place in enumerate(form.inputs) if not isinstance(place, Const)]
        return [_at(node, i) for _, i in sorted(places)]

    def _call(self, node: Any) -> Call:
        """The attributes, with those that are inputs in TensorFlow's form."""
        state: _State = node.user_data
        if state.call is None:
            attrs = dict(state.attrs)
            for i, place in enumerate(() if state.form is None else state.form.inputs or ()):
                if isinstance(place, Const):
                    attrs[place.attr] = self._constant(place, _at(node, i))
            state.call = self.operator.bind(attrs)
        return state.call

    def _constant(self, const: Const, t: Any) -> Any:
        if t is None or t.constant is None:
            raise InvalidArgumentError(op=self.operator.name, what=f"{const.attr!r} is no constant of the model",
                                       found=repr(t))  # fmt: skip
        values = t.constant.reshape(-1).tolist()
        if not const.vector and len(values) != 1:
            raise InvalidArgumentError(op=self.operator.name, what=f"{const.attr!r} is not one number", found=values[:8])
        return values if const.vector else values[0]


def _at(node: Any, place: int) -> Any:
    return node.tensors_in[place] if place < len(node.tensors_in) else None


def _read(operator: Operator, definition: nodedef.NodeDef) -> _State:
    attrs, given = {}, dict(definition.attrs)
    if given.pop(OURS, False):
        attrs = {name: None for name in _texts(given.pop(NONES, []))}
        form, declared = None, None
        wanted = given
    else:
        found = form_for(definition.op)
        if found is None:
            raise NotFoundError(op=operator.name, what=f"a Flex operator of {definition.op!r}, which is not here")
        form, declared = found[1], signature(definition.op)
        assert declared is not None
        attrs.update(form.needs)
        wanted = {form.attrs.get(name, name): value for name, value in given.items()}
    for name, value in wanted.items():
        if name in operator.attr_defs:
            attrs[name] = _ours(operator, name, value)
        elif declared is None:
            raise InvalidArgumentError(op=operator.name, what=f"attribute {name!r} of a Flex operator is not known here",
                                       wanted=", ".join(operator.attr_defs) or "none")  # fmt: skip
        elif not name.startswith("_"):
            _check_usual(operator, name, value, declared)
    return _State(attrs, form)


def _check_usual(operator: Operator, name: str, value: Any, declared: Any) -> None:
    """An attribute that ours lacks must be a type, a number of inputs, or have its usual value."""
    attribute = declared.attrs.get(name)
    counted = {argument.rpartition("*")[0] for argument in declared.inputs}
    if attribute is None or attribute.kind in ("type", "list(type)") or name in counted:
        return
    default = attribute.default.encode() if isinstance(attribute.default, str) else attribute.default
    if attribute.has_default and value == default:
        return
    raise InvalidArgumentError(op=operator.name, what=f"the Flex operator has {name} = {value!r}",
                               wanted=f"{attribute.default!r}: the operator here has no such attribute")  # fmt: skip


def _texts(values: Any) -> list[str]:
    return [v.decode() for v in values]


def _ours(operator: Operator, name: str, value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape") if operator.attr_defs[name].type is str else value
    if isinstance(value, list):
        return tuple(v.decode("utf-8", "surrogateescape") if isinstance(v, bytes) else v for v in value)
    return value


@functools.cache
def flex_registration(name: str) -> FlexRegistration | None:
    """The registration of a custom operator that begins with Flex; None where its operator is not in the catalogue."""
    op = name.removeprefix(PREFIX)
    found = form_for(op)
    ours = op if found is None else found[0]
    if ours not in registry.list_names():
        return None
    operator = registry.get(ours)
    if operator.compute_rule is None and not operator.kernels:
        return None
    return FlexRegistration(operator)
