"""The end of a process in which daemon threads still run models: nothing is freed under them, nothing is said."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest
from litert_kit import needs_wheel

pytestmark = needs_wheel

PROGRAM = """
    import os, sys, threading, time
    sys.path[:0] = FOLDERS
    import numpy as np
    from lite_kit import Build
    import opwright as ow
    from opwright import lite
    from opwright.lite.litert import invocation

    @ow.operator(name="LitertSlow")
    class Slow:
        x = ow.Input()
        y = ow.Output(like="x")

        def compute(op, x):
            started.set()
            time.sleep(SECONDS)
            return x + x

    invocation._PATIENCE = 0.5
    started = threading.Event()
    content = Build().tensor("x", (2, 3)).tensor("h", (2, 3)).tensor("y", (2, 3)).custom("LitertSlow", "x", "h").op(
        "NEG", "h", "y").done("x", "y")
    models = [lite.litert.CompiledModel(content, [Slow], num_threads=1) for _ in range(2)]

    def forever(model):
        x = np.ones((2, 3), np.float32)
        while True:
            assert (model.run([x])[0] == -2.0).all()

    for model in models:
        threading.Thread(target=forever, args=(model,), daemon=True).start()
    started.wait()
    time.sleep(0.05)
    print("the end", flush=True)
"""


FORK = """
    child = os.fork()
    if not child:
        try:
            models[0].run([np.ones((2, 3), np.float32)])
        except ow.errors.FailedPreconditionError as error:
            sys.exit(0 if "when the process forked" in str(error) else 1)
        sys.exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


def run(program, seconds):
    """Of a program in which each run of a model takes so long: the status, what it printed, what it said on stderr."""
    folders = [p for p in sys.path if "tests" in p]
    program = textwrap.dedent(program).replace("FOLDERS", repr(folders)).replace("SECONDS", repr(seconds))
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "OPWRIGHT_COMPILED": "0"},
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("seconds", [pytest.param(0.0, marks=pytest.mark.slow), 0.02, 30.0], ids=str)
def test_a_daemon_thread_still_runs_models(seconds):
    """A run is waited for, but not for ever; the next one does not begin."""
    assert run(PROGRAM, seconds) == (0, "the end\n", "")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_while_another_thread_runs_a_model():
    """In the child that run never ends: using the model is an error, not a deadlock."""
    assert run(PROGRAM + FORK, 0.2) == (0, "the end\n", "")
