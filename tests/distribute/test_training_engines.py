"""Data-parallel programs on real engines, with two processes: MPI, Ray, Dask. Workers are killed in the middle.

The oracle is one worker in this process with the whole batches.
"""

import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tests.distribute.training_program import failing, train

import opwright as ow
from opwright.distribute import dask_workers

ROOT = Path(__file__).parents[2]
EPOCHS = 3


@pytest.fixture
def paths(monkeypatch):
    """The search path of Python of workers that engines start."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path)
    monkeypatch.setenv("RAY_worker_niceness", "0")  # 15 by default: on a busy machine workers hardly run
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.setenv(name, "1")


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Weights and losses of one worker."""
    return train(ow.distribute.LocalCommunicator(), tmp_path_factory.mktemp("alone"), EPOCHS)


def same(weights, losses, alone):
    np.testing.assert_allclose(losses, alone[1][-len(losses) :], rtol=2e-6)
    for a, b in zip(weights, alone[0]):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def mpiexec(count, folder, *arguments):
    """Run the program by mpiexec; return its exit status, and what rank 0 wrote."""
    pytest.importorskip("mpi4py")
    launcher = shutil.which("mpiexec", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    assert launcher is not None, "mpiexec belongs to MPI"
    command = [launcher, "-n", str(count), sys.executable, "-m", "tests.distribute.training_program", str(folder)]
    run = subprocess.run([*command, str(EPOCHS), *arguments], cwd=ROOT, capture_output=True, text=True, timeout=280)
    if run.returncode:
        return run.returncode, None, run.stdout + run.stderr
    result = np.load(folder / "result.npz")
    return 0, ([result[f"arr_{i}"] for i in range(len(result.files) - 2)], result["losses"], int(result["size"])), ""


@pytest.mark.slow
def test_two_processes_of_mpi_train_as_one(paths, alone, tmp_path):
    status, result, output = mpiexec(2, tmp_path)
    assert status == 0, output
    weights, losses, size = result
    assert size == 2
    same(weights, losses, alone)


@pytest.mark.slow
def test_mpi_resumes_on_another_number_of_processes(paths, alone, tmp_path):
    status, _, output = mpiexec(2, tmp_path, "kill")
    assert status != 0
    assert "KILLED" in output.upper(), output
    status, (weights, losses, size), output = mpiexec(1, tmp_path)
    assert (status, size, len(losses)) == (0, 1, EPOCHS - 1), output
    same(weights, losses, alone)


@pytest.fixture
def ray(paths):
    engine = pytest.importorskip("ray")
    engine.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield engine
    engine.shutdown()


@pytest.mark.slow
def test_ray(ray, alone, tmp_path):
    """Lost in the second epoch, and resumed; without restarts an error; an error of the program as it is."""
    results = ow.distribute.run_on_ray(train, (str(tmp_path / "a"), EPOCHS, True), workers=2, restarts=1, timeout=120)
    assert [size for _, _, size in results] == [2, 2]
    assert [len(losses) for _, losses, _ in results] == [EPOCHS - 1] * 2
    same(results[0][0], results[0][1], alone)
    with pytest.raises(ow.distribute.WorkerLostError, match="worker 1 of 2 was lost"):
        ow.distribute.run_on_ray(train, (str(tmp_path / "b"), EPOCHS, True), workers=2, timeout=120)
    with pytest.raises(KeyError, match="of the program"):
        ow.distribute.run_on_ray(failing, (str(tmp_path),), workers=2, timeout=120)


@pytest.mark.slow
def test_dask(paths, alone, tmp_path):
    """Lost in the second epoch, and resumed; without restarts an error; an error of the program as it is."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        run = ow.distribute.run_on_dask
        results = run(client, train, (str(tmp_path / "a"), EPOCHS, True), restarts=1, timeout=120)
        assert {size for _, _, size in results} <= {1, 2}  # the cluster may have restarted its worker, or not yet
        assert all(len(losses) == EPOCHS - 1 for _, losses, _ in results)
        same(results[0][0], results[0][1], alone)
        client.wait_for_workers(2, timeout=120)
        with pytest.raises(ow.distribute.WorkerLostError, match="lost"):
            run(client, train, (str(tmp_path / "b"), EPOCHS, True), workers=2, timeout=120)
        client.wait_for_workers(2, timeout=120)
        with pytest.raises(KeyError, match="of the program"):
            run(client, failing, (str(tmp_path),), workers=2, timeout=120)


class Unanswered:
    """An actor whose calls Dask leaves without an answer."""

    def ready(self):
        return self

    def result(self, timeout):
        time.sleep(0.01)
        raise TimeoutError


def test_a_call_without_an_answer_ends_with_the_program():
    with ThreadPoolExecutor(1) as thread:
        run = thread.submit(dask_workers._run, print, "program", 0, [Unanswered()], (), 60.0)
        dask_workers._mailbox("program").fail("worker 1 of 2 was lost")
        with pytest.raises(ow.distribute.WorkerLostError, match="worker 1 of 2 was lost"):
            run.result(30)
    with pytest.raises(ow.distribute.WorkerLostError, match="has not answered for 0 s"):
        dask_workers._run(print, "program", 0, [Unanswered()], (), 0.0)


@pytest.mark.parametrize(
    ("module", "extra", "call"),
    [
        ("mpi4py", "mpi", ow.distribute.MPICommunicator),
        ("ray", "ray", lambda: ow.distribute.run_on_ray(train)),
        ("distributed", "dask", lambda: ow.distribute.run_on_dask(None, train)),
    ],
)
def test_an_engine_that_is_not_installed_names_its_extra(monkeypatch, module, extra, call):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ow.errors.FailedPreconditionError, match=rf"pip install 'opwright\[{extra}\]'"):
        call()
