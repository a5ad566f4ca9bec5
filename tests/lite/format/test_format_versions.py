"""Operator versions: every rule can be evaluated and holds for some operator; spot checks against LiteRT's tables."""

from __future__ import annotations

import pytest
from format_models import add_model, rich_model

from each_row import each_row
from opwright.core import errors
from opwright.lite.format import objects, schema, versions
from opwright.lite.format.versions import FLAG_WORDS, FLAGS, PREDICATES, WORDS, OperatorView, stamp

T = schema.TensorType
OPS = [member.name for member in schema.BuiltinOperator]


def tensor(type="FLOAT32", shape=(1, 4), scale=(), axis=0, quantization=True, sparsity=None):
    q = objects.QuantizationParameters(scale=list(scale), zero_point=[0] * len(scale), quantized_dimension=axis)
    return objects.Tensor(type=T[type], shape=list(shape), quantization=q if quantization else None, sparsity=sparsity)


def op(*inputs, out="FLOAT32", options=None):
    inputs = [tensor(t) if isinstance(t, str) else t for t in inputs]
    return OperatorView(inputs, [out if not isinstance(out, str) else tensor(out)], options)


def parts_of(condition):
    yield condition
    for part in [*condition.get("all", ()), *condition.get("any", ()), *filter(None, [condition.get("not")])]:
        yield from parts_of(part)


def test_the_table_covers_the_enum():
    assert sorted(OPS) == sorted(versions._table())
    for name in OPS:
        assert versions.facts(name)["code"] == schema.BuiltinOperator[name]


@each_row("name", OPS)
def test_every_rule_can_be_evaluated(name):
    row = versions.facts(name)
    options = row.get("options") and objects.table_class(row["options"])()
    for _version, condition in row.get("rules", ()):
        for part in parts_of(condition):
            assert len(PREDICATES.keys() & part.keys()) == 1
            assert part.get("flag", "conv2d_grouped") in FLAGS
            assert set(part.get("type_in", ())) <= set(T.__members__)
            if "option" in part:
                assert part["option"] in type(options).__slots__
            for view in (
                OperatorView([], []),
                OperatorView([None] * 4, [None], options),
                op("INT8", "INT8", options=options),
            ):
                versions.holds(part, view)
            assert versions.describe(part)
    assert stamp(name, OperatorView([], [])) >= 1


def test_every_flag_is_used():
    used = {
        part["flag"]
        for name in OPS
        for _, rule in versions.facts(name).get("rules", ())
        for part in parts_of(rule)
        if "flag" in part
    }
    assert used == set(FLAGS) == set(FLAG_WORDS)
    assert list(WORDS) == list(PREDICATES)


def depthwise(w, h):
    return objects.DepthwiseConv2DOptions(dilation_w_factor=w, dilation_h_factor=h)


IMAGE, FILTER, GROUPS = tensor(shape=(1, 8, 8, 4)), tensor(shape=(8, 3, 3, 4)), tensor(shape=(8, 3, 3, 2))
SPARSE = tensor(sparsity=objects.SparsityParameters())
CASES = [  # operator, its view, version
    ("DEPTHWISE_CONV_2D", op(IMAGE, FILTER, options=depthwise(1, 1)), 1),
    ("DEPTHWISE_CONV_2D", op(IMAGE, FILTER, options=depthwise(1, 2)), 2),
    ("DEPTHWISE_CONV_2D", op(IMAGE, FILTER), 2),  # no options table: dilation reads as 0
    ("DEPTHWISE_CONV_2D", op("INT8", "INT8", out="INT8", options=depthwise(1, 1)), 3),
    ("DEPTHWISE_CONV_2D", op("FLOAT32", tensor("INT8", (1, 3, 3, 2), (1.0, 1.0), 3), options=depthwise(1, 1)), 6),
    ("CONV_2D", op(IMAGE, FILTER, options=objects.Conv2DOptions()), 1),
    ("CONV_2D", op(IMAGE, GROUPS, options=objects.Conv2DOptions()), 6),
    ("CONV_2D", op("INT16", "INT8", out="INT16", options=objects.Conv2DOptions()), 8),
    ("CONV_2D", op("FLOAT32", tensor("INT8", (2, 3), (1.0, 1.0))), 5),
    ("CONV_2D", op("FLOAT32", tensor("INT8", (2, 3), (1.0,))), 2),
    ("ADD", op("FLOAT32", "FLOAT32"), 1),
    ("ADD", op("INT16", "INT16", out="INT16", options=objects.AddOptions(pot_scale_int16=False)), 3),
    ("ADD", op("INT16", "INT16", out="INT16", options=objects.AddOptions()), 1),
    ("ADD", op(tensor("INT16", quantization=False), "INT16", out="INT16"), 5),
    ("ADD", op("FLOAT16", "FLOAT16"), 6),
    ("MUL", op(tensor("INT8", scale=[2.0]), tensor("INT8", scale=[1.0]), out=tensor("INT8", scale=[1.0])), 3),
    ("MUL", op(tensor("INT8", scale=[0.1]), tensor("INT8", scale=[1.0]), out=tensor("INT8", scale=[1.0])), 2),
    ("FULLY_CONNECTED", op("FLOAT32", "FLOAT32", "FLOAT32"), 1),
    ("FULLY_CONNECTED", op("FLOAT32", "FLOAT32"), 6),
    ("FULLY_CONNECTED", op("FLOAT32", SPARSE, "FLOAT32"), 8),
    (
        "FULLY_CONNECTED",
        op("FLOAT32", "FLOAT32", "FLOAT32", options=objects.FullyConnectedOptions(weights_format=1)),
        2,
    ),
    ("LSTM", op("FLOAT32", options=objects.LSTMOptions(kernel_type=schema.LSTMKernelType.BASIC)), 2),
    ("LSTM", op("FLOAT32", "FLOAT32", "INT8"), 3),
    ("TRANSPOSE_CONV", op("INT32", "FLOAT32", "FLOAT32", "FLOAT32"), 3),
    ("TRANSPOSE_CONV", op("INT32", "FLOAT32", "FLOAT32", None), 1),
    ("GELU", op("INT8"), 2),
    ("CUSTOM", op("FLOAT32"), 1),
]


@pytest.mark.parametrize(("name", "view", "version"), CASES)
def test_stamps(name, view, version):
    assert stamp(name, view) == version


def test_look_ups():
    assert versions.resolver_range("CONV_2D") == (1, 8)
    assert versions.resolver_range("CUSTOM") is None
    assert versions.min_runtime("CONV_2D", 6) == "2.9.0"
    assert versions.min_runtime("CONV_2D", 99) == ""
    with pytest.raises(errors.NotFoundError, match="'CONV3'"):
        stamp("CONV3", op())
    names = ["2.10.0", "2.3", "2.3.0", "", "1.14.0", "1.5.0"]
    assert sorted(names, key=versions.runtime_key) == ["", "1.5.0", "1.14.0", "2.3", "2.3.0", "2.10.0"]


def test_versions_of_a_model_are_the_greatest_of_each_code():
    model = add_model()
    int8 = [objects.Tensor(type=T.INT8, shape=[2, 3], name=str(i)) for i in range(3)]
    main = model.subgraphs[0]
    main.tensors += int8
    main.operators.append(objects.Operator(inputs=[3, 4], outputs=[5], builtin_options=objects.AddOptions()))
    assert versions.versions_of_model(model) == [2]
    versions.stamp_model(model)
    assert versions.min_runtime_of_model(model) == "1.14.0"
    assert versions.metadata_of("2.3.0") == b"2.3.0" + bytes(11)
    rich = rich_model()
    assert versions.versions_of_model(rich)[2] == 2  # a custom operator keeps its own
    versions.min_runtime_of_model(rich)
