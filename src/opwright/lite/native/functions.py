"""The provider's functions, as Python calls them.

Lives here: `provider`: their types.  Not here: what they do (provider/), building them (building.py).

Each call lets go of the interpreter lock, and what C calls back takes it.
"""

from __future__ import annotations

import ctypes as C
from typing import Any

from ...core.errors import InternalError
from ...core.once import once
from . import building, records

_POINTER = C.c_void_p
_FUNCTIONS = {
    # name                      result     arguments
    "ow_context_init":          (None,     (_POINTER, _POINTER)),
    "ow_context_end":           (None,     (_POINTER,)),
    "ow_init":                  (_POINTER, (_POINTER, _POINTER, _POINTER, C.c_size_t)),
    "ow_free":                  (None,     (_POINTER, _POINTER, _POINTER)),
    "ow_prepare":               (C.c_int,  (_POINTER, _POINTER, _POINTER)),
    "ow_invoke":                (C.c_int,  (_POINTER, _POINTER, _POINTER)),
    "ow_run":                   (C.c_int,  (_POINTER,)),
    "ow_run_all":               (C.c_int,  (_POINTER,)),
    "ow_has_invoke":            (C.c_int,  (_POINTER,)),
    "ow_is_operator":           (C.c_int,  (_POINTER,)),
    "ow_operator_registration": (None,     (_POINTER, _POINTER)),
    "ow_call_by_value":         (C.c_int,  (_POINTER, _POINTER, _POINTER)),
    "ow_added_begin":           (None,     ()),
    "ow_added":                 (C.c_int,  (_POINTER,)),
    "ow_added_end":             (None,     ()),
    "ow_size_of":               (C.c_size_t, (C.c_int,)),
    "ow_blocks":                (C.c_int64, ()),
    "TfLiteIntArrayCreate":     (_POINTER, (C.c_int,)),
    "TfLiteIntArrayFree":       (None,     (_POINTER,)),
    "TfLiteFloatArrayCreate":   (_POINTER, (C.c_int,)),
    "TfLiteFloatArrayFree":     (None,     (_POINTER,)),
    "TfLiteTensorDataFree":     (None,     (_POINTER,)),
}  # fmt: skip
_RECORDS = (records.CHost, records.CContext, records.CTensor, records.CNode, records.CRegistration)


@once
def provider() -> Any:
    """The provider, loaded so that libraries of operators find its names.

    raises UnavailableError where it must be built and there is no compiler
    """
    library = building.provider()
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    for i, record in enumerate(_RECORDS):
        if library.ow_size_of(i) != C.sizeof(record):
            raise InternalError(what=f"{record.__name__} is laid out in another way than in C",
                                found=C.sizeof(record), wanted=library.ow_size_of(i))  # fmt: skip
    return library
