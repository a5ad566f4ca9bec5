"""Checks for operators: of one's own, and of the catalogue.

Lives here: `check` and what it consists of: one call of an operator, run in every way there is (trial.py, running.py,
places.py, slopes.py, places.py, sequences.py, files.py, elsewhere.py), inputs that are made up (trial.py), the report
(checking.py); `check_operator`, several calls (cases.py); `check_pattern`, a fused operator against its unfused form
(patterns.py).
Not here: the catalogue's own tables of cases and their oracles (tests/ops), the rules of words and names
(ops/linting.py).

    ow.testing.check(LeakyClip, {"x": np.linspace(-1, 1, 12).reshape(3, 4), "limit": 0.3},
                     expect=lambda x: np.where(x < 0.3, x, 0.3 + 0.25 * (x - 0.3)))
"""

from .cases import check_operator
from .checking import CHECKS, CheckError, Outcome, check, outcomes
from .patterns import check_pattern

__all__ = ["CHECKS", "CheckError", "Outcome", "check", "check_operator", "check_pattern", "outcomes"]
