"""The life of operators in C: the sixteen invariants of the official run time, counted by the operators themselves.

Expected values are those observed in the official run time (the invariants' numbers are in the names).
Not here: what tensors are like in C (test_native_tensors.py), operators that do wrong (test_native_misuse.py).
"""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from lite_kit import Build
from native_kit import FREE, HERE, INIT, INVOKE, PREPARE, chain, probes, run, single

import opwright as ow
from opwright import lite
from opwright.core import flags
from opwright.lite.format.flexbuffers import encode_options

pytestmark = pytest.mark.ours


@pytest.fixture
def p():
    result = probes()
    gc.collect()  # interpreters of other tests
    result.clear()
    return result


def test_01_every_node_of_every_subgraph_is_initialised_once_when_the_interpreter_is_made(p):
    b = Build().tensor("c", (), "BOOL").tensor("x").tensor("y")
    b.node("IF", "c x", "y", then_subgraph_index=1, else_subgraph_index=2).ends("c x", "y")
    for name in ("then", "else"):
        b.subgraph(name).custom("PROBE", "x", "t").custom("PROBE", "t", "y").ends("x", "y")
    interpreter = p.interpreter(b.done(None))
    assert p.counts() == (4, 0, 0, 0)
    interpreter.allocate_tensors()
    assert p.counts() == (4, 4, 0, 0)
    for taken in (True, False):
        np.testing.assert_array_equal(run(interpreter, taken, np.arange(5)), np.arange(5) + 2)
    assert p.counts() == (4, 4, 4, 0)
    interpreter.close()
    assert p.counts() == (4, 4, 4, 4)


def test_02_to_05_prepare_runs_when_tensors_are_allocated_and_after_a_resize_only(p):
    interpreter = p.interpreter(chain("PROBE", "PROBE"))
    interpreter.allocate_tensors()
    assert p.counts() == (2, 2, 0, 0)
    interpreter.allocate_tensors()
    assert p.counts() == (2, 2, 0, 0)
    for _ in range(3):
        interpreter.invoke()
    assert p.counts() == (2, 2, 6, 0)
    interpreter.resize_tensor_input(0, [5])
    interpreter.allocate_tensors()
    assert p.counts() == (2, 2, 6, 0)
    interpreter.resize_tensor_input(0, [3])
    assert p.counts() == (2, 2, 6, 0)
    interpreter.allocate_tensors()
    assert p.counts() == (2, 4, 6, 0)
    assert [e.value for e in p.events(PREPARE)] == [5, 5, 3, 3]
    np.testing.assert_array_equal(run(interpreter, [1, 2, 3]), [3, 4, 5])


def test_05_nodes_that_do_not_depend_on_the_input_are_prepared_again_too(p):
    b = Build().tensor("x").tensor("z").custom("PROBE", "x", "y").custom("PROBE", "z", "w")
    interpreter = p.interpreter(b.done("x z", "y w"))
    interpreter.allocate_tensors()
    interpreter.resize_tensor_input(0, [2])
    interpreter.allocate_tensors()
    assert [e.value for e in p.events(PREPARE)] == [5, 5, 2, 5]


def test_06_a_run_before_allocation_or_after_a_resize_is_refused(p):
    interpreter = p.interpreter(single("PROBE"))
    with pytest.raises(RuntimeError, match="Invoke called on model that is not ready"):
        interpreter.invoke()
    interpreter.allocate_tensors()
    interpreter.resize_tensor_input(0, [2])
    with pytest.raises(RuntimeError, match="Invoke called on model that is not ready"):
        interpreter.invoke()
    assert not p.events(INVOKE)


def test_07_08_free_runs_once_for_a_state_and_never_for_null(p):
    interpreter = p.interpreter(chain("PROBE", "PROBE_NULL", "PROBE"))
    interpreter.allocate_tensors()
    interpreter.invoke()
    result = [e.state for e in p.events(INIT)]
    assert [s is not None for s in result] == [True, False, True]
    assert [e.state for e in p.events(PREPARE)] == result == [e.state for e in p.events(INVOKE)]
    interpreter.close()
    interpreter.close()
    assert [e.state for e in p.events(FREE)] == [result[0], result[2]]
    with pytest.raises(RuntimeError, match="closed"):
        interpreter.allocate_tensors()
    del interpreter
    gc.collect()
    assert p.counts() == (3, 3, 3, 2)


def test_07_free_runs_when_the_interpreter_is_collected_be_it_never_allocated(p):
    p.interpreter(single("PROBE"))
    gc.collect()
    assert p.counts() == (1, 0, 0, 1)


def test_09_nodes_and_interpreters_have_states_of_their_own(p):
    content = chain("PROBE", "PROBE")
    a, b = p.interpreter(content), p.interpreter(content)
    states = {e.state for e in p.events(INIT)}
    assert len(states) == 4
    a.close()
    b.allocate_tensors()
    np.testing.assert_array_equal(run(b, np.zeros(5)), np.full(5, 2))
    b.close()
    assert {e.state for e in p.events(FREE)} == states


def test_10_a_failed_prepare_runs_nothing_and_frees(p):
    interpreter = p.interpreter(chain("PROBE", "FAIL_PREPARE"))
    with pytest.raises(RuntimeError) as caught:
        interpreter.allocate_tensors()
    text = str(caught.value)
    assert "IN(0)->dims->size != 7 (1 != 7)" in text
    assert "probes.c" in text
    assert text.endswith("Node number 1 (FAIL_PREPARE) failed to prepare.")
    assert p.path in text
    assert "Register_FAIL_PREPARE" in text
    with pytest.raises(RuntimeError, match="not ready"):
        interpreter.invoke()
    with pytest.raises(RuntimeError, match="failed to prepare"):
        interpreter.allocate_tensors()
    assert p.counts()[2:] == (0, 0)
    interpreter.close()
    assert p.counts() == (2, 4, 0, 2)


@pytest.mark.parametrize("options", [{}, {"T": 0}, {"label": "x", "values": [1, 2.5, True]}], ids=str)
def test_11_init_gets_the_very_bytes_of_the_model_or_null(p, options):
    interpreter = p.interpreter(single("PROBE", **options))
    (event,) = p.events(INIT)
    if options:
        expected = bytes(encode_options(options))
        assert event.pointer is not None
        assert event.value == len(expected)
        assert p.code.last_options()[: len(expected)] == expected
    else:
        assert (event.pointer, event.value) == (None, 0)
    interpreter.close()


def test_11_options_that_are_there_and_empty_are_no_null(p):
    model = lite.Model.read(single("PROBE", T=0))
    model.subgraphs[0].operators[0].custom_options = np.zeros(0, np.uint8)
    interpreter = p.interpreter(model.to_bytes())
    (event,) = p.events(INIT)
    assert event.pointer is not None
    assert event.value == 0
    interpreter.close()


def test_11_the_options_that_the_official_converter_writes(p):
    interpreter = p.interpreter(single("PROBE", T=0))
    assert p.code.last_options()[:12] == bytes.fromhex("540001030101010004022401")
    interpreter.close()


def test_12_order_all_init_then_prepare_and_invoke_in_execution_order_then_free(p):
    interpreter = p.interpreter(chain("PROBE", "PROBE", "PROBE"))
    interpreter.allocate_tensors()
    interpreter.invoke()
    interpreter.close()
    order = [e.state for e in p.events(INIT)]
    assert [e.what for e in p.events()] == [INIT] * 3 + [PREPARE] * 3 + [INVOKE] * 3 + [FREE] * 3
    for what in (PREPARE, INVOKE, FREE):
        assert [e.state for e in p.events(what)] == order


def test_13_a_dynamic_output_is_prepared_up_to_when_allocated_and_the_rest_when_it_runs(p):
    interpreter = p.interpreter(chain("PROBE", "COUNT_UP", "PROBE", "PROBE"))
    interpreter.allocate_tensors()
    assert p.counts() == (4, 2, 0, 0)
    x = np.full(5, 3, np.float32)  # COUNT_UP gets 4
    np.testing.assert_array_equal(run(interpreter, x), [2, 3, 4, 5])
    assert p.counts() == (4, 4, 4, 0)
    interpreter.invoke()
    assert p.counts() == (4, 4, 8, 0)
    np.testing.assert_array_equal(run(interpreter, x - 2), [2, 3])
    assert p.counts() == (4, 6, 12, 0)


@pytest.mark.parametrize(("name", "version"), [("Unknown", 1), ("PROBE", 2)])
def test_14_an_unknown_operator_or_version_fails_when_tensors_are_allocated(p, name, version):
    b = Build().custom("PROBE", "x", "t").custom(name, "t", "y", version)
    interpreter = p.interpreter(b.done())
    assert p.counts() == (1, 0, 0, 0)
    with pytest.raises(RuntimeError, match=rf"Encountered unresolved custom op: {name}\.") as caught:
        interpreter.allocate_tensors()
    assert f"Node number 1 ({name}) failed to prepare." in str(caught.value)
    interpreter.close()
    assert p.counts() == (1, 0, 0, 1)


def test_15_elements_in_the_arena_lie_at_multiples_of_64(p):
    b = Build()
    for i in range(5):
        b.tensor(f"x{i}", (i + 1,)).tensor(f"y{i}", (i + 1,)).custom("PROBE", f"x{i}", f"y{i}")
    interpreter = p.interpreter(b.done("x0 x1 x2 x3 x4", "y0 y1 y2 y3 y4"))
    interpreter.allocate_tensors()
    interpreter.invoke()
    pointers = [e.pointer for e in p.events(INVOKE)]
    assert len(set(pointers)) == 5
    assert all(at % 64 == 0 for at in pointers)
    assert all(e.pointer is None for e in p.events(PREPARE))  # nothing is planned yet


def test_16_every_shape_is_freed_once_over_many_lives(p):
    """Arrays, tensors' memory and records that the provider has made and that live: as many as before."""
    blocks = p.ops["PROBE"]._provider.ow_blocks

    def life():
        interpreter = p.interpreter(chain("PROBE", "REVERSE", "REVERSE_DYNAMIC", "COUNTING", "COUNT_UP_REALLOC"))
        for n in (3, 4):
            interpreter.resize_tensor_input(0, [n])
            interpreter.allocate_tensors()
            interpreter.invoke()
        interpreter.close()
        for name in ("NEGATIVE", "HUGE", "RESIZE_INPUT", "IGNORES", "FAIL_PREPARE", "FAIL_INIT"):
            with pytest.raises((RuntimeError, ValueError)):
                p.interpreter(single(name)).allocate_tensors()

    life()
    gc.collect()
    before = blocks()
    for _ in range(8):
        life()
    gc.collect()
    assert blocks() == before


def test_a_failing_init_is_an_error_of_the_constructor_and_the_others_are_freed(p):
    """The official run time drops the node and aborts at the process's end."""
    with pytest.raises(ValueError, match="init said that it failed") as caught:
        p.interpreter(chain("PROBE", "FAIL_INIT", "PROBE"))
    text = str(caught.value)
    assert "no device 7" in text
    assert "Node number 1 (FAIL_INIT) failed to init." in text
    assert p.path in text
    assert p.counts() == (1, 0, 0, 1)


def test_a_failing_invoke_says_what_and_the_interpreter_runs_on(p):
    interpreter = p.interpreter(chain("PROBE", "FAIL_INVOKE"))
    interpreter.allocate_tensors()
    np.testing.assert_array_equal(run(interpreter, np.zeros(5)), np.full(5, 2))
    with pytest.raises(RuntimeError) as caught:
        run(interpreter, np.full(5, -2))
    text = str(caught.value)
    assert text.startswith("FAIL_INVOKE: invoke returned kTfLiteError\n  library ")
    assert "x[0] is -1.0, below zero" in text
    assert "returned kTfLiteError" in text
    assert "nothing is wrong" not in text  # what the run before reported
    assert text.endswith("Node number 1 (FAIL_INVOKE) failed to invoke.")
    np.testing.assert_array_equal(run(interpreter, np.zeros(5)), np.full(5, 2))


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("CANCEL", ow.errors.CancelledError, "returned kTfLiteCancelled"),
        ("STATUS_42", ow.errors.FailedPreconditionError, "returned the status 42, which is none"),
    ],
)
def test_other_statuses(p, name, error, words):
    interpreter = p.interpreter(single(name))
    interpreter.allocate_tensors()
    with pytest.raises(error, match=words):
        interpreter.invoke()


def test_free_runs_at_the_end_of_the_process(p):
    """Also if an interpreter lives until then, in an uncollected cycle."""
    program = textwrap.dedent(f"""
        import atexit, gc, sys
        sys.path[:0] = [{str(HERE.parent)!r}, {str(HERE)!r}]
        import native_kit
        p = native_kit.probes()
        atexit.register(lambda: print("at the end", p.counts(), flush=True))
        gc.disable()
        held = [p.interpreter(native_kit.chain("PROBE", "PROBE")) for _ in range(2)]
        held.append(held)
        held[0].allocate_tensors()
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "at the end (4, 2, 0, 4)\n"
    assert not done.stderr


# ---- among other parts of the run time -------------------------------------------------------------------------------


def test_in_a_loop(p):
    b = Build().tensor("n", (), "INT32").tensor("x").tensor("m", (), "INT32").tensor("y")
    b.node("WHILE", "n x", "m y", cond_subgraph_index=1, body_subgraph_index=2).ends("n x", "m y")
    b.subgraph("cond").tensor("n", (), "INT32").tensor("x").tensor("limit", (), "INT32", np.int32(4))
    b.tensor("c", (), "BOOL").node("LESS", "n limit", "c").ends("n x", "c")
    b.subgraph("body").tensor("n", (), "INT32").tensor("x").tensor("one", (), "INT32", np.int32(1))
    b.tensor("m", (), "INT32").node("ADD", "n one", "m").custom("PROBE", "x", "y").ends("n x", "m y")
    interpreter = p.interpreter(b.done(None))
    interpreter.allocate_tensors()
    assert run(interpreter, 0, np.zeros(5)) == 4
    np.testing.assert_array_equal(interpreter.get_tensor(interpreter.get_output_details()[1]["index"]), np.full(5, 4))
    assert p.counts() == (1, 1, 4, 0)
    interpreter.resize_tensor_input(interpreter.get_input_details()[1]["index"], [2])
    interpreter.allocate_tensors()
    run(interpreter, 1, np.zeros(2))
    np.testing.assert_array_equal(interpreter.get_tensor(interpreter.get_output_details()[1]["index"]), np.full(2, 3))
    assert p.counts() == (1, 2, 7, 0)


def test_among_compiled_stretches(p):
    """Nodes before, between and after run as machine code, the arena is another after each allocation."""
    b = Build().tensor("x", (4, 8)).tensor("half", data=np.float32(0.5))
    for name in "abcdy":
        b.tensor(name, (4, 8))
    b.node("MUL", "x half", "a").custom("PROBE", "a", "b").node("MUL", "b half", "c").custom("PROBE", "c", "d")
    content = b.node("MUL", "d half", "y").done()
    with flags.override(compiled=True, background=False):
        interpreter = p.interpreter(content)
        for shape in ((4, 8), (3, 5), (64, 64), (4, 8)):
            interpreter.resize_tensor_input(0, shape)
            interpreter.allocate_tensors()
            for k in range(3):
                x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) + k
                np.testing.assert_array_equal(run(interpreter, x), ((x / 2 + 1) / 2 + 1) / 2)
        assert interpreter._engine.runs_nodes()
        interpreter.close()
    assert p.counts() == (2, 8, 24, 2)


def test_with_a_delegate_that_takes_its_neighbours(p):
    class Halves(lite.SimpleDelegate):
        name = "Halves"

        def supports(self, node, context):
            return node.name == "MUL"

        class Kernel(lite.DelegateKernel):
            def invoke(self, context, node):
                node.outputs[0].data[...] = node.inputs[0].data * np.float32(0.5)

        kernel = Kernel

    b = Build().tensor("half", data=np.float32(0.5)).node("MUL", "x half", "a").custom("PROBE", "a", "b")
    content = b.node("MUL", "b half", "y").done()
    interpreter = p.interpreter(content, experimental_delegates=[Halves()])
    interpreter.allocate_tensors()
    np.testing.assert_array_equal(run(interpreter, np.arange(5)), (np.arange(5) / 2 + 1) / 2)
    interpreter.close()
    counts = p.counts()
    assert counts[0] == counts[3] == 1


def test_by_a_signature_runner(p):
    content = Build().custom("PROBE", "x", "y").done(signature="serving_default")
    runner = p.interpreter(content).get_signature_runner()
    np.testing.assert_array_equal(runner(x=np.arange(5, dtype=np.float32))["y"], np.arange(5) + 1)
    np.testing.assert_array_equal(runner(x=np.arange(7, dtype=np.float32))["y"], np.arange(7) + 1)
    assert p.counts()[:3] == (1, 2, 2)


def test_by_a_resolver_and_under_another_name(p):
    resolver = lite.BuiltinOpResolver()
    resolver.add_custom("Mine", p.ops["PROBE"], 1, 3)
    resolver.add_builtin("SIN", p.ops["PROBE"])
    b = Build().custom("Mine", "x", "t", 3).node("SIN", "t", "y")
    interpreter = lite.Interpreter(model_content=b.done(), op_resolver=resolver)
    interpreter.allocate_tensors()
    np.testing.assert_array_equal(run(interpreter, np.zeros(5)), np.full(5, 2))
    assert all((e.pointer, e.value) == (None, 0) for e in p.events(INIT))


def test_a_builtin_operator_with_options_is_refused(p):
    resolver = lite.BuiltinOpResolver()
    resolver.add_builtin("SOFTMAX", p.ops["PROBE"])
    b = Build().op("SOFTMAX", "x", "y", beta=1.0)
    with pytest.raises(ValueError, match="kernels in C do not receive the options of builtin operators"):
        lite.Interpreter(model_content=b.done(), op_resolver=resolver)


def test_user_data_of_an_opaque_operator(p):
    runs = ctypes.c_int.in_dll(p.code, "opaque_runs")
    before = runs.value
    interpreter = p.interpreter(chain("OpaqueCount", "OpaqueCount"))
    interpreter.allocate_tensors()
    interpreter.invoke()
    assert runs.value == before + 2


def test_what_a_closed_interpreter_says(p):
    interpreter = p.interpreter(chain("PROBE"))
    interpreter.allocate_tensors()
    interpreter.close()
    for call in (interpreter.invoke, interpreter.allocate_tensors):
        with pytest.raises(RuntimeError, match="closed") as caught:
            call()
        assert "create another" in str(caught.value)
