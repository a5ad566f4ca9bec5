"""The catalogue against its snapshots: today's version's is current, and no version's users are broken.

Lives here: the comparison with tests/compat/snapshots/*.json, one a version, all of which are checked.
Not here: writing them (make_snapshot.py, run by `make snapshot`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import opwright as ow

pytestmark = pytest.mark.ours
FOLDER = Path(__file__).parent / "snapshots"
NAME = f"{ow.__version__}.json"

# Changes that are not allowed and were made all the same: the version they break, the sentence of `opwright op compat`,
# and why. Each is in the change log of the version that makes it.
ACCEPTED: dict[tuple[str, str], str] = {}


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def broken(path: Path) -> list[Any]:
    """Return the incompatible changes since a snapshot that have not been accepted."""
    changes = ow.ops.compatibility(read(path), ow.ops.spec())
    undone = [c for c in changes if not c.allowed or c.rule == "undated"]  # of ourselves we ask a version for additions
    return [c for c in undone if (path.stem, str(c).lstrip("! ")) not in ACCEPTED]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda p: p.stem)
def test_nothing_that_was_relied_on_has_changed(path: Path) -> None:
    result = broken(path)
    assert not result, "\n".join([f"breaks users of {path.stem}:", *map(str, result)])


def test_this_versions_snapshot_is_current() -> None:
    path = FOLDER / NAME
    assert path.is_file(), f"{path} is missing: run `make snapshot`"
    changes = ow.ops.compatibility(read(path), ow.ops.spec())
    words = "the snapshot is not current; look at the changes, then run `make snapshot`:"
    assert not changes, "\n".join([words, *map(str, changes)])


def test_what_is_accepted_is_still_needed() -> None:
    """An entry whose change was undone, or whose words changed, goes."""
    result = {
        (path.stem, str(c).lstrip("! "))
        for path in FOLDER.glob("*.json")
        for c in ow.ops.compatibility(read(path), ow.ops.spec())
    }
    assert set(ACCEPTED) <= result
    assert all(reason.strip() for reason in ACCEPTED.values())


def test_a_break_would_be_found() -> None:
    """The check is no formality: a snapshot that promised more than there is fails it."""
    promised = read(FOLDER / NAME)
    promised["operators"]["Atan"]["attrs"].append(
        {
            "name": "exact",
            "type": "bool",
            "required": False,
            "default": True,
            "since": 1,
            "check": None,
            "condition": None,
        }
    )
    promised["operators"]["NoSuchOperator"] = promised["operators"]["Atan"]
    changes = ow.ops.compatibility(promised, ow.ops.spec())
    assert [(c.operator, c.part, c.allowed) for c in changes] == [
        ("Atan", "attribute", False),
        ("NoSuchOperator", "operator", False),
    ]
