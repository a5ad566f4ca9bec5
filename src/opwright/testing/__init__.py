"""Checks for operators: users' and the catalogue's.

Lives here: `check` and its parts: one call of an operator, run in every supported way (value_checks.py,
scope_checks.py, gradient_check.py, model_files.py), generated inputs (operator_call.py), the report (checks.py);
`check_operator`, several calls, and `check_pattern`, a fused operator against its unfused form (cases.py).
Not here: the catalogue's tables of cases and their oracles (tests/ops), the rules of names and docstrings
(ops/definition_lint.py).

    ow.testing.check(LeakyClip, {"x": np.linspace(-1, 1, 12).reshape(3, 4), "limit": 0.3},
                     expect=lambda x: np.where(x < 0.3, x, 0.3 + 0.25 * (x - 0.3)))
"""

from .cases import check_operator, check_pattern
from .checks import CHECKS, CheckError, Outcome, check, outcomes

__all__ = ["CHECKS", "CheckError", "Outcome", "check", "check_operator", "check_pattern", "outcomes"]
