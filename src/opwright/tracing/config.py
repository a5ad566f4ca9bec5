"""`ow.config`: switches as functions, under TensorFlow's names.

Lives here: the functions.  Not here: the switches (core/flags.py).
"""

from __future__ import annotations

from ..core import flags


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Set whether calls of a `function` run its Python code directly, without tracing; for debugging."""
    flags.configure(run_functions_eagerly=bool(run_eagerly))


def functions_run_eagerly() -> bool:
    """Return the setting of `run_functions_eagerly`."""
    return flags.run_functions_eagerly


class experimental:
    """`ow.config.experimental`."""

    @staticmethod
    def enable_op_determinism() -> None:
        """Produce the same bits in every run, at the cost of speed; random operators then require a seed.

        Sets the flag `deterministic`; `opwright doctor` and docs/operators.md list its effects.
        """
        flags.configure(deterministic=True)
