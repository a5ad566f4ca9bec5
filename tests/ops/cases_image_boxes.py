"""Rows for boxes: cut out of images, drawn on them, left out where they overlap better ones: `ops/image`.

Oracles go pixel by pixel and pair by pair.
"""

from __future__ import annotations

import math

import numpy as np
from harness import bad, case, f16, f32, f64, u8

SHAPE_DEPENDS_ON_DATA = {"NonMaxSuppression", "NonMaxSuppressionWithOverlaps"}  # how many boxes are left


def ints(*n):
    return np.array(n, np.int32)


def number(x, dtype=np.float32):
    return np.array(x, dtype)


# ---- cutting out --------------------------------------------------------------------------------------------------


def cut(image, boxes, owners, size, method="bilinear", extrapolation_value=0.0):
    high, wide = image.shape[1:3]
    out = np.full((len(boxes), *map(int, size), image.shape[3]), float(extrapolation_value))
    for b, p, q in np.ndindex(*out.shape[:3]):
        at = []
        for n, m, k, first, last in ((high, size[0], p, *boxes[b, ::2]), (wide, size[1], q, *boxes[b, 1::2])):
            at.append((first + k * (last - first) / (m - 1) if m > 1 else (first + last) / 2) * (n - 1))
        y, x = at
        if not (0 <= y <= high - 1 and 0 <= x <= wide - 1):
            continue
        one = image[owners[b]].astype(float)
        if method == "nearest":
            out[b, p, q] = one[math.floor(y + 0.5), math.floor(x + 0.5)]
            continue
        total = 0.0
        for i in {math.floor(y), math.ceil(y)}:
            for j in {math.floor(x), math.ceil(x)}:
                total = total + (1 - abs(y - i)) * (1 - abs(x - j)) * one[i, j]
        out[b, p, q] = total
    return out


BOXES = np.array([[0.11, 0.07, 0.83, 0.93], [0.72, 0.21, 0.13, 0.64], [-0.23, 0.33, 0.62, 1.18]])
WHERE = ints(1, 0, 1)

CASES = {
    "CropAndResize": [
        *(case(f64(2, 5, 6, 2), BOXES, WHERE, ints(*size), expect=cut) for size in ((3, 4), (1, 5), (4, 1), (1, 1))),
        case(
            f32(2, 5, 6, 2),
            BOXES.astype(np.float32),
            WHERE,
            ints(3, 2),
            extrapolation_value=-7.0,
            expect=lambda *a: cut(*a, extrapolation_value=-7.0),
        ),
        case(
            f64(2, 5, 6, 2), BOXES, WHERE, ints(3, 4), method="nearest", grad=[0], expect=lambda *a: cut(*a, "nearest")
        ),
        case(u8(2, 5, 6, 2), BOXES, WHERE, ints(3, 4), expect=cut, gives="float64", rtol=1e-9),
        case(
            u8(2, 5, 6, 1),
            BOXES.astype(np.float32),
            WHERE,
            ints(3, 4),
            gives="float32",
            method="nearest",
            grad=False,
            expect=lambda *a: cut(*a, "nearest"),
        ),
        case(f32(2, 5, 6, 2), np.zeros((0, 4), np.float32), ints(), ints(3, 2), expect=np.zeros((0, 3, 2, 2))),
        bad(f32(2, 5, 6, 2), BOXES, ints(0, 2, 1), ints(3, 2), says="outside [0, batch_size)"),
        bad(f32(2, 5, 6, 2), BOXES, ints(0, 1), ints(3, 2), says="box_indices"),
        bad(f32(2, 5, 6, 2), BOXES, WHERE, ints(3, 0), says="must be positive"),
        bad(f32(2, 5, 6, 2), BOXES[:, :3], WHERE, ints(3, 2), says="4 columns"),
        bad(f32(2, 5, 6, 2), BOXES, WHERE, ints(3, 2), method="cubic", says="method"),
    ],
    "image.crop_and_resize": [
        case(f64(2, 5, 6, 2), BOXES, WHERE, (3, 4), expect=cut),
        case(f32(2, 5, 6, 2), BOXES.astype(np.float32), WHERE, (3, 4), "nearest", 2.5, expect=cut, grad=[0]),
        bad(f32(5, 6, 2), BOXES, WHERE, (3, 4), says="rank"),
    ],
}


# ---- drawing ------------------------------------------------------------------------------------------------------

PALETTE = [
    (1, 1, 0, 1),
    (0, 0, 1, 1),
    (1, 0, 0, 1),
    (0, 1, 0, 1),
    (0.5, 0, 0.5, 1),
    (0.5, 0.5, 0, 1),
    (0.5, 0, 0, 1),
    (0, 0, 0.5, 1),
    (0, 1, 1, 1),
    (1, 0, 1, 1),
]


def drawn(images, boxes, colors=None):
    depth = images.shape[3]
    colors = ([(1,)] if depth == 1 else PALETTE) if colors is None else colors
    out = np.array(images, float)
    high, wide = images.shape[1:3]
    for n, k in np.ndindex(*boxes.shape[:2]):
        top, left, bottom, right = (int(v * (m - 1)) for v, m in zip(boxes[n, k], (high, wide, high, wide)))
        for i in range(high):
            for j in range(wide):
                if top <= i <= bottom and left <= j <= right and (i in (top, bottom) or j in (left, right)):
                    out[n, i, j] = colors[k % len(colors)][:depth]
    return out


FRAMES = np.array(
    [
        [[0.11, 0.13, 0.62, 0.71], [-0.3, 0.3, 0.4, 1.3], [0.8, 0.2, 0.3, 0.9]],
        [[0.2, 0.2, 0.2, 0.2], [1.2, 0.1, 1.4, 0.5], [-0.5, -0.5, 1.5, 1.5]],
    ],
    np.float32,
)

CASES["DrawBoundingBoxes"] = [
    case(f32(2, 9, 11, 3), FRAMES, f32(2, 3), expect=drawn),
    case(f32(2, 9, 11, 3), FRAMES, None, expect=drawn),
    case(f16(2, 9, 11, 4), FRAMES, None, expect=drawn),
    case(f64(2, 9, 11, 1), FRAMES, None, expect=drawn),
    case(f64(2, 9, 11, 2), FRAMES, f32(2, 4), expect=drawn),
    case(f32(1, 9, 11, 3), np.tile(FRAMES[:1], (1, 5, 1)), None, expect=drawn),
    bad(f32(2, 9, 11, 3), FRAMES[:1], None, says="boxes must be"),
    bad(f32(2, 9, 11, 3), FRAMES, f32(2, 2), says="as many columns"),
    bad(f32(2, 9, 11, 2), FRAMES, None, says="colors of its own"),
]
CASES["image.draw_bounding_boxes"] = [
    case(f32(2, 9, 11, 3), FRAMES, f32(2, 3), expect=drawn, grad=False),
    case(f32(2, 9, 11, 1), FRAMES, None, expect=drawn, grad=False),
]


# ---- leaving out --------------------------------------------------------------------------------------------------


def share(a, b):
    """The area two boxes share, by the area they cover together."""
    sides = [[sorted((box[k], box[k + 2])) for k in (0, 1)] for box in (a, b)]
    one, two = ((y[1] - y[0]) * (x[1] - x[0]) for y, x in sides)
    both = math.prod(max(min(p[1], q[1]) - max(p[0], q[0]), 0.0) for p, q in zip(*sides))
    return both / (one + two - both) if one > 0 and two > 0 else 0.0


def left(overlap, scores, most, threshold, lowest=-np.inf):
    """Indices by falling score of what overlaps nothing better; of equal scores the first."""
    chosen = []
    for i in sorted(range(len(scores)), key=lambda i: (-float(scores[i]), i)):
        if len(chosen) < most and scores[i] > lowest and all(overlap(i, j) <= threshold for j in chosen):
            chosen.append(i)
    return chosen


def of_boxes(boxes):
    return lambda i, j: share(boxes[i].tolist(), boxes[j].tolist())


def selected(boxes, scores, most, iou, lowest, *_, pad_to_max_output_size=False, **__):
    chosen = left(of_boxes(boxes), scores, int(most), float(iou), float(lowest))
    padding = [0] * (int(most) - len(chosen)) if pad_to_max_output_size else []
    values = np.array([scores[i] for i in chosen] + padding, float)
    return np.array(chosen + padding, np.int32), values, np.int32(len(chosen))


def soft(boxes, scores, most, iou, lowest, sigma, **_):
    """Bodla et al. 2017: take the best, lower the others by how much they overlap it, and again."""
    scores, chosen, kept = np.array(scores, float), [], []
    rest = [i for i in range(len(scores)) if scores[i] > lowest]
    while rest and len(chosen) < most:
        best = max(rest, key=lambda i: scores[i])
        rest.remove(best)
        chosen.append(best)
        kept.append(scores[best])
        for i in rest:
            scores[i] *= math.exp(-(of_boxes(boxes)(i, best) ** 2) / (2 * float(sigma)))
        rest = [i for i in rest if scores[i] > lowest]
    return np.array(chosen, np.int32), np.array(kept), np.int32(len(chosen))


_rng = np.random.default_rng(5)


def crowd(*lead):
    """Boxes in [0, 1], upper left corner first."""
    corner = _rng.random((*lead, 2)) * 0.6
    return np.concatenate([corner, corner + 0.1 + 0.3 * _rng.random((*lead, 2))], -1).astype(np.float32)


def marks(*shape):
    return _rng.permutation(np.prod(shape)).reshape(shape).astype(np.float32) / np.prod(shape).astype(np.float32)


MANY, SCORES = crowd(24), marks(24)
TWISTED = MANY[:, [2, 1, 0, 3]]
ALL = number(-np.inf)
NONE = number(0.0)

CASES["NonMaxSuppression"] = [
    case(MANY, SCORES, ints(9)[0], number(0.3), ALL, NONE, expect=selected),
    case(TWISTED, SCORES, ints(30)[0], number(0.1), number(0.4), NONE, expect=selected),
    case(
        MANY.astype(np.float64),
        SCORES.astype(np.float64),
        ints(9)[0],
        number(0.5, float),
        number(0.2, float),
        number(0.0, float),
        expect=selected,
    ),
    case(
        MANY,
        SCORES,
        ints(30)[0],
        number(0.2),
        number(0.3),
        NONE,
        pad_to_max_output_size=True,
        expect=lambda *a: selected(*a, pad_to_max_output_size=True),
    ),
    case(MANY, np.round(SCORES * 4), ints(9)[0], number(0.3), ALL, NONE, expect=selected, half=False),
    case(MANY, SCORES, ints(12)[0], number(0.5), number(0.1), number(0.25), expect=soft, half=False),
    case(MANY, SCORES, ints(30)[0], number(0.2), number(0.01), number(1.5), expect=soft, half=False),
    case(np.zeros((0, 4), np.float32), np.zeros(0, np.float32), ints(9)[0], number(0.3), ALL, NONE, expect=selected),
    case(MANY, SCORES, ints(0)[0], number(0.3), ALL, NONE, expect=selected),
    bad(MANY, SCORES[:5], ints(9)[0], number(0.3), ALL, NONE, says="scores has incompatible shape"),
    bad(MANY[:, :3], SCORES, ints(9)[0], number(0.3), ALL, NONE, says="4 columns"),
    bad(MANY, SCORES, ints(9)[0], number(1.3), ALL, NONE, says="iou_threshold must be in [0, 1]"),
    bad(MANY, SCORES, ints(-1)[0], number(0.3), ALL, NONE, says="non-negative"),
]
CASES["image.non_max_suppression"] = [
    case(MANY, SCORES, 9, 0.3, expect=lambda *a: selected(*a, -np.inf)[0], half=False),
    case(MANY, SCORES, 9, 0.3, 0.6, expect=lambda *a: selected(*a)[0], half=False),
]
CASES["image.non_max_suppression_with_scores"] = [
    case(MANY, SCORES, 9, 0.3, 0.2, expect=lambda *a: selected(*a)[:2], half=False, grad=False),
    case(MANY, SCORES, 9, 0.5, 0.2, 0.5, expect=lambda *a: soft(*a)[:2], half=False, grad=False),
]


def by_table(table, scores, most, threshold, lowest=-np.inf):
    return np.array(left(lambda i, j: table[i, j], scores, int(most), float(threshold), float(lowest)), np.int32)


TABLE = np.abs(f32(9, 9)) / 2
CASES["NonMaxSuppressionWithOverlaps"] = [
    case(TABLE, marks(9), ints(5)[0], number(0.6), ALL, expect=by_table),
    case(TABLE, marks(9), ints(5)[0], number(0.9), number(0.5), expect=by_table),
    bad(TABLE, marks(8), ints(5)[0], number(0.6), ALL, says="overlaps must be square"),
    bad(TABLE, marks(9), ints(-5)[0], number(0.6), ALL, says="non-negative"),
]
CASES["image.non_max_suppression_overlaps"] = [case(TABLE, marks(9), 5, 0.6, expect=by_table)]


def padded(boxes, scores, most, iou, lowest=-np.inf, **_):
    if boxes.ndim > 2:
        result = [padded(b, s, most, iou, lowest) for b, s in zip(boxes, scores)]
        return tuple(np.stack(x) for x in zip(*result))
    boxes = boxes[:, [2, 1, 0, 3]] if boxes[0, 0] > boxes[0, 2] else boxes
    chosen = left(of_boxes(boxes), scores, int(most), np.nextafter(float(iou), 0), float(lowest))
    return np.array(chosen + [0] * (int(most) - len(chosen)), np.int32), np.int32(len(chosen))


PAIR, PAIR_SCORES = crowd(2, 20), marks(2, 20) + 0.01
CASES["NonMaxSuppressionPadded"] = [
    case(MANY, SCORES, ints(9)[0], number(0.3), ALL, expect=padded, half=False),
    case(TWISTED, SCORES, ints(30)[0], number(0.2), number(0.4), expect=padded, half=False),
    case(PAIR, PAIR_SCORES, ints(7)[0], number(0.25), ALL, expect=padded, half=False),
    case(
        MANY,
        -np.sort(-SCORES),
        ints(9)[0],
        number(0.3),
        ALL,
        expect=padded,
        half=False,
        sorted_input=True,
        canonicalized_coordinates=True,
    ),
    case(
        np.zeros((0, 4), np.float32),
        np.zeros(0, np.float32),
        ints(3)[0],
        number(0.3),
        ALL,
        expect=(np.zeros(3, np.int32), np.int32(0)),
    ),
    bad(MANY, SCORES[:4], ints(9)[0], number(0.3), ALL, says="scores has incompatible shape"),
    bad(SCORES, SCORES, ints(9)[0], number(0.3), ALL, says="4 columns"),
]
CASES["image.non_max_suppression_padded"] = [
    case(PAIR, PAIR_SCORES, 7, 0.25, pad_to_max_output_size=True, expect=padded, half=False),
    case(MANY, SCORES, 30, 0.3, expect=lambda *a: selected(*a, -np.inf)[::2], half=False),
    bad(PAIR, PAIR_SCORES, 7, 0.25, says="must be True for batched"),
]


def combined(boxes, scores, per_class, total, iou, lowest=-np.inf, pad_per_class=False, clip_boxes=True, **_):
    per_class, total, classes = int(per_class), int(total), scores.shape[2]
    room = min(total, per_class * classes) if pad_per_class else total
    out = np.zeros((len(boxes), room, 4)), np.zeros((len(boxes), room)), np.zeros((len(boxes), room))
    valid = np.zeros(len(boxes), np.int32)
    for b in range(len(boxes)):
        result = []
        for c in range(classes):
            these = boxes[b, :, c if boxes.shape[2] > 1 else 0]
            chosen = left(of_boxes(these), scores[b, :, c], per_class, float(iou), float(lowest))
            result += [(scores[b, i, c], c, these[i]) for i in chosen]
        result = sorted(result, key=lambda one: -one[0])[:room]
        valid[b] = len(result)
        for k, (score, c, box) in enumerate(result):
            out[0][b, k] = np.clip(box, 0, 1) if clip_boxes else box
            out[1][b, k], out[2][b, k] = score, c
    return *out, valid


MIXED, CLASSED, SHARED = crowd(2, 12, 3) * 1.6 - 0.2, marks(2, 12, 3), crowd(2, 12, 1)
CASES["CombinedNonMaxSuppression"] = [
    *(
        case(
            MIXED,
            CLASSED,
            ints(4)[0],
            ints(9)[0],
            number(0.3),
            number(0.2),
            pad_per_class=pad,
            clip_boxes=clip,
            expect=lambda *a, pad=pad, clip=clip: combined(*a, pad, clip),
        )
        for pad in (False, True)
        for clip in (False, True)
    ),
    case(
        SHARED,
        CLASSED,
        ints(2)[0],
        ints(20)[0],
        number(0.4),
        ALL,
        pad_per_class=True,
        expect=lambda *a: combined(*a, pad_per_class=True),
    ),
    case(
        SHARED.astype(np.float64),
        CLASSED.astype(np.float64),
        ints(50)[0],
        ints(5)[0],
        number(0.4),
        ALL,
        expect=combined,
    ),
    bad(SHARED, CLASSED[:, :5], ints(2)[0], ints(20)[0], number(0.4), ALL, says="scores has incompatible shape"),
    bad(MIXED, CLASSED[..., :2], ints(2)[0], ints(20)[0], number(0.4), ALL, says="either 1 or num classes"),
    bad(MIXED, CLASSED, ints(2)[0], ints(0)[0], number(0.4), ALL, says="max_total_size must be > 0"),
    bad(MIXED, CLASSED, ints(2)[0], ints(3)[0], number(-0.4), ALL, says="iou_threshold"),
]
CASES["image.combined_non_max_suppression"] = [
    case(MIXED, CLASSED, 4, 9, 0.3, 0.2, expect=combined, half=False, grad=False),
    case(
        SHARED,
        CLASSED,
        4,
        9,
        0.3,
        pad_per_class=True,
        half=False,
        grad=False,
        expect=lambda *a: combined(*a, pad_per_class=True),
    ),
]


# ---- at random ----------------------------------------------------------------------------------------------------

OBJECTS = np.array([[[0.1, 0.2, 0.5, 0.6], [0.6, 0.5, 0.9, 0.8]]], np.float32)
RANGES = {"aspect_ratio_range": (0.5, 2.0), "area_range": (0.1, 0.6), "max_attempts": 300}


def frames(begin, size, bboxes, image_size, boxes, covered, *_, **__):
    high, wide, _ = map(int, image_size)
    (top, left_, zero), (rows, columns, depth) = begin.tolist(), size.tolist()
    assert (zero, depth) == (0, -1)
    assert 0 <= top <= top + rows <= high
    assert 0 <= left_ <= left_ + columns <= wide
    box = [top / high, left_ / wide, (top + rows) / high, (left_ + columns) / wide]
    np.testing.assert_allclose(bboxes, [[box]], rtol=1e-6)
    assert 0.1 <= rows * columns / (high * wide) <= 0.6
    assert 0.5 - 0.05 <= columns / rows <= 2.05
    kept = [
        max(min(b[2], box[2]) - max(b[0], box[0]), 0)
        * max(min(b[3], box[3]) - max(b[1], box[1]), 0)
        / ((b[2] - b[0]) * (b[3] - b[1]))
        for b in boxes.reshape(-1, 4).tolist()
    ]
    assert max(kept) >= float(covered) - 0.05


def everything(begin, size, bboxes, image_size, *_):
    assert begin.tolist() == [0, 0, 0]
    assert size.tolist() == [*image_size[:2].tolist(), -1]
    assert bboxes.tolist() == [[[0, 0, 1, 1]]]


IMAGE = ints(60, 80, 3)
for _name, _seeds in {
    "SampleDistortedBoundingBox": [()] * 3,
    "StatelessSampleDistortedBoundingBox": [(ints(k, 7),) for k in range(5)],
}.items():
    CASES[_name] = [
        *(case(IMAGE, OBJECTS, number(0.5), *seed, holds=frames, **RANGES) for seed in _seeds),
        case(
            IMAGE.astype(np.int64),
            OBJECTS,
            number(0.1),
            *_seeds[0],
            holds=frames,
            **RANGES,
            gives=["int64", "int64", "float32"],
        ),
        case(IMAGE, OBJECTS, number(1.0), *_seeds[0], holds=everything, area_range=(0.001, 0.002)),
        case(
            IMAGE,
            np.zeros((1, 0, 4), np.float32),
            number(1.0),
            *_seeds[0],
            holds=everything,
            use_image_if_no_bounding_boxes=True,
        ),
        bad(IMAGE, np.zeros((1, 0, 4), np.float32), number(0.1), *_seeds[0], says="No bounding boxes"),
        bad(IMAGE, OBJECTS + 0.5, number(0.1), *_seeds[0], says="in [0.0, 1.0]"),
        bad(IMAGE[:2], OBJECTS, number(0.1), *_seeds[0], says="image_size must be"),
        bad(IMAGE, OBJECTS, number(0.1), *_seeds[0], area_range=(0.5, 1.5), says="not exceed 1"),
    ]
CASES["image.sample_distorted_bounding_box"] = [
    case(IMAGE, OBJECTS, 3, 0.5, holds=lambda b, s, x, i, o, _, c, **k: frames(b, s, x, i, o, c), **RANGES),
    bad(IMAGE, np.zeros((1, 0, 4), np.float32), says="No bounding boxes"),
]
CASES["image.stateless_sample_distorted_bounding_box"] = [
    case(IMAGE, OBJECTS, (1, 2), 0.5, holds=lambda b, s, x, i, o, _, c, **k: frames(b, s, x, i, o, c), **RANGES),
    bad(IMAGE, OBJECTS, (1, 2, 3), says="seed"),
]
