"""Opwright: the whole life of a machine-learning operator, in Python.

>>> import opwright as ow
>>> ow.atan(ow.constant([1.0, 2.0]))
<tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.7853982, 1.1071488], dtype=float32)>

`__init__.pyi` lists the public names as import statements, for type checkers and for the loader, which imports each
module when one of its names is first used; docs/api.md has a line for each.
"""

from .core.lazy_imports import lazily as _lazily

__getattr__, __dir__, __all__ = _lazily(__name__, unlisted=("__version__", "load_ipython_extension"))
