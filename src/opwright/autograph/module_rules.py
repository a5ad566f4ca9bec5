"""Whose functions are converted: a table of module names, first match wins, that users may change.

Lives here: the table and `convert_module`, `skip_module`.  Not here: conversion.

Everything is converted but what the table skips: Python's own library, this package, and libraries whose code has
nothing to stage and much to convert.
"""

from __future__ import annotations

import sys

SKIPPED = (
    "opwright",
    "numpy",
    "scipy",
    "ml_dtypes",
    "llvmlite",
    "flatbuffers",
    "safetensors",
    "click",
    "rich",
    "pandas",
    "matplotlib",
    "PIL",
    "sklearn",
    "pytest",
    "_pytest",
    "pluggy",
    "hypothesis",
    "IPython",
    "ipykernel",
    "ipdb",
    "attr",
    "attrs",
    "absl",
    "six",
    "wrapt",
    "requests",
    "urllib3",
    "tqdm",
    "psutil",
    "yaml",
    "google",
    "tensorflow",
    "keras",
    "torch",
    "jax",
    "importlib_metadata",
    "typing_extensions",
    "setuptools",
    "pkg_resources",
    "cloudpickle",
    "dill",
    "mock",
    "pybind11_abseil",
)

STAGED = ("opwright.compiler.kernels",)  # the kernels that this package ships are written in Python, too

_rules: list[tuple[str, bool]] = []
version = 0  # grows with each change, so that decisions made before are made anew


def convert_module(name: str) -> None:
    """Convert functions of this module and those below it, whatever the table says."""
    _change(name, True)


def skip_module(name: str) -> None:
    """Run functions of this module and those below it as they are."""
    _change(name, False)


def _change(name: str, convert: bool) -> None:
    global version
    _rules[:] = [(name, convert), *(r for r in _rules if r[0] != name)]
    version += 1


def reset_modules() -> None:
    """Back to the table as it came."""
    global version
    _rules.clear()
    version += 1


def converts(module: str | None) -> bool:
    """Whether functions of the module of this name are converted."""
    if not module:
        return True
    for name, convert in _rules:
        if module == name or module.startswith(f"{name}."):
            return convert
    if module.startswith(STAGED):
        return True
    top = module.partition(".")[0]
    return (top not in SKIPPED and top not in sys.stdlib_module_names) or module == "__main__"
