"""Optimizers and learning rate schedules: rules that update variables by gradients.

Lives here: the public names.  Not here: gradients (eager/tape.py), models that train (nn/).
"""

from . import schedules
from .adam import Adam, Adamax, AdamW, Nadam
from .base import Optimizer
from .rules import SGD, Adadelta, Adagrad, Ftrl, Lion, RMSprop
from .serialization import deserialize, get, serialize

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
