"""The API reference of the site: each public name has a signature and a description, each formula is Markdown."""

import importlib.util
import re
from pathlib import Path

import pytest

import opwright as ow

SOURCE = Path(__file__).parents[1] / "docs" / "site" / "hooks.py"


@pytest.fixture(scope="module")
def hooks():
    spec = importlib.util.spec_from_file_location("site_hooks", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages(hooks):
    return hooks.reference_pages()


def entries(page):
    """The sections of a page by name."""
    return dict(re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", page, flags=re.MULTILINE | re.DOTALL))


def test_each_public_name_is_described(pages):
    sections = entries(pages["reference/opwright.md"])
    modules = {n for n in ow.__all__ if type(getattr(ow, n)).__name__ == "module"}
    assert set(ow.__all__) - modules == set(sections)
    without_text = [n for n, text in sections.items() if not re.sub(r"```python\n.*?```", "", text, flags=re.S).strip()]
    assert without_text == []


def test_no_docstring_only_refers_to_an_operator(pages):
    """A function that is written by hand has the formula and the errors of its operators in its docstring."""
    assert not [name for page in pages.values() for name, text in entries(page).items() if "\nSee " in text]
    text = entries(pages["reference/opwright.md"])["broadcast_to"]
    assert "Broadcast a tensor to a shape." in text
    assert "InvalidArgumentError if the shape cannot be reached" in text
    assert "Operator `BroadcastTo`, version 1." in text


def test_formulas_are_markdown(pages):
    assert not [path for path, page in pages.items() if re.search(r"^ *\.\. math::", page, flags=re.MULTILINE)]
    text = entries(pages["reference/opwright.math.md"])["cumsum"]
    assert "$$\ny_i = \\sum_{j \\le i} x_j\n$$" in text
    assert "| attribute | `exclusive` | bool; default `False` |" in text


def test_every_page_is_in_the_navigation(hooks):
    nav = (SOURCE.parents[2] / "mkdocs.yml").read_text("utf-8")
    listed = set(re.findall(r": (\w+\.md)$", nav, flags=re.MULTILINE))
    assert {p.name for p in SOURCE.parents[1].glob("*.md")} | set(hooks.OUTSIDE.values()) == listed


def test_the_gallery_is_that_of_its_script(hooks):
    gallery = hooks.gallery()
    assert (SOURCE.parents[1] / "gallery.md").read_text("utf-8") == gallery.markdown(), "make gallery"
    assert {path.stem for path in gallery.PICTURES.glob("*.png")} == {entry.name for entry in gallery.ENTRIES}
    assert all(path.stat().st_size < 200_000 for path in gallery.PICTURES.iterdir())
    shown = hooks.on_page_markdown(gallery.markdown(), None, None, None)
    assert shown.count(".html)") == len(gallery.ENTRIES)
