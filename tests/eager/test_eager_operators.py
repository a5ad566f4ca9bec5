"""Python's operators on tensors: whichever side the tensor stands on, whatever the other side is."""

import operator

import numpy as np
import pytest

import opwright as ow
from opwright.core.errors import InvalidArgumentError

F = ow.constant([1.5, -2.0, 4.0])
I = ow.constant([7, -7, 2])
BINARY = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
    operator.eq,
    operator.ne,
]
OTHERS = [
    2,
    2.0,
    [2.0, 1.0, 3.0],
    np.float32([2, 1, 3]),
    np.float32(2),
    np.float64([2, 1, 3]),
    ow.constant([2.0, 1.0, 3.0]),
    ow.Variable([2.0, 1.0, 3.0]),
]


@pytest.mark.parametrize("other", OTHERS, ids=lambda o: type(o).__name__)
@pytest.mark.parametrize("op", BINARY, ids=lambda o: o.__name__)
def test_binary_operators_on_either_side(op, other):
    array = np.asarray(other, np.float32)
    with np.errstate(all="ignore"):
        right, left = op(F.numpy(), array), op(array, F.numpy())
    for actual, expected in ((op(F, other), right), (op(other, F), left), (op(ow.Variable(F), other), right)):
        assert isinstance(actual, ow.Tensor)
        assert actual.dtype == (ow.bool if expected.dtype == bool else ow.float32)
        np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("found", "wanted", "dtype"),
    [
        (lambda: I // 2, [3, -4, 1], "int32"),
        (lambda: I % 3, [1, 2, 2], "int32"),
        (lambda: I / 2, [3.5, -3.5, 1.0], "float64"),
        (lambda: ow.constant([1], ow.int8) / ow.constant([2], ow.int8), [0.5], "float32"),
        (lambda: I / 0, [np.inf, -np.inf, np.inf], "float64"),
        (lambda: ow.constant([-7.5]) % 2, [0.5], "float32"),
        (lambda: ow.constant([-7.5]) // 2, [-4.0], "float32"),
        (lambda: I**2, [49, 49, 4], "int32"),
        (lambda: 2 ** ow.constant([3]), [8], "int32"),
        (lambda: 1 - I, [-6, 8, -1], "int32"),
        (lambda: -I, [-7, 7, -2], "int32"),
        (lambda: +I, [7, -7, 2], "int32"),
        (lambda: abs(I), [7, 7, 2], "int32"),
        (lambda: ~I, [-8, 6, -3], "int32"),
        (lambda: ~ow.constant([True, False]), [False, True], "bool"),
        (lambda: I & 3, [3, 1, 2], "int32"),
        (lambda: 3 | I, [7, -5, 3], "int32"),
        (lambda: I ^ I, [0, 0, 0], "int32"),
        (lambda: ow.constant([True, True]) & ow.constant([True, False]), [True, False], "bool"),
        (lambda: ow.constant([True, False]) | False, [True, False], "bool"),
        (lambda: True ^ ow.constant([True, False]), [False, True], "bool"),
        (lambda: ow.constant(["a", "b"]) + "c", [b"ac", b"bc"], "string"),
        (lambda: "c" + ow.constant(["a", "b"]), [b"ca", b"cb"], "string"),
        (lambda: ow.constant([[1.0, 2.0]]) @ ow.constant([[3.0], [4.0]]), [[11.0]], "float32"),
        (lambda: [[1.0, 2.0]] @ ow.constant([[3.0], [4.0]]), [[11.0]], "float32"),
        (lambda: np.float32([[1.0, 2.0]]) @ ow.constant([[3.0], [4.0]]), [[11.0]], "float32"),
        (lambda: ow.constant([1.0]) + np.int64(2), [3.0], "float32"),
        (lambda: I + True, [8, -6, 3], "int32"),
    ],
)
def test_values_and_dtypes(found, wanted, dtype):
    result = found()
    assert result.dtype == dtype
    assert result.numpy().tolist() == wanted


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: F + I, "differ in dtype"),
        (lambda: F + ow.constant(1.0, ow.float64), "differ in dtype"),
        (lambda: F == I, "differ in dtype"),
        (lambda: F / I, "same dtype"),
        (lambda: I == 2.5, "2.5"),
        (lambda: I != "a", "a"),
        (lambda: ow.Variable(1) == 2.5, "2.5"),
        (lambda: F < I, "differ in dtype"),
        (lambda: I + 2.5, "2.5"),
        (lambda: 2.5 + I, "2.5"),
        (lambda: 2.0**I, "2.0"),
        (lambda: F + 1j, "1j"),
        (lambda: F + "a", "a"),
        (lambda: I + 2**40, "1099511627776"),
        (lambda: ow.constant(1, ow.uint8) + 300, "300"),
        (lambda: F + None, "missing"),
        (lambda: F + object(), "object"),
        (lambda: -ow.constant(1, ow.uint8), "uint8"),
        (lambda: F & 1, "float32"),
        (lambda: ~F, "float32"),
        (lambda: I // 0, "Integer division by zero"),
        (lambda: I % 0, "Integer division by zero"),
        (lambda: I**-1, "negative integer powers"),
        (lambda: F + ow.constant([1.0, 2.0]), r"Incompatible shapes: \[3\] vs. \[2\]"),
        (lambda: F < "a", "a"),
    ],
)
def test_what_is_refused(ask, words):
    with pytest.raises((InvalidArgumentError, TypeError), match=words):
        ask()


def test_equality():
    assert (ow.constant([1, 2]) == ow.constant([1, 3])).numpy().tolist() == [True, False]
    assert (ow.constant([1, 2]) == [1, 3]).numpy().tolist() == [True, False]
    assert (ow.constant([1, 2]) != [1, 3]).numpy().tolist() == [False, True]
    assert (ow.constant(1) == None) is False  # noqa: E711
    assert (ow.constant(1) != None) is True  # noqa: E711
    assert not bool(ow.constant([1, 2]) == ow.constant([1, 2, 3]))
    assert bool(ow.constant([1, 2]) != ow.constant([1, 2, 3]))
    assert ow.constant(1) in [ow.constant(2), ow.constant(1)]
    nan = ow.constant(float("nan"))
    assert not bool(nan == nan)


def test_another_class_may_know_better():
    class Knows:
        def __radd__(self, other):
            return "mine"

    assert F + Knows() == "mine"
    with pytest.raises(TypeError):
        divmod(I, 2)
    with pytest.raises(TypeError):
        F << 1


def test_python_statements():
    x = ow.constant(1.0)
    x += 2
    x *= ow.constant(2.0)
    assert x.numpy() == 6
    assert sum([ow.constant(1), ow.constant(2)]).numpy() == 3
    assert max(ow.constant(1), ow.constant(2)).numpy() == 2
    assert sorted([ow.constant(2), ow.constant(1)])[0].numpy() == 1
