"""Each kind of page in headless Chromium: axe-core reports no violation, charts are drawn, names do not execute.

Screenshots, light and dark, are kept in build/screenshots.
"""

import drawn_models
import pytest
from browser import Browser
from click.testing import CliRunner
from make_vendor import ROOT

from opwright.tools.cli import cli

pytestmark = pytest.mark.slow

FILES = ROOT / "tests" / "data"
FLOAT, INT8 = FILES / "quantization" / "float.tflite", FILES / "quantization" / "int8.tflite"
PAGES = {
    "view": ["view", INT8, "-o"],
    "view_vs": ["view", INT8, "--vs", FLOAT, "-o"],
    "bench": ["bench", FLOAT, "--runs", "10", "--html"],
    "diff": ["diff", INT8, FLOAT, "--atol", "0.05", "--html"],
    "build": ["build", FLOAT, "-o", "LIBRARY", "--html"],
    "doctor": ["doctor", "--html"],
    "op_show": ["op", "show", "Softmax", "--html"],
    "op_show_builtin": ["op", "show", "CONV_2D", "--html"],
}
"""Commands without the file to write, which is the last argument."""


@pytest.fixture(scope="module")
def browser():
    with Browser() as browser:
        yield browser


def written(name, tmp_path):
    page = tmp_path / "page.html"
    command = [str(tmp_path / "out") if part == "LIBRARY" else str(part) for part in PAGES[name]]
    result = CliRunner().invoke(cli, [*command, str(page)])
    assert result.exit_code == 0, result.output
    return page


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", sorted(PAGES))
def test_pages_are_accessible(browser, tmp_path, name, scheme):
    page = written(name, tmp_path)
    browser.prefer(scheme)
    browser.open(page)
    browser.wait_until_drawn(page)
    assert browser.complaints == []
    assert browser.requests == []
    assert browser.evaluate("document.querySelectorAll('figure.chart').length") == browser.evaluate(
        "document.querySelectorAll('figure.chart > svg.plot').length"
    )
    browser.keep_screenshot(f"{name}_{scheme}")
    assert browser.violations() == []


def test_names_do_not_execute_in_reports(browser, tmp_path):
    model, page = tmp_path / "hostile.tflite", tmp_path / "page.html"
    model.write_bytes(drawn_models.runnable_hostile())
    for command in (
        ["bench", str(model), "--runs", "3", "--html", str(page)],
        ["diff", str(model), "--a-runtime", "reference", "--b-runtime", "litert-builtin", "--html", str(page)],
    ):
        result = CliRunner().invoke(cli, command)
        assert result.exit_code == 0, result.output
        browser.open(page)
        browser.wait_until_drawn(page)
        assert "owned" not in browser.evaluate("document.title")
        assert browser.evaluate("document.querySelectorAll('img, iframe, object, embed, link').length") == 0
        assert browser.complaints == []
        assert browser.requests == []
