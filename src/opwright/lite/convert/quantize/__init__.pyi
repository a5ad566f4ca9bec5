from .driver import quantize as quantize
from .modes import Mode as Mode
from .modes import mode_of as mode_of
from .sparsity import sparsify as sparsify
