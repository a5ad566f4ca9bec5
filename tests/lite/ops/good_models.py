"""Models that run, some of every operator, shipped custom ones too: what tests of bad models begin with.

Lives here: `GOOD` (models by operator), `Good`, handwritten models of operators that run subgraphs or keep state.
Not here: the tables these come from (cases.py, drawn_rows_*.py, recurrent_models.py), what is broken in them
(model_mutations.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import cases
import numpy as np
import one_operator
import recurrent_models
from drawn import Draw, feeds, model_of
from drawn_table import ROWS
from lite_kit import Build

from opwright.lite import ops
from opwright.lite.format import Model, objects, versions


class _Built(NamedTuple):
    content: bytes
    feeds: list[np.ndarray] = []


class Good:
    """A model of an operator, which is `node` of its first subgraph. build: returns it, called when it is needed."""

    def __init__(self, name: str, label: str, build: Callable[[], _Built], node: int = 0) -> None:
        self.name, self.label, self.node = name, label, node
        self._build = build

    @functools.cached_property
    def _built(self) -> _Built:
        return self._build()

    @property
    def content(self) -> bytes:
        return self._built.content

    @property
    def feeds(self) -> list[np.ndarray]:
        """Values for its inputs, as far as known."""
        return self._built.feeds

    def model(self) -> Model:
        """A copy, to be changed."""
        return Model.read(self.content)

    def __str__(self) -> str:
        return f"{self.name} {self.label}"


def _of_case(name: str, row: Any) -> _Built:
    model = one_operator.model_of(name, row, one_operator.output_types(name, row))
    return _Built(model.to_bytes(), one_operator.feeds(row))


def _of_cases() -> Iterator[Good]:
    for name, rows in cases.CASES.items():
        for i, row in enumerate(rows):
            if not row.says:
                yield Good(name, f"case {i}", functools.partial(_of_case, name, row))


def _of_row(row: Any, kind: str) -> _Built:
    drawn = row.draw(Draw(5, kind))
    return _Built(model_of(row.name, drawn).to_bytes(), feeds(drawn))


def _of_rows() -> Iterator[Good]:
    for row in ROWS:
        for kind in row.kinds:
            yield Good(row.name, f"{row.label} {kind}", functools.partial(_of_row, row, kind))


def _recurrent(label: str, kind: str, seed: int) -> _Built:
    return _Built(recurrent_models.MODELS[label][0](seed, kind).to_bytes())


def _of_recurrent() -> Iterator[Good]:
    for label, kind in recurrent_models.ROWS:
        for seed in (0, 3):
            yield Good(label.split()[0], f"{label} {kind} {seed}", functools.partial(_recurrent, label, kind, seed))


def _written(name: str, content: bytes, values: list[np.ndarray] | None = None, node: int = 0) -> Good:
    return Good(name, "handwritten", lambda: _Built(content, values or []), node)


class _Lines(Build):
    """Several nodes, whose options may be in either union."""

    def node(self, name: str, inputs: str, outputs: str, /, **options: Any) -> Any:
        table = ops.get(name).options
        result = objects.table_class(table)(**options) if table else None
        union = "builtin_options_2" if name.startswith("STABLEHLO") else "builtin_options"
        return self.operator(versions.operator_code(name), inputs, outputs, **{union: result})


def _calling(name: str, inputs: str, /, **options: Any) -> Good:
    """y = of two subgraphs x + x and x; c: what chooses; n: a loop's counter."""
    b = _Lines().tensor("c", (), "BOOL").tensor("i", (), "INT32").tensor("x", (2, 3)).tensor("y", (2, 3))
    b.node(name, inputs, "y", **options).ends(inputs, "y")
    b.subgraph("double").tensor("x", (2, 3)).tensor("y", (2, 3)).node("ADD", "x x", "y").ends("x", "y")
    b.subgraph("square").tensor("x", (2, 3)).tensor("y", (2, 3)).node("MUL", "x x", "y").ends("x", "y")
    return _written(name, b.done(None))


def _loop() -> Good:
    b = _Lines().tensor("n", (), "INT32").tensor("x", (2,)).tensor("m", (), "INT32").tensor("y", (2,))
    b.node("WHILE", "n x", "m y", cond_subgraph_index=1, body_subgraph_index=2).ends("n x", "m y")
    b.subgraph("cond").tensor("n", (), "INT32").tensor("x", (2,)).tensor("four", type="INT32", data=np.int32(4))
    b.tensor("go", (), "BOOL").node("LESS", "n four", "go").ends("n x", "go")
    b.subgraph("body").tensor("n", (), "INT32").tensor("x", (2,)).tensor("one", type="INT32", data=np.int32(1))
    b.tensor("m", (), "INT32").tensor("y", (2,)).node("ADD", "n one", "m").node("ADD", "x x", "y").ends("n x", "m y")
    return _written("WHILE", b.done(None), [np.int32(1).reshape(()), np.float32([1, 2])])


def _variables() -> Iterator[Good]:
    b = _Lines().tensor("h", (), "RESOURCE").tensor("x", (2,)).tensor("y", (2,))
    b.node("CALL_ONCE", "", "", init_subgraph_index=1).node("VAR_HANDLE", "", "h", shared_name="v")
    b.node("ASSIGN_VARIABLE", "h x", "").node("READ_VARIABLE", "h", "y").ends("x", "y")
    b.subgraph("init").tensor("c", data=np.float32([5, 6])).tensor("h", (), "RESOURCE")
    content = b.node("VAR_HANDLE", "", "h", shared_name="v").node("ASSIGN_VARIABLE", "h c", "").ends().done(None)
    for node, name in enumerate(("CALL_ONCE", "VAR_HANDLE", "ASSIGN_VARIABLE", "READ_VARIABLE")):
        yield _written(name, content, node=node)


def _tables() -> Iterator[Good]:
    b = _Lines().tensor("q", (3,), "STRING").tensor("found", (3,), "INT64").tensor("n", (1,), "INT64")
    b.tensor("keys", type="STRING", data=[b"a", b"b"]).tensor("values", type="INT64", data=np.int64([1, 2]))
    b.tensor("none", type="INT64", data=np.int64([-1])).tensor("h", (1,), "RESOURCE")
    b.node("HASHTABLE", "", "h", table_id=3, key_dtype=5, value_dtype=4).node("HASHTABLE_IMPORT", "h keys values", "")
    b.node("HASHTABLE_FIND", "h q none", "found").node("HASHTABLE_SIZE", "h", "n").ends("q", "found n")
    content = b.done(None)
    for node, name in enumerate(("HASHTABLE", "HASHTABLE_IMPORT", "HASHTABLE_FIND", "HASHTABLE_SIZE")):
        yield _written(name, content, node=node)


def _reducing() -> Iterator[Good]:
    def adding(b: Any) -> bytes:
        b.subgraph("add").tensor("a", ()).tensor("b", ()).tensor("s", ()).node("STABLEHLO_ADD", "a b", "s")
        return b.ends("a b", "s").done(None)

    b = _Lines().tensor("x", (5, 4)).tensor("i", (3, 1), "INT32").tensor("u", (3, 4)).tensor("y", (5, 4))
    b.node(
        "STABLEHLO_SCATTER",
        "x i u",
        "y",
        update_window_dims=[1],
        inserted_window_dims=[0],
        scatter_dims_to_operand_dims=[0],
        index_vector_dim=1,
        update_computation_subgraph_index=1,
    )
    rows = np.int32([[3], [0], [4]])
    values = [np.zeros((5, 4), np.float32), rows, np.ones((3, 4), np.float32)]
    yield _written("STABLEHLO_SCATTER", adding(b.ends("x i u", "y")), values)
    b = _Lines().tensor("x", (5, 4)).tensor("i", ()).tensor("y", (4, 3))
    b.node(
        "STABLEHLO_REDUCE_WINDOW",
        "x i",
        "y",
        window_dimensions=[2, 2],
        window_strides=[1, 1],
        base_dilations=[1, 1],
        window_dilations=[1, 1],
        padding=[0, 0, 0, 0],
        body_subgraph_index=1,
    )
    yield _written("STABLEHLO_REDUCE_WINDOW", adding(b.ends("x i", "y")))


def _handwritten() -> Iterator[Good]:
    yield _calling("IF", "c x", then_subgraph_index=1, else_subgraph_index=2)
    yield _calling("STABLEHLO_CASE", "i x", branch_subgraph_indices=[1, 2])
    yield _calling("CALL", "x", subgraph=1)
    yield _calling("STABLEHLO_COMPOSITE", "x", decomposition_subgraph_index=1, name="my.double")
    yield _loop()
    yield from _variables()
    yield from _tables()
    yield from _reducing()


@functools.cache
def good() -> dict[str, list[Good]]:
    """Models by operator, all that the tables have; operators of the dialect first."""
    result: dict[str, list[Good]] = {name: [] for name in ops.list_names()}
    for source in (_of_cases, _of_rows, _of_recurrent, _handwritten):
        for created in source():
            result.setdefault(created.name, []).append(created)
    return result
