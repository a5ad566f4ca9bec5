"""A build that is killed while it writes: each file is the old or the new one, and no library is there."""

import os
import signal

import numpy as np
import pytest

import opwright as ow
from opwright import aot
from opwright.aot import libraries
from opwright.core.errors import NotFoundError


@ow.function(input_signature=[ow.TensorSpec([4], ow.float32, name="x")])
def double(x):
    return {"y": x + x}


@ow.function(input_signature=[ow.TensorSpec([4], ow.float32, name="x")])
def triple(x):
    return {"y": 3 * x}


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir() if ".tmp-opwright-" not in file.name}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_killed_build_leaves_no_library(tmp_path, monkeypatch):
    old, new, folder = tmp_path / "old", tmp_path / "new", tmp_path / "out"
    for out in (old, folder):
        aot.build(double, out=out, name="net", weights="file")
    files = aot.build(triple, out=new, name="net", weights="file").files
    before, after = contents(old), contents(new)
    real = libraries.replacing
    for last in range(0, len(files), 3):
        opened = iter(range(len(files)))

        def killed(path, last=last, opened=opened):
            context = real(path)
            if next(opened) == last:
                stream = context.__enter__()
                stream.write(b"half")
                stream.flush()
                os.kill(os.getpid(), signal.SIGKILL)
            return context

        monkeypatch.setattr(libraries, "replacing", killed)
        process = os.fork()
        if not process:
            try:
                aot.build(triple, out=folder, name="net", weights="file")
            finally:
                os._exit(0)
        _, status = os.waitpid(process, 0)
        monkeypatch.setattr(libraries, "replacing", real)
        assert os.WTERMSIG(status) == signal.SIGKILL
        present = contents(folder)
        assert "net.json" not in present
        assert all(data in (before.get(name), after[name]) for name, data in present.items())
        with pytest.raises(NotFoundError):
            aot.load(folder)
    aot.build(triple, out=folder, name="net", weights="file")
    np.testing.assert_array_equal(aot.load(folder)(np.ones(4, np.float32))["y"], np.full(4, 3, np.float32))
