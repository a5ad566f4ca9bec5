"""Turns of one process and of both, asked for by a driver: how data-parallel steps are timed.

Lives here: `serve` and `take_core`, of a rank; `Ranks`, `measured`, of the driver.
Not here: the steps (data_parallel.py, peers/data_parallel_torch.py).  Standard library only, as peers' Pythons read it.
"""

from __future__ import annotations

import os
import socket
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import NamedTuple

ALONE, BOTH = "alone", "both"
WARM = 3
ROOT = Path(__file__).parent.parent
START_SECONDS = 240.0


class Figure(NamedTuple):
    """Seconds of a step of one process and of both, and of a processor for one of both."""

    alone: list[float]
    both: list[float]
    processor_alone: float
    processor_both: float

    def __str__(self) -> str:
        least, least_both, middle, middle_both = (
            f(x) * 1e3 for f in (min, statistics.median) for x in (self.alone, self.both)
        )
        return (
            f"one {least:7.2f} ms (median {middle:7.2f}), both {least_both:7.2f} ms ({middle_both:7.2f}): throughput "
            f"{2 * least / least_both:.2f} by least times, {2 * middle / middle_both:.2f} by medians; processor time "
            f"{self.processor_alone * 1e3:.2f} and {self.processor_both * 1e3:.2f} ms a step, least"
        )


def take_core(rank: int) -> None:
    """Bind this process to a core of its own, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[rank % len(cores)]})


def serve(
    address: str, rank: int, alone: Callable[[], object], both: Callable[[], object], barrier: Callable[[], object]
) -> None:
    """Run steps as the driver asks: (kind, number), until None."""
    for _ in range(WARM):
        alone()
        barrier()
        both()
    with Client(address) as driver:
        driver.send(rank)
        while (asked := driver.recv()) is not None:
            kind, count = asked
            times = []
            for _ in range(count):
                if kind == BOTH:
                    barrier()
                start, processor = time.perf_counter(), time.process_time()
                alone() if kind == ALONE else both()
                times.append((time.perf_counter() - start, time.process_time() - processor))
            driver.send(times)


class Ranks:
    """The two processes of a framework. commands: that start them."""

    def __init__(self, address: str, commands: Sequence[Sequence[str]]) -> None:
        self._listener = Listener(address)
        self._processes = [subprocess.Popen(command, cwd=ROOT) for command in commands]
        self._ranks: dict[int, Connection] = {}

    def connect(self) -> None:
        """Wait for the processes. Raises SubprocessError if one ends before, EOFError."""
        server: socket.socket = self._listener._listener._socket  # type: ignore[attr-defined]
        server.settimeout(1.0)
        end = time.monotonic() + START_SECONDS
        while len(self._ranks) < 2:
            try:
                connection = self._listener.accept()
            except TimeoutError:
                if time.monotonic() > end or any(p.poll() is not None for p in self._processes):
                    raise subprocess.SubprocessError("it has not begun") from None
                continue
            self._ranks[connection.recv()] = connection

    def run(self, kind: str, count: int) -> list[tuple[float, float]]:
        """Return seconds, and seconds of a processor, of steps; of both processes the greater ones."""
        asked = list(self._ranks.values()) if kind == BOTH else [self._ranks[0]]
        for connection in asked:
            connection.send((kind, count))
        times = [connection.recv() for connection in asked]
        return [(max(t for t, _ in step), max(p for _, p in step)) for step in zip(*times)]

    def close(self) -> None:
        """End the processes."""
        for connection in self._ranks.values():
            connection.send(None)
        for process in self._processes:
            try:
                process.wait(10 if self._ranks else 0.1)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._listener.close()


def measured(frameworks: Mapping[str, Ranks], rounds: int, seconds: float) -> dict[str, Figure]:
    """Return the figures of frameworks, whose rounds take turns; seconds: of a round, about."""
    times: dict[tuple[str, str], list[tuple[float, float]]] = {}
    counts: dict[tuple[str, str], int] = {}
    for ranks in frameworks.values():
        ranks.connect()
    for number in range(rounds + 1):
        for name, ranks in frameworks.items():
            for kind in (ALONE, BOTH):
                steps = ranks.run(kind, counts.get((name, kind), 2))
                counts[name, kind] = max(1, int(seconds / min(t for t, _ in steps)))
                if number:  # the first one counts steps
                    times.setdefault((name, kind), []).extend(steps)
    figures = {}
    for name in frameworks:
        alone, both = times[name, ALONE], times[name, BOTH]
        figures[name] = Figure(
            [t for t, _ in alone], [t for t, _ in both], min(p for _, p in alone), min(p for _, p in both)
        )
    return figures


def free_port() -> int:
    """Return a port that nothing listens to."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port: int = server.getsockname()[1]
        return port
