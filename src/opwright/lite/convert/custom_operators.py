"""Custom operators of a file, from definitions and from functions that implement one.

Lives here: `in_least_version`, options of custom operators; `fuse`, which replaces calls of functions with
`experimental_implements` by operators.
Not here: FlexBuffers (format/flexbuffers.py), reading options back (lite/custom_options.py), how versions follow from
definitions (ops/call.py), marks of calls in graphs (ops/control.py, tracing/inliner.py).

An old definition reads the files of a newer one as long as they use nothing new: a node is stamped with the least
version that expresses it, and stores only what that version knows.

    @ow.function(experimental_implements='name: "my_op" attr {key: "tfl_fusable_op" value {b: true}} '
                                         'attr {key: "alpha" value {f: 0.5}}')

is the operator my_op with the option alpha = 0.5, on the function's arguments followed by its captures. Without
tfl_fusable_op, or with a name alone, it becomes one if custom operators are allowed, and else the function's own nodes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.dtypes import DType, of_numpy
from ...core.errors import InvalidArgumentError
from ...core.shapes import TensorShape
from ...graph import Graph, Node, Value
from ...graph.ir import Operand
from ...graph.passes import PatternRewriter, RewriteRule, rewrite
from ...ops.call import least_version
from ..format import schema
from ..format.flexbuffers import VERSION_KEY, encode_options
from ..ops.module import ExternalOp, external_attrs


class CustomNode(NamedTuple):
    """A node as the file has it: the version it needs, and the inputs and outputs which that version has."""

    version: int
    inputs: Sequence[Operand]
    outputs: Sequence[Value]


def in_least_version(node: Node, is_read: Callable[[Value], bool]) -> CustomNode:
    """Stamp a node of a user's operator with its least version. is_read: returns whether a value is used."""
    op: Any = node.op
    if isinstance(op, ExternalOp):
        return CustomNode(node.attrs["version"], node.inputs, node.outputs)
    packed = [p if isinstance(p, (list, tuple)) else (p,) for p in op.pack_all(node.outputs)]
    version = least_version(op, node.attrs, node.inputs, [any(map(is_read, values)) for values in packed])
    return CustomNode(
        version,
        [operand for declared, operand in zip(op.inputs, node.inputs) if declared.since <= version],
        [v for declared, values in zip(op.outputs, packed) if declared.since <= version for v in values],
    )


def custom_options(node: Node, version: int, version_inside: bool) -> dict[str, Any]:
    """Return the attributes that this version of the operator has.

    Defaults are included: a file keeps its meaning when a default changes.

    raises InvalidArgumentError for an attribute that options cannot hold
    """
    defined: Any = node.op
    options = {
        name: _option(node, name, value)
        for name, value in node.attrs.items()
        if name not in defined.attr_defs or defined.attr_defs[name].since <= version
    }
    if version_inside:
        options[VERSION_KEY] = version
    return options


def _option(node: Node, name: str, value: Any) -> object:
    if isinstance(value, DType):
        return value.name
    if isinstance(value, TensorShape):
        return None if value.dims is None else list(value.dims)
    if isinstance(value, np.ndarray):
        return {"dtype": of_numpy(value.dtype).name, "shape": list(value.shape), "values": value.reshape(-1).tolist()}
    if isinstance(value, tuple):
        return [_option(node, name, item) for item in value]
    if isinstance(value, Graph):
        raise InvalidArgumentError(what=f"attribute {name!r} is a graph, which custom options cannot hold")
    return value


FUSABLE = "tfl_fusable_op"
TYPES = {"FLOAT": "FLOAT32", "DOUBLE": "FLOAT64", "HALF": "FLOAT16"}  # protocol-buffer names other than the file's


class ImplementsAttribute(NamedTuple):
    """The operator that a function implements: its name, its options, whether the function must become one."""

    name: str
    options: dict[str, Any]
    always: bool


def fuse(graph: Graph, allow_custom_ops: bool) -> Graph:
    """Replace marked calls in a graph and its subgraphs by fused operators, and remove the marks."""

    def results(node: Node, rewriter: PatternRewriter) -> Sequence[Value] | Node:
        implements = read_implements(node.attrs["implements"])
        inputs, operands = (operand if isinstance(operand, tuple) else () for operand in node.inputs)
        if not (implements.always or allow_custom_ops):
            return inputs
        attrs = external_attrs(encode_options(implements.options))
        specs = [v.spec for v in node.outputs]
        return Node(ExternalOp(implements.name), operands, attrs, specs, node.name, node.at, rules=node.rules)

    if not any(True for _ in _marks(graph)):
        return graph
    marks = (
        RewriteRule("fusion_inputs", "FusionInputs", lambda node, rewriter: tuple(node.operands), "a mark"),
        RewriteRule("fusion_results", "FusionResults", results, "the operator that the function stands for"),
    )
    return rewrite(graph, marks)[0]


def _marks(graph: Graph) -> Iterator[Node]:
    for node in graph.nodes:
        if node.op.name == "FusionResults":
            yield node
        for inner in node.subgraphs:
            yield from _marks(inner)


def read_implements(text: str) -> ImplementsAttribute:
    """Return the name and attributes in a protocol-buffer text of `name` and `attr`s, or the name alone.

    raises InvalidArgumentError where the text begins like one and is none
    """
    if not re.match(r"\s*(name|attr)\s*[:{]", text):
        return ImplementsAttribute(text, {}, False)
    fields = _TextFormatParser(text).fields()
    options: dict[str, Any] = {}
    for name, value in fields:
        if name == "attr":
            entry = dict(value)
            options[entry["key"]] = _attribute(entry.get("value", []))
    named = [value for name, value in fields if name == "name"]
    if len(named) != 1:
        raise InvalidArgumentError(what="experimental_implements names no operator", found=text, wanted='name: "my_op"')
    return ImplementsAttribute(named[0], options, options.pop(FUSABLE, False) is True)


def _attribute(fields: list[tuple[str, Any]]) -> object:
    """Return the value in the fields of an AttrValue. A type is the number of the file's TensorType."""
    for kind, value in fields:
        if kind == "list":
            return [_attribute([item]) for item in value]
        if kind == "type":
            name: str = value.removeprefix("DT_")
            return int(schema.enum("TensorType")[TYPES.get(name, name)])
        if kind == "shape":
            return [size for _, dim in value for field, size in dim if field == "size"]
        return value
    return None


_TOKEN = re.compile(r"""\s*(?:([{}:;,<>])|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|([^\s{}:;,<>"']+))""")


class _TextFormatParser:
    """Protocol-buffer text: fields of the form `name: value` and `name { fields }`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[str] = []
        at = 0
        while text[at:].strip():
            found = _TOKEN.match(text, at)
            if found is None:
                raise self.wrong(f"{text[at:][:20]!r} is not part of it")
            self.tokens.append(found.group(0).strip())
            at = found.end()
        self.tokens.reverse()

    def wrong(self, what: str) -> InvalidArgumentError:
        return InvalidArgumentError(
            what=f"experimental_implements cannot be read: {what}",
            found=self.text,
            wanted='name: "my_op" attr {key: "n" value {i: 10}}',
        )

    def next(self) -> str:
        if not self.tokens:
            raise self.wrong("it ends too early")
        return self.tokens.pop()

    def fields(self, end: str = "") -> list[tuple[str, Any]]:
        entries: list[tuple[str, Any]] = []
        while self.tokens and self.tokens[-1] != end:
            name = self.next()
            if name in (",", ";"):
                continue
            mark = self.next()
            if mark == ":" and self.tokens and self.tokens[-1] in "{<":
                mark = self.next()
            if mark in "{<":
                close = "}" if mark == "{" else ">"
                entries.append((name, self.fields(close)))
                if self.next() != close:
                    raise self.wrong(f"{name} {mark} is not closed")
            elif mark == ":":
                entries.append((name, self.scalar(self.next())))
            else:
                raise self.wrong(f"{mark!r} after {name!r}")
        if end and not self.tokens:
            raise self.wrong(f"{end!r} is missing")
        return entries

    def scalar(self, token: str) -> str | bool | float:
        if token[0] in "\"'":
            return token[1:-1].encode().decode("unicode_escape")
        if token in ("true", "false", "True", "False"):
            return token.lower() == "true"
        for kind in (int, float):
            try:
                return kind(token)
            except ValueError:
                continue
        if re.fullmatch(r"DT_[A-Z0-9]+", token):
            return token
        raise self.wrong(f"{token!r} is not a value")
