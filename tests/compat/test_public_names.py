"""Names of TensorFlow and Keras: docs/compatibility.md is up to date, and errors name ways that exist."""

import re
import subprocess
import sys

import make_compatibility
import pytest

import opwright as ow
from opwright.core.missing_names import WAYS, peer_name


def test_the_page_is_up_to_date():
    assert make_compatibility.PAGE.read_text() == make_compatibility.page(), (
        "run python tests/compat/make_compatibility.py"
    )


@pytest.mark.parametrize("title", make_compatibility.TITLES)
def test_each_missing_name_has_a_way_which_its_error_names(title):
    rows, _ = make_compatibility.comparison(title)
    missing = [row for row in rows if row.status == "missing"]
    assert [row.name for row in missing if not row.text] == []
    for row in missing:
        module = row.name.rpartition(".")[0]
        try:
            owner = make_compatibility.resolve(module)
        except AttributeError:
            continue  # the error is the module's
        with pytest.raises(AttributeError) as raised:
            getattr(owner, row.name.rpartition(".")[2])
        if isinstance(owner, type(ow)):
            assert row.text in str(raised.value), row.name


def test_a_module_that_is_imported_by_its_own_name_explains_missing_names():
    code = "import opwright.data.experimental as module; module.service"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert "AttributeError: module 'opwright.data.experimental' has no attribute 'service': elements" in run.stderr


def test_ways_are_names_of_this_package():
    for _, way in WAYS:
        for name in re.findall(r"`ow\.([\w.]+)", way):
            thing = ow
            for part in name.split("."):
                thing = getattr(thing, part)


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


def test_errors_propose_close_names():
    with pytest.raises(AttributeError, match="did you mean Dense"):
        ow.keras.layers.Dens  # noqa: B018
    with pytest.raises(AttributeError, match="did you mean reduce_sum"):
        ow.reduce_summ  # noqa: B018
