"""Everything at once, in threads, for a while: interpreters, functions, kernels, forks, in an order drawn by chance.

Not a test module: test_stress.py runs it in a process of its own, as

    python stress.py SECONDS SEED

A line says what was done how often. What crashes, hangs, or gives a wrong answer ends the process with a status.
"""

from __future__ import annotations

import collections
import contextlib
import faulthandler
import gc
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.random  # which NumPy imports late: a fork in the midst of that is nobody's but Python's to mend

SECONDS, SEED = float(sys.argv[1]), int(sys.argv[2])
THREADS = 6
HANGS = 120.0  # seconds after which a call or a child is taken to hang

faulthandler.enable()
sys.setswitchinterval(1e-6)

import opwright as ow  # noqa: E402
from opwright import language as kl  # noqa: E402
from opwright import lite  # noqa: E402

UNARY: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "ABS": np.abs,
    "COS": np.cos,
    "SIN": np.sin,
    "TANH": np.tanh,
    "SQUARE": np.square,
    "NEG": np.negative,
    "FLOOR": np.floor,
    "EXP": np.exp,
}
SAFE = ("ABS", "COS", "SIN", "TANH", "NEG")
done: collections.Counter[str] = collections.Counter()
errors: list[str] = []
begun: dict[int, tuple[str, float]] = {}
stop = threading.Event()


def pause(rng: random.Random) -> None:
    if rng.random() < 0.3:
        time.sleep(rng.choice((0.0, 1e-5, 1e-4, 1e-3)))


def chain(ops: list[str], shape: tuple[int, ...]) -> Any:
    """A function of the catalogue's operators, and what it gives in float64."""

    def f(x: Any) -> Any:
        for op in ops:
            x = getattr(ow, {"NEG": "negative"}.get(op, op.lower()))(x)
        return x

    def expected(x: np.ndarray) -> np.ndarray:
        y = x.astype(np.float64)
        for op in ops:
            y = UNARY[op](y)
        return y

    return f, expected


def converted(rng: random.Random) -> tuple[bytes, tuple[int, ...], Any]:
    shape = (rng.randint(1, 9), rng.randint(1, 40))
    f, expected = chain(rng.choices(SAFE, k=rng.randint(1, 4)), shape)
    concrete = ow.function(f, input_signature=[ow.TensorSpec(shape, ow.float32)]).get_concrete_function()
    content = lite.TFLiteConverter.from_concrete_functions([concrete]).convert()
    return content, shape, expected


def close(found: Any, wanted: np.ndarray) -> None:
    if not np.allclose(found, wanted, atol=1e-4, rtol=1e-4):
        raise AssertionError(f"wrong answer, by {np.abs(found - wanted).max()}")


MODELS: list[tuple[str, bytes, tuple[int, ...], Any]] = []


def model(rng: random.Random) -> tuple[str, bytes, tuple[int, ...], Any]:
    """Return one of a few models, sometimes a new one without cached kernels."""
    if len(MODELS) < 3 or rng.random() < 0.03:
        content, shape, expected = converted(rng)
        path = os.path.join(FOLDER, f"{rng.randrange(10**12)}.tflite")
        with open(path, "wb") as file:
            file.write(content)
        MODELS.append((path, content, shape, expected))
    return rng.choice(MODELS)


def run_once(interpreter: lite.Interpreter, shape: tuple[int, ...], expected: Any, rng: random.Random) -> None:
    x = np.random.default_rng(rng.randrange(1 << 30)).standard_normal(shape, dtype=np.float32)
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    pause(rng)
    interpreter.invoke()
    close(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]), expected(x))


def interpreter_of_its_own(rng: random.Random) -> None:
    path, content, shape, expected = model(rng)
    given: dict[str, Any] = {"model_path": path} if rng.random() < 0.6 else {"model_content": content}
    interpreter = lite.Interpreter(**given, num_threads=rng.choice((1, 2)))
    interpreter.allocate_tensors()
    for _ in range(rng.randint(1, 5)):
        run_once(interpreter, shape, expected, rng)
    if rng.random() < 0.3:
        interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], [shape[0] + 1, shape[1]])
        interpreter.allocate_tensors()
        run_once(interpreter, (shape[0] + 1, shape[1]), expected, rng)
    if rng.random() < 0.5:
        interpreter.close()


class Shared:
    """An interpreter that all threads use: what they do is refused, or right."""

    interpreter: lite.Interpreter | None = None
    shape: tuple[int, ...] = ()


def shared_interpreter(rng: random.Random) -> None:
    if Shared.interpreter is None or rng.random() < 0.1:
        path, content, shape, _ = model(rng)
        new = lite.Interpreter(**({"model_path": path} if rng.random() < 0.6 else {"model_content": content}))
        new.allocate_tensors()
        Shared.interpreter, Shared.shape = new, shape
    interpreter = Shared.interpreter
    calls: list[Callable[[], Any]] = [
        interpreter.invoke,
        interpreter.invoke,
        interpreter.invoke,
        interpreter.allocate_tensors,
        lambda: interpreter.get_tensor(interpreter.get_output_details()[0]["index"]),
        lambda: interpreter.tensor(interpreter.get_output_details()[0]["index"])().sum(),
        lambda: interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], [rng.randint(1, 9), 3]),
        interpreter.get_tensor_details,
        interpreter.close,
        lambda: interpreter.profile(1),
        interpreter.remove_all_delegates,
        interpreter.reset_all_variables,
    ]
    for _ in range(5):
        with contextlib.suppress(RuntimeError, ValueError):  # refused, closed, not ready or not allocated
            rng.choice(calls)()
        pause(rng)


FUNCTIONS: list[Any] = []


def function(rng: random.Random) -> None:
    if len(FUNCTIONS) < 3 or rng.random() < 0.05:
        ops = rng.choices(SAFE, k=rng.randint(1, 4))
        f, expected = chain(ops, ())
        FUNCTIONS.append((ow.function(f, jit_compile=rng.choice((True, None)), reduce_retracing=True), expected))
        del FUNCTIONS[:-8]
    f, expected = rng.choice(FUNCTIONS)
    x = np.random.default_rng(rng.randrange(1 << 30)).standard_normal((rng.randint(1, 3), 7), dtype=np.float32)
    close(f(ow.constant(x)).numpy(), expected(x))


def gradient(rng: random.Random) -> None:
    x = np.random.default_rng(rng.randrange(1 << 30)).standard_normal(5, dtype=np.float32)
    variable = ow.Variable(x)
    with ow.GradientTape() as tape:
        loss = ow.reduce_sum(ow.sin(variable) * variable)
    close(tape.gradient(loss, variable).numpy(), np.cos(x) * x + np.sin(x))
    variable.assign_add(x)
    close(variable.numpy(), 2 * x)


@ow.kernel
def squares(x: kl.Array(kl.f32, "n"), y: kl.Array(kl.f32, "n"), *, by):  # type: ignore[no-untyped-def]
    for i in range(x.shape[0]):
        y[i] = x[i] * x[i] * by


def kernel(rng: random.Random) -> None:
    x = np.random.default_rng(rng.randrange(1 << 30)).standard_normal(rng.randint(1, 50), dtype=np.float32)
    y, by = np.empty_like(x), float(rng.randint(1, 4 if rng.random() < 0.9 else 40))
    squares(x, y, by=by)
    close(y, x * x * by)


def dataset(rng: random.Random) -> None:
    n = rng.randint(1, 20)
    found = [int(x) for x in ow.data.Dataset.range(n).map(lambda i: i * 2, num_parallel_calls=2).prefetch(2)]
    if found != [2 * i for i in range(n)]:
        raise AssertionError(f"wrong elements {found}")


def fork(rng: random.Random) -> None:
    if not hasattr(os, "fork"):
        return
    child = os.fork()
    if child == 0:
        status = 1
        try:
            faulthandler.dump_traceback_later(HANGS, exit=True)
            for action in (interpreter_of_its_own, function, kernel, gradient):
                action(random.Random(rng.random()))
            status = 0
        except BaseException as error:
            print("in a child:", repr(error)[:300], file=sys.stderr, flush=True)
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    if status:
        raise AssertionError(f"a child ended with status {status}")


def clean(rng: random.Random) -> None:
    gc.collect()
    del MODELS[:-6]


ACTIONS = [interpreter_of_its_own] * 6 + [shared_interpreter] * 6 + [function] * 5 + [gradient] * 2 + [kernel] * 4
ACTIONS += [dataset, fork, clean]


def work(number: int) -> None:
    rng = random.Random(SEED * 1000 + number)
    while not stop.is_set():
        action = rng.choice(ACTIONS)
        begun[number] = action.__name__, time.monotonic()
        try:
            action(rng)
        except BaseException as error:
            errors.append(f"{action.__name__}: {type(error).__name__}: {error}")
            import traceback

            traceback.print_exc()
            stop.set()
        done[action.__name__] += 1
        pause(rng)
    begun.pop(number, None)


def main() -> int:
    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    until = time.monotonic() + SECONDS
    while time.monotonic() < until and not stop.is_set():
        time.sleep(0.2)
        hanging = [name for name, start in list(begun.values()) if time.monotonic() - start > HANGS + 30]
        if hanging:
            print("hangs:", hanging, file=sys.stderr)
            faulthandler.dump_traceback(all_threads=True)
            return 3
    stop.set()
    for thread in threads:
        thread.join(HANGS + 30)
        if thread.is_alive():
            faulthandler.dump_traceback(all_threads=True)
            return 3
    print(dict(done), *errors, sep="\n")
    return 1 if errors else 0


if __name__ == "__main__":
    if hasattr(signal, "SIGUSR1"):
        faulthandler.register(signal.SIGUSR1, all_threads=True)
    with tempfile.TemporaryDirectory(prefix="opwright-stress-") as FOLDER:
        status = main()
    sys.exit(status)
