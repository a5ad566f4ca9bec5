"""Importing the package leaves the garbage collector as it was."""

from __future__ import annotations

import subprocess
import sys

import pytest


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
