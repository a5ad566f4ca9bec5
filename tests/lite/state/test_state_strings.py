"""Functions of strings, converted: both interpreters give what the function gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from state_harness import assert_agree, converted

import opwright as ow
from opwright.lite.convert.errors import ConverterError


def strings(*items: Any) -> np.ndarray:
    return np.array(items, object)


A = strings(b"two", b"", "über".encode(), b"x")
M = strings([b"a", b"bb"], [b"", b"two"])
I32 = np.int32


def rotated(s: Any, n: Any) -> Any:
    for _ in ow.range(n):
        s = ow.gather(s, [1, 2, 3, 0])
    return s


Row = tuple[Callable[..., Any], tuple[np.ndarray, ...]]
CASES: dict[str, Row] = {
    "through": (lambda s: {"s": s, "shape": ow.shape(s), "rank": ow.rank(s)}, (A,)),
    "constant": (lambda s: {"s": s, "c": ow.constant(["q", "rr"])}, (A,)),
    "reshape": (lambda s: ow.reshape(s, [2, 2]), (A,)),
    "expand_dims": (lambda s: ow.squeeze(ow.expand_dims(s, 1)), (A,)),
    "gather": (ow.gather, (A, I32([[2, 0], [3, 3]]))),
    "gather_nd": (ow.gather_nd, (M, I32([[1, 1], [0, 1]]))),
    "equal": (lambda x, y: {"e": ow.equal(x, y), "n": ow.not_equal(x, y)}, (A, strings(b"two", b"x", b"", b"x"))),
    "equal_to_one": (lambda s: s == "two", (M,)),
    "slice": (lambda s: ow.slice(s, [0, 1], [2, 1]), (M,)),
    "strided_slice": (lambda s: {"a": s[1:3], "b": s[::2], "c": s[::-1], "d": s[-1]}, (A,)),
    "unstack": (lambda s: {"a": ow.unstack(s)[0], "b": ow.unstack(s)[1]}, (M,)),
    "tile": (lambda s: ow.tile(s, [2, 1]), (M,)),
    "fill": (lambda s: ow.fill([3], s[0]), (A,)),
    "gather_rows": (ow.gather, (M, I32([1, 0, 1]))),
    "gather_columns": (lambda s: ow.gather(s, [1, 1, 0], axis=1), (M,)),
    "transpose": (ow.transpose, (M,)),
    "reverse": (lambda s: ow.reverse(s, [1]), (M,)),
    "roll": (lambda s: ow.roll(s, 1, 0), (A,)),
    "broadcast_to": (lambda s: ow.broadcast_to(s, [2, 4]), (A,)),
    "split": (lambda s: {str(i): part for i, part in enumerate(ow.split(s, [1, 3]))}, (A,)),
    "branch": (lambda s, p: ow.cond(p, lambda: s, lambda: ow.constant(["a", "b", "c", "d"])), (A, np.bool_(True))),
    "loop": (rotated, (A, I32(3))),
}


@pytest.mark.parametrize(("function", "values"), CASES.values(), ids=CASES)
def test_both_interpreters_agree(function: Callable[..., Any], values: tuple[np.ndarray, ...]) -> None:
    specs = [ow.TensorSpec(x.shape, "string" if x.dtype == object else x.dtype, f"x{i}") for i, x in enumerate(values)]
    inputs = {f"x{i}": x for i, x in enumerate(values)}

    def wanted() -> Any:
        actual = function(*map(ow.constant, values))
        actual = actual if isinstance(actual, dict) else {"output_0": actual}
        return [{k: np.asarray(v.numpy(), object if v.dtype is ow.string else None) for k, v in actual.items()}] * 2

    content = converted(ow.function(function).get_concrete_function(*specs))
    assert_agree(content, [("serving_default", inputs)] * 2, wanted)


def test_what_official_kernels_do_not_do_is_an_error_with_reasons() -> None:
    spec = ow.TensorSpec([None, 2], "string")
    with pytest.raises(ConverterError, match="where each string comes from must be known"):
        converted(ow.function(ow.transpose).get_concrete_function(spec))
    with pytest.raises(ConverterError, match="CONCATENATION does not take string"):
        converted(ow.function(lambda s: ow.concat([s, s], 0)).get_concrete_function(spec))
