"""Tries many mutants of .tflite files, on several processes: `make fuzz`.

    python tests/lite/fuzz/run_fuzz.py [--cases 200000] [--first 0] [--workers 2]
    python tests/lite/fuzz/run_fuzz.py --case 1234       one again, with its traceback; --keep FILE writes its bytes

Findings are listed by place, with the numbers of some cases each; the exit code is 1 if there are any. A process that
dies, or hangs where no signal reaches it, is a finding of the case it was at.

Lives here: processes, the summary.  Not here: the mutants (fuzz_mutants.py), what is tried (fuzz_target.py).
"""

from __future__ import annotations

import argparse
import collections
import multiprocessing
import pathlib
import sys
import time
import traceback
from typing import Any

HERE = pathlib.Path(__file__).parent
sys.path += [str(HERE), str(HERE.parents[1] / "data" / "tflite")]
BATCH = 250
SILENT = 60.0  # seconds without a word from a process before it counts as hanging


def try_case(number: int) -> tuple[str, str | None]:
    """How far a case came, and the finding: its kind and the place in our code."""
    import fuzz_mutants
    import fuzz_target

    data = fuzz_mutants.mutant(number)
    try:
        return fuzz_target.outcome(data), None
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        frames = traceback.extract_tb(error.__traceback__)
        ours = [f for f in frames if "opwright" in f.filename] or frames
        place = f"{pathlib.Path(ours[-1].filename).name}:{ours[-1].lineno} {ours[-1].name}"
        return "finding", f"{type(error).__name__} at {place}: {str(error)[:150]}"


def work(start: int, stop: int, results: Any) -> None:
    """Try the cases from start to stop; what happened goes to a queue."""
    counts: collections.Counter[str] = collections.Counter()
    for number in range(start, stop):
        results.put(("at", start, number)) if number % 10 == 0 else None
        outcome, finding = try_case(number)
        counts[outcome.split(":")[0]] += 1
        if finding is not None:
            results.put(("finding", number, finding))
    results.put(("done", start, counts))


def run(first: int, cases: int, workers: int) -> dict[str, list[int]]:
    """Try so many cases; the findings, each with the numbers of its cases."""
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    todo = [(start, min(start + BATCH, first + cases)) for start in range(first, first + cases, BATCH)][::-1]
    running: dict[int, Any] = {}
    at: dict[int, tuple[int, float]] = {}
    findings: dict[str, list[int]] = collections.defaultdict(list)
    counts: collections.Counter[str] = collections.Counter()
    began, told = time.monotonic(), 0.0
    while todo or running:
        while todo and len(running) < workers:
            start, stop = todo.pop()
            running[start] = context.Process(target=work, args=(start, stop, results), daemon=True)
            at[start] = (start, time.monotonic())
            running[start].start()
        try:
            kind, key, value = results.get(timeout=1.0)
        except Exception:
            kind, key, value = "", 0, None
        if kind == "at" and key in at:
            at[key] = (value, time.monotonic())
        elif kind == "finding":
            findings[value].append(key)
        elif kind == "done":
            counts += value
            running.pop(key).join()
        for start, process in list(running.items()):
            number, since = at[start]
            dead = not process.is_alive() and results.empty()
            if dead or time.monotonic() - since > SILENT:
                process.kill()
                what = f"process died ({process.exitcode})" if dead else "hangs"
                findings[f"{what} at case {number} or soon after"].append(number)
                del running[start]
        if time.monotonic() - told > 30:
            told = time.monotonic()
            done = sum(counts.values())
            print(f"{done} of {cases} cases, {told - began:.0f} s, {len(findings)} findings", flush=True)
    print(f"{sum(counts.values())} cases in {time.monotonic() - began:.0f} s: "
          + ", ".join(f"{n} {what}" for what, n in sorted(counts.items())))  # fmt: skip
    return findings


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=200_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--case", type=int)
    parser.add_argument("--keep", type=pathlib.Path)
    given = parser.parse_args()
    if given.case is not None:
        import fuzz_mutants
        import fuzz_target

        data = fuzz_mutants.mutant(given.case)
        if given.keep:
            given.keep.write_bytes(data)
        print(fuzz_target.outcome(data))
        return 0
    import fuzz_target

    fuzz_target.warm()  # before the fork, so that the processes share what is imported
    findings = run(given.first, given.cases, given.workers)
    for what, numbers in sorted(findings.items(), key=lambda item: -len(item[1])):
        print(f"{len(numbers)} times: {what}    cases {numbers[:5]}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
