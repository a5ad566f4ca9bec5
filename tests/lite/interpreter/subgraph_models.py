"""Models of several subgraphs, built line by line."""

from __future__ import annotations

from typing import Any

import numpy as np
from lite_kit import Build

from opwright.lite.format import Model, objects, versions

OPTIONS = {
    "IF": "IfOptions",
    "WHILE": "WhileOptions",
    "CALL": "CallOptions",
    "STABLEHLO_CASE": "StablehloCaseOptions",
    "STABLEHLO_COMPOSITE": "StableHLOCompositeOptions",
}


class Part(Build):
    """One subgraph of a model that others share."""

    def run(self, name: str, inputs: str, outputs: str, /, **fields: Any) -> Part:
        """A node that runs subgraphs: fields of its options."""
        options = objects.table_class(OPTIONS[name])(**fields)
        union = "builtin_options_2" if name.startswith("STABLEHLO") else "builtin_options"
        self.operator(versions.operator_code(name), inputs, outputs, **{union: options})
        return self


class Parts:
    """The model; subgraphs are numbered in the order they are begun."""

    def __init__(self) -> None:
        self.model = Model(buffers=[objects.Buffer()])

    def part(self, name: str, **tensors: Any) -> Part:
        """A subgraph; tensors: shape, or (shape, type), by name."""
        result = Part(name, self.model)
        for key, inputs in tensors.items():
            typed = isinstance(inputs, tuple) and bool(inputs) and isinstance(inputs[-1], str)
            result.tensor(key, *(inputs if typed else (inputs, "FLOAT32")))
        return result

    def bytes(self) -> bytes:
        return self.model.to_bytes()


INT: Any = ((), "INT32")
BOOL: Any = ((), "BOOL")


def branches(then: Any, other: Any, shape: Any = (3,), kind: str = "FLOAT32", out: Any = None) -> bytes:
    """y = then(x) if c else other(x); then, other: fill a Part whose input is x and whose output is y."""
    parts = Parts()
    x = (shape, kind)
    main = parts.part("main", c=BOOL, x=x, y=(shape if out is None else out, kind))
    main.run("IF", "c x", "y", then_subgraph_index=1, else_subgraph_index=2).ends("c x", "y")
    for name, fill in (("then", then), ("other", other)):
        part = parts.part(name, x=x)
        part.ends("x", fill(part) or "y")
    return parts.bytes()


def counting(limit: int, step: Any = None, **variables: Any) -> bytes:
    """Variables i (int32) and others, `limit` turns; step(part): the body's other outputs, by default their inputs."""
    parts = Parts()
    names = " ".join(variables)
    main = parts.part("main", i=INT, **variables, **{f"{n}_out": v for n, v in variables.items()}, i_out=INT)
    outs = " ".join(f"{n}_out" for n in variables)
    main.run("WHILE", f"i {names}", f"i_out {outs}", cond_subgraph_index=1, body_subgraph_index=2)
    main.ends(f"i {names}", f"i_out {outs}")
    cond = parts.part("cond", i=INT, **variables, more=BOOL)
    cond.tensor("limit", type="INT32", data=np.int32(limit))
    cond.op("LESS", "i limit", "more").ends(f"i {names}", "more")
    body = parts.part("body", i=INT, **variables, next=INT)
    body.tensor("one", type="INT32", data=np.int32(1))
    inputs = (step(body) if step else None) or names
    body.op("ADD", "i one", "next").ends(f"i {names}", f"next {inputs}")
    return parts.bytes()


def deep(levels: int) -> bytes:
    """CALLs inside CALLs; y = x + 1 at the bottom."""
    parts = Parts()
    for level in range(levels):
        part = parts.part(f"level_{level}", x=(3,), y=(3,))
        part.run("CALL", "x", "y", subgraph=level + 1).ends("x", "y")
    last = parts.part("last", x=(3,), y=(3,))
    last.tensor("one", data=np.float32(1))
    last.op("ADD", "x one", "y").ends("x", "y")
    return parts.bytes()
