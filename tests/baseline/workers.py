"""Processes that compute: each takes one unit of work after the other, and may die of it.

Lives here: `Workers`.  Not here: what such a process does (worker.py).
"""

from __future__ import annotations

import contextlib
import pickle
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from .machine import environment
from .outcomes import Entry, failed

MOST_S, MOST_TO_LIST_S = 300, 1800
"""Seconds that a unit may take, and listing them all: some kinds plan everything to know."""


class ProcessEnded(RuntimeError):
    """A process that computes ended, by itself or since its time was up."""


class Workers:
    """So many processes for one kind of one tree. module: that computes the kind; folder: where they may keep what
    later runs can use."""

    def __init__(self, module: str, tree: Path, folder: Path, count: int) -> None:
        self.module, self.tree, self.folder, self.count = module, tree, folder, count
        self._here = threading.local()
        self._started: list[subprocess.Popen[bytes]] = []
        self._caches = contextlib.ExitStack()

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._started:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
        self._caches.close()

    def units(self) -> list[str]:
        """The names of all units. Raises ProcessEnded with what the process wrote."""
        return list(self._asked("units", None))

    def run(self, units: Sequence[str]) -> Iterator[list[Entry]]:
        """The entries of each unit, in the order of the units."""
        with ThreadPoolExecutor(self.count) as pool:
            yield from pool.map(self._entries, units)

    def _entries(self, unit: str) -> list[Entry]:
        """Return the entries of a unit. If its process dies, one entry reports that in place of the missing ones."""
        result: list[Entry] = []
        try:
            result.extend(self._asked("run", unit))  # those before the end of a process, too
        except ProcessEnded as error:
            result.append(failed(f"{unit}/process", error))
        return result

    def _asked(self, what: str, unit: str | None) -> Iterator[Any]:
        """Yield the answers of this thread's process."""
        process: subprocess.Popen[bytes] = getattr(self._here, "process", None) or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        seconds = MOST_S if unit else MOST_TO_LIST_S
        limit = threading.Timer(seconds, process.kill)
        limit.start()
        try:
            pickle.dump((what, unit), process.stdin)
            process.stdin.flush()
            while True:
                more, answer = pickle.load(process.stdout)
                if not more:
                    break
                yield answer
        except (EOFError, OSError, pickle.UnpicklingError):
            self._here.process = None
            status = process.wait()
            raise ProcessEnded(
                f"the process ended with status {status}"
                if limit.is_alive()
                else f"the process took more than {seconds} s"
            ) from None
        finally:
            limit.cancel()
        if answer is not None:
            raise ProcessEnded(answer)

    def _start(self) -> subprocess.Popen[bytes]:
        cache = self._caches.enter_context(tempfile.TemporaryDirectory(prefix="opwright-baseline-"))
        process = subprocess.Popen(
            [sys.executable, "-m", "baseline.worker", self.module, str(self.tree), str(self.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(Path(cache)),
        )
        self._started.append(process)
        self._here.process = process
        return process
