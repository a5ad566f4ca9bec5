"""The garbage collector rests while the package is imported.

Lives here: `finish`; importing this module begins it.  Not here: anything else.
Importing makes 18,000 objects for the collector to track and drops hardly any, so what it finds meanwhile is not worth
its time: 10 to 15 of the 60 ms that importing this package takes besides NumPy, measured in turn with and without.
Where the import fails, by a KeyboardInterrupt too, the collector is on again as soon as the package's module is gone.
"""

import gc
import sys
import weakref

_core = vars(sys.modules[__name__.rpartition(".")[0]])  # it stays where the package's import fails after its own
_was_enabled: bool = _core.setdefault("_collector_was_enabled", gc.isenabled())


def _again() -> None:
    if _was_enabled:
        gc.enable()


_failed = weakref.finalize(sys.modules[__name__.partition(".")[0]], _again)
gc.disable()


def finish() -> None:
    """Collect again as before, if it was on."""
    _failed.detach()
    _core.pop("_collector_was_enabled", None)
    _again()
