"""`opwright op list | show | spec | compat`."""

import json

import pytest
from tools_harness import opwright, result_of

import opwright as ow
from each_row import each_row
from thorough import some


def test_list_takes_a_part_of_a_name():
    result = opwright("op", "list", "pool3d")
    assert "MaxPool3D" in result.stdout
    assert "Atan" not in result.stdout
    assert set(result_of("op", "list", "Atan", "--json")) >= {"Atan", "Atan2", "Atanh"}
    assert "0 operators" in opwright("op", "list", "there is none").stderr


def test_list_has_the_whole_catalogue():
    specified = ow.ops.spec()
    catalogue = [name for name in ow.ops.list() if name in specified]
    text = opwright("op", "list").stdout
    assert all(f"│ {name} " in text for name in catalogue)


def test_show():
    text = opwright("op", "show", "Conv2D").stdout
    for part in ("Conv2D(input, filter", "attribute │ strides", "dtype like input", "has a gradient", ".. math::"):
        assert part in text
    assert opwright("op", "show", "atan").stdout == opwright("op", "show", "Atan").stdout
    assert "differentiation ends here" in opwright("op", "show", "Floor").stdout


@each_row("name", some(list(ow.ops.spec())), by=lambda name: name[:1])
def test_show_works_for_every_operator(name):
    assert opwright("op", "show", name).stdout.startswith(f"{name}(")
    assert result_of("op", "show", name, "--json")[name]["version"] >= 1


def test_show_of_a_name_that_is_none():
    assert "did you mean Atan" in opwright("op", "show", "Attan", exit_code=1).stderr


@pytest.fixture
def catalogue():
    return result_of("op", "spec")


@pytest.fixture
def saved(tmp_path):
    def save(catalogue, name="old.json"):
        (tmp_path / name).write_text(json.dumps(catalogue))
        return tmp_path / name

    return save


def test_spec_is_compatible_with_itself(catalogue, saved):
    assert catalogue["format"] == 1
    assert catalogue["operators"] == ow.ops.spec()
    assert result_of("op", "compat", saved(catalogue), "--json") == []
    assert "0 changes, 0 not allowed" in opwright("op", "compat", saved(catalogue)).stderr
    assert opwright("op", "compat", saved(catalogue["operators"]))  # the operators alone, as ow.ops.spec() gives them


def test_compat_tells_what_may_change_from_what_may_not(catalogue, saved):
    old = saved(catalogue)
    operators = catalogue["operators"]
    more = saved({**catalogue, "operators": {**operators, "Atan9": operators["Atan"]}}, "more.json")
    assert "Atan9\n  operator\n    the operator is new" in opwright("op", "compat", old, more).stdout
    assert opwright("op", "compat", old, more, "--strict", exit_code=1)
    result = opwright("op", "compat", more, old, exit_code=1)
    assert "  ! the operator is gone" in result.stdout
    assert "1 changes, 1 not allowed" in result.stderr
    (change,) = result_of("op", "compat", more, "--json", exit_code=1)
    assert change == {
        "operator": "Atan9",
        "what": "the operator is gone",
        "allowed": False,
        "part": "operator",
        "name": "",
        "rule": "gone",
        "old": "Atan9",
        "new": None,
    }


HOSTILE = [
    "",
    "{",
    "[]",
    '{"Atan": 3}',
    '{"Atan": {}}',
    "\x00",
    "[" * 100_000,
    '{"a": ' * 5000,
    "NaN",
    '{"a": Infinity}',
    '{"format": 1}',
    '{"format": 1, "operators": [1]}',
    "9" * 5000,
    '"text"',
    "null",
    "\ud800",
    '{"format": 99999999999999999999, "operators": {}}',
    '{"Atan": {"version": -1}}',
]


@pytest.mark.parametrize("content", HOSTILE, ids=range(len(HOSTILE)))
def test_compat_of_files_that_are_no_catalogues(tmp_path, content):
    (tmp_path / "bad.json").write_bytes(content.encode("utf-8", "surrogatepass"))
    assert "not a catalogue" in opwright("op", "compat", tmp_path / "bad.json", exit_code=3).stderr


def test_compat_of_a_value_nested_deeply(tmp_path, catalogue, saved):
    """Deep enough for JSON to read, perhaps too deep to compare: an exit code, never a traceback."""
    atan = {
        **catalogue["operators"]["Atan"],
        "attrs": [{"name": "n", "type": "object", "required": False, "default": None}],
    }
    for depth in (100, 900, 20_000):
        path = saved({"Atan": atan}, f"{depth}.json")
        path.write_text(path.read_text().replace('"default": null', '"default": ' + "[" * depth + "]" * depth))
        from click.testing import CliRunner

        from opwright.tools.cli import cli

        result = CliRunner().invoke(cli, ["op", "compat", str(path), str(saved({"Atan": atan}, "plain.json"))])
        assert result.exit_code in (1, 3), result.output


def test_compat_of_files_that_are_not_there(tmp_path):
    for path in (tmp_path / "none.json", tmp_path):
        assert str(path) in opwright("op", "compat", path, exit_code=3).stderr
