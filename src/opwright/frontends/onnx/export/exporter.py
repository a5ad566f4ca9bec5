"""`to_onnx`: a function of catalogue operators as an ONNX model.

Lives here: the passes before, inputs and outputs with symbolic sizes, unused nodes, external data, the error that
lists operators without a form.  Not here: nodes (writer.py and the rules).
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ....core import __version__, nest
from ....core.dtypes import as_dtype, string
from ....core.errors import InvalidArgumentError, UnimplementedError
from ....core.files import replacing
from ....graph import Value
from ....lite.convert.decompositions import lower_recurrences
from ....lite.convert.freeze import freeze
from ....lite.convert.lists import lower_lists
from ....lite.convert.passes import prepare
from ....lite.convert.quantize.explicit import is_stated
from ....tracing.concrete import ConcreteFunction
from ..files import onnx_module
from .control_flow import info_of
from .writer import CODES, OPSET, GraphWriter, SharedState

FAMILIES = ("arrays", "control_flow", "elementwise", "neural")
IR_VERSION = 10  # of opset 22
EXTERNAL_BYTES = 2**31 - 2**20  # a protobuf holds less than 2 GiB
EXTERNAL_TENSOR = 1024  # bytes of a tensor that is worth a place in the other file
ALIGNMENT = 4096  # of tensors in it, so that they can be mapped


def to_onnx(function: Any, path: Any = None, *, external_data: bool | None = None) -> Any:
    """Return a function as an ONNX model (`onnx.ModelProto`, opset 22), and write it to a file.

    function: a `Function` with an input signature, such as `from_onnx` and `from_torch` return, or a ConcreteFunction.
    Inputs have the names of its parameters, unknown sizes are symbolic; results have the names of the imported model,
    the keys of a dict, or output_0, output_1 and so on. Variables become constants of their values.
    path: of the file to write, or None. external_data: whether weights are written to PATH.data; by default where they
    exceed the 2 GB of a protobuf. The returned model refers to them then.
    Needs the package `onnx` (`pip install 'opwright[onnx]'`).
    raises UnimplementedError, which lists every operator that ONNX cannot express, with the reason;
    InvalidArgumentError for a function without a signature
    """
    concrete = _concrete(function)
    onnx = onnx_module()
    for family in FAMILIES:
        importlib.import_module(f".{family}", __package__)
    graph = prepare(lower_lists(prepare(lower_recurrences(freeze([concrete]).graphs[0])), [], None))
    shared = SharedState()
    shared.quantized = is_stated(graph)
    writer = GraphWriter(shared, {v: shared.unique(v.name) for v in graph.inputs})
    shared.dtypes.update((writer[v], v.dtype) for v in graph.inputs)
    for value in graph.inputs:
        if value.dtype not in CODES:
            raise UnimplementedError(
                op="to_onnx", node=value.name, what="ONNX has no such dtype", found=value.dtype.name
            )
    results = writer.write(graph)
    if shared.missing:
        raise _report(shared)
    outputs = _named_outputs(writer, results, _output_names(function, concrete, len(graph.outputs)))
    dims = _SymbolicSizes()
    proto = onnx.helper.make_graph(
        _used(writer.nodes, outputs),
        graph.name or "function",
        [info_of(writer[v], v, dims.of(v, writer[v])) for v in graph.inputs],
        [info_of(name, v, dims.of(v, name)) for name, v in zip(outputs, graph.outputs)],
    )
    model = onnx.helper.make_model(
        proto,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        producer_name="Opwright",
        producer_version=__version__,
        ir_version=IR_VERSION,
    )
    used = {name for node in _all_nodes(proto) for name in node.input} | set(outputs)
    arrays = {name: array for name, array in shared.initializers.items() if name in used}
    size = sum(a.nbytes for a in arrays.values() if a.dtype != object)
    external = size > EXTERNAL_BYTES if external_data is None else external_data
    if external and path is None:
        raise InvalidArgumentError(
            op="to_onnx", what="weights that a protobuf cannot hold need a file", found=f"{size} bytes", do="path="
        )
    place = None if path is None else Path(os.fspath(path))
    if external:
        assert place is not None
        _write_external(model.graph, arrays, place.with_name(f"{place.name}.data"))
    else:
        model.graph.initializer.extend(_tensor(name, array) for name, array in arrays.items())
    if place is not None:
        with replacing(place) as file:
            file.write(model.SerializeToString())
    return model


def _concrete(function: Any) -> Any:
    if isinstance(function, ConcreteFunction):
        return function
    if hasattr(function, "concrete"):  # an imported one
        return function.concrete()
    if getattr(function, "input_signature", None) is not None:
        return function.get_concrete_function()
    raise InvalidArgumentError(
        op="to_onnx",
        what="the function has no input signature",
        found=type(function).__name__,
        do="function.get_concrete_function(ow.TensorSpec(...))",
    )


def _report(shared: SharedState) -> UnimplementedError:
    rows: dict[tuple[str, str], list[str]] = {}
    for node, reason in shared.missing:
        rows.setdefault((node.op.name, reason), []).append(f"{node.name}{f' at {node.at}' if node.at else ''}")
    lines = [
        f"    {name} ({reason}): {', '.join(places[:3])}{f' and {len(places) - 3} more' if len(places) > 3 else ''}"
        for (name, reason), places in sorted(rows.items())
    ]
    count = len({name for name, _ in rows})
    return UnimplementedError(
        op="to_onnx",
        what=f"ONNX cannot express {count} operator{'s' if count > 1 else ''} of the function\n" + "\n".join(lines),
        do="write the function without them",
    )


def _output_names(function: Any, concrete: Any, count: int) -> list[str]:
    names = list(getattr(function, "output_names", ()))
    if not names and isinstance(structure := concrete.structured_outputs, dict):
        names = [str(path[0]) for path, leaf in nest.flatten_with_paths(structure) if leaf is not None]
    return names if len(names) == len(set(names)) == count else [f"output_{i}" for i in range(count)]


def _named_outputs(writer: GraphWriter, results: list[str], names: list[str]) -> list[str]:
    """Return the names of the outputs, which Identity nodes give to the results."""
    writer.prefix = "outputs"
    named = []
    for result, name in zip(results, names):
        unique = writer.shared.unique(name)
        node = onnx_module().helper.make_node("Identity", [result], [unique], name=f"outputs/{unique}")
        writer.nodes.append(node)
        named.append(unique)
    return named


class _SymbolicSizes:
    """Names of sizes that are open: one for each dimension of an input or output."""

    @staticmethod
    def of(value: Value, name: str) -> list[Any] | None:
        """Return sizes and names of a value's shape, None for an unknown rank."""
        dims = value.shape.dims
        return None if dims is None else [f"{name}_{i}" if d is None else d for i, d in enumerate(dims)]


def _all_nodes(graph: Any) -> Iterator[Any]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for subgraph in (attribute.g, *attribute.graphs):
                yield from _all_nodes(subgraph)


def _reads(node: Any) -> set[str]:
    names = set(node.input)
    for attribute in node.attribute:
        for subgraph in (attribute.g, *attribute.graphs):
            names.update(*(_reads(n) for n in subgraph.node), (o.name for o in subgraph.output))
    return names


def _used(nodes: list[Any], outputs: list[str]) -> list[Any]:
    """Return the nodes on which outputs depend, in order."""
    needed, kept = set(outputs), []
    for node in reversed(nodes):
        if needed.intersection(node.output):
            needed |= _reads(node)
            kept.append(node)
    return kept[::-1]


# ---- weights ---------------------------------------------------------------------------------------------------------


def _tensor(name: str, array: np.ndarray) -> Any:
    onnx = onnx_module()
    if array.dtype == object:
        texts = [t if isinstance(t, bytes) else str(t).encode() for t in array.reshape(-1)]
        return onnx.helper.make_tensor(name, CODES[string], array.shape, texts)
    tensor = _header(name, array)
    tensor.raw_data = _bytes(array)
    return tensor


def _header(name: str, array: np.ndarray) -> Any:
    tensor = onnx_module().TensorProto(name=name, data_type=CODES[as_dtype(array.dtype)])
    tensor.dims.extend(array.shape)
    return tensor


def _bytes(array: np.ndarray) -> bytes:
    """Return the bytes of a tensor: little-endian, elements of 4 bits in pairs."""
    if array.dtype.name == "int4":
        nibbles = array.reshape(-1).astype(np.int8).view(np.uint8) & 15
        nibbles = np.concatenate([nibbles, np.zeros(len(nibbles) % 2, np.uint8)])
        return (nibbles[::2] | nibbles[1::2] << 4).tobytes()
    return np.ascontiguousarray(array).tobytes()


def _write_external(graph: Any, arrays: dict[str, np.ndarray], place: Path) -> None:
    """Write large tensors one after the other, and add all to the graph."""
    with replacing(place) as file:
        for name, array in arrays.items():
            if array.dtype == object or array.nbytes < EXTERNAL_TENSOR:
                graph.initializer.append(_tensor(name, array))
                continue
            file.write(b"\0" * (-file.tell() % ALIGNMENT))
            tensor = _header(name, array)
            tensor.data_location = tensor.EXTERNAL
            content = _bytes(array)
            for key, text in (("location", place.name), ("offset", file.tell()), ("length", len(content))):
                tensor.external_data.add(key=key, value=str(text))
            file.write(content)
            graph.initializer.append(tensor)
