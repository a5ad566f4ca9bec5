"""HASHTABLE_LOOKUP in compiled plans, against the official interpreter."""

from __future__ import annotations

from typing import Any

import ai_edge_litert.interpreter as peer
import numpy as np
import pytest
from engine_kit import engine, plan_of
from lite_kit import Build

from opwright import lite
from thorough import crossed


def run(interpreter: Any, feeds: list[np.ndarray]) -> list[np.ndarray]:
    interpreter.allocate_tensors()
    for detail, x in zip(interpreter.get_input_details(), feeds, strict=True):
        interpreter.set_tensor(detail["index"], x)
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


def looked_up(keys: np.ndarray, table: np.ndarray, expected: np.ndarray, known: bool) -> None:
    """As officially, by one plan; known: whether keys and table are the file's."""
    type = table.dtype.name.upper()
    b = Build().tensor("wanted", expected.shape, "INT32")
    if known:
        b.tensor("keys", type="INT32", data=keys).tensor("table", type=type, data=table)
    else:
        b.tensor("keys", keys.shape, "INT32").tensor("table", table.shape, type)
    b.tensor("y", (*expected.shape, *table.shape[1:]), type).tensor("hits", expected.shape, "UINT8")
    content = b.op("HASHTABLE_LOOKUP", "wanted keys table", "y hits").done(
        "wanted" if known else "wanted keys table", "y hits"
    )
    feeds = [expected] if known else [expected, keys, table]
    with engine():
        mine = lite.Interpreter(model_content=content)
        for a, b in zip(run(mine, feeds), run(peer.Interpreter(model_content=content), feeds), strict=True):
            np.testing.assert_array_equal(a, b)
        assert plan_of(mine) == ["Opwright"]


@pytest.mark.parametrize(("known", "count"), crossed([True, False], [1, 2, 7, 64, 500]))
def test_keys_that_are_there_and_others(count: int, known: bool) -> None:
    rng = np.random.default_rng(count)
    keys = np.sort(rng.choice(np.arange(-1000, 1000, dtype=np.int32), count, replace=False))
    expected = np.concatenate([keys[:40], keys[-40:], keys[:9] + 1, np.int32([-(2**31), 2**31 - 1, 0])])
    for table in (
        rng.standard_normal((count, 3)).astype(np.float32),
        rng.integers(-9, 9, (count,)).astype(np.int8),
        rng.integers(-9, 9, (count, 2, 2)),
        rng.integers(-9, 9, (count, 17)).astype(np.int32),
        rng.integers(0, 2, (count, 5)).astype(bool),
    ):
        looked_up(keys, table, expected, known)


def test_keys_that_fall_are_left_to_the_operator() -> None:
    """The guard stops the plan, and the operator's own search answers."""
    keys, table = np.int32([5, 3, 9, 1]), np.arange(4, dtype=np.float32)
    b = Build().tensor("wanted", (3,), "INT32").tensor("keys", (4,), "INT32").tensor("table", (4,))
    b.tensor("y", (3,)).tensor("hits", (3,), "UINT8").op("HASHTABLE_LOOKUP", "wanted keys table", "y hits")
    content = b.done("wanted keys table", "y hits")
    feeds = [np.int32([1, 5, 9]), keys, table]
    with engine():
        mine = run(lite.Interpreter(model_content=content), feeds)
    plain = lite.Interpreter(model_content=content, experimental_op_resolver_type=lite.OpResolverType.BUILTIN_REF)
    for a, b in zip(mine, run(plain, feeds), strict=True):
        np.testing.assert_array_equal(a, b)
