"""Workers of a data-parallel program as threads of one process: for tests of what does not depend on the engine."""

import queue
import threading

from opwright.distribute import Communicator


class ThreadCommunicator(Communicator):
    """A communicator of threads; every pair of workers has its own queue."""

    def __init__(self, rank, size, queues):
        self.rank, self.size, self.timeout, self._queues = rank, size, 60, queues

    def exchange(self, sent, received):
        for target in range(self.size):
            if target != self.rank:
                self._queues[self.rank, target].put([a.copy() for a in sent[target]])
        for source in range(self.size):
            if source != self.rank:
                arrays = self._queues[source, self.rank].get(timeout=self.timeout)
                assert [a.shape for a in arrays] == [a.shape for a in received[source]]
                for place, array in zip(received[source], arrays):
                    place[...] = array


def run_workers(size, work):
    """Call work(communicator) on `size` threads; return the results by rank. Raises the first error."""
    queues = {(a, b): queue.Queue() for a in range(size) for b in range(size)}
    results, errors = [None] * size, []

    def worker(rank):
        try:
            results[rank] = work(ThreadCommunicator(rank, size, queues))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=worker, args=(rank,), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive() and not errors:
            thread.join(0.05)
    if errors:
        raise errors[0]
    return results
