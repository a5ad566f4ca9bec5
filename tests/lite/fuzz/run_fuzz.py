"""Tries many mutants of .tflite files, on several processes: `make fuzz`.

    python tests/lite/fuzz/run_fuzz.py [--what files] [--cases 200000] [--first 0] [--workers 2] [--log FILE]
    python tests/lite/fuzz/run_fuzz.py --what operators --cases 1000000     at least 1,000 a second per core
    python tests/lite/fuzz/run_fuzz.py --executor dask://host:8786      on the workers of a cluster, by ow.distribute
    python tests/lite/fuzz/run_fuzz.py --case 1234       one again, with its traceback; --keep FILE writes its bytes

--what: `files`, mutants of whole networks and of the official corpus through every tool and the reference engine
(fuzz_target.py); `operators`, the same for mutants of the one-operator models of the table operator x type, with the
command line's reports for one in 16, and no second run of a model that is equal to an earlier one; `engines`, models
of one operator by both engines, which are to agree (fuzz_engines.py), of --mode `options`, `structure` or `bytes` or
all; --mode `sweep` gives each field of each options table each extreme in turn.

Findings are listed by place, with the numbers of some cases each; the exit code is 1 if there are any. A process that
dies, or is at one case for longer than it may, is a finding of that case; another goes on with the next. --log keeps
findings and counts as lines of JSON.

With --executor a batch of cases is a job of `ow.distribute.sweep`; one whose worker dies is halved until the case is
alone. The workers need this tree at the same path; a case that hangs is then the engine's to end.

Lives here: processes, the summary.  Not here: the mutants (fuzz_mutants.py, fuzz_options.py), what is tried.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import functools
import gc
import json
import multiprocessing
import os
import pathlib
import queue
import re
import resource
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

HERE = pathlib.Path(__file__).parent
sys.path += [str(HERE), str(HERE.parents[1] / "data" / "tflite")]
BATCHES = {"files": 250, "engines": 250, "operators": 4000}  # cases of one process: forking takes the time of 20 to 50
FLUSHED = 250  # cases after which a process reports its counts
SILENT = 400.0  # seconds at one case, on a machine that others use too, before its process counts as hanging


def mutant_of(number: int, what: str, mode: str | None) -> bytes:
    """Return the bytes of a case."""
    import fuzz_mutants
    import fuzz_options

    if what == "engines":
        return fuzz_options.case(number, mode).data
    return fuzz_mutants.mutant(number, fuzz_mutants.operator_seeds() if what == "operators" else None)


def outcome_of(number: int, what: str, mode: str | None) -> str:
    """How far a case came. Raises whatever is a finding."""
    if what == "engines":
        import fuzz_engines

        return fuzz_engines.outcome(number, mode)
    import fuzz_target

    return fuzz_target.outcome(mutant_of(number, what, mode)).split(":")[0]


def try_case(
    number: int, what: str = "files", mode: str | None = None, outcome: Callable[..., str] = outcome_of
) -> tuple[str, str | None]:
    """How far a case came, and the finding: its kind and the place in our code."""
    try:
        return outcome(number, what, mode), None
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        frames = traceback.extract_tb(error.__traceback__)
        ours = [f for f in frames if "opwright" in f.filename] or frames
        place = f"{pathlib.Path(ours[-1].filename).name}:{ours[-1].lineno} {ours[-1].name}"
        if type(error).__name__ == "Different":
            return "finding", str(error)[:600]
        return "finding", f"{type(error).__name__} at {place}: {str(error)[:300]}"


@contextlib.contextmanager
def session_of(what: str) -> Iterator[Callable[..., str]]:
    """Yield `outcome_of` for the cases of one process."""
    if what != "operators":
        yield outcome_of
        return
    import fuzz_target

    gc.collect()
    gc.freeze()  # what was imported before the fork is never garbage
    with fuzz_target.session() as tried:
        yield lambda number, what, mode: tried(mutant_of(number, what, mode)).split(":")[0]


def work(start: int, stop: int, results: Any, at: Any, slot: int, what: str, mode: str | None) -> None:
    """Try the cases from start to stop; report counts and findings to a queue, the case being tried in `at`."""
    counts: collections.Counter[str] = collections.Counter()
    with session_of(what) as outcome:
        for number in range(start, stop):
            at[2 * slot], at[2 * slot + 1] = number, time.monotonic()
            kind, finding = try_case(number, what, mode, outcome)
            counts[kind] += 1
            if finding is not None:
                results.put(("finding", number, finding))
            if counts.total() == FLUSHED:
                results.put(("counts", slot, counts))
                counts = collections.Counter()
    results.put(("done", slot, counts))
    results.close()
    results.join_thread()


def run(
    first: int, cases: int, workers: int, what: str = "files", mode: str | None = None, log: pathlib.Path | None = None
) -> dict[str, list[int]]:
    """Run the cases from `first` on; return the findings, each with the numbers of its cases."""
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    at = context.Array("d", 2 * workers, lock=False)
    batch = BATCHES[what]
    todo = [(start, min(start + batch, first + cases)) for start in range(first, first + cases, batch)][::-1]
    running: dict[int, tuple[Any, int]] = {}  # by slot: the process, where its cases end
    findings: dict[str, list[int]] = collections.defaultdict(list)
    counts: collections.Counter[str] = collections.Counter()
    began, told = time.monotonic(), 0.0

    def note(number: int, text: str) -> None:
        findings[text].append(number)
        if log is not None:
            with log.open("a") as file:
                file.write(json.dumps({"case": number, "finding": text}) + "\n")

    def take(wait: float) -> bool:
        try:
            kind, key, value = results.get(timeout=wait)
        except queue.Empty:
            return False
        if kind == "finding":
            note(key, value)
            return True
        counts.update(value)
        if kind == "done":
            process, stop = running.pop(key)
            process.join()
            if log is not None:
                with log.open("a") as file:
                    file.write(json.dumps({"until": stop, "counts": dict(counts)}) + "\n")
        return True

    while todo or running:
        for slot in set(range(workers)) - running.keys():
            if todo:
                start, stop = todo.pop()
                at[2 * slot], at[2 * slot + 1] = start, time.monotonic()
                process = context.Process(target=work, args=(start, stop, results, at, slot, what, mode), daemon=True)
                running[slot] = process, stop
                process.start()
        take(1.0)
        for slot, (process, stop) in list(running.items()):
            late = time.monotonic() - at[2 * slot + 1] > SILENT
            if process.is_alive() and not late:
                continue
            while take(0.2):
                pass
            if slot not in running or running[slot][0] is not process:
                continue  # it was done
            number = int(at[2 * slot])
            process.kill()
            process.join()
            del running[slot]
            note(number, f"case {number} hangs" if late else f"case {number}: process died ({process.exitcode})")
            counts["finding"] += 1
            if number + 1 < stop:
                todo.append((number + 1, stop))
        if time.monotonic() - told > 30:
            told = time.monotonic()
            done = sum(counts.values())
            print(f"{done} of {cases} cases, {told - began:.0f} s, {len(findings)} findings", flush=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"{counts.total()} cases in {time.monotonic() - began:.0f} s, "
        f"{counts.total() / max(used.ru_utime + used.ru_stime, 1e-9):.0f} a second of a core: "
        + ", ".join(f"{n} {name}" for name, n in sorted(counts.items()))
    )
    return findings


@functools.cache
def warm(what: str) -> None:
    """Run the seeds of the mutants once in this process."""
    import fuzz_mutants
    import fuzz_target

    if what != "engines":
        fuzz_target.warm(fuzz_mutants.operator_seeds() if what == "operators" else fuzz_mutants.seeds())


class WorkerLost(RuntimeError):
    """The process of a batch of cases died."""


def tried(what: str, mode: str | None, start: int, stop: int) -> tuple[dict[str, int], list[tuple[int, str]]]:
    """Try the cases from start to stop on a worker: how many came how far, and the findings. Raises WorkerLost.

    Limits on time and memory are a process's own and its main thread's: a thread of a worker, as of Dask, forks.
    """
    warm(what)
    if threading.current_thread() is threading.main_thread():
        return _tried(what, mode, start, stop)
    read, write = os.pipe()
    process = os.fork()
    if not process:
        try:
            with os.fdopen(write, "w") as file:
                json.dump(_tried(what, mode, start, stop), file)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as file:
        text = file.read()
    _, status = os.waitpid(process, 0)
    if status or not text:
        raise WorkerLost(f"the process of the cases from {start} to {stop} ended with status {status}")
    counts, findings = json.loads(text)
    return counts, [(number, finding) for number, finding in findings]


def _tried(what: str, mode: str | None, start: int, stop: int) -> tuple[dict[str, int], list[tuple[int, str]]]:
    """Try the cases in the main thread of this process."""
    counts: collections.Counter[str] = collections.Counter()
    findings = []
    with session_of(what) as outcome:
        for number in range(start, stop):
            kind, finding = try_case(number, what, mode, outcome)
            counts[kind] += 1
            if finding is not None:
                findings.append((number, finding))
    return dict(counts), findings


def run_on(executor: str, first: int, cases: int, what: str, mode: str | None) -> dict[str, list[int]]:
    """Run the cases on the workers of an executor; return the findings, each with the numbers of its cases."""
    import fuzz_jobs

    from opwright import distribute

    findings: dict[str, list[int]] = collections.defaultdict(list)
    counts: collections.Counter[str] = collections.Counter()
    began, batch = time.monotonic(), BATCHES[what]
    todo = [(start, min(start + batch, first + cases)) for start in range(first, first + cases, batch)]
    with distribute.executor(executor) if "://" in executor else contextlib.nullcontext(executor) as workers:
        while todo:
            jobs = [{"what": what, "mode": mode, "start": start, "stop": stop} for start, stop in todo]
            todo = []
            for trial in distribute.sweep(fuzz_jobs.tried, jobs, workers, progress=True):
                start, stop = trial.parameters["start"], trial.parameters["stop"]
                if trial.error is None:
                    counts.update(trial.value[0])
                    for number, text in trial.value[1]:
                        findings[text].append(number)
                elif trial.error.type != "WorkerLost":
                    raise RuntimeError(trial.error.traceback)
                elif stop - start > 1:
                    todo += [(start, (start + stop) // 2), ((start + stop) // 2, stop)]
                else:
                    findings[f"case {start}: process died"].append(start)
                    counts["finding"] += 1
    print(
        f"{counts.total()} cases in {time.monotonic() - began:.0f} s on {executor}: "
        + ", ".join(f"{n} {name}" for name, n in sorted(counts.items()))
    )
    return findings


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--what", choices=tuple(BATCHES), default="files")
    parser.add_argument("--mode", choices=("options", "structure", "bytes", "sweep"))
    parser.add_argument("--cases", type=int, default=200_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--executor", help="workers of ow.distribute, such as dask://host:8786, in place of --workers")
    parser.add_argument("--case", type=int)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--log", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.case is not None:
        if arguments.keep:
            arguments.keep.write_bytes(mutant_of(arguments.case, arguments.what, arguments.mode))
        print(outcome_of(arguments.case, arguments.what, arguments.mode))
        return 0
    if arguments.executor:
        findings = run_on(arguments.executor, arguments.first, arguments.cases, arguments.what, arguments.mode)
        return summarize(findings)
    if arguments.what == "engines":
        import fuzz_engines  # noqa: F401  before the fork, so that the processes share what is imported
    warm(arguments.what)
    findings = run(arguments.first, arguments.cases, arguments.workers, arguments.what, arguments.mode, arguments.log)
    return summarize(findings)


def summarize(findings: dict[str, list[int]]) -> int:
    """Print the findings by place; return the exit code."""
    grouped: dict[str, list[int]] = collections.defaultdict(list)
    for text, numbers in findings.items():
        grouped[re.sub(r"case \d+|-?\d[\d.e+-]*", "N", text)[:160]] += numbers
    for text, numbers in sorted(grouped.items(), key=lambda item: -len(item[1])):
        print(f"{len(numbers)} times: {text}    cases {numbers[:5]}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
