"""Executors by name: the workers that they start, and the errors of names and engines that are not there."""

import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest

import opwright as ow
from opwright.distribute import executors


@pytest.mark.parametrize("name", ["", "thread", "threads:", "threads:0", "threads:x", "processes:-1", "http://host:1"])
def test_unknown_names_are_refused(name):
    with pytest.raises(ow.errors.InvalidArgumentError, match=r"processes\[:N\]"):
        executors.Workers(name)


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [
        ("loky:2", "loky", "loky"),
        ("dask:2", "distributed", "dask"),
        ("dask://127.0.0.1:1", "distributed", "dask"),
        ("ray:2", "ray", "ray"),
        ("ray://127.0.0.1:1", "ray", "ray"),
        ("mpi:2", "mpi4py", "mpi"),
    ],
)
def test_an_engine_that_is_not_installed_names_its_extra(monkeypatch, name, module, extra):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ow.errors.FailedPreconditionError, match=rf"pip install 'opwright\[{extra}\]'"):
        executors.Workers(name)


def test_an_executor_by_name_is_shut_down_at_the_end():
    with ow.distribute.executor("threads:3") as executor:
        assert isinstance(executor, ThreadPoolExecutor)
        assert executor.submit(pow, 2, 5).result() == 32
    with pytest.raises(RuntimeError, match="shutdown"):
        executor.submit(pow, 2, 5)


def test_counts_of_workers():
    for name, count in (("threads:3", 3), ("processes:2", 2)):
        workers = executors.Workers(name)
        assert workers.count == count
        assert workers.is_local
        workers.close()


def test_an_executor_of_the_caller_stays():
    with ThreadPoolExecutor(2) as pool:
        workers = executors.Workers(pool)
        workers.close()
        assert workers.submit(pow, 2, 5).result() == 32


def test_a_factory_builds_the_executor_again():
    pools = []

    def factory():
        pools.append(ProcessPoolExecutor(1))
        return pools[-1]

    workers = executors.Workers(factory)
    assert workers.restart()
    assert len(pools) == 2
    assert workers.executor is pools[1]
    workers.close()


def test_other_types_are_refused():
    with pytest.raises(ow.errors.InvalidArgumentError, match=r"found +int"):
        executors.Workers(3)
