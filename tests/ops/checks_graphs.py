"""The checks that rows get on graphs: gradients by `append_backward`, and memory used again.

Lives here: whole rows, functions of several operators too.  Not here: each operator by itself (test_walks.py).
"""

from __future__ import annotations

import checks
import numpy as np
from checks import is_random
from harness import Case, operator_of

from opwright.scopes.backward import NoGradientError
from opwright.testing import gradient_check, scope_checks
from opwright.testing.operator_call import NotApplicable, tensor


def _applies(row: Case) -> bool:
    return checks.in_turn(row) and checks._differentiates(row) and row.trace and operator_of(row.key) is None


@checks.check(_applies)
def gradient_on_graphs_is_the_tapes(row: Case) -> None:
    """`append_backward` on the row's graph gives what the tape gives, bit for bit, by names with @GRAD."""
    function = checks._Differentiable(row)
    if is_random(row):
        return
    try:
        gradient_check.backward_is_tape(function, [tensor(np.asarray(v)) for v in function.values()])
    except (NotApplicable, NoGradientError):
        return
    except LookupError:
        if row.grad is True:
            raise  # a function over operators of which one declares no gradient, where gradients are asked for


@checks.check(_applies)
def memory_used_again_changes_no_bit(row: Case) -> None:
    """The row, its gradient and the gradient of that, with reuse on and off."""
    function = checks._Differentiable(row)
    if is_random(row):
        return
    try:
        scope_checks.reuse_changes_no_bits(function, [tensor(np.asarray(v)) for v in function.values()])
    except (NotApplicable, LookupError):
        return
