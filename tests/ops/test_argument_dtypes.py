"""Arguments of other dtypes than the operator computes in: NumPy arrays, lists with tensors, indices of int16, factors.

Lives here: one table a kind of argument, eagerly and traced.  Not here: the operators' own cases (cases_*.py).
Expected values are NumPy's casts, or written out.
"""

import numpy as np
import pytest

ARRAYS = {
    "float64": np.array([1.7, -2.5]),
    "float32": np.array([1.7, -2.5], np.float32),
    "int64": np.array([1, -2]),
    "int64, large": np.array([300, 2**33 + 5]),
    "uint8": np.array([1, 200], np.uint8),
    "bool": np.array([True, False]),
    "a scalar": np.float64(1.7),
    "no dimension": np.array(1.7),
    "none": np.zeros(0),
}
WAYS = {
    "constant": lambda tf, value, dtype: tf.constant(value, dtype),
    "convert_to_tensor": lambda tf, value, dtype: tf.convert_to_tensor(value, dtype),
    "Variable": lambda tf, value, dtype: tf.Variable(value, dtype=dtype).read_value(),
    "constant, traced": lambda tf, value, dtype: tf.function(lambda: tf.constant(value, dtype))(),
    "convert_to_tensor, traced": lambda tf, value, dtype: tf.function(lambda: tf.convert_to_tensor(value, dtype))(),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ARRAYS)
def test_numpy_arrays_are_cast_to_the_wanted_dtype(tf, name, way):
    value = ARRAYS[name]
    for reference in ("int32", "uint8", "float32", "bool"):
        actual = WAYS[way](tf, value, getattr(tf, reference))
        with np.errstate(all="ignore"):
            expected = np.asarray(value).astype(reference)
        assert actual.dtype.name == reference
        np.testing.assert_array_equal(actual.numpy(), expected)


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("name", ["float64", "int64", "int64, large", "a scalar"])
def test_an_array_next_to_a_tensor_takes_its_dtype(tf, name, traced):
    value, x = ARRAYS[name], tf.constant([1, 2])
    cast = np.asarray(value).astype(np.int32)
    forms = {
        "x + a": lambda x: x + value,
        "a + x": lambda x: value + x,
        "add": lambda x: tf.add(x, value),
        "a - x": lambda x: value - x,
        "maximum": lambda x: tf.maximum(x, value),
    }
    expected = {
        "x + a": 1 + cast,
        "a + x": 1 + cast,
        "add": 1 + cast,
        "a - x": cast - 1,
        "maximum": np.maximum(1, cast),
    }
    for form, function in forms.items():
        actual = (tf.function(function) if traced else function)(tf.constant([1, 1]))
        assert actual.dtype == tf.int32
        np.testing.assert_array_equal(actual.numpy(), np.broadcast_to(expected[form], [2]))
    np.testing.assert_array_equal((x > np.array([0.5, 2.5])).numpy(), [True, False])


@pytest.mark.parametrize("traced", [False, True])
def test_an_array_before_a_tensor_keeps_its_kind(tf, traced):
    def function(x):
        return tf.add(np.array([1.5, 2.5]), x)

    with pytest.raises((TypeError, ValueError, tf.errors.InvalidArgumentError)):
        (tf.function(function) if traced else function)(tf.constant([1, 2]))


def test_assigning_an_array_casts_it(tf):
    v = tf.Variable([1, 2])
    v.assign(np.array([1.7, 2.5]))
    np.testing.assert_array_equal(v.numpy(), [1, 2])
    v.assign_add(np.array([1.7, 2.5]))
    np.testing.assert_array_equal(v.numpy(), [2, 4])


def test_an_argument_is_cast_to_the_signature(tf):
    f = tf.function(lambda x: x, input_signature=[tf.TensorSpec([2], tf.int32)])
    np.testing.assert_array_equal(f(np.array([1.7, 2.5])).numpy(), [1, 2])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("value", [1.5, [1.5, 2.0], [np.float64(1.5)], "a"])
def test_pythons_floats_and_text_do_not_become_integers(tf, way, value):
    with pytest.raises((TypeError, ValueError)):
        WAYS[way](tf, value, tf.int32)


IMAGE = np.random.default_rng(0).random((1, 2, 2, 3), np.float32)
PARAMETERS = {  # Python's integers where an operator takes floats alone
    "contrast": (lambda tf, k: tf.image.adjust_contrast(IMAGE, k), 2),
    "saturation": (lambda tf, k: tf.image.adjust_saturation(IMAGE, k), 3),
    "hue": (lambda tf, k: tf.image.adjust_hue(IMAGE, k), 1),
    "fake_quant": (lambda tf, k: tf.quantization.fake_quant_with_min_max_vars(IMAGE, 0, k), 1),
    "boxes": (lambda tf, k: tf.image.crop_and_resize(IMAGE, [[0, 0, k, k]], [0], [2, 2]), 1),
    "colours": (lambda tf, k: tf.image.draw_bounding_boxes(IMAGE, [[[0, 0, k, k]]], [[k, 0, 0]]), 1),
    "scalar_mul": (lambda tf, k: tf.math.scalar_mul(k, IMAGE), 2),
}


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("name", PARAMETERS)
def test_pythons_integers_for_floating_parameters(tf, name, traced):
    function, value = PARAMETERS[name]
    results = [(tf.function(function) if traced else function)(tf, k) for k in (value, float(value))]
    assert results[0].dtype == tf.float32
    np.testing.assert_array_equal(results[0].numpy(), results[1].numpy())


@pytest.mark.parametrize("traced", [False, True])
def test_the_first_operand_keeps_its_kind(tf, traced):
    with pytest.raises((TypeError, ValueError, tf.errors.InvalidArgumentError)):
        (tf.function(tf.sin) if traced else tf.sin)(tf.constant(1))


# ---- lists with tensors ---------------------------------------------------------------------------------------------

LISTS = {
    "concat": (lambda tf, a, b: tf.concat((a, [b]), 0), [1, 2, 3]),
    "concat, first": (lambda tf, a, b: tf.concat(([b], a), 0), [3, 1, 2]),
    "add": (lambda tf, a, b: tf.add(a, [b, b]), [4, 5]),
    "maximum": (lambda tf, a, b: tf.maximum(a, [b, b]), [3, 3]),
    "nested": (lambda tf, a, b: tf.concat((a[None], [[b, b]]), 0), [[1, 2], [3, 3]]),
}


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize(
    "dtypes",
    [("int32", "int64"), ("int64", "int32"), ("float32", "int64"), ("float32", "float64"), ("int32", "float32")],
)
@pytest.mark.parametrize("name", LISTS)
def test_tensors_in_a_list_take_the_dtype_of_the_tensor_next_to_it(tf, name, dtypes, traced):
    function, expected = LISTS[name]
    a, b = tf.cast([1, 2], dtypes[0]), tf.cast(3, dtypes[1])
    call = (lambda a, b: function(tf, a, b)) if not traced else tf.function(lambda a, b: function(tf, a, b))
    actual = call(a, b)
    assert actual.dtype.name == dtypes[0]
    np.testing.assert_array_equal(actual.numpy(), expected)


def test_elements_of_a_range_are_appended_in_a_loop(tf):
    @tf.function
    def f():
        result = tf.constant([], tf.int32)
        for x in tf.data.Dataset.range(3):
            tf.autograph.experimental.set_loop_options(shape_invariants=[(result, tf.TensorShape([None]))])
            result = tf.concat((result, [x]), 0)
        return result

    np.testing.assert_array_equal(f().numpy(), [0, 1, 2])


# ---- indices, factors, strings --------------------------------------------------------------------------------------

INDEXED = {
    "gather": (lambda tf, i: tf.gather([1.0, 2.0], i), [2.0, 1.0]),
    "gather, an axis": (lambda tf, i: tf.gather([[1.0, 2.0]], i, axis=1), [[2.0, 1.0]]),
    "gather, batches": (lambda tf, i: tf.gather([[1.0, 2.0], [3.0, 4.0]], i[:, None], batch_dims=1), [[2.0], [3.0]]),
    "gather_nd": (lambda tf, i: tf.gather_nd([1.0, 2.0], i[:, None]), [2.0, 1.0]),
    "unsorted_segment_sum": (lambda tf, i: tf.math.unsorted_segment_sum([1.0, 2.0], i, 2), [2.0, 1.0]),
    "embedding_lookup": (lambda tf, i: tf.nn.embedding_lookup(tf.constant([[1.0], [2.0]]), i), [[2.0], [1.0]]),
}


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64"])
@pytest.mark.parametrize("name", INDEXED)
def test_indices_of_any_width(tf, name, dtype):
    function, expected = INDEXED[name]
    indices = tf.constant([1, 0], dtype)
    np.testing.assert_array_equal(function(tf, indices).numpy(), expected)
    np.testing.assert_array_equal(tf.function(lambda i: function(tf, i))(indices).numpy(), expected)


@pytest.mark.parametrize(
    ("a", "b", "output", "dtype"),
    [
        ("int8", "uint8", "int32", "int32"),
        ("uint8", "int8", "int32", "int32"),
        ("int8", "int8", "int32", "int32"),
        ("bfloat16", "int8", "bfloat16", "bfloat16"),
        ("uint8", "bfloat16", "bfloat16", "bfloat16"),
        ("bfloat16", "float32", None, "float32"),
        ("float32", "bfloat16", None, "float32"),
    ],
)
def test_factors_of_two_dtypes(tf, a, b, output, dtype):
    x, y = tf.cast([[3, 100], [1, 2]], a), tf.cast([[100, 2], [4, 1]], b)
    actual = tf.matmul(x, y, output_type=None if output is None else getattr(tf, output))
    assert actual.dtype.name == dtype
    expected = np.array([[3, 100], [1, 2]]) @ np.array([[100, 2], [4, 1]])
    np.testing.assert_allclose(tf.cast(actual, tf.float32).numpy(), expected, 2**-8 if dtype == "bfloat16" else 0)


@pytest.mark.parametrize(("a", "b"), [("int32", "float32"), ("int8", "uint8"), ("float32", "float64")])
def test_other_factors_are_refused(tf, a, b):
    with pytest.raises((TypeError, ValueError, tf.errors.InvalidArgumentError)):
        tf.matmul(tf.cast([[1]], a), tf.cast([[1]], b))


def test_strings_are_scattered_and_joined(tf):
    np.testing.assert_array_equal(tf.scatter_nd([[1], [0]], ["a", "b"], [3]).numpy(), [b"b", b"a", b""])
    np.testing.assert_array_equal(tf.scatter_nd([[1], [1]], ["a", "b"], [3]).numpy(), [b"", b"ab", b""])
    rows = tf.scatter_nd([[1], [1]], [["a", "b"], ["c", "d"]], [2, 2])
    np.testing.assert_array_equal(rows.numpy(), [[b"", b""], [b"ac", b"bd"]])


ONE_HOT = {
    "off_value alone": ({"off_value": 0.0}, "float32", [[1, 0], [0, 1]]),
    "on_value alone": ({"on_value": 2.0}, "float32", [[2, 0], [0, 2]]),
    "off_value an integer": ({"off_value": 7}, "int32", [[1, 7], [7, 1]]),
    "both": ({"on_value": 5, "off_value": 3}, "int32", [[5, 3], [3, 5]]),
    "truth values": ({"on_value": True, "off_value": False}, "bool", [[True, False], [False, True]]),
    "text": ({"on_value": "a", "off_value": "b"}, "string", [[b"a", b"b"], [b"b", b"a"]]),
    "an array": ({"on_value": np.float64(1.5)}, "float64", [[1.5, 0], [0, 1.5]]),
    "a dtype": ({"on_value": 1, "off_value": 0, "dtype": "float32"}, "float32", [[1, 0], [0, 1]]),
    "nothing": ({}, "float32", [[1, 0], [0, 1]]),
}


@pytest.mark.parametrize("name", ONE_HOT)
def test_one_hot_takes_the_dtype_of_what_is_there(tf, name):
    arguments, dtype, expected = ONE_HOT[name]
    actual = tf.one_hot([0, 1], 2, **arguments)
    assert actual.dtype.name == dtype
    np.testing.assert_array_equal(actual.numpy(), expected)


@pytest.mark.parametrize(
    "arguments",
    [
        {"on_value": 1.0, "off_value": 0},
        {"on_value": 1, "off_value": 0.0},
        {"on_value": 1.0, "off_value": 0, "dtype": "int32"},
    ],
)
def test_one_hot_of_two_dtypes_is_refused(tf, arguments):
    with pytest.raises(TypeError):
        tf.one_hot([0, 1], 2, **arguments)


@pytest.mark.parametrize(
    ("arr", "expected"), [([1.0, 2.0], [0, 1, 1]), ([], []), ([1.7, 2], [0, 1, 1]), ([True], [0, 1]), ([1, 1], [0, 2])]
)
def test_bincount_casts_what_it_counts(tf, arr, expected):
    actual = tf.math.bincount(arr)
    assert actual.dtype == tf.int32
    np.testing.assert_array_equal(actual.numpy(), expected)
    assert tf.math.bincount(arr, minlength=4).shape == [4]


SATURATED = [
    ([np.inf, -np.inf, 1.5], "float32", "bfloat16", [3.3895313892515355e38, -3.3895313892515355e38, 1.5]),
    ([1e300, 2.0], "float64", "bfloat16", [3.3895313892515355e38, 2.0]),
    ([2**31 - 1, -2], "int32", "bfloat16", [2147483648.0, -2.0]),
    ([200], "uint8", "bfloat16", [200.0]),
    ([1.0], "bfloat16", "bfloat16", [1.0]),
    ([1.0, -2.5], "float32", "complex64", [1, -2.5]),
    ([1e300, -np.inf], "float64", "complex64", [3.4028234663852886e38, -3.4028234663852886e38]),
    ([1e300 + 1e301j, 1 + 2j], "complex128", "complex64", [3.4028234663852886e38 * (1 + 1j), 1 + 2j]),
    ([5, -1], "int32", "complex128", [5, -1]),
    ([300.0, -5.0], "float32", "uint8", [255, 0]),
]


@pytest.mark.parametrize(("value", "dtype", "wanted", "expected"), SATURATED)
def test_saturate_cast(tf, value, dtype, wanted, expected):
    actual = tf.saturate_cast(tf.constant(value, getattr(tf, dtype)), getattr(tf, wanted))
    assert actual.dtype.name == wanted
    widest = tf.complex128 if actual.dtype.is_complex else tf.float64
    np.testing.assert_array_equal(tf.cast(actual, widest).numpy(), expected)


# ---- sums and gradients of sparse rows ------------------------------------------------------------------------------


def test_add_n_of_sparse_rows_is_a_tensor(tf):
    s = tf.IndexedSlices(tf.constant([1.0]), tf.constant([2]), tf.constant([3]))
    for parts, expected in (([s], [0, 0, 1]), ([s, s], [0, 0, 2]), ([s, tf.constant([1.0, 1.0, 1.0])], [1, 1, 2])):
        actual = tf.add_n(parts)
        assert not isinstance(actual, tf.IndexedSlices)
        np.testing.assert_array_equal(actual.numpy(), expected)


def test_the_gradient_of_rows_by_index_vectors_is_sparse(tf):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        rows = tf.gather_nd(x, [[2], [0], [2]])
        elements = tf.gather_nd(x, [[2, 0]])
    gradient = tape.gradient(rows, x)
    assert isinstance(gradient, tf.IndexedSlices)
    np.testing.assert_array_equal(tf.convert_to_tensor(gradient).numpy(), [[1, 1], [0, 0], [2, 2]])
    assert not isinstance(tape.gradient(elements, x), tf.IndexedSlices)


# ---- wrong arguments ------------------------------------------------------------------------------------------------

REFUSED = {
    "a branch's key that is not an integer": (
        TypeError,
        lambda tf: tf.switch_case(tf.constant(0), {1.0: lambda: 1, 0: lambda: 2}),
    ),
    "the real part of text": (TypeError, lambda tf: tf.math.real(tf.constant(["a"]))),
    "the real part of truth values": (TypeError, lambda tf: tf.math.real(tf.constant([True]))),
    "the angle of text": ((TypeError, ValueError), lambda tf: tf.math.angle(tf.constant(["a"]))),
    "substr, pos and len of two shapes": (ValueError, lambda tf: tf.strings.substr(["abc", "abc"], [0, 1], 1)),
    "substr, len alone a vector": (ValueError, lambda tf: tf.strings.substr(["abc", "abc"], 0, [1, 1])),
    "a constraint that cannot be called": (ValueError, lambda tf: tf.Variable(1.0, constraint=0)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_arguments_are_refused(tf, name):
    kinds, call = REFUSED[name]
    kinds = (*(kinds if isinstance(kinds, tuple) else (kinds,)), tf.errors.InvalidArgumentError)
    with pytest.raises(kinds):
        call(tf)


# ---- repeat, einsum -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "repeats"),
    [
        ([None], []),
        ([None], [None]),
        ([None], None),
        (None, []),
        (None, None),
        pytest.param(None, [None], marks=pytest.mark.ours),
    ],
)
def test_repeat_of_unknown_ranks(tf, data, repeats):
    f = tf.function(
        lambda x, r: tf.repeat(x, r, axis=0),
        input_signature=[tf.TensorSpec(data, tf.float32), tf.TensorSpec(repeats, tf.int32)],
    )
    x = tf.constant([1.0, 2.0])
    if repeats != [None]:
        np.testing.assert_array_equal(f(x, tf.constant(2)).numpy(), [1, 1, 2, 2])
    if repeats != []:
        np.testing.assert_array_equal(f(x, tf.constant([2, 3])).numpy(), [1, 1, 2, 2, 2])
        np.testing.assert_array_equal(f(x, tf.constant([0, 1])).numpy(), [2])
        with pytest.raises(tf.errors.InvalidArgumentError):
            f(x, tf.constant([1, 2, 3]))
    if data is None and repeats != []:
        np.testing.assert_array_equal(
            f(tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant([2, 1])).numpy(), [[1, 2], [1, 2], [3, 4]]
        )


def test_repeat_of_a_flat_tensor_of_unknown_rank(tf):
    f = tf.function(lambda x, r: tf.repeat(x, r), input_signature=[tf.TensorSpec(None), tf.TensorSpec(None, tf.int32)])
    np.testing.assert_array_equal(
        f(tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant([2, 1, 0, 1])).numpy(), [1, 1, 2, 4]
    )
    np.testing.assert_array_equal(f(tf.constant(7.0), tf.constant(3)).numpy(), [7, 7, 7])


EINSUMS = [
    ("ij...,jk...->ik...", [3, 2, 1], [2, 4]),
    ("ij...,jk...->ik...", [3, 2], [2, 4, 5]),
    ("ij...,jk...->ik...", [3, 2, 5], [2, 4, 1]),
    ("i...,i...->...", [3], [3, 4]),
    ("ij...,j...->i...", [3, 2, 1, 4], [2, 5, 4]),
    ("b...c,...cd->b...d", [2, 1, 3], [4, 3, 5]),
    ("...ij,...jk->...ik", [1, 3, 2], [5, 2, 4]),
    ("...i,...i->...i", [2, 1, 3], [4, 3]),
    ("ij...,jk->ik...", [3, 2, 4], [2, 5]),
]


@pytest.mark.parametrize(("equation", "left", "right"), EINSUMS)
@pytest.mark.parametrize("known", [True, False])
def test_gradients_of_einsum_where_an_ellipsis_broadcasts(tf, equation, left, right, known):
    """The sum of y * w is bilinear, so its gradient by each factor is found by unit vectors."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=left), rng.normal(size=right)
    w = rng.normal(size=np.einsum(equation, a, b).shape)

    def gradients(a, b):
        with tf.GradientTape() as tape:
            tape.watch([a, b])
            loss = tf.reduce_sum(tf.einsum(equation, a, b) * w)
        return tape.gradient(loss, [a, b])

    if not known:
        gradients = tf.function(gradients, input_signature=[tf.TensorSpec([None] * x.ndim, tf.float64) for x in (a, b)])
    actual = gradients(tf.constant(a), tf.constant(b))
    for k, x in enumerate((a, b)):
        expected = np.zeros(x.size)
        for i in range(x.size):
            unit = np.zeros(x.size)
            unit[i] = 1
            expected[i] = (
                np.einsum(equation, *(unit.reshape(x.shape) if k == j else y for j, y in enumerate((a, b)))) * w
            ).sum()
        np.testing.assert_allclose(actual[k].numpy(), expected.reshape(x.shape), 1e-12, 1e-12)


def test_numbers_and_lists_take_the_dtype_of_an_array(tf):
    matrix = np.array([[1, 2], [3, 4]], np.float32)
    product = tf.linalg.matvec(matrix, [1.0, 2.0])
    np.testing.assert_array_equal(product, np.array([5, 11], np.float32))
    assert product.dtype is tf.float32
    assert tf.scalar_mul(np.float64(0.5), 3).dtype is tf.float64
    assert tf.debugging.assert_same_float_dtype([matrix, tf.constant(1.0)]) is tf.float32
