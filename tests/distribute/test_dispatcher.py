"""The dispatcher on executors that break at drawn calls: each task has one outcome, in order, within the window."""

from __future__ import annotations

from concurrent.futures import BrokenExecutor, Future

from hypothesis import given
from hypothesis import strategies as st

from opwright.distribute.dispatcher import Dispatcher, Lost, Task


class Breaking:
    """Workers whose executor breaks at certain submissions, with all that is in flight. Calls end in drawn order."""

    count = 2

    def __init__(self, breaks, order):
        self.breaks, self.order = set(breaks), order
        self.submitted = self.restarts = self.most = 0
        self.calls: list[tuple[Task, Future]] = []
        self.broken = False

    def submit(self, task):
        if self.broken:
            raise BrokenExecutor("broken")
        future = Future()
        future.set_running_or_notify_cancel()
        self.calls.append((task, future))
        self.most = max(self.most, len(self.calls))
        self.submitted += 1
        return future

    def advance(self):
        """End one call, or all of them by a break."""
        if self.submitted in self.breaks or any(-1 in task.elements for task, _ in self.calls):
            self.breaks.discard(self.submitted)
            self.broken, calls = True, self.calls
            self.calls = []
            for _, future in calls:
                future.set_exception(BrokenExecutor("a worker died"))
        elif self.calls:
            task, future = self.calls.pop(self.order.pop() % len(self.calls) if self.order else 0)
            future.set_result([2 * x for x in task.elements])

    def is_loss(self, error):
        return isinstance(error, BrokenExecutor)

    def restart(self):
        assert not self.calls
        self.broken = False
        self.restarts += 1
        return True


class Stepping(Dispatcher):
    """A dispatcher whose workers advance when it would wait."""

    def _fill(self, source):
        source = super()._fill(source)
        while self._flying and self._finished.empty():
            self._workers.advance()
        return source


def run(sizes, breaks, order, ordered, retries=2, killer=None):
    workers = Breaking(breaks, list(order))
    dispatcher = Stepping(workers, workers.submit, retries=retries, ordered=ordered)
    tasks, start = [], 0
    for size in sizes:
        tasks.append(Task(start, [-1 if i == killer else i for i in range(start, start + size)]))
        start += size
    outcomes = list(dispatcher.results(iter(tasks)))
    return workers, outcomes, start


SIZES = st.lists(st.integers(1, 5), max_size=20)


@given(SIZES, st.sets(st.integers(1, 60), max_size=2), st.lists(st.integers(0, 9), max_size=40), st.booleans())
def test_each_element_has_one_outcome(sizes, breaks, order, ordered):
    workers, outcomes, total = run(sizes, breaks, order, ordered)
    starts = [task.start for task, _ in outcomes]
    values = {task.start + i: v for task, outcome in outcomes for i, v in enumerate(outcome)}
    assert len(starts) == len(set(starts))
    assert values == {i: 2 * i for i in range(total)}
    assert starts == sorted(starts) or not ordered
    assert workers.most <= 2 * workers.count + 1


@given(SIZES.filter(bool), st.data(), st.integers(1, 3), st.booleans())
def test_only_the_guilty_element_is_lost(sizes, data, retries, ordered):
    killer = data.draw(st.integers(0, sum(sizes) - 1))
    order = data.draw(st.lists(st.integers(0, 9), max_size=40))
    _, outcomes, total = run(sizes, set(), order, ordered, retries, killer)
    lost = [task for task, outcome in outcomes if isinstance(outcome, Lost)]
    assert [task.elements for task in lost] == [[-1]]
    assert lost[0].start == killer
    values = {t.start + i: v for t, outcome in outcomes if t is not lost[0] for i, v in enumerate(outcome)}
    assert values == {i: 2 * i for i in range(total) if i != killer}


def test_without_retries_all_in_flight_are_lost():
    workers, outcomes, _ = run([1] * 20, {7}, [], True, retries=0)
    lost = [task.start for task, outcome in outcomes if isinstance(outcome, Lost)]
    assert 1 <= len(lost) <= 5
    assert len(outcomes) == 20
    assert workers.restarts == 1
