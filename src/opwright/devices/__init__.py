"""Compute resources: a `DeviceContext` for each place, with the resources that a kernel needs besides its arrays.

Lives here: contexts, their pool, streams, allocators, copies, the simulated asynchronous device. Not here: kernels and
their selection (ops/, scopes/).

    pool.py        one context for each place        context.py     the base class; random numbers
    cpu.py         threads, aligned memory           cuda.py, cuda_host.py   through CuPy, loaded on first use
    streams.py     queues of asynchronous work       memory.py      stream-ordered memory, poisoned when freed
    copies.py      which copies wait                 pinned.py      page-locked memory
    simulated.py   the simulated device              simulated_array.py   its arrays
"""

from .context import DeviceContext
from .pool import DeviceContextPool, register_place_kind

__all__ = ["DeviceContext", "DeviceContextPool", "register_place_kind"]
