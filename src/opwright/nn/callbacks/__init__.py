"""Callbacks: what is told of the course of training and may steer it.

Lives here: the public names.  Not here: what they do.
"""

from .base import Callback, CallbackList, History, ProgbarLogger
from .files import BackupAndRestore, CSVLogger, LambdaCallback, ModelCheckpoint, TerminateOnNaN
from .watching import EarlyStopping, LearningRateScheduler, ReduceLROnPlateau

__all__ = [
    "BackupAndRestore",
    "CSVLogger",
    "Callback",
    "CallbackList",
    "EarlyStopping",
    "History",
    "LambdaCallback",
    "LearningRateScheduler",
    "ModelCheckpoint",
    "ProgbarLogger",
    "ReduceLROnPlateau",
    "TerminateOnNaN",
]
