"""Test that written models read back equal: random models of the schema, one of every table, on disk, over 2 GB."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from format_models import add_model, rich_model, tables
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opwright.core import errors
from opwright.lite.format import Model, objects, schema, writer
from opwright.lite.format.reader import read
from thorough import THOROUGH, examples


@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(tables("Model"))
def test_any_model_reads_back_equal_and_writes_the_same_bytes(model):
    data = model.to_bytes()
    again = Model.read(data)
    assert again == model
    assert again.to_bytes() == data
    assert len(repr(again)) < 2000


def holder(table: str, value):
    """A model that holds an object of a table somewhere."""
    tensor = objects.Tensor
    within = {
        "BuiltinOptions": lambda v: holder("Operator", objects.Operator(builtin_options=v)),
        "BuiltinOptions2": lambda v: holder("Operator", objects.Operator(builtin_options_2=v)),
        "QuantizationDetails": lambda v: holder("QuantizationParameters", objects.QuantizationParameters(details=v)),
        "SparseIndexVector": lambda v: holder("DimensionMetadata", objects.DimensionMetadata(array_indices=v)),
    }
    for union, make in within.items():
        if table in schema.union_tags(union):
            return make(value)
    if table == "Model":
        return value
    if table == "QuantizationParameters":
        return holder("Tensor", tensor(quantization=value))
    if table == "SparsityParameters":
        return holder("Tensor", tensor(sparsity=value))
    owner, field = next(
        (name, field) for name in schema.tables() for field in schema.table(name).fields if field.of == table
    )
    return holder(owner, objects.table_class(owner)(**{field.name: [value]}))


@pytest.mark.parametrize("name", schema.tables())
def test_every_table_reads_back_equal(name):
    @settings(max_examples=3 if THOROUGH else 1, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def check(data):
        model = holder(name, data.draw(tables(name)))
        assert Model.read(model.to_bytes()) == model

    check()


def test_a_file_on_disk_is_mapped_and_replaced_in_one_step(tmp_path):
    path, model = tmp_path / "m.tflite", rich_model()
    model.write(path)
    first = Model.read(path)
    assert first == model
    assert first.buffers[1].data.base is not None
    assert not first.buffers[1].data.flags.writeable
    first.description = "changed"
    first.write(str(path))  # over the file it is mapped from
    assert Model.read(path).description == "changed"
    assert first.buffers[1].data.tobytes() == model.buffers[1].data.tobytes()
    assert os.listdir(tmp_path) == ["m.tflite"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "m.tflite"
    add_model().write(path)
    bad = add_model()
    bad.subgraphs[0].tensors[1].shape = ["a"]
    with pytest.raises(errors.InvalidArgumentError, match=r"Model.subgraphs\[0\].tensors\[1\].shape"):
        bad.write(path)
    assert Model.read(path) == add_model()
    assert os.listdir(tmp_path) == ["m.tflite"]


def test_weights_are_aligned_and_stand_behind_the_structure():
    data = rich_model().to_bytes()
    start = np.frombuffer(data, np.uint8)
    for buffer in Model.read(data).buffers:
        if buffer.data is not None and len(buffer.data):
            assert (buffer.data.ctypes.data - start.ctypes.data) % 16 == 0


def test_buffers_and_options_behind_the_flatbuffer():
    model = add_model()
    model.buffers[1].offset = model.buffers[1].size = 1
    op = model.subgraphs[0].operators[0]
    op.custom_options, op.large_custom_options_offset, op.large_custom_options_size = b"hello", 1, 1
    data = model.to_bytes()
    again = Model.read(data)
    assert again == model
    assert bytes(again.subgraphs[0].operators[0].custom_options) == b"hello"
    again.verify()
    with pytest.raises(errors.DataLossError, match=r"buffers\[1\]|operators\[0\]"):
        Model.read(data[:-20])


def test_buffers_move_behind_when_they_would_pass_the_limit(monkeypatch):
    monkeypatch.setattr(writer, "FLATBUFFER_LIMIT", (1 << 24) + 10)
    again = Model.read(add_model().to_bytes())
    assert again.buffers[1].offset == 1
    assert again.buffers[1].data.tobytes() == add_model().buffers[1].data.tobytes()
    again.verify()


def test_operator_codes_above_127_carry_the_placeholder():
    codes = Model.read(rich_model().to_bytes()).operator_codes
    assert [(c.deprecated_builtin_code, c.builtin_code.name) for c in codes] == [
        (0, "ADD"),
        (118, "IF"),
        (32, "CUSTOM"),
        (127, "STABLEHLO_IOTA"),
    ]


BAD = [
    (lambda m: setattr(m, "buffers", 5), "Model.buffers.*found int"),
    (lambda m: setattr(m.buffers[1], "data", 5), r"Model.buffers\[1\].data"),
    (lambda m: setattr(m, "subgraphs", [5]), r"Model.subgraphs\[0\].*found int, wanted SubGraph"),
    (lambda m: setattr(m, "description", "\ud800"), "Model.description.*not valid text"),
    (lambda m: setattr(m, "description", 3), "Model.description"),
    (lambda m: setattr(m.subgraphs[0].tensors[0], "buffer", -1), r"Model.subgraphs\[0\].tensors\[0\].buffer"),
    (lambda m: setattr(m.subgraphs[0].tensors[0], "shape", [2**31]), r"tensors\[0\].shape.*does not fit int32"),
    (lambda m: setattr(m.subgraphs[0].tensors[0], "shape", [1.5]), r"tensors\[0\].shape.*floating-point"),
    (lambda m: setattr(m.buffers[1], "data", np.ones(3, np.float32)), r"buffers\[1\].data.*view\(np.uint8\)"),
    (lambda m: m.buffers.append(objects.Tensor()), r"buffers\[3\].*found Tensor, wanted Buffer"),
    (
        lambda m: setattr(m.subgraphs[0].operators[0], "builtin_options", objects.Tensor()),
        "member of union BuiltinOptions",
    ),
]


@pytest.mark.parametrize(("spoil", "says"), BAD)
def test_what_the_schema_does_not_allow_is_named(spoil, says):
    model = add_model()
    spoil(model)
    with pytest.raises(errors.InvalidArgumentError, match=says):
        model.to_bytes()


def test_a_field_the_table_lacks_is_refused():
    with pytest.raises(TypeError, match="Tensor has no field 'shap'"):
        objects.Tensor(shap=[1])


def test_the_class_of_the_root_lists_the_fields_of_the_schema():
    assert set(Model.__slots__) == {field.name for field in schema.table("Model").fields}


def test_equality_looks_at_contents():
    a, b = objects.Tensor(shape=[1, 2]), objects.Tensor(shape=np.array([1, 2]))
    assert a == b
    assert a != objects.Tensor(shape=[1, 3])
    assert objects.SoftmaxOptions(beta=0.1) == objects.SoftmaxOptions(beta=np.float32(0.1))
    assert objects.AddOptions() != objects.SubOptions()


def test_import_reads_no_json():
    code = (
        "import json; json.loads = None; import sys, opwright, opwright.lite;"
        "assert 'opwright.lite.format' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_read_takes_any_buffer():
    data = add_model().to_bytes()
    assert read(memoryview(data)) == read(bytearray(data)) == read(np.frombuffer(data, np.uint8)) == add_model()
