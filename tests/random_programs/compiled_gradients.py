"""Values and gradients of drawn programs, compiled against eager.

    python tests/random_programs/compiled_gradients.py 0 2000        seeds 0 to 1999; each difference, and a summary
    python tests/random_programs/compiled_gradients.py 17            one seed, shrunk to few statements, as Python

Lives here: the ways of running, `differences` of a program, `shrunk`.
Not here: how programs are drawn (gradient_programs_drawn.py, gradient_statements.py).

The reference is eager float64. A result may be as far from it as a few times eager float32, which rounds the same
program, and what is ill conditioned there is skipped: `Comparison`.
"""

from __future__ import annotations

import collections
import dataclasses
import re
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gradient_programs_drawn import NAME, Build, Program, draw

import opwright as ow

Arrays = dict[str, np.ndarray]
FIRST_LINE = 160
"""Characters of an error that are compared."""


def total(outputs: Sequence[Any], dtype: Any) -> Any:
    """A scalar of all float outputs, each element with a weight of its own."""
    terms = []
    for y in outputs:
        if y.dtype.is_floating:
            if y.shape.is_fully_defined():
                weights = ow.constant(
                    (np.arange(y.shape.num_elements()) * 37 % 19 - 8).reshape(y.shape.as_list()), dtype
                )
            else:
                weights = ow.cast(ow.reshape(ow.range(ow.size(y)) * 37 % 19 - 8, ow.shape(y)), dtype)
            terms.append(ow.reduce_sum(ow.cast(y, dtype) * (weights * 0.1)))
    return ow.add_n(terms) if terms else ow.zeros([], dtype)


class Run:
    """A program with inputs and variables of one float type, to be run in several ways.

    update: a step ends with one of gradient descent.
    """

    def __init__(self, program: Program, dtype: str, update: bool = False, noise: int | None = None) -> None:
        self.build, self.update = Build(dtype), update
        self.program = self.build.run(program, noise)
        names = self.build.names
        rng = np.random.default_rng(noise)
        self.inputs = [x.name for x, _ in program.inputs]
        arrays = [
            a * (1 + 1e-7 * rng.standard_normal(a.shape)) if noise and a.dtype.kind == "f" else a
            for _, a in program.inputs
        ]
        self.tensors = [ow.constant(a, self.build.dtype if a.dtype.kind == "f" else None) for a in arrays]
        self.variables = {name: v for name in names for v in [names[name]] if isinstance(v, ow.Variable)}
        for name in names:
            if isinstance(names[name], ow.nn.Layer):
                self.variables |= {f"{name}.{i}": v for i, v in enumerate(names[name].weights)}
        self.initial = {name: v.numpy().copy() for name, v in self.variables.items()}
        self.bytes = [t.numpy().tobytes() for t in self.tensors]

    def step(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function (tensors) -> outputs, loss, gradients by float inputs and variables."""
        by_name = {name: v for name, v in self.variables.items() if v.trainable}
        floats = [i for i, t in enumerate(self.tensors) if t.dtype.is_floating]
        self.results = ["loss", *[f"d {self.inputs[i]}" for i in floats], *[f"d {name}" for name in by_name]]

        def step(*tensors: Any) -> list[Any]:
            sources = [*[tensors[i] for i in floats], *by_name.values()]
            with ow.GradientTape() as tape:
                tape.watch([tensors[i] for i in floats])
                outputs = function(*tensors)
                loss = total(outputs, self.build.dtype)
            grads = tape.gradient(loss, sources, unconnected_gradients="zero")
            if self.update:
                for v, g in zip(by_name.values(), grads[len(floats) :]):
                    if isinstance(g, ow.IndexedSlices):
                        v.scatter_sub(ow.IndexedSlices(0.05 * g.values, g.indices))
                    else:
                        v.assign_sub(0.05 * g)
            return [*outputs, loss, *[ow.convert_to_tensor(g) for g in grads]]

        return step

    def call(self, step: Callable[..., Any]) -> tuple[Arrays, list[Any]]:
        """Run from the initial state; return all results by name, and the tensors of the call."""
        for name, v in self.variables.items():
            v.assign(self.initial[name])
        ow.random.set_seed(11)
        tensors = step(*self.tensors)
        names = [f"output {i}" for i in range(len(tensors) - len(self.results))] + self.results
        arrays = {name: np.array(t.numpy()) for name, t in zip(names, tensors, strict=True)}
        after = {f"{name} after": v.numpy().copy() for name, v in self.variables.items()}
        if [t.numpy().tobytes() for t in self.tensors] != self.bytes:
            raise AssertionError("an input has been written")
        return {**arrays, **after}, tensors


@dataclasses.dataclass
class Comparison:
    """Differences of a program's results from its reference, as texts. checked, skipped: numbers of results."""

    program: Program
    update: bool
    reference: Arrays
    eager: Arrays
    texts: list[str] = dataclasses.field(default_factory=list)
    errors: list[str] = dataclasses.field(default_factory=list)
    checked: int = 0
    skipped: int = 0
    moved: list[Arrays] = dataclasses.field(default_factory=list)

    def add(self, way: str, results: Arrays) -> None:
        for name, expected in self.reference.items():
            text = self.unlike(name, results[name], expected)
            if text:
                self.texts.append(f"{way}, {name}: {text}")

    def unlike(self, name: str, actual: np.ndarray, expected: np.ndarray) -> str:
        eager = self.eager[name]
        if actual.shape != eager.shape or actual.dtype != eager.dtype:
            return f"{actual.dtype}{list(actual.shape)}, not {eager.dtype}{list(eager.shape)}"
        self.checked += 1
        a, e, r = (x.astype(np.float64) for x in (actual, eager, expected))
        if not np.isfinite(r).all() or not np.isfinite(e).all():
            self.skipped += 1
            return ""
        exact = eager.dtype.kind in "biu"
        scale, error = np.abs(r).max(initial=0.0), np.abs(e - r).max(initial=0.0)
        rounding = 1e-11 if self.program.dtype == "float64" else 1e-5
        off = np.abs(a - r)
        limit = 0.0 if exact else 16 * error + rounding * scale + rounding * 0.1
        if off.max(initial=0.0) <= limit:
            return ""
        if error > 0.02 * scale or off.max() <= 30 * self.condition(name, r):
            self.skipped += 1
            return ""
        i = int(np.nanargmax(np.where(np.isnan(off), np.inf, off)))
        return (
            f"{np.sum(~(off <= limit))} of {a.size}, worst {a.reshape(-1)[i]:.9g}, not {r.reshape(-1)[i]:.9g} (eager "
            f"{e.reshape(-1)[i]:.9g}; limit {limit:.2g})"
        )

    def condition(self, name: str, reference: np.ndarray) -> float:
        """How far inputs that are off by float32's roundings move a result in float64."""
        if not self.moved:
            for noise in (1, 2, 3):
                run = Run(self.program, "float64", self.update, noise)
                self.moved.append(run.call(run.step(run.program))[0])
        return max([float(np.abs(m[name].astype(np.float64) - reference).max(initial=0.0)) for m in self.moved])


def functions(run: Run, seed: int) -> dict[str, Callable[..., Any]]:
    """The compiled ways, by name: a step as one function, a tape over a function; jit_compile, or called often."""
    ways = {
        "jit step": ow.function(run.step(run.program), autograph=False, jit_compile=True),
        "hot step": ow.function(run.step(run.program), autograph=False),
    }
    if seed % 4 == 1:
        specs = [ow.TensorSpec([None] * len(t.shape), t.dtype) for t in run.tensors]
        symbolic = ow.function(run.step(run.program), autograph=False, input_signature=specs)
        try:
            symbolic.get_concrete_function()
            ways["hot step"] = symbolic
        except (TypeError, ValueError, ow.errors.OpError):
            pass  # statements such as unstack need the size
    if seed % 2:
        ways["tape over jit"] = run.step(ow.function(run.program, autograph=False, jit_compile=True))
    else:
        ways["tape over hot"] = run.step(ow.function(run.program, autograph=False))
    return ways


CALLS = {"jit step": 2, "hot step": 3, "tape over jit": 2, "tape over hot": 3}


def message(error: BaseException) -> str:
    """The error's type and first line, without the node's name and line, which only functions have."""
    text = re.sub(r" '[^']*' \([^)]*\):", ":", str(error).split("\n")[0])
    return f"{type(error).__name__}: {text[:FIRST_LINE]}"


def differences(program: Program, seed: int) -> Comparison:
    """Run a program in every way; return how they differ from the reference."""
    update = seed % 3 == 0
    run = Run(program, program.dtype, update)
    step = run.step(run.program)
    try:
        eager, _ = run.call(step)
        expected: BaseException | None = None
    except ow.errors.OpError as error:
        eager, expected = {}, error
    comparison = Comparison(program, update, {}, eager)
    if expected is None:
        wide = Run(program, "float64", update)
        comparison.reference = wide.call(wide.step(wide.program))[0]
    for way, function in functions(run, seed).items():
        before: Arrays | None = None
        kept: list[tuple[Any, bytes]] = []
        with ow.flags(hot_calls=1, background=False):
            for call in range(CALLS[way]):
                try:
                    results, tensors = run.call(function)
                except Exception as error:
                    if expected is None:
                        place = "".join(traceback.format_exception(error, limit=-2)[-3:])[-600:]
                        comparison.texts.append(f"{way}, call {call}: {message(error)} {place}")
                        break
                    if type(error) is not type(expected):
                        comparison.texts.append(f"{way}, call {call}: {message(error)}, not {message(expected)}")
                    elif message(error) != message(expected):
                        comparison.errors.append(f"{way}: {message(error)!r}, eager {message(expected)!r}")
                    continue
                if expected is not None:
                    comparison.texts.append(f"{way}, call {call}: no error, not {message(expected)}")
                    break
                comparison.add(f"{way}, call {call}", results)
                if before is not None and (call == 2 or "jit" in way):
                    for name, array in results.items():
                        if array.tobytes() != before[name].tobytes():
                            comparison.texts.append(f"{way}, call {call}: {name} has other bits than at the last call")
                if any(t.numpy().tobytes() != old for t, old in kept):
                    comparison.texts.append(f"{way}, call {call}: a result of an earlier call has been written")
                kept += [(t, t.numpy().tobytes()) for t in tensors]
                before = results
    return comparison


def shrunk(program: Program, seed: int) -> Program:
    """Return a smaller program that still differs: without outputs and statements, or with constants instead."""

    def fails(candidate: Program) -> bool:
        try:
            return bool(differences(candidate, seed).texts)
        except Exception:
            return False

    progress = True
    while progress:
        progress = False
        for candidate in smaller(program):
            if fails(candidate):
                program, progress = candidate, True
                break
    return program


def smaller(program: Program) -> list[Program]:
    outputs = program.outputs
    candidates = [
        dataclasses.replace(program, outputs=outputs[:i] + outputs[i + 1 :]).pruned()
        for i in range(len(outputs))
        if len(outputs) > 1
    ]
    values = [x for x, _ in program.inputs] + [v for v, _ in program.statements]
    for i in reversed(range(len(program.statements))):
        value, text = program.statements[i]
        others = [*[t for _, t in program.statements], *program.outputs, program.last or ""]
        rest = program.statements[:i] + program.statements[i + 1 :]
        if not any(m.group() == value.name for other in others for m in NAME.finditer(other)):
            candidates.append(dataclasses.replace(program, statements=rest).pruned())
        elif not text.startswith("normal("):
            earlier = [
                v.name for v in values[: len(program.inputs) + i] if (v.kind, v.shape) == (value.kind, value.shape)
            ]
            constant = f"normal({i}, {list(value.shape)}, 1.0, {value.kind})"
            texts = [*earlier[:2], constant] if value.kind in ("F", "BF16", "F16") else earlier[:2]
            for simple in texts:
                if simple != text:
                    statements = (*program.statements[:i], (value, simple), *program.statements[i + 1 :])
                    candidates.append(dataclasses.replace(program, statements=statements).pruned())
    return candidates


def main(first: int, last: int | None = None) -> int:
    if last is None:
        program = draw(first)
        comparison = differences(program, first)
        print(program, *comparison.texts, *comparison.errors, sep="\n")
        if comparison.texts:
            program = shrunk(program, first)
            print("\nshrunk:", program, *differences(program, first).texts, sep="\n")
        return 0
    started, counts, errors, refused = time.time(), collections.Counter[str](), collections.Counter[str](), []
    for seed in range(first, last):
        program = draw(seed, refused)
        try:
            comparison = differences(program, seed)
        except Exception:
            counts["failed"] += 1
            print(f"seed {seed}: {traceback.format_exc(limit=-4)[-900:]}", flush=True)
            continue
        counts.update(checked=comparison.checked, skipped=comparison.skipped, failed=bool(comparison.texts))
        errors.update(comparison.errors)
        for text in comparison.texts[:4]:
            print(f"seed {seed}: {text}", flush=True)
    print(f"{last - first} programs, {counts}, {len(refused)} statements refused, {time.time() - started:.0f} s")
    for text, count in errors.most_common():
        print(f"  {count} x {text}")
    return min(counts["failed"], 1)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:3])))
