"""A headless Chromium, driven over pipes by the DevTools protocol: no packages, no ports.

with Browser() as browser:
    browser.open(page)
    browser.evaluate("document.title")
"""

import base64
import contextlib
import functools
import http.server
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time

import pytest
from make_vendor import AXE, ROOT

SHOTS = ROOT / "build" / "screenshots"
VIOLATIONS = """
axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations.map(
  v => `${v.id}: ${v.help} (${v.nodes.slice(0, 3).map(n => n.target.join(" ") + ": " + n.failureSummary).join("; ")})`))
"""
NAMES = ("chromium", "chromium-browser", "google-chrome")


def executable():
    """Return Chromium's path; skips the test without one."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("needs chromium")
    return path


@contextlib.contextmanager
def served(folder):
    """Serve a folder by HTTP; yields its address."""
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    extensions_map = {**http.server.SimpleHTTPRequestHandler.extensions_map, ".mjs": "text/javascript"}

    def log_message(self, *args):
        pass


class Browser:
    """A browser with one page. events: those of the page so far, messages of its console and errors among them."""

    def __init__(self, width=1400, height=900):
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        (from_here, to_there), (from_there, to_here) = os.pipe(), os.pipe()

        def arrange():  # the browser reads from 3 and writes to 4
            a, b = os.dup(from_here), os.dup(to_here)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self._process = subprocess.Popen(
            [
                executable(),
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--remote-debugging-pipe",
                f"--window-size={width},{height}",
                f"--user-data-dir={self._folder.name}",
                "--no-first-run",
                "--disable-background-networking",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(3, 4, from_here, to_here),
            preexec_fn=arrange,
        )
        os.close(from_here)
        os.close(to_here)
        self._write, self._read = os.fdopen(to_there, "wb", buffering=0), os.fdopen(from_there, "rb", buffering=0)
        self._left, self._number, self.events, self._session = b"", 0, [], None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self._session = None
            self.send("Browser.close")
        self._process.terminate()
        self._process.wait(20)
        self._write.close()
        self._read.close()
        self._folder.cleanup()

    def _receive(self):
        while b"\0" not in self._left:
            part = os.read(self._read.fileno(), 1 << 20)
            if not part:
                raise OSError("the browser has ended")
            self._left += part
        message, _, self._left = self._left.partition(b"\0")
        return json.loads(message)

    def send(self, method, **params):
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        self._write.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self.events.append(answer)

    def open(self, path):
        """Load a file, or an address, and wait until it has loaded."""
        self.events.clear()
        self.send("Page.navigate", url=path if str(path).startswith("http:") else f"file://{path}")
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self._receive())

    def evaluate(self, expression):
        """Return the value of an expression, of a promise when it is fulfilled."""
        result = self.send("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait(self, expression, seconds=30):
        """Wait until an expression is true."""
        end = time.monotonic() + seconds
        while not self.evaluate(expression):
            assert time.monotonic() < end, expression
            time.sleep(0.05)

    def press(self, key, text=""):
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, text=text)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key)

    @property
    def requests(self):
        """Addresses of requests, without those of data and of the page itself."""
        urls = [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        return [url for url in urls if not url.startswith(("file:", "data:"))]

    @property
    def complaints(self):
        """Errors and warnings of the page: exceptions, violations of the policy."""
        texts = [e["params"]["entry"]["text"] for e in self.events if e.get("method") == "Log.entryAdded"]
        texts += [
            e["params"]["exceptionDetails"]["text"] for e in self.events if e.get("method") == "Runtime.exceptionThrown"
        ]
        return texts

    def prefer(self, scheme):
        """Let pages be light or dark."""
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def violations(self):
        """Return the rules of accessibility that the page violates, by axe-core; skips the test without it."""
        if not AXE.exists():
            pytest.skip("needs axe-core: make vendor")
        self.evaluate(AXE.read_text("utf-8") + "; 1")
        return self.evaluate(VIOLATIONS)

    def wait_until_drawn(self, path):
        """Wait for the scripts of a page, if it has some, and for the next frame."""
        if any(f'id="{part}"' in path.read_text("utf-8") for part in ("charts", "content")):
            self.wait("document.documentElement.dataset.shown !== undefined")
        self.evaluate("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(1))))")

    def screenshot(self):
        """Return a picture of the page, the bytes of a PNG file."""
        return base64.b64decode(self.send("Page.captureScreenshot")["data"])

    def keep_screenshot(self, name):
        """Write a picture of the page to build/screenshots."""
        SHOTS.mkdir(parents=True, exist_ok=True)
        (SHOTS / f"{name}.png").write_bytes(self.screenshot())
