"""Work on several processes and machines, by the engines that run there: batch inference, sweeps, training.

Lives here: the public names, each loaded on first use, so that no engine is imported before it is named.

    executors.py    executors by name ("processes:4", "dask://host:port"), those of Ray and of multiprocessing pools
    inference.py    `map`: a model over many elements; job.py: what tasks carry
    worker.py       the worker's side of `map`; portable_model.py: the way of the model
    dispatcher.py   tasks to workers and results back: back-pressure, order, lost workers; task_size.py, progress.py
    elements.py     elements of any source as columns; slots.py: their way through memory that processes share
    sweeps.py       one function on many sets of parameters
    sinks.py        results on disk; journal.py: which are complete
    strategy.py     strategies; multi_worker.py: data-parallel training; gradients.py: buckets, overlap;
                    collectives.py: operators
    communicators.py    exchange and sums; mpi.py, mailboxes.py with ray_workers.py and dask_workers.py: of engines
    datasets.py     a worker's part of a batch
    tables.py       tables by rows; sharded_checkpoint.py: their files

Not here: schedulers, transports and launchers: those are the engines'.
"""

from ..core.lazy_imports import lazily

__getattr__, __dir__, __all__ = lazily(__name__)
