from .communicators import Communicator as Communicator
from .communicators import LocalCommunicator as LocalCommunicator
from .communicators import WorkerLostError as WorkerLostError
from .dask_workers import run_on_dask as run_on_dask
from .datasets import DistributedDataset as DistributedDataset
from .executors import executor as executor
from .inference import ElementError as ElementError
from .inference import Results as Results
from .inference import Summary as Summary
from .inference import map as map
from .mailboxes import Mailbox as Mailbox
from .mailboxes import MailboxCommunicator as MailboxCommunicator
from .mpi import MPICommunicator as MPICommunicator
from .ray_workers import run_on_ray as run_on_ray
from .sharded_checkpoint import ShardedCheckpoint as ShardedCheckpoint
from .sinks import NumPySink as NumPySink
from .sinks import ParquetSink as ParquetSink
from .sinks import Sink as Sink
from .sinks import ZarrSink as ZarrSink
from .strategy import InputContext as InputContext
from .strategy import MultiWorker as MultiWorker
from .strategy import ReduceOp as ReduceOp
from .strategy import WorkerStrategy
from .strategy import get_strategy as get_strategy
from .strategy import has_strategy as has_strategy
from .sweeps import SweepReport as SweepReport
from .sweeps import Trial as Trial
from .sweeps import grid as grid
from .sweeps import sweep as sweep
from .tables import ShardedEmbedding as ShardedEmbedding

Strategy = WorkerStrategy
