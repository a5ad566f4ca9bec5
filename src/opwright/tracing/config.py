"""`ow.config`: switches as functions, under TensorFlow's names.

Lives here: names only.  Not here: the switches (core/flags.py).
"""

from __future__ import annotations

from ..core import flags


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Whether calls of `function`s run their Python code directly, without tracing; for debugging."""
    flags.configure(run_functions_eagerly=bool(run_eagerly))


def functions_run_eagerly() -> bool:
    """The present setting of `run_functions_eagerly`."""
    return flags.run_functions_eagerly


class experimental:
    """`ow.config.experimental`."""

    @staticmethod
    def enable_op_determinism() -> None:
        """Give the same bits on every run from here on, where that costs speed; random operators then need a seed.

        The switch `deterministic`; what it changes is in `opwright doctor` and docs/operators.md.
        """
        flags.configure(deterministic=True)
