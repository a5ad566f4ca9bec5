"""Trees are parsed and compiled by several threads at once, which CPython's own conversions do not stand."""

from __future__ import annotations

import ast
import gc
import io
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from opwright.core import introspection

SOURCE = "".join(f"def f{i}(x, *y):\n    return [x + z * ({i} if z else -{i}) for z in y]\n" for i in range(8))


@pytest.fixture
def collections_that_yield() -> Iterator[None]:
    """Let another thread run whenever the collector does, which is often."""
    thresholds = gc.get_threshold()

    def callback(phase: str, info: object) -> None:
        time.sleep(1e-5)

    gc.callbacks.append(callback)
    gc.set_threshold(20)
    yield
    gc.set_threshold(*thresholds)
    gc.callbacks.remove(callback)


def failures_of_threads(work: Callable[[], None]) -> list[BaseException]:
    """Run a function in four threads, which start together; return what it raises."""
    failures: list[BaseException] = []
    together = threading.Barrier(4)

    def guarded() -> None:
        try:
            together.wait()
            work()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=guarded) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


@pytest.mark.usefixtures("collections_that_yield")
def test_threads_parse_and_compile_at_once() -> None:
    wanted = ast.dump(ast.parse(SOURCE))

    def work() -> None:
        trees = [introspection.parse(SOURCE) for _ in range(15)]
        for tree in trees:
            assert ast.dump(tree) == wanted
            scope: dict[str, object] = {}
            exec(introspection.compile_tree(tree, "<threads>"), scope)
            assert scope["f3"](1, 2, 0) == [7, 1]  # type: ignore[operator]
            assert introspection.literal("(1, [-2.5, 'x'])") == (1, [-2.5, "x"])

    assert not failures_of_threads(work)


@pytest.mark.usefixtures("collections_that_yield")
def test_threads_read_arrays_whose_headers_are_literals_of_python() -> None:
    """np.load itself fails here under CPython 3.11.7."""
    file = io.BytesIO()
    np.save(file, np.arange(3.0))

    def load(content: str) -> np.ndarray:
        result: np.ndarray = np.load(io.BytesIO(content.encode("latin-1")))
        return result

    def work() -> None:
        for _ in range(200):
            loaded = introspection.retry_conversion(load, file.getvalue().decode("latin-1"))
            np.testing.assert_array_equal(loaded, [0.0, 1.0, 2.0])

    assert not failures_of_threads(work)
