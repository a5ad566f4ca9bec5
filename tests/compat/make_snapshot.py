"""Renew this version's snapshot of the catalogue: `make snapshot`.

Lives here: writing tests/compat/snapshots/VERSION.json.  Not here: the tests (test_snapshots.py).

One line an operator, so that a change is one line of a diff; fields that are as the format's default are left out.
Snapshots of released versions are never written again. What breaks users is decided by somebody, not by running a
command: a change that breaks programs or files of an earlier version is refused unless it is named, with its reason, in
ACCEPTED of test_snapshots.py, and one that breaks only this version, as long as it is not released, unless asked for:
`make snapshot UNRELEASED=1`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import opwright as ow
from opwright.ops.specification import OPERATOR, PARTS, document

FOLDER = Path(__file__).parent / "snapshots"


def _without_defaults(result: dict[str, Any], fields: Any) -> dict[str, Any]:
    default = {f.key: f.default for f in fields}
    return {k: v for k, v in result.items() if k not in default or v != default[k] or type(v) is not type(default[k])}


def written(result: dict[str, Any]) -> str:
    """A document as the snapshot has it."""
    lines = []
    for name, op in sorted(result["operators"].items()):
        short = _without_defaults(op, OPERATOR)
        for key, fields, _ in PARTS:
            short[key] = [_without_defaults(part, fields) for part in op[key]]
        lines.append(f"{json.dumps(name)}: {json.dumps(short)}")
    head = f'{{"format": {result["format"]}, "opwright": {json.dumps(result["opwright"])}, "operators": {{'
    return "\n".join([head, ",\n".join(lines), "}}\n"])


def main() -> int:
    """Write the snapshot. Gives the exit code: 1 where a change is not allowed and not accepted."""
    sys.path.insert(0, str(FOLDER.parent))
    from test_snapshots import ACCEPTED, NAME, broken

    for path in sorted(FOLDER.glob("*.json")):
        result = [] if path.name == NAME and os.environ.get("UNRELEASED") else broken(path)
        if result:
            print(f"not allowed since {path.stem}:", *map(str, result), sep="\n  ", file=sys.stderr)
            here = path.name == NAME
            way = (
                "if this version is not released yet: make snapshot UNRELEASED=1"
                if here
                else ("add them with a reason to ACCEPTED in tests/compat/test_snapshots.py")
            )
            print(f"undo them, or {way}", file=sys.stderr)
            return 1
    (FOLDER / NAME).write_text(written(document(ow.ops.spec())))
    print(f"{NAME}: {len(ow.ops.spec())} operators; {len(ACCEPTED)} accepted breaks")
    return 0


if __name__ == "__main__":
    sys.exit(main())
