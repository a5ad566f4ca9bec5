"""`random.experimental`: older names of `ow.random`."""

from .functions import fold_in as stateless_fold_in
from .functions import split as stateless_split
from .functions import stateless_shuffle
from .generator import Algorithm, Generator, create_rng_state, get_global_generator, set_global_generator

__all__ = [
    "Algorithm",
    "Generator",
    "create_rng_state",
    "get_global_generator",
    "set_global_generator",
    "stateless_fold_in",
    "stateless_shuffle",
    "stateless_split",
]
