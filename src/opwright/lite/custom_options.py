"""A node's serialized options and inputs, bound to the operator's definition, for old and new files.

Lives here: a custom operator's version and attributes from its FlexBuffers options, a node's inputs by declared input.
Not here: FlexBuffers (format/flexbuffers.py), options of builtin operators (ops/definition.py), writing options
(convert/custom_operators.py).

An older file lacks additions of later versions: attributes get their default, which reproduces the older version, and
inputs are absent. A version newer than the definition's is an error, whether in the operator code or in the options.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..core.dtypes import DType, as_dtype
from ..core.errors import InvalidArgumentError, SignatureError
from ..core.lazy_imports import later
from ..ops.call import Call
from ..ops.definition import Operator
from .format import schema
from .ops.types import BY_NAME

if TYPE_CHECKING:
    from .format import flexbuffers
else:  # not needed by the first answer of a model
    flexbuffers = later(".format.flexbuffers", __package__)


class SerializedNode(Protocol):
    """A node of a file as its operands require it: the operator's name and version, and its options."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def options(self) -> Any: ...


NEWER = "get a newer definition of the operator, or convert the model again with the one that is here"


def custom_op_version(name: str, options: Mapping[str, Any], code_version: int) -> int:
    """Return the version that a custom node was written with: in its options if there, else in the operator code.

    raises InvalidArgumentError for an invalid version, or two that differ
    """
    if flexbuffers.VERSION_KEY not in options:
        return code_version
    version = options[flexbuffers.VERSION_KEY]
    if type(version) is not int or version < 1:
        raise InvalidArgumentError(
            op=name,
            what="the version in the node's options is invalid",
            found=repr(version),
            wanted="an integer of at least 1",
            do="convert the model again",
        )
    if code_version not in (1, version):
        raise InvalidArgumentError(
            op=name,
            what="the file contradicts itself about the operator's version",
            found={"operator code": code_version, "options": version},
            wanted="one version, or 1 in the operator code",
            do="convert the model again",
        )
    return version


def bind_options(operator: Operator, options: Any, code_version: int = 1) -> Call:
    """Return the attributes of an operator from a custom operator's FlexBuffers options, with defaults for missing
    ones.

    raises SignatureError naming an unknown option, InvalidArgumentError for a version newer than the definition's and
    for invalid values, DataLossError for damaged bytes
    """
    values: Mapping[str, Any] = flexbuffers.decode_options(options or b"")
    version = custom_op_version(operator.name, values, code_version)
    if flexbuffers.VERSION_KEY in values and version > operator.version:
        range_text = f"1..{operator.version}" if operator.version > 1 else "version 1"
        raise InvalidArgumentError(
            op=operator.name,
            what=f"the file has version {version} of this operator",
            found=f"{flexbuffers.VERSION_KEY}={version} in the node's options",
            wanted=f"{range_text}, which the definition has",
            do=NEWER,
        )
    given = {name: value for name, value in values.items() if name != flexbuffers.VERSION_KEY}
    attrs = {name: value for name, value in given.items() if name in operator.attr_defs}
    unknown = sorted(n for n in given if n not in attrs and not _is_type_attribute(n, given[n]))
    if unknown:
        raise SignatureError(
            op=operator.name,
            what=f"options that it does not know: {', '.join(unknown)}",
            wanted=f"among {', '.join(operator.attr_defs) or 'none'}",
            do=NEWER,
        )
    for name, value in attrs.items():
        kind = operator.attr_defs[name].type
        item = kind[0] if isinstance(kind, list) else kind
        if item in _STORED:
            read = _STORED[item]
            try:
                attrs[name] = [*map(read, value)] if isinstance(kind, list) and type(value) is list else read(value)
            except (KeyError, TypeError, ValueError, OverflowError) as error:
                raise InvalidArgumentError(
                    op=operator.name,
                    what=f"option {name!r} holds no {item.__name__}: {error}",
                    found=f"{value!r}"[:80],
                    wanted=_WANTED.get(item),
                ) from None
    return operator.bind(attrs)


def _is_type_attribute(name: str, value: Any) -> bool:
    """Return whether an option is one of TensorFlow's type attributes (T, Tidx, TInput), which its converter keeps and
    the tensors repeat."""
    number = type(value) is int and value in schema.enum_members("TensorType")
    return number and re.fullmatch(r"T[A-Za-z0-9]*", name) is not None


# ---- values whose Python type a file does not preserve; other values are returned unchanged --------------------------


def _truth(value: Any) -> Any:
    """Return a bool, which writers of FlexBuffers may store as a number."""
    return bool(value) if type(value) is int and value in (0, 1) else value


def _bytes(value: Any) -> Any:
    """Return bytes that were written as a string, which need not be valid text."""
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value


def _dtype(value: Any) -> Any:
    """Return a dtype from its name or, as TensorFlow's converter writes it, its number in the file format."""
    return BY_NAME[schema.TensorType(value).name] if type(value) is int else value


def _array(value: Any) -> Any:
    """Return an array from its dtype, shape and values."""
    if not isinstance(value, Mapping):
        return value
    return np.array(value["values"], as_dtype(value["dtype"]).np).reshape(value["shape"])


_STORED: dict[Any, Callable[[Any], Any]] = {bool: _truth, bytes: _bytes, DType: _dtype, np.ndarray: _array}
_WANTED = {np.ndarray: "a map of dtype, shape and values", DType: "a name such as 'int8', or a TensorType's number"}


def group_inputs(operator: Operator, flat: Sequence[Any], node: SerializedNode) -> list[Any]:
    """Return a node's inputs by declared input: None for an omitted one, a tuple for a repeated one.

    raises SignatureError for a wrong number of inputs
    """
    declared, n = operator.inputs, len(flat)
    newer = any(i.since > 1 for i in declared)
    if newer and any(
        i.repeated for i in declared
    ):  # the length of the list depends on the inputs that the file's version has
        version = _version_of(node)
        declared = tuple(i for i in declared if i.since <= version)
    if operator.profile.simple and n == len(declared):
        return list(flat)
    singles = sum(not i.repeated for i in declared)
    spare = n - singles
    grouped: list[Any] = []
    position = 0
    for i in declared:
        if i.repeated:
            grouped.append(tuple(flat[position : position + max(spare, 0)]))
            position += max(spare, 0)
        else:
            grouped.append(flat[position] if position < n else None)
            position += 1
    if position < n or any(g is None and not i.optional for g, i in zip(grouped, declared)):
        signature = ", ".join(i.name + (" ..." if i.repeated else "?" if i.optional else "") for i in declared)
        raise SignatureError(op=node.name, what="the node has the wrong number of inputs", found=n, wanted=signature)
    if any(type(g) is tuple and any(x is None for x in g) for g in grouped):
        raise SignatureError(op=node.name, what="an input that is one of several is left out", wanted="this input")
    return [*grouped, *(None for _ in operator.inputs[len(declared) :])]


def _version_of(node: SerializedNode) -> int:
    if isinstance(node.options, bytes):
        return custom_op_version(node.name, flexbuffers.decode_options(node.options), node.version)
    return node.version
