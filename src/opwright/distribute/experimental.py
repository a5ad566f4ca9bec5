"""`distribute.experimental`: names of strategies and their options."""

from . import partitioners
from .options import CollectiveHints, CommunicationImplementation, CommunicationOptions, ValueContext
from .options import CommunicationImplementation as CollectiveCommunication
from .single_replica import CentralStorageStrategy, MultiWorkerMirroredStrategy

__all__ = [
    "CentralStorageStrategy",
    "CollectiveCommunication",
    "CollectiveHints",
    "CommunicationImplementation",
    "CommunicationOptions",
    "MultiWorkerMirroredStrategy",
    "ValueContext",
    "partitioners",
]
