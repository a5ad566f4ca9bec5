"""Rows of random numbers: shapes, dtypes, bounds and errors. Distributions and seeds are in test_random.py."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness import bad, case, f32, i32, strings

SHAPE = np.array([40, 30], np.int32)


def inside(low: float, high: float) -> Any:
    return lambda y, *_: y.shape == (40, 30) and bool(np.all((y >= low) & (y < high))) and len(np.unique(y)) > 1


def draws(*shape: int) -> Any:
    return lambda y, *_: y.shape == shape


def same_rows(y: Any, x: Any, *_: Any) -> bool:
    return sorted(map(str, y.tolist())) == sorted(map(str, x.tolist()))


SEED = np.array([7, 11], np.int64)
LOGITS = np.log(np.array([[0.2, 0.8], [1.0, 1e-30]], np.float32))

CASES = {
    "RandomUniform": [
        case(SHAPE, holds=inside(0, 1), gives="float32"),
        case(SHAPE, dtype="float64", holds=inside(0, 1), gives="float64"),
        case(SHAPE, dtype="float16", holds=inside(0, 1), gives="float16"),
        case(SHAPE, dtype="bfloat16", holds=inside(0, 1), gives="bfloat16"),
        case(SHAPE, seed=3, seed2=4, stream=5, holds=inside(0, 1)),
        case(np.zeros(0, np.int32), holds=draws()),
        case(np.array([3, 0]), holds=draws(3, 0)),
        bad(np.array([-1], np.int32), says="Dimension -1 must be >= 0"),
        bad(SHAPE, dtype="int32", says="do not come in this dtype"),
        bad(f32(2), says="dtype"),
    ],
    "RandomUniformInt": [
        case(SHAPE, np.int32(-3), np.int32(4), holds=inside(-3, 4), gives="int32"),
        case(SHAPE, np.int64(0), np.int64(2**40), holds=inside(0, 2**40), gives="int64"),
        bad(SHAPE, np.int32(5), np.int32(5), says="Need minval < maxval, got 5 >= 5"),
        bad(SHAPE, np.int32(5), np.int64(6), says="differ in dtype"),
    ],
    "RandomStandardNormal": [
        case(SHAPE, holds=inside(-9, 9), gives="float32"),
        case(SHAPE, dtype="bfloat16", holds=inside(-9, 9), gives="bfloat16"),
        bad(np.array([-1], np.int32), says="must be >= 0"),
    ],
    "TruncatedNormal": [
        case(SHAPE, holds=inside(-2, 2), gives="float32"),
        case(SHAPE, dtype="float64", holds=inside(-2, 2), gives="float64"),
        case(SHAPE, dtype="float16", holds=inside(-2, 2), gives="float16"),
        case(SHAPE, dtype="bfloat16", holds=inside(-2, 2), gives="bfloat16"),
    ],
    "RandomGamma": [
        case(SHAPE, np.float32(2.0), holds=inside(0, 100), half=True),
        case(np.array([5], np.int32), f32(2, 3) + 3, holds=draws(5, 2, 3)),
        bad(SHAPE, np.float32(-1), says="alpha must be positive"),
    ],
    "RandomPoisson": [
        case(SHAPE, np.float32(2.0), holds=inside(0, 100), gives="int64", half=False),
        case(np.array([5], np.int32), f32(2, 3) + 3, dtype="float32", holds=draws(5, 2, 3), half=False),
        bad(f32(1), f32(3), says="dtype"),
        case(
            np.array([2], np.int32),
            np.array([-1.0, np.nan]),
            dtype="float32",
            expect=np.full((2, 2), np.nan),
            half=False,
        ),
    ],
    "RandomShuffle": [
        case(i32(20, 2), holds=same_rows),
        case(strings(6), holds=same_rows),
        case(np.float32(3), expect=3.0),
        case(f32(0, 2), expect=np.zeros((0, 2))),
    ],
    "Multinomial": [
        case(
            LOGITS,
            np.int32(50),
            holds=lambda y, *_: y.shape == (2, 50) and set(y[0]) == {0, 1} and set(y[1]) == {0},
            half=False,
        ),
        case(LOGITS, np.int32(5), output_dtype="int32", gives="int32", holds=draws(2, 5), half=False),
        case(np.array([[-np.inf, 0.0, -np.inf]] * 3), np.int32(9), expect=np.ones((3, 9), np.int64), half=False),
        case(f32(0, 3), np.int32(4), holds=draws(0, 4), half=False),
        bad(f32(3), np.int32(4), says="rank"),
        bad(LOGITS, np.int32(-1), says="num_samples should be nonnegative, got -1"),
        bad(LOGITS, np.int32(3), output_dtype="float32", says="output_dtype"),
    ],
    "StatelessRandomUniform": [
        case(SHAPE, SEED, holds=inside(0, 1)),
        case(SHAPE, SEED, dtype="float16", holds=inside(0, 1), gives="float16"),
        bad(SHAPE, np.array([1, 2, 3]), says="seed must have shape [2]"),
    ],
    "StatelessRandomNormal": [
        case(SHAPE, SEED, dtype="float64", holds=inside(-9, 9), gives="float64"),
        bad(SHAPE, np.array([1]), says="seed must have shape [2]"),
    ],
    "StatelessTruncatedNormal": [case(SHAPE, SEED, holds=inside(-2, 2)), bad(SHAPE, np.array([[1, 2]]), says="rank 1")],
    "StatelessRandomUniformInt": [
        case(SHAPE, SEED, np.int32(-3), np.int32(4), holds=inside(-3, 4)),
        case(SHAPE, SEED, np.uint64(3), np.uint64(2**63), holds=inside(3, 2**63), gives="uint64"),
        bad(SHAPE, SEED, np.int32(4), np.int32(3), says="Need minval < maxval"),
    ],
    "StatelessRandomUniformFullInt": [
        case(SHAPE, SEED, dtype="uint32", gives="uint32", holds=lambda y, *_: y.max() > 2**31),
        case(SHAPE, SEED, dtype="int64", gives="int64", holds=lambda y, *_: y.min() < -(2**62) and y.max() > 2**62),
        bad(SHAPE, SEED, dtype="float32", says="do not come in this dtype"),
    ],
    "StatelessRandomGamma": [
        case(np.array([5], np.int32), SEED, f32(2, 3) + 3, holds=draws(5, 2, 3)),
        bad(SHAPE, SEED, np.float32(0), says="alpha must be positive"),
    ],
    "StatelessRandomPoisson": [
        case(np.array([5], np.int32), SEED, f32(2, 3) + 3, holds=draws(5, 2, 3), half=False),
        bad(SHAPE, np.array([1]), np.float32(1), says="seed must have shape [2]"),
    ],
    "StatelessRandomBinomial": [
        bad(SHAPE, SEED, i32(7, low=1, high=9), np.float32(0.5), says="counts does not broadcast to shape"),
        bad(SHAPE, SEED, np.float32(3), np.array([0.5, 1.5, 2] * 10), says="probs must be in [0, 1]"),
        case(SHAPE, SEED, np.float32(10), np.float32(0.5), holds=inside(0, 11), gives="int32", half=False),
        case(
            SHAPE,
            SEED,
            i32(30, low=1, high=9),
            np.float32(1.0),
            half=False,
            expect=lambda s, seed, n, p: np.broadcast_to(n, (40, 30)),
        ),
    ],
    "StatelessMultinomial": [
        case(LOGITS, np.int32(50), SEED, holds=draws(2, 50), half=False),
        bad(LOGITS, np.int32(5), np.array([1]), says="seed must have shape [2]"),
    ],
    "StatelessShuffle": [
        case(i32(20, 2), SEED, holds=same_rows),
        bad(i32(3), np.array([1]), says="seed must have shape [2]"),
    ],
    "random.normal": [
        case([40, 30], 5.0, 0.1, holds=inside(4, 6)),
        case(SHAPE, np.float32(5), np.float32(0.1), grad=False, half=False, holds=inside(4, 6)),
    ],
    "random.truncated_normal": [case([40, 30], 5.0, 0.5, holds=inside(4, 6))],
    "random.uniform": [
        case([40, 30], holds=inside(0, 1)),
        case([40, 30], -2, 3, holds=inside(-2, 3), gives="float32"),
        case([40, 30], -2, 3, dtype="int32", holds=inside(-2, 3), gives="int32"),
        case(SHAPE, maxval=np.arange(1, 31, dtype=np.float32), holds=inside(0, 30)),
        case(7, holds=draws(7)),
        bad([2], dtype="int32", says="Must specify maxval", raises=ValueError),
        bad([2], 0, 5, dtype="int8", says="Accepted dtypes", raises=ValueError),
        bad([2], 5, 5, dtype="int64", says="Need minval < maxval"),
    ],
    "random.shuffle": [case(i32(20), holds=same_rows)],
    "random.categorical": [
        case(LOGITS, 7, holds=draws(2, 7), gives="int64", half=False),
        case(LOGITS, 7, dtype="int32", holds=draws(2, 7), gives="int32", half=False),
    ],
    "random.gamma": [
        case([40, 30], 2.0, holds=inside(0, 100)),
        case([5], [1.0, 2.0], [[1.0], [2.0]], holds=draws(5, 2, 2)),
    ],
    "random.poisson": [case([5], [1.0, 2.0], holds=draws(5, 2), gives="float32")],
    "random.stateless_normal": [case([40, 30], [1, 2], 5.0, 0.1, holds=inside(4, 6))],
    "random.stateless_truncated_normal": [case([40, 30], [1, 2], holds=inside(-2, 2))],
    "random.stateless_uniform": [
        case([40, 30], [1, 2], -2, 3, holds=inside(-2, 3)),
        case([40, 30], [1, 2], -2, 3, dtype="int32", holds=inside(-2, 3), gives="int32"),
        case([40, 30], [1, 2], None, None, dtype="uint64", holds=draws(40, 30), gives="uint64"),
        bad([2], [1, 2], None, 3, dtype="int32", says="both", raises=ValueError),
    ],
    "random.stateless_categorical": [case(LOGITS, 7, [1, 2], holds=draws(2, 7), half=False)],
    "random.stateless_gamma": [case([5, 2], [1, 2], [1.0, 2.0], holds=draws(5, 2))],
    "random.stateless_poisson": [case([5, 2], [1, 2], [1.0, 2.0], holds=draws(5, 2), gives="int32")],
    "random.stateless_binomial": [case([5, 2], [1, 2], 10.0, 0.5, holds=draws(5, 2))],
    "random.stateless_shuffle": [case(i32(20), [1, 2], holds=same_rows)],
    "random.split": [
        case(SEED, num=3, holds=lambda y, *_: y.shape == (3, 2) and len(np.unique(y)) == 6, gives="int64")
    ],
    "random.fold_in": [case(SEED, 3, holds=draws(2), gives="int64")],
}
