"""Where operators that move or make elements meet sizes of 0, places out of range and odd operands.

Oracle: the official reference kernels; for refusals, what they refuse too.
"""

from __future__ import annotations

import numpy as np
import pytest
from drawn import Draw, Drawn, T, const
from drawn import feeds as drawn_feeds
from drawn import model_of as drawn_model
from one_operator import Const, bools, case, f32, feeds, model_of, official, ours, output_types

import opwright as ow
from opwright.core.errors import InvalidArgumentError, OpError
from opwright.lite import ops as operators

i64 = lambda *v: Const(list(v), np.int64)  # noqa: E731
none = lambda *shape: Const(np.zeros(shape, np.int32))  # noqa: E731
_two = {"new_shape": [2, 3]}

TAKEN = {
    "RESHAPE": [
        case(f32(0), Const([0, -1])),
        case(f32(0, 3), Const([2, -1, 0])),
        case(f32(0), Const([-1, 3])),
        case(f32(6), Const(6), **_two),
        case(f32(6), Const([[3, 2]]), **_two),
        case(f32(6), i64(3, 2), **_two),
        case(f32(1), new_shape=[0]),
    ],
    "SCATTER_ND": [
        case(none(2, 0), f32(2, 4), Const([4])),
        case(none(3, 0), bools(3, 2, 2), Const([2, 2])),
        case(none(0, 1), f32(0, 3), Const([4, 3])),
    ],
    "SLICE": [case(f32(3), Const([3]), Const([0]))],
    "STRIDED_SLICE": [
        case(f32(5), Const([b]), Const([e]), Const([s]), offset=True, **masks)
        for b, e, s, masks in (
            (1, 2, 1, {}),
            (-9, 2, 1, {}),
            (4, -2, -1, {}),
            (1, -1, 1, {}),
            (9, -2, -1, {}),
            (1, 2, 1, {"end_mask": 1}),
            (3, 2, 1, {"begin_mask": 1}),
            (2, 9, 1, {"shrink_axis_mask": 1}),
        )
    ],
    "SPLIT": [case(i64(-1), f32(2, 4), num_splits=2), case(Const(1, np.uint32), f32(2, 4), num_splits=2)],
    "SPLIT_V": [case(f32(2, 5), Const([2, -1]), i64(1), num_splits=2)],
    "PAD": [case(f32(2), Const([[3, 1]], kind)) for kind in (np.int8, np.int16, np.bool_)],
    "RANGE": [
        case(*(Const(v, np.float32) for v in (a, b, c)))
        for a, b, c in ((0, 1, 0.1), (0, 0.9, 0.3), (1e8, 1e8 + 20, 3), (0, 1, 1e-3), (9, -9, -0.7))
    ],
    **{
        f"UNSORTED_SEGMENT_{kind}": [
            case(np.float32([np.nan, 1, np.inf, -np.inf, 2, np.nan, np.nan]), Const([0, 0, 1, 1, 2, 2, 3]), Const(5)),
            case(np.int32([2**31 - 1, 2**31 - 1, -(2**31), -(2**31)]), Const([0, 0, 1, 1]), Const(3)),
        ]
        for kind in ("SUM", "PROD", "MAX", "MIN")
    },
}


@pytest.mark.parametrize(("name", "row"), [(n, r) for n, rows in TAKEN.items() for r in rows], ids=str)
def test_the_answer_is_the_official_one(name, row):
    pytest.importorskip("ai_edge_litert.interpreter")
    model = model_of(name, row, output_types(name, row))
    for actual, expected in zip(ours(model, feeds(row)), official(model, feeds(row)), strict=True):
        assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_array_equal(actual, expected)


REFUSED = {
    "STRIDED_SLICE": (case(f32(5), Const([1]), Const([5]), Const([1]), offset=True), "the slice leaves the input"),
    "GATHER": (case(f32(5), Const([-1])), "gather index out of bounds"),
    "RANGE": (case(np.float32(0), np.float32(np.nan), np.float32(1)), "the range has no end"),
    "MIRROR_PAD": (case(f32(3), Const([[3, 0]]), mode="REFLECT"), "must be less than the dimension size"),
    "TILE": (case(f32(2), Const([-1])), "multiples to be at least 0"),
    "UNSORTED_SEGMENT_SUM": (case(f32(2), Const([0, 1]), Const(-1)), "num_segments is negative"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("all_dynamic", [False, True], ids=["constant", "computed"])
def test_what_leaves_the_input_is_refused_by_name(name, all_dynamic):
    row, says = REFUSED[name]
    with pytest.raises(OpError, match=f"(?s){name}: .*{says}.*Node number 0 \\({name}\\)"):
        ours(model_of(name, row, ["FLOAT32"], all_dynamic), feeds(row, all_dynamic))


def test_indices_that_their_type_does_not_hold_are_refused():
    d = Draw(0, "FLOAT32")
    drawn = Drawn([d.t(1, 2**15), const(3)], [T("FLOAT32", ()), T("INT16", ())])
    with pytest.raises(InvalidArgumentError, match="TOPK_V2: TopK row size exceeds output index type range"):
        ours(drawn_model("TOPK_V2", drawn), drawn_feeds(drawn))


def _moved(d: Draw, x: T, *more: T, n: int = 1, **options: object) -> Drawn:
    return Drawn([x, *more], [T(x.type, (), x.scale * 2, x.zero) for _ in range(n)], options)


OTHER_SCALES = {
    "EXPAND_DIMS": lambda d: _moved(d, d.x(2, 3), const(1)),
    "MIRROR_PAD": lambda d: _moved(d, d.x(2, 3), const([1, 0], [0, 1]), mode="REFLECT"),
    "UNPACK": lambda d: _moved(d, d.x(2, 3), n=2, num=2),
    "PACK": lambda d: _moved(d, d.x(2, 3), values_count=1),
    "BATCH_TO_SPACE_ND": lambda d: _moved(d, d.x(4, 1, 1, 2), const(2, 2), const([0, 0], [0, 0])),
    "SPACE_TO_BATCH_ND": lambda d: _moved(d, d.x(1, 2, 2, 2), const(2, 2), const([0, 0], [0, 0])),
    "CONCATENATION": lambda d: _moved(d, d.x(2, 3), axis=0),
}


@pytest.mark.parametrize("name", OTHER_SCALES)
def test_elements_that_would_stand_for_other_numbers_are_refused(name):
    """As the official kernels of these operators refuse them."""
    drawn = OTHER_SCALES[name](Draw(3, "INT8"))
    with pytest.raises(InvalidArgumentError, match=r"tensor '[xy]0' \(INT8\) differs in scale or zero point"):
        ours(drawn_model(name, drawn), drawn_feeds(drawn))


class _Operand:
    """An operand as shape rules see it."""

    def __init__(self, shape: list[int | None], dtype: str, constant: list[int] | None = None) -> None:
        self.spec = ow.TensorSpec(shape, dtype)
        self.constant = None if constant is None else np.array(constant, self.spec.dtype.np)


def test_slices_of_unknown_sizes_have_no_known_size() -> None:
    """x[0:5] of a dimension that may be shorter than 5; masks, single places and whole dimensions stay known."""
    operator = operators.get("STRIDED_SLICE")
    rows = (
        ([None, 4], [0, 1], [5, 3], {}, [None, 2]),
        ([None, 4], [-1, 0], [0, 4], {"end_mask": 1}, [None, 4]),
        ([None, 4], [-1, 0], [0, 4], {"shrink_axis_mask": 1}, [4]),
        ([3, None], [0, 0], [2, 0], {"end_mask": 2}, [2, None]),
        ([3, None], [0, 0], [0, 2], {"new_axis_mask": 1, "offset": True}, [1, 2, None]),
    )
    for shape, begin, end, options, expected in rows:
        bounds = [_Operand([2], "int32", list(v)) for v in (begin, end, [1, 1])]
        (spec,) = operator.infer(operator.bind(options), [_Operand(shape, "float32"), *bounds])
        assert spec.shape.as_list() == expected, (shape, begin, end, options)
