"""Variables, CALL_ONCE and hash tables in models written by hand: the official interpreter's answers, and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from state_harness import Build, assert_equal, official, ours, run

from opwright.core import flags

X = np.array([1.5, -2.0], np.float32)


def strings(*items: bytes) -> np.ndarray:
    array = np.empty(len(items), object)
    array[:] = items
    return array


def main() -> Build:
    return Build().subgraph("main").tensor("x", (2,)).tensor("y", (2,))


def counting(calls: int = 1) -> Build:
    """y is the variable before the run, which adds x; it begins as [5, 6]."""
    b = main().tensor("z", (2,))
    for _ in range(calls):
        b.once()
    b.handle("h").op("READ_VARIABLE", "h", "y").op("ADD", "y x", "z").op("ASSIGN_VARIABLE", "h z").ends("x", "y")
    b.subgraph("init").tensor("c", data=np.array([5, 6], np.float32))
    return b.handle("h").op("ASSIGN_VARIABLE", "h c").ends()


def set_and_read(type: str, shape: Any = (2,), **fields: Any) -> Build:
    b = Build().subgraph("main").tensor("x", (2,), type).tensor("y", shape, type, **fields).handle("h")
    return b.op("ASSIGN_VARIABLE", "h x").op("READ_VARIABLE", "h", "y").ends("x", "y")


def lookup(key: str, value: str, keys: Any, values: Any, default: Any, imports: int = 1) -> Build:
    b = Build().subgraph("main").tensor("q", (3,), key).tensor("found", (3,), value).tensor("n", (1,), "INT64")
    b.tensor("keys", type=key, data=keys).tensor("values", type=value, data=values)
    b.tensor("default", type=value, data=default).table("h", key, value)
    for _ in range(imports):
        b.op("HASHTABLE_IMPORT", "h keys values")
    return b.op("HASHTABLE_FIND", "h q default", "found").op("HASHTABLE_SIZE", "h", "n").ends("q", "found n")


I64 = np.int64
TABLES = {
    "words_to_numbers": (lookup("STRING", "INT64", [b"a", b"b"], I64([1, 2]), I64([-1])), strings(b"b", b"", b"a")),
    "numbers_to_words": (lookup("INT64", "STRING", I64([7, -8]), [b"x", b"yy"], [b"?"]), I64([-8, 0, 7])),
    "equal_keys": (lookup("STRING", "INT64", [b"a", b"a"], I64([1, 2]), I64([-1])), strings(b"a", b"b", b"a")),
    "imported_twice": (lookup("STRING", "INT64", [b"a", b"b"], I64([1, 2]), I64([-1]), 2), strings(b"b", b"", b"a")),
    "two_defaults": (lookup("STRING", "INT64", [b"a"], I64([1]), I64([-1, 4])), strings(b"b", b"", b"a")),
}
VARIABLES = {
    "counting": (counting(), X),
    "called_twice": (counting(2), X),
    **{
        t.lower(): (set_and_read(t), np.array([1, 0]).astype(t.lower()))
        for t in (
            "FLOAT32",
            "FLOAT16",
            "FLOAT64",
            "INT8",
            "INT16",
            "INT32",
            "INT64",
            "UINT8",
            "UINT16",
            "UINT32",
            "UINT64",
            "BOOL",
            "COMPLEX64",
        )
    },
    "another_shape_of_equal_size": (set_and_read("FLOAT32", (1, 2)), X),
    "shape_not_in_the_file": (set_and_read("FLOAT32", ()), X),
}


@pytest.mark.parametrize(("model", "value"), [*VARIABLES.values(), *TABLES.values()], ids=[*VARIABLES, *TABLES])
def test_official_interpreter_agrees(model: Build, value: np.ndarray) -> None:
    content = model.done()
    assert_equal(run(ours(content), [value]), run(official(content), [value]))


def test_call_once_runs_once_an_interpreter() -> None:
    content = counting().done()
    interpreter = ours(content)
    assert [y.tolist() for (y,) in run(interpreter, [X])] == [[5, 6], [6.5, 4], [8, 2]]
    interpreter.resize_tensor_input(0, [2])
    assert run(interpreter, [X], 1)[0][0].tolist() == [9.5, 0]
    interpreter.reset_all_variables()  # for variable tensors: resources stay
    assert run(interpreter, [X], 1)[0][0].tolist() == [11, -2]
    assert run(ours(content), [X], 1)[0][0].tolist() == [5, 6]


def test_variables_of_other_containers_are_others() -> None:
    b = main().tensor("z", (2,)).handle("h").handle("k", container="k").op("ASSIGN_VARIABLE", "h x")
    b.op("NEG", "x", "z").op("ASSIGN_VARIABLE", "k z").op("READ_VARIABLE", "h", "y").ends("x", "y")
    assert run(ours(b.done()), [X], 1)[0][0].tolist() == X.tolist()
    assert_equal(run(ours(b.done()), [X]), run(official(b.done()), [X]))


def test_handles_have_details_as_officially() -> None:
    content = set_and_read("FLOAT32").done()
    result = {d["name"]: d["dtype"] for d in ours(content).get_tensor_details()}
    assert result == {d["name"]: d["dtype"] for d in official(content).get_tensor_details() if d["name"] in result}
    assert result["h"] is np.object_


@pytest.mark.parametrize("type", ["FLOAT32", "INT8", "INT16"])
def test_reset_all_variables_makes_variable_tensors_what_the_official_one_does(type: str) -> None:
    from opwright.lite.format import objects

    scales = objects.QuantizationParameters(scale=np.float32([0.5]), zero_point=I64([7 if type == "INT8" else 0]))
    fields = {} if type == "FLOAT32" else {"quantization": scales}
    b = Build().subgraph("main").tensor("x", (2,), type, **fields).tensor("v", (2,), type, is_variable=True, **fields)
    b.tensor("y", (2,), type, **fields).op("MAXIMUM", "x v", "y").ends("x", "y")
    result = []
    for interpreter in (ours(b.done()), official(b.done())):
        interpreter.allocate_tensors()
        interpreter.set_tensor(1, np.array([3, 4]).astype(type.lower()))
        interpreter.reset_all_variables()
        result.append(interpreter.get_tensor(1).tolist())
    assert result[0] == result[1]


BAD: dict[str, tuple[Build, Any, str]] = {
    "read_before_assigned": (
        main().handle("h").op("READ_VARIABLE", "h", "y").ends("x", "y"),
        X,
        "variable 'v' is read before anything was assigned to it",
    ),
    "another_type": (
        main()
        .tensor("i", (2,), "INT32")
        .handle("h")
        .op("ASSIGN_VARIABLE", "h x")
        .op("READ_VARIABLE", "h", "i")
        .ends("x", "i"),
        X,
        "read as another type",
    ),
    "another_size": (set_and_read("FLOAT32", (3,)), X, "another number of elements"),
    "no_handle": (main().op("ASSIGN_VARIABLE", "x x").ends("x", "x"), X, "is not a handle"),
    "handle_of_a_table": (main().table("h").op("READ_VARIABLE", "h", "y").ends("x", "y"), X, "holds no variable"),
    "table_of_a_variable": (
        main().tensor("n", (1,), "INT64").handle("h").op("HASHTABLE_SIZE", "h", "n").ends("x", "n"),
        X,
        "does not stand for a hash table",
    ),
    "find_before_import": (
        lookup("STRING", "INT64", [b"a"], I64([1]), I64([0]), 0),
        strings(b"", b"", b""),
        "hashtable need to be initialized before using",
    ),
    "keys_and_values_differ": (
        lookup("STRING", "INT64", [b"a", b"b"], I64([1]), I64([0])),
        strings(b"", b"", b""),
        "keys and values differ in shape",
    ),
    "words_to_words": (
        lookup("STRING", "STRING", [b"a"], [b"b"], [b""]),
        strings(b"", b"", b""),
        "from INT64 to STRING or from STRING to INT64",
    ),
    "init_with_inputs": (
        main().once().ends("x", "x").subgraph("init").tensor("p").ends("p", ""),
        X,
        "which is to initialise, has inputs or outputs",
    ),
    "keys_of_another_type": (
        Build()
        .subgraph("main")
        .tensor("q", (1,), "INT64")
        .tensor("y", (1,), "INT64")
        .tensor("d", type="INT64", data=I64([0]))
        .table("h")
        .op("HASHTABLE_FIND", "h q d", "y")
        .ends("q", "y"),
        I64([1]),
        "has other types",
    ),
}


@pytest.mark.parametrize(("model", "value", "words"), BAD.values(), ids=BAD)
def test_what_cannot_be_is_an_error(model: Build, value: Any, words: str) -> None:
    with pytest.raises((RuntimeError, ValueError), match=words):
        run(ours(model.done()), [value], 1)


def test_one_number_of_tables_of_two_types_is_an_error() -> None:
    b = main().table("h").table("k", "INT64", "STRING").ends("x", "x")
    with pytest.raises(RuntimeError, match="hash table 3 has other types elsewhere"):
        run(ours(b.done()), [X], 1)


def test_an_init_that_fails_runs_again() -> None:
    b = main().once().handle("h").op("READ_VARIABLE", "h", "y").ends("x", "y")
    b.subgraph("init").tensor("c", data=X).tensor("y", (2,)).handle("k", "missing").handle("h")
    b.op("ASSIGN_VARIABLE", "h c").op("READ_VARIABLE", "k", "y").ends()
    interpreter = ours(b.done())
    for _ in range(2):
        with pytest.raises(RuntimeError, match="variable 'missing' is read before"):
            run(interpreter, [X], 1)


def test_variables_count_towards_the_limit_of_memory() -> None:
    b = Build().subgraph("main").tensor("x", (1024,))
    for i in range(8):
        b.handle(f"h{i}", f"v{i}").op("ASSIGN_VARIABLE", f"h{i} x")
    b.ends("x", "x")
    value = np.zeros(1024, np.float32)
    run(ours(b.done()), [value], 2)
    with flags.override(max_activation_bytes=6 * 4096), pytest.raises(RuntimeError, match="all other variables"):
        run(ours(b.done()), [value], 2)
