"""Nodes on strings that one function in machine code runs: several runs of each, with other texts each time.

Oracle: the official interpreter, run by run.
"""

from __future__ import annotations

import sys

import numpy as np
import pytest
from drawn import Draw
from drawn import feeds as drawn_feeds
from drawn import model_of as drawn_model
from drawn_table import ROWS
from one_operator import Const, case, feeds, model_of, official_interpreter, output_types

from opwright import lite
from opwright.compiler.native.image import runs_images
from opwright.compiler.native.string_calls import make_string_calls
from opwright.core import flags
from opwright.core.errors import OpError

pytestmark = pytest.mark.skipif(not runs_images(), reason="no images of machine code here")
RUNS = 4


def strings(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Texts of up to three words with odd spaces; equal ones are different objects."""
    words = [b"", b"a", b"\x00", b"ab", b"a\x00b", b"\xff\xfe", b"word", b" lead", b"tab\tnew\nline", b"a b  c d "]
    result = np.empty(shape, object)
    flat = result.reshape(-1)
    for i in range(flat.size):
        flat[i] = bytes(bytearray(b" ".join(words[j] for j in rng.integers(0, len(words), rng.integers(1, 4)))))
    return result


one = strings(np.random.default_rng(1), 1)
two, five = strings(np.random.default_rng(2), 2, 3), strings(np.random.default_rng(3), 5)
MODELS = {
    "SKIP_GRAM": [
        case(one, ngram_size=n, max_skip_size=skip, include_all_ngrams=every)
        for n, skip, every in ((1, 0, False), (2, 0, False), (2, 1, True), (3, 2, True), (4, 9, False), (8, 1, True))
    ],
    "EQUAL": [case(two, two), case(two, strings(np.random.default_rng(3), 1))],
    "NOT_EQUAL": [case(two, two)],
    "GATHER": [
        case(five, np.array([[1, 0], [4, 4]], np.int32), axis=0, batch_dims=0),
        case(five, np.array([3, 0], np.int64), axis=0, batch_dims=0),
    ],
    "SLICE": [case(two, Const([0, 1]), Const([2, -1]))],
    "STRIDED_SLICE": [case(two, Const([1, 2]), Const([-3, -4]), Const([-1, -2]))],
    "RESHAPE": [case(two, Const([3, 2]), new_shape=[3, 2])],
    "TILE": [case(two, Const([2, 1]))],
}


def interpreters(model) -> list:
    result = []
    with flags.override(compiled=True, background=False):
        result.append(lite.Interpreter(model_content=model.to_bytes()))
        result[0].allocate_tensors()
    result.append(official_interpreter(model))
    result[1].allocate_tensors()
    return result


def results(interpreter, values) -> list[np.ndarray]:
    for detail, value in zip(interpreter.get_input_details(), values, strict=True):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


@pytest.mark.parametrize("operator", MODELS)
def test_runs_equal_the_official_ones(operator: str) -> None:
    pytest.importorskip("ai_edge_litert.interpreter")
    make_string_calls()
    rng = np.random.default_rng(5)
    for row in MODELS[operator]:
        ours, official = interpreters(model_of(operator, row, output_types(operator, row)))
        for _ in range(RUNS):
            values = [strings(rng, *v.shape) if v.dtype == object else v for v in feeds(row)]
            for _ in range(2):  # the second run has memory for as many strings
                for actual, expected in zip(results(ours, values), results(official, values), strict=True):
                    assert actual.dtype == expected.dtype
                    np.testing.assert_array_equal(actual.reshape(-1), expected.reshape(-1), err_msg=str(row))
        (step,) = ours._subgraphs[0].joined
        assert step.direct is not None, f"{row} runs in Python"


def test_rows_along_an_axis() -> None:
    make_string_calls()
    row = case(two, np.array([[2, 0]], np.int64), axis=1, batch_dims=0)  # of strings, officially of rank 1 alone
    with flags.override(compiled=True, background=False):
        interpreter = lite.Interpreter(model_content=model_of("GATHER", row, ["STRING"]).to_bytes())
        interpreter.allocate_tensors()
    for indices in ([[2, 0]], [[1, 1]]):
        actual = results(interpreter, [two, np.array(indices)])[0]
        np.testing.assert_array_equal(actual, np.take(two, indices, axis=1))


@pytest.mark.parametrize("kind", ["INT64", "STRING"])
def test_hash_tables(kind: str) -> None:
    pytest.importorskip("ai_edge_litert.interpreter")
    make_string_calls()
    (row,) = (row for row in ROWS if row.name == "HASHTABLE")
    for seed in range(4):
        drawn = row.draw(Draw(seed, kind))
        ours, official = interpreters(drawn_model(row.name, drawn))
        values = drawn_feeds(drawn)
        for run in range(RUNS):
            values = [np.roll(v, run) for v in values]
            for actual, expected in zip(results(ours, values), results(official, values), strict=True):
                np.testing.assert_array_equal(actual, expected)


def test_an_index_outside_is_the_operators_error() -> None:
    make_string_calls()
    row = case(two, np.array([0, 1], np.int32), axis=0, batch_dims=0)
    with flags.override(compiled=True, background=False):
        interpreter = lite.Interpreter(model_content=model_of("GATHER", row, ["STRING"]).to_bytes())
        interpreter.allocate_tensors()
    first = results(interpreter, feeds(row))[0]
    for bad in (2, -3, 2**31 - 1):
        with pytest.raises(OpError, match="GATHER"):
            results(interpreter, [two, np.array([0, bad], np.int32)])
    np.testing.assert_array_equal(results(interpreter, feeds(row))[0], first)


def test_references_are_counted() -> None:
    make_string_calls()
    row = MODELS["SKIP_GRAM"][1]
    text, other = (bytes(bytearray(t)) for t in (b"one two three", b"four five six"))
    with flags.override(compiled=True, background=False):
        interpreter = lite.Interpreter(model_content=model_of("SKIP_GRAM", row, ["STRING"]).to_bytes())
        interpreter.allocate_tensors()
    array, second = np.array([text], object), np.array([other], object)
    results(interpreter, [array])
    results(interpreter, [array])
    counts = sys.getrefcount(text), sys.getrefcount(other)
    grams = results(interpreter, [array])[0]
    assert [sys.getrefcount(gram) for gram in grams] == [4, 4]  # of the tensor, its copy, `gram`, the call
    for _ in range(50):
        results(interpreter, [second])
        results(interpreter, [array])
    assert (sys.getrefcount(text), sys.getrefcount(other)) == counts
    assert [sys.getrefcount(gram) for gram in grams] == [3, 3]


def test_texts_of_other_types_take_the_long_way() -> None:
    row = MODELS["EQUAL"][0]
    with flags.override(compiled=True, background=False):
        interpreter = lite.Interpreter(model_content=model_of("EQUAL", row, ["BOOL"]).to_bytes())
        interpreter.allocate_tensors()
    text = np.full((2, 3), "word", object)
    assert results(interpreter, [text, np.full((2, 3), b"word", object)])[0].all()
    assert results(interpreter, [text.astype(str), text.astype("S")])[0].all()
    with pytest.raises(ValueError, match="strings"):
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.full((2, 3), 1, object))
