"""Helpers of the tests of lite: models written line by line, running and inspecting files.

Not here: what one area needs (its own *_running.py, *_models.py), the corpus of official files (data/tflite).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opwright.lite.format import Model, objects, pack_strings, schema, versions
from opwright.lite.format.flexbuffers import encode_options
from opwright.lite.ops import get

T = schema.TensorType


class Build:
    """Writes a model line by line: subgraphs, tensors by name, operators in order.

    Tensors that an operator names first are float32 [5]. `subgraph` begins the next one; the first has begun, unless
    its name is None.
    """

    def __init__(self, name: str | None = "main", model: Model | None = None) -> None:
        self.model = Model(buffers=[objects.Buffer()]) if model is None else model
        if name is not None:
            self.subgraph(name)

    def subgraph(self, name: str) -> Any:
        self.main = objects.SubGraph(name=name)
        self.names: dict[str, int] = {}
        self.model.subgraphs.append(self.main)
        return self

    def tensor(self, name: str, shape: Any = (5,), type: str = "FLOAT32", data: Any = None, **fields: Any) -> Any:
        """data: of a constant, which has its shape."""
        buffer = 0
        if data is not None:
            raw = pack_strings(np.ravel(data).tolist()) if type == "STRING" else np.asarray(data).tobytes()
            self.model.buffers.append(objects.Buffer(data=np.frombuffer(raw, np.uint8)))
            buffer, shape = len(self.model.buffers) - 1, np.shape(data)
        self.names[name] = len(self.main.tensors)
        self.main.tensors.append(objects.Tensor(name=name, shape=list(shape), type=T[type], buffer=buffer, **fields))
        return self

    def operator(self, code: Any, inputs: str, outputs: str, **fields: Any) -> Any:
        """code: an OperatorCode; fields: of the Operator. A name "_" is an input left out."""
        self.model.operator_codes.append(code)
        for name in [*inputs.split(), *outputs.split()]:
            if name != "_" and name not in self.names:
                self.tensor(name)
        indices = [[-1 if n == "_" else self.names[n] for n in side.split()] for side in (inputs, outputs)]
        place = len(self.model.operator_codes) - 1
        self.main.operators.append(
            objects.Operator(opcode_index=place, inputs=indices[0], outputs=indices[1], **fields)
        )
        return self

    def op(self, name: str, inputs: str = "", outputs: str = "", version: int = 1, **options: Any) -> Any:
        return self.operator(
            versions.operator_code(name, version), inputs, outputs, builtin_options=get(name).to_options(options)
        )

    def node(self, name: str, inputs: str, outputs: str, /, **options: Any) -> Any:
        """As `op`, with options as a file has them: graphs by the index of their subgraph, in either union."""
        table = get(name).options
        result = objects.table_class(table)(**options) if table else None
        union = "builtin_options" if table in schema.union_tags("BuiltinOptions") else "builtin_options_2"
        return self.operator(versions.operator_code(name), inputs, outputs, **{union: result})

    def custom(self, name: str, inputs: str, outputs: str, version: int = 1, **options: Any) -> Any:
        raw = np.frombuffer(encode_options(options), np.uint8) if options else None
        return self.operator(versions.operator_code("CUSTOM", version, name), inputs, outputs, custom_options=raw)

    def ends(self, inputs: str = "", outputs: str = "") -> Any:
        """Return the inputs and outputs of the subgraph."""
        self.main.inputs = [self.names[n] for n in inputs.split()]
        self.main.outputs = [self.names[n] for n in outputs.split()]
        return self

    def done(self, inputs: str | None = "x", outputs: str = "y", signature: str | None = None) -> bytes:
        """The file. inputs, outputs: of the last subgraph; None where `ends` has said them."""
        if inputs is not None:
            self.ends(inputs, outputs)
        if signature and inputs is not None:
            maps = [
                [objects.TensorMap(name=n, tensor_index=self.names[n]) for n in side.split()]
                for side in (inputs, outputs)
            ]
            self.model.signature_defs.append(
                objects.SignatureDef(signature_key=signature, inputs=maps[0], outputs=maps[1])
            )
        return self.model.to_bytes()


def any_batch() -> bytes:
    """y: relu(x) [batch, n] as [batch, n / 2, 2], where nodes work out the batch and the half."""
    b = Build().tensor("x", (2, 6), shape_signature=[-1, -1]).tensor("r", (2, 6)).op("RELU", "x", "r")
    b.tensor("sizes", (2,), "INT32").op("SHAPE", "r", "sizes", out_type="INT32")
    for name, at in (("batch", 0), ("n", 1)):
        for word, value in (("from", at), ("to", at + 1), ("by", 1)):
            b.tensor(f"{name}.{word}", type="INT32", data=np.int32([value]))
        b.tensor(name, (), "INT32").op(
            "STRIDED_SLICE", f"sizes {name}.from {name}.to {name}.by", name, shrink_axis_mask=1
        )
    b.tensor("two", type="INT32", data=np.int32(2)).tensor("half", (), "INT32").op("FLOOR_DIV", "n two", "half")
    b.tensor("shape", (3,), "INT32").op("PACK", "batch half two", "shape", values_count=3)
    return b.tensor("y", (2, 3, 2)).op("RESHAPE", "r shape", "y").done()


def op_names(content: bytes, subgraph: int | None = 0) -> list[str]:
    """The operators of a file in order, by name; custom ones by their own. subgraph: None for all."""
    model = Model.read(content)
    chosen = model.subgraphs if subgraph is None else [model.subgraphs[subgraph]]
    codes = [model.operator_codes[op.opcode_index] for part in chosen for op in part.operators]
    return [code.custom_code or versions.op_name(code) for code in codes]


def op_versions(content: bytes) -> dict[str, int]:
    """The version stamped for each builtin operator."""
    return {versions.op_name(code): code.version for code in Model.read(content).operator_codes}


def run(interpreter: Any, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Run an interpreter, official or ours, on inputs in order, which are resized where they differ."""
    details = interpreter.get_input_details()
    for detail, x in zip(details, inputs, strict=True):
        if tuple(detail["shape"]) != x.shape:
            interpreter.resize_tensor_input(detail["index"], x.shape)
    interpreter.allocate_tensors()
    for detail, x in zip(details, inputs, strict=True):
        interpreter.set_tensor(detail["index"], x)
    interpreter.invoke()
    return [np.array(interpreter.get_tensor(d["index"])) for d in interpreter.get_output_details()]


def one_step(values: np.ndarray) -> float:
    """Return the least distance of neighbours among quantised numbers, dequantised or not; 0 if all are equal."""
    distinct = np.unique(values[np.isfinite(values)].astype(np.float64))
    gaps = np.diff(distinct)
    gaps = gaps[gaps > 1e-5 * np.abs(distinct).max(initial=0)]  # one number by two roundings
    return float(gaps.min(initial=np.inf)) if gaps.size else 0.0
