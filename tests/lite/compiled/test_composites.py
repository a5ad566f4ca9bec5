"""Composites in plans: by the operator of their name or by their decomposition, without a call; official answers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_kit import engine, plan_of

sys.path.append(str(Path(__file__).parents[1] / "interpreter"))
sys.path.append(str(Path(__file__).parents[1] / "state"))

from state_harness import official, ours
from subgraph_models import Part, Parts

from opwright.core import flags
from opwright.lite.format.flexbuffers import encode_options
from thorough import crossed


@pytest.fixture(autouse=True)
def _compiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with engine(), flags.override(cache_dir=str(tmp_path_factory.mktemp("cache"))):
        yield


def attributes(**values: Any) -> np.ndarray:
    return np.frombuffer(encode_options(values), np.uint8)


def run(interpreter: Any, *values: Any) -> list[np.ndarray]:
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), values, strict=True):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return [np.array(interpreter.get_tensor(d["index"])) for d in interpreter.get_output_details()]


def constant(part: Part, name: str, value: Any) -> str:
    array = np.asarray(value)
    part.tensor(name, array.shape, "INT32" if array.dtype.kind == "i" else "FLOAT32", data=array)
    return name


def attention(queries: int, keys: int, heads: int, groups: int, size: int, cap: float | None = None) -> bytes:
    """y = softmax(q k^T / sqrt(size) + mask) v over a cache, before a map and after one; cap: of scores, by tanh."""
    parts, each = Parts(), heads // groups
    q, kv, mask = (1, queries, heads, size), (1, keys, groups, size), (1, 1, queries, keys)
    main = parts.part("main", x=q, k=kv, v=kv, mask=mask, q=q, a=q, y=q)
    scale = float(np.float32(size**-0.5))
    given = {"scale": scale} if cap is None else {"scale": scale, "logit_cap": cap}
    main.op("TANH", "x", "q").run(
        "STABLEHLO_COMPOSITE",
        "q k v mask",
        "a",
        decomposition_subgraph_index=1,
        name="odml.scaled_dot_product_attention",
        composite_attributes=attributes(**given),
    ).op("NEG", "a", "y").ends("x k v mask", "y")
    turned, wide = (1, groups, keys, size), (1, groups, each, keys, size)
    rows, scores = (1, heads, queries, size), (1, heads, queries, keys)
    body = parts.part("attention", q=q, k=kv, v=kv, mask=mask, qs=q, qt=rows, o=rows, y=q)
    body.op("MUL", f"q {constant(body, 'scale', np.float32(scale))}", "qs")
    order = constant(body, "order", np.int32([0, 2, 1, 3]))
    body.op("TRANSPOSE", f"qs {order}", "qt")
    for name in "kv":
        for suffix, shape in (
            ("t", turned),
            ("r", (1, groups, 1, keys, size)),
            ("b", wide),
            ("h", (1, heads, *kv[1::2])),
        ):
            body.tensor(f"{name}{suffix}", shape)
        body.op("TRANSPOSE", f"{name} {order}", f"{name}t")
        body.op("RESHAPE", f"{name}t {constant(body, f'{name}1', np.int32([1, groups, 1, keys, size]))}", f"{name}r")
        body.op("BROADCAST_TO", f"{name}r {constant(body, f'{name}2', np.int32(wide))}", f"{name}b", 2)
        body.op("RESHAPE", f"{name}b {constant(body, f'{name}3', np.int32([1, heads, keys, size]))}", f"{name}h")
    for name in ("s", "c", "t", "u", "m", "p"):
        body.tensor(name, scores)
    body.op("BATCH_MATMUL", "qt kh", "s", adj_y=True)
    last = "s"
    if cap is not None:
        body.op("MUL", f"s {constant(body, 'per', np.float32(1 / cap))}", "c").op("TANH", "c", "t")
        body.op("MUL", f"t {constant(body, 'cap', np.float32(cap))}", "u")
        last = "u"
    body.op("ADD", f"{last} mask", "m").op("SOFTMAX", "m", "p", beta=1.0).op("BATCH_MATMUL", "p vh", "o")
    body.op("TRANSPOSE", f"o {order}", "y").ends("q k v mask", "y")
    return parts.bytes()


SHAPES = [  # queries, keys, heads, groups, size
    (1, 40, 4, 2, 16),
    (1, 300, 6, 2, 64),
    (1, 33, 3, 3, 20),
    (2, 64, 8, 1, 32),
    (9, 70, 4, 2, 24),
    (32, 128, 6, 3, 64),
    (17, 600, 2, 2, 8),
]


def operands(queries: int, keys: int, heads: int, groups: int, size: int, first: int) -> list[np.ndarray]:
    """Random queries, keys and values, and the mask of queries that stand at `first` and after it."""
    rng = np.random.default_rng(queries * keys)
    x = rng.standard_normal((1, queries, heads, size), np.float32)
    k, v = rng.standard_normal((2, 1, keys, groups, size), np.float32)
    hidden = np.arange(keys) > np.arange(first, first + queries)[:, None]
    return [x, k, v, np.where(hidden, np.float32(-np.inf), np.float32(0))[None, None]]


@pytest.mark.parametrize(("shape", "cap"), crossed(SHAPES, [None, 5.0]), ids=str)
def test_attention_over_a_cache_is_the_official_one(shape: tuple[int, ...], cap: float | None) -> None:
    content = attention(*shape, cap=cap)
    for first in (0, shape[1] // 2 - shape[0] // 2, shape[1] - shape[0]):
        values = operands(*shape, first)
        interpreter = ours(content)
        (y,) = run(interpreter, *values)
        (expected,) = run(official(content), *values)
        np.testing.assert_allclose(y, expected, rtol=2e-5, atol=2e-6)
        assert plan_of(interpreter) == ["Opwright"]  # with the nodes around it, one plan


def test_a_nested_decomposition_with_two_results_is_part_of_the_plan() -> None:
    parts = Parts()
    main = parts.part("main", x=(5,), y=(5,), z=(5,), h=(5,))
    main.op("EXP", "x", "h")
    main.run("STABLEHLO_COMPOSITE", "h", "y z", decomposition_subgraph_index=1, name="our.pair").ends("x", "y z")
    pair = parts.part("pair", a=(5,), b=(5,), c=(5,))
    pair.op("NEG", "a", "b").run("STABLEHLO_COMPOSITE", "b", "c", decomposition_subgraph_index=2, name="our.double")
    pair.ends("a", "c b")
    double = parts.part("double", a=(5,), b=(5,))
    double.op("ADD", "a a", "b").ends("a", "b")
    x = np.linspace(-1, 1, 5, dtype=np.float32)
    interpreter = ours(parts.bytes())
    y, z = run(interpreter, x)
    np.testing.assert_allclose(y, -2 * np.exp(x), rtol=1e-6)
    np.testing.assert_allclose(z, -np.exp(x), rtol=1e-6)
    assert plan_of(interpreter) == ["Opwright"]


@pytest.mark.parametrize("outputs", ["a", "b b"], ids=["an input", "one tensor twice"])
def test_results_of_a_decomposition_that_are_one_tensor_are_copies(outputs: str) -> None:
    parts = Parts()
    results = "y z"[: len(outputs)]
    main = parts.part("main", x=(5,), y=(5,), z=(5,))
    main.run("STABLEHLO_COMPOSITE", "x", results, decomposition_subgraph_index=1, name="our.same").ends("x", results)
    body = parts.part("same", a=(5,), b=(5,))
    body.op("ABS", "a", "b").ends("a", outputs)
    x = np.linspace(-1, 1, 5, dtype=np.float32)
    interpreter = ours(parts.bytes())
    for y in run(interpreter, x):
        np.testing.assert_array_equal(y, x if outputs == "a" else np.abs(x))
    assert plan_of(interpreter) == ["Opwright"]
