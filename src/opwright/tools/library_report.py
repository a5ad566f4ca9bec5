"""The report of a built library: as tables, as JSON, as a page without scripts.

Lives here: `print_report`, `document_of`, `html_page`. Not here: the figures (aot/build_report.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from rich.table import Table

from ..aot.build_report import ArenaRow, BuildReport
from ..pages.markup import escape, page
from ..pages.tables import table
from .profiles import shortened
from .report import out

LONGEST = 20
"""So many rows of each table are printed; JSON and the page have all."""


class _ReportTable(NamedTuple):
    """A table of the report. rows: cells, and the share that the page draws as a bar."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[tuple[str, ...], float]]


def document_of(report: BuildReport) -> dict[str, Any]:
    """Return the report as values of JSON."""
    return {
        key: [row._asdict() for row in value] if isinstance(value, tuple) else value
        for key, value in report._asdict().items()
    }


def print_report(report: BuildReport) -> None:
    """Print the tables, the first rows of each."""
    out().print(_summary(report))
    for section in _sections(report):
        table = Table(title=section.title, title_justify="left")
        for column in section.columns:
            table.add_column(column, justify="left" if column in _TEXT else "right")
        for cells, _ in section.rows[:LONGEST]:
            table.add_row(*cells)
        if len(section.rows) > LONGEST:
            table.add_row(*[f"{len(section.rows) - LONGEST} more", *[""] * (len(section.columns) - 1)])
        out().print(table)


_TEXT = ("operators", "kernel", "nodes", "tensors", "function")


def _summary(report: BuildReport) -> str:
    return (
        f"code {report.code} bytes, of which {report.other} are outside of kernels; weights {report.weights}; "
        f"arena {report.arena}; state {report.state}"
    )


def _sections(report: BuildReport) -> Iterable[_ReportTable]:
    """Return the tables, the largest rows first where the order has no meaning."""
    seconds = sum(row.seconds or 0.0 for row in report.steps)
    timed = any(row.seconds is not None for row in report.steps)
    total = sum(row.code + row.weights for row in report.operators)
    yield _ReportTable(
        "By operator",
        ("operators", "nodes", "steps", "code", "weights", *(("us", "%") if timed else ())),
        [
            (
                (
                    row.operators,
                    str(row.nodes),
                    str(row.steps),
                    str(row.code),
                    str(row.weights),
                    *((_us(row.seconds), _percent(row.seconds, seconds)) if timed else ()),
                ),
                (row.seconds or 0.0) / seconds if timed and seconds else (row.code + row.weights) / max(total, 1),
            )
            for row in report.operators
        ],
    )
    yield _ReportTable(
        "Kernels",
        ("kernel", "code", "steps", "operators"),
        [
            (
                (shortened(k.name), "" if k.code is None else str(k.code), str(k.steps), ", ".join(k.operators)),
                (k.code or 0) / max(report.code, 1),
            )
            for k in report.kernels
        ],
    )
    yield _ReportTable(
        "Weights",
        ("tensors", "bytes", "nodes"),
        [
            ((_listed(w.tensors), str(w.nbytes), _listed(w.nodes)), w.nbytes / max(report.weights, 1))
            for w in report.constants
        ],
    )
    yield _ReportTable(
        "Arena", ("operation", "nodes", "bytes live"), [_arena_row(row, report) for row in report.memory]
    )
    if timed:
        slowest = sorted(report.steps, key=lambda row: -(row.seconds or 0.0))
        yield _ReportTable(
            "Steps",
            ("nodes", "function", "kernel", "items", "us", "%"),
            [
                (
                    (
                        _listed(row.nodes),
                        row.signature,
                        shortened(row.kernel),
                        str(row.items),
                        _us(row.seconds),
                        _percent(row.seconds, seconds),
                    ),
                    (row.seconds or 0.0) / seconds if seconds else 0.0,
                )
                for row in slowest
            ],
        )


def _arena_row(row: ArenaRow, report: BuildReport) -> tuple[tuple[str, ...], float]:
    return (str(row.position), _listed(row.nodes), str(row.live)), row.live / report.arena


def _us(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e6:.2f}"


def _percent(part: float | None, whole: float) -> str:
    return "" if part is None or not whole else f"{part / whole * 100:.1f}"


def _listed(names: Sequence[str]) -> str:
    return shortened(", ".join(names))


def html_page(report: BuildReport) -> str:
    """Return a self-contained page: all rows of the tables, with bars of their shares."""
    title = f"{report.name} for {report.target}"
    parts = [f"<main><h1>{escape(title)}</h1><p>{escape(_summary(report))}</p>"]
    for section in _sections(report):
        parts += [f"<h2>{escape(section.title)}</h2>", table(section.columns, section.rows, _TEXT)]
    return page(title, "\n".join([*parts, "</main>"]))
