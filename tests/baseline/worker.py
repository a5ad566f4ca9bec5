"""A process that computes entries of a tree: `python -m baseline.worker MODULE TREE FOLDER`, asked through pipes.

It reads pickled questions, ("units", None) or ("run", unit), and answers each by (True, answer) any number of times and
(False, None); or (False, text) where the module itself failed. What the rows print goes nowhere.
"""

from __future__ import annotations

import importlib
import os
import pickle
import sys
import traceback
from pathlib import Path

from .machine import python_path


def main(name: str, tree: str, folder: str) -> None:
    """Answer questions until there are no more."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.path[:0] = python_path(Path(tree))
    module = None
    while True:
        try:
            what, unit = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            if module is None:
                module = importlib.import_module(name)
                module.prepare(Path(tree), Path(folder))
            for answer in module.units() if what == "units" else module.run(unit):
                pickle.dump((True, answer), answers)
                answers.flush()
            last = None
        except Exception:
            last = traceback.format_exc()
        pickle.dump((False, last), answers)
        answers.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
