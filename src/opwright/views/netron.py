"""Graphs as a file that Netron opens: an ONNX model whose operators are in domains of their own.

Lives here: `onnx_graph`. Not here: graphs (graph_documents.py), models of ONNX's operators (frontends/onnx/export/).

Netron shows operators of any domain with their attributes, and graphs in attributes as functions of the node. Sizes and
types of constants are in the file, their elements are not: their data is said to be elsewhere.

Numbers of fields and enumerations: onnx.proto3, IR version 10.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..core import __version__
from ..core.dtypes import FILE_ONLY, anything
from ..core.protobuf_wire import VARINT, key, sized, varint
from ..frontends.onnx.files import DTYPES
from .graph_documents import rules_of

IR_VERSION, OPSET = 10, 22
STRING, GRAPH = 3, 5  # AttributeProto.AttributeType
EXTERNAL = 1  # TensorProto.DataLocation
CODES = {dtype.short: code for code, dtype in DTYPES.items()}
_TYPE = re.compile(r"(\w+)\[([^\]]*)\]")
_SHORT = {dtype.short for dtype in (*anything, *FILE_ONLY)}

Document = Mapping[str, Any]


def onnx_graph(document: Document) -> bytes:
    """Return the first graph of a document, with the graphs that its nodes run, as a serialized ModelProto."""
    domains = ["", *(_domain(operator) for operator in document["operators"])]
    opsets = (_text(1, d) + _number(2, OPSET if not d else 1) for d in dict.fromkeys(domains))
    facts = (_text(1, label) + _text(2, text) for label, text in document["facts"])
    return b"".join(
        (
            _number(1, IR_VERSION),
            _text(2, "opwright"),
            _text(3, __version__),
            sized(7, _graph(document, 0, ())),
            _each(8, opsets),
            _each(14, facts),
        )
    )


def _domain(operator: Mapping[str, Any]) -> str:
    """Return "tflite" for builtin operators of files, "opwright" for those of the catalogue, "custom" for others."""
    words = {"builtin": "tflite", "operator": "opwright"}
    return words.get(str(operator["dialect"]).partition(" ")[0], "custom")


def _number(field: int, value: int) -> bytes:
    return key(field, VARINT) + varint(value)


def _text(field: int, text: object) -> bytes:
    return sized(field, str(text).encode())


def _each(field: int, messages: Iterable[bytes]) -> bytes:
    return b"".join(sized(field, message) for message in messages)


def _graph(document: Document, number: int, above: tuple[int, ...]) -> bytes:
    """Return a GraphProto. above: numbers of the graphs that contain it, which it cannot contain."""
    graph = document["graphs"][number]
    names = _names(graph)
    values = graph["values"]
    nodes = (_node(document, graph, node, i, names, (*above, number)) for i, node in enumerate(graph["nodes"]))
    constants = [v for v, value in enumerate(values) if value[3]]
    ends = {*graph["inputs"], *graph["outputs"], *constants}

    def described(places: Iterable[int]) -> list[bytes]:
        return [_text(1, names[v]) + sized(2, _type(document["types"][values[v][1]])) for v in places]

    return b"".join(
        (
            _each(1, nodes),
            _text(2, graph["name"] or "graph"),
            _each(5, (_constant(document, values[v], names[v]) for v in constants)),
            _each(11, described(graph["inputs"])),
            _each(12, described(graph["outputs"])),
            _each(13, described(v for v in range(len(values)) if v not in ends)),
        )
    )


def _names(graph: Document) -> list[str]:
    """Return a name for each value, by which ONNX joins nodes: unique, and not empty."""
    taken: set[str] = set()
    names = []
    for place, value in enumerate(graph["values"]):
        name = value[0] or f"value {place}"
        names.append(name if name not in taken else f"{name} ({place})")
        taken.add(names[-1])
    return names


def _node(
    document: Document, graph: Document, node: Mapping[str, Any], place: int, names: list[str], above: tuple[int, ...]
) -> bytes:
    operator = document["operators"][node["o"]]
    attrs = [_text(1, k) + _text(4, v) + _number(20, STRING) for k, v in document["attrs"][node["a"]].items()]
    attrs += [
        _text(1, k) + sized(6, _graph(document, g, above)) + _number(20, GRAPH)
        for k, g in node.get("g", ())
        if g not in above
    ]
    facts = {"version": node.get("v"), "first run time": node.get("r"), "source": node.get("at"), "by": node.get("k")}
    facts |= {"recorded at": node.get("f"), "made by": rules_of(document, node)}
    notes = [f"{label}: {value}" for label, value in facts.items() if value]
    quantized = [graph["values"][v] for v in (*node.get("i", ()), *node.get("u", ())) if graph["values"][v][2]]
    notes += [f"{value[0]}: {value[2]}" for value in quantized]
    return b"".join(
        (
            _each(1, (names[v].encode() for v in node.get("i", ()))),
            _each(2, (names[v].encode() for v in node.get("u", ()))),
            _text(3, "/".join((*node.get("s", ()), f"{operator['name']} {place}"))),
            _text(4, operator["name"]),
            _each(5, attrs),
            _text(6, "\n".join(notes)),
            _text(7, _domain(operator)),
        )
    )


def _type(text: str) -> bytes:
    """Return a TypeProto of a type in the form of graph text."""
    code, dims = _parsed(text)
    shape = b""
    if dims is not None:
        known = (_number(1, int(dim)) if dim.isdigit() else _text(2, dim) for dim in dims)
        shape = sized(2, _each(1, known))
    return sized(1, _number(1, code) + shape)


def _parsed(text: str) -> tuple[int, list[str] | None]:
    """Return the TensorProto.DataType of a type, 0 if ONNX has none, and its sizes; None for an unknown rank."""
    match = _TYPE.match(text)
    if match is None or match[1] not in _SHORT:
        return 0, None
    dims = [dim for dim in match[2].split(",") if dim]
    return CODES.get(match[1], 0), None if dims == ["..."] else dims


def _constant(document: Document, value: Any, name: str) -> bytes:
    """Return a TensorProto without elements."""
    code, dims = _parsed(document["types"][value[1]])
    sizes = [int(dim) for dim in dims or () if dim.isdigit()]
    elsewhere = _text(1, "location") + _text(2, "not-in-this-file")
    return b"".join(
        (
            *(_number(1, size) for size in sizes),
            _number(2, code),
            _text(8, name),
            _text(12, f"{value[4]} bytes{'; ' if value[2] else ''}{value[2]}"),
            sized(13, elsewhere),
            _number(14, EXTERNAL),
        )
    )
