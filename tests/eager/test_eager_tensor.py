"""Eager tensors: how they print, speak NumPy and DLPack, count, index and turn into Python values."""

import copy
import pickle

import ml_dtypes
import numpy as np
import pytest

import opwright as ow

PRINTED = [  # value, dtype, repr, str: as TensorFlow 2.21 with NumPy 2 prints them
    (1.5, None, "<tf.Tensor: shape=(), dtype=float32, numpy=1.5>", "tf.Tensor(1.5, shape=(), dtype=float32)"),
    (1, None, "<tf.Tensor: shape=(), dtype=int32, numpy=1>", "tf.Tensor(1, shape=(), dtype=int32)"),
    (True, None, "<tf.Tensor: shape=(), dtype=bool, numpy=True>", "tf.Tensor(True, shape=(), dtype=bool)"),
    (
        "héllo",
        None,
        r"<tf.Tensor: shape=(), dtype=string, numpy=b'h\xc3\xa9llo'>",
        r"tf.Tensor(b'h\xc3\xa9llo', shape=(), dtype=string)",
    ),
    (
        b'\x00"',
        None,
        r"""<tf.Tensor: shape=(), dtype=string, numpy=b'\x00"'>""",
        r"""tf.Tensor(b'\x00"', shape=(), dtype=string)""",
    ),
    (
        1e-10,
        None,
        "<tf.Tensor: shape=(), dtype=float32, numpy=1.000000013351432e-10>",
        "tf.Tensor(1e-10, shape=(), dtype=float32)",
    ),
    (float("nan"), None, "<tf.Tensor: shape=(), dtype=float32, numpy=nan>", "tf.Tensor(nan, shape=(), dtype=float32)"),
    (
        1 + 2j,
        None,
        "<tf.Tensor: shape=(), dtype=complex128, numpy=(1+2j)>",
        "tf.Tensor((1+2j), shape=(), dtype=complex128)",
    ),
    (
        0.1,
        None,
        "<tf.Tensor: shape=(), dtype=float32, numpy=0.10000000149011612>",
        "tf.Tensor(0.1, shape=(), dtype=float32)",
    ),
    (0.1, "float64", "<tf.Tensor: shape=(), dtype=float64, numpy=0.1>", "tf.Tensor(0.1, shape=(), dtype=float64)"),
    (
        0.1,
        "float16",
        "<tf.Tensor: shape=(), dtype=float16, numpy=0.0999755859375>",
        "tf.Tensor(0.1, shape=(), dtype=float16)",
    ),
    (
        0.1,
        "bfloat16",
        "<tf.Tensor: shape=(), dtype=bfloat16, numpy=0.10009765625>",
        "tf.Tensor(0.100098, shape=(), dtype=bfloat16)",
    ),
    (
        [1.0, 2.5],
        None,
        "<tf.Tensor: shape=(2,), dtype=float32, numpy=array([1. , 2.5], dtype=float32)>",
        "tf.Tensor([1.  2.5], shape=(2,), dtype=float32)",
    ),
    (
        [1, 2],
        None,
        "<tf.Tensor: shape=(2,), dtype=int32, numpy=array([1, 2], dtype=int32)>",
        "tf.Tensor([1 2], shape=(2,), dtype=int32)",
    ),
    (
        [1, 2],
        "int64",
        "<tf.Tensor: shape=(2,), dtype=int64, numpy=array([1, 2])>",
        "tf.Tensor([1 2], shape=(2,), dtype=int64)",
    ),
    (
        [True, False],
        None,
        "<tf.Tensor: shape=(2,), dtype=bool, numpy=array([ True, False])>",
        "tf.Tensor([ True False], shape=(2,), dtype=bool)",
    ),
    (
        ["a", "bc"],
        None,
        "<tf.Tensor: shape=(2,), dtype=string, numpy=array([b'a', b'bc'], dtype=object)>",
        "tf.Tensor([b'a' b'bc'], shape=(2,), dtype=string)",
    ),
    (
        [[1.0, 2.0], [3.0, 4.0]],
        None,
        "<tf.Tensor: shape=(2, 2), dtype=float32, numpy=\narray([[1., 2.],\n       [3., 4.]], dtype=float32)>",
        "tf.Tensor(\n[[1. 2.]\n [3. 4.]], shape=(2, 2), dtype=float32)",
    ),
    (
        [["a"], ["b"]],
        None,
        "<tf.Tensor: shape=(2, 1), dtype=string, numpy=\narray([[b'a'],\n       [b'b']], dtype=object)>",
        "tf.Tensor(\n[[b'a']\n [b'b']], shape=(2, 1), dtype=string)",
    ),
    (
        [1.0, 2.5],
        "bfloat16",
        "<tf.Tensor: shape=(2,), dtype=bfloat16, numpy=array([1, 2.5], dtype=bfloat16)>",
        "tf.Tensor([1 2.5], shape=(2,), dtype=bfloat16)",
    ),
    (
        [],
        None,
        "<tf.Tensor: shape=(0,), dtype=float32, numpy=array([], dtype=float32)>",
        "tf.Tensor([], shape=(0,), dtype=float32)",
    ),
    (
        [1 + 2j],
        None,
        "<tf.Tensor: shape=(1,), dtype=complex128, numpy=array([1.+2.j])>",
        "tf.Tensor([1.+2.j], shape=(1,), dtype=complex128)",
    ),
    (
        [[], []],
        None,
        "<tf.Tensor: shape=(2, 0), dtype=float32, numpy=array([], shape=(2, 0), dtype=float32)>",
        "tf.Tensor([], shape=(2, 0), dtype=float32)",
    ),
]


@pytest.mark.parametrize(("value", "dtype", "shown", "text"), PRINTED, ids=[f"{p[0]}-{p[1]}" for p in PRINTED])
def test_printing(value, dtype, shown, text):
    x = ow.constant(value, dtype)
    assert repr(x) == shown
    assert str(x) == text


def test_formatting_is_that_of_the_value():
    assert f"{ow.constant(1.5):.3f}" == "1.500"
    assert f"{ow.constant(1.5)}" == "1.5"
    assert f"{ow.constant([1, 2])}" == "[1 2]"
    assert f"{ow.constant(7):>3d}|" == "  7|"


# ---- making -----------------------------------------------------------------------------------------------------

NATURAL = [  # what `constant(value)` is, without a dtype
    (1, "int32"),
    (2**31 - 1, "int32"),
    (2**31, "int64"),
    (-(2**31) - 1, "int64"),
    (1.0, "float32"),
    (True, "bool"),
    (1j, "complex128"),
    ("a", "string"),
    (b"a", "string"),
    ([], "float32"),
    ([1, 2.0], "float32"),
    ([2**40, 1], "int64"),
    ([1, True], "int32"),
    ([np.float64(1), 2], "float64"),
    ([np.float16(1)], "float16"),
    ([np.array([1.0]), np.array([2.0])], "float64"),
    (np.float64(1), "float64"),
    (np.int8(1), "int8"),
    (np.bool_(True), "bool"),
    (np.array([1.0]), "float64"),
    (np.array([1], ">i4"), "int32"),
    (np.array(["a"]), "string"),
    (np.array([b"a"]), "string"),
    (np.zeros(2, ml_dtypes.bfloat16), "bfloat16"),
    (range(3), "int32"),
    (range(2**31, 2**31 + 2), "int64"),
    (((1, 2), [3, 4]), "int32"),
]


@pytest.mark.parametrize(("value", "dtype"), NATURAL, ids=repr)
def test_natural_dtypes(value, dtype):
    assert ow.constant(value).dtype == dtype
    assert ow.convert_to_tensor(value).dtype == dtype


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: ow.constant(None), ValueError, "None"),
        (lambda: ow.constant([None]), (TypeError, ValueError), "None"),
        (lambda: ow.constant(object()), (TypeError, ValueError), "object"),
        (lambda: ow.constant({}), (TypeError, ValueError), "{}"),
        (lambda: ow.constant([300], ow.uint8), TypeError, "uint8"),
        (lambda: ow.constant(np.array(["1"]), ow.int32), TypeError, "string.*int32"),
        (lambda: ow.constant([[1], [1, 2]]), ValueError, "non-rectangular"),
        (lambda: ow.constant([1, [2]]), ValueError, "non-rectangular"),
        (lambda: ow.constant([True, 1]), ValueError, "mixed types"),
        (lambda: ow.constant([1, "a"]), ValueError, "mixed types"),
        (lambda: ow.constant(["a", 1.0]), ValueError, "mixed types"),
        (lambda: ow.constant(2**63), (TypeError, ValueError), "9223372036854775808"),
        (lambda: ow.constant(1.5, ow.int32), TypeError, "1.5"),
        (lambda: ow.constant([1.0], ow.int32), TypeError, "int32"),
        (lambda: ow.constant("a", ow.float32), TypeError, "'a'"),
        (lambda: ow.constant(1, ow.string), TypeError, "string"),
        (lambda: ow.constant(1, ow.bool), TypeError, "bool"),
        (lambda: ow.constant(300, ow.uint8), TypeError, "300"),
        (lambda: ow.constant(-1, ow.uint8), TypeError, "-1"),
        (lambda: ow.constant([300], ow.uint8), TypeError, "300"),
        (lambda: ow.constant(2**40, ow.int32), TypeError, "1099511627776"),
        (lambda: ow.constant(1j, ow.float32), TypeError, "float32"),
        (lambda: ow.constant([1, 2, 3], shape=[2]), TypeError, "3 elements"),
        (lambda: ow.constant(1, "float33"), TypeError, "float33"),
        (lambda: ow.constant(np.array("2020", "M8[D]")), TypeError, "datetime64"),
        (lambda: ow.convert_to_tensor(ow.constant(1), ow.float32), ValueError, "float32.*int32"),
        (lambda: ow.convert_to_tensor(1.5, ow.int32), TypeError, "1.5"),
    ],
)
def test_values_that_are_no_tensor(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_dtype_and_shape_of_constants():
    assert ow.constant(1, ow.float64).numpy() == np.float64(1)
    assert ow.constant(3, "int8", shape=[2, 2]).numpy().tolist() == [[3, 3], [3, 3]]
    assert ow.constant([1, 2, 3, 4], shape=(2, 2)).numpy().tolist() == [[1, 2], [3, 4]]
    assert ow.constant(5.0, shape=[0]).shape == [0]
    assert ow.constant([1, 2], ow.complex64).dtype == ow.complex64
    assert ow.constant([True, False], ow.int32).numpy().tolist() == [1, 0]
    assert ow.constant(np.array([3]), ow.uint8).dtype == ow.uint8
    assert ow.constant(ow.constant([1, 2])).numpy().tolist() == [1, 2]
    assert ow.constant([ow.constant(1), 2]).numpy().tolist() == [1, 2]
    assert ow.constant([ow.Variable(1.5), 2]).numpy().tolist() == [1.5, 2]


def test_hints_are_taken_where_they_can_be():
    assert ow.convert_to_tensor(1, dtype_hint=ow.float32).dtype == ow.float32
    assert ow.convert_to_tensor("a", dtype_hint=ow.float32).dtype == ow.string
    assert ow.convert_to_tensor(ow.constant(1), dtype_hint=ow.float32).dtype == ow.int32


def test_tensors_go_through_as_they_are():
    x = ow.constant([1.0])
    assert ow.convert_to_tensor(x) is x
    assert ow.convert_to_tensor(x, ow.float32) is x


# ---- what is a tensor, and what is known of it ----------------------------------------------------------------------


def test_is_tensor():
    slices = ow.IndexedSlices(ow.ones([1, 2]), ow.constant([0]))
    assert all(map(ow.is_tensor, (ow.constant(1), ow.Variable(1.0), slices)))
    assert not any(map(ow.is_tensor, (1, None, [ow.constant(1)], np.ones(2), ow.TensorSpec([2]))))
    assert ow.function(lambda x: ow.is_tensor(x))(ow.constant(1.0)).numpy()


def test_static_values():
    assert ow.get_static_value(ow.constant([1, 2])).tolist() == [1, 2]
    assert ow.get_static_value(ow.constant(3)) == 3
    assert ow.get_static_value(4) == 4
    assert ow.get_static_value(ow.Variable(1.0)) is None
    seen = []

    @ow.function
    def f(x):
        seen.extend(map(ow.get_static_value, (x, ow.constant(5), x + 1.0)))
        return x

    f(ow.constant(1.0))
    assert seen == [None, 5, None]


# ---- NumPy ------------------------------------------------------------------------------------------------------


def test_values_are_copied_in_and_out():
    mine = np.array([1.0, 2.0])
    x = ow.constant(mine)
    mine[0] = 9
    assert x.numpy().tolist() == [1, 2]
    x.numpy()[0] = 9
    assert x.numpy().tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(x)[0] = 9
    np.array(x)[0] = 9
    assert x.numpy().tolist() == [1, 2]


def test_the_array_protocol():
    x = ow.constant([[1.0, 2.0]])
    assert np.asarray(x).dtype == np.float32
    assert np.asarray(x, np.float64).dtype == np.float64
    assert np.array(x, copy=True).tolist() == [[1, 2]]
    assert np.shares_memory(np.asarray(x), np.asarray(x))
    with pytest.raises(ValueError, match="copy"):
        np.asarray(x, np.float64, copy=False)
    assert np.sum(np.asarray(x)) == 3
    assert np.float32(3) == ow.constant(3.0).numpy()
    assert type(ow.constant(3.0).numpy()) is np.float32
    assert ow.constant("a").numpy() == b"a"
    assert ow.constant([1, 2]).tolist() == [1, 2]
    assert ow.constant(2).tolist() == 2


def test_numpy_leaves_operators_to_tensors():
    x, a = ow.constant([1.0, 2.0]), np.float32([3, 4])
    for result in (a + x, x + a, a * x, np.float32(2) * x, a < x):
        assert isinstance(result, ow.Tensor)


def test_numpy_functions_take_tensors_as_arrays():
    x = ow.constant([1.0, 4.0])
    assert np.sqrt(x).tolist() == [1, 2]
    assert np.add(x, 1).tolist() == [2, 5]
    assert not np.isnan(x).any()
    assert (np.sum(x), np.max(x), np.mean(ow.Variable([1.0, 4.0]))) == (5, 4, 2.5)


SHARED = ["float16", "float32", "float64", "int8", "uint8", "int32", "int64", "bool", "complex64"]


@pytest.mark.parametrize("dtype", SHARED)
def test_dlpack_both_ways(dtype):
    mine = np.arange(6).reshape(2, 3).astype(dtype)
    x = ow.from_dlpack(mine)
    assert (x.dtype, x.shape) == (dtype, [2, 3])
    assert np.shares_memory(np.asarray(x), mine)
    again = np.from_dlpack(ow.constant(mine))
    assert again.dtype == dtype
    assert (again == mine).all()
    assert x.__dlpack_device__()[0] == 1


def test_dlpack_refusals():
    for wrong in (np.array(["a"]), object(), np.zeros(2, ml_dtypes.bfloat16)):
        with pytest.raises(ow.errors.InvalidArgumentError, match="DLPack"):
            ow.from_dlpack(wrong)


# ---- Python -----------------------------------------------------------------------------------------------------


def test_python_values():
    assert int(ow.constant(2.7)) == 2
    assert float(ow.constant(2)) == 2.0
    assert complex(ow.constant(1.5)) == 1.5
    assert [10, 20, 30][ow.constant(1)] == 20
    assert list(range(ow.constant(3))) == [0, 1, 2]
    assert (len(ow.constant([1, 2])), len(ow.zeros([0, 3]))) == (2, 0)
    assert [x.numpy() for x in ow.constant([1, 2])] == [1, 2]
    assert [x.shape for x in ow.zeros([2, 3])] == [[3], [3]]
    for value, truth in [(1, True), (0, False), ([1], True), ([[0]], False), ([], False), ("", False), ("a", True)]:
        assert bool(ow.constant(value)) is truth


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda: len(ow.constant(1)), TypeError, r"Scalar tensor has no `len\(\)`"),
        (lambda: list(ow.constant(1)), TypeError, "Cannot iterate over a scalar tensor"),
        (lambda: bool(ow.constant([1, 2])), ValueError, r"truth value.*2 elements"),
        (lambda: int(ow.constant([2])), TypeError, r"\(1,\)"),
        (lambda: float(ow.constant([[2.0]])), TypeError, r"\(1, 1\)"),
        (lambda: float(ow.constant("a")), (TypeError, ValueError), "could not convert"),
        (lambda: [1, 2][ow.constant(1.0)], TypeError, "integer tensor"),
        (lambda: [1, 2][ow.constant([1])], TypeError, r"\(1,\)"),
        (lambda: hash(ow.constant(1)), TypeError, "unhashable"),
        (lambda: {ow.constant(1): 1}, TypeError, "unhashable"),
        (lambda: setattr(ow.constant(1), "new", 1), AttributeError, "new"),
        (lambda: ow.constant([1]).__setitem__(0, 1), AttributeError, "__setitem__"),
    ],
)
def test_refusals(ask, error, words):
    with pytest.raises(error, match=words):
        ask()


def test_references_are_by_identity():
    x, y = ow.constant(1), ow.constant(1)
    assert {x.ref(): "x", y.ref(): "y"}[x.ref()] == "x"
    assert x.ref() == x.ref() != y.ref()
    assert x.ref().deref() is x
    assert "tf.Tensor" in repr(x.ref())


def test_what_a_tensor_tells():
    x = ow.zeros([2, 3], ow.float16)
    assert (x.dtype, x.shape, x.rank, x.ndim, x.get_shape()) == (ow.float16, [2, 3], 2, 2, [2, 3])
    assert isinstance(x.shape, ow.TensorShape)
    assert x.spec == ow.TensorSpec([2, 3], ow.float16)
    assert x.device.endswith("CPU:0")
    assert isinstance(x, ow.Tensor)


def test_copies():
    x = ow.constant([1.0, 2.0])
    assert copy.copy(x) is x
    assert copy.deepcopy([x])[0] is x  # nobody can change it
    again = pickle.loads(pickle.dumps(ow.constant(["a", "b"])))
    assert again.numpy().tolist() == [b"a", b"b"]
    assert pickle.loads(pickle.dumps(ow.constant(0.1, ow.bfloat16))).dtype == ow.bfloat16


# ---- indexing ---------------------------------------------------------------------------------------------------

INDICES = [
    0,
    -1,
    slice(None),
    slice(1, 100),
    slice(None, None, -2),
    slice(2, 0, -1),
    None,
    ...,
    (0, 1),
    (..., 0),
    (0, ..., -1),
    (slice(1), 1),
    (None, 0),
    (slice(None), None, slice(None, None, -1)),
    (1, slice(0, 0)),
    (),
    (0, 1, 2),
]


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_basic_indexing_is_numpys(index):
    array = np.arange(24).reshape(2, 3, 4)
    expected = array[index]
    for actual in (ow.constant(array)[index], ow.Variable(array)[index]):
        assert actual.shape == expected.shape
        assert (actual.numpy() == expected).all()


def test_indexing_by_tensors():
    x = ow.constant([1, 2, 3])
    assert x[ow.constant(1)].numpy() == 2
    assert x[ow.constant(1) :].numpy().tolist() == [2, 3]
    assert x[ow.constant([True, False, True])].numpy().tolist() == [1, 3]
    assert x[np.array([True, False, True])].numpy().tolist() == [1, 3]
    assert ow.constant([[1, 2], [3, 4]])[ow.constant(1), 0].numpy() == 3


@pytest.mark.parametrize(
    ("index", "error", "words"),
    [
        (5, ow.errors.InvalidArgumentError, "slice index 5 of dimension 0 out of bounds"),
        (-4, ow.errors.InvalidArgumentError, "of dimension 0 out of bounds"),
        (1.5, TypeError, "1.5"),
        ("a", TypeError, "'a'"),
        (slice(None, None, 0), ow.errors.InvalidArgumentError, "must be non-zero"),
        ((0, 0), ow.errors.InvalidArgumentError, "1 dims"),
    ],
    ids=repr,
)
def test_wrong_indices(index, error, words):
    with pytest.raises(error, match=words):
        ow.constant([1, 2, 3])[index]


def test_scalars_have_no_elements():
    with pytest.raises(ow.errors.InvalidArgumentError):
        ow.constant(3)[0]


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: ow.constant(ow.constant([1, 2]), ow.float32), TypeError, r"float32, found i32\[2\]"),
        (lambda: ow.constant({"a": 1}), ValueError, "unsupported type"),
        (lambda: ow.constant([None]), ValueError, "unsupported type"),
        (lambda: ow.constant(object()), ValueError, "unsupported type"),
        (lambda: ow.convert_to_tensor(ow.TensorShape([None, 3])), ValueError, "partially known"),
        (lambda: ow.constant([1, 2]).set_shape([3]), ValueError, "not compatible"),
    ],
)
def test_what_is_no_tensor(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_shapes_become_int32():
    assert ow.convert_to_tensor(ow.TensorShape([2, 3])).dtype == "int32"
    assert ow.convert_to_tensor(ow.TensorShape([])).dtype == "int32"
    assert ow.convert_to_tensor(ow.TensorShape([2]), ow.int64).dtype == "int64"
