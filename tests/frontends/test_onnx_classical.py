"""Trees, linear models and support vectors of ai.onnx.ml against onnxruntime's results, and as files."""

from __future__ import annotations

import numpy as np
import pytest

import opwright as ow
from thorough import sampled

onnx = pytest.importorskip("onnx")
record = pytest.importorskip("record_classical_models")


@pytest.fixture(scope="module")
def recorded():
    with np.load(record.FILE) as arrays:
        return {name: arrays[name] for name in arrays.files}


def results_of(name, recorded):
    return [recorded[f"{name}.{n}"] for n in range(sum(key.startswith(f"{name}.") for key in recorded))]


def check(results, expected):
    assert len(results) == len(expected)
    for y, e in zip(results, expected):
        if e.dtype.kind == "S":
            assert y.reshape(e.shape).tolist() == e.tolist()
        else:
            assert y.dtype == e.dtype
            np.testing.assert_allclose(y.reshape(e.shape), e, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", sorted(record.ROWS))
def test_operators_equal_onnxruntime(name, recorded):
    model, feeds = record.model_of(name)
    results = ow.from_onnx(model)(*feeds.values())
    check(
        [y.numpy() for y in (results if isinstance(results, (list, tuple)) else [results])], results_of(name, recorded)
    )


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("linear_multiclass", {"classlabels_int64s": [5, 9, 7]}),
        ("linear_zero", {"classlabels_strings": ["no", "yes", "both"]}),
    ],
)
def test_zip_map_returns_a_column_of_scores_for_each_label(name, labels, recorded):
    """As sklearn's exporters write it behind a classifier, whose result then is a sequence of maps."""
    model, feeds = record.model_of(name)
    node = onnx.helper.make_node("ZipMap", ["scores"], ["maps"], domain="ai.onnx.ml", **labels)
    model.graph.node.append(node)
    del model.graph.output[1]
    key = onnx.TensorProto.INT64 if "classlabels_int64s" in labels else onnx.TensorProto.STRING
    value = onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, None)
    maps = onnx.helper.make_sequence_type_proto(onnx.helper.make_map_type_proto(key, value))
    model.graph.output.append(onnx.helper.make_value_info("maps", maps))
    check([y.numpy() for y in ow.from_onnx(model)(*feeds.values())], results_of(name, recorded))
    model.graph.node[-1].attribute[0].CopyFrom(onnx.helper.make_attribute("classlabels_int64s", [1, 2]))
    with pytest.raises(ow.errors.InvalidArgumentError, match="labels do not fit"):
        ow.from_onnx(model)(*feeds.values())


@pytest.mark.parametrize(
    "name",
    sampled(
        [
            "regressor_missing",
            "regressor_deep",
            "boosted_binary",
            "forest_multiclass",
            "svm_probabilities",
            "svm_multiclass",
        ]
    ),
)
def test_files_equal_onnxruntime_in_both_interpreters(name, recorded):
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    model, feeds = record.model_of(name)
    sizes = {"x0": list(feeds["x0"].shape)}
    for info in model.graph.input:
        for dimension, size in zip(info.type.tensor_type.shape.dim, sizes[info.name]):
            dimension.dim_value = size
    content = ow.lite.TFLiteConverter.from_concrete_functions([ow.from_onnx(model).concrete()]).convert()
    for interpreter in (ow.lite.Interpreter(model_content=content), litert.Interpreter(model_content=content)):
        interpreter.allocate_tensors()
        for detail, value in zip(interpreter.get_input_details(), feeds.values()):
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
        check(
            [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()], results_of(name, recorded)
        )


def changed(**attributes):
    """Return a model of trees with other attributes."""
    model, _ = record.model_of("regressor")
    (node,) = model.graph.node
    for name, value in attributes.items():
        (attribute,) = (a for a in node.attribute if a.name == name)
        attribute.CopyFrom(onnx.helper.make_attribute(name, value))
    return model


def listed(name):
    return list(record.ROWS["regressor"][2][name])


@pytest.mark.parametrize(
    ("attributes", "says"),
    [
        ({"nodes_truenodeids": [0, *listed("nodes_truenodeids")[1:]]}, "cycle"),
        ({"nodes_truenodeids": [10**6, *listed("nodes_truenodeids")[1:]]}, "no such node"),
        ({"nodes_falsenodeids": listed("nodes_falsenodeids")[1:]}, "another length"),
        ({"nodes_featureids": [6, *listed("nodes_featureids")[1:]]}, "feature that rows lack"),
        ({"nodes_modes": ["BRANCH_ABOUT", *listed("nodes_modes")[1:]]}, "no such mode"),
        ({"target_ids": [9, *listed("target_ids")[1:]]}, "targets of leaves"),
        ({"n_targets": 1 << 40}, "set the flag max_model_bytes higher"),
    ],
)
def test_damaged_trees_are_errors(attributes, says):
    with pytest.raises(ow.errors.OpError, match=says):
        ow.from_onnx(changed(**attributes))(record.X)
