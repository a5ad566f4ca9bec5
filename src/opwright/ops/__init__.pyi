from .definition_lint import lint as lint
from .gradient_makers import DefaultGradient as DefaultGradient
from .gradient_makers import SingleGradient as SingleGradient
from .kernel_selection import explain as explain
from .kernels import KernelKey as KernelKey
from .kernels import register_kernel as register_kernel
from .kernels import register_library as register_library
from .registry import get as get
from .registry import list_names
from .spec_changes import Change as Change
from .spec_changes import compatibility as compatibility
from .specification import spec as spec

list = list_names
