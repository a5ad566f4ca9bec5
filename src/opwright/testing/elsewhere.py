"""A call as a model whose custom operator is run by others: as C source, and by the official run time.

Lives here: `exported`, `official`.  Not here: the file, and what runs it here (files.py).
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from ..core.errors import UnavailableError, UnimplementedError
from ..eager.tensor import make
from ..lite.export.c_export import export_c
from ..lite.native.custom_ops import build_custom_ops
from .files import File, file_of, run
from .trial import NotTried, Trial, array, assert_same


def _with_custom(trial: Trial) -> File:
    file = file_of(trial)
    if file.custom is None:
        raise NotTried("it is builtin operators in a file")
    return file


def exported(trial: Trial) -> str:
    """Written as C source, compiled and loaded it gives the same."""
    file = _with_custom(trial)
    with tempfile.TemporaryDirectory(prefix="opwright-") as folder:
        try:
            paths = export_c(trial.op, folder)
        except UnimplementedError as error:
            raise NotTried(f"it has no form in C: {str(error).splitlines()[0]}") from None
        try:
            library = build_custom_ops([p for p in paths if Path(p).suffix == ".c"])
        except UnavailableError as error:
            raise NotTried(str(error).splitlines()[0]) from None
        assert trial.op.name in library, f"the library has {', '.join(library) or 'nothing'}, and no {trial.op.name}"
        assert_same(run(file, library)[0], file.wanted, "exported to C", bits=False)
    return "as C"


def official(trial: Trial) -> str:
    """The official run time, given the operator, gives the same."""
    file = _with_custom(trial)
    from ..lite.litert import CompiledModel  # what needs its wheel

    try:
        with CompiledModel(file.content, custom_ops=[trial.op], num_threads=1) as model:
            found = model.run([array(t) for t in file.trial.tensors()])
            native = all(model.native_nodes.values())
    except (ImportError, UnimplementedError) as error:  # no wheel; tensors that it gives to no operator
        raise NotTried(str(error).splitlines()[0]) from None
    assert_same([make(y) for y in found], file.wanted, "in the official run time", bits=False)
    return "as machine code" if native else "by calls into Python"
