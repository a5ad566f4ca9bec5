"""The catalogue as data, and which changes of it are allowed."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

import opwright as ow


def test_the_catalogue_is_what_json_holds() -> None:
    spec = ow.ops.spec()
    assert json.loads(json.dumps(spec)) == spec
    assert spec["Atan"]["inputs"][0]["name"] == "x"
    assert {"float32", "float64"} <= set(spec["MatMul"]["inputs"][0]["dtypes"])
    assert spec["Greater"]["gradient"] == "empty"
    assert len(spec) >= 120


def attr(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": "int", "required": False, "default": 1, "since": 1, "check": None, **more}


def tensor(name: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "dtypes": ["float32", "float64"],
        "like": None,
        "optional": False,
        "repeated": False,
        "ranks": None,
        **more,
    }


OLD = {
    "Op": {
        "version": 1,
        "inputs": [tensor("x"), tensor("w", optional=True)],
        "outputs": [{"name": "y", "like": "x", "dtype": None, "repeated": False, "intermediate": False}],
        "attrs": [attr("n"), attr("mode", type="str", default="a")],
        "effect": None, "inplace": {}, "no_need_buffer": [], "lod": "unchanged", "gradient": "rule",
    }
}  # fmt: skip

CHANGES: list[tuple[str, Callable[[Any], Any], bool | None]] = [
    # what is done to the new one, whether it may (None: no change)
    ("nothing", lambda op: None, None),
    ("attr with default and since", lambda op: (op.update(version=2), op["attrs"].append(attr("k", since=2))), True),
    ("attr with default, since not raised", lambda op: op["attrs"].append(attr("k")), False),
    ("attr required", lambda op: op["attrs"].append(attr("k", required=True, default=None, since=2)), False),
    ("attr gone", lambda op: op["attrs"].pop(), False),
    ("attr retyped", lambda op: op["attrs"][0].update(type="float"), False),
    ("attr with another default", lambda op: op["attrs"][0].update(default=2), False),
    ("input optional", lambda op: op["inputs"].append(tensor("b", optional=True)), True),
    ("input required", lambda op: op["inputs"].append(tensor("b")), False),
    ("input gone", lambda op: op["inputs"].pop(), False),
    ("input required now", lambda op: op["inputs"][1].update(optional=False), False),
    ("input takes more dtypes", lambda op: op["inputs"][0]["dtypes"].append("int32"), None),
    ("input takes fewer dtypes", lambda op: op["inputs"][0]["dtypes"].pop(), False),
    ("inputs swapped", lambda op: op["inputs"].reverse(), False),
    ("output gone", lambda op: op["outputs"].pop(), False),
    ("output of another dtype", lambda op: op["outputs"][0].update(like=None, dtype="int32"), False),
    ("version fell", lambda op: op.update(version=0), False),
]


@pytest.mark.parametrize(("change", "allowed"), [c[1:] for c in CHANGES], ids=[c[0] for c in CHANGES])
def test_which_changes_are_allowed(change: Callable[[Any], Any], allowed: bool | None) -> None:
    new = copy.deepcopy(OLD)
    change(new["Op"])
    found = ow.ops.compatibility(OLD, new)
    assert bool(found) == (allowed is not None)
    assert all(c.operator == "Op" and c.what for c in found)
    if allowed is not None:
        assert all(c.allowed for c in found) == allowed


def test_operators_come_but_do_not_go() -> None:
    more = {**OLD, "Other": OLD["Op"]}
    assert [(c.operator, c.allowed) for c in ow.ops.compatibility(OLD, more)] == [("Other", True)]
    assert [(c.operator, c.allowed) for c in ow.ops.compatibility(more, OLD)] == [("Other", False)]


def test_the_catalogue_agrees_with_itself() -> None:
    assert ow.ops.compatibility(ow.ops.spec(), ow.ops.spec()) == []
