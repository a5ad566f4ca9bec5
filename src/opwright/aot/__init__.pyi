from .libraries import Library as Library
from .libraries import build as build
from .loading import LoadedLibrary as LoadedLibrary
from .loading import load as load
