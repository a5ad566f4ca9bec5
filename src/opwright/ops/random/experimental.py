"""`random.experimental`: older names of `ow.random`."""

from .functions import Generator, get_global_generator, set_global_generator, stateless_shuffle
from .functions import fold_in as stateless_fold_in
from .functions import split as stateless_split

__all__ = [
    "Generator",
    "get_global_generator",
    "set_global_generator",
    "stateless_fold_in",
    "stateless_shuffle",
    "stateless_split",
]
