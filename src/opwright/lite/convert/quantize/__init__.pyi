from .driver import quantize as quantize
from .driver import sparsify as sparsify
from .modes import Mode as Mode
from .modes import mode_of as mode_of
