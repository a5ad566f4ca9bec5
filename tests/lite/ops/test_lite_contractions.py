"""Convolutions, pools, products and resizes: shapes that are known late, what would divide by zero, NaN."""

from __future__ import annotations

import copy

import drawn_rows_contractions
import drawn_rows_products
import numpy as np
import pytest
from drawn import Draw, Drawn, T, feeds, model_of, ours, plain
from one_operator import official

from each_row import each_row
from opwright.core import flags
from opwright.core.errors import OpError
from opwright.lite.format import objects, schema, versions
from thorough import crossed, sampled

ROWS = [*drawn_rows_contractions.ROWS, *drawn_rows_products.ROWS]
EACH = [
    pytest.param(row, kind, id=f"{row.label}-{kind}-{row.path}".replace(" ", "_")) for row in ROWS for kind in row.kinds
]


def row_named(label):
    return next(row for row in ROWS if row.label == label)


def known_late(drawn):
    """The model with inputs of unknown sizes, and what to feed."""
    model = model_of("", drawn)
    for i in model.subgraphs[0].inputs:
        t = model.subgraphs[0].tensors[i]
        t.shape, t.shape_signature = [1] * len(t.shape), [-1] * len(t.shape)
    return model, feeds(drawn)


def known_when_it_runs(drawn):
    """The model with a RESHAPE, to a shape that is given when it runs, before each input; and what to feed."""
    model = model_of("", drawn)
    main = model.subgraphs[0]
    model.operator_codes.append(versions.operator_code("RESHAPE"))
    inputs, shapes = [], []
    for i in main.inputs:
        flat = copy.copy(main.tensors[i])
        flat.name, flat.shape = f"{flat.name}_flat", [int(np.prod(flat.shape))]
        flat.quantization = copy.copy(flat.quantization)
        if flat.quantization is not None:
            flat.quantization.quantized_dimension = 0
        shape = objects.Tensor(shape=[len(main.tensors[i].shape)], type=schema.TensorType.INT32, name=f"shape{i}")
        main.tensors += [flat, shape]
        place = len(main.tensors) - 2
        main.operators.insert(0, objects.Operator(opcode_index=1, inputs=[place, place + 1], outputs=[i]))
        inputs.append(place)
        shapes.append((place + 1, np.array(main.tensors[i].shape, np.int32)))
    main.inputs = inputs + [place for place, _ in shapes]
    return model, [x.reshape(-1) for x in feeds(drawn)] + [shape for _, shape in shapes]


@pytest.mark.parametrize(("late", "compiled"), crossed([known_late, known_when_it_runs], [False, True]))
@each_row(
    "row, kind", sampled(EACH, 6, by=lambda row, kind: row.label.split()[0]), by=lambda row, kind: row.label.split()[0]
)
def test_shapes_may_be_known_late(row, kind, late, compiled):
    """The compiled engine runs the first time without a plan where shapes are known only when the model runs."""
    drawn = row.draw(Draw(3, kind))
    for t in drawn.inputs:
        if t is not None and not t.constant and np.size(t.scale) > 1:  # scales by channel ask for a size that is known
            t.scale = t.scale[:1]
    drawn.model = drawn.model or model_of(row.name, drawn)
    with flags.override(compiled=compiled):
        expected = ours(drawn.model, feeds(drawn))
        drawn.model = copy.deepcopy(drawn.model)
        actual = ours(*late(drawn))
    for a, b in zip(actual, expected, strict=True):
        assert a.shape == b.shape
        if compiled and a.dtype.kind in "fc":
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5 * np.abs(b[np.isfinite(b)]).max(initial=0))
        elif compiled and a.dtype.kind in "iu":
            assert np.abs(a.astype(np.int64) - b).max(initial=0) <= 1
        else:
            np.testing.assert_array_equal(a, b)


def _with(label, kind="FLOAT32", **options):
    def draw():
        drawn = row_named(label).draw(Draw(4, kind))
        drawn.options |= options
        return row_named(label).name, drawn

    return draw


def _shuffled(rows, n, k):
    def draw():
        x, w = (T("UINT8", shape, 0.1, 128, values=np.zeros(shape, np.uint8)) for shape in ((rows, k), (n, k)))
        bias = T("INT32", (n,), 0.01, values=np.zeros(n, np.int32))
        outputs = [T("INT16", (), 0.1), T("UINT8", (rows, k))]
        return "FULLY_CONNECTED", Drawn([x, w, bias], outputs, {"weights_format": "SHUFFLED4x16INT8"})

    return draw


def _blocks(size, kind="INT4"):
    def draw():
        drawn = row_named("FULLY_CONNECTED hybrid int4 by block").draw(Draw(4, "FLOAT32"))
        weights = drawn.model.subgraphs[0].tensors[1]
        weights.quantization.details.block_size = size
        return "FULLY_CONNECTED", drawn

    return draw


_2D = (
    "CONV_2D any shape",
    "DEPTHWISE_CONV_2D any shape",
    "TRANSPOSE_CONV any shape",
    "MAX_POOL_2D any shape",
    "AVERAGE_POOL_2D any shape",
)
WRONG = {
    **{
        f"{label.split()[0]} {name}={value}": (_with(label, "INT8", **{name: value}), f"{name} must be positive")
        for label in _2D
        for name in ("stride_h", "stride_w")
        for value in (0, -1)
    },
    **{
        f"{label.split()[0]} {name}=0": (_with(label, "INT8", **{name: 0}), f"{name} must be positive")
        for label in _2D[:2]
        for name in ("dilation_h_factor", "dilation_w_factor")
    },
    **{
        f"{label.split()[0]} {name}=0": (_with(label, "INT8", **{name: 0}), f"{name} must be positive")
        for label in _2D[3:]
        for name in ("filter_height", "filter_width")
    },
    **{
        f"{label} {name}=0": (_with(label, **{name: 0}), f"{name} must be positive")
        for label in ("CONV_3D", "CONV_3D_TRANSPOSE")
        for name in ("stride_d", "stride_w", "dilation_h_factor")
    },
    "shuffled, 2 rows": (_shuffled(2, 4, 16), "1 or 4 rows"),
    "shuffled, 6 outputs": (_shuffled(1, 6, 16), "blocks of 4 by 16"),
    "shuffled, 24 columns": (_shuffled(1, 4, 24), "blocks of 4 by 16"),
    "blocks of 0": (_blocks(0), "blocks that do not fit"),
    "blocks of 7": (_blocks(7), "blocks that do not fit"),
    "too few scales": (_blocks(4), "another number of scales than there are blocks"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_refused_in_prepare(case):
    draw, says = WRONG[case]
    name, drawn = draw()
    with pytest.raises(OpError, match=says) as raised:
        ours(model_of(name, drawn), feeds(drawn))
    assert f"Node number 0 ({name}) failed to prepare" in str(raised.value)
    assert "wanted" in str(raised.value)


def test_nan_is_not_the_greatest():
    pytest.importorskip("ai_edge_litert.interpreter")
    x = np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)
    x[0, 1, 1] = np.nan
    options = {"filter_height": 2, "filter_width": 2, "stride_h": 1, "stride_w": 1}
    drawn = Drawn([T("FLOAT32", x.shape, values=x)], [plain("FLOAT32")], options)
    model = model_of("MAX_POOL_2D", drawn)
    np.testing.assert_array_equal(ours(model, [x])[0], official(model, [x], "REF")[0])
