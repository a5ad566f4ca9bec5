"""Files of `opwright view` for other programs, opened by them: Netron and Model Explorer, in headless Chromium."""

import contextlib
import json
import socket
import subprocess
import sys
import urllib.parse
import urllib.request

import pytest
from browser import Browser
from make_vendor import ROOT

import opwright as ow

pytestmark = pytest.mark.slow

LSTM = ROOT / "tests" / "data" / "tflite" / "lstm_keras.tflite"
SERVE_NETRON = "import netron, sys; netron.serve(sys.argv[1], None, ('localhost', int(sys.argv[2]))); netron.wait()"
TEXT = "document.body?.innerText ?? ''"
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
