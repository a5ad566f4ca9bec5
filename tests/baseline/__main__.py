"""The command line: `python -m baseline record`, `python -m baseline compare`; see docs/baseline.md.

Exit codes: 0, nothing differs that was not reviewed; 1, something does; 2, there is nothing to compare with, or it was
recorded on another machine.
"""

from __future__ import annotations

import argparse
import datetime
import fnmatch
import functools
import os
import sys
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

from . import machine
from .comparison import Reviewed, compared, report, summary
from .kinds import KINDS
from .records import Record
from .workers import ProcessEnded, Workers

HERE = Path(__file__).resolve().parents[2]
REVIEWED = Path("tests") / "baseline" / "reviewed.txt"
"""The path of the reviewed differences in a tree."""


def main(arguments: list[str] | None = None) -> int:
    """Run a command. Returns the exit code."""
    options = _parser().parse_args(arguments)
    options.kinds = [k for k in options.kinds.replace(",", " ").split() if k]
    if unknown := [k for k in options.kinds if k not in KINDS]:
        print(f"no such kind: {', '.join(unknown)}; there are {', '.join(KINDS)}", file=sys.stderr)
        return 2
    try:
        return _record(options) if options.command == "record" else _compare(options)
    except ProcessEnded as error:
        print(f"what should be recorded does not load:\n{error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m baseline", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, words in (("record", "keep what a tree computes"), ("compare", "compute it again; print differences")):
        command = commands.add_parser(name, help=words)
        command.add_argument("--kinds", default=",".join(KINDS), metavar="K,K", help=f"of {', '.join(KINDS)}")
        command.add_argument("--out", type=Path, default=HERE / "build" / "baseline", help="the record's folder")
        command.add_argument("--tree", type=Path, default=HERE, help="the working tree; by default this package's own")
        command.add_argument("--only", default="", metavar="PATTERN", help="units of that name, as catalogue/Ata*")
        command.add_argument("--processes", type=int, default=os.cpu_count() or 1)
        if name == "record":
            words = "one unit in N, which compare computes, too"
            command.add_argument("--sample", type=int, default=1, metavar="N", help=words)
        if name == "compare":
            command.add_argument("--with", dest="other", type=Path, help="a record to compare instead of computing one")
            command.add_argument("--reviewed", type=Path, help=f"reviewed differences; by default TREE/{REVIEWED}")
            command.add_argument("--most", type=int, default=10, help="differences that are shown of each kind")
            command.add_argument("--anyway", action="store_true", help="compare with a record of another machine")
    return parser


def _record(options: argparse.Namespace) -> int:
    if options.only:
        print("a record has all units, or --sample of them; --only is for compare", file=sys.stderr)
        return 2
    record = Record(options.out)
    for kind in options.kinds:
        _compute(options, record, kind, options.sample, lambda unit: True)
    print(f"recorded in {options.out}")
    return 0


def _sampled(unit: str, sample: int) -> bool:
    """Return whether a sample, one unit in a number, has a unit. The name decides: new units move no others."""
    return zlib.crc32(unit.encode()) % sample == 0


def _sample_of(record: Record, kind: str) -> int:
    """Return the sample that was recorded of a kind, 1 for all units."""
    sample: int = record.about.get("kinds", {}).get(kind, {}).get("sample", 1)
    return sample


def _is_chosen(pattern: str, samples: Sequence[int], unit: str) -> bool:
    """Return whether a unit matches the pattern, if there is one, and all samples have it."""
    return (not pattern or fnmatch.fnmatchcase(unit, pattern)) and all(_sampled(unit, n) for n in samples)


def _compute(
    options: argparse.Namespace, record: Record, kind: str, sample: int, chosen: Callable[[str], bool]
) -> None:
    """Compute one kind into a record."""
    tree = options.tree.resolve()
    start = time.monotonic()
    with Workers(KINDS[kind].module, tree, options.out.resolve() / "work", options.processes) as workers:
        units = [unit for unit in workers.units() if chosen(unit) and _sampled(unit, sample)]
        entries = []
        for done, result in enumerate(workers.run(units), 1):
            entries += result
            if sys.stderr.isatty():
                print(f"\r{kind}: {done} of {len(units)}", end="", file=sys.stderr, flush=True)
    record.write(kind, entries)
    seconds = time.monotonic() - start
    fact = {
        "commit": machine.commit_of(tree),
        "date": f"{datetime.datetime.now():%Y-%m-%d %H:%M}",
        "entries": len(entries),
        "sample": sample,
        "seconds": round(seconds),
    }
    record.describe({"machine": machine.identity(), "kinds": {**record.about.get("kinds", {}), kind: fact}})
    print(f"{kind}: {len(entries)} entries of {len(units)} units in {seconds:.0f} s", flush=True)


def _compare(options: argparse.Namespace) -> int:
    before = Record(options.out)
    if lacking := [k for k in options.kinds if not before.has(k)]:
        print(f"{options.out} has no record of {', '.join(lacking)}: make record first", file=sys.stderr)
        return 2
    after = Record(options.other) if options.other else Record(options.out / "now")
    here = after.about.get("machine", {}) if options.other else machine.identity()
    there = before.about["machine"]
    if here != there:
        for name in sorted({*here, *there}):
            if here.get(name) != there.get(name):
                print(f"another {name}: recorded {there.get(name)}, now {here.get(name)}", file=sys.stderr)
        if not options.anyway:
            print("results depend on these; record on this machine, or compare --anyway", file=sys.stderr)
            return 2
    path = options.reviewed or options.tree / REVIEWED
    reviewed = Reviewed.read(path) if options.reviewed or path.exists() else Reviewed()

    result = []
    for kind in options.kinds:
        samples = [_sample_of(record, kind) for record in (before, *([after] if options.other else []))]
        chosen = functools.partial(_is_chosen, options.only, samples)
        if not options.other:
            _compute(options, after, kind, samples[0], chosen)
        result.append(compared(KINDS[kind], before, after, reviewed, chosen))
    (options.out / "differences.txt").write_text("\n".join(report(result, reviewed)) + "\n", "utf-8")
    print("\n".join(summary(result, options.most)))
    clean = all(c.clean for c in result)
    print("clean" if clean else f"all of it: {options.out / 'differences.txt'}")
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())
