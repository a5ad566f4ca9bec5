"""Compute resources: what a kernel needs besides its arrays, one `DeviceContext` for each place.

Lives here: contexts, their pool, streams, allocators, copies, the simulated asynchronous device.
Not here: kernels and how one is chosen (ops/, scopes/).

    pool.py        one context for each place, made when first asked for
    context.py     what a context is                 context.py      the random numbers of one
    cpu.py         threads, scratch memory           cuda.py, cuda_host.py   CuPy's, loaded when first asked for
    streams.py     queues of work that runs later    memory.py      stream-ordered memory, poisoned when freed
    copies.py      which copies wait                 pinned.py      page-locked memory
    simulated.py   the simulated device              simulated_array.py   its arrays
"""

from .context import DeviceContext
from .pool import DeviceContextPool, register_place_kind

__all__ = ["DeviceContext", "DeviceContextPool", "register_place_kind"]
