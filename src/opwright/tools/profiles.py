"""Print a model's profile: tables in the manner of TensorFlow Lite's benchmark tool.

Lives here: `print_profile`, columns and cells of its tables.  Not here: timing (lite/runtime/profiler.py), other
figures (benchmark.py), the page (bench_report.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.table import Table

from ..lite.runtime.profiler import Profile, Row
from .report import out

SLOWEST = 10
NAME = 60  # columns; the converter's names of fused nodes can have hundreds


def print_profile(profile: Profile, names: Sequence[str]) -> None:
    """Print for each subgraph that ran: nodes in execution order, the slowest of them, and operators.

    names: of the model's subgraphs. Times are for one run of the model.
    """
    for index in (0, *profile.called):
        rows = profile if index == 0 else profile.called[index]
        of = f" of subgraph {index} {names[index]!r}" if profile.called else ""
        out().print(_nodes(rows, f"Run order{of}"))
        slowest = sorted(rows, key=lambda row: -row["average"])[:SLOWEST]
        out().print(_nodes(_with_running_sum(slowest), f"Top by computation time{of}"))
        out().print(_operators(profile.operators(index), f"By operator{of}"))
        calls = sum(row["calls"] for row in rows) / profile.runs
        total = sum(row["average"] for row in rows)
        out().print(f"nodes executed: {calls:g} a run, {total * 1e6:.1f} us of {profile.runs} runs' average\n")
    arena, own, mapped, copied = map(_kilobytes, profile.footprint)
    out().print(
        f"memory: arena {arena} KB, tensors of their own {own} KB; constants in the file's memory {mapped} KB, "
        f"copies of constants {copied} KB"
    )


def _with_running_sum(rows: Sequence[Row]) -> list[Row]:
    """Return the rows in this order, with `cumulative` as the sum of the shares so far."""
    so_far, result = 0.0, []
    for row in rows:
        so_far += row["share"]
        result.append(row | {"cumulative": so_far})
    return result


NODE_COLUMNS = (
    "node",
    "node type",
    "by",
    "first us",
    "avg us",
    "median us",
    "least us",
    "%",
    "cdf %",
    "mem KB",
    "times called",
    "name",
)
OPERATOR_COLUMNS = ("node type", "count", "avg us", "median us", "least us", "avg %", "cdf %", "mem KB", "times called")
TEXT_COLUMNS = ("node type", "by", "name")


def node_cells(row: Row) -> tuple[str, ...]:
    """Return the cells of NODE_COLUMNS."""
    return (
        str(row["node"]),
        _kind(row),
        row.get("delegate", "interpreter"),
        microseconds(row["first"]),
        _average(row),
        *_figures(row),
        f"[{shortened(row['name'])}]:{row['node']}",
    )


def _figures(row: Row) -> tuple[str, ...]:
    """Return the cells of both tables from the median time on."""
    return (
        microseconds(row["seconds"]),
        microseconds(row["fastest"]),
        _percent(row["share"]),
        _percent(row["cumulative"]),
        _kilobytes(row["memory"]),
        str(row["calls"]),
    )


def _kind(row: Row) -> str:
    """Return the operator; for a custom one also its version."""
    return f"{row['operator']} v{row['version']} (custom)" if row["custom"] else str(row["operator"])


def _average(row: Row) -> str:
    """Return the average time; "fused" for a node that a delegate computes within another's kernel."""
    return "fused" if row["average"] == 0.0 and "delegate" in row else microseconds(row["average"])


def shortened(name: str) -> str:
    """Return a name that fits into a column."""
    return name if len(name) <= NAME else f"{name[: NAME - 3]}..."


def operator_cells(row: Row) -> tuple[str, ...]:
    """Return the cells of OPERATOR_COLUMNS."""
    return (_kind(row), str(row["count"]), microseconds(row["average"]), *_figures(row))


def microseconds(seconds: float) -> str:
    """Return a time in microseconds."""
    return f"{seconds * 1e6:.2f}"


def _percent(share: float) -> str:
    return f"{share * 100:.2f}"


def _kilobytes(size: int | None) -> str:
    return "" if size is None else f"{size / 1024:.1f}"


def _table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    table = Table(title=title)
    for column in columns:
        table.add_column(column, justify="left" if column in TEXT_COLUMNS else "right")
    for row in rows:
        table.add_row(*row)
    return table


def _nodes(rows: Iterable[Row], title: str) -> Table:
    return _table(title, NODE_COLUMNS, map(node_cells, rows))


def _operators(rows: Iterable[Row], title: str) -> Table:
    return _table(title, OPERATOR_COLUMNS, map(operator_cells, rows))
