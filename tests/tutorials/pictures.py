"""Programs on layers that change images: by transformations that are passed; shapes and labels of drawn ones."""

import numpy as np
from tutorial_programs import program


def pixels(batch=3):
    return (np.random.RandomState(0).rand(batch, 8, 7, 3) * 255).astype(np.float32)


def computed(tf, layer, transformation, x=None):
    return layer.transform_images(tf.constant(pixels() if x is None else x), transformation, training=True)


@program
def flips(tf):
    drawn = {"flips": tf.reshape([True, False, True], [3, 1, 1, 1]), "input_shape": (3, 8, 7, 3)}
    modes = "horizontal", "vertical", "horizontal_and_vertical"
    return [computed(tf, tf.keras.layers.RandomFlip(mode), drawn) for mode in modes]


@program
def translations(tf):
    moves = tf.constant([[1.5, -2.25], [0.0, 3.0], [-9.5, 11.0]])
    result = {}
    for fill in ("reflect", "wrap", "constant", "nearest"):
        for interpolation in ("bilinear", "nearest"):
            layer = tf.keras.layers.RandomTranslation(
                0.5, 0.5, fill_mode=fill, interpolation=interpolation, fill_value=7.0
            )
            drawn = {"translations": moves, "input_shape": (3, 8, 7, 3)}
            result[f"{fill} {interpolation}"] = computed(tf, layer, drawn)
    return result


@program
def zooms(tf):
    drawn = {
        "height_zoom": tf.constant([[0.7], [1.25], [1.0]]),
        "width_zoom": tf.constant([[0.9], [1.5], [0.5]]),
        "input_shape": (3, 8, 7, 3),
    }
    return [computed(tf, tf.keras.layers.RandomZoom(0.5, 0.5, fill_mode=f), drawn) for f in ("reflect", "constant")]


@program
def rotations(tf):
    quarter = tf.keras.layers.RandomRotation((0.25, 0.25))
    eighth = tf.keras.layers.RandomRotation((0.125, 0.125), fill_mode="constant", interpolation="nearest")
    slight = tf.keras.layers.RandomRotation((-0.03, -0.03), fill_mode="nearest")
    first = tf.keras.layers.RandomRotation((0.1, 0.1), data_format="channels_first")
    x = pixels()
    return [quarter(x), eighth(x), slight(x), first(np.transpose(x, [0, 3, 1, 2])), quarter(x[0])]


@program
def shears(tf):
    drawn = {"shear_factor": tf.constant([[0.3, 0.0], [0.0, -0.2], [0.25, 0.5]]), "input_shape": (3, 8, 7, 3)}
    return computed(tf, tf.keras.layers.RandomShear(0.5, 0.5), drawn)


@program
def crops(tf):
    layers = tf.keras.layers
    random, center = layers.RandomCrop(4, 5), layers.CenterCrop(4, 5)
    wide = layers.CenterCrop(5, 12)
    return {
        "at a place": computed(tf, random, (2, 1)),
        "outside": random(pixels()[:, :4, :5], training=False),
        "center": [center(pixels()), center(pixels()[0]), center(pixels(), training=False)],
        "larger": wide(pixels()),
        "first": layers.CenterCrop(3, 2, data_format="channels_first")(np.transpose(pixels(), [0, 3, 1, 2])),
    }


@program
def brightness_and_contrast(tf):
    layers = tf.keras.layers
    column = tf.reshape([-40.0, 0.0, 80.0], [3, 1, 1, 1])
    small = pixels() / 255.0
    return {
        "brightness": computed(tf, layers.RandomBrightness(0.5), {"rgb_delta": column}),
        "small": computed(tf, layers.RandomBrightness(0.5, value_range=(0, 1)), {"rgb_delta": column / 255.0}, small),
        "contrast": computed(tf, layers.RandomContrast(0.5), {"contrast_factor": 1.0 + column / 100.0}),
        "fixed": layers.RandomBrightness((0.2, 0.2))(pixels()),
    }


@program
def colors(tf):
    layers = tf.keras.layers
    factor = tf.constant([0.1, -0.3, 0.45])
    share = tf.constant([0.2, 0.5, 0.9])
    small = pixels() / 255.0
    return {
        "hue": computed(tf, layers.RandomHue(0.5), {"factor": factor}),
        "hue of small": computed(tf, layers.RandomHue(0.5, value_range=(0, 1)), {"factor": factor}, small),
        "saturation": computed(tf, layers.RandomSaturation(0.5, value_range=(0, 1)), {"factor": share * 2.0}, small),
        "gray": computed(tf, layers.RandomGrayscale(0.5), tf.reshape([True, False, True], [3, 1, 1, 1])),
        "inverted": computed(tf, layers.RandomInvert(0.5), {"apply_inversion": tf.constant([True, False, True])}),
        "sharpness": computed(tf, layers.RandomSharpness(0.5), {"factor": share}),
        "degeneration": computed(tf, layers.RandomColorDegeneration(0.5), {"factor": tf.reshape(share, [3, 1, 1, 1])}),
        "posterized": computed(
            tf, layers.RandomPosterization(4), {"shift_factor": tf.constant([4, 6, 1], tf.uint8)}, np.floor(pixels())
        ),
        "solarized": computed(
            tf,
            layers.Solarization(0.5, 0.5),
            {
                "additions": tf.reshape([0.0, 20.0, 60.0], [3, 1, 1, 1]),
                "thresholds": tf.reshape([128.0, 200.0, 20.0], [3, 1, 1, 1]),
            },
        ),
        "auto contrast": [layers.AutoContrast()(pixels() * 0.5 + 20), layers.AutoContrast()(np.ones([1, 4, 4, 3]))],
        "equalized": layers.Equalization()(np.floor(pixels(1) * 0.3 + 40)),
        "equalized in few bins": layers.Equalization(bins=16)(np.floor(pixels(1))),
        "blurred": computed(
            tf,
            layers.RandomGaussianBlur(1.0, kernel_size=5),
            {"should_apply_blur": tf.constant([True, False, True]), "blur_factor": tf.constant([0.8, 0.4])},
        ),
    }


@program
def mixtures(tf):
    layers = tf.keras.layers
    labels = tf.one_hot([0, 1, 2], 3)
    mask = np.zeros([3, 8, 7, 3], bool)
    mask[0, 2:5, 1:4], mask[1, :, 5:] = True, True
    order = tf.constant([2, 0, 1])
    mixed = {"mix_weight": tf.constant([0.25, 0.5, 1.0]), "permutation_order": order}
    cut = {
        "permutation_order": order,
        "batch_masks": tf.constant(mask),
        "mix_weight": tf.reshape([0.25, 0.5, 1.0], [3, 1, 1, 1]),
    }
    erased = {
        "apply_erasing": tf.constant([True, False, True]),
        "batch_masks": tf.constant(mask),
        "fill_value": tf.fill([3, 8, 7, 3], 9.0),
    }
    return {
        "mixed": [computed(tf, layers.MixUp(), mixed), layers.MixUp().transform_labels(labels, mixed)],
        "cut": [computed(tf, layers.CutMix(), cut), layers.CutMix().transform_labels(labels, cut)],
        "erased": computed(tf, layers.RandomErasing(), erased),
    }


@program
def outside_of_training(tf):
    layers = tf.keras.layers
    every = [
        layers.RandomFlip(),
        layers.RandomRotation(0.2),
        layers.RandomZoom(0.2),
        layers.RandomTranslation(0.1, 0.1),
        layers.RandomBrightness(0.2),
        layers.RandomContrast(0.2),
        layers.RandomErasing(),
        layers.CutMix(),
        layers.MixUp(),
        layers.RandAugment(),
        layers.RandomColorJitter(brightness_factor=0.2),
    ]
    model = tf.keras.Sequential([tf.keras.Input((8, 7, 3)), *every])
    x = pixels()
    return [float(np.abs(model.predict(x, verbose=0) - x).max())] + [
        layer(x, training=False).shape[0] for layer in every
    ]


@program
def of_pipelines(tf):
    layers = tf.keras.layers
    steps = [layers.RandomFlip(seed=1), layers.RandomRotation(0.1, seed=2), layers.RandomErasing(seed=3)]
    labels, mix = tf.one_hot([0, 1, 2], 3), layers.MixUp(seed=4)
    dataset = tf.data.Dataset.from_tensor_slices((pixels(), labels)).batch(2)

    def changed(x, y):
        for step in steps:
            x = step(x)
        return mix({"images": x, "labels": y})

    parts = list(dataset.map(lambda x, y: (steps[0](x), y)))
    mixed = list(dataset.map(changed))
    return [
        [list(x.shape) for x, _ in parts],
        [[list(part["images"].shape), list(part["labels"].shape)] for part in mixed],
        [np.round(np.sum(part["labels"], -1), 5) for part in mixed],
        [list(spec.shape) for spec in dataset.map(lambda x, y: (steps[1](x), y)).element_spec],
    ]
