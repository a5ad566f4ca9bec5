"""Functions under TensorFlow's names that are composed of operators or run in Python.

Expected values: those of TensorFlow 2.21 for the same arguments, definitions by NumPy where it has no kernel for CPUs.
"""

import json

import numpy as np
import pytest

import opwright as ow

RNG = np.random.default_rng(26)


def parts(x):
    return x.indices.numpy().tolist(), x.values.numpy().tolist(), x.dense_shape.numpy().tolist()


def test_sets_of_rows():
    a, b = [[1, 2, 3], [4, 4, 6]], [[3, 9], [6, 4]]
    assert parts(ow.sets.union(a, b)) == ([[0, 0], [0, 1], [0, 2], [0, 3], [1, 0], [1, 1]], [1, 2, 3, 9, 4, 6], [2, 4])
    assert parts(ow.sets.intersection(a, b)) == ([[0, 0], [1, 0], [1, 1]], [3, 4, 6], [2, 2])
    assert parts(ow.sets.difference(a, b)) == ([[0, 0], [0, 1]], [1, 2], [2, 2])
    assert parts(ow.sets.difference(a, b, aminusb=False)) == ([[0, 0]], [9], [2, 1])
    x = ow.SparseTensor([[0, 0], [0, 1], [2, 0]], [5, 1, 2], [3, 4])
    y = ow.SparseTensor([[0, 0], [1, 0], [2, 1]], [1, 7, 2], [3, 4])
    assert ow.sets.size(x).numpy().tolist() == [2, 0, 1]
    joined = ([[0, 0], [0, 1], [1, 0], [2, 0]], [1, 5, 7, 2], [3, 2])
    assert parts(ow.sets.union(x, y)) == joined
    traced = ow.function(ow.sets.union)(x, y)
    assert parts(traced) == joined
    words = ow.sets.union([["b", "a"]], [["z", "b"]])
    assert words.values.numpy().tolist() == [b"a", b"b", b"z"]
    with pytest.raises(ow.errors.InvalidArgumentError, match="sizes"):
        ow.sets.union([[1]], [[1], [2]])
    with pytest.raises(ow.errors.InvalidArgumentError, match="out of order"):
        ow.sets.size(ow.SparseTensor([[1, 0], [0, 0]], [1, 2], [2, 2]))
    with pytest.raises(ow.errors.InvalidArgumentError, match="integers or strings"):
        ow.sets.union([[1.0]], [[1.0]])


def test_crosses_of_features():
    a = ow.SparseTensor([[0, 0], [0, 1], [1, 0]], ["a", "b", "c"], [2, 2])
    b = ow.SparseTensor([[0, 0], [1, 0], [1, 1]], ["d", "e", "f"], [2, 2])
    places = [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert parts(ow.sparse.cross([a, b], separator="-")) == (places, [b"a-d", b"b-d", b"c-e", b"c-f"], [2, 2])
    numbers = ow.sparse.cross([a, b, [[1, 2], [3, 4]]]).values.numpy().tolist()
    assert numbers[:3] + numbers[-1:] == [b"a_X_d_X_1", b"a_X_d_X_2", b"b_X_d_X_1", b"c_X_f_X_4"]
    assert parts(ow.sparse.cross_hashed([a, b], num_buckets=100))[1] == [82, 54, 41, 68]
    x = ow.ragged.constant([["a"], ["b", "c"], []])
    y = ow.ragged.constant([[1], [-2, 3], [4]])
    rows = [[b"a_X_1"], [b"b_X_-2", b"b_X_3", b"c_X_-2", b"c_X_3"], []]
    assert ow.ragged.cross([x, y]).to_list() == rows
    assert ow.ragged.cross_hashed([x, y], num_buckets=99).to_list() == HASHED
    with pytest.raises(ow.errors.InvalidArgumentError, match="batch dimension"):
        ow.ragged.cross([x, [["a"]]])
    with pytest.raises(ValueError, match="strings or integers"):
        ow.ragged.cross([x, [[1.0], [2.0], [3.0]]])


HASHED = [[88], [96, 52, 56, 48], []]


def test_ragged_rows_filled_and_by_partition():
    filled = ow.ragged_fill_empty_rows([0, 0, 2, 4], [1.0, 2.0, 3.0, 4.0], 6, 9.0)
    assert filled.output_value_rowids.numpy().tolist() == [0, 0, 1, 2, 3, 4, 5]
    assert filled.output_values.numpy().tolist() == [1, 2, 9, 3, 9, 4, 9]
    assert filled.empty_row_indicator.numpy().tolist() == [False, True, False, True, False, True]
    assert filled.reverse_index_map.numpy().tolist() == [0, 1, 3, 5]
    grads = ow.ragged_fill_empty_rows_grad(filled.reverse_index_map, ow.range(7.0))
    assert (grads.d_values.numpy().tolist(), float(grads.d_default_value)) == ([0, 1, 3, 5], 2.0 + 4 + 6)
    unordered = ow.ragged_fill_empty_rows([2, 0, 2], ["a", "b", "c"], 3, "z")
    assert unordered.output_values.numpy().tolist() == [b"b", b"z", b"a", b"c"]
    with pytest.raises(ow.errors.InvalidArgumentError, match="nrows"):
        ow.ragged_fill_empty_rows([5], [1.0], 3, 0.0)
    stacked = ow.ragged.stack_dynamic_partitions(["a", "b", "c", "d", "e"], [3, 0, 2, 2, 3], 5)
    assert stacked.to_list() == [[b"b"], [], [b"c", b"d"], [b"a", b"e"], []]
    assert ow.ragged.stack_dynamic_partitions([[1, 2], [3, 4]], [[1, 0], [1, 1]], 2).to_list() == [[2], [1, 3, 4]]
    assert ow.ragged.stack_dynamic_partitions(5, 1, 3).to_list() == [[], [5], []]
    with pytest.raises(ow.errors.InvalidArgumentError, match="less than num_partitions"):
        ow.ragged.stack_dynamic_partitions([1, 2], [1, 5], 2)


def test_distances_and_fingerprints():
    hypothesis = ow.SparseTensor([[0, 0], [0, 1], [1, 0], [2, 0]], ["a", "b", "c", "z"], [3, 2])
    truth = ow.SparseTensor([[0, 0], [0, 1], [0, 2], [1, 0]], ["a", "x", "b", "c"], [4, 3])
    np.testing.assert_allclose(ow.edit_distance(hypothesis, truth), [1 / 3, 0, np.inf, 0], rtol=1e-6)
    assert ow.edit_distance(hypothesis, truth, normalize=False).numpy().tolist() == [1, 0, 1, 0]
    with pytest.raises(ow.errors.InvalidArgumentError, match="out of range"):
        ow.edit_distance(ow.SparseTensor([[0, 0]], ["a"], [1, 1]), ow.SparseTensor([[-9, 0]], ["a"], [1, 1]))
    with pytest.raises(TypeError, match="Truth"):
        ow.edit_distance(hypothesis, [["a"]])
    assert ow.fingerprint(["abc", ""]).numpy().tolist() == FINGERPRINTS
    assert ow.fingerprint(np.zeros((3, 2), np.int32)).shape == [3, 8]
    assert ow.fingerprint([]).shape == [0, 8]
    with pytest.raises(ow.errors.InvalidArgumentError, match="rank 1"):
        ow.fingerprint("abc")


FINGERPRINTS = [[105, 243, 231, 116, 160, 179, 165, 36], [79, 64, 144, 47, 59, 106, 225, 154]]


@pytest.mark.parametrize("overlapping", [False, True])
@pytest.mark.parametrize("pseudo_random", [False, True])
def test_fractional_pools(pseudo_random, overlapping):
    """Windows are read from the returned sequences; each reduces the image as its definition says."""
    x = RNG.standard_normal((2, 9, 11, 2)).astype(np.float32)
    for pool, reduce in ((ow.nn.fractional_max_pool, np.max), (ow.nn.fractional_avg_pool, np.mean)):
        with ow.GradientTape() as tape:
            image = ow.constant(x)
            tape.watch(image)
            y, rows, columns = pool(image, [1, 1.5, 1.7, 1], pseudo_random, overlapping, seed=3)
        rows, columns = rows.numpy(), columns.numpy()
        assert y.shape == [2, 6, 6, 2]
        for starts, size in ((rows, 9), (columns, 11)):
            assert (starts[0], starts[-1], set(np.diff(starts)) <= {1, 2}) == (0, size, True)
        for i, j in np.ndindex(6, 6):
            window = x[:, rows[i] : rows[i + 1] + overlapping, columns[j] : columns[j + 1] + overlapping]
            np.testing.assert_allclose(y[:, i, j], reduce(window, (1, 2)), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(ow.reduce_sum(tape.gradient(y, image)), 2 * 36 * 2, rtol=1e-5)
    with pytest.raises(ow.errors.InvalidArgumentError, match="pooling_ratio"):
        ow.nn.fractional_max_pool(x, 0.5)


def test_regressions_that_are_monotonic():
    y, segments = ow.nn.isotonic_regression([[3.0, 1.0, 2.0], [1.0, 2.0, 6.0]])
    assert (y.numpy().tolist(), segments.numpy().tolist()) == ([[3, 1.5, 1.5], [3, 3, 3]], [[0, 1, 1], [0, 0, 0]])
    up, _ = ow.nn.isotonic_regression(np.array([[3], [1], [2]]), decreasing=False, axis=0)
    assert (up.numpy().tolist(), up.dtype) == ([[2], [2], [2]], ow.float64)


def test_windows_at_any_place():
    x = np.arange(1.0, 1 + 4 * 5, dtype=np.float32).reshape(1, 4, 5, 1)
    for arguments, corner in (
        (([[0.0, 0.0]], True, True), (1, 1)),
        (([[1.0, -1.0]], True, True), (3, -1)),
        (([[0.5, 0.4]], False, True), (2, 2)),
        (([[1.0, -1.0]], True, False), (3, 1)),
        (([[2.0, 3.0]], False, False), (2, 3)),
    ):
        glimpse = ow.image.extract_glimpse(x, [2, 2], *arguments, noise="zero")[0, ..., 0]
        padded = np.pad(x[0, ..., 0], 2)
        expected = padded[corner[0] + 2 : corner[0] + 4, corner[1] + 2 : corner[1] + 4]
        np.testing.assert_array_equal(glimpse, expected, str(arguments))
    noisy = ow.image.extract_glimpse(x, [8, 8], [[0.0, 0.0]]).numpy()
    assert (noisy.min() >= 1, noisy.max() <= 20, len(np.unique(noisy)) > 40) == (True, True, True)
    volume = np.arange(2 * 3 * 3 * 2, dtype=np.int32).reshape(1, 2, 3, 3, 2)
    patches = ow.extract_volume_patches(volume, [1, 2, 2, 2, 1], [1, 1, 1, 1, 1], "VALID")
    np.testing.assert_array_equal(patches[0, 0, 1, 0], volume[0, :, 1:3, :2].reshape(-1))
    same = ow.extract_volume_patches(volume, [1, 1, 2, 1, 1], [1, 1, 2, 1, 1], "SAME")
    np.testing.assert_array_equal(same[0, 1, 1, 2], [*volume[0, 1, 2, 2], 0, 0])


def test_convolutions_with_holes_by_blocks():
    x, w = RNG.standard_normal((2, 9, 8, 3)).astype("f"), RNG.standard_normal((3, 3, 3, 4)).astype("f")

    def by_blocks(rates, padding):
        return ow.nn.with_space_to_batch(
            x, rates, padding, lambda a, _, p: ow.nn.conv2d(a, w, 1, p), filter_shape=[3, 3]
        )

    for rates, padding in (([2, 2], "VALID"), ([2, 3], "SAME"), ([1, 1], "SAME")):
        direct = ow.nn.conv2d(x, w, 1, padding, dilations=rates)
        np.testing.assert_allclose(by_blocks(rates, padding), direct, rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="filter_shape"):
        ow.nn.with_space_to_batch(x, [2, 2], "SAME", lambda a, _, p: a)
    np.testing.assert_array_equal(
        ow.conv(x, w, [1, 1, 1, 1], "EXPLICIT", [0, 0, 1, 2, 0, 1, 0, 0]),
        ow.nn.conv2d(x, w, 1, [[0, 0], [1, 2], [0, 1], [0, 0]]),
    )
    with ow.GradientTape() as tape:
        image, kernel = ow.constant(x), ow.constant(w)
        tape.watch([image, kernel])
        y = ow.nn.conv2d(image, kernel, 1, "VALID")
    dx, dw = tape.gradient(y, [image, kernel])
    arguments = x, w, ow.ones_like(y), [1, 1, 1, 1], "VALID"
    np.testing.assert_allclose(ow.conv2d_backprop_input_v2(*arguments), dx, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(ow.conv2d_backprop_filter_v2(*arguments), dw, rtol=1e-4, atol=1e-3)
    values, places = ow.approx_top_k([[3.0, 1.0, 4.0]], 2, is_max_k=False)
    assert (values.numpy().tolist(), places.numpy().tolist()) == ([[1, 3]], [[1, 0]])


def test_labels_and_sampled_products():
    labels, indices = ow.nn.ctc_unique_labels([[3, 1, 3, 2, 0], [5, 5, 5, 5, 1]])
    assert (labels.numpy().tolist(), labels.dtype) == ([[3, 1, 2, 0, 0], [5, 1, 0, 0, 0]], ow.int64)
    assert (indices.numpy().tolist(), indices.dtype) == ([[0, 1, 0, 2, 3], [0, 0, 0, 0, 1]], ow.int32)
    m, n = RNG.standard_normal((2, 2, 4)).astype("f"), RNG.standard_normal((2, 4, 3)).astype("f")
    _, values, _ = ow.sparse.sampled_addmm([[0, 0, 1], [1, 1, 2]], [1.0, 2.0], [2, 2, 3], m, n, beta=0.5, alpha=2.0)
    product = m.astype(np.float64) @ n
    np.testing.assert_allclose(values, [0.5 + 2 * product[0, 0, 1], 1 + 2 * product[1, 1, 2]], rtol=1e-5)


def test_rounding_to_symmetric_integers():
    x = np.array([-3.0, -1.01, 0.004, 0.3, 2.9], np.float32)
    with ow.GradientTape(persistent=True) as tape:
        t = ow.constant(x)
        tape.watch(t)
        y = ow.quantization.quantize_and_dequantize_v2(t, -2.0, 1.5, num_bits=4, range_given=True)
        z = ow.quantization.quantize_and_dequantize(t, -2.0, 1.5, num_bits=4, range_given=True)
    np.testing.assert_allclose(y, [-2, -1, 0, 0.25, 1.75], rtol=1e-6)
    assert tape.gradient(y, t).numpy().tolist() == [0, 1, 1, 1, 0]
    assert (z.numpy().tolist(), tape.gradient(z, t).numpy().tolist()) == (y.numpy().tolist(), [1] * 5)
    free = ow.quantization.quantize_and_dequantize_v2(x, 0.0, 0.0, round_mode="HALF_UP", num_bits=3)
    np.testing.assert_allclose(free, np.minimum(np.floor(x / 0.96666664 + 0.5), 3) * 0.96666664, rtol=1e-5)
    g = np.ones(5, np.float32)
    dx, low, high = ow.quantization.fake_quant_with_min_max_vars_gradient(g, x, -2.0, 2.0)
    assert (dx.numpy().tolist(), float(low), float(high)) == ([0, 1, 1, 1, 0], 1, 1)
    assert ow.quantization.fake_quant_with_min_max_args_gradient(g, x, -2.0, 2.0).numpy().tolist() == [0, 1, 1, 1, 0]
    channels = ow.quantization.fake_quant_with_min_max_vars_per_channel_gradient(g[:2], x[:2], [-1.0] * 2, [1.0] * 2)
    assert [v.numpy().tolist() for v in channels] == [[0, 0], [1, 1], [0, 0]]


def test_normal_numbers_between_bounds():
    y = ow.random.stateless_parameterized_truncated_normal(
        [20000, 3], [1, 2], 0.0, 1.0, [-9.0, 0.0, 6.0], [-6.0, 1.0, 9.0]
    ).numpy()
    # means of the truncated distribution: (phi(a) - phi(b)) / (Phi(b) - Phi(a))
    np.testing.assert_allclose(y.mean(0), [-6.158, 0.4599, 6.158], atol=0.01)
    assert ((y >= [-9, 0, 6]) & (y <= [-6, 1, 9])).all()
    states = [ow.random.create_rng_state(seed, "philox").numpy().tolist() for seed in (1, 2**70 + 5, -1, [1, 2])]
    assert states == [[1, 0, 0], [5, 64, 0], [-1, -1, -1], [0, 1, 2]]
    assert ow.random.create_rng_state(7, ow.random.Algorithm.THREEFRY).numpy().tolist() == [7, 0]
    with pytest.raises(ValueError, match="philox"):
        ow.random.create_rng_state(1, "mersenne")


def test_sparse_tensors_and_messages_as_strings():
    x = ow.sparse.from_dense([[1, 0, 2], [0, 0, 0], [0, 5, 0]])
    several = ow.io.serialize_many_sparse(x)
    assert (several.shape, several.numpy()[1, 0]) == ([3, 3], EMPTY_INDICES)
    assert parts(ow.io.deserialize_many_sparse(several, ow.int32)) == parts(x)
    assert ow.io.serialize_sparse(x).numpy()[2] == b'\x08\t\x12\x04\x12\x02\x08\x02"\x10' + b"".join(
        int(n).to_bytes(8, "little") for n in (3, 3)
    )
    content = b'\x08\x07\x12\x04\x12\x02\x08\x02"\x05\x01\x02abc'  # strings as their lengths and bytes
    assert ow.io.parse_tensor(content, ow.string).numpy().tolist() == [b"a", b"bc"]
    with pytest.raises(ow.errors.InvalidArgumentError, match="content"):
        ow.io.parse_tensor(content[:-1].replace(b"\x05", b"\x04"), ow.string)
    with pytest.raises(ow.errors.InvalidArgumentError, match="shape"):
        ow.io.deserialize_many_sparse([["a", "b"]], ow.int32)
    features = {"a": {"int64List": {"value": ["1", 2]}}, "b": {"bytesList": {"value": ["YWI="]}}}
    features["c"] = {"float_list": {"value": [0.5]}}
    message = ow.io.decode_json_example(json.dumps({"features": {"feature": features}}))
    parsed = ow.io.parse_single_example(
        message,
        {
            "a": ow.io.FixedLenFeature([2], ow.int64),
            "b": ow.io.FixedLenFeature([], ow.string),
            "c": ow.io.FixedLenFeature([], ow.float32),
        },
    )
    assert (parsed["a"].numpy().tolist(), parsed["b"].numpy(), float(parsed["c"])) == ([1, 2], b"ab", 0.5)
    for text in ("{", '{"x": 1}', "[" * 100_000, '{"features": {"feature": {"a": {"intList": {}}}}}'):
        with pytest.raises(ow.errors.InvalidArgumentError, match="JSON"):
            ow.io.decode_json_example(text)


EMPTY_INDICES = b"\x08\t\x12\x06\x12\x00\x12\x02\x08\x01"


def test_pictures_in_webp():
    pillow = pytest.importorskip("PIL.Image")
    import io

    pixels, file = np.arange(4 * 5 * 3, dtype=np.uint8).reshape(4, 5, 3), io.BytesIO()
    pillow.fromarray(pixels).save(file, "webp", lossless=True)
    np.testing.assert_array_equal(ow.io.decode_webp(file.getvalue()), pixels[None])
    for contents, channels in ((file.getvalue(), 4), (b"RIFF\x10\0\0\0WEBPVP8L", 0)):
        with pytest.raises(ow.errors.InvalidArgumentError, match=r"channels|decode"):
            ow.image.decode_webp(contents, channels=channels)


def test_second_derivatives_in_functions():
    @ow.function
    def both(x, y):
        return ow.hessians(ow.reduce_sum(x**3) * ow.reduce_sum(y), [x, y])

    of_x, of_y = both(ow.constant([1.0, 2.0]), ow.constant([[1.0], [3.0]]))
    np.testing.assert_allclose(of_x, np.diag([24.0, 48.0]), rtol=1e-6)
    assert of_y.numpy().tolist() == np.zeros((2, 1, 2, 1)).tolist()
    with pytest.raises(RuntimeError, match="eager"):
        ow.hessians(ow.constant(1.0), ow.constant(1.0))


def test_values_of_own_classes():
    class Metres:
        def __init__(self, value):
            self.value = value

    ow.register_tensor_conversion_function(Metres, lambda v, dtype=None, name=None, as_ref=False: NotImplemented, 1)
    ow.register_tensor_conversion_function(
        Metres, lambda v, dtype=None, name=None, as_ref=False: ow.constant(v.value, dtype)
    )
    assert float(ow.constant(2.0) * Metres(1.5)) == 3.0
    assert float(ow.function(lambda: ow.sqrt(Metres(16.0)))()) == 4.0
    with pytest.raises(TypeError, match="numeric"):
        ow.register_tensor_conversion_function(int, lambda *a: a)


def test_dimensions_of_ragged_and_sparse_tensors():
    x = ow.ragged.constant([[[1], [2]], [[3]]])
    assert ow.squeeze(x, [-1]).to_list() == [[1, 2], [3]]
    assert ow.squeeze(ow.ragged.constant([[[1, 2], [3]]]), 0).to_list() == [[1, 2], [3]]
    for axes, error in (([1], ow.errors.InvalidArgumentError), (None, ValueError), ([3], ValueError)):
        with pytest.raises(error, match="squeez"):
            ow.squeeze(x, axes)
    with pytest.raises(ValueError, match="out of bounds"):
        x.merge_dims(0, 3)
    with pytest.raises(TypeError, match="axis must be an int"):
        x.merge_dims({}, 1)
    assert (int(ow.rank(x)), int(ow.size(x))) == (3, 3)
    sparse = ow.sparse.from_dense([[1, 0, 2]])
    assert (ow.shape(sparse).numpy().tolist(), ow.shape(sparse).dtype) == ([1, 3], ow.int32)
    for axis in (2, [0]):
        with pytest.raises(ow.errors.InvalidArgumentError, match="axis should be"):
            ow.sparse.split(sparse, 3, axis)


def test_buckets_of_sparse_elements():
    def element(n):
        return ow.SparseTensor(ow.range(n)[:, None], ow.ones([n], ow.int64), [n])

    lengths = ow.data.Dataset.from_tensor_slices(np.array([1, 4, 2, 5], np.int64))
    batches = lengths.map(element).bucket_by_sequence_length(lambda x: ow.shape(x)[0], [3], [2, 2], no_padding=True)
    assert [b.dense_shape.numpy().tolist() for b in batches] == [[2, 2], [2, 5]]
    padded = lengths.map(lambda n: ow.ones([n])).bucket_by_sequence_length(
        lambda x: ow.shape(x)[0], [3], [2, 2], pad_to_bucket_boundary=True
    )
    with pytest.raises(ow.errors.InvalidArgumentError, match="bucket_boundaries"):
        list(padded)
    with pytest.raises(ValueError, match="empty"):
        ow.data.Dataset.choose_from_datasets([], ow.data.Dataset.from_tensors(1.0))


def test_determinants_of_nan():
    """TensorFlow 2.21; NumPy's are 0."""
    matrices = np.array([[[np.nan, 1], [1, 1]], [[1, 2], [3, 4]]], np.float32)
    np.testing.assert_allclose(ow.linalg.det(matrices), [np.nan, -2], rtol=1e-6)
    sign, logarithm = ow.linalg.slogdet(matrices)
    np.testing.assert_allclose((sign, logarithm), [[np.nan, -1], [np.nan, np.log(2)]], rtol=1e-6)


def test_states_of_generators(tmp_path):
    """State, restart, checkpoints and traced functions, as the guide of random numbers uses them."""
    g = ow.random.Generator.from_seed(1)
    state, first = g.state, g.normal([3]).numpy()
    assert (state.numpy().tolist(), int(g.key), g.algorithm) == ([0, 0, 1], 1, 1)
    g.reset(state)
    np.testing.assert_array_equal(g.normal([3]), first)
    np.testing.assert_array_equal(ow.random.Generator.from_state(state, alg="philox").normal([3]), first)
    np.testing.assert_array_equal(ow.random.Generator.from_key_counter(1, [0, 0], "philox").normal([3]), first)
    assert g.skip(4).numpy().tolist() == [1, 0, 1]
    assert g.state.numpy().tolist() == [5, 0, 1]
    draw = ow.function(lambda: g.normal([3]))
    later = draw().numpy()
    g.reset_from_seed(1)
    np.testing.assert_array_equal(draw(), first)  # a traced function follows
    assert not np.array_equal(later, first)
    copied = ow.random.Generator(copy_from=g)
    np.testing.assert_array_equal(copied.uniform([2]), g.uniform([2]))
    assert set(g.binomial([40], 1.0, 0.5).numpy().tolist()) == {0, 1}
    module = ow.Module()
    module.g = g
    path = ow.train.Checkpoint(m=module).save(f"{tmp_path}/c")
    expected = g.normal([2]).numpy()
    other = ow.Module()
    other.g = ow.random.Generator.from_seed(9)
    ow.train.Checkpoint(m=other).restore(path)
    np.testing.assert_array_equal(other.g.normal([2]), expected)
    with pytest.raises(ValueError, match="from_seed"):
        ow.random.Generator()
    with pytest.raises(ValueError, match="philox"):
        ow.random.Generator.from_seed(1, alg="threefry")


def test_graphs_of_traced_functions(tmp_path):
    with pytest.raises(ValueError, match="trace_on"):
        ow.summary.trace_export("f", step=0)
    writer = ow.summary.create_file_writer(str(tmp_path))
    ow.summary.trace_on()
    ow.function(lambda x: ow.tanh(x))(ow.constant(1.0))
    with writer.as_default():
        ow.summary.trace_export("traced", step=3)
    writer.close()
    written = next(tmp_path.glob("*tfevents*")).read_bytes()
    assert all(part in written for part in (b"traced", b"graph_run_metadata_graph", b"Tanh"))
    ow.summary.trace_on()
    ow.summary.trace_off()
    with pytest.raises(ValueError, match="profiler_outdir"):
        ow.summary.trace_on(profiler=True)
    ow.summary.trace_on(graph=False, profiler=True, profiler_outdir=tmp_path / "p")
    ow.summary.trace_export("profile", step=0)
    assert list((tmp_path / "p").glob("plugins/profile/*/*.trace.json.gz"))


def test_functions_that_average_are_metrics_of_masked_predictions():
    """As the tutorial of translation with attention has them: they leave out padding themselves."""
    layers = ow.keras.layers
    model = ow.keras.Sequential([layers.Embedding(4, 3, mask_zero=True), layers.Dense(4)])

    def masked_share(y_true, y_pred):
        valid = ow.cast(y_true != 0, ow.float32)
        return ow.reduce_sum(valid) / ow.cast(ow.size(y_true), ow.float32)

    loss = ow.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss, metrics=[masked_share])
    ids = np.array([[1, 2, 0], [3, 0, 0]])
    assert model.evaluate(ids, ids, verbose=0, return_dict=True)["masked_share"] == pytest.approx(0.5)
