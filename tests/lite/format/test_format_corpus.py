"""Files of the official converter: read, verified, written again; the official run time reads them alike."""

from __future__ import annotations

import functools

import numpy as np
import official
import pytest

from opwright.lite.format import Model, findings, objects, schema
from thorough import sampled

CASES = sampled([pytest.param(case, id=case.name) for case in official.cases()])


def plain(found):
    """A tree of the generated reader as dicts and lists, absent and empty alike kept apart."""
    if isinstance(found, (list, tuple)):
        return [plain(item) for item in found]
    if isinstance(found, np.ndarray):
        return found.tolist()
    if hasattr(found, "__dict__"):
        return {"class": type(found).__name__, **{key: plain(value) for key, value in vars(found).items()}}
    return found


def unpacked(data: bytes):
    generated = pytest.importorskip("ai_edge_litert.schema_py_generated")
    return plain(generated.ModelT.InitFromObj(generated.Model.GetRootAsModel(data, 0)))


@pytest.mark.parametrize("case", CASES)
def test_read_and_written_again_it_is_equal(case):
    model = Model.read(case.path)
    assert findings(model) == []
    data = model.to_bytes()
    again = Model.read(data)
    assert again == model
    assert again.to_bytes() == data
    assert len(data) <= len(case.bytes()) + 128, "our order of things is not to cost space"


@pytest.mark.parametrize("case", CASES)
def test_the_generated_reader_sees_the_same_in_both(case):
    before, after = unpacked(case.bytes()), unpacked(Model.read(case.path).to_bytes())
    if case.name == "cnn_buffer_offset":  # where buffers lie is not what they hold
        for tree in (before, after):
            for buffer in tree["buffers"]:
                assert buffer.pop("offset") in (0, 1) or buffer["size"] > 1
    assert before == after


@functools.cache
def _interpreters():
    return pytest.importorskip("ai_edge_litert.interpreter")


def answers(data: bytes, case) -> list:
    """Return the results of the official interpreter for the calls of a case."""
    litert = _interpreters()
    kind = litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = litert.Interpreter(model_content=data, experimental_op_resolver_type=kind, num_threads=1)
    return [interpreter.get_signature_runner(call.signature)(**call.inputs) for call in case.calls]


@pytest.mark.parametrize("case", [p for p in CASES if not p.id.startswith(("flex", "custom", "random"))])
def test_the_official_interpreter_returns_the_same_for_what_we_wrote(case):
    result = answers(Model.read(case.path).to_bytes(), case)
    assert len(result) == len(case.calls) > 0
    for got, call in zip(result, case.calls):
        assert set(got) == set(call.outputs)
        for name, value in got.items():
            want, value = call.outputs[name], np.asarray(value)
            if want.dtype.kind == "S":
                assert value.astype("S").tolist() == want.tolist()
            else:
                np.testing.assert_allclose(value.astype(np.complex128), want.astype(np.complex128), 1e-5, 1e-5)


def test_the_corpus_covers_the_format():
    """Each thing of the format that the converter writes is in one file at least."""
    seen = set()
    for case in official.cases():
        model = Model.read(case.path)
        for code in model.operator_codes:
            seen.add(f"operator {schema.BuiltinOperator(max(code.builtin_code, code.deprecated_builtin_code)).name}")
            seen |= {"extended code"} if code.builtin_code > 127 and code.deprecated_builtin_code == 127 else set()
            seen |= {"flex"} if (code.custom_code or "").startswith("Flex") else set()
        seen |= {f"metadata {entry.name}" for entry in model.metadata}
        seen |= {"several signatures"} if len(model.signature_defs) > 1 else set()
        seen |= {"buffer behind"} if any(b.offset > 0 for b in model.buffers) else set()
        for graph in model.subgraphs:
            for tensor in graph.tensors:
                seen.add(f"type {tensor.type.name}")
                q = tensor.quantization
                seen |= {"per channel"} if q is not None and len(q.scale) > 1 else set()
                seen |= {"sparse"} if tensor.sparsity is not None else set()
                seen |= {"unknown size"} if -1 in np.asarray(tensor.shape_signature) else set()
            seen |= {"options 2" for op in graph.operators if op.builtin_options_2 is not None}
            seen |= {"intermediates" for op in graph.operators if len(op.intermediates)}
            seen |= {"options map" for op in graph.operators if op.custom_options is not None}
    assert seen >= {
        "extended code",
        "flex",
        "metadata min_runtime_version",
        "metadata TFLITE_METADATA",
        "several signatures",
        "buffer behind",
        "per channel",
        "sparse",
        "unknown size",
        "intermediates",
        "options map",
        "type INT64",
        "operator IF",
        "operator WHILE",
        "operator CALL_ONCE",
        "operator VAR_HANDLE",
        "operator HASHTABLE_FIND",
        "operator UNIDIRECTIONAL_SEQUENCE_LSTM",
        "operator CUSTOM",
        "operator DENSIFY",
        "type FLOAT16",
        "type INT8",
        "type UINT8",
        "type INT16",
        "type INT4",
        "type STRING",
        "type RESOURCE",
        "type COMPLEX64",
        "type BOOL",
    }


def test_every_table_of_the_corpus_is_of_the_schema():
    def unknown(table) -> bool:
        return isinstance(table, objects.UnknownUnionMember) or hasattr(table, "unknown_fields")

    for case in official.cases():
        model = Model.read(case.path)
        tables = [model, *(t for g in model.subgraphs for t in (*g.tensors, *g.operators))]
        assert not any(map(unknown, tables))
        assert model.source is None
