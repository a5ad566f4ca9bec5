"""Below the results of a test run: how many cases of the table operator x type were tried, and passed."""

from __future__ import annotations


def pytest_terminal_summary(terminalreporter):
    reports = [r for kind in ("passed", "failed") for r in terminalreporter.stats.get(kind, ())]
    rows = [v for r in reports for name, v in getattr(r, "user_properties", ()) if name == "operator x type"]
    if not rows:
        return
    operators, tried, passed = {r[0].split()[0] for r in rows}, sum(r[3] for r in rows), sum(r[4] for r in rows)
    terminalreporter.write_line(f"operator x type: {len(operators)} operators, {len(rows)} rows, {tried} cases tried "
                                f"against the official kernels, {passed} passed (docs/operator_table.md)")  # fmt: skip
