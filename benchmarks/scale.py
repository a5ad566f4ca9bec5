"""A data-parallel step on 8 to 1,024 workers, simulated: `python -m benchmarks.scale`, whose tables docs/scale.md has.

Lives here: the measured steps, the networks, the model of a step. Not here: measurements (data_parallel.py).

A step is the forward pass, a third of its seconds, and the backward pass; a bucket of gradients starts when its share
of the backward pass is over and the network is free. An all-reduce of s bytes on n workers is what
distribute/communicators.py does: two exchanges, each of n - 1 messages of s / n bytes to and from every worker, so that
one takes latency + (n - 1) * overhead + s (n - 1) / n / bandwidth. Steps of workers differ by a lognormal factor; the
slowest is waited for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

WORKERS = (8, 64, 1024)
JITTER = 0.03
"""Standard deviation of the logarithm of a worker's step: assumed."""
BACKWARD = 2 / 3
BUCKET = 4 << 20


@dataclass(frozen=True)
class Network:
    """A network. latency: seconds until a message arrives; overhead: seconds of a core for one; bandwidth: bytes/s."""

    name: str
    latency: float
    overhead: float
    bandwidth: float


@dataclass(frozen=True)
class Step:
    """A measured step of one core of a Zen 4 with AVX-512, by `make bench`.

    dense: bytes of gradients; rows: of a worker's sparse rows; examples: of its batch; example: bytes of one as the
    loader reads it
    """

    name: str
    seconds: float
    dense: int
    rows: int
    examples: int
    example: int


NETWORKS = (
    Network("1 Gbit/s, TCP", 50e-6, 10e-6, 117e6),
    Network("25 Gbit/s, TCP", 20e-6, 5e-6, 2.9e9),
    Network("200 Gbit/s, RDMA", 2e-6, 0.5e-6, 24e9),
)
STEPS = (
    Step("ResNet-18, batch 16", 0.451, 44_696_872, 0, 16, 3_073),
    Step("DLRM, batch 128", 0.00643, 1_997_060, 3_328 * (256 + 4), 128, 13 * 4 + 26 * 4 + 4),
)
CORES = 16
"""Cores of a worker in the tables: a machine. The step is divided by them: the worst case for communication."""


def exchange(size: float, workers: int, network: Network) -> float:
    """Return the seconds of one exchange of `size` bytes in all between a worker and the others."""
    return network.latency + (workers - 1) * network.overhead + size * (workers - 1) / workers / network.bandwidth


def straggling(workers: int, rng: np.random.Generator) -> float:
    """Return the expected factor of the slowest worker's step."""
    return float(np.exp(JITTER * rng.standard_normal((400, workers))).max(1).mean())


def seconds_of(step: Step, workers: int, network: Network, bucket: int, sharded: bool, factor: float) -> float:
    """Return the seconds of a step with overlap. sharded: rows by all-to-all, and not to every worker."""
    compute = step.seconds / CORES * factor
    forward, backward = compute * (1 - BACKWARD), compute * BACKWARD
    count = max(1, -(-step.dense // bucket))
    free = 0.0
    for i in range(count):
        ready = forward + backward * (i + 1) / count
        free = max(free, ready) + 2 * exchange(step.dense / count, workers, network)
    if not step.rows:
        return max(free, compute)
    if sharded:  # numbers of rows there, rows back before the forward pass; gradients after the backward pass
        rows = 3 * exchange(0, workers, network) + 2 * exchange(step.rows, workers, network)
    else:
        rows = network.latency + (workers - 1) * (network.overhead + step.rows / network.bandwidth)
    return max(free, compute) + rows


def bytes_of(step: Step, workers: int, sharded: bool) -> float:
    """Return the bytes that a worker sends in a step."""
    dense = 2 * step.dense * (workers - 1) / workers
    rows = 2 * step.rows * (workers - 1) / workers if sharded else step.rows * (workers - 1)
    return dense + rows


def table(step: Step, sharded: bool, bucket: int) -> list[str]:
    """Return the lines of a table: for each network and number of workers bytes, seconds and efficiency."""
    alone = step.seconds / CORES
    lines = ["| Workers | Bytes a step and worker | " + " | ".join(n.name for n in NETWORKS) + " | Read by all |"]
    lines.append("|---|---|" + "---|" * (len(NETWORKS) + 1))
    for workers in WORKERS:
        factor = straggling(workers, np.random.default_rng(workers))
        cells = []
        for network in NETWORKS:
            took = seconds_of(step, workers, network, bucket, sharded, factor)
            cells.append(f"{took * 1e3:.1f} ms, {alone / took:.0%}")
        took = seconds_of(step, workers, NETWORKS[-1], bucket, sharded, factor)
        reading = workers * step.examples * step.example / took
        size = f"{bytes_of(step, workers, sharded) / 1e6:.1f} MB"
        lines.append(f"| {workers:,} | {size} | {' | '.join(cells)} | {reading / 1e6:,.0f} MB/s |")
    return lines


def report() -> str:
    """Return all tables, as docs/scale.md has them."""
    parts = []
    for step, sharded, bucket in (
        (STEPS[0], False, BUCKET),
        (STEPS[0], False, 64 << 20),
        (STEPS[1], False, BUCKET),
        (STEPS[1], True, BUCKET),
    ):
        rows = "" if not step.rows else ", table by rows" if sharded else ", table on every worker"
        parts.append(f"{step.name}{rows}, buckets of {bucket >> 20} MiB: {step.seconds / CORES * 1e3:.1f} ms alone\n")
        parts += [*table(step, sharded, bucket), ""]
    factors = [f"{straggling(w, np.random.default_rng(w)) - 1:.0%} at {w:,}" for w in WORKERS]
    parts.append(f"Waiting for the slowest worker: {', '.join(factors)}.")
    return "\n".join(parts)


if __name__ == "__main__":
    print(report())
