"""The tables of kernels by measure: `python -m benchmarks.tune [--target T] [--seconds S] [--dry-run] [choice...]`.

Lives here: the command: every question that the layers of layers.py put is measured on this machine, and the rows are
written into the table of its micro-architecture, src/opwright/compiler/tuning/tables/<name>.json.
Not here: one question's measurement (opwright/compiler/tuning/autotuner.py), what is chosen (choices.py), what follows
from rows (rows.py).

Each way of a question runs in turn with the others, on one core; the least time counts. A row is written whatever it
says, so that a near layer finds the nearest of all, and decides only where it saves more than noise, which is how far
two halves of the same measurement are apart. A question whose row is noisier than `MOST_NOISE` is measured again, up to
`TRIES` times; the row of the least noise counts, and is not written if it is still as noisy, unless it saves more than
that. Printed is each question whose answer is not the default. --dry-run: print, and write nothing; it also leaves
compiled kernels in the cache, so that a second run takes the clock's time alone.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import os
import time
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any

from benchmarks import measure

os.environ.update(measure.QUIET)

from rich.console import Console
from rich.table import Table as Printed

from benchmarks.layers import layers
from opwright.compiler.native.host import cache_bytes
from opwright.compiler.target import host, processor
from opwright.compiler.tuning import choices
from opwright.compiler.tuning.autotuner import measured, questions_of
from opwright.compiler.tuning.choices import CHOICES, Key, MeasuredRow, Question, decided, from_json, to_json
from opwright.core import flags
from opwright.ops.tuning_file import machine

MOST_NOISE = 0.1
TRIES = 4
EACH_S = 0.25


def questions(names: set[str]) -> Iterator[Question]:
    """The questions of all layers, each once. names: of the choices that they are about."""
    seen = set()
    for graph in layers():
        for question in questions_of(graph):
            if question.choice.name in names and question.key not in seen:
                seen.add(question.key)
                yield question


def name_of_table() -> str:
    """The table of code for this process's target: named as the processor, or as the part of it that is used."""
    return processor().cpu if flags.target == "host" else flags.target


def answer(target: str, choice: str, sizes: Sequence[int], seconds: float) -> MeasuredRow:
    """Measure one question: a job of a sweep, on a machine like this one."""
    with flags.override(target=target):
        return quietest(_questions_of(target, choice)[Key(choice, tuple(sizes))], seconds)


def quietest(question: Question, seconds: float) -> MeasuredRow:
    """Return the first row of a question that is not noisy, or the least noisy one of TRIES."""
    rows = []
    for _ in range(TRIES):
        rows.append(measured(question, seconds))
        if rows[-1].noise <= MOST_NOISE:
            break
    return min(rows, key=lambda row: row.noise)


def is_usable(question: Question, row: MeasuredRow) -> bool:
    """Return whether a row is written: it is not noisy, or saves more than its noise."""
    return row.noise <= MOST_NOISE or decided(row, question.ways, question.default) != question.default


@functools.cache
def _questions_of(target: str, choice: str) -> dict[Key, Question]:
    """Return the questions about a choice, for the jobs of one worker. target: the current one."""
    return {question.key: question for question in questions({choice})}


def answers(executor: str, target: str, asked: Sequence[Question], seconds: float) -> Iterator[MeasuredRow]:
    """Yield the rows of questions, measured by the workers of an executor. Raises RuntimeError if one fails."""
    from benchmarks import tune  # by this name on workers
    from opwright import distribute

    jobs = [{"target": target, "choice": q.choice.name, "sizes": list(q.sizes), "seconds": seconds} for q in asked]
    for trial in distribute.sweep(tune.answer, jobs, executor, progress=True):
        if trial.error is not None:
            raise RuntimeError(trial.error.traceback)
        yield trial.value


def read(name: str) -> dict[str, Any]:
    """The table as it is, or a new one."""
    path = choices.FOLDER / f"{name}.json"
    rows = json.loads(path.read_text())["rows"] if path.exists() else {}
    target = host()
    features = ",".join(f"+{f}" for f in sorted(choices.FEATURES) if target.has(f))
    described = {"triple": target.triple, "cpu": target.cpu, "features": features, "vector_bytes": target.vector_bytes}
    return {
        "target": described,
        "cpu": processor().cpu,
        "restricted": target.cpu != processor().cpu,
        "cache_bytes": cache_bytes(),
        "machine": machine(),
        "measured": date.today().isoformat(),
        "rows": rows,
    }


def put(content: dict[str, Any], question: Question, row: MeasuredRow) -> None:
    """Add a row to a table, in the place of an older one of these sizes."""
    rows = [r for r in content["rows"].get(question.choice.name, []) if tuple(r["sizes"]) != question.sizes]
    rows.append({"sizes": list(question.sizes), **to_json(row)})
    content["rows"][question.choice.name] = sorted(rows, key=lambda r: r["sizes"])


def write(name: str, content: dict[str, Any]) -> None:
    """Write a table, a line for each row."""
    head = {key: value for key, value in content.items() if key != "rows"}
    lines = [
        f'  "{choice}": [\n' + ",\n".join(f"    {json.dumps(row)}" for row in rows) + "\n  ]"
        for choice, rows in sorted(content["rows"].items())
    ]
    text = json.dumps(head, indent=1)[:-2] + ',\n "rows": {\n' + ",\n".join(lines) + "\n }\n}\n"
    for rows in json.loads(text)["rows"].values():
        for row in rows:
            from_json(row)
    choices.FOLDER.mkdir(exist_ok=True)
    (choices.FOLDER / f"{name}.json").write_text(text)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tune", description=__doc__.partition("\n")[0])
    parser.add_argument("choices", nargs="*", metavar="choice", help=f"by default all: {', '.join(CHOICES)}")
    parser.add_argument("--target", default="host", help="measure code for this target, which must run here")
    parser.add_argument("--seconds", type=float, default=EACH_S, help="of each question's runs, beside compiling")
    parser.add_argument("--executor", help="measure on workers, machines like this one: dask://host:port, ...")
    parser.add_argument("--dry-run", action="store_true", help="write nothing")
    arguments = parser.parse_args()
    if unknown := sorted(set(arguments.choices) - set(CHOICES)):
        parser.error(f"there is no choice {', '.join(unknown)}; there are {', '.join(CHOICES)}")
    console = Console(width=160)
    with flags.override(target=arguments.target):
        pinned = "on workers" if arguments.executor else measure.pin()  # local ones would inherit the core
        name, start = name_of_table(), time.perf_counter()
        content, changed = read(name), Printed("choice", "sizes", "ns by way", "default", "taken", "gain")
        gains, noisy, asked = [], 0, set()
        every = list(questions(set(arguments.choices or CHOICES)))
        if arguments.executor:
            rows_of = answers(arguments.executor, arguments.target, every, arguments.seconds)
        else:
            rows_of = (quietest(question, arguments.seconds) for question in every)
        for question, row in zip(every, rows_of):
            asked.add(question.key)
            if not is_usable(question, row):
                noisy += 1
                continue
            put(content, question, row)
            chosen = decided(row, question.ways, question.default)
            gains.append(row.ns[question.default] / row.ns[chosen])
            if chosen != question.default:
                changed.add_row(
                    question.choice.name,
                    " ".join(map(str, question.sizes)),
                    "  ".join(f"{way}: {ns:,.0f}" for way, ns in row.ns.items()),
                    str(question.default),
                    str(chosen),
                    f"{gains[-1]:.2f}",
                )
        for choice in set(arguments.choices or CHOICES) & set(content["rows"]):  # less what is asked no more
            rows = content["rows"][choice]
            content["rows"][choice] = [r for r in rows if Key(choice, tuple(r["sizes"])) in asked]
        if not arguments.dry_run:
            write(name, content)
        console.print(changed)
        mean = math.exp(math.fsum(map(math.log, gains)) / len(gains)) if gains else 1.0
        seconds = time.perf_counter() - start
        console.print(
            f"{name}: {len(gains)} questions, {changed.row_count} not answered by default, geometric mean "
            f"of gains {mean:.3f}; {noisy} too noisy; {pinned}; {seconds:.0f} s"
        )


if __name__ == "__main__":
    main()
