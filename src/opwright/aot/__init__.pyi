from .libraries import Library as Library
from .libraries import build as build
from .loaded_library import LoadedLibrary as LoadedLibrary
from .loaded_library import load as load
