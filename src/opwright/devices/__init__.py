"""Compute resources: a `DeviceContext` for each place, with the resources that a kernel needs besides its arrays.

Lives here: contexts, their pool, streams, allocators, copies, the simulated asynchronous device. Not here: kernels and
their selection (ops/, scopes/).

    pool.py        a context for each place, copies between places     context.py   the base class; random numbers
    cpu.py         threads, aligned memory                             cuda.py      through CuPy, loaded on first use
    streams.py     queues of asynchronous work
    memory.py      stream-ordered memory, poisoned when it is freed; page-locked memory; which copies wait
    simulated.py   the simulated device                                simulated_array.py   its arrays
"""

from .context import DeviceContext
from .pool import DeviceContextPool, register_place_kind, transfer

__all__ = ["DeviceContext", "DeviceContextPool", "register_place_kind", "transfer"]
