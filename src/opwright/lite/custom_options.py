"""What a file wrote of a node, as the definition that is here understands it: files old and new.

Lives here: a custom operator's version and attributes from its FlexBuffer options, a node's inputs by declared input.
Not here: FlexBuffers (format/flexbuffers.py), options of builtin operators (ops/definition.py), writing options
(convert/custom.py).

An older file lacks what later versions brought: attributes get their default, which is what the older version did,
and inputs are absent. A newer version than the definition's is an error, whether the operator code or the options say
it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ..core.dtypes import DType, as_dtype
from ..core.errors import InvalidArgumentError, SignatureError
from ..ops.call import Call
from ..ops.definition import Operator
from .format import schema
from .format.flexbuffers import VERSION_KEY, decode_options
from .ops.types import BY_NAME


class SerializedNode(Protocol):
    """A node of a file, as far as its operands ask: the operator's name and version, and its options."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def options(self) -> Any: ...


NEWER = "get a newer definition of the operator, or convert the model again with the one that is here"


def custom_op_version(name: str, given: Mapping[str, Any], code_version: int) -> int:
    """The version a custom node was written with: that in its options where they have one, else the operator code's.

    raises InvalidArgumentError for one that is no version, or where both say one and they differ
    """
    if VERSION_KEY not in given:
        return code_version
    found = given[VERSION_KEY]
    if type(found) is not int or found < 1:
        raise InvalidArgumentError(
            op=name,
            what="the version in the node's options is none",
            found=repr(found),
            wanted="an integer of at least 1",
            do="convert the model again",
        )
    if code_version not in (1, found):
        raise InvalidArgumentError(
            op=name,
            what="the file contradicts itself about the operator's version",
            found={"operator code": code_version, "options": found},
            wanted="one version, or 1 in the operator code",
            do="convert the model again",
        )
    return found


def bind_options(operator: Operator, options: Any, code_version: int = 1) -> Call:
    """The attributes of an operator in a custom operator's FlexBuffer options; what is missing has its default.

    raises SignatureError naming an option that the operator does not know, InvalidArgumentError for a version newer
    than the definition's and for values it does not take, DataLossError for damaged bytes
    """
    given: Mapping[str, Any] = decode_options(options or b"")
    version = custom_op_version(operator.name, given, code_version)
    if VERSION_KEY in given and version > operator.version:
        wanted = f"1..{operator.version}" if operator.version > 1 else "version 1"
        raise InvalidArgumentError(
            op=operator.name,
            what=f"the file has version {version} of this operator",
            found=f"{VERSION_KEY}={version} in the node's options",
            wanted=f"{wanted}, which the definition has",
            do=NEWER,
        )
    attrs = {name: value for name, value in given.items() if name != VERSION_KEY and name in operator.attr_defs}
    unknown = sorted(n for n in given if n != VERSION_KEY and n not in attrs and not _says_a_type(n, given[n]))
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


def _says_a_type(name: str, value: Any) -> bool:
    """Whether it is one of TensorFlow's attributes for the types of inputs, T, Tidx, TInput, which its converter keeps:
    the tensors say them, too."""
    number = type(value) is int and value in schema.enum_members("TensorType")
    return number and re.fullmatch(r"T[A-Za-z0-9]*", name) is not None


# ---- values whose Python type a file does not keep; each gives what is no such value as it is ------------------------


def _truth(value: Any) -> Any:
    """Writers of FlexBuffers may store truth as a number."""
    return bool(value) if type(value) is int and value in (0, 1) else value


def _bytes(value: Any) -> Any:
    """Bytes that were written as a string, which need be no text."""
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value


def _dtype(value: Any) -> Any:
    """A dtype is a name, or, by TensorFlow's converter, the number that it has in the file format."""
    return BY_NAME[schema.TensorType(value).name] if type(value) is int else value


def _array(value: Any) -> Any:
    """An array is kept as dtype, shape and values."""
    if not isinstance(value, Mapping):
        return value
    return np.array(value["values"], as_dtype(value["dtype"]).np).reshape(value["shape"])


_STORED: dict[Any, Callable[[Any], Any]] = {bool: _truth, bytes: _bytes, DType: _dtype, np.ndarray: _array}
_WANTED = {np.ndarray: "a map of dtype, shape and values", DType: "a name such as 'int8', or a TensorType's number"}


def group_inputs(operator: Operator, flat: Sequence[Any], node: SerializedNode) -> list[Any]:
    """A node's inputs by declared input: None where left out, a tuple where repeated.

    raises SignatureError for too many or too few
    """
    declared, n = operator.inputs, len(flat)
    newer = any(i.since > 1 for i in declared)
    if newer and any(i.repeated for i in declared):  # how many are the list's depends on which others the file knows
        written = _version_of(node)
        declared = tuple(i for i in declared if i.since <= written)
    if operator.profile.simple and n == len(declared):
        return list(flat)
    singles = sum(not i.repeated for i in declared)
    spare = n - singles
    grouped: list[Any] = []
    at = 0
    for i in declared:
        if i.repeated:
            grouped.append(tuple(flat[at : at + max(spare, 0)]))
            at += max(spare, 0)
        else:
            grouped.append(flat[at] if at < n else None)
            at += 1
    if at < n or any(g is None and not i.optional for g, i in zip(grouped, declared)):
        wanted = ", ".join(i.name + (" ..." if i.repeated else "?" if i.optional else "") for i in declared)
        raise SignatureError(op=node.name, what="the node has the wrong number of inputs", found=n, wanted=wanted)
    if any(type(g) is tuple and any(x is None for x in g) for g in grouped):
        raise SignatureError(op=node.name, what="an input that is one of several is left out", wanted="this input")
    return [*grouped, *(None for _ in operator.inputs[len(declared) :])]


def _version_of(node: SerializedNode) -> int:
    if isinstance(node.options, bytes):
        return custom_op_version(node.name, decode_options(node.options), node.version)
    return node.version
