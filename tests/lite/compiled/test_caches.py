"""Key-value caches that the interpreter holds, in compiled plans, against their documentation in NumPy.

Not here: drawn models of one node against the official kernel (tests/lite/ops/test_compiled_rest.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_kit import engine, plan_of
from lite_kit import Build, run

from opwright import lite
from opwright.core import flags

ENTRIES, HEADS, SIZE = 4, 2, 3
RNG = np.random.default_rng(31)


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Plans of earlier runs are not found."""
    with flags.override(cache_dir=str(tmp_path_factory.mktemp("cache"))):
        yield


class Layer:
    """The cache of a layer; `first`: by node, the position of entry 0."""

    def __init__(self) -> None:
        self.rows = np.zeros((2, ENTRIES, HEADS, SIZE), np.float32)
        self.first: dict[int, int] = {}

    def updated(self, node: int, position: int, keys: np.ndarray, values: np.ndarray) -> list[np.ndarray]:
        n = keys.shape[1]
        place = position - self.first.get(node, 0)
        beyond = max(0, place + n - ENTRIES)
        if 0 < beyond < ENTRIES:
            self.rows[:, : ENTRIES - beyond] = self.rows[:, beyond:].copy()
        self.first[node] = self.first.get(node, 0) + beyond
        self.rows[:, place - beyond : place - beyond + n] = [keys[0], values[0]]
        return [kept[None].copy() for kept in self.rows]


def model(layers: tuple[int, int], n: int, outputs: str) -> bytes:
    """Two nodes, and the sum of what the first one gives."""
    part, whole = (1, n, HEADS, SIZE), (1, ENTRIES, HEADS, SIZE)
    b = Build().tensor("p", (n,), "INT64").tensor("k", part).tensor("v", part)
    for name in ("ak", "av", "bk", "bv", "y"):
        b.tensor(name, whole)
    for layer, inputs, results in zip(layers, ("p k v", "p v k"), ("ak av", "bk bv")):
        options = {"kv_cache_max": ENTRIES, "num_layers": 2, "layer_index": layer}
        b.custom("odml.update_kv_cache", inputs, results, **options)
    return b.op("ADD", "ak av", "y").done("p k v", outputs)


def drawn(position: int, n: int) -> list[np.ndarray]:
    parts = [RNG.standard_normal((1, n, HEADS, SIZE)).astype(np.float32) for _ in range(2)]
    return [np.arange(position, position + n), *parts]


def expected(caches: list[Layer], layers: tuple[int, int], feeds: list[np.ndarray]) -> list[np.ndarray]:
    position, keys, values = int(feeds[0][0]), feeds[1], feeds[2]
    a = caches[layers[0]].updated(0, position, keys, values)
    return [a[0] + a[1], *caches[layers[1]].updated(1, position, values, keys)]


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("layers", [(0, 1), (1, 1)], ids=["two layers", "one layer"])
def test_caches_are_kept_and_shift_as_documented(layers: tuple[int, int], n: int, tmp_path: Path) -> None:
    path = tmp_path / "cache.tflite"
    path.write_bytes(model(layers, n, "y bk bv"))
    with engine(verify=True):
        for _ in range(2):  # planned, then found in the cache
            interpreter: Any = lite.Interpreter(str(path))
            interpreter.allocate_tensors()
            caches = [Layer(), Layer()]
            for position in (0, 1, 2, 3, 4, 4, 6, 30, 31):
                feeds = drawn(position, n)
                for actual, exact in zip(run(interpreter, feeds), expected(caches, layers, feeds), strict=True):
                    np.testing.assert_array_equal(actual, exact, str(position))
            assert plan_of(interpreter) == ["Opwright"]
            with pytest.raises(RuntimeError, match="before the first entry of the cache"):
                run(interpreter, drawn(2, n))
            feeds = drawn(32, n)
            for actual, exact in zip(run(interpreter, feeds), expected(caches, layers, feeds), strict=True):
                np.testing.assert_array_equal(actual, exact)


def test_a_cache_that_the_plan_alone_reads_is_updated_in_place() -> None:
    with engine(verify=True):
        interpreter = lite.Interpreter(model_content=model((0, 1), 1, "y"))
        interpreter.allocate_tensors()
        caches = [Layer(), Layer()]
        for position in range(7):
            feeds = drawn(position, 1)
            np.testing.assert_array_equal(run(interpreter, feeds)[0], expected(caches, (0, 1), feeds)[0])
    (node,) = interpreter._subgraphs[0].execution_plan
    steps = [step.code.name for step in node.registration.plan.steps]
    assert sum("append_entries" in name for name in steps) == 4
    assert not any("move_block" in name for name in steps), steps
