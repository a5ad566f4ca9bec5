"""Models the tests of the file format share: a small real one, a large one, and strategies made from the schema."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from opwright.lite.format import Model, objects, pack_strings, schema
from opwright.lite.format.flexbuffers import encode_options
from opwright.lite.format.versions import operator_code


def add_model(type=0, shape=(2, 3)) -> Model:
    """y = x + constant, with a signature, metadata and a quantization table; runs in the official run time."""
    constant = np.arange(np.prod(shape), dtype=np.float32)
    tensors = [
        objects.Tensor(shape=list(shape), type=schema.TensorType(type), name="x"),
        objects.Tensor(shape=list(shape), name="c", buffer=1, quantization=objects.QuantizationParameters()),
        objects.Tensor(shape=list(shape), shape_signature=[-1, *shape[1:]], name="y"),
    ]
    add = objects.Operator(inputs=[0, 1], outputs=[2], builtin_options=objects.AddOptions())
    main = objects.SubGraph(tensors=tensors, inputs=[0], outputs=[2], operators=[add], name="main")
    signature = objects.SignatureDef(
        inputs=[objects.TensorMap(name="in", tensor_index=0)],
        outputs=[objects.TensorMap(name="out", tensor_index=2)],
        signature_key="serving_default",
    )
    return Model(
        operator_codes=[operator_code("ADD")],
        subgraphs=[main],
        description="y = x + c",
        buffers=[
            objects.Buffer(),
            objects.Buffer(data=constant.view(np.uint8)),
            objects.Buffer(data=b"2.3.0" + bytes(11)),
        ],
        metadata=[objects.Metadata(name="min_runtime_version", buffer=2)],
        signature_defs=[signature],
    )


def rich_model() -> Model:
    """Strings, sparse and packed constants, control flow, both unions, custom options: much for mutants to hit."""
    model = add_model()
    t = schema.TensorType
    model.buffers += [
        objects.Buffer(data=pack_strings(["a", "bc", ""])),
        objects.Buffer(data=bytes(3)),
        objects.Buffer(data=np.array([1, 2, 3], np.float32).view(np.uint8)),
        objects.Buffer(data=bytes(40), offset=1, size=1),
    ]
    sparsity = objects.SparsityParameters(
        traversal_order=[0, 1],
        dim_metadata=[
            objects.DimensionMetadata(dense_size=2),
            objects.DimensionMetadata(
                format=schema.DimensionType.SPARSE_CSR,
                array_segments=objects.Int32Vector(values=[0, 1, 3]),
                array_indices=objects.Uint8Vector(values=[1, 0, 3]),
            ),
        ],
    )
    per_axis = objects.QuantizationParameters(scale=[0.5, 0.25], zero_point=[0, 0], quantized_dimension=0)
    block = objects.QuantizationParameters(
        details=objects.BlockwiseQuantization(scales=0, zero_points=-1, block_size=2)
    )
    main = model.subgraphs[0]
    main.tensors += [
        objects.Tensor(shape=[3], type=t.STRING, buffer=3, name="strings"),
        objects.Tensor(shape=[5], type=t.INT4, buffer=4, name="packed", quantization=block),
        objects.Tensor(shape=[2, 4], buffer=5, name="sparse", sparsity=sparsity),
        objects.Tensor(shape=[2, 4], type=t.INT8, buffer=6, name="per axis", quantization=per_axis),
        objects.Tensor(
            shape=[],
            type=t.RESOURCE,
            name="handle",
            has_rank=True,
            variant_tensors=[objects.VariantSubType(shape=[1], type=t.INT64)],
        ),
        *(objects.Tensor(shape=[2, 3], name=f"y{i}") for i in range(3)),
    ]
    model.operator_codes += [operator_code("IF"), operator_code("CUSTOM", 2, "Mine"), operator_code("STABLEHLO_IOTA")]
    main.operators += [
        objects.Operator(
            opcode_index=1,
            inputs=[0, 2],
            outputs=[8],
            builtin_options=objects.IfOptions(then_subgraph_index=1, else_subgraph_index=2),
        ),
        objects.Operator(
            opcode_index=2,
            inputs=[0, -1],
            outputs=[9],
            custom_options=encode_options({"k": [1, 2]}),
            mutating_variable_inputs=[False, True],
            intermediates=[-1],
        ),
        objects.Operator(opcode_index=3, inputs=[0], outputs=[10], builtin_options_2=objects.StablehloIotaOptions()),
    ]
    model.subgraphs += [
        objects.SubGraph(tensors=[objects.Tensor(shape=[1])], inputs=[0], outputs=[0]) for _ in range(2)
    ]
    return model


def _scalars(field: schema.SchemaField):
    if field.enum:
        return st.sampled_from(list(schema.enum(field.enum)))
    if field.scalar == "bool":
        return st.booleans()
    if field.scalar == "float32":
        return st.floats(width=32)
    limits = np.iinfo(schema.SCALARS[field.scalar][2])
    return st.integers(int(limits.min), int(limits.max))


# Read back as marks that the bytes lie behind the FlatBuffer, and so drawn as marks only.
_MARKS = {"Buffer.offset", "Buffer.size", "Operator.large_custom_options_offset", "Operator.large_custom_options_size"}


@st.composite
def tables(draw, name: str):
    """Any object of a table, with everything below it."""
    values = {}
    for field in schema.table(name).fields:
        if f"{name}.{field.name}" in _MARKS or not draw(st.booleans()):
            continue
        if field.kind == "scalar":
            value = draw(_scalars(field))
        elif field.kind == "string":
            value = draw(st.text(max_size=8))
        elif field.kind == "vector":
            value = np.array(draw(st.lists(_scalars(field), max_size=5)), schema.SCALARS[field.scalar][2])
        elif field.kind == "tables":
            value = draw(st.lists(tables(field.of), max_size=2))
        elif field.kind == "union":
            value = draw(st.sampled_from(sorted(schema.union_tags(field.of))).flatmap(tables))
        else:
            value = draw(tables(field.of))
        values[field.name] = value
    if name == "Model":
        values["version"] = 3
    if name == "Buffer" and values.get("data") is not None and draw(st.booleans()):
        values |= {"offset": 1, "size": 1}
    return objects.table_class(name)(**values)
