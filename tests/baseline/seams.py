"""Where a record reaches into the package: plans as they are made, kernels as they are asked for, LLVM's work, seeds.

Lives here: `planning_for`, `begin_random_numbers`, `remember_code`.  Not here: what is recorded of them (loops.py).

A redesign that moves one of these functions changes this module, and nothing else here. A tree in which one of them is
not where it is looked for cannot be recorded, which is an error and no empty record.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import importlib.metadata
import inspect
import os
import pkgutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import foreign_plans
import numpy as np

import opwright as ow
import opwright.compiler.kernels
import opwright.compiler.native
from opwright.compiler import target
from opwright.compiler.background import LLVM
from opwright.compiler.kernels import NoKernel
from opwright.compiler.language.compilation import FamilyCode, KernelFamily
from opwright.compiler.loops import planner
from opwright.compiler.loops.graph import LoopGraph
from opwright.compiler.loops.plans import LoopPlan
from opwright.compiler.native import linker
from opwright.compiler.target import NAMED, Target, processor
from opwright.ops.random import state
from opwright.scalar.counter_generators import begun

OTHERS = ("x86-64-v3", "neoverse-n1")
"""Targets in addition to this processor: x86 without AVX-512, ARM with dot products."""


class Planned(NamedTuple):
    """A loop graph and its plan, or the exception that no kernel implements it."""

    graph: LoopGraph
    plan: LoopPlan | NoKernel


def targets() -> list[str]:
    """Names of the targets that plans are made for."""
    return ["host", *OTHERS]


def target_named(name: str) -> Target:
    """A target by one of these names."""
    if name == "neoverse-n1":
        return Target.of("aarch64-unknown-linux-gnu", name)
    return processor() if name == "host" else NAMED[name]


MOST_REFUSALS = 3

# ---- plans -----------------------------------------------------------------------------------------------------------

_now: str | None = None
_refused: Counter[Any] | None = None
_planned: list[Planned] = []
asked: dict[tuple[KernelFamily, str], dict[str, Any]] = {}
"""The kernels that plans have asked for since the target was chosen: constants by family and their text."""


@contextlib.contextmanager
def planning_for(name: str) -> Iterator[list[Planned]]:
    """Within, plans are for a target, and none is run: what has been planned is in the list. What this changes stays
    changed: a process plans for nothing else."""
    global _now
    if _now != name:
        _use(name)
        _now = name
    _planned.clear()
    yield _planned


def _use(name: str) -> None:
    chosen = target_named(name)
    if _now is None:
        for package in (opwright.compiler.kernels, opwright.compiler.native):
            for module in pkgutil.iter_modules(package.__path__):
                importlib.import_module(f"{package.__name__}.{module.name}")
        _replace(planner.plan_of, _noted_plan_of(planner.plan_of))
        KernelFamily.code = _named_code  # type: ignore[method-assign]
    _replace(target.host, lambda: chosen, but=opwright.compiler.native.__name__)  # whose code this process runs
    foreign_plans._forget()
    asked.clear()


def _replace(function: Callable[..., Any], other: Callable[..., Any], but: str = " ") -> None:
    """Put another function in place of one, in every module that has it, but those of a package."""
    modules = [
        module for key, module in list(sys.modules.items()) if key.startswith("opwright") and not key.startswith(but)
    ]
    places = [(module, name) for module in modules for name, held in list(vars(module).items()) if held is function]
    for module, name in places:
        setattr(module, name, other)


def _noted_plan_of(plan_of: Callable[..., LoopPlan]) -> Callable[..., LoopPlan]:
    def noted(graph: LoopGraph, *args: Any, **more: Any) -> LoopPlan:
        try:
            plan = plan_of(graph, *args, **more)
        except NoKernel as why:
            _planned.append(Planned(graph, why))
            raise
        _planned.append(Planned(graph, plan))
        if _refused is not None:
            _refuse(plan)
        return plan

    return noted


def _refuse(plan: LoopPlan) -> None:
    """Raise NoKernel for all forms, so that the engine leaves their nodes to the interpreter and goes on with others.

    Where that leaves the same nodes to be planned over and over, since a form does not say which it came from, raise
    RuntimeError, by which the engine gives up.
    """
    nodes = tuple(form.origin for form in plan.ops)
    _refused[nodes] += 1
    if _refused[nodes] > MOST_REFUSALS:
        raise RuntimeError("planned, and not to be run")
    refusal = NoKernel("planned, and not to be run")
    refusal.ops = dict.fromkeys(plan.ops, str(refusal))
    raise refusal


@contextlib.contextmanager
def refusing() -> Iterator[None]:
    """Make planning fail with NoKernel in the context, so that no plan runs."""
    global _refused
    _refused = Counter()
    try:
        yield
    finally:
        _refused = None


def _named_code(family: KernelFamily, **constants: Any) -> FamilyCode:
    """A kernel that has a name and no machine code."""
    words = ", ".join(f"{k}={v!r}" for k, v in sorted(constants.items()))
    asked[family, words] = constants
    return FamilyCode(1, f"{family.name}[{words}]", tuple(family.kinds(constants).values()))


# ---- random numbers --------------------------------------------------------------------------------------------------

SEED = 20


def begin_random_numbers() -> None:
    """Begin every sequence of random numbers again, those too whose seeds come from the system otherwise."""
    ow.random.set_seed(SEED)
    state._entropy = np.random.Generator(np.random.Philox(SEED))
    _seed_files()


@functools.cache
def _seed_files() -> None:
    """Let sequences of files without seeds begin alike, too."""
    _replace(begun, lambda seed, seed2: begun(seed, seed2) if seed or seed2 else begun(SEED, SEED))


# ---- LLVM ------------------------------------------------------------------------------------------------------------

_memory: Path
_object_code, _object_code_for = linker.object_code, Target.object_code


def remember_code(folder: Path) -> None:
    """From here on, take what LLVM makes of a module from the folder where that has it, and keep it there.

    A kernel's place in Opwright's own cache depends on every source of the compiler: after any change of one, all of it
    is compiled again. What LLVM makes depends on the text alone, the target, and the two modules that say how it is
    asked.
    """
    global _memory
    folder.mkdir(parents=True, exist_ok=True)
    _memory = folder
    linker.object_code = lambda text, chosen: _remembered("engine", text, chosen, _object_code)
    Target.object_code = lambda self, text: _remembered(  # type: ignore[method-assign]
        "target", text, self, lambda text, chosen: _object_code_for(chosen, text)
    )


def assembly_of(text: str, chosen: Target) -> str:
    """The assembly of a module for a target."""
    return _remembered("assembly", text, chosen, _assembly).decode()


def _assembly(text: str, chosen: Target) -> bytes:
    with LLVM:
        machine = chosen.machine()
        machine.set_asm_verbosity(False)
        parsed = target.optimised(text, chosen, machine, target.needs_short_passes(text))
        with target.code_generation(chosen, text):
            result: str = machine.emit_assembly(parsed)
    return result.encode()


def _remembered(what: str, text: str, chosen: Target, make: Callable[[str, Target], bytes]) -> bytes:
    words = (what, chosen.triple, chosen.cpu, chosen.features, text, *_how())
    path = _memory / hashlib.sha256("\0".join(words).encode()).hexdigest()
    try:
        return path.read_bytes()
    except FileNotFoundError:
        code = make(text, chosen)
    unfinished = path.with_suffix(f".{os.getpid()}")
    unfinished.write_bytes(code)
    os.replace(unfinished, path)
    return code


@functools.cache
def _how() -> tuple[str, ...]:
    """Return the inputs of LLVM other than the text and the target."""
    return importlib.metadata.version("llvmlite"), inspect.getsource(linker), inspect.getsource(target)
