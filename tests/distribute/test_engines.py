"""Real engines with two processes: Dask, Ray, loky, spawned processes, MPI; their workers are killed in the middle."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import socket
import subprocess
import sys
import sysconfig
import time

import distribute_kit as kit
import numpy as np
import pytest

import opwright as ow
from opwright import distribute
from opwright.distribute import executors

ROOT = pathlib.Path(__file__).parents[2]
COUNT = 100
MODULES = {"dask": "distributed", "ray": "ray", "loky": "loky", "mpi": "mpi4py", "processes": "concurrent"}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    file = tmp_path_factory.mktemp("model") / "model.tflite"
    file.write_bytes(kit.convert(kit.function()))
    return file


@pytest.fixture
def on_workers(monkeypatch):
    """Workers import this folder's modules, and no engine reports usage or draws dashboards."""
    folders = [str(pathlib.Path(__file__).parent), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, folders)))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    monkeypatch.setenv("RAY_worker_niceness", "0")  # 15 by default: on a busy machine workers hardly run


def check_job(path, name, folder, count=COUNT):
    """Run a job whose workers die twice; each element has its result, once and in order."""
    items = [(i, str(folder / str(i)) if i in (9, 60) else "") for i in range(count)]
    with distribute.executor(name) as executor:
        again = executor if name.startswith(("dask", "ray")) else lambda: distribute.executors.Workers(name).executor
        results = list(distribute.map(path, items, again, batch=4, load=kit.row_or_death_once))
    np.testing.assert_allclose(results, kit.meaning(kit.elements(100)[:count]), rtol=1e-5)
    assert {file.name for file in folder.iterdir()} == {"9", "60"}  # both workers died


@pytest.mark.slow
def test_a_job_on_loky(path):
    pytest.importorskip("loky")
    x = kit.elements(COUNT)
    np.testing.assert_allclose(list(distribute.map(path, x, "loky:2", batch=4)), kit.meaning(x), rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["loky:2", "dask:2", "processes:2", "ray:2"])
def test_engines_whose_workers_are_killed(name, path, tmp_path, on_workers):
    pytest.importorskip(MODULES[name.partition(":")[0]])
    check_job(path, name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dask:2", "ray:2"])
def test_engines_lose_only_the_element_that_kills(name, path, on_workers):
    pytest.importorskip(MODULES[name.partition(":")[0]])
    results = list(distribute.map(path, range(20), name, batch=2, retries=1, load=kit.row_or_death))
    assert [i for i, y in enumerate(results) if isinstance(y, distribute.ElementError)] == [13]
    rest = [i for i in range(20) if i != 13]
    np.testing.assert_allclose([results[i] for i in rest], kit.meaning(kit.elements(100)[rest]), rtol=1e-5)


@pytest.mark.slow
def test_a_pool_of_ray_whose_workers_are_killed(path, tmp_path, on_workers):
    """The task of a killed actor runs on another one; the element that kills every actor is alone lost."""
    ray = pytest.importorskip("ray")
    from ray.util.multiprocessing import Pool

    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        with Pool(2) as pool:
            items = [(i, str(tmp_path / str(i)) if i in (9, 60) else "") for i in range(COUNT)]
            results = list(distribute.map(path, items, pool, batch=4, load=kit.row_or_death_once))
            np.testing.assert_allclose(results, kit.meaning(kit.elements(100)[:COUNT]), rtol=1e-5)
            assert {file.name for file in tmp_path.iterdir()} == {"9", "60"}
            results = list(distribute.map(path, range(20), pool, batch=2, retries=1, load=kit.row_or_death))
            assert [i for i, y in enumerate(results) if isinstance(y, distribute.ElementError)] == [13]
            errors = list(distribute.map(path, range(10), pool, batch=2, load=kit.row_or_error))
            assert [i for i, y in enumerate(errors) if isinstance(y, distribute.ElementError)] == [3]
    finally:
        ray.shutdown()


def test_a_dask_client_is_an_executor_and_sends_the_model_once(path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    x = kit.elements(COUNT)
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        results = distribute.map(path, x, client, batch=4)
        job = results._job
        job.reference = job.reference._replace(path="/nowhere")
        monkeypatch.setattr(job.model, "content", lambda: np.fromfile(path, np.uint8))
        np.testing.assert_allclose(list(results), kit.meaning(x), rtol=1e-5)
        assert client.status == "running"


def test_a_result_of_dask_that_is_lost_before_it_is_fetched(path, monkeypatch):
    """Dask's own executor leaves its future pending: the error comes from fetching, after the task has finished."""
    distributed = pytest.importorskip("distributed")
    from distributed.scheduler import KilledWorker

    x = kit.elements(COUNT)
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        gather, calls = client._gather, []

        async def lost_once(futures, *args, **kwargs):
            calls.append(futures)
            if len(calls) == 3:
                raise KilledWorker("a task", client.id, 0)
            return await gather(futures, *args, **kwargs)

        monkeypatch.setattr(client, "_gather", lost_once)
        results = distribute.map(path, x, client.get_executor(pure=False), batch=4)
        np.testing.assert_allclose(list(results), kit.meaning(x), rtol=1e-5)
        assert len(calls) > 3


MPI_JOB = """
import pathlib, sys
import distribute_kit as kit
from opwright import distribute

if __name__ == "__main__":
    model, folder, dies = sys.argv[1:]
    items = [(i, f"{folder}/dead" if i == 61 and dies == "dies" else "") for i in range(100)]
    sink = distribute.NumPySink(f"{folder}/out", rows=10)
    summary = distribute.map(model, items, "mpi", batch=5, load=kit.row_or_death_once, sink=sink).summary()
    print("resumed", summary.resumed, "of", summary.elements)
"""


@pytest.fixture
def on_ranks(path, tmp_path, on_workers):
    """A function that runs MPI_JOB on two ranks, one of them the driver; an element may kill its rank."""
    pytest.importorskip("mpi4py")
    mpiexec = pathlib.Path(sysconfig.get_path("scripts")) / "mpiexec"
    if not mpiexec.exists():
        pytest.fail("the mpich wheel is not installed")
    script = tmp_path / "job.py"
    script.write_text(MPI_JOB)

    def run(dies):
        command = [mpiexec, "-n", "2", sys.executable, "-m", "mpi4py.futures", script, path, tmp_path, dies]
        return subprocess.run(command, capture_output=True, text=True, timeout=250, cwd=ROOT)

    return run


def check_output(process, folder):
    assert not process.returncode, process.stderr
    rows = [np.load(folder / "out" / f"{i:09d}.npy") for i in range(100)]
    np.testing.assert_allclose(rows, kit.meaning(kit.elements(100)), rtol=1e-5)


@pytest.mark.slow
def test_a_job_on_mpi(on_ranks, tmp_path):
    check_output(on_ranks("lives"), tmp_path)


def test_mpi_without_its_launcher_is_an_error(monkeypatch):
    """MPICH aborts the thread that spawns processes, and mpi4py's pool then waits for it."""
    mpi = pytest.importorskip("mpi4py.MPI")
    if not mpi.Get_library_version().startswith("MPICH"):
        pytest.skip("could not import 'mpi4py' of MPICH")
    for name in [name for name in os.environ if name.startswith(("PMI_", "PMIX_"))]:
        monkeypatch.delenv(name)
    with pytest.raises(ow.errors.FailedPreconditionError, match="mpiexec -n 3 python -m mpi4py"):
        distribute.map(b"", [], "mpi:2")


@pytest.mark.slow
def test_a_job_on_mpi_whose_rank_is_killed(on_ranks, tmp_path):
    """MPI ends all ranks with one: the job goes on by another `mpiexec`, from its journal."""
    assert on_ranks("dies").returncode
    assert (tmp_path / "dead").exists()
    second = on_ranks("lives")
    check_output(second, tmp_path)
    resumed = int(second.stdout.split()[1])
    assert 0 < resumed < 70, second.stdout


# ---- the command line ------------------------------------------------------------------------------------------------


@pytest.fixture
def command(path, tmp_path, on_workers):
    """A function that runs `opwright run` on 20 files, and checks what it stores."""
    x = kit.elements(20)
    for i, row in enumerate(x):
        np.save(tmp_path / f"{i:02d}.npy", row)

    def run(executor, launcher=(), module=(), **environment):
        output = tmp_path / "out"
        arguments = ["run", str(path), "--inputs", str(tmp_path / "*.npy"), "--executor", executor, "-o", str(output)]
        process = subprocess.run(
            [*launcher, sys.executable, *module, "-m", "opwright", *arguments, "--batch", "3"],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=250,
            cwd=ROOT,
        )
        assert not process.returncode, process.stderr
        rows = [np.load(output / f"{i:02d}.npy") for i in range(20)]
        np.testing.assert_allclose(rows, kit.meaning(x), rtol=1e-5)
        assert "20 elements, 0 failed" in process.stdout

    return run


def script(name):
    return pathlib.Path(sysconfig.get_path("scripts")) / name


@pytest.mark.slow
@pytest.mark.parametrize("module", [(), ("-m", "mpi4py.futures")])
def test_the_command_on_ranks_of_mpi(command, module):
    """Rank 0 drives the others by itself, or by `python -m mpi4py.futures`."""
    pytest.importorskip("mpi4py")
    command("mpi", [script("mpiexec"), "-n", "2"], module)


@pytest.mark.slow
def test_the_command_on_a_dask_cluster(command):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster:
        command(cluster.scheduler_address.replace("tcp://", "dask://"))


@pytest.fixture
def ray_head(tmp_path, on_workers, monkeypatch):
    """The ports of a Ray cluster with two processors, and of its client server."""
    pytest.importorskip("ray")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with socket.socket() as first, socket.socket() as second:
        first.bind(("127.0.0.1", 0))
        second.bind(("127.0.0.1", 0))
        ports = first.getsockname()[1], second.getsockname()[1]
    options = [f"--port={ports[0]}", "--num-cpus=2"]
    if importlib.util.find_spec("grpc"):  # of ray[client]
        options.append(f"--ray-client-server-port={ports[1]}")
    log = tmp_path / "ray.log"
    with log.open("w") as file:
        start = [script("ray"), "start", "--head", "--block", "--include-dashboard=false", *options]
        head = subprocess.Popen(start, stdout=file, stderr=file)
    try:
        end = time.monotonic() + 120
        while "Ray runtime started" not in log.read_text() and time.monotonic() < end and head.poll() is None:
            time.sleep(0.2)
        assert head.poll() is None, log.read_text()
        yield ports
    finally:
        head.terminate()
        head.wait(60)


@pytest.mark.slow
def test_the_command_on_a_ray_cluster(command, ray_head):
    command("ray:auto", RAY_ADDRESS=f"127.0.0.1:{ray_head[0]}")


@pytest.mark.slow
def test_the_command_as_a_client_of_ray(command, ray_head):
    pytest.importorskip("grpc")
    command(f"ray://127.0.0.1:{ray_head[1]}")


@pytest.mark.parametrize(
    ("name", "module"), [("dask://127.0.0.1:1", "distributed"), pytest.param("ray:auto", "ray", marks=pytest.mark.slow)]
)
def test_a_cluster_that_does_not_answer_is_an_error(name, module, monkeypatch):
    pytest.importorskip(module)
    monkeypatch.setattr(executors, "CONNECT_SECONDS", 0.2)
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(ow.errors.UnavailableError, match="no cluster can be reached"):
        distribute.map(b"", [], name)
