"""`ow.get_logger`: the logger of the package.

Lives here: the function.  Not here: what is written to it.
"""

import logging


def get_logger() -> logging.Logger:
    """Return the logger "opwright", whose level decides which warnings of the package are shown."""
    return logging.getLogger("opwright")
