"""Shared by the tests of this folder: models with their meaning in float64, elements, functions that workers call."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np

import opwright as ow
from opwright.distribute import worker

COLUMNS, WIDE = 8, 3000
"""Elements of a row; of one that goes through shared memory."""


def meaning(x):
    """The model in float64."""
    return np.tanh(np.asarray(x, np.float64)) * 2.0


def function(columns=COLUMNS):
    @ow.function(input_signature=[ow.TensorSpec([None, columns], ow.float32, name="x")])
    def model(x):
        return ow.tanh(x) * 2.0

    return model


def convert(traced):
    """A `.tflite` file of a function with one signature."""
    concrete = traced.get_concrete_function()
    return ow.lite.TFLiteConverter.from_concrete_functions([concrete], traced).convert()


def elements(count, columns=COLUMNS):
    return np.random.default_rng(count).standard_normal((count, columns)).astype(np.float32)


def forked(count=2):
    """A pool whose processes start in milliseconds, for tests that kill them."""
    return ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("fork"))


def forked_pool(count=2):
    """The same as a `multiprocessing.Pool`."""
    return multiprocessing.get_context("fork").Pool(count)


class BlindExecutor(ThreadPoolExecutor):
    """Threads that do not see the driver's files; counts the calls that carry a model's bytes."""

    def __init__(self, workers=1):
        super().__init__(workers)
        self.sent = 0

    def submit(self, fn, /, *args, **kwargs):
        if fn is worker.run_task:
            reference, *rest = args
            self.sent += rest[-1] is not None
            args = reference._replace(path="/nowhere"), *rest
        return super().submit(fn, *args, **kwargs)


# ---- read elements on workers ----------------------------------------------------------------------------------------


def row_of(index):
    return elements(100)[index]


def row_in_a_while(index):
    time.sleep(0.002)
    return row_of(index % 100)


def row_or_death_once(item):
    """Kill this process at the first element with a marker that does not exist yet."""
    index, marker = item
    if marker and not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return row_of(index)


def wide_row(index):
    return np.full(WIDE, index / 100, np.float32)


def wide_row_or_death_once(item):
    """The same with rows that go through shared memory."""
    row_or_death_once((0, item[1]))
    return wide_row(item[0])


def row_or_death(index):
    """Kill this process at element 13, whenever it comes."""
    if index == 13:
        os.kill(os.getpid(), signal.SIGKILL)
    return row_of(index)


def row_or_error(index):
    if index % 10 == 3:
        raise KeyError(f"no row {index}")
    return row_of(index)


def row_or_exit(index):
    if index == 3:
        raise SystemExit(7)
    return row_of(index)


# ---- processes that are killed ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def child(action):
    """Run an action in a fork of this process, which ends with the context."""
    number = os.fork()
    if not number:
        try:
            action()
        finally:
            os._exit(0)
    try:
        yield number
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)
        os.waitpid(number, 0)


def kill_after(action, seconds):
    """Kill a fork of this process that runs an action; return whether the action had ended."""
    with child(action) as number:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if os.waitid(os.P_PID, number, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                return True
            time.sleep(0.0005)
    return False
