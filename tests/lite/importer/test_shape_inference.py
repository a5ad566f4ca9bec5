"""Shapes of imported graphs for the sizes that inputs get. Oracle: the official interpreter, after a run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from lite_kit import Build

from opwright.core.errors import InvalidArgumentError
from opwright.lite.format import Model
from opwright.lite.importer import import_graph, operator_of
from opwright.lite.shape_inference import with_shapes

CORPUS = Path(__file__).parents[2] / "data" / "tflite"
FILES = ("cnn_int8", "cnn_int8_unknown_batch", "dynamic_shapes", "while_growing", "ranking", "slicing", "cnn_float16")


def official(path, inputs, sizes):
    """Shapes by tensor, once the model has run on zeros."""
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    plain = litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = litert.Interpreter(model_path=str(path), experimental_op_resolver_type=plain)
    for position, shape in sizes.items():
        interpreter.resize_tensor_input(inputs[position], shape)
    interpreter.allocate_tensors()
    for detail in interpreter.get_input_details():
        interpreter.set_tensor(detail["index"], np.zeros(detail["shape"], detail["dtype"]))
    interpreter.invoke()
    return {d["index"]: d["shape"].tolist() for d in interpreter.get_tensor_details()}


def agrees(name, size):
    """Shapes that are known are those of the official interpreter; says how many are."""
    path = CORPUS / f"{name}.tflite"
    model = Model.read(path)
    (subgraph, *_), graph = model.subgraphs, import_graph(model)
    sizes = {
        i: [size if d is None else d for d in v.shape.dims]
        for i, v in enumerate(graph.inputs)
        if v.shape.dims is not None and None in v.shape.dims
    }
    if size is None:
        sizes = {}
    expected = official(path, np.asarray(subgraph.inputs).tolist(), sizes)
    values = {v.name: v for v in with_shapes(graph, sizes).values()}
    known = 0
    for node in graph.nodes:
        if (place := operator_of(node)) is None:
            continue
        for t, v in zip(np.asarray(subgraph.operators[place[1]].outputs).tolist(), node.outputs, strict=True):
            actual = values[v.name].shape
            assert actual.is_compatible_with(expected[t]), (name, size, node)
            known += actual.is_fully_defined()
    return known


def test_shapes_are_the_official_ones():
    """For the file's own sizes, and for inputs of other sizes where it leaves them open."""
    for name in FILES:
        assert agrees(name, None) > 0, name
        assert agrees(name, 3) > 0, name


def test_graphs_that_nodes_run_have_the_shapes_of_operands():
    """A loop's variable that grows is open; each graph is made once for each set of shapes."""
    graph = with_shapes(import_graph(Model.read(CORPUS / "while_growing.tflite")))
    loops = [n for n in graph.nodes if n.op.name == "WHILE"]
    assert loops
    for node in loops:
        for held in node.subgraphs:
            assert [v.dtype for v in held.inputs] == [v.dtype for v in node.operands]
            assert all(a.shape.is_compatible_with(b.shape) for a, b in zip(held.inputs, node.operands))
        assert any(None in (v.shape.dims or (None,)) for v in node.attrs["body"].inputs)


def test_other_ranks_are_refused():
    """A shape that the file does not allow is an error that names the input."""
    graph = import_graph(Model.read(CORPUS / "cnn_int8_unknown_batch.tflite"))
    with pytest.raises(InvalidArgumentError, match="cannot have this shape"):
        with_shapes(graph, {0: [3]})


def test_nodes_that_no_rule_takes_are_refused():
    """Choices among no branches, and more outputs than an operator has, are errors that name the operator."""
    b = Build().tensor("i", (), "INT32").node("STABLEHLO_CASE", "i x", "y", branch_subgraph_indices=[])
    for content, says in (
        (b.done("i x"), "STABLEHLO_CASE: there is no branch"),
        (Build().op("NEG", "x", "y z").done(), "another number of outputs"),
    ):
        with pytest.raises(InvalidArgumentError, match=says):
            with_shapes(import_graph(Model.read(content)))
