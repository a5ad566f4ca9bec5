"""Files as older converters wrote them: options tables without the fields that came later, old operator codes.

Lives here: `with_old_options`.  Not here: tests.
They are written by the FlatBuffers library and the generated code of the official run time, not by Opwright.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opwright.lite.format import Model, schema

PUT = {
    "bool": "PrependBoolSlot",
    "int8": "PrependInt8Slot",
    "int32": "PrependInt32Slot",
    "float32": "PrependFloat32Slot",
}


class OldOptions:
    """Packs an options table of a schema that ended after `slots` fields. values: by field, all of them stored."""

    def __init__(self, table: str, slots: int, values: Mapping[str, Any]) -> None:
        self.table, self.slots, self.values = table, slots, values

    def Pack(self, builder: Any) -> Any:
        builder.StartObject(self.slots)
        for field in schema.table(self.table).fields[: self.slots]:
            if field.kind == "scalar" and field.name in self.values:
                getattr(builder, PUT[field.scalar])(field.id, self.values[field.name], None)
        return builder.EndObject()


def with_old_options(model: Model, slots: int, values: Mapping[str, Any] | None = None) -> bytes:
    """A model's bytes with the options of its first operator in a table of `slots` fields.

    values: of the fields, by default those the options have.
    """
    import flatbuffers
    from ai_edge_litert import schema_py_generated as generated

    options = model.subgraphs[0].operators[0].builtin_options
    fields = [f for f in schema.table(options.table_name).fields if f.kind == "scalar"]
    kept = {f.name: getattr(options, f.name) for f in fields} if values is None else dict(values)
    root = generated.ModelT.InitFromObj(generated.Model.GetRootAsModel(model.to_bytes(), 0))
    root.subgraphs[0].operators[0].builtinOptions = OldOptions(options.table_name, slots, kept)
    builder = flatbuffers.Builder()
    builder.Finish(root.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())
