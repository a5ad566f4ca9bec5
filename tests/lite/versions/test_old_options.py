"""Old files: options tables that end before fields which came later read as the defaults, and run as before."""

from __future__ import annotations

import numpy as np
import pytest
from old_files import with_old_options

from opwright.lite import Interpreter, ops
from opwright.lite.format import Model, objects, schema, versions

LATER = sorted(
    m.name for m in schema.BuiltinOperator if "special" not in versions.facts(m.name) and versions.options_since(m.name)
)
HERE = [name for name in LATER if name in ops.list_names()]


def one_operator(name: str, options: object, shapes: list[list[int]], types: list[str] | None = None) -> Model:
    """A model of one operator; the last shape is the output's."""
    types = types or ["FLOAT32"] * len(shapes)
    tensors = [
        objects.Tensor(name=f"t{i}", shape=s, type=schema.TensorType[t]) for i, (s, t) in enumerate(zip(shapes, types))
    ]
    n = len(shapes) - 1
    operator = objects.Operator(inputs=list(range(n)), outputs=[n], builtin_options=options)
    main = objects.SubGraph(tensors=tensors, inputs=list(range(n)), outputs=[n], operators=[operator], name="main")
    return Model(operator_codes=[versions.operator_code(name)], subgraphs=[main], buffers=[objects.Buffer()])


def test_since_is_that_of_the_official_schema_s_comments():
    """The comments on the fields in schema.fbs name the version that introduced them."""
    comments = {
        ("DEPTHWISE_CONV_2D", "dilation_w_factor"): 2,
        ("DEPTHWISE_CONV_2D", "dilation_h_factor"): 2,
        ("FULLY_CONNECTED", "weights_format"): 2,
        ("FULLY_CONNECTED", "keep_num_dims"): 5,
        ("LSTM", "kernel_type"): 2,
        ("LSTM", "asymmetric_quantize_inputs"): 4,
        ("ADD", "pot_scale_int16"): 3,
        ("SUB", "pot_scale_int16"): 5,
        ("UNIDIRECTIONAL_SEQUENCE_LSTM", "asymmetric_quantize_inputs"): 3,
        ("UNIDIRECTIONAL_SEQUENCE_LSTM", "diagonal_recurrent_tensors"): 4,
        ("BIDIRECTIONAL_SEQUENCE_LSTM", "asymmetric_quantize_inputs"): 3,
        ("FAKE_QUANT", "narrow_range"): 2,
        ("TRANSPOSE_CONV", "fused_activation_function"): 4,
        ("STRIDED_SLICE", "offset"): 8,
        ("BATCH_MATMUL", "asymmetric_quantize_inputs"): 4,
    }
    for (name, option), since in comments.items():
        assert versions.options_since(name)[option] == since, (name, option)


@pytest.mark.parametrize("name", HERE)
def test_attributes_of_the_dialect_have_it_from_there(name):
    op = ops.get(name)
    assert {a.name: a.since for a in op.attr_defs.values() if a.since > 1} == versions.options_since(name)
    assert all(a.since <= op.versions[1] for a in op.attr_defs.values())


@pytest.mark.parametrize("name", LATER)
@pytest.mark.parametrize("keep", ["fields before the first later one", "no fields"])
def test_absent_fields_have_their_defaults(name, keep):
    """Whichever fields came later, the default keeps the operator at a version that has not got them."""
    pytest.importorskip("ai_edge_litert.schema_py_generated")
    table = versions.facts(name)["options"]
    fields = schema.table(table).fields
    since = versions.options_since(name)
    slots = min(f.id for f in fields if f.name in since) if keep != "no fields" else 0
    model = one_operator(name, objects.table_class(table)(), [[1, 4, 4, 2]] * 4)
    read = Model.read(with_old_options(model, slots, {f.name: 1 for f in fields if f.name not in since}))
    read.verify()
    options = read.subgraphs[0].operators[0].builtin_options
    for f in fields:
        if f.name in since:
            assert getattr(options, f.name) == f.default, f.name
    view = versions.view(read.subgraphs[0], read.subgraphs[0].operators[0])
    assert versions.stamp(name, view) < min(since.values()) or name in ("STRIDED_SLICE", "RESIZE_NEAREST_NEIGHBOR")
    if name in ops.list_names():
        bound = ops.get(name).from_options(options)
        assert all(bound.attrs[n] == ops.get(name).attr_defs[n].default for n in since if n in bound.attrs)


def outputs(content: bytes, values: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    official = pytest.importorskip("ai_edge_litert.interpreter")
    result = []
    for interpreter in (Interpreter(model_content=content), official.Interpreter(model_content=content)):
        interpreter.allocate_tensors()
        for detail, value in zip(interpreter.get_input_details(), values):
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
        result.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
    return result[0], result[1]


rng = np.random.default_rng(3)


def f32(*shape: int) -> np.ndarray:
    return rng.uniform(-2, 2, shape).astype(np.float32)


O = objects
# operator, options, fields of the oldest table, shapes, constants by input
OLD = [
    (
        "DEPTHWISE_CONV_2D",
        O.DepthwiseConv2DOptions(stride_w=1, stride_h=1, depth_multiplier=2),
        5,
        [(1, 5, 5, 2), (1, 3, 3, 4), (4,)],
        (1, 5, 5, 4),
    ),
    ("FULLY_CONNECTED", O.FullyConnectedOptions(fused_activation_function=1), 1, [(3, 4), (5, 4), (5,)], (3, 5)),
    ("ADD", O.AddOptions(fused_activation_function=1), 1, [(2, 3), (2, 3)], (2, 3)),
    ("SUB", O.SubOptions(fused_activation_function=3), 1, [(2, 3), (2, 3)], (2, 3)),
    ("RESIZE_BILINEAR", O.ResizeBilinearOptions(align_corners=True), 3, [(1, 3, 3, 2), [5, 6]], (1, 5, 6, 2)),
    ("GATHER", O.GatherOptions(axis=1), 1, [(2, 3), [2, 0]], (2, 2)),
    ("BATCH_MATMUL", O.BatchMatMulOptions(adj_x=False, adj_y=True), 2, [(2, 3, 4), (2, 5, 4)], (2, 3, 5)),
    (
        "TRANSPOSE_CONV",
        O.TransposeConvOptions(stride_w=2, stride_h=2),
        3,
        [[1, 6, 6, 2], (2, 3, 3, 4), (1, 3, 3, 4)],
        (1, 6, 6, 2),
    ),
    ("FAKE_QUANT", O.FakeQuantOptions(min=-1.0, max=1.0, num_bits=8), 3, [(2, 3)], (2, 3)),
    ("STRIDED_SLICE", O.StridedSliceOptions(begin_mask=1), 5, [(4, 5), [1, 1], [3, 4], [1, 2]], (3, 2)),
]


@pytest.mark.parametrize(("name", "options", "slots", "given", "out"), OLD, ids=[row[0] for row in OLD])
def test_an_old_file_runs_as_before(name, options, slots, given, out):
    """In the official interpreter and here, and as the same operator with the defaults written out."""
    pytest.importorskip("ai_edge_litert.schema_py_generated")
    fields = schema.table(options.table_name).fields
    assert {f.name for f in fields[slots:]} & set(versions.options_since(name))
    types = ["FLOAT32" if isinstance(g, tuple) else "INT32" for g in given]
    shapes = [list(g) if isinstance(g, tuple) else [len(g)] for g in given]
    model = one_operator(name, options, [*shapes, list(out)], [*types, "FLOAT32"])
    main = model.subgraphs[0]
    values = []
    for i, g in enumerate(given):  # shapes and indices are constants
        if isinstance(g, tuple):
            values.append(f32(*g))
            continue
        model.buffers.append(objects.Buffer(data=np.frombuffer(np.int32(g).tobytes(), np.uint8)))
        main.tensors[i].buffer = len(model.buffers) - 1
    main.inputs = [i for i, g in enumerate(given) if isinstance(g, tuple)]
    old = with_old_options(model, slots)
    assert Model.read(old).operator_codes[0].version == 1
    here, there = outputs(old, values)
    np.testing.assert_allclose(here, there, rtol=1e-5, atol=1e-6)
    spelled_out, _ = outputs(with_old_options(model, len(fields)), values)
    np.testing.assert_array_equal(here, spelled_out)
