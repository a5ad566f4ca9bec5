"""pytest plugin: import Keras's test files through names.py, and write each result as a line of JSON.

Environment: KERAS_SOURCES, the folder of Keras's sources; PEER_RESULTS, the file to which lines are appended.
"""

from __future__ import annotations

import importlib
import pathlib
import sys
import types

import pytest

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import names  # noqa: E402
import peer_tests  # noqa: E402

names.install()
importlib.import_module("keras.src.testing.test_case").get_seed_generators = names.seed_generators
conftest = types.ModuleType("conftest")  # the one of Keras's repository, which its distribution lacks
conftest.skip_if_backend = lambda backend, reason: pytest.mark.skipif(backend == "tensorflow", reason=reason)
sys.modules["conftest"] = conftest


class KerasModule(pytest.Module):
    """A test file, imported by its name in the package."""

    def _getobj(self):
        relative = self.path.relative_to(names.SOURCES).with_suffix("")
        return importlib.import_module(".".join(relative.parts))


def pytest_pycollect_makemodule(module_path, parent):
    return KerasModule.from_parent(parent, path=module_path)


def pytest_collect_directory(path, parent):
    return pytest.Dir.from_parent(parent, path=path)  # packages are not imported


pytest_collectreport = peer_tests.write_collection
pytest_runtest_logreport = peer_tests.write_test
