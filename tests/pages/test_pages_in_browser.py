"""Each kind of page in headless Chromium: axe-core reports no violation, charts are drawn, names do not execute.

Screenshots, light and dark, are kept in build/screenshots.
"""

import json
import re

import drawn_models
import pytest
from browser import Browser
from click.testing import CliRunner
from make_vendor import ROOT

from opwright import ops
from opwright.lite.ops import definition
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


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bench", "diff", "doctor"])
def test_print_is_light(browser, tmp_path, name):
    """On paper a page is light with black text, without controls, and charts take these colours."""
    page = written(name, tmp_path)
    browser.prefer("dark")
    browser.open(page)
    browser.wait_until_drawn(page)
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.send("Emulation.setEmulatedMedia", media="print", features=features)
    style = "getComputedStyle(document.body)"
    assert browser.evaluate(f"[{style}.backgroundColor, {style}.color]") == ["rgb(255, 255, 255)", "rgb(0, 0, 0)"]
    colours = browser.evaluate("[...document.querySelectorAll('svg.plot')].map(e => getComputedStyle(e).color)")
    assert set(colours) <= {"rgb(0, 0, 0)"}
    shown = "[...document.querySelectorAll('button, select, input')].filter(e => e.checkVisibility()).length"
    assert browser.evaluate(shown) == 0
    browser.keep_screenshot(f"{name}_print")
    browser.send("Emulation.setEmulatedMedia", media="")


def test_every_formula_is_drawn(browser, tmp_path):
    """Each formula of the catalogue and of builtin operators becomes MathML, and no other elements."""
    page = written("op_show", tmp_path)
    browser.open(page)
    assert browser.evaluate("document.querySelectorAll('div.formula > math').length") == 1
    assert "e" in browser.evaluate("document.querySelector('math mfrac').textContent")
    operators = [ops.get(name) for name in ops.list()]
    operators += [definition.get(name) for name in definition.list_names()]
    formulas = [op.formula for op in operators if op.formula]
    assert len(formulas) > 500
    drawn = browser.evaluate(f"{json.dumps(formulas)}.map(f => FORMULA.element(f)?.outerHTML ?? null)")
    assert [f for f, markup in zip(formulas, drawn) if markup is None] == []
    assert not any(re.search(r"<(script|img|a|iframe)|\son\w+=|style=|href=", markup) for markup in drawn)
    attacks = [r"\href{javascript:alert(1)}{x}", r"\includegraphics{http://x/y.png}", "<img src=x onerror=alert(1)>"]
    attacks += [r"\text{</mtext></math><script>document.title='owned'</script>}", r"\class{a}{\style{color:red}{x}}"]
    for markup in browser.evaluate(f"{json.dumps(attacks)}.map(f => FORMULA.element(f)?.outerHTML ?? null)"):
        assert markup is None or not re.search(r"<(script|img|a|iframe)|\son\w+=|style=|href=", markup)
    assert browser.complaints == []


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
