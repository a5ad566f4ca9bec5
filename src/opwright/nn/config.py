"""`keras.config`: global defaults.

Lives here: `backend`, and re-exports of the settings.  Not here: the settings themselves (backend.py).
"""

from .backend import epsilon as epsilon
from .backend import floatx as floatx
from .backend import image_data_format as image_data_format
from .backend import set_epsilon as set_epsilon
from .backend import set_floatx as set_floatx
from .backend import set_image_data_format as set_image_data_format


def backend() -> str:
    """Return the name of the library that computes, "opwright": programs that ask for another take their other way."""
    return "opwright"
