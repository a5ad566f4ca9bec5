"""Kernels of random words and laws, products in fixed point and guards: other targets, limits, float64's exp."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from form_kit import buffer, compiles_for, run, split, targets

from opwright.compiler.kernels.moves import copy_checked
from opwright.compiler.kernels.quantization import fixed_product
from opwright.compiler.kernels.random_numbers import (
    ElementsPattern,
    advance,
    bounded_elements,
    classes,
    normal_elements,
    normal_pairs,
    random_elements,
    random_words,
)
from opwright.compiler.loops.buffers import Buffer
from opwright.compiler.loops.domain_ops import AcceptedElements, Advanced, Classes, RandomElements, RandomWords
from opwright.compiler.loops.expressions import apply, arg, const, convert
from opwright.compiler.loops.ops import Checked
from opwright.compiler.native.executor import StepFailed
from opwright.core import dtypes

WIDE = (1 << 64) - 1
F32 = dtypes.float32


def test_philox_of_salmon_et_al() -> None:
    """The known answers that come with the paper's own library, philox 4x32 of ten rounds."""
    ones, zeros = np.array([WIDE] * 3, np.uint64), np.zeros(3, np.uint64)
    pi = np.array([0x299F31D0A4093822, 0x85A308D3243F6A88, 0x0370734413198A2E], np.uint64)
    answers = {
        "zeros": (zeros, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        "ones": (ones, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        "pi": (pi, [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]),
    }
    for name, (state, expected) in answers.items():
        inputs = buffer(state, "state")
        form = RandomWords(Buffer("y", dtypes.uint32, (4,)), inputs, "philox", True)
        np.testing.assert_array_equal(run(form, {inputs: state}), np.array(expected, np.uint32), name)


def test_a_counter_carries_or_wraps() -> None:
    state = np.array([3, WIDE - 1, 8], np.uint64)
    for carries, upper in ((True, 9), (False, 8)):
        inputs = buffer(state, "state")
        after = run(Advanced(Buffer("y", dtypes.uint64, (3,)), inputs, 5, carries), {inputs: state})
        assert after.tolist() == [3, 3, upper]
        words = run(RandomWords(Buffer("y", dtypes.uint32, (40,)), inputs, "philox", carries), {inputs: state})
        again = buffer(after, "state")
        rest = run(RandomWords(Buffer("y", dtypes.uint32, (20,)), again, "philox", carries), {again: after})
        np.testing.assert_array_equal(words[20:], rest)


KEYS = ([0, 0], [1, 2, 0], [WIDE, 5, 3], [1 << 62, WIDE - 4, WIDE])


def numpy_words(key: Any, count: int) -> Any:
    """The first words of NumPy's own generator."""
    counter = np.array([0, 0, *key[2:], *[0] * (3 - len(key)), 0], np.uint64)
    return np.random.Philox(key=np.array(key[:2], np.uint64), counter=counter).random_raw(count)


@pytest.mark.parametrize("word", [dtypes.uint16, dtypes.uint32, dtypes.uint64], ids=str)
@pytest.mark.parametrize("count", [1, 7, 16, 1023, 1024, 4100])
def test_elements_are_words_of_numpys_generator(word: dtypes.DType, count: int) -> None:
    for numbers in KEYS:
        key = np.array(numbers, np.uint64)
        inputs = buffer(key, "key")
        form = RandomElements(Buffer("y", word, (count,)), inputs, word, arg(0, word))
        expected = numpy_words(numbers, -(-count * word.size // 8)).view(word.np)[:count]
        np.testing.assert_array_equal(run(form, {inputs: key}), expected)
        for parts in (2, 3):
            np.testing.assert_array_equal(split(form, {inputs: key}, parts), expected)


def test_an_expression_of_random_elements() -> None:
    """A mask of dropout is one pass, without the numbers in memory."""
    key = np.array([3, 4, 5], np.uint64)
    inputs = buffer(key, "key")
    whole = convert(convert(apply("shift_right", arg(0, dtypes.uint32), const(8, dtypes.uint32)), dtypes.int32), F32)
    kept = apply("less", const(0.3, F32), apply("mul", whole, const(2.0**-24, F32)), dtype=dtypes.bool)
    form = RandomElements(Buffer("y", dtypes.bool, (3, 701)), inputs, dtypes.uint32, kept)
    words = numpy_words([3, 4, 5], 1052).view(np.uint32)[:2103].reshape(3, 701)
    expected = np.float32(0.3) < (words >> 8) * np.float32(2.0**-24)
    np.testing.assert_array_equal(run(form, {inputs: key}), expected)


@pytest.mark.parametrize("span", [3, 10, 1000, 3 << 30, (1 << 32) - 1])
def test_bounded_integers_reject_as_numpy_does(span: int) -> None:
    key = np.array([8, 9], np.uint64)
    inputs = buffer(key, "key")
    form = AcceptedElements(Buffer("y", dtypes.uint32, (5001,)), inputs, span=span)
    generator = np.random.Generator(np.random.Philox(key=key, counter=np.zeros(4, np.uint64)))
    np.testing.assert_array_equal(run(form, {inputs: key}), generator.integers(0, span, 5001, np.uint32))


def test_classes_by_weights_of_float64() -> None:
    """Numbers right at the limits between classes, which exp of float64 decides."""
    rng = np.random.default_rng(2)
    logits = rng.normal(0, 30, (4, 50)).astype(np.float32)
    sums = np.cumsum(np.exp(logits.astype(np.float64) - logits.max(1, keepdims=True)), 1)
    numbers = np.ascontiguousarray((sums / sums[:, -1:] * (1 - 4e-15))[:, ::7])
    expected = np.stack([np.searchsorted(s, v * s[-1], "right") for s, v in zip(sums, numbers)])
    a, b = buffer(logits, "logits"), buffer(numbers, "numbers")
    for kind in (dtypes.int32, dtypes.int64):
        actual = run(Classes(Buffer("y", kind, numbers.shape), a, b, False), {a: logits, b: numbers})
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize(("refused", "limit", "bad"), [("equal", 0, 0), ("below", -2, -3), ("beyond", 9, -10)])
@pytest.mark.parametrize("dtype", [np.int8, np.float32, np.int64])
def test_elements_that_are_refused(refused: str, limit: int, bad: int, dtype: Any) -> None:
    x = np.array([1, 5, -1, 9, -2] * 30, dtype)
    inputs = buffer(x, "x")
    form = Checked(Buffer("y", inputs.dtype, x.shape), inputs, refused, limit)
    np.testing.assert_array_equal(run(form, {inputs: x}), x)
    for place in (0, 77, len(x) - 1):
        wrong = x.copy()
        wrong[place] = bad
        with pytest.raises(StepFailed):
            run(form, {inputs: wrong})


@targets(
    (random_words, {"algorithm": "philox", "upper": 2, "carries": True, "pairs": True}),
    (random_words, {"algorithm": "threefry", "upper": 0, "carries": False, "pairs": False}),
    (random_elements, {"pattern": ElementsPattern(arg(0, dtypes.uint32), (), dtypes.uint32, True), "more": 1}),
    (bounded_elements, {"numbered": True}),
    (normal_elements, {"numbered": False}),
    (advance, {"size": 3, "carries": True}),
    (normal_pairs, {}),
    (classes, {"source": dtypes.float32, "result": dtypes.int32, "capped": True}),
    (fixed_product, {"source": dtypes.int8}),
    (copy_checked, {"source": dtypes.float32, "refused": "beyond"}),
)
def test_they_compile_for_every_target(family: Any, constants: Any, names: Any) -> None:
    compiles_for(names, family, **constants)
