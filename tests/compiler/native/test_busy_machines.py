"""Test two threads on a busy machine: the caller works alone where sharing does not pay, and tries again later."""

from __future__ import annotations

import ctypes
import time

import numpy as np
from images_kit import KERNEL

from opwright.compiler.native.executor import Executor, Step
from opwright.compiler.native.store import find_module
from opwright.compiler.native.workers import REST, pool_of

# words: the caller's scratch memory; turns of a loop that an item takes on another thread; on the caller's; where to
# count items of other threads
PUT_ASIDE = (
    KERNEL
    + """entry:
  %caller = load ptr, ptr %words
  %other = icmp ne ptr %scratch, %caller
  %where = select i1 %other, i64 1, i64 2
  %turns.ptr = getelementptr i64, ptr %words, i64 %where
  %each = load i64, ptr %turns.ptr
  %items = sub i64 %end, %begin
  %turns = mul i64 %each, %items
  %counter.ptr = getelementptr i64, ptr %words, i64 3
  %counter = load ptr, ptr %counter.ptr
  %counted = select i1 %other, i64 %items, i64 0
  %ignored = atomicrmw add ptr %counter, i64 %counted monotonic
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %next = add i64 %i, 1
  call void asm sideeffect "", "r"(i64 %next)
  %more = icmp slt i64 %next, %turns
  br i1 %more, label %loop, label %done
done:
  ret i64 0
}
"""
)
TOOK, ALONE, LEAD, UNTIL, CREDIT = 6, 9, 10, 48, 64  # words of a plan, bytes of a pool: see executor.ll
SECONDS = 20.0


def test_workers_that_are_put_aside_are_left_alone() -> None:
    """Once the caller waited for one for milliseconds: for so many times as long, which is more than the runs take."""
    count = np.zeros(1, np.int64)
    words = [0, 1 << 24, 40_000, count.ctypes.data]
    step = Step(find_module("kernel", PUT_ASIDE, "k").address, words, 64, 1, scratch=64)
    pool = pool_of(2)
    credit, until = (ctypes.c_int64.from_address(pool.address + at) for at in (CREDIT, UNTIL))
    pool.set_rest(100_000)
    try:
        executor = Executor([step], 2)
        executor.words[0][0] = executor._scratch.ctypes.data
        executor._plan[ALONE] = 1 << 40  # nanoseconds: the plan is worth sharing
        end = time.perf_counter() + SECONDS
        while not (until.value and count[0]) and time.perf_counter() < end:
            until.value = credit.value = 0  # left by other tests, and what runs without the worker earn
            executor.run()
        assert count[0] > 0  # it took part, and was waited for
        count[0] = 0
        for _ in range(200):
            executor.run()
        assert count[0] == 0
        executor._plan[ALONE], until.value = 1 << 40, time.monotonic_ns()  # it is over
        while not count[0] and time.perf_counter() < end:
            executor.run()
        assert count[0] > 0
    finally:
        pool.set_rest(REST)
        until.value = 0


def test_a_plan_whose_first_run_was_slow_runs_alone_once() -> None:
    """The second run is on the caller alone, to know what that takes; how slow the first was does not matter."""
    count = np.zeros(1, np.int64)
    words = [0, 40_000, 40_000, count.ctypes.data]
    step = Step(find_module("kernel", PUT_ASIDE, "k").address, words, 64, 1, scratch=64)
    pool = pool_of(2)
    credit, until = (ctypes.c_int64.from_address(pool.address + at) for at in (CREDIT, UNTIL))
    executor = Executor([step], 2)
    executor.words[0][0] = executor._scratch.ctypes.data
    until.value = 0
    executor._plan[TOOK], executor._plan[ALONE] = 10**12, 0  # nanoseconds: four times that would be an hour
    executor.run()
    assert count[0] == 0
    assert 0 < executor._plan[ALONE] < 10**12
    assert until.value == 0
    end = time.perf_counter() + SECONDS
    while not count[0] and time.perf_counter() < end:
        until.value, credit.value = 0, 10**9
        executor.run()
    assert count[0] > 0


def test_a_first_run_is_not_compared() -> None:
    """The time on the caller alone is unknown then; all of it as a loss had the caller work alone for 32 runs."""
    count = np.zeros(1, np.int64)
    words = [0, 40_000, 40_000, count.ctypes.data]
    step = Step(find_module("kernel", PUT_ASIDE, "k").address, words, 64, 1, scratch=64)
    pool = pool_of(2)
    credit, until = (ctypes.c_int64.from_address(pool.address + at) for at in (CREDIT, UNTIL))
    executor = Executor([step], 2)
    executor.words[0][0] = executor._scratch.ctypes.data
    until.value, credit.value = 0, 10**9
    executor.run()
    assert executor._plan[TOOK] > 0
    assert executor._plan[ALONE] == 0
    assert executor._plan[LEAD] == 0
    until.value = 0
