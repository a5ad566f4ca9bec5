from .build_report import BuildReport as BuildReport
from .differences import ModelDifferences as ModelDifferences
from .differences import diff as diff
from .libraries import Library as Library
from .libraries import build as build
from .loaded_library import LoadedLibrary as LoadedLibrary
from .loaded_library import load as load
from .tensor_differences import TensorDifference as TensorDifference
