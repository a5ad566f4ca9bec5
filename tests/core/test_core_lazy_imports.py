"""Imports leave the garbage collector as it was; finalizers work without the modules that Python has unloaded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from lite_kit import Build

import opwright


@pytest.mark.parametrize("before", ["enable", "disable"])
def test_the_collector_is_left_as_it_was(before: str) -> None:
    code = f"import gc; gc.{before}(); import opwright; assert gc.isenabled() == {before == 'enable'}"
    subprocess.run([sys.executable, "-c", code], check=True)


FROZEN = """
import gc, weakref
from opwright.core.lazy_imports import import_module
class Cycle: pass
cycle = Cycle(); cycle.me = cycle; dead = weakref.ref(cycle); del cycle
import_module("opwright.lite.runtime.model_loader")
assert len(gc.get_objects(0)) < 500, len(gc.get_objects(0))  # 12,000 were made, which the next collection would visit
assert not gc.get_freeze_count()
gc.collect()
assert dead() is None
gc.freeze()
frozen = gc.get_freeze_count()
import_module("opwright.lite.convert.converter")
assert gc.get_freeze_count() >= frozen - 100, (gc.get_freeze_count(), frozen)  # some of them may have died
counted = []
gc.get_freeze_count = lambda: counted.append(True)
import_module("opwright.nn.layers.audio")
assert not counted  # each count visits all frozen objects: 7 ms for 800,000
"""


def test_imports_leave_no_young_objects_and_frozen_ones_stay_frozen():
    subprocess.run([sys.executable, "-c", FROZEN], check=True)


AT_EXIT = """
import ctypes, sys, _frozen_importlib
import opwright as ow
from opwright.core.lazy_imports import finalizer

class Raises:
    @finalizer
    def __del__(self): raise ValueError("of a loaded module")

Raises()
interpreter = ow.lite.Interpreter(model_content=bytes.fromhex(sys.argv[1]))
trace = ow.function(lambda x: ow.exp(x) * 2, autograph=False).get_concrete_function(ow.TensorSpec([3]))
trace(ow.ones([3]))
# deleted at the very end, while modules that something in C references are cleared
_frozen_importlib.kept = [interpreter, trace, Raises()]
for module in list(sys.modules.values()):
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(module))
"""


def test_finalizers_are_silent_once_their_modules_are_unloaded():  # and without docstrings and asserts
    b = Build()
    b.op("ABS", "x", "y")
    command = [sys.executable, "-OO", "-W", "error", "-c", AT_EXIT, b.done().hex()]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    assert printed.count("Exception ignored") == printed.count("ValueError: of a loaded module") == 1, printed
    source = Path(opwright.__file__).parent
    lines = {path: path.read_text(encoding="utf-8").splitlines() for path in source.rglob("*.py")}
    plain = [
        f"{path.relative_to(source)}:{number}"
        for path, text in lines.items()
        for number, line in enumerate(text)
        if "def __del__" in line and text[number - 1].strip() != "@finalizer"
    ]
    assert not plain, plain
