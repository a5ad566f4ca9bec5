"""The compile entry: from a kernel to machine code of this process, whoever wrote the kernel.

Lives here: `compile_kernel`, `text_of`.
Not here: staging a function (trace.py), entry points around it (entry_points.py, elements.py), the cache of machine
code (../native/store.py). Nothing here loads llvmlite before a kernel has to be staged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.lazy_imports import paused
from ..native.image import runs_images
from ..native.store import Code, find_module, find_or_make
from ..target import Target, host

Stage = Callable[[Target, bool], Any]
"""Stages a kernel: target, whether users' loops poll for signals -> LLVM's module."""


def text_of(stage: Stage, target: Target | None = None) -> str:
    """Stage a kernel as this process runs it; return the module's text. target: by default this processor."""
    with paused():
        return str(stage(target or host(), runs_images()))


def compile_kernel(entry: str, stage: Stage | str, key: tuple[str, str] | None = None) -> Code:
    """Return the machine code of a kernel for this processor.

    entry: the module's function to call. stage: how to stage the kernel, or the text of its module. key: the name and
    the constants of a kernel of Opwright's own, which is staged only where no cache holds it: digests of the sources
    are part of every key. Without one the instructions are the key, as nothing else tells what a user's Python depends
    on, and the kernel is staged at once.
    raises what store.find_or_make raises
    """
    if key is None or isinstance(stage, str):
        return find_module(entry, stage if isinstance(stage, str) else text_of(stage), entry)
    target = host()
    return find_or_make(*key, target, lambda: (text_of(stage, target), entry))
