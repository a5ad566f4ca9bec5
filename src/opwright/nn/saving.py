"""`keras.saving`: files of models and weights, and the registry of classes that files name.

Lives here: re-exports.  Not here: formats (model_files.py, weights_io.py), the registry (configuration.py).
"""

from .configuration import CustomObjectScope as CustomObjectScope
from .model_files import load_model as load_model
from .model_files import save_model as save_model
from .utils import custom_object_scope as custom_object_scope
from .utils import deserialize_keras_object as deserialize_keras_object
from .utils import get_custom_objects as get_custom_objects
from .utils import get_registered_name as get_registered_name
from .utils import get_registered_object as get_registered_object
from .utils import register_keras_serializable as register_keras_serializable
from .utils import serialize_keras_object as serialize_keras_object
from .weights_io import load_weights as load_weights
from .weights_io import save_weights as save_weights
