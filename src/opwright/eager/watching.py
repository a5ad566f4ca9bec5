"""The eager interpreter under the switch `check_inputs`: every call's inputs are looked at before and after.

Lives here: `watched`, whose result takes the place of `execute` while the switch is on, so that it costs nothing when
it is off.  Not here: the rules (ops/compute_wrappers.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.frames import users_line
from ..ops.call import Call
from ..ops.compute_wrappers import compare, fingerprint
from ..ops.definition import Operator


def watched(execute: Callable[..., Any]) -> Callable[..., Any]:
    """Return `execute` with a check around each call.

    The function returned raises PermissionDeniedError where an input was written, or a result lies in an input's
    memory.
    """

    def execute_watched(op: Operator, inputs: Sequence[Any], bound: Call, name: str | None) -> Any:
        before = [fingerprint(x) for x in inputs]
        result = execute(op, inputs, bound, name)
        shown = [o for o in op.outputs if not o.intermediate]
        parts = (result,) if len(shown) == 1 else result if isinstance(result, (tuple, list)) else ()
        results = [
            (o.name, getattr(x, "_array", None))
            for o, part in zip(shown, parts)
            for x in (part if isinstance(part, (tuple, list)) else (part,))
        ]
        compare(op, inputs, before, results, name, users_line())
        return result

    return execute_watched
