"""Tables of pages, with bars of shares.

Lives here: `table`, `bar`. Not here: the skeleton (markup.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from .markup import escape


def bar(share: float) -> str:
    """Return a bar of a share of 1; wider ones end at 1."""
    width = min(max(share, 0.0), 1.0) * 100 if math.isfinite(share) else 0.0
    return (
        f'<svg viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true"><rect width="{width:.1f}" height="1"/>'
        "</svg>"
    )


def table(
    columns: Sequence[str], rows: Iterable[tuple[Sequence[object], float | None]], text: Sequence[str] = ()
) -> str:
    """Return a table. rows: cells, and the share that a bar draws, None for a table without bars; text: the columns
    that are text, aligned left."""
    listed = list(rows)
    bars = any(share is not None for _, share in listed)
    kinds = [' class="text"' if column in text else "" for column in columns]
    head = "".join(f'<th scope="col"{kind}>{escape(column)}</th>' for column, kind in zip(columns, kinds))
    lines = [f"<div class=scroll><table>\n<tr>{head}{'<td class=bar></td>' if bars else ''}</tr>"]
    for cells, share in listed:
        line = "".join(f"<td{kind}>{escape(cell)}</td>" for cell, kind in zip(cells, kinds))
        lines.append(f"<tr>{line}{'' if share is None else f'<td class=bar>{bar(share)}</td>'}</tr>")
    return "\n".join([*lines, "</table></div>"])
