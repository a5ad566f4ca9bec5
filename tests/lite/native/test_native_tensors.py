"""Test the tensors of operators in C: memory of every kind, strings, small types, scales, and the time of a run.

Expected values are formulas in NumPy. Not here: when methods are called (test_native_lifecycle.py).
"""

from __future__ import annotations

import gc
import threading
import time

import ml_dtypes
import numpy as np
import pytest
from lite_kit import Build
from native_kit import INVOKE, PREPARE, chain, probes, run, single

from opwright.core import flags
from opwright.lite.format import objects

pytestmark = pytest.mark.ours


@pytest.fixture
def p():
    result = probes()
    gc.collect()
    result.clear()
    return result


def allocated(p, content, **more):
    interpreter = p.interpreter(content, **more)
    interpreter.allocate_tensors()
    return interpreter


@pytest.mark.parametrize("name", ["COUNT_UP", "COUNT_UP_REALLOC", "COUNT_UP_LATER"])
@pytest.mark.parametrize("compiled", [False, True])
def test_dynamic_outputs(p, name, compiled):
    b = Build().tensor("x", (2,)).tensor("two", data=np.float32(2)).tensor("t", (0,)).custom(name, "x", "t")
    content = b.node("MUL", "t two", "y").done()
    with flags.override(compiled=compiled, background=False):
        interpreter = allocated(p, content)
        for n in (3, 3, 0, 7, 1000):
            np.testing.assert_array_equal(run(interpreter, [n, 0]), 2 * np.arange(n, dtype=np.float32))


def test_a_temporary_that_is_given_its_shape_once(p):
    interpreter = allocated(p, chain("REVERSE_ROOMY", "PROBE"))
    for n in (5, 3, 8):
        interpreter.resize_tensor_input(0, [n])
        interpreter.allocate_tensors()
        np.testing.assert_array_equal(run(interpreter, np.arange(n)), np.arange(n)[::-1] + 1)


@pytest.mark.parametrize("name", ["REVERSE", "REVERSE_DYNAMIC"])
def test_temporaries(p, name):
    interpreter = allocated(p, chain(name, "PROBE", name))
    for n in (5, 3, 8, 1):
        interpreter.resize_tensor_input(0, [n])
        interpreter.allocate_tensors()
        x = np.arange(n, dtype=np.float32)
        np.testing.assert_array_equal(run(interpreter, x), x + 1)
        np.testing.assert_array_equal(run(interpreter, x), x + 1)
    temporaries = [e for e in p.events(INVOKE) if e.state in {q.state for q in p.events(PREPARE) if q.value >= 3}]
    assert all(e.pointer % (64 if name == "REVERSE" else 16) == 0 for e in temporaries)
    assert len({e.value for e in p.events(PREPARE) if e.node == p.events(PREPARE)[0].node}) >= 1


def test_a_tensor_that_is_added_keeps_its_index(p):
    interpreter = allocated(p, chain("REVERSE", "REVERSE"))
    for n in (2, 3, 4):
        interpreter.resize_tensor_input(0, [n])
        interpreter.allocate_tensors()
    indices = [e.value for e in p.events(PREPARE)]
    assert indices == [3, 4] * 4  # behind the file's three tensors, in the order of init
    assert [d["name"] for d in interpreter.get_tensor_details()][:3] == ["x", "t0", "y"]


def test_temporaries_of_nodes_that_are_prepared_while_the_model_runs(p):
    interpreter = allocated(p, chain("COUNT_UP", "REVERSE", "REVERSE_DYNAMIC", "REVERSE"))
    for n in (4, 9, 4):
        np.testing.assert_array_equal(run(interpreter, np.full(5, n)), np.arange(n)[::-1])


def test_persistent_tensors_keep_their_elements(p):
    interpreter = allocated(p, single("COUNTING"))
    assert [run(interpreter, np.zeros(5))[0] for _ in range(3)] == [1, 2, 3]
    interpreter.resize_tensor_input(0, [2])
    interpreter.allocate_tensors()
    assert run(interpreter, np.zeros(2)).tolist() == [4, 4]


def test_sixteen_tensors_may_be_added_while_pointers_are_held(p):
    interpreter = allocated(p, chain(*["ADDS_MANY"] * 6))
    np.testing.assert_array_equal(run(interpreter, np.zeros(5)), np.full(5, 6))
    interpreter.resize_tensor_input(0, [3])
    interpreter.allocate_tensors()
    np.testing.assert_array_equal(run(interpreter, np.zeros(3)), np.full(3, 6))


def test_variables_stay_from_run_to_run_until_they_are_reset(p):
    b = Build().tensor("x", (2,)).tensor("s", (2,), is_variable=True).tensor("y", (2,)).custom("ACCUMULATE", "x s", "y")
    interpreter = allocated(p, b.done())
    assert [run(interpreter, [1, 2]).tolist() for _ in range(3)] == [[1, 2], [2, 4], [3, 6]]
    interpreter.reset_all_variables()
    assert run(interpreter, [5, 5]).tolist() == [5, 5]


def test_an_input_that_is_left_out(p):
    b = Build().tensor("x", (2,)).tensor("y", (2,)).custom("ADD_OPTIONAL", "x _", "y")
    assert run(allocated(p, b.done()), [1, 2]).tolist() == [1, 2]
    b = Build().tensor("x", (2,)).tensor("b", data=np.float32([10, 20])).tensor("y", (2,))
    assert run(allocated(p, b.custom("ADD_OPTIONAL", "x b", "y").done()), [1, 2]).tolist() == [11, 22]


def test_the_same_tensor_as_input_and_output(p):
    b = Build().tensor("x", (3,)).custom("PROBE", "x", "t").custom("PROBE", "t", "t").custom("PROBE", "t", "y")
    b.main.tensors[b.names["t"]].shape = [3]
    assert run(allocated(p, b.done()), [0, 1, 2]).tolist() == [3, 4, 5]


def test_no_elements_and_no_dimensions(p):
    interpreter = allocated(p, single("PROBE", (0,)))
    assert run(interpreter, np.zeros(0)).shape == (0,)
    assert run(allocated(p, single("PROBE", (), ())), 3.0) == 4


def test_strings_come_and_go_in_the_official_form(p):
    content = single("UPPER", (3,), (3,), ("STRING", "STRING"))
    interpreter = allocated(p, content)
    for words in (["ab", "", "c\u00e9"], ["xyz", "hello world", "0"]):
        result = run(interpreter, np.array(words, object))
        assert result.tolist() == [w.encode().upper() for w in words]
    interpreter.resize_tensor_input(0, [0])
    interpreter.allocate_tensors()
    assert run(interpreter, np.zeros(0, object)).tolist() == []


def test_strings_that_are_constant_or_go_through_two_operators(p):
    b = Build().tensor("x", (), "FLOAT32").tensor("s", type="STRING", data=np.array([b"a", b"bc"], object))
    b.tensor("t", (2,), "STRING").tensor("y", (2,), "STRING").custom("UPPER", "s", "t").custom("UPPER", "t", "y")
    assert run(allocated(p, b.done()), 0.0).tolist() == [b"A", b"BC"]


@pytest.mark.parametrize("n", [4, 6])
def test_int4_is_two_in_a_byte(p, n):
    interpreter = allocated(p, single("SWAP_HALVES", (n,), (n,), ("INT4", "INT4")))
    x = np.arange(-3, n - 3).astype(np.int8)
    interpreter.set_tensor(0, x.astype(interpreter.get_input_details()[0]["dtype"]))
    interpreter.invoke()
    result = np.asarray(interpreter.get_tensor(1)).astype(np.int8)
    np.testing.assert_array_equal(result, x.reshape(-1, 2)[:, ::-1].reshape(-1).astype(ml_dtypes.int4).astype(np.int8))


def scale(*scales, zeros=(), axis=0):
    return objects.QuantizationParameters(scale=list(scales), zero_point=list(zeros), quantized_dimension=axis)


@pytest.mark.parametrize(
    ("type", "fields", "wanted"),
    [
        # type, params.scale, params.zero_point, kind, scales, the last, zero points, the first, dimension
        ("FLOAT32", {}, [1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0]),
        ("INT8", {"quantization": scale(0.5, zeros=[3])}, [9, 0.5, 3, 1, 1, 0.5, 1, 3, 0, 2, 0, 0]),
        ("INT8", {"quantization": scale(0.5, 0.25, 2, zeros=[0, 0, 0], axis=0)}, [9, 0, 0, 1, 3, 2, 3, 0, 0, 2, 0, 0]),
        ("BFLOAT16", {"shape_signature": [-1]}, [19, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1, -1]),
    ],
    ids=["real", "one scale", "a scale for each", "signature"],
)
def test_scales_types_and_signatures(p, type, fields, wanted):
    b = Build().tensor("x", (3,), type, **fields).tensor("y", (12,)).custom("QUANTIZATION", "x", "y")
    interpreter = allocated(p, b.done())
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(1), np.float32(wanted))


def test_constants_have_no_signature_and_no_scales(p):
    """As in the official run time, where both pointers are null."""
    b = Build().tensor("x", data=np.float32([1, 2])).tensor("y", (12,)).custom("QUANTIZATION", "x", "y")
    interpreter = allocated(p, b.done("", "y"))
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(1), np.float32([1, 0, 0, 0, 0, 0, 0, 0, 0, 1, -1, 0]))


def test_facts_of_the_context(p):
    b = Build().tensor("x").tensor("y", (12,)).custom("FACTS", "x", "y", a=1)
    b.model.buffers.append(objects.Buffer(data=np.frombuffer(b"hello", np.uint8)))
    b.model.metadata.append(objects.Metadata(name="note", buffer=len(b.model.buffers) - 1))
    interpreter = allocated(p, b.done(), num_threads=3)
    assert run(interpreter, np.zeros(5)).tolist() == [3, 2, 1, 1, 1, 1, 1, 1, -1, 1, 1, 1]


# ---- time ------------------------------------------------------------------------------------------------------------


def test_another_thread_runs_meanwhile(p):
    """An operator sleeps for 0.3 s; Python counts in another thread, which the lock would stop."""
    interpreter = allocated(p, single("SLEEPS"))
    counted, done = [0], threading.Event()

    def count():
        while not done.is_set():
            counted[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    before = counted[0]
    interpreter.invoke()
    meanwhile = counted[0] - before
    done.set()
    thread.join()
    assert meanwhile >= 5  # with the lock it is 0 or 1


def test_two_interpreters_run_at_once(p):
    interpreters = [allocated(p, single("SLEEPS")) for _ in range(2)]
    seconds = []
    for _ in range(3):  # another program may be in the way
        threads = [threading.Thread(target=i.invoke) for i in interpreters]
        start = time.perf_counter()
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.55  # one after the other takes 0.6


def test_one_interpreter_is_refused_to_two_threads(p):
    interpreter = allocated(p, single("SLEEPS"))
    thread = threading.Thread(target=interpreter.invoke)
    thread.start()
    time.sleep(0.1)
    with pytest.raises(RuntimeError, match="while it runs"):
        interpreter.invoke()
    thread.join()
    interpreter.invoke()
