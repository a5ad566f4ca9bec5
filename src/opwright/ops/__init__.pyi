from .changes import Change as Change
from .changes import compatibility as compatibility
from .gradient_makers import DefaultGradient as DefaultGradient
from .gradient_makers import SingleGradient as SingleGradient
from .kernels import KernelKey as KernelKey
from .kernels import register_kernel as register_kernel
from .kernels import register_library as register_library
from .linting import lint as lint
from .registry import get as get
from .registry import list_names
from .selection import explain as explain
from .specification import spec as spec

list = list_names
