"""Loop graphs after fusion, and their plans, as text: of the benchmarks' networks, of models of one operator, of rows.

They are planned for this processor and for others, and nothing is compiled or run: kernels are known by their families
and constants. Names of buffers are their numbers in the order in which they appear; constants of a graph stand with a
digest of their elements.

Lives here: which programs, what is written of each.  Not here: the seams in the compiler (seams.py); plans that are
made once sizes were seen at a run, of which bits alone are recorded.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import checks
import numpy as np
import test_operators
import test_rules_on_rows

from opwright.compiler import partitioner
from opwright.compiler.kernels import NoKernel
from opwright.compiler.loops.buffers import Buffer
from opwright.compiler.loops.graph import LoopGraph
from opwright.compiler.loops.ops import Banded, LoopOp
from opwright.compiler.loops.plans import Address, LoopPlan
from opwright.lite import Interpreter
from opwright.lite.compiled.delegate import CompiledDelegate

from .outcomes import Entry, entry, failed
from .seams import Planned, planning_for, refusing, targets
from .sources import catalogue, converter, drawn, fixed, networks
from .values import without_places

MODELS = {"networks": networks, "fixed": fixed, "drawn": drawn, "converter": converter}
"""Sources of files; the catalogue's rows are compiled as functions."""

_DIGEST = re.compile(r"\b[0-9a-f]{16,}\b")


def prepare(tree: Path, folder: Path) -> None:
    """Make this process ready to run units."""
    catalogue.prepare()


def units() -> list[str]:
    """For each target, the keys of the sources."""
    sources = {**MODELS, "catalogue": catalogue}
    result = [f"{name}/{key}" for name, source in sources.items() for key in source.keys()]  # noqa: SIM118  a function
    return [f"{target}/{unit}" for target in targets() for unit in result]


def run(unit: str) -> Iterator[Entry]:
    """The entries of a key's models or rows, for a target."""
    target, source, key = unit.split("/", 2)
    with planning_for(target) as planned:
        for number, plan in enumerate(programs(source, key)):
            planned.clear()
            try:
                plan()
            except Exception as error:
                yield failed(f"{unit}/{number}", error)
                continue
            yield entry(f"{unit}/{number}", "\n\n".join(dict.fromkeys(map(text_of, planned))).encode())


def programs(source: str, key: str) -> Iterator[Callable[[], Any]]:
    """Yield a function for each program of a key, which plans it."""
    if source == "catalogue":
        for row in test_operators.TABLES[key]:
            if checks._traces(row):
                for single in (False, True):
                    yield lambda row=row, single=single: _regions(row, single)
    else:
        for model in MODELS[source].models(key):
            yield lambda model=model: _engine(model().content)


def _regions(row: Any, single: bool) -> None:
    """Have a row's regions planned, in its own dtypes or in float32."""
    result = test_rules_on_rows.recorded(row, single)
    if result is not None:
        partitioner.compile_regions(result[0], lambda region: lambda *arrays: ())


def _engine(content: bytes) -> None:
    """Have a file's partitions planned as the compiled engine does."""
    interpreter = Interpreter(model_content=content, experimental_delegates=[])
    with refusing():
        interpreter._delegate(CompiledDelegate(), strict=True)
        interpreter.allocate_tensors()


# ---- text ------------------------------------------------------------------------------------------------------------


def text_of(planned: Planned) -> str:
    """A loop graph with its plan, or with the reasons why it has none."""
    graph, plan = planned
    named = _buffers(graph, plan)
    before = [b.name for b in named]
    try:
        for number, b in enumerate(named):
            object.__setattr__(b, "name", f"b{number}")
        lines = [str(graph)]
        lines += [f"const {b!r} = {_elements(b.constant)}" for b in named if b.constant is not None]
        if isinstance(plan, NoKernel):
            lines += sorted(f"no kernel: {type(form).__name__}: {why}" for form, why in plan.ops.items())
        else:
            lines.append(str(plan))
    finally:
        for b, name in zip(named, before):
            object.__setattr__(b, "name", name)
    return without_digests("\n".join(lines))


def without_digests(text: str) -> str:
    """A text without digests of code, which are another with every change of it, and addresses."""
    return _DIGEST.sub("..", without_places(text))


def _elements(array: np.ndarray) -> str:
    return f"{zlib.crc32(np.ascontiguousarray(array).view(np.uint8).reshape(-1)):08x}"


def _buffers(graph: LoopGraph, plan: LoopPlan | NoKernel) -> list[Buffer]:
    """Every buffer that is printed, in order of appearance."""
    result: dict[int, Buffer] = {}

    def add(buffer: Any) -> None:
        while isinstance(buffer, Buffer) and id(buffer) not in result:
            result[id(buffer)] = buffer
            add(buffer.parent)
            buffer = getattr(buffer, "of", None)

    def add_form(form: LoopOp) -> None:
        for b in (*form.inputs, form.output):
            add(b)
        for part in form.parts if isinstance(form, Banded) else ():
            add_form(part)

    for b in graph.inputs:
        add(b)
    for form in graph.ops:
        add_form(form)
    for b in graph.outputs:
        add(b)
    if not isinstance(plan, NoKernel):
        for step in plan.steps:
            for w in step.words:
                if isinstance(w, Address):
                    add(w.of)
    return list(result.values())
