"""`opwright check`: the operators and versions that a model needs, where they are available, and where it fails.

Lives here: the report. Not here: requirements of nodes (lite/format/runtime_requirements.py), a file's contents
(inspection.py), custom operators named on the command line (model_runner.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from .. import lite
from ..lite.customs import list_names
from ..lite.format import versions
from ..lite.format.runtime_requirements import (
    Requirement,
    least_runtime,
    requirements,
    stored_runtime,
    unsupported_by,
    user_custom_ops,
)
from ..lite.resolver import with_customs
from ..lite.runtime.model_loader import format_ranges
from ..ops import registry
from .inspection import read_model
from .model_runner import custom_operators, in_catalogue
from .report import BadFile, out, print_json

YES, NO, BRING = "yes", "no", "needs your definition"


def check_model(path: str, runtime: str | None, customs: Sequence[str], strict: bool, as_json: bool) -> bool:
    """Print the model's requirements; True if it runs here and on `runtime`, if specified.

    customs: as for `custom_operators`; with them, missing custom operators count. strict: warnings count too. raises
    BadFile for an invalid model or file of operators
    """
    resolver = with_customs(lite.BuiltinOpResolver(), custom_operators(customs))
    try:
        model = read_model(path)
    except BadFile as error:
        if as_json:
            print_json({"file": path, "verified": False, "problems": [str(error)], "ok": False})
        raise
    needs = requirements(model)
    users: dict[tuple[int, int], list[Requirement]] = {}  # by operator code, and version if the options have it
    for n in needs:
        users.setdefault((n.code, n.version), []).append(n)
    rows = [_row(model, code, users[code, version], resolver) for code, version in sorted(users)]
    stops = [] if runtime is None else unsupported_by(needs, runtime)
    absent = [
        n
        for n in user_custom_ops(needs)
        if runtime is not None and not (customs and resolver.find_custom(n.operator, n.version))
    ]
    problems = [text for row in rows for text in _missing(row, resolver)]
    warnings = _warnings(model, needs)
    unresolved = [row for row in rows if row["here"] == NO or (row["custom"] and customs and row["here"] != YES)]
    ok = not stops and not absent and not unresolved and not (strict and warnings)
    minimum, unknown = least_runtime(needs), any(not n.custom and not n.runtime for n in needs)
    lines = [*_unsupported_lines(stops, minimum, runtime or "", unknown), *_absent_lines(absent, runtime or "")]
    if as_json:
        print_json(
            {
                "file": path,
                "verified": True,
                "operators": rows,
                "min_runtime": minimum,
                "stored_runtime": stored_runtime(model),
                "runtime": runtime,
                "stops": [*map(_requirement_entry, stops)],
                "absent": [*map(_requirement_entry, absent)],
                "problems": problems + lines,
                "warnings": warnings,
                "ok": ok,
            }
        )
        return ok
    console = out()
    console.print(
        f"{path}: verified; needs run time {minimum or 'any'}"
        + (", or one newer than is known here" if unknown else "")
        + (", and custom operators" if any(row["custom"] for row in rows) else "")
    )
    if lines:
        console.print(Text(lines[0], "bold red"))
    console.print(_table(rows))
    for line in (*lines[1:], *problems):
        console.print(f"- {line}")
    for line in warnings:
        console.print(f"- warning: {line}")
    return ok


def _row(model: Any, index: int, users: Sequence[Requirement], resolver: Any) -> dict[str, Any]:
    """Return the row of one operator code. `needed` is the least version that expresses all its nodes."""
    first = users[0]
    nodes = [n for n in users if n.node is not None]
    version, name = first.version, first.operator
    row: dict[str, Any] = {
        "operator": name,
        "custom": first.custom,
        "version": version,
        "nodes": len(nodes),
        "needed": max((n.needed for n in nodes), default=version),
    }
    if first.custom:
        row["here"] = YES if resolver.find_custom(name, version) else NO if resolver.custom_versions(name) else BRING
        row["known"] = _known(name)
        return row
    code = model.operator_codes[index]
    row["here"] = YES if resolver.find_op(versions.builtin_code(code), version) else NO
    row["here_versions"] = resolver.builtin_versions(name)
    row["official"] = versions.resolver_range(name)
    runtimes = [n.runtime for n in users]
    row["min_runtime"] = max(runtimes, key=versions.runtime_key) if all(runtimes) else ""
    return row


def _known(name: str) -> str:
    if name.startswith("Flex"):
        return f"TensorFlow's {name.removeprefix('Flex')}, run by the Flex delegate"
    if name in list_names():
        return "shipped"
    if in_catalogue(name) is not None:
        return f"in the catalogue: ow.ops.get({name!r})"
    added = [f.entry.package for f in registry.load_entries(name) if not f.trouble]
    return f"added by {added[0]}" if len(added) == 1 else registry.package_problems(name)


def _missing(row: dict[str, Any], resolver: Any) -> list[str]:
    """Return what is missing here, or must be supplied."""
    name, version = row["operator"], row["version"]
    if row["here"] == YES:
        return []
    if not row["custom"]:
        there = f", which has version {format_ranges(row['here_versions'])}" if row["here_versions"] else ""
        return [f"{name} version {version} is not in this interpreter{there}"]
    others = resolver.custom_versions(name)
    if others:
        return [
            f"custom operator {name} version {version}: the definition given has version {format_ranges(others)}; "
            "get a newer one"
        ]
    hint = f" ({row['known']})" if row["known"] else ""
    return [f"custom operator {name}: pass it as custom_ops=[{name}]{hint}"]


def _unsupported_lines(stops: Sequence[Requirement], minimum: str, runtime: str, unknown: bool) -> list[str]:
    """Describe the model's requirement and the first unsupported node; then one line for each other cause."""
    if not stops:
        return []
    requirement = "a run time newer than is known here" if unknown else _short(minimum)
    n = stops[0]
    lines = [
        f"needs {requirement}; {runtime} stops at {_versioned(n)}, {n.where}"
        + ("" if n.runtime else ": no run time is known to have it")
    ]
    for users in _by_cause(stops[1:]):
        n = users[0]
        needs_it = f"which needs {_short(n.runtime)}" if n.runtime else "which no run time is known to have"
        lines.append(f"{runtime} also stops at {_versioned(n)}, {_node_list(users)}, {needs_it}")
    return lines


def _absent_lines(absent: Sequence[Requirement], runtime: str) -> list[str]:
    """Return a line for each custom operator that the run time lacks, with its nodes."""
    lines = []
    for users in _by_cause(absent):
        n = users[0]
        do = "TensorFlow's Flex delegate runs it" if n.operator.startswith("Flex") else "it has to be registered there"
        lines.append(f"{runtime} has no custom operator {n.operator}, {_node_list(users)}: {do}")
    return lines


def _by_cause(needs: Sequence[Requirement]) -> list[list[Requirement]]:
    """Group nodes that require the same operator in the same version."""
    groups: dict[Any, list[Requirement]] = {}
    for n in needs:
        groups.setdefault((n.operator, n.version, n.least), []).append(n)
    return list(groups.values())


def _versioned(n: Requirement) -> str:
    stamped = f" (stamped {n.version})" if n.version < n.needed else ""
    return f"{n.operator} version {n.least}{stamped}"


def _node_list(users: Sequence[Requirement]) -> str:
    """Format nodes: node 3; 4 nodes: 3, 5..7; 2 nodes: 1; 1 of subgraph 1."""
    if len(users) == 1:
        return users[0].where
    parts = []
    for subgraph in dict.fromkeys(n.subgraph for n in users):
        runs: list[list[int]] = []
        for number in sorted(n.node for n in users if n.subgraph == subgraph and n.node is not None):
            if runs and runs[-1][-1] == number - 1:
                runs[-1].append(number)
            else:
                runs.append([number])
        text = ", ".join(f"{r[0]}..{r[-1]}" if len(r) > 2 else ", ".join(map(str, r)) for r in runs)
        parts.append(text + (f" of subgraph {subgraph}" if subgraph else ""))
    return f"{len(users)} nodes: {'; '.join(parts)}"


def _requirement_entry(n: Requirement) -> dict[str, Any]:
    return {
        "subgraph": n.subgraph,
        "node": n.node,
        "operator": n.operator,
        "version": n.version,
        "needed": n.needed,
        "needs": n.runtime,
    }


def _short(runtime: str) -> str:
    """Return 2.11 for 2.11.0."""
    return runtime.removesuffix(".0") if runtime.count(".") == 2 else runtime


def _warnings(model: Any, needs: Sequence[Requirement]) -> list[str]:
    """Return stamps that differ from the nodes' needs, and a stored run time that differs from the operators'."""
    lines = []
    for index in dict.fromkeys(n.code for n in needs):
        nodes = [n for n in needs if n.code == index and n.node is not None]
        if not nodes or nodes[0].custom:
            continue
        most = max(nodes, key=lambda n: n.needed)
        name, version = most.operator, most.version
        if most.needed > version:
            lines.append(
                f"{name} is stamped version {version}, but {most.where} needs version {most.needed}"
                f" ({most.why}): an old run time would not refuse it"
            )
        elif most.needed < version:
            would = _short(versions.min_runtime(name, most.needed))
            lines.append(
                f"{name} is stamped version {version}, though version {most.needed} expresses its nodes"
                + (f" (run time {would})" if would else "")
            )
    stored, computed = stored_runtime(model), least_runtime(needs)
    unknown = any(n.node is not None and not n.custom and not n.runtime for n in needs)
    words = "one newer than is known here" if unknown else computed or "any"
    if stored == "?":
        lines.append(f"the metadata {versions.METADATA_NAME} is malformed; the operators need {words}")
    elif stored is not None and (unknown or versions.runtime_key(stored) != versions.runtime_key(computed)):
        lines.append(f"the metadata {versions.METADATA_NAME} says {stored or 'nothing'}, the operators need {words}")
    return lines


def _table(rows: Sequence[dict[str, Any]]) -> Table:
    table = Table("operator", "version", "nodes", "here", "official versions", "needs run time")
    for row in rows:
        official = row.get("official")
        there = "custom" if row["custom"] else f"{official[0]}..{official[1]}" if official else "none"
        version = str(row["version"])
        if row["needed"] != row["version"]:
            version += f" (needs {row['needed']})"
        here = Text(row["here"], {NO: "red", BRING: "yellow"}.get(row["here"], ""))
        table.add_row(row["operator"], version, str(row["nodes"]), here, there, row.get("min_runtime") or "")
    return table
