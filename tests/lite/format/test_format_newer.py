"""Files of a newer schema: what ours does not name is kept, or refused by name, and never lost in silence."""

from __future__ import annotations

import contextlib
import copy
import io
import pickle
import zipfile

import numpy as np
import official
import pytest
from format_models import add_model, rich_model

from opwright.core import errors
from opwright.lite.format import Model, objects, reader, schema, table_layout, writer


@contextlib.contextmanager
def newer_schema(table: str, **fields: tuple):
    """Within it, a table has more fields, or a union (by a name ending in Options) one more member."""
    facts = schema._facts()
    kept = copy.deepcopy({"tables": facts["tables"], "enums": facts["enums"], "unions": facts["unions"]})

    def forget():
        for cached in (
            schema.table,
            schema.tables,
            schema.union,
            schema.union_tags,
            schema.enum,
            schema.enum_members,
            objects.table_class,
        ):
            cached.cache_clear()
        table_layout._known.clear()
        reader._layout.cache_clear()
        writer._plan.cache_clear()

    facts["tables"].setdefault(table, [])
    facts["tables"][table] = [*facts["tables"][table], *([name, *rest] for name, rest in fields.items())]
    if table == "NewOptions":
        facts["unions"]["BuiltinOptions"].append(table)
        facts["enums"]["BuiltinOptions"][table] = 200
    forget()
    try:
        yield
    finally:
        facts.update(kept)
        forget()


def written(fill, table: str, **fields: tuple) -> bytes:
    """The bytes of add_model as a newer program writes it."""
    with newer_schema(table, **fields):
        model = add_model()
        fill(model)
        return model.to_bytes()


def seen(data: bytes, table: str, **fields: tuple) -> Model:
    """Return the model as a program with a newer schema reads it."""
    with newer_schema(table, **fields):
        return Model.read(data)


SCALARS = [
    ("bool", True),
    ("int8", -5),
    ("uint16", 40000),
    ("int32", 3),
    ("int32", -8),
    ("float32", 0.75),
    ("int64", 2**40 + 8),
    ("uint64", 7),
    ("int64", -16),
]


@pytest.mark.parametrize(("type", "value"), SCALARS)
def test_a_scalar_goes_along_with_a_changed_model(type, value):
    fields = {"novel": (40, type, 0)}
    data = written(lambda m: setattr(m.subgraphs[0].tensors[1], "novel", value), "Tensor", **fields)
    model = Model.read(data)
    model.subgraphs[0].tensors[1].name = "a longer name than before"
    model.description = None
    again = seen(model.to_bytes(), "Tensor", **fields)
    assert again.subgraphs[0].tensors[1].novel == value
    assert again.subgraphs[0].tensors[1].name == "a longer name than before"
    assert "newer than the schema: 40" in repr(model.subgraphs[0].tensors[1])
    model = Model.read(data)
    model.description = None
    assert Model.read(model.to_bytes()) == model != add_model()
    kept = model.subgraphs[0].tensors[1].unknown_fields
    kept[40] = kept[40]._replace(bytes=b"?")
    assert Model.read(data) != model


OFFSETS = {
    "string": (("string", None), "some text"),
    "vector": (("vector:int32", None), np.array([1, 2, 3], np.int32)),
    "table": (("table:AddOptions", None), None),
    "number that could be an offset": (("int32", 0), 64),
}


@pytest.mark.parametrize("kind", OFFSETS)
def test_what_may_be_an_offset_is_kept_in_an_unchanged_file_and_refused_in_a_changed_one(kind):
    row, value = OFFSETS[kind]
    fields = {"novel": (9, *row)}

    def fill(m):
        result = objects.AddOptions(pot_scale_int16=False) if value is None else value
        m.subgraphs[0].novel = result

    data = written(fill, "SubGraph", **fields)
    model = Model.read(data)
    assert model.to_bytes() == data
    assert Model.read(model.to_bytes()) == model
    model.description = "changed"
    with pytest.raises(errors.UnimplementedError, match=r"subgraphs\[0\].*field 9 of table SubGraph(.|\n)*drop"):
        model.to_bytes()
    dropped = Model.read(model.to_bytes(unknown="drop"))
    assert not hasattr(dropped.subgraphs[0], "unknown_fields")
    assert dropped.description == "changed"
    model.description = "y = x + c"  # as it was
    assert model.to_bytes() == data


def test_a_member_of_a_union_goes_along_with_everything_it_holds():
    fields = {"number": (0, "int64", 0), "words": (1, "string", None), "parts": (2, "vector:table:Metadata", None)}

    def fill(m):
        parts = [objects.Metadata(name=f"part {i}", buffer=i) for i in range(3)]
        options = objects.table_class("NewOptions")(number=5, words="kept", parts=parts)
        m.subgraphs[0].operators[0].builtin_options = options
        m.buffers[1].data = np.arange(100_000, dtype=np.uint8)

    data = written(fill, "NewOptions", **fields)
    model = Model.read(data)
    assert isinstance(model.subgraphs[0].operators[0].builtin_options, objects.UnknownUnionMember)
    assert model.to_bytes() == data
    model.description, model.buffers[2].data = "changed", b"x"
    new = model.to_bytes()
    assert Model.read(new) == model
    assert len(new) < len(data) + 10_000  # the weights are in it once
    with newer_schema("NewOptions", **fields):
        options = Model.read(new).subgraphs[0].operators[0].builtin_options
        assert (options.number, options.words) == (5, "kept")
        assert [(p.name, p.buffer) for p in options.parts] == [(f"part {i}", i) for i in range(3)]
    again = Model.read(new)
    assert (again.buffers[1].data == model.buffers[1].data).all()
    assert again.to_bytes() == new
    again.description = "once more"
    assert len(Model.read(again.to_bytes()).to_bytes()) < 2 * len(data)
    assert Model.read(model.to_bytes(unknown="drop")).subgraphs[0].operators[0].builtin_options is None
    with pytest.raises(errors.InvalidArgumentError, match="'keep' or 'drop'"):
        model.to_bytes(unknown="lose")


def test_models_with_something_newer_are_copied_and_pickled():
    data = written(lambda m: setattr(m.subgraphs[0], "novel", "text"), "SubGraph", novel=(9, "string", None))
    model = Model.read(data)
    assert copy.deepcopy(model) == model == pickle.loads(pickle.dumps(model))
    assert copy.deepcopy(model).to_bytes() == data == pickle.loads(pickle.dumps(model)).to_bytes()


def test_a_member_made_from_its_tag_alone_is_not_written():
    model = add_model()
    model.subgraphs[0].operators[0].builtin_options = objects.UnknownUnionMember(250)
    with pytest.raises(errors.UnimplementedError, match="250"):
        model.to_bytes()


def test_enum_numbers_newer_than_ours_are_kept():
    model = add_model()
    model.subgraphs[0].tensors[0].type = 99
    model.operator_codes[0].builtin_code = 4000
    model.subgraphs[0].operators[0].builtin_options.fused_activation_function = 77
    again = Model.read(model.to_bytes())
    assert again == model
    assert (again.subgraphs[0].tensors[0].type, again.operator_codes[0].builtin_code) == (99, 4000)


def test_deprecated_fields_are_kept():
    model = add_model()
    model.subgraphs[0].operators[0].builtin_options = objects.ResizeBilinearOptions(new_height=3, new_width=4)
    model.signature_defs[0].deprecated_tag = "serve"
    again = Model.read(model.to_bytes())
    assert again == model
    assert again.subgraphs[0].operators[0].builtin_options.new_height == 3
    assert again.signature_defs[0].deprecated_tag == "serve"


def test_absent_and_empty_vectors_stay_what_they_are():
    generated = pytest.importorskip("ai_edge_litert.schema_py_generated")
    import flatbuffers

    t = generated.ModelT.InitFromObj(generated.Model.GetRootAsModel(rich_model().to_bytes(), 0))
    t.buffers[6].offset = t.buffers[6].size = 0
    t.buffers[6].data = np.zeros(40, np.uint8)
    op, tensor = t.subgraphs[0].operators[0], t.subgraphs[0].tensors[0]
    op.mutatingVariableInputs, op.intermediates, tensor.shapeSignature, t.metadataBuffer = [], None, [], []
    t.subgraphs[1].operators, tensor.variantTensors, t.externalBuffers = None, [], []
    builder = flatbuffers.Builder()
    builder.Finish(t.Pack(builder), b"TFL3")
    root = generated.Model.GetRootAsModel(Model.read(bytes(builder.Output())).to_bytes(), 0)
    graph = root.Subgraphs(0)
    assert not graph.Operators(0).MutatingVariableInputsIsNone()
    assert graph.Operators(0).IntermediatesIsNone()
    assert not graph.Tensors(0).ShapeSignatureIsNone()
    assert graph.Tensors(1).ShapeSignatureIsNone()
    assert not graph.Tensors(0).VariantTensorsIsNone()
    assert graph.Tensors(1).VariantTensorsIsNone()
    assert not root.MetadataBufferIsNone()
    assert not root.ExternalBuffersIsNone()
    assert root.ExternalBufferGroupsIsNone()
    assert root.Subgraphs(1).OperatorsIsNone()


def test_files_behind_the_model_are_kept_and_found_by_any_zip_reader(tmp_path):
    model = Model.read(official.case("metadata").path)
    assert model.associated_files() == {"labels.txt": b"cat\ndog\n"}
    model.description = "a description that moves everything behind it"
    model.write(tmp_path / "m.tflite")
    with zipfile.ZipFile(tmp_path / "m.tflite") as archive:
        assert archive.read("labels.txt") == b"cat\ndog\n"
        assert archive.infolist()[0].header_offset > 500  # counted from the start of the file
    again = Model.read(tmp_path / "m.tflite")
    assert again == model
    assert Model.read(again.to_bytes()).associated_files() == model.associated_files()
    assert add_model().associated_files() == {}
    again.attachment = None
    assert again != model


def test_an_archive_that_counts_from_its_own_start_is_found_too():
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a", "A" * 1000)
        archive.writestr("b/c", "")
    model = Model.read(add_model().to_bytes() + packed.getvalue())
    assert model.associated_files() == {"a": b"A" * 1000, "b/c": b""}
    again = Model.read(model.to_bytes())
    assert again.associated_files() == model.associated_files()
    broken = bytearray(model.to_bytes())
    broken[-50:-22] = bytes(28)
    assert Model.read(bytes(broken)).attachment is None
