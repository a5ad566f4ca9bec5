"""Traces of runs as files for Perfetto and chrome://tracing.

Lives here: `trace_document`. Not here: recording (lite/runtime/timeline.py), charts (bench_report.py).

Source: Trace Event Format, JSON object format: complete events (X), counters (C) and metadata (M), times in
microseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..lite.runtime.timeline import Timeline
from ..pages.markup import visible

LONGEST = 300  # characters of a name
MOST_NODES = 100  # numbers of nodes among the arguments of an event


def trace_document(
    title: str, timeline: Timeline, alive: Iterable[tuple[float, int]] = (), facts: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return a timeline as a JSON object in the Trace Event Format.

    title: of the process; alive: seconds and bytes of values that are needed from then on; facts: for `otherData`
    """
    events: list[dict[str, Any]] = [_metadata("process_name", 0, name=visible(title, LONGEST))]
    for thread in range(timeline.threads):
        events.append(_metadata("thread_name", thread, name="caller" if thread == 0 else f"worker {thread}"))
        events.append(_metadata("thread_sort_index", thread, sort_index=thread))
    for event in timeline.events:
        arguments: dict[str, Any] = {"subgraph": event.subgraph, "nodes": list(event.nodes[:MOST_NODES])}
        if event.kernel:
            arguments |= {"kernel": event.kernel, "begin": event.begin, "end": event.end}
        events.append(
            {
                "name": visible(event.name, LONGEST),
                "cat": event.kind,
                "ph": "X",
                "ts": event.start * 1e6,
                "dur": event.seconds * 1e6,
                "pid": 1,
                "tid": event.thread,
                "args": arguments,
            }
        )
    for seconds, count in alive:
        arguments = {"bytes": count}
        events.append({"name": "values alive", "ph": "C", "ts": seconds * 1e6, "pid": 1, "tid": 0, "args": arguments})
    other = {visible(k, LONGEST): visible(v, LONGEST) for k, v in (facts or {}).items()}
    return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": other}


def _metadata(what: str, thread: int, **arguments: Any) -> dict[str, Any]:
    return {"name": what, "ph": "M", "ts": 0, "pid": 1, "tid": thread, "args": arguments}
