"""Callbacks, which observe and control training.

Lives here: the public names.  Not here: their definitions.
"""

from .averages import SwapEMAWeights
from .base import Callback, CallbackList, History, ProgbarLogger
from .files import BackupAndRestore, CSVLogger, LambdaCallback, ModelCheckpoint, TerminateOnNaN
from .metric_monitors import EarlyStopping, LearningRateScheduler, ReduceLROnPlateau
from .tensorboard import TensorBoard

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
    "SwapEMAWeights",
    "TensorBoard",
    "TerminateOnNaN",
]
