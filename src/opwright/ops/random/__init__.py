"""Random numbers: operators with a state, operators of an explicit seed, and the functions of `ow.random`.

Lives here: the names of `ow.random`.  Not here: dropout (ops/nn/), random initialisers (the `nn` package of layers).
The seed rules are TensorFlow's; the numbers are our own (state.py).
"""

from . import experimental
from .candidates import (
    all_candidate_sampler,
    fixed_unigram_candidate_sampler,
    log_uniform_candidate_sampler,
    uniform_candidate_sampler,
)
from .functions import (
    categorical,
    fold_in,
    gamma,
    normal,
    poisson,
    shuffle,
    split,
    stateless_binomial,
    stateless_categorical,
    stateless_gamma,
    stateless_normal,
    stateless_parameterized_truncated_normal,
    stateless_poisson,
    stateless_shuffle,
    stateless_truncated_normal,
    stateless_uniform,
    truncated_normal,
    uniform,
)
from .generator import Algorithm, Generator, create_rng_state, get_global_generator, set_global_generator
from .state import set_seed

__all__ = [
    "Algorithm",
    "Generator",
    "all_candidate_sampler",
    "categorical",
    "create_rng_state",
    "experimental",
    "fixed_unigram_candidate_sampler",
    "fold_in",
    "gamma",
    "get_global_generator",
    "log_uniform_candidate_sampler",
    "normal",
    "poisson",
    "set_global_generator",
    "set_seed",
    "shuffle",
    "split",
    "stateless_binomial",
    "stateless_categorical",
    "stateless_gamma",
    "stateless_normal",
    "stateless_parameterized_truncated_normal",
    "stateless_poisson",
    "stateless_shuffle",
    "stateless_truncated_normal",
    "stateless_uniform",
    "truncated_normal",
    "uniform",
    "uniform_candidate_sampler",
]
