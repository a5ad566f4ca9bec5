"""The function that machine code calls to be interrupted: the poll of executor.ll, bound to this process's state.

Lives here: `poll_address`.  Not here: what a poll does (interrupts.py, executor.ll), where kernels poll
(../polling.py).
"""

from __future__ import annotations

import platform
import struct

from .image import Image, load_images
from .interrupts import state_address
from .workers import functions

_made: dict[str, int] = {}


def poll_address(symbol: str) -> int:
    """Return the address of a C function without arguments that returns 0, or INTERRUPTED where the code is to end.

    symbol: POLL, by which code names it.
    """
    found = _made.get("poll")
    if found is None:
        state, poll = state_address(), functions().poll
        if platform.machine() == "x86_64":  # mov rdi, state; mov rax, poll; jmp rax
            code = b"\x48\xbf" + struct.pack("<Q", state) + b"\x48\xb8" + struct.pack("<Q", poll) + b"\xff\xe0"
        else:  # ldr x0, state; ldr x16, poll; br x16; nop
            code = struct.pack("<IIIIQQ", 0x58000080, 0x580000B0, 0xD61F0200, 0xD503201F, state, poll)
        (entries,) = load_images([Image({"poll": 0}, (), (), code, 64)])
        found = _made.setdefault("poll", entries["poll"])
    return found
