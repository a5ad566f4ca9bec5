"""Calls in a child process, which returns all of its memory when it ends.

Lives here: `call_apart`; `serve`, the child's side.
Not here: the function that is called; the fallback if no child process is available, which is the caller's.

The child is a new Python, which receives the import path, the flags in force, and the arguments. The effects of the
call are the files that it writes. Nothing is forked, as threads may run in the parent. The child ends at the latest
with its parent, when the pipe between them is closed.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
from typing import Any, BinaryIO

from . import flags

_BOOT = (
    "import json, sys; pipe = sys.stdin.buffer; "
    "head = json.loads(pipe.read(int.from_bytes(pipe.read(8), 'little'))); "
    "sys.path[:] = head['path']; from opwright.core.children import serve; serve(head, pipe)"
)


def call_apart(target: str, arguments: list[Any], content: Any = None, **changed: Any) -> bool:
    """Call a function in a child process; return whether it returned.

    target: "module:function"; arguments: representable in JSON; content: bytes, the last argument if there are any;
    changed: flags with other values in the child False if there is no Python executable, the system starts no process,
    or the call raised
    """
    python = _python()
    if python is None:
        return False
    values = {name: flags.get(name) for name in flags.FLAGS} | changed
    head = {
        "path": [os.path.abspath(folder) for folder in sys.path],
        "flags": {name: sorted(v) if isinstance(v, frozenset) else v for name, v in values.items() if v is not None},
        "target": target,
        "arguments": arguments,
        "bytes": None if content is None else memoryview(content).nbytes,
    }
    text = json.dumps(head).encode()
    try:
        child = subprocess.Popen(
            [python, "-c", _BOOT], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
    except (OSError, ValueError, RuntimeError):  # RuntimeError: this process is ending
        return False
    try:
        assert child.stdin is not None, "it is a pipe"
        try:
            child.stdin.write(len(text).to_bytes(8, "little") + text)
            if content is not None:
                child.stdin.write(memoryview(content).cast("B"))
            child.stdin.flush()
        except OSError:  # it has ended
            return False
        return child.wait() == 0
    finally:
        child.kill()
        child.wait()
        if child.stdin is not None:
            with contextlib.suppress(OSError):  # flushing unwritten bytes
                child.stdin.close()


def _python() -> str | None:
    """Return the Python executable; None in a program that embeds Python."""
    name = os.path.basename(sys.executable or "").lower()
    return None if getattr(sys, "frozen", False) or not name.startswith(("python", "pypy")) else sys.executable


def serve(head: dict[str, Any], pipe: BinaryIO) -> None:
    """Execute the call that the parent requests, in the child."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's
    content = None if head["bytes"] is None else pipe.read(head["bytes"])
    threading.Thread(target=_end_with_parent, args=(pipe,), daemon=True).start()
    flags.configure(**head["flags"])
    gc.set_threshold(20_000, 20, 20)  # what is made stays: 0.1 s of collections save 7 MB
    module, _, function = head["target"].partition(":")
    arguments = [*head["arguments"], *([] if content is None else [content])]
    getattr(importlib.import_module(module), function)(*arguments)
    os._exit(0)  # its files are written; freeing all objects one by one takes 0.2 s


def _end_with_parent(pipe: BinaryIO) -> None:
    """Wait for the end of the pipe, which is closed when the parent ends."""
    os.read(pipe.fileno(), 1)  # not by `pipe`, which Python locks as it ends
    os._exit(1)
