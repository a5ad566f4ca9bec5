"""`ow.experimental.numpy`: NumPy's functions and rules of dtypes on tensors, under TensorFlow's names.

Lives here: the names.  Not here: what they do (dtypes.py, elements.py, arrays.py, reductions.py), methods and operators
of tensors by NumPy's rules (behavior.py). All functions are differentiable and can be traced.
"""

import numpy as _np

from ...core.lazy_imports import MissingNameError as _MissingNameError
from ...ops.tensor import Tensor as _Tensor
from . import arrays as _arrays
from . import behavior as _behavior
from . import dtypes as _dtypes
from . import elements as _elements
from . import reductions as _reductions

ndarray = _Tensor
e, pi, inf, newaxis = _np.e, _np.pi, _np.inf, None
bool_, int8, int16, int32, int64 = _np.bool_, _np.int8, _np.int16, _np.int32, _np.int64
uint8, uint16, uint32, uint64 = _np.uint8, _np.uint16, _np.uint32, _np.uint64
float16, float32, float64, complex64, complex128 = _np.float16, _np.float32, _np.float64, _np.complex64, _np.complex128
int_, float_, complex_, object_, string_, unicode_ = int64, float64, complex128, _np.object_, _np.bytes_, _np.str_
inexact, issubdtype, finfo, iinfo = _np.inexact, _np.issubdtype, _np.finfo, _np.iinfo
promote_types, result_type = _dtypes.promote_types, _dtypes.result_type
experimental_enable_numpy_behavior = _behavior.experimental_enable_numpy_behavior
globals().update(_elements.FUNCTIONS)
for _module in (_elements, _arrays, _reductions):
    globals().update({_name: getattr(_module, _name) for _name in _module.__all__})

_SUBMODULES = {"arrays", "behavior", "dtypes", "elements", "reductions"}
__all__ = sorted(_name for _name in globals().keys() - _SUBMODULES if not _name.startswith("_"))


def __getattr__(name: str) -> object:
    raise _MissingNameError(__name__, name)
