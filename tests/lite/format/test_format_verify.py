"""Each rule of the verifier, by models that break it and nothing above it."""

from __future__ import annotations

import numpy as np
import pytest
from format_models import add_model, rich_model

from opwright.core import errors
from opwright.lite.format import Model, findings, objects, schema
from opwright.lite.format.verify import RULES


def tensor(i):
    return lambda model: model.subgraphs[0].tensors[i]


def op(i):
    return lambda model: model.subgraphs[0].operators[i]


def root(model):
    return model


def quantization(**values):
    return objects.QuantizationParameters(**values)


CONTROL_FLOW = {
    "WhileOptions": "body_subgraph_index",
    "CallOptions": "subgraph",
    "CallOnceOptions": "init_subgraph_index",
    "IfOptions": "else_subgraph_index",
}


def chain(n):
    """Subgraphs that call the next, at the end of a model with two operator codes."""
    calls = [objects.Operator(opcode_index=1, builtin_options=objects.CallOptions(subgraph=i + 1)) for i in range(n)]
    return [*(objects.SubGraph(operators=[call]) for call in calls), objects.SubGraph()]


LAZY_CHAIN = chain(70)
ONE_SCALE = quantization(scale=[1.0], zero_point=[0], quantized_dimension=2)

BREAKS = [  # rule, what is changed, field, new value, words
    ("schema_version", root, "version", 2, "schema version 2 not equal"),
    ("has_subgraph", root, "subgraphs", [], "No subgraph in the model."),
    ("has_buffers", root, "buffers", [], "No buffers in the model."),
    ("operator_codes", lambda m: m.operator_codes[0], "builtin_code", 300, "builtin_code out of range: 300"),
    ("operator_codes", lambda m: m.operator_codes[2], "custom_code", None, "CUSTOM builtin_code has no custom_code"),
    ("tensor_types", tensor(0), "type", 99, "Unsupported data type 99 in tensor"),
    ("tensor_buffers", tensor(0), "buffer", 50, r"Tensor 0 specifies out of range buffer 50 \(only 7 buffers\)"),
    ("tensor_shapes", tensor(0), "shape", [2, -3], "negative dimension"),
    ("tensor_shapes", tensor(0), "shape", [2**31 - 1] * 3, "more elements than can be counted"),
    ("tensor_shapes", tensor(0), "shape", [0, *[2**31 - 1] * 3], "more elements than can be counted"),
    ("tensor_shapes", tensor(0), "shape", [1] * 65, "more dimensions than an array can have"),
    ("tensor_shapes", tensor(2), "shape_signature", [-1], "rank differs"),
    ("tensor_shapes", tensor(2), "shape_signature", [-2, 3], "other than -1"),
    ("external_buffers", tensor(0), "external_buffer", 5, "no external buffer"),
    ("external_buffers", root, "external_buffers", [objects.ExternalBuffer(id=1, group=3)], "no such group"),
    ("subgraph_interfaces", lambda m: m.subgraphs[0], "inputs", [-1], "Invalid tensor index -1 in subgraph inputs"),
    ("subgraph_interfaces", lambda m: m.subgraphs[0], "outputs", [11], "Invalid tensor index 11 in subgraph outputs"),
    ("subgraph_interfaces", lambda m: m.subgraphs[1], "tensors", [], "Did not get tensors in subgraph 1."),
    ("opcode_indices", op(0), "opcode_index", 7, "Missing registration for opcode_index 7"),
    ("operator_tensors", op(0), "inputs", [0, 19], "index 19 in node inputs. The subgraph has 11 tensors"),
    ("operator_tensors", op(0), "outputs", [-1], "index -1 in node outputs"),
    ("operator_tensors", op(0), "intermediates", [-2], "index -2 in node intermediates"),
    ("operator_tensors", op(0), "mutating_variable_inputs", [True] * 3, "more than inputs"),
    ("constant_sizes", tensor(1), "shape", [2, 4], "Tensor 1 is invalidly specified in schema"),
    ("constant_sizes", tensor(1), "is_variable", True, "variable tensor with buffer"),
    ("constant_sizes", tensor(3), "shape", [4], "wrong number of strings"),
    ("constant_sizes", tensor(4), "shape", [7], "4 for INT4"),
    ("constant_sizes", lambda m: m.buffers[3], "data", bytes([9, 0, 0, 0]), "too short for its offsets"),
    ("constant_sizes", tensor(5), "shape", [3, 4], "differs from the shape"),
    ("constant_sizes", lambda m: tensor(5)(m).sparsity, "traversal_order", [0, 0], "not an order of the dimensions"),
    ("constant_sizes", lambda m: tensor(5)(m).sparsity.dim_metadata[1].array_indices, "values", [1, 0, 4], "outside"),
    ("constant_sizes", lambda m: tensor(5)(m).sparsity.dim_metadata[1].array_segments, "values", [0, 2, 1], "rise"),
    ("constant_sizes", lambda m: tensor(5)(m).sparsity.dim_metadata[1], "array_indices", None, "lacks"),
    ("quantizations", tensor(6), "quantization", quantization(scale=[1.0]), "0 zero_point values and 1 scale values"),
    ("quantizations", lambda m: tensor(6)(m).quantization, "quantized_dimension", 2, r"range \[0, 2\). Was 2."),
    ("quantizations", lambda m: tensor(6)(m).quantization, "quantized_dimension", 1, "neither 1 nor"),
    ("quantizations", tensor(1), "quantization", ONE_SCALE, r"range \[0, 2\). Was 2."),
    ("block_quantizations", lambda m: tensor(4)(m).quantization, "details", objects.MultiAxisQuantization(), "MultiA"),
    (
        "block_quantizations",
        lambda m: tensor(4)(m).quantization,
        "details",
        objects.MultiAxisQuantization(quantized_dimensions=[0, 1]),
        "MultiAxisQuantization parameters",
    ),
    ("block_quantizations", lambda m: tensor(4)(m).quantization.details, "scales", 11, "no such tensor"),
    *(
        ("subgraph_calls", op(1), "builtin_options", getattr(objects, name)(**{field: 3}), "no such subgraph")
        for name, field in CONTROL_FLOW.items()
    ),
    ("no_recursion", lambda m: op(1)(m).builtin_options, "then_subgraph_index", 0, "calls itself"),
    ("signatures", lambda m: m.signature_defs[0], "subgraph_index", 3, "no such subgraph"),
    ("signatures", lambda m: m.signature_defs[0].inputs[0], "tensor_index", 11, "no such tensor"),
    ("signatures", root, "signature_defs", [objects.SignatureDef(signature_key="a")] * 2, "two signatures"),
    ("signatures", lambda m: m.signature_defs[0], "signature_key", None, "Missing exported method name"),
    ("signatures", lambda m: m.signature_defs[0].inputs[0], "name", None, "one of the inputs has no name"),
    ("tensor_flow", op(0), "inputs", [0, 2], r"Input tensor 2 to op 0 \(ADD\) is not produced"),
    ("tensor_flow", op(1), "inputs", [0, 10], r"Input tensor 10 to op 1 \(IF\) is not produced"),
    ("tensor_flow", op(2), "outputs", [0], r"Output tensor 0 to op 2 \(Mine\) is a subgraph input"),
    ("tensor_flow", op(2), "outputs", [5], r"Output tensor 5 to op 2 \(Mine\) is a constant"),
    ("tensor_flow", op(2), "outputs", [9, 8], "op 2 .* is an output from another op. There is a cycle in the graph"),
    ("tensor_flow", op(2), "outputs", [9, 9], "Output tensor 9 .* is an output from another op"),
    ("call_depth", root, "subgraphs", LAZY_CHAIN, "too deeply"),
    ("signatures", lambda m: m.signature_defs[0], "outputs", [objects.TensorMap(name="a")] * 2, "two outputs"),
    ("metadata_buffers", lambda m: m.metadata[0], "buffer", 7, "no such buffer"),
    ("metadata_buffers", root, "metadata_buffer", [0, 7], "no such buffer"),
]


@pytest.mark.parametrize(
    ("rule", "target", "field", "value", "says"), BREAKS, ids=lambda v: v if isinstance(v, str) else ""
)
def test_a_broken_rule_is_found_by_name(rule, target, field, value, says):
    model = rich_model()
    assert findings(model) == []
    setattr(target(model), field, value)
    assert findings(model)[0][0].name == rule
    with pytest.raises(errors.InvalidArgumentError, match=says):
        model.verify()
    if rule != "schema_version":
        with pytest.raises(errors.InvalidArgumentError, match=says):
            Model.read(model.to_bytes()).verify()


def test_every_rule_is_broken_once():
    assert {rule.name for rule in RULES} == {row[0] for row in BREAKS}


def test_long_call_chains_and_cycles_through_others():
    model = add_model()
    model.operator_codes.append(objects.OperatorCode(builtin_code=schema.BuiltinOperator.CALL))
    n = 60
    for i in range(1, n):
        call = objects.Operator(opcode_index=1, builtin_options=objects.CallOptions(subgraph=i + 1 if i + 1 < n else i))
        model.subgraphs.append(objects.SubGraph(operators=[call]))
    with pytest.raises(errors.InvalidArgumentError, match=f"{n - 1} -> {n - 1}"):
        model.verify()
    model.subgraphs[-1].operators = []
    model.verify()
    model.subgraphs[-1].operators = [
        objects.Operator(opcode_index=1, builtin_options=objects.CallOptions(subgraph=n - 3))
    ]
    with pytest.raises(errors.InvalidArgumentError, match=f"{n - 3} -> {n - 2} -> {n - 1} -> {n - 3}"):
        model.verify()


def test_a_blocked_sparse_tensor():
    """A 4 x 4 matrix in blocks of 1 x 4: rows dense, block columns compressed, the block dense."""
    model, metadata = add_model(), objects.DimensionMetadata
    columns = metadata(
        format=1,
        array_segments=objects.Uint8Vector(values=[0, 1, 1, 1, 2]),
        array_indices=objects.Uint16Vector(values=[0, 0]),
    )
    levels = [metadata(dense_size=4), columns, metadata(dense_size=4)]
    sparsity = objects.SparsityParameters(traversal_order=[0, 1, 2], block_map=[1], dim_metadata=levels)
    model.buffers.append(objects.Buffer(data=np.zeros(8, np.float32).view(np.uint8)))
    model.subgraphs[0].tensors.append(objects.Tensor(shape=[4, 4], buffer=3, sparsity=sparsity))
    model.verify()
    model.buffers[3].data = model.buffers[3].data[:-1]
    with pytest.raises(errors.InvalidArgumentError, match="32 for FLOAT32"):
        model.verify()
