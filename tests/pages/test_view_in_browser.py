"""Pages of models in headless Chromium: first paint, panning, keys, names that attack."""

from pathlib import Path

import drawn_models
import pytest
from browser import Browser

import opwright as ow

pytestmark = pytest.mark.slow

FILES = Path(__file__).parents[1] / "data" / "tflite"
SHOWN = "document.documentElement.dataset.shown !== undefined"


@pytest.fixture(scope="module")
def browser():
    with Browser() as browser:
        yield browser


def shown(browser, tmp_path, model, vs=None):
    ow.view(model, vs).save(tmp_path / "page.html")
    browser.open(tmp_path / "page.html")
    browser.wait(SHOWN)
    assert browser.complaints == []
    assert browser.requests == []
    return float(browser.evaluate("document.documentElement.dataset.shown"))


@pytest.mark.parametrize("name", ["elementwise", "detection_postprocess", "while_loop", "lstm", "cnn_int8"])
def test_models_are_drawn(browser, tmp_path, name):
    assert shown(browser, tmp_path, FILES / f"{name}.tflite") < 3000
    boxes = browser.evaluate("opwrightView.panes[0].boxes.length")
    assert boxes >= browser.evaluate("opwrightView.panes[0].root.children.length") > 2
    browser.evaluate("opwrightView.panes[0].canvas.focus()")
    browser.press("ArrowRight")
    heading = browser.evaluate("document.querySelector('#side h2').textContent")
    assert heading == browser.evaluate("opwrightView.panes[0].root.instance.leaves[0].label")


def test_sub_graphs_open_in_place(browser, tmp_path):
    shown(browser, tmp_path, FILES / "while_loop.tflite")
    before = browser.evaluate("opwrightView.panes[0].boxes.length")
    browser.evaluate("(p => p.toggle(p.root.instance.leaves.find(l => l.data.g)))(opwrightView.panes[0])")
    assert browser.evaluate("opwrightView.panes[0].boxes.length") > before + 4


def test_search_and_partner(browser, tmp_path):
    shown(browser, tmp_path, FILES / "cnn_int8.tflite", FILES / "cnn_float.tflite")
    browser.evaluate(
        "(s => { s.value = 'conv_2d'; s.dispatchEvent(new Event('input')); })(document.getElementById('search'))"
    )
    assert browser.evaluate("document.querySelectorAll('#hits button').length") >= 2
    browser.evaluate("document.querySelector('#hits button').click()")
    assert "CONV_2D" in browser.evaluate("opwrightView.panes[1].selected.label")


def test_names_do_not_execute(browser, tmp_path):
    shown(browser, tmp_path, drawn_models.hostile())
    count = browser.evaluate("opwrightView.panes[0].root.instance.leaves.length")
    for i in range(count):
        browser.evaluate(f"opwrightView.go(opwrightView.panes[0], opwrightView.panes[0].root.instance.leaves[{i}])")
    assert "owned" not in browser.evaluate("document.title.split(' ')[0]")
    assert browser.evaluate("document.querySelectorAll('img, iframe, object, embed, link').length") == 0
    assert browser.complaints == []
    assert browser.requests == []


def test_the_policy_blocks_scripts_and_requests(browser, tmp_path):
    shown(browser, tmp_path, FILES / "elementwise.tflite")
    browser.evaluate(
        '(d => { d.innerHTML = \'<img src="http://localhost:1/x.png" onerror="window.owned = 1">\';'
        " const s = document.createElement('script'); s.textContent = 'window.owned = 2'; d.append(s); })"
        "(document.getElementById('side'))"
    )
    assert browser.evaluate("new Promise(r => setTimeout(() => r(window.owned === undefined), 300))")
    assert "violates" in " ".join(browser.complaints)


def test_panning_5000_nodes(browser, tmp_path):
    assert shown(browser, tmp_path, drawn_models.wide(5000)) < 3000
    assert browser.evaluate("opwrightView.panes[0].boxes.length") > 5000
    median = browser.evaluate(
        "(() => { const p = opwrightView.panes[0], times = []; p.fitAll();"
        " for (let i = 0; i < 60; i++) { p.x += i % 2 ? 9 : -9; const t = performance.now(); p.draw();"
        " times.push(performance.now() - t); } return times.sort((a, b) => a - b)[30]; })()"
    )
    assert median < 16.7  # milliseconds of one of 60 frames a second
