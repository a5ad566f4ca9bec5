"""Peers read what we write: the official interpreter runs it, the generated reader sees the same values."""

from __future__ import annotations

import numpy as np
import pytest
from format_models import add_model, rich_model, tables
from hypothesis import HealthCheck, given, settings

from opwright.lite.format import Model, objects, schema, versions
from thorough import examples

official = pytest.importorskip("ai_edge_litert.interpreter")
generated = pytest.importorskip("ai_edge_litert.schema_py_generated")


def test_the_official_interpreter_runs_it():
    interpreter = official.Interpreter(model_content=add_model().to_bytes())
    interpreter.allocate_tensors()
    x = np.full((2, 3), 10.0, np.float32)
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    y = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    assert (y == x + np.arange(6).reshape(2, 3)).all()
    runner = interpreter.get_signature_runner("serving_default")
    assert (runner(**{"in": x})["out"] == y).all()


def test_the_official_interpreter_reads_buffers_behind_the_flatbuffer(tmp_path):
    model = add_model()
    model.buffers[1].offset = 1
    model.write(tmp_path / "m.tflite")
    interpreter = official.Interpreter(model_path=str(tmp_path / "m.tflite"))
    interpreter.allocate_tensors()
    assert interpreter.get_tensor(1).ravel().tolist() == list(range(6))


@pytest.mark.parametrize("name", ["CONV_2D", "SOFTMAX", "ADD"])
def test_the_official_resolver_takes_our_range_and_no_more(name):
    low, high = versions.resolver_range(name)
    for version, loads in ((low, True), (high, True), (high + 1, False)):
        model = add_model()
        model.operator_codes = [versions.operator_code(name, version)]
        model.subgraphs[0].operators[0].builtin_options = None
        if loads:
            official.Interpreter(model_content=model.to_bytes())
        else:
            with pytest.raises(ValueError, match=f"version '{version}'"):
                official.Interpreter(model_content=model.to_bytes())


def camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def agrees(ours, theirs) -> None:
    """Compare one of our objects with the unpacked object of the generated code, field by field."""
    attributes = {name.lower().replace("_", ""): value for name, value in vars(theirs).items()}
    for field in schema.table(ours.table_name).fields:
        a = getattr(ours, field.name)
        key = field.name.replace("_", "")
        if key not in attributes:
            assert f"{ours.table_name}.{field.name}" in {
                "ResizeBilinearOptions.new_height",
                "ResizeBilinearOptions.new_width",
                "SignatureDef.deprecated_tag",
            }
            continue
        b = attributes[key]
        if field.kind == "scalar":
            assert a == b or (a != a and b != b), field
        elif field.kind == "string":
            assert (a or None) == (b.decode() if b else None), field
        elif field.kind == "vector":
            assert np.array_equal(
                [] if a is None else a, [] if b is None else b, equal_nan=field.scalar == "float32"
            ), field
        elif field.kind == "tables":
            assert len(a) == len(b or ())
            for x, y in zip(a, b or ()):
                agrees(x, y)
        elif a is None:
            assert b is None, field
        else:
            assert type(b).__name__ == f"{a.table_name}T"
            agrees(a, b)


def unpack(data: bytes):
    return generated.ModelT.InitFromObj(generated.Model.GetRootAsModel(data, 0))


def test_the_generated_reader_sees_a_rich_model():
    model = rich_model()
    model.buffers[6].offset = model.buffers[6].size = 0
    agrees(Model.read(model.to_bytes()), unpack(model.to_bytes()))


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(tables("Model"))
def test_the_generated_reader_sees_any_model(model):
    for buffer in model.buffers:
        buffer.offset = buffer.size = 0
    agrees(model, unpack(model.to_bytes()))


def test_we_read_what_the_generated_writer_writes():
    import flatbuffers

    model = rich_model()
    model.buffers[6].offset = model.buffers[6].size = 0
    builder = flatbuffers.Builder()
    builder.Finish(unpack(model.to_bytes()).Pack(builder), file_identifier=b"TFL3")
    again = Model.read(bytes(builder.Output()))
    agrees(again, unpack(model.to_bytes()))
    again.verify()
    assert [op.builtin_options for op in again.subgraphs[0].operators][1] == objects.IfOptions(
        then_subgraph_index=1, else_subgraph_index=2
    )
