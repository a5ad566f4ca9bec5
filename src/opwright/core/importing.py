"""The garbage collector rests while the package is imported.

Lives here: `finish`; importing this module begins it.  Not here: anything else.
Importing makes some hundred thousand objects and drops hardly any, so that each collection meanwhile finds nothing:
they are 12 of the 60 ms that importing this package takes besides NumPy.
"""

import gc

_was_enabled = gc.isenabled()
gc.disable()


def finish() -> None:
    """Collect again as before, if it was on."""
    if _was_enabled:
        gc.enable()
