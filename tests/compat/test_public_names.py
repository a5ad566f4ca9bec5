"""Names of TensorFlow and Keras: docs/compatibility.md is up to date, and errors name ways that exist."""

import inspect
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import make_compatibility
import pytest

import opwright as ow
from opwright.core.missing_names import WAYS, peer_name


def test_the_page_is_up_to_date():
    assert make_compatibility.PAGE.read_text() == make_compatibility.page(), (
        "run python tests/compat/make_compatibility.py"
    )


def unexplained(title):
    """Return the missing names without a way, and those whose error does not name it."""
    names = []
    for row in make_compatibility.comparison(title)[0]:
        if row.status != "missing":
            continue
        module, _, name = row.name.rpartition(".")
        try:
            owner = make_compatibility.resolve(module)
        except AttributeError:
            continue  # the error is the module's
        try:
            getattr(owner, name)
        except AttributeError as error:
            if row.text and (not isinstance(owner, ModuleType) or row.text in str(error)):
                continue
        names.append(row.name)
    return names


@pytest.mark.parametrize("title", make_compatibility.TITLES)
def test_each_missing_name_has_a_way_which_its_error_names(title):
    """In a process of its own: a module that other tests have imported by its own name has errors of Python's."""
    code = f"import test_public_names; print(test_public_names.unexplained({title!r}))"
    folders = os.pathsep.join([str(Path(__file__).parent), str(Path(make_compatibility.__file__).parent)])
    environment = {**os.environ, "PYTHONPATH": folders}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, env=environment)
    assert run.stdout == "[]\n", run.stderr


def test_ways_are_names_of_this_package():
    for _, way in WAYS:
        for name in re.findall(r"`ow\.([\w.]+)", way):
            thing = ow
            for part in name.split("."):
                thing = getattr(thing, part)


def test_networks_take_their_arguments_in_the_order_of_keras():
    rows = (Path(__file__).parent / "public_names" / "keras.txt").read_text().splitlines()
    networks = {}
    for name, *parameters in map(str.split, rows):
        if re.fullmatch(r"keras\.applications\.[A-Z]\w*", name):
            networks[name.rpartition(".")[2]] = parameters
    assert len(networks) == 40
    for name, parameters in networks.items():
        own = list(inspect.signature(getattr(ow.keras.applications, name)).parameters)
        assert own[: len(parameters)] == parameters, name
    small = ow.keras.applications.MobileNetV2((32, 32, 3), 0.35, False)
    assert small.output.shape.as_list() == [None, 1, 1, 1280]


def test_names_of_modules():
    for module, name, expected in (
        ("opwright", "raw_ops", "tf.raw_ops"),
        ("opwright.nn", "nce", "tf.nn.nce"),
        ("opwright.nn.losses", "X", "keras.losses.X"),
        ("opwright.nn.keras_ops.image", "X", "keras.ops.image.X"),
        ("opwright.optimizers", "X", "keras.optimizers.X"),
        ("opwright.ops.math", "X", "tf.math.X"),
        ("opwright.testing.test_case", "X", "tf.test.X"),
        ("opwright.keras", "X", "keras.X"),
    ):
        assert peer_name(module, name) == expected


def test_asking_for_a_name_builds_no_text(monkeypatch):
    with pytest.raises(AttributeError) as error:
        ow.keras.layers.Dens  # noqa: B018
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)
    monkeypatch.setattr("opwright.core.missing_names.text_of", None)  # imports ask packages for names of submodules
    assert not hasattr(ow.keras.layers, "Dens")
    assert not hasattr(ow.nn, "nce")


def test_errors_propose_close_names():
    with pytest.raises(AttributeError, match="did you mean Dense"):
        ow.keras.layers.Dens  # noqa: B018
    with pytest.raises(AttributeError, match="did you mean reduce_sum"):
        ow.reduce_summ  # noqa: B018
