"""An interpreter serves one call at a time, whichever way it runs its model, and is free after whatever happened."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lite_kit import Build

import opwright as ow
from opwright import lite
from opwright.core.errors import OpError
from thorough import crossed

SIZE = 512  # three products of such matrices take some milliseconds
X = np.random.default_rng(0).standard_normal((SIZE, SIZE), dtype=np.float32) / SIZE


def expected() -> np.ndarray:
    y = X.astype(np.float64)
    for _ in range(3):
        y = np.tanh(y @ X)
    return y


@ow.function(input_signature=[ow.TensorSpec([SIZE, SIZE], ow.float32, name="x")])
def products(x: Any) -> Any:
    y = x
    for _ in range(3):
        y = ow.tanh(ow.matmul(y, x))
    return y


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("model")
    path = folder / "products.tflite"
    path.write_bytes(
        lite.TFLiteConverter.from_concrete_functions([products.get_concrete_function()], products).convert()
    )
    return str(path)


@pytest.fixture(scope="module", autouse=True)
def _compiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with ow.flags(compiled=True, background=False, cache_dir=str(tmp_path_factory.mktemp("cache"))):
        yield


def short(path: str) -> lite.Interpreter:
    for _ in range(3):  # the first compiles, the second finds the plan
        interpreter = lite.Interpreter(model_path=path, num_threads=1)
        interpreter.allocate_tensors()
        if interpreter._fast_path is not None:
            return interpreter
    raise AssertionError("there is no short way to this model")


def long(path: str) -> lite.Interpreter:
    interpreter = lite.Interpreter(model_content=Path(path).read_bytes(), num_threads=1)
    interpreter.allocate_tensors()
    return interpreter


def reference(path: str) -> lite.Interpreter:
    kind = lite.OpResolverType.BUILTIN_REF
    interpreter = lite.Interpreter(model_path=path, num_threads=1, experimental_op_resolver_type=kind)
    interpreter.allocate_tensors()
    return interpreter


class Nothing(lite.Delegate):
    """Takes no node."""

    def prepare(self, context: Any) -> None:
        pass


CALLS: dict[str, Callable[[lite.Interpreter, int, int], Any]] = {
    "invoke": lambda it, x, y: it.invoke(),
    "close": lambda it, x, y: it.close(),
    "with": lambda it, x, y: it.__exit__(None, None, None),
    "allocate_tensors": lambda it, x, y: it.allocate_tensors(),
    "resize_tensor_input": lambda it, x, y: it.resize_tensor_input(x, [SIZE, SIZE + 1]),
    "set_tensor": lambda it, x, y: it.set_tensor(x, X),
    "get_tensor": lambda it, x, y: it.get_tensor(y),
    "tensor": lambda it, x, y: it.tensor(y)(),
    "reset_all_variables": lambda it, x, y: it.reset_all_variables(),
    "profile": lambda it, x, y: it.profile(1),
    "modify_graph_with_delegate": lambda it, x, y: it.modify_graph_with_delegate(Nothing()),
    "remove_all_delegates": lambda it, x, y: it.remove_all_delegates(),
    "signature": lambda it, x, y: it.get_signature_runner()(x=X),
}


@pytest.mark.parametrize(("call", "make"), crossed(CALLS, [short, long, reference], every=3))
def test_a_call_while_another_thread_runs_the_model(call: str, make: Any, model: str) -> None:
    interpreter = make(model)
    x, y = (d[0]["index"] for d in (interpreter.get_input_details(), interpreter.get_output_details()))
    interpreter.set_tensor(x, X)
    begun = threading.Event()

    def run() -> None:
        begun.set()
        interpreter.invoke()

    refusal: Exception | None = None
    for _ in range(20):
        begun.clear()
        thread = threading.Thread(target=run)
        thread.start()
        begun.wait()
        while thread.is_alive() and not interpreter._ownership.thread:
            time.sleep(0)
        try:
            CALLS[call](interpreter, x, y)
        except RuntimeError as error:
            refusal = error
        thread.join()
        if refusal is not None:
            break
        interpreter = make(model)  # the run was over too soon: it was closed, or its tensors are others
        interpreter.set_tensor(x, X)
    assert isinstance(refusal, OpError)
    assert "while it runs" in str(refusal)
    np.testing.assert_allclose(interpreter.get_tensor(y), expected(), atol=1e-4)
    interpreter.invoke()


@pytest.mark.parametrize("make", [short, long])
def test_details_while_another_thread_opens_the_file(make: Any, model: str) -> None:
    """A fast path opens the file if it lacks an answer; meanwhile calls of other threads are answered or rejected."""
    errors: list[Exception] = []
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(20):
            interpreter = make(model)

            def ask(interpreter: lite.Interpreter = interpreter) -> None:
                try:
                    with contextlib.suppress(RuntimeError):
                        interpreter.get_input_details()
                        interpreter.get_tensor_details()
                        interpreter.get_output_details()
                        interpreter.get_signature_list()
                except Exception as error:
                    errors.append(error)

            threads = [threading.Thread(target=ask) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
    finally:
        sys.setswitchinterval(before)
    assert not errors


@pytest.mark.parametrize("make", [long, reference])
def test_a_closed_interpreter_that_is_allocated_again_warns_of_nothing(make: Any, model: str) -> None:
    interpreter = make(model)
    interpreter.close()
    x, y = (d[0]["index"] for d in (interpreter.get_input_details(), interpreter.get_output_details()))
    interpreter.resize_tensor_input(x, [SIZE, SIZE])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with contextlib.suppress(RuntimeError):  # it may refuse
            interpreter.allocate_tensors()
            interpreter.set_tensor(x, X)
            interpreter.invoke()
            np.testing.assert_allclose(interpreter.get_tensor(y), expected(), atol=1e-4)


def test_copies_of_several_threads_wait_for_each_other(model: str) -> None:
    interpreter = long(model)
    x = interpreter.get_input_details()[0]["index"]
    errors: list[Exception] = []

    def copy() -> None:
        try:
            for _ in range(50):
                interpreter.set_tensor(x, X)
                np.testing.assert_array_equal(interpreter.get_tensor(x), X)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=copy) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors


def test_a_kernel_may_read_its_interpreter_and_not_change_it() -> None:
    inner: list[Any] = []
    seen: list[Any] = []

    def run(context: Any, node: Any) -> None:
        seen.append(inner[0].get_tensor(0).tolist())
        for call in (inner[0].allocate_tensors, inner[0].close, inner[0].invoke, lambda: inner[0].profile(1)):
            with pytest.raises(RuntimeError, match="while it runs"):
                call()
        node.outputs[0].data[...] = node.inputs[0].data

    content = Build().custom("Reads", "x", "y").done()
    interpreter = lite.Interpreter(model_content=content, custom_ops={"Reads": lite.Registration(invoke=run)})
    inner.append(interpreter)
    interpreter.allocate_tensors()
    value = np.ones_like(interpreter.get_tensor(0))
    interpreter.set_tensor(0, value)
    interpreter.invoke()
    assert seen == [value.tolist()]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, MemoryError])
def test_an_error_in_a_kernel_leaves_the_interpreter_free(error: type[BaseException]) -> None:
    fails = [True]

    def run(context: Any, node: Any) -> None:
        if fails[0]:
            raise error
        node.outputs[0].data[...] = node.inputs[0].data

    content = Build().custom("Fails", "x", "y").done()
    interpreter = lite.Interpreter(model_content=content, custom_ops={"Fails": lite.Registration(invoke=run)})
    interpreter.allocate_tensors()
    with pytest.raises(RuntimeError if issubclass(error, Exception) else error):
        interpreter.invoke()
    fails[0] = False
    thread = threading.Thread(target=interpreter.invoke)  # another thread: nobody's any more
    thread.start()
    thread.join(60)
    assert interpreter._ownership.thread == 0
    interpreter.close()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no timers that send signals")
@pytest.mark.parametrize("make", [short, long, reference])
def test_interrupts_leave_the_interpreter_free(make: Any, model: str) -> None:
    interpreter = make(model)
    x, y = (d[0]["index"] for d in (interpreter.get_input_details(), interpreter.get_output_details()))
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    interrupts = 0
    until = time.monotonic() + 0.7
    rng = np.random.default_rng(1)
    try:
        while time.monotonic() < until:
            with contextlib.suppress(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, float(rng.uniform(1e-5, 2e-3)))
                while True:
                    interpreter.set_tensor(x, X)
                    interpreter.get_tensor(x)
                    interpreter.invoke()
            signal.setitimer(signal.ITIMER_REAL, 0)
            interrupts += 1
            assert interpreter._ownership.thread == 0
            assert not interpreter._ownership.is_brief
            assert not interpreter._ownership.running
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert interrupts > 5
    interpreter.set_tensor(x, X)
    interpreter.invoke()
    np.testing.assert_allclose(interpreter.get_tensor(y), expected(), atol=1e-4)


@pytest.mark.skipif(sys.platform == "win32", reason="the system has no fork")
def test_a_fork_while_a_thread_runs_the_model(model: str) -> None:
    import os

    interpreter = short(model)
    x = interpreter.get_input_details()[0]["index"]
    interpreter.set_tensor(x, X)
    for _ in range(20):
        thread = threading.Thread(target=lambda: [interpreter.invoke() for _ in range(20)])
        thread.start()
        while thread.is_alive() and not interpreter._ownership.thread:
            time.sleep(0)
        child = os.fork()
        if child == 0:
            status = 2
            try:
                if interpreter._ownership.torn:
                    try:
                        interpreter.invoke()
                    except RuntimeError as error:
                        status = 0 if "forked" in str(error) else 3
                    other = short(model)
                    other.invoke()
                else:
                    status = 1
            finally:
                os._exit(status)
        _, status = os.waitpid(child, 0)
        thread.join()
        assert status in (0, 256)
        if status == 0:
            return
    raise AssertionError("no fork fell into a run")


@pytest.mark.slow
def test_a_note_of_the_model_is_of_the_file_whatever_its_interpreter_does_meanwhile(tmp_path: Path) -> None:
    """The note for the short way is written in the background, while the interpreter may be resized."""
    from opwright.compiler.background import Worker, compiling

    @ow.function(input_signature=[ow.TensorSpec([None, 3], ow.float32)])
    def f(x: Any) -> Any:
        return ow.cos(ow.tanh(x)) + 0.25

    path = tmp_path / "model.tflite"
    path.write_bytes(lite.TFLiteConverter.from_concrete_functions([f.get_concrete_function()], f).convert())
    assert isinstance(compiling, Worker)
    leave = threading.Event()
    with ow.flags(background=True):
        for _ in range(2):  # the first compiles, the second keeps the plan
            interpreter = lite.Interpreter(model_path=str(path), num_threads=1)
            interpreter.allocate_tensors()
            if interpreter._engine is not None:
                interpreter._engine.wait()
            held = compiling.submit(lambda: leave.wait(20), urgent=True)
            interpreter.invoke()  # takes the nodes; the plan waits to be kept
            interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], [7, 3])
            interpreter.allocate_tensors()
            leave.set()
            held.wait()
            compiling.submit(lambda: None).wait()
        again = lite.Interpreter(model_path=str(path), num_threads=1)
        assert again.get_input_details()[0]["shape"].tolist() == [1, 3]
        assert again.get_output_details()[0]["shape"].tolist() == [1, 3]
