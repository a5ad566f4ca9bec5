"""Test in-place steps while other threads read: no thread sees half a step, and a value once read never changes.

Lives here: writers and readers of every kind.  Not here: what a step computes (test_optimizers_updates.py).
"""

from __future__ import annotations

import threading
import time

import numpy as np

import opwright as ow
from opwright import optimizers

SHAPE = (400, 300)  # more than one block, so that a step takes a while
SECONDS = 1.0


def test_readers_see_whole_steps_and_keep_what_they_read():
    """Every writer leaves all elements equal, so a reader of two different ones has seen half a step."""
    v, optimizer, ones = ow.Variable(np.zeros(SHAPE, "f4")), optimizers.SGD(1.0), ow.ones(SHAPE)
    optimizer.build([v])
    rows = ow.IndexedSlices(ones, ow.constant(np.arange(SHAPE[0])), ow.constant(SHAPE))
    traced = ow.function(lambda: optimizer.apply([ones], [v]))
    read = ow.function(lambda: ow.identity(v) + 0.0)
    traced(), read()

    def gradient():
        with ow.GradientTape() as tape:
            y = ow.reduce_sum(v * ones)
        return tape.gradient(y, v).numpy()

    writers = [
        lambda: v.assign_add(ones),
        lambda: v.assign(ow.zeros(SHAPE)),
        traced,
        lambda: optimizer.apply([ones], [v]),
        lambda: optimizer.apply([rows], [v]),
    ]
    readers = [
        v.numpy,
        lambda: np.asarray(v),
        lambda: np.asarray(v.value()),
        lambda: memoryview(np.asarray(v.value())),
        lambda: v[3:9].numpy(),
        lambda: read().numpy(),
        gradient,
    ]
    wrong: list[str] = []
    end = time.monotonic() + SECONDS

    def writing(write):
        while time.monotonic() < end:
            write()

    def reading(k):
        while time.monotonic() < end:
            held = [np.asarray(readers[k]()) for _ in range(3)]
            was = [a.copy() for a in held]
            if any(a.min() != a.max() for a in was):
                wrong.append(f"reader {k} saw half a step")
            time.sleep(0.002)
            if any(not np.array_equal(a, b) for a, b in zip(held, was)):
                wrong.append(f"what reader {k} had read changed")

    def caught(work, what):
        try:
            work(what)
        except Exception as error:
            wrong.append(repr(error))

    threads = [threading.Thread(target=caught, args=(writing, w)) for w in writers]
    threads += [threading.Thread(target=caught, args=(reading, k)) for k in range(len(readers))]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert wrong == []
