"""Boxes of objects in images: formats, overlaps, anchors, and boxes that move with their images; new image layers.

Expected values come from geometry: pixels of a rectangle that is transformed with its box, NumPy in float64, and Keras.
"""

from __future__ import annotations

import numpy as np
import pytest
from opwright.keras.utils import bounding_boxes as bb

import opwright as ow
from opwright import keras

layers = keras.layers
BOXES = np.array([[[2, 1, 5, 3], [6, 4, 9, 8]], [[0, 0, 12, 10], [3, 3, 4, 9]]], np.float32)
HEIGHT, WIDTH = 10, 12
FORMATS = {  # left, top, right, bottom -> numbers
    "yxyx": lambda x, y, x2, y2: (y, x, y2, x2),
    "xywh": lambda x, y, x2, y2: (x, y, x2 - x, y2 - y),
    "center_xywh": lambda x, y, x2, y2: ((x + x2) / 2, (y + y2) / 2, x2 - x, y2 - y),
    "center_yxhw": lambda x, y, x2, y2: ((y + y2) / 2, (x + x2) / 2, y2 - y, x2 - x),
    "rel_xyxy": lambda x, y, x2, y2: (x / WIDTH, y / HEIGHT, x2 / WIDTH, y2 / HEIGHT),
    "rel_yxyx": lambda x, y, x2, y2: (y / HEIGHT, x / WIDTH, y2 / HEIGHT, x2 / WIDTH),
    "rel_xywh": lambda x, y, x2, y2: (x / WIDTH, y / HEIGHT, (x2 - x) / WIDTH, (y2 - y) / HEIGHT),
    "rel_center_xywh": lambda x, y, x2, y2: (
        (x + x2) / 2 / WIDTH,
        (y + y2) / 2 / HEIGHT,
        (x2 - x) / WIDTH,
        (y2 - y) / HEIGHT,
    ),
}


def test_formats():
    for name, numbers in FORMATS.items():
        expected = np.stack(numbers(*np.moveaxis(BOXES.astype(np.float64), -1, 0)), -1)
        converted = bb.convert_format(BOXES, "xyxy", name, HEIGHT, WIDTH)
        np.testing.assert_allclose(converted, expected, rtol=1e-6)
        np.testing.assert_allclose(bb.convert_format(converted, name, "xyxy", HEIGHT, WIDTH), BOXES, atol=1e-5)
    given = {"boxes": BOXES, "labels": [[1, 2], [3, 4]]}
    assert bb.convert_format(given, "xyxy", "XYWH")["labels"] == given["labels"]
    assert given["boxes"] is BOXES
    for arguments, message in (("xyz", "xyxy"), "Invalid source"), (("xyxy", "rel_xyxy"), "must receive `height`"):
        with pytest.raises(ValueError, match=message):
            bb.convert_format(BOXES, *arguments)


def test_overlaps_and_anchors():
    first, second = BOXES[0].astype(np.float64), np.array([[2, 1, 5, 3], [4, 2, 8, 6], [20, 20, 21, 21]], np.float64)

    def area(box):
        return max(box[2] - box[0], 0) * max(box[3] - box[1], 0)

    def shared(a, b):
        return area([*np.maximum(a[:2], b[:2]), *np.minimum(a[2:], b[2:])])

    expected = [[shared(a, b) / (area(a) + area(b) - shared(a, b)) for b in second] for a in first]
    np.testing.assert_allclose(bb.compute_iou(first, second, "xyxy"), expected, atol=1e-6)
    batch = bb.compute_iou(np.stack([first] * 2), second, "xyxy")
    np.testing.assert_allclose(batch, [expected] * 2, atol=1e-6)
    masked = bb.compute_iou(first, np.array([[-1.0] * 4]), "xyxy", use_masking=True, mask_val=-7)
    np.testing.assert_array_equal(masked, [[-7], [-7]])
    np.testing.assert_allclose(bb.compute_ciou(first, first, "xyxy"), [1, 1], atol=1e-5)
    a, b = first[1], second[1]  # by the paper, in float64
    iou = shared(a, b) / (area(a) + area(b) - shared(a, b))
    corners = [*np.minimum(a[:2], b[:2]), *np.maximum(a[2:], b[2:])]
    distance = sum(((a[i] + a[i + 2] - b[i] - b[i + 2]) / 2) ** 2 for i in range(2))
    diagonal = (corners[2] - corners[0]) ** 2 + (corners[3] - corners[1]) ** 2
    v = 4 / np.pi**2 * (np.arctan((b[2] - b[0]) / (b[3] - b[1])) - np.arctan((a[2] - a[0]) / (a[3] - a[1]))) ** 2
    np.testing.assert_allclose(
        bb.compute_ciou(a, b, "xyxy"), iou - distance / diagonal - v**2 / (1 - iou + v), rtol=1e-4
    )
    variance = [0.1, 0.1, 0.2, 0.2]
    deltas = bb.encode_box_to_deltas(second[:2], first, "xyxy", "xyxy", variance=variance)
    sides = second[0, 3] - second[0, 1], second[0, 2] - second[0, 0]
    center = (second[0, 1] + second[0, 3]) / 2, (second[0, 0] + second[0, 2]) / 2
    own = (first[0, 1] + first[0, 3]) / 2, (first[0, 0] + first[0, 2]) / 2
    np.testing.assert_allclose(deltas[0, :2], [(o - c) / s / 0.1 for o, c, s in zip(own, center, sides)], atol=1e-5)
    back = bb.decode_deltas_to_boxes(second[:2], deltas, "xyxy", "xyxy", variance=variance)
    np.testing.assert_allclose(back, first, atol=1e-4)
    with pytest.raises(ValueError, match="length 4"):
        bb.encode_box_to_deltas(second, first, "xyxy", "xyxy", variance=[1, 2])


def test_lists_and_ragged_boxes_become_dense():
    layer = layers.RandomFlip(bounding_box_format="xyxy")
    lists = {"boxes": [[[1, 2, 3, 4]], [[1, 2, 3, 4], [5, 6, 7, 8]]], "labels": [[1], [2, 3]]}
    ragged = {
        "boxes": ow.ragged.constant(lists["boxes"], ragged_rank=1, dtype="float32"),
        "labels": ow.ragged.constant(lists["labels"]),
    }
    images = np.zeros((2, 9, 9, 3), np.float32)
    for boxes in lists, ragged:
        result = layer({"images": images, "bounding_boxes": boxes}, training=False)["bounding_boxes"]
        np.testing.assert_array_equal(result["labels"], [[1, -1], [2, 3]])
        np.testing.assert_array_equal(result["boxes"][0], [[1, 2, 3, 4], [0, 0, 0, 0]])
    with pytest.raises(ValueError, match="bounding_box_format"):
        layers.RandomFlip()({"images": images, "bounding_boxes": lists})
    with pytest.raises(ValueError, match="keys 'boxes' and 'labels'"):
        layer({"images": images, "bounding_boxes": {"boxes": BOXES}})


def scene(boxes, height=32, width=32):
    """Return an image with a rectangle a channel."""
    image = np.zeros((height, width, len(boxes)), np.float32)
    for channel, (x, y, x2, y2) in enumerate(np.asarray(boxes, int)):
        image[y:y2, x:x2, channel] = 255
    return image


def seen(image, channel):
    """Return the box around the bright pixels of a channel; zeros without any."""
    rows, columns = np.nonzero(np.asarray(image)[..., channel] > 100)
    return [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1] if len(rows) else [0, 0, 0, 0]


RECTANGLES = np.array([[4, 6, 14, 12], [18, 16, 28, 30], [12, 12, 20, 20]], np.float32)
MOVES = {
    "flip": (lambda: layers.RandomFlip("horizontal", bounding_box_format="xyxy", seed=3), 0),
    "flips": (lambda: layers.RandomFlip(bounding_box_format="xyxy", seed=5), 0),
    "shift": (lambda: layers.RandomTranslation(0.2, 0.3, "constant", bounding_box_format="xyxy", seed=1), 1),
    "turn": (lambda: layers.RandomRotation((0.25, 0.25), "constant", bounding_box_format="xyxy"), 1),
    "crop": (lambda: layers.RandomCrop(24, 20, bounding_box_format="xyxy", seed=2), 0),
    "middle": (lambda: layers.CenterCrop(20, 24, bounding_box_format="xyxy"), 0),
    "larger": (lambda: layers.CenterCrop(64, 48, bounding_box_format="xyxy"), 2),
    "size": (lambda: layers.Resizing(64, 96, bounding_box_format="xyxy"), 2),
    "padded": (lambda: layers.Resizing(64, 96, pad_to_aspect_ratio=True, bounding_box_format="xyxy"), 2),
    "cropped": (lambda: layers.Resizing(64, 96, crop_to_aspect_ratio=True, bounding_box_format="xyxy"), 2),
    "perspective": (lambda: layers.RandomPerspective(1.0, 0.3, bounding_box_format="xyxy", seed=4), 3),
}


@pytest.mark.parametrize("name", MOVES)
def test_boxes_follow_their_objects(name):
    """A box is where the pixels of its rectangle are, within pixels by which resampling blurs edges."""
    make, tolerance = MOVES[name]
    layer, image = make(), scene(RECTANGLES)
    parts = {"images": image, "bounding_boxes": {"boxes": RECTANGLES, "labels": np.array([0, 1, 2])}}
    for _ in range(2):
        result = layer(parts)
        boxes, labels = (np.asarray(result["bounding_boxes"][key]) for key in ("boxes", "labels"))
        for i in range(3):
            pixels = seen(result["images"], i)
            area = (pixels[2] - pixels[0]) * (pixels[3] - pixels[1])
            if area > 4:  # not lost
                np.testing.assert_allclose(boxes[i], pixels, atol=tolerance + 0.01, err_msg=f"{name} {i}")
                assert labels[i] == i
    batch = {"images": image[None], "bounding_boxes": {"boxes": RECTANGLES[None], "labels": np.array([[0, 1, 2]])}}
    mapped = next(iter(ow.data.Dataset.from_tensors(batch).map(layer)))
    assert mapped["bounding_boxes"]["boxes"].shape == (1, 3, 4)
    assert mapped["images"].shape[-1] == 3


def test_zooms_shears_and_mixtures_of_boxes():
    """Zooms and shears are Keras's numbers, of its tests; labels of mixed images follow their boxes."""
    boxes = {"boxes": np.array([[[2, 1, 4, 3], [6, 4, 8, 6]]], np.float32), "labels": np.array([[1, 2]])}
    shape = (1, 10, 8, 3)
    zoom = layers.RandomZoom(0.5, bounding_box_format="xyxy")
    drawn = {"height_zoom": np.array([[1.9]]), "width_zoom": np.array([[1.9]]), "input_shape": shape}
    expected = [[[2.710526, 2.657895, 3.763158, 3.710526], [4.815789, 4.236842, 5.868421, 5.289474]]]
    np.testing.assert_allclose(zoom.transform_bounding_boxes(boxes, drawn)["boxes"], expected, rtol=1e-5)
    shear = layers.RandomShear(0.5, 0.5, bounding_box_format="xyxy")
    drawn = {"shear_factor": np.array([[1.0, 1.0]]), "input_shape": shape}
    expected = [[[0.0, 0.0, 3.2, 3.5], [1.2, 0.0, 4.8, 4.5]]]
    np.testing.assert_allclose(shear.transform_bounding_boxes(boxes, drawn)["boxes"], expected, atol=1e-5)
    mixed = layers.MixUp(bounding_box_format="xyxy", seed=1)
    images = np.arange(2.0 * 4 * 4).reshape(2, 4, 4, 1)
    pairs = {"boxes": BOXES, "labels": np.array([[1, 2], [3, 4]])}
    result = mixed({"images": images, "bounding_boxes": pairs})["bounding_boxes"]
    assert result["boxes"].shape == (2, 4, 4)
    for row in range(2):
        for box, label in zip(result["boxes"].numpy()[row], result["labels"].numpy()[row]):
            np.testing.assert_array_equal(box, BOXES.reshape(4, 4)[label - 1])
    fixed = layers.MaxNumBoundingBoxes(3, bounding_box_format="xyxy")
    result = fixed({"images": images, "bounding_boxes": pairs})["bounding_boxes"]
    np.testing.assert_array_equal(result["labels"], [[1, 2, -1], [3, 4, -1]])
    np.testing.assert_array_equal(result["boxes"][:, 2], -np.ones((2, 4)))
    with pytest.raises(NotImplementedError, match="cuts through"):
        layers.CutMix(bounding_box_format="xyxy")({"images": images, "bounding_boxes": pairs})


def test_equalization_by_tiles():
    """Pixels are those of the algorithm in float64, by loops."""
    pixels = np.random.default_rng(0).integers(0, 256, (1, 9, 12, 2)).astype(np.float32)
    layer = layers.ContrastLimitedAdaptiveHistogramEqualization(tile_grid_size=(3, 4), clip_limit=2.0)
    tile, expected = (3, 3), np.zeros(pixels.shape)
    for channel in range(2):
        plane = pixels[0, ..., channel].astype(int)
        tables = np.zeros((3, 4, 256))
        for i in range(3):
            for j in range(4):
                counts = np.bincount(plane[3 * i : 3 * i + 3, 3 * j : 3 * j + 3].ravel(), minlength=256).astype(float)
                kept = np.minimum(counts, 2.0 * 9 / 256)
                total = np.cumsum(kept + (counts - kept).sum() / 256)
                tables[i, j] = np.clip((total - total.min()) * 255 / (9 - total.min()), 0, 255)
        for y in range(9):
            for x in range(12):
                places = [(p - t / 2) / t for p, t in zip((y, x), tile)]
                value = 0.0
                for a in (0, 1):
                    for b in (0, 1):
                        low = [int(np.floor(p)) for p in places]
                        share = [p - f if one else 1 - p + f for p, f, one in zip(places, low, (a, b))]
                        at = np.clip(low[0] + a, 0, 2), np.clip(low[1] + b, 0, 3)
                        value += share[0] * share[1] * tables[at][plane[y, x]]
                expected[0, y, x, channel] = value
    np.testing.assert_allclose(layer(pixels), expected, atol=1e-3)
    np.testing.assert_allclose(layer(pixels[0], training=False), expected[0], atol=1e-3)
    small = layers.ContrastLimitedAdaptiveHistogramEqualization((0.0, 1.0), 2.0, (3, 4))(pixels / 255)
    np.testing.assert_allclose(small * 255, expected, atol=0.5)


def test_elastic_transformations_move_images_and_masks_alike():
    images = np.random.default_rng(1).uniform(0, 255, (3, 16, 20, 1)).astype(np.float32)
    layer = layers.RandomElasticTransform((0.6, 0.6), interpolation="nearest", seed=7)
    result = layer({"images": images, "segmentation_masks": images})
    np.testing.assert_array_equal(result["images"], result["segmentation_masks"])
    changed = np.any(np.asarray(result["images"]) != images, (1, 2, 3))
    assert changed.any()
    assert np.isin(np.asarray(result["images"]), images).all()  # nearest pixels of the images
    for calm in layers.RandomElasticTransform(0), layers.RandomElasticTransform(scale=0):
        np.testing.assert_array_equal(calm(images), images)


def test_mixtures_of_chains():
    images = np.random.default_rng(2).uniform(0, 255, (2, 8, 8, 3)).astype(np.float32)
    layer = layers.AugMix(num_chains=2, chain_depth=2, seed=3)
    drawn = layer.get_random_transformation(images)
    mixed = np.zeros(images.shape)
    for weight, steps in zip(drawn["chain_mixing_weights"].numpy(), drawn["chain_transforms"]):
        changed = ow.constant(images)
        for step in steps:
            for name, transformation in step["transforms"].items():
                changed = getattr(layer, name).transform_images(changed, transformation)
        mixed += weight * np.asarray(changed)
    own = float(drawn["weight_sample"])
    expected = np.clip(own * images + (1 - own) * mixed, 0, 255)
    np.testing.assert_allclose(layer.transform_images(ow.constant(images), drawn), expected, rtol=1e-4, atol=1e-3)
    np.testing.assert_array_equal(layer(images, training=False), images)
    traced = ow.function(lambda x: layer(x, training=True))
    first, second = traced(ow.constant(images)).numpy(), traced(ow.constant(images)).numpy()
    assert not np.array_equal(first, second)  # layers are drawn in each call, not once
