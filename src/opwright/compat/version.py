"""`ow.version`: what is installed.

Lives here: constants.  Not here: the version itself (core/__init__.py).
"""

import platform

from ..core import __version__

VERSION = __version__
GIT_VERSION = f"v{__version__}"
COMPILER_VERSION = platform.python_compiler()
GRAPH_DEF_VERSION = GRAPH_DEF_VERSION_MIN_CONSUMER = GRAPH_DEF_VERSION_MIN_PRODUCER = 0
"""Files of TensorFlow's graphs are neither read nor written."""

__all__ = [
    "COMPILER_VERSION",
    "GIT_VERSION",
    "GRAPH_DEF_VERSION",
    "GRAPH_DEF_VERSION_MIN_CONSUMER",
    "GRAPH_DEF_VERSION_MIN_PRODUCER",
    "VERSION",
]
