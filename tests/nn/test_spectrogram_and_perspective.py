"""STFTSpectrogram against NumPy's transforms, RandomPerspective by its corners, and layers' arguments and batches."""

import numpy as np
import pytest

import opwright as ow
from opwright import keras

SIGNAL = np.random.default_rng(0).normal(size=(2, 100, 3)).astype("f")


@pytest.mark.parametrize("mode", ["log", "magnitude", "psd", "real", "imag", "angle", "stft"])
def test_spectra_are_numpys(mode):
    window = np.hamming(17)[:-1] / np.sqrt(np.sum(np.hamming(17)[:-1] ** 2))
    starts = range(0, 100 - 16 + 1, 6)
    frames = np.stack([SIGNAL[:, i : i + 16].transpose(0, 2, 1) for i in starts], 1).astype(np.float64)
    z = np.fft.rfft(frames * window, 32).transpose(0, 1, 3, 2)  # [batch, frames, bins, channels]
    power = np.abs(z) ** 2
    both = np.concatenate([power[:, :, :1], 2 * power[:, :, 1:-1], power[:, :, -1:]], 2)
    magnitude = np.sqrt(np.maximum(power, 1e-7))
    values = {"log": np.log(magnitude), "magnitude": magnitude, "psd": both, "real": z.real, "imag": z.imag}
    expected = {**values, "angle": np.angle(z), "stft": np.concatenate([z.real, z.imag], 2)}[mode]
    options = {"frame_length": 16, "frame_step": 6, "fft_length": 32, "window": "hamming", "periodic": True}
    layer = keras.layers.STFTSpectrogram(mode, expand_dims=True, **options)
    spectra = np.asarray(layer(SIGNAL))
    if mode == "angle":  # -pi is pi, and parts of ends are noise around 0
        spectra, expected = np.cos(spectra[:, :, 1:-1]), np.cos(expected[:, :, 1:-1])
    np.testing.assert_allclose(spectra, expected, atol=2e-3 if mode == "log" else 2e-5)
    first = keras.layers.STFTSpectrogram(mode, data_format="channels_first", padding="same", **options)
    channels_first = SIGNAL.transpose(0, 2, 1)
    assert tuple(first(channels_first).shape) == first.compute_output_shape(channels_first.shape)
    assert type(first).from_config(first.get_config()).get_config() == first.get_config()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"mode": "power"}, "Output mode"),
        ({"frame_step": 300}, "frame_step"),
        ({"fft_length": 128}, "fft_length"),
        ({"window": "unknown"}, "Unknown window"),
        ({"scaling": "l2"}, "Scaling"),
    ],
    ids=str,
)
def test_arguments_of_spectrograms_are_checked(arguments, text):
    with pytest.raises(ValueError, match=text):
        keras.layers.STFTSpectrogram(**arguments)


def test_corners_of_images_move_to_the_points_drawn():
    images = np.random.default_rng(0).uniform(0, 255, size=(2, 9, 8, 3)).astype("f")
    layer = keras.layers.RandomPerspective((1.0, 1.0), 0.5, fill_value=3.0)
    start = np.array([[[0, 0], [7, 0], [0, 8], [7, 8]]] * 2, "f")
    end = np.array([[[0, 0], [6, 0], [0, 7], [6, 7]]] * 2, "f")
    moved = {"apply_perspective": np.array([True, False]), "start_points": start, "end_points": end}
    y = np.asarray(layer.transform_images(images, moved))
    np.testing.assert_array_equal(y[1], images[1])
    for (column, row), (new_column, new_row) in zip(start[0].astype(int), end[0].astype(int)):
        np.testing.assert_allclose(y[0, new_row, new_column], images[0, row, column], atol=0.05)
    np.testing.assert_allclose(y[0, 8, 7], 3.0)
    (mapped,) = ow.data.Dataset.from_tensors(images[0]).map(lambda x: layer(x, training=True))
    assert np.abs(mapped - images[0]).max() > 1
    np.testing.assert_array_equal(layer(images, training=False), images)
    with pytest.raises(ValueError, match="scale"):
        keras.layers.RandomPerspective(scale=2.0)


def test_layers_of_16_bits_take_inputs_beyond_their_range():
    x = np.full((2, 4, 8), 70000.0, "f")
    for layer in (
        keras.layers.GroupNormalization(2, dtype="mixed_float16"),
        keras.layers.LayerNormalization(dtype="mixed_float16"),
    ):
        np.testing.assert_array_equal(layer(x), np.zeros_like(x))
    images = np.random.default_rng(1).uniform(0, 255, (2, 6, 6, 3)).astype("f")
    for augmentation in (
        keras.layers.RandAugment(dtype="mixed_float16"),
        keras.layers.RandomColorJitter(brightness_factor=0.2, hue_factor=0.2, dtype="mixed_float16"),
    ):
        assert augmentation(images, training=True).dtype == "float16"


def test_batches_and_arrays_of_preprocessing():
    x = np.random.default_rng(2).normal(3.0, 2.0, (24, 3)).astype("f")
    layer = keras.layers.Normalization()
    layer.adapt([(x[i : i + 8], np.zeros(8)) for i in range(0, 24, 8)])
    np.testing.assert_allclose(np.asarray(layer(x)).mean(0), 0, atol=1e-5)
    for empty in [], iter(()):
        with pytest.raises(ValueError, match="empty iterable"):
            keras.layers.Normalization().adapt(empty)
    with pytest.raises(ValueError, match="incompatible shapes"):
        keras.layers.Normalization().adapt(iter([x, x[:, :2]]))
    scaled = keras.layers.Rescaling(np.array([1.0, 2.0, 4.0]), np.array(0.5))
    again = keras.layers.Rescaling.from_config(scaled.get_config())
    np.testing.assert_allclose(again(x), x * [1, 2, 4] + 0.5, rtol=1e-6)
    with pytest.raises(ValueError, match="integer or string"):
        keras.layers.HashedCrossing(10)((np.array([1.0]), np.array([1.0])))


@pytest.mark.parametrize(
    "create",
    [
        lambda: keras.layers.RepeatVector(0),
        lambda: keras.layers.Reshape((-2, 5)),
        lambda: keras.layers.Cropping1D((1,)),
        lambda: keras.layers.ZeroPadding1D((1,)),
        lambda: keras.layers.GroupNormalization(1.5),
    ],
)
def test_sizes_that_are_none_are_refused(create):
    with pytest.raises(ValueError, match=r"Received"):
        create()


def test_a_feature_space_of_known_layers_is_adapted_and_is_read_from_a_file(tmp_path):
    words = keras.layers.TextVectorization(vocabulary=["red", "fox"], output_mode="int", output_sequence_length=2)
    features = {"i": "integer_hashed", "t": keras.utils.FeatureSpace.feature("string", words, "int")}
    space = keras.utils.FeatureSpace(features, output_mode="dict")
    assert tuple(space({"i": [1, 2, 3], "t": ["red", "fox", "a red"]})["t"].shape) == (3, 2)
    simple = keras.utils.FeatureSpace({"f": "float_normalized"})
    simple.adapt(ow.data.Dataset.from_tensor_slices({"f": np.arange(5.0, dtype="f")}))
    simple.save(tmp_path / "space.keras")
    again = keras.models.load_model(tmp_path / "space.keras")
    np.testing.assert_array_equal(again({"f": [3.0]}), simple({"f": [3.0]}))
    simple = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    simple.save(tmp_path / "new" / "folders" / "dense.h5")
    assert (tmp_path / "new" / "folders" / "dense.h5").exists()


def test_initializers_by_arrays_and_by_the_module_of_a_configuration():
    values = np.random.default_rng(3).normal(size=(2, 3)).astype("f")
    for given in values, ow.constant(values):
        np.testing.assert_array_equal(keras.layers.Dense(3, kernel_initializer=given)(np.eye(2, dtype="f")), values)
    config = keras.saving.serialize_keras_object(keras.initializers.Identity(gain=2.0))
    np.testing.assert_array_equal(keras.saving.deserialize_keras_object(config)((2, 2)), 2 * np.eye(2))


@pytest.mark.parametrize("mode", ["caffe", "tf", "torch"])
def test_pictures_with_channels_first_are_prepared_alike(mode):
    prepare = keras.applications.imagenet_utils.preprocess_input
    pictures = np.random.default_rng(4).uniform(0, 255, (2, 4, 5, 3)).astype("f")
    first = pictures.transpose(0, 3, 1, 2)
    expected = prepare(pictures.copy(), mode=mode).transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(prepare(first.copy(), "channels_first", mode), expected)
    np.testing.assert_allclose(prepare(ow.constant(first), "channels_first", mode), expected, rtol=1e-6)


def test_a_list_of_arrays_is_split_along_their_examples():
    inputs, labels = np.arange(20.0).reshape(10, 2), np.arange(10)
    left, right = keras.utils.split_dataset([inputs, labels], left_size=0.8)
    assert [int(y) for _, y in left] + [int(y) for _, y in right] == list(range(10))
    np.testing.assert_array_equal(np.stack([x for x, _ in right]), inputs[8:])
