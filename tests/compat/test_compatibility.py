"""Which changes of an operator's specification are found and which are allowed: each alone, and edits at random."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opwright as ow
from thorough import examples


def attr(name: str, **more: Any) -> dict[str, Any]:
    check = {"check": " ".join(map(str, more["condition"]))} if more.get("condition") else {}
    return {
        "name": name,
        "type": "int",
        "required": False,
        "default": 1,
        "since": 1,
        "check": None,
        "condition": None,
        **check,
        **more,
    }


def tensor(name: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "dtypes": ["float32", "float64"],
        "like": None,
        "optional": False,
        "repeated": False,
        "mixed": False,
        "ranks": None,
        "lod": None,
        "lod_of": None,
        "kinds": None,
        "since": 1,
        **more,
    }


def output(name: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "like": "x",
        "dtype": None,
        "repeated": False,
        "intermediate": False,
        "lod_of": None,
        "rows": True,
        "kind": None,
        "since": 1,
        **more,
    }


OLD: dict[str, Any] = {
    "Op": {
        "version": 1,
        "inputs": [tensor("x", ranks=[2, 3]), tensor("w", optional=True)],
        "outputs": [output("y"), output("z")],
        "attrs": [
            attr("n", condition=["at_least", 0]),
            attr("mode", type="str", default="a"),
            attr("must", required=True, default=None),
        ],
        "effect": None,
        "inplace": {},
        "views": {},
        "no_need_buffer": [],
        "shape_only": [],
        "lod": "unchanged",
        "gradient": "rule",
        "control": False,
        "elementwise": False,
        "kinds": "as declared",
        "on_rows": False,
    }
}

NO = "not allowed"
OK = "allowed"
# name of the change, what is done to the new operator, whether it may, words of the report
ROWS: list[tuple[str, Callable[[Any], Any], str, str]] = [
    # the rows of the facts, 13.2: a slot is an input or an output, dispensable is optional (inputs), intermediate
    # (outputs), duplicable is repeated
    (
        "input added, optional",
        lambda o: o.update(version=2, inputs=[*o["inputs"], tensor("b", optional=True, since=2)]),
        OK,
        "input 'b' is new, optional",
    ),
    (
        "input added, required",
        lambda o: o.update(version=2, inputs=[*o["inputs"], tensor("b", since=2)]),
        NO,
        "input 'b' is new and not optional",
    ),
    ("input deleted", lambda o: o["inputs"].pop(), NO, "input 'w' is gone"),
    (
        "output added, intermediate",
        lambda o: o.update(version=2, outputs=[*o["outputs"], output("k", intermediate=True, since=2)]),
        OK,
        "output 'k' is new, intermediate",
    ),
    (
        "output added",
        lambda o: o.update(version=2, outputs=[*o["outputs"], output("k", since=2)]),
        NO,
        "output 'k' is new and not intermediate",
    ),
    ("output deleted", lambda o: o["outputs"].pop(), NO, "output 'z' is gone"),
    ("optional flips, tightened", lambda o: o["inputs"][1].update(optional=False), NO, "optional was true, is false"),
    ("optional flips, relaxed", lambda o: o["inputs"][0].update(optional=True), NO, "optional was false, is true"),
    ("repeated flips", lambda o: o["inputs"][0].update(repeated=True), NO, "repeated was false, is true"),
    ("repeated output", lambda o: o["outputs"][0].update(repeated=True), NO, "repeated was false, is true"),
    ("intermediate flips", lambda o: o["outputs"][1].update(intermediate=True), NO, "intermediate was false, is true"),
    (
        "attribute added with a default",
        lambda o: o.update(version=2, attrs=[*o["attrs"], attr("k", since=2)]),
        OK,
        "attribute 'k' is new, default 1",
    ),
    (
        "attribute added, required",
        lambda o: o.update(version=2, attrs=[*o["attrs"], attr("k", required=True, default=None, since=2)]),
        NO,
        "attribute 'k' is new and has no default",
    ),
    ("attribute deleted", lambda o: o["attrs"].pop(0), NO, "attribute 'n' is gone"),
    ("attribute retyped", lambda o: o["attrs"][0].update(type="float"), NO, "type was 'int', is 'float'"),
    ("attribute with another default", lambda o: o["attrs"][0].update(default=2), NO, "default was 1, is 2"),
    (
        "attribute with default becomes required",
        lambda o: o["attrs"][0].update(required=True, default=None),
        NO,
        "default was 1, is none (required)",
    ),
    (
        "required attribute gets a default",
        lambda o: o["attrs"][2].update(required=False, default=3),
        NO,
        "default was none (required), is 3",
    ),
    (
        "required attribute gets None as default",
        lambda o: o["attrs"][2].update(required=False),
        NO,
        "default was none (required), is null",
    ),
    # renaming is deleting and adding; order is position
    ("input renamed", lambda o: o["inputs"][0].update(name="input"), NO, "renamed to 'input'"),
    ("attribute renamed", lambda o: o["attrs"][1].update(name="kind"), NO, "renamed to 'kind'"),
    ("output renamed", lambda o: o["outputs"][0].update(name="out"), NO, "is gone"),
    ("inputs swapped", lambda o: o["inputs"].reverse(), NO, "the order of inputs"),
    ("outputs swapped", lambda o: o["outputs"].reverse(), NO, "the order of outputs"),
    ("attributes swapped", lambda o: o["attrs"].reverse(), NO, "the order of attributes"),
    (
        "new input between the old",
        lambda o: o.update(version=2, inputs=[o["inputs"][0], tensor("b", optional=True, since=2), o["inputs"][1]]),
        NO,
        "stands before older inputs",
    ),
    # checkpoints, 13.3: what is new says since when
    ("input added without since", lambda o: o["inputs"].append(tensor("b", optional=True)), OK, "give it since=2"),
    ("attribute added without since", lambda o: o["attrs"].append(attr("k")), OK, "give it since=2"),
    (
        "output added without since",
        lambda o: o["outputs"].append(output("k", intermediate=True)),
        OK,
        "give it since=2",
    ),
    ("since changed", lambda o: (o.update(version=2), o["attrs"][0].update(since=2)), NO, "since was 1, is 2"),
    ("version rose", lambda o: o.update(version=3), OK, "version rose from 1 to 3"),
    ("version fell", lambda o: o.update(version=0), NO, "version fell"),
    # what is taken
    ("fewer dtypes", lambda o: o["inputs"][0]["dtypes"].pop(), NO, "takes float64 no more"),
    ("more dtypes", lambda o: o["inputs"][0]["dtypes"].append("int32"), OK, "takes int32 too"),
    ("dtypes in another order", lambda o: o["inputs"][0]["dtypes"].reverse(), "", ""),
    ("fewer ranks", lambda o: o["inputs"][0].update(ranks=[2]), NO, "takes 3 no more"),
    ("more ranks", lambda o: o["inputs"][0].update(ranks=[2, 3, 4]), OK, "takes 4 too"),
    ("any rank", lambda o: o["inputs"][0].update(ranks=None), OK, "takes any too"),
    ("ranks limited", lambda o: o["inputs"][1].update(ranks=[1]), NO, "takes others no more"),
    ("tied to another input", lambda o: o["inputs"][1].update(like="x"), NO, "like was null, is 'x'"),
    ("untied", lambda o: o["outputs"][0].update(like=None, dtype="int32"), NO, "dtype was null, is 'int32'"),
    ("mixed dtypes allowed", lambda o: o["inputs"][1].update(mixed=True), OK, "mixed was false"),
    ("offsets of another", lambda o: o["inputs"][1].update(lod_of="x"), NO, "lod_of was null"),
    ("kinds limited", lambda o: o["inputs"][0].update(kinds=["dense"]), NO, "kinds: takes others no more"),
    ("another kind", lambda o: o["outputs"][0].update(kind="rows"), NO, "kind was null, is 'rows'"),
    ("no rows", lambda o: o["outputs"][0].update(rows=False), NO, "rows was true, is false"),
    ("levels limited", lambda o: o["inputs"][0].update(lod=[1]), NO, "lod: takes others no more"),
    # [R]: checks
    (
        "check tightened",
        lambda o: o["attrs"][0].update(condition=["at_least", 1], check="at least 1"),
        NO,
        "check tightened: was at_least 0, is at least 1",
    ),
    (
        "check loosened",
        lambda o: o["attrs"][0].update(condition=["at_least", -1], check="at least -1"),
        OK,
        "check loosened",
    ),
    ("check gone", lambda o: o["attrs"][0].update(condition=None, check=None), OK, "check loosened"),
    (
        "check new",
        lambda o: o["attrs"][1].update(condition=["one_of", "a", "b"], check="a or b"),
        NO,
        "check tightened",
    ),
    (
        "check in other words",
        lambda o: o["attrs"][0].update(condition=["words", "even"], check="even"),
        NO,
        "which is stricter cannot be told",
    ),
    ("the same check otherwise", lambda o: o["attrs"][0].update(condition=["greater_than", -1], check="> -1"), "", ""),
    # the operator itself
    ("gradient gone", lambda o: o.update(gradient="none"), NO, "the gradient is gone"),
    ("gradient empty", lambda o: o.update(gradient="empty"), NO, "the gradient is gone"),
    ("effect new", lambda o: o.update(effect="write"), NO, "effect was null, is 'write'"),
    ("LoD changed", lambda o: o.update(lod="vanishes"), NO, "lod was 'unchanged', is 'vanishes'"),
    ("control", lambda o: o.update(control=True), NO, "control was false"),
    ("in place", lambda o: o.update(inplace={"y": "x"}), OK, "inplace was {}"),
    ("memory", lambda o: o.update(no_need_buffer=["x"]), OK, "no_need_buffer"),
    ("sparse rows", lambda o: o.update(on_rows=True), OK, "on_rows was false"),
    ("kinds by the call", lambda o: o.update(kinds="by the call"), NO, "kinds was 'as declared'"),
    ("element-wise", lambda o: o.update(elementwise=True), OK, "elementwise was false"),
    ("a field of later versions", lambda o: o.update(layout="NHWC"), NO, "layout was null, is 'NHWC'"),
    ("a field of a part of later versions", lambda o: o["inputs"][0].update(layout=1), NO, "layout was null"),
    ("nothing", lambda o: None, "", ""),
]


@pytest.mark.parametrize(("change", "verdict", "words"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_each_change_alone(change: Callable[[Any], Any], verdict: str, words: str) -> None:
    new = copy.deepcopy(OLD)
    change(new["Op"])
    result = ow.ops.compatibility(OLD, new)
    assert bool(result) == bool(verdict)
    assert all(
        c.operator == "Op" and c.what and c.rule and c.part in ("operator", "input", "output", "attribute")
        for c in result
    )
    if verdict:
        assert ("allowed" if all(c.allowed for c in result) else "not allowed") == verdict
        assert any(words in c.what and (c.allowed == (verdict == OK)) for c in result), result


@pytest.mark.parametrize(
    ("old", "new", "allowed"),
    [("none", "rule", True), ("none", "empty", True), ("empty", "rule", False), ("empty", "none", False)],
)
def test_gradients_that_come(old: str, new: str, allowed: bool) -> None:
    a, b = copy.deepcopy(OLD), copy.deepcopy(OLD)
    a["Op"]["gradient"], b["Op"]["gradient"] = old, new
    assert [c.allowed for c in ow.ops.compatibility(a, b)] == [allowed]


@pytest.mark.parametrize("default", [False, 0, "", [], None, 0.0])
def test_empty_defaults_are_defaults(default: Any) -> None:
    new = copy.deepcopy(OLD)
    new["Op"]["version"] = 2
    new["Op"]["attrs"].append(attr("k", default=default, since=2, type="object"))
    assert all(c.allowed for c in ow.ops.compatibility(OLD, new))


@pytest.mark.parametrize(("old", "new"), [(0, False), (0, 0.0), (0.0, -0.0), ("", []), (None, 0), ([1], [1.0])])
def test_defaults_that_only_look_equal(old: Any, new: Any) -> None:
    a, b = copy.deepcopy(OLD), copy.deepcopy(OLD)
    a["Op"]["attrs"][1].update(type="object", default=old)
    b["Op"]["attrs"][1].update(type="object", default=new)
    assert [c.rule for c in ow.ops.compatibility(a, b)] == ["default"]


def test_an_operator_goes_or_comes() -> None:
    more = {**OLD, "Other": OLD["Op"]}
    assert [(c.operator, c.allowed) for c in ow.ops.compatibility(OLD, more)] == [("Other", True)]
    assert [(c.operator, c.allowed) for c in ow.ops.compatibility(more, OLD)] == [("Other", False)]


def test_changes_come_by_operator_then_inputs_outputs_attributes() -> None:
    old = {"B": OLD["Op"], "A": OLD["Op"]}
    new = {name: copy.deepcopy(op) for name, op in old.items()}
    for op in new.values():
        op.update(version=2, outputs=[*op["outputs"][:1]], attrs=op["attrs"][1:], inputs=op["inputs"][:1])
    order = ["operator", "input", "output", "attribute"]
    assert [(c.operator, c.part) for c in ow.ops.compatibility(old, new)] == [(n, p) for n in "AB" for p in order]


def test_fields_of_older_files_have_their_defaults() -> None:
    """A file from before a field was there says nothing of it; what it meant is the field's default."""
    short = copy.deepcopy(OLD)
    for field in ("views", "shape_only", "control", "elementwise"):
        del short["Op"][field]
    for part in short["Op"]["inputs"]:
        del part["mixed"], part["lod"], part["lod_of"], part["since"]
    assert ow.ops.compatibility(short, OLD) == []


def test_what_a_change_holds() -> None:
    new = copy.deepcopy(OLD)
    new["Op"]["attrs"][0]["default"] = 7
    (change,) = ow.ops.compatibility(OLD, new)
    assert (change.operator, change.part, change.name, change.rule) == ("Op", "attribute", "n", "default")
    assert (change.old, change.new, change.allowed) == (1, 7, False)
    assert str(change) == "! Op: attribute 'n' default was 1, is 7"


# ---- edits at random ------------------------------------------------------------------------------------------------


def _append(key: str, part: Callable[..., Any], **more: Any) -> Callable[[Any, int], None]:
    def edit(op: Any, n: int) -> None:
        op["version"] += 1
        op[key].append(part(f"new{op['version']}", since=op["version"], **more))

    return edit


ALLOWED = [
    _append("inputs", tensor, optional=True),
    _append("outputs", output, intermediate=True),
    _append("attrs", attr),
    lambda op, n: op["inputs"][n % 2]["dtypes"].append(f"dtype{len(op['inputs'][n % 2]['dtypes'])}"),
    lambda op, n: op["inputs"][0].update(ranks=None),
    lambda op, n: op["inplace"].update(y="x"),
    lambda op, n: op["attrs"][0].update(condition=None, check=None),
    lambda op, n: op.update(version=op["version"] + n + 1),
]
FORBIDDEN = [
    row[1]
    for row in ROWS
    if row[2] == NO
    and "version fell" not in row[0]
    and "since" not in row[0]
    and "check" not in row[0]
    and "rank" not in row[0]
    and "between" not in row[0]
]

edits = st.lists(st.tuples(st.sampled_from(ALLOWED), st.integers(0, 9)), max_size=8)


@given(edits)
@settings(max_examples=examples(60), deadline=None)
def test_allowed_edits_stay_allowed_together(chosen: Any) -> None:
    new = copy.deepcopy(OLD)
    for edit, n in chosen:
        edit(new["Op"], n)
    assert all(c.allowed for c in ow.ops.compatibility(OLD, new))


@given(edits, st.sampled_from(FORBIDDEN))
@settings(max_examples=examples(60), deadline=None)
def test_one_forbidden_edit_is_found_among_allowed_ones(chosen: Any, forbidden: Any) -> None:
    base = copy.deepcopy(OLD)
    forbidden(base["Op"])
    new = copy.deepcopy(base)
    for edit, n in chosen:
        edit(new["Op"], n)
    assert not all(c.allowed for c in ow.ops.compatibility(OLD, new))


# ---- data that is none ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (None, "operators by name"),
        ([], "operators by name"),
        ({"Op": 3}, "an object"),
        ({"Op": {}}, "Op.version"),
        ({"Op": {**OLD["Op"], "version": True}}, "Op.version"),
        ({"Op": {**OLD["Op"], "inputs": {}}}, "Op.inputs"),
        ({"Op": {**OLD["Op"], "inputs": ["x"]}}, "Op.inputs[0]"),
        ({"Op": {**OLD["Op"], "inputs": [tensor("x", dtypes="float32")]}}, "Op.inputs[0].dtypes"),
        ({"Op": {**OLD["Op"], "inputs": [tensor("x"), tensor("x")]}}, "two parts of one name"),
        ({"Op": {**OLD["Op"], "attrs": [attr("y")]}}, "two parts of one name"),
        ({"Op": {**OLD["Op"], "attrs": [attr("y", condition=[1])]}}, "condition"),
        ({"Op": {**OLD["Op"], "inplace": {"y": 1}}}, "inplace"),
        ({"format": 1}, "operators by name"),
        ({"format": 0, "operators": None}, "operators by name"),
    ],
)
def test_what_is_no_specification(broken: Any, words: str) -> None:
    for pair in ((broken, OLD), (OLD, broken)):
        with pytest.raises(ow.errors.InvalidArgumentError) as caught:
            ow.ops.compatibility(*pair)
        assert words in str(caught.value)
        assert "specification" in str(caught.value)


def test_a_newer_format_is_refused() -> None:
    with pytest.raises(ow.errors.UnimplementedError, match=r"newer format(.|\n)*format 9, made by opwright 7\.0"):
        ow.ops.compatibility({"format": 9, "opwright": "7.0", "operators": {}}, OLD)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["Op", "inputs", "format", "operators", "name", "version", "words", "x"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(
    values,
    st.lists(
        st.sampled_from(
            ["Op", "inputs", "outputs", "attrs", 0, 1, "condition", "default", "dtypes", "ranks", "version", "inplace"]
        ),
        max_size=4,
    ),
)
@settings(max_examples=examples(150), deadline=None)
def test_hostile_data_is_refused_or_compared(value: Any, path: list[Any]) -> None:
    """Anything anywhere in a specification: an error of ours, or a list of changes; nothing else is raised."""
    root = {"": copy.deepcopy(OLD)}
    at: Any = root
    key: Any = ""
    for step in path:
        if (isinstance(at[key], dict) and step in at[key]) or (isinstance(at[key], list) and step in (0, 1)):
            at, key = at[key], step
    at[key] = value
    for pair in ((root[""], OLD), (OLD, root[""])):
        try:
            changes = ow.ops.compatibility(*pair)
        except (ow.errors.InvalidArgumentError, ow.errors.UnimplementedError):
            continue
        json.dumps([str(c) for c in changes])


def test_the_catalogue_agrees_with_itself() -> None:
    assert ow.ops.compatibility(ow.ops.spec(), json.loads(json.dumps(ow.ops.spec()))) == []
