"""Flags: the table against the module's attributes, reading of values, overrides and where a value came from."""

import contextlib
import os
import subprocess
import sys
import threading
import typing
from pathlib import Path

import pytest

from opwright.core import flags
from opwright.core.errors import InvalidArgumentError


@pytest.fixture(autouse=True)
def _clean():
    flags.load({})
    yield
    flags.load()


def test_attributes_and_table_name_the_same_flags():
    plain = {bool: flags.SWITCH, int: (flags.COUNT, flags.SIZE), str | None: flags.FOLDER}
    every = typing.get_type_hints(flags)
    hints = {name: hint for name, hint in every.items() if name[0] != "_" and name.islower()}
    assert set(hints) == set(flags.FLAGS)
    for name, hint in hints.items():
        assert isinstance(flags.get(name), hint if hint in plain else typing.get_origin(hint) or hint)
        if hint in plain:
            types = plain[hint]
            assert flags.FLAGS[name].type in ((types,) if isinstance(types, flags.FlagType) else types)


def test_defaults():
    assert flags.show == frozenset()
    assert (flags.verify, flags.check_numerics, flags.run_functions_eagerly, flags.deterministic) == (False,) * 4
    assert (flags.num_threads, flags.max_model_bytes) == (0, 2**31)
    assert os.path.isabs(flags.cache_dir)


READ = [  # flag, text in the environment or Python value, what it means
    ("show", "graph, passes", frozenset({"graph", "passes"})),
    ("show", ["time"], frozenset({"time"})),
    ("show", "time,", frozenset({"time"})),
    ("show", set(), frozenset()),
    ("verify", "1", True),
    ("verify", " On ", True),
    ("verify", "no", False),
    ("verify", True, True),
    ("num_threads", "4", 4),
    ("num_threads", 0, 0),
    ("max_model_bytes", "512", 512),
    ("max_model_bytes", "3M", 3 * 2**20),
    ("max_model_bytes", "1GiB", 2**30),
    ("max_model_bytes", "2 kb", 2048),
    ("cache_dir", "some/folder", "some/folder"),
    ("cache_dir", Path("some"), "some"),
]


@pytest.mark.parametrize(("name", "given", "value"), READ)
def test_reading(name, given, value):
    with flags.override(**{name: given}):
        assert flags.get(name) == getattr(flags, name) == value
    if isinstance(given, str):
        flags.load({flags.FLAGS[name].variable: given})
        assert flags.get(name) == value


BAD = [
    ("show", "graphs"),
    ("show", 3),
    ("verify", "maybe"),
    ("verify", 2),
    ("num_threads", "-1"),
    ("num_threads", -1),
    ("num_threads", "all"),
    ("num_threads", True),
    ("num_threads", 1.5),
    ("max_model_bytes", "0"),
    ("max_model_bytes", 0),
    ("max_model_bytes", "G"),
    ("max_model_bytes", "1.5G"),
    ("cache_dir", 3),
    ("cache_dir", None),
]


@pytest.mark.parametrize(("name", "given"), BAD)
def test_bad_values(name, given):
    before = flags.get(name)
    for change in (flags.configure, lambda **values: flags.override(**values).__enter__()):
        with pytest.raises(InvalidArgumentError) as caught:
            change(**{name: given})
        assert f"({name}=...)" in str(caught.value)
        assert f"found   {given!r}" in str(caught.value)
    assert flags.get(name) == before
    if isinstance(given, str):
        variable = flags.FLAGS[name].variable
        with pytest.raises(InvalidArgumentError) as caught:
            flags.load({variable: given, "OPWRIGHT_DETERMINISTIC": "1"})
        assert str(caught.value).startswith(f"environment variable {variable}: ")
        assert f"wanted  {flags.FLAGS[name].type.text}" in str(caught.value)
        assert flags.deterministic is False  # nothing was taken


@pytest.mark.parametrize("call", [flags.get, lambda name: flags.configure(**{name: 1})])
def test_unknown_flag(call):
    with pytest.raises(InvalidArgumentError, match="'shwo'") as caught:
        call("shwo")
    assert "num_threads" in str(caught.value)


def test_unknown_attribute():
    with pytest.raises(AttributeError, match="shwo"):
        flags.shwo  # noqa: B018


def test_override_nests_and_ends_with_an_error():
    with flags.override(verify=True, num_threads=2):
        with contextlib.suppress(KeyError), flags.override(num_threads=3):
            assert (flags.verify, flags.num_threads) == (True, 3)
            raise KeyError
        assert (flags.verify, flags.num_threads) == (True, 2)
    assert (flags.verify, flags.num_threads) == (False, 0)


def test_overrides_that_end_out_of_order():
    first, second = flags.override(num_threads=1), flags.override(num_threads=2)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert flags.num_threads == 2
    second.__exit__(None, None, None)
    assert flags.num_threads == 0


def test_other_threads_see_an_override():
    seen = []
    with flags.override(check_numerics=True):
        thread = threading.Thread(target=lambda: seen.append(flags.check_numerics))
        thread.start()
        thread.join()
    assert seen == [True]


def test_configure_stays_under_an_override():
    with flags.override(num_threads=2):
        flags.configure(num_threads=8)
        assert flags.num_threads == 2
    assert flags.num_threads == 8


def test_table_reports_where_values_come_from():
    flags.load({"OPWRIGHT_NUM_THREADS": "4", "OPWRIGHT_VERIFY": "", "OPWRIGHT_SHOW": "time"})
    flags.configure(deterministic=True)
    with flags.override(show="plan"):
        rows = {row.name: row for row in flags.table()}
    assert list(rows) == list(flags.FLAGS)
    sources = {name: rows[name].source for name in ("num_threads", "verify", "deterministic", "show")}
    assert list(sources.values()) == ["environment", "default", "configure", "override"]
    assert (rows["num_threads"].value, rows["num_threads"].default) == (4, 0)
    assert all(row.variable == "OPWRIGHT_" + row.name.upper() and row.doc.endswith(".") for row in rows.values())


def test_a_mistyped_variable_is_reported():
    with pytest.warns(UserWarning, match="OPWRIGHT_NUM_THREAD sets nothing: did you mean OPWRIGHT_NUM_THREADS"):
        flags.load({"OPWRIGHT_NUM_THREAD": "1", "OPWRIGHT_PEER_JAX": "python"})
    assert flags.unknown_variables({"OPWRIGHT_PEER_JAX": "", "OPWRIGHT_X": "", "PATH": ""}) == ["OPWRIGHT_X"]


def test_first_read_takes_the_environment():
    script = "from opwright.core import flags; assert 'show' not in vars(flags); print(*flags.show, flags.verify)"
    env = os.environ | {"OPWRIGHT_SHOW": "asm", "OPWRIGHT_VERIFY": "on"}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["asm", "True"]


def test_cache_folder_follows_the_system(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", os.path.abspath("caches"))
    flags.load({})
    assert flags.cache_dir == os.path.abspath("caches/opwright")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    flags.load({})
    assert flags.cache_dir == os.path.expanduser("~/.cache/opwright")
    monkeypatch.setattr(sys, "platform", "darwin")
    flags.load({})
    assert flags.cache_dir == os.path.expanduser("~/Library/Caches/opwright")
