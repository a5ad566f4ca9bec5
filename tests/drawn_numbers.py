"""Numbers that a test draws: they depend on the test alone, not on which tests ran before it in the same process.

Many modules have one generator for all of their tests. Where it went on from test to test, a bound held or not by the
choice and order of tests.

Lives here: `restart`, `helpers_generators`.
Not here: hypothesis, which derandomizes its own examples (conftest.py); generators that a test makes for itself.
"""

from __future__ import annotations

import functools
import pathlib
import sys
from types import ModuleType
from typing import Any

import numpy as np

HERE = pathlib.Path(__file__).parent
SET_UP, CALL = 0, 1
"""Streams: a fixture draws others than its test, and both than the module did when it was imported."""


def restart(module: ModuleType, stream: int) -> None:
    """Set the generators of a test module, and those of modules that help tests, to the start of a stream."""
    for generator in (*_generators_of(module), *helpers_generators()):
        generator.bit_generator.state = _start(generator, stream)


@functools.cache
def helpers_generators() -> tuple[np.random.Generator, ...]:
    """Return the generators of other modules in the folder of tests, as they are once all tests are collected."""
    helpers = [
        module
        for module in list(sys.modules.values())
        if (file := getattr(module, "__file__", None))
        and HERE in (path := pathlib.Path(file)).parents
        and not path.name.startswith("test_")
    ]
    return tuple(generator for module in helpers for generator in _generators_of(module))


@functools.cache
def _generators_of(module: ModuleType) -> tuple[np.random.Generator, ...]:
    return tuple(value for value in vars(module).values() if isinstance(value, np.random.Generator))


@functools.cache
def _start(generator: np.random.Generator, stream: int) -> Any:
    bits = generator.bit_generator
    seeds = np.random.SeedSequence(bits.seed_seq.entropy, spawn_key=(stream,))
    return type(bits)(seeds).state
