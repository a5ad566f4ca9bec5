"""A process as it is before it has loaded code, for tests of what is kept between processes."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

from opwright.compiler import kernels
from opwright.compiler.language.compilation import KernelFamily
from opwright.compiler.native import store


def forget_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the test ends, no kernel is loaded and no family has code."""
    monkeypatch.setattr(store, "_loaded", {})
    modules = [importlib.import_module(f"{kernels.__name__}.{m.name}") for m in pkgutil.iter_modules(kernels.__path__)]
    families = {id(f): f for module in modules for f in vars(module).values() if isinstance(f, KernelFamily)}
    assert families
    for family in families.values():
        monkeypatch.setattr(family, "_codes", {})
