"""A plugin of pytest: what `TFLiteConverter.convert` returns, in order, and which tests fail.

BASELINE_NOTES names the file that [(key, bytes), ...] is pickled to at the end.
"""

from __future__ import annotations

import os
import pickle
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

_noted: list[tuple[str, bytes]] = []
_counts: Counter[str] = Counter()
_now = "collection"
RELEASE = re.compile(rb"Opwright \d+\.\d+\.\d+ Converted\.")
"""A file's description; a release is no difference. It is as long as the record's, so that nothing else moves."""


def pytest_sessionstart(session: pytest.Session) -> None:
    """Note conversions from here on."""
    from opwright.lite import TFLiteConverter

    convert = TFLiteConverter.convert

    def noted(self: Any) -> bytes:
        content: bytes = convert(self)
        _noted.append((f"{_now}/{_counts[_now]}", RELEASE.sub(b"Opwright 0.1.0 Converted.", content)))
        _counts[_now] += 1
        return content

    TFLiteConverter.convert = noted  # type: ignore[method-assign]


def pytest_runtest_logstart(nodeid: str) -> None:
    """Conversions are this test's from here on."""
    global _now
    _now = nodeid.partition("::")[2].replace("/", "|").replace(" ", "_")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note a test that fails."""
    if report.failed:
        _noted.append((f"{_now}/{report.when}", b"failed"))


def pytest_sessionfinish() -> None:
    """Write the notes."""
    Path(os.environ["BASELINE_NOTES"]).write_bytes(pickle.dumps(_noted))
