"""pytest plugin: import TensorFlow's test files through names.py, and write each result as a line of JSON.

Environment: TENSORFLOW_SOURCES, the folder with `tensorflow/python`; PEER_RESULTS, the file of results.
"""

from __future__ import annotations

import ast
import os
import pathlib
import sys
import types

import names
import peer_tests
import pytest

names.SOURCES = pathlib.Path(os.environ["TENSORFLOW_SOURCES"])
names.install()


class Main(ast.NodeTransformer):
    """Execute what a file does as a program, too: many files add their tests there."""

    def visit_If(self, node):
        if ast.unparse(node.test).replace('"', "'") == "__name__ == '__main__'":
            node.test = ast.copy_location(ast.Constant(True), node.test)
        return node


class TensorFlowModule(pytest.Module):
    """A test file, executed under its name in the package."""

    def _getobj(self):
        relative = self.path.relative_to(names.SOURCES).with_suffix("")
        # AutoGraph leaves functions of modules called `tensorflow` alone.
        module = types.ModuleType(".".join(("peer", *relative.parts)))
        module.__file__ = str(self.path)
        sys.modules[module.__name__] = module
        tree = Main().visit(ast.parse(self.path.read_text(), str(self.path)))
        exec(compile(tree, str(self.path), "exec"), vars(module))
        return module

    def collect(self):
        return [each for each in super().collect() if isinstance(each, pytest.Class)]  # functions make tests


def pytest_pycollect_makemodule(module_path, parent):
    return TensorFlowModule.from_parent(parent, path=module_path)


def pytest_collect_directory(path, parent):
    return pytest.Dir.from_parent(parent, path=path)  # packages are not imported


pytest_collectreport = peer_tests.write_collection
pytest_runtest_logreport = peer_tests.write_test
