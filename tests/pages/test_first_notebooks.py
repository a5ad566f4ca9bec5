"""The notebooks of examples/notebooks: each runs in a kernel of Jupyter; pictures of them are in build/screenshots."""

import ast
import html
import importlib.util
import json
import re
import shutil

import browser
import pytest
from make_vendor import ROOT

FOLDER = ROOT / "examples" / "notebooks"
NAMES = sorted(path.stem for path in FOLDER.glob("*.ipynb"))


def cells_of(name):
    return json.loads((FOLDER / f"{name}.ipynb").read_text("utf-8"))["cells"]


@pytest.mark.parametrize("name", NAMES)
def test_notebooks_are_kept_without_outputs(name):
    codes = [cell for cell in cells_of(name) if cell["cell_type"] == "code"]
    assert len(codes) > 5
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in codes)
    texts = ["".join(cell["source"]) for cell in cells_of(name) if cell["cell_type"] == "markdown"]
    for target in re.findall(r"\]\(([^)#]+)", "".join(texts)):
        assert (FOLDER / target).exists(), target


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """Return a function that runs a notebook, and returns its cells of code."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("matplotlib")

    def run(name):
        folder = tmp_path_factory.mktemp(name)
        notebook = nbformat.read(FOLDER / f"{name}.ipynb", 4)
        resources = {"metadata": {"path": str(folder)}}
        nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute()
        keep_picture(name, notebook, folder)
        return [cell for cell in notebook.cells if cell.cell_type == "code"]

    return run


def keep_picture(name, notebook, folder):
    """Write a screenshot of the executed notebook, if Chromium and nbconvert are there."""
    if importlib.util.find_spec("nbconvert") is None or not any(map(shutil.which, browser.NAMES)):
        return
    from nbconvert import HTMLExporter

    page = folder / "notebook.html"
    page.write_text(HTMLExporter(template_name="classic").from_notebook_node(notebook)[0], "utf-8")
    with browser.Browser(1100, 6000) as chromium:
        chromium.open(page)
        chromium.keep_screenshot(f"notebook_{name}")


def printed(cells):
    return "".join(output.text for cell in cells for output in cell.outputs if output.output_type == "stream")


def shown(cells, kind):
    return [output.data[kind] for cell in cells for output in cell.outputs if kind in output.get("data", {})]


@pytest.mark.slow
def test_unsupported_operator(executed):
    cells = executed("unsupported_operator")
    (error,) = (output for cell in cells for output in cell.outputs if output.output_type == "error")
    assert error.ename == "NotFoundError"
    assert "Encountered unresolved custom op: acme.SoftClip." in error.evalue
    reported, drawing, operator, profile = shown(cells, "text/html")
    assert "custom operators among those given: none" in reported
    assert "acme.SoftClip" in html.unescape(drawing)
    assert "Compress what exceeds a limit to its logarithm." in operator
    assert "200 runs" in profile
    assert re.search(r"^\d+ ok, \d+ not tried", printed(cells), flags=re.M)


@pytest.mark.slow
def test_kernel_to_peak(executed):
    """Results are compared with float64 in the notebook; how fast they are depends on the machine and its load."""
    cells = executed("kernel_to_peak")
    assert len(shown(cells, "image/png")) == 6
    (report,) = shown(cells, "text/html")
    assert "tile_of_four" in report
    shares = ast.literal_eval(printed(cells).strip().splitlines()[-1])
    assert [*shares][:3] == ["definition", "vectors", "tile 4 x 1"]
    assert len(shares) == 5
    assert all(re.fullmatch(r"\d+%", share) for share in shares.values())


@pytest.mark.slow
def test_pytorch_to_microcontroller(executed):
    pytest.importorskip("torch")
    cells = executed("pytorch_to_microcontroller")
    text = printed(cells)
    accuracies = [float(number) for number in re.findall(r"accuracy in \w+: ([\d.]+)%", text)]
    assert len(accuracies) == 2
    assert min(accuracies) > 90
    assert "equal on 50 images" in text
    assert "The board hears" in text or "needs a clone of the repository" in text
    assert len(shown(cells, "text/html")) == 2
