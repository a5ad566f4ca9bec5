"""The page of `opwright bench --html`: charts and tables of one model's times and memory.

Lives here: `BenchReport`, `html_page`, `values_alive`. Not here: measuring (benchmark.py), the cells of tables
(profiles.py), drawing (pages/).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ..lite.format import Model
from ..lite.importer import place_of
from ..lite.runtime.profiler import Profile
from ..lite.runtime.timeline import Timeline, TimelineEvent
from ..pages.charts import Chart, legend, mark, page_with_charts
from ..pages.markup import escape
from ..pages.tables import table
from ..views.graph_documents import document_of
from ..views.operator_facts import CATEGORIES, OTHER, category
from ..views.sources import source_of
from .profiles import NODE_COLUMNS, OPERATOR_COLUMNS, TEXT_COLUMNS, microseconds, node_cells, operator_cells

MOST_EVENTS = 4000
"""Calls that the timeline draws, the longest; a trace file has all."""
MOST_OPERATORS = 30


class BenchReport(NamedTuple):
    """The measurements of `bench`. figures, runs: statistics and seconds of each run; baseline, baseline_runs: of the
    other interpreter `vs`, by its interface `how`; alive: of `values_alive`; facts: the machine and versions."""

    path: str
    figures: dict[str, float]
    runs: Sequence[float]
    profile: Profile
    timeline: Timeline
    alive: Sequence[tuple[float, int]]
    facts: Sequence[tuple[str, str]]
    vs: str = ""
    how: str = ""
    baseline: dict[str, float] | None = None
    baseline_runs: Sequence[float] = ()


def values_alive(model: Model, timeline: Timeline) -> list[tuple[float, int]]:
    """Return when in the run which bytes of values are needed, of the main subgraph, at the start of each node.

    Each value counts as memory of its own, from the node that computes it to the last that reads it.
    """
    source = source_of(model)
    graph = document_of(source.graphs[:1], source.title, (), source.stored)["graphs"][0]
    needed = {node["at"]: node.get("l", 0) for node in graph["nodes"] if "at" in node}
    starts: dict[int, float] = {}
    for event in timeline.events:
        if event.subgraph == 0 and event.kind != "delegate":
            for number in event.nodes:
                starts[number] = min(starts.get(number, event.start), event.start)
    rows = sorted((start, number) for number, start in starts.items())
    return [(start, needed[place_of(0, number)]) for start, number in rows if place_of(0, number) in needed]


def html_page(report: BenchReport) -> str:
    """Return the page."""
    parts: list[str | Chart] = [f"<main><h1>{escape(report.path)}</h1>", _summary(report)]
    parts += [_figures(report), "<h2>Run times</h2>"]
    if report.baseline is not None:
        parts.append(legend([(0, "Opwright"), (1, f"{report.vs}, {report.how}")]))
    parts += [_distribution(report), _in_order(report)]
    parts += ["<h2>Operators</h2>", _operators(report.profile)]
    parts += ["<h2>Timeline</h2>", _note(report), legend(_categories()), _timeline(report.timeline)]
    if report.alive:
        parts += ["<h2>Memory</h2>", _memory(report), _occupation(report)]
    for index in (0, *report.profile.called):
        rows = report.profile if index == 0 else report.profile.called[index]
        kinds = [(operator_cells(row), row["share"]) for row in report.profile.operators(index)]
        nodes = [(node_cells(row), row["share"]) for row in rows]
        parts += [f"<h2>Subgraph {index}</h2>", table(OPERATOR_COLUMNS, kinds, TEXT_COLUMNS)]
        parts.append(table(NODE_COLUMNS, nodes, TEXT_COLUMNS))
    rows_of_facts = [(fact, None) for fact in report.facts]
    parts += ["<h2>Machine and versions</h2>", table(("what", "value"), rows_of_facts, ("what", "value")), "</main>"]
    return page_with_charts(report.path, parts)


def _summary(report: BenchReport) -> str:
    median = report.figures["invoke_median"]
    text = f"A run takes {microseconds(median)} us, the median of {len(report.runs)}."
    if report.baseline is not None:
        other = report.baseline["invoke_median"]
        text += f" {report.vs} takes {microseconds(other)} us, {other / median:.2f} times as long."
    return f"<p>{escape(text)}</p>"


def _figures(report: BenchReport) -> str:
    columns = ["measure", "us", *([report.vs, "ratio"] if report.baseline else [])]
    rows = []
    for label, seconds in report.figures.items():
        cells = [label.replace("_", " "), microseconds(seconds)]
        if report.baseline is not None:
            cells += [microseconds(report.baseline[label]), f"{report.baseline[label] / seconds:.2f}"]
        rows.append((cells, None))
    return table(columns, rows, ("measure",))


def _distribution(report: BenchReport) -> Chart:
    sides = [(report.runs, "var(--c0)"), (report.baseline_runs, "var(--c1)")]
    every = sorted((*report.runs, *report.baseline_runs))
    most = every[min(int(len(every) * 0.99), len(every) - 1)] * 1e6 * 1.05
    bins = min(60, max(10, len(report.runs) // 4))
    least = every[0] * 1e6
    edges = [least + (most - least) * i / bins for i in range(bins + 1)]  # the same for both
    beyond = sum(t * 1e6 > most for t in every)
    marks = [
        mark(
            "rectY",
            {"us": [t * 1e6 for t in runs if t * 1e6 <= most]},
            {"y": "count"},
            x="us",
            thresholds=edges,
            fill=colour,
            fillOpacity=0.6,
        )
        for runs, colour in sides
        if runs
    ]
    for runs, colour in sides:
        if runs:
            middle = sorted(runs)[len(runs) // 2] * 1e6
            marks.append(mark("ruleX", {"us": [middle]}, x="us", stroke=colour, strokeWidth=2))
    marks.append(mark("ruleY", {"zero": [0]}, y="zero"))
    title = "Distribution of run times; lines are medians" + (
        f"; {beyond} of {len(every)} are beyond the axis" if beyond else ""
    )
    label = f"Histogram of the times of {len(report.runs)} runs. The table above has the statistics."
    return Chart(marks, title, label, x={"label": "us"}, y={"label": "runs", "grid": True}, height=240)


def _in_order(report: BenchReport) -> Chart:
    sides = [(report.runs, "var(--c0)"), (report.baseline_runs, "var(--c1)")]
    marks = [
        mark("dot", {"run": list(range(len(runs))), "us": [t * 1e6 for t in runs]}, x="run", y="us", stroke=colour, r=2)
        for runs, colour in sides
        if runs
    ]
    return Chart(
        marks,
        "Each run, in order",
        "The time of each run in the order of the runs, which shows whether times drift.",
        x={"label": "run"},
        y={"label": "us", "grid": True},
        height=200,
    )


def _operators(profile: Profile) -> Chart:
    rows = profile.operators()[:MOST_OPERATORS]
    names = [str(row["operator"]) for row in rows]
    columns = {
        "name": [f"{name} v{row['version']}" if row["custom"] else name for name, row in zip(names, rows)],
        "us": [row["average"] * 1e6 for row in rows],
        "colour": [f"var(--c{category(name)})" for name in names],
        "text": [f"{row['share'] * 100:.1f} %, {row['count']} nodes" for row in rows],
    }
    marks = [
        mark("barX", columns, x="us", y="name", fill="colour", title="text"),
        mark("text", columns, x="us", y="name", text="text", textAnchor="start", dx=4),
        mark("ruleX", {"zero": [0]}, x="zero"),
    ]
    return Chart(
        marks,
        "Average time of a run by operator of the main subgraph",
        "Bars of the average time of each operator. The table of subgraph 0 has the same figures.",
        x={"label": "us", "grid": True},
        y={"label": None, "domain": columns["name"], "tickSize": 0},
        color={"type": "identity"},
        marginLeft=190,
        marginRight=110,
        height=40 + 22 * len(rows),
    )


def _categories() -> list[tuple[int, str]]:
    return list(enumerate([*(label for label, _ in CATEGORIES), OTHER]))


def _note(report: BenchReport) -> str:
    timeline = report.timeline
    text = (
        f"The fastest of several recorded runs: {microseconds(timeline.seconds)} us on {timeline.threads} "
        f"{'thread' if timeline.threads == 1 else 'threads'}. Recording a step costs about 60 ns, a node some "
        "microseconds. Bars are calls of kernels, in compiled plans of parts of nodes."
    )
    drawn = len(_drawn(timeline))
    if drawn > MOST_EVENTS:
        text += f" The longest {MOST_EVENTS} of {drawn} calls are drawn; `--trace` writes all."
    if timeline.lost:
        text += f" {timeline.lost} calls were not recorded."
    return f"<p>{escape(text)}</p>"


def _drawn(timeline: Timeline) -> list[TimelineEvent]:
    return [event for event in timeline.events if event.kind != "delegate"]


def _timeline(timeline: Timeline) -> Chart:
    events = sorted(_drawn(timeline), key=lambda event: -event.seconds)[:MOST_EVENTS]
    events.sort(key=lambda event: event.start)
    columns: dict[str, list[Any]] = {
        "start": [round(event.start * 1e6, 3) for event in events],
        "stop": [round((event.start + event.seconds) * 1e6, 3) for event in events],
        "thread": [_thread(event.thread) for event in events],
        "colour": [f"var(--c{category(event.name)})" for event in events],
        "text": [_described(event) for event in events],
    }
    bars = mark("barX", columns, x1="start", x2="stop", y="thread", fill="colour", title="text", inset=0)
    return Chart(
        [bars],
        "Calls of kernels by thread; the pointer shows which",
        f"When each of {timeline.threads} threads executed which step. The table of nodes has the times.",
        x={"label": "us", "grid": True, "domain": [0, timeline.seconds * 1e6]},
        y={"label": None, "domain": [_thread(i) for i in range(timeline.threads)]},
        color={"type": "identity"},
        marginLeft=70,
        height=60 + 50 * timeline.threads,
    )


def _thread(number: int) -> str:
    return "caller" if number == 0 else f"worker {number}"


def _described(event: TimelineEvent) -> str:
    nodes = ", ".join(map(str, event.nodes[:8])) + (" ..." if len(event.nodes) > 8 else "")
    lines = [event.name, f"{event.seconds * 1e6:.2f} us", f"subgraph {event.subgraph}, nodes {nodes}"]
    if event.kernel:
        lines += [event.kernel.removeprefix("opwright.compiler.kernels."), f"items {event.begin} to {event.end}"]
    return "\n".join(lines)


def _memory(report: BenchReport) -> str:
    arena, own, mapped, copied = report.profile.footprint
    rows: Iterable[tuple[str, int]] = (
        ("arena of activations, of compiled plans and of the interpreter", arena),
        ("tensors with memory of their own", own),
        ("constants in the file's memory", mapped),
        ("copies of constants", copied),
    )
    return table(("memory", "bytes"), [((what, count), None) for what, count in rows], ("memory",))


def _occupation(report: BenchReport) -> Chart:
    end = report.timeline.seconds * 1e6
    columns = {
        "us": [seconds * 1e6 for seconds, _ in report.alive] + [end],
        "KiB": [count / 1024 for _, count in report.alive] + [report.alive[-1][1] / 1024],
    }
    marks = [
        mark("areaY", columns, x="us", y1=0, y2="KiB", curve="step-after", fill="var(--c0)", fillOpacity=0.35),
        mark("lineY", columns, x="us", y="KiB", curve="step-after", stroke="var(--c0)"),
        mark(
            "ruleY",
            {"KiB": [report.profile.footprint.arena / 1024]},
            y="KiB",
            stroke="var(--c1)",
            strokeDasharray="6 3",
        ),
        mark("ruleY", {"zero": [0]}, y="zero"),
    ]
    peak = max(count for _, count in report.alive)
    return Chart(
        marks,
        "Bytes of values that are needed, by the nodes of the file; dashed: the arena, which is smaller where kernels "
        "are fused or work in place",
        f"Bytes of values alive over the run, at most {peak} bytes.",
        x={"label": "us", "grid": True, "domain": [0, end]},
        y={"label": "KiB", "grid": True},
        marginLeft=60,
        height=220,
    )
