"""Pages of models: their content is that of the file, names cannot leave their element, pairs of nodes."""

import html.parser
import itertools
import json
import re
from pathlib import Path

import drawn_models
import numpy as np
import pytest
from click.testing import CliRunner

import opwright as ow
from opwright import errors
from opwright.graph.passes.identities import SHAPES, transpose
from opwright.lite.format import Model, versions
from opwright.lite.ops import operation_counts
from opwright.tools.cli import cli
from opwright.views.correspondence import differences, pair_nodes

FILES = Path(__file__).parents[1] / "data" / "tflite"


def content_of(page):
    start = page.index('id="content">') + len('id="content">')
    return json.loads(page[start : page.index("</script>", start)])


@pytest.mark.parametrize("name", ["cnn_int8", "while_loop", "lstm", "custom", "flex", "variables", "sparse_int8"])
def test_a_page_has_the_operators_of_the_file(name):
    path = FILES / f"{name}.tflite"
    model = Model.read(path)
    (document,) = content_of(ow.view(path).html)["models"]
    for subgraph, graph in zip(model.subgraphs, document["graphs"]):
        codes = [model.operator_codes[op.opcode_index] for op in subgraph.operators]
        nodes = [node for node in graph["nodes"] if node.get("at", "").startswith("node ")]
        names = [document["operators"][node["o"]]["name"] for node in nodes]
        assert names == [code.custom_code or versions.op_name(code) for code in codes]
        assert [node["v"] for node in nodes] == [int(code.version) for code in codes]
        for node, op in zip(nodes, subgraph.operators):
            inputs = [subgraph.tensors[t].name for t in op.inputs if t >= 0]
            assert [graph["values"][v][0] for v in node.get("i", ())] == inputs
            sizes = {
                t: len(model.buffers[subgraph.tensors[t].buffer].data)
                for t in op.inputs
                if t >= 0 and model.buffers[subgraph.tensors[t].buffer].data is not None
            }
            assert node.get("w", 0) in (0, sum(sizes.values()))


def test_bytes_of_constants_count_once():
    content = drawn_models.transformer(3)
    (document,) = ow.view(content).documents
    assert sum(node.get("w", 0) for node in document["graphs"][0]["nodes"]) == 4 * (16 * 16 + 16 + 3)
    assert document["graphs"][0]["nodes"][2]["s"] == ["model", "layer_0", "attention"]


class _Elements(html.parser.HTMLParser):
    def __init__(self, markup):
        super().__init__()
        self.elements = []
        self.feed(markup)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))


def test_names_cannot_leave_the_content():
    page = ow.view(drawn_models.hostile()).html
    plain = ow.view(drawn_models.transformer(1)).html
    tags = [tag for tag, _ in _Elements(page).elements]
    assert tags == [tag for tag, _ in _Elements(plain).elements]
    assert not any(name.startswith("on") for _, attrs in _Elements(page).elements for name in attrs)
    assert len(page) < len(plain) + 50_000  # of a file with names of megabytes
    assert {tag for tag, attrs in _Elements(page).elements if "src" in attrs or "href" in attrs} == set()
    assert "Permission is hereby granted" in page  # of the layout library, which the page contains


def test_pairs_of_a_model_and_its_quantized_form():
    a, b = (ow.view(FILES / f"{name}.tflite").documents[0] for name in ("cnn_int8_io", "cnn_float"))
    pairs = pair_nodes(a, b)
    names = [[d["operators"][n["o"]]["name"] for n in d["graphs"][0]["nodes"]] for d in (a, b)]
    assert all(names[0][i] == names[1][j] for i, j in pairs)
    assert len({j for _, j in pairs}) == len(pairs) == len(names[1])
    texts = [text for row in differences(a, b, pairs) for text in row]
    assert any("i8[" in text and "f32[" in text for text in texts)
    same = pair_nodes(a, a)
    assert same == [(i, i) for i in range(len(names[0]))]
    assert not any(differences(a, a, same))


def test_pairs_by_operator_where_names_differ():
    def document(ops):
        names = sorted(set(ops))
        nodes = [{"o": names.index(op), "n": f"{id(ops)} {i}", "a": 0} for i, op in enumerate(ops)]
        return {"operators": [{"name": n} for n in names], "graphs": [{"nodes": nodes, "values": []}], "attrs": [{}]}

    a, b = document(["ADD", "CONV", "MUL"]), document(["QUANT", "ADD", "CONV", "DEQUANT", "MUL"])
    assert pair_nodes(a, b) == [(0, 1), (1, 2), (2, 4)]


def test_zeros_among_weights():
    """A weight's elements are read from the file by NumPy; zero is its zero point."""
    for name, dtype in (("cnn_float", np.float32), ("cnn_int8", np.int8), ("sparse_int8", np.int8)):
        model = Model.read(FILES / f"{name}.tflite")
        subgraph = model.subgraphs[0]
        (document,) = ow.view(FILES / f"{name}.tflite").documents
        nodes = [node for node in document["graphs"][0]["nodes"] if node.get("at", "").startswith("node ")]
        checked = 0
        for node, operator in zip(nodes, subgraph.operators):
            weights = subgraph.tensors[operator.inputs[1]] if len(operator.inputs) > 2 else None
            if weights is None or weights.sparsity is not None or "z" not in node:
                continue
            parts = [np.frombuffer(model.buffers[weights.buffer].data, dtype)]
            bias = subgraph.tensors[operator.inputs[2]]
            parts.append(
                np.frombuffer(model.buffers[bias.buffer].data, np.float32 if dtype is np.float32 else np.int32)
            )
            expected = sum(int((part == 0).sum()) for part in parts) / sum(part.size for part in parts)
            assert node["z"] == pytest.approx(expected)
            checked += 1
        assert checked or name == "sparse_int8"
    (document,) = ow.view(FILES / "sparse_int8.tflite").documents
    assert max(node.get("z", 0) for node in document["graphs"][0]["nodes"]) > 0.5


def test_products_of_operators():
    """Each product of each element is counted by loops over the definition."""

    def loops(*ranges):
        return 2 * sum(1 for _ in itertools.product(*map(range, ranges)))

    count = operation_counts.arithmetic_operations
    x, conv = (1, 5, 4, 3), (2, 3, 3, 3)
    assert count("CONV_2D", [x, conv, (2,)], (1, 5, 4, 2)) == loops(5, 4, 2, 3, 3, 3)
    assert count("DEPTHWISE_CONV_2D", [x, (1, 3, 3, 6), (6,)], (1, 5, 4, 6)) == loops(5, 4, 6, 3, 3)
    assert count("FULLY_CONNECTED", [(7, 3), (4, 3), []], (7, 4)) == loops(7, 4, 3)
    assert count("CONV_3D", [(1, 4, 4, 4, 2), (2, 2, 2, 2, 5)], (1, 3, 3, 3, 5)) == loops(3, 3, 3, 5, 2, 2, 2, 2)
    assert count("TRANSPOSE_CONV", [(4,), (2, 3, 3, 3), x], (1, 10, 8, 2)) == loops(5, 4, 3, 3, 3, 2)
    assert count("BATCH_MATMUL", [(2, 3, 4), (2, 4, 5)], (2, 3, 5)) == loops(2, 3, 4, 5)
    assert count("BATCH_MATMUL", [(2, 4, 3), (2, 4, 5)], (2, 3, 5)) == loops(2, 3, 4, 5)  # x transposed
    assert count("RELU", [x], x) == 0


def test_weights_are_in_the_page_if_they_are_asked_for():
    assert "weights" not in ow.view(FILES / "cnn_float.tflite").documents[0]["graphs"][0]
    real = {}
    for name in ("cnn_float", "cnn_int8"):
        (graph,) = ow.view(FILES / f"{name}.tflite", weights=True).documents[0]["graphs"]
        real[name] = [row for row in graph["weights"].values() if row["counts"]]
    model = Model.read(FILES / "cnn_float.tflite")
    stored = [model.tensor_data(tensor) for tensor in model.subgraphs[0].tensors]
    arrays = [np.frombuffer(data, np.float32) for data in stored if data is not None and len(data) > 64]
    for array in (array.astype(np.float64) for array in arrays):
        (row,) = (row for row in real["cnn_float"] if (row["low"], row["high"]) == (array.min(), array.max()))
        assert row["mean"] == pytest.approx(array.mean())
        assert row["deviation"] == pytest.approx(array.std())
        assert sum(row["counts"]) == array.size
        # the quantized form of the same weights, as real numbers: within a step of 127
        near = [q for q in real["cnn_int8"] if sum(q["counts"]) == array.size]
        assert any(abs(q["deviation"] - row["deviation"]) < row["high"] / 127 for q in near)


def test_functions_and_models():
    @ow.function(input_signature=[ow.TensorSpec([2, 3])])
    def f(x):
        return ow.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, ow.tanh(y)), (ow.constant(0), x))[1]

    (document,) = ow.view(f).documents
    assert len(document["graphs"]) == 3
    (loop,) = [n for n in document["graphs"][0]["nodes"] if "g" in n]
    assert {name for name, _ in loop["g"]} == {"cond", "body"}
    names = {document["operators"][n["o"]]["name"] for g in document["graphs"] for n in g["nodes"]}
    assert "Tanh" in names
    tanh = next(op for op in document["operators"] if op["name"] == "Tanh")
    assert tanh["formula"] == ow.ops.get("Tanh").formula
    assert repr(ow.view(f)).startswith("<ModelView of f: ")
    dense = ow.keras.Sequential([ow.keras.Input((4,)), ow.keras.layers.Dense(2)])
    assert ow.view(dense).documents[0]["graphs"][0]["nodes"]


def test_files_of_other_kinds(tmp_path):
    """Each kind is drawn with the operators of its content, where no other framework is needed to read it."""
    helper = pytest.importorskip("onnx").helper
    f32 = 1  # TensorProto.FLOAT
    nodes = [helper.make_node("Relu", ["x"], ["r"], name="/a/r"), helper.make_node("Softmax", ["r"], ["y"])]
    ends = [helper.make_tensor_value_info(name, f32, [2, 3]) for name in "xy"]
    model = helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:]))
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    (tmp_path / "m.mlir").write_text(
        "module { func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {"
        " %y = stablehlo.tanh %x : tensor<2xf32> return %y : tensor<2xf32> } }"
    )
    ow.keras.Sequential([ow.keras.Input((4,)), ow.keras.layers.Dense(2, activation="relu")]).save(tmp_path / "m.keras")

    class Module(ow.Module):
        @ow.function
        def f(self, x):
            return ow.sinh(x)

    module = Module()
    module.f(ow.constant([1.0]))
    ow.saved_model.save(module, tmp_path / "saved")
    expected = {"m.onnx": {"Relu", "Softmax"}, "m.mlir": {"Tanh"}, "m.keras": {"MatMul", "Relu"}, "saved": {"Sinh"}}
    for name, operators in expected.items():
        (document,) = ow.view(tmp_path / name).documents
        assert {op["name"] for op in document["operators"]} >= operators, name
    foreign = Path(__file__).parents[1] / "data" / "keras" / "classifier.keras"
    assert ow.view(foreign).documents[0]["graphs"][0]["nodes"]


def rules_of(document, node):
    return [document["rules"][i].partition(":")[0] for i in node.get("m", ())]


def test_rules_behind_the_nodes_of_a_converted_file(tmp_path):
    """Merged nodes have the rules of their parts; the page, Netron's file and Model Explorer's say the same."""
    w = ow.Variable(np.ones((3, 3, 3, 8), np.float32))
    bias = ow.Variable(np.ones(8, np.float32))

    @ow.function(input_signature=[ow.TensorSpec([1, 8, 8, 3])])
    def f(x):
        y = ow.nn.relu(ow.nn.conv2d(x, w, 1, "SAME") + bias)
        return ow.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, ow.tanh(y)), (ow.constant(0), y))[1]

    converter = ow.lite.TFLiteConverter.from_concrete_functions([f.get_concrete_function()])
    drawing = ow.view(converter)
    (document,) = drawing.documents
    conv, loop = document["graphs"][0]["nodes"]
    assert {"conv_2d", "bias", "relu", "activation"} <= set(rules_of(document, conv))
    assert "copy_outputs" in rules_of(document, loop)
    assert conv["f"].startswith(f"{__file__}:")
    assert [rules_of(document, n) for n in document["graphs"][2]["nodes"]] == [["add"], ["tanh"]]
    text = "; then ".join(document["rules"][i] for i in conv["m"])
    assert text.encode() in drawing.netron()[0]
    (collection,) = drawing.model_explorer()
    shown = [{a["key"]: a["value"] for a in n["attrs"]} for n in collection["graphs"][0]["nodes"] if "attrs" in n]
    assert shown[0]["made by"] == text
    converter.optimizations = [ow.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([np.ones((1, 8, 8, 3), np.float32)] for _ in range(2))
    (document,) = ow.view(converter).documents
    rules = [rules_of(document, node) for node in document["graphs"][0]["nodes"]]
    assert rules[0] == ["quantize"]
    assert rules[1][-1] == "quantize"
    assert "conv_2d" in rules[1]

    module = ow.Module()
    module.f, module.variables_of_f = f, [w, bias]
    ow.saved_model.save(module, tmp_path / "saved", signatures=f)
    page = tmp_path / "page.html"
    assert CliRunner().invoke(cli, ["view", str(tmp_path / "saved"), "--converted", "-o", str(page)]).exit_code == 0
    (document,) = content_of(page.read_text("utf-8"))["models"]
    assert "activation" in rules_of(document, document["graphs"][0]["nodes"][0])
    assert CliRunner().invoke(cli, ["view", "m.tflite", "--converted"]).exit_code == 2


def test_rules_of_passes_and_importers():
    @ow.function(input_signature=[ow.TensorSpec([2, 3, 4])])
    def f(x):
        return ow.transpose(ow.transpose(x, [1, 2, 0]), [1, 2, 0])

    (document,) = ow.view(f).documents
    composed, returned = (rules_of(document, node) for node in document["graphs"][0]["nodes"])
    assert composed == [rule.name for rule in SHAPES if rule.rewrite is transpose]
    assert returned == []
    program = ow.from_stablehlo(
        "module { func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {"
        " %y = stablehlo.tanh %x : tensor<2xf32> return %y : tensor<2xf32> } }"
    )
    (document,) = ow.view(program).documents
    assert "stablehlo stablehlo.tanh: the importer's rule" in document["rules"]


def test_objects_without_a_graph_are_refused(tmp_path):
    with pytest.raises(errors.InvalidArgumentError, match="has no graph"):
        ow.view(3)
    with pytest.raises(errors.NotFoundError, match="no such file"):
        ow.view(tmp_path / "none.tflite")
    with pytest.raises(errors.InvalidArgumentError, match="has not been traced"):
        ow.view(ow.function(lambda x: x))
    with pytest.raises(errors.InvalidArgumentError, match=r"\.tflite"):
        ow.view(drawn_models.transformer(1), runs=3)
    with pytest.raises(errors.InvalidArgumentError, match="vs="):
        ow.view(FILES / "cnn_float.tflite", errors=True)


def test_reasons_of_nodes_without_machine_code():
    (document,) = ow.view(FILES / "flex_strings.tflite", runs=1).documents
    assert all(node["k"].startswith("the interpreter: ") for node in document["graphs"][0]["nodes"])


def test_model_explorer_reads_edges():
    (collection,) = ow.view(drawn_models.transformer(1)).model_explorer()
    (graph,) = collection["graphs"]
    nodes = {node["id"]: node for node in graph["nodes"]}
    assert len(nodes) == 22
    assert nodes["0"]["incomingEdges"] == [
        {"sourceNodeId": "inputs", "sourceNodeOutputId": "0", "targetNodeInputId": "0"}
    ]
    softmax = next(node for node in graph["nodes"] if node["label"] == "SOFTMAX")
    (edge,) = softmax["incomingEdges"]
    assert nodes[edge["sourceNodeId"]]["label"] == "BATCH_MATMUL"
    assert softmax["namespace"] == "model/layer_0/attention"


@pytest.mark.parametrize("name", ["cnn_int8", "while_loop", "custom", "flex_strings", "dense_int4"])
def test_netron_files_are_models_of_onnx(name):
    onnx = pytest.importorskip("onnx")
    drawn = ow.view(FILES / f"{name}.tflite")
    (document,), (content,) = drawn.documents, drawn.netron()
    graph = document["graphs"][0]
    model = onnx.load_from_string(content)
    names = [document["operators"][node["o"]]["name"] for node in graph["nodes"]]
    assert [node.op_type for node in model.graph.node] == names
    assert [len(node.input) for node in model.graph.node] == [len(n.get("i", ())) for n in graph["nodes"]]
    assert len(model.graph.initializer) == sum(value[3] for value in graph["values"])
    assert all(t.data_location == t.EXTERNAL and not t.raw_data for t in model.graph.initializer)
    inner = [a.g for node in model.graph.node for a in node.attribute if a.HasField("g")]
    assert [len(g.node) for g in inner] == [
        len(document["graphs"][number]["nodes"]) for n in graph["nodes"] for _, number in n.get("g", ())
    ]
    (first, *_), (value, *_) = graph["inputs"], model.graph.input
    dims = [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]
    shown = ",".join(map(str, dims))
    assert document["types"][graph["values"][first][1]].endswith(f"[{shown}]")


def test_the_command(tmp_path):
    model, page = str(FILES / "cnn_int8_io.tflite"), tmp_path / "page.html"
    result = CliRunner().invoke(
        cli, ["view", model, "--vs", str(FILES / "cnn_float.tflite"), "--runs", "2", "--errors", "-o", str(page)]
    )
    assert result.exit_code == 0, result.output
    content = content_of(page.read_text("utf-8"))
    nodes = content["models"][0]["graphs"][0]["nodes"]
    assert all("t" in node and "k" in node for node in nodes)
    assert any(node.get("e", 0) > 0 for node in nodes)
    assert all(re.match(r"machine code: \w+\.\w+", node["k"]) for node in nodes if node["t"])
    products = {"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"}
    for node in nodes:
        name = content["models"][0]["operators"][node["o"]]["name"]
        assert ("p" in node) == (name in products)
        assert node.get("p", 0.5) > 0
    assert any(0 < node.get("q", 0) < 0.5 for node in nodes)
    target = tmp_path / "graph.json"
    result = CliRunner().invoke(cli, ["view", model, "--format", "model-explorer", "-o", str(target)])
    assert result.exit_code == 0, result.output
    assert json.loads(target.read_text())["graphs"]
    assert json.loads((tmp_path / "graph.bytes_of_constants.json").read_text())
    target = tmp_path / "graph.onnx"
    command = ["view", model, "--vs", model, "--format", "netron", "-o", str(target)]
    assert CliRunner().invoke(cli, command).exit_code == 0
    assert target.read_bytes() == (tmp_path / "graph.vs.onnx").read_bytes()
    (tmp_path / "bad.tflite").write_bytes(b"no model")
    assert CliRunner().invoke(cli, ["view", str(tmp_path / "bad.tflite")]).exit_code == 3
    assert CliRunner().invoke(cli, ["view", str(tmp_path / "none.tflite")]).exit_code == 3
    assert CliRunner().invoke(cli, ["view", model, "--errors"]).exit_code == 2
