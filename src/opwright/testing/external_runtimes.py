"""Run a call's model with its custom operator in other run times: as C source, and in the official run time.

Lives here: `exported`, `official`.  Not here: the file, and running it here (model_files.py).
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from ..core.errors import UnavailableError, UnimplementedError
from ..eager.tensor import make
from ..lite.export.c_export import export_c
from ..lite.native.custom_ops import build_custom_ops
from .model_files import ModelFile, file_of, run
from .operator_call import CheckedCall, NotApplicable, array, assert_same


def _with_custom(call: CheckedCall) -> ModelFile:
    file = file_of(call)
    if file.custom is None:
        raise NotApplicable("it is builtin operators in a file")
    return file


def exported(call: CheckedCall) -> str:
    """Check that it computes the same when exported as C source, compiled and loaded."""
    file = _with_custom(call)
    with tempfile.TemporaryDirectory(prefix="opwright-") as folder:
        try:
            paths = export_c(call.op, folder)
        except UnimplementedError as error:
            raise NotApplicable(f"it has no form in C: {str(error).splitlines()[0]}") from None
        try:
            library = build_custom_ops([p for p in paths if Path(p).suffix == ".c"])
        except UnavailableError as error:
            raise NotApplicable(str(error).splitlines()[0]) from None
        assert call.op.name in library, f"the library has {', '.join(library) or 'nothing'}, and no {call.op.name}"
        assert_same(run(file, library)[0], file.expected, "exported to C", bits=False)
    return "as C"


def official(call: CheckedCall) -> str:
    """Check that the official run time, with the operator registered, computes the same."""
    file = _with_custom(call)
    from ..lite.litert import CompiledModel  # needs the official wheel

    try:
        with CompiledModel(file.content, custom_ops=[call.op], num_threads=1) as model:
            results = model.run([array(t) for t in file.call.tensors()])
            native = all(model.native_nodes.values())
    except (ImportError, UnimplementedError) as error:  # no wheel, or tensors that it passes to no operator
        raise NotApplicable(str(error).splitlines()[0]) from None
    assert_same([make(y) for y in results], file.expected, "in the official run time", bits=False)
    return "as machine code" if native else "by calls into Python"
