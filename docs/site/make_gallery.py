"""Write docs/gallery.md and its pictures: `make gallery` (needs Chromium).

Lives here: the pages of the gallery, `pages`, which the site holds as well (hooks.py), and the pictures of them.
Not here: drawing (src/opwright/views, src/opwright/tools).

MobileNetV2 is the network of the benchmarks, with random weights; the other files are of tests/data, written by
TensorFlow's converter. Times are those of the machine that writes the gallery.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from click.testing import CliRunner

import opwright as ow
from opwright.tools.cli import cli

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "gallery"
DATA = ROOT / "tests" / "data"


class Entry(NamedTuple):
    """A page. command: of opwright, without the file to write; says: what it shows; act: JavaScript before the picture
    is taken."""

    name: str
    title: str
    command: str
    says: str
    act: str = ""


def overlay(name: str) -> str:
    """Return the JavaScript that colours the nodes by an overlay."""
    return f"(s => {{ s.value = '{name}'; s.dispatchEvent(new Event('change')); }})(document.getElementById('overlay'))"


SELECT_SLOWEST = """
(p => {
  const leaves = p.root.instance.leaves;
  opwrightView.go(p, leaves.reduce((a, b) => (b.data.t || 0) > (a.data.t || 0) ? b : a));
})(opwrightView.panes[0])
"""
OPEN_LOOPS = """
(p => {
  p.setAll(true);
  const loop = p.root.instance.leaves.find(l => l.data.g), stack = [loop];
  p.toggle(loop);
  while (stack.length) { const it = stack.pop(); it.open = it.children.length > 0; stack.push(...it.children); }
  p.relayout();
  const body = loop.children[1];
  p.select(body.instance.leaves[0]);
  p.centre(body);
  p.scale = 0.5;
  p.x = (p.width - p.scale * (2 * body.box.x + body.box.w)) / 2;
  p.y = 20 - p.scale * body.box.y;
  p.ask();
})(opwrightView.panes[0])
"""
TO_TIMELINE = "document.querySelectorAll('h2')[2].scrollIntoView()"
TO_QUANTIZATION = "document.querySelectorAll('h2')[2].scrollIntoView()"

ENTRIES = (
    Entry(
        "mobilenet_time",
        "Where the time goes",
        "view mobilenet_v2.tflite --runs 30",
        "MobileNetV2, coloured by the time of each node; the slowest is selected. The panel next to it shows its "
        "formula, its kernel, the share of the processor's peak performance, and versions.",
        f"{overlay('time')}, {SELECT_SLOWEST}",
    ),
    Entry(
        "int8_against_float",
        "What quantization changed",
        "view int8.tflite --vs float.tflite --errors",
        "The int8 file next to the float file that it was made from, with paired nodes, coloured by the error that "
        "each operator adds. A click on a node selects its partner and lists the differences.",
        overlay("quantization"),
    ),
    Entry(
        "lstm",
        "Loops and their graphs",
        "view lstm_keras.tflite",
        "An LSTM layer, which TensorFlow's converter writes as a WHILE: condition and body are drawn in the node.",
        OPEN_LOOPS,
    ),
    Entry(
        "transformer",
        "Scopes",
        "view encoder_float.tflite",
        "An encoder with attention, grouped by the scopes in its names.",
    ),
    Entry(
        "detector",
        "Memory",
        "view detector_float.tflite",
        "A detector with non-maximum suppression, coloured by the bytes of the values that are live while a node runs.",
        overlay("arena"),
    ),
    Entry(
        "bench",
        "A run, call by call",
        "bench mobilenet_v2.tflite --runs 50 --threads 2",
        "The report of `opwright bench --html`: distribution of run times, bars of operators, the timeline of a run on "
        "two threads, memory over time, the machine.",
        TO_TIMELINE,
    ),
    Entry(
        "diff",
        "Errors along the network",
        "diff int8.tflite float.tflite --atol 0.05",
        "The report of `opwright diff --html`: errors of each tensor, distributions, operators to leave in float.",
        TO_QUANTIZATION,
    ),
    Entry(
        "operator",
        "An operator",
        "op show CONV_2D",
        "Formula, inputs, attributes and the table of versions with the first run time of each.",
    ),
)


def files(folder: Path) -> dict[str, Path]:
    """Write MobileNetV2, and return the models of the commands by name."""
    sys.path.append(str(ROOT))
    from benchmarks import networks

    mobilenet = folder / "mobilenet_v2.tflite"
    mobilenet.write_bytes(ow.lite.TFLiteConverter.from_keras_model(networks.mobilenet_v2(ow.keras)).convert())
    return {
        mobilenet.name: mobilenet,
        "int8.tflite": DATA / "quantization" / "int8.tflite",
        "float.tflite": DATA / "quantization" / "float.tflite",
        "lstm_keras.tflite": DATA / "tflite" / "lstm_keras.tflite",
        "encoder_float.tflite": DATA / "networks" / "encoder_float.tflite",
        "detector_float.tflite": DATA / "networks" / "detector_float.tflite",
    }


def pages(folder: Path) -> Iterator[tuple[Entry, str]]:
    """Yield each entry with its page."""
    models = files(folder)
    here = Path.cwd()
    for name, path in models.items():
        if not (folder / name).exists():
            (folder / name).write_bytes(path.read_bytes())
    for entry in ENTRIES:
        target = folder / f"{entry.name}.html"
        kind, *rest = entry.command.split()
        command = [kind, *rest, "-o" if kind == "view" else "--html", str(target)]
        os.chdir(folder)  # pages name their files as the commands do
        try:
            result = CliRunner().invoke(cli, command)
        finally:
            os.chdir(here)
        if result.exit_code:
            raise RuntimeError(f"opwright {entry.command}: {result.output}")
        yield entry, target.read_text("utf-8")


def markdown() -> str:
    """Return the page of the documentation."""
    lines = [
        "# Gallery",
        "",
        "This page shows examples of the HTML pages that Opwright writes, one file each ([view.md](view.md)). On the",
        "site, a click on a picture opens the page. `make gallery` writes them from MobileNetV2 of the benchmarks,",
        "with random weights, and from files in tests/data that TensorFlow's converter wrote.",
    ]
    for entry in ENTRIES:
        option = "-o page.html" if entry.command.startswith("view") else "--html page.html"
        lines += ["", f"## {entry.title}", "", entry.says, "", "```sh", f"opwright {entry.command} {option}", "```", ""]
        lines.append(f"![{entry.title}](gallery/{entry.name}.png)")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the page and the pictures."""
    sys.path += [str(ROOT / "tests" / "pages")]
    from browser import Browser

    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary, Browser(1280, 860) as browser:
        for number, (entry, _) in enumerate(pages(Path(temporary))):
            browser.prefer("dark" if number % 3 == 2 else "light")
            page = Path(temporary) / f"{entry.name}.html"
            browser.open(page)
            browser.wait_until_drawn(page)
            if entry.act:
                browser.evaluate(entry.act)
                browser.wait_until_drawn(page)
            (PICTURES / f"{entry.name}.png").write_bytes(browser.screenshot())
    (ROOT / "docs" / "gallery.md").write_text(markdown(), "utf-8")


if __name__ == "__main__":
    main()
