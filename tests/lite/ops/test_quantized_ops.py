"""Quantised operators: large tensors, constants that are computed, parameters that are refused."""

from __future__ import annotations

import contextlib
import functools

import numpy as np
import pytest
from drawn import Draw, Drawn, Row, T, differences, feeds, model_of, ours, plain
from drawn_rows_quantized import ALL, ROWS
from lite_kit import run

import opwright.lite.ops as dialect
from each_row import each_row
from opwright.core import flags
from opwright.core.errors import InvalidArgumentError, UnimplementedError
from opwright.lite.quantized_registration import rule_named
from thorough import sampled

EACH = [pytest.param(row, kind, id=f"{row.label}-{kind}".replace(" ", "_")) for row in ROWS for kind in row.kinds]


def _conv_of_large_image(d):
    x, w = d.x(1, 50, 60, 3), d.w(8, 3, 3, 3, axis=0)
    options = {"padding": "SAME", "stride_h": 1, "stride_w": 1, "dilation_h_factor": 1, "dilation_w_factor": 1}
    return Drawn([x, w, d.bias(x, w, 8)], [d.y(4)], options)


LARGE = {  # what is computed in blocks
    "ADD": lambda d: Drawn([d.x(3, 9000), d.x(3, 9000)], [d.y(8)]),
    "MUL": lambda d: Drawn([d.x(3, 9000), d.x(9000)], [d.y(8)]),
    "RELU": lambda d: Drawn([d.x(3, 9000)], [d.y(8)]),
    "PRELU": lambda d: Drawn([d.x(3, 9000), d.x(3, 9000)], [d.y(8)]),
    "CONV_2D": _conv_of_large_image,
}


@pytest.mark.parametrize(("compiled", "steps"), [(False, 0), (True, 1)])
@pytest.mark.parametrize("name", LARGE)
def test_large_tensors_agree_with_the_official_kernels(name, compiled, steps):
    pytest.importorskip("ai_edge_litert.interpreter")
    with flags.override(compiled=compiled):
        assert all(gap.max() <= steps for gap in differences(Row(name, (), LARGE[name]), "INT8", 5))


def test_a_node_with_too_few_outputs_is_refused():
    drawn = _row("FULLY_CONNECTED").draw(Draw(0, "INT8"))
    drawn.outputs = []
    with pytest.raises(InvalidArgumentError, match="FULLY_CONNECTED: the node has another number of outputs"):
        ours(model_of("FULLY_CONNECTED", drawn), feeds(drawn))


@each_row("row, kind", sampled(EACH, 4, by=lambda row, kind: kind), by=lambda row, kind: kind)
def test_constants_may_be_computed(row, kind):
    """With axes, sizes and the like given when the model runs, outputs are dynamic and the answer is the same."""
    drawn = row.draw(Draw(3, kind))
    if not any(t is not None and t.constant and t.scale is None and t.type == "INT32" for t in drawn.inputs):
        return
    fixed = ours(model_of(row.name, drawn), feeds(drawn))
    moving = ours(model_of(row.name, drawn, all_dynamic=True), feeds(drawn, all_dynamic=True))
    for actual, expected in zip(moving, fixed, strict=True):
        assert actual.shape == expected.shape
        assert actual.tolist() == expected.tolist()


def test_every_rule_is_there_and_has_a_row():
    tested = {row.name for row in ROWS}
    for name, op in dialect.operators().items():
        for path in filter(None, (op.quantized, op.hybrid)):
            assert callable(rule_named(path)), path
            assert name in tested, name


@functools.cache
def _row(label):
    return next(row for row in ROWS if row.label == label)


def test_an_operator_without_a_rule_is_refused_by_name():
    x = T("INT8", (3,), 0.5, values=np.zeros(3, np.int8))
    with pytest.raises(UnimplementedError) as raised:
        ours(model_of("SIN", Drawn([x], [T("INT8", (3,), 0.5)])), [x.values])
    assert "SIN: this operator has no kernel for quantized tensors" in str(raised.value)
    assert "'x0' INT8, 'y0' INT8" in str(raised.value)
    assert "OW103" in str(raised.value)
    assert "Node number 0 (SIN) failed to prepare" in str(raised.value)


def test_types_that_do_not_go_together_are_refused_by_name():
    drawn = _row("ADD").draw(Draw(0, "INT8"))
    drawn.outputs[0] = T("INT16", (), 0.1)
    with pytest.raises(UnimplementedError, match=r"(?s)ADD: no integer kernel for these types.*'y0' INT16.*OW103"):
        ours(model_of("ADD", drawn), feeds(drawn))


@pytest.mark.parametrize(("name", "scale"), [("LOG_SOFTMAX", 16 / 65536), ("L2_NORMALIZATION", 1 / 32768)])
def test_rows_of_int16_are_refused_as_officially(name, scale):
    official = pytest.importorskip("ai_edge_litert.interpreter")
    x = T("INT16", (2, 4), 0.001, values=np.arange(8, dtype=np.int16).reshape(2, 4))
    model = model_of(name, Drawn([x], [T("INT16", (2, 4), scale)]))
    with pytest.raises(UnimplementedError, match=f"{name}: no integer kernel for these types"):
        ours(model, [x.values])
    with pytest.raises(RuntimeError, match=name):
        run(official.Interpreter(model_content=model.to_bytes()), [x.values])


WRONG = {
    "SOFTMAX": lambda d: setattr(d.outputs[0], "scale", 0.1),
    "CONCATENATION": lambda d: setattr(d.inputs[1], "scale", d.inputs[0].scale * 2),
    "PADV2": lambda d: setattr(d.inputs[2], "zero", (d.inputs[0].zero + 1) % 100),
    "CONV_2D": lambda d: setattr(d.inputs[1], "zero", 3),
    "LOGISTIC": lambda d: setattr(d.outputs[0], "scale", 0.1),
}


@pytest.mark.parametrize("label", WRONG)
def test_parameters_that_the_official_kernels_refuse_are_refused(label):
    drawn = _row(label).draw(Draw(1, "INT8"))
    WRONG[label](drawn)
    with pytest.raises(InvalidArgumentError) as raised:
        ours(model_of(label, drawn), feeds(drawn))
    assert isinstance(raised.value, RuntimeError)
    assert f"Node number 0 ({label}) failed to prepare" in str(raised.value)


SCALES = (float("nan"), float("inf"), -1.0, 0.0, 1e-45, 3e38)
ANY_SCALE = [row.label for row in ROWS if "INT8" in row.kinds]


@each_row(
    "label, scale",
    sampled(
        [(label, SCALES[i % len(SCALES)]) for i, label in enumerate(ANY_SCALE)],
        by=lambda label, scale: label.split()[0],
    ),
)
def test_any_scale_returns_an_answer_or_an_error_with_a_name(label, scale):
    _try_scale(label, scale)


@pytest.mark.slow
@pytest.mark.parametrize("scale", SCALES)
@each_row("label", ANY_SCALE)
def test_every_scale_returns_an_answer_or_an_error_with_a_name(label, scale):
    _try_scale(label, scale)


def _try_scale(label, scale):
    """Scales come from files: none of them may break anything."""
    row = _row(label)
    for which in range(3):
        drawn = row.draw(Draw(2, "INT8"))
        scaled = [t for t in (*drawn.inputs, *drawn.outputs) if t is not None and t.scale is not None]
        scaled[which % len(scaled)].scale = scale
        with contextlib.suppress(InvalidArgumentError, UnimplementedError):
            ours(model_of(row.name, drawn), feeds(drawn))


@pytest.mark.parametrize("kind", ALL)
def test_tensors_are_set_and_got_as_raw_integers(kind):
    d = Draw(0, kind)
    x = d.x(2, 3, scale=0.5, zero=d.low + 3 if kind != "INT16" else 0)
    model = model_of("DEQUANTIZE", Drawn([x], [plain("FLOAT32")]))
    result = ours(model, [x.values])[0]
    np.testing.assert_array_equal(result, 0.5 * (x.values.astype(np.float32) - x.zero))
