"""Select the modules whose functions are converted, by a table of names that users may change; first match wins.

Lives here: the table and `convert_module`, `skip_module`.  Not here: conversion.

All modules are converted except the following, which the table skips: Python's standard library, this package,
and libraries with much code and no control flow on tensors.
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

KERNEL_PACKAGES = ("opwright.compiler.kernels",)  # kernels in Python are converted, although ours

_rules: list[tuple[str, bool]] = []
version = 0  # incremented by each change, which invalidates earlier decisions


def convert_module(name: str) -> None:
    """Convert the functions of a module and its submodules, regardless of the table."""
    _set_rule(name, True)


def skip_module(name: str) -> None:
    """Run the functions of a module and its submodules unconverted."""
    _set_rule(name, False)


def _set_rule(name: str, convert: bool) -> None:
    global version
    _rules[:] = [(name, convert), *(r for r in _rules if r[0] != name)]
    version += 1


def reset_modules() -> None:
    """Restore the table's initial state."""
    global version
    _rules.clear()
    version += 1


def converts(module: str | None) -> bool:
    """Return whether functions of the named module are converted."""
    if not module:
        return True
    for name, convert in _rules:
        if module == name or module.startswith(f"{name}."):
            return convert
    if module.startswith(KERNEL_PACKAGES):
        return True
    top = module.partition(".")[0]
    return (top not in SKIPPED and top not in sys.stdlib_module_names) or module == "__main__"
