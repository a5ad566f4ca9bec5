"""Optimizers and learning rate schedules: how variables change by gradients.

Lives here: the public names.  Not here: gradients (eager/tape.py), models that train (nn/).
"""

from . import schedules
from .adagrad import Adagrad, Ftrl
from .adam import Adam, Adamax, AdamW, Nadam
from .base import Optimizer
from .lion import Lion
from .rmsprop import Adadelta, RMSprop
from .serialization import deserialize, get, serialize
from .sgd import SGD

__all__ = [
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Ftrl",
    "Lion",
    "Nadam",
    "Optimizer",
    "RMSprop",
    "deserialize",
    "get",
    "schedules",
    "serialize",
]
