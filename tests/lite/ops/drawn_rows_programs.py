"""Rows of the operators that run subgraphs or keep something from run to run.

Lives here: rows, and the small models they draw.  Not here: models of several signatures (tests/lite/state).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from drawn import NUMPY, Draw, Drawn, Row, T
from lite_kit import Build

from opwright.lite.format import schema
from opwright.lite.format.flexbuffers import encode_options

NUMBERS = (
    "INT8",
    "UINT8",
    "INT16",
    "UINT16",
    "INT32",
    "UINT32",
    "INT64",
    "UINT64",
    "FLOAT16",
    "FLOAT32",
    "FLOAT64",
    "BFLOAT16",
    "BOOL",
    "COMPLEX64",
    "COMPLEX128",
)
WHOLE = (*NUMBERS, "STRING")
JOINED = ("INT8", "UINT8", "INT16", "INT32", "INT64", "FLOAT32", "BOOL")


class Program(Build):
    """A model line by line."""

    def tensors(self, names: str, shape: Any, type: str) -> Program:
        for name in names.split():
            self.tensor(name, shape, type)
        return self

    def drawn(self, inputs: list[T], runs: int = 1) -> Drawn:
        return Drawn(list(inputs), [], model=self.model, runs=runs)


def scalar(kind: str, value: Any) -> T:
    return T(kind, (), values=np.array(value, NUMPY[kind]))


# ---- branches -------------------------------------------------------------------------------------------------------


def any_shape(d: Draw) -> tuple[int, ...]:
    """Of rank 0 to 3, but for strings: of one of these the official interpreter gives the bytes of a pointer."""
    return d.shape(d.size(int(d.kind == "STRING"), 3))


def passes(b: Program, d: Draw, shape: Any, name: str) -> None:
    """A subgraph that gives its inputs, one of them or a constant as another, straight or in another order."""
    b.subgraph(name).tensors("p q", shape, d.kind)
    if d.kind != "STRING":  # the official interpreter does not take constants of strings as outputs
        b.tensor("k", type=d.kind, data=d.values(d.kind, shape))
    b.ends("p q", d.one("p q", "q p", "p p", "p k" if d.kind != "STRING" else "q q"))


def branches(d: Draw) -> Drawn:
    shape = any_shape(d)
    b = Program().tensor("c", (), "BOOL").tensors("p q r s", shape, d.kind)
    b.node("IF", "c p q", "r s", then_subgraph_index=1, else_subgraph_index=2).ends("c p q", "r s")
    passes(b, d, shape, "then")
    passes(b, d, shape, "else")
    return b.drawn([scalar("BOOL", d.one(True, False)), d.t(*shape), d.t(*shape)], runs=2)


def grows(d: Draw) -> Drawn:
    """Branches that give other shapes: one joins, the other passes on."""
    n = d.size(1, 3)
    b = Program().tensor("c", (), "BOOL").tensors("p", (n, 2), d.kind).tensors("r", (), d.kind)
    b.node("IF", "c p", "r", then_subgraph_index=1, else_subgraph_index=2).ends("c p", "r")
    b.subgraph("then").tensors("p", (n, 2), d.kind).tensors("y", (2 * n, 2), d.kind)
    b.node("CONCATENATION", "p p", "y").ends("p", "y")
    b.subgraph("else").tensors("p", (n, 2), d.kind).ends("p", "p")
    return b.drawn([scalar("BOOL", d.one(True, False)), d.t(n, 2)], runs=2)


def cases(d: Draw) -> Drawn:
    shape = any_shape(d)
    b = Program().tensor("c", (), "INT32").tensors("p q r s", shape, d.kind)
    count = d.size(1, 4)
    b.node("STABLEHLO_CASE", "c p q", "r s", branch_subgraph_indices=list(range(1, count + 1))).ends("c p q", "r s")
    for i in range(count):
        passes(b, d, shape, f"case {i}")
    return b.drawn([scalar("INT32", d.size(0, count - 1)), d.t(*shape), d.t(*shape)], runs=2)


def composite(d: Draw) -> Drawn:
    shape = any_shape(d)
    b = Program().tensors("p q r s", shape, d.kind)
    b.node(
        "STABLEHLO_COMPOSITE",
        "p q",
        "r s",
        name="vendor.swap",
        decomposition_subgraph_index=1,
        composite_attributes=np.frombuffer(encode_options({"level": 3}), np.uint8),
        version=1,
    ).ends("p q", "r s")
    passes(b, d, shape, "meaning")
    return b.drawn([d.t(*shape), d.t(*shape)], runs=2)


# ---- loops ----------------------------------------------------------------------------------------------------------


def below(b: Program, limit: int, shape: Any, kind: str) -> None:
    """A condition: the counter is below a limit."""
    b.subgraph("below").tensor("n", (), "INT32").tensors("p", shape, kind)
    b.tensor("limit", type="INT32", data=np.int32(limit)).tensor("go", (), "BOOL")
    b.node("LESS", "n limit", "go").ends("n p", "go")


def counted(b: Program) -> Program:
    b.tensor("n", (), "INT32").tensor("one", type="INT32", data=np.int32(1)).tensor("m", (), "INT32")
    return b.node("ADD", "n one", "m")


def loop(d: Draw) -> Drawn:
    """Turns that join what they carry with itself, so that its shape changes; some loops make none."""
    b = Program().tensors("n m", (), "INT32").tensors("p", (1, 2), d.kind).tensors("r", (), d.kind)
    b.node("WHILE", "n p", "m r", cond_subgraph_index=1, body_subgraph_index=2).ends("n p", "m r")
    below(b, d.size(0, 4), (1, 2), d.kind)
    counted(b.subgraph("body")).tensors("p", (1, 2), d.kind).tensors("y", (1, 2), d.kind)
    b.node("CONCATENATION", "p p", "y").ends("n p", "m y")
    return b.drawn([scalar("INT32", d.size(0, 2)), d.t(1, 2)], runs=2)


def carried(d: Draw) -> Drawn:
    """Turns that carry a tensor as it is; strings through a RESHAPE, as the official interpreter else loses them."""
    shape = any_shape(d)
    b = Program().tensors("n m", (), "INT32").tensors("p r", shape, d.kind)
    b.node("WHILE", "n p", "m r", cond_subgraph_index=1, body_subgraph_index=2).ends("n p", "m r")
    below(b, d.size(0, 4), shape, d.kind)
    counted(b.subgraph("body")).tensors("p y", shape, d.kind)
    if d.kind == "STRING":
        b.tensor("s", type="INT32", data=np.int32(shape)).node("RESHAPE", "p s", "y")
    b.ends("n p", "m y" if d.kind == "STRING" else "m p")
    return b.drawn([scalar("INT32", d.size(0, 2)), d.t(*shape)], runs=2)


def nested(d: Draw) -> Drawn:
    """Four levels: a loop of branches, one of which is a loop, whose body branches."""
    b = Program().tensors("n m", (), "INT32").tensors("p r", (3,), d.kind)
    b.node("WHILE", "n p", "m r", cond_subgraph_index=1, body_subgraph_index=2).ends("n p", "m r")
    below(b, d.size(1, 4), (3,), d.kind)
    counted(b.subgraph("outer")).tensors("p y", (3,), d.kind).tensor("c", (), "BOOL")
    b.tensor("two", type="INT32", data=np.int32(d.size(0, 3))).tensor("zero", type="INT32", data=np.int32(0))
    b.tensor("k", (), "INT32")
    b.node("LESS", "n two", "c").node("IF", "c p zero", "y k", then_subgraph_index=3, else_subgraph_index=4)
    b.ends("n p", "m y")
    b.subgraph("then").tensors("p y", (3,), d.kind).tensors("n m", (), "INT32")
    b.node("WHILE", "n p", "m y", cond_subgraph_index=5, body_subgraph_index=6).ends("p n", "y m")
    b.subgraph("else").tensors("p y", (3,), d.kind).tensor("n", (), "INT32").node("ADD", "p p", "y").ends("p n", "y n")
    below(b, d.size(0, 3), (3,), d.kind)
    counted(b.subgraph("inner")).tensors("p y", (3,), d.kind).tensor("c", (), "BOOL")
    b.node("EQUAL", "n one", "c").node("IF", "c p", "y", then_subgraph_index=7, else_subgraph_index=8)
    b.ends("n p", "m y")
    b.subgraph("double").tensors("p y", (3,), d.kind).node("ADD", "p p", "y").ends("p", "y")
    b.subgraph("square").tensors("p y", (3,), d.kind).node("MUL", "p p", "y").ends("p", "y")
    return b.drawn([scalar("INT32", 0), d.t(3, low=-2, high=2)], runs=2)


# ---- what stays from run to run -------------------------------------------------------------------------------------


def variable(d: Draw) -> Drawn:
    """A variable that a subgraph sets once; each run gives its value and then sets it to the input."""
    shape = any_shape(d)
    b = Program().tensor("h", (), "RESOURCE").tensors("x", shape, d.kind)
    b.tensors("y", shape, d.kind).node("CALL_ONCE", "", "", init_subgraph_index=1)
    b.node("VAR_HANDLE", "", "h", shared_name="v", container="c").node("READ_VARIABLE", "h", "y")
    b.node("ASSIGN_VARIABLE", "h x", "").ends("x", "y")
    b.subgraph("init").tensor("h", (), "RESOURCE").tensor("k", type=d.kind, data=d.values(d.kind, shape))
    b.node("VAR_HANDLE", "", "h", shared_name="v", container="c").node("ASSIGN_VARIABLE", "h k", "").ends()
    return b.drawn([d.t(*shape)], runs=3)


def table(d: Draw) -> Drawn:
    """A hash table of keys of the row's type, filled once, the first of equal keys counting."""
    other = "INT64" if d.kind == "STRING" else "STRING"
    n, shape = d.size(1, 5), d.shape(d.size(1, 2))
    types = {"key_dtype": schema.TensorType[d.kind], "value_dtype": schema.TensorType[other], "table_id": d.size(1, 9)}
    b = Program().tensor("h", (1,), "RESOURCE").tensors("x", shape, d.kind).tensors("y", shape, other)
    b.tensor("else", type=other, data=d.values(other, (1,))).tensor("size", (1,), "INT64")
    b.node("CALL_ONCE", "", "", init_subgraph_index=1).node("HASHTABLE", "", "h", **types)
    b.node("HASHTABLE_FIND", "h x else", "y").node("HASHTABLE_SIZE", "h", "size").ends("x", "y size")
    b.subgraph("init").tensor("h", (1,), "RESOURCE").tensor("k", type=d.kind, data=d.values(d.kind, (n,), -2, 3))
    b.tensor("v", type=other, data=d.values(other, (n,)))
    b.node("HASHTABLE", "", "h", **types).node("HASHTABLE_IMPORT", "h k v", "").ends()
    return b.drawn([d.t(*shape, low=-2, high=3)], runs=2)


ROWS = [
    Row("IF", WHOLE, branches),
    Row("IF", JOINED, grows, label="IF of two shapes"),
    Row("STABLEHLO_CASE", WHOLE, cases, path="OPT"),
    Row("STABLEHLO_COMPOSITE", WHOLE, composite),
    Row("WHILE", WHOLE, carried),
    Row("WHILE", JOINED, loop, label="WHILE of growing shapes"),
    Row("WHILE", ("FLOAT32", "INT32", "INT64"), nested, label="WHILE and IF, four deep"),
    Row("CALL_ONCE", NUMBERS, variable, label="CALL_ONCE and a variable"),
    Row("HASHTABLE", ("INT64", "STRING"), table, path="OPT"),
]
