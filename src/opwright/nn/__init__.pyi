from ..ops.nn import *  # noqa: F403
from . import activations as activations
from . import callbacks as callbacks
from . import constraints as constraints
from . import initializers as initializers
from . import layers as layers
from . import losses as losses
from . import metrics as metrics
from . import models as models
from . import regularizers as regularizers
from . import utils as utils
from .layer import Layer as Layer
from .model import Model as Model
from .models import Sequential as Sequential
from .module import Module as Module
from .network import Input as Input
