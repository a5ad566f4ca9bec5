"""Executors by name, and those of engines that have none of their own.

Lives here: `executor`; `Workers`, an executor with what a job needs to know of it; `RayExecutor`.
Not here: pools that are not executors (pools.py), the jobs (inference.py, sweeps.py), which submit module-level
functions and data.

| name | engine |
|---|---|
| `threads[:N]` | threads of this process |
| `processes[:N]` | processes, started afresh (spawn) |
| `loky[:N]` | loky's processes |
| `dask://HOST:PORT`, `tls://...`; `dask[:N]` | a Dask cluster by its scheduler; N Dask processes on this machine |
| `ray://HOST:PORT`, `ray:auto`; `ray[:N]` | a Ray cluster; Ray on this machine with N processors |
| `mpi[:N]` | mpi4py's pool: the ranks of `mpiexec -n R python -m mpi4py.futures`, else N spawned ones |
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import re
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing.pool import ThreadPool
from typing import Any

from ..core.errors import FailedPreconditionError, InvalidArgumentError, UnavailableError
from ..core.extras import optional_module
from .pools import DaskExecutor, PoolExecutor, RayPoolExecutor

ExecutorLike = Executor | str | Callable[[], Executor] | Any
"""An executor, its name, a function that creates one, a `dask.distributed.Client`, or a pool of `multiprocessing` or
`ray.util.multiprocessing`."""


RAY_ATTEMPTS = "RAY_gcs_server_port_wait_time_s"
"""Ray's variable for how often it tries to reach a cluster, by default 20 times of 40 s; also how long it waits for its
own to start."""


def _call(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return fn(*args, **kwargs)


class RayExecutor(Executor):
    """An executor whose tasks are Ray tasks of one processor each.

    address: of a cluster, as `ray.init` takes it; None to start Ray on this machine. num_cpus: processors to use of
    this machine. A Ray that is already initialised is used as it is, and stays.

    raises FailedPreconditionError if Ray is not installed, UnavailableError if no cluster answers at the address
    """

    def __init__(self, address: str | None = None, num_cpus: int | None = None) -> None:
        self._ray = optional_module("ray")
        self._started = not self._ray.is_initialized()
        if self._started:
            local: dict[str, Any] = {} if address else {"num_cpus": num_cpus, "include_dashboard": False}
            once = bool(address) and RAY_ATTEMPTS not in os.environ
            try:
                if once:
                    os.environ[RAY_ATTEMPTS] = "1"
                # None would also find a cluster that someone started here, or the address that one has left behind.
                self._ray.init(address=address or "local", log_to_driver=False, **local)
            except (OSError, ValueError) as error:  # ValueError: for `ray://` it needs ray[client]
                raise _unreachable(address or "this machine", error) from error
            finally:
                if once:
                    os.environ.pop(RAY_ATTEMPTS, None)
        self._task = self._ray.remote(num_cpus=1, max_retries=0)(_call)  # the job counts the retries

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Schedule `fn(*args, **kwargs)`; arguments that are object references are read on the worker."""
        future: Future[Any] = self._task.remote(fn, *args, **kwargs).future()
        return future

    def put(self, value: object) -> object:
        """Store a value once for all tasks; return the reference to pass to `submit`."""
        return self._ray.put(value)

    @property
    def num_workers(self) -> int:
        """The tasks that the cluster runs at once."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End Ray if this executor started it."""
        if self._started:
            self._started = False
            self._ray.shutdown()


class Workers:
    """An executor as a job uses it: how many tasks it runs at once, which errors mean a lost worker, how to replace it.

    executor: an `ExecutorLike`, None for one thread of this process. An executor that is built here, by name or by a
    function, is rebuilt by `restart` when its workers die, and shut down by `close`; one that the caller passes is
    neither.

    raises InvalidArgumentError for an unknown name, FailedPreconditionError if its engine is not installed
    """

    def __init__(self, executor: ExecutorLike = None) -> None:
        self._build = _builder(executor)
        self._close: list[Callable[[], object]] = []
        self.executor: Executor = self._build(self) if self._build else _adapted(executor)

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """Schedule a call. Raises BrokenExecutor if the executor has lost its workers."""
        return self.executor.submit(fn, *args)

    @property
    def count(self) -> int:
        """The number of tasks that run at once."""
        client = getattr(self.executor, "_client", None)
        if client is not None:  # Dask: workers may join and leave
            return max(1, sum(map(int, client.nthreads().values())))
        for name in ("num_workers", "_max_workers"):
            size = getattr(self.executor, name, None)
            if isinstance(size, int) and size > 0:
                return size
        return os.cpu_count() or 1

    @property
    def is_local(self) -> bool:
        """Whether every worker is on this machine, and so reads this machine's files."""
        return isinstance(self.executor, ThreadPoolExecutor | ProcessPoolExecutor) or _module(self.executor) == "loky"

    @property
    def pickles_by_name(self) -> bool:
        """Whether functions travel by the names of their modules: other engines send their code."""
        return isinstance(self.executor, ProcessPoolExecutor)

    @property
    def shares_process(self) -> bool:
        """Whether tasks run on threads of this process."""
        pool = getattr(self.executor, "pool", None)
        return isinstance(self.executor, ThreadPoolExecutor) or isinstance(pool, ThreadPool)

    @property
    def shares_memory(self) -> bool:
        """Whether tasks run in other processes of this host, which may map this one's memory."""
        pool = getattr(self.executor, "pool", None)
        is_pool = pool is not None and _module(pool) == "multiprocessing"
        return (self.is_local or is_pool) and not self.shares_process

    def share(self, value: object) -> Any:
        """Hand a value to the engine, which sends it once to each worker; return the argument to pass instead of it.

        returns None for an engine that cannot
        """
        client = getattr(self.executor, "_client", None)
        if client is not None:
            return client.scatter(value, broadcast=False, hash=False)
        return self.executor.put(value) if isinstance(self.executor, RayExecutor) else None

    def is_loss(self, error: BaseException) -> bool:
        """Return whether a task's error is the death of its worker, and so says nothing of the task itself."""
        names = {cls.__name__ for cls in type(error).__mro__}
        return isinstance(error, BrokenExecutor) or bool(names & LOSSES)

    def is_shutdown(self, error: BaseException) -> bool:
        """Return whether a task's error is that somebody has shut down the executor."""
        return type(error).__name__ in SHUTDOWNS

    def restart(self) -> bool:
        """Replace an executor whose workers died; return whether that was possible."""
        if not isinstance(self.executor, ProcessPoolExecutor | PoolExecutor) and _module(self.executor) != "loky":
            return True  # Dask and Ray start other workers themselves
        if self._build is None:
            return False
        self.close()
        self.executor = self._build(self)
        return True

    def close(self) -> None:
        """Shut down an executor that was built here."""
        if self._build is not None:
            with contextlib.suppress(BrokenExecutor):
                self.executor.shutdown(wait=True)  # without cancel_futures, which Dask's and loky's lack
        while self._close:
            self._close.pop()()

    def at_close(self, action: Callable[[], object]) -> None:
        """Add an action of `close`, after the executor's shutdown."""
        self._close.append(action)


LOSSES = {
    *("KilledWorker", "WorkerCrashedError", "NodeDiedError", "OutOfMemoryError", "LocalRayletDiedError"),
    "RayActorError",  # of the actors that are the workers of Ray's pool
}
"""Errors of Dask and of Ray by name: their modules are not imported for a comparison."""


SHUTDOWNS = {"ShutdownExecutorError", "FutureCancelledError", "CancelledError", "PoolTerminated"}
"""Errors of loky, Dask and `PoolExecutor` by name."""


def _module(value: object) -> str:
    return type(value).__module__.partition(".")[0]


def _adapted(executor: Any) -> Executor:
    if _module(executor) == "distributed":
        if hasattr(executor, "get_executor"):
            return DaskExecutor(executor.get_executor(pure=False))
        if isinstance(executor, Executor):
            return DaskExecutor(executor)
    if isinstance(executor, Executor):
        return executor
    if hasattr(executor, "apply_async"):
        return RayPoolExecutor(executor) if _module(executor) == "ray" else PoolExecutor(executor)
    raise InvalidArgumentError(
        what="executor= is not an executor",
        found=type(executor).__name__,
        wanted=f"a concurrent.futures.Executor, {NAMES}",
    )


Builder = Callable[[Workers], Executor]


def _builder(executor: ExecutorLike) -> Builder | None:
    """Return the function that creates the executor; None if the caller owns it."""
    if executor is None:
        return lambda workers: ThreadPoolExecutor(1)
    if isinstance(executor, str):
        return _named(executor)
    if isinstance(executor, Executor) or hasattr(executor, "get_executor") or hasattr(executor, "apply_async"):
        return None
    if not callable(executor):
        return None
    create: Callable[[], Any] = executor

    def build(workers: Workers) -> Executor:
        created = create()
        adapted = _adapted(created)
        if not isinstance(created, Executor) and not isinstance(adapted, PoolExecutor):
            workers.at_close(created.close)
        return adapted

    return build


NAMES = "threads[:N], processes[:N], loky[:N], dask[:N], dask://HOST:PORT, ray[:N], ray://HOST:PORT, mpi[:N]"


def _named(name: str) -> Builder:
    engine, colon, rest = name.partition(":")
    by_address = ADDRESSED.get(engine) if rest.startswith("//") or rest == "auto" else None
    if by_address is not None:
        return lambda workers: by_address(workers, name)
    local = LOCAL.get(engine)
    if local is None or not re.fullmatch(r"[1-9]\d{0,4}" if colon else "", rest):
        raise InvalidArgumentError(what="no executor has this name", found=name, wanted=NAMES)
    return lambda workers: local(workers, int(rest) if rest else None)


def _processes(workers: Workers, count: int | None) -> Executor:
    # A forked child would inherit the locks of threads that it does not have: the compiler's, the engines'.
    pool = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), initializer=end_with_driver)
    _widen_pipes(pool)
    return pool


def end_with_driver() -> None:
    """Let this worker end with the process that started it: one that was killed closes no queue, and workers would wait
    for its next task for ever."""
    parent = multiprocessing.parent_process()

    def wait() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, name="driver watch", daemon=True).start()


PIPE_BYTES = 1 << 20
"""The largest pipe that Linux grants to every user. Through one of 64 KiB, a worker waits for the driver's threads four
times to receive 200 KB of elements that are not arrays, and as often to send results."""


def _widen_pipes(pool: ProcessPoolExecutor) -> None:
    """Enlarge the pipes of a pool, so that the next batch waits in the pipe and not in the driver; where Linux can."""
    for queue in ("_call_queue", "_result_queue"):
        with contextlib.suppress(AttributeError, ImportError, OSError):
            import fcntl

            fcntl.fcntl(getattr(pool, queue)._reader.fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)


def _loky(workers: Workers, count: int | None) -> Executor:
    # Not get_reusable_executor: shutting that one down would end the pool of joblib in this process, too.
    pool: Executor = optional_module("loky").ProcessPoolExecutor(count, timeout=60)
    return pool


def _dask_on_this_machine(workers: Workers, count: int | None) -> Executor:
    distributed = optional_module("distributed")
    with optional_module("dask").config.set(
        {"distributed.scheduler.allowed-failures": 0}
    ):  # the job counts the retries
        cluster = distributed.LocalCluster(
            n_workers=count or os.cpu_count(), threads_per_worker=1, processes=True, dashboard_address=None
        )
    return _dask_client(workers, distributed.Client(cluster), cluster)


CONNECT_SECONDS = 30.0
"""How long a Dask scheduler may take to answer."""


def _dask_at(workers: Workers, name: str) -> Executor:
    distributed = optional_module("distributed")
    try:
        client = distributed.Client(re.sub("^dask://", "tcp://", name), timeout=CONNECT_SECONDS)
    except OSError as error:
        raise _unreachable(name, error) from error
    return _dask_client(workers, client)


def _unreachable(address: str, error: Exception) -> UnavailableError:
    return UnavailableError(
        what=f"no cluster can be reached at {address}", found=f"{type(error).__name__}: {error}", do="start it first"
    )


def _dask_client(workers: Workers, client: Any, cluster: Any = None) -> Executor:
    if cluster is not None:
        workers.at_close(cluster.close)
    workers.at_close(client.close)
    return _adapted(client)


def _ray_at(workers: Workers, name: str) -> Executor:
    return RayExecutor("auto" if name == "ray:auto" else name)


def _mpi(workers: Workers, count: int | None) -> Executor:
    pools, version = optional_module("mpi4py.futures"), optional_module("mpi4py.MPI").Get_library_version()
    if version.startswith("MPICH") and not any(name.startswith(("PMI_", "PMIX_")) for name in os.environ):
        raise FailedPreconditionError(  # MPI_Comm_spawn would abort, and the pool wait for ever
            what="MPICH starts processes only in a program that mpiexec runs",
            found=version.splitlines()[0].strip(),
            do="mpiexec -n 3 python -m mpi4py.futures PROGRAM, or -m opwright run ... --executor mpi",
        )
    if count is None and runs_on_each_rank():
        raise FailedPreconditionError(
            what="every rank of MPI runs this program, and would run the whole job",
            wanted="rank 0 runs it, and the others compute",
            do="mpiexec -n R python -m mpi4py.futures PROGRAM",
        )
    pool: Executor = pools.MPIPoolExecutor(count)
    return pool


def runs_on_each_rank() -> bool:
    """Return whether `mpiexec` runs this program on several ranks, and not by `python -m mpi4py.futures`."""
    if not any(name in os.environ for name in LAUNCHED):
        return False
    world = optional_module("mpi4py.MPI").COMM_WORLD
    return bool(world.Get_size() > 1) and optional_module("mpi4py.futures._core").SharedPool is None


LAUNCHED = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")
"""Variables of processes that MPICH, Open MPI or Slurm has launched."""


LOCAL: dict[str, Callable[[Workers, int | None], Executor]] = {
    "threads": lambda workers, count: ThreadPoolExecutor(count or os.cpu_count()),
    "processes": _processes,
    "loky": _loky,
    "dask": _dask_on_this_machine,
    "ray": lambda workers, count: RayExecutor(num_cpus=count),
    "mpi": _mpi,
}
ADDRESSED: dict[str, Callable[[Workers, str], Executor]] = {"dask": _dask_at, "tls": _dask_at, "ray": _ray_at}


@contextlib.contextmanager
def _shut_down(workers: Workers) -> Any:
    try:
        yield workers.executor
    finally:
        workers.close()


def executor(name: str) -> contextlib.AbstractContextManager[Executor]:
    """Return a context that creates an executor by name, as `map` and `sweep` do, and shuts it down at its end.

    name: `threads[:N]`, `processes[:N]`, `loky[:N]`, `dask[:N]`, `dask://HOST:PORT`, `ray[:N]`, `ray://HOST:PORT`,
    `ray:auto`, `mpi[:N]`. For several jobs on the same workers; N defaults to the number of processors.

    >>> with ow.distribute.executor("threads:2") as workers:
    ...     list(ow.distribute.map(model, images, executor=workers))

    raises InvalidArgumentError for an unknown name, FailedPreconditionError if the engine is not installed
    """
    return _shut_down(Workers(name))
