"""Models of Keras 3 as models of `nn`.

models.py          `from_keras`: model objects of any backend, and .keras files
archives.py        .keras files: their configuration and HDF5 weights, checked
configurations.py  configurations of Keras as those of `nn`; what `nn` lacks
legacy_files.py    .h5 files of Keras 2
traced.py          layers without an equivalent, by the program that the backend of Keras records
weights.py         weights of files and objects
"""

from .models import from_keras

__all__ = ["from_keras"]
