"""Suppression of boxes by the compiled engine: bit for bit what the interpreter's own kernels give.

Drawn boxes and scores have equal scores, flat, huge and NaN corners, and scores of NaN; the official kernels' answers
are compared in tests/lite/ops/test_compiled_rows.py, on rows that those define.
"""

import numpy as np
import pytest
from engine_kit import engine
from hypothesis import given, settings
from hypothesis import strategies as st
from lite_kit import Build

import opwright as ow
from opwright import lite
from opwright.lite.interpreter import OpResolverType
from thorough import THOROUGH, examples

SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30, -3e38, 1e-40], np.float32)


def answers(content, feeds, **more):
    interpreter = lite.Interpreter(model_content=content, **more)
    interpreter.allocate_tensors()
    for detail in interpreter.get_input_details():
        interpreter.set_tensor(detail["index"], feeds[detail["name"]])
    interpreter.invoke()
    return interpreter, [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


def same(content, feeds, within=0.0):
    _, expected = answers(content, feeds, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    with engine(verify=True):
        result, actual = answers(content, feeds)
    assert result._engine.delegate.refused == {}
    for a, b in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, b, within, within)
    return actual


def suppressing(name, n, most):
    soft = name.endswith("5")
    build = Build().tensor("boxes", (n, 4)).tensor("scores", (n,)).tensor("most", type="INT32", data=np.int32(most))
    for number in ("iou", "least", *(("sigma",) if soft else ())):
        build.tensor(number, ())
    build.tensor("places", (most,), "INT32").tensor("kept", (most,)).tensor("number", (), "INT32")
    inputs = f"boxes scores iou least{' sigma' if soft else ''}"
    outputs = f"places{' kept' if soft else ''} number"
    build.op(name, inputs.replace(" iou", " most iou"), outputs)
    return build.done(inputs, outputs)


def boxes_of(rng, n, special):
    middles, sizes = rng.random((n, 2)) * 4, rng.random((n, 2)) * 2
    boxes = np.concatenate([middles - sizes, middles + sizes], 1).astype(np.float32)
    boxes = np.where(rng.random((n, 1)) < 0.3, boxes[:, [2, 3, 0, 1]], boxes)
    if special:
        boxes = np.where(rng.random((n, 4)) < 0.05, rng.choice(SPECIAL, (n, 4)), boxes)
        boxes[rng.random(n) < 0.1, 2] = 1.0
    return np.ascontiguousarray(boxes, np.float32)


def scores_of(rng, shape, ties, special):
    scores = rng.random(shape).astype(np.float32)
    scores = np.round(scores * 4) / 4 if ties else scores
    if special:
        scores = np.where(rng.random(shape) < 0.1, rng.choice(SPECIAL, shape), scores)
    return scores.astype(np.float32)


@settings(max_examples=40 if THOROUGH else 4, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from([1, 5, 64]),
    st.sampled_from([1, 7, 80]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0.0, 0.3, 1.0, -1.0, np.nan]),
    st.sampled_from([-np.inf, 0.0, 0.5, np.nan]),
)
def test_hard_suppression_is_that_of_the_reference(seed, n, most, ties, special, iou, least):
    rng = np.random.default_rng(seed)
    feeds = {
        "boxes": boxes_of(rng, n, special),
        "scores": scores_of(rng, n, ties, special),
        "iou": np.float32(iou),
        "least": np.float32(least),
    }
    same(suppressing("NON_MAX_SUPPRESSION_V4", n, most), feeds)
    same(suppressing("NON_MAX_SUPPRESSION_V5", n, most), {**feeds, "sigma": np.float32(0)})


@settings(max_examples=examples(30), deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1, 5, 64]), st.booleans(), st.sampled_from([0.3, 0.9, 1.0]))
def test_soft_suppression_is_that_of_the_reference(seed, n, special, iou):
    """Scores that fall do so by another exponential function: the last place may differ, not the boxes."""
    rng = np.random.default_rng(seed)
    feeds = {
        "boxes": boxes_of(rng, n, special),
        "scores": scores_of(rng, n, False, special),
        "iou": np.float32(iou),
        "least": np.float32(0.1),
        "sigma": np.float32(rng.random()),
    }
    same(suppressing("NON_MAX_SUPPRESSION_V5", n, 40), feeds, 1e-6)


def test_a_negative_sigma_is_reported_in_the_operators_words():
    rng = np.random.default_rng(0)
    feeds = {
        "boxes": boxes_of(rng, 9, False),
        "scores": scores_of(rng, 9, False, False),
        "iou": np.float32(0.5),
        "least": np.float32(0),
        "sigma": np.float32(-1),
    }
    content = suppressing("NON_MAX_SUPPRESSION_V5", 9, 3)
    with engine(verify=True):
        with pytest.raises(ow.errors.InvalidArgumentError, match="soft_nms_sigma is negative"):
            answers(content, feeds)
        result, _ = answers(content, {**feeds, "sigma": np.float32(1)})
    assert result._engine.delegate.refused == {}


def detecting(n, classes, background, **options):
    rows = options["max_detections"] * options["max_classes_per_detection"]
    build = Build().tensor("codes", (1, n, 5)).tensor("scores", (1, n, classes + background)).tensor("anchors", (n, 4))
    for k, shape in enumerate(((1, rows, 4), (1, rows), (1, rows), (1,))):
        build.tensor(f"y{k}", shape)
    options = {"y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0, "num_classes": classes, **options}
    build.custom("TFLite_Detection_PostProcess", "codes scores anchors", "y0 y1 y2 y3", **options)
    return build.done("codes scores anchors", "y0 y1 y2 y3")


@settings(max_examples=60 if THOROUGH else 6, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from([1, 9, 70]),
    st.sampled_from([1, 3, 20]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.sampled_from([1, 2, 5]),
    st.sampled_from([1, 10, 90]),
    st.sampled_from([1, 4, 100]),
    st.sampled_from([-np.inf, 0.0, 0.4]),
    st.sampled_from([0.2, 0.6, 1.0]),
)
def test_detections_are_those_of_the_reference(
    seed, n, classes, background, regular, ties, special, several, most, each, least, iou
):
    rng = np.random.default_rng(seed)
    codes = rng.normal(0, 3, (1, n, 5)).astype(np.float32)
    if special:
        codes = np.where(rng.random(codes.shape) < 0.05, rng.choice(SPECIAL, codes.shape), codes).astype(np.float32)
    feeds = {
        "codes": codes,
        "scores": scores_of(rng, (1, n, classes + background), ties, special),
        "anchors": rng.random((n, 4)).astype(np.float32),
    }
    content = detecting(
        n,
        classes,
        background,
        max_detections=most,
        max_classes_per_detection=several,
        detections_per_class=each,
        use_regular_nms=regular,
        nms_score_threshold=least,
        nms_iou_threshold=iou,
    )
    same(content, feeds)


def test_an_anchor_without_size_is_reported_in_the_operators_words():
    content = detecting(
        2,
        1,
        0,
        max_detections=3,
        max_classes_per_detection=1,
        detections_per_class=3,
        use_regular_nms=False,
        nms_score_threshold=0.0,
        nms_iou_threshold=0.5,
    )
    feeds = {
        "codes": np.zeros((1, 2, 5), np.float32),
        "scores": np.ones((1, 2, 1), np.float32),
        "anchors": np.full((2, 4), -1, np.float32),
    }
    with engine(verify=True), pytest.raises(ow.errors.InvalidArgumentError, match="a box ends before it begins"):
        answers(content, feeds)
