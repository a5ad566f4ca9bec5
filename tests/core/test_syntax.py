"""Trees are parsed and compiled by several threads at once, which CPython's own conversions do not stand."""

from __future__ import annotations

import ast
import gc
import threading
import time
from collections.abc import Iterator

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


@pytest.mark.usefixtures("collections_that_yield")
def test_threads_parse_and_compile_at_once() -> None:
    wanted, failures, together = ast.dump(ast.parse(SOURCE)), [], threading.Barrier(4)

    def work() -> None:
        try:
            together.wait()
            trees = [introspection.parse(SOURCE) for _ in range(15)]
            for tree in trees:
                assert ast.dump(tree) == wanted
                scope: dict[str, object] = {}
                exec(introspection.compile_tree(tree, "<threads>"), scope)
                assert scope["f3"](1, 2, 0) == [7, 1]  # type: ignore[operator]
                assert introspection.literal("(1, [-2.5, 'x'])") == (1, [-2.5, "x"])
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
