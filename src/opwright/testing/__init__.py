"""Checks for operators: users' and the catalogue's.

Lives here: `check` and its parts: one call of an operator, run in every supported way (value_checks.py,
place_checks.py, gradient_check.py, lod_checks.py, model_files.py, external_runtimes.py), generated inputs
(operator_call.py), the report (checks.py); `check_operator`, several calls (cases.py); `check_pattern`, a fused
operator against its unfused form (patterns.py). Not here: the catalogue's tables of cases and their oracles
(tests/ops), the rules of names and docstrings (ops/definition_lint.py).

    ow.testing.check(LeakyClip, {"x": np.linspace(-1, 1, 12).reshape(3, 4), "limit": 0.3},
                     expect=lambda x: np.where(x < 0.3, x, 0.3 + 0.25 * (x - 0.3)))
"""

from .cases import check_operator
from .checks import CHECKS, CheckError, Outcome, check, outcomes
from .patterns import check_pattern

__all__ = ["CHECKS", "CheckError", "Outcome", "check", "check_operator", "check_pattern", "outcomes"]
