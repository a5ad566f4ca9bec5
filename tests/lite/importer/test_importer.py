"""Files read into graphs of the lite dialect and written again: nothing that a file means is lost.

Oracles: the file itself, compared as bytes where this package wrote it and by `canonical` (from the schema alone) where
another program did; the verifier's own words for what is refused.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import opwright as ow
from opwright import lite
from opwright.core.errors import InvalidArgumentError, OpError, UnimplementedError
from opwright.graph.builder import verify
from opwright.graph.ir import same
from opwright.lite.convert.export import export
from opwright.lite.format import Model, objects, versions
from opwright.lite.importer import import_graph, import_model, operator_of
from opwright.lite.ops.module import ExternalOp, parse_graph

sys.path += [str(Path(__file__).parents[1] / folder) for folder in ("ops", "interpreter", "importer")]
from canonical import canonical
from good_models import good
from lite_kit import Build

from thorough import THOROUGH, some


def survives(content: bytes, label: str) -> None:
    """The file is the same after import and export, and so is each graph after printing and parsing."""
    module = import_model(Model.read(content))
    for graph in module.graphs:
        verify(graph)
        assert same(parse_graph(str(graph)), graph), label
    again = Model.read(export(module).to_bytes())
    assert canonical(again) == canonical(Model.read(content)), label


def converted(function, *specs, **settings) -> bytes:
    converter = lite.TFLiteConverter.from_concrete_functions([ow.function(function).get_concrete_function(*specs)])
    for name, value in settings.items():
        setattr(converter, name, value)
    return converter.convert()


@pytest.mark.parametrize("part", range(4))
def test_files_of_every_operator_survive(part):
    """One model of each kind of row that the operators' tables have, control flow and state among them."""
    for name, models in list(good().items())[part::4]:
        for model in some(models):
            survives(model.content, f"{name} {model.label}")


def test_official_files_survive():
    """Every file of the official corpus: of older converters, quantised in every way, with state and control flow."""
    files = sorted((Path(__file__).parents[2] / "data" / "tflite").glob("*.tflite"))
    assert len(files) >= 70
    for path in some(files):
        survives(path.read_bytes(), path.name)


def mlp(x):
    w = ow.constant(np.linspace(-1, 1, 32 * 64, dtype=np.float32).reshape(32, 64))
    return {"y": ow.nn.relu(ow.matmul(x, w) + 1.0), "z": ow.reduce_sum(x, axis=1)}


def looping(n, x):
    def body(n, x):
        return n - 1, ow.cond(n > 2, lambda: x + 1.0, lambda: x * 2.0)

    return ow.while_loop(lambda n, x: n > 0, body, [n, x])


def samples():
    return [[np.linspace(-1, 1, 32, dtype=np.float32)[None]]]


def test_our_files_keep_their_bytes():
    """Files of this package's converter are written again with identical bytes."""
    batch, open_batch = ow.TensorSpec([1, 32]), ow.TensorSpec([None, 32])
    integers = {"optimizations": [lite.Optimize.DEFAULT], "representative_dataset": samples}
    for label, content in {
        "float": converted(mlp, batch),
        "any batch": converted(mlp, open_batch),
        "control flow": converted(looping, ow.TensorSpec([], ow.int32), ow.TensorSpec([None, 4])),
        "int8": converted(mlp, batch, **integers),
        "int8 ends": converted(mlp, batch, **integers, inference_input_type=ow.int8, inference_output_type=ow.int8),
        "strings": converted(lambda: ow.constant([b"a", b"bc"])),
    }.items():
        assert export(import_model(Model.read(content))).to_bytes() == content, label
        survives(content, label)


def test_constants_are_views():
    """A constant of an imported graph has the file's memory."""
    content = converted(mlp, ow.TensorSpec([1, 32]))
    (graph,) = import_model(Model.read(content)).graphs
    weights = max((n.attrs["value"] for n in graph.nodes if n.op.name == "Const"), key=lambda array: array.size)
    start = np.frombuffer(content, np.uint8).__array_interface__["data"][0]
    assert weights.size == 32 * 64
    assert start <= weights.__array_interface__["data"][0] < start + len(content)
    assert not weights.flags.writeable


def test_nodes_know_their_operators():
    """Every node but constants says which operator of the file it is; subgraphs are imported once."""
    b = Build().tensor("c", (), "BOOL").node("IF", "c x", "y", then_subgraph_index=1, else_subgraph_index=1)
    b.node("IF", "c y", "z", then_subgraph_index=1, else_subgraph_index=1).ends("c x", "z")
    b.subgraph("double").op("NEG", "x", "m").op("ADD", "m x", "y").ends("x", "y")
    module = import_model(Model.read(b.done(None)))
    main, double = module.graphs
    assert [operator_of(n) for n in main.nodes] == [(0, 0), (0, 1)]
    assert [operator_of(n) for n in double.nodes] == [(1, 0), (1, 1)]
    assert {g for n in main.nodes for g in n.subgraphs} == {double}
    assert operator_of(import_graph(Model.read(converted(mlp, ow.TensorSpec([1, 32])))).nodes[0]) is None


def test_external_operators_keep_their_options():
    """A custom operator without a definition keeps name, version and bytes, in graphs and in their text."""
    content = Build().custom("two words", "x", "y", version=3, a=1, b="text").done()
    model = Model.read(content)
    (graph,) = import_model(model).graphs
    (node,) = graph.nodes
    assert node.op == ExternalOp("two words") != ExternalOp("other")
    assert node.attrs["options"] == bytes(model.subgraphs[0].operators[0].custom_options)
    assert (node.attrs["version"], node.effect) == (3, "write")
    assert '"' + "two words" + '"' in str(graph).replace("'", '"')
    survives(content, "custom")
    op = Model.read(export(import_model(model)).to_bytes()).operator_codes[0]
    assert (op.custom_code, op.version) == ("two words", 3)


def test_definitions_stand_for_custom_operators():
    """With definitions a custom operator's options become attributes, and lacking ones have their defaults."""

    @ow.operator
    class Scaled:
        x = ow.Input(dtypes=ow.float32)
        y = ow.Output(like="x")
        by = ow.Attr(float, default=2.0)
        also = ow.Attr(int, default=7)

        def compute(op, x):
            return x * op.by

    model = Model.read(Build().custom("Scaled", "x", "y", by=3.0).custom("Other", "y", "z").done(outputs="z"))
    graph = import_graph(model, 0, lambda name, version: Scaled if name == "Scaled" else None)
    first, second = graph.nodes
    assert first.op is Scaled
    assert dict(first.attrs) == {"by": 3.0, "also": 7}
    assert second.op == ExternalOp("Other")


REFUSED = {
    # name: (a model's file, error, what it says)
    "cycle": (lambda: Build().op("NEG", "y", "x").op("NEG", "x", "y").done(None), InvalidArgumentError, "not produced"),
    "calls itself": (lambda: Build().node("CALL", "x", "y", subgraph=0).done(), InvalidArgumentError, "calls itself"),
    "lacks its options": (lambda: Build().operator(code("CALL"), "x", "y").done(), InvalidArgumentError, "missing"),
    "options of another operator": (
        lambda: Build().operator(code("ADD"), "x x", "y", builtin_options=objects.MulOptions()).done(),
        InvalidArgumentError,
        "another operator",
    ),
    "wrong number of operands": (lambda: Build().op("ADD", "x", "y").done(), TypeError, "number of inputs"),
    "no kernel anywhere": (
        lambda: Build().operator(code("STABLEHLO_TANH"), "x", "y").done(),
        UnimplementedError,
        "STABLEHLO_TANH",
    ),
    "input twice": (lambda: Build().op("ADD", "x x", "y").done("x x"), UnimplementedError, "several inputs"),
    "result that nothing writes": (
        lambda: Build().tensor("z").op("NEG", "x", "y").done("x", "y z"),
        InvalidArgumentError,
        "nothing writes",
    ),
}


def code(name):
    return versions.operator_code(name)


def test_refusals():
    """Broken files raise errors that say what is wrong, in the verifier's words where it sees it."""
    for label, (make, error, says) in REFUSED.items():
        model = Model.read(make())
        with pytest.raises(error) as raised:
            import_model(model)
        assert says in str(raised.value), label


def test_cut_and_changed_files_never_crash():
    """A flipped byte gives a graph or an error of this package, whichever byte it is."""
    content = bytearray(converted(looping, ow.TensorSpec([], ow.int32), ow.TensorSpec([None, 4])))
    rng = np.random.default_rng(0)
    for at in rng.integers(8, len(content), 300 if THOROUGH else 100):
        changed = bytearray(content)
        changed[at] ^= 1 << int(rng.integers(8))
        try:
            export(import_model(Model.read(bytes(changed))))
        except OpError:
            continue
