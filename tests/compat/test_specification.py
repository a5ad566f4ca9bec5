"""The catalogue as data: all that is relied on is in it, nothing is lost, and it is the same in every process."""

from __future__ import annotations

import hashlib
import json
import math
import os
import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opwright as ow
from opwright.graph import parse, same
from opwright.ops import attributes, registry
from opwright.ops.spec_values import implies, plain, value_of
from opwright.ops.specification import document, operators_of
from thorough import examples

# ---- what is in it --------------------------------------------------------------------------------------------------


def test_the_catalogue_is_what_json_holds() -> None:
    spec = ow.ops.spec()
    assert json.loads(json.dumps(spec, allow_nan=False)) == spec
    assert list(spec) == sorted(registry.catalogue())
    assert len(spec) >= 386
    conv = spec["Conv2D"]
    assert [i["name"] for i in conv["inputs"]] == ["input", "filters"]
    assert {"float32", "float64"} <= set(conv["inputs"][0]["dtypes"])
    assert conv["inputs"][0]["ranks"] == [4]
    padding = next(a for a in conv["attrs"] if a["name"] == "padding")
    assert (padding["required"], padding["condition"]) == (True, ["one_of", "SAME", "VALID", "EXPLICIT"])
    assert (spec["Greater"]["gradient"], conv["gradient"]) == ("empty", "rule")


def test_it_is_the_same_in_every_process() -> None:
    """Nothing in it depends on hash seeds or addresses."""
    digest = "hashlib.sha256(json.dumps(ow.ops.spec()).encode()).hexdigest()"
    program = f"import opwright as ow, json, hashlib; print({digest})"
    here = hashlib.sha256(json.dumps(ow.ops.spec()).encode()).hexdigest()
    there = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": "77"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert there.stdout.strip() == here


@ow.operator(version=3)
class SpecifiedAll:
    """One of everything that a specification says.

    .. math:: y = x
    """

    x = ow.Input(ow.floating, rank=(1, 2))
    w = ow.Input(ow.floating, like="x", optional=True, since=3)
    y = ow.Output(like="x")
    kept = ow.Output(dtype="int32", intermediate=True, since=2)
    low = ow.Attr(float, default=-math.inf, check=ow.attr.at_most(0.0))
    none = ow.Attr(float, default=math.nan)
    raw = ow.Attr(bytes, default=b"\x00\xff")
    kind = ow.Attr(ow.DType, default="bfloat16")
    shape = ow.Attr(ow.TensorShape, default=[None, 2])
    any_shape = ow.Attr(ow.TensorShape, default=None)
    array = ow.Attr(np.ndarray, default=np.float64([[math.nan, -0.0], [1e-320, math.inf]]))
    words = ow.Attr(np.ndarray, default=["a\x00", "b"])
    small = ow.Attr(np.ndarray, default=np.array([1.5, 2.5], ml_dtypes.bfloat16))
    rows = ow.Attr([float], default=[0.1, math.inf])
    rule = ow.Attr(object, default=math.hypot)
    thing = ow.Attr(object, default=object())
    late = ow.Attr(int, default=3, since=3, check=ow.attr.between(0, 9) & ow.attr.satisfies("odd", lambda v: v % 2))
    inplace = {"y": "x"}
    no_need_buffer = ("x",)
    shape_only = ("w",)
    lod = "vanishes"
    effect = "random"
    gradient = None

    def infer(op):
        return op.x.spec, ow.TensorSpec([], "int32")

    def compute(op, x, w):
        return x, np.int32(0)


def test_all_of_a_definition_is_in_it() -> None:
    op = ow.ops.spec([SpecifiedAll])["SpecifiedAll"]
    assert json.loads(json.dumps(op, allow_nan=False)) == op
    assert {k: op[k] for k in ("version", "effect", "gradient", "lod", "inplace", "no_need_buffer", "shape_only")} == {
        "version": 3,
        "effect": "random",
        "gradient": "empty",
        "lod": "vanishes",
        "inplace": {"y": "x"},
        "no_need_buffer": ["x"],
        "shape_only": ["w"],
    }
    x, w = op["inputs"]
    assert (x["ranks"], x["optional"], w["optional"], w["like"], w["since"]) == ([1, 2], False, True, "x", 3)
    y, kept = op["outputs"]
    assert (y["like"], kept["dtype"], kept["intermediate"], kept["since"]) == ("x", "int32", True, 2)
    attrs = {a["name"]: a for a in op["attrs"]}
    assert attrs["late"]["condition"] == ["all", ["between", 0, 9], ["words", "odd"]]
    assert attrs["late"]["check"] == "between 0 and 9 and odd"
    assert attrs["low"]["default"] == {"float": "-inf"}
    assert attrs["thing"]["default"] == {"opaque": "builtins.object"}
    assert "0x" not in json.dumps(op)  # no address


def test_defaults_come_back_as_they_were() -> None:
    attrs = json.loads(json.dumps(ow.ops.spec([SpecifiedAll])))["SpecifiedAll"]["attrs"]
    for attr in attrs:
        if attr["name"] == "thing":
            with pytest.raises(ow.errors.InvalidArgumentError, match="opaque"):
                value_of(attr["default"])
            continue
        assert_same(value_of(attr["default"]), SpecifiedAll.attr_defs[attr["name"]].default)


def assert_same(found: Any, wanted: Any) -> None:
    """Equal by type and to the bit."""
    assert type(found) is type(wanted)
    if isinstance(wanted, np.ndarray):
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        assert found.tolist() == wanted.tolist() if wanted.dtype == object else found.tobytes() == wanted.tobytes()
    elif isinstance(wanted, ow.TensorShape):
        assert found.dims == wanted.dims
    else:
        assert repr(found) == repr(wanted)


floats = st.floats() | st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.7976931348623157e308])
leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | floats
    | st.text()
    | st.binary()
    | st.complex_numbers()
    | st.sampled_from([ow.float32, ow.bfloat16, ow.string, ow.TensorShape(None), ow.TensorShape([None, 3])])
)


@given(st.recursive(leaves, lambda inner: st.lists(inner, max_size=4).map(tuple), max_leaves=10))
@settings(max_examples=examples(100), deadline=None)
def test_values_come_back_as_they_were(value: Any) -> None:
    assert_same_nested(value_of(json.loads(json.dumps(plain(value), allow_nan=False))), value)


def assert_same_nested(found: Any, wanted: Any) -> None:
    if isinstance(wanted, tuple):
        assert type(found) is tuple
        assert len(found) == len(wanted)
        for f, w in zip(found, wanted):
            assert_same_nested(f, w)
    else:
        assert_same(found, wanted)


def test_graphs_as_values() -> None:
    graph = parse("graph g(x: f32[2]) {\n  y: f32[2] = Atan(x)\n  return y\n}", registry.get)
    assert same(value_of(json.loads(json.dumps(plain(graph)))), graph)


@pytest.mark.parametrize(
    "found",
    [
        {},
        {"float": "one"},
        {"bytes": "%"},
        {"dtype": "float33"},
        {"shape": "x"},
        {"array": {}},
        {"array": {"dtype": "float32", "shape": [3], "data": "AAAA"}},
        {"graph": "graph"},
        {"python": "os.no_such"},
        {"complex": ["1"]},
        {"what": 1},
        {"opaque": "x"},
        {"a": 1, "b": 2},
        {"dict": [1]},
    ],
)
def test_data_that_is_no_value(found: Any) -> None:
    with pytest.raises(ow.errors.InvalidArgumentError, match="no value of an attribute"):
        value_of(found)


# ---- whose operators ------------------------------------------------------------------------------------------------


def test_users_operators_on_request() -> None:
    assert "SpecifiedAll" not in ow.ops.spec()
    assert set(ow.ops.spec(users=True)) >= {"SpecifiedAll", "Atan"}
    assert list(ow.ops.spec([SpecifiedAll, "Atan"])) == ["Atan", "SpecifiedAll"]
    with pytest.raises(KeyError, match="no operator is named"):
        ow.ops.spec(["NoSuchThing"])


def test_documents() -> None:
    made = json.loads(json.dumps(document(ow.ops.spec())))
    assert made["format"] == 1
    assert operators_of(made) == ow.ops.spec()
    assert ow.ops.compatibility(made, ow.ops.spec()) == []


# ---- which condition is stricter ------------------------------------------------------------------------------------

CHECKS = [
    ow.attr.at_least(0),
    ow.attr.at_least(1),
    ow.attr.greater_than(0),
    ow.attr.greater_than(-1),
    ow.attr.at_most(5),
    ow.attr.less_than(5),
    ow.attr.less_than(6),
    ow.attr.between(0, 5),
    ow.attr.between(1, 4),
    ow.attr.between(2, 2),
    ow.attr.one_of(1, 2),
    ow.attr.one_of(1, 2, 3),
    ow.attr.one_of(0),
    ow.attr.at_least(1) & ow.attr.at_most(4),
    ow.attr.one_of(1, 2, 3) & ow.attr.greater_than(1),
    ow.attr.at_least(1) & ow.attr.at_least(3),
    ow.attr.finite(),
]


@pytest.mark.parametrize("whole", [True, False])
def test_the_stricter_condition_is_the_one_whose_values_pass_both(whole: bool) -> None:
    """By definition: every value tried that passes the old check passes the new one."""
    values = [*range(-9, 10)] if whole else [*np.arange(-9, 9.5, 0.25).tolist(), math.inf, -math.inf, math.nan]
    for old in (None, *CHECKS):
        for new in (None, *CHECKS):
            passed = [v for v in values if old is None or old.holds(v)]
            wanted = all(new is None or new.holds(v) for v in passed)
            found = implies(*(None if c is None else plain(c.canonical_form) for c in (old, new)), whole)
            if whole and new is not None and new.form == ("finite",):
                continue  # every integer is finite; the rule does not know
            if whole and found is False and wanted:  # a range of integers and a list of them: said to be tightened
                assert "one_of" in str(new.form)
                continue
            assert found is wanted, (old and old.wanted, new and new.wanted)


def form(check: attributes.Check | None) -> Any:
    return None if check is None else plain(check.canonical_form)


even = ow.attr.satisfies("even", lambda v: v % 2 == 0)


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        (ow.attr.one_of("a", "b"), ow.attr.one_of("b", "a", "c"), True),
        (ow.attr.one_of("a", "b", "c"), ow.attr.one_of("a", "b"), False),
        (ow.attr.one_of(ow.int32), ow.attr.one_of(ow.int32, ow.int64), True),
        (ow.attr.one_of(1), ow.attr.one_of(True), False),
        (ow.attr.length(2), ow.attr.length(2), True),
        (ow.attr.length(2), ow.attr.length(3), False),
        (None, ow.attr.length(3), False),
        (ow.attr.length(2), None, True),
        (ow.attr.each(ow.attr.at_least(1)), ow.attr.each(ow.attr.at_least(0)), True),
        (ow.attr.each(ow.attr.at_least(0)), ow.attr.each(ow.attr.at_least(1)), False),
        (ow.attr.each(ow.attr.at_least(1)) & ow.attr.length(2), ow.attr.each(ow.attr.at_least(1)), True),
        (ow.attr.each(ow.attr.at_least(1)), ow.attr.each(ow.attr.at_least(1)) & ow.attr.length(2), False),
        (even, even, True),
        (even, None, True),
        (None, even, False),
        (even, ow.attr.satisfies("odd", lambda v: v % 2), None),
        (even, ow.attr.at_least(0), None),
        (even & ow.attr.at_least(1), even & ow.attr.at_least(0), True),
        (ow.attr.at_least(0), even, None),
        (ow.attr.between(0, math.inf), ow.attr.finite(), False),
        (ow.attr.between(0, 1), ow.attr.finite(), True),
    ],
)
def test_conditions_of_other_kinds(old: Any, new: Any, wanted: bool | None) -> None:
    assert implies(form(old), form(new)) is wanted
