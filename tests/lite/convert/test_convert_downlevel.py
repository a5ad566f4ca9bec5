"""Converting for older run times: the file says it runs there, holds no newer operator, and gives the same numbers."""

from __future__ import annotations

import re

import numpy as np
import pytest
from convert_harness import assert_same, bools, case, converter, eager, f32, ints, official, ours
from lite_kit import op_names

import opwright as ow
from opwright.core import flags
from opwright.graph import Graph, Value
from opwright.lite.convert import ConverterError
from opwright.lite.convert.downlevel import DOWNLEVEL_RULES, check_runtime, downlevel
from opwright.lite.convert.export import export
from opwright.lite.convert.rewriter import LiteRewriter
from opwright.lite.format import Model, versions
from opwright.lite.ops.module import GraphSignature, LiteModule

nn, m = ow.nn, ow.math
ALONE = {
    "relu_0_to_1",
    "square_by_mul",
    "flat_fully_connected",
    "bucketize_by_counting",
    "update_by_select",
    "indices_in_int32",
}
IMAGE, WIDE = f32(1, 6, 5, 4), f32(2, 3, 2, 4, 3)


def old(rule, runtime, function, *inputs, name="", **more):
    """A row: the rule of DOWNLEVEL_RULES that must have been used."""
    return pytest.param(case(rule, function, *inputs, **more), rule, runtime, id=f"{rule}{name}-{runtime}")


def gelu(approximate):
    return lambda x: nn.gelu(x, approximate=approximate)


ROWS = [
    old("gelu_by_erf", "2.8", gelu(False), f32(4, 5) * 3),
    old("gelu_by_erf", "2.8", gelu(True), f32(4, 5) * 3, name="_tanh"),
    old("atan2_by_octant", "2.9", m.atan2, f32(50) * 2, f32(50)),
    old("sign_by_comparison", "2.10", m.sign, np.array([-3, -0.5, 0, 2, np.nan, -np.inf], np.float32)),
    old("sign_by_comparison", "2.11", m.sign, ints(7, low=-3), name="_int"),
    old("hard_swish_apart", "1.14", lambda x: x * nn.relu6(x + 3) / 6, f32(20) * 4),
    old("elu_apart", "1.13", nn.elu, f32(20) * 3),
    old("leaky_relu_apart", "1.13.0", lambda x: nn.leaky_relu(x, 0.3), f32(20)),
    old("abs_by_maximum", "2.11", m.abs, ints(9, low=-5)),
    old("squared_difference_apart", "1.13.0", m.squared_difference, f32(3, 4), f32(4)),
    old("all_by_any", "2.5", lambda x: m.reduce_all(x, axis=1), bools(3, 4)),
    old("matmul_by_fully_connected", "2.2", ow.matmul, f32(3, 4), f32(4, 5), name="_2d"),
    old("matmul_by_fully_connected", "2.2", ow.matmul, f32(2, 3, 4), f32(2, 4, 5)),
    old(
        "matmul_by_fully_connected",
        "2.2",
        lambda x, y: ow.matmul(x, y, transpose_a=True, transpose_b=True),
        f32(2, 2, 4, 3),
        f32(2, 1, 5, 4),
        name="_adj",
    ),
    old("cumsum_by_doubling", "2.3", m.cumsum, f32(7, 3)),
    old(
        "cumsum_by_doubling",
        "2.3",
        lambda x: m.cumsum(x, axis=1, exclusive=True, reverse=True),
        f32(2, 6, 3),
        name="_x",
    ),
    old("cumsum_by_doubling", "2.3", lambda x: m.cumsum(x, axis=-1, reverse=True), ints(2, 5), name="_int"),
    old(
        "segments_by_scatter",
        "2.9",
        lambda x, i: m.unsorted_segment_sum(x, i, 4),
        f32(6, 3),
        np.array([0, 2, -1, 2, 3, 0], np.int32),
    ),
    old("groups_apart", "2.8", lambda x: nn.conv2d(x, f32(3, 3, 2, 6), 1, "SAME") + f32(6), IMAGE),
    old(
        "transpose_conv_apart",
        "2.2",
        lambda x: nn.relu(nn.conv2d_transpose(x, f32(3, 3, 5, 4), [1, 12, 10, 5], 2) + f32(5)),
        IMAGE,
    ),
    old("broadcast_by_tile", "2.4", lambda x: ow.broadcast_to(x, [2, 3, 4]), f32(3, 1)),
    old("broadcast_by_tile", "2.4", lambda x: ow.broadcast_to(x, [2, 3]), bools(1, 3), name="_bool"),
    old(
        "broadcast_args_by_select",
        "2.5",
        lambda x, y: ow.broadcast_dynamic_shape(ow.shape(x), ow.shape(y)),
        f32(3, 1),
        f32(2, 1, 4),
        open={0: (0, 1), 1: (0, 2)},
    ),
    old("select_after_broadcast", "2.1", lambda c, x: ow.where(c, x, 0.0), bools(3, 1), f32(3, 4)),
    old("gather_flat", "2.4", lambda x, i: ow.gather(x, i, batch_dims=1), f32(3, 5, 2), ints(3, 4, low=0, high=5)),
    old("where_not_0", "2.7", ow.where, f32(3, 4) * bools(3, 4)),
    old("depth_to_space_apart", "2.0", lambda x: nn.depth_to_space(x, 2), f32(2, 3, 2, 12)),
    old("batches_of_images", "2.2", lambda x: ow.space_to_batch(x, [2], [[1, 0]]), f32(2, 5, 3)),
    old("nearest_by_gather", "2.2", lambda x: ow.image.resize(x, [9, 7], "nearest"), IMAGE),
    old("bilinear_by_gather", "2.1", lambda x: ow.image.resize(x, [9, 3]), IMAGE),
    old("transpose_by_steps", "2.2", lambda x: ow.transpose(x, [4, 2, 0, 3, 1]), WIDE),
    old("transpose_by_steps", "2.11", lambda x: ow.transpose(x, [3, 0, 1, 5, 2, 4]), f32(2, 3, 2, 2, 1, 3), name="_6d"),
    old("slice_by_axis", "2.4", lambda x: ow.slice(x, [0, 1, 0, 2, 0], [2, 2, -1, 1, 3]), WIDE),
    old("strided_slice_by_axis", "2.1", lambda x: x[:, 2, ::-1, 1:4:2], WIDE),
    old("pad_by_axis", "2.5", lambda x: ow.pad(x, [[0, 0], [1, 0], [0, 0], [2, 1], [0, 0]]), WIDE),
    old(
        "pad_by_axis",
        "2.5",
        lambda x: ow.pad(x, [[1, 0], [0, 0], [0, 0], [0, 1], [0, 0]], constant_values=3.0),
        WIDE,
        name="_v2",
    ),
    old("spread_first", "2.2", m.maximum, WIDE, f32(3, 1, 4, 3)),
    old("select_flat", "2.1", lambda c, x: ow.where(c, x, -x), bools(2, 3, 2, 4, 3), WIDE),
    old("carried", "2.1", lambda x: ow.reverse(x, [0]), bools(5)),
    old(
        "computed_wider",
        "2.12",
        lambda x, y: m.floordiv(x, y),
        np.array([7, -7, 9], np.int16),
        np.array([2, 2, -4], np.int16),
    ),
]


@pytest.mark.parametrize(("row", "rule", "runtime"), ROWS)
def test_older_forms_run_and_agree(row, rule, runtime, capsys):
    with flags.override(show="passes"):
        content = converter(row.concrete(), target_spec=ow.lite.TargetSpec(runtime=runtime)).convert()
    assert re.search(rf"^  {rule} ", capsys.readouterr().err, re.M), "another rule did it"
    needed = versions.runtime_key(versions.min_runtime_of_model(Model.read(content)))
    limit = versions.runtime_key(runtime)
    assert needed[: len(limit)] <= limit
    assert_same(official(content, row.inputs), eager(row), row.rtol)
    assert_same(ours(content, row.inputs), eager(row), row.rtol)


def rows_of_one(name, runtime, *inputs, **attrs):
    """A row whose graph is a single operator of the dialect, for those that come out of patterns only."""
    return pytest.param(name, runtime, inputs, attrs, id=f"{name}-{runtime}")


@pytest.mark.parametrize(
    ("name", "runtime", "inputs", "attrs"),
    [
        rows_of_one("RELU_0_TO_1", "2.9", f32(20) * 2),
        rows_of_one("SQUARE", "1.11", f32(20)),
        rows_of_one(
            "FULLY_CONNECTED",
            "1.15",
            f32(2, 3, 4),
            f32(5, 4),
            None,
            keep_num_dims=True,
            fused_activation_function="RELU",
        ),
        rows_of_one("BUCKETIZE", "2.7", f32(3, 5), boundaries=(-1.0, 0.0, 0.5)),
        rows_of_one("DYNAMIC_UPDATE_SLICE", "2.8", f32(5, 2, 3), f32(1, 2, 3), np.array([3, 0, 0], np.int32)),
        rows_of_one("DYNAMIC_UPDATE_SLICE", "2.8", f32(5, 4), f32(2, 3), np.array([9, 1], np.int32)),
        rows_of_one("DYNAMIC_UPDATE_SLICE", "2.8", ints(6), ints(2, low=50, high=60), np.array([-1], np.int32)),
        rows_of_one("DYNAMIC_UPDATE_SLICE", "2.16", f32(6), f32(2), np.array([2], np.int64)),
    ],
)
def test_older_forms_of_one_operator(name, runtime, inputs, attrs):
    def model(graph):
        signature = GraphSignature("s", {v.name: i for i, v in enumerate(graph.inputs)}, {"y": 0})
        return export(LiteModule([graph], [signature])).to_bytes()

    operands = [x for x in inputs if x is not None]
    arguments = [Value(f"x{i}", ow.TensorSpec(x.shape, x.dtype)) for i, x in enumerate(operands)]
    low = LiteRewriter(Graph("main", arguments, (), ()))
    values = iter(arguments)
    y = low.emit(name, *(None if x is None else next(values) for x in inputs), **attrs)
    whole = Graph("main", arguments, [*low.constants.values(), *low.nodes], [y])
    content = model(downlevel(whole, runtime))
    assert name not in op_names(content) or name == "FULLY_CONNECTED" or runtime == "2.16"
    limit = versions.runtime_key(runtime)
    assert versions.runtime_key(versions.min_runtime_of_model(Model.read(content)))[: len(limit)] <= limit
    expected = official(model(whole), operands)
    assert_same(official(content, operands), expected, 1e-6)
    assert_same(ours(content, operands), expected, 1e-6)


def test_every_rule_has_a_row():
    used = {row.values[1] for row in ROWS} | ALONE
    assert {rule.name for rules in DOWNLEVEL_RULES.values() for rule in rules} == used


def test_what_has_no_older_form_is_named_with_its_line():
    @ow.function(input_signature=[ow.TensorSpec([4], "int64")])
    def add(x):
        return x + x

    settings = {"target_spec": ow.lite.TargetSpec(runtime="2.5")}
    with pytest.raises(ConverterError, match=r"ADD version 4 needs 2\.6\.0: 'add.*test_convert_downlevel"):
        converter(add.get_concrete_function(), **settings).convert()


def test_what_no_run_time_is_known_to_have_is_named():
    x = Value("x", ow.TensorSpec([3]))
    inner = Value("x", ow.TensorSpec([3]))
    low = LiteRewriter(Graph("main", [x], (), ()))
    low.emit_many("CALL", (x,), body=Graph("inner", [inner], (), [inner]))
    graph = Graph("main", [x], low.nodes, low.nodes[-1].outputs)
    with pytest.raises(ConverterError, match="CALL version 1 needs one newer than is known here"):
        check_runtime([graph], "2.17")
