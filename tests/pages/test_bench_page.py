"""Reports of `opwright bench`: the timeline of a run, its trace file, the page's content and names that attack.

The oracle of a trace is the Trace Event Format: fields of each phase, nesting of complete events of a thread.
"""

import json
from pathlib import Path

import drawn_models
import numpy as np
import pytest
from click.testing import CliRunner

from opwright.core import flags
from opwright.lite.interpreter import Interpreter
from opwright.tools.cli import cli

FILES = Path(__file__).parents[1] / "data" / "tflite"
FIELDS = {
    "X": {"name": str, "cat": str, "ph": str, "ts": float, "dur": float, "pid": int, "tid": int, "args": dict},
    "C": {"name": str, "ph": str, "ts": float, "pid": int, "tid": int, "args": dict},
    "M": {"name": str, "ph": str, "ts": int, "pid": int, "tid": int, "args": dict},
}
"""Fields of the events that this package writes, by phase (Trace Event Format, "Event Descriptions")."""
METADATA = {"process_name": "name", "thread_name": "name", "thread_sort_index": "sort_index"}


def check_trace(document):
    """Assert that a document is a trace in the JSON object format, whose complete events nest."""
    assert document["displayTimeUnit"] in ("ms", "ns")
    assert all(isinstance(v, str) for v in document["otherData"].values())
    events = document["traceEvents"]
    for event in events:
        kinds = FIELDS[event["ph"]]
        assert {name: type(value) for name, value in event.items()} == kinds
        if event["ph"] == "M":
            assert set(event["args"]) == {METADATA[event["name"]]}
        if event["ph"] == "C":
            assert all(isinstance(value, int) for value in event["args"].values())
    threads = {e["tid"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    complete = [e for e in events if e["ph"] == "X"]
    assert threads == set(range(len(threads))) >= {e["tid"] for e in complete}
    for thread in threads:
        stack = []
        for event in (e for e in complete if e["tid"] == thread):
            start, stop = event["ts"], event["ts"] + event["dur"]
            while stack and stack[-1] <= start + 1e-3:
                stack.pop()
            assert not stack or stop <= stack[-1] + 1e-3, event  # within the event that is open
            stack.append(stop)


def compiled(path, threads=1):
    with flags.override(background=False):
        interpreter = Interpreter(model_path=str(path), num_threads=threads)
        interpreter.allocate_tensors()
        for _ in range(3):
            interpreter.invoke()
    return interpreter


@pytest.mark.parametrize("threads", [1, 2])
def test_steps_of_compiled_plans_are_on_the_timeline(threads):
    with flags.override(compiled=True):
        interpreter = compiled(FILES / "cnn_int8.tflite", threads)
    before = [interpreter.get_tensor(d["index"]).copy() for d in interpreter.get_output_details()]
    timeline = interpreter.timeline(3)
    after = [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]
    assert all(map(np.array_equal, before, after))
    steps = [e for e in timeline.events if e.kind == "step"]
    delegates = [e for e in timeline.events if e.kind == "delegate"]
    assert steps
    assert {n for e in delegates for n in e.nodes} >= {n for e in steps for n in e.nodes}
    assert {e.thread for e in steps} <= set(range(threads))
    for event in timeline.events:
        assert 0 <= event.start <= event.start + event.seconds <= timeline.seconds
    assert timeline.lost == 0
    names = {d["op_name"] for d in interpreter._get_ops_details()}
    assert {part for e in steps for part in e.name.split(" + ")} <= names


def test_called_subgraphs_are_on_the_timeline():
    with flags.override(compiled=False):
        interpreter = compiled(FILES / "while_loop.tflite")
        timeline = interpreter.timeline(1)
        (loop,) = [e for e in timeline.events if e.name == "WHILE"]
        inner = [e for e in timeline.events if e.subgraph]
        assert inner
        assert all(loop.start <= e.start <= e.start + e.seconds <= loop.start + loop.seconds for e in inner)
        profile = interpreter.profile(2)
        assert {e.subgraph for e in inner} == set(profile.called)
    with pytest.raises(ValueError, match="no runs"):
        interpreter.timeline(0)


def run(*arguments):
    result = CliRunner().invoke(cli, ["bench", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.stdout


def charts_of(page):
    start = page.index('id="charts">') + len('id="charts">')
    return json.loads(page[start : page.index("</script>", start)])


def test_the_page_and_the_trace(tmp_path):
    page, trace = tmp_path / "page.html", tmp_path / "trace.json"
    document = json.loads(
        run(FILES / "cnn_float.tflite", "--runs", 20, "--html", page, "--trace", trace, "--vs", "litert", "--json")
    )
    traced = json.loads(trace.read_text("utf-8"))
    check_trace(traced)
    names = {e["name"] for e in traced["traceEvents"] if e["ph"] == "X" and e["cat"] != "delegate"}
    operators = {row["operator"] for row in document["operators"]} - {"DELEGATE"}
    assert operators >= {part for name in names for part in name.split(" + ")}
    alive = [e["args"]["bytes"] for e in traced["traceEvents"] if e["ph"] == "C"]
    assert max(alive) > 0
    text = page.read_text("utf-8")
    distribution, order, bars, timeline, memory = charts_of(text)
    runs = [side["columns"]["us"] for side in order["marks"]]
    assert [len(side) for side in runs] == [20, 20]  # ours and the official interpreter's
    for side, figures in zip(runs, (document["seconds"], document["litert"])):
        assert np.median(side) == pytest.approx(figures["invoke_median"] * 1e6)
    assert sum(len(m["columns"].get("us", ())) for m in distribution["marks"] if m["bin"]) >= 38
    assert bars["marks"][0]["columns"]["us"] == [row["average"] * 1e6 for row in document["operators"]]
    assert timeline["marks"][0]["rows"] == sum(e["ph"] == "X" and e["cat"] != "delegate" for e in traced["traceEvents"])
    assert max(memory["marks"][0]["columns"]["KiB"]) == max(alive) / 1024
    for what in ("Python", "processor", "numpy", "litert"):
        assert what in text
    assert len(text) < 500_000


def test_names_cannot_leave_the_page(tmp_path):
    model, page, trace = tmp_path / "hostile.tflite", tmp_path / "page.html", tmp_path / "trace.json"
    model.write_bytes(drawn_models.runnable_hostile())
    run(model, "--runs", 3, "--html", page, "--trace", trace)
    text = page.read_text("utf-8")
    assert "document.title='owned'" not in text.replace("&#x27;", "'").partition("<main>")[0]
    assert "<script>document" not in text
    assert "<img" not in text
    assert len(text) < 500_000
    check_trace(json.loads(trace.read_text("utf-8")))


def test_one_model_alone(tmp_path):
    model = str(FILES / "elementwise.tflite")
    result = CliRunner().invoke(cli, ["bench", model, model, "--trace", str(tmp_path / "t.json")])
    assert result.exit_code == 2
    assert "--trace are for one model" in result.output
