"""Selection of tests by what changed."""

from pathlib import Path

import pytest

from affected import affected, imported

HERE = Path(__file__).parent


def names(*files):
    return {path.relative_to(HERE).as_posix() for path in affected([Path(file) for file in files])}


def test_tests_of_a_changed_module_and_of_its_importers():
    result = names("src/opwright/lite/format/reader.py")
    assert {"lite/format/test_format_reader.py", "lite/format/test_format_newer.py"} <= result  # its folder
    assert "tracing/test_loops.py" not in result


@pytest.mark.slow
def test_a_changed_test_is_selected_and_others_are_not():
    assert names("tests/test_affected.py", "docs/index.md") == {"test_affected.py"}


def test_relative_imports_are_resolved(tmp_path):
    path = tmp_path / "m.py"
    path.write_text("from . import a\nfrom ..b import c\ndef f():\n    import d.e\n")
    assert set(imported(path, "p.q")) == {"p.q", "p.q.a", "p.b", "p.b.c", "d.e"}
