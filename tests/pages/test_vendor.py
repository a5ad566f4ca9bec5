"""Scripts of other projects in pages: the files equal the results of `make vendor`, with all licences."""

import hashlib
import json
import re

import pytest
from make_vendor import AXE, DIGESTS, HERE, MARKS, PAGES

from opwright.pages import charts


def test_files_have_their_digests():
    digests = json.loads(DIGESTS.read_text())
    assert set(digests) - {AXE.name} | {"dagre.LICENSE"} == {path.name for path in PAGES.iterdir()}
    for name in set(digests) - {AXE.name}:
        assert hashlib.sha256((PAGES / name).read_bytes()).hexdigest() == digests[name], name


def test_packages_are_pinned():
    lock = json.loads((HERE / "vendor" / "package-lock.json").read_text())["packages"]
    packages = {name: row for name, row in lock.items() if name}
    assert all(re.fullmatch(r"sha512-[\w+/]{86}==", row["integrity"]) for row in packages.values())
    declared = json.loads((HERE / "vendor" / "package.json").read_text())
    for name, version in (declared["dependencies"] | declared["devDependencies"]).items():
        assert packages[f"node_modules/{name}"]["version"] == version


def test_each_package_has_its_licence():
    licence = (PAGES / "plot.LICENSE").read_text("utf-8")
    for name in (
        "@observablehq/plot 0.6.17",
        "d3-scale ",
        "interval-tree-1d ",
        "Permission to use, copy",
        "MIT License",
    ):
        assert name in licence


@pytest.mark.parametrize("name", sorted(charts.MARKS))
def test_the_bundle_has_each_mark(name):
    assert name in MARKS.split(", ")
    assert re.search(rf"\b{name}:\(\)=>", (PAGES / "plot.min.js").read_text("utf-8"))


def test_marks_are_checked():
    with pytest.raises(ValueError, match="no mark of"):
        charts.mark("eval")
    with pytest.raises(ValueError, match="lengths"):
        charts.mark("dot", {"x": [1], "y": [1, 2]})
